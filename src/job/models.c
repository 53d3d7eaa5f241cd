/* SPDX-License-Identifier: MIT */
#include "job/models.h"

static size_t model_count(void)
{
    return knee_models_count;
}

static const char *model_name(size_t row)
{
    return row < knee_models_count ? knee_models[row].name : NULL;
}

const struct knee_choices knee_model_names = {"model preset", model_count, model_name};

const struct knee_model *knee_model_at(size_t row)
{
    return row < knee_models_count ? &knee_models[row] : NULL;
}

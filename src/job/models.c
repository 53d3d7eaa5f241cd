/* SPDX-License-Identifier: MIT */
#include "job/models.h"

#include <math.h>

static size_t model_count(void)
{
    return knee_models_count;
}

static const char *model_name(size_t row)
{
    return row < knee_models_count ? knee_models[row].name : NULL;
}

const struct knee_choices knee_model_names = {
    .what = "model preset", .count = model_count, .name = model_name};

const struct knee_model *knee_model_at(size_t row)
{
    return row < knee_models_count ? &knee_models[row] : NULL;
}

bool knee_model_has_shape(const struct knee_model *model)
{
    return !isnan(model->layers);
}

double knee_model_flops_per_param(const struct knee_model *model)
{
    struct knee_shape shape;
    struct knee_params params;
    if (!isnan(model->flops_per_param))
        return model->flops_per_param;
    knee_shape_init(&shape);
    shape.model = (int)(model - knee_models);
    if (knee_shape_complete(&shape, NULL))
        return NAN;
    knee_shape_params(&shape, &params);
    return 6 * params.active / params.total;
}

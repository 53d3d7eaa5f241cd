/* SPDX-License-Identifier: MIT */
#include "job/models.h"

#include "base/fold.h"
#include "base/format.h"

#include <math.h>
#include <string.h>

static size_t model_count(void)
{
    return knee_models_count;
}

static const char *model_name(size_t row)
{
    return row < knee_models_count ? knee_models[row].name : NULL;
}

/* ---- Names as Hugging Face and people write them ---- */

/* The start of a name in letters and digits, and the preset's where that differs: releases of one
 * shape, and sizes. Source: the models' public configuration files. */
static const struct {
    const char *written, *preset;
} releases[] = {
    {"metallama", "llama"},
    {"llama31", "llama3"},
    {"llama33", "llama3"},
    {"deepseekr1", "deepseekv3"},
    {"grok1", "grok1314b"},
    {"bloom", "bloom176b"},
    {"phi4", "phi414b"},
    {"phi3mini", "phi3mini38b"},
    {"mistralnemo", "mistralnemo12b"},
    /* A size alone is the model that most people mean by it; titles say which. */
    {"1b", "llama321b"},
    {"3b", "llama323b"},
    {"7b", "llama27b"},
    {"8b", "llama38b"},
    {"13b", "llama213b"},
    {"14b", "qwen314b"},
    {"32b", "qwen332b"},
    {"70b", "llama370b"},
    {"175b", "gpt3175b"},
    {"405b", "llama3405b"},
    {"671b", "deepseekv3"},
};

/* What may follow a name and does not change the shape; v and date of a release likewise. */
static const char *const variants[] = {"instruct", "chat", "base", "hf", "it", "thinking", "meta"};

static bool is_variant(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (strlen(variants[i]) == length && strncmp(variants[i], word, length) == 0)
            return true;
    return length > 3 && word[0] == 'v' && strchr(word, '.') && strchr(word, '.') < word + length;
}

/* Letters and digits of the name, in small letters, without its owner and its variant. */
static void letters(const char *text, char *out, size_t size)
{
    size_t used = 0, start = 0;
    char folded[64] = "";
    const char *owner = strrchr(text, '/');
    knee_fold(owner ? owner + 1 : text, folded, sizeof folded);
    for (size_t length; folded[start]; start += length + (folded[start + length] != '\0')) {
        length = strcspn(folded + start, "-_ ");
        if (start > 0 && is_variant(folded + start, length))
            continue;
        for (size_t i = start; i < start + length && used + 1 < size; i++)
            if (knee_is_word_char(folded[i]))
                out[used++] = folded[i];
    }
    out[used] = '\0';
}

static int find_letters(const char *wanted)
{
    char name[64];
    for (size_t row = 0; row < knee_models_count; row++) {
        letters(knee_models[row].name, name, sizeof name);
        if (strcmp(wanted, name) == 0)
            return (int)row;
    }
    return -1;
}

static int model_spelt(const char *text)
{
    char wanted[64], other[96];
    letters(text, wanted, sizeof wanted);
    int row = find_letters(wanted);
    for (size_t i = 0; i < sizeof releases / sizeof *releases && row < 0; i++) {
        size_t length = strlen(releases[i].written);
        if (strncmp(wanted, releases[i].written, length) != 0)
            continue;
        knee_format(other, sizeof other, "%s%s", releases[i].preset, wanted + length);
        row = find_letters(other);
    }
    return row;
}

const struct knee_choices knee_model_names = {
    .what = "model preset", .count = model_count, .name = model_name, .spelt = model_spelt};

const struct knee_model *knee_model_at(size_t row)
{
    return row < knee_models_count ? &knee_models[row] : NULL;
}

bool knee_model_has_shape(const struct knee_model *model)
{
    return !isnan(model->shape.layers);
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

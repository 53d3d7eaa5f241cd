/* SPDX-License-Identifier: MIT */
/* Megatron logs and scripts, NeMo's YAML and torchtitan's TOML from any bytes. */
#include "knee_read.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is refused leaves everything as it was. */
static void others(const char *text, size_t size)
{
    struct knee_shape shape, before;
    struct knee_plan plan, untouched;
    struct knee_err err;
    knee_shape_init(&shape);
    knee_plan_init(&plan);
    before = shape;
    untouched = plan;
    if (knee_torchtitan_read(text, size, "fuzz", 32, &plan, &err) &&
        memcmp(&plan, &untouched, sizeof plan))
        abort();
    knee_plan_init(&plan);
    if (knee_nemo_read(text, size, "fuzz", &shape, &plan, &err) &&
        (memcmp(&shape, &before, sizeof shape) || memcmp(&plan, &untouched, sizeof plan)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    others((const char *)data, size);
    struct knee_shape shape, before;
    struct knee_plan plan;
    struct knee_err err;
    double step_s = -1;
    knee_shape_init(&shape);
    knee_plan_init(&plan);
    before = shape;
    if (knee_megatron_read((struct knee_named_text){(const char *)data, size, "fuzz"}, &shape,
                           &plan, &step_s, &err)) {
        if (memcmp(&shape, &before, sizeof shape) || step_s != -1)
            abort();
        return 0;
    }
    if (!isnan(step_s) && !(step_s > 0))
        abort();
    knee_shape_complete(&shape, &err);
    return 0;
}

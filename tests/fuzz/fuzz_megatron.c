/* SPDX-License-Identifier: MIT */
/* Megatron logs and scripts from any bytes. */
#include "knee_read.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_shape shape, before;
    struct knee_plan plan;
    struct knee_err err;
    double step_s = -1;
    knee_shape_init(&shape);
    knee_plan_init(&plan);
    before = shape;
    if (knee_megatron_read((const char *)data, size, "fuzz", &shape, &plan, &step_s, &err)) {
        if (memcmp(&shape, &before, sizeof shape) || step_s != -1)
            abort();
        return 0;
    }
    if (!isnan(step_s) && !(step_s > 0))
        abort();
    knee_shape_complete(&shape, &err);
    return 0;
}

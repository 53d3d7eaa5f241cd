/* SPDX-License-Identifier: MIT */
/* config.json and DeepSpeed files from any bytes: read or refused; what is read can be priced. */
#include "knee_read.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void price(const struct knee_shape *shape, struct knee_plan *plan)
{
    struct knee_platform platform;
    struct knee_machine machine;
    struct knee_plan_cost cost;
    knee_platform_init(&platform);
    platform.hw.gpu = 4;
    if (knee_machine_init(&platform, NULL, &machine, NULL))
        abort();
    if (isnan(plan->gpus))
        plan->gpus = 8;
    if (knee_plan_complete(plan, shape, &machine, NULL))
        return;
    knee_plan_price(shape, &machine, plan, &cost);
    if (!(cost.step_s > 0) || !(cost.memory.total > 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_shape shape, shape_before;
    struct knee_plan plan, plan_before;
    struct knee_err err;
    knee_shape_init(&shape);
    knee_plan_init(&plan);
    shape_before = shape;
    plan_before = plan;
    bool has_plan = !knee_deepspeed_read((const char *)data, size, "fuzz", &plan, &err);
    if (!has_plan && memcmp(&plan, &plan_before, sizeof plan))
        abort();
    if (knee_hf_read((const char *)data, size, "fuzz", &shape, &err)) {
        if (memcmp(&shape, &shape_before, sizeof shape))
            abort();
        return 0;
    }
    if (knee_shape_complete(&shape, &err))
        abort(); /* the reader promises a shape that can be */
    price(&shape, &plan);
    return 0;
}

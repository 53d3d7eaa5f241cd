/* SPDX-License-Identifier: MIT */
/*
 * The model beside the measurement: what knee plan says about the job of a log. What is missing is
 * named, so that it can be asked for.
 */
#include "base/format.h"
#include "cluster/hardware.h"
#include "knee_scale.h"
#include "predict/plan/published_runs.h"

#include <math.h>
#include <string.h>

static double share(const struct knee_plan_cost *cost, enum knee_part part)
{
    return cost->part_s[part] / cost->step_s;
}

static void lacks(struct knee_scale_model *out, const char *what)
{
    size_t used = strlen(out->missing);
    knee_format(out->missing + used, sizeof out->missing - used, "%s%s", used ? ", " : "add ",
                what);
}

void knee_scale_model(const struct knee_shape *given_shape, const struct knee_plan *given_plan,
                      const struct knee_platform *given_platform, struct knee_scale_row *row)
{
    static const enum knee_part wires[] = {KNEE_PART_TP, KNEE_PART_CP, KNEE_PART_EP,
                                           KNEE_PART_PP, KNEE_PART_DP, KNEE_PART_SHARD};
    struct knee_shape shape = *given_shape;
    struct knee_plan plan = *given_plan;
    struct knee_platform platform = *given_platform;
    struct knee_machine machine;
    struct knee_plan_cost cost;
    struct knee_err err = {0};
    struct knee_scale_model *out = &row->model;
    memset(out, 0, sizeof *out);
    out->step_s = out->low_s = out->high_s = out->mfu_full = out->mfu_causal = NAN;
    out->comm_share = out->bubble_share = out->host_share = NAN;
    plan.gpus = row->workers;
    if (!isnan(row->batch)) {
        plan.global_batch = row->batch;
        plan.global_tokens = NAN;
    }
    if (shape.model < 0 && !(shape.layers > 0 && shape.hidden > 0))
        lacks(out, "--model (or --layers and --hidden)");
    if (!knee_hardware_gpu(&platform.hw))
        lacks(out, "--gpu");
    if (isnan(plan.global_batch) && isnan(plan.global_tokens))
        lacks(out, "--global-batch");
    if (isnan(row->workers))
        lacks(out, "the GPU count (COUNT=FILE)");
    if (out->missing[0])
        return;
    if (knee_shape_complete(&shape, &err) || knee_machine_init(&platform, NULL, &machine, &err) ||
        knee_plan_complete(&plan, &shape, &machine, &err)) {
        knee_format(out->missing, sizeof out->missing, "%.90s%s%.90s", err.what,
                    err.hint[0] ? ": " : "", err.hint);
        return;
    }
    knee_plan_price(&shape, &machine, &plan, &cost);
    out->mfu_full = cost.mfu_full * cost.step_s / row->step_s;
    out->mfu_causal = cost.mfu_causal * cost.step_s / row->step_s;
    out->step_s = cost.step_s;
    out->low_s = cost.low_s;
    out->high_s = cost.high_s;
    out->comm_share = 0;
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++)
        out->comm_share += share(&cost, wires[i]);
    out->bubble_share = share(&cost, KNEE_PART_BUBBLE);
    out->host_share = share(&cost, KNEE_PART_HOST);
    out->binding = knee_plan_binding(&cost);
    double token_s = plan.gpus / cost.tokens_per_s * row->step_s / cost.step_s;
    out->alike_count = knee_alike_find(&shape, &platform, &plan, token_s, out->alike);
}

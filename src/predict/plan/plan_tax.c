/* SPDX-License-Identifier: MIT */
#include "predict/plan/plan_tax.h"

#include "base/keys.h"
#include "base/number.h"
#include "job/models.h"
#include "knee_timeline.h"

#include <math.h>

static knee_status shape_of(const struct knee_tax_job *job, struct knee_shape *shape,
                            struct knee_err *err)
{
    static const char *const names[] = {"layers", "hidden",  "ffn", "seq",
                                        "vocab",  "experts", "topk"};
    const double values[] = {job->layers, job->hidden,  job->ffn, job->seq,
                             job->vocab,  job->experts, job->topk};
    knee_status status = KNEE_OK;
    knee_shape_init(shape);
    if (job->model >= 0)
        status = knee_keys_set(&knee_shape_keys, shape, "model",
                               knee_model_names.name((size_t)job->model), KNEE_FLAG, err);
    else
        shape->glu = 0; /* a width of two matrices */
    for (size_t i = 0; i < sizeof names / sizeof *names && !status; i++) {
        char text[40];
        unsigned char source = job->source[knee_keys_find(&knee_tax_keys, names[i])];
        if (source != KNEE_FLAG && job->model >= 0)
            continue;
        knee_number_exact(text, sizeof text, values[i]);
        status = knee_keys_set(&knee_shape_keys, shape, names[i], text, KNEE_FLAG, err);
    }
    return status ? status : knee_shape_complete(shape, err);
}

knee_status knee_tax_plan(const struct knee_tax_job *job, struct knee_shape *shape,
                          struct knee_machine *machine, struct knee_plan *plan,
                          struct knee_err *err)
{
    knee_status status = shape_of(job, shape, err);
    struct knee_platform platform;
    const double *degree = job->degree;
    double replicas = degree[KNEE_AXIS_DP] * degree[KNEE_AXIS_FSDP];
    if (status)
        return status;
    knee_platform_init(&platform);
    platform.hw = job->hw;
    platform.peak_flops = job->peak_flops;
    if ((status = knee_machine_init(&platform, NULL, machine, err)))
        return status;
    knee_plan_init(plan);
    plan->tp = degree[KNEE_AXIS_TP];
    plan->pp = degree[KNEE_AXIS_PP];
    plan->ep = degree[KNEE_AXIS_EP];
    plan->gpus = replicas * plan->tp * plan->pp;
    plan->micro_batch = job->micro_batch;
    plan->global_batch = replicas * job->micro_batch * job->micro_batches;
    if (job->source[knee_keys_find(&knee_tax_keys, "bytes-per-value")] != KNEE_DEFAULT)
        plan->gradient_bytes = job->bytes_per_value;
    plan->shard = degree[KNEE_AXIS_FSDP] > 1 ? KNEE_ZERO3 : KNEE_REPLICATE;
    if (degree[KNEE_AXIS_FSDP] > 1)
        plan->shard_size = degree[KNEE_AXIS_FSDP];
    return knee_plan_complete(plan, shape, machine, err);
}

/* Which part of a plan's cost an axis is, and what it calls. */
static const struct {
    enum knee_part part;
    const char *collective, *sharded;
} rows[KNEE_AXES] = {
    [KNEE_AXIS_DP] = {KNEE_PART_DP, "all-reduce (gradients)", "reduce-scatter, all-gather"},
    [KNEE_AXIS_FSDP] = {KNEE_PART_SHARD, "all-gather x2, reduce-scatter", NULL},
    [KNEE_AXIS_TP] = {KNEE_PART_TP, "reduce-scatter, all-gather (activations)", NULL},
    [KNEE_AXIS_PP] = {KNEE_PART_PP, "send/receive (activations)", NULL},
    [KNEE_AXIS_EP] = {KNEE_PART_EP, "all-to-all (tokens)", NULL},
};

static void fill_axis(const struct knee_traffic *traffic, size_t count,
                      const struct knee_machine *machine, const struct knee_plan_cost *cost,
                      struct knee_axis_tax *axis)
{
    enum knee_part part = rows[axis->axis].part;
    axis->collective = rows[axis->axis].collective;
    axis->exposed_s = cost->part_s[part];
    axis->comm_s = fmax(cost->wire_s[part - KNEE_PART_TP], axis->exposed_s); /* waits included */
    axis->window_s = axis->comm_s - axis->exposed_s;
    for (size_t i = 0; i < count; i++) {
        if (traffic[i].part != part)
            continue;
        axis->buffer_bytes = fmax(axis->buffer_bytes, traffic[i].bytes);
        axis->calls += traffic[i].calls;
        axis->crosses_nodes = traffic[i].group.size * traffic[i].group.stride > machine->node_size;
    }
}

knee_status knee_tax_by_plan(struct knee_tax *tax, struct knee_err *err)
{
    struct knee_shape shape;
    struct knee_machine machine;
    struct knee_plan plan;
    struct knee_plan_cost cost;
    struct knee_params params;
    struct knee_step step;
    struct knee_traffic traffic[KNEE_TRAFFIC_MAX];
    knee_status status = knee_tax_plan(&tax->job, &shape, &machine, &plan, err);
    if (status)
        return status;
    knee_plan_price(&shape, &machine, &plan, &cost);
    knee_plan_step(&cost, &step);
    knee_shape_params(&shape, &params);
    size_t count = knee_plan_traffic(&shape, &machine, &plan, traffic, KNEE_TRAFFIC_MAX);
    for (int i = 0; i < KNEE_AXES; i++)
        fill_axis(traffic, count, &machine, &cost, &tax->axes[i]);
    tax->params = params.total;
    tax->params_per_gpu = cost.memory.parameters / 2;
    tax->compute_s = step.label_s[KNEE_COMPUTE] + step.label_s[KNEE_HOST];
    tax->bubble_s = cost.part_s[KNEE_PART_BUBBLE];
    tax->step_s = cost.step_s;
    tax->step_sure = (struct knee_sure){cost.low_s, cost.high_s};
    tax->mfu = cost.mfu_causal;
    tax->memory = cost.memory;
    /* Gathers grow with parameters, compute with tokens: they break even at so many. */
    tax->local_tokens_min = tax->tokens_per_gpu * tax->axes[KNEE_AXIS_FSDP].comm_s / tax->compute_s;
    return KNEE_OK;
}

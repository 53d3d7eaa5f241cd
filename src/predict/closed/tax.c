/* SPDX-License-Identifier: MIT */
/*
 * What each parallel axis pays: its collective, how often, over which link, against the compute it
 * can hide behind. One GPU, one step of M micro-steps; t = tokens of one micro-step of a replica.
 *
 * Ranks are laid out tensor-parallel first, then sharded (fsdp), then replicated (dp), then stages
 * (pp), the usual order: an axis leaves the node when its span of consecutive ranks does.
 */
#include "cluster/hardware.h"
#include "job/job.h"
#include "predict/plan/plan_tax.h"

#include <math.h>

static const char *const names[KNEE_AXES] = {
    [KNEE_AXIS_DP] = "DP", [KNEE_AXIS_FSDP] = "FSDP", [KNEE_AXIS_TP] = "TP",
    [KNEE_AXIS_PP] = "PP", [KNEE_AXIS_EP] = "EP",
};

const char *knee_axis_name(enum knee_axis axis)
{
    return axis < KNEE_AXES ? names[axis] : "?";
}

/* Everything the axes' formulas share. */
struct shape {
    const struct knee_tax_job *job;
    struct knee_cluster cluster;
    double tokens;        /* t */
    double layers;        /* of one stage */
    double layer_params;  /* of one layer on one GPU (after tp and ep) */
    double gpu_params;    /* of one GPU before fsdp */
    double forward_flops; /* of one micro-step on one GPU */
    double compute_s;     /* of one step on one GPU */
};

static double wire_s(const struct shape *s, enum knee_op op, struct knee_group group, double bytes)
{
    return knee_collective_s(&s->cluster, op, group, bytes, NULL);
}

static bool crosses(const struct shape *s, struct knee_group group)
{
    return group.size * group.stride > s->job->hw.gpus_per_node;
}

/* Gradient all-reduce, once; hides behind the backward pass of the last micro-step. */
static void price_dp(const struct shape *s, struct knee_axis_tax *axis)
{
    const struct knee_tax_job *job = s->job;
    double stride = job->degree[KNEE_AXIS_TP] * job->degree[KNEE_AXIS_FSDP];
    struct knee_group group = {axis->degree, stride, false};
    axis->collective = "all-reduce (gradients)";
    axis->buffer_bytes = s->gpu_params / job->degree[KNEE_AXIS_FSDP] * job->bytes_per_value;
    axis->calls = 1;
    axis->crosses_nodes = crosses(s, group);
    axis->comm_s = wire_s(s, KNEE_OP_ALL_REDUCE, group, axis->buffer_bytes);
    axis->window_s = s->compute_s / job->micro_batches * 2 / 3;
    axis->exposed_s = fmax(0, axis->comm_s - axis->window_s);
}

/* Per layer and micro-step: gather the parameters forward and backward, scatter the gradients.
 * Each pass hides behind its own compute: 1/3 forward, 2/3 backward with twice the traffic. */
static void price_fsdp(const struct shape *s, struct knee_axis_tax *axis)
{
    const struct knee_tax_job *job = s->job;
    struct knee_group group = {axis->degree, job->degree[KNEE_AXIS_TP], false};
    axis->collective = "all-gather x2, reduce-scatter";
    axis->buffer_bytes = s->layer_params * job->bytes_per_value;
    axis->calls = 3 * s->layers * job->micro_batches;
    axis->crosses_nodes = crosses(s, group);
    axis->comm_s = axis->calls * wire_s(s, KNEE_OP_ALL_GATHER, group, axis->buffer_bytes);
    axis->window_s = s->compute_s;
    axis->exposed_s = fmax(0, axis->comm_s - axis->window_s);
}

/* Two all-reduces of the activations forward and two backward per layer; nothing to hide behind. */
static void price_tp(const struct shape *s, struct knee_axis_tax *axis)
{
    const struct knee_tax_job *job = s->job;
    struct knee_group group = {axis->degree, 1, false};
    axis->collective = "all-reduce (activations)";
    axis->buffer_bytes = s->tokens * job->hidden * job->bytes_per_value;
    axis->calls = 4 * s->layers * job->micro_batches;
    axis->crosses_nodes = crosses(s, group);
    axis->comm_s = axis->calls * wire_s(s, KNEE_OP_ALL_REDUCE, group, axis->buffer_bytes);
    axis->exposed_s = axis->comm_s;
}

/* Activations to the next stage and gradients back; hides behind other micro-steps. */
static void price_pp(const struct shape *s, struct knee_axis_tax *axis)
{
    const struct knee_tax_job *job = s->job;
    double stride =
        job->degree[KNEE_AXIS_TP] * job->degree[KNEE_AXIS_FSDP] * job->degree[KNEE_AXIS_DP];
    struct knee_group group = {axis->degree, stride, false};
    axis->collective = "send/receive (activations)";
    axis->buffer_bytes = s->tokens * job->hidden * job->bytes_per_value / job->degree[KNEE_AXIS_TP];
    axis->calls = axis->degree > 1 ? 2 * job->micro_batches : 0;
    axis->crosses_nodes = crosses(s, group);
    axis->comm_s = axis->calls * knee_collective_s(&s->cluster, KNEE_OP_SEND_RECV, group,
                                                   axis->buffer_bytes, NULL);
    axis->window_s = s->compute_s * (1 - 1 / job->micro_batches);
    axis->exposed_s = fmax(0, axis->comm_s - axis->window_s);
}

/* Dispatch and combine, forward and backward: each token's activation to its experts and back. */
static void price_ep(const struct shape *s, struct knee_axis_tax *axis)
{
    const struct knee_tax_job *job = s->job;
    struct knee_group group = {axis->degree, job->degree[KNEE_AXIS_TP], false};
    axis->collective = "all-to-all (tokens)";
    axis->buffer_bytes =
        s->tokens * job->topk * job->hidden * job->bytes_per_value / job->degree[KNEE_AXIS_TP];
    axis->calls = axis->degree > 1 ? 4 * s->layers * job->micro_batches : 0;
    axis->crosses_nodes = crosses(s, group);
    axis->comm_s = axis->calls * wire_s(s, KNEE_OP_ALL_TO_ALL, group, axis->buffer_bytes);
    axis->exposed_s = axis->comm_s;
}

static void (*const price[KNEE_AXES])(const struct shape *, struct knee_axis_tax *) = {
    [KNEE_AXIS_DP] = price_dp, [KNEE_AXIS_FSDP] = price_fsdp, [KNEE_AXIS_TP] = price_tp,
    [KNEE_AXIS_PP] = price_pp, [KNEE_AXIS_EP] = price_ep,
};

/* Parameters: 4 h^2 for attention, 2 h ffn for each expert, the embedding in and out. FLOPs: 2 per
 * parameter and token that is used, and 2 s h for causal attention scores; backward twice that. */
static struct shape shape_of(const struct knee_tax_job *job)
{
    const double *degree = job->degree;
    double h = job->hidden, attention = 4 * h * h, expert = 2 * h * job->ffn;
    double tp = degree[KNEE_AXIS_TP], pp = degree[KNEE_AXIS_PP];
    struct shape s = {.job = job};
    knee_hardware_cluster(&job->hw, &s.cluster);
    s.tokens = job->micro_batch * job->seq;
    s.layers = job->layers / pp;
    s.layer_params = (attention + expert * job->experts / degree[KNEE_AXIS_EP]) / tp;
    s.gpu_params = s.layers * s.layer_params + 2 * job->vocab * h / tp / pp;
    double per_token = s.layers * (2 * (attention + expert * job->topk) + 2 * job->seq * h) +
                       2 * job->vocab * h / pp;
    s.forward_flops = per_token * s.tokens / tp;
    s.compute_s = 3 * s.forward_flops * job->micro_batches / (job->peak_flops * job->mfu);
    return s;
}

static void add_up(struct knee_tax *tax)
{
    double exposed = 0;
    for (int i = 0; i < KNEE_AXES; i++)
        exposed += tax->axes[i].exposed_s;
    tax->step_s = (tax->compute_s + exposed) / (1 - tax->bubble);
    tax->step_sure = (struct knee_sure){NAN, NAN};
    tax->bubble_s = tax->bubble * tax->step_s;
    tax->mfu = tax->job.mfu * tax->compute_s / tax->step_s;
}

static void price_textbook(struct knee_tax *tax)
{
    const struct knee_tax_job *job = &tax->job;
    struct shape shape = shape_of(job);
    double h = job->hidden;
    tax->textbook = true;
    tax->params = job->layers * (4 * h * h + 2 * h * job->ffn * job->experts) + 2 * job->vocab * h;
    tax->params_per_gpu = shape.gpu_params / job->degree[KNEE_AXIS_FSDP];
    tax->compute_s = shape.compute_s;
    for (int i = 0; i < KNEE_AXES; i++)
        price[i](&shape, &tax->axes[i]);
    tax->local_tokens_min = job->peak_flops * job->mfu / job->hw.bandwidth_bytes_per_s;
    add_up(tax);
}

/* Which costs most: an axis, or the bubble. */
static void find_binding(struct knee_tax *tax)
{
    double worst = 0;
    for (int i = 0; i < KNEE_AXES; i++) {
        tax->axes[i].tax = tax->axes[i].exposed_s / tax->compute_s;
        if (tax->axes[i].exposed_s > worst) {
            worst = tax->axes[i].exposed_s;
            tax->binding = (enum knee_axis)i;
        }
    }
    tax->bubble_binds = tax->bubble_s > worst;
}

knee_status knee_tax_run(const struct knee_tax_job *job, struct knee_tax *out, struct knee_err *err)
{
    struct knee_tax tax = {.job = *job};
    knee_status status = knee_tax_job_complete(&tax.job, err);
    if (status)
        return status;
    const struct knee_tax_job *full = &tax.job;
    double pp = full->degree[KNEE_AXIS_PP];
    tax.tokens_per_gpu = full->micro_batch * full->seq;
    tax.gpus =
        full->degree[KNEE_AXIS_DP] * full->degree[KNEE_AXIS_FSDP] * full->degree[KNEE_AXIS_TP] * pp;
    tax.bubble = (pp - 1) / (full->micro_batches + pp - 1);
    tax.tp_tax_in = full->peak_flops / (3 * full->hw.node_bandwidth_bytes_per_s * full->hidden);
    tax.tp_tax_out = full->peak_flops / (3 * full->hw.bandwidth_bytes_per_s * full->hidden);
    for (int i = 0; i < KNEE_AXES; i++)
        tax.axes[i] = (struct knee_axis_tax){
            .axis = (enum knee_axis)i, .degree = full->degree[i], .collective = ""};
    if (isnan(full->mfu))
        status = knee_tax_by_plan(&tax, err);
    else
        price_textbook(&tax);
    if (status)
        return status;
    find_binding(&tax);
    *out = tax;
    return KNEE_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * What each parallel axis pays: its collective, how often, over which link, against the compute it
 * can hide behind. One GPU, one step of M micro-steps; t = tokens of one micro-step of a replica.
 *
 * Ranks are laid out tensor-parallel first, then sharded (fsdp), then replicated (dp), then stages
 * (pp), the usual order: an axis leaves the node when its span of consecutive ranks does.
 */
#include "collective/collective.h"
#include "job/job.h"

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
    double tokens;        /* t */
    double layers;        /* of one stage */
    double layer_params;  /* of one layer on one GPU (after tp and ep) */
    double gpu_params;    /* of one GPU before fsdp */
    double forward_flops; /* of one micro-step on one GPU */
    double compute_s;     /* of one step on one GPU */
};

/* A group of `members` ranks that are `stride` apart. */
static struct knee_fabric group_fabric(const struct knee_tax_job *job, double stride)
{
    return (struct knee_fabric){
        .node_size = fmax(1, floor(job->gpus_per_node / stride)),
        .in = {job->node_latency_s, job->node_bandwidth_bytes_per_s},
        .out = {job->latency_s, job->bandwidth_bytes_per_s},
    };
}

static double all_reduce_s(const struct knee_fabric *fabric, double members, double bytes)
{
    return members > 1 ? knee_ring.time_s(fabric, members, bytes) : 0;
}

/* A gather or a scatter is half of a ring all-reduce. */
static double gather_s(const struct knee_fabric *fabric, double members, double bytes)
{
    return all_reduce_s(fabric, members, bytes) / 2;
}

/* Gradient all-reduce, once; hides behind the backward pass of the last micro-step. */
static void price_dp(const struct shape *s, struct knee_axis_tax *axis)
{
    const struct knee_tax_job *job = s->job;
    double stride = job->degree[KNEE_AXIS_TP] * job->degree[KNEE_AXIS_FSDP];
    struct knee_fabric fabric = group_fabric(job, stride);
    axis->collective = "all-reduce (gradients)";
    axis->buffer_bytes = s->gpu_params / job->degree[KNEE_AXIS_FSDP] * job->bytes_per_value;
    axis->calls = 1;
    axis->crosses_nodes = stride * axis->degree > job->gpus_per_node;
    axis->comm_s = all_reduce_s(&fabric, axis->degree, axis->buffer_bytes);
    axis->window_s = s->compute_s / job->micro_batches * 2 / 3;
    axis->exposed_s = fmax(0, axis->comm_s - axis->window_s);
}

/* Per layer and micro-step: gather the parameters forward and backward, scatter the gradients.
 * Each pass hides behind its own compute: 1/3 forward, 2/3 backward with twice the traffic. */
static void price_fsdp(const struct shape *s, struct knee_axis_tax *axis)
{
    const struct knee_tax_job *job = s->job;
    double stride = job->degree[KNEE_AXIS_TP];
    struct knee_fabric fabric = group_fabric(job, stride);
    axis->collective = "all-gather x2, reduce-scatter";
    axis->buffer_bytes = s->layer_params * job->bytes_per_value;
    axis->calls = 3 * s->layers * job->micro_batches;
    axis->crosses_nodes = stride * axis->degree > job->gpus_per_node;
    axis->comm_s = axis->calls * gather_s(&fabric, axis->degree, axis->buffer_bytes);
    axis->window_s = s->compute_s;
    axis->exposed_s = fmax(0, axis->comm_s - axis->window_s);
}

/* Two all-reduces of the activations forward and two backward per layer; nothing to hide behind. */
static void price_tp(const struct shape *s, struct knee_axis_tax *axis)
{
    const struct knee_tax_job *job = s->job;
    struct knee_fabric fabric = group_fabric(job, 1);
    axis->collective = "all-reduce (activations)";
    axis->buffer_bytes = s->tokens * job->hidden * job->bytes_per_value;
    axis->calls = 4 * s->layers * job->micro_batches;
    axis->crosses_nodes = axis->degree > job->gpus_per_node;
    if (axis->crosses_nodes) /* one rail carries the group: its ranks do not stripe activations */
        fabric.node_size = 1;
    axis->comm_s = axis->calls * all_reduce_s(&fabric, axis->degree, axis->buffer_bytes);
    axis->exposed_s = axis->comm_s;
}

/* Activations to the next stage and gradients back; hides behind other micro-steps. */
static void price_pp(const struct shape *s, struct knee_axis_tax *axis)
{
    const struct knee_tax_job *job = s->job;
    double span = job->degree[KNEE_AXIS_TP] * job->degree[KNEE_AXIS_FSDP] *
                  job->degree[KNEE_AXIS_DP] * axis->degree;
    axis->collective = "send/receive (activations)";
    axis->buffer_bytes = s->tokens * job->hidden * job->bytes_per_value / job->degree[KNEE_AXIS_TP];
    axis->calls = axis->degree > 1 ? 2 * job->micro_batches : 0;
    axis->crosses_nodes = span > job->gpus_per_node;
    double latency = axis->crosses_nodes ? job->latency_s : job->node_latency_s;
    double rate =
        axis->crosses_nodes ? job->bandwidth_bytes_per_s : job->node_bandwidth_bytes_per_s;
    axis->comm_s = axis->calls * (latency + axis->buffer_bytes / rate);
    axis->window_s = s->compute_s * (1 - 1 / job->micro_batches);
    axis->exposed_s = fmax(0, axis->comm_s - axis->window_s);
}

/* Dispatch and combine, forward and backward: each token's activation to its experts and back.
 * The part of an all-to-all that stays in the node takes the fast link, the rest the slow one. */
static void price_ep(const struct shape *s, struct knee_axis_tax *axis)
{
    const struct knee_tax_job *job = s->job;
    double n = axis->degree, stride = job->degree[KNEE_AXIS_TP];
    double near = fmin(n, fmax(1, floor(job->gpus_per_node / stride)));
    axis->collective = "all-to-all (tokens)";
    axis->buffer_bytes =
        s->tokens * job->topk * job->hidden * job->bytes_per_value / job->degree[KNEE_AXIS_TP];
    axis->calls = n > 1 ? 4 * s->layers * job->micro_batches : 0;
    axis->crosses_nodes = n > near;
    double in = (near - 1) * job->node_latency_s +
                (near - 1) / n * axis->buffer_bytes / job->node_bandwidth_bytes_per_s;
    double out = (n - near) * job->latency_s +
                 (n - near) / n * axis->buffer_bytes / job->bandwidth_bytes_per_s;
    axis->comm_s = axis->calls * fmax(in, out);
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
    double exposed = 0, worst = 0;
    for (int i = 0; i < KNEE_AXES; i++) {
        exposed += tax->axes[i].exposed_s;
        if (tax->axes[i].exposed_s > worst) {
            worst = tax->axes[i].exposed_s;
            tax->binding = (enum knee_axis)i;
        }
    }
    double pp = tax->job.degree[KNEE_AXIS_PP], steps = tax->job.micro_batches;
    tax->bubble = (pp - 1) / (steps + pp - 1);
    tax->step_s = (tax->compute_s + exposed) / (1 - tax->bubble);
    tax->bubble_binds = tax->bubble * tax->step_s > worst;
    tax->mfu = tax->job.mfu * tax->compute_s / tax->step_s;
}

knee_status knee_tax_run(const struct knee_tax_job *job, struct knee_tax *out, struct knee_err *err)
{
    struct knee_tax tax = {.job = *job};
    knee_status status = knee_tax_job_complete(&tax.job, err);
    if (status)
        return status;
    const struct knee_tax_job *full = &tax.job;
    struct shape shape = shape_of(full);
    double h = full->hidden;
    tax.params =
        full->layers * (4 * h * h + 2 * h * full->ffn * full->experts) + 2 * full->vocab * h;
    tax.params_per_gpu = shape.gpu_params / full->degree[KNEE_AXIS_FSDP];
    tax.tokens_per_gpu = shape.tokens;
    tax.compute_s = shape.compute_s;
    tax.gpus = full->degree[KNEE_AXIS_DP] * full->degree[KNEE_AXIS_FSDP] *
               full->degree[KNEE_AXIS_TP] * full->degree[KNEE_AXIS_PP];
    for (int i = 0; i < KNEE_AXES; i++) {
        tax.axes[i].axis = (enum knee_axis)i;
        tax.axes[i].degree = full->degree[i];
        tax.axes[i].collective = "";
        price[i](&shape, &tax.axes[i]);
        tax.axes[i].tax = tax.axes[i].exposed_s / tax.compute_s;
    }
    tax.local_tokens_min = full->peak_flops * full->mfu / full->bandwidth_bytes_per_s;
    tax.tp_tax_in = full->peak_flops / (3 * full->node_bandwidth_bytes_per_s * h);
    tax.tp_tax_out = full->peak_flops / (3 * full->bandwidth_bytes_per_s * h);
    add_up(&tax);
    *out = tax;
    return KNEE_OK;
}

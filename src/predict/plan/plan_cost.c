/* SPDX-License-Identifier: MIT */
/*
 * The closed path: what a step costs under a plan.
 *
 *   micro-batch on a stage  t = layers (forward + recompute + backward + gathers) + ends + sends
 *   pipeline                1F1B     sum of all stages' t + (M - 1) max t
 *                           interleaved  M max t + (pp - 1) / vp mean t
 *                           zero-bubble  1F1B's less the weight gradients on its path and those
 *                                        that fill it
 *   gathers (zero3)         per layer and pass; hidden behind compute, which they slow, except
 *                           a share that always shows. Under a pipeline once per step: what
 *                           was gathered for the first micro-batch is kept for the others
 *   gradients               after the last micro-batch; hidden behind a backward pass except a
 *                           share that always shows; new parameters behind a forward pass
 *   optimizer               bytes of its states over the memory rate
 *
 * Every second goes into one part; they sum to the step.
 */
#include "job/plan.h"
#include "job/profile.h"
#include "predict/plan/block.h"
#include "predict/plan/gradient_exchange.h"
#include "predict/plan/op_time.h"

#include "knee_predict.h"

#include <math.h>

#define OPTIMIZER_BYTES 30.0 /* per parameter: read gradient, weights, moments; write back */
#define HOST_BYTES      28.0 /* per parameter that an optimizer on the host reads and writes */

static const char *const names[KNEE_PARTS] = {
    [KNEE_PART_GEMM] = "products",
    [KNEE_PART_ATTENTION] = "attention",
    [KNEE_PART_MEMORY] = "memory-bound",
    [KNEE_PART_HEAD] = "embedding and head",
    [KNEE_PART_RECOMPUTE] = "recompute",
    [KNEE_PART_OPTIMIZER] = "optimizer",
    [KNEE_PART_HOST] = "host",
    [KNEE_PART_TP] = "TP",
    [KNEE_PART_CP] = "CP",
    [KNEE_PART_EP] = "EP",
    [KNEE_PART_PP] = "PP",
    [KNEE_PART_DP] = "DP",
    [KNEE_PART_SHARD] = "sharding",
    [KNEE_PART_BUBBLE] = "bubble",
    [KNEE_PART_JITTER] = "stragglers",
    [KNEE_PART_LOADER] = "loader",
    [KNEE_PART_OFFLOAD] = "offload",
};

const char *knee_part_name(enum knee_part part)
{
    return part < KNEE_PARTS ? names[part] : "?";
}

struct price {
    const struct knee_block *block;
    const struct knee_shape *shape;
    const struct knee_machine *machine;
    const struct knee_rates *rates;
    const struct knee_plan *plan;
    double micro_batches, share; /* share of layers with experts */
    double common, experts;      /* trained parameters on the stage, this rank's */
    struct knee_prices *prices;
    struct knee_plan_cost *cost;
};

/* Mean over the kinds of layers. */
static double mixed(const struct price *p, double dense, double moe)
{
    return dense + p->share * (moe - dense);
}

#define MIXED(p, pass, field)                                                                      \
    mixed(p, (p)->block->layer[0][pass].field, (p)->block->layer[1][pass].field)

/* ---- One layer ---- */

struct layer_time {
    double part[KNEE_PARTS];
    double total, wire[KNEE_WIRES];
    double first_gather; /* what shows of the one gather under a pipeline */
};

/* Gathering a layer's parameters beside `compute` seconds of work: what shows of it. */
static double gather_shown(const struct price *p, double compute, double wire)
{
    if (p->plan->prefetch < 1)
        return wire;
    double beside = compute > 0 ? fmin(1, wire / compute) : 0;
    double slowed = compute * (1 + p->rates->slowdown * beside);
    return knee_longer(slowed, wire) - compute + p->rates->shard_exposed * wire;
}

static void add_gathers(const struct price *p, double forward, double backward,
                        struct layer_time *t)
{
    if (p->plan->shard != KNEE_ZERO3 || p->plan->shard_size <= 1)
        return;
    double gather =
        knee_shard_wire_s(p->block, p->shape, p->machine, p->plan, KNEE_OP_ALL_GATHER, p->prices);
    double scatter = knee_shard_wire_s(p->block, p->shape, p->machine, p->plan,
                                       KNEE_OP_REDUCE_SCATTER, p->prices);
    if (knee_plan_gathers_once(p->plan)) {
        t->first_gather = gather_shown(p, forward, gather);
        double once = t->first_gather + gather_shown(p, backward, scatter);
        t->part[KNEE_PART_SHARD] = once / p->micro_batches;
        t->wire[KNEE_PART_SHARD - KNEE_PART_TP] = (gather + scatter) / p->micro_batches;
        return;
    }
    t->part[KNEE_PART_SHARD] =
        gather_shown(p, forward, gather) + gather_shown(p, backward, gather + scatter);
    t->wire[KNEE_PART_SHARD - KNEE_PART_TP] = 2 * gather + scatter;
}

/* What a pass waits for hosts beyond its own, mean over the kinds of layers. */
static double waits(const struct price *p, int pass)
{
    double wait[2] = {0, 0};
    for (int kind = 0; kind < 2; kind++)
        if (p->block->layer[kind][pass].total > 0)
            wait[kind] =
                knee_pass_wait_s(p->machine, p->plan, pass, p->block->layer[kind][pass].total);
    return mixed(p, wait[0], wait[1]);
}

/* Forward, recompute and backward of an average layer for one micro-batch. */
static struct layer_time layer_time(const struct price *p)
{
    const struct knee_block *block = p->block;
    struct layer_time t = {.total = 0};
    double wait[2] = {waits(p, 0), waits(p, 1)};
    for (int pass = 0; pass < 2; pass++) {
        t.part[KNEE_PART_GEMM] += MIXED(p, pass, gemm);
        t.part[KNEE_PART_ATTENTION] += MIXED(p, pass, attention);
        t.part[KNEE_PART_MEMORY] += MIXED(p, pass, memory);
        t.part[KNEE_PART_HOST] += MIXED(p, pass, host);
        t.part[KNEE_PART_TP] += MIXED(p, pass, tp);
        t.part[KNEE_PART_CP] += MIXED(p, pass, cp);
        t.part[KNEE_PART_EP] += MIXED(p, pass, ep);
        for (int w = 0; w < KNEE_WIRES; w++)
            t.wire[w] += MIXED(p, pass, wire[w]);
        t.part[KNEE_PART_HOST] += wait[pass];
    }
    int mode = p->plan->recompute;
    double again = p->plan->recompute_share *
                   mixed(p, block->recompute_s[0][mode], block->recompute_s[1][mode]);
    t.part[KNEE_PART_RECOMPUTE] = again;
    add_gathers(p, MIXED(p, 0, total) + wait[0], MIXED(p, 1, total) + again + wait[1], &t);
    for (int part = 0; part < KNEE_PARTS; part++)
        t.total += t.part[part];
    return t;
}

/* ---- The pipeline ---- */

/* Sends and receives of a micro-batch between stages, both ways, for each piece of layers. */
static double sends_s(const struct price *p)
{
    const struct knee_plan *plan = p->plan;
    if (plan->pp <= 1)
        return 0;
    double tokens = plan->micro_batch * p->shape->seq / plan->cp;
    double bytes = 2 * tokens * p->shape->hidden / plan->tp;
    const struct knee_price *hop = knee_prices_get(p->prices, &p->machine->cluster,
                                                   KNEE_OP_SEND_RECV, knee_plan_pipeline(plan));
    return 2 * plan->vp * knee_price_s(hop, bytes);
}

struct pipeline {
    double layers, ends; /* of the busiest stage: layers; seconds of embedding and head */
    double busy, bubble; /* per step: busiest stage; waiting for others */
    double sends, wire;  /* per micro-batch: exposed, all */
    double ends_tp;
};

/* What a zero-bubble schedule leaves of 1F1B's bubble. Products for weight gradients, half of the
 * backward ones, are off the path from stage to stage, and those of all micro-batches but the last
 * fill gaps, one for each stage before: (pp - 1)(forward + backward - weights) - min(M - 1, pp - 1)
 * weights is left. */
static double zero_bubble_share(const struct price *p, double layer_s)
{
    double weights = fmin(0.5, 0.5 * MIXED(p, 1, gemm) / layer_s);
    if (p->shape->lora_rank > 0)
        weights = 0;
    double others = p->plan->pp - 1;
    return 1 - weights * (1 + fmin(p->micro_batches - 1, others) / others);
}

/* Layers of the stages when the last one gets fewer, so that with its head it is about as long as
 * the others. */
static struct knee_stages balance(double layers, double pp, double head_in_layers)
{
    double even = (layers + head_in_layers) / pp;
    struct knee_stages best = {0};
    double shortest = INFINITY;
    for (double less = 0; less <= 1; less++) {
        double last = fmax(1, floor(even - head_in_layers) + less);
        double most = ceil((layers - last) / (pp - 1) - 1e-9);
        double longest = fmax(most, last + head_in_layers);
        if (longest < shortest) {
            shortest = longest;
            best = (struct knee_stages){most, last, most};
        }
    }
    return best;
}

struct knee_stages knee_block_stages(const struct knee_block *block, const struct knee_shape *shape,
                                     const struct knee_machine *machine,
                                     const struct knee_plan *plan, double layer_s)
{
    double head = block->head_s[0] + block->head_s[1];
    double extra = shape->extra_layers * (layer_s + head);
    if (machine->rates.balanced_stages > 0 && plan->vp <= 1 && plan->pp > 1)
        return balance(shape->layers, plan->pp, (head + extra) / layer_s);
    return knee_plan_stages(shape->layers, plan->pp, plan->vp);
}

/* Where parameters are gathered once, the first micro-batch waits for gathers on every stage on its
 * way. */
static double first_gathers_s(const struct price *p, double layers, double gather_s)
{
    if (!knee_plan_gathers_once(p->plan))
        return 0;
    return (p->shape->layers - layers) / p->plan->vp * gather_s;
}

static struct pipeline pipeline_of(const struct price *p, double layer_s, double gather_s)
{
    const struct knee_plan *plan = p->plan;
    const struct knee_block *block = p->block;
    struct knee_stages stages = knee_block_stages(block, p->shape, p->machine, plan, layer_s);
    double head = block->head_s[0] + block->head_s[1];
    double extra = p->shape->extra_layers * (layer_s + head);
    double embedding = block->embedding_s + block->embedding_tp_s;
    struct pipeline pipe = {.wire = sends_s(p)};
    pipe.sends = pipe.wire * (plan->overlap_pp > 0 ? p->rates->pp_exposed : 1);
    double each = pipe.sends + knee_micro_batch_fixed_s(p->machine, plan);
    double m = p->micro_batches, pp = plan->pp;
    if (pp <= 1) {
        pipe.layers = stages.most;
        pipe.ends = head + embedding + extra;
        pipe.busy = m * (pipe.layers * layer_s + pipe.ends + each);
        return pipe;
    }
    double first = stages.first * layer_s + embedding, last = stages.last * layer_s + head + extra;
    double middle = pp > 2 ? stages.most * layer_s : 0;
    double longest = fmax(middle, fmax(first, last));
    double total = p->shape->layers * layer_s + embedding + head + extra + pp * each;
    pipe.layers = longest == middle ? stages.most : longest == first ? stages.first : stages.last;
    pipe.ends = longest - pipe.layers * layer_s;
    pipe.busy = m * (longest + each);
    pipe.bubble = total - longest - each;
    if (plan->vp > 1)
        pipe.bubble = (pp - 1) / plan->vp * total / pp;
    else if (plan->schedule == KNEE_ZERO_BUBBLE)
        pipe.bubble *= zero_bubble_share(p, layer_s);
    pipe.bubble += first_gathers_s(p, pipe.layers, gather_s);
    return pipe;
}

/* ---- After the last micro-batch ---- */

/* Parameters whose optimizer states this rank has: experts have fewer copies to share them. */
static double own_params(const struct price *p)
{
    const struct knee_plan *plan = p->plan;
    double group = plan->shard == KNEE_REPLICATE ? 1 : plan->shard_size;
    double expert_group = fmax(1, group * plan->tp / (plan->ep * plan->etp));
    return p->common / group + p->experts / expert_group;
}

static double optimizer_s(const struct price *p)
{
    return p->rates->optimizer * OPTIMIZER_BYTES * own_params(p) /
           (p->rates->memory * p->machine->memory_bytes_per_s);
}

/* Gradients down, the host's own reading and writing, parameters up. A GPU's share of the host's
 * memory rate is taken to be about that of its link. */
static double offload_s(const struct price *p)
{
    if (p->plan->offload != KNEE_OFFLOAD_OPTIMIZER)
        return 0;
    return (p->plan->gradient_bytes + HOST_BYTES + 2) * own_params(p) / p->rates->host_bytes_per_s;
}

/* ---- Putting it together ---- */

static void add_layers(const struct price *p, const struct layer_time *layer,
                       const struct pipeline *pipe)
{
    double times = p->micro_batches * pipe->layers;
    for (int part = 0; part < KNEE_PARTS; part++)
        p->cost->part_s[part] += times * layer->part[part];
    double *part = p->cost->part_s, m = p->micro_batches;
    part[KNEE_PART_HEAD] += m * pipe->ends;
    part[KNEE_PART_PP] += m * pipe->sends;
    part[KNEE_PART_HOST] += m * knee_micro_batch_fixed_s(p->machine, p->plan);
    part[KNEE_PART_BUBBLE] += pipe->bubble;
    for (int w = 0; w < KNEE_WIRES; w++)
        p->cost->wire_s[w] = times * layer->wire[w];
    p->cost->wire_s[KNEE_PART_PP - KNEE_PART_TP] += m * pipe->wire;
}

static void add_ends(const struct price *p, const struct pipeline *pipe)
{
    double *part = p->cost->part_s;
    struct knee_gradient_exchange wire =
        knee_exchange_of(p->block, p->shape, p->machine, p->plan, p->prices);
    part[KNEE_PART_DP] +=
        knee_exchange_shown_s(p->rates, p->plan, &wire, pipe->busy / p->micro_batches);
    part[KNEE_PART_OPTIMIZER] += p->plan->offload == KNEE_OFFLOAD_OPTIMIZER ? 0 : optimizer_s(p);
    part[KNEE_PART_OFFLOAD] += offload_s(p);
    part[KNEE_PART_HOST] += p->rates->step_s;
    p->cost->wire_s[KNEE_PART_DP - KNEE_PART_TP] +=
        knee_plan_reductions(p->plan) * wire.out_s + wire.back_s;
    double jitter = p->rates->jitter + p->plan->jitter;
    part[KNEE_PART_JITTER] +=
        jitter * knee_expected_maximum(p->plan->gpus) * (pipe->busy + pipe->bubble);
    if (!isnan(p->plan->loader_rate_per_s)) {
        double load = p->plan->global_batch / p->plan->gpus / p->plan->loader_rate_per_s;
        part[KNEE_PART_LOADER] += fmax(0, load - pipe->busy - pipe->bubble);
    }
}

static void finish(const struct price *p)
{
    struct knee_plan_cost *cost = p->cost;
    const struct knee_flops *flops = &p->block->flops;
    for (int part = 0; part < KNEE_PARTS; part++)
        cost->step_s += cost->part_s[part];
    for (int w = 0; w < KNEE_WIRES; w++)
        cost->comm_s += cost->wire_s[w];
    enum knee_basis basis = knee_plan_basis(p->plan, p->shape, p->machine->basis);
    struct knee_sure sure = knee_band_step(knee_band_class_of(p->shape, basis), cost->step_s);
    cost->low_s = sure.low;
    cost->high_s = sure.high;
    double tokens = p->plan->global_batch * p->shape->seq;
    double peak = p->machine->peak_flops[KNEE_16BIT] * p->plan->gpus * cost->step_s;
    cost->tokens_per_s = tokens / cost->step_s;
    cost->mfu_full = tokens * (flops->matmul + flops->attention_full) / peak;
    cost->mfu_causal = tokens * (flops->matmul + flops->attention_causal) / peak;
    double again = p->plan->recompute == KNEE_FULL ? 1 + p->plan->recompute_share / 3 : 1;
    cost->hfu = again * cost->mfu_causal;
    cost->fits = cost->memory.total <= cost->memory.capacity;
}

static struct price price_of(const struct knee_block *block, const struct knee_shape *shape,
                             const struct knee_machine *machine, const struct knee_plan *plan,
                             struct knee_prices *prices)
{
    return (struct price){
        .block = block,
        .shape = shape,
        .machine = machine,
        .rates = &machine->rates,
        .plan = plan,
        .prices = prices,
        .micro_batches = knee_plan_micro_batches(plan),
        .share = shape->experts > 1 ? 1 - shape->dense_layers / shape->layers : 0,
    };
}

double knee_block_layer_s(const struct knee_block *block, const struct knee_shape *shape,
                          const struct knee_machine *machine, const struct knee_plan *plan)
{
    struct knee_prices prices = {0};
    struct price p = price_of(block, shape, machine, plan, &prices);
    return layer_time(&p).total;
}

void knee_block_price(const struct knee_block *block, const struct knee_shape *shape,
                      const struct knee_machine *machine, const struct knee_plan *plan,
                      struct knee_prices *prices, struct knee_plan_cost *out)
{
    struct knee_plan_cost cost = {0};
    struct price p = price_of(block, shape, machine, plan, prices);
    p.cost = &cost;
    knee_stage_trained(&block->footprint, shape, plan, &p.common, &p.experts);
    struct layer_time layer = layer_time(&p);
    struct pipeline pipe = pipeline_of(&p, layer.total, layer.first_gather);
    add_layers(&p, &layer, &pipe);
    add_ends(&p, &pipe);
    knee_memory_of(&block->footprint, shape, machine, plan, &cost.memory);
    finish(&p);
    *out = cost;
}

double knee_block_bound_s(const struct knee_block *block, const struct knee_shape *shape,
                          const struct knee_machine *machine, const struct knee_plan *plan)
{
    double share = shape->experts > 1 ? 1 - shape->dense_layers / shape->layers : 0;
    double layer[2];
    for (int kind = 0; kind < 2; kind++)
        layer[kind] = block->layer[kind][0].total + block->layer[kind][1].total;
    double once = shape->layers * (layer[0] + share * (layer[1] - layer[0])) + block->head_s[0] +
                  block->head_s[1] + block->embedding_s + block->embedding_tp_s;
    double times = plan->global_batch * plan->tp * plan->cp / (plan->gpus * plan->micro_batch);
    return times * once + machine->rates.step_s;
}

void knee_plan_price(const struct knee_shape *shape, const struct knee_machine *machine,
                     const struct knee_plan *plan, struct knee_plan_cost *out)
{
    struct knee_block block;
    struct knee_prices prices = {0};
    knee_block_init(shape, machine, plan, &block);
    knee_block_price(&block, shape, machine, plan, &prices, out);
}

double knee_plan_phase_s(const struct knee_shape *shape, const struct knee_machine *machine,
                         const struct knee_plan *plan, enum knee_phase phase)
{
    struct knee_block block;
    struct knee_plan_cost cost;
    struct knee_prices prices = {0};
    knee_block_init(shape, machine, plan, &block);
    knee_block_price(&block, shape, machine, plan, &prices, &cost);
    if (phase == KNEE_PHASE_STEP)
        return cost.step_s;
    if (phase == KNEE_PHASE_OPTIMIZER)
        return cost.part_s[KNEE_PART_OPTIMIZER];
    int pass = phase == KNEE_PHASE_BACKWARD;
    double share = shape->experts > 1 ? 1 - shape->dense_layers / shape->layers : 0;
    double layer = (1 - share) * block.layer[0][pass].total + share * block.layer[1][pass].total;
    double ends = block.head_s[pass] + (pass ? 0 : block.embedding_s);
    return knee_plan_micro_batches(plan) * (shape->layers * layer + ends);
}

size_t knee_plan_ops(const struct knee_shape *shape, const struct knee_machine *machine,
                     const struct knee_plan *plan, enum knee_operations_of what,
                     struct knee_operation *out, size_t capacity)
{
    struct knee_operation ops[KNEE_OPERATIONS_MAX];
    struct knee_split split = knee_split_of(shape, &machine->rates, plan);
    size_t count = knee_ops_timed(&split, machine, what, ops);
    for (size_t i = 0; i < count && i < capacity; i++)
        out[i] = ops[i];
    return count;
}

/* Which label the seconds of a part get. */
static const enum knee_label labels[KNEE_PARTS] = {
    [KNEE_PART_GEMM] = KNEE_COMPUTE,      [KNEE_PART_ATTENTION] = KNEE_COMPUTE,
    [KNEE_PART_MEMORY] = KNEE_COMPUTE,    [KNEE_PART_HEAD] = KNEE_COMPUTE,
    [KNEE_PART_RECOMPUTE] = KNEE_COMPUTE, [KNEE_PART_OPTIMIZER] = KNEE_COMPUTE,
    [KNEE_PART_HOST] = KNEE_HOST,         [KNEE_PART_TP] = KNEE_TRANSFER,
    [KNEE_PART_CP] = KNEE_TRANSFER,       [KNEE_PART_EP] = KNEE_TRANSFER,
    [KNEE_PART_PP] = KNEE_TRANSFER,       [KNEE_PART_DP] = KNEE_TRANSFER,
    [KNEE_PART_SHARD] = KNEE_TRANSFER,    [KNEE_PART_BUBBLE] = KNEE_WAIT,
    [KNEE_PART_JITTER] = KNEE_WAIT,       [KNEE_PART_LOADER] = KNEE_STARVED,
    [KNEE_PART_OFFLOAD] = KNEE_COPY,
};

void knee_plan_step(const struct knee_plan_cost *cost, struct knee_step *out)
{
    struct knee_step step = {.wall_s = cost->step_s, .comm_s = cost->comm_s};
    for (int part = 0; part < KNEE_PARTS; part++)
        step.label_s[labels[part]] += cost->part_s[part];
    *out = step;
}

double knee_plan_simulated_s(const struct knee_plan_cost *cost)
{
    return cost->step_s - cost->part_s[KNEE_PART_JITTER] - cost->part_s[KNEE_PART_LOADER];
}

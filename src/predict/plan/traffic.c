/* SPDX-License-Identifier: MIT */
/*
 * What a plan sends, call by call: the same collectives that block.c and gradient_exchange.c price,
 * listed so that they can be shown, and compared with what the parts of the step add up to.
 */
#include "predict/plan/block.h"
#include "predict/plan/gradient_exchange.h"

#include "job/ops.h"

#include <math.h>

struct list {
    const struct knee_shape *shape;
    const struct knee_machine *machine;
    const struct knee_plan *plan;
    const struct knee_block *block;
    double passes;     /* micro-batches times layers of the stage */
    double moe, dense; /* shares of layers with experts, and without */
    struct knee_traffic *out;
    size_t room, count;
};

static void add(struct list *l, enum knee_part part, enum knee_op op, struct knee_group group,
                double bytes, double calls)
{
    const struct knee_cluster *cluster = &l->machine->cluster;
    if (!(group.size > 1) || !(calls > 0))
        return;
    double each_s = knee_collective_s(cluster, op, group, bytes, NULL);
    if (l->count < l->room)
        l->out[l->count] = (struct knee_traffic){part, op, group, bytes, calls, each_s};
    l->count++;
}

/* Two sublayers without experts, one with; each sums activations in both passes. */
static void add_tensor(struct list *l, double tokens)
{
    const struct knee_plan *p = l->plan;
    struct knee_group group = {p->tp, 1, false};
    double bytes = 2 * tokens * l->shape->hidden;
    double sums = l->passes * 2 * ((1 + knee_shape_fed(l->shape)) * l->dense + l->moe);
    if (p->seq_par > 0) {
        add(l, KNEE_PART_TP, KNEE_OP_REDUCE_SCATTER, group, bytes, sums);
        add(l, KNEE_PART_TP, KNEE_OP_ALL_GATHER, group, bytes, 1.25 * sums);
    } else {
        add(l, KNEE_PART_TP, KNEE_OP_ALL_REDUCE, group, bytes, sums);
    }
}

static void add_context(struct list *l, double tokens)
{
    const struct knee_plan *p = l->plan;
    const struct knee_shape *s = l->shape;
    double wide = s->kv_heads * (s->head_dim + s->value_dim) / p->tp;
    add(l, KNEE_PART_CP, KNEE_OP_ALL_GATHER, (struct knee_group){p->cp, p->tp, false},
        2 * tokens * p->cp * wide, 3 * l->passes * (1 - knee_shape_linear(s)));
}

static void add_experts(struct list *l, const struct knee_split *split)
{
    const struct knee_plan *p = l->plan;
    double h = l->shape->hidden, calls = 4 * l->passes * l->moe;
    if (l->moe <= 0)
        return;
    struct knee_dispatch way = knee_dispatch_of(split, l->machine, p);
    bool alike = p->dispatch_bytes == 2;
    if (!alike)
        add(l, KNEE_PART_EP, KNEE_OP_ALL_TO_ALL, way.ranks, way.bytes * p->dispatch_bytes / 2,
            calls / 2);
    add(l, KNEE_PART_EP, KNEE_OP_ALL_TO_ALL, way.ranks, way.bytes, alike ? calls : calls / 2);
    add(l, KNEE_PART_EP, KNEE_OP_ALL_GATHER, (struct knee_group){p->etp, 1, false},
        2 * knee_split_routed(split) * p->imbalance * h, calls);
}

static void add_shards(struct list *l)
{
    const struct knee_plan *p = l->plan;
    const struct knee_footprint *f = &l->block->footprint;
    double common = f->common[0] + l->moe * (f->common[1] - f->common[0]);
    double size = p->shard_size * p->tp / (p->ep * p->etp), expert = l->moe * f->experts[1];
    double trained, trained_experts;
    knee_layer_trained(f, l->shape, &trained, &trained_experts);
    struct knee_group group = {p->shard_size, p->tp, false};
    struct knee_group experts = {size, p->ep * p->etp, false};
    if (p->shard != KNEE_ZERO3)
        return;
    bool once = knee_plan_gathers_once(p);
    double passes = once ? l->passes / knee_plan_micro_batches(p) : l->passes;
    double gathers = once ? passes : 2 * passes;
    add(l, KNEE_PART_SHARD, KNEE_OP_ALL_GATHER, group, 2 * common, gathers);
    add(l, KNEE_PART_SHARD, KNEE_OP_REDUCE_SCATTER, group, p->gradient_bytes * trained, passes);
    if (expert > 0) {
        add(l, KNEE_PART_SHARD, KNEE_OP_ALL_GATHER, experts, 2 * expert, gathers);
        add(l, KNEE_PART_SHARD, KNEE_OP_REDUCE_SCATTER, experts,
            p->gradient_bytes * trained_experts, passes);
    }
}

static void add_reduction(struct list *l, double params, struct knee_group group, double times)
{
    const struct knee_plan *p = l->plan;
    double sent = p->gradient_bytes * params / p->compress;
    double calls = knee_bucket_calls(l->machine, p, params), once = calls / p->local_steps;
    if (p->shard == KNEE_REPLICATE) {
        add(l, KNEE_PART_DP, KNEE_OP_ALL_REDUCE, group, sent / calls, once);
        return;
    }
    add(l, KNEE_PART_DP, KNEE_OP_REDUCE_SCATTER, group, sent / calls, times * once);
    add(l, KNEE_PART_DP, KNEE_OP_ALL_GATHER, group, 2 * params / calls, once);
}

static void add_gradients(struct list *l)
{
    const struct knee_plan *p = l->plan;
    double common, experts, ranks = p->dp * p->cp;
    double times = knee_plan_reductions(p);
    struct knee_group same = {ranks, p->tp, false};
    struct knee_group copies = {ranks * p->tp / (p->ep * p->etp), p->ep * p->etp, false};
    knee_stage_trained(&l->block->footprint, l->shape, p, &common, &experts);
    if (p->shard == KNEE_ZERO3) {
        same = (struct knee_group){ranks / p->shard_size, p->tp * p->shard_size, false};
        common /= p->shard_size;
    }
    add_reduction(l, common, same, times);
    if (experts > 0 && p->shard != KNEE_ZERO3)
        add_reduction(l, experts, copies, times);
}

size_t knee_plan_traffic(const struct knee_shape *shape, const struct knee_machine *machine,
                         const struct knee_plan *plan, struct knee_traffic *out, size_t room)
{
    struct knee_block block;
    struct knee_split split = knee_split_of(shape, &machine->rates, plan);
    knee_block_init(shape, machine, plan, &block);
    double layer_s = knee_block_layer_s(&block, shape, machine, plan);
    struct knee_stages stages = knee_block_stages(&block, shape, machine, plan, layer_s);
    double m = knee_plan_micro_batches(plan), tokens = split.tokens;
    double moe = shape->experts > 1 ? 1 - shape->dense_layers / shape->layers : 0;
    struct list l = {.shape = shape,
                     .machine = machine,
                     .plan = plan,
                     .block = &block,
                     .passes = m * stages.most,
                     .moe = moe,
                     .dense = 1 - moe,
                     .out = out,
                     .room = room};
    double sent = 2 * plan->micro_batch * shape->seq / plan->cp * shape->hidden / plan->tp;
    add_tensor(&l, tokens);
    add_context(&l, tokens);
    add_experts(&l, &split);
    add(&l, KNEE_PART_PP, KNEE_OP_SEND_RECV, knee_plan_pipeline(plan), sent, 2 * plan->vp * m);
    add_gradients(&l);
    add_shards(&l);
    return l.count;
}

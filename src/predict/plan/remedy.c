/* SPDX-License-Identifier: MIT */
/*
 * What makes a plan that does not fit fit. One row per change; those that lead to a plan that can
 * be and fits are priced and sorted, so that the cheapest comes first.
 */
#include "job/plan.h"
#include "knee_plan.h"

#include <math.h>

typedef void change(struct knee_plan *plan, const struct knee_shape *shape);

static void selective(struct knee_plan *plan, const struct knee_shape *shape)
{
    (void)shape;
    plan->recompute = KNEE_SELECTIVE;
}

static void full(struct knee_plan *plan, const struct knee_shape *shape)
{
    (void)shape;
    plan->recompute = KNEE_FULL;
}

static void shard_as(struct knee_plan *plan, int shard)
{
    plan->shard = shard;
    plan->shard_size = plan->dp * plan->cp;
}

static void shard_optimizer(struct knee_plan *plan, const struct knee_shape *shape)
{
    (void)shape;
    shard_as(plan, KNEE_ZERO1);
}

static void shard_all(struct knee_plan *plan, const struct knee_shape *shape)
{
    (void)shape;
    shard_as(plan, KNEE_ZERO3);
}

static void half_micro_batch(struct knee_plan *plan, const struct knee_shape *shape)
{
    (void)shape;
    plan->micro_batch /= 2;
}

/* More of one axis, fewer replicas; groups that no longer fit are shrunk. */
static void rebalance(struct knee_plan *plan, double factor)
{
    plan->dp /= factor;
    if (plan->shard != KNEE_REPLICATE)
        plan->shard_size = fmin(plan->shard_size, plan->dp * plan->cp);
}

static void more_tp(struct knee_plan *plan, const struct knee_shape *shape)
{
    (void)shape;
    plan->tp *= 2;
    plan->seq_par = 1;
    rebalance(plan, 2);
}

static void more_pp(struct knee_plan *plan, const struct knee_shape *shape)
{
    plan->pp *= 2;
    while (plan->vp > 1 && fmod(shape->layers, plan->pp * plan->vp) != 0)
        plan->vp--;
    plan->schedule = plan->vp > 1 ? KNEE_INTERLEAVED : KNEE_1F1B;
    rebalance(plan, 2);
}

static void more_cp(struct knee_plan *plan, const struct knee_shape *shape)
{
    (void)shape;
    plan->cp *= 2;
    plan->dp /= 2;
}

static void to_host(struct knee_plan *plan, const struct knee_shape *shape)
{
    (void)shape;
    plan->offload = KNEE_OFFLOAD_OPTIMIZER;
}

static void more_gpus(struct knee_plan *plan, const struct knee_shape *shape)
{
    (void)shape;
    plan->gpus *= 2;
    plan->dp *= 2;
    if (plan->shard != KNEE_REPLICATE)
        plan->shard_size *= 2;
    if (plan->micro_batch > 1)
        plan->micro_batch /= 2;
}

static const struct {
    const char *what;
    change *apply;
} changes[] = {
    {"selective recomputation", selective},
    {"full recomputation", full},
    {"shard the optimizer (zero1)", shard_optimizer},
    {"shard everything (zero3)", shard_all},
    {"half the micro-batch", half_micro_batch},
    {"twice the tensor parallelism", more_tp},
    {"twice the pipeline stages", more_pp},
    {"twice the context parallelism", more_cp},
    {"optimizer on the host", to_host},
    {"twice the GPUs", more_gpus},
};

/* The cheapest stay when there is no room for all. */
static void insert(struct knee_remedy *out, size_t count, size_t capacity,
                   const struct knee_remedy *remedy)
{
    size_t at = count < capacity ? count : capacity;
    for (; at > 0 && remedy->cost.step_s < out[at - 1].cost.step_s; at--)
        if (at < capacity)
            out[at] = out[at - 1];
    if (at < capacity)
        out[at] = *remedy;
}

size_t knee_plan_remedies(const struct knee_shape *shape, const struct knee_machine *machine,
                          const struct knee_plan *plan, struct knee_remedy *out, size_t capacity)
{
    size_t count = 0;
    _Static_assert(sizeof changes / sizeof *changes <= KNEE_REMEDIES_MAX, "room for all");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct knee_remedy remedy = {.what = changes[i].what, .plan = *plan};
        changes[i].apply(&remedy.plan, shape);
        if (remedy.plan.micro_batch != floor(remedy.plan.micro_batch) ||
            knee_plan_objection(&remedy.plan, shape, machine))
            continue;
        knee_plan_price(shape, machine, &remedy.plan, &remedy.cost);
        if (remedy.cost.fits)
            insert(out, count++, capacity, &remedy);
    }
    return count;
}

/* SPDX-License-Identifier: MIT */
#include "predict/plan/gradient_exchange.h"

#include "job/shape.h"

#include <math.h>

static double moe_share(const struct knee_shape *shape)
{
    return shape->experts > 1 ? 1 - shape->dense_layers / shape->layers : 0;
}

double knee_shard_wire_s(const struct knee_block *block, const struct knee_shape *shape,
                         const struct knee_machine *machine, const struct knee_plan *plan,
                         enum knee_op op, struct knee_prices *prices)
{
    double bytes_per_param =
        op == KNEE_OP_REDUCE_SCATTER ? plan->gradient_bytes : knee_shape_weight_bytes(shape);
    const struct knee_footprint *f = &block->footprint;
    double share = moe_share(shape);
    double common = f->common[0] + share * (f->common[1] - f->common[0]);
    double expert = share * f->experts[1];
    if (op == KNEE_OP_REDUCE_SCATTER) /* gradients: of what is trained */
        knee_layer_trained(f, shape, &common, &expert);
    struct knee_group group = {plan->shard_size, plan->tp, false};
    double wire = knee_price_s(knee_prices_get(prices, &machine->cluster, op, group),
                               bytes_per_param * common);
    if (expert > 0) {
        double size = plan->shard_size * plan->tp / (plan->ep * plan->etp);
        struct knee_group experts = {size, plan->ep * plan->etp, false};
        wire += knee_price_s(knee_prices_get(prices, &machine->cluster, op, experts),
                             bytes_per_param * expert);
    }
    return wire > 0 ? wire / machine->rates.shard_rate + machine->rates.shard_latency_s : 0;
}

#define MEGATRON_LEAST 40e6 /* parameters of a bucket; distributed_data_parallel.py */

double knee_bucket_calls(const struct knee_machine *machine, const struct knee_plan *plan,
                         double params)
{
    const struct knee_rates *r = &machine->rates;
    if (r->bucket_per_rank <= 0)
        return fmax(1, plan->gradient_bytes * params / plan->compress / r->bucket_bytes);
    if (plan->pp > 1)
        return plan->vp;
    return fmax(1, params / fmax(MEGATRON_LEAST, r->bucket_per_rank * plan->dp * plan->cp));
}

/* `bytes` in buckets. */
static double in_buckets_s(const struct knee_price *price, double bytes, double calls)
{
    return calls * knee_price_s(price, bytes / calls);
}

static void add_reduction(const struct knee_machine *machine, const struct knee_plan *plan,
                          double params, struct knee_group group, struct knee_prices *prices,
                          struct knee_gradient_exchange *sum)
{
    const struct knee_cluster *cluster = &machine->cluster;
    double sent = plan->gradient_bytes * params / plan->compress;
    double calls = knee_bucket_calls(machine, plan, params), out_s, back_s;
    if (group.size <= 1)
        return;
    if (plan->shard == KNEE_REPLICATE) { /* one all-reduce is out and back */
        out_s = back_s =
            in_buckets_s(knee_prices_get(prices, cluster, KNEE_OP_ALL_REDUCE, group), sent, calls) /
            2;
    } else {
        out_s = in_buckets_s(knee_prices_get(prices, cluster, KNEE_OP_REDUCE_SCATTER, group), sent,
                             calls);
        back_s = in_buckets_s(knee_prices_get(prices, cluster, KNEE_OP_ALL_GATHER, group),
                              2 * params, calls);
    }
    sum->out_s += out_s / plan->local_steps;
    sum->back_s += back_s / plan->local_steps;
}

struct knee_gradient_exchange knee_exchange_of(const struct knee_block *block,
                                               const struct knee_shape *shape,
                                               const struct knee_machine *machine,
                                               const struct knee_plan *plan,
                                               struct knee_prices *prices)
{
    double ranks = plan->dp * plan->cp, common, experts;
    struct knee_group same = {ranks, plan->tp, false};
    struct knee_gradient_exchange sum = {0, 0};
    knee_stage_trained(&block->footprint, shape, plan, &common, &experts);
    if (plan->shard == KNEE_ZERO3) { /* groups exchange what each has gathered up */
        same = (struct knee_group){ranks / plan->shard_size, plan->tp * plan->shard_size, false};
        common /= plan->shard_size;
    }
    add_reduction(machine, plan, common, same, prices, &sum);
    struct knee_group copies = {ranks * plan->tp / (plan->ep * plan->etp), plan->ep * plan->etp,
                                false};
    if (experts > 0 && plan->shard != KNEE_ZERO3)
        add_reduction(machine, plan, experts, copies, prices, &sum);
    return sum;
}

struct knee_gradient_exchange knee_copies_exchange(const struct knee_machine *machine,
                                                   const struct knee_plan *plan, double common,
                                                   double experts)
{
    struct knee_prices prices = {0};
    struct knee_gradient_exchange sum = {0, 0};
    struct knee_group all = {plan->dp, 1, false};
    add_reduction(machine, plan, common, all, &prices, &sum);
    if (experts > 0)
        add_reduction(machine, plan, experts, all, &prices, &sum);
    return sum;
}

#define BACKWARD_WINDOW 0.7 /* of a micro-batch's time: gradients hide behind its backward pass */

double knee_exchange_shown_s(const struct knee_rates *rates, const struct knee_plan *plan,
                             const struct knee_gradient_exchange *wire, double pass_s)
{
    double times = knee_plan_reductions(plan), out = times * wire->out_s, all = out + wire->back_s;
    if (plan->overlap_dp <= 0)
        return all;
    double backward = BACKWARD_WINDOW * pass_s, forward = pass_s - backward, left;
    if (plan->shard == KNEE_REPLICATE)
        left = all - backward;
    else
        left = fmax(0, out - times * backward) + fmax(0, wire->back_s - forward);
    return fmax(rates->dp_exposed * all, left);
}

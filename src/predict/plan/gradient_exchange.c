/* SPDX-License-Identifier: MIT */
#include "predict/plan/gradient_exchange.h"

#include "predict/plan/axis_comm.h"

static double moe_share(const struct knee_shape *shape)
{
    return shape->experts > 1 ? 1 - shape->dense_layers / shape->layers : 0;
}

double knee_shard_wire_s(const struct knee_block *block, const struct knee_shape *shape,
                         const struct knee_machine *machine, const struct knee_plan *plan,
                         double bytes_per_param)
{
    const struct knee_footprint *f = &block->footprint;
    double share = moe_share(shape);
    double common = f->common[0] + share * (f->common[1] - f->common[0]);
    struct knee_group group = {plan->tp, plan->shard_size};
    double wire = knee_gather_s(machine, group, bytes_per_param * common);
    if (share > 0) {
        double size = plan->shard_size * plan->tp / (plan->ep * plan->etp);
        struct knee_group experts = {plan->ep * plan->etp, size};
        wire += knee_gather_s(machine, experts, bytes_per_param * share * f->experts[1]);
    }
    return wire > 0 ? wire / machine->rates.shard_rate + machine->rates.shard_latency_s : 0;
}

static void add_reduction(const struct knee_machine *machine, const struct knee_plan *plan,
                          double params, struct knee_group group,
                          struct knee_gradient_exchange *sum)
{
    double sent = plan->gradient_bytes * params / plan->compress;
    double back = plan->shard == KNEE_REPLICATE ? sent : 2 * params;
    double calls = sent / machine->rates.bucket_bytes;
    sum->out_s += knee_gathers_s(machine, group, sent, calls) / plan->local_steps;
    sum->back_s += knee_gathers_s(machine, group, back, calls) / plan->local_steps;
}

struct knee_gradient_exchange knee_exchange_of(const struct knee_block *block,
                                               const struct knee_shape *shape,
                                               const struct knee_machine *machine,
                                               const struct knee_plan *plan)
{
    double ranks = plan->dp * plan->cp, common, experts;
    struct knee_group same = {plan->tp, ranks};
    struct knee_gradient_exchange sum = {0, 0};
    knee_stage_params(&block->footprint, shape, plan, &common, &experts);
    if (plan->shard == KNEE_ZERO3) { /* groups exchange what each has gathered up */
        same = (struct knee_group){plan->tp * plan->shard_size, ranks / plan->shard_size};
        common /= plan->shard_size;
    }
    add_reduction(machine, plan, common, same, &sum);
    struct knee_group copies = {plan->ep * plan->etp, ranks * plan->tp / (plan->ep * plan->etp)};
    if (experts > 0 && plan->shard != KNEE_ZERO3)
        add_reduction(machine, plan, experts, copies, &sum);
    return sum;
}

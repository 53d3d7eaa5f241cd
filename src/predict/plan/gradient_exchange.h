/* SPDX-License-Identifier: MIT */
/* What ranks exchange because they hold copies or shards of the same parameters; the closed path
 * and the simulator price it alike. */
#ifndef KNEE_PREDICT_PLAN_GRADIENT_EXCHANGE_H
#define KNEE_PREDICT_PLAN_GRADIENT_EXCHANGE_H

#include "predict/plan/block.h"

/* Calls that the gradients of `params` parameters are exchanged in. PyTorch's DDP fills buckets of
 * so many bytes; Megatron-Core takes max(40 million, 1 million for each rank) parameters, so that
 * rings stay bound by bandwidth, and with stages one bucket for each piece of layers. */
double knee_bucket_calls(const struct knee_machine *machine, const struct knee_plan *plan,
                         double params);

/* Gathering (or scattering) the shards of an average layer, zero3; seconds on the wire. */
double knee_shard_wire_s(const struct knee_block *block, const struct knee_shape *shape,
                         const struct knee_machine *machine, const struct knee_plan *plan,
                         enum knee_op op, struct knee_prices *prices);

/* Once per step, seconds on the wire: gradients out to the ranks that have the same parameters (for
 * an all-reduce its first half), new parameters (or reduced gradients) back. */
struct knee_gradient_exchange {
    double out_s, back_s;
};
struct knee_gradient_exchange knee_exchange_of(const struct knee_block *block,
                                               const struct knee_shape *shape,
                                               const struct knee_machine *machine,
                                               const struct knee_plan *plan,
                                               struct knee_prices *prices);

/* The same for whole copies on every GPU: `common` parameters and `experts`, those that are
 * trained. */
struct knee_gradient_exchange knee_copies_exchange(const struct knee_machine *machine,
                                                   const struct knee_plan *plan, double common,
                                                   double experts);

/* What shows of the exchange when a micro-batch takes `pass_s`: gradients hide behind backward
 * passes, what comes back of a sharded optimizer behind a forward pass. */
double knee_exchange_shown_s(const struct knee_rates *rates, const struct knee_plan *plan,
                             const struct knee_gradient_exchange *wire, double pass_s);

#endif

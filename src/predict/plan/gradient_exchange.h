/* SPDX-License-Identifier: MIT */
/* What ranks exchange because they hold copies or shards of the same parameters; the closed path
 * and the simulator price it alike. */
#ifndef KNEE_PREDICT_PLAN_GRADIENT_EXCHANGE_H
#define KNEE_PREDICT_PLAN_GRADIENT_EXCHANGE_H

#include "predict/plan/block.h"

/* Gathering (or scattering) the shards of an average layer, zero3; seconds on the wire. */
double knee_shard_wire_s(const struct knee_block *block, const struct knee_shape *shape,
                         const struct knee_machine *machine, const struct knee_plan *plan,
                         enum knee_op op, double bytes_per_param, struct knee_prices *prices);

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

#endif

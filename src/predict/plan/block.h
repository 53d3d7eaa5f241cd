/* SPDX-License-Identifier: MIT */
/*
 * A block: what all plans that cut a layer alike have in common, worked out once. Pricing a plan
 * from its block takes a fraction of a microsecond; that is what makes searching millions cheap.
 */
#ifndef KNEE_PREDICT_PLAN_BLOCK_H
#define KNEE_PREDICT_PLAN_BLOCK_H

#include "job/memory.h"
#include "job/plan.h"
#include "job/shape.h"

/* Seconds of one pass through one layer for one micro-batch. */
struct knee_pass {
    double gemm, attention, memory; /* compute, by part */
    double host;                    /* waiting for launches */
    double tp, cp, ep;              /* exposed communication */
    double wire[KNEE_WIRES];        /* all communication of an axis, hidden or not; TP first */
    double total;                   /* sum of the above but wire */
};

struct knee_block {
    struct knee_pass layer[2][2]; /* without experts, with; forward, backward */
    double head_s[2], embedding_s, embedding_tp_s;
    double recompute_s[2][KNEE_RECOMPUTES];
    struct knee_footprint footprint;
    /* Of the model, per token: for MFU. */
    struct knee_flops flops;
};

/* Depends on these of the plan: micro_batch, tp, cp, ep, etp, seq_par, cp_gather, precision,
 * overlap_tp, imbalance. */
void knee_block_init(const struct knee_shape *shape, const struct knee_machine *machine,
                     const struct knee_plan *plan, struct knee_block *out);

/* One exchange of tokens with the ranks that have their experts: the whole of it, or with
 * de-duplication the slower of its two halves, between nodes and within them. */
struct knee_dispatch {
    struct knee_group ranks;
    double bytes;
};
struct knee_dispatch knee_dispatch_of(const struct knee_split *split,
                                      const struct knee_machine *machine,
                                      const struct knee_plan *plan);

/* What a pass through a layer that takes pass_s (0: forward, 1: backward) waits on top because its
 * tensor-parallel calls wait for the hosts of all their ranks while stages pass activations between
 * nodes: seen to make a pass take so long at least, however little it computes. */
double knee_pass_wait_s(const struct knee_machine *machine, const struct knee_plan *plan, int pass,
                        double pass_s);

/* Fixed seconds per micro-batch. */
double knee_micro_batch_fixed_s(const struct knee_machine *machine, const struct knee_plan *plan);

/* Layers of the first, the last and the fullest stage as this software places them. */
struct knee_stages knee_block_stages(const struct knee_block *block, const struct knee_shape *shape,
                                     const struct knee_machine *machine,
                                     const struct knee_plan *plan, double layer_s);

/* Forward, recompute and backward of an average layer for one micro-batch. */
double knee_block_layer_s(const struct knee_block *block, const struct knee_shape *shape,
                          const struct knee_machine *machine, const struct knee_plan *plan);

/* Prices a completed plan. `prices` are those of this machine, kept from plan to plan. */
void knee_block_price(const struct knee_block *block, const struct knee_shape *shape,
                      const struct knee_machine *machine, const struct knee_plan *plan,
                      struct knee_prices *prices, struct knee_plan_cost *out);

/* A step that no plan of this block can beat: all its compute, spread evenly over the stages. Safe
 * because the busiest stage has at least the mean, and everything else only adds. */
double knee_block_bound_s(const struct knee_block *block, const struct knee_shape *shape,
                          const struct knee_machine *machine, const struct knee_plan *plan);

#endif

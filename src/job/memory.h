/* SPDX-License-Identifier: MIT */
/* Bytes that a plan needs on one GPU. */
#ifndef KNEE_JOB_MEMORY_H
#define KNEE_JOB_MEMORY_H

#include "job/ops.h"

/* What one rank holds of a layer, of embedding and head, and what a micro-batch leaves behind in a
 * layer until its backward pass: the same for all plans with one split. Index 0 is a layer
 * without experts, 1 one with. */
struct knee_footprint {
    double common[2];  /* parameters that all data-parallel ranks have */
    double experts[2]; /* parameters that only ranks with the same experts have */
    double adapter[2]; /* trained beside them, all of which are frozen then */
    double embedding, head;
    double kept_bytes[2][KNEE_RECOMPUTES];
    double logits_bytes, permuted_bytes;
};
void knee_footprint_of(const struct knee_split *split, struct knee_footprint *out);

/* Parameters of the fullest stage on one rank: common ones, experts'. */
void knee_stage_params(const struct knee_footprint *footprint, const struct knee_shape *shape,
                       const struct knee_plan *plan, double *common, double *experts);

/* The same of those that are trained: all of them, or with LoRA the adapters. */
void knee_stage_trained(const struct knee_footprint *footprint, const struct knee_shape *shape,
                        const struct knee_plan *plan, double *common, double *experts);

/* Trained parameters of an average layer: common ones, experts'. */
void knee_layer_trained(const struct knee_footprint *footprint, const struct knee_shape *shape,
                        double *common, double *experts);

void knee_memory_of(const struct knee_footprint *footprint, const struct knee_shape *shape,
                    const struct knee_machine *machine, const struct knee_plan *plan,
                    struct knee_memory *out);

#endif

/* SPDX-License-Identifier: MIT */
/* What the rest of the core asks of a completed shape beside the public calls. */
#ifndef KNEE_JOB_SHAPE_H
#define KNEE_JOB_SHAPE_H

#include "knee_job.h"

/* Positions that a token meets on average over the layers; half of them under a causal mask. */
double knee_shape_pairs(const struct knee_shape *shape, bool causal);

/* FLOPs of the model per token, forward and backward, recomputation not counted. Two conventions
 * are in use: attention over all pairs of positions, or over those a causal mask leaves. */
struct knee_flops {
    double matmul, attention_full, attention_causal;
};
void knee_shape_flops(const struct knee_shape *shape, struct knee_flops *out);

#endif

/* SPDX-License-Identifier: MIT */
/* What the rest of the core asks of a completed shape beside the public calls. */
#ifndef KNEE_JOB_SHAPE_H
#define KNEE_JOB_SHAPE_H

#include "knee_job.h"

/* Positions that a token meets on average over the layers; half of them under a causal mask. */
double knee_shape_pairs(const struct knee_shape *shape, bool causal);

/* Share of the layers with state space or linear attention; of dense layers with a feed-forward
 * part. */
double knee_shape_linear(const struct knee_shape *shape);
double knee_shape_fed(const struct knee_shape *shape);

/* Width of what such a layer projects its input to on one of tp ranks: values, their gate, keys and
 * queries (for Mamba B and C, whose groups are not cut), one number per head. */
double knee_linear_in(const struct knee_shape *shape, double tp);

/* FLOPs per token of such a layer's scan, forward, in chunks (Dao and Gu 2024, the state-space dual
 * form): inside a chunk as attention, between chunks through the states. */
double knee_linear_scan_flops(const struct knee_shape *shape);

/* A transformer of so many parameters and nothing else known: h = 4096 (P / 7e9)^0.31, layers near
 * P / 12 h^2 (published models from 1 to 540 billion), the feed-forward width that makes up P. */
void knee_shape_canonical(double params, struct knee_shape *out);

/* Bytes of a layer's weight in memory: 2, or with QLoRA 4 bits and its part of scales that are
 * quantised themselves (Dettmers et al. 2023). Embedding and head have 2 always. */
double knee_shape_weight_bytes(const struct knee_shape *shape);

/* FLOPs of the model per token, forward and backward, recomputation not counted. Two conventions
 * are in use: attention over all pairs of positions, or over those a causal mask leaves. */
struct knee_flops {
    double matmul, attention_full, attention_causal;
};
void knee_shape_flops(const struct knee_shape *shape, struct knee_flops *out);

#endif

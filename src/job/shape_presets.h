/* SPDX-License-Identifier: MIT */
/* Transformer shapes by name: a table made from data/shape_presets.csv by tools/presets.awk. */
#ifndef KNEE_JOB_SHAPE_PRESETS_H
#define KNEE_JOB_SHAPE_PRESETS_H

#include "knee_job.h"

struct knee_shape_preset {
    const char *name;
    double params_billion; /* as published */
    double layers, hidden, heads, kv_heads, head_dim, ffn, glu, vocab, seq;
    double experts, topk, expert_ffn, shared_ffn, dense_layers;
    double q_rank, kv_rank, rope_dim, value_dim, window, global_every;
    double causal, tied, bias, qk_norm, sinks, positions;
    const char *origin;
};
extern const struct knee_shape_preset knee_shape_presets[];
extern const size_t knee_shape_presets_count;

/* By name, case and punctuation apart ("Llama3 70B"); NULL if there is none. */
const struct knee_shape_preset *knee_shape_preset_named(const char *name);

/* Fills what *shape does not have yet. */
void knee_shape_fill(struct knee_shape *shape, const struct knee_shape_preset *preset);

#endif

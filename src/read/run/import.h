/* SPDX-License-Identifier: MIT */
/*
 * What another tool's configuration says, before it becomes a shape and a plan, or what is to be
 * written into one: one struct for all of them, read and written by the names of
 * data/import_names.csv. Several names may fill one field; NaN or "": the file does not give it.
 */
#ifndef KNEE_READ_RUN_IMPORT_H
#define KNEE_READ_RUN_IMPORT_H

#include "base/json_values.h"
#include "base/keys.h"
#include "knee_read.h"

#define KNEE_IMPORT_WORD 96

struct knee_import {
    /* the model */
    double layers, hidden, ffn, heads, kv_heads, groups, head_dim, seq, vocab, positions;
    double experts, topk, expert_ffn, shared, shared_ffn, first_dense, sparse_step, mlp_only;
    double q_rank, kv_rank, unrotated, rope, value, extra_layers, dense_ffn, latent;
    double attention_every, linear_heads, linear_key_heads, linear_dim, state, expand;
    double linear_listed, other_listed, attention_listed, sliding_layers, full_layers;
    double window, use_window, window_pattern, attention_bias, swiglu, grouped, mla;
    double tied, untied, bias, no_bias; /* some tools say the one, some the other */
    /* the plan */
    double micro, batch, local, accumulate, world, nodes, per_node, tp, pp, vp, vp_layers, cp, ep;
    double etp, seq_par, distributed, fsdp, overlap, overlap_dp, overlap_tp, async_tp, copies;
    double replicate, shard, stage, hpz, mics, stage_micro, stage_layers, first_less, last_less;
    double bf16, fp16, bf16_reduce, fp32_reduce, offload, recomputed, graphs, ends, last_layers;
    double gather, unfused, precise, compiled;
    bool offload_params, zero_on;
    char recompute[KNEE_IMPORT_WORD], method[KNEE_IMPORT_WORD], sharding[KNEE_IMPORT_WORD],
        fp8[KNEE_IMPORT_WORD], fp8_recipe[KNEE_IMPORT_WORD], position_type[KNEE_IMPORT_WORD],
        mixed[KNEE_IMPORT_WORD], reshard[KNEE_IMPORT_WORD], schedule[KNEE_IMPORT_WORD],
        mode[KNEE_IMPORT_WORD], reduce[KNEE_IMPORT_WORD], converters[KNEE_IMPORT_WORD],
        recipe[KNEE_IMPORT_WORD], outer[KNEE_IMPORT_WORD], checkpoint[KNEE_IMPORT_WORD],
        bf16_part[KNEE_IMPORT_WORD], fp16_part[KNEE_IMPORT_WORD], host_part[KNEE_IMPORT_WORD],
        type[64];
    char pattern[KNEE_JSON_TEXT]; /* a letter per part; empty: none */
    size_t known;                 /* names that were */
};

enum knee_import_format {
    KNEE_FROM_HF,
    KNEE_FROM_MEGATRON,
    KNEE_FROM_TORCHTITAN,
    KNEE_FROM_DEEPSPEED
};

struct knee_import_name {
    enum knee_import_format format;
    const char *name;
    size_t into;
    enum { KNEE_IMPORT_NUMBER, KNEE_IMPORT_TRUTH, KNEE_IMPORT_WORDS } form;
    bool option;         /* --emit megatron writes it */
    const char *section; /* of the file that --emit writes; "." its top, "": not written */
};
extern const struct knee_import_name knee_import_names[];
extern const size_t knee_import_names_count;

/* A row of data/model_families.csv; NaN: the file says it, or the usual. */
struct knee_model_family {
    const char *type; /* beginning of model_type */
    double glu, tied, bias, qk_norm, sinks, learned, global_every;
};
extern const struct knee_model_family knee_model_families[];
extern const size_t knee_model_families_count;

/* Nothing is known yet. */
void knee_import_init(struct knee_import *in, enum knee_import_format format);

/* A value by its name; false: the format has no such name. */
bool knee_import_number(struct knee_import *in, enum knee_import_format format, const char *name,
                        double value);
/* As text: a number, true or false ("" is true: a switch), None, or a word. */
bool knee_import_text(struct knee_import *in, enum knee_import_format format, const char *name,
                      const char *value);

/* The options of a command line: --name value, --name=value, --name. `dotted`: one whose name has
 * no dot is another program's, and no value follows it. */
typedef void knee_import_take(struct knee_import *in, const char *name, const char *value);
void knee_import_options(struct knee_import *in, const char *text, const char *end,
                         knee_import_take *take, bool dotted);

/* Without blanks at its ends. */
void knee_import_copy(const char *from, const char *to, char *out, size_t size);

/* Sets a key of a shape or plan unless a flag did; values outside its range are left alone. */
void knee_import_set(const struct knee_keys *keys, void *object, const char *name, double value);

#endif

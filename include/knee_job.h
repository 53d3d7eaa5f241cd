/* SPDX-License-Identifier: MIT */
/* Job: what is trained, on what, how it is spread, and what memory it takes. What knee.h says of
 * every call holds here; these structs may change with the minor version. */
#ifndef KNEE_JOB_H
#define KNEE_JOB_H

#include "knee_collective.h"

/* ---- Job: what is trained, on what, how --------------------------------------------------- */

enum knee_scaling { KNEE_STRONG, KNEE_WEAK }; /* global batch fixed, or local batch fixed */

/* Every field is described by its row in knee_job_keys; NaN or -1 is "not given". */
struct knee_job {
    struct knee_hardware hw;
    int model, profile, algorithm; /* -1: none; typical software; what the library picks */
    double params, flops_per_param, seq, bytes_per_param;
    double global_batch, global_tokens, local_batch, accumulate, local_steps;
    double flops_per_s, mfu;
    double compute_time_s, comm_time_s, measured_workers;
    double overlap, hidden, loader_overlap, compress, encode_time_s;
    double loader_rate_per_s, jitter;
    double idle_power_w, steps;
    double critical_batch, min_steps, tolerance, at;
    struct knee_workers workers;
    /* Filled by knee_job_complete(). */
    enum knee_scaling scaling;
    double batch_scale; /* times the batch above, whether that is known or not; 1 */
    double comm_scale;  /* measured over modelled communication; 1 when it is modelled */
    double slower;      /* compute of the forecast takes so many times longer; 1 */
    bool forecast;      /* model and GPU are named and no rate: priced as knee plan prices it */
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_job_keys;

/* Nothing given. Never fails. */
void knee_job_init(struct knee_job *job);

/* Fills what is not given from presets and defaults, marks where each value came from, and
 * refuses contradictions and gaps (KNEE_USAGE). Completing twice changes nothing. */
knee_status knee_job_complete(struct knee_job *job, struct knee_err *err);

/* ---- Shape: a transformer ----------------------------------------------------------------- */

/* Every field is described by its row in knee_shape_keys; NaN or -1 is "not given". Yes-or-no
 * fields are 1 or 0. */
struct knee_shape {
    int model;                                            /* row of knee_model_names */
    double layers, hidden, heads, kv_heads, head_dim;     /* head_dim: of queries and keys */
    double ffn, glu, vocab, seq;                          /* ffn: of a layer without experts */
    double experts, topk, expert_ffn, shared_ffn;         /* experts 1: there are none */
    double dense_layers;                                  /* layers without experts */
    double q_rank, kv_rank, rope_dim, value_dim;          /* latent attention; kv_rank 0: none */
    double window, global_every;                          /* sliding window, and how often not */
    double causal, tied, bias, qk_norm, sinks, positions; /* positions: learned, rows of them */
    double linear_layers; /* layers with state space (Mamba) or linear attention instead */
    double linear_heads, linear_key_heads, linear_dim, state; /* theirs; dim: of a value */
    double bare_layers;    /* of dense_layers: those without a feed-forward part */
    double attention_gate; /* 1: queries carry a gate as large as themselves */
    /* What no preset has */
    double extra_layers;   /* multi-token prediction */
    double lora_rank;      /* adapters are trained and the rest is frozen; 0: all is trained */
    double qlora_rank;     /* the same with the frozen weights in 4 bits; 0: in 16 */
    double lora_attention; /* 1: adapters on the maps of attention only */
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_shape_keys;

/* A model by name. What is not known or does not apply is NaN; images have no shape. */
struct knee_model {
    const char *name;
    double params_billion;   /* as published */
    struct knee_shape shape; /* up to attention_gate */
    double flops_per_param;  /* per image, forward and backward; NaN: from the shape */
    double global_batch;     /* examples per step, a usual choice */
    const char *origin;
};
extern const struct knee_choices knee_model_names;
const struct knee_model *knee_model_at(size_t row); /* NULL past the end */

/* Nothing given. Never fails. */
void knee_shape_init(struct knee_shape *shape);

/* Fills gaps from the preset and from what transformers usually have; refuses what cannot be
 * (KNEE_USAGE). Completing twice changes nothing. */
knee_status knee_shape_complete(struct knee_shape *shape, struct knee_err *err);

/* Parameters, by where they are. Layers are single ones, the mean where they differ in kind. */
struct knee_params {
    double attention, dense_ffn, router, expert, shared; /* `expert`: one of them */
    double norms;                                        /* of a layer */
    double adapter[2]; /* LoRA, of a layer without experts and with; not in `total` */
    double trained;    /* all, or the adapters */
    double embedding, head, positions; /* head: 0 when tied */
    double total, active;              /* active: what one token visits */
};
void knee_shape_params(const struct knee_shape *shape, struct knee_params *out);

/* ---- Platform: hardware with the software that drives it ----------------------------------- */

enum knee_dtype { KNEE_16BIT, KNEE_8BIT, KNEE_4BIT, KNEE_DTYPES };

/* The constants of the operation model. Each is described (unit, meaning) by its row in
 * knee_rates_keys; docs/reference/model.md says how they were got. */
struct knee_rates {
    /* hardware */
    double gemm_16bit, gemm_8bit, gemm_4bit; /* share of the peak that large products reach */
    double gemm_depth_16bit, gemm_depth_8bit, gemm_depth_4bit; /* inner length at half of it */
    double gemm_waves_16bit, gemm_waves_8bit, gemm_waves_4bit; /* waves of tiles at half of it */
    double gemm_start_s, gemm_memory, gemm_alone, processors;  /* alone: as gemm_16bit */
    double clock;  /* sustained, against what the others of its architecture have */
    double memory; /* share of the memory rate */
    double flash_forward, flash_backward, flash_length, flash_small_head;
    double flash_8bit, flash_portable, portable_attention;
    double host_bytes_per_s;
    /* software */
    double gemm, weight_gradient, flash, fused_attention;
    double scores_forward_bytes, scores_backward_bytes;
    double elementwise, loss, cast, fp8_block, fp8_row, recompute_op;
    double launch_s, tp_launch_s, gap_s, micro_batch_s, step_s, optimizer, jitter;
    double tp_wait_s, tp_wait_rank_s, tp_hop_s, stall_s, stall_gpus;
    double tp_exposed, cp_exposed, pp_exposed, dp_exposed, bucket_bytes, balanced_stages;
    double bucket_per_rank;
    double shard_rate, shard_exposed, shard_latency_s, slowdown, shard_group;
    double expert_gemm, expert_sync_s, expert_slowdown, expert_copies, expert_bias, expert_dedup,
        expert_launch_s, moe_launch_s;
    /* memory */
    double gradient_bytes, state_bytes, activation_memory, base_memory_bytes, gradients_stay;
    double gathered_share;
    double fragmentation, logits_bytes, memory_spread;
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_rates_keys;
extern const struct knee_choices knee_profile_names;

/* A software profile: framework and version. Its constants are those of `base` with changes. */
struct knee_profile {
    const char *name, *base, *family;
    double version; /* year and month: 26.04; NaN: none */
    double sources; /* of runs that it, or its family, was fitted to */
    const char *summary, *origin;
};
const struct knee_profile *knee_profile_at(size_t row); /* NULL past the end */

/* Every field is described by its row in knee_platform_keys. */
struct knee_platform {
    struct knee_hardware hw;
    int profile;
    double memory_bytes, peak_flops, power_cap_w;
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_platform_keys;
void knee_platform_init(struct knee_platform *platform);

/* What a prediction rests on: measured runs like it; something assumed; typical software, because
 * none is named. */
enum knee_basis {
    KNEE_BASIS_KNOWN,
    KNEE_BASIS_ASSUMED,
    KNEE_BASIS_UNNAMED,       /* and the plan is one of Megatron-Core's, which is priced */
    KNEE_BASIS_UNNAMED_OTHER, /* and the plan is usual in other software */
};

/* A platform boiled down to numbers. */
struct knee_machine {
    double peak_flops[KNEE_DTYPES]; /* NaN where it has none */
    double memory_bytes, memory_bytes_per_s;
    struct knee_cluster cluster; /* what its collectives are priced on */
    double node_size;            /* GPUs of a node */
    double clock;                /* what a power cap leaves of the compute rate */
    double price_per_hour, power_w;
    struct knee_rates rates;
    enum knee_basis basis;
    const char *why_assumed; /* in words, with the fix; static; NULL: nothing is assumed */
    int precision;           /* bf16; fp16 where the GPU has no bf16 */
};

/* Completes *platform and resolves it. `changes` (may be NULL) are constants that replace those
 * of the profile where they are not NaN. KNEE_USAGE when the GPU is not known. */
knee_status knee_machine_init(struct knee_platform *platform, const struct knee_rates *changes,
                              struct knee_machine *out, struct knee_err *err);

/* ---- Plan: how a model is spread over GPUs ------------------------------------------------- */

enum knee_shard { KNEE_REPLICATE, KNEE_ZERO1, KNEE_ZERO2, KNEE_ZERO3, KNEE_SHARDS };
enum knee_recompute {
    KNEE_KEEP,      /* nothing is computed twice */
    KNEE_SELECTIVE, /* attention scores, or activation functions and norms where scores are fused */
    KNEE_BY_OP,     /* every second product and what hangs on it */
    KNEE_FULL,      /* whole layers */
    KNEE_RECOMPUTES
};
enum knee_schedule { KNEE_1F1B, KNEE_INTERLEAVED, KNEE_GPIPE, KNEE_ZERO_BUBBLE, KNEE_SCHEDULES };
enum knee_precision {
    KNEE_BF16,
    KNEE_FP16,
    KNEE_FP8,       /* one scale per tensor */
    KNEE_FP8_BLOCK, /* mxfp8, or scales per block */
    KNEE_FP8_ROW,   /* scales per row */
    KNEE_FP4,
    KNEE_PRECISIONS
};
/* Parts of a layer that Megatron-Core recomputes by name (--recompute-modules), as bits. */
enum knee_module {
    KNEE_MODULE_NORM = 1,       /* layernorm: outputs of norms */
    KNEE_MODULE_ACTIVATION = 2, /* moe_act, mlp activation: output of the activation function */
    KNEE_MODULE_LATENT = 4,     /* mla_up_proj: queries, keys and values from their latents */
    KNEE_MODULE_ATTENTION = 8,  /* core_attn: scores where these are not fused */
    KNEE_MODULE_MLP = 16,       /* mlp: the whole feed-forward half of layers without experts */
    KNEE_MODULE_EXPERTS = 32,   /* moe: the whole expert half, its exchange included */
};
enum knee_offload { KNEE_ON_GPU, KNEE_OFFLOAD_OPTIMIZER, KNEE_OFFLOADS };
extern const struct knee_choices knee_shard_names, knee_recompute_names, knee_schedule_names,
    knee_precision_names, knee_offload_names, knee_modules_names;

/* Every field is described by its row in knee_plan_keys. In a question NaN or -1 means "any"; in
 * an answer all are set. */
struct knee_plan {
    double gpus, global_batch, micro_batch; /* batches in sequences */
    double global_tokens;                   /* the batch as it may be given instead */
    double tp, pp, vp, cp, ep, etp, dp;     /* dp = gpus / (tp pp cp) */
    double shard_size, prefetch;            /* GPUs that share one copy; layers gathered ahead */
    int shard, recompute, schedule, precision, offload;
    double seq_par, cp_gather;                             /* 1 or 0 */
    double overlap_tp, overlap_dp, overlap_pp, overlap_ep; /* 1 or 0 */
    double imbalance, drop_tokens; /* busiest expert rank over the mean; 1 or 0 */
    double dedup;                  /* 1: a token goes to a rank, and a node, once */
    double dispatch_bytes; /* per value of a token on its way to an expert; back it takes 2 */
    double fp8_attention;  /* 1: scores and values in 8 bits */
    int modules;           /* with KNEE_SELECTIVE: row of knee_modules_names; -1: the usual ones */
    double compress, local_steps, loader_rate_per_s, jitter;
    double gradient_bytes;          /* on the wire; NaN: as the profile says */
    double recompute_share, graphs; /* of layers recomputed; of launches that CUDA graphs replace */
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_plan_keys;
void knee_plan_init(struct knee_plan *plan);

/* Sets what a single plan still lacks to the usual choice and refuses degrees that do not fit
 * (KNEE_USAGE). */
knee_status knee_plan_complete(struct knee_plan *plan, const struct knee_shape *shape,
                               const struct knee_machine *machine, struct knee_err *err);

/* A framework, and what it can do: rows of knee_framework_names; 0 is any. */
struct knee_framework;
extern const struct knee_choices knee_framework_names;
const struct knee_framework *knee_framework_at(int row); /* NULL: any, or past the end */
const struct knee_framework *knee_framework_named(const char *name);        /* NULL: none of them */
const char *knee_framework_word(const struct knee_framework *framework);    /* its name */
const char *knee_framework_profile(const struct knee_framework *framework); /* its software */

/* ---- Intervals ------------------------------------------------------------------------------- */

/* Where 90 of 100 measured values lie about one that is predicted; NaN: nothing is known. */
struct knee_sure {
    double low, high;
};

/* ---- Memory of one GPU --------------------------------------------------------------------- */

struct knee_memory {
    double parameters, gradients, optimizer, activations, buffers; /* bytes */
    double fragmentation, base; /* what allocation wastes; context and libraries */
    double total;               /* sum */
    double capacity;            /* of the GPU, as it is sold: what its driver gives is more */
    double spread;              /* the total may be off by exp(spread), one standard deviation */
};

/* The probability that it fits: what is needed is as sure as its spread says, and the driver gives
 * nearly the GiB that the GPU's GB stand for. */
double knee_memory_fit(const struct knee_memory *memory);

#define KNEE_MEMORY_RISK 0.05 /* that a plan may run out of memory where nothing else is asked */

/* The most bytes that a plan may take on a GPU of `capacity` so that it runs out of memory with a
 * probability of at most `risk`. */
double knee_memory_limit(double capacity, double spread, double risk);

/* Bytes between which the total lies, by the same spread. */
struct knee_sure knee_memory_sure(const struct knee_memory *memory);

#endif

/* SPDX-License-Identifier: MIT */
/* Plans: the tax of each axis, the cost of a plan, the search. What knee.h says of every call holds
 * here; these structs may change with the minor version. */
#ifndef KNEE_PLAN_H
#define KNEE_PLAN_H

#include "knee_job.h"

/* ---- Tax: what each parallel axis pays ---------------------------------------------------- */

enum knee_axis {
    KNEE_AXIS_DP,
    KNEE_AXIS_FSDP,
    KNEE_AXIS_TP,
    KNEE_AXIS_PP,
    KNEE_AXIS_EP,
    KNEE_AXES
};

/* Every field is described by its row in knee_tax_keys. Not a knee_job: it
 * holds bare numbers of the textbook (one width, two matrices, fsdp as an axis) that a knee_job has
 * no place for and a knee_shape with a knee_plan would refuse. What they share, hardware and batch,
 * is one set of rows each; with a GPU or a cluster knee_tax_plan() makes shape, machine and plan of
 * it, and those are priced. */
struct knee_tax_job {
    struct knee_hardware hw;
    int model;
    double layers, hidden, ffn, seq, vocab, experts, topk, bytes_per_value;
    double degree[KNEE_AXES];
    double global_batch, global_tokens, micro_batch, micro_batches; /* in sequences, but tokens */
    double mfu, peak_flops;
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_tax_keys;
void knee_tax_job_init(struct knee_tax_job *job);

struct knee_axis_tax {
    enum knee_axis axis;
    double degree;
    const char *collective;
    double buffer_bytes; /* one call, whole buffer */
    double calls;        /* per step and GPU */
    bool crosses_nodes;  /* which link */
    double comm_s;       /* per step, all calls */
    double window_s;     /* compute it can hide behind, per step */
    double exposed_s;
    double tax; /* exposed / compute */
};

/* With a GPU or a cluster the axes are those of the plan with these degrees, as knee plan prices
 * it; with bare numbers they are the textbook's: compute from peak and MFU, rings of alpha and
 * beta. */
struct knee_tax {
    struct knee_tax_job job; /* completed */
    bool textbook;
    struct knee_axis_tax axes[KNEE_AXES];
    double params, params_per_gpu, tokens_per_gpu, gpus;
    double compute_s; /* of one GPU in one step, without bubble */
    double bubble;    /* (pp-1)/(M+pp-1) of the step */
    double bubble_s;  /* what it costs */
    double step_s, mfu;
    struct knee_sure step_sure; /* NaN with bare numbers: those were never compared with runs */
    struct knee_memory memory;  /* of one GPU; total 0: not known */
    enum knee_axis binding;
    bool bubble_binds;            /* the bubble costs more than any axis */
    double local_tokens_min;      /* fewer and the gathers cannot hide */
    double tp_tax_in, tp_tax_out; /* peak / (3 BW h) on the node's link and on the network */
};
const char *knee_axis_name(enum knee_axis axis);

/* Completes a copy of `job` and prices every axis. */
knee_status knee_tax_run(const struct knee_tax_job *job, struct knee_tax *out,
                         struct knee_err *err);

/* ---- Cost of a plan: the closed path ------------------------------------------------------- */

/* Where the seconds of a step go on the busiest stage. They sum to the step. */
enum knee_part {
    KNEE_PART_GEMM,      /* matrix products */
    KNEE_PART_ATTENTION, /* scores, softmax, values */
    KNEE_PART_MEMORY,    /* what only moves bytes: norms, activations, casts, permutations */
    KNEE_PART_HEAD,      /* embedding, logits, loss */
    KNEE_PART_RECOMPUTE, /* computed a second time */
    KNEE_PART_OPTIMIZER,
    KNEE_PART_HOST, /* waiting for launches; fixed time per micro-batch and step */
    KNEE_PART_TP,   /* exposed communication of each axis */
    KNEE_PART_CP,
    KNEE_PART_EP,
    KNEE_PART_PP,
    KNEE_PART_DP,
    KNEE_PART_SHARD,  /* gathering and scattering parameters (ZeRO-3, FSDP) */
    KNEE_PART_BUBBLE, /* waiting for other stages */
    KNEE_PART_JITTER, /* waiting for the slowest of all */
    KNEE_PART_LOADER,
    KNEE_PART_OFFLOAD,
    KNEE_PARTS
};
const char *knee_part_name(enum knee_part part);

/* The parts that are communication, from KNEE_PART_TP to KNEE_PART_SHARD. */
#define KNEE_WIRES (KNEE_PART_SHARD - KNEE_PART_TP + 1)

struct knee_plan_cost {
    double step_s, part_s[KNEE_PARTS]; /* sum of the parts = step */
    double low_s, high_s;              /* the step lies there in 90 of 100 cases */
    double wire_s[KNEE_WIRES];         /* all communication of an axis, hidden or not; TP first */
    double comm_s;                     /* sum of that */
    double tokens_per_s;               /* of all GPUs */
    double mfu_full, mfu_causal;       /* model FLOPs of either convention over the 16-bit peak */
    double hfu;                        /* with what was recomputed, causal */
    struct knee_memory memory;
    bool fits;
};

/* Prices one plan. `plan` must be completed. */
void knee_plan_price(const struct knee_shape *shape, const struct knee_machine *machine,
                     const struct knee_plan *plan, struct knee_plan_cost *out);

/* The collectives of a step on the busiest stage, as they are priced: so many calls of `bytes`
 * each, `each_s` alone. */
struct knee_traffic {
    enum knee_part part; /* KNEE_PART_TP ... KNEE_PART_SHARD */
    enum knee_op op;
    struct knee_group group;
    double bytes, calls, each_s;
};
#define KNEE_TRAFFIC_MAX 16
/* How many there are; at most `room` are written. */
size_t knee_plan_traffic(const struct knee_shape *shape, const struct knee_machine *machine,
                         const struct knee_plan *plan, struct knee_traffic *out, size_t room);

/* The shape and the completed plan behind the degrees of a tax. */
knee_status knee_tax_plan(const struct knee_tax_job *job, struct knee_shape *shape,
                          struct knee_machine *machine, struct knee_plan *plan,
                          struct knee_err *err);

/* Which part of a step was measured. */
enum knee_phase { KNEE_PHASE_STEP, KNEE_PHASE_FORWARD, KNEE_PHASE_BACKWARD, KNEE_PHASE_OPTIMIZER };

/* Seconds of one phase on one GPU without a pipeline: the forward or backward pass of all
 * micro-batches, the optimizer, or the whole step. */
double knee_plan_phase_s(const struct knee_shape *shape, const struct knee_machine *machine,
                         const struct knee_plan *plan, enum knee_phase phase);

/* Where an axis of a completed plan lies: `size` ranks, `stride` apart, `inside` of them in a node;
 * what those do not carry crosses the network. */
struct knee_plan_axis {
    const char *name; /* static */
    double size, stride, inside;
};
#define KNEE_AXES_MAX 6
/* The axes of more than one rank, nearest first; how many there are. */
size_t knee_plan_axes(const struct knee_plan *plan, const struct knee_machine *machine,
                      struct knee_plan_axis out[KNEE_AXES_MAX]);

struct knee_step;
struct knee_trace;
struct knee_account;

/* The cost as a labelled step: compute, transfer, wait, starved, host, idle. */
void knee_plan_step(const struct knee_plan_cost *cost, struct knee_step *out);

/* A simulated step, event by event: the first rank of every pipeline stage, each with its lanes, as
 * a timeline that knee_account() labels like a recorded one. The plan must be completed. Free
 * the trace with knee_trace_release(). */
knee_status knee_simulate(const struct knee_shape *shape, const struct knee_machine *machine,
                          const struct knee_plan *plan, const struct knee_alloc *alloc,
                          struct knee_trace *out, struct knee_err *err);
/* The part of a plan's price that a simulation covers: all but stragglers and loader. */
double knee_plan_simulated_s(const struct knee_plan_cost *cost);

/* One operation of one layer, as the model sees it. */
enum knee_operation_kind {
    KNEE_OPERATION_GEMM,   /* matrix product (m x k) (k x n) */
    KNEE_OPERATION_FLASH,  /* fused attention; k: head_dim, n: sequence */
    KNEE_OPERATION_SCORES, /* attention whose scores go through memory */
    KNEE_OPERATION_BYTES,  /* moves bytes */
    KNEE_OPERATION_SCAN,   /* state space or linear attention; k: length of a value */
};
struct knee_operation {
    const char *name;
    enum knee_operation_kind kind;
    enum knee_part part;
    bool backward, weights, grouped; /* weights: their gradient; grouped: of experts */
    double count;                    /* of such operations in the layer */
    double flops, bytes;             /* of one */
    double m, n, k;
    enum knee_dtype dtype;
    double seconds; /* of all `count` */
};
#define KNEE_OPERATIONS_MAX 96

/* The operations of one layer (with experts or without) or of embedding and head, on one GPU and
 * for one micro-batch. Writes the first `capacity` of them and returns how many there are, at most
 * KNEE_OPERATIONS_MAX. */
enum knee_operations_of {
    KNEE_OPERATIONS_DENSE,
    KNEE_OPERATIONS_EXPERT,
    KNEE_OPERATIONS_EMBEDDING,
    KNEE_OPERATIONS_HEAD
};
size_t knee_plan_ops(const struct knee_shape *shape, const struct knee_machine *machine,
                     const struct knee_plan *plan, enum knee_operations_of what,
                     struct knee_operation *out, size_t capacity);

/* ---- Search over plans --------------------------------------------------------------------- */

#define KNEE_PLANS_MAX 16
#define KNEE_FRONT     16 /* pieces that the GPU's memory is cut into */

/* What few runs do: each must gain more than knee can tell plans apart by. */
enum knee_unusual {
    KNEE_UNUSUAL_OFFLOAD = 1,    /* the optimizer on the host */
    KNEE_UNUSUAL_SCHEDULE = 2,   /* zero-bubble */
    KNEE_UNUSUAL_CONTEXT = 4,    /* sequences below 32k tokens are split */
    KNEE_UNUSUAL_PIECES = 8,     /* more than 8 pieces a stage */
    KNEE_UNUSUAL_SHARDS = 16,    /* zero2 or zero3 over nodes or under a pipeline */
    KNEE_UNUSUAL_TENSOR = 32,    /* tensor parallelism over nodes */
    KNEE_UNUSUAL_HEADS = 64,     /* more tensor-parallel ranks than key-value heads */
    KNEE_UNUSUAL_SOFTWARE = 128, /* what the software that is assumed does not have */
    KNEE_UNUSUALS = 8
};

struct knee_found {
    struct knee_plan plan;
    struct knee_plan_cost cost;
    unsigned unusual; /* bits of enum knee_unusual */
    double ranked_s;  /* the step with a handicap for each of them: plans are compared by it */
};

/* One question: `fixed` holds what is given (NaN and -1: free) and must have gpus and
 * global_batch. Everything is borrowed. */
struct knee_search {
    const struct knee_shape *shape;
    const struct knee_machine *machine;
    const struct knee_plan *fixed;
    size_t top;                             /* how many plans to keep, 1 ... KNEE_PLANS_MAX */
    bool brute;                             /* price every plan, without bounds: for tests */
    const struct knee_framework *framework; /* whose plans are looked at; NULL: all */
    double memory_risk; /* most a plan may risk to run out of memory; 0: all that the GPU has */
    const struct knee_framework *assumed; /* whose plans are the usual ones; NULL: all are */
    double oddity; /* share of the step that each unusual feature must gain; 0: the fastest wins */
};

/* Of plans that differ in less than tp, cp, pp, ep and sharding only the best is kept. */
struct knee_search_result {
    struct knee_found best[KNEE_PLANS_MAX]; /* fastest first */
    size_t count;
    /* The fastest plan that takes at most (i + 1) / KNEE_FRONT of the memory; step_s is infinite
     * where there is none. */
    struct knee_found front[KNEE_FRONT];
    struct knee_found nearest; /* of those that do not fit, the one that lacks the least */
    bool nearest_valid;
    double plans;     /* looked at */
    double priced;    /* in full */
    double too_large; /* left out because they do not fit */
    double pruned;    /* splits of a layer left out because a bound shows that none can win */
};

/* How many independent pieces the space falls into; searching pieces from ... to - 1; adding the
 * results of another search of other pieces. Pieces may run in different threads on different
 * results: every division gives the same plans in the end. */
size_t knee_search_pieces(const struct knee_search *search);
void knee_search_result_init(struct knee_search_result *result);
void knee_search_run(const struct knee_search *search, size_t from, size_t to,
                     struct knee_search_result *result);
void knee_search_merge(const struct knee_search *search, const struct knee_search_result *other,
                       struct knee_search_result *into);

/* What would make a plan that does not fit fit, cheapest first: writes the first `capacity` of them
 * and returns how many there are, at most KNEE_REMEDIES_MAX. */
struct knee_remedy {
    const char *what; /* "full recomputation" */
    struct knee_plan plan;
    struct knee_plan_cost cost;
};
#define KNEE_REMEDIES_MAX 12
size_t knee_plan_remedies(const struct knee_shape *shape, const struct knee_machine *machine,
                          const struct knee_plan *plan, struct knee_remedy *out, size_t capacity);

/* What the best plans at several GPU counts add up to. */
struct knee_plan_row {
    double gpus;                     /* that there are; a plan may leave some of them idle */
    bool fits;                       /* some plan does */
    struct knee_search_result found; /* best plans, or the nearest when none fits */
    double efficiency;               /* E(K): tokens per second and GPU against the baseline's */
    double kept;                     /* goodput against the baseline's; 1: a run is not asked */
    struct knee_sure efficiency_sure;
    double time_s, cost; /* for all tokens, or NaN */
    struct knee_sure time_sure, cost_sure;
    double cost_per_billion; /* dollars per 1e9 tokens; NaN without a price */
};

struct knee_run_inputs;
struct knee_plan_run;

struct knee_plan_question {
    double tokens;             /* to train; NaN: not asked */
    double budget, deadline_s; /* dollars, seconds; NaN: not asked */
    double tolerance;          /* E(K) still worth it */
};

/* A published run to put beside a plan. */
#define KNEE_ALIKE_MAX 3
struct knee_alike {
    const char *model, *gpu, *precision, *source;
    double gpus, token_s; /* GPU seconds per token */
    double difference;    /* forecast over measured - 1, per FLOP of the model */
};

struct knee_plan_answer {
    struct knee_plan_question question;
    double memory_risk, oddity; /* as in struct knee_search */
    struct knee_shape shape;
    struct knee_platform platform;
    struct knee_machine machine;
    struct knee_plan fixed;
    const struct knee_run_inputs *run; /* failures and energy; NULL: a run is not asked. Borrowed */
    struct knee_plan_run *runs; /* beside rows, of those that fit; NULL as run is. Borrowed */
    const struct knee_framework *framework; /* NULL: any */
    const struct knee_framework *assumed;   /* whose software is assumed; NULL: it is named */
    bool counts_assumed;    /* no GPU counts are given: those of the rows are knee's own */
    struct knee_found free; /* the best plan of any framework at the chosen count, same software */
    bool free_known;        /* it was looked for and there is one */
    struct knee_plan_row *rows; /* ascending in gpus; borrowed */
    size_t row_count;
    double baseline_gpus;         /* what E(K) is against, whatever counts were asked; NaN: none */
    double baseline_tokens_per_s; /* of its best plan */
    double smallest_gpus; /* round count that something fits on at all; NaN: none, not looked for */
    double apart;         /* plans whose steps are closer than this share are ties */
    size_t ties;          /* how many of the chosen row's plans are, the first counted */
    size_t chosen;        /* the row that answers; SIZE_MAX: none does */
    double knee_gpus;     /* last count with E(K) x kept >= tolerance; NaN: no plan fits */
    struct knee_sure knee_sure; /* the same of E(K)'s low and high end */
    /* The same job as knee predict sees it, data parallel alone, at the MFU of the chosen plan. */
    double replicas_knee;         /* its knee; NaN: none, or nothing chosen */
    double replicas_limit;        /* one sequence each */
    double replicas_needed_bytes; /* unsharded; more than the GPU has: it does not fit */
    double peak_gpus;             /* count of the highest throughput */
    double fastest_s, cheapest;   /* over rows that fit: seconds, dollars; NaN: none, or no price */
    struct knee_remedy remedies[KNEE_REMEDIES_MAX]; /* when nothing fits at the chosen count */
    size_t remedy_count;
    const struct knee_account *simulated; /* the best plan's step; NULL: not asked. Borrowed */
    double simulated_s, closed_s;         /* its length, and what the closed path says */
    /* Of the plan that the answer shows; see knee_plan_details(). */
    struct knee_traffic traffic[KNEE_TRAFFIC_MAX];
    size_t traffic_count;
    struct knee_plan_axis axes[KNEE_AXES_MAX];
    size_t axis_count;
    struct knee_alike alike[KNEE_ALIKE_MAX]; /* published runs, nearest first */
    size_t alike_count;
    struct knee_layer_operation *ops; /* NULL: not asked; borrowed */
    size_t op_count;
};

/* An operation and the layer that it is of: "dense", "experts", "embedding", "head". */
struct knee_layer_operation {
    struct knee_operation op;
    const char *layer;
};
#define KNEE_LAYER_OPERATIONS_MAX (4 * KNEE_OPERATIONS_MAX)

/* The counts at which a baseline is looked for, in turn, until a plan fits: 1, 2, 4, ... and the
 * node's size. 0 past the end. */
double knee_plan_baseline_at(const struct knee_machine *machine, size_t i);

/* Round counts: 1 to 8, then 10, 12, 14, 16, 20, 24, 28, 32 ...: up to 7 times a power of two. */
double knee_plan_round_count(size_t i);

/* Whether the best plan of a search has the higher throughput. */
bool knee_plan_quicker(const struct knee_search_result *a, const struct knee_search_result *b);

/* Dollars per 1e9 tokens of a plan on so many GPUs; NaN without a price. */
double knee_plan_billion_cost(const struct knee_plan_answer *answer, double gpus,
                              const struct knee_plan_cost *cost);

/* Fills efficiency, time and cost of answer->rows and everything after them. The fields before
 * must be set; rows hold finished searches. */
void knee_plan_judge(struct knee_plan_answer *answer);

/* The row that the answer shows: the one chosen, else the last that fits; NULL: none does. */
const struct knee_plan_row *knee_plan_shown(const struct knee_plan_answer *answer);
/* Collectives and placement of its best plan; and its operations, into room for
 * KNEE_LAYER_OPERATIONS_MAX of them. Both after knee_plan_judge(). */
void knee_plan_details(struct knee_plan_answer *answer);
void knee_plan_operations(struct knee_plan_answer *answer, struct knee_layer_operation *room);

/* What a plan has over another: the part of the step that it saves most in, and how much. */
struct knee_advantage {
    enum knee_part part;
    double seconds;
    bool none; /* it is no faster */
};
struct knee_advantage knee_plan_advantage(const struct knee_plan_cost *better,
                                          const struct knee_plan_cost *worse);

/* The largest overhead; KNEE_PART_GEMM when nothing is above 2 %. */
enum knee_part knee_plan_binding(const struct knee_plan_cost *cost);

#endif

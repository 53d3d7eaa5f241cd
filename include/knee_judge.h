/* SPDX-License-Identifier: MIT */
/* Judge: knee, levers, walls, cost, verdict. What knee.h says of every call holds here;
 * these structs may change with the minor version. */
#ifndef KNEE_JUDGE_H
#define KNEE_JUDGE_H

#include "knee_predict.h"
#include "knee_rollcall.h"

#ifdef __cplusplus
extern "C" {
#endif
KNEE_PUBLIC_BEGIN

/* ---- Judge: knee, levers, walls, cost, verdict -------------------------------------------- */

/* The knee in its senses. NaN: there is none up to KNEE_SEARCH_MAX workers. */
struct knee_knee {
    double gamma_one_workers;       /* communication = compute, solved, not whole */
    double ratio_one_workers;       /* exposed communication = compute, solved */
    double tolerance_workers;       /* last whole K with E(K) >= tolerance */
    double peak_throughput_workers; /* whole K of the highest throughput */
    double tolerance_efficiency;    /* E(K) at tolerance_workers ... */
    double next_efficiency;         /* ... and at the count after it */
    double limit_workers;           /* one example each: no knee lies beyond; NaN: no limit */
    struct knee_sure sure; /* tolerance_workers of E(K)'s low and high end; high NaN: no knee */
};

/* How sure closed forms are of a job. */
struct knee_closed_doubt {
    struct knee_sure compute; /* factors on it; 1 where it was told */
    double anchor;            /* workers at which the exchange was measured; 1: it was not */
};

struct knee_regime {
    double max_ratio; /* this row holds up to here */
    const char *name, *rule;
};

enum knee_suspect {
    KNEE_SUSPECT_NONE,
    KNEE_SUSPECT_COMM,
    KNEE_SUSPECT_INPUT,
    KNEE_SUSPECT_STRAGGLER,
    KNEE_SUSPECT_TINY_BATCH,
    KNEE_SUSPECT_LARGE_BATCH,
    KNEE_SUSPECT_COPY, /* exposed copies */
    KNEE_SUSPECT_IDLE, /* the GPU has work, and does not start it */
    KNEE_SUSPECTS
};
const char *knee_suspect_name(enum knee_suspect suspect);

enum knee_wall { KNEE_WALL_NONE, KNEE_WALL_SYSTEMS, KNEE_WALL_STATISTICAL };
const char *knee_wall_name(enum knee_wall wall);

/* What one change would buy at the verdict's worker count. */
struct knee_lever {
    const char *name;     /* "overlap" */
    const char *change;   /* "eta 1" */
    const char *risk;     /* what it costs or risks, in words */
    unsigned kind;        /* of enum knee_lever_kind, for those who choose among them */
    bool training;        /* the run would learn otherwise */
    bool replayed;        /* from a replay of the recorded timeline, not from a closed form */
    double low_s, high_s; /* of the step after the change; NaN from a closed form */
    struct knee_row row;  /* after the change; of a replayed one no labels */
    double gain;          /* throughput after / before - 1 */
    double quality_gain;  /* time to quality before / after - 1; NaN when it is not known */
    double knee_workers;  /* tolerance knee after the change */
    double cost_ratio;    /* dollars for the same work, after / before */
    double saved_per_day; /* dollars saved when a day's work of before is done after the change */
};

struct knee_walls {
    double systems_workers;     /* last K with E(K) >= tolerance */
    double statistical_workers; /* K where the global batch reaches the critical batch */
    double quality_workers;     /* K of the shortest time to quality */
    double examples_ratio;      /* examples needed / fewest, at the verdict's K */
    enum knee_wall first;
};

struct knee_cost {
    double step, day, run;                   /* dollars */
    double stall_step, stall_day, stall_run; /* dollars without useful work */
    double joules_step, joules_day, joules_run;
    double stall_joules_step, stall_joules_day, stall_joules_run;
    double run_steps; /* NaN: not given */
};

struct knee_verdict {
    enum knee_suspect suspect;
    double suspect_share; /* of the step (or, for a large batch, of the examples) */
    enum knee_wall wall;
    const struct knee_regime *regime;
    size_t lever; /* row of levers[]; SIZE_MAX: none is worth it */
};

enum knee_note_kind {
    KNEE_NOTE_HALF_EXAMPLE, /* local batch below one example from `value` workers on */
    KNEE_NOTE_OVERHIDDEN,   /* hidden fraction hides more than there is compute, from `value` on */
    KNEE_NOTE_LATENCY,      /* latency, not bandwidth, is most of the exchange from `value` on */
    KNEE_NOTE_MEASURED_AT,  /* measured times are taken to be for `value` workers */
    KNEE_NOTE_NO_ENCODE,    /* encoding is left out of the compression levers: no params */
    KNEE_NOTE_SURE,         /* what low and high stand on */
    KNEE_NOTE_MFU,          /* the share of the peak was not told: `value` percent is assumed */
    KNEE_NOTES
};
struct knee_note {
    enum knee_note_kind kind;
    double value;
};

/* Weights, gradients and Adam's states of mixed precision, activations left out. */
struct knee_feasibility {
    double needed_bytes;   /* on one GPU, unsharded; NaN: not known */
    double capacity_bytes; /* of the GPU */
    bool fits;             /* true also where nothing is known */
    double zero1_workers;  /* that share the optimizer's states so that it fits; NaN: none do */
    double zero3_workers;  /* that share everything */
};

#define KNEE_LEVERS_MAX 21

struct knee_prediction {
    struct knee_job job;     /* completed */
    struct knee_terms terms; /* what the closed forms took: those of the job, or changed ones */
    struct knee_row *rows;
    size_t row_count;
    struct knee_row at; /* the row that verdict, levers, walls and cost speak of */
    struct knee_knee knee;
    struct knee_closed_doubt doubt;
    struct knee_feasibility memory;
    struct knee_lever levers[KNEE_LEVERS_MAX]; /* most gain first */
    size_t lever_count;
    struct knee_walls walls;
    struct knee_cost cost;
    struct knee_verdict verdict;
    struct knee_note notes[KNEE_NOTES];
    size_t note_count;
    const struct knee_alloc *alloc;
};

/* The terms after a set of levers, names with '+' between them; one that there is not or that does
 * not apply changes nothing. Returns the workers that they leave. */
double knee_levers_pull(const struct knee_prediction *before, const char *set,
                        struct knee_terms *terms);

/* Completes a copy of `job` and answers it. Free with knee_prediction_release(). */
knee_status knee_predict(const struct knee_job *job, const struct knee_alloc *alloc,
                         struct knee_prediction *out, struct knee_err *err);
/* The same with changed terms at so many workers: what a set of levers makes of it. `out` may be
 * `before`, which is then released. */
knee_status knee_predict_changed(const struct knee_prediction *before,
                                 const struct knee_terms *terms, double workers,
                                 struct knee_prediction *out, struct knee_err *err);
void knee_prediction_release(struct knee_prediction *prediction);

/* What the account of a trace says is wrong, and what to do. */
enum knee_gap { /* what the data cannot answer, and why */
                KNEE_GAP_ONE_RANK = 1 << 0,
                KNEE_GAP_RANKS_MISSING = 1 << 1,
                KNEE_GAP_NO_COLLECTIVES = 1 << 2,
                KNEE_GAP_UNMATCHED = 1 << 3,
                KNEE_GAP_NO_STEPS = 1 << 4,
                KNEE_GAP_LOSSES = 1 << 5,
                KNEE_GAP_WHOLE_GRAPHS = 1 << 6,
                KNEE_GAP_NO_LAUNCHES = 1 << 7,
                KNEE_GAP_LARGE_BATCH = 1 << 8, /* always, unless a noise scale is given */
                KNEE_GAP_GPU = 1 << 9,         /* named, but without a preset */
                KNEE_GAP_LOOSE = 1 << 10,      /* matched, but not ended together */
                KNEE_GAP_OTHER_STEPS = 1 << 11,
                KNEE_GAP_BOUNDS = 1 << 12,     /* ranks are missing: waits are lower bounds */
                KNEE_GAP_LAID_OUT = 1 << 13,   /* no starts were recorded */
                KNEE_GAP_SHARED_GPU = 1 << 14, /* ranks take turns on one GPU */
                KNEE_GAP_SERVING = 1 << 15,    /* a model that is served: levers of training are not
                                                  for it, and there are none */
                KNEE_GAP_ONE_WORKER = 1 << 16, /* the job says that it has no other */
                KNEE_GAP_NO_COMPUTE = 1 << 17, /* next to none, but communication: R says nothing */
};

/* How far steps differ, each taken as the mean of its ranks. */
struct knee_step_spread {
    size_t steps; /* complete ones; 0: the rest says nothing */
    double median_s, p95_s, worst_s;
    double error_s;        /* standard error of the mean; NaN below two steps */
    int64_t worst;         /* number of the worst */
    enum knee_label label; /* that makes it longer than the median step ... */
    size_t rank;           /* ... on this row of ranks ... */
    double excess_s;       /* ... by so much */
};

/* A collective this many times slower than expected has another trouble than its size. */
#define KNEE_FAR_SLOWER 2

/* A step this much longer than the median one stands out, and what made it is named. */
#define KNEE_STANDS_OUT 1.2

/* Above this R the compute that is recorded is not a training step's. */
#define KNEE_HIGHEST_RATIO 1000

/* Those that a better recording cures. */
#define KNEE_GAPS_OF_RECORDING                                                                     \
    (KNEE_GAP_ONE_RANK | KNEE_GAP_RANKS_MISSING | KNEE_GAP_UNMATCHED | KNEE_GAP_NO_STEPS |         \
     KNEE_GAP_WHOLE_GRAPHS | KNEE_GAP_NO_LAUNCHES | KNEE_GAP_OTHER_STEPS | KNEE_GAP_BOUNDS |       \
     KNEE_GAP_NO_COMPUTE)

/* Products and attention whose shapes are recorded, against what the GPU can do. Times are of their
 * kernels, a step. What has no known peak (32 bits without tensor cores, other GPUs) is not judged.
 */
enum { KNEE_BATCH_FACTORS = 10 };
struct knee_roofline {
    double product_s, flops; /* all of them */
    double judged_s, judged_flops, judged_bytes;
    double peak_flops; /* of what is judged, per second */
    double reach_s;    /* what these shapes take, by the operation model of knee plan, and not
                          more than they took */
    double large_s;    /* what the same FLOPs take in a very large batch; NaN: not known */
    double scaled_s[KNEE_BATCH_FACTORS]; /* ... in one 2^i times as large as it is */
    double optimizer_s;    /* kernels of the optimizer's step: as long whatever the batch */
    bool optimizer_counts; /* that is enough to be named */
    double rows; /* of the batch, in most products (examples times positions); NaN: mixed */
    double mend; /* examples take within a quarter as little as they can in a batch so many times
                    as large; NaN: not known */
    double mended_s; /* what a step's examples take then */
};

struct knee_diagnosis {
    struct knee_step step; /* mean over ranks and complete steps */
    double steps;          /* complete ones, per rank */
    struct knee_step_spread spread;
    double ratio, efficiency, overlap; /* of the mean; overlap NaN without communication */
    double lowest_ratio, highest_ratio;
    double load_share; /* of host step time spent waiting for batches; NaN: no steps */
    bool split;        /* wait and transfer are told apart on all ranks ... */
    bool bounded;      /* ... as a lower and an upper bound: members are missing */
    enum knee_suspect suspect;
    double share[KNEE_SUSPECTS]; /* of the step, each */
    unsigned gaps;
    struct knee_roofline roofline;
    double small_shapes; /* of the step: what a large batch would save in products and optimizer,
                            where compute is far below the roofline; of
                            share[KNEE_SUSPECT_TINY_BATCH] the part that is not launches */
    size_t late_ranks;   /* first so many rows of account->stragglers are the late ones */
    size_t slow_wire;    /* the collective that loses most against what is expected, at least
                            KNEE_FAR_SLOWER times as slow; SIZE_MAX: none */
    double wire_slowdown, wire_bytes_per_s; /* of it: times, and what it reaches (bus) */
    double punctual_step_s, wired_step_s;   /* the step with nobody late; with a wire as expected */
    struct knee_prediction prediction;      /* levers and cost at this step */
    size_t lever;                           /* row of its levers, SIZE_MAX: none */
    char closed_because[160]; /* why levers are from closed forms although there is a timeline; "":
                                 they are replayed, or nobody tried */
};

/* `given` may hold what the user says beside the trace (price, cluster, params, critical batch); it
 * need not be complete. Free with knee_diagnosis_release(). */
knee_status knee_diagnose(const struct knee_account *account, const struct knee_job *given,
                          const struct knee_alloc *alloc, struct knee_diagnosis *out,
                          struct knee_err *err);
void knee_diagnosis_release(struct knee_diagnosis *diagnosis);

/* A recording with more pieces of GPU work, or more bytes, is replayed only when that is asked for.
 */
#define KNEE_LEVERS_MOST_WORK  500000
#define KNEE_LEVERS_MOST_BYTES 800000000

/* Replays the account's timeline, whose traces must have been read with options.host, with the
 * standard table of changes, and puts what that says in place of the closed forms' levers. Where it
 * cannot, they stay and closed_because says why: that is no failure. */
knee_status knee_replay_levers(const struct knee_account *account, bool also_large,
                               const struct knee_alloc *alloc, struct knee_diagnosis *diagnosis,
                               struct knee_err *err);

/* What the examples of today's step would take in a batch 2^doublings times as large, by the
 * products' shapes; needs roofline.large_s. */
double knee_batch_step_s(const struct knee_diagnosis *diagnosis, int doublings);

/* Fills in what each collective should take on a cluster. Groups are taken to fill nodes. */
void knee_expect_collectives(struct knee_account *account, const struct knee_cluster *cluster);
/* The same on a node of the GPUs that the traces name, for groups that fit into it. */
void knee_expect_of_gpus(struct knee_account *account);
/* The same for a roll call, by the cluster that the user names. */
void knee_expect_rollcall(struct knee_roll_answer *answer, const struct knee_cluster *cluster);

/* Two recordings of the same job, per step and rank. */
enum { KNEE_MOVERS = 16 };
struct knee_mover { /* a kernel name whose time changed */
    const char *name;
    enum knee_span_kind kind;
    double before_s, after_s; /* per step and rank */
    double before_calls, after_calls;
};

/* In what two recordings differ beside their steps: then they do not compare like with like. */
enum knee_difference {
    KNEE_DIFFER_WORLD = 1 << 0,
    KNEE_DIFFER_GPU = 1 << 1,
    KNEE_DIFFER_TRAFFIC = 1 << 2, /* bytes of the collectives of a step, by more than 5 % */
    KNEE_DIFFER_KERNELS = 1 << 3, /* kernels a step, by more than 5 % */
    KNEE_DIFFER_DTYPE = 1 << 4,   /* what most of the bytes travel as */
    KNEE_DIFFER_STEPS = 1 << 5,   /* how many complete steps there are, twofold or more */
};

struct knee_collective_mover { /* a kind of collective whose time changed */
    enum knee_op op;
    int64_t bytes; /* -1: not known */
    int32_t group_size;
    const char *description;
    double before_s, after_s; /* per step and rank, waiting included */
    double before_wait_s, after_wait_s;
    double before_calls, after_calls;
};

struct knee_comparison {
    struct knee_step before, after;
    double change, share_of_before; /* of the step: seconds, and that over before */
    bool as_before;                 /* the change is not worth a word */
    double noise_s;        /* standard error of the difference; NaN: too few steps to tell */
    double chance_s;       /* twice that: what steps differ by chance */
    bool significant;      /* more than that, or the noise is not known */
    unsigned differs;      /* enum knee_difference */
    enum knee_label label; /* that changed most */
    double share;          /* of the change in the step */
    double late_s; /* what the late ranks do longer than the others, a step: after less before */
    bool late_makes_it; /* half of the change or more */
    /* The longer side's rank on which `label` is much larger than on the others, and how much a
     * step; SIZE_MAX: none. */
    size_t largest_rank;
    double largest_s;
    struct knee_mover movers[KNEE_MOVERS]; /* most change first */
    size_t mover_count;
    struct knee_collective_mover collectives[KNEE_MOVERS]; /* most change first */
    size_t collective_count;
    const char *before_dtype, *after_dtype; /* what most bytes travel as; "": not known */
};

/* KNEE_SYSTEM when out of memory. Names are borrowed from the accounts' traces. */
knee_status
knee_compare(const struct knee_account *before, const struct knee_diagnosis *before_diagnosis,
             const struct knee_account *after, const struct knee_diagnosis *after_diagnosis,
             const struct knee_alloc *alloc, struct knee_comparison *out, struct knee_err *err);

KNEE_PUBLIC_END
#ifdef __cplusplus
}
#endif
#endif

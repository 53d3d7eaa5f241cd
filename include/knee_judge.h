/* SPDX-License-Identifier: MIT */
/* Judge: knee, changes, walls, cost, verdict. The rules of knee.h for every call hold here too;
 * these structs may change with the minor version. */
#ifndef KNEE_JUDGE_H
#define KNEE_JUDGE_H

#include "knee_predict.h"
#include "knee_rollcall.h"

/* ---- Judge: knee, changes, walls, cost, verdict ------------------------------------------- */

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

/* The uncertainty of closed forms for a job. */
struct knee_closed_doubt {
    struct knee_sure compute; /* factors on it; 1 where the user gave it */
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
    KNEE_SUSPECT_COPY,    /* exposed copies */
    KNEE_SUSPECT_IDLE,    /* the GPU has work, and does not start it */
    KNEE_SUSPECT_UNFUSED, /* elementwise kernels that a compiler would fuse */
    KNEE_SUSPECTS
};
const char *knee_suspect_name(enum knee_suspect suspect);

enum knee_wall { KNEE_WALL_NONE, KNEE_WALL_SYSTEMS, KNEE_WALL_STATISTICAL };
const char *knee_wall_name(enum knee_wall wall);

/* What a change does to what is computed. */
enum knee_numerics {
    KNEE_NUMERICS_SAME,
    KNEE_NUMERICS_ROUNDING, /* of sums, as bf16 does */
    KNEE_NUMERICS_TRAINING, /* the run learns otherwise: never the first advice */
};
const char *knee_numerics_name(enum knee_numerics numerics); /* "same" */

/* Where the step after a change is from. */
enum knee_priced { KNEE_BY_FORM, KNEE_BY_REPLAY, KNEE_BY_RECORDING };

/* What one change would buy at the verdict's worker count. */
struct knee_lever {
    const char *name;   /* "overlap" */
    const char *change; /* "eta 1" */
    const char *words;  /* "bf16 gradients": a noun for tables */
    const char *action; /* what to do, as the start of a sentence, in lower case */
    const char *how;    /* what to type; "" where there is no such thing */
    const char *risk;   /* what it costs or risks, in words */
    unsigned kind;      /* of enum knee_lever_kind, for those who choose among them */
    enum knee_numerics numerics;
    enum knee_priced by;
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
    size_t lever; /* the change to make, a row of `levers`; SIZE_MAX: none */
};

enum knee_note_kind {
    KNEE_NOTE_HALF_EXAMPLE, /* local batch below one example from `value` workers on */
    KNEE_NOTE_OVERHIDDEN,   /* hidden fraction hides more than there is compute, from `value` on */
    KNEE_NOTE_LATENCY,      /* latency, not bandwidth, is most of the exchange from `value` on */
    KNEE_NOTE_MEASURED_AT,  /* measured times are taken to be for `value` workers */
    KNEE_NOTE_NO_ENCODE,    /* compression without the cost of encoding: params unknown */
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
    bool recomputed;       /* zero3_workers hold it with full recomputation alone */
    double zero1_workers;  /* that share the optimizer's states so that it fits; NaN: none do */
    double zero3_workers;  /* that share everything; NaN: none do */
};

#define KNEE_LEVERS_MAX 28

struct knee_prediction {
    struct knee_job job;     /* completed */
    struct knee_terms terms; /* what the closed forms took: those of the job, or changed ones */
    struct knee_row *rows;
    size_t row_count;
    struct knee_row at; /* the row that verdict, changes, walls and cost describe */
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
    const struct knee_solution *solution; /* of --solve; NULL: not asked. Borrowed */
    const struct knee_alloc *alloc;
};

/* The terms after a set of changes, names joined by '+'. Unknown changes and those that do not
 * apply have no effect. Returns the number of GPUs afterwards. */
double knee_levers_pull(const struct knee_prediction *before, const char *set,
                        struct knee_terms *terms);

/* Completes a copy of `job` and answers it. Free with knee_prediction_release(). */
knee_status knee_predict(const struct knee_job *job, const struct knee_alloc *alloc,
                         struct knee_prediction *out, struct knee_err *err);
/* The same with changed terms at `workers` GPUs: the effect of a set of changes. `out` may be
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
                KNEE_GAP_ONE_WORKER = 1 << 16, /* the job says that it has no other */
                KNEE_GAP_NO_COMPUTE = 1 << 17, /* next to none, but communication: R says nothing */
                KNEE_GAP_QUICK_WIRE = 1 << 18, /* one rank: both long and short collectives */
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

/* A copy that reaches so much of the host's link has all of it. */
#define KNEE_NEAR_LINK 0.8

/* A step this much longer than the median one stands out, and what made it is named. */
#define KNEE_STANDS_OUT 1.2

/* Above this R the compute that is recorded is not a training step's. */
#define KNEE_HIGHEST_RATIO 1000

/* Those that a better recording fixes. */
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
    /* Set from the above: shares of compute and of the peak, rates. NaN: not known. */
    double of_compute, of_peak, shapes_of_peak, large_of_peak, reached_of_peak;
    double flops_per_s, judged_flops_per_s, flops_per_byte;
};

/* What the GPUs draw, by what the timeline shows them doing and data/power.csv. */
struct knee_trace_energy {
    double gpu_w;      /* mean of one GPU; NaN: the GPU is not known, or ranks share one */
    double server_w;   /* with its share of the server, and losses of its power supply */
    double gpu_step_j; /* one GPU, one step */
    double product, memory, wait, idle; /* shares of the time */
    bool measured;                      /* watts of such a GPU; else scaled from `from` */
    const char *from; /* the GPU that was measured; static; NULL: nothing is known */
};

/* What was recorded. Only a training step gets advice for training. */
enum knee_recorded {
    KNEE_RECORDED_TRAINING,
    KNEE_RECORDED_TINY,       /* less than 1 ms of GPU work, or 20 pieces: nothing is concluded */
    KNEE_RECORDED_CAPTURE,    /* the capture of a CUDA graph, not its execution */
    KNEE_RECORDED_FIRST_STEP, /* code is loaded or compiled */
    KNEE_RECORDED_SERVING,
    KNEE_RECORDED_FORWARD, /* no backward pass and no optimizer */
};
const char *knee_recorded_name(enum knee_recorded recording); /* "first step" */

/* What the first line says. */
enum knee_headline {
    KNEE_SAYS_RECORDING, /* what was recorded; there is nothing to advise */
    KNEE_SAYS_CHANGE,    /* the change in row `lever` */
    KNEE_SAYS_HEALTHY,   /* nothing gains KNEE_WORTH_A_CHANGE, and the GPUs compute */
    KNEE_SAYS_REMAINDER, /* nothing gains it, but time is lost all the same */
};

/* Copies of one kind, per step and rank. */
struct knee_copy_share {
    double count, total_s, exposed_s;
    double bytes, bytes_per_s; /* NaN: not recorded */
};

/* Kernels of one kind, per step and rank. */
struct knee_kernel_share {
    double count, total_s;
    double short_s; /* of it in kernels too short to fill the GPU */
};

/* A stretch in which a GPU does nothing, and what the host did in it. */
struct knee_idle_gap {
    double length_s;
    enum knee_label label;
    const char *call; /* that the host was in for most of it; NULL: none is recorded */
    const char *next; /* the kernel that ended it; NULL: none did */
    double call_s;    /* the part of the gap that lies in the call */
    /* Of rows only: */
    int64_t rank, step;              /* step: its number; -1: none is marked */
    double at_s;                     /* from the start of the step, or of the recording */
    int64_t start_ns, end_ns;        /* on the rank's own clock */
    const char *annotation, *module; /* around the host's work there; NULL: none is recorded */
};
enum { KNEE_IDLE_GAPS = 16 };
struct knee_idle_gaps {
    struct knee_idle_gap rows[KNEE_IDLE_GAPS]; /* longest first */
    size_t count;
};

/* One rank alone shows waiting where the same message, or a larger one, takes much less at another
 * place: the difference is not the wire. */
struct knee_lone_wait {
    double least_s;         /* per step, at least; 0: nothing shows any */
    int64_t bytes;          /* of the call that shows most of it ... */
    double long_s, short_s; /* ... what it takes there, and what it takes at most on the wire ... */
    int64_t short_bytes;    /* ... as a message of this size shows */
};

/* Whose words advice is given in. */
enum knee_program {
    KNEE_PROGRAM_TORCH,
    KNEE_PROGRAM_CUDA, /* recorded with nsys, without a kernel of PyTorch's */
    KNEE_PROGRAM_OTHER,
};

struct knee_diagnosis {
    struct knee_step step; /* mean over ranks and complete steps */
    double steps;          /* complete ones, per rank */
    struct knee_step_spread spread;
    double ratio, efficiency, overlap; /* of the mean; overlap NaN without communication */
    double lowest_ratio, highest_ratio;
    double load_share; /* of host step time spent waiting for batches; NaN: no steps */
    bool split;        /* wait and transfer are separate on all ranks ... */
    bool bounded;      /* ... as a lower and an upper bound: members are missing */
    enum knee_suspect suspect;
    double share[KNEE_SUSPECTS]; /* of the step, each */
    unsigned gaps;
    struct knee_roofline roofline;
    struct knee_trace_energy energy;
    double small_shapes; /* of the step: what a large batch would save in products and optimizer,
                            where compute is far below the roofline; of
                            share[KNEE_SUSPECT_TINY_BATCH] the part that is not launches */
    size_t late_ranks;   /* first so many rows of account->stragglers are the late ones */
    size_t slow_wire;    /* the collective that loses most against what is expected, at least
                            KNEE_FAR_SLOWER times as slow; SIZE_MAX: none */
    double wire_slowdown, wire_bytes_per_s; /* of it: times, and what it reaches (bus) */
    double punctual_step_s,
        wired_step_s; /* the step without late ranks; with a link as fast as expected */
    enum knee_recorded recording;
    bool decodes, prefills;     /* of a server */
    double cold_s, recording_s; /* of a first step: what loads code, and of how much */
    bool cold_compiles;         /* it is Python that takes so long, not a launch */
    bool cold_loads;            /* ... or the first batch */
    double micro_batches;       /* of a step: passes back per optimizer step; 0: not known */
    bool loads_ahead;           /* batches come from worker processes, and still too late */
    enum knee_program program;
    struct knee_copy_share copies[KNEE_COPY_KINDS];
    struct knee_kernel_share works[KNEE_KERNEL_KINDS];
    double host_bytes_per_s;     /* of the link to the host, by the GPU's preset; NaN: not known */
    double spent_s[KNEE_SPENTS]; /* per step */
    struct knee_idle_gap gap;    /* the longest */
    struct knee_lone_wait lone;
    bool profiled_host;     /* host-bound: the profiler itself makes such steps longer */
    double unprofiled_s;    /* the step without it, by a replay; 0: as recorded */
    double handing_over_s;  /* what the host takes for a step's launches without it */
    struct knee_job inputs; /* what was given; the hardware with what the GPU's preset says */
    double workers;         /* GPUs of the job */
    struct knee_lever levers[KNEE_LEVERS_MAX]; /* most gain first */
    size_t lever_count;
    struct knee_cost cost;
    enum knee_headline headline;
    size_t lever;             /* the row that is advised, SIZE_MAX: none */
    char closed_because[128]; /* why changes are priced by closed forms although there is a
                                 timeline; "": they were replayed, or no replay was tried */
};

/* `given` may hold what the user gives in addition to the trace (price, cluster, params, critical
 * batch); it need not be complete. */
knee_status knee_diagnose(const struct knee_account *account, const struct knee_job *given,
                          const struct knee_alloc *alloc, struct knee_diagnosis *out,
                          struct knee_err *err);

/* What the sentences of a diagnosis also need, ready to be printed. */
struct knee_trace_facts {
    enum knee_label remainder; /* the largest label but compute ... */
    double remainder_share;    /* ... and its share of the step, as those that follow */
    double compute_share, exposed_share, busy_share, busy_s;
    double kernels, unfused_share;   /* a step; of GPU time: elementwise and norm kernels */
    double spent_share[KNEE_SPENTS]; /* of GPU time; of wide products with attention */
    double kind_share[KNEE_KERNEL_KINDS];
    bool compiled;                 /* torch.compile made a good part of the kernels */
    double device_share;           /* device-to-device copies, exposed */
    enum knee_copy_kind copy;      /* the copies that the advised change is about, else the
                                      most exposed ones */
    bool copy_at_link, gap_counts; /* they have all the link; the longest gap is worth a word */
    double excess_s;               /* what the first late rank does longer, a step; 0: nothing */
    double batch_gain;             /* of a larger local batch, per example */
    double before_s;               /* the step that gains are of: without the profiler, if told */
    bool worth_money;              /* the advised change saves a share of the day that counts */
    size_t work;                   /* kernels and copies on all ranks */
    bool matched;                  /* every collective was found on all its ranks */
};
struct knee_trace_facts knee_trace_facts_of(const struct knee_account *account,
                                            const struct knee_diagnosis *diagnosis);

/* One rank's mean step, and what the others lose by it. */
struct knee_rank_step {
    int64_t rank;
    struct knee_step step; /* of its complete steps; of its window where there are none */
    double delays_s;       /* by how much others wait for it, a step */
    bool late, split;
};
/* All of them, those that delay others most first; KNEE_SYSTEM when out of memory. The caller
 * frees *out. */
knee_status knee_rank_steps(const struct knee_account *account,
                            const struct knee_diagnosis *diagnosis, const struct knee_alloc *alloc,
                            struct knee_rank_step **out, struct knee_err *err);

/* The longest gaps of all ranks that are above 1 % of the step. */
void knee_list_idle_gaps(const struct knee_account *account, double step_s,
                         struct knee_idle_gaps *out);

/* A recording with more pieces of GPU work, or more bytes, is replayed only when that is asked for.
 */
#define KNEE_LEVERS_MOST_WORK  500000
#define KNEE_LEVERS_MOST_BYTES 800000000

/* Replays the account's timeline, whose traces must have been read with options.host, with the
 * standard table of changes, and replaces the prices of the closed forms. When it cannot, those
 * prices stay and closed_because holds the reason; the call still succeeds. */
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
struct knee_mover { /* a kernel name, or an operation and its shapes, whose time changed */
    const char *name;
    size_t length;     /* of what counts in it: the kernel's name or the operation's ... */
    const char *shape; /* ... and what follows an operation: "[8,512]x[512,64]"; "": not recorded */
    enum knee_span_kind kind;
    double before_s, after_s; /* per step and rank */
    double before_calls, after_calls;
};

/* How two recordings differ apart from their steps; if they do, the comparison is not fair. */
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

struct knee_part_change { /* one label of the step, or the whole step */
    const char *name;
    double before_s, after_s, change_s;
    double share; /* of all that labels changed, up or down: these sum to 1; NaN: the step */
    bool most;    /* the label that the sentence names */
};

struct knee_comparison {
    struct knee_step before, after;
    struct knee_part_change parts[KNEE_LABELS + 1]; /* the last is the step */
    size_t part_count;
    double before_kernels, after_kernels; /* a step */
    double change, share_of_before;       /* of the step: seconds, and that over before */
    bool as_before;                       /* the change is not worth a word */
    double noise_s;        /* standard error of the difference; NaN: too few steps to tell */
    double chance_s;       /* twice that: what steps differ by chance */
    bool significant;      /* more than that, or the noise is not known */
    unsigned differs;      /* enum knee_difference */
    enum knee_label label; /* that changed most */
    double share;          /* of all that labels changed */
    double late_s; /* what the late ranks do longer than the others, a step: after less before */
    bool late_makes_it;   /* half of the change or more ... */
    double late_excess_s; /* ... what the first of them does longer than the others, a step */
    /* The longer side's rank on which `label` is much larger than on the others, and how much a
     * step; SIZE_MAX: none. */
    size_t largest_rank;
    double largest_s;
    struct knee_mover movers[KNEE_MOVERS]; /* most change first */
    size_t mover_count;
    struct knee_mover operations[KNEE_MOVERS]; /* likewise; none where the host is not recorded */
    size_t operation_count;
    struct knee_collective_mover collectives[KNEE_MOVERS]; /* most change first */
    size_t collective_count;
    const char *before_dtype, *after_dtype; /* what most bytes travel as; "": not known */
};

/* KNEE_SYSTEM when out of memory. Names are borrowed from the accounts' traces. */
struct knee_judged_run {
    const struct knee_account *account;
    const struct knee_diagnosis *diagnosis;
};
knee_status knee_compare(struct knee_judged_run before, struct knee_judged_run after,
                         const struct knee_alloc *alloc, struct knee_comparison *out,
                         struct knee_err *err);

#endif

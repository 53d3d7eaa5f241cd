/* SPDX-License-Identifier: MIT */
/* The parts of the judge, each a table of rules or a search, and what they hand each other. */
#ifndef KNEE_JUDGE_JUDGE_H
#define KNEE_JUDGE_JUDGE_H

#include "knee_judge.h"

/* Kinds of changes, so that a rule can prefer some of them. */
enum knee_lever_kind {
    KNEE_LEVER_WORKERS = 1 << 0, /* more of them */
    KNEE_LEVER_FEWER = 1 << 1,   /* or fewer */
    KNEE_LEVER_BATCH = 1 << 2,
    KNEE_LEVER_OVERLAP = 1 << 3,
    KNEE_LEVER_COMPRESS = 1 << 4,
    KNEE_LEVER_SYNC = 1 << 5,
    KNEE_LEVER_NETWORK = 1 << 6, /* algorithm, another axis, the link as it should be */
    KNEE_LEVER_INPUT = 1 << 7,
    KNEE_LEVER_STRAGGLER = 1 << 8,
    KNEE_LEVER_HOST = 1 << 9,
    KNEE_LEVER_COPY = 1 << 10,
    KNEE_LEVER_HARDWARE = 1 << 11, /* costs money */
    KNEE_LEVER_FUSE = 1 << 12,
};

/* The last count at the tolerance or better; NaN: none up to KNEE_SEARCH_MAX. */
double knee_tolerance_workers(const struct knee_terms *terms, double tolerance);

/* The same of any curve over workers, on a wider grid than knee_find()'s. */
double knee_last_workers(double (*of)(const void *ctx, double workers), const void *ctx,
                         double most_workers, double least);

/* The intervals of the closed forms: of a completed job, of one row and of the knee. */
void knee_doubt_init(const struct knee_job *job, struct knee_closed_doubt *out);
void knee_doubt_row(const struct knee_terms *terms, const struct knee_closed_doubt *doubt,
                    struct knee_row *row);
void knee_doubt_knee(const struct knee_terms *terms, const struct knee_closed_doubt *doubt,
                     double tolerance, struct knee_knee *knee);

/* Weights, gradients and optimizer states of so many parameters on one GPU. */
double knee_unsharded_bytes(double params);

void knee_find(const struct knee_terms *terms, double tolerance, struct knee_knee *out,
               double *quality_workers);

/* What changes need to know in addition to the terms of the closed forms. NaN: not known. */
struct knee_lever_facts {
    double params, bytes_per_param;
    double gradient_bytes; /* before compression; 1 where only their time is known */
    double width;          /* of the model */
    double flops_per_s, memory_bytes_per_s, node_bytes_per_s, gpus_per_node;
    bool link_known; /* else there is only what communication took */
    double tolerance, limit_workers, knee_workers;
    unsigned barred; /* kinds of changes that do not apply */
};
struct knee_lever_facts knee_lever_facts_of(const struct knee_job *job,
                                            const struct knee_knee *knee);

/* Fills the array, which has room for KNEE_LEVERS_MAX, with the changes that the closed forms give
 * at the row `at`, largest gain first. Returns their number. */
size_t knee_levers(const struct knee_terms *terms, const struct knee_lever_facts *facts,
                   const struct knee_row *at, struct knee_lever *levers);
void knee_levers_sort(struct knee_lever *levers, size_t count);
/* The first advice: the row with the most gain among those that are safe and need no hardware, else
 * the best of hardware, else the best of those that change training; kinds in `barred` are left
 * out. SIZE_MAX: none gains `least`. */
size_t knee_levers_best(const struct knee_lever *levers, size_t count, unsigned barred,
                        double least);
/* A row of the table of changes without numbers: by name; by the name of its row in the replay's
 * standard table (false: there is none). */
struct knee_lever knee_change_named(const char *name);
bool knee_change_replayed(const char *row, struct knee_lever *out);
/* A row of a replay in words ("bf16 gradients"), and what it does to what is computed. */
void knee_change_words(const char *row, struct knee_text *text);
enum knee_numerics knee_change_numerics(const char *row, bool changes_training);

/* What gain counts for ranking: time to quality where that is known. */
double knee_lever_gain(const struct knee_lever *lever);
/* Dollars for the same work after the change, over those before on `workers` GPUs. */
double knee_lever_cost(const struct knee_lever *lever, double workers);
/* It gains KNEE_WORTH_A_CHANGE, needs no other hardware and keeps what is learned. */
bool knee_lever_is_advice(const struct knee_lever *lever);
/* The step that changes are compared with: as recorded, or without the profiler where that is known
 * to be shorter. */
double knee_step_before_s(const struct knee_diagnosis *d);

/* The row of the rule table that holds for R. */
const struct knee_regime *knee_regime_of(double ratio);

/* The mean over the complete steps of one rank, and how many those are: 1 at least, the whole
 * window where there are no steps. */
struct knee_mean_step {
    struct knee_step step;
    double steps;
};
void knee_mean_steps(const struct knee_account *account, struct knee_mean_step *means);

/* KNEE_SYSTEM when out of memory. */
knee_status knee_step_spread_of(const struct knee_account *account, const struct knee_alloc *alloc,
                                struct knee_step_spread *out, struct knee_err *err);

/* Adds the changes whose gain comes from closed forms and from the recording. Call it after all
 * measurements of the diagnosis are done. */
void knee_diagnosis_levers(const struct knee_account *account, const struct knee_job *given,
                           struct knee_diagnosis *diagnosis);
/* Sorts the changes and chooses the headline and the advised change. */
void knee_diagnosis_choose(struct knee_diagnosis *diagnosis);

/* Parts of what is measured. */
void knee_recognise_recording(const struct knee_account *account, struct knee_diagnosis *out);
void knee_share_work(const struct knee_account *account, struct knee_diagnosis *out);
void knee_find_longest_gap(const struct knee_account *account, struct knee_diagnosis *out);
/* The call into the driver that the host was in from from_ns to to_ns. */
void knee_find_gap_call(const struct knee_trace *trace, int64_t from_ns, int64_t to_ns,
                        struct knee_idle_gap *gap);
/* The collectives of an account whose sizes are known; free `kinds` with the account's allocator.
 * False: no memory. */
struct knee_wire {
    struct knee_wire_kind *kinds;
    size_t count;
};
bool knee_wire_init(struct knee_wire *wire, const struct knee_account *account);
/* An upper bound on the wire time of a kind of collective: from its fastest call, and from that of
 * larger messages too. NaN: not known. */
double knee_quickest_s(const struct knee_collective_account *c);
double knee_wire_bound_s(const struct knee_wire *wire, const struct knee_collective_account *c);
/* True if some collective is so fast that the transport cannot be a socket. */
bool knee_has_quick_calls(const struct knee_account *account);
/* Bytes that a rank's collectives move in a step. */
double knee_step_traffic(const struct knee_account *account,
                         const struct knee_diagnosis *diagnosis);
double knee_step_kernels(const struct knee_diagnosis *d);
/* How long one rank waits at least. False: no memory. */
bool knee_find_lone_wait(const struct knee_account *account, struct knee_diagnosis *out);

/* Fills roofline from the products of the traces; `gpu`: row of the presets, -1: not known. Needs
 * step. */
void knee_find_roofline(const struct knee_account *account, int gpu, struct knee_diagnosis *out);

/* Fills energy; needs step, gaps, works and copies. */
void knee_find_energy(int gpu, struct knee_diagnosis *out);

/* Sets half_empty_s and graphs_help. */
struct knee_where;
void knee_judge_where(const struct knee_diagnosis *diagnosis, struct knee_where *where);

/* Sets slow_wire and what belongs to it; needs step and steps. False: no memory. */
bool knee_find_slow_wire(const struct knee_account *account, struct knee_diagnosis *diagnosis);

/* A smaller share of a step is not a bottleneck; the least gain of a change that is advised; the
 * least change of a step that is reported. */
#define KNEE_NO_BOTTLENECK 0.02
#define KNEE_WORTH_IT      0.01
#define KNEE_UNFUSED_SHOWN 0.1 /* of GPU time in elementwise and norm kernels: worth a word */
#define KNEE_WORTH_A_WORD  0.005

/* A change of a recorded job is advised from this gain on; a job without one is healthy when it
 * computes for so much of its step at such an efficiency. No gain above KNEE_MOST_TIMES is
 * promised: it says that something else than a training step was recorded. */
#define KNEE_WORTH_A_CHANGE     0.05
#define KNEE_HEALTHY_EFFICIENCY 0.95
#define KNEE_HEALTHY_COMPUTE    0.9
#define KNEE_MOST_TIMES         20
#define KNEE_LAUNCH_BOUND       0.15 /* of the step: waiting for launches */
/* Dollars below this share of the day's are not worth a word. */
#define KNEE_WORTH_MONEY 0.01

/* Fill one part each. */
void knee_judge_walls(struct knee_prediction *prediction, double quality_workers);
/* Cost of a step, a day and a run of `run` steps, at a row. */
struct knee_cost knee_cost_of(const struct knee_row *at, double run);
void knee_judge_suspect(struct knee_prediction *prediction);

#endif

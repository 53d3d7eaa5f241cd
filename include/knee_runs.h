/* SPDX-License-Identifier: MIT */
/* Runs: measured training steps, and how well they are predicted. What knee.h says of every call
 * holds here; these structs may change with the minor version. */
#ifndef KNEE_RUNS_H
#define KNEE_RUNS_H

#include "knee_plan.h"

/* ---- Runs: measured training steps, and how well they are predicted ------------------------ */

#define KNEE_RUN_TEXT 96

/* One measured run. Fields as in the columns of the file; texts are cut at KNEE_RUN_TEXT. */
struct knee_measured_run {
    char id[KNEE_RUN_TEXT], source[KNEE_RUN_TEXT], gpu[KNEE_RUN_TEXT], curve[KNEE_RUN_TEXT],
        model[KNEE_RUN_TEXT];
    struct knee_shape shape;
    struct knee_plan plan;
    struct knee_platform platform;
    enum knee_phase phase;       /* what step_s is the time of */
    double step_s, memory_bytes; /* measured; NaN: not */
    double weight;               /* in fits; 1 */
    bool full_config;            /* the file says that nothing is missing */
    bool same_job;               /* `curve` is one job at several counts */
    char skipped[KNEE_RUN_TEXT]; /* why it cannot be expressed; empty: it can */
    char assumed[KNEE_RUN_TEXT]; /* what was missing and taken as usual */
};

struct knee_runs {
    struct knee_measured_run *run;
    size_t count;
    const struct knee_alloc *alloc;
};
void knee_runs_release(struct knee_runs *runs);

/* Reads a table of runs: CSV with a header (unknown columns are ignored), or JSON lines of timed
 * phases (see docs/evidence/validate.md). `gpu` is for rows that do not name one; NULL: none. A row
 * that cannot be expressed is kept with `skipped` set. KNEE_INPUT when the text is not such a
 * table. */
knee_status knee_runs_read(struct knee_named_text from, const char *gpu,
                           const struct knee_alloc *alloc, struct knee_runs *out,
                           struct knee_err *err);

struct knee_run_result {
    double predicted_s, error; /* predicted / measured - 1; NaN: skipped */
    double predicted_bytes, memory_error;
    double curve_error; /* of E(K) given the smallest count of the curve; NaN: no such */
    double held_out_s, held_out_error; /* predicted without its own source; NaN: not asked */
    double held_out_spread; /* how far off that may be: one standard deviation of its logarithm */
    double fits;            /* probability that it fits */
    double low_s, high_s;   /* where 90 of 100 such runs lie */
    struct knee_sure bytes; /* the same of the memory ... */
    size_t anchor;          /* the run of its curve that E(K) is against; SIZE_MAX: none */
    double measured_efficiency, predicted_efficiency; /* E(K); NaN: an anchor, or none */
    struct knee_sure efficiency;                      /* ... and of E(K) */
    size_t interval_class;                            /* enum knee_band_class: what is known */
};

/* Errors of a group of rows: |error| averaged, its median, the mean of error, shares. */
struct knee_run_errors {
    const char *name; /* borrowed */
    size_t rows;
    double mape, median, bias, within_5, within_10;
};

/* Jobs that ran under several plans: what decisions cost against the fastest plan measured. */
struct knee_run_decisions {
    size_t jobs, pairs;     /* pairs: of plans of one job, measured more than 5 % apart */
    double regret;          /* of taking the plan predicted to be the fastest, mean over jobs */
    double regret_of_three; /* of timing the first three */
    double regret_of_any;   /* of taking any plan that was run */
    double pair_error;      /* of the ratio of two plans' times, measured within 30 %; median */
    double near_best;       /* share of jobs whose best of three is within 3 % of the best */
    double pairs_right;     /* share predicted in the order measured */
};

/* Memory of runs that ran: the share that may fit (probability at least 0.1); the share of those
 * measured that took more than 5 % above what is predicted. */
struct knee_run_room {
    size_t ran, measured;
    double fits, beyond;
};

/* Rows of one class (everything known, something assumed, experts) and the band they should lie in:
 * factors on what is predicted. */
struct knee_run_band {
    const char *name; /* static */
    size_t rows, sources;
    double low, high;
    double covered;          /* share of the rows that lie in it */
    double covered_left_out; /* the same, each source against a band from the other sources */
};
#define KNEE_RUN_BANDS  6
#define KNEE_RUN_DOUBTS 3 /* E(K), everything known; E(K), something assumed; MFU not told */

#define KNEE_GROUPS_MAX 128

struct knee_run_curve {
    const char *name; /* borrowed from the runs */
    size_t rows;
    double anchor_gpus, mape;             /* of E(K) */
    double knee_measured, knee_predicted; /* last count with E >= tolerance */
};

/* Why rows could not be expressed, and how many for each reason; the last one is the rest. */
#define KNEE_RUN_REASONS 32
struct knee_run_reason {
    const char *why; /* borrowed from the runs */
    size_t rows;
};

struct knee_validation {
    const struct knee_runs *runs;   /* borrowed */
    struct knee_run_result *result; /* one per run */
    size_t skipped, skipped_full;   /* of them with a full configuration */
    size_t full;                    /* rows that the file calls fully configured */
    struct knee_run_errors all, dense, moe, full_config, assumed, memory;
    struct knee_run_errors held_out_all, held_out_dense, held_out_moe;
    struct knee_run_errors source[KNEE_GROUPS_MAX], gpu[KNEE_GROUPS_MAX], held_out[KNEE_GROUPS_MAX];
    size_t source_count, gpu_count; /* held_out beside source */
    struct knee_run_curve curve[KNEE_GROUPS_MAX];
    size_t curve_count;
    double curve_mape; /* over the rows of curves, anchors left out */
    size_t curve_rows;
    struct knee_run_decisions decisions;
    struct knee_run_reason reason[KNEE_RUN_REASONS + 1];
    size_t reason_count;
    struct knee_run_room room;
    struct knee_run_band band[KNEE_RUN_BANDS];          /* as shipped, over these rows */
    struct knee_run_band left_out_band[KNEE_RUN_BANDS]; /* made of sources left out; rows 0: none */
    /* The same of E(K), whose factors are for one doubling, and of closed forms whose share of the
     * peak is not told; and of memory. */
    struct knee_run_band doubt[KNEE_RUN_DOUBTS], left_out_doubt[KNEE_RUN_DOUBTS], memory_band;
    const struct knee_alloc *alloc;
};

/* Predicts every run. `changes` as for knee_machine_init(). Free with
 * knee_validation_release(). */
knee_status knee_validate(const struct knee_runs *runs, const struct knee_rates *changes,
                          double tolerance, const struct knee_alloc *alloc,
                          struct knee_validation *out, struct knee_err *err);
void knee_validation_release(struct knee_validation *validation);

/* Fits the shipped constants anew, once per source without that source's rows, and fills the
 * held_out fields. The work can be shared out: source i belongs to part i % parts, and the other
 * sources' fields stay NaN; 0 of 1 does them all. `progress` may be NULL; false ends it early. */
knee_status knee_cross_validate(struct knee_validation *validation, size_t part, size_t parts,
                                bool (*progress)(void *ctx, double share), void *ctx,
                                struct knee_err *err);
/* Puts parts together: `results` are the rows of each part, one part after the other, so
 * parts x runs->count of them. What comes out is what one part alone would have found. */
knee_status knee_cross_validate_merge(struct knee_validation *validation,
                                      const struct knee_run_result *results, size_t parts,
                                      struct knee_err *err);

/* A source that comes out worse than this when it is left out needs a reason. */
#define KNEE_FAR_OFF 0.25

/* For a source (of v->source) that is predicted worse than that from the others alone: how many of
 * its rows are, and what they have that no other source has (software, GPU, precision, experts).
 * false: it is not, or was not asked. */
bool knee_held_out_reason(const struct knee_validation *validation, size_t source,
                          char out[2 * KNEE_RUN_TEXT]);

/* Fits your own profile: factors on a few constants that move the predictions of all runs
 * onto what was measured, drawn towards the shipped ones where the rows do not tell. *out gets
 * those constants for the GPU and profile that most runs have, which go to *platform; its other
 * fields are NaN. */
knee_status knee_calibrate(const struct knee_runs *runs, const struct knee_alloc *alloc,
                           struct knee_rates *out, struct knee_platform *platform,
                           struct knee_err *err);

#endif

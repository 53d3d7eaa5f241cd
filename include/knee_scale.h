/* SPDX-License-Identifier: MIT */
/* Scale: training logs, the curve that runs at several worker counts make, and its forecast. What
 * knee.h says of every call holds here; these structs may change with the minor version. */
#ifndef KNEE_SCALE_H
#define KNEE_SCALE_H

#include "knee_judge.h"
#include "knee_plan.h"

/* ---- Training logs ------------------------------------------------------------------------- */

#define KNEE_TRAIN_TEXT 96

/* One line of a log that speaks of a step. NaN: it does not say. */
struct knee_train_row {
    double step;         /* its number */
    double step_s;       /* seconds of one step */
    double samples;      /* sequences trained on so far */
    double batch;        /* sequences of all workers in this step */
    double tokens_per_s; /* of all workers */
    double loss, eval_loss;
    double stamp_s; /* when the line was written, seconds since 1970 */
    unsigned run;   /* number in knee_train_log.runs */
    bool skipped;   /* the optimiser skipped the step */
};

/* How the seconds of a step were found out. */
enum knee_train_timing {
    KNEE_TIMED_NOT,       /* not at all: only losses */
    KNEE_TIMED_PRINTED,   /* printed per step */
    KNEE_TIMED_ELAPSED,   /* differences of printed elapsed time */
    KNEE_TIMED_RATE,      /* batch over samples or tokens per second */
    KNEE_TIMED_STAMP,     /* differences of the lines' time stamps */
    KNEE_TIMED_BLOCK,     /* seconds of a block of steps over their number */
    KNEE_TIMED_MEAN,      /* a running mean that is printed: a bar's "2.9s/it" */
    KNEE_TIMED_WHOLE_RUN, /* whole run over its steps */
    KNEE_TRAIN_TIMINGS
};
const char *knee_train_timing_name(enum knee_train_timing timing);

/* Lines are all accounted for: used + facts + other text = lines. */
struct knee_train_counts {
    size_t bytes, lines;
    size_t used;        /* lines that gave a row */
    size_t facts;       /* lines that say something about the job */
    size_t duplicates;  /* rows of a step that was there already (two writers, two formats) */
    size_t other_ranks; /* rows of other ranks than the first that spoke */
    size_t unusable;    /* lines that look like a row and have nothing to use */
    size_t cut;         /* lines longer than the reader keeps */
    size_t thinned;     /* rows left out because there were too many; the others stand for them */
    size_t runs;        /* steps that began again: restarts, or several runs in one file */
    size_t left_out;    /* rows of runs that are not like the longest one */
    size_t warm_up;     /* first rows that are not like the rest */
    size_t outliers;    /* rows of more than 1.5 times the median */
};

#define KNEE_TRAIN_RUNS 64

/* Steps from one start to the next: a run of a log that has several. NaN: not known. */
struct knee_train_run {
    double from, to;       /* step numbers */
    double step_s;         /* median */
    double begin_s, end_s; /* time stamps of its first and last row */
    size_t timed;          /* rows with seconds */
    bool used;             /* in the log's own median; the others are of another job or setting */
};

/* Where the wall time of a job went. The parts sum to the wall time. */
enum knee_time_part {
    KNEE_TIME_STEPS,      /* steps that were kept, each as long as the median of its run */
    KNEE_TIME_LOST,       /* steps that were done again after a restart */
    KNEE_TIME_STARTUP,    /* before the first step of a run, and after the last one */
    KNEE_TIME_COMPILE,    /* what the first step took beyond the median */
    KNEE_TIME_CHECKPOINT, /* saving */
    KNEE_TIME_EVALUATION, /* */
    KNEE_TIME_SLOW,       /* steps that took longer than the median */
    KNEE_TIME_GAP,        /* nothing was written, or nothing ran between two jobs */
    KNEE_TIME_HANG,       /* until a timeout ended it */
    KNEE_TIME_PARTS
};
const char *knee_time_part_name(enum knee_time_part part);

/* How a log ended, as far as it says. */
enum knee_train_end_kind {
    KNEE_ENDED_UNKNOWN,
    KNEE_ENDED_WELL,
    KNEE_ENDED_LIMIT,     /* the scheduler's time limit */
    KNEE_ENDED_CANCELLED, /* by a user or the scheduler */
    KNEE_ENDED_HANG       /* a collective timed out */
};
const char *knee_train_end_name(enum knee_train_end_kind kind);

/* Times are seconds since 1970 by the lines' stamps; without a year those of 1970. */
struct knee_train_account {
    double wall_s; /* NaN: the lines have no time stamps */
    double begin_s, end_s;
    double part_s[KNEE_TIME_PARTS];
    double first_step, last_step, saved_step; /* saved_step: of the last checkpoint; NaN: none */
    double lost_steps;                        /* done again */
    double unsaved_steps; /* after the last checkpoint of a job that was stopped */
    double step_s;        /* of its last run */
    size_t starts, saves;
    double gap_s, gap_after; /* the longest gap, and the step before it */
    enum knee_train_end_kind ended;
};

/* One run over several logs, sorted by time: the same parts, with the time between the logs and the
 * steps that a later log did again. What `plan` wants of it are the last four. */
struct knee_run_account {
    struct knee_train_account all;
    size_t logs;         /* with time stamps */
    size_t jobs;         /* that they are of: logs that do not go on from one another */
    size_t stops;        /* unplanned: hangs, cancellations, steps done again */
    double stop_every_s; /* wall time between them; NaN: none */
    double restart_s;    /* start-up and compilation of one start */
    double checkpoint_s; /* one checkpoint blocks for so long; NaN: none was seen */
    double checkpoint_every_s;
    enum knee_time_part worst; /* the largest part except the steps */
};
/* The logs are borrowed; those without time stamps are passed over. */
struct knee_train_log;
void knee_run_account(const struct knee_train_log *const *logs, size_t count,
                      struct knee_run_account *out);

struct knee_train_log {
    char name[KNEE_TRAIN_TEXT];
    const char *format; /* static */
    enum knee_train_timing timing;
    /* What another source in the same log says of the step, where that differs by more than 10 %:
     * evaluations and checkpoints are in it, or it is wrong. NaN: none does. */
    double other_s;
    enum knee_train_timing other_timing;
    double data_s,
        comm_s; /* of a step: waiting for data, exposed exchange; median, NaN: not said */
    struct knee_train_run runs[KNEE_TRAIN_RUNS];
    size_t run_count;
    struct knee_train_account account;
    size_t skipped;    /* steps that the optimiser skipped, of those that were read */
    char host[64];     /* the first node that it names; "" */
    char unpriced[96]; /* an argument that changes the model and is not understood; "" */
    struct knee_train_counts counts;
    struct knee_train_row *rows; /* of the runs that were used, in the order of the log */
    size_t row_count, timed;     /* timed: rows with seconds, warm-up left out */
    double median_s, p95_s;      /* of them */
    double error;                /* of the median, a share: 1.25 sigma / sqrt(timed) */
    double outlier_every;        /* steps from one outlier to the next; NaN: no rhythm */
    double outlier_s;            /* what an outlier costs beyond the median step, on average */
    double outlier_share;        /* of the time of the steps, all of them together */
    bool epochs;                 /* its lines count epochs: a "step" is one */
    bool alternates;             /* every second step is longer: median_s is the mean of both */
    double tokens_per_s;         /* of all workers, median; NaN: not known */
    double tflops;               /* per worker as printed, median; NaN */
    /* What the log says about its job; NaN or empty: nothing. */
    double workers;
    const char *workers_from; /* static: "argument dump", "mesh" ...; "" */
    double batch, micro_batch, seq, params;
    char gpu[KNEE_TRAIN_TEXT], model[KNEE_TRAIN_TEXT];
    struct knee_shape shape; /* from an argument dump or what else was printed; not completed */
    struct knee_plan plan;
    bool has_shape, has_plan; /* layers and hidden size, or a model's name; any degree */
    const struct knee_alloc *alloc;
};

/* Bytes of a log are pushed in pieces of any size; end makes the log of them and frees the reader,
 * as does abandoning it. begin gives NULL when out of memory. KNEE_INPUT when no line of it speaks
 * of a step. */
struct knee_train_reader;
struct knee_train_reader *knee_train_begin(const char *name, const struct knee_alloc *alloc);
void knee_train_push(struct knee_train_reader *reader, const char *data, size_t size);
knee_status knee_train_end(struct knee_train_reader *reader, struct knee_train_log *out,
                           struct knee_err *err);
void knee_train_abandon(struct knee_train_reader *reader);
void knee_train_log_release(struct knee_train_log *log);

/* ---- The curve: steps at several worker counts ---------------------------------------------- */

#define KNEE_SCALE_POINTS 16 /* distinct counts that a fit takes */

/* A measured step. Points of one count and batch are repeats of one another. */
struct knee_scale_point {
    double workers;
    double step_s;
    double batch;   /* units of work in the step: sequences, tokens or images; NaN: not known */
    double error;   /* of step_s, a share of it; NaN: not known */
    double replica; /* workers that share one copy of the model, tp x pp x cp; NaN: 1 */
    size_t repeats; /* runs that it is the mean of; 0 and 1: one */
    double work_s;  /* compute of one rank's step without sharing its GPU; 0: unknown */
};

/* Where the seconds of a step go as workers are added; the terms of the closed forms. With w for
 * the work of one worker, B / K, against that at the smallest count: */
enum knee_scale_term {
    KNEE_SCALE_COMPUTE,   /* w: shrinks with the work */
    KNEE_SCALE_FIXED,     /* 1: once per step, whatever the count */
    KNEE_SCALE_BANDWIDTH, /* (K - 1) / K: the wire of an exchange per step */
    KNEE_SCALE_LATENCY,   /* log2 K: the hops of an exchange over trees per step */
    KNEE_SCALE_HOPS,      /* K - 1: the hops of one round a ring */
    KNEE_SCALE_STRAGGLER, /* w sqrt(2 ln K): the slowest of K */
    KNEE_SCALE_MICRO,     /* w log2 K: exchanges per micro-batch, gathers */
    KNEE_SCALE_TERMS
};
const char *knee_scale_term_name(enum knee_scale_term term);

enum knee_scale_kind {
    KNEE_SCALE_UNKNOWN, /* batches are not known, or one count only */
    KNEE_SCALE_STRONG,  /* one batch at all counts */
    KNEE_SCALE_WEAK,    /* the batch grows with the count */
    KNEE_SCALE_MIXED
};
const char *knee_scale_kind_name(enum knee_scale_kind kind);

/* Of a step, where a trace or a table tells: compute, communication, and what of that is not hidden
 * behind compute. */
struct knee_scale_inside {
    double workers, batch, step_s; /* as in a point; 0 workers: not known */
    double compute_s, comm_s, exposed_s;
};

struct knee_scale_fit {
    struct knee_scale_point points[KNEE_SCALE_POINTS]; /* ascending, repeats merged */
    size_t count;
    enum knee_scale_kind kind;
    bool kind_assumed; /* for want of batches told from step times, or ... */
    bool kind_by_work; /* ... from what a worker computes, where all points know it */
    double noise;      /* spread of repeated runs, a share; NaN: none were repeated */
    double misfit;     /* root mean square of what the terms leave over, a share */
    bool strange;      /* too much of it: the curve is only carried on as a power of the count */
    /* Set by the caller, zeroed by knee_scale_fit(): the largest count of which it is known what a
     * step is made of, and the next smaller one. */
    struct knee_scale_inside inside, inside_before;
    double term_s[KNEE_SCALE_TERMS]; /* at the largest count measured; they sum to about its step */
};

/* One count that was not measured. low_s ... high_s holds the truth nine times in ten on the public
 * curves that docs/evidence/scale.md lists. */
struct knee_scale_forecast {
    double workers, batch;
    double step_s, low_s, high_s;
    double amdahl_s, usl_s; /* what those two laws say, for comparison */
    /* In step_s and high_s: communication that hides behind compute at the counts measured and no
     * longer does here. 0: none is known of. */
    double unhidden_s;
};

/* Merges repeats, tells strong from weak scaling, and fits. KNEE_USAGE for no points, more than
 * KNEE_SCALE_POINTS counts, or values that are not positive and finite. */
knee_status knee_scale_fit(const struct knee_scale_point *points, size_t count,
                           struct knee_scale_fit *out, struct knee_err *err);

/* The step at `workers`. `batch` NaN: as the curve goes on (the same one, or grown with the count).
 * Needs two counts; KNEE_USAGE otherwise, and where a worker would have less than one unit of the
 * batch (see knee_scale_most_workers()). */
knee_status knee_scale_predict(const struct knee_scale_fit *fit, double workers, double batch,
                               struct knee_scale_forecast *out, struct knee_err *err);

/* The largest count that a batch feeds: one unit of it for each copy of the model, or as little as
 * was measured; INFINITY when batches are not known. */
double knee_scale_most_workers(const struct knee_scale_fit *fit, double batch);

/* ---- Batch sizes: the statistical wall, from losses ------------------------------------------ */

#define KNEE_BATCH_RUNS   16
#define KNEE_BATCH_LOSSES 7 /* losses that a critical batch is fitted for */

/* A run at one batch size. */
struct knee_batch_run {
    double batch;
    const struct knee_train_row *rows; /* borrowed */
    size_t row_count;
};

/* steps(B) = S_min (1 + B_crit / B), so that samples to a loss are S_min (B + B_crit): a straight
 * line in B (McCandlish et al. 2018), through the runs, for several losses that all of them reach.
 */
struct knee_batch_fit {
    size_t runs;                /* with losses, of different batches */
    double critical, low, high; /* critical batch; its spread over the losses; NaN: no fit */
    double min_steps;           /* at the lowest common loss */
    double loss;                /* that loss */
    size_t losses;              /* that were fitted, the lowest first: */
    double at_loss[KNEE_BATCH_LOSSES], critical_at[KNEE_BATCH_LOSSES];
    double equal_samples;            /* the most that all runs have seen */
    double small_batch, large_batch; /* smallest and largest of the runs */
    double small_loss, large_loss;   /* their losses after equal_samples */
    double loss_noise;               /* of one such loss, a share */
    bool behind;                     /* the large batch's loss is behind by more than noise */
    bool by_evaluation;              /* evaluation losses, else smoothed training losses */
};
/* `room` has space for two numbers per row of all runs. */
void knee_batch_fit(const struct knee_batch_run *runs, size_t count, double *room,
                    struct knee_batch_fit *out);

/* ---- Verdict --------------------------------------------------------------------------------- */

/* What the model of knee plan says about a measured run. */
struct knee_scale_model {
    double step_s;               /* NaN: not known, see `missing` */
    double low_s, high_s;        /* the model's own uncertainty */
    double mfu_full, mfu_causal; /* of the measured step; NaN without a shape */
    double comm_share;           /* of the model's step: exposed communication of all axes */
    double bubble_share;
    double host_share;
    enum knee_part binding;                  /* the largest overhead */
    struct knee_alike alike[KNEE_ALIKE_MAX]; /* published runs, against the measured step */
    size_t alike_count;
    char missing[KNEE_TRAIN_TEXT * 2];
};

/* Observations made without a trace; NaN: not given. */
struct knee_symptoms {
    double gpu_util, cpu_util, flops_achieved; /* shares */
    double late_rank;
    bool loss_behind;
};
bool knee_symptoms_any(const struct knee_symptoms *symptoms); /* is one given? */

enum knee_standing { KNEE_OPEN, KNEE_CONFIRMED, KNEE_EXCLUDED };
const char *knee_standing_name(enum knee_standing standing);

/* One of the five suspects after all rules were asked. */
struct knee_scale_suspect {
    enum knee_suspect suspect;
    enum knee_standing standing;
    const char *rule;    /* that decided, in words; "" when none did */
    const char *measure; /* what would tell */
};
#define KNEE_SCALE_SUSPECTS KNEE_SUSPECT_LARGE_BATCH

/* The table of rules, for a print of it: which number confirms or excludes what; NULL past the
 * last. */
const char *knee_symptom_rule(size_t row, enum knee_suspect *suspect, enum knee_standing *says);

/* A step that changed for good inside a log. */
struct knee_scale_change {
    bool found;
    double step;              /* the first of the new time; NaN: the log does not number them */
    double before_s, after_s; /* medians */
    double stamp_s;           /* when; NaN */
    bool restart;             /* a run began there */
};

/* One measured run. */
#define KNEE_SLOW_REPEAT 1.25
struct knee_scale_row {
    char source[KNEE_TRAIN_TEXT];
    double workers, step_s, p95_s, batch, replica, error;
    double tokens_per_s;
    double ratio, gamma;                 /* of a trace; NaN: there was none */
    double compute_s, comm_s, exposed_s; /* of a step; 0: not known */
    double work_s;                       /* as in a point */
    const struct knee_train_log *log;    /* NULL: from a table or a trace. Borrowed */
    /* set by knee_scale_judge() */
    const struct knee_scale_row *faster; /* the fastest run of the same count and batch, where this
                                            one takes KNEE_SLOW_REPEAT times as long and is left
                                            out of the curve; NULL: it is part of it */
    double efficiency, speed_up;         /* against the smallest count */
    double rate_per_s;                   /* units of work per second */
    struct knee_scale_model model;
    struct knee_scale_change change;
};

/* Sets row->model for its worker count, batch (NaN: as the plan says) and measured step. */
void knee_scale_model(const struct knee_shape *shape, const struct knee_plan *plan,
                      const struct knee_platform *platform, struct knee_scale_row *row);

/* Two nodes against one: what the network gave, and what it would have to give. The smaller count
 * fits into a node, so that its step is the compute; what was added is the network's, if it is. */
enum knee_network_cause {
    KNEE_NETWORK_UNKNOWN, /* see `missing` */
    KNEE_NETWORK_FINE,    /* 90 % efficiency is reached */
    KNEE_NETWORK_SLOW,    /* it gave less than is needed */
    KNEE_NETWORK_NOT_IT   /* so few bytes in so much time: something else */
};
const char *knee_network_cause_name(enum knee_network_cause cause);

/* What is known in addition to the logs. NaN and -1: not given. */
struct knee_network_facts {
    double params, gradient_bytes, gpus_per_node, accumulate;
    int shard; /* of enum knee_shard */
};

struct knee_scale_network {
    bool asked; /* there are two counts, one of them within a node */
    enum knee_network_cause cause;
    double one_workers, two_workers, nodes;
    double one_s, two_s, ideal_s; /* ideal: what two_workers would take at 100 % */
    double efficiency;
    double params, bytes; /* over each node's link in a step */
    double added_s;
    double have, need_hidden, need_exposed; /* bytes/s; for 90 % efficiency */
    int shard;
    char missing[KNEE_TRAIN_TEXT];
};
/* rows sorted by workers. */
void knee_scale_network(const struct knee_scale_row *rows, size_t count,
                        const struct knee_network_facts *facts, struct knee_scale_network *out);
/* Nominal rates of networks, slowest first; 0 past the last. */
double knee_network_rate(size_t row, const char **name);

/* ---- Jobs of a scheduler: sacct ---------------------------------------------------------------*/

enum knee_sched_state {
    KNEE_SCHED_OTHER, /* pending, or a word that is not known */
    KNEE_SCHED_COMPLETED,
    KNEE_SCHED_FAILED,
    KNEE_SCHED_NODE_FAIL,
    KNEE_SCHED_MEMORY,
    KNEE_SCHED_TIMEOUT,
    KNEE_SCHED_CANCELLED,
    KNEE_SCHED_PREEMPTED,
    KNEE_SCHED_RUNNING,
    KNEE_SCHED_STATES
};
const char *knee_sched_state_name(enum knee_sched_state state);

/* NaN: not printed. */
struct knee_sched_job {
    char id[32];
    enum knee_sched_state state;
    double begin_s, end_s; /* seconds since 1970, as the log's stamps */
    double elapsed_s, nodes, gpus;
    double step_s;              /* of its log, where one was given */
    size_t hosts, hosts_length; /* its node list in `text` of the jobs */
};

struct knee_sched_jobs {
    struct knee_sched_job *row;
    size_t count, room;
    size_t left_out; /* lines past the limit */
    size_t cut;      /* node lists that sacct cut short */
    struct knee_text text;
    const struct knee_alloc *alloc;
};
/* Is it an output of sacct? Its beginning is enough. */
bool knee_is_sacct(const char *data, size_t length);
/* Adds its jobs. Free with knee_sched_release(). */
knee_status knee_sched_read(struct knee_named_text from, struct knee_sched_jobs *out,
                            struct knee_err *err);
void knee_sched_release(struct knee_sched_jobs *jobs);

/* Walks "node[01-03,07],login1". */
struct knee_sched_hosts {
    const char *rest, *piece, *group;
    size_t rest_length, piece_length;
    double last; /* number of the range that was given last; NaN: none yet */
};
void knee_sched_hosts_init(struct knee_sched_hosts *walk, const char *list, size_t length);
/* The next host's name; false: there is none. */
bool knee_sched_host(struct knee_sched_hosts *walk, char *out, size_t size);

#define KNEE_SCHED_HOSTS 8
struct knee_sched_suspect {
    char name[48];
    size_t jobs, failed, slow;
    /* How often as many failures (or slow jobs) would fall on some host by chance. */
    double chance;
    bool by_slow; /* the chance is that of its slow jobs */
};

/* Where the hours of many jobs went. Failed: FAILED, NODE_FAIL and OUT_OF_MEMORY. Slow: the slowest
 * quarter of the jobs of as many nodes whose logs were given. */
struct knee_sched_account {
    size_t jobs, failed, slow, timed;
    size_t by_state[KNEE_SCHED_STATES];
    double node_s, gpu_s; /* gpu_s: NaN where no job prints its GPUs */
    double failed_node_s;
    size_t host_count; /* different ones */
    size_t repeated;   /* of them, those of two jobs or more */
    size_t unnamed;    /* jobs whose node list was cut or is missing */
    struct knee_sched_suspect host[KNEE_SCHED_HOSTS]; /* least likely by chance first */
    size_t suspects;                                  /* of them, those below 5 % */
    size_t listed;
};
/* What the scheduler knows about a log's job: start, end, state and GPUs, by the job's number in
 * the log's name. The job gets the log's step. */
void knee_sched_join(struct knee_sched_jobs *jobs, struct knee_train_log *log);
knee_status knee_sched_account(const struct knee_sched_jobs *jobs, struct knee_sched_account *out,
                               struct knee_err *err);

/* A row from the account of a run's traces: its mean step over ranks and complete steps, which is
 * what knee trace says, with p95 and error over steps; how many workers: as its world size says. */
void knee_scale_row_of_run(const struct knee_account *account, const struct knee_diagnosis *d,
                           const char *source, struct knee_scale_row *row);

/* Is it a table with a column of worker counts and one of steps or rates? Its beginning is enough.
 */
bool knee_scale_is_table(const char *data, size_t length);

/* Where the rows of a table go: rows[room]; *count of them are set on success, and *refused had no
 * count or no step. */
struct knee_scale_table {
    struct knee_scale_row *rows;
    size_t room, *count, *refused;
};

/* Reads such a table (docs/reference/scale.md lists the columns). `curve` chooses among several
 * jobs of a column `curve`; NULL: there must be one. */
knee_status knee_scale_table_read(struct knee_named_text from, const char *curve,
                                  const struct knee_scale_table *out, struct knee_err *err);

#define KNEE_SCALE_ROWS      256
#define KNEE_SCALE_FORECASTS 32

struct knee_scale_question {
    double tolerance;
    double tokens, price_per_hour; /* to train; of one worker. NaN: not asked */
    double at[KNEE_SCALE_FORECASTS];
    size_t at_count; /* 0: twice and four times the largest */
    double at_batch; /* of the counts asked for; NaN: as the curve goes on */
    struct knee_symptoms symptoms;
    struct knee_network_facts network;
};

struct knee_scale_ask {
    struct knee_scale_forecast at;
    double efficiency, speed_up;
    struct knee_sure efficiency_sure, time_sure, cost_sure;
    double time_s, cost; /* of the tokens asked for; NaN */
    char refused[128];   /* why there is none; empty: there is */
};

enum knee_scale_advice {
    KNEE_ADVICE_MEASURE, /* one count and nothing to compare it with */
    KNEE_ADVICE_FINE,    /* one count, as fast as the model says */
    KNEE_ADVICE_SLOW,    /* one count, slower than the model says */
    KNEE_ADVICE_FAST,    /* one count, faster than the model says: look at the inputs */
    KNEE_ADVICE_GROW,    /* the next doubling still pays */
    KNEE_ADVICE_STOP,    /* it does not */
    KNEE_ADVICE_BATCH    /* the statistical wall comes first */
};

struct knee_scale_answer {
    struct knee_scale_question question;
    struct knee_scale_row *rows; /* borrowed; sorted by workers */
    size_t row_count;
    const char *left_out; /* lines on what could not be used; NULL: nothing. Borrowed */
    size_t counted;       /* rows whose worker count is known; they come first */
    bool several;         /* worker counts */
    bool joined;          /* the logs are one run: `account` is theirs */
    struct knee_run_account account;
    struct knee_scale_network network;
    struct knee_sched_account sched; /* jobs 0: no output of sacct was given */
    struct knee_scale_fit fit;
    double base_workers;
    double measured_knee;  /* last measured count with E >= tolerance before it falls below; NaN */
    double predicted_knee; /* by the fit, NaN: not within searched_workers */
    double searched_workers;
    struct knee_scale_ask asks[KNEE_SCALE_FORECASTS];
    size_t ask_count;
    struct knee_scale_suspect suspects[KNEE_SCALE_SUSPECTS];
    struct knee_batch_fit batch;
    enum knee_scale_advice advice;
    enum knee_wall wall;   /* that comes first, as far as is known */
    size_t advice_ask;     /* row of asks that the advice speaks of; SIZE_MAX */
    double advice_share;   /* of its speed-up that is there at the count before it */
    double advice_workers; /* that count */
};

/* Fills everything below `left_out` from rows, question and batch. The batch fit is the caller's:
 * zeroed when there is none. */
knee_status knee_scale_judge(struct knee_scale_answer *answer, struct knee_err *err);

/* ---- Two logs -------------------------------------------------------------------------------- */

struct knee_log_side {
    const struct knee_train_log *log; /* borrowed */
    double step_s;                    /* its median */
    double error_s;                   /* of it, by the spread of blocks of steps; NaN: one step */
    size_t steps;                     /* that the two are of */
};

#define KNEE_LOG_WORD    48
#define KNEE_LOG_CHANGES 48

/* Something that the logs say of their jobs, and not alike. */
struct knee_log_change {
    const char *what; /* static */
    char before[KNEE_LOG_WORD], after[KNEE_LOG_WORD];
};

struct knee_log_comparison {
    struct knee_log_side before, after;
    double work;          /* of a worker in a step, after over before, as far as it is known */
    double longer;        /* the step, a share of the one before */
    double slower;        /* the same at equal work */
    double noise, chance; /* of that share: standard error, and what is taken for chance */
    bool significant;     /* true where the noise is not known */
    struct knee_log_change changes[KNEE_LOG_CHANGES];
    size_t change_count, more_changes;
};

/* Both logs must be timed. */
void knee_compare_logs(const struct knee_train_log *before, const struct knee_train_log *after,
                       struct knee_log_comparison *out);

#endif

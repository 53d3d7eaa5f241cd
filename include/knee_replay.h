/* SPDX-License-Identifier: MIT */
/* Replay: a recorded job run again with something changed. What knee.h says of every call holds
 * here; these structs may change with the minor version. */
#ifndef KNEE_REPLAY_H
#define KNEE_REPLAY_H

#include "knee_cluster.h"
#include "knee_keys.h"
#include "knee_timeline.h"

/* What to change, alone or together. Numbers are NaN and words NULL when not asked for. */
struct knee_changes {
    const char *wire;      /* "bf16", "powersgd:4" ...: what gradients (and shards) travel as */
    const char *network;   /* "2x", "free" */
    const char *cluster;   /* a name, for the table; `on` is what is meant */
    const char *algorithm; /* of the collectives of gradients; needs a cluster */
    const char *without;   /* ranks that are left out: "3,7" */
    const char *scale;     /* "PATTERN=F": kernels whose names have PATTERN take F times as long */
    double bucket_bytes, accumulate, batch, prefetch, hsdp, sync_every, workers;
    double step_s;    /* measured without the profiler: the host's pace is set to it first */
    double loaders;   /* processes that load batches beside each other; 0: one */
    double host_pace; /* what the host takes of the recorded time, where no step is given; 0: all */
    bool even, loader_ahead, no_host_gaps, pinned, overlap, keep_params, strong;
    const struct knee_cluster *on;
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_change_keys;
void knee_changes_init(struct knee_changes *changes);

/* One line of the answer. */
struct knee_replay_row {
    char name[64]; /* "wire bf16" */
    double step_s, low_s, high_s;
    double gain;           /* work per second after / before - 1 */
    double ratio;          /* R; NaN without compute */
    enum knee_label binds; /* the largest part of the step */
    bool training_changes; /* not only the time of a step, but what is learned in it */
    bool bound;            /* an upper bound that shows a cost; it cannot be done in practice */
    char refused[200];     /* why the recording cannot answer it; "" when it can */
};

enum { KNEE_REPLAY_ROWS = 24 };

/* A step whose GPU waits for the host for more than this share of it is longer in a recording than
 * without the profiler. */
#define KNEE_HOST_BOUND 0.2
/* Times that a profiler slows the host: 18 jobs run with and without had 1.2 to 2.5, half of them
 * less than this (docs/evidence/trace.md). */
#define KNEE_SLOWED_HOST  1.6
#define KNEE_SLOWEST_HOST 2.5
/* As the advice for a job that waits for its input says: num_workers=8. */
#define KNEE_ADVISED_LOADERS 8

struct knee_replay {
    double measured_step_s, replayed_step_s;
    double ratio;        /* R as recorded */
    double steps;        /* per rank */
    double unexplained;  /* share of the step: gaps that nothing explains, kept as they are */
    size_t ranks, tasks; /* tasks that were run */
    size_t real, ruled,
        guessed;               /* edges between streams, and to the host, by where they are from */
    size_t collectives, unmet; /* calls that met; and that did not: they keep their time */
    double
        host_share;   /* of the replayed step, in which the GPU waits for the host or for nothing */
    double host_pace; /* the host's time against the recorded one, by the measured step; 1 */
    double turn_s;    /* ranks share a GPU and take turns of this length; 0: no */
    bool standard;    /* nothing was asked for: rows are the standard table */
    struct knee_replay_row
        rows[KNEE_REPLAY_ROWS]; /* as asked; the standard table best safe first */
    size_t row_count;
    struct knee_replay_row all; /* all that was asked for together */
};

/* Replays the traces of `account`, which must have been read with options.host. `changes` may be
 * empty. KNEE_INPUT when the recording cannot be replayed. */
knee_status knee_replay(const struct knee_account *account, const struct knee_changes *changes,
                        const struct knee_alloc *alloc, struct knee_replay *out,
                        struct knee_err *err);

/* The standard table: rows that are wanted, by their names (the others are not run), and what the
 * host takes of the recorded time (0: all of it). */
struct knee_replay_table {
    bool (*wanted)(const char *row, const void *context);
    const void *context;
    double host_pace;
};
knee_status knee_replay_standard(const struct knee_account *account,
                                 const struct knee_replay_table *table,
                                 const struct knee_alloc *alloc, struct knee_replay *out,
                                 struct knee_err *err);

/* The timeline after the changes, as separate traces. Their names belong to the
 * account, which must outlive them. Free with knee_replayed_release(). */
struct knee_replayed {
    struct knee_trace *traces; /* one per rank of the account */
    size_t count;
    const struct knee_alloc *alloc;
};
knee_status knee_replay_timeline(const struct knee_account *account,
                                 const struct knee_changes *changes, const struct knee_alloc *alloc,
                                 struct knee_replayed *out, struct knee_err *err);
void knee_replayed_release(struct knee_replayed *replayed);

/* ---- Logs of operations of pipelines (Megatron): who slows the job down ------------------- */

enum knee_logged_kind {
    KNEE_LOGGED_FORWARD,
    KNEE_LOGGED_BACKWARD,
    KNEE_LOGGED_FORWARD_SEND,
    KNEE_LOGGED_FORWARD_RECV,
    KNEE_LOGGED_BACKWARD_SEND,
    KNEE_LOGGED_BACKWARD_RECV,
    KNEE_LOGGED_PARAMS,    /* all-gather of parameters */
    KNEE_LOGGED_GRADS,     /* reduce-scatter of gradients */
    KNEE_LOGGED_NORMS,     /* all-reduce of the gradients of norms */
    KNEE_LOGGED_EMBEDDING, /* all-reduce between the first and the last stage */
    KNEE_LOGGED_SEPARATE,  /* all-reduce of what is not sharded */
    KNEE_LOGGED_CLIP,      /* the norm of all gradients */
    KNEE_LOGGED_OPTIMIZER,
    KNEE_LOGGED_COLLECT, /* garbage, of the host */
    KNEE_LOGGED_KINDS
};
const char *knee_logged_name(enum knee_logged_kind kind); /* "backward-compute" */

struct knee_logged_op {
    int64_t start_ns, end_ns;
    int32_t replica, stage, part; /* data-parallel, pipeline, tensor-parallel rank */
    int32_t step, chunk, sequence;
    enum knee_logged_kind kind;
};

/* Free with knee_op_log_release(). */
struct knee_op_log {
    char *file;
    struct knee_logged_op *ops; /* by step, then start */
    size_t count;
    size_t skipped; /* events of kinds that are not known */
    int32_t replicas, stages, parts;
    const struct knee_alloc *alloc;
};

/* A Chrome trace of operations whose categories are forward-compute, grads-reduce-scatter and so
 * on, one process per replica, threads named "PP rank 0, TP rank 0, compute". KNEE_INPUT when it is
 * none. */
knee_status knee_op_log_read(const char *json, size_t length, const char *file,
                             const struct knee_alloc *alloc, struct knee_op_log *out,
                             struct knee_err *err);
void knee_op_log_release(struct knee_op_log *log);

enum knee_slow_cause {
    KNEE_SLOW_NONE,     /* the job is even */
    KNEE_SLOW_STAGE,    /* one stage has more to do than the others */
    KNEE_SLOW_SEQUENCE, /* micro-batches differ: sequences of unequal length */
    KNEE_SLOW_WORKER,   /* few workers are slower than their like */
    KNEE_SLOW_WIRE,     /* communication */
    KNEE_SLOW_MIXED,
    KNEE_SLOW_CAUSES
};
const char *knee_slow_cause_name(enum knee_slow_cause cause);

enum { KNEE_SLOW_PARTS = 64 };

/* Lin et al., OSDI 2025 ("Understanding stragglers in large model training using what-if
 * analysis"): slowdown = mean step without launch delays / mean step in which every operation takes
 * the mean (computation) or median (communication) of its kind; that of a part = the same with only
 * that part as it was. */
struct knee_slowdown {
    size_t steps, ranks, ops;
    int32_t replicas, stages, parts;
    double measured_step_s, plain_step_s, even_step_s; /* recorded; without delays; even */
    double low_s, high_s; /* about even_step_s, as far as a replay is off at most here */
    double slowdown;
    double by_kind[KNEE_LOGGED_KINDS];                             /* NaN: there are none */
    double by_stage[KNEE_SLOW_PARTS], by_replica[KNEE_SLOW_PARTS]; /* NaN past the last */
    double worst_workers;       /* slowdown by the slowest 3 % of workers alone */
    double variation, likeness; /* of micro-batches of a stage; of forward to backward in that */
    enum knee_slow_cause cause;
    int32_t stage; /* that it is */
};
knee_status knee_find_slowdown(const struct knee_op_log *log, const struct knee_alloc *alloc,
                               struct knee_slowdown *out, struct knee_err *err);

#endif

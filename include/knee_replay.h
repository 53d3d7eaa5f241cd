/* SPDX-License-Identifier: MIT */
/* Replay: a recorded job run again with something changed. What knee.h says of every call holds
 * here; these structs may change with the minor version. */
#ifndef KNEE_REPLAY_H
#define KNEE_REPLAY_H

#include "knee_cluster.h"
#include "knee_keys.h"
#include "knee_timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What to change, alone or together. Numbers are NaN and words NULL when not asked for. */
struct knee_changes {
    const char *wire;      /* "bf16", "powersgd:4" ...: what gradients (and shards) travel as */
    const char *network;   /* "2x", "free" */
    const char *cluster;   /* a name, for the table; `on` is what is meant */
    const char *algorithm; /* of the collectives of gradients; needs a cluster */
    const char *without;   /* ranks that are left out: "3,7" */
    const char *scale;     /* "PATTERN=F": kernels whose names have PATTERN take F times as long */
    double bucket_bytes, accumulate, batch, prefetch, hsdp, sync_every, workers;
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
    char refused[200];     /* why the recording cannot answer it; "" when it can */
};

enum { KNEE_REPLAY_ROWS = 24 };

struct knee_replay {
    double measured_step_s, replayed_step_s;
    double ratio;        /* R as recorded */
    double steps;        /* per rank */
    double unexplained;  /* share of the step: gaps that nothing explains, kept as they are */
    size_t ranks, tasks; /* tasks that were run */
    size_t real, ruled,
        guessed;               /* edges between streams, and to the host, by where they are from */
    size_t collectives, unmet; /* calls that met; and that did not: they keep their time */
    double turn_s;             /* ranks share a GPU and take turns of this length; 0: no */
    bool standard;             /* nothing was asked for: rows are the standard table */
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

/* The timeline after the changes, as traces of their own: their names are borrowed from the
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

#ifdef __cplusplus
}
#endif
#endif

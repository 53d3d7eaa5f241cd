/* SPDX-License-Identifier: MIT */
/*
 * Changes to a graph: one row each. They are applied in the order of the table, whatever the order
 * in which they were asked for. A change that the recording cannot answer says why.
 */
#ifndef KNEE_REPLAY_CHANGES_H
#define KNEE_REPLAY_CHANGES_H

#include "base/error.h"
#include "knee_replay.h"
#include "replay/own_price.h"
#include "replay/replay_plan.h"

/* What a change works on. */
struct knee_change_run {
    struct knee_graph *g; /* a copy, to be changed */
    struct knee_runner *runner;
    const struct knee_changes *ask;
    const struct knee_own_prices *prices;
    enum knee_lean lean;
    double memory_bytes_per_s; /* of the GPU */
    double host_bytes_per_s;   /* of its link to the host; NaN: not known */
    double call_ns;            /* of the host without a profiler, from one call to the next */
    double work;               /* how much a step does, against before */
    struct knee_step extra;    /* to be added to the replayed step, */
    double share;              /* of which only so much counts; 1 */
    double floor_s;            /* the step cannot be shorter: something else takes so long */
    char reason[200];          /* why it cannot be answered */
    bool misspelt;             /* and that no recording could: what was asked for means nothing */
};

struct knee_change_kind {
    const char *key; /* of knee_change_keys */
    bool (*asked)(const struct knee_changes *ask);
    bool (*apply)(struct knee_change_run *run); /* false: run->reason, or run->g->failed */
    bool training_changes;
    bool leans; /* what it costs depends on run->lean */
};

extern const struct knee_change_kind knee_change_kinds[];
extern const size_t knee_change_kind_count;

/* Store the reason and return false: the recording cannot answer the question; the question itself
 * is misspelt. */
bool knee_refuse(struct knee_change_run *run, const char *fmt, ...) KNEE_PRINTF(2, 3);
bool knee_misspelt(struct knee_change_run *run, const char *fmt, ...) KNEE_PRINTF(2, 3);

/* How the change was asked for: "wire bf16", "even". */
void knee_change_name(const struct knee_change_kind *kind, const struct knee_changes *ask,
                      char *out, size_t size);

/* Only this change of those asked for. */
struct knee_changes knee_change_alone(const struct knee_changes *ask,
                                      const struct knee_change_kind *kind);

/* All but this one. */
void knee_change_leave_out(struct knee_changes *ask, const struct knee_change_kind *kind);

/* ---- What several changes do ---- */

/* Gives a meet another time; its members keep how far apart they end, where that fits. */
void knee_set_pure(struct knee_graph *g, uint32_t meet, double pure_ns);
/* The meet at another size: its time by the recording's own prices. False: no prices. */
bool knee_resize_meet(struct knee_change_run *run, uint32_t meet, double bytes);
/* What waits for a member of a meet waits longer by after_ns[row of the meet]; one pass over all
 * edges. */
void knee_delay_after(struct knee_graph *g, const int64_t *after_ns);
/* The host of a rank is earlier by by_ns for what it does after at_ns (measured), until it next
 * waits. Sorted by at_ns; added up in place. */
struct knee_host_pause {
    int64_t at_ns, by_ns;
};
void knee_host_earlier(struct knee_graph *g, int32_t rank, struct knee_host_pause *pauses,
                       size_t count);
/* Waiting for batches takes `factor` times as long, but not less than least_ns. False: no memory.
 */
bool knee_scale_loads(struct knee_graph *g, size_t rank, double factor, int64_t least_ns);
/* The rows of a rank's nodes in order of the host's calls; free with knee_resize(). NULL: no
 * memory. */
int32_t *knee_nodes_by_call(const struct knee_graph *g, int32_t rank, size_t *count);
/* Finds that order of a recorded graph once for all its copies. False: no memory. */
bool knee_graph_sort_calls(struct knee_graph *g);

/* ---- The changes, by file ---- */

bool knee_apply_scale(struct knee_change_run *run); /* change_work.c */
bool knee_apply_batch(struct knee_change_run *run);
bool knee_apply_accumulate(struct knee_change_run *run);
bool knee_apply_sync_every(struct knee_change_run *run);
bool knee_apply_even(struct knee_change_run *run); /* change_even.c */
bool knee_apply_without(struct knee_change_run *run);
bool knee_apply_loader_ahead(struct knee_change_run *run); /* change_host.c */
bool knee_apply_no_host_gaps(struct knee_change_run *run);
bool knee_apply_pinned(struct knee_change_run *run);
bool knee_apply_wire(struct knee_change_run *run); /* change_wire.c */
bool knee_apply_network(struct knee_change_run *run);
bool knee_apply_cluster(struct knee_change_run *run);
bool knee_apply_workers(struct knee_change_run *run);
bool knee_apply_bucket(struct knee_change_run *run); /* change_bucket.c */
bool knee_apply_overlap(struct knee_change_run *run);
bool knee_apply_keep_params(struct knee_change_run *run); /* change_shards.c */
bool knee_apply_prefetch(struct knee_change_run *run);
bool knee_apply_hsdp(struct knee_change_run *run);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The account in three parts with plain data between them, so that the spans of a rank can stay in
 * the process that read them. knee_account() does the three in turn; src/reach/shared_account.c
 * does the middle one wherever the spans are.
 *
 *   begin   of all ranks the window, the calls and the spans of the calls (an outline is enough)
 *           -> the ranks in order, matches, clock shifts, and a task for every rank
 *   rank    one rank with all its spans, steps and loads, and its task
 *           -> its labels, kernels and host times, and an outcome: its steps
 *   end     matches, the ranks' labels and the outcomes
 *           -> steps, stragglers and collectives of the account
 */
#ifndef KNEE_TIMELINE_ACCOUNT_H
#define KNEE_TIMELINE_ACCOUNT_H

#include "base/sort.h"
#include "knee_timeline.h"

/* Matched collectives. An instance is one collective over all the ranks that took part in it; its
 * members stand together in `members`, in order of rank row. */
struct knee_member {
    uint32_t rank, call; /* row of account ranks, row of that rank's calls */
};

struct knee_instance {
    size_t first, count; /* members */
    bool complete;       /* every member of the group is there */
    bool barrier;        /* by nature no member can end before the last has come */
    bool rendezvous; /* two members at least, that ended together; set by knee_match_times() ... */
    int64_t last_start_ns, last_end_ns; /* ... as these, on the common clock */
};

struct knee_matches {
    struct knee_instance *instances;
    size_t instance_count;
    struct knee_member *members;
    size_t member_count;
    uint32_t **instance_of; /* per rank, per call: instance row + 1; 0: unmatched */
    size_t rank_count;
    struct knee_sort_key *order; /* rendezvous (.row) by last start; knee_match_times() */
    size_t order_count;
    const struct knee_alloc *alloc;
};

/* One rendezvous as one of its members sees it. */
struct knee_meeting {
    uint32_t call;         /* row of the rank's calls */
    bool partial;          /* members are missing: the last may have come later */
    int64_t last_start_ns; /* when the last member that is known had come */
};

/* What a rank must know of the others. Times are on its own clock. */
struct knee_rank_brief {
    struct knee_meeting *meetings; /* by last start, on whose order all ranks agree */
    size_t meeting_count;
    int64_t settled_ns; /* duration of calls that are known to contain no waiting */
    int64_t strip_start_ns, strip_part_ns; /* the common window, in KNEE_STRIP parts */
};

/* What comes of a rank beside its row of the account. */
struct knee_outcome {
    struct knee_step_account *steps; /* .rank is set by the end */
    size_t step_count;
    enum knee_step_source step_source;
};

/* What lies between the parts. */
struct knee_between {
    struct knee_matches matches;
    struct knee_rank_brief *tasks; /* per rank row; made by the begin */
    struct knee_outcome *outcomes; /* per rank row; empty after the begin */
    size_t rank_count;
    const struct knee_alloc *alloc;
};

/* On failure *account and *between hold nothing. */
knee_status knee_account_begin(const struct knee_trace *traces, size_t count,
                               const struct knee_alloc *alloc, struct knee_account *account,
                               struct knee_between *between, struct knee_err *err);
/* `rank` needs .trace, .source and the window. False: no memory; *out can be released. */
bool knee_account_rank(struct knee_rank_account *rank, const struct knee_rank_brief *task,
                       const struct knee_alloc *alloc, struct knee_outcome *out);
/* Releases *between; on failure *account too. */
knee_status knee_account_end(struct knee_account *account, struct knee_between *between,
                             struct knee_err *err);
void knee_between_release(struct knee_between *between);
void knee_task_release(struct knee_rank_brief *task, const struct knee_alloc *alloc);
void knee_outcome_release(struct knee_outcome *outcome, const struct knee_alloc *alloc);

/* ---- Steps of the begin ---- */

/* Finds which calls belong together: by group and sequence, else by order in the group. */
bool knee_match(const struct knee_account *account, struct knee_matches *out);
/* Fills the instances' times from the ranks' shifts, and their order. False: no memory. */
bool knee_match_times(const struct knee_account *account, struct knee_matches *matches);
void knee_matches_release(struct knee_matches *matches);

/* Sets shift_ns of each rank so that matched ends agree, where clocks differ by more than chance.
 */
bool knee_align(struct knee_account *account, const struct knee_matches *matches);

/* ---- Steps of a rank ---- */

/* Where steps begin on a rank's GPU, own clock; each ends where the next one begins. */
struct knee_cut {
    int64_t at_ns, number;
    bool complete;
};
struct knee_cuts {
    struct knee_cut *list; /* one at least */
    size_t count;
    int64_t end_ns; /* of the last */
    enum knee_step_source source;
};
/* Sets the rank's from_ns and to_ns too. False: no memory; cuts->list can be freed. */
bool knee_cut_steps(struct knee_rank_account *rank, const struct knee_alloc *alloc,
                    struct knee_cuts *cuts);

/* Labels every nanosecond of one rank: runs, ledger and waits_ns. False: no memory. */
bool knee_label_rank(struct knee_rank_account *rank, const struct knee_rank_brief *task,
                     const struct knee_alloc *alloc);

/* The labels of every step, and the host's time in them. False: no memory. */
bool knee_account_steps(struct knee_rank_account *rank, const struct knee_cuts *cuts,
                        const struct knee_alloc *alloc, struct knee_outcome *out);

/* What its backward passes show, where the host's events are kept; `known` is of kinds.h, one per
 * name. False: no memory. */
struct knee_passes {
    bool *again;           /* per span: a kernel of the forward pass that a backward function runs
                              again; to be released; NULL: not known */
    int64_t micro_batches; /* passes back per step of the optimizer; 0: not known */
};
bool knee_find_passes(const struct knee_rank_account *rank, unsigned char *known,
                      const struct knee_alloc *alloc, struct knee_passes *out);

/* Sets facts->spent_ns[KNEE_SPENT_STOPPED], which is the time of all kernels of KNEE_STOPPED_NS or
 * more before; 0: none was stopped. False: no memory. */
#define KNEE_STOPPED_NS 200000
bool knee_find_contention(const struct knee_rank_account *rank, const struct knee_outcome *outcome,
                          const struct knee_alloc *alloc, struct knee_rank_facts *facts);

/* Sets rank->facts; needs its labels and steps. False: no memory. */
bool knee_find_rank_facts(struct knee_rank_account *rank, const struct knee_outcome *outcome,
                          const struct knee_alloc *alloc);

/* ---- Steps of the end ---- */

/* Who came last, how often, how late and why. False: no memory. */
bool knee_find_stragglers(struct knee_account *account, const struct knee_matches *matches);

/* Calls by kind. False: no memory. */
bool knee_sum_collectives(struct knee_account *account, const struct knee_matches *matches);

/* Sums the labels of `rank` over [from, to), own clock, into sums[KNEE_LABELS]. *at is where to
 * start looking in its runs, and moves on; calls must go forward in time. */
void knee_sum_labels(const struct knee_rank_account *rank, size_t *at, int64_t from_ns,
                     int64_t to_ns, int64_t *sums);

/* Is a moment of a rank (row, own clock) inside a complete step? All of it is where there are none.
 */
bool knee_in_complete_step(const struct knee_account *account, size_t rank, int64_t own_ns);
/* How many complete steps a rank has; 1 where there are none. */
double knee_complete_steps(const struct knee_account *account, size_t rank);

/* A sum over events, held at the largest number: hostile files have long ones. */
static inline int64_t knee_add_ns(int64_t sum, int64_t ns)
{
    return ns > INT64_MAX - sum ? INT64_MAX : sum + ns;
}

/* Where a run ends: where the next one begins. */
static inline int64_t knee_run_end(const struct knee_rank_account *rank, size_t run)
{
    return run + 1 < rank->run_count ? rank->runs[run + 1].start_ns : rank->to_ns;
}

/* Ranks call their GPUs by one number, on one host: they may be one GPU. */
bool knee_on_one_device(const struct knee_account *account);
/* Kernels of the ranks, which are on devices of one number, never start in each other's time: they
 * take turns on one GPU. False too where too few of them compute at once. (turns.c) */
bool knee_take_turns(const struct knee_account *account);

static inline int64_t knee_common_time(const struct knee_rank_account *rank, int64_t own_ns)
{
    return own_ns + rank->trace->base_ns + rank->shift_ns;
}

#endif

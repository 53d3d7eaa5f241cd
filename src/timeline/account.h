/* SPDX-License-Identifier: MIT */
/* The parts of the account, and what they hand each other. */
#ifndef KNEE_TIMELINE_ACCOUNT_H
#define KNEE_TIMELINE_ACCOUNT_H

#include "knee.h"

/* Matched collectives. An instance is one collective over all the ranks that took part in it; its
 * members stand together in `members`, in order of rank row. */
struct knee_member {
    uint32_t rank, call; /* row of account ranks, row of that rank's calls */
};

struct knee_instance {
    size_t first, count;                /* members */
    bool complete;                      /* every member of the group is there */
    bool barrier;                       /* no member can end before the last has come */
    int64_t last_start_ns, last_end_ns; /* common clock; set by knee_match_times() */
};

struct knee_matches {
    struct knee_instance *instances;
    size_t instance_count;
    struct knee_member *members;
    size_t member_count;
    uint32_t **instance_of; /* per rank, per call: instance row + 1; 0: unmatched */
    size_t rank_count;
    const struct knee_alloc *alloc;
};

/* Finds which calls belong together: by group and sequence, else by order in the group. */
bool knee_match(const struct knee_account *account, struct knee_matches *out);
/* Fills the instances' times from the ranks' shifts. */
void knee_match_times(const struct knee_account *account, struct knee_matches *matches);
void knee_matches_release(struct knee_matches *matches);

/* Sets shift_ns of each rank so that matched ends agree, where clocks differ by more than chance.
 */
bool knee_align(struct knee_account *account, const struct knee_matches *matches);

/* Labels every nanosecond of one rank: runs and ledger. False: no memory. */
bool knee_label_rank(struct knee_account *account, size_t rank, const struct knee_matches *matches);

/* Cuts the ranks' windows into steps. False: no memory. */
bool knee_find_steps(struct knee_account *account);

/* Who came last, how often, how late and why. False: no memory. */
bool knee_find_stragglers(struct knee_account *account, const struct knee_matches *matches);

/* Calls by kind. False: no memory. */
bool knee_sum_collectives(struct knee_account *account, const struct knee_matches *matches);

/* Sums the labels of `rank` over [from, to), own clock, into sums[KNEE_LABELS]. *at is where to
 * start looking in its runs, and moves on; calls must go forward in time. */
void knee_sum_labels(const struct knee_rank_account *rank, size_t *at, int64_t from_ns,
                     int64_t to_ns, int64_t *sums);

static inline int64_t knee_common_time(const struct knee_rank_account *rank, int64_t own_ns)
{
    return own_ns + rank->trace->base_ns + rank->shift_ns;
}

#endif

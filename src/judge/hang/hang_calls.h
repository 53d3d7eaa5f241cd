/* SPDX-License-Identifier: MIT */
/* The roll of calls that the rules look at, and the rules. */
#ifndef KNEE_JUDGE_HANG_HANG_CALLS_H
#define KNEE_JUDGE_HANG_HANG_CALLS_H

#include "judge/hang/hang.h"

enum knee_hang_flag {
    KNEE_HANG_WAITS = 1,  /* in some call */
    KNEE_HANG_NAMED = 2,  /* the answer names it */
    KNEE_HANG_SILENT = 4, /* no line, no dump */
    KNEE_HANG_ABSENT = 8, /* did not enter what others wait in */
};

struct knee_hang_view {
    struct knee_job_record *record;
    struct knee_hang_answer *out;
    struct knee_roll_answer roll; /* of the dumps */
    int64_t world;                /* ranks of the job; at least the highest seen + 1 */
    bool world_sure;              /* some line or dump says so */
    bool no_memory;
    unsigned char *flags; /* by rank: enum knee_hang_flag */
    const struct knee_alloc *alloc;
};

/* Makes out->calls of dumps and text. False: no memory. */
bool knee_hang_make_calls(struct knee_hang_view *view);
/* The calls of one group: [*first, return). */
size_t knee_hang_group(const struct knee_hang_view *view, size_t first);
/* The call of a rank in a group; NULL: none is known. */
const struct knee_hang_call *knee_hang_call_of(const struct knee_hang_view *view, uint32_t group,
                                               int32_t rank);
/* A rank's entry in a dump; NULL: none. */
const struct knee_entry *knee_hang_entry(const struct knee_hang_view *view, uint32_t group,
                                         int64_t sequence, int32_t rank);

/* The lowest number in which a rank waits, in calls [first, end); -1: none. Calls that ended with
 * an NCCL error count only if there are no others. */
int64_t knee_hang_lowest(const struct knee_hang_view *view, size_t first, size_t end);
/* Ranks of a group: members as a dump lists them, or all of the job; 0: they are not known. */
size_t knee_hang_group_size(const struct knee_hang_view *view, uint32_t group);
int32_t knee_hang_group_rank(const struct knee_hang_view *view, uint32_t group, size_t row);
/* Was a file given for each rank, and not one for all? */
bool knee_hang_own_files(const struct knee_hang_view *view);
/* Did a rank see a connection close before any timeout expired? */
bool knee_hang_peer_left(const struct knee_hang_view *view);

/* Names a rank; and shows a line. */
void knee_hang_name(struct knee_hang_view *view, int32_t rank);
void knee_hang_show(struct knee_hang_view *view, uint32_t mark);

/* The rules, in the order in which they are asked. True: the answer stands. */
bool knee_hang_by_failure(struct knee_hang_view *view);  /* a rank that failed */
bool knee_hang_by_mismatch(struct knee_hang_view *view); /* ranks in different calls */
bool knee_hang_by_absence(struct knee_hang_view *view);  /* ranks that did not come */
bool knee_hang_by_order(struct knee_hang_view *view); /* two groups, or a GPU that did not start */
bool knee_hang_by_progress(struct knee_hang_view *view); /* all came: order, GPU, wire */

/* What a rank that did not come does instead. */
enum knee_hang_class knee_hang_instead(const struct knee_hang_view *view, int32_t rank,
                                       const struct knee_hang_call *waits);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Who is behind, from a few answers of NCCL's RAS service in a row. Its counts are collectives that
 * hosts have enqueued: a rank that is never ahead of the others is late in its host (answers with
 * the same largest count are one occasion: a long step is not many); a communicator
 * in which nothing moves hangs or waits, at equal counts in its GPUs, else for those behind.
 */
#ifndef KNEE_JUDGE_RAS_JUDGE_H
#define KNEE_JUDGE_RAS_JUDGE_H

#include "knee.h"
#include "read/live/ras_read.h"

struct knee_ras_row {
    const struct knee_ras_rank *rank; /* in the last answer; borrowed */
    double calls_per_s;               /* NaN: one answer only */
    size_t uneven, behind; /* occasions on which its communicator's counts differ; of them
                              with this rank below the largest */
    int64_t occasion;      /* the largest count of the last one; 0: none yet */
    int64_t lag;           /* calls that it is behind in the last answer */
    bool late;             /* behind whenever any rank is */
    bool still;            /* nothing moved in its communicator */
};

/* Free with knee_ras_answer_release(). */
struct knee_ras_answer {
    struct knee_ras_row *rows; /* as the last answer has them */
    size_t count;
    size_t answers, comms, still_comms; /* communicators, and those in which nothing moves */
    size_t late, dead, unresponsive, failed;
    double seconds; /* from the first answer to the last */
    const struct knee_alloc *alloc;
};

/* `answers` as knee_ras_read() gives them, in the order of time, at least one. */
knee_status knee_ras_judge(const struct knee_ras *answers, size_t count,
                           const struct knee_alloc *alloc, struct knee_ras_answer *out,
                           struct knee_err *err);
void knee_ras_answer_release(struct knee_ras_answer *answer);

#endif

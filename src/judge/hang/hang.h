/* SPDX-License-Identifier: MIT */
/*
 * Names the rank, the collective and the cause of a hang. The first failure in time is the cause;
 * later failures follow from it. If no rank failed, the collectives of all ranks are compared by
 * group and number: which ranks are in one that others have not entered, and the reverse.
 */
#ifndef KNEE_JUDGE_HANG_HANG_H
#define KNEE_JUDGE_HANG_HANG_H

#include "read/hang/job_record.h"

enum knee_hang_class {
    KNEE_HANG_NOT, /* the job ended, or nothing in the files says that it did not */
    KNEE_HANG_OOM,
    KNEE_HANG_HOST_OOM,
    KNEE_HANG_EXCEPTION,
    KNEE_HANG_SIGNAL,
    KNEE_HANG_KILLED,
    KNEE_HANG_NCCL,
    KNEE_HANG_GPU_ERROR,
    KNEE_HANG_GPU_FAULT,
    KNEE_HANG_NODE,
    KNEE_HANG_FROZEN,
    KNEE_HANG_LEFT_OUT,
    KNEE_HANG_OTHER_OP,
    KNEE_HANG_OTHER_SIZE,
    KNEE_HANG_DATA_END,
    KNEE_HANG_LOADER,
    KNEE_HANG_CHECKPOINT,
    KNEE_HANG_EVALUATION,
    KNEE_HANG_COMPILE,
    KNEE_HANG_BUSY, /* elsewhere: it did not enter, and nothing says what it did */
    KNEE_HANG_CROSSED,
    KNEE_HANG_RECEIVES,
    KNEE_HANG_GPU_LATE,
    KNEE_HANG_ALONE, /* a collective that one rank called and the others did not */
    KNEE_HANG_NETWORK,
    KNEE_HANG_VERSION,
    KNEE_HANG_NO_START,
    KNEE_HANG_SHORT_LIMIT,
    KNEE_HANG_TIME_LIMIT,
    KNEE_HANG_CANCELLED,
    KNEE_HANG_WIRE,    /* all ranks are in the same collective: a GPU or the network */
    KNEE_HANG_UNKNOWN, /* it hangs or failed, and what is here does not say why */
    KNEE_HANG_CLASSES
};

/* A row of data/hang_kinds.csv: what it is called, what it needs, what to do about it. */
struct knee_hang_kind {
    const char *name;  /* as JSON has it */
    const char *needs; /* the evidence */
    const char *does;  /* "Rank 3 ..." */
    const char *fix;
    const char *sentence; /* where no rank is known; NULL: "The job ", and what the class does */
};
extern const struct knee_hang_kind knee_hang_kinds[];
extern const size_t knee_hang_kinds_count;
#define KNEE_HANG_KINDS_MAX KNEE_HANG_CLASSES
const struct knee_hang_kind *knee_hang_kind(enum knee_hang_class kind);

enum knee_certainty { KNEE_CERTAIN, KNEE_LIKELY, KNEE_CANNOT_TELL };

/* One rank in one group. */
struct knee_hang_call {
    uint32_t group;
    int32_t rank;
    int64_t entered;   /* its newest number; -1: not known */
    int64_t completed; /* its last finished one; -1: none, or not known */
    int64_t waits;     /* its oldest unfinished one; -1: none */
    int64_t elements;  /* of that; -1: not known */
    int64_t out;       /* that come out; -1: not known */
    int64_t group_rank;
    int64_t outstanding;
    enum knee_op op;
    bool dump;    /* from a dump, not from text */
    bool started; /* its GPU has reached it */
    bool broken;  /* NCCL's error ended it, no timeout */
    double since_s, limit_s;
    uint32_t mark;
    const char *frame; /* borrowed; "": no stack */
};

/* One rank, as the answer shows it. */
struct knee_hang_rank {
    int32_t rank;
    const struct knee_hang_call *call; /* the one it waits in, else its last; NULL: none is known */
    enum knee_hang_class kind;         /* of those named; KNEE_HANG_NOT: it waits, or is fine */
    int32_t exit;                      /* -1: not known */
    const char *host;                  /* borrowed */
    bool dump, text, talked;
    uint32_t state; /* row of states */
};

/* Ranks in one state are one row of a table. */
struct knee_hang_state {
    const struct knee_hang_rank *like; /* the first of them */
    size_t count;
};
#define KNEE_HANG_STATES 64 /* the last one takes the rest */

struct knee_hang_answer {
    enum knee_hang_class kind;
    enum knee_certainty certainty;
    int32_t *named; /* the ranks to look at, ascending */
    size_t named_count;
    const struct knee_hang_call *waits;   /* a call in which others wait; NULL: none */
    const struct knee_hang_call *instead; /* what a rank named is in; NULL: nothing is known */
    size_t waiting;                       /* ranks that wait in it */
    size_t left_out;                      /* calls left out */
    bool tie;                             /* as many ranks in one call as in the other */
    bool guess;                           /* the class follows from the rank's number alone */
    int64_t behind;                       /* RAS: calls; 0: not from RAS */
    int32_t *silent;                      /* ranks without a line and without a dump, ascending */
    size_t silent_count;
    bool silent_sure; /* all ranks of the job are known */
    struct knee_hang_rank *ranks;
    size_t rank_count;
    struct knee_hang_state states[KNEE_HANG_STATES]; /* those with a rank that is named first */
    size_t state_count;
    struct knee_hang_call *calls; /* by group, then rank */
    size_t call_count;
    uint32_t evidence[16]; /* rows of the record's marks */
    size_t evidence_count;
    double lost_s;   /* how long the others waited; NaN: not known */
    size_t followed; /* ranks that failed after the one named */
    bool dumps;      /* some were given */
    const struct knee_alloc *alloc;
};

/* The record and the answer that a report shows; both are borrowed. */
struct knee_hang_report {
    const struct knee_job_record *record;
    const struct knee_hang_answer *answer;
};

/* Borrows from the record, which must stay. Sorts its roll call. Free with
 * knee_hang_answer_release(). */
knee_status knee_hang_judge(struct knee_job_record *record, const struct knee_alloc *alloc,
                            struct knee_hang_answer *out, struct knee_err *err);
void knee_hang_answer_release(struct knee_hang_answer *answer);
/* What to do: the class's advice, unless the files lack the rank that failed first. */
const char *knee_hang_fix(const struct knee_hang_report *report);

#endif

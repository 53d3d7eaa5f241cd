/* SPDX-License-Identifier: MIT */
/* Traces whose bytes were pushed into an ask, piece by piece, and what was last found in them. */
#ifndef KNEE_ASK_PUSHED_H
#define KNEE_ASK_PUSHED_H

#include "knee_judge.h"

/* Some of the traces, accounted and diagnosed. Zeroed is nothing. */
struct knee_ask_told {
    struct knee_trace *traces; /* rows of the pushed ones; they own what is in them */
    size_t count;
    struct knee_account account;
    struct knee_diagnosis diagnosis;
    const struct knee_alloc *alloc;
};

struct knee_ask_pushed {
    struct knee_trace *traces;
    size_t count;
    struct knee_trace_reader *reader; /* of the one that is being pushed */
    struct knee_ask_told last;        /* what trace answered last, for who draws it */
    const struct knee_alloc *alloc;
};

struct knee_ask_pushed *knee_ask_pushed_of(struct knee_ask *ask);
void knee_ask_pushed_release(struct knee_ask_pushed *pushed);
void knee_ask_told_release(struct knee_ask_told *told);

#endif

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

/* Where a trace came from, beside the number of the word that it was read for. */
enum { KNEE_ASK_BY_NAME = -1, KNEE_ASK_TOGETHER = -2 };

struct knee_ask_pushed {
    struct knee_trace *traces;
    int *sets; /* per trace: the word that it was read for; KNEE_ASK_BY_NAME: pushed,
                  KNEE_ASK_TOGETHER: for all words */
    size_t count;
    struct knee_trace_reader *reader; /* of the one that is being pushed */
    struct knee_ask_told last;        /* what trace answered last, for who draws it */
    const struct knee_alloc *alloc;
};

struct knee_ask_pushed *knee_ask_pushed_of(struct knee_ask *ask);
void knee_ask_pushed_release(struct knee_ask_pushed *pushed);
void knee_ask_told_release(struct knee_ask_told *told);

/* Takes traces that were read elsewhere, for word number `set`. The ask owns them from now on, also
 * when it fails: then they are released. */
knee_status knee_ask_adopt(struct knee_ask *ask, struct knee_trace *traces, size_t count, int set,
                           struct knee_err *err);

/* The traces that words mean, all without words; not yet accounted. On failure *out is empty. */
knee_status knee_ask_pick(struct knee_ask *ask, const char *const *words, size_t word_count,
                          struct knee_ask_told *out, struct knee_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Traces whose bytes were pushed into an ask, piece by piece. */
#ifndef KNEE_ASK_PUSHED_H
#define KNEE_ASK_PUSHED_H

#include "knee_timeline.h"

struct knee_ask_pushed {
    struct knee_trace *traces;
    size_t count;
    struct knee_trace_reader *reader; /* of the one that is being pushed */
    const struct knee_alloc *alloc;
};

struct knee_ask_pushed *knee_ask_pushed_of(struct knee_ask *ask);
void knee_ask_pushed_release(struct knee_ask_pushed *pushed);

#endif

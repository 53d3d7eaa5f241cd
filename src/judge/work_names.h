/* SPDX-License-Identifier: MIT */
#ifndef KNEE_JUDGE_WORK_NAMES_H
#define KNEE_JUDGE_WORK_NAMES_H

#include "knee_timeline.h"

struct knee_work_name {
    const char *name; /* borrowed from the traces */
    enum knee_span_kind kind;
    enum knee_op op;
    size_t calls;
    int64_t ns;
};
struct knee_work_names {
    struct knee_work_name *rows; /* of the caller's allocator */
    size_t count;
};
/* Each name once, with its calls and time over all ranks. False: no memory. */
bool knee_work_names_sum(const struct knee_trace *traces, size_t count,
                         const struct knee_alloc *alloc, struct knee_work_names *out);

#endif

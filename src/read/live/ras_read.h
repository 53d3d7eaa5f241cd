/* SPDX-License-Identifier: MIT */
/* The answer of NCCL's RAS service to VERBOSE STATUS, as JSON (NCCL 2.28.7 and later): which rank
 * of which communicator has enqueued how many collectives. */
#ifndef KNEE_READ_RAS_READ_H
#define KNEE_READ_RAS_READ_H

#include "knee.h"

struct knee_ras_rank {
    char comm[40], host[64];
    int64_t rank, pid;
    int64_t calls;     /* enqueued so far, of all operations */
    bool missing;      /* RAS could not ask it ... */
    bool unresponsive; /* ... it did not answer in time */
    bool dead;         /* ... and is taken for dead */
    bool failed;       /* it reports an asynchronous error, or was aborted */
};

/* One answer. Free with knee_ras_release(). */
struct knee_ras {
    struct knee_ras_rank *ranks; /* by communicator, then by rank */
    size_t count, room;
    char nccl[24];
    int64_t at_ns; /* the caller's */
    const struct knee_alloc *alloc;
};

/* KNEE_INPUT when it is not such an answer. What comes before the first brace is skipped. */
knee_status knee_ras_read(const char *text, size_t length, const struct knee_alloc *alloc,
                          struct knee_ras *out, struct knee_err *err);
void knee_ras_release(struct knee_ras *ras);

/* The order of `ranks`, for bsearch(). */
int knee_ras_compare(const void *a, const void *b);

#endif

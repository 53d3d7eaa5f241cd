/* SPDX-License-Identifier: MIT */
/*
 * What PyTorch's profiler and dynolog's daemon send each other over a UNIX socket: datagrams, each
 * {size_t size; char type[32]} and a payload. "ctxt" registers {int32 gpu, pid; int64 job} and is
 * answered with a count; "req" asks {int32 type, n; int64 job; int32 pids[n]}, own pid first, and
 * is answered with lines KEY=VALUE, or none.
 */
#ifndef KNEE_READ_LIVE_KINETO_REQUEST_H
#define KNEE_READ_LIVE_KINETO_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct knee_kineto_head {
    uint64_t size;
    char type[32];
};

enum knee_kineto_kind { KNEE_KINETO_NONE, KNEE_KINETO_CONTEXT, KNEE_KINETO_REQUEST };

struct knee_kineto_request {
    enum knee_kineto_kind kind;
    int32_t pid; /* of who asks, by its own account; 0: not said */
};

/* Whatever does not hold together is KNEE_KINETO_NONE. */
struct knee_kineto_request knee_kineto_read(const void *datagram, size_t length);

#endif

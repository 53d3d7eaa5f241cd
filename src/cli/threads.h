/* SPDX-License-Identifier: MIT */
/* Work on many files, on all cores. */
#ifndef KNEE_CLI_THREADS_H
#define KNEE_CLI_THREADS_H

#include "reach/runtime.h"

#include <stddef.h>

/* Calls one(ctx, i) for every i below `count`, in order of their beginning, on as many threads as
 * there are cores for this process (`rt`, or NULL: alone) and things to do; the caller's is one of
 * them. Returns when all are done. */
void cli_each(const struct knee_runtime *rt, size_t count, void (*one)(void *ctx, size_t i),
              void *ctx);

#endif

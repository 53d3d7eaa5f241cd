/* SPDX-License-Identifier: MIT */
/* Buffers in the host's memory. A header, because each loadable object stands alone. */
#ifndef KNEE_REACH_HOST_BUFFER_H
#define KNEE_REACH_HOST_BUFFER_H

#include "reach/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool knee_host_buffer_new(struct knee_runtime *rt, size_t bytes, void **out)
{
    *out = calloc(bytes + 1, 1);
    if (!*out)
        snprintf(rt->fault, sizeof rt->fault, "no memory for %zu bytes", bytes);
    return *out != NULL;
}

static inline void knee_host_buffer_release(struct knee_runtime *rt, void *buffer)
{
    (void)rt;
    free(buffer);
}

static inline bool knee_host_buffer_put(struct knee_runtime *rt, void *buffer, const void *from,
                                        size_t bytes)
{
    (void)rt;
    memcpy(buffer, from, bytes);
    return true;
}

static inline bool knee_host_buffer_get(struct knee_runtime *rt, const void *buffer, void *to,
                                        size_t bytes)
{
    (void)rt;
    memcpy(to, buffer, bytes);
    return true;
}

/* A table with these and `rest`: .buffer_new = ... */
#define KNEE_HOST_BUFFERS                                                                          \
    .buffer_new = knee_host_buffer_new, .buffer_release = knee_host_buffer_release,                \
    .buffer_put = knee_host_buffer_put, .buffer_get = knee_host_buffer_get

#endif

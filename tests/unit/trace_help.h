/* SPDX-License-Identifier: MIT */
/* Traces from text in memory, read in pieces of any size, with reads that can be made to fail. */
#ifndef KNEE_TESTS_TRACE_HELP_H
#define KNEE_TESTS_TRACE_HELP_H

#include "unit.h"

struct source {
    const char *data;
    size_t length, at, piece; /* at most `piece` bytes a read; 0: all */
    size_t reads, fail_at;    /* read number fail_at fails; 0: none */
};

static inline ptrdiff_t source_read(void *ctx, void *buffer, size_t size)
{
    struct source *s = ctx;
    if (++s->reads == s->fail_at)
        return -1;
    size_t left = s->length - s->at;
    size = size < left ? size : left;
    size = s->piece && s->piece < size ? s->piece : size;
    memcpy(buffer, s->data + s->at, size);
    s->at += size;
    return (ptrdiff_t)size;
}

static inline knee_status read_bytes(const char *data, size_t length, const char *name,
                                     struct knee_trace *out, struct knee_err *err)
{
    struct source source = {.data = data, .length = length};
    return knee_trace_read((struct knee_reader){source_read, &source}, name, NULL, NULL, out, err);
}

static inline struct knee_trace trace_of(const char *text)
{
    struct knee_trace trace;
    struct knee_err err;
    if (read_bytes(text, strlen(text), "test.json", &trace, &err))
        fail_msg("%s; %s", err.what, err.hint);
    return trace;
}

static inline size_t spans_of(const struct knee_trace *trace)
{
    size_t count = 0;
    for (size_t r = 0; r < trace->rank_count; r++)
        count += trace->ranks[r].span_count;
    return count;
}

#define K(name, ts, dur)                                                                           \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" name                                       \
    "\", \"pid\": 0, \"tid\": 7, \"ts\": " ts ", \"dur\": " dur ", \"args\": {\"stream\": 7}}"

#endif

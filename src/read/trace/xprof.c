/* SPDX-License-Identifier: MIT */
/*
 * What XProf's (JAX, TensorFlow) events mean. Processes named /device:... are devices and threads
 * named Stream #... their streams; a TPU has no streams but a row "XLA Ops", and beside it "Async
 * XLA Ops": what goes on while others compute, collectives and copies from their start to their
 * end. The other rows of a device repeat the same work grouped otherwise and are left out. Metadata
 * events come first.
 */
#include "base/text.h"
#include "read/trace/trace_json.h"
#include "timeline/kinds.h"

#include <string.h>

enum { ROWS = 4096 };

enum role { OTHER, STREAM, XLA_OPS, XLA_ASYNC, STEPS };

struct knee_xprof {
    struct {
        int64_t pid;
        bool streams;
    } devices[ROWS / 16];
    struct {
        int64_t pid, tid;
        enum role role;
    } threads[ROWS];
    size_t device_count, thread_count;
};

void knee_xprof_free(struct knee_xprof *xprof, const struct knee_alloc *alloc)
{
    knee_resize(alloc, xprof, 0);
}

static bool begins(struct knee_slice s, const char *word)
{
    size_t length = strlen(word);
    return s.length >= length && memcmp(s.at, word, length) == 0;
}

static size_t find_device(const struct knee_xprof *x, int64_t pid)
{
    size_t row = 0;
    while (row < x->device_count && x->devices[row].pid != pid)
        row++;
    return row;
}

static void name_process(struct knee_event_sink *sink, const struct knee_event *e)
{
    if (!begins(e->args.label, "/device:") || begins(e->args.label, "/device:CUSTOM"))
        return;
    if (!sink->xprof) {
        sink->xprof = knee_zeroed(sink->trace->alloc, sizeof *sink->xprof);
        if (!sink->xprof)
            return;
    }
    struct knee_xprof *x = sink->xprof;
    if (x->device_count < ROWS / 16 && find_device(x, e->pid) == x->device_count)
        x->devices[x->device_count++].pid = e->pid;
}

static void name_thread(struct knee_xprof *x, const struct knee_event *e)
{
    size_t device = find_device(x, e->pid);
    if (device == x->device_count || x->thread_count == ROWS)
        return;
    enum role role = begins(e->args.label, "Stream #")        ? STREAM
                     : begins(e->args.label, "XLA Ops")       ? XLA_OPS
                     : begins(e->args.label, "Async XLA Ops") ? XLA_ASYNC
                     : begins(e->args.label, "XLA Async Ops") ? XLA_ASYNC
                     : SLICE_IS(e->args.label, "Steps")       ? STEPS
                                                              : OTHER;
    x->devices[device].streams |= role == STREAM;
    x->threads[x->thread_count].pid = e->pid;
    x->threads[x->thread_count].tid = e->tid;
    x->threads[x->thread_count++].role = role;
}

static enum role role_of(const struct knee_xprof *x, int64_t pid, int64_t tid)
{
    for (size_t i = 0; i < x->thread_count; i++)
        if (x->threads[i].pid == pid && x->threads[i].tid == tid)
            return x->threads[i].role;
    return OTHER;
}

/* An asynchronous operation that is not a collective moves data: "async-copy" and similar names. */
static bool is_aside(const struct knee_event_sink *sink, const struct knee_event *e, enum role role)
{
    char name[256];
    knee_slice_copy(e->name, name, sizeof name);
    return role == XLA_ASYNC && knee_kernel_facts(name, sink->options).kind != KNEE_SPAN_COMM;
}

static void take_span(struct knee_event_sink *sink, const struct knee_event *e, enum role role)
{
    int64_t end_ns = e->start_ns + (e->duration_ns > 0 ? e->duration_ns : 0);
    bool copy = begins(e->name, "Memcpy") || begins(e->name, "Memset") ||
                begins(e->name, "copy-") || is_aside(sink, e, role);
    sink->xprof_spans++;
    knee_builder_span(
        sink->builder,
        &(struct knee_gpu_work){e->pid, e->start_ns, end_ns,
                                knee_builder_name(sink->builder, e->name.at, e->name.length),
                                (int32_t)(e->tid & INT32_MAX), KNEE_NO_CORRELATION, copy, NULL});
}

bool knee_xprof_event(struct knee_event_sink *sink, const struct knee_event *e)
{
    struct knee_xprof *x = sink->xprof;
    if (e->phase == 'M') {
        if (SLICE_IS(e->name, "process_name"))
            name_process(sink, e);
        else if (x && SLICE_IS(e->name, "thread_name"))
            name_thread(x, e);
        return true;
    }
    if (e->phase != 'X' || !x)
        return true;
    size_t device = find_device(x, e->pid);
    if (device == x->device_count)
        return true;
    enum role role = role_of(x, e->pid, e->tid);
    bool work = x->devices[device].streams ? role == STREAM : role == XLA_OPS || role == XLA_ASYNC;
    if (!work && role != STEPS)
        return true;
    if (e->bad_time || !e->has_start || !e->has_duration)
        return false;
    sink->negative += e->duration_ns < 0;
    if (e->duration_ns > 0 && !knee_time_is_good(e->start_ns, e->start_ns + e->duration_ns))
        return false;
    if (work)
        take_span(sink, e, role);
    else if (device == 0)
        knee_builder_step(sink->builder, e->start_ns, e->start_ns + e->duration_ns,
                          (int64_t)sink->trace->events);
    return true;
}

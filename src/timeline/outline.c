/* SPDX-License-Identifier: MIT */
/* A trace cut down to what other ranks need to know of it. */
#include "base/error.h"
#include "base/text.h"
#include "timeline/wire_format.h"

#include <string.h>

/* Row + 1 of every name in the outline, 0: it is not in it. At first 1 for those that will be. */
static void mark_names(const struct knee_trace *trace, uint32_t *kept)
{
    for (size_t r = 0; r < trace->rank_count; r++)
        for (size_t i = 0; i < trace->ranks[r].call_count; i++) {
            const struct knee_call *call = &trace->ranks[r].calls[i];
            const uint32_t rows[] = {call->group, call->description, call->members,
                                     trace->ranks[r].spans[call->span].name + 1};
            for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
                if (rows[k])
                    kept[rows[k] - 1] = 1;
        }
}

static bool keep_names(const struct knee_trace *trace, uint32_t *kept, struct knee_trace *out)
{
    size_t count = 0, size = 0;
    for (size_t i = 0; i < trace->name_count; i++)
        if (kept[i]) {
            kept[i] = (uint32_t)++count;
            size += strlen(trace->names[i]) + 1;
        }
    if (count == 0)
        return true;
    out->names = knee_resize(out->alloc, NULL, count * sizeof *out->names + size);
    if (!out->names)
        return false;
    char *at = (char *)(out->names + count); /* one block: the pointers, then the text */
    for (size_t i = 0; i < trace->name_count; i++)
        if (kept[i]) {
            size_t length = strlen(trace->names[i]) + 1;
            out->names[out->name_count++] = memcpy(at, trace->names[i], length);
            at += length;
        }
    return true;
}

static uint32_t renamed(const uint32_t *kept, uint32_t row_plus_one)
{
    return row_plus_one ? kept[row_plus_one - 1] : 0;
}

/* One span for each call. */
static bool keep_calls(const struct knee_rank *rank, const uint32_t *kept,
                       const struct knee_alloc *alloc, struct knee_rank *out)
{
    size_t count = rank->call_count;
    *out = *rank;
    out->span_count = out->call_count = 0;
    out->spans = knee_resize(alloc, NULL, (count + 1) * sizeof *out->spans);
    out->calls = knee_resize(alloc, NULL, (count + 1) * sizeof *out->calls);
    if (!out->spans || !out->calls)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct knee_call *call = &out->calls[out->call_count++];
        struct knee_span *span = &out->spans[out->span_count++];
        *call = rank->calls[i];
        *span = rank->spans[call->span];
        call->span = (uint32_t)i;
        call->group = renamed(kept, call->group);
        call->description = renamed(kept, call->description);
        call->members = renamed(kept, call->members);
        span->call = (uint32_t)i + 1;
        span->step = -1;
        span->name = renamed(kept, span->name + 1) - 1;
    }
    return true;
}

static bool keep_ranks(const struct knee_trace *trace, const uint32_t *kept, struct knee_trace *out)
{
    if (trace->rank_count == 0)
        return true;
    out->ranks = knee_resize(out->alloc, NULL, trace->rank_count * sizeof *out->ranks);
    bool good = out->ranks != NULL;
    for (size_t r = 0; r < trace->rank_count && good; r++)
        good = keep_calls(&trace->ranks[r], kept, out->alloc, &out->ranks[out->rank_count++]);
    return good;
}

/* Facts about the file as a whole. */
static bool keep_facts(const struct knee_trace *trace, struct knee_trace *out)
{
    size_t length = trace->file ? strlen(trace->file) + 1 : 0;
    out->file = length ? knee_resize(out->alloc, NULL, length) : NULL;
    if (out->file)
        memcpy(out->file, trace->file, length);
    return out->file || !length;
}

knee_status knee_trace_outline(const struct knee_trace *trace, const struct knee_alloc *alloc,
                               struct knee_trace *out, struct knee_err *err)
{
    struct knee_trace outline = *trace;
    outline.alloc = alloc;
    outline.file = NULL;
    outline.ranks = NULL;
    outline.steps = outline.loads = NULL;
    outline.names = NULL;
    outline.host_events = outline.long_calls = NULL;
    outline.copies = NULL;
    outline.products = NULL;
    outline.optimizers = NULL;
    outline.product_count = outline.optimizer_count = 0;
    outline.host_event_count = outline.long_call_count = outline.copy_count = 0;
    outline.rank_count = outline.step_count = outline.load_count = outline.name_count = 0;
    uint32_t *kept = knee_zeroed(alloc, (trace->name_count + 1) * sizeof *kept);
    bool good = kept != NULL;
    if (good) {
        mark_names(trace, kept);
        good = keep_facts(trace, &outline) && keep_names(trace, kept, &outline) &&
               keep_ranks(trace, kept, &outline);
        knee_resize(alloc, kept, 0);
    }
    if (good) {
        *out = outline;
        return KNEE_OK;
    }
    knee_trace_release(&outline);
    return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the outline of a trace");
}

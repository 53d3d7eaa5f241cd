/* SPDX-License-Identifier: MIT */
/*
 * What the functions of a backward pass show about a step.
 *
 * Activation checkpointing runs the forward pass of a layer again, inside the backward function
 * that first needs one of its results. That function then launches the kernels of the forward pass
 * in their order; a usual one launches a few kernels, which have other names. A run of RUN kernels
 * with a product among them that one function launches and that the forward pass launched too is
 * recomputation.
 *
 * Gradient accumulation goes forward and back several times before the optimizer steps. A product
 * that no backward function launched parts two passes back.
 */
#include "base/hash.h"
#include "base/text.h"
#include "timeline/account.h"
#include "timeline/kinds.h"

#include <string.h>

enum { RUN = 6, THREADS = 64 };

/* Kernels in order of their start. */
struct list {
    uint32_t *names, *spans, *functions;
    size_t count;
};

struct sweep {
    const struct knee_rank_account *rank;
    const struct knee_alloc *alloc;
    uint32_t *function;   /* per event of the host: the outermost backward function that it is in,
                             row + 1; 0: none */
    unsigned char *known; /* kinds, per name */
    struct list forward, backward;
    size_t passes; /* back */
};

/* ---- Functions ---- */

static bool is_function(const struct knee_trace *trace, const struct knee_host_event *event)
{
    static const char name[] = "autograd::engine::evaluate_function";
    return event->kind == KNEE_HOST_SCOPE &&
           strncmp(trace->names[event->name], name, sizeof name - 1) == 0;
}

static void find_functions(struct sweep *s)
{
    const struct knee_trace *trace = s->rank->trace;
    struct {
        int64_t thread, end_ns;
        uint32_t row;
    } threads[THREADS];
    size_t count = 0, at = 0;
    for (size_t i = 0; i < trace->host_event_count; i++) {
        const struct knee_host_event *event = &trace->host_events[i];
        if (at >= count || threads[at].thread != event->thread)
            for (at = 0; at < count && threads[at].thread != event->thread;)
                at++;
        bool inside = at < count && at < THREADS && event->start_ns < threads[at].end_ns;
        s->function[i] = 0;
        if (inside)
            s->function[i] = threads[at].row;
        if (inside || at >= THREADS || !is_function(trace, event))
            continue;
        threads[at].thread = event->thread;
        threads[at].end_ns = event->end_ns;
        threads[at].row = (uint32_t)i + 1;
        count += at == count;
    }
}

static bool is_product(struct sweep *s, uint32_t name)
{
    enum knee_kernel_kind kind = knee_known_kind(s->rank->trace->names[name], &s->known[name]);
    return kind == KNEE_KERNEL_PRODUCT || kind == KNEE_KERNEL_ATTENTION;
}

static void add(struct list *list, const struct knee_span *span, size_t row, uint32_t function)
{
    list->names[list->count] = span->name;
    list->spans[list->count] = (uint32_t)row;
    list->functions[list->count++] = function;
}

static bool counts(const struct knee_span *span)
{
    return span->launch && span->kind != KNEE_SPAN_COMM && span->kind != KNEE_SPAN_COPY;
}

/* Counts passes back; returns whether a function launches as much as a run. */
static bool count_passes(struct sweep *s)
{
    const struct knee_rank *source = s->rank->source;
    bool back = false, long_run = false;
    uint32_t last = 0, run = 0;
    for (size_t i = 0; i < source->span_count; i++) {
        const struct knee_span *span = &source->spans[i];
        if (!counts(span))
            continue;
        uint32_t function = s->function[span->launch - 1];
        if (function) {
            s->passes += !back;
            back = true;
            run = function == last ? run + 1 : 1;
            last = function;
            long_run = long_run || run >= RUN;
        } else if (back && is_product(s, span->name)) {
            back = false;
        }
    }
    return long_run;
}

static void part_passes(struct sweep *s)
{
    const struct knee_rank *source = s->rank->source;
    for (size_t i = 0; i < source->span_count; i++) {
        const struct knee_span *span = &source->spans[i];
        uint32_t function = counts(span) ? s->function[span->launch - 1] : 0;
        if (counts(span))
            add(function ? &s->backward : &s->forward, span, i, function);
    }
}

/* ---- Recomputation ---- */

static bool has_product(struct sweep *s, const uint32_t *names)
{
    for (size_t i = 0; i < RUN; i++)
        if (is_product(s, names[i]))
            return true;
    return false;
}

/* A run of one function. */
static bool is_run(const struct list *list, size_t at)
{
    return at + RUN <= list->count && list->functions[at] == list->functions[at + RUN - 1];
}

/* The slot of a table of runs of the forward pass in which this one is, or would be. */
static size_t slot_of(const struct sweep *s, const uint32_t *table, size_t mask,
                      const uint32_t *names)
{
    size_t size = RUN * sizeof *names;
    size_t slot = (size_t)knee_keyed(knee_hash_key_for(table), names, size) & mask;
    while (table[slot] && memcmp(s->forward.names + table[slot] - 1, names, size) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

/* Marks what functions ran again. False: no memory. */
static bool mark_again(struct sweep *s, bool *again)
{
    const struct list *f = &s->forward, *b = &s->backward;
    size_t mask = 1;
    while (mask < 2 * f->count)
        mask = 2 * mask + 1;
    uint32_t *table = knee_resize(s->alloc, NULL, (mask + 1) * sizeof *table);
    if (!table)
        return false;
    memset(table, 0, (mask + 1) * sizeof *table);
    for (size_t i = 0; is_run(f, i); i++)
        table[slot_of(s, table, mask, f->names + i)] = (uint32_t)i + 1;
    for (size_t i = 0; i < b->count; i++)
        if (is_run(b, i) && table[slot_of(s, table, mask, b->names + i)] &&
            has_product(s, b->names + i))
            for (size_t k = 0; k < RUN; k++)
                again[b->spans[i + k]] = true;
    knee_resize(s->alloc, table, 0);
    return true;
}

/* ---- All of it ---- */

static bool make_list(struct list *list, uint32_t *room, size_t count)
{
    *list = (struct list){room, room + count, room + 2 * count, 0};
    return room != NULL;
}

/* False: no memory. */
static bool find_again(struct sweep *s, struct knee_passes *out)
{
    size_t spans = s->rank->source->span_count + 1;
    uint32_t *room = knee_resize(s->alloc, NULL, 6 * spans * sizeof *room);
    out->again = knee_resize(s->alloc, NULL, spans * sizeof *out->again);
    bool good = out->again && make_list(&s->forward, room, spans) &&
                make_list(&s->backward, room + 3 * spans, spans);
    if (good) {
        memset(out->again, 0, spans * sizeof *out->again);
        part_passes(s);
        good = mark_again(s, out->again);
    }
    knee_resize(s->alloc, room, 0);
    if (!good) {
        knee_resize(s->alloc, out->again, 0);
        out->again = NULL;
    }
    return good;
}

bool knee_find_passes(const struct knee_rank_account *rank, unsigned char *known,
                      const struct knee_alloc *alloc, struct knee_passes *out)
{
    const struct knee_trace *trace = rank->trace;
    struct sweep s = {.rank = rank, .alloc = alloc, .known = known};
    *out = (struct knee_passes){0};
    if (!trace->backward || trace->host_event_count == 0)
        return true;
    s.function = knee_resize(alloc, NULL, (trace->host_event_count + 1) * sizeof *s.function);
    if (!s.function)
        return false;
    find_functions(&s);
    bool good = !count_passes(&s) || find_again(&s, out);
    out->micro_batches = trace->optimizer_count ? (int64_t)(s.passes / trace->optimizer_count) : 0;
    knee_resize(alloc, s.function, 0);
    return good;
}

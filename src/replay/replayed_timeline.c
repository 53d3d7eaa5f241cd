/* SPDX-License-Identifier: MIT */
/*
 * A run of a graph as traces: every node's span at its new time, what travelled inside it with it,
 * launches, steps and loads moved with the host. Names stay those of the recorded traces.
 */
#include "replay/replayed_timeline.h"

#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"

#include <string.h>

struct writer {
    const struct knee_graph *before, *after;
    const struct knee_replay_times *times;
    int32_t rank;
    const struct knee_rank_account *source;
    struct knee_trace *trace;
    struct knee_span *spans; /* not yet in order */
    struct knee_call *calls; /* beside spans, where they have one */
    size_t count;
    bool more; /* there are nodes that the recording has not */
};

/* When the host came to `own_ns` of the recorded clock: as long after its last wait as before. */
static int64_t host_time(const struct writer *w, int64_t own_ns)
{
    const struct knee_graph *g = w->before;
    const struct knee_graph_rank *rank = &g->ranks[w->rank];
    int64_t at = own_ns + knee_common_time(w->source, 0) - g->origin_ns;
    int32_t last = rank->root;
    int64_t last_end = 0;
    for (int32_t i = rank->first; i < rank->first + rank->count; i++)
        if (g->nodes[i].kind == KNEE_NODE_HOST && i != rank->root && g->nodes[i].end_ns <= at &&
            g->nodes[i].end_ns >= last_end) {
            last = i;
            last_end = g->nodes[i].end_ns;
        }
    return w->times->end_ns[last] + at - last_end;
}

/* A launch moves with the host; a change of the host's own time moves it too. */
static int64_t launch_time(const struct writer *w, size_t node, int64_t launch_ns)
{
    const struct knee_node *n = &w->after->nodes[node];
    if (launch_ns == KNEE_NO_TIME || n->host == KNEE_NO_NODE)
        return KNEE_NO_TIME;
    int64_t at = launch_ns + knee_common_time(w->source, 0) - w->before->origin_ns;
    int64_t took = at - n->call_ns;
    int64_t launch = w->times->end_ns[n->host] + n->host_lag_ns + took;
    if (node < w->before->count) {
        const struct knee_node *old = &w->before->nodes[node];
        int64_t since =
            old->host == w->before->ranks[w->rank].root ? 0 : w->before->nodes[old->host].end_ns;
        launch = w->times->end_ns[n->host] + (at - since) - (old->host_lag_ns - n->host_lag_ns);
    }
    return launch < w->times->start_ns[node] ? launch : w->times->start_ns[node];
}

static void put_node(struct writer *w, size_t node)
{
    const struct knee_node *n = &w->after->nodes[node];
    const struct knee_rank *source = w->source->source;
    struct knee_span *span = &w->spans[w->count];
    const struct knee_span *old = &source->spans[n->span - 1];
    *span = *old;
    span->start_ns = w->times->start_ns[node];
    span->end_ns = w->times->end_ns[node];
    span->launch_ns = launch_time(w, node, old->launch_ns);
    span->launch = 0;
    if (n->call && old->call) {
        w->calls[w->count] = source->calls[n->call - 1];
        if (n->meet)
            w->calls[w->count].bytes = w->after->meets[n->meet - 1].bytes;
        if (w->more)
            w->calls[w->count].sequence = -1;
    }
    w->count++;
}

/* Spans that are no nodes lie inside one: they move with it. */
static bool put_passengers(struct writer *w)
{
    const struct knee_rank *source = w->source->source;
    const struct knee_graph_rank *rank = &w->before->ranks[w->rank];
    size_t size = (source->span_count + 1) * sizeof(int32_t);
    int32_t *node_of = knee_resize(w->after->alloc, NULL, size);
    if (!node_of)
        return false;
    memset(node_of, 0xff, size);
    for (int32_t i = rank->first; i < rank->first + rank->count; i++)
        if (w->before->nodes[i].span)
            node_of[w->before->nodes[i].span - 1] = i;
    for (size_t i = 0; i < source->span_count; i++) {
        if (node_of[i] != KNEE_NO_NODE)
            continue;
        size_t inside = i;
        while (inside > 0 && (node_of[inside] == KNEE_NO_NODE ||
                              source->spans[inside].stream != source->spans[i].stream))
            inside--;
        int32_t node = node_of[inside];
        if (node == KNEE_NO_NODE || w->after->nodes[node].gone)
            continue;
        int64_t moved = w->times->start_ns[node] - source->spans[inside].start_ns;
        struct knee_span *span = &w->spans[w->count];
        *span = source->spans[i];
        span->start_ns += moved;
        span->end_ns += moved;
        span->end_ns =
            span->end_ns < w->times->end_ns[node] ? span->end_ns : w->times->end_ns[node];
        span->start_ns = span->start_ns < span->end_ns ? span->start_ns : span->end_ns;
        span->launch = 0;
        if (span->call)
            w->calls[w->count] = source->calls[span->call - 1];
        w->count++;
    }
    knee_resize(w->after->alloc, node_of, 0);
    return true;
}

static bool put_in_order(struct writer *w, struct knee_rank *rank)
{
    const struct knee_alloc *alloc = w->after->alloc;
    struct knee_sort_key *keys = knee_resize(alloc, NULL, 2 * (w->count + 1) * sizeof *keys);
    rank->spans = knee_resize(alloc, NULL, (w->count + 1) * sizeof *rank->spans);
    rank->calls = knee_resize(alloc, NULL, (w->count + 1) * sizeof *rank->calls);
    if (!keys || !rank->spans || !rank->calls) {
        knee_resize(alloc, keys, 0);
        return false;
    }
    for (size_t i = 0; i < w->count; i++)
        keys[i] = (struct knee_sort_key){knee_sort_signed(w->spans[i].start_ns), i};
    knee_sort(keys, keys + w->count, w->count);
    for (size_t i = 0; i < w->count; i++) {
        struct knee_span *span = &rank->spans[i];
        *span = w->spans[keys[i].row];
        rank->launched += span->launch_ns != KNEE_NO_TIME;
        if (!span->call)
            continue;
        rank->calls[rank->call_count] = w->calls[keys[i].row];
        rank->calls[rank->call_count].span = (uint32_t)i;
        span->call = (uint32_t)++rank->call_count;
    }
    rank->span_count = rank->work = w->count;
    rank->start_ns = w->count ? rank->spans[0].start_ns : 0;
    for (size_t i = 0; i < w->count; i++)
        rank->end_ns = rank->spans[i].end_ns > rank->end_ns ? rank->spans[i].end_ns : rank->end_ns;
    knee_resize(alloc, keys, 0);
    return true;
}

static struct knee_mark *move_marks(const struct writer *w, const struct knee_mark *marks,
                                    size_t count)
{
    struct knee_mark *moved = knee_resize(w->after->alloc, NULL, (count + 1) * sizeof *moved);
    for (size_t i = 0; moved && i < count; i++) {
        moved[i] = marks[i];
        moved[i].start_ns = host_time(w, marks[i].start_ns);
        moved[i].end_ns = host_time(w, marks[i].end_ns);
        if (moved[i].end_ns < moved[i].start_ns)
            moved[i].end_ns = moved[i].start_ns;
    }
    return moved;
}

/* All of a trace but its spans. */
static bool begin_trace(struct writer *w)
{
    static const char file[] = "replayed";
    const struct knee_trace *old = w->source->trace;
    struct knee_trace *trace = w->trace;
    *trace = (struct knee_trace){.format = "replayed",
                                 .rank = w->source->rank,
                                 .world_size = w->after->account->world_size,
                                 .base_ns = w->before->origin_ns > 0 ? w->before->origin_ns : 0,
                                 .names = old->names,
                                 .name_count = old->name_count,
                                 .whole_graphs = old->whole_graphs,
                                 .alloc = w->after->alloc};
    memcpy(trace->gpu_name, old->gpu_name, sizeof trace->gpu_name);
    memcpy(trace->host, old->host, sizeof trace->host);
    memcpy(trace->backend, old->backend, sizeof trace->backend);
    trace->file = knee_resize(trace->alloc, NULL, sizeof file);
    trace->ranks = knee_resize(trace->alloc, NULL, sizeof *trace->ranks);
    trace->steps = move_marks(w, old->steps, old->step_count);
    trace->loads = move_marks(w, old->loads, old->load_count);
    if (!trace->file || !trace->ranks || !trace->steps || !trace->loads)
        return false;
    memcpy(trace->file, file, sizeof file);
    memset(trace->ranks, 0, sizeof *trace->ranks);
    trace->ranks[0].rank = w->source->source->rank;
    trace->ranks[0].device = w->source->source->device;
    trace->rank_count = 1;
    trace->step_count = old->step_count;
    trace->load_count = old->load_count;
    return true;
}

static bool write_rank(const struct knee_graph *before, const struct knee_graph *after,
                       const struct knee_replay_times *times, size_t rank, struct knee_trace *out)
{
    struct writer w = {.before = before,
                       .after = after,
                       .times = times,
                       .rank = (int32_t)rank,
                       .source = &after->account->ranks[rank],
                       .trace = out,
                       .more = after->count > before->count};
    size_t most = w.source->source->span_count + (after->count - before->count) + 1;
    w.spans = knee_resize(after->alloc, NULL, most * sizeof *w.spans);
    w.calls = knee_resize(after->alloc, NULL, most * sizeof *w.calls);
    bool good = begin_trace(&w) && w.spans && w.calls;
    for (size_t i = 0; good && i < after->count; i++)
        if (after->nodes[i].rank == w.rank && after->nodes[i].span && !after->nodes[i].gone)
            put_node(&w, i);
    good = good && put_passengers(&w) && put_in_order(&w, &out->ranks[0]);
    knee_resize(after->alloc, w.spans, 0);
    knee_resize(after->alloc, w.calls, 0);
    return good;
}

void knee_replayed_release(struct knee_replayed *replayed)
{
    for (size_t i = 0; i < replayed->count; i++) {
        replayed->traces[i].names = NULL; /* borrowed */
        replayed->traces[i].name_count = 0;
        knee_trace_release(&replayed->traces[i]);
    }
    knee_resize(replayed->alloc, replayed->traces, 0);
    memset(replayed, 0, sizeof *replayed);
}

knee_status knee_write_replay(const struct knee_graph *before, const struct knee_graph *after,
                              const struct knee_replay_times *times, struct knee_replayed *out,
                              struct knee_err *err)
{
    struct knee_replayed all = {.alloc = after->alloc};
    all.traces = knee_resize(after->alloc, NULL, (after->rank_count + 1) * sizeof *all.traces);
    bool good = all.traces != NULL;
    if (good)
        memset(all.traces, 0, (after->rank_count + 1) * sizeof *all.traces);
    for (size_t r = 0; good && r < after->rank_count; r++) {
        all.count++;
        good = write_rank(before, after, times, r, &all.traces[r]);
    }
    if (good) {
        *out = all;
        return KNEE_OK;
    }
    knee_replayed_release(&all);
    return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the timeline");
}

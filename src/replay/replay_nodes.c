/* SPDX-License-Identifier: MIT */
/*
 * Nodes of a graph: every piece of GPU work, and every moment at which the host came back from a
 * call that waits for the GPU. Work that lies inside other work of its stream (operations of jobs
 * without GPUs) travels with it; where two pieces of a stream overlap, the first is taken to end
 * when the second starts.
 */
#include "base/error.h"
#include "base/list.h"
#include "base/order.h"
#include "base/sort.h"
#include "base/text.h"
#include "replay/replay_graph.h"
#include "timeline/kinds.h"

#include <math.h>
#include <string.h>

enum {
    BLOCKS_NS = 50000, /* a copy whose call takes longer than this waits for it */
    LATENCY_SHARE = 50 /* the launch latency is the time that 1/50 of the launches beat */
};

/* ---- Lists ---- */

/* Room for one more row after `count` of them. False and g->failed: no memory, now or before. */
static bool room(struct knee_graph *g, void *rows, size_t count, size_t *capacity, size_t size)
{
    bool good =
        !g->failed && count < INT32_MAX / 2 && knee_room(g->alloc, rows, capacity, count + 1, size);
    g->failed = !good;
    return good;
}

int32_t knee_graph_add_node(struct knee_graph *g, const struct knee_node *node)
{
    size_t capacity = g->capacity;
    bool good = room(g, &g->nodes, g->count, &capacity, sizeof *g->nodes) &&
                room(g, &g->next_member, g->count, &g->capacity, sizeof *g->next_member);
    if (g->copy_of) { /* whose nodes they are: they may have moved */
        g->copy_of->nodes = g->nodes;
        g->copy_of->next_member = g->next_member;
        g->copy_of->capacity = g->capacity;
    }
    if (!good)
        return KNEE_NO_NODE;
    g->nodes[g->count] = *node;
    g->nodes[g->count].saved = false;
    g->next_member[g->count] = KNEE_NO_NODE;
    return (int32_t)g->count++;
}

void knee_graph_add_edge(struct knee_graph *g, int32_t from, int32_t to, int64_t lag_ns,
                         enum knee_edge_source source)
{
    if (from == to || !room(g, &g->edges, g->edge_count, &g->edge_capacity, sizeof *g->edges))
        return;
    g->edges[g->edge_count++] = (struct knee_graph_edge){from, to, lag_ns, (unsigned char)source};
    g->sources[source]++;
}

uint32_t knee_graph_add_meet(struct knee_graph *g, const struct knee_graph_meet *meet)
{
    if (!room(g, &g->meets, g->meet_count, &g->meet_capacity, sizeof *g->meets))
        return 0;
    g->meets[g->meet_count] = *meet;
    g->meets[g->meet_count].first = KNEE_NO_NODE;
    g->meets[g->meet_count].count = 0;
    return (uint32_t)++g->meet_count;
}

void knee_graph_join(struct knee_graph *g, uint32_t meet, int32_t node)
{
    if (!meet || node == KNEE_NO_NODE)
        return;
    struct knee_graph_meet *m = &g->meets[meet - 1];
    g->nodes[node].meet = meet;
    g->next_member[node] = m->first;
    m->first = node;
    m->count++;
}

/* ---- One rank ---- */

struct block {
    int64_t start_ns, end_ns; /* of the call, common clock */
    int32_t node;
};

struct maker {
    struct knee_graph *g;
    const struct knee_rank_account *rank;
    const struct knee_host_line *line;
    int32_t row;       /* of the rank */
    uint32_t *span_of; /* per host event: row + 1 of the span it handed over */
    struct block *blocks;
    size_t block_count;
    int64_t latency_ns;
    int64_t clock_ns; /* added to the trace's times */
    int64_t to_ns;    /* where the last step ends, as the host marks it after all work; 0: it does
                         not, or its node is made */
};

static void map_launches(struct maker *m)
{
    const struct knee_rank *source = m->rank->source;
    memset(m->span_of, 0, (m->rank->trace->host_event_count + 1) * sizeof *m->span_of);
    for (size_t i = 0; i < source->span_count; i++)
        if (source->spans[i].launch)
            m->span_of[source->spans[i].launch - 1] = (uint32_t)i + 1;
}

/* Does the host wait in this call? A copy that takes long, and ends about when its work does. */
static bool is_block(const struct maker *m, size_t row)
{
    const struct knee_host_event *event = &m->rank->trace->host_events[row];
    if (!m->line->notes[row].worker)
        return false;
    if (event->kind == KNEE_HOST_SYNC)
        return true;
    if (event->kind != KNEE_HOST_LAUNCH || !m->span_of[row] ||
        event->end_ns - event->start_ns < BLOCKS_NS)
        return false;
    const struct knee_span *span = &m->rank->source->spans[m->span_of[row] - 1];
    int64_t apart = event->end_ns - span->end_ns;
    return span->kind == KNEE_SPAN_COPY && span->start_ns < event->end_ns &&
           (apart < 0 ? -apart : apart) < BLOCKS_NS;
}

/* The last block that had ended at `ns`. Blocks are in order of their ends. */
static const struct block *block_before(const struct maker *m, int64_t ns)
{
    size_t low;
    KNEE_BISECT(low, m->block_count, m->blocks[low].end_ns <= ns);
    return &m->blocks[low - 1]; /* the root is before everything */
}

static void add_root(struct maker *m)
{
    struct knee_node root = {
        .rank = m->row, .kind = KNEE_NODE_HOST, .host = KNEE_NO_NODE, .step = -1};
    m->g->ranks[m->row].root = knee_graph_add_node(m->g, &root);
    m->blocks[m->block_count++] = (struct block){0, INT64_MIN, m->g->ranks[m->row].root};
}

/* A moment of the host, `from_ns` after its wait before that ended. */
static int32_t add_moment(struct maker *m, int64_t call_ns, int64_t end_ns, int64_t lag_ns,
                          uint32_t event)
{
    const struct block *before = block_before(m, call_ns);
    struct knee_node node = {.rank = m->row,
                             .kind = KNEE_NODE_HOST,
                             .step = -1,
                             .start_ns = end_ns,
                             .end_ns = end_ns,
                             .order = end_ns,
                             .call_ns = call_ns,
                             .call = event, /* of a host node: the host's event */
                             .host = before->node};
    int64_t since = before->node == m->g->ranks[m->row].root ? 0 : before->end_ns;
    node.host_lag_ns = lag_ns > since ? lag_ns - since : 0;
    return knee_graph_add_node(m->g, &node);
}

/* The end of the last step, once no wait that ends before it is left. */
static void add_end(struct maker *m, int64_t next_ns)
{
    if (!m->to_ns || next_ns <= m->to_ns)
        return;
    m->g->ranks[m->row].to_host = add_moment(m, m->to_ns, m->to_ns, m->to_ns, 0);
    m->to_ns = 0;
}

/* ---- Waits of the host that are not recorded ---- */

/* Profilers that do not record synchronisations (the lab's, sampled traces) show them as pauses of
 * the host that end when all it has handed over is done: soon, or soon against how long it waited,
 * for a busy machine wakes it late. */
enum {
    PAUSE_NS = 500000,  /* the least pause that can be a wait */
    RESUME_NS = 300000, /* from the end of work to the host's next call ... */
    RESUME_SHARE = 20   /* ... or one part in so many of the wait */
};

static bool resumes_after(int64_t last_call, int64_t done, int64_t next_call)
{
    int64_t soon = (done - last_call) / RESUME_SHARE;
    return done > last_call && done <= next_call &&
           next_call - done <= (soon > RESUME_NS ? soon : RESUME_NS);
}

static bool records_waits(const struct maker *m)
{
    const struct knee_trace *trace = m->rank->trace;
    for (size_t i = 0; i < trace->host_event_count; i++)
        if (trace->host_events[i].kind == KNEE_HOST_SYNC)
            return true;
    return false;
}

static void add_wait(struct maker *m, int64_t from_ns, int64_t end_ns)
{
    add_end(m, end_ns);
    int32_t node = add_moment(m, from_ns, end_ns, from_ns, 0);
    m->blocks[m->block_count++] = (struct block){from_ns, end_ns, node};
}

static int64_t last_step_end(const struct knee_trace *trace, int64_t device)
{
    int64_t end = KNEE_FIRST_NS;
    for (size_t i = 0; i < trace->step_count; i++) {
        const struct knee_mark *step = &trace->steps[i];
        if ((step->device == -1 || step->device == device) && step->end_ns > end)
            end = step->end_ns;
    }
    return end;
}

/* What of the time from `from_ns` to `to_ns` (own clock) the host spent loading. */
static int64_t loading_between(const struct knee_trace *trace, int64_t from_ns, int64_t to_ns)
{
    int64_t sum = 0;
    for (size_t i = 0; i < trace->load_count; i++)
        if (trace->loads[i].start_ns >= from_ns && trace->loads[i].end_ns <= to_ns)
            sum += trace->loads[i].end_ns - trace->loads[i].start_ns;
    return sum;
}

static void add_unrecorded(struct maker *m)
{
    const struct knee_trace *trace = m->rank->trace;
    const struct knee_rank *source = m->rank->source;
    int64_t last_call = INT64_MIN, done = INT64_MIN;
    for (size_t i = 0; i < trace->host_event_count; i++) {
        const struct knee_host_event *event = &trace->host_events[i];
        if (event->kind != KNEE_HOST_LAUNCH || !m->span_of[i])
            continue;
        bool pause = last_call != INT64_MIN && event->start_ns - last_call > PAUSE_NS;
        int64_t loading = pause ? loading_between(trace, done, event->start_ns) : 0;
        if (pause && resumes_after(last_call, done, event->start_ns - loading))
            add_wait(m, last_call + m->clock_ns, done + m->clock_ns);
        const struct knee_span *span = &source->spans[m->span_of[i] - 1];
        done = span->end_ns > done ? span->end_ns : done;
        last_call = event->end_ns;
    }
    /* Nothing is handed over after the last step: its end shows that the host has waited. */
    int64_t end = last_step_end(trace, source->device);
    if (last_call != INT64_MIN && end - last_call > PAUSE_NS && resumes_after(last_call, done, end))
        add_wait(m, last_call + m->clock_ns, done + m->clock_ns);
}

/* A block is a point: the end of its call. Until its edges are known all its time is the host's. */
static void add_blocks(struct maker *m)
{
    const struct knee_trace *trace = m->rank->trace;
    struct knee_sort_key *keys =
        knee_resize(m->g->alloc, NULL, 2 * (trace->host_event_count + 1) * sizeof *keys);
    size_t count = 0;
    m->g->failed = m->g->failed || !keys;
    for (size_t i = 0; keys && i < trace->host_event_count; i++)
        if (is_block(m, i))
            keys[count++] =
                (struct knee_sort_key){knee_sort_signed(trace->host_events[i].end_ns), i};
    if (keys)
        knee_sort(keys, keys + count, count);
    for (size_t k = 0; keys && k < count; k++) {
        const struct knee_host_event *event = &trace->host_events[keys[k].row];
        int64_t start = event->start_ns + m->clock_ns, end = event->end_ns + m->clock_ns;
        add_end(m, end);
        int32_t node = add_moment(m, start, end, end, (uint32_t)keys[k].row + 1);
        m->blocks[m->block_count++] = (struct block){start, end, node};
    }
    knee_resize(m->g->alloc, keys, 0);
}

/* The fastest launches show how long a launch takes if nothing delays it. */
static bool measure_latency(struct maker *m)
{
    const struct knee_rank *source = m->rank->source;
    const struct knee_host_event *events = m->rank->trace->host_events;
    double *took = knee_resize(m->g->alloc, NULL, (source->span_count + 1) * sizeof *took);
    size_t count = 0;
    if (!took)
        return false;
    for (size_t i = 0; i < source->span_count; i++) {
        const struct knee_span *span = &source->spans[i];
        int64_t ns = span->launch ? span->start_ns - events[span->launch - 1].start_ns : -1;
        if (ns > 0)
            took[count++] = fmin(9e18, (double)ns);
    }
    m->latency_ns = count ? (int64_t)knee_at_rank(took, count, count / LATENCY_SHARE) : 0;
    knee_resize(m->g->alloc, took, 0);
    return true;
}

/* When the host had handed it over, and after which wait of its. */
static void set_launch(const struct maker *m, const struct knee_span *span, struct knee_node *node)
{
    node->host = m->g->ranks[m->row].root;
    node->call_ns = node->start_ns;
    node->host_lag_ns = 0;
    if (!span->launch)
        return;
    const struct knee_host_event *event = &m->rank->trace->host_events[span->launch - 1];
    const struct block *before = block_before(m, event->start_ns + m->clock_ns);
    node->call_ns = event->start_ns + m->clock_ns;
    node->host = before->node;
    int64_t took = node->start_ns - node->call_ns;
    int64_t from = before->node == m->g->ranks[m->row].root ? 0 : before->end_ns;
    int64_t lag = node->call_ns - from + (took < m->latency_ns ? took : m->latency_ns);
    node->host_lag_ns = lag > 0 ? lag : 0;
}

static unsigned char phase_of(const struct maker *m, const struct knee_span *span)
{
    const char *name = m->rank->trace->names[span->name];
    if (span->kind == KNEE_SPAN_COPY && knee_has_word(name, "htod"))
        return KNEE_WORK_INPUT;
    return span->launch ? m->line->notes[span->launch - 1].phase : KNEE_WORK_FORWARD;
}

static unsigned char shard_role(const struct maker *m, const struct knee_host_note *note)
{
    static const struct {
        const char *begin;
        unsigned char role;
    } roles[] = {
        {"FSDP::all_gather_copy_out", KNEE_SHARD_COPY_OUT},
        {"FSDP::all_gather", KNEE_SHARD_GATHER},
        {"FSDP::post_backward_reduce", KNEE_SHARD_REDUCE},
    };
    const char *label = note->label ? m->rank->trace->names[note->label - 1] : "";
    for (size_t i = 0; *label && i < sizeof roles / sizeof *roles; i++)
        if (strncmp(label, roles[i].begin, strlen(roles[i].begin)) == 0)
            return roles[i].role;
    return KNEE_SHARD_NONE;
}

/* How much the copy handed over by a call moves; 0 when the trace does not say. */
static int64_t copy_bytes(const struct knee_trace *trace, uint32_t launch)
{
    size_t low;
    KNEE_BISECT(low, trace->copy_count, trace->copies[low].launch < launch);
    bool found = low < trace->copy_count && trace->copies[low].launch == launch;
    return found ? trace->copies[low].bytes : 0;
}

static struct knee_node node_of(const struct maker *m, size_t row, int32_t lane)
{
    static const unsigned char kinds[] = {[KNEE_SPAN_COMPUTE] = KNEE_NODE_COMPUTE,
                                          [KNEE_SPAN_COMM] = KNEE_NODE_COMM,
                                          [KNEE_SPAN_FUSED] = KNEE_NODE_COMM,
                                          [KNEE_SPAN_COPY] = KNEE_NODE_COPY};
    const struct knee_span *span = &m->rank->source->spans[row];
    struct knee_node node = {
        .share = 1,
        .start_ns = span->start_ns + m->clock_ns,
        .end_ns = span->end_ns + m->clock_ns,
        .order = span->start_ns + m->clock_ns,
        .rank = m->row,
        .lane = lane,
        .span = (uint32_t)row + 1,
        .call = span->call,
        .step = span->step,
        .kind = kinds[span->kind],
        .both = span->kind == KNEE_SPAN_FUSED,
        .phase = phase_of(m, span),
    };
    node.work_ns = (double)(node.end_ns - node.start_ns);
    set_launch(m, span, &node);
    if (span->launch) {
        const struct knee_host_note *note = &m->line->notes[span->launch - 1];
        node.bytes = span->kind == KNEE_SPAN_COPY ? copy_bytes(m->rank->trace, span->launch) : 0;
        node.shard = shard_role(m, note);
        node.backward = note->backward;
    }
    return node;
}

struct lane {
    int32_t stream, last; /* the node that ends last */
};

/* The lane of a stream; streams that differ in nothing but number are few. */
static int32_t lane_of(struct knee_graph *g, struct lane **lanes, size_t *count, size_t *capacity,
                       int32_t stream)
{
    for (size_t i = 0; i < *count; i++)
        if ((*lanes)[i].stream == stream)
            return (int32_t)i;
    if (!room(g, lanes, *count, capacity, sizeof **lanes))
        return 0;
    (*lanes)[*count] = (struct lane){stream, KNEE_NO_NODE};
    return (int32_t)(*count)++;
}

static void add_spans(struct maker *m)
{
    const struct knee_rank *source = m->rank->source;
    struct lane *lanes = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < source->span_count && !m->g->failed; i++) {
        const struct knee_span *span = &source->spans[i];
        int32_t lane = lane_of(m->g, &lanes, &count, &capacity, span->stream);
        if (m->g->failed)
            break;
        struct knee_node node = node_of(m, i, lane + 1); /* lane 0 is the host */
        struct knee_node *last =
            lanes[lane].last == KNEE_NO_NODE ? NULL : &m->g->nodes[lanes[lane].last];
        if (last && node.end_ns <= last->end_ns && node.start_ns < last->end_ns)
            continue; /* inside the one before: travels with it */
        if (last && node.start_ns < last->end_ns) {
            last->end_ns = node.start_ns;
            last->work_ns = (double)(last->end_ns - last->start_ns);
        }
        lanes[lane].last = knee_graph_add_node(m->g, &node);
    }
    m->g->ranks[m->row].lanes = (int32_t)count + 1;
    knee_resize(m->g->alloc, lanes, 0);
}

static void set_window(const struct knee_graph *g, struct knee_graph_rank *rank,
                       const struct knee_rank_account *account)
{
    rank->start_ns = knee_common_time(account, account->start_ns) - g->origin_ns;
    rank->end_ns = knee_common_time(account, account->end_ns) - g->origin_ns;
    rank->from_ns = knee_common_time(account, account->from_ns) - g->origin_ns;
    rank->to_ns = knee_common_time(account, account->to_ns) - g->origin_ns;
    rank->to_host = KNEE_NO_NODE;
}

bool knee_graph_add_rank(struct knee_graph *g, size_t rank, const struct knee_host_line *line)
{
    struct maker m = {.g = g, .rank = &g->account->ranks[rank], .line = line, .row = (int32_t)rank};
    size_t events = m.rank->trace->host_event_count;
    m.clock_ns = knee_common_time(m.rank, 0) - g->origin_ns;
    m.span_of = knee_resize(g->alloc, NULL, (events + 1) * sizeof *m.span_of);
    m.blocks = knee_resize(g->alloc, NULL, (events + 1) * sizeof *m.blocks);
    g->failed = g->failed || !m.span_of || !m.blocks;
    g->ranks[rank].first = (int32_t)g->count;
    set_window(g, &g->ranks[rank], m.rank);
    m.to_ns = g->ranks[rank].to_ns > g->ranks[rank].end_ns ? g->ranks[rank].to_ns : 0;
    if (!g->failed) {
        map_launches(&m);
        add_root(&m);
        if (records_waits(&m))
            add_blocks(&m);
        else
            add_unrecorded(&m);
        add_end(&m, INT64_MAX);
        g->failed = g->failed || !measure_latency(&m);
    }
    if (!g->failed)
        add_spans(&m);
    g->ranks[rank].count = (int32_t)g->count - g->ranks[rank].first;
    knee_resize(g->alloc, m.span_of, 0);
    knee_resize(g->alloc, m.blocks, 0);
    return !g->failed;
}

/* SPDX-License-Identifier: MIT */
/*
 * What waits for what inside one rank, beyond the order of lanes and the host's calls. A sweep over
 * the host's calls in order of time:
 *
 *   - a collective waits for the work its thread handed over last (the event recorded at its head),
 *     and for the collective before it on the same communicator;
 *   - a wait for an event that is not part of a collective's own call takes the oldest collective
 *     that no work has waited for yet: the thread's next work comes after it. With FSDP's
 *     annotations the copy-out of a shard takes the oldest all-gather, and the end of the backward
 *     pass takes all reduce-scatters;
 *   - a synchronisation waits for what was handed over before it: of all lanes, or of the one that
 *     explains when it came back.
 *
 * An edge that the measured times contradict is dropped. What is left unexplained is looked at in
 * the end: work that starts as soon as work of another lane has ended depends on it.
 */
#include "base/error.h"
#include "base/order.h"
#include "base/sort.h"
#include "base/text.h"
#include "replay/replay_graph.h"
#include "timeline/kinds.h"

#include <string.h>

enum {
    CONTRADICTS_NS = 2000, /* an edge may be broken by so much: clocks */
    BLOCKED_NS = 10000,    /* a call that takes longer waited */
    CALL_NS = 2000,        /* a synchronisation that need not wait */
    EXPLAINS_NS = 10000,   /* a gap that is explained is not larger */
    RETURN_NS = 100000,    /* from the end of work to the return of a call that waited for it */
    UNEXPLAINED_NS = 20000,
    WAITING = 64,
    GROUPS = 64
};

struct sweep {
    struct knee_graph *g;
    const struct knee_trace *trace;
    const struct knee_host_line *line;
    const struct knee_graph_rank *rank;
    int32_t *node_of;      /* per host event: the node it handed over, or the block it is */
    int32_t *last_on_lane; /* per lane: handed over last */
    int32_t *before;       /* per node of the rank: the one before it on its lane */
    int32_t *unwaited;     /* collectives that no work has waited for yet, oldest first */
    size_t unwaited_first, unwaited_count;
    int32_t pending[WAITING]; /* what the thread's next work waits for */
    size_t pending_count;
    struct {
        int64_t thread;
        int32_t last; /* work that is not communication */
    } threads[WAITING];
    size_t thread_count;
    int32_t copy_out, gate; /* FSDP: the last copy-out; that which the next all-gather waits for */
    struct {
        uint64_t group;
        int32_t last;
    } groups[GROUPS];
    size_t group_count;
};

static struct knee_node *node_at(struct sweep *s, int32_t node)
{
    return &s->g->nodes[node];
}

static void add_edge(struct sweep *s, int32_t from, int32_t to, enum knee_edge_source source)
{
    if (from == KNEE_NO_NODE || from == to)
        return;
    const struct knee_node *a = node_at(s, from), *b = node_at(s, to);
    if (a->end_ns > b->start_ns + CONTRADICTS_NS || a->start_ns > b->start_ns)
        return;
    knee_graph_add_edge(s->g, from, to, 0, source);
}

static int32_t *last_of_thread(struct sweep *s, int64_t thread)
{
    size_t i = 0;
    while (i < s->thread_count && s->threads[i].thread != thread)
        i++;
    if (i == WAITING)
        return &s->threads[0].last;
    if (i == s->thread_count) {
        s->threads[i].thread = thread;
        s->threads[i].last = KNEE_NO_NODE;
        s->thread_count++;
    }
    return &s->threads[i].last;
}

static int32_t *last_of_group(struct sweep *s, uint64_t group)
{
    size_t i = 0;
    while (i < s->group_count && s->groups[i].group != group)
        i++;
    if (i == GROUPS)
        return &s->groups[0].last;
    if (i == s->group_count) {
        s->groups[i].group = group;
        s->groups[i].last = KNEE_NO_NODE;
        s->group_count++;
    }
    return &s->groups[i].last;
}

/* ---- Launches ---- */

static const char *label_of(const struct sweep *s, size_t row)
{
    uint32_t label = s->line->notes[row].label;
    return label ? s->trace->names[label - 1] : "";
}

static bool begins(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* FSDP gathers into a buffer that the copy-out before it must have left. */
static void hand_over_shard(struct sweep *s, size_t row, int32_t node)
{
    const char *label = label_of(s, row);
    if (begins(label, "FSDP::all_gather_copy_out"))
        s->copy_out = node;
    else if (begins(label, "FSDP::all_gather"))
        add_edge(s, s->gate, node, KNEE_EDGE_RULED);
}

static void hand_over_comm(struct sweep *s, int32_t node, const struct knee_host_event *event)
{
    struct knee_node *n = node_at(s, node);
    add_edge(s, *last_of_thread(s, event->thread), node, KNEE_EDGE_RULED);
    const struct knee_call *call =
        n->call ? &s->g->account->ranks[n->rank].source->calls[n->call - 1] : NULL;
    if (call && call->group) {
        int32_t *last = last_of_group(s, call->group);
        if (*last != KNEE_NO_NODE && node_at(s, *last)->lane != n->lane)
            add_edge(s, *last, node, KNEE_EDGE_RULED);
        *last = node;
    }
    s->unwaited[s->unwaited_count++] = node;
}

static void hand_over(struct sweep *s, size_t row)
{
    int32_t node = s->node_of[row];
    const struct knee_host_event *event = &s->trace->host_events[row];
    if (node == KNEE_NO_NODE)
        return;
    struct knee_node *n = node_at(s, node);
    if (s->line->fsdp)
        hand_over_shard(s, row, node);
    if (n->kind == KNEE_NODE_COMM) {
        hand_over_comm(s, node, event);
    } else {
        for (size_t i = 0; i < s->pending_count; i++)
            add_edge(s, s->pending[i], node, KNEE_EDGE_RULED);
        s->pending_count = 0;
        *last_of_thread(s, event->thread) = node;
    }
    s->before[node - s->rank->first] = s->last_on_lane[n->lane];
    s->last_on_lane[n->lane] = node;
}

/* ---- Waits of streams ---- */

static enum knee_op op_of(struct sweep *s, int32_t node)
{
    const struct knee_node *n = node_at(s, node);
    return n->call ? s->g->account->ranks[n->rank].source->calls[n->call - 1].op : KNEE_OP_UNKNOWN;
}

/* Takes the oldest collective of a kind (KNEE_OPS: any) that no work has waited for yet. */
static bool take_oldest(struct sweep *s, int op)
{
    for (size_t i = s->unwaited_first; i < s->unwaited_count; i++) {
        if (s->unwaited[i] == KNEE_NO_NODE ||
            (op != KNEE_OPS && (int)op_of(s, s->unwaited[i]) != op))
            continue;
        if (s->pending_count < WAITING)
            s->pending[s->pending_count++] = s->unwaited[i];
        s->unwaited[i] = KNEE_NO_NODE;
        while (s->unwaited_first < s->unwaited_count &&
               s->unwaited[s->unwaited_first] == KNEE_NO_NODE)
            s->unwaited_first++;
        return true;
    }
    return false;
}

/* The first wait of a reduce-scatter's scope, before its work: for the input buffer of the one
 * before. The others let its stream wait for that work. */
static bool at_head_of_scope(struct sweep *s, size_t row)
{
    int32_t last = *last_of_thread(s, s->trace->host_events[row].thread);
    if (last == KNEE_NO_NODE)
        return true;
    const struct knee_node *n = node_at(s, last);
    const struct knee_span *span = &s->g->account->ranks[n->rank].source->spans[n->span - 1];
    return !span->launch || s->line->notes[span->launch - 1].label != s->line->notes[row].label;
}

/* What FSDP waits for, by the annotation around the wait (torch 2.4 and later, fully_shard). */
static void wait_in_fsdp(struct sweep *s, size_t row)
{
    const char *label = label_of(s, row);
    if (begins(label, "FSDP::all_gather_copy_out"))
        take_oldest(s, KNEE_OP_ALL_GATHER);
    else if (begins(label, "FSDP::root_post_backward"))
        take_oldest(s, KNEE_OP_REDUCE_SCATTER);
    else if (begins(label, "FSDP::post_backward_reduce"))
        (void)(at_head_of_scope(s, row) && take_oldest(s, KNEE_OP_REDUCE_SCATTER));
    else if (!begins(label, "FSDP::all_gather"))
        s->gate = s->copy_out;
}

static void wait_for_event(struct sweep *s, size_t row)
{
    const struct knee_host_note *note = &s->line->notes[row];
    if (note->in_comm || !note->worker)
        return;
    if (s->line->fsdp)
        wait_in_fsdp(s, row);
    else
        take_oldest(s, KNEE_OPS);
}

/* ---- Synchronisations ---- */

/* The work of a lane whose end explains that a call came back at `ns`: not after it, and not long
 * before it. */
static int32_t explains_return(struct sweep *s, int32_t lane, int64_t ns)
{
    int32_t node = s->last_on_lane[lane];
    while (node != KNEE_NO_NODE && node_at(s, node)->end_ns > ns)
        node = s->before[node - s->rank->first];
    return node != KNEE_NO_NODE && ns - node_at(s, node)->end_ns <= RETURN_NS ? node : KNEE_NO_NODE;
}

static int32_t best_explanation(struct sweep *s, int64_t ns)
{
    int32_t best = KNEE_NO_NODE;
    for (int32_t lane = 1; lane < s->rank->lanes; lane++) {
        int32_t node = explains_return(s, lane, ns);
        if (node != KNEE_NO_NODE &&
            (best == KNEE_NO_NODE || node_at(s, node)->end_ns > node_at(s, best)->end_ns))
            best = node;
    }
    return best;
}

/* The host waited: what passes until it calls stays, the rest is the work's. */
static void set_blocked(struct sweep *s, int32_t block)
{
    struct knee_node *n = node_at(s, block);
    int64_t took = n->end_ns - n->call_ns;
    n->host_lag_ns -= took - (took < CALL_NS ? took : CALL_NS);
}

static void synchronise(struct sweep *s, size_t row)
{
    int32_t block = s->node_of[row];
    if (block == KNEE_NO_NODE)
        return;
    const struct knee_node *n = node_at(s, block);
    const char *name = s->trace->names[s->trace->host_events[row].name];
    bool device = knee_has_word(name, "device") || knee_has_word(name, "ctx");
    bool long_call = n->end_ns - n->call_ns > BLOCKED_NS;
    size_t before = s->g->edge_count;
    for (int32_t lane = 1; device && lane < s->rank->lanes; lane++)
        add_edge(s, s->last_on_lane[lane], block, KNEE_EDGE_REAL);
    if (!device && long_call) {
        int32_t cause = best_explanation(s, n->end_ns);
        add_edge(s, cause, block, KNEE_EDGE_REAL);
    }
    if (long_call && s->g->edge_count > before)
        set_blocked(s, block);
}

/* A copy that its call waits for; the call may return a moment before the recorded end of the copy.
 */
static void copy_and_wait(struct sweep *s, size_t row, int32_t block)
{
    int32_t copy = s->node_of[row];
    if (copy == KNEE_NO_NODE || node_at(s, copy)->start_ns > node_at(s, block)->start_ns)
        return;
    int64_t lag = node_at(s, block)->start_ns - node_at(s, copy)->end_ns;
    knee_graph_add_edge(s->g, copy, block, lag < 0 ? lag : 0, KNEE_EDGE_REAL);
    set_blocked(s, block);
}

/* ---- Gaps ---- */

struct gap_search {
    int32_t *by_end; /* nodes of the rank's GPU work in order of their ends */
    size_t count;
};

/* The node of another lane whose end is nearest before `ns`. */
static int32_t ended_before(struct sweep *s, const struct gap_search *search, int32_t lane,
                            int64_t ns)
{
    size_t low;
    KNEE_BISECT(low, search->count, node_at(s, search->by_end[low])->end_ns <= ns);
    for (size_t back = 0; back < 8 && low > 0; back++) {
        int32_t node = search->by_end[--low];
        if (ns - node_at(s, node)->end_ns > EXPLAINS_NS)
            return KNEE_NO_NODE;
        if (node_at(s, node)->lane != lane)
            return node;
    }
    return KNEE_NO_NODE;
}

/* When a node could start, for all that is known. */
static bool list_ready(struct sweep *s, int64_t *ready)
{
    struct knee_graph *g = s->g;
    int32_t first = s->rank->first, count = (int32_t)g->count - first;
    int64_t *lane_end = knee_resize(g->alloc, NULL, (size_t)s->rank->lanes * sizeof *lane_end);
    if (!lane_end)
        return false;
    memset(lane_end, 0, (size_t)s->rank->lanes * sizeof *lane_end);
    for (int32_t i = 0; i < count; i++) {
        const struct knee_node *n = &g->nodes[first + i];
        int64_t from = n->host == KNEE_NO_NODE ? 0 : g->nodes[n->host].end_ns + n->host_lag_ns;
        ready[i] = from > lane_end[n->lane] ? from : lane_end[n->lane];
        lane_end[n->lane] = n->end_ns;
    }
    knee_resize(g->alloc, lane_end, 0);
    for (size_t e = 0; e < g->edge_count; e++) {
        const struct knee_graph_edge *edge = &g->edges[e];
        if (edge->to < first)
            continue;
        int64_t from = g->nodes[edge->from].end_ns + edge->lag_ns;
        ready[edge->to - first] = from > ready[edge->to - first] ? from : ready[edge->to - first];
    }
    return true;
}

static bool order_by_end(struct sweep *s, struct gap_search *search)
{
    struct knee_graph *g = s->g;
    size_t first = (size_t)s->rank->first, count = g->count - first;
    struct knee_sort_key *keys = knee_resize(g->alloc, NULL, 2 * (count + 1) * sizeof *keys);
    search->by_end = knee_resize(g->alloc, NULL, (count + 1) * sizeof *search->by_end);
    for (size_t i = 0; keys && i < count; i++)
        if (g->nodes[first + i].kind != KNEE_NODE_HOST)
            keys[search->count++] =
                (struct knee_sort_key){knee_sort_signed(g->nodes[first + i].end_ns), first + i};
    if (keys)
        knee_sort(keys, keys + search->count, search->count);
    for (size_t i = 0; keys && search->by_end && i < search->count; i++)
        search->by_end[i] = (int32_t)keys[i].row;
    bool good = keys && search->by_end;
    knee_resize(g->alloc, keys, 0);
    return good;
}

/* A wait that is not recorded is for the work that ended then. */
static void explain_waits(struct sweep *s, const struct gap_search *search, int64_t *ready)
{
    struct knee_graph *g = s->g;
    for (int32_t i = s->rank->first; i < s->rank->first + s->rank->count; i++) {
        const struct knee_node *n = &g->nodes[i];
        if (n->kind != KNEE_NODE_HOST || n->call || i == s->rank->root || i == s->rank->to_host)
            continue;
        int32_t cause = ended_before(s, search, n->lane, n->start_ns);
        if (cause == KNEE_NO_NODE)
            continue;
        knee_graph_add_edge(g, cause, i, 0, KNEE_EDGE_GUESSED);
        int64_t end = g->nodes[cause].end_ns;
        ready[i - s->rank->first] =
            end > ready[i - s->rank->first] ? end : ready[i - s->rank->first];
    }
}

static void explain_gaps(struct sweep *s, const struct gap_search *search, int64_t *ready)
{
    struct knee_graph *g = s->g;
    for (int32_t i = s->rank->first; i < (int32_t)g->count; i++) {
        struct knee_node *n = &g->nodes[i];
        int64_t gap = n->start_ns - ready[i - s->rank->first];
        if (gap > UNEXPLAINED_NS && n->kind != KNEE_NODE_HOST) {
            int32_t cause = ended_before(s, search, n->lane, n->start_ns);
            if (cause != KNEE_NO_NODE && g->nodes[cause].end_ns > ready[i - s->rank->first]) {
                knee_graph_add_edge(g, cause, i, 0, KNEE_EDGE_GUESSED);
                gap = n->start_ns - g->nodes[cause].end_ns;
            }
        }
        n->delay_ns = gap > 0 ? gap : 0;
        g->unexplained_ns += n->delay_ns > UNEXPLAINED_NS ? n->delay_ns : 0;
    }
}

static bool find_gaps(struct sweep *s)
{
    size_t count = s->g->count - (size_t)s->rank->first;
    struct gap_search search = {0};
    int64_t *ready = knee_resize(s->g->alloc, NULL, (count + 1) * sizeof *ready);
    bool good = ready && list_ready(s, ready) && order_by_end(s, &search);
    if (good) {
        explain_waits(s, &search, ready);
        explain_gaps(s, &search, ready);
    }
    knee_resize(s->g->alloc, ready, 0);
    knee_resize(s->g->alloc, search.by_end, 0);
    return good;
}

/* ---- All of a rank ---- */

/* Both the node that an event handed over and the block that it is, where it is both. */
static void map_events(struct sweep *s, int32_t *block_of)
{
    const struct knee_rank *source = s->g->account->ranks[s->rank - s->g->ranks].source;
    for (size_t i = 0; i < s->trace->host_event_count; i++)
        s->node_of[i] = block_of[i] = KNEE_NO_NODE;
    for (int32_t i = s->rank->first; i < s->rank->first + s->rank->count; i++) {
        const struct knee_node *n = &s->g->nodes[i];
        if (n->kind == KNEE_NODE_HOST && n->call)
            block_of[n->call - 1] = i;
        else if (n->span && source->spans[n->span - 1].launch)
            s->node_of[source->spans[n->span - 1].launch - 1] = i;
    }
}

static void sweep_events(struct sweep *s, const int32_t *block_of)
{
    for (size_t i = 0; i < s->trace->host_event_count && !s->g->failed; i++) {
        switch (s->trace->host_events[i].kind) {
        case KNEE_HOST_LAUNCH:
            hand_over(s, i);
            if (block_of[i] != KNEE_NO_NODE)
                copy_and_wait(s, i, block_of[i]);
            break;
        case KNEE_HOST_WAIT: wait_for_event(s, i); break;
        case KNEE_HOST_SYNC:
            s->node_of[i] = block_of[i];
            synchronise(s, i);
            break;
        default: break;
        }
    }
}

bool knee_graph_add_edges(struct knee_graph *g, size_t rank, const struct knee_host_line *line)
{
    struct sweep s = {.g = g,
                      .trace = line->trace,
                      .line = line,
                      .rank = &g->ranks[rank],
                      .copy_out = KNEE_NO_NODE,
                      .gate = KNEE_NO_NODE};
    size_t events = line->trace->host_event_count + 1, nodes = (size_t)s.rank->count + 1;
    size_t lanes = (size_t)s.rank->lanes;
    int32_t *block_of = knee_resize(g->alloc, NULL, events * sizeof *block_of);
    s.node_of = knee_resize(g->alloc, NULL, events * sizeof *s.node_of);
    s.last_on_lane = knee_resize(g->alloc, NULL, lanes * sizeof *s.last_on_lane);
    s.before = knee_resize(g->alloc, NULL, nodes * sizeof *s.before);
    s.unwaited = knee_resize(g->alloc, NULL, nodes * sizeof *s.unwaited);
    bool good = block_of && s.node_of && s.last_on_lane && s.before && s.unwaited;
    if (good) {
        for (size_t i = 0; i < lanes; i++)
            s.last_on_lane[i] = KNEE_NO_NODE;
        map_events(&s, block_of);
        sweep_events(&s, block_of);
        good = !g->failed && find_gaps(&s);
    }
    void *const all[] = {block_of, s.node_of, s.last_on_lane, s.before, s.unwaited};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(g->alloc, all[i], 0);
    return good;
}

/* SPDX-License-Identifier: MIT */
/* A graph as a whole: of all ranks, with their collectives joined; copies of it; the end of it. */
#include "replay/replay_graph.h"

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"

#include <string.h>

enum { EARLY_NS = 20000 }; /* a member may end so much before the last has come: clocks */

/* The time from which nodes count: before everything. */
static int64_t first_ns(const struct knee_account *account)
{
    int64_t first = INT64_MAX;
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        const struct knee_trace *trace = rank->trace;
        int64_t start = rank->from_ns < rank->start_ns ? rank->from_ns : rank->start_ns;
        if (trace->host_event_count && trace->host_events[0].start_ns < start)
            start = trace->host_events[0].start_ns;
        start = knee_common_time(rank, start);
        first = start < first ? start : first;
    }
    return first;
}

/* Complete steps and their mean, as knee trace has them; the whole window where there are none. */
static void measure_steps(const struct knee_account *account, size_t rank,
                          struct knee_graph_rank *out)
{
    double sum = 0;
    out->steps = 0;
    for (size_t i = 0; i < account->step_count; i++) {
        const struct knee_step_account *step = &account->steps[i];
        if (step->rank != rank || step->number < 0 || !step->complete)
            continue;
        sum += 1e-9 * (double)step->ledger.window_ns;
        out->steps++;
    }
    if (out->steps == 0) {
        sum = 1e-9 * (double)(account->ranks[rank].to_ns - account->ranks[rank].from_ns);
        out->steps = 1;
    }
    out->measured_step_s = sum / out->steps;
}

/* ---- Collectives ---- */

static uint64_t group_of(const struct knee_rank_account *rank, const struct knee_call *call)
{
    uint64_t hash = 1469598103934665603u;
    const char *texts[] = {call->group ? rank->trace->names[call->group - 1] : "",
                           call->members ? rank->trace->names[call->members - 1] : ""};
    for (size_t i = 0; i < 2; i++)
        for (const char *p = texts[i]; *p; p++)
            hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    return hash;
}

/* Nodes of calls, per rank and call; KNEE_NO_NODE where a call has none. */
static int32_t **list_call_nodes(const struct knee_graph *g)
{
    const struct knee_account *account = g->account;
    size_t total = 0;
    for (size_t r = 0; r < g->rank_count; r++)
        total += account->ranks[r].source->call_count;
    size_t pointers = g->rank_count * sizeof(int32_t *);
    int32_t **table = knee_resize(g->alloc, NULL, pointers + (total + 1) * sizeof(int32_t));
    if (!table)
        return NULL;
    int32_t *at = (int32_t *)((char *)table + pointers);
    for (size_t i = 0; i < total; i++)
        at[i] = KNEE_NO_NODE;
    for (size_t r = 0; r < g->rank_count; r++) {
        table[r] = at;
        at += account->ranks[r].source->call_count;
    }
    for (size_t i = 0; i < g->count; i++) {
        int32_t *calls = table[g->nodes[i].rank];
        if (calls && g->nodes[i].kind == KNEE_NODE_COMM && g->nodes[i].call)
            calls[g->nodes[i].call - 1] = (int32_t)i;
    }
    return table;
}

static int32_t node_of(int32_t *const *nodes, const struct knee_member *member)
{
    const int32_t *calls = nodes[member->rank];
    return calls ? calls[member->call] : KNEE_NO_NODE;
}

/* Can these members have met? Only if none had ended when the last one arrived. */
static bool have_met(const struct knee_graph *g, const struct knee_matches *m,
                     const struct knee_instance *instance, int32_t *const *nodes)
{
    int64_t last = instance->last_start_ns - g->origin_ns;
    if (!instance->complete)
        return false;
    for (size_t k = instance->first; k < instance->first + instance->count; k++) {
        int32_t node = node_of(nodes, &m->members[k]);
        if (node == KNEE_NO_NODE || !g->nodes)
            return false;
        int64_t tenth = (g->nodes[node].end_ns - g->nodes[node].start_ns) / 10;
        if (g->nodes[node].end_ns < last - (tenth < EARLY_NS ? tenth : EARLY_NS))
            return false;
    }
    return true;
}

/* Is it of the exchange between data-parallel ranks? The pass it was called from says so; without
 * that, what its group looks like. */
static bool is_of_gradients(const struct knee_graph *g, const struct knee_rank_account *rank,
                            const struct knee_call *call, int32_t node)
{
    bool shares = call->op == KNEE_OP_ALL_REDUCE || call->op == KNEE_OP_REDUCE_SCATTER ||
                  call->op == KNEE_OP_ALL_GATHER;
    const char *group = call->group ? rank->trace->names[call->group - 1] : "";
    if (!shares || g->phased)
        return shares && g->nodes[node].phase == KNEE_WORK_EXCHANGE;
    for (size_t i = 0; i < g->account->collective_count; i++) {
        const struct knee_collective_account *row = &g->account->collectives[i];
        if (row->op == call->op && row->bytes == call->bytes && strcmp(row->group, group) == 0)
            return !row->axis[0] || strcmp(row->axis, "DP") == 0 || strcmp(row->axis, "FSDP") == 0;
    }
    return true;
}

static void join_instance(struct knee_graph *g, const struct knee_matches *m,
                          const struct knee_instance *instance, int32_t *const *nodes)
{
    const struct knee_member *any = &m->members[instance->first];
    const struct knee_rank_account *rank = &g->account->ranks[any->rank];
    const struct knee_call *call = &rank->source->calls[any->call];
    int64_t last = instance->last_start_ns - g->origin_ns;
    struct knee_graph_meet meet = {
        .op = call->op,
        .bytes = call->bytes,
        .group_size = (int32_t)instance->count,
        .group = group_of(rank, call),
        .pure_ns = (double)(instance->last_end_ns - instance->last_start_ns),
        .element_bytes = call->element_bytes,
        .gradients = is_of_gradients(g, rank, call, node_of(nodes, any)),
    };
    uint32_t row = knee_graph_add_meet(g, &meet);
    for (size_t k = instance->first; row && k < instance->first + instance->count; k++) {
        int32_t node = node_of(nodes, &m->members[k]);
        double work = (double)(g->nodes[node].end_ns - last);
        g->nodes[node].work_ns = work > 0 ? work : 0;
        knee_graph_join(g, row, node);
    }
}

static bool join_collectives(struct knee_graph *g)
{
    struct knee_matches m;
    int32_t **nodes = list_call_nodes(g);
    if (!nodes || !knee_match(g->account, &m)) {
        knee_resize(g->alloc, nodes, 0);
        return false;
    }
    bool good = knee_match_times(g->account, &m);
    for (size_t i = 0; good && i < m.instance_count && !g->failed; i++) {
        if (have_met(g, &m, &m.instances[i], nodes))
            join_instance(g, &m, &m.instances[i], nodes);
        else
            g->unmet += m.instances[i].count;
    }
    knee_matches_release(&m);
    knee_resize(g->alloc, nodes, 0);
    return good && !g->failed;
}

/* ---- The whole ---- */

/* Nodes are those of the spans, and some for the host: room for them at once, for pages that are
 * touched twice cost more than all else. */
static bool add_ranks(struct knee_graph *g)
{
    size_t spans = g->rank_count;
    for (size_t r = 0; r < g->rank_count; r++)
        spans += g->account->ranks[r].source->span_count;
    size_t capacity = 0;
    if (!knee_room(g->alloc, &g->nodes, &capacity, spans + spans / 8, sizeof *g->nodes) ||
        !knee_room(g->alloc, &g->next_member, &g->capacity, capacity, sizeof *g->next_member))
        return false;
    for (size_t r = 0; r < g->rank_count; r++) {
        struct knee_host_line line;
        bool good = knee_host_line_init(&line, g->account->ranks[r].trace, g->alloc) &&
                    knee_graph_add_rank(g, r, &line) && knee_graph_add_edges(g, r, &line);
        measure_steps(g->account, r, &g->ranks[r]);
        g->phased = g->phased || line.phased;
        g->fsdp = g->fsdp || line.fsdp;
        knee_host_line_release(&line);
        if (!good)
            return false;
    }
    return true;
}

knee_status knee_graph_init(struct knee_graph *out, const struct knee_account *account,
                            const struct knee_alloc *alloc, struct knee_err *err)
{
    struct knee_graph g = {.account = account, .alloc = alloc, .rank_count = account->rank_count};
    size_t size = (g.rank_count + 1) * sizeof *g.ranks;
    g.ranks = knee_resize(alloc, NULL, size);
    if (g.ranks)
        memset(g.ranks, 0, size);
    g.origin_ns = first_ns(account);
    if (!g.ranks || !add_ranks(&g) || !join_collectives(&g) || !knee_graph_find_shares(&g)) {
        knee_graph_release(&g);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the graph");
    }
    knee_graph_count_lanes(&g);
    *out = g;
    return KNEE_OK;
}

void knee_graph_count_lanes(struct knee_graph *g)
{
    int32_t lanes = 0;
    for (size_t r = 0; r < g->rank_count; r++) {
        g->ranks[r].first_lane = lanes;
        lanes += g->ranks[r].lanes;
    }
}

/* `rows`, which have `capacity`, as a copy of `count` rows, one to spare. NULL: no memory; they
 * stay as they are. */
static void *refill(const struct knee_alloc *alloc, void *rows, size_t capacity, const void *from,
                    size_t count, size_t size)
{
    if (capacity < count + 1 || !rows)
        rows = knee_resize(alloc, rows, (count + 1) * size);
    if (rows && count)
        memcpy(rows, from, count * size);
    return rows;
}

#define REFILL(field, capacity, rows)                                                              \
    ((copy.field = refill(g->alloc, out->field, capacity, g->field, rows, sizeof *g->field)) &&    \
     (out->field = copy.field))

void knee_graph_set_back(struct knee_graph *copy)
{
    for (size_t i = 0; i < copy->edited_count; i++) {
        const struct knee_saved_node *was = &copy->saved[i];
        struct knee_node *n = &copy->nodes[was->row];
        n->work_ns = was->work_ns;
        n->delay_ns = was->delay_ns;
        n->host_lag_ns = was->host_lag_ns;
        n->order = was->order;
        n->lane = was->lane;
        n->host = was->host;
        n->gone = was->gone;
        n->saved = false;
    }
    copy->edited_count = 0;
}

bool knee_graph_copy(struct knee_graph *g, struct knee_graph *out)
{
    knee_graph_set_back(out);
    struct knee_graph copy = *g;
    size_t edges = out->edge_capacity, meets = out->meet_capacity;
    out->alloc = g->alloc;
    out->nodes = NULL; /* the graph's, until all else is there */
    out->next_member = NULL;
    if (!REFILL(edges, edges, g->edge_count) || !REFILL(meets, meets, g->meet_count) ||
        !REFILL(ranks, out->rank_count + 1, g->rank_count))
        return false;
    copy.saved =
        out->saved ? out->saved : knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *copy.saved);
    copy.by_call = NULL;
    copy.copy_of = g;
    copy.edge_capacity = edges > g->edge_count + 1 ? edges : g->edge_count + 1;
    copy.meet_capacity = meets > g->meet_count + 1 ? meets : g->meet_count + 1;
    *out = copy;
    return copy.saved != NULL;
}

void knee_graph_release(struct knee_graph *g)
{
    bool copy = g->copy_of != NULL;
    void *const all[] = {copy ? NULL : g->nodes,
                         copy ? NULL : g->next_member,
                         g->edges,
                         g->meets,
                         g->ranks,
                         g->saved,
                         g->by_call};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(g->alloc, all[i], 0);
    memset(g, 0, sizeof *g);
}

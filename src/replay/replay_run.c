/* SPDX-License-Identifier: MIT */
/*
 * A graph as tasks of the simulator's engine: a rank is a stage, a lane a stream, a collective a
 * meet. Nodes that follow each other on a lane, hang on the same wait of the host and have no edges
 * between them are one task: with d_k the time of each and l_k its lag behind the host H,
 *
 *   end = max(start of the lane + sum d, H + max_k (l_k + sum_{j>=k} d_j))
 *
 * is what the engine makes of one task of sum d that lags the more. Times inside are found
 * afterwards. Where ranks share a GPU each node is a task, for its pace changes.
 */
#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "predict/simulate/tasks.h"
#include "replay/replay_graph.h"

#include <math.h>
#include <string.h>

enum edge_flag { GETS = 1, GIVES = 2, GIVES_EARLY = 4 };

struct compiler {
    const struct knee_graph *g;
    struct knee_tasks tasks;
    int32_t *order;   /* nodes such that each lane's are in order */
    int32_t *task_of; /* per node */
    unsigned char *flags;
};

static void link_edge(struct knee_tasks *t, int32_t from, int32_t to, int64_t lag_ns)
{
    struct knee_task *source = &t->task[from];
    struct knee_edge edge = {.to = to, .next = source->next_edge, .lag_ns = lag_ns};
    if (lag_ns < 0) { /* before its end: counted from its start, unless others decide its end */
        edge.from_start = source->meet == 0;
        edge.lag_ns = source->meet ? 0 : lag_ns + (int64_t)source->work_ns;
        edge.lag_ns = edge.lag_ns > 0 ? edge.lag_ns : 0;
        source->starts_edges = source->starts_edges || edge.from_start;
    }
    t->edge[t->edge_count] = edge;
    source->next_edge = (int32_t)t->edge_count++;
    t->task[to].waits++;
}

/* ---- Order ---- */

/* Nodes of a recording stand in the order of their lanes; those of a change may not. */
static bool is_in_order(const struct knee_graph *g, int64_t *last)
{
    size_t lanes = 0;
    for (size_t r = 0; r < g->rank_count; r++)
        lanes += (size_t)g->ranks[r].lanes;
    for (size_t i = 0; i < lanes; i++)
        last[i] = INT64_MIN;
    for (size_t i = 0; i < g->count; i++) {
        const struct knee_node *n = &g->nodes[i];
        int64_t *at = &last[g->ranks[n->rank].first_lane + n->lane];
        if (n->order < *at)
            return false;
        *at = n->order;
    }
    return true;
}

static bool put_in_order(struct compiler *c)
{
    const struct knee_graph *g = c->g;
    struct knee_sort_key *keys = knee_resize(g->alloc, NULL, 2 * (g->count + 1) * sizeof *keys);
    if (!keys)
        return false;
    for (size_t i = 0; i < g->count; i++)
        keys[i] = (struct knee_sort_key){knee_sort_signed(g->nodes[i].order), i};
    knee_sort(keys, keys + g->count, g->count);
    for (size_t i = 0; i < g->count; i++)
        c->order[i] = (int32_t)keys[i].row;
    knee_resize(g->alloc, keys, 0);
    return true;
}

static bool find_order(struct compiler *c)
{
    const struct knee_graph *g = c->g;
    size_t lanes = 1;
    for (size_t r = 0; r < g->rank_count; r++)
        lanes += (size_t)g->ranks[r].lanes;
    int64_t *last = knee_resize(g->alloc, NULL, lanes * sizeof *last);
    if (!last)
        return false;
    bool in_order = is_in_order(g, last);
    knee_resize(g->alloc, last, 0);
    for (size_t i = 0; i < g->count; i++)
        c->order[i] = (int32_t)i;
    return in_order || put_in_order(c);
}

/* ---- Tasks ---- */

static void flag_edges(struct compiler *c)
{
    const struct knee_graph *g = c->g;
    memset(c->flags, 0, g->count + 1);
    for (size_t i = 0; i < g->edge_count; i++) {
        const struct knee_graph_edge *e = &g->edges[i];
        if (e->lag_ns == KNEE_EDGE_CUT)
            continue;
        c->flags[e->to] |= GETS;
        c->flags[e->from] |= e->lag_ns < 0 ? GIVES | GIVES_EARLY : GIVES;
    }
}

static bool goes_on(const struct compiler *c, int32_t before, int32_t node)
{
    const struct knee_node *a = &c->g->nodes[before], *b = &c->g->nodes[node];
    return !c->g->one_gpu && a->kind != KNEE_NODE_HOST && b->kind != KNEE_NODE_HOST &&
           a->host == b->host && !a->meet && !b->meet && !(c->flags[before] & (GETS | GIVES)) &&
           !(c->flags[node] & (GETS | GIVES_EARLY));
}

static double work_of(const struct knee_node *n)
{
    return n->gone                            ? 0
           : n->share == 1 || !(n->share > 0) ? rint(n->work_ns)
                                              : n->share * n->work_ns;
}

static void add_task(struct compiler *c, int32_t node)
{
    static const unsigned char kinds[] = {[KNEE_NODE_HOST] = KNEE_TASK_HOST,
                                          [KNEE_NODE_COMPUTE] = KNEE_TASK_COMPUTE,
                                          [KNEE_NODE_COMM] = KNEE_TASK_COMM,
                                          [KNEE_NODE_COPY] = KNEE_TASK_COPY};
    const struct knee_node *n = &c->g->nodes[node];
    c->task_of[node] = (int32_t)c->tasks.count;
    c->tasks.task[c->tasks.count++] = (struct knee_task){
        .work_ns = work_of(n),
        .delay_ns = n->gone ? 0 : n->delay_ns,
        .ready_ns = n->host_lag_ns, /* until its edges are linked */
        .stage = n->rank,
        .stream = n->lane,
        .next_edge = -1,
        .called_after = -1,
        .received_by = -1,
        .next_member = -1,
        .meet = n->gone ? 0 : n->meet,
        .lane = KNEE_LANE_OWN,
        .kind = kinds[n->kind],
        .name = "",
        .axis = "",
    };
}

/* Makes a node part of the task before it: lag and work as above. */
static void extend_task(struct compiler *c, int32_t before, int32_t node)
{
    const struct knee_node *n = &c->g->nodes[node];
    struct knee_task *task = &c->tasks.task[c->task_of[before]];
    c->task_of[node] = c->task_of[before];
    int64_t all = task->delay_ns + (int64_t)task->work_ns;
    task->ready_ns = task->ready_ns > n->host_lag_ns - all ? task->ready_ns : n->host_lag_ns - all;
    task->work_ns += work_of(n) + (n->gone ? 0 : (double)n->delay_ns);
    task->gap = true; /* says here: has several nodes */
}

static void add_tasks(struct compiler *c, int32_t *last)
{
    const struct knee_graph *g = c->g;
    size_t lanes = 0;
    for (size_t r = 0; r < g->rank_count; r++)
        lanes += (size_t)g->ranks[r].lanes;
    for (size_t i = 0; i < lanes; i++)
        last[i] = KNEE_NO_NODE;
    for (size_t i = 0; i < g->count; i++) {
        int32_t node = c->order[i];
        const struct knee_node *n = &g->nodes[node];
        int32_t *before = &last[g->ranks[n->rank].first_lane + n->lane];
        if (*before != KNEE_NO_NODE && goes_on(c, *before, node))
            extend_task(c, *before, node);
        else
            add_task(c, node);
        *before = node;
    }
}

static void join_meets(struct compiler *c)
{
    for (size_t i = 0; i < c->tasks.meet_count; i++)
        c->tasks.meets[i] = (struct knee_meet){.first = -1};
    for (size_t i = 0; i < c->tasks.count; i++) {
        struct knee_task *task = &c->tasks.task[i];
        if (!task->meet)
            continue;
        struct knee_meet *meet = &c->tasks.meets[task->meet - 1];
        task->next_member = meet->first;
        meet->first = (int32_t)i;
        meet->count++;
    }
}

static void link_edges(struct compiler *c)
{
    const struct knee_graph *g = c->g;
    int32_t last = -1;
    for (size_t i = 0; i < g->count; i++) {
        int32_t node = c->order[i], task = c->task_of[node], host = g->nodes[node].host;
        bool first = task > last; /* tasks were made in this order */
        last = first ? task : last;
        if (first && host != KNEE_NO_NODE)
            link_edge(&c->tasks, c->task_of[host], task, c->tasks.task[task].ready_ns);
    }
    for (size_t i = 0; i < g->edge_count; i++)
        if (g->edges[i].lag_ns != KNEE_EDGE_CUT)
            link_edge(&c->tasks, c->task_of[g->edges[i].from], c->task_of[g->edges[i].to],
                      g->edges[i].lag_ns);
}

static bool compile(struct compiler *c)
{
    const struct knee_graph *g = c->g;
    struct knee_tasks *t = &c->tasks;
    size_t lanes = 1;
    *t = (struct knee_tasks){.meet_count = g->meet_count,
                             .apart = true,
                             .one_gpu = g->one_gpu,
                             .stages = (int32_t)g->rank_count,
                             .alloc = g->alloc};
    for (size_t r = 0; r < g->rank_count; r++) {
        t->streams = g->ranks[r].lanes > t->streams ? g->ranks[r].lanes : t->streams;
        lanes += (size_t)g->ranks[r].lanes;
    }
    int32_t *last = knee_resize(g->alloc, NULL, lanes * sizeof *last);
    t->task = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *t->task);
    t->edge = knee_resize(g->alloc, NULL, (g->edge_count + g->count + 1) * sizeof *t->edge);
    t->meets = knee_resize(g->alloc, NULL, (g->meet_count + 1) * sizeof *t->meets);
    c->task_of = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *c->task_of);
    c->order = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *c->order);
    c->flags = knee_resize(g->alloc, NULL, g->count + 1);
    bool good = last && t->task && t->edge && t->meets && c->task_of && c->order && c->flags &&
                find_order(c);
    if (good) {
        flag_edges(c);
        add_tasks(c, last);
        join_meets(c);
        link_edges(c);
    }
    knee_resize(g->alloc, last, 0);
    return good;
}

/* ---- Times ---- */

/* The window of a rank from where its first step begins to where the last one ends. Where the host
 * began it before all work, it still begins there. */
static double window_of(const struct knee_graph *g, size_t r, const int64_t *end_ns, int64_t first,
                        int64_t last)
{
    const struct knee_graph_rank *rank = &g->ranks[r];
    int64_t from =
        rank->from_ns <= rank->start_ns ? rank->from_ns : first + rank->from_ns - rank->start_ns;
    if (rank->to_host != KNEE_NO_NODE && end_ns[rank->to_host] > last)
        last = end_ns[rank->to_host];
    return (double)(last - from);
}

/* The step as knee trace has it, mean over ranks: measured steps by how much the window changes. */
static double step_of(const struct knee_graph *g, const int64_t *end_ns, const int64_t *first,
                      const int64_t *last)
{
    double sum = 0, ranks = 0;
    for (size_t r = 0; r < g->rank_count; r++) {
        if (last[r] <= first[r])
            continue;
        double before = (double)(g->ranks[r].to_ns - g->ranks[r].from_ns);
        double after = window_of(g, r, end_ns, first[r], last[r]);
        sum += before > 0 ? g->ranks[r].measured_step_s * (after / before) : 0;
        ranks++;
    }
    return ranks > 0 ? sum / ranks : 0;
}

/* Inside a task nodes follow each other as they would alone. */
static void spread_times(const struct compiler *c, struct knee_replay_times *out, int64_t *lane_end,
                         int64_t *first, int64_t *last)
{
    const struct knee_graph *g = c->g;
    for (size_t r = 0; r < g->rank_count; r++) {
        first[r] = INT64_MAX;
        last[r] = INT64_MIN;
    }
    for (size_t i = 0; i < g->count; i++) {
        int32_t node = c->order[i];
        const struct knee_node *n = &g->nodes[node];
        const struct knee_task *task = &c->tasks.task[c->task_of[node]];
        int64_t start = task->start_ns, end = task->end_ns;
        int64_t *before = &lane_end[g->ranks[n->rank].first_lane + n->lane];
        if (task->gap) {
            int64_t host = n->host == KNEE_NO_NODE ? 0 : out->end_ns[n->host] + n->host_lag_ns;
            start = (host > *before ? host : *before) + (n->gone ? 0 : n->delay_ns);
            end = start + (int64_t)work_of(n);
        }
        start += n->gone ? 0 : n->turn_ns; /* until its turn it was not seen to run */
        start = start < end ? start : end;
        out->start_ns[node] = start;
        out->end_ns[node] = *before = end;
        if (n->kind == KNEE_NODE_HOST || n->gone)
            continue;
        first[n->rank] = start < first[n->rank] ? start : first[n->rank];
        last[n->rank] = end > last[n->rank] ? end : last[n->rank];
    }
}

static bool read_times(const struct compiler *c, struct knee_replay_times *out)
{
    const struct knee_graph *g = c->g;
    size_t lanes = 1;
    for (size_t r = 0; r < g->rank_count; r++)
        lanes += (size_t)g->ranks[r].lanes;
    size_t size = (lanes + 2 * g->rank_count) * sizeof(int64_t);
    int64_t *ends = knee_resize(g->alloc, NULL, size);
    out->start_ns = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *out->start_ns);
    out->end_ns = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *out->end_ns);
    bool good = ends && out->start_ns && out->end_ns;
    if (good) {
        int64_t *first = ends + lanes, *last = first + g->rank_count;
        memset(ends, 0, size);
        spread_times(c, out, ends, first, last);
        out->step_s = step_of(g, out->end_ns, first, last);
    }
    knee_resize(g->alloc, ends, 0);
    return good;
}

knee_status knee_graph_run(const struct knee_graph *graph, struct knee_replay_times *out,
                           struct knee_err *err)
{
    struct compiler c = {.g = graph};
    struct knee_replay_times times = {0};
    int64_t end_ns;
    bool compiled = compile(&c), ran = compiled && knee_tasks_run(&c.tasks, &end_ns);
    bool good = ran && read_times(&c, &times), stuck = compiled && !ran && !c.tasks.failed;
    void *const all[] = {c.task_of, c.order, c.flags};
    knee_tasks_release(&c.tasks);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(graph->alloc, all[i], 0);
    if (good) {
        *out = times;
        return KNEE_OK;
    }
    knee_replay_times_release(&times, graph->alloc);
    if (stuck)
        return knee_fail(err, KNEE_INPUT, "",
                         "the replay cannot be run to its end: work waits for itself");
    return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the replay");
}

void knee_replay_times_release(struct knee_replay_times *times, const struct knee_alloc *alloc)
{
    knee_resize(alloc, times->start_ns, 0);
    knee_resize(alloc, times->end_ns, 0);
    memset(times, 0, sizeof *times);
}

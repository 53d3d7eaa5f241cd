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
#include "replay/replay_plan.h"

#include <math.h>
#include <string.h>

enum edge_flag { GETS = 1, GIVES = 2, GIVES_EARLY = 4 };
#define LONG_AGO (INT64_MIN / 2)

/* ---- Memory ---- */

static size_t padded(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

void *knee_run_reserve(struct knee_run_memory *block, const struct knee_alloc *alloc, size_t size)
{
    if (size > block->size) {
        knee_resize(alloc, block->memory, 0);
        block->memory = knee_resize(alloc, NULL, size);
        block->size = block->memory ? size : 0;
    }
    return block->memory;
}

/* The next part of a block. */
static void *carve(char **at, size_t count, size_t size)
{
    void *here = *at;
    *at += padded(count * size);
    return here;
}

/* ---- Order ---- */

static size_t lane_of(const struct knee_graph *g, const struct knee_node *n)
{
    return (size_t)g->ranks[n->rank].first_lane + (size_t)n->lane;
}

/* Nodes such that each lane's are in order: those of a recording are, those of a change may not be.
 */
static bool find_order(const struct knee_graph *g, int32_t *order, int64_t *last, size_t lanes)
{
    bool in_order = true;
    for (size_t i = 0; i < lanes; i++)
        last[i] = INT64_MIN;
    for (size_t i = 0; i < g->count; i++) {
        int64_t *at = &last[lane_of(g, &g->nodes[i])];
        in_order = in_order && g->nodes[i].order >= *at;
        *at = g->nodes[i].order;
        order[i] = (int32_t)i;
    }
    if (in_order)
        return true;
    struct knee_sort_key *keys = knee_resize(g->alloc, NULL, 2 * (g->count + 1) * sizeof *keys);
    for (size_t i = 0; keys && i < g->count; i++)
        keys[i] = (struct knee_sort_key){knee_sort_signed(g->nodes[i].order), i};
    if (keys)
        knee_sort(keys, keys + g->count, g->count);
    for (size_t i = 0; keys && i < g->count; i++)
        order[i] = (int32_t)keys[i].row;
    knee_resize(g->alloc, keys, 0);
    return keys != NULL;
}

/* ---- Tasks ---- */

static void flag_edges(const struct knee_graph *g, size_t first, unsigned char *flags)
{
    for (size_t i = first; i < g->edge_count; i++) {
        const struct knee_graph_edge *e = &g->edges[i];
        if (e->lag_ns == KNEE_EDGE_CUT)
            continue;
        flags[e->to] |= GETS;
        flags[e->from] |= e->lag_ns < 0 ? GIVES | GIVES_EARLY : GIVES;
    }
}

static bool goes_on(const struct knee_graph *g, const unsigned char *flags, int32_t before,
                    int32_t node)
{
    const struct knee_node *a = &g->nodes[before], *b = &g->nodes[node];
    return !g->one_gpu && a->kind != KNEE_NODE_HOST && b->kind != KNEE_NODE_HOST &&
           a->host == b->host && !a->meet && !b->meet && !(flags[before] & (GETS | GIVES)) &&
           !(flags[node] & (GETS | GIVES_EARLY));
}

static double work_of(const struct knee_node *n)
{
    if (n->gone)
        return 0;
    if (n->share != 1 && n->share > 0)
        return n->share * n->work_ns;
    bool whole = fabs(n->work_ns) < 1e15 && (double)(int64_t)n->work_ns == n->work_ns;
    return whole ? n->work_ns : rint(n->work_ns); /* a call, where it is not an instruction */
}

/* Makes a task of its nodes as they are now: of the first, with lag and work as above by the
 * others. */
static void make_task(struct knee_run_plan *p, const struct knee_graph *g, size_t row)
{
    static const unsigned char kinds[] = {[KNEE_NODE_HOST] = KNEE_TASK_HOST,
                                          [KNEE_NODE_COMPUTE] = KNEE_TASK_COMPUTE,
                                          [KNEE_NODE_COMM] = KNEE_TASK_COMM,
                                          [KNEE_NODE_COPY] = KNEE_TASK_COPY};
    size_t first = (size_t)p->first[row], end = (size_t)p->first[row + 1];
    const struct knee_node *head = &g->nodes[p->rows[first]];
    int64_t ready = head->host_lag_ns, passed = 0;
    double work = 0;
    for (size_t i = first; i < end; i++) {
        const struct knee_node *n = &g->nodes[p->rows[i]];
        struct knee_beat *beat = &p->beats[i];
        double own = work_of(n);
        int64_t delay = n->gone ? 0 : n->delay_ns;
        ready = ready > n->host_lag_ns - passed ? ready : n->host_lag_ns - passed;
        *beat = (struct knee_beat){(int64_t)own, delay, n->host_lag_ns, n->kind, n->gone, n->both};
        passed += delay + beat->work_ns;
        work += own + (i > first ? (double)delay : 0);
    }
    p->tasks.task[row] = (struct knee_task){
        .work_ns = work,
        .delay_ns = head->gone ? 0 : head->delay_ns,
        .ready_ns = ready, /* until its edges are linked */
        .stage = head->rank,
        .stream = head->lane,
        .next_edge = -1,
        .called_after = -1,
        .received_by = -1,
        .next_member = -1,
        .meet = head->gone ? 0 : head->meet,
        .lane = KNEE_LANE_OWN,
        .kind = kinds[head->kind],
        .name = "",
        .axis = "",
    };
}

/* Which task each node is of; tasks in the order of their first nodes. Returns how many. */
static size_t group_nodes(struct knee_run_plan *p, const struct knee_graph *g, const int32_t *order,
                          const unsigned char *flags, int32_t *last)
{
    size_t count = 0;
    for (size_t i = 0; i < p->lanes; i++)
        last[i] = KNEE_NO_NODE;
    for (size_t i = 0; i < g->count; i++) {
        int32_t node = order[i], *before = &last[lane_of(g, &g->nodes[node])];
        bool on = *before != KNEE_NO_NODE && goes_on(g, flags, *before, node);
        p->task_of[node] = on ? p->task_of[*before] : (int32_t)count;
        count += !on;
        *before = node;
    }
    return count;
}

/* Rows task by task, and tasks lane by lane: each counted, then put in its place. */
static void list_rows(struct knee_run_plan *p, const struct knee_graph *g, const int32_t *order)
{
    size_t tasks = p->tasks.count;
    memset(p->first, 0, (tasks + 2) * sizeof *p->first);
    for (size_t i = 0; i < g->count; i++)
        p->first[p->task_of[i] + 2]++;
    for (size_t t = 2; t < tasks + 2; t++)
        p->first[t] += p->first[t - 1];
    for (size_t i = 0; i < g->count; i++)
        p->rows[p->first[p->task_of[order[i]] + 1]++] = order[i];
    memset(p->lane_first, 0, (p->lanes + 2) * sizeof *p->lane_first);
    for (size_t t = 0; t < tasks; t++)
        p->lane_first[lane_of(g, &g->nodes[p->rows[p->first[t]]]) + 2]++;
    for (size_t k = 2; k < p->lanes + 2; k++)
        p->lane_first[k] += p->lane_first[k - 1];
    for (size_t t = 0; t < tasks; t++) {
        size_t lane = lane_of(g, &g->nodes[p->rows[p->first[t]]]);
        p->by_lane[p->lane_first[lane + 1]++] = (int32_t)t;
    }
    for (size_t lane = 0; lane < p->lanes; lane++)
        for (int32_t i = p->lane_first[lane]; i < p->lane_first[lane + 1]; i++)
            p->before[p->by_lane[i]] = i > p->lane_first[lane] ? p->by_lane[i - 1] : -1;
}

static bool reserve_nodes(struct knee_run_plan *p, const struct knee_graph *g, int32_t **order,
                          int64_t **last, unsigned char **flags)
{
    size_t n = g->count + 1, lanes = p->lanes + 2;
    char *at = knee_run_reserve(&p->by_node, g->alloc,
                                padded(n * sizeof *p->beats) + 3 * padded(n * sizeof(int32_t)) +
                                    padded(lanes * sizeof **last) +
                                    padded(lanes * sizeof *p->lane_first) + padded(n));
    if (!at)
        return false;
    p->beats = carve(&at, n, sizeof *p->beats);
    p->task_of = carve(&at, n, sizeof *p->task_of);
    p->rows = carve(&at, n, sizeof *p->rows);
    *order = carve(&at, n, sizeof **order);
    *last = carve(&at, lanes, sizeof **last);
    p->lane_first = carve(&at, lanes, sizeof *p->lane_first);
    *flags = carve(&at, n, 1);
    return true;
}

static bool reserve_tasks(struct knee_run_plan *p, const struct knee_graph *g, size_t count)
{
    size_t n = count + 2;
    char *at = knee_run_reserve(&p->by_task, g->alloc,
                                padded(n * sizeof *p->tasks.task) +
                                    4 * padded(n * sizeof(int32_t)) + padded(n));
    if (!at)
        return false;
    p->tasks.task = carve(&at, n, sizeof *p->tasks.task);
    p->first = carve(&at, n, sizeof *p->first);
    p->before = carve(&at, n, sizeof *p->before);
    p->by_lane = carve(&at, n, sizeof *p->by_lane);
    p->dirty = carve(&at, n, sizeof *p->dirty);
    p->is_dirty = carve(&at, n, 1);
    memset(p->is_dirty, 0, n);
    return true;
}

/* Makes the plan of a graph. Tasks are also parted where `more`, a copy of it, has further edges.
 */
static bool plan_graph(struct knee_run_plan *p, const struct knee_graph *g,
                       const struct knee_graph *more)
{
    int32_t *order;
    int64_t *last;
    unsigned char *flags;
    p->count = g->count;
    p->lanes = 0;
    p->dirty_count = 0;
    p->tasks = (struct knee_tasks){.meet_count = g->meet_count,
                                   .apart = true,
                                   .one_gpu = g->one_gpu,
                                   .stages = (int32_t)g->rank_count,
                                   .alloc = g->alloc};
    for (size_t r = 0; r < g->rank_count; r++) {
        int32_t lanes = g->ranks[r].lanes;
        p->tasks.streams = lanes > p->tasks.streams ? lanes : p->tasks.streams;
        p->lanes += (size_t)lanes;
    }
    if (!reserve_nodes(p, g, &order, &last, &flags) || !find_order(g, order, last, p->lanes))
        return false;
    memset(flags, 0, g->count + 1);
    flag_edges(g, 0, flags);
    if (more)
        flag_edges(more, g->edge_count, flags);
    size_t count = group_nodes(p, g, order, flags, (int32_t *)last);
    if (!reserve_tasks(p, g, count))
        return false;
    p->tasks.count = count;
    list_rows(p, g, order);
    for (size_t t = 0; t < count; t++)
        make_task(p, g, t);
    return true;
}

/* The plan of the graph for a copy of it: what was edited for this run or the one before is made
 * anew. */
static void renew_tasks(struct knee_run_plan *p, const struct knee_graph *g)
{
    size_t before = p->dirty_count, kept = 0;
    for (size_t i = 0; i < g->edited_count; i++) {
        int32_t task = p->task_of[g->saved[i].row];
        if (!p->is_dirty[task])
            p->dirty[p->dirty_count++] = task;
        p->is_dirty[task] = 2;
    }
    for (size_t i = 0; i < p->dirty_count; i++) {
        int32_t task = p->dirty[i];
        make_task(p, g, (size_t)task);
        if (i >= before || p->is_dirty[task] == 2) { /* edited now: to be set back */
            p->is_dirty[task] = 1;
            p->dirty[kept++] = task;
        } else {
            p->is_dirty[task] = 0;
        }
    }
    p->dirty_count = kept;
}

/* ---- A run ---- */

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

static void join_meets(struct knee_tasks *t)
{
    for (size_t i = 0; i < t->meet_count; i++)
        t->meets[i] = (struct knee_meet){.first = -1};
    for (size_t i = 0; i < t->count; i++) {
        struct knee_task *task = &t->task[i];
        if (!task->meet)
            continue;
        struct knee_meet *meet = &t->meets[task->meet - 1];
        task->next_member = meet->first;
        meet->first = (int32_t)i;
        meet->count++;
    }
}

static int32_t host_of(const struct knee_run_plan *p, const struct knee_graph *g, size_t task)
{
    int32_t host = g->nodes[p->rows[p->first[task]]].host;
    return host == KNEE_NO_NODE ? -1 : p->task_of[host];
}

/* The tasks of a plan as those of a run, linked. */
static bool link_tasks(const struct knee_run_plan *p, const struct knee_graph *g,
                       struct knee_tasks *out, struct knee_run_memory *memory)
{
    size_t tasks = p->tasks.count;
    *out = p->tasks;
    out->meet_count = g->meet_count;
    size_t edges = g->edge_count + tasks + 1, meets = g->meet_count + 1;
    char *at = knee_run_reserve(memory, g->alloc,
                                padded((tasks + 1) * sizeof *out->task) +
                                    padded(edges * sizeof *out->edge) +
                                    padded(meets * sizeof *out->meets));
    if (!at)
        return false;
    out->task = carve(&at, tasks + 1, sizeof *out->task);
    out->edge = carve(&at, edges, sizeof *out->edge);
    out->meets = carve(&at, meets, sizeof *out->meets);
    memcpy(out->task, p->tasks.task, tasks * sizeof *out->task);
    join_meets(out);
    for (size_t t = 0; t < tasks; t++) {
        int32_t host = host_of(p, g, t);
        if (host >= 0)
            link_edge(out, host, (int32_t)t, out->task[t].ready_ns);
    }
    for (size_t i = 0; i < g->edge_count; i++)
        if (g->edges[i].lag_ns != KNEE_EDGE_CUT)
            link_edge(out, p->task_of[g->edges[i].from], p->task_of[g->edges[i].to],
                      g->edges[i].lag_ns);
    return true;
}

struct knee_walk knee_walk_task(const struct knee_runner *runner, size_t row)
{
    const struct knee_run_plan *p = runner->used;
    const struct knee_task *all = runner->tasks.task;
    size_t first = (size_t)p->first[row], end = (size_t)p->first[row + 1];
    struct knee_walk w = {.beats = p->beats, .at = first, .end = end, .alone = end - first == 1};
    if (w.alone) {
        const struct knee_node *n = &runner->ran->nodes[p->rows[first]];
        w.end_ns = all[row].end_ns;
        w.start_ns = all[row].start_ns;
        w.start_ns += n->gone ? 0 : n->turn_ns; /* until its turn it was not seen to run */
        w.start_ns = w.start_ns < w.end_ns ? w.start_ns : w.end_ns;
        return w;
    }
    int32_t host = host_of(p, runner->ran, row);
    w.host_ns = host < 0 ? LONG_AGO : all[host].end_ns;
    w.before_ns = p->before[row] < 0 ? 0 : all[p->before[row]].end_ns;
    return w;
}

/* The window of a rank from where its first step begins to where the last one ends. Where the host
 * began it before all work, it still begins there. */
static double window_of(const struct knee_runner *runner, size_t r, int64_t first, int64_t last)
{
    const struct knee_graph_rank *rank = &runner->ran->ranks[r];
    int64_t from =
        rank->from_ns <= rank->start_ns ? rank->from_ns : first + rank->from_ns - rank->start_ns;
    if (rank->to_host != KNEE_NO_NODE) {
        int64_t host = runner->tasks.task[runner->used->task_of[rank->to_host]].end_ns;
        last = host > last ? host : last;
    }
    return (double)(last - from);
}

/* When the GPU work of each rank began and ended. Tasks of a lane follow each other, so that most
 * need not be looked into: from the front for the first start, from the back for the last end. */
static void find_ends(const struct knee_runner *runner, int64_t (*ends)[2])
{
    const struct knee_run_plan *p = runner->used;
    const struct knee_task *all = runner->tasks.task;
    for (size_t r = 0; r < runner->ran->rank_count; r++)
        ends[r][0] = INT64_MAX, ends[r][1] = INT64_MIN;
    for (size_t t = 0; t < p->tasks.count; t++) {
        int64_t *first = &ends[all[t].stage][0];
        if (all[t].kind == KNEE_TASK_HOST ||
            (p->before[t] >= 0 && all[p->before[t]].end_ns >= *first))
            continue;
        struct knee_walk w = knee_walk_task(runner, t);
        if (knee_walk_next(&w) && w.start_ns < *first)
            *first = w.start_ns;
    }
    for (size_t t = p->tasks.count; t-- > 0;) {
        int64_t *last = &ends[all[t].stage][1];
        if (all[t].kind == KNEE_TASK_HOST || all[t].end_ns <= *last)
            continue;
        if (!p->beats[p->first[t + 1] - 1].gone) {
            *last = all[t].end_ns;
            continue;
        }
        struct knee_walk w = knee_walk_task(runner, t);
        while (knee_walk_next(&w))
            *last = w.end_ns > *last ? w.end_ns : *last;
    }
}

/* The step as knee trace has it, mean over ranks: measured steps by how much the window changes.
 * False: no memory. */
static bool find_step(const struct knee_runner *runner, double *step_s)
{
    const struct knee_graph *g = runner->ran;
    int64_t(*ends)[2] = knee_resize(g->alloc, NULL, (g->rank_count + 1) * sizeof *ends);
    double sum = 0, ranks = 0;
    if (!ends)
        return false;
    find_ends(runner, ends);
    for (size_t r = 0; r < g->rank_count; r++) {
        if (ends[r][1] <= ends[r][0])
            continue;
        double before = (double)(g->ranks[r].to_ns - g->ranks[r].from_ns);
        double after = window_of(runner, r, ends[r][0], ends[r][1]);
        sum += before > 0 ? g->ranks[r].measured_step_s * (after / before) : 0;
        ranks++;
    }
    *step_s = ranks > 0 ? sum / ranks : 0;
    knee_resize(g->alloc, ends, 0);
    return true;
}

knee_status knee_runner_init(struct knee_runner *runner, const struct knee_graph *graph)
{
    memset(runner, 0, sizeof *runner);
    runner->graph = graph;
    if (plan_graph(&runner->plan, graph, NULL))
        return KNEE_OK;
    knee_runner_release(runner);
    return KNEE_SYSTEM;
}

/* No task has an edge to or from its middle that the planned graph does not have. */
static bool has_edges_at_ends(const struct knee_run_plan *p, const struct knee_graph *of,
                              const struct knee_graph *g)
{
    for (size_t i = of->edge_count; i < g->edge_count; i++) {
        const struct knee_graph_edge *e = &g->edges[i];
        const int32_t *from = &p->first[p->task_of[e->from]];
        bool late = p->rows[from[1] - 1] == e->from, early = p->rows[from[0]] == e->from;
        if (p->rows[p->first[p->task_of[e->to]]] != e->to || !late || (e->lag_ns < 0 && !early))
            return false;
    }
    return true;
}

/* The plan for a run. The graph's own serves all copies that have its nodes in its order. */
static struct knee_run_plan *find_plan(struct knee_runner *runner, const struct knee_graph *g)
{
    const struct knee_graph *of = runner->graph;
    bool own = of == g || (g->copy_of == of && g->count == of->count && !g->reordered);
    if (!own)
        return plan_graph(&runner->other, g, NULL) ? &runner->other : NULL;
    if (!has_edges_at_ends(&runner->plan, of, g) && !plan_graph(&runner->plan, of, g))
        return NULL;
    renew_tasks(&runner->plan, g);
    return &runner->plan;
}

knee_status knee_runner_run(struct knee_runner *runner, const struct knee_graph *g, double *step_s)
{
    int64_t end_ns;
    struct knee_run_plan *p = find_plan(runner, g);
    runner->used = p;
    runner->ran = g;
    if (!p)
        return KNEE_SYSTEM;
    if (!link_tasks(p, g, &runner->tasks, &runner->linked))
        return KNEE_SYSTEM;
    if (!knee_tasks_run(&runner->tasks, &end_ns))
        return runner->tasks.failed ? KNEE_SYSTEM : KNEE_INPUT;
    return find_step(runner, step_s) ? KNEE_OK : KNEE_SYSTEM;
}

void knee_runner_release(struct knee_runner *runner)
{
    const struct knee_alloc *alloc = runner->graph ? runner->graph->alloc : NULL;
    void *const all[] = {runner->plan.by_node.memory,  runner->plan.by_task.memory,
                         runner->other.by_node.memory, runner->other.by_task.memory,
                         runner->linked.memory,        runner->labels.memory};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(alloc, all[i], 0);
    memset(runner, 0, sizeof *runner);
}

/* ---- One run, with the times of all nodes ---- */

static void spread_times(const struct knee_runner *runner, struct knee_replay_times *out)
{
    const struct knee_run_plan *p = runner->used;
    for (size_t t = 0; t < p->tasks.count; t++) {
        struct knee_walk w = knee_walk_task(runner, t);
        while (w.at < w.end) { /* those that are gone too */
            size_t row = w.at;
            w.end = row + 1;
            knee_walk_next(&w);
            w.end = (size_t)p->first[t + 1];
            out->start_ns[p->rows[row]] = w.start_ns;
            out->end_ns[p->rows[row]] = w.end_ns;
        }
    }
}

knee_status knee_graph_run(const struct knee_graph *graph, struct knee_replay_times *out,
                           struct knee_err *err)
{
    struct knee_runner runner;
    struct knee_replay_times times = {0};
    knee_status status = knee_runner_init(&runner, graph);
    if (!status)
        status = knee_runner_run(&runner, graph, &times.step_s);
    if (!status) {
        times.start_ns = knee_resize(graph->alloc, NULL, (graph->count + 1) * sizeof(int64_t));
        times.end_ns = knee_resize(graph->alloc, NULL, (graph->count + 1) * sizeof(int64_t));
        if (times.start_ns && times.end_ns)
            spread_times(&runner, &times);
        else
            status = KNEE_SYSTEM;
    }
    knee_runner_release(&runner);
    if (!status) {
        *out = times;
        return KNEE_OK;
    }
    knee_replay_times_release(&times, graph->alloc);
    if (status == KNEE_INPUT)
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

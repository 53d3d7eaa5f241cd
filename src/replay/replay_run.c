/* SPDX-License-Identifier: MIT */
/*
 * A graph as tasks of the simulator's engine: a rank is a stage, a lane a stream, a node a task, a
 * collective a meet. Nodes of a lane go in their order; the engine does the rest.
 */
#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "predict/simulate/tasks.h"
#include "replay/replay_graph.h"

#include <math.h>
#include <string.h>

struct compiler {
    const struct knee_graph *g;
    struct knee_tasks tasks;
    int32_t *task_of; /* per node */
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

/* Tasks in order of lanes' order: any order in which each lane's nodes are sorted will do. */
static bool put_in_order(struct compiler *c)
{
    static const unsigned char kinds[] = {[KNEE_NODE_HOST] = KNEE_TASK_HOST,
                                          [KNEE_NODE_COMPUTE] = KNEE_TASK_COMPUTE,
                                          [KNEE_NODE_COMM] = KNEE_TASK_COMM,
                                          [KNEE_NODE_COPY] = KNEE_TASK_COPY};
    const struct knee_graph *g = c->g;
    struct knee_sort_key *keys = knee_resize(g->alloc, NULL, 2 * (g->count + 1) * sizeof *keys);
    if (!keys)
        return false;
    for (size_t i = 0; i < g->count; i++)
        keys[i] = (struct knee_sort_key){knee_sort_signed(g->nodes[i].order), i};
    knee_sort(keys, keys + g->count, g->count);
    for (size_t i = 0; i < g->count; i++) {
        const struct knee_node *n = &g->nodes[keys[i].row];
        c->task_of[keys[i].row] = (int32_t)i;
        c->tasks.task[i] = (struct knee_task){
            .work_ns = n->gone         ? 0
                       : n->share == 1 ? rint(n->work_ns)
                                       : n->share * n->work_ns,
            .delay_ns = n->gone ? 0 : n->delay_ns,
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
    knee_resize(g->alloc, keys, 0);
    return true;
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

static bool compile(struct compiler *c)
{
    const struct knee_graph *g = c->g;
    struct knee_tasks *t = &c->tasks;
    size_t edges = g->edge_count + g->count + 1;
    *t = (struct knee_tasks){.count = g->count,
                             .meet_count = g->meet_count,
                             .apart = true,
                             .one_gpu = g->one_gpu,
                             .stages = (int32_t)g->rank_count,
                             .alloc = g->alloc};
    for (size_t r = 0; r < g->rank_count; r++)
        t->streams = g->ranks[r].lanes > t->streams ? g->ranks[r].lanes : t->streams;
    t->task = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *t->task);
    t->edge = knee_resize(g->alloc, NULL, edges * sizeof *t->edge);
    t->meets = knee_resize(g->alloc, NULL, (g->meet_count + 1) * sizeof *t->meets);
    c->task_of = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *c->task_of);
    if (!t->task || !t->edge || !t->meets || !c->task_of || !put_in_order(c))
        return false;
    join_meets(c);
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i].host != KNEE_NO_NODE)
            link_edge(t, c->task_of[g->nodes[i].host], c->task_of[i], g->nodes[i].host_lag_ns);
    for (size_t i = 0; i < g->edge_count; i++)
        if (g->edges[i].lag_ns != KNEE_EDGE_CUT)
            link_edge(t, c->task_of[g->edges[i].from], c->task_of[g->edges[i].to],
                      g->edges[i].lag_ns);
    return true;
}

/* The step as knee trace has it: first to last GPU work of a rank, by its steps, mean over ranks.
 */
static double step_of(const struct knee_graph *g, const struct knee_replay_times *times)
{
    double sum = 0;
    for (size_t r = 0; r < g->rank_count; r++) {
        int64_t first = INT64_MAX, last = INT64_MIN;
        for (size_t i = 0; i < g->count; i++) {
            const struct knee_node *n = &g->nodes[i];
            if (n->rank != (int32_t)r || n->kind == KNEE_NODE_HOST || n->gone)
                continue;
            first = times->start_ns[i] < first ? times->start_ns[i] : first;
            last = times->end_ns[i] > last ? times->end_ns[i] : last;
        }
        sum += last > first ? 1e-9 * (double)(last - first) / g->ranks[r].steps : 0;
    }
    return sum / (double)g->rank_count;
}

static bool read_times(const struct compiler *c, struct knee_replay_times *out)
{
    const struct knee_graph *g = c->g;
    out->start_ns = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *out->start_ns);
    out->end_ns = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *out->end_ns);
    if (!out->start_ns || !out->end_ns)
        return false;
    for (size_t i = 0; i < g->count; i++) {
        out->start_ns[i] = c->tasks.task[c->task_of[i]].start_ns;
        out->end_ns[i] = c->tasks.task[c->task_of[i]].end_ns;
    }
    out->step_s = step_of(g, out);
    return true;
}

knee_status knee_graph_run(const struct knee_graph *graph, struct knee_replay_times *out,
                           struct knee_err *err)
{
    struct compiler c = {.g = graph};
    struct knee_replay_times times = {0};
    int64_t end_ns;
    bool compiled = compile(&c), ran = compiled && knee_tasks_run(&c.tasks, &end_ns);
    bool good = ran && read_times(&c, &times), stuck = compiled && !ran && !c.tasks.failed;
    knee_tasks_release(&c.tasks);
    if (c.task_of)
        knee_resize(graph->alloc, c.task_of, 0);
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
    if (times->start_ns)
        knee_resize(alloc, times->start_ns, 0);
    if (times->end_ns)
        knee_resize(alloc, times->end_ns, 0);
    memset(times, 0, sizeof *times);
}

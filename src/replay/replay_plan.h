/* SPDX-License-Identifier: MIT */
/*
 * Runs of one graph and of copies of it in which something was changed. Which nodes make up a task
 * and in which order tasks stand does not depend on how long anything takes, so that the plan of a
 * graph serves all its copies that have the same nodes and edges; of those only what was edited is
 * looked at again. (replay_run.c; replay_labels.c for what the steps are made of)
 */
#ifndef KNEE_REPLAY_REPLAY_PLAN_H
#define KNEE_REPLAY_REPLAY_PLAN_H

#include "predict/simulate/tasks.h"
#include "replay/replay_graph.h"

/* What a run needs of a node, in the order of tasks. */
struct knee_beat {
    int64_t work_ns, delay_ns, lag_ns;
    unsigned char kind;
    bool gone, both;
};

/* Used again from run to run. */
struct knee_run_memory {
    void *memory;
    size_t size;
};

/* At least `size` bytes, whose contents are lost; NULL: no memory. */
void *knee_run_reserve(struct knee_run_memory *block, const struct knee_alloc *alloc, size_t size);

struct knee_run_plan {
    size_t count, lanes;           /* nodes; lanes of all ranks */
    int32_t *task_of;              /* per node */
    int32_t *rows;                 /* nodes, task by task */
    struct knee_beat *beats;       /* per row */
    struct knee_tasks tasks;       /* not linked; only .task, .count and the like */
    int32_t *first;                /* per task, and one more: its first row */
    int32_t *before;               /* per task: the one before it in its lane; -1: none */
    int32_t *by_lane, *lane_first; /* tasks lane by lane; where each lane's begin, and one more */
    int32_t *dirty;                /* tasks that do not stand as in the planned graph */
    unsigned char *is_dirty;       /* per task */
    size_t dirty_count;
    struct knee_run_memory by_node, by_task;
};

struct knee_runner {
    const struct knee_graph *graph;   /* as recorded */
    struct knee_run_plan plan, other; /* of the graph; of a copy whose order differs */
    const struct knee_run_plan *used; /* by the last run */
    const struct knee_graph *ran;     /* of the last run */
    struct knee_tasks tasks;          /* of the last run, with their times */
    struct knee_run_memory linked, labels;
};

/* When the nodes of a task ran, one after the other as they would alone. */
struct knee_walk {
    const struct knee_beat *beats;
    size_t at, end;
    bool alone;                 /* one node: start_ns and end_ns are known */
    int64_t host_ns, before_ns; /* when the host was there; when the node before ended */
    int64_t start_ns, end_ns;
};
struct knee_walk knee_walk_task(const struct knee_runner *runner, size_t task);

/* The next node that is not gone: at - 1 is its row. */
static inline bool knee_walk_next(struct knee_walk *w)
{
    while (w->at < w->end) {
        const struct knee_beat *beat = &w->beats[w->at++];
        if (!w->alone) {
            int64_t ready = w->host_ns + beat->lag_ns;
            w->start_ns = (ready > w->before_ns ? ready : w->before_ns) + beat->delay_ns;
            w->before_ns = w->end_ns = w->start_ns + beat->work_ns;
        }
        if (!beat->gone)
            return true;
    }
    return false;
}

/* The runner needs the graph as long as it lives. KNEE_SYSTEM: no memory. */
knee_status knee_runner_init(struct knee_runner *runner, const struct knee_graph *graph);
void knee_runner_release(struct knee_runner *runner);

/* Runs the graph, or a copy of it. KNEE_INPUT: work waits for itself. */
knee_status knee_runner_run(struct knee_runner *runner, const struct knee_graph *graph,
                            double *step_s);

/* The mean step over ranks of the last run, labelled; what is left is KNEE_HOST. False: no memory.
 */
bool knee_runner_label(struct knee_runner *runner, struct knee_step *out);

#endif

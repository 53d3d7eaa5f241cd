/* SPDX-License-Identifier: MIT */
/*
 * Runs tasks, event by event. A stream starts its next task as soon as what it waits for has ended;
 * the GPU computes one task at a time; n transfers on one link get 1/n of it each; compute is
 * slowed while shards of parameters move beside it. Rates only change when something of the same
 * stage starts or ends, so each stage knows its next event, and the earliest of all comes next.
 */
#include "base/text.h"
#include "predict/simulate/tasks.h"

#include <math.h>
#include <string.h>

#define NONE (-1)

struct stage {
    int32_t *queue[KNEE_STREAMS]; /* tasks in order */
    size_t length[KNEE_STREAMS], at[KNEE_STREAMS];
    int32_t running[KNEE_STREAMS];
    double left_ns[KNEE_STREAMS]; /* of the running task, alone */
    int64_t now_ns, next_ns;      /* up to when left_ns holds; next event */
};

struct engine {
    struct knee_tasks *tasks;
    struct stage *stages;
    int32_t *queues;
    size_t ended;
};

static bool prepare(struct engine *e)
{
    struct knee_tasks *t = e->tasks;
    size_t stages = (size_t)t->stages, used = 0;
    e->stages = knee_resize(t->alloc, NULL, stages * sizeof *e->stages);
    e->queues = knee_resize(t->alloc, NULL, (t->count + 1) * sizeof *e->queues);
    if (!e->stages || !e->queues)
        return false;
    memset(e->stages, 0, stages * sizeof *e->stages);
    for (size_t i = 0; i < t->count; i++)
        e->stages[t->task[i].stage].length[t->task[i].stream]++;
    for (size_t s = 0; s < stages; s++)
        for (int k = 0; k < KNEE_STREAMS; k++) {
            e->stages[s].queue[k] = e->queues + used;
            used += e->stages[s].length[k];
            e->stages[s].length[k] = 0;
            e->stages[s].running[k] = NONE;
        }
    for (size_t i = 0; i < t->count; i++) {
        struct stage *stage = &e->stages[t->task[i].stage];
        int k = t->task[i].stream;
        stage->queue[k][stage->length[k]++] = (int32_t)i;
    }
    return true;
}

/* How fast a running task goes, 1 alone. */
static double rate(const struct engine *e, const struct stage *stage, int stream)
{
    const struct knee_task *tasks = e->tasks->task;
    const struct knee_task *own = &tasks[stage->running[stream]];
    double others = 0;
    bool moving = false;
    for (int k = 0; k < KNEE_STREAMS; k++) {
        if (stage->running[k] == NONE)
            continue;
        const struct knee_task *task = &tasks[stage->running[k]];
        others += task->lane == own->lane && task->kind == KNEE_TASK_COMM;
        moving = moving || task->slows;
    }
    if (own->kind == KNEE_TASK_COMM)
        return 1 / others;
    return own->kind == KNEE_TASK_COMPUTE && moving ? 1 / (1 + e->tasks->slowdown) : 1;
}

static void advance(struct engine *e, struct stage *stage, int64_t now_ns)
{
    double passed = (double)(now_ns - stage->now_ns), rates[KNEE_STREAMS] = {0};
    for (int k = 0; k < KNEE_STREAMS; k++)
        if (stage->running[k] != NONE)
            rates[k] = rate(e, stage, k);
    for (int k = 0; k < KNEE_STREAMS; k++)
        stage->left_ns[k] -= passed * rates[k];
    stage->now_ns = now_ns;
}

/* Lets those that wait for a task know; their stages look again at once. */
static void release(struct engine *e, int32_t ended, int64_t now_ns)
{
    struct knee_tasks *t = e->tasks;
    for (int32_t i = t->task[ended].next_edge; i != NONE; i = t->edge[i].next) {
        struct knee_task *waiting = &t->task[t->edge[i].to];
        struct stage *stage = &e->stages[waiting->stage];
        waiting->waits--;
        if (waiting->waits == 0 && now_ns < stage->next_ns)
            stage->next_ns = now_ns;
    }
}

static void end_tasks(struct engine *e, struct stage *stage)
{
    for (int k = 0; k < KNEE_STREAMS; k++) {
        int32_t task = stage->running[k];
        if (task == NONE || stage->left_ns[k] > 0.5)
            continue;
        e->tasks->task[task].end_ns = stage->now_ns;
        stage->running[k] = NONE;
        e->ended++;
        release(e, task, stage->now_ns);
    }
}

/* Work put off fills gaps of the pipeline, not the short waits inside a layer: it could not be
 * stopped when they end, and the other stages would wait for it. */
static bool may_compute(const struct engine *e, const struct stage *stage, int stream)
{
    int k = KNEE_STREAM_COMPUTE;
    if (stream != k && stream != KNEE_STREAM_LATER)
        return true;
    if (stage->running[k] != NONE || stage->running[KNEE_STREAM_LATER] != NONE)
        return false;
    if (stream == k || stage->at[k] == stage->length[k])
        return true;
    return e->tasks->task[stage->queue[k][stage->at[k]]].gap;
}

/* Streams in order of their rows: what can wait is only looked at after what cannot. */
static void start_tasks(struct engine *e, struct stage *stage)
{
    for (int k = 0; k < KNEE_STREAMS; k++) {
        if (stage->running[k] != NONE || stage->at[k] == stage->length[k])
            continue;
        int32_t row = stage->queue[k][stage->at[k]];
        struct knee_task *task = &e->tasks->task[row];
        if (task->waits > 0 || !may_compute(e, stage, k))
            continue;
        task->start_ns = stage->now_ns;
        stage->running[k] = row;
        stage->left_ns[k] = task->work_ns;
        stage->at[k]++;
    }
}

static void plan_next(const struct engine *e, struct stage *stage)
{
    stage->next_ns = INT64_MAX;
    for (int k = 0; k < KNEE_STREAMS; k++) {
        if (stage->running[k] == NONE)
            continue;
        double left = fmax(0, stage->left_ns[k]) / rate(e, stage, k);
        int64_t end_ns = stage->now_ns + (int64_t)ceil(left);
        stage->next_ns = end_ns < stage->next_ns ? end_ns : stage->next_ns;
    }
}

bool knee_tasks_run(struct knee_tasks *tasks, int64_t *end_ns)
{
    struct engine e = {.tasks = tasks};
    int64_t now_ns = 0;
    bool good = prepare(&e);
    while (good && e.ended < tasks->count) {
        int32_t first = 0;
        for (int32_t s = 1; s < tasks->stages; s++)
            if (e.stages[s].next_ns < e.stages[first].next_ns)
                first = s;
        struct stage *stage = &e.stages[first];
        good = stage->next_ns != INT64_MAX; /* else tasks wait for each other */
        if (!good)
            break;
        now_ns = stage->next_ns;
        advance(&e, stage, now_ns);
        stage->next_ns = INT64_MAX;
        end_tasks(&e, stage);
        start_tasks(&e, stage);
        plan_next(&e, stage);
    }
    knee_resize(tasks->alloc, e.stages, 0);
    knee_resize(tasks->alloc, e.queues, 0);
    *end_ns = now_ns;
    return good;
}

/* SPDX-License-Identifier: MIT */
/*
 * Runs tasks, event by event. A stream starts its next task as soon as what it waits for has ended;
 * the GPU computes one task at a time; n transfers on one link get 1/n of it each; compute is
 * slowed while shards of parameters move beside it. What has to meet starts, and works when the
 * last has come. Rates only change when something of the same stage starts or ends, so each stage
 * knows its next event, and the earliest of all comes next.
 */
#include "base/text.h"
#include "predict/simulate/tasks.h"

#include <math.h>
#include <string.h>

#define NONE (-1)
/* A century: what takes longer never ends, and two of them still add up. */
#define FOREVER_NS 4e18

struct stream {
    int32_t *queue; /* tasks in order */
    size_t length, at;
    int32_t running;
    bool held;       /* what runs waits for those it has to meet */
    double left_ns;  /* of the running task, alone */
    int64_t free_ns; /* since when nothing runs */
};

struct stage {
    struct stream *streams;
    int32_t moving[KNEE_LANES]; /* transfers that run, by lane */
    int32_t slowing;            /* tasks that run and slow compute */
    int32_t on_gpu;             /* tasks that hold the GPU, waiting ones too */
    int64_t now_ns, next_ns;    /* up to when left_ns holds; next event */
};

struct engine {
    struct knee_tasks *tasks;
    struct stage *stages;
    struct stream *streams;
    int32_t stream_count; /* of each stage */
    int32_t *queues;
    int32_t *first; /* [2 * stages]: of the stages below a place the one whose event comes first;
                       the stages themselves stand from place `stages` on, the first of all at 1 */
    size_t ended;
    int32_t sharing; /* stages that hold the one GPU */
};

static bool allocate(struct engine *e)
{
    struct knee_tasks *t = e->tasks;
    size_t stages = (size_t)t->stages, streams;
    e->stream_count = t->streams ? t->streams : KNEE_STREAMS;
    streams = stages * (size_t)e->stream_count;
    e->stages = knee_resize(t->alloc, NULL, stages * sizeof *e->stages);
    e->streams = knee_resize(t->alloc, NULL, streams * sizeof *e->streams);
    e->queues = knee_resize(t->alloc, NULL, (t->count + 1) * sizeof *e->queues);
    e->first = knee_resize(t->alloc, NULL, 2 * stages * sizeof *e->first);
    if (!e->stages || !e->streams || !e->queues || !e->first)
        return false;
    memset(e->stages, 0, stages * sizeof *e->stages);
    memset(e->streams, 0, streams * sizeof *e->streams);
    for (size_t s = 0; s < stages; s++)
        e->stages[s].streams = e->streams + s * (size_t)e->stream_count;
    return true;
}

static struct stream *stream_of(const struct engine *e, const struct knee_task *task)
{
    return &e->stages[task->stage].streams[task->stream];
}

static bool prepare(struct engine *e)
{
    struct knee_tasks *t = e->tasks;
    size_t used = 0;
    if (!allocate(e))
        return false;
    for (size_t i = 0; i < t->count; i++) {
        stream_of(e, &t->task[i])->length++;
        t->task[i].ready_ns = 0;
    }
    for (size_t k = 0; k < (size_t)t->stages * (size_t)e->stream_count; k++) {
        e->streams[k].queue = e->queues + used;
        used += e->streams[k].length;
        e->streams[k].length = 0;
        e->streams[k].running = NONE;
    }
    for (size_t i = 0; i < t->count; i++) {
        struct stream *stream = stream_of(e, &t->task[i]);
        stream->queue[stream->length++] = (int32_t)i;
    }
    for (size_t i = 0; i < t->meet_count; i++)
        t->meets[i].arrived = 0;
    return true;
}

/* The earlier of two; the lower one of equals, so that runs repeat. */
static int32_t earlier(const struct engine *e, int32_t a, int32_t b)
{
    int64_t at_a = e->stages[a].next_ns, at_b = e->stages[b].next_ns;
    return at_a < at_b || (at_a == at_b && a < b) ? a : b;
}

static void play_first(struct engine *e)
{
    int32_t count = e->tasks->stages;
    for (int32_t s = 0; s < count; s++)
        e->first[count + s] = s;
    for (int32_t i = count - 1; i > 0; i--)
        e->first[i] = earlier(e, e->first[2 * i], e->first[2 * i + 1]);
}

/* The only place that says when a stage's next event is: whoever was first above it plays again. */
static void set_next(struct engine *e, struct stage *stage, int64_t next_ns)
{
    stage->next_ns = next_ns;
    for (int32_t i = (e->tasks->stages + (int32_t)(stage - e->stages)) / 2; i > 0; i /= 2)
        e->first[i] = earlier(e, e->first[2 * i], e->first[2 * i + 1]);
}

/* How fast a task goes, 1 alone. */
static double rate(const struct engine *e, const struct stage *stage, const struct knee_task *task)
{
    if (task->kind == KNEE_TASK_COMM)
        return task->lane == KNEE_LANE_OWN ? 1 : 1 / (double)stage->moving[task->lane];
    if (task->kind != KNEE_TASK_COMPUTE)
        return 1;
    double alone = stage->slowing ? 1 / (1 + e->tasks->slowdown) : 1;
    return e->tasks->one_gpu && e->sharing > 1 ? alone / e->sharing : alone;
}

static bool works(const struct stream *stream)
{
    return stream->running != NONE && !stream->held;
}

static void advance(struct engine *e, struct stage *stage, int64_t now_ns)
{
    double passed = (double)(now_ns - stage->now_ns);
    for (int32_t k = 0; k < e->stream_count; k++)
        if (works(&stage->streams[k]))
            stage->streams[k].left_ns -=
                passed * rate(e, stage, &e->tasks->task[stage->streams[k].running]);
    stage->now_ns = now_ns;
}

/* Counts a task that begins (1) or ends (-1) to work. */
static void count(struct stage *stage, const struct knee_task *task, int32_t by)
{
    stage->moving[task->lane] += task->kind == KNEE_TASK_COMM ? by : 0;
    stage->slowing += task->slows ? by : 0;
}

static void plan_next(struct engine *e, struct stage *stage);

/* A task takes the GPU (1) or leaves it (-1). With one GPU all stages' rates change when a stage
 * begins or ceases to hold it. */
static void hold(struct engine *e, struct stage *stage, const struct knee_task *task, int32_t by)
{
    bool holds = task->kind == KNEE_TASK_COMPUTE || task->kind == KNEE_TASK_COMM;
    if (!e->tasks->one_gpu || !holds)
        return;
    bool held = stage->on_gpu > 0;
    stage->on_gpu += by;
    if (held == (stage->on_gpu > 0))
        return;
    for (int32_t s = 0; s < e->tasks->stages; s++)
        advance(e, &e->stages[s], stage->now_ns);
    e->sharing += by;
    for (int32_t s = 0; s < e->tasks->stages; s++)
        if (&e->stages[s] != stage && e->stages[s].next_ns > stage->now_ns)
            plan_next(e, &e->stages[s]);
}

/* Lets those that wait for a task know; their stages look again when they may start. */
static void release(struct engine *e, int32_t row, bool started, int64_t now_ns)
{
    struct knee_tasks *t = e->tasks;
    for (int32_t i = t->task[row].next_edge; i != NONE; i = t->edge[i].next) {
        if (t->edge[i].from_start != started)
            continue;
        struct knee_task *waiting = &t->task[t->edge[i].to];
        struct stage *stage = &e->stages[waiting->stage];
        int64_t ready = now_ns + t->edge[i].lag_ns;
        waiting->ready_ns = ready > waiting->ready_ns ? ready : waiting->ready_ns;
        int64_t look = waiting->ready_ns + waiting->delay_ns;
        look = look > now_ns ? look : now_ns;
        if (--waiting->waits == 0 && look < stage->next_ns)
            set_next(e, stage, look);
    }
}

static void end_tasks(struct engine *e, struct stage *stage)
{
    for (int32_t k = 0; k < e->stream_count; k++) {
        struct stream *stream = &stage->streams[k];
        int32_t row = stream->running;
        if (!works(stream) || stream->left_ns > 0.5)
            continue;
        e->tasks->task[row].end_ns = stage->now_ns;
        count(stage, &e->tasks->task[row], -1);
        hold(e, stage, &e->tasks->task[row], -1);
        stream->running = NONE;
        stream->free_ns = stage->now_ns;
        e->ended++;
        release(e, row, false, stage->now_ns);
    }
}

/* Work put off fills gaps of the pipeline, not the short waits inside a layer: it could not be
 * stopped when they end, and the other stages would wait for it. */
static bool may_compute(const struct engine *e, const struct stage *stage, int32_t k)
{
    const struct stream *compute = &stage->streams[KNEE_STREAM_COMPUTE];
    if (e->tasks->apart || (k != KNEE_STREAM_COMPUTE && k != KNEE_STREAM_LATER))
        return true;
    if (compute->running != NONE || stage->streams[KNEE_STREAM_LATER].running != NONE)
        return false;
    if (k == KNEE_STREAM_COMPUTE || compute->at == compute->length)
        return true;
    return e->tasks->task[compute->queue[compute->at]].gap;
}

/* When the next task of an idle stream can start, as far as is known now; INT64_MAX: it waits. */
static int64_t next_start(const struct engine *e, const struct stream *stream)
{
    if (stream->running != NONE || stream->at == stream->length)
        return INT64_MAX;
    const struct knee_task *task = &e->tasks->task[stream->queue[stream->at]];
    int64_t from = task->ready_ns > stream->free_ns ? task->ready_ns : stream->free_ns;
    return task->waits > 0 ? INT64_MAX : from + task->delay_ns;
}

static void plan_next(struct engine *e, struct stage *stage)
{
    int64_t next_ns = INT64_MAX;
    for (int32_t k = 0; k < e->stream_count; k++) {
        const struct stream *stream = &stage->streams[k];
        int64_t at = next_start(e, stream);
        if (works(stream)) {
            double left = stream->left_ns > 0 ? stream->left_ns : 0;
            left /= rate(e, stage, &e->tasks->task[stream->running]);
            at = left + (double)stage->now_ns < FOREVER_NS ? stage->now_ns + (int64_t)ceil(left)
                                                           : INT64_MAX;
        } else if (at <= stage->now_ns) {
            if (!may_compute(e, stage, k))
                continue; /* another has the GPU */
            at = stage->now_ns;
        }
        next_ns = at < next_ns ? at : next_ns;
    }
    set_next(e, stage, next_ns);
}

static void begin_work(struct engine *e, const struct knee_task *task)
{
    struct stream *stream = stream_of(e, task);
    stream->held = false;
    stream->left_ns = task->work_ns;
    count(&e->stages[task->stage], task, 1);
}

/* The last has come: all begin. Stages that have nothing to look at before plan anew. */
static void begin_together(struct engine *e, const struct knee_meet *meet, int64_t now_ns)
{
    for (int32_t i = meet->first; i != NONE; i = e->tasks->task[i].next_member) {
        struct stage *stage = &e->stages[e->tasks->task[i].stage];
        advance(e, stage, now_ns);
        begin_work(e, &e->tasks->task[i]);
        if (stage->next_ns > now_ns)
            plan_next(e, stage);
    }
}

static void start_task(struct engine *e, struct stage *stage, struct stream *stream)
{
    int32_t row = stream->queue[stream->at++];
    struct knee_task *task = &e->tasks->task[row];
    task->start_ns = stage->now_ns;
    stream->running = row;
    stream->held = true;
    hold(e, stage, task, 1);
    if (task->starts_edges)
        release(e, row, true, stage->now_ns);
    if (!task->meet) {
        begin_work(e, task);
        return;
    }
    struct knee_meet *meet = &e->tasks->meets[task->meet - 1];
    if (++meet->arrived == meet->count)
        begin_together(e, meet, stage->now_ns);
}

/* Streams in order of their rows: what can wait is only looked at after what cannot. */
static void start_tasks(struct engine *e, struct stage *stage)
{
    for (int32_t k = 0; k < e->stream_count; k++)
        if (next_start(e, &stage->streams[k]) <= stage->now_ns && may_compute(e, stage, k))
            start_task(e, stage, &stage->streams[k]);
}

bool knee_tasks_run(struct knee_tasks *tasks, int64_t *end_ns)
{
    struct engine e = {.tasks = tasks};
    int64_t now_ns = 0;
    bool good = prepare(&e);
    if (good)
        play_first(&e);
    tasks->failed = tasks->failed || !good;
    while (good && e.ended < tasks->count) {
        struct stage *stage = &e.stages[e.first[1]];
        good = stage->next_ns != INT64_MAX; /* else tasks wait for each other */
        if (!good)
            break;
        now_ns = stage->next_ns;
        advance(&e, stage, now_ns);
        set_next(&e, stage, INT64_MAX);
        end_tasks(&e, stage);
        start_tasks(&e, stage);
        plan_next(&e, stage);
    }
    knee_resize(tasks->alloc, e.stages, 0);
    knee_resize(tasks->alloc, e.streams, 0);
    knee_resize(tasks->alloc, e.queues, 0);
    knee_resize(tasks->alloc, e.first, 0);
    *end_ns = now_ns;
    return good;
}

/* SPDX-License-Identifier: MIT */
/*
 * A plan's step as a timeline: tasks are made (schedule.c), run (engine.c) and written down as the
 * spans that a profiler would have recorded, so that accounting, judging and export are those of a
 * measured trace.
 *
 * A stage that waits for another shows what a real one shows: a receive that lasts until the data
 * has come. A wait for the host is a gap whose end is the launch of the next kernel.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "knee_plan.h"
#include "predict/simulate/tasks.h"
#include "timeline/builder.h"

#include <math.h>
#include <string.h>

struct writer {
    const struct knee_tasks *tasks;
    const struct knee_plan *plan;
    struct knee_builder *builder;
    uint64_t correlation;
};

static uint32_t name_of(struct writer *w, const char *name)
{
    return knee_builder_name(w->builder, name, strlen(name));
}

/* The global number of a stage's first rank. */
static int64_t rank_of(const struct writer *w, int32_t stage)
{
    return (int64_t)stage * (int64_t)(w->plan->gpus / w->plan->pp);
}

static void write_span(struct writer *w, int32_t stage, const char *name, int64_t launch_ns,
                       struct knee_gpu_work span)
{
    if (span.end_ns <= span.start_ns)
        return;
    span.device = rank_of(w, stage);
    span.name = name_of(w, name);
    span.correlation = ++w->correlation;
    knee_builder_launch(w->builder, launch_ns, launch_ns, stage, span.correlation);
    knee_builder_span(w->builder, &span);
}

/* Sender and receiver of one message call it by the same number; what all stages wait for has one
 * name. */
static struct knee_call_facts facts_of(struct writer *w, const struct knee_task *task)
{
    struct knee_call_facts facts = KNEE_CALL_UNKNOWN;
    char group[64];
    facts.op = (enum knee_op)task->op;
    facts.group_size = task->group_size > 0 ? task->group_size : -1;
    facts.bytes = task->bytes > 0 ? (int64_t)task->bytes : -1;
    facts.sequence = task->called_after >= 0 ? 0 : task - w->tasks->task;
    if (task->called_after >= 0)
        knee_format(group, sizeof group, "all stages");
    else
        knee_format(group, sizeof group, "%s of stage %d", task->axis, (int)task->stage);
    facts.group = name_of(w, group) + 1;
    facts.description = name_of(w, task->axis) + 1;
    return facts;
}

/* What the stage that gets the data shows: from when it had nothing else to do, or the sender had
 * begun, until the data is there. */
static void write_receive(struct writer *w, const struct knee_task *sent,
                          const struct knee_call_facts *facts, int64_t free_ns)
{
    const struct knee_task *to = &w->tasks->task[sent->received_by];
    int64_t start = free_ns < sent->start_ns ? free_ns : sent->start_ns;
    write_span(
        w, to->stage, sent->name, start,
        (struct knee_gpu_work){
            .start_ns = start, .end_ns = sent->end_ns, .stream = KNEE_STREAM_PP, .facts = facts});
}

static void write_task(struct writer *w, const struct knee_task *task, bool host_bound,
                       int64_t step_ns)
{
    int64_t launch = host_bound ? task->start_ns : step_ns;
    struct knee_gpu_work span = {.start_ns = task->start_ns,
                                 .end_ns = task->end_ns,
                                 .stream = task->stream,
                                 .copy = task->kind == KNEE_TASK_COPY};
    if (task->kind == KNEE_TASK_HOST)
        return;
    struct knee_call_facts facts;
    if (task->kind == KNEE_TASK_COMM) {
        facts = facts_of(w, task);
        span.facts = &facts;
        if (task->called_after >= 0)
            span.start_ns = launch = w->tasks->task[task->called_after].end_ns;
    }
    write_span(w, task->stage, task->name, launch, span);
}

/* Tasks of one stage and stream are in the order they ran; `free_ns` is when the compute stream
 * last had something to do. */
static bool write_tasks(struct writer *w)
{
    const struct knee_tasks *t = w->tasks;
    size_t stages = (size_t)t->stages;
    int64_t *free_ns = knee_resize(t->alloc, NULL, stages * sizeof *free_ns);
    bool *host = knee_resize(t->alloc, NULL, stages * sizeof *host);
    int32_t *sender = knee_resize(t->alloc, NULL, t->count * sizeof *sender);
    bool good = free_ns && host && sender;
    for (size_t s = 0; good && s < stages; s++) {
        free_ns[s] = 0;
        host[s] = false;
    }
    for (size_t i = 0; good && i < t->count; i++)
        sender[i] = -1;
    for (size_t i = 0; good && i < t->count; i++)
        if (t->task[i].received_by >= 0 && t->task[i].kind == KNEE_TASK_COMM)
            sender[t->task[i].received_by] = (int32_t)i;
    for (size_t i = 0; good && i < t->count; i++) {
        const struct knee_task *task = &t->task[i];
        bool main_stream = task->stream == KNEE_STREAM_COMPUTE;
        write_task(w, task, main_stream && host[task->stage], 0);
        if (!main_stream)
            continue;
        if (sender[i] >= 0) {
            struct knee_call_facts facts = facts_of(w, &t->task[sender[i]]);
            write_receive(w, &t->task[sender[i]], &facts, free_ns[task->stage]);
        }
        host[task->stage] = task->kind == KNEE_TASK_HOST && task->end_ns > task->start_ns;
        free_ns[task->stage] = task->end_ns;
    }
    knee_resize(t->alloc, free_ns, 0);
    knee_resize(t->alloc, host, 0);
    knee_resize(t->alloc, sender, 0);
    return good;
}

static knee_status write_trace(const struct knee_tasks *tasks, const struct knee_plan *plan,
                               int64_t end_ns, struct knee_trace *trace, struct knee_err *err)
{
    struct writer w = {.tasks = tasks, .plan = plan};
    static const char file[] = "simulated";
    w.builder = knee_builder_new(NULL, tasks->alloc);
    trace->file = knee_resize(tasks->alloc, NULL, sizeof file);
    bool good = w.builder && trace->file;
    if (good)
        memcpy(trace->file, file, sizeof file);
    if (good)
        knee_builder_step(w.builder, 0, end_ns, 1);
    good = good && write_tasks(&w);
    knee_status status = good ? knee_builder_finish(w.builder, trace, err)
                              : knee_fail(err, KNEE_SYSTEM, "", "out of memory for the timeline");
    knee_builder_free(w.builder);
    if (!status &&
        trace->step_count == 0) /* longer than KNEE_LONGEST_NS: the builder left it out */
        return knee_fail(err, KNEE_USAGE, "", "the step takes more than 115 days: not simulated");
    return status;
}

knee_status knee_simulate(const struct knee_shape *shape, const struct knee_machine *machine,
                          const struct knee_plan *plan, const struct knee_alloc *alloc,
                          struct knee_trace *out, struct knee_err *err)
{
    struct knee_tasks tasks;
    struct knee_trace trace = {.format = "simulated", .rank = -1, .alloc = alloc};
    int64_t end_ns = 0;
    knee_status status = knee_tasks_init(&tasks, shape, machine, plan, alloc, err);
    if (status)
        return status;
    trace.world_size = (int64_t)plan->gpus;
    if (!knee_tasks_run(&tasks, &end_ns))
        status = knee_fail(err, KNEE_SYSTEM, "", "the simulation could not be run to its end");
    if (!status)
        status = write_trace(&tasks, plan, end_ns, &trace, err);
    knee_tasks_release(&tasks);
    if (status) {
        knee_trace_release(&trace);
        return status;
    }
    *out = trace;
    return KNEE_OK;
}

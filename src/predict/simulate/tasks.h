/* SPDX-License-Identifier: MIT */
/*
 * A step as tasks: what each stage's representative rank has to do, on which stream, after what.
 * schedule.c makes them from a plan, engine.c runs them.
 */
#ifndef KNEE_PREDICT_SIMULATE_TASKS_H
#define KNEE_PREDICT_SIMULATE_TASKS_H

#include "knee_job.h"

/* Streams run their tasks in order; streams of one stage run side by side. */
enum knee_stream {
    KNEE_STREAM_COMPUTE,
    KNEE_STREAM_LATER, /* compute that fills gaps: weight gradients of zero-bubble schedules */
    KNEE_STREAM_TP,    /* communication inside layers: TP, CP, EP */
    KNEE_STREAM_SHARD, /* gathering and scattering parameters */
    KNEE_STREAM_DP,    /* gradients, new parameters */
    KNEE_STREAM_PP,    /* to other stages */
    KNEE_STREAM_COPY,  /* to and from the host */
    KNEE_STREAMS
};

/* What they share: two transfers on one link get half of it each. */
enum knee_lane { KNEE_LANE_GPU, KNEE_LANE_NODE, KNEE_LANE_NETWORK, KNEE_LANE_HOST, KNEE_LANES };

enum knee_task_kind {
    KNEE_TASK_COMPUTE,
    KNEE_TASK_COMM,
    KNEE_TASK_COPY,
    KNEE_TASK_HOST, /* the GPU waits for the host: shows as a gap */
};

struct knee_task {
    double work_ns; /* alone */
    int64_t start_ns, end_ns;
    int32_t stage;
    int32_t waits;     /* tasks that must end before */
    int32_t next_edge; /* first of those that wait for this one; -1: none */
    int32_t
        called_after; /* the call is made when this task ends, and then waits; -1: at its start */
    int32_t received_by; /* first task of the stage that this is sent to; -1: not sent */
    unsigned char stream, lane, kind;
    unsigned char op; /* enum knee_op of communication */
    bool gap;         /* while this waits, KNEE_STREAM_LATER may compute */
    bool slows;       /* compute beside it */
    const char *name; /* static */
    const char *axis; /* "TP" ...; communication only */
    double bytes;
    int32_t group_size;
};

struct knee_edge {
    int32_t to, next;
};

/* Tasks of all stages; per stage and stream in the order they are to run. */
struct knee_tasks {
    struct knee_task *task;
    size_t count, capacity;
    struct knee_edge *edge;
    size_t edge_count, edge_capacity;
    int32_t stages;
    double slowdown; /* of compute beside a task that slows it */
    const struct knee_alloc *alloc;
    bool failed;
};

#define KNEE_TASKS_MAX 8000000

/* One step of a plan. KNEE_USAGE when it is too large; KNEE_SYSTEM when out of memory. Free with
 * knee_tasks_release(). */
knee_status knee_tasks_init(struct knee_tasks *tasks, const struct knee_shape *shape,
                            const struct knee_machine *machine, const struct knee_plan *plan,
                            const struct knee_alloc *alloc, struct knee_err *err);
void knee_tasks_release(struct knee_tasks *tasks);

/* Runs them: fills in start_ns and end_ns, and returns the time at which all have ended. False:
 * out of memory. */
bool knee_tasks_run(struct knee_tasks *tasks, int64_t *end_ns);

#endif

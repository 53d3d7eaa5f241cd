/* SPDX-License-Identifier: MIT */
/*
 * A step as tasks: what each stage's representative rank has to do, on which stream, after what.
 * schedule.c makes them from a plan, src/replay from a recorded timeline (there a stage is a rank);
 * engine.c runs them.
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

/* What they share: two transfers on one link get half of it each; on KNEE_LANE_OWN all of it. */
enum knee_lane {
    KNEE_LANE_GPU,
    KNEE_LANE_NODE,
    KNEE_LANE_NETWORK,
    KNEE_LANE_HOST,
    KNEE_LANE_OWN,
    KNEE_LANES
};

enum knee_task_kind {
    KNEE_TASK_COMPUTE,
    KNEE_TASK_COMM,
    KNEE_TASK_COPY,
    KNEE_TASK_HOST, /* the GPU waits for the host: shows as a gap */
};

struct knee_task {
    double work_ns; /* alone */
    int64_t start_ns, end_ns;
    int64_t delay_ns; /* from when it could start to when it does */
    int64_t ready_ns; /* of the engine: not before, for what has ended so far */
    int32_t stage, stream;
    int32_t waits;     /* tasks that must end before */
    int32_t next_edge; /* first of those that wait for this one; -1: none */
    int32_t
        called_after; /* the call is made when this task ends, and then waits; -1: at its start */
    int32_t received_by; /* first task of the stage that this is sent to; -1: not sent */
    uint32_t meet;       /* row of knee_tasks.meets + 1; 0: alone */
    int32_t next_member; /* of the same meet; -1: the last */
    unsigned char lane, kind;
    unsigned char op;  /* enum knee_op of communication */
    bool gap;          /* while this waits, KNEE_STREAM_LATER may compute */
    bool slows;        /* compute beside it */
    bool starts_edges; /* some of its edges are from its start */
    const char *name;  /* static */
    const char *axis;  /* "TP" ...; communication only */
    double bytes;
    int32_t group_size;
};

/* `to` may start lag_ns after the end (or the start) of the task whose edge this is; at least 0. */
struct knee_edge {
    int32_t to, next;
    int64_t lag_ns;
    bool from_start;
};

/* Tasks of several stages that do their work together: it begins when the last of them has
 * started; those before it wait in their streams. */
struct knee_meet {
    int32_t first; /* task; others by next_member */
    int32_t count, arrived;
};

/* Tasks of all stages; per stage and stream in the order they are to run. */
struct knee_tasks {
    struct knee_task *task;
    size_t count, capacity;
    struct knee_edge *edge;
    size_t edge_count, edge_capacity;
    struct knee_meet *meets;
    size_t meet_count;
    int32_t stages;
    int32_t streams; /* of each stage; 0: KNEE_STREAMS */
    bool apart;      /* streams are numbers without meaning, and all may compute at once */
    bool one_gpu;    /* of all stages: n that compute or communicate get 1/n of it each */
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
 * out of memory (tasks->failed), or tasks that wait for each other. */
bool knee_tasks_run(struct knee_tasks *tasks, int64_t *end_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The lines that the live agent writes (docs/reference/watch.md): about.json, steps.jsonl and
 * calls.jsonl of a rank, from text in memory; and the calls of several ranks joined. A line that is
 * damaged or has no end (the writer was killed) is counted and left out.
 */
#ifndef KNEE_READ_LIVE_READ_H
#define KNEE_READ_LIVE_READ_H

#include "knee_timeline.h"

struct knee_live_about {
    char host[64], source[8], nccl[24], gpu[96], gpu_uuid[48], agent[24], cupti[16], why[160];
    int64_t pid, rank, world, local_rank, profiler_api, start_ns;
    int64_t kernel_times; /* 1: of the GPU's own clock */
};

/* NaN, -1 or "" where the line does not say. */
struct knee_live_step {
    int64_t t_ns, step, steps, calls, bytes, seq, kernels, lost, sm_mhz, temp_c, every, left_out;
    int64_t sampled; /* 1: label_s is there */
    uint64_t comm, throttle;
    double step_s, label_s[KNEE_LABELS], comm_s, window_s;
    double gpu_s, energy_j, power_w, overhead, cpu;
    char trace[32];
};

struct knee_live_call {
    uint64_t comm;
    int64_t seq, sn, bytes, start_ns, dur_ns, gpu_ns, step, channels, rank, n, peer;
    /* Of knee_live_join(), -1: not joined: how long it waited for the last one to come; and by how
     * much it came after most of the others (0: it did not). */
    int64_t wait_ns, late_ns;
    char op[16], algo[16], proto[8];
};

/* Rows of one rank; files of a ring are added oldest first. Free with knee_live_release(). */
struct knee_live_rank {
    struct knee_live_about about;
    struct knee_live_step *steps;
    struct knee_live_call *calls;
    size_t step_count, call_count, step_room, call_room;
    uint64_t damaged; /* lines left out */
    const struct knee_alloc *alloc;
};

void knee_live_init(struct knee_live_rank *rank, const struct knee_alloc *alloc);
/* KNEE_INPUT when it is not such a file. */
knee_status knee_live_read_about(struct knee_live_rank *rank, const char *text, size_t length,
                                 struct knee_err *err);
knee_status knee_live_read_steps(struct knee_live_rank *rank, const char *text, size_t length,
                                 struct knee_err *err);
knee_status knee_live_read_calls(struct knee_live_rank *rank, const char *text, size_t length,
                                 struct knee_err *err);
void knee_live_release(struct knee_live_rank *rank);

/* One collective, all of whose members were found. */
struct knee_live_meeting {
    uint64_t comm;
    int64_t seq, step, bytes;
    int64_t wire_ns;    /* the shortest member: it came last and did not wait */
    int64_t longest_ns; /* wire and the longest wait */
    uint32_t members;
    uint32_t last; /* row of ranks that came last */
    uint32_t last_call;
};

/* Per rank, over all meetings: no clocks have to agree. */
struct knee_live_joined {
    struct knee_live_meeting *meetings; /* by communicator, then sequence */
    size_t count;
    size_t partial;   /* collectives of which a member is missing */
    int64_t *wait_ns; /* per rank */
    size_t *last;     /* how often the rank came last */
    const struct knee_alloc *alloc;
};

/* Joins collectives on (comm, seq) and fills wait_ns of the ranks' calls. */
knee_status knee_live_join(struct knee_live_rank *ranks, size_t count,
                           const struct knee_alloc *alloc, struct knee_live_joined *out,
                           struct knee_err *err);
void knee_live_joined_release(struct knee_live_joined *joined);

#endif

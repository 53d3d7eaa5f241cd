/* SPDX-License-Identifier: MIT */
/*
 * What the rings of a running job (read/live/live_read.h) say together: where it is, who keeps the
 * others waiting, since when, and what it costs. Nothing here knows the time: the caller says.
 */
#ifndef KNEE_JUDGE_WATCH_H
#define KNEE_JUDGE_WATCH_H

#include "judge/change_point.h"
#include "knee_judge.h"
#include "read/live/live_read.h"

#define KNEE_WATCH_POINTS 256  /* of the history, each one step or several */
#define KNEE_WATCH_RECENT 16   /* points that "now" means */
#define KNEE_WATCH_LATE   0.05 /* of a step: less is not worth a name */

/* Why a rank is late, where its labels or its GPU tell. */
enum knee_watch_cause {
    KNEE_WATCH_UNKNOWN, /* nothing was sampled */
    KNEE_WATCH_HOT,     /* its clocks are held down for heat */
    KNEE_WATCH_POWER,   /* ... or for power */
    KNEE_WATCH_CLOCK,   /* ... lower than the others', for an unknown reason */
    KNEE_WATCH_LABEL,   /* it does `label` longer than the others */
};

/* What the newest lines say of the job as a whole. */
enum knee_watch_state {
    KNEE_WATCH_RUNNING,
    KNEE_WATCH_STALE, /* no rank has written for long: it ended, or its node is gone */
    KNEE_WATCH_HUNG,  /* no step for long, while some of its processes live or some ranks go on */
};

/* Seconds are of one step. NaN, -1: not known. */
struct knee_watch_rank {
    const struct knee_live_about *about; /* borrowed */
    int64_t step, last_ns;               /* newest line: number and time */
    double step_s;
    double wait_s; /* in collectives, for the last one to come */
    double late_s; /* the others waited for it (median), above what they wait for anyone */
    struct knee_step step_sampled; /* its newest sampled step; wall_s 0: none */
    double power_w, joules, sm_mhz, temp_c, overhead;
    uint64_t throttle; /* NVML's clock event reasons */
    int64_t every, left_out;
    bool silent;          /* the others have written since, for long */
    bool joules_by_table; /* NVML did not say: labels times data/power.csv */
};

/* One step, or a few: mean over ranks. */
struct knee_watch_point {
    int64_t step, t_ns; /* the last it covers, and when that ended */
    double step_s, wait_s;
    double late_s;            /* of the latest rank */
    size_t latest;            /* row of ranks; SIZE_MAX: not known */
    struct knee_step sampled; /* sums over ranks that sampled it; wall_s 0: none did */
};

/* Calls of one kind on one communicator. */
struct knee_watch_wire {
    uint64_t comm;
    enum knee_op op;
    const char *op_name; /* borrowed */
    int64_t bytes;
    uint32_t members, a_rank; /* how many; the row of one of them */
    size_t calls;
    double wire_s, total_s; /* of one; of all calls */
    double bus_bytes_per_s; /* NaN: not a collective that has one */
    double slowdown;        /* over the same on other communicators, at least three; NaN: none */
};

/* Free with knee_watch_release(); `ranks` and `joined` must outlive it. */
struct knee_watch {
    struct knee_watch_rank *ranks; /* beside the rows that it was made from */
    size_t rank_count;
    int64_t world; /* -1: not known */
    struct knee_watch_point *points;
    size_t point_count;
    double *late; /* [rank_count][point_count] seconds a step; NaN: no collective was joined */
    int64_t step, first_step;    /* newest; of the oldest line read. -1: no steps were found */
    double step_s, first_step_s; /* recent median; the median of the first points */
    double wait_s;               /* recent, mean over ranks */
    struct knee_step sampled;    /* the newest, mean over ranks; wall_s 0: none */
    int64_t sampled_step;        /* the newest of them */
    size_t late_rank;            /* row; SIZE_MAX: none */
    double late_s;
    enum knee_watch_cause cause;
    enum knee_label label;
    double label_s; /* what it does longer, a step */
    struct knee_change step_change, late_change;
    size_t late_change_rank;
    struct knee_watch_wire *wires; /* most time first */
    size_t wire_count;
    size_t slow_wire; /* row of wires, far slower than others like it; SIZE_MAX: none */
    size_t meetings, partial;
    size_t silent; /* ranks */
    enum knee_watch_state state;
    double age_s;                  /* since the newest line of all */
    double rank_s;                 /* seconds of ranks, since each began */
    double dollars, stall_dollars; /* so far; NaN: no price, nothing sampled */
    double price_per_hour;
    bool price_assumed;   /* indicative, of the GPU that the ranks name */
    double joules;        /* so far, by the mean power of what was read */
    bool joules_by_table; /* of some rank by its labels and data/power.csv: NVML did not say */
    double overhead;      /* the agent's own share, the largest of all ranks */
    uint64_t damaged, left_out;
    const struct knee_alloc *alloc;
};

struct knee_watch_given {
    int64_t now_ns;
    double price_per_hour; /* of a rank; NaN: by its GPU's name */
    size_t alive;          /* processes of ranks that run on this host; 0: none, or not known */
    const struct knee_alloc *alloc;
};

/* `joined` is of the same ranks. KNEE_SYSTEM when out of memory. */
knee_status knee_watch(const struct knee_live_rank *ranks, size_t count,
                       const struct knee_live_joined *joined, const struct knee_watch_given *given,
                       struct knee_watch *out, struct knee_err *err);
void knee_watch_release(struct knee_watch *watch);

/* Are there steps between this point and the one before it of which nothing was read? */
bool knee_watch_gap(const struct knee_watch *watch, size_t point);

/* Growth of the step since the start, as a share; NaN: not known. */
double knee_watch_trend(const struct knee_watch *watch);

#endif

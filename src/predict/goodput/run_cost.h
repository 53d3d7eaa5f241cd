/* SPDX-License-Identifier: MIT */
/*
 * What a run costs: the inputs about failures, checkpoints and electricity, and what they make of a
 * step time. It knows nothing of plans but their size, so that any forecast can be priced by it.
 */
#ifndef KNEE_PREDICT_GOODPUT_RUN_COST_H
#define KNEE_PREDICT_GOODPUT_RUN_COST_H

#include "predict/goodput/checkpoint.h"
#include "predict/goodput/goodput.h"

enum knee_checkpoint_mode { KNEE_CHECKPOINT_SYNC, KNEE_CHECKPOINT_ASYNC };

/* Every field is described by its row in knee_run_keys. */
struct knee_run_inputs {
    double gpu_hours_per_stop, restart_s, every_s, filesystem_rate, node_rate, repair_s;
    double grid, overhead; /* g CO2e per kWh; facility energy over server energy */
    int mode;              /* of enum knee_checkpoint_mode; -1: not given */
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_run_keys;
extern const struct knee_choices knee_checkpoint_modes;
void knee_run_init(struct knee_run_inputs *inputs);

/* Sets what is not given to the usual values. */
void knee_run_complete(struct knee_run_inputs *inputs);

/* What stands behind the usual values, in GPU-hours and seconds. */
#define KNEE_STOP_GPU_HOURS 30000.0
#define KNEE_STOP_LEAST     8000.0
#define KNEE_STOP_MOST      50000.0

struct knee_run_question {
    const struct knee_run_inputs *inputs; /* completed */
    struct knee_checkpoint_job job;
    double node_size;     /* GPUs of a node */
    double productive_s;  /* time of all steps without failures; NaN: not asked */
    double dollars_per_s; /* of all GPUs; NaN: no price */
};

struct knee_run_cost {
    struct knee_stops stops; /* as assumed or given, with the interval in use */
    struct knee_goodput goodput;
    struct knee_sure sure; /* of goodput.kept */
    struct knee_checkpoint checkpoint;
    enum knee_checkpoint_mode mode;
    double best_every_s;          /* interval with the highest goodput */
    double best_kept;             /* goodput with it */
    double other_kept;            /* goodput with the other mode at its own best interval */
    double spares;                /* nodes, so that a repair seldom delays a restart */
    double stop_count;            /* unplanned stops expected in the run; NaN: no run */
    double minute_s, minute_cost; /* what one more minute of restart adds to the run */
    double time_s, cost;          /* of the run with failures; NaN: no run, no price */
};

/* `inputs` must be completed. */
void knee_run_price(const struct knee_run_question *question, struct knee_run_cost *out);

/* KNEE_USAGE when a job of so many GPUs could not run: a restart takes longer than the time between
 * two stops, or a checkpoint is not complete when the next one starts. */
knee_status knee_run_check(const struct knee_run_question *question, struct knee_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A plan's run with failures, checkpoints and electricity: predict/goodput's engines asked for one
 * plan on so many GPUs.
 */
#ifndef KNEE_JUDGE_RUN_VERDICT_H
#define KNEE_JUDGE_RUN_VERDICT_H

#include "predict/goodput/energy.h"
#include "predict/goodput/run_cost.h"

/* What one change of the power limit does to a step; NaN: no measured watts for this GPU. */
struct knee_capped {
    double cap_w, step, joules; /* the limit; step and energy of a step over those without it */
};

/* Energy of all GPUs over the run, lost time included; NaN where no tokens are asked. */
struct knee_run_energy {
    struct knee_watts watts;
    double gpu_w, server_w;           /* mean of one GPU in a step; with its share of the server */
    double gpu_j, server_j, site_j;   /* of the run; site: with the building's overhead */
    double billion_j, billion_co2e_g; /* site, for 1e9 tokens; co2e NaN without --grid */
    double co2e_g;
    struct knee_capped capped;
};

struct knee_plan_run {
    struct knee_run_cost cost;
    struct knee_run_energy energy;
};

/* Whether anything about the run was asked: tokens, or one of knee_run_keys. */
bool knee_run_asked(const struct knee_run_inputs *inputs, double tokens);

/* Prices the first plan of a row that fits. answer->run must be completed. */
void knee_plan_run_of(const struct knee_plan_answer *answer, const struct knee_plan_row *row,
                      struct knee_plan_run *out);

/* The same check as knee_run_check() for the smallest count that was asked. */
knee_status knee_plan_run_check(const struct knee_plan_answer *answer, struct knee_err *err);

/* Goodput on so many GPUs, whatever the plan. */
double knee_plan_goodput_at(const struct knee_plan_answer *answer, double gpus);

#endif

/* SPDX-License-Identifier: MIT */
/* Dollars and joules per step, day and run, and how much of them buys no useful work. */
#include "judge/judge.h"

#define SECONDS_PER_DAY 86400.0

struct knee_cost knee_cost_of(const struct knee_row *at, double run)
{
    double per_day = SECONDS_PER_DAY / at->step.wall_s;
    return (struct knee_cost){
        .step = at->cost,
        .day = at->cost * per_day,
        .run = at->cost * run,
        .stall_step = at->stall_cost,
        .stall_day = at->stall_cost * per_day,
        .stall_run = at->stall_cost * run,
        .joules_step = at->joules,
        .joules_day = at->joules * per_day,
        .joules_run = at->joules * run,
        .stall_joules_step = at->stall_joules,
        .stall_joules_day = at->stall_joules * per_day,
        .stall_joules_run = at->stall_joules * run,
        .run_steps = run,
    };
}

/* SPDX-License-Identifier: MIT */
/* What follows from a completed plan and a shape: stages, micro-batches, groups. */
#ifndef KNEE_JOB_PLAN_H
#define KNEE_JOB_PLAN_H

#include "knee_job.h"

/* Layers of the first, the last and the fullest stage. */
struct knee_stages {
    double first, last, most;
};
struct knee_stages knee_plan_stages(double layers, double pp, double vp);

/* Micro-batches that each pipeline works through in a step, at least 1. */
double knee_plan_micro_batches(const struct knee_plan *plan);

/* How often gradients are reduced in a step: zero2 keeps no whole gradient to add to, so it reduces
 * with every micro-batch; under a pipeline software adds up locally all the same. */
double knee_plan_reductions(const struct knee_plan *plan);

/* The ranks that pass a micro-batch on from stage to stage. */
struct knee_group knee_plan_pipeline(const struct knee_plan *plan);

/* Why a plan cannot be, or NULL. Its degrees must all be set. */
const char *knee_plan_objection(const struct knee_plan *plan, const struct knee_shape *shape,
                                const struct knee_machine *machine);

enum knee_dtype knee_precision_dtype(int precision);

#endif

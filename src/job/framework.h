/* SPDX-License-Identifier: MIT */
/*
 * What frameworks can do: one row each, and rules that a plan of it must keep. The search asks
 * which plans it may look at, --emit which it can write down, a question whether it contradicts
 * itself.
 */
#ifndef KNEE_JOB_FRAMEWORK_H
#define KNEE_JOB_FRAMEWORK_H

#include "knee_job.h"

/* The first rule that a plan breaks, as a number for knee_framework_says(); -1: none. Fields that
 * are open (NaN, -1) break none. `framework` NULL: anything goes. */
int knee_framework_breaks(const struct knee_framework *framework, const struct knee_plan *plan,
                          const struct knee_shape *shape);

/* Whether it can recompute so. */
bool knee_framework_has(const struct knee_framework *framework, enum knee_recompute recompute);

/* What is in the way, and what to ask for instead. */
struct knee_obstacle {
    char what[96], instead[128];
};
void knee_framework_says(const struct knee_framework *framework, int rule,
                         struct knee_obstacle *out);

#endif

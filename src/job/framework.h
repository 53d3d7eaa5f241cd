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

/* The framework that is priced as this profile when none is named; NULL: none is. */
const struct knee_framework *knee_framework_priced_as(const char *profile);

/* The rule that a plan breaks beside what enum knee_unusual names by itself: a zero-bubble
 * schedule, ZeRO-3 under a pipeline, and the precision, which is not the search's choice. */
int knee_framework_lacks(const struct knee_framework *framework, const struct knee_plan *plan,
                         const struct knee_shape *shape);

/* Has it a `precision` (KNEE_BF16, ...)? */
bool knee_framework_computes(const struct knee_framework *framework, int precision);
/* Whether ZeRO-3 over nodes or under a pipeline is how it is usually run. */
bool knee_framework_shards(const struct knee_framework *framework);

/* Whether it can recompute so. */
bool knee_framework_has(const struct knee_framework *framework, enum knee_recompute recompute);

/* What is in the way, and what to ask for instead. */
struct knee_obstacle {
    char what[96], instead[128];
};
void knee_framework_says(const struct knee_framework *framework, int rule,
                         struct knee_obstacle *out);

#endif

/* SPDX-License-Identifier: MIT */
/* A plan as launch flags or a configuration file of a framework. */
#ifndef KNEE_READ_RUN_LAUNCH_H
#define KNEE_READ_RUN_LAUNCH_H

#include "base/text.h"
#include "knee_plan.h"

extern const struct knee_choices knee_launch_frameworks;
/* Appends what row `framework` of them takes. KNEE_USAGE: the framework cannot run a part of it. */
knee_status knee_launch_write(const struct knee_plan_answer *answer, const struct knee_plan *plan,
                              int framework, struct knee_text *text, struct knee_err *err);

#endif

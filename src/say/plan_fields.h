/* SPDX-License-Identifier: MIT */
/* The fields of knee plan, for its sentences. */
#ifndef KNEE_SAY_PLAN_FIELDS_H
#define KNEE_SAY_PLAN_FIELDS_H

#include "judge/run_verdict.h"
#include "say/fields.h"

#define KNEE_PLAN_FIELDS  19
#define KNEE_ALIKE_FIELDS 7
extern const struct knee_field knee_alike_fields[KNEE_ALIKE_FIELDS]; /* struct knee_alike */
extern const struct knee_field knee_plan_fields[KNEE_PLAN_FIELDS];   /* struct knee_plan_answer */
extern const struct knee_field knee_ops_fields[1];

/* The run of a row; NULL: not asked, or nothing fits. */
const struct knee_plan_run *knee_plan_run_at(const struct knee_plan_answer *answer,
                                             const struct knee_plan_row *row);

#endif

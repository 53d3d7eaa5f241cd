/* SPDX-License-Identifier: MIT */
#ifndef KNEE_OUT_SHOW_PLAN_H
#define KNEE_OUT_SHOW_PLAN_H

#include "knee_plan.h"
#include "out/json.h"

/* A priced plan as an object. */
void knee_found_json(struct knee_json *json, const char *key, const struct knee_found *found);

/* Its bytes as the object "memory". */
void knee_memory_json(struct knee_json *json, const struct knee_memory *memory);
/* The smallest count that a plan fits at; NULL: none. */
const struct knee_plan_row *knee_plan_smallest(const struct knee_plan_answer *answer);
/* "tp 4, dp 2, micro-batch 1, zero1, recompute full" */
void knee_plan_words(const struct knee_plan *plan, struct knee_text *text);

/* The row that the answer is about; NULL: nothing fits. */
const struct knee_plan_row *knee_plan_shown(const struct knee_plan_answer *answer);

#endif

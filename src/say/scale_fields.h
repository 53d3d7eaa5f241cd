/* SPDX-License-Identifier: MIT */
/* Between the two halves of knee scale's answer: its values and its sentences. */
#ifndef KNEE_SAY_SCALE_FIELDS_H
#define KNEE_SAY_SCALE_FIELDS_H

#include "knee_scale.h"
#include "say/fields.h"

#define KNEE_SCALE_FIELDS 17
#define KNEE_SCALE_VIEWS  7
extern const struct knee_field knee_scale_fields[KNEE_SCALE_FIELDS];
extern const struct knee_view knee_scale_views[KNEE_SCALE_VIEWS];

/* Seconds of all terms of the fit at the largest count. */
double knee_scale_term_sum(const struct knee_scale_fit *fit);

/* Sentences about the jobs of a scheduler: src/say/say_jobs.c. */
void knee_say_jobs(const struct knee_scale_answer *a, struct knee_said *said);

#endif

/* SPDX-License-Identifier: MIT */
/* Models by name: a table made from data/models.csv by tools/presets.awk. */
#ifndef KNEE_JOB_MODELS_H
#define KNEE_JOB_MODELS_H

#include "knee_job.h"

extern const struct knee_model knee_models[];
extern const size_t knee_models_count;

/* By name, case and punctuation apart ("Llama3 70B"); NULL if there is none. */
const struct knee_model *knee_model_named(const char *name);

/* Whether it is a transformer. */
bool knee_model_has_shape(const struct knee_model *model);

/* FLOPs per parameter and token (or image): 6 for each parameter that a token visits. */
double knee_model_flops_per_param(const struct knee_model *model);

/* Fills what *shape does not have yet. */
void knee_shape_fill(struct knee_shape *shape, const struct knee_model *preset);

#endif

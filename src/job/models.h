/* SPDX-License-Identifier: MIT */
/* Presets of models: a table made from data/models.csv by tools/presets.awk. */
#ifndef KNEE_JOB_MODELS_H
#define KNEE_JOB_MODELS_H

#include "knee_cluster.h"

extern const struct knee_model knee_models[];
extern const size_t knee_models_count;

#endif

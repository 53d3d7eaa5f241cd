/* SPDX-License-Identifier: MIT */
/* What the rest of the core asks of a completed shape beside the public calls. */
#ifndef KNEE_JOB_SHAPE_H
#define KNEE_JOB_SHAPE_H

#include "knee_job.h"

/* Positions that a token meets on average over the layers; half of them under a causal mask. */
double knee_shape_pairs(const struct knee_shape *shape, bool causal);

#endif

/* SPDX-License-Identifier: MIT */
/* Published runs like a plan: what was measured where, to put beside a forecast. */
#ifndef KNEE_PREDICT_PLAN_PUBLISHED_RUNS_H
#define KNEE_PREDICT_PLAN_PUBLISHED_RUNS_H

#include "knee_plan.h"

/* A row of data/published_runs.csv. */
struct knee_published_run {
    const char *name, *gpu; /* of the model; a GPU preset */
    double gpus;
    const char *precision;
    double seq, experts, lora_rank;
    const char *origin;
    double gflops, token_s; /* of the model per token; GPU seconds per token */
};
extern const struct knee_published_run knee_published_runs[];
extern const size_t knee_published_runs_count;

/* The runs nearest to a shape on `gpus` GPUs of a kind, nearest first; returns how many, at most
 * KNEE_ALIKE_MAX. token_s: what the forecast says. */
size_t knee_alike_find(const struct knee_shape *shape, const struct knee_platform *platform,
                       const struct knee_plan *plan, double token_s,
                       struct knee_alike out[KNEE_ALIKE_MAX]);

#endif

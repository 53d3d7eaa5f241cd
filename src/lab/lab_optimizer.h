/* SPDX-License-Identifier: MIT */
/* Optimizers: one row each; every row works on one tensor at a time. */
#ifndef KNEE_LAB_LAB_OPTIMIZER_H
#define KNEE_LAB_LAB_OPTIMIZER_H

#include "knee_keys.h"
#include "lab/lab_net.h"

struct lab_optimizer {
    int row; /* of the table */
    size_t param_count;
    float *first, *second; /* moments; owned */
    double rate;           /* learning rate at its highest */
    size_t warmup, steps;  /* of the schedule: linear up, then half a cosine down to a tenth */
    bool constant;         /* no way down: the rate after the warm-up */
    size_t step;           /* steps done */
};

extern const struct knee_choices lab_optimizer_names;
/* What a rate of 1 in the options' default means for this optimizer. */
double lab_optimizer_usual_rate(int row);

bool lab_optimizer_init(struct lab_optimizer *optimizer, int row, size_t param_count);
void lab_optimizer_release(struct lab_optimizer *optimizer);
/* The schedule's rate for the step to come. */
double lab_optimizer_rate(const struct lab_optimizer *optimizer);
/* One step over all tensors. */
void lab_optimizer_step(struct lab_optimizer *optimizer, const struct lab_tensor *tensors,
                        size_t tensor_count, float *params, const float *grads);

#endif

/* SPDX-License-Identifier: MIT */
/* The five suspects induced one at a time, and the changes applied one at a time. */
#ifndef KNEE_LAB_LAB_HUNT_H
#define KNEE_LAB_LAB_HUNT_H

#include "lab/lab_sweep.h"

/* Fills lab->hunts, critical_batch. `base` gives text, model, compute and progress. */
knee_status lab_hunt(struct knee_runtime *runtime, const struct lab_setup *base, size_t seeds,
                     struct knee_lab *lab, struct knee_err *err);

/* Fills lab->pushes, critical_batch. */
knee_status lab_push_levers(struct knee_runtime *runtime, const struct lab_setup *base,
                            const struct lab_sweep *sweep, struct knee_lab *lab,
                            struct knee_err *err);

#endif

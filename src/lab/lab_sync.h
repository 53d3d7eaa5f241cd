/* SPDX-License-Identifier: MIT */
/* When workers meet: one row per strategy. */
#ifndef KNEE_LAB_LAB_SYNC_H
#define KNEE_LAB_LAB_SYNC_H

#include "lab/lab_worker.h"

struct lab_strategy {
    const char *name, *about;
    bool every_step; /* gradients are summed; else workers train alone and meet now and then */
    bool streams;    /* buckets meet in turn, and the training goes on meanwhile */
    double rate, momentum; /* of the outer step */
};
const struct lab_strategy *lab_strategy_of(const struct lab_setup *setup);

/* Room beside parameters and gradients. False: out of memory. */
bool lab_sync_init(struct lab_worker *worker);

/* The host hands over what follows the backward pass of step `step` (from 0). */
void lab_sync_step(struct lab_worker *worker, size_t step);

/* All workers to the mean of their parameters, at the end, when nothing is under way. */
bool lab_sync_end(struct lab_worker *worker);

/* How many exchanges of everything one step makes on average. */
double lab_sync_per_step(const struct lab_setup *setup);

#endif

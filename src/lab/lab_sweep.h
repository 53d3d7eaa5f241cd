/* SPDX-License-Identifier: MIT */
/* A run at every worker count, and what the closed forms say about each beforehand. */
#ifndef KNEE_LAB_LAB_SWEEP_H
#define KNEE_LAB_LAB_SWEEP_H

#include "lab/lab.h"

struct lab_sweep {
    double workers[KNEE_LAB_ROWS]; /* ascending, from 1 */
    size_t count;
    struct lab_link link; /* NaN: one rank */
    double tolerance;
    bool baseline;      /* one worker was not asked for: a short run will do */
    const char *record; /* timelines of the run at the most workers; NULL: none */
    /* Filled. */
    struct knee_lab_row rows[KNEE_LAB_ROWS];
    struct knee_lab_knee measured, predicted;
    double buckets;
    float *params; /* of the last run, on rank 0's group; free() it; NULL: synthetic */
};

knee_status lab_sweep_run(struct knee_runtime *runtime, const struct lab_setup *setup,
                          struct lab_sweep *sweep, struct knee_err *err);

struct lab_wire_cost {
    const struct lab_link *link;
    double local_s; /* encoding, adding, decoding of one exchange */
};

/* The step that the closed forms predict at K from one worker's outcome, the link, and what an
 * exchange costs beside the wire. */
knee_status lab_predict(const struct lab_setup *setup, const struct lab_outcome *one,
                        const struct lab_wire_cost *cost, double workers, struct knee_row *out,
                        struct knee_err *err);

/* What an exchange over `workers` costs a rank beside the wire: encoding, adding, decoding.
 * Measured by going through one without sending anything. All ranks call. */
knee_status lab_measure_local(struct knee_runtime *runtime, const struct lab_setup *setup,
                              int workers, double *local_s, struct knee_err *err);

/* Measured beforehand, by all ranks, through the same sends and receives as the exchange. */
knee_status lab_sweep_link(struct knee_runtime *runtime, const struct lab_setup *setup,
                           struct lab_link *out, struct knee_err *err);

/* The knee of a curve: pick predicted or measured figures of the rows. */
struct knee_lab_knee lab_find_knee(const struct knee_lab_row *rows, size_t count, double tolerance,
                                   bool predicted, const double *gammas);

#endif

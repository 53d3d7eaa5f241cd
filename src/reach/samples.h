/* SPDX-License-Identifier: MIT */
/* What repeated measurements say: the middle, the tails, whether there are two of them, a line. */
#ifndef KNEE_REACH_SAMPLES_H
#define KNEE_REACH_SAMPLES_H

#include "base/order.h"

#include <stdbool.h>
#include <stddef.h>

/* Times of one thing, repeated. */
struct knee_spread {
    size_t count;
    double min_s, median_s, p95_s, max_s;
    /* Two kinds of run rather than one: their middles, and how many of all are of the slower. */
    bool two_modes;
    double fast_s, slow_s, slow_share;
};

/* Sorts samples[count], count > 0. */
struct knee_spread knee_spread_of(double *samples, size_t count);

/* A time that was measured, and what it should be made of: hops * alpha + bytes * beta. */
struct knee_point {
    double hops, bytes, time_s;
};

/* alpha and beta by least squares of relative errors, neither below 0; `worst` is the largest
 * relative error left. False when the points do not tell the two apart. */
struct knee_line {
    double alpha_s, s_per_byte, worst;
};
bool knee_line_fit(const struct knee_point *points, size_t count, struct knee_line *out);

#endif

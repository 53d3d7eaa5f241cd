/* SPDX-License-Identifier: MIT */
/* Time against size of one log, as few straight pieces that rise. */
#ifndef KNEE_COLLECTIVE_CURVE_H
#define KNEE_COLLECTIVE_CURVE_H

#include "knee_collective.h"

struct knee_curve_point {
    double bytes, time_s;
};

/* Fits knots to points, which must be ascending in bytes and positive; sizes may repeat. Only the
 * knots of *out are set. KNEE_INPUT without a point, KNEE_SYSTEM without memory. */
knee_status knee_curve_fit(const struct knee_curve_point *points, size_t count,
                           const struct knee_alloc *alloc, struct knee_curve *out,
                           struct knee_err *err);

/* Between the first knot and the last. */
double knee_curve_time_s(const struct knee_curve *curve, double bytes);

/* The curve of a cluster for this op, rank count and node count; NULL: none. */
const struct knee_curve *knee_curve_find(const struct knee_cluster *cluster,
                                         const struct knee_layout *layout, enum knee_op op);

#endif

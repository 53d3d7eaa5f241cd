/* SPDX-License-Identifier: MIT */
/* When did a series change for good? */
#ifndef KNEE_JUDGE_CHANGE_POINT_H
#define KNEE_JUDGE_CHANGE_POINT_H

#include "knee.h"

struct knee_change {
    bool found;
    size_t at;            /* first value of the new time */
    double before, after; /* medians of the stretch before it and of all since */
    double chance;        /* of a change as clear as this in values without any, at most about */
};

/* The newest change of values[count] (no NaN among them) by at least `least`, up or down, that
 * chance does not explain. Not found: the series stays. KNEE_SYSTEM when out of memory. */
knee_status knee_change_point(const double *values, size_t count, double least,
                              const struct knee_alloc *alloc, struct knee_change *out,
                              struct knee_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Numbers in order: what stands in the middle of them, or at any share. */
#ifndef KNEE_BASE_ORDER_H
#define KNEE_BASE_ORDER_H

#include <stddef.h>

/* For qsort() of doubles, smallest first. */
int knee_ascending(const void *a, const void *b);

/* Of values in ascending order, `count` at least 1: between order statistics, as spreadsheets do
 * it. */
double knee_quantile(const double *sorted, size_t count, double share);

/* The median of values[count], which are sorted by it; NaN when there is none. */
double knee_median(double *values, size_t count);

#endif

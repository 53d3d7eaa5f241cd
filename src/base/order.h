/* SPDX-License-Identifier: MIT */
/* Numbers in order: what stands in the middle of them, or at any share; rows in order: where one
 * begins. */
#ifndef KNEE_BASE_ORDER_H
#define KNEE_BASE_ORDER_H

#include <stddef.h>

/* For qsort() of doubles and of int64_t, smallest first. */
int knee_ascending(const void *a, const void *b);
int knee_ascending_whole(const void *a, const void *b);

/* Of values in ascending order, `count` at least 1: between order statistics, as spreadsheets do
 * it. */
double knee_quantile(const double *sorted, size_t count, double share);

/* The median of values[count], which are sorted by it; NaN when there is none. */
double knee_median(double *values, size_t count);

/* What would stand in row `rank` of values[count], `rank` below `count`, if they were sorted; they
 * are put in another order. NaN is not among them. */
double knee_at_rank(double *values, size_t count, size_t rank);

/* A function for qsort(): rows `a` and `b` of `type` by any comparison of them, such as those
 * below: the smallest member first, the largest first, another one where the first is equal. */
#define KNEE_SORT(name, type, order)                                                               \
    static int name(const void *left, const void *right)                                           \
    {                                                                                              \
        const type *a = left, *b = right;                                                          \
        return order;                                                                              \
    }
#define KNEE_COMPARE(a, b)          (((a) > (b)) - ((a) < (b)))
#define KNEE_UP(member)             KNEE_COMPARE(a->member, b->member)
#define KNEE_DOWN(member)           KNEE_COMPARE(b->member, a->member)
#define KNEE_THEN(first, other)     ((first) ? (first) : (other))
#define KNEE_BY(name, type, member) KNEE_SORT(name, type, KNEE_UP(member))
#define KNEE_BY_TWO(name, type, member, second)                                                    \
    KNEE_SORT(name, type, KNEE_THEN(KNEE_UP(member), KNEE_UP(second)))

/* Binary search: sets `at`, a size_t, to the first row of `count` for which `before`, an expression
 * of `at`, is false; to `count` where there is none. `before` holds for no row after that one. */
#define KNEE_BISECT(at, count, before)                                                             \
    do {                                                                                           \
        size_t low_ = 0, high_ = (count);                                                          \
        while (low_ < high_) {                                                                     \
            (at) = low_ + (high_ - low_) / 2;                                                      \
            if (before)                                                                            \
                low_ = (at) + 1;                                                                   \
            else                                                                                   \
                high_ = (at);                                                                      \
        }                                                                                          \
        (at) = low_;                                                                               \
    } while (0)

#endif

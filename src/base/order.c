/* SPDX-License-Identifier: MIT */
#include "base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int knee_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return KNEE_COMPARE(x, y);
}

int knee_ascending_whole(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return KNEE_COMPARE(x, y);
}

double knee_quantile(const double *sorted, size_t count, double share)
{
    double at = share * (double)(count - 1), low = floor(at);
    size_t i = (size_t)low;
    return i + 1 < count ? sorted[i] + (at - low) * (sorted[i + 1] - sorted[i]) : sorted[count - 1];
}

double knee_median(double *values, size_t count)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, knee_ascending);
    return knee_quantile(values, count, 0.5);
}

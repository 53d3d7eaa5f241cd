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

/* Hoare's selection: parts the values by one of them and goes on in the part that has the row. A
 * list that parts badly is sorted. */
double knee_at_rank(double *values, size_t count, size_t rank)
{
    size_t low = 0, high = count - 1;
    for (int parts = 0; low < high; parts++) {
        if (parts == 64) {
            qsort(values, count, sizeof *values, knee_ascending);
            break;
        }
        double middle = values[low + (high - low) / 2];
        size_t left = low, right = high + 1;
        for (;;) {
            while (values[left] < middle)
                left++;
            do
                right--;
            while (values[right] > middle);
            if (left >= right)
                break;
            double swap = values[left];
            values[left++] = values[right];
            values[right] = swap;
        }
        if (rank <= right)
            high = right;
        else
            low = right + 1;
    }
    return values[rank];
}

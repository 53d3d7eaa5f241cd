/* SPDX-License-Identifier: MIT */
#include "reach/samples.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The widest gap that leaves a quarter of the samples on either side. Two modes: it is wider than
 * both groups' middle halves together and than a tenth of the median. */
static void find_modes(const double *sorted, struct knee_spread *out)
{
    size_t n = out->count, quarter = (n + 3) / 4, split = 0;
    double gap_s = 0;
    for (size_t i = quarter; n >= 12 && i + quarter <= n; i++)
        if (sorted[i] - sorted[i - 1] > gap_s) {
            gap_s = sorted[i] - sorted[i - 1];
            split = i;
        }
    if (split == 0)
        return;
    double fast_half = knee_quantile(sorted, split, 0.75) - knee_quantile(sorted, split, 0.25);
    double slow_half = knee_quantile(sorted + split, n - split, 0.75) -
                       knee_quantile(sorted + split, n - split, 0.25);
    out->fast_s = knee_quantile(sorted, split, 0.5);
    out->slow_s = knee_quantile(sorted + split, n - split, 0.5);
    out->slow_share = (double)(n - split) / (double)n;
    out->two_modes = gap_s > fast_half + slow_half && gap_s > 0.1 * out->median_s;
}

struct knee_spread knee_spread_of(double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, knee_ascending);
    struct knee_spread out = {
        .count = count,
        .min_s = samples[0],
        .median_s = knee_quantile(samples, count, 0.5),
        .p95_s = knee_quantile(samples, count, 0.95),
        .max_s = samples[count - 1],
    };
    find_modes(samples, &out);
    return out;
}

static double worst_of(const struct knee_point *points, size_t count, double alpha_s,
                       double s_per_byte)
{
    double worst = 0;
    for (size_t i = 0; i < count; i++)
        worst = fmax(
            worst,
            fabs((points[i].hops * alpha_s + points[i].bytes * s_per_byte) / points[i].time_s - 1));
    return worst;
}

bool knee_line_fit(const struct knee_point *points, size_t count, struct knee_line *out)
{
    double hh = 0, hb = 0, bb = 0, h1 = 0, b1 = 0;
    for (size_t i = 0; i < count; i++) {
        double h = points[i].hops / points[i].time_s, b = points[i].bytes / points[i].time_s;
        hh += h * h, hb += h * b, bb += b * b, h1 += h, b1 += b;
    }
    double determinant = hh * bb - hb * hb;
    if (count < 2 || !(determinant > 1e-9 * hh * bb))
        return false;
    double alpha_s = (h1 * bb - b1 * hb) / determinant;
    double s_per_byte = (b1 * hh - h1 * hb) / determinant;
    if (alpha_s < 0)
        alpha_s = 0, s_per_byte = b1 / bb;
    else if (s_per_byte < 0)
        s_per_byte = 0, alpha_s = h1 / hh;
    *out = (struct knee_line){alpha_s, s_per_byte, worst_of(points, count, alpha_s, s_per_byte)};
    return true;
}

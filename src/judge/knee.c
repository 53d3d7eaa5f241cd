/* SPDX-License-Identifier: MIT */
/*
 * Where the knee is. Every whole count up to DENSE is tried, then a geometric grid up to
 * KNEE_SEARCH_MAX; crossings and peaks between grid points are closed in on. Exact up to DENSE, and
 * beyond it for curves that do not wiggle within 2 % of K.
 */
#include "judge/judge.h"

#include <math.h>

enum { DENSE = 256, PER_OCTAVE = 32, OCTAVES = 12, GRID = DENSE + PER_OCTAVE * OCTAVES };
_Static_assert((long)DENSE << OCTAVES == (long)KNEE_SEARCH_MAX, "the grid ends elsewhere");

static double grid_workers(int i)
{
    if (i < DENSE)
        return i + 1;
    return rint(DENSE * exp2((double)(i - DENSE + 1) / PER_OCTAVE));
}

typedef double curve(const struct knee_row *row);

static double at(const struct knee_terms *terms, double workers, curve *of)
{
    struct knee_row row;
    knee_evaluate(terms, workers, &row);
    return of(&row);
}

static double gamma_of(const struct knee_row *row)
{
    return row->gamma;
}

static double ratio_of(const struct knee_row *row)
{
    return row->ratio;
}

static double efficiency_of(const struct knee_row *row)
{
    return row->efficiency;
}

static double throughput_of(const struct knee_row *row)
{
    return row->throughput_per_s;
}

static double quality_of(const struct knee_row *row)
{
    return -row->time_to_quality_s;
}

/* Between low (below 1) and high (not below): the first double that is not below. */
static double cross_one(const struct knee_terms *terms, double low, double high, curve *of)
{
    double middle;
    while ((middle = low + (high - low) / 2) > low && middle < high)
        *(at(terms, middle, of) < 1 ? &low : &high) = middle;
    return high;
}

/* What one pass over the grid finds, as places on it. */
struct found {
    int end;                  /* places at which every worker has an example */
    int gamma_one, ratio_one; /* the first at 1 or more; GRID: none */
    int efficient;            /* the last at the tolerance or better; 0 also when none is */
    int throughput, quality;  /* the highest */
    double most_throughput, most_quality;
};

/* Places of the grid at which every worker has an example to work on. */
static int end_of_grid(const struct knee_terms *terms)
{
    int end = 1;
    while (end < GRID && grid_workers(end) <= terms->most_workers)
        end++;
    return end;
}

static struct found look(const struct knee_terms *terms, double tolerance)
{
    struct found f = {.gamma_one = GRID, .ratio_one = GRID, .end = end_of_grid(terms)};
    for (int i = 0; i < GRID; i++) {
        struct knee_row row;
        knee_evaluate(terms, grid_workers(i), &row);
        if (i > 0 && f.gamma_one == GRID && gamma_of(&row) >= 1)
            f.gamma_one = i;
        if (i > 0 && f.ratio_one == GRID && ratio_of(&row) >= 1)
            f.ratio_one = i;
        if (i >= f.end) /* crossings are solved for all the same; knees lie before */
            continue;
        if (row.efficiency >= tolerance)
            f.efficient = i;
        if (i == 0 || throughput_of(&row) > f.most_throughput) {
            f.throughput = i;
            f.most_throughput = throughput_of(&row);
        }
        if (i == 0 || quality_of(&row) > f.most_quality) {
            f.quality = i;
            f.most_quality = quality_of(&row);
        }
    }
    return f;
}

static double first_at_one(const struct knee_terms *terms, int i, curve *of)
{
    return i == GRID ? NAN : cross_one(terms, grid_workers(i - 1), grid_workers(i), of);
}

static double last_efficient(const struct knee_terms *terms, int i, double tolerance)
{
    if (i == GRID - 1)
        return NAN;
    double good = grid_workers(i), bad = fmin(grid_workers(i + 1), terms->most_workers + 1);
    while (bad - good > 1) {
        double middle = floor((good + bad) / 2);
        *(at(terms, middle, efficiency_of) >= tolerance ? &good : &bad) = middle;
    }
    return good;
}

/* Whole count of the highest value; NaN when it is still rising at the end, or not known. */
static double peak(const struct knee_terms *terms, int best, double most, curve *of)
{
    if (best == GRID - 1 || isnan(most))
        return NAN;
    double low = grid_workers(best > 0 ? best - 1 : 0);
    double high = fmin(grid_workers(best + 1), terms->most_workers);
    while (high - low >= 3) { /* ternary search on whole numbers */
        double third = floor((high - low) / 3);
        double a = low + third, b = high - third;
        if (at(terms, a, of) < at(terms, b, of))
            low = a;
        else
            high = b;
    }
    double found = grid_workers(best);
    for (double k = low; k <= high; k++)
        if (at(terms, k, of) > at(terms, found, of))
            found = k;
    return found;
}

static double terms_efficiency(const void *terms, double workers)
{
    return at(terms, workers, efficiency_of);
}

double knee_last_workers(double (*of)(const void *ctx, double workers), const void *ctx,
                         double most_workers, double least)
{
    enum { WIDE = 8, PLACES = WIDE * (OCTAVES + 8) };
    double good = 1, bad = NAN;
    for (int i = 1; i <= PLACES; i++) {
        double workers = rint(exp2((double)i / WIDE));
        if (workers > most_workers)
            break;
        if (of(ctx, workers) >= least) {
            good = workers;
            bad = NAN;
        } else if (isnan(bad)) {
            bad = workers;
        }
    }
    if (isnan(bad) && !isfinite(most_workers))
        return NAN;
    bad = fmin(isnan(bad) ? INFINITY : bad, most_workers + 1);
    while (bad - good > 1) {
        double middle = floor((good + bad) / 2);
        *(of(ctx, middle) >= least ? &good : &bad) = middle;
    }
    return good;
}

/* For changes of a job that are only compared with each other. */
double knee_tolerance_workers(const struct knee_terms *terms, double tolerance)
{
    return knee_last_workers(terms_efficiency, terms, terms->most_workers, tolerance);
}

void knee_find(const struct knee_terms *terms, double tolerance, struct knee_knee *out,
               double *quality_workers)
{
    struct found f = look(terms, tolerance);
    out->gamma_one_workers = first_at_one(terms, f.gamma_one, gamma_of);
    out->ratio_one_workers = first_at_one(terms, f.ratio_one, ratio_of);
    out->tolerance_workers = last_efficient(terms, f.efficient, tolerance);
    out->tolerance_efficiency = out->next_efficiency = NAN;
    out->limit_workers = isfinite(terms->most_workers) ? terms->most_workers : NAN;
    if (!isnan(out->tolerance_workers)) {
        out->tolerance_efficiency = at(terms, out->tolerance_workers, efficiency_of);
        out->next_efficiency = at(terms, out->tolerance_workers + 1, efficiency_of);
    }
    out->peak_throughput_workers = peak(terms, f.throughput, f.most_throughput, throughput_of);
    *quality_workers = peak(terms, f.quality, f.most_quality, quality_of);
}

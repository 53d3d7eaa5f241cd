/* SPDX-License-Identifier: MIT */
/*
 * Intervals of predicted step times. Residuals log(measured / predicted) of runs whose whole source
 * was left out of the fit, by class; a band holds the middle 90 of 100 of them (split conformal
 * prediction: of n residuals the ceil(0.95 (n + 1))-th smallest is the upper end). Whether such
 * bands hold is asked the same way: each source against a band from the other sources' residuals.
 *
 * A class of few sources cannot tell how its sources differ: it borrows the residuals of all
 * classes, each divided by its own spread (what a fit without its source leaves open,
 * knee_fit_spread()), and multiplies them by the spread of the class's runs, which does not
 * depend on measured times (normalised conformal prediction).
 *
 * Sources differ more than rows of one source do, so a band of pooled rows holds too few of a new
 * source's. It is stretched (in the logarithm) until bands made in the same way without a source
 * hold LEAST of the rows left out, source by source.
 */
#include "base/order.h"
#include "base/text.h"
#include "job/plan.h"
#include "job/profile.h"
#include "predict/calibrate/calibrate.h"

#include <math.h>
#include <string.h>

#define OUTSIDE     0.05 /* on each side */
#define FEW_SOURCES 5
#define LEAST       0.88 /* of rows left out */
#define STRETCH     1.01 /* at a time */
#define MOST        4.0

enum knee_band_class knee_run_class(const struct knee_measured_run *run)
{
    const char *why;
    int profile = run->platform.profile, gpu = run->platform.hw.gpu;
    enum knee_basis basis = profile < 0 ? KNEE_BASIS_UNNAMED : KNEE_BASIS_ASSUMED;
    if (profile >= 0 && !run->assumed[0] && gpu >= 0)
        basis = knee_basis_of(profile, knee_gpu_at((size_t)gpu)->name, &why);
    return knee_band_class_of(&run->shape, knee_plan_basis(&run->plan, &run->shape, basis));
}

enum knee_band_class knee_run_curve_class(const struct knee_measured_run *run)
{
    const struct knee_profile *software = knee_profile_at((size_t)run->platform.profile);
    bool assumed = run->assumed[0] || (software && software->sources < 1); /* fitted to no run */
    return knee_band_class_of(&run->shape, !software ? KNEE_BASIS_UNNAMED
                                           : assumed ? KNEE_BASIS_ASSUMED
                                                     : KNEE_BASIS_KNOWN);
}

static double residual(const struct knee_run_result *r)
{
    return -log1p(r->held_out_error);
}

static bool in_class(const struct knee_validation *v, size_t i, enum knee_band_class class)
{
    return !isnan(v->result[i].held_out_error) && v->result[i].interval_class == (size_t) class;
}

static bool first_of_source(const struct knee_validation *v, size_t i, enum knee_band_class class)
{
    for (size_t k = 0; k < i; k++)
        if (in_class(v, k, class) && strcmp(v->runs->run[k].source, v->runs->run[i].source) == 0)
            return false;
    return in_class(v, i, class);
}

static size_t sources_of(const struct knee_validation *v, enum knee_band_class class)
{
    size_t count = 0;
    for (size_t i = 0; i < v->runs->count; i++)
        count += first_of_source(v, i, class);
    return count;
}

/* The spread of a class's runs: root of the mean square. */
static double spread_of(const struct knee_validation *v, enum knee_band_class class)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < v->runs->count; i++)
        if (in_class(v, i, class)) {
            sum += v->result[i].held_out_spread * v->result[i].held_out_spread;
            count++;
        }
    return sqrt(sum / count);
}

/* A band being made. */
struct making {
    const struct knee_validation *v;
    enum knee_band_class class;
    double stretch, *room;
};

/* The band of a class from all sources but `without` (NULL: from all); false: no residuals. */
static bool band_from(const struct making *m, const char *without, struct knee_run_band *out)
{
    const struct knee_validation *v = m->v;
    enum knee_band_class class = m->class;
    double *room = m->room;
    size_t n = 0;
    bool borrow = sources_of(v, class) < FEW_SOURCES;
    double unit = borrow ? spread_of(v, class) : 1;
    for (size_t i = 0; i < v->runs->count; i++) {
        const struct knee_run_result *r = &v->result[i];
        bool counts = borrow ? !isnan(r->held_out_error) : in_class(v, i, class);
        if (counts && (!without || strcmp(v->runs->run[i].source, without) != 0))
            room[n++] = residual(r) / (borrow ? r->held_out_spread : 1);
    }
    if (n == 0 || isnan(unit))
        return false;
    knee_median(room, n); /* sorts */
    double count = (double)n, above = ceil((1 - OUTSIDE) * (count + 1));
    size_t high = (size_t)fmin(above, count) - 1;
    out->low = exp(m->stretch * unit * room[n - 1 - high]);
    out->high = exp(m->stretch * unit * room[high]);
    return true;
}

/* Rows of a source that a band holds. */
static size_t held_by(const struct knee_validation *v, enum knee_band_class class,
                      const char *source, const struct knee_run_band *band)
{
    size_t held = 0;
    for (size_t i = 0; i < v->runs->count; i++) {
        double ratio = exp(residual(&v->result[i]));
        bool mine = source && in_class(v, i, class) && strcmp(v->runs->run[i].source, source) == 0;
        held += mine && ratio >= band->low && ratio <= band->high;
    }
    return held;
}

static void left_out(const struct making *m, struct knee_run_band *band)
{
    const struct knee_validation *v = m->v;
    size_t held = 0;
    band->rows = band->sources = 0;
    for (size_t i = 0; i < v->runs->count; i++) {
        struct knee_run_band others = {0};
        const char *source = v->runs->run[i].source;
        band->rows += in_class(v, i, m->class);
        if (!first_of_source(v, i, m->class))
            continue;
        band->sources++;
        if (band_from(m, source, &others))
            held += held_by(v, m->class, source, &others);
    }
    band->covered_left_out = band->rows ? (double)held / (double)band->rows : NAN;
}

void knee_judge_bands(struct knee_validation *v, double *room)
{
    for (int c = 0; c < KNEE_BANDS; c++) {
        struct knee_run_band *band = &v->left_out_band[c];
        struct making making = {v, (enum knee_band_class)c, 1, room};
        *band = (struct knee_run_band){.name = knee_bands[c].name, .low = NAN, .high = NAN};
        for (; making.stretch <= MOST; making.stretch *= STRETCH) {
            band_from(&making, NULL, band);
            left_out(&making, band);
            if (!(band->covered_left_out < LEAST) || band->sources < 2)
                break;
        }
        if (!(band->covered_left_out < LEAST))
            continue;
        making.stretch = 1; /* sources have nothing in common: no stretch helps */
        band_from(&making, NULL, band);
        left_out(&making, band);
    }
}

void knee_count_covered(struct knee_validation *v)
{
    for (int c = 0; c < KNEE_BANDS; c++) {
        struct knee_run_band band = {
            .name = knee_bands[c].name, .low = knee_bands[c].low, .high = knee_bands[c].high};
        size_t held = 0;
        for (size_t i = 0; i < v->runs->count; i++) {
            const struct knee_run_result *r = &v->result[i];
            double measured = v->runs->run[i].step_s;
            if (isnan(r->error) || r->interval_class != (size_t)c)
                continue;
            band.rows++;
            held += measured >= r->low_s && measured <= r->high_s;
        }
        band.covered = band.rows ? (double)held / (double)band.rows : NAN;
        v->band[c] = band;
    }
}

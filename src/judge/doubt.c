/* SPDX-License-Identifier: MIT */
/*
 * The interval of a closed form. A closed form is not fitted, so it has no residuals. Two errors
 * are known:
 *   - the error of E(K), the efficiency on K GPUs, on measured curves that were used in no fit. It
 *     is zero at the counts where E(K) is known: one GPU by definition, and the count at which the
 *     exchange was measured, if it was. It does not depend on the distance from them;
 *   - the spread of published runs around the usual share of peak FLOP/s. A share, a rate or a time
 *     that the user gives is treated as exact.
 * Step, R and knee follow from E(K) and compute, so they need no third error. A forecast by the
 * calibrated model has the interval of knee plan on its step.
 */
#include "base/keys.h"
#include "job/profile.h"
#include "judge/judge.h"

#include <math.h>

void knee_doubt_init(const struct knee_job *job, struct knee_closed_doubt *out)
{
    size_t mfu = knee_keys_find(&knee_job_keys, "mfu");
    bool told = isnan(job->mfu) || job->source[mfu] != KNEE_DEFAULT;
    *out = (struct knee_closed_doubt){
        .compute = told || job->forecast ? (struct knee_sure){1, 1} : knee_band_mfu(),
        .anchor = isnan(job->comm_time_s) ? 1 : job->measured_workers,
    };
}

/* Factors on E(K) at one count: by the nearer of the two places at which it is known. */
static struct knee_sure curve_sure(const struct knee_closed_doubt *doubt,
                                   const struct knee_row *row)
{
    double workers = row->workers;
    double near = fabs(log2(workers / doubt->anchor)) < log2(workers) ? doubt->anchor : 1;
    return knee_band_curve(KNEE_BAND_ASSUMED, workers, near, row->efficiency);
}

static void widen(struct knee_sure *sure, double low, double high)
{
    sure->low = fmin(sure->low, low);
    sure->high = fmax(sure->high, high);
}

/* What a row becomes when E(K) is off by a factor and compute stays: the rest of the step is
 * exposed. */
static double ratio_at(const struct knee_row *row, double factor)
{
    double extra = row->step.wall_s / factor - row->step.wall_s;
    return fmax(0, row->ratio + extra / row->step.label_s[KNEE_COMPUTE]);
}

void knee_doubt_row(const struct knee_terms *terms, const struct knee_closed_doubt *doubt,
                    struct knee_row *row)
{
    const double computes[] = {1, doubt->compute.low, doubt->compute.high};
    row->step_sure = row->efficiency_sure = row->ratio_sure =
        (struct knee_sure){INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof computes / sizeof *computes; i++) {
        struct knee_terms other = *terms;
        struct knee_row end;
        other.compute_s *= computes[i];
        knee_terms_settle(&other);
        knee_evaluate(&other, row->workers, &end);
        struct knee_sure curve = curve_sure(doubt, &end);
        double high = fmin(curve.high, fmax(1, 1 / end.efficiency)); /* never beyond linear */
        widen(&row->step_sure, end.step.wall_s / high, end.step.wall_s / curve.low);
        widen(&row->efficiency_sure, end.efficiency * curve.low, end.efficiency * high);
        widen(&row->ratio_sure, ratio_at(&end, high), ratio_at(&end, curve.low));
    }
    if (terms->forecast.known)
        row->step_sure = (struct knee_sure){terms->forecast.step.low * row->step.wall_s,
                                            terms->forecast.step.high * row->step.wall_s};
}

struct search {
    const struct knee_terms *terms;
    const struct knee_closed_doubt *doubt;
};

static double low_efficiency(const void *ctx, double workers)
{
    const struct search *s = ctx;
    struct knee_row row = {.workers = workers};
    knee_doubt_row(s->terms, s->doubt, &row);
    return row.efficiency_sure.low;
}

static double high_efficiency(const void *ctx, double workers)
{
    const struct search *s = ctx;
    struct knee_row row = {.workers = workers};
    knee_doubt_row(s->terms, s->doubt, &row);
    return row.efficiency_sure.high;
}

void knee_doubt_knee(const struct knee_terms *terms, const struct knee_closed_doubt *doubt,
                     double tolerance, struct knee_knee *knee)
{
    struct search search = {terms, doubt};
    double most = terms->most_workers, at = knee->tolerance_workers;
    double low = knee_last_workers(low_efficiency, &search, most, tolerance);
    double high = knee_last_workers(high_efficiency, &search, most, tolerance);
    /* The knee itself is looked for on a finer grid; none at all is beyond every count. */
    knee->sure.low = isnan(low) ? at : fmin(low, at);
    knee->sure.high = isnan(high) || isnan(at) ? NAN : fmax(high, at);
}

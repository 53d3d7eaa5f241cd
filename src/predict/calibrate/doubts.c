/* SPDX-License-Identifier: MIT */
/*
 * Intervals of E(K), memory and closed forms, by the method that bands.c uses for step times:
 * residuals log(measured / predicted) of runs that nothing was fitted to; the band holds the middle
 * 90 of 100 of them, and is checked on each source in turn by what the other sources say.
 *
 *   E(K)    one job at several counts, against its smallest; both predicted without their source.
 *           Errors do not grow with the doublings between the two. Where something is assumed, or
 * there are experts, the residuals are those of all curves: anything may be the case. MFU     dense
 * runs in 16 bits against 6 P tokens / (usual share x peak): nothing is fitted. memory  by the
 * spread that the probability of fitting has, over the runs of each source.
 */
#include "base/order.h"
#include "job/job.h"
#include "predict/calibrate/calibrate.h"

#include <math.h>
#include <string.h>

#define OUTSIDE 0.05 /* on each side */

typedef double residual_of(const struct knee_validation *v, size_t i);

/* ---- Residuals; NaN: the run says nothing ---- */

/* Of E(K) by these step times. */
static double curve_residual(const struct knee_validation *v, size_t i, enum knee_run_step of)
{
    size_t anchor = v->result[i].anchor;
    if (anchor == SIZE_MAX || anchor == i)
        return NAN;
    double measured = knee_run_efficiency(v, i, anchor, KNEE_RUN_MEASURED);
    return log(measured / knee_run_efficiency(v, i, anchor, of));
}

static bool known(const struct knee_validation *v, size_t i)
{
    return knee_run_curve_class(&v->runs->run[i]) == KNEE_BAND_KNOWN;
}

static bool assumed(const struct knee_validation *v, size_t i)
{
    return !known(v, i);
}

static double any_curve(const struct knee_validation *v, size_t i)
{
    return curve_residual(v, i, KNEE_RUN_HELD_OUT);
}

static double known_curve(const struct knee_validation *v, size_t i)
{
    return known(v, i) ? any_curve(v, i) : NAN;
}

static double mfu_residual(const struct knee_validation *v, size_t i)
{
    const struct knee_measured_run *run = &v->runs->run[i];
    struct knee_platform platform = run->platform;
    struct knee_machine machine;
    struct knee_params params;
    bool wide = run->plan.precision == KNEE_BF16 || run->plan.precision == KNEE_FP16;
    if (isnan(v->result[i].error) || run->shape.experts > 1 || !wide ||
        run->phase != KNEE_PHASE_STEP || knee_machine_init(&platform, NULL, &machine, NULL))
        return NAN;
    knee_shape_params(&run->shape, &params);
    double flops = 6 * params.total * run->plan.global_batch * run->shape.seq;
    double rate = KNEE_USUAL_MFU * machine.peak_flops[KNEE_16BIT] * run->plan.gpus;
    return log(run->step_s * rate / flops);
}

/* ---- A band from them ---- */

static bool of_source(const struct knee_validation *v, size_t i, const char *source)
{
    return strcmp(v->runs->run[i].source, source) == 0;
}

/* From all sources but `without` (NULL: from all); *out stays when there are none. */
static void band_from(const struct knee_validation *v, residual_of *of, const char *without,
                      double *room, struct knee_sure *out)
{
    size_t n = 0;
    for (size_t i = 0; i < v->runs->count; i++) {
        double value = of(v, i);
        if (!isnan(value) && !(without && of_source(v, i, without)))
            room[n++] = value;
    }
    if (n == 0)
        return;
    knee_median(room, n); /* sorts */
    double count = (double)n, above = ceil((1 - OUTSIDE) * (count + 1));
    size_t high = (size_t)fmin(above, count) - 1;
    *out = (struct knee_sure){room[n - 1 - high], room[high]};
}

/* What a doubt is made of, and which of those runs it is for; NULL: all. */
static const struct {
    residual_of *of;
    bool (*judged)(const struct knee_validation *, size_t);
} doubts[KNEE_DOUBTS] = {
    [KNEE_DOUBT_CURVE] = {known_curve, NULL},
    [KNEE_DOUBT_CURVE_ASSUMED] = {any_curve, assumed},
    [KNEE_DOUBT_MFU] = {mfu_residual, NULL},
};

static bool judged(const struct knee_validation *v, int kind, size_t i)
{
    return !isnan(doubts[kind].of(v, i)) && (!doubts[kind].judged || doubts[kind].judged(v, i));
}

static bool first_of_source(const struct knee_validation *v, int kind, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (judged(v, kind, k) && of_source(v, k, v->runs->run[i].source))
            return false;
    return judged(v, kind, i);
}

static void hold_against(const struct knee_validation *v, int kind, const char *source,
                         const struct knee_sure *band, struct knee_run_band *out)
{
    for (size_t i = 0; i < v->runs->count; i++) {
        if (!judged(v, kind, i) || !of_source(v, i, source))
            continue;
        double value = doubts[kind].of(v, i);
        out->rows++;
        out->covered_left_out += value >= band->low && value <= band->high;
    }
    out->sources++;
}

static struct knee_run_band band_of(const struct knee_validation *v, int kind, double *room)
{
    struct knee_sure all = {NAN, NAN};
    struct knee_run_band band = {.name = knee_doubts[kind].name};
    band_from(v, doubts[kind].of, NULL, room, &all);
    band.low = exp(all.low);
    band.high = exp(all.high);
    for (size_t i = 0; i < v->runs->count; i++) {
        struct knee_sure others = {INFINITY, -INFINITY}; /* no other source: holds nothing */
        if (!first_of_source(v, kind, i))
            continue;
        band_from(v, doubts[kind].of, v->runs->run[i].source, room, &others);
        hold_against(v, kind, v->runs->run[i].source, &others, &band);
    }
    band.covered_left_out = band.rows ? band.covered_left_out / (double)band.rows : NAN;
    return band;
}

void knee_judge_doubts(struct knee_validation *v, double *room)
{
    for (int kind = 0; kind < KNEE_DOUBTS; kind++)
        v->left_out_doubt[kind] = band_of(v, kind, room);
}

/* ---- What the shipped ones hold ---- */

static bool holds(struct knee_sure band, double value)
{
    return value >= band.low && value <= band.high;
}

static void count(struct knee_run_band *band, bool held)
{
    band->rows++;
    band->covered += held;
}

static void settle(struct knee_run_band *band)
{
    band->covered = band->rows ? band->covered / (double)band->rows : NAN;
}

void knee_count_doubts(struct knee_validation *v)
{
    for (int kind = 0; kind < KNEE_DOUBTS; kind++)
        v->doubt[kind] = (struct knee_run_band){.name = knee_doubts[kind].name,
                                                .low = knee_doubts[kind].low,
                                                .high = knee_doubts[kind].high};
    v->memory_band = (struct knee_run_band){.name = "memory", .low = NAN, .high = NAN};
    for (size_t i = 0; i < v->runs->count; i++) {
        const struct knee_run_result *r = &v->result[i];
        double mfu = mfu_residual(v, i), bytes = v->runs->run[i].memory_bytes;
        int curve = known(v, i) ? KNEE_DOUBT_CURVE : KNEE_DOUBT_CURVE_ASSUMED;
        if (!isnan(r->efficiency.low))
            count(&v->doubt[curve], holds(r->efficiency, r->measured_efficiency));
        if (!isnan(mfu))
            count(&v->doubt[KNEE_DOUBT_MFU], holds(knee_band_mfu(), exp(mfu)));
        if (!isnan(r->memory_error)) {
            count(&v->memory_band, holds(r->bytes, bytes));
            v->memory_band.low = r->bytes.low / r->predicted_bytes;
            v->memory_band.high = r->bytes.high / r->predicted_bytes;
        }
    }
    for (int kind = 0; kind < KNEE_DOUBTS; kind++)
        settle(&v->doubt[kind]);
    settle(&v->memory_band);
}

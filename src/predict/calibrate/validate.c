/* SPDX-License-Identifier: MIT */
/*
 * How well measured runs are predicted: the error of each, of groups of them, and of the efficiency
 * E(K) along jobs that ran at several GPU counts, given the smallest count. Step times are
 * compared, never MFU: sources count FLOPs in different ways.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/order.h"
#include "base/text.h"
#include "predict/calibrate/calibrate.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- Statistics ---- */

struct sample {
    double *value; /* errors; room for one per run */
    size_t count;
};

static void put(struct sample *sample, double error)
{
    if (sample->value && !isnan(error))
        sample->value[sample->count++] = error;
}

static struct knee_run_errors errors_of(struct sample *sample, const char *name)
{
    struct knee_run_errors e = {.name = name, .rows = sample->count};
    double n = (double)sample->count;
    if (sample->count == 0) {
        e.mape = e.median = e.bias = e.within_5 = e.within_10 = NAN;
        return e;
    }
    for (size_t i = 0; i < sample->count; i++) {
        double size = fabs(sample->value[i]);
        e.bias += sample->value[i] / n;
        e.mape += size / n;
        e.within_5 += size <= 0.05 ? 1 / n : 0;
        e.within_10 += size <= 0.10 ? 1 / n : 0;
        sample->value[i] = size;
    }
    e.median = knee_median(sample->value, sample->count);
    return e;
}

/* ---- Groups ---- */

typedef bool belongs(const struct knee_measured_run *run, const char *name);
typedef double error_of(const struct knee_run_result *result);

static double step_error(const struct knee_run_result *result)
{
    return result->error;
}

static double held_out_error(const struct knee_run_result *result)
{
    return result->held_out_error;
}

static double memory_error(const struct knee_run_result *result)
{
    return result->memory_error;
}

static bool any(const struct knee_measured_run *run, const char *name)
{
    (void)run, (void)name;
    return true;
}

static bool is_dense(const struct knee_measured_run *run, const char *name)
{
    (void)name;
    return !(run->shape.experts > 1);
}

static bool has_experts(const struct knee_measured_run *run, const char *name)
{
    return !is_dense(run, name);
}

static bool is_full(const struct knee_measured_run *run, const char *name)
{
    (void)name;
    return run->full_config;
}

static bool is_assumed(const struct knee_measured_run *run, const char *name)
{
    return !is_full(run, name);
}

static bool of_source(const struct knee_measured_run *run, const char *name)
{
    return strcmp(run->source, name) == 0;
}

static bool of_gpu(const struct knee_measured_run *run, const char *name)
{
    return strcmp(run->gpu, name) == 0;
}

static struct knee_run_errors group(const struct knee_validation *v, double *room, belongs *member,
                                    const char *name, error_of *error)
{
    struct sample sample = {.value = room};
    for (size_t i = 0; i < v->runs->count; i++)
        if (member(&v->runs->run[i], name))
            put(&sample, error(&v->result[i]));
    return errors_of(&sample, name);
}

/* The distinct names of one text of the runs, in the order they come; at most KNEE_GROUPS_MAX. */
static size_t distinct(const struct knee_runs *runs, size_t offset, const char **names)
{
    size_t count = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const char *name = (const char *)&runs->run[i] + offset;
        size_t k = 0;
        while (k < count && strcmp(names[k], name) != 0)
            k++;
        if (k == count && count < KNEE_GROUPS_MAX)
            names[count++] = name;
    }
    return count;
}

static void summarise(struct knee_validation *v, double *room)
{
    const char *names[KNEE_GROUPS_MAX] = {0};
    v->all = group(v, room, any, "all", step_error);
    v->dense = group(v, room, is_dense, "dense", step_error);
    v->moe = group(v, room, has_experts, "with experts", step_error);
    v->full_config = group(v, room, is_full, "fully configured", step_error);
    v->assumed = group(v, room, is_assumed, "completed by assumption", step_error);
    v->memory = group(v, room, any, "memory", memory_error);
    v->source_count = distinct(v->runs, offsetof(struct knee_measured_run, source), names);
    for (size_t i = 0; i < v->source_count; i++)
        v->source[i] = group(v, room, of_source, names[i], step_error);
    v->gpu_count = distinct(v->runs, offsetof(struct knee_measured_run, gpu), names);
    for (size_t i = 0; i < v->gpu_count; i++)
        v->gpu[i] = group(v, room, of_gpu, names[i], step_error);
}

static void summarise_held_out(struct knee_validation *v, double *room)
{
    v->held_out_all = group(v, room, any, "all", held_out_error);
    v->held_out_dense = group(v, room, is_dense, "dense", held_out_error);
    v->held_out_moe = group(v, room, has_experts, "with experts", held_out_error);
    for (size_t i = 0; i < v->source_count; i++)
        v->held_out[i] = group(v, room, of_source, v->source[i].name, held_out_error);
    knee_judge_bands(v, room);
    knee_judge_doubts(v, room);
}

/* Room for one error per run: asked for before anything is written. */
static knee_status room_for_errors(const struct knee_validation *v, double **out,
                                   struct knee_err *err)
{
    double *room = knee_resize(v->alloc, NULL, v->runs->count * sizeof *room);
    if (!room)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the results");
    *out = room;
    return KNEE_OK;
}

/* ---- Curves ---- */

static bool on_curve(const struct knee_validation *v, size_t i, const char *name)
{
    const struct knee_measured_run *run = &v->runs->run[i];
    return run->same_job && !isnan(v->result[i].error) && strcmp(run->curve, name) == 0;
}

/* The first run of a curve at its smallest count; SIZE_MAX: none. */
static size_t anchor_of(const struct knee_validation *v, const char *name)
{
    size_t anchor = SIZE_MAX;
    for (size_t i = 0; i < v->runs->count; i++)
        if (on_curve(v, i, name) &&
            (anchor == SIZE_MAX || v->runs->run[i].plan.gpus < v->runs->run[anchor].plan.gpus))
            anchor = i;
    return anchor;
}

static double rate_per_gpu(const struct knee_validation *v, size_t i, enum knee_run_step of)
{
    const struct knee_measured_run *r = &v->runs->run[i];
    const double step_s[] = {[KNEE_RUN_MEASURED] = r->step_s,
                             [KNEE_RUN_PREDICTED] = v->result[i].predicted_s,
                             [KNEE_RUN_HELD_OUT] = v->result[i].held_out_s};
    return r->plan.global_batch * r->shape.seq / r->plan.gpus / step_s[of];
}

double knee_run_efficiency(const struct knee_validation *v, size_t i, size_t anchor,
                           enum knee_run_step of)
{
    return rate_per_gpu(v, i, of) / rate_per_gpu(v, anchor, of);
}

static double efficiency(const struct knee_validation *v, size_t i, size_t anchor, bool measured)
{
    return knee_run_efficiency(v, i, anchor, measured ? KNEE_RUN_MEASURED : KNEE_RUN_PREDICTED);
}

/* A point of a curve, its anchor left out. */
static void follow_point(const struct knee_validation *v, size_t i, size_t anchor)
{
    struct knee_run_result *r = &v->result[i];
    const struct knee_measured_run *run = &v->runs->run[i];
    r->anchor = anchor;
    r->measured_efficiency = efficiency(v, i, anchor, true);
    r->predicted_efficiency = efficiency(v, i, anchor, false);
    struct knee_sure sure =
        knee_band_curve(knee_run_curve_class(run), run->plan.gpus, v->runs->run[anchor].plan.gpus,
                        r->predicted_efficiency);
    r->curve_error = r->predicted_efficiency / r->measured_efficiency - 1;
    r->efficiency =
        (struct knee_sure){sure.low * r->predicted_efficiency, sure.high * r->predicted_efficiency};
}

/* The largest count of the curve up to which efficiency stays at or above the tolerance. */
static double knee_of(const struct knee_validation *v, const char *name, size_t anchor,
                      double tolerance, bool measured)
{
    double first_bad = INFINITY, knee = NAN;
    for (size_t i = 0; i < v->runs->count; i++)
        if (on_curve(v, i, name) && efficiency(v, i, anchor, measured) < tolerance)
            first_bad = fmin(first_bad, v->runs->run[i].plan.gpus);
    for (size_t i = 0; i < v->runs->count; i++)
        if (on_curve(v, i, name) && v->runs->run[i].plan.gpus < first_bad)
            knee = isnan(knee) ? v->runs->run[i].plan.gpus : fmax(knee, v->runs->run[i].plan.gpus);
    return knee;
}

static void follow_curve(struct knee_validation *v, const char *name, double tolerance)
{
    size_t anchor = anchor_of(v, name);
    struct knee_run_curve curve = {.name = name};
    if (anchor == SIZE_MAX)
        return;
    curve.anchor_gpus = v->runs->run[anchor].plan.gpus;
    for (size_t i = 0; i < v->runs->count; i++) {
        if (!on_curve(v, i, name) || v->runs->run[i].plan.gpus == curve.anchor_gpus)
            continue;
        follow_point(v, i, anchor);
        curve.mape += fabs(v->result[i].curve_error);
        curve.rows++;
    }
    if (curve.rows == 0)
        return;
    v->curve_mape += curve.mape;
    v->curve_rows += curve.rows;
    curve.mape /= (double)curve.rows;
    curve.knee_measured = knee_of(v, name, anchor, tolerance, true);
    curve.knee_predicted = knee_of(v, name, anchor, tolerance, false);
    v->curve[v->curve_count++] = curve;
}

static void follow_curves(struct knee_validation *v, double tolerance)
{
    const char *names[KNEE_GROUPS_MAX] = {0};
    size_t count = distinct(v->runs, offsetof(struct knee_measured_run, curve), names);
    for (size_t i = 0; i < count; i++)
        if (names[i][0])
            follow_curve(v, names[i], tolerance);
    v->curve_mape = v->curve_rows ? v->curve_mape / (double)v->curve_rows : NAN;
}

/* ---- All ---- */

static void predict_run(const struct knee_measured_run *run, const struct knee_rates *changes,
                        struct knee_run_result *out)
{
    struct knee_machine machine;
    struct knee_platform platform = run->platform;
    struct knee_plan_cost cost;
    *out = (struct knee_run_result){NAN, NAN, NAN,        NAN,      NAN, NAN, NAN,        NAN, NAN,
                                    NAN, NAN, {NAN, NAN}, SIZE_MAX, NAN, NAN, {NAN, NAN}, 0};
    if (run->skipped[0] || knee_machine_init(&platform, changes, &machine, NULL))
        return;
    out->predicted_s = knee_plan_phase_s(&run->shape, &machine, &run->plan, run->phase);
    out->error = out->predicted_s / run->step_s - 1;
    out->interval_class = (size_t)knee_run_class(run);
    if (run->assumed[0] && machine.basis == KNEE_BASIS_KNOWN)
        machine.basis = KNEE_BASIS_ASSUMED;
    knee_plan_price(&run->shape, &machine, &run->plan, &cost);
    out->low_s = out->predicted_s * cost.low_s / cost.step_s;
    out->high_s = out->predicted_s * cost.high_s / cost.step_s;
    out->predicted_bytes = cost.memory.total;
    out->memory_error = cost.memory.total / run->memory_bytes - 1;
    out->bytes = knee_memory_sure(&cost.memory);
    out->fits = knee_memory_fit(&cost.memory);
}

void knee_validation_release(struct knee_validation *v)
{
    knee_resize(v->alloc, v->result, 0);
    v->result = NULL;
}

static void count_reason(struct knee_validation *v, const char *why)
{
    size_t i = 0;
    while (i < v->reason_count && strcmp(v->reason[i].why, why) != 0)
        i++;
    if (i >= KNEE_RUN_REASONS)
        v->reason[i = KNEE_RUN_REASONS].why = "other reasons";
    else
        v->reason[i].why = why;
    v->reason[i].rows++;
    v->reason_count = i < v->reason_count ? v->reason_count : i + 1;
}

knee_status knee_validate(const struct knee_runs *runs, const struct knee_rates *changes,
                          double tolerance, const struct knee_alloc *alloc,
                          struct knee_validation *out, struct knee_err *err)
{
    struct knee_validation *v = out;
    struct knee_run_result *result = knee_resize(alloc, NULL, runs->count * sizeof *result);
    double *room = knee_resize(alloc, NULL, runs->count * sizeof *room);
    if (!result || !room) {
        knee_resize(alloc, result, 0);
        knee_resize(alloc, room, 0);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the results");
    }
    memset(v, 0, sizeof *v);
    v->runs = runs;
    v->result = result;
    v->alloc = alloc;
    for (size_t i = 0; i < runs->count; i++) {
        const struct knee_measured_run *run = &runs->run[i];
        predict_run(run, changes, &result[i]);
        v->skipped += run->skipped[0] != '\0';
        v->full += run->full_config;
        v->skipped_full += run->full_config && run->skipped[0];
        if (run->skipped[0])
            count_reason(v, run->skipped);
    }
    summarise(v, room);
    follow_curves(v, tolerance);
    knee_count_covered(v);
    knee_count_doubts(v);
    knee_resize(alloc, room, 0);
    if (knee_judge_decisions(v))
        return KNEE_OK;
    knee_validation_release(v);
    return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the results");
}

/* ---- Without the source that is being predicted ---- */

#define ROUNDS 20

static void hold_out(struct knee_validation *v, struct knee_fit *fit, const char *source,
                     double *spread)
{
    knee_fit_reset(fit);
    for (size_t i = 0; i < v->runs->count; i++)
        fit->use[i] = !v->runs->run[i].skipped[0] && !of_source(&v->runs->run[i], source);
    knee_fit_run(fit, ROUNDS);
    knee_fit_spread(fit, spread);
    knee_fit_predict(fit);
    for (size_t i = 0; i < v->runs->count; i++)
        if (of_source(&v->runs->run[i], source)) {
            v->result[i].held_out_s = fit->predicted_s[i];
            v->result[i].held_out_error = fit->predicted_s[i] / v->runs->run[i].step_s - 1;
            v->result[i].held_out_spread = spread ? spread[i] : NAN;
        }
}

knee_status knee_cross_validate(struct knee_validation *v, size_t part, size_t parts,
                                bool (*progress)(void *ctx, double share), void *ctx,
                                struct knee_err *err)
{
    struct knee_fit fit;
    double *room = NULL;
    knee_status status = room_for_errors(v, &room, err);
    if (!status)
        status = knee_fit_init(&fit, v->runs, KNEE_FIT_SHIPPED, v->alloc, err);
    if (status) {
        knee_resize(v->alloc, room, 0);
        return status;
    }
    for (size_t i = part; i < v->source_count; i += parts) {
        if (progress && !progress(ctx, (double)i / (double)v->source_count))
            break;
        hold_out(v, &fit, v->source[i].name, room);
    }
    knee_fit_release(&fit);
    summarise_held_out(v, room);
    knee_resize(v->alloc, room, 0);
    return KNEE_OK;
}

knee_status knee_cross_validate_merge(struct knee_validation *v,
                                      const struct knee_run_result *results, size_t parts,
                                      struct knee_err *err)
{
    double *room = NULL;
    knee_status status = room_for_errors(v, &room, err);
    if (status)
        return status;
    for (size_t i = 0; i < parts * v->runs->count; i++)
        if (!isnan(results[i].held_out_s)) {
            struct knee_run_result *mine = &v->result[i % v->runs->count];
            mine->held_out_s = results[i].held_out_s;
            mine->held_out_error = results[i].held_out_error;
            mine->held_out_spread = results[i].held_out_spread;
        }
    summarise_held_out(v, room);
    knee_resize(v->alloc, room, 0);
    return KNEE_OK;
}

/* ---- Why a source is far off ---- */

typedef bool alike(const struct knee_measured_run *a, const struct knee_measured_run *b);
typedef const char *name_of(const struct knee_measured_run *run);

static bool same_profile(const struct knee_measured_run *a, const struct knee_measured_run *b)
{
    return a->platform.profile == b->platform.profile;
}

static const char *profile_of(const struct knee_measured_run *run)
{
    return knee_profile_at((size_t)run->platform.profile)->name;
}

static bool same_gpu(const struct knee_measured_run *a, const struct knee_measured_run *b)
{
    return a->platform.hw.gpu == b->platform.hw.gpu;
}

static const char *gpu_of(const struct knee_measured_run *run)
{
    return run->gpu;
}

static bool same_precision(const struct knee_measured_run *a, const struct knee_measured_run *b)
{
    return a->plan.precision == b->plan.precision;
}

static const char *precision_of(const struct knee_measured_run *run)
{
    return knee_precision_names.name((size_t)run->plan.precision);
}

static bool same_kind(const struct knee_measured_run *a, const struct knee_measured_run *b)
{
    return has_experts(a, "") == has_experts(b, "");
}

static const char *kind_of(const struct knee_measured_run *run)
{
    return has_experts(run, "") ? "experts" : "no experts";
}

static const struct {
    const char *what;
    alike *same;
    name_of *name;
} traits[] = {
    {"software", same_profile, profile_of},
    {"GPU", same_gpu, gpu_of},
    {"precision", same_precision, precision_of},
    {"kind of model", same_kind, kind_of},
};

static bool far_off(const struct knee_validation *v, size_t i, const char *source)
{
    return of_source(&v->runs->run[i], source) && fabs(v->result[i].held_out_error) > KNEE_FAR_OFF;
}

/* A run like this one is in another source. */
static bool elsewhere(const struct knee_validation *v, const struct knee_measured_run *run,
                      alike *same)
{
    for (size_t i = 0; i < v->runs->count; i++) {
        const struct knee_measured_run *other = &v->runs->run[i];
        if (!other->skipped[0] && !of_source(other, run->source) && same(run, other))
            return true;
    }
    return false;
}

bool knee_held_out_reason(const struct knee_validation *v, size_t source,
                          char out[2 * KNEE_RUN_TEXT])
{
    const struct knee_run_errors *errors = &v->held_out[source];
    size_t most = 0, far = 0;
    if (errors->rows == 0 || !(errors->mape > KNEE_FAR_OFF))
        return false;
    for (size_t i = 0; i < v->runs->count; i++)
        far += far_off(v, i, errors->name);
    knee_format(out, 2 * KNEE_RUN_TEXT,
                "%zu of %zu rows; nothing about them is new: no reason known", far, errors->rows);
    for (size_t t = 0; t < sizeof traits / sizeof *traits; t++) {
        size_t alone = 0;
        const char *name = "";
        for (size_t i = 0; i < v->runs->count; i++)
            if (far_off(v, i, errors->name) && !elsewhere(v, &v->runs->run[i], traits[t].same)) {
                alone++;
                name = traits[t].name(&v->runs->run[i]);
            }
        if (alone > most)
            knee_format(out, 2 * KNEE_RUN_TEXT,
                        "%zu of %zu rows; the %s of %zu of them (%.60s) is in no other source", far,
                        errors->rows, traits[t].what, alone, name);
        most = alone > most ? alone : most;
    }
    return true;
}

/* ---- The user's profile ---- */

/* The platform that most runs have: the fitted factors are applied to its constants. */
static size_t most_common(const struct knee_runs *runs)
{
    size_t best = SIZE_MAX, most = 0;
    for (size_t i = 0; i < runs->count; i++) {
        size_t same = 0;
        for (size_t k = 0; k < runs->count; k++)
            same += !runs->run[k].skipped[0] &&
                    runs->run[k].platform.hw.gpu == runs->run[i].platform.hw.gpu &&
                    runs->run[k].platform.profile == runs->run[i].platform.profile;
        if (!runs->run[i].skipped[0] && same > most) {
            most = same;
            best = i;
        }
    }
    return best;
}

knee_status knee_calibrate(const struct knee_runs *runs, const struct knee_alloc *alloc,
                           struct knee_rates *out, struct knee_platform *platform,
                           struct knee_err *err)
{
    struct knee_fit fit;
    struct knee_machine machine;
    size_t common = most_common(runs);
    if (common == SIZE_MAX) {
        knee_fail(err, KNEE_INPUT, "", "no row can be expressed, so there is nothing to fit");
        knee_hint(err, "knee validate without --calibrate says why for each row");
        return KNEE_INPUT;
    }
    struct knee_platform found = runs->run[common].platform;
    knee_status status = knee_machine_init(&found, NULL, &machine, err);
    if (!status)
        status = knee_fit_init(&fit, runs, KNEE_FIT_OWN, alloc, err);
    if (status)
        return status;
    knee_fit_run(&fit, 60);
    struct knee_rates rates;
    memset(&rates, 0, sizeof rates);
    knee_keys_clear(&knee_rates_keys, &rates);
    size_t offset;
    for (size_t i = 0; (offset = knee_own_constant(i)) != SIZE_MAX; i++)
        *(double *)(void *)((char *)&rates + offset) =
            *(const double *)(const void *)((const char *)&machine.rates + offset) *
            fit.values[knee_constants_count + i];
    knee_fit_release(&fit);
    *out = rates;
    *platform = found;
    return KNEE_OK;
}

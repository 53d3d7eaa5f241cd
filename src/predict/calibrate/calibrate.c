/* SPDX-License-Identifier: MIT */
/*
 * Fitting the constants. What is made small is, over the runs that count,
 *
 *   sum of huber(log(predicted / measured)) + sum over constants of (log(value / prior) / sigma)^2
 * / 20
 *
 * Constants are few and each belongs to hardware or software, never to a run; a constant that the
 * runs do not tell about stays at its prior, which for a profile is what it inherits. The Huber
 * loss is quadratic below a few percent and linear above, so that a run that went wrong does not
 * bend the others. Solved by Levenberg-Marquardt on logarithms with numeric derivatives; a constant
 * is only tried on runs whose GPU or profile has it.
 */
#include "predict/calibrate/calibrate.h"

#include "base/error.h"
#include "base/keys.h"
#include "base/order.h"
#include "base/text.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define HUBER      0.06
#define PRIOR_PULL 0.05 /* weight of the squared distance from a prior */
#define NUDGE      0.01 /* of the logarithm, for derivatives */
#define LONGEST    0.5  /* change of a logarithm in one round */

/* ---- Predicting a run with given values ---- */

static const char *gpu_name(const struct knee_measured_run *run)
{
    return run->platform.hw.gpu >= 0 ? knee_gpu_at((size_t)run->platform.hw.gpu)->name : "";
}

static double predict(const struct knee_fit *fit, size_t i)
{
    const struct knee_measured_run *run = &fit->runs->run[i];
    struct knee_machine *machine = &fit->machine[i];
    knee_rates_resolve(&fit->recipe[i], fit->values, &machine->rates);
    return knee_plan_phase_s(&run->shape, machine, &run->plan, run->phase);
}

static bool concerns(const struct knee_fit *fit, size_t constant, size_t i)
{
    const struct knee_recipe *recipe = &fit->recipe[i];
    for (size_t k = 0; k < recipe->count; k++)
        if (recipe->step[k].constant == constant)
            return true;
    return false;
}

void knee_fit_predict(struct knee_fit *fit)
{
    for (size_t i = 0; i < fit->runs->count; i++) {
        const struct knee_measured_run *run = &fit->runs->run[i];
        fit->predicted_s[i] = run->skipped[0] ? NAN : predict(fit, i);
        fit->log_error[i] = log(fit->predicted_s[i] / run->step_s);
    }
}

/* ---- Beginning and end ---- */

void knee_fit_release(struct knee_fit *fit)
{
    knee_resize(fit->alloc, fit->memory, 0);
    fit->memory = NULL;
}

/* What a user's own rows can tell, and how far it may move. */
static const struct {
    size_t offset;
    double sigma;
} own[] = {
    {offsetof(struct knee_rates, gemm), 0.3},
    {offsetof(struct knee_rates, flash), 0.3},
    {offsetof(struct knee_rates, elementwise), 0.4},
    {offsetof(struct knee_rates, tp_exposed), 0.5},
    {offsetof(struct knee_rates, dp_exposed), 0.5},
    {offsetof(struct knee_rates, shard_rate), 0.5},
    {offsetof(struct knee_rates, expert_gemm), 0.4},
    {offsetof(struct knee_rates, expert_sync_s), 0.5},
    {offsetof(struct knee_rates, gap_s), 1},
    {offsetof(struct knee_rates, step_s), 1},
};
#define OWN (sizeof own / sizeof *own)

size_t knee_own_constant(size_t i)
{
    return i < OWN ? own[i].offset : SIZE_MAX;
}

static size_t count_fitted(enum knee_fit_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < knee_constants_count; i++)
        n += isnan(knee_constants[i].sigma) ? 0 : 1;
    return kind == KNEE_FIT_OWN ? OWN : n;
}

/* All arrays in one piece of memory. */
static bool allocate(struct knee_fit *fit)
{
    size_t runs = fit->runs->count, n = fit->fitted_count, total = 0;
    const struct {
        void *field; /* the address of a pointer of any type */
        size_t size;
    } parts[] = {
        {&fit->values, (knee_constants_count + OWN) * sizeof(double)},
        {&fit->fitted, n * sizeof *fit->fitted},
        {&fit->use, runs * sizeof(bool)},
        {&fit->log_error, runs * sizeof(double)},
        {&fit->predicted_s, runs * sizeof(double)},
        {&fit->machine, runs * sizeof *fit->machine},
        {&fit->recipe, runs * sizeof *fit->recipe},
        {&fit->jacobian, runs * n * sizeof(double)},
        {&fit->normal, n * (n + 1) * sizeof(double)},
        {&fit->kept, n * sizeof(double)},
        {&fit->open, n * (n + 1) * sizeof(double)},
    };
    enum { PARTS = sizeof parts / sizeof *parts };
    size_t at[PARTS];
    for (size_t i = 0; i < PARTS; i++) {
        at[i] = total;
        total += (parts[i].size + 15) / 16 * 16;
    }
    fit->memory = knee_resize(fit->alloc, NULL, total);
    for (size_t i = 0; i < PARTS && fit->memory; i++)
        memcpy(parts[i].field, &(char *){fit->memory + at[i]}, sizeof(char *));
    return fit->memory;
}

static void list_fitted(struct knee_fit *fit, enum knee_fit_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < knee_constants_count; i++) {
        fit->values[i] = knee_constants[i].value;
        if (kind == KNEE_FIT_SHIPPED && !isnan(knee_constants[i].sigma))
            fit->fitted[n++] =
                (struct knee_fit_constant){i, knee_constants[i].prior, knee_constants[i].sigma};
    }
    for (size_t i = 0; i < OWN; i++) {
        size_t at = knee_constants_count + i;
        fit->values[at] = 1;
        if (kind == KNEE_FIT_OWN)
            fit->fitted[n++] = (struct knee_fit_constant){at, 1, own[i].sigma};
    }
}

void knee_fit_reset(struct knee_fit *fit)
{
    for (size_t j = 0; j < fit->fitted_count; j++)
        fit->values[fit->fitted[j].value] = fit->fitted[j].prior;
}

/* The recipe of a run's constants, own factors last. */
static void prepare_run(struct knee_fit *fit, size_t i, struct knee_err *err)
{
    const struct knee_measured_run *run = &fit->runs->run[i];
    struct knee_platform platform = run->platform;
    struct knee_recipe *recipe = &fit->recipe[i];
    memset(&fit->machine[i], 0, sizeof fit->machine[i]);
    fit->use[i] = !run->skipped[0] && !knee_machine_init(&platform, NULL, &fit->machine[i], err);
    knee_recipe_init(gpu_name(run), platform.profile, recipe);
    for (size_t k = 0; k < OWN && recipe->count < KNEE_RECIPE_MAX; k++) {
        recipe->step[recipe->count].constant = (unsigned short)(knee_constants_count + k);
        recipe->step[recipe->count].offset = (unsigned short)own[k].offset;
        recipe->step[recipe->count].times = true;
        recipe->step[recipe->count].power = 1;
        recipe->count++;
    }
}

knee_status knee_fit_init(struct knee_fit *out, const struct knee_runs *runs,
                          enum knee_fit_kind kind, const struct knee_alloc *alloc,
                          struct knee_err *err)
{
    struct knee_fit fit = {.runs = runs, .alloc = alloc, .fitted_count = count_fitted(kind)};
    if (!allocate(&fit)) {
        knee_fit_release(&fit);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for a fit");
    }
    list_fitted(&fit, kind);
    knee_fit_reset(&fit);
    for (size_t i = 0; i < runs->count; i++)
        prepare_run(&fit, i, err);
    *out = fit;
    return KNEE_OK;
}

/* ---- The fit ---- */

static double huber(double e)
{
    e = fabs(e);
    return e < HUBER ? e * e / (2 * HUBER) : e - HUBER / 2;
}

static double distance(const struct knee_fit *fit, size_t j)
{
    const struct knee_fit_constant *c = &fit->fitted[j];
    return log(fit->values[c->value] / c->prior) / c->sigma;
}

static double loss_of(struct knee_fit *fit)
{
    double sum = 0;
    for (size_t i = 0; i < fit->runs->count; i++)
        if (fit->use[i]) {
            fit->predicted_s[i] = predict(fit, i);
            fit->log_error[i] = log(fit->predicted_s[i] / fit->runs->run[i].step_s);
            sum += fit->runs->run[i].weight * huber(fit->log_error[i]);
        }
    for (size_t j = 0; j < fit->fitted_count; j++)
        sum += PRIOR_PULL * distance(fit, j) * distance(fit, j);
    return sum;
}

/* Of the runs that count, or with `others` of those that do not. */
static void differentiate(struct knee_fit *fit, bool others)
{
    size_t n = fit->fitted_count;
    for (size_t j = 0; j < n; j++) {
        double *value = &fit->values[fit->fitted[j].value], kept = *value;
        *value = kept * exp(NUDGE);
        for (size_t i = 0; i < fit->runs->count; i++) {
            bool mine = !fit->runs->run[i].skipped[0] && fit->use[i] != others;
            if (mine && concerns(fit, fit->fitted[j].value, i))
                fit->jacobian[i * n + j] = log(predict(fit, i) / fit->predicted_s[i]) / NUDGE;
            else
                fit->jacobian[i * n + j] = 0;
        }
        *value = kept;
    }
}

/* Normal equations, damped by `damping`; the right side stands in the last column. */
static void assemble(struct knee_fit *fit, double damping)
{
    size_t n = fit->fitted_count, wide = n + 1;
    memset(fit->normal, 0, n * wide * sizeof(double));
    for (size_t i = 0; i < fit->runs->count; i++) {
        if (!fit->use[i])
            continue;
        const double *row = &fit->jacobian[i * n];
        double weight = fit->runs->run[i].weight / fmax(HUBER, fabs(fit->log_error[i]));
        for (size_t j = 0; j < n; j++) {
            if (row[j] == 0)
                continue;
            fit->normal[j * wide + n] -= weight * row[j] * fit->log_error[i];
            for (size_t k = 0; k < n; k++)
                fit->normal[j * wide + k] += weight * row[j] * row[k];
        }
    }
    for (size_t j = 0; j < n; j++) {
        double sigma = fit->fitted[j].sigma;
        double pull = 2 * PRIOR_PULL / (sigma * sigma);
        fit->normal[j * wide + n] -= pull * sigma * distance(fit, j);
        fit->normal[j * wide + j] = (fit->normal[j * wide + j] + pull) * (1 + damping) + 1e-9;
    }
}

/* Gaussian elimination with pivots; false: singular. The solution replaces the last column. */
static bool solve(double *a, size_t n)
{
    size_t wide = n + 1;
    for (size_t i = 0; i < n; i++) {
        size_t pivot = i;
        for (size_t j = i + 1; j < n; j++)
            if (fabs(a[j * wide + i]) > fabs(a[pivot * wide + i]))
                pivot = j;
        if (fabs(a[pivot * wide + i]) < 1e-300)
            return false;
        for (size_t k = 0; pivot != i && k < wide; k++) {
            double t = a[i * wide + k];
            a[i * wide + k] = a[pivot * wide + k];
            a[pivot * wide + k] = t;
        }
        for (size_t j = i + 1; j < n; j++) {
            double factor = a[j * wide + i] / a[i * wide + i];
            for (size_t k = i; factor != 0 && k < wide; k++)
                a[j * wide + k] -= factor * a[i * wide + k];
        }
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            a[i * wide + n] -= a[i * wide + k] * a[k * wide + n];
        a[i * wide + n] /= a[i * wide + i];
    }
    return true;
}

/* One round: tries steps of growing caution until one makes the loss smaller. */
static bool improve(struct knee_fit *fit, double *damping)
{
    size_t n = fit->fitted_count;
    differentiate(fit, false);
    for (int tries = 0; tries < 8; tries++, *damping *= 4) {
        assemble(fit, *damping);
        if (!solve(fit->normal, n))
            continue;
        for (size_t j = 0; j < n; j++) {
            double change = fmin(LONGEST, fmax(-LONGEST, fit->normal[j * (n + 1) + n]));
            fit->kept[j] = fit->values[fit->fitted[j].value];
            fit->values[fit->fitted[j].value] *= exp(change);
        }
        double loss = loss_of(fit);
        if (loss < fit->loss) {
            bool enough = fit->loss - loss < 1e-4 * loss;
            fit->loss = loss;
            *damping *= 0.3;
            return !enough;
        }
        for (size_t j = 0; j < n; j++)
            fit->values[fit->fitted[j].value] = fit->kept[j];
    }
    loss_of(fit); /* the errors of the values that were kept */
    return false;
}

/* ---- How much a fit leaves open ---- */

/* Median of what the fit misses of the runs that count; uses up `room`, one place per run. */
static double usual_miss(const struct knee_fit *fit, double *room)
{
    size_t count = 0;
    for (size_t i = 0; i < fit->runs->count; i++)
        if (fit->use[i])
            room[count++] = fabs(fit->log_error[i]);
    return count ? knee_median(room, count) : 0;
}

/* Variance of a run's logarithm: its derivatives with the inverse of the second derivatives of the
 * loss between them. */
static double open_variance(struct knee_fit *fit, size_t run)
{
    size_t n = fit->fitted_count, wide = n + 1;
    const double *row = &fit->jacobian[run * n];
    double sum = 0;
    memcpy(fit->open, fit->normal, n * wide * sizeof *fit->open);
    for (size_t j = 0; j < n; j++)
        fit->open[j * wide + n] = row[j];
    if (!solve(fit->open, n))
        return 0;
    for (size_t j = 0; j < n; j++)
        sum += row[j] * fit->open[j * wide + n];
    return 2 * PRIOR_PULL * sum;
}

void knee_fit_spread(struct knee_fit *fit, double *spread)
{
    double miss;
    loss_of(fit);
    miss = usual_miss(fit, spread);
    knee_fit_predict(fit);
    differentiate(fit, false);
    assemble(fit, 0);
    differentiate(fit, true);
    for (size_t i = 0; i < fit->runs->count; i++)
        spread[i] = fit->use[i] || fit->runs->run[i].skipped[0]
                        ? NAN
                        : sqrt(miss * miss + open_variance(fit, i));
}

void knee_fit_run(struct knee_fit *fit, int most)
{
    double damping = 1;
    fit->loss = loss_of(fit);
    for (int round = 0; round < most && improve(fit, &damping); round++)
        ;
}

/* SPDX-License-Identifier: MIT */
/*
 * The critical batch from losses of runs at several batch sizes. A loss that all runs reach takes
 * each of them so many samples; over the batch these lie on a straight line, whose slope is the
 * fewest steps and whose height over the slope is the critical batch. Several losses give its
 * spread. Losses of single steps are smoothed; evaluation losses are taken as they are.
 */
#include "knee_scale.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define WINDOW 0.05 /* of a run's rows that are averaged */
#define VAGUE  10   /* highest over lowest critical batch that still says something */
#define BEHIND 0.01 /* a loss behind by less is not worth a word */

static double loss_at(const struct knee_batch_run *run, size_t i, bool evaluation)
{
    return evaluation ? run->rows[i].eval_loss : run->rows[i].loss;
}

static size_t losses(const struct knee_batch_run *run, bool evaluation)
{
    size_t count = 0;
    for (size_t i = 0; i < run->row_count; i++)
        if (isfinite(loss_at(run, i, evaluation)) && run->rows[i].samples > 0)
            count++;
    return count;
}

/* A run as samples and smoothed losses; `sample` and `loss` lie in the caller's room. */
struct descent {
    double batch;
    double *sample, *loss;
    size_t count;
    double noise; /* of a smoothed loss, a share */
};

/* Of at least three losses: see knee_batch_fit(). */
static void smooth(const struct knee_batch_run *run, bool evaluation, struct descent *out)
{
    size_t count = 0, all = losses(run, evaluation);
    size_t window = evaluation ? 1 : (size_t)fmax(1, WINDOW * (double)all);
    double sum = 0, squares = 0;
    out->batch = run->batch;
    for (size_t i = 0; i < run->row_count; i++) {
        double loss = loss_at(run, i, evaluation);
        if (!isfinite(loss) || !(run->rows[i].samples > 0))
            continue;
        out->sample[count] = run->rows[i].samples;
        out->loss[count++] = loss;
    }
    /* Neighbours differ by noise more than by progress: their differences give it. */
    for (size_t i = 1; i < count; i++)
        squares += (out->loss[i] - out->loss[i - 1]) * (out->loss[i] - out->loss[i - 1]) / 2;
    double last = out->loss[count - 1];
    out->noise = evaluation ? 0 : sqrt(squares / (double)(count - 1) / (double)window) / fabs(last);
    size_t kept = 0; /* means over the last `window` rows, kept where a window is full */
    for (size_t i = 0; i < count; i++) {
        sum += out->loss[i];
        if (i + 1 < window)
            continue;
        double mean = sum / (double)window, middle = out->sample[i + 1 - (window + 1) / 2];
        sum -= out->loss[i + 1 - window];
        out->loss[kept] = mean;
        out->sample[kept++] = middle;
    }
    out->count = kept;
}

/* Samples until the loss is first at or below `target`; NaN: never. */
static double samples_to(const struct descent *d, double target)
{
    for (size_t i = 0; i < d->count; i++) {
        if (d->loss[i] > target)
            continue;
        if (i == 0)
            return NAN; /* there from the start: says nothing */
        double step = (d->loss[i - 1] - target) / (d->loss[i - 1] - d->loss[i]);
        return d->sample[i - 1] + step * (d->sample[i] - d->sample[i - 1]);
    }
    return NAN;
}

/* `samples` at most its last. */
static double loss_after(const struct descent *d, double samples)
{
    size_t i = 0;
    while (i + 1 < d->count && d->sample[i] < samples)
        i++;
    return d->loss[i];
}

static double lowest(const struct descent *d)
{
    double least = INFINITY;
    for (size_t i = 0; i < d->count; i++)
        least = fmin(least, d->loss[i]);
    return least;
}

/* samples = S_min B + S_min B_crit for one loss, each run weighed by its own samples. */
static bool line(const struct descent *runs, size_t count, double target, double *critical,
                 double *steps)
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t i = 0; i < count; i++) {
        double y = samples_to(&runs[i], target), x = runs[i].batch, w = 1 / (y * y);
        if (isnan(y))
            return false;
        n += w, sx += w * x, sy += w * y, sxx += w * x * x, sxy += w * x * y;
    }
    double spread = n * sxx - sx * sx;
    double slope = (n * sxy - sx * sy) / spread, height = (sy - slope * sx) / n;
    if (!(slope > 0) || !(height > 0))
        return false;
    *critical = height / slope;
    *steps = slope;
    return true;
}

static void fit_losses(const struct descent *runs, size_t count, struct knee_batch_fit *out)
{
    double reach = -INFINITY, start = INFINITY;
    for (size_t i = 0; i < count; i++) {
        reach = fmax(reach, lowest(&runs[i]));
        start = fmin(start, runs[i].loss[0]);
    }
    for (size_t t = 0; t < KNEE_BATCH_LOSSES; t++) { /* from the lowest common loss half way up */
        double target = reach + 0.5 * (start - reach) * (double)t / KNEE_BATCH_LOSSES, steps;
        if (!line(runs, count, target, &out->critical_at[out->losses], &steps))
            continue;
        if (out->losses == 0) {
            out->loss = target;
            out->min_steps = steps;
        }
        out->at_loss[out->losses++] = target;
    }
    if (out->losses < 2)
        return;
    double sum = 0, low = INFINITY, high = 0;
    for (size_t i = 0; i < out->losses; i++) {
        sum += log(out->critical_at[i]);
        low = fmin(low, out->critical_at[i]);
        high = fmax(high, out->critical_at[i]);
    }
    if (high > VAGUE * low) /* the losses contradict each other: no fit is better than that */
        return;
    out->critical = exp(sum / (double)out->losses);
    out->low = low;
    out->high = high;
}

static void compare(const struct descent *runs, size_t count, struct knee_batch_fit *out)
{
    const struct descent *small = &runs[0], *large = &runs[0];
    double equal = INFINITY;
    for (size_t i = 0; i < count; i++) {
        small = runs[i].batch < small->batch ? &runs[i] : small;
        large = runs[i].batch > large->batch ? &runs[i] : large;
        equal = fmin(equal, runs[i].sample[runs[i].count - 1]);
    }
    out->equal_samples = equal;
    out->small_batch = small->batch;
    out->large_batch = large->batch;
    out->small_loss = loss_after(small, equal);
    out->large_loss = loss_after(large, equal);
    out->loss_noise = fmax(small->noise, large->noise);
    double off = out->large_loss / out->small_loss - 1;
    out->behind = off > fmax(BEHIND, 3 * out->loss_noise);
}

void knee_batch_fit(const struct knee_batch_run *runs, size_t count, double *room,
                    struct knee_batch_fit *out)
{
    struct descent descents[KNEE_BATCH_RUNS] = {{0}};
    size_t used = 0;
    bool evaluation = count > 0, distinct = false;
    *out = (struct knee_batch_fit){.critical = NAN, .low = NAN, .high = NAN, .min_steps = NAN};
    for (size_t i = 0; i < count; i++)
        evaluation = evaluation && losses(&runs[i], true) >= 3;
    for (size_t i = 0; i < count && used < KNEE_BATCH_RUNS; i++) {
        size_t rows = losses(&runs[i], evaluation);
        if (rows < 3 || !(runs[i].batch > 0))
            continue;
        descents[used].sample = room;
        descents[used].loss = room + rows;
        room += 2 * rows;
        smooth(&runs[i], evaluation, &descents[used++]);
    }
    for (size_t i = 1; i < used; i++)
        distinct = distinct || descents[i].batch != descents[0].batch;
    out->runs = used;
    out->by_evaluation = evaluation;
    if (used < 2 || !distinct)
        return;
    compare(descents, used, out);
    fit_losses(descents, used, out);
}

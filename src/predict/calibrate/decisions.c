/* SPDX-License-Identifier: MIT */
/*
 * Were the decisions right? Runs of one job (model, batch, precision, GPUs, software) under several
 * plans: what it costs to take the plan that is predicted to be the fastest, or to time the first
 * three of them, against the fastest that was measured; and how many pairs of plans are in the
 * right order. And memory: whether runs that ran are predicted to fit.
 */
#include "base/text.h"
#include "predict/calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define APART     0.05 /* plans measured closer than this are not asked about */
#define CLOSE     0.3  /* pairs whose ratio is asked about */
#define NEAR      0.03 /* of the best: as good */
#define MAY_FIT   0.1  /* probability below which the answer is "does not fit" */
#define PLANS_MAX 1000 /* of one job that are compared in pairs */

static bool counts(const struct knee_validation *v, size_t i)
{
    return !isnan(v->result[i].error) && v->runs->run[i].phase == KNEE_PHASE_STEP;
}

static int order(double a, double b)
{
    return (a > b) - (a < b);
}

/* By job; within a job as predicted, fastest first, of those the one that takes less memory. */
static int by_job(const struct knee_measured_run *a, const struct knee_measured_run *b)
{
    const double numbers[][2] = {
        {a->plan.gpus, b->plan.gpus},           {a->plan.global_batch, b->plan.global_batch},
        {a->shape.seq, b->shape.seq},           {a->shape.layers, b->shape.layers},
        {a->plan.precision, b->plan.precision}, {a->platform.profile, b->platform.profile},
    };
    int found = strcmp(a->source, b->source);
    found = found ? found : strcmp(a->model, b->model);
    found = found ? found : strcmp(a->gpu, b->gpu);
    for (size_t i = 0; !found && i < sizeof numbers / sizeof *numbers; i++)
        found = order(numbers[i][0], numbers[i][1]);
    return found;
}

struct plan_run {
    const struct knee_measured_run *run;
    double predicted_s, bytes, measured_s;
};

static int compare(const void *a, const void *b)
{
    const struct plan_run *x = a, *y = b;
    int found = by_job(x->run, y->run);
    found = found ? found : order(x->predicted_s, y->predicted_s);
    found = found ? found : order(x->bytes, y->bytes);
    return found ? found : (x->run > y->run) - (x->run < y->run);
}

/* How often errors of each size were seen, in steps of STEP: enough for a median. */
#define STEP  0.001
#define STEPS 512
struct spread {
    size_t seen[STEPS], count;
};

static void note(struct spread *spread, double error)
{
    spread->seen[(size_t)fmin(STEPS - 1, error / STEP)]++;
    spread->count++;
}

static double middle(const struct spread *spread)
{
    size_t below = 0, i = 0;
    while (i < STEPS && 2 * (below += spread->seen[i]) < spread->count)
        i++;
    return spread->count ? ((double)i + 0.5) * STEP : NAN;
}

/* Pairs of a job that were measured apart, and how many of them are predicted in that order. */
static void count_pairs(const struct plan_run *job, size_t plans, struct spread *close,
                        struct knee_run_decisions *sum)
{
    size_t most = plans < PLANS_MAX ? plans : PLANS_MAX;
    for (size_t i = 0; i < most; i++)
        for (size_t k = i + 1; k < most; k++) {
            double apart = job[k].measured_s / job[i].measured_s;
            if (fmax(apart, 1 / apart) < 1 + CLOSE) {
                note(close, fabs(log(job[k].predicted_s / job[i].predicted_s / apart)));
            }
            if (fmax(apart, 1 / apart) < 1 + APART)
                continue;
            sum->pairs++;
            sum->pairs_right += apart > 1; /* the first is predicted to be faster */
        }
}

static void judge_job(const struct plan_run *job, size_t plans, struct spread *close,
                      struct knee_run_decisions *sum)
{
    double best = INFINITY, three = INFINITY, mean = 0;
    for (size_t i = 0; i < plans; i++) {
        best = fmin(best, job[i].measured_s);
        mean += job[i].measured_s / (double)plans;
        if (i < 3)
            three = fmin(three, job[i].measured_s);
    }
    sum->jobs++;
    sum->regret += job[0].measured_s / best - 1;
    sum->regret_of_three += three / best - 1;
    sum->regret_of_any += mean / best - 1;
    sum->near_best += three <= (1 + NEAR) * best;
    count_pairs(job, plans, close, sum);
}

static void finish(struct knee_run_decisions *sum)
{
    double jobs = (double)sum->jobs;
    double *means[] = {&sum->regret, &sum->regret_of_three, &sum->regret_of_any, &sum->near_best};
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        *means[i] = sum->jobs ? *means[i] / jobs : NAN;
    sum->pairs_right = sum->pairs ? sum->pairs_right / (double)sum->pairs : NAN;
}

static void judge_memory(const struct knee_validation *v, struct knee_run_room *out)
{
    struct knee_run_room room = {0};
    for (size_t i = 0; i < v->runs->count; i++) {
        const struct knee_run_result *r = &v->result[i];
        if (!counts(v, i))
            continue;
        room.ran++;
        room.fits += r->fits >= MAY_FIT;
        room.measured += isnan(r->memory_error) ? 0 : 1;
        room.beyond += 1 / (1 + r->memory_error) > 1 + APART;
    }
    room.fits = room.ran ? room.fits / (double)room.ran : NAN;
    room.beyond = room.measured ? room.beyond / (double)room.measured : NAN;
    *out = room;
}

/* A plan that was run several times counts once, with its mean time. */
static size_t merge_repeats(struct plan_run *plans, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0, next; i < count; i = next) {
        struct plan_run one = plans[i];
        double sum = 0;
        for (next = i; next < count && by_job(one.run, plans[next].run) == 0 &&
                       order(one.predicted_s, plans[next].predicted_s) == 0 &&
                       order(one.bytes, plans[next].bytes) == 0;)
            sum += plans[next++].measured_s;
        one.measured_s = sum / (double)(next - i);
        plans[kept++] = one;
    }
    return kept;
}

bool knee_judge_decisions(struct knee_validation *v)
{
    struct plan_run *plans = knee_resize(v->alloc, NULL, v->runs->count * sizeof *plans);
    struct knee_run_decisions sum = {0};
    size_t count = 0;
    struct spread close = {0};
    if (!plans)
        return false;
    for (size_t i = 0; i < v->runs->count; i++)
        if (counts(v, i))
            plans[count++] =
                (struct plan_run){&v->runs->run[i], v->result[i].predicted_s,
                                  v->result[i].predicted_bytes, v->runs->run[i].step_s};
    qsort(plans, count, sizeof *plans, compare);
    count = merge_repeats(plans, count);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && by_job(plans[i].run, plans[next].run) == 0;)
            next++;
        if (next - i > 1)
            judge_job(&plans[i], next - i, &close, &sum);
    }
    knee_resize(v->alloc, plans, 0);
    sum.pair_error = middle(&close);
    finish(&sum);
    v->decisions = sum;
    judge_memory(v, &v->room);
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * Were the decisions right? Runs of one job (model, batch, precision, GPUs, software) under several
 * plans: what it costs to take the plan that is predicted to be the fastest, or to time the first
 * three of them, against the fastest that was measured; and how many pairs of plans are in the
 * right order. And memory: whether runs that ran are said to fit.
 */
#include "base/text.h"
#include "predict/calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define APART     0.05 /* plans measured closer than this are not asked about */
#define NEAR      0.03 /* of the best: as good */
#define PLANS_MAX 1000 /* of one job that are compared in pairs */

static bool counts(const struct knee_validation *v, size_t i)
{
    return !isnan(v->result[i].error) && v->runs->run[i].phase == KNEE_PHASE_STEP;
}

static int order(double a, double b)
{
    return (a > b) - (a < b);
}

/* By job; within a job as predicted, fastest first. */
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
    double predicted_s;
};

static int compare(const void *a, const void *b)
{
    const struct plan_run *x = a, *y = b;
    int found = by_job(x->run, y->run);
    found = found ? found : order(x->predicted_s, y->predicted_s);
    return found ? found : (x->run > y->run) - (x->run < y->run);
}

/* Pairs of a job that were measured apart, and how many of them are predicted in that order. */
static void count_pairs(const struct plan_run *job, size_t plans, struct knee_run_decisions *sum)
{
    size_t most = plans < PLANS_MAX ? plans : PLANS_MAX;
    for (size_t i = 0; i < most; i++)
        for (size_t k = i + 1; k < most; k++) {
            double apart = job[k].run->step_s / job[i].run->step_s;
            if (fmax(apart, 1 / apart) < 1 + APART)
                continue;
            sum->pairs++;
            sum->pairs_right += apart > 1; /* the first is predicted to be faster */
        }
}

static void judge_job(const struct plan_run *job, size_t plans, struct knee_run_decisions *sum)
{
    double best = INFINITY, three = INFINITY, mean = 0;
    for (size_t i = 0; i < plans; i++) {
        best = fmin(best, job[i].run->step_s);
        mean += job[i].run->step_s / (double)plans;
        if (i < 3)
            three = fmin(three, job[i].run->step_s);
    }
    sum->jobs++;
    sum->regret += job[0].run->step_s / best - 1;
    sum->regret_of_three += three / best - 1;
    sum->regret_of_any += mean / best - 1;
    sum->near_best += three <= (1 + NEAR) * best;
    count_pairs(job, plans, sum);
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
        room.fits += r->fits;
        room.measured += isnan(r->memory_error) ? 0 : 1;
        room.beyond += 1 / (1 + r->memory_error) > 1 + APART;
    }
    room.fits = room.ran ? room.fits / (double)room.ran : NAN;
    room.beyond = room.measured ? room.beyond / (double)room.measured : NAN;
    *out = room;
}

bool knee_judge_decisions(struct knee_validation *v)
{
    struct plan_run *plans = knee_resize(v->alloc, NULL, v->runs->count * sizeof *plans);
    struct knee_run_decisions sum = {0};
    size_t count = 0;
    if (!plans)
        return false;
    for (size_t i = 0; i < v->runs->count; i++)
        if (counts(v, i))
            plans[count++] = (struct plan_run){&v->runs->run[i], v->result[i].predicted_s};
    qsort(plans, count, sizeof *plans, compare);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && by_job(plans[i].run, plans[next].run) == 0;)
            next++;
        if (next - i > 1)
            judge_job(&plans[i], next - i, &sum);
    }
    knee_resize(v->alloc, plans, 0);
    finish(&sum);
    v->decisions = sum;
    judge_memory(v, &v->room);
    return true;
}

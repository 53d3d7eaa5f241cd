/* SPDX-License-Identifier: MIT */
/*
 * The changes, one at a time, on a set-up where communication is 0.6 of compute at all ranks: where
 * the knee moves, measured and predicted, and the loss after the same examples with that change.
 * Then, past the critical batch: more network does nothing for the loss, another optimizer does.
 */
#include "lab/lab_hunt.h"

#include "base/error.h"
#include "lab/lab_optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PUSH_STEPS = 11, TRAIN_STEPS = 64, TRAIN_BATCH = 32, LOCAL_STEPS = 8 };
#define PUSH_GAMMA 0.6

/* Row of a wire by its name; the tables are small and the names are ours. */
static int wire_named(const char *name)
{
    int row = 0;
    while (lab_wire_at(row) && strcmp(lab_wire_at(row)->name, name) != 0)
        row++;
    return row;
}

struct lever {
    const char *name, *change;
    const char *wire;
    enum lab_sync sync;
    bool overlap;
    size_t accumulate; /* micro-steps, and times the batch */
    double pace;       /* times the rate */
};

static const struct lever levers[] = {
    {"none", "f32, after backward", "f32", LAB_EVERY_STEP, false, 1, 1},
    {"overlap", "during backward", "f32", LAB_EVERY_STEP, true, 1, 1},
    {"compress: bf16", "2 B a value", "bf16", LAB_EVERY_STEP, false, 1, 1},
    {"compress: fp8", "1.03 B a value", "fp8", LAB_EVERY_STEP, false, 1, 1},
    {"compress: int8", "1.02 B a value", "int8", LAB_EVERY_STEP, false, 1, 1},
    {"compress: 1-bit", "0.13 B a value", "1-bit", LAB_EVERY_STEP, false, 1, 1},
    {"compress: PowerSGD", "rank 4", "powersgd", LAB_EVERY_STEP, false, 1, 1},
    {"compress: top-k", "1 %", "top-k", LAB_EVERY_STEP, false, 1, 1},
    {"accumulate", "4 micro-steps, batch 4x", "f32", LAB_EVERY_STEP, false, 4, 1},
    {"local SGD", "every 8", "f32", LAB_LOCAL_SGD, false, 1, 1},
    {"DiLoCo", "every 8", "f32", LAB_DILOCO, false, 1, 1},
    {"streaming DiLoCo", "every 8, overlapped", "f32", LAB_STREAMING, true, 1, 1},
    {"faster link", "2x", "f32", LAB_EVERY_STEP, false, 1, 2},
};

static struct lab_setup timing_setup(const struct lab_setup *base, const struct lever *lever)
{
    struct lab_setup s = *base;
    s.weak = true;
    s.untimed = 3;
    s.steps = lever->sync == LAB_EVERY_STEP ? PUSH_STEPS : 3 + 2 * LOCAL_STEPS;
    s.wire = wire_named(lever->wire);
    s.sync = lever->sync;
    s.local_steps = LOCAL_STEPS;
    s.overlap = lever->overlap;
    s.accumulate = lever->accumulate;
    s.batch *= lever->accumulate;
    s.compute_s *= (double)lever->accumulate;
    s.pace_bytes_per_s *= lever->pace;
    s.pace_latency_s /= lever->pace;
    return s;
}

static knee_status train(struct knee_runtime *rt, const struct lab_setup *base,
                         const struct lever *lever, struct knee_lab_push *push, float **params,
                         struct knee_err *err)
{
    struct lab_setup s = timing_setup(base, lever);
    struct lab_outcome outcome = {0};
    s.synthetic = false;
    s.pace_bytes_per_s = s.pace_latency_s = s.decode_s = s.host_s = 0;
    s.weak = false;
    s.batch = TRAIN_BATCH * lever->accumulate;
    s.steps = TRAIN_STEPS / lever->accumulate;
    s.warmup = s.steps / 10;
    s.untimed = 0;
    s.bucket_bytes = base->bucket_bytes;
    knee_status status = lab_run(rt, &s, rt->size, &outcome, err);
    if (status)
        return status;
    push->examples = (double)(s.batch * s.steps);
    lab_outcome_take(&outcome, &push->loss, params);
    return KNEE_OK;
}

struct pushing {
    struct knee_runtime *rt;
    const struct lab_setup *base;
    const struct lab_sweep *plan;
    struct knee_lab *lab;
};

static knee_status push_one(const struct pushing *p, const struct lever *lever, float **params,
                            struct knee_err *err)
{
    struct knee_lab *lab = p->lab;
    struct lab_sweep *sweep = malloc(sizeof *sweep);
    struct lab_setup setup = timing_setup(p->base, lever);
    struct knee_lab_push push = {.lever = lever->name, .part = "communication"};
    if (!sweep)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    *sweep = *p->plan;
    knee_status status = lab_sweep_link(p->rt, &setup, &sweep->link, err);
    if (!status)
        status = lab_sweep_run(p->rt, &setup, sweep, err);
    if (!status)
        status = train(p->rt, p->base, lever, &push, params, err);
    if (!status && lab->push_count < KNEE_LAB_PUSHES) {
        const struct knee_lab_row *last = &sweep->rows[sweep->count - 1];
        snprintf(push.change, sizeof push.change, "%s", lever->change);
        push.workers = last->workers;
        push.step_s = last->measured_step_s;
        push.predicted_step_s = last->predicted_step_s;
        push.knee_workers = sweep->measured.tolerance_workers;
        push.predicted_knee_workers = sweep->predicted.tolerance_workers;
        push.sent_bytes = last->sent_bytes;
        push.model_bytes = last->model_bytes;
        lab->pushes[lab->push_count++] = push;
        if (lab->push_count == 1) { /* what the others are compared with */
            lab->buckets = sweep->buckets;
            lab->latency_s = sweep->link.latency_s;
            lab->bandwidth_bytes_per_s = sweep->link.bytes_per_s;
        }
        free(sweep->params);
    }
    free(sweep);
    return status;
}

/* ---- Past the critical batch ---- */

struct big {
    const char *name, *change, *optimizer;
    double batch;    /* in critical batches */
    double pace;     /* times the rate */
    double rates[5]; /* tried; the best loss counts */
};

static const struct big bigs[] = {
    {"critical batch", "sgd", "sgd", 1, 1, {0.1}},
    {"4x the batch", "sgd, same rate", "sgd", 4, 1, {0.1}},
    {"faster link", "4x, same batch and rate", "sgd", 4, 4, {0.1}},
    {"tuned schedule", "sgd, best of 4 rates", "sgd", 4, 1, {0.1, 0.2, 0.4, 0.8}},
    {"large-batch optimizer",
     "lamb, best of 5 rates",
     "lamb",
     4,
     1,
     {0.01, 0.02, 0.04, 0.08, 0.16}},
};

static int optimizer_named(const char *name, const struct knee_choices *names)
{
    for (size_t row = 0; row < names->count(); row++)
        if (strcmp(names->name(row), name) == 0)
            return (int)row;
    return 0;
}

static knee_status push_big(struct knee_runtime *rt, const struct lab_setup *base,
                            const struct big *big, const struct knee_choices *optimizers,
                            struct knee_lab *lab, struct knee_err *err)
{
    enum { BIG_STEPS = 24 };
    struct knee_lab_push push = {.lever = big->name, .part = "statistics", .loss = INFINITY};
    knee_status status = KNEE_OK;
    for (size_t i = 0; i < sizeof big->rates / sizeof *big->rates && big->rates[i] > 0; i++) {
        struct lab_setup s = *base;
        struct lab_outcome outcome = {0};
        s.synthetic = false;
        s.weak = false;
        s.batch = (size_t)ceil(big->batch * lab->critical_batch);
        s.steps = BIG_STEPS;
        s.untimed = 2;
        s.warmup = big->rates[1] > 0 ? 4 : 1;
        s.overlap = true;
        s.optimizer = optimizer_named(big->optimizer, optimizers);
        s.rate = big->rates[i];
        s.pace_bytes_per_s *= big->pace;
        status = lab_run(rt, &s, rt->size, &outcome, err);
        if (status)
            return status;
        if (outcome.loss < push.loss) {
            snprintf(push.change, sizeof push.change, "%s, rate %g", big->change, big->rates[i]);
            push.loss = outcome.loss;
            push.step_s = outcome.step_s;
        }
        push.examples = (double)(s.batch * s.steps);
        push.sent_bytes = outcome.sent_bytes;
        push.model_bytes = outcome.model_bytes;
        lab_outcome_release(&outcome);
    }
    push.workers = rt->size;
    push.predicted_step_s = push.knee_workers = push.predicted_knee_workers = NAN;
    if (lab->push_count < KNEE_LAB_PUSHES)
        lab->pushes[lab->push_count++] = push;
    return status;
}

/* ---- The whole ---- */

/* A rate at which the exchange of everything takes PUSH_GAMMA of compute at all ranks. */
static knee_status choose_pace(struct knee_runtime *rt, struct lab_setup *s, double params,
                               struct knee_err *err)
{
    struct lab_outcome outcome = {0};
    double k = rt->size, bytes = 4 * params * 2 * (k - 1) / k, compute_s = s->compute_s;
    if (s->pace_bytes_per_s > 0 || rt->host_count > 1)
        return KNEE_OK;
    if (!s->synthetic) {
        struct lab_setup one = timing_setup(s, &levers[0]);
        knee_status status = lab_run(rt, &one, 1, &outcome, err);
        if (status)
            return status;
        compute_s = outcome.compute_s;
        lab_outcome_release(&outcome);
    }
    s->pace_bytes_per_s = bytes / (PUSH_GAMMA * compute_s);
    return KNEE_OK;
}

knee_status lab_push_levers(struct knee_runtime *runtime, const struct lab_setup *base,
                            const struct lab_sweep *sweep, struct knee_lab *lab,
                            struct knee_err *err)
{
    struct lab_setup s = *base;
    struct lab_noise noise = {.critical_batch = NAN};
    float *params = NULL;
    if (runtime->size < 2)
        return knee_fail_hint(
            err, KNEE_USAGE, "--push",
            "run it on two or more: mpirun -n 4 knee lab --push --synthetic-compute",
            "one process has nothing to exchange");
    s.batch = 8;
    knee_status status = choose_pace(runtime, &s, lab->params, err);
    lab->paced = s.pace_bytes_per_s > 0;
    lab->weak = true;
    lab->overlap = false;
    lab->batch = (double)s.batch;
    lab->steps = PUSH_STEPS;
    for (size_t i = 0; i < sizeof levers / sizeof *levers && !status; i++)
        if (levers[i].pace <= 1 || lab->paced)
            status = push_one(&(struct pushing){runtime, &s, sweep, lab}, &levers[i],
                              i == 0 ? &params : NULL, err);
    if (!status)
        status = lab_measure_noise(runtime, &s, params, &noise, err);
    free(params);
    lab->critical_batch = noise.critical_batch;
    for (size_t i = 0; i < sizeof bigs / sizeof *bigs && !status && !isnan(lab->critical_batch);
         i++)
        status = push_big(runtime, &s, &bigs[i], &lab_optimizer_names, lab, err);
    return status;
}

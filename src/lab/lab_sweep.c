/* SPDX-License-Identifier: MIT */
/*
 * Prediction beside measurement. Going in: alpha and beta of the link, and one worker's step (its
 * compute, what of it does not shrink with the batch, and when each bucket was ready). Nothing is
 * fitted to the runs that are predicted.
 */
#include "lab/lab_sweep.h"

#include "base/error.h"
#include "base/keys.h"
#include "collective/collective.h"
#include "lab/lab_sync.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put(struct knee_job *job, double *field, double value)
{
    knee_keys_fill(&knee_job_keys, job, field, value, KNEE_DERIVED);
}

/* Where the exchange stands in the step. `hidden` is what the schedule of buckets hides at K. */
static double hidden_share(const struct lab_setup *s, const struct lab_outcome *one,
                           const struct lab_layout *layout, const struct lab_wire_cost *cost,
                           int workers, double compute_s)
{
    const struct lab_wire *wire = lab_wire_at(s->wire);
    const struct lab_strategy *strategy = lab_strategy_of(s);
    double ready_s[LAB_BUCKETS_MAX], comm_s[LAB_BUCKETS_MAX], all = 0, exposed = 0;
    size_t n = layout->bucket_count, turn = s->local_steps / (2 * (n ? n : 1));
    for (size_t b = 0; b < n; b++) {
        ready_s[b] = one->ready_share[b] * compute_s;
        comm_s[b] = wire->hops(workers) * cost->link->latency_s +
                    wire->bytes(wire, &layout->buckets[b], workers) / cost->link->bytes_per_s +
                    cost->local_s * (double)layout->buckets[b].count / (double)layout->param_count;
        all += comm_s[b];
        exposed += fmax(0, comm_s[b] - (double)(turn ? turn : 1) * compute_s);
    }
    if (strategy->every_step)
        exposed = lab_exposed_s(ready_s, comm_s, n, compute_s);
    else if (!strategy->streams)
        exposed = all;
    return all > 0 ? 1 - exposed / all : 0;
}

/* The whole exchange as one ring (or gather) of the closed forms: the same bytes, and the latency
 * of all its buckets' hops. */
static void describe_exchange(struct knee_job *job, const struct lab_setup *s,
                              const struct lab_layout *layout, const struct lab_wire_cost *cost,
                              int workers)
{
    const struct lab_link *link = cost->link;
    const struct lab_wire *wire = lab_wire_at(s->wire);
    bool gathers = wire->op == KNEE_OP_ALL_GATHER;
    double bytes = 0, hops = 0, k = workers > 1 ? workers : 2;
    lab_layout_traffic(layout, wire, (int)k, &bytes, &hops);
    double model_hops = gathers ? k - 1 : 2 * (k - 1);
    double model_bytes = gathers ? bytes / (k - 1) : bytes / (2 * (k - 1) / k);
    job->algorithm = knee_algorithm_row(gathers ? &knee_sparse_gather : &knee_ring);
    put(job, &job->params, (double)layout->param_count);
    put(job, &job->bytes_per_param, model_bytes / (double)layout->param_count);
    put(job, &job->hw.latency_s, link->latency_s * hops / model_hops);
    put(job, &job->hw.bandwidth_bytes_per_s, bytes / (bytes / link->bytes_per_s + cost->local_s));
}

static bool lay_out(struct lab_layout *layout, const struct lab_setup *s, int workers)
{
    struct lab_net *net = NULL;
    bool good = true;
    if (!s->synthetic) {
        net = calloc(1, sizeof *net);
        good = net && lab_net_init(net, &s->shape, 1);
    }
    good = good && lab_layout_init(layout, s, net, workers);
    if (!good)
        lab_layout_release(layout);
    if (net)
        lab_net_release(net);
    free(net);
    return good;
}

knee_status lab_predict(const struct lab_setup *s, const struct lab_outcome *one,
                        const struct lab_wire_cost *cost, double workers, struct knee_row *out,
                        struct knee_err *err)
{
    struct knee_job job;
    struct knee_terms terms;
    struct lab_layout *layout = calloc(1, sizeof *layout);
    if (!layout || !lay_out(layout, s, (int)workers)) {
        free(layout);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the prediction");
    }
    knee_job_init(&job);
    double fixed = fmin(one->fixed_s, 0.9 * one->compute_s);
    double shrinking = one->compute_s - fixed;
    double here = fixed + (s->weak ? shrinking : shrinking / workers);
    put(&job, &job.compute_time_s, shrinking);
    put(&job, &job.measured_workers, 1);
    put(&job, s->weak ? &job.local_batch : &job.global_batch, (double)s->batch);
    put(&job, &job.local_steps, s->sync == LAB_EVERY_STEP ? 1 : (double)s->local_steps);
    struct lab_link none = {0, 1e30};
    struct lab_wire_cost wire = {isnan(cost->link->latency_s) ? &none : cost->link, cost->local_s};
    describe_exchange(&job, s, layout, &wire, (int)workers);
    put(&job, &job.hidden,
        fmax(0, fmin(1, hidden_share(s, one, layout, &wire, (int)workers, here))));
    lab_layout_release(layout);
    free(layout);
    job.workers.ranges = 1;
    job.workers.range[0].from = job.workers.range[0].to = workers;
    job.workers.range[0].factor = job.workers.range[0].step = 1;
    knee_status status = knee_job_complete(&job, err);
    if (status)
        return status;
    knee_terms_init(&job, &terms);
    terms.stall_s[KNEE_COMPUTE] = fixed;
    terms.stall_s[KNEE_HOST] = fmax(0, one->step_s - one->compute_s);
    knee_terms_settle(&terms);
    knee_evaluate(&terms, workers, out);
    return KNEE_OK;
}

knee_status lab_measure_local(struct knee_runtime *runtime, const struct lab_setup *s, int workers,
                              double *local_s, struct knee_err *err)
{
    enum { TIMES = 4 };
    const struct lab_wire *wire = lab_wire_at(s->wire);
    struct lab_group group = {
        .runtime = runtime, .rank = runtime->rank, .size = workers, .dry = true};
    double taken = 0;
    bool member = workers > 1 && runtime->rank < workers, good = true;
    struct lab_layout *layout = member ? calloc(1, sizeof *layout) : NULL;
    float *values = NULL;
    if (member) {
        good = layout && lay_out(layout, s, workers) &&
               (values = calloc(layout->param_count + 1, sizeof *values));
        for (int i = 0; good && i <= TIMES; i++) { /* the first one warms up */
            int64_t start = lab_now_ns();
            for (size_t b = 0; b < layout->bucket_count; b++)
                wire->exchange(wire, &group, &layout->buckets[b], values + layout->buckets[b].at);
            taken += i > 0 ? 1e-9 * (double)(lab_now_ns() - start) / TIMES : 0;
        }
        if (layout)
            lab_layout_release(layout);
    }
    free(layout);
    free(values);
    if (!good)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the prediction");
    if (!lab_reduce(runtime, &taken, 1))
        return knee_fail(err, KNEE_SYSTEM, "", "%.200s", runtime->fault);
    *local_s = taken / workers;
    return KNEE_OK;
}

knee_status lab_sweep_link(struct knee_runtime *runtime, const struct lab_setup *s,
                           struct lab_link *out, struct knee_err *err)
{
    struct lab_group group = {.runtime = runtime,
                              .rank = runtime->rank,
                              .size = runtime->size,
                              .pace_bytes_per_s = s->pace_bytes_per_s,
                              .pace_latency_s = s->pace_latency_s};
    struct lab_layout *layout = calloc(1, sizeof *layout);
    double most = 0;
    *out = (struct lab_link){NAN, NAN};
    if (runtime->size == 1) {
        free(layout);
        return KNEE_OK;
    }
    /* as large as the largest message of the ring, within reason */
    if (layout && lay_out(layout, s, 2))
        for (size_t b = 0; b < layout->bucket_count; b++)
            most = fmax(most, 2.0 * (double)layout->buckets[b].count);
    if (layout)
        lab_layout_release(layout);
    free(layout);
    if (!lab_meet(&group) || !lab_measure_link(&group, (size_t)fmin(4e6, fmax(65536, most)), out))
        return knee_fail(err, KNEE_SYSTEM, "", "the link cannot be measured: %.150s",
                         group.failed ? runtime->fault : "it is faster than the clock tells");
    return KNEE_OK;
}

/* ---- Knee ---- */

static double crossing(const struct knee_lab_row *rows, size_t count, const double *gammas)
{
    for (size_t i = 1; i < count; i++)
        if (gammas[i] >= 1 && gammas[i - 1] < 1) {
            double share = (1 - gammas[i - 1]) / (gammas[i] - gammas[i - 1]);
            return rows[i - 1].workers + share * (rows[i].workers - rows[i - 1].workers);
        }
    return NAN;
}

struct knee_lab_knee lab_find_knee(const struct knee_lab_row *rows, size_t count, double tolerance,
                                   bool predicted, const double *gammas)
{
    struct knee_lab_knee knee = {NAN, crossing(rows, count, gammas)};
    for (size_t i = 0; i < count; i++) {
        double e = predicted ? rows[i].predicted_efficiency : rows[i].efficiency;
        if (e >= tolerance)
            knee.tolerance_workers = rows[i].workers;
    }
    return knee;
}

/* ---- The sweep ---- */

enum { BASELINE_STEPS = 12 };

static void fill_row(struct knee_lab_row *row, const struct lab_setup *s, double workers,
                     const struct lab_outcome *o, const struct lab_outcome *one,
                     const struct knee_row *predicted)
{
    double scale = s->weak ? 1 : workers;
    *row = (struct knee_lab_row){
        .workers = workers,
        .measured_step_s = o->step_s,
        .predicted_step_s = predicted->step.wall_s,
        .compute_s = o->compute_s,
        .comm_s = o->comm_s,
        .exposed_comm_s = o->exposed_s,
        .ratio = o->exposed_s / o->compute_s,
        .gamma = o->comm_s / o->compute_s,
        .efficiency = one->step_s / (scale * o->step_s),
        .predicted_efficiency = one->step_s / (scale * predicted->step.wall_s),
        .loss = o->loss,
        .sent_bytes = o->sent_bytes,
        .model_bytes = o->model_bytes,
    };
}

knee_status lab_sweep_run(struct knee_runtime *runtime, const struct lab_setup *setup,
                          struct lab_sweep *sweep, struct knee_err *err)
{
    struct lab_outcome one = {0}, outcome = {0};
    double measured[KNEE_LAB_ROWS] = {0}, predicted[KNEE_LAB_ROWS] = {0};
    knee_status status = KNEE_OK;
    for (size_t i = 0; i < sweep->count && !status; i++) {
        struct lab_setup here = *setup;
        struct knee_row row = {0};
        double local_s = 0;
        here.record = i + 1 == sweep->count ? sweep->record : NULL;
        if (i == 0 && sweep->baseline && here.steps > BASELINE_STEPS)
            here.steps = BASELINE_STEPS;
        lab_outcome_release(&outcome);
        status = lab_measure_local(runtime, &here, (int)sweep->workers[i], &local_s, err);
        if (!status)
            status = lab_run(runtime, &here, (int)sweep->workers[i], &outcome, err);
        if (status)
            break;
        if (i == 0) {
            if (sweep->baseline)
                outcome.loss = NAN;
            one = outcome;
            one.timeline = NULL;
            one.params = NULL;
            one.steps = NULL;
        }
        status = lab_predict(setup, &one, &(struct lab_wire_cost){&sweep->link, local_s},
                             sweep->workers[i], &row, err);
        if (status)
            break;
        fill_row(&sweep->rows[i], setup, sweep->workers[i], &outcome, &one, &row);
        measured[i] = sweep->rows[i].gamma;
        predicted[i] = row.gamma;
    }
    if (!status) {
        sweep->measured =
            lab_find_knee(sweep->rows, sweep->count, sweep->tolerance, false, measured);
        sweep->predicted =
            lab_find_knee(sweep->rows, sweep->count, sweep->tolerance, true, predicted);
        sweep->buckets = outcome.buckets;
        sweep->params = outcome.params;
        outcome.params = NULL;
    }
    lab_outcome_release(&outcome);
    return status;
}

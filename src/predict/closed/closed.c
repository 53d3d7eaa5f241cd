/* SPDX-License-Identifier: MIT */
/*
 * The closed forms. One worker count in, one labelled step out:
 *
 *   T_comp = f P b / rate                         (or measured)
 *   T_comm = all-reduce(K, P bytes / compression) (or measured, scaled by the same shape)
 *   exposed transfer = T_comm - eta min(T_comp, T_comm)   or  (1 - hidden) T_comm
 *   exposed loading  = T_load - eta min(T_comp, T_load)
 *   wait   = E[max of K] - mean of the workers' compute times
 *   T_step = T_comp + wait + max(exposed transfer, exposed loading)
 *
 * Where model and GPU are named, compute, exchange and what shows of it are knee plan's
 * (forecast.c).
 */
#include "cluster/hardware.h"
#include "job/job.h"
#include "knee_predict.h"
#include "predict/closed/forecast.h"

#include <math.h>
#include <string.h>

#define SECONDS_PER_HOUR 3600.0

static const char *const bindings[] = {
    [KNEE_BINDS_COMPUTE] = "compute",
    [KNEE_BINDS_COMM] = "communication",
    [KNEE_BINDS_LOAD] = "loading",
    [KNEE_BINDS_STRAGGLER] = "stragglers",
};

const char *knee_binding_name(enum knee_binding binding)
{
    return bindings[binding];
}

/* E[max of n] normal deviates: a Chebyshev series in log n from 1 to 2^24, made from
 * E = integral over x >= 0 of 1 - F(x)^n - F(-x)^n, F the normal distribution, which takes a
 * hundred times longer; off by less than 1e-13. */
double knee_expected_maximum(double n)
{
    static const double series[] = {
        3.2174780054408321,      2.5246901740878793,      -0.45730151672628883,
        0.15011381327039569,     -0.05508736240099997,    0.020153617714197603,
        -0.0070123375189591972,  0.0022580556546821229,   -0.00065678273927082377,
        0.00016665006535837384,  -3.4246304320136186e-05, 4.3980006653731598e-06,
        3.6865355637085394e-07,  -4.4487218874722121e-07, 1.4363245305219806e-07,
        -1.4718078546823062e-08, -1.1205166263817193e-08, 8.2033892225279355e-09,
        -3.0892782783395641e-09, 6.2209736244756703e-10,  7.5774940684093794e-11,
        -1.3094788420915313e-10, 6.4222206437418439e-11,  -1.7966572674055215e-11,
        9.350199108894286e-13,   2.1328873996834252e-12,  -1.3845861848542362e-12,
        4.8799825942344444e-13,  -7.2402451872441431e-14, -3.2239090412035376e-14,
        3.0189697584285385e-14,  -1.8506517932698197e-14};
    if (n <= 1)
        return 0;
    double x = 2 * log2(fmin(n, KNEE_WORKERS_MAX)) / 24 - 1, last = 0, before = 0;
    for (size_t i = sizeof series / sizeof *series - 1; i > 0; i--) { /* Clenshaw */
        double next = 2 * x * last - before + series[i];
        before = last;
        last = next;
    }
    return x * last - before + series[0];
}

/* What the exchange of `bytes` takes, all of it, hidden or not. With n workers to a replica there
 * are n exchanges of 1/n side by side, each worker on its own share of the NICs. */
static double wire_s(const struct knee_terms *terms, double workers)
{
    struct knee_group group = {workers, 1, true};
    double bytes = terms->bytes;
    if (terms->shard > 1 && workers > 1) {
        group = (struct knee_group){workers / fmin(terms->shard, workers), terms->shard, false};
        bytes /= terms->shard;
    }
    if (group.size <= 1 || terms->comm_scale == 0)
        return 0;
    return terms->comm_scale *
           knee_collective_s(&terms->cluster, KNEE_OP_ALL_REDUCE, group, bytes, terms->algorithm);
}

static double not_hidden(double work_s, double window_s, double eta)
{
    return work_s - eta * fmin(window_s, work_s);
}

/* What an equal relative speed-up would help most: the largest of x dT/dx over the parts x of the
 * step. What is hidden is paid for by the longer of the two that overlap, so it counts against the
 * shorter; a hidden fraction that was given always counts against communication. */
static enum knee_binding binding_of(const struct knee_terms *terms, const struct knee_row *row)
{
    const struct knee_step *step = &row->step;
    bool load = row->exposed_load_s > step->label_s[KNEE_TRANSFER];
    double compute = step->label_s[KNEE_COMPUTE];
    double room = load ? compute : compute / terms->accumulate / terms->local_steps;
    double work = load ? row->load_s : step->comm_s;
    double exposed = load ? row->exposed_load_s : step->label_s[KNEE_TRANSFER];
    if (work <= room || (!load && !isnan(terms->hidden)))
        work = exposed;
    else
        compute -= work - exposed;
    if (step->label_s[KNEE_WAIT] > fmax(work, compute))
        return KNEE_BINDS_STRAGGLER;
    return work <= compute ? KNEE_BINDS_COMPUTE : load ? KNEE_BINDS_LOAD : KNEE_BINDS_COMM;
}

/* The step and its labels. */
static void evaluate_step(const struct knee_terms *terms, double workers, struct knee_row *row)
{
    double share = terms->scaling == KNEE_STRONG ? 1 / workers : 1;
    struct knee_forecast_step forecast = {.compute_s = terms->compute_s * share};
    bool own = terms->forecast.known && !terms->algorithm && terms->shard <= 1;
    double wire = own ? NAN : wire_s(terms, workers), encode = workers > 1 ? terms->encode_s : 0;
    if (terms->forecast.known)
        knee_forecast_at(terms, workers, wire, &forecast);
    wire = own ? forecast.wire_s : wire;
    double compute_s = forecast.compute_s;
    double window_s = compute_s / terms->accumulate; /* only the last micro-step can hide */
    double exposed = !isnan(terms->hidden)    ? (1 - terms->hidden) * wire
                     : !isnan(terms->overlap) ? not_hidden(wire, window_s, terms->overlap)
                                              : forecast.shown_s;
    double axis = workers > 1 ? terms->axis_tax * compute_s : 0; /* on the critical path */
    double transfer = (exposed + encode) / terms->local_steps + axis;
    row->load_s =
        isnan(terms->loader_rate_per_s) ? 0 : terms->batch * share / terms->loader_rate_per_s;
    row->exposed_load_s = not_hidden(row->load_s, compute_s, terms->loader_overlap);
    /* H steps between meetings: H independent deviations add up as sqrt(H), shared by H steps. */
    double wait = forecast.wait_s;
    if (terms->jitter > 0)
        wait +=
            compute_s * terms->jitter * knee_expected_maximum(workers) / sqrt(terms->local_steps);
    double starved = fmax(0, row->exposed_load_s - transfer);

    row->step = (struct knee_step){
        .label_s = {[KNEE_COMPUTE] = compute_s,
                    [KNEE_TRANSFER] = transfer,
                    [KNEE_WAIT] = wait,
                    [KNEE_STARVED] = starved},
        .wall_s = compute_s + transfer + wait + starved,
        .comm_s = (wire + encode) / terms->local_steps + axis,
    };
    for (int label = 0; label < KNEE_LABELS; label++) {
        double stall = label == KNEE_WAIT && workers <= 1 ? 0 : terms->stall_s[label];
        row->step.label_s[label] += stall;
        row->step.wall_s += stall;
    }
    row->binding = binding_of(terms, row);
}

/* steps(B) = S_min (1 + B_crit / B): McCandlish et al. 2018, eq. 2.7 rearranged. */
static void evaluate_quality(const struct knee_terms *terms, struct knee_row *row)
{
    row->steps_to_quality = terms->min_steps * (1 + terms->critical_batch / row->global_batch);
    row->time_to_quality_s = row->steps_to_quality * row->step.wall_s;
}

void knee_evaluate(const struct knee_terms *terms, double workers, struct knee_row *row)
{
    bool strong = terms->scaling == KNEE_STRONG;
    evaluate_step(terms, workers, row);
    double step_s = row->step.wall_s, stall_s = step_s - row->step.label_s[KNEE_COMPUTE];
    row->workers = workers;
    row->global_batch = strong ? terms->batch : terms->batch * workers;
    row->local_batch = terms->batch / terms->accumulate / (strong ? workers : 1);
    row->throughput_per_s = terms->work * (strong ? 1 : workers) / step_s;
    row->efficiency = terms->one_worker_step_s / (step_s * (strong ? workers : 1));
    row->speedup = row->efficiency * workers;
    row->ratio = knee_step_ratio(&row->step);
    row->gamma = knee_step_gamma(&row->step);
    row->cost = workers * terms->price_per_s * step_s;
    row->stall_cost = workers * terms->price_per_s * stall_s;
    row->stall_joules = workers * terms->idle_power_w * stall_s;
    row->step_sure = row->efficiency_sure = row->ratio_sure = (struct knee_sure){NAN, NAN};
    row->joules = row->stall_joules + workers * terms->power_w * row->step.label_s[KNEE_COMPUTE];
    evaluate_quality(terms, row);
}

void knee_terms_settle(struct knee_terms *terms)
{
    bool strong = terms->scaling == KNEE_STRONG, known = !isnan(terms->batch);
    struct knee_row one;
    if (terms->forecast.known)
        terms->forecast.machine.cluster = terms->cluster;
    evaluate_step(terms, 1, &one);
    terms->one_worker_step_s = one.step.wall_s;
    terms->most_workers =
        strong && known ? fmax(1, floor(terms->batch / terms->accumulate)) : INFINITY;
}

void knee_terms_init(const struct knee_job *job, struct knee_terms *terms)
{
    bool strong = job->scaling == KNEE_STRONG;
    double given = strong ? job->global_batch : job->local_batch * job->accumulate;
    double batch = given * job->batch_scale;
    double compute_s = job->flops_per_param * job->params * job->seq * batch / job->flops_per_s;
    if (!isnan(job->compute_time_s))
        compute_s = job->compute_time_s * job->batch_scale * (strong ? job->measured_workers : 1);
    *terms = (struct knee_terms){
        .scaling = job->scaling,
        .algorithm = knee_job_algorithm(job),
        .compute_s = compute_s,
        .batch = batch,
        .work = isnan(batch) ? job->batch_scale : batch,
        .bytes = knee_job_bytes(job) / job->compress,
        .comm_scale = job->comm_scale,
        .shard = 1,
        .encode_s = job->encode_time_s,
        .accumulate = job->accumulate,
        .local_steps = job->local_steps,
        .overlap = job->overlap,
        .hidden = job->hidden,
        .loader_overlap = job->loader_overlap,
        .loader_rate_per_s = job->loader_rate_per_s,
        .jitter = job->jitter,
        .price_per_s = job->hw.price_per_hour / SECONDS_PER_HOUR,
        .power_w = job->hw.power_w,
        .idle_power_w = job->idle_power_w,
        .critical_batch = job->critical_batch,
        .min_steps = job->min_steps,
    };
    knee_hardware_cluster(&job->hw, &terms->cluster);
    if (job->forecast && knee_forecast_init(job, &terms->forecast)) {
        const struct knee_micro_size *size = knee_forecast_size(&terms->forecast, batch);
        terms->compute_s = size->example_s * batch + size->end_s;
        terms->bytes = terms->forecast.bytes / job->compress;
    }
    knee_terms_settle(terms);
}

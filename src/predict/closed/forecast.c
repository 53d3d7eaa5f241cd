/* SPDX-License-Identifier: MIT */
/*
 * One forecast. knee predict asks about thousands of worker counts, so the data-parallel plan is
 * priced once, with one and with two examples on one GPU; their difference is what an example
 * costs, the rest is paid once per step. What depends on the count, the exchange of gradients and
 * the wait for the slowest, is asked of the same functions that price a plan.
 */
#include "predict/closed/forecast.h"

#include "job/job.h"
#include "job/profile.h"
#include "job/shape.h"
#include "predict/plan/gradient_exchange.h"

#include <math.h>

/* Seconds of a step of so many examples on one GPU. */
static void price(const struct knee_shape *shape, const struct knee_forecast *f, double examples,
                  struct knee_plan_cost *out)
{
    struct knee_plan plan = f->plan;
    plan.global_batch = examples;
    knee_plan_price(shape, &f->machine, &plan, out);
}

bool knee_forecast_of(const struct knee_shape *shape, const struct knee_machine *machine,
                      double gradient_bytes, struct knee_forecast *out)
{
    struct knee_forecast f = {.machine = *machine};
    struct knee_plan_cost one, two;
    struct knee_block block;
    knee_plan_init(&f.plan);
    f.plan.gpus = f.plan.tp = f.plan.pp = f.plan.cp = f.plan.ep = 1;
    f.plan.global_batch = f.plan.micro_batch = 1;
    f.plan.shard = KNEE_REPLICATE;
    f.plan.gradient_bytes = gradient_bytes;
    if (knee_plan_complete(&f.plan, shape, machine, NULL))
        return false;
    price(shape, &f, 1, &one);
    price(shape, &f, 2, &two);
    f.example_s = two.step_s - one.step_s;
    f.end_s = one.step_s - f.example_s;
    knee_block_init(shape, machine, &f.plan, &block);
    knee_stage_trained(&block.footprint, shape, &f.plan, &f.common, &f.experts);
    f.bytes = (f.common + f.experts) * f.plan.gradient_bytes;
    f.mfu = one.mfu_causal * one.step_s / f.example_s;
    f.memory = one.memory;
    f.step = knee_band_step(knee_band_class_of(shape, machine->basis), 1);
    f.known = isfinite(f.example_s) && f.example_s > 0;
    *out = f;
    return f.known;
}

bool knee_forecast_init(const struct knee_job *job, struct knee_forecast *out)
{
    struct knee_shape shape;
    struct knee_platform platform;
    struct knee_machine machine;
    out->known = false;
    if (job->model >= 0) {
        knee_shape_init(&shape);
        shape.model = job->model;
    } else
        knee_shape_canonical(job->params, &shape);
    shape.seq = rint(job->seq);
    knee_platform_init(&platform);
    platform.hw = job->hw;
    platform.profile = job->profile;
    if (knee_shape_complete(&shape, NULL) || knee_machine_init(&platform, NULL, &machine, NULL) ||
        !knee_forecast_of(&shape, &machine, job->bytes_per_param, out))
        return false;
    out->bytes = job->params * out->plan.gradient_bytes;
    out->example_s *= job->slower;
    out->end_s *= job->slower;
    return true;
}

void knee_forecast_at(const struct knee_terms *terms, double workers, double wire_s,
                      struct knee_forecast_step *out)
{
    const struct knee_forecast *f = &terms->forecast;
    double examples = terms->batch / (terms->scaling == KNEE_STRONG ? workers : 1);
    /* One example at a time, unless the number of micro-steps is given. */
    double micro_batches = terms->accumulate > 1 ? terms->accumulate : fmax(1, examples);
    struct knee_plan plan = f->plan;
    plan.gpus = plan.dp = workers;
    plan.compress = f->bytes / terms->bytes;
    struct knee_gradient_exchange wire = {wire_s / 2, wire_s / 2};
    if (isnan(wire_s))
        wire = knee_copies_exchange(&f->machine, &plan, f->common, f->experts);
    double busy = f->example_s * examples, pass = busy / micro_batches;
    *out = (struct knee_forecast_step){
        .compute_s = busy + f->end_s,
        .wait_s = f->machine.rates.jitter * knee_expected_maximum(workers) * busy,
        .wire_s = wire.out_s + wire.back_s,
        .shown_s = knee_exchange_shown_s(&f->machine.rates, &plan, &wire, pass),
    };
}

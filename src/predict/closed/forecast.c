/* SPDX-License-Identifier: MIT */
/*
 * One forecast. knee predict asks about thousands of worker counts, so the data-parallel plan is
 * priced once for each size of micro-batches, with one and with two of them on one GPU; their
 * difference is what a micro-batch costs, the rest is paid once per step. Each count takes the size
 * that is fastest there, as knee plan does: small models need large ones to keep a GPU busy. What
 * depends on the count, the exchange of gradients and the wait for the slowest, is asked of the
 * same functions that price a plan.
 */
#include "predict/closed/forecast.h"

#include "job/job.h"
#include "job/profile.h"
#include "job/shape.h"
#include "predict/plan/gradient_exchange.h"

#include <math.h>

/* Steps of one and of two micro-batches on one GPU. False: it does not fit. */
static bool price(const struct knee_shape *shape, double size, struct knee_forecast *f)
{
    struct knee_plan plan = f->plan;
    struct knee_plan_cost one, two;
    plan.global_batch = plan.micro_batch = size;
    knee_plan_price(shape, &f->machine, &plan, &one);
    plan.global_batch = 2 * size;
    knee_plan_price(shape, &f->machine, &plan, &two);
    double pass_s = two.step_s - one.step_s;
    if (size == 1) {
        f->memory = one.memory;
        f->mfu = one.mfu_causal * one.step_s / pass_s;
    }
    f->sizes[f->size_count] = (struct knee_micro_size){pass_s / size, one.step_s - pass_s};
    return one.memory.total <=
           knee_memory_limit(one.memory.capacity, one.memory.spread, KNEE_MEMORY_RISK);
}

#define MOST_GPUS 65536

/* Everything sharded over so many GPUs, one example at a time. */
static bool fits_sharded(const struct knee_shape *shape, const struct knee_forecast *f,
                         const struct knee_block *block, double gpus)
{
    struct knee_plan plan = f->plan;
    struct knee_memory memory;
    plan.gpus = plan.dp = plan.shard_size = plan.global_batch = gpus;
    plan.shard = gpus > 1 ? KNEE_ZERO3 : KNEE_REPLICATE;
    plan.recompute = f->fsdp_recomputed ? KNEE_FULL : KNEE_KEEP;
    knee_memory_of(&block->footprint, shape, &f->machine, &plan, &memory);
    return memory.total <= knee_memory_limit(memory.capacity, memory.spread, KNEE_MEMORY_RISK);
}

static double fewest_sharded(const struct knee_shape *shape, const struct knee_forecast *f,
                             const struct knee_block *block)
{
    double most = 1;
    while (most <= MOST_GPUS && !fits_sharded(shape, f, block, most))
        most *= 2;
    for (double least = floor(most / 2); most - least > 1;) {
        double middle = floor((least + most) / 2);
        *(fits_sharded(shape, f, block, middle) ? &most : &least) = middle;
    }
    return most <= MOST_GPUS ? most : (double)NAN;
}

bool knee_forecast_of(const struct knee_shape *shape, const struct knee_machine *machine,
                      double gradient_bytes, struct knee_forecast *out)
{
    struct knee_forecast f = {.machine = *machine};
    struct knee_block block;
    knee_plan_init(&f.plan);
    f.plan.gpus = f.plan.tp = f.plan.pp = f.plan.cp = f.plan.ep = 1;
    f.plan.global_batch = f.plan.micro_batch = 1;
    f.plan.shard = KNEE_REPLICATE;
    f.plan.gradient_bytes = gradient_bytes;
    if (knee_plan_complete(&f.plan, shape, machine, NULL))
        return false;
    for (double size = 1; f.size_count < KNEE_MICRO_SIZES; size *= 2, f.size_count++)
        if (!price(shape, size, &f) && size > 1)
            break;
    knee_block_init(shape, machine, &f.plan, &block);
    knee_stage_trained(&block.footprint, shape, &f.plan, &f.common, &f.experts);
    f.fsdp_gpus = fewest_sharded(shape, &f, &block);
    f.fsdp_recomputed = isnan(f.fsdp_gpus);
    if (f.fsdp_recomputed)
        f.fsdp_gpus = fewest_sharded(shape, &f, &block);
    f.bytes = (f.common + f.experts) * f.plan.gradient_bytes;
    f.step = knee_band_step(knee_band_class_of(shape, machine->basis), 1);
    f.known = isfinite(f.sizes[0].example_s) && f.sizes[0].example_s > 0;
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
    for (int i = 0; i < out->size_count; i++) {
        out->sizes[i].example_s *= job->slower;
        out->sizes[i].end_s *= job->slower;
    }
    return true;
}

const struct knee_micro_size *knee_forecast_size(const struct knee_forecast *f, double examples)
{
    const struct knee_micro_size *best = f->sizes;
    for (int i = 1; i < f->size_count && exp2(i) <= examples; i++)
        if (f->sizes[i].example_s * examples + f->sizes[i].end_s <
            best->example_s * examples + best->end_s)
            best = &f->sizes[i];
    return best;
}

/* Of one GPU that has work: those beyond the last example have none. */
static double examples_of(const struct knee_terms *terms, double workers)
{
    double each = terms->batch / (terms->scaling == KNEE_STRONG ? workers : 1);
    return terms->scaling == KNEE_STRONG && each < terms->accumulate ? terms->accumulate : each;
}

double knee_forecast_micro_batch(const struct knee_terms *terms, double workers)
{
    const struct knee_forecast *f = &terms->forecast;
    double examples = examples_of(terms, workers);
    if (terms->accumulate > 1) /* the number of micro-batches is given */
        return examples / terms->accumulate;
    return f->known ? exp2((double)(knee_forecast_size(f, examples) - f->sizes)) : (double)NAN;
}

void knee_forecast_at(const struct knee_terms *terms, double workers, double wire_s,
                      struct knee_forecast_step *out)
{
    const struct knee_forecast *f = &terms->forecast;
    double examples = examples_of(terms, workers);
    double micro_batch = knee_forecast_micro_batch(terms, workers);
    const struct knee_micro_size *size =
        knee_forecast_size(f, terms->accumulate > 1 ? micro_batch : examples);
    struct knee_plan plan = f->plan;
    plan.gpus = plan.dp = workers;
    plan.compress = f->bytes / terms->bytes;
    struct knee_gradient_exchange wire = {wire_s / 2, wire_s / 2};
    if (isnan(wire_s))
        wire = knee_copies_exchange(&f->machine, &plan, f->common, f->experts);
    double busy = size->example_s * examples, pass = busy / fmax(1, examples / micro_batch);
    *out = (struct knee_forecast_step){
        .compute_s = busy + size->end_s,
        .wait_s = f->machine.rates.jitter * knee_expected_maximum(workers) * busy,
        .wire_s = wire.out_s + wire.back_s,
        .shown_s = knee_exchange_shown_s(&f->machine.rates, &plan, &wire, pass),
    };
}

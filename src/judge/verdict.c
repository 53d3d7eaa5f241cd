/* SPDX-License-Identifier: MIT */
/* A job in, everything knee has to say about it out: the curve first, then the judge's parts. */
#include "base/error.h"
#include "base/keys.h"
#include "base/text.h"
#include "cluster/hardware.h"
#include "job/job.h"
#include "judge/judge.h"
#include "predict/closed/forecast.h"

#include <math.h>
#include <string.h>

static void note(struct knee_prediction *p, enum knee_note_kind kind, double value)
{
    p->notes[p->note_count++] = (struct knee_note){kind, value};
}

static void note_once(struct knee_prediction *p, bool *said, enum knee_note_kind kind, double value)
{
    if (!*said)
        note(p, kind, value);
    *said = true;
}

/* Where the model is stretched; said once, for the first worker count it happens at. */
static void add_notes(struct knee_prediction *p, const struct knee_terms *terms)
{
    bool half = false, overhidden = false, latency = false;
    struct knee_terms free_latency = *terms;
    knee_cluster_free_latency(&free_latency.cluster);
    for (size_t i = 0; i < p->row_count; i++) {
        const struct knee_row *row = &p->rows[i];
        double hidden = row->step.comm_s - row->step.label_s[KNEE_TRANSFER];
        struct knee_row without;
        knee_evaluate(&free_latency, row->workers, &without);
        if (row->local_batch < 1 && p->job.seq >= 1)
            note_once(p, &half, KNEE_NOTE_HALF_EXAMPLE, row->workers);
        if (!isnan(terms->hidden) && hidden > row->step.label_s[KNEE_COMPUTE])
            note_once(p, &overhidden, KNEE_NOTE_OVERHIDDEN, row->workers);
        if (without.step.comm_s < 0.5 * row->step.comm_s)
            note_once(p, &latency, KNEE_NOTE_LATENCY, row->workers);
    }
    size_t measured = knee_keys_find(&knee_job_keys, "measured-workers");
    if (!isnan(p->job.comm_time_s) && p->job.source[measured] == KNEE_DEFAULT)
        note(p, KNEE_NOTE_MEASURED_AT, p->job.measured_workers);
    if (isnan(p->job.params))
        note(p, KNEE_NOTE_NO_ENCODE, NAN);
    note(p, KNEE_NOTE_SURE, NAN);
    if (p->doubt.compute.high > 1)
        note(p, KNEE_NOTE_MFU, 100 * p->job.mfu);
}

/* The row the verdict speaks of: asked for, else the first that no longer pays, else the last at
 * which every worker has an example. */
static double verdict_workers(const struct knee_prediction *p, double most)
{
    double last = p->rows[0].workers;
    if (!isnan(p->job.at))
        return p->job.at;
    for (size_t i = 0; i < p->row_count && p->rows[i].workers <= most; i++) {
        last = p->rows[i].workers;
        if (p->rows[i].efficiency < p->job.tolerance)
            break;
    }
    return last;
}

static knee_status make_rows(struct knee_prediction *p, const struct knee_terms *terms,
                             struct knee_err *err)
{
    double *workers = knee_resize(p->alloc, NULL, KNEE_ROWS_MAX * sizeof *workers);
    if (!workers)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for GPU counts");
    p->row_count = knee_workers_list(&p->job.workers, workers, KNEE_ROWS_MAX);
    if (p->row_count)
        p->rows = knee_resize(p->alloc, NULL, p->row_count * sizeof *p->rows);
    for (size_t i = 0; p->rows && i < p->row_count; i++)
        knee_evaluate(terms, workers[i], &p->rows[i]);
    knee_resize(p->alloc, workers, 0);
    if (p->row_count == 0)
        return knee_fail(err, KNEE_USAGE, "--gpus", "more than %d GPU counts", KNEE_ROWS_MAX);
    return p->rows ? KNEE_OK
                   : knee_fail(err, KNEE_SYSTEM, "", "out of memory for %zu rows", p->row_count);
}

#define WEIGHTS_AND_GRADIENTS 4.0  /* bytes per parameter, 16 bits each */
#define STATES                12.0 /* master weights and two moments, 32 bits each */

double knee_unsharded_bytes(double params)
{
    return (WEIGHTS_AND_GRADIENTS + STATES) * params;
}

/* By the memory account of knee plan: all of it counts, activations too. */
static struct knee_feasibility fits_by_forecast(const struct knee_forecast *forecast)
{
    const struct knee_memory *m = &forecast->memory;
    double limit = knee_memory_limit(m->capacity, m->spread, KNEE_MEMORY_RISK);
    struct knee_feasibility f = {m->total, m->capacity, m->total <= limit, false, NAN, NAN};
    if (m->total - m->optimizer < limit)
        f.zero1_workers = ceil(m->optimizer / (limit - m->total + m->optimizer));
    f.recomputed = forecast->fsdp_recomputed;
    f.zero3_workers = forecast->fsdp_gpus;
    return f;
}

/* Whether data parallelism alone can hold the model, and what would. */
static struct knee_feasibility feasibility(const struct knee_job *job,
                                           const struct knee_forecast *forecast)
{
    if (forecast->known)
        return fits_by_forecast(forecast);
    const struct knee_gpu *gpu = knee_hardware_gpu(&job->hw);
    struct knee_feasibility f = {NAN, NAN, true, false, NAN, NAN};
    if (!gpu || isnan(job->params))
        return f;
    f.capacity_bytes = gpu->memory_bytes;
    f.needed_bytes = knee_unsharded_bytes(job->params);
    f.fits = f.needed_bytes <= f.capacity_bytes;
    double left = f.capacity_bytes - WEIGHTS_AND_GRADIENTS * job->params;
    if (left > 0)
        f.zero1_workers = ceil(STATES * job->params / left);
    f.zero3_workers = ceil(f.needed_bytes / f.capacity_bytes);
    return f;
}

static void judge_doubt(struct knee_prediction *p)
{
    knee_doubt_init(&p->job, &p->doubt);
    for (size_t i = 0; i < p->row_count; i++)
        knee_doubt_row(&p->terms, &p->doubt, &p->rows[i]);
    knee_doubt_row(&p->terms, &p->doubt, &p->at);
    knee_doubt_knee(&p->terms, &p->doubt, p->job.tolerance, &p->knee);
}

/* Everything that follows from job and terms. */
static knee_status judge(struct knee_prediction *p, struct knee_err *err)
{
    double quality_workers;
    knee_status status = make_rows(p, &p->terms, err);
    if (status)
        return status;
    knee_evaluate(&p->terms, verdict_workers(p, p->terms.most_workers), &p->at);
    knee_find(&p->terms, p->job.tolerance, &p->knee, &quality_workers);
    judge_doubt(p);
    p->memory = feasibility(&p->job, &p->terms.forecast);
    struct knee_lever_facts facts = knee_lever_facts_of(&p->job, &p->knee);
    p->lever_count = knee_levers(&p->terms, &facts, &p->at, p->levers);
    knee_judge_walls(p, quality_workers);
    p->cost = knee_cost_of(&p->at, isnan(p->job.steps) ? p->at.steps_to_quality : p->job.steps);
    knee_judge_suspect(p);
    add_notes(p, &p->terms);
    return KNEE_OK;
}

/* With the fastest micro-batches. */
static double mfu_of(const struct knee_forecast *f, double examples)
{
    return f->mfu * f->sizes[0].example_s / knee_forecast_size(f, examples)->example_s;
}

/* What the forecast takes for inputs that were not given, so that the report can show them. */
static void take_forecast(struct knee_prediction *p)
{
    const struct knee_forecast *f = &p->terms.forecast;
    struct knee_job *job = &p->job;
    const struct knee_gpu *gpu = knee_hardware_gpu(&job->hw);
    if (!f->known)
        return;
    knee_keys_fill(&knee_job_keys, job, &job->bytes_per_param, f->plan.gradient_bytes,
                   KNEE_DERIVED);
    knee_keys_fill(&knee_job_keys, job, &job->mfu, mfu_of(f, p->terms.batch) / job->slower,
                   KNEE_DERIVED);
    knee_keys_fill(&knee_job_keys, job, &job->flops_per_s, gpu->bf16_flops * job->mfu,
                   KNEE_DERIVED);
}

knee_status knee_predict(const struct knee_job *job, const struct knee_alloc *alloc,
                         struct knee_prediction *out, struct knee_err *err)
{
    struct knee_prediction p;
    memset(&p, 0, sizeof p);
    p.job = *job;
    p.alloc = alloc;
    knee_status status = knee_job_complete(&p.job, err);
    if (status)
        return status;
    knee_terms_init(&p.job, &p.terms);
    take_forecast(&p);
    if (!(status = judge(&p, err)))
        *out = p;
    return status;
}

knee_status knee_predict_changed(const struct knee_prediction *before,
                                 const struct knee_terms *terms, double workers,
                                 struct knee_prediction *out, struct knee_err *err)
{
    struct knee_prediction p;
    memset(&p, 0, sizeof p);
    p.job = before->job;
    p.job.at = workers;
    p.alloc = before->alloc;
    p.terms = *terms;
    knee_status status = judge(&p, err);
    if (status)
        return status;
    if (out == before)
        knee_prediction_release(out);
    *out = p;
    return KNEE_OK;
}

void knee_prediction_release(struct knee_prediction *prediction)
{
    knee_resize(prediction->alloc, prediction->rows, 0);
    prediction->rows = NULL;
    prediction->row_count = 0;
}

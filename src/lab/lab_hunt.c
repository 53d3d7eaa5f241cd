/* SPDX-License-Identifier: MIT */
/*
 * The hunt: a healthy run, then the same with one thing made wrong, once for each suspect. What is
 * made wrong is measured against the healthy compute of a step, so that it shows on any machine.
 * The recorded timelines go through the same account and the same judge as any trace.
 */
#include "lab/lab_hunt.h"

#include "base/error.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HUNT_BATCH = 32, HUNT_STEPS = 8, HUNT_PARAMS = 20000 };
#define HUNT_COMPUTE_S 0.3 /* synthetic: long against what a busy machine adds */

/* What the cases have in common. */
struct hunt {
    struct knee_runtime *runtime;
    struct lab_setup healthy;
    double compute_s;      /* of a healthy step */
    double critical_batch; /* measured */
    struct lab_noise noise;
    const char *record;  /* folder for a folder of timelines per run; NULL: none */
    double global_batch; /* of the case at hand */
    double small_loss;   /* trained on the same examples in small batches */
    uint64_t seed;
    struct knee_diagnosis before, after; /* rank 0; their predictions are released */
    struct knee_straggler latest;
    double healthy_buckets; /* collectives of a step */
    double large_loss;
};

/* ---- Judging the timelines of a run ---- */

struct memory {
    const char *at;
    size_t left;
};

static ptrdiff_t read_memory(void *ctx, void *buffer, size_t size)
{
    struct memory *m = ctx;
    size = size < m->left ? size : m->left;
    memcpy(buffer, m->at, size);
    m->at += size;
    m->left -= size;
    return (ptrdiff_t)size;
}

static knee_status judge(struct hunt *h, const char *all, const size_t *sizes,
                         struct knee_diagnosis *out, struct knee_err *err)
{
    size_t count = (size_t)h->runtime->size, read = 0;
    struct knee_trace *traces = calloc(count, sizeof *traces);
    struct knee_account account;
    struct knee_job given;
    knee_status status = KNEE_OK;
    if (!traces)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the timelines");
    for (size_t i = 0; i < count && !status; all += sizes[i++]) {
        struct memory memory = {all, sizes[i]};
        char name[32];
        snprintf(name, sizeof name, "rank%zu.json", i);
        status = knee_trace_read((struct knee_reader){read_memory, &memory}, name, NULL, NULL,
                                 &traces[i], err);
        read += !status;
    }
    knee_job_init(&given);
    given.critical_batch = h->critical_batch;
    given.global_batch = h->global_batch;
    if (!status && !(status = knee_account(traces, count, NULL, &account, err))) {
        status = knee_diagnose(&account, &given, NULL, out, err);
        h->healthy_buckets =
            (double)account.ranks[0].source->call_count / fmax(1, (double)traces[0].step_count);
        h->latest = account.straggler_count ? account.stragglers[0] : (struct knee_straggler){0};
        knee_account_release(&account);
    }
    for (size_t i = 0; i < read; i++)
        knee_trace_release(&traces[i]);
    free(traces);
    return status;
}

static knee_status run_and_judge(struct hunt *h, const struct lab_setup *setup,
                                 struct knee_diagnosis *out, struct knee_err *err)
{
    struct knee_runtime *rt = h->runtime;
    struct lab_outcome outcome = {0};
    size_t *sizes = calloc((size_t)rt->size, sizeof *sizes);
    void *all = NULL;
    if (!sizes)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    knee_status status = lab_run(rt, setup, rt->size, &outcome, err);
    if (!status && !rt->gather_bytes(rt, outcome.timeline, outcome.timeline_size, &all, sizes))
        status = knee_fail(err, KNEE_SYSTEM, "", "%.200s", rt->fault);
    if (!status && rt->rank == 0)
        status = judge(h, all, sizes, out, err);
    lab_outcome_release(&outcome);
    free(all);
    free(sizes);
    return status;
}

/* ---- The cases ---- */

static void nothing(struct lab_setup *s, const struct hunt *h)
{
    (void)s, (void)h;
}

static void long_exchange(struct lab_setup *s, const struct hunt *h)
{
    double workers = h->runtime->size;
    double bytes = 4 * (double)s->params * 2 * (workers - 1) / workers;
    s->overlap = false;
    s->pace_bytes_per_s = bytes / (0.3 * h->compute_s);
}

static void few_loaders(struct lab_setup *s, const struct hunt *h)
{
    (void)h;
    s->loader_threads = 1;
}

static void one_sleeper(struct lab_setup *s, const struct hunt *h)
{
    s->late_rank = (int)(h->seed % (uint64_t)h->runtime->size);
    s->late_s = 0.3 * h->compute_s;
}

static void tiny_batch(struct lab_setup *s, const struct hunt *h)
{
    (void)h;
    s->compute_s /= (double)s->batch;
    s->batch = 1;
}

/* A real run: arithmetic, small MLP, four times the critical batch. */
static void huge_batch(struct lab_setup *s, const struct hunt *h)
{
    struct lab_setup real = *s;
    real.synthetic = false;
    real.shape = (struct lab_shape){.mlp = true, .width = 96, .layers = 1, .context = 8};
    real.batch = (size_t)ceil(4 * h->critical_batch / h->runtime->size);
    real.decode_s = real.host_s = 0;
    real.steps = 16;
    real.warmup = 1;
    *s = real;
}

struct hunt_case {
    enum knee_suspect suspect;
    const char *folder, *how;
    void (*induce)(struct lab_setup *setup, const struct hunt *hunt);
};

static const struct hunt_case cases[] = {
    {KNEE_SUSPECT_NONE, "healthy", "nothing", nothing},
    {KNEE_SUSPECT_COMM, "comm", "overlap off, link held back", long_exchange},
    {KNEE_SUSPECT_INPUT, "input", "one loader thread", few_loaders},
    {KNEE_SUSPECT_STRAGGLER, "straggler", "one rank sleeps", one_sleeper},
    {KNEE_SUSPECT_TINY_BATCH, "tiny", "one example per worker", tiny_batch},
    {KNEE_SUSPECT_LARGE_BATCH, "large", "4x the critical batch", huge_batch},
};

static void describe(const struct hunt *h, const struct hunt_case *c, struct knee_lab_hunt *out)
{
    const struct knee_diagnosis *d = &h->after;
    char *text = out->evidence;
    size_t size = sizeof out->evidence;
    switch (c->suspect) {
    case KNEE_SUSPECT_COMM:
        snprintf(text, size, "R %.3f -> %.3f, overlap %.2f -> %.2f", h->before.ratio, d->ratio,
                 h->before.overlap, d->overlap);
        break;
    case KNEE_SUSPECT_INPUT:
        snprintf(text, size, "host waits for batches %.1f %% -> %.1f %% of the step",
                 100 * h->before.load_share, 100 * d->load_share);
        break;
    case KNEE_SUSPECT_STRAGGLER:
        snprintf(text, size, "rank %zu comes last at %zu collectives, late by %.1f ms a step",
                 h->latest.rank, h->latest.last_count,
                 1e-6 * (double)h->latest.lateness_ns / h->after.steps /
                     (h->healthy_buckets > 0 ? h->healthy_buckets : 1));
        break;
    case KNEE_SUSPECT_TINY_BATCH:
        snprintf(text, size, "step %.2f -> %.2f ms for 1/%d of the examples",
                 1e3 * h->before.step.wall_s, 1e3 * d->step.wall_s, HUNT_BATCH);
        break;
    case KNEE_SUSPECT_LARGE_BATCH:
        snprintf(text, size, "batch %.0f, critical %.0f; loss on the same examples %.3f -> %.3f",
                 h->global_batch, h->critical_batch, h->small_loss, h->large_loss);
        break;
    default:
        snprintf(text, size, "R = %.3f; largest share %.1f %% of the step", d->ratio,
                 100 * fmax(fmax(d->share[KNEE_SUSPECT_COMM], d->share[KNEE_SUSPECT_STRAGGLER]),
                            fmax(d->share[KNEE_SUSPECT_INPUT], d->share[KNEE_SUSPECT_TINY_BATCH])));
    }
    out->moved_before = c->suspect ? h->before.share[c->suspect] : NAN;
    out->moved_after = c->suspect ? d->share[c->suspect] : NAN;
}

static knee_status run_case(struct hunt *h, const struct hunt_case *c, struct knee_lab *lab,
                            struct knee_err *err)
{
    struct lab_setup setup = h->healthy;
    char folder[PATH_MAX];
    setup.seed = h->seed;
    c->induce(&setup, h);
    if (h->record) {
        size_t length =
            (size_t)snprintf(folder, sizeof folder, "%s/%s-%d", h->record, c->folder, (int)h->seed);
        if (length >= sizeof folder)
            return knee_fail(err, KNEE_SYSTEM, "--record", "the folder's name is too long");
        /* where it cannot be made, the timelines cannot be written: said then */
        mkdir(folder, 0777);
        setup.record = folder;
    }
    h->global_batch = (double)setup.batch * h->runtime->size;
    knee_status status = run_and_judge(h, &setup, &h->after, err);
    if (!status && h->record && h->runtime->rank == 0)
        status = lab_write_noise(&setup, folder, &h->noise, err);
    if (status || h->runtime->rank != 0 || lab->hunt_count == KNEE_LAB_HUNTS)
        return status;
    if (c->suspect == KNEE_SUSPECT_NONE)
        h->before = h->after;
    struct knee_lab_hunt *out = &lab->hunts[lab->hunt_count++];
    *out = (struct knee_lab_hunt){.induced = knee_suspect_name(c->suspect),
                                  .how = c->how,
                                  .named = knee_suspect_name(h->after.suspect),
                                  .seed = h->seed};
    describe(h, c, out);
    return KNEE_OK;
}

/* ---- The critical batch, and what passing it does ---- */

static knee_status train_to_loss(struct hunt *h, double batch, double examples, double *loss,
                                 float **params, struct knee_err *err)
{
    struct lab_setup setup = h->healthy;
    struct lab_outcome outcome = {0};
    setup.seed = h->seed;
    huge_batch(&setup, h);
    setup.batch = (size_t)fmax(1, ceil(batch / h->runtime->size));
    setup.steps = (size_t)fmax(8, rint(examples / (double)setup.batch / h->runtime->size));
    setup.warmup = setup.steps / 10;
    setup.keep_timeline = false;
    knee_status status = lab_run(h->runtime, &setup, h->runtime->size, &outcome, err);
    if (status)
        return status;
    lab_outcome_take(&outcome, loss, params);
    return KNEE_OK;
}

static knee_status measure_batches(struct hunt *h, struct knee_err *err)
{
    struct lab_setup setup = h->healthy;
    struct lab_noise noise = {0};
    float *params = NULL;
    double loss = 0;
    setup.seed = h->seed;
    h->critical_batch = 1;
    huge_batch(&setup, h);
    knee_status status = train_to_loss(h, 64, 64 * 60, &loss, &params, err);
    if (!status)
        status = lab_measure_noise(h->runtime, &setup, params, &noise, err);
    free(params);
    if (status)
        return status;
    h->critical_batch = noise.critical_batch;
    h->noise = noise;
    if (isnan(noise.critical_batch))
        return knee_fail(err, KNEE_INPUT, "", "the gradient norms tell no noise scale");
    double large = 4 * noise.critical_batch, examples = 16 * large;
    status = train_to_loss(h, large, examples, &h->large_loss, NULL, err);
    return status ? status
                  : train_to_loss(h, fmax(h->runtime->size, noise.critical_batch / 4), examples,
                                  &h->small_loss, NULL, err);
}

/* ---- The whole ---- */

static knee_status measure_compute(struct hunt *h, struct knee_err *err)
{
    struct lab_outcome outcome = {0};
    h->compute_s = h->healthy.compute_s;
    if (h->healthy.synthetic)
        return KNEE_OK;
    knee_status status = lab_run(h->runtime, &h->healthy, h->runtime->size, &outcome, err);
    if (status)
        return status;
    h->compute_s = outcome.compute_s;
    lab_outcome_release(&outcome);
    return KNEE_OK;
}

static struct lab_setup healthy_setup(const struct lab_setup *base)
{
    struct lab_setup s = *base;
    s.weak = true;
    s.batch = HUNT_BATCH;
    s.steps = HUNT_STEPS;
    s.untimed = 2;
    s.accumulate = 1;
    s.sync = LAB_EVERY_STEP;
    s.overlap = true;
    s.loader_threads = 4;
    s.keep_timeline = true;
    s.record = NULL;
    if (s.synthetic) {
        s.params = HUNT_PARAMS;
        s.compute_s = fmax(s.compute_s, HUNT_COMPUTE_S);
    }
    s.bucket_bytes = fmin(s.bucket_bytes, (double)s.params);
    return s;
}

knee_status lab_hunt(struct knee_runtime *runtime, const struct lab_setup *base, size_t seeds,
                     struct knee_lab *lab, struct knee_err *err)
{
    struct hunt h = {.runtime = runtime, .healthy = healthy_setup(base), .record = base->record};
    if (runtime->size < 2)
        return knee_fail_hint(
            err, KNEE_USAGE, "--hunt",
            "run it on two or more: mpirun -n 2 knee lab --hunt --synthetic-compute",
            "needs at least two ranks");
    knee_status status = measure_compute(&h, err);
    /* one thread takes 1.6 steps to decode a batch, four of them 0.4; the host needs a tenth of
     * a step to hand it over, which is three times the arithmetic of one example */
    double ops = 2.0 * (h.healthy.synthetic ? LAB_SYNTHETIC_PARTS : 32);
    h.healthy.decode_s = 1.6 * h.compute_s / HUNT_BATCH;
    h.healthy.host_s = 3 * h.compute_s / HUNT_BATCH / ops;
    for (h.seed = base->seed; h.seed < base->seed + seeds && !status; h.seed++) {
        status = measure_batches(&h, err);
        for (size_t c = 0; c < sizeof cases / sizeof *cases && !status; c++)
            status = run_case(&h, &cases[c], lab, err);
    }
    lab->critical_batch = h.critical_batch;
    lab->steps = HUNT_STEPS;
    lab->batch = HUNT_BATCH;
    lab->weak = true;
    lab->params = h.healthy.synthetic ? HUNT_PARAMS : lab->params;
    lab->buckets = h.healthy.synthetic ? 4 : lab->buckets;
    return status;
}

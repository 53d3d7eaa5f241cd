/* SPDX-License-Identifier: MIT */
/*
 * From an account to a diagnosis: the mean step, which suspect takes the largest share of it,
 * what the data cannot answer, and, through the same closed forms as a prediction,
 * what each lever would buy from here.
 */
#include "base/error.h"
#include "base/keys.h"
#include "base/text.h"
#include "cluster/gpu_words.h"
#include "judge/judge.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- The mean step ---- */

static void mean_step(const struct knee_account *account, const struct knee_mean_step *means,
                      struct knee_diagnosis *d)
{
    double ranks = (double)account->rank_count, loads = 0, stepped = 0;
    d->lowest_ratio = INFINITY;
    d->highest_ratio = -INFINITY;
    d->split = true;
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        const struct knee_step *step = &means[r].step;
        double ratio = knee_step_ratio(step);
        d->steps += means[r].steps / ranks;
        d->step.wall_s += step->wall_s / ranks;
        d->step.comm_s += step->comm_s / ranks;
        for (int label = 0; label < KNEE_LABELS; label++)
            d->step.label_s[label] += step->label_s[label] / ranks;
        if (isfinite(ratio)) {
            d->lowest_ratio = fmin(d->lowest_ratio, ratio);
            d->highest_ratio = fmax(d->highest_ratio, ratio);
        }
        d->split = d->split && (rank->split || rank->source->call_count == 0);
        d->bounded = d->bounded || rank->bounded;
        loads += (double)rank->load_ns;
        stepped += (double)rank->stepped_ns;
    }
    d->ratio = d->step.label_s[KNEE_COMPUTE] > 0 ? knee_step_ratio(&d->step) : NAN;
    d->efficiency = 1 / (1 + d->ratio);
    d->overlap =
        d->step.comm_s > 0 ? fmax(0, 1 - knee_step_exposed_s(&d->step) / d->step.comm_s) : NAN;
    d->load_share = stepped > 0 ? loads / stepped : NAN;
}

/* ---- What the data cannot answer ---- */

/* Its hosts do the work: no GPU is paid for, and nothing is launched. */
static bool is_cpu_job(const struct knee_account *account)
{
    return strcmp(account->ranks[0].trace->format, "cpu") == 0;
}

/* Processes on one GPU take turns of milliseconds, so their collectives end that far apart; those
 * with GPUs of their own end within microseconds, even where each calls its GPU 0. */
static bool share_a_gpu(const struct knee_account *account)
{
    enum { APART_NS = 500000 };
    const struct knee_rank_account *first = &account->ranks[0];
    bool shared = account->rank_count > 1 && account->instances > 0 && !is_cpu_job(account) &&
                  account->residual_ns > APART_NS;
    for (size_t r = 1; r < account->rank_count && shared; r++)
        shared = account->ranks[r].source->device == first->source->device &&
                 strcmp(account->ranks[r].trace->host, first->trace->host) == 0;
    return shared;
}

/* "NVIDIA H100 80GB HBM3" -> the row of the h100 preset; -1 when it has none. */
static int gpu_of(const char *name)
{
    const struct knee_gpu *gpu = knee_gpu_in(name);
    return gpu ? knee_choice_find(&knee_gpu_names, gpu->name, "", NULL) : -1;
}

/* The GPU that was given, else the one that the traces name. */
static int gpu_row(const struct knee_account *account, const struct knee_job *given)
{
    bool said = given->hw.gpu >= 0 || given->hw.cluster.level_count > 0 || is_cpu_job(account);
    return said ? given->hw.gpu : gpu_of(account->ranks[0].trace->gpu_name);
}

static unsigned find_gaps(const struct knee_account *account, const struct knee_diagnosis *d,
                          const struct knee_job *given)
{
    unsigned gaps = 0;
    size_t calls = 0, launched = 0, work = 0;
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        calls += rank->source->call_count;
        work += rank->source->work;
        launched += rank->source->launched;
        for (int loss = 0; loss < KNEE_LOSSES; loss++)
            if (rank->trace->losses[loss].count && knee_loss_is_lost((enum knee_loss_kind)loss))
                gaps |= KNEE_GAP_LOSSES;
        if (rank->trace->whole_graphs)
            gaps |= KNEE_GAP_WHOLE_GRAPHS;
        if (rank->trace->laid_out)
            gaps |= KNEE_GAP_LAID_OUT;
    }
    if (knee_is_serving(account))
        gaps |= KNEE_GAP_SERVING;
    if (share_a_gpu(account))
        gaps |= KNEE_GAP_SHARED_GPU;
    if (d->step.comm_s > 0 && !(d->ratio <= KNEE_HIGHEST_RATIO))
        gaps |= KNEE_GAP_NO_COMPUTE;
    if (calls == 0)
        gaps |= account->world_size == 1 ? KNEE_GAP_ONE_WORKER : KNEE_GAP_NO_COLLECTIVES;
    else if (account->rank_count == 1)
        gaps |= KNEE_GAP_ONE_RANK;
    else if (d->split && d->bounded)
        gaps |= KNEE_GAP_BOUNDS;
    else if (account->world_size > (int64_t)account->rank_count && !d->split)
        gaps |= KNEE_GAP_RANKS_MISSING;
    else if (account->other_steps)
        gaps |= KNEE_GAP_OTHER_STEPS;
    else if (!d->split)
        gaps |= account->unmatched ? KNEE_GAP_UNMATCHED : KNEE_GAP_LOOSE;
    if (account->step_source == KNEE_STEPS_NONE && !(gaps & KNEE_GAP_SERVING))
        gaps |= KNEE_GAP_NO_STEPS;
    if (launched * 2 < work && !is_cpu_job(account)) /* hosts launch nothing */
        gaps |= KNEE_GAP_NO_LAUNCHES;
    if (isnan(given->critical_batch))
        gaps |= KNEE_GAP_LARGE_BATCH;
    const char *gpu = account->ranks[0].trace->gpu_name;
    if (*gpu && given->hw.gpu < 0 && given->hw.cluster.level_count == 0 && !knee_gpu_in(gpu))
        gaps |= KNEE_GAP_GPU;
    return gaps;
}

/* ---- Suspects ---- */

static double of_step(const struct knee_diagnosis *d, enum knee_label label)
{
    return d->step.wall_s > 0 ? d->step.label_s[label] / d->step.wall_s : 0;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The lower median over ranks of a label's share: what most ranks suffer is the job's trouble, what
 * one of them suffers makes a straggler of it. */
static double common_share(const struct knee_account *account, const struct knee_mean_step *means,
                           enum knee_label label, double *room)
{
    size_t count = account->rank_count;
    for (size_t r = 0; r < count; r++)
        room[r] =
            means[r].step.wall_s > 0 ? means[r].step.label_s[label] / means[r].step.wall_s : 0;
    qsort(room, count, sizeof *room, ascending);
    return room[(count - 1) / 2];
}

/* Shares of the step. Too little work per GPU looks like launch-bound gaps, or like products that
 * are too small for it. */
static void weigh_suspects(const struct knee_account *account, const struct knee_mean_step *means,
                           double *room, const struct knee_job *given, struct knee_diagnosis *d)
{
    double batch = given->global_batch, critical = given->critical_batch;
    if (isnan(batch))
        batch = given->local_batch * (double)account->rank_count;
    d->share[KNEE_SUSPECT_COMM] = of_step(d, KNEE_TRANSFER);
    d->share[KNEE_SUSPECT_STRAGGLER] = of_step(d, KNEE_WAIT);
    d->share[KNEE_SUSPECT_INPUT] = common_share(account, means, KNEE_STARVED, room);
    d->share[KNEE_SUSPECT_TINY_BATCH] =
        common_share(account, means, KNEE_HOST, room) + d->small_shapes;
    d->share[KNEE_SUSPECT_LARGE_BATCH] = batch >= critical ? batch / (batch + critical) : 0;
    d->share[KNEE_SUSPECT_COPY] = common_share(account, means, KNEE_COPY, room);
    d->share[KNEE_SUSPECT_IDLE] = common_share(account, means, KNEE_IDLE, room);
    double most = KNEE_NO_BOTTLENECK;
    for (int s = KNEE_SUSPECT_NONE + 1; s < KNEE_SUSPECTS; s++)
        if (d->share[s] >= most) {
            most = d->share[s];
            d->suspect = (enum knee_suspect)s;
        }
}

/* The ranks that make most of the lateness by themselves: as many as it takes for three quarters of
 * it, and not half of all. */
static void find_late_ranks(const struct knee_account *account, struct knee_diagnosis *d)
{
    double all = 0, some = 0;
    for (size_t i = 0; i < account->straggler_count; i++)
        all += (double)account->stragglers[i].held_ns;
    if (1e-9 * all / d->steps < KNEE_NO_BOTTLENECK * d->step.wall_s)
        return;
    while (d->late_ranks < account->straggler_count && some < 0.75 * all)
        some += (double)account->stragglers[d->late_ranks++].held_ns;
    if (d->late_ranks > 1 && 2 * d->late_ranks >= account->rank_count)
        d->late_ranks = 0; /* everybody in turn is nobody in particular */
}

/* What curing the two causes that no lever stands for would leave of the step. */
static void at_best(struct knee_diagnosis *d)
{
    double wall_s = d->step.wall_s, transfer_s = d->step.label_s[KNEE_TRANSFER];
    d->punctual_step_s = wall_s - d->step.label_s[KNEE_WAIT];
    d->wired_step_s =
        d->slow_wire == SIZE_MAX ? NAN : wall_s - transfer_s * (1 - 1 / d->wire_slowdown);
}

/* ---- Levers, through the closed forms ---- */

static void put(struct knee_job *job, double *field, double value)
{
    knee_keys_fill(&knee_job_keys, job, field, value, KNEE_DERIVED);
}

/* Traffic of activations grows with the batch and cannot be put off: levers for gradients do
 * nothing for it. So they are barred when most of the time on the wire is not data parallel. */
static unsigned barred_levers(const struct knee_account *account)
{
    double gradients = 0, others = 0;
    for (size_t i = 0; i < account->collective_count; i++) {
        const struct knee_collective_account *c = &account->collectives[i];
        double time = (double)c->calls * (isnan(c->transfer_s) ? c->duration_s : c->transfer_s);
        bool gradient = strcmp(c->axis, "DP") == 0 || strcmp(c->axis, "FSDP") == 0 || !*c->axis;
        *(gradient ? &gradients : &others) += time;
    }
    if (others <= gradients)
        return 0;
    return KNEE_LEVER_BATCH | KNEE_LEVER_COMPRESS | KNEE_LEVER_SYNC | KNEE_LEVER_WORKERS |
           KNEE_LEVER_FEWER;
}

/* The measured step as a job: what is not communication stays as it is. */
static struct knee_job job_of(const struct knee_account *account, const struct knee_job *given,
                              const struct knee_diagnosis *d)
{
    struct knee_job job = *given;
    double workers = fmax((double)account->world_size, (double)account->rank_count);
    double exposed = d->step.label_s[KNEE_TRANSFER], wait = d->step.label_s[KNEE_WAIT];
    /* Waiting that is hidden behind compute cannot be told from transfer: it counts as transfer. */
    double transfer = fmax(exposed, d->step.comm_s - wait);
    job.hw.gpu = gpu_row(account, given);
    put(&job, &job.compute_time_s, fmax(1e-9, d->step.label_s[KNEE_COMPUTE]));
    put(&job, &job.comm_time_s, transfer);
    if (isnan(job.overlap))
        put(&job, &job.hidden, transfer > 0 ? 1 - exposed / transfer : 0);
    put(&job, &job.measured_workers, transfer > 0 ? fmax(2, workers) : workers);
    put(&job, &job.at, job.measured_workers);
    put(&job, &job.loader_overlap, 1);
    if (isnan(job.bytes_per_param) && account->collective_count > 0 &&
        strcmp(account->collectives[0].dtype, "f32") == 0)
        put(&job, &job.bytes_per_param, 4); /* what takes the most time travels in 32 bits */
    for (int label = KNEE_WAIT; label < KNEE_LABELS; label++)
        job.stall_s[label] = d->step.label_s[label];
    job.barred = barred_levers(account);
    if (!job.workers.ranges) {
        job.workers.ranges = 1;
        job.workers.range[0].from = job.workers.range[0].to = job.at;
        job.workers.range[0].factor = job.workers.range[0].step = 1;
    }
    return job;
}

/* What is seen in the account before anything is concluded: step, gaps, shares. */
static knee_status measure(const struct knee_account *account, const struct knee_job *given,
                           const struct knee_alloc *alloc, struct knee_diagnosis *d,
                           struct knee_err *err)
{
    size_t ranks = account->rank_count + 1;
    struct knee_mean_step *means = knee_resize(alloc, NULL, ranks * sizeof *means);
    double *room = knee_resize(alloc, NULL, ranks * sizeof *room);
    bool good = means && room;
    if (good) {
        knee_mean_steps(account, means);
        mean_step(account, means, d);
        d->gaps = find_gaps(account, d, given);
        knee_find_roofline(account, gpu_row(account, given), d);
        weigh_suspects(account, means, room, given, d);
    }
    knee_resize(alloc, means, 0);
    knee_resize(alloc, room, 0);
    return good ? KNEE_OK : knee_fail(err, KNEE_SYSTEM, "", "out of memory for the diagnosis");
}

void knee_diagnosis_choose(struct knee_diagnosis *d)
{
    unsigned kinds = knee_suspect_kinds(d->suspect);
    if (!kinds)
        kinds = knee_regime_kinds(knee_regime_of(d->ratio));
    if (d->suspect == KNEE_SUSPECT_TINY_BATCH)
        kinds = KNEE_LEVER_HOST | KNEE_LEVER_BATCH;
    d->lever = knee_levers_best(&d->prediction, kinds, KNEE_WORTH_IT);
    if (d->lever == SIZE_MAX && d->suspect != KNEE_SUSPECT_NONE && d->suspect != KNEE_SUSPECT_IDLE)
        d->lever = knee_levers_best(&d->prediction, ~(unsigned)KNEE_LEVER_WORKERS, KNEE_WORTH_IT);
}

knee_status knee_diagnose(const struct knee_account *account, const struct knee_job *given,
                          const struct knee_alloc *alloc, struct knee_diagnosis *out,
                          struct knee_err *err)
{
    struct knee_diagnosis d;
    memset(&d, 0, sizeof d);
    knee_status status = measure(account, given, alloc, &d, err);
    if (!status)
        status = knee_step_spread_of(account, alloc, &d.spread, err);
    if (status)
        return status;
    find_late_ranks(account, &d);
    knee_find_slow_wire(account, &d);
    at_best(&d);
    struct knee_job job = job_of(account, given, &d);
    status = knee_predict(&job, alloc, &d.prediction, err);
    if (status)
        return status;
    knee_diagnosis_choose(&d);
    if (d.gaps & (KNEE_GAP_SERVING | KNEE_GAP_NO_COMPUTE)) {
        d.lever = SIZE_MAX;
        d.prediction.lever_count = 0;
    }
    *out = d;
    return KNEE_OK;
}

void knee_diagnosis_release(struct knee_diagnosis *diagnosis)
{
    knee_prediction_release(&diagnosis->prediction);
}

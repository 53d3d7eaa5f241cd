/* SPDX-License-Identifier: MIT */
/*
 * From an account to a diagnosis: the mean step, what was recorded, what the data cannot answer,
 * which suspect takes the largest share of the step, and which change is worth most (the changes
 * are in trace_changes.c).
 */
#include "base/error.h"
#include "base/keys.h"
#include "base/order.h"
#include "base/text.h"
#include "cluster/gpu_words.h"
#include "cluster/hardware.h"
#include "judge/judge.h"
#include "timeline/account.h"

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

/* Processes that share a GPU take turns of milliseconds, so their collectives end that far apart,
 * or the kernels of each are stopped for the others. On separate GPUs collectives end within
 * microseconds, even if each process calls its GPU 0. */
static bool share_a_gpu(const struct knee_account *account)
{
    enum { APART_NS = 500000 };
    size_t stopped = 0;
    for (size_t r = 0; r < account->rank_count; r++)
        stopped += account->ranks[r].facts.spent_ns[KNEE_SPENT_STOPPED] > 0;
    bool in_turns = account->residual_ns > APART_NS || 2 * stopped > account->rank_count;
    return (account->instances > 0 && in_turns && knee_on_one_device(account)) ||
           knee_take_turns(account);
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
    if (account->step_source == KNEE_STEPS_NONE)
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

/* The lower median over ranks of a label's share: what most ranks suffer is the job's trouble, what
 * one of them suffers makes a straggler of it. */
static double common_share(const struct knee_account *account, const struct knee_mean_step *means,
                           enum knee_label label, double *room)
{
    size_t count = account->rank_count;
    for (size_t r = 0; r < count; r++)
        room[r] =
            means[r].step.wall_s > 0 ? means[r].step.label_s[label] / means[r].step.wall_s : 0;
    qsort(room, count, sizeof *room, knee_ascending);
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
    double lone = d->lone.least_s / d->step.wall_s;
    d->share[KNEE_SUSPECT_COMM] = of_step(d, KNEE_TRANSFER) - lone;
    d->share[KNEE_SUSPECT_STRAGGLER] = of_step(d, KNEE_WAIT) + lone;
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
        d->late_ranks = 0; /* if half of the ranks take turns, blame none */
}

/* What was given, with the hardware that the traces name. */
static void take_inputs(const struct knee_account *account, const struct knee_job *given,
                        struct knee_diagnosis *d)
{
    double workers = fmax((double)account->world_size, (double)account->rank_count);
    d->inputs = *given;
    d->inputs.hw.gpu = gpu_row(account, given);
    knee_hardware_complete(&knee_job_keys, &d->inputs, &d->inputs.hw, false);
    d->workers = d->step.comm_s > 0 ? fmax(2, workers) : workers;
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
        take_inputs(account, given, d);
        d->gaps = find_gaps(account, d, given);
        knee_recognise_recording(account, d);
        knee_find_longest_gap(account, d);
        good = knee_find_lone_wait(account, d);
        knee_find_roofline(account, d->inputs.hw.gpu, d);
        knee_share_work(account, d);
        weigh_suspects(account, means, room, given, d);
        d->profiled_host =
            of_step(d, KNEE_HOST) >= KNEE_LAUNCH_BOUND && /* longer with a profiler */
            2 * d->spent_s[KNEE_SPENT_LONG_HOST] < d->step.label_s[KNEE_HOST] &&
            !(d->gaps & KNEE_GAP_NO_LAUNCHES) && !is_cpu_job(account);
    }
    knee_resize(alloc, means, 0);
    knee_resize(alloc, room, 0);
    return good ? KNEE_OK : knee_fail(err, KNEE_SYSTEM, "", "out of memory for the diagnosis");
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
    knee_find_energy(gpu_row(account, given), &d);
    find_late_ranks(account, &d);
    if (!knee_find_slow_wire(account, &d))
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the diagnosis");
    d.punctual_step_s = d.step.wall_s - d.step.label_s[KNEE_WAIT];
    knee_diagnosis_levers(account, given, &d);
    knee_diagnosis_choose(&d);
    *out = d;
    return KNEE_OK;
}

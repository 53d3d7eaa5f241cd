/* SPDX-License-Identifier: MIT */
/*
 * What the sentences and the first table of a trace need beside the diagnosis: shares of the step,
 * the label that is left over, the copies that the advised change is about, and each rank's own
 * mean step with what the others lose by it. They are worked out here so that sentences only print
 * them.
 */
#include "base/error.h"
#include "base/order.h"
#include "base/text.h"
#include "judge/judge.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of GPU time, in kernels that a compiler has made: the model is compiled, not a part of it. */
#define COMPILED_SHARE 0.1

static double of_wall(const struct knee_diagnosis *d, double seconds)
{
    return d->step.wall_s > 0 ? seconds / d->step.wall_s : 0;
}

static void share_kernels(const struct knee_diagnosis *d, struct knee_trace_facts *f)
{
    double all = 0;
    for (int w = 0; w < KNEE_KERNEL_KINDS; w++) {
        all += d->works[w].total_s;
        f->kernels += d->works[w].count;
    }
    for (int w = 0; w < KNEE_KERNEL_KINDS; w++)
        f->kind_share[w] = all > 0 ? d->works[w].total_s / all : 0;
    for (int i = 0; i < KNEE_SPENTS; i++)
        f->spent_share[i] = all > 0 ? d->spent_s[i] / all : 0;
    f->spent_share[KNEE_SPENT_WIDE_PRODUCT] += f->spent_share[KNEE_SPENT_WIDE_ATTENTION];
    f->compiled = d->spent_s[KNEE_SPENT_GENERATED] >= COMPILED_SHARE * all &&
                  d->spent_s[KNEE_SPENT_GENERATED] > 0;
    f->unfused_share = f->kind_share[KNEE_KERNEL_ELEMENTWISE] + f->kind_share[KNEE_KERNEL_NORM];
}

/* Pinning concerns pageable memory; a separate stream concerns the other copies from and to the
 * host. */
static bool concerns(const char *change, int kind)
{
    bool pageable = kind == KNEE_COPY_IN_PAGEABLE || kind == KNEE_COPY_OUT_PAGEABLE;
    if (strcmp(change, "no device copies") == 0)
        return kind == KNEE_COPY_DEVICE;
    if (strcmp(change, "hidden copies") == 0)
        return pageable;
    if (strcmp(change, "copies beside compute") == 0)
        return kind >= KNEE_COPY_IN_PINNED && kind <= KNEE_COPY_OUT && !pageable;
    return true;
}

static void find_copies(const struct knee_diagnosis *d, struct knee_trace_facts *f)
{
    const char *change = d->lever < d->lever_count ? d->levers[d->lever].name : "";
    double most = -1;
    for (int k = 0; k < KNEE_COPY_KINDS; k++)
        if (concerns(change, k) && d->copies[k].exposed_s > most) {
            most = d->copies[k].exposed_s;
            f->copy = (enum knee_copy_kind)k;
        }
    f->copy_at_link = f->copy != KNEE_COPY_DEVICE &&
                      d->copies[f->copy].bytes_per_s >= KNEE_NEAR_LINK * d->host_bytes_per_s;
    f->device_share = of_wall(d, d->copies[KNEE_COPY_DEVICE].exposed_s);
}

static void find_gain(const struct knee_account *account, const struct knee_diagnosis *d,
                      struct knee_trace_facts *f)
{
    bool cpu = strcmp(account->ranks[0].trace->format, "cpu") == 0;
    f->before_s = knee_step_before_s(d);
    f->batch_gain = f->before_s / d->roofline.mended_s - 1;
    f->worth_money = !cpu && d->recording == KNEE_RECORDED_TRAINING &&
                     !(d->gaps & KNEE_GAP_NO_STEPS) && d->headline == KNEE_SAYS_CHANGE &&
                     d->cost.day > 0 &&
                     d->levers[d->lever].saved_per_day >= KNEE_WORTH_MONEY * d->cost.day;
}

struct knee_trace_facts knee_trace_facts_of(const struct knee_account *account,
                                            const struct knee_diagnosis *d)
{
    struct knee_trace_facts f = {.remainder = KNEE_TRANSFER};
    for (int label = KNEE_TRANSFER; label < KNEE_LABELS; label++)
        if (d->step.label_s[label] > d->step.label_s[f.remainder])
            f.remainder = (enum knee_label)label;
    f.remainder_share = of_wall(d, d->step.label_s[f.remainder]);
    f.compute_share = fmin(1, d->step.label_s[KNEE_COMPUTE] / knee_step_before_s(d));
    f.exposed_share = of_wall(d, knee_step_exposed_s(&d->step));
    f.busy_share = of_wall(d, knee_step_busy_s(&d->step));
    f.busy_s = d->steps * knee_step_busy_s(&d->step);
    f.gap_counts = d->gap.length_s >= KNEE_WORTH_A_CHANGE * d->step.wall_s;
    if (d->late_ranks)
        f.excess_s = 1e-9 * (double)account->stragglers[0].excess_ns / d->steps;
    for (size_t r = 0; r < account->rank_count; r++)
        f.work += account->ranks[r].source->work;
    f.matched = account->instances > 0 && !account->partial && !account->unmatched;
    share_kernels(d, &f);
    find_copies(d, &f);
    find_gain(account, d, &f);
    return f;
}

bool knee_lever_is_advice(const struct knee_lever *lever)
{
    return lever->gain >= KNEE_WORTH_A_CHANGE && lever->numerics != KNEE_NUMERICS_TRAINING &&
           !(lever->kind & KNEE_LEVER_HARDWARE);
}

/* ---- Rank by rank ---- */

KNEE_SORT(most_delay_first, struct knee_rank_step, KNEE_THEN(KNEE_DOWN(delays_s), KNEE_UP(rank)))

knee_status knee_rank_steps(const struct knee_account *account, const struct knee_diagnosis *d,
                            const struct knee_alloc *alloc, struct knee_rank_step **out,
                            struct knee_err *err)
{
    size_t count = account->rank_count;
    struct knee_mean_step *means = knee_resize(alloc, NULL, (count + 1) * sizeof *means);
    struct knee_rank_step *rows = knee_resize(alloc, NULL, (count + 1) * sizeof *rows);
    if (!means || !rows) {
        knee_resize(alloc, means, 0);
        knee_resize(alloc, rows, 0);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the ranks");
    }
    double waited_s = 0;
    knee_mean_steps(account, means);
    for (size_t r = 0; r < count; r++)
        waited_s = fmax(waited_s, account->ranks[r].split ? means[r].step.label_s[KNEE_WAIT] : 0);
    for (size_t r = 0; r < count; r++)
        rows[r] = (struct knee_rank_step){.rank = account->ranks[r].rank,
                                          .step = means[r].step,
                                          .split = account->ranks[r].split};
    for (size_t i = 0; i < account->straggler_count; i++) {
        const struct knee_straggler *s = &account->stragglers[i];
        /* Collectives queued behind one another are late together: no rank waits for the sum. */
        rows[s->rank].delays_s = fmin(1e-9 * (double)s->lateness_ns / d->steps, waited_s);
        rows[s->rank].late = i < d->late_ranks;
    }
    qsort(rows, count, sizeof *rows, most_delay_first);
    knee_resize(alloc, means, 0);
    *out = rows;
    return KNEE_OK;
}

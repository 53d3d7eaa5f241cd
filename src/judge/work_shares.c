/* SPDX-License-Identifier: MIT */
/* What a step's compute and copies are made of, and the longest gap: the ranks' facts as means per
 * step and rank. */
#include "judge/judge.h"
#include "timeline/account.h"

#include <math.h>

static void add_rank(const struct knee_account *account, size_t r, struct knee_diagnosis *d)
{
    const struct knee_rank_facts *facts = &account->ranks[r].facts;
    double each = 1 / ((double)account->rank_count * knee_complete_steps(account, r));
    for (int k = 0; k < KNEE_COPY_KINDS; k++) {
        d->copies[k].count += each * (double)facts->copies[k].count;
        d->copies[k].total_s += each * 1e-9 * (double)facts->copies[k].total_ns;
        d->copies[k].exposed_s += each * 1e-9 * (double)facts->copies[k].exposed_ns;
    }
    for (int k = 0; k < KNEE_KERNEL_KINDS; k++) {
        d->works[k].count += each * (double)facts->kernels[k].count;
        d->works[k].total_s += each * 1e-9 * (double)facts->kernels[k].total_ns;
        d->works[k].short_s += each * 1e-9 * (double)facts->kernels[k].short_ns;
    }
    for (int p = 0; p < KNEE_SPENTS; p++)
        d->spent_s[p] += each * 1e-9 * (double)facts->spent_ns[p];
}

/* Bytes and rates are of the whole file: per step as the time there is to all time. */
static void add_bytes(const struct knee_account *account, struct knee_diagnosis *d)
{
    for (int k = 0; k < KNEE_COPY_KINDS; k++) {
        double bytes = 0, seconds = 0;
        for (size_t r = 0; r < account->rank_count; r++) {
            const struct knee_trace *trace = account->ranks[r].trace;
            if (r > 0 && trace == account->ranks[r - 1].trace)
                continue; /* several GPUs in one file */
            bytes += (double)trace->copied[k].bytes;
            seconds += 1e-9 * (double)trace->copied[k].time_ns;
        }
        d->copies[k].bytes_per_s = bytes > 0 && seconds > 0 ? bytes / seconds : NAN;
        d->copies[k].bytes = d->copies[k].bytes_per_s * d->copies[k].total_s;
    }
}

/* Copies beside each other are exposed once: their parts add up to the label. */
static void share_exposed(struct knee_diagnosis *d)
{
    double sum = 0;
    for (int k = 0; k < KNEE_COPY_KINDS; k++)
        sum += d->copies[k].exposed_s;
    for (int k = 0; k < KNEE_COPY_KINDS && sum > d->step.label_s[KNEE_COPY]; k++)
        d->copies[k].exposed_s *= d->step.label_s[KNEE_COPY] / sum;
}

void knee_share_work(const struct knee_account *account, struct knee_diagnosis *d)
{
    for (size_t r = 0; r < account->rank_count; r++)
        add_rank(account, r, d);
    share_exposed(d);
    add_bytes(account, d);
}

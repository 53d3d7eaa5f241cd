/* SPDX-License-Identifier: MIT */
/* Which GPU counts knee plan searches: those that were asked for, fewer GPUs where that gives more,
 * what E(K) is against, and the smallest count that anything fits on. */
#include "judge/plan_counts.h"

#include "base/error.h"
#include "base/text.h"

#include <math.h>

#define SMALLEST_MOST 65536

/* The best `top` plans that keep what is fixed. */
static knee_status search_plans(struct knee_counts_search *s, const struct knee_plan *fixed,
                                size_t top, struct knee_search_result *out, struct knee_err *err)
{
    struct knee_search search = {.shape = &s->answer->shape,
                                 .machine = &s->answer->machine,
                                 .fixed = fixed,
                                 .framework = s->framework,
                                 .top = top,
                                 .assumed = s->answer->assumed,
                                 .memory_risk = s->answer->memory_risk,
                                 .oddity = s->answer->oddity};
    knee_status status = s->search(s, &search, out, err);
    if (status || s->stopped || out->count || !out->nearest_valid ||
        out->nearest.cost.memory.total > s->answer->machine.memory_bytes)
        return status;
    search.memory_risk = 0; /* only plans at risk fit: they are answered, and their risk said */
    return s->search(s, &search, out, err);
}

/* What E(K) is against: the best plan on the first of a fixed list of counts at which one fits with
 * the optimizer on the GPU, unless an option moves it: where only a plan with the optimizer on the
 * host fits, that is a poor baseline. On the count found such a plan may be the best, as it may in
 * the rows that are compared with it. */
static knee_status find_baseline(struct knee_counts_search *s, struct knee_err *err)
{
    struct knee_plan_answer *a = s->answer;
    struct knee_search_result *found = knee_resize(s->alloc, NULL, sizeof *found);
    knee_status status = KNEE_OK;
    struct knee_plan fixed = a->fixed;
    if (!found)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    a->baseline_gpus = a->baseline_tokens_per_s = NAN;
    if (fixed.offload < 0)
        fixed.offload = KNEE_ON_GPU;
    for (size_t i = 0; !status && !s->stopped && isnan(a->baseline_gpus); i++) {
        fixed.gpus = knee_plan_baseline_at(&a->machine, i);
        if (fixed.gpus == 0)
            break;
        status = search_plans(s, &fixed, 1, found, err);
        if (status || found->count == 0)
            continue;
        a->baseline_gpus = fixed.gpus;
        a->baseline_tokens_per_s = found->best[0].cost.tokens_per_s;
    }
    if (!status && !s->stopped && !isnan(a->baseline_gpus) && fixed.offload != a->fixed.offload) {
        fixed.offload = a->fixed.offload;
        status = search_plans(s, &fixed, 1, found, err);
        if (!status && found->count)
            a->baseline_tokens_per_s =
                fmax(a->baseline_tokens_per_s, found->best[0].cost.tokens_per_s);
    }
    knee_resize(s->alloc, found, 0);
    return status;
}

/* Fewer GPUs than there are, in round numbers down to half of them, where that gives more: not
 * every count divides heads, layers and batch. */
static knee_status try_fewer(struct knee_counts_search *s, struct knee_plan_row *row,
                             struct knee_search_result *other, struct knee_err *err)
{
    knee_status status = KNEE_OK;
    struct knee_plan fixed = s->answer->fixed;
    if (exp2(floor(log2(row->gpus))) == row->gpus)
        return KNEE_OK; /* a power of two divides best */
    for (size_t i = 0; !status && !s->stopped; i++) {
        fixed.gpus = knee_plan_round_count(i);
        if (fixed.gpus >= row->gpus)
            break;
        if (fixed.gpus < row->gpus / 2)
            continue;
        status = search_plans(s, &fixed, s->top, other, err);
        if (!status && knee_plan_quicker(other, &row->found))
            row->found = *other;
    }
    return status;
}

/* The first round count that something fits on. */
static knee_status find_smallest(struct knee_counts_search *s, struct knee_search_result *found,
                                 struct knee_err *err)
{
    struct knee_plan_answer *a = s->answer;
    struct knee_plan fixed = a->fixed;
    knee_status status = KNEE_OK;
    for (size_t i = 0; !status && !s->stopped && isnan(a->smallest_gpus); i++) {
        fixed.gpus = knee_plan_round_count(i);
        if (fixed.gpus > SMALLEST_MOST)
            break;
        status = search_plans(s, &fixed, 1, found, err);
        if (!status && found->count)
            a->smallest_gpus = fixed.gpus;
    }
    return status;
}

knee_status knee_plan_search_counts(struct knee_counts_search *s, struct knee_err *err)
{
    struct knee_plan_answer *a = s->answer;
    struct knee_search_result *other = knee_resize(s->alloc, NULL, sizeof *other);
    if (!other)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    knee_status status = s->compared ? find_baseline(s, err) : KNEE_OK;
    double each = 1 / (double)a->row_count;
    for (size_t i = s->part; i < a->row_count && !status; i += s->parts) {
        s->done = each * (double)i;
        struct knee_plan fixed = a->fixed;
        fixed.gpus = a->rows[i].gpus;
        status = search_plans(s, &fixed, s->top, &a->rows[i].found, err);
        if (!status)
            status = try_fewer(s, &a->rows[i], other, err);
        if (s->stopped && s->parts == 1)
            a->row_count = i + 1;
    }
    a->smallest_gpus = NAN;
    if (!status && s->compared)
        status = find_smallest(s, other, err);
    knee_resize(s->alloc, other, 0);
    return status;
}

knee_status knee_plan_search_free(struct knee_counts_search *s, struct knee_err *err)
{
    struct knee_plan_answer *a = s->answer;
    struct knee_search_result *found = knee_resize(s->alloc, NULL, sizeof *found);
    if (!found)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    struct knee_plan fixed = a->fixed;
    fixed.gpus = a->rows[a->chosen].gpus;
    knee_status status = search_plans(s, &fixed, 1, found, err);
    if (!status && found->count && !s->stopped) {
        a->free = found->best[0];
        a->free_known = true;
    }
    knee_resize(s->alloc, found, 0);
    return status;
}

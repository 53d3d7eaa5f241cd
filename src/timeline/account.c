/* SPDX-License-Identifier: MIT */
/*
 * From traces to an account: the ranks are listed, their collectives matched, their clocks aligned,
 * every nanosecond labelled, the windows cut into steps, collectives and stragglers summed up.
 */
#include "timeline/account.h"

#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct knee_step knee_ledger_step(const struct knee_ledger *ledger, double steps)
{
    struct knee_step step = {.wall_s = 1e-9 * (double)ledger->window_ns / steps,
                             .comm_s = 1e-9 * (double)ledger->comm_ns / steps};
    for (int label = 0; label < KNEE_LABELS; label++)
        step.label_s[label] = 1e-9 * (double)ledger->label_ns[label] / steps;
    return step;
}

int64_t knee_ledger_exposed_ns(const struct knee_ledger *ledger)
{
    return ledger->label_ns[KNEE_TRANSFER] + ledger->label_ns[KNEE_WAIT];
}

double knee_ledger_ratio(const struct knee_ledger *ledger)
{
    int64_t compute = ledger->label_ns[KNEE_COMPUTE];
    return compute > 0 ? (double)knee_ledger_exposed_ns(ledger) / (double)compute : NAN;
}

double knee_ledger_overlap(const struct knee_ledger *ledger)
{
    if (ledger->comm_ns <= 0)
        return NAN;
    return 1 - (double)knee_ledger_exposed_ns(ledger) / (double)ledger->comm_ns;
}

static int by_rank(const void *left, const void *right)
{
    const struct knee_rank_account *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return strcmp(a->trace->file, b->trace->file);
}

/* A file of one device is the rank that the file says; of several, each device is one. Files that
 * claim the same rank, or none, are numbered as they come. */
static void number_ranks(struct knee_account *account)
{
    bool usable = true;
    for (size_t i = 0; i < account->rank_count; i++) {
        struct knee_rank_account *rank = &account->ranks[i];
        bool alone = rank->trace->rank_count == 1;
        rank->rank = alone ? rank->trace->rank : rank->source->device;
        usable = usable && rank->rank >= 0;
    }
    for (size_t i = 0; i < account->rank_count && usable; i++)
        for (size_t j = i + 1; j < account->rank_count && usable; j++)
            usable = account->ranks[i].rank != account->ranks[j].rank;
    if (usable)
        qsort(account->ranks, account->rank_count, sizeof *account->ranks, by_rank);
    for (size_t i = 0; i < account->rank_count && !usable; i++)
        account->ranks[i].rank = (int64_t)i;
}

static bool list_ranks(struct knee_account *account, const struct knee_trace *traces, size_t count)
{
    size_t ranks = 0;
    for (size_t t = 0; t < count; t++)
        ranks += traces[t].rank_count;
    account->ranks = knee_resize(account->alloc, NULL, (ranks + 1) * sizeof *account->ranks);
    if (!account->ranks)
        return false;
    memset(account->ranks, 0, (ranks + 1) * sizeof *account->ranks);
    account->world_size = -1;
    for (size_t t = 0; t < count; t++) {
        if (traces[t].world_size > account->world_size)
            account->world_size = traces[t].world_size;
        for (size_t r = 0; r < traces[t].rank_count; r++) {
            struct knee_rank_account *rank = &account->ranks[account->rank_count];
            rank->trace = &traces[t];
            rank->source = &traces[t].ranks[r];
            account->rank_count += rank->source->span_count > 0;
        }
    }
    if (account->rank_count)
        number_ranks(account);
    return true;
}

/* Compute kernels and their median: many short ones are a sign of too little work. */
static bool measure_kernels(struct knee_account *account, struct knee_rank_account *rank)
{
    size_t spans = rank->source->span_count, count = 0;
    struct knee_sort_key *keys = knee_resize(account->alloc, NULL, 2 * (spans + 1) * sizeof *keys);
    if (!keys)
        return false;
    for (size_t i = 0; i < spans; i++) {
        const struct knee_span *span = &rank->source->spans[i];
        if (span->kind == KNEE_SPAN_COMPUTE)
            keys[count++] = (struct knee_sort_key){(uint64_t)(span->end_ns - span->start_ns), i};
    }
    knee_sort(keys, keys + count, count);
    rank->kernels = count;
    rank->median_kernel_ns = count ? (int64_t)keys[count / 2].key : 0;
    knee_resize(account->alloc, keys, 0);
    return true;
}

static void sum_matches(struct knee_account *account, const struct knee_matches *m)
{
    for (size_t i = 0; i < m->instance_count; i++) {
        const struct knee_instance *instance = &m->instances[i];
        if (instance->complete && instance->barrier) {
            account->instances++;
            account->transfer_ns += instance->last_end_ns - instance->last_start_ns;
        } else if (!instance->complete) {
            account->unmatched += instance->count;
        }
    }
}

/* The promise of the whole thing, kept in every run and not only in tests. */
static bool labels_sum_up(const struct knee_ledger *ledger)
{
    int64_t sum = 0;
    for (int label = 0; label < KNEE_LABELS; label++)
        sum += ledger->label_ns[label];
    return sum == ledger->window_ns;
}

static bool all_labels_sum_up(const struct knee_account *account)
{
    bool good = true;
    for (size_t i = 0; i < account->rank_count; i++)
        good = good && labels_sum_up(&account->ranks[i].ledger);
    for (size_t i = 0; i < account->step_count; i++)
        good = good && labels_sum_up(&account->steps[i].ledger);
    return good;
}

static bool fill(struct knee_account *account)
{
    struct knee_matches matches;
    bool good = knee_match(account, &matches);
    if (!good)
        return false;
    good = knee_align(account, &matches);
    knee_match_times(account, &matches);
    sum_matches(account, &matches);
    for (size_t r = 0; r < account->rank_count && good; r++)
        good =
            knee_label_rank(account, r, &matches) && measure_kernels(account, &account->ranks[r]);
    good = good && knee_find_steps(account) && knee_find_stragglers(account, &matches) &&
           knee_sum_collectives(account, &matches);
    knee_matches_release(&matches);
    return good;
}

knee_status knee_account(const struct knee_trace *traces, size_t count,
                         const struct knee_alloc *alloc, struct knee_account *out,
                         struct knee_err *err)
{
    struct knee_account account = {.alloc = alloc};
    bool good = list_ranks(&account, traces, count);
    if (good && account.rank_count == 0) {
        knee_account_release(&account);
        knee_fail(err, KNEE_INPUT, "", "there is no GPU work in %s",
                  count == 1 ? traces[0].file : "these traces");
        knee_hint(err, "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]");
        return KNEE_INPUT;
    }
    good = good && fill(&account);
    if (!good) {
        knee_account_release(&account);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the account");
    }
    if (!all_labels_sum_up(&account)) {
        knee_account_release(&account);
        return knee_fail(err, KNEE_SYSTEM, "",
                         "labels do not sum to the window: please report this trace");
    }
    *out = account;
    return KNEE_OK;
}

void knee_account_release(struct knee_account *account)
{
    const struct knee_alloc *alloc = account->alloc;
    for (size_t r = 0; r < account->rank_count; r++)
        if (account->ranks[r].runs)
            knee_resize(alloc, account->ranks[r].runs, 0);
    void *const all[] = {account->ranks, account->steps, account->collectives, account->stragglers};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            knee_resize(alloc, all[i], 0);
    memset(account, 0, sizeof *account);
}

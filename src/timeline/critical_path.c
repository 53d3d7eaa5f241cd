/* SPDX-License-Identifier: MIT */
/*
 * The critical path over ranks: the chain of work that determines the length of the steps. It is
 * walked backwards from the end of the last complete step on the rank that ends last: what a rank
 * did by itself is on the chain. If it waited in a collective, the chain continues at the same
 * moment on the rank that arrived last. So the chain covers the time without gaps, and each
 * nanosecond has one rank and one label. Waiting stays on the chain only if the rank that caused it
 * is unknown.
 */
#include "timeline/where.h"

#include "base/order.h"
#include "base/text.h"

#include <string.h>

struct chain {
    const struct knee_account *account;
    const struct knee_matches *matches;
    struct knee_where *out;
    size_t rank;
    int64_t now_ns; /* common clock */
};

static int64_t own_time(const struct knee_rank_account *rank, int64_t common_ns)
{
    return common_ns - (knee_common_time(rank, 0));
}

/* The run that holds the nanosecond before `own_ns`. */
static size_t run_before(const struct knee_rank_account *rank, int64_t own_ns)
{
    size_t low;
    KNEE_BISECT(low, rank->run_count, rank->runs[low].start_ns < own_ns);
    return low ? low - 1 : SIZE_MAX;
}

/* Of a rendezvous, the member that came last. */
static size_t last_member(const struct chain *chain, const struct knee_instance *instance)
{
    const struct knee_member *members = &chain->matches->members[instance->first];
    for (size_t i = 0; i < instance->count; i++) {
        const struct knee_rank_account *rank = &chain->account->ranks[members[i].rank];
        const struct knee_call *call = &rank->source->calls[members[i].call];
        if (knee_common_time(rank, rank->source->spans[call->span].start_ns) ==
            instance->last_start_ns)
            return members[i].rank;
    }
    return SIZE_MAX;
}

/* The rank whose arrival ended the waiting that ends here; SIZE_MAX: unknown. */
static size_t waited_for(const struct chain *chain, int64_t own_ns)
{
    enum { LOOK_BACK = 64 };
    const struct knee_rank_account *rank = &chain->account->ranks[chain->rank];
    const struct knee_rank *source = rank->source;
    size_t low;
    KNEE_BISECT(low, source->call_count, source->spans[source->calls[low].span].start_ns < own_ns);
    for (size_t back = 0; back < LOOK_BACK && low > 0; back++) {
        size_t c = --low;
        uint32_t found = chain->matches->instance_of[chain->rank][c];
        const struct knee_instance *instance = found ? &chain->matches->instances[found - 1] : NULL;
        if (instance && instance->rendezvous && instance->last_start_ns == chain->now_ns)
            return last_member(chain, instance);
    }
    return SIZE_MAX;
}

static void charge(struct chain *chain, enum knee_label label, int64_t ns)
{
    chain->out->path_s[chain->rank * KNEE_LABELS + label] += 1e-9 * (double)ns;
}

/* Goes back over one run, or to another rank. False: there is nothing before. */
static bool step_back(struct chain *chain, int64_t stop_ns, size_t *jumps)
{
    const struct knee_rank_account *rank = &chain->account->ranks[chain->rank];
    int64_t own_ns = own_time(rank, chain->now_ns);
    size_t run = run_before(rank, own_ns);
    if (run == SIZE_MAX)
        return false;
    if (rank->runs[run].label == KNEE_WAIT && *jumps < chain->account->rank_count) {
        size_t other = waited_for(chain, own_ns);
        if (other != SIZE_MAX && other != chain->rank) {
            chain->rank = other;
            chain->out->path_changes++;
            ++*jumps;
            return true;
        }
    }
    int64_t start = knee_common_time(rank, rank->runs[run].start_ns);
    start = start > stop_ns ? start : stop_ns;
    charge(chain, rank->runs[run].label, chain->now_ns - start);
    *jumps = 0;
    chain->now_ns = start;
    return true;
}

/* The complete steps of a rank, on the common clock. */
static bool complete_range(const struct knee_account *account, size_t row, int64_t *from,
                           int64_t *to)
{
    const struct knee_rank_account *rank = &account->ranks[row];
    bool any = false;
    *from = knee_common_time(rank, rank->from_ns);
    *to = knee_common_time(rank, rank->to_ns);
    for (size_t i = 0; i < account->step_count; i++) {
        const struct knee_step_account *step = &account->steps[i];
        if (step->rank != row || !step->complete)
            continue;
        int64_t start = knee_common_time(rank, step->start_ns);
        *from = any ? *from : start;
        *to = start + step->ledger.window_ns;
        any = true;
    }
    return rank->run_count > 0;
}

static void walk_back(struct chain *chain)
{
    const struct knee_account *account = chain->account;
    int64_t from = 0, to = 0, first = 0;
    for (size_t r = 0; r < account->rank_count; r++) {
        int64_t begin, end;
        if (complete_range(account, r, &begin, &end) && (to == 0 || end > to)) {
            chain->rank = r;
            from = begin;
            to = end;
        }
    }
    double steps = knee_complete_steps(account, chain->rank);
    size_t jumps = 0;
    chain->now_ns = to;
    first = chain->now_ns;
    while (chain->now_ns > from && step_back(chain, from, &jumps))
        ;
    for (size_t i = 0; i < account->rank_count * KNEE_LABELS; i++)
        chain->out->path_s[i] /= steps;
    chain->out->path_step_s = 1e-9 * (double)(first - chain->now_ns) / steps;
}

bool knee_find_critical_path(const struct knee_account *account, struct knee_where *out)
{
    struct knee_matches matches = {0};
    size_t size = (account->rank_count + 1) * KNEE_LABELS * sizeof *out->path_s;
    out->path_s = knee_zeroed(out->alloc, size);
    bool good = out->path_s && knee_match(account, &matches);
    if (good)
        good = knee_match_times(account, &matches);
    struct chain chain = {.account = account, .matches = &matches, .out = out};
    if (good)
        walk_back(&chain);
    knee_matches_release(&matches);
    return good;
}

/* SPDX-License-Identifier: MIT */
/*
 * Clocks of different hosts. The members of a barrier end together, whatever their starts were, so
 * a rank's clock is off by the median difference of its ends from those of the first members, whose
 * clocks are known by then. On one host that is a few tens of microseconds of real spread, which
 * must not be taken for a clock: a shift is made only where the difference is large, and larger
 * than it varies, and where clocks as they are contradict what must have been.
 *
 * One pass over all members, then one over each rank's calls: linear in calls.
 */
#include "timeline/account.h"

#include "base/sort.h"
#include "base/text.h"

#include <string.h>

#define SMALLEST_SHIFT_NS 100000 /* 0.1 ms: no NTP is better, no barrier is looser */
#define LARGEST_SHIFT_NS  INT64_C(1000000000000000000) /* 31 years: no clock is that wrong */

enum { FEW = 3 }; /* fewer differences than these say nothing */

/* When the members of an instance started and ended, by clocks as they are. */
struct extent {
    int64_t last_start_ns, first_end_ns;
};

struct aligner {
    struct knee_account *account;
    const struct knee_matches *matches;
    struct extent *extents;     /* per instance */
    struct knee_sort_key *keys; /* room for the calls of one rank, twice */
};

/* What is known of one rank's clock. */
struct drift {
    int64_t offset_ns, spread_ns;
    size_t count, barriers, impossible;
};

static const struct knee_span *span_of(const struct knee_rank_account *rank, uint32_t call)
{
    return &rank->source->spans[rank->source->calls[call].span];
}

static int64_t median(struct knee_sort_key *keys, size_t count)
{
    if (count == 0)
        return 0;
    knee_sort(keys, keys + count, count);
    return (int64_t)(keys[count / 2].key ^ ((uint64_t)1 << 63));
}

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

static void find_extents(struct aligner *a)
{
    const struct knee_matches *m = a->matches;
    for (size_t i = 0; i < m->instance_count; i++) {
        struct extent *extent = &a->extents[i];
        *extent = (struct extent){INT64_MIN, INT64_MAX};
        for (size_t k = m->instances[i].first; k < m->instances[i].first + m->instances[i].count;
             k++) {
            const struct knee_rank_account *rank = &a->account->ranks[m->members[k].rank];
            const struct knee_span *span = span_of(rank, m->members[k].call);
            int64_t start = knee_common_time(rank, span->start_ns);
            int64_t end = knee_common_time(rank, span->end_ns);
            extent->last_start_ns = start > extent->last_start_ns ? start : extent->last_start_ns;
            extent->first_end_ns = end < extent->first_end_ns ? end : extent->first_end_ns;
        }
    }
}

/* The difference of a call's end from that of the first member of its instance. False: it is the
 * first itself, or not matched, or (`natural`) no barrier by nature. */
static bool difference_of(const struct aligner *a, uint32_t r, uint32_t call, bool natural,
                          int64_t *difference)
{
    const struct knee_matches *m = a->matches;
    uint32_t found = m->instance_of[r][call];
    const struct knee_instance *instance = found ? &m->instances[found - 1] : NULL;
    if (!instance || (natural && !instance->barrier))
        return false;
    const struct knee_member *first = &m->members[instance->first];
    if (first->rank == r)
        return false;
    const struct knee_rank_account *rank = &a->account->ranks[r];
    const struct knee_rank_account *other = &a->account->ranks[first->rank];
    *difference = knee_common_time(rank, span_of(rank, call)->end_ns) -
                  knee_common_time(other, span_of(other, first->call)->end_ns);
    return true;
}

/* The median of the differences less `subtract`, or of their magnitudes. */
static int64_t middle(const struct aligner *a, uint32_t r, bool natural, int64_t subtract,
                      bool absolute, size_t *count)
{
    *count = 0;
    for (uint32_t c = 0; c < a->account->ranks[r].source->call_count; c++) {
        int64_t difference;
        if (!difference_of(a, r, c, natural, &difference))
            continue;
        difference -= subtract;
        difference = absolute ? magnitude(difference) : difference;
        a->keys[(*count)++] = (struct knee_sort_key){knee_sort_signed(difference), c};
    }
    return median(a->keys, *count);
}

/* How many of the barriers that a rank is in could not have happened, by clocks as they are. */
static void count_impossible(const struct aligner *a, uint32_t r, struct drift *drift)
{
    const struct knee_matches *m = a->matches;
    const struct knee_rank_account *rank = &a->account->ranks[r];
    for (uint32_t c = 0; c < rank->source->call_count; c++) {
        uint32_t found = m->instance_of[r][c];
        if (!found || !m->instances[found - 1].barrier || m->instances[found - 1].count < 2)
            continue;
        const struct knee_span *span = span_of(rank, c);
        drift->barriers++;
        drift->impossible +=
            knee_common_time(rank, span->end_ns) < a->extents[found - 1].last_start_ns ||
            a->extents[found - 1].first_end_ns < knee_common_time(rank, span->start_ns);
    }
}

static struct drift drift_of(const struct aligner *a, uint32_t r)
{
    struct drift drift = {0};
    count_impossible(a, r, &drift); /* before the rank is moved */
    bool natural = drift.barriers >= FEW;
    drift.offset_ns = middle(a, r, natural, 0, false, &drift.count);
    if (magnitude(drift.offset_ns) > LARGEST_SHIFT_NS)
        drift.offset_ns = 0;
    drift.spread_ns = middle(a, r, natural, drift.offset_ns, true, &drift.count);
    bool moves = drift.count >= FEW && magnitude(drift.offset_ns) > SMALLEST_SHIFT_NS &&
                 magnitude(drift.offset_ns) > 3 * drift.spread_ns &&
                 drift.impossible * 50 > drift.barriers;
    if (!moves) { /* what is left is then the whole difference */
        drift.offset_ns = 0;
        drift.spread_ns = middle(a, r, natural, 0, true, &drift.count);
    }
    return drift;
}

static void align_all(struct aligner *a)
{
    struct knee_account *account = a->account;
    find_extents(a);
    account->largest_shift_ns = account->residual_ns = 0;
    for (uint32_t r = 0; r < account->rank_count; r++) {
        struct drift drift = drift_of(a, r);
        account->ranks[r].shift_ns = -drift.offset_ns;
        if (magnitude(drift.offset_ns) > magnitude(account->largest_shift_ns))
            account->largest_shift_ns = -drift.offset_ns;
        if (drift.barriers >= FEW && drift.spread_ns > account->residual_ns)
            account->residual_ns = drift.spread_ns; /* others need not end together */
    }
}

bool knee_align(struct knee_account *account, const struct knee_matches *m)
{
    size_t most = 0;
    for (size_t r = 0; r < account->rank_count; r++) {
        size_t calls = account->ranks[r].source->call_count;
        most = calls > most ? calls : most;
    }
    struct aligner a = {
        .account = account,
        .matches = m,
        .extents = knee_resize(account->alloc, NULL, (m->instance_count + 1) * sizeof *a.extents),
        .keys = knee_resize(account->alloc, NULL, 2 * (most + 1) * sizeof *a.keys),
    };
    bool good = a.extents && a.keys;
    if (good)
        align_all(&a);
    knee_resize(account->alloc, a.extents, 0);
    knee_resize(account->alloc, a.keys, 0);
    return good;
}

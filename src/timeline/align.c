/* SPDX-License-Identifier: MIT */
/*
 * Clocks of different hosts. The members of a barrier end together, whatever their starts were, so
 * a rank's clock is off by the median difference of its ends from the first rank's. On one host
 * that is a few tens of microseconds of real spread, which must not be taken for a clock: a shift
 * is made only where the difference is large, and larger than it varies.
 */
#include "timeline/account.h"

#include "base/sort.h"
#include "base/text.h"

#include <string.h>

#define SMALLEST_SHIFT_NS 100000 /* 0.1 ms: no NTP is better, no barrier is looser */

static int64_t end_of(const struct knee_account *account, const struct knee_member *member)
{
    const struct knee_rank_account *rank = &account->ranks[member->rank];
    return knee_common_time(rank,
                            rank->source->spans[rank->source->calls[member->call].span].end_ns);
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

/* Differences of rank's ends from those of the first member of each instance it is in. */
static size_t differences(const struct knee_account *account, const struct knee_matches *m,
                          uint32_t rank, int64_t subtract, bool absolute,
                          struct knee_sort_key *keys)
{
    size_t count = 0;
    for (size_t i = 0; i < m->instance_count; i++) {
        const struct knee_instance *instance = &m->instances[i];
        const struct knee_member *first = &m->members[instance->first];
        if (!instance->barrier || first->rank == rank)
            continue;
        for (size_t k = 1; k < instance->count; k++)
            if (first[k].rank == rank) {
                int64_t difference = end_of(account, &first[k]) - end_of(account, first) - subtract;
                difference = absolute ? magnitude(difference) : difference;
                keys[count++] = (struct knee_sort_key){knee_sort_signed(difference), i};
            }
    }
    return count;
}

/* How many of the barriers that `rank` is in could not have happened, by the clocks as they are. */
static size_t contradictions(const struct knee_account *account, const struct knee_matches *m,
                             uint32_t rank, size_t *barriers)
{
    size_t count = 0;
    *barriers = 0;
    for (size_t i = 0; i < m->instance_count; i++) {
        const struct knee_instance *instance = &m->instances[i];
        const struct knee_member *members = &m->members[instance->first];
        int64_t earliest_end = INT64_MAX, own_end = INT64_MIN, own_start = INT64_MIN,
                last_start = INT64_MIN;
        for (size_t k = 0; k < instance->count; k++) {
            const struct knee_rank_account *other = &account->ranks[members[k].rank];
            const struct knee_call *call = &other->source->calls[members[k].call];
            int64_t start = knee_common_time(other, other->source->spans[call->span].start_ns);
            int64_t end = end_of(account, &members[k]);
            earliest_end = end < earliest_end ? end : earliest_end;
            last_start = start > last_start ? start : last_start;
            if (members[k].rank == rank) {
                own_start = start;
                own_end = end;
            }
        }
        if (!instance->barrier || own_start == INT64_MIN)
            continue;
        ++*barriers;
        count += own_end < last_start || earliest_end < own_start;
    }
    return count;
}

bool knee_align(struct knee_account *account, const struct knee_matches *m)
{
    struct knee_sort_key *keys =
        knee_resize(account->alloc, NULL, 2 * (m->instance_count + 1) * sizeof *keys);
    int64_t *shifts = knee_resize(account->alloc, NULL, (account->rank_count + 1) * sizeof *shifts);
    if (!keys || !shifts) {
        if (keys)
            knee_resize(account->alloc, keys, 0);
        if (shifts)
            knee_resize(account->alloc, shifts, 0);
        return false;
    }
    memset(shifts, 0, (account->rank_count + 1) * sizeof *shifts);
    account->largest_shift_ns = account->residual_ns = 0;
    for (uint32_t r = 0; r < account->rank_count; r++) {
        size_t count = differences(account, m, r, 0, false, keys);
        int64_t offset = median(keys, count);
        count = differences(account, m, r, offset, true, keys);
        int64_t spread = median(keys, count);
        size_t barriers, impossible = contradictions(account, m, r, &barriers);
        if (count >= 3 && magnitude(offset) > SMALLEST_SHIFT_NS && magnitude(offset) > 3 * spread &&
            impossible * 50 > barriers)
            shifts[r] = -offset;
        if (shifts[r] == 0) { /* what is left is then the whole difference */
            count = differences(account, m, r, 0, true, keys);
            spread = median(keys, count);
        }
        if (magnitude(shifts[r]) > magnitude(account->largest_shift_ns))
            account->largest_shift_ns = shifts[r];
        if (spread > account->residual_ns)
            account->residual_ns = spread;
    }
    for (size_t r = 0; r < account->rank_count; r++)
        account->ranks[r].shift_ns = shifts[r];
    knee_resize(account->alloc, keys, 0);
    knee_resize(account->alloc, shifts, 0);
    return true;
}

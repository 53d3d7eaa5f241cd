/* SPDX-License-Identifier: MIT */
/* The longest stretch of complete steps in which a GPU does nothing, and the call into the driver
 * that the host was in meanwhile. */
#include "judge/judge.h"
#include "timeline/account.h"

/* The host was in a call for so much of the gap: that is what it waited in. */
#define IN_CALL 0.5

/* The call that covers most of [from, to); the shortest of those that cover as much. */
void knee_find_gap_call(const struct knee_trace *trace, int64_t from, int64_t to,
                        struct knee_idle_gap *gap)
{
    int64_t most = 0, length = INT64_MAX;
    for (size_t i = 0; i < trace->long_call_count; i++) {
        const struct knee_host_event *e = &trace->long_calls[i];
        if (e->start_ns >= to)
            break;
        int64_t start = e->start_ns > from ? e->start_ns : from;
        int64_t end = e->end_ns < to ? e->end_ns : to;
        if (end - start < most || (end - start == most && e->end_ns - e->start_ns >= length))
            continue;
        most = end - start;
        length = e->end_ns - e->start_ns;
        gap->call = trace->names[e->name];
    }
    gap->call_s = 1e-9 * (double)most;
    if ((double)most < IN_CALL * (double)(to - from))
        gap->call = NULL;
}

void knee_find_longest_gap(const struct knee_account *account, struct knee_diagnosis *d)
{
    const struct knee_rank_account *rank = &account->ranks[0];
    for (size_t r = 1; r < account->rank_count; r++)
        rank = account->ranks[r].facts.gap_ns > rank->facts.gap_ns ? &account->ranks[r] : rank;
    int64_t from = rank->facts.gap_start_ns, to = from + rank->facts.gap_ns;
    d->gap.length_s = 1e-9 * (double)rank->facts.gap_ns;
    d->gap.label = rank->facts.gap_label;
    if (rank->facts.gap_ns == 0)
        return;
    d->gap.next = rank->facts.gap_next[0] ? rank->facts.gap_next : NULL;
    knee_find_gap_call(rank->trace, from, to, &d->gap);
}

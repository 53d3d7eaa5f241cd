/* SPDX-License-Identifier: MIT */
/* Calls of several ranks that are one collective: same communicator, same place on it. They end
 * together, so the one that ran shortest came last: its time is the wire, and what the others ran
 * longer they waited. */
#include "read/live/live_read.h"

#include "base/error.h"
#include "base/order.h"
#include "base/sort.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct place {
    uint32_t rank, call;
};

static const struct knee_live_call *call_at(const struct knee_live_rank *ranks, struct place p)
{
    return &ranks[p.rank].calls[p.call];
}

/* Sends and receives are not counted alike on both sides; what has no time says nothing. */
static bool can_meet(const struct knee_live_call *call)
{
    return call->dur_ns >= 0 && call->peer < 0 && call->seq >= 0 && call->n > 1;
}

static size_t count_places(const struct knee_live_rank *ranks, size_t count)
{
    size_t total = 0;
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < ranks[r].call_count; i++)
            total += can_meet(&ranks[r].calls[i]);
    return total;
}

/* By communicator, then sequence, then rank: three stable sorts, the last key first. */
static void sort_places(const struct knee_live_rank *ranks, size_t count, struct place *places,
                        struct place *copy, struct knee_sort_key *keys, size_t total)
{
    size_t n = 0;
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < ranks[r].call_count; i++)
            if (can_meet(&ranks[r].calls[i]))
                places[n++] = (struct place){(uint32_t)r, (uint32_t)i};
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < total; i++) {
            const struct knee_live_call *call = call_at(ranks, places[i]);
            keys[i] = (struct knee_sort_key){pass ? call->comm : (uint64_t)call->seq, i};
        }
        knee_sort(keys, keys + total, total);
        for (size_t i = 0; i < total; i++)
            copy[i] = places[keys[i].row];
        memcpy(places, copy, total * sizeof *places);
    }
}

static bool together(const struct knee_live_call *a, const struct knee_live_call *b)
{
    return a->comm == b->comm && a->seq == b->seq && strcmp(a->op, b->op) == 0;
}

/* What the member in the middle ran, the later half's first where there are two: of two ranks the
 * one that waited. One that came early does not make the others late. */
static int64_t usual_of(const struct knee_live_rank *ranks, const struct place *places, size_t n,
                        int64_t *room)
{
    for (size_t i = 0; i < n; i++)
        room[i] = call_at(ranks, places[i])->dur_ns;
    qsort(room, n, sizeof *room, knee_ascending_whole);
    return room[n / 2];
}

/* places[0] to places[n - 1] are the members; there is room for as many durations. */
static void meet(struct knee_live_rank *ranks, const struct place *places, size_t n, int64_t *room,
                 struct knee_live_joined *out)
{
    size_t last = 0;
    int64_t usual_ns = usual_of(ranks, places, n, room);
    const struct knee_live_call *first = call_at(ranks, places[0]);
    struct knee_live_meeting m = {.comm = first->comm,
                                  .seq = first->seq,
                                  .step = first->step,
                                  .bytes = first->bytes,
                                  .members = (uint32_t)n};
    for (size_t i = 1; i < n; i++)
        if (call_at(ranks, places[i])->dur_ns < call_at(ranks, places[last])->dur_ns)
            last = i;
    m.last = places[last].rank;
    m.last_call = places[last].call;
    m.wire_ns = call_at(ranks, places[last])->dur_ns;
    for (size_t i = 0; i < n; i++) {
        struct knee_live_call *call = &ranks[places[i].rank].calls[places[i].call];
        call->wait_ns = call->dur_ns - m.wire_ns;
        call->late_ns = call->dur_ns < usual_ns ? usual_ns - call->dur_ns : 0;
        m.longest_ns = call->dur_ns > m.longest_ns ? call->dur_ns : m.longest_ns;
        int64_t *sum = &out->wait_ns[places[i].rank];
        *sum = *sum > INT64_MAX - call->wait_ns ? INT64_MAX : *sum + call->wait_ns;
    }
    out->last[m.last]++;
    out->meetings[out->count++] = m;
}

static void meet_all(struct knee_live_rank *ranks, const struct place *places, size_t total,
                     int64_t *room, struct knee_live_joined *out)
{
    for (size_t i = 0, next; i < total; i = next) {
        const struct knee_live_call *first = call_at(ranks, places[i]);
        for (next = i + 1; next < total && together(first, call_at(ranks, places[next]));)
            next++;
        bool twice = false; /* a process that restarted: its two lives cannot be distinguished */
        for (size_t k = i + 1; k < next; k++)
            twice |= call_at(ranks, places[k])->rank == call_at(ranks, places[k - 1])->rank;
        if (!twice && (int64_t)(next - i) == first->n)
            meet(ranks, places + i, next - i, room, out);
        else
            out->partial++;
    }
}

knee_status knee_live_join(struct knee_live_rank *ranks, size_t count,
                           const struct knee_alloc *alloc, struct knee_live_joined *out,
                           struct knee_err *err)
{
    size_t total = count_places(ranks, count);
    struct knee_live_joined joined = {.alloc = alloc};
    struct place *places = knee_resize(alloc, NULL, 2 * (total + 1) * sizeof *places);
    struct knee_sort_key *keys = knee_resize(alloc, NULL, 2 * (total + 1) * sizeof *keys);
    int64_t *room = knee_resize(alloc, NULL, (total + 1) * sizeof *room);
    joined.meetings = knee_resize(alloc, NULL, (total + 1) * sizeof *joined.meetings);
    joined.wait_ns = knee_zeroed(alloc, (count + 1) * sizeof *joined.wait_ns);
    joined.last = knee_zeroed(alloc, (count + 1) * sizeof *joined.last);
    bool good = places && keys && room && joined.meetings && joined.wait_ns && joined.last;
    if (good) {
        sort_places(ranks, count, places, places + total + 1, keys, total);
        meet_all(ranks, places, total, room, &joined);
    }
    knee_resize(alloc, places, 0);
    knee_resize(alloc, keys, 0);
    knee_resize(alloc, room, 0);
    if (!good) {
        knee_live_joined_release(&joined);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    }
    *out = joined;
    return KNEE_OK;
}

void knee_live_joined_release(struct knee_live_joined *joined)
{
    knee_resize(joined->alloc, joined->meetings, 0);
    knee_resize(joined->alloc, joined->wait_ns, 0);
    knee_resize(joined->alloc, joined->last, 0);
    memset(joined, 0, sizeof *joined);
}

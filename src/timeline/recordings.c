/* SPDX-License-Identifier: MIT */
/*
 * Files of one rank that begin or end at the same nanosecond are one recording, of which the one
 * with most work is kept. Files of one rank at other times are recordings of several runs (or of
 * several cycles of a profiler), and so are files that state other world sizes: the k-th recording
 * of each rank belongs to the k-th run, whatever the clocks of hosts say.
 */
#include "timeline/recordings.h"

#include "base/error.h"
#include "base/order.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* What distinguishes one trace from another. */
struct stub {
    size_t row, work, turn;
    int64_t world, rank; /* rank -1: it does not say */
    bool laid_out;       /* all such recordings begin at the same time */
    int64_t start_ns, end_ns;
};

static struct stub stub_of(const struct knee_trace *trace, size_t row)
{
    struct stub stub = {
        .row = row, .world = trace->world_size, .rank = -1, .laid_out = trace->laid_out};
    for (size_t r = 0; r < trace->rank_count; r++) {
        const struct knee_rank *rank = &trace->ranks[r];
        int64_t start = rank->start_ns + trace->base_ns, end = rank->end_ns + trace->base_ns;
        if (rank->work == 0)
            continue;
        stub.start_ns = stub.work == 0 || start < stub.start_ns ? start : stub.start_ns;
        stub.end_ns = stub.work == 0 || end > stub.end_ns ? end : stub.end_ns;
        stub.work += rank->work;
    }
    /* Chakra names files by their rank; without collectives the name of the file is enough */
    bool named = trace->rank_count == 1 && (trace->ranks[0].call_count == 0 ||
                                            (trace->format && !strcmp(trace->format, "chakra")));
    if ((trace->rank_stated || named) && trace->rank_count == 1)
        stub.rank = trace->rank;
    return stub;
}

/* Those of one rank together, by time, the one with most work first. */
KNEE_SORT(by_rank, struct stub,
          KNEE_THEN(KNEE_UP(world),
                    KNEE_THEN(KNEE_UP(rank), KNEE_THEN(KNEE_UP(start_ns),
                                                       KNEE_THEN(KNEE_DOWN(work), KNEE_UP(row))))))

/* Files that do not say their rank are the same only if everything is. */
static bool is_repeat(const struct stub *a, const struct stub *b)
{
    if (a->work == 0 || b->work == 0 || a->world != b->world || a->rank != b->rank)
        return false;
    bool start = a->start_ns == b->start_ns, end = a->end_ns == b->end_ns;
    return a->rank >= 0 && !a->laid_out ? start || end : start && end && a->work == b->work;
}

/* Repeats are next to what they repeat; `turn` counts the recordings of a rank. */
static void find_repeats(struct stub *stubs, size_t count, struct knee_recording *out)
{
    size_t kept = 0; /* the last one that does not repeat another */
    for (size_t i = 0; i < count; i++) {
        bool same_rank = i && stubs[i].world == stubs[kept].world &&
                         stubs[i].rank == stubs[kept].rank && stubs[i].rank >= 0;
        out[stubs[i].row] = (struct knee_recording){.same_as = SIZE_MAX};
        stubs[i].turn = same_rank ? stubs[kept].turn : 0;
        if (i && is_repeat(&stubs[kept], &stubs[i])) {
            out[stubs[i].row].same_as = stubs[kept].row;
            continue;
        }
        stubs[i].turn += same_rank && stubs[i].work > 0;
        kept = i;
    }
}

/* A job for every world size and turn. Files that state no world size belong to the only one. */
static size_t number_jobs(const struct stub *stubs, size_t count, struct knee_recording *out)
{
    size_t first = 0, jobs = 0;
    while (first < count && stubs[first].world < 0)
        first++;
    for (size_t i = first, next; i < count; i = next) {
        size_t turns = 0;
        for (next = i; next < count && stubs[next].world == stubs[i].world; next++) {
            out[stubs[next].row].job = jobs + stubs[next].turn;
            turns = stubs[next].turn > turns ? stubs[next].turn : turns;
        }
        jobs += turns + 1;
    }
    size_t unstated = jobs == 0 || jobs > 1 ? jobs : 0;
    for (size_t i = 0; i < first; i++)
        out[stubs[i].row].job = unstated + stubs[i].turn;
    size_t most = jobs;
    for (size_t i = 0; i < first; i++)
        most = unstated + stubs[i].turn + 1 > most ? unstated + stubs[i].turn + 1 : most;
    return most ? most : 1;
}

knee_status knee_tell_recordings(const struct knee_trace *traces, size_t count,
                                 const struct knee_alloc *alloc, struct knee_recording *out,
                                 size_t *jobs, struct knee_err *err)
{
    struct stub *stubs = knee_resize(alloc, NULL, (count + 1) * sizeof *stubs);
    if (!stubs)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the list of traces");
    for (size_t i = 0; i < count; i++)
        stubs[i] = stub_of(&traces[i], i);
    if (count > 1)
        qsort(stubs, count, sizeof *stubs, by_rank);
    find_repeats(stubs, count, out);
    *jobs = number_jobs(stubs, count, out);
    knee_resize(alloc, stubs, 0);
    return KNEE_OK;
}

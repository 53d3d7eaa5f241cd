/* SPDX-License-Identifier: MIT */
/*
 * Does another process use the GPU? Processes take turns of milliseconds, and a kernel that is
 * stopped for another's turn seems to run meanwhile. So a few kernels of a step take far longer
 * than the same kernel at the same place of another step, a different one each time, while all
 * others take as long as ever. Where shapes change from step to step, most kernels change together.
 */
#include "timeline/account.h"

#include "base/order.h"
#include "base/text.h"

#include <string.h>

#define LEAST_HIT_NS KNEE_STOPPED_NS /* longer than at other times ... */
#define HIT          2               /* ... and so many times as long */
#define MUCH_HIT     0.1             /* of kernel time */
#define VARIES       1.5
#define MUCH_VARIES  0.1 /* of kernel time */

/* Per name: how often in this step, how often in every step (0: it differs), and where its least
 * times begin. */
struct places {
    uint32_t *seen, *every, *first;
    int64_t *least_ns;
    size_t names;
};

struct sums {
    int64_t all_ns, hit_ns, varies_ns;
    int64_t least_ns, least_hit_ns; /* of this step: least times of all places, and of those hit */
    bool changes;                   /* most of a step is hit: it is another batch */
};

static size_t first_span(const struct knee_rank *rank, int64_t ns)
{
    size_t low;
    KNEE_BISECT(low, rank->span_count, rank->spans[low].start_ns < ns);
    return low;
}

/* Beside other work a kernel may wait for that. */
static bool is_alone(const struct knee_rank *rank, size_t span)
{
    const struct knee_span *s = &rank->spans[span];
    return (span == 0 || s[-1].end_ns <= s->start_ns) &&
           (span + 1 == rank->span_count || s[1].start_ns >= s->end_ns);
}

static void count_names(const struct knee_rank *rank, size_t from, size_t to, struct places *p)
{
    memset(p->seen, 0, p->names * sizeof *p->seen);
    for (size_t i = from; i < to; i++)
        p->seen[rank->spans[i].name]++;
}

/* What a kernel took against the least at its place. */
static void add(const struct knee_rank *rank, size_t span, int64_t least_ns, struct sums *sums)
{
    int64_t ns = rank->spans[span].end_ns - rank->spans[span].start_ns;
    sums->all_ns = knee_add_ns(sums->all_ns, ns);
    bool hit = ns - least_ns >= LEAST_HIT_NS && ns / HIT >= least_ns;
    sums->least_ns = knee_add_ns(sums->least_ns, least_ns);
    sums->least_hit_ns = knee_add_ns(sums->least_hit_ns, hit ? least_ns : 0);
    if (hit)
        sums->hit_ns = knee_add_ns(sums->hit_ns, is_alone(rank, span) ? ns - least_ns : 0);
    else if ((double)ns > VARIES * (double)least_ns)
        sums->varies_ns = knee_add_ns(sums->varies_ns, ns);
}

/* Goes over a step: finds the least times, or with `sums` compares with them. */
static void visit(const struct knee_rank *rank, size_t from, size_t to, struct places *p,
                  struct sums *sums)
{
    memset(p->seen, 0, p->names * sizeof *p->seen);
    for (size_t i = from; i < to; i++) {
        const struct knee_span *span = &rank->spans[i];
        if (!p->every[span->name] || span->kind != KNEE_SPAN_COMPUTE)
            continue;
        int64_t *least = &p->least_ns[p->first[span->name] + p->seen[span->name]++];
        int64_t ns = span->end_ns - span->start_ns;
        if (sums)
            add(rank, i, *least, sums);
        else if (ns < *least)
            *least = ns;
    }
}

/* Names that are as often in every complete step. Returns how many places they have in it. */
static size_t find_places(const struct knee_rank *rank, const struct knee_outcome *outcome,
                          struct places *p)
{
    size_t complete = 0, places = 0;
    for (size_t s = 0; s < outcome->step_count; s++) {
        const struct knee_step_account *step = &outcome->steps[s];
        if (!step->complete)
            continue;
        count_names(rank, first_span(rank, step->start_ns),
                    first_span(rank, step->start_ns + step->ledger.window_ns), p);
        for (size_t n = 0; n < p->names; n++)
            p->every[n] = complete == 0 || p->every[n] == p->seen[n] ? p->seen[n] : 0;
        complete++;
    }
    for (size_t n = 0; n < p->names; n++) {
        p->first[n] = (uint32_t)places;
        places += p->every[n];
    }
    return complete > 1 ? places : 0;
}

bool knee_find_contention(const struct knee_rank_account *rank, const struct knee_outcome *outcome,
                          const struct knee_alloc *alloc, struct knee_rank_facts *facts)
{
    int64_t *hit_ns = &facts->spent_ns[KNEE_SPENT_STOPPED];
    struct places p = {.names = rank->trace->name_count};
    struct sums sums = {0};
    int64_t all_ns = 0, long_ns = *hit_ns;
    for (int k = 0; k < KNEE_KERNEL_KINDS; k++)
        all_ns = knee_add_ns(all_ns, facts->kernels[k].total_ns);
    *hit_ns = 0;
    if ((double)long_ns < MUCH_HIT * (double)all_ns)
        return true;
    uint32_t *room = knee_resize(alloc, NULL, (3 * p.names + 1) * sizeof *room);
    if (!room)
        return false;
    p.seen = room;
    p.every = room + p.names;
    p.first = room + 2 * p.names;
    memset(room, 0, 3 * p.names * sizeof *room);
    size_t places = find_places(rank->source, outcome, &p);
    p.least_ns = places ? knee_resize(alloc, NULL, places * sizeof *p.least_ns) : NULL;
    for (size_t i = 0; i < places && p.least_ns; i++)
        p.least_ns[i] = INT64_MAX;
    for (size_t s = 0; p.least_ns && s < 2 * outcome->step_count; s++) {
        const struct knee_step_account *step = &outcome->steps[s % outcome->step_count];
        sums.least_ns = sums.least_hit_ns = 0;
        if (step->complete)
            visit(rank->source, first_span(rank->source, step->start_ns),
                  first_span(rank->source, step->start_ns + step->ledger.window_ns), &p,
                  s < outcome->step_count ? NULL : &sums);
        sums.changes = sums.changes || sums.least_hit_ns > sums.least_ns / 2;
    }
    if (!sums.changes && (double)sums.hit_ns >= MUCH_HIT * (double)sums.all_ns &&
        (double)sums.varies_ns <= MUCH_VARIES * (double)sums.all_ns)
        *hit_ns = sums.hit_ns;
    bool good = !places || p.least_ns;
    knee_resize(alloc, p.least_ns, 0);
    knee_resize(alloc, room, 0);
    return good;
}

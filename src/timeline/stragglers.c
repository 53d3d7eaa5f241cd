/* SPDX-License-Identifier: MIT */
/*
 * Who came last to each collective, how late, and why. For a rank that was last, what it did since
 * the collective before is compared, label by label, with what the others did in the same stretch:
 * the label in which it exceeds the others' median most is the cause.
 */
#include "timeline/account.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct lateness {
    int64_t start_ns; /* common clock */
    uint32_t rank;
    const int64_t *labels; /* of the stretch before */
};

struct scratch {
    struct lateness *members;
    size_t *next; /* per rank: its next meeting */
    int64_t *values;
    int64_t (*excess)[KNEE_LABELS]; /* per rank */
};

bool knee_find_stretches(const struct knee_rank_account *rank, const struct knee_rank_brief *task,
                         const struct knee_alloc *alloc, struct knee_outcome *out)
{
    const struct knee_rank *source = rank->source;
    size_t run = 0, size = (task->meeting_count + 1) * sizeof *out->stretches;
    int64_t since_ns = rank->start_ns; /* the end of the barriers before */
    out->stretches = knee_resize(alloc, NULL, size);
    if (!out->stretches)
        return false;
    memset(out->stretches, 0, size);
    for (size_t i = 0; i < task->meeting_count; i++) {
        const struct knee_span *span = &source->spans[source->calls[task->meetings[i].call].span];
        knee_sum_labels(rank, &run, since_ns, span->start_ns, out->stretches[i].label_ns);
        since_ns = span->end_ns > since_ns ? span->end_ns : since_ns;
    }
    out->stretch_count = task->meeting_count;
    return true;
}

static int ascending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static int64_t median_of(int64_t *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, ascending);
    return values[count / 2];
}

/* The labels that can make a rank late; waiting and transferring in other groups is their matter.
 */
static bool can_delay(int label)
{
    return label != KNEE_TRANSFER && label != KNEE_WAIT;
}

static void look_at(struct knee_account *account, const struct knee_between *between,
                    const struct knee_instance *instance, struct scratch *s)
{
    size_t last = 0;
    for (size_t i = 0; i < instance->count; i++) {
        const struct knee_member *member = &between->matches.members[instance->first + i];
        const struct knee_rank_account *rank = &account->ranks[member->rank];
        const struct knee_span *span = &rank->source->spans[rank->source->calls[member->call].span];
        const struct knee_outcome *outcome = &between->outcomes[member->rank];
        s->members[i] =
            (struct lateness){.rank = member->rank,
                              .start_ns = knee_common_time(rank, span->start_ns),
                              .labels = outcome->stretches[s->next[member->rank]++].label_ns};
        if (s->members[i].start_ns > s->members[last].start_ns)
            last = i;
    }
    const struct lateness *late = &s->members[last];
    size_t others = 0;
    for (size_t i = 0; i < instance->count; i++)
        if (i != last)
            s->values[others++] = s->members[i].start_ns;
    struct knee_straggler *straggler = &account->stragglers[late->rank];
    straggler->last_count++;
    straggler->lateness_ns += late->start_ns - median_of(s->values, others);
    for (int label = 0; label < KNEE_LABELS; label++) {
        others = 0;
        for (size_t i = 0; i < instance->count; i++)
            if (i != last)
                s->values[others++] = s->members[i].labels[label];
        s->excess[late->rank][label] += late->labels[label] - median_of(s->values, others);
    }
}

static int latest_first(const void *left, const void *right)
{
    const struct knee_straggler *a = left, *b = right;
    if (a->lateness_ns != b->lateness_ns)
        return a->lateness_ns < b->lateness_ns ? 1 : -1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static void name_causes(struct knee_account *account, const struct scratch *s)
{
    size_t kept = 0;
    for (size_t r = 0; r < account->rank_count; r++) {
        struct knee_straggler straggler = account->stragglers[r];
        straggler.cause = KNEE_IDLE;
        straggler.excess_ns = 0;
        for (int label = 0; label < KNEE_LABELS; label++)
            if (can_delay(label) && s->excess[r][label] > straggler.excess_ns) {
                straggler.excess_ns = s->excess[r][label];
                straggler.cause = (enum knee_label)label;
            }
        if (straggler.last_count)
            account->stragglers[kept++] = straggler;
    }
    account->straggler_count = kept;
    if (kept > 1)
        qsort(account->stragglers, kept, sizeof *account->stragglers, latest_first);
}

bool knee_find_stragglers(struct knee_account *account, const struct knee_between *between)
{
    const struct knee_alloc *alloc = account->alloc;
    const struct knee_matches *m = &between->matches;
    size_t ranks = account->rank_count + 1;
    struct scratch s = {
        .members = knee_resize(alloc, NULL, ranks * sizeof *s.members),
        .next = knee_resize(alloc, NULL, ranks * sizeof *s.next),
        .values = knee_resize(alloc, NULL, ranks * sizeof *s.values),
        .excess = knee_resize(alloc, NULL, ranks * sizeof *s.excess),
    };
    account->stragglers = knee_resize(alloc, NULL, ranks * sizeof *account->stragglers);
    bool good = s.members && s.next && s.values && s.excess && account->stragglers;
    if (good) {
        memset(account->stragglers, 0, ranks * sizeof *account->stragglers);
        memset(s.next, 0, ranks * sizeof *s.next);
        memset(s.excess, 0, ranks * sizeof *s.excess);
        for (size_t r = 0; r < account->rank_count; r++)
            account->stragglers[r].rank = r;
        for (size_t i = 0; i < m->order_count; i++)
            look_at(account, between, &m->instances[m->order[i].row], &s);
        name_causes(account, &s);
    }
    void *const all[] = {s.members, s.next, s.values, s.excess};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            knee_resize(alloc, all[i], 0);
    return good;
}

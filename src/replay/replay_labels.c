/* SPDX-License-Identifier: MIT */
/*
 * What the steps of a run are made of, straight from its tasks, for every row of an answer: the
 * same sets as an account has (compute C, communication M; exposed = M without C; wait before
 * transfer), without writing a timeline first. The tests compare both.
 */
#include "base/order.h"
#include "base/sort.h"
#include "base/text.h"
#include "replay/replay_plan.h"

#include <string.h>

/* A set of nanoseconds as intervals; settled they are in order, none touching. */
struct set {
    int64_t (*list)[2];
    size_t count;
    bool in_order;
};

enum kind { COMPUTE, TRANSFER, WAIT, COPY, SETS };

struct labeller {
    const struct knee_runner *runner;
    const int64_t *last_start; /* per meet */
    struct set sets[SETS];
    int64_t first, last; /* of the rank's work */
};

static inline void add(struct set *set, int64_t from, int64_t to)
{
    int64_t *last = (int64_t *)(set->list + set->count) - 2; /* one before the first is there */
    if (to <= from)
        return;
    if (from >= last[0] && from <= last[1]) {
        last[1] = to > last[1] ? to : last[1];
        return;
    }
    set->in_order = set->in_order && from > last[0];
    set->list[set->count][0] = from;
    set->list[set->count++][1] = to;
}

/* Sorts what is not in order, and joins what touches. */
static bool settle(struct set *set, const struct knee_alloc *alloc)
{
    size_t kept = 0;
    if (set->in_order)
        return true;
    struct knee_sort_key *keys = knee_resize(alloc, NULL, 2 * set->count * sizeof *keys);
    int64_t(*sorted)[2] = knee_resize(alloc, NULL, set->count * sizeof *sorted);
    bool good = keys && sorted;
    for (size_t i = 0; good && i < set->count; i++)
        keys[i] = (struct knee_sort_key){knee_sort_signed(set->list[i][0]), i};
    if (good)
        knee_sort(keys, keys + set->count, set->count);
    for (size_t i = 0; good && i < set->count; i++)
        memcpy(sorted[i], set->list[keys[i].row], sizeof *sorted);
    for (size_t i = 0; good && i < set->count; i++) {
        if (kept && sorted[i][0] <= set->list[kept - 1][1]) {
            if (sorted[i][1] > set->list[kept - 1][1])
                set->list[kept - 1][1] = sorted[i][1];
        } else {
            memcpy(set->list[kept++], sorted[i], sizeof *sorted);
        }
    }
    knee_resize(alloc, keys, 0);
    knee_resize(alloc, sorted, 0);
    set->count = kept;
    set->in_order = true;
    return good;
}

static int64_t size_of(const struct set *set)
{
    int64_t sum = 0;
    for (size_t i = 0; i < set->count; i++)
        sum += set->list[i][1] - set->list[i][0];
    return sum;
}

/* How much of a set is outside another one; both are settled. */
static int64_t size_outside(const struct set *set, const struct set *other)
{
    int64_t sum = 0;
    size_t at = 0;
    for (size_t i = 0; i < set->count; i++) {
        int64_t from = set->list[i][0], to = set->list[i][1];
        size_t low, left = other->count - at;
        KNEE_BISECT(low, left, other->list[at + low][1] <= from);
        at += low;
        sum += to - from;
        for (size_t k = at; k < other->count && other->list[k][0] < to; k++) {
            int64_t begin = other->list[k][0] > from ? other->list[k][0] : from;
            int64_t end = other->list[k][1] < to ? other->list[k][1] : to;
            sum -= end - begin;
        }
    }
    return sum;
}

/* The union, not settled. */
static bool join(struct set *into, const struct set *with, const struct knee_alloc *alloc)
{
    for (size_t i = 0; i < with->count; i++)
        add(into, with->list[i][0], with->list[i][1]);
    return settle(into, alloc);
}

static void label_comm(struct labeller *l, const struct knee_walk *w, uint32_t meet)
{
    int64_t come = w->start_ns;
    if (meet)
        come = l->last_start[meet - 1] < w->end_ns ? l->last_start[meet - 1] : w->end_ns;
    add(&l->sets[WAIT], w->start_ns, come);
    add(&l->sets[TRANSFER], come > w->start_ns ? come : w->start_ns, w->end_ns);
}

/* The nodes of a task follow each other. */
static void label_task(struct labeller *l, size_t task)
{
    struct knee_walk w = knee_walk_task(l->runner, task);
    uint32_t meet = l->runner->tasks.task[task].meet;
    struct set compute = l->sets[COMPUTE];
    int64_t first = INT64_MAX, last = INT64_MIN;
    while (knee_walk_next(&w)) {
        const struct knee_beat *beat = &w.beats[w.at - 1];
        first = first == INT64_MAX ? w.start_ns : first;
        last = w.end_ns;
        if (beat->kind == KNEE_NODE_COMPUTE || beat->both)
            add(&compute, w.start_ns, w.end_ns);
        if (beat->kind == KNEE_NODE_COPY)
            add(&l->sets[COPY], w.start_ns, w.end_ns);
        else if (beat->kind == KNEE_NODE_COMM)
            label_comm(l, &w, meet);
    }
    l->sets[COMPUTE] = compute;
    l->first = first < l->first ? first : l->first;
    l->last = last > l->last ? last : l->last;
}

/* The labels of one rank: each set gets what those before it have left. */
static bool label_rank(struct labeller *l, size_t rank, int64_t *label_ns)
{
    static const enum knee_label labels[SETS] = {KNEE_COMPUTE, KNEE_TRANSFER, KNEE_WAIT, KNEE_COPY};
    const struct knee_run_plan *p = l->runner->used;
    const struct knee_graph *g = l->runner->ran;
    size_t lane = (size_t)g->ranks[rank].first_lane, lanes = (size_t)g->ranks[rank].lanes;
    struct set *compute = &l->sets[COMPUTE], *others = &l->sets[TRANSFER];
    int64_t before = 0;
    l->first = INT64_MAX, l->last = INT64_MIN;
    for (int k = 0; k < SETS; k++) {
        l->sets[k].count = 0;
        l->sets[k].in_order = true;
    }
    for (int32_t i = p->lane_first[lane]; i < p->lane_first[lane + lanes]; i++)
        if (l->runner->tasks.task[p->by_lane[i]].kind != KNEE_TASK_HOST)
            label_task(l, (size_t)p->by_lane[i]);
    if (!settle(compute, g->alloc) || !settle(others, g->alloc))
        return false;
    int64_t computed = size_of(compute);
    label_ns[KNEE_COMPUTE] += computed;
    for (int k = TRANSFER; k < SETS; k++) {
        if (k > TRANSFER && !join(others, &l->sets[k], g->alloc))
            return false;
        int64_t all = size_outside(others, compute);
        label_ns[labels[k]] += all - before;
        before = all;
    }
    if (l->last > l->first) /* or idle: the GPU had nothing to do */
        label_ns[KNEE_HOST] += l->last - l->first - computed - before;
    return true;
}

static void find_last_starts(const struct knee_runner *runner, int64_t *last)
{
    for (size_t i = 0; i < runner->ran->meet_count; i++)
        last[i] = INT64_MIN;
    for (size_t t = 0; t < runner->tasks.count; t++) {
        uint32_t meet = runner->tasks.task[t].meet;
        if (!meet)
            continue;
        struct knee_walk w = knee_walk_task(runner, t); /* of one node */
        if (w.start_ns > last[meet - 1])
            last[meet - 1] = w.start_ns;
    }
}

bool knee_runner_label(struct knee_runner *runner, struct knee_step *out)
{
    const struct knee_graph *g = runner->ran;
    size_t n = g->count + 2, meets = g->meet_count + 1;
    int64_t label_ns[KNEE_LABELS] = {0};
    struct labeller l = {.runner = runner};
    /* all but compute join the first of them in the end */
    char *memory = knee_run_reserve(&runner->labels, g->alloc,
                                    meets * sizeof(int64_t) + 6 * n * sizeof *l.sets[0].list);
    if (!memory)
        return false;
    int64_t(*lists)[2] = (int64_t(*)[2])memory;
    static const size_t sizes[SETS] = {1, 3, 1, 1};
    for (int k = 0; k < SETS; k++) {
        lists[0][0] = lists[0][1] = INT64_MIN; /* touches nothing */
        l.sets[k].list = lists + 1;
        lists += sizes[k] * n;
    }
    int64_t *last_start = (int64_t *)lists;
    find_last_starts(runner, last_start);
    l.last_start = last_start;
    bool good = true;
    for (size_t r = 0; good && r < g->rank_count; r++)
        good = label_rank(&l, r, label_ns);
    memset(out, 0, sizeof *out);
    for (int k = 0; k < KNEE_LABELS; k++) {
        out->label_s[k] = 1e-9 * (double)label_ns[k] / g->ranks[0].steps / (double)g->rank_count;
        out->wall_s += out->label_s[k];
    }
    return good;
}

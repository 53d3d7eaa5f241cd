/* SPDX-License-Identifier: MIT */
/*
 * What the steps of a run are made of, straight from its nodes, for every row of an answer: the
 * same sets as an account has (compute C, communication M; exposed = M without C; wait before
 * transfer), without writing a timeline first. The tests compare both.
 */
#include "base/sort.h"
#include "base/text.h"
#include "replay/replayed_timeline.h"

#include <string.h>

/* A set of nanoseconds as intervals in order, none touching. */
struct set {
    int64_t (*list)[2];
    size_t count;
    bool in_order;
};

enum kind { COMPUTE, TRANSFER, WAIT, COPY, SETS };

struct labeller {
    const struct knee_graph *g;
    const struct knee_replay_times *times;
    const int64_t *last_start; /* per meet */
    struct set sets[SETS];
};

static void add(struct set *set, int64_t from, int64_t to)
{
    if (to <= from)
        return;
    if (set->count && from < set->list[set->count - 1][0])
        set->in_order = false;
    set->list[set->count][0] = from;
    set->list[set->count++][1] = to;
}

/* Sorts what is not in order, and joins what touches. */
static bool settle(struct set *set, const struct knee_alloc *alloc)
{
    size_t kept = 0;
    if (!set->in_order) {
        struct knee_sort_key *keys = knee_resize(alloc, NULL, 2 * set->count * sizeof *keys);
        int64_t(*sorted)[2] = knee_resize(alloc, NULL, set->count * sizeof *sorted);
        bool good = keys && sorted;
        for (size_t i = 0; good && i < set->count; i++)
            keys[i] = (struct knee_sort_key){knee_sort_signed(set->list[i][0]), i};
        if (good)
            knee_sort(keys, keys + set->count, set->count);
        for (size_t i = 0; good && i < set->count; i++)
            memcpy(sorted[i], set->list[keys[i].row], sizeof *sorted);
        if (good)
            memcpy(set->list, sorted, set->count * sizeof *sorted);
        knee_resize(alloc, keys, 0);
        knee_resize(alloc, sorted, 0);
        if (!good)
            return false;
    }
    for (size_t i = 0; i < set->count; i++) {
        if (kept && set->list[i][0] <= set->list[kept - 1][1]) {
            if (set->list[i][1] > set->list[kept - 1][1])
                set->list[kept - 1][1] = set->list[i][1];
        } else {
            memmove(set->list[kept++], set->list[i], sizeof *set->list);
        }
    }
    set->count = kept;
    set->in_order = true;
    return true;
}

static int64_t size_of(const struct set *set)
{
    int64_t sum = 0;
    for (size_t i = 0; i < set->count; i++)
        sum += set->list[i][1] - set->list[i][0];
    return sum;
}

/* The union of two settled sets, merged from their ends. */
static bool join(struct set *into, const struct set *with, const struct knee_alloc *alloc)
{
    size_t i = into->count, j = with->count;
    into->count += with->count;
    for (size_t k = into->count; j > 0; k--) {
        bool own = i > 0 && into->list[i - 1][0] > with->list[j - 1][0];
        memcpy(into->list[k - 1], own ? into->list[--i] : with->list[--j], sizeof *into->list);
    }
    return settle(into, alloc);
}

static void sort_node(struct labeller *l, size_t node)
{
    const struct knee_node *n = &l->g->nodes[node];
    int64_t start = l->times->start_ns[node], end = l->times->end_ns[node], come = start;
    switch (n->kind) {
    case KNEE_NODE_COMPUTE: add(&l->sets[COMPUTE], start, end); break;
    case KNEE_NODE_COPY: add(&l->sets[COPY], start, end); break;
    case KNEE_NODE_COMM:
        if (n->meet)
            come = l->last_start[n->meet - 1] < end ? l->last_start[n->meet - 1] : end;
        add(&l->sets[WAIT], start, come);
        add(&l->sets[TRANSFER], come > start ? come : start, end);
        if (n->both)
            add(&l->sets[COMPUTE], start, end);
        break;
    default: break;
    }
}

/* The labels of one rank: each set gets what those before it have left. */
static bool label_rank(struct labeller *l, const int32_t *nodes, size_t count, int64_t *label_ns)
{
    const struct knee_alloc *alloc = l->g->alloc;
    static const enum knee_label labels[SETS] = {KNEE_COMPUTE, KNEE_TRANSFER, KNEE_WAIT, KNEE_COPY};
    int64_t first = INT64_MAX, last = INT64_MIN, before = 0;
    for (int k = 0; k < SETS; k++) {
        l->sets[k].count = 0;
        l->sets[k].in_order = true;
    }
    for (size_t i = 0; i < count; i++) {
        size_t node = (size_t)nodes[i];
        if (l->g->nodes[node].kind == KNEE_NODE_HOST || l->g->nodes[node].gone)
            continue;
        first = l->times->start_ns[node] < first ? l->times->start_ns[node] : first;
        last = l->times->end_ns[node] > last ? l->times->end_ns[node] : last;
        sort_node(l, node);
    }
    for (int k = 0; k < SETS; k++) {
        if (!settle(&l->sets[k], alloc) || (k > 0 && !join(&l->sets[COMPUTE], &l->sets[k], alloc)))
            return false;
        int64_t all = size_of(&l->sets[COMPUTE]); /* the union so far */
        label_ns[labels[k]] += all - before;
        before = all;
    }
    if (last > first)
        label_ns[KNEE_HOST] += last - first - before; /* or idle: the GPU had nothing to do */
    return true;
}

static int64_t *find_last_starts(const struct knee_graph *g, const struct knee_replay_times *times)
{
    int64_t *last = knee_resize(g->alloc, NULL, (g->meet_count + 1) * sizeof *last);
    for (size_t i = 0; last && i < g->meet_count; i++)
        last[i] = INT64_MIN;
    for (size_t i = 0; last && i < g->count; i++) {
        const struct knee_node *n = &g->nodes[i];
        if (n->meet && !n->gone && times->start_ns[i] > last[n->meet - 1])
            last[n->meet - 1] = times->start_ns[i];
    }
    return last;
}

/* Nodes rank by rank: *at[r] is where rank r's begin. */
static int32_t *list_by_rank(const struct knee_graph *g, size_t *at)
{
    int32_t *nodes = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *nodes);
    memset(at, 0, (g->rank_count + 2) * sizeof *at);
    for (size_t i = 0; i < g->count; i++)
        at[g->nodes[i].rank + 2]++;
    for (size_t r = 2; r < g->rank_count + 2; r++)
        at[r] += at[r - 1];
    for (size_t i = 0; nodes && i < g->count; i++)
        nodes[at[g->nodes[i].rank + 1]++] = (int32_t)i;
    return nodes;
}

bool knee_label_replay(const struct knee_graph *g, const struct knee_replay_times *times,
                       struct knee_step *out)
{
    struct labeller l = {.g = g, .times = times};
    size_t *at = knee_resize(g->alloc, NULL, (g->rank_count + 2) * sizeof *at);
    int32_t *nodes = at ? list_by_rank(g, at) : NULL;
    int64_t *last_start = find_last_starts(g, times), label_ns[KNEE_LABELS] = {0};
    bool good = at && nodes && last_start;
    l.last_start = last_start;
    for (int k = 0; k < SETS; k++) { /* all join the first in the end */
        l.sets[k].list =
            knee_resize(g->alloc, NULL, (k ? 2 : 8) * (g->count + 1) * sizeof *l.sets[k].list);
        good = good && l.sets[k].list;
    }
    for (size_t r = 0; good && r < g->rank_count; r++)
        good = label_rank(&l, nodes + at[r], at[r + 1] - at[r], label_ns);
    memset(out, 0, sizeof *out);
    for (int k = 0; k < KNEE_LABELS; k++) {
        out->label_s[k] = 1e-9 * (double)label_ns[k] / g->ranks[0].steps / (double)g->rank_count;
        out->wall_s += out->label_s[k];
    }
    void *const all[] = {
        at, nodes, last_start, l.sets[0].list, l.sets[1].list, l.sets[2].list, l.sets[3].list};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(g->alloc, all[i], 0);
    return good;
}

/* SPDX-License-Identifier: MIT */
/*
 * Ranks that share one GPU without running at once (several processes, no MPS) take turns on it: n
 * of them that have work there get 1/n each, work that only waits for others included. Whether they
 * do is seen in their kernels, which start in runs, or in their collectives, whose members end
 * milliseconds apart instead of together. Then what a kernel needs alone is the part of its time
 * that was its own.
 */
#include "base/order.h"
#include "base/sort.h"
#include "base/text.h"
#include "replay/own_price.h"
#include "replay/replay_graph.h"
#include "timeline/kinds.h"

#include <string.h>

enum {
    TURN_NS = 200000 /* a gap that can be the turn of another process */
};

/* From here on so many ranks hold the GPU; own_ns is what one of them has had of it by then. */
struct change {
    int64_t at_ns;
    double own_ns;
    int32_t ranks;
};

/* +1 and -1 at the starts and ends of the times in which each rank has work there. */
static size_t list_changes(const struct knee_graph *g, struct change *changes)
{
    size_t count = 0;
    for (size_t r = 0; r < g->rank_count; r++) {
        int64_t until = INT64_MIN;
        for (int32_t i = g->ranks[r].first; i < g->ranks[r].first + g->ranks[r].count; i++) {
            const struct knee_node *n = &g->nodes[i];
            if ((n->kind != KNEE_NODE_COMPUTE && n->kind != KNEE_NODE_COMM) || n->end_ns <= until)
                continue; /* nodes of GPU work are in order of their starts */
            if (n->start_ns - n->turn_ns > until) {
                changes[count++] = (struct change){n->start_ns - n->turn_ns, 0, 1};
                changes[count++] = (struct change){n->end_ns, 0, -1};
            } else {
                changes[count - 1].at_ns = n->end_ns;
            }
            until = n->end_ns;
        }
    }
    return count;
}

static bool put_in_order(const struct knee_graph *g, struct change *changes, size_t count)
{
    struct knee_sort_key *keys = knee_resize(g->alloc, NULL, 2 * (count + 1) * sizeof *keys);
    struct change *sorted = knee_resize(g->alloc, NULL, (count + 1) * sizeof *sorted);
    bool good = keys && sorted;
    for (size_t i = 0; good && i < count; i++)
        keys[i] = (struct knee_sort_key){knee_sort_signed(changes[i].at_ns), i};
    if (good)
        knee_sort(keys, keys + count, count);
    for (size_t i = 0; good && i < count; i++)
        sorted[i] = changes[keys[i].row];
    for (size_t i = 0; good && i < count; i++) {
        changes[i] = sorted[i];
        if (i == 0)
            continue;
        double passed = (double)(changes[i].at_ns - changes[i - 1].at_ns);
        int32_t ranks = changes[i - 1].ranks;
        changes[i].own_ns = changes[i - 1].own_ns + (ranks > 1 ? passed / ranks : passed);
        changes[i].ranks += ranks;
    }
    knee_resize(g->alloc, keys, 0);
    knee_resize(g->alloc, sorted, 0);
    return good;
}

/* What one rank had of the GPU up to `ns`. */
static double own_until(const struct change *changes, size_t count, int64_t ns)
{
    size_t low;
    KNEE_BISECT(low, count, changes[low].at_ns <= ns);
    if (low == 0)
        return 0;
    const struct change *last = &changes[low - 1];
    double passed = (double)(ns - last->at_ns);
    return last->own_ns + (last->ranks > 1 ? passed / last->ranks : passed);
}

/* A kernel that nothing kept from starting waited for its turn: it had the GPU to share from when
 * it was ready. */
static void count_turns(struct knee_graph *g)
{
    for (size_t i = 0; i < g->count; i++) {
        struct knee_node *n = &g->nodes[i];
        if (n->kind != KNEE_NODE_COMPUTE || n->delay_ns < TURN_NS)
            continue;
        n->turn_ns = n->delay_ns;
        n->work_ns += (double)n->delay_ns;
        n->delay_ns = 0;
    }
}

/* Do collectives end apart, and do their times divide into turns of one length? Ranks that are
 * apart for another reason have no turns. */
static bool have_turns(struct knee_graph *g)
{
    struct knee_own_prices *prices = knee_resize(g->alloc, NULL, sizeof *prices);
    g->one_gpu = true;
    g->failed = !prices || !knee_own_prices_init(prices, g);
    bool turns = !g->failed && prices->turn_ns > 0;
    g->one_gpu = false;
    knee_resize(g->alloc, prices, 0);
    return turns;
}

bool knee_graph_find_shares(struct knee_graph *g)
{
    if (!knee_take_turns(g->account) && (!knee_on_one_device(g->account) || !have_turns(g)))
        return !g->failed;
    count_turns(g);
    struct change *changes = knee_resize(g->alloc, NULL, 2 * (g->count + 1) * sizeof *changes);
    size_t count = changes ? list_changes(g, changes) : 0;
    bool good = changes && put_in_order(g, changes, count);
    for (size_t i = 0; good && i < g->count; i++) {
        struct knee_node *n = &g->nodes[i];
        if (n->kind != KNEE_NODE_COMPUTE || n->end_ns <= n->start_ns)
            continue;
        int64_t ready = n->start_ns - n->turn_ns;
        double own = own_until(changes, count, n->end_ns) - own_until(changes, count, ready);
        n->share = own / (double)(n->end_ns - ready);
    }
    g->one_gpu = good;
    knee_resize(g->alloc, changes, 0);
    return good;
}

/* SPDX-License-Identifier: MIT */
#include "reach/exchange.h"

#include <math.h>
#include <string.h>

enum { TAG = 77, LATEST_TAG = 78 };

size_t knee_part(size_t count, size_t part, size_t parts)
{
    return count / parts * part + count % parts * part / parts;
}

static bool send_only(struct knee_runtime *rt, const void *data, size_t count, int to)
{
    struct knee_request *request = NULL;
    return rt->send_start(rt, data, count * sizeof(float), to, TAG, &request) &&
           rt->wait(rt, &request);
}

static bool receive_only(struct knee_runtime *rt, void *data, size_t count, int from)
{
    struct knee_request *request = NULL;
    return rt->receive_start(rt, data, count * sizeof(float), from, TAG, &request) &&
           rt->wait(rt, &request);
}

/* Both at once; either may be empty. */
struct sent {
    const float *data;
    size_t count;
    int to;
};

struct received {
    float *data;
    size_t count;
    int from;
};

static bool exchange(struct knee_runtime *rt, struct sent out, struct received in)
{
    struct knee_request *send = NULL, *receive = NULL;
    return rt->receive_start(rt, in.data, in.count * sizeof(float), in.from, TAG, &receive) &&
           rt->send_start(rt, out.data, out.count * sizeof(float), out.to, TAG, &send) &&
           rt->wait(rt, &receive) && rt->wait(rt, &send);
}

static void add(float *data, const float *more, size_t count)
{
    for (size_t i = 0; i < count; i++)
        data[i] += more[i];
}

/* Dissemination: in round k everyone tells the rank 2^k further on. That some are heard of twice
 * does not matter to a maximum. */
bool knee_exchange_latest(struct knee_runtime *rt, double *time_s)
{
    for (int far = 1; far < rt->size; far *= 2) {
        struct knee_request *send = NULL, *receive = NULL;
        double out = *time_s, in = 0;
        int to = (rt->rank + far) % rt->size, from = (rt->rank + rt->size - far) % rt->size;
        if (!rt->receive_start(rt, &in, sizeof in, from, LATEST_TAG, &receive) ||
            !rt->send_start(rt, &out, sizeof out, to, LATEST_TAG, &send) ||
            !rt->wait(rt, &receive) || !rt->wait(rt, &send))
            return false;
        *time_s = fmax(out, in);
    }
    return true;
}

/* ---- Ring ---- */

/* K-1 hops; after them rank r has the sum of part r. */
static bool ring_reduce_scatter(struct knee_runtime *rt, float *data, float *scratch, size_t count)
{
    size_t size = (size_t)rt->size, rank = (size_t)rt->rank;
    int next = (rt->rank + 1) % rt->size, before = (rt->rank + rt->size - 1) % rt->size;
    for (size_t hop = 1; hop < size; hop++) {
        size_t out = (rank + size - hop) % size, in = (rank + 2 * size - hop - 1) % size;
        size_t out_at = knee_part(count, out, size), in_at = knee_part(count, in, size);
        size_t in_count = knee_part(count, in + 1, size) - in_at;
        if (!exchange(rt,
                      (struct sent){data + out_at, knee_part(count, out + 1, size) - out_at, next},
                      (struct received){scratch, in_count, before}))
            return false;
        add(data + in_at, scratch, in_count);
    }
    return true;
}

/* K-1 hops; rank r brings part r. */
static bool ring_all_gather(struct knee_runtime *rt, float *data, float *scratch, size_t count)
{
    (void)scratch;
    size_t size = (size_t)rt->size, rank = (size_t)rt->rank;
    int next = (rt->rank + 1) % rt->size, before = (rt->rank + rt->size - 1) % rt->size;
    for (size_t hop = 0; hop + 1 < size; hop++) {
        size_t out = (rank + size - hop) % size, in = (rank + 2 * size - hop - 1) % size;
        size_t out_at = knee_part(count, out, size), in_at = knee_part(count, in, size);
        if (!exchange(
                rt, (struct sent){data + out_at, knee_part(count, out + 1, size) - out_at, next},
                (struct received){data + in_at, knee_part(count, in + 1, size) - in_at, before}))
            return false;
    }
    return true;
}

static bool ring_all_reduce(struct knee_runtime *rt, float *data, float *scratch, size_t count)
{
    return ring_reduce_scatter(rt, data, scratch, count) &&
           ring_all_gather(rt, data, scratch, count);
}

static double ring_half_hops(double ranks)
{
    return ranks - 1;
}

static double ring_hops(double ranks)
{
    return 2 * (ranks - 1);
}

static double ring_half_share(double ranks)
{
    return (ranks - 1) / ranks;
}

static double ring_share(double ranks)
{
    return 2 * (ranks - 1) / ranks;
}

/* ---- Tree: binomial, whole buffers ---- */

static bool tree_reduce(struct knee_runtime *rt, float *data, float *scratch, size_t count)
{
    for (int bit = 1; bit < rt->size; bit *= 2) {
        if (rt->rank & bit)
            return send_only(rt, data, count, rt->rank - bit);
        if (rt->rank + bit < rt->size) {
            if (!receive_only(rt, scratch, count, rt->rank + bit))
                return false;
            add(data, scratch, count);
        }
    }
    return true;
}

/* Who has it passes it on, to the farthest first. A send is done when the system has taken it, not
 * when it has arrived; the next must not share the link with it, so an empty message comes back,
 * but from the last. */
static bool tree_broadcast(struct knee_runtime *rt, float *data, float *scratch, size_t count)
{
    int bit = 1;
    while (bit < rt->size && !(rt->rank & bit))
        bit *= 2;
    if (rt->rank != 0 && (!receive_only(rt, data, count, rt->rank - bit) ||
                          (bit > 1 && !send_only(rt, data, 0, rt->rank - bit))))
        return false;
    for (bit /= 2; bit > 0; bit /= 2) {
        int child = rt->rank + bit;
        if (child < rt->size && (!send_only(rt, data, count, child) ||
                                 (bit > 1 && !receive_only(rt, scratch, 0, child))))
            return false;
    }
    return true;
}

static bool tree_all_reduce(struct knee_runtime *rt, float *data, float *scratch, size_t count)
{
    return tree_reduce(rt, data, scratch, count) && tree_broadcast(rt, data, scratch, count);
}

/* Messages in turn at the root's port. */
static double tree_share(double ranks)
{
    return ceil(log2(ranks));
}

static double tree_both(double ranks)
{
    return 2 * tree_share(ranks);
}

/* No path up has more messages than a rank below K has bits set. */
static double tree_reduce_hops(double ranks)
{
    return floor(log2(ranks));
}

/* The answers count. */
static double tree_broadcast_hops(double ranks)
{
    return 2 * tree_share(ranks) - 1;
}

static double tree_hops(double ranks)
{
    return tree_reduce_hops(ranks) + tree_broadcast_hops(ranks);
}

/* ---- Recursive doubling and halving-doubling: a power of two of ranks takes part ---- */

struct fold {
    int active; /* largest power of two that is not above the number of ranks */
    int place;  /* among the active; -1: handed its data over */
};

/* The rank at a place: of the first 2(K-active) ranks only the odd ones are active. */
static int rank_at(const struct knee_runtime *rt, const struct fold *fold, int place)
{
    int folded = rt->size - fold->active;
    return place < folded ? 2 * place + 1 : place + folded;
}

static bool fold_in(struct knee_runtime *rt, struct fold *fold, float *data, float *scratch,
                    size_t count)
{
    int folded;
    for (fold->active = 1; fold->active * 2 <= rt->size;)
        fold->active *= 2;
    folded = rt->size - fold->active;
    fold->place = rt->rank >= 2 * folded ? rt->rank - folded : rt->rank % 2 ? rt->rank / 2 : -1;
    if (rt->rank >= 2 * folded)
        return true;
    if (fold->place < 0)
        return send_only(rt, data, count, rt->rank + 1);
    if (!receive_only(rt, scratch, count, rt->rank - 1))
        return false;
    add(data, scratch, count);
    return true;
}

static bool fold_out(struct knee_runtime *rt, const struct fold *fold, float *data, size_t count)
{
    if (rt->rank >= 2 * (rt->size - fold->active))
        return true;
    return fold->place < 0 ? receive_only(rt, data, count, rt->rank + 1)
                           : send_only(rt, data, count, rt->rank - 1);
}

static bool doubling_all_reduce(struct knee_runtime *rt, float *data, float *scratch, size_t count)
{
    struct fold fold;
    if (!fold_in(rt, &fold, data, scratch, count))
        return false;
    for (int bit = 1; fold.place >= 0 && bit < fold.active; bit *= 2) {
        int other = rank_at(rt, &fold, fold.place ^ bit);
        if (!exchange(rt, (struct sent){data, count, other},
                      (struct received){scratch, count, other}))
            return false;
        add(data, scratch, count);
    }
    return fold_out(rt, &fold, data, count);
}

/* Elements [from, to) are this rank's after the halvings with distances down to `bit`. */
static void half_at(size_t count, const struct fold *fold, int bit, size_t *from, size_t *to)
{
    *from = 0;
    *to = count;
    for (int b = fold->active / 2; b >= bit && b > 0; b /= 2) {
        size_t middle = *from + (*to - *from) / 2;
        *(fold->place & b ? from : to) = middle;
    }
}

static bool halve(struct knee_runtime *rt, const struct fold *fold, float *data, float *scratch,
                  size_t count)
{
    size_t from = 0, to = count, mine_from, mine_to;
    for (int bit = fold->active / 2; bit > 0; bit /= 2, from = mine_from, to = mine_to) {
        int other = rank_at(rt, fold, fold->place ^ bit);
        half_at(count, fold, bit, &mine_from, &mine_to);
        size_t sent_at = mine_from == from ? mine_to : from;
        size_t sent = (to - from) - (mine_to - mine_from);
        if (!exchange(rt, (struct sent){data + sent_at, sent, other},
                      (struct received){scratch, mine_to - mine_from, other}))
            return false;
        add(data + mine_from, scratch, mine_to - mine_from);
    }
    return true;
}

static bool double_up(struct knee_runtime *rt, const struct fold *fold, float *data, size_t count)
{
    for (int bit = 1; bit < fold->active; bit *= 2) {
        size_t mine_from, mine_to, from, to;
        int other = rank_at(rt, fold, fold->place ^ bit);
        half_at(count, fold, bit, &mine_from, &mine_to);
        half_at(count, fold, bit * 2, &from, &to);
        size_t in_at = mine_from == from ? mine_to : from;
        size_t in = (to - from) - (mine_to - mine_from);
        if (!exchange(rt, (struct sent){data + mine_from, mine_to - mine_from, other},
                      (struct received){data + in_at, in, other}))
            return false;
    }
    return true;
}

static bool halving_all_reduce(struct knee_runtime *rt, float *data, float *scratch, size_t count)
{
    struct fold fold;
    if (!fold_in(rt, &fold, data, scratch, count))
        return false;
    if (fold.place >= 0 &&
        (!halve(rt, &fold, data, scratch, count) || !double_up(rt, &fold, data, count)))
        return false;
    return fold_out(rt, &fold, data, count);
}

/* 2 when some ranks fold in before and get the result after. */
static double folds(double ranks)
{
    return exp2(floor(log2(ranks))) == ranks ? 0 : 2;
}

static double doubling_share(double ranks)
{
    return floor(log2(ranks)) + folds(ranks);
}

/* Up to half as many folded ranks as active ones: no path begins with one and ends with another. */
static double doubling_hops(double ranks)
{
    double active = exp2(floor(log2(ranks)));
    return doubling_share(ranks) - (ranks > active && ranks - active <= active / 2);
}

static double halving_hops(double ranks)
{
    return 2 * floor(log2(ranks)) + folds(ranks);
}

static double halving_share(double ranks)
{
    double active = exp2(floor(log2(ranks)));
    return 2 * (active - 1) / active + folds(ranks);
}

/* ---- To the next rank ---- */

static bool next_send_recv(struct knee_runtime *rt, float *data, float *scratch, size_t count)
{
    int next = (rt->rank + 1) % rt->size, before = (rt->rank + rt->size - 1) % rt->size;
    if (!exchange(rt, (struct sent){data, count, next}, (struct received){scratch, count, before}))
        return false;
    memcpy(data, scratch, count * sizeof *data);
    return true;
}

static double one(double ranks)
{
    (void)ranks;
    return 1;
}

#define RING_HALF "(K-1) alpha + (K-1)/K S/B"
const struct knee_exchange knee_exchanges[] = {
    {"ring", KNEE_OP_ALL_REDUCE, "2(K-1) alpha + 2 (K-1)/K S/B", ring_all_reduce, ring_hops,
     ring_share},
    {"ring", KNEE_OP_ALL_GATHER, RING_HALF, ring_all_gather, ring_half_hops, ring_half_share},
    {"ring", KNEE_OP_REDUCE_SCATTER, RING_HALF, ring_reduce_scatter, ring_half_hops,
     ring_half_share},
    {"ring", KNEE_OP_SEND_RECV, "alpha + S/B", next_send_recv, one, one},
    {"tree", KNEE_OP_ALL_REDUCE, "(l+2L-1) alpha + 2L S/B, L = ceil(log2 K), l = floor(log2 K)",
     tree_all_reduce, tree_hops, tree_both},
    {"tree", KNEE_OP_BROADCAST, "(2L-1) alpha + L S/B, L = ceil(log2 K)", tree_broadcast,
     tree_broadcast_hops, tree_share},
    {"tree", KNEE_OP_REDUCE, "l alpha + L S/B, L = ceil(log2 K), l = floor(log2 K)", tree_reduce,
     tree_reduce_hops, tree_share},
    {"recursive-doubling", KNEE_OP_ALL_REDUCE,
     "log2 K (alpha + S/B); up to 2 more rounds when K is no power of two", doubling_all_reduce,
     doubling_hops, doubling_share},
    {"halving-doubling", KNEE_OP_ALL_REDUCE,
     "2 log2 K alpha + 2 (K-1)/K S/B; + 2(alpha + S/B) when K is no power of two",
     halving_all_reduce, halving_hops, halving_share},
};
const size_t knee_exchange_count = sizeof knee_exchanges / sizeof *knee_exchanges;

const struct knee_exchange *knee_exchange_find(const char *algorithm, enum knee_op op)
{
    for (size_t i = 0; i < knee_exchange_count; i++)
        if (strcmp(knee_exchanges[i].algorithm, algorithm) == 0 && knee_exchanges[i].op == op)
            return &knee_exchanges[i];
    return NULL;
}

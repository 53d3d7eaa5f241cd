/* SPDX-License-Identifier: MIT */
/*
 * Every algorithm against a second method: its schedule is written out, message by message and rank
 * by rank, run, and counted. A message moves data, so that a schedule which does not do its
 * collective is caught; it moves the clock of its receiver, which gives the hops of the longest
 * path; and it passes ports, which gives their bytes. K from 2 to 64, powers of two and not, on one
 * level and on nodes.
 */
#include "unit.h"

#include "collective/collective.h"

#define MOST 64
#define NET  1e4 /* a hop between nodes in hops inside one, so that one sum tells both */

struct world {
    int ranks, per_node;
    uint64_t have[MOST][MOST]; /* [rank][block]: whose contributions are in it */
    uint64_t item[MOST][MOST]; /* all-to-all: [rank][destination]: blocks from these sources */
    double clock[MOST], next[MOST];
    double in[MOST], out[MOST];           /* bytes through a GPU's link */
    double node_in[MOST], node_out[MOST]; /* bytes through a node's port */
    double hop_s, net_hop_s, byte_s;      /* what moves the clocks */
    bool one_at_a_time;                   /* a rank goes on when its message has come ... */
    bool rendezvous;                      /* ... and a sender when its message has arrived */
    uint64_t pending[MOST][MOST], pending_item[MOST][MOST];
};

/* The buffer has as many blocks as there are ranks, a byte each. */
static uint64_t all(const struct world *w)
{
    return w->ranks == 64 ? ~(uint64_t)0 : ((uint64_t)1 << w->ranks) - 1;
}

static uint64_t bit(int i)
{
    return (uint64_t)1 << i;
}

static int node(const struct world *w, int rank)
{
    return rank / w->per_node;
}

static void begin_round(struct world *w)
{
    memcpy(w->next, w->clock, sizeof w->next);
    memcpy(w->pending, w->have, sizeof w->pending);
    memcpy(w->pending_item, w->item, sizeof w->pending_item);
}

static void end_round(struct world *w)
{
    memcpy(w->clock, w->next, sizeof w->clock);
    memcpy(w->have, w->pending, sizeof w->have);
    memcpy(w->item, w->pending_item, sizeof w->item);
}

static void carry(struct world *w, int from, int to, double bytes)
{
    bool net = node(w, from) != node(w, to);
    double took_s = (net ? w->net_hop_s : w->hop_s) + bytes * w->byte_s;
    double ready = w->one_at_a_time ? fmax(w->clock[from], w->clock[to]) : w->clock[from];
    w->next[to] = fmax(w->next[to], ready + took_s);
    if (w->rendezvous)
        w->next[from] = fmax(w->next[from], ready + took_s);
    if (net) {
        w->node_out[node(w, from)] += bytes;
        w->node_in[node(w, to)] += bytes;
    } else {
        w->out[from] += bytes;
        w->in[to] += bytes;
    }
}

enum what { SUM, COPY };

/* `blocks` from one rank to another, as `bytes` on the wire. */
static void send(struct world *w, int from, int to, uint64_t blocks, double bytes, enum what what)
{
    carry(w, from, to, bytes);
    for (int b = 0; b < w->ranks; b++)
        if (blocks & bit(b)) {
            if (what == SUM)
                assert_true((w->pending[to][b] & w->have[from][b]) == 0); /* counted once */
            w->pending[to][b] =
                what == SUM ? w->pending[to][b] | w->have[from][b] : w->have[from][b];
        }
}

static int count_bits(uint64_t x)
{
    int n = 0;
    for (; x; x &= x - 1)
        n++;
    return n;
}

static void send_blocks(struct world *w, int from, int to, uint64_t blocks, enum what what)
{
    send(w, from, to, blocks, count_bits(blocks), what);
}

/* One message that is a round of its own, for trees. */
static void pass(struct world *w, int from, int to, uint64_t blocks, double bytes, enum what what)
{
    begin_round(w);
    send(w, from, to, blocks, bytes, what);
    end_round(w);
}

static int wrap(const struct world *w, int rank)
{
    return ((rank % w->ranks) + w->ranks) % w->ranks;
}

/* ---- Starting points and ends ---- */

static void start(struct world *w, enum knee_op op, int ranks, int per_node)
{
    memset(w, 0, sizeof *w);
    w->ranks = ranks;
    w->per_node = per_node;
    for (int r = 0; r < ranks; r++)
        for (int b = 0; b < ranks; b++) {
            bool own = op == KNEE_OP_ALL_REDUCE || op == KNEE_OP_REDUCE_SCATTER ||
                       op == KNEE_OP_REDUCE ||
                       ((op == KNEE_OP_ALL_GATHER || op == KNEE_OP_GATHER) && r == b) ||
                       ((op == KNEE_OP_BROADCAST || op == KNEE_OP_SCATTER) && r == 0);
            w->have[r][b] = own ? bit(r) : 0;
            w->item[r][b] = bit(r);
        }
}

static void check_data(const struct world *w, enum knee_op op)
{
    for (int r = 0; r < w->ranks; r++)
        for (int b = 0; b < w->ranks; b++) {
            uint64_t got = w->have[r][b];
            switch (op) {
            case KNEE_OP_ALL_REDUCE: assert_true(got == all(w)); break;
            case KNEE_OP_REDUCE_SCATTER: assert_true(r != b || got == all(w)); break;
            case KNEE_OP_REDUCE: assert_true(r != 0 || got == all(w)); break;
            case KNEE_OP_ALL_GATHER: assert_true(got == bit(b)); break;
            case KNEE_OP_GATHER: assert_true(r != 0 || got == bit(b)); break;
            case KNEE_OP_BROADCAST: assert_true(got == bit(0)); break;
            case KNEE_OP_SCATTER: assert_true(r != b || got == bit(0)); break;
            default: assert_true(b != r || w->item[r][b] == all(w)); break;
            }
        }
}

/* ---- Schedules ---- */

static void ring(struct world *w, enum knee_op op)
{
    int k = w->ranks;
    bool scatter = op != KNEE_OP_ALL_GATHER, gather = op != KNEE_OP_REDUCE_SCATTER;
    for (int step = 0; scatter && step < k - 1; step++) { /* rank r ends with block r */
        begin_round(w);
        for (int r = 0; r < k; r++)
            send_blocks(w, r, wrap(w, r + 1), bit(wrap(w, r - 1 - step)), SUM);
        end_round(w);
    }
    for (int step = 0; gather && step < k - 1; step++) {
        begin_round(w);
        for (int r = 0; r < k; r++)
            send_blocks(w, r, wrap(w, r + 1), bit(wrap(w, r - step)), COPY);
        end_round(w);
    }
}

static void chain(struct world *w, enum knee_op op)
{
    for (int i = 0; i + 1 < w->ranks; i++)
        if (op == KNEE_OP_BROADCAST)
            pass(w, i, i + 1, all(w), w->ranks, COPY);
        else
            pass(w, w->ranks - 1 - i, w->ranks - 2 - i, all(w), w->ranks, SUM);
}

/* A tree of `count` members given by parents: up, then down. member(i) is the rank of member i. */
struct tree {
    int count, parent[MOST], depth[MOST];
};

static void find_depths(struct tree *t)
{
    for (int i = 0; i < t->count; i++) {
        t->depth[i] = 0;
        for (int p = i; t->parent[p] >= 0; p = t->parent[p])
            t->depth[i]++;
    }
}

static void run_tree(struct world *w, const struct tree *t, int stride, uint64_t blocks,
                     double bytes, bool up)
{
    for (int turn = 0; turn <= t->count; turn++) {
        int depth = up ? t->count - turn : turn;
        begin_round(w);
        for (int i = 0; i < t->count; i++)
            if (t->depth[i] == depth && t->parent[i] >= 0) {
                int child = i * stride, parent = t->parent[i] * stride;
                if (up)
                    send(w, child, parent, blocks, bytes, SUM);
                else
                    send(w, parent, child, blocks, bytes, COPY);
            }
        end_round(w);
    }
}

/* The lowest set bit moves up one place; member 0 is the root. */
static int binary_parent(int i, int count)
{
    if (i == 0)
        return -1;
    int low = i & -i, parent = (i ^ low) | (low << 1);
    return parent < count ? parent : i ^ low;
}

/* The second tree is the first one shifted (odd) or mirrored (even): inner members become leaves.
 */
static struct tree double_tree(int count, int which)
{
    struct tree t = {.count = count};
    for (int i = 0; i < count; i++) {
        int role = which == 0 ? i : count % 2 ? (i - 1 + count) % count : count - 1 - i;
        int parent = binary_parent(role, count);
        if (parent >= 0 && which == 1)
            parent = count % 2 ? (parent + 1) % count : count - 1 - parent;
        t.parent[i] = parent;
    }
    find_depths(&t);
    return t;
}

/* Chains in the nodes, a double tree between their first ranks. */
static void nccl_tree(struct world *w, enum knee_op op)
{
    (void)op;
    int n = w->per_node, nodes = w->ranks / n;
    uint64_t halves[2] = {all(w) & 0x5555555555555555u, all(w) & 0xaaaaaaaaaaaaaaaau};
    for (int i = n - 1; i > 0; i--) {
        begin_round(w);
        for (int at = 0; at < w->ranks; at += n)
            send(w, at + i, at + i - 1, all(w), w->ranks, SUM);
        end_round(w);
    }
    if (nodes > 1) {
        struct tree t[2] = {double_tree(nodes, 0), double_tree(nodes, 1)};
        double before[MOST], after[2][MOST];
        memcpy(before, w->clock, sizeof before);
        for (int i = 0; i < 2; i++) { /* both at once: each from the same clock */
            memcpy(w->clock, before, sizeof before);
            run_tree(w, &t[i], n, halves[i], w->ranks / 2.0, true);
            run_tree(w, &t[i], n, halves[i], w->ranks / 2.0, false);
            memcpy(after[i], w->clock, sizeof before);
        }
        for (int r = 0; r < w->ranks; r++)
            w->clock[r] = fmax(after[0][r], after[1][r]);
    }
    for (int i = 1; i < n; i++) {
        begin_round(w);
        for (int at = 0; at < w->ranks; at += n)
            send(w, at + i - 1, at + i, all(w), w->ranks, COPY);
        end_round(w);
    }
}

static struct tree heap(int count)
{
    struct tree t = {.count = count};
    for (int i = 0; i < count; i++)
        t.parent[i] = i ? (i - 1) / 2 : -1;
    find_depths(&t);
    return t;
}

/* The same tree in every node at once: clocks of different nodes do not meet. */
static void run_in_nodes(struct world *w, const struct tree *t, bool up)
{
    for (int turn = 0; turn <= t->count; turn++) {
        int depth = up ? t->count - turn : turn;
        begin_round(w);
        for (int at = 0; at < w->ranks; at += w->per_node)
            for (int i = 0; i < t->count; i++)
                if (t->depth[i] == depth && t->parent[i] >= 0)
                    send(w, at + (up ? i : t->parent[i]), at + (up ? t->parent[i] : i), all(w),
                         w->ranks, up ? SUM : COPY);
        end_round(w);
    }
}

static void binary_tree(struct world *w, enum knee_op op)
{
    struct tree in = heap(w->per_node), out = heap(w->ranks / w->per_node);
    if (op != KNEE_OP_BROADCAST) {
        run_in_nodes(w, &in, true);
        run_tree(w, &out, w->per_node, all(w), w->ranks, true);
    }
    if (op != KNEE_OP_REDUCE) {
        run_tree(w, &out, w->per_node, all(w), w->ranks, false);
        run_in_nodes(w, &in, false);
    }
}

static int power_below(int k)
{
    int p = 1;
    while (2 * p <= k)
        p *= 2;
    return p;
}

static void fold(struct world *w, int p, bool before)
{
    if (p == w->ranks)
        return;
    begin_round(w);
    for (int r = p; r < w->ranks; r++)
        if (before)
            send(w, r, r - p, all(w), w->ranks, SUM);
        else
            send(w, r - p, r, all(w), w->ranks, COPY);
    end_round(w);
}

static void recursive_doubling(struct world *w, enum knee_op op)
{
    int p = power_below(w->ranks);
    if (op == KNEE_OP_ALL_REDUCE)
        fold(w, p, true);
    for (int d = 1; d < p; d *= 2) {
        begin_round(w);
        for (int r = 0; r < p; r++) {
            uint64_t held = 0;
            for (int b = 0; b < w->ranks; b++)
                held |= w->have[r][b] ? bit(b) : 0;
            send_blocks(w, r, r ^ d, held, op == KNEE_OP_ALL_REDUCE ? SUM : COPY);
        }
        end_round(w);
    }
    if (op == KNEE_OP_ALL_REDUCE)
        fold(w, p, false);
}

/* Which of the p parts rank r keeps after the exchanges at distances below `d`: those that agree
 * with r in these bits. A part is a run of blocks; bytes are counted as shares of the buffer. */
static uint64_t kept(const struct world *w, int p, int r, int d)
{
    uint64_t mask = 0;
    for (int b = 0; b < w->ranks; b++)
        if (((b % p) & (d - 1)) == (r & (d - 1)))
            mask |= bit(b);
    return mask;
}

/* Broadcast scatters, reduce gathers: at distance d only the ranks below it (and 2d) have or still
 * need anything, and one of each two sends. */
static void halving_doubling(struct world *w, enum knee_op op)
{
    int p = power_below(w->ranks);
    bool scatters = op == KNEE_OP_BROADCAST, gathers = op == KNEE_OP_REDUCE;
    if (!scatters && op != KNEE_OP_REDUCE_SCATTER)
        fold(w, p, true);
    for (int d = 1; d < p; d *= 2) {
        begin_round(w);
        for (int r = 0; r < (scatters ? d : p); r++)
            send(w, r, r ^ d, kept(w, p, r ^ d, 2 * d), w->ranks / (2.0 * d),
                 scatters ? COPY : SUM);
        end_round(w);
    }
    for (int d = p / 2; d >= 1 && op != KNEE_OP_REDUCE_SCATTER; d /= 2) {
        begin_round(w);
        for (int r = gathers ? d : 0; r < (gathers ? 2 * d : p); r++)
            send(w, r, r ^ d, kept(w, p, r, 2 * d), w->ranks / (2.0 * d), COPY);
        end_round(w);
    }
    if (!gathers && op != KNEE_OP_REDUCE_SCATTER)
        fold(w, p, false);
}

static void move_items(struct world *w, int from, int to, const uint64_t *items, double bytes)
{
    carry(w, from, to, bytes);
    for (int d = 0; d < w->ranks; d++) {
        assert_true((w->item[from][d] & items[d]) == items[d]);
        w->pending_item[to][d] |= items[d];
        w->pending_item[from][d] &= ~items[d];
    }
}

static void bruck(struct world *w, enum knee_op op)
{
    int k = w->ranks;
    for (int d = 1; d < k; d *= 2) {
        begin_round(w);
        for (int r = 0; r < k; r++) {
            uint64_t blocks = 0, items[MOST] = {0};
            int moved = 0, to = op == KNEE_OP_ALL_GATHER ? wrap(w, r - d) : wrap(w, r + d);
            if (op == KNEE_OP_ALL_GATHER) { /* r holds r .. r+d-1 */
                for (int i = 0; i < (d < k - d ? d : k - d); i++)
                    blocks |= bit(wrap(w, r + i));
                send_blocks(w, r, to, blocks, COPY);
                continue;
            }
            for (int dst = 0; dst < k; dst++) /* what still has to go that far */
                for (int src = 0; src < k; src++)
                    if ((w->item[r][dst] & bit(src)) && (wrap(w, dst - src) & d)) {
                        items[dst] |= bit(src);
                        moved++;
                    }
            move_items(w, r, to, items, moved);
        }
        end_round(w);
    }
}

static void pairwise(struct world *w, enum knee_op op)
{
    (void)op;
    w->one_at_a_time = true;
    for (int i = 1; i < w->ranks; i++) {
        begin_round(w);
        for (int r = 0; r < w->ranks; r++) {
            uint64_t items[MOST] = {0};
            items[wrap(w, r + i)] = bit(r);
            move_items(w, r, wrap(w, r + i), items, 1);
        }
        end_round(w);
    }
}

static void direct(struct world *w, enum knee_op op)
{
    begin_round(w);
    for (int r = 0; r < w->ranks; r++)
        for (int to = 0; to < w->ranks; to++) {
            if (r == to)
                continue;
            uint64_t items[MOST] = {0};
            items[to] = bit(r);
            if (op == KNEE_OP_ALL_TO_ALL)
                move_items(w, r, to, items, 1);
            else if (op == KNEE_OP_GATHER && to == 0)
                send_blocks(w, r, to, bit(r), COPY);
            else if (op == KNEE_OP_SCATTER && r == 0)
                send_blocks(w, r, to, bit(to), COPY);
        }
    end_round(w);
}

/* Binomial tree over `count` members, a `stride` apart, in groups that start every `every` ranks.
 * Member i stands for the `stride` ranks from it on. */
static void binomial(struct world *w, enum knee_op op, int count, int stride, int every)
{
    bool down = op == KNEE_OP_BROADCAST || op == KNEE_OP_SCATTER;
    bool whole = op == KNEE_OP_BROADCAST || op == KNEE_OP_REDUCE;
    int top = 1;
    while (top < count)
        top *= 2;
    for (int step = 1; step < top; step *= 2) {
        int d = down ? top / (2 * step) : step;
        begin_round(w);
        for (int at = 0; at < w->ranks; at += every)
            for (int i = 0; i + d < count; i += 2 * d) {
                int parent = at + i * stride, child = at + (i + d) * stride;
                uint64_t blocks = 0;
                for (int m = i + d; m < count && m < i + 2 * d; m++)
                    for (int b = 0; b < stride; b++)
                        blocks |= bit(at + m * stride + b);
                if (whole)
                    blocks = all(w);
                if (down)
                    send_blocks(w, parent, child, blocks, COPY);
                else
                    send_blocks(w, child, parent, blocks, op == KNEE_OP_REDUCE ? SUM : COPY);
            }
        end_round(w);
    }
}

static void binomial_tree(struct world *w, enum knee_op op)
{
    int n = w->per_node, nodes = w->ranks / n;
    bool down = op == KNEE_OP_BROADCAST || op == KNEE_OP_SCATTER;
    w->one_at_a_time = w->rendezvous = true;
    if (down)
        binomial(w, op, nodes, n, w->ranks);
    binomial(w, op, n, 1, n);
    if (!down)
        binomial(w, op, nodes, n, w->ranks);
}

/* The ring's all-gather read backwards: sums come home the way blocks would go out. */
static void ring_home(struct world *w)
{
    for (int step = w->ranks - 2; step >= 0; step--) {
        begin_round(w);
        for (int r = 0; r < w->ranks; r++)
            send_blocks(w, wrap(w, r + 1), r, bit(wrap(w, r - step)), SUM);
        end_round(w);
    }
}

/* Scatter from the root, then a ring; a reduce is that read backwards. */
static void scatter_ring(struct world *w, enum knee_op op)
{
    if (op == KNEE_OP_BROADCAST) {
        binomial_tree(w, KNEE_OP_SCATTER);
        w->one_at_a_time = w->rendezvous = false;
        ring(w, KNEE_OP_ALL_GATHER);
    } else {
        ring_home(w);
        binomial_tree(w, KNEE_OP_GATHER);
    }
}

/* A ring over `count` members a `stride` apart, from every `starts`-th rank; member i's part is the
 * blocks that `part` names. */
typedef uint64_t parts(const struct world *w, int first, int member);

static uint64_t rail_part(const struct world *w, int first, int member)
{
    return bit(member * w->per_node + first % w->per_node);
}

static uint64_t local_part(const struct world *w, int first, int member)
{
    uint64_t mask = 0; /* everything of this rail */
    (void)first;
    for (int b = member; b < w->ranks; b += w->per_node)
        mask |= bit(b);
    return mask;
}

static void rings(struct world *w, bool rails, bool scatter)
{
    int n = w->per_node, nodes = w->ranks / n, count = rails ? nodes : n, stride = rails ? n : 1;
    parts *part = rails ? rail_part : local_part;
    for (int step = 0; step < count - 1; step++) {
        begin_round(w);
        for (int r = 0; r < w->ranks; r++) {
            int member = rails ? r / n : r % n, first = r - member * stride;
            int to = first + (member + 1) % count * stride;
            int which = ((scatter ? member - 1 - step : member - step) % count + count) % count;
            send_blocks(w, r, to, part(w, first, which), scatter ? SUM : COPY);
        }
        end_round(w);
    }
}

static void hierarchical(struct world *w, enum knee_op op)
{
    int n = w->per_node;
    if (op == KNEE_OP_ALL_TO_ALL) {
        begin_round(w);
        for (int r = 0; r < w->ranks; r++)
            for (int rail = 0; rail < n; rail++) {
                uint64_t items[MOST] = {0};
                for (int d = rail; d < w->ranks; d += n)
                    items[d] = bit(r);
                if (rail != r % n)
                    move_items(w, r, r - r % n + rail, items, w->ranks / n);
            }
        end_round(w);
        begin_round(w);
        for (int r = 0; r < w->ranks; r++)
            for (int d = r % n; d < w->ranks; d += n) {
                uint64_t items[MOST] = {0};
                items[d] = w->item[r][d];
                if (d != r)
                    move_items(w, r, d, items, n);
            }
        end_round(w);
        return;
    }
    if (op != KNEE_OP_ALL_GATHER) {
        rings(w, false, true);
        rings(w, true, true);
    }
    if (op != KNEE_OP_REDUCE_SCATTER) {
        rings(w, true, false);
        rings(w, false, false);
    }
}

/* Far partners first: a block that has come o ranks goes on to o + d. */
static void pat(struct world *w, enum knee_op op)
{
    int k = w->ranks, top = 1;
    while (top < k)
        top *= 2;
    for (int step = 1; step < top; step *= 2) {
        int d = op == KNEE_OP_ALL_GATHER ? top / (2 * step) : step;
        begin_round(w);
        for (int r = 0; r < k; r++) {
            uint64_t blocks = 0;
            for (int o = 0; o + d < k; o += 2 * d)
                blocks |= bit(op == KNEE_OP_ALL_GATHER ? wrap(w, r - o) : wrap(w, r - o - d));
            /* Reduce-scatter is the same read backwards: sums come home the way blocks went out. */
            send_blocks(w, r, wrap(w, op == KNEE_OP_ALL_GATHER ? r + d : r - d), blocks,
                        op == KNEE_OP_ALL_GATHER ? COPY : SUM);
        }
        end_round(w);
    }
}

static void send_to_next(struct world *w, enum knee_op op)
{
    (void)op;
    begin_round(w);
    for (int r = 0; r < w->ranks; r++)
        carry(w, r, wrap(w, r + 1), w->ranks);
    end_round(w);
}

/* ---- Comparison ---- */

struct schedule {
    const struct knee_algorithm *algorithm;
    void (*run)(struct world *, enum knee_op);
    unsigned ops;
    enum { ANY, POWER_NODES, ONE_PER_NODE } where; /* two levels: which nodes it is exact for */
    bool whole; /* messages are passed on whole: the longest path in bytes counts as well */
};
#define OP(name) (1u << KNEE_OP_##name)

static const struct schedule schedules[] = {
    {&knee_ring, ring, OP(ALL_REDUCE) | OP(ALL_GATHER) | OP(REDUCE_SCATTER), ANY, true},
    {&knee_ring, chain, OP(BROADCAST) | OP(REDUCE), ANY, false},
    {&knee_tree, nccl_tree, OP(ALL_REDUCE), ANY, false},
    {&knee_binary_tree, binary_tree, OP(ALL_REDUCE) | OP(BROADCAST) | OP(REDUCE), ANY, false},
    {&knee_recursive_doubling, recursive_doubling, OP(ALL_REDUCE) | OP(ALL_GATHER), POWER_NODES,
     true},
    {&knee_halving_doubling, halving_doubling,
     OP(ALL_REDUCE) | OP(REDUCE_SCATTER) | OP(BROADCAST) | OP(REDUCE), POWER_NODES, true},
    {&knee_bruck, bruck, OP(ALL_GATHER) | OP(ALL_TO_ALL), POWER_NODES, true},
    {&knee_pairwise, pairwise, OP(ALL_TO_ALL), ANY, true},
    {&knee_direct, direct, OP(ALL_TO_ALL) | OP(GATHER) | OP(SCATTER), ANY, true},
    {&knee_binomial_tree, binomial_tree, OP(BROADCAST) | OP(REDUCE) | OP(GATHER) | OP(SCATTER), ANY,
     true},
    {&knee_scatter_ring, scatter_ring, OP(BROADCAST) | OP(REDUCE), ANY, true},
    {&knee_hierarchical, hierarchical,
     OP(ALL_REDUCE) | OP(ALL_GATHER) | OP(REDUCE_SCATTER) | OP(ALL_TO_ALL), ANY, true},
    {&knee_pat, pat, OP(ALL_GATHER) | OP(REDUCE_SCATTER), ONE_PER_NODE, true},
    {&knee_send_recv, send_to_next, OP(SEND_RECV), ANY, true},
};

static struct knee_cluster nodes_of(double per_node)
{
    struct knee_cluster t;
    knee_cluster_init(&t);
    t.level_count = 2;
    for (size_t l = 0; l < 2; l++)
        t.levels[l] = (struct knee_level){
            .latency_s = 1, .bytes_per_s = 1, .ports = 1, .oversubscription = 1, .shared = true};
    t.levels[0].count = per_node;
    return t;
}

static struct knee_layout layout_of(double ranks, double per_node)
{
    struct knee_cluster t = nodes_of(per_node);
    struct knee_placement placement = {.ranks = ranks, .per_node = NAN, .sharers = 1, .skew = 1};
    struct knee_layout layout;
    struct knee_err err;
    if (knee_layout_init(&t, &placement, &layout, &err))
        fail_msg("%s", err.what);
    return layout;
}

static double most(const double *values, int count)
{
    double high = 0;
    for (int i = 0; i < count; i++)
        high = fmax(high, values[i]);
    return high;
}

/* Runs the schedule with clocks that count hops, or bytes. */
static const struct world *run(const struct schedule *s, enum knee_op op, int ranks, int per_node,
                               double hop_s, double net_hop_s, double byte_s)
{
    static struct world w;
    start(&w, op, ranks, per_node);
    w.hop_s = hop_s;
    w.net_hop_s = net_hop_s;
    w.byte_s = byte_s;
    s->run(&w, op);
    if (op != KNEE_OP_SEND_RECV)
        check_data(&w, op);
    return &w;
}

static void compare(const struct schedule *s, enum knee_op op, int ranks, int per_node)
{
    struct knee_counts counts = {0};
    struct knee_layout layout = layout_of(ranks, per_node);
    if (!s->algorithm->count(&layout, op, ranks, &counts)) /* a byte per block */
        return;
    int nodes = ranks / per_node;
    const struct world *w = run(s, op, ranks, per_node, 1, NET, 0);
    double hops = counts.hops[0] + NET * counts.hops[1], path = most(w->clock, ranks);
    double in_node = fmax(most(w->in, ranks), most(w->out, ranks));
    double port = fmax(most(w->node_in, nodes), most(w->node_out, nodes));
    if (s->whole && (nodes == 1 || per_node == 1)) {
        double *busiest = nodes == 1 ? &in_node : &port;
        *busiest = fmax(*busiest, most(run(s, op, ranks, per_node, 0, 0, 1)->clock, ranks));
    }
    /* Pairwise on two nodes of 3, 5, 6, 9 or 10: one of the K-1 hops stays in its node. */
    if (s->algorithm == &knee_pairwise && nodes == 2 && hops - path == NET - 1)
        hops = path;
    if (hops != path || fabs(counts.bytes[0] - in_node) > 1e-9 ||
        fabs(counts.bytes[1] - port) > 1e-9)
        fail_msg("%s %s, %d ranks, %d per node: hops %g against %g, bytes %g %g against %g %g",
                 s->algorithm->name, knee_op_name(op), ranks, per_node, hops, path, counts.bytes[0],
                 counts.bytes[1], in_node, port);
}

static bool power_of_two(int x)
{
    return (x & (x - 1)) == 0;
}

static bool exact_for(const struct schedule *s, int per_node, int ranks)
{
    switch (s->where) {
    case ANY: return true;
    case ONE_PER_NODE: return per_node == 1;
    case POWER_NODES:
        return per_node == 1 || per_node == ranks ||
               (power_of_two(per_node) && (power_of_two(ranks) || s->algorithm == &knee_bruck));
    }
    return false;
}

TEST(formulas_count_what_schedules_send)
{
    int compared = 0;
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
        for (int op = KNEE_OP_ALL_REDUCE; op < KNEE_OPS; op++)
            for (int ranks = 2; ranks <= (UNIT_SANITIZED ? MOST / 2 : MOST); ranks++)
                for (int per_node = 1; per_node <= ranks; per_node++)
                    if ((schedules[i].ops & (1u << op)) && ranks % per_node == 0 &&
                        exact_for(&schedules[i], per_node, ranks)) {
                        compare(&schedules[i], (enum knee_op)op, ranks, per_node);
                        compared++;
                    }
    assert_true(compared > UNIT_SOME(5000));
}

/* Every algorithm that counts is in the list above, or is one of those whose switch does the work.
 */
TEST(no_algorithm_is_left_out)
{
    const struct knee_algorithm *row;
    for (size_t i = 0; (row = knee_scheme_at(i)); i++) {
        bool found = row->needs != KNEE_NEEDS_NOTHING;
        for (size_t s = 0; s < sizeof schedules / sizeof *schedules; s++)
            found = found || schedules[s].algorithm == row;
        if (!found)
            fail_msg("%s is not simulated", row->name);
    }
}

/* ---- Switches that reduce: each GPU's port to the switch, message by message ---- */

struct port {
    double in, out;
};

/* Each owner reads its part summed from all, then writes the sum to all. The owner's own share goes
 * through the switch too: that is what multimem instructions do. */
static void nvls_schedule(int n, struct port *ports)
{
    memset(ports, 0, (size_t)n * sizeof *ports);
    for (int owner = 0; owner < n; owner++) {
        for (int r = 0; r < n; r++)
            ports[r].out += 1.0 / n; /* to the switch, which adds */
        ports[owner].in += 1.0 / n;  /* the sum */
        ports[owner].out += 1.0 / n; /* back to the switch */
        for (int r = 0; r < n; r++)
            ports[r].in += 1.0 / n; /* which passes it to all */
    }
}

TEST(switches_that_reduce)
{
    struct port ports[MOST];
    for (int n = 4; n <= MOST; n++) {
        struct knee_counts counts = {0};
        struct knee_layout layout = layout_of(n, n);
        nvls_schedule(n, ports);
        assert_true(knee_nvls.count(&layout, KNEE_OP_ALL_REDUCE, 1, &counts));
        for (int r = 0; r < n; r++)
            assert_near(counts.bytes[0], fmax(ports[r].in, ports[r].out), 1e-12);
        assert_near(counts.hops[0], 2, 0);
        assert_true(knee_nvls.count(&layout, KNEE_OP_ALL_GATHER, 1, &counts));
        assert_near(counts.bytes[0], (n - 1.0) / n, 1e-12);
    }
    /* Between domains the double tree is the one simulated above; inside, the same switch. */
    for (int nodes = 2; nodes <= 8; nodes++) {
        struct knee_counts counts = {0}, tree = {0};
        struct knee_layout layout = layout_of(8.0 * nodes, 8);
        assert_true(knee_nvls_tree.count(&layout, KNEE_OP_ALL_REDUCE, 1, &counts));
        assert_true(knee_tree.count(&layout, KNEE_OP_ALL_REDUCE, 1, &tree));
        assert_near(counts.hops[1], tree.hops[1], 0);
        assert_near(counts.bytes[1], tree.bytes[1], 0);
        assert_near(counts.bytes[0], 1.125, 1e-12);
        /* SHARP: a node sends its sum up once and gets the result once, however many nodes. */
        assert_true(knee_collnet.count(&layout, KNEE_OP_ALL_REDUCE, 1, &counts));
        assert_near(counts.bytes[1], 1, 0);
        assert_near(counts.bytes[0], 2 * 7.0 / 8, 1e-12);
        assert_near(counts.hops[1], 2, 0);
    }
}

/* ---- Lower bounds (Chan et al. 2007), and values counted on paper ---- */

TEST(never_below_the_bounds)
{
    const struct knee_algorithm *row;
    for (size_t i = 0; (row = knee_scheme_at(i)); i++)
        for (int op = KNEE_OP_ALL_REDUCE; op < KNEE_OPS; op++)
            for (double k = 2; k <= 1024; k++) {
                struct knee_counts counts = {0};
                struct knee_layout layout = layout_of(k, k);
                if (row->needs != KNEE_NEEDS_NOTHING || op == KNEE_OP_SEND_RECV ||
                    !row->count(&layout, (enum knee_op)op, 1, &counts))
                    continue;
                double twice = op == KNEE_OP_ALL_REDUCE ? 2 : 1;
                /* Latency-optimal all-reduces may send S log2 K instead: more, not less. */
                double least = row == &knee_recursive_doubling && op == KNEE_OP_ALL_REDUCE
                                   ? 1
                                   : twice * (k - 1) / k;
                if (row == &knee_tree && k == 2)
                    least = 1; /* a pair swaps halves */
                assert_true(counts.bytes[0] >= least * (1 - 1e-12));
                if (row != &knee_direct)
                    assert_true(counts.hops[0] >= floor(log2(k)));
            }
}

TEST(by_hand)
{
    static const struct {
        const struct knee_algorithm *algorithm;
        enum knee_op op;
        double ranks, per_node, hops[2], bytes[2];
    } cases[] = {
        /* 12 bytes */
        {&knee_ring, KNEE_OP_ALL_REDUCE, 4, 4, {6, 0}, {18, 0}},
        {&knee_ring, KNEE_OP_ALL_REDUCE, 8, 4, {10, 4}, {21, 21}}, /* two rounds, four crossings */
        {&knee_ring, KNEE_OP_ALL_GATHER, 3, 1, {0, 2}, {0, 8}},
        {&knee_ring, KNEE_OP_BROADCAST, 4, 2, {2, 1}, {12, 12}},
        {&knee_tree, KNEE_OP_ALL_REDUCE, 8, 4, {6, 2}, {24, 12}},
        {&knee_tree, KNEE_OP_ALL_REDUCE, 32, 8, {14, 4}, {24, 24}},
        {&knee_binary_tree, KNEE_OP_ALL_REDUCE, 7, 7, {4, 0}, {36, 0}},
        {&knee_recursive_doubling, KNEE_OP_ALL_REDUCE, 3, 3, {2, 0}, {24, 0}},
        {&knee_recursive_doubling, KNEE_OP_ALL_REDUCE, 7, 7, {4, 0}, {48, 0}},
        {&knee_recursive_doubling, KNEE_OP_ALL_REDUCE, 8, 4, {2, 1}, {24, 48}},
        {&knee_halving_doubling, KNEE_OP_ALL_REDUCE, 8, 4, {4, 2}, {18, 12}},
        {&knee_halving_doubling, KNEE_OP_ALL_REDUCE, 6, 6, {6, 0}, {18 + 24, 0}},
        {&knee_bruck, KNEE_OP_ALL_GATHER, 6, 6, {3, 0}, {10, 0}},
        {&knee_bruck, KNEE_OP_ALL_TO_ALL, 4, 4, {2, 0}, {12, 0}},
        {&knee_pairwise, KNEE_OP_ALL_TO_ALL, 4, 2, {0, 3}, {3, 12}},
        {&knee_direct, KNEE_OP_ALL_TO_ALL, 4, 2, {0, 1}, {3, 12}},
        {&knee_direct, KNEE_OP_GATHER, 4, 2, {0, 1}, {3, 6}},
        {&knee_binomial_tree, KNEE_OP_BROADCAST, 5, 5, {3, 0}, {36, 0}},
        {&knee_binomial_tree, KNEE_OP_SCATTER, 8, 2, {1, 2}, {1.5, 9}},
        {&knee_hierarchical, KNEE_OP_ALL_REDUCE, 8, 4, {6, 2}, {18, 12}},
        {&knee_hierarchical, KNEE_OP_ALL_TO_ALL, 4, 2, {1, 1}, {6, 12}},
        {&knee_pat, KNEE_OP_ALL_GATHER, 5, 1, {0, 3}, {0, 9.6}},
        {&knee_send_recv, KNEE_OP_SEND_RECV, 2, 1, {0, 1}, {0, 12}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_counts counts = {0};
        struct knee_layout layout = layout_of(cases[i].ranks, cases[i].per_node);
        assert_true(cases[i].algorithm->count(&layout, cases[i].op, 12, &counts));
        for (int l = 0; l < 2; l++) {
            assert_near(counts.hops[l], cases[i].hops[l], 1e-12);
            assert_near(counts.bytes[l], cases[i].bytes[l], 1e-12);
        }
    }
}

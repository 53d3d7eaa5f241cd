/* SPDX-License-Identifier: MIT */
/*
 * Gradients in other buckets, and gradients that travel as soon as they are there.
 *
 * DDP fills buckets in the order in which gradients come and sends one when it is full: when a
 * parameter makes it reach its size. Which parameters there are is seen in the copies into buckets
 * (or, where there are none, in the kernels of the backward pass; where passes are not known, in
 * the last two thirds of the compute): each stands for a share of its bucket by the time that it
 * took. The new buckets are filled by the same rule.
 */
#include "base/order.h"
#include "base/text.h"
#include "replay/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEARLY_FULL 0.98 /* a bucket whose pieces are known by their times alone */

/* One parameter, or a piece of a bucket: after `node` so many bytes more are there. */
struct piece {
    int32_t node;
    double bytes;
    size_t old; /* row of the rank's old buckets */
};

struct rank_buckets {
    int32_t *old; /* comm nodes of gradients in the order they were called */
    size_t old_count;
    struct piece *pieces;
    size_t piece_count;
    double *sizes; /* of pieces, as copies say; ... */
    bool exact;    /* ... and they are right: shares by time are not quite */
    int32_t *made; /* per old bucket: the new comm node that carries its last byte */
    int32_t *added;
    size_t added_count;
};

struct filler {
    struct knee_change_run *run;
    struct knee_graph *g;
    int32_t rank;
    struct rank_buckets *b;
    size_t node_count;
    size_t
        *forward; /* kernels of the forward pass, of all ranks alike; SIZE_MAX: not counted yet */
};

static bool is_bucket(const struct knee_graph *g, const struct knee_node *n)
{
    if (n->kind != KNEE_NODE_COMM || !n->meet || n->gone)
        return false;
    const struct knee_graph_meet *meet = &g->meets[n->meet - 1];
    return meet->gradients && meet->op == KNEE_OP_ALL_REDUCE && meet->bytes > 0;
}

/* Where the recording does not distinguish passes: how many kernels of a step are the forward pass,
 * a third of its compute. Every step of every rank has as many. */
static size_t count_forward(const struct filler *f, const int32_t *rows, int32_t step)
{
    double all = 0, sum = 0;
    size_t count = 0;
    for (int counting = 1; counting >= 0; counting--)
        for (size_t i = 0; i < f->node_count; i++) {
            const struct knee_node *n = &f->g->nodes[rows[i]];
            if (n->kind != KNEE_NODE_COMPUTE || n->step != step)
                continue;
            all += counting ? n->work_ns : 0;
            count += !counting && sum + n->work_ns / 2 < all / 3;
            sum += counting ? 0 : n->work_ns;
        }
    return count;
}

/* Adds the work between two buckets that makes the gradients of the second: by its pass, or
 * (KNEE_WORKS) all compute after the forward pass. */
static void add_pieces(struct filler *f, const int32_t *rows, size_t from, size_t to, size_t old,
                       enum knee_work_pass pass)
{
    const struct knee_graph *g = f->g;
    int32_t step = g->nodes[f->b->old[old]].step;
    bool any = pass == KNEE_WORKS;
    bool first = old == 0 || g->nodes[f->b->old[old - 1]].step != step;
    if (any && *f->forward == SIZE_MAX)
        *f->forward = count_forward(f, rows, step);
    size_t skip = any && first ? *f->forward : 0;
    for (size_t i = from; i < to; i++) {
        const struct knee_node *n = &g->nodes[rows[i]];
        if (n->kind == KNEE_NODE_HOST || n->kind == KNEE_NODE_COMM || n->step != step ||
            (any ? n->kind != KNEE_NODE_COMPUTE : n->phase != pass))
            continue;
        if (skip == 0)
            f->b->pieces[f->b->piece_count++] = (struct piece){rows[i], n->work_ns, old};
        skip -= skip > 0;
    }
}

/* The pieces of a bucket, with shares of it by time. What every copy takes, however small, says
 * nothing of its size. */
static void share_bucket(struct filler *f, const int32_t *rows, size_t from, size_t to, size_t old)
{
    const struct knee_graph *g = f->g;
    static const enum knee_work_pass passes[] = {KNEE_WORK_EXCHANGE, KNEE_WORK_BACKWARD,
                                                 KNEE_WORKS};
    double bytes = (double)g->meets[g->nodes[f->b->old[old]].meet - 1].bytes, sum = 0;
    size_t first = f->b->piece_count, pass = 0, tries = g->phased ? 2 : 3;
    for (; pass < tries && f->b->piece_count == first; pass++)
        add_pieces(f, rows, from, to, old, passes[pass]);
    double least = pass == 1 ? INFINITY : 0;
    for (size_t i = first; i < f->b->piece_count; i++)
        least = fmin(least, f->b->pieces[i].bytes);
    for (size_t i = first; i < f->b->piece_count; i++) {
        f->b->pieces[i].bytes = fmax(f->b->pieces[i].bytes - least, 1);
        sum += f->b->pieces[i].bytes;
    }
    for (size_t i = first; i < f->b->piece_count; i++)
        f->b->pieces[i].bytes *= bytes / sum;
}

/* What comes back out of buckets is copied parameter by parameter, and those copies say their
 * sizes. They come in the buckets' order, after the last bucket of a step was called: where they
 * agree with the pieces in number, they are believed. */
static void take_sizes(struct filler *f, const int32_t *rows, size_t count)
{
    struct rank_buckets *b = f->b;
    const struct knee_graph *g = f->g;
    size_t piece = 0;
    for (size_t i = 0; i < count && piece < b->piece_count; i++) {
        const struct knee_node *n = &g->nodes[rows[i]];
        const struct knee_node *last = &g->nodes[b->old[b->pieces[piece].old]];
        if (n->bytes <= 0 || n->phase != KNEE_WORK_EXCHANGE || n->step != last->step ||
            n->call_ns < last->call_ns)
            continue;
        b->sizes[piece++] = (double)n->bytes;
    }
    if (piece != b->piece_count)
        return;
    for (size_t p = 0, to; p < piece; p = to) { /* a bucket's sizes must sum to it */
        double sum = 0;
        for (to = p; to < piece && b->pieces[to].old == b->pieces[p].old; to++)
            sum += b->sizes[to];
        if (sum != (double)g->meets[g->nodes[b->old[b->pieces[p].old]].meet - 1].bytes)
            return;
    }
    for (size_t p = 0; p < piece; p++)
        b->pieces[p].bytes = b->sizes[p];
    b->exact = true;
}

/* Pieces of a bucket are those called after the bucket before it. */
static bool list_pieces(struct filler *f)
{
    size_t count = 0, from = 0;
    int32_t *rows = knee_nodes_by_call(f->g, f->rank, &count);
    f->node_count = count;
    struct rank_buckets *b = f->b;
    size_t size = (count + 1) * sizeof(int32_t);
    b->old = knee_resize(f->g->alloc, NULL, size);
    b->made = knee_resize(f->g->alloc, NULL, size);
    b->added = knee_resize(f->g->alloc, NULL, size);
    b->pieces = knee_resize(f->g->alloc, NULL, (count + 1) * sizeof *b->pieces);
    b->sizes = knee_resize(f->g->alloc, NULL, (count + 1) * sizeof *b->sizes);
    bool good = rows && b->old && b->made && b->added && b->pieces && b->sizes;
    for (size_t i = 0; good && i < count; i++) {
        if (!is_bucket(f->g, &f->g->nodes[rows[i]]))
            continue;
        b->old[b->old_count] = rows[i];
        size_t before = b->piece_count;
        share_bucket(f, rows, from, i, b->old_count);
        if (b->piece_count == before) /* nothing seen: the bucket itself */
            b->pieces[b->piece_count++] = (struct piece){
                rows[i], (double)f->g->meets[f->g->nodes[rows[i]].meet - 1].bytes, b->old_count};
        b->old_count++;
        from = i + 1;
    }
    if (good)
        take_sizes(f, rows, count);
    knee_resize(f->g->alloc, rows, 0);
    return good;
}

/* A new bucket, called right after the work of its last piece. */
static void send_bucket(struct filler *f, const struct piece *last, size_t first_old)
{
    struct knee_graph *g = f->g;
    struct knee_node node = g->nodes[f->b->old[last->old]];
    const struct knee_node *after = &g->nodes[last->node];
    node.meet = 0;
    node.host = after->host;
    node.host_lag_ns = after->host_lag_ns;
    node.call_ns = after->call_ns;
    node.order = after->order;
    node.delay_ns = node.delay_ns < 100000 ? node.delay_ns : 0;
    node.gone = false;
    int32_t row = knee_graph_add_node(g, &node);
    if (row == KNEE_NO_NODE)
        return;
    knee_graph_add_edge(g, last->node, row, 0, KNEE_EDGE_RULED);
    for (size_t i = first_old; i <= last->old; i++)
        f->b->made[i] = row;
    f->b->added[f->b->added_count++] = row;
}

/* Every step starts with an empty bucket. */
static bool starts_step(const struct filler *f, size_t piece)
{
    const struct piece *p = f->b->pieces;
    return piece > 0 && f->g->nodes[f->b->old[p[piece].old]].step !=
                            f->g->nodes[f->b->old[p[piece - 1].old]].step;
}

static void fill_buckets(struct filler *f, double size, double *sent)
{
    struct rank_buckets *b = f->b;
    double filled = 0, full = b->exact ? size : NEARLY_FULL * size;
    size_t first_old = 0, count = b->piece_count;
    for (size_t i = 0; i < count && !f->g->failed; i++) {
        bool last = i + 1 == count || starts_step(f, i + 1);
        filled += b->pieces[i].bytes;
        if (filled < full && !last)
            continue;
        sent[b->added_count] = filled;
        send_bucket(f, &b->pieces[i], first_old);
        bool ends_old = last || b->pieces[i + 1].old != b->pieces[i].old;
        first_old = b->pieces[i].old + ends_old;
        filled = 0;
    }
}

/* Moves an old bucket to a separate lane, where it delays nothing. */
static void retire_old(struct filler *f, int32_t lane)
{
    for (size_t o = 0; o < f->b->old_count; o++) {
        struct knee_node *old = knee_graph_edit(f->g, (size_t)f->b->old[o]);
        old->gone = true;
        old->lane = lane;
    }
}

/* What waited for an old bucket waits for the new one that carries its last byte. One pass over all
 * edges for all buckets of all ranks. */
static void move_waiters(struct knee_graph *g, const struct rank_buckets *ranks)
{
    int32_t *instead = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *instead);
    size_t edges = g->edge_count;
    g->failed = g->failed || !instead;
    for (size_t i = 0; instead && i < g->count; i++)
        instead[i] = KNEE_NO_NODE;
    for (size_t r = 0; instead && r < g->rank_count; r++)
        for (size_t o = 0; o < ranks[r].old_count; o++)
            instead[ranks[r].old[o]] = ranks[r].made[o];
    for (size_t e = 0; !g->failed && e < edges; e++) {
        struct knee_graph_edge edge = g->edges[e];
        if (instead[edge.from] == KNEE_NO_NODE || edge.lag_ns == KNEE_EDGE_CUT ||
            g->nodes[edge.to].kind == KNEE_NODE_COMM)
            continue;
        g->edges[e].lag_ns = KNEE_EDGE_CUT;
        knee_graph_add_edge(g, instead[edge.from], edge.to, edge.lag_ns, KNEE_EDGE_RULED);
    }
    knee_resize(g->alloc, instead, 0);
}

static void release(const struct knee_graph *g, struct rank_buckets *b)
{
    void *const all[] = {b->old, b->pieces, b->made, b->added, b->sizes};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(g->alloc, all[i], 0);
}

/* New buckets of all ranks meet, each priced at its size. The first rank's bytes are all ranks'. */
static bool join_buckets(struct knee_change_run *run, const struct rank_buckets *ranks,
                         const double *sent)
{
    struct knee_graph *g = run->g;
    for (size_t k = 0; k < ranks[0].added_count; k++) {
        const struct knee_node *like = &g->nodes[ranks[0].old[0]];
        struct knee_graph_meet meet = g->meets[like->meet - 1];
        double ns = knee_own_price_ns(run->prices, &meet, sent[k], run->lean);
        if (isnan(ns))
            return knee_refuse(run, "the sizes of the collectives are not recorded");
        ns = sent[k] == (double)meet.bytes ? ns : knee_own_in_turns(run->prices, ns);
        meet.bytes = (int64_t)sent[k];
        meet.pure_ns = ns;
        uint32_t row = knee_graph_add_meet(g, &meet);
        for (size_t r = 0; row && r < g->rank_count; r++) {
            g->nodes[ranks[r].added[k]].work_ns = ns;
            knee_graph_join(g, row, ranks[r].added[k]);
        }
    }
    return !g->failed;
}

/* Ranks and steps send the same parameters, whose copies took different times by chance: each takes
 * the median. False: they do not send the same. */
static bool settle_shares(struct knee_graph *g, struct rank_buckets *ranks)
{
    size_t steps = 1, count = ranks[0].piece_count;
    for (size_t i = 1; i < count; i++)
        steps += g->nodes[ranks[0].old[ranks[0].pieces[i].old]].step !=
                 g->nodes[ranks[0].old[ranks[0].pieces[i - 1].old]].step;
    for (size_t r = 1; r < g->rank_count; r++)
        if (ranks[r].piece_count != count || ranks[r].old_count != ranks[0].old_count)
            return false;
    steps = count % steps == 0 && ranks[0].old_count % steps == 0 ? steps : 1;
    size_t each = count / steps, many = steps * g->rank_count;
    double *values = knee_resize(g->alloc, NULL, (many + 1) * sizeof *values);
    for (size_t p = 0; values && p < each; p++) {
        size_t n = 0;
        for (size_t r = 0; r < g->rank_count; r++)
            for (size_t s = 0; s < steps; s++)
                values[n++] = ranks[r].pieces[s * each + p].bytes;
        qsort(values, n, sizeof *values, knee_ascending);
        for (size_t r = 0; r < g->rank_count; r++)
            for (size_t s = 0; s < steps; s++)
                ranks[r].pieces[s * each + p].bytes = values[n / 2];
    }
    g->failed = g->failed || !values;
    knee_resize(g->alloc, values, 0);
    return true;
}

/* Buckets of this size are what the recording has. */
static bool is_the_same(const struct knee_graph *g, const struct rank_buckets *b,
                        const double *sent)
{
    bool same = b->added_count == b->old_count;
    for (size_t k = 0; same && k < b->old_count; k++) {
        double bytes = (double)g->meets[g->nodes[b->old[k]].meet - 1].bytes;
        same = fabs(sent[k] / bytes - 1) < 1 - NEARLY_FULL;
    }
    return same;
}

bool knee_apply_bucket(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    struct rank_buckets *ranks = knee_resize(g->alloc, NULL, g->rank_count * sizeof *ranks);
    double *sent = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *sent);
    bool good = ranks && sent, alike = true;
    size_t forward = SIZE_MAX;
    if (ranks)
        memset(ranks, 0, g->rank_count * sizeof *ranks);
    for (size_t r = 0; good && r < g->rank_count; r++) {
        struct filler f = {run, g, (int32_t)r, &ranks[r], 0, &forward};
        good = list_pieces(&f);
    }
    alike = good && settle_shares(g, ranks);
    good = good && !g->failed;
    for (size_t r = 0; good && alike && r < g->rank_count; r++) {
        struct filler f = {run, g, (int32_t)r, &ranks[r], 0, &forward};
        if (ranks[r].old_count) {
            fill_buckets(&f, run->ask->bucket_bytes, sent);
            retire_old(&f, g->ranks[r].lanes++);
        }
        alike = alike && ranks[r].added_count == ranks[0].added_count;
    }
    g->failed = g->failed || !good;
    if (good && alike && !g->failed)
        move_waiters(g, ranks);
    if (good && !ranks[0].old_count)
        good = knee_refuse(run, g->fsdp ? "FSDP sends the gradients of a module at once"
                                        : "no all-reduce of gradients is recorded");
    else if (good && !alike)
        good = knee_refuse(run, "the ranks do not send the same gradients");
    else if (good && is_the_same(g, &ranks[0], sent))
        good = knee_refuse(run, "gradients travel in such buckets already");
    good = good && !g->failed && join_buckets(run, ranks, sent);
    for (size_t r = 0; ranks && r < g->rank_count; r++)
        release(g, &ranks[r]);
    knee_resize(g->alloc, ranks, 0);
    knee_resize(g->alloc, sent, 0);
    return good;
}

/* ---- Overlap ---- */

#define LATE_SHARE 0.05 /* of the gradients that may be sent after the backward pass */

/* A rank's nodes in the order of their calls, and the same step by step. */
struct calls {
    struct knee_graph *g;
    int32_t *rows;
    size_t count;
    int32_t *by_step; /* places in rows; those of step s from ends[s] to ends[s + 1] */
    size_t *ends, steps;
    int32_t *next;     /* per place: the next node in its lane, if that meets no other rank */
    int32_t *backward; /* work of the backward pass of the step at hand */
    size_t backward_count;
    int32_t lane; /* for what is moved */
};

/* Steps begin at -1: what is in none. */
static void sort_by_step(struct calls *c)
{
    memset(c->ends, 0, (c->steps + 2) * sizeof *c->ends);
    for (size_t i = 0; i < c->count; i++)
        c->ends[c->g->nodes[c->rows[i]].step + 2]++;
    for (size_t s = 1; s < c->steps + 2; s++)
        c->ends[s] += c->ends[s - 1];
    for (size_t i = 0; i < c->count;
         i++) /* ends[s + 1] is where the next of s goes, until all are */
        c->by_step[c->ends[c->g->nodes[c->rows[i]].step + 1]++] = (int32_t)i;
    memmove(c->ends + 1, c->ends, (c->steps + 1) * sizeof *c->ends);
    c->ends[0] = 0;
}

/* False: no memory. */
static bool find_next(struct calls *c, int32_t lanes)
{
    int32_t *last = knee_resize(c->g->alloc, NULL, ((size_t)lanes + 1) * sizeof *last);
    if (!last)
        return false;
    for (int32_t lane = 0; lane <= lanes; lane++)
        last[lane] = KNEE_NO_NODE;
    for (size_t i = c->count; i-- > 0;) {
        const struct knee_node *n = &c->g->nodes[c->rows[i]];
        c->next[i] = last[n->lane];
        if (!n->meet)
            last[n->lane] = c->rows[i];
    }
    knee_resize(c->g->alloc, last, 0);
    return true;
}

static void calls_release(struct calls *c)
{
    void *const all[] = {c->rows, c->by_step, c->ends, c->next, c->backward};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(c->g->alloc, all[i], 0);
}

static bool calls_init(struct calls *c, struct knee_graph *g, size_t rank)
{
    *c = (struct calls){.g = g, .steps = g->account->ranks[rank].trace->step_count + 1};
    c->rows = knee_nodes_by_call(g, (int32_t)rank, &c->count);
    c->lane = g->ranks[rank].lanes++;
    size_t size = (c->count + 1) * sizeof(int32_t);
    c->by_step = knee_resize(g->alloc, NULL, size);
    c->next = knee_resize(g->alloc, NULL, size);
    c->backward = knee_resize(g->alloc, NULL, size);
    c->ends = knee_resize(g->alloc, NULL, (c->steps + 2) * sizeof *c->ends);
    if (!c->rows || !c->by_step || !c->next || !c->backward || !c->ends ||
        !find_next(c, g->ranks[rank].lanes)) {
        calls_release(c);
        return false;
    }
    sort_by_step(c);
    return true;
}

/* The work of the backward pass of a step, in the order it was called. */
static bool list_backward(struct calls *c, size_t step)
{
    c->backward_count = 0;
    for (size_t i = c->ends[step]; i < c->ends[step + 1]; i++) {
        int32_t row = c->rows[c->by_step[i]];
        const struct knee_node *n = &c->g->nodes[row];
        if (n->phase == KNEE_WORK_BACKWARD && n->kind == KNEE_NODE_COMPUTE)
            c->backward[c->backward_count++] = row;
    }
    return c->backward_count > 0;
}

/* Starts when `share` of the backward pass is done, on a separate stream. What came after it on its
 * old stream still does. What it waited for is cut later. */
static void move_exchange(struct calls *c, int32_t place, double share)
{
    struct knee_graph *g = c->g;
    size_t at = (size_t)ceil(share * (double)c->backward_count);
    int32_t row = c->rows[place], before = c->backward[at > 0 ? at - 1 : 0];
    knee_graph_add_edge(g, before, row, 0, KNEE_EDGE_RULED);
    if (c->next[place] != KNEE_NO_NODE)
        knee_graph_add_edge(g, row, c->next[place], 0, KNEE_EDGE_RULED);
    struct knee_node *moved = knee_graph_edit(g, (size_t)row);
    moved->lane = c->lane;
    moved->host = g->nodes[before].host;
    moved->host_lag_ns = g->nodes[before].host_lag_ns;
    moved->order = g->nodes[before].order;
    g->reordered = true;
}

/* Exchange that is called after the last work of the backward pass is spread over it; its bytes. */
static double spread_exchange(struct calls *c, size_t step, bool *moved)
{
    const struct knee_graph *g = c->g;
    int64_t last_call = g->nodes[c->backward[c->backward_count - 1]].call_ns;
    double all = 0, sent = 0;
    for (int counting = 1; counting >= 0; counting--)
        for (size_t i = c->ends[step]; i < c->ends[step + 1]; i++) {
            int32_t row = c->rows[c->by_step[i]];
            const struct knee_node *n = &g->nodes[row];
            if (!n->meet || !g->meets[n->meet - 1].gradients || n->call_ns <= last_call || n->gone)
                continue;
            double bytes = fmax(1, (double)g->meets[n->meet - 1].bytes);
            all += counting ? bytes : 0;
            sent += counting ? 0 : bytes;
            if (!counting) {
                moved[row] = true;
                move_exchange(c, c->by_step[i], sent / all);
            }
        }
    return all;
}

static void cut_before(struct knee_graph *g, size_t edges, const bool *moved)
{
    for (size_t e = 0; e < edges; e++)
        if (moved[g->edges[e].to])
            g->edges[e].lag_ns = KNEE_EDGE_CUT;
}

bool knee_apply_overlap(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    double moved_bytes = 0, all = 0;
    if (!g->phased)
        return knee_refuse(run, "the recording does not tell the backward pass apart: record with "
                                "ProfilerActivity.CPU");
    size_t edges = g->edge_count;
    bool *moved = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *moved);
    g->failed = g->failed || !moved;
    if (moved)
        memset(moved, 0, (g->count + 1) * sizeof *moved);
    for (size_t r = 0; r < g->rank_count && !g->failed; r++) {
        struct calls calls;
        if (!calls_init(&calls, g, r)) {
            g->failed = true;
            break;
        }
        for (size_t step = 0; step < calls.steps; step++)
            if (list_backward(&calls, step))
                moved_bytes += spread_exchange(&calls, step, moved);
        calls_release(&calls);
    }
    if (!g->failed)
        cut_before(g, edges, moved);
    knee_resize(g->alloc, moved, 0);
    for (size_t i = 0; i < g->meet_count; i++)
        all += g->meets[i].gradients ? fmax(1, (double)g->meets[i].bytes) * g->meets[i].count : 0;
    return !g->failed && (moved_bytes > LATE_SHARE * all ||
                          knee_refuse(run, "gradients are sent during the backward pass already"));
}

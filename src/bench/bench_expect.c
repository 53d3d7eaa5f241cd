/* SPDX-License-Identifier: MIT */
/* What goes in, what must come out, how long it should take. Nothing here touches a clock. */
#include "bench/bench.h"

#include "cluster/cluster.h"

#include <math.h>

enum { PERIOD = 13, MIDDLE = 6 }; /* prime, so that parts of a buffer differ from each other */

/* Small whole numbers: every sum of them is exact in f32, in whatever order. */
float knee_bench_input(int rank, size_t i)
{
    int value = (int)(((size_t)rank * 7 + i % PERIOD * 3) % PERIOD) - MIDDLE;
    return (float)value;
}

/* Sum over all ranks; the ranks repeat after PERIOD too. */
static float summed(int size, size_t i)
{
    float all = 0, rest = 0;
    for (int r = 0; r < PERIOD; r++) {
        all += knee_bench_input(r, i);
        rest += r < size % PERIOD ? knee_bench_input(r, i) : 0;
    }
    int rounds = size / PERIOD;
    return (float)rounds * all + rest;
}

float knee_bench_output(enum knee_op op, int rank, int size, size_t count, size_t i)
{
    size_t share = count / (size_t)size, mine = (size_t)rank * share;
    switch (op) {
    case KNEE_OP_ALL_REDUCE:
    case KNEE_OP_REDUCE: return summed(size, i);
    case KNEE_OP_ALL_GATHER:
    case KNEE_OP_GATHER: return knee_bench_input((int)(i / share), i % share);
    case KNEE_OP_REDUCE_SCATTER: return summed(size, mine + i);
    case KNEE_OP_ALL_TO_ALLV: /* the parts are equal; the call is the other one */
    case KNEE_OP_ALL_TO_ALL: return knee_bench_input((int)(i / share), mine + i % share);
    case KNEE_OP_BROADCAST: return knee_bench_input(0, i);
    case KNEE_OP_SCATTER: return knee_bench_input(0, mine + i);
    case KNEE_OP_SEND_RECV: return knee_bench_input((rank + size - 1) % size, i);
    default: return 0;
    }
}

static const struct {
    bool in_shared, out_shared, in_root, out_root; /* a share only; on the root only */
} shapes[KNEE_OPS] = {
    [KNEE_OP_ALL_GATHER] = {.in_shared = true},
    [KNEE_OP_REDUCE_SCATTER] = {.out_shared = true},
    [KNEE_OP_BROADCAST] = {.in_root = true},
    [KNEE_OP_REDUCE] = {.out_root = true},
    [KNEE_OP_GATHER] = {.in_shared = true, .out_root = true},
    [KNEE_OP_SCATTER] = {.out_shared = true, .in_root = true},
};

size_t knee_bench_in(enum knee_op op, int rank, int size, size_t count)
{
    return shapes[op].in_root && rank != 0 ? 0
           : shapes[op].in_shared          ? count / (size_t)size
                                           : count;
}

size_t knee_bench_out(enum knee_op op, int rank, int size, size_t count)
{
    return shapes[op].out_root && rank != 0 ? 0
           : shapes[op].out_shared          ? count / (size_t)size
                                            : count;
}

/* Hosts with such a wire between any two. A message more at once costs as much as one in turn, and
 * buffers go whole: neither is known of the library that is measured. */
static void hosts_on(const struct knee_line *wire, struct knee_cluster *out)
{
    knee_cluster_plain(out);
    out->whole = true;
    out->peer_s = wire->alpha_s;
    out->levels[1].latency_s = wire->alpha_s;
    out->levels[1].bytes_per_s = 1 / wire->s_per_byte;
}

static double exchange_s(const struct knee_exchange *exchange, double ranks, double bytes,
                         const struct knee_line *wire)
{
    return exchange->hops(ranks) * wire->alpha_s +
           exchange->share(ranks) * bytes * wire->s_per_byte;
}

/* The engine may choose any algorithm: the time of the fastest, or of one of ours. */
static double engine_s(enum knee_op op, double ranks, double bytes, const struct knee_line *wire)
{
    struct knee_cluster hosts;
    hosts_on(wire, &hosts);
    double best_s = knee_collective_s(&hosts, op, (struct knee_group){ranks, 1, true}, bytes, NULL);
    for (size_t i = 0; i < knee_exchange_count; i++)
        if (knee_exchanges[i].op == op)
            best_s = fmin(best_s, exchange_s(&knee_exchanges[i], ranks, bytes, wire));
    return best_s;
}

double knee_bench_expected_s(enum knee_op op, const struct knee_exchange *exchange, double ranks,
                             double bytes, const struct knee_line *wire)
{
    if (!(ranks > 1) || isnan(wire->alpha_s) || (exchange && exchange->op != op))
        return NAN;
    return exchange ? exchange_s(exchange, ranks, bytes, wire) : engine_s(op, ranks, bytes, wire);
}

/* From the fastest run of each size: disturbances only make a run longer. */
bool knee_bench_refit(const struct knee_bench *bench, const struct knee_exchange *exchange,
                      struct knee_line *out)
{
    enum { MOST = 256 };
    struct knee_point points[MOST];
    size_t count = 0;
    double ranks = bench->rt->size;
    for (size_t i = 0; ranks > 1 && i < bench->row_count && count < MOST; i++) {
        const struct knee_bench_row *row = &bench->rows[i];
        if (row->exchange == exchange)
            points[count++] = (struct knee_point){
                exchange->hops(ranks), exchange->share(ranks) * row->bytes, row->spread.min_s};
    }
    return knee_line_fit(points, count, out);
}

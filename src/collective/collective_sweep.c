/* SPDX-License-Identifier: MIT */
/*
 * A collective over sizes: each algorithm's time with its best protocol, the winner, where winners
 * change (found by bisection between sizes), the bandwidth they approach, and where half of it is
 * reached. Bandwidths are those of nccl-tests: algorithm = bytes / time, bus = that times what a
 * flat ring would have to move.
 */
#include "base/error.h"
#include "base/text.h"
#include "collective/collective.h"
#include "collective/curve.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* One algorithm with its fastest protocol. */
struct timing {
    const struct knee_algorithm *algorithm;
    enum knee_protocol_name protocol;
    double time_s;
};

static bool time_one(const struct knee_collective *c, const struct knee_algorithm *algorithm,
                     double bytes, struct timing *out)
{
    struct knee_counts counts = {0};
    if (!knee_scheme_count(&c->cluster, &c->layout, c->query.op, bytes, algorithm, &counts))
        return false;
    out->algorithm = algorithm;
    out->time_s = knee_best_protocol_s(&c->cluster, &c->layout, &counts, algorithm, &out->protocol);
    return true;
}

static bool find_winner(const struct knee_collective *c, double bytes, struct timing *out)
{
    const struct knee_algorithm *row;
    struct timing best = {.time_s = INFINITY}, one;
    for (size_t i = 0; (row = knee_scheme_at(i)); i++)
        if (time_one(c, row, bytes, &one) && one.time_s < best.time_s)
            best = one;
    *out = best;
    return best.algorithm != NULL;
}

static bool same(const struct timing *a, const struct timing *b)
{
    return a->algorithm == b->algorithm && a->protocol == b->protocol;
}

/* Winners change between two sizes: the first change, then what is left of the gap. */
static void find_crossovers(struct knee_collective *c, double low, double high)
{
    struct timing before, after, middle;
    while (c->crossover_count < KNEE_CROSSOVERS_MAX && find_winner(c, low, &before) &&
           find_winner(c, high, &after) && !same(&before, &after)) {
        double from = low, to = high; /* the winner at `from` is `before`, at `to` another */
        while (to / from > 1.001) {
            double between = sqrt(from * to);
            find_winner(c, between, &middle);
            *(same(&middle, &before) ? &from : &to) = between;
        }
        find_winner(c, to, &after);
        c->crossovers[c->crossover_count++] = (struct knee_crossover){
            to, before.algorithm, after.algorithm, before.protocol, after.protocol};
        low = to;
    }
}

static void fill_size(struct knee_collective *c, size_t index)
{
    struct knee_collective_size *size = &c->sizes[index];
    double bytes = c->query.bytes[index], bus = knee_op_bus_factor(c->query.op, c->layout.ranks);
    const struct knee_algorithm *row;
    size_t first = c->row_count;
    *size = (struct knee_collective_size){.bytes = bytes,
                                          .first = first,
                                          .winner = first,
                                          .measured_s = NAN,
                                          .slowdown = NAN,
                                          .finding = SIZE_MAX};
    for (size_t i = 0; (row = knee_scheme_at(i)); i++) {
        struct timing timing, smallest;
        if (!time_one(c, row, bytes, &timing))
            continue;
        struct knee_collective_row *r = &c->rows[c->row_count];
        *r = (struct knee_collective_row){bytes,
                                          row,
                                          timing.protocol,
                                          timing.time_s,
                                          bytes / timing.time_s,
                                          bus * bytes / timing.time_s,
                                          false};
        if (c->row_count == first || r->time_s < c->rows[size->winner].time_s) {
            size->winner = c->row_count;
            struct knee_counts none = {0};
            row->count(&c->layout, c->query.op, 0, &none);
            smallest.time_s = knee_counts_time_s(&c->cluster, &c->layout, &none, row, r->protocol);
            size->latency_share = smallest.time_s / r->time_s;
            size->latency_bound = size->latency_share > 0.5;
        }
        c->row_count++;
    }
    size->last = c->row_count;
    if (c->row_count > first)
        c->rows[size->winner].winner = true;
    size->expected_s = knee_expected_time_s(&c->cluster, &c->layout, c->query.op, bytes);
    size->nccl = knee_nccl_choose(&c->cluster, &c->layout, c->query.op, bytes);
}

#define HUGE_BYTES 1e16

static double bus_at(const struct knee_collective *c, double bytes)
{
    struct timing winner;
    if (!find_winner(c, bytes, &winner))
        return NAN;
    return knee_op_bus_factor(c->query.op, c->layout.ranks) * bytes / winner.time_s;
}

static void find_half(struct knee_collective *c)
{
    c->peak_bytes_per_s = bus_at(c, HUGE_BYTES);
    double low = 1, high = HUGE_BYTES;
    while (high / low > 1.001) {
        double middle = sqrt(low * high);
        *(bus_at(c, middle) < c->peak_bytes_per_s / 2 ? &low : &high) = middle;
    }
    c->half_bandwidth_bytes = high;
}

void knee_collective_release(struct knee_collective *collective)
{
    knee_resize(collective->alloc, collective->rows, 0);
    knee_resize(collective->alloc, collective->sizes, 0);
    knee_resize(collective->alloc, collective->bytes, 0);
    collective->rows = NULL;
    collective->sizes = NULL;
    collective->query.bytes = collective->bytes = NULL;
    collective->query.size_count = collective->row_count = 0;
}

static size_t count_schemes(void)
{
    size_t count = 0;
    while (knee_scheme_at(count))
        count++;
    return count;
}

static knee_status get_memory(struct knee_collective *c, const struct knee_collective_query *query,
                              struct knee_err *err)
{
    size_t n = query->size_count;
    c->bytes = knee_resize(c->alloc, NULL, (n + 1) * sizeof *c->bytes);
    c->query.bytes = c->bytes;
    c->rows = knee_resize(c->alloc, NULL, (n * count_schemes() + 1) * sizeof *c->rows);
    c->sizes = knee_resize(c->alloc, NULL, (n + 1) * sizeof *c->sizes);
    if (!c->bytes || !c->rows || !c->sizes)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    memcpy(c->bytes, query->bytes, n * sizeof *c->bytes);
    return KNEE_OK;
}

static knee_status run(struct knee_collective *c, const struct knee_collective_query *query,
                       struct knee_err *err)
{
    knee_status status = knee_layout_init(&c->cluster, &query->placement, &c->layout, err);
    if (!status)
        status = get_memory(c, query, err);
    for (size_t i = 0; i < query->size_count && !status; i++) {
        fill_size(c, i);
        if (i > 0)
            find_crossovers(c, c->query.bytes[i - 1], c->query.bytes[i]);
    }
    if (status)
        return status;
    if (c->row_count == 0)
        return knee_fail(err, KNEE_USAGE, "", "no algorithm does %s there",
                         knee_op_name(query->op));
    find_half(c);
    c->curve = knee_curve_find(&c->cluster, &c->layout, query->op) != NULL;
    return KNEE_OK;
}

knee_status knee_collective_run(const struct knee_cluster *cluster,
                                const struct knee_collective_query *query,
                                const struct knee_alloc *alloc, struct knee_collective *out,
                                struct knee_err *err)
{
    struct knee_collective *c = knee_resize(alloc, NULL, sizeof *c); /* for a small stack */
    if (!c)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    memset(c, 0, sizeof *c);
    c->query = *query;
    c->query.bytes = NULL;
    c->cluster = *cluster;
    c->alloc = alloc;
    knee_status status = run(c, query, err);
    if (status)
        knee_collective_release(c);
    else
        *out = *c;
    knee_resize(alloc, c, 0);
    return status;
}

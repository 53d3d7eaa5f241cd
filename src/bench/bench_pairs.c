/* SPDX-License-Identifier: MIT */
/*
 * Disjoint pairs play ping-pong at the same time, round after round; half a round trip at a few
 * sizes makes a line alpha + bytes * beta for each pair. Whoever has no partner waits at the
 * barrier.
 */
#include "bench/bench_pairs.h"

#include "reach/start.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PING_TAG = 79,
    SIZES = 4,
    SMALL_TIMES = 20,
    LARGE_TIMES = 5,
    LARGE_BYTES = 1 << 16,
    PIECE_BYTES = 1 << 15, /* below what engines send without asking first */
    PIECES_MAX = 32,
};

static const size_t ping_bytes[SIZES] = {8, 1 << 12, PIECE_BYTES, 1 << 20};

int knee_ring_rounds(int size)
{
    return size < 2 ? 0 : size == 2 ? 1 : 2 + size % 2;
}

/* 0-1 2-3 ..., then 1-2 3-4 ..., and for an odd number the last with the first. */
int knee_ring_partner(int size, int round, int player)
{
    bool closing = size % 2 && round == 2;
    if (closing)
        return player == 0 ? size - 1 : player == size - 1 ? 0 : -1;
    bool lower = player % 2 == round % 2;
    int other = lower ? player + 1 : player - 1;
    if (size % 2)
        return other >= 0 && other < size ? other : -1;
    return (other + size) % size;
}

int knee_league_rounds(int size)
{
    return size < 2 ? 0 : size % 2 ? size : size - 1;
}

/* The circle method: one stays, the others move on by one each round. */
int knee_league_partner(int size, int round, int player)
{
    int seats = size % 2 ? size + 1 : size, turning = seats - 1, other;
    if (player == turning)
        other = (round * (seats / 2)) % turning;
    else
        other = (2 * turning + round - player) % turning;
    if (other == player)
        other = turning;
    return other < size ? other : -1;
}

/* `pieces` messages at once, `bytes` in all. */
static bool move(struct knee_runtime *rt, bool sending, char *data, size_t bytes, size_t pieces,
                 int other)
{
    struct knee_request *request[PIECES_MAX] = {NULL};
    size_t piece = bytes / pieces;
    bool good = true;
    for (size_t i = 0; i < pieces && good; i++) {
        char *at = data + i * piece;
        good = sending ? rt->send_start(rt, at, piece, other, PING_TAG, &request[i])
                       : rt->receive_start(rt, at, piece, other, PING_TAG, &request[i]);
    }
    for (size_t i = 0; i < pieces && good; i++)
        good = rt->wait(rt, &request[i]);
    return good;
}

/* Half a round trip, the median of several; both sides go through the same motions. */
static bool ping(struct knee_runtime *rt, char *data, size_t bytes, size_t pieces, int other,
                 double *time_s)
{
    double samples[SMALL_TIMES];
    size_t times = bytes > LARGE_BYTES ? LARGE_TIMES : SMALL_TIMES;
    bool first = rt->rank < other;
    for (size_t i = 0; i < times + 1; i++) { /* one to warm up */
        double start_s = knee_clock_s();
        if (!move(rt, first, data, bytes, pieces, other) ||
            !move(rt, !first, data, bytes, pieces, other))
            return false;
        if (i)
            samples[i - 1] = (knee_clock_s() - start_s) / 2;
    }
    *time_s = knee_median(samples, times);
    return true;
}

/* Large messages are also sent in pieces, and the faster way counts: a handshake that an engine
 * adds to large messages does not describe the wire. */
static bool quickest_ping(struct knee_runtime *rt, char *data, size_t bytes, int other,
                          double *time_s)
{
    double whole_s = 0, pieces_s = INFINITY;
    bool good = ping(rt, data, bytes, 1, other, &whole_s);
    if (good && bytes > LARGE_BYTES)
        good = ping(rt, data, bytes, bytes / PIECE_BYTES, other, &pieces_s);
    *time_s = fmin(whole_s, pieces_s);
    return good;
}

struct schedule {
    int rounds;
    int (*partner)(int size, int round, int player);
    const int *players; /* rank of each */
    int size;
};

/* times_s[round][player][size]: filled by the lower of the two, 0 elsewhere. */
static bool play(struct knee_runtime *rt, const struct schedule *schedule, double *times_s)
{
    char *data = calloc(ping_bytes[SIZES - 1], 1);
    int me = -1;
    bool good = data != NULL;
    if (!data)
        snprintf(rt->fault, sizeof rt->fault, "out of memory");
    for (int p = 0; p < schedule->size; p++)
        if (schedule->players[p] == rt->rank)
            me = p;
    for (int round = 0; good && round < schedule->rounds; round++) {
        int other = me < 0 ? -1 : schedule->partner(schedule->size, round, me);
        for (size_t s = 0; good && other >= 0 && s < SIZES; s++) {
            double time_s = 0;
            good = quickest_ping(rt, data, ping_bytes[s], schedule->players[other], &time_s);
            if (rt->rank < schedule->players[other])
                times_s[((size_t)round * (size_t)schedule->size + (size_t)me) * SIZES + s] = time_s;
        }
        good = good && rt->barrier(rt);
    }
    free(data);
    return good;
}

static void take_pairs(struct knee_bench *bench, const struct schedule *schedule,
                       const double *times_s)
{
    for (int round = 0; round < schedule->rounds; round++)
        for (int p = 0; p < schedule->size; p++) {
            const double *times =
                times_s + ((size_t)round * (size_t)schedule->size + (size_t)p) * SIZES;
            int other = schedule->partner(schedule->size, round, p);
            struct knee_point points[SIZES];
            struct knee_bench_pair pair = {.a = schedule->players[p]};
            if (other < 0 || !(times[0] > 0))
                continue;
            pair.b = schedule->players[other];
            for (size_t s = 0; s < SIZES; s++)
                points[s] = (struct knee_point){1, (double)ping_bytes[s], times[s]};
            if (knee_line_fit(points, SIZES, &pair.line))
                bench->pairs[bench->pair_count++] = pair;
        }
}

static bool measure(struct knee_bench *bench, const struct schedule *schedule)
{
    struct knee_runtime *rt = bench->rt;
    size_t cells = (size_t)schedule->rounds * (size_t)schedule->size;
    double *times_s = calloc(cells * SIZES + 1, sizeof *times_s);
    bench->pairs = calloc(cells + 1, sizeof *bench->pairs);
    bool good = times_s && bench->pairs;
    if (!good)
        snprintf(rt->fault, sizeof rt->fault, "out of memory");
    good = good && rt->barrier(rt) && play(rt, schedule, times_s) &&
           rt->all_reduce(rt, times_s, cells * SIZES, KNEE_RUNTIME_F64, KNEE_RUNTIME_MAX);
    if (good)
        take_pairs(bench, schedule, times_s);
    free(times_s);
    return good;
}

static bool crosses(const struct knee_bench *bench, const struct knee_bench_pair *pair)
{
    return bench->rt->host_count == 1 || bench->rt->host_of[pair->a] != bench->rt->host_of[pair->b];
}

/* The middle of the pairs between hosts, or of all when there is one host. */
static void take_wire(struct knee_bench *bench)
{
    double *values = calloc(2 * bench->pair_count + 1, sizeof *values);
    double *rates = values ? values + bench->pair_count : NULL;
    size_t count = 0;
    for (size_t i = 0; values && i < bench->pair_count; i++)
        if (crosses(bench, &bench->pairs[i])) {
            values[count] = bench->pairs[i].line.alpha_s;
            rates[count++] = bench->pairs[i].line.s_per_byte;
        }
    if (count) {
        bench->wire.alpha_s = knee_median(values, count);
        bench->wire.s_per_byte = knee_median(rates, count);
    }
    free(values);
}

bool knee_bench_measure_pairs(struct knee_bench *bench)
{
    struct knee_runtime *rt = bench->rt;
    bool hosts_only = bench->options.pairs && rt->host_count > 1;
    int *players = calloc((size_t)rt->size, sizeof *players), count = 0;
    if (!players) {
        snprintf(rt->fault, sizeof rt->fault, "out of memory");
        return false;
    }
    for (int r = 0; r < rt->size; r++)
        if (!hosts_only || rt->host_of[r] == count) /* the first rank of each host */
            players[count++] = r;
    bool league = bench->options.pairs;
    struct schedule schedule = {
        .rounds = league ? knee_league_rounds(count) : knee_ring_rounds(count),
        .partner = league ? knee_league_partner : knee_ring_partner,
        .players = players,
        .size = count,
    };
    bool good = measure(bench, &schedule);
    if (good)
        take_wire(bench);
    free(players);
    return good;
}

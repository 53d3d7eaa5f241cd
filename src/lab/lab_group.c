/* SPDX-License-Identifier: MIT */
/*
 * Own collectives over send and receive. A ring all-reduce is a reduce-scatter and an all-gather of
 * K - 1 hops each (Patarasuk and Yuan 2009). Where encoding partial sums again at every hop would
 * lose too much (fp8, int8, 1-bit) the reduce-scatter goes straight to each chunk's owner instead:
 * the same bytes and hops, but every value is encoded twice only (Tang et al. 2021, 1-bit Adam).
 */
#include "lab/lab_group.h"
#include "base/order.h"
#include "reach/clock.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 7 };

int64_t lab_now_ns(void)
{
    return knee_clock_ns(CLOCK_MONOTONIC);
}

void lab_sleep_until(int64_t ns)
{
    struct timespec until = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        if (lab_now_ns() >= ns)
            return;
}

/* Between two looks at a request: a few polite turns, then short naps, because ranks may be more
 * than cores and the arithmetic needs them. */
static void rest(unsigned looks)
{
    enum { TURNS = 32, NAP_NS = 30000 };
    if (looks < TURNS)
        sched_yield();
    else
        nanosleep(&(struct timespec){0, NAP_NS}, NULL);
}

static void hold_back(const struct lab_group *group, size_t bytes)
{
    if (group->pace_bytes_per_s > 0)
        lab_sleep_until(lab_now_ns() + (int64_t)(1e9 * (group->pace_latency_s +
                                                        (double)bytes / group->pace_bytes_per_s)));
}

bool lab_swap(struct lab_group *group, struct lab_sent out, struct lab_received in)
{
    struct knee_runtime *rt = group->runtime;
    struct knee_request *sending = NULL, *receiving = NULL;
    bool sent = out.bytes == 0, came = in.bytes == 0, good = !group->failed;
    if (group->dry)
        return true;
    if (good && !came)
        good = rt->receive_start(rt, in.data, in.bytes, in.from, TAG, &receiving);
    if (good && !sent) {
        hold_back(group, out.bytes);
        good = rt->send_start(rt, out.data, out.bytes, out.to, TAG, &sending);
        group->sent_bytes += (int64_t)out.bytes;
        group->messages++;
    }
    for (unsigned looks = 0; good && !(sent && came); looks++) {
        if (!sent)
            good = rt->test(rt, &sending, &sent);
        if (good && !came)
            good = rt->test(rt, &receiving, &came);
        if (!(sent && came))
            rest(looks);
    }
    group->failed = group->failed || !good;
    return good;
}

/* ---- Ring ---- */

static size_t chunk_at(size_t count, int chunk, int size)
{
    return count * (size_t)chunk / (size_t)size;
}

static size_t chunk_count(size_t count, int chunk, int size)
{
    return chunk_at(count, chunk + 1, size) - chunk_at(count, chunk, size);
}

static int around(int rank, int size)
{
    return (rank % size + size) % size;
}

/* One chunk, encoded, with the odd one value more. */
static size_t chunk_room(const struct lab_format *format, size_t count, int size)
{
    return lab_format_bytes(format, count / (size_t)size + 1) + sizeof(float);
}

size_t lab_ring_room(const struct lab_format *format, size_t count, int size)
{
    return (size_t)size * chunk_room(format, count, size) + (count + 1) * sizeof(float);
}

double lab_ring_sum_bytes(const struct lab_format *format, size_t count, int size)
{
    double bytes = 0;
    for (int chunk = 0; chunk + 1 < size; chunk++)
        bytes += 2 * (double)lab_format_bytes(format, chunk_count(count, chunk, size));
    return bytes;
}

static void add(float *to, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* What is being summed, and where. */
struct sum {
    struct lab_group *group;
    const struct lab_format *format;
    float *values, *memory, *owner_memory, *decoded;
    size_t count, chunk_room;
    unsigned char *chunks; /* encoded, `chunk_room` apart */
};

static unsigned char *encoded(const struct sum *s, int chunk)
{
    return s->chunks + (size_t)chunk * s->chunk_room;
}

static size_t encoded_bytes(const struct sum *s, int chunk)
{
    return lab_format_bytes(s->format, chunk_count(s->count, chunk, s->group->size));
}

static float *values_of(const struct sum *s, int chunk)
{
    return s->values + chunk_at(s->count, chunk, s->group->size);
}

/* K - 1 hops round the ring, adding on the way; chunk r ends at rank r. */
static bool reduce_in_ring(const struct sum *s)
{
    int size = s->group->size, rank = s->group->rank;
    unsigned char *in = encoded(s, rank);
    for (int hop = 0; hop + 1 < size; hop++) {
        int out_chunk = around(rank - hop - 1, size), in_chunk = around(rank - hop - 2, size);
        size_t count = chunk_count(s->count, in_chunk, size);
        unsigned char *out = encoded(s, around(rank + 1, size));
        s->format->encode(values_of(s, out_chunk), chunk_count(s->count, out_chunk, size), out);
        if (!lab_swap(
                s->group,
                (struct lab_sent){around(rank + 1, size), out, encoded_bytes(s, out_chunk)},
                (struct lab_received){around(rank - 1, size), in, encoded_bytes(s, in_chunk)}))
            return false;
        s->format->decode(in, count, s->decoded);
        add(values_of(s, in_chunk), s->decoded, count);
    }
    return true;
}

/* Keeps in `memory` what encoding `values` lost. */
static void remember(const struct sum *s, const float *values, size_t count,
                     const unsigned char *code, float *memory)
{
    s->format->decode(code, count, s->decoded);
    for (size_t i = 0; i < count; i++)
        memory[i] = values[i] - s->decoded[i];
}

/* Every rank sends each chunk to its owner, in K - 1 rounds that load all links alike. */
static bool reduce_at_owner(const struct sum *s)
{
    int size = s->group->size, rank = s->group->rank;
    size_t own = chunk_count(s->count, rank, size);
    if (s->memory)
        add(s->values, s->memory, s->count);
    for (int chunk = 0; chunk < size; chunk++) {
        size_t count = chunk_count(s->count, chunk, size);
        float *memory = s->memory ? s->memory + chunk_at(s->count, chunk, size) : NULL;
        if (chunk != rank)
            s->format->encode(values_of(s, chunk), count, encoded(s, chunk));
        if (memory && chunk != rank)
            remember(s, values_of(s, chunk), count, encoded(s, chunk), memory);
        else if (memory)
            memset(memory, 0, count * sizeof *memory);
    }
    for (int round = 1; round < size; round++) {
        int to = around(rank + round, size), from = around(rank - round, size);
        if (!lab_swap(s->group, (struct lab_sent){to, encoded(s, to), encoded_bytes(s, to)},
                      (struct lab_received){from, encoded(s, rank), encoded_bytes(s, rank)}))
            return false;
        s->format->decode(encoded(s, rank), own, s->decoded);
        add(values_of(s, rank), s->decoded, own);
    }
    if (s->owner_memory)
        add(values_of(s, rank), s->owner_memory, own);
    return true;
}

/* The finished chunks go round, encoded once by their owners, so that all ranks decode the same. */
static bool hand_round(const struct sum *s)
{
    int size = s->group->size, rank = s->group->rank;
    size_t own = chunk_count(s->count, rank, size);
    s->format->encode(values_of(s, rank), own, encoded(s, rank));
    if (s->owner_memory)
        remember(s, values_of(s, rank), own, encoded(s, rank), s->owner_memory);
    for (int hop = 0; hop + 1 < size; hop++) {
        int out = around(rank - hop, size), in = around(rank - hop - 1, size);
        if (!lab_swap(
                s->group,
                (struct lab_sent){around(rank + 1, size), encoded(s, out), encoded_bytes(s, out)},
                (struct lab_received){around(rank - 1, size), encoded(s, in),
                                      encoded_bytes(s, in)}))
            return false;
    }
    for (int chunk = 0; chunk < size; chunk++)
        s->format->decode(encoded(s, chunk), chunk_count(s->count, chunk, size),
                          values_of(s, chunk));
    return true;
}

bool lab_ring_sum(struct lab_group *group, const struct lab_format *format,
                  const struct lab_vector *v)
{
    struct sum s = {
        .group = group,
        .format = format,
        .values = v->values,
        .memory = v->memory,
        .owner_memory = v->owner_memory,
        .decoded = (float *)(void *)v->room,
        .count = v->count,
        .chunk_room = chunk_room(format, v->count, group->size),
        .chunks = v->room + (v->count + 1) * sizeof(float),
    };
    if (group->size == 1)
        return true;
    return (format->adds_in_ring ? reduce_in_ring(&s) : reduce_at_owner(&s)) && hand_round(&s);
}

bool lab_ring_gather(struct lab_group *group, unsigned char *all, size_t bytes)
{
    int size = group->size, rank = group->rank;
    for (int hop = 0; hop + 1 < size; hop++) {
        int out = around(rank - hop, size), in = around(rank - hop - 1, size);
        if (!lab_swap(
                group, (struct lab_sent){around(rank + 1, size), all + (size_t)out * bytes, bytes},
                (struct lab_received){around(rank - 1, size), all + (size_t)in * bytes, bytes}))
            return false;
    }
    return true;
}

bool lab_meet(struct lab_group *group)
{
    /* log2 K rounds of one byte: after round i every rank has heard from 2^(i+1) - 1 others */
    for (int distance = 1; distance < group->size; distance *= 2) {
        char out = 1, in = 0;
        if (!lab_swap(group,
                      (struct lab_sent){around(group->rank + distance, group->size), &out, 1},
                      (struct lab_received){around(group->rank - distance, group->size), &in, 1}))
            return false;
    }
    return true;
}

/* ---- Alpha and beta ---- */

enum { ROUNDS = 9, TURNS_EACH = 4 };

/* Half the time there and back of one byte. */
static bool time_ping(struct lab_group *pair, double *out)
{
    double taken[ROUNDS * TURNS_EACH];
    char byte = 1;
    for (size_t i = 0; i < ROUNDS * TURNS_EACH; i++) {
        int64_t start = lab_now_ns();
        size_t first = pair->rank == 0, other = (size_t)(1 - pair->rank);
        if (!lab_swap(pair, (struct lab_sent){(int)other, &byte, first},
                      (struct lab_received){(int)other, &byte, !first}) ||
            !lab_swap(pair, (struct lab_sent){(int)other, &byte, !first},
                      (struct lab_received){(int)other, &byte, first}))
            return false;
        taken[i] = 0.5e-9 * (double)(lab_now_ns() - start);
    }
    *out = knee_median(taken, ROUNDS * TURNS_EACH);
    return true;
}

/* A two-way exchange of `bytes`: a ring sends and receives at once. Several in a row are timed
 * together, because the one that is ahead waits in one and not in the next. */
static bool time_swaps(struct lab_group *pair, unsigned char *room, size_t bytes, double *out)
{
    double taken[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) { /* the first one warms up */
        int64_t start = lab_now_ns();
        for (int i = 0; i < TURNS_EACH; i++)
            if (!lab_swap(pair, (struct lab_sent){1 - pair->rank, room, bytes},
                          (struct lab_received){1 - pair->rank, room + bytes, bytes}))
                return false;
        if (round >= 0)
            taken[round] = 1e-9 * (double)(lab_now_ns() - start) / TURNS_EACH;
    }
    *out = knee_median(taken, ROUNDS);
    return true;
}

bool lab_measure_link(struct lab_group *group, size_t large_bytes, struct lab_link *out)
{
    double small_s = 0, large_s = 0, values[2] = {0, 0};
    bool good = group->size > 1;
    unsigned char *room = good ? calloc(2, large_bytes) : NULL;
    struct lab_group pair = *group;
    pair.size = 2;
    if (good && !room) {
        snprintf(group->runtime->fault, sizeof group->runtime->fault, "out of memory");
        group->failed = true;
        return false;
    }
    if (good && group->rank < 2)
        good = time_ping(&pair, &small_s) && time_swaps(&pair, room, large_bytes, &large_s);
    free(room);
    group->failed = group->failed || pair.failed;
    if (!good)
        return false;
    if (group->rank == 0) {
        values[0] = small_s;
        values[1] = large_s > small_s ? (double)large_bytes / (large_s - small_s) : 0;
    }
    /* rank 0 sends it to all others */
    for (int other = 1; other < group->size && good; other++) {
        if (group->rank == 0)
            good = lab_swap(group, (struct lab_sent){other, values, sizeof values},
                            (struct lab_received){0, NULL, 0});
        else if (group->rank == other)
            good = lab_swap(group, (struct lab_sent){0, NULL, 0},
                            (struct lab_received){0, values, sizeof values});
    }
    *out = (struct lab_link){values[0], values[1]};
    return good && values[1] > 0;
}

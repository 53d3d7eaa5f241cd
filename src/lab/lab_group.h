/* SPDX-License-Identifier: MIT */
/*
 * The first K ranks of a run as a group, and what they send each other. All traffic of the lab goes
 * through lab_swap(), which counts it; all collectives are built on it, so that any K and any wire
 * format is the same code.
 */
#ifndef KNEE_LAB_LAB_GROUP_H
#define KNEE_LAB_LAB_GROUP_H

#include "lab/lab_format.h"
#include "reach/runtime.h"

struct lab_group {
    struct knee_runtime *runtime;
    int rank, size;
    /* A stand-in for a slow link: what is sent is held back as long as it would take. 0: none. */
    double pace_bytes_per_s, pace_latency_s;
    bool dry; /* nothing is sent or received: what is left is the arithmetic around it */
    int64_t sent_bytes, messages;
    bool failed; /* runtime->fault says why */
};

struct lab_sent {
    int to;
    const void *data;
    size_t bytes;
};

struct lab_received {
    int from;
    void *data;
    size_t bytes;
};

/* Sends and receives at once; either may be of 0 bytes, and then nothing goes. */
bool lab_swap(struct lab_group *group, struct lab_sent out, struct lab_received in);

/* With a format that loses something, `memory` (count values) and `owner_memory` (as many) keep
 * what was lost for the next time; both may be NULL. `room` holds 2 * lab_ring_room(). */
struct lab_vector {
    float *values;
    size_t count;
    float *memory, *owner_memory;
    unsigned char *room;
};

/* Sums the values over the group, in place, the same on all. */
bool lab_ring_sum(struct lab_group *group, const struct lab_format *format,
                  const struct lab_vector *vector);
size_t lab_ring_room(const struct lab_format *format, size_t count, int size);

/* all[rank * bytes] is own; afterwards all of `all` is filled. */
bool lab_ring_gather(struct lab_group *group, unsigned char *all, size_t bytes);

/* What one rank sends in lab_ring_sum(), exactly; the largest over ranks. */
double lab_ring_sum_bytes(const struct lab_format *format, size_t count, int size);

/* A barrier: returns when all ranks have called it. */
bool lab_meet(struct lab_group *group);

/* Alpha and beta between the first two ranks, from two-way exchanges of small and large messages
 * through lab_swap(): a ring sends and receives at the same time. */
struct lab_link {
    double latency_s, bytes_per_s;
};
bool lab_measure_link(struct lab_group *group, size_t large_bytes, struct lab_link *out);

/* Nanoseconds that never run back; and sleeping until then. */
int64_t lab_now_ns(void);
void lab_sleep_until(int64_t ns);

#endif

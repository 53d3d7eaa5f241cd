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

/* Sends to `to` and receives from `from` at once; either size may be 0, and then nothing goes. */
bool lab_swap(struct lab_group *group, int to, const void *out, size_t out_bytes, int from,
              void *in, size_t in_bytes);

/* Sums `values` over the group, in place, the same on all. `room` holds 2 * lab_ring_room(). With a
 * format that loses something, `memory` (count values) and `owner_memory` (as many) keep what was
 * lost for the next time; both may be NULL. */
bool lab_ring_sum(struct lab_group *group, const struct lab_format *format, float *values,
                  size_t count, float *memory, float *owner_memory, unsigned char *room);
size_t lab_ring_room(const struct lab_format *format, size_t count, int size);

/* all[rank * bytes] is own; afterwards all of `all` is filled. */
bool lab_ring_gather(struct lab_group *group, unsigned char *all, size_t bytes);

/* What one rank sends in lab_ring_sum(), exactly; the largest over ranks. */
double lab_ring_sum_bytes(const struct lab_format *format, size_t count, int size);

/* Everybody has come. */
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

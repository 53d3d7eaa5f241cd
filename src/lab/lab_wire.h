/* SPDX-License-Identifier: MIT */
/*
 * How gradients (or parameters) are summed over the workers: one row per wire. A bucket is a range
 * of whole tensors; what a wire has to remember between two exchanges belongs to the bucket.
 */
#ifndef KNEE_LAB_LAB_WIRE_H
#define KNEE_LAB_LAB_WIRE_H

#include "lab/lab_group.h"
#include "lab/lab_net.h"

struct lab_bucket {
    size_t at, count; /* range of the parameters */
    const struct lab_tensor *tensors;
    size_t tensor_count;
    /* What was not sent (error feedback), by this rank and as owner of a chunk; PowerSGD's
     * factors; room to encode. */
    float *memory, *owner_memory, *factors, *work;
    unsigned char *room;
};

struct lab_wire {
    const char *name;
    const char *kernel; /* as the timeline calls it */
    const char *about;
    enum knee_op op;
    const struct lab_format *format; /* NULL: its own way */
    bool feedback;
    /* All of the bucket's values, summed over the group, in place. */
    bool (*exchange)(const struct lab_wire *wire, struct lab_group *group,
                     struct lab_bucket *bucket, float *values);
    /* What one rank sends, and in how many messages one after the other. */
    double (*bytes)(const struct lab_wire *wire, const struct lab_bucket *bucket, int workers);
    double (*hops)(int workers);
};

extern const struct knee_choices lab_wire_names;
const struct lab_wire *lab_wire_at(int row);

/* Room for a bucket on this wire. `whole` tensors only. False: out of memory. */
bool lab_bucket_init(struct lab_bucket *bucket, const struct lab_wire *wire, int workers,
                     struct knee_arena *memory);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Our own collectives over point-to-point messages, one row per algorithm and operation, beside the
 * engine's. Each works in place on f32 in host memory with `scratch` as large as `data`, sums, root
 * 0, for any number of ranks.
 */
#ifndef KNEE_REACH_EXCHANGE_H
#define KNEE_REACH_EXCHANGE_H

#include "knee_collective.h"
#include "reach/runtime.h"

struct knee_exchange {
    const char *algorithm;
    enum knee_op op;
    const char *formula;
    bool (*run)(struct knee_runtime *rt, float *data, float *scratch, size_t count);
    /* Messages in a row, and bytes of S that one of them after the other carries: the time is
     * hops * alpha + share * S / B. */
    double (*hops)(double ranks);
    double (*share)(double ranks);
};
extern const struct knee_exchange knee_exchanges[];
extern const size_t knee_exchange_count;

/* The row, or NULL: the algorithm does not do that. */
const struct knee_exchange *knee_exchange_find(const char *algorithm, enum knee_op op);

/* The largest *time_s of all ranks. No rank returns before all have called. */
bool knee_exchange_latest(struct knee_runtime *rt, double *time_s);

/* First element of part `part` of `parts` of count elements. */
size_t knee_part(size_t count, size_t part, size_t parts);

#endif

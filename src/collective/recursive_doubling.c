/* SPDX-License-Identifier: MIT */
/* Recursive doubling: log2 K exchanges of the whole buffer; best for small ones. */
#include "collective/collective.h"

#include <math.h>

/* All-gather doubles what it holds each round, and needs a power of two. */
static bool count_doubling(const struct knee_layout *layout, enum knee_op op, double bytes,
                           struct knee_counts *out)
{
    struct knee_counts counts = {.in_turn = true};
    double k = layout->ranks, p = exp2(floor(log2(k)));
    if (op != KNEE_OP_ALL_REDUCE && !(op == KNEE_OP_ALL_GATHER && p == k))
        return false;
    for (double distance = 1; distance < p; distance *= 2) {
        size_t l = knee_layout_meets(layout, distance);
        double sent = op == KNEE_OP_ALL_REDUCE ? bytes : bytes * distance / k;
        counts.hops[l]++;
        counts.bytes[l] += sent * knee_layout_unit(layout, l);
    }
    /* Up to half as many extra ranks: a path that begins with one cannot end with another. */
    if (p < k)
        knee_count_fold(layout, k - p, bytes, k - p > p / 2 ? 2 : 1, &counts);
    *out = counts;
    return true;
}

const struct knee_algorithm knee_recursive_doubling = {
    .name = "recursive-doubling",
    .formula = "log2 K (alpha + S/B); 2 more rounds unless K is a power of two",
    .origin = "Thakur, Rabenseifner, Gropp 2005",
    .count = count_doubling,
};

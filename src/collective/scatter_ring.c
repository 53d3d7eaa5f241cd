/* SPDX-License-Identifier: MIT */
/*
 * What MPI libraries do with large buffers, whole messages at a time. Broadcast: a binomial tree
 * scatters the buffer, a ring gathers it everywhere. Reduce is the same read backwards: a ring
 * reduces and scatters, a binomial tree gathers at the root.
 */
#include "collective/collective.h"

static bool count_scatter_ring(const struct knee_layout *layout, enum knee_op op, double bytes,
                               struct knee_counts *out)
{
    bool down = op == KNEE_OP_BROADCAST;
    struct knee_counts tree = {0}, counts = {0};
    if (!down && op != KNEE_OP_REDUCE)
        return false;
    if (!knee_ring.count(layout, down ? KNEE_OP_ALL_GATHER : KNEE_OP_REDUCE_SCATTER, bytes,
                         &counts) ||
        !knee_binomial_tree.count(layout, down ? KNEE_OP_SCATTER : KNEE_OP_GATHER, bytes, &tree))
        return false;
    for (size_t l = 0; l < layout->levels; l++) {
        counts.hops[l] += tree.hops[l];
        counts.bytes[l] += tree.bytes[l];
    }
    *out = counts;
    return true;
}

const struct knee_algorithm knee_scatter_ring = {
    .name = "scatter-ring",
    .formula = "(ceil(log2 K) + K-1) alpha + 2 (K-1)/K S/B",
    .origin = "Thakur, Rabenseifner, Gropp 2005",
    .count = count_scatter_ring,
};

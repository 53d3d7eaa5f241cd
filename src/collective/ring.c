/* SPDX-License-Identifier: MIT */
/* Ring all-reduce: a reduce-scatter and an all-gather of K-1 hops each, S/K bytes a hop. */
#include "collective/collective.h"

/* All-reduce goes round twice, all-gather and reduce-scatter once, all K ranks passing on S/K bytes
 * at a time; broadcast and reduce are chains that pass on the whole buffer piece by piece. */
static bool count_ring(const struct knee_layout *layout, enum knee_op op, double bytes,
                       struct knee_counts *out)
{
    struct knee_counts counts = {0};
    double rounds = op == KNEE_OP_ALL_REDUCE ? 2 : 1;
    double share = rounds * (layout->ranks - 1) / layout->ranks;
    switch (op) {
    case KNEE_OP_ALL_REDUCE:
    case KNEE_OP_ALL_GATHER:
    case KNEE_OP_REDUCE_SCATTER: knee_count_ring(layout, rounds, &counts); break;
    case KNEE_OP_BROADCAST:
    case KNEE_OP_REDUCE:
        for (size_t l = 0; l < layout->levels; l++)
            counts.hops[l] = layout->units[l] - layout->units[l + 1];
        share = 1;
        counts.pipelined = true;
        break;
    default: return false;
    }
    knee_count_bytes(layout, share * bytes, &counts);
    *out = counts;
    return true;
}

const struct knee_algorithm knee_ring = {
    .name = "ring",
    .formula = "2(K-1) alpha + 2 (K-1)/K S/B",
    .origin = "Patarasuk and Yuan 2009",
    .count = count_ring,
    .nccl = "RING",
};

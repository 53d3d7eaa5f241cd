/* SPDX-License-Identifier: MIT */
/*
 * Everything at once: each rank posts all its messages and waits. NCCL does all-to-all, gather and
 * scatter this way, as a group of sends and receives; every further peer costs a little.
 */
#include "collective/collective.h"

static bool count_direct(const struct knee_layout *layout, enum knee_op op, double bytes,
                         struct knee_counts *out)
{
    struct knee_counts counts = {0};
    double k = layout->ranks;
    bool to_all = op == KNEE_OP_ALL_TO_ALL || op == KNEE_OP_ALL_TO_ALLV;
    if (!to_all && op != KNEE_OP_GATHER && op != KNEE_OP_SCATTER)
        return false;
    counts.hops[knee_layout_top(layout)] = 1;
    counts.peers = k - 2;
    for (size_t l = 0; l < layout->levels; l++)
        counts.bytes[l] = to_all
                              ? knee_to_all_bytes(layout, l, bytes)
                              : knee_to_all_bytes(layout, l, bytes) / knee_layout_unit(layout, l);
    if (op == KNEE_OP_ALL_TO_ALLV)
        knee_count_skew(layout, &counts);
    *out = counts;
    return true;
}

const struct knee_algorithm knee_direct = {
    .name = "direct",
    .formula = "alpha + (K-1)/K S/B + (K-2) for each further peer",
    .origin = "NCCL's grouped send and receive",
    .count = count_direct,
    .reach =
        0.83, /* of a ring's rate, over eight GPU types in one node and one public log on two */
    .nccl = "P2P",
};

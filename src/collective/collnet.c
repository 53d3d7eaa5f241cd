/* SPDX-License-Identifier: MIT */
/*
 * Reduction in the network switches (SHARP, NCCL's CollNet): reduce-scatter in the node, each GPU
 * sends its part up the tree of switches once and gets the sum back once, all-gather in the node.
 * The network carries S per node whatever the number of nodes.
 */
#include "collective/collective.h"

static bool count_collnet(const struct knee_layout *layout, enum knee_op op, double bytes,
                          struct knee_counts *out)
{
    struct knee_counts counts = {0};
    double n = knee_layout_group(layout, 0);
    if (op != KNEE_OP_ALL_REDUCE || !knee_layout_crosses(layout))
        return false;
    counts.hops[0] = n > 1 ? 2 : 0;
    counts.bytes[0] = 2 * (n - 1) / n * bytes;
    for (size_t l = 1; l < layout->levels; l++) {
        counts.hops[l] = 2;
        counts.bytes[l] = bytes;
    }
    *out = counts;
    return true;
}

const struct knee_algorithm knee_collnet = {
    .name = "collnet",
    .formula = "2 alpha in + 2 alpha per level out + max(2 (n-1)/n S/B in, S/B out)",
    .origin = "Graham et al. 2016 (SHARP); NCCL's CollNetDirect",
    .count = count_collnet,
    .nccl = "COLLNET_DIRECT",
    .simple_only = true,
    .needs = KNEE_NEEDS_SHARP,
};

/* SPDX-License-Identifier: MIT */
/*
 * Two levels: reduce-scatter in the node, a ring per rail between nodes on 1/n of the buffer each,
 * all-gather in the node. Fewer hops over the network than one flat ring.
 */
#include "collective/collective.h"

/* Every GPU of a node is one rail. All-to-all first sorts by rail in the node, then goes out. */
static bool count_hierarchical(const struct knee_layout *layout, enum knee_op op, double bytes,
                               struct knee_counts *out)
{
    struct knee_counts counts = {.in_turn = true};
    double n = knee_layout_group(layout, 0), nodes = layout->units[1];
    double ways = op == KNEE_OP_ALL_REDUCE ? 2 : 1;
    bool to_all = op == KNEE_OP_ALL_TO_ALL || op == KNEE_OP_ALL_TO_ALLV;
    if (!knee_layout_crosses(layout) || n <= 1 ||
        (op != KNEE_OP_ALL_REDUCE && op != KNEE_OP_ALL_GATHER && op != KNEE_OP_REDUCE_SCATTER &&
         !to_all))
        return false;
    counts.hops[0] = to_all ? 1 : ways * (n - 1);
    counts.bytes[0] = ways * (n - 1) / n * bytes;
    for (size_t l = 1; l < layout->levels; l++) {
        double inside = knee_layout_unit(layout, l) / layout->ranks; /* share of ranks in a unit */
        counts.hops[l] = to_all ? l == knee_layout_top(layout)
                                : ways * (layout->units[l] - layout->units[l + 1]);
        counts.bytes[l] = to_all ? knee_layout_unit(layout, l) * (1 - inside) * bytes
                                 : ways * (nodes - 1) / nodes * bytes;
    }
    if (op == KNEE_OP_ALL_TO_ALLV)
        knee_count_skew(layout, &counts);
    *out = counts;
    return true;
}

const struct knee_algorithm knee_hierarchical = {
    .name = "hierarchical",
    .formula = "ring in the node (n, S) + ring per rail between nodes (K/n, S/n)",
    .origin = "Jia et al. 2018; Mikami et al. 2018 (2D)",
    .count = count_hierarchical,
};

/* SPDX-License-Identifier: MIT */
/*
 * One binary tree, pipelined in pieces: upwards to reduce, downwards to broadcast, both for an
 * all-reduce. Each level of links has a separate tree, whose root takes part in the level above. An
 * inner rank receives the buffer from two children and, on the way down, from its parent.
 */
#include "collective/collective.h"

#include <math.h>

/* Buffers through the busiest port of a tree over g ranks laid out as a heap. */
static double carried(enum knee_op op, double g)
{
    if (g <= 2)
        return g > 1;
    return op == KNEE_OP_ALL_REDUCE && g >= 5 ? 3 : 2;
}

static bool count_binary(const struct knee_layout *layout, enum knee_op op, double bytes,
                         struct knee_counts *out)
{
    struct knee_counts counts = {.pipelined = true};
    if (op != KNEE_OP_ALL_REDUCE && op != KNEE_OP_BROADCAST && op != KNEE_OP_REDUCE)
        return false;
    for (size_t l = 0; l < layout->levels; l++) {
        double g = knee_layout_group(layout, l);
        counts.hops[l] = (op == KNEE_OP_ALL_REDUCE ? 2 : 1) * floor(log2(g));
        counts.bytes[l] = carried(op, g) * bytes;
    }
    *out = counts;
    return true;
}

const struct knee_algorithm knee_binary_tree = {
    .name = "binary-tree",
    .formula = "2 floor(log2 K) alpha + 3 S/B; broadcast, reduce: floor(log2 K) alpha + 2 S/B",
    .origin = "Sanders, Speck, Traeff 2009 (the tree that theirs doubles)",
    .count = count_binary,
};

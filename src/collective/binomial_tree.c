/* SPDX-License-Identifier: MIT */
/*
 * Binomial tree: in every round each rank that has the data passes it on, so the number of ranks
 * that have it doubles. Broadcast and reduce send the whole buffer each time; scatter and gather
 * send half of what is left. Rounds between nodes come first, then those inside them.
 */
#include "collective/collective.h"

static bool count_binomial(const struct knee_layout *layout, enum knee_op op, double bytes,
                           struct knee_counts *out)
{
    struct knee_counts counts = {.in_turn = true};
    bool whole = op == KNEE_OP_BROADCAST || op == KNEE_OP_REDUCE;
    if (!whole && op != KNEE_OP_GATHER && op != KNEE_OP_SCATTER)
        return false;
    for (size_t l = 0; l < layout->levels; l++) {
        double g = knee_layout_group(layout, l), unit = knee_layout_unit(layout, l);
        counts.hops[l] = knee_log2_up(g);
        counts.bytes[l] = whole ? knee_log2_up(g) * bytes : (g - 1) * unit / layout->ranks * bytes;
    }
    *out = counts;
    return true;
}

const struct knee_algorithm knee_binomial_tree = {
    .name = "binomial-tree",
    .formula = "ceil(log2 K) (alpha + S/B); gather, scatter: ceil(log2 K) alpha + (K-1)/K S/B",
    .origin = "Thakur, Rabenseifner, Gropp 2005",
    .count = count_binomial,
};

/* SPDX-License-Identifier: MIT */
/* Pairwise all-to-all: K-1 rounds; in round i rank r sends its block to r + i. One at a time. */
#include "collective/collective.h"

static bool count_pairwise(const struct knee_layout *layout, enum knee_op op, double bytes,
                           struct knee_counts *out)
{
    struct knee_counts counts = {0};
    double k = layout->ranks;
    if (op != KNEE_OP_ALL_TO_ALL && op != KNEE_OP_ALL_TO_ALLV)
        return false;
    /* Some rank's block crosses in every round, and the longest path follows those. */
    counts.hops[knee_layout_crosses(layout) ? 1 : 0] = k - 1;
    for (size_t l = 0; l < layout->levels; l++)
        counts.bytes[l] = knee_to_all_bytes(layout, l, bytes);
    if (op == KNEE_OP_ALL_TO_ALLV)
        knee_count_skew(layout, &counts);
    *out = counts;
    return true;
}

const struct knee_algorithm knee_pairwise = {
    .name = "pairwise",
    .formula = "(K-1) alpha + (K-1)/K S/B",
    .origin = "Thakur, Rabenseifner, Gropp 2005",
    .count = count_pairwise,
};

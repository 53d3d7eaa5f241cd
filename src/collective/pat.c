/* SPDX-License-Identifier: MIT */
/*
 * Parallel aggregated trees: all-gather and reduce-scatter in ceil(log2 K) steps for any K, far
 * partners first, so that little travels far early and buffers stay small. NCCL runs it with one
 * GPU per node.
 */
#include "collective/collective.h"

static bool count_pat(const struct knee_layout *layout, enum knee_op op, double bytes,
                      struct knee_counts *out)
{
    struct knee_counts counts = {0};
    if ((op != KNEE_OP_ALL_GATHER && op != KNEE_OP_REDUCE_SCATTER) ||
        layout->units[1] < layout->ranks)
        return false;
    for (size_t l = 1; l < layout->levels; l++) {
        double above = l + 1 < layout->levels ? knee_log2_up(layout->units[l + 1]) : 0;
        counts.hops[l] = knee_log2_up(layout->units[l]) - above;
        counts.bytes[l] = (layout->ranks - 1) / layout->ranks * bytes;
    }
    *out = counts;
    return true;
}

const struct knee_algorithm knee_pat = {
    .name = "pat",
    .formula = "ceil(log2 K) alpha + (K-1)/K S/B, one GPU per node",
    .origin = "NCCL 2.23",
    .count = count_pat,
    .nccl = "PAT",
    .simple_only = true,
};

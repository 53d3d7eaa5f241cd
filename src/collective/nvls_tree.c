/* SPDX-License-Identifier: MIT */
/* All-reduce over several NVLink domains: the switch sums inside, a double tree runs between. */
#include "collective/collective.h"

static bool count_nvls_tree(const struct knee_layout *layout, enum knee_op op, double bytes,
                            struct knee_counts *out)
{
    struct knee_counts counts = {0};
    double n = knee_layout_group(layout, 0);
    if (op != KNEE_OP_ALL_REDUCE || !knee_layout_crosses(layout) || n < 4)
        return false;
    counts.hops[0] = 2;
    counts.bytes[0] = (1 + 1 / n) * bytes;
    knee_count_double_tree(layout, bytes, &counts);
    *out = counts;
    return true;
}

const struct knee_algorithm knee_nvls_tree = {
    .name = "nvls-tree",
    .formula = "2 alpha in + 2 ceil(log2 N) alpha out + max((1 + 1/n) S/B in, 2 S/B out)",
    .origin = "NCCL 2.18",
    .count = count_nvls_tree,
    .reach = 0.92, /* as a tree; two public logs of two H100 nodes reach 0.91 and 0.92 */
    .nccl = "NVLS_TREE",
    .simple_only = true,
    .needs = KNEE_NEEDS_NVLS,
};

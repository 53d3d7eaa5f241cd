/* SPDX-License-Identifier: MIT */
/* Pipelined double binary tree: reduce up, broadcast down, both trees at once. */
#include "collective/collective.h"

#include <math.h>

/* As NCCL builds it: a chain through the GPUs of a node, a double binary tree between nodes. */
static bool count_tree(const struct knee_layout *layout, enum knee_op op, double bytes,
                       struct knee_counts *out)
{
    struct knee_counts counts = {.pipelined = true, .buffer = bytes};
    double n = knee_layout_group(layout, 0);
    if (op != KNEE_OP_ALL_REDUCE)
        return false;
    counts.hops[0] = 2 * (n - 1);
    counts.bytes[0] = n <= 1 ? 0 : n <= 2 ? bytes : 2 * bytes;
    if (knee_layout_crosses(layout))
        knee_count_double_tree(layout, bytes, &counts);
    *out = counts;
    return true;
}

const struct knee_algorithm knee_tree = {
    .name = "tree",
    .formula = "2 ceil(log2 K) alpha + 2 S/B",
    .origin = "Sanders, Speck, Traeff 2009; NCCL 2.4",
    .count = count_tree,
    .reach = 0.92, /* NCCL's own allowance for it */
    /* NCCL's factors for trees by size (tuning.cc), as lines: LL 0.7 from 4 KiB on, LL128 0.6 up to
     * 2 MiB, Simple 0.5 to 0.6 up to 2 MiB and 0.7 to 0.9 from 16 to 128 MiB, 1 above */
    .fill = {{0.7, 0}, {0.6, 1.2e6}, {0.55, 14e6}},
    .nccl = "TREE",
};

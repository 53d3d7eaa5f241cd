/* SPDX-License-Identifier: MIT */
/*
 * Reduction in the switch (NVLink SHARP). Each GPU owns 1/n of the buffer: it reads its part
 * already summed, every other GPU sending its share to the switch once, and writes the sum once,
 * the switch passing it to all. All-gather is the second half of that, reduce-scatter the first.
 */
#include "collective/collective.h"

static bool count_nvls(const struct knee_layout *layout, enum knee_op op, double bytes,
                       struct knee_counts *out)
{
    struct knee_counts counts = {0};
    double n = layout->ranks;
    if (knee_layout_crosses(layout) || n < 4) /* NCCL does not use it below */
        return false;
    switch (op) {
    case KNEE_OP_ALL_REDUCE:
        counts.hops[0] = 2;
        counts.bytes[0] = (1 + 1 / n) * bytes;
        break;
    case KNEE_OP_ALL_GATHER:
    case KNEE_OP_REDUCE_SCATTER:
        counts.hops[0] = 1;
        counts.bytes[0] = (n - 1) / n * bytes;
        break;
    default: return false;
    }
    *out = counts;
    return true;
}

const struct knee_algorithm knee_nvls = {
    .name = "nvls",
    .formula = "2 alpha + (1 + 1/n) S/B inside one NVLink domain of n",
    .origin = "NCCL 2.17; bytes counted from what each port must carry",
    .count = count_nvls,
    .nccl = "NVLS",
    .simple_only = true,
    .needs = KNEE_NEEDS_NVLS,
};

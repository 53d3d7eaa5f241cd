/* SPDX-License-Identifier: MIT */
/*
 * All-gather of every worker's own (value, index) pairs: what top-k gradients need, since sums of
 * different index sets do not stay sparse. Grows with K where an all-reduce does not.
 */
#include "collective/collective.h"

/* A ring that passes on K contributions. */
static bool count_sparse_gather(const struct knee_layout *layout, enum knee_op op, double bytes,
                                struct knee_counts *out)
{
    if (op != KNEE_OP_ALL_REDUCE)
        return false;
    return knee_ring.count(layout, KNEE_OP_ALL_GATHER, layout->ranks * bytes, out);
}

const struct knee_algorithm knee_sparse_gather = {
    .name = "sparse-gather",
    .formula = "(K-1) (alpha + S/B), S = one worker's own contribution",
    .origin = "Renggli et al. 2019 (SparCML)",
    .gathers = true,
    .count = count_sparse_gather,
};

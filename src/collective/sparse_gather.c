/* SPDX-License-Identifier: MIT */
/*
 * All-gather of every worker's own (value, index) pairs: what top-k gradients need, since sums of
 * different index sets do not stay sparse. Grows with K where an all-reduce does not.
 */
#include "collective/collective.h"

static double sparse_gather_s(const struct knee_fabric *fabric, double workers, double bytes)
{
    struct knee_wire wire = knee_fabric_span(fabric, workers);
    return (workers - 1) * (wire.latency_s + bytes / wire.bytes_per_s);
}

const struct knee_algorithm knee_sparse_gather = {
    .name = "sparse-gather",
    .formula = "(K-1) (alpha + S/B), S = one worker's own contribution",
    .origin = "Renggli et al. 2019 (SparCML)",
    .time_s = sparse_gather_s,
    .gathers = true,
};

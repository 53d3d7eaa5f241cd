/* SPDX-License-Identifier: MIT */
/* Pipelined double binary tree: reduce up, broadcast down, both trees at once. */
#include "cluster/collective.h"

#include <math.h>

static double tree_s(const struct knee_fabric *fabric, double workers, double bytes)
{
    struct knee_wire wire = knee_fabric_span(fabric, workers);
    double latency_s = 2 * ceil(log2(workers)) * wire.latency_s;
    if (fabric->node_size > 1 &&
        workers > fabric->node_size) /* a chain in the node, a tree above */
        latency_s = 2 * ((fabric->node_size - 1) * fabric->in.latency_s +
                         ceil(log2(workers / fabric->node_size)) * fabric->out.latency_s);
    return latency_s + 2 * bytes / wire.bytes_per_s;
}

const struct knee_algorithm knee_tree = {
    .name = "tree",
    .formula = "2 ceil(log2 K) alpha + 2 S/B",
    .origin = "Sanders, Speck, Traeff 2009; NCCL 2.4",
    .time_s = tree_s,
};

/* SPDX-License-Identifier: MIT */
/*
 * Two levels: reduce-scatter in the node, a ring per rail between nodes on 1/n of the buffer each,
 * all-gather in the node. Fewer hops over the network than one flat ring.
 */
#include "cluster/collective.h"

static double ring_on(const struct knee_wire *wire, double members, double bytes)
{
    double hops = members > 1 ? 2 * (members - 1) : 0;
    return hops * wire->latency_s + (hops > 0 ? hops / members : 0) * bytes / wire->bytes_per_s;
}

static double hierarchical_s(const struct knee_fabric *fabric, double workers, double bytes)
{
    double n = fabric->node_size;
    if (n <= 1)
        return ring_on(&fabric->out, workers, bytes);
    if (workers <= n)
        return ring_on(&fabric->in, workers, bytes);
    return ring_on(&fabric->in, n, bytes) + ring_on(&fabric->out, workers / n, bytes / n);
}

const struct knee_algorithm knee_hierarchical = {
    .name = "hierarchical",
    .formula = "ring in the node (n, S) + ring per rail between nodes (K/n, S/n)",
    .origin = "Jia et al. 2018; Mikami et al. 2018 (2D)",
    .time_s = hierarchical_s,
};

/* SPDX-License-Identifier: MIT */
/* Ring all-reduce: a reduce-scatter and an all-gather of K-1 hops each, S/K bytes a hop. */
#include "cluster/collective.h"

/* 2(K-1) hops; in nodes of n, 2(K/n - 1) of them leave the node (as NCCL counts them). */
static double ring_s(const struct knee_fabric *fabric, double workers, double bytes)
{
    struct knee_wire wire = knee_fabric_span(fabric, workers);
    double hops = 2 * (workers - 1);
    double latency_s = hops * wire.latency_s;
    if (fabric->node_size > 1 && workers > fabric->node_size) {
        double out = 2 * (workers / fabric->node_size - 1);
        latency_s = out * fabric->out.latency_s + (hops - out) * fabric->in.latency_s;
    }
    return latency_s + hops / workers * bytes / wire.bytes_per_s;
}

const struct knee_algorithm knee_ring = {
    .name = "ring",
    .formula = "2(K-1) alpha + 2 (K-1)/K S/B",
    .origin = "Patarasuk and Yuan 2009",
    .time_s = ring_s,
};

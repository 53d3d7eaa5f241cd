/* SPDX-License-Identifier: MIT */
/*
 * What an all-reduce costs. One file and one row of the table per algorithm; here is what they
 * share. K workers, S bytes, alpha = latency of a hop, B = bytes per second.
 */
#ifndef KNEE_CLUSTER_COLLECTIVE_H
#define KNEE_CLUSTER_COLLECTIVE_H

#include "knee.h"

extern const struct knee_algorithm knee_ring, knee_tree, knee_recursive_doubling,
    knee_halving_doubling, knee_hierarchical, knee_sparse_gather;

/* The slowest wire a pattern over all `workers` meets when every rail of a node is in use, as
 * NCCL's channels do: a node's NICs carry its workers' shares side by side. */
struct knee_wire knee_fabric_span(const struct knee_fabric *fabric, double workers);

/* Row of an algorithm in the table, for defaults and levers. */
int knee_algorithm_row(const struct knee_algorithm *algorithm);

#endif

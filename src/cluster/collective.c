/* SPDX-License-Identifier: MIT */
#include "cluster/collective.h"

#include <math.h>

static const struct knee_algorithm *const algorithms[] = {
    &knee_ring,         &knee_tree,          &knee_recursive_doubling, &knee_halving_doubling,
    &knee_hierarchical, &knee_sparse_gather,
};
#define ALGORITHMS (sizeof algorithms / sizeof *algorithms)

static size_t algorithm_count(void)
{
    return ALGORITHMS;
}

static const char *algorithm_name(size_t row)
{
    return row < ALGORITHMS ? algorithms[row]->name : NULL;
}

const struct knee_choices knee_algorithm_names = {"all-reduce algorithm", algorithm_count,
                                                  algorithm_name};

const struct knee_algorithm *knee_algorithm_at(size_t row)
{
    return row < ALGORITHMS ? algorithms[row] : NULL;
}

int knee_algorithm_row(const struct knee_algorithm *algorithm)
{
    int row = 0;
    while (algorithms[row] != algorithm)
        row++;
    return row;
}

struct knee_wire knee_fabric_span(const struct knee_fabric *fabric, double workers)
{
    if (fabric->node_size <= 1)
        return fabric->out;
    if (workers <= fabric->node_size)
        return fabric->in;
    double nics = fabric->node_size * fabric->out.bytes_per_s;
    return (struct knee_wire){fabric->out.latency_s, fmin(fabric->in.bytes_per_s, nics)};
}

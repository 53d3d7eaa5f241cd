/* SPDX-License-Identifier: MIT */
#include "collective/collective.h"

#include "cluster/presets.h"

#include <math.h>

/* Those that knee predict offers come first, but for the one that only it offers, which is last. */
static const struct knee_algorithm *const algorithms[] = {
    &knee_ring,
    &knee_tree,
    &knee_recursive_doubling,
    &knee_halving_doubling,
    &knee_hierarchical,
    &knee_binary_tree,
    &knee_nvls,
    &knee_nvls_tree,
    &knee_collnet,
    &knee_bruck,
    &knee_pat,
    &knee_pairwise,
    &knee_direct,
    &knee_binomial_tree,
    &knee_scatter_ring,
    &knee_send_recv,
    &knee_sparse_gather,
};
#define ALGORITHMS (sizeof algorithms / sizeof *algorithms)

#define SCHEMES (ALGORITHMS - 1)
#define OFFERED 6 /* by knee predict */

static size_t algorithm_count(void)
{
    return OFFERED;
}

const struct knee_algorithm *knee_algorithm_at(size_t row)
{
    return row < OFFERED - 1 ? algorithms[row] : row == OFFERED - 1 ? &knee_sparse_gather : NULL;
}

static const char *algorithm_name(size_t row)
{
    const struct knee_algorithm *algorithm = knee_algorithm_at(row);
    return algorithm ? algorithm->name : NULL;
}

const struct knee_choices knee_algorithm_names = {
    .what = "all-reduce algorithm", .count = algorithm_count, .name = algorithm_name};

int knee_algorithm_row(const struct knee_algorithm *algorithm)
{
    int row = 0;
    while (row < OFFERED && knee_algorithm_at((size_t)row) != algorithm)
        row++;
    return row;
}

const struct knee_algorithm *knee_scheme_at(size_t row)
{
    return row < SCHEMES ? algorithms[row] : NULL;
}

/* GPUs of one host at most: a larger NVLink domain spans hosts (NVL72: 18 of 4 GPUs). */
#define HOST_MOST 16

bool knee_scheme_runs(const struct knee_cluster *cluster, const struct knee_algorithm *algorithm)
{
    switch (algorithm->needs) {
    case KNEE_NEEDS_NOTHING: return true;
    case KNEE_NEEDS_NVLS: return cluster->nvls_share > 0;
    case KNEE_NEEDS_SHARP: return cluster->sharp;
    }
    return false;
}

bool knee_scheme_used(const struct knee_cluster *cluster, const struct knee_algorithm *algorithm)
{
    return (cluster->plain || algorithm->nccl) && knee_scheme_runs(cluster, algorithm);
}

bool knee_layout_joins_racks(const struct knee_cluster *cluster, const struct knee_layout *layout)
{
    return cluster->levels[0].count > HOST_MOST && knee_layout_crosses(layout);
}

bool knee_protocol_runs(const struct knee_cluster *cluster, const struct knee_layout *layout,
                        const struct knee_algorithm *algorithm, enum knee_protocol_name protocol)
{
    if (protocol == KNEE_SIMPLE)
        return true;
    if (cluster->plain || algorithm->simple_only) /* the others are NCCL's */
        return false;
    if (protocol == KNEE_LL || !knee_layout_crosses(layout))
        return true;
    const struct knee_transport *network = knee_transport_of(cluster->levels[1].name);
    return !network || network->ll128;
}

/* A GPU on PCIe has one port: what it sends to other nodes passes it too, beside what it sends to
 * its neighbours. In a ring each rank has one successor, so only all-to-all shows it. */
static void share_port(const struct knee_cluster *cluster, const struct knee_layout *layout,
                       double bytes, struct knee_counts *counts)
{
    const struct knee_transport *link = knee_transport_of(cluster->levels[0].name);
    double inside = knee_layout_group(layout, 0);
    if (link && link->one_port && knee_layout_crosses(layout))
        counts->bytes[0] += layout->skew * (layout->ranks - inside) / layout->ranks * bytes;
}

bool knee_scheme_count(const struct knee_cluster *cluster, const struct knee_layout *layout,
                       enum knee_op op, double bytes, const struct knee_algorithm *algorithm,
                       struct knee_counts *out)
{
    struct knee_counts counts = {0};
    bool tree = algorithm == &knee_tree || algorithm == &knee_nvls_tree;
    if (tree && knee_layout_joins_racks(cluster, layout))
        return false;
    if (!knee_scheme_runs(cluster, algorithm) || !algorithm->count(layout, op, bytes, &counts) ||
        (counts.pipelined && cluster->whole))
        return false;
    if (op == KNEE_OP_ALL_TO_ALL || op == KNEE_OP_ALL_TO_ALLV)
        share_port(cluster, layout, bytes, &counts);
    *out = counts;
    return true;
}

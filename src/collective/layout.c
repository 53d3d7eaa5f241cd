/* SPDX-License-Identifier: MIT */
/*
 * Ranks laid out on a cluster, node by node: how many units there are at each level, and what one
 * unit of a level reaches into it. A GPU reaches its link's rate; a node the ports its ranks may
 * use (all of them where they are shared, its ranks' part of them where each rank has its own); a
 * leaf what its nodes send up, less the oversubscription. Links that other communicators use at the
 * same time are divided among them.
 */
#include "collective/collective.h"

#include "base/error.h"

#include <math.h>

double knee_layout_unit(const struct knee_layout *layout, size_t level)
{
    return layout->ranks / layout->units[level];
}

double knee_layout_group(const struct knee_layout *layout, size_t level)
{
    return layout->units[level] / layout->units[level + 1];
}

bool knee_layout_crosses(const struct knee_layout *layout)
{
    return layout->levels > 1;
}

size_t knee_layout_top(const struct knee_layout *layout)
{
    return layout->levels - 1;
}

size_t knee_layout_meets(const struct knee_layout *layout, double distance)
{
    size_t level = 0;
    while (level < knee_layout_top(layout) && distance >= knee_layout_unit(layout, level + 1))
        level++;
    return level;
}

double knee_log2_up(double ranks)
{
    return ranks > 1 ? ceil(log2(ranks) - 1e-12) : 0;
}

/* What one unit of `level` sends into it, alone. */
static double unit_rate(const struct knee_level *level, double below, double ranks, double room)
{
    double ports = level->ports;
    if (!level->shared && ranks < room)
        ports = fmax(fmin(ports, 1), ports * ranks / room); /* a lone rank still has one port */
    double rate = ports > 0 ? ports * level->bytes_per_s : below;
    return fmin(rate, below) / level->oversubscription;
}

double knee_cluster_ranks(const struct knee_cluster *cluster)
{
    double ranks = 1;
    for (size_t l = 0; l < cluster->level_count; l++)
        ranks *= cluster->levels[l].count > 0 ? cluster->levels[l].count : INFINITY;
    return ranks;
}

static knee_status check_fit(const struct knee_cluster *cluster,
                             const struct knee_placement *placement, struct knee_err *err)
{
    double per_node = cluster->levels[0].count, room = knee_cluster_ranks(cluster);
    if (!isnan(placement->per_node) && per_node > 0) {
        if (placement->per_node > per_node)
            return knee_fail(err, KNEE_USAGE, "--ranks-per-node",
                             "%.0f ranks do not fit on a node of %.0f GPUs", placement->per_node,
                             per_node);
        room *= placement->per_node / per_node;
    }
    if (placement->ranks <= room)
        return KNEE_OK;
    return knee_fail_hint(err, KNEE_USAGE, "--ranks",
                          "raise the counts of the cluster; a count of 0 is any number",
                          "%.0f ranks do not fit on %.0f GPUs", placement->ranks, room);
}

knee_status knee_layout_init(const struct knee_cluster *cluster,
                             const struct knee_placement *placement, struct knee_layout *out,
                             struct knee_err *err)
{
    struct knee_layout layout = {.ranks = placement->ranks, .skew = placement->skew};
    double unit = 1;         /* ranks in a unit of this level */
    double room = 1;         /* GPUs in it */
    double below = INFINITY; /* what its parts send at most; a GPU does not limit its NIC */
    knee_status status = check_fit(cluster, placement, err);
    if (status)
        return status;
    layout.units[0] = placement->ranks;
    for (size_t l = 0; l < cluster->level_count && layout.units[l] > 1; l++) {
        const struct knee_level *level = &cluster->levels[l];
        double rate = unit_rate(level, below, unit, room);
        layout.latency_s[l] = level->latency_s;
        layout.bytes_per_s[l] = rate / placement->sharers;
        double held = level->count > 0 ? unit * level->count : placement->ranks;
        if (l == 0 && !isnan(placement->per_node))
            held = placement->per_node;
        held = fmin(held, placement->ranks);
        below = l == 0 ? INFINITY : rate * held / unit;
        room *= fmax(level->count, 1);
        unit = held;
        layout.units[l + 1] = ceil(placement->ranks / unit - 1e-9);
        layout.levels = l + 1;
    }
    *out = layout;
    return KNEE_OK;
}

/* ---- Parts that several algorithms are made of ---- */

void knee_count_ring(const struct knee_layout *layout, double rounds, struct knee_counts *counts)
{
    /* A ring over K ranks has one edge into each; those into another unit turn round higher up. A
     * path of K-1 hops misses one edge, and the longest path misses the cheapest: inside a node,
     * if it has an edge to spare. */
    double missed = rounds;
    for (size_t l = 0; l < layout->levels; l++) {
        double above = l + 1 < layout->levels ? layout->units[l + 1] : 0;
        double edges = rounds * (layout->units[l] - above);
        double spare = above > 0 ? fmin(missed, knee_layout_group(layout, l) - 1) : missed;
        counts->hops[l] = edges - spare;
        missed -= spare;
    }
    counts->begin = 2 * rounds - (knee_layout_group(layout, 0) > 1 ? 0 : rounds);
}

void knee_count_bytes(const struct knee_layout *layout, double bytes, struct knee_counts *counts)
{
    for (size_t l = 0; l < layout->levels; l++)
        counts->bytes[l] = knee_layout_group(layout, l) > 1 ? bytes : 0;
}

void knee_count_double_tree(const struct knee_layout *layout, double bytes,
                            struct knee_counts *counts)
{
    /* Two trees, half of the buffer each, an inner node of one a leaf of the other: a node takes
     * half from each child and from each parent. */
    double nodes = layout->units[1];
    double carried = nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2;
    for (size_t l = 1; l < layout->levels; l++) {
        double above = l + 1 < layout->levels ? knee_log2_up(layout->units[l + 1]) : 0;
        counts->hops[l] = 2 * (knee_log2_up(layout->units[l]) - above);
        counts->bytes[l] = carried * bytes;
    }
    counts->begin = 2;
}

void knee_count_fold(const struct knee_layout *layout, double extra, double bytes, double ways,
                     struct knee_counts *counts)
{
    /* The `extra` ranks beyond a power of two give their buffers to the first ones and get the
     * result back; a node's port carries as many of them as it has. */
    size_t top = knee_layout_top(layout);
    counts->hops[top] += ways;
    counts->bytes[top] += ways * bytes * fmin(extra, knee_layout_unit(layout, top));
}

void knee_count_skew(const struct knee_layout *layout, struct knee_counts *counts)
{
    for (size_t l = 0; l < layout->levels; l++)
        counts->bytes[l] *= layout->skew;
}

double knee_to_all_bytes(const struct knee_layout *layout, size_t level, double bytes)
{
    /* A GPU's link carries what goes to its own node; the port of a node or leaf what leaves it. */
    double unit = knee_layout_unit(layout, level), k = layout->ranks;
    if (level == 0)
        return (k / layout->units[1] - 1) / k * bytes;
    return unit * (k - unit) / k * bytes;
}

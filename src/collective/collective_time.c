/* SPDX-License-Identifier: MIT */
/*
 * From counts to seconds: a launch, then hops times latency, then bytes over rates. Levels that
 * work at once cost what the slowest does, levels that take turns what they cost together. A
 * protocol scales latencies and rates; the minimum over protocols gives the regimes in size. When
 * the host cannot issue collectives fast enough, the floor shows instead.
 */
#include "collective/collective.h"

#include <math.h>
#include <string.h>

static const char *const protocol_names[KNEE_PROTOCOLS] = {"LL", "LL128", "Simple"};

const char *knee_protocol_name(enum knee_protocol_name protocol)
{
    return protocol < KNEE_PROTOCOLS ? protocol_names[protocol] : NULL;
}

double knee_soft_maximum(double a, double b)
{
    double high = fmax(a, b), ratio = fmin(a, b) / high;
    double r2 = ratio * ratio, r8 = r2 * r2 * r2 * r2;
    return r8 < 1e-9 ? high : high * pow(1 + r8, 0.125);
}

double knee_line_s(const struct knee_cluster *cluster, const struct knee_layout *layout,
                   const struct knee_counts *counts, const struct knee_algorithm *algorithm,
                   enum knee_protocol_name protocol)
{
    const struct knee_protocol *p = &cluster->protocols[protocol];
    double reach = algorithm->reach > 0 && !cluster->plain ? algorithm->reach : 1;
    if (algorithm->needs == KNEE_NEEDS_NVLS)
        reach *= cluster->nvls_share;
    double time_s = cluster->launch_s + p->launch_s + counts->peers * cluster->peer_s;
    double transfer_s = 0, begin = counts->begin > 0 ? counts->begin : INFINITY;
    for (size_t l = 0; l < layout->levels; l++) {
        bool node = l == 0;
        double first = node ? counts->hops[l] : fmin(counts->hops[l], begin);
        begin -= node ? 0 : first;
        time_s += layout->latency_s[l] * ((node ? p->node_hop : p->net_hop) * first +
                                          p->net_more * (counts->hops[l] - first));
        /* In-switch reduction is a matter of the GPU's link; the network keeps its own rate. */
        double share = (node ? p->node_share : p->net_share) *
                       (node || algorithm->needs != KNEE_NEEDS_NVLS ? reach : 1);
        double level_s = counts->bytes[l] / (layout->bytes_per_s[l] * share);
        transfer_s = counts->in_turn ? transfer_s + level_s : fmax(transfer_s, level_s);
    }
    return time_s + transfer_s;
}

double knee_counts_time_s(const struct knee_cluster *cluster, const struct knee_layout *layout,
                          const struct knee_counts *counts, const struct knee_algorithm *algorithm,
                          enum knee_protocol_name protocol)
{
    double time_s = knee_line_s(cluster, layout, counts, algorithm, protocol);
    struct knee_fill fill = algorithm->fill[protocol];
    if (fill.share > 0 && counts->buffer > 0 && !cluster->plain) {
        struct knee_counts none = *counts;
        memset(none.bytes, 0, sizeof none.bytes);
        double full_s = time_s - knee_line_s(cluster, layout, &none, algorithm, protocol);
        double more = fill.bytes > 0 ? fill.bytes / counts->buffer : INFINITY;
        time_s += full_s * fmin(1 / fill.share - 1, more);
    }
    return cluster->floor_s > 0 ? knee_soft_maximum(time_s, cluster->floor_s) : time_s;
}

double knee_best_protocol_s(const struct knee_cluster *cluster, const struct knee_layout *layout,
                            const struct knee_counts *counts,
                            const struct knee_algorithm *algorithm,
                            enum knee_protocol_name *protocol)
{
    double best_s = INFINITY;
    if (protocol)
        *protocol = KNEE_SIMPLE;
    for (int p = KNEE_LL; p < KNEE_PROTOCOLS; p++) {
        if (!knee_protocol_runs(cluster, layout, algorithm, (enum knee_protocol_name)p))
            continue;
        double time_s =
            knee_counts_time_s(cluster, layout, counts, algorithm, (enum knee_protocol_name)p);
        if (time_s < best_s) {
            best_s = time_s;
            if (protocol)
                *protocol = (enum knee_protocol_name)p;
        }
    }
    return best_s;
}

double knee_model_time_s(const struct knee_cluster *cluster, const struct knee_layout *layout,
                         enum knee_op op, double bytes, const struct knee_algorithm **algorithm,
                         enum knee_protocol_name *protocol)
{
    double best_s = NAN;
    const struct knee_algorithm *row;
    for (size_t i = 0; (row = knee_scheme_at(i)); i++) {
        struct knee_counts counts = {0};
        enum knee_protocol_name best;
        if (!knee_scheme_used(cluster, row) ||
            !knee_scheme_count(cluster, layout, op, bytes, row, &counts))
            continue;
        double time_s = knee_best_protocol_s(cluster, layout, &counts, row, &best);
        if (time_s >= best_s)
            continue;
        best_s = time_s;
        if (algorithm)
            *algorithm = row;
        if (protocol)
            *protocol = best;
    }
    return best_s;
}

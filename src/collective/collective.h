/* SPDX-License-Identifier: MIT */
/*
 * What collectives cost. One file and one row of the table per algorithm; here is what they share.
 *
 * K ranks, S bytes, alpha = latency of a hop, B = bytes per second. An algorithm says, for a
 * collective and a layout (ranks laid out on levels of links), how many hops its longest path has
 * at each level and how many bytes pass the busiest port of each level. Times follow from that in
 * one place (collective_time.c), and all callers ask for them in one place (price.c).
 */
#ifndef KNEE_COLLECTIVE_COLLECTIVE_H
#define KNEE_COLLECTIVE_COLLECTIVE_H

#include "knee_collective.h"

extern const struct knee_algorithm knee_ring, knee_tree, knee_recursive_doubling,
    knee_halving_doubling, knee_hierarchical, knee_sparse_gather;
extern const struct knee_algorithm knee_binary_tree, knee_bruck, knee_pairwise, knee_direct,
    knee_send_recv, knee_binomial_tree, knee_scatter_ring, knee_nvls, knee_nvls_tree, knee_collnet,
    knee_pat;

/* Row of an algorithm in the table of knee predict, for defaults and changes. */
int knee_algorithm_row(const struct knee_algorithm *algorithm);

/* Seconds of counts before the host's floor: a straight line in bytes. */
double knee_line_s(const struct knee_cluster *cluster, const struct knee_layout *layout,
                   const struct knee_counts *counts, const struct knee_algorithm *algorithm,
                   enum knee_protocol_name protocol);

/* The larger of two, without a corner, so that fits can follow it. */
double knee_soft_maximum(double a, double b);

/* ---- Shapes ---- */

/* A group of ranks on the levels of a cluster, as it is slowest. There is always room. */
void knee_group_layout(const struct knee_cluster *cluster, struct knee_group group,
                       struct knee_layout *out);

/* Ranks in one unit of a level: 1 at the lowest, the GPUs of a node at the next. */
double knee_layout_unit(const struct knee_layout *layout, size_t level);

/* Units of a level that one group of it joins. */
double knee_layout_group(const struct knee_layout *layout, size_t level);

/* More than one node. */
bool knee_layout_crosses(const struct knee_layout *layout);

/* More than one NVLink domain, each of several hosts. NCCL builds trees of hosts, whose few ports
 * then carry the whole buffer, so rings remain (NCCL 2.26 on 20 racks of GB200). */
bool knee_layout_joins_racks(const struct knee_cluster *cluster, const struct knee_layout *layout);

/* The level where the farthest two ranks meet. */
size_t knee_layout_top(const struct knee_layout *layout);

/* The level where ranks that are `distance` apart meet, if they are counted node by node. */
size_t knee_layout_meets(const struct knee_layout *layout, double distance);

/* GPUs that a cluster holds; infinite where a level has any number of units. */
double knee_cluster_ranks(const struct knee_cluster *cluster);

/* Whether it is what runs there: NCCL's own, or on plain hosts anything. */
bool knee_scheme_used(const struct knee_cluster *cluster, const struct knee_algorithm *algorithm);

/* Seconds with the fastest protocol; `protocol` may be NULL. */
double knee_best_protocol_s(const struct knee_cluster *cluster, const struct knee_layout *layout,
                            const struct knee_counts *counts,
                            const struct knee_algorithm *algorithm,
                            enum knee_protocol_name *protocol);

/* Whether the hardware has what an algorithm needs. */
bool knee_scheme_runs(const struct knee_cluster *cluster, const struct knee_algorithm *algorithm);

/* Whether NCCL may choose this protocol for it there. LL128 needs a network that delivers 128 bytes
 * in order. */
bool knee_protocol_runs(const struct knee_cluster *cluster, const struct knee_layout *layout,
                        const struct knee_algorithm *algorithm, enum knee_protocol_name protocol);

/* Its counts, where it runs: false where the hardware lacks what it needs, where it does not do
 * this collective, or where it cuts the buffer into pieces and the library does not. */
bool knee_scheme_count(const struct knee_cluster *cluster, const struct knee_layout *layout,
                       enum knee_op op, double bytes, const struct knee_algorithm *algorithm,
                       struct knee_counts *out);

/* ---- Parts that several algorithms are made of ---- */

/* The longest path round a ring, `rounds` times less as many hops (K-1 hops: one round). */
void knee_count_ring(const struct knee_layout *layout, double rounds, struct knee_counts *counts);

/* The same bytes through the port of every unit at every level in use. */
void knee_count_bytes(const struct knee_layout *layout, double bytes, struct knee_counts *counts);

/* Between nodes, a double binary tree: hops up and down, bytes per byte of the buffer. */
void knee_count_double_tree(const struct knee_layout *layout, double bytes,
                            struct knee_counts *counts);

/* If K is not a power of two, the remaining ranks fold in before and get the result after; `ways`
 * of these two rounds are on the longest path. */
void knee_count_fold(const struct knee_layout *layout, double extra, double bytes, double ways,
                     struct knee_counts *counts);

/* All-to-allv: the rank with the largest share is the one that counts. */
void knee_count_skew(const struct knee_layout *layout, struct knee_counts *counts);

/* All-to-all: bytes through the port of one unit. */
double knee_to_all_bytes(const struct knee_layout *layout, size_t level, double bytes);

/* Rounds of doubling over K ranks. */
double knee_log2_up(double ranks);

/* Seconds, from counts. */
double knee_counts_time_s(const struct knee_cluster *cluster, const struct knee_layout *layout,
                          const struct knee_counts *counts, const struct knee_algorithm *algorithm,
                          enum knee_protocol_name protocol);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * NCCL's choice of algorithm and protocol, as its published constants make it (src/graph/tuning.cc
 * of NCCL 2.28, read as facts; the code here is our own): time = latency + bytes / bandwidth for
 * every algorithm and protocol, and the least of them is taken. The constants are there to choose,
 * not to forecast, so the time is reported as NCCL's own estimate and never mixed with the model's.
 *
 * What NCCL finds by searching the PCI tree is taken from the cluster instead: the bandwidth of
 * all channels together is the GPU's link in NCCL's own units, or a node's NICs, and trees between
 * two nodes may use the links inside in full, as its search does for them.
 */
#include "collective/collective.h"

#include <math.h>
#include <string.h>

enum algo { TREE, RING, COLLNET, NVLS, NVLS_TREE, PAT, ALGOS };
enum arch { VOLTA, AMPERE, HOPPER, BLACKWELL, ARCHS };
enum where { NVLINK, PCI, NET, WHERES };

static const char *const algo_names[ALGOS] = {"TREE", "RING",      "COLLNET_DIRECT",
                                              "NVLS", "NVLS_TREE", "PAT"};
static const char *const proto_names[KNEE_PROTOCOLS] = {"LL", "LL128", "SIMPLE"};

/* Microseconds, by protocol. */
static const double base_us[ALGOS][KNEE_PROTOCOLS] = {
    [TREE] = {6.8, 14, 8.4}, [RING] = {6.6, 14, 8.4}, [PAT] = {8, 8, 8}};
static const double hop_us[WHERES][ALGOS][KNEE_PROTOCOLS] = {
    [NVLINK] = {[TREE] = {0.6, 1.25, 4},
                [RING] = {0.6, 1.9, 3.4},
                [COLLNET] = {0, 0, 3.7},
                [NVLS] = {25, 25, 25},
                [NVLS_TREE] = {25, 25, 25},
                [PAT] = {4, 4, 4}},
    [PCI] =
        {[TREE] = {1, 1.9, 4}, [RING] = {1, 2.5, 5.7}, [COLLNET] = {0, 0, 3.7}, [PAT] = {4, 4, 4}},
    [NET] = {[TREE] = {5, 8.5, 14},
             [RING] = {2.7, 4, 14},
             [COLLNET] = {0, 0, 31},
             [NVLS] = {18, 18, 18},
             [NVLS_TREE] = {20.9, 20.9, 20.9},
             [PAT] = {14, 14, 14}},
};

/* GB/s: one node, two, more. */
static const double ll_most[ARCHS][3] = {
    {39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}};
static const double ring_ll128_channel[ARCHS][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}};
static const double tree_ll128_channel[ARCHS][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}};
static const double tree_channel[ARCHS][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
static const double nvls_tree_channel[ARCHS][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}};
static const double nvls_efficiency[ARCHS] = {0, 0, 0.85, 0.74};

/* Trees are slower than they look in the middle: bandwidth times this, by log2(bytes / 64). */
static const double tree_correction[KNEE_PROTOCOLS][23] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
};

/* A communicator as the constants see it. */
struct comm {
    enum arch arch;
    enum where inside;
    double ranks, nodes, per_node, channels;
    double node_gbps, net_gbps; /* all channels together */
    bool nvls, sharp, racks;
};

/* GB/s in NCCL's own units (graph/topo.h): a link counts what NCCL assumes, not what it can do. */
static const struct {
    const char *link;
    enum arch arch;
    double gbps;
} links[] = {
    {"nvlink2", VOLTA, 6 * 20},        {"nvlink3", AMPERE, 12 * 20}, {"nvlink4", HOPPER, 18 * 20.6},
    {"nvlink5", BLACKWELL, 18 * 40.1}, {"pcie4", AMPERE, 24},        {"pcie5", HOPPER, 48},
};

static bool see(const struct knee_cluster *cluster, const struct knee_layout *layout,
                struct comm *out)
{
    struct comm c = {.ranks = layout->ranks, .nodes = layout->units[1]};
    size_t row = 0, rows = sizeof links / sizeof *links;
    while (row < rows &&
           strncmp(cluster->levels[0].name, links[row].link, strlen(links[row].link)) != 0)
        row++;
    if (row == rows)
        return false; /* not NVIDIA's, or not known */
    c.arch = links[row].arch;
    c.inside = links[row].link[0] == 'p' ? PCI : NVLINK;
    c.per_node = c.ranks / c.nodes;
    c.node_gbps = links[row].gbps;
    c.channels = c.arch == VOLTA ? 12 : 24;
    if (c.nodes > 1) {
        double ports = fmax(cluster->levels[1].ports, 1);
        c.net_gbps = layout->bytes_per_s[1] * 1e-9;
        c.channels = fmin(fmax(2 * ports, 2), 32);
    }
    c.nvls = cluster->nvls_share > 0 && c.per_node >= 4;
    c.sharp = cluster->sharp;
    c.racks = knee_layout_joins_racks(cluster, layout);
    *out = c;
    return true;
}

static size_t node_row(const struct comm *c)
{
    return c->nodes <= 1 ? 0 : c->nodes <= 2 ? 1 : 2;
}

static bool enabled(const struct comm *c, enum knee_op op, enum algo a, enum knee_protocol_name p)
{
    bool one_pass = op == KNEE_OP_ALL_GATHER || op == KNEE_OP_REDUCE_SCATTER;
    bool simple = p == KNEE_SIMPLE, many = c->nodes > 1;
    if (p == KNEE_LL128 && c->inside == PCI)
        return false;
    switch (a) {
    case RING:
        return op == KNEE_OP_ALL_REDUCE || one_pass || op == KNEE_OP_BROADCAST ||
               op == KNEE_OP_REDUCE;
    case TREE: return op == KNEE_OP_ALL_REDUCE && !c->racks;
    case COLLNET: return simple && c->sharp && many && (op == KNEE_OP_ALL_REDUCE || one_pass);
    case NVLS:
        return simple && c->nvls && (!many || c->sharp) && (op == KNEE_OP_ALL_REDUCE || one_pass);
    case NVLS_TREE: return simple && c->nvls && many && op == KNEE_OP_ALL_REDUCE && !c->racks;
    case PAT: return simple && one_pass && many && c->per_node <= 1;
    case ALGOS: break;
    }
    return false;
}

static double steps(const struct comm *c, enum knee_op op)
{
    if (op == KNEE_OP_ALL_REDUCE)
        return 2 * (c->ranks - 1);
    return op == KNEE_OP_BROADCAST || op == KNEE_OP_REDUCE ? c->ranks : c->ranks - 1;
}

/* Algorithm bandwidth in GB/s. */
static double bandwidth(const struct comm *c, enum knee_op op, enum algo a,
                        enum knee_protocol_name p)
{
    size_t n = node_row(c);
    bool inside = c->nodes <= 1 || (c->nodes <= 2 && a != RING && a != PAT);
    double bus = c->nodes <= 1 ? c->node_gbps : fmin(c->node_gbps, c->net_gbps);
    if (inside || a == COLLNET)
        bus = c->node_gbps;
    switch (a) {
    case RING:
        bus = p == KNEE_LL      ? fmin(ll_most[c->arch][n], bus / 2)
              : p == KNEE_LL128 ? fmin(0.92 * bus, c->channels * ring_ll128_channel[c->arch][n])
                                : bus;
        return bus * c->ranks / steps(c, op);
    case TREE:
        bus = fmin(0.92 * bus, c->channels * tree_channel[c->arch][n]);
        if (p == KNEE_LL)
            bus = fmin(bus / 3.8, ll_most[c->arch][n]);
        else if (p == KNEE_LL128)
            bus = fmin(bus * (c->nodes <= 1 ? 7.0 / 9 : 120.0 / 128),
                       c->channels * tree_ll128_channel[c->arch][n]);
        return 0.5 * bus;
    case NVLS:
    case NVLS_TREE: {
        double share = op == KNEE_OP_ALL_REDUCE ? 2 : (c->per_node - 1) / c->per_node;
        bus = c->node_gbps * nvls_efficiency[c->arch] * (c->channels - 1) / c->channels * share;
        if (a == NVLS_TREE)
            bus = fmin(fmin(bus, c->net_gbps * (c->nodes <= 2 ? 2 : 1)),
                       c->channels * nvls_tree_channel[c->arch][n]);
        return bus * c->ranks / steps(c, op);
    }
    case COLLNET: {
        double f = fmax(1, c->per_node / c->channels);
        bus = op == KNEE_OP_ALL_REDUCE
                  ? fmin(bus, c->net_gbps) / (f - (f - 1) / 2) * (c->arch >= HOPPER ? 0.85 : 1)
                  : c->per_node * fmin(c->node_gbps, 0.9 * c->net_gbps);
        return op == KNEE_OP_ALL_REDUCE ? 0.5 * bus : bus;
    }
    case PAT: return 0.75 * bus;
    case ALGOS: break;
    }
    return NAN;
}

static double latency_us(const struct comm *c, enum knee_op op, enum algo a,
                         enum knee_protocol_name p)
{
    double in = hop_us[c->inside][a][p],
           out = hop_us[NET][a == RING && c->per_node <= 1 ? TREE : a][p];
    double base = base_us[a][p], log_nodes = log2(fmax(c->nodes, 1));
    double overhead =
        c->nodes > 1 ? (p == KNEE_SIMPLE ? 3 : 1) : 0; /* 1 us, threefold for Simple */
    double crossings = (op == KNEE_OP_ALL_REDUCE ? 2 : 1) * (c->nodes - 1);
    switch (a) {
    case RING:
        if (op == KNEE_OP_BROADCAST || op == KNEE_OP_REDUCE)
            return base + steps(c, op) * (c->nodes > 1 ? out : in);
        return base + (steps(c, op) - crossings) * fmax(in, overhead) + crossings * out;
    case TREE: return base + 2 * ((c->per_node - 1) * in + log_nodes * out);
    case NVLS: return in + (c->nodes > 1 ? out : 0);
    case NVLS_TREE: return base + in + 2 * log_nodes * out;
    case COLLNET: return 2 * (fmin(1, c->per_node - 1) * in + 0.4 * (c->per_node - 1)) + out;
    case PAT: return base + log_nodes * out / 3.5 + 2.8 * c->ranks;
    case ALGOS: break;
    }
    return NAN;
}

static double estimate_us(const struct comm *c, enum knee_op op, enum algo a,
                          enum knee_protocol_name p, double bytes)
{
    double gbps = bandwidth(c, op, a, p), lat = latency_us(c, op, a, p);
    if (a == TREE && op == KNEE_OP_ALL_REDUCE) {
        double at = floor(log2(fmax(bytes, 64) / 64));
        gbps *= at < 23 ? tree_correction[p][(size_t)at] : 1;
    }
    if (a == RING && p == KNEE_SIMPLE && op == KNEE_OP_ALL_REDUCE && c->nodes > 1 &&
        bytes / (c->channels * c->ranks) >= 64)
        lat *= c->arch < AMPERE ? 1.9 : 1.4;
    return lat + bytes / (1e3 * gbps);
}

/* What NCCL has no algorithm for is a group of sends and receives; up to 16 KiB each goes with LL
 * (NCCL_P2P_LL_THRESHOLD). */
static struct knee_nccl_choice grouped(const struct knee_layout *layout, enum knee_op op,
                                       double bytes)
{
    double message = op == KNEE_OP_SEND_RECV ? bytes : bytes / layout->ranks;
    return (struct knee_nccl_choice){"P2P", proto_names[message <= 16384 ? KNEE_LL : KNEE_SIMPLE],
                                     NAN};
}

struct knee_nccl_choice knee_nccl_choose(const struct knee_cluster *cluster,
                                         const struct knee_layout *layout, enum knee_op op,
                                         double bytes)
{
    struct knee_nccl_choice best = {.time_s = NAN};
    struct comm c;
    if (!see(cluster, layout, &c))
        return best;
    for (int a = 0; a < ALGOS; a++)
        for (int p = 0; p < KNEE_PROTOCOLS; p++) {
            if (!enabled(&c, op, (enum algo)a, (enum knee_protocol_name)p))
                continue;
            double time_s =
                1e-6 * estimate_us(&c, op, (enum algo)a, (enum knee_protocol_name)p, bytes);
            if (!(time_s >= best.time_s))
                best = (struct knee_nccl_choice){algo_names[a], proto_names[p], time_s};
        }
    return best.algorithm ? best : grouped(layout, op, bytes);
}

/* SPDX-License-Identifier: MIT */
/* Cluster: GPUs and levels of links, from presets, one line, a file or a fit. What knee.h says of
 * every call holds here; these structs may change with the minor version. */
#ifndef KNEE_CLUSTER_H
#define KNEE_CLUSTER_H

#include "knee_keys.h"

/* ---- Cluster: presets and collective costs ------------------------------------------------ */

struct knee_gpu {
    const char *name, *full_name;
    double bf16_flops, fp8_flops; /* dense peak; NaN where it has none */
    double fp32_flops;            /* without tensor cores; NaN where they do not take TF32 */
    double memory_bytes, memory_bytes_per_s;
    const char *node_link;        /* link preset inside the node */
    double gpus_per_node;         /* GPUs that share it */
    double power_w;               /* board power */
    double price_low, price_high; /* indicative, $ per GPU-hour; NaN where not known */
    const char *cluster;          /* cluster preset used when no cluster is given */
    const char *origin;           /* where the figures come from */
};

struct knee_link {
    const char *name, *full_name;
    double bytes_per_s; /* raw, one direction, one port or one GPU */
    double achieved;    /* share of it that a large collective reaches */
    const char *origin;
};

struct knee_cluster_preset {
    const char *name, *gpu;
    double gpus_per_node;
    const char *node_link, *net_link;
    double nics_per_node;
    const char *origin;
};

extern const struct knee_choices knee_gpu_names, knee_link_names, knee_cluster_preset_names,
    knee_algorithm_names;
const struct knee_gpu *knee_gpu_at(size_t row);                       /* NULL past the end */
const struct knee_link *knee_link_at(size_t row);                     /* NULL past the end */
const struct knee_cluster_preset *knee_cluster_preset_at(size_t row); /* NULL past the end */

/* ---- Topology: the levels of links a cluster is made of ----------------------------------- */

/* A transport: what a hop over it costs in addition to the wire. */
struct knee_transport {
    const char *name; /* "ib"; the link presets whose names begin with it use it */
    const char *full_name;
    double wire_s;     /* one hop of a small message, port to port */
    double host_s;     /* what proxy thread, doorbell, flush or kernel stack add to it */
    double launch_s;   /* GPU links: a collective that moves nothing; NaN for networks */
    double nvls_share; /* of the link's rate that in-switch reduction reaches; 0: it has none */
    bool ll128;        /* networks: NCCL's LL128 runs over it */
    bool one_port;     /* GPU links: what leaves the node passes the same port */
    const char *origin;
};
const struct knee_transport *knee_transport_at(size_t row); /* NULL past the end */

/* A protocol of NCCL as a regime in size: quick and narrow, or slow to start and wide. */
enum knee_protocol_name { KNEE_LL, KNEE_LL128, KNEE_SIMPLE, KNEE_PROTOCOLS };
struct knee_protocol {
    double launch_s;              /* added to the cluster's launch_s */
    double node_hop, net_hop;     /* times the latency of a level: the lowest, the others */
    double node_share, net_share; /* of a level's rate */
    double net_more; /* as net_hop, for hops that a path over two units would not have */
};
const char *knee_protocol_name(enum knee_protocol_name protocol); /* "LL" */

#define KNEE_LEVELS_MAX 4

/* What joins units of the level below: GPUs, then nodes, then leaves. */
struct knee_level {
    char name[24];           /* link preset, or your own name */
    double count;            /* units that one group of this level joins; 0: any number */
    double latency_s;        /* one hop of a small message, host included */
    double bytes_per_s;      /* of one port, one direction, as a large collective reaches it */
    double ports;            /* of one unit into this level: 1 for a GPU, the NICs of a node */
    double oversubscription; /* >= 1: what comes from below over what goes up */
    bool shared;             /* a rank may use all ports of its unit; else its part of them */
};

/* A time against size that was fitted to one log; between knots it is linear. */
#define KNEE_KNOTS_MAX 12
struct knee_curve {
    int op; /* enum knee_op */
    double ranks, nodes;
    size_t knots;
    double bytes[KNEE_KNOTS_MAX], time_s[KNEE_KNOTS_MAX]; /* both ascending */
    double rows, refused;                                 /* of the log it was fitted to */
    double median_error, p90_error;                       /* of sizes left out */
    char source[96];                                      /* the log */
};

/* A fitted number with its 90 % interval. */
struct knee_parameter {
    char name[32];
    double value, low, high;
    enum knee_unit unit;
    bool fitted; /* false: the logs say nothing about it, the preset holds */
};

#define KNEE_CURVES_MAX     64
#define KNEE_PARAMETERS_MAX 16

/* What a fit to logs adds to the cluster's numbers. Plain data, about 30 KB. */
struct knee_fitted {
    size_t curve_count;
    struct knee_curve curves[KNEE_CURVES_MAX];
    size_t parameter_count;
    struct knee_parameter parameters[KNEE_PARAMETERS_MAX];
};

/* GPUs, levels of links and what they cost: the one cluster of every command. Copy it as you like;
 * `fitted` is borrowed. */
struct knee_cluster {
    char name[96], gpu[24];
    size_t level_count; /* >= 1 */
    struct knee_level levels[KNEE_LEVELS_MAX];
    double launch_s;   /* a collective that moves nothing */
    double peer_s;     /* every further peer of a point-to-point group */
    double floor_s;    /* the host issues them no faster; 0: not known to */
    double nvls_share; /* as in struct knee_transport */
    bool sharp;        /* the switches reduce */
    bool plain;        /* hosts that send messages: no GPU, no NCCL, any algorithm may run */
    bool whole;        /* its library passes buffers on whole: nothing that is pipelined runs */
    bool textbook;     /* the same from bare numbers: the textbook's ring runs */
    struct knee_protocol protocols[KNEE_PROTOCOLS];
    const struct knee_fitted *fitted; /* NULL: it was not fitted */
};

/* One level, nothing known: every number has its default. */
void knee_cluster_init(struct knee_cluster *cluster);

/* A preset as levels: the node's link, then the network. */
void knee_cluster_from_preset(const struct knee_cluster_preset *preset, struct knee_cluster *out);

/* "8xH100:nvlink4 * 16 @ ib400x8": GPUs and their link, then any number of levels, each
 * "* COUNT @ LINK[xPORTS][/OVERSUBSCRIPTION][{key=value,...}]" with the keys latency, bandwidth and
 * sharing (shared or striped). A GPU may stand without link, a level without @: presets fill in. */
knee_status knee_cluster_parse(const char *text, struct knee_cluster *out, struct knee_err *err);

/* What such text says about itself: a GPU, an instance type, a network, rates, counts, as people
 * write them ("2x p4de.24xlarge (16x A100-80GB), EFA 4x100 Gb/s"). False: no GPU is named. */
bool knee_cluster_recognise(const char *text, struct knee_cluster *out);

/* The same links without any latency: only bytes cost. */
void knee_cluster_free_latency(struct knee_cluster *cluster);

/* The same as the one-line string, exact enough to read back. */
void knee_cluster_line(const struct knee_cluster *cluster, struct knee_text *text);

/* ---- Hardware: a cluster as inputs -------------------------------------------------------- */

/* What a job runs on, as every command takes it. NaN, -1 and no level: not given. Rates are what a
 * GPU achieves, one direction. */
struct knee_hardware {
    int gpu, link;               /* rows of presets */
    struct knee_cluster cluster; /* level_count 0: not given */
    double bandwidth_bytes_per_s, latency_s;
    double gpus_per_node, node_bandwidth_bytes_per_s, node_latency_s;
    double memory_bytes_per_s, price_per_hour, power_w;
};

/* Indicative dollars per GPU-hour; NaN: not known. */
double knee_gpu_price(const struct knee_gpu *gpu);

#endif

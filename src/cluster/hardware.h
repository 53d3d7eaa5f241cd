/* SPDX-License-Identifier: MIT */
/* The inputs that say what a job runs on, as rows that every command's table takes alike. */
#ifndef KNEE_CLUSTER_HARDWARE_H
#define KNEE_CLUSTER_HARDWARE_H

#include "base/keys.h"
#include "knee_cluster.h"

/* A preset or a line of text; files are the program's business. */
knee_status knee_cluster_word(const char *text, const char *where, void *cluster,
                              struct knee_err *err);

#define KNEE_HW_NUMBER(type, name, field, unit, low, high, absent, words)                          \
    KNEE_NUMBER(type, name, hw.field, unit, low, high, "Hardware", absent, words)

/* Rows for a table of `type`, which has a struct knee_hardware called hw. */
#define KNEE_HARDWARE_ROWS(type)                                                                   \
    KNEE_CHOICE(type, "gpu", hw.gpu, knee_gpu_names, "Hardware", "from --cluster",                 \
                "h100, a100, mi300x, ...; see knee list gpus"),                                    \
        {.name = "cluster",                                                                        \
         .kind = KNEE_KEY_PARSED,                                                                  \
         .parse = knee_cluster_word,                                                               \
         .choices = &knee_cluster_preset_names,                                                    \
         .size = sizeof(struct knee_cluster),                                                      \
         .offset = offsetof(type, hw.cluster),                                                     \
         .group = "Hardware",                                                                      \
         .otherwise = "usual node of --gpu",                                                       \
         .help = "preset name, file (from knee fit, nvidia-smi topo -m or NCCL's XML) or one "     \
                 "line: '8xh100 * 16 @ ib400x8'"},                                                 \
        KNEE_CHOICE(type, "link", hw.link, knee_link_names, "Hardware", "none",                    \
                    "network type instead of --bandwidth and --latency"),                          \
        KNEE_HW_NUMBER(type, "bandwidth", bandwidth_bytes_per_s, KNEE_UNIT_BYTES_PER_S, 1,         \
                       KNEE_HUGE, "from --cluster, --link or --gpu",                               \
                       "network bandwidth per GPU in one direction, as achieved; needs a unit: "   \
                       "50GB/s or 400Gb/s"),                                                       \
        KNEE_HW_NUMBER(type, "latency", latency_s, KNEE_UNIT_SECONDS, 0, KNEE_HUGE,                \
                       "from --cluster or --link, else 0", "network latency of one hop"),          \
        KNEE_HW_NUMBER(type, "gpus-per-node", gpus_per_node, KNEE_UNIT_COUNT, 1, 1e6,              \
                       "from the cluster, else 1", "GPUs per node"),                               \
        KNEE_HW_NUMBER(type, "node-bandwidth", node_bandwidth_bytes_per_s, KNEE_UNIT_BYTES_PER_S,  \
                       1, KNEE_HUGE, "from the cluster, else --bandwidth",                         \
                       "bandwidth per GPU inside the node, one direction"),                        \
        KNEE_HW_NUMBER(type, "node-latency", node_latency_s, KNEE_UNIT_SECONDS, 0, KNEE_HUGE,      \
                       "from the cluster, else 0", "latency of one hop inside the node"),          \
        KNEE_HW_NUMBER(type, "memory-bandwidth", memory_bytes_per_s, KNEE_UNIT_BYTES_PER_S, 1,     \
                       KNEE_HUGE, "from --gpu, else 2 TB/s", "memory bandwidth of one GPU"),       \
        KNEE_HW_NUMBER(type, "price", price_per_hour, KNEE_UNIT_DOLLARS, 0, 1e9,                   \
                       "list price of --gpu", "price of one GPU per hour"),                        \
        KNEE_HW_NUMBER(type, "power", power_w, KNEE_UNIT_WATTS, 0, 1e9, "from --gpu",              \
                       "power draw of one busy GPU")

/* Nothing given. */
void knee_hardware_init(struct knee_hardware *hw);

/* Its GPU by --gpu or by the cluster; NULL: not known. */
const struct knee_gpu *knee_hardware_gpu(const struct knee_hardware *hw);

/* Fills what is not given; `object` is what `keys` describe and hw is part of. With
 * `assume_cluster` a GPU that was named brings its usual cluster, whose links the numbers then
 * change. */
void knee_hardware_complete(const struct knee_keys *keys, void *object, struct knee_hardware *hw,
                            bool assume_cluster);

/* The cluster to price on: the one that is given with what the numbers change in it, or without one
 * the textbook's, where a message takes latency + bytes / bandwidth and nothing else. Where no rate
 * is known it is one byte per second. */
void knee_hardware_cluster(const struct knee_hardware *hw, struct knee_cluster *out);

/* Whether a cluster stands behind it, rather than bare numbers. */
bool knee_hardware_has_cluster(const struct knee_hardware *hw);

#endif

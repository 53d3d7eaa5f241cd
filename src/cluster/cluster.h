/* SPDX-License-Identifier: MIT */
/* What readers and the recogniser need to put a cluster together. */
#ifndef KNEE_CLUSTER_CLUSTER_H
#define KNEE_CLUSTER_CLUSTER_H

#include "knee_cluster.h"

#include "base/text.h"

/* Name, latency and rate of a link preset; no oversubscription. */
void knee_level_set_link(struct knee_level *level, const struct knee_link *link, double ports);

/* The same for the lowest level, with what the link means for launches and NVLS. */
void knee_cluster_set_gpu_link(struct knee_cluster *cluster, const struct knee_link *link);

/* One field of a level by its key: count, latency, bandwidth, ports, oversubscription, sharing. */
knee_status knee_level_set(struct knee_level *level, const char *key, const char *value,
                           const char *where, struct knee_err *err);

/* The link preset of a transport ("ib") whose rate is nearest; NULL: there is none. */
const struct knee_link *knee_link_nearest(const char *transport, double bytes_per_s);

/* Wire and host of the transport that a link uses; NaN where no transport fits. */
double knee_transport_latency_s(const char *link);

/* Hosts that send messages to each other: a message of S bytes takes latency + S / rate, nothing
 * else. The numbers are a guess that a fit replaces: 50 us and 1 GB/s between hosts, 1 us and 10
 * GB/s inside one. */
void knee_cluster_plain(struct knee_cluster *out);

#endif

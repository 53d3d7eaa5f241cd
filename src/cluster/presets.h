/* SPDX-License-Identifier: MIT */
/* Presets of GPUs, links and clusters: tables made from data/ by tools/presets.awk. */
#ifndef KNEE_CLUSTER_PRESETS_H
#define KNEE_CLUSTER_PRESETS_H

#include "knee_plan.h"

extern const struct knee_gpu knee_gpus[];
extern const struct knee_link knee_links[];
extern const struct knee_cluster_preset knee_cluster_presets[];
extern const struct knee_transport knee_transports[];
extern const size_t knee_gpus_count, knee_links_count, knee_cluster_presets_count,
    knee_transports_count;

/* By exact name; NULL if there is none (the data files are checked by a test). */
const struct knee_gpu *knee_gpu_named(const char *name);
const struct knee_link *knee_link_named(const char *name);
const struct knee_cluster_preset *knee_cluster_preset_named(const char *name);

/* The transport whose name a link preset begins with; NULL: none fits. */
const struct knee_transport *knee_transport_of(const char *link);

#endif

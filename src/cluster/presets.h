/* SPDX-License-Identifier: MIT */
/* Presets of GPUs, links and clusters: tables made from data/ by tools/presets.awk. */
#ifndef KNEE_CLUSTER_PRESETS_H
#define KNEE_CLUSTER_PRESETS_H

#include "knee_cluster.h"

/* A spelling of a GPU's name, which may have no preset. */
struct knee_gpu_word {
    const char *words, *gpu;
};

/* Links of a GPU without a preset, or of other machines than its preset's usual one. */
struct knee_gpu_stand_in {
    const char *gpu, *cluster; /* the preset whose links its machines have */
    double bytes_per_s;        /* raw rate of its link in the node; NaN: as that preset's */
};

extern const struct knee_gpu knee_gpus[];
extern const struct knee_gpu_word knee_gpu_words[];
extern const struct knee_gpu_stand_in knee_gpu_stand_ins[];
extern const struct knee_link knee_links[];
extern const struct knee_cluster_preset knee_cluster_presets[];
extern const struct knee_transport knee_transports[];
extern const size_t knee_gpus_count, knee_links_count, knee_cluster_presets_count,
    knee_transports_count, knee_gpu_words_count, knee_gpu_stand_ins_count;

/* By exact name; NULL if there is none (the data files are checked by a test). */
const struct knee_gpu *knee_gpu_named(const char *name);
const struct knee_link *knee_link_named(const char *name);
const struct knee_cluster_preset *knee_cluster_preset_named(const char *name);

/* The transport whose name a link preset begins with; NULL: none fits. */
const struct knee_transport *knee_transport_of(const char *link);

#endif

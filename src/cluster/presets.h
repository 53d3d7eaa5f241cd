/* SPDX-License-Identifier: MIT */
/* Presets of GPUs, links and clusters: tables made from data/ by tools/presets.awk. */
#ifndef KNEE_CLUSTER_PRESETS_H
#define KNEE_CLUSTER_PRESETS_H

#include "knee_plan.h"

/* One row of data/gpu_words.csv. */
struct knee_gpu_word {
    const char *words;
    const char *gpu;     /* its name, which may have no preset */
    const char *cluster; /* whose links its machines have; "": its preset's usual one */
    double bytes_per_s;  /* raw rate of its link in the node; NaN: as that preset's */
};
extern const struct knee_gpu knee_gpus[];
extern const struct knee_gpu_word knee_gpu_words[];
extern const struct knee_link knee_links[];
extern const struct knee_cluster_preset knee_cluster_presets[];
extern const struct knee_transport knee_transports[];
extern const size_t knee_gpus_count, knee_links_count, knee_cluster_presets_count,
    knee_transports_count, knee_gpu_words_count;

/* By exact name; NULL if there is none (the data files are checked by a test). */
const struct knee_gpu *knee_gpu_named(const char *name);
const struct knee_link *knee_link_named(const char *name);
const struct knee_cluster_preset *knee_cluster_preset_named(const char *name);

#endif

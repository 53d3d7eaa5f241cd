/* SPDX-License-Identifier: MIT */
#include "cluster/presets.h"

#include "cluster/gpu_words.h"

#include <string.h>

/* Three tables, one set of look-ups: count, name of a row, row by number. */
#define LOOKUPS(thing, table, label, spelt, known)                                                 \
    static size_t thing##_count(void)                                                              \
    {                                                                                              \
        return table##_count;                                                                      \
    }                                                                                              \
    static const char *thing##_name(size_t row)                                                    \
    {                                                                                              \
        return row < table##_count ? table[row].name : NULL;                                       \
    }                                                                                              \
    const struct knee_choices knee_##thing##_names = {label, thing##_count, thing##_name, spelt,   \
                                                      known};                                      \
    const struct knee_##thing *knee_##thing##_at(size_t row)                                       \
    {                                                                                              \
        return row < table##_count ? &table[row] : NULL;                                           \
    }

#define NAMED(thing, table)                                                                        \
    const struct knee_##thing *knee_##thing##_named(const char *name)                              \
    {                                                                                              \
        for (size_t row = 0; row < table##_count; row++)                                           \
            if (strcmp(table[row].name, name) == 0)                                                \
                return &table[row];                                                                \
        return NULL;                                                                               \
    }

LOOKUPS(gpu, knee_gpus, "GPU preset", knee_gpu_spelt, knee_gpu_is_known)
LOOKUPS(link, knee_links, "link preset", NULL, NULL)
LOOKUPS(cluster_preset, knee_cluster_presets, "cluster preset", NULL, NULL)
NAMED(gpu, knee_gpus)
NAMED(link, knee_links)
NAMED(cluster_preset, knee_cluster_presets)

const struct knee_transport *knee_transport_at(size_t row)
{
    return row < knee_transports_count ? &knee_transports[row] : NULL;
}

const struct knee_transport *knee_transport_of(const char *link)
{
    const struct knee_transport *best = NULL;
    size_t longest = 0;
    for (size_t row = 0; row < knee_transports_count; row++) {
        size_t length = strlen(knee_transports[row].name);
        if (length > longest && strncmp(knee_transports[row].name, link, length) == 0) {
            best = &knee_transports[row];
            longest = length;
        }
    }
    return best;
}

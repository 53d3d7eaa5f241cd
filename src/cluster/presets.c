/* SPDX-License-Identifier: MIT */
#include "cluster/presets.h"

#include "base/fold.h"
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

/* Instance types by how their names begin, the longer before the shorter; AWS puts a size behind a
 * dot. A family alone is its usual member. */
static int cluster_spelt(const char *text)
{
    static const struct {
        const char *start, *preset;
    } types[] = {
        {"standard_nd96amsr", "ndm-a100-v4"},
        {"standard_nd96asr", "nd-a100-v4"},
        {"standard_nd96isr_h100", "nd-h100-v5"},
        {"standard_nd96isr_h200", "nd-h200-v5"},
        {"nd96amsr", "ndm-a100-v4"},
        {"nd96asr", "nd-a100-v4"},
        {"nd96isr_h100", "nd-h100-v5"},
        {"nd96isr_h200", "nd-h200-v5"},
        {"a2-highgpu", "a2-high"},
        {"a2-ultragpu", "a2-ultra"},
        {"a2", "a2-high"},
        {"a3-highgpu", "a3-high"},
        {"a3-megagpu", "a3-mega"},
        {"a3-ultragpu", "a3-ultra"},
        {"a3", "a3-high"},
        {"a4-highgpu", "a4"},
        {"p6", "p6-b200"},
    };
    char low[64];
    knee_fold(text, low, sizeof low);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t length = strlen(types[i].start);
        bool family = length <= 2; /* not the start of another name */
        if (strncmp(low, types[i].start, length) == 0 && (!family || !low[length]))
            return (int)(knee_cluster_preset_named(types[i].preset) - knee_cluster_presets);
    }
    char *size = strchr(low, '.');
    if (!size || !strstr(size, "xlarge"))
        return -1;
    *size = '\0';
    const struct knee_cluster_preset *aws = knee_cluster_preset_named(low);
    return aws ? (int)(aws - knee_cluster_presets) : -1;
}

LOOKUPS(gpu, knee_gpus, "GPU preset", knee_gpu_spelt, knee_gpu_advice)
LOOKUPS(link, knee_links, "link preset", NULL, NULL)
LOOKUPS(cluster_preset, knee_cluster_presets, "cluster preset", cluster_spelt, NULL)
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

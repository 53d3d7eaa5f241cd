/* SPDX-License-Identifier: MIT */
/*
 * A platform: a GPU, the links around it and the software that drives it, as inputs; and what they
 * boil down to, a machine. Link rates are raw here; what software reaches of them is a constant.
 */
#include "base/error.h"
#include "base/keys.h"
#include "cluster/presets.h"
#include "job/profile.h"

#include <math.h>
#include <string.h>

#define NUMBER(name, field, unit, low, high, absent, words)                                        \
    KNEE_NUMBER(struct knee_platform, name, field, unit, low, high, "Hardware", absent, words)
#define CHOICE(name, field, list, heading, absent, words)                                          \
    KNEE_CHOICE(struct knee_platform, name, field, list, heading, absent, words)

static const struct knee_key rows[] = {
    CHOICE("gpu", gpu, knee_gpu_names, "Hardware", "from --cluster", "GPU preset"),
    CHOICE("cluster", cluster, knee_cluster_preset_names, "Hardware", "the usual node of --gpu",
           "cluster preset: GPU and links"),
    NUMBER("gpus-per-node", gpus_per_node, KNEE_UNIT_COUNT, 1, 1e6, "from the preset",
           "GPUs that share the fast link"),
    NUMBER("node-bandwidth", node_bandwidth_bytes_per_s, KNEE_UNIT_BYTES_PER_S, 1, KNEE_HUGE,
           "from the preset", "raw rate of one GPU inside the node, one direction"),
    NUMBER("bandwidth", bandwidth_bytes_per_s, KNEE_UNIT_BYTES_PER_S, 1, KNEE_HUGE,
           "from the preset", "raw rate of the node's NICs over its GPUs"),
    NUMBER("memory", memory_bytes, KNEE_UNIT_BYTES, 1e6, 1e15, "from --gpu", "memory of one GPU"),
    NUMBER("memory-bandwidth", memory_bytes_per_s, KNEE_UNIT_BYTES_PER_S, 1, KNEE_HUGE,
           "from --gpu", "memory rate of one GPU"),
    NUMBER("flops", peak_flops, KNEE_UNIT_FLOPS, 1, KNEE_HUGE, "from --gpu",
           "dense 16-bit peak of one GPU"),
    NUMBER("power-cap", power_w, KNEE_UNIT_WATTS, 1, 1e5, "board power",
           "power limit of one GPU; compute runs at the square root of its share"),
    NUMBER("price", price_per_hour, KNEE_UNIT_DOLLARS, 0, 1e6, "middle of the preset's range",
           "dollars per GPU-hour"),
    CHOICE("profile", profile, knee_profile_names, "Software", "megatron-core",
           "framework and version; 'knee list profiles' shows them"),
};

const struct knee_keys knee_platform_keys = KNEE_KEY_TABLE(rows, struct knee_platform);

void knee_platform_init(struct knee_platform *platform)
{
    memset(platform, 0, sizeof *platform);
    knee_keys_clear(&knee_platform_keys, platform);
}

static void fill(struct knee_platform *platform, double *field, double value)
{
    knee_keys_fill(&knee_platform_keys, platform, field, value, KNEE_PRESET);
}

static void fill_links(struct knee_platform *p, const struct knee_cluster_preset *cluster)
{
    if (!cluster)
        return;
    const struct knee_link *in = knee_link_named(cluster->node_link);
    const struct knee_link *out = knee_link_named(cluster->net_link);
    fill(p, &p->gpus_per_node, cluster->gpus_per_node);
    fill(p, &p->node_bandwidth_bytes_per_s, in->bytes_per_s);
    fill(p, &p->bandwidth_bytes_per_s,
         out->bytes_per_s * cluster->nics_per_node / cluster->gpus_per_node);
}

static void fill_gpu(struct knee_platform *p, const struct knee_gpu *gpu)
{
    fill(p, &p->memory_bytes, gpu->memory_bytes);
    fill(p, &p->memory_bytes_per_s, gpu->memory_bytes_per_s);
    fill(p, &p->peak_flops, gpu->bf16_flops);
    fill(p, &p->power_w, gpu->power_w);
    fill(p, &p->price_per_hour, (gpu->price_low + gpu->price_high) / 2);
}

/* The preset the constants belong to; a cluster names its GPU. */
static const struct knee_gpu *gpu_of(const struct knee_platform *p)
{
    if (p->gpu >= 0)
        return knee_gpu_at((size_t)p->gpu);
    return p->cluster >= 0 ? knee_gpu_named(knee_cluster_preset_at((size_t)p->cluster)->gpu) : NULL;
}

/* Where `changes` has a value it holds. */
static void take_changes(struct knee_rates *rates, const struct knee_rates *changes)
{
    for (size_t i = 0; changes && i < knee_rates_keys.count; i++) {
        size_t offset = knee_rates_keys.rows[i].offset;
        double value = *(const double *)(const void *)((const char *)changes + offset);
        if (!isnan(value))
            *(double *)(void *)((char *)rates + offset) = value;
    }
}

knee_status knee_machine_init(struct knee_platform *platform, const struct knee_rates *changes,
                              struct knee_machine *out, struct knee_err *err)
{
    const struct knee_gpu *gpu = gpu_of(platform);
    if (!gpu) {
        knee_fail(err, KNEE_USAGE, "", "the GPU is not known");
        knee_hint(err, "add --gpu (for example h100) or --cluster; 'knee list gpus' shows them");
        return KNEE_USAGE;
    }
    struct knee_platform p = *platform;
    fill_links(&p, p.cluster >= 0 ? knee_cluster_preset_at((size_t)p.cluster)
                                  : knee_cluster_preset_named(gpu->cluster));
    fill_gpu(&p, gpu);
    if (p.profile < 0) {
        p.profile = knee_profile_row("megatron-core");
        p.source[knee_keys_find(&knee_platform_keys, "profile")] = KNEE_DEFAULT;
    }
    const struct knee_architecture *row = knee_architecture_row(gpu->name);
    double over = p.peak_flops / gpu->bf16_flops;
    struct knee_machine machine = {
        .peak_flops = {p.peak_flops, over * gpu->fp8_flops, row ? over * row->fp4_flops : NAN},
        .memory_bytes = p.memory_bytes,
        .memory_bytes_per_s = p.memory_bytes_per_s,
        .node_size = p.gpus_per_node,
        .node_bytes_per_s = p.node_bandwidth_bytes_per_s,
        .network_bytes_per_s = p.bandwidth_bytes_per_s,
        .clock = sqrt(fmin(1, p.power_w / gpu->power_w)),
        .price_per_hour = p.price_per_hour,
        .power_w = p.power_w,
    };
    struct knee_recipe recipe;
    knee_recipe_init(gpu->name, p.profile, &recipe);
    knee_rates_resolve(&recipe, NULL, &machine.rates);
    take_changes(&machine.rates, changes);
    *platform = p;
    *out = machine;
    return KNEE_OK;
}

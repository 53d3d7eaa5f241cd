/* SPDX-License-Identifier: MIT */
/*
 * A platform: hardware and the software that drives it, as inputs; and what they boil down to, a
 * machine.
 */
#include "base/error.h"
#include "base/keys.h"
#include "cluster/hardware.h"
#include "job/profile.h"

#include <math.h>
#include <string.h>

#define NUMBER(name, field, unit, low, high, absent, words)                                        \
    KNEE_NUMBER(struct knee_platform, name, field, unit, low, high, "Hardware", absent, words)
#define CHOICE(name, field, list, heading, absent, words)                                          \
    KNEE_CHOICE(struct knee_platform, name, field, list, heading, absent, words)

static const struct knee_key rows[] = {
    KNEE_HARDWARE_ROWS(struct knee_platform),

    NUMBER("memory", memory_bytes, KNEE_UNIT_BYTES, 1e6, 1e15, "from --gpu", "memory of one GPU"),
    NUMBER("flops", peak_flops, KNEE_UNIT_FLOPS, 1, KNEE_HUGE, "from --gpu",
           "peak bf16 FLOP/s of one GPU, dense"),
    NUMBER("power-cap", power_cap_w, KNEE_UNIT_WATTS, 1, 1e5, "board power",
           "power limit of one GPU; compute slows with the square root of it"),
    CHOICE("profile", profile, knee_profile_names, "Software", "megatron-core",
           "software to model: framework and version ('knee list profiles')"),
};

const struct knee_keys knee_platform_keys = KNEE_KEY_TABLE(rows, struct knee_platform);

void knee_platform_init(struct knee_platform *platform)
{
    memset(platform, 0, sizeof *platform);
    knee_hardware_init(&platform->hw);
    knee_keys_clear(&knee_platform_keys, platform);
}

static void fill(struct knee_platform *platform, double *field, double value)
{
    knee_keys_fill(&knee_platform_keys, platform, field, value, KNEE_PRESET);
}

static void fill_gpu(struct knee_platform *p, const struct knee_gpu *gpu)
{
    fill(p, &p->memory_bytes, gpu->memory_bytes);
    fill(p, &p->peak_flops, gpu->bf16_flops);
    fill(p, &p->power_cap_w, gpu->power_w);
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

/* No constant of the GPU's architecture is fitted to runs. */
static bool never_seen(const char *gpu)
{
    const char *architecture = knee_architecture_of(gpu);
    for (size_t i = 0; i < knee_constants_count; i++)
        if (strcmp(knee_constants[i].scope, "architecture") == 0 &&
            strcmp(knee_constants[i].owner, architecture) == 0 && !isnan(knee_constants[i].sigma))
            return false;
    return true;
}

#define ENOUGH_SOURCES 2 /* one alone cannot tell its software from its cluster */

enum knee_basis knee_basis_of(int profile, const char *gpu, const char **why)
{
    *why = NULL;
    if (profile == knee_profile_row("generic"))
        *why = "the profile is generic, which no software was fitted to";
    else if (knee_profiles[profile].sources < ENOUGH_SOURCES)
        *why = "runs of this software come from one source";
    else if (never_seen(gpu))
        *why = "no run on such a GPU was ever seen";
    return *why ? KNEE_BASIS_ASSUMED : KNEE_BASIS_KNOWN;
}

static bool is_of(const char *gpu, const char *architecture)
{
    return strcmp(knee_architecture_of(gpu), architecture) == 0;
}

static bool on_tpu(const char *gpu)
{
    return is_of(gpu, "tpu");
}

/* NVIDIA has bf16 since Ampere. */
static int precision_of(const char *gpu)
{
    return is_of(gpu, "volta") || is_of(gpu, "turing") ? KNEE_FP16 : KNEE_BF16;
}

static enum knee_basis basis_of(const struct knee_platform *p, const char *gpu, const char **why)
{
    if (p->source[knee_keys_find(&knee_platform_keys, "profile")] != KNEE_DEFAULT)
        return knee_basis_of(p->profile, gpu, why);
    *why = on_tpu(gpu) ? "JAX with XLA, which was fitted to no run on a TPU"
                       : "Megatron-Core software; set --framework";
    return KNEE_BASIS_UNNAMED;
}

knee_status knee_machine_init(struct knee_platform *platform, const struct knee_rates *changes,
                              struct knee_machine *out, struct knee_err *err)
{
    struct knee_platform p = *platform;
    knee_hardware_complete(&knee_platform_keys, &p, &p.hw, true);
    const struct knee_gpu *gpu = knee_hardware_gpu(&p.hw);
    if (!gpu)
        return knee_fail_hint(
            err, KNEE_USAGE, "",
            "add --gpu (for example h100) or --cluster; 'knee list gpus' shows them",
            "no GPU given");
    fill_gpu(&p, gpu);
    if (p.profile < 0) {
        p.profile = knee_profile_row(on_tpu(gpu->name) ? "xla-tpu" : "megatron-core");
        p.source[knee_keys_find(&knee_platform_keys, "profile")] = KNEE_DEFAULT;
    }
    const struct knee_architecture *row = knee_architecture_row(gpu->name);
    double over = p.peak_flops / gpu->bf16_flops;
    struct knee_machine machine = {
        .peak_flops = {p.peak_flops, over * gpu->fp8_flops, row ? over * row->fp4_flops : NAN},
        .memory_bytes = p.memory_bytes,
        .memory_bytes_per_s = p.hw.memory_bytes_per_s,
        .node_size = p.hw.gpus_per_node,
        .clock = sqrt(fmin(1, p.power_cap_w / gpu->power_w)),
        .price_per_hour = p.hw.price_per_hour,
        .power_w = p.hw.power_w,
        .precision = precision_of(gpu->name),
    };
    knee_hardware_cluster(&p.hw, &machine.cluster);
    struct knee_recipe recipe;
    knee_recipe_init(gpu->name, p.profile, &recipe);
    knee_rates_resolve(&recipe, NULL, &machine.rates);
    take_changes(&machine.rates, changes);
    machine.basis = basis_of(&p, gpu->name, &machine.why_assumed);
    *platform = p;
    *out = machine;
    return KNEE_OK;
}

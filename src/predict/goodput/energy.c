/* SPDX-License-Identifier: MIT */
/* Joules from seconds and the table of measured watts. */
#include "predict/goodput/energy.h"

#include <math.h>
#include <string.h>

#define STAND_IN         "h200" /* whose watts others take, scaled */
#define STAND_IN_BOARD_W 700.0

const char *const knee_power_kinds[KNEE_POWER_KINDS] = {"idle",   "wait",    "copy",
                                                        "memory", "product", "burst"};

static double measured_watts(const char *gpu, const char *kind)
{
    for (size_t i = 0; i < knee_power_count; i++)
        if (strcmp(knee_power[i].gpu, gpu) == 0 && strcmp(knee_power[i].kind, kind) == 0)
            return knee_power[i].watts;
    return NAN;
}

void knee_watts_of(const char *gpu, double board_w, double cap_w, struct knee_watts *out)
{
    struct knee_watts w = {.measured = gpu && !isnan(measured_watts(gpu, knee_power_kinds[0]))};
    w.from = w.measured ? gpu : STAND_IN;
    double scale = w.measured ? 1 : board_w / STAND_IN_BOARD_W;
    for (int kind = 0; kind < KNEE_POWER_KINDS; kind++)
        w.at[kind] = scale * measured_watts(w.from, knee_power_kinds[kind]);
    w.cap_w = isnan(cap_w) ? board_w : fmin(cap_w, board_w);
    /* Continuous load stays just below the limit, whatever the limit is. */
    w.at[KNEE_POWER_PRODUCT] *= w.cap_w / board_w;
    *out = w;
}

double knee_gpu_joules(const struct knee_watts *w, const struct knee_gpu_seconds *s)
{
    double all_s = s->product_s + s->memory_s + s->copy_s + s->wait_s + s->idle_s;
    double free_j = s->product_s * w->at[KNEE_POWER_BURST] +
                    s->memory_s * w->at[KNEE_POWER_MEMORY] + s->copy_s * w->at[KNEE_POWER_COPY] +
                    s->wait_s * w->at[KNEE_POWER_WAIT] + s->idle_s * w->at[KNEE_POWER_IDLE];
    return fmin(free_j, all_s * w->at[KNEE_POWER_PRODUCT]);
}

/* Which parts of a plan's step keep the GPU busy with what; the rest of them wait. */
static const enum knee_power_kind part_kinds[KNEE_PARTS] = {
    [KNEE_PART_GEMM] = KNEE_POWER_PRODUCT,      [KNEE_PART_ATTENTION] = KNEE_POWER_PRODUCT,
    [KNEE_PART_MEMORY] = KNEE_POWER_MEMORY,     [KNEE_PART_HEAD] = KNEE_POWER_PRODUCT,
    [KNEE_PART_RECOMPUTE] = KNEE_POWER_PRODUCT, [KNEE_PART_OPTIMIZER] = KNEE_POWER_MEMORY,
    [KNEE_PART_HOST] = KNEE_POWER_IDLE,         [KNEE_PART_TP] = KNEE_POWER_WAIT,
    [KNEE_PART_CP] = KNEE_POWER_WAIT,           [KNEE_PART_EP] = KNEE_POWER_WAIT,
    [KNEE_PART_PP] = KNEE_POWER_WAIT,           [KNEE_PART_DP] = KNEE_POWER_WAIT,
    [KNEE_PART_SHARD] = KNEE_POWER_WAIT,        [KNEE_PART_BUBBLE] = KNEE_POWER_WAIT,
    [KNEE_PART_JITTER] = KNEE_POWER_WAIT,       [KNEE_PART_LOADER] = KNEE_POWER_IDLE,
    [KNEE_PART_OFFLOAD] = KNEE_POWER_COPY,
};

struct knee_gpu_seconds knee_plan_seconds(const struct knee_plan_cost *cost)
{
    double at[KNEE_POWER_KINDS] = {0};
    for (int part = 0; part < KNEE_PARTS; part++)
        at[part_kinds[part]] += cost->part_s[part];
    return (struct knee_gpu_seconds){.product_s = at[KNEE_POWER_PRODUCT],
                                     .memory_s = at[KNEE_POWER_MEMORY],
                                     .copy_s = at[KNEE_POWER_COPY],
                                     .wait_s = at[KNEE_POWER_WAIT],
                                     .idle_s = at[KNEE_POWER_IDLE]};
}

double knee_wall_joules(double gpu_joules, double seconds)
{
    return (gpu_joules + KNEE_HOST_WATTS * seconds) / KNEE_SUPPLY;
}

/* SPDX-License-Identifier: MIT */
/*
 * Energy: seconds by what the GPU does, times the measured power of doing it.
 *
 * The power limit acts on an average: a GPU that pauses may draw more than the limit in between
 * (kind "burst"), but its mean stays at or below what it draws under continuous load ("product").
 * GPUs without measurements use those of the H200, scaled by board power.
 *
 * What a GPU draws, what its server draws (processors, fans, switches, power supplies), and what
 * the building adds (cooling) are kept apart: only the first is measured here.
 */
#ifndef KNEE_PREDICT_GOODPUT_ENERGY_H
#define KNEE_PREDICT_GOODPUT_ENERGY_H

#include "knee_plan.h"

/* A row of data/power.csv. */
struct knee_power {
    const char *gpu, *kind;
    double watts, low, high;
    const char *origin;
};
extern const struct knee_power knee_power[];
extern const size_t knee_power_count;

enum knee_power_kind {
    KNEE_POWER_IDLE,
    KNEE_POWER_WAIT,
    KNEE_POWER_COPY, /* from or to the host */
    KNEE_POWER_MEMORY,
    KNEE_POWER_PRODUCT,
    KNEE_POWER_BURST,
    KNEE_POWER_KINDS
};
extern const char *const knee_power_kinds[KNEE_POWER_KINDS];

/* The watts of one GPU under its power limit. */
struct knee_watts {
    double at[KNEE_POWER_KINDS];
    bool measured;    /* on such a GPU; else scaled from `from` by board power */
    const char *from; /* the GPU that was measured; static */
    double cap_w;     /* the power limit they hold for */
};

/* `board_w`: its power as it is sold; `cap_w`: its limit now, NaN: the same. */
void knee_watts_of(const char *gpu, double board_w, double cap_w, struct knee_watts *out);

/* Seconds of one GPU. Products whose share of the GPU is small count with that share as products
 * and otherwise as waiting: the caller splits them. */
struct knee_gpu_seconds {
    double product_s, memory_s, copy_s, wait_s, idle_s;
};
double knee_gpu_joules(const struct knee_watts *watts, const struct knee_gpu_seconds *seconds);

/* The seconds of a plan's step on its busiest stage. */
struct knee_gpu_seconds knee_plan_seconds(const struct knee_plan_cost *cost);

/* Of an accelerator server with 8 GPUs, per GPU: host processors, memory, fans, network cards and
 * switches; and the share of the power that its supplies pass on. */
#define KNEE_HOST_WATTS 170.0
#define KNEE_SUPPLY     0.95
double knee_wall_joules(double gpu_joules, double seconds);

#endif

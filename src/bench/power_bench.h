/* SPDX-License-Identifier: MIT */
/*
 * knee bench --power: what one GPU draws while it idles, waits, moves bytes and multiplies. The
 * rows are those of data/power.csv, so that what it prints as CSV can be appended there.
 */
#ifndef KNEE_BENCH_POWER_BENCH_H
#define KNEE_BENCH_POWER_BENCH_H

#include "knee_plan.h"
#include "predict/goodput/energy.h"

struct knee_power_row {
    const char *kind, *what; /* kind of data/power.csv; what ran, in words */
    double watts, low, high; /* mean; the lowest and highest of its half seconds */
};

struct knee_power_bench {
    char gpu[96];     /* as the driver calls it */
    const char *name; /* the preset, or "" */
    double limit_w;   /* power limit */
    double busy;      /* share of the time that the bursts took */
    struct knee_power_row rows[KNEE_POWER_KINDS];
    size_t count;
};

/* Each kind runs for `row_time_s`, after a second of warming up. KNEE_SYSTEM: no GPU, no cuBLAS or
 * no NVML. */
typedef void knee_power_tell(void *ctx, size_t done, size_t of);
knee_status knee_power_measure(double row_time_s, knee_power_tell *tell, void *ctx,
                               struct knee_power_bench *out, struct knee_err *err);

#endif

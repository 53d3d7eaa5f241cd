/* SPDX-License-Identifier: MIT */
/*
 * What the GPUs of a recorded job draw. The labels of the mean step say how long a GPU computes,
 * waits and idles. Compute is split by kind of kernel: products and attention keep the arithmetic
 * units busy, everything else is limited by memory. A very short kernel does not fill the GPU: it
 * counts as far as small products do (an H200 draws 383 W in products of 1024, which take about
 * 5 us, and 690 W in larger ones), and the rest of its time counts as waiting.
 */
#include "cluster/presets.h"
#include "judge/judge.h"
#include "predict/goodput/energy.h"

#include <math.h>

#define SHORT_FILLS 0.4 /* (383 - 123) W of (690 - 123) W, rounded */

/* Seconds of kernels: those that fill the GPU, and what short ones leave unused. */
struct sums {
    double product, memory, empty;
};

static struct sums sum_kernels(const struct knee_diagnosis *d)
{
    struct sums sums = {0};
    for (int k = 0; k < KNEE_KERNEL_KINDS; k++) {
        double empty = (1 - SHORT_FILLS) * d->works[k].short_s;
        bool product = k == KNEE_KERNEL_PRODUCT || k == KNEE_KERNEL_ATTENTION;
        *(product ? &sums.product : &sums.memory) += d->works[k].total_s - empty;
        sums.empty += empty;
    }
    return sums;
}

/* The share of copies that stay in the GPU's memory, and so keep it busy. */
static double local_share(const struct knee_diagnosis *d)
{
    double local = d->copies[KNEE_COPY_DEVICE].total_s + d->copies[KNEE_COPY_SET].total_s, all = 0;
    for (int k = 0; k < KNEE_COPY_KINDS; k++)
        all += d->copies[k].total_s;
    return all > 0 ? local / all : 0;
}

void knee_find_energy(int gpu, struct knee_diagnosis *d)
{
    struct knee_trace_energy *e = &d->energy;
    struct knee_watts watts;
    *e = (struct knee_trace_energy){.gpu_w = NAN, .server_w = NAN, .gpu_step_j = NAN};
    double wall_s = d->step.wall_s;
    if (gpu < 0 || (d->gaps & (KNEE_GAP_SHARED_GPU | KNEE_GAP_LAID_OUT)) || wall_s <= 0)
        return;
    const double *label = d->step.label_s;
    struct sums sums = sum_kernels(d);
    double all = sums.product + sums.memory + sums.empty;
    if (all <= 0)
        sums.product = all = 1;
    double compute = label[KNEE_COMPUTE] / wall_s, copy = label[KNEE_COPY] / wall_s;
    double local = copy * local_share(d);
    struct knee_gpu_seconds share = {
        .product_s = compute * sums.product / all,
        .memory_s = compute * sums.memory / all + local,
        .copy_s = copy - local,
        .wait_s = compute * sums.empty / all + (label[KNEE_TRANSFER] + label[KNEE_WAIT]) / wall_s,
        .idle_s = (label[KNEE_STARVED] + label[KNEE_HOST] + label[KNEE_IDLE]) / wall_s,
    };
    knee_watts_of(knee_gpu_at((size_t)gpu)->name, knee_gpu_at((size_t)gpu)->power_w, NAN, &watts);
    *e = (struct knee_trace_energy){
        .gpu_w = knee_gpu_joules(&watts, &share),
        .product = share.product_s,
        .memory = share.memory_s,
        .wait = share.wait_s + share.copy_s,
        .idle = share.idle_s,
        .measured = watts.measured,
        .from = watts.from,
    };
    e->server_w = knee_wall_joules(e->gpu_w, 1);
    e->gpu_step_j = e->gpu_w * wall_s;
}

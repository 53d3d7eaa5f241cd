/* SPDX-License-Identifier: MIT */
/*
 * Which published runs are like a plan. Two jobs are far apart by what moves the time of a FLOP:
 * the GPU, experts, adapters and precision by steps; the model's FLOPs per token, the sequence and
 * the number of GPUs by their ratios, in doublings. Times are compared per FLOP, because the
 * nearest run is seldom of the same model.
 */
#include "predict/plan/published_runs.h"

#include "cluster/hardware.h"
#include "job/profile.h"
#include "job/shape.h"

#include <math.h>
#include <string.h>

#define OTHER_GPU          1.0 /* of the same architecture */
#define OTHER_ARCHITECTURE 4.0
#define OTHER_KIND         6.0 /* experts or adapters where the other has none */
#define OTHER_PRECISION    2.0
#define LENGTH             0.25 /* weights of squared doublings; 1 for FLOPs per token */
#define COUNT              0.05

static double doublings(double a, double b)
{
    double d = log2(a / b);
    return d * d;
}

struct wanted {
    const char *gpu, *architecture, *precision;
    double gflops, seq, gpus;
    bool experts, adapters;
};

static double distance(const struct wanted *w, const struct knee_published_run *run)
{
    double far = doublings(w->gflops, run->gflops) + LENGTH * doublings(w->seq, run->seq) +
                 COUNT * doublings(w->gpus, run->gpus);
    if (strcmp(w->gpu, run->gpu) != 0)
        far += strcmp(w->architecture, knee_architecture_of(run->gpu)) == 0 ? OTHER_GPU
                                                                            : OTHER_ARCHITECTURE;
    far += strcmp(w->precision, run->precision) != 0 ? OTHER_PRECISION : 0;
    far += w->experts != (run->experts > 1) ? OTHER_KIND : 0;
    far += w->adapters != (run->lora_rank > 0) ? OTHER_KIND : 0;
    return far;
}

size_t knee_alike_find(const struct knee_shape *shape, const struct knee_platform *platform,
                       const struct knee_plan *plan, double token_s,
                       struct knee_alike out[KNEE_ALIKE_MAX])
{
    const struct knee_gpu *gpu = knee_hardware_gpu(&platform->hw);
    double far[KNEE_ALIKE_MAX];
    struct knee_flops flops;
    size_t count = 0;
    if (!gpu || !(token_s > 0))
        return 0;
    knee_shape_flops(shape, &flops);
    struct wanted w = {.gpu = gpu->name,
                       .architecture = knee_architecture_of(gpu->name),
                       .precision = knee_precision_names.name((size_t)plan->precision),
                       .gflops = 1e-9 * (flops.matmul + flops.attention_causal),
                       .seq = shape->seq,
                       .gpus = plan->gpus,
                       .experts = shape->experts > 1,
                       .adapters = shape->lora_rank > 0};
    for (size_t i = 0; i < knee_published_runs_count; i++) {
        const struct knee_published_run *run = &knee_published_runs[i];
        double d = distance(&w, run);
        size_t at = count < KNEE_ALIKE_MAX ? count++ : KNEE_ALIKE_MAX;
        for (; at > 0 && d < far[at - 1]; at--)
            if (at < KNEE_ALIKE_MAX)
                far[at] = far[at - 1], out[at] = out[at - 1];
        if (at == KNEE_ALIKE_MAX)
            continue;
        far[at] = d;
        out[at] = (struct knee_alike){
            .model = run->name,
            .gpu = run->gpu,
            .precision = run->precision,
            .source = run->origin,
            .gpus = run->gpus,
            .token_s = run->token_s,
            .difference = token_s / w.gflops / (run->token_s / run->gflops) - 1,
        };
    }
    return count;
}

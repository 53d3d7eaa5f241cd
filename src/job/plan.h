/* SPDX-License-Identifier: MIT */
/* What follows from a completed plan and a shape: stages, micro-batches, groups. */
#ifndef KNEE_JOB_PLAN_H
#define KNEE_JOB_PLAN_H

#include "knee_job.h"

/* Layers of the first, the last and the fullest stage. */
struct knee_stages {
    double first, last, most;
};
struct knee_stages knee_plan_stages(double layers, double pp, double vp);

/* Layers of the last stage when the others have ceil(layers / pp) each and it has what is left
 * (Megatron's --decoder-last-pipeline-num-layers); 0: stages are alike, or it cannot be. */
double knee_plan_short_last(const struct knee_plan *plan, double layers);

/* ZeRO-3 under a pipeline (FSDP2 with reshard_after_forward off, torchtitan's default there):
 * parameters are gathered for the first micro-batch and kept, gradients are scattered after the
 * last. */
bool knee_plan_gathers_once(const struct knee_plan *plan);

/* `basis`, or "assumed" where a known software does what no or few measured runs do: an optimizer
 * on the host, ZeRO-3 under a pipeline, long sequences in parts, more GPUs than twice the largest
 * run.
 */
enum knee_basis knee_plan_basis(const struct knee_plan *plan, const struct knee_shape *shape,
                                enum knee_basis basis);

/* What selective recomputation covers where attention is fused: as given, or norms, activations and
 * (with latent attention) the projections up from the latents. */
unsigned knee_plan_modules(const struct knee_plan *plan, const struct knee_shape *shape);

/* Micro-batches that each pipeline works through in a step, at least 1. */
double knee_plan_micro_batches(const struct knee_plan *plan);

/* How often gradients are reduced in a step: zero2 keeps no whole gradient to add to, so it reduces
 * with every micro-batch; under a pipeline software adds up locally all the same. */
double knee_plan_reductions(const struct knee_plan *plan);

/* The ranks that pass a micro-batch on from stage to stage. */
struct knee_group knee_plan_pipeline(const struct knee_plan *plan);

/* Why a plan cannot be, or NULL. Its degrees must all be set. */
const char *knee_plan_objection(const struct knee_plan *plan, const struct knee_shape *shape,
                                const struct knee_machine *machine);

enum knee_dtype knee_precision_dtype(int precision);

#endif

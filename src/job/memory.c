/* SPDX-License-Identifier: MIT */
/*
 * Memory of one GPU, on the stage that needs most: the first, which has most micro-batches in
 * flight, or the last, which has the logits.
 *
 *   parameters   2 bytes each, 4 bits where QLoRA froze them; a share of them with zero3, beside
 *                the layers gathered ahead and their gradients
 *   gradients    as the profile keeps them; a share with zero2
 *   optimizer    master weights and moments; a share with zero1
 *   activations  what a layer keeps for its backward pass, per micro-batch in flight
 *                (Korthikanti et al. 2022, term by term, so that gated and grouped layers, experts
 *                and fused attention come out right); recomputed layers keep their input only
 *   buffers      one layer's recomputation, gathered layers, permuted tokens
 *   fragmentation  a share of activations and buffers that allocation wastes
 */
#include "job/memory.h"

#include "job/plan.h"
#include "job/shape.h"

#include <math.h>

#define OP_KEEPS 0.6 /* of a layer's bytes: recomputing every second product */

/* The same for state space: what is projected, the same convolved, the scan's result. */
static double state_bytes(const struct knee_split *s)
{
    double across = s->shape->hidden / (s->seq_par ? s->tp : 1);
    return 2 * (2 * across + 2 * knee_linear_in(s->shape, s->tp));
}

/* Bytes that the attention half of a layer keeps per token: inputs of norm and projection, queries,
 * keys, values, its result. */
static double attention_bytes(const struct knee_split *s)
{
    const struct knee_shape *shape = s->shape;
    double across = shape->hidden / (s->seq_par ? s->tp : 1);
    double q = shape->heads * shape->head_dim, v = shape->heads * shape->value_dim;
    double kv = shape->kv_heads * (shape->head_dim + shape->value_dim);
    double latent = shape->kv_rank > 0 ? 2 * (shape->q_rank + shape->kv_rank) : 0;
    double full =
        2 * (2 * across + ((shape->attention_gate > 0 ? 2 : 1) * q + kv + v) / s->tp + latent);
    double linear = knee_shape_linear(shape);
    return linear > 0 ? full + linear * (state_bytes(s) - full) : full;
}

/* Per token of m: width in, gated or not. */
static double ffn_bytes(const struct knee_split *s, double width)
{
    return 2 * ((s->shape->glu > 0 ? 2 : 1) + 1) * width;
}

/* What a token that goes to experts leaves there beside its feed-forward part: the permuted input.
 * Results need not be kept, the router's weights being applied before the last product. */
static double permuted_bytes(const struct knee_split *s)
{
    return (s->dtype == KNEE_16BIT ? 2 : 1) * s->shape->hidden;
}

/* What selective recomputation drops: scores, or the results of the modules that it names. */
static double dropped_bytes(const struct knee_split *s, bool experts, double width, double tokens)
{
    const struct knee_shape *shape = s->shape;
    double across = shape->hidden / (s->seq_par ? s->tp : 1),
           value = s->dtype == KNEE_16BIT ? 2 : 1;
    double q = shape->heads * shape->head_dim;
    double kv = shape->kv_heads * (shape->head_dim + shape->value_dim), sum = 0;
    if (s->modules == 0 || (s->modules & KNEE_MODULE_ATTENTION && !s->fused))
        sum += 5 * shape->heads / s->tp * s->tokens * shape->seq;
    if (s->modules & KNEE_MODULE_NORM)
        sum += 2 * value * across * s->tokens;
    if (s->modules & KNEE_MODULE_LATENT)
        sum += 2 * (q + kv) / s->tp * s->tokens;
    bool whole = s->modules & (experts ? KNEE_MODULE_EXPERTS : KNEE_MODULE_MLP);
    if (whole)
        return sum + tokens * (ffn_bytes(s, width) + (experts ? permuted_bytes(s) : 0));
    return sum + (s->modules & KNEE_MODULE_ACTIVATION ? value * width * tokens : 0);
}

static void kept(const struct knee_split *s, bool experts, struct knee_footprint *out)
{
    const struct knee_shape *shape = s->shape;
    double t = s->tokens, across = shape->hidden / (s->seq_par ? s->tp : 1);
    double width = experts ? shape->expert_ffn / s->etp : shape->ffn / s->tp;
    double tokens = experts ? knee_split_routed(s) * s->imbalance : t;
    double fed = experts ? 1 : knee_shape_fed(shape);
    double all = t * (attention_bytes(s) + 4 * across) + fed * tokens * ffn_bytes(s, width);
    if (s->rates->fused_attention <= 0)
        all += 5 * shape->heads / s->tp * t * shape->seq;
    if (s->dtype != KNEE_16BIT) /* what goes into products is kept as it was cast */
        all -= t * (2 * across + shape->heads * shape->value_dim / s->tp) + tokens * width;
    if (experts)
        all += tokens * permuted_bytes(s) + t * ffn_bytes(s, shape->shared_ffn / s->tp);
    double *keep = out->kept_bytes[experts];
    keep[KNEE_KEEP] = all;
    keep[KNEE_SELECTIVE] = all - dropped_bytes(s, experts, width, tokens);
    keep[KNEE_BY_OP] = OP_KEEPS * all;
    keep[KNEE_FULL] = 2 * across * t;
}

void knee_footprint_of(const struct knee_split *s, struct knee_footprint *out)
{
    const struct knee_shape *shape = s->shape;
    struct knee_params p;
    struct knee_footprint f = {0};
    knee_shape_params(shape, &p);
    bool experts = shape->experts > 1;
    f.common[0] = (p.attention + p.dense_ffn) / s->tp + p.norms;
    f.common[1] = (p.attention + p.shared) / s->tp + p.norms + p.router;
    f.experts[1] = experts ? shape->experts / s->ep * p.expert / s->etp : 0;
    for (int kind = 0; kind < 2; kind++)
        f.adapter[kind] = p.adapter[kind] / s->tp;
    f.embedding = p.embedding / s->tp + p.positions;
    f.head = p.embedding / s->tp; /* a tied head is a copy when the ends of a pipeline differ */
    f.logits_bytes = s->rates->logits_bytes * s->tokens * shape->vocab / s->tp;
    f.permuted_bytes = experts ? 4 * knee_split_routed(s) * s->imbalance * shape->hidden : 0;
    kept(s, false, &f);
    if (experts)
        kept(s, true, &f);
    *out = f;
}

/* Share of the layers that have experts. */
static double expert_share(const struct knee_shape *shape)
{
    return shape->experts > 1 ? 1 - shape->dense_layers / shape->layers : 0;
}

static double mixed(const double of[2], double share)
{
    return of[0] + share * (of[1] - of[0]);
}

static double end_params(const struct knee_footprint *f, const struct knee_shape *shape, double pp)
{
    if (pp > 1)
        return f->embedding;
    return f->embedding + (shape->tied > 0 ? 0 : f->head);
}

void knee_stage_params(const struct knee_footprint *f, const struct knee_shape *shape,
                       const struct knee_plan *plan, double *common, double *experts)
{
    struct knee_stages stages = knee_plan_stages(shape->layers, plan->pp, plan->vp);
    double share = expert_share(shape);
    double layers = plan->pp > 1 ? fmax(stages.first, stages.most - 1) : stages.most;
    *common = layers * mixed(f->common, share) + end_params(f, shape, plan->pp);
    *experts = layers * mixed(f->experts, share);
}

void knee_layer_trained(const struct knee_footprint *f, const struct knee_shape *shape,
                        double *common, double *experts)
{
    double share = expert_share(shape);
    *common = mixed(shape->lora_rank > 0 ? f->adapter : f->common, share);
    *experts = shape->lora_rank > 0 ? 0 : mixed(f->experts, share);
}

void knee_stage_trained(const struct knee_footprint *f, const struct knee_shape *shape,
                        const struct knee_plan *plan, double *common, double *experts)
{
    if (shape->lora_rank <= 0) {
        knee_stage_params(f, shape, plan, common, experts);
        return;
    }
    struct knee_stages stages = knee_plan_stages(shape->layers, plan->pp, plan->vp);
    *common = stages.most * mixed(f->adapter, expert_share(shape));
    *experts = 0;
}

/* Stages' worth of activations that the first stage holds. */
static double in_flight(const struct knee_plan *plan)
{
    double micro_batches = knee_plan_micro_batches(plan), pp = plan->pp;
    if (pp <= 1)
        return 1;
    if (plan->schedule == KNEE_GPIPE)
        return micro_batches;
    double interleaved = plan->vp > 1 ? (pp - 1) / plan->vp : 0;
    return fmin(micro_batches, pp + interleaved);
}

struct states {
    double parameters, gradients, optimizer, gathered;
};

/* Parameters of the stage: common ones, experts'. Of all, one of 4 bits counts as a quarter. */
struct held {
    double common, experts;
};

static struct states states_of(const struct held *all, const struct held *trained,
                               double gathered_bytes, const struct knee_machine *machine,
                               const struct knee_plan *plan)
{
    double group = plan->shard == KNEE_REPLICATE ? 1 : plan->shard_size;
    double expert_group = fmax(1, group * plan->tp / (plan->ep * plan->etp));
    double each[3]; /* parameters that a rank keeps of weights, gradients, optimizer */
    for (int i = 0; i < 3; i++) {
        bool split = plan->shard >= KNEE_ZERO3 - i;
        if (i == 1 && plan->shard == KNEE_ZERO2 && plan->pp > 1)
            split = false; /* they are added up over micro-batches: knee_plan_reductions() */
        const struct held *of = i == 0 ? all : trained;
        each[i] =
            split ? of->common / group + of->experts / expert_group : of->common + of->experts;
    }
    double kept = 0;
    bool once = knee_plan_gathers_once(plan) && group > 1;
    if (once) { /* gathered parameters and gradients of the whole stage stay for all micro-batches
                 */
        kept = all->common + all->experts;
        each[1] = trained->common + trained->experts;
    }
    return (struct states){
        .parameters = 2 * (each[0] + kept),
        .gradients = plan->gradient_bytes * each[1],
        .optimizer =
            plan->offload == KNEE_OFFLOAD_OPTIMIZER ? 0 : machine->rates.state_bytes * each[2],
        .gathered = plan->shard == KNEE_ZERO3 && group > 1 && !once
                        ? (1 + plan->prefetch) * gathered_bytes * machine->rates.gathered_share
                        : 0,
    };
}

/* Weights of a layer beside their gradients, if they are trained. */
static double gathered_bytes(const struct knee_footprint *f, const struct knee_shape *shape)
{
    double layer = fmax(f->common[0], f->common[1] + f->experts[1]);
    return (knee_shape_weight_bytes(shape) + (shape->lora_rank > 0 ? 0 : 2)) * layer;
}

/* Frozen weights beside adapters: those of layers perhaps in 4 bits, and then one matrix at a time
 * in 16. Returns the bytes of that one. */
static double freeze(const struct knee_footprint *f, const struct knee_shape *shape,
                     const struct knee_plan *plan, const struct held *trained, struct held *all)
{
    double ends = end_params(f, shape, plan->pp), share = knee_shape_weight_bytes(shape) / 2;
    if (shape->lora_rank <= 0)
        return 0;
    all->common = share * (all->common - ends) + ends + trained->common;
    all->experts *= share;
    return share < 1 ? 2 * shape->hidden * fmax(shape->ffn, shape->shared_ffn) / plan->tp : 0;
}

void knee_memory_of(const struct knee_footprint *f, const struct knee_shape *shape,
                    const struct knee_machine *machine, const struct knee_plan *plan,
                    struct knee_memory *out)
{
    const struct knee_rates *rates = &machine->rates;
    struct knee_stages stages = knee_plan_stages(shape->layers, plan->pp, plan->vp);
    double share = expert_share(shape);
    struct held all, trained;
    knee_stage_params(f, shape, plan, &all.common, &all.experts);
    knee_stage_trained(f, shape, plan, &trained.common, &trained.experts);
    double thawed = freeze(f, shape, plan, &trained, &all);
    struct states states = states_of(&all, &trained, gathered_bytes(f, shape), machine, plan);
    double whole[2] = {f->kept_bytes[0][KNEE_KEEP], f->kept_bytes[1][KNEE_KEEP]}, layer[2];
    for (int kind = 0; kind < 2; kind++)
        layer[kind] = plan->recompute_share * f->kept_bytes[kind][plan->recompute] +
                      (1 - plan->recompute_share) * whole[kind];
    double stage = fmax(stages.first, stages.most - 1) * mixed(layer, share);
    double again = plan->recompute == KNEE_FULL ? mixed(whole, share) : 0;
    double first = in_flight(plan) * stage, last = stage + f->logits_bytes;
    if (plan->pp <= 1)
        first = last;
    double activations = rates->activation_memory * fmax(first, last);
    double buffers =
        rates->activation_memory * (again + f->permuted_bytes) + states.gathered + thawed;
    /* Gradients that come and go take the room that activations leave. */
    double gradients = states.gradients;
    if (rates->gradients_stay <= 0 && !knee_plan_gathers_once(plan))
        activations = fmax(0, activations + buffers - gradients), buffers = 0;
    struct knee_memory m = {
        .parameters = states.parameters,
        .gradients = gradients,
        .optimizer = states.optimizer,
        .activations = activations,
        .buffers = buffers,
        .fragmentation = rates->fragmentation * (activations + buffers),
        .base = rates->base_memory_bytes,
        .capacity = machine->memory_bytes,
        .spread = rates->memory_spread,
    };
    m.total = m.parameters + m.gradients + m.optimizer + m.activations + m.buffers +
              m.fragmentation + m.base;
    *out = m;
}

/* Cards are sold in GiB that are called GB; drivers keep about 1 % (nvidia-smi: 81559 MiB of an
 * H100 of 80 GB, 183359 MiB of a B200 of 180). */
#define DRIVER_GIVES (0.99 * 1.073741824)

double knee_memory_fit(const struct knee_memory *m)
{
    double away = log(DRIVER_GIVES * m->capacity / m->total);
    return m->spread > 0 ? 0.5 * erfc(-away / (m->spread * sqrt(2))) : away >= 0;
}

double knee_memory_limit(double capacity, double spread, double risk)
{
    double low = 0, high = 8; /* standard deviations: halving, once per search */
    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;
        *(0.5 * erfc(middle / sqrt(2)) > risk ? &low : &high) = middle;
    }
    return DRIVER_GIVES * capacity * exp(-high * spread);
}

#define NINETY 1.6449 /* standard deviations to each side of 90 % of a normal distribution */

struct knee_sure knee_memory_sure(const struct knee_memory *m)
{
    double off = exp(NINETY * m->spread);
    return (struct knee_sure){m->total / off, m->total * off};
}

/* SPDX-License-Identifier: MIT */
/*
 * The frameworks, as their documents describe them (2025-26; docs/reference/plan.md lists the
 * addresses). Where a document says nothing a thing is taken not to be there.
 *
 *   Megatron-LM  docs.nvidia.com/megatron-core: schedules 1F1B and interleaved, whose micro-batches
 *                must be a multiple of the stages; distributed optimizer (zero1), also inside parts
 *                of the replicas; Megatron-FSDP (zero2, zero3) with TP, CP and EP, not with stages;
 *                sequence parallelism is needed by experts under TP; layers are spread evenly,
 *                embedding and loss counted as layers or not
 *   NeMo         docs.nvidia.com/nemo/megatron-bridge: the same by other names
 *   torchtitan   github.com/pytorch/torchtitan, config/job_config.py: FSDP2 (zero3, or zero2 when
 *                parameters stay gathered after the forward pass), whole or inside groups (HSDP);
 *                DDP alone only; TP always with sequence parallelism; selective recomputation is by
 *                operation
 *   FSDP         docs.pytorch.org, FullyShardedDataParallel: FULL_SHARD, SHARD_GRAD_OP and their
 *                hybrids; checkpoints whole blocks
 *   DeepSpeed    deepspeed.ai/docs/config-json: what its configuration can say, so no stages, split
 *                sequences or spread experts, which are in the model's code; MiCS shards zero3
 * inside groups
 */
#include "job/framework.h"

#include "base/format.h"
#include "base/keys.h"
#include "job/plan.h"

#include <math.h>
#include <string.h>

#define BIT(value) (1U << (value))
#define ALL        (~0U)

enum sequence { EITHER, ALWAYS, NEVER };

struct knee_framework {
    const char *name, *profile; /* the software it is priced as when none is named */
    unsigned shards, grouped;   /* ways to shard; those that can shard inside groups */
    unsigned staged;            /* those that go with stages */
    unsigned recomputes, schedules, precisions, offloads;
    bool tp, pp, cp, ep;
    enum sequence sequence; /* parallelism of sequences under TP */
    bool expert_sequence;   /* the same, only with experts */
    bool whole_rounds;      /* interleaving takes micro-batches in multiples of the stages */
    bool short_last;        /* the last stage may have fewer layers than the others */
    bool one_axis_copies;   /* without sharding no other axis */
};

#define MEGATRON                                                                                   \
    .shards = ALL, .grouped = ALL, .staged = BIT(KNEE_REPLICATE) | BIT(KNEE_ZERO1),                \
    .recomputes = BIT(KNEE_KEEP) | BIT(KNEE_SELECTIVE) | BIT(KNEE_FULL),                           \
    .schedules = BIT(KNEE_1F1B) | BIT(KNEE_INTERLEAVED),                                           \
    .precisions = BIT(KNEE_BF16) | BIT(KNEE_FP16) | BIT(KNEE_FP8) | BIT(KNEE_FP8_BLOCK),           \
    .offloads = ALL, .tp = true, .pp = true, .cp = true, .ep = true, .expert_sequence = true,      \
    .whole_rounds = true, .short_last = true

static const struct knee_framework frameworks[] = {
    {.name = "any"}, /* never returned as a row: see knee_framework_at() */
    {.name = "megatron", .profile = "megatron-core", MEGATRON},
    {
        .name = "torchtitan",
        .profile = "torchtitan-compile",
        .shards = BIT(KNEE_REPLICATE) | BIT(KNEE_ZERO2) | BIT(KNEE_ZERO3),
        .grouped = BIT(KNEE_ZERO2) | BIT(KNEE_ZERO3),
        .staged = ALL,
        .recomputes = BIT(KNEE_KEEP) | BIT(KNEE_BY_OP) | BIT(KNEE_FULL),
        .schedules = BIT(KNEE_1F1B) | BIT(KNEE_INTERLEAVED) | BIT(KNEE_GPIPE),
        .precisions = BIT(KNEE_BF16) | BIT(KNEE_FP8) | BIT(KNEE_FP8_ROW) | BIT(KNEE_FP8_BLOCK),
        .offloads = BIT(KNEE_ON_GPU),
        .tp = true,
        .pp = true,
        .cp = true,
        .ep = true,
        .sequence = ALWAYS,
        .one_axis_copies = true,
    },
    {
        .name = "fsdp",
        .profile = "fsdp",
        .shards = BIT(KNEE_REPLICATE) | BIT(KNEE_ZERO2) | BIT(KNEE_ZERO3),
        .grouped = BIT(KNEE_ZERO2) | BIT(KNEE_ZERO3),
        .recomputes = BIT(KNEE_KEEP) | BIT(KNEE_FULL),
        .schedules = BIT(KNEE_1F1B),
        .precisions = BIT(KNEE_BF16) | BIT(KNEE_FP16),
        .offloads = BIT(KNEE_ON_GPU),
    },
    {
        .name = "deepspeed",
        .profile = "generic", /* the DeepSpeed that was measured is of 2021 */
        .shards = ALL,
        .grouped = BIT(KNEE_ZERO3),
        .recomputes = BIT(KNEE_KEEP) | BIT(KNEE_FULL),
        .schedules = BIT(KNEE_1F1B),
        .precisions = BIT(KNEE_BF16) | BIT(KNEE_FP16),
        .offloads = ALL,
        .tp = true,
        .sequence = NEVER,
    },
    {.name = "nemo", .profile = "megatron-bridge", MEGATRON},
};
#define FRAMEWORKS (sizeof frameworks / sizeof *frameworks)

static size_t framework_count(void)
{
    return FRAMEWORKS;
}

static const char *framework_name(size_t row)
{
    return row < FRAMEWORKS ? frameworks[row].name : NULL;
}

const struct knee_choices knee_framework_names = {
    .what = "framework", .count = framework_count, .name = framework_name};

const struct knee_framework *knee_framework_at(int row)
{
    if (row <= 0 || row >= (int)FRAMEWORKS)
        return NULL;
    return &frameworks[row];
}

const struct knee_framework *knee_framework_named(const char *name)
{
    for (size_t i = 1; i < FRAMEWORKS; i++)
        if (strcmp(frameworks[i].name, name) == 0)
            return &frameworks[i];
    return NULL;
}

const struct knee_framework *knee_framework_priced_as(const char *profile)
{
    for (size_t i = 1; i < FRAMEWORKS; i++)
        if (strcmp(frameworks[i].profile, profile) == 0)
            return &frameworks[i];
    return NULL;
}

const char *knee_framework_word(const struct knee_framework *framework)
{
    return framework->name;
}

const char *knee_framework_profile(const struct knee_framework *framework)
{
    return framework->profile;
}

/* ---- The rules ---- */

struct question {
    const struct knee_framework *f;
    const struct knee_plan *p;
    const struct knee_shape *shape;
};

static bool outside(unsigned allowed, int value)
{
    return value >= 0 && !(allowed & BIT(value));
}

static bool tensor(const struct question *q)
{
    return !q->f->tp && q->p->tp > 1;
}

static bool stages(const struct question *q)
{
    return !q->f->pp && q->p->pp > 1;
}

static bool context(const struct question *q)
{
    return !q->f->cp && q->p->cp > 1;
}

static bool experts(const struct question *q)
{
    return !q->f->ep && q->p->ep > 1;
}

static bool shard(const struct question *q)
{
    return q->p->dp * q->p->cp != 1 && outside(q->f->shards, q->p->shard);
}

static bool staged(const struct question *q)
{
    return q->p->pp > 1 && outside(q->f->staged, q->p->shard);
}

static bool grouped(const struct question *q)
{
    const struct knee_plan *p = q->p;
    return p->shard > KNEE_REPLICATE && p->shard_size < p->dp * p->cp &&
           (outside(q->f->grouped, p->shard) || fmod(p->shard_size, p->cp) != 0);
}

static bool copies(const struct question *q)
{
    const struct knee_plan *p = q->p;
    return q->f->one_axis_copies && p->shard == KNEE_REPLICATE && p->dp * p->cp > 1 &&
           (p->tp > 1 || p->pp > 1 || p->cp > 1);
}

static bool recompute(const struct question *q)
{
    return outside(q->f->recomputes, q->p->recompute);
}

static bool schedule(const struct question *q)
{
    return !(q->p->pp <= 1) && outside(q->f->schedules, q->p->schedule);
}

static bool precision(const struct question *q)
{
    return outside(q->f->precisions, q->p->precision);
}

static bool offload(const struct question *q)
{
    return outside(q->f->offloads, q->p->offload);
}

static bool sequence(const struct question *q)
{
    bool needed = q->f->sequence == ALWAYS || (q->f->expert_sequence && q->shape->experts > 1);
    return needed && q->p->tp > 1 && q->p->seq_par == 0;
}

static bool no_sequence(const struct question *q)
{
    return q->f->sequence == NEVER && q->p->tp > 1 && q->p->seq_par > 0;
}

static bool uneven(const struct question *q)
{
    double pieces = q->p->pp * q->p->vp, layers = q->shape->layers;
    bool even = !(pieces > 1) || fmod(layers, pieces) == 0 || fmod(layers + 2, pieces) == 0;
    return !even && !(q->f->short_last && knee_plan_short_last(q->p, layers) > 0);
}

static bool rounds(const struct question *q)
{
    const struct knee_plan *p = q->p;
    double micro_batches = p->global_batch / (p->dp * p->micro_batch);
    return q->f->whole_rounds && p->vp > 1 && fmod(micro_batches, p->pp) > 0;
}

static const struct {
    bool (*broken)(const struct question *);
    const char *what;
    const char *option; /* the way out; with a list: the words that it takes */
    const struct knee_choices *choices;
    size_t allowed; /* offset of the bits that say which */
} rules[] = {
    {tensor, "tensor parallelism", "--tp 1", NULL, 0},
    {stages, "a pipeline", "--pp 1", NULL, 0},
    {context, "a split sequence", "--cp 1", NULL, 0},
    {experts, "spread experts", "--ep 1", NULL, 0},
    {shard, "this sharding", "--shard", &knee_shard_names, offsetof(struct knee_framework, shards)},
    {staged, "this sharding under a pipeline", "--pp 1 or --shard", &knee_shard_names,
     offsetof(struct knee_framework, staged)},
    {grouped, "shards inside a part of the replicas", "another --shard-size", NULL, 0},
    {copies, "copies beside another axis", "--shard zero2 or zero3", NULL, 0},
    {recompute, "this recomputation", "--recompute", &knee_recompute_names,
     offsetof(struct knee_framework, recomputes)},
    {schedule, "this schedule", "--schedule", &knee_schedule_names,
     offsetof(struct knee_framework, schedules)},
    {precision, "this precision", "--precision", &knee_precision_names,
     offsetof(struct knee_framework, precisions)},
    {offload, "an optimizer on the host", "--offload none", NULL, 0},
    {sequence, "TP without sequence parallelism", "--sequence-parallel 1", NULL, 0},
    {no_sequence, "sequence parallelism under TP", "--sequence-parallel 0", NULL, 0},
    {uneven, "stages of unlike length", "another --pp or --vp", NULL, 0},
    {rounds, "micro-batches that are no multiple of the stages", "--vp 1, or another --micro-batch",
     NULL, 0},
};
#define RULES ((int)(sizeof rules / sizeof *rules))

int knee_framework_breaks(const struct knee_framework *framework, const struct knee_plan *plan,
                          const struct knee_shape *shape)
{
    struct question q = {framework, plan, shape};
    for (int i = 0; framework && i < RULES; i++)
        if (rules[i].broken(&q))
            return i;
    return -1;
}

int knee_framework_lacks(const struct knee_framework *framework, const struct knee_plan *plan,
                         const struct knee_shape *shape)
{
    struct knee_plan rest = *plan;
    rest.precision = -1;
    if (rest.schedule == KNEE_ZERO_BUBBLE)
        rest.schedule = KNEE_1F1B;
    if (rest.pp > 1 && rest.shard >= KNEE_ZERO2)
        rest.shard = KNEE_ZERO1;
    return framework ? knee_framework_breaks(framework, &rest, shape) : -1;
}

bool knee_framework_computes(const struct knee_framework *framework, int precision)
{
    return !outside(framework->precisions, precision);
}

bool knee_framework_shards(const struct knee_framework *framework)
{
    return !(framework->staged & BIT(KNEE_ZERO1)) || (framework->staged & BIT(KNEE_ZERO3));
}

bool knee_framework_has(const struct knee_framework *framework, enum knee_recompute recompute_way)
{
    return !framework || (framework->recomputes & BIT(recompute_way));
}

void knee_framework_says(const struct knee_framework *framework, int rule,
                         struct knee_obstacle *out)
{
    const struct knee_choices *choices = rules[rule].choices;
    knee_format(out->what, sizeof out->what, "%s", rules[rule].what);
    knee_format(out->instead, sizeof out->instead, "%s", rules[rule].option);
    if (!choices)
        return;
    unsigned allowed =
        *(const unsigned *)(const void *)((const char *)framework + rules[rule].allowed);
    const char *between = " ";
    for (size_t i = 0; i < choices->count(); i++) {
        size_t used = strlen(out->instead);
        if (!(allowed & BIT(i)))
            continue;
        knee_format(out->instead + used, sizeof out->instead - used, "%s%s", between,
                    choices->name(i));
        between = ", ";
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * A plan: how a model is spread over GPUs. Ranks are numbered with tensor parallelism innermost,
 * then context, data and pipeline parallelism, as Megatron does, so that the talkative axes stay
 * inside a node. Experts are spread over the ranks of data, context and (beyond etp) tensor
 * parallelism.
 */
#include "job/plan.h"
#include "knee_plan.h"

#include "base/error.h"
#include "base/fold.h"
#include "base/keys.h"
#include "job/batch.h"

#include <math.h>
#include <string.h>

static const char *const shard_words[] = {"none", "zero1", "zero2", "zero3"};
static const char *const recompute_words[] = {"none", "selective", "op", "full"};
static const char *const schedule_words[] = {"1f1b", "interleaved", "gpipe", "zero-bubble"};
static const char *const precision_words[] = {"bf16",      "fp16",        "fp8",
                                              "fp8-block", "fp8-rowwise", "fp4"};
static const char *const offload_words[] = {"none", "optimizer"};
KNEE_WORDS(knee_shard_names, "way to shard", shard_words);
KNEE_WORDS(knee_recompute_names, "recomputation", recompute_words);
KNEE_WORDS(knee_schedule_names, "pipeline schedule", schedule_words);
KNEE_WORDS(knee_offload_names, "way to offload", offload_words);

/* ---- Precision, and how recipes and data sheets write it ---- */

static const struct {
    const char *written;
    enum knee_precision precision;
} precision_spellings[] = {
    {"bfloat16", KNEE_BF16},    {"float16", KNEE_FP16}, {"half", KNEE_FP16},
    {"fp8-delayed", KNEE_FP8},  {"fp8-cs", KNEE_FP8},   {"mxfp8", KNEE_FP8_BLOCK},
    {"fp8-mx", KNEE_FP8_BLOCK}, {"nvfp4", KNEE_FP4},    {"mxfp4", KNEE_FP4},
};

static size_t precision_count(void)
{
    return KNEE_PRECISIONS;
}

static const char *precision_name(size_t row)
{
    return row < KNEE_PRECISIONS ? precision_words[row] : NULL;
}

static int precision_spelt(const char *text)
{
    char low[24];
    knee_fold(text, low, sizeof low);
    for (size_t i = 0; i < sizeof precision_spellings / sizeof *precision_spellings; i++)
        if (knee_same_name(low, precision_spellings[i].written))
            return (int)precision_spellings[i].precision;
    return -1;
}

const struct knee_choices knee_precision_names = {.what = "precision",
                                                  .count = precision_count,
                                                  .name = precision_name,
                                                  .spelt = precision_spelt};

/* ---- Recomputation by module ---- */

#define NORM    KNEE_MODULE_NORM
#define ACT     KNEE_MODULE_ACTIVATION
#define LATENT  KNEE_MODULE_LATENT
#define SCORES  KNEE_MODULE_ATTENTION
#define MLP     KNEE_MODULE_MLP
#define EXPERTS KNEE_MODULE_EXPERTS
static const struct {
    const char *name;
    unsigned bits;
} module_sets[] = {
    {"layernorm", NORM},
    {"moe_act", ACT},
    {"mla_up_proj", LATENT},
    {"core_attn", SCORES},
    {"mlp", MLP},
    {"moe", EXPERTS},
    {"layernorm+moe_act", NORM | ACT},
    {"layernorm+mla_up_proj", NORM | LATENT},
    {"layernorm+mlp", NORM | MLP},
    {"mla_up_proj+mlp", LATENT | MLP},
    {"mlp+moe", MLP | EXPERTS},
    {"moe_act+mla_up_proj", ACT | LATENT},
    {"moe_act+mlp", ACT | MLP},
    {"moe_act+mla_up_proj+mlp", ACT | LATENT | MLP},
    {"layernorm+moe_act+mla_up_proj", NORM | ACT | LATENT},
    {"layernorm+mla_up_proj+mlp", NORM | LATENT | MLP},
    {"layernorm+moe_act+mlp", NORM | ACT | MLP},
    {"layernorm+moe_act+mla_up_proj+mlp", NORM | ACT | LATENT | MLP},
    {"core_attn+mlp", SCORES | MLP},
    {"core_attn+layernorm", SCORES | NORM},
};
#define MODULES     6 /* the first rows are one module each */
#define MODULE_SETS (sizeof module_sets / sizeof *module_sets)

static size_t module_set_count(void)
{
    return MODULE_SETS;
}

static const char *module_set_name(size_t row)
{
    return row < MODULE_SETS ? module_sets[row].name : NULL;
}

static unsigned module_bit(const char *name, size_t length)
{
    for (size_t i = 0; i < MODULES; i++)
        if (strlen(module_sets[i].name) == length &&
            strncmp(module_sets[i].name, name, length) == 0)
            return module_sets[i].bits;
    return 0;
}

/* Modules in any order, joined by + or commas. */
static int module_set_spelt(const char *text)
{
    static const char between[] = "+, ;";
    unsigned bits = 0;
    for (const char *at = text; *at; at += strspn(at, between)) {
        size_t length = strcspn(at, between);
        unsigned bit = module_bit(at, length);
        if (bit == 0)
            return -1;
        bits |= bit;
        at += length;
    }
    for (size_t i = 0; i < MODULE_SETS; i++)
        if (module_sets[i].bits == bits)
            return (int)i;
    return -1;
}

const struct knee_choices knee_modules_names = {.what = "set of modules",
                                                .count = module_set_count,
                                                .name = module_set_name,
                                                .spelt = module_set_spelt};

#define NUMBER(name, field, unit, low, high, heading, absent, words)                               \
    KNEE_NUMBER(struct knee_plan, name, field, unit, low, high, heading, absent, words)
#define DEGREE(name, field, words)                                                                 \
    NUMBER(name, field, KNEE_UNIT_COUNT, 1, 1e7, "Plan", "searched", words)
#define CHOICE(name, field, list, absent, words)                                                   \
    KNEE_CHOICE(struct knee_plan, name, field, list, "Plan", absent, words)
#define SWITCH(name, field, absent, words)                                                         \
    NUMBER(name, field, KNEE_UNIT_COUNT, 0, 1, "Plan", absent, words)

static const struct knee_key rows[] = {
    KNEE_BATCH_ROWS(struct knee_plan, 1, 1e12, "Batch", "the model's own, else 4Mi tokens"),
    DEGREE("micro-batch", micro_batch, "sequences per micro-batch and replica"),
    DEGREE("tp", tp, "tensor-parallel degree"),
    DEGREE("pp", pp, "pipeline stages"),
    DEGREE("vp", vp, "virtual stages per pipeline stage (interleaving)"),
    DEGREE("cp", cp, "context-parallel degree"),
    DEGREE("ep", ep, "expert-parallel degree"),
    DEGREE("etp", etp, "tensor-parallel degree inside each expert"),
    CHOICE("shard", shard, knee_shard_names, "searched",
           "none, zero1 (optimizer), zero2 (and gradients), zero3 (and parameters, as FSDP)"),
    DEGREE("shard-size", shard_size, "GPUs in one sharding group (less than all: HSDP)"),
    NUMBER("prefetch", prefetch, KNEE_UNIT_COUNT, 0, 1e3, "Plan", "1",
           "zero3: layers gathered ahead; 0: no overlap"),
    CHOICE("recompute", recompute, knee_recompute_names, "searched",
           "activation recomputation: none, selective, op or full"),
    CHOICE("recompute-modules", modules, knee_modules_names, "the framework's default",
           "with --recompute selective: modules joined by +, such as layernorm+moe_act"),
    CHOICE("schedule", schedule, knee_schedule_names, "searched",
           "pipeline schedule: 1f1b, interleaved, gpipe or zero-bubble"),
    CHOICE("precision", precision, knee_precision_names, "bf16",
           "precision of the matrix products; mxfp8 is fp8-block, nvfp4 is fp4"),
    CHOICE("offload", offload, knee_offload_names, "searched",
           "none, or optimizer states in host memory"),
    SWITCH("sequence-parallel", seq_par, "1 with --tp above 1",
           "1: sequence parallelism (norms split over TP ranks)"),
    SWITCH("cp-gather", cp_gather, "0",
           "context parallelism: 1 gathers all keys and values, 0 uses a ring"),
    SWITCH("overlap-tp", overlap_tp, "1", "1: TP communication overlaps matrix products"),
    SWITCH("overlap-dp", overlap_dp, "1", "1: gradient exchange overlaps the backward pass"),
    SWITCH("overlap-ep", overlap_ep, "0",
           "1: MoE all-to-all overlaps compute of another micro-batch"),
    SWITCH("overlap-pp", overlap_pp, "1", "1: communication between stages overlaps compute"),
    NUMBER("imbalance", imbalance, KNEE_UNIT_FACTOR, 1, 1e4, "Plan", "1",
           "tokens of the busiest expert rank, relative to the mean"),
    SWITCH("drop-tokens", drop_tokens, "0", "1: experts drop tokens above their capacity"),
    SWITCH("dedup", dedup, "from the profile", "1: send a token once per rank or node"),
    NUMBER("dispatch-bytes", dispatch_bytes, KNEE_UNIT_BYTES, 0.5, 4, "Plan", "2",
           "bytes per value in MoE dispatch (fp8: 1)"),
    SWITCH("fp8-attention", fp8_attention, "0", "1: attention in fp8"),
    NUMBER("compress", compress, KNEE_UNIT_FACTOR, 1, 1e6, "Plan", "1",
           "bytes sent are divided by this factor"),
    NUMBER("local-steps", local_steps, KNEE_UNIT_COUNT, 1, 1e9, "Plan", "1",
           "steps between gradient exchanges"),
    NUMBER("loader-rate", loader_rate_per_s, KNEE_UNIT_PER_S, 1e-6, 1e15, "Plan", "no limit",
           "sequences per second that the data loader of one GPU delivers"),
    NUMBER("extra-jitter", jitter, KNEE_UNIT_FRACTION, 0, 10, "Plan", "0",
           "extra variation between ranks, as a share of the step"),
    NUMBER("recompute-share", recompute_share, KNEE_UNIT_FRACTION, 0, 1, "Plan", "1",
           "share of the layers that are recomputed"),
    NUMBER("cuda-graphs", graphs, KNEE_UNIT_FRACTION, 0, 1, "Plan", "from the profile",
           "share of kernels launched in CUDA graphs"),
    NUMBER("gradient-bytes", gradient_bytes, KNEE_UNIT_BYTES, 0.125, 8, "Plan", "from the profile",
           "bytes per gradient value, sent and stored"),
};

const struct knee_keys knee_plan_keys = KNEE_KEY_TABLE(rows, struct knee_plan);

void knee_plan_init(struct knee_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    knee_keys_clear(&knee_plan_keys, plan);
    plan->gpus = plan->dp = NAN;
}

enum knee_dtype knee_precision_dtype(int precision)
{
    return precision <= KNEE_FP16 ? KNEE_16BIT : precision == KNEE_FP4 ? KNEE_4BIT : KNEE_8BIT;
}

double knee_plan_reductions(const struct knee_plan *plan)
{
    return plan->shard == KNEE_ZERO2 && plan->pp <= 1 ? knee_plan_micro_batches(plan) : 1;
}

double knee_plan_short_last(const struct knee_plan *plan, double layers)
{
    double each = ceil(layers / plan->pp - 1e-9), last = layers - each * (plan->pp - 1);
    return plan->pp > 1 && plan->vp <= 1 && last < each ? fmax(0, last) : 0;
}

#define LONG_SEQUENCE 32768.0
#define MOST_GPUS     (2 * 10752.0) /* MLPerf v3.1, GPT-3 */

enum knee_basis knee_plan_basis(const struct knee_plan *plan, const struct knee_shape *shape,
                                enum knee_basis basis)
{
    bool unusual = plan->offload != KNEE_ON_GPU || knee_plan_gathers_once(plan) ||
                   (plan->cp > 1 && shape->seq > LONG_SEQUENCE) || plan->gpus > MOST_GPUS;
    bool other = plan->shard >= KNEE_ZERO2 || (plan->tp > 1 && plan->seq_par <= 0);
    if (basis == KNEE_BASIS_UNNAMED && other)
        return KNEE_BASIS_UNNAMED_OTHER;
    return unusual && basis == KNEE_BASIS_KNOWN ? KNEE_BASIS_ASSUMED : basis;
}

bool knee_plan_gathers_once(const struct knee_plan *plan)
{
    return plan->shard == KNEE_ZERO3 && plan->pp > 1;
}

struct knee_group knee_plan_pipeline(const struct knee_plan *plan)
{
    return (struct knee_group){plan->pp, plan->tp * plan->cp * plan->dp, false};
}

double knee_plan_micro_batches(const struct knee_plan *plan)
{
    return fmax(1, plan->global_batch / (plan->dp * plan->micro_batch));
}

/* As fmod() would say, in a fraction of its time: this is asked for every plan that is priced. */
static bool divides(double a, double b)
{
    double times = b / a;
    return times == floor(times);
}

/* Layers are spread evenly. When they do not divide but two more would, embedding and loss stand
 * in for a layer each, which is how uneven counts such as 126 on 8 x 8 pieces are run. Otherwise
 * pieces have at most ceil(layers / pieces) layers and the last stage takes what is left, as in
 * explicit layouts (Megatron's --pipeline-model-parallel-layout). */
struct knee_stages knee_plan_stages(double layers, double pp, double vp)
{
    if (pp <= 1)
        return (struct knee_stages){layers, layers, layers};
    double pieces = pp * vp;
    if (!divides(pieces, layers) && divides(pieces, layers + 2) && layers + 2 > pieces) {
        double most = (layers + 2) / pp;
        return (struct knee_stages){most - 1, most - 1, most};
    }
    double most = ceil(layers / pp - 1e-9);
    return (struct knee_stages){most, fmin(most, fmax(1, layers - most * (pp - 1))), most};
}

unsigned knee_plan_modules(const struct knee_plan *plan, const struct knee_shape *shape)
{
    if (plan->modules >= 0)
        return module_sets[plan->modules].bits;
    return KNEE_MODULE_NORM | KNEE_MODULE_ACTIVATION |
           (shape->kv_rank > 0 ? KNEE_MODULE_LATENT : 0U);
}

/* ---- Placement ---- */

size_t knee_plan_axes(const struct knee_plan *p, const struct knee_machine *machine,
                      struct knee_plan_axis out[KNEE_AXES_MAX])
{
    const struct knee_plan_axis all[KNEE_AXES_MAX] = {
        {"TP", p->tp, 1, 0},
        {"EP", p->ep, p->etp >= p->tp ? p->tp : 1, 0},
        {"CP", p->cp, p->tp, 0},
        {"shards", p->shard_size, p->tp, 0},
        {"DP", p->dp, p->tp * p->cp, 0},
        {"PP", p->pp, p->tp * p->cp * p->dp, 0},
    };
    size_t n = 0;
    for (size_t i = 0; i < KNEE_AXES_MAX; i++) {
        if (!(all[i].size > 1))
            continue;
        out[n] = all[i];
        out[n++].inside = fmax(1, fmin(all[i].size, floor(machine->node_size / all[i].stride)));
    }
    return n;
}

/* ---- What cannot be ---- */

struct question {
    const struct knee_plan *plan;
    const struct knee_shape *shape;
    const struct knee_machine *machine;
};

static bool wrong_count(const struct question *q)
{
    const struct knee_plan *p = q->plan;
    return p->tp * p->pp * p->cp * p->dp != p->gpus || p->dp != floor(p->dp);
}

static bool wrong_heads(const struct question *q)
{
    bool linear = q->shape->linear_layers > 0;
    return !divides(q->plan->tp, q->shape->heads) ||
           (linear && !divides(q->plan->tp, q->shape->linear_heads));
}

static bool many_stages(const struct question *q)
{
    return q->plan->pp * q->plan->vp > q->shape->layers + 2 || q->plan->pp > q->shape->layers;
}

static bool wrong_batch(const struct question *q)
{
    return !divides(q->plan->dp * q->plan->micro_batch, q->plan->global_batch);
}

static bool wrong_experts(const struct question *q)
{
    const struct knee_plan *p = q->plan;
    double room = p->dp * p->cp * p->tp / p->etp;
    return !divides(p->ep, q->shape->experts) || !divides(p->ep, room) || !divides(p->etp, p->tp);
}

static bool wrong_context(const struct question *q)
{
    return !divides(q->plan->cp, q->shape->seq);
}

static bool wrong_group(const struct question *q)
{
    return !divides(q->plan->shard_size, q->plan->dp * q->plan->cp);
}

static bool no_precision(const struct question *q)
{
    return isnan(q->machine->peak_flops[knee_precision_dtype(q->plan->precision)]);
}

static bool short_pipeline(const struct question *q)
{
    return q->plan->vp > 1 && knee_plan_micro_batches(q->plan) < q->plan->pp;
}

static const struct {
    bool (*broken)(const struct question *);
    const char *what;
} rules[] = {
    {wrong_count, "tp x pp x cp does not divide the GPUs"},
    {wrong_heads, "tp does not divide the heads"},
    {many_stages, "there are more pipeline stages (pp x vp) than layers"},
    {wrong_batch, "dp x micro-batch does not divide the global batch"},
    {wrong_experts, "ep does not divide the experts and the ranks they are spread over"},
    {wrong_context, "cp does not divide the sequence"},
    {wrong_group, "shard-size does not divide dp x cp"},
    {no_precision, "the GPU has no such precision"},
    {short_pipeline, "interleaving needs at least pp micro-batches"},
};

const char *knee_plan_objection(const struct knee_plan *plan, const struct knee_shape *shape,
                                const struct knee_machine *machine)
{
    struct question q = {plan, shape, machine};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].broken(&q))
            return rules[i].what;
    return NULL;
}

/* ---- Completing a single plan ---- */

static void fill(struct knee_plan *plan, double *field, double value)
{
    knee_keys_fill(&knee_plan_keys, plan, field, value, KNEE_DEFAULT);
}

static void choose(int *field, int value)
{
    if (*field < 0)
        *field = value;
}

/* As large as is usual: one sequence where a pipeline wants many micro-batches, else up to four. */
static double usual_micro_batch(const struct knee_plan *plan)
{
    double share = plan->global_batch / plan->dp, size = 1;
    while (plan->pp <= 1 && size < 4 && divides(2 * size, share))
        size *= 2;
    return size;
}

static void fill_degrees(struct knee_plan *p, const struct knee_shape *shape,
                         const struct knee_machine *machine)
{
    double *ones[] = {&p->tp, &p->pp, &p->vp, &p->cp, &p->ep};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        fill(p, ones[i], 1);
    fill(p, &p->etp, 1);
    if (isnan(p->dp))
        p->dp = p->gpus / (p->tp * p->pp * p->cp);
    fill(p, &p->global_batch, p->dp * fmax(1, ceil(knee_batch_usual_of(shape) / p->dp)));
    fill(p, &p->micro_batch, usual_micro_batch(p));
    choose(&p->shard, KNEE_REPLICATE);
    double group = p->dp * p->cp;
    if (p->shard == KNEE_ZERO3 && machine->rates.shard_group > 0)
        group = fmin(group, machine->rates.shard_group);
    fill(p, &p->shard_size, p->shard == KNEE_REPLICATE ? 1 : group);
}

knee_status knee_plan_complete(struct knee_plan *plan, const struct knee_shape *shape,
                               const struct knee_machine *machine, struct knee_err *err)
{
    struct knee_plan full = *plan;
    if (isnan(full.gpus))
        return knee_fail_hint(err, KNEE_USAGE, "", "add --gpus, for example 64",
                              "the number of GPUs is not known");
    knee_status status = knee_batch_settle(&knee_plan_keys, &full, shape->seq, err);
    if (status)
        return status;
    fill_degrees(&full, shape, machine);
    choose(&full.recompute, KNEE_KEEP);
    choose(&full.schedule, full.vp > 1 ? KNEE_INTERLEAVED : KNEE_1F1B);
    choose(&full.precision, machine->precision);
    choose(&full.offload, KNEE_ON_GPU);
    fill(&full, &full.seq_par, full.tp > 1);
    fill(&full, &full.prefetch, 1);
    fill(&full, &full.cp_gather, 0);
    fill(&full, &full.overlap_tp, 1);
    fill(&full, &full.overlap_dp, 1);
    fill(&full, &full.overlap_pp, 1);
    fill(&full, &full.overlap_ep, 0);
    fill(&full, &full.dispatch_bytes, 2);
    fill(&full, &full.fp8_attention, 0);
    fill(&full, &full.imbalance, 1);
    fill(&full, &full.drop_tokens, 0);
    fill(&full, &full.dedup, machine->rates.expert_dedup);
    fill(&full, &full.compress, 1);
    fill(&full, &full.local_steps, 1);
    fill(&full, &full.jitter, 0);
    fill(&full, &full.gradient_bytes, machine->rates.gradient_bytes);
    fill(&full, &full.recompute_share, 1);
    fill(&full, &full.graphs, 0);
    const char *objection = knee_plan_objection(&full, shape, machine);
    if (objection) {
        knee_fail(err, KNEE_USAGE, "", "%s", objection);
        double below = full.tp - 1, above = full.tp + 1;
        while (below > 1 && fmod(shape->heads, below) != 0)
            below--;
        while (above < shape->heads && fmod(shape->heads, above) != 0)
            above++;
        if (fmod(shape->heads, full.tp) != 0 && full.tp < shape->heads)
            knee_hint(err, "--tp %g and %g heads; try %g or %g", full.tp, shape->heads, below,
                      above);
        else
            knee_hint(err, "tp %g x pp %g x cp %g x dp %g = %g GPUs, batch %g, micro-batch %g",
                      full.tp, full.pp, full.cp, full.dp, full.gpus, full.global_batch,
                      full.micro_batch);
        return KNEE_USAGE;
    }
    *plan = full;
    return KNEE_OK;
}

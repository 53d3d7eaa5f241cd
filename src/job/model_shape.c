/* SPDX-License-Identifier: MIT */
/*
 * The shape of a transformer: its inputs, what follows from them, how many parameters it has and
 * how many FLOPs a token takes. A layer is attention and a feed-forward part; the latter is dense
 * or made of experts. Nothing here knows about GPUs.
 *
 * Attention is grouped (kv_heads <= heads), or latent (MLA): queries and keys/values go through
 * ranks q_rank and kv_rank, a head has head_dim = unrotated + rope_dim for the scores and value_dim
 * for the values.
 */
#include "base/error.h"
#include "base/fold.h"
#include "base/keys.h"
#include "job/models.h"
#include "job/shape.h"

#include <math.h>
#include <string.h>

#define NUMBER(name, field, low, high, absent, words)                                              \
    KNEE_NUMBER(struct knee_shape, name, field, KNEE_UNIT_COUNT, low, high, "Model", absent, words)

static const struct knee_key rows[] = {
    KNEE_CHOICE(struct knee_shape, "model", model, knee_model_names, "Model", "none",
                "llama3-8b or a Hugging Face id; see knee list models"),
    NUMBER("layers", layers, 1, 1e5, "hidden / 128", "transformer layers"),
    NUMBER("hidden", hidden, 1, 1e6, "from --model", "hidden size"),
    NUMBER("heads", heads, 1, 1e5, "hidden / 128", "attention (query) heads"),
    NUMBER("kv-heads", kv_heads, 1, 1e5, "same as --heads", "key/value heads (GQA)"),
    NUMBER("head-dim", head_dim, 1, 1e5, "hidden / heads", "size of one head"),
    NUMBER("ffn", ffn, 1, 1e7, "4 x hidden", "feed-forward (intermediate) size"),
    NUMBER("glu", glu, 0, 1, "1", "1: gated MLP with three matrices (SwiGLU), 0: two matrices"),
    NUMBER("vocab", vocab, 1, 1e8, "32000", "vocabulary size; 128k is 131072"),
    NUMBER("seq", seq, 1, 1e8, "4096, or from --model", "tokens per sequence; 8k is 8192"),
    NUMBER("experts", experts, 1, 1e5, "1", "experts per MoE layer; 1: dense model"),
    NUMBER("topk", topk, 1, 1e4, "2 with experts", "experts per token"),
    NUMBER("expert-ffn", expert_ffn, 1, 1e7, "same as --ffn", "feed-forward size of one expert"),
    NUMBER("shared-ffn", shared_ffn, 0, 1e7, "0", "total feed-forward size of the shared experts"),
    NUMBER("dense-layers", dense_layers, 0, 1e5, "0", "dense layers of an MoE model"),
    NUMBER("q-rank", q_rank, 0, 1e6, "0", "MLA: rank of the query projection; 0: full rank"),
    NUMBER("kv-rank", kv_rank, 0, 1e6, "0", "MLA: rank of the key/value projection; 0: no MLA"),
    NUMBER("rope-dim", rope_dim, 0, 1e5, "64 with MLA",
           "MLA: part of --head-dim with rotary embedding"),
    NUMBER("value-dim", value_dim, 1, 1e5, "same as --head-dim", "size of a value vector"),
    NUMBER("window", window, 1, 1e8, "none", "sliding attention window in tokens"),
    NUMBER("global-every", global_every, 0, 1e5, "0: every layer has the window",
           "every n-th layer attends to the whole sequence"),
    NUMBER("causal", causal, 0, 1, "1", "1: causal attention"),
    NUMBER("tied", tied, 0, 1, "0", "1: input and output embeddings share weights"),
    NUMBER("bias", bias, 0, 2, "0", "0: no biases, 1: on query, key and value, 2: everywhere"),
    NUMBER("qk-norm", qk_norm, 0, 1, "0", "1: queries and keys are normalised"),
    NUMBER("sinks", sinks, 0, 1, "0", "1: learned attention sink per head"),
    NUMBER("positions", positions, 0, 1e8, "0", "number of learned position embeddings"),
    NUMBER("extra-layers", extra_layers, 0, 1e3, "0", "multi-token-prediction layers"),
    NUMBER("linear-layers", linear_layers, 0, 1e5, "0",
           "layers with Mamba or linear attention instead of attention"),
    NUMBER("linear-heads", linear_heads, 1, 1e5, "2 x hidden / linear-dim",
           "heads of the linear layers"),
    NUMBER("linear-key-heads", linear_key_heads, 1, 1e5, "8", "key groups of the linear layers"),
    NUMBER("linear-dim", linear_dim, 1, 1e5, "64", "head size of the linear layers"),
    NUMBER("state", state, 1, 1e5, "128", "state size of the linear layers"),
    NUMBER("bare-layers", bare_layers, 0, 1e5, "0", "dense layers without a feed-forward block"),
    NUMBER("attention-gate", attention_gate, 0, 1, "0", "1: output gate on attention"),
    NUMBER("lora", lora_rank, 0, 1e5, "0: all weights are trained",
           "LoRA: rank of the adapters; the base model is frozen"),
    NUMBER("qlora", qlora_rank, 0, 1e5, "0: 16 bits",
           "QLoRA: rank of the adapters; the base model is frozen in 4 bits"),
    NUMBER("lora-attention", lora_attention, 0, 1, "0: on all linear layers",
           "LoRA: 1 for adapters on attention only"),
};

const struct knee_keys knee_shape_keys = KNEE_KEY_TABLE(rows, struct knee_shape);

void knee_shape_init(struct knee_shape *shape)
{
    memset(shape, 0, sizeof *shape);
    knee_keys_clear(&knee_shape_keys, shape);
}

/* ---- Presets ---- */

static bool same_letters(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a && strchr(" -_.", *a))
            a++;
        while (*b && strchr(" -_.", *b))
            b++;
        if (knee_lower(*a) != knee_lower(*b))
            return false;
        if (!*a)
            return true;
    }
}

const struct knee_model *knee_model_named(const char *name)
{
    for (size_t row = 0; row < knee_models_count; row++)
        if (same_letters(knee_models[row].name, name))
            return &knee_models[row];
    return NULL;
}

static void fill(struct knee_shape *shape, double *field, double value, enum knee_source source)
{
    knee_keys_fill(&knee_shape_keys, shape, field, value, source);
}

void knee_shape_fill(struct knee_shape *shape, const struct knee_model *preset)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == KNEE_KEY_NUMBER &&
            rows[i].offset <= offsetof(struct knee_shape, attention_gate))
            fill(shape, (double *)(void *)((char *)shape + rows[i].offset),
                 *(const double *)(const void *)((const char *)&preset->shape + rows[i].offset),
                 KNEE_PRESET);
}

/* ---- Completing ---- */

static void fill_linear(struct knee_shape *shape)
{
    double *none[] = {&shape->linear_layers, &shape->bare_layers, &shape->attention_gate,
                      &shape->qlora_rank, &shape->lora_attention};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        fill(shape, none[i], 0, KNEE_DEFAULT);
    fill(shape, &shape->lora_rank, shape->qlora_rank, KNEE_DERIVED);
    fill(shape, &shape->linear_dim, 64, KNEE_DEFAULT);
    fill(shape, &shape->linear_heads, fmax(1, rint(2 * shape->hidden / shape->linear_dim)),
         KNEE_DEFAULT);
    fill(shape, &shape->linear_key_heads, fmin(8, shape->linear_heads), KNEE_DEFAULT);
    fill(shape, &shape->state, 128, KNEE_DEFAULT);
}

static void fill_usual(struct knee_shape *shape)
{
    double h = shape->hidden;
    fill(shape, &shape->layers, fmax(1, rint(h / 128)), KNEE_DEFAULT);
    fill(shape, &shape->heads, fmax(1, rint(h / 128)), KNEE_DEFAULT);
    fill(shape, &shape->kv_heads, shape->heads, KNEE_DEFAULT);
    fill(shape, &shape->head_dim, fmax(1, rint(h / shape->heads)), KNEE_DEFAULT);
    fill(shape, &shape->ffn, 4 * h, KNEE_DEFAULT);
    fill(shape, &shape->glu, 1, KNEE_DEFAULT);
    fill(shape, &shape->vocab, 32000, KNEE_DEFAULT);
    fill(shape, &shape->seq, 4096, KNEE_DEFAULT);
    fill(shape, &shape->experts, 1, KNEE_DEFAULT);
    bool experts = shape->experts > 1;
    fill(shape, &shape->topk, experts ? fmin(2, shape->experts) : 1, KNEE_DEFAULT);
    fill(shape, &shape->expert_ffn, shape->ffn, KNEE_DEFAULT);
    fill(shape, &shape->shared_ffn, 0, KNEE_DEFAULT);
    fill(shape, &shape->dense_layers, experts ? 0 : shape->layers, KNEE_DEFAULT);
    fill(shape, &shape->q_rank, 0, KNEE_DEFAULT);
    fill(shape, &shape->kv_rank, 0, KNEE_DEFAULT);
    fill(shape, &shape->rope_dim, shape->kv_rank > 0 ? 64 : 0, KNEE_DEFAULT);
    fill(shape, &shape->value_dim, shape->head_dim, KNEE_DEFAULT);
    fill(shape, &shape->global_every, 0, KNEE_DEFAULT);
    fill(shape, &shape->causal, 1, KNEE_DEFAULT);
    double *none[] = {&shape->tied,  &shape->bias,      &shape->qk_norm,
                      &shape->sinks, &shape->positions, &shape->extra_layers};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        fill(shape, none[i], 0, KNEE_DEFAULT);
    if (!experts)
        shape->dense_layers = shape->layers;
    fill_linear(shape);
}

static bool no_width(const struct knee_shape *s)
{
    return isnan(s->hidden);
}

static bool uneven_groups(const struct knee_shape *s)
{
    return s->kv_heads > s->heads || fmod(s->heads, s->kv_heads) != 0;
}

static bool few_experts(const struct knee_shape *s)
{
    return s->topk > s->experts;
}

static bool many_dense(const struct knee_shape *s)
{
    return s->dense_layers > s->layers;
}

static bool wide_rope(const struct knee_shape *s)
{
    return s->kv_rank > 0 && s->rope_dim >= s->head_dim;
}

static bool many_linear(const struct knee_shape *s)
{
    return s->linear_layers > s->layers;
}

static bool many_bare(const struct knee_shape *s)
{
    return s->bare_layers > s->dense_layers;
}

static bool two_ranks(const struct knee_shape *s)
{
    return s->qlora_rank > 0 && s->lora_rank != s->qlora_rank;
}

static const struct {
    bool (*broken)(const struct knee_shape *);
    const char *what, *hint;
} rules[] = {
    {no_width, "the shape of the model is not known",
     "add --model (for example llama3-70b), --hidden, or a config.json with --hf"},
    {uneven_groups, "heads is not a multiple of kv-heads",
     "set --kv-heads to a divisor of --heads"},
    {few_experts, "topk is larger than the number of experts", "lower --topk"},
    {many_dense, "there are more dense-layers than layers", "lower --dense-layers"},
    {many_linear, "there are more linear-layers than layers", "lower --linear-layers"},
    {many_bare, "there are more bare-layers than dense-layers", "lower --bare-layers"},
    {two_ranks, "both lora and qlora are given", "keep one of them"},
    {wide_rope, "rope-dim leaves nothing of head-dim",
     "with latent attention head-dim is the sum of the rotated and the unrotated part"},
};

knee_status knee_shape_complete(struct knee_shape *shape, struct knee_err *err)
{
    struct knee_shape full = *shape;
    if (full.model >= 0 && !knee_model_has_shape(&knee_models[full.model]))
        return knee_fail_hint(err, KNEE_USAGE, "--model", "knee predict takes it",
                              "%s is not a transformer", knee_models[full.model].name);
    if (full.model >= 0)
        knee_shape_fill(&full, &knee_models[full.model]);
    if (!no_width(&full))
        fill_usual(&full);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].broken(&full))
            return knee_fail_hint(err, KNEE_USAGE, "", rules[i].hint, "%s", rules[i].what);
    *shape = full;
    return KNEE_OK;
}

void knee_shape_canonical(double params, struct knee_shape *out)
{
    double h = 128 * fmax(4, rint(32 * pow(params / 7e9, 0.31))), vocab = 32000;
    double inner = params - 2 * vocab * h; /* without embedding and head */
    knee_shape_init(out);
    out->hidden = h;
    out->vocab = vocab;
    out->layers = fmax(1, rint(inner / (12 * h * h)));
    out->ffn = fmax(128, rint((inner / out->layers - 4 * h * h) / (3 * h)));
}

/* ---- Parameters ---- */

double knee_shape_linear(const struct knee_shape *s)
{
    return s->linear_layers / s->layers;
}

double knee_shape_fed(const struct knee_shape *s)
{
    return s->dense_layers > 0 ? 1 - s->bare_layers / s->dense_layers : 1;
}

double knee_linear_in(const struct knee_shape *s, double tp)
{
    double keys = 2 * s->linear_key_heads * s->state;
    return (2 * s->linear_heads * s->linear_dim + s->linear_heads) / tp +
           keys / fmin(tp, s->linear_key_heads);
}

/* Input projection, a convolution over four tokens, parameters per head, norm, output. */
static double linear_params(const struct knee_shape *s)
{
    double inner = s->linear_heads * s->linear_dim;
    double convolved = inner + 2 * s->linear_key_heads * s->state;
    return s->hidden * knee_linear_in(s, 1) + 5 * convolved + 3 * s->linear_heads + inner +
           inner * s->hidden;
}

static double full_attention_params(const struct knee_shape *s)
{
    double q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, h = s->hidden;
    if (s->kv_rank > 0) {
        double unrotated = s->head_dim - s->rope_dim;
        double queries = s->q_rank > 0 ? h * s->q_rank + s->q_rank + s->q_rank * q : h * q;
        double keys = h * (s->kv_rank + s->rope_dim) + s->kv_rank +
                      s->kv_rank * s->heads * (unrotated + s->value_dim);
        return queries + keys + s->heads * s->value_dim * h;
    }
    double bias = s->bias >= 1 ? q + 2 * kv : 0;
    if (s->bias >= 2)
        bias += h;
    double gate = s->attention_gate > 0 ? h * q : 0;
    return h * (q + 2 * kv) + q * h + gate + bias + (s->qk_norm > 0 ? 2 * s->head_dim : 0) +
           (s->sinks > 0 ? s->heads : 0);
}

static double attention_params(const struct knee_shape *s)
{
    double linear = knee_shape_linear(s), full = full_attention_params(s);
    return linear > 0 ? full + linear * (linear_params(s) - full) : full;
}

/* Lengths of what goes into and comes out of the linear maps of a layer's attention, each map by
 * itself as Hugging Face's PEFT has them: an adapter of rank r has r of each. */
static double attention_sides(const struct knee_shape *s)
{
    double q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, h = s->hidden;
    double out = s->heads * s->value_dim + h, inner = s->linear_heads * s->linear_dim;
    double full = 3 * h + (s->attention_gate > 0 ? 2 : 1) * q + 2 * kv + out;
    if (s->kv_rank > 0) {
        double queries = s->q_rank > 0 ? h + s->q_rank + s->q_rank + q : h + q;
        double up = s->heads * (s->head_dim - s->rope_dim + s->value_dim);
        full = queries + h + s->kv_rank + s->rope_dim + s->kv_rank + up + out;
    }
    double linear = 2 * h + knee_linear_in(s, 1) + inner;
    return full + knee_shape_linear(s) * (linear - full);
}

static double ffn_sides(const struct knee_shape *s, double width)
{
    return width > 0 ? ((s->glu > 0 ? 2 : 1) + 1) * (s->hidden + width) : 0;
}

/* A feed-forward part of this width. */
static double ffn_params(const struct knee_shape *s, double width)
{
    double in = s->glu > 0 ? 2 : 1;
    return (in + 1) * s->hidden * width + (s->bias >= 2 ? in * width + s->hidden : 0);
}

void knee_shape_params(const struct knee_shape *s, struct knee_params *out)
{
    bool experts = s->experts > 1;
    double moe_layers = experts ? s->layers - s->dense_layers + s->extra_layers : 0;
    double layers = s->layers + s->extra_layers;
    struct knee_params p = {
        .attention = attention_params(s),
        .dense_ffn = knee_shape_fed(s) * ffn_params(s, s->ffn),
        .router = experts ? s->hidden * s->experts : 0,
        .expert = experts ? ffn_params(s, s->expert_ffn) : 0,
        .shared = s->shared_ffn > 0 ? ffn_params(s, s->shared_ffn) : 0,
        .norms = (s->bias >= 2 ? 4 : 2) * s->hidden,
        .embedding = s->vocab * s->hidden,
        .head = s->tied > 0 ? 0 : s->vocab * s->hidden,
        .positions = s->positions * s->hidden,
    };
    double rest = layers * (p.attention + p.norms) + (layers - moe_layers) * p.dense_ffn +
                  moe_layers * (p.router + p.shared) + p.embedding + p.head + p.positions +
                  (s->bias >= 2 ? 2 : 1) * s->hidden + s->extra_layers * 2 * s->hidden * s->hidden;
    p.total = rest + moe_layers * s->experts * p.expert;
    p.active = rest + moe_layers * s->topk * p.expert;
    double fed = s->lora_attention > 0 ? 0 : 1;
    p.adapter[0] =
        s->lora_rank * (attention_sides(s) + fed * knee_shape_fed(s) * ffn_sides(s, s->ffn));
    p.adapter[1] = s->lora_rank * (attention_sides(s) + fed * ffn_sides(s, s->shared_ffn));
    p.trained = s->lora_rank > 0 ? (layers - moe_layers) * p.adapter[0] + moe_layers * p.adapter[1]
                                 : p.total;
    *out = p;
}

double knee_shape_weight_bytes(const struct knee_shape *s)
{
    return s->qlora_rank > 0 ? (4 + 0.127) / 8 : 2;
}

/* ---- FLOPs ---- */

/* Pairs of positions that a token of a layer with this window meets on average, of `seq`. */
static double pairs(double seq, double window, bool causal)
{
    double all = causal ? (seq + 1) / 2 : seq;
    if (isnan(window) || window >= seq)
        return all;
    return fmin(all, causal ? window - window * (window - 1) / (2 * seq) : 2 * window);
}

double knee_shape_pairs(const struct knee_shape *s, bool causal)
{
    double windowed = pairs(s->seq, s->window, causal), all = pairs(s->seq, NAN, causal);
    double global = s->global_every > 0 ? 1 / s->global_every : isnan(s->window) ? 1 : 0;
    return global * all + (1 - global) * windowed;
}

#define CHUNK 128.0 /* tokens that state-space kernels work through as one product */

double knee_linear_scan_flops(const struct knee_shape *s)
{
    double inside = s->linear_heads * 2 * CHUNK * s->linear_dim;
    double keys = s->linear_key_heads * 2 * CHUNK * s->state;
    double states = s->linear_heads * 4 * s->state * s->linear_dim;
    return inside + keys + states;
}

void knee_shape_flops(const struct knee_shape *s, struct knee_flops *out)
{
    struct knee_params p;
    knee_shape_params(s, &p);
    double layers = s->layers + s->extra_layers;
    double looked_up = p.embedding + p.positions - (s->tied > 0 ? p.embedding : 0);
    double logits_again = s->extra_layers * s->vocab * s->hidden;
    double attended = layers * (1 - knee_shape_linear(s));
    double scores = 6 * attended * s->heads * (s->head_dim + s->value_dim);
    double scans = 3 * (layers - attended) * knee_linear_scan_flops(s);
    double weights = p.active - looked_up + logits_again;
    *out = (struct knee_flops){
        /* frozen weights need no weight gradients: 4 of the 6 */
        .matmul = (s->lora_rank > 0 ? 4 * weights + 6 * p.trained : 6 * weights) + scans,
        .attention_full = scores * s->seq,
        .attention_causal = scores * knee_shape_pairs(s, s->causal > 0),
    };
}

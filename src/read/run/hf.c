/* SPDX-License-Identifier: MIT */
/*
 * The shape of a model from a Hugging Face config.json. Families name the same things differently:
 * data/import_names.csv maps names to fields, data/model_families.csv has what a family has but its
 * file does not name. Keys of a nested text_config count like keys at the top.
 *
 * Hybrid models list the layers with state space or linear attention in three ways: a list of
 * kinds, an interval, or a string with a letter per part (M*-E). In the string, attention, state
 * space and feed-forward parts are separate layers; here an attention or state space part and the
 * feed-forward part after it form one layer.
 */
#include "base/error.h"
#include "base/format.h"
#include "read/run/import.h"

#include <math.h>
#include <string.h>

#define LONGEST_SEQ 8192 /* models can do more than they are trained with */

/* The key without the object of the language model around it. */
static const char *own_key(const char *path)
{
    static const char *const around[] = {"text_config.", "llm_config.", "language_config."};
    for (size_t i = 0; i < sizeof around / sizeof *around; i++)
        if (strncmp(path, around[i], strlen(around[i])) == 0)
            return path + strlen(around[i]);
    return path;
}

static void take(struct knee_import *raw, const struct knee_json_values *v)
{
    const char *key = own_key(v->path);
    if (strcmp(key, "model_type") == 0 && v->kind == KNEE_JSON_STRING)
        knee_format(raw->type, sizeof raw->type, "%.60s", v->text);
    else if (strcmp(key, "layer_types[]") == 0 && strstr(v->text, "sliding"))
        raw->sliding_layers++;
    else if (strcmp(key, "layer_types[]") == 0 && strstr(v->text, "full"))
        raw->full_layers++;
    else if (strcmp(key, "hybrid_override_pattern") == 0 && v->kind == KNEE_JSON_STRING)
        knee_format(raw->pattern, sizeof raw->pattern, "%s", v->text);
    else if (strcmp(key, "attn_layer_indices[]") == 0)
        raw->attention_listed++;
    else if (strcmp(key, "mlp_only_layers[]") == 0)
        raw->mlp_only++;
    if (strcmp(key, "layer_types[]") == 0) {
        bool linear = strstr(v->text, "linear") || strstr(v->text, "mamba");
        raw->linear_listed += linear;
        raw->other_listed += !linear;
    }
    if (v->kind == KNEE_JSON_STRING || v->kind == KNEE_JSON_NULL)
        return;
    knee_import_number(raw, KNEE_FROM_HF, key, v->number);
}

static knee_status read_raw(const char *json, size_t length, const char *name,
                            struct knee_import *raw, struct knee_err *err)
{
    struct knee_json_values v;
    knee_import_init(raw, KNEE_FROM_HF);
    knee_json_values_init(&v, json, length);
    while (knee_json_values_next(&v))
        take(raw, &v);
    if (!v.error)
        return KNEE_OK;
    char where[128];
    knee_format(where, sizeof where, "%.100s:%zu", name, knee_json_values_line(&v));
    return knee_fail(err, KNEE_INPUT, where, "not JSON: %s", v.error);
}

/* Sets a field from the file, unless a flag did or the file does not say. */
static void set(struct knee_shape *shape, double *field, double value)
{
    size_t offset = (size_t)((char *)field - (char *)shape);
    for (size_t row = 0; row < knee_shape_keys.count; row++) {
        const struct knee_key *key = &knee_shape_keys.rows[row];
        if (key->offset != offset || key->kind != KNEE_KEY_NUMBER || isnan(value) ||
            shape->source[row] == KNEE_FLAG)
            continue;
        *field = value;
        shape->source[row] = KNEE_FILE;
    }
}

static void set_family(struct knee_shape *shape, const struct knee_import *raw)
{
    for (size_t i = 0; i < knee_model_families_count; i++) {
        const struct knee_model_family *family = &knee_model_families[i];
        if (strncmp(raw->type, family->type, strlen(family->type)) != 0)
            continue;
        set(shape, &shape->glu, family->glu);
        set(shape, &shape->tied, family->tied);
        set(shape, &shape->bias, family->bias);
        set(shape, &shape->qk_norm, family->qk_norm);
        set(shape, &shape->sinks, family->sinks);
        set(shape, &shape->positions, family->learned > 0 ? raw->positions : NAN);
        if (!isnan(raw->window))
            set(shape, &shape->global_every, family->global_every);
        return;
    }
    set(shape, &shape->glu, 1);
}

/* ---- Layers of several kinds ---- */

/* How often a letter stands in the pattern. */
static double letters(const struct knee_import *raw, char letter)
{
    double count = 0;
    for (const char *at = raw->pattern; *at; at++)
        count += *at == letter;
    return count;
}

/* The pattern as layers of one mixer each. NULL, or why it cannot be. */
static const char *set_pattern(struct knee_shape *shape, const struct knee_import *raw)
{
    double state = letters(raw, 'M'), attention = letters(raw, '*');
    double dense = letters(raw, '-'), experts = letters(raw, 'E');
    double layers = state + attention, all = layers + dense + experts;
    if (all != (double)strlen(raw->pattern) || all != raw->layers)
        return "hybrid_override_pattern is not one of M, *, - and E for each layer";
    if (dense + experts > layers || attention <= 0)
        return "more feed-forward parts than others, or no attention: such a hybrid is not "
               "modelled";
    set(shape, &shape->layers, layers);
    set(shape, &shape->linear_layers, state);
    set(shape, &shape->bare_layers, layers - dense - experts);
    set(shape, &shape->dense_layers, layers - experts);
    return NULL;
}

/* Layers with state space or linear attention; NaN: the file does not say which. */
static double linear_layers(const struct knee_import *raw)
{
    if (raw->linear_listed > 0)
        return raw->linear_listed * raw->layers / (raw->linear_listed + raw->other_listed);
    if (raw->attention_listed > 0)
        return raw->layers - raw->attention_listed;
    return raw->layers - floor(raw->layers / raw->attention_every);
}

static const char *set_hybrid(struct knee_shape *shape, const struct knee_import *raw)
{
    bool any = raw->linear_heads > 0 || raw->expand > 0 || raw->linear_listed > 0;
    if (raw->latent > 0)
        return "experts of a latent width are not modelled";
    if (!any && !raw->pattern[0])
        return NULL;
    double heads = raw->linear_heads;
    if (isnan(heads)) /* Mamba 1 has a head per value: counted as heads of 64 */
        heads = rint(raw->expand * raw->hidden / 64);
    set(shape, &shape->linear_heads, heads);
    set(shape, &shape->linear_dim, raw->linear_dim);
    set(shape, &shape->linear_key_heads, isnan(raw->linear_heads) ? 1 : raw->linear_key_heads);
    set(shape, &shape->state, raw->state);
    if (raw->pattern[0])
        return set_pattern(shape, raw);
    if (isnan(linear_layers(raw)))
        return "there is state space in it, but not said in which layers: not modelled";
    set(shape, &shape->linear_layers, linear_layers(raw));
    return NULL;
}

static void set_experts(struct knee_shape *shape, const struct knee_import *raw)
{
    if (!(raw->experts > 1))
        return;
    double width = isnan(raw->expert_ffn) ? raw->ffn : raw->expert_ffn;
    if (!isnan(raw->dense_ffn)) { /* Llama 4: one expert that all visit, as wide as the others */
        set(shape, &shape->ffn, raw->dense_ffn);
        set(shape, &shape->shared_ffn, width);
    }
    double dense = isnan(raw->first_dense) ? raw->mlp_only : raw->first_dense;
    if (raw->sparse_step > 1)
        dense = raw->layers - floor(raw->layers / raw->sparse_step);
    set(shape, &shape->experts, raw->experts);
    set(shape, &shape->topk, raw->topk);
    set(shape, &shape->expert_ffn, width);
    set(shape, &shape->shared_ffn, isnan(raw->shared_ffn) ? raw->shared * width : raw->shared_ffn);
    if (!raw->pattern[0])
        set(shape, &shape->dense_layers, dense);
}

static void set_attention(struct knee_shape *shape, const struct knee_import *raw)
{
    if (raw->kv_rank > 0) {
        set(shape, &shape->q_rank, isnan(raw->q_rank) ? 0 : raw->q_rank);
        set(shape, &shape->kv_rank, raw->kv_rank);
        set(shape, &shape->rope_dim, raw->rope);
        set(shape, &shape->value_dim, raw->value);
        set(shape, &shape->head_dim, raw->unrotated + raw->rope);
    } else {
        set(shape, &shape->head_dim, raw->head_dim);
    }
    if (strncmp(raw->type, "qwen3_next", 10) == 0 || strncmp(raw->type, "qwen3_5", 7) == 0)
        set(shape, &shape->attention_gate, 1);
    bool windowed = raw->window > 0 && raw->use_window != 0;
    if (!windowed)
        return;
    set(shape, &shape->window, raw->window);
    set(shape, &shape->global_every, raw->window_pattern);
    if (raw->full_layers > 0)
        set(shape, &shape->global_every,
            (raw->full_layers + raw->sliding_layers) / raw->full_layers);
}

knee_status knee_hf_read(const char *json, size_t length, const char *name,
                         struct knee_shape *shape, struct knee_err *err)
{
    struct knee_import raw;
    struct knee_shape full = *shape;
    knee_status status = read_raw(json, length, name, &raw, err);
    if (status)
        return status;
    if (!(raw.hidden > 0) || !(raw.layers > 0) || !(raw.heads > 0)) {
        knee_fail(err, KNEE_INPUT, name,
                  "no transformer: hidden_size, layers or heads are missing");
        knee_hint(err, "give the config.json of a language model, or the shape as flags");
        return KNEE_INPUT;
    }
    set(&full, &full.hidden, raw.hidden);
    set(&full, &full.layers, raw.layers);
    set(&full, &full.heads, raw.heads);
    set(&full, &full.kv_heads, isnan(raw.kv_heads) ? raw.heads : raw.kv_heads);
    set(&full, &full.ffn, isnan(raw.ffn) ? 4 * raw.hidden : raw.ffn);
    set(&full, &full.vocab, raw.vocab);
    set(&full, &full.seq, fmin(raw.positions, LONGEST_SEQ));
    set(&full, &full.bias, raw.attention_bias > 0 ? 1 : 0);
    set(&full, &full.extra_layers, raw.extra_layers);
    set_family(&full, &raw);
    set(&full, &full.tied, raw.tied);
    set_experts(&full, &raw);
    set_attention(&full, &raw);
    const char *unlike = set_hybrid(&full, &raw);
    if (unlike)
        return knee_fail(err, KNEE_INPUT, name, "%s", unlike);
    struct knee_shape tried = full;
    struct knee_err inner;
    const struct knee_key *wrong = knee_keys_out_of_range(&knee_shape_keys, &full);
    if (wrong)
        return knee_fail(err, KNEE_INPUT, name, "%s is out of range", wrong->name);
    if (knee_shape_complete(&tried, &inner)) {
        knee_fail(err, KNEE_INPUT, name, "%.200s", inner.what);
        return KNEE_INPUT;
    }
    *shape = full;
    return KNEE_OK;
}

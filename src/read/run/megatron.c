/* SPDX-License-Identifier: MIT */
/*
 * Shape and plan from Megatron's arguments, in whichever form they are at hand: the block that a
 * log begins with ("  hidden_size ............ 8192"), or the options of a launch script
 * ("--hidden-size 8192"). A log also has the time per iteration; its median is returned.
 */
#include "base/decimal.h"
#include "base/error.h"
#include "base/format.h"
#include "base/order.h"
#include "base/slice.h"
#include "read/run/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIMES_MAX 1024

/* A log's times per iteration: of every so many one is kept. */
struct times {
    double ms[TIMES_MAX];
    size_t count, seen, every; /* 0: 1 */
};

/* Options have - where the block has _. */
static void take(struct knee_import *raw, const char *key, const char *value)
{
    char name[KNEE_IMPORT_WORD];
    knee_format(name, sizeof name, "%s", key);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : *c;
    knee_import_text(raw, KNEE_FROM_MEGATRON, name, value);
}

/* ---- A line of the log's block: name, dots, value ---- */

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Copies what `keep` accepts (or all but spaces); returns where it stopped. */
static const char *copy_word(const char *at, const char *end, char *out, size_t size, bool name)
{
    size_t used = 0;
    while (at < end && (name ? in_name(*at) : *at != ' ' && *at != '\t' && *at != '\r')) {
        if (used + 1 < size)
            out[used++] = *at;
        at++;
    }
    out[used] = '\0';
    return at;
}

static void read_block_line(struct knee_import *raw, const char *line, const char *end)
{
    char key[KNEE_IMPORT_WORD], value[KNEE_IMPORT_WORD];
    const char *dots = line;
    while (dots + 3 <= end && memcmp(dots, "...", 3) != 0)
        dots++;
    if (dots + 3 > end)
        return;
    const char *stop = dots;
    while (stop > line && stop[-1] == ' ')
        stop--;
    const char *start = stop;
    while (start > line && in_name(start[-1]))
        start--;
    while (dots < end && *dots == '.')
        dots++;
    while (dots < end && *dots == ' ')
        dots++;
    copy_word(start, stop, key, sizeof key, true);
    copy_word(dots, end, value, sizeof value, false);
    if (*key && *value)
        take(raw, key, value);
}

/* Samples the whole of a long log: when the list is full, every second time is dropped, and from
 * then on every second of the new ones too. */
static void keep_time(struct times *times, double ms)
{
    if (times->count == TIMES_MAX) {
        for (times->count = 0; times->count < TIMES_MAX / 2; times->count++)
            times->ms[times->count] = times->ms[2 * times->count];
        times->every *= 2;
    }
    times->every = times->every ? times->every : 1;
    if (times->seen++ % times->every == 0)
        times->ms[times->count++] = ms;
}

static void read_time(struct times *times, const char *line, const char *end)
{
    static const char marker[] = "elapsed time per iteration (ms):";
    size_t length = sizeof marker - 1;
    for (const char *at = line; at + length < end; at++) {
        char value[KNEE_IMPORT_WORD];
        if (*at != 'e' || memcmp(at, marker, length) != 0)
            continue;
        at += length;
        while (at < end && *at == ' ')
            at++;
        copy_word(at, end, value, sizeof value, false);
        double ms = knee_decimal_parse(value, NULL);
        if (ms > 0 && ms < 1e12)
            keep_time(times, ms);
        return;
    }
}

/* ---- Into shape and plan ---- */

static void set_shape(struct knee_shape *shape, const struct knee_import *raw)
{
    const struct knee_keys *k = &knee_shape_keys;
    bool grouped = raw->grouped != 0 && raw->groups > 0;
    bool experts = raw->experts > 1;
    knee_import_set(k, shape, "layers", raw->layers);
    knee_import_set(k, shape, "hidden", raw->hidden);
    knee_import_set(k, shape, "heads", raw->heads);
    knee_import_set(k, shape, "kv-heads", grouped ? raw->groups : raw->heads);
    knee_import_set(k, shape, "ffn", isnan(raw->ffn) ? 4 * raw->hidden : raw->ffn);
    knee_import_set(k, shape, "glu", raw->swiglu > 0);
    knee_import_set(k, shape, "seq", raw->seq);
    knee_import_set(k, shape, "vocab", raw->vocab);
    knee_import_set(k, shape, "tied", isnan(raw->tied) ? !(raw->untied > 0) : raw->tied);
    knee_import_set(k, shape, "bias", raw->no_bias > 0 || raw->bias == 0 ? 0 : 2);
    if (strcmp(raw->position_type, "learned_absolute") == 0)
        knee_import_set(k, shape, "positions", raw->positions);
    knee_import_set(k, shape, "experts", experts ? raw->experts : 1);
    knee_import_set(k, shape, "topk", experts ? raw->topk : NAN);
    knee_import_set(k, shape, "expert-ffn", experts ? raw->expert_ffn : NAN);
    knee_import_set(k, shape, "shared-ffn", experts ? raw->shared_ffn : NAN);
    knee_import_set(k, shape, "extra-layers", raw->extra_layers);
    if (raw->mla > 0) {
        knee_import_set(k, shape, "q-rank", raw->q_rank);
        knee_import_set(k, shape, "kv-rank", raw->kv_rank);
        knee_import_set(k, shape, "rope-dim", raw->rope);
        knee_import_set(k, shape, "value-dim", raw->value);
        knee_import_set(k, shape, "head-dim", raw->unrotated + raw->rope);
    } else {
        knee_import_set(k, shape, "head-dim", raw->head_dim);
    }
}

/* "bf16_with_fp8_delayed_scaling_mixed", "fp16_mixed", "bf16-mixed" ... */
static double mixed_precision(const char *word)
{
    if (strstr(word, "fp8"))
        return strstr(word, "mx") || strstr(word, "subchannel") ? KNEE_FP8_BLOCK : KNEE_FP8;
    return strstr(word, "bf16") ? KNEE_BF16 : strstr(word, "16") ? KNEE_FP16 : NAN;
}

static double precision_of(const struct knee_import *raw)
{
    if (raw->mixed[0])
        return mixed_precision(raw->mixed);
    if (!raw->fp8[0])
        return raw->bf16 > 0 ? KNEE_BF16 : raw->fp16 > 0 ? KNEE_FP16 : NAN;
    return strstr(raw->fp8_recipe, "mx") || strstr(raw->fp8_recipe, "block") ? KNEE_FP8_BLOCK
                                                                             : KNEE_FP8;
}

static double shard_of(const struct knee_import *raw)
{
    static const struct {
        const char *strategy;
        int shard;
    } strategies[] = {{"no_shard", KNEE_REPLICATE},
                      {"optim", KNEE_ZERO1},
                      {"optim_grads", KNEE_ZERO2},
                      {"optim_grads_params", KNEE_ZERO3}};
    for (size_t i = 0; raw->fsdp > 0 && i < sizeof strategies / sizeof *strategies; i++)
        if (strcmp(raw->sharding, strategies[i].strategy) == 0)
            return strategies[i].shard;
    return raw->fsdp > 0 ? KNEE_ZERO3 : raw->distributed > 0 ? KNEE_ZERO1 : KNEE_REPLICATE;
}

/* The method "block" recomputes so many layers of a stage, or of each of its pieces; "uniform" all,
 * so many at a time. NaN: all. */
static double recomputed_share(const struct knee_import *raw, double vp)
{
    double pieces = (raw->pp > 1 ? raw->pp : 1) * (vp > 1 ? vp : 1);
    if (strcmp(raw->method, "block") != 0 || !(raw->recomputed >= 0))
        return NAN;
    return fmin(1, raw->recomputed * pieces / raw->layers);
}

static void set_plan(struct knee_plan *plan, const struct knee_import *raw)
{
    const struct knee_keys *k = &knee_plan_keys;
    double vp = raw->vp;
    if (isnan(vp) && raw->vp_layers > 0)
        vp = raw->layers / (raw->pp * raw->vp_layers);
    double world = isnan(raw->world) ? raw->nodes * raw->per_node : raw->world;
    if (isnan(plan->gpus) && world >= 1)
        plan->gpus = world;
    knee_import_set(k, plan, "global-batch", raw->batch);
    knee_import_set(k, plan, "micro-batch", raw->micro);
    knee_import_set(k, plan, "tp", raw->tp);
    knee_import_set(k, plan, "pp", raw->pp);
    knee_import_set(k, plan, "vp", isnan(vp) ? 1 : vp);
    knee_import_set(k, plan, "cp", raw->cp);
    knee_import_set(k, plan, "ep", raw->ep);
    knee_import_set(k, plan, "etp", raw->etp);
    knee_import_set(k, plan, "shard", shard_of(raw));
    knee_import_set(k, plan, "shard-size",
                    raw->copies > 1 ? world / (raw->tp * raw->pp * raw->copies) : NAN);
    knee_import_set(k, plan, "offload", raw->offload > 0 ? KNEE_OFFLOAD_OPTIMIZER : NAN);
    knee_import_set(k, plan, "sequence-parallel", raw->seq_par > 0);
    knee_import_set(k, plan, "overlap-dp", raw->overlap_dp > 0);
    knee_import_set(k, plan, "overlap-tp", raw->overlap_tp > 0);
    knee_import_set(k, plan, "recompute",
                    strcmp(raw->recompute, "full") == 0        ? KNEE_FULL
                    : strcmp(raw->recompute, "selective") == 0 ? KNEE_SELECTIVE
                                                               : KNEE_KEEP);
    knee_import_set(k, plan, "recompute-share", recomputed_share(raw, vp));
    knee_import_set(k, plan, "cuda-graphs", raw->graphs > 0 ? 1 : NAN);
    knee_import_set(k, plan, "precision", precision_of(raw));
    knee_import_set(k, plan, "gradient-bytes",
                    raw->bf16_reduce > 0 || raw->fp32_reduce == 0 ? 2 : NAN);
}

/* KNEE_INPUT: hidden size or layers are missing, and nothing was set. */
static knee_status finish(const struct knee_import *raw, struct knee_shape *shape,
                          struct knee_plan *plan)
{
    if (!(raw->hidden > 0) || !(raw->layers > 0))
        return KNEE_INPUT;
    struct knee_shape s = *shape;
    struct knee_plan p = *plan;
    set_shape(&s, raw);
    set_plan(&p, raw);
    *shape = s;
    *plan = p;
    return KNEE_OK;
}

knee_status knee_megatron_read(struct knee_named_text from, struct knee_shape *shape,
                               struct knee_plan *plan, double *step_s, struct knee_err *err)
{
    struct knee_import raw;
    struct times times = {.count = 0};
    knee_import_init(&raw, KNEE_FROM_MEGATRON);
    const char *end = from.text + from.length;
    for (struct knee_slice rest = {from.text, from.length}, line; knee_slice_line(&rest, &line);) {
        read_block_line(&raw, line.at, line.at + line.length);
        read_time(&times, line.at, line.at + line.length);
    }
    if (!(raw.hidden > 0))
        knee_import_options(&raw, from.text, end, take, false);
    knee_status status = finish(&raw, shape, plan);
    if (status) {
        knee_fail(err, status, from.name,
                  "no Megatron arguments: hidden size or layers are missing");
        knee_hint(err, "give a log with its block of arguments, or a script with --hidden-size");
    }
    if (!status && step_s)
        *step_s = knee_median(times.ms, times.count) / 1e3;
    return status;
}

/* ---- NeMo: the same names as settings ("  hidden_size: 4096", model.hidden_size=4096) ---- */

static void read_setting(struct knee_import *raw, const char *at, const char *end)
{
    char key[KNEE_IMPORT_WORD], value[KNEE_IMPORT_WORD];
    while (at < end && (*at == ' ' || *at == '\t' || *at == '"'))
        at++;
    for (const char *dot; (dot = memchr(at, '.', (size_t)(end - at))) != NULL && dot < end;) {
        const char *sign = memchr(at, '=', (size_t)(end - at));
        if (!sign || dot > sign)
            break;
        at = dot + 1; /* the groups before the name */
    }
    at = copy_word(at, end, key, sizeof key, true);
    if (at == end || (*at != ':' && *at != '='))
        return;
    at++;
    while (at < end && (*at == ' ' || *at == '"'))
        at++;
    copy_word(at, end, value, sizeof value, false);
    if (*key && *value)
        take(raw, key, value);
}

static bool is_override(const char *at, const char *stop)
{
    return memchr(at, '=', (size_t)(stop - at)) && memchr(at, '.', (size_t)(stop - at));
}

knee_status knee_nemo_read(const char *text, size_t length, const char *name,
                           struct knee_shape *shape, struct knee_plan *plan, struct knee_err *err)
{
    struct knee_import raw;
    knee_import_init(&raw, KNEE_FROM_MEGATRON);
    const char *end = text + length;
    for (struct knee_slice rest = {text, length}, line; knee_slice_line(&rest, &line);)
        read_setting(&raw, line.at, line.at + line.length);
    const char *stop = text;
    for (const char *at; (at = knee_shell_word(stop, end, &stop)) < end;)
        if (is_override(at, stop))
            read_setting(&raw, at, stop);
    knee_import_options(&raw, text, end, take, false); /* torchrun's counts */
    knee_status status = finish(&raw, shape, plan);
    if (status) {
        knee_fail(err, status, name, "no NeMo configuration: hidden size or layers are missing");
        knee_hint(err, "give Megatron-Bridge's YAML with model.hidden_size, or its overrides");
    }
    return status;
}

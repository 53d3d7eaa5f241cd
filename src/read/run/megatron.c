/* SPDX-License-Identifier: MIT */
/*
 * Shape and plan from Megatron's arguments, in whichever form they are at hand: the block that a
 * log begins with ("  hidden_size ............ 8192"), or the options of a launch script
 * ("--hidden-size 8192"). A log also has the time per iteration; its median is returned.
 */
#include "base/decimal.h"
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/order.h"
#include "base/slice.h"
#include "job/raw.h"
#include "knee_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX   64
#define VALUE_MAX 64
#define TIMES_MAX 1024

struct raw {
    double layers, hidden, ffn, heads, groups, head_dim, seq, vocab, positions;
    double experts, topk, expert_ffn, shared_ffn, q_rank, kv_rank, unrotated, rope, value, extra;
    double micro, batch, world, nodes, per_node, tp, pp, vp, vp_layers, cp, ep, etp;
    double grouped, swiglu, untied, seq_par, distributed, fsdp, overlap_dp, overlap_tp;
    double bf16, fp16, mla, bf16_reduce, no_bias, offload, copies, recomputed, graphs;
    double tied, bias, fp32_reduce; /* NeMo says these the other way round */
    char recompute[VALUE_MAX], method[VALUE_MAX], sharding[VALUE_MAX], fp8[VALUE_MAX],
        fp8_recipe[VALUE_MAX], position_type[VALUE_MAX], mixed[VALUE_MAX];
    double times_ms[TIMES_MAX];
    size_t times, times_seen, times_every; /* of every so many one is kept; 0: 1 */
};

static const struct knee_raw_name numbers[] = {
    KNEE_RAW("num_layers", layers),
    KNEE_RAW("hidden_size", hidden),
    KNEE_RAW("ffn_hidden_size", ffn),
    KNEE_RAW("num_attention_heads", heads),
    KNEE_RAW("num_query_groups", groups),
    KNEE_RAW("group_query_attention", grouped),
    KNEE_RAW("kv_channels", head_dim),
    KNEE_RAW("seq_length", seq),
    KNEE_RAW("vocab_size", vocab),
    KNEE_RAW("padded_vocab_size", vocab),
    KNEE_RAW("max_position_embeddings", positions),
    KNEE_RAW("swiglu", swiglu),
    KNEE_RAW("untie_embeddings_and_output_weights", untied),
    KNEE_RAW("disable_bias_linear", no_bias),
    KNEE_RAW("micro_batch_size", micro),
    KNEE_RAW("global_batch_size", batch),
    KNEE_RAW("world_size", world),
    KNEE_RAW("nnodes", nodes), /* torchrun's own */
    KNEE_RAW("nproc_per_node", per_node),
    KNEE_RAW("tensor_model_parallel_size", tp),
    KNEE_RAW("pipeline_model_parallel_size", pp),
    KNEE_RAW("virtual_pipeline_model_parallel_size", vp),
    KNEE_RAW("num_virtual_stages_per_pipeline_rank", vp),
    KNEE_RAW("num_layers_per_virtual_pipeline_stage", vp_layers),
    KNEE_RAW("context_parallel_size", cp),
    KNEE_RAW("expert_model_parallel_size", ep),
    KNEE_RAW("expert_tensor_parallel_size", etp),
    KNEE_RAW("sequence_parallel", seq_par),
    KNEE_RAW("use_distributed_optimizer", distributed),
    KNEE_RAW("use_torch_fsdp2", fsdp),
    KNEE_RAW("use_megatron_fsdp", fsdp),
    KNEE_RAW("use_custom_fsdp", fsdp),
    KNEE_RAW("overlap_grad_reduce", overlap_dp),
    KNEE_RAW("tp_comm_overlap", overlap_tp),
    KNEE_RAW("num_experts", experts),
    KNEE_RAW("moe_router_topk", topk),
    KNEE_RAW("moe_ffn_hidden_size", expert_ffn),
    KNEE_RAW("moe_shared_expert_intermediate_size", shared_ffn),
    KNEE_RAW("multi_latent_attention", mla),
    KNEE_RAW("q_lora_rank", q_rank),
    KNEE_RAW("kv_lora_rank", kv_rank),
    KNEE_RAW("qk_head_dim", unrotated),
    KNEE_RAW("qk_pos_emb_head_dim", rope),
    KNEE_RAW("v_head_dim", value),
    KNEE_RAW("mtp_num_layers", extra),
    KNEE_RAW("bf16", bf16),
    KNEE_RAW("fp16", fp16),
    KNEE_RAW("grad_reduce_in_bf16", bf16_reduce),
    KNEE_RAW("optimizer_cpu_offload", offload),
    KNEE_RAW("num_distributed_optimizer_instances", copies),
    KNEE_RAW("recompute_num_layers", recomputed),
    KNEE_RAW("enable_cuda_graph", graphs),
    KNEE_RAW("external_cuda_graph", graphs),
    KNEE_RAW("num_moe_experts", experts),
    KNEE_RAW("gated_linear_unit", swiglu),
    KNEE_RAW("share_embeddings_and_output_weights", tied),
    KNEE_RAW("add_bias_linear", bias),
    KNEE_RAW("grad_reduce_in_fp32", fp32_reduce),
};

#define NUMBERS (sizeof numbers / sizeof *numbers)

static const struct knee_raw_name texts[] = {
    KNEE_RAW("recompute_granularity", recompute),
    KNEE_RAW("recompute_method", method),
    KNEE_RAW("data_parallel_sharding_strategy", sharding),
    KNEE_RAW("fp8", fp8),
    KNEE_RAW("fp8_format", fp8),
    KNEE_RAW("fp8_recipe", fp8_recipe),
    KNEE_RAW("position_embedding_type", position_type),
    KNEE_RAW("mixed_precision", mixed),
};

static void take(struct raw *raw, const char *key, const char *value)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(key, texts[i].key) == 0 && strcmp(value, "None") != 0)
            knee_format((char *)raw + texts[i].offset, VALUE_MAX, "%s", value);
    double *field = knee_raw_find(numbers, NUMBERS, key, raw);
    const char *rest;
    double number = knee_decimal_parse(value, &rest);
    if (!field)
        return;
    if (strcmp(value, "True") == 0 || strcmp(value, "true") == 0 || *value == '\0')
        *field = 1;
    else if (strcmp(value, "False") == 0 || strcmp(value, "false") == 0)
        *field = 0;
    else if (rest != value && !*rest && fabs(number) <= 1e15)
        *field = number; /* else None, or a variable of the script */
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

static void read_block_line(struct raw *raw, const char *line, const char *end)
{
    char key[KEY_MAX], value[VALUE_MAX];
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
static void keep_time(struct raw *raw, double ms)
{
    if (raw->times == TIMES_MAX) {
        for (raw->times = 0; raw->times < TIMES_MAX / 2; raw->times++)
            raw->times_ms[raw->times] = raw->times_ms[2 * raw->times];
        raw->times_every *= 2;
    }
    raw->times_every = raw->times_every ? raw->times_every : 1;
    if (raw->times_seen++ % raw->times_every == 0)
        raw->times_ms[raw->times++] = ms;
}

static void read_time(struct raw *raw, const char *line, const char *end)
{
    static const char marker[] = "elapsed time per iteration (ms):";
    size_t length = sizeof marker - 1;
    for (const char *at = line; at + length < end; at++) {
        char value[VALUE_MAX];
        if (*at != 'e' || memcmp(at, marker, length) != 0)
            continue;
        at += length;
        while (at < end && *at == ' ')
            at++;
        copy_word(at, end, value, sizeof value, false);
        double ms = knee_decimal_parse(value, NULL);
        if (ms > 0 && ms < 1e12)
            keep_time(raw, ms);
        return;
    }
}

/* ---- Options of a script: --name value, --name=value, --name ---- */

static void copy_key(const char *start, const char *end, char *out)
{
    size_t used = 0;
    for (; start < end && used + 1 < KEY_MAX; start++)
        out[used++] = *start == '-' ? '_' : *start;
    out[used] = '\0';
}

static void read_options(struct raw *raw, const char *text, const char *end)
{
    char key[KEY_MAX] = "", value[VALUE_MAX];
    const char *stop = text;
    for (const char *at; (at = knee_shell_word(stop, end, &stop)) < end;) {
        bool option = stop - at > 2 && at[0] == '-' && at[1] == '-';
        if (!option) {
            copy_word(at, stop, value, sizeof value, false);
            if (*key)
                take(raw, key, value);
            key[0] = '\0';
            continue;
        }
        if (*key)
            take(raw, key, "");
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        copy_key(at + 2, equals ? equals : stop, key);
        if (equals) {
            copy_word(equals + 1, stop, value, sizeof value, false);
            take(raw, key, value);
            key[0] = '\0';
        }
    }
    if (*key)
        take(raw, key, "");
}

/* ---- Into shape and plan ---- */

static void set_shape(struct knee_shape *shape, const struct raw *raw)
{
    const struct knee_keys *k = &knee_shape_keys;
    bool grouped = raw->grouped != 0 && raw->groups > 0;
    bool experts = raw->experts > 1;
    knee_raw_set(k, shape, "layers", raw->layers);
    knee_raw_set(k, shape, "hidden", raw->hidden);
    knee_raw_set(k, shape, "heads", raw->heads);
    knee_raw_set(k, shape, "kv-heads", grouped ? raw->groups : raw->heads);
    knee_raw_set(k, shape, "ffn", isnan(raw->ffn) ? 4 * raw->hidden : raw->ffn);
    knee_raw_set(k, shape, "glu", raw->swiglu > 0);
    knee_raw_set(k, shape, "seq", raw->seq);
    knee_raw_set(k, shape, "vocab", raw->vocab);
    knee_raw_set(k, shape, "tied", isnan(raw->tied) ? !(raw->untied > 0) : raw->tied);
    knee_raw_set(k, shape, "bias", raw->no_bias > 0 || raw->bias == 0 ? 0 : 2);
    if (strcmp(raw->position_type, "learned_absolute") == 0)
        knee_raw_set(k, shape, "positions", raw->positions);
    knee_raw_set(k, shape, "experts", experts ? raw->experts : 1);
    knee_raw_set(k, shape, "topk", experts ? raw->topk : NAN);
    knee_raw_set(k, shape, "expert-ffn", experts ? raw->expert_ffn : NAN);
    knee_raw_set(k, shape, "shared-ffn", experts ? raw->shared_ffn : NAN);
    knee_raw_set(k, shape, "extra-layers", raw->extra);
    if (raw->mla > 0) {
        knee_raw_set(k, shape, "q-rank", raw->q_rank);
        knee_raw_set(k, shape, "kv-rank", raw->kv_rank);
        knee_raw_set(k, shape, "rope-dim", raw->rope);
        knee_raw_set(k, shape, "value-dim", raw->value);
        knee_raw_set(k, shape, "head-dim", raw->unrotated + raw->rope);
    } else {
        knee_raw_set(k, shape, "head-dim", raw->head_dim);
    }
}

/* "bf16_with_fp8_delayed_scaling_mixed", "fp16_mixed", "bf16-mixed" ... */
static double mixed_precision(const char *word)
{
    if (strstr(word, "fp8"))
        return strstr(word, "mx") || strstr(word, "subchannel") ? KNEE_FP8_BLOCK : KNEE_FP8;
    return strstr(word, "bf16") ? KNEE_BF16 : strstr(word, "16") ? KNEE_FP16 : NAN;
}

static double precision_of(const struct raw *raw)
{
    if (raw->mixed[0])
        return mixed_precision(raw->mixed);
    if (!raw->fp8[0])
        return raw->bf16 > 0 ? KNEE_BF16 : raw->fp16 > 0 ? KNEE_FP16 : NAN;
    return strstr(raw->fp8_recipe, "mx") || strstr(raw->fp8_recipe, "block") ? KNEE_FP8_BLOCK
                                                                             : KNEE_FP8;
}

static double shard_of(const struct raw *raw)
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
static double recomputed_share(const struct raw *raw, double vp)
{
    double pieces = (raw->pp > 1 ? raw->pp : 1) * (vp > 1 ? vp : 1);
    if (strcmp(raw->method, "block") != 0 || !(raw->recomputed >= 0))
        return NAN;
    return fmin(1, raw->recomputed * pieces / raw->layers);
}

static void set_plan(struct knee_plan *plan, const struct raw *raw)
{
    const struct knee_keys *k = &knee_plan_keys;
    double vp = raw->vp;
    if (isnan(vp) && raw->vp_layers > 0)
        vp = raw->layers / (raw->pp * raw->vp_layers);
    double world = isnan(raw->world) ? raw->nodes * raw->per_node : raw->world;
    if (isnan(plan->gpus) && world >= 1)
        plan->gpus = world;
    knee_raw_set(k, plan, "global-batch", raw->batch);
    knee_raw_set(k, plan, "micro-batch", raw->micro);
    knee_raw_set(k, plan, "tp", raw->tp);
    knee_raw_set(k, plan, "pp", raw->pp);
    knee_raw_set(k, plan, "vp", isnan(vp) ? 1 : vp);
    knee_raw_set(k, plan, "cp", raw->cp);
    knee_raw_set(k, plan, "ep", raw->ep);
    knee_raw_set(k, plan, "etp", raw->etp);
    knee_raw_set(k, plan, "shard", shard_of(raw));
    knee_raw_set(k, plan, "shard-size",
                 raw->copies > 1 ? world / (raw->tp * raw->pp * raw->copies) : NAN);
    knee_raw_set(k, plan, "offload", raw->offload > 0 ? KNEE_OFFLOAD_OPTIMIZER : NAN);
    knee_raw_set(k, plan, "sequence-parallel", raw->seq_par > 0);
    knee_raw_set(k, plan, "overlap-dp", raw->overlap_dp > 0);
    knee_raw_set(k, plan, "overlap-tp", raw->overlap_tp > 0);
    knee_raw_set(k, plan, "recompute",
                 strcmp(raw->recompute, "full") == 0        ? KNEE_FULL
                 : strcmp(raw->recompute, "selective") == 0 ? KNEE_SELECTIVE
                                                            : KNEE_KEEP);
    knee_raw_set(k, plan, "recompute-share", recomputed_share(raw, vp));
    knee_raw_set(k, plan, "cuda-graphs", raw->graphs > 0 ? 1 : NAN);
    knee_raw_set(k, plan, "precision", precision_of(raw));
    knee_raw_set(k, plan, "gradient-bytes",
                 raw->bf16_reduce > 0 || raw->fp32_reduce == 0 ? 2 : NAN);
}

/* KNEE_INPUT: hidden size or layers are missing, and nothing was set. */
static knee_status finish(const struct raw *raw, struct knee_shape *shape, struct knee_plan *plan)
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
    struct raw raw;
    memset(&raw, 0, sizeof raw);
    knee_raw_clear(numbers, NUMBERS, &raw);
    const char *end = from.text + from.length;
    for (const char *line = from.text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        read_block_line(&raw, line, stop);
        read_time(&raw, line, stop);
        line = stop + 1;
    }
    if (!(raw.hidden > 0))
        read_options(&raw, from.text, end);
    knee_status status = finish(&raw, shape, plan);
    if (status) {
        knee_fail(err, status, from.name,
                  "no Megatron arguments: hidden size or layers are missing");
        knee_hint(err, "give a log with its block of arguments, or a script with --hidden-size");
    }
    if (!status && step_s)
        *step_s = knee_median(raw.times_ms, raw.times) / 1e3;
    return status;
}

/* ---- NeMo: the same names as settings ("  hidden_size: 4096", model.hidden_size=4096) ---- */

static void read_setting(struct raw *raw, const char *at, const char *end)
{
    char key[KEY_MAX], value[VALUE_MAX];
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
    struct raw raw;
    memset(&raw, 0, sizeof raw);
    knee_raw_clear(numbers, NUMBERS, &raw);
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        read_setting(&raw, line, stop);
        line = stop + 1;
    }
    const char *stop = text;
    for (const char *at; (at = knee_shell_word(stop, end, &stop)) < end;)
        if (is_override(at, stop))
            read_setting(&raw, at, stop);
    read_options(&raw, text, end); /* torchrun's counts */
    knee_status status = finish(&raw, shape, plan);
    if (status) {
        knee_fail(err, status, name, "no NeMo configuration: hidden size or layers are missing");
        knee_hint(err, "give Megatron-Bridge's YAML with model.hidden_size, or its overrides");
    }
    return status;
}

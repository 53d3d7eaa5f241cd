/* SPDX-License-Identifier: MIT */
/*
 * A plan as what a framework takes: options of Megatron-LM's pretrain_gpt.py, or DeepSpeed's
 * configuration. What the framework cannot do is refused with the option that keeps it out of the
 * search. The importers (knee plan --megatron, --deepspeed) read the same plan back.
 */
#include "base/error.h"
#include "base/keys.h"
#include "base/text.h"
#include "knee_out.h"
#include "out/json.h"
#include "out/show_plan.h"

#include <math.h>

static const char *const framework_words[] = {"megatron", "deepspeed"};
KNEE_WORDS(knee_launch_frameworks, "framework", framework_words);

/* What stands in the way, and the option that asks for a plan without it. */
struct obstacle {
    bool there;
    const char *what, *option;
};

static knee_status refuse(const struct obstacle *obstacles, size_t count, const char *framework,
                          struct knee_err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!obstacles[i].there)
            continue;
        knee_fail(err, KNEE_USAGE, "--emit", "%s cannot be told: %s", framework, obstacles[i].what);
        knee_hint(err, "ask with %s", obstacles[i].option);
        return KNEE_USAGE;
    }
    return KNEE_OK;
}

/* How many groups hold a whole copy each of what is sharded; 1: all ranks share one. */
static double copies(const struct knee_plan *p)
{
    return p->shard == KNEE_REPLICATE ? 1 : p->dp * p->cp / p->shard_size;
}

/* ---- Megatron-LM ---- */

struct option {
    bool given;
    const char *name;
    double value; /* NaN: a switch */
};

static void write_options(const struct option *options, size_t count, struct knee_text *text)
{
    for (size_t i = 0; i < count; i++) {
        if (!options[i].given)
            continue;
        knee_text_printf(text, " \\\n  --%s", options[i].name);
        if (!isnan(options[i].value))
            knee_text_printf(text, " %.0f", options[i].value);
    }
}
#define WRITE(options, text) write_options(options, sizeof options / sizeof *options, text)

static void megatron_shape(const struct knee_shape *s, struct knee_text *text)
{
    bool experts = s->experts > 1, latent = s->kv_rank > 0;
    const struct option options[] = {
        {true, "num-layers", s->layers},
        {true, "hidden-size", s->hidden},
        {true, "ffn-hidden-size", s->ffn},
        {true, "num-attention-heads", s->heads},
        {!latent && s->kv_heads < s->heads, "group-query-attention", NAN},
        {!latent && s->kv_heads < s->heads, "num-query-groups", s->kv_heads},
        {!latent, "kv-channels", s->head_dim},
        {true, "seq-length", s->seq},
        {true, "max-position-embeddings", fmax(s->seq, s->positions)},
        {true, "vocab-size", s->vocab},
        {s->glu > 0, "swiglu", NAN},
        {!(s->tied > 0), "untie-embeddings-and-output-weights", NAN},
        {!(s->bias > 0), "disable-bias-linear", NAN},
        {experts, "num-experts", s->experts},
        {experts, "moe-router-topk", s->topk},
        {experts, "moe-ffn-hidden-size", s->expert_ffn},
        {experts && s->shared_ffn > 0, "moe-shared-expert-intermediate-size", s->shared_ffn},
        {latent, "multi-latent-attention", NAN},
        {latent && s->q_rank > 0, "q-lora-rank", s->q_rank},
        {latent, "kv-lora-rank", s->kv_rank},
        {latent, "qk-head-dim", s->head_dim - s->rope_dim},
        {latent, "qk-pos-emb-head-dim", s->rope_dim},
        {latent, "v-head-dim", s->value_dim},
    };
    WRITE(options, text);
    knee_text_printf(text, " \\\n  --position-embedding-type %s",
                     s->positions > 0 ? "learned_absolute" : "rope");
}

static void megatron_plan(const struct knee_plan *p, struct knee_text *text)
{
    bool sharded = p->shard >= KNEE_ZERO1, fsdp = p->shard >= KNEE_ZERO2;
    const struct option options[] = {
        {true, "tensor-model-parallel-size", p->tp},
        {true, "pipeline-model-parallel-size", p->pp},
        {p->vp > 1, "num-virtual-stages-per-pipeline-rank", p->vp},
        {true, "context-parallel-size", p->cp},
        {p->ep > 1, "expert-model-parallel-size", p->ep},
        {p->ep > 1, "expert-tensor-parallel-size", p->etp},
        {true, "micro-batch-size", p->micro_batch},
        {true, "global-batch-size", p->global_batch},
        {p->seq_par > 0, "sequence-parallel", NAN},
        {p->overlap_tp > 0, "tp-comm-overlap", NAN},
        {sharded, "use-distributed-optimizer", NAN},
        {p->overlap_dp > 0, "overlap-grad-reduce", NAN},
        {sharded && p->overlap_dp > 0, "overlap-param-gather", NAN},
        {copies(p) > 1, "num-distributed-optimizer-instances", copies(p)},
        {fsdp, "use-megatron-fsdp", NAN},
        {fsdp, "no-gradient-accumulation-fusion", NAN},
        {p->offload == KNEE_OFFLOAD_OPTIMIZER, "optimizer-cpu-offload", NAN},
        {p->offload == KNEE_OFFLOAD_OPTIMIZER, "use-precision-aware-optimizer", NAN},
        {p->precision == KNEE_FP16, "fp16", NAN},
        {p->precision != KNEE_FP16, "bf16", NAN},
        {p->gradient_bytes == 2, "grad-reduce-in-bf16", NAN},
    };
    WRITE(options, text);
    if (fsdp)
        knee_text_printf(text,
                         " \\\n  --data-parallel-sharding-strategy %s"
                         " \\\n  --outer-dp-sharding-strategy no_shard"
                         " \\\n  --ckpt-format fsdp_dtensor",
                         p->shard == KNEE_ZERO2 ? "optim_grads" : "optim_grads_params");
    if (p->precision == KNEE_FP8 || p->precision == KNEE_FP8_BLOCK)
        knee_text_printf(text, " \\\n  --fp8-format hybrid --fp8-recipe %s",
                         p->precision == KNEE_FP8 ? "delayed" : "blockwise");
    if (p->recompute == KNEE_SELECTIVE)
        knee_text_puts(text, " \\\n  --recompute-granularity selective");
    else if (p->recompute == KNEE_FULL)
        knee_text_puts(text, " \\\n  --recompute-granularity full --recompute-method uniform "
                             "--recompute-num-layers 1");
}

static knee_status write_megatron(const struct knee_plan_answer *a, const struct knee_plan *p,
                                  struct knee_text *text, struct knee_err *err)
{
    const struct obstacle obstacles[] = {
        {p->recompute == KNEE_BY_OP, "recomputation by operation", "--recompute selective"},
        {p->pp > 1 && (p->schedule == KNEE_GPIPE || p->schedule == KNEE_ZERO_BUBBLE),
         "this schedule", "--schedule 1f1b or interleaved"},
        {p->precision == KNEE_FP8_ROW || p->precision == KNEE_FP4, "this precision",
         "--precision bf16, fp16, or fp8"},
    };
    knee_status status =
        refuse(obstacles, sizeof obstacles / sizeof *obstacles, "Megatron-LM", err);
    if (status)
        return status;
    double node = a->machine.node_size > 0 ? a->machine.node_size : p->gpus;
    double each = fmin(node, p->gpus);
    knee_text_printf(text, "torchrun --nnodes %.0f --nproc-per-node %.0f pretrain_gpt.py",
                     ceil(p->gpus / each), each);
    megatron_shape(&a->shape, text);
    megatron_plan(p, text);
    knee_text_puts(text, "\n");
    return KNEE_OK;
}

/* ---- DeepSpeed ---- */

static knee_status write_deepspeed(const struct knee_plan_answer *a, const struct knee_plan *p,
                                   struct knee_text *text, struct knee_err *err)
{
    const struct obstacle obstacles[] = {
        {p->pp > 1, "a pipeline", "--pp 1"},
        {p->cp > 1, "a split sequence", "--cp 1"},
        {p->ep > 1, "spread experts", "--ep 1"},
        {p->shard < KNEE_ZERO3 && copies(p) > 1, "shards inside a part of the replicas",
         "another --shard-size"},
        {p->precision != KNEE_BF16 && p->precision != KNEE_FP16, "8 bits", "--precision bf16"},
    };
    knee_status status = refuse(obstacles, sizeof obstacles / sizeof *obstacles, "DeepSpeed", err);
    (void)a;
    if (status)
        return status;
    knee_text_printf(text,
                     "{\n  \"train_batch_size\": %.0f,\n"
                     "  \"train_micro_batch_size_per_gpu\": %.0f,\n"
                     "  \"%s\": {\"enabled\": true},\n",
                     p->global_batch, p->micro_batch, p->precision == KNEE_FP16 ? "fp16" : "bf16");
    if (p->tp > 1)
        knee_text_printf(text, "  \"tensor_parallel\": {\"autotp_size\": %.0f},\n", p->tp);
    knee_text_printf(text, "  \"zero_optimization\": {\n    \"stage\": %d,\n", p->shard);
    if (copies(p) > 1)
        knee_text_printf(text, "    \"mics_shard_size\": %.0f,\n", p->shard_size);
    if (p->offload == KNEE_OFFLOAD_OPTIMIZER)
        knee_text_puts(text, "    \"offload_optimizer\": {\"device\": \"cpu\"},\n");
    knee_text_printf(text, "    \"overlap_comm\": %s\n  }\n}\n",
                     p->overlap_dp > 0 ? "true" : "false");
    return KNEE_OK;
}

/* ---- The best plan ---- */

static void write_as(enum knee_format format, int framework, struct knee_text *launch,
                     struct knee_text *text)
{
    struct knee_json json = {.text = text};
    text->failed = text->failed || launch->failed;
    if (format == KNEE_JSON) {
        knee_json_open(&json, NULL, '{');
        knee_json_string(&json, "schema", "knee.launch/1");
        knee_json_string(&json, "framework", framework_words[framework]);
        knee_json_words(&json, "launch", launch);
        knee_json_close(&json, '}');
        return;
    }
    bool fenced = format == KNEE_MARKDOWN;
    knee_text_puts(text, fenced ? "```\n" : "");
    knee_text_add(text, launch->data, launch->length);
    knee_text_puts(text, fenced ? "```\n" : "");
    knee_text_release(launch);
}

knee_status knee_write_launch(const struct knee_plan_answer *answer, int framework,
                              enum knee_format format, struct knee_text *text, struct knee_err *err)
{
    static knee_status (*const writers[])(const struct knee_plan_answer *, const struct knee_plan *,
                                          struct knee_text *,
                                          struct knee_err *) = {write_megatron, write_deepspeed};
    const struct knee_plan_row *row = knee_plan_shown(answer);
    if (!row)
        return knee_fail(err, KNEE_GATE, "--emit", "no plan fits into the memory of these GPUs");
    struct knee_text launch = {.alloc = text->alloc};
    knee_status status = writers[framework](answer, &row->found.best[0].plan, &launch, err);
    if (!status && launch.data)
        write_as(format, framework, &launch, text);
    text->failed = text->failed || launch.failed;
    knee_text_release(&launch);
    return status;
}

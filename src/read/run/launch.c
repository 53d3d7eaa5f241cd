/* SPDX-License-Identifier: MIT */
/*
 * A plan as what a framework takes: options of Megatron-LM's pretrain_gpt.py, the configurations of
 * DeepSpeed (JSON), torchtitan (TOML) and NeMo (Megatron-Bridge's YAML). What the framework cannot
 * do (job/framework.c) is refused with the option that keeps it out of the search. The importers
 * (knee plan --megatron, --deepspeed, --torchtitan, --nemo) read the same plan back.
 */
#include "read/run/launch.h"
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/text.h"
#include "job/framework.h"
#include "job/plan.h"
#include "knee_plan.h"

#include <math.h>

static const char *const framework_words[] = {"megatron", "deepspeed", "torchtitan", "nemo"};
KNEE_WORDS(knee_launch_frameworks, "framework", framework_words);

/* What the framework cannot do is refused, with what to ask for instead. */
static knee_status refuse(const struct knee_plan_answer *a, const struct knee_plan *p,
                          const char *name, const char *title, struct knee_err *err)
{
    const struct knee_framework *framework = knee_framework_named(name);
    int rule = knee_framework_breaks(framework, p, &a->shape);
    struct knee_obstacle obstacle;
    if (rule < 0)
        return KNEE_OK;
    knee_framework_says(framework, rule, &obstacle);
    knee_fail(err, KNEE_USAGE, "--emit", "%s cannot run this plan: %s", title, obstacle.what);
    knee_hint(err, "add --framework %s, or %s", name, obstacle.instead);
    return KNEE_USAGE;
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

/* The layers do not divide, but two more would: embedding and loss stand in for one each. */
static bool stand_ins(const struct knee_plan *p, const struct knee_shape *s)
{
    double pieces = p->pp * p->vp;
    return p->pp > 1 && fmod(s->layers, pieces) != 0 && fmod(s->layers + 2, pieces) == 0;
}

static void torchrun(const struct knee_plan_answer *a, const struct knee_plan *p,
                     struct knee_text *text)
{
    double node = a->machine.node_size > 0 ? a->machine.node_size : p->gpus;
    double each = fmin(node, p->gpus);
    knee_text_printf(text, "torchrun --nnodes %.0f --nproc-per-node %.0f", ceil(p->gpus / each),
                     each);
}

static void write_megatron(const struct knee_plan_answer *a, const struct knee_plan *p,
                           struct knee_text *text)
{
    torchrun(a, p, text);
    knee_text_puts(text, " pretrain_gpt.py");
    megatron_shape(&a->shape, text);
    megatron_plan(p, text);
    if (stand_ins(p, &a->shape))
        knee_text_puts(text, " \\\n  --account-for-embedding-in-pipeline-split"
                             " \\\n  --account-for-loss-in-pipeline-split");
    else if (knee_plan_short_last(p, a->shape.layers) > 0)
        knee_text_printf(text, " \\\n  --decoder-last-pipeline-num-layers %.0f",
                         knee_plan_short_last(p, a->shape.layers));
    knee_text_puts(text, "\n");
}

/* ---- DeepSpeed ---- */

static void write_deepspeed(const struct knee_plan_answer *a, const struct knee_plan *p,
                            struct knee_text *text)
{
    (void)a;
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
}

/* ---- torchtitan: the configuration's tables that a plan is in; its models go by names ---- */

/* A line of a table: a number, or a word where there is one. */
struct setting {
    bool given;
    const char *name;
    double value;
    const char *word; /* NULL: the number; written as it stands */
};

static void write_settings(const struct setting *settings, size_t count, const char *form,
                           struct knee_text *text)
{
    for (size_t i = 0; i < count; i++) {
        char number[32];
        knee_format(number, sizeof number, "%.0f", settings[i].value);
        if (settings[i].given)
            knee_text_printf(text, form, settings[i].name,
                             settings[i].word ? settings[i].word : number);
    }
}
#define SETTINGS(settings, form, text)                                                             \
    write_settings(settings, sizeof settings / sizeof *settings, form, text)

static const char *titan_schedule(const struct knee_plan *p)
{
    return p->schedule == KNEE_INTERLEAVED ? "\"Interleaved1F1B\""
           : p->schedule == KNEE_GPIPE     ? "\"GPipe\""
                                           : "\"1F1B\"";
}

static void titan_parallelism(const struct knee_plan_answer *a, const struct knee_plan *p,
                              struct knee_text *text)
{
    bool staged = p->pp > 1, two = stand_ins(p, &a->shape), copied = p->shard == KNEE_REPLICATE;
    double shards = copied ? 1 : p->shard_size / p->cp, ends = two ? 1 : 0;
    const struct setting settings[] = {
        {true, "data_parallel_replicate_degree", p->dp / shards, NULL},
        {true, "data_parallel_shard_degree", shards, NULL},
        {!copied, "fsdp_reshard_after_forward", 0,
         p->shard == KNEE_ZERO2 ? "\"never\"" : "\"always\""},
        {true, "tensor_parallel_degree", p->tp, NULL},
        {p->tp > 1, "enable_async_tensor_parallel", 0, p->overlap_tp > 0 ? "true" : "false"},
        {true, "context_parallel_degree", p->cp, NULL},
        {true, "pipeline_parallel_degree", p->pp, NULL},
        {staged, "pipeline_parallel_schedule", 0, titan_schedule(p)},
        {staged, "pipeline_parallel_microbatch_size", p->micro_batch, NULL},
        {staged, "pipeline_parallel_layers_per_stage",
         (a->shape.layers + 2 * ends) / (p->pp * p->vp), NULL},
        {staged, "pipeline_parallel_first_stage_less_layers", ends, NULL},
        {staged, "pipeline_parallel_last_stage_less_layers", ends, NULL},
        {p->ep > 1, "expert_parallel_degree", p->ep, NULL},
        {p->ep > 1, "expert_tensor_parallel_degree", p->etp, NULL},
    };
    knee_text_puts(text, "[parallelism]\n");
    SETTINGS(settings, "%s = %s\n", text);
}

static const char *titan_converter(int precision)
{
    return precision == KNEE_FP8_BLOCK ? "quantize.linear.mx" : "quantize.linear.float8";
}

static void titan_rest(const struct knee_plan *p, struct knee_text *text)
{
    knee_text_printf(text, "\n[activation_checkpoint]\nmode = \"%s\"\n",
                     p->recompute == KNEE_FULL    ? "full"
                     : p->recompute == KNEE_BY_OP ? "selective"
                                                  : "none");
    if (p->recompute == KNEE_BY_OP)
        knee_text_puts(text, "selective_ac_option = \"op\"\n");
    knee_text_puts(text, "\n[compile]\nenable = true\n");
    if (p->precision == KNEE_BF16)
        return;
    knee_text_printf(text, "\n[model]\nconverters = [\"%s\"]\n", titan_converter(p->precision));
    if (p->precision == KNEE_FP8_ROW)
        knee_text_puts(text, "\n[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n");
}

static void write_torchtitan(const struct knee_plan_answer *a, const struct knee_plan *p,
                             struct knee_text *text)
{
    double share = p->global_batch / p->dp; /* sequences of a replica in a step */
    const struct setting training[] = {
        {true, "local_batch_size", p->pp > 1 ? share : p->micro_batch, NULL},
        {true, "global_batch_size", p->global_batch, NULL},
        {true, "seq_len", a->shape.seq, NULL},
        {p->gradient_bytes == 2, "mixed_precision_reduce", 0, "\"bfloat16\""},
    };
    knee_text_puts(text, "# ");
    torchrun(a, p, text);
    knee_text_puts(text, " -m torchtitan.train --job.config_file THIS_FILE --model.name NAME "
                         "--model.flavor FLAVOR\n[training]\n");
    SETTINGS(training, "%s = %s\n", text);
    knee_text_puts(text, "\n");
    titan_parallelism(a, p, text);
    titan_rest(p, text);
}

/* ---- NeMo: Megatron-Bridge's ConfigContainer, as YAML that overrides a recipe ---- */

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static void nemo_shape(const struct knee_shape *s, struct knee_text *text)
{
    bool experts = s->experts > 1, latent = s->kv_rank > 0;
    const struct setting settings[] = {
        {true, "num_layers", s->layers, NULL},
        {true, "hidden_size", s->hidden, NULL},
        {true, "ffn_hidden_size", s->ffn, NULL},
        {true, "num_attention_heads", s->heads, NULL},
        {!latent, "num_query_groups", s->kv_heads, NULL},
        {!latent, "kv_channels", s->head_dim, NULL},
        {true, "seq_length", s->seq, NULL},
        {true, "vocab_size", s->vocab, NULL},
        {true, "gated_linear_unit", 0, truth(s->glu > 0)},
        {true, "share_embeddings_and_output_weights", 0, truth(s->tied > 0)},
        {true, "add_bias_linear", 0, truth(s->bias > 0)},
        {true, "position_embedding_type", 0, s->positions > 0 ? "learned_absolute" : "rope"},
        {s->positions > 0, "max_position_embeddings", s->positions, NULL},
        {experts, "num_moe_experts", s->experts, NULL},
        {experts, "moe_router_topk", s->topk, NULL},
        {experts, "moe_ffn_hidden_size", s->expert_ffn, NULL},
        {experts && s->shared_ffn > 0, "moe_shared_expert_intermediate_size", s->shared_ffn, NULL},
        {latent, "multi_latent_attention", 0, "true"},
        {latent && s->q_rank > 0, "q_lora_rank", s->q_rank, NULL},
        {latent, "kv_lora_rank", s->kv_rank, NULL},
        {latent, "qk_head_dim", s->head_dim - s->rope_dim, NULL},
        {latent, "qk_pos_emb_head_dim", s->rope_dim, NULL},
        {latent, "v_head_dim", s->value_dim, NULL},
    };
    SETTINGS(settings, "  %s: %s\n", text);
}

static void nemo_model(const struct knee_plan *p, const struct knee_shape *s,
                       struct knee_text *text)
{
    bool two = stand_ins(p, s);
    double last = knee_plan_short_last(p, s->layers);
    const struct setting settings[] = {
        {true, "tensor_model_parallel_size", p->tp, NULL},
        {true, "pipeline_model_parallel_size", p->pp, NULL},
        {p->vp > 1, "virtual_pipeline_model_parallel_size", p->vp, NULL},
        {two, "account_for_embedding_in_pipeline_split", 0, "true"},
        {two, "account_for_loss_in_pipeline_split", 0, "true"},
        {!two && last > 0, "num_layers_in_last_pipeline_stage", last, NULL},
        {true, "context_parallel_size", p->cp, NULL},
        {p->ep > 1, "expert_model_parallel_size", p->ep, NULL},
        {p->ep > 1, "expert_tensor_parallel_size", p->etp, NULL},
        {true, "sequence_parallel", 0, truth(p->seq_par > 0)},
        {p->recompute == KNEE_SELECTIVE, "recompute_granularity", 0, "selective"},
        {p->recompute == KNEE_FULL, "recompute_granularity", 0, "full"},
        {p->recompute == KNEE_FULL, "recompute_method", 0, "uniform"},
        {p->recompute == KNEE_FULL, "recompute_num_layers", 1, NULL},
    };
    SETTINGS(settings, "  %s: %s\n", text);
}

static void nemo_rest(const struct knee_plan *p, struct knee_text *text)
{
    static const char *const precisions[KNEE_PRECISIONS] = {
        [KNEE_BF16] = "bf16_mixed",
        [KNEE_FP16] = "fp16_mixed",
        [KNEE_FP8] = "bf16_with_fp8_delayed_scaling_mixed",
        [KNEE_FP8_BLOCK] = "bf16_with_fp8_subchannel_scaling_mixed",
    };
    bool sharded = p->shard >= KNEE_ZERO1, fsdp = p->shard >= KNEE_ZERO2;
    const struct setting train[] = {
        {true, "micro_batch_size", p->micro_batch, NULL},
        {true, "global_batch_size", p->global_batch, NULL},
    };
    const struct setting ddp[] = {
        {true, "use_distributed_optimizer", 0, truth(sharded)},
        {true, "overlap_grad_reduce", 0, truth(p->overlap_dp > 0)},
        {sharded, "overlap_param_gather", 0, truth(p->overlap_dp > 0)},
        {copies(p) > 1, "num_distributed_optimizer_instances", copies(p), NULL},
        {fsdp, "use_megatron_fsdp", 0, "true"},
        {fsdp, "data_parallel_sharding_strategy", 0,
         p->shard == KNEE_ZERO2 ? "optim_grads" : "optim_grads_params"},
        {p->gradient_bytes == 2, "grad_reduce_in_fp32", 0, "false"},
    };
    knee_text_puts(text, "train:\n");
    SETTINGS(train, "  %s: %s\n", text);
    knee_text_puts(text, "ddp:\n");
    SETTINGS(ddp, "  %s: %s\n", text);
    if (p->offload == KNEE_OFFLOAD_OPTIMIZER)
        knee_text_puts(text, "optimizer:\n  optimizer_cpu_offload: true\n");
    if (p->tp > 1)
        knee_text_printf(text, "comm_overlap:\n  tp_comm_overlap: %s\n", truth(p->overlap_tp > 0));
    knee_text_printf(text, "mixed_precision: %s\n", precisions[p->precision]);
}

static void write_nemo(const struct knee_plan_answer *a, const struct knee_plan *p,
                       struct knee_text *text)
{
    knee_text_puts(text, "# ");
    torchrun(a, p, text);
    knee_text_puts(text, " RECIPE.py --config-file THIS_FILE\nmodel:\n");
    nemo_shape(&a->shape, text);
    nemo_model(p, &a->shape, text);
    nemo_rest(p, text);
}

/* ---- The best plan ---- */

/* What decided the plan and is not among the words above: the reader has to set it. */
static void say_unwritten(const struct knee_shape *s, const struct knee_plan *p, bool shaped,
                          struct knee_text *text)
{
    const struct {
        bool here;
        const char *what;
    } rows[] = {
        {shaped && s->experts > 1 && s->dense_layers > 0, "which layers have experts"},
        {shaped && s->linear_layers > 0, "layers with state space or linear attention"},
        {s->lora_rank > 0, "adapters (LoRA)"},
        {p->recompute != KNEE_KEEP && p->recompute_share < 1, "how many layers are recomputed"},
        {p->graphs > 0, "CUDA graphs"},
    };
    const char *before = "# not written here, set by hand: ";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].here) {
            knee_text_printf(text, "%s%s", before, rows[i].what);
            before = "; ";
        }
    knee_text_puts(text, *before == ';' ? "\n" : "");
}

knee_status knee_launch_write(const struct knee_plan_answer *answer, const struct knee_plan *plan,
                              int framework, struct knee_text *text, struct knee_err *err)
{
    static const struct {
        const char *title;
        void (*write)(const struct knee_plan_answer *, const struct knee_plan *,
                      struct knee_text *);
        bool comments, shaped; /* its words can hold comments; say the model's shape */
    } writers[] = {{"Megatron-LM", write_megatron, true, true},
                   {"DeepSpeed", write_deepspeed, false, false},
                   {"torchtitan", write_torchtitan, true, false},
                   {"NeMo", write_nemo, true, true}};
    knee_status status =
        refuse(answer, plan, framework_words[framework], writers[framework].title, err);
    if (status)
        return status;
    if (writers[framework].comments)
        say_unwritten(&answer->shape, plan, writers[framework].shaped, text);
    writers[framework].write(answer, plan, text);
    return KNEE_OK;
}

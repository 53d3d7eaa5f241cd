/* SPDX-License-Identifier: MIT */
/*
 * Settings of other tools, one at a time: what torchtitan's, Megatron's, NeMo's and DeepSpeed's
 * files and commands say, and what a row of measured runs says, as values of knee's own keys.
 */
#include "knee_read.h"
#include "knee_runs.h"
#include "unit.h"

static const struct {
    const char *text;
    double gpus;
    const char *plan;
} titans[] = {
    {"[parallelism]\n  tensor_parallel_degree = 2\t# two\ndata_parallel_shard_degree = 4\r\n", NAN,
     "tp=2 gpus=8 shard=zero3 shard-size=4 sequence-parallel=1 overlap-tp=0 precision=bf16"},
    {"tensor_parallel_degree = 2\ndata_parallel_shard_degree = -1", 16,
     "tp=2 gpus=16 shard=zero3 shard-size=8"},
    {"data_parallel_shard_degree = -1\ntensor_parallel_degree = 3", 16, "shard=zero3 shard-size="},
    {"data_parallel_shard_degree = -1", NAN, "gpus= shard=zero3 shard-size="},
    {"data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 8", NAN,
     "gpus=8 shard=none shard-size="},
    {"data_parallel_shard_degree = 8\nfsdp_reshard_after_forward = 'never'\nlocal_batch_size = "
     "2",
     NAN, "shard=zero2 global-batch=16 micro-batch=2"},
    {"global_batch_size = 64\nlocal_batch_size = 2\ndata_parallel_shard_degree = 8", NAN,
     "global-batch=64"},
    {"global_batch_size = 6.5\nlocal_batch_size = many\ntensor_parallel_degree = 2e10", NAN,
     "global-batch= tp=1"},
    {"enable_async_tensor_parallel = true\ntensor_parallel_degree = 2", NAN, "overlap-tp=1"},
    {"enable_async_tensor_parallel = True\ntensor_parallel_degree = 2", NAN, "overlap-tp=1"},
    {"enable_async_tensor_parallel =\ntensor_parallel_degree = 2", NAN, "overlap-tp=1"},
    {"enable_sequence_parallel = false\ntensor_parallel_degree = 2", NAN, "sequence-parallel=0"},
    {"enable_sequence_parallel = False\ntensor_parallel_degree = 2", NAN, "sequence-parallel=0"},
    {"pipeline_parallel_degree = 4\npipeline_parallel_layers_per_stage = 4", NAN,
     "pp=4 vp=3 schedule=1f1b micro-batch=1"},
    {"pipeline_parallel_degree = 4\npipeline_parallel_layers_per_stage = "
     "4\npipeline_parallel_first_stage_less_layers = "
     "0\npipeline_parallel_last_stage_less_layers = 0",
     NAN, "vp=2"},
    {"pipeline_parallel_degree = 11\npipeline_parallel_layers_per_stage = "
     "3\npipeline_parallel_first_stage_less_layers = 0",
     NAN, "vp=1"}, /* 32 layers and the head */
    {"pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"Interleaved1F1B\"", NAN,
     "vp=2 schedule=interleaved"},
    {"pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"GPipe", NAN,
     "vp=1 schedule=gpipe"},
    {"pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"else\"", NAN,
     "vp=1 schedule=1f1b"},
    {"[activation_checkpoint]\nmode = \"full\"\n", NAN, "recompute=full"},
    {"[activation_checkpoint\nmode = 'selective'\n", NAN, "recompute=op"},
    {"[elsewhere]\nmode = \"full\"\n[training]\nbatch_size = 3", NAN,
     "recompute=none micro-batch=3"},
    {"converters = [\"quantize.linear.mx\"]", NAN, "precision=fp8-block"},
    {"converters = [\"float8\"]\nrecipe_name = \"rowwise\"", NAN, "precision=fp8-rowwise"},
    {"converters = [\"float8\"]", NAN, "precision=fp8"},
    {"mixed_precision_reduce = \"bfloat16\"", NAN, "gradient-bytes=2"},
    {"mixed_precision_reduce = \"float32\"", NAN, "gradient-bytes="},
    {"expert_parallel_degree = 8\nexpert_tensor_parallel_degree = 2", NAN, "ep=8 etp=2"},
    {"# remark\n\nodd\ntorchrun --nproc_per_node 8 train.py "
     "--parallelism.tensor_parallel_degree 8 --parallelism.context_parallel_degree=2 "
     "--parallelism.enable_async_tensor_parallel --x.y",
     NAN, "tp=8 cp=2 overlap-tp=1"},
    {"-- - --training.local_batch_size", NAN, "micro-batch=1"},
};

/* ---- torchtitan ---- */

TEST(torchtitan_says)
{
    for (size_t i = 0; i < sizeof titans / sizeof *titans; i++) {
        struct knee_plan plan;
        struct knee_err err;
        knee_plan_init(&plan);
        plan.gpus = titans[i].gpus;
        if (knee_torchtitan_read(titans[i].text, strlen(titans[i].text), "t.toml", 32, &plan, &err))
            fail_msg("%s: %s", titans[i].text, err.what);
        assert_says(&knee_plan_keys, &plan, titans[i].plan, titans[i].text);
    }
    struct knee_plan plan;
    struct knee_err err;
    knee_plan_init(&plan);
    assert_int_equal(knee_torchtitan_read("a = 1\n", 6, "t.toml", 32, &plan, &err), KNEE_INPUT);
    assert_string_equal(err.what, "no torchtitan settings: no key of it is known");
    static const char stages[] =
        "pipeline_parallel_degree = 4\npipeline_parallel_layers_per_stage = 4";
    assert_ok(knee_torchtitan_read(stages, strlen(stages), "t.toml", NAN, &plan, &err));
    assert_says(&knee_plan_keys, &plan, "vp=1", "stages of a model that is not known");
}

/* ---- Megatron and NeMo ---- */

#define BASE "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 "

TEST(megatron_says)
{
    static const struct {
        const char *text, *shape, *plan;
    } cases[] = {
        {BASE, "kv-heads=32 ffn=16384 glu=0 tied=1 bias=2 experts=1",
         "shard=none precision= recompute=none cuda-graphs= vp=1 gradient-bytes="},
        {BASE "--group-query-attention --num-query-groups 8 --swiglu", "kv-heads=8 glu=1", ""},
        {BASE "--group-query-attention", "kv-heads=32", ""},
        {BASE "--multi-latent-attention --q-lora-rank 512 --kv-lora-rank 256 --qk-head-dim 64 "
              "--qk-pos-emb-head-dim 32 --v-head-dim 128",
         "q-rank=512 kv-rank=256 rope-dim=32 value-dim=128 head-dim=96", ""},
        {BASE "--kv-channels 64", "head-dim=64", ""},
        {BASE "--position-embedding-type learned_absolute --max-position-embeddings 2048",
         "positions=2048", ""},
        {BASE "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 1024", "experts=8 topk=2",
         ""},
        {BASE "--bf16", "", "precision=bf16"},
        {BASE "--fp16", "", "precision=fp16"},
        {BASE "--fp8-format hybrid", "", "precision=fp8"},
        {BASE "--fp8-format hybrid --fp8-recipe mxfp8", "", "precision=fp8-block"},
        {BASE "--fp8-format hybrid --fp8-recipe blockwise", "", "precision=fp8-block"},
        {BASE "--fp8-format None --bf16", "", "precision=bf16"},
        {BASE "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", "",
         "shard=zero2"},
        {BASE "--use-megatron-fsdp --data-parallel-sharding-strategy else", "", "shard=zero3"},
        {BASE "--use-distributed-optimizer", "", "shard=zero1"},
        {BASE "--recompute-granularity full --recompute-method block --recompute-num-layers 4", "",
         "recompute=full recompute-share=0.125"},
        {BASE "--recompute-granularity full --recompute-method uniform --recompute-num-layers 4",
         "", "recompute=full recompute-share="},
        {BASE "--recompute-granularity full --recompute-method block", "", "recompute-share="},
        {BASE "--recompute-granularity full --recompute-method block --recompute-num-layers 4 "
              "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2",
         "", "vp=4 recompute-share=1"},
        {BASE "--recompute-granularity selective", "", "recompute=selective"},
        {BASE "--enable-cuda-graph", "", "cuda-graphs=1"},
        {BASE "--grad-reduce-in-bf16", "", "gradient-bytes=2"},
        {BASE "--optimizer-cpu-offload", "", "offload=optimizer"},
        {BASE "--nnodes 2 --nproc_per_node=8", "", "gpus=16"},
        {BASE "--world-size 64 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
              "--num-distributed-optimizer-instances 2 --use-distributed-optimizer",
         "", "gpus=64 shard-size=8"},
        {BASE "--seq-length $SEQ --micro-batch-size 9e99 word", "seq=", "micro-batch="},
        {"  num_layers ..... 80\n  hidden_size ..... 8192\n  pipeline_model_parallel_size ..... 8\n"
         "  virtual_pipeline_model_parallel_size ..... 5\n  fp8 ..... None\n  bf16 ..... True\n",
         "layers=80 hidden=8192", "pp=8 vp=5 precision=bf16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_shape shape;
        struct knee_plan plan;
        struct knee_err err;
        knee_shape_init(&shape);
        knee_plan_init(&plan);
        if (knee_megatron_read(
                (struct knee_named_text){cases[i].text, strlen(cases[i].text), "run.sh"}, &shape,
                &plan, NULL, &err))
            fail_msg("%s: %s", cases[i].text, err.what);
        assert_says(&knee_shape_keys, &shape, cases[i].shape, cases[i].text);
        assert_says(&knee_plan_keys, &plan, cases[i].plan, cases[i].text);
    }
}

/* A log with more iterations than are kept: those at its end count too. Times that are none are
 * left out. */
TEST(megatron_times_are_the_median)
{
    static char log[1 << 18];
    struct knee_shape shape;
    struct knee_plan plan;
    struct knee_err err;
    double step_s = 0;
    size_t used = (size_t)sprintf(log, "  num_layers ....... 32\n  hidden_size ..... 4096\n"
                                       "  ...... 5\n  swiglu ....\n short ..\n"
                                       " elapsed time per iteration (ms): -5 |\n"
                                       " elapsed time per iteration (ms): 1e13 |\n");
    for (int i = 0; i < 5000; i++)
        used += (size_t)sprintf(log + used, " elapsed time per iteration (ms): %d.0 |\n",
                                i < 1100 ? 900 : 250);
    knee_shape_init(&shape);
    knee_plan_init(&plan);
    assert_ok(knee_megatron_read((struct knee_named_text){log, used, "log"}, &shape, &plan, &step_s,
                                 &err));
    assert_near(step_s, 0.25, 1e-12);
}

TEST(nemo_says)
{
    static const struct {
        const char *text, *shape, *plan;
    } cases[] = {
        {"model:\n  num_layers: 32\n  hidden_size: 4096\n  gated_linear_unit: true\n"
         "  share_embeddings_and_output_weights: false\n  add_bias_linear: false\n",
         "layers=32 hidden=4096 glu=1 tied=0 bias=0", ""},
        {"\"num_layers\": \"32\"\n\t hidden_size: 4096\n", "layers= hidden=4096", NULL},
        {"model.num_layers=32 model.hidden_size=4096 mixed_precision: x\n"
         "mixed_precision: bf16_with_fp8_delayed_scaling_mixed\n",
         "", "precision=fp8"},
        {"model.num_layers=32 model.hidden_size=4096\nmixed_precision: bf16_with_mxfp8_mixed\n", "",
         "precision=fp8-block"},
        {"model.num_layers=32 model.hidden_size=4096\nmixed_precision: "
         "bf16_with_fp8_subchannel_scaling_mixed\n",
         "", "precision=fp8-block"},
        {"model.num_layers=32 model.hidden_size=4096\nmixed_precision: bf16-mixed\n", "",
         "precision=bf16"},
        {"model.num_layers=32 model.hidden_size=4096\nmixed_precision: fp16_mixed\n", "",
         "precision=fp16"},
        {"model.num_layers=32 model.hidden_size=4096\nmixed_precision: 32\n", "", "precision="},
        {"model.num_layers=32 model.hidden_size=4096\ngrad_reduce_in_fp32: false\n", "",
         "gradient-bytes=2"},
        {"a.b model.num_layers=32 model.hidden_size=4096 x=1.5\nkey:\n:value\n", "layers=32", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_shape shape;
        struct knee_plan plan;
        struct knee_err err;
        knee_shape_init(&shape);
        knee_plan_init(&plan);
        knee_status status =
            knee_nemo_read(cases[i].text, strlen(cases[i].text), "n.yaml", &shape, &plan, &err);
        if (!status != (cases[i].plan != NULL))
            fail_msg("%s: %s", cases[i].text, status ? err.what : "taken");
        if (status)
            continue;
        assert_says(&knee_shape_keys, &shape, cases[i].shape, cases[i].text);
        assert_says(&knee_plan_keys, &plan, cases[i].plan, cases[i].text);
    }
}

/* ---- Configurations of models ---- */

#define CONFIG(more)                                                                               \
    "{\"hidden_size\": 512, \"num_hidden_layers\": 8, \"num_attention_heads\": 8, "                \
    "\"vocab_size\": 1000, \"intermediate_size\": 2048" more "}"
#define STATE ", \"mamba_num_heads\": 16, \"mamba_head_dim\": 64, \"ssm_state_size\": 128"

TEST(configs_say)
{
    static const struct {
        const char *json, *shape;
    } cases[] = {
        {CONFIG(""), "layers=8 glu=1"},
        {CONFIG(", \"model_type\": \"qwen3_5_moe\""), "attention-gate=1"},
        {CONFIG(", \"model_type\": 5, \"hybrid_override_pattern\": 7"), "layers=8"},
        {CONFIG(STATE ", \"layer_types\": [\"mamba\", \"attention\", \"linear_attention\", "
                      "\"full_attention\"]"),
         "linear-layers=4"},
        {CONFIG(STATE ", \"attn_layer_indices\": [3, 7]"), "linear-layers=6"},
        {CONFIG(STATE ", \"full_attention_interval\": 4"), "linear-layers=6"},
        {CONFIG(", \"layer_types\": [\"sliding_attention\", \"full_attention\"], "
                "\"sliding_window\": 128"),
         "window=128"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_shape shape;
        struct knee_err err;
        knee_shape_init(&shape);
        if (knee_hf_read(cases[i].json, strlen(cases[i].json), "c.json", &shape, &err))
            fail_msg("%s: %s", cases[i].json, err.what);
        assert_says(&knee_shape_keys, &shape, cases[i].shape, cases[i].json);
    }
}

/* ---- DeepSpeed ---- */

TEST(deepspeed_says)
{
    static const struct {
        const char *json, *plan; /* NULL: it is refused */
    } cases[] = {
        {"{\"train_batch_size\": 64, \"bf16\": {\"enabled\": true}}",
         "global-batch=64 precision=bf16"},
        {"{\"train_batch_size\": 64, \"fp16\": {\"enabled\": true}}", "precision=fp16"},
        {"{\"train_batch_size\": 64}", "precision="},
        {"{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 4, "
         "\"gradient_accumulation_steps\": \"auto\"}",
         "global-batch=256 micro-batch=4"},
        /* the batch from its factors; a bare bool is stage 1 */
        {"{\"zero_optimization\": true, \"train_micro_batch_size_per_gpu\": 2,"
         "\"gradient_accumulation_steps\": 3}",
         "shard=zero1 global-batch=96"},
        {"{\"zero_optimization\": {\"stage\": 3, \"overlap_comm\": true, "
         "\"zero_hpz_partition_size\": 8, \"reduce_bucket_size\": \"auto\"}}",
         "shard=zero3 shard-size=8 overlap-dp=1"},
        {"{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"nvme\"}}}",
         "shard=zero3 offload=optimizer"},
        {"{\"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": \"cpu\"}}}",
         "shard=zero2 offload=optimizer"},
        {"{\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": \"cpu\"}}}", NULL},
        {"{\"zero_optimization\": {\"stage\": 7}}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_plan plan;
        struct knee_err err;
        knee_plan_init(&plan);
        plan.gpus = 16;
        knee_status status =
            knee_deepspeed_read(cases[i].json, strlen(cases[i].json), "ds.json", &plan, &err);
        if (status != (cases[i].plan ? KNEE_OK : KNEE_INPUT))
            fail_msg("%s: %s", cases[i].json, status ? err.what : "taken");
        if (!status)
            assert_says(&knee_plan_keys, &plan, cases[i].plan, cases[i].json);
    }
    struct knee_plan plan; /* a flag holds against the file */
    struct knee_err err;
    knee_plan_init(&plan);
    assert_ok(knee_keys_set(&knee_plan_keys, &plan, "global-batch", "32", KNEE_FLAG, &err));
    assert_ok(knee_deepspeed_read(cases[0].json, strlen(cases[0].json), "ds.json", &plan, &err));
    assert_says(&knee_plan_keys, &plan, "global-batch=32", "a flag");
}

/* ---- Measured runs ---- */

#define COLUMNS                                                                                    \
    "id,gpu,n_gpus,gpus_per_node,model,precision,global_batch,tp,pp,zero,recompute,overlap,notes," \
    "step_time_s,hidden,dp,profile,net_Gbps_per_gpu,nvlink_GBps,n_experts\n"

#define LLAMA "a,h100,16,8,llama3-8b,bf16,64,1,1,zero2,none,"

TEST(a_row_says)
{
    static const struct {
        const char *row, *plan, *skipped; /* skipped: what its reason begins with; "" used */
    } cases[] = {
        {"a,h100,16,8,llama3-8b,bf16,64,2,1,hsdp,none,,,1.5,,,,,,", "shard-size=4", ""},
        {"a,h100,4,8,llama3-8b,bf16,64,,1,hybrid shards in node,none,,,1.5,,,,,,", "shard-size=4",
         ""},
        {"a,h100,16,8,llama3-8b,bf16,64,1,1,fsdp,none,,fsdp group 8,1.5,,,,,,", "shard-size=8", ""},
        {"a,h100,16,8,llama3-8b,bf16,64,1,1,hsdp,none,,fsdp group 2,1.5,,,,,,", "shard-size=8", ""},
        {LLAMA "none,mp mode pure; tokendrop,1.5,,,,,,",
         "shard=zero2 overlap-dp=0 overlap-tp=0 overlap-pp=0 gradient-bytes=2", ""},
        {LLAMA "no dp,,1.5,,,,,,", "overlap-dp=0 overlap-tp=1", ""},
        {LLAMA "no tp,,1.5,,,,,,", "overlap-dp=1 overlap-tp=0", ""},
        {LLAMA "vanilla tp,,1.5,,,,,,", "overlap-tp=0", ""},
        {LLAMA ",qlora tuning,1.5,,,,,,", "", ""},
        {LLAMA ",lora; exploration,1.5,,,,,,", "", ""},
        {LLAMA ",explorat,1.5,,,,400,450,", "", ""},
        {LLAMA ",,1.5,,,,,450,1", "", ""},
        {LLAMA ",,1.5,999,,,,,", "", ""},
        {"a,h100,16,8,nothing,bf16,64,1,1,zero2,none,,,1.5,,,,,,", "",
         "the shape of nothing is not given"},
        {"a,h100,16,8,,bf16,64,1,1,zero2,none,,,1.5,,,,,,", "",
         "the shape of the model is not given"},
        {"a,h100,16,8,jamba-mini,bf16,64,1,1,zero2,none,,,1.5,4096,,,,,", "",
         "which layers of jamba-mini have state space is not given"},
        {LLAMA ",,1.5,,0.5,,,,", "", "dp is out of range"},
        {LLAMA ",,1.5,,1e9,,,,", "", "dp is out of range"},
        {"a,h100,0.5,8,llama3-8b,bf16,64,1,1,zero2,none,,,1.5,,,,,,", "", "n_gpus is out of range"},
        {"a,h100,16,8,llama3-8b,bf16,64,0.1,1,zero2,none,,,1.5,,,,,,", "", "tp is out of range"},
        {"a,h100,16,8,llama3-8b,int7,64,1,1,zero2,none,,,1.5,,,,,,", "",
         "precision int7 is not modelled"},
        {LLAMA ",,1.5,,,nobody,,,", "", "unknown profile 'nobody'"},
        {"a,quantum,16,8,llama3-8b,bf16,64,1,1,zero2,none,,,1.5,,,,,,", "",
         "there are no constants for quantum"},
        {"a,,16,8,llama3-8b,bf16,64,1,1,zero2,none,,,1.5,,,,,,", "", "the GPU is not named"},
        {LLAMA ",,,,,,,,", "", "no step time"},
        {"a,h100,,8,llama3-8b,bf16,64,1,1,zero2,none,,,1.5,,,,,,", "",
         "the number of GPUs is not given"},
        {"a,h100,16,8,llama3-8b,bf16,,1,1,zero2,none,,,1.5,,,,,,", "",
         "the global batch is not given"},
        {"a,h100,16,8,llama3-8b,bf16,many,1,1,zero2,none,,,1.5,,,,,,", "", "many is not a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_runs) runs;
        struct knee_err err;
        char text[2048];
        int length = snprintf(text, sizeof text, "%s%s\n", COLUMNS, cases[i].row);
        if (knee_runs_read((struct knee_named_text){text, (size_t)length, "runs.csv"}, NULL, NULL,
                           &runs, &err))
            fail_msg("%s: %s", cases[i].row, err.what);
        assert_int_equal(runs.count, 1);
        if (strncmp(runs.run[0].skipped, cases[i].skipped, strlen(cases[i].skipped)) != 0 ||
            !runs.run[0].skipped[0] != !cases[i].skipped[0])
            fail_msg("%s: '%s'", cases[i].row, runs.run[0].skipped);
        assert_says(&knee_plan_keys, &runs.run[0].plan, cases[i].plan, cases[i].row);
    }
}

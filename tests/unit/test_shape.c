/* SPDX-License-Identifier: MIT */
/*
 * Shapes: parameters against what publishers say, FLOPs against a second count over the
 * operations, importers against presets and against each other.
 */
#include "knee_read.h"
#include "unit.h"

#include "base/json_values.h"
#include "job/memory.h"
#include "job/models.h"
#include "job/ops.h"
#include "job/profile.h"
#include "job/shape.h"

static struct knee_shape shape_of(const char *words)
{
    struct knee_shape shape;
    struct knee_err err;
    char copy[1024], *rest = NULL;
    knee_shape_init(&shape);
    snprintf(copy, sizeof copy, "%s", words);
    for (char *key = strtok_r(copy, " ", &rest); key; key = strtok_r(NULL, " ", &rest))
        if (knee_keys_set(&knee_shape_keys, &shape, key, strtok_r(NULL, " ", &rest), KNEE_FLAG,
                          &err))
            fail_msg("%s: %s", key, err.what);
    if (knee_shape_complete(&shape, &err))
        fail_msg("%s: %s", words, err.what);
    return shape;
}

static double params_of(const struct knee_shape *shape)
{
    struct knee_params params;
    knee_shape_params(shape, &params);
    return params.total;
}

/* ---- Parameters and FLOPs ---- */

TEST(presets_have_the_published_parameters)
{
    for (size_t i = 0; i < knee_models_count; i++) {
        struct knee_shape shape = shape_of("hidden 8");
        knee_shape_init(&shape);
        shape.model = (int)i;
        if (!knee_model_has_shape(&knee_models[i])) {
            assert_int_equal(knee_shape_complete(&shape, NULL), KNEE_USAGE);
            continue;
        }
        assert_ok(knee_shape_complete(&shape, NULL));
        double published = knee_models[i].params_billion * 1e9;
        double share = fabs(params_of(&shape) / published - 1);
        if (share > 0.004)
            fail_msg("%s: %.4g, published %.4g", knee_models[i].name, params_of(&shape), published);
    }
}

/* Counted by hand from the configuration files. */
TEST(parameters_to_the_last_one)
{
    struct knee_shape gpt2 = shape_of("model gpt2");
    assert_near(params_of(&gpt2), 124439808, 0);
    struct knee_shape llama = shape_of("model llama2-7b");
    assert_near(params_of(&llama), 6738415616, 0);
    struct knee_shape llama3 = shape_of("model llama3-8b");
    assert_near(params_of(&llama3), 8030261248, 0);
    struct knee_shape mixtral = shape_of("model mixtral-8x7b");
    assert_near(params_of(&mixtral), 46702792704, 0);
    struct knee_shape qwen = shape_of("model qwen3-30b-a3b");
    assert_near(params_of(&qwen), 30532122624, 0);
}

/* 6 N per token, and the attention term of Narayanan et al. 2021: their
 * F = 72 B s l h^2 (1 + s/6h + V/12lh) without recomputation. */
TEST(flops_agree_with_the_megatron_formula)
{
    struct knee_shape s = shape_of("model gpt3-175b vocab 51200");
    struct knee_flops flops;
    knee_shape_flops(&s, &flops);
    double h = s.hidden, l = s.layers;
    double formula = 72 * l * h * h * (1 + s.seq / (6 * h) + s.vocab / (12 * l * h));
    assert_relative(flops.matmul + flops.attention_full, formula, 0.001);
    assert_relative(flops.attention_causal, flops.attention_full / 2, 0.001);
}

/* Tokens on ranks that split a layer by tp and nothing else. */
static struct knee_split split_of(const struct knee_shape *shape, const struct knee_rates *rates,
                                  double tokens, double tp)
{
    return (struct knee_split){.shape = shape,
                               .rates = rates,
                               .tokens = tokens,
                               .tp = tp,
                               .etp = 1,
                               .ep = 1,
                               .imbalance = 1,
                               .fused = true,
                               .context_share = 1};
}

/* Second method: the FLOPs of the operations, times layers. */
TEST(flops_of_the_operations_add_up)
{
    static const char models[] =
        "model llama3-8b|model gpt3-175b|model qwen2.5-7b|model gemma2-9b|model mixtral-8x7b|"
        "model deepseek-v3|model qwen3-235b-a22b|model llama3-8b lora 64|"
        "model llama3-8b linear-layers 24 bare-layers 8|"
        "model mixtral-8x7b linear-layers 8 attention-gate 1 lora-rank 16";
    for (struct pieces p = {.rest = models}; next_piece(&p);) {
        struct knee_shape s = shape_of(p.text);
        struct knee_recipe recipe;
        struct knee_rates rates;
        struct knee_operation ops[KNEE_OPERATIONS_MAX];
        struct knee_flops flops;
        knee_recipe_init("h100", knee_profile_row("megatron-core"), &recipe);
        knee_rates_resolve(&recipe, NULL, &rates);
        struct knee_split split = split_of(&s, &rates, s.seq, 1);
        double products = 0, scores = 0;
        double times[] = {s.dense_layers, s.experts > 1 ? s.layers - s.dense_layers : 0, 0, 1};
        for (int what = KNEE_OPERATIONS_DENSE; what <= KNEE_OPERATIONS_HEAD; what++) {
            size_t count = knee_ops_list(&split, (enum knee_operations_of)what, ops);
            for (size_t k = 0; k < count; k++) {
                double all = times[what] * ops[k].flops * ops[k].count;
                if (ops[k].kind == KNEE_OPERATION_GEMM)
                    products += all;
                else if (ops[k].kind == KNEE_OPERATION_SCAN)
                    products += ops[k].backward ? 0 : 3 * all;
                else if (!ops[k].backward)
                    scores += all;
            }
        }
        knee_shape_flops(&s, &flops);
        struct knee_params params; /* routers only count as traffic among the operations */
        knee_shape_params(&s, &params);
        assert_true((s.experts > 1) == (params.expert > 0));
        double routers =
            s.experts > 1 ? (s.lora_rank > 0 ? 4 : 6) * (s.layers - s.dense_layers) * params.router
                          : 0;
        assert_relative(products / s.seq + routers, flops.matmul, 0.0005);
        assert_relative(3 * scores / s.seq, flops.attention_causal, 0.002);
    }
}

TEST(a_split_layer_has_the_same_flops_in_all)
{
    struct knee_shape s = shape_of("model llama3-70b");
    struct knee_rates rates = {.cast = 1, .fp8_block = 1, .fp8_row = 1};
    double whole = 0;
    for (double tp = 1; tp <= 8; tp *= 2) {
        struct knee_split split = split_of(&s, &rates, 4096, tp);
        struct knee_operation ops[KNEE_OPERATIONS_MAX];
        size_t count = knee_ops_list(&split, KNEE_OPERATIONS_DENSE, ops);
        double sum = 0;
        for (size_t k = 0; k < count; k++)
            sum += tp * ops[k].flops * ops[k].count;
        whole = tp == 1 ? sum : whole;
        assert_relative(sum, whole, 1e-12);
    }
}

/* Mean pairs over explicit masks. */
TEST(pairs_are_those_of_the_mask)
{
    struct knee_shape s = shape_of("hidden 64 heads 1 layers 6 seq 50 window 12 global-every 3");
    double windowed = 0, all = 0;
    for (int q = 0; q < 50; q++)
        for (int k = 0; k <= q; k++) {
            all++;
            windowed += q - k < 12;
        }
    assert_relative(knee_shape_pairs(&s, true), (all / 3 + windowed * 2 / 3) / 50, 1e-12);
    assert_relative(knee_shape_pairs(&s, false), 50.0 / 3 + 2 * 12 * 2.0 / 3,
                    1e-12); /* both ways */
}

/* Korthikanti et al. 2022, eq. 1: s b h (34 + 5 a s / h) with dropout masks; knee keeps none of
 * the three masks (1 byte each) that newer models do not have. */
TEST(activations_follow_korthikanti)
{
    struct knee_shape s = shape_of("model gpt3-175b");
    struct knee_rates rates = {.logits_bytes = 8};
    struct knee_footprint f;
    struct knee_split split = split_of(&s, &rates, s.seq, 1);
    split.fused = false;
    knee_footprint_of(&split, &f);
    double sbh = s.seq * s.hidden;
    assert_relative(f.kept_bytes[0][KNEE_KEEP], sbh * (32 + 5 * s.heads * s.seq / s.hidden), 1e-9);
    assert_relative(f.kept_bytes[0][KNEE_SELECTIVE], sbh * 32, 1e-9);
    assert_relative(f.kept_bytes[0][KNEE_FULL], 2 * sbh, 1e-9);
    split.tp = 8;
    split.seq_par = true;
    knee_footprint_of(&split, &f);
    assert_relative(f.kept_bytes[0][KNEE_SELECTIVE], sbh * 32 / 8, 1e-9);
}

TEST(what_cannot_be_is_refused)
{
    static const char *const bad[][2] = {{"heads", "10"}, {"topk", "4"}, {"dense-layers", "99"}};
    for (size_t i = 0; i < 3; i++) {
        struct knee_shape shape;
        struct knee_err err;
        knee_shape_init(&shape);
        assert_int_equal(knee_shape_complete(&shape, &err), KNEE_USAGE);
        assert_non_null(strstr(err.what, "shape"));
        shape.hidden = 512;
        shape.kv_heads = 4;
        shape.layers = 12;
        shape.experts = i == 2 ? 8 : NAN;
        assert_ok(knee_keys_set(&knee_shape_keys, &shape, bad[i][0], bad[i][1], KNEE_FLAG, &err));
        assert_int_equal(knee_shape_complete(&shape, &err), KNEE_USAGE);
    }
}

/* ---- Hugging Face ---- */

static const struct {
    const char *preset, *json;
} configs[] = {
    {"llama3-8b",
     "{\"architectures\": [\"LlamaForCausalLM\"], \"attention_bias\": false, \"head_dim\": null,"
     "\"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
     "\"max_position_embeddings\": 131072, \"model_type\": \"llama\", \"num_attention_heads\": 32,"
     "\"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"rope_scaling\": {\"factor\": 8.0,"
     "\"hidden_size\": 1}, \"tie_word_embeddings\": false, \"vocab_size\": 128256}"},
    {"mistral-7b",
     "{\"model_type\": \"mistral\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
     "\"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8,"
     "\"sliding_window\": 4096, \"vocab_size\": 32000, \"max_position_embeddings\": 32768}"},
    {"qwen2.5-7b",
     "{\"model_type\": \"qwen2\", \"hidden_size\": 3584, \"intermediate_size\": 18944,"
     "\"num_attention_heads\": 28, \"num_hidden_layers\": 28, \"num_key_value_heads\": 4,"
     "\"sliding_window\": 131072, \"use_sliding_window\": false, \"tie_word_embeddings\": false,"
     "\"vocab_size\": 152064, \"max_position_embeddings\": 4096}"},
    {"qwen3-30b-a3b",
     "{\"model_type\": \"qwen3_moe\", \"hidden_size\": 2048, \"intermediate_size\": 6144,"
     "\"num_attention_heads\": 32, \"num_hidden_layers\": 48, \"num_key_value_heads\": 4,"
     "\"head_dim\": 128, \"num_experts\": 128, \"num_experts_per_tok\": 8, \"decoder_sparse_step\":"
     "1, \"mlp_only_layers\": [], \"moe_intermediate_size\": 768, \"vocab_size\": 151936}"},
    {"mixtral-8x7b",
     "{\"model_type\": \"mixtral\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
     "\"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8,"
     "\"num_experts_per_tok\": 2, \"num_local_experts\": 8, \"sliding_window\": null,"
     "\"vocab_size\": 32000}"},
    {"deepseek-v3",
     "{\"model_type\": \"deepseek_v3\", \"hidden_size\": 7168, \"intermediate_size\": 18432,"
     "\"num_attention_heads\": 128, \"num_hidden_layers\": 61, \"num_key_value_heads\": 128,"
     "\"first_k_dense_replace\": 3, \"kv_lora_rank\": 512, \"q_lora_rank\": 1536,"
     "\"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"head_dim\": 64,"
     "\"moe_intermediate_size\": 2048, \"n_routed_experts\": 256, \"n_shared_experts\": 1,"
     "\"num_experts_per_tok\": 8, \"vocab_size\": 129280}"},
    {"gpt2",
     "{\"activation_function\": \"gelu_new\", \"model_type\": \"gpt2\", \"n_ctx\": 1024,"
     "\"n_embd\": 768, \"n_head\": 12, \"n_inner\": null, \"n_layer\": 12, \"n_positions\": 1024,"
     "\"vocab_size\": 50257}"},
    {"gemma2-9b",
     "{\"model_type\": \"gemma2\", \"head_dim\": 256, \"hidden_size\": 3584, \"intermediate_size\":"
     "14336, \"num_attention_heads\": 16, \"num_hidden_layers\": 42, \"num_key_value_heads\": 8,"
     "\"sliding_window\": 4096, \"vocab_size\": 256000, \"max_position_embeddings\": 8192}"},
    {"gpt-oss-20b",
     "{\"model_type\": \"gpt_oss\", \"head_dim\": 64, \"hidden_size\": 2880, \"intermediate_size\":"
     "2880, \"num_attention_heads\": 64, \"num_hidden_layers\": 24, \"num_key_value_heads\": 8,"
     "\"num_local_experts\": 32, \"num_experts_per_tok\": 4, \"sliding_window\": 128,"
     "\"layer_types\": [\"sliding_attention\", \"full_attention\"], \"vocab_size\": 201088,"
     "\"attention_bias\": true}"},
    {"llama2-7b", /* inside a model that also sees */
     "{\"model_type\": \"llava\", \"vision_config\": {\"hidden_size\": 1024,"
     "\"num_hidden_layers\": 24}, \"text_config\": {\"model_type\": \"llama\", \"hidden_size\":"
     "4096, \"intermediate_size\": 11008, \"num_attention_heads\": 32, \"num_hidden_layers\": 32,"
     "\"vocab_size\": 32000, \"max_position_embeddings\": 4096}}"},
};

TEST(configs_give_the_presets)
{
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        struct knee_shape shape;
        struct knee_err err;
        char words[64];
        knee_shape_init(&shape);
        if (knee_hf_read(configs[i].json, strlen(configs[i].json), "config.json", &shape, &err))
            fail_msg("%s: %s", configs[i].preset, err.what);
        assert_ok(knee_shape_complete(&shape, &err));
        snprintf(words, sizeof words, "model %s", configs[i].preset);
        struct knee_shape preset = shape_of(words);
        if (params_of(&shape) != params_of(&preset))
            fail_msg("%s: %.0f parameters, not %.0f", configs[i].preset, params_of(&shape),
                     params_of(&preset));
        assert_near(knee_shape_pairs(&shape, true) / shape.seq,
                    knee_shape_pairs(&(struct knee_shape){.seq = shape.seq,
                                                          .window = preset.window,
                                                          .global_every = preset.global_every},
                                     true) /
                        shape.seq,
                    1e-12);
    }
}

/* Models whose layers are not all alike, against what is published of them: Nemotron-H 8B to nearly
 * the last one (its four layers without a feed-forward part are counted with a second norm). */
static const struct {
    const char *name;
    double published, within, layers, linear, dense, bare;
    const char *json;
} mixed[] = {
    {"Nemotron-H-8B", 8100852736, 1e-5, 28, 24, 28, 4,
     "{\"model_type\": \"nemotron_h\", \"hidden_size\": 4096, \"num_hidden_layers\": 52,"
     "\"hybrid_override_pattern\": \"M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-\","
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"attention_head_dim\": 128,"
     "\"intermediate_size\": 21504, \"mamba_num_heads\": 128, \"mamba_head_dim\": 64,"
     "\"n_groups\": 8, \"ssm_state_size\": 128, \"vocab_size\": 131072}"},
    {"Nemotron-3-Nano-30B-A3B", 31.6e9, 0.005, 29, 23, 6, 6,
     "{\"model_type\": \"nemotron_h\", \"hidden_size\": 2688, \"num_hidden_layers\": 52,"
     "\"hybrid_override_pattern\": \"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME\","
     "\"num_attention_heads\": 32, \"num_key_value_heads\": 2, \"head_dim\": 128,"
     "\"mamba_num_heads\": 64, \"mamba_head_dim\": 64, \"n_groups\": 8, \"ssm_state_size\": 128,"
     "\"n_routed_experts\": 128, \"num_experts_per_tok\": 6, \"moe_intermediate_size\": 1856,"
     "\"moe_shared_expert_intermediate_size\": 3712, \"vocab_size\": 131072}"},
    {"Qwen3-Next-80B-A3B", 79.7e9, 0.002, 48, 36, 0, 0,
     "{\"model_type\": \"qwen3_next\", \"hidden_size\": 2048, \"intermediate_size\": 5120,"
     "\"num_hidden_layers\": 48, \"num_attention_heads\": 16, \"num_key_value_heads\": 2,"
     "\"head_dim\": 256, \"full_attention_interval\": 4, \"linear_key_head_dim\": 128,"
     "\"linear_num_key_heads\": 16, \"linear_num_value_heads\": 32, \"linear_value_head_dim\": 128,"
     "\"moe_intermediate_size\": 512, \"num_experts\": 512, \"num_experts_per_tok\": 10,"
     "\"shared_expert_intermediate_size\": 512, \"decoder_sparse_step\": 1, \"mlp_only_layers\": "
     "[],"
     "\"tie_word_embeddings\": false, \"vocab_size\": 151936}"},
    {"Llama 4 Maverick", 400.7e9, 0.002, 48, 0, 24, 0,
     "{\"model_type\": \"llama4\", \"text_config\": {\"model_type\": \"llama4_text\","
     "\"hidden_size\": 5120, \"intermediate_size\": 8192, \"intermediate_size_mlp\": 16384,"
     "\"interleave_moe_layer_step\": 2, \"num_hidden_layers\": 48, \"num_attention_heads\": 40,"
     "\"num_key_value_heads\": 8, \"head_dim\": 128, \"num_local_experts\": 128,"
     "\"num_experts_per_tok\": 1, \"vocab_size\": 202048}}"},
    {"Jamba v0.1", 51.6e9, 0.01, 32, 28, 16, 0,
     "{\"model_type\": \"jamba\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
     "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
     "\"attn_layer_period\": 8, \"attn_layer_offset\": 4, \"expert_layer_period\": 2,"
     "\"num_experts\": 16, \"num_experts_per_tok\": 2, \"mamba_d_state\": 16, \"mamba_expand\": 2,"
     "\"vocab_size\": 65536}"},
};

TEST(configs_of_mixed_layers)
{
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
        struct knee_shape shape;
        struct knee_err err;
        knee_shape_init(&shape);
        if (knee_hf_read(mixed[i].json, strlen(mixed[i].json), "config.json", &shape, &err))
            fail_msg("%s: %s", mixed[i].name, err.what);
        assert_ok(knee_shape_complete(&shape, &err));
        assert_near(shape.layers, mixed[i].layers, 0);
        assert_near(shape.linear_layers, mixed[i].linear, 0);
        assert_near(shape.dense_layers, mixed[i].dense, 0);
        assert_near(shape.bare_layers, mixed[i].bare, 0);
        if (fabs(params_of(&shape) / mixed[i].published - 1) > mixed[i].within)
            fail_msg("%s: %.6g, published %.6g", mixed[i].name, params_of(&shape),
                     mixed[i].published);
    }
}

/* As PEFT prints them for r = 16 on all linear layers of Llama 3 8B; the model itself is frozen. */
TEST(adapters_are_counted)
{
    struct knee_params with, without;
    struct knee_shape tuned = shape_of("model llama3-8b lora 16");
    struct knee_shape shape = shape_of("model llama3-8b");
    knee_shape_params(&tuned, &with);
    knee_shape_params(&shape, &without);
    assert_near(with.trained, 41943040, 0);
    assert_near(with.total, without.total, 0);
    assert_near(without.trained, without.total, 0);
    struct knee_shape quantised = shape_of("model llama3-8b qlora 16");
    knee_shape_params(&quantised, &with);
    assert_near(with.trained, 41943040, 0);
    quantised.lora_rank = 8;
    assert_int_equal(knee_shape_complete(&quantised, NULL), KNEE_USAGE);
}

TEST(flags_win_over_a_config)
{
    struct knee_shape shape;
    struct knee_err err;
    knee_shape_init(&shape);
    knee_keys_set(&knee_shape_keys, &shape, "layers", "4", KNEE_FLAG, &err);
    assert_ok(knee_hf_read(configs[0].json, strlen(configs[0].json), "x", &shape, &err));
    assert_near(shape.layers, 4, 0);
    assert_near(shape.hidden, 4096, 0);
    assert_near(shape.seq, 8192, 0); /* what the model could do is not what it is trained with */
}

/* Beginnings of hybrids that are refused: not said which layers, a pattern too short, without
 * attention, of unknown letters, experts of another width. */
#define HYBRID                                                                                     \
    "{\"hidden_size\": 512, \"num_hidden_layers\": 4, \"num_attention_heads\": 4, "                \
    "\"vocab_size\": 99"

TEST(damaged_configs_are_refused)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "[1, 2",
                                      "{\"hidden_size\": }",
                                      "{\"hidden_size\": 4096}",
                                      "{\"hidden_size\" 4096}",
                                      "{\"hidden_size\": 1e999}",
                                      HYBRID ", \"mamba_n_heads\": 24}",
                                      HYBRID ", \"hybrid_override_pattern\": \"M-*\"}",
                                      HYBRID ", \"hybrid_override_pattern\": \"M-M-\"}",
                                      HYBRID ", \"hybrid_override_pattern\": \"M*-?\"}",
                                      HYBRID ", \"moe_latent_size\": 64}",
                                      "{\"hidden_size\": \"4096",
                                      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct knee_shape shape, before;
        struct knee_err err;
        knee_shape_init(&shape);
        before = shape;
        assert_int_equal(knee_hf_read(bad[i], strlen(bad[i]), "c.json", &shape, &err), KNEE_INPUT);
        assert_memory_equal(&shape, &before, sizeof shape);
        assert_true(strlen(err.what) > 0);
    }
    static const char crowded[] = HYBRID ", \"hybrid_override_pattern\": \"*-EE\"}";
    struct knee_shape shape;
    struct knee_err err;
    knee_shape_init(&shape);
    assert_int_equal(knee_hf_read(crowded, strlen(crowded), "c.json", &shape, &err), KNEE_INPUT);
    assert_non_null(strstr(err.what, "more feed-forward parts than others"));
}

/* ---- Megatron ---- */

TEST(other_text_is_no_megatron_log)
{
    static const char *const bad[] = {"", "hello", "--hidden-size", "a ... b\n", "--hidden-size x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct knee_shape shape;
        struct knee_plan plan;
        struct knee_err err;
        knee_shape_init(&shape);
        knee_plan_init(&plan);
        assert_int_equal(knee_megatron_read((struct knee_named_text){bad[i], strlen(bad[i]), "log"},
                                            &shape, &plan, NULL, &err),
                         KNEE_INPUT);
    }
}

/* ---- JSON ---- */

TEST(json_values_have_paths)
{
    static const char json[] = " {\"a\": {\"b\": [1, {\"c\": \"x\\\"y\"}, true]}, \"d\": null, }";
    static const struct {
        const char *path;
        enum knee_json_kind kind;
    } want[] = {{"a.b[]", KNEE_JSON_NUMBER},
                {"a.b[].c", KNEE_JSON_STRING},
                {"a.b[]", KNEE_JSON_TRUE},
                {"d", KNEE_JSON_NULL}};
    struct knee_json_values v;
    knee_json_values_init(&v, json, sizeof json - 1);
    for (size_t i = 0; i < 4; i++) {
        assert_true(knee_json_values_next(&v));
        assert_string_equal(v.path, want[i].path);
        assert_int_equal(v.kind, want[i].kind);
        if (i == 1)
            assert_string_equal(v.text, "x\"y");
    }
    assert_false(knee_json_values_next(&v));
    assert_null(v.error);
}

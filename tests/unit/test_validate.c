/* SPDX-License-Identifier: MIT */
/*
 * Runs and validation: the table reader, which profile a description gets, statistics and curves by
 * hand, and fits that must find again what was put in.
 */
#include "knee_out.h"
#include "knee_read.h"
#include "unit.h"

#include "base/csv.h"
#include "job/plan.h"
#include "job/profile.h"
#include "predict/calibrate/calibrate.h"

static const char header[] =
    "id,set,source,notes,gpu,gpus_per_node,n_gpus,model,precision,global_batch,micro_batch,tp,pp,"
    "zero,seq_par,recompute,overlap,step_time_s,curve,config_full\n";

static struct knee_runs runs_of(const char *rows)
{
    struct knee_runs runs;
    struct knee_err err;
    char text[65536];
    int length = snprintf(text, sizeof text, "%s%s", header, rows);
    if (knee_runs_read((struct knee_named_text){text, (size_t)length, "runs.csv"}, NULL, NULL,
                       &runs, &err))
        fail_msg("%s: %s", err.where, err.what);
    return runs;
}

/* ---- CSV ---- */

TEST(csv_as_spreadsheets_write_it)
{
    static const char text[] = "\xef\xbb\xbf"
                               "a,\"b,c\",\"say \"\"hi\"\"\"\r\n"
                               "\n"
                               "1,\"two\nlines\",  padded  \n"
                               "last,,\"open";
    static const char *const rows[][3] = {
        {"a", "b,c", "say \"hi\""}, {"1", "two lines", "padded"}, {"last", "", "open"}};
    struct knee_csv csv;
    char field[64];
    knee_csv_init(&csv, text, sizeof text - 1);
    for (size_t row = 0; row < 3; row++) {
        assert_true(knee_csv_row(&csv));
        assert_int_equal(csv.fields, 3);
        assert_true(row != 1 || csv.line == 3);
        for (size_t i = 0; i < 3; i++) {
            knee_csv_text(&csv, i, field, sizeof field);
            assert_string_equal(field, rows[row][i]);
        }
    }
    knee_csv_text(&csv, 9, field, sizeof field);
    assert_string_equal(field, "");
    assert_false(knee_csv_row(&csv));
}

TEST(tables_that_are_none_are_refused)
{
    static const char *const bad[] = {"", "\n\n", "a,b,c\n1,2,3\n", "n_gpus,step_time_s\n",
                                      "{\"mb\": }\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct knee_runs runs = {0};
        struct knee_err err;
        assert_int_equal(knee_runs_read((struct knee_named_text){bad[i], strlen(bad[i]), "x.csv"},
                                        NULL, NULL, &runs, &err),
                         KNEE_INPUT);
        assert_null(runs.run);
        assert_true(strlen(err.what) > 0);
    }
}

/* ---- Rows ---- */

TEST(words_of_a_row_are_understood)
{
    OWNED(knee_runs) runs = runs_of(
        "a,s,NeMo 24.07 summary,,H100-SXM5-80GB,8,64,llama3-70b,fp8-cs,128,1,4,8,1,1,none,"
        "DP+TP,10,,Y\n"
        "b,s,torchtitan,FSDP eager,H100-96GB-HBM2e-500W,8,8,llama3-8b,bf16,16,2,1,1,fsdp(zero3),0,"
        "selective(op),FSDP2 prefetch,3,,Y\n"
        "c,s,Megatron-LM README,,A100-SXM4-40GB,8,8,gpt2-xl,fp16,64,8,8,1,0,0,full,none,1,,\"N "
        "(vp)\"\n"
        "d,s,MaxText,,TPU-v4,256,256,llama3-8b,bf16,256,1,1,1,fsdp,0,full,XLA,1,,Y\n"
        "e,s,x,,h100,8,8,llama3-8b,tf32,16,2,1,1,0,0,none,,3,,Y\n"
        "f,s,x,,h100,8,8,unknown,bf16,16,2,1,1,0,0,none,,3,,Y\n"
        "g,s,x,,h100,8,7,llama3-8b,bf16,16,2,2,1,0,0,none,,3,,Y\n"
        "h,s,x,,h100,8,8,llama3-8b,bf16,16,2,1,1,0,0,none,,,,Y\n"
        "i,s,x,,h100,8,8,llama3-8b,bf16,16,two,1,1,0,0,none,,3,,Y\n");
    const struct knee_measured_run *r = runs.run;
    assert_int_equal(runs.count, 9);
    assert_string_equal(knee_profile_at((size_t)r[0].platform.profile)->name, "nemo-24.07");
    assert_int_equal(r[0].plan.precision, KNEE_FP8);
    assert_int_equal(r[0].plan.shard, KNEE_ZERO1);
    assert_near(r[0].plan.dp, 2, 0);
    assert_near(r[0].plan.vp, 10, 0); /* as finely as 80 layers on 8 stages allow */
    assert_non_null(strstr(r[0].assumed, "vp"));
    assert_string_equal(knee_profile_at((size_t)r[1].platform.profile)->name, "torchtitan");
    assert_int_equal(r[1].plan.recompute, KNEE_BY_OP);
    assert_int_equal(r[1].plan.shard, KNEE_ZERO3);
    assert_near(r[1].platform.power_cap_w, 500, 0);
    assert_near(r[1].platform.memory_bytes, 96e9, 0);
    assert_near(r[1].platform.hw.memory_bytes_per_s, 2.4e12, 0);
    assert_string_equal(knee_profile_at((size_t)r[2].platform.profile)->name, "megatron-lm");
    assert_string_equal(knee_gpu_at((size_t)r[2].platform.hw.gpu)->name, "a100-40");
    assert_near(r[2].plan.overlap_dp, 0, 0);
    assert_false(r[2].full_config);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(i == 2 ? "" : r[i].skipped, "");
    static const char *const why[] = {"TPU-v4", "tf32",      "unknown",
                                      "divide", "step time", "not a number"};
    for (size_t i = 0; i < 6; i++)
        if (!strstr(r[3 + i].skipped, why[i]))
            fail_msg("row %zu: '%s' does not say %s", 3 + i, r[3 + i].skipped, why[i]);
}

/* The switches of a recipe: as words, as 0 and 1, and in the words of older tables. NaN: not said.
 */
TEST(switches_of_a_recipe_are_understood)
{
    static const struct {
        const char *cells; /* graphs, scope, ep_overlap, dispatcher, modules, fp8, layout, ... */
        double graphs, overlap_ep, dedup, fp8_attention, vp;
        bool modules, assumed;
    } cases[] = {
        {",,,,,,,,", NAN, NAN, NAN, NAN, NAN, false, false},
        {"0,,0,0,0,0,,,", 0, 0, 0, 0, NAN, false, false},
        {"1,,1,1,,1,,,", 0.9, 1, 1, 1, NAN, false, false},
        {"0.25,,true,deepep,layernorm+moe_act,yes,,,", 0.25, 1, 1, 1, NAN, true, false},
        {"none,,false,alltoall,none,no,,,", 0, 0, 0, 0, NAN, false, false},
        {"full_iteration,,,hybridep,,,,,", 0.98, NAN, 1, NAN, NAN, false, false},
        {"transformer_engine,attn moe_router,,,nonsense,,,,3", 0.7, NAN, 0, NAN, NAN, false, true},
        {"transformer_engine,mlp,,,,,,,0", 0.7, NAN, NAN, NAN, NAN, false, false},
        {"transformer_engine,moe_router,,,,,,,", 0.4, NAN, NAN, NAN, NAN, false, false},
        {"transformer_engine,,,,,,Et*4|(t*4|)*14tmL,,", 0.9, NAN, NAN, NAN, 8, false, false},
        {",,,,,,t|(t|t|)t(t|)t,,", NAN, NAN, NAN, NAN, 2, false, false},
        {",,,,,,,cuda graph; moe 1f1b overlap; hybrid_ep; fp8 attention,", 0.9, 1, 1, 1, NAN, false,
         false},
        {",,,,,,,no cuda graph,", 0, NAN, NAN, NAN, NAN, false, false},
        {",,,,,,,full-iteration cuda graph,", 0.98, NAN, NAN, NAN, NAN, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        struct knee_err err;
        OWNED(knee_runs) runs = {0};
        int length = snprintf(
            text, sizeof text,
            "id,set,source,gpu,gpus_per_node,n_gpus,model,precision,global_batch,micro_batch,tp,pp,"
            "zero,recompute,step_time_s,config_full,cuda_graphs,graph_scope,ep_overlap,dispatcher,"
            "recompute_modules,fp8_attention,pipeline_layout,switches,match\n"
            "a,s,Megatron-Bridge,h100,8,16,llama3-8b,bf16,64,1,1,2,1,none,1,Y,%s\n",
            cases[i].cells);
        assert_ok(knee_runs_read((struct knee_named_text){text, (size_t)length, "r.csv"}, NULL,
                                 NULL, &runs, &err));
        const struct knee_plan *plan = &runs.run[0].plan;
        const double found[] = {plan->graphs, plan->overlap_ep, plan->dedup, plan->fp8_attention},
                     wanted[] = {cases[i].graphs, cases[i].overlap_ep, cases[i].dedup,
                                 cases[i].fp8_attention};
        for (size_t k = 0; k < 4; k++)
            if (!(isnan(wanted[k]) || found[k] == wanted[k]))
                fail_msg("%s: switch %zu is %g, not %g", cases[i].cells, k, found[k], wanted[k]);
        if (!isnan(cases[i].vp))
            assert_near(plan->vp, cases[i].vp, 0);
        assert_int_equal(plan->modules > 0, cases[i].modules);
        assert_int_equal(strstr(runs.run[0].assumed, "recompute_modules") != NULL,
                         cases[i].assumed);
    }
}

TEST(profiles_by_description)
{
    static const struct {
        const char *text, *gpu, *precision, *profile;
    } rows[] = {
        {"dgxc; nvidia dgxc-benchmarking v24.11.1; nemo 24.09; dp+tp", "h100", "bf16",
         "nemo-24.09"},
        {"nvidia dgxc-benchmarking v25.05.05 grok1", "h100", "fp8", "nemo-25.04"},
        {"nemo 24.05 performance summary", "h100", "fp8", "nemo-24.03"},
        {"nemo 23.11", "h100", "fp8", "nemo-24.03"},
        {"megatron-bridge performance summary, container 26.02.01", "gb200", "fp8-cs",
         "megatron-bridge-26.02.01"},
        {"megatron-bridge performance summary, container 26.03", "gb200", "mxfp8",
         "megatron-bridge-26.02.01"},
        {"megatron-bridge performance summary, container 26.08", "gb200", "mxfp8",
         "megatron-bridge-26.06"},
        {"megatron-bridge performance summary, container 26.08", "h100", "fp8-cs",
         "megatron-bridge-26.06"},
        {"mlperf training v6.0 (nvidia submission)", "gb300", "mxfp8", "mlperf-6"},
        {"mlperf training v5.0 (nvidia nemo submission)", "gb200", "fp8", "nemo"},
        {"megatron-bridge", "gb300", "bf16", "megatron-bridge"},
        {"paxml on dgxc v24.11.1", "h100", "bf16", "paxml"},
        {"megatron-lm readme", "a100", "fp16", "megatron-lm"},
        {"megatron-lm readme", "h100", "bf16", "megatron-core"},
        {"vtrain; megatron-deepspeed, 1f1b", "a100", "fp16", "megatron-deepspeed"},
        {"llm-foundry mfu=26.11%", "a100", "bf16", "llm-foundry"},
        {"something home-grown with fsdp", "a100", "bf16", "fsdp"},
        {"nobody has heard of it", "a100", "bf16", "generic"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int row = knee_profile_pick(rows[i].text, rows[i].gpu, rows[i].precision);
        assert_true(row >= 0);
        assert_string_equal(knee_profile_at((size_t)row)->name, rows[i].profile);
    }
}

/* Every name in the tables refers to something, and every constant is known for every GPU. */
TEST(tables_are_whole)
{
    for (size_t i = 0; i < knee_constants_count; i++) {
        const struct knee_constant *c = &knee_constants[i];
        size_t row = 0;
        while (row < knee_rates_keys.count &&
               strcmp(knee_rates_keys.rows[row].name, c->constant) != 0)
            row++;
        if (row == knee_rates_keys.count)
            fail_msg("there is no constant %s", c->constant);
        const struct knee_key *key = &knee_rates_keys.rows[row];
        assert_true(c->op[0] == '*' || (c->value >= key->min && c->value <= key->max));
        assert_true(isnan(c->prior) == isnan(c->sigma));
        if (strcmp(c->scope, "profile") == 0)
            assert_true(knee_profile_row(c->owner) >= 0);
    }
    for (size_t i = 0; i < knee_profiles_count; i++) {
        const struct knee_profile *p = &knee_profiles[i];
        assert_true(!p->base[0] ||
                    (knee_profile_row(p->base) >= 0 && knee_profile_row(p->base) < (int)i));
    }
    for (size_t i = 0; i < knee_profile_rules_count; i++)
        assert_true(knee_profile_row(knee_profile_rules[i].profile) >= 0);
    const struct knee_gpu *gpu;
    for (size_t g = 0; (gpu = knee_gpu_at(g)); g++) {
        assert_true(knee_architecture_of(gpu->name)[0]);
        for (size_t p = 0; p < knee_profiles_count; p++) {
            struct knee_recipe recipe;
            struct knee_rates rates;
            knee_recipe_init(gpu->name, (int)p, &recipe);
            assert_true(recipe.count < KNEE_RECIPE_MAX - 16);
            knee_rates_resolve(&recipe, NULL, &rates);
            for (size_t k = 0; k < knee_rates_keys.count; k++) {
                double value = *(double *)(void *)((char *)&rates + knee_rates_keys.rows[k].offset);
                if (isnan(value))
                    fail_msg("%s has no %s", gpu->name, knee_rates_keys.rows[k].name);
            }
        }
    }
}

/* A row says =, * on what its base has, or ^ by the years from 2025 to its version: 24.03 is nine
 * months before. */
TEST(constants_are_inherited)
{
    struct knee_recipe recipe;
    struct knee_rates base, child;
    knee_recipe_init("h100", knee_profile_row("nemo"), &recipe);
    knee_rates_resolve(&recipe, NULL, &base);
    knee_recipe_init("h100", knee_profile_row("nemo-24.03"), &recipe);
    knee_rates_resolve(&recipe, NULL, &child);
    double yearly = NAN;
    for (size_t i = 0; i < knee_constants_count; i++)
        if (strcmp(knee_constants[i].constant, "gemm") == 0 &&
            strcmp(knee_constants[i].op, "^") == 0)
            yearly = knee_constants[i].value;
    assert_relative(child.gemm, base.gemm * pow(yearly, -0.75), 1e-12);
    assert_near(child.elementwise, base.elementwise, 0);
}

/* ---- Validation ---- */

/* Four rows whose measured times are set from what is predicted, so that every figure is known. */
static struct knee_runs known_errors(const double *error, size_t count)
{
    struct knee_runs runs =
        runs_of("r8,a,x,,h100,8,8,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,job,Y\n"
                "r16,a,x,,h100,8,16,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,job,Y\n"
                "r32,b,x,,h100,8,32,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,job,Y\n"
                "t1,b,x,,TPU-v4,8,32,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n"
                "m1,b,x,,h100,8,32,qwen3-30b-a3b,bf16,128,1,1,1,1,0,none,DP,1,modelscale:z,N\n");
    struct knee_validation v;
    struct knee_err err;
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &v, &err));
    for (size_t i = 0, k = 0; i < runs.count; i++)
        if (!runs.run[i].skipped[0] && k < count)
            runs.run[i].step_s = v.result[i].predicted_s / (1 + error[k++]);
    knee_validation_release(&v);
    return runs;
}

TEST(statistics_by_hand)
{
    static const double error[] = {0.02, -0.04, 0.08, 0.3};
    OWNED(knee_runs) runs = known_errors(error, 4);
    OWNED(knee_validation) v;
    struct knee_err err;
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &v, &err));
    assert_int_equal(v.all.rows, 4);
    assert_int_equal(v.skipped, 1);
    assert_int_equal(v.full, 4);
    assert_int_equal(v.skipped_full, 1);
    assert_near(v.all.mape, 0.11, 1e-12);
    assert_near(v.all.median, 0.06, 1e-12);
    assert_near(v.all.bias, 0.09, 1e-12);
    assert_near(v.all.within_5, 0.5, 1e-12);
    assert_near(v.all.within_10, 0.75, 1e-12);
    assert_near(v.dense.mape, 0.14 / 3, 1e-12);
    assert_near(v.moe.mape, 0.3, 1e-12);
    assert_int_equal(v.source_count, 2);
    assert_near(v.source[0].mape, 0.03, 1e-12);
    assert_int_equal(v.gpu_count, 2);
    assert_int_equal(v.gpu[1].rows, 0);
    /* E(K) against the smallest count: only the ratio of the errors is left */
    assert_int_equal(v.curve_count, 1);
    assert_int_equal(v.curve_rows, 2);
    assert_near(v.curve[0].anchor_gpus, 8, 0);
    double e16 = 1.02 / 0.96 - 1, e32 = 1.02 / 1.08 - 1;
    assert_near(v.result[1].curve_error, e16, 1e-12);
    assert_near(v.result[2].curve_error, e32, 1e-12);
    assert_near(v.curve_mape, (fabs(e16) + fabs(e32)) / 2, 1e-12);
}

/* Five plans of one job, measured so that the one predicted fastest is the third, the best of the
 * first three is 2 % behind the fastest, and pairs can be counted by hand. */
TEST(decisions_by_hand)
{
    static const double measured[] = {1.5, 1.02, 1.2, 1, 2}; /* in the order predicted */
    OWNED(knee_runs) runs = runs_of("a,s,x,,h100,8,8,llama3-8b,bf16,128,1,8,1,1,1,none,DP,1,,Y\n"
                                    "b,s,x,,h100,8,8,llama3-8b,bf16,128,1,4,1,1,1,none,DP,1,,Y\n"
                                    "c,s,x,,h100,8,8,llama3-8b,bf16,128,1,2,1,1,1,none,DP,1,,Y\n"
                                    "d,s,x,,h100,8,8,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n"
                                    "e,s,x,,h100,8,8,llama3-8b,bf16,128,1,1,8,1,0,full,DP,1,,Y\n"
                                    "f,s,x,,h100,8,16,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n");
    OWNED(knee_validation) v;
    struct knee_err err;
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &v, &err));
    for (size_t i = 0; i < 5; i++) {
        size_t faster = 0;
        for (size_t k = 0; k < 5; k++)
            faster += v.result[k].predicted_s < v.result[i].predicted_s;
        runs.run[i].step_s = measured[faster];
    }
    knee_validation_release(&v);
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &v, &err));
    assert_int_equal(v.decisions.jobs, 1); /* the sixth row is alone in its job */
    assert_near(v.decisions.regret, 0.5, 1e-12);
    assert_near(v.decisions.regret_of_three, 0.02, 1e-12);
    assert_near(v.decisions.regret_of_any, 6.72 / 5 - 1, 1e-12);
    assert_near(v.decisions.near_best, 1, 0);
    assert_int_equal(v.decisions.pairs, 9); /* 1.02 and 1 are too close to ask about */
    assert_near(v.decisions.pairs_right, 5.0 / 9, 1e-12);
    assert_int_equal(v.room.ran, 6);
    assert_int_equal(v.room.measured, 0);
}

/* Twenty runs of two sources: the band of the first holds what its quantiles say, and nothing of
 * the second, which is far off. */
TEST(bands_by_hand)
{
    char rows[4096] = "";
    for (int i = 0; i < 22; i++) {
        char row[160];
        snprintf(row, sizeof row, "r%d,%s,x,,h100,8,%d,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n",
                 i, i < 20 ? "near" : "far", 8);
        strcat(rows, row);
    }
    OWNED(knee_runs) runs = runs_of(rows);
    OWNED(knee_validation) v;
    struct knee_err err;
    double room[22];
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &v, &err));
    for (int i = 0; i < 22; i++) { /* measured over predicted: 0.91 ... 1.10, and 3 */
        v.result[i].held_out_error = 1 / (i < 20 ? 0.91 + 0.01 * i : 3) - 1;
        v.result[i].held_out_spread = 0.1;
    }
    knee_judge_bands(&v, room);
    /* the profile of an unnamed framework is generic, so something is assumed */
    const struct knee_run_band *band = &v.left_out_band[1];
    assert_int_equal(v.left_out_band[0].rows, 0);
    assert_int_equal(band->rows, 22);
    assert_int_equal(band->sources, 2);
    assert_near(band->high, 3, 1e-12); /* the 22nd of 22: ceil(0.95 x 23) */
    assert_near(band->low, 0.91, 1e-12);
    assert_near(band->covered_left_out, 0, 0); /* neither source tells anything of the other */
    for (int i = 0; i < 22; i++)
        v.result[i].held_out_error = 1 / (0.91 + 0.01 * (i % 11)) - 1;
    knee_judge_bands(&v, room);
    assert_near(band->covered_left_out, 2.0 / 22 + 2.0 / 22, 1e-12);
}

/* A class of one source has nobody to be judged by: it takes the others' residuals in units of
 * their spread, times its own, whatever it measured itself. */
TEST(bands_that_are_borrowed)
{
    char rows[8192] = "";
    for (int i = 0; i < 42; i++) {
        char row[160];
        snprintf(row, sizeof row, "r%d,%s%d,x,,h100,8,%d,%s,bf16,128,1,1,1,1,0,none,DP,1,,Y\n", i,
                 i < 40 ? "dense" : "moe", i < 40 ? i % 5 : 0, 8,
                 i < 40 ? "llama3-8b" : "mixtral-8x7b");
        strcat(rows, row);
    }
    OWNED(knee_runs) runs = runs_of(rows);
    OWNED(knee_validation) v;
    struct knee_err err;
    double room[42];
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &v, &err));
    for (int i = 0; i < 42; i++) { /* two spreads away from what is predicted, on either side */
        v.result[i].held_out_spread = i < 40 ? 0.05 : 0.2;
        v.result[i].held_out_error = expm1((i % 2 ? 2 : -2) * v.result[i].held_out_spread);
    }
    knee_judge_bands(&v, room);
    const struct knee_run_band *dense = &v.left_out_band[1], *moe = &v.left_out_band[2];
    assert_int_equal(moe->rows, 2);
    assert_int_equal(moe->sources, 1);
    assert_near(dense->high, exp(0.1), 1e-12);
    assert_near(moe->high, exp(0.4), 1e-12);
    assert_near(moe->low, exp(-0.4), 1e-12);
    assert_near(moe->covered_left_out, 1, 0);
    for (int i = 40; i < 42; i++)
        v.result[i].held_out_error = expm1(0.5); /* further off than its spread says */
    knee_judge_bands(&v, room);
    assert_near(moe->covered_left_out, 0, 0);
}

/* Naming the software narrows the interval, with experts and without. */
TEST(named_software_is_surer)
{
    for (int experts = 0; experts < 2; experts++) {
        struct knee_shape shape = {.experts = experts ? 8 : 0};
        const struct knee_band *unnamed =
                                   &knee_bands[knee_band_class_of(&shape, KNEE_BASIS_UNNAMED)],
                               *known = &knee_bands[knee_band_class_of(&shape, KNEE_BASIS_KNOWN)];
        assert_true(known != unnamed);
        assert_true(known->high / known->low < unnamed->high / unnamed->low);
    }
}

/* Plans that other software than the priced one runs have their own interval. */
TEST(a_plan_tells_of_its_software)
{
    struct knee_shape shape = {.seq = 4096};
    struct knee_plan plan = {.tp = 2, .pp = 1, .cp = 1, .gpus = 8, .seq_par = 1};
    assert_int_equal(knee_plan_basis(&plan, &shape, KNEE_BASIS_UNNAMED), KNEE_BASIS_UNNAMED);
    plan.seq_par = 0;
    assert_int_equal(knee_plan_basis(&plan, &shape, KNEE_BASIS_UNNAMED), KNEE_BASIS_UNNAMED_OTHER);
    plan.tp = 1;
    assert_int_equal(knee_plan_basis(&plan, &shape, KNEE_BASIS_UNNAMED), KNEE_BASIS_UNNAMED);
    plan.shard = KNEE_ZERO2;
    assert_int_equal(knee_plan_basis(&plan, &shape, KNEE_BASIS_UNNAMED), KNEE_BASIS_UNNAMED_OTHER);
    assert_int_equal(knee_plan_basis(&plan, &shape, KNEE_BASIS_KNOWN), KNEE_BASIS_KNOWN);
}

/* A source that is far off says what it alone has; one that is near needs no reason. */
TEST(far_sources_have_reasons)
{
    OWNED(knee_runs) runs =
        runs_of("a,x,megatron-lm,,h100,8,8,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n"
                "b,x,megatron-lm,,h100,8,8,llama3-8b,fp8,128,1,1,1,1,0,none,DP,1,,Y\n"
                "c,y,megatron-lm,,h100,8,8,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n"
                "d,z,megatron-lm,,h100,8,8,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n");
    static const double error[] = {0.1, -0.6, 0.3, 0.02};
    char why[2 * KNEE_RUN_TEXT];
    OWNED(knee_validation) v;
    struct knee_err err;
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &v, &err));
    assert_false(knee_held_out_reason(&v, 0, why)); /* not asked */
    for (size_t i = 0; i < 4; i++)
        v.result[i].held_out_error = error[i];
    for (size_t i = 0; i < v.source_count; i++) {
        v.held_out[i] = v.source[i];
        v.held_out[i].mape = i == 0 ? 0.35 : fabs(error[i + 1]);
    }
    assert_true(knee_held_out_reason(&v, 0, why));
    assert_string_equal(why, "1 of 2 rows; the precision of 1 of them (fp8) is in no other source");
    assert_true(knee_held_out_reason(&v, 1, why));
    assert_non_null(strstr(why, "no reason known"));
    assert_false(knee_held_out_reason(&v, 2, why));
}

/* Adapters and hybrids that a table names: the first are taken with a usual rank, which is said;
 * the second only where their layers are known. */
TEST(layers_that_columns_do_not_have)
{
    OWNED(knee_runs) runs =
        runs_of("a,x,sft with LoRA,,h100,8,8,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n"
                "b,x,an exploration,,h100,8,8,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n"
                "c,x,z,,h100,8,8,nemotron-h-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n"
                "d,x,z,,h100,8,8,nemotron-h-99b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n");
    assert_near(runs.run[0].shape.lora_rank, 16, 0);
    assert_non_null(strstr(runs.run[0].assumed, "lora_rank"));
    assert_near(runs.run[1].shape.lora_rank, 0, 0);
    assert_near(runs.run[2].shape.linear_layers, 24, 0);
    assert_string_equal(runs.run[2].skipped, "");
    assert_true(runs.run[3].skipped[0] != '\0');
}

/* What is left open of a prediction shrinks with every run that counts, and without any it is what
 * the priors say. */
TEST(what_a_fit_leaves_open)
{
    OWNED(knee_runs) runs = runs_of("a,s,x,,h100,8,8,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n"
                                    "b,s,x,,h100,8,8,llama3-8b,bf16,64,1,1,1,1,0,none,DP,1,,Y\n"
                                    "c,s,x,,a100,8,8,llama3-8b,bf16,64,1,1,1,1,0,none,DP,1,,Y\n"
                                    "d,s,x,,h100,8,8,llama3-8b,bf16,32,1,1,1,1,0,none,DP,1,,Y\n");
    OWNED(knee_fit) fit;
    struct knee_err err;
    double spread[4], before = INFINITY;
    assert_ok(knee_fit_init(&fit, &runs, KNEE_FIT_SHIPPED, NULL, &err));
    for (size_t known = 0; known < 4; known++) {
        for (size_t i = 0; i < 4; i++)
            fit.use[i] = i < known;
        knee_fit_predict(&fit);
        for (size_t i = 0; i < 4; i++)
            runs.run[i].step_s = fit.predicted_s[i]; /* so that nothing is missed */
        knee_fit_spread(&fit, spread);
        for (size_t i = 0; i < known; i++)
            assert_true(isnan(spread[i]));
        assert_true(spread[3] > 0 && spread[3] < before + 1e-12);
        if (known == 1)
            assert_true(spread[3] < 0.7 * before); /* nearly the same run */
        before = spread[3];
    }
}

/* Two sources of one curve each, at 2, 4, ... times their anchor; residuals put in by hand are
 * found again, over the root of the doublings, and each source is held against the other's. */
TEST(curve_bands_by_hand)
{
    char rows[4096] = "";
    for (int i = 0; i < 12; i++) {
        char row[160];
        snprintf(row, sizeof row,
                 "r%d,%s,x,,h100,8,%d,llama3-8b,bf16,4096,1,1,1,1,0,none,DP,1,%s,Y\n", i,
                 i < 6 ? "near" : "far", 8 << i % 6, i < 6 ? "a" : "b");
        strcat(rows, row);
    }
    OWNED(knee_runs) runs = runs_of(rows);
    OWNED(knee_validation) v;
    struct knee_err err;
    double room[12];
    for (int i = 0; i < 12; i++)
        runs.run[i].same_job = true;
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &v, &err));
    assert_int_equal(v.result[0].anchor, SIZE_MAX);
    for (int i = 0; i < 12; i++) { /* log(E measured / E predicted) = +-0.1 wherever it is */
        double off = i % 6 == 0 ? 0 : i < 6 ? 0.1 : -0.1;
        runs.run[i].step_s = exp(-off) * v.result[i].predicted_s;
        v.result[i].held_out_s = v.result[i].predicted_s;
    }
    knee_judge_doubts(&v, room);
    const struct knee_run_band *band = &v.left_out_doubt[KNEE_DOUBT_CURVE_ASSUMED];
    assert_int_equal(v.left_out_doubt[KNEE_DOUBT_CURVE].rows, 0); /* the software is not named */
    assert_int_equal(band->rows, 10);
    assert_int_equal(band->sources, 2);
    assert_near(band->low, exp(-0.1), 1e-9);
    assert_near(band->high, exp(0.1), 1e-9);
    assert_near(band->covered_left_out, 0, 0);
    /* the shipped interval of E(K) is as wide at every count */
    struct knee_sure one = v.result[1].efficiency, four = v.result[4].efficiency;
    double first = one.high / v.result[1].predicted_efficiency;
    assert_near(four.high / v.result[4].predicted_efficiency, first, 1e-9);
    assert_true(v.result[1].bytes.low < v.result[1].predicted_bytes);
}

/* ---- Fits ---- */

/* Runs that a machine with other constants would have had. */
static struct knee_runs synthetic(double gemm, double elementwise)
{
    char text[16384];
    size_t used = 0;
    static const char *const model[] = {"llama3-8b", "llama2-13b", "qwen2.5-7b", "llama2-7b"};
    for (int i = 0; i < 40; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            "r%d,s%d,NeMo 25.04,,h100,8,%d,%s,bf16,%d,%d,%d,1,1,0,none,DP,1,,Y\n", i, i % 4,
            8 << (i % 3), model[i % 4], 256 << (i % 2), 1 + i % 2, 1 << (i % 2));
    struct knee_runs runs = runs_of(text);
    for (size_t i = 0; i < runs.count; i++) {
        struct knee_measured_run *run = &runs.run[i];
        struct knee_machine machine;
        struct knee_plan_cost cost;
        assert_string_equal(run->skipped, "");
        assert_ok(knee_machine_init(&run->platform, NULL, &machine, NULL));
        machine.rates.gemm *= gemm;
        machine.rates.elementwise *= elementwise;
        knee_plan_price(&run->shape, &machine, &run->plan, &cost);
        run->step_s = cost.step_s;
    }
    return runs;
}

TEST(calibration_finds_what_was_put_in)
{
    OWNED(knee_runs) runs = synthetic(0.8, 1.5);
    struct knee_rates rates;
    struct knee_platform platform;
    struct knee_machine machine;
    struct knee_validation before, after;
    struct knee_err err;
    assert_ok(knee_calibrate(&runs, NULL, &rates, &platform, &err));
    assert_ok(knee_machine_init(&platform, NULL, &machine, &err));
    assert_relative(rates.gemm, 0.8 * machine.rates.gemm, 0.03);
    assert_true(rates.elementwise > 1.1 * machine.rates.elementwise); /* gaps tell much the same */
    assert_true(isnan(rates.gemm_16bit)); /* not one of those that are fitted */
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &before, &err));
    assert_ok(knee_validate(&runs, &rates, 0.8, NULL, &after, &err));
    assert_true(before.all.mape > 0.1);
    assert_true(after.all.mape < 0.01);
    knee_validation_release(&before);
    knee_validation_release(&after);
    /* as YAML and back */
    OWNED(knee_text) text = {0};
    knee_write_rates(&rates, &platform, &text);
    struct knee_rates back;
    memset(&back, 0, sizeof back);
    for (size_t i = 0; i < knee_rates_keys.count; i++)
        *(double *)(void *)((char *)&back + knee_rates_keys.rows[i].offset) = NAN;
    knee_status status =
        knee_yaml_read((struct knee_named_text){text.data, text.length, "mine.yaml"},
                       &knee_rates_keys, &back, sizeof back, &err);
    if (status != KNEE_SYSTEM) { /* built without libyaml */
        assert_ok(status);
        assert_near(back.gemm, rates.gemm, 0);
        assert_near(back.gap_s, rates.gap_s, 0);
    }
}

TEST(nothing_to_fit_is_said)
{
    OWNED(knee_runs) runs =
        runs_of("t,b,x,,TPU-v4,8,32,llama3-8b,bf16,128,1,1,1,1,0,none,DP,1,,Y\n");
    struct knee_rates rates;
    struct knee_platform platform;
    struct knee_err err;
    assert_int_equal(knee_calibrate(&runs, NULL, &rates, &platform, &err), KNEE_INPUT);
}

/* A source that is held out does not influence its own prediction: spoiling its rows changes
 * nothing but the others' figures. */
TEST(held_out_means_held_out)
{
    OWNED(knee_runs) runs = synthetic(0.9, 1);
    OWNED(knee_validation) a, b;
    struct knee_err err;
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &a, &err));
    assert_ok(knee_cross_validate(&a, 0, 1, NULL, NULL, &err));
    assert_true(a.held_out_all.rows == runs.count);
    assert_true(a.held_out_all.mape < a.all.mape); /* the others tell that products are slower */
    for (size_t i = 0; i < runs.count; i++)
        if (strcmp(runs.run[i].source, "s2") == 0)
            runs.run[i].step_s *= 3;
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &b, &err));
    assert_ok(knee_cross_validate(&b, 0, 1, NULL, NULL, &err));
    for (size_t i = 0; i < runs.count; i++)
        if (strcmp(runs.run[i].source, "s2") == 0)
            assert_near(a.result[i].held_out_s, b.result[i].held_out_s, 0);
}

/* Whichever allocation fails: it is the system's failure, and what was there before is as it was.
 */
TEST(out_of_memory_leaves_no_half)
{
    struct knee_err err;
    static const char csv[] = "gpu,n_gpus,step_time_s\nh100,8,1\n";
    static const char lines[] = "{\"hidden\": 1024, \"fwd_ms\": 1}\n";
    for (size_t at = 1; at < 4; at++)
        for (int l = 0; l < 2; l++) {
            struct failing f = {.fail_at = at};
            struct knee_alloc alloc = {failing_resize, &f};
            struct knee_runs runs;
            const char *text = l ? lines : csv;
            knee_status status = knee_runs_read((struct knee_named_text){text, strlen(text), "x"},
                                                "h100", &alloc, &runs, &err);
            assert_int_equal(status, f.calls >= at ? KNEE_SYSTEM : KNEE_OK);
            if (!status)
                knee_runs_release(&runs);
            assert_int_equal(f.live, 0);
        }
    OWNED(knee_runs) runs = synthetic(0.9, 1);
    for (size_t at = 1;; at++) {
        struct failing f = {0};
        struct knee_alloc alloc = {failing_resize, &f};
        struct knee_validation v;
        assert_ok(knee_validate(&runs, NULL, 0.8, &alloc, &v, &err));
        f.calls = 0;
        f.fail_at = at;
        knee_status status = knee_cross_validate(&v, 0, 1, NULL, NULL, &err);
        for (size_t i = 0; status && i < runs.count; i++)
            assert_true(isnan(v.result[i].held_out_s));
        assert_true(status == KNEE_OK || status == KNEE_SYSTEM);
        knee_validation_release(&v);
        assert_int_equal(f.live, 0);
        if (!status)
            break;
    }
}

/* Parts put together are what one alone finds, to the last bit. */
TEST(parts_make_the_whole)
{
    enum { PARTS = 3 };
    struct knee_runs runs = synthetic(0.9, 1);
    struct knee_validation whole, part;
    struct knee_err err;
    size_t size = runs.count * sizeof *whole.result, done = 0;
    struct knee_run_result *results = malloc(PARTS * size);
    assert_non_null(results);
    assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &whole, &err));
    assert_ok(knee_cross_validate(&whole, 0, 1, NULL, NULL, &err));
    for (size_t i = 0; i < PARTS; i++) {
        assert_ok(knee_validate(&runs, NULL, 0.8, NULL, &part, &err));
        assert_ok(knee_cross_validate(&part, i, PARTS, NULL, NULL, &err));
        memcpy(results + i * runs.count, part.result, size);
        done += part.held_out_all.rows;
        if (i + 1 < PARTS)
            knee_validation_release(&part);
    }
    assert_true(done == runs.count); /* each source in one part */
    assert_ok(knee_cross_validate_merge(&part, results, PARTS, &err));
    assert_memory_equal(part.result, whole.result, size);
    assert_memory_equal(&part.held_out_all, &whole.held_out_all, sizeof part.held_out_all);
    assert_memory_equal(part.held_out, whole.held_out, sizeof part.held_out);
    knee_validation_release(&part);
    knee_validation_release(&whole);
    knee_runs_release(&runs);
    free(results);
}

/* ---- JSON lines ---- */

TEST(phases_of_steps)
{
    static const char text[] =
        "{\"hidden\": 1024, \"heads\": 16, \"kv\": 16, \"ffn\": 2816, \"layers\": 8, \"vocab\": "
        "32000,"
        "\"mb\": 1, \"seq\": 2048, \"compiled\": 0, \"fwd_ms\": 3.0, \"bwd_ms\": 5.0, \"opt_ms\":"
        "1.0, \"peak_bytes\": 2500000000}\n\n"
        "{\"hidden\": 1024, \"heads\": 16, \"kv\": 16, \"ffn\": 2816, \"layers\": 8, \"vocab\": "
        "32000,"
        "\"mb\": 2, \"seq\": 2048, \"compiled\": 1, \"fwd_ms\": 3.0, \"bwd_ms\": 5.0, \"opt_ms\":"
        "1.0, \"peak_bytes\": 2500000000}";
    OWNED(knee_runs) runs;
    struct knee_err err;
    assert_ok(knee_runs_read((struct knee_named_text){text, sizeof text - 1, "steps"}, "h200", NULL,
                             &runs, &err));
    assert_int_equal(runs.count, 6);
    assert_int_equal(runs.run[1].phase, KNEE_PHASE_BACKWARD);
    assert_near(runs.run[1].step_s, 5e-3, 1e-15);
    assert_near(runs.run[0].memory_bytes, 2.5e9, 0);
    assert_true(isnan(runs.run[1].memory_bytes));
    assert_string_equal(knee_profile_at((size_t)runs.run[0].platform.profile)->name,
                        "pytorch-eager");
    assert_string_equal(knee_profile_at((size_t)runs.run[3].platform.profile)->name,
                        "pytorch-compile");
    double all = 0, step = 0;
    struct knee_machine machine;
    assert_ok(knee_machine_init(&runs.run[0].platform, NULL, &machine, &err));
    for (size_t i = 0; i < 3; i++)
        all +=
            knee_plan_phase_s(&runs.run[i].shape, &machine, &runs.run[i].plan, runs.run[i].phase);
    step = knee_plan_phase_s(&runs.run[0].shape, &machine, &runs.run[0].plan, KNEE_PHASE_STEP);
    /* the phases are the step but for what is fixed per micro-batch and step */
    assert_near(step - all, machine.rates.step_s + machine.rates.micro_batch_s, 1e-12);
}

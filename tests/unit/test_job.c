/* SPDX-License-Identifier: MIT */
/* Completing jobs: presets, defaults, where each value came from, and what is refused. */
#include "unit.h"

#include "cluster/cluster.h"
#include "cluster/hardware.h"
#include "job/models.h"

#include "base/keys.h"
#include "cluster/presets.h"
#include "judge/judge.h"

static enum knee_source source(const struct knee_job *job, const char *key)
{
    return job->source[knee_keys_find(&knee_job_keys, key)];
}

static struct knee_job completed(const char *words)
{
    struct knee_job job = job_of(words);
    struct knee_err err;
    if (knee_job_complete(&job, &err))
        fail_msg("%s: %s", words, err.what);
    return job;
}

TEST(what_is_given_beats_a_preset_and_a_preset_a_default)
{
    struct knee_job job = completed("model llama2-7b gpu h100 price 3");
    assert_true(job.params == 6.738e9 && source(&job, "params") == KNEE_PRESET);
    assert_true(job.hw.price_per_hour == 3 && source(&job, "price") == KNEE_FLAG);
    assert_true(job.forecast && isnan(job.mfu)); /* as knee plan prices it */
    job = completed("params 6.738e9 global-batch 1024 gpu h100 price 3");
    assert_true(job.mfu == 0.4 && source(&job, "mfu") == KNEE_DEFAULT);
    assert_near(job.flops_per_s, 0.4 * 989.5e12, 1);
    assert_int_equal(source(&job, "flops"), KNEE_DERIVED);
    assert_true(job.hw.gpus_per_node == 8 && source(&job, "gpus-per-node") == KNEE_PRESET);
    assert_true(job.global_batch == 1024 && job.scaling == KNEE_STRONG);
}

/* A GPU brings its usual cluster, whose links numbers change; bare numbers are the textbook's. */
TEST(numbers_change_links_of_the_cluster)
{
    struct knee_cluster cluster;
    struct knee_job job = completed("params 7B flops 1e14 bandwidth 25GB/s");
    knee_hardware_cluster(&job.hw, &cluster);
    assert_true(job.hw.gpus_per_node == 1 && job.hw.latency_s == 0 && cluster.textbook);
    job = completed("params 7B gpu h100 bandwidth 25GB/s");
    knee_hardware_cluster(&job.hw, &cluster);
    assert_true(job.hw.gpus_per_node == 8 && !cluster.textbook);
    assert_near(job.hw.node_bandwidth_bytes_per_s, 450e9 * 0.744, 1);
    assert_relative(cluster.levels[1].bytes_per_s * cluster.levels[1].ports / 8, 25e9, 1e-12);
    job = completed("params 7B cluster dgx-h100 bandwidth 25GB/s");
    assert_true(job.hw.gpus_per_node == 8 && job.hw.bandwidth_bytes_per_s == 25e9);
    job = completed("params 7B cluster dgx-h100 gpus-per-node 4 latency 1us node-latency 2us");
    knee_hardware_cluster(&job.hw, &cluster);
    assert_true(cluster.levels[0].count == 4 && cluster.levels[1].ports == 4);
    assert_true(cluster.levels[0].latency_s == 2e-6 && cluster.levels[1].latency_s == 1e-6);
}

TEST(gaps_and_contradictions_are_refused)
{
    static const char *const cases[][2] = {
        {"flops 1e12 bandwidth 1e9", "no model given"},
        {"params 7B bandwidth 1e9", "compute speed is unknown"},
        {"params 7B flops 1e12", "speed of the link"},
        {"params 7B gpu h100 global-batch 8 local-batch 8", "both global-batch"},
        {"params 7B gpu h100 overlap 1 hidden 1", "both overlap"},
        {"params 7B gpu h100 bandwidth 1e9 link ib400", "both bandwidth"},
        {"params 7B gpu h100 flops 1e12 mfu 0.4", "both flops"},
        {"comm-time 1ms params 7B gpu h100", "without compute-time"},
        {"comm-time 1ms compute-time 1ms measured-workers 1", "at least 2 GPUs"},
        {"comm-time 1ms compute-time 1ms loader-rate 5", "needs a batch"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_job job = job_of(cases[i][0]), before = job;
        struct knee_err err;
        assert_int_equal(knee_job_complete(&job, &err), KNEE_USAGE);
        if (!strstr(err.what, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], err.what);
        assert_true(err.hint[0]);
        assert_memory_equal(&job, &before, sizeof job);
    }
}

TEST(a_flag_beats_the_rival_key_of_a_file)
{
    struct knee_job job = job_of("params 7B gpu h100 local-batch 4");
    struct knee_err err;
    assert_int_equal(knee_keys_set(&knee_job_keys, &job, "global-batch", "64", KNEE_FILE, &err), 0);
    assert_ok(knee_job_complete(&job, &err));
    assert_true(isnan(job.global_batch) && job.scaling == KNEE_WEAK);
}

TEST(keys_out_of_range_name_the_range)
{
    static const char *const cases[][2] = {
        {"params", "-5"},    {"params", "0"},     {"bandwidth", "0"}, {"latency", "-1us"},
        {"overlap", "1.5"},  {"compress", "0.5"}, {"tolerance", "0"}, {"mfu", "140%"},
        {"accumulate", "0"}, {"jitter", "-1"},    {"price", "-3"},    {"at", "0"},
    };
    struct knee_job job, before;
    knee_job_init(&job);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_err err;
        before = job;
        assert_int_equal(
            knee_keys_set(&knee_job_keys, &job, cases[i][0], cases[i][1], KNEE_FLAG, &err),
            KNEE_USAGE);
        assert_non_null(strstr(err.hint, "it must be from"));
        assert_memory_equal(&job, &before, sizeof job);
    }
}

TEST(unknown_names_suggest_the_nearest)
{
    struct knee_job job;
    struct knee_err err;
    knee_job_init(&job);
    assert_int_equal(knee_keys_set(&knee_job_keys, &job, "bandwith", "1", KNEE_FLAG, &err),
                     KNEE_USAGE);
    assert_non_null(strstr(err.hint, "'bandwidth'"));
    assert_int_equal(knee_keys_set(&knee_job_keys, &job, "gpu", "h10", KNEE_FLAG, &err),
                     KNEE_USAGE);
    assert_non_null(strstr(err.hint, "'h100'"));
}

/* Every name that a data file refers to exists, and every figure is usable. */
TEST(presets_hang_together)
{
    const struct knee_gpu *gpu;
    const struct knee_link *link;
    const struct knee_cluster_preset *cluster;
    const struct knee_model *model;
    for (size_t i = 0; (gpu = knee_gpu_at(i)); i++) {
        assert_non_null(knee_link_named(gpu->node_link));
        assert_non_null(knee_cluster_preset_named(gpu->cluster));
        assert_string_equal(knee_cluster_preset_named(gpu->cluster)->gpu, gpu->name);
        assert_true(gpu->bf16_flops > 1e13 && gpu->memory_bytes_per_s > 1e11 && gpu->power_w > 50);
        assert_true(isnan(gpu->price_low) || gpu->price_low <= gpu->price_high);
        assert_true(gpu->origin[0]);
    }
    for (size_t i = 0; (link = knee_link_at(i)); i++)
        assert_true(link->bytes_per_s > 1e8 && link->achieved > 0 && link->achieved <= 1 &&
                    knee_transport_latency_s(link->name) > 0 && link->origin[0]);
    for (size_t i = 0; (cluster = knee_cluster_preset_at(i)); i++) {
        assert_non_null(knee_gpu_named(cluster->gpu));
        assert_non_null(knee_link_named(cluster->node_link));
        assert_non_null(knee_link_named(cluster->net_link));
        assert_true(cluster->gpus_per_node >= 1 && cluster->nics_per_node >= 1 &&
                    cluster->origin[0]);
    }
    for (size_t i = 0; (model = knee_model_at(i)); i++) {
        assert_true(model->params_billion > 1e-3 && model->origin[0]);
        assert_true(knee_model_flops_per_param(model) > 0);
        assert_true(knee_model_has_shape(model) || !isnan(model->flops_per_param));
    }
}

TEST(every_preset_predicts)
{
    for (size_t g = 0; knee_gpu_at(g); g += UNIT_SANITIZED ? 5 : 1)
        for (size_t m = 0; knee_model_at(m); m++) {
            char words[128];
            snprintf(words, sizeof words, "gpu %s model %s", knee_gpu_at(g)->name,
                     knee_model_at(m)->name);
            OWNED(knee_prediction) p = predict(words);
            assert_true(p.row_count == 11 && isfinite(p.rows[10].step.wall_s));
        }
}

TEST(default_row_of_the_verdict)
{
    OWNED(knee_prediction) p = predict("params 1e9 flops 60TFLOP/s bandwidth 25GB/s overlap 1 "
                                       "global-batch 8192 workers 1..256x2");
    assert_true(p.at.workers == 8); /* the first below tolerance */
    assert_true(p.verdict.suspect == KNEE_SUSPECT_TINY_BATCH);
    knee_prediction_release(&p);
    p = predict(
        "params 1e9 flops 60TFLOP/s bandwidth 25GB/s overlap 1 global-batch 8192 workers 1..4");
    assert_true(p.at.workers == 4); /* none is below: the last */
}

TEST(each_suspect_is_named)
{
    static const struct {
        const char *words;
        enum knee_suspect suspect;
        enum knee_wall wall;
    } cases[] = {
        {"compute-time 180ms comm-time 1ms", KNEE_SUSPECT_NONE, KNEE_WALL_NONE},
        {"compute-time 180ms comm-time 120ms", KNEE_SUSPECT_COMM, KNEE_WALL_SYSTEMS},
        {"compute-time 180ms comm-time 1ms local-batch 32 loader-rate 100/s", KNEE_SUSPECT_INPUT,
         KNEE_WALL_NONE}, /* one worker starves as well: E(K) does not show it */
        {"compute-time 180ms comm-time 1ms jitter 20%", KNEE_SUSPECT_STRAGGLER, KNEE_WALL_SYSTEMS},
        {"compute-time 100ms comm-time 150ms overlap 1", KNEE_SUSPECT_TINY_BATCH,
         KNEE_WALL_SYSTEMS},
        {"compute-time 180ms comm-time 1ms local-batch 32 critical-batch 64",
         KNEE_SUSPECT_LARGE_BATCH, KNEE_WALL_STATISTICAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_prediction) p = predict(cases[i].words);
        assert_string_equal(knee_suspect_name(p.verdict.suspect),
                            knee_suspect_name(cases[i].suspect));
        assert_int_equal(p.verdict.wall, cases[i].wall);
    }
}

TEST(rule_on_r)
{
    assert_string_equal(knee_regime_of(0)->rule, "scale out");
    assert_string_equal(knee_regime_of(0.1)->rule, "scale out");
    assert_string_equal(knee_regime_of(0.11)->rule, "overlap first");
    assert_string_equal(knee_regime_of(0.5)->rule, "overlap first");
    assert_string_equal(knee_regime_of(1)->rule, "bigger local batch or compress");
    assert_string_equal(knee_regime_of(1.01)->rule, "stop adding GPUs");
}

/* A set of modules is its modules, in any order and however they are joined. */
TEST(test_sets_of_modules)
{
    const struct knee_choices *sets = &knee_modules_names;
    for (size_t row = 0; row < sets->count(); row++) {
        const char *name = sets->name(row), *plus = strchr(name, '+');
        char turned[128];
        assert_int_equal(sets->spelt(name), row);
        if (!plus || strchr(plus + 1, '+'))
            continue;
        snprintf(turned, sizeof turned, "%s, %.*s", plus + 1, (int)(plus - name), name);
        assert_int_equal(sets->spelt(turned), row);
    }
    assert_null(sets->name(sets->count()));
    assert_int_equal(sets->spelt("core_attn+nonsense"), -1);
    assert_int_equal(sets->spelt(""), -1);
}

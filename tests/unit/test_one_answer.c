/* SPDX-License-Identifier: MIT */
/* Laws between commands: whoever is asked the same question gives the same number. */
#include "unit.h"

#include "cluster/hardware.h"
#include "cluster/presets.h"
#include "job/shape.h"
#include "knee.h"
#include "knee_plan.h"
#include "knee_scale.h"
#include "predict/closed/forecast.h"

static size_t presets(void)
{
    size_t count = 0;
    while (knee_cluster_preset_at(count))
        count++;
    return count;
}

static struct knee_cluster any_cluster(uint64_t *dice)
{
    struct knee_cluster cluster;
    size_t row = (size_t)(chance(dice) * (double)presets());
    knee_cluster_from_preset(knee_cluster_preset_at(row), &cluster);
    return cluster;
}

/* ---- The same all-reduce ---- */

static double by_collective(const struct knee_cluster *cluster, double ranks, double bytes)
{
    struct knee_collective_query query = {KNEE_OP_ALL_REDUCE, {ranks, NAN, 1, 1}, &bytes, 1};
    struct knee_collective answer;
    struct knee_err err;
    if (knee_collective_run(cluster, &query, NULL, &answer, &err))
        fail_msg("%s", err.what);
    double expected_s = answer.sizes[0].expected_s;
    knee_collective_release(&answer);
    return expected_s;
}

static double by_predict(const struct knee_cluster *cluster, double ranks, double bytes)
{
    struct knee_job job;
    struct knee_prediction p;
    struct knee_err err;
    knee_job_init(&job);
    job.hw.cluster = *cluster;
    job.params = bytes / 2;
    job.global_batch = 1e6;
    job.compute_time_s = 1;
    job.workers = (struct knee_workers){.ranges = 1, .range = {{ranks, ranks, 2, 1}}};
    if (knee_predict(&job, NULL, &p, &err))
        fail_msg("%s", err.what);
    double comm_s = p.rows[0].step.comm_s;
    knee_prediction_release(&p);
    return comm_s;
}

/* Every all-reduce that a plan of pure data parallelism lists, and what tax says of that axis. */
static void by_plan_and_tax(const struct knee_cluster *cluster, double ranks)
{
    struct knee_tax_job job;
    struct knee_tax tax;
    struct knee_shape shape;
    struct knee_machine machine;
    struct knee_plan plan;
    struct knee_plan_cost cost;
    struct knee_traffic rows[KNEE_TRAFFIC_MAX];
    struct knee_err err;
    knee_tax_job_init(&job);
    knee_keys_set(&knee_tax_keys, &job, "model", "gpt2-xl", KNEE_FLAG, &err);
    job.hw.cluster = *cluster;
    job.degree[KNEE_AXIS_DP] = ranks;
    if (knee_tax_run(&job, &tax, &err) || knee_tax_plan(&tax.job, &shape, &machine, &plan, &err))
        fail_msg("%s: %s", cluster->name, err.what);
    knee_plan_price(&shape, &machine, &plan, &cost);
    assert_relative(tax.axes[KNEE_AXIS_DP].comm_s, cost.wire_s[KNEE_PART_DP - KNEE_PART_TP], 1e-12);
    assert_relative(tax.step_s, cost.step_s, 1e-12);
    size_t count = knee_plan_traffic(&shape, &machine, &plan, rows, KNEE_TRAFFIC_MAX);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].op, KNEE_OP_ALL_REDUCE);
    assert_relative(rows[0].each_s, by_collective(cluster, ranks, rows[0].bytes), 1e-9);
    assert_relative(rows[0].calls * rows[0].each_s, tax.axes[KNEE_AXIS_DP].comm_s, 1e-9);
}

TEST(everybody_prices_an_all_reduce_alike)
{
    uint64_t dice = 3;
    for (int i = 0; i < UNIT_SOME(400); i++) {
        struct knee_cluster cluster = any_cluster(&dice);
        double node = cluster.levels[0].count, bytes = rint(exp(between(&dice, 5, 23)));
        double ranks = chance(&dice) < 0.3 ? exp2(ceil(chance(&dice) * log2(node)))
                                           : node * exp2(ceil(8 * chance(&dice)));
        assert_relative(by_predict(&cluster, ranks, bytes), by_collective(&cluster, ranks, bytes),
                        1e-9);
        if (knee_gpu_named(cluster.gpu) && ranks >= node && ranks > 1)
            by_plan_and_tax(&cluster, ranks);
    }
}

/* A third level (leaves, a spine that is oversubscribed) counts for everybody. */
TEST(no_level_is_dropped)
{
    struct knee_cluster flat, spine;
    struct knee_err err;
    if (knee_cluster_parse("8xh100 * 16 @ ib400x8", &flat, &err) ||
        knee_cluster_parse("8xh100 * 4 @ ib400x8 * 4 @ spine/32", &spine, &err))
        fail_msg("%s", err.what);
    for (double bytes = 1e6; bytes < 1e10; bytes *= 10) {
        assert_relative(by_predict(&spine, 128, bytes), by_collective(&spine, 128, bytes), 1e-9);
        assert_relative(by_predict(&spine, 32, bytes), by_predict(&flat, 32, bytes), 1e-9);
        if (bytes >= 1e8)
            assert_true(by_predict(&spine, 128, bytes) > 2 * by_predict(&flat, 128, bytes));
    }
}

/* The textbook's, given as bare numbers. */
TEST(bare_numbers_are_the_textbook)
{
    uint64_t dice = 7;
    for (int i = 0; i < 200; i++) {
        double alpha = between(&dice, 1e-7, 1e-3), rate = between(&dice, 1e8, 1e12);
        double bytes = between(&dice, 1e3, 1e11), k = 1 + ceil(1000 * chance(&dice));
        char words[200];
        snprintf(words, sizeof words,
                 "params %.17g bytes-per-param 1 compute-time 1s latency %.17g bandwidth %.17g",
                 bytes, alpha, rate);
        assert_relative(row_of(words, k).step.comm_s,
                        2 * (k - 1) * alpha + 2 * (k - 1) / k * bytes / rate, 1e-9);
    }
}

/* ---- The same price, the same machine ---- */

TEST(one_price_for_a_gpu)
{
    for (size_t row = 0; knee_gpu_at(row); row++) {
        char words[96];
        struct knee_platform platform;
        struct knee_machine machine;
        struct knee_err err;
        snprintf(words, sizeof words, "params 1e9 global-batch 1e6 gpu %s", knee_gpu_at(row)->name);
        OWNED(knee_prediction) p = predict(words);
        knee_platform_init(&platform);
        platform.hw.gpu = (int)row;
        if (knee_machine_init(&platform, NULL, &machine, &err))
            fail_msg("%s", err.what);
        bool known = !isnan(machine.price_per_hour);
        assert_true(known ? machine.price_per_hour == p.job.hw.price_per_hour
                          : isnan(p.job.hw.price_per_hour));
        assert_near(machine.power_w, p.job.hw.power_w, 0);
        assert_near(machine.node_size, p.job.hw.gpus_per_node, 0);
    }
}

/* ---- The same row in any range ---- */

TEST(a_row_does_not_depend_on_the_range)
{
    static const char *const ranges[] = {"64", "8..512x2", "1..100+1,64", "64,4096"};
    double first = 0;
    for (size_t i = 0; i < 4; i++) {
        char words[160];
        snprintf(words, sizeof words, "model llama3-8b cluster p5 workers %s", ranges[i]);
        OWNED(knee_prediction) p = predict(words);
        for (size_t r = 0; r < p.row_count; r++)
            if (p.rows[r].workers == 64) {
                first = i == 0 ? p.rows[r].efficiency : first;
                assert_near(p.rows[r].efficiency, first, 0);
            }
    }
}

/* The baseline's counts do not depend on anything but the machine, and ascend. */
TEST(baselines_ascend)
{
    for (double node = 1; node <= 72; node++) {
        struct knee_machine machine = {.node_size = node};
        double last = 0;
        bool seen = false;
        for (size_t i = 0; knee_plan_baseline_at(&machine, i) > 0; i++) {
            double count = knee_plan_baseline_at(&machine, i);
            assert_true(count > last);
            seen = seen || count == node;
            last = count;
        }
        assert_true(seen && last >= 32768);
    }
}

/* ---- Less is never free ---- */

TEST(a_slower_network_never_helps)
{
    static const char *const models[] = {"llama3-70b", "mixtral-8x7b", "gpt3-175b"};
    static const double rates[] = {50e9, 10e9, 1.5e9, 1e8, 1e6};
    for (size_t m = 0; m < UNIT_SOME(3); m++) {
        double before = 0;
        for (size_t i = 0; i < 5; i++) {
            static struct knee_search_result found;
            struct knee_shape shape;
            struct knee_platform platform;
            struct knee_machine machine;
            struct knee_plan fixed;
            struct knee_err err;
            knee_shape_init(&shape);
            knee_keys_set(&knee_shape_keys, &shape, "model", models[m], KNEE_FLAG, &err);
            knee_platform_init(&platform);
            knee_keys_set(&knee_platform_keys, &platform, "gpu", "h100", KNEE_FLAG, &err);
            platform.hw.bandwidth_bytes_per_s = rates[i];
            if (knee_shape_complete(&shape, &err) ||
                knee_machine_init(&platform, NULL, &machine, &err))
                fail_msg("%s", err.what);
            knee_plan_init(&fixed);
            fixed.gpus = 64;
            fixed.global_batch = 64;
            struct knee_search search = {
                .shape = &shape, .machine = &machine, .fixed = &fixed, .top = 1, .brute = false};
            knee_search_result_init(&found);
            knee_search_run(&search, 0, knee_search_pieces(&search), &found);
            assert_true(found.count > 0);
            assert_true(found.best[0].cost.step_s > before);
            before = found.best[0].cost.step_s;
        }
    }
}

/* ---- Feasible first ---- */

TEST(what_does_not_fit_is_said)
{
    static const struct {
        const char *words;
        bool fits;
        double zero1, zero3;
    } cases[] = {{"model gpt2 gpu h100", true, 1, 1},
                 {"params 1e10 gpu h100 global-batch 1e6", false, 3, 2}, /* 40 + 120 of 80 GB */
                 {"params 1e11 gpu h100 global-batch 1e6", false, NAN, 20}};
    for (size_t i = 0; i < 3; i++) {
        OWNED(knee_prediction) p = predict(cases[i].words);
        assert_int_equal(p.memory.fits, cases[i].fits);
        assert_near(p.memory.zero3_workers, cases[i].zero3, 0);
        assert_true(isnan(cases[i].zero1) ? isnan(p.memory.zero1_workers)
                                          : p.memory.zero1_workers == cases[i].zero1);
    }
}

TEST(nobody_works_on_half_an_example)
{
    OWNED(knee_prediction) p =
        predict("model llama3-8b gpu h100 global-batch 512 workers 1..8192x2");
    for (size_t i = 0; i < p.row_count; i++) /* GPUs without an example save no time */
        if (p.rows[i].workers > 512)
            assert_true(p.rows[i].step.wall_s >= p.rows[i - 1].step.wall_s);
    assert_near(p.knee.limit_workers, 512, 0);
    assert_near(p.knee.tolerance_workers, 512, 0);
    assert_true(p.knee.peak_throughput_workers <= 512);
    assert_true(p.at.workers <= 512);
    for (size_t i = 0; i < p.lever_count; i++)
        assert_string_not_equal(p.levers[i].name, "more workers");
}

/* PowerSGD promises most here; bf16 is worth it and leaves training as it is. */
TEST(training_is_not_changed_first)
{
    OWNED(knee_prediction) p = predict("params 7B gpu a100 bytes-per-param 4 compute-time 100ms "
                                       "comm-time 300ms measured-workers 64 overlap 1");
    assert_true(p.levers[0].numerics == KNEE_NUMERICS_TRAINING && p.verdict.lever != SIZE_MAX);
    assert_true(p.levers[p.verdict.lever].numerics != KNEE_NUMERICS_TRAINING);
}

/* ---- One rule for a batch ---- */

/* What a command answers with a batch that is said in one way, as CSV: the inputs are not in it. */
static void answer_of(const char *command, const char *lines, const char *key, double value,
                      struct knee_text *out)
{
    char all[512];
    struct knee_err err;
    snprintf(all, sizeof all, "%s%s = %.17g\n", lines, key, value);
    knee_status status = knee_ask(NULL, command, all, KNEE_CSV, out, &err);
    if (status && status != KNEE_GATE) /* a gate: it does not fit, and is answered */
        fail_msg("%s with %s: %s", command, key, err.what);
}

/* --global-batch counts sequences, --global-tokens their tokens, to the nearest sequence, in every
 * command; 4Mi tokens where neither is given. */
TEST(a_batch_is_sequences_or_tokens_by_one_rule)
{
    static const struct {
        const char *command, *lines;
        double seq;
    } asked[] = {
        {"predict", "model = llama2-7b\ngpu = h100\nworkers = 8..64x2\n", 4096},
        {"predict", "params = 7B\ngpu = h100\nworkers = 8..64x2\n", 1},
        {"predict", "params = 7B\nseq = 512\ngpu = h100\nworkers = 8..64x2\n", 512},
        {"plan", "model = llama3-8b\ngpu = h100\ngpus = 8\ntp = 8\npp = 1\ncp = 1\n", 8192},
        {"tax", "model = llama2-7b\ngpu = h100\ndp = 8\n", 4096},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        for (double batch = 256; batch <= 1024; batch *= 2) {
            OWNED(knee_text) a = {0}, b = {0}, c = {0};
            double seq = asked[i].seq;
            answer_of(asked[i].command, asked[i].lines, "global-batch", batch, &a);
            answer_of(asked[i].command, asked[i].lines, "global-tokens", batch * seq, &b);
            answer_of(asked[i].command, asked[i].lines, "global-tokens", (batch - 0.4) * seq, &c);
            assert_string_equal(a.data, b.data);
            if (seq > 1)
                assert_string_equal(a.data, c.data);
        }
}

TEST(the_usual_batch_is_one_in_all_commands)
{
    static const char *const plan = "model = llama3-8b\ngpu = h100\ngpus = 8\ntp = 8\n";
    static const char *const job = "params = 7B\nseq = 512\ngpu = h100\nworkers = 8\n";
    OWNED(knee_text) a = {0}, b = {0}, c = {0}, d = {0};
    answer_of("plan", plan, "global-tokens", 4194304, &a);
    answer_of("plan", plan, "pp", 1, &b); /* nothing about the batch */
    answer_of("predict", job, "global-tokens", 4194304, &c);
    answer_of("predict", job, "jitter", 0, &d);
    assert_string_equal(a.data, b.data);
    assert_string_equal(c.data, d.data);
    /* A model's own batch, in tokens: 2048 sequences of 8192 are 4096 of 4096. */
    static const char *const own = "model = llama3-405b\ngpu = h100\nseq = 4096\n";
    static const char *const split =
        "model = llama3-405b\ngpu = h100\ngpus = 512\ntp = 8\npp = 16\n"
        "seq = 4096\n";
    OWNED(knee_text) e = {0}, f = {0}, g = {0}, h = {0};
    answer_of("plan", split, "global-batch", 4096, &e);
    answer_of("plan", split, "pp", 16, &f);
    answer_of("predict", own, "global-batch", 4096, &g);
    answer_of("predict", own, "jitter", 0, &h);
    assert_string_equal(e.data, f.data);
    assert_string_equal(g.data, h.data);
}

/* The plain lines and the sentence agree on what fits, and say it before all else. */
TEST(what_does_not_fit_comes_first)
{
    size_t fitting = 0, not_fitting = 0;
    for (double tp = 1; tp <= 8; tp *= 2)
        for (double fsdp = 1; fsdp <= 64; fsdp *= 4) {
            char lines[96];
            OWNED(knee_text) answer = {0};
            snprintf(lines, sizeof lines, "model=llama3-70b\ngpu=h100\ntp=%g\nfsdp=%g\n", tp, fsdp);
            knee_status status = knee_ask(NULL, "tax", lines, KNEE_JSON, &answer, NULL);
            bool fits = strstr(answer.data, "\"fits\": true") != NULL;
            assert_int_equal(status, fits ? KNEE_OK : KNEE_GATE); /* one rule for exit codes */
            assert_true(fits == !strstr(answer.data, "\"do\": \"Does not fit: "));
            assert_true(fits == !strstr(answer.data, "\"sentence\": \"Does not fit: "));
            fitting += fits;
            not_fitting += !fits;
        }
    assert_true(fitting > 3 && not_fitting > 3);
}

/* ---- One forecast ---- */

static void set(const struct knee_keys *keys, void *object, const char *key, const char *value)
{
    struct knee_err err;
    if (knee_keys_set(keys, object, key, value, KNEE_FLAG, &err))
        fail_msg("%s %s: %s", key, value, err.what);
}

/* A model and a GPU with every copy whole: predict, tax, plan and the model beside a log say the
 * same step, exchange, what shows of it, memory and interval. */
static void one_forecast_of(const char *model, const char *gpu, double workers, double examples)
{
    char words[200], batch[32];
    struct knee_tax_job tax_job;
    struct knee_tax tax;
    struct knee_shape shape;
    struct knee_machine machine;
    struct knee_plan plan;
    struct knee_plan_cost cost;
    struct knee_platform platform;
    struct knee_scale_row measured = {.workers = workers, .batch = workers * examples, .step_s = 1};
    struct knee_err err;
    snprintf(batch, sizeof batch, "%.17g", workers * examples);
    snprintf(words, sizeof words, "model %s gpu %s workers %.17g global-batch %s", model, gpu,
             workers, batch);
    OWNED(knee_prediction) p = predict(words);
    const struct knee_row *row = &p.rows[0];
    knee_tax_job_init(&tax_job);
    set(&knee_tax_keys, &tax_job, "model", model);
    set(&knee_tax_keys, &tax_job, "gpu", gpu);
    double size = knee_forecast_micro_batch(&p.terms, workers);
    tax_job.micro_batch = size;
    set(&knee_tax_keys, &tax_job, "global-batch", batch);
    tax_job.degree[KNEE_AXIS_DP] = workers;
    if (knee_tax_run(&tax_job, &tax, &err) ||
        knee_tax_plan(&tax.job, &shape, &machine, &plan, &err))
        fail_msg("%s: %s", words, err.what);
    knee_plan_price(&shape, &machine, &plan, &cost);
    knee_platform_init(&platform);
    set(&knee_platform_keys, &platform, "gpu", gpu);
    knee_scale_model(&shape, &plan, &platform, &measured);
    const double steps[] = {row->step.wall_s, tax.step_s, measured.model.step_s};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        assert_relative(steps[i], cost.step_s, 1e-9);
    const struct knee_axis_tax *dp = &tax.axes[KNEE_AXIS_DP];
    assert_relative(row->step.label_s[KNEE_TRANSFER], cost.part_s[KNEE_PART_DP], 1e-9);
    assert_relative(dp->exposed_s, cost.part_s[KNEE_PART_DP], 1e-9);
    assert_relative(row->step.comm_s, cost.wire_s[KNEE_PART_DP - KNEE_PART_TP], 1e-9);
    if (size == 1) /* what it needs at least */
        assert_relative(p.memory.needed_bytes, cost.memory.total, 1e-9);
    assert_relative(tax.memory.total, cost.memory.total, 1e-9);
    assert_relative(row->step_sure.low, cost.low_s, 1e-9);
    assert_relative(row->step_sure.high, cost.high_s, 1e-9);
    assert_relative(measured.model.high_s, cost.high_s, 1e-9);
    for (size_t i = 0; i < p.lever_count; i++) /* every framework does that already */
        assert_string_not_equal(p.levers[i].name, "overlap");
}

TEST(one_forecast)
{
    uint64_t dice = 30;
    size_t models = 0, gpus = 0;
    while (knee_model_at(models))
        models++;
    while (knee_gpu_at(gpus))
        gpus++;
    for (int i = 0; i < 200;) {
        const struct knee_model *model = knee_model_at((size_t)(chance(&dice) * (double)models));
        const struct knee_gpu *gpu = knee_gpu_at((size_t)(chance(&dice) * (double)gpus));
        double workers = exp2(floor(between(&dice, 1, 12))),
               examples = exp2(floor(6 * chance(&dice)));
        if (isnan(model->shape.layers))
            continue;
        one_forecast_of(model->name, gpu->name, workers, examples);
        i++;
    }
}

/* A small model is predicted with the micro-batches that knee plan finds fastest. */
TEST(small_models_take_large_micro_batches)
{
    OWNED(knee_prediction) p = predict("model gpt2 gpu h100 global-batch 256 workers 8");
    assert_near(knee_forecast_micro_batch(&p.terms, 8), 32, 0);
    assert_near(knee_forecast_micro_batch(&p.terms, 128), 2, 0);
    OWNED(knee_prediction) one = predict("model gpt2 gpu h100 global-batch 256 workers 8 "
                                         "accumulate 32");
    assert_true(one.rows[0].step.wall_s > 2 * p.rows[0].step.wall_s);
}

/* FSDP is advised from the first count that plan's memory account fits on. */
TEST(fsdp_is_advised_where_it_fits)
{
    static const struct {
        const char *words;
        double gpus;
        bool recomputed;
    } cases[] = {{"model gpt2 gpu h100", 1, false},
                 {"model llama3-8b gpu h100", 8, false},
                 {"model llama3-70b gpu h100", 33, true},
                 {"model llama3-405b gpu h100", NAN, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_prediction) p = predict(cases[i].words);
        assert_true(isnan(cases[i].gpus) ? isnan(p.memory.zero3_workers)
                                         : p.memory.zero3_workers == cases[i].gpus);
        assert_int_equal(p.memory.recomputed, cases[i].recomputed);
    }
}

/* Parameters alone are those of a transformer of the usual shape. */
TEST(parameters_have_a_usual_shape)
{
    for (double params = 3e8; params < 1e12; params *= 1.7) {
        struct knee_shape shape;
        struct knee_params counted;
        char words[96];
        knee_shape_canonical(params, &shape);
        assert_ok(knee_shape_complete(&shape, NULL));
        knee_shape_params(&shape, &counted);
        assert_relative(counted.total, params, 0.01);
        snprintf(words, sizeof words, "params %.17g gpu h100", params);
        OWNED(knee_prediction) p = predict(words);
        assert_true(p.terms.forecast.known);
    }
    OWNED(knee_prediction) bare = predict("params 7B gpu h100 mfu 0.4");
    assert_false(bare.terms.forecast.known);
}

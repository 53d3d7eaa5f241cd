/* SPDX-License-Identifier: MIT */
/* Known numbers, worked out by hand; each test is named after what it shows. */
#include "unit.h"

#include "knee_plan.h"

TEST(hiding_and_compressing_raise_efficiency)
{
    static const struct {
        const char *words;
        double ratio, efficiency;
    } cases[] = {
        {"compute-time 180ms comm-time 120ms", 0.667, 0.600},
        {"compute-time 180ms comm-time 120ms hidden 0.7", 0.200, 0.833},
        {"compute-time 180ms comm-time 120ms hidden 0.7 compress 4", 0.050, 0.952},
    };
    for (size_t i = 0; i < 3; i++) {
        OWNED(knee_prediction) p = predict(cases[i].words);
        assert_int_equal(p.row_count, 1);
        assert_near(p.rows[0].ratio, cases[i].ratio, 5e-4);
        assert_near(p.rows[0].efficiency, cases[i].efficiency, 5e-4);
        assert_near(knee_step_efficiency(&p.rows[0].step), cases[i].efficiency, 5e-4);
    }
}

TEST(ninety_percent_needs_four_tenths_hidden)
{
    int first = -1;
    for (int tenths = 0; tenths <= 10 && first < 0; tenths++) {
        char words[96];
        snprintf(words, sizeof words, "compute-time 180ms comm-time 120ms compress 4 hidden 0.%d",
                 tenths);
        if (tenths < 10 && row_of(words, 8).efficiency > 0.9)
            first = tenths;
    }
    assert_int_equal(first, 4);
}

#define SEVEN_B "global-batch 2048 flops 312TFLOP/s bandwidth 600GB/s bytes-per-param 2 "

TEST(gamma_explodes_when_the_batch_is_split)
{
    static const double table[][4] = {
        {1, 0.000, 275.69, 0},     {4, 0.508, 68.92, 35.00},   {16, 2.539, 17.23, 43.75},
        {64, 10.664, 4.31, 45.94}, {256, 43.164, 1.08, 46.48}, {1024, 173.164, 0.27, 46.62},
    };
    for (size_t i = 0; i < 6; i++) {
        struct knee_row row = row_of(SEVEN_B "params 7e9", table[i][0]);
        assert_near(row.gamma, table[i][1], 5e-4);
        assert_near(1e3 * row.step.label_s[KNEE_COMPUTE], table[i][2], 5e-3);
        assert_near(1e3 * row.step.comm_s, table[i][3], 5e-3);
    }
}

#define LOADER "params 1e9 flops 60TFLOP/s bandwidth 25GB/s loader-rate 12000 overlap 1 "

TEST(full_overlap_is_compute_bound_then_communication_bound)
{
    static const double steps[] = {819.2, 409.6, 204.8, 140.0, 150.0, 155.0, 157.5, 158.8, 159.4};
    static const double percent[] = {100, 100, 100, 73, 34, 17, 8, 4, 2};
    for (int i = 0; i < 9; i++) {
        struct knee_row row = row_of(LOADER "bytes-per-param 2 global-batch 8192", exp2(i));
        assert_near(1e3 * row.step.wall_s, steps[i], 0.0501); /* 158.75 is printed 158.8 */
        assert_near(100 * row.efficiency, percent[i], 0.5);
        assert_int_equal(row.binding, i <= 2 ? KNEE_BINDS_COMPUTE : KNEE_BINDS_COMM);
    }
}

TEST(half_the_bytes_or_twice_the_batch_move_the_knee_alike)
{
    static const struct {
        const char *words;
        double first_below;
    } cases[] = {
        {LOADER "bytes-per-param 2 global-batch 8192", 8},
        {LOADER "bytes-per-param 1 global-batch 8192", 14},
        {LOADER "bytes-per-param 2 global-batch 16384", 14},
    };
    for (size_t i = 0; i < 3; i++) {
        OWNED(knee_prediction) p = predict(cases[i].words);
        assert_near(p.knee.tolerance_workers + 1, cases[i].first_below, 0);
    }
}

TEST(latency_and_bandwidth_together)
{
#define ALPHA "params 1e9 bytes-per-param 2 latency 5us bandwidth 50GB/s compute-time 4s"
    static const double table[][2] = {{8, 0.140}, {32, 0.6225}, {128, 2.581}, {512, 10.874}};
    for (size_t i = 0; i < 4; i++)
        assert_near(row_of(ALPHA, table[i][0]).ratio, table[i][1], 5e-4);
    /* The same compute from a model: 6 x 1e9 x 4000 / 6e12 = 4 s. */
    assert_near(
        row_of("params 1e9 latency 5us bandwidth 50GB/s flops 6e12 global-batch 4000", 128).ratio,
        2.581, 5e-4);
    OWNED(knee_prediction) p = predict(ALPHA);
    assert_near(p.knee.ratio_one_workers, 50.69, 5e-3);
    assert_near(p.knee.gamma_one_workers, 50.69, 5e-3);
    knee_prediction_release(&p);
    p = predict(ALPHA " hidden 0.7");
    assert_near(p.knee.ratio_one_workers, 164.3, 5e-2);
}

TEST(step_formula_at_three_overlaps)
{
    /* compute 100 ms, communication 60 ms; then 100 and 150. */
    static const double table[][3] = {{0, 160, 250}, {0.5, 130, 200}, {1, 100, 150}};
    for (size_t i = 0; i < 3; i++) {
        char words[96];
        snprintf(words, sizeof words, "compute-time 100ms comm-time 60ms overlap %g", table[i][0]);
        assert_near(1e3 * row_of(words, 8).step.wall_s, table[i][1], 1e-9);
        snprintf(words, sizeof words, "compute-time 100ms comm-time 150ms overlap %g", table[i][0]);
        assert_near(1e3 * row_of(words, 8).step.wall_s, table[i][2], 1e-9);
    }
}

static struct knee_tax tax_of(const char *const *words)
{
    struct knee_tax_job job;
    struct knee_tax tax;
    struct knee_err err;
    knee_tax_job_init(&job);
    for (; *words; words += 2)
        if (knee_keys_set(&knee_tax_keys, &job, words[0], words[1], KNEE_FLAG, &err))
            fail_msg("%s", err.what);
    if (knee_tax_run(&job, &tax, &err))
        fail_msg("%s", err.what);
    return tax;
}

TEST(two_thresholds_of_the_axes)
{
    const char *const words[] = {"hidden", "8192",      "flops",  "989TFLOP/s",     "mfu",
                                 "0.4",    "bandwidth", "50GB/s", "node-bandwidth", "900GB/s",
                                 NULL};
    struct knee_tax tax = tax_of(words);
    assert_near(tax.local_tokens_min, 7912, 0.5);
    assert_near(tax.tp_tax_in, 0.045, 5e-4);
    assert_near(tax.tp_tax_out, 0.80, 5e-3);
}

TEST(gathers_hide_exactly_at_the_token_threshold)
{
    /* Short sequences and a small vocabulary, so that parameters are all the FLOPs there are, and
     * so many workers that (k-1)/k is 1: t_comm / window crosses 1 at peak MFU / BW. */
    const char *words[] = {
        "hidden", "8192",          "flops",       "989TFLOP/s", "mfu", "0.4",   "bandwidth",
        "50GB/s", "gpus-per-node", "1",           "seq",        "1",   "vocab", "1",
        "fsdp",   "100000",        "micro-batch", "7912",       NULL};
    struct knee_tax tax = tax_of(words);
    assert_relative(tax.axes[KNEE_AXIS_FSDP].comm_s, tax.axes[KNEE_AXIS_FSDP].window_s, 1e-3);
    words[17] = "7000";
    tax = tax_of(words);
    assert_true(tax.axes[KNEE_AXIS_FSDP].exposed_s > 0);
    words[17] = "9000";
    tax = tax_of(words);
    assert_true(tax.axes[KNEE_AXIS_FSDP].exposed_s == 0);
}

TEST(tensor_parallel_past_a_node_takes_the_slow_link)
{
    const char *words[] = {"hidden", "8192", "gpu", "h100", "tp", "8", NULL};
    struct knee_tax inside = tax_of(words);
    words[5] = "16";
    struct knee_tax outside = tax_of(words);
    assert_false(inside.axes[KNEE_AXIS_TP].crosses_nodes);
    assert_true(outside.axes[KNEE_AXIS_TP].crosses_nodes);
    assert_true(outside.axes[KNEE_AXIS_TP].comm_s > 1.5 * inside.axes[KNEE_AXIS_TP].comm_s);
    assert_int_equal(outside.binding, KNEE_AXIS_TP);
}

TEST(pipeline_bubble)
{
    const char *const words[] = {"hidden", "4096",          "gpu", "h100", "pp",
                                 "4",      "micro-batches", "8",   NULL};
    struct knee_tax tax = tax_of(words);
    assert_near(tax.bubble, 3.0 / 11, 1e-12);
    assert_true(tax.bubble_binds);
}

/* Simpson's rule over what the series was made from. */
static double integrated_maximum(double n)
{
    enum { PANELS = 4000 };
    const double end = 10, width = end / PANELS;
    double sum = 0;
    for (int i = 0; i <= PANELS; i++) {
        double tail = 0.5 * erfc(i * width / sqrt(2));
        double value = -expm1(n * log1p(-tail)) - pow(tail, n);
        sum += value * (i == 0 || i == PANELS ? 1 : i % 2 ? 4 : 2);
    }
    return sum * width / 3;
}

TEST(expected_maximum_of_normal_workers)
{
    for (double n = 1; n <= KNEE_WORKERS_MAX; n *= 1.37)
        if (!(fabs(knee_expected_maximum(n) - integrated_maximum(n)) < 1e-12))
            fail_msg("of %g: %.17g, not %.17g", n, knee_expected_maximum(n), integrated_maximum(n));
    /* Closed forms for 2 and 3; tables (Harter 1961) for 10 and 100. */
    assert_near(knee_expected_maximum(1), 0, 0);
    assert_near(knee_expected_maximum(2), 1 / sqrt(acos(-1)), 1e-10);
    assert_near(knee_expected_maximum(3), 1.5 / sqrt(acos(-1)), 1e-10);
    assert_near(knee_expected_maximum(10), 1.53875, 5e-6);
    assert_near(knee_expected_maximum(100), 2.50759, 5e-6);
}

TEST(stragglers_against_dice)
{
    uint64_t seed = 12345;
    double sum = 0;
    enum { WORKERS = 64, ROUNDS = 20000 };
    for (int round = 0; round < ROUNDS; round++) {
        double most = -10;
        for (int k = 0; k < WORKERS; k++) {
            double u = chance(&seed), v = chance(&seed);
            most = fmax(most, sqrt(-2 * log(u)) * cos(2 * acos(-1) * v));
        }
        sum += most;
    }
    struct knee_row row =
        row_of("compute-time 1s comm-time 1us jitter 0.1 measured-workers 64", 64);
    assert_relative(row.step.label_s[KNEE_WAIT], 0.1 * sum / ROUNDS, 0.01);
}

TEST(critical_batch_doubles_the_examples)
{
    OWNED(knee_prediction) p = predict("params 1e9 flops 60TFLOP/s bandwidth 25GB/s local-batch 32 "
                                       "critical-batch 2048 min-steps 1000 workers 1..256x2 at 64");
    assert_near(p.walls.statistical_workers, 64, 1e-9);
    assert_near(p.walls.examples_ratio, 2, 1e-12);
    assert_near(p.at.steps_to_quality, 2000, 1e-9);
}

/* $3600 an hour is $1 a second: 8 workers, 180 ms of compute, 120 ms of stall. */
TEST(what_a_stall_costs)
{
    OWNED(knee_prediction) p = predict("compute-time 180ms comm-time 120ms price 3600 power 1000 "
                                       "idle-power 100 steps 10");
    assert_near(p.cost.step, 8 * 0.3, 1e-12);
    assert_near(p.cost.stall_step, 8 * 0.12, 1e-12);
    assert_near(p.cost.day, 8 * 86400, 1e-6);
    assert_near(p.cost.stall_day, 8 * 86400 * 0.4, 1e-6);
    assert_near(p.cost.run, 24, 1e-12);
    assert_near(p.cost.joules_step, 8 * (0.18 * 1000 + 0.12 * 100), 1e-9);
    assert_near(p.cost.stall_joules_step, 8 * 0.12 * 100, 1e-9);
}

TEST(the_wall_that_comes_first)
{
#define WALLS "params 1e9 flops 60TFLOP/s local-batch 2048 latency 1ms bandwidth 25GB/s overlap 1 "
    static const struct {
        const char *words;
        enum knee_wall first;
    } cases[] = {
        {WALLS "critical-batch 1e9", KNEE_WALL_SYSTEMS},
        {WALLS "critical-batch 4096", KNEE_WALL_STATISTICAL},
        {WALLS, KNEE_WALL_SYSTEMS},
        {"compute-time 1s comm-time 1us local-batch 4 workers 8", KNEE_WALL_NONE},
    };
    for (size_t i = 0; i < 4; i++) {
        OWNED(knee_prediction) p = predict(cases[i].words);
        assert_int_equal(p.walls.first, cases[i].first);
    }
}

/* Workers that meet every 4th step wait for the sum of 4 deviations: twice one, over 4 steps. */
TEST(meeting_rarely_halves_the_wait)
{
#define JITTER "compute-time 1s comm-time 1us measured-workers 64 jitter 0.1 "
    double often = row_of(JITTER, 64).step.label_s[KNEE_WAIT];
    double rarely = row_of(JITTER "local-steps 4", 64).step.label_s[KNEE_WAIT];
    assert_relative(rarely, often / 2, 1e-12);
}

/* h = 1024, 8 layers, ffn 4 h, vocabulary and sequence of 1, peak 1e12 at MFU 1, 100 MB/s. */
TEST(the_price_of_data_parallel_by_hand)
{
    const char *const words[] = {
        "hidden",        "1024", "layers", "8",    "vocab",         "1", "seq",       "1",
        "micro-batch",   "1000", "flops",  "1e12", "mfu",           "1", "bandwidth", "100MB/s",
        "gpus-per-node", "1",    "dp",     "4",    "micro-batches", "2", NULL};
    struct knee_tax tax = tax_of(words);
    double h = 1024, layer = 12 * h * h, params = 8 * layer + 2 * h;
    double forward = 1000 * (8 * (2 * layer + 2 * h) + 2 * h);
    const struct knee_axis_tax *dp = &tax.axes[KNEE_AXIS_DP];
    assert_relative(tax.compute_s, 3 * forward * 2 / 1e12, 1e-12);
    assert_relative(dp->comm_s, 2 * 3.0 / 4 * 2 * params / 1e8, 1e-12);
    assert_relative(dp->window_s, 2 * forward / 1e12, 1e-12); /* backward of the last micro-step */
    assert_relative(dp->tax, (dp->comm_s - dp->window_s) / tax.compute_s, 1e-12);
}

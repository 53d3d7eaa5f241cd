/* SPDX-License-Identifier: MIT */
/*
 * Fits: numbers that went into made-up logs come out again, within their intervals; other rank
 * counts and collectives follow; files keep what was fitted. And sweeps: winners, crossovers and
 * half bandwidth against brute force, reasons for slow runs.
 */
#include "cluster/cluster.h"
#include "knee_out.h"
#include "knee_read.h"
#include "out/answer.h"
#include "say/answers.h"
#include "unit.h"

#include "collective/collective.h"

static struct knee_cluster parse(const char *line)
{
    struct knee_cluster t;
    struct knee_err err;
    if (knee_cluster_parse(line, &t, &err))
        fail_msg("%s: %s", line, err.what);
    return t;
}

/* A log as the model would have it, with noise that only adds. */
static struct knee_log made_log(const struct knee_cluster *t, enum knee_op op, double ranks,
                                double nodes, double noise, struct knee_sample *samples)
{
    struct knee_log log = {.op = op,
                           .ranks = ranks,
                           .nodes = nodes,
                           .samples = samples,
                           .gpus_per_process = 1,
                           .adapters = NAN};
    struct knee_cluster wide = *t;
    struct knee_layout layout;
    uint64_t seed = 12345 + (uint64_t)ranks + 100 * (uint64_t)op;
    snprintf(log.file, sizeof log.file, "%s_%g.log", knee_op_name(op), ranks);
    if (knee_log_layout(&log, &wide, &layout, NULL))
        fail_msg("layout");
    for (double bytes = 256; bytes <= 4e9; bytes *= 2) {
        double time_s = knee_model_time_s(&wide, &layout, op, bytes, NULL, NULL);
        time_s *= 1 + noise * chance(&seed);
        samples[log.sample_count++] =
            (struct knee_sample){bytes, time_s, time_s, time_s, log.sample_count};
    }
    return log;
}

struct wire {
    double latency_s, bytes_per_s;
};

static struct knee_fitted record;

static struct knee_cluster fit(const struct knee_log *logs, size_t count,
                               const struct knee_cluster *prior)
{
    struct knee_cluster fitted;
    struct knee_err err;
    if (knee_fit(&(struct knee_log_view){logs, count, NULL}, prior, &fitted, &record, &err))
        fail_msg("%s", err.what);
    return fitted;
}

static const struct knee_parameter *parameter(const struct knee_cluster *t, const char *name)
{
    for (size_t i = 0; t->fitted && i < t->fitted->parameter_count; i++)
        if (strcmp(t->fitted->parameters[i].name, name) == 0)
            return &t->fitted->parameters[i];
    fail_msg("no parameter %s", name);
    return NULL;
}

TEST(numbers_come_back)
{
    struct knee_cluster prior = parse("8xh100 * 0 @ ib400x8"), truth = prior;
    truth.levels[0].bytes_per_s *= 0.85;
    truth.levels[1].latency_s *= 2.5;
    truth.levels[1].bytes_per_s *= 0.7;
    truth.launch_s *= 1.3;
    struct knee_sample a[64], b[64];
    struct knee_log logs[2] = {made_log(&truth, KNEE_OP_ALL_REDUCE, 16, 2, 0.02, a),
                               made_log(&truth, KNEE_OP_ALL_GATHER, 16, 2, 0.02, b)};
    struct knee_cluster fitted = fit(logs, 2, &prior);
    static const struct {
        const char *name;
        double factor; /* allowed either way */
    } names[] = {{"node bandwidth", 1.05}, {"network latency", 1.1}, {"network bandwidth", 1.05}};
    double want[] = {truth.levels[0].bytes_per_s, truth.levels[1].latency_s,
                     truth.levels[1].bytes_per_s};
    for (size_t i = 0; i < 3; i++) {
        const struct knee_parameter *p = parameter(&fitted, names[i].name);
        assert_true(p->value < want[i] * names[i].factor && p->value > want[i] / names[i].factor);
        assert_true(p->fitted);
        assert_true(p->low < p->value && p->value < p->high);
        assert_true(p->low < want[i] * 1.02 && p->high > want[i] / 1.02);
    }
    assert_int_equal(fitted.fitted->curve_count, 2);
}

/* Rows of one of knee bench's own algorithms on a wire: hops alpha + share S / B. */
static struct knee_log own_log(enum knee_op op, double ranks, double hops, double share,
                               const struct wire *wire, struct knee_sample *samples)
{
    struct knee_log log = {.op = op,
                           .ranks = ranks,
                           .nodes = ranks,
                           .gpu = "CPU",
                           .algorithm = "ring",
                           .hops = hops,
                           .share = share,
                           .samples = samples,
                           .adapters = NAN};
    uint64_t seed = 7 + (uint64_t)op;
    for (double bytes = 1024; bytes <= 4 << 20; bytes *= 4) {
        double time_s = hops * wire->latency_s + share * bytes / wire->bytes_per_s;
        time_s *= 1 + 0.02 * chance(&seed);
        samples[log.sample_count++] =
            (struct knee_sample){bytes, time_s, time_s, NAN, log.sample_count};
    }
    return log;
}

/* From a LAN of milliseconds to links of a microsecond: no preset is near all of them. */
TEST(a_wire_comes_back_from_its_messages)
{
    static const struct wire wires[] = {
        {5e-3, 1e6}, {2e-3, 12.5e6}, {80e-6, 1.2e9}, {1.3e-6, 24e9}};
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++) {
        struct knee_sample a[16], b[16];
        struct knee_log logs[] = {own_log(KNEE_OP_ALL_REDUCE, 8, 14, 1.75, &wires[i], a),
                                  own_log(KNEE_OP_BROADCAST, 8, 5, 3, &wires[i], b)};
        struct knee_cluster prior;
        assert_true(knee_log_cluster(&logs[0], NULL, &prior));
        assert_true(prior.plain);
        struct knee_cluster fitted = fit(logs, 2, &prior);
        assert_relative(parameter(&fitted, "network latency")->value, wires[i].latency_s, 0.03);
        assert_relative(parameter(&fitted, "network bandwidth")->value, wires[i].bytes_per_s, 0.03);
        assert_int_equal(fitted.fitted->parameter_count,
                         2); /* nothing is said of the inside of a host */
        assert_int_equal(fitted.fitted->curve_count, 0);
    }
}

/* The library may choose any algorithm of the table; the quickest is taken to have run. */
TEST(a_wire_comes_back_from_the_library)
{
    struct knee_cluster truth, fitted;
    knee_cluster_plain(&truth);
    truth.levels[1].latency_s = 300e-6;
    truth.levels[1].bytes_per_s = 110e6;
    static const enum knee_op ops[] = {KNEE_OP_ALL_REDUCE, KNEE_OP_ALL_GATHER, KNEE_OP_ALL_TO_ALL,
                                       KNEE_OP_SEND_RECV};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct knee_sample a[64];
        struct knee_log log = made_log(&truth, ops[i], 6, 6, 0.02, a);
        struct knee_cluster prior;
        knee_cluster_plain(&prior);
        fitted = fit(&log, 1, &prior);
        assert_relative(fitted.levels[1].latency_s, 300e-6, 0.05);
        assert_relative(fitted.levels[1].bytes_per_s, 110e6, 0.03);
        assert_int_equal(fitted.fitted->curve_count, 1);
    }
}

/* Fitted on one all-reduce: another rank count and another collective. */
TEST(other_runs_follow)
{
    struct knee_cluster prior = parse("8xa100 * 0 @ ib200x8"), truth = prior;
    truth.levels[1].latency_s *= 1.8;
    truth.levels[1].bytes_per_s *= 0.8;
    truth.protocols[KNEE_SIMPLE].net_hop *= 1.5;
    struct knee_sample a[64], b[64];
    struct knee_log log = made_log(&truth, KNEE_OP_ALL_REDUCE, 16, 2, 0.02, a);
    struct knee_cluster fitted = fit(&log, 1, &prior);
    static const struct {
        enum knee_op op;
        double ranks, nodes;
    } others[] = {
        {KNEE_OP_ALL_REDUCE, 64, 8}, {KNEE_OP_ALL_GATHER, 16, 2}, {KNEE_OP_REDUCE_SCATTER, 32, 4}};
    for (size_t i = 0; i < 3; i++) {
        struct knee_log other =
            made_log(&truth, others[i].op, others[i].ranks, others[i].nodes, 0, b);
        struct knee_cluster t = fitted;
        struct knee_layout layout;
        size_t far = 0;
        assert_ok(knee_log_layout(&other, &t, &layout, NULL));
        for (size_t n = 0; n < other.sample_count; n++) {
            double guess = knee_expected_time_s(&t, &layout, other.op, other.samples[n].bytes);
            far += fabs(guess / other.samples[n].time_s - 1) > 0.2;
        }
        assert_true(2 * far < other.sample_count);
    }
}

/* What no log speaks of stays where the preset has it, and says so. */
TEST(silence_leaves_the_preset)
{
    struct knee_cluster prior = parse("8xh100 * 0 @ ib400x8");
    struct knee_sample a[64];
    struct knee_log log = made_log(&prior, KNEE_OP_ALL_REDUCE, 8, 1, 0.02, a);
    struct knee_cluster fitted = fit(&log, 1, &prior);
    assert_false(parameter(&fitted, "network latency")->fitted);
    assert_near(fitted.levels[1].latency_s, prior.levels[1].latency_s, 1e-12);
}

/* One thread that serves eight GPUs issues no faster than every 35 us. */
TEST(a_floor_is_a_floor)
{
    struct knee_cluster prior = parse("8xa100"), truth = prior;
    truth.floor_s = 35e-6;
    struct knee_sample a[64];
    struct knee_log log = made_log(&truth, KNEE_OP_ALL_REDUCE, 8, 1, 0.01, a);
    log.gpus_per_process = 8;
    struct knee_cluster fitted = fit(&log, 1, &prior);
    assert_relative(fitted.floor_s, 35e-6, 0.05);
    struct knee_placement placement = {8, NAN, 1, 1};
    struct knee_layout layout;
    assert_ok(knee_layout_init(&fitted, &placement, &layout, NULL));
    assert_relative(knee_expected_time_s(&fitted, &layout, KNEE_OP_ALL_GATHER, 256), 35e-6, 0.05);
}

TEST(checks_leave_sizes_out)
{
    struct knee_cluster truth = parse("8xh100 * 0 @ ib400x8{latency=9us,bandwidth=40GB/s}");
    struct knee_sample samples[3][64];
    struct knee_log logs[3] = {made_log(&truth, KNEE_OP_ALL_REDUCE, 16, 2, 0.03, samples[0]),
                               made_log(&truth, KNEE_OP_ALL_REDUCE, 32, 4, 0.03, samples[1]),
                               made_log(&truth, KNEE_OP_ALL_GATHER, 16, 2, 0.03, samples[2])};
    struct knee_log_about about[3] = {{"8x H100, IB 8x400 Gb/s", "a"},
                                      {"8x H100, IB 8x400 Gb/s", "a"},
                                      {"8x H100, IB 8x400 Gb/s", "b"}};
    OWNED(knee_check) check;
    struct knee_err err;
    assert_ok(knee_check_logs(&(struct knee_log_view){logs, 3, NULL}, about, NULL, &check, &err));
    assert_int_equal(check.left_out.rows, 12 * 3);
    assert_true(check.left_out.median < 0.03 && check.left_out.p90 < 0.15);
    assert_int_equal(check.preset_logs, 2);
    assert_true(check.preset.median < 0.25);
    assert_int_equal(check.transfer_count, 2); /* 16 <-> 32; another origin is another cluster */
    assert_true(check.transfer.median < 0.1);
    assert_int_equal(check.cluster_count, 2);
    assert_true(check.checks[0].fit == check.checks[1].fit &&
                check.checks[0].fit != check.checks[2].fit);
    for (size_t i = 0; i < 3; i++)
        for (size_t n = 0; n < logs[i].sample_count; n++)
            assert_true(check.checks[i].fitted_s[n] > 0);
    knee_check_release(&check);
    knee_check_release(&check);
    /* A log without ranks is listed, and not fitted. */
    logs[0].ranks = NAN;
    assert_ok(knee_check_logs(&(struct knee_log_view){logs, 1, NULL}, NULL, NULL, &check, &err));
    assert_int_equal(check.checks[0].left_out.rows, 0);
    assert_true(isnan(check.checks[0].left_out.median));
}

#if KNEE_HAVE_YAML
TEST(a_file_keeps_the_fit)
{
    struct knee_cluster truth = parse("8xh100 * 0 @ ib400x8{latency=9us}"), again;
    struct knee_sample a[64];
    struct knee_log log = made_log(&truth, KNEE_OP_ALL_REDUCE, 16, 2, 0.03, a);
    struct knee_cluster fitted = fit(&log, 1, &truth);
    OWNED(knee_text) text = {0};
    struct knee_err err;
    knee_write_cluster(&fitted, &text);
    assert_ok(knee_cluster_read(text.data, text.length, "x", &again, &record, &err));
    struct knee_placement placement = {16, NAN, 1, 1};
    struct knee_layout layout;
    assert_ok(knee_layout_init(&fitted, &placement, &layout, NULL));
    for (double bytes = 8; bytes < 1e11; bytes *= 3)
        assert_near(knee_expected_time_s(&again, &layout, KNEE_OP_ALL_REDUCE, bytes),
                    knee_expected_time_s(&fitted, &layout, KNEE_OP_ALL_REDUCE, bytes), 0);
}

TEST(a_file_keeps_plain_hosts)
{
    struct knee_cluster plain, again;
    struct knee_text text = {0};
    struct knee_err err;
    knee_cluster_plain(&plain);
    plain.levels[1].latency_s = 3e-3;
    knee_write_cluster(&plain, &text);
    assert_ok(knee_cluster_read(text.data, text.length, "x", &again, &record, &err));
    assert_memory_equal(&plain, &again, sizeof plain);
    knee_text_release(&text);
    static const char own[] = "plain: true\nlevels:\n  - {count: 2}\n  - {latency: 1ms}\n";
    assert_ok(knee_cluster_read(own, strlen(own), "x", &again, &record, &err));
    assert_near(again.levels[0].count, 2, 0);
    assert_near(again.levels[1].latency_s, 1e-3, 0);
    assert_near(again.levels[1].bytes_per_s, 1e9, 0);
}

/* A mapping has no order: whichever key stands first, nothing that the file says is lost. */
TEST(order_of_keys_does_not_matter)
{
    static const char *const files[][4] = {
        {"from: dgx-h100\n", "launch: 20us\n", "name: mine\n",
         "levels:\n  - {count: 4, latency: 2us}\n  - {ports: 3, link: ib200}\n"},
        {"plain: true\n", "floor: 5us\n", "sharp: true\n",
         "levels:\n  - {count: 2}\n  - {latency: 1ms}\n"},
        {"gpu: h100\n", "nvls-share: 0.5\n", "schema: knee.cluster/1\n",
         "levels:\n  - {latency: 3us, count: 4}\n  - {latency: 9us, link: ib400, ports: 2}\n"},
    };
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 3, 0, 1}};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        struct knee_cluster first, other;
        for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
            struct knee_err err;
            char text[512] = "";
            for (size_t i = 0; i < 4; i++)
                strcat(text, files[f][orders[o][i]]);
            if (knee_cluster_read(text, strlen(text), "x", o ? &other : &first, &record, &err))
                fail_msg("%s: %s", text, err.what);
            if (o && memcmp(&first, &other, sizeof first) != 0)
                fail_msg("the order matters: %s", text);
        }
        assert_true(f != 0 || (first.launch_s == 20e-6 && first.levels[0].count == 4 &&
                               first.levels[0].latency_s == 2e-6 && first.levels[1].ports == 3 &&
                               strcmp(first.name, "mine") == 0));
    }
}
#endif

/* What fails changes nothing. */
TEST(a_failed_layout_leaves_the_cluster)
{
    struct knee_sample samples[64];
    struct knee_cluster truth = parse("8xh100 * 4 @ ib400x8"), cluster = truth;
    struct knee_log log = made_log(&truth, KNEE_OP_ALL_REDUCE, 16, 2, 0, samples);
    struct knee_layout layout;
    struct knee_err err;
    log.ranks = NAN;
    assert_int_not_equal(knee_log_layout(&log, &cluster, &layout, &err), KNEE_OK);
    assert_memory_equal(&truth, &cluster, sizeof truth);
}

/* ---- Sweeps ---- */

static struct knee_collective sweep(const char *cluster, enum knee_op op, double ranks)
{
    struct knee_cluster t = parse(cluster);
    struct knee_collective c;
    struct knee_err err;
    double bytes[64];
    size_t count = 0;
    for (double b = 64; b <= 8e9; b *= 4)
        bytes[count++] = b;
    struct knee_collective_query query = {op, {ranks, NAN, 1, 1}, bytes, count};
    if (knee_collective_run(&t, &query, NULL, &c, &err))
        fail_msg("%s: %s", cluster, err.what);
    return c;
}

TEST(winners_are_quickest)
{
    for (int op = KNEE_OP_ALL_REDUCE; op < KNEE_OPS; op++) {
        OWNED(knee_collective) c =
            sweep("8xh100 * 0 @ ib400x8", (enum knee_op)op, op % 2 ? 64 : 24);
        for (size_t i = 0; i < c.query.size_count; i++) {
            const struct knee_collective_size *size = &c.sizes[i];
            size_t winners = 0;
            for (size_t row = size->first; row < size->last; row++) {
                assert_true(c.rows[row].time_s >= c.rows[size->winner].time_s);
                assert_near(c.rows[row].algbw_bytes_per_s * c.rows[row].time_s, size->bytes,
                            1e-6 * size->bytes);
                winners += c.rows[row].winner;
            }
            assert_int_equal(winners, 1);
        }
        assert_true(c.rows[c.sizes[c.query.size_count - 1].winner].busbw_bytes_per_s <
                    c.peak_bytes_per_s);
    }
}

/* Just below a crossover the one wins, just above the other. */
TEST(crossovers_are_where_times_meet)
{
    OWNED(knee_collective) c = sweep("8xh100 * 0 @ ib400x8", KNEE_OP_ALL_REDUCE, 64);
    assert_true(c.crossover_count >= 2);
    for (size_t i = 0; i < c.crossover_count; i++) {
        const struct knee_crossover *x = &c.crossovers[i];
        struct knee_counts from = {0}, to = {0};
        x->from->count(&c.layout, KNEE_OP_ALL_REDUCE, x->bytes, &from);
        x->to->count(&c.layout, KNEE_OP_ALL_REDUCE, x->bytes, &to);
        double a = knee_counts_time_s(&c.cluster, &c.layout, &from, x->from, x->from_protocol);
        double b = knee_counts_time_s(&c.cluster, &c.layout, &to, x->to, x->to_protocol);
        assert_relative(a, b, 2e-3);
    }
    struct knee_collective_query query = {
        KNEE_OP_ALL_REDUCE, {64, NAN, 1, 1}, &c.half_bandwidth_bytes, 1};
    OWNED(knee_collective) half;
    assert_ok(knee_collective_run(&c.cluster, &query, NULL, &half, NULL));
    assert_relative(half.rows[half.sizes[0].winner].busbw_bytes_per_s, c.peak_bytes_per_s / 2,
                    0.01);
}

/* A run on one of eight rails, one over TCP, one whose GPU has no RDMA, one that is fine. */
TEST(slow_runs_get_a_reason)
{
    static const struct {
        const char *ran_on, *reason;
        unsigned seen;
        double adapters;
    } cases[] = {
        {"8xh100 * 0 @ ib400x8", NULL, 0, NAN},
        {"8xh100 * 0 @ ib400x1", "one rail in use", 0, NAN},
        {"8xh100 * 0 @ ib400x2", "not every rail in use", 0, 2},
        {"8xh100 * 0 @ eth100x1", "TCP instead of RDMA", KNEE_SEEN_SOCKET | KNEE_SEEN_NO_GDR, NAN},
        {"8xh100 * 0 @ ib400x8{bandwidth=12GB/s}", "GPU Direct RDMA is off",
         KNEE_SEEN_NO_GDR | KNEE_SEEN_RDMA, NAN},
        {"8xh100:pcie4 * 0 @ ib400x8", "GPUs talk through host memory", KNEE_SEEN_SHM, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_cluster ran = parse(cases[i].ran_on);
        struct knee_sample samples[64];
        struct knee_log log = made_log(&ran, KNEE_OP_ALL_REDUCE, 64, 8, 0.02, samples);
        double bytes[64];
        log.seen = cases[i].seen;
        log.adapters = cases[i].adapters;
        for (size_t n = 0; n < log.sample_count; n++)
            bytes[n] = samples[n].bytes;
        struct knee_cluster t = parse("8xh100 * 0 @ ib400x8");
        struct knee_collective_query query = {
            KNEE_OP_ALL_REDUCE, {64, NAN, 1, 1}, bytes, log.sample_count};
        OWNED(knee_collective) c;
        assert_ok(knee_collective_run(&t, &query, NULL, &c, NULL));
        knee_collective_against(&c, &log);
        if (!cases[i].reason && (c.slow_count || c.finding_count))
            fail_msg("%s: %zu slow", cases[i].ran_on, c.slow_count);
        if (cases[i].reason &&
            (!c.finding_count || strcmp(c.findings[0].name, cases[i].reason) != 0))
            fail_msg("%s: %zu slow, %s", cases[i].ran_on, c.slow_count,
                     c.finding_count ? c.findings[0].name : "no reason");
    }
}

/* Memory may run out at any allocation: an error, nothing lost, outputs untouched. */
struct budget {
    int left;
};

static void *limited(void *ctx, void *ptr, size_t size)
{
    struct budget *budget = ctx;
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return budget->left-- > 0 ? realloc(ptr, size) : NULL;
}

TEST(memory_runs_out)
{
    struct knee_cluster truth = parse("8xh100 * 0 @ ib400x8");
    struct knee_sample samples[2][64];
    struct knee_log logs[2] = {made_log(&truth, KNEE_OP_ALL_REDUCE, 16, 2, 0.03, samples[0]),
                               made_log(&truth, KNEE_OP_ALL_REDUCE, 32, 4, 0.03, samples[1])};
    bool done = false;
    for (int n = 0; n < 200 && !done; n++) {
        struct budget budget = {n};
        struct knee_alloc alloc = {limited, &budget};
        struct knee_check check;
        struct knee_err err = {0};
        knee_status status =
            knee_check_logs(&(struct knee_log_view){logs, 2, &alloc}, NULL, NULL, &check, &err);
        assert_true(status == KNEE_OK || status == KNEE_SYSTEM);
        done = status == KNEE_OK;
        if (done)
            knee_check_release(&check);
    }
    assert_true(done);
    static const char text[] = "  1048576 262144 float sum -1 100.00 10.49 19.66 0 99.00 10.59 "
                               "19.86 0\n";
    done = false;
    for (int n = 0; n < 50 && !done; n++) {
        struct budget budget = {n};
        struct knee_alloc alloc = {limited, &budget};
        OWNED(knee_logs) read = {.alloc = &alloc};
        knee_status status = knee_logs_read(&read, text, strlen(text), "x", NULL, NULL);
        assert_true(status == KNEE_OK || status == KNEE_SYSTEM);
        done = status == KNEE_OK;
    }
    assert_true(done);
}

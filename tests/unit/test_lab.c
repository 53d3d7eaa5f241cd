/* SPDX-License-Identifier: MIT */
/* The lab: formats, collectives over threads, optimizers, loader, runs of 1 to 4 workers. */
#include "lab/lab.h"
#include "lab/lab_optimizer.h"
#include "lab/lab_record.h"
#include "lab/lab_sweep.h"
#include "ranks.h"
#include "trace_help.h"

#include <unistd.h>

/* ---- Arithmetic ---- */

TEST(products_agree)
{
    uint64_t seed = 3;
    float a[7 * 9], b[9 * 9], c[7 * 9];
    for (int blas = 0; blas < 2; blas++) {
        lab_blas(blas);
        for (int ways = 0; ways < 4; ways++) {
            bool at = ways & 1, bt = ways & 2;
            for (int i = 0; i < 63; i++)
                a[i] = (float)chance(&seed), c[i] = (float)i;
            for (int i = 0; i < 81; i++)
                b[i] = (float)chance(&seed) - 0.5f;
            struct lab_gemm shape = {at, bt, 7, 9, 8, at ? 7u : 9u, 9, 9, 2, 0.5f};
            lab_gemm(shape, a, b, c);
            for (size_t i = 0; i < 7; i++)
                for (size_t j = 0; j < 9; j++) {
                    double sum = 0.5 * (double)(i * 9 + j);
                    for (size_t k = 0; k < 8; k++)
                        sum += 2 * (double)(at ? a[k * 7 + i] : a[i * 9 + k]) *
                               (double)(bt ? b[j * 9 + k] : b[k * 9 + j]);
                    assert_near(c[i * 9 + j], sum, 1e-4);
                }
        }
    }
}

/* ---- Formats ---- */

static const struct lab_format *const formats[] = {&lab_f32, &lab_bf16, &lab_fp8, &lab_int8,
                                                   &lab_one_bit};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Encoding writes exactly the bytes that are counted, for lengths around the block sizes. */
TEST(bytes_are_counted)
{
    static const size_t lengths[] = {1, 7, 8, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 3001};
    for (size_t f = 0; f < FORMATS; f++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            float values[3001];
            size_t bytes = lab_format_bytes(formats[f], lengths[l]);
            unsigned char *out = malloc(bytes + 8);
            for (size_t i = 0; i < lengths[l]; i++)
                values[i] = (float)i - 5;
            memset(out, 0xa5, bytes + 8);
            formats[f]->encode(values, lengths[l], out);
            for (size_t i = 0; i < 8; i++)
                assert_int_equal(out[bytes + i], 0xa5);
            free(out);
        }
}

TEST(formats_round)
{
    static const double worst[FORMATS] = {0, 1.0 / 256, 1.0 / 16, 0.5 / 127, 1};
    uint64_t seed = 11;
    for (size_t f = 0; f < FORMATS; f++) {
        float values[1000], back[1000];
        unsigned char *code = malloc(lab_format_bytes(formats[f], 1000));
        for (size_t i = 0; i < 1000; i++)
            values[i] = (float)(chance(&seed) * 2 - 1);
        values[0] = 1; /* the largest of its block */
        formats[f]->encode(values, 1000, code);
        formats[f]->decode(code, 1000, back);
        for (size_t i = 0; i < 1000; i++) {
            /* relative for the floating formats, absolute (of the scale) for the others */
            double size = f == 1 || f == 2 ? fmax(fabs((double)values[i]), 1e-3) : 1;
            assert_near(back[i], values[i], worst[f] * size * 1.0001);
        }
        free(code);
    }
}

/* Every fp8 code is the nearest one to its own value, and to values a third of the way around it.
 */
TEST(fp8_is_nearest)
{
    float table[127], values[128] = {448};
    unsigned char code[4 + 128];
    for (int i = 0; i < 127; i++) { /* by the definition of e4m3 */
        int power = i >> 3, eighths = i & 7;
        table[i] = (float)(power ? ldexp(8 + eighths, power - 10) : ldexp(eighths, -9));
    }
    for (int i = 0; i < 127; i++)
        for (int third = -1; third <= 1; third++) {
            float step = third < 0 ? table[i] - table[i ? i - 1 : 0]
                                   : table[i < 126 ? i + 1 : 126] - table[i];
            values[1] = table[i] + (float)third * step / 3;
            float back[2];
            lab_fp8.encode(values, 2, code);
            lab_fp8.decode(code, 2, back);
            assert_true(back[1] == table[i]);
            values[1] = -values[1];
            lab_fp8.encode(values, 2, code);
            lab_fp8.decode(code, 2, back);
            assert_true(back[1] == -table[i]);
        }
}

/* ---- Collectives ---- */

enum { VALUES = 1237 };

struct sum_test {
    const struct lab_format *format;
    int rounds;
    float results[RANKS_MAX][VALUES];
    double totals[RANKS_MAX][VALUES];
    double sent[RANKS_MAX];
};

static float value_at(int rank, size_t i)
{
    uint64_t seed = (uint64_t)rank * 7919 + i + 1;
    chance(&seed);
    return (float)(chance(&seed) - 0.3);
}

static void sum_on_rank(struct knee_runtime *rt, void *ctx)
{
    struct sum_test *test = ctx;
    struct lab_group group = {.runtime = rt, .rank = rt->rank, .size = rt->size};
    bool exact = test->format == &lab_f32 || test->format == &lab_bf16;
    float *memory = exact ? NULL : calloc(VALUES, sizeof *memory);
    float *owner = exact ? NULL : calloc(VALUES, sizeof *owner);
    unsigned char *room = malloc(lab_ring_room(test->format, VALUES, rt->size));
    float start[VALUES];
    for (size_t i = 0; i < VALUES; i++)
        start[i] = value_at(rt->rank, i);
    for (int round = 0; round < test->rounds; round++) {
        memcpy(test->results[rt->rank], start, sizeof start);
        if (!lab_ring_sum(
                &group, test->format,
                &(struct lab_vector){test->results[rt->rank], VALUES, memory, owner, room}))
            abort();
        for (size_t i = 0; i < VALUES; i++)
            test->totals[rt->rank][i] += (double)test->results[rt->rank][i];
    }
    test->sent[rt->rank] = (double)group.sent_bytes;
    free(memory);
    free(owner);
    free(room);
}

/* All ranks get the same bits; f32 is the sum; with error feedback the mean over many rounds is. */
TEST(sums_are_sums)
{
    static const double worst[FORMATS] = {1e-5, 0.05, 0.01, 0.002, 0.3};
    static struct sum_test test;
    for (int size = 1; size <= 5; size++)
        for (size_t f = 0; f < FORMATS; f++) {
            memset(&test, 0, sizeof test);
            test.format = formats[f];
            test.rounds = f < 2 ? 1 : 150;
            on_ranks(size, sum_on_rank, &test);
            for (int r = 1; r < size; r++)
                assert_memory_equal(test.results[0], test.results[r], sizeof test.results[0]);
            for (size_t i = 0; i < VALUES; i++) {
                double sum = 0;
                for (int r = 0; r < size; r++)
                    sum += (double)value_at(r, i);
                assert_near(test.totals[0][i] / test.rounds, sum, worst[f] * size);
            }
            double most = 0;
            for (int r = 0; r < size; r++)
                most = fmax(most, test.sent[r] / test.rounds);
            if (size > 1)
                assert_relative(most, lab_ring_sum_bytes(formats[f], VALUES, size), 0.03);
        }
}

struct wire_test {
    int wire, rounds;
    float results[RANKS_MAX][4096];
    double totals[4096], sent, model;
};

static void wire_on_rank(struct knee_runtime *rt, void *ctx)
{
    struct wire_test *test = ctx;
    static const struct lab_tensor tensors[] = {{0, 60, 50, 0}, {3000, 1, 100, 0}};
    struct lab_bucket bucket = {.at = 0, .count = 3100, .tensors = tensors, .tensor_count = 2};
    const struct lab_wire *wire = lab_wire_at(test->wire);
    struct knee_arena memory = {0};
    struct lab_group group = {.runtime = rt, .rank = rt->rank, .size = rt->size};
    float *values = test->results[rt->rank];
    if (!lab_bucket_init(&bucket, wire, rt->size, &memory))
        abort();
    float start[4096];
    for (size_t i = 0; i < bucket.count; i++)
        start[i] = value_at(rt->rank, i);
    for (int round = 0; round < test->rounds; round++) {
        memcpy(values, start, bucket.count * sizeof *values);
        if (!wire->exchange(wire, &group, &bucket, values))
            abort();
        for (size_t i = 0; rt->rank == 0 && i < bucket.count; i++)
            test->totals[i] += (double)values[i] / test->rounds;
    }
    if (rt->rank == 0) {
        test->sent = (double)group.sent_bytes / test->rounds;
        test->model = wire->bytes(wire, &bucket, rt->size);
    }
    knee_arena_release(&memory);
}

/* Every wire gives all ranks the same, sends what its formula says, and with its memory is right in
 * the long run: what is left out now comes later. */
TEST(wires_are_right_in_the_long_run)
{
    static struct wire_test test;
    for (int wire = 0; lab_wire_at(wire); wire++)
        for (int size = 1; size <= 4; size++) {
            memset(&test, 0, sizeof test);
            test.wire = wire;
            test.rounds = 200;
            on_ranks(size, wire_on_rank, &test);
            double apart = 0, all = 0;
            for (size_t i = 0; i < 3100; i++) {
                double sum = 0;
                for (int r = 0; r < size; r++)
                    sum += (double)value_at(r, i);
                apart += (test.totals[i] - sum) * (test.totals[i] - sum);
                all += sum * sum;
            }
            for (int r = 1; r < size; r++)
                assert_memory_equal(test.results[0], test.results[r], 3100 * sizeof(float));
            assert_true(sqrt(apart / all) < 0.3);
            assert_near(test.sent, test.model, 0.01 * test.model + 8);
        }
}

/* ---- Optimizers ---- */

static void step_once(int row, double rate, float scale, float *params)
{
    static const struct lab_tensor tensor = {0, 2, 2, 0};
    OWNED(lab_optimizer) o;
    float grads[4] = {1 * scale, -2 * scale, 3 * scale, -4 * scale};
    assert_true(lab_optimizer_init(&o, row, 4));
    o.rate = rate;
    for (int i = 0; i < 4; i++)
        params[i] = (float)(i + 1);
    lab_optimizer_step(&o, &tensor, 1, params, grads);
}

static int optimizer_row(const char *name)
{
    for (size_t i = 0; i < lab_optimizer_names.count(); i++)
        if (strcmp(lab_optimizer_names.name(i), name) == 0)
            return (int)i;
    fail_msg("no optimizer %s", name);
    return -1;
}

TEST(optimizers_step_by_hand)
{
    float p[4], q[4];
    step_once(optimizer_row("sgd"), 0.1, 1, p);
    assert_near(p[0], 1 - 0.1, 1e-6);
    assert_near(p[3], 4 + 0.4, 1e-6);
    /* Adam's first step is the rate times the sign, plus decay of 1 % of the rate */
    step_once(optimizer_row("adam"), 0.1, 1, p);
    assert_near(p[0], 1 - 0.1 - 0.001, 1e-5);
    assert_near(p[3], 4 + 0.1 - 0.004, 1e-5);
    /* layer-wise rates do not know the size of the gradient */
    step_once(optimizer_row("lamb"), 0.1, 1, p);
    step_once(optimizer_row("lamb"), 0.1, 100, q);
    for (int i = 0; i < 4; i++)
        assert_near(p[i], q[i], 1e-4);
    double moved = 0;
    for (int i = 0; i < 4; i++)
        moved += ((double)p[i] - (i + 1)) * ((double)p[i] - (i + 1));
    assert_relative(sqrt(moved), 0.1 * sqrt(30), 1e-3); /* the rate times the norm of w */
    step_once(optimizer_row("lars"), 10, 1, p);
    step_once(optimizer_row("lars"), 10, 100, q);
    for (int i = 0; i < 4; i++)
        assert_near(p[i], q[i], 1e-3);
}

TEST(rates_go_up_and_down)
{
    struct lab_optimizer o = {.rate = 2, .warmup = 4, .steps = 20};
    assert_near(lab_optimizer_rate(&o), 0.5, 1e-12);
    o.step = 3;
    assert_near(lab_optimizer_rate(&o), 2, 1e-12);
    o.step = 12;
    assert_near(lab_optimizer_rate(&o), 2 * 0.55, 1e-12);
    o.step = 20;
    assert_near(lab_optimizer_rate(&o), 0.2, 1e-12);
}

/* ---- Input ---- */

#define TEXT_HASH 0x1fa90dd8da7f6e9u /* FNV-1a */

static int text_file(size_t *bytes)
{
    int fd = -1;
    struct knee_err err;
    assert_ok(lab_open_text(NULL, &fd, bytes, &err));
    return fd;
}

/* Shares of a batch read by several loaders, with any number of threads, are the whole batch. */
TEST(shares_make_the_batch)
{
    struct lab_loader_plan plan = {.context = 16,
                                   .guesses = 16,
                                   .global_batch = 10,
                                   .count = 10,
                                   .threads = 1,
                                   .depth = 4,
                                   .seed = 9};
    plan.fd = text_file(&plan.text_bytes);
    unsigned char whole[6][160];
    static struct lab_loader loader;
    assert_true(lab_loader_start(&loader, &plan));
    for (int step = 0; step < 6; step++) {
        const struct lab_batch *batch = lab_loader_take(&loader);
        memcpy(whole[step], batch->tokens, 160);
        for (int i = 0; i + 1 < 16; i++) /* what follows a byte is what it must guess */
            assert_int_equal(batch->targets[i], batch->tokens[i + 1]);
    }
    lab_loader_stop(&loader);
    plan.first = 3;
    plan.count = 4;
    plan.threads = 3;
    assert_true(lab_loader_start(&loader, &plan));
    for (int step = 0; step < 6; step++)
        assert_memory_equal(lab_loader_take(&loader)->tokens, whole[step] + 3 * 16, 4 * 16);
    lab_loader_stop(&loader);
    close(plan.fd);
}

/* The text is the same from every compiler and on every machine. */
TEST(text_is_always_the_same)
{
    size_t bytes;
    int fd = text_file(&bytes);
    uint64_t hash = 1469598103934665603u;
    unsigned char *text = malloc(bytes);
    assert_int_equal(pread(fd, text, bytes, 0), bytes);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ text[i]) * 1099511628211u;
    assert_int_equal(hash, TEXT_HASH);
    free(text);
    close(fd);
}

TEST(a_folder_that_cannot_be_is_refused)
{
    struct knee_err err = {0};
    size_t bytes;
    int fd = -1;
    const char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL, folder[5000];
    memset(folder, 'a', sizeof folder - 1);
    folder[0] = '/';
    folder[sizeof folder - 1] = '\0';
    setenv("TMPDIR", folder, 1);
    assert_int_equal(lab_open_text(NULL, &fd, &bytes, &err), KNEE_SYSTEM);
    assert_string_equal(err.where, "TMPDIR");
    assert_int_equal(fd, -1);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
}

TEST(a_file_that_ends_is_told_of)
{
    struct lab_loader_plan plan = {.context = 16,
                                   .guesses = 16,
                                   .global_batch = 4,
                                   .count = 4,
                                   .threads = 2,
                                   .depth = 4,
                                   .seed = 9};
    static struct lab_loader loader;
    plan.fd = text_file(&plan.text_bytes);
    assert_int_equal(ftruncate(plan.fd, 8), 0);
    assert_true(lab_loader_start(&loader, &plan));
    assert_null(lab_loader_take(&loader));
    lab_loader_stop(&loader);
    close(plan.fd);
}

/* ---- Runs ---- */

struct run_test {
    struct lab_setup setup;
    int workers;
    struct lab_outcome outcomes[RANKS_MAX];
    knee_status status;
};

static struct lab_setup small_setup(void)
{
    return (struct lab_setup){
        .shape = {false, 16, 1, 2, 8},
        .batch = 12,
        .accumulate = 1,
        .steps = 12,
        .untimed = 2,
        .optimizer = 1,
        .rate = NAN,
        .local_steps = 4,
        .overlap = true,
        .bucket_bytes = 4000,
        .loader_threads = 2,
        .late_rank = -1,
        .seed = 3,
        .text_fd = -1,
    };
}

static void run_on_rank(struct knee_runtime *rt, void *ctx)
{
    struct run_test *test = ctx;
    struct knee_err err = {0};
    knee_status status = lab_run(rt, &test->setup, test->workers, &test->outcomes[rt->rank], &err);
    if (status) {
        fprintf(stderr, "rank %d: %s\n", rt->rank, err.what);
        abort();
    }
}

static void run_workers(struct run_test *test, int workers, int ranks)
{
    memset(test->outcomes, 0, sizeof test->outcomes);
    test->workers = workers;
    if (test->setup.text_fd < 0)
        test->setup.text_fd = text_file(&test->setup.text_bytes);
    on_ranks(ranks, run_on_rank, test);
}

static void run_test_release(struct run_test *test)
{
    for (int r = 0; r < RANKS_MAX; r++)
        lab_outcome_release(&test->outcomes[r]);
}

static double largest_gap(const float *a, const float *b, size_t count)
{
    double gap = 0;
    for (size_t i = 0; i < count; i++)
        gap = fmax(gap, fabs((double)a[i] - (double)b[i]));
    return gap;
}

/* Gradient averaging is exact: 1, 2, 3 and 4 workers end with the same parameters, to rounding
 * (SGD: Adam divides by the square root of what may be rounding itself), whatever the buckets, the
 * overlap and the micro-steps are; and all workers with the same bits. */
TEST(workers_equal_one)
{
    static struct run_test test;
    test.setup = small_setup();
    test.setup.optimizer = optimizer_row("sgd");
    run_workers(&test, 1, 1);
    size_t count = test.outcomes[0].param_count;
    float *one = malloc(count * sizeof *one);
    double loss = test.outcomes[0].loss;
    memcpy(one, test.outcomes[0].params, count * sizeof *one);
    run_test_release(&test);
    for (int workers = 1; workers <= 4; workers++)
        for (int way = 0; way < 3; way++) {
            test.setup.overlap = way != 1;
            test.setup.bucket_bytes = way == 2 ? 1e9 : 4000;
            test.setup.accumulate = way == 2 ? 3 : 1;
            run_workers(&test, workers, 4);
            for (int r = 0; r < workers; r++) {
                assert_true(largest_gap(test.outcomes[r].params, one, count) < 2e-5);
                assert_memory_equal(test.outcomes[r].params, test.outcomes[0].params,
                                    count * sizeof *one);
            }
            assert_near(test.outcomes[3].loss, loss, 1e-4);
            assert_near(test.outcomes[0].sent_bytes, test.outcomes[0].model_bytes,
                        0.01 * test.outcomes[0].model_bytes);
            run_test_release(&test);
        }
    free(one);
    close(test.setup.text_fd);
}

/* Meeting after every step with plain SGD steps is summing gradients: a second way to the same
 * parameters. (Momentum is kept by each worker, so that only the first step is compared.) */
TEST(local_sgd_of_one_step_is_sgd)
{
    static struct run_test test;
    test.setup = small_setup();
    test.setup.optimizer = optimizer_row("sgd");
    test.setup.steps = 1;
    test.setup.untimed = 0;
    run_workers(&test, 3, 3);
    size_t count = test.outcomes[0].param_count;
    float *every = malloc(count * sizeof *every);
    memcpy(every, test.outcomes[0].params, count * sizeof *every);
    run_test_release(&test);
    test.setup.sync = LAB_LOCAL_SGD;
    test.setup.local_steps = 1;
    run_workers(&test, 3, 3);
    assert_true(largest_gap(test.outcomes[0].params, every, count) < 1e-6);
    run_test_release(&test);
    free(every);
    close(test.setup.text_fd);
}

/* All strategies and wires learn: the loss falls well below ln 256, that of knowing nothing; with 1
 * % of the values in 64 steps, less so. */
TEST(everything_learns)
{
    static struct run_test test;
    for (int sync = LAB_EVERY_STEP; sync <= LAB_STREAMING; sync++)
        for (int wire = 0; lab_wire_at(wire); wire++) {
            if (sync != LAB_EVERY_STEP && wire > 0)
                continue;
            test.setup = small_setup();
            test.setup.shape =
                (struct lab_shape){.mlp = true, .width = 32, .layers = 1, .context = 4};
            test.setup.batch = 64;
            test.setup.steps = 64;
            test.setup.sync = (enum lab_sync)sync;
            test.setup.wire = wire;
            run_workers(&test, 2, 2);
            if (!(test.outcomes[0].loss < (wire == 6 ? 5.2 : 4.8)))
                fail_msg("%s, %s: loss %g", lab_sync_names.name((size_t)sync),
                         lab_wire_at(wire)->name, test.outcomes[0].loss);
            run_test_release(&test);
            close(test.setup.text_fd);
        }
}

/* Seconds of a step with timed waits and a link held back to 160 kB in 20 ms. */
static double paced_step_s(bool overlap)
{
    static struct run_test test;
    test.setup = small_setup();
    test.setup.synthetic = true;
    test.setup.weak = true;
    test.setup.compute_s = 0.06;
    test.setup.params = 40000;
    test.setup.bucket_bytes = 40000;
    test.setup.pace_bytes_per_s = 8e6;
    test.setup.overlap = overlap;
    test.setup.steps = 8;
    run_workers(&test, 2, 2);
    double step_s = test.outcomes[0].step_s;
    run_test_release(&test);
    close(test.setup.text_fd);
    return step_s;
}

/* Overlap hides what the schedule says it hides: 60 + 20 against 60 + 5 ms. A busy machine adds to
 * either, so three tries. */
TEST(overlap_is_real)
{
    bool hidden = false;
    for (int try = 0; try < 3 && !hidden; try++) {
        double apart_s = paced_step_s(false), together_s = paced_step_s(true);
        assert_true(apart_s > 0.079);
        hidden = together_s < apart_s - 0.008;
    }
    assert_true(hidden);
}

TEST(schedule_by_hand)
{
    const double ready[] = {2, 4, 6}, quick[] = {1, 1, 1}, slow[] = {3, 3, 3};
    assert_near(lab_exposed_s(ready, quick, 3, 6), 1, 1e-12);
    assert_near(lab_exposed_s(ready, slow, 3, 6), 5, 1e-12);
    assert_near(lab_exposed_s(ready, quick, 3, 9), 0, 1e-12);
}

TEST(buckets_cover_everything_once)
{
    static struct lab_layout layout;
    static struct lab_net net;
    struct lab_setup setup = small_setup();
    assert_true(lab_net_init(&net, &setup.shape, 1));
    for (double bytes = 1; bytes < 1e7; bytes *= 7) {
        setup.bucket_bytes = bytes;
        assert_true(lab_layout_init(&layout, &setup, &net, 2));
        size_t end = layout.param_count, tensors = 0;
        for (size_t b = 0; b < layout.bucket_count; b++) {
            assert_int_equal(layout.buckets[b].at + layout.buckets[b].count, end);
            end = layout.buckets[b].at;
            tensors += layout.buckets[b].tensor_count;
        }
        assert_int_equal(end, 0);
        assert_int_equal(tensors, net.tensor_count);
        lab_layout_release(&layout);
    }
    lab_net_release(&net);
}

/* ---- Timelines ---- */

/* What was recorded reads back to the nanosecond; cut off anywhere after a step, it still reads. */
TEST(timelines_read_back)
{
    OWNED(lab_record) record;
    struct knee_err err;
    assert_ok(lab_record_start(&record, &(struct lab_record_of){NULL, true, 1, 2, true}, &err));
    int64_t t = record.base_ns + 1000000;
    for (size_t step = 0; step < 3; step++, t += 1000000) {
        lab_record_load(&record, t, t + 10000);
        lab_record_launch(&record, t + 10000, t + 12000, (int64_t)(2 * step + 1));
        lab_record_work(&record, "linear", t + 13001, t + 500002, (int64_t)(2 * step + 1));
        lab_record_launch(&record, t + 12000, t + 12500, (int64_t)(2 * step + 2));
        lab_record_collective(&record,
                              &(struct lab_collective){"lab_all_reduce_kernel_RING_f32",
                                                       KNEE_OP_ALL_REDUCE, 1000, (int64_t)step},
                              t + 400000, t + 900003, (int64_t)(2 * step + 2));
        lab_record_step(&record, step, t, t + 950000);
    }
    size_t whole = record.text.length;
    lab_record_end(&record);
    for (int cut = 0; cut < 2; cut++) {
        size_t length = cut ? whole : record.text.length;
        OWNED(knee_trace) trace;
        assert_ok(read_bytes(record.text.data, length, "rank1.json", &trace, &err));
        assert_int_equal(trace.rank, 1);
        assert_int_equal(trace.step_count, 3);
        assert_int_equal(trace.load_count, 3);
        assert_int_equal(trace.rank_count, 1);
        assert_int_equal(trace.ranks[0].call_count, 3);
        assert_int_equal(trace.ranks[0].calls[0].bytes, 4000);
        assert_int_equal(trace.ranks[0].calls[2].sequence, 2);
        assert_int_equal(trace.ranks[0].calls[0].op, KNEE_OP_ALL_REDUCE);
        OWNED(knee_account) account;
        assert_ok(knee_account(&trace, 1, NULL, &account, &err));
        assert_int_equal(account.ranks[0].ledger.label_ns[KNEE_COMPUTE], 3 * 487001);
        assert_int_equal(account.ranks[0].ledger.label_ns[KNEE_TRANSFER], 3 * 400001);
        assert_int_equal(trace.losses[KNEE_LOSS_TRUNCATED].count > 0, cut);
    }
}

/* What is in the file leaves memory: a long run does not end because of its timeline. */
TEST(timelines_in_files_do_not_stay_in_memory)
{
    struct lab_record record;
    struct knee_err err;
    size_t step_bytes = 0, events = 0;
    char name[] = "/tmp/knee-test-XXXXXX", line[512];
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(lab_record_start(&record, &(struct lab_record_of){name, false, 0, 1, false}, &err));
    for (size_t step = 0; step < 5000; step++) {
        int64_t t = record.base_ns + 1000 * (int64_t)step;
        lab_record_work(&record, "linear", t, t + 500, (int64_t)step);
        step_bytes = record.text.length > step_bytes ? record.text.length : step_bytes;
        lab_record_step(&record, step, t, t + 900);
    }
    assert_true(step_bytes < 1000 && record.text.capacity <= 4096);
    lab_record_end(&record);
    assert_ok(lab_record_check(&record, name, &err));
    lab_record_release(&record);
    FILE *file = fopen(name, "rb");
    while (fgets(line, sizeof line, file))
        events += strstr(line, "ProfilerStep#") != NULL;
    fclose(file);
    unlink(name);
    assert_int_equal(events, 5000);
}

TEST(a_timeline_on_a_full_disk_is_told_of)
{
    OWNED(lab_record) record;
    struct knee_err err = {0};
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(
        lab_record_start(&record, &(struct lab_record_of){"/dev/full", false, 0, 1, false}, &err),
        KNEE_SYSTEM);
    lab_record_step(&record, 0, record.base_ns, record.base_ns + 900);
    lab_record_end(&record);
    assert_int_equal(lab_record_check(&record, "/dev/full", &err), KNEE_SYSTEM);
    assert_non_null(strstr(err.what, "cannot be written: No space left"));
}

/* ---- Prediction ---- */

/* A ring by hand: K = 4, 1000 values, alpha 1 ms, 1 MB/s, no overlap: 6 (1 ms + 1 kB / (1 MB/s)).
 */
TEST(prediction_by_hand)
{
    struct lab_setup setup = small_setup();
    struct lab_link link = {1e-3, 1e6};
    static struct lab_outcome one;
    struct knee_row row;
    struct knee_err err;
    setup.synthetic = true;
    setup.params = 1000;
    setup.bucket_bytes = 1e9;
    setup.overlap = false;
    one = (struct lab_outcome){.step_s = 0.11, .compute_s = 0.1, .ready_share = {1}};
    assert_ok(lab_predict(&setup, &one, &(struct lab_wire_cost){&link, 0}, 4, &row, &err));
    assert_near(row.step.wall_s, 0.1 / 4 + 0.01 + 6 * (1e-3 + 1e-3), 1e-9);
    one.ready_share[0] = 0.5; /* half of compute may hide it */
    assert_ok(lab_predict(&setup, &one, &(struct lab_wire_cost){&link, 0}, 4, &row, &err));
    assert_near(row.step.wall_s, 0.1 / 4 + 0.01, 1e-9);
    setup.weak = true;
    one.ready_share[0] = 1;
    assert_ok(lab_predict(&setup, &one, &(struct lab_wire_cost){&link, 2e-3}, 4, &row, &err));
    assert_near(row.step.wall_s, 0.11 + 14e-3, 1e-9);
}

TEST(knee_of_a_curve)
{
    struct knee_lab_row rows[3] = {
        {.workers = 1, .efficiency = 1, .predicted_efficiency = 1},
        {.workers = 2, .efficiency = 0.85, .predicted_efficiency = 0.79},
        {.workers = 4, .efficiency = 0.6, .predicted_efficiency = 0.6},
    };
    const double gammas[] = {0, 0.5, 1.5};
    struct knee_lab_knee knee = lab_find_knee(rows, 3, 0.8, false, gammas);
    assert_near(knee.tolerance_workers, 2, 0);
    assert_near(knee.gamma_one_workers, 3, 1e-12);
    assert_near(lab_find_knee(rows, 3, 0.8, true, gammas).tolerance_workers, 1, 0);
}

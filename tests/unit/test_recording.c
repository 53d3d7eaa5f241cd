/* SPDX-License-Identifier: MIT */
/*
 * What a recording is, and what one rank alone shows: the answer must not depend on what a reader
 * kept of the host, nor promise what the recording does not show.
 */
#include "trace_help.h"

#include "read/trace/product_args.h"
#include "timeline/recordings.h"

struct made {
    char text[400000];
    size_t length;
};

static void put(struct made *m, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    m->length += (size_t)vsnprintf(m->text + m->length, sizeof m->text - m->length, format, list);
    va_end(list);
    assert_true(m->length < sizeof m->text);
}

static void begin(struct made *m, int world)
{
    m->length = 0;
    put(m,
        "{\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H200\"}], \"distributedInfo\": "
        "{\"backend\": \"nccl\", \"rank\": 0, \"world_size\": %d}, \"traceEvents\": [\n",
        world);
}

static void event(struct made *m, const char *cat, const char *name, double ts, double dur,
                  int stream, const char *args)
{
    put(m,
        "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d, \"ts\": %.3f, "
        "\"dur\": %.3f, \"args\": {%s}},\n",
        cat, name, stream, ts, dur, args);
}

static void kernel_named(struct made *m, const char *name, int id, double ts, double dur)
{
    char args[96];
    snprintf(args, sizeof args, "\"correlation\": %d", id);
    event(m, "cuda_runtime", "cudaLaunchKernel", ts - 10, 5, 1, args);
    snprintf(args, sizeof args, "\"stream\": 7, \"correlation\": %d", id);
    event(m, "kernel", name, ts, dur, 7, args);
}

static void kernel(struct made *m, int id, double ts, double dur)
{
    kernel_named(m, "nvjet_sm90_tst_128x256_64x4", id, ts, dur);
}

static void all_reduce(struct made *m, int id, double ts, double dur, long elements)
{
    char args[320];
    snprintf(args, sizeof args,
             "\"stream\": 20, \"correlation\": %d, \"Collective name\": \"allreduce\", \"In msg "
             "nelems\": %ld, \"Out msg nelems\": %ld, \"Group size\": 2, \"dtype\": \"Float\", "
             "\"Process Group Name\": \"0\"",
             id, elements, elements);
    event(m, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", ts, dur, 20, args);
}

static void step(struct made *m, int number, double ts, double dur)
{
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    event(m, "user_annotation", name, ts, dur, 1, "");
}

static struct knee_trace end_with(struct made *m, struct knee_trace_options options)
{
    struct knee_trace trace;
    struct knee_err err;
    struct source source = {.data = m->text};
    put(m, "{\"ph\": \"M\", \"name\": \"x\", \"pid\": 0, \"tid\": 0, \"args\": {}}\n]}\n");
    source.length = m->length;
    if (knee_trace_read((struct knee_reader){source_read, &source}, "rank0.json", &options, NULL,
                        &trace, &err))
        fail_msg("%s; %s", err.what, err.hint);
    return trace;
}

static struct knee_trace end(struct made *m, bool host)
{
    return end_with(m, (struct knee_trace_options){.host = host});
}

static struct knee_diagnosis diagnosis_of(struct knee_trace *trace)
{
    struct knee_account account;
    struct knee_job job;
    struct knee_diagnosis d;
    struct knee_err err;
    knee_job_init(&job);
    assert_ok(knee_account(trace, 1, NULL, &account, &err));
    knee_expect_of_gpus(&account);
    assert_ok(knee_diagnose(&account, &job, NULL, &d, &err));
    knee_account_release(&account);
    return d;
}

/* Three steps of 100 kernels with a product each, and one more operation of the host. */
static void steps_with(struct made *m, const char *category, const char *operation)
{
    begin(m, 1);
    for (int s = 0; s < 3; s++) {
        step(m, s, 100000.0 * s, 100000);
        event(m, "cpu_op", "aten::mm", 100000.0 * s + 5, 10, 1, "");
        event(m, category, operation, 100000.0 * s + 20, 10, 1, "");
        for (int i = 0; i < 100; i++)
            kernel(m, 1 + 100 * s + i, 100000.0 * s + 100 + 900 * i, 880);
    }
}

TEST(backward_is_known_without_the_host)
{
    static struct made m;
    static const struct {
        const char *category, *operation;
        enum knee_recorded recorded;
    } cases[] = {
        {"cpu_op", "aten::add", KNEE_RECORDED_FORWARD},
        {"cpu_op", "MmBackward0", KNEE_RECORDED_TRAINING},
        {"cpu_op", "autograd::engine::evaluate_function: AddBackward", KNEE_RECORDED_TRAINING},
        {"user_annotation", "Optimizer.step#SGD.step", KNEE_RECORDED_TRAINING},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int host = 0; host < 2; host++) {
            steps_with(&m, cases[i].category, cases[i].operation);
            OWNED(knee_trace) trace = end(&m, host);
            assert_int_equal(trace.host_event_count > 0, host);
            assert_int_equal(diagnosis_of(&trace).recording, cases[i].recorded);
        }
}

/* Networks without a matrix product: convolutions only. */
TEST(any_operation_shows_a_forward_pass)
{
    static struct made m;
    static const char *const operations[] = {"aten::conv2d", "my scope"};
    for (int named = 0; named < 2; named++)
        for (int host = 0; host < 2; host++) {
            begin(&m, 1);
            event(&m, "cpu_op", operations[named], 5, 10, 1, "");
            for (int i = 0; i < 100; i++)
                kernel(&m, 1 + i, 100 + 900 * i, 880);
            OWNED(knee_trace) trace = end(&m, host);
            assert_int_equal(diagnosis_of(&trace).recording,
                             named == 0 ? KNEE_RECORDED_FORWARD : KNEE_RECORDED_TRAINING);
        }
}

/* A loader that starts its processes before the first kernel; with a second batch it is a job. */
TEST(the_first_batch_is_a_first_step)
{
    static struct made m;
    for (int batches = 1; batches <= 2; batches++) {
        begin(&m, 1);
        for (int b = 0; b < batches; b++) {
            event(&m, "user_annotation",
                  "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 900000.0 * b,
                  700000, 1, "");
            for (int i = 0; i < 100; i++)
                kernel(&m, 1 + 100 * b + i, 900000.0 * b + 750000 + 900 * i, 880);
        }
        OWNED(knee_trace) trace = end(&m, false);
        struct knee_diagnosis d = diagnosis_of(&trace);
        assert_int_equal(d.recording == KNEE_RECORDED_FIRST_STEP, batches == 1);
        assert_int_equal(d.cold_loads, batches == 1);
        assert_true(batches == 2 || fabs(d.cold_s - 0.7) < 1e-9);
        assert_true(d.loads_ahead);
    }
}

TEST(captures_and_long_calls_are_known_without_the_host)
{
    static struct made m;
    for (int host = 0; host < 2; host++) {
        begin(&m, 1);
        kernel(&m, 1, 100, 50);
        event(&m, "cuda_runtime", "cudaStreamBeginCapture", 200, 5, 1, "\"correlation\": 2");
        event(&m, "cuda_runtime", "cudaStreamSynchronize", 300, 80000, 1, "\"correlation\": 3");
        event(&m, "cuda_runtime", "cudaStreamSynchronize", 90000, 10, 1, "\"correlation\": 4");
        kernel(&m, 5, 91000, 50);
        OWNED(knee_trace) trace = end(&m, host);
        assert_int_equal(trace.captures, 1);
        assert_int_equal(trace.long_call_count, 1);
        assert_int_equal(trace.long_calls[0].end_ns - trace.long_calls[0].start_ns, 80000000);
        assert_int_equal(diagnosis_of(&trace).recording, KNEE_RECORDED_CAPTURE);
    }
}

/* One rank of two: 33.6 MB takes 20 ms, once 1 ms (the data was there) and once 60 ms in each step.
 * 40 ms of that is waiting; the one quick call is not what the wire can do. */
TEST(one_rank_waits_for_what_is_longer_than_usual)
{
    static struct made m;
    begin(&m, 2);
    for (int s = 0; s < 3; s++) {
        double at = 200000.0 * s;
        step(&m, s, at, 200000);
        kernel(&m, 1 + 10 * s, at + 100, 20000);
        for (int i = 0; i < 5; i++, at += 21000)
            all_reduce(&m, 2 + 10 * s + i, at + 21000, s == 1 && i == 2 ? 1000 : 20000, 8388608);
        all_reduce(&m, 9 + 10 * s, at + 21000, 60000, 8388608);
    }
    OWNED(knee_trace) trace = end(&m, false);
    struct knee_diagnosis d = diagnosis_of(&trace);
    assert_true(d.lone.least_s > 0.039 && d.lone.least_s < 0.041);
    assert_true(d.slow_wire != SIZE_MAX);                               /* 1.7 GB/s */
    assert_true(d.wired_step_s > d.step.label_s[KNEE_COMPUTE] + 0.039); /* waiting stays */
}

/* A small message cannot take longer than a much larger one: it waits, and the link is not slow. */
TEST(small_messages_are_held_against_large_ones)
{
    static struct made m;
    begin(&m, 2);
    for (int s = 0; s < 3; s++) {
        double at = 100000.0 * s;
        step(&m, s, at, 100000);
        for (int i = 0; i < 10; i++) /* fewer are too few for a verdict */
            kernel(&m, 1 + 20 * s + i, at + 100 + 4000 * i, 3999);
        all_reduce(&m, 12 + 20 * s, at + 41000, 300, 8388608);
        all_reduce(&m, 13 + 20 * s, at + 42000, 50000, 65536);
    }
    OWNED(knee_trace) trace = end(&m, false);
    struct knee_diagnosis d = diagnosis_of(&trace);
    assert_true(d.lone.least_s > 0.049 && d.lone.least_s < 0.0501);
    assert_int_equal(d.lone.bytes, 262144);
    assert_int_equal(d.lone.short_bytes, 33554432);
    assert_true(d.slow_wire == SIZE_MAX);
    assert_int_equal(d.headline, KNEE_SAYS_CHANGE);
    assert_string_equal(d.levers[d.lever].name, "even workers");
}

/* A step that sleeps for 40 of 100 ms in one place is not launch-bound; with the same time between
 * its kernels it is. */
TEST(long_gaps_are_not_launches)
{
    static struct made m;
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        begin(&m, 1);
        for (int s = 0; s < 3; s++) {
            step(&m, s, 100000.0 * s, 100000);
            for (int i = 0; i < 100; i++)
                kernel(&m, 1 + 100 * s + i,
                       100000.0 * s + 20 +
                           (sleeps ? 600.0 * i + (i >= 50 ? 39900 : 0) : 1000.0 * i),
                       595);
        }
        OWNED(knee_trace) trace = end(&m, false);
        struct knee_diagnosis d = diagnosis_of(&trace);
        assert_true(d.step.label_s[KNEE_HOST] > 0.03);
        assert_int_equal(d.profiled_host, !sleeps);
        bool launches =
            d.headline == KNEE_SAYS_CHANGE && strcmp(d.levers[d.lever].name, "fewer launches") == 0;
        assert_int_equal(launches, !sleeps);
    }
}

/* Ten kernels of 10 ms fill a step: the first `special` of them have the name that is asked about,
 * the rest are 16-bit products. Is the change advised, and what is left of the 100 ms? 32-bit
 * products take 0.9 * 67 / (0.7 * 494.75) of their time as TF32 on an H200; attention
 * that is fused has no kernels for its scores. */
TEST(slow_kernels_have_a_faster_kind)
{
    static struct made m;
    static const struct {
        const char *kernel, *others, *change; /* change NULL: none */
        int special;
        double step_ms;
    } cases[] = {
        {"sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_ffma_aligna4", "nvjet_sm90_tst", "tensor cores", 9,
         10 + 90 * 0.9 * 67 / (0.7 * 494.75)},
        {"cutlass_80_simt_sgemm_128x256_8x4_nt_align1", "nvjet_sm90_tst", "tensor cores", 9,
         10 + 90 * 0.9 * 67 / (0.7 * 494.75)},
        {"sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n", "nvjet_sm90_tst", "16 bits", 9, 10 + 86.7 * 0.5},
        {"cutlass_80_tensorop_s1688gemm_128x256", "nvjet_sm90_tst", "16 bits", 9, 10 + 86.7 * 0.5},
        {"sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n", "nvjet_sm90_tst", NULL, 2, 100},
        {"my_sgemm_naive(int, float const*)", "nvjet_sm90_tst", NULL, 9, 100},
        {"sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckcrs_ffma", "nvjet_sm90_tst", NULL, 9,
         100},
        {"softmax_warp_forward<float, float, float, 10, false, false>", "nvjet_sm90_tst",
         "fused attention", 3, 70},
        {"softmax_warp_forward<float, float, float, 10, true, false>", "nvjet_sm90_tst", NULL, 3,
         100},
        {"softmax_warp_forward<float, float, float, 10, false, true>", "nvjet_sm90_tst",
         "fused attention", 3, 70},
        {"cunn_SoftMaxForward<4, float, LogSoftMaxForwardEpilogue>", "nvjet_sm90_tst", NULL, 3,
         100},
        {"cunn_SoftMaxForward<4, float, SoftMaxForwardEpilogue>", "flash_fwd_kernel", NULL, 3, 100},
        {"softmax_warp_forward<float, float, float, 10, false, false>", "nvjet_sm90_tst", NULL, 1,
         100}, /* once per step: a loss */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(&m, 1);
        for (int s = 0; s < 3; s++) {
            step(&m, s, 100000.0 * s, 100000);
            event(&m, "cpu_op", "MmBackward0", 100000.0 * s + 5, 10, 1, "");
            for (int k = 0; k < 10; k++)
                kernel_named(&m, k < cases[i].special ? cases[i].kernel : cases[i].others,
                             1 + 10 * s + k, 100000.0 * s + 10000 * k, 10000);
        }
        OWNED(knee_trace) trace = end(&m, false);
        struct knee_diagnosis d = diagnosis_of(&trace);
        if (cases[i].change) {
            assert_int_equal(d.headline, KNEE_SAYS_CHANGE);
            assert_string_equal(d.levers[d.lever].name, cases[i].change);
            assert_true(fabs(1e3 * d.levers[d.lever].row.step.wall_s - cases[i].step_ms) < 1);
            assert_true(d.levers[d.lever].low_s <= d.levers[d.lever].row.step.wall_s);
            assert_true(d.levers[d.lever].high_s >= d.levers[d.lever].row.step.wall_s);
        } else {
            assert_int_equal(d.headline, KNEE_SAYS_HEALTHY);
        }
    }
}

/* Each kernel waits 400 us for its launch; or for memory, which no graph saves. */
TEST(calls_that_allocate_are_not_launches)
{
    static struct made m;
    for (int allocates = 0; allocates < 2; allocates++) {
        begin(&m, 1);
        for (int i = 0; i < 100; i++) {
            kernel(&m, 1 + i, 20 + 1000.0 * i, 595);
            if (allocates)
                event(&m, "cuda_runtime", "cudaMalloc", 20 + 1000.0 * i + 600, 380, 1, "");
        }
        OWNED(knee_trace) trace = end(&m, false);
        struct knee_diagnosis d = diagnosis_of(&trace);
        assert_true(d.step.label_s[KNEE_HOST] > 0.03);
        assert_int_equal(2 * d.spent_s[KNEE_SPENT_LONG_HOST] > d.step.label_s[KNEE_HOST],
                         allocates);
        assert_int_equal(d.headline == KNEE_SAYS_CHANGE, !allocates);
    }
}

/* What a change leaves of the recording, by its replay; the recording's length without it. */
static double replayed_s(struct knee_trace *trace, const char *name)
{
    struct knee_account account;
    struct knee_job job;
    struct knee_diagnosis d;
    knee_job_init(&job);
    assert_ok(knee_account(trace, 1, NULL, &account, NULL));
    assert_ok(knee_diagnose(&account, &job, NULL, &d, NULL));
    assert_ok(knee_replay_levers(&account, false, NULL, &d, NULL));
    double step_s = d.step.wall_s;
    for (size_t i = 0; i < d.lever_count; i++)
        if (strcmp(d.levers[i].name, name) == 0) {
            assert_int_equal(d.levers[i].by, KNEE_BY_REPLAY);
            step_s = d.levers[i].row.step.wall_s;
        }
    knee_account_release(&account);
    return step_s;
}

/* A batch that was loaded before the GPU had work is not part of what is replayed. */
TEST(loads_before_the_recording_do_not_count)
{
    static struct made m;
    static const char load[] = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    begin(&m, 1);
    event(&m, "user_annotation", load, 0, 200000, 1, "");
    for (int i = 0; i < 100; i++)
        kernel(&m, 1 + i, 201000 + 900 * i, 300);
    event(&m, "user_annotation", load, 201000 + 900 * 50 + 320, 400, 1, "");
    OWNED(knee_trace) trace = end(&m, true);
    double step_s = replayed_s(&trace, "faster loader");
    assert_true(step_s > 0.08 && step_s < 0.091);
}

/* In a window without steps what is exchanged need not be gradients: nothing to compress. */
TEST(windows_without_steps_compress_nothing)
{
    static struct made m;
    for (int marked = 0; marked < 2; marked++) {
        size_t compressed = 0;
        begin(&m, 2);
        for (int s = 0; s < 3; s++) {
            if (marked)
                step(&m, s, 100000.0 * s, 100000);
            for (int i = 0; i < 50; i++)
                kernel(&m, 1 + 50 * s + i, 100000.0 * s + 100 + 900 * i, 880);
            all_reduce(&m, 1000 + s, 100000.0 * s + 46000, 50000, 25000000L * (marked + s));
        }
        OWNED(knee_trace) trace = end(&m, false);
        struct knee_diagnosis d = diagnosis_of(&trace);
        assert_int_equal((d.gaps & KNEE_GAP_NO_STEPS) != 0, !marked);
        for (size_t i = 0; i < d.lever_count; i++)
            compressed += d.levers[i].numerics == KNEE_NUMERICS_TRAINING;
        assert_int_equal(compressed > 0, marked);
    }
}

/* Work before the first step is not work of a step: 3 kernels each, whatever comes before. */
TEST(comparisons_count_complete_steps)
{
    static struct made m;
    struct knee_trace traces[2];
    struct knee_account accounts[2];
    struct knee_diagnosis d[2];
    struct knee_comparison c;
    struct knee_job job;
    knee_job_init(&job);
    for (int side = 0; side < 2; side++) {
        begin(&m, 1);
        for (int i = 0; i < 30 * side; i++)
            kernel(&m, 500 + i, 100 + 1000 * i, 500);
        for (int s = 1; s < 4; s++) {
            step(&m, s, 100000.0 * s, 100000);
            for (int i = 0; i < 3; i++)
                kernel(&m, 10 * s + i, 100000.0 * s + 100 + 30000 * i, 29000);
        }
        traces[side] = end(&m, false);
        assert_ok(knee_account(&traces[side], 1, NULL, &accounts[side], NULL));
        assert_ok(knee_diagnose(&accounts[side], &job, NULL, &d[side], NULL));
    }
    assert_ok(knee_compare((struct knee_judged_run){&accounts[0], &d[0]},
                           (struct knee_judged_run){&accounts[1], &d[1]}, NULL, &c, NULL));
    assert_true(c.movers[0].before_calls == 3 && c.movers[0].after_calls == 3);
    assert_false(c.differs & KNEE_DIFFER_KERNELS);
    for (int side = 0; side < 2; side++) {
        knee_account_release(&accounts[side]);
        knee_trace_release(&traces[side]);
    }
}

/* Three steps of two products, the second of which takes `mm_us`, and an update; with `shapes` as
 * record_shapes writes them. */
static struct knee_trace products(struct made *m, bool shapes, double mm_us)
{
    static const char *const dims[] = {"[[8, 512], [512, 64], []]", "[[8, 512], [512, 128]]",
                                       "[[[4], [5]], [6], [7, 7]]"};
    static const char *const names[] = {"aten::mm", "aten::mm", "aten::_foreach_add_"};
    begin(m, 1);
    for (int s = 1; s < 4; s++) {
        step(m, s, 100000.0 * s, 100000);
        for (int i = 0; i < 3; i++) {
            double ts = 100000.0 * s + 100 + 30000 * i;
            char args[96] = "";
            if (shapes)
                snprintf(args, sizeof args, "\"Input Dims\": %s", dims[i]);
            event(m, "cpu_op", "aten::linear", ts - 40, 50, 1, "");
            event(m, "cpu_op", names[i], ts - 30, 30, 1, args);
            kernel(m, 10 * s + i, ts, i == 1 ? mm_us : 9000);
        }
        event(m, "kernel", "unlaunched", 100000.0 * s + 95000, 1000, 7,
              "\"stream\": 7, \"correlation\": 9999");
    }
    return end_with(m, (struct knee_trace_options){.host = true, .detail = true, .shapes = true});
}

static knee_status compared(struct knee_trace *before, struct knee_trace *after,
                            const struct knee_alloc *alloc, struct knee_comparison *c)
{
    struct knee_trace *traces[] = {before, after};
    struct knee_account accounts[2];
    struct knee_diagnosis d[2];
    struct knee_job job;
    knee_job_init(&job);
    for (int side = 0; side < 2; side++) {
        assert_ok(knee_account(traces[side], 1, NULL, &accounts[side], NULL));
        assert_ok(knee_diagnose(&accounts[side], &job, NULL, &d[side], NULL));
    }
    knee_status status =
        knee_compare((struct knee_judged_run){&accounts[0], &d[0]},
                     (struct knee_judged_run){&accounts[1], &d[1]}, alloc, c, NULL);
    for (int side = 0; side < 2; side++)
        knee_account_release(&accounts[side]);
    return status;
}

static const struct knee_mover *operation(const struct knee_comparison *c, const char *name,
                                          const char *shape)
{
    for (size_t i = 0; i < c->operation_count; i++) {
        const struct knee_mover *m = &c->operations[i];
        if (m->length == strlen(name) && memcmp(m->name, name, m->length) == 0 &&
            strcmp(m->shape, shape) == 0)
            return m;
    }
    return NULL;
}

/* The same kernel twice: the shape tells which product is slower. The innermost operation counts;
 * work that nothing launched stands under its kernel's name. */
TEST(operations_are_compared_by_shape)
{
    static struct made m;
    OWNED(knee_trace) before = products(&m, true, 10000), after = products(&m, true, 15000);
    struct knee_comparison c;
    assert_ok(compared(&before, &after, NULL, &c));
    assert_int_equal(c.operation_count, 4);
    const struct knee_mover *moved = operation(&c, "aten::mm", "[8,512]x[512,128]");
    assert_ptr_equal(moved, &c.operations[0]);
    assert_near(moved->before_s, 0.010, 1e-12);
    assert_near(moved->after_s, 0.015, 1e-12);
    assert_near(moved->after_calls, 1, 1e-12);
    const struct knee_mover *same = operation(&c, "aten::mm", "[8,512]x[512,64]");
    assert_true(same && same->before_s == same->after_s);
    assert_non_null(operation(&c, "aten::_foreach_add_", "[4]x[5]x[6]..."));
    assert_non_null(operation(&c, "unlaunched", ""));
    assert_int_equal(c.mover_count, 2); /* by kernel both products are one row */
}

/* Three shapes, as far as there is room; what is no list of lengths is left out or ends them. */
TEST(shapes_as_text)
{
    static const struct {
        const char *dims;
        size_t size;
        const char *text;
    } cases[] = {
        {"[[8, 512], [], [512, 64]]", 64, " [8,512]x[512,64]"},
        {"[[1], [2], [3], [4]]", 64, " [1]x[2]x[3]..."},
        {"[[1, 2, 3], [1, 2, 3]]", 14, " [1,2,3]..."},
        {"[[1, 2, 3, 4, 5, 6, 7, 8]]", 12, ""},
        {"[[1]]", 4, ""},
        {"[[8, x]]", 64, ""},
        {"[[8, [2]], [3]]", 64, ""},
        {"[[8, 512", 64, ""},
        {"[8", 64, ""},
        {"[]", 64, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64];
        struct knee_slice dims = {cases[i].dims, strlen(cases[i].dims)};
        size_t length = knee_shapes_text(dims, out, cases[i].size);
        assert_true(length < cases[i].size || length == 0);
        assert_int_equal(length, strlen(cases[i].text));
        assert_memory_equal(out, cases[i].text, length);
    }
}

/* Shapes on one side only: by operation. No host on one side: by kernel. */
TEST(operations_without_shapes_are_compared_by_name)
{
    static struct made m;
    for (int host = 0; host < 2; host++) {
        OWNED(knee_trace) before = products(&m, true, 10000);
        OWNED(knee_trace) after = products(&m, false, 15000);
        size_t events = after.host_event_count;
        after.host_event_count = host ? events : 0;
        struct knee_comparison c;
        assert_ok(compared(&before, &after, NULL, &c));
        after.host_event_count = events;
        assert_int_equal(c.operation_count, host ? 3 : 0);
        assert_int_equal(c.mover_count, 2);
        const struct knee_mover *moved = operation(&c, "aten::mm", "");
        assert_true(!host == !moved);
        if (moved) {
            assert_near(moved->before_s, 0.019, 1e-12);
            assert_near(moved->after_s, 0.024, 1e-12);
            assert_near(moved->before_calls, 2, 1e-12);
        }
    }
}

TEST(operations_are_compared_without_memory)
{
    static struct made m;
    OWNED(knee_trace) before = products(&m, true, 10000), after = products(&m, true, 15000);
    FOR_EACH_FAILURE(f) {
        struct knee_comparison c;
        knee_status status = compared(&before, &after, &f.alloc, &c);
        assert_int_equal(status, failing_met(&f) ? KNEE_SYSTEM : KNEE_OK);
        assert_true(status || (c.operation_count == 4 && f.calls > 7));
    }
}

/* Two files without collectives whose names say rank 0 are two runs, not two ranks. */
TEST(files_of_one_rank_without_collectives_are_runs)
{
    static struct made m;
    struct knee_trace traces[2];
    struct knee_recording told[2];
    size_t jobs = 0;
    for (int i = 0; i < 2; i++) {
        m.length = 0;
        put(&m, "{\"traceEvents\": [\n");
        kernel(&m, 1, 1000 * (i + 1), 50);
        traces[i] = end(&m, false);
        assert_false(traces[i].rank_stated);
    }
    assert_ok(knee_tell_recordings(traces, 2, NULL, told, &jobs, NULL));
    assert_int_equal(jobs, 2);
    knee_trace_release(&traces[0]);
    knee_trace_release(&traces[1]);
}

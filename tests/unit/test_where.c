/* SPDX-License-Identifier: MIT */
/* Where time goes: products from recorded shapes against the roofline; whose nanosecond it is,
 * against a map of nanoseconds; collectives, kernels, modules and gaps as sums of that; the
 * critical path. */
#include "timelines.h"

#include "judge/judge.h"
#include "predict/plan/op_time.h"
#include "timeline/where.h"

/* ---- Products ---- */

#define OP(name, ts, dur, inputs, types, dims)                                                     \
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" name                                       \
    "\", \"pid\": 9, \"tid\": 9, \"ts\": " ts ", \"dur\": " dur                                    \
    ", \"args\": {\"Concrete Inputs\": " inputs ", \"Input type\": " types                         \
    ", \"Input Dims\": " dims "}}"
#define LAUNCH(ts, id)                                                                             \
    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 9, "      \
    "\"tid\": 9, \"ts\": " ts ", \"dur\": 1, \"args\": {\"correlation\": " id "}}"
#define KERNEL(name, ts, dur, id)                                                                  \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" name                                       \
    "\", \"pid\": 0, \"tid\": 7, \"ts\": " ts ", \"dur\": " dur                                    \
    ", \"args\": {\"stream\": 7, \"correlation\": " id "}}"

TEST(shapes_become_products)
{
    /* clang-format off */
    OWNED(knee_trace) trace = trace_of(
        "["
        OP("aten::linear", "0", "50", "[\"\"]", "[\"c10::Half\"]", "[[2, 3, 64], [8, 64]]") ","
        OP("aten::addmm", "1", "40", "[\"\", \"\", \"\", \"1\"]",
           "[\"c10::Half\", \"c10::Half\", \"c10::Half\", \"Scalar\"]", "[[8], [6, 64], [64, 8], []]") ","
        LAUNCH("5", "1") ","
        LAUNCH("9", "2") ","
        KERNEL("gemm", "10", "3", "1") ","
        KERNEL("splitKreduce", "14", "1", "2") ","
        OP("aten::bmm", "60", "10", "[\"\", \"\"]", "[\"float\", \"float\"]", "[[4, 5, 6], [4, 6, 7]]") ","
        OP("aten::_scaled_dot_product_cudnn_attention", "80", "10",
           "[\"\", \"\", \"\", \"\", \"True\", \"0.\", \"True\"]",
           "[\"c10::BFloat16\", \"c10::BFloat16\"]",
           "[[2, 3, 16, 8], [2, 3, 16, 8]]") ","
        OP("aten::mm", "95", "1", "[]", "[\"float\", \"float\"]", "[[[4, 2]], [2, 3]]") ","
        OP("aten::mm", "96", "1", "[]", "[\"float\", \"float\"]", "[[4, 2], [3, 3]]") ","
        OP("aten::mm", "97", "1", "[]", "[\"float\", \"float\"]", "[[4, 2]") ","
        OP("aten::mm", "98", "1", "[]", "[\"float\", \"float\"]", "[[99999999999, 2], [2, 3]]") "]");
    /* clang-format on */
    assert_int_equal(trace.product_count, 3); /* the others make no sense; linear only calls */
    const struct knee_product *p = trace.products;
    assert_int_equal(p[0].kernel_ns, 4000); /* both its kernels */
    assert_string_equal(trace.names[p[0].kernel - 1], "gemm");
    assert_int_equal(p[0].element_bytes, 2);
    assert_near(knee_product_flops(&p[0]), 2.0 * 6 * 64 * 8, 1e-12);
    assert_near(knee_product_bytes(&p[0]), 2.0 * (6 * 64 + 64 * 8 + 6 * 8), 1e-12);
    assert_near(knee_product_flops(&p[1]), 2.0 * 4 * 5 * 6 * 7, 1e-12);
    assert_int_equal(p[1].kernel_ns, 0);
    assert_true(p[2].attention && p[2].causal && !p[2].backward);
    assert_near(knee_product_flops(&p[2]), 0.5 * 4 * (2 * 3) * 16 * 16 * 8, 1e-12);
}

/* Bare products on an H200, bf16, measured 2026-11-15 over 20 launches of a graph. */
static const struct {
    double m, n, k, seconds;
} measured[] = {
    {64, 6144, 2048, 8.328e-06},    {256, 6144, 2048, 1.2866e-05}, {1024, 6144, 2048, 3.7234e-05},
    {8192, 6144, 2048, 2.6414e-04}, {64, 8192, 2048, 9.704e-06},   {512, 8192, 2048, 2.6019e-05},
    {4096, 8192, 2048, 1.7847e-04}, {128, 4096, 4096, 1.4714e-05}, {256, 4096, 4096, 1.6421e-05},
    {1024, 4096, 4096, 4.6739e-05}, {512, 1024, 1024, 5.496e-06},  {8192, 1024, 1024, 2.6605e-05},
};

static void h200(struct knee_machine *machine)
{
    struct knee_platform platform;
    knee_platform_init(&platform);
    assert_ok(knee_keys_set(&knee_platform_keys, &platform, "gpu", "h200", KNEE_FLAG, NULL));
    assert_ok(knee_machine_init(&platform, NULL, machine, NULL));
}

/* What a shape can reach is the same model as knee plan's, which was fitted to other tables. */
TEST(the_model_knows_small_products)
{
    struct knee_machine machine;
    h200(&machine);
    double log_sum = 0;
    size_t count = sizeof measured / sizeof *measured;
    for (size_t i = 0; i < count; i++) {
        double m = measured[i].m, n = measured[i].n, k = measured[i].k;
        struct knee_operation op = {.kind = KNEE_OPERATION_GEMM,
                                    .dtype = KNEE_16BIT,
                                    .count = 1,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .bytes = 2 * (m * k + k * n + m * n)};
        double ratio = knee_operation_s(&machine, &op) / measured[i].seconds;
        assert_true(ratio > 0.5 && ratio < 2);
        log_sum += fabs(log(ratio));
    }
    assert_true(exp(log_sum / (double)count) < 1.35);
}

/* A step of one linear layer, forward and backward, `rows` in its batch, as a trace. */
static struct knee_trace layer_step(double rows, double wide, int64_t kernel_ns, int64_t other_ns)
{
    struct knee_builder *b = knee_builder_new(NULL, NULL);
    const double shapes[3][3] = {{rows, wide, wide}, {rows, wide, wide}, {wide, wide, rows}};
    int64_t at = 0;
    for (int step = 0; step < 3; step++) {
        int64_t begin = at;
        for (int i = 0; i < 3; i++, at += kernel_ns) {
            uint64_t id = (uint64_t)(4 * step + i + 1);
            struct knee_product p = {.start_ns = at,
                                     .end_ns = at + 10,
                                     .thread = 1,
                                     .count = 1,
                                     .m = shapes[i][0],
                                     .n = shapes[i][1],
                                     .k = shapes[i][2],
                                     .element_bytes = 2};
            knee_builder_product(b, &p);
            knee_builder_launch(b, at + 1, at + 2, 1, id);
            knee_builder_span(b, &(struct knee_gpu_work){0, at + 3, at + 3 + kernel_ns,
                                                         timelines_name(b, "gemm"), 7, id, false,
                                                         NULL});
        }
        knee_builder_launch(b, at + 11, at + 12, 1, (uint64_t)(4 * step + 4));
        knee_builder_span(b, &(struct knee_gpu_work){0, at + 3, at + 3 + other_ns,
                                                     timelines_name(b, "adam"), 7,
                                                     (uint64_t)(4 * step + 4), false, NULL});
        knee_builder_step_of(
            b, &(struct knee_raw_mark){{at + 11, at + 20, 0, -1}, KNEE_STEPS_OPTIMIZER, 1});
        at += other_ns;
        knee_builder_step(b, begin, at, step);
    }
    struct knee_trace trace = {.rank = 0, .world_size = 1, .format = "kineto"};
    strcpy(trace.gpu_name, "NVIDIA H200");
    trace.file = strdup("layer");
    assert_ok(knee_builder_finish(b, &trace, NULL));
    knee_builder_free(b);
    return trace;
}

static struct knee_diagnosis diagnosed(struct knee_trace *trace, struct knee_account *account)
{
    struct knee_diagnosis d;
    struct knee_job job;
    knee_job_init(&job);
    assert_ok(knee_account(trace, 1, NULL, account, NULL));
    assert_ok(knee_diagnose(account, &job, NULL, &d, NULL));
    return d;
}

TEST(a_small_batch_is_named_with_the_one_that_mends_it)
{
    OWNED(knee_account) account;
    OWNED(knee_trace) trace = layer_step(128, 4096, 15000, 60000);
    struct knee_diagnosis d = diagnosed(&trace, &account);
    assert_near(d.roofline.rows, 128, 1e-12);
    assert_near(d.roofline.flops, 3 * 2.0 * 128 * 4096 * 4096, 1e-12);
    assert_near(d.roofline.product_s, 45e-6, 1e-9);
    assert_near(d.roofline.optimizer_s, 60e-6, 1e-9);
    assert_int_equal(d.suspect, KNEE_SUSPECT_TINY_BATCH);
    assert_true(d.small_shapes > 0.5 && d.small_shapes < 1);
    assert_true(d.roofline.mend >= 4);
    for (int i = 1; i < KNEE_BATCH_FACTORS; i++) /* a larger batch never costs its examples more */
        assert_true(knee_batch_step_s(&d, i) <= knee_batch_step_s(&d, i - 1) * (1 + 1e-12));
    assert_true(knee_batch_step_s(&d, 0) <= d.step.wall_s * (1 + 1e-12));
    knee_account_release(&account);
    knee_trace_release(&trace);
    trace = layer_step(16384, 4096, 800000, 60000); /* the same layer with enough to do */
    d = diagnosed(&trace, &account);
    assert_int_equal(d.suspect, KNEE_SUSPECT_NONE);
    assert_near(d.small_shapes, 0, 1e-12);
    assert_near(d.roofline.mend, 1, 1e-12);
}

/* ---- Whose nanosecond ---- */

static bool is_owner(const struct knee_span *span, enum knee_label label, int64_t t)
{
    bool compute = span->kind == KNEE_SPAN_COMPUTE || span->kind == KNEE_SPAN_FUSED;
    bool comm = span->kind == KNEE_SPAN_COMM || span->kind == KNEE_SPAN_FUSED;
    bool kind = label == KNEE_COMPUTE ? compute
                : label == KNEE_COPY  ? span->kind == KNEE_SPAN_COPY
                                      : comm;
    return kind && span->start_ns <= t && t < span->end_ns;
}

/* The owner of one nanosecond, looked for among all spans; `end` is where its run ends. */
static size_t owner_of(const struct knee_rank *source, enum knee_label label, int64_t t,
                       int64_t end)
{
    for (size_t i = 0; i < source->span_count; i++)
        if (label >= KNEE_STARVED ? source->spans[i].start_ns >= end
                                  : is_owner(&source->spans[i], label, t))
            return i;
    return source->span_count;
}

static void check_owners(const struct knee_rank_account *rank)
{
    size_t rows = rank->source->span_count + 1;
    knee_own_row *own = calloc(rows, sizeof *own), *map = calloc(rows, sizeof *map);
    assert_true(own && map);
    knee_own_times(rank, own);
    for (size_t i = 0; i < rank->run_count; i++) {
        int64_t end = knee_run_end(rank, i);
        for (int64_t t = rank->runs[i].start_ns; t < end; t++)
            map[owner_of(rank->source, rank->runs[i].label, t, end)][rank->runs[i].label]++;
    }
    assert_memory_equal(own, map, rows * sizeof *own);
    free(own);
    free(map);
}

/* Seconds of a label in the complete steps of all ranks, per step and rank, from the runs. */
static double label_s(const struct knee_account *account, enum knee_label label)
{
    double sum = 0;
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        for (size_t i = 0; i < rank->run_count; i++)
            if (rank->runs[i].label == label)
                sum += 1e-9 * (double)(knee_run_end(rank, i) - rank->runs[i].start_ns);
    }
    return sum / (double)account->rank_count;
}

/* Tables add up to the labels; work may reach over the border of a step, so the whole file is one.
 */
static void check_sums(const struct knee_account *account, const struct knee_where *w)
{
    double exposed = 0, compute = 0, copy = 0, path = 0;
    for (size_t i = 0; i < account->rank_count * KNEE_LABELS; i++)
        path += w->path_s[i];
    assert_relative(path, w->path_step_s, 1e-9);
    if (account->step_source != KNEE_STEPS_NONE)
        return;
    for (size_t i = 0; i < w->bucket_count; i++)
        exposed += (double)w->buckets[i].calls * (w->buckets[i].transfer_s + w->buckets[i].wait_s);
    for (size_t i = 0; i < w->kernel_count; i++)
        *(w->kernels[i].kind == KNEE_SPAN_COPY ? &copy : &compute) += w->kernels[i].exposed_s;
    assert_near(exposed / (double)account->rank_count,
                label_s(account, KNEE_TRANSFER) + label_s(account, KNEE_WAIT), 1e-15);
    assert_near(compute, label_s(account, KNEE_COMPUTE), 1e-15);
    assert_near(copy, label_s(account, KNEE_COPY), 1e-15);
}

TEST(every_nanosecond_has_one_owner)
{
    uint64_t seed = 13;
    size_t summed = 0;
    for (int round = 0; round < 200; round++) {
        OWNED(timelines) set = random_timelines(&seed);
        struct knee_account account;
        struct knee_where where;
        if (knee_account(set.traces, set.count, NULL, &account, NULL) == KNEE_OK) {
            for (size_t r = 0; r < account.rank_count; r++)
                check_owners(&account.ranks[r]);
            assert_ok(knee_find_where(&account, NULL, &where, NULL));
            check_sums(&account, &where);
            summed += account.step_source == KNEE_STEPS_NONE;
            knee_where_release(&where);
            knee_account_release(&account);
        }
    }
    assert_true(summed > 20);
}

/* ---- The chain over ranks ---- */

static struct knee_trace late_rank(int64_t rank, int64_t compute_ns)
{
    struct knee_builder *b = knee_builder_new(NULL, NULL);
    struct knee_call_facts facts = KNEE_CALL_UNKNOWN;
    facts.group_size = 2;
    facts.bytes = 1 << 20;
    knee_builder_span(b, &(struct knee_gpu_work){0, 0, compute_ns, timelines_name(b, "gemm"), 7,
                                                 KNEE_NO_CORRELATION, false, NULL});
    knee_builder_span(
        b, &(struct knee_gpu_work){0, compute_ns, 350000,
                                   timelines_name(b, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"),
                                   20, KNEE_NO_CORRELATION, false, &facts});
    knee_builder_span(b, &(struct knee_gpu_work){0, 350000, 400000, timelines_name(b, "adam"), 7,
                                                 KNEE_NO_CORRELATION, false, NULL});
    struct knee_trace trace = {.rank = rank, .world_size = 2, .format = "test"};
    trace.file = strdup(rank ? "rank1" : "rank0");
    assert_ok(knee_builder_finish(b, &trace, NULL));
    knee_builder_free(b);
    return trace;
}

TEST(the_chain_goes_through_the_late_rank)
{
    struct knee_trace traces[2] = {late_rank(0, 100000), late_rank(1, 300000)};
    struct knee_account account;
    struct knee_where w;
    assert_ok(knee_account(traces, 2, NULL, &account, NULL));
    assert_ok(knee_find_where(&account, NULL, &w, NULL));
    const double *path = w.path_s;
    assert_near(w.path_step_s, 400e-6, 1e-12);
    assert_near(path[KNEE_COMPUTE] + path[KNEE_LABELS + KNEE_COMPUTE], 350e-6, 1e-12);
    assert_true(path[KNEE_LABELS + KNEE_COMPUTE] >= 300e-6 - 1e-12); /* rank 1's */
    assert_near(path[KNEE_TRANSFER] + path[KNEE_LABELS + KNEE_TRANSFER], 50e-6, 1e-12);
    assert_near(path[KNEE_WAIT] + path[KNEE_LABELS + KNEE_WAIT], 0, 1e-15);
    assert_int_equal(w.bucket_count, 1);
    assert_near(w.buckets[0].wait_s, 100e-6, 1e-12); /* 200 us on one of two ranks */
    assert_near(w.buckets[0].transfer_s, 50e-6, 1e-12);
    knee_where_release(&w);
    knee_account_release(&account);
    for (int i = 0; i < 2; i++)
        knee_trace_release(&traces[i]);
}

/* ---- The host ---- */

static void host(struct knee_builder *b, int64_t from, int64_t to, int64_t thread,
                 enum knee_host_kind kind, const char *name)
{
    knee_builder_host(b, from, to, thread, kind, timelines_name(b, name));
}

static void kernel(struct knee_builder *b, int64_t launch, int64_t thread, int64_t from, int64_t to,
                   uint64_t id)
{
    host(b, launch, launch + 1000, thread, KNEE_HOST_LAUNCH, "cudaLaunchKernel");
    knee_builder_launch(b, launch, launch + 1000, thread, id);
    knee_builder_span(
        b, &(struct knee_gpu_work){0, from, to, timelines_name(b, "gemm"), 7, id, false, NULL});
}

/* Forward in a module, .item(), backward of the same operation in another thread. */
static struct knee_trace host_story(void)
{
    struct knee_builder *b = knee_builder_new(NULL, NULL);
    host(b, 0, 40000, 1, KNEE_HOST_RANGE, "my loop");
    host(b, 1000, 9000, 1, KNEE_HOST_MODULE, "nn.Module: Linear_0");
    host(b, 2000, 8000, 1, KNEE_HOST_OPERATION, "aten::addmm");
    knee_builder_sequence(b, 7);
    kernel(b, 4000, 1, 10000, 20000, 1);
    host(b, 11000, 24000, 1, KNEE_HOST_OPERATION, "aten::item");
    host(b, 12000, 23000, 1, KNEE_HOST_SYNC, "cudaStreamSynchronize");
    host(b, 30000, 60000, 2, KNEE_HOST_SCOPE, "autograd::engine::evaluate_function: Addmm");
    knee_builder_sequence(b, 7);
    host(b, 11500, 24500, 2, KNEE_HOST_OPERATION, "aten::item"); /* that thread waits too */
    kernel(b, 40000, 2, 42000, 52000, 2);
    struct knee_trace trace = {.rank = 0, .world_size = 1, .format = "kineto"};
    trace.file = strdup("story");
    assert_ok(knee_builder_finish(b, &trace, NULL));
    knee_builder_free(b);
    return trace;
}

static const struct knee_place *place(const struct knee_where *w, int kind, const char *name)
{
    for (size_t i = 0; i < w->place_count[kind]; i++)
        if (strcmp(w->places[kind][i].name, name) == 0)
            return &w->places[kind][i];
    fail_msg("no place '%s'", name);
    return NULL;
}

TEST(work_finds_its_module_and_gaps_their_reason)
{
    OWNED(knee_trace) trace = host_story();
    OWNED(knee_account) account;
    OWNED(knee_where) w;
    assert_ok(knee_account(&trace, 1, NULL, &account, NULL));
    assert_ok(knee_find_where(&account, NULL, &w, NULL));
    assert_true(w.host);
    const struct knee_place *linear = place(&w, KNEE_PLACE_MODULE, "nn.Module: Linear_0");
    assert_near(linear->label_s[KNEE_COMPUTE], 20e-6, 1e-15); /* forward and backward */
    assert_near(linear->label_s[KNEE_HOST], 21e-6, 1e-15);    /* 20 to 41 us */
    assert_near(place(&w, KNEE_PLACE_PASS, "forward")->label_s[KNEE_COMPUTE], 10e-6, 1e-15);
    assert_near(place(&w, KNEE_PLACE_PASS, "backward")->label_s[KNEE_COMPUTE], 10e-6, 1e-15);
    double modules = 0, classes = 0; /* the same time, module by module and class by class */
    for (size_t i = 0; i < w.place_count[KNEE_PLACE_MODULE]; i++)
        modules += w.places[KNEE_PLACE_MODULE][i].total_s;
    for (size_t i = 0; i < w.place_count[KNEE_PLACE_CLASS]; i++) {
        const struct knee_place *row = &w.places[KNEE_PLACE_CLASS][i];
        classes += row->total_s;
        if (strncmp(row->name, "nn.Module: Linear", 17) == 0)
            assert_true(row->class_length == 17 && row->members == 1);
    }
    assert_near(modules, classes, 1e-15);
    assert_near(place(&w, KNEE_PLACE_RANGE, "my loop")->label_s[KNEE_COMPUTE], 10e-6, 1e-15);
    assert_near(w.gaps_s, 21e-6, 1e-15);
    assert_near(w.gaps[KNEE_ACT_ITEM].total_s, 21e-6, 1e-15);
    assert_near(w.gaps[KNEE_ACT_ITEM].act_s[KNEE_ACT_ITEM], 4.5e-6, 1e-15);
    assert_near(w.gaps[KNEE_ACT_ITEM].act_s[KNEE_ACT_PYTHON], 5.5e-6 + 10e-6, 1e-15);
    assert_near(w.gaps[KNEE_ACT_ITEM].act_s[KNEE_ACT_LAUNCH], 1e-6, 1e-15);
    assert_near(w.launches.kernels, 2, 1e-12);
    assert_near(w.launches.launch_s, 2e-6, 1e-15);
}

/* .item() for 302 us, after which the host has so much less of a lead: when it is ahead again, the
 * next 302 us of gaps are still the .item()'s, the rest is Python's. */
TEST(a_wait_is_blamed_for_what_it_took)
{
    struct knee_builder *b = knee_builder_new(NULL, NULL);
    OWNED(knee_account) account;
    OWNED(knee_where) w;
    kernel(b, 0, 1, 2000, 310000, 1);
    host(b, 10000, 312000, 1, KNEE_HOST_OPERATION, "aten::item");
    host(b, 20000, 21000, 1, KNEE_HOST_SYNC, "cudaEventQuery");
    host(b, 311000, 600000, 2, KNEE_HOST_SYNC, "cudaEventSynchronize"); /* hands over nothing */
    kernel(b, 312500, 1, 314000, 500000, 2);
    kernel(b, 320000, 1, 500000, 510000, 3);
    kernel(b, 599000, 1, 602000, 900000, 4);
    kernel(b, 610000, 1, 900000, 910000, 5);
    kernel(b, 1310000, 1, 1312000, 1400000, 6);
    OWNED(knee_trace) trace = {.rank = 0, .world_size = 1, .format = "kineto"};
    trace.file = strdup("story");
    assert_ok(knee_builder_finish(b, &trace, NULL));
    knee_builder_free(b);
    assert_ok(knee_account(&trace, 1, NULL, &account, NULL));
    assert_ok(knee_find_where(&account, NULL, &w, NULL));
    assert_near(w.gaps_s, 3.5e-6 + 90e-6 + 401e-6, 1e-12);
    assert_near(w.gaps[KNEE_ACT_ITEM].total_s, 302e-6, 1e-12);
    assert_near(w.gaps[KNEE_ACT_PYTHON].total_s, 494.5e-6 - 302e-6, 1e-12);
    assert_near(w.gaps[KNEE_ACT_SYNC].total_s, 0, 1e-15);
}

/* More names than any table begins with: each kernel has its row, the longest first. */
TEST(many_kernels_are_told_apart)
{
    enum { KERNELS = 3000 };
    struct knee_builder *b = knee_builder_new(NULL, NULL);
    for (int64_t i = 0; i < KERNELS; i++) {
        char name[32];
        snprintf(name, sizeof name, "kernel_%lld", (long long)i);
        knee_builder_span(b, &(struct knee_gpu_work){0, 1000 * i, 1000 * i + 100 + i / 4,
                                                     timelines_name(b, name), 7,
                                                     KNEE_NO_CORRELATION, false, NULL});
    }
    OWNED(knee_trace) trace = {.rank = 0, .world_size = 1, .format = "test"};
    trace.file = strdup("many");
    assert_ok(knee_builder_finish(b, &trace, NULL));
    knee_builder_free(b);
    OWNED(knee_account) account;
    OWNED(knee_where) w;
    assert_ok(knee_account(&trace, 1, NULL, &account, NULL));
    assert_ok(knee_find_where(&account, NULL, &w, NULL));
    assert_int_equal(w.kernel_count, KERNELS);
    double total_s = 0;
    for (size_t i = 0; i < w.kernel_count; i++) {
        total_s += w.kernels[i].total_s;
        assert_true(i == 0 || w.kernels[i].total_s <= w.kernels[i - 1].total_s);
    }
    assert_near(total_s, 1e-9 * (double)account.ranks[0].ledger.label_ns[KNEE_COMPUTE], 1e-12);
}

/* Memory runs out at one place after the other: said each time, and nothing is lost. */
static void memory_may_run_out(const struct knee_account *account)
{
    FOR_EACH_FAILURE(f) {
        struct knee_where w;
        struct knee_err err = {0};
        knee_status status = knee_find_where(account, &f.alloc, &w, &err);
        assert_int_equal(status, failing_met(&f) ? KNEE_SYSTEM : KNEE_OK);
        if (!status)
            knee_where_release(&w);
    }
}

TEST(no_memory_is_said)
{
    struct knee_trace story = host_story();
    struct knee_trace late[2] = {late_rank(0, 100000), late_rank(1, 300000)};
    struct knee_account account;
    assert_ok(knee_account(&story, 1, NULL, &account, NULL));
    memory_may_run_out(&account);
    knee_account_release(&account);
    assert_ok(knee_account(late, 2, NULL, &account, NULL));
    memory_may_run_out(&account);
    knee_account_release(&account);
    knee_trace_release(&story);
    knee_trace_release(&late[0]);
    knee_trace_release(&late[1]);
}

/* SPDX-License-Identifier: MIT */
/* Where time goes: products from recorded shapes against the roofline. */
#include "timelines.h"

#include "judge/judge.h"
#include "predict/plan/op_time.h"

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

static void shapes_become_products(void **state)
{
    (void)state;
    struct knee_trace trace = trace_of("[" OP("aten::linear", "0", "50", "[\"\"]", "[\"c10::Half\"]", "[[2, 3, 64], [8, 64]]") "," OP(
        "aten::addmm", "1", "40", "[\"\", \"\", \"\", \"1\"]",
        "[\"c10::Half\", \"c10::Half\", \"c10::Half\", \"Scalar\"]",
        "[[8], [6, 64], [64, 8], []]") "," LAUNCH("5", "1") "," LAUNCH("9",
                                                                       "2") "," KERNEL("gemm", "10",
                                                                                       "3",
                                                                                       "1") "," KERNEL("splitKreduce",
                                                                                                       "14",
                                                                                                       "1", "2") "," OP("aten::bmm",
                                                                                                                        "60", "10", "[\"\", \"\"]", "[\"float\", \"float\"]", "[[4, 5, 6], [4, 6, 7]]") "," OP("aten::_scaled_dot_product_cudnn_attention", "80", "10", "[\"\", \"\", \"\", \"\", \"True\", \"0.\", \"True\"]", "[\"c10::BFloat16\", \"c10::BFloat16\"]", "[[2, 3, 16, 8], [2, 3, 16, 8]]") "," OP("aten::mm", "95", "1", "[]", "[\"float\", \"float\"]", "[[[4, 2]], [2, 3]]") "," OP("aten::mm",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                       "96",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                       "1", "[]",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                       "[\"float\", \"float\"]", "[[4, 2], [3, 3]]") "," OP("aten::mm", "97", "1", "[]", "[\"float\", \"float\"]", "[[4, 2]") "," OP("aten::mm",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "98", "1",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "[]",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     "[\"float\", \"float\"]", "[[99999999999, 2], [2, 3]]") "]");
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
    knee_trace_release(&trace);
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
    assert_int_equal(knee_keys_set(&knee_platform_keys, &platform, "gpu", "h200", KNEE_FLAG, NULL),
                     KNEE_OK);
    assert_int_equal(knee_machine_init(&platform, NULL, machine, NULL), KNEE_OK);
}

/* What a shape can reach is the same model as knee plan's, which was fitted to other tables. */
static void the_model_knows_small_products(void **state)
{
    (void)state;
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
            knee_builder_span(b, 0, at + 3, at + 3 + kernel_ns, timelines_name(b, "gemm"), 7, id,
                              false, NULL);
        }
        knee_builder_launch(b, at + 11, at + 12, 1, (uint64_t)(4 * step + 4));
        knee_builder_span(b, 0, at + 3, at + 3 + other_ns, timelines_name(b, "adam"), 7,
                          (uint64_t)(4 * step + 4), false, NULL);
        knee_builder_step_of(b, -1, KNEE_STEPS_OPTIMIZER, 1, at + 11, at + 20, 0);
        at += other_ns;
        knee_builder_step(b, begin, at, step);
    }
    struct knee_trace trace = {.rank = 0, .world_size = 1, .format = "kineto"};
    strcpy(trace.gpu_name, "NVIDIA H200");
    trace.file = strdup("layer");
    assert_int_equal(knee_builder_finish(b, &trace, NULL), KNEE_OK);
    knee_builder_free(b);
    return trace;
}

static struct knee_diagnosis diagnosed(struct knee_trace *trace, struct knee_account *account)
{
    struct knee_diagnosis d;
    struct knee_job job;
    knee_job_init(&job);
    assert_int_equal(knee_account(trace, 1, NULL, account, NULL), KNEE_OK);
    assert_int_equal(knee_diagnose(account, &job, NULL, &d, NULL), KNEE_OK);
    return d;
}

static void a_small_batch_is_named_with_the_one_that_mends_it(void **state)
{
    (void)state;
    struct knee_account account;
    struct knee_trace trace = layer_step(128, 4096, 15000, 60000);
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
    knee_diagnosis_release(&d);
    knee_account_release(&account);
    knee_trace_release(&trace);
    trace = layer_step(16384, 4096, 800000, 60000); /* the same layer with enough to do */
    d = diagnosed(&trace, &account);
    assert_int_equal(d.suspect, KNEE_SUSPECT_NONE);
    assert_near(d.small_shapes, 0, 1e-12);
    assert_near(d.roofline.mend, 1, 1e-12);
    knee_diagnosis_release(&d);
    knee_account_release(&account);
    knee_trace_release(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_become_products),
        cmocka_unit_test(the_model_knows_small_products),
        cmocka_unit_test(a_small_batch_is_named_with_the_one_that_mends_it),
    };
    return RUN(tests);
}

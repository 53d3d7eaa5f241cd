/* SPDX-License-Identifier: MIT */
/* Reading traces: layouts, eras, damage of every kind, and what is kept. */
#include "trace_help.h"

TEST(forms_and_orders)
{
    static const char *const texts[] = {
        "{\"traceEvents\": [" K("a", "1", "2") ", " K("b", "5", "2") "]}",
        "[" K("a", "1", "2") ", " K("b", "5", "2") "]",
        "[" K("a", "1", "2") ", " K("b", "5", "2"), /* the closing bracket may be missing */
        "[" K("a", "1", "2") ",\r\n" K("b", "5", "2") ",\r\n]\r\n",
        "\xef\xbb\xbf{\"traceEvents\": [" K("a", "1", "2") ", " K("b", "5", "2") "]}",
        "{\"schemaVersion\": 1, \"x\": {\"y\": [1, {\"z\": \"]}\"}]}, \"traceEvents\": [" K(
            "a", "1", "2") ", " K("b", "5", "2") "], \"traceName\": \"a]b\"}",
        "{\"traceEvents\":[{\"args\":{\"stream\":7},\"dur\":2,\"ts\":1,\"tid\":7,\"pid\":0,"
        "\"name\":\"a\",\"cat\":"
        "\"kernel\",\"ph\":\"X\"},{},{\"name\":\"b\",\"cat\":\"Kernel\",\"ph\":\"X\",\"pid\":0,"
        "\"tid\":\"stream 7\","
        "\"ts\":5,\"dur\":2}]}",
        "{\n  \"traceEvents\": [\n    {\n      \"ph\": \"X\",\n      \"cat\": \"kernel\",\n      "
        "\"name\": \"a\",\n"
        "      \"pid\": 0,\n      \"tid\": 7,\n      \"ts\": 1,\n      \"dur\": 2\n    },\n    " K(
            "b", "5", "2") "\n]}",
        K("a", "1", "2") "\n" K("b", "5", "2") "\n", /* one event a line */
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        OWNED(knee_trace) trace = trace_of(texts[i]);
        if (spans_of(&trace) != 2)
            fail_msg("%zu: %zu spans", i, spans_of(&trace));
        const struct knee_span *spans = trace.ranks[0].spans;
        assert_true(spans[0].start_ns == 1000 && spans[0].end_ns == 3000 &&
                    spans[1].start_ns == 5000);
        assert_string_equal(trace.names[spans[1].name], "b");
        assert_int_equal(spans[0].stream, 7);
        for (int k = 0; k < KNEE_LOSSES; k++)
            if (knee_loss_is_lost((enum knee_loss_kind)k))
                assert_int_equal(trace.losses[k].count, 0);
    }
}

TEST(ranks_from_names)
{
    static const struct {
        const char *name;
        int64_t rank;
    } cases[] = {{"run/rank-3.json", 3},
                 {"rank12_trace.json.gz", 12},
                 {"trace_rank_0.json", 0},
                 {"worker3_1.pt.trace.json", 3},
                 {"megatron_kineto_5.json.gz", 5},
                 {"nsus_r1of2.json.gz", 1},
                 {"trace.json", -1},
                 {"frank5.json", -1},
                 {"gpu2.json", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_trace) trace;
        const char *text = "[" K("a", "1", "2") "]";
        assert_ok(read_bytes(text, strlen(text), cases[i].name, &trace, NULL));
        if (trace.rank != cases[i].rank)
            fail_msg("%s: %lld", cases[i].name, (long long)trace.rank);
    }
}

TEST(names_of_communication)
{
    static const struct {
        const char *name;
        enum knee_span_kind kind;
        enum knee_op op;
        const char *algorithm, *protocol, *dtype;
    } cases[] = {
        {"ncclAllReduceRingLLKernel_sum_f32", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE, "RING", "LL",
         "f32"},
        {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE,
         "RING", "LL", "f32"},
        {"ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
         KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE, "RING", "LL", "f16"},
        {"ncclDevKernel_AllReduce_Sum_bf16_TREE_LL128(ncclDevKernelArgsStorage<4096ul>)",
         KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE, "TREE", "LL128", "bf16"},
        {"ncclDevKernel_ReduceScatter_Sum_f32_RING_SIMPLE(x)", KNEE_SPAN_COMM,
         KNEE_OP_REDUCE_SCATTER, "RING", "SIMPLE", "f32"},
        {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", KNEE_SPAN_COMM,
         KNEE_OP_ALL_GATHER, "RING", "LL", ""},
        {"ncclDevKernel_SendRecv(x)", KNEE_SPAN_COMM, KNEE_OP_SEND_RECV, "", "", ""},
        {"ncclDevKernel_AllReduce_Sum_f32_NVLS_TREE_SIMPLE(x)", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE,
         "NVLS_TREE", "SIMPLE", "f32"},
        {"ncclDevKernel_Generic_4(x)", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN, "", "", ""},
        {"ncclSymkDevKernel_AllReduce_AGxLLMC_R_sum_f32", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE,
         "SYMMETRIC", "", "f32"},
        {"void rcclGenericKernel<1>()", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN, "", "", ""},
        {"mscclKernel_Sum_half_Simple", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN, "", "SIMPLE", "f16"},
        {"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(x)",
         KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE, "MULTIMEM", "", ""},
        {"two_shot_all_reduce_kernel<float>", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE, "TWO_SHOT", "",
         "f32"},
        {"void deep_ep::internode_ll::dispatch<3>(x)", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL,
         "LOW_LATENCY", "", ""},
        {"dpsk::ep::internode::combine", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL, "", "", ""},
        {"void vllm::cross_device_reduce_1stage<half, 8>(x)", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE,
         "ONE_SHOT", "", "f16"},
        {"flashinfer::trtllm_allreduce_fusion::kernel", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE, "", "",
         ""},
        {"all-reduce-start.3", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE, "", "", ""},
        {"flux::ag_gemm_kernel", KNEE_SPAN_FUSED, KNEE_OP_UNKNOWN, "", "", ""},
        {"void at::native::vectorized_elementwise_kernel<4, x>", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN,
         "", "", ""},
        {"moe::dispatch_kernel", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN, "", "", ""},
        {"flash::combine_attn", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN, "", "", ""},
        {"void SyncBatchNorm<float>", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN, "", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": 7, "
                 "\"ts\": 1, \"dur\": 2}]",
                 cases[i].name);
        OWNED(knee_trace) trace = trace_of(text);
        const struct knee_rank *rank = &trace.ranks[0];
        if (rank->spans[0].kind != cases[i].kind)
            fail_msg("%s is of kind %d", cases[i].name, (int)rank->spans[0].kind);
        if (cases[i].kind == KNEE_SPAN_COMM || cases[i].kind == KNEE_SPAN_FUSED) {
            assert_int_equal(rank->call_count, 1);
            assert_string_equal(knee_op_name(rank->calls[0].op), knee_op_name(cases[i].op));
        }
        if (cases[i].kind == KNEE_SPAN_COMM) {
            assert_string_equal(rank->calls[0].algorithm, cases[i].algorithm);
            assert_string_equal(rank->calls[0].protocol, cases[i].protocol);
            assert_string_equal(rank->calls[0].dtype, cases[i].dtype);
        }
    }
}

TEST(collectives_describe_themselves)
{
    OWNED(knee_trace) trace =
        trace_of("[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_Generic(x)\", "
                 "\"pid\": 0, \"tid\": 20, \"ts\": 1,"
                 " \"dur\": 2, \"args\": {\"stream\": 20, \"correlation\": 5, \"Collective name\": "
                 "\"_allgather_base\", "
                 "\"In msg nelems\": 100, \"Out msg nelems\": 800, \"Group size\": 8, \"dtype\": "
                 "\"BFloat16\", "
                 "\"Process Group Name\": \"3\", \"Process Group Description\": \"mesh_fsdp\", "
                 "\"Process Group Ranks\": "
                 "\"[0, 1]\", \"Seq\": 42}}]");
    const struct knee_call *call = &trace.ranks[0].calls[0];
    assert_int_equal(call->op, KNEE_OP_ALL_GATHER);
    assert_int_equal(call->bytes, 1600);
    assert_int_equal(call->group_size, 8);
    assert_int_equal(call->sequence, 42);
    assert_string_equal(trace.names[call->group - 1], "3");
    assert_string_equal(trace.names[call->description - 1], "mesh_fsdp");
}

/* ROCm kernels carry no description: it is found through the launch in the host operation around
 * it. */
TEST(collectives_described_by_their_host_operation)
{
    OWNED(knee_trace) trace =
        trace_of("[{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"record_param_comms\", \"pid\": "
                 "9, \"tid\": 9, \"ts\": 10, \"dur\":"
                 " 20, \"args\": {\"Collective name\": \"allreduce\", \"In msg nelems\": 1000, "
                 "\"dtype\": \"Float\", \"Group size\": 4}},"
                 "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"hipLaunchKernel\", "
                 "\"pid\": 9, \"tid\": 9, \"ts\": 15, \"dur\": 2,"
                 " \"args\": {\"correlation\": 77}},"
                 "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_Generic_1(x)\", "
                 "\"pid\": 2, \"tid\": 0, \"ts\": 30, "
                 "\"dur\": 5, \"args\": {\"stream\": 0, \"correlation\": 77}}]");
    const struct knee_call *call = &trace.ranks[0].calls[0];
    assert_int_equal(call->op, KNEE_OP_ALL_REDUCE);
    assert_int_equal(call->bytes, 4000);
    assert_int_equal(call->group_size, 4);
    assert_int_equal(trace.ranks[0].spans[0].launch_ns, 17000);
    assert_int_equal(trace.ranks[0].device, 2);
}

TEST(what_is_not_work_is_left_out)
{
    OWNED(knee_trace) trace = trace_of(
        "[" K("a", "1", "2") ", {\"ph\": \"X\", \"cat\": \"gpu_user_annotation\", \"name\": "
                             "\"nccl:all_reduce\", \"pid\": 0, \"tid\": 7, \"ts\": 1, \"dur\": 9},"
                             "{\"ph\": \"X\", \"cat\": \"cuda_sync\", \"name\": \"Stream Sync\", "
                             "\"pid\": 0, \"tid\": 7, \"ts\": 1, \"dur\": 9},"
                             "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"f\", "
                             "\"pid\": 0, \"tid\": 7, \"ts\": 1, \"dur\": 9},"
                             "{\"ph\": \"f\", \"cat\": \"kernel\", \"name\": \"ac2g\", \"pid\": 0, "
                             "\"tid\": 7, \"ts\": 1, \"dur\": 9}]");
    assert_int_equal(spans_of(&trace), 1);
    assert_int_equal(trace.events, 5);
}

#define NAMED "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "

/* Damage: what is whole is kept, what is lost is counted at its place. */
TEST(damage_is_counted_and_passed)
{
    static const struct {
        const char *middle;
        size_t kept; /* of the three events, the damaged one in the middle */
        enum knee_loss_kind loss;
    } cases[] = {
        {NAMED "\"b\", \"pid\": 0, tid\": 7, \"ts\": 5, \"dur\": 2}", 2, KNEE_LOSS_EVENT},
        {NAMED "\"b, \"pid\": 0, \"tid\": 7, \"ts\": 5, \"dur\": 2}", 2, KNEE_LOSS_EVENT},
        {NAMED "\"b \"c\": 64\", \"pid\": 0, \"tid\": 7, \"ts\": 5, \"dur\": 2}", 3,
         KNEE_REPAIR_STRING},
        {NAMED "\"\\xff\x80\x01\", \"pid\": 0, \"tid\": 7, \"ts\": 5, \"dur\": 2}", 3, KNEE_LOSSES},
        {NAMED "\"a\\b\", \"pid\": 0, \"tid\": 7, \"ts\": 5, \"dur\": 2}", 3, KNEE_LOSSES},
        {NAMED "\"b\", \"pid\": 0, \"tid\": 7, \"ts\": 5, \"dur\": inf}", 2, KNEE_LOSS_TIME},
        {NAMED "\"b\", \"pid\": 0, \"tid\": 7, \"ts\": nan, \"dur\": 2}", 2, KNEE_LOSS_TIME},
        {NAMED "\"b\", \"pid\": 0, \"tid\": 7, \"ts\": 5}", 2, KNEE_LOSS_TIME},
        {NAMED "\"b\", \"pid\": 0, \"tid\": 7, \"ts\": 5, \"dur\": 2, \"args\": {\"bw\": inf}}", 3,
         KNEE_LOSSES},
        {NAMED "\"b\", \"pid\": 0, \"tid\": 7, \"ts\": 5, \"dur\": -2}", 3, KNEE_REPAIR_DURATION},
        {"{\"ph\": \"X\", \"cat\": \"kernel\" \"name\": \"b\", \"pid\": 0, \"tid\": 7, \"ts\": 5, "
         "\"dur\": 2}",
         3, KNEE_REPAIR_COMMA},
        {NAMED "\"b\", \"pid\": 0, \"tid\": 7, \"ts\": 5, \"dur\": 2, \"args\": {\"bytes: 200}}", 2,
         KNEE_LOSS_EVENT},
        {"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"b\", \"pid\": 0, \"args\": {\"stack\": "
         "\"foo \" bar}}",
         2, KNEE_LOSSES}, /* it is of no use: nothing is lost */
        {"garbage", 2, KNEE_LOSS_EVENT},
        {NAMED "\"b\", \"pid\": 0, \"tid\": 7, \"ts\": 5, \"dur\": 2]", 2, KNEE_LOSS_EVENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        snprintf(text, sizeof text, "{\"traceEvents\": [\n%s,\n%s,\n%s\n]}", K("first", "1", "2"),
                 cases[i].middle, K("last", "9", "2"));
        OWNED(knee_trace) trace = trace_of(text);
        if (spans_of(&trace) != cases[i].kept)
            fail_msg("%zu: %zu kept of %s", i, spans_of(&trace), cases[i].middle);
        assert_string_equal(trace.names[trace.ranks[0].spans[0].name], "first");
        assert_string_equal(trace.names[trace.ranks[0].spans[cases[i].kept - 1].name], "last");
        for (int k = 0; k < KNEE_LOSSES; k++) {
            if ((k == (int)cases[i].loss) != (trace.losses[k].count > 0))
                fail_msg("%zu: %s: %llu", i, knee_loss_name((enum knee_loss_kind)k),
                         (unsigned long long)trace.losses[k].count);
            if (k == (int)cases[i].loss)
                assert_true(trace.losses[k].first_byte >= 17 &&
                            trace.losses[k].first_byte <=
                                strlen(text) - strlen(K("last", "9", "2")));
        }
    }
}

TEST(two_documents_and_doubles)
{
    OWNED(knee_trace) trace = trace_of(
        "{\"traceEvents\": [" K("a", "1", "2") "]}\n{\"traceEvents\": [" K("b", "5", "2") "]}");
    assert_int_equal(spans_of(&trace), 2);
    assert_int_equal(trace.losses[KNEE_REPAIR_DOCUMENT].count, 1);
    knee_trace_release(&trace);
#define DOUBLE                                                                                     \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a\", \"pid\": 0, \"tid\": 7, \"ts\": 1, "    \
    "\"dur\": 2, \"args\": "                                                                       \
    "{\"stream\": 7, \"correlation\": 9}}"
    trace = trace_of("[" DOUBLE ", " K("b", "1", "1") ", " DOUBLE "]");
    assert_int_equal(spans_of(&trace), 2);
    assert_int_equal(trace.losses[KNEE_REPAIR_DUPLICATE].count, 1);
    knee_trace_release(&trace);
    trace = trace_of(
        "[" K("a", "1", "2") ", " K("a", "1", "2") "]"); /* without a correlation both stay */
    assert_int_equal(spans_of(&trace), 2);
}

#define SMALL                                                                                      \
    "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 1, \"world_size\": 2},\n "             \
    "\"traceEvents\": [\n" K("one", "1", "2.5") ",\n" K(                                           \
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "5.001",                                     \
        "2") ",\n"                                                                                 \
             "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 5, \"tid\": "  \
             "5, \"ts\": 7, \"dur\": 1, \"args\": "                                                \
             "{\"External id\": 1, \"Input Dims\": [[2, 3], []]}},\n"                              \
             "{\"ph\": \"s\", \"id\": 4, \"pid\": 5, \"tid\": 5, \"ts\": 1, \"cat\": \"ac2g\", "   \
             "\"name\": \"ac2g\"},\n" K("three", "9", "2") "\n], \"traceName\": \"x\"}"

/* Cut at every byte, a trace gives the events of its prefix. */
TEST(every_prefix_gives_its_events)
{
    const char *text = SMALL;
    static const char *const ends[] = {"\"dur\": 2.5, \"args\": {\"stream\": 7}}",
                                       "\"dur\": 2, \"args\": {\"stream\": 7}}",
                                       "\"ts\": 9, \"dur\": 2, \"args\": {\"stream\": 7}}"};
    size_t end_at[3];
    for (size_t i = 0; i < 3; i++)
        end_at[i] = (size_t)(strstr(text, ends[i]) - text) + strlen(ends[i]);
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        size_t whole = (size_t)(cut >= end_at[0]) + (cut >= end_at[1]) + (cut >= end_at[2]);
        struct knee_trace trace;
        char *copy = malloc(cut + 1); /* exactly as long as it is: reading past the end shows */
        assert_non_null(copy);
        memcpy(copy, text, cut);
        knee_status status = read_bytes(copy, cut, "x", &trace, NULL);
        if (status == KNEE_OK) {
            if (spans_of(&trace) != whole)
                fail_msg("cut at %zu: %zu spans, not %zu", cut, spans_of(&trace), whole);
            bool lost = trace.losses[KNEE_LOSS_TRUNCATED].count > 0;
            assert_int_equal(lost, cut < strlen(text));
            knee_trace_release(&trace);
        } else {
            assert_int_equal(whole, 0);
        }
        free(copy);
    }
}

/* Reads fail in turn: what came before is kept, and the failure is counted. */
TEST(every_read_may_fail)
{
    for (size_t fail_at = 1; fail_at < 200; fail_at++) {
        struct source source = {
            .data = SMALL, .length = strlen(SMALL), .piece = 7, .fail_at = fail_at};
        struct knee_trace trace;
        knee_status status = knee_trace_read((struct knee_reader){source_read, &source}, "x", NULL,
                                             NULL, &trace, NULL);
        if (status)
            continue;
        assert_true(trace.losses[KNEE_LOSS_READ].count == 1 || source.reads < fail_at);
        knee_trace_release(&trace);
    }
}

TEST(xprof_counts_streams_once)
{
    OWNED(knee_trace) trace = trace_of(
        "{\"displayTimeUnit\":\"ns\",\"metadata\":{},\"traceEvents\":["
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"/device:GPU:0\"}},"
        "{\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\",\"args\":{\"name\":\"/device:TPU:0\"}},"
        "{\"ph\":\"M\",\"pid\":3,\"name\":\"process_name\",\"args\":{\"name\":\"/host:CPU\"}},"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":13,\"name\":\"thread_name\",\"args\":{\"name\":\"Stream "
        "#13(Compute)\"}},"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":14,\"name\":\"thread_name\",\"args\":{\"name\":\"Stream "
        "#14(MemcpyP2P)\"}},"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":99,\"name\":\"thread_name\",\"args\":{\"name\":\"XLA "
        "Ops\"}},"
        "{\"ph\":\"M\",\"pid\":2,\"tid\":3,\"name\":\"thread_name\",\"args\":{\"name\":\"XLA "
        "Ops\"}},"
        "{\"ph\":\"M\",\"pid\":2,\"tid\":4,\"name\":\"thread_name\",\"args\":{\"name\":\"Async XLA "
        "Ops\"}},"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":4,\"ts\":8,\"dur\":3,\"name\":\"async-copy\"},"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":4,\"ts\":12,\"dur\":3,\"name\":\"all-gather-start.1\"},"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":13,\"ts\":1.5,\"dur\":2.000001,\"name\":\"fusion.3\"},"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":99,\"ts\":1.5,\"dur\":2,\"name\":\"fusion.3\"},"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":13,\"ts\":5,\"dur\":2,\"name\":\"ncclDevKernel_AllReduce_"
        "Sum_f32_RING_LL\"},"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":14,\"ts\":8,\"dur\":1,\"name\":\"MemcpyP2P\"},"
        "{\"ph\":\"X\",\"pid\":2,\"tid\":3,\"ts\":5,\"dur\":2,\"name\":\"all-reduce.7\"},"
        "{\"ph\":\"X\",\"pid\":3,\"tid\":3,\"ts\":5,\"dur\":2,\"name\":\"host work\"},{}]}");
    assert_string_equal(trace.format, "xprof");
    assert_int_equal(trace.rank_count, 2);
    assert_int_equal(trace.ranks[0].span_count, 3);
    assert_int_equal(trace.ranks[0].spans[0].end_ns, 3500);
    assert_int_equal(trace.ranks[0].spans[2].kind, KNEE_SPAN_COMM);
    assert_int_equal(trace.ranks[1].spans[0].kind, KNEE_SPAN_COMM);
    assert_int_equal(trace.ranks[1].span_count, 3); /* what goes on beside the operations counts */
    assert_int_equal(trace.ranks[1].spans[1].kind, KNEE_SPAN_COPY);
    assert_int_equal(trace.ranks[1].spans[2].kind, KNEE_SPAN_COMM);
}

TEST(cpu_jobs_are_read_from_the_host)
{
    const char *text = "[{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 5, "
                       "\"tid\": 5, \"ts\": 1, \"dur\": 4},"
                       "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": "
                       "\"gloo:all_reduce\", \"pid\": 5, \"tid\": 6, \"ts\": 3, \"dur\": 6}]";
    OWNED(knee_trace) trace = trace_of(text);
    assert_int_equal(trace.rank_count, 0);
    assert_int_equal(trace.cpu_comm, 1);
    knee_trace_release(&trace);
    struct knee_trace_options options = {.cpu = true};
    struct source source = {.data = text, .length = strlen(text)};
    assert_ok(knee_trace_read((struct knee_reader){source_read, &source}, "x", &options, NULL,
                              &trace, NULL));
    assert_int_equal(trace.ranks[0].span_count, 2);
    assert_int_equal(trace.ranks[0].spans[1].kind, KNEE_SPAN_COMM);
    assert_int_equal(trace.ranks[0].calls[0].op, KNEE_OP_ALL_REDUCE);
}

TEST(users_patterns_come_first)
{
    static const struct knee_pattern patterns[] = {
        {"my_exchange", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
        {"ncclDevKernel_Bogus", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN}};
    struct knee_trace_options options = {.patterns = patterns, .pattern_count = 2};
    const char *text =
        "[" K("My_Exchange<3>", "1", "2") ", " K("ncclDevKernel_Bogus", "5", "2") "]";
    struct source source = {.data = text, .length = strlen(text)};
    OWNED(knee_trace) trace;
    assert_ok(knee_trace_read((struct knee_reader){source_read, &source}, "x", &options, NULL,
                              &trace, NULL));
    assert_int_equal(trace.ranks[0].spans[0].kind, KNEE_SPAN_COMM);
    assert_int_equal(trace.ranks[0].spans[1].kind, KNEE_SPAN_COMPUTE);
}

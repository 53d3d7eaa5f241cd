/* SPDX-License-Identifier: MIT */
/* Formats that are read as a whole: made-up files whose truth is known, round trips, and damage. */
#include "knee_out.h"
#include "timeline/kinds.h"
#include "trace_help.h"

/* ---- Making protobuf ---- */

struct bytes {
    unsigned char data[1 << 14];
    size_t used;
};

static void varint(struct bytes *b, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        b->data[b->used++] = (unsigned char)(value | 0x80);
    b->data[b->used++] = (unsigned char)value;
}

static void number(struct bytes *b, unsigned field, uint64_t value)
{
    varint(b, (uint64_t)field << 3);
    varint(b, value);
}

static void text(struct bytes *b, unsigned field, const void *data, size_t length)
{
    varint(b, (uint64_t)field << 3 | 2);
    varint(b, length);
    memcpy(b->data + b->used, data, length);
    b->used += length;
}

static void word(struct bytes *b, unsigned field, const char *string)
{
    text(b, field, string, strlen(string));
}

static void message(struct bytes *b, unsigned field, const struct bytes *inner)
{
    text(b, field, inner->data, inner->used);
}

static knee_status read_image(const char *file, const void *data, size_t length,
                              struct knee_trace *out, struct knee_err *err)
{
    char *copy = malloc(length ? length : 1); /* exactly: a byte too many is seen by ASan */
    memcpy(copy, data, length);
    knee_status status =
        knee_image_read((struct knee_file_bytes){file, copy, length}, NULL, NULL, out, err);
    free(copy);
    return status;
}

static struct knee_trace image_of(const char *file, const void *data, size_t length)
{
    struct knee_trace trace;
    struct knee_err err;
    if (read_image(file, data, length, &trace, &err))
        fail_msg("%s: %s", err.where, err.what);
    return trace;
}

/* ---- XPlane ---- */

static void event(struct bytes *line, uint64_t id, uint64_t offset_ps, uint64_t duration_ps)
{
    struct bytes e = {.used = 0};
    number(&e, 1, id);
    number(&e, 2, offset_ps);
    number(&e, 3, duration_ps);
    message(line, 4, &e);
}

static void name(struct bytes *plane, uint64_t id, const char *called)
{
    struct bytes pair = {.used = 0}, value = {.used = 0};
    number(&value, 1, id);
    word(&value, 2, called);
    number(&pair, 1, id);
    message(&pair, 2, &value);
    message(plane, 4, &pair);
}

/* Chip `chip` waits `wait_us` in a barrier, then reduces for 100 us; before it 50 us of work. */
static void tpu(struct bytes *space, int chip, uint64_t wait_us)
{
    struct bytes plane = {.used = 0}, ops = {.used = 0}, trace_me = {.used = 0};
    char device[32];
    snprintf(device, sizeof device, "/device:TPU:%d", chip);
    uint64_t at = 1000, barrier = 1000000 - wait_us;
    word(&plane, 2, device);
    word(&ops, 2, "XLA Ops");
    event(&ops, 1, at * 1000000, 50 * 1000000);
    event(&ops, 2, 1000000 * UINT64_C(1000000), 100 * 1000000);
    word(&trace_me, 2, "XLA TraceMe");
    event(&trace_me, 3, barrier * 1000000, wait_us * 1000000);
    message(&plane, 3, &ops);
    message(&plane, 3, &trace_me);
    name(&plane, 1, "%fusion = f32[4]{0} fusion(f32[4] %all-reduce.1)");
    name(&plane, 2, "%all-reduce = f32[4]{0} all-reduce(f32[4] %fusion)");
    name(&plane, 3, "barrier-cores");
    message(space, 1, &plane);
}

TEST(a_barrier_is_waiting)
{
    struct bytes space = {.used = 0};
    OWNED(knee_account) account;
    struct knee_err err;
    tpu(&space, 0, 0);
    tpu(&space, 1, 300);
    OWNED(knee_trace) trace = image_of("host.xplane.pb", space.data, space.used);
    assert_string_equal(trace.format, "xplane");
    assert_int_equal(trace.rank_count, 2);
    assert_int_equal(trace.ranks[0].spans[0].kind, KNEE_SPAN_COMPUTE); /* by its own name */
    assert_ok(knee_account(&trace, 1, NULL, &account, &err));
    assert_int_equal(account.instances, 1);
    assert_int_equal(account.ranks[0].ledger.label_ns[KNEE_WAIT], 0);
    assert_int_equal(account.ranks[1].ledger.label_ns[KNEE_WAIT], 300000);
    assert_int_equal(account.ranks[1].ledger.label_ns[KNEE_TRANSFER], 100000);
}

/* Rows that repeat the streams' work are not added to it. */
TEST(a_gpu_is_its_streams)
{
    struct bytes space = {.used = 0}, plane = {.used = 0}, stream = {.used = 0},
                 repeated = {.used = 0};
    word(&plane, 2, "/device:GPU:3");
    word(&stream, 2, "Stream #7(Compute)");
    number(&stream, 3, 1000);
    event(&stream, 1, 5000, 2000000);
    word(&repeated, 2, "TensorFlow Ops");
    number(&repeated, 3, 1000);
    event(&repeated, 1, 5000, 2000000);
    message(&plane, 3, &stream);
    message(&plane, 3, &repeated);
    name(&plane, 1, "gemm");
    message(&space, 1, &plane);
    OWNED(knee_trace) trace = image_of("host.xplane.pb.gz", space.data, space.used);
    assert_int_equal(spans_of(&trace), 1);
    assert_int_equal(trace.ranks[0].device, 3);
    assert_int_equal(trace.ranks[0].spans[0].start_ns, 1005);
    assert_int_equal(trace.ranks[0].spans[0].end_ns, 3005);
}

TEST(a_file_saved_as_text_is_refused)
{
    struct knee_trace trace;
    struct knee_err err;
    assert_int_equal(read_image("a.xplane.pb", "\x0a\xef\xbf\xbd\x10", 5, &trace, &err),
                     KNEE_INPUT);
    assert_string_equal(err.what, "not an XPlane file: its lengths do not fit (saved as text?)");
}

/* ---- rocprofv3 ---- */

static const char rocprof[] =
    "{\"rocprofiler-sdk-tool\": [{\"metadata\": {\"node\": {\"hostname\": \"h\"}}, \"agents\": "
    "[{\"id\": {\"handle\": 1}, \"type\": 1}, {\"id\": {\"handle\": 2}, \"type\": 2, "
    "\"product_name\": \"AMD Instinct MI300X\"}], \"kernel_symbols\": [{\"kernel_id\": 9, "
    "\"formatted_kernel_name\": \"gemm\"}, {\"kernel_id\": 4, \"kernel_name\": "
    "\"ncclDevKernel_Generic_1.kd\"}], \"buffer_records\": {\"kernel_dispatch\": ["
    "{\"start_timestamp\": 1000, \"end_timestamp\": 3000, \"correlation_id\": {\"internal\": 1}, "
    "\"stream_id\": {\"handle\": 5}, \"dispatch_info\": {\"agent_id\": {\"handle\": 2}, "
    "\"queue_id\": {\"handle\": 7}, \"kernel_id\": 9}}, {\"start_timestamp\": 2000, "
    "\"end_timestamp\": 6000, \"correlation_id\": {\"internal\": 2}, \"dispatch_info\": "
    "{\"agent_id\": {\"handle\": 2}, \"queue_id\": {\"handle\": 7}, \"kernel_id\": 4}}], "
    "\"memory_copy\": [{\"start_timestamp\": 6000, \"end_timestamp\": 6500, \"src_agent_id\": "
    "{\"handle\": 1}, \"dst_agent_id\": {\"handle\": 2}}], \"hip_api\": [{\"start_timestamp\": "
    "500, \"end_timestamp\": 600, \"thread_id\": 3, \"correlation_id\": {\"internal\": 1}}]}}]}";

TEST(rocprof_says_what_it_says)
{
    OWNED(knee_account) account;
    struct knee_err err;
    OWNED(knee_trace) trace = image_of("12_results.json", rocprof, strlen(rocprof));
    assert_string_equal(trace.gpu_name, "AMD Instinct MI300X");
    assert_int_equal(trace.ranks[0].launched, 1);
    assert_ok(knee_account(&trace, 1, NULL, &account, &err));
    const struct knee_ledger *ledger = &account.ranks[0].ledger;
    assert_int_equal(ledger->window_ns, 5500);
    assert_int_equal(ledger->label_ns[KNEE_COMPUTE], 2000);
    assert_int_equal(knee_ledger_exposed_ns(ledger), 3000);
    assert_int_equal(ledger->label_ns[KNEE_COPY], 500);
}

TEST(columns_are_found_by_name)
{
    static const char *const files[] = {
        "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\","
        "\"End_Timestamp\"\n\"KERNEL_DISPATCH\",1,4,\"f(int, int)\",7,100,250\n",
        "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Correlation_Id\",\"Kernel_Name\","
        "\"Start_Timestamp\",\"End_Timestamp\"\n\"KERNEL_DISPATCH\",\"Agent 1\",\"4\",\"4\",\"7\","
        "\"f(int, int)\",\"100\",\"250\"\n"};
    for (size_t i = 0; i < 2; i++) {
        OWNED(knee_trace) trace = image_of("1_kernel_trace.csv", files[i], strlen(files[i]));
        assert_int_equal(spans_of(&trace), 1);
        assert_string_equal(trace.names[trace.ranks[0].spans[0].name], "f(int, int)");
        assert_int_equal(trace.ranks[0].spans[0].stream, 4);
        assert_int_equal(trace.ranks[0].device, 1);
        assert_int_equal(trace.ranks[0].spans[0].end_ns - trace.ranks[0].spans[0].start_ns, 150);
    }
}

/* ---- Chakra ---- */

static bool keep(void *ctx, const char *data, size_t size)
{
    struct bytes *b = ctx;
    if (size > sizeof b->data - b->used)
        return false;
    memcpy(b->data + b->used, data, size);
    b->used += size;
    return true;
}

/* What was written says the same when it is read again. */
TEST(chakra_comes_back)
{
    static const char recorded[] = "[" K("gemm", "10", "100.125") ", " K(
        "relu", "151",
        "20") ", "
              "{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD\", \"pid\": 0, "
              "\"tid\": 7, \"ts\": 5, \"dur\": 3, \"args\": {\"stream\": 7}}, "
              "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
              "\"ncclDevKernel_AllReduce_Sum_f32_RING_LL\", \"pid\": 0, \"tid\": 20, \"ts\": 60, "
              "\"dur\": 90.5, \"args\": {\"stream\": 20, \"Collective name\": \"allreduce\", "
              "\"In msg nelems\": 1000, \"Out msg nelems\": 1000, \"dtype\": \"Float\", "
              "\"Group size\": 2}}]";
    OWNED(knee_trace) trace = trace_of(recorded);
    struct knee_chakra_graph *graph = NULL;
    OWNED(knee_account) account, again;
    struct bytes written = {.used = 0};
    struct knee_err err;
    assert_ok(knee_account(&trace, 1, NULL, &account, &err));
    assert_ok(knee_chakra_begin(&account, NULL, &graph, &err));
    assert_true(knee_chakra_write(graph, 0, (struct knee_sink){keep, &written}));
    knee_chakra_end(graph);
    OWNED(knee_trace) back = image_of("x.0.et", written.data, written.used);
    assert_false(back.laid_out);
    assert_ok(knee_account(&back, 1, NULL, &again, &err));
    const struct knee_ledger *a = &account.ranks[0].ledger, *b = &again.ranks[0].ledger;
    assert_int_equal(a->window_ns, b->window_ns);
    assert_int_equal(a->comm_ns, b->comm_ns);
    for (int label = KNEE_COMPUTE; label <= KNEE_COPY; label++)
        assert_int_equal(a->label_ns[label], b->label_ns[label]);
    assert_int_equal(again.collectives[0].bytes, 4000);
    assert_int_equal(again.collectives[0].op, KNEE_OP_ALL_REDUCE);
}

/* A before B on one stream, C beside them waits for A through the host; D and E wait for each
 * other. */
TEST(work_is_laid_out)
{
    static const char graph[] =
        "{\"workload_graph\": [{\"Id\": 1, \"Name\": \"a\", \"NodeType\": 4, \"runtime\": 10, "
        "\"is_cpu_op\": false}, {\"Id\": 2, \"Name\": \"b\", \"NodeType\": 4, \"runtime\": 20, "
        "\"data_deps\": [1], \"is_cpu_op\": false}, {\"Id\": 3, \"Name\": \"host\", \"NodeType\": "
        "4, \"runtime\": 500, \"ctrlDeps\": [1], \"is_cpu_op\": true}, {\"Id\": 4, \"Name\": "
        "\"ncclKernel_AllReduce\", \"NodeType\": 7, \"runtime\": 40, \"data_deps\": [3], "
        "\"is_cpu_op\": false}, {\"Id\": 5, \"Name\": \"d\", \"NodeType\": 4, \"runtime\": 1, "
        "\"data_deps\": [6], \"is_cpu_op\": false}, {\"Id\": 6, \"Name\": \"e\", \"NodeType\": 4, "
        "\"runtime\": 2, \"data_deps\": [5, 4], \"is_cpu_op\": false}]}";
    OWNED(knee_account) account;
    struct knee_err err;
    OWNED(knee_trace) trace = image_of("chakra.0.json", graph, strlen(graph));
    assert_true(trace.laid_out);
    assert_int_equal(trace.losses[KNEE_REPAIR_CIRCLE].count, 1);
    assert_ok(knee_account(&trace, 1, NULL, &account, &err));
    const struct knee_ledger *ledger = &account.ranks[0].ledger;
    assert_int_equal(ledger->comm_ns, 40000);
    assert_int_equal(ledger->label_ns[KNEE_COMPUTE], 33000);
    assert_int_equal(knee_ledger_exposed_ns(ledger), 40000 - 20000 - 1000);
}

/* Nodes of an execution trace, message by message; the first one is metadata. */
static void attribute(struct bytes *node, const char *called, uint64_t value)
{
    struct bytes a = {.used = 0};
    word(&a, 1, called);
    number(&a, 9, value);
    message(node, 10, &a);
}

static void add_node(struct bytes *file, const struct bytes *node)
{
    varint(file, node->used);
    memcpy(file->data + file->used, node->data, node->used);
    file->used += node->used;
}

static struct bytes begun_node(uint64_t id, const char *called, uint64_t type, uint64_t took_us)
{
    struct bytes node = {.used = 0};
    number(&node, 1, id);
    word(&node, 2, called);
    number(&node, 3, type);
    number(&node, 7, took_us);
    return node;
}

/* The same dependencies one by one and packed; on nodes that are not there, and on itself. */
TEST(dependencies_in_any_form)
{
    for (int packed = 0; packed < 2; packed++) {
        struct bytes file = {.used = 0}, metadata = {.used = 0};
        add_node(&file, &metadata);
        for (uint64_t id = 1; id <= 3; id++) {
            struct bytes node = begun_node(id, "gemm", 4, 10), list = {.used = 0};
            uint64_t deps[] = {id - 1, id, 99};
            attribute(&node, "stream", id);
            for (size_t d = 0; d < 3; d++)
                if (packed)
                    varint(&list, deps[d]);
                else
                    number(&node, d ? 5 : 4, deps[d]);
            if (packed)
                message(&node, 4, &list);
            attribute(&node, "is_cpu_op", 0);
            add_node(&file, &node);
        }
        OWNED(knee_trace) trace = image_of("run.3.et", file.data, file.used);
        assert_int_equal(trace.rank, 3);
        assert_true(trace.laid_out);
        assert_int_equal(spans_of(&trace), 3);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(trace.ranks[0].spans[i].start_ns, 10000 * (int64_t)i);
    }
}

/* Starts as attributes (ns) or fields (us); times that no sum can hold are counted, not added up.
 */
TEST(starts_and_calls_are_taken)
{
    struct bytes file = {.used = 0}, metadata = {.used = 0}, text_value = {.used = 0};
    struct bytes field = begun_node(1, "a", 4, 5), own = begun_node(2, "b", 4, 5);
    struct bytes late = begun_node(3, "c", 4, 5), call = begun_node(4, "d", 7, 5);
    struct bytes sent = begun_node(5, "e", 5, 5), odd = begun_node(6, "f", 7, 5);
    struct bytes endless = begun_node(7, "g", 4, UINT64_MAX);
    number(&field, 6, 100);
    attribute(&own, "start_ns", 200000);
    attribute(&late, "start_ns", INT64_MAX);
    attribute(&call, "start_ns", 300000);
    attribute(&call, "comm_type", 2);
    attribute(&call, "comm_size", 4096);
    word(&text_value, 1, "pg_name");
    word(&text_value, 30, "dp");
    message(&call, 10, &text_value);
    attribute(&sent, "start_ns", 400000);
    attribute(&odd, "start_ns", 500000);
    attribute(&odd, "comm_type", 77);
    attribute(&endless, "duration_ns", (uint64_t)-5);
    attribute(&endless, "start_ns", 600000);
    const struct bytes *all[] = {&metadata, &field, &own, &late, &call, &sent, &odd, &endless};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        add_node(&file, all[i]);
    OWNED(knee_trace) trace = image_of("run.et", file.data, file.used);
    assert_int_equal(trace.rank, -1);
    assert_false(trace.laid_out);
    assert_int_equal(trace.losses[KNEE_LOSS_TIME].count, 1);
    assert_int_equal(trace.losses[KNEE_REPAIR_DURATION].count, 0);
    static const int64_t starts[] = {100000, 200000, 300000, 400000, 500000, 600000};
    static const enum knee_span_kind kinds[] = {KNEE_SPAN_COMPUTE, KNEE_SPAN_COMPUTE,
                                                KNEE_SPAN_COMM,    KNEE_SPAN_COMM,
                                                KNEE_SPAN_COMM,    KNEE_SPAN_COMPUTE};
    assert_int_equal(spans_of(&trace), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(trace.ranks[0].spans[i].start_ns, starts[i]);
        assert_int_equal(trace.ranks[0].spans[i].kind, kinds[i]);
    }
    assert_int_equal(trace.ranks[0].calls[0].op, KNEE_OP_ALL_GATHER);
    knee_trace_release(&trace);
    /* cut inside of a message: what was whole is read */
    trace = image_of("run.et", file.data, file.used - 3);
    assert_int_equal(trace.losses[KNEE_LOSS_TRUNCATED].count, 1);
    assert_int_equal(spans_of(&trace), 5);
}

TEST(files_are_named_by_their_rank)
{
    static const struct {
        const char *file;
        int64_t rank;
    } cases[] = {{"run.7.et", 7}, {"/a.9/run.12.et.gz", 12}, {"run.et", -1},
                 {"7.et", -1},    {"run7.et", -1},           {"run.1234567.et", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes file = {.used = 0}, metadata = {.used = 0}, node = begun_node(1, "a", 4, 5);
        add_node(&file, &metadata);
        add_node(&file, &node);
        OWNED(knee_trace) trace = image_of(cases[i].file, file.data, file.used);
        if (trace.rank != cases[i].rank)
            fail_msg("%s: %d", cases[i].file, (int)trace.rank);
    }
}

/* More streams than are told apart: the last ones share one, and nothing is lost. */
TEST(many_streams_are_laid_out)
{
    struct bytes file = {.used = 0}, metadata = {.used = 0};
    add_node(&file, &metadata);
    for (uint64_t id = 1; id <= 300; id++) {
        struct bytes node = begun_node(id, "k", 4, 1);
        attribute(&node, "tid", id);
        add_node(&file, &node);
    }
    OWNED(knee_trace) trace = image_of("a.et", file.data, file.used);
    assert_int_equal(spans_of(&trace), 300);
    assert_int_equal(trace.ranks[0].end_ns, 45000); /* 255 alone, 45 on the last one */
}

TEST(what_is_no_execution_trace_is_refused)
{
    struct bytes file = {.used = 0}, metadata = {.used = 0}, node = begun_node(1, "a", 4, 0);
    struct knee_trace trace;
    struct knee_err err;
    add_node(&file, &metadata);
    assert_int_equal(read_image("a.et", file.data, file.used, &trace, &err), KNEE_INPUT);
    assert_string_equal(err.what, "not a Chakra trace: there are no nodes in it");
    add_node(&file, &node);
    assert_int_equal(read_image("a.et", file.data, file.used, &trace, &err), KNEE_INPUT);
    assert_string_equal(err.what,
                        "a Chakra workload without times: it lists work, not measurements");
    assert_int_equal(read_image("a.txt", "x", 1, &trace, &err), KNEE_INPUT);
    assert_string_equal(err.what, "not a trace that is read as a whole");
}

/* ---- Damage ---- */

/* Whatever comes of it, nothing is left behind. */
static void try_one(const char *file, const void *data, size_t length)
{
    struct failing memory = {.fail_at = 0};
    struct knee_alloc alloc = {failing_resize, &memory};
    struct knee_trace trace;
    struct knee_account account;
    struct knee_err err = {0};
    char *copy = malloc(length ? length : 1); /* exactly: a byte too many is seen by ASan */
    memcpy(copy, data, length);
    if (knee_image_read((struct knee_file_bytes){file, copy, length}, NULL, &alloc, &trace, &err)) {
        assert_true(err.what[0]);
    } else {
        if (knee_account(&trace, 1, &alloc, &account, &err) == KNEE_OK)
            knee_account_release(&account);
        knee_trace_release(&trace);
    }
    assert_int_equal(memory.live, 0);
    free(copy);
}

TEST(damage_does_no_harm)
{
    struct bytes space = {.used = 0};
    tpu(&space, 0, 0);
    tpu(&space, 1, 300);
    for (size_t cut = 0; cut < space.used; cut++)
        try_one("a.xplane.pb", space.data, cut);
    for (size_t cut = 0; cut < strlen(rocprof); cut++)
        try_one("a.json", rocprof, cut);
    static const char graph[] = "{\"workload_graph\": [{\"Id\": 1, \"Name\": \"a\", \"runtime\": "
                                "10, \"is_cpu_op\": false, \"data_deps\": [1, 2]}]}";
    for (size_t cut = 0; cut < strlen(graph); cut++)
        try_one("a.json", graph, cut);
    for (size_t at = 0; at < space.used; at++)
        for (int byte = 0; byte < 256; byte += 17) {
            unsigned char kept = space.data[at];
            space.data[at] = (unsigned char)byte;
            try_one("a.xplane.pb", space.data, space.used);
            try_one("a.et", space.data, space.used);
            space.data[at] = kept;
        }
}

static void run_out(const char *file, const void *bytes, size_t length)
{
    FOR_EACH_FAILURE(memory) {
        struct knee_trace trace;
        struct knee_err err = {0};
        char *data = malloc(length);
        memcpy(data, bytes, length);
        knee_status status = knee_image_read((struct knee_file_bytes){file, data, length}, NULL,
                                             &memory.alloc, &trace, &err);
        assert_true(status == KNEE_OK || status == KNEE_SYSTEM);
        if (!status)
            knee_trace_release(&trace);
        free(data);
    }
}

TEST(no_memory_is_said)
{
    struct bytes space = {.used = 0}, file = {.used = 0}, metadata = {.used = 0};
    run_out("r.json", rocprof, strlen(rocprof));
    tpu(&space, 0, 0);
    tpu(&space, 1, 300);
    run_out("a.xplane.pb", space.data, space.used);
    add_node(&file, &metadata);
    for (uint64_t id = 1; id <= 600; id++) { /* more than are made room for at once */
        struct bytes node = begun_node(id, "k", 4, 1);
        number(&node, 4, id / 2);
        add_node(&file, &node);
    }
    run_out("a.et", file.data, file.used);
}

/* ---- Names ---- */

TEST(families_are_known)
{
    static const struct {
        const char *name;
        enum knee_span_kind kind;
    } cases[] = {
        {"kuserbuffers_pushsend(int, int, int*)", KNEE_SPAN_COMM},
        {"userbuffers_fp16_sum_inplace_gpu_rr<8>", KNEE_SPAN_COMM},
        {"void aiter::reduce_scatter_cross_device_store<__half, 8>", KNEE_SPAN_COMM},
        {"void aiter::allgather_lastdim<float>", KNEE_SPAN_COMM},
        {"tensorrt_llm::kernels::moeA2ADispatchKernel", KNEE_SPAN_COMM},
        {"moeA2ACombineKernel<__nv_bfloat16, 8>", KNEE_SPAN_COMM},
        {"flashinfer::moeAllToAllKernel", KNEE_SPAN_COMM},
        {"twoshot_allreduce_kernel", KNEE_SPAN_COMM},
        {"nvls_all_gather", KNEE_SPAN_COMM},
        {"c10d::symmetric_memory::barrier_kernel(unsigned int**)", KNEE_SPAN_COMM},
        {"wait_signal_kernel", KNEE_SPAN_COMM},
        {"put_signal_kernel", KNEE_SPAN_COMM},
        {"all_to_all_vdev_2d_kernel", KNEE_SPAN_COMM},
        {"hcom_allReduce__534_0", KNEE_SPAN_COMM},
        {"oneccl_allreduce_medium", KNEE_SPAN_COMM},
        {"my_All-Gather_v2", KNEE_SPAN_COMM}, /* by its letters */
        {"dma_request", KNEE_SPAN_COPY},
        {"void softmax_WarpAllReduce<float>", KNEE_SPAN_COMPUTE},
        {"deep_ep::get_dispatch_layout<256>", KNEE_SPAN_COMPUTE},
        {"splitk_combine_kernel", KNEE_SPAN_COMPUTE},
        {"void at::native::reduce_kernel<128>", KNEE_SPAN_COMPUTE},
        {"SyncBatchNorm_forward", KNEE_SPAN_COMPUTE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (knee_kernel_facts(cases[i].name, NULL).kind != cases[i].kind)
            fail_msg("%s is taken for kind %d", cases[i].name,
                     (int)knee_kernel_facts(cases[i].name, NULL).kind);
}

/* ---- Which job is this? ---- */

static struct knee_diagnosis diagnosis_of(const struct knee_trace *traces, size_t count)
{
    struct knee_account account;
    struct knee_diagnosis d;
    struct knee_err err;
    struct knee_job job;
    knee_job_init(&job);
    assert_ok(knee_account(traces, count, NULL, &account, &err));
    assert_ok(knee_diagnose(&account, &job, NULL, &d, &err));
    knee_account_release(&account);
    return d;
}

/* Enough work to be judged: 20 kernels and a millisecond. */
#define FIVE(start)                                                                                \
    K("vllm::rms_norm", start "00", "800")                                                         \
    ", " K("vllm::rms_norm", start "10",                                                           \
           "800") ", " K("vllm::rms_norm", start "20",                                             \
                         "800") ", " K("vllm::rms_norm", start "30",                               \
                                       "800") ", " K("vllm::rms_norm", start "40", "800")
#define MANY FIVE("1") ", " FIVE("6") ", " FIVE("11") ", " FIVE("16")

/* A served model gets no advice on training; one that is trained with the same kernels does. */
TEST(serving_is_told_from_training)
{
    OWNED(knee_trace) served = trace_of("[" MANY "]");
    OWNED(knee_trace) trained = trace_of("[" MANY ", " K("gelu_backward", "2060", "50") "]");
    struct knee_diagnosis d = diagnosis_of(&served, 1);
    assert_int_equal(d.recording, KNEE_RECORDED_SERVING);
    assert_int_equal(d.headline, KNEE_SAYS_RECORDING);
    d = diagnosis_of(&trained, 1);
    assert_int_equal(d.recording, KNEE_RECORDED_TRAINING);
}

#define CALL(device, start, took)                                                                  \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "                                              \
    "\"ncclDevKernel_AllReduce_Sum_f32_RING_LL\", \"pid\": " device ", \"tid\": 7, \"ts\": " start \
    ", \"dur\": " took ", \"args\": {\"stream\": 7}}"
#define RANK(number, device, one, two)                                                             \
    "{\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " number ", \"world_size\": 2}, "     \
    "\"traceEvents\": [" CALL(device, "10", one) ", " CALL(device, "20000", two) ", " CALL(        \
        device, "40000", one) ", " CALL(device, "60000", two) "]}"

/* Ends milliseconds apart on devices of one number: a shared GPU. Together, or on two: not. */
TEST(a_shared_gpu_is_told)
{
    static const struct {
        const char *other;
        bool shared;
    } cases[] = {{RANK("1", "0", "4000", "1000"), true},
                 {RANK("1", "0", "1001", "4001"), false},
                 {RANK("1", "1", "4000", "1000"), false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_trace pair[] = {trace_of(RANK("0", "0", "1000", "4000")),
                                    trace_of(cases[i].other)};
        struct knee_diagnosis d = diagnosis_of(pair, 2);
        if (!(d.gaps & KNEE_GAP_SHARED_GPU) == cases[i].shared)
            fail_msg("case %zu", i);
        knee_trace_release(&pair[0]);
        knee_trace_release(&pair[1]);
    }
}

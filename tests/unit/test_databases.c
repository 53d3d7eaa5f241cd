/* SPDX-License-Identifier: MIT */
/*
 * Databases of profilers (Nsight Systems, RPD, rocprofv3), made with SQL so that their truth is
 * known; then tables and columns that are missing or something else, damage, and too little memory,
 * ours and SQLite's.
 */
#include "trace_help.h"

#if KNEE_HAVE_SQLITE
#include <sqlite3.h>

struct database {
    unsigned char *bytes;
    sqlite3_int64 size;
};

static struct database database_of(const char *sql)
{
    struct database d = {0};
    sqlite3 *db = NULL;
    char *trouble = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &trouble) != SQLITE_OK)
        fail_msg("%s", trouble);
    d.bytes = sqlite3_serialize(db, "main", &d.size, 0);
    assert_non_null(d.bytes);
    sqlite3_close(db);
    return d;
}

static knee_status read_database(const struct database *d, const struct knee_trace_options *options,
                                 const struct knee_alloc *alloc, struct knee_trace *out,
                                 struct knee_err *err)
{
    return knee_nsys_read((struct knee_file_bytes){"run.sqlite", d->bytes, (size_t)d->size},
                          options, alloc, out, err);
}

static struct knee_trace trace_from(const char *sql)
{
    struct database d = database_of(sql);
    struct knee_trace trace;
    struct knee_err err;
    if (read_database(&d, NULL, NULL, &trace, &err))
        fail_msg("%s: %s", err.where, err.what);
    sqlite3_free(d.bytes);
    return trace;
}

/* "name stream start end; ..." of one device's work. */
static void assert_work(const struct knee_trace *trace, size_t rank, const char *expected)
{
    char seen[4096] = "";
    size_t used = 0;
    assert_true(rank < trace->rank_count);
    for (size_t i = 0; i < trace->ranks[rank].span_count; i++) {
        const struct knee_span *s = &trace->ranks[rank].spans[i];
        used += (size_t)snprintf(seen + used, sizeof seen - used, "%s%s %d %lld %lld",
                                 i ? "; " : "", trace->names[s->name], (int)s->stream,
                                 (long long)s->start_ns, (long long)s->end_ns);
    }
    assert_string_equal(seen, expected);
}

/* ---- Nsight Systems ---- */

#define STRINGS                                                                                    \
    "CREATE TABLE StringIds(id INTEGER, value TEXT);"                                              \
    "INSERT INTO StringIds VALUES (3, 'gemm'), (1, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'),"    \
    "(2, 'cudaLaunchKernel_v7000'), (5, 'ProfilerStep#4'), (6, 'DataLoader next'), (7, NULL),"     \
    "(8, 'cudaDeviceSynchronize'), (9, 'cuMemcpyHtoDAsync_v2'), (10, 'cudaMemsetAsync_v3020');"
#define KERNELS                                                                                    \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, \"end\", deviceId, streamId, correlationId, "  \
    "globalPid, demangledName, shortName);"

static const char nsight[] = STRINGS KERNELS
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
    "(1000, 2000, 0, 7, 1, (1 << 24), 3, 0),(2500, 4000, 0, 20, 2, (1 << 24), 1, 0), "
    "(5000, 5500, 0, 7, 3, (1 << 24), 99, 3),(6000, 6100, 0, 7, 0, (1 << 24), 99, 98), "
    "(7000, 6900, 0, 7, 5, (1 << 24), 3, 0),(-5, 10, 0, 7, 6, (1 << 24), 3, 0);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start, \"end\", deviceId, streamId, "
    "correlationId, globalPid, copyKind);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (100, 110, 0, 7, 11, (1 << 24), 1),"
    "(200, 210, 0, 7, 12, (1 << 24), 2), (300, 310, 0, 7, 13, (1 << 24), 8),"
    "(400, 410, 0, 7, 14, (1 << 24), 10), (500, 510, 0, 7, 15, (1 << 24), 11);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start, \"end\", deviceId, streamId, "
    "correlationId, globalPid);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (600, 610, 0, 7, 16, (1 << 24));"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start, \"end\", deviceId, streamId, "
    "correlationId, globalPid);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (700, 710, 0, 7, 17, (1 << 24));"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start, \"end\", globalTid, correlationId, "
    "nameId);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (900, 950, (1 << 24) | 1, 1, 2),"
    "(910, 920, (1 << 24) | 1, 2, 8), (10, 20, (1 << 24) | 1, 11, 9),"
    "(590, 595, (1 << 24) | 1, 16, 10), (930, 940, (1 << 24) | 1, 3, 77),"
    "(-9, 940, (1 << 24) | 1, 3, 2);"
    "CREATE TABLE NVTX_EVENTS(start, \"end\", globalTid, text, textId, eventType);"
    "INSERT INTO NVTX_EVENTS VALUES "
    "(0, 3000, (1 << 24) | 1, 'ProfilerStep#3', NULL, 59),"
    "(3000, 8000, (1 << 24) | 1, NULL, 5, 59), (10, 90, (1 << 24) | 1, NULL, 6, 60),"
    "(91, 99, (1 << 24) | 1, 'the dataloader waits', NULL, 60),"
    "(95, 99, (1 << 24) | 1, 'forward', NULL, 59), "
    "(96, 99, (1 << 24) | 1, NULL, 77, 59),"
    "(97, 97, (1 << 24) | 1, 'ProfilerStep#9', NULL, 59),"
    "(-7, 97, (1 << 24) | 1, 'ProfilerStep#9', NULL, 59),"
    "(98, NULL, (1 << 24) | 1, 'ProfilerStep#9', NULL, 59);"
    "CREATE TABLE TARGET_INFO_GPU(name); "
    "INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA H200');"
    "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs);"
    "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);";

TEST(an_export_says_what_it_says)
{
    OWNED(knee_trace) trace = trace_from(nsight);
    assert_string_equal(trace.format, "nsys");
    assert_string_equal(trace.gpu_name, "NVIDIA H200");
    assert_int_equal(trace.base_ns, 1700000000000000000);
    assert_true(trace.whole_graphs);
    assert_int_equal(trace.rank_count, 1);
    assert_work(&trace, 0,
                "Memcpy HtoD 7 100 110; Memcpy DtoH 7 200 210; Memcpy DtoD 7 300 310; "
                "Memcpy PtoP 7 400 410; Memcpy -1 500 510; Memset 7 600 610; CUDA graph 7 700 710; "
                "gemm 7 1000 2000; ncclDevKernel_AllReduce_Sum_f32_RING_LL 20 2500 4000; "
                "gemm 7 5000 5500; unnamed kernel 7 6000 6100; gemm 7 7000 7000");
    assert_int_equal(trace.ranks[0].launched, 3); /* what only synchronises launches nothing */
    assert_int_equal(trace.step_count, 2);
    assert_int_equal(trace.steps[0].number, 3);
    assert_int_equal(trace.steps[1].number, 4);
    assert_int_equal(trace.load_count, 2);
    assert_int_equal(trace.losses[KNEE_REPAIR_DURATION].count, 1);
    assert_int_equal(trace.losses[KNEE_LOSS_TIME].count, 3); /* a kernel, a call, a range */
    assert_int_equal(trace.losses[KNEE_LOSS_COLUMN].count, 0);
}

#define COPIES                                                                                     \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start, \"end\", deviceId, streamId, "                 \
    "correlationId, globalPid, copyKind, bytes, srcKind, dstKind);"
#define CALLS                                                                                      \
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start, \"end\", globalTid, correlationId, nameId);"

/* Pages of unified memory have no launch, though the host is recorded: nothing was queued. */
TEST(pages_move_when_they_are_touched)
{
    char sql[16384];
    size_t used = (size_t)snprintf(sql, sizeof sql, "%s", STRINGS KERNELS COPIES CALLS);
    for (int i = 0; i < 30; i++)
        used += (size_t)snprintf(
            sql + used, sizeof sql - used,
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%d, %d, 0, 7, %d, 0, 3, 0);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%d, %d, 1, %d, 2);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (%d, %d, 0, 0, 0, 0, 11, 9, 7, 7),"
            "(%d, %d, 0, 0, 0, 0, 12, 9, 7, 7);",
            1000 * i + 500, 1000 * i + 700, i + 1, 1000 * i + 480, 1000 * i + 490, i + 1,
            1000 * i + 300, 1000 * i + 350, 1000 * i + 800, 1000 * i + 850);
    OWNED(knee_trace) trace = trace_from(sql);
    OWNED(knee_account) account;
    assert_int_equal(trace.ranks[0].span_count, 90);
    assert_int_equal(trace.ranks[0].work, 30);
    assert_int_equal(trace.ranks[0].launched, 30);
    assert_ok(knee_account(&trace, 1, NULL, &account, NULL));
    assert_true(account.ranks[0].ledger.label_ns[KNEE_HOST] > 15000);
    assert_true(account.ranks[0].ledger.label_ns[KNEE_IDLE] < 500); /* from launch to start */
}

/* Calls that take long are kept under their names without a version, for the gaps they explain. */
TEST(long_calls_are_named)
{
    OWNED(knee_trace) trace = trace_from(
        STRINGS KERNELS CALLS
        "INSERT INTO StringIds VALUES (11, 'cudaMalloc_v3020'), (12, 'cu_vector');"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 9, 0, 7, 1, 0, 3, 0);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 80100, 1, 2, 11),"
        "(90000, 99000, 1, 3, 11), (100000, 200000, 1, 4, 12), (300000, 400000, 1, 5, 9);");
    assert_int_equal(trace.long_call_count, 3);
    assert_string_equal(trace.names[trace.long_calls[0].name], "cudaMalloc");
    assert_int_equal(trace.long_calls[0].kind, KNEE_HOST_CALL);
    assert_string_equal(trace.names[trace.long_calls[1].name], "cu_vector");
    assert_int_equal(trace.long_calls[2].kind, KNEE_HOST_LAUNCH);
}

static struct knee_diagnosis diagnosis_of(const char *sql)
{
    struct knee_trace trace = trace_from(sql);
    struct knee_account account;
    struct knee_diagnosis d;
    struct knee_job job;
    knee_job_init(&job);
    assert_ok(knee_account(&trace, 1, NULL, &account, NULL));
    assert_ok(knee_diagnose(&account, &job, NULL, &d, NULL));
    knee_account_release(&account);
    knee_trace_release(&trace);
    return d;
}

/* Half of the time goes into copies from pageable memory: what to try depends on the program. */
TEST(advice_is_in_the_program_s_words)
{
    static const char *const kernels[] = {"dag_kernel", "void at::native::elementwise_kernel"};
    static const char *const tries[] = {
        "cudaMallocHost(), cudaMemcpyAsync()",
        "DataLoader(pin_memory=True), .to(device, non_blocking=True)"};
    for (size_t torch = 0; torch < 2; torch++) {
        char sql[16384];
        size_t used = (size_t)snprintf(sql, sizeof sql,
                                       "%sUPDATE StringIds SET value = '%s' WHERE "
                                       "id = 3;",
                                       STRINGS KERNELS COPIES, kernels[torch]);
        for (int i = 0; i < 30; i++)
            used += (size_t)snprintf(
                sql + used, sizeof sql - used,
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%d, %d, 0, 7, %d, 0, 3, 0);"
                "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES "
                "(%d, %d, 0, 7, %d, 0, 1, 100000, 0, 2);",
                1000000 * i, 1000000 * i + 500000, i + 1, 1000000 * i + 500000,
                1000000 * i + 1000000, i + 100);
        struct knee_diagnosis d = diagnosis_of(sql);
        assert_int_equal(d.headline, KNEE_SAYS_CHANGE);
        assert_string_equal(d.levers[d.lever].name, "hidden copies");
        assert_string_equal(d.levers[d.lever].how, tries[torch]);
    }
}

/* Ranges of a process with one device are that device's. */
#define RANGES                                                                                     \
    "CREATE TABLE NVTX_EVENTS(start, \"end\", globalTid, text, textId, eventType);"                \
    "INSERT INTO NVTX_EVENTS VALUES (0, 50, (1 << 24), 'ProfilerStep#0', 0, 59),"                  \
    "(50, 500, (1 << 24), 'ProfilerStep#1', 0, 59), (0, 60, (2 << 24), 'ProfilerStep#0', 0, "      \
    "59), (60, 500, (2 << 24), 'ProfilerStep#1', 0, 59);"

TEST(processes_may_share_a_device)
{
    static const struct {
        const char *what, *rows;
        size_t devices;
    } cases[] = {
        {"each has its own", "(1, 9, 0, 7, 1, (1 << 24), 3, 0), (1, 9, 1, 7, 1, (2 << 24), 3, 0)",
         2},
        {"both use one", "(1, 9, 0, 7, 1, (1 << 24), 3, 0), (1, 9, 0, 7, 1, (2 << 24), 3, 0)", 2},
        {"one uses both", "(1, 9, 0, 7, 1, (1 << 24), 3, 0), (1, 9, 1, 7, 1, (1 << 24), 3, 0)", 2},
        {"one uses one", "(1, 9, 0, 7, 1, (1 << 24), 3, 0), (10, 19, 0, 7, 2, (1 << 24), 3, 0)", 1},
        {"one uses both, of which one is another's too",
         "(1, 9, 0, 7, 1, (1 << 24), 3, 0), (1, 9, 1, 7, 1, (1 << 24), 3, 0), (2, 9, 1, 7, 1, (2 "
         "<< 24), 3, 0), (20, 29, 1, 7, 3, (2 << 24), 3, 0)",
         3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sql[4096];
        snprintf(sql, sizeof sql, "%sINSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES %s;",
                 STRINGS KERNELS RANGES, cases[i].rows);
        OWNED(knee_trace) trace = trace_from(sql);
        if (trace.rank_count != cases[i].devices)
            fail_msg("%s: %zu devices", cases[i].what, trace.rank_count);
    }
}

/* ---- RPD ---- */

static const char rpd[] =
    "CREATE TABLE rocpd_string(id INTEGER, string TEXT);"
    "INSERT INTO rocpd_string VALUES (1, 'gemm'), (2, ''), (3, 'KernelExecution'),"
    "(4, 'CopyHostToDevice'), (5, 'FillBuffer');"
    "CREATE TABLE rocpd_op(id INTEGER, start, \"end\", gpuId, queueId, description_id, opType_id);"
    "INSERT INTO rocpd_op VALUES (1, 10, 20, 0, 1, 1, 3), (2, 30, 40, 0, 1, 2, 4),"
    "(3, 50, 60, 0, 1, 77, 5), (4, 70, 65, 0, 1, 77, 78), (5, -70, 65, 0, 1, 1, 3);"
    "CREATE TABLE rocpd_api(id INTEGER, start, \"end\", tid);"
    "INSERT INTO rocpd_api VALUES (1, 1, 2, 9), (2, 25, 24, 9), (3, -1, 5, 9);"
    "CREATE TABLE rocpd_api_ops(api_id, op_id);"
    "INSERT INTO rocpd_api_ops VALUES (1, 1), (2, 2), (3, 3);";

TEST(rpd_says_what_it_says)
{
    OWNED(knee_trace) trace = trace_from(rpd);
    assert_string_equal(trace.format, "rpd");
    assert_work(&trace, 0,
                "gemm 1 10 20; CopyHostToDevice 1 30 40; FillBuffer 1 50 60; unnamed kernel 1 70 "
                "70");
    assert_int_equal(trace.ranks[0].spans[1].kind, KNEE_SPAN_COPY);
    assert_int_equal(trace.ranks[0].spans[2].kind, KNEE_SPAN_COPY);
    assert_int_equal(trace.ranks[0].launched, 2);
    assert_int_equal(trace.losses[KNEE_REPAIR_DURATION].count, 1);
    assert_int_equal(trace.losses[KNEE_LOSS_TIME].count, 2);
    knee_trace_release(&trace);
    /* without the calls' tables the work is there all the same */
    trace = trace_from("CREATE TABLE rocpd_op(id INTEGER, start, \"end\", gpuId, queueId, "
                       "description_id, opType_id); INSERT INTO rocpd_op VALUES (1, 10, 20, 0, 1, "
                       "1, 3); CREATE TABLE rocpd_api(id INTEGER, start, \"end\", tid);");
    assert_int_equal(spans_of(&trace), 1);
    assert_int_equal(trace.ranks[0].launched, 0);
}

/* ---- rocprofv3 ---- */

/* One set of tables; two of them in a file were merged. */
#define SET(s)                                                                                     \
    "CREATE TABLE rocpd_string" s "(id INTEGER, string TEXT);"                                     \
    "INSERT INTO rocpd_string" s " VALUES (1, 'hipLaunchKernel'), (2, 'ProfilerStep#2'), "         \
    "(3, 'MEMORY_COPY_HOST_TO_DEVICE'), (4, 'hipDeviceSynchronize');"                              \
    "CREATE TABLE rocpd_info_kernel_symbol" s "(id INTEGER, display_name, kernel_name);"           \
    "INSERT INTO rocpd_info_kernel_symbol" s " VALUES (1, 'gemm', 'gemm.kd');"                     \
    "CREATE TABLE rocpd_info_node" s "(hostname);"                                                 \
    "INSERT INTO rocpd_info_node" s " VALUES ('node" s "');"                                       \
    "CREATE TABLE rocpd_info_agent" s "(id INTEGER, type, product_name);"                          \
    "INSERT INTO rocpd_info_agent" s " VALUES (0, 'CPU', 'EPYC'), (1, 'GPU', 'MI300X'), "          \
    "(2, 'GPU', 'MI300X');"                                                                        \
    "CREATE TABLE rocpd_event" s "(id INTEGER, stack_id);"                                         \
    "INSERT INTO rocpd_event" s " VALUES (1, 11), (2, 12), (3, 13);"                               \
    "CREATE TABLE rocpd_kernel_dispatch" s "(start, \"end\", agent_id, queue_id, stream_id, "      \
    "kernel_id, event_id);"                                                                        \
    "INSERT INTO rocpd_kernel_dispatch" s " VALUES (100, 200, 1, 8, 3, 1, 1), "                    \
    "(300, 290, 1, 8, NULL, 9, 2), (-3, 290, 1, 8, 3, 1, 2);"                                      \
    "CREATE TABLE rocpd_memory_copy" s "(start, \"end\", dst_agent_id, src_agent_id, name_id, "    \
    "queue_id, stream_id, event_id);"                                                              \
    "INSERT INTO rocpd_memory_copy" s " VALUES (400, 410, 1, 0, 3, 8, 3, 3), "                     \
    "(500, 490, 0, 1, 99, 8, NULL, 3), (600, 610, 1, 2, 3, 8, 3, 3), (-600, 610, 1, 2, 3, 8, 3, "  \
    "3);"                                                                                          \
    "CREATE TABLE rocpd_region" s "(start, \"end\", tid, name_id, event_id);"                      \
    "INSERT INTO rocpd_region" s " VALUES (50, 60, 5, 1, 1), (40, 1000, 5, 2, 2), "                \
    "(61, 62, 5, 4, 2), (63, 64, 5, 77, 2), (66, 65, 5, 1, 2), (-66, 65, 5, 1, 2);"

TEST(rocpd_says_what_it_says)
{
    static const char work[] = "gemm 3 100 200; unnamed kernel 8 300 300; "
                               "MEMORY_COPY_HOST_TO_DEVICE 3 400 410; Memcpy 8 500 500; "
                               "Memcpy PtoP 3 600 610";
    OWNED(knee_trace) trace = trace_from(SET("_00ab"));
    assert_string_equal(trace.format, "rocpd");
    assert_string_equal(trace.host, "node_00ab");
    assert_string_equal(trace.gpu_name, "MI300X");
    assert_work(&trace, 0, work);
    assert_int_equal(trace.ranks[0].launched, 1);
    assert_int_equal(trace.step_count, 1);
    assert_int_equal(trace.losses[KNEE_REPAIR_DURATION].count, 2);
    assert_int_equal(trace.losses[KNEE_LOSS_TIME].count, 3);
    assert_int_equal(trace.losses[KNEE_LOSS_COLUMN].count, 0);
    knee_trace_release(&trace);
    trace = trace_from(SET("_00ab") SET("_00cd")); /* two files in one: two GPUs */
    assert_int_equal(trace.rank_count, 2);
    assert_string_equal(trace.host, "node_00ab");
    assert_work(&trace, 0, work);
    assert_work(&trace, 1, work);
}

/* ---- What is not as it should be ---- */

#define DISPATCHES                                                                                 \
    "CREATE TABLE rocpd_kernel_dispatch_a(start, \"end\", agent_id, queue_id, kernel_id);"         \
    "INSERT INTO rocpd_kernel_dispatch_a VALUES (1, 2, 1, 8, 1);"
#define ONE_KERNEL                                                                                 \
    KERNELS "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 9, 0, 7, 1, (1 << 24), 3, 0);"

TEST(what_is_missing_is_counted)
{
    static const struct {
        const char *what, *sql;
        size_t spans;
        uint64_t columns, events;
    } cases[] = {
        {"no names", ONE_KERNEL, 1, 0, 0},
        {"a view in place of names", ONE_KERNEL "CREATE VIEW StringIds AS SELECT 1 AS id;", 1, 1,
         0},
        {"no streams",
         STRINGS "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, \"end\", deviceId); INSERT INTO "
                 "CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0);",
         1, 2, 0},
        {"ranges without a type",
         ONE_KERNEL "CREATE TABLE NVTX_EVENTS(start, \"end\"); INSERT INTO NVTX_EVENTS VALUES (1, "
                    "2);",
         1, 1, 0},
        {"a GPU without a name, a time before 1970",
         ONE_KERNEL "CREATE TABLE TARGET_INFO_GPU(name); INSERT INTO TARGET_INFO_GPU VALUES "
                    "(NULL); CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs); INSERT INTO "
                    "TARGET_INFO_SESSION_START_TIME VALUES (-5);",
         1, 0, 0},
        {"a time that no sum can hold",
         ONE_KERNEL "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs); INSERT INTO "
                    "TARGET_INFO_SESSION_START_TIME VALUES (9223372036854775807);",
         1, 0, 0},
        {"dispatches only", DISPATCHES, 1, 0, 0},
        {"events without stacks", DISPATCHES "CREATE TABLE rocpd_event_a(id);", 1, 0, 0},
        {"rows without events", DISPATCHES "CREATE TABLE rocpd_event_a(id, stack_id);", 1, 0, 0},
        {"names under their old heading, a host without one",
         DISPATCHES "CREATE TABLE rocpd_info_kernel_symbol_a(id, kernel_name); INSERT INTO "
                    "rocpd_info_kernel_symbol_a VALUES (1, 'gemm'); CREATE TABLE "
                    "rocpd_info_node_a(hostname); INSERT INTO rocpd_info_node_a VALUES (NULL);",
         1, 0, 0},
        {"a set whose name would be part of a statement",
         DISPATCHES "CREATE TABLE \"rocpd_kernel_dispatch\"\"; --\"(start);", 1, 1, 0},
        {"a set with a name that is too long",
         DISPATCHES "CREATE TABLE "
                    "rocpd_kernel_dispatch_"
                    "0123456789012345678901234567890123456789012345678901234567890123456789012345"
                    "67890123456789012345678901234567890123456789012345678901234567890(start);",
         1, 1, 0},
        {"copies whose agents are nowhere",
         DISPATCHES "CREATE TABLE rocpd_memory_copy_a(start, \"end\", dst_agent_id, src_agent_id, "
                    "name_id, queue_id); INSERT INTO rocpd_memory_copy_a VALUES (1, 2, 1, 0, 1, "
                    "8);",
         1, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_trace) trace = trace_from(cases[i].sql);
        if (spans_of(&trace) != cases[i].spans ||
            trace.losses[KNEE_LOSS_COLUMN].count != cases[i].columns ||
            trace.losses[KNEE_LOSS_EVENT].count != cases[i].events)
            fail_msg("%s: %zu pieces, %d columns, %d events", cases[i].what, spans_of(&trace),
                     (int)trace.losses[KNEE_LOSS_COLUMN].count,
                     (int)trace.losses[KNEE_LOSS_EVENT].count);
        assert_true(trace.base_ns == 0);
    }
}

TEST(what_is_no_trace_is_refused)
{
    static const struct {
        const char *sql, *what, *hint;
    } cases[] = {
        {"CREATE TABLE bookmarks(url);",
         "an SQLite database without CUPTI_ACTIVITY, rocpd_op or rocpd_kernel_dispatch tables",
         "export Nsight's report with: nsys export --type sqlite"},
        {"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1;",
         "an SQLite database whose tables cannot be read",
         "export Nsight's report with: nsys export --type sqlite"},
        {"CREATE TABLE rocpd_op(id);", "an SQLite database whose tables cannot be read",
         "export Nsight's report with: nsys export --type sqlite"},
        {"CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs);" STRINGS
         "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start, \"end\", globalTid, correlationId, "
         "nameId); INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 9, 0, 1, 8);",
         "an export of Nsight Systems without any CUDA work",
         "record with nsys profile -t cuda,nvtx"},
    };
    struct knee_trace trace;
    struct knee_err err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct database d = database_of(cases[i].sql);
        assert_int_equal(read_database(&d, NULL, NULL, &trace, &err), KNEE_INPUT);
        assert_string_equal(err.what, cases[i].what);
        assert_string_equal(err.hint, cases[i].hint);
        sqlite3_free(d.bytes);
    }
    assert_int_equal(knee_nsys_read((struct knee_file_bytes){"/nowhere/a?b#c%d.sqlite", NULL, 0},
                                    NULL, NULL, &trace, &err),
                     KNEE_INPUT);
    assert_string_equal(err.what, "cannot be opened: unable to open database file");
    char noise[4096];
    memset(noise, 'x', sizeof noise);
    assert_int_equal(knee_nsys_read((struct knee_file_bytes){"noise", noise, sizeof noise}, NULL,
                                    NULL, &trace, &err),
                     KNEE_INPUT);
    assert_string_equal(err.what, "cannot be read: file is not a database");
}

/* Cut off or overwritten anywhere: read, or refused in words, and nothing is left behind. */
TEST(damage_is_counted)
{
    struct database d = database_of(nsight);
    size_t step = UNIT_SANITIZED ? 997 : 101, counted = 0;
    for (size_t at = 100; at < (size_t)d.size; at += step) {
        struct failing memory = {0};
        struct knee_alloc alloc = {failing_resize, &memory};
        struct knee_trace trace;
        struct knee_err err = {0};
        unsigned char kept[16];
        memcpy(kept, d.bytes + at - 16, sizeof kept);
        memset(d.bytes + at - 16, 0xff, sizeof kept);
        if (read_database(&d, NULL, &alloc, &trace, &err)) {
            assert_true(err.what[0]);
        } else {
            counted += trace.losses[KNEE_LOSS_EVENT].count > 0;
            knee_trace_release(&trace);
        }
        assert_int_equal(memory.live, 0);
        memcpy(d.bytes + at - 16, kept, sizeof kept);
    }
    assert_true(counted > 0);
    sqlite3_free(d.bytes);
}

/* Stopped before the first row: what was read is kept, that it was stopped is said. */
TEST(a_stop_is_counted)
{
    static const _Atomic int stop = 1, go = 0;
    struct database d = database_of(nsight);
    struct knee_trace trace;
    struct knee_err err;
    struct knee_trace_options options = {.cancel = &go};
    assert_ok(read_database(&d, &options, NULL, &trace, &err));
    assert_int_equal(trace.losses[KNEE_LOSS_INTERRUPTED].count, 0);
    knee_trace_release(&trace);
    struct database none = database_of(STRINGS);
    options.cancel = &stop;
    assert_int_equal(read_database(&none, &options, NULL, &trace, &err), KNEE_INPUT);
    assert_string_equal(err.what, "not read: stopped");
    sqlite3_free(none.bytes);
    assert_ok(read_database(&d, &options, NULL, &trace, &err));
    assert_int_equal(trace.losses[KNEE_LOSS_INTERRUPTED].count, 1);
    knee_trace_release(&trace);
    sqlite3_free(d.bytes);
}

TEST(no_memory_is_said)
{
    const char *const all[] = {nsight, rpd, SET("_a") SET("_b")};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct database d = database_of(all[i]);
        struct knee_trace whole = trace_from(all[i]);
        FOR_EACH_FAILURE(memory) {
            struct knee_trace trace;
            struct knee_err err = {0};
            knee_status status = read_database(&d, NULL, &memory.alloc, &trace, &err);
            if (status) {
                assert_int_equal(status, KNEE_SYSTEM);
                assert_string_equal(err.what, "out of memory");
            } else { /* a list that could not be made shorter is no loss */
                assert_int_equal(spans_of(&trace), spans_of(&whole));
                knee_trace_release(&trace);
            }
        }
        knee_trace_release(&whole);
        sqlite3_free(d.bytes);
    }
}

/* SQLite's own memory, capped at more and more bytes: whatever comes of it, a reason is given. */
TEST(sqlite_without_memory_is_said)
{
    struct database d = database_of(nsight);
    sqlite3_int64 before = sqlite3_memory_used();
    size_t refused = 0;
    for (sqlite3_int64 more = 1024; more < 160 << 10; more += UNIT_SANITIZED ? 8192 : 512) {
        struct failing memory = {0};
        struct knee_alloc alloc = {failing_resize, &memory};
        struct knee_trace trace;
        struct knee_err err = {0};
        sqlite3_hard_heap_limit64(before + more);
        knee_status status = read_database(&d, NULL, &alloc, &trace, &err);
        sqlite3_hard_heap_limit64(0);
        if (status)
            assert_true(err.what[0]);
        else
            knee_trace_release(&trace);
        refused += status != KNEE_OK;
        assert_int_equal(memory.live, 0);
    }
    assert_true(refused > 0);
    sqlite3_free(d.bytes);
}

#else

/* A build without SQLite says so, and what to do. */
TEST(databases_are_refused)
{
    struct knee_trace trace;
    struct knee_err err;
    assert_int_equal(
        knee_nsys_read((struct knee_file_bytes){"a.sqlite", NULL, 0}, NULL, NULL, &trace, &err),
        KNEE_SYSTEM);
    assert_string_equal(err.what, "this knee was built without SQLite");
}

#endif

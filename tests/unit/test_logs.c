/* SPDX-License-Identifier: MIT */
/*
 * Logs of every era and launcher, damaged ones, and foreign ones: what is used, what is refused and
 * why, what is worked out. The rows are made up, in the layout that each program prints.
 */
#include "unit.h"

#include "base/text.h"

#include <unistd.h>

#include "knee_logs.h"

static struct knee_logs read_logs(const char *text, const char *name)
{
    struct knee_logs logs = {0};
    struct knee_err err;
    if (knee_logs_read(&logs, text, strlen(text), name, NULL, &err))
        fail_msg("%s: %s; %s", name, err.what, err.hint);
    return logs;
}

/* Every line is a row, a refusal, a fact or other text; rows may span several lines. */
static void assert_all_lines_counted(const struct knee_logs *logs, const char *text)
{
    size_t lines = 0, rows = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    for (size_t i = 0; i < logs->count; i++)
        rows += logs->logs[i].sample_count + logs->logs[i].refused;
    assert_int_equal(logs->logs[0].lines, lines);
    assert_int_equal(rows + logs->logs[0].facts + logs->logs[0].others, lines);
}

#define HEADER                                                                                     \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     "    \
    "time   algbw   busbw #wrong\n"                                                                \
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "    \
    "(us)  (GB/s)  (GB/s)\n"

/* 16 ranks: busbw = 1.875 algbw. */
#define ROW_1M                                                                                     \
    "     1048576        262144     float     sum      -1   100.00   10.49   19.66      0    "     \
    "99.00   10.59   19.86      0\n"
#define ROW_1G                                                                                     \
    "  1073741824     268435456     float     sum      -1  5368.71  200.00  375.00      0  "       \
    "5400.00  198.84  372.83      0\n"

TEST(a_plain_table)
{
    static const char text[] = "# nThread 1 nGpus 1 minBytes 8\n" HEADER ROW_1M ROW_1G
                               "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1\n";
    OWNED(knee_logs) logs = read_logs(text, "x.log");
    const struct knee_log *log = &logs.logs[0];
    assert_int_equal(logs.count, 1);
    assert_int_equal(log->sample_count, 2);
    assert_int_equal(log->op, KNEE_OP_ALL_REDUCE);
    assert_near(log->ranks, 16, 0);
    assert_int_equal(log->ranks_known, KNEE_INFERRED);
    assert_near(log->nodes, 2, 0); /* assumed: eight a node */
    assert_int_equal(log->nodes_known, KNEE_ASSUMED);
    assert_near(log->samples[0].time_s, 99e-6, 1e-12); /* the faster half */
    assert_near(log->samples[0].out_of_place_s, 100e-6, 1e-12);
    assert_all_lines_counted(&logs, text);
}

/* The same rows behind every launcher's prefix. */
TEST(prefixes_are_cut_off)
{
    static const char prefixes[] =
        "0: |[1,0]<stdout>:|(head, rank=0, pid=3808) [1,0]<stdout>:|[0] |[default0]:|"
        "2024-05-01T12:00:00.123456Z |node-17: |> |    |\033[0m";
    static const char *const lines[] = {HEADER, ROW_1M, ROW_1G};
    for (struct pieces p = {.rest = prefixes}; next_piece(&p);) {
        char text[4096] = "";
        for (size_t l = 0; l < 3; l++)
            for (const char *at = lines[l]; *at;) {
                size_t length = strcspn(at, "\n") + 1, used = strlen(text);
                snprintf(text + used, sizeof text - used, "%s%.*s", p.text, (int)length, at);
                at += length;
            }
        OWNED(knee_logs) logs = read_logs(text, "x.log");
        if (logs.logs[0].sample_count != 2 || logs.logs[0].ranks != 16)
            fail_msg("prefix '%s': %zu rows", p.text, logs.logs[0].sample_count);
    }
}

/* NCCL's own lines come between, and into the middle of a row. */
TEST(nccl_lines_interleave)
{
    static const char text[] = HEADER
        "[0]     1048576        262144     float     sum      -1[0] n1:49:49 [0] NCCL INFO 1048576 "
        "Bytes -> Algo 0 proto 1 time 25.87\n"
        "[0] n2:50:50 [0] NCCL INFO 1048576 Bytes -> Algo 0 proto 1 time 25.87\n"
        "[0]   100.00   10.49   19.66      0\n"
        "n1:49:49 [0] NCCL INFO comm 0x7f rank 0 nranks 16 cudaDev 0 - Init COMPLETE\n"
        "n1:49:49 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB ib0\n"
        "n1:49:49 [0] NCCL INFO Channel 01/0 : 6[6] -> 14[6] [send] via NET/IB/3/GDRDMA\n"
        "[0]    99.00   10.59   19.86      0\n" ROW_1G;
    OWNED(knee_logs) logs = read_logs(text, "x.log");
    const struct knee_log *log = &logs.logs[0];
    assert_int_equal(log->sample_count, 2);
    assert_near(log->samples[0].time_s, 99e-6, 1e-12);
    assert_near(log->nodes, 2, 0); /* n1 and n2 */
    assert_int_equal(log->nodes_known, KNEE_SAID);
    assert_near(log->adapters, 2, 0);
    assert_true(log->seen & KNEE_SEEN_GDR);
    assert_true(log->seen & KNEE_SEEN_RDMA);
    assert_int_equal(log->tuning_count, 1);
    assert_string_equal(log->tunings[0].algorithm, "TREE");
    assert_string_equal(log->tunings[0].protocol, "LL128");
}

/* One row of 1 GiB as each version wrote it. */
static const struct {
    const char *what, *text;
    enum knee_op op;
    double ranks, time_s;
} eras[] = {
    {"2017: milliseconds, no units line",
     "# bytes             N    type      op     time  algbw  busbw      res     time  algbw  "
     "busbw      res\n"
     "  1073741824  268435456   float     sum   53.687  20.00  35.00    1e-07   53.687  20.00  "
     "35.00    1e-07\n",
     KNEE_OP_ALL_REDUCE, 8, 53.687e-3},
    {"2019: no root, error",
     "#       size         count    type   redop     time   algbw   busbw  error     time   "
     "algbw   busbw  error\n"
     "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  "
     "(GB/s)  (GB/s)\n"
     "  1073741824     268435456   float     sum  53687.1   20.00   35.00  5e-07  53687.1   "
     "20.00   35.00  5e-07\n",
     KNEE_OP_ALL_REDUCE, 8, 53687.1e-6},
    {"2019 all-gather: no redop",
     "#       size         count    type     time   algbw   busbw  error     time   algbw   "
     "busbw  error\n"
     "  1073741824      33554432   float  53687.1   20.00   17.50    N/A  53687.1   20.00   "
     "17.50    N/A\n",
     KNEE_OP_ALL_GATHER, 8, 53687.1e-6},
    {"2019 all-to-all: redop left empty",
     "#       size         count    type   redop     time   algbw   busbw  error     time   "
     "algbw   busbw  error\n"
     "  1073741824      33554432   float          53687.1   20.00   17.50    N/A  53687.1   "
     "20.00   17.50    N/A\n",
     KNEE_OP_ALL_TO_ALL, 8, 53687.1e-6},
    {"2019 reduce-scatter",
     "#       size         count    type   redop     time   algbw   busbw  error     time   "
     "algbw   busbw  error\n"
     "  1073741824      33554432   float     sum  53687.1   20.00   17.50    N/A  53687.1   "
     "20.00   17.50    N/A\n",
     KNEE_OP_REDUCE_SCATTER, 8, 53687.1e-6},
    {"2019 broadcast: root, no redop",
     "#   Rank  0 Pid 1 on h device  0 [0x00] A100\n#   Rank  7 Pid 1 on h device  7 [0x00] "
     "A100\n"
     "#       size         count    type    root     time   algbw   busbw  error     time   "
     "algbw   busbw  error\n"
     "  1073741824     268435456   float       0  53687.1   20.00   20.00    N/A  53687.1   "
     "20.00   20.00    N/A\n",
     KNEE_OP_BROADCAST, 8, 53687.1e-6},
    {"2025 all-to-all: not checked in place",
     HEADER "  1073741824      16777216     float    none      -1  53687.1   20.00   18.75      0  "
            "53687.1   20.00   18.75    N/A\n",
     KNEE_OP_ALL_TO_ALL, 16, 53687.1e-6},
    {"2025 all-gather",
     HEADER "  1073741824      16777216     float    none      -1  53687.1   20.00   18.75      0  "
            "53687.1   20.00   18.75      0\n",
     KNEE_OP_ALL_GATHER, 16, 53687.1e-6},
    {"reduce: root 0 and a redop",
     "# Rank  7 Group  0 Pid 1 on h device  7 [0x00] A100\n" HEADER
     "  1073741824     268435456     float     sum       0  53687.1   20.00   20.00      0  "
     "53687.1   20.00   20.00      0\n",
     KNEE_OP_REDUCE, 8, 53687.1e-6},
    {"per-iteration statistics (-I 1) and time stamps (-S)",
     "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw "
     "busbw #wrong i_min i_max i_p99 i_cv% timestamp\n"
     "  1073741824 268435456 float sum -1 53687.1 20.00 35.00 0 53000 54000 53900 0.5 53687.1 "
     "20.00 35.00 0 53000 54000 53900 0.5 2025-10-28 10:00:00\n",
     KNEE_OP_ALL_REDUCE, 8, 53687.1e-6},
    {"one half only",
     "#       size    count   type  redop  root   time   algbw   busbw  #wrong\n"
     "  1073741824 268435456  float   sum    -1  53687.1   20.00   35.00       0\n",
     KNEE_OP_ALL_REDUCE, 8, 53687.1e-6},
    {"no header at all",
     "  1073741824     268435456     float     sum      -1  53687.1   20.00   35.00      0  "
     "53687.1   20.00   35.00      0\n",
     KNEE_OP_ALL_REDUCE, 8, 53687.1e-6},
    {"rccl-tests",
     "# Collective test starting: all_reduce_perf\nrccl-tests: Version develop:a52452e\n" HEADER
     "  1073741824     268435456     float     sum      -1  53687.1   20.00   35.00      0  "
     "53687.1   20.00   35.00      0\n# Errors with asterisks indicate errors\n",
     KNEE_OP_ALL_REDUCE, 8, 53687.1e-6},
};

TEST(every_era)
{
    for (size_t i = 0; i < sizeof eras / sizeof *eras; i++) {
        OWNED(knee_logs) logs = read_logs(eras[i].text, "x.log");
        const struct knee_log *log = &logs.logs[0];
        if (log->sample_count != 1 || log->op != eras[i].op || log->ranks != eras[i].ranks ||
            fabs(log->samples[0].time_s / eras[i].time_s - 1) > 1e-12)
            fail_msg("%s: %zu rows, %s, %g ranks, %g s", eras[i].what, log->sample_count,
                     knee_op_name(log->op), log->ranks,
                     log->sample_count ? log->samples[0].time_s : NAN);
    }
}

TEST(damaged_rows_are_refused_with_a_reason)
{
    static const struct {
        const char *row, *reason;
    } cases[] = {
        {"0 0 float sum -1 5.0 0.00 0.00 0 5.0 0.00 0.00 0", "0 bytes"},
        {"1048576 262144 float sum -1 0.00 0.00 0.00 0 0.00 0.00 0.00 0", "the time is 0 or less"},
        {"1048576 262144 float sum -1 -3 1.00 1.00 0 -3 1.00 1.00 0", "the time is 0 or less"},
        {"1048576 262144 float sum -1 100.00 10.49 19.66 7 99.00 10.59 19.86 0",
         "the run had wrong results"},
        {"1048576 262144 float sum -1 100.00 20.97 19.66 0 99.00 10.59 19.86 0",
         "algbw is not size / time"},
        {"1048576 262144 float sum -1 N/A 10.49 19.66 0 99.00 10.59 19.86 0", "no time"},
        {"1048576 262144 float sum -1 1x0.00 10.49 19.66 0 99.00 10.59 19.86 0",
         "a column is not a number"},
        {"1048576 262144 float sum -1 100.00 10.49", "the row stops before its last column"},
        {"1048576 262144 100.00 10.49 19.66 0 99.00 10.59 19.86 0",
         "the row does not begin with size, count and type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        snprintf(text, sizeof text, HEADER ROW_1G "%s\n" ROW_1M, cases[i].row);
        OWNED(knee_logs) logs = read_logs(text, "x.log");
        const struct knee_log *log = &logs.logs[0];
        if (log->sample_count != 2 || log->refused != 1 ||
            strcmp(log->refusals[0].reason, cases[i].reason) != 0)
            fail_msg("'%s': %zu rows, refused %zu: %s", cases[i].row, log->sample_count,
                     log->refused, log->refused ? log->refusals[0].reason : "");
        assert_int_equal(log->refusals[0].line, 4);
        assert_all_lines_counted(&logs, text);
    }
}

TEST(foreign_files_are_refused)
{
    static const char *const files[] = {"",
                                        "\n\n",
                                        "hello\nworld\n",
                                        "\x89PNG\r\n\x1a\n",
                                        "a,b,c\n1,2,3\n",
                                        "{\"a\": 1}",
                                        HEADER,
                                        "{\"results\": [",
                                        "# OSU MPI Allreduce Latency Test\n"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        OWNED(knee_logs) logs = {0};
        struct knee_err err;
        if (knee_logs_read(&logs, files[i], strlen(files[i]), "x", NULL, &err) != KNEE_INPUT)
            fail_msg("'%s' was taken", files[i]);
        assert_int_equal(logs.count, 0);
        assert_true(err.hint[0] != '\0');
    }
}

TEST(contradictions_are_reported)
{
    static const char text[] =
        "# Rank  0 Group 0 Pid 1 on a device 0 [0x1] H100\n"
        "# Rank 63 Group 0 Pid 1 on b device 7 [0x1] H100\n" HEADER ROW_1M ROW_1G;
    OWNED(knee_logs) logs = read_logs(text, "x.log");
    assert_near(logs.logs[0].ranks, 16, 0); /* the ratio is measured, the list is not */
    assert_int_equal(logs.logs[0].note_count, 1);
    assert_non_null(strstr(logs.logs[0].notes[0], "64 ranks"));
    knee_logs_release(&logs);
    struct knee_log_hints hints = {32, 4, KNEE_OP_ALL_GATHER, NULL};
    struct knee_err err;
    memset(&logs, 0, sizeof logs);
    assert_ok(knee_logs_read(&logs, text, strlen(text), "x", &hints, &err));
    assert_near(logs.logs[0].ranks, 32, 0); /* the caller knows best */
    assert_near(logs.logs[0].nodes, 4, 0);
    assert_int_equal(logs.logs[0].op, KNEE_OP_ALL_GATHER);
}

/* Ranks from the ratio alone, up to the limit that two decimals set. */
TEST(ranks_from_the_ratio)
{
    static const double counts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 72, 96, 128, 256, 512};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        double n = counts[i], algbw = 215.37;
        char text[1024];
        snprintf(text, sizeof text,
                 HEADER "  8589934592 2147483648 float sum -1 %.1f %.2f %.2f 0 %.1f %.2f %.2f 0\n",
                 8589934592 / algbw * 1e-3, algbw, 2 * (n - 1) / n * algbw,
                 8589934592 / algbw * 1e-3, algbw, 2 * (n - 1) / n * algbw);
        OWNED(knee_logs) logs = read_logs(text, "x.log");
        assert_near(logs.logs[0].ranks, n, n > 300 ? n / 8 : 0);
    }
}

TEST(several_runs_in_one_file)
{
    static const char text[] = "# Collective test starting: all_reduce_perf\n" HEADER ROW_1M ROW_1G
                               "CASE 2\n# Collective test starting: all_gather_perf\n" HEADER
                               "  1073741824 16777216 float none -1 53687.1 20.00 18.75 0 53687.1 "
                               "20.00 18.75 0\n";
    OWNED(knee_logs) logs = read_logs(text, "x.log");
    assert_int_equal(logs.count, 2);
    assert_int_equal(logs.logs[0].op, KNEE_OP_ALL_REDUCE);
    assert_int_equal(logs.logs[1].op, KNEE_OP_ALL_GATHER);
    assert_int_equal(logs.logs[1].table, 2);
    assert_all_lines_counted(&logs, text);
}

TEST(nccl_tests_json)
{
    static const char text[] =
        "{\"version\": 3, \"args\": [\"./build/all_reduce_perf\", \"-b\", \"8\"],\n"
        "\"nccl_version\": \"2.28.9\", \"config\": {\"ngpus\": 1, \"devices\": [\n"
        "{\"rank\": 0, \"hostname\": \"a\", \"device\": 0, \"device_info\": \"NVIDIA H100\"},\n"
        "{\"rank\": 15, \"hostname\": \"b\", \"device\": 7, \"device_info\": \"NVIDIA H100\"}]},\n"
        "\"results\": [\n"
        "{\"size\": 1048576, \"count\": 262144, \"type\": \"float\", \"redop\": \"sum\",\n"
        " \"rank_median_s\": [1e-4, 9e-5],\n"
        " \"out_of_place\": {\"time\": 100.0, \"alg_bw\": 10.49, \"bus_bw\": 19.66, \"nwrong\": "
        "0},\n"
        " \"in_place\": {\"time\": 99.0, \"alg_bw\": 10.59, \"bus_bw\": 19.86, \"nwrong\": 0}},\n"
        "{\"size\": 2097152, \"out_of_place\": {\"time\": 100.0, \"alg_bw\": 1.0}},\n"
        "{\"size\": 0, \"out_of_place\": {\"time\": 5.0}},\n"
        "{\"size\": 4194304, \"out_of_place\": {\"time\": \"400.0\"}, \"in_place\": {\"time\": "
        "null}}],\n"
        "\"out_of_bounds\": {\"count\": 0, \"okay\": \"true\"}}\n";
    OWNED(knee_logs) logs = read_logs(text, "x.json");
    const struct knee_log *log = &logs.logs[0];
    assert_int_equal(log->sample_count, 2);
    assert_int_equal(log->refused, 2);
    assert_string_equal(log->refusals[0].reason, "algbw is not size / time");
    assert_string_equal(log->refusals[1].reason, "0 bytes");
    assert_near(log->samples[0].time_s, 99e-6, 1e-12);
    assert_near(log->samples[1].time_s, 400e-6, 1e-12); /* null is no time */
    assert_near(log->ranks, 16, 0);
    assert_near(log->nodes, 2, 0);
    assert_string_equal(log->gpu, "NVIDIA H100");
    knee_logs_release(&logs);
    /* Cut off: what was whole is used, and the damage is counted. */
    struct knee_err err;
    size_t cut = (size_t)(strstr(text, "{\"size\": 2097152") - text) + 30;
    memset(&logs, 0, sizeof logs);
    assert_ok(knee_logs_read(&logs, text, cut, "x", NULL, &err));
    assert_int_equal(logs.logs[0].sample_count, 1);
    assert_int_equal(logs.logs[0].refused, 1);
    assert_string_equal(logs.logs[0].refusals[0].reason, "the JSON is damaged here");
}

/* One bench in its three formats: on plain hosts the quickest run of each size. */
TEST(benches)
{
    static const struct {
        const char *name, *text;
    } formats[] = {
        {"bench.txt",
         "#  Rank  0 Group  0 Pid  1 on  a device  0 [0x00] CPU\n"
         "#  Rank  1 Group  0 Pid  2 on  b device  0 [0x00] CPU\n"
         "# Collective test starting: all_reduce_perf\n# algorithm: ring hops 2 share 1.5\n"
         "# size count type redop root time algbw busbw #wrong min p95 max iters expected of it\n"
         "1024 256 float sum -1 20.00 0.0512 0.0512 0 16.00 30.00 31.00 9 15.00 133.3\n"
         "4096 1024 float sum -1 40.00 0.1024 0.1024 0 32.00 50.00 51.00 9 - -\n"
         "# nThread 1 nGpus 1\n"
         "#  Rank  0 Group  0 Pid  1 on  a device  0 [0x00] CPU\n"
         "#  Rank  1 Group  0 Pid  2 on  b device  0 [0x00] CPU\n"
         "# Collective test starting: all_reduce_perf\n# algorithm: mpi\n"
         "# size count type redop root time algbw busbw #wrong min p95 max iters expected of it\n"
         "1024 256 float sum -1 20.00 0.0512 0.0512 0 16.00 30.00 31.00 9 15.00 133.3\n"},
        {"bench.json",
         "{\"config\": {\"devices\": [{\"device_info\": \"CPU\"}]}, \"results\": ["
         "{\"size\": 1024, \"out_of_place\": {\"time\": 20}, \"collective\": \"all_reduce\","
         "\"algorithm\": \"ring\", \"hops\": 2, \"share\": 1.5, \"ranks\": 2, \"nodes\": 2,"
         "\"min_s\": 16e-6},"
         "{\"size\": 4096, \"out_of_place\": {\"time\": 40}, \"collective\": \"all_reduce\","
         "\"algorithm\": \"ring\", \"hops\": 2, \"share\": 1.5, \"ranks\": 2, \"nodes\": 2,"
         "\"min_s\": 32e-6},"
         "{\"size\": 1024, \"out_of_place\": {\"time\": 20}, \"collective\": \"all_reduce\","
         "\"algorithm\": \"mpi\", \"hops\": null, \"share\": null, \"ranks\": 2, \"nodes\": 2,"
         "\"min_s\": 16e-6}]}"},
        {"bench.csv", "collective,algorithm,ranks,nodes,bytes,time_s,min_s,hops,share,device\n"
                      "all_reduce,ring,2,2,1024,20e-6,16e-6,2,1.5,CPU\n"
                      "all_reduce,ring,2,2,4096,40e-6,32e-6,2,1.5,CPU\n"
                      "all_reduce,mpi,2,2,1024,20e-6,16e-6,,,CPU\n"},
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        OWNED(knee_logs) logs = read_logs(formats[i].text, formats[i].name);
        assert_int_equal(logs.count, 2);
        const struct knee_log *own = &logs.logs[0], *library = &logs.logs[1];
        assert_string_equal(own->algorithm, "ring");
        assert_near(own->hops, 2, 0);
        assert_near(own->share, 1.5, 0);
        assert_near(own->samples[1].time_s, 32e-6, 1e-15);
        assert_near(own->samples[1].out_of_place_s, 40e-6, 1e-15);
        assert_string_equal(library->algorithm, "");
        assert_near(library->hops, 0, 0);
        assert_near(library->samples[0].time_s, 16e-6, 1e-15);
        assert_near(library->samples[0].out_of_place_s, 20e-6, 1e-15);
        for (size_t n = 0; n < 2; n++) {
            assert_string_equal(logs.logs[n].gpu, "CPU");
            assert_near(logs.logs[n].nodes, 2, 0);
        }
    }
}

TEST(osu_tables)
{
    static const char text[] = "$ mpirun -np 4 osu_allgather -d cuda\n"
                               "# OSU MPI-CUDA Allgather Latency Test v7.0\n"
                               "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)\n"
                               "4                       1.98      1.9      2.1\n"
                               "[host:mpi_rank_0] a warning\n"
                               "1048576               100.00     99.0    101.0\n"
                               "2097152                    ?\n";
    OWNED(knee_logs) logs = read_logs(text, "osu.txt");
    const struct knee_log *log = &logs.logs[0];
    assert_int_equal(log->op, KNEE_OP_ALL_GATHER);
    assert_near(log->ranks, 4, 0);
    assert_int_equal(log->sample_count, 2);
    assert_near(log->samples[1].bytes, 4 * 1048576.0, 0); /* sizes are per rank */
    assert_near(log->samples[1].time_s, 100e-6, 1e-15);
    assert_int_equal(log->refused, 1);
    assert_all_lines_counted(&logs, text);
    knee_logs_release(&logs);
    logs = read_logs("# OSU MPI-CUDA Bandwidth Test v7.0\n# Size Bandwidth (MB/s)\n1000000 20000\n",
                     "osu_bw.txt");
    assert_int_equal(logs.logs[0].op, KNEE_OP_SEND_RECV);
    assert_near(logs.logs[0].samples[0].time_s, 50e-6, 1e-15);
    assert_string_equal(logs.logs[0].gpu, "");
    knee_logs_release(&logs);
    logs = read_logs("# OSU MPI Latency Test v7.0\n# Size Latency (us)\n1024 20\n", "osu.txt");
    assert_string_equal(logs.logs[0].gpu, "CPU"); /* no -CUDA: the host's buffers */
}

/* Rows of one kind are one table, in whatever order they stand. */
TEST(csv_rows_may_alternate)
{
    enum { ROWS = 6000 };
    static const char *const ops[] = {"all_reduce", "all_gather", "\"broadcast\""};
    OWNED(knee_text) text = {0};
    knee_text_printf(&text,
                     "# made up, \"with a quote\nop,bytes,time_us,ranks\nall_reduce,x,1,8\n");
    for (int i = 0; i < ROWS; i++)
        knee_text_printf(&text, "%s,%d,%d,8\n", ops[i % 3], 8 * (i + 1), i + 1);
    OWNED(knee_logs) logs = read_logs(text.data, "x.csv");
    assert_int_equal(logs.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(logs.logs[i].sample_count, ROWS / 3);
        assert_int_equal(logs.logs[i].refused, i == 0);
        assert_near(logs.logs[i].samples[0].bytes, 8 * (double)(i + 1), 0);
        assert_int_equal(logs.logs[i].samples[1].line, i + 4 + 3);
    }
    assert_int_equal(logs.logs[2].op, KNEE_OP_BROADCAST);
    assert_all_lines_counted(&logs, text.data);
}

/* Too many tables are said to be that, not a lack of memory. */
TEST(too_many_tables)
{
    OWNED(knee_text) text = {0};
    struct knee_logs logs = {0};
    struct knee_err err;
    knee_text_puts(&text, "op,bytes,time_us,ranks\n");
    for (int i = 0; i < 5000; i++)
        knee_text_printf(&text, "all_reduce,8,1,%d\n", i + 2);
    assert_int_equal(knee_logs_read(&logs, text.data, text.length, "x.csv", NULL, &err),
                     KNEE_INPUT);
    assert_non_null(strstr(err.what, "tables"));
    assert_int_equal(logs.count, 0);
}

/* Twenty thousand rows, a line for each value: seconds if lines were counted from the start each
 * time (1e12 steps), else nothing. */
TEST(long_json_is_read_once)
{
    OWNED(knee_text) text = {0};
    knee_text_puts(&text, "{\"results\": [\n");
    for (int i = 0; i < 20000; i++)
        knee_text_printf(&text,
                         "%s{\n\"size\": %d,\n\"out_of_place\":\n{\"time\": 100,\n"
                         "\"nwrong\": 0},\n\"in_place\":\n{\"time\": 100,\n\"nwrong\": 0}\n}\n",
                         i ? "," : "", 8 * (i + 1));
    knee_text_puts(&text, "]}\n");
    alarm(60);
    OWNED(knee_logs) logs = read_logs(text.data, "all_reduce.json");
    alarm(0);
    assert_int_equal(logs.logs[0].sample_count, 20000);
    assert_true(logs.logs[0].samples[19999].line > 19999 * 8);
}

TEST(sizes_as_nccl_tests_writes_them)
{
    double sizes[KNEE_SIZES_MAX];
    size_t count = 0;
    struct knee_err err;
    assert_ok(knee_sizes_parse("4K..8G", "", sizes, KNEE_SIZES_MAX, &count, &err));
    assert_int_equal(count, 22);
    assert_near(sizes[0], 4096, 0);
    assert_near(sizes[21], 8589934592, 0);
    assert_ok(knee_sizes_parse("1M..4M+1M,8,8", "", sizes, KNEE_SIZES_MAX, &count, &err));
    assert_int_equal(count, 5);
    assert_near(sizes[0], 8, 0);
    sizes[3] = -1;
    assert_int_equal(knee_sizes_parse("1..4+1", "", sizes, 3, &count, &err), KNEE_USAGE);
    assert_string_equal(err.what, "'1..4+1' makes more than 3 sizes");
    assert_ok(knee_sizes_parse("4,3,2", "", sizes, 3, &count, &err));
    assert_true(count == 3 && sizes[0] == 2 && sizes[3] == -1);
    assert_ok(knee_sizes_parse("1K..64Kx4,1.5GB", "", sizes, KNEE_SIZES_MAX, &count, &err));
    assert_int_equal(count, 5);
    assert_near(sizes[4], 1.5e9, 0);
    static const char *const bad[] = {"",      "x",       "0",  "8G..4K", "1..8x1",
                                      "1..8+", "1..1G+1", "4Q", "-4",     "1e400"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!knee_sizes_parse(bad[i], "", sizes, KNEE_SIZES_MAX, &count, &err))
            fail_msg("'%s' was taken", bad[i]);
}

/* ---- What single lines say ---- */

/* Behind a row of a table, as a run prints it. */
static struct knee_logs with_line(const char *line)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s%s\n%s", HEADER, ROW_1M, line, ROW_1G);
    return read_logs(text, "x.log");
}

TEST(lines_of_nccl_say)
{
    static const struct {
        const char *line;
        unsigned seen;
        double adapters, ranks, nodes;
    } cases[] = {
        {"n1:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via NET/Socket/0",
         KNEE_SEEN_SOCKET | KNEE_SEEN_NO_GDR, NAN, 16, 1},
        {"n1:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via NET/IB/0",
         KNEE_SEEN_RDMA | KNEE_SEEN_NO_GDR, NAN, 16, 1},
        {"n1:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via NET/IB/0/GDRDMA",
         KNEE_SEEN_RDMA | KNEE_SEEN_GDR, NAN, 16, 1},
        {"n1:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM", KNEE_SEEN_SHM, NAN, 16, 1},
        {"n1:1:2 [0] NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)", 0, 4, 16, 1},
        {"n1:1:2 [0] NCCL INFO NET/IB : Using [x]mlx5_0 [0]mlx5_1 [:", 0, 1, 16, 1},
        {"n1:1:2 [0] NCCL INFO NET/IB : Using [0]a [1]b\nn1:1:2 [0] NCCL INFO NET/IB : Using [0]a",
         0, 2, 16, 1},
        {"n1:1:2 [0] NCCL WARN P2P is disabled between connected GPUs", KNEE_SEEN_NO_P2P, NAN, 16,
         1},
        {"n1:1:2 [0] NCCL INFO comm 0x1 rank 0 nRanks 16 nNodes 4 localRanks 4", 0, NAN, 16, 4},
        {"NCCL INFO without a host", 0, NAN, 16, 2},
        {"[0] NCCL INFO without a host", 0, NAN, 16, 2},
        {"] NCCL INFO without a host", 0, NAN, 16, 2},
        {"word NCCL INFO without a host", 0, NAN, 16, 2},
        {":1:2 [0] NCCL INFO without a host", 0, NAN, 16, 2},
        {"x] n1:1:2 [0] NCCL INFO something before", 0, NAN, 16, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_logs) logs = with_line(cases[i].line);
        const struct knee_log *log = &logs.logs[0];
        bool adapters = log->adapters == cases[i].adapters ||
                        (isnan(log->adapters) && isnan(cases[i].adapters));
        if (log->sample_count != 2 ||
            (log->seen | KNEE_SEEN_NCCL) != (cases[i].seen | KNEE_SEEN_NCCL) || !adapters ||
            log->ranks != cases[i].ranks || log->nodes != cases[i].nodes)
            fail_msg("%s: %zu rows, seen %x, %g adapters, %g ranks on %g nodes", cases[i].line,
                     log->sample_count, log->seen, log->adapters, log->ranks, log->nodes);
    }
}

TEST(tuning_is_kept_by_size)
{
    static const struct {
        const char *words, *algorithm, *protocol;
    } cases[] = {
        {"AllReduce: 8192 Bytes -> Algo RING proto SIMPLE channel", "RING", "SIMPLE"},
        {"8192 Bytes -> Algo 1 proto 2 time 86.07", "RING", "SIMPLE"},
        {"8192 Bytes -> Algo 0 proto 0 time 86.07", "TREE", "LL"},
        {"8192 Bytes -> Algo 9 proto 9 time 86.07", "9", "9"},
        {"8192 Bytes -> Algo -1 proto -1 time 86.07", "-1", "-1"},
        {"many Bytes -> Algo 1 proto 2 time 86.07", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[256];
        snprintf(line, sizeof line, "n1:1:2 [0] NCCL INFO %s\nn1:1:2 [0] NCCL INFO %s",
                 cases[i].words, cases[i].words);
        OWNED(knee_logs) logs = with_line(line);
        const struct knee_log *log = &logs.logs[0];
        assert_int_equal(log->tuning_count, cases[i].algorithm != NULL);
        if (log->tuning_count) {
            assert_string_equal(log->tunings[0].algorithm, cases[i].algorithm);
            assert_string_equal(log->tunings[0].protocol, cases[i].protocol);
        }
    }
    OWNED(knee_text) text = {0};
    knee_text_printf(&text, "%s%s", HEADER, ROW_1M);
    for (int i = 0; i < 2 * KNEE_TUNINGS_KEPT; i++)
        knee_text_printf(&text, "n1:1:2 [0] NCCL INFO %d Bytes -> Algo 1 proto 2\n", 8 * i + 8);
    OWNED(knee_logs) logs = read_logs(text.data, "x.log");
    assert_int_equal(logs.logs[0].tuning_count, KNEE_TUNINGS_KEPT);
}

/* Each is one element of "rows" or "results". */
TEST(elements_are_refused_with_a_reason)
{
    static const struct {
        const char *element, *reason; /* NULL: it is used */
    } cases[] = {
        {"{\"bytes\": 8, \"time_s\": 1e-5}", NULL},
        {"{\"bytes\": \"8\", \"time_us\": \"10\"}", NULL},
        {"{\"bytes\": 8, \"in_place\": {\"time\": 10}}", NULL},
        {"{\"bytes\": 8, \"out_of_place\": {\"time\": 10}, \"in_place\": {\"time\": 9}}", NULL},
        {"{\"time_s\": 1e-5}", "no size"},
        {"{\"bytes\": \"many\", \"time_s\": 1e-5}", "no size"},
        {"{\"bytes\": 0, \"time_s\": 1e-5}", "0 bytes"},
        {"{\"bytes\": 8}", "no time"},
        {"{\"bytes\": 8, \"time_s\": 0}", "the time is 0 or less"},
        {"{\"bytes\": 8, \"time_s\": 1e-5, \"in_place\": {\"time\": -1}}", "the time is 0 or less"},
        {"{\"bytes\": 8, \"time_s\": 1e-5, \"out_of_place\": {\"nwrong\": 3}}",
         "the run had wrong results"},
        {"{\"bytes\": 8, \"time_s\": 1e-5, \"in_place\": {\"nwrong\": 3}}",
         "the run had wrong results"},
        {"{\"bytes\": 8, \"time_s\": 1e-5, \"collective\": \"juggle\"}",
         "the collective is not known"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "\n \r\n{\"config\": {\"ngpus\": \"x\"}, \"devices\": [{\"rank\": \"x\", "
                 "\"device\": \"x\", \"else\": 1}, {\"rank\": 1, \"device\": 1, "
                 "\"device_info\": \"A\"}, {\"rank\": 0, \"device\": 0, \"device_info\": \"B\"}], "
                 "\"rows\": [{\"bytes\": 1, \"time_s\": 1e-6}, %s]}",
                 cases[i].element);
        OWNED(knee_logs) logs = read_logs(text, "x.json");
        const struct knee_log *log = &logs.logs[0];
        assert_int_equal(log->sample_count, cases[i].reason ? 1 : 2);
        assert_int_equal(log->refused, cases[i].reason != NULL);
        if (cases[i].reason)
            assert_string_equal(log->refusals[0].reason, cases[i].reason);
        assert_string_equal(log->gpu, "A");
        assert_near(log->ranks, 2, 0);
    }
}

/* What differs makes another table: in JSON and in CSV. */
TEST(what_differs_is_another_table)
{
    static const char *const json[] = {
        "\"collective\": \"all_gather\", \"ranks\": 4, \"nodes\": 2",
        "\"collective\": \"all_reduce\", \"ranks\": 8, \"nodes\": 2",
        "\"collective\": \"all_reduce\", \"ranks\": 4, \"nodes\": 1",
        ("\"collective\": \"all_reduce\", \"ranks\": 4, \"nodes\": 2, \"algorithm\": \"ring\", "
         "\"hops\": 6, \"share\": 1.5"),
        "\"ranks\": 1, \"nodes\": 0.5",
    };
    for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "{\"rows\": [{\"collective\": \"all_reduce\", \"ranks\": 4, \"nodes\": 2, "
                 "\"bytes\": 8, \"time_s\": 1e-5}, {%s, \"bytes\": 8, \"time_s\": 1e-5}]}",
                 json[i]);
        OWNED(knee_logs) logs = read_logs(text, "x.json");
        if (logs.count != 2)
            fail_msg("%s: %zu tables", json[i], logs.count);
        assert_near(logs.logs[1].hops, i == 3 ? 6 : 0, 0);
    }
    static const char *const csv[] = {
        "all_gather,a,x,ring,4,2,6,1.5", "all_reduce,b,x,ring,4,2,6,1.5",
        "all_reduce,a,y,ring,4,2,6,1.5", "all_reduce,a,x,tree,4,2,6,1.5",
        "all_reduce,a,x,ring,8,2,6,1.5", "all_reduce,a,x,ring,4,1,6,1.5",
        "all_reduce,a,x,ring,4,2,7,1.5", "all_reduce,a,x,ring,4,2,6,2.5",
        "all_reduce,a,x,ring,4,,6,1.5",  "all_reduce,,x,ring,4,2,6,1.5",
        "all_reduce,a,x,ring,4,2,6,1.5"};
    enum { KINDS = sizeof csv / sizeof *csv };
    OWNED(knee_text) text = {0};
    knee_text_puts(&text, "op,gpu,dtype,algorithm,ranks,nodes,hops,share,bytes,time_us\n");
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < KINDS; i++)
            knee_text_printf(&text, "%s,%d,%d\n", csv[i], 8 << turn, turn + 1);
    OWNED(knee_logs) logs = read_logs(text.data, "x.csv");
    assert_int_equal(logs.count, KINDS);
    for (size_t i = 0; i < logs.count; i++)
        assert_int_equal(logs.logs[i].sample_count, 3);
}

/* Sizes of one rank: the table of which collectives has them is OSU's. */
TEST(osu_counts_the_whole_buffer)
{
    static const struct {
        const char *title;
        enum knee_op op;
        bool per_rank;
    } cases[] = {
        {"Allgather", KNEE_OP_ALL_GATHER, true},  {"Gather", KNEE_OP_GATHER, true},
        {"Scatter", KNEE_OP_SCATTER, true},       {"All-to-All", KNEE_OP_ALL_TO_ALL, true},
        {"Alltoallv", KNEE_OP_ALL_TO_ALLV, true}, {"Allreduce", KNEE_OP_ALL_REDUCE, false},
        {"Broadcast", KNEE_OP_BROADCAST, false},  {"Reduce", KNEE_OP_REDUCE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "noise before\n# OSU MPI-CUDA %s Latency Test v7.0\n# Size Avg\n0 5\n8 -1\n9\n8 "
                 "10\n\n",
                 cases[i].title);
        OWNED(knee_logs) logs = {0};
        struct knee_err err;
        knee_status status = knee_logs_read(&logs, text, strlen(text), "x", NULL, &err);
        assert_int_equal(status, cases[i].per_rank ? KNEE_INPUT : KNEE_OK); /* how many ranks? */
        knee_logs_release(&logs);
        struct knee_log_hints hints = {.ranks = 4, .nodes = NAN, .op = KNEE_OP_UNKNOWN};
        memset(&logs, 0, sizeof logs);
        assert_ok(knee_logs_read(&logs, text, strlen(text), "x", &hints, &err));
        assert_int_equal(logs.logs[0].op, cases[i].op);
        assert_near(logs.logs[0].samples[0].bytes, cases[i].per_rank ? 32 : 8, 0);
        assert_int_equal(logs.logs[0].refused, 3);
    }
}

/* Not prefixes, though they begin like one: nothing of a row is cut off with them. */
TEST(what_looks_like_a_prefix)
{
    static const char lines[] =
        "2024-05-01X12:00:00.123 |2024-05-01T12.00:00.123 |2024/05-01T12:00:00.123 |"
        "2024-05/01T12:00:00.123 |\033[00000000000000000000|1234567: |node-17: x|node-17:|"
        "(never closed|[never closed|12:x";
    for (struct pieces p = {.rest = lines}; next_piece(&p);) {
        OWNED(knee_logs) logs = with_line(p.text);
        assert_int_equal(logs.logs[0].sample_count, 2);
    }
    OWNED(knee_logs) logs =
        with_line("NCCL_PROTO=LL ./all_reduce_perf -b 8\n./all_gather_perf\n"
                  "# algorithm: ring hops 6 share 1.5\n"
                  "# algorithm: the library's\n# algorithm: ring hops 6 share x\n"
                  "# algorithm: ring hops x\n# algorithm: ring hops 0 share 1\n"
                  "# algorithm: ring hops 6 share 0\n# nThread 1");
    assert_int_equal(logs.logs[0].op, KNEE_OP_ALL_REDUCE);
    assert_true(logs.logs[0].seen & KNEE_SEEN_FORCED_ALGO);
    assert_near(logs.logs[0].hops, 6, 0);
    assert_near(logs.logs[0].share, 1.5, 0);
}

/* The words that tell the machine: a name and a description of any length. */
TEST(long_descriptions_fit)
{
    char about[4096], name[4096];
    memset(about, 'x', sizeof about - 1);
    memset(name, 'y', sizeof name - 1);
    for (size_t length = 1; length < sizeof about; length = 3 * length / 2 + 1) {
        struct knee_log_hints hints = {.ranks = NAN, .nodes = NAN, .op = KNEE_OP_UNKNOWN, about};
        struct knee_logs logs = {0};
        struct knee_err err;
        about[length] = name[length] = '\0';
        assert_ok(knee_logs_read(&logs, HEADER ROW_1M, strlen(HEADER ROW_1M), name, &hints, &err));
        assert_near(logs.logs[0].nodes, 2, 0);
        knee_logs_release(&logs);
        about[length] = 'x', name[length] = 'y';
    }
}

/* Caps: what is beyond them is counted or said. */
TEST(caps_are_kept)
{
    OWNED(knee_text) text = {0};
    struct knee_logs logs = {0};
    struct knee_err err;
    knee_text_printf(&text, "%s%s", HEADER, ROW_1M);
    for (int i = 0; i < 2 * KNEE_REFUSALS_KEPT; i++)
        knee_text_puts(&text, "0 0 float sum -1 1.0 0.0 0.0 0 1.0 0.0 0.0 0\n");
    for (int i = 0; i < 5000; i++)
        knee_text_printf(&text, "# Rank %d Pid 1 on host%d device 0 [0x07] NVIDIA H100\n", i % 16,
                         i);
    logs = read_logs(text.data, "x.log");
    assert_int_equal(logs.logs[0].refused, 2 * KNEE_REFUSALS_KEPT);
    assert_int_equal(logs.logs[0].refusal_count, KNEE_REFUSALS_KEPT);
    knee_logs_release(&logs);
    text.length = 0;
    knee_text_puts(&text, "bytes,time_us\n");
    for (int i = 0; i < (1 << 18) + 2; i++)
        knee_text_puts(&text, "8,1\n");
    memset(&logs, 0, sizeof logs);
    assert_int_equal(knee_logs_read(&logs, text.data, text.length, "x.csv", NULL, &err),
                     KNEE_INPUT);
    assert_string_equal(err.what, "more than 262144 rows in one table");
}

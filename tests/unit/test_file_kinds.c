/* SPDX-License-Identifier: MIT */
/* What a file is: every row of the table by a name and a head that people have. */
#include "unit.h"

#include "read/file_kinds.h"

static const struct {
    const char *file, *head, *kind;
} files[] = {
    {"a.json", "{\n  \"schema\": \"knee.trace/1\",\n", "answer"},
    {"report1.sqlite", "SQLite format 3", "database"},
    {"x.db", "SQLite format 3", "database"},
    {"x.rpd.gz", "SQLite format 3", "database"},
    {"run.nsys-rep", "anything", "nsys-rep"},
    {"host.xplane.pb", "\x0a\x12", "xplane"},
    {"host.xplane.pb.gz", "\x0a\x12", "xplane"},
    {"job.0.et", "\x7b\x0a", "chakra"},
    {"traces.zip", "PK\x03\x04", "archive"},
    {"nccl_trace_rank_3", "\x80\x02}q", "flight recorder"},
    {"rank_3", "{\"version\": \"2.5\", \"pg_config\": {}}", "flight recorder"},
    {"node1.log", "{\"header\":{\"id\":\"0xa\"},\"coll_perf\":{}}", "inspector"},
    {"out.json", "{\"rocprofiler-sdk-tool\": [{}]}", "rocprofv3 json"},
    {"out.csv", "Kind,Correlation_Id,Start_Timestamp,End_Timestamp\n", "rocprofv3"},
    {"et.json", "{\"workload_graph\": []}", "chakra json"},
    {"ops.json", "{\"traceEvents\": [{\"cat\": \"forward-compute\"}]}", "operations"},
    {"rank0.json.gz", "{\"schemaVersion\": 1, \"traceEvents\": [", "trace"},
    {"trace", "[{\"ph\": \"X\", \"name\": \"a\"}]", "trace"},
    {"trainer_state.json", "{\"log_history\": []}", "trainer state"},
    {"config.json", "{\"architectures\": [\"LlamaForCausalLM\"]}", "model"},
    {"ds_config.json", "{\"train_batch_size\": 8}", "deepspeed"},
    {"all_reduce.log", "#       size    time   algbw   busbw\n", "collectives"},
    {"topo.xml", "<system version=\"1\">", "topology"},
    {"runs.csv", "workers,step_s\n8,1.5\n", "runs"},
    {"other.csv", "bytes,time\n1,2\n", "table"},
    {"job.yaml", "params: 7B\n", "job"},
    {"train.log", " iteration 1/ 9 | elapsed time per iteration (ms): 20 |\n", "training log"},
    {"sacct.txt", "JobID|State|Elapsed|NodeList\n12|FAILED|01:00:00|n[1-2]\n", "sacct"},
    {"train.jsonl", "{\"step\": 1, \"loss\": 2.5}\n", "training log"},
    {"nccl.log", "host:1:1 [0] NCCL INFO Bootstrap\n", "NCCL log"},
    {"cut.json", "", "trace"}, /* by its name alone */
    {"empty.sqlite", "", "database"},
    {"kernel_trace.csv.gz", "", "rocprofv3"},
    {"rank0.err", "[rank0]:[E1117 ProcessGroupNCCL.cpp:685] Watchdog caught\n", "error output"},
    {"notes.txt", "buy milk\n", "text"},
    {"core",
     "\x7f"
     "ELF",
     NULL},
};

TEST(files_have_kinds)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const struct knee_file_kind *kind =
            knee_file_kind_of(files[i].file, files[i].head, strlen(files[i].head));
        const char *name = kind ? kind->name : NULL;
        if (!name != !files[i].kind || (name && strcmp(name, files[i].kind) != 0))
            fail_msg("%s: %s, not %s", files[i].file, name ? name : "-",
                     files[i].kind ? files[i].kind : "-");
    }
}

/* A kind that no row of the test has would never be seen to break. */
TEST(every_kind_is_tested)
{
    const struct knee_file_kind *kind;
    for (size_t row = 0; (kind = knee_file_kind_at(row)); row++) {
        size_t found = strcmp(kind->name, "ncu-rep") == 0;
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            found += files[i].kind && strcmp(files[i].kind, kind->name) == 0;
        if (!found)
            fail_msg("%s", kind->name);
        assert_int_equal(knee_file_kind_row(kind), row + 1);
        assert_true(kind->what[0] && kind->run[0]);
    }
    assert_int_equal(knee_file_kind_row(NULL), 0);
}

TEST(commands_take_whole_words)
{
    const struct knee_file_kind *trace = knee_file_kind_of("a.json", "", 0);
    assert_true(knee_file_kind_for(trace, "trace"));
    assert_true(knee_file_kind_for(trace, "report"));
    assert_false(knee_file_kind_for(trace, "rep"));
    assert_false(knee_file_kind_for(trace, "fit"));
    assert_true(knee_file_ends_like_trace("a.rpd.gz"));
    assert_false(knee_file_ends_like_trace("a.yaml"));
}

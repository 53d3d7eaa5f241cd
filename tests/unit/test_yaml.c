/* SPDX-License-Identifier: MIT */
/* Job files: what is read, what is refused and where. */
#include "knee_read.h"
#include "unit.h"

static knee_status read_yaml(const char *yaml, struct knee_job *job, struct knee_err *err)
{
    return knee_yaml_read((struct knee_named_text){yaml, strlen(yaml), "job.yaml"}, &knee_job_keys,
                          job, sizeof *job, err);
}

TEST(keys_are_read)
{
    struct knee_job job;
    struct knee_err err;
    knee_job_init(&job);
    assert_ok(read_yaml("# a job\nparams: 7B\nglobal_batch: 2048\nbandwidth: 25 GB/s\n"
                        "workers: [1, 2, '8..64x2']\ngpu: h100\noverlap: 70%\n",
                        &job, &err));
    assert_true(job.params == 7e9 && job.global_batch == 2048 &&
                job.hw.bandwidth_bytes_per_s == 25e9);
    assert_true(job.workers.ranges == 3 && job.overlap == 0.7);
}

TEST(gpus_by_any_name)
{
    struct knee_job job, plain;
    struct knee_err err;
    knee_job_init(&job);
    knee_job_init(&plain);
    assert_ok(read_yaml("gpu: NVIDIA H100 80GB HBM3\n", &job, &err));
    assert_ok(read_yaml("gpu: h100\n", &plain, &err));
    assert_int_equal(job.hw.gpu, plain.hw.gpu);
}

TEST(json_is_read_too)
{
    struct knee_job job;
    struct knee_err err;
    knee_job_init(&job);
    assert_ok(read_yaml("{\"params\": \"7B\", \"global-batch\": 2048}", &job, &err));
    assert_true(job.params == 7e9 && job.global_batch == 2048);
}

TEST(flags_are_kept)
{
    struct knee_job job = job_of("params 1B");
    struct knee_err err;
    assert_ok(read_yaml("params: 7B\nmfu: 0.5\n", &job, &err));
    assert_true(job.params == 1e9 && job.mfu == 0.5);
}

TEST(trouble_names_its_line_and_changes_nothing)
{
    static const struct {
        const char *yaml, *where, *what;
    } cases[] = {
        {"params: 7B\nbandwith: 1\n", "job.yaml:2", "no key 'bandwith'"},
        {"params: -7\n", "job.yaml:1", "out of range"},
        {"params: 7B\nparams: 8B\n", "job.yaml:2", "'params' is given twice"},
        {"params: {a: 1}\n", "job.yaml:1", "nested"},
        {"params: [[1]]\n", "job.yaml:1", "nested"},
        {"[1, 2]\n", "job.yaml:1", "not a list of keys"},
        {"hello\n", "job.yaml:1", "not a list of keys"},
        {"a: &x 1\nparams: *x\n", "job.yaml:1", "no key 'a'"},
        {"params: &x 7B\nflops: *x\n", "job.yaml:2", "aliases"},
        {"params: 7B\n---\nparams: 8B\n", "job.yaml:2", "second document"},
        {"params: 'unclosed\n", "job.yaml:2", "not YAML"},
        {"params: \"7\\0B\"\n", "job.yaml:1", "zero byte"},
        {"? [complex]\n: 1\n", "job.yaml:1", "a key is not a word"},
        {"params:\n", "job.yaml:1", "is not a number"},
        {"workers: []\n", "job.yaml:1", "is not a count"},
        {"params: {}\n", "job.yaml:1", "is not a number"},
        {"workers: [1]\nworkers: [2]\n", "job.yaml:2", "given twice"},
        {"workers: [1, 2\nparams: 7B\n", "job.yaml:2", "not YAML"},
        {"\x01\x02\x03", "job.yaml:1", "not YAML"},
        {"params: 7B\ngpu: h10\n", "job.yaml:2", "no GPU preset"},
        {"workers: [1, x]\nparams: [7B]\n", "job.yaml:1", "is not a count"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_job job, before;
        struct knee_err err;
        knee_job_init(&job);
        before = job;
        if (read_yaml(cases[i].yaml, &job, &err) != KNEE_INPUT)
            fail_msg("taken: %s", cases[i].yaml);
        if (strcmp(err.where, cases[i].where) || !strstr(err.what, cases[i].what))
            fail_msg("%s -> %s: %s", cases[i].yaml, err.where, err.what);
        assert_memory_equal(&job, &before, sizeof job);
    }
}

/* Billion laughs: aliases are refused before anything grows. */
TEST(bombs_do_not_go_off)
{
    struct knee_job job;
    struct knee_err err;
    knee_job_init(&job);
    assert_int_equal(
        read_yaml("params: &a [x,x,x,x,x,x,x,x,x]\nflops: &b [*a,*a,*a,*a,*a,*a,*a]\n", &job, &err),
        KNEE_INPUT);
    char *deep = malloc(200001);
    assert_non_null(deep);
    memset(deep, '[', 200000);
    deep[200000] = '\0';
    assert_int_equal(read_yaml(deep, &job, &err), KNEE_INPUT);
    memset(deep, 'x', 200000);
    memcpy(deep, "params: ", 8);
    assert_int_equal(read_yaml(deep, &job, &err), KNEE_INPUT);
    free(deep);
    char *large = calloc(1, (2u << 20) + 1);
    assert_non_null(large);
    assert_int_equal(knee_yaml_read((struct knee_named_text){large, 2u << 20, "job.yaml"},
                                    &knee_job_keys, &job, sizeof job, &err),
                     KNEE_INPUT);
    free(large);
}

/* Names and lists longer than any key's. */
TEST(long_paths_are_refused)
{
    struct knee_job job;
    struct knee_err err;
    char yaml[16384] = "";
    size_t used = 0;
    knee_job_init(&job);
    for (int depth = 0; depth < 7; depth++)
        used += (size_t)sprintf(
            yaml + used, "{\"0123456789012345678901234567890123456789012345678901234567\": ");
    assert_int_equal(read_yaml(yaml, &job, &err), KNEE_INPUT);
    used = (size_t)sprintf(yaml, "workers: [");
    while (used < 8000)
        used += (size_t)sprintf(yaml + used, "%s1048576", yaml[used - 1] == '[' ? "" : ", ");
    sprintf(yaml + used, "]\n");
    assert_int_equal(read_yaml(yaml, &job, &err), KNEE_INPUT);
    assert_string_equal(err.what, "a value is too long");
}

/* Cut anywhere, a job file is read or refused, never half applied. */
TEST(every_prefix_is_read_or_refused)
{
    const char *yaml = "params: 7B\ngpu: h100\nworkers: [1, 2, 4]\nhidden: 70%\n\"mfu\": '0.5'\n";
    for (size_t cut = 0; cut <= strlen(yaml); cut++) {
        struct knee_job job, before;
        knee_job_init(&job);
        before = job;
        if (knee_yaml_read((struct knee_named_text){yaml, cut, "job.yaml"}, &knee_job_keys, &job,
                           sizeof job, NULL))
            assert_memory_equal(&job, &before, sizeof job);
    }
}

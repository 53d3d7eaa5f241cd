/* SPDX-License-Identifier: MIT */
/*
 * The library as a guest in somebody else's program: in threads with little stack, in several at
 * once, under another locale. All of its main calls are made and their answers written down as text
 * and JSON; wherever that happens, the bytes are the same.
 */
#include "out/answer.h"
#include "say/answers.h"
#include "unit.h"

#include "base/number.h"
#include "base/text.h"
#include "knee_logs.h"
#include "knee_out.h"
#include "knee_read.h"
#include "out/answer.h"
#include "say/answers.h"

#include <locale.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sanitizers put their own things on the stack. */
#define STACK_BYTES (UNIT_SANITIZED ? 1 << 20 : 64 << 10)

static void check(knee_status status, const struct knee_err *err, struct knee_text *text)
{
    if (status)
        text->failed = true;
    if (status)
        fprintf(stderr, "%s: %s\n", err->where, err->what);
}

static void *room(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        abort();
    return memory;
}

static char *contents(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    struct stat facts;
    if (!file || fstat(fileno(file), &facts))
        abort();
    char *data = room((size_t)facts.st_size + 1);
    *length = fread(data, 1, (size_t)facts.st_size, file);
    fclose(file);
    return data;
}

static const struct knee_style plain = {.ascii = true, .width = 100};

static void ask_predict(struct knee_text *text)
{
    static const char *const inputs[][2] = {{"params", "7B"},         {"gpu", "h100"},
                                            {"global-batch", "4.5M"}, {"workers", "64..4096x4"},
                                            {"overlap", "0.7"},       {"latency", "5.25us"}};
    struct knee_prediction *prediction = room(sizeof *prediction);
    struct knee_job job;
    struct knee_err err;
    knee_job_init(&job);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        check(knee_keys_set(&knee_job_keys, &job, inputs[i][0], inputs[i][1], KNEE_FLAG, &err),
              &err, text);
    knee_status status = knee_predict(&job, NULL, prediction, &err);
    check(status, &err, text);
    if (!status)
        for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++)
            knee_answer_write(&knee_predict_answer, prediction, (enum knee_format)format, &plain,
                              text);
    knee_prediction_release(prediction);
    free(prediction);
}

static void ask_tax(struct knee_text *text)
{
    static const char *const inputs[][2] = {
        {"model", "llama3-70b"}, {"gpu", "h100"}, {"tp", "8"}, {"pp", "4"}, {"dp", "4"}};
    struct knee_tax_job job;
    struct knee_tax tax;
    struct knee_err err;
    knee_tax_job_init(&job);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        check(knee_keys_set(&knee_tax_keys, &job, inputs[i][0], inputs[i][1], KNEE_FLAG, &err),
              &err, text);
    knee_status status = knee_tax_run(&job, &tax, &err);
    check(status, &err, text);
    if (!status)
        knee_answer_write(&knee_tax_answer, &tax, KNEE_JSON, &plain, text);
}

static void ask_plan(struct knee_text *text)
{
    struct knee_shape shape;
    struct knee_platform platform;
    struct knee_plan plan;
    struct knee_plan_cost cost;
    struct knee_err err;
    struct knee_machine *machine = room(sizeof *machine);
    char number[32];
    knee_shape_init(&shape);
    knee_platform_init(&platform);
    knee_plan_init(&plan);
    check(knee_keys_set(&knee_shape_keys, &shape, "model", "llama3-70b", KNEE_FLAG, &err), &err,
          text);
    check(knee_keys_set(&knee_platform_keys, &platform, "gpu", "h100", KNEE_FLAG, &err), &err,
          text);
    check(knee_shape_complete(&shape, &err), &err, text);
    check(knee_machine_init(&platform, NULL, machine, &err), &err, text);
    plan.gpus = 64;
    plan.global_batch = 256;
    plan.tp = 8;
    plan.pp = 2;
    plan.micro_batch = 1;
    check(knee_plan_complete(&plan, &shape, machine, &err), &err, text);
    if (!text->failed) {
        knee_plan_price(&shape, machine, &plan, &cost);
        knee_number_exact(number, sizeof number, cost.step_s);
        knee_text_puts(text, number);
    }
    free(machine);
}

static void ask_collective(struct knee_text *text)
{
    double sizes[64];
    struct knee_err err;
    struct knee_cluster *cluster = room(sizeof *cluster);
    struct knee_collective *collective = room(sizeof *collective);
    struct knee_collective_query query = {
        .op = KNEE_OP_ALL_REDUCE, .placement = {64, NAN, 1, 1}, .bytes = sizes};
    check(knee_cluster_parse("8xh100:nvlink4 * 16 @ ib400x8/1.5{latency=4.5us}", cluster, &err),
          &err, text);
    check(knee_sizes_parse("4K..8Gx4", "", sizes, 64, &query.size_count, &err), &err, text);
    knee_status status = knee_collective_run(cluster, &query, NULL, collective, &err);
    check(status, &err, text);
    if (!status) {
        knee_answer_write(&knee_collective_answer, collective, KNEE_TEXT, &plain, text);
        knee_answer_write(&knee_collective_answer, collective, KNEE_JSON, &plain, text);
    }
    knee_write_cluster(cluster, text);
    knee_collective_release(collective);
    free(collective);
    free(cluster);
}

static void ask_fit(struct knee_text *text)
{
    size_t length;
    struct knee_err err;
    struct knee_logs logs = {0};
    struct knee_check *found = room(sizeof *found);
    char *log = contents("examples/all_gather_16.log", &length);
    check(knee_logs_read(&logs, log, length, "all_gather_16.log", NULL, &err), &err, text);
    knee_status status = knee_check_logs(&(struct knee_log_view){logs.logs, logs.count, NULL}, NULL,
                                         NULL, found, &err);
    check(status, &err, text);
    if (!status)
        knee_answer_write(&knee_fit_answer, found, KNEE_JSON, &plain, text);
    knee_check_release(found);
    knee_logs_release(&logs);
    free(found);
    free(log);
}

#if KNEE_HAVE_ZLIB || KNEE_HAVE_ISAL
static ptrdiff_t read_file(void *file, void *buffer, size_t size)
{
    return (ptrdiff_t)fread(buffer, 1, size, file);
}

static void ask_trace(struct knee_text *text)
{
    static const char *const files[] = {"examples/straggler/rank0.json.gz",
                                        "examples/straggler/rank1.json.gz"};
    struct knee_trace *traces = room(2 * sizeof *traces);
    struct knee_account account = {0};
    struct knee_diagnosis *diagnosis = room(sizeof *diagnosis);
    struct knee_job job;
    struct knee_err err;
    for (size_t i = 0; i < 2; i++) {
        FILE *file = fopen(files[i], "rb");
        check(knee_trace_read((struct knee_reader){read_file, file}, files[i], NULL, NULL,
                              &traces[i], &err),
              &err, text);
        fclose(file);
    }
    knee_job_init(&job);
    knee_status status = knee_account(traces, 2, NULL, &account, &err);
    check(status, &err, text);
    if (!status)
        check(status = knee_diagnose(&account, &job, NULL, diagnosis, &err), &err, text);
    struct knee_trace_report report = {
        .traces = traces, .trace_count = 2, .account = &account, .diagnosis = diagnosis};
    if (!status)
        for (int format = KNEE_TEXT; format <= KNEE_JSON; format++)
            knee_answer_write(&knee_trace_answer, &report, (enum knee_format)format, &plain, text);
    knee_account_release(&account);
    for (size_t i = 0; i < 2; i++)
        knee_trace_release(&traces[i]);
    free(diagnosis);
    free(traces);
}
#endif

static void ask_yaml(struct knee_text *text)
{
    static const char yaml[] = "params: 1.5B\ngpu: a100\nworkers: 8\noverlap: 0.25\n";
    struct knee_job job;
    struct knee_err err;
    char number[32];
    knee_job_init(&job);
    if (!knee_yaml_read((struct knee_named_text){yaml, strlen(yaml), "x"}, &knee_job_keys, &job,
                        sizeof job, &err)) {
        knee_number_exact(number, sizeof number, job.params);
        knee_text_puts(text, number);
    }
}

static void *ask_all(void *text)
{
    ask_predict(text);
    ask_tax(text);
    ask_plan(text);
    ask_collective(text);
    ask_fit(text);
#if KNEE_HAVE_ZLIB || KNEE_HAVE_ISAL
    ask_trace(text);
#endif
    ask_yaml(text);
    return NULL;
}

static struct knee_text here; /* what the first thread says, in the C locale */

static int ask_here(void **state)
{
    (void)state;
    ask_all(&here);
    return here.failed || here.length < 10000 ? -1 : 0;
}

static int forget(void **state)
{
    (void)state;
    knee_text_release(&here);
    return 0;
}

static void same(struct knee_text *text)
{
    size_t at = 0;
    assert_false(text->failed);
    while (at < text->length && at < here.length && text->data[at] == here.data[at])
        at++;
    if (text->length != here.length || at < here.length)
        fail_msg("from byte %zu: '%.60s', not '%.60s'", at, text->data + at, here.data + at);
    knee_text_release(text);
}

static void in_threads(size_t count, size_t stack_bytes)
{
    pthread_t threads[8];
    struct knee_text texts[8] = {0};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, stack_bytes), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], &attributes, ask_all, &texts[i]), 0);
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < count; i++)
        same(&texts[i]);
    pthread_attr_destroy(&attributes);
}

TEST(a_small_stack_is_enough)
{
    in_threads(1, STACK_BYTES);
}

TEST(several_threads_at_once)
{
    in_threads(4, STACK_BYTES);
}

/* de_DE, made here when the system does not have it; false: it cannot be had. */
static bool german(char *folder)
{
    char command[256];
    if (setlocale(LC_ALL, "de_DE.UTF-8"))
        return true;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1",
             folder, folder);
    if (system(command) == -1)
        return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

TEST(the_locale_changes_nothing)
{
    char folder[] = "/tmp/knee-locale-XXXXXX", command[64], number[32];
    struct knee_text text = {0};
    struct knee_job job = {0};
    struct knee_err err;
    assert_non_null(mkdtemp(folder));
    bool found = german(folder);
    bool comma = found && localeconv()->decimal_point[0] == ',';
    if (comma) {
        snprintf(number, sizeof number, "%g", 0.5);
        comma = strcmp(number, "0,5") == 0; /* what the C library now writes */
        knee_job_init(&job);
        assert_ok(knee_keys_set(&knee_job_keys, &job, "overlap", "0.7", KNEE_FLAG, &err));
        assert_true(job.overlap == 0.7);
        ask_all(&text);
    }
    setlocale(LC_ALL, "C");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    if (!comma) {
        print_message(
            "SKIP: no de_DE.UTF-8 here, and localedef cannot make it: apt-get install locales\n");
        skip();
    }
    same(&text);
}

FIXTURE(ask_here, forget)

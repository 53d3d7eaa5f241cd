/* SPDX-License-Identifier: MIT */
/*
 * Questions by knee.h alone: what is wrong is said as the program says it, what is missing is
 * named, memory may run out at any place, little stacks and two threads give the same bytes. That
 * answers are those of the program is tests/ask.
 */
#include "pushes.h"
#include "unit.h"

#include "knee.h"
#include "knee_plan.h"

#include <pthread.h>

/* Sanitizers put their own things on the stack. */
#define STACK_BYTES (UNIT_SANITIZED ? 1 << 20 : 64 << 10)

static const char log_text[] = "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728\n"
                               "# Rank 0 Group 0 Pid 1 on node1 device 0 [0x19] NVIDIA H100\n"
                               "#  size count type redop root time algbw busbw #wrong\n"
                               "     1048576  262144  float  sum  -1  50.0  20.97  36.70  0\n"
                               "    16777216 4194304  float  sum  -1  150.0 111.85 195.73  0\n";
static const char job_text[] = "params: 7B\ngpu: h100\nglobal-batch: 4M\nworkers: 8..64x2\n";
static const char config_text[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":1024,\"num_hidden_layers\":8,"
    "\"num_attention_heads\":16,\"intermediate_size\":4096,\"vocab_size\":32000}";
static const char runs_text[] =
    "source,model,gpu,gpus,tp,pp,dp,micro_batch,global_batch,seq,step_s\n"
    "a,llama3-8b,h100,8,2,1,4,1,64,4096,9.5\n";
static const char trace_text[] =
    "{\"schemaVersion\":1,\"distributedInfo\":{\"rank\":0,\"world_size\":2},\"traceEvents\":["
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":10,\"dur\":50,"
    "\"args\":{\"stream\":7,\"device\":0}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce_Sum_f32_RING_LL\",\"pid\":"
    "0,"
    "\"tid\":9,\"ts\":20,\"dur\":80,\"args\":{\"stream\":9,\"device\":0}}]}";

/* Two steps of a pipeline of one stage: what knee replay takes for a log of operations. */
static const char ops_text[] =
    "{\"traceEvents\":["
    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":1,"
    "\"args\":{\"name\":\"PP rank 0, TP rank 0, compute\"}},"
    "{\"ph\":\"X\",\"cat\":\"forward-compute\",\"name\":\"f\",\"pid\":0,\"tid\":1,\"ts\":0,"
    "\"dur\":10,\"args\":{\"step\":1,\"model_chunk\":0,\"mb_id\":0,\"seq_id\":0}},"
    "{\"ph\":\"X\",\"cat\":\"backward-compute\",\"name\":\"b\",\"pid\":0,\"tid\":1,\"ts\":10,"
    "\"dur\":20,\"args\":{\"step\":1,\"model_chunk\":0,\"mb_id\":0,\"seq_id\":1}},"
    "{\"ph\":\"X\",\"cat\":\"forward-compute\",\"name\":\"f\",\"pid\":0,\"tid\":1,\"ts\":40,"
    "\"dur\":12,\"args\":{\"step\":2,\"model_chunk\":0,\"mb_id\":0,\"seq_id\":0}},"
    "{\"ph\":\"X\",\"cat\":\"backward-compute\",\"name\":\"b\",\"pid\":0,\"tid\":1,\"ts\":52,"
    "\"dur\":24,\"args\":{\"step\":2,\"model_chunk\":0,\"mb_id\":0,\"seq_id\":1}}]}";

/* A training log of three steps, and a table of runs at other counts. */
static const char train_text[] =
    " iteration 1/ 9 | elapsed time per iteration (ms): 2000.0 | global batch size: 128 | lm loss: "
    "9.0 |\n"
    " iteration 2/ 9 | elapsed time per iteration (ms): 2010.0 | global batch size: 128 | lm loss: "
    "8.0 |\n"
    " iteration 3/ 9 | elapsed time per iteration (ms): 1990.0 | global batch size: 128 | lm loss: "
    "7.0 |\n";
static const char table_text[] = "workers,step_s,global_batch\n32,1.2,128\n64,0.7,128\n,0.6,128\n";

static const char measured_text[] =
    "id,source,gpu,n_gpus,model,precision,global_batch,micro_batch,tp,pp,zero,recompute,overlap,"
    "curve,step_time_s,notes\n"
    "r1,a,h100,8,llama3-8b,bf16,128,1,1,1,fsdp,none,,c1,13.1,torchtitan\n"
    "r2,b,h100,16,llama3-8b,bf16,128,1,1,1,fsdp,none,,c1,6.7,torchtitan\n";

/* Standard error of two ranks: one ran out of memory, the other waits. */
static const char hang_text[] =
    "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4 GiB\n"
    "[rank0]:[E1116 12:00:20.4 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, "
    "Timeout(ms)=9000) ran for 9003 milliseconds before timing out.\n";

static void attach_all(struct knee_ask *ask, knee_status *status)
{
    static const struct {
        const char *name, *data;
    } all[] = {
        {"a.log", log_text},       {"job.yaml", job_text},          {"config.json", config_text},
        {"runs.csv", runs_text},   {"ops.json", ops_text},          {"train.log", train_text},
        {"table.csv", table_text}, {"measured.csv", measured_text}, {"job.err", hang_text}};
    for (size_t i = 0; i < sizeof all / sizeof *all && !*status; i++)
        *status = knee_attach(ask, all[i].name, all[i].data, strlen(all[i].data), NULL);
}

static void push_trace(struct knee_ask *ask, knee_status *status)
{
    size_t from = 0, size = 0;
    if (!*status)
        *status = knee_push_begin(ask, "rank0.json", NULL);
    while (!*status && from < sizeof trace_text - 1) {
        char *room = knee_push_room(ask, &size);
        size = size < 100 ? size : 100;
        size = size < sizeof trace_text - 1 - from ? size : sizeof trace_text - 1 - from;
        if (!room) {
            *status = KNEE_SYSTEM;
            break;
        }
        memcpy(room, trace_text + from, size);
        knee_push_filled(ask, size);
        from += size;
    }
    if (!*status)
        *status = knee_push_end(ask, NULL);
}

static const struct question {
    const char *command, *lines;
} questions[] = {
    {"predict", "params = 7B\n gpu=h100 \n\n# a remark\nglobal-batch = 4M\r\nworkers = 8..64x2"},
    {"options", ""},
    {"hang", "word = job.err"},
#if KNEE_HAVE_YAML
    {"predict", "word = job.yaml\noverlap = 0.5\n"},
#endif
    {"predict", "example"},
    {"tax", "model = llama3-70b\ngpu = h100\ntp = 8\nfsdp = 64\n"},
    {"plan", "model = gpt2\ngpu = h100\ngpus = 8\ntp = 1\npp = 1\n"},
    {"plan", "hf = config.json\ngpu = h100\ngpus = 8\ntp = 2\nperfetto = step.json\n"},
    {"collective", "word = all_reduce\ncluster = dgx-h100\nbytes = 1M,1G\nranks = 16\n"},
    {"collective", "against = a.log\ncluster = dgx-h100\n"},
    {"fit", "word = a.log\ncluster = dgx-h100\noutput = fitted.yaml\n"},
    {"cluster", "word = 8xh100 * 16 @ ib400x8\n"},
    {"trace", "price = 3\n"},
    {"replay", ""},
    {"replay", "scale = gemm=0.5\nperfetto = after.json\n"},
    {"replay", "word = ops.json\n"},
    {"scale", "word = 8=train.log\nmodel = gpt2\ngpu = h100\nruns = runs.csv\n"},
    {"scale", "word = 16=train.log\nword = table.csv\nat = 64,128\n"},
    {"scale", "gpu-util = 35%\ncpu-util = 100%\n"},
    {"diff", "word = train.log\nword = train.log\n"},
    {"list", "word = gpus\n"},
    {"example", NULL},
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

static knee_status ask_one(const struct knee_alloc *alloc, const struct question *question,
                           struct knee_text *answer, struct knee_err *err)
{
    struct knee_ask *ask = knee_ask_begin(alloc);
    knee_status status = ask ? KNEE_OK : KNEE_SYSTEM;
    if (status)
        return status;
    attach_all(ask, &status);
    if (strcmp(question->command, "trace") == 0 ||
        (strcmp(question->command, "replay") == 0 && !strstr(question->lines, "ops.json")))
        push_trace(ask, &status);
    if (!status)
        status = knee_ask(ask, question->command, question->lines, KNEE_JSON, answer, err);
    knee_ask_end(ask);
    return status;
}

TEST(test_answers)
{
    for (size_t i = 0; i < QUESTIONS; i++) {
        OWNED(knee_text) answer = {0};
        struct knee_err err = {0};
        if (ask_one(NULL, &questions[i], &answer, &err))
            fail_msg("%s: %s %s; %s", questions[i].command, err.where, err.what, err.hint);
        assert_true(answer.length > 100);
    }
}

static void refused(const char *command, const char *lines, knee_status want, const char *what,
                    const char *hint)
{
    OWNED(knee_text) answer = {0};
    struct knee_err err = {0};
    assert_int_equal(knee_ask(NULL, command, lines, KNEE_JSON, &answer, &err), want);
    if (!strstr(err.what, what) || !strstr(err.hint, hint))
        fail_msg("%s: says '%s; %s', not '%s; %s'", command, err.what, err.hint, what, hint);
    assert_int_equal(err.status, want);
    assert_int_equal(answer.length, 0);
    knee_text_release(&answer);
    assert_int_equal(knee_ask(NULL, command, lines, KNEE_JSON, &answer, NULL), want);
}

TEST(test_what_is_wrong_is_said)
{
    refused("predcit", "", KNEE_USAGE, "there is no command 'predcit'", "'knee predict'");
    refused("", NULL, KNEE_USAGE, "there is no command", "");
    refused("predict", "bandwith = 1", KNEE_USAGE, "no option --bandwith", "--bandwidth");
    refused("predict", "= 3", KNEE_USAGE, "there is no option", "");
    refused("predict", "params", KNEE_USAGE, "--params needs a value", "");
    refused("predict", "params = 7Q", KNEE_USAGE, "7Q", "");
    refused("tax", "output = x", KNEE_USAGE, "there is no option --output", "");
    refused("tax", "word = x", KNEE_USAGE, "unexpected argument 'x'", "knee tax");
    refused("trace", "mfu = 0.4", KNEE_USAGE, "there is no option --mfu", "");
    refused("predict", "job = mine.yaml", KNEE_INPUT, "nothing is attached", "attach");
    refused("plan", "hf = config.json\ngpu = h100", KNEE_INPUT, "nothing is attached", "attach");
    refused("fit", "word = a.log", KNEE_INPUT, "nothing is attached", "attach");
    refused("validate", "word = runs.csv", KNEE_INPUT, "nothing is attached", "attach");
    refused("trace", "", KNEE_INPUT, "no trace was pushed", "push");
    refused("diff", "word = a\nword = b", KNEE_INPUT, "no trace was pushed", "push");
    refused("replay", "", KNEE_INPUT, "no trace was pushed", "push");
    refused("replay", "word = ops.json", KNEE_INPUT, "no trace was pushed", "push");
    refused("replay", "wires = bf16", KNEE_USAGE, "no option --wires", "--wire");
    refused("diff", "", KNEE_USAGE, "diff compares 2 recordings, 0 given", "");
}

TEST(test_commands_are_listed)
{
    size_t count = 0;
    while (knee_ask_command(count))
        count++;
    assert_true(count >= 12);
    assert_null(knee_ask_command(count + 5));
}

/* What one question made, the next one can name. */
#if KNEE_HAVE_YAML
TEST(test_pulled_is_attached)
{
    struct knee_ask *ask = knee_ask_begin(NULL);
    struct knee_text answer = {0};
    struct knee_err err;
    knee_status status = KNEE_OK;
    attach_all(ask, &status);
    assert_null(knee_pull(ask, "fitted.yaml"));
    assert_ok(knee_ask(ask, "fit", "word=a.log\ncluster=dgx-h100\noutput=fitted.yaml", KNEE_JSON,
                       &answer, &err));
    const struct knee_text *yaml = knee_pull(ask, "fitted.yaml");
    assert_non_null(yaml);
    assert_ok(knee_attach(ask, "fitted.yaml", yaml->data, yaml->length, &err));
    assert_ok(
        knee_ask(ask, "predict", "word=job.yaml\ncluster=fitted.yaml", KNEE_TEXT, &answer, &err));
    knee_text_release(&answer);
    knee_ask_end(ask);
}
#endif

/* A budget that cannot be met: the answer is there, and the status says so. */
TEST(test_gate)
{
    OWNED(knee_text) answer = {0};
    struct knee_err err = {0};
    assert_int_equal(knee_ask(NULL, "plan",
                              "model=gpt2\ngpu=h100\ngpus=8\ntp=1\npp=1\ntokens=1e15\ndeadline=1s",
                              KNEE_JSON, &answer, &err),
                     KNEE_GATE);
    assert_true(answer.length > 100);
    assert_string_equal(err.where, "--deadline");
}

static bool stop_at_once(void *ctx, double share)
{
    *(double *)ctx = share;
    return false;
}

TEST(test_watched_and_stopped)
{
    struct knee_ask *ask = knee_ask_begin(NULL);
    struct knee_text answer = {0};
    struct knee_err err = {0};
    double share = -1;
    knee_ask_watch(ask, stop_at_once, &share);
    assert_ok(knee_ask(ask, "plan", "model=llama3-8b\ngpu=h100\ngpus=8..4096x2", KNEE_JSON, &answer,
                       &err));
    assert_true(share >= 0 && share < 0.5);
    assert_non_null(strstr(answer.data, "knee.plan/"));
    knee_text_release(&answer);
    knee_ask_end(ask);
}

/* Memory runs out at one place after the other: an error each time, nothing lost, and no answer
 * that is not the whole one. */
TEST(test_memory_runs_out)
{
    for (size_t i = 0; i < QUESTIONS; i++) {
        OWNED(knee_text) whole = {0};
        struct knee_err err = {0};
        assert_ok(ask_one(NULL, &questions[i], &whole, &err));
        for (size_t fail_at = 1, done = 0; !done; fail_at += 1 + fail_at / 8) {
            struct failing failing = {.fail_at = fail_at};
            struct knee_alloc alloc = {failing_resize, &failing};
            struct knee_text answer = {.alloc = &alloc};
            knee_status status = ask_one(&alloc, &questions[i], &answer, &err);
            done = failing.calls < fail_at;
            if (status == KNEE_OK) {
                assert_int_equal(answer.length, whole.length);
                assert_memory_equal(answer.data, whole.data, whole.length);
            } else {
                assert_int_equal(status, KNEE_SYSTEM);
            }
            knee_text_release(&answer);
            assert_int_equal(failing.live, 0);
        }
    }
}

/* ---- The same for a job of two ranks, with what the host did ---- */

static const struct question of_a_job[] = {
    {"replay", "bucket = 100KB\n"},
    {"replay", "overlap\nbucket = 100MB\n"},
    {"replay", "wire = powersgd:1\n"},
    {"replay", "even\nno-host-gaps\nloader-ahead\nbatch = 2x\nnetwork = 2x\nworkers = 8\n"},
    {"replay", "wire = bf16\neven\nperfetto = after.json\n"},
    {"trace", "where\n"},
    {"trace", "levers = closed\nprice = 3\nperfetto = all.json\n"},
    {"diff", "word = rank0.json\nword = rank1.json\n"},
    {"plan", "model = gpt2\ngpu = h100\ngpus = 4\ntp = 1\npp = 2\nglobal-batch = 8\nsimulate\n"},
    {"plan",
     "model = gpt2\ngpu = h100\ngpus = 8\ntp = 2\npp = 2\nvp = 2\nglobal-batch = 16\nsimulate\n"},
    {"validate", "word = measured.csv\n"},
};

static char events_of_job[16384]; /* what comes after the opening brace */

static knee_status push_job(struct knee_ask *ask, int rank)
{
    char name[32], text[sizeof events_of_job + 100];
    snprintf(name, sizeof name, "rank%d.json", rank);
    size_t length = (size_t)snprintf(text, sizeof text,
                                     "{\"distributedInfo\": {\"rank\": %d, \"world_size\": 2}, %s",
                                     rank, events_of_job);
    return push_text(ask, name, text, length);
}

static knee_status ask_of_job(const struct knee_alloc *alloc, const struct question *question,
                              enum knee_format format, struct knee_text *answer,
                              struct knee_err *err)
{
    struct knee_ask *ask = knee_ask_begin(alloc);
    knee_status status = ask ? KNEE_OK : KNEE_SYSTEM;
    bool traces =
        question->command[0] == 'r' || question->command[0] == 't' || question->command[0] == 'd';
    if (!status)
        attach_all(ask, &status);
    for (int rank = 0; rank < 2 && !status && traces; rank++)
        status = push_job(ask, rank);
    if (!status)
        status = knee_ask(ask, question->command, question->lines, format, answer, err);
    knee_ask_end(ask);
    return status;
}

static void fail_in_turn(const struct question *question, enum knee_format format)
{
    OWNED(knee_text) whole = {0};
    struct knee_err err = {0};
    if (ask_of_job(NULL, question, format, &whole, &err))
        fail_msg("%s %s: %s %s; %s", question->command, question->lines, err.where, err.what,
                 err.hint);
    for (size_t fail_at = 1, done = 0; !done; fail_at += 1 + fail_at / 12) {
        struct failing failing = {.fail_at = fail_at};
        struct knee_alloc alloc = {failing_resize, &failing};
        struct knee_text answer = {.alloc = &alloc};
        knee_status status = ask_of_job(&alloc, question, format, &answer, &err);
        done = failing.calls < fail_at;
        if (status == KNEE_OK &&
            (answer.length != whole.length || memcmp(answer.data, whole.data, whole.length) != 0))
            fail_msg("%s %s: another answer without allocation %zu", question->command,
                     question->lines, fail_at);
        if (status != KNEE_OK && status != KNEE_SYSTEM)
            fail_msg("%s %s: status %d without allocation %zu", question->command, question->lines,
                     (int)status, fail_at);
        knee_text_release(&answer);
        assert_int_equal(failing.live, 0);
    }
}

TEST(test_memory_runs_out_for_a_job)
{
    snprintf(events_of_job, sizeof events_of_job, "%s", seed_of("replay/ddp.json") + 1);
    for (size_t i = 0; i < sizeof of_a_job / sizeof *of_a_job; i++)
        fail_in_turn(&of_a_job[i], i % 2 ? KNEE_JSON : KNEE_TEXT);
}

static void *ask_everything(void *argument)
{
    struct knee_text *answer = argument;
    struct knee_err err;
    for (size_t i = 0; i < QUESTIONS; i++)
        if (ask_one(NULL, &questions[i], answer, &err))
            answer->failed = true;
    return NULL;
}

TEST(test_two_small_threads)
{
    struct knee_text answers[3] = {{0}, {0}, {0}};
    pthread_attr_t attributes;
    pthread_t threads[2];
    ask_everything(&answers[2]);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], &attributes, ask_everything, &answers[i]), 0);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 3; i++) {
        assert_false(answers[i].failed);
        assert_int_equal(answers[i].length, answers[2].length);
        assert_memory_equal(answers[i].data, answers[2].data, answers[2].length);
    }
    for (size_t i = 0; i < 3; i++)
        knee_text_release(&answers[i]);
    pthread_attr_destroy(&attributes);
}

/* ---- A plan as a framework's own words, read back by the importers ---- */

/* The best plan of the answer to these lines, as JSON; free it with knee_text_release(). */
static void best_plan(struct knee_ask *ask, const char *lines, struct knee_text *answer)
{
    struct knee_err err = {0};
    if (knee_ask(ask, "plan", lines, KNEE_CSV, answer, &err))
        fail_msg("%s: %s; %s", lines, err.what, err.hint);
    char *second = strchr(answer->data, '\n') + 1;
    char *end = second;
    for (int column = 0; column < 21; column++) /* up to memory: E(K) is of all counts */
        end = strchr(end, ',') + 1;
    *end = '\0';
    memmove(answer->data, second, strlen(second) + 1);
}

TEST(test_emitted_plans_are_read_back)
{
    static const char *const models[] = {"gpt3-175b", "llama2-7b", "llama3-8b", "llama3-70b",
                                         "mixtral-8x7b"};
    /* the framework, and what it can be told */
    static const struct {
        const char *name, *only, *again; /* again: what its words do not say */
    } frameworks[] = {
        {"megatron", "schedule=interleaved\nrecompute=selective\nshard=zero1\n", ""},
        {"megatron", "pp=1\ncp=2\nrecompute=full\nshard=zero3\nshard-size=8\n", ""},
        {"megatron", "recompute=none\nshard=zero2\npp=1\noffload=optimizer\n", ""},
        {"deepspeed", "framework=deepspeed\nrecompute=full\n",
         "framework=deepspeed\nrecompute=full\n"},
        {"deepspeed", "framework=deepspeed\nshard=zero3\nshard-size=8\nrecompute=full\n",
         "framework=deepspeed\nrecompute=full\n"},
        {"nemo", "schedule=interleaved\nrecompute=selective\nshard=zero1\n", ""},
        {"nemo", "pp=1\ncp=2\nrecompute=full\nshard=zero3\nshard-size=8\n", ""},
        {"nemo", "framework=nemo\nprecision=fp8\n", "framework=nemo\n"},
        {"nemo", "recompute=none\nshard=zero2\npp=1\noffload=optimizer\n", ""},
        {"torchtitan", "framework=torchtitan\n", "framework=torchtitan\n"},
        {"torchtitan", "framework=torchtitan\nschedule=interleaved\nrecompute=full\n",
         "framework=torchtitan\n"},
        {"torchtitan", "framework=torchtitan\npp=4\nschedule=1f1b\nrecompute=op\n",
         "framework=torchtitan\n"},
        {"torchtitan", "framework=torchtitan\npp=1\ncp=2\nshard=zero2\nprecision=fp8-rowwise\n",
         "framework=torchtitan\n"},
        {"torchtitan", "framework=torchtitan\npp=2\nschedule=gpipe\nrecompute=full\n",
         "framework=torchtitan\n"},
        {"torchtitan", "framework=torchtitan\nshard=zero3\nshard-size=8\n",
         "framework=torchtitan\n"},
    };
    for (size_t m = 0; m < UNIT_SOME(sizeof models / sizeof *models); m++)
        for (size_t f = 0; f < sizeof frameworks / sizeof *frameworks; f++) {
            struct knee_ask *ask = knee_ask_begin(NULL);
            struct knee_text plan = {0}, emitted = {0}, again = {0};
            struct knee_err err = {0};
            char lines[512];
            snprintf(lines, sizeof lines, "model=%s\ngpu=h200\ngpus=128\ntop=1\n%s", models[m],
                     frameworks[f].only);
            best_plan(ask, lines, &plan);
            snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "emit=%s\n",
                     frameworks[f].name);
            assert_ok(knee_ask(ask, "plan", lines, KNEE_TEXT, &emitted, &err));
            assert_ok(knee_attach(ask, "emitted", emitted.data, emitted.length, &err));
            snprintf(lines, sizeof lines, "model=%s\ngpu=h200\ngpus=128\ntop=1\n%s=emitted\n%s",
                     models[m], frameworks[f].name, frameworks[f].again);
            best_plan(ask, lines, &again);
            assert_string_equal(plan.data, again.data);
            knee_text_release(&plan);
            knee_text_release(&emitted);
            knee_text_release(&again);
            knee_ask_end(ask);
        }
}

/* ---- Frameworks, GPUs that stay idle, the smallest count ---- */

/* Columns of the first row of the CSV answer to these lines; NaN where nothing fits. */
static double column_of(const struct knee_text *csv, const char *column)
{
    char *head = csv->data, *row = strchr(csv->data, '\n') + 1;
    while (*row && strncmp(head, column, strlen(column)) != 0) {
        head = strchr(head, ',') + 1;
        row = strchr(row, ',') + 1;
    }
    return *row ? strtod(row, NULL) : NAN;
}

static void first_row(const char *lines, const char *const *columns, double *values, size_t count)
{
    struct knee_ask *ask = knee_ask_begin(NULL);
    struct knee_text csv = {0};
    struct knee_err err = {0};
    knee_status status = knee_ask(ask, "plan", lines, KNEE_CSV, &csv, &err);
    if (status && status != KNEE_GATE)
        fail_msg("%s: %s; %s", lines, err.what, err.hint);
    for (size_t i = 0; i < count; i++)
        values[i] = column_of(&csv, columns[i]);
    knee_text_release(&csv);
    knee_ask_end(ask);
}

static double best_step_s(const char *lines)
{
    double step_s;
    first_row(lines, (const char *const[]){"step_s"}, &step_s, 1);
    return step_s;
}

/* What a framework is searched for can be written down for it, and is never quicker than the best
 * of all plans as the same software. */
TEST(test_frameworks_do_what_they_can)
{
    static const char *const frameworks[] = {"megatron", "deepspeed", "torchtitan", "nemo"};
    static const char *const models[] = {"llama3-8b", "mixtral-8x7b", "llama3-70b", "gpt2-xl"};
    static const int counts[] = {8, 24, 256};
    double best = NAN; /* of a model and a count: the same for all four frameworks */
    for (size_t i = 0; i < UNIT_SOME(4 * 4 * 3); i++) {
        struct knee_ask *ask = knee_ask_begin(NULL);
        struct knee_text emitted = {0};
        struct knee_err err = {0};
        const char *framework = frameworks[i % 4];
        char lines[256], free_lines[256];
        snprintf(lines, sizeof lines, "model=%s\ngpu=h100\ngpus=%d\nprofile=nemo\nframework=%s\n",
                 models[i / 4 % 4], counts[i / 16], framework);
        snprintf(free_lines, sizeof free_lines,
                 "model=%s\ngpu=h100\ngpus=%d\nprofile=nemo\nframework=any\n", models[i / 4 % 4],
                 counts[i / 16]);
        double own = best_step_s(lines);
        if (i % 4 == 0)
            best = best_step_s(free_lines);
        if (!isnan(own))
            assert_true(own >= best * (1 - 1e-12));
        strcat(lines, "emit=");
        strcat(lines, framework);
        knee_status status = knee_ask(ask, "plan", lines, KNEE_TEXT, &emitted, &err);
        if (status != (isnan(own) ? KNEE_GATE : KNEE_OK))
            fail_msg("%s: %s; %s", lines, err.what, err.hint);
        knee_text_release(&emitted);
        knee_ask_end(ask);
    }
}

/* A GPU more never gives less; those that are too many stay idle and are not part of the plan. */
TEST(test_too_many_gpus_stay_idle)
{
    static const int counts[] = {24, 25, 26, 31, 96, 97, 100, 127};
    double before = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char lines[128];
        snprintf(lines, sizeof lines, "model=llama3-8b\ngpu=h100\ngpus=%d\n", counts[i]);
        double of[6];
        first_row(lines, (const char *const[]){"tokens_per_s", "gpus", "tp", "pp", "cp", "dp"}, of,
                  6);
        assert_true(of[0] >= before);
        assert_near(of[1], counts[i], 0);
        assert_true(of[2] * of[3] * of[4] * of[5] <= of[1]);
        before = of[0];
    }
}

/* Nothing fits: a failed gate, and the smallest count that does is said; on it something fits, on
 * the round count before it nothing does. */
TEST(test_what_does_not_fit)
{
    struct knee_ask *ask = knee_ask_begin(NULL);
    struct knee_text answer = {0};
    struct knee_err err = {0};
    assert_int_equal(
        knee_ask(ask, "plan", "model=llama3-405b\ngpu=h100\ngpus=8\n", KNEE_JSON, &answer, &err),
        KNEE_GATE);
    const char *key = "\"smallest_gpus\": ", *at = strstr(answer.data, key);
    assert_non_null(at);
    int smallest = atoi(at + strlen(key));
    assert_true(smallest > 8);
    size_t i = 0;
    while (knee_plan_round_count(i) < smallest)
        i++;
    assert_near(knee_plan_round_count(i), smallest, 0);
    for (int less = 0; less < 2; less++) {
        char lines[128];
        snprintf(lines, sizeof lines, "model=llama3-405b\ngpu=h100\ngpus=%.0f\n",
                 knee_plan_round_count(i - (size_t)less));
        assert_int_equal(isnan(best_step_s(lines)), less);
    }
    knee_text_release(&answer);
    knee_ask_end(ask);
}

/* SPDX-License-Identifier: MIT */
/*
 * Questions and what each is answered: lists, traces with files beside them, curves from logs and
 * tables, and everything that is not as it should be, with the words that say so. Each is asked in
 * all formats, and while memory runs out.
 */
#include "pushes.h"
#include "shown.h"

#include "knee.h"

/* ---- What is attached ---- */

#define ROW(step, ms, batch, loss)                                                                 \
    " iteration " step "/ 9 | elapsed time per iteration (ms): " ms " | global batch size: " batch \
    " | lm loss: " loss " |\n"

static const char log_128[] = ROW("1", "2000.0", "128", "9.0") ROW("2", "2010.0", "128", "8.0")
    ROW("3", "1990.0", "128", "7.5") ROW("4", "2000.0", "128", "7.2");
static const char log_256[] = ROW("1", "2500.0", "256", "8.5") ROW("2", "2510.0", "256", "7.6")
    ROW("3", "2490.0", "256", "7.1") ROW("4", "2500.0", "256", "6.9");
static const char loss_only[] = "{'loss': 9.0, 'step': 1}\n{'loss': 8.0, 'step': 2}\n"
                                "{'loss': 7.0, 'step': 3}\n";
static const char table[] =
    "workers,step_s,global_batch,curve\n32,1.2,128,a\n64,0.7,128,a\n,9,1,a\n";
static const char two_curves[] = "workers,step_s,curve\n8,2,a\n16,1.1,b\n";
static const char plain_trace[] =
    "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,"
    "\"ts\":10,\"dur\":50,\"args\":{\"stream\":7,\"device\":0}}]}";
static const char idle_trace[] =
    "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"add\",\"pid\":1,\"tid\":1,"
    "\"ts\":10,\"dur\":50,\"args\":{}}]}";
static const char nccl_log[] = "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728\n"
                               "# Rank 0 Group 0 Pid 1 on node1 device 0 [0x19] NVIDIA H100\n"
                               "#  size count type redop root time algbw busbw #wrong\n"
                               "     1048576  262144  float  sum  -1  50.0  20.97  36.70  0\n"
                               "    16777216 4194304  float  sum  -1  150.0 111.85 195.73  0\n";
static const char runs[] =
    "id,source,gpu,n_gpus,model,precision,global_batch,micro_batch,tp,pp,zero,recompute,overlap,"
    "curve,step_time_s,notes\n"
    "r1,a,h100,8,llama3-8b,bf16,128,1,1,1,fsdp,none,,c1,13.1,torchtitan\n"
    "r2,b,h100,16,llama3-8b,bf16,128,1,1,1,fsdp,none,,c1,6.7,torchtitan\n";

static const struct {
    const char *name, *data;
} files[] = {
    {"a.log", log_128},
    {"b.log", log_256},
    {"loss.log", loss_only},
    {"table.csv", table},
    {"two.csv", two_curves},
    {"plain.json", plain_trace},
    {"idle.json", idle_trace},
    {"nccl.log", nccl_log},
    {"index.csv", "file,hardware\nnccl.log,dgx-h100\n"},
    {"noindex.csv", "a,b\n1,2\n"},
    {"runs.csv", runs},
    {"noise.csv", "Batch,norm\n# a remark\n\n32,0.09\n64 ; 0.06\n128\t0.05\n"},
    {"one.csv", "32,0.09\n32,0.08\n"},
    {"rising.csv", "32,0.05\n64,0.06\n"},
    {"words.csv", "32,0.05\n64,x\n"},
    {"minus.csv", "-32,0.05\n"},
    {"nothing.csv", "-\n"},
    {"zero.csv", "32,0\n"},
    {"empty.log", ""},
};

/* The traces of a job of two ranks; `world` tells runs apart. */
static char events[16384];

static knee_status push(struct knee_ask *ask, const char *name, int rank, int world)
{
    char text[sizeof events + 100];
    size_t length = (size_t)snprintf(text, sizeof text,
                                     "{\"distributedInfo\": {\"rank\": %d, "
                                     "\"world_size\": %d}, %s",
                                     rank, world, events);
    return push_text(ask, name, text, length);
}

enum pushed { NONE, JOB, RUNS, TWICE }; /* twice: rank 1 again, under another name */

static struct knee_ask *begin(const struct knee_alloc *alloc, enum pushed pushed,
                              knee_status *status)
{
    struct knee_ask *ask = knee_ask_begin(alloc);
    *status = ask ? KNEE_OK : KNEE_SYSTEM;
    for (size_t i = 0; i < sizeof files / sizeof *files && !*status; i++)
        *status = knee_attach(ask, files[i].name, files[i].data, strlen(files[i].data), NULL);
    if (!*status && pushed != NONE)
        *status = push(ask, "job/rank0.json", 0, 2);
    if (!*status && pushed != NONE)
        *status = push(ask, "job/rank1.json", 1, 2);
    for (int rank = 0; rank < 4 && !*status && pushed == RUNS; rank++)
        *status = push(ask, rank % 2 ? "more/rank1.json" : "more/rank0.json", rank, 4);
    if (!*status && pushed == TWICE)
        *status = push(ask, "job/copy1.json", 1, 2);
    return ask;
}

/* ---- Questions ---- */

#define GPT2 "model=gpt2\ngpu=h100\ngpus=8\ntp=1\npp=1\ncp=1\nmicro-batch=1\nrecompute=none\n"

static const struct question {
    const char *command, *lines;
    enum pushed pushed;
    knee_status status;
    const char *says; /* the answer as JSON, or the error's words */
} questions[] = {
    {"list", "", NONE, KNEE_OK, "h100"},
    {"list", "word = links", NONE, KNEE_OK, "ib400"},
    {"list", "word = transports", NONE, KNEE_OK, "wire"},
    {"list", "word = clusters", NONE, KNEE_OK, "dgx-h100"},
    {"list", "word = models", NONE, KNEE_OK, "llama3-8b"},
    {"list", "word = algorithms", NONE, KNEE_OK, "sparse-gather"},
    {"list", "word = collectives", NONE, KNEE_OK, "all_to_all"},
    {"list", "word = shapes", NONE, KNEE_OK, "qwen3-30b-a3b"},
    {"list", "word = profiles", NONE, KNEE_OK, "megatron-core"},
    {"list", "word = gpsu", NONE, KNEE_USAGE, "no list 'gpsu'"},

    {"trace", "noise = noise.csv\nglobal-batch = 64", JOB, KNEE_OK, "knee.trace/"},
    {"trace", "noise = one.csv", JOB, KNEE_INPUT, "fewer than two batch sizes"},
    {"trace", "noise = rising.csv", JOB, KNEE_INPUT, "the norms do not fall with the batch"},
    {"trace", "noise = words.csv", JOB, KNEE_INPUT, "not a batch and a squared norm"},
    {"trace", "noise = minus.csv", JOB, KNEE_INPUT, "not a batch and a squared norm"},
    {"trace", "noise = nothing.csv", JOB, KNEE_INPUT, "not a batch and a squared norm"},
    {"trace", "noise = zero.csv", JOB, KNEE_INPUT, "not a batch and a squared norm"},
    {"trace", "noise = no.csv", JOB, KNEE_INPUT, "nothing is attached"},
    {"trace", "names", JOB, KNEE_OK, "knee.names/1"},
    {"trace", "max-ratio = 0", JOB, KNEE_GATE, "R = "},
    {"trace", "min-overlap = 1", JOB, KNEE_GATE, "overlap "},
    {"trace", "max-ratio = 1e6\nmin-overlap = 0\nstrict", JOB, KNEE_OK, "knee.trace/"},
    {"trace", "cluster = dgx-h100\nlevers = replay", JOB, KNEE_OK, "dgx-h100"},
    {"trace", "", RUNS, KNEE_OK, "knee.runs/1"},
    {"trace", "max-ratio = 0", RUNS, KNEE_GATE, "R = "},
    {"trace", "strict", RUNS, KNEE_OK, "knee.runs/1"},
    {"trace", "names", RUNS, KNEE_INPUT, "these are traces of 2 runs"},
    {"trace", "word = more/", RUNS, KNEE_OK, "knee.trace/"},
    {"trace", "word = mor", RUNS, KNEE_INPUT, "no trace was pushed under this name"},

    {"trace", "", TWICE, KNEE_OK, "knee.trace/"},
    {"trace", "strict", TWICE, KNEE_INPUT, "some of the input was not used"},
    {"trace", "perfetto = all.json", RUNS, KNEE_INPUT, "these are traces of 2 runs"},
    {"trace", "patterns = noise.csv", JOB, KNEE_USAGE, ""},
    {"trace", "levers = best", JOB, KNEE_USAGE, "best"},

    {"replay", "", RUNS, KNEE_INPUT, "these are traces of 2 runs"},
    {"replay", "word = job", RUNS, KNEE_OK, "knee.replay/"},
    {"replay", "without = 1", JOB, KNEE_OK, "without"},
    {"replay", "without = 7", JOB, KNEE_OK, "is not recorded"},
    {"replay", "without = 0,1", JOB, KNEE_OK, "no rank would be left"},
    {"replay", "cluster = dgx-h100", JOB, KNEE_OK, "cluster"},
    {"replay", "cluster = dgx-x100", JOB, KNEE_USAGE, "dgx-x100"},
    {"replay", "word = empty.log", NONE, KNEE_INPUT, ""},
    {"replay", "word = plain.json", NONE, KNEE_INPUT, ""},

    {"diff", "word = job\nword = more", RUNS, KNEE_OK, "knee.diff/1"},
    {"diff", "word = job\nword = job\nmax-slower = 0.1", RUNS, KNEE_OK, "knee.diff/1"},
    {"diff", "word = a.log\nword = b.log\nmax-slower = 0.1", NONE, KNEE_OK, "knee.diff-logs/1"},
    {"diff", "word = b.log\nword = a.log", NONE, KNEE_OK, "knee.diff-logs/1"},
    {"diff", "word = b.log\nword = a.log\nmax-slower = 0.1", NONE, KNEE_GATE, "longer"},
    {"diff", "word = job\nword = no", RUNS, KNEE_INPUT, "no trace was pushed under this name"},
    {"diff", "word = a.log\nword = loss.log", NONE, KNEE_INPUT, ""},
    {"diff", "word = a.log\nword = empty.log", NONE, KNEE_INPUT, ""},

    {"scale", "", NONE, KNEE_USAGE, "which logs?"},
    {"scale", "word = 8=a.log\nword = 16=b.log\nat = 32,64", NONE, KNEE_OK, "knee.scale/1"},
    {"scale", "word = 8=a.log\nword = 16=b.log\nat = 1..1000", NONE, KNEE_USAGE, "more than"},
    {"scale", "word = a.log", NONE, KNEE_OK, "give the GPU count"},
    {"scale", "word = empty.log\nword = nothing.log", NONE, KNEE_INPUT,
     "none of the 2 files can be used"},
    {"scale", "word = 8=a.log\nword = empty.log\nstrict", NONE, KNEE_INPUT, "1 files or rows were"},
    {"scale", "word = 8=a.log\nword = loss.log", NONE, KNEE_OK, "nothing says how long a step"},
    {"scale", "word = table.csv\nstrict", NONE, KNEE_INPUT, "1 files or rows were refused"},
    {"scale", "word = table.csv\ngpu = h100\ntokens = 1T", NONE, KNEE_OK, "knee.scale/1"},
    {"scale", "word = two.csv", NONE, KNEE_INPUT, "curve"},
    {"scale", "word = two.csv\ncurve = b", NONE, KNEE_OK, "knee.scale/1"},
    {"scale", "word = 8=a.log\nruns = out.csv", NONE, KNEE_INPUT, "no run whose GPU and shape"},
    {"scale", "word = 8=plain.json", NONE, KNEE_OK, "plain.json"},
    {"scale", "word = 8=idle.json", NONE, KNEE_INPUT, ""},
    {"scale", "word = 2=job\nword = 4=more", RUNS, KNEE_OK, "knee.scale/1"},
    {"scale", "word = job", RUNS, KNEE_OK, "knee.scale/1"},
    {"scale", "word = table.csv\ntolerance = 0.7\nat-batch = 256", NONE, KNEE_OK, "knee.scale/1"},
    {"scale", "word = table.csv\ngpu = h100\nmodel = gpt2\nruns = out.csv", NONE, KNEE_OK,
     "table.csv"},
    {"scale", "cpu-util = 100%", NONE, KNEE_OK, "knee.scale/1"},
    {"scale", "late-rank = 3", NONE, KNEE_OK, "straggler"},
    {"scale", "flops-achieved = 20%", NONE, KNEE_OK, "knee.scale/1"},
    {"scale", "loss-behind", NONE, KNEE_OK, "knee.scale/1"},

    {"fit", "word = nccl.log\nindex = index.csv", NONE, KNEE_OK, "knee.fit/"},
    {"fit", "word = nccl.log\nindex = noindex.csv", NONE, KNEE_INPUT, "not an index"},
    {"fit", "word = nccl.log\nword = a.log", NONE, KNEE_OK, "1 log, 2 rows used"},
    {"fit", "word = nccl.log\nword = a.log\nstrict", NONE, KNEE_INPUT, ""},
    {"fit", "word = nccl.log\ncheck", NONE, KNEE_OK, "knee.fit/"},
    {"fit", "word = nccl.log\ncollective = all_gather\nranks = 16\nnodes = 2", NONE, KNEE_OK, ""},
    {"fit", "", NONE, KNEE_USAGE, "no logs are given"},
    {"plan", GPT2 "emit = megatron", NONE, KNEE_OK, "--num-layers 12"},
    {"plan", GPT2 "emit = nemo\nprecision = fp8", NONE, KNEE_OK, "fp8"},
    {"plan", GPT2 "emit = torchtitan\nframework = torchtitan", NONE, KNEE_OK, "training"},
    {"plan", GPT2 "emit = deepspeed\nframework = deepspeed\nprecision = fp16", NONE, KNEE_OK,
     "fp16"},
    {"plan", GPT2 "emit = megatrn", NONE, KNEE_USAGE, "megatrn"},
    {"plan", GPT2 "framework = megatron\ntokens = 1T", NONE, KNEE_OK, "megatron"},
    {"plan", GPT2 "ops", NONE, KNEE_OK, "knee.ops/1"},
    {"plan", "model=mixtral-8x7b\ngpu=h100\ngpus=64\ntp=8\npp=1\ncp=1\nmicro-batch=1\nops", NONE,
     KNEE_OK, "experts"},
    {"plan", GPT2 "tokens = 1T\nbudget = 1", NONE, KNEE_GATE,
     "no GPU count that was tried meets it"},
    {"plan", GPT2 "tokens = 1T\nbudget = 1\ndeadline = 1h", NONE, KNEE_GATE, ""},
    {"plan", GPT2 "tokens = 1T\ndeadline = 10000d\nbudget = 1e9", NONE, KNEE_OK, "knee.plan/"},
    {"plan", "megatron = no.sh\ngpu = h100", NONE, KNEE_INPUT, "nothing is attached"},
    {"plan", "nemo = no.yaml\ngpu = h100", NONE, KNEE_INPUT, "nothing is attached"},
    {"plan", "deepspeed = no.json\ngpu = h100", NONE, KNEE_INPUT, "nothing is attached"},
    {"plan", "model=gpt2\ngpu=h100\ngpus=1..9999", NONE, KNEE_USAGE, ""},
    {"plan", GPT2 "tolerance = 0.7\nglobal-batch = 7\nglobal-tokens = 9M", NONE, KNEE_USAGE, ""},
    {"predict", "example\nparams = 7B", NONE, KNEE_OK, "knee.predict/"},
    {"plan", GPT2 "budget = 1", NONE, KNEE_USAGE, ""},
    {"plan", "model=llama3-70b\ngpu=h100\ngpus=1..64x8\ntp=1\npp=1\ncp=1\nmicro-batch=1", NONE,
     KNEE_OK, "knee.plan/"},
    {"plan", "model=llama3-70b\ngpu=h100\ngpus=1\ntp=1\npp=1\ncp=1\nmicro-batch=1", NONE, KNEE_GATE,
     ""},
    {"plan",
     "model=deepseek-v3\ngpu=h100\ngpus=256\ntp=1\npp=8\nep=32\ncp=1\nmicro-batch=1\n"
     "schedule=1f1b\nemit=megatron",
     NONE, KNEE_OK, "--decoder-last-pipeline-num-layers 5"},
    {"predict",
     "params=7B\ngpu=h100\nglobal-batch=4M\nsolve=bandwidth\nfor=efficiency=0.9\n"
     "workers=4096",
     NONE, KNEE_OK, "knee.predict/"},
    {"predict", "params=7B\ngpu=h100\nlocal-batch=4\nworkers=2", NONE, KNEE_OK, "weak"},
    {"predict", "params=7B\ngpu=h100\nlocal-batch=4\nworkers=1", NONE, KNEE_GATE, "does not fit"},
    {"tax", "layers=12\nhidden=768\nbandwidth=10GB/s\npeak=100TFLOP/s\ntp=16\npp=2", NONE,
     KNEE_USAGE, ""},
    {"tax", "model=llama3-8b\ngpu=h100\ntp=16\nfsdp=4\nbytes-per-value=4", NONE, KNEE_OK,
     "knee.tax/"},
    {"tax", "model=llama3-8b\ngpu=h100\ntp=3", NONE, KNEE_USAGE, "tp does not divide the heads"},
    {"collective", "word=all_reduce\ncluster=dgx-h100\nbytes=8..1Gx8\nranks=64\nsharp", NONE,
     KNEE_OK, "knee.collective/"},
    {"collective", "against=nccl.log", NONE, KNEE_OK, "knee.collective/"},
    {"validate", "word = runs.csv\ntolerance = 0.7", NONE, KNEE_OK, "knee.validate/"},
    {"validate", "word = runs.csv\ncross-validate", NONE, KNEE_OK, "held_out"},
    {"validate", "word = runs.csv\ncalibrate = rates.yaml", NONE, KNEE_OK, "knee.validate/"},
    {"validate", "word = a.log\ngpu = h100", NONE, KNEE_INPUT, ""},
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

static knee_status ask_one(const struct question *q, const struct knee_alloc *alloc,
                           enum knee_format format, struct knee_text *answer, struct knee_err *err)
{
    knee_status status;
    struct knee_ask *ask = begin(alloc, q->pushed, &status);
    if (!status)
        status = knee_ask(ask, q->command, q->lines, format, answer, err);
    knee_ask_end(ask);
    return status;
}

TEST(questions_are_answered)
{
    for (size_t i = 0; i < QUESTIONS; i++) {
        const struct question *q = &questions[i];
        for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++) {
            OWNED(knee_text) answer = {0};
            struct knee_err err = {0};
            bool json = format == KNEE_JSON;
            knee_status status = ask_one(q, NULL, (enum knee_format)format, &answer, &err);
            if (status != q->status)
                fail_msg("%s %s: status %d, not %d: %s; %s", q->command, q->lines, (int)status,
                         (int)q->status, err.what, err.hint);
            bool said = strstr(status ? err.what : answer.data, q->says) != NULL;
            if (!said && (status || format == KNEE_JSON))
                fail_msg("%s %s: says '%s; %s': %s", q->command, q->lines, err.what, err.hint,
                         answer.data ? answer.data : "");
            if (status && status != KNEE_GATE && !err.what[0])
                fail_msg("%s %s: not a word", q->command, q->lines);
            const char *end = json && answer.length ? json_value(answer.data) : "";
            if (!end || *end)
                fail_msg("%s %s: not JSON: %s", q->command, q->lines, answer.data);
        }
    }
}

/* The same answer, or none at all and the system's fault; nothing is left behind. */
TEST(memory_may_run_out)
{
    for (size_t i = 0; i < QUESTIONS; i++) {
        const struct question *q = &questions[i];
        enum knee_format format = (enum knee_format)(i % 4);
        OWNED(knee_text) whole = {0};
        struct knee_err err = {0};
        ask_one(q, NULL, format, &whole, &err);
        for (size_t fail_at = 1, more = 1; more;
             fail_at += 1 + fail_at / (UNIT_SANITIZED ? 4 : 64)) {
            struct failing f = {.fail_at = fail_at};
            struct knee_alloc alloc = {failing_resize, &f};
            struct knee_text answer = {.alloc = &alloc};
            knee_status status = ask_one(q, &alloc, format, &answer, &err);
            more = f.calls >= fail_at;
            if (status != q->status && status != KNEE_SYSTEM)
                fail_msg("%s %s: status %d without allocation %zu: %s", q->command, q->lines,
                         (int)status, fail_at, err.what);
            if (status == q->status && answer.length != whole.length)
                fail_msg("%s %s: another answer without allocation %zu", q->command, q->lines,
                         fail_at);
            knee_text_release(&answer);
            assert_int_equal(f.live, 0);
        }
    }
}

/* ---- Names of communication ---- */

TEST(patterns_are_checked)
{
    static char many[257 * 10];
    const struct {
        const char *text, *what, *hint;
    } cases[] = {
        {"# a remark\n\ngemm comm all_reduce\nrelu compute\nx fused\ny copy\n", "", ""},
        {"gemm kom\n", "'kom' is not a kind of work", "write WORD and"},
        {"gemm\n", "'' is not a kind of work", "write WORD and"},
        {"gemm comm all_redcue\n", "there is no collective 'all_redcue'", "mean 'all_reduce'?"},
        {"gemm comm qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq\n",
         "there is no collective 'qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq'", "or leave it out"},
        {"gemm qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq\n",
         "'qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq' is not a kind of work", ""},
        {many, "more than 256 patterns", ""},
    };
    for (size_t i = 0; i < 257; i++)
        memcpy(many + 10 * i, "gemm comm\n", 10);
    many[sizeof many - 1] = '\0';
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_err err = {0};
        struct knee_ask *ask = knee_ask_begin(NULL);
        assert_ok(knee_attach(ask, "p", cases[i].text, strlen(cases[i].text), &err));
        knee_status status = knee_push_patterns(ask, "p", &err);
        assert_int_equal(status, cases[i].what[0] ? KNEE_INPUT : KNEE_OK);
        if (strcmp(err.what, cases[i].what) != 0 || !strstr(err.hint, cases[i].hint))
            fail_msg("says '%s; %s', not '%s'", err.what, err.hint, cases[i].what);
        assert_ok(knee_push_patterns(ask, NULL, &err));
        assert_int_equal(knee_push_patterns(ask, "none", &err), KNEE_INPUT);
        knee_ask_end(ask);
    }
}

/* Bytes without a beginning go nowhere. */
TEST(what_was_not_begun_cannot_end)
{
    struct knee_ask *ask = knee_ask_begin(NULL);
    struct knee_err err = {0};
    size_t size = 7;
    assert_null(knee_push_room(ask, &size));
    assert_int_equal(size, 0);
    knee_push_filled(ask, 0);
    assert_int_equal(knee_push_end(ask, &err), KNEE_USAGE);
    assert_string_equal(err.what, "no trace was begun");
    knee_ask_end(ask);
}

/* Beside a trace with GPU work, files without any and repeated ones are named and not judged. */
TEST(files_that_say_nothing_are_named)
{
    struct knee_ask *ask = knee_ask_begin(NULL);
    struct knee_text answer = {0};
    struct knee_err err = {0};
    assert_ok(push_text(ask, "a.json", plain_trace, strlen(plain_trace)));
    assert_ok(push_text(ask, "idle.json", idle_trace, strlen(idle_trace)));
    assert_ok(push_text(ask, "again.json", plain_trace, strlen(plain_trace)));
    assert_ok(knee_ask(ask, "trace", NULL, KNEE_JSON, &answer, &err));
    assert_non_null(strstr(answer.data, "knee.trace/"));
    const char *refused = strstr(answer.data, "\"refused\"");
    assert_non_null(refused);
    assert_non_null(strstr(refused, "idle.json"));
    assert_non_null(strstr(refused, "again.json"));
    assert_null(strstr(refused, "\"a.json\""));
    knee_text_release(&answer);
    assert_int_equal(knee_ask(ask, "trace", "strict\n", KNEE_JSON, &answer, &err), KNEE_INPUT);
    knee_text_release(&answer);
    knee_ask_end(ask);
}

/* A job without GPUs is pushed twice under one name, and is then there once. */
TEST(a_job_of_hosts_is_read_again)
{
    static const char hosts[] =
        "{\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":10,"
        "\"dur\":50},"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"gloo:all_reduce\",\"pid\":1,\"tid\":"
        "2,"
        "\"ts\":70,\"dur\":20}]}";
    struct knee_ask *ask = knee_ask_begin(NULL);
    struct knee_text answer = {0};
    struct knee_err err = {0};
    assert_false(knee_push_again(ask));
    assert_ok(push_text(ask, "plain.json", plain_trace, strlen(plain_trace)));
    assert_false(knee_push_again(ask));
    knee_push_clear(ask);
    assert_ok(push_text(ask, "hosts.json", hosts, strlen(hosts)));
    assert_true(knee_push_again(ask));
    assert_ok(push_text(ask, "hosts.json", hosts, strlen(hosts)));
    assert_false(knee_push_again(ask));
    assert_ok(knee_ask(ask, "trace", NULL, KNEE_JSON, &answer, &err));
    assert_non_null(strstr(answer.data, "\"format\": \"cpu\""));
    knee_text_release(&answer);
    knee_ask_end(ask);
}

static int read_events(void **state)
{
    (void)state;
    snprintf(events, sizeof events, "%s", seed_of("replay/ddp.json") + 1);
    return 0;
}

FIXTURE(read_events, NULL)

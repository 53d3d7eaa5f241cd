/* SPDX-License-Identifier: MIT */
/*
 * scale: a job's own curve from what is at hand. Every word names a training log, a table of runs
 * or traces, told apart by content; COUNT=NAME says the worker count. Logs give steps, losses and
 * the job's configuration; the curve is fitted and judged, the model stands beside it.
 */
#include "ask/ask.h"
#include "ask/pushed.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/fold.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/slice.h"
#include "base/text.h"
#include "cluster/gpu_words.h"
#include "cluster/hardware.h"
#include "job/profile.h"
#include "knee_scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_LOG ((size_t)1 << 30) /* unpacked */

struct scale_options {
    struct knee_workers at;
    double tolerance, tokens, at_batch;
    double gpu_util, cpu_util, flops_achieved, late_rank;
    bool loss_behind, strict;
    const char *curve, *runs;
    unsigned char source[KNEE_KEYS_MAX];
};

#define NUMBER(name, field, unit, low, high, heading, absent, words)                               \
    KNEE_NUMBER(struct scale_options, name, field, unit, low, high, heading, absent, words)

static const struct knee_key rows[] = {
    {.name = "at",
     .kind = KNEE_KEY_WORKERS,
     .offset = offsetof(struct scale_options, at),
     .group = "Question",
     .otherwise = "twice and four times the largest count",
     .help = "worker counts to forecast: 512, 512,1024, 64..1024x2"},
    NUMBER("at-batch", at_batch, KNEE_UNIT_COUNT, 1, 1e15, "Question", "as the curve goes on",
           "global batch at those counts, in sequences (examples)"),
    NUMBER("tolerance", tolerance, KNEE_UNIT_FRACTION, 0.01, 1, "Question", "0.8",
           "E(K) down to which more workers are worth it"),
    NUMBER("tokens", tokens, KNEE_UNIT_COUNT, 1, 1e18, "Question", "none",
           "tokens to train: days at each count, and dollars with --price"),
    {.name = "curve",
     .kind = KNEE_KEY_WORD,
     .offset = offsetof(struct scale_options, curve),
     .group = "Question",
     .otherwise = "the only one",
     .help = "which job of a table's column `curve`"},
    {.name = "runs",
     .kind = KNEE_KEY_WORD,
     .offset = offsetof(struct scale_options, runs),
     .group = "Question",
     .otherwise = "none",
     .help = "write the runs as a table, for knee validate and its --calibrate"},
    {.name = "strict",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct scale_options, strict),
     .group = "Question",
     .otherwise = "",
     .help = "exit with 3 when a file or a row was refused"},
    NUMBER("gpu-util", gpu_util, KNEE_UNIT_FRACTION, 0, 1, "Symptoms", "not known",
           "share of time the GPUs are busy"),
    NUMBER("cpu-util", cpu_util, KNEE_UNIT_FRACTION, 0, 1, "Symptoms", "not known",
           "share of time the CPUs are busy"),
    NUMBER("flops-achieved", flops_achieved, KNEE_UNIT_FRACTION, 0, 1, "Symptoms", "not known",
           "share of the GPUs' peak that is reached"),
    NUMBER("late-rank", late_rank, KNEE_UNIT_COUNT, 0, KNEE_WORKERS_MAX, "Symptoms", "none",
           "a rank that the others wait for"),
    {.name = "loss-behind",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct scale_options, loss_behind),
     .group = "Symptoms",
     .otherwise = "",
     .help = "the loss is behind that of a smaller batch at equal tokens"},
};

static const struct knee_keys scale_keys = KNEE_KEY_TABLE(rows, struct scale_options);

/* Everything that was read, and the answer. */
struct scale {
    struct scale_options options;
    struct knee_shape shape;
    struct knee_plan plan;
    struct knee_platform platform;
    struct knee_train_log logs[KNEE_SCALE_ROWS];
    size_t log_count;
    struct knee_scale_row rows[KNEE_SCALE_ROWS];
    size_t row_count;
    size_t refused;              /* files and rows */
    struct knee_text complaints; /* a line for each file */
    struct knee_text runs;       /* the runs as a table for knee validate */
    struct knee_scale_answer answer;
    struct knee_ask_told told; /* traces of one word */
    struct knee_ask *ask;
};

/* ---- What words name ---- */

static struct knee_scale_row *new_row(struct scale *s, const char *name)
{
    struct knee_scale_row *row = &s->rows[s->row_count++];
    memset(row, 0, sizeof *row);
    knee_format(row->source, sizeof row->source, "%s", name);
    row->workers = row->step_s = row->p95_s = row->batch = row->error = NAN;
    row->tokens_per_s = row->ratio = row->gamma = row->replica = NAN;
    return row;
}

static knee_status count_missing(const char *name, struct knee_err *err)
{
    knee_fail(err, KNEE_INPUT, name, "the log does not say how many workers it is of");
    knee_hint(err, "say it: 64=%.60s", name);
    return KNEE_INPUT;
}

static double degrees(const struct knee_plan *plan)
{
    const double each[] = {plan->tp, plan->pp, plan->cp};
    double product = 1;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        product *= each[i] >= 1 ? each[i] : 1;
    return product;
}

/* A log that is not timed has losses for the batch fit, and no row of the curve. */
static knee_status add_log(struct scale *s, struct knee_train_log *log, double workers,
                           struct knee_err *err)
{
    if (!isnan(workers)) {
        log->workers = workers;
        log->workers_from = "what was said";
    }
    if (isnan(log->workers) && log->timing != KNEE_TIMED_NOT)
        return count_missing(log->name, err);
    s->logs[s->log_count++] = *log;
    if (log->timing == KNEE_TIMED_NOT) {
        knee_text_printf(&s->complaints, "  %s: losses, but nothing says how long a step takes\n",
                         log->name);
        return KNEE_OK;
    }
    struct knee_scale_row *row = new_row(s, log->name);
    row->workers = log->workers;
    row->step_s = log->median_s;
    row->p95_s = log->p95_s;
    row->error = log->error;
    row->batch = log->batch;
    row->replica = degrees(&log->plan);
    row->tokens_per_s = log->tokens_per_s;
    row->log = &s->logs[s->log_count - 1];
    return KNEE_OK;
}

static knee_status read_log(struct scale *s, const char *name, const char *data, size_t length,
                            double workers, struct knee_err *err)
{
    struct knee_train_reader *reader =
        knee_train_begin(knee_ask_input_name(name), knee_ask_alloc(s->ask));
    struct knee_train_log log;
    if (!reader)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    knee_train_push(reader, data, length);
    knee_status status = knee_train_end(reader, &log, err);
    if (status)
        return status;
    status = add_log(s, &log, workers, err);
    if (status)
        knee_train_log_release(&log);
    return status;
}

static knee_status read_table(struct scale *s, const char *name, const char *data, size_t length,
                              struct knee_err *err)
{
    size_t count = 0, refused = 0;
    knee_status status = knee_scale_table_read(
        data, length, knee_ask_input_name(name), s->options.curve, s->rows + s->row_count,
        KNEE_SCALE_ROWS - s->row_count, &count, &refused, err);
    if (status)
        return status;
    s->row_count += count;
    s->refused += refused;
    if (refused)
        knee_text_printf(&s->complaints, "  %s: %zu rows without a worker count or a step\n",
                         knee_ask_input_name(name), refused);
    return KNEE_OK;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median step of the first rank; NaN: the trace has none. */
static double median_step(const struct knee_account *account)
{
    int64_t windows[1024] = {0};
    size_t count = 0;
    for (size_t i = 0; i < account->step_count && count < 1024; i++)
        if (account->steps[i].rank == 0 && account->steps[i].number >= 0)
            windows[count++] = account->steps[i].ledger.window_ns;
    qsort(windows, count, sizeof *windows, ascending);
    size_t middle = count / 2;
    return count ? 1e-9 * (double)windows[middle] : NAN;
}

static knee_status add_account(struct scale *s, const struct knee_account *account,
                               const char *name, double workers, struct knee_err *err)
{
    const struct knee_ledger *ledger = &account->ranks[0].ledger;
    double compute = (double)ledger->label_ns[KNEE_COMPUTE], step_s = median_step(account);
    double world =
        account->world_size > 0 ? (double)account->world_size : (double)account->rank_count;
    if (isnan(step_s))
        return knee_fail(err, KNEE_INPUT, name, "the trace has no steps to time");
    struct knee_scale_row *row = new_row(s, knee_ask_base_name(name));
    row->workers = isnan(workers) ? world : workers;
    row->step_s = step_s;
    row->ratio = knee_ledger_ratio(ledger);
    row->gamma = (double)ledger->comm_ns / compute;
    return KNEE_OK;
}

/* Traces that were pushed under this name, or in this folder. *there: there are some. */
static knee_status read_traces(struct scale *s, const char *name, double workers, bool *there,
                               struct knee_err *err)
{
    struct knee_ask_told *told = &s->told;
    knee_status status = knee_ask_pick(s->ask, &name, 1, 0, told, err);
    *there = status != KNEE_INPUT; /* else no trace was pushed under this name */
    if (status)
        return *there ? status : KNEE_OK;
    status = knee_account(told->traces, told->count, told->alloc, &told->account, err);
    if (!status && told->account.rank_count == 0)
        status = knee_fail(err, KNEE_INPUT, name, "there is no GPU work in it");
    if (!status)
        status = add_account(s, &told->account, name, workers, err);
    knee_ask_told_release(told);
    return status;
}

/* "64=run.log": the count, and the name after it; NaN: none was said. */
static double said_workers(const char **word)
{
    const char *end;
    double count = knee_decimal_parse(*word, &end);
    if (end == *word || *end != '=' || !(count >= 1 && count <= KNEE_WORKERS_MAX))
        return NAN;
    *word = end + 1;
    return count;
}

static ptrdiff_t read_bytes(void *ctx, void *buffer, size_t size)
{
    struct knee_slice *rest = ctx;
    size_t got = size < rest->length ? size : rest->length;
    memcpy(buffer, rest->at, got);
    rest->at += got;
    rest->length -= got;
    return (ptrdiff_t)got;
}

static knee_status read_packed(struct scale *s, const char *name, struct knee_slice packed,
                               double workers, struct knee_err *err)
{
    struct knee_reader reader = {read_bytes, &packed};
    void *data = NULL;
    size_t length = 0;
    if (knee_gunzip_all(reader, LARGEST_LOG, knee_ask_alloc(s->ask), &data, &length))
        return knee_fail(err, KNEE_INPUT, name, "cannot be unpacked");
    knee_status status = read_log(s, name, data ? data : "", length, workers, err);
    knee_resize(knee_ask_alloc(s->ask), data, 0);
    return status;
}

static knee_status read_named(struct scale *s, const char *name, double workers,
                              struct knee_err *err)
{
    struct knee_ask_bytes bytes = {.data = NULL};
    knee_status status = knee_ask_read(s->ask, name, LARGEST_LOG, &bytes, err);
    if (status)
        return status;
    const char *data = bytes.data ? bytes.data : "";
    if (bytes.length > 1 && memcmp(data, "\x1f\x8b", 2) == 0)
        status = read_packed(s, name, (struct knee_slice){data, bytes.length}, workers, err);
    else if (strcmp(name, "-") != 0 && knee_scale_is_table(data, bytes.length))
        status = read_table(s, name, data, bytes.length, err);
    else
        status = read_log(s, name, data, bytes.length, workers, err);
    knee_ask_done(&bytes);
    return status;
}

static knee_status read_word(struct scale *s, const char *word, struct knee_err *err)
{
    double workers = said_workers(&word);
    bool traces;
    if (s->row_count == KNEE_SCALE_ROWS || s->log_count == KNEE_SCALE_ROWS)
        return knee_fail(err, KNEE_USAGE, "", "more than %d runs", KNEE_SCALE_ROWS);
    knee_status status = read_traces(s, word, workers, &traces, err);
    return traces ? status : read_named(s, word, workers, err);
}

/* A file that cannot be used does not stop the others. */
static knee_status read_words(struct scale *s, const struct knee_ask_question *q,
                              struct knee_err *err)
{
    for (size_t i = 0; i < q->word_count; i++) {
        struct knee_err one = {.status = KNEE_OK};
        knee_status status = read_word(s, q->words[i], &one);
        if (status && (status != KNEE_INPUT || q->word_count == 1)) {
            if (err)
                *err = one;
            return status;
        }
        if (status) {
            s->refused++;
            knee_text_printf(&s->complaints, "  %s: %s%s%s\n", one.where, one.what,
                             one.hint[0] ? "; " : "", one.hint);
        }
    }
    if (q->word_count > 0 && s->row_count == 0 && s->log_count == 0) {
        knee_fail(err, KNEE_INPUT, "", "none of the %zu files can be used", q->word_count);
        knee_hint(err, "%.200s", s->complaints.data ? s->complaints.data + 2 : "");
        return KNEE_INPUT;
    }
    return KNEE_OK;
}

/* ---- The model beside it ---- */

/* What was given by flags goes over what the log says. */
static void overlay(const struct knee_keys *keys, const void *given, void *onto)
{
    const unsigned char *source = (const unsigned char *)given + keys->source_offset;
    unsigned char *own = knee_keys_source(keys, onto);
    for (size_t i = 0; i < keys->count; i++) {
        size_t offset = keys->rows[i].offset;
        size_t size = keys->rows[i].kind == KNEE_KEY_CHOICE ? sizeof(int) : sizeof(double);
        if (source[i] != KNEE_FLAG)
            continue;
        memcpy((char *)onto + offset, (const char *)given + offset, size);
        own[i] = KNEE_FLAG;
    }
}

/* Row of the preset of the GPU that the log names; -1: it names none. */
static int find_gpu(const char *said)
{
    const struct knee_gpu *gpu = knee_gpu_in(said);
    for (size_t row = 0; gpu && knee_gpu_at(row); row++)
        if (knee_gpu_at(row) == gpu)
            return (int)row;
    return -1;
}

/* The profile that the log's framework has. */
static void pick_profile(const struct knee_train_log *log, struct knee_platform *platform)
{
    char words[KNEE_TRAIN_TEXT];
    const struct knee_gpu *gpu = knee_hardware_gpu(&platform->hw);
    if (platform->profile >= 0 || !gpu)
        return;
    knee_fold(log->format, words, sizeof words);
    platform->profile = knee_profile_pick(words, gpu->name, "bf16");
}

/* A number of the table; what is not known is left empty. */
static void add_number(struct knee_text *text, double value)
{
    if (isfinite(value))
        knee_text_printf(text, "%.10g", value);
    knee_text_puts(text, ",");
}

static const char *choice(const struct knee_choices *choices, int row)
{
    return row >= 0 ? choices->name((size_t)row) : "";
}

/* One line for knee validate: only runs whose GPU and shape are known. */
static void add_run(struct scale *s, const struct knee_scale_row *row, struct knee_shape shape,
                    const struct knee_plan *plan, const struct knee_platform *platform)
{
    const struct knee_gpu *gpu = knee_hardware_gpu(&platform->hw);
    if (!gpu || knee_shape_complete(&shape, NULL))
        return;
    const double numbers[] = {row->workers,
                              shape.layers,
                              shape.hidden,
                              shape.heads,
                              shape.kv_heads,
                              shape.head_dim,
                              shape.ffn,
                              shape.glu,
                              shape.vocab,
                              shape.seq,
                              row->batch,
                              plan->micro_batch,
                              plan->tp,
                              plan->pp,
                              plan->vp,
                              plan->cp,
                              plan->shard >= 0 ? (double)plan->shard : (double)NAN,
                              plan->seq_par,
                              row->step_s};
    if (s->runs.length == 0)
        knee_text_puts(
            &s->runs,
            "id,source,gpu,precision,recompute,overlap,profile,n_gpus,layers,hidden,heads,kv_heads,"
            "head_dim,ffn,glu,vocab,seq,global_batch,micro_batch,tp,pp,vp,cp,"
            "zero,seq_par,step_time_s,curve\n");
    knee_text_printf(
        &s->runs, "%s,%s,%s,%s,%s,%s%s,%s,", row->source, row->log ? row->log->format : "table",
        gpu->name, choice(&knee_precision_names, plan->precision),
        choice(&knee_recompute_names, plan->recompute), plan->overlap_dp == 0 ? "no dp " : "",
        plan->overlap_tp == 0 ? "no tp" : "", choice(&knee_profile_names, platform->profile));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_number(&s->runs, numbers[i]);
    knee_text_puts(&s->runs, "log\n");
}

static void model_row(struct scale *s, struct knee_scale_row *row)
{
    struct knee_shape shape;
    struct knee_plan plan;
    struct knee_platform platform = s->platform;
    knee_shape_init(&shape);
    knee_plan_init(&plan);
    if (row->log) {
        shape = row->log->shape;
        plan = row->log->plan;
        if (!knee_hardware_gpu(&platform.hw))
            platform.hw.gpu = find_gpu(row->log->gpu);
        pick_profile(row->log, &platform);
    }
    overlay(&knee_shape_keys, &s->shape, &shape);
    overlay(&knee_plan_keys, &s->plan, &plan);
    if (isnan(row->replica) || row->replica < degrees(&plan))
        row->replica = degrees(&plan);
    knee_scale_model(&shape, &plan, &platform, row->workers, row->batch, row->step_s, &row->model);
    if (s->options.runs)
        add_run(s, row, shape, &plan, &platform);
}

static knee_status keep_runs(struct scale *s, struct knee_err *err)
{
    if (s->runs.length == 0) {
        knee_fail(err, KNEE_INPUT, "--runs", "no run whose GPU and shape are known");
        knee_hint(err, "add --gpu, and --model where the logs do not have it");
        return KNEE_INPUT;
    }
    struct knee_text *made = knee_ask_pulled(s->ask, s->options.runs);
    if (!made)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    knee_text_add(made, s->runs.data, s->runs.length);
    return made->failed || s->runs.failed ? knee_fail(err, KNEE_SYSTEM, "", "out of memory")
                                          : KNEE_OK;
}

/* ---- The batch fit ---- */

static knee_status fit_batches(struct scale *s, struct knee_err *err)
{
    const struct knee_alloc *alloc = knee_ask_alloc(s->ask);
    struct knee_batch_run runs[KNEE_BATCH_RUNS];
    size_t count = 0, all = 0;
    for (size_t i = 0; i < s->log_count && count < KNEE_BATCH_RUNS; i++) {
        const struct knee_train_log *log = &s->logs[i];
        if (!(log->batch > 0))
            continue;
        runs[count++] = (struct knee_batch_run){log->batch, log->rows, log->row_count};
        all += log->row_count;
    }
    if (count < 2)
        return KNEE_OK;
    double *room = knee_resize(alloc, NULL, (2 * all + 1) * sizeof *room);
    if (!room)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    memset(room, 0, (2 * all + 1) * sizeof *room);
    knee_batch_fit(runs, count, room, &s->answer.batch);
    knee_resize(alloc, room, 0);
    return KNEE_OK;
}

/* ---- The answer ---- */

/* Dollars per worker and hour: given, or indicative for the GPU. */
static double price(const struct scale *s)
{
    const struct knee_gpu *gpu = knee_hardware_gpu(&s->platform.hw);
    if (!isnan(s->platform.hw.price_per_hour) || !gpu)
        return s->platform.hw.price_per_hour;
    return knee_gpu_price(gpu);
}

static knee_status set_question(struct scale *s, struct knee_err *err)
{
    const struct scale_options *o = &s->options;
    struct knee_scale_question *q = &s->answer.question;
    *q = (struct knee_scale_question){
        .tolerance = isnan(o->tolerance) ? 0.8 : o->tolerance,
        .tokens = o->tokens,
        .at_batch = o->at_batch,
        .price_per_hour = price(s),
        .symptoms = {o->gpu_util, o->cpu_util, o->flops_achieved, o->late_rank, o->loss_behind},
    };
    size_t size = KNEE_ROWS_MAX * sizeof(double);
    double *counts = knee_resize(knee_ask_alloc(s->ask), NULL, size);
    if (!counts)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    size_t count = o->at.ranges ? knee_workers_list(&o->at, counts, KNEE_ROWS_MAX) : 0;
    knee_status status = KNEE_OK;
    if (count > KNEE_SCALE_FORECASTS)
        status = knee_fail(err, KNEE_USAGE, "--at", "more than %d counts", KNEE_SCALE_FORECASTS);
    for (size_t i = 0; i < count && !status; i++)
        q->at[q->at_count++] = counts[i];
    knee_resize(knee_ask_alloc(s->ask), counts, 0);
    return status;
}

static void write_answer(struct knee_ask_question *q, const struct scale *s)
{
    ASK_WRITE(q, knee_write_scale, &s->answer);
    if (q->outs[0].format == KNEE_TEXT && s->complaints.data)
        knee_text_puts(q->outs[0].text, s->complaints.data);
    q->outs[0].text->failed = q->outs[0].text->failed || s->complaints.failed;
}

static knee_status conclude(struct knee_ask_question *q, struct scale *s, struct knee_err *err)
{
    knee_status status = read_words(s, q, err);
    if (!status)
        status = set_question(s, err);
    if (!status)
        status = fit_batches(s, err);
    if (status)
        return status;
    for (size_t i = 0; i < s->row_count; i++)
        model_row(s, &s->rows[i]);
    if (s->options.runs && (status = keep_runs(s, err)))
        return status;
    s->answer.rows = s->rows;
    s->answer.row_count = s->row_count;
    status = knee_scale_judge(&s->answer, err);
    if (status)
        return status;
    write_answer(q, s);
    q->answered = true;
    return s->options.strict && s->refused ? KNEE_INPUT : KNEE_OK;
}

static bool has_symptoms(const struct scale_options *o)
{
    return o->loss_behind || !isnan(o->gpu_util) || !isnan(o->cpu_util) ||
           !isnan(o->flops_achieved) || !isnan(o->late_rank);
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    struct scale *s = q->objects[0]; /* whose first member the options are */
    s->ask = q->ask;
    s->complaints.alloc = s->runs.alloc = knee_ask_alloc(q->ask);
    if (q->word_count == 0 && !has_symptoms(&s->options)) {
        knee_fail(err, KNEE_USAGE, "", "which logs?");
        knee_hint(err, "knee scale 8=small.log 16=large.log, or a symptom: --gpu-util 35%%");
        return KNEE_USAGE;
    }
    knee_status status = conclude(q, s, err);
    for (size_t i = 0; i < s->log_count; i++)
        knee_train_log_release(&s->logs[i]);
    knee_text_release(&s->complaints);
    knee_text_release(&s->runs);
    return status;
}

static void init(void *room, void **objects)
{
    struct scale *s = room;
    knee_keys_clear(&scale_keys, &s->options);
    knee_shape_init(&s->shape);
    knee_plan_init(&s->plan);
    knee_platform_init(&s->platform);
    objects[0] = &s->options;
    objects[1] = &s->shape;
    objects[2] = &s->plan;
    objects[3] = &s->platform;
}

const struct knee_ask_command knee_ask_scale = {
    .name = "scale",
    .keys = {&scale_keys, &knee_shape_keys, &knee_plan_keys, &knee_platform_keys},
    .most_words = ASK_WORDS,
    .operands = "[COUNT=]FILE...",
    .size = sizeof(struct scale),
    .init = init,
    .answer = answer,
};

/* SPDX-License-Identifier: MIT */
/* scale: a job's own curve from what is at hand: logs, tables of runs, traces, symptoms. */
#include "ask/ask_measured.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/text.h"
#include "cluster/hardware.h"
#include "say/answers.h"

#include <math.h>

struct scale_options {
    struct knee_workers at;
    double tolerance, tokens, at_batch, params;
    struct knee_symptoms symptoms;
    bool strict;
    const char *curve, *runs;
    unsigned char source[KNEE_KEYS_MAX];
};

#define NUMBER(name, field, unit, low, high, heading, absent, words)                               \
    KNEE_NUMBER(struct scale_options, name, field, unit, low, high, heading, absent, words)

static const struct knee_key rows[] = {
    KNEE_OPTION(struct scale_options, "at", KNEE_KEY_WORKERS, at, "Question",
                "2 and 4 times the largest count",
                "GPU counts to forecast: 512, a list 512,1024, or a range 64..1024x2"),
    NUMBER("at-batch", at_batch, KNEE_UNIT_COUNT, 1, 1e15, "Question", "same rule as in the logs",
           "global batch at those counts, in sequences"),
    NUMBER("tolerance", tolerance, KNEE_UNIT_FRACTION, 0.01, 1, "Question", "0.8",
           "lowest efficiency still worth paying for"),
    NUMBER("tokens", tokens, KNEE_UNIT_COUNT, 1, 1e18, "Question", "none",
           "tokens to train on: adds days at each count, and dollars with --price"),
    NUMBER("params", params, KNEE_UNIT_COUNT, 1, 1e15, "Question", "from the log or --model",
           "model parameters, to compute the bytes sent per step"),
    KNEE_OPTION(struct scale_options, "curve", KNEE_KEY_WORD, curve, "Question", "the only job",
                KNEE_OFF_PAGE("with a table: the job to read, by its column `curve`")),
    KNEE_OPTION(struct scale_options, "runs", KNEE_KEY_WORD, runs, "Question", "none",
                KNEE_OFF_PAGE("write the runs as a CSV table for knee validate")),
    KNEE_OPTION(struct scale_options, "strict", KNEE_KEY_SWITCH, strict, "Question", "",
                KNEE_OFF_PAGE("exit with status 3 if any file or row cannot be used")),
    NUMBER("gpu-util", symptoms.gpu_util, KNEE_UNIT_FRACTION, 0, 1, "Symptoms", "unknown",
           KNEE_OFF_PAGE("GPU utilisation as nvidia-smi shows it")),
    NUMBER("cpu-util", symptoms.cpu_util, KNEE_UNIT_FRACTION, 0, 1, "Symptoms", "unknown",
           KNEE_OFF_PAGE("CPU utilisation")),
    NUMBER("flops-achieved", symptoms.flops_achieved, KNEE_UNIT_FRACTION, 0, 1, "Symptoms",
           "unknown", KNEE_OFF_PAGE("MFU: share of peak FLOP/s")),
    NUMBER("late-rank", symptoms.late_rank, KNEE_UNIT_COUNT, 0, KNEE_WORKERS_MAX, "Symptoms",
           "none", KNEE_OFF_PAGE("a rank that the other ranks wait for")),
    KNEE_OPTION(struct scale_options, "loss-behind", KNEE_KEY_SWITCH, symptoms.loss_behind,
                "Symptoms", "",
                KNEE_OFF_PAGE("the loss is worse than with a smaller batch at equal tokens")),
};

static const struct knee_keys scale_keys = KNEE_KEY_TABLE(rows, struct scale_options);

/* The options come first: they are the command's first object. */
struct scale_room {
    struct scale_options options;
    struct knee_ask_said said;
    struct knee_ask_measured measured;
    struct knee_scale_answer answer;
};

/* ---- The batch fit ---- */

static knee_status fit_batches(struct scale_room *all, const struct knee_alloc *alloc,
                               struct knee_err *err)
{
    struct knee_batch_run runs[KNEE_BATCH_RUNS];
    size_t count = 0, lines = 0;
    for (size_t i = 0; i < all->measured.log_count && count < KNEE_BATCH_RUNS; i++) {
        const struct knee_train_log *log = &all->measured.logs[i];
        if (!(log->batch > 0))
            continue;
        runs[count++] = (struct knee_batch_run){log->batch, log->rows, log->row_count};
        lines += log->row_count;
    }
    if (count < 2)
        return KNEE_OK;
    double *room = knee_resize(alloc, NULL, (2 * lines + 1) * sizeof *room);
    if (!room)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    knee_batch_fit(runs, count, room, &all->answer.batch);
    knee_resize(alloc, room, 0);
    return KNEE_OK;
}

/* ---- The question ---- */

/* Dollars per worker and hour: given, or indicative for the GPU. */
static double price(const struct knee_platform *platform)
{
    const struct knee_gpu *gpu = knee_hardware_gpu(&platform->hw);
    if (!isnan(platform->hw.price_per_hour) || !gpu)
        return platform->hw.price_per_hour;
    return knee_gpu_price(gpu);
}

static knee_status take_counts(const struct knee_workers *at, const struct knee_alloc *alloc,
                               struct knee_scale_question *question, struct knee_err *err)
{
    double *counts = knee_resize(alloc, NULL, KNEE_ROWS_MAX * sizeof *counts);
    if (!counts)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    size_t count = at->ranges ? knee_workers_list(at, counts, KNEE_ROWS_MAX) : 0;
    knee_status status = KNEE_OK;
    if (count > KNEE_SCALE_FORECASTS)
        status = knee_fail(err, KNEE_USAGE, "--at", "more than %d counts", KNEE_SCALE_FORECASTS);
    for (size_t i = 0; i < count && !status; i++)
        question->at[question->at_count++] = counts[i];
    knee_resize(alloc, counts, 0);
    return status;
}

/* What the options say about the network and its traffic. */
static struct knee_network_facts network_facts(const struct scale_room *all)
{
    struct knee_shape shape = all->said.shape;
    const struct knee_plan *plan = &all->said.plan;
    double params = all->options.params;
    struct knee_params counted;
    if (isnan(params) && all->said.shape.model >= 0 && !knee_shape_complete(&shape, NULL)) {
        knee_shape_params(&shape, &counted);
        params = counted.total;
    }
    return (struct knee_network_facts){.params = params,
                                       .gradient_bytes = plan->gradient_bytes,
                                       .gpus_per_node = all->said.platform.hw.gpus_per_node,
                                       .accumulate = NAN,
                                       .shard = plan->shard};
}

static knee_status set_question(struct scale_room *all, const struct knee_alloc *alloc,
                                struct knee_err *err)
{
    const struct scale_options *o = &all->options;
    all->answer.question = (struct knee_scale_question){
        .tolerance = isnan(o->tolerance) ? 0.8 : o->tolerance,
        .tokens = o->tokens,
        .at_batch = o->at_batch,
        .price_per_hour = price(&all->said.platform),
        .symptoms = o->symptoms,
    };
    all->answer.question.network = network_facts(all);
    return take_counts(&o->at, alloc, &all->answer.question, err);
}

/* ---- The answer ---- */

/* The runs as a table beside the answer; NULL: not asked for, or no memory. */
static knee_status begin_table(struct knee_ask_question *q, const char *name,
                               struct knee_text **table, struct knee_err *err)
{
    *table = name ? knee_ask_pulled(q->ask, name) : NULL;
    return name && !*table ? knee_fail(err, KNEE_SYSTEM, name, "out of memory for the output")
                           : KNEE_OK;
}

static knee_status check_table(const struct knee_text *table, struct knee_err *err)
{
    if (!table || (table->length && !table->failed))
        return KNEE_OK;
    if (table->failed)
        return knee_fail(err, KNEE_SYSTEM, "--runs", "out of memory for the output");
    return knee_fail_hint(err, KNEE_INPUT, "--runs",
                          "add --gpu, and --model where the logs do not have it",
                          "no run whose GPU and shape are known");
}

static knee_status judge(struct knee_ask_question *q, struct scale_room *all, struct knee_err *err)
{
    struct knee_ask_measured *m = &all->measured;
    struct knee_text *table;
    knee_status status = begin_table(q, all->options.runs, &table, err);
    if (status)
        return status;
    for (size_t i = 0; i < m->row_count; i++)
        knee_ask_model_row(&all->said, &m->rows[i], table);
    if ((status = check_table(table, err)))
        return status;
    all->answer.rows = m->rows;
    all->answer.row_count = m->row_count;
    all->answer.left_out = m->complaints.data;
    if ((status = knee_scale_judge(&all->answer, err)) ||
        (status = knee_sched_account(&m->jobs, &all->answer.sched, err)))
        return status;
    ASK_ANSWER(q, &knee_scale_answer_type, &all->answer);
    if (!all->options.strict || !m->refused)
        return KNEE_OK;
    q->answered = true;
    return knee_fail(err, KNEE_INPUT, "--strict", "%zu files or rows were refused", m->refused);
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    struct scale_room *all = q->objects[0];
    const struct knee_alloc *alloc = knee_ask_alloc(q->ask);
    if (q->word_count == 0 && !knee_symptoms_any(&all->options.symptoms)) {
        knee_fail(err, KNEE_USAGE, "", "which logs?");
        knee_hint(err, "knee scale 8=small.log 16=large.log, or a symptom: --gpu-util 35%%");
        return KNEE_USAGE;
    }
    knee_status status = knee_ask_measured_read(q, all->options.curve, &all->measured, err);
    if (!status)
        status = set_question(all, alloc, err);
    if (!status)
        status = fit_batches(all, alloc, err);
    if (!status)
        status = judge(q, all, err);
    knee_ask_measured_release(&all->measured);
    return status;
}

static void init(void *room, void **objects)
{
    struct scale_room *all = room;
    knee_keys_clear(&scale_keys, &all->options);
    knee_ask_said_init(&all->said);
    objects[0] = &all->options;
    objects[1] = &all->said.shape;
    objects[2] = &all->said.plan;
    objects[3] = &all->said.platform;
}

const struct knee_ask_command knee_ask_scale = {
    .name = "scale",
    .keys = {&scale_keys, &knee_shape_keys, &knee_plan_keys, &knee_platform_keys},
    .most_words = ASK_WORDS,
    .operands = "[COUNT=]FILE...",
    .size = sizeof(struct scale_room),
    .init = init,
    .answer = answer,
};

/* SPDX-License-Identifier: MIT */
/* validate: measured runs against what is predicted, and profiles fitted to them. */
#include "ask/ask_measured.h"
#include "base/keys.h"
#include "base/text.h"
#include "knee_read.h"

#include <math.h>
#include <string.h>

#define LARGEST_TABLE ((size_t)64 << 20)

struct validate_options {
    const char *calibrate, *rates, *gpu;
    double tolerance;
    bool cross_validate;
    unsigned char source[KNEE_KEYS_MAX];
};

#define WORD(key_name, field, absent, words)                                                       \
    KNEE_OPTION(struct validate_options, key_name, KNEE_KEY_WORD, field, "Question", absent, words)

static const struct knee_key rows[] = {
    WORD("gpu", gpu, "none", "GPU for rows without one, such as h200"),
    WORD("rates", rates, "built-in constants",
         "YAML file with calibrated constants, instead of the built-in ones"),
    WORD("calibrate", calibrate, "none",
         "fit constants to these rows and write them as YAML, for --rates"),
    KNEE_OPTION(struct validate_options, "cross-validate", KNEE_KEY_SWITCH, cross_validate,
                "Question", "", "also predict each source from constants fitted to the others"),
    {.name = "tolerance",
     .kind = KNEE_KEY_NUMBER,
     .unit = KNEE_UNIT_FRACTION,
     .min = 0.01,
     .max = 1,
     .offset = offsetof(struct validate_options, tolerance),
     .group = "Question",
     .otherwise = "0.8",
     .help = "lowest efficiency still worth paying for"},
};

static const struct knee_keys validate_keys = KNEE_KEY_TABLE(rows, struct validate_options);

static knee_status write_profile(struct knee_ask_question *q, const struct knee_runs *runs,
                                 const char *name, struct knee_err *err)
{
    struct knee_rates rates;
    struct knee_platform platform;
    knee_status status = knee_calibrate(runs, knee_ask_alloc(q->ask), &rates, &platform, err);
    if (status)
        return status;
    struct knee_text *yaml = knee_ask_pulled(q->ask, name);
    if (yaml)
        knee_write_rates(&rates, &platform, yaml);
    if (!yaml || yaml->failed)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory for the output");
    return KNEE_OK;
}

/* Rates that replace others show in the predictions alone, which one process prints. */
static knee_status predict(struct knee_ask_question *q, const struct validate_options *options,
                           const struct knee_runs *runs, struct knee_validation *out,
                           struct knee_err *err)
{
    struct knee_rates rates;
    double tolerance = isnan(options->tolerance) ? 0.8 : options->tolerance;
    knee_status status =
        knee_ask_read_rates(q->ask, knee_ask_silent(q) ? NULL : options->rates, &rates, err);
    return status ? status
                  : knee_validate(runs, &rates, tolerance, knee_ask_alloc(q->ask), out, err);
}

static bool watch(void *ctx, double share)
{
    return knee_ask_progress(ctx, share);
}

static knee_status cross_validate(struct knee_ask_question *q, struct knee_validation *v,
                                  struct knee_err *err)
{
    if (q->work && q->work->cross_validate)
        return q->work->cross_validate(q->work->ctx, v, err);
    return knee_cross_validate(v, 0, 1, watch, q->ask, err);
}

/* All processes go on, or none does. */
static knee_status agree(const struct knee_ask_question *q, knee_status own)
{
    return q->work && q->work->agree ? q->work->agree(q->work->ctx, own) : own;
}

static knee_status compare(struct knee_ask_question *q, const struct knee_runs *runs,
                           struct knee_validation *v, struct knee_err *err)
{
    const struct validate_options *options = q->objects[0];
    knee_status status = v ? KNEE_OK : knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    if (!status && options->calibrate && !knee_ask_silent(q))
        status = write_profile(q, runs, options->calibrate, err);
    bool made = !status && !(status = predict(q, options, runs, v, err));
    status = agree(q, status);
    if (!status && options->cross_validate)
        status = cross_validate(q, v, err);
    if (!status && !knee_ask_silent(q))
        ASK_ANSWER(q, &knee_validate_answer, v);
    if (made)
        knee_validation_release(v);
    return status;
}

/* ---- The runs: a table, or training logs ---- */

static knee_status read_table(struct knee_ask_question *q, struct knee_runs *out,
                              struct knee_err *err)
{
    const struct validate_options *options = q->objects[0];
    struct knee_ask_bytes table;
    knee_status status = knee_ask_read(q->ask, q->words[0], LARGEST_TABLE, &table, err);
    if (status)
        return status;
    status = knee_runs_read((struct knee_named_text){table.data, table.length, q->words[0]},
                            options->gpu, knee_ask_alloc(q->ask), out, err);
    knee_ask_done(&table);
    return status;
}

/* Logs as the table that knee_runs_read() reads: what is not known of one leaves it out. */
static knee_status table_of_logs(struct knee_ask_question *q, struct knee_ask_measured *m,
                                 struct knee_text *table, struct knee_err *err)
{
    const struct validate_options *options = q->objects[0];
    struct knee_ask_said said;
    knee_ask_said_init(&said);
    knee_status status = KNEE_OK;
    if (options->gpu)
        status =
            knee_keys_set(&knee_platform_keys, &said.platform, "gpu", options->gpu, KNEE_FLAG, err);
    if (!status)
        status = knee_ask_measured_read(q, NULL, m, err);
    if (status)
        return status;
    for (size_t i = 0; i < m->row_count; i++)
        knee_ask_model_row(&said, &m->rows[i], table);
    if (table->failed)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the runs");
    if (table->length)
        return KNEE_OK;
    return knee_fail_hint(
        err, KNEE_INPUT, q->words[0],
        "add --gpu; knee scale with --model and --runs makes a table of other logs",
        "no run whose GPU and shape are known");
}

/* *logs becomes true when there is a log among what is named. */
static knee_status read_logs(struct knee_ask_question *q, struct knee_runs *out, bool *logs,
                             struct knee_err *err)
{
    const struct knee_alloc *alloc = knee_ask_alloc(q->ask);
    struct knee_ask_measured *m = knee_zeroed(alloc, sizeof *m);
    struct knee_text table = {.alloc = alloc};
    if (!m)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    knee_status status = table_of_logs(q, m, &table, err);
    if (!status)
        status = knee_runs_read((struct knee_named_text){table.data, table.length, "the logs"},
                                NULL, alloc, out, err);
    *logs = *logs || m->log_count;
    knee_text_release(&table);
    knee_ask_measured_release(m);
    knee_resize(alloc, m, 0);
    return status;
}

static knee_status read_runs(struct knee_ask_question *q, struct knee_runs *out,
                             struct knee_err *err)
{
    struct knee_err other = {0};
    bool logs = q->word_count > 1;
    knee_status status = logs ? (knee_status)KNEE_INPUT : read_table(q, out, err);
    if (status != KNEE_INPUT)
        return status;
    knee_status as_logs = read_logs(q, out, &logs, &other);
    if (as_logs == KNEE_INPUT && !logs)
        return status; /* no logs either: what is wrong with the table stands */
    if (err)
        *err = other;
    return as_logs;
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    const struct validate_options *options = q->objects[0];
    const struct knee_alloc *alloc = knee_ask_alloc(q->ask);
    struct knee_runs runs = {0};
    if (q->word_count == 0)
        return knee_fail_hint(
            err, KNEE_USAGE, "",
            "knee validate RUNS.csv, or training logs; docs/evidence/validate.md lists "
            "the columns",
            "no table of runs is given");
    if (knee_ask_silent(q) && !options->cross_validate)
        return KNEE_OK; /* one answers for all: thousands of rows take a fraction of a second */
    knee_status status = agree(q, read_runs(q, &runs, err));
    if (!status) {
        struct knee_validation *v = knee_resize(alloc, NULL, sizeof *v);
        status = compare(q, &runs, v, err);
        knee_resize(alloc, v, 0);
    }
    knee_runs_release(&runs);
    return status;
}

static void init(void *room, void **objects)
{
    knee_keys_clear(&validate_keys, room);
    objects[0] = room;
}

const struct knee_ask_command knee_ask_validate = {
    .name = "validate",
    .keys = {&validate_keys},
    .most_words = ASK_WORDS,
    .operands = "RUNS.csv|LOG...",
    .size = sizeof(struct validate_options),
    .init = init,
    .answer = answer,
};

bool knee_ask_validate_crosses(const void *options)
{
    return ((const struct validate_options *)options)->cross_validate;
}

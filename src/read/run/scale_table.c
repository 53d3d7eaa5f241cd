/* SPDX-License-Identifier: MIT */
/*
 * A table of measured runs, one per row: the GPU count, and the step or a rate with the batch.
 * Column names are those in common use; `curve` separates several jobs.
 */
#include "base/csv.h"
#include "base/error.h"
#include "base/format.h"
#include "base/slice.h"
#include "knee_scale.h"

#include <math.h>
#include <string.h>

enum column {
    COLUMN_NONE,
    COLUMN_WORKERS,
    COLUMN_STEP,
    COLUMN_STEP_MS,
    COLUMN_RATE,        /* samples per second, all workers */
    COLUMN_TOKENS,      /* tokens per second, all workers */
    COLUMN_TOKENS_EACH, /* of one */
    COLUMN_BATCH,
    COLUMN_LOCAL, /* batch of one worker, accumulation counted in */
    COLUMN_SEQ,
    COLUMN_TP,
    COLUMN_PP,
    COLUMN_CP,
    COLUMN_COMPUTE, /* seconds of a step, as knee lab prints them */
    COLUMN_COMM,
    COLUMN_EXPOSED,
    COLUMN_CURVE,
    COLUMNS
};

static const struct {
    const char *name;
    enum column column;
} names[] = {
    {"workers", COLUMN_WORKERS},
    {"gpus", COLUMN_WORKERS},
    {"n_gpus", COLUMN_WORKERS},
    {"num_gpus", COLUMN_WORKERS},
    {"world_size", COLUMN_WORKERS},
    {"step_s", COLUMN_STEP},
    {"step_time_s", COLUMN_STEP},
    {"step_time", COLUMN_STEP},
    {"measured_step_s", COLUMN_STEP}, /* knee lab */
    {"step_ms", COLUMN_STEP_MS},
    {"step_time_ms", COLUMN_STEP_MS},
    {"samples_per_s", COLUMN_RATE},
    {"samples_per_sec", COLUMN_RATE},
    {"images_per_s", COLUMN_RATE},
    {"throughput", COLUMN_RATE},
    {"tokens_per_s", COLUMN_TOKENS},
    {"tokens_per_sec", COLUMN_TOKENS},
    {"tok_s_gpu", COLUMN_TOKENS_EACH},
    {"tokens_per_s_per_gpu", COLUMN_TOKENS_EACH},
    {"global_batch", COLUMN_BATCH},
    {"global_batch_size", COLUMN_BATCH},
    {"batch", COLUMN_BATCH},
    {"local_batch", COLUMN_LOCAL},
    {"batch_per_gpu", COLUMN_LOCAL},
    {"seq", COLUMN_SEQ},
    {"tp", COLUMN_TP},
    {"pp", COLUMN_PP},
    {"cp", COLUMN_CP},
    {"compute_s", COLUMN_COMPUTE},
    {"comm_s", COLUMN_COMM},
    {"exposed_comm_s", COLUMN_EXPOSED},
    {"curve", COLUMN_CURVE},
};

struct table {
    struct knee_csv csv;
    size_t at[COLUMNS]; /* field; KNEE_CSV_FIELDS: there is none */
};

static bool begin(struct table *t, const char *data, size_t length)
{
    knee_csv_init(&t->csv, data, length);
    for (size_t i = 0; i < COLUMNS; i++)
        t->at[i] = KNEE_CSV_FIELDS;
    if (!knee_csv_row(&t->csv))
        return false;
    for (size_t f = 0; f < t->csv.fields; f++) {
        char text[64];
        knee_csv_text(&t->csv, f, text, sizeof text);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(text, names[i].name) == 0 && t->at[names[i].column] == KNEE_CSV_FIELDS)
                t->at[names[i].column] = f;
    }
    bool timed = false;
    for (size_t c = COLUMN_STEP; c <= COLUMN_TOKENS_EACH; c++)
        timed = timed || t->at[c] < KNEE_CSV_FIELDS;
    return timed && t->at[COLUMN_WORKERS] < KNEE_CSV_FIELDS;
}

bool knee_scale_is_table(const char *data, size_t length)
{
    struct table t;
    const char *end = length ? memchr(data, '\n', length) : NULL;
    return begin(&t, data, end ? (size_t)(end - data) : length);
}

static double number(const struct table *t, enum column column)
{
    char text[64];
    double value;
    if (t->at[column] == KNEE_CSV_FIELDS)
        return NAN;
    knee_csv_text(&t->csv, t->at[column], text, sizeof text);
    return knee_slice_number(knee_slice_of(text), &value) && value > 0 ? value : NAN;
}

static double first(double a, double b)
{
    return isnan(a) ? b : a;
}

/* Workers of one copy of the model; NaN: the table does not say. */
static double replica(const struct table *t)
{
    double tp = number(t, COLUMN_TP), pp = number(t, COLUMN_PP), cp = number(t, COLUMN_CP);
    if (isnan(tp) && isnan(pp) && isnan(cp))
        return NAN;
    return first(tp, 1) * first(pp, 1) * first(cp, 1);
}

/* False: the row has no count or nothing timed. */
static bool read_row(const struct table *t, struct knee_scale_row *row)
{
    double workers = number(t, COLUMN_WORKERS), seq = number(t, COLUMN_SEQ);
    double batch = first(number(t, COLUMN_BATCH), number(t, COLUMN_LOCAL) * workers);
    double tokens = first(number(t, COLUMN_TOKENS), number(t, COLUMN_TOKENS_EACH) * workers);
    double step_s = first(number(t, COLUMN_STEP), number(t, COLUMN_STEP_MS) / 1e3);
    double samples = number(t, COLUMN_RATE);
    step_s = first(step_s, batch / samples);
    step_s = first(step_s, batch * seq / tokens);
    if (isnan(step_s) && !isnan(workers)) { /* a rate alone: a step of one unit each */
        batch = isnan(samples) && isnan(tokens) ? NAN : workers;
        step_s = workers / first(samples, tokens);
    }
    *row = (struct knee_scale_row){.workers = workers,
                                   .step_s = step_s,
                                   .p95_s = NAN,
                                   .batch = batch,
                                   .replica = replica(t),
                                   .error = NAN,
                                   .tokens_per_s = first(tokens, batch * seq / step_s),
                                   .ratio = NAN,
                                   .gamma = NAN,
                                   .compute_s = first(number(t, COLUMN_COMPUTE), 0),
                                   .comm_s = first(number(t, COLUMN_COMM), 0),
                                   .exposed_s = first(number(t, COLUMN_EXPOSED), 0)};
    return workers >= 1 && workers <= KNEE_WORKERS_MAX && step_s > 0 && step_s < 1e9;
}

knee_status knee_scale_table_read(struct knee_named_text from, const char *curve,
                                  const struct knee_scale_table *out, struct knee_err *err)
{
    const char *name = from.name;
    struct table t;
    size_t used = 0, bad = 0;
    char seen[KNEE_TRAIN_TEXT] = "";
    if (!begin(&t, from.text, from.length))
        return knee_fail(err, KNEE_INPUT, name, "no table of GPU counts and steps");
    while (knee_csv_row(&t.csv)) {
        char text[KNEE_TRAIN_TEXT] = "";
        if (t.at[COLUMN_CURVE] < KNEE_CSV_FIELDS)
            knee_csv_text(&t.csv, t.at[COLUMN_CURVE], text, sizeof text);
        if (curve && strcmp(text, curve) != 0)
            continue;
        if (!curve && seen[0] && text[0] && strcmp(seen, text) != 0)
            return knee_fail_hint(err, KNEE_INPUT, name, "choose one with --curve",
                                  "rows of several curves: '%.40s', '%.40s'", seen, text);
        knee_format(seen, sizeof seen, "%s", text);
        if (used == out->room)
            return knee_fail(err, KNEE_INPUT, name, "more than %zu runs", out->room);
        struct knee_scale_row *row = &out->rows[used];
        if (!read_row(&t, row)) {
            bad++;
            continue;
        }
        knee_format(row->source, sizeof row->source, "%.80s:%zu", name, t.csv.line);
        used++;
    }
    if (used == 0)
        return knee_fail(err, KNEE_INPUT, name, "no row with a GPU count and a step%s",
                         curve ? " on this curve" : "");
    *out->count = used;
    *out->refused = bad;
    return KNEE_OK;
}

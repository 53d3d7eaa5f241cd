/* SPDX-License-Identifier: MIT */
/*
 * Measured runs: every name is a training log, a table of runs or a trace, recognised by its first
 * bytes. Logs and traces are read piece by piece, so a log may be larger than the memory.
 */
#include "ask/ask_measured.h"

#include "ask/pushed.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/format.h"
#include "base/slice.h"
#include "base/text.h"
#include "read/file_kinds.h"
#include "read/trace/reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_TABLE ((size_t)16 << 20)
#define PIECE         ((size_t)1 << 18)

/* ---- Bytes, unpacked, with a look at the first of them ---- */

struct source {
    struct knee_ask_stream stream;
    struct knee_gunzip *gunzip;
    char *piece; /* PIECE bytes: what was read last */
    size_t size, used;
    bool failed; /* the stream */
    const struct knee_alloc *alloc;
};

static size_t fill(struct source *s)
{
    s->size = s->used = 0;
    while (s->size < PIECE) {
        ptrdiff_t got = knee_gunzip_read(s->gunzip, s->piece + s->size, PIECE - s->size);
        s->failed = s->failed || got < 0;
        if (got <= 0)
            break;
        s->size += (size_t)got;
    }
    return s->size;
}

static void close_source(struct source *s)
{
    knee_gunzip_free(s->gunzip);
    knee_resize(s->alloc, s->piece, 0);
    knee_ask_stream_close(&s->stream);
}

/* The first piece is there afterwards. *s must not move. */
static knee_status open_source(struct knee_ask *ask, const char *name, struct source *s,
                               struct knee_err *err)
{
    memset(s, 0, sizeof *s);
    s->alloc = knee_ask_alloc(ask);
    knee_status status = knee_ask_stream_open(ask, name, &s->stream, err);
    if (status)
        return status;
    s->gunzip = knee_gunzip_new(s->stream.reader, s->alloc);
    s->piece = s->gunzip ? knee_resize(s->alloc, NULL, PIECE) : NULL;
    if (s->piece) {
        fill(s);
        return KNEE_OK;
    }
    close_source(s);
    return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
}

static ptrdiff_t read_source(void *ctx, void *buffer, size_t size)
{
    struct source *s = ctx;
    if (s->used == s->size && !fill(s))
        return s->failed ? -1 : 0;
    size_t got = size < s->size - s->used ? size : s->size - s->used;
    memcpy(buffer, s->piece + s->used, got);
    s->used += got;
    return (ptrdiff_t)got;
}

/* ---- Kinds ---- */

static bool is_trace(const struct source *s)
{
    const struct knee_file_kind *kind = knee_file_kind_of("", s->piece, s->size);
    return kind && kind->reader != KNEE_READ_OTHERWISE;
}

static bool is_jobs(const struct source *s)
{
    return knee_is_sacct(s->piece, s->size);
}

static bool is_table(const struct source *s)
{
    return knee_scale_is_table(s->piece, s->size);
}

knee_status knee_ask_is_train_log(struct knee_ask *ask, const char *name, bool *log,
                                  struct knee_err *err)
{
    struct source s;
    struct knee_err none = {0};
    *log = false;
    if (strcmp(name, "-") == 0)
        return KNEE_OK; /* a look would take its first bytes away */
    knee_status status = open_source(ask, name, &s, &none);
    if (status == KNEE_SYSTEM)
        return knee_fail(err, status, name, "%s", none.what);
    if (status)
        return KNEE_OK;
    *log = s.size > 0 && !is_trace(&s) && !is_table(&s) && !is_jobs(&s);
    close_source(&s);
    return KNEE_OK;
}

/* ---- Logs ---- */

/* What a damaged gzip still gave is in the log; *damage says so, NULL: nothing was wrong. */
static knee_status read_train_log(struct source *s, const char *name, struct knee_train_log *out,
                                  const char **damage, struct knee_err *err)
{
    struct knee_train_reader *reader = knee_train_begin(knee_ask_input_name(name), s->alloc);
    if (!reader)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    do
        knee_train_push(reader, s->piece, s->size);
    while (fill(s) > 0);
    *damage = knee_gunzip_trouble(s->gunzip);
    bool memory = *damage && strcmp(*damage, "out of memory") == 0;
    if (!s->failed && !memory)
        return knee_train_end(reader, out, err);
    knee_train_abandon(reader);
    return memory ? knee_fail(err, KNEE_SYSTEM, name, "out of memory")
                  : knee_fail(err, KNEE_INPUT, name, "cannot be read");
}

knee_status knee_ask_train_log(struct knee_ask *ask, const char *name, struct knee_train_log *out,
                               struct knee_err *err)
{
    struct source s;
    knee_status status = open_source(ask, name, &s, err);
    if (status)
        return status;
    const char *damage = NULL;
    status = read_train_log(&s, name, out, &damage, err);
    if (!status && damage) {
        knee_train_log_release(out);
        status = knee_fail(err, KNEE_INPUT, name, "cannot be unpacked: %.100s", damage);
    }
    close_source(&s);
    return status;
}

/* ---- Rows ---- */

static struct knee_scale_row *new_row(struct knee_ask_measured *m, const char *name)
{
    struct knee_scale_row *row = &m->rows[m->row_count++];
    memset(row, 0, sizeof *row);
    knee_format(row->source, sizeof row->source, "%s", name);
    row->workers = row->step_s = row->p95_s = row->batch = row->error = NAN;
    row->tokens_per_s = row->ratio = row->gamma = row->replica = NAN;
    return row;
}

/* A log that is not timed has losses for the batch fit, and no row of the curve. */
static void add_log(struct knee_ask_measured *m, const struct knee_train_log *read, double workers)
{
    struct knee_train_log *log = &m->logs[m->log_count++];
    *log = *read;
    if (!isnan(workers)) {
        log->workers = workers;
        log->workers_from = "the command line";
    }
    if (log->timing == KNEE_TIMED_NOT) {
        knee_text_printf(&m->complaints, "  %s: losses, but nothing says how long a step takes\n",
                         log->name);
        return;
    }
    struct knee_scale_row *row = new_row(m, log->name);
    row->workers = log->workers;
    row->step_s = log->median_s;
    row->p95_s = log->p95_s;
    row->error = log->error;
    row->batch = log->batch;
    row->tokens_per_s = log->tokens_per_s;
    row->log = log;
}

static knee_status read_log(struct knee_ask_measured *m, struct source *s, const char *name,
                            double workers, struct knee_err *err)
{
    struct knee_train_log log = {.timing = KNEE_TIMED_NOT, .workers = NAN};
    const char *damage = NULL;
    knee_status status = read_train_log(s, name, &log, &damage, err);
    if (status)
        return status;
    if (damage) {
        m->refused++;
        knee_text_printf(&m->complaints, "  %s: %s; what was read before that is used\n", log.name,
                         damage);
    }
    add_log(m, &log, workers);
    return KNEE_OK;
}

/* The rest of a table after its first piece. */
static knee_status whole_table(struct source *s, const char *name, struct knee_text *out,
                               struct knee_err *err)
{
    do
        knee_text_add(out, s->piece, s->size);
    while (out->length <= LARGEST_TABLE && fill(s) > 0);
    if (out->failed)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    if (out->length > LARGEST_TABLE)
        return knee_fail(err, KNEE_INPUT, name, "larger than %zu bytes", LARGEST_TABLE);
    return KNEE_OK;
}

static knee_status read_table(struct knee_ask_measured *m, struct source *s, const char *word,
                              const char *curve, struct knee_err *err)
{
    struct knee_text table = {.alloc = s->alloc};
    const char *name = knee_ask_input_name(word);
    size_t count = 0, refused = 0;
    knee_status status = whole_table(s, word, &table, err);
    if (!status)
        status = knee_scale_table_read(
            (struct knee_named_text){table.data ? table.data : "", table.length, name}, curve,
            &(struct knee_scale_table){m->rows + m->row_count, KNEE_SCALE_ROWS - m->row_count,
                                       &count, &refused},
            err);
    knee_text_release(&table);
    if (status)
        return status;
    m->row_count += count;
    m->refused += refused;
    if (refused)
        knee_text_printf(&m->complaints, "  %s: %zu rows without a GPU count or a step\n", name,
                         refused);
    return KNEE_OK;
}

static knee_status read_jobs(struct knee_ask_measured *m, struct source *s, const char *word,
                             struct knee_err *err)
{
    struct knee_text table = {.alloc = s->alloc};
    knee_status status = whole_table(s, word, &table, err);
    size_t left_out = m->jobs.left_out;
    if (!status)
        status = knee_sched_read(
            (struct knee_named_text){table.data, table.length, knee_ask_input_name(word)}, &m->jobs,
            err);
    knee_text_release(&table);
    if (m->jobs.left_out > left_out)
        knee_text_printf(&m->complaints, "  %s: %zu jobs past the limit\n",
                         knee_ask_input_name(word), m->jobs.left_out - left_out);
    return status;
}

/* What the scheduler says of the logs' jobs. */
static void join_jobs(struct knee_ask_measured *m)
{
    for (size_t i = 0; i < m->log_count; i++)
        knee_sched_join(&m->jobs, &m->logs[i]);
    for (size_t i = 0; i < m->row_count; i++)
        if (m->rows[i].log && isnan(m->rows[i].workers))
            m->rows[i].workers = m->rows[i].log->workers;
}

/* ---- Traces ---- */

static knee_status add_account(struct knee_ask_measured *m, struct knee_account *account,
                               const char *word, double workers, struct knee_err *err)
{
    struct knee_diagnosis d;
    bool steps = false;
    knee_job_init(&d.inputs);
    for (size_t i = 0; i < account->step_count; i++)
        steps = steps || account->steps[i].number >= 0;
    if (!steps)
        return knee_fail(err, KNEE_INPUT, word, "the trace has no steps to time");
    knee_status status = knee_diagnose(account, &d.inputs, m->alloc, &d, err);
    if (status)
        return status;
    struct knee_scale_row *row = new_row(m, "");
    knee_scale_row_of_run(account, &d, knee_base_name(word), row);
    row->workers = isnan(workers) ? row->workers : workers;
    return KNEE_OK;
}

static knee_status add_traces(struct knee_ask_measured *m, const struct knee_trace *traces,
                              size_t count, const char *word, double workers, struct knee_err *err)
{
    struct knee_account account;
    knee_status status = knee_account(traces, count, m->alloc, &account, err);
    if (status)
        return status;
    status = account.rank_count ? add_account(m, &account, word, workers, err)
                                : knee_fail(err, KNEE_INPUT, word, "the trace has no GPU work");
    knee_account_release(&account);
    return status;
}

static knee_status read_trace(struct knee_ask_measured *m, struct source *s, const char *word,
                              double workers, struct knee_err *err)
{
    struct knee_trace trace;
    struct knee_reader reader = {read_source, s};
    knee_status status = knee_trace_read(reader, word, NULL, m->alloc, &trace, err);
    if (status)
        return status;
    status = add_traces(m, &trace, 1, word, workers, err);
    knee_trace_release(&trace);
    return status;
}

/* ---- Words ---- */

double knee_ask_said_workers(const char **word)
{
    const char *end;
    double count = knee_decimal_parse(*word, &end);
    if (end == *word || *end != '=' || !(count >= 1 && count <= KNEE_WORKERS_MAX))
        return NAN;
    *word = end + 1;
    return count;
}

/* Traces that were pushed under the name of word `number`, or that the program read for it. */
static knee_status take_pushed(struct knee_ask_question *q, size_t number,
                               struct knee_ask_measured *m, bool *there, struct knee_err *err)
{
    const char *word = q->words[number];
    double workers = knee_ask_said_workers(&word);
    struct knee_ask_told told;
    struct knee_err none = {0};
    knee_status status = knee_ask_pick(q->ask, &word, 1, number, &told, &none);
    *there = status != KNEE_INPUT;
    if (status == KNEE_INPUT)
        return KNEE_OK;
    if (status)
        return knee_fail(err, status, none.where, "%s", none.what);
    status = knee_ask_one_run(&told, word, err);
    if (!status)
        status = add_traces(m, told.traces, told.count, word, workers, err);
    knee_ask_told_release(&told);
    return status;
}

static knee_status read_word(struct knee_ask_question *q, size_t number, const char *curve,
                             struct knee_ask_measured *m, struct knee_err *err)
{
    const char *word = q->words[number];
    double workers = knee_ask_said_workers(&word);
    struct source s;
    bool pushed = false;
    if (m->row_count == KNEE_SCALE_ROWS || m->log_count == KNEE_SCALE_ROWS)
        return knee_fail(err, KNEE_USAGE, "", "more than %d runs", KNEE_SCALE_ROWS);
    knee_status status = take_pushed(q, number, m, &pushed, err);
    if (pushed || status)
        return status;
    status = open_source(q->ask, word, &s, err);
    if (status)
        return status;
    status = is_trace(&s)   ? read_trace(m, &s, word, workers, err)
             : is_jobs(&s)  ? read_jobs(m, &s, word, err)
             : is_table(&s) ? read_table(m, &s, word, curve, err)
                            : read_log(m, &s, word, workers, err);
    close_source(&s);
    return status;
}

knee_status knee_ask_measured_read(struct knee_ask_question *q, const char *curve,
                                   struct knee_ask_measured *m, struct knee_err *err)
{
    m->alloc = m->complaints.alloc = m->jobs.alloc = knee_ask_alloc(q->ask);
    for (size_t i = 0; i < q->word_count; i++) {
        struct knee_err one = {0};
        knee_status status = read_word(q, i, curve, m, &one);
        if (status && (status != KNEE_INPUT || q->word_count == 1)) {
            if (err)
                *err = one;
            return status;
        }
        if (!status)
            continue;
        m->refused++;
        knee_text_printf(&m->complaints, "  %s: %s%s%s\n", one.where, one.what,
                         one.hint[0] ? "; " : "", one.hint);
    }
    if (m->complaints.failed)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    join_jobs(m);
    if (q->word_count > 0 && m->row_count == 0 && m->log_count == 0 && m->jobs.count == 0) {
        knee_fail(err, KNEE_INPUT, "", "none of the %zu files can be used", q->word_count);
        knee_hint(err, "%.200s", m->complaints.data ? m->complaints.data + 2 : "");
        return KNEE_INPUT;
    }
    return KNEE_OK;
}

void knee_ask_measured_release(struct knee_ask_measured *m)
{
    for (size_t i = 0; i < m->log_count; i++)
        knee_train_log_release(&m->logs[i]);
    knee_text_release(&m->complaints);
    knee_sched_release(&m->jobs);
    m->log_count = m->row_count = 0;
}

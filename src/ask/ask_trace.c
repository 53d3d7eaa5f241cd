/* SPDX-License-Identifier: MIT */
/* trace: what recorded steps say, of one run or of several. */
#include "ask/ask_trace.h"

#include "ask/ask_measured.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/text.h"
#include "judge/judge.h"
#include "out/words.h"
#include "timeline/where.h"

#include <math.h>
#include <string.h>

static const char *const levers_words[] = {"auto", "replay", "closed"};
KNEE_WORDS(knee_ask_levers_names, "way to find levers", levers_words);

#define OPTION(key_name, key_kind, field, absent, words)                                           \
    {                                                                                              \
        .name = key_name, .kind = key_kind,                                                        \
        .offset = offsetof(struct knee_ask_trace_options, field), .group = "Trace",                \
        .otherwise = absent, .help = words                                                         \
    }
#define GATE(name, field, unit, high, words)                                                       \
    KNEE_NUMBER(struct knee_ask_trace_options, name, field, unit, 0, high, "Trace", "no gate",     \
                words)

static const struct knee_key rows[] = {
    OPTION("perfetto", KNEE_KEY_WORD, perfetto, "none",
           "write all ranks, aligned and labelled, as one trace for ui.perfetto.dev"),
    OPTION("chakra", KNEE_KEY_WORD, chakra, "none",
           "write each rank as a Chakra execution trace: PREFIX.RANK.et"),
    OPTION("names", KNEE_KEY_SWITCH, names, "",
           "list the names of the work and what each was taken for"),
    OPTION("patterns", KNEE_KEY_WORD, patterns, "the built-in ones",
           "more names of communication: lines of WORD KIND [OPERATION]"),
    OPTION("noise", KNEE_KEY_WORD, noise, "none",
           "gradient norms: lines of BATCH,SQUARED_NORM at two batch sizes or more"),
    GATE("max-ratio", max_ratio, KNEE_UNIT_FACTOR, 1e9, "exit with 1 when R is above this"),
    GATE("min-overlap", min_overlap, KNEE_UNIT_FRACTION, 1,
         "exit with 1 when less of communication than this is hidden"),
    KNEE_CHOICE(struct knee_ask_trace_options, "levers", levers, knee_ask_levers_names, "Trace",
                "auto",
                "from where: replay of the timeline, closed forms, or auto: replay up to 800 MB"),
    OPTION("where", KNEE_KEY_SWITCH, where, "",
           "each collective, kernels, modules, gaps of the host, critical path; reads slower"),
    OPTION("strict", KNEE_KEY_SWITCH, strict, "", "exit with 3 when anything was lost"),
};

static const struct knee_keys trace_keys = KNEE_KEY_TABLE(rows, struct knee_ask_trace_options);

/* What is worth saying about a job beside its trace. */
static const char *const job_keys[] = {
    "params", "bytes-per-param", "global-batch", "local-batch",    "gpu",       "cluster", "price",
    "power",  "idle-power",      "steps",        "critical-batch", "tolerance", NULL};

/* ---- One run ---- */

static knee_status account(const struct knee_ask_work *work, struct knee_ask_told *told,
                           struct knee_err *err)
{
    if (work && work->account)
        return work->account(work->ctx, told->traces, told->count, told->holders, &told->account,
                             err);
    return knee_account(told->traces, told->count, told->alloc, &told->account, err);
}

knee_status knee_ask_diagnose(const struct knee_ask_work *work, const struct knee_job *job,
                              bool expect, struct knee_ask_told *told, struct knee_err *err)
{
    knee_status status = account(work, told, err);
    if (status || (work && work->silent))
        return status;
    if (expect && job->hw.cluster.level_count > 0)
        knee_expect_collectives(&told->account, &job->hw.cluster);
    else if (expect)
        knee_expect_of_gpus(&told->account);
    return knee_diagnose(&told->account, job, told->alloc, &told->diagnosis, err);
}

/* Will a lever be shown? Of the whole answer always, of a brief one when its sentence has one; a
 * table of ranks or of runs has none. */
static bool shows_lever(const struct knee_ask_question *q, const struct knee_ask_told *told,
                        bool one)
{
    for (size_t i = 0; i < 2 && q->outs[i].text; i++) {
        enum knee_format format = ASK_FORMAT(q->outs[i]);
        if (format == KNEE_JSON || (one && format != KNEE_CSV && !q->style.brief))
            return true;
        if (one && format != KNEE_CSV && knee_diagnosis_says_lever(&told->diagnosis))
            return true;
    }
    return false;
}

/* Levers from the timeline, where they are shown and it can be replayed here. */
static knee_status find_levers(const struct knee_ask_question *q, bool one,
                               struct knee_ask_told *told, struct knee_err *err)
{
    const struct knee_ask_trace_options *options = q->objects[0];
    if (knee_ask_silent(q) || options->levers == KNEE_ASK_CLOSED || !shows_lever(q, told, one))
        return KNEE_OK;
    return knee_replay_levers(&told->account, options->levers == KNEE_ASK_REPLAY, told->alloc,
                              &told->diagnosis, err);
}

/* ---- Gates ---- */

/* The gates that the user set. What cannot be evaluated has not passed. */
static knee_status check_gates(const struct knee_ask_trace_options *options,
                               const struct knee_diagnosis *d, struct knee_err *err)
{
    if (!isnan(options->max_ratio) && isnan(d->ratio))
        return knee_fail(err, KNEE_GATE, "--max-ratio",
                         "R cannot be told: there is no compute in these traces");
    if (d->ratio > options->max_ratio)
        return knee_fail(err, KNEE_GATE, "--max-ratio", "R = %.4g > %.4g", d->ratio,
                         options->max_ratio);
    if (!isnan(options->min_overlap) && isnan(d->overlap))
        return knee_fail(err, KNEE_GATE, "--min-overlap",
                         "overlap cannot be told: there is no communication in these traces");
    if (d->overlap < options->min_overlap)
        return knee_fail(err, KNEE_GATE, "--min-overlap", "overlap %.4g < %.4g", d->overlap,
                         options->min_overlap);
    return KNEE_OK;
}

static bool lost_something(const struct knee_ask_question *q, const struct knee_ask_told *told)
{
    bool lost =
        told->repeats > 0 || told->account.further > 0 || (q->work && q->work->left_out > 0);
    for (size_t t = 0; t < told->count; t++)
        for (int k = 0; k < KNEE_LOSSES; k++)
            lost = lost ||
                   (told->traces[t].losses[k].count && knee_loss_is_lost((enum knee_loss_kind)k));
    return lost;
}

/* What was asked for is there, but not of all that was given. */
static knee_status check_strict(const struct knee_ask_question *q, const struct knee_ask_told *told,
                                struct knee_err *err)
{
    const struct knee_ask_trace_options *options = q->objects[0];
    if (!options->strict || (q->work && q->work->interrupted) || !lost_something(q, told))
        return KNEE_OK;
    return knee_fail(err, KNEE_INPUT, "--strict",
                     "some of the input was not used: see what was lost");
}

/* ---- The answer, of one run and of several ---- */

/* What was refused belongs to no run: the first one tells it. */
static struct knee_trace_report report_of(const struct knee_ask_question *q,
                                          const struct knee_ask_told *told, bool first)
{
    bool refused = first && q->work;
    return (struct knee_trace_report){.traces = told->traces,
                                      .trace_count = told->count,
                                      .account = &told->account,
                                      .diagnosis = &told->diagnosis,
                                      .refused = refused ? q->work->refused : NULL,
                                      .refused_count = refused ? q->work->refused_count : 0};
}

static knee_status answer_one(struct knee_ask_question *q, struct knee_ask_told *told,
                              struct knee_err *err)
{
    const struct knee_ask_trace_options *options = q->objects[0];
    knee_status status = knee_ask_diagnose(q->work, q->objects[1], true, told, err);
    if (!status)
        status = find_levers(q, true, told, err);
    if (status || knee_ask_silent(q))
        return status;
    struct knee_where where = {0};
    struct knee_trace_report report = report_of(q, told, true);
    report.where = options->where ? &where : NULL;
    if (options->where)
        status = knee_find_where(&told->account, told->alloc, &where, err);
    if (status)
        return status;
    if (options->where)
        knee_judge_where(&told->diagnosis, &where);
    if (options->names)
        ASK_WRITE(q, knee_write_names, &report);
    else
        ASK_WRITE(q, knee_write_trace, &report);
    knee_where_release(&where);
    q->answered = true;
    if (options->perfetto)
        status = knee_ask_perfetto(q->ask, options->perfetto, &told->account, err);
    if (!status)
        status = check_gates(options, &told->diagnosis, err);
    return status ? status : check_strict(q, told, err);
}

/* The rows of one run. */
static knee_status split(const struct knee_ask_told *all, size_t job, struct knee_ask_told *run,
                         struct knee_err *err)
{
    *run = (struct knee_ask_told){.alloc = all->alloc};
    run->traces = knee_resize(all->alloc, NULL, (all->count + 1) * sizeof *run->traces);
    run->holders = knee_resize(all->alloc, NULL, (all->count + 1) * sizeof *run->holders);
    if (!run->traces || !run->holders)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    for (size_t t = 0; t < all->count; t++)
        if (all->jobs[t] == job) {
            run->holders[run->count] = all->holders ? all->holders[t] : 0;
            run->traces[run->count++] = all->traces[t];
        }
    return KNEE_OK;
}

/* Every process takes part in every run, with what it holds of it: a failure of one does not keep
 * the others from theirs. */
static knee_status tell_all(struct knee_ask_question *q, const struct knee_ask_told *all,
                            struct knee_ask_told *runs, struct knee_err *err)
{
    knee_status status = KNEE_OK;
    for (size_t j = 0; j < all->job_count; j++) {
        struct knee_err why = {.status = KNEE_OK};
        knee_status now = split(all, j, &runs[j], &why);
        if (!now)
            now = knee_ask_diagnose(q->work, q->objects[1], true, &runs[j], &why);
        if (!now)
            now = find_levers(q, false, &runs[j], &why);
        if (now && !status && err)
            *err = why;
        status = status ? status : now;
    }
    return status;
}

/* Several world sizes of one kind of GPU, each with steps, are a curve. */
static bool is_curve(const struct knee_ask_told *runs, size_t count)
{
    bool worlds = false, good = count <= KNEE_SCALE_ROWS;
    for (size_t j = 0; j < count && good; j++) {
        const struct knee_account *account = &runs[j].account, *first = &runs[0].account;
        worlds = worlds || account->world_size != first->world_size;
        good = account->world_size > 0 && account->step_source != KNEE_STEPS_NONE &&
               strcmp(account->ranks[0].trace->gpu_name, first->ranks[0].trace->gpu_name) == 0;
    }
    return good && worlds;
}

/* The curve as knee scale judges it. *curve is NULL where there is none; the caller frees its rows.
 */
static knee_status make_curve(const struct knee_ask_question *q, const struct knee_ask_told *runs,
                              size_t count, struct knee_scale_answer *room,
                              const struct knee_scale_answer **curve, struct knee_err *err)
{
    const struct knee_job *job = q->objects[1];
    struct knee_ask_said said;
    if (!is_curve(runs, count))
        return KNEE_OK;
    knee_ask_said_init(&said);
    *room = (struct knee_scale_answer){
        .question = {.tolerance = isnan(job->tolerance) ? 0.8 : job->tolerance,
                     .tokens = NAN,
                     .price_per_hour = NAN,
                     .at_batch = NAN,
                     .symptoms = {NAN, NAN, NAN, NAN, false}},
        .rows = knee_resize(knee_ask_alloc(q->ask), NULL, (count + 1) * sizeof *room->rows),
        .row_count = count};
    if (!room->rows)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the curve");
    for (size_t j = 0; j < count; j++) {
        knee_scale_row_of_run(&runs[j].account, &runs[j].diagnosis,
                              knee_ask_base_name(runs[j].traces[0].file), &room->rows[j]);
        knee_ask_model_row(&said, &room->rows[j], NULL);
    }
    if (knee_scale_judge(room, err) == KNEE_OK)
        *curve = room;
    return KNEE_OK; /* more counts than a curve has: the runs are told all the same */
}

static knee_status write_runs(struct knee_ask_question *q, const struct knee_ask_told *runs,
                              struct knee_trace_report *reports, size_t count, struct knee_err *err)
{
    struct knee_scale_answer room = {.rows = NULL};
    const struct knee_scale_answer *curve = NULL;
    knee_status status = make_curve(q, runs, count, &room, &curve, err);
    if (status)
        return status;
    for (size_t j = 0; j < count; j++)
        reports[j] = report_of(q, &runs[j], j == 0);
    ASK_WRITE(q, knee_write_runs, reports, count, curve);
    knee_resize(knee_ask_alloc(q->ask), room.rows, 0);
    q->answered = true;
    return KNEE_OK;
}

/* Files of several runs are told apart and accounted one by one. */
static knee_status answer_runs(struct knee_ask_question *q, const struct knee_ask_told *all,
                               struct knee_err *err)
{
    const struct knee_ask_trace_options *options = q->objects[0];
    if (options->perfetto || options->chakra || options->names || q->outs[1].text) {
        knee_fail(err, KNEE_INPUT, "", "these are traces of %zu runs", all->job_count);
        knee_hint(err, "name the files of one run for --perfetto, --chakra, --names or --html");
        return KNEE_INPUT;
    }
    struct knee_ask_told *runs = knee_resize(all->alloc, NULL, all->job_count * sizeof *runs);
    struct knee_trace_report *reports =
        knee_resize(all->alloc, NULL, all->job_count * sizeof *reports);
    if (runs)
        memset(runs, 0, all->job_count * sizeof *runs); /* released whatever comes */
    knee_status status = KNEE_SYSTEM;
    if (runs && reports)
        status = tell_all(q, all, runs, err);
    else
        knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    if (!status && !knee_ask_silent(q)) {
        status = write_runs(q, runs, reports, all->job_count, err);
        for (size_t j = 0; j < all->job_count && !status; j++)
            status = check_gates(options, &runs[j].diagnosis, err);
        status = status ? status : check_strict(q, all, err);
    }
    for (size_t j = 0; runs && j < all->job_count; j++)
        knee_ask_told_release(&runs[j]);
    knee_resize(all->alloc, runs, 0);
    knee_resize(all->alloc, reports, 0);
    return status;
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    const struct knee_ask_trace_options *options = q->objects[0];
    struct knee_job *job = q->objects[1];
    struct knee_ask_pushed *pushed = knee_ask_pushed_of(q->ask);
    struct knee_ask_told *told = &pushed->last;
    knee_ask_told_release(told);
    if (options->patterns && !pushed->patterns.rows) {
        knee_fail(err, KNEE_USAGE, "--patterns", "the traces are read already");
        knee_hint(err, "call knee_push_patterns() before they are pushed");
        return KNEE_USAGE;
    }
    if (options->chakra && !q->work) {
        knee_fail(err, KNEE_USAGE, "--chakra", "only the program writes these files");
        knee_hint(err, "call knee_chakra_begin() and knee_chakra_write()");
        return KNEE_USAGE;
    }
    knee_status status = KNEE_OK;
    if (options->noise)
        status = knee_ask_noise(q->ask, options->noise, &job->critical_batch, err);
    if (!status)
        status = knee_ask_pick(q->ask, q->words, q->word_count, 0, told, err);
    if (status)
        return status;
    return told->job_count > 1 ? answer_runs(q, told, err) : answer_one(q, told, err);
}

struct trace_room {
    struct knee_ask_trace_options options;
    struct knee_job job;
};

static void init(void *room, void **objects)
{
    struct trace_room *all = room;
    knee_keys_clear(&trace_keys, &all->options);
    all->options.levers = KNEE_ASK_AUTO;
    knee_job_init(&all->job);
    objects[0] = &all->options;
    objects[1] = &all->job;
}

const struct knee_ask_command knee_ask_trace = {
    .name = "trace",
    .keys = {&trace_keys, &knee_job_keys},
    .only = {NULL, job_keys},
    .most_words = ASK_WORDS,
    .operands = "DIR|FILE...",
    .size = sizeof(struct trace_room),
    .init = init,
    .answer = answer,
};

/* SPDX-License-Identifier: MIT */
/* trace: what recorded steps say, of one run or of several. */
#include "ask/ask_trace.h"

#include "ask/ask_measured.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/slice.h"
#include "base/text.h"
#include "judge/judge.h"
#include "judge/work_names.h"
#include "out/answer.h"
#include "say/answers.h"
#include "timeline/where.h"

#include <math.h>
#include <string.h>

static const char *const levers_words[] = {"auto", "replay", "closed"};
KNEE_WORDS(knee_ask_levers_names, "way to price changes", levers_words);

#define OPTION(key_name, key_kind, field, absent, words)                                           \
    KNEE_OPTION(struct knee_ask_trace_options, key_name, key_kind, field, "Trace", absent,         \
                KNEE_OFF_PAGE(words))
#define GATE(name, field, unit, high, words)                                                       \
    KNEE_NUMBER(struct knee_ask_trace_options, name, field, unit, 0, high, "Trace", "off",         \
                KNEE_OFF_PAGE(words))

static const struct knee_key rows[] = {
    OPTION("perfetto", KNEE_KEY_WORD, perfetto, "none",
           "write all ranks as one labelled trace for ui.perfetto.dev"),
    OPTION("chakra", KNEE_KEY_WORD, chakra, "none",
           "write each rank as a Chakra trace PREFIX.RANK.et; FILE is the prefix"),
    OPTION("names", KNEE_KEY_SWITCH, names, "",
           "list the kernel names and how each was classified"),
    OPTION("patterns", KNEE_KEY_WORD, patterns, "built-in names",
           "file with more names of communication kernels, lines of WORD KIND [OPERATION]"),
    OPTION(
        "noise", KNEE_KEY_WORD, noise, "none",
        "file with lines BATCH,SQUARED_NORM at two or more batch sizes: gives the critical batch"),
    GATE("max-ratio", max_ratio, KNEE_UNIT_FACTOR, 1e9,
         "exit with status 1 if exposed communication divided by compute (R) is above this"),
    GATE("min-overlap", min_overlap, KNEE_UNIT_FRACTION, 1,
         "exit with status 1 if less of the communication is overlapped"),
    KNEE_CHOICE(struct knee_ask_trace_options, "levers", levers, knee_ask_levers_names, "Trace",
                "auto",
                KNEE_OFF_PAGE("how changes are estimated: replay, closed forms, or auto (replay up "
                              "to 800 MB)")),
    OPTION("where", KNEE_KEY_SWITCH, where, "",
           "show where: collectives, kernels, modules, host gaps, critical path"),
    OPTION("strict", KNEE_KEY_SWITCH, strict, "",
           "exit with status 3 if anything could not be read"),
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

/* Will a change be shown? The first line of one run's answer is one; a table of ranks has none. */
static bool shows_lever(const struct knee_ask_question *q, bool one)
{
    for (size_t i = 0; i < 2 && q->outs[i].text; i++) {
        enum knee_format format = ASK_FORMAT(q->outs[i]);
        if (format == KNEE_JSON || (one && format != KNEE_CSV))
            return true;
    }
    return false;
}

/* Prices of changes by replay, when they are shown and this timeline can be replayed. */
static knee_status find_levers(const struct knee_ask_question *q, bool one,
                               struct knee_ask_told *told, struct knee_err *err)
{
    const struct knee_ask_trace_options *options = q->objects[0];
    if (knee_ask_silent(q) || options->levers == KNEE_ASK_CLOSED || !shows_lever(q, one))
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
                         "R is unknown: these traces contain no compute");
    if (d->ratio > options->max_ratio)
        return knee_fail(err, KNEE_GATE, "--max-ratio", "R = %.4g > %.4g", d->ratio,
                         options->max_ratio);
    if (!isnan(options->min_overlap) && isnan(d->overlap))
        return knee_fail(err, KNEE_GATE, "--min-overlap",
                         "overlap is unknown: these traces contain no communication");
    if (d->overlap < options->min_overlap)
        return knee_fail(err, KNEE_GATE, "--min-overlap", "overlap %.4g < %.4g", d->overlap,
                         options->min_overlap);
    return KNEE_OK;
}

static bool lost_something(const struct knee_ask_question *q, const struct knee_ask_told *told)
{
    bool lost =
        told->unused_count > 0 || told->account.further > 0 || (q->work && q->work->left_out > 0);
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

/* Files that were refused before join those that were left out here. */
static knee_status take_refused(const struct knee_ask_work *work, struct knee_ask_told *told,
                                struct knee_err *err)
{
    size_t more = work ? work->refused_count : 0;
    struct knee_refused_file *all =
        more ? knee_resize(told->alloc, told->unused,
                           (told->unused_count + more) * sizeof *told->unused)
             : told->unused;
    if (more && !all)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    told->unused = all;
    for (size_t i = 0; i < more; i++)
        told->unused[told->unused_count++] = work->refused[i];
    return KNEE_OK;
}

/* A file that was left out belongs to no run: `unused` is NULL for all but the first. */
static struct knee_trace_report report_of(const struct knee_ask_told *told,
                                          const struct knee_ask_told *unused)
{
    return (struct knee_trace_report){.traces = told->traces,
                                      .trace_count = told->count,
                                      .account = &told->account,
                                      .diagnosis = &told->diagnosis,
                                      .refused = unused ? unused->unused : NULL,
                                      .refused_count = unused ? unused->unused_count : 0};
}

static knee_status write_names(struct knee_ask_question *q, const struct knee_trace_report *report,
                               struct knee_err *err)
{
    const struct knee_alloc *alloc = knee_ask_alloc(q->ask);
    struct knee_work_names names;
    if (!knee_work_names_sum(report->traces, report->trace_count, alloc, &names))
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    ASK_ANSWER(q, &knee_names_answer, &names);
    knee_resize(alloc, names.rows, 0);
    return KNEE_OK;
}

/* What the next command is given: the file, or the folder that the user named; nothing where there
 * are more files than that, or the name is too long for a line. */
static void name_files(const struct knee_ask_question *q, const struct knee_ask_told *told,
                       struct knee_text *text)
{
    const char *first = told->count ? told->traces[0].file : "", *slash = strrchr(first, '/');
    size_t folder = slash ? (size_t)(slash - first) : 0, length = strlen(first);
    bool alone = true, named = false;
    for (size_t i = 1; i < told->count; i++) {
        const char *file = told->traces[i].file;
        alone = alone && strcmp(file, first) == 0;
        if (strncmp(file, first, folder) != 0 || file[folder] != '/')
            folder = 0;
    }
    for (size_t i = 0; i < q->word_count && folder; i++)
        named = named || (strncmp(q->words[i], first, folder) == 0 &&
                          strspn(q->words[i] + folder, "/") == strlen(q->words[i] + folder));
    length = alone ? length : named ? folder : 0;
    if (length > 0 && length <= 60)
        knee_text_add(text, first, length);
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
    struct knee_trace_report report = report_of(told, told);
    report.where = options->where ? &where : NULL;
    struct knee_rank_step *per_step = NULL;
    struct knee_idle_gaps gaps;
    struct knee_text asked = {.alloc = told->alloc};
    name_files(q, told, &asked);
    report.asked = asked.data;
    status = knee_rank_steps(&told->account, &told->diagnosis, told->alloc, &per_step, err);
    if (!status && options->where)
        status = knee_find_where(&told->account, told->alloc, &where, err);
    report.per_step = per_step;
    knee_list_idle_gaps(&told->account, told->diagnosis.step.wall_s, &gaps);
    /* Scopes come with the host's events, which the program does not read for closed forms. */
    for (size_t i = 0; i < gaps.count && options->levers == KNEE_ASK_CLOSED && !options->where; i++)
        gaps.rows[i].annotation = gaps.rows[i].module = NULL;
    report.gaps = &gaps;
    if (!status && options->where)
        knee_judge_where(&told->diagnosis, &where);
    if (!status && options->names)
        status = write_names(q, &report, err);
    else if (!status)
        ASK_ANSWER(q, &knee_trace_answer, &report);
    knee_where_release(&where);
    knee_resize(told->alloc, per_step, 0);
    knee_text_release(&asked);
    if (status)
        return status;
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

/* The same job at another count runs as many kernels in a step, and where it exchanges gradients,
 * as many bytes. */
static bool same_job(const struct knee_ask_told *a, const struct knee_ask_told *b)
{
    double kernels[] = {knee_step_kernels(&a->diagnosis), knee_step_kernels(&b->diagnosis)};
    double bytes[] = {knee_step_traffic(&a->account, &a->diagnosis),
                      knee_step_traffic(&b->account, &b->diagnosis)};
    bool talk = bytes[0] > 0 && bytes[1] > 0;
    return fabs(kernels[0] - kernels[1]) <= 0.1 * fmax(kernels[0], kernels[1]) &&
           (!talk || fabs(bytes[0] - bytes[1]) <= 0.05 * fmax(bytes[0], bytes[1]));
}

/* Runs of one count that differ by more than noise are experiments, not points of a curve. */
static bool is_repeat(const struct knee_ask_told *runs, size_t row)
{
    for (size_t j = 0; j < row; j++) {
        double here = runs[row].diagnosis.step.wall_s, there = runs[j].diagnosis.step.wall_s;
        if (runs[j].account.world_size == runs[row].account.world_size &&
            fabs(here - there) > 0.2 * fmax(here, there))
            return false;
    }
    return true;
}

/* Several world sizes of one job on one kind of GPU, each with steps, are a curve. */
static bool is_curve(const struct knee_ask_told *runs, size_t count)
{
    bool worlds = false, good = count <= KNEE_SCALE_ROWS;
    for (size_t j = 0; j < count && good; j++) {
        const struct knee_account *account = &runs[j].account, *first = &runs[0].account;
        worlds = worlds || account->world_size != first->world_size;
        good = account->world_size > 0 && account->step_source != KNEE_STEPS_NONE &&
               strcmp(account->ranks[0].trace->gpu_name, first->ranks[0].trace->gpu_name) == 0 &&
               same_job(&runs[j], &runs[0]) && is_repeat(runs, j);
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
                              knee_base_name(runs[j].traces[0].file), &room->rows[j]);
        knee_ask_model_row(&said, &room->rows[j], NULL);
    }
    if (knee_scale_judge(room, err) == KNEE_OK)
        *curve = room;
    return KNEE_OK; /* more counts than a curve holds: the runs are still listed */
}

static void write_run_list(const struct knee_runs_report *report, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text)
{
    bool json = format == KNEE_JSON;
    if (json)
        knee_text_puts(text, "{\n  \"schema\": \"knee.runs/1\",\n");
    if (json && report->curve)
        knee_text_puts(text, "  \"curve\": ");
    if (report->curve && format != KNEE_CSV)
        knee_answer_write(&knee_scale_answer_type, report->curve, format, style, text);
    if (!json) {
        bool shown = report->curve && format == KNEE_TEXT && style->tier != KNEE_TIER_FULL;
        if (shown) /* the curve is the answer, and fills the screen */
            return;
        knee_answer_write(&knee_runs_answer, report, format, style, text);
        return;
    }
    knee_text_puts(text, report->curve ? "  ,\n  \"runs\": [\n" : "  \"runs\": [\n");
    for (size_t i = 0; i < report->count; i++) {
        knee_text_puts(text, i ? ",\n" : "");
        knee_answer_write(&knee_trace_answer, &report->runs[i], KNEE_JSON, style, text);
    }
    knee_text_puts(text, "  ]\n}\n");
}

static knee_status write_runs(struct knee_ask_question *q, const struct knee_ask_told *all,
                              const struct knee_ask_told *runs, struct knee_trace_report *reports,
                              struct knee_err *err)
{
    size_t count = all->job_count;
    struct knee_scale_answer room = {.rows = NULL};
    const struct knee_scale_answer *curve = NULL;
    knee_status status = make_curve(q, runs, count, &room, &curve, err);
    if (status)
        return status;
    for (size_t j = 0; j < count; j++)
        reports[j] = report_of(&runs[j], j == 0 ? all : NULL);
    struct knee_runs_report list = {.runs = reports, .count = count, .curve = curve};
    for (size_t j = 1; j < count; j++)
        list.worlds = list.worlds || runs[j].account.world_size != runs[0].account.world_size;
    ASK_WRITE(q, write_run_list, &list);
    knee_resize(knee_ask_alloc(q->ask), room.rows, 0);
    q->answered = true;
    return KNEE_OK;
}

/* Files of several runs are grouped by run, and each run is accounted alone. */
static knee_status answer_runs(struct knee_ask_question *q, const struct knee_ask_told *all,
                               struct knee_err *err)
{
    const struct knee_ask_trace_options *options = q->objects[0];
    if (options->perfetto || options->chakra || options->names || q->outs[1].text)
        return knee_fail_hint(
            err, KNEE_INPUT, "",
            "name the files of one run for --perfetto, --chakra, --names or --html",
            "these are traces of %zu runs", all->job_count);
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
        status = write_runs(q, all, runs, reports, err);
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
    if (options->patterns && !pushed->patterns.rows)
        return knee_fail_hint(err, KNEE_USAGE, "--patterns",
                              "call knee_push_patterns() before they are pushed",
                              "the traces are read already");
    if (options->chakra && !q->work)
        return knee_fail_hint(err, KNEE_USAGE, "--chakra",
                              "call knee_chakra_begin() and knee_chakra_write()",
                              "only the program writes these files");
    knee_status status = KNEE_OK;
    if (options->noise)
        status = knee_ask_noise(q->ask, options->noise, &job->critical_batch, err);
    if (!status)
        status = knee_ask_pick(q->ask, q->words, q->word_count, 0, told, err);
    if (!status)
        status = take_refused(q->work, told, err);
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

/* SPDX-License-Identifier: MIT */
/* knee trace: what a recorded step says. */
#include "ask/ask_trace.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/number.h"
#include "base/spell.h"
#include "cli/ranks.h"
#include "cli/traces.h"
#include "out/gzip_out.h"
#include "reach/shared_account.h"
#include "timeline/kinds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trace_options {
    const char *perfetto, *patterns, *noise;
    double max_ratio, min_overlap;
    bool strict;
    unsigned char source[KNEE_KEYS_MAX];
};

#define OPTION(key_name, key_kind, field, absent, words)                                           \
    {                                                                                              \
        .name = key_name, .kind = key_kind, .offset = offsetof(struct trace_options, field),       \
        .group = "Trace", .otherwise = absent, .help = words                                       \
    }

static const struct knee_key rows[] = {
    OPTION("perfetto", KNEE_KEY_WORD, perfetto, "none",
           "write all ranks, aligned and labelled, as one trace for ui.perfetto.dev"),
    OPTION("patterns", KNEE_KEY_WORD, patterns, "the built-in ones",
           "more names of communication: lines of WORD KIND [OPERATION]"),
    OPTION("noise", KNEE_KEY_WORD, noise, "none",
           "gradient norms: lines of BATCH,SQUARED_NORM at two batch sizes or more"),
    {.name = "max-ratio",
     .kind = KNEE_KEY_NUMBER,
     .unit = KNEE_UNIT_FACTOR,
     .min = 0,
     .max = 1e9,
     .offset = offsetof(struct trace_options, max_ratio),
     .group = "Trace",
     .otherwise = "no gate",
     .help = "exit with 1 when R is above this"},
    {.name = "min-overlap",
     .kind = KNEE_KEY_NUMBER,
     .unit = KNEE_UNIT_FRACTION,
     .min = 0,
     .max = 1,
     .offset = offsetof(struct trace_options, min_overlap),
     .group = "Trace",
     .otherwise = "no gate",
     .help = "exit with 1 when less of communication than this is hidden"},
    OPTION("strict", KNEE_KEY_SWITCH, strict, "", "exit with 3 when anything was lost"),
};

static const struct knee_keys trace_keys = KNEE_KEY_TABLE(rows, struct trace_options);

/* ---- Files of patterns and of gradient norms ---- */

enum { MOST_PATTERNS = 256 };

struct pattern_file {
    char *text;
    struct knee_pattern list[MOST_PATTERNS];
    size_t count;
};

static bool kind_named(const char *word, enum knee_span_kind *kind)
{
    static const char *const words[] = {[KNEE_SPAN_COMPUTE] = "compute",
                                        [KNEE_SPAN_COMM] = "comm",
                                        [KNEE_SPAN_FUSED] = "fused",
                                        [KNEE_SPAN_COPY] = "copy"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *kind = (enum knee_span_kind)i;
            return true;
        }
    return false;
}

/* A misspelt operation must not become an unknown one. */
static knee_status no_operation(const char *word, const char *where, struct knee_err *err)
{
    struct knee_nearest nearest = {.wanted = word};
    for (int op = KNEE_OP_BARRIER; op < KNEE_OPS; op++)
        knee_nearest_offer(&nearest, knee_op_name((enum knee_op)op));
    knee_fail(err, KNEE_INPUT, where, "there is no collective '%.40s'", word);
    if (nearest.name)
        knee_hint(err, "did you mean '%s'?", nearest.name);
    else
        knee_hint(err, "write all_reduce, broadcast, ...; or leave it out");
    return KNEE_INPUT;
}

static knee_status read_patterns(const char *name, struct pattern_file *out, struct knee_err *err)
{
    size_t length = 0, line = 0;
    knee_status status = cli_read_file(name, 1 << 20, &out->text, &length, err);
    char *rest = out->text, *next;
    for (; !status && rest && (next = strsep(&rest, "\n")); line++) {
        char where[128], *word, *kind, *op, *words = next;
        word = strtok_r(words, " \t\r", &words);
        if (!word || word[0] == '#')
            continue;
        kind = strtok_r(NULL, " \t\r", &words);
        op = strtok_r(NULL, " \t\r", &words);
        struct knee_pattern *pattern = &out->list[out->count];
        snprintf(where, sizeof where, "%.100s:%zu", name, line + 1);
        if (out->count == MOST_PATTERNS)
            return knee_fail(err, KNEE_INPUT, where, "more than %d patterns", MOST_PATTERNS);
        if (!kind || !kind_named(kind, &pattern->kind)) {
            status =
                knee_fail(err, KNEE_INPUT, where, "'%.40s' is no kind of work", kind ? kind : "");
            knee_hint(err, "write WORD and compute, comm, fused or copy");
        }
        pattern->word = word;
        pattern->op = op ? knee_op_spelt(op, strlen(op)) : KNEE_OP_UNKNOWN;
        if (!status && op && pattern->op == KNEE_OP_UNKNOWN)
            status = no_operation(op, where, err);
        out->count++;
    }
    return status;
}

/* E|G_B|^2 = |G|^2 + tr(Sigma)/B: a straight line in 1/B; its slope over its height at 0 is the
 * noise scale (McCandlish et al. 2018, appendix A.1), by least squares over all lines. */
static knee_status read_noise(const char *name, double *scale, struct knee_err *err)
{
    char *text = NULL;
    size_t length = 0;
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    knee_status status = cli_read_file(name, 1 << 20, &text, &length, err);
    if (status)
        return status;
    char *rest = text, *line;
    for (size_t number = 1; !status && rest && (line = strsep(&rest, "\n")); number++) {
        double batch, norm;
        if (line[0] == '\0' || line[0] == '#' ||
            (number == 1 && strpbrk(line, "abcdefghijklmnopqrstuvwxyz")))
            continue;
        if (sscanf(line, "%lf%*[, \t;]%lf", &batch, &norm) != 2 || !(batch > 0) || !(norm > 0) ||
            !isfinite(batch) || !isfinite(norm)) {
            char where[128];
            snprintf(where, sizeof where, "%.100s:%zu", name, number);
            status = knee_fail(err, KNEE_INPUT, where, "not a batch and a squared norm");
            knee_hint(err, "for example 32,0.081");
            break;
        }
        double x = 1 / batch;
        n++, sx += x, sy += norm, sxx += x * x, sxy += x * norm;
    }
    free(text);
    if (status)
        return status;
    double spread = n * sxx - sx * sx;
    if (n < 2 || !(spread > 1e-12 * n * sxx)) {
        knee_fail(err, KNEE_INPUT, name, "fewer than two batch sizes");
        knee_hint(err, "measure the gradient's squared norm at two batch sizes at least");
        return KNEE_INPUT;
    }
    double slope = (n * sxy - sx * sy) / spread, height = (sy - slope * sx) / n;
    if (!(slope > 0) || !(height > 0)) {
        knee_fail(err, KNEE_INPUT, name,
                  "the norms do not fall with the batch: no noise scale in them");
        knee_hint(err, "average over more steps");
        return KNEE_INPUT;
    }
    *scale = slope / height;
    return KNEE_OK;
}

/* ---- The command ---- */

static bool pack(void *ctx, const char *data, size_t size)
{
    return knee_pack_add(ctx, data, size);
}

static void pack_for_page(struct cli_run *run, const struct knee_trace_report *report)
{
    struct knee_style style = {0};
    knee_write_trace(report, KNEE_JSON, &style, &run->answer);
    struct knee_packer *packer = knee_pack_begin(&run->trace);
    if (packer && !knee_write_perfetto(report->account, (struct knee_sink){pack, packer}, NULL))
        run->trace.failed = true;
    knee_pack_end(packer);
}

static bool lost_something(const struct cli_traces *traces)
{
    bool lost = traces->refused_count > 0;
    for (size_t t = 0; t < traces->count; t++)
        for (int k = 0; k < KNEE_LOSSES; k++)
            lost = lost ||
                   (traces->traces[t].losses[k].count && knee_loss_is_lost((enum knee_loss_kind)k));
    return lost;
}

/* The gates that the user set. What cannot be evaluated has not passed. */
static knee_status check_gates(const struct trace_options *options, const struct knee_diagnosis *d,
                               struct knee_err *err)
{
    if (isfinite(options->max_ratio) && isnan(d->ratio))
        return knee_fail(err, KNEE_GATE, "--max-ratio",
                         "R cannot be told: there is no compute in these traces");
    if (d->ratio > options->max_ratio)
        return knee_fail(err, KNEE_GATE, "--max-ratio", "R = %.4g > %.4g", d->ratio,
                         options->max_ratio);
    if (isfinite(options->min_overlap) && isnan(d->overlap))
        return knee_fail(err, KNEE_GATE, "--min-overlap",
                         "overlap cannot be told: there is no communication in these traces");
    if (d->overlap < options->min_overlap)
        return knee_fail(err, KNEE_GATE, "--min-overlap", "overlap %.4g < %.4g", d->overlap,
                         options->min_overlap);
    return KNEE_OK;
}

/* As a shell counts a program that was stopped. */
enum { STOPPED = 130 };

/* What was asked for is there, but not of all that was given. */
static knee_status check_strict(const struct trace_options *options,
                                const struct cli_traces *traces, struct knee_err *err)
{
    if (traces->interrupted) {
        knee_fail(err, KNEE_INPUT, "", "stopped: this is of what was read by then");
        return (knee_status)STOPPED;
    }
    if (!options->strict || !lost_something(traces))
        return KNEE_OK;
    return knee_fail(err, KNEE_INPUT, "--strict",
                     "some of the input was not used: see what was lost");
}

/* What its collectives should take: on the cluster that was named, else on a node of the GPUs that
 * the traces name. */
static void expect(const struct knee_job *job, struct knee_account *account)
{
    if (job->hw.cluster.level_count > 0)
        knee_expect_collectives(account, &job->hw.cluster);
    else
        knee_expect_of_gpus(account);
}

/* One run: its traces, their account and what it says. */
struct told {
    struct knee_trace *traces; /* borrowed rows of the set */
    size_t count;
    struct knee_account account;
    struct knee_diagnosis diagnosis;
};

static void release_told(struct told *told)
{
    knee_diagnosis_release(&told->diagnosis);
    knee_account_release(&told->account);
}

static knee_status diagnose(const struct trace_options *options, struct knee_job *job,
                            struct told *told, struct knee_err *err)
{
    knee_status status = KNEE_OK;
    expect(job, &told->account);
    if (options->noise)
        status = read_noise(options->noise, &job->critical_batch, err);
    if (!status)
        status = knee_diagnose(&told->account, job, NULL, &told->diagnosis, err);
    return status;
}

static knee_status report(struct cli_run *run, const struct trace_options *options,
                          const struct cli_traces *traces, struct knee_job *job,
                          struct knee_runtime *rt)
{
    struct told told = {.traces = traces->traces, .count = traces->count};
    knee_status status =
        traces->holders
            ? knee_account_over(rt, traces->traces, traces->count, traces->holders, &told.account,
                                &run->err)
            : knee_account(traces->traces, traces->count, NULL, &told.account, &run->err);
    if (status || run->quiet)
        return status;
    status = diagnose(options, job, &told, &run->err);
    if (!status) {
        struct knee_trace_report all = {told.traces, told.count, &told.account, &told.diagnosis};
        struct knee_style style = cli_style(run);
        knee_write_trace(&all, cli_format(run), &style, &run->text);
        run->answered = true;
        if (run->common.html)
            pack_for_page(run, &all);
        if (options->perfetto)
            status = cli_write_perfetto(options->perfetto, &told.account, &run->err);
        if (!status)
            status = check_gates(options, &told.diagnosis, &run->err);
        if (!status)
            status = check_strict(options, traces, &run->err);
    }
    release_told(&told);
    return status;
}

/* ---- Several runs in one call ---- */

/* The rows of one run, and who holds their spans. */
static size_t pick_run(const struct cli_traces *traces, size_t job, struct knee_trace *room,
                       int *holders)
{
    size_t count = 0;
    for (size_t t = 0; t < traces->count; t++)
        if (traces->jobs[t] == job) {
            if (traces->holders)
                holders[count] = traces->holders[t];
            room[count++] = traces->traces[t];
        }
    return count;
}

/* Every process takes part in every run, with what it holds of it. */
static knee_status account_runs(struct cli_run *run, const struct trace_options *options,
                                const struct cli_traces *traces, struct knee_job *job,
                                struct knee_runtime *rt, struct told *runs, struct knee_trace *room,
                                int *holders)
{
    knee_status status = KNEE_OK;
    for (size_t j = 0; j < traces->job_count; j++) {
        struct knee_job own = *job;
        struct knee_err err = {0};
        runs[j].traces = room;
        runs[j].count = pick_run(traces, j, room, holders);
        room += runs[j].count;
        knee_status now = traces->holders ? knee_account_over(rt, runs[j].traces, runs[j].count,
                                                              holders, &runs[j].account, &err)
                                          : knee_account(runs[j].traces, runs[j].count, NULL,
                                                         &runs[j].account, &err);
        if (!now && !run->quiet)
            now = diagnose(options, &own, &runs[j], &err);
        if (now && !status)
            run->err = err;
        status = status ? status : now;
    }
    return status;
}

static knee_status show_runs(struct cli_run *run, const struct trace_options *options,
                             const struct cli_traces *traces, struct told *runs)
{
    struct knee_trace_report *all = calloc(traces->job_count, sizeof *all);
    struct knee_style style = cli_style(run);
    if (!all) {
        knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
        return KNEE_SYSTEM;
    }
    for (size_t j = 0; j < traces->job_count; j++)
        all[j] = (struct knee_trace_report){runs[j].traces, runs[j].count, &runs[j].account,
                                            &runs[j].diagnosis};
    knee_write_runs(all, traces->job_count, cli_format(run), &style, &run->text);
    knee_status status = KNEE_OK;
    run->answered = true;
    for (size_t j = 0; j < traces->job_count && !status; j++)
        status = check_gates(options, &runs[j].diagnosis, &run->err);
    free(all);
    return status ? status : check_strict(options, traces, &run->err);
}

/* Files of several runs are told apart and accounted one by one. */
static knee_status report_runs(struct cli_run *run, const struct trace_options *options,
                               const struct cli_traces *traces, struct knee_job *job,
                               struct knee_runtime *rt)
{
    if (options->perfetto || run->common.html) {
        knee_fail(&run->err, KNEE_INPUT, "", "these are traces of %zu runs", traces->job_count);
        knee_hint(&run->err, "name the files of one run for --perfetto or --html");
        return KNEE_INPUT;
    }
    struct told *runs = calloc(traces->job_count, sizeof *runs);
    struct knee_trace *room = calloc(traces->count + 1, sizeof *room);
    int *holders = calloc(traces->count + 1, sizeof *holders);
    knee_status status = KNEE_SYSTEM;
    if (runs && room && holders)
        status = account_runs(run, options, traces, job, rt, runs, room, holders);
    else
        knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
    if (!status && !run->quiet)
        status = show_runs(run, options, traces, runs);
    for (size_t j = 0; j < traces->job_count && runs && !run->quiet; j++)
        release_told(&runs[j]);
    free(runs);
    free(room);
    free(holders);
    return status;
}

/* The names of communication that the user gave; *patterns stays NULL when there are none. */
static knee_status take_patterns(const char *name, struct pattern_file **patterns,
                                 struct knee_trace_options *reading, struct knee_err *err)
{
    if (!name)
        return KNEE_OK;
    *patterns = calloc(1, sizeof **patterns);
    if (!*patterns)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    knee_status status = read_patterns(name, *patterns, err);
    reading->patterns = (*patterns)->list;
    reading->pattern_count = (*patterns)->count;
    return status;
}

static knee_status read_and_report(struct cli_run *run, const struct trace_options *options,
                                   struct knee_job *job, struct knee_runtime *rt)
{
    struct pattern_file *patterns = NULL;
    struct knee_trace_options reading = {0};
    struct cli_traces traces;
    knee_status status =
        cli_agree(run, rt, take_patterns(options->patterns, &patterns, &reading, &run->err));
    if (!status) { /* what shows the spans themselves needs them all in one place */
        bool whole = options->perfetto || run->common.html;
        status = cli_agree(
            run, rt,
            cli_traces_read(run->words, run->word_count, &reading, rt, whole, &traces, &run->err));
        if (!status)
            cli_traces_complain(&traces);
        if (!status && traces.job_count > 1 && (!run->quiet || traces.holders))
            status = report_runs(run, options, &traces, job, rt);
        else if (!status && (!run->quiet || traces.holders))
            status = report(run, options, &traces, job, rt);
        cli_traces_release(&traces);
    }
    if (patterns)
        free(patterns->text);
    free(patterns);
    return status;
}

static knee_status trace_main(struct cli_run *run, int argc, char **argv)
{
    struct trace_options options = {.max_ratio = INFINITY, .min_overlap = -INFINITY};
    struct knee_runtime *rt = NULL;
    struct knee_job job;
    knee_job_init(&job);
    run->objects[0] = &options;
    run->objects[1] = &job;
    run->quiet = knee_runtime_rank() > 0;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if (run->word_count == 0) {
        knee_fail(&run->err, KNEE_USAGE, "", "no trace was named");
        knee_hint(&run->err, "name a folder or files, for example: knee trace runs/");
        return KNEE_USAGE;
    }
    if ((status = cli_join(run, &rt)))
        return status;
    run->quiet = rt && rt->rank > 0;
    status = read_and_report(run, &options, &job, rt);
    if (rt)
        rt->finish(rt);
    return status;
}

const struct cli_command cli_trace = {
    .name = "trace",
    .operands = "DIR|FILE...",
    .summary = "what a recorded step says: R, the cause, the late rank, the lever",
    .about =
        "Reads profiler traces of one or many ranks (PyTorch Kineto JSON, Nsight Systems sqlite\n"
        "exports, JAX trace.json.gz; damaged ones too), labels every nanosecond, and names the "
        "cause.",
    .examples = "  knee trace runs/\n"
                "  knee trace rank0.json.gz rank1.json.gz --json\n"
                "  knee trace runs/ --max-ratio 0.5 --perfetto all.json\n"
                "  mpirun -H a,b,c,d knee trace /shared/runs/\n",
    .keys = {&trace_keys, &knee_job_keys},
    .only = {NULL, knee_ask_trace_job_keys},
    .most_words = CLI_WORDS,
    .main = trace_main,
};

/* SPDX-License-Identifier: MIT */
/*
 * knee validate: measured runs against what is predicted, and profiles fitted to them. Under mpirun
 * the ranks share the fits of --cross-validate, which are nearly all of the work; rank 0 reads,
 * calibrates and prints.
 */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "cli/ranks.h"
#include "knee_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_TABLE ((size_t)64 << 20)

struct validate_options {
    const char *calibrate, *rates, *gpu;
    double tolerance;
    bool cross_validate;
    unsigned char source[KNEE_KEYS_MAX];
};

#define WORD(key_name, field, absent, words)                                                       \
    {                                                                                              \
        .name = key_name, .kind = KNEE_KEY_WORD,                                                   \
        .offset = offsetof(struct validate_options, field), .group = "Question",                   \
        .otherwise = absent, .help = words                                                         \
    }

static const struct knee_key rows[] = {
    WORD("gpu", gpu, "none", "GPU of rows that do not name one, for example h200"),
    WORD("rates", rates, "the shipped ones",
         "YAML file with constants that replace those of the profiles"),
    WORD("calibrate", calibrate, "none",
         "write a YAML file with constants fitted to these rows, for --rates"),
    {.name = "cross-validate",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct validate_options, cross_validate),
     .group = "Question",
     .otherwise = "",
     .help = "also predict each source with constants fitted without its rows"},
    {.name = "tolerance",
     .kind = KNEE_KEY_NUMBER,
     .unit = KNEE_UNIT_FRACTION,
     .min = 0.01,
     .max = 1,
     .offset = offsetof(struct validate_options, tolerance),
     .group = "Question",
     .otherwise = "0.8",
     .help = "E(K) down to which more GPUs are worth it: defines the knee of a curve"},
};

static const struct knee_keys validate_keys = KNEE_KEY_TABLE(rows, struct validate_options);

knee_status cli_read_rates(const char *name, struct knee_rates *rates, struct knee_err *err)
{
    char *data = NULL;
    size_t length = 0;
    memset(rates, 0, sizeof *rates);
    knee_keys_clear(&knee_rates_keys, rates);
    if (!name)
        return KNEE_OK;
    knee_status status = cli_read_file(name, (size_t)1 << 20, &data, &length, err);
    if (!status)
        status = knee_yaml_read(data ? data : "", length, name, &knee_rates_keys, rates,
                                sizeof *rates, err);
    free(data);
    return status;
}

static bool show_progress(void *ctx, double share)
{
    fprintf(stderr, "\rcross-validating: %3.0f %% ", 100 * share);
    (void)ctx;
    return true;
}

static knee_status write_profile(struct cli_run *run, const struct knee_runs *runs,
                                 const char *name)
{
    struct knee_rates rates;
    struct knee_platform platform;
    struct cli_run file = {.common = {.output = name}};
    knee_status status = knee_calibrate(runs, NULL, &rates, &platform, &run->err);
    if (status)
        return status;
    knee_write_rates(&rates, &platform, &file.text);
    status = cli_print(&file);
    run->err = file.err;
    knee_text_release(&file.text);
    return status;
}

/* Rates that replace others show in the predictions alone, which rank 0 prints. */
static knee_status predict(struct cli_run *run, const struct validate_options *options,
                           const struct knee_runs *runs, struct knee_validation *out)
{
    struct knee_rates rates;
    double tolerance = isnan(options->tolerance) ? 0.8 : options->tolerance;
    knee_status status = cli_read_rates(run->quiet ? NULL : options->rates, &rates, &run->err);
    return status ? status : knee_validate(runs, &rates, tolerance, NULL, out, &run->err);
}

static knee_status cross_validate(struct knee_validation *v, struct knee_runtime *rt,
                                  struct knee_err *err)
{
    size_t part = rt ? (size_t)rt->rank : 0, parts = rt ? (size_t)rt->size : 1;
    bool watched = part == 0 && cli_progress();
    knee_status status =
        knee_cross_validate(v, part, parts, watched ? show_progress : NULL, NULL, err);
    if (watched)
        fprintf(stderr, "\r%24s\r", "");
    return status;
}

/* This rank's share of the work. */
static knee_status work(struct cli_run *run, const struct validate_options *options,
                        const struct knee_runs *runs, struct knee_runtime *rt,
                        struct knee_validation *v)
{
    knee_status status = KNEE_OK;
    if (options->calibrate && !run->quiet)
        status = write_profile(run, runs, options->calibrate);
    if (!status)
        status = predict(run, options, runs, v);
    if (!status && options->cross_validate)
        status = cross_validate(v, rt, &run->err);
    return status;
}

/* The parts of all ranks at rank 0. */
static knee_status merge(struct knee_validation *v, struct knee_runtime *rt, struct knee_err *err)
{
    struct knee_run_result *all = cli_collect(rt, v->result, v->runs->count * sizeof *v->result);
    knee_status status = all ? knee_cross_validate_merge(v, all, (size_t)rt->size, err) : KNEE_OK;
    free(all);
    return status;
}

static void print_answer(struct cli_run *run, const struct knee_validation *validation)
{
    struct knee_style style = cli_style(run);
    knee_write_validation(validation, cli_format(run), &style, &run->text);
    if (run->common.html)
        knee_write_validation(validation, KNEE_JSON, &style, &run->answer);
}

static knee_status answer(struct cli_run *run, const struct validate_options *options,
                          const struct knee_runs *runs, struct knee_runtime *rt)
{
    struct knee_validation *v = calloc(1, sizeof *v);
    knee_status own = KNEE_SYSTEM;
    if (v)
        own = work(run, options, runs, rt, v);
    else
        knee_fail(&run->err, own, "", "out of memory");
    knee_status status = cli_agree(run, rt, own);
    if (!own && !status && rt)
        status = merge(v, rt, &run->err);
    if (!own && !status && !run->quiet)
        print_answer(run, v);
    if (v)
        knee_validation_release(v);
    free(v);
    return status;
}

/* Rank 0 reads, so that the table may be standard input or a file that only it can see. */
static knee_status read_table(struct cli_run *run, const struct validate_options *options,
                              struct knee_runtime *rt, struct knee_runs *out)
{
    char *data = NULL;
    size_t length = 0;
    knee_status status = KNEE_OK;
    if (!run->quiet)
        status = cli_read_file(run->words[0], LARGEST_TABLE, &data, &length, &run->err);
    status = cli_agree(run, rt, status);
    if (!status && rt)
        cli_hand_out(rt, &data, &length);
    if (!status)
        status = cli_agree(run, rt,
                           knee_runs_read(data ? data : "", length, run->words[0], options->gpu,
                                          NULL, out, &run->err));
    free(data);
    return status;
}

static knee_status validate_main(struct cli_run *run, int argc, char **argv)
{
    struct validate_options options = {.tolerance = NAN};
    run->objects[0] = &options;
    run->quiet = knee_runtime_rank() > 0;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if (run->word_count == 0) {
        knee_fail(&run->err, KNEE_USAGE, "", "no table of runs is given");
        knee_hint(&run->err, "knee validate RUNS.csv; docs/validate.md lists the columns");
        return KNEE_USAGE;
    }
    if (run->quiet && !options.cross_validate)
        return KNEE_OK; /* one answers for all: thousands of rows take a fraction of a second */
    struct knee_runtime *rt = NULL;
    struct knee_runs runs = {0};
    if (options.cross_validate)
        status = cli_join(run, &rt);
    if (!status)
        status = read_table(run, &options, rt, &runs);
    if (!status)
        status = answer(run, &options, &runs, rt);
    if (rt)
        rt->finish(rt);
    knee_runs_release(&runs);
    return status;
}

const struct cli_command cli_validate = {
    .name = "validate",
    .operands = "RUNS.csv",
    .summary = "how well measured runs are predicted, and profiles fitted to them",
    .about = "Predicts every run of a table and compares step times: per row, source, GPU and in\n"
             "all; for jobs at several GPU counts the error of E(K) given one of them. A row that\n"
             "cannot be expressed is counted and named, never guessed.",
    .examples = "  knee validate runs.csv\n"
                "  knee validate runs.csv --calibrate mine.yaml\n"
                "  knee validate runs.csv --rates mine.yaml --json\n"
                "  mpirun -n 8 knee validate runs.csv --cross-validate\n",
    .keys = {&validate_keys},
    .most_words = 1,
    .main = validate_main,
};

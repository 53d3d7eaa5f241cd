/* SPDX-License-Identifier: MIT */
/* knee validate: measured runs against what is predicted, and profiles fitted to them. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "measure/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static const struct knee_keys validate_keys = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .source_offset = offsetof(struct validate_options, source),
};

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

static knee_status answer(struct cli_run *run, const struct validate_options *options,
                          const struct knee_runs *runs)
{
    struct knee_rates rates;
    struct knee_validation *validation = malloc(sizeof *validation);
    if (!validation)
        return knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
    knee_status status = cli_read_rates(options->rates, &rates, &run->err);
    double tolerance = isnan(options->tolerance) ? 0.8 : options->tolerance;
    if (!status)
        status = knee_validate(runs, &rates, tolerance, NULL, validation, &run->err);
    if (status) {
        free(validation);
        return status;
    }
    bool terminal = isatty(STDERR_FILENO);
    if (options->cross_validate)
        status = knee_cross_validate(validation, terminal ? show_progress : NULL, NULL, &run->err);
    if (options->cross_validate && terminal)
        fprintf(stderr, "\r%24s\r", "");
    struct knee_style style = cli_style(run);
    if (!status)
        knee_write_validation(validation, cli_format(run), &style, &run->text);
    if (!status && run->common.html)
        knee_write_validation(validation, KNEE_JSON, &style, &run->answer);
    knee_validation_release(validation);
    free(validation);
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
    if (run->quiet)
        return KNEE_OK; /* under mpirun one answers for all: thousands of rows take a second */
    char *data = NULL;
    size_t length = 0;
    struct knee_runs runs = {0};
    status = cli_read_file(run->words[0], LARGEST_TABLE, &data, &length, &run->err);
    if (!status)
        status = knee_runs_read(data ? data : "", length, run->words[0], options.gpu, NULL, &runs,
                                &run->err);
    free(data);
    if (!status && options.calibrate)
        status = write_profile(run, &runs, options.calibrate);
    if (!status)
        status = answer(run, &options, &runs);
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
                "  knee validate runs.csv --rates mine.yaml --json\n",
    .keys = {&validate_keys},
    .most_words = 1,
    .main = validate_main,
};

/* SPDX-License-Identifier: MIT */
/* knee predict, and the example job that needs no file. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "knee_read.h"

#include <stdlib.h>

struct predict_options {
    const char *job, *solve, *target;
    bool example;
    unsigned char source[KNEE_KEYS_MAX];
};

#define WORD(key_name, field, absent, words)                                                       \
    {                                                                                              \
        .name = key_name, .kind = KNEE_KEY_WORD,                                                   \
        .offset = offsetof(struct predict_options, field), .group = "Question",                    \
        .otherwise = absent, .help = words                                                         \
    }

static const struct knee_key rows[] = {
    WORD("job", job, "none", "job file: YAML with the options above as keys; flags win over it"),
    WORD("solve", solve, "nothing",
         "input to solve for: bandwidth, latency, local-batch, overlap, "
         "hidden, compress, local-steps, loader-rate, workers"),
    WORD("for", target, "",
         "what --solve must reach: efficiency=0.9, ratio=0.1, gamma=1, "
         "step=150ms, throughput=1000"),
    {.name = "example",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct predict_options, example),
     .group = "Question",
     .otherwise = "",
     .help = "start from the built-in job (knee example shows it)"},
};

static const struct knee_keys predict_keys = KNEE_KEY_TABLE(rows, struct predict_options);

/* ---- The example: a 7B model on A100 nodes whose network is their weak side ---- */

static const struct {
    const char *key, *value, *why;
} example[] = {
    {"model", "llama2-7b", "6.74B parameters, sequences of 4096 tokens"},
    {"global-batch", "512", "sequences: 2M tokens a step"},
    {"cluster", "p4de", "8 x A100 a node, 4 x 100 Gbit/s EFA"},
    {"mfu", "45%", "while it computes"},
    {"overlap", "0.5", "half of what could hide does"},
    {"jitter", "1%", "how much workers differ from step to step"},
    {"critical-batch", "1000", "sequences; assumed for the sake of the example"},
    {"min-steps", "100k", "likewise"},
    {"workers", "8..512x2", ""},
};
#define EXAMPLE (sizeof example / sizeof *example)

/* Like a job file: flags that were given stay. */
static knee_status set_example(struct knee_job *job, struct knee_err *err)
{
    knee_status status = KNEE_OK;
    for (size_t i = 0; i < EXAMPLE && !status; i++)
        if (job->source[knee_keys_find(&knee_job_keys, example[i].key)] != KNEE_FLAG)
            status = knee_keys_set(&knee_job_keys, job, example[i].key, example[i].value, KNEE_FILE,
                                   err);
    return status;
}

static knee_status example_main(struct cli_run *run, int argc, char **argv)
{
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    knee_text_puts(&run->text,
                   "# A job for knee predict. Every flag is a key; see knee predict --help.\n");
    for (size_t i = 0; i < EXAMPLE; i++)
        knee_text_printf(&run->text, "%s: %s%s%s\n", example[i].key, example[i].value,
                         example[i].why[0] ? "  # " : "", example[i].why);
    return KNEE_OK;
}

const struct cli_command cli_example = {
    .name = "example",
    .operands = "",
    .summary = "a job file to start from",
    .about = "Writes the built-in job as YAML.",
    .examples = "  knee example > job.yaml\n",
    .main = example_main,
};

/* ---- predict ---- */

static knee_status read_job(const char *name, struct knee_job *job, struct knee_err *err)
{
    char *data = NULL;
    size_t length = 0;
    knee_status status = cli_read_file(name, (size_t)1 << 20, &data, &length, err);
    if (!status)
        status =
            knee_yaml_read(data ? data : "", length, name, &knee_job_keys, job, sizeof *job, err);
    free(data);
    return status;
}

static knee_status gather(struct cli_run *run, struct predict_options *options,
                          struct knee_job *job)
{
    const char *file = options->job ? options->job : run->word_count ? run->words[0] : NULL;
    if (options->job && run->word_count)
        return knee_fail(&run->err, KNEE_USAGE, "", "two job files, %.60s and %.60s", options->job,
                         run->words[0]);
    if (!options->solve != !options->target) {
        knee_fail(&run->err, KNEE_USAGE, "", "--solve and --for go together");
        knee_hint(&run->err, "for example --solve bandwidth --for efficiency=0.9 --workers 64");
        return KNEE_USAGE;
    }
    if (!options->example)
        return file ? read_job(file, job, &run->err) : KNEE_OK;
    if (file)
        return knee_fail(&run->err, KNEE_USAGE, "", "both --example and a job file");
    return set_example(job, &run->err);
}

static knee_status predict_main(struct cli_run *run, int argc, char **argv)
{
    struct predict_options options = {0};
    struct knee_job job;
    struct knee_prediction prediction;
    struct knee_solution solution;
    knee_job_init(&job);
    run->objects[0] = &job;
    run->objects[1] = &options;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if ((status = gather(run, &options, &job)))
        return status;
    if ((status = knee_predict(&job, NULL, &prediction, &run->err)))
        return status;
    if (options.solve)
        status = knee_solve(&prediction.job, options.solve, options.target, &solution, &run->err);
    struct knee_style style = cli_style(run);
    if (!status)
        knee_write_prediction(&prediction, options.solve ? &solution : NULL, cli_format(run),
                              &style, &run->text);
    if (!status && run->common.html)
        knee_write_prediction(&prediction, NULL, KNEE_JSON, &style, &run->answer);
    knee_prediction_release(&prediction);
    return status;
}

const struct cli_command cli_predict = {
    .name = "predict",
    .operands = "[JOB.yaml]",
    .summary = "where the knee is, what binds, which lever to pull, what the stall costs",
    .about = "Predicts a data-parallel job from closed forms: compute, all-reduce, loading and\n"
             "stragglers at each worker count, the knee, the levers, the walls and the cost.",
    .examples = "  knee predict --example\n"
                "  knee predict --params 7B --gpu h100 --global-batch 4M\n"
                "  knee predict --compute-time 180ms --comm-time 120ms --hidden 70% --compress 4\n"
                "  knee predict --params 7B --gpu h100 --solve bandwidth --for efficiency=0.9 "
                "--workers 4096\n",
    .keys = {&knee_job_keys, &predict_keys},
    .most_words = 1,
    .main = predict_main,
};

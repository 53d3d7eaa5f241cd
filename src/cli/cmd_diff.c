/* SPDX-License-Identifier: MIT */
/* knee diff: why one recording's step is longer than another's. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/traces.h"

#include <math.h>

struct diff_options {
    double max_slower;
    unsigned char source[KNEE_KEYS_MAX];
};

static const struct knee_key rows[] = {
    {.name = "max-slower",
     .kind = KNEE_KEY_NUMBER,
     .unit = KNEE_UNIT_FRACTION,
     .min = 0,
     .max = 100,
     .offset = offsetof(struct diff_options, max_slower),
     .group = "Diff",
     .otherwise = "no gate",
     .help = "exit with 1 when the step is longer by more than this, and not by chance"},
};

static const struct knee_keys diff_keys = KNEE_KEY_TABLE(rows, struct diff_options);

/* By more than the user allows, and by more than steps differ by chance. */
static knee_status check_gate(const struct diff_options *options, const struct knee_comparison *c,
                              struct knee_err *err)
{
    double slower = c->after.wall_s / c->before.wall_s - 1;
    if (isfinite(options->max_slower) && isnan(slower))
        return knee_fail(err, KNEE_GATE, "--max-slower", "the steps cannot be told");
    if (!(slower > options->max_slower) || !c->significant)
        return KNEE_OK;
    return knee_fail(err, KNEE_GATE, "--max-slower", "the step is %.3g %% longer > %.3g %%",
                     100 * slower, 100 * options->max_slower);
}

/* One side: what was read, accounted and found. */
struct side {
    struct cli_traces traces;
    struct knee_account account;
    struct knee_diagnosis diagnosis;
};

static void release(struct side *side)
{
    knee_diagnosis_release(&side->diagnosis);
    knee_account_release(&side->account);
    cli_traces_release(&side->traces);
}

static knee_status read_side(const char *word, struct side *side, struct knee_err *err)
{
    struct knee_trace_options options = {0};
    struct knee_job job;
    knee_job_init(&job);
    knee_status status = cli_traces_read(&word, 1, &options, NULL, true, &side->traces, err);
    if (status)
        return status;
    cli_traces_complain(&side->traces);
    if (side->traces.job_count > 1) {
        knee_fail(err, KNEE_INPUT, word, "these are traces of %zu runs", side->traces.job_count);
        knee_hint(err, "name the folder or file of one of them");
        return KNEE_INPUT;
    }
    status = knee_account(side->traces.traces, side->traces.count, NULL, &side->account, err);
    if (!status)
        status = knee_diagnose(&side->account, &job, NULL, &side->diagnosis, err);
    return status;
}

static knee_status diff_main(struct cli_run *run, int argc, char **argv)
{
    struct side before = {0}, after = {0};
    struct diff_options options = {.max_slower = INFINITY};
    struct knee_comparison comparison;
    run->objects[0] = &options;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if (run->word_count != 2) {
        knee_fail(&run->err, KNEE_USAGE, "", "two recordings are compared, not %zu",
                  run->word_count);
        knee_hint(&run->err, "knee diff BEFORE AFTER, each a folder or a file");
        return KNEE_USAGE;
    }
    status = read_side(run->words[0], &before, &run->err);
    if (!status)
        status = read_side(run->words[1], &after, &run->err);
    if (!status)
        status = knee_compare(&before.account, &before.diagnosis, &after.account, &after.diagnosis,
                              NULL, &comparison, &run->err);
    if (!status) {
        struct knee_style style = cli_style(run);
        knee_write_comparison(&comparison, &before.account, &before.diagnosis, &after.account,
                              &after.diagnosis, cli_format(run), &style, &run->text);
        status = check_gate(&options, &comparison, &run->err);
    }
    release(&before);
    release(&after);
    return status;
}

const struct cli_command cli_diff = {
    .name = "diff",
    .operands = "BEFORE AFTER",
    .summary = "which label changed between two recordings, and why",
    .about =
        "Reads two recordings of a job, each a folder of traces or one file, and says which label\n"
        "of the step changed and what changed with it.",
    .examples = "  knee diff monday/ tuesday/\n"
                "  knee diff good/ now/ --max-slower 5%\n",
    .keys = {&diff_keys},
    .most_words = 2,
    .main = diff_main,
};

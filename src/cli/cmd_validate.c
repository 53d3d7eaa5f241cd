/* SPDX-License-Identifier: MIT */
/*
 * knee validate: the library's answer. Under mpirun the ranks share the fits of --cross-validate,
 * which are nearly all of the work; rank 0 reads, calibrates and prints.
 */
#include "cli/cli.h"
#include "cli/ranks.h"

#include <stdio.h>
#include <stdlib.h>

#define LARGEST_TABLE ((size_t)64 << 20)

struct crew {
    struct cli_run *run;
    struct knee_runtime *rt; /* NULL: alone */
    struct knee_ask_work work;
};

static knee_status agree(void *ctx, knee_status own)
{
    const struct crew *crew = ctx;
    return cli_agree(crew->run, crew->rt, own);
}

static bool show_progress(void *ctx, double share)
{
    fprintf(stderr, "\rcross-validating: %3.0f %% ", 100 * share);
    (void)ctx;
    return true;
}

/* The parts of all ranks at rank 0. */
static knee_status merge(struct knee_validation *v, struct knee_runtime *rt, struct knee_err *err)
{
    struct knee_run_result *all = cli_collect(rt, v->result, v->runs->count * sizeof *v->result);
    knee_status status = all ? knee_cross_validate_merge(v, all, (size_t)rt->size, err) : KNEE_OK;
    free(all);
    return status;
}

static knee_status cross_validate(void *ctx, struct knee_validation *v, struct knee_err *err)
{
    const struct crew *crew = ctx;
    struct knee_runtime *rt = crew->rt;
    size_t part = rt ? (size_t)rt->rank : 0, parts = rt ? (size_t)rt->size : 1;
    bool watched = part == 0 && cli_progress();
    knee_status status =
        knee_cross_validate(v, part, parts, watched ? show_progress : NULL, NULL, err);
    if (watched)
        fprintf(stderr, "\r%24s\r", "");
    status = cli_agree(crew->run, rt, status);
    return status || !rt ? status : merge(v, rt, err);
}

/* Rank 0 reads, so that the table may be standard input or a file that only it can see. */
static knee_status hand_out_table(struct crew *crew, char **data, size_t *length)
{
    struct cli_run *run = crew->run;
    knee_status status = cli_join(run, &crew->rt);
    if (status || !crew->rt)
        return status;
    if (!run->quiet)
        status = cli_read_file(run->words[0], LARGEST_TABLE, data, length, &run->err);
    status = cli_agree(run, crew->rt, status);
    if (status)
        return status;
    cli_hand_out(crew->rt, data, length);
    return cli_agree(run, crew->rt,
                     knee_attach(run->ask, run->words[0], *data, *length, &run->err));
}

static knee_status read_and_answer(struct cli_run *run)
{
    struct crew crew = {.run = run,
                        .work = {.agree = agree, .cross_validate = cross_validate, .ctx = &crew}};
    char *table = NULL;
    size_t length = 0;
    knee_status status = KNEE_OK;
    if (run->word_count && knee_ask_validate_crosses(run->objects[0]))
        status = hand_out_table(&crew, &table, &length);
    crew.work.silent = run->quiet;
    if (!status)
        status = cli_answer(run, &crew.work);
    if (crew.rt)
        crew.rt->finish(crew.rt);
    free(table);
    return status;
}

static knee_status validate_main(struct cli_run *run, int argc, char **argv)
{
    run->quiet = knee_runtime_rank() > 0;
    return cli_ask_with(run, argc, argv, read_and_answer);
}

const struct cli_command cli_validate = {
    .name = "validate",
    .operands = "RUNS.csv|LOG...",
    .common = {"gpu", "rates", "calibrate", "cross-validate", "tolerance"},
    .summary = "compare predictions with measured runs",
    .about = "Predicts every run of a table or of training logs and compares step times by run, "
             "source and GPU. Jobs at several GPU counts are compared as efficiency curves too. "
             "Runs that cannot be predicted are counted and named.",
    .examples = "  knee validate runs.csv\n"
                "  knee validate runs.csv --calibrate mine.yaml\n"
                "  knee validate train_*.log --gpu h100 --calibrate mine.yaml\n"
                "  knee validate runs.csv --rates mine.yaml --json\n"
                "  mpirun -n 8 knee validate runs.csv --cross-validate\n",
    .ask = &knee_ask_validate,
    .main = validate_main,
};

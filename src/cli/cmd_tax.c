/* SPDX-License-Identifier: MIT */
/* knee tax: what each parallel axis pays. */
#include "cli/cli.h"

static knee_status tax_main(struct cli_run *run, int argc, char **argv)
{
    struct knee_tax_job job;
    struct knee_tax tax;
    knee_tax_job_init(&job);
    run->objects[0] = &job;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if ((status = knee_tax_run(&job, &tax, &run->err)))
        return status;
    struct knee_style style = cli_style(run);
    knee_write_tax(&tax, cli_format(run), &style, &run->text);
    if (run->common.html)
        knee_write_tax(&tax, KNEE_JSON, &style, &run->answer);
    return KNEE_OK;
}

const struct cli_command cli_tax = {
    .name = "tax",
    .operands = "",
    .summary = "what DP, FSDP, TP, PP and EP each pay, and which one binds",
    .about =
        "For a transformer and its degrees of parallelism: each axis' collective, how often and\n"
        "over which link, against the compute that it can hide behind.",
    .examples = "  knee tax --model llama3-70b --gpu h100 --fsdp 64 --tp 8\n"
                "  knee tax --hidden 8192 --gpu h100 --tp 16 --pp 4 --micro-batches 32\n",
    .keys = {&knee_tax_keys},
    .main = tax_main,
};

/* SPDX-License-Identifier: MIT */
/* knee list: the presets and where their figures come from; knee version. */
#include "cli/cli.h"

const struct cli_command cli_list = {
    .name = "list",
    .operands = "[LIST]",
    .summary = "known GPUs, models, clusters and links, with sources",
    .about = "Lists GPUs, links, transports, clusters, models, algorithms, collectives and "
             "software profiles, each with its source.",
    .examples = "  knee list gpus\n  knee list models\n",
    .ask = &knee_ask_list,
};

static knee_status version_main(struct cli_run *run, int argc, char **argv)
{
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    knee_text_puts(&run->text, "knee " KNEE_VERSION "\n");
    return KNEE_OK;
}

const struct cli_command cli_version = {
    .name = "version",
    .operands = "",
    .summary = "print the version",
    .about = "Prints the version.",
    .examples = "",
    .main = version_main,
};

/* SPDX-License-Identifier: MIT */
/* knee list: the presets and where their figures come from; knee version. */
#include "cli/cli.h"

const struct cli_command cli_list = {
    .name = "list",
    .operands = "[gpus|links|transports|clusters|models|algorithms|collectives|shapes|profiles]",
    .summary = "the presets, with where their figures come from",
    .about =
        "Lists the presets of GPUs, links, transports, clusters and models, the algorithms of\n"
        "collectives, the collectives, and the transformer shapes and software profiles of\n"
        "knee plan.",
    .examples = "  knee list gpus\n",
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
    .summary = "the version",
    .about = "Writes the version.",
    .examples = "",
    .main = version_main,
};

/* SPDX-License-Identifier: MIT */
/* knee tax: what each parallel axis pays. */
#include "cli/cli.h"

const struct cli_command cli_tax = {
    .name = "tax",
    .operands = "",
    .summary = "communication cost of each parallel axis of a given split",
    .common = {"model", "gpu", "dp", "fsdp", "tp", "pp", "ep", "global-batch"},
    .about =
        "For a transformer and a given split: the collectives of each parallel axis, how often "
        "they run, over which link, and how much of them compute can overlap.",
    .examples = "  knee tax --model llama3-70b --gpu h100 --fsdp 64 --tp 8\n"
                "  knee tax --hidden 8192 --gpu h100 --tp 16 --pp 4 --micro-batches 32\n",
    .ask = &knee_ask_tax,
};

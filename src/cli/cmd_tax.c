/* SPDX-License-Identifier: MIT */
/* knee tax: what each parallel axis pays. */
#include "cli/cli.h"

const struct cli_command cli_tax = {
    .name = "tax",
    .operands = "",
    .summary = "what DP, FSDP, TP, PP and EP each pay, and which one binds",
    .about =
        "For a transformer and its degrees of parallelism: each axis' collective, how often and\n"
        "over which link, against the compute that it can hide behind.",
    .examples = "  knee tax --model llama3-70b --gpu h100 --fsdp 64 --tp 8\n"
                "  knee tax --hidden 8192 --gpu h100 --tp 16 --pp 4 --micro-batches 32\n",
    .ask = &knee_ask_tax,
};

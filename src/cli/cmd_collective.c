/* SPDX-License-Identifier: MIT */
/* knee collective: what a collective should take, and how a measured run compares. */
#include "cli/cli.h"

const struct cli_command cli_collective = {
    .name = "collective",
    .operands = "OP",
    .summary = "expected time of a collective, by size and algorithm",
    .common = {"ranks", "bytes", "cluster", "against"},
    .about = "Expected time of a collective (all_reduce, all_gather, reduce_scatter, all_to_all, "
             "broadcast, reduce, gather, scatter, send_recv) for each message size and algorithm, "
             "with NCCL's choice. --against compares it with a measured log.",
    .examples = "  knee collective all_reduce --bytes 4K..8G --ranks 64 --cluster dgx-h100\n"
                "  knee collective all_to_all --ranks 128 --cluster '8xh100 * 16 @ ib400x8/2'\n"
                "  knee collective --against all_reduce.log\n",
    .ask = &knee_ask_collective,
};

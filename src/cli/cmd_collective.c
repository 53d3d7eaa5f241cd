/* SPDX-License-Identifier: MIT */
/* knee collective: what a collective should take, and how a measured run compares. */
#include "cli/cli.h"

const struct cli_command cli_collective = {
    .name = "collective",
    .operands = "OP",
    .summary = "what a collective should take, which algorithm wins, and how a run compares",
    .about =
        "Prices a collective (all_reduce, all_gather, reduce_scatter, all_to_all, all_to_allv,\n"
        "broadcast, reduce, gather, scatter, send_recv) over sizes: every algorithm, the winner,\n"
        "the crossovers, what NCCL would choose; --against puts a measured run beside it.",
    .examples = "  knee collective all_reduce --bytes 4K..8G --ranks 64 --cluster dgx-h100\n"
                "  knee collective all_to_all --ranks 128 --cluster '8xh100 * 16 @ ib400x8/2'\n"
                "  knee collective --against all_reduce.log\n",
    .ask = &knee_ask_collective,
};

/* SPDX-License-Identifier: MIT */
/* knee fit: a cluster file from logs; knee fit --check: how well logs are predicted. */
#include "cli/cli.h"

const struct cli_command cli_fit = {
    .name = "fit",
    .operands = "LOG...",
    .summary = "a cluster file from the logs of nccl-tests and others, and how far to trust it",
    .about =
        "Reads logs of nccl-tests (text of every era, JSON), rccl-tests, OSU, knee bench or CSV,\n"
        "all of one cluster, and fits latencies, rates and protocols to them, with their\n"
        "uncertainty; -o writes the cluster file. With --check the logs may be of any clusters:\n"
        "it says how well sizes that were left out, and other logs, are predicted.",
    .examples = "  knee fit all_reduce_16.log all_gather_16.log -o cluster.yaml\n"
                "  knee fit --check logs/*.log --json\n"
                "  knee collective all_reduce --ranks 64 --cluster cluster.yaml\n",
    .ask = &knee_ask_fit,
};

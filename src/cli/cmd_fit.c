/* SPDX-License-Identifier: MIT */
/* knee fit: a cluster file from logs; knee fit --check: how well logs are predicted. */
#include "cli/cli.h"

const struct cli_command cli_fit = {
    .name = "fit",
    .operands = "LOG...",
    .common = {"cluster", "check", "ranks", "nodes", "collective", "index"},
    .summary = "make a cluster file from nccl-tests logs",
    .about = "Fits latency and bandwidth of one cluster to logs of nccl-tests, rccl-tests, OSU, "
             "knee bench or CSV; -o writes the cluster file. --check only tests how well sizes "
             "left out of the fit are predicted; its logs may come from several clusters.",
    .examples = "  knee fit all_reduce_16.log all_gather_16.log -o cluster.yaml\n"
                "  knee fit --check logs/*.log --json\n"
                "  knee collective all_reduce --ranks 64 --cluster cluster.yaml\n",
    .ask = &knee_ask_fit,
};

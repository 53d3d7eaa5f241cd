/* SPDX-License-Identifier: MIT */
/* knee cluster: a cluster from wherever it is described, as a file that can be edited and kept. */
#include "cli/cli.h"

const struct cli_command cli_cluster = {
    .name = "cluster",
    .operands = "CLUSTER",
    .summary = "print a cluster preset or file as YAML",
    .about = "Reads a cluster from a preset, a one-line description, YAML, the output of "
             "nvidia-smi topo -m or NCCL's topology XML, and prints it as YAML.",
    .examples = "  knee cluster dgx-h100\n"
                "  knee cluster '8xh100:nvlink4 * 16 @ ib400x8' -o cluster.yaml\n"
                "  nvidia-smi topo -m | knee cluster -\n",
    .ask = &knee_ask_cluster,
};

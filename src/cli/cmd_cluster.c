/* SPDX-License-Identifier: MIT */
/* knee cluster: a cluster from wherever it is described, as a file that can be edited and kept. */
#include "cli/cli.h"

const struct cli_command cli_cluster = {
    .name = "cluster",
    .operands = "CLUSTER",
    .summary = "a cluster from a preset, one line, nvidia-smi or NCCL's XML, as YAML",
    .about = "Reads a cluster from a preset, a one-line string, knee's YAML, the output of\n"
             "nvidia-smi topo -m or NCCL's topology XML, and writes it as YAML.",
    .examples = "  knee cluster dgx-h100\n"
                "  knee cluster '8xh100:nvlink4 * 16 @ ib400x8' -o cluster.yaml\n"
                "  nvidia-smi topo -m | knee cluster -\n",
    .ask = &knee_ask_cluster,
};

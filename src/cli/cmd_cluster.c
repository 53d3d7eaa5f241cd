/* SPDX-License-Identifier: MIT */
/* knee cluster: a cluster from wherever it is described, as a file that can be edited and kept. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "cluster/hardware.h"
#include "knee_read.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST_CLUSTER ((size_t)16 << 20)

static knee_status read_cluster_file(struct cli_run *run, const char *name,
                                     struct knee_cluster *out)
{
    char *data = NULL;
    size_t length = 0;
    knee_status status = cli_read_file(name, LARGEST_CLUSTER, &data, &length, &run->err);
    if (!status)
        status = knee_cluster_read(data ? data : "", length, cli_input_name(name), out,
                                   &run->fitted, &run->err);
    free(data);
    return status;
}

knee_status cli_read_cluster(struct cli_run *run, const char *word, struct knee_cluster *out)
{
    if (strcmp(word, "-") == 0 || access(word, F_OK) == 0)
        return read_cluster_file(run, word, out);
    return knee_cluster_word(word, "--cluster", out, &run->err);
}

static knee_status cluster_main(struct cli_run *run, int argc, char **argv)
{
    struct knee_cluster cluster;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if (run->word_count == 0) {
        knee_fail(&run->err, KNEE_USAGE, "", "which cluster is not said");
        knee_hint(&run->err, "for example knee cluster dgx-h100, or a topology file");
        return KNEE_USAGE;
    }
    if ((status = cli_read_cluster(run, run->words[0], &cluster)))
        return status;
    knee_write_cluster(&cluster, cli_format(run), &run->text);
    return KNEE_OK;
}

const struct cli_command cli_cluster = {
    .name = "cluster",
    .operands = "CLUSTER",
    .summary = "a cluster from a preset, one line, nvidia-smi or NCCL's XML, as YAML",
    .about = "Reads a cluster from a preset, a one-line string, knee's YAML, the output of\n"
             "nvidia-smi topo -m or NCCL's topology XML, and writes it as YAML.",
    .examples = "  knee cluster dgx-h100\n"
                "  knee cluster '8xh100:nvlink4 * 16 @ ib400x8' -o cluster.yaml\n"
                "  nvidia-smi topo -m | knee cluster -\n",
    .most_words = 1,
    .main = cluster_main,
};

/* SPDX-License-Identifier: MIT */
/* knee predict, and the example job that needs no file. */
#include "cli/cli.h"

const struct cli_command cli_example = {
    .name = "example",
    .operands = "",
    .summary = "a job file to start from",
    .about = "Writes the built-in job as YAML.",
    .examples = "  knee example > job.yaml\n",
    .ask = &knee_ask_example,
};

const struct cli_command cli_predict = {
    .name = "predict",
    .operands = "[JOB.yaml]",
    .summary = "where the knee is, what binds, which lever to pull, what the stall costs",
    .about = "Predicts a data-parallel job from closed forms: compute, all-reduce, loading and\n"
             "stragglers at each worker count, the knee, the levers, the walls and the cost.",
    .examples = "  knee predict --example\n"
                "  knee predict --params 7B --gpu h100 --global-batch 4M\n"
                "  knee predict --compute-time 180ms --comm-time 120ms --hidden 70% --compress 4\n"
                "  knee predict --params 7B --gpu h100 --solve bandwidth --for efficiency=0.9 "
                "--workers 4096\n",
    .ask = &knee_ask_predict,
};

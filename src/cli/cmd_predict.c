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
    .summary = "efficiency against GPU count, from a model or a few numbers",
    .common = {"model", "gpu", "workers", "global-batch", "compute-time", "comm-time", "solve",
               "for"},
    .about = "Predicts a data-parallel job at each GPU count: step time, exposed communication, "
             "efficiency, the last count worth paying for, and the change that helps most. For "
             "tensor or pipeline parallelism use knee plan.",
    .examples = "  knee predict --example\n"
                "  knee predict --model llama3-8b --gpu h100 --gpus 8..512x2\n"
                "  knee predict --compute-time 180ms --comm-time 120ms --hidden 70% --compress 4\n"
                "  knee predict -m llama3-8b -g h100 --solve gpus --for efficiency=0.9\n",
    .ask = &knee_ask_predict,
};

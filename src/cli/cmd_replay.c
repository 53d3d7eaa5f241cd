/* SPDX-License-Identifier: MIT */
/* knee replay: what a recorded job would do with something changed. */
#include "base/error.h"
#include "cli/traces.h"

static knee_status read_and_answer(struct cli_run *run)
{
    struct knee_trace_options reading = {.host = true};
    if (run->word_count == 0) {
        knee_fail(&run->err, KNEE_USAGE, "", "no trace was named");
        knee_hint(&run->err, "name a folder or files, for example: knee replay runs/ --wire bf16");
        return KNEE_USAGE;
    }
    knee_status status =
        cli_traces_to_ask(run, run->words, run->word_count, &reading, KNEE_ASK_TOGETHER);
    return status ? status : cli_answer(run, NULL);
}

static knee_status replay_main(struct cli_run *run, int argc, char **argv)
{
    return cli_ask_with(run, argc, argv, read_and_answer);
}

const struct cli_command cli_replay = {
    .name = "replay",
    .operands = "DIR|FILE...",
    .summary = "step time of a recorded job after a change",
    .common = {"wire", "bucket", "overlap", "even", "batch", "network", "workers", "step-time"},
    .about =
        "Reads PyTorch traces of all ranks, rebuilds the dependencies between operations, and "
        "simulates the job with each change. Without options it tries a standard set of changes.",
    .examples = "  knee replay runs/\n"
                "  knee replay runs/ --wire bf16 --even --json\n"
                "  knee replay runs/ --bucket 100MB --network 2x --perfetto after.json\n",
    .ask = &knee_ask_replay,
    .main = replay_main,
};

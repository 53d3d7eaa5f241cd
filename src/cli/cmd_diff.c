/* SPDX-License-Identifier: MIT */
/* knee diff: why one recording's step is longer than another's. */
#include "ask/ask_measured.h"
#include "cli/traces.h"

static knee_status read_and_answer(struct cli_run *run)
{
    bool logs = false;
    knee_status status = KNEE_OK;
    if (run->word_count == 2)
        status = knee_ask_diff_logs(run->ask, run->words, &logs, &run->err);
    if (logs)
        return cli_answer(run, NULL);
    for (size_t side = 0; side < run->word_count && run->word_count == 2 && !status; side++) {
        struct knee_trace_options reading = {0};
        status = cli_traces_to_ask(run, &run->words[side], 1, &reading, (int)side);
    }
    return status ? status : cli_answer(run, NULL);
}

static knee_status diff_main(struct cli_run *run, int argc, char **argv)
{
    return cli_ask_with(run, argc, argv, read_and_answer);
}

const struct cli_command cli_diff = {
    .name = "diff",
    .operands = "BEFORE AFTER",
    .summary = "which label changed between two recordings, and why",
    .about =
        "Reads two recordings of a job, each a folder of traces or one file, and says which label\n"
        "of the step changed and what changed with it. Of two training logs it says whether the\n"
        "step changed by more than chance, and what changed in the configuration.",
    .examples = "  knee diff monday/ tuesday/\n"
                "  knee diff good/ now/ --max-slower 5%\n"
                "  knee diff last_week.log today.log --max-slower 2%\n",
    .ask = &knee_ask_diff,
    .main = diff_main,
};

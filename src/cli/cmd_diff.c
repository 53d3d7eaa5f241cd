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
        struct knee_trace_options reading = {.host = true, .detail = true, .shapes = true};
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
    .summary = "what changed between two runs: traces or logs",
    .common = {"max-slower"},
    .about = "Compares two recordings of a job (traces or folders of traces) and names the part of "
             "the step that changed. For two training logs: is the difference more than noise, "
             "and what differs in the configuration?",
    .examples = "  knee diff monday/ tuesday/\n"
                "  knee diff good/ now/ --max-slower 5%\n"
                "  knee diff last_week.log today.log --max-slower 2%\n",
    .ask = &knee_ask_diff,
    .main = diff_main,
};

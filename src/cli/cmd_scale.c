/* SPDX-License-Identifier: MIT */
/* knee scale: a job's own curve from what is at hand. Folders and databases of traces are read
 * here, everything else by the question. */
#include "ask/ask_measured.h"
#include "cli/traces.h"

#include <string.h>
#include <sys/stat.h>

/* Traces that no stream of bytes can give. */
static bool is_trace_set(const char *name)
{
    static const char *const ends[] = {".sqlite", ".sqlite.gz", ".rpd", ".rpd.gz", ".knee"};
    struct stat about;
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (length >= strlen(ends[i]) && strcmp(name + length - strlen(ends[i]), ends[i]) == 0)
            return true;
    return stat(name, &about) == 0 && S_ISDIR(about.st_mode);
}

static knee_status read_and_answer(struct cli_run *run)
{
    knee_status status = KNEE_OK;
    for (size_t i = 0; i < run->word_count && !status; i++) {
        struct knee_trace_options reading = {0};
        const char *name = run->words[i];
        knee_ask_said_workers(&name);
        if (is_trace_set(name))
            status = cli_traces_to_ask(run, &name, 1, &reading, (int)i);
    }
    return status ? status : cli_answer(run, NULL);
}

static knee_status scale_main(struct cli_run *run, int argc, char **argv)
{
    return cli_ask_with(run, argc, argv, read_and_answer);
}

const struct cli_command cli_scale = {
    .name = "scale",
    .operands = "[COUNT=]FILE...",
    .summary = "your own curve from training logs: is it normal, where is the knee, what next",
    .about =
        "Reads training logs (Megatron-LM, DeepSpeed, torchtitan, NeMo, MaxText, Hugging Face and\n"
        "others), tables of runs and traces, in any mix, of one job at one worker count or\n"
        "several. One count is held against the model of knee plan, and what is left of the five\n"
        "suspects is named; several counts make a curve with its knee and a forecast with a\n"
        "band; runs at several batch sizes give the critical batch.",
    .examples = "  knee scale train.log\n"
                "  knee scale 8=a.log 16=b.log 32=c.log --at 64,128\n"
                "  knee scale runs.csv --curve night --at 512 --tokens 1T --price 2.5\n"
                "  knee scale --gpu-util 35% --cpu-util 100%\n",
    .ask = &knee_ask_scale,
    .main = scale_main,
};

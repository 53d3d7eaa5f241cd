/* SPDX-License-Identifier: MIT */
/* knee scale: a job's own curve from what is at hand. Traces are read here, the rest by the ask. */
#include "base/error.h"
#include "base/slice.h"
#include "cli/traces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PIECE ((size_t)1 << 18)

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), least = strlen(end);
    return length >= least && strcmp(name + length - least, end) == 0;
}

/* What stands after COUNT= in a word. */
static const char *name_in(const char *word)
{
    size_t digits = strspn(word, "0123456789.");
    return digits && word[digits] == '=' ? word + digits + 1 : word;
}

static knee_status begins_as_trace(const char *name, bool *is, struct knee_err *err)
{
    FILE *file = fopen(name, "rb");
    char *begun = file ? malloc(PIECE) : NULL;
    bool memory = file ? begun != NULL : errno != ENOMEM;
    size_t size = begun ? fread(begun, 1, PIECE, file) : 0;
    bool packed = size > 1 && memcmp(begun, "\x1f\x8b", 2) == 0;
    *is = packed ? ends_with(name, ".json.gz")
                 : begun && knee_slice_has((struct knee_slice){begun, size}, "\"traceEvents\"");
    free(begun);
    if (file)
        fclose(file);
    return memory ? KNEE_OK : knee_fail(err, KNEE_SYSTEM, name, "out of memory");
}

static knee_status is_trace(const char *name, bool *is, struct knee_err *err)
{
    struct stat about;
    bool there = stat(name, &about) == 0;
    *is = there && (S_ISDIR(about.st_mode) || ends_with(name, ".sqlite"));
    return there && !*is ? begins_as_trace(name, is, err) : KNEE_OK;
}

/* A trace that cannot be used is complained of by the ask, which then finds none. */
static knee_status read_traces(struct cli_run *run)
{
    for (size_t i = 0; i < run->word_count; i++) {
        struct knee_trace_options reading = {0};
        const char *name = name_in(run->words[i]);
        bool trace = false;
        knee_status status = is_trace(name, &trace, &run->err);
        if (status)
            return status;
        if (!trace)
            continue;
        status = cli_traces_to_ask(run, &name, 1, &reading, KNEE_ASK_BY_NAME);
        if (status && (status != KNEE_INPUT || run->word_count == 1))
            return status;
    }
    return KNEE_OK;
}

static knee_status scale_main(struct cli_run *run, int argc, char **argv)
{
    void *room = cli_ask_room(run);
    if (!room)
        return KNEE_SYSTEM;
    knee_status status = cli_parse(run, argc, argv);
    if (!status && !run->common.help)
        status = read_traces(run);
    if (!status && !run->common.help)
        status = cli_answer(run, NULL);
    free(room);
    return status;
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

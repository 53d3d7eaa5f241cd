/* SPDX-License-Identifier: MIT */
/* knee scale: a job's own curve from what is at hand. Folders and databases of traces are read
 * here, folders of logs are replaced by their logs, everything else is read by the question. */
#include "ask/ask_measured.h"
#include "base/error.h"
#include "cli/traces.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A folder, or a trace that no stream of bytes can give. */
static bool is_trace_set(const char *name)
{
    struct stat about;
    const struct knee_file_kind *kind = cli_file_kind(name);
    return (kind && (kind->reader == KNEE_READ_DATABASE || kind->reader == KNEE_READ_IMAGE)) ||
           (stat(name, &about) == 0 && S_ISDIR(about.st_mode));
}

static bool ends_with_any(const char *name, const char *const *ends)
{
    size_t length = strlen(name);
    for (; *ends; ends++)
        if (length >= strlen(*ends) && strcmp(name + length - strlen(*ends), *ends) == 0)
            return true;
    return false;
}

static bool is_log(const char *path)
{
    static const char *const ends[] = {".log",    ".out",      ".err",    ".txt",
                                       ".jsonl",  ".log.gz",   ".out.gz", ".err.gz",
                                       ".txt.gz", ".jsonl.gz", NULL};
    return ends_with_any(path, ends);
}

static bool may_be_trace(const char *path)
{
    static const char *const ends[] = {".json", ".json.gz", ".sqlite", ".sqlite.gz", ".rpd",
                                       ".db",   ".pb",      ".et",     ".knee",      NULL};
    return ends_with_any(path, ends);
}

/* The logs of a job's folder, which has no traces; NULL: it is none. */
static char **logs_of(const char *word, struct knee_arena *arena)
{
    struct stat about;
    if (stat(word, &about) != 0 || !S_ISDIR(about.st_mode))
        return NULL;
    char **traces = cli_find_files(&word, 1, may_be_trace, arena), **logs = NULL;
    if (traces && !traces[0])
        logs = cli_find_files(&word, 1, is_log, arena);
    return logs && logs[0] ? logs : NULL;
}

/* Replaces a folder by its logs, each with the count given for the folder. */
static bool put_logs(struct cli_run *run, size_t at, char **logs, int prefix,
                     struct knee_arena *arena)
{
    size_t count = 0;
    while (logs[count])
        count++;
    const char **words = malloc((run->word_count + count) * sizeof *words);
    for (size_t i = 0; words && i < count; i++)
        words[at + i] = knee_arena_printf(arena, "%.*s%s", prefix, run->words[at], logs[i]);
    if (!words || arena->failed) {
        free(words);
        return false;
    }
    memcpy(words, run->words, at * sizeof *words);
    memcpy(words + at + count, run->words + at + 1, (run->word_count - at - 1) * sizeof *words);
    free(run->words);
    run->words = words;
    run->word_count += count - 1;
    return true;
}

static knee_status read_and_answer(struct cli_run *run)
{
    knee_status status = KNEE_OK;
    struct knee_arena arena = {0}; /* the logs of one folder: names that the words point to */
    bool kept = false;
    for (size_t i = 0; i < run->word_count && !status; i++) {
        struct knee_trace_options reading = {0};
        const char *name = run->words[i];
        knee_ask_said_workers(&name);
        char **logs = kept ? NULL : logs_of(name, &arena);
        if (logs) {
            kept = true;
            if (!put_logs(run, i, logs, (int)(name - run->words[i]), &arena))
                status = knee_fail(&run->err, KNEE_SYSTEM, name, "out of memory");
        } else if (is_trace_set(name)) {
            status = cli_traces_to_ask(run, &name, 1, &reading, (int)i);
        }
    }
    status = status ? status : cli_answer(run, NULL);
    run->word_count = kept ? 0 : run->word_count;
    knee_arena_release(&arena);
    return status;
}

static knee_status scale_main(struct cli_run *run, int argc, char **argv)
{
    return cli_ask_with(run, argc, argv, read_and_answer);
}

const struct cli_command cli_scale = {
    .name = "scale",
    .operands = "[COUNT=]FILE...",
    .summary = "is my run normal, and are more GPUs worth it: from training logs",
    .common = {"model", "gpu", "at", "tokens", "price", "tolerance"},
    .about =
        "Reads training logs of any framework, folders of logs, tables of runs, traces or "
        "sacct output. From "
        "one log: is the step time normal for this model and GPU, and where did the time go? "
        "From several GPU counts: efficiency, the last count worth paying for, and a forecast. "
        "From several batch sizes: the critical batch.",
    .examples = "  knee scale train.log\n"
                "  knee scale JOBDIR\n"
                "  knee scale sacct.txt\n"
                "  knee scale one.log two.log --gpus-per-node 8 --params 1.5B --shard zero3\n"
                "  knee scale 8=a.log 16=b.log 32=c.log --at 64,128\n"
                "  knee scale runs.csv --curve night --at 512 --tokens 1T --price 2.5\n"
                "  knee scale --gpu-util 35% --cpu-util 100%\n",
    .ask = &knee_ask_scale,
    .main = scale_main,
};

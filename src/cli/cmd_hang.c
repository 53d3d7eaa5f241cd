/* SPDX-License-Identifier: MIT */
/* knee hang: finds the files of a job, or asks the RAS service of one that still runs. */
#include "ask/ask_hang.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/ras.h"
#include "cli/traces.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LARGEST ((off_t)1 << 30)

enum { HEAD = 512 };

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Text, gzip or a pickle, and not of a checkpoint's size: by the first bytes. */
static bool is_readable(const char *path)
{
    unsigned char head[HEAD];
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > LARGEST)
        return false;
    int fd = knee_open_input(AT_FDCWD, path, KNEE_INPUT_LISTED);
    if (fd < 0)
        return true; /* reading it will say why it cannot be opened */
    ptrdiff_t came = knee_input_read(fd, head, sizeof head);
    size_t got = came > 0 ? (size_t)came : 0;
    cli_close(fd);
    if (got > 1 &&
        ((head[0] == 0x1f && head[1] == 0x8b) || (head[0] == 0x80 && head[1] >= 2 && head[1] <= 5)))
        return true;
    return !memchr(head, 0, got);
}

static size_t count_names(char **names)
{
    size_t count = 0;
    while (names && names[count])
        count++;
    return count;
}

/* Folders become the files in them; a file that was named stays, whatever it is. */
char **cli_job_files(const char *const *words, size_t count, size_t *passed_over,
                     struct knee_arena *arena, struct knee_err *err)
{
    char **all = cli_find_files(words, count, is_file, arena),
         **names = cli_find_files(words, count, is_readable, arena);
    size_t seen = count_names(all), kept = count_names(names);
    *passed_over = seen > kept ? seen - kept : 0;
    if (all && names)
        return names;
    knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    return NULL;
}

static knee_status ask_ras(struct cli_run *run, const char *where, struct knee_text *text)
{
    knee_status status = cli_ras_text(where, text, &run->err);
    if (!status)
        status =
            knee_attach(run->ask, where, text->data ? text->data : "", text->length, &run->err);
    return status;
}

static knee_status read_and_answer(struct cli_run *run)
{
    struct knee_ask_hang_options *options = run->objects[0];
    struct knee_text ras = {0};
    struct knee_arena arena = {0};
    const char **words = run->words;
    size_t count = run->word_count;
    char **names =
        count ? cli_job_files(words, count, &options->passed_over, &arena, &run->err) : NULL;
    knee_status status = count && !names ? KNEE_SYSTEM : KNEE_OK;
    if (!status && options->ras)
        status = ask_ras(run, options->ras, &ras);
    if (!status && names && !names[0] && options->passed_over) {
        knee_fail(&run->err, KNEE_INPUT, words[0], "%zu files, none is text or a dump",
                  options->passed_over);
        status = KNEE_INPUT;
    }
    if (!status) {
        if (names) {
            run->words = (const char **)names;
            run->word_count = count_names(names);
        }
        if (!run->word_count && count) { /* an empty folder */
            status = knee_fail(&run->err, KNEE_INPUT, words[0], "the folder is empty");
        } else {
            status = cli_answer(run, NULL);
        }
        run->words = words;
        run->word_count = count;
    }
    knee_arena_release(&arena);
    knee_text_release(&ras);
    return status;
}

static knee_status hang_main(struct cli_run *run, int argc, char **argv)
{
    return cli_ask_with(run, argc, argv, read_and_answer);
}

const struct cli_command cli_hang = {
    .name = "hang",
    .operands = "DIR|FILE...",
    .summary = "which rank a stuck or crashed job waits for, and why",
    .common = {"gate", "ras"},
    .about = "Reads what a job left behind: output of its ranks (one file each, or one file with "
             "prefixes), Flight Recorder dumps, NCCL logs, RAS answers, exit statuses, dmesg and "
             "scheduler messages, also .gz. Names the rank that the others wait for, what it did "
             "instead, and what to do.",
    .examples = "  knee hang runs/4711/\n"
                "  knee hang rank*.err /shared/fr_*\n"
                "  knee hang --ras node7\n"
                "  knee hang runs/4711/ --gate -q || page-on-call\n",
    .ask = &knee_ask_hang,
    .main = hang_main,
};

/* SPDX-License-Identifier: MIT */
/* Commands that the library answers: flags in, files in and out, text out. */
#include "base/error.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool file_exists(void *ctx, const char *name)
{
    (void)ctx;
    struct stat info; /* a folder of a preset's name is not what --cluster means */
    return strcmp(name, "-") == 0 || (stat(name, &info) == 0 && !S_ISDIR(info.st_mode));
}

static knee_status read_file(void *ctx, const char *name, size_t cap, char **data, size_t *length,
                             struct knee_err *err)
{
    (void)ctx;
    return cli_read_file(name, cap, data, length, err);
}

struct stream {
    int fd;
};

static void close_stream(void *ctx)
{
    cli_close(((struct stream *)ctx)->fd);
    free(ctx);
}

static knee_status open_stream(void *ctx, const char *name, struct knee_ask_stream *stream,
                               struct knee_err *err)
{
    (void)ctx;
    struct stream *opened = malloc(sizeof *opened);
    if (!opened)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    knee_status status = cli_open(name, &opened->fd, err);
    if (status) {
        free(opened);
        return status;
    }
    stream->reader = knee_input_reader(&opened->fd);
    stream->close = close_stream;
    stream->ctx = opened;
    return KNEE_OK;
}

static knee_status write_perfetto(void *ctx, const char *name, const struct knee_account *account,
                                  struct knee_err *err)
{
    (void)ctx;
    return cli_write_perfetto(name, account, err);
}

struct knee_ask *cli_ask_open(void)
{
    static const struct knee_ask_files files = {file_exists, read_file, open_stream, write_perfetto,
                                                NULL};
    struct knee_ask *ask = knee_ask_begin(NULL);
    if (ask)
        knee_ask_set_files(ask, &files);
    return ask;
}

/* Room for the objects of run->command, with nothing given yet; NULL: no memory. */
static void *ask_room(struct cli_run *run)
{
    const struct knee_ask_command *command = run->command->ask;
    void *room = calloc(1, command->size ? command->size : 1);
    if (!room)
        knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
    else if (command->init)
        command->init(room, run->objects);
    return room;
}

/* What the question made beside its answer. */
static knee_status write_made(struct cli_run *run)
{
    knee_status status = KNEE_OK;
    const char *name;
    for (size_t i = 0; !status && (name = knee_ask_pulled_name(run->ask, i)); i++) {
        status = cli_write_file(name, knee_pull(run->ask, name), &run->err);
        if (run->common.output && strcmp(name, run->common.output) == 0)
            run->common.output = NULL; /* written: the answer itself goes to standard output */
    }
    return status;
}

knee_status cli_answer(struct cli_run *run, const struct knee_ask_work *work)
{
    struct knee_ask_question question = {
        .ask = run->ask,
        .words = run->words,
        .word_count = run->word_count,
        .output = run->command->ask->takes_output ? run->common.output : NULL,
        .style = cli_style(run),
        .outs = {{cli_format(run), &run->text},
                 {KNEE_JSON, run->common.html ? &run->answer : NULL}},
        .work = work,
    };
    memcpy(question.objects, run->objects, sizeof question.objects);
    knee_status status = run->command->ask->answer(&question, &run->err);
    run->answered = question.answered;
    if (!status || status == KNEE_GATE || run->answered) {
        knee_status written = write_made(run);
        if (written) {
            knee_text_release(&run->text);
            run->answered = false;
        }
        status = written ? written : status;
    }
    return status;
}

knee_status cli_ask_with(struct cli_run *run, int argc, char **argv,
                         knee_status (*answer)(struct cli_run *))
{
    void *room = ask_room(run);
    if (!room)
        return KNEE_SYSTEM;
    knee_status status = cli_parse(run, argc, argv);
    if (!status && !run->common.help)
        status = answer(run);
    free(room);
    return status;
}

static knee_status just_answer(struct cli_run *run)
{
    return cli_answer(run, NULL);
}

knee_status cli_ask(struct cli_run *run, int argc, char **argv)
{
    return cli_ask_with(run, argc, argv, just_answer);
}

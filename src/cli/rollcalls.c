/* SPDX-License-Identifier: MIT */
/* Reading roll calls from files: their names have no fixed ending, so each is looked into. */
#include "cli/rollcalls.h"

#include "base/error.h"
#include "cli/threads.h"
#include "cli/traces.h"
#include "read/trace/reader.h"
#include "timeline/rollcall.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST ((size_t)4 << 30)

enum { HEAD = 4096 };

/* The first bytes, unpacked; 0: none can be had. */
static size_t head_of(const char *path, char *head)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct knee_gunzip *gunzip = fd < 0 ? NULL : knee_gunzip_new(cli_reader(&fd), NULL);
    size_t used = 0;
    ptrdiff_t got = gunzip ? 1 : 0;
    while (used < HEAD && got > 0) {
        got = knee_gunzip_read(gunzip, head + used, HEAD - used);
        used += got > 0 ? (size_t)got : 0;
    }
    knee_gunzip_free(gunzip);
    if (fd >= 0)
        close(fd);
    return used;
}

static bool is_rollcall(const char *path)
{
    char head[HEAD];
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
           knee_rollcall_recognise(head, head_of(path, head));
}

static void free_names(char **names)
{
    for (size_t i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
}

/* The first file decides: a folder of traces is not searched to its end. */
bool cli_rollcall_named(const struct cli_run *run)
{
    struct stat info;
    bool found = false;
    for (size_t i = 0; i < run->word_count && !found; i++) {
        if (stat(run->words[i], &info) != 0)
            continue;
        if (S_ISREG(info.st_mode)) {
            found = is_rollcall(run->words[i]);
        } else if (S_ISDIR(info.st_mode)) {
            char **names = cli_find_files(&run->words[i], 1, is_rollcall);
            found = names && names[0];
            free_names(names);
        }
    }
    return found;
}

static knee_status read_one(struct knee_rollcall *roll, const char *name, struct knee_err *err)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    void *data = NULL;
    size_t length = 0;
    if (fd < 0)
        return knee_fail(err, KNEE_INPUT, name, "cannot be opened: %s", strerror(errno));
    knee_status status = knee_gunzip_all(cli_reader(&fd), LARGEST, NULL, &data, &length);
    if (status)
        knee_fail(err, KNEE_INPUT, name, "cannot be read, or is larger than %zu MB", LARGEST >> 20);
    close(fd);
    if (!status)
        status = knee_rollcall_read(roll, name, data, length, err);
    free(data);
    return status;
}

/* Files are read as they come to their turns, and taken in by their order: what is said of them
 * does not depend on threads. */
struct reading {
    char **names;
    size_t count, taken;
    struct one_file {
        struct knee_rollcall roll;
        knee_status status;
        struct knee_err err;
        bool done;
    } * files;
    struct knee_rollcall *roll;
    pthread_mutex_t lock;
};

static void take_in(struct reading *r, struct one_file *file)
{
    if (!file->status)
        file->status = knee_rollcall_take(r->roll, &file->roll, &file->err);
    knee_rollcall_release(&file->roll);
}

static void read_in_turn(void *ctx, size_t i)
{
    struct reading *r = ctx;
    struct one_file *file = &r->files[i];
    file->status = read_one(&file->roll, r->names[i], &file->err);
    pthread_mutex_lock(&r->lock);
    file->done = true;
    for (; r->taken < r->count && r->files[r->taken].done; r->taken++)
        take_in(r, &r->files[r->taken]);
    pthread_mutex_unlock(&r->lock);
}

/* What one file suffers does not touch the others; *refused counts. */
static knee_status sum_up(const struct reading *r, size_t *refused, struct knee_err *err)
{
    knee_status first = KNEE_OK;
    for (size_t i = 0; i < r->count; i++) {
        const struct one_file *file = &r->files[i];
        if (file->status == KNEE_SYSTEM) {
            *err = file->err;
            return KNEE_SYSTEM;
        }
        if (!file->status)
            continue;
        if (first)
            fprintf(stderr, "knee: %s: %s\n", file->err.where, file->err.what);
        *err = first ? *err : file->err;
        first = first ? first : file->status;
        (*refused)++;
    }
    if (first && r->roll->source_count) /* else it is what the command ends with */
        fprintf(stderr, "knee: %s: %s\n", err->where, err->what);
    return r->roll->source_count ? KNEE_OK : first ? first : KNEE_INPUT;
}

static knee_status read_all(char **names, struct knee_rollcall *roll, size_t *refused,
                            struct knee_err *err)
{
    struct reading r = {.names = names, .roll = roll};
    for (; names[r.count]; r.count++)
        cli_note_input(names[r.count]);
    r.files = calloc(r.count + 1, sizeof *r.files);
    if (!r.files)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    pthread_mutex_init(&r.lock, NULL);
    cli_each(NULL, r.count, read_in_turn, &r);
    pthread_mutex_destroy(&r.lock);
    knee_status status = sum_up(&r, refused, err);
    free(r.files);
    return status;
}

knee_status cli_rollcall(struct cli_run *run, const struct knee_cluster *cluster, bool strict)
{
    struct knee_rollcall roll = {0};
    struct knee_roll_answer answer = {0};
    struct knee_err refusal = {0};
    size_t refused = 0;
    char **names = cli_find_files(run->words, run->word_count, is_rollcall);
    knee_status status = names ? read_all(names, &roll, &refused, &refusal)
                               : knee_fail(&refusal, KNEE_SYSTEM, "", "out of memory");
    if (status)
        run->err = refusal;
    if (!status)
        status = knee_rollcall_join(&roll, NULL, &answer, &run->err);
    if (!status) {
        struct knee_style style = cli_style(run);
        if (cluster->level_count > 0)
            knee_expect_rollcall(&answer, cluster);
        struct knee_roll_report report = {&roll, &answer};
        knee_write_rollcall(&report, cli_format(run), &style, &run->text);
        if (run->common.html) {
            knee_write_rollcall(&report, KNEE_JSON, &style, &run->answer);
            run->view = "rollcall";
        }
        run->answered = true;
        if (strict && (refused || roll.skipped))
            status = knee_fail(&run->err, KNEE_INPUT, "--strict",
                               "some of the input was not used: see what was lost");
    }
    knee_roll_answer_release(&answer);
    knee_rollcall_release(&roll);
    free_names(names);
    return status;
}

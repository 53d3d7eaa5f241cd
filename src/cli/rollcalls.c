/* SPDX-License-Identifier: MIT */
/* Reading roll calls from files: their names have no fixed ending, so what they hold tells. */
#include "cli/rollcalls.h"

#include "base/error.h"
#include "cli/threads.h"
#include "cli/traces.h"
#include "out/answer.h"
#include "say/answers.h"
#include "timeline/rollcall.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_rollcall(const struct cli_file *file)
{
    return file->kind && file->kind->reader == KNEE_READ_ROLLCALL;
}

bool cli_has_rollcall(const struct cli_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        if (is_rollcall(&files->rows[i]))
            return true;
    return false;
}

static knee_status read_one(struct knee_rollcall *roll, const char *name, struct knee_err *err)
{
    int fd;
    void *data = NULL;
    size_t length = 0;
    knee_status status = cli_open(name, &fd, err);
    if (status)
        return status;
    size_t most = cli_unpacked_most(fd);
    status = knee_gunzip_all(knee_input_reader(&fd), most, NULL, &data, &length);
    if (status)
        status = knee_fail(err, KNEE_INPUT, name,
                           "cannot be read, or is larger than %zu MB when unpacked", most >> 20);
    close(fd);
    if (!status)
        status = knee_rollcall_read(roll, name, data, length, err);
    free(data);
    return status;
}

/* Threads read files in any order; results are added in the order of the files, so the answer
 * does not depend on threads. */
struct reading {
    const char **names;
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

/* Of a folder only what is a roll call; what was named is read whatever it is. */
static knee_status read_all(const struct cli_files *files, struct knee_rollcall *roll,
                            size_t *refused, struct knee_err *err)
{
    struct reading r = {.roll = roll};
    r.names = calloc(files->count + 1, sizeof *r.names);
    r.files = calloc(files->count + 1, sizeof *r.files);
    if (files->failed || !r.names || !r.files) {
        free(r.names);
        free(r.files);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    }
    for (size_t i = 0; i < files->count; i++)
        if (files->rows[i].named || is_rollcall(&files->rows[i]))
            r.names[r.count++] = files->rows[i].name;
    pthread_mutex_init(&r.lock, NULL);
    cli_each(NULL, r.count, read_in_turn, &r);
    pthread_mutex_destroy(&r.lock);
    knee_status status = sum_up(&r, refused, err);
    free(r.files);
    free(r.names);
    return status;
}

knee_status cli_rollcall(struct cli_run *run, const struct cli_files *files,
                         const struct knee_cluster *cluster, bool strict)
{
    struct knee_rollcall roll = {0};
    struct knee_roll_answer answer = {0};
    struct knee_err refusal = {0};
    size_t refused = 0;
    knee_status status = read_all(files, &roll, &refused, &refusal);
    if (status)
        run->err = refusal;
    if (!status)
        status = knee_rollcall_join(&roll, NULL, &answer, &run->err);
    if (!status) {
        struct knee_style style = cli_style(run);
        if (cluster->level_count > 0)
            knee_expect_rollcall(&answer, cluster);
        struct knee_roll_report report = {&roll, &answer};
        knee_answer_write(&knee_roll_answer_type, &report, cli_format(run), &style, &run->text);
        if (run->common.html) {
            knee_answer_write(&knee_roll_answer_type, &report, KNEE_JSON, &style, &run->answer);
            run->view = "rollcall";
        }
        run->answered = true;
        if (strict && (refused || roll.skipped))
            status = knee_fail(&run->err, KNEE_INPUT, "--strict",
                               "some of the input was not used: see what was lost");
    }
    knee_roll_answer_release(&answer);
    knee_rollcall_release(&roll);
    return status;
}

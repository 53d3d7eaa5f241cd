/* SPDX-License-Identifier: MIT */
/*
 * Files in and out, for the commands: the only place that opens any. What is written goes to a new
 * file that takes the place of the old one when it is whole: a kill or a full disk leaves the old
 * one as it was. What this run has read is never written over.
 */
#include "base/error.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An input that is not there or not a file is the user's to mend; what fails for want of memory,
 * of descriptors or of a disk that works is not its fault, and no answer may be made without it. */
knee_status cli_cannot(const char *name, const char *what, struct knee_err *err)
{
    static const int systems[] = {ENOMEM, EMFILE, ENFILE, EIO, EAGAIN, ENOBUFS};
    knee_status status = KNEE_INPUT;
    int why = errno;
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        status = why == systems[i] ? KNEE_SYSTEM : status;
    return knee_fail(err, status, name, "cannot be %s: %s", what, strerror(why));
}

static knee_status read_all(FILE *file, const char *name, size_t cap, char **data, size_t *length,
                            struct knee_err *err)
{
    struct knee_text text = {0};
    char block[65536];
    size_t got, most = KNEE_TEXT_CAP - sizeof block - 1; /* more than a text holds is too large */
    cap = cap < most ? cap : most;
    while (!text.failed && text.length <= cap && (got = fread(block, 1, sizeof block, file)) > 0)
        knee_text_add(&text, block, got);
    knee_status status = KNEE_OK;
    if (ferror(file))
        status = cli_cannot(name, "read", err);
    else if (text.failed)
        status = knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    else if (text.length > cap)
        status = knee_fail(err, KNEE_INPUT, name, "larger than %zu bytes", cap);
    if (status) {
        knee_text_release(&text);
        return status;
    }
    *data = text.data;
    *length = text.length;
    return KNEE_OK;
}

knee_status cli_read_file(const char *name, size_t cap, char **data, size_t *length,
                          struct knee_err *err)
{
    if (strcmp(name, "-") == 0)
        return read_all(stdin, "standard input", cap, data, length, err);
    FILE *file = fopen(name, "rb");
    if (!file)
        return cli_cannot(name, "opened", err);
    cli_note_input(name);
    knee_status status = read_all(file, name, cap, data, length, err);
    fclose(file);
    return status;
}

const char *cli_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *cli_input_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : cli_base_name(path);
}

/* ---- Writing: whole or not at all ---- */

/* The files that this run read. Writing over one of them would destroy what the answer is about. */
static struct {
    struct {
        dev_t device;
        ino_t number;
    } * files;
    size_t count, capacity;
    bool failed;
} inputs;

void cli_note_input(const char *name)
{
    struct stat info;
    if (strcmp(name, "-") == 0 || stat(name, &info) != 0 || !S_ISREG(info.st_mode))
        return;
    if (inputs.count == inputs.capacity) {
        size_t capacity = inputs.capacity ? inputs.capacity * 2 : 16;
        void *files = realloc(inputs.files, capacity * sizeof *inputs.files);
        inputs.failed = inputs.failed || !files;
        if (!files)
            return;
        inputs.files = files;
        inputs.capacity = capacity;
    }
    inputs.files[inputs.count].device = info.st_dev;
    inputs.files[inputs.count++].number = info.st_ino;
}

static bool is_input(const struct stat *info)
{
    for (size_t i = 0; i < inputs.count; i++)
        if (inputs.files[i].device == info->st_dev && inputs.files[i].number == info->st_ino)
            return true;
    return false;
}

static knee_status refuse_input(const char *name, struct knee_err *err)
{
    if (inputs.failed)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory for the output");
    knee_fail(err, KNEE_USAGE, name, "is read by this run and would be overwritten by it");
    knee_hint(err, "name another file");
    return KNEE_USAGE;
}

static knee_status cannot_write(const char *name, struct knee_err *err)
{
    return knee_fail(err, KNEE_SYSTEM, name && name[0] ? name : "''", "cannot be written: %s",
                     strerror(errno));
}

/* A new file beside `path`, with the rights that the one there has, or that a new one gets. */
static FILE *open_beside(const char *path, const struct stat *old, char **temporary)
{
    static const char pattern[] = ".knee-XXXXXX"; /* hidden: a search for traces passes it by */
    size_t folder = (size_t)(cli_base_name(path) - path);
    char *name = malloc(folder + sizeof pattern);
    if (!name)
        return NULL;
    memcpy(name, path, folder);
    memcpy(name + folder, pattern, sizeof pattern);
    mode_t mask = umask(0);
    umask(mask);
    int fd = mkstemp(name);
    bool good = fd >= 0 && fchmod(fd, old ? old->st_mode & 0777 : 0666 & ~mask) == 0;
    FILE *file = good ? fdopen(fd, "wb") : NULL;
    if (fd >= 0 && !file) {
        int why = errno;
        close(fd);
        unlink(name);
        errno = why;
    }
    if (file)
        *temporary = name;
    else
        free(name);
    return file;
}

/* May the old file be written in place when no new one can be made beside it? Not on a full disk.
 */
static bool folder_is_closed(int why)
{
    return why == EACCES || why == EPERM || why == EROFS;
}

/* Devices and pipes are written as they are; so is a file in a folder that takes no new ones. */
knee_status cli_output_open(struct cli_output *out, const char *name, struct knee_err *err)
{
    struct stat info;
    bool there = stat(name, &info) == 0;
    bool beside = (!there || S_ISREG(info.st_mode)) && strncmp(name, "/dev/", 5) != 0 &&
                  strncmp(name, "/proc/", 6) != 0;
    *out = (struct cli_output){.name = name};
    if (inputs.failed || (there && is_input(&info)))
        return refuse_input(name, err);
    if (beside) {
        out->path = there ? realpath(name, NULL) : strdup(name); /* a link stays a link */
        /* NOLINTBEGIN(clang-analyzer-unix.Malloc): cli_output_close() frees it, or the end below */
        if (out->path)
            out->file = open_beside(out->path, there ? &info : NULL, &out->temporary);
        /* NOLINTEND(clang-analyzer-unix.Malloc) */
    }
    if (!out->file && (!beside || folder_is_closed(errno)))
        out->file = fopen(name, "wb");
    if (out->file)
        return KNEE_OK;
    knee_status status = cannot_write(name, err);
    free(out->path);
    *out = (struct cli_output){0};
    return status;
}

knee_status cli_output_close(struct cli_output *out, bool good, struct knee_err *err)
{
    good = good && fflush(out->file) == 0 && (!out->temporary || fsync(fileno(out->file)) == 0);
    int why = errno;
    if (fclose(out->file) != 0 && good) {
        good = false;
        why = errno;
    }
    if (good && out->temporary && rename(out->temporary, out->path) != 0) {
        good = false;
        why = errno;
    }
    if (!good && out->temporary)
        unlink(out->temporary);
    errno = why;
    knee_status status = good ? KNEE_OK : cannot_write(out->name, err);
    free(out->temporary);
    free(out->path);
    *out = (struct cli_output){0};
    return status;
}

static bool write_bytes(void *ctx, const char *data, size_t size)
{
    return size == 0 || fwrite(data, 1, size, ctx) == size;
}

knee_status cli_write_file(const char *name, const struct knee_text *text, struct knee_err *err)
{
    struct cli_output out;
    if (text->failed)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory for the output");
    knee_status status = cli_output_open(&out, name, err);
    return status ? status
                  : cli_output_close(&out, write_bytes(out.file, text->data, text->length), err);
}

knee_status cli_write_perfetto(const char *name, const struct knee_account *account,
                               struct knee_err *err)
{
    struct cli_output out;
    knee_status status = cli_output_open(&out, name, err);
    if (status)
        return status;
    bool good = knee_write_perfetto(account, (struct knee_sink){write_bytes, out.file}, NULL);
    return cli_output_close(&out, good, err);
}

static knee_status write_rank(const char *prefix, int64_t rank, struct knee_chakra_graph *graph,
                              size_t row, struct knee_err *err)
{
    char name[4096];
    struct cli_output out;
    if ((size_t)snprintf(name, sizeof name, "%s.%lld.et", prefix, (long long)rank) >= sizeof name)
        return knee_fail(err, KNEE_USAGE, "--chakra", "the name is too long");
    knee_status status = cli_output_open(&out, name, err);
    if (status)
        return status;
    bool good = knee_chakra_write(graph, row, (struct knee_sink){write_bytes, out.file});
    return cli_output_close(&out, good, err);
}

knee_status cli_write_chakra(const char *prefix, const struct knee_account *account,
                             struct knee_err *err)
{
    struct knee_chakra_graph *graph = NULL;
    knee_status status = knee_chakra_begin(account, NULL, &graph, err);
    for (size_t r = 0; r < account->rank_count && !status; r++)
        status = write_rank(prefix, account->ranks[r].rank, graph, r, err);
    knee_chakra_end(graph);
    return status;
}

static ptrdiff_t read_fd(void *ctx, void *buffer, size_t size)
{
    ptrdiff_t got;
    do
        got = read(*(int *)ctx, buffer, size);
    while (got < 0 && errno == EINTR);
    return got;
}

struct knee_reader cli_reader(int *fd)
{
    return (struct knee_reader){read_fd, fd};
}

knee_status cli_print(struct cli_run *run)
{
    if (run->text.failed)
        return knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory for the output");
    if (run->text.length == 0)
        return KNEE_OK;
    if (run->common.output)
        return cli_write_file(run->common.output, &run->text, &run->err);
    bool bad = fwrite(run->text.data, 1, run->text.length, stdout) != run->text.length;
    bad = fflush(stdout) != 0 || bad;
    if (bad)
        return knee_fail(&run->err, KNEE_SYSTEM, "standard output", "cannot be written: %s",
                         strerror(errno));
    return KNEE_OK;
}

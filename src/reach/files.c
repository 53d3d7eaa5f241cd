/* SPDX-License-Identifier: MIT */
/*
 * Inputs are remembered by device and number, outputs likewise. An output goes to a new file in
 * the same folder, which takes the place of the old one when it is whole: a kill or a full disk
 * leaves the old one as it was. In a folder that takes no new files nothing is written at all, for
 * an old file that is cut first would be lost.
 */
#include "reach/files.h"

#include "base/error.h"
#include "base/list.h"
#include "reach/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Files by what they are, not by how they are called ---- */

struct identity {
    dev_t device;
    ino_t number;
};

static struct {
    struct identity *rows;
    size_t count, capacity;
    bool failed; /* no memory: what was not remembered might be anything */
    pthread_mutex_t lock;
} inputs = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A watcher writes for weeks: only the last few are remembered. */
enum { OUTPUTS = 8 };
static struct {
    struct identity rows[OUTPUTS];
    size_t count;
} outputs;

static bool is_among(const struct identity *rows, size_t count, const struct stat *info)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].device == info->st_dev && rows[i].number == info->st_ino)
            return true;
    return false;
}

static void remember_input(const struct stat *info)
{
    if (!S_ISREG(info->st_mode))
        return;
    pthread_mutex_lock(&inputs.lock);
    if (knee_room(NULL, &inputs.rows, &inputs.capacity, inputs.count + 1, sizeof *inputs.rows))
        inputs.rows[inputs.count++] = (struct identity){info->st_dev, info->st_ino};
    else
        inputs.failed = true;
    pthread_mutex_unlock(&inputs.lock);
}

static void remember_output(const struct stat *info)
{
    outputs.rows[outputs.count++ % OUTPUTS] = (struct identity){info->st_dev, info->st_ino};
}

/* ---- In ---- */

static bool acceptable(const struct stat *info, enum knee_input_from from)
{
    errno = S_ISDIR(info->st_mode) ? EISDIR : ENOTSUP;
    return S_ISREG(info->st_mode) || (from == KNEE_INPUT_NAMED && !S_ISDIR(info->st_mode));
}

int knee_open_input(int at, const char *name, enum knee_input_from from)
{
    int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct stat info;
    int fd = openat(at, name, flags | (from == KNEE_INPUT_INSIDE ? O_NOFOLLOW : 0));
    if (fd < 0)
        return -1;
    if (fstat(fd, &info) != 0 || !acceptable(&info, from)) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    remember_input(&info);
    return fd;
}

int knee_open_folder(int at, const char *name, enum knee_input_from from)
{
    return openat(at, name,
                  O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC |
                      (from == KNEE_INPUT_INSIDE ? O_NOFOLLOW : 0));
}

ptrdiff_t knee_input_read(int fd, void *buffer, size_t size)
{
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (knee_stop_poll(&ready, 1, -1) < 0) {
            errno = EINTR;
            return -1;
        }
        ssize_t got = read(fd, buffer, size);
        if (got >= 0 || (errno != EINTR && errno != EAGAIN))
            return got;
    }
}

static ptrdiff_t read_input(void *ctx, void *buffer, size_t size)
{
    return knee_input_read(*(int *)ctx, buffer, size);
}

struct knee_reader knee_input_reader(int *fd)
{
    return (struct knee_reader){read_input, fd};
}

void knee_forget_inputs(void)
{
    pthread_mutex_lock(&inputs.lock);
    inputs.count = 0;
    pthread_mutex_unlock(&inputs.lock);
}

void knee_note_input(const char *name)
{
    struct stat info;
    if (strcmp(name, "-") != 0 && stat(name, &info) == 0)
        remember_input(&info);
}

/* ---- Out ---- */

static knee_status refuse_input(const char *name, struct knee_err *err)
{
    if (inputs.failed)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory for the output");
    return knee_fail_hint(err, KNEE_USAGE, name, "name another file",
                          "is read by this run and would be overwritten by it");
}

static knee_status cannot_write(const char *name, struct knee_err *err)
{
    return knee_fail(err, KNEE_SYSTEM, name && name[0] ? name : "''", "cannot be written: %s",
                     strerror(errno));
}

/* A new file beside `path`, with the rights that the one there has, or that a new one gets. */
static FILE *open_beside(const char *path, mode_t mode, char **temporary)
{
    static const char pattern[] = ".knee-XXXXXX"; /* hidden: a search for traces passes it by */
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - path) : 0;
    char *name = malloc(folder + sizeof pattern);
    if (!name)
        return NULL;
    memcpy(name, path, folder);
    memcpy(name + folder, pattern, sizeof pattern);
    int fd = mkstemp(name);
    bool good = fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fchmod(fd, mode) == 0;
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

/* Pipes, devices and what the caller has open already are written as they are; /dev/shm/x is a
 * file like any other. */
static bool is_replaced(const char *name, bool there, const struct stat *info)
{
    static const char *const open_already[] = {"/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/"};
    for (size_t i = 0; i < sizeof open_already / sizeof *open_already; i++)
        if (strncmp(name, open_already[i], strlen(open_already[i])) == 0)
            return false;
    return !there || S_ISREG(info->st_mode);
}

knee_status knee_output_open(struct knee_output *out, const char *name, mode_t mode,
                             struct knee_err *err)
{
    struct stat info;
    bool there = stat(name, &info) == 0, beside = is_replaced(name, there, &info);
    mode_t mask = umask(0);
    umask(mask);
    *out = (struct knee_output){.name = name};
    if (inputs.failed || (there && is_among(inputs.rows, inputs.count, &info)))
        return refuse_input(name, err);
    if (beside) {
        out->path = there ? realpath(name, NULL) : strdup(name); /* a link stays a link */
        /* NOLINTBEGIN(clang-analyzer-unix.Malloc): knee_output_close() frees it, or the end below
         */
        if (out->path)
            out->file =
                open_beside(out->path, there ? info.st_mode & 0777 : mode & ~mask, &out->temporary);
        /* NOLINTEND(clang-analyzer-unix.Malloc) */
    } else {
        out->file = fopen(name, "wb");
    }
    if (out->file)
        return KNEE_OK;
    knee_status status = cannot_write(name, err);
    if (beside && there && (errno == EACCES || errno == EPERM || errno == EROFS))
        knee_hint(err, "its folder takes no new files, and an output is never written in place");
    free(out->path);
    *out = (struct knee_output){0};
    return status;
}

knee_status knee_output_close(struct knee_output *out, bool good, struct knee_err *err)
{
    struct stat info = {0};
    good = good && fflush(out->file) == 0 &&
           (!out->temporary ||
            (fsync(fileno(out->file)) == 0 && fstat(fileno(out->file), &info) == 0));
    int why = errno;
    if (fclose(out->file) != 0 && good) {
        good = false;
        why = errno;
    }
    if (good && out->temporary && rename(out->temporary, out->path) != 0) {
        good = false;
        why = errno;
    }
    if (good && out->temporary)
        remember_output(&info);
    if (!good && out->temporary)
        unlink(out->temporary);
    errno = why;
    knee_status status = good ? KNEE_OK : cannot_write(out->name, err);
    free(out->temporary);
    free(out->path);
    *out = (struct knee_output){0};
    return status;
}

knee_status knee_output_write(const char *name, mode_t mode, const struct knee_text *text,
                              struct knee_err *err)
{
    struct knee_output out;
    if (text->failed)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory for the output");
    knee_status status = knee_output_open(&out, name, mode, err);
    if (status)
        return status;
    bool good = text->length == 0 || fwrite(text->data, 1, text->length, out.file) == text->length;
    return knee_output_close(&out, good, err);
}

void knee_output_remove(const char *name)
{
    struct stat info;
    char *path = realpath(name, NULL); /* through a link: the file goes, the link stays */
    if (path && lstat(path, &info) == 0 &&
        is_among(outputs.rows, outputs.count < OUTPUTS ? outputs.count : OUTPUTS, &info))
        unlink(path);
    free(path);
}

void knee_scratch_remove(const char *folder, const char *file)
{
    unlink(file);
    rmdir(folder);
}

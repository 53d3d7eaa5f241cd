/* SPDX-License-Identifier: MIT */
/*
 * Text to learn from, made here: sentences about training, from a small grammar. It has structure
 * at several lengths (spelling, word order, agreement, a subject that a paragraph keeps to), and
 * numbers that cannot be guessed, so that the loss falls quickly at first and never to zero.
 */
#include "lab/lab_loader.h"

#include "base/error.h"
#include "lab/lab_net.h"
#include "reach/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES = 1 << 20 };

#define PICK(list, state) (list)[lab_random(state) % (sizeof(list) / sizeof *(list))]

static const char *const subjects[] = {"worker", "link",   "loader",   "rank",
                                       "ring",   "bucket", "gradient", "batch"};
static const char *const adjectives[] = {"slow", "small", "late", "busy", "large", "idle", "new"};
static const char *const verbs[] = {"waits for", "sends",   "holds",    "needs",
                                    "meets",     "follows", "overlaps", "hides behind"};
static const char *const joints[] = {"because", "while", "until", "and", "but", "when"};
static const char *const units[] = {"ms", "bytes", "steps", "hops"};

/* Words are drawn one statement at a time: arguments have no order in C, and the text must be the
 * same from every compiler. */
static int sentence(char *out, size_t size, const char *subject, uint64_t *state)
{
    uint64_t form = lab_random(state) >> 62;
    const char *other = PICK(subjects, state);
    const char *verb = PICK(verbs, state);
    const char *adjective = PICK(adjectives, state);
    const char *second = PICK(adjectives, state);
    const char *joint = PICK(joints, state);
    const char *unit = PICK(units, state);
    int number = (int)(lab_random(state) >> 57);
    switch (form) {
    case 0: return snprintf(out, size, "The %s %s the %s %s. ", subject, verb, adjective, other);
    case 1:
        return snprintf(out, size, "The %s is %s %s the %s %s it. ", subject, adjective, joint,
                        other, verb);
    case 2:
        return snprintf(out, size, "After %d %s the %s %s the %s. ", number, unit, subject, verb,
                        other);
    default: return snprintf(out, size, "A %s %s %s a %s one. ", adjective, subject, verb, second);
    }
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t wrote = write(fd, data, size);
        if (wrote <= 0)
            return false;
        data += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

bool lab_write_text(int fd, size_t bytes)
{
    uint64_t state = 20261115;
    char *text = malloc(bytes + 256);
    size_t at = 0;
    if (!text)
        return false;
    while (at < bytes) {
        const char *subject = PICK(subjects, &state);
        for (uint64_t left = 3 + (lab_random(&state) >> 61); left > 0 && at < bytes; left--)
            at += (size_t)sentence(text + at, 256, subject, &state);
        text[at - 1] = '\n';
    }
    bool good = write_all(fd, text, bytes);
    free(text);
    return good;
}

/* Written, opened and unlinked: a killed run leaves nothing behind. */
static knee_status own_text(int *fd, size_t *bytes, struct knee_err *err)
{
    const char *folder = getenv("TMPDIR");
    char path[PATH_MAX];
    int length =
        snprintf(path, sizeof path, "%s/knee-lab-XXXXXX", folder && *folder ? folder : "/tmp");
    if (length < 0 || (size_t)length >= sizeof path)
        return knee_fail_hint(err, KNEE_SYSTEM, "TMPDIR", "set it to a folder with 1 MiB of room",
                              "is longer than a path can be");
    int file = mkstemp(path);
    if (file >= 0)
        unlink(path);
    if (file < 0 || !lab_write_text(file, TEXT_BYTES)) {
        knee_status status =
            knee_fail(err, KNEE_SYSTEM, path, "cannot be written: %s", strerror(errno));
        knee_hint(err, "set TMPDIR to a folder with 1 MiB of room");
        if (file >= 0)
            close(file);
        return status;
    }
    *fd = file;
    *bytes = TEXT_BYTES;
    return KNEE_OK;
}

knee_status lab_open_text(const char *file, int *fd, size_t *bytes, struct knee_err *err)
{
    struct stat facts;
    enum { LEAST = 65536 };
    if (!file)
        return own_text(fd, bytes, err);
    int opened = knee_open_input(AT_FDCWD, file, KNEE_INPUT_LISTED);
    if (opened < 0)
        return knee_fail(err, KNEE_INPUT, file, "cannot be opened: %s", strerror(errno));
    if (fstat(opened, &facts) != 0 || facts.st_size < LEAST) {
        close(opened);
        return knee_fail_hint(err, KNEE_INPUT, file, "give 64 KiB of text or more",
                              "is too small to learn from");
    }
    *fd = opened;
    *bytes = (size_t)facts.st_size;
    return KNEE_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * The two doors between knee and the file system. Everything that others wrote comes in through
 * knee_open_input(), and everything that knee leaves behind goes out through knee_output_open().
 * tools/doors finds a call of open(), fopen(), rename() and the like anywhere else.
 */
#ifndef KNEE_REACH_FILES_H
#define KNEE_REACH_FILES_H

#include "base/text.h"
#include "knee_timeline.h"

#include <stdio.h>
#include <sys/stat.h>

/* ---- In ---- */

/* How a file came to be opened decides what it may be. */
enum knee_input_from {
    KNEE_INPUT_NAMED,  /* by the user: a pipe or a device may be what is meant */
    KNEE_INPUT_LISTED, /* found in a folder, perhaps through a link: regular files only */
    KNEE_INPUT_INSIDE, /* found in a folder that others write: regular files, no links */
};

/* Opens `name` below the folder `at` (AT_FDCWD: as open() does), without waiting for anybody: a
 * pipe without a writer is open at once, and knee_input_read() waits. The file is noted, and no
 * output of this run may take its place. -1 with errno: EISDIR and ENOTSUP are what it may not be,
 * ELOOP a link. */
int knee_open_input(int at, const char *name, enum knee_input_from from);
/* A folder, for openat() and listing; a link only where the user named it. */
int knee_open_folder(int at, const char *name, enum knee_input_from from);

/* read(), which waits for what comes through a pipe until a stop is asked for: -1 with EINTR
 * then. */
ptrdiff_t knee_input_read(int fd, void *buffer, size_t size);
/* The same as a reader; `fd` must stay open. */
struct knee_reader knee_input_reader(int *fd);

/* Remembers a file that a library opens (SQLite): no output may overwrite it. */
void knee_note_input(const char *name);
/* A watcher reads for weeks: before each look what the last one read is forgotten. */
void knee_forget_inputs(void);

/* ---- Out ---- */

/* A file being written. What was there stays until knee_output_close() has all of the new one;
 * pipes and devices are written as they are. */
struct knee_output {
    FILE *file;
    const char *name;       /* as the user said it; borrowed */
    char *path, *temporary; /* NULL: written in place */
};
/* `mode`: rights of a new file, less the umask; an old one keeps its own. KNEE_USAGE: the file is
 * an input of this run. */
knee_status knee_output_open(struct knee_output *out, const char *name, mode_t mode,
                             struct knee_err *err);
/* `good` false: something could not be written, and the old file stays. */
knee_status knee_output_close(struct knee_output *out, bool good, struct knee_err *err);
/* The whole of a text. */
knee_status knee_output_write(const char *name, mode_t mode, const struct knee_text *text,
                              struct knee_err *err);

/* Removes `name` if it still is the regular file that this run wrote there last; whatever else
 * has come to be there stays. */
void knee_output_remove(const char *name);

/* Removes a folder that this run made with mkdtemp(), and the one file that a program wrote there.
 */
void knee_scratch_remove(const char *folder, const char *file);

#endif

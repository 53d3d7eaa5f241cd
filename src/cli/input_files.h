/* SPDX-License-Identifier: MIT */
/* Which files there are: names and folders, each file looked into once before it is read. */
#ifndef KNEE_CLI_INPUT_FILES_H
#define KNEE_CLI_INPUT_FILES_H

#include "base/map.h"
#include "cli/cli.h"
#include "read/file_kinds.h"

#include <stdint.h>

struct cli_file {
    char *name;
    const struct knee_file_kind *kind; /* NULL: not known */
    uint64_t bytes;                    /* about: of a gzipped file what its end says */
    bool named;                        /* by the user, not found in a folder */
};

struct cli_files {
    struct cli_file *rows; /* of a folder in natural order: rank2 before rank10 */
    size_t count, capacity;
    bool failed;                      /* no memory */
    size_t again;                     /* names that led to files that were there already */
    size_t unsearched;                /* folders too deep or not readable, names too long */
    size_t unfollowed;                /* links to folders; traces by name that are no files */
    bool (*wanted)(const char *path); /* of a folder's files; NULL: those that a command takes */
    struct knee_map visits;           /* the files there are so far: bool, in the list */
};

enum { CLI_DEEPEST = 6 }; /* folders inside folders */

/* The files that are named, and those in folders that are named and of a kind that `command` takes,
 * or end as its files do. Each once, opened once. Release with cli_files_release() also when it
 * failed. */
void cli_files_find(struct cli_files *files, const char *const *words, size_t count,
                    const char *command);
/* About how many bytes there are to read, unpacked. */
uint64_t cli_files_bytes(const struct cli_files *files);
/* One more, not looked into. */
void cli_files_add(struct cli_files *files, const char *name);
void cli_files_release(struct cli_files *files);

/* The files that are named, and those in folders that are wanted by their names; NULL ends. All of
 * it lies in the arena; NULL: no memory. */
typedef bool cli_wanted(const char *path);
char **cli_find_files(const char *const *words, size_t count, cli_wanted *wanted,
                      struct knee_arena *arena);

/* What a file is; NULL: a folder, not readable, or of no kind that is known. Standard input is not
 * looked into. */
const struct knee_file_kind *cli_file_kind(const char *name);

/* An error about a file that the command does not take, but another one: says which. */
void cli_name_right_command(const struct cli_run *run, struct knee_err *err);

#endif

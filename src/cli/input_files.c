/* SPDX-License-Identifier: MIT */
/*
 * One walk over names and folders. A file is opened once before it is read: its first bytes say
 * what it is (read/file_kinds.h), and the end of a gzipped one how large it is unpacked. Who reads
 * the files gets that list and looks into none of them again.
 */
#include "cli/input_files.h"

#include "base/error.h"
#include "base/list.h"
#include "reach/files.h"
#include "read/trace/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the file is in the list, to be set, the first time; NULL later: links and other names
 * that lead to the same file count once. */
static bool *visit(struct cli_files *files, const struct stat *info)
{
    size_t known = files->visits.rows.count;
    knee_map_part(&files->visits, &info->st_dev, sizeof info->st_dev);
    bool *taken = knee_map_row(&files->visits, &info->st_ino, sizeof info->st_ino, sizeof *taken);
    files->failed = files->failed || !taken;
    bool again = files->visits.rows.count == known;
    files->again += taken && again && *taken;
    return again ? NULL : taken;
}

/* ---- One file ---- */

/* The first bytes, unpacked; 0: none can be had. The file is at its start again. */
static size_t head_of(int fd, char *head)
{
    struct knee_gunzip *gunzip = knee_gunzip_new(knee_input_reader(&fd), NULL);
    size_t used = 0;
    ptrdiff_t got = gunzip ? 1 : 0;
    while (used < KNEE_KIND_HEAD && got > 0) {
        got = knee_gunzip_read(gunzip, head + used, KNEE_KIND_HEAD - used);
        used += got > 0 ? (size_t)got : 0;
    }
    knee_gunzip_free(gunzip);
    return used;
}

/* The size of what is packed stands in the last four bytes (RFC 1952), modulo 2^32. */
static uint64_t unpacked_bytes(int fd, uint64_t size)
{
    unsigned char start[2], end[4];
    if (size <= 18 || pread(fd, start, sizeof start, 0) != 2 || start[0] != 0x1f ||
        start[1] != 0x8b || pread(fd, end, sizeof end, (off_t)(size - sizeof end)) != 4)
        return size;
    uint64_t said =
        (uint64_t)end[0] | (uint64_t)end[1] << 8 | (uint64_t)end[2] << 16 | (uint64_t)end[3] << 24;
    return said > size ? said : size;
}

static void look_into(struct cli_file *file)
{
    char head[KNEE_KIND_HEAD];
    struct stat info;
    /* A pipe must not be opened twice: its writer would be gone the second time. */
    bool regular = stat(file->name, &info) == 0 && S_ISREG(info.st_mode);
    int fd = regular ? knee_open_input(AT_FDCWD, file->name, KNEE_INPUT_LISTED) : -1;
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        file->bytes = info.st_size > 0 ? unpacked_bytes(fd, (uint64_t)info.st_size) : 0;
        file->kind = knee_file_kind_of(file->name, head, head_of(fd, head));
    }
    if (fd >= 0)
        close(fd);
}

const struct knee_file_kind *cli_file_kind(const char *name)
{
    struct cli_file file = {.name = (char *)name};
    if (strcmp(name, "-") != 0)
        look_into(&file);
    return file.kind;
}

/* ---- The list ---- */

static struct cli_file *add_row(struct cli_files *files, const char *name)
{
    if (!knee_room(NULL, &files->rows, &files->capacity, files->count + 1, sizeof *files->rows)) {
        files->failed = true;
        return NULL;
    }
    struct cli_file *row = &files->rows[files->count];
    *row = (struct cli_file){.name = strdup(name)};
    files->failed = files->failed || !row->name;
    files->count += row->name != NULL;
    return row->name ? row : NULL;
}

void cli_files_add(struct cli_files *files, const char *name)
{
    if (add_row(files, name))
        knee_note_input(name);
}

static void add_named(struct cli_files *files, const char *name)
{
    struct cli_file *row = add_row(files, name);
    knee_note_input(name);
    if (row)
        row->named = true;
    if (row && strcmp(name, "-") != 0)
        look_into(row);
}

/* A file of a folder stays when the command takes it. */
static bool add_found(struct cli_files *files, const char *name, const char *command)
{
    if (files->wanted && !files->wanted(name))
        return false;
    struct cli_file *row = add_row(files, name);
    if (!row || files->wanted)
        return row != NULL;
    look_into(row);
    bool takes = row->kind && row->kind->reader != KNEE_READ_OTHERWISE &&
                 knee_file_kind_for(row->kind, command);
    if (takes || knee_file_ends_like_trace(name)) {
        knee_note_input(name);
        return true;
    }
    free(row->name);
    files->count--;
    return false;
}

static void search_folder(struct cli_files *files, const char *folder, const char *command,
                          int depth)
{
    int fd = depth <= CLI_DEEPEST
                 ? knee_open_folder(AT_FDCWD, folder, depth ? KNEE_INPUT_LISTED : KNEE_INPUT_NAMED)
                 : -1;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir)
        close(fd);
    struct dirent *entry;
    files->unsearched += !dir;
    while (dir && (entry = readdir(dir))) {
        char path[4096];
        struct stat info, link;
        bool *taken;
        if (entry->d_name[0] == '.')
            continue;
        size_t length = (size_t)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        files->unsearched += length >= sizeof path;
        if (length >= sizeof path || lstat(path, &link) != 0)
            continue;
        bool there = stat(path, &info) == 0;
        if (S_ISDIR(link.st_mode)) /* not through links: they can go round */
            search_folder(files, path, command, depth + 1);
        else if (there && S_ISDIR(info.st_mode))
            files->unfollowed++;
        else if (!there || !S_ISREG(info.st_mode))
            files->unfollowed += knee_file_ends_like_trace(path);
        else if ((taken = visit(files, &info)))
            *taken = add_found(files, path, command);
    }
    if (dir)
        closedir(dir);
}

/* rank2 before rank10: digits are compared as numbers. */
static int natural(const void *left, const void *right)
{
    const char *a = ((const struct cli_file *)left)->name;
    const char *b = ((const struct cli_file *)right)->name;
    for (; *a && *b; a++, b++) {
        if (*a >= '0' && *a <= '9' && *b >= '0' && *b <= '9') {
            char *a_end, *b_end;
            unsigned long long x = strtoull(a, &a_end, 10), y = strtoull(b, &b_end, 10);
            if (x != y)
                return x < y ? -1 : 1;
            a = a_end - 1;
            b = b_end - 1;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        }
    }
    return (*a > *b) - (*a < *b);
}

void cli_files_find(struct cli_files *files, const char *const *words, size_t count,
                    const char *command)
{
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        if (stat(words[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            size_t before = files->count;
            search_folder(files, words[i], command, 0);
            if (files->count - before > 1)
                qsort(files->rows + before, files->count - before, sizeof *files->rows, natural);
        } else {
            bool regular = stat(words[i], &info) == 0 && S_ISREG(info.st_mode);
            bool *taken = regular ? visit(files, &info) : NULL;
            if (!regular || taken)
                add_named(files, words[i]);
            if (taken)
                *taken = true;
        }
    }
}

char **cli_find_files(const char *const *words, size_t count, cli_wanted *wanted,
                      struct knee_arena *arena)
{
    struct cli_files files = {.wanted = wanted};
    cli_files_find(&files, words, count, "");
    char **names = files.failed ? NULL : knee_arena_take(arena, files.count + 1, sizeof *names);
    for (size_t i = 0; names && i < files.count; i++)
        names[i] = knee_arena_printf(arena, "%s", files.rows[i].name);
    cli_files_release(&files);
    return arena->failed ? NULL : names;
}

void cli_files_release(struct cli_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->rows[i].name);
    free(files->rows);
    knee_map_release(&files->visits);
    *files = (struct cli_files){0};
}

uint64_t cli_files_bytes(const struct cli_files *files)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < files->count; i++)
        bytes += files->rows[i].bytes;
    return bytes;
}

/* Does `where` name the file, with a line behind it or not? */
static bool names(const char *where, const char *file)
{
    size_t length = strlen(file);
    return strncmp(where, file, length) == 0 && (!where[length] || where[length] == ':');
}

/* Some errors have the name without its folder. */
static bool is_about(const struct knee_err *err, const char *file)
{
    const char *slash = strrchr(file, '/');
    return names(err->where, file) || (slash && names(err->where, slash + 1));
}

void cli_name_right_command(const struct cli_run *run, struct knee_err *err)
{
    const struct knee_file_kind *kind = NULL;
    const char *file = "";
    for (size_t i = 0; i < run->word_count && !kind && err->where[0]; i++) {
        const char *equals = strchr(run->words[i], '='); /* knee scale COUNT=FILE */
        file = equals ? equals + 1 : run->words[i];
        kind = is_about(err, file) ? cli_file_kind(file) : NULL;
    }
    if (!kind || !run->command || knee_file_kind_for(kind, run->command->name))
        return;
    const char *name = strstr(kind->run, "FILE");
    int before = (int)(name ? (size_t)(name - kind->run) : strlen(kind->run));
    knee_fail(err, err->status, file, "this is %s", kind->what);
    knee_hint(err, "run: %.*s%s%s", before, kind->run, name ? file : "", name ? name + 4 : "");
}

/* SPDX-License-Identifier: MIT */
/*
 * A saved host, or several. Whatever lies there is only ever read: nothing is run, links that lead
 * outside and things that are no files are left alone and counted.
 */
#include "base/error.h"
#include "base/text.h"
#include "doctor/doctor.h"
#include "reach/files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOSTS_MAX      4096
#define OUTPUT_MAX     256  /* names of one folder of a host */
#define OUTPUTS_MAX    1024 /* files and folders of a host, beside /sys, /proc and /etc */
#define PROCESSES_MAX  16
#define DEPTH_MAX      4
#define SETTINGS_BYTES ((size_t)1 << 20)
#define FILE_BYTES     ((size_t)256 << 20)
#define FACTS_NAME     "knee.facts"

static void take(void *ctx, const char *path, const char *data, size_t length)
{
    knee_host_file(ctx, path, data, length);
}

/* What a name in a folder is, without following links: 'f' file, 'd' folder, 0 something else. */
static char kind_of(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat info;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path ||
        lstat(path, &info))
        return 0;
    return S_ISREG(info.st_mode) ? 'f' : S_ISDIR(info.st_mode) ? 'd' : 0;
}

static bool part_of_host(const char *name)
{
    static const char *const parts[] = {"sys", "proc", "etc", "dev"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(name, parts[i]) == 0)
            return true;
    return false;
}

/* Folders whose files count by where they lie. */
static bool is_tree(const char *name)
{
    return part_of_host(name) && strcmp(name, "dev") != 0;
}

static int in_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void release_names(char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

/* The names of a folder, sorted; NULL: no memory or no folder. Free each and the list. `cut`: there
 * are more than `most`. */
static char **names_of(const char *folder, size_t most, size_t *count, bool *cut)
{
    DIR *dir = opendir(folder);
    char **names = dir ? calloc(most, sizeof *names) : NULL;
    struct dirent *entry;
    *count = 0;
    *cut = false;
    while (names && !*cut && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        *cut = *count == most;
        if (*cut)
            break;
        if (!(names[*count] = strdup(entry->d_name))) {
            release_names(names, *count);
            names = NULL;
            *count = 0;
            errno = ENOMEM;
        } else {
            ++*count;
        }
    }
    int why = errno;
    if (dir)
        closedir(dir);
    errno = why;
    if (names)
        qsort(names, *count, sizeof *names, in_order);
    return names;
}

/* A file somewhere in the host's folder, known by its name or its content. */
static void output_file(struct knee_facts *facts, const char *folder, const char *name)
{
    char path[PATH_MAX];
    size_t length = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    errno = 0;
    char *data = knee_host_slurp(path, FILE_BYTES, &length);
    if (!data && errno == ENOMEM)
        facts->no_memory = true;
    else if (!data)
        facts->unread++;
    else if (strcmp(name, FACTS_NAME) == 0)
        knee_facts_read(facts, data, length);
    else
        knee_host_file(facts, name, data, length);
    free(data);
}

/* Outputs of commands at the top, and in folders that people and their tools make for them. Of
 * /sys, /proc and /etc the table of known paths has been read already. */
static void read_outputs(struct knee_facts *facts, const char *folder, size_t depth, size_t *left)
{
    size_t count;
    bool cut;
    errno = 0;
    char **names = names_of(folder, OUTPUT_MAX, &count, &cut);
    facts->no_memory = facts->no_memory || (!names && errno == ENOMEM);
    facts->unread += !names && errno != ENOMEM; /* a folder that may not be read */
    facts->unread += cut;
    for (size_t i = 0; names && i < count; i++) {
        char path[PATH_MAX];
        char kind = kind_of(folder, names[i]);
        bool room =
            *left > 0 && snprintf(path, sizeof path, "%s/%s", folder, names[i]) < (int)sizeof path;
        if ((kind == 'd' && depth == 0 && is_tree(names[i])) ||
            (depth > 0 && strcmp(names[i], "nccl.conf") == 0)) /* counts where NCCL looks for it */
            continue;
        *left -= room;
        if (kind == 'd' && room && depth < DEPTH_MAX)
            read_outputs(facts, path, depth + 1, left);
        else if (kind == 'f' && room)
            output_file(facts, folder, names[i]);
        else
            facts->unread++; /* too deep, too many, or no file */
    }
    release_names(names, count);
}

/* The file that NCCL_CONF_FILE names, where the folder has it. */
static void read_named_settings(struct knee_facts *facts, const char *folder)
{
    char path[PATH_MAX], inside[PATH_MAX], real[PATH_MAX];
    size_t length = 0, root;
    const char *named = NULL;
    for (size_t i = 0; i < facts->count; i++)
        if (strcmp(facts->rows[i].key, "env") == 0 &&
            strcmp(facts->rows[i].subject, "NCCL_CONF_FILE") == 0)
            named = facts->rows[i].value;
    if (!named || named[0] != '/' ||
        snprintf(path, sizeof path, "%s%s", folder, named) >= (int)sizeof path ||
        !realpath(folder, inside) || !realpath(path, real))
        return;
    root = strlen(inside);
    char *data = strncmp(real, inside, root) == 0 && real[root] == '/'
                     ? knee_host_slurp(real, SETTINGS_BYTES, &length)
                     : NULL;
    if (data)
        knee_host_file(facts, "NCCL_CONF_FILE", data, length);
    free(data);
}

/* The processes in a saved host: proc/1234/environ, limits. */
static void read_processes(struct knee_facts *facts, const char *folder)
{
    static const char *const files[] = {"environ", "limits"};
    char proc[PATH_MAX], path[PATH_MAX];
    size_t count = 0, read = 0;
    bool cut = false;
    if (snprintf(proc, sizeof proc, "%s/proc", folder) >= (int)sizeof proc ||
        kind_of(folder, "proc") != 'd')
        return;
    char **names = names_of(proc, OUTPUT_MAX, &count, &cut);
    for (size_t i = 0; names && i < count && read < PROCESSES_MAX; i++) {
        if (names[i][0] < '1' || names[i][0] > '9' || kind_of(proc, names[i]) != 'd' ||
            snprintf(path, sizeof path, "%s/%s", proc, names[i]) >= (int)sizeof path)
            continue;
        read++;
        for (size_t k = 0; k < sizeof files / sizeof *files; k++)
            if (kind_of(path, files[k]) == 'f')
                output_file(facts, path, files[k]);
    }
    release_names(names, count);
}

static void read_host(struct knee_facts *facts, const char *folder, const char *name)
{
    size_t left = OUTPUTS_MAX;
    snprintf(facts->host, sizeof facts->host, "%.63s", name);
    size_t unread = knee_host_walk(folder, true, (struct knee_file_sink){take, facts});
    facts->no_memory = unread == SIZE_MAX;
    facts->unread += unread == SIZE_MAX ? 0 : unread;
    read_processes(facts, folder);
    read_outputs(facts, folder, 0, &left);
    read_named_settings(facts, folder);
}

/* One host: it has a file, or a folder that hosts have. */
static bool is_host(const char *folder, char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (kind_of(folder, names[i]) == 'f' || part_of_host(names[i]))
            return true;
    return false;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

knee_status knee_host_folder(const char *folder, struct knee_facts **hosts, size_t *count,
                             struct knee_err *err)
{
    size_t names_count, found = 0;
    struct stat info;
    bool cut;
    if (stat(folder, &info) || !S_ISDIR(info.st_mode))
        return knee_fail_hint(err, KNEE_INPUT, folder, "knee doctor --save DIR writes one",
                              "is not a folder%s%s", errno ? ": " : "",
                              errno ? strerror(errno) : "");
    errno = 0;
    char **names = names_of(folder, HOSTS_MAX, &names_count, &cut);
    if (!names)
        return knee_fail(err, errno == ENOMEM ? KNEE_SYSTEM : KNEE_INPUT, folder,
                         "cannot be read: %s", strerror(errno));
    if (cut) {
        release_names(names, names_count);
        return knee_fail(err, KNEE_INPUT, folder, "more than %d names; split the folder",
                         HOSTS_MAX);
    }
    bool one = is_host(folder, names, names_count);
    struct knee_facts *all = calloc(one ? 1 : names_count + 1, sizeof *all);
    if (all && one) {
        read_host(&all[found++], folder, last_part(folder));
    } else if (all) {
        for (size_t i = 0; i < names_count; i++) {
            char path[PATH_MAX];
            if (kind_of(folder, names[i]) != 'd' ||
                snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= (int)sizeof path)
                continue;
            read_host(&all[found++], path, names[i]);
        }
    }
    release_names(names, names_count);
    if (!all)
        return knee_fail(err, KNEE_SYSTEM, folder, "out of memory");
    if (found == 0) {
        free(all);
        return knee_fail_hint(err, KNEE_INPUT, folder, "knee doctor --save DIR writes one",
                              "holds neither files of a host nor folders of hosts");
    }
    *hosts = all;
    *count = found;
    return KNEE_OK;
}

/* ---- Saving ---- */

struct saving {
    const char *folder;
    struct knee_text *left_out;
    struct knee_err *err;
    knee_status status;
};

static bool make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool bad = mkdir(path, 0700) && errno != EEXIST;
        *slash = '/';
        if (bad)
            return false;
    }
    return true;
}

static void write_one(struct saving *s, const char *name, const char *data, size_t length)
{
    char path[PATH_MAX];
    if (s->status || snprintf(path, sizeof path, "%s/%s", s->folder, name) >= (int)sizeof path)
        return;
    struct knee_output out;
    if (!make_folders(path)) {
        s->status = knee_fail(s->err, KNEE_SYSTEM, path, "cannot be written: %s", strerror(errno));
        return;
    }
    s->status = knee_output_open(&out, path, 0600, s->err);
    if (!s->status)
        s->status = knee_output_close(&out, fwrite(data, 1, length, out.file) == length, s->err);
}

/* Writes only the variables that are kept as facts, and lists the names of the others. */
static void write_variables(struct saving *s, const char *data, size_t length)
{
    struct knee_facts kept = {0};
    struct knee_text text = {0};
    const char *end = data + length;
    knee_host_file(&kept, "environ", data, length);
    for (size_t i = 0; i < kept.count; i++)
        if (strcmp(kept.rows[i].key, "env") == 0)
            knee_text_printf(&text, "%s=%s\n", kept.rows[i].subject, kept.rows[i].value);
    for (const char *at = data; at < end; at += strnlen(at, (size_t)(end - at)) + 1) {
        size_t name = strcspn(at, "=");
        bool out = true;
        for (size_t i = 0; i < kept.count && out; i++)
            out = strncmp(kept.rows[i].subject, at, name) != 0 || kept.rows[i].subject[name];
        if (out && name > 0)
            knee_text_printf(s->left_out, "%s%.*s", s->left_out->length ? " " : "", (int)name, at);
    }
    write_one(s, "env", text.length ? text.data : "", text.length);
    knee_text_release(&text);
    knee_facts_release(&kept);
}

static void save_file(void *ctx, const char *path, const char *data, size_t length)
{
    if (strcmp(path, "proc/self/environ") == 0)
        write_variables(ctx, data, length);
    else
        write_one(ctx, path, data, length);
}

knee_status knee_host_save(const char *folder, double limit_s, struct knee_facts *facts,
                           struct knee_text *left_out, struct knee_err *err)
{
    static const char *const only_calls_tell[] = {"shm.bytes", "nccl.version"};
    struct saving s = {folder, left_out, err, KNEE_OK};
    struct knee_text extra = {0};
    if (mkdir(folder, 0700) && errno != EEXIST)
        return knee_fail(err, KNEE_SYSTEM, folder, "cannot be made: %s", strerror(errno));
    knee_host_live(facts, limit_s, 0, (struct knee_file_sink){save_file, &s});
    for (size_t i = 0; i < facts->count; i++)
        for (size_t k = 0; k < 2; k++)
            if (strcmp(facts->rows[i].key, only_calls_tell[k]) == 0)
                knee_text_printf(&extra, "\t%s\t%s\t%s\n", facts->rows[i].key, facts->rows[i].value,
                                 facts->rows[i].value);
    if (extra.length)
        write_one(&s, FACTS_NAME, extra.data, extra.length);
    knee_text_release(&extra);
    return s.status;
}

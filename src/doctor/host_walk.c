/* SPDX-License-Identifier: MIT */
/* The files that the table of known paths names, under any root. */
#include "doctor/doctor.h"
#include "reach/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MAX  1024 /* of one folder */
#define FILE_BYTES ((size_t)1 << 20)

char *knee_host_slurp(const char *path, size_t cap, size_t *length)
{
    struct stat info;
    int fd = knee_open_input(AT_FDCWD, path, KNEE_INPUT_LISTED);
    if (fd < 0)
        return NULL;
    char *data = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (size_t)info.st_size <= cap
                     ? malloc(4096)
                     : NULL;
    size_t used = 0, room = 4096;
    ssize_t got = 0;
    while (data && (got = read(fd, data + used, room - used)) > 0) {
        used += (size_t)got;
        if (used < room)
            continue;
        char *more = room < cap + 1 ? realloc(data, 2 * room) : NULL;
        if (!more) {
            got = -1;
            errno = room < cap + 1 ? ENOMEM : EFBIG;
            break;
        }
        data = more;
        room *= 2;
    }
    int why = errno;
    close(fd);
    errno = why;
    if (data && (got < 0 || used > cap)) {
        free(data);
        errno = why;
        return NULL;
    }
    *length = used;
    return data;
}

/* A saved host is untrusted: a folder that many links lead to is listed once for each pattern, and
 * the walk has a limit. */
#define VISITS_MAX  65536 /* files */
#define FOLDERS_MAX 8192  /* listed, for one pattern */

struct walk {
    const char *root;
    size_t visits;
    struct listed {
        dev_t device;
        ino_t number;
    } * listed;
    size_t listed_count;
    char inside[PATH_MAX]; /* real path of the root; "": links may lead anywhere */
    struct knee_file_sink to;
    size_t unread;
    bool no_memory;
};

static bool leads_outside(const struct walk *w, const char *path)
{
    char real[PATH_MAX];
    size_t length = strlen(w->inside);
    if (!length)
        return false;
    if (!realpath(path, real))
        return true;
    return strncmp(real, w->inside, length) != 0 || (real[length] && real[length] != '/');
}

static void one_file(struct walk *w, const char *path)
{
    char full[PATH_MAX];
    size_t length = 0;
    if (++w->visits > VISITS_MAX && w->inside[0]) {
        w->unread += w->visits == VISITS_MAX + 1;
        return;
    }
    if (snprintf(full, sizeof full, "%s/%s", w->root, path) >= (int)sizeof full ||
        access(full, F_OK) != 0)
        return;
    errno = 0;
    bool outside = leads_outside(w, full);
    char *data = outside ? NULL : knee_host_slurp(full, FILE_BYTES, &length);
    if (data)
        w->to.take(w->to.ctx, path, data, length);
    else if (outside ||
             (errno != EINVAL && errno != ENOTSUP)) /* the speed of an interface that is down */
        w->unread++;
    free(data);
}

/* Has this pattern listed the folder already, by another name? */
static bool listed_before(struct walk *w, int folder)
{
    struct stat info;
    if (!w->inside[0] || fstat(folder, &info) != 0)
        return false;
    for (size_t i = 0; i < w->listed_count; i++)
        if (w->listed[i].number == info.st_ino && w->listed[i].device == info.st_dev)
            return true;
    if (w->listed_count == FOLDERS_MAX) {
        w->unread++;
        return true;
    }
    w->listed[w->listed_count++] = (struct listed){info.st_dev, info.st_ino};
    return false;
}

static void expand(struct walk *w, const char *pattern);

/* The names of a folder in place of the first star. */
static void each_name(struct walk *w, const char *pattern, const char *star)
{
    char folder[PATH_MAX], path[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s/%.*s", w->root, (int)(star - pattern), pattern) >=
        (int)sizeof folder)
        return;
    errno = 0;
    DIR *dir = opendir(folder);
    w->no_memory = w->no_memory || (!dir && errno == ENOMEM);
    if (!dir)
        return;
    struct dirent *entry;
    bool again = listed_before(w, dirfd(dir));
    for (size_t names = 0; !again && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || strchr(entry->d_name, '*'))
            continue;
        if (++names > NAMES_MAX) { /* counted once: how many there are is not looked for */
            w->unread++;
            break;
        }
        if (snprintf(path, sizeof path, "%.*s%s%s", (int)(star - pattern), pattern, entry->d_name,
                     star + 1) < (int)sizeof path)
            expand(w, path);
    }
    closedir(dir);
}

/* At most three stars deep. */
static void expand(struct walk *w, const char *pattern)
{
    const char *star = strstr(pattern, "/*");
    if (star)
        each_name(w, pattern, star + 1);
    else
        one_file(w, pattern);
}

size_t knee_host_walk(const char *root, bool inside, struct knee_file_sink to)
{
    struct walk w = {.root = root, .to = to};
    const char *pattern;
    if (inside && !realpath(root, w.inside))
        return errno == ENOMEM ? SIZE_MAX : 0;
    w.listed = malloc(FOLDERS_MAX * sizeof *w.listed);
    w.no_memory = !w.listed;
    for (size_t i = 0; !w.no_memory && (pattern = knee_host_path(i)); i++) {
        w.listed_count = 0;
        expand(&w, pattern);
    }
    free(w.listed);
    return w.no_memory ? SIZE_MAX : w.unread;
}

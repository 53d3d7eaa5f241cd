/* SPDX-License-Identifier: MIT */
/*
 * Rings are written while they are read: a file may grow, and become the older half of its ring
 * between two reads. So nothing is held open, each file is read once, from the end: what is cut at
 * its beginning is left away up to the first end of a line.
 */
#include "cli/rings.h"

#include "base/error.h"
#include "base/list.h"
#include "base/order.h"
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of all ranks; of one at least, at most; and of the oldest steps. */
#define ALL_BYTES   ((size_t)56 << 20)
#define LEAST_BYTES ((size_t)12 << 10)
#define MOST_BYTES  ((size_t)4 << 20)

enum { HEAD_BYTES = 4096, ABOUT_BYTES = 65536, NAME = 4096 };

/* ---- One file ---- */

struct piece {
    char *data;
    size_t length;
    bool cut; /* what was before it was not read */
};

/* Bytes [from, from + length) of a file; fewer at its end. */
static size_t read_at(int fd, char *data, size_t length, off_t from)
{
    size_t got = 0;
    while (got < length) {
        ssize_t n = pread(fd, data + got, length - got, from + (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    return got;
}

/* The last `most` bytes of folder/name, from the beginning of a line; empty when there is no such
 * file. False: no memory. */
static bool read_tail(int folder, const char *name, size_t most, struct piece *out)
{
    struct stat info = {0};
    int fd = knee_open_input(folder, name, KNEE_INPUT_INSIDE);
    *out = (struct piece){0};
    if (fd < 0)
        return true;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        size_t size = (size_t)info.st_size, length = size < most ? size : most;
        out->data = malloc(length + 1);
        out->cut = length < size;
        out->length = out->data ? read_at(fd, out->data, length, (off_t)(size - length)) : 0;
    }
    close(fd);
    if (!out->data)
        return !(info.st_size > 0 && S_ISREG(info.st_mode));
    char *line = out->cut ? memchr(out->data, '\n', out->length) : NULL;
    if (line) {
        out->length -= (size_t)(line + 1 - out->data);
        memmove(out->data, line + 1, out->length);
    }
    return true;
}

/* The first lines of a file that is longer than what is read of its end. */
static size_t read_head(int folder, const char *name, char *data, size_t size)
{
    int fd = knee_open_input(folder, name, KNEE_INPUT_INSIDE);
    size_t got = fd < 0 ? 0 : read_at(fd, data, size, 0);
    while (got > 0 && data[got - 1] != '\n')
        got--;
    if (fd >= 0)
        close(fd);
    return got;
}

/* ---- One folder ---- */

typedef knee_status take_lines(struct knee_live_rank *rank, const char *text, size_t length,
                               struct knee_err *err);

static knee_status take_piece(struct knee_live_rank *rank, take_lines *take, struct piece *piece,
                              struct knee_err *err)
{
    knee_status status = take(rank, piece->data ? piece->data : "", piece->length, err);
    free(piece->data);
    *piece = (struct piece){0};
    return status;
}

struct ring_file {
    const char *newer, *older;
    bool head;
    take_lines *take;
};

static const struct ring_file step_ring = {"steps.jsonl", "steps.jsonl.1", true,
                                           knee_live_read_steps},
                              call_ring = {"calls.jsonl", "calls.jsonl.1", false,
                                           knee_live_read_calls};

/* A ring: the older half and the newer, at most `most` bytes of both; with `head` also its first
 * lines where those are not among them. */
static knee_status read_ring(int folder, const struct ring_file *ring, size_t most,
                             struct knee_live_rank *rank, struct knee_err *err)
{
    const char *newer = ring->newer, *older = ring->older;
    struct piece late = {0}, early = {0};
    char first[HEAD_BYTES];
    knee_status status = KNEE_OK;
    bool good = read_tail(folder, newer, most, &late);
    if (good && late.length < most && !late.cut)
        good = read_tail(folder, older, most - late.length, &early);
    bool gap = late.cut || early.cut;
    if (good && ring->head && gap) {
        size_t length = read_head(folder, older, first, sizeof first);
        if (!length)
            length = read_head(folder, newer, first, sizeof first);
        status = ring->take(rank, first, length, err);
    }
    if (good && !status)
        status = take_piece(rank, ring->take, &early, err);
    if (good && !status)
        status = take_piece(rank, ring->take, &late, err);
    free(early.data);
    free(late.data);
    return good ? status : knee_fail(err, KNEE_SYSTEM, "", "out of memory");
}

/* "step-000128.json" is 128; -1: it is something else. */
static int64_t step_of(const char *name)
{
    char *end = NULL;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9')
        return -1;
    long long step = strtoll(name + 5, &end, 10);
    return strcmp(end, ".json") == 0 ? step : -1;
}

static void find_traces(int folder, struct cli_ring *ring)
{
    int fd = knee_open_folder(folder, ".", KNEE_INPUT_INSIDE);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    if (!dir && fd >= 0)
        close(fd);
    while (dir && ring->trace_count < CLI_RING_TRACES && (entry = readdir(dir))) {
        struct stat info;
        int64_t step = step_of(entry->d_name);
        if (step >= 0 && fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode))
            ring->traces[ring->trace_count++] = step;
    }
    if (dir)
        closedir(dir);
}

/* KNEE_INPUT: not a folder of the agent's, or it is not readable. */
static knee_status read_folder(int parent, const char *name, size_t bytes,
                               struct knee_live_rank *rank, struct cli_ring *ring,
                               struct knee_err *err)
{
    struct piece about = {0};
    int folder = knee_open_folder(parent, name, KNEE_INPUT_INSIDE);
    if (folder < 0)
        return KNEE_INPUT;
    knee_status status = KNEE_SYSTEM;
    if (!read_tail(folder, "about.json", ABOUT_BYTES, &about))
        knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    else
        status = knee_live_read_about(rank, about.data ? about.data : "", about.length, err);
    free(about.data);
    if (!status)
        status = read_ring(folder, &step_ring, bytes / 3, rank, err);
    if (!status)
        status = read_ring(folder, &call_ring, bytes - bytes / 3, rank, err);
    if (!status)
        find_traces(folder, ring);
    close(folder);
    return status;
}

/* ---- All folders ---- */

/* Names below a folder that may be a rank's: each has an about.json. */
struct names {
    char **rows;
    size_t count, room;
    struct knee_arena memory; /* of the names */
};

static bool add_name(struct names *names, const char *name)
{
    if (!knee_room(NULL, &names->rows, &names->room, names->count + 1, sizeof *names->rows))
        return false;
    names->rows[names->count++] = knee_arena_printf(&names->memory, "%s", name);
    return !names->memory.failed;
}

static knee_status list_folders(const char *dir, DIR *folder, struct names *names,
                                struct knee_err *err)
{
    struct dirent *entry;
    char about[NAME];
    while ((entry = readdir(folder))) {
        int length = snprintf(about, sizeof about, "%s/about.json", entry->d_name);
        if (entry->d_name[0] == '.' || length < 0 || (size_t)length >= sizeof about ||
            faccessat(dirfd(folder), about, F_OK, 0) != 0)
            continue;
        if (!add_name(names, entry->d_name))
            return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    }
    if (names->count)
        return KNEE_OK;
    return knee_fail_hint(err, KNEE_INPUT, dir,
                          "name the folder of knee record env --dir, and start the job with it",
                          "no rank has written here");
}

static size_t share_of(size_t folders)
{
    size_t share = ALL_BYTES / (folders + 1);
    return share < LEAST_BYTES ? LEAST_BYTES : share > MOST_BYTES ? MOST_BYTES : share;
}

static knee_status read_folders(const char *dir, int parent, const struct names *names,
                                struct cli_rings *out, struct knee_err *err)
{
    size_t share = share_of(names->count);
    out->ranks = knee_arena_take(&out->memory, names->count + 1, sizeof *out->ranks);
    out->rings = knee_arena_take(&out->memory, names->count + 1, sizeof *out->rings);
    if (out->memory.failed)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    for (size_t i = 0; i < names->count; i++) {
        struct knee_live_rank *rank = &out->ranks[out->count];
        struct cli_ring *ring = &out->rings[out->count];
        struct knee_err why = {0};
        knee_live_init(rank, NULL);
        ring->path = knee_arena_printf(&out->memory, "%s/%s", dir, names->rows[i]);
        knee_status status =
            ring->path ? read_folder(parent, names->rows[i], share, rank, ring, &why) : KNEE_SYSTEM;
        out->count++; /* released with the others */
        if (status == KNEE_SYSTEM)
            return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
        if (status) {
            knee_live_release(rank);
            *ring = (struct cli_ring){0};
            out->count--;
            out->unusable++;
        }
    }
    if (out->count)
        return KNEE_OK;
    return knee_fail(err, KNEE_INPUT, dir, "not one rank's about.json can be read");
}

static int64_t last_ns(const struct knee_live_rank *rank)
{
    return rank->step_count ? rank->steps[rank->step_count - 1].t_ns : rank->about.start_ns;
}

/* Is `b` the same rank started later, or of a run that began after all that `a` wrote? */
static bool is_earlier(const struct knee_live_rank *a, const struct knee_live_rank *b)
{
    bool same = a->about.rank >= 0 && a->about.rank == b->about.rank;
    return b->about.start_ns > (same ? a->about.start_ns : last_ns(a));
}

static void drop(struct cli_rings *rings, size_t row)
{
    knee_live_release(&rings->ranks[row]);
    rings->count--;
    memmove(&rings->ranks[row], &rings->ranks[row + 1],
            (rings->count - row) * sizeof *rings->ranks);
    memmove(&rings->rings[row], &rings->rings[row + 1],
            (rings->count - row) * sizeof *rings->rings);
    rings->earlier++;
}

/* Folders of what ran before stay behind; the newest start of a rank counts. Rows are by rank. */
static void drop_earlier(struct cli_rings *rings)
{
    size_t newest = 0;
    for (size_t i = 1; i < rings->count; i++)
        if (rings->ranks[i].about.start_ns > rings->ranks[newest].about.start_ns)
            newest = i;
    struct knee_live_rank latest = rings->ranks[newest];
    for (size_t i = rings->count; i-- > 0;) {
        bool again = i + 1 < rings->count && is_earlier(&rings->ranks[i], &rings->ranks[i + 1]) &&
                     rings->ranks[i].about.rank == rings->ranks[i + 1].about.rank;
        if (again || is_earlier(&rings->ranks[i], &latest))
            drop(rings, i);
    }
}

struct row {
    struct knee_live_rank rank;
    struct cli_ring ring;
};

KNEE_BY_TWO(by_rank, struct row, rank.about.rank, rank.about.start_ns)

static bool sort_rings(struct cli_rings *rings)
{
    struct row *rows = malloc((rings->count + 1) * sizeof *rows);
    if (!rows)
        return false;
    for (size_t i = 0; i < rings->count; i++)
        rows[i] = (struct row){rings->ranks[i], rings->rings[i]};
    qsort(rows, rings->count, sizeof *rows, by_rank);
    for (size_t i = 0; i < rings->count; i++) {
        rings->ranks[i] = rows[i].rank;
        rings->rings[i] = rows[i].ring;
    }
    free(rows);
    return true;
}

knee_status cli_rings_read(const char *dir, struct cli_rings *out, struct knee_err *err)
{
    struct cli_rings rings = {0};
    struct names names = {0};
    DIR *folder = opendir(dir);
    if (!folder)
        return knee_fail(err, KNEE_INPUT, dir, "cannot be opened: %s", strerror(errno));
    knee_status status = list_folders(dir, folder, &names, err);
    if (!status)
        status = read_folders(dir, dirfd(folder), &names, &rings, err);
    if (!status && !sort_rings(&rings))
        status = knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    closedir(folder);
    free(names.rows);
    knee_arena_release(&names.memory);
    if (status) {
        cli_rings_release(&rings);
        return status;
    }
    drop_earlier(&rings);
    *out = rings;
    return KNEE_OK;
}

void cli_rings_release(struct cli_rings *rings)
{
    for (size_t i = 0; i < rings->count; i++)
        knee_live_release(&rings->ranks[i]);
    knee_arena_release(&rings->memory);
    *rings = (struct cli_rings){0};
}

/* ---- Sampled steps ---- */

static bool has_trace(const struct cli_ring *ring, int64_t step)
{
    for (size_t i = 0; i < ring->trace_count; i++)
        if (ring->traces[i] == step)
            return true;
    return false;
}

static int64_t newest_common(const struct cli_rings *rings)
{
    int64_t newest = -1;
    for (size_t i = 0; rings->count && i < rings->rings[0].trace_count; i++) {
        int64_t step = rings->rings[0].traces[i];
        bool all = step > newest;
        for (size_t r = 1; r < rings->count && all; r++)
            all = has_trace(&rings->rings[r], step);
        newest = all ? step : newest;
    }
    return newest;
}

knee_status cli_rings_sampled(struct cli_rings *rings, int64_t *step, char ***files,
                              uint64_t *bytes, struct knee_err *err)
{
    int64_t newest = newest_common(rings);
    uint64_t sum = 0;
    char **names = knee_arena_take(&rings->memory, rings->count + 1, sizeof *names);
    for (size_t r = 0; names && newest >= 0 && r < rings->count; r++) {
        struct stat info;
        names[r] = knee_arena_printf(&rings->memory, "%s/step-%06lld.json", rings->rings[r].path,
                                     (long long)newest);
        sum += names[r] && stat(names[r], &info) == 0 ? (uint64_t)info.st_size : 0;
    }
    if (rings->memory.failed)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    *step = newest;
    *files = names;
    *bytes = sum;
    return KNEE_OK;
}

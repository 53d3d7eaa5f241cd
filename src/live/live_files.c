/* SPDX-License-Identifier: MIT */
/*
 * The folder of this process: two rings of lines and one of traces. Lines are gathered and written
 * whole, in one write; a file that cannot take them all is cut back to where it was, so that it
 * ends with a whole line, and the agent is off.
 *
 * The folder above may be shared, and the name of this one can be guessed. So it must be this
 * user's, everything in it is opened relative to its descriptor, and every file is created anew:
 * whatever is already there, above all a link, is removed and not followed.
 */
#include "live/live_agent.h"

#include "knee.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_TRACES = 16, BATCH_BYTES = 256 << 10 };

struct ring {
    const char *name;
    int fd, share; /* of 16 parts of the limit, both files together */
    int64_t size;
    struct knee_text batch;
};

static struct ring steps = {"steps.jsonl", -1, 2, 0, {0}};
static struct ring calls = {"calls.jsonl", -1, 6, 0, {0}};
static char folder[PATH_MAX];
static int folder_fd = -1;
static bool made;

struct kept {
    int64_t step, size;
};
static struct kept kept[KEPT_TRACES];
static size_t kept_count;

/* ---- The folder ---- */

/* The folders above are made as any are; the last one is written by this user only. */
static bool make_folders(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        bool good = mkdir(path, 0777) == 0 || errno == EEXIST;
        *p = '/';
        if (!good)
            return false;
    }
    return mkdir(path, 0755) == 0 || errno == EEXIST;
}

/* A folder of this name may be left from an earlier start; one of another user is refused. */
static bool open_folder(void)
{
    struct stat info;
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder_fd < 0 || fstat(folder_fd, &info) != 0)
        return false;
    if (info.st_uid == geteuid() && fchmod(folder_fd, info.st_mode & 0755) == 0)
        return true;
    errno = EACCES;
    return false;
}

static int open_new(const char *name, int flags)
{
    unlinkat(folder_fd, name, 0);
    return openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | flags,
                  0666);
}

static bool open_ring(struct ring *ring)
{
    ring->fd = open_new(ring->name, O_APPEND);
    ring->size = 0;
    if (ring->fd < 0)
        live_off("%.300s/%s cannot be written: %s; recording is off", folder, ring->name,
                 strerror(errno));
    return ring->fd >= 0;
}

/* What is written into a folder that is gone is lost without an error. */
static bool folder_is_gone(void)
{
    struct stat info;
    if (fstat(folder_fd, &info) == 0 && info.st_nlink > 0)
        return false;
    live_off("%.300s was removed; recording is off", folder);
    return true;
}

static bool make_folder(void)
{
    struct live_about about = live_about();
    if (made || !live_is_on())
        return live_is_on();
    made = true;
    int rank = about.rank >= 0 ? about.rank : live_comm(0).rank;
    snprintf(folder, sizeof folder, "%s/%s-r%d-%ld", live_config()->dir, about.host,
             rank >= 0 ? rank : 0, (long)getpid());
    if (!make_folders(folder) || !open_folder()) {
        live_off("%.300s cannot be made: %s; recording is off", folder, strerror(errno));
        return false;
    }
    live_files_about();
    return open_ring(&steps) && open_ring(&calls);
}

/* ---- Whole files ---- */

static bool write_all(int fd, const char *data, size_t length)
{
    while (length) {
        ssize_t n = write(fd, data, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        length -= (size_t)n;
    }
    return true;
}

static bool write_file(const char *name, const struct knee_text *text)
{
    char beside[128];
    snprintf(beside, sizeof beside, ".%s", name);
    int fd = text->failed ? -1 : open_new(beside, 0);
    bool good = fd >= 0 && write_all(fd, text->data, text->length);
    int reason = errno;
    if (fd >= 0 && close(fd) != 0)
        good = false;
    if (good && renameat(folder_fd, beside, folder_fd, name) == 0)
        return true;
    reason = good ? errno : reason;
    unlinkat(folder_fd, beside, 0);
    live_off("%.300s/%s cannot be written: %s; recording is off", folder, name, strerror(reason));
    return false;
}

static void put_quoted(struct knee_text *text, const char *name, const char *value)
{
    knee_text_printf(text, ", \"%s\": \"", name);
    for (; *value; value++)
        if (*value == '"' || *value == '\\')
            knee_text_printf(text, "\\%c", *value);
        else if ((unsigned char)*value >= 32)
            knee_text_add(text, value, 1);
    knee_text_puts(text, "\"");
}

void live_files_about(void)
{
    static const char *const sources[] = {"cuda", "nccl", "mpi"};
    struct live_about a = live_about();
    const struct live_config *c = live_config();
    struct knee_text text = {0};
    if (!made)
        return;
    knee_text_printf(&text,
                     "{\"schema\": \"knee.live/1\", \"agent\": \"%s\", \"pid\": %ld, \"rank\": %d, "
                     "\"world\": %d, \"local_rank\": %d, \"start_ns\": %" PRId64,
                     knee_version(), (long)getpid(), a.rank >= 0 ? a.rank : live_comm(0).rank,
                     a.world >= 0 ? a.world : live_comm(0).size, a.local_rank, a.start_ns);
    put_quoted(&text, "host", a.host);
    put_quoted(&text, "source", sources[a.source]);
    put_quoted(&text, "cupti",
               !c->cupti || a.source == LIVE_FROM_MPI ? "off"
               : c->always                            ? "always"
                                                      : "sampled");
    if (a.api)
        knee_text_printf(&text, ", \"profiler_api\": %d", a.api);
    if (a.nccl[0])
        put_quoted(&text, "nccl", a.nccl);
    if (a.gpu[0])
        put_quoted(&text, "gpu", a.gpu);
    if (a.gpu_uuid[0])
        put_quoted(&text, "gpu_uuid", a.gpu_uuid);
    knee_text_printf(&text, ", \"kernel_times\": %s", a.kernel_times ? "true" : "false");
    if (a.why[0])
        put_quoted(&text, "why", a.why);
    knee_text_puts(&text, "}\n");
    write_file("about.json", &text);
    knee_text_release(&text);
}

/* ---- Lines ---- */

/* The full file becomes the older half. */
static bool turn(struct ring *ring)
{
    char older[128];
    snprintf(older, sizeof older, "%s.1", ring->name);
    close(ring->fd);
    ring->fd = -1;
    if (renameat(folder_fd, ring->name, folder_fd, older) != 0) {
        live_off("%.300s/%s cannot be renamed: %s; recording is off", folder, ring->name,
                 strerror(errno));
        return false;
    }
    return open_ring(ring);
}

static void write_batch(struct ring *ring)
{
    struct knee_text *batch = &ring->batch;
    if (!batch->length || !make_folder() || folder_is_gone())
        return;
    if (ring->size + (int64_t)batch->length > live_config()->limit_bytes * ring->share / 32 &&
        ring->size > 0 && !turn(ring))
        return;
    if (batch->failed)
        live_off("out of memory; recording is off");
    else if (write_all(ring->fd, batch->data, batch->length))
        ring->size += (int64_t)batch->length;
    else {
        int reason = errno;
        if (ftruncate(ring->fd, ring->size) != 0)
            reason = reason ? reason : errno;
        live_off("%.300s/%s cannot grow: %s; recording is off", folder, ring->name,
                 strerror(reason));
    }
    batch->length = 0;
}

static void add_line(struct ring *ring, const struct knee_text *line)
{
    if (!live_is_on())
        return;
    knee_text_add(&ring->batch, line->data, line->length);
    if (ring->batch.length > BATCH_BYTES || ring->batch.failed)
        write_batch(ring);
}

void live_files_step(const struct knee_text *line)
{
    add_line(&steps, line);
}

void live_files_call(const struct knee_text *line)
{
    add_line(&calls, line);
}

void live_files_flush(void)
{
    write_batch(&steps);
    write_batch(&calls);
}

/* ---- Traces ---- */

static void name_trace(char *name, size_t size, int64_t step)
{
    snprintf(name, size, "step-%06" PRId64 ".json", step);
}

static int64_t bytes_kept(void)
{
    int64_t sum = 0;
    for (size_t i = 0; i < kept_count; i++)
        sum += kept[i].size;
    return sum;
}

static void drop_oldest(void)
{
    char name[64];
    name_trace(name, sizeof name, kept[0].step);
    unlinkat(folder_fd, name, 0);
    memmove(&kept[0], &kept[1], --kept_count * sizeof *kept);
}

bool live_files_trace(int64_t step, const struct knee_text *text, char *name, size_t size)
{
    static int told;
    int64_t room = live_config()->limit_bytes / 2, length = (int64_t)text->length;
    if (length > room)
        live_say(&told,
                 "a sampled step takes %" PRId64 " MB, more than half of what its folder may hold: "
                 "it is not written; KNEE_LIVE_BYTES sets the limit",
                 length / 1000000);
    if (length > room || !make_folder())
        return false;
    while (kept_count && (kept_count == KEPT_TRACES || bytes_kept() + length > room))
        drop_oldest();
    name_trace(name, size, step);
    if (!write_file(name, text))
        return false;
    kept[kept_count++] = (struct kept){step, length};
    return true;
}

void live_files_release(void)
{
    knee_text_release(&steps.batch);
    knee_text_release(&calls.batch);
}

/* SPDX-License-Identifier: MIT */
/*
 * Sets of trace files: folders are searched, each file is read by one thread, as many at once as
 * there are cores. Ctrl-C stops the reading, and what was read by then is accounted. Over several
 * processes each reads its share and tells rank 0 what the account begins with.
 */
#include "cli/traces.h"

#include "base/error.h"
#include "cli/threads.h"
#include "read/trace/reader.h"
#include "timeline/recordings.h"
#include "timeline/wire_format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEEPEST = 6 };

/* A database larger than this is not unpacked; half of what a size_t can say where that is less. */
#define UNPACKED_MAX (SIZE_MAX / 2 < (uint64_t)8 << 30 ? SIZE_MAX / 2 : (size_t)((uint64_t)8 << 30))
_Static_assert(UNPACKED_MAX >= (size_t)1 << 30, "also where a size_t has 32 bits");

static volatile int cancelled;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    cancelled = 1;
    signal(SIGINT, SIG_DFL); /* a second one ends at once */
}

/* A pipe may never say anything again: who waits for it is told by the signal. */
static ptrdiff_t read_until_cancelled(void *ctx, void *buffer, size_t size)
{
    ptrdiff_t got;
    do
        got = cancelled ? 0 : read(*(int *)ctx, buffer, size);
    while (got < 0 && errno == EINTR);
    return got;
}

static struct knee_reader reader_of_file(int *fd)
{
    return (struct knee_reader){read_until_cancelled, fd};
}

/* ---- Which files ---- */

struct files {
    char **names;
    size_t count, capacity;
    bool failed;
    cli_wanted *wanted; /* of a folder's files */
    struct visit {
        dev_t device;
        ino_t file;
    } * visits; /* a hash table of the files there are so far */
    size_t visit_count, visit_capacity, again;
    size_t unsearched; /* folders too deep or not readable, names too long */
};

static size_t visit_slot(const struct visit *visits, size_t capacity, struct visit wanted)
{
    size_t at = (size_t)wanted.file * 0x9e3779b1u & (capacity - 1);
    while (visits[at].file &&
           (visits[at].file != wanted.file || visits[at].device != wanted.device))
        at = (at + 1) & (capacity - 1);
    return at;
}

static bool grow_visits(struct files *files)
{
    size_t capacity = files->visit_capacity ? files->visit_capacity * 2 : 256;
    struct visit *visits = calloc(capacity, sizeof *visits);
    for (size_t i = 0; i < files->visit_capacity && visits; i++)
        if (files->visits[i].file)
            visits[visit_slot(visits, capacity, files->visits[i])] = files->visits[i];
    if (!visits)
        return false;
    free(files->visits);
    files->visits = visits;
    files->visit_capacity = capacity;
    return true;
}

/* True the first time; links and other names that lead to the same file count once. */
static bool visit(struct files *files, const struct stat *info)
{
    struct visit wanted = {info->st_dev, info->st_ino};
    if (files->visit_count * 2 >= files->visit_capacity && !grow_visits(files)) {
        files->failed = true;
        return false;
    }
    size_t at = visit_slot(files->visits, files->visit_capacity, wanted);
    if (files->visits[at].file) {
        files->again++;
        return false;
    }
    files->visits[at] = wanted;
    files->visit_count++;
    return true;
}

static void add_file(struct files *files, const char *name)
{
    if (files->count == files->capacity) {
        size_t capacity = files->capacity ? files->capacity * 2 : 64;
        char **names = realloc(files->names, capacity * sizeof *names);
        if (!names) {
            files->failed = true;
            return;
        }
        files->names = names;
        files->capacity = capacity;
    }
    char *copy = strdup(name);
    cli_note_input(name);
    if (copy)
        files->names[files->count++] = copy;
    files->failed = files->failed || !copy;
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

static bool looks_like_trace(const char *name)
{
    static const char *const ends[] = {".json",
                                       ".json.gz",
                                       ".sqlite",
                                       ".sqlite.gz",
                                       ".rpd",
                                       ".rpd.gz",
                                       ".db",
                                       ".db.gz",
                                       ".xplane.pb",
                                       ".xplane.pb.gz",
                                       "kernel_trace.csv",
                                       "kernel_trace.csv.gz",
                                       ".et",
                                       ".et.gz",
                                       ".knee"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, ends[i]))
            return true;
    return false;
}

static void search_folder(struct files *files, const char *folder, int depth)
{
    DIR *dir = depth <= DEEPEST ? opendir(folder) : NULL;
    struct dirent *entry;
    files->unsearched += !dir;
    while (dir && (entry = readdir(dir))) {
        char path[4096];
        struct stat info, link;
        if (entry->d_name[0] == '.')
            continue;
        size_t length = (size_t)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        files->unsearched += length >= sizeof path;
        if (length >= sizeof path || stat(path, &info) != 0 || lstat(path, &link) != 0)
            continue;
        if (S_ISDIR(link.st_mode)) /* not through links: they can go round */
            search_folder(files, path, depth + 1);
        else if (S_ISREG(info.st_mode) && files->wanted(path) && visit(files, &info))
            add_file(files, path);
    }
    if (dir)
        closedir(dir);
}

/* rank2 before rank10: digits are compared as numbers. */
static int natural(const void *left, const void *right)
{
    const char *a = *(char *const *)left, *b = *(char *const *)right;
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

static void find_files(struct files *files, cli_wanted *wanted, const char *const *words,
                       size_t count)
{
    files->wanted = wanted;
    for (size_t i = 0; i < count; i++) {
        struct stat info;
        if (stat(words[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            size_t before = files->count;
            search_folder(files, words[i], 0);
            if (files->count - before > 1)
                qsort(files->names + before, files->count - before, sizeof *files->names, natural);
        } else if (stat(words[i], &info) != 0 || !S_ISREG(info.st_mode) || visit(files, &info)) {
            add_file(files, words[i]);
        }
    }
}

char **cli_find_files(const char *const *words, size_t count, cli_wanted *wanted)
{
    struct files files = {0};
    find_files(&files, wanted, words, count);
    free(files.visits);
    char **names = realloc(files.names, (files.count + 1) * sizeof *names);
    if (names)
        names[files.count] = NULL;
    if (!files.failed && names)
        return names;
    for (size_t i = 0; i < files.count; i++)
        free((names ? names : files.names)[i]);
    free(names ? names : files.names);
    return NULL;
}

/* ---- Reading ---- */

struct work {
    const struct files *files;
    const struct knee_trace_options *options;
    struct knee_trace *traces; /* per file */
    struct knee_err *errors;   /* per file */
    knee_status *statuses;
    size_t done;
    pthread_mutex_t lock;
    struct knee_runtime *rt; /* NULL: alone */
    bool whole;              /* rank 0 gets whole traces, not outlines */
    unsigned char *repeats;  /* per file: it is the same recording as another one */
    int64_t *jobs;           /* per file: the run that it is a recording of; then their number */
};

/* Which rank reads a file. Only rank 0 has a standard input. */
static int reader_of(const struct work *work, size_t i)
{
    bool standard = strcmp(work->files->names[i], "-") == 0;
    return !work->rt || standard ? 0 : (int)(i % (size_t)work->rt->size);
}

static bool is_mine(const struct work *work, size_t i)
{
    return !work->rt || reader_of(work, i) == work->rt->rank;
}

static bool is_sqlite(int fd)
{
    char magic[16];
    bool found =
        pread(fd, magic, sizeof magic, 0) == 16 && memcmp(magic, "SQLite format 3", 16) == 0;
    return found;
}

/* The most that is unpacked of a database: databases shrink to a tenth, not to a hundredth. */
static size_t unpacked_size(int fd)
{
    struct stat info;
    size_t packed = fstat(fd, &info) == 0 && info.st_size > 0 ? (size_t)info.st_size : 0;
    size_t most = packed < UNPACKED_MAX / 100 ? packed * 100 : UNPACKED_MAX;
    return most > ((size_t)64 << 20) ? most : (size_t)64 << 20;
}

/* Does it begin like a database once it is unpacked? */
static bool holds_sqlite(int *fd)
{
    struct knee_gunzip *gunzip = knee_gunzip_new(reader_of_file(fd), NULL);
    char magic[16];
    size_t used = 0;
    ptrdiff_t got = gunzip ? 1 : 0;
    while (used < sizeof magic && got > 0) {
        got = knee_gunzip_read(gunzip, magic + used, sizeof magic - used);
        used += got > 0 ? (size_t)got : 0;
    }
    knee_gunzip_free(gunzip);
    return used == sizeof magic && memcmp(magic, "SQLite format 3", 16) == 0;
}

/* A gzipped database has to be unpacked first; a trace is read as it comes. */
static knee_status read_packed_sqlite(const char *name, int *fd,
                                      const struct knee_trace_options *options,
                                      struct knee_trace *out, struct knee_err *err)
{
    void *image = NULL;
    size_t size = 0, most = unpacked_size(*fd);
    if (!holds_sqlite(fd) || lseek(*fd, 0, SEEK_SET) != 0)
        return knee_fail(err, KNEE_INPUT, name, "not a trace: no SQLite database in it");
    if (knee_gunzip_all(reader_of_file(fd), most, NULL, &image, &size))
        return knee_fail(err, KNEE_INPUT, name, "cannot be unpacked: damaged, or more than %zu MB",
                         most >> 20);
    knee_status status = knee_nsys_read(name, image, size, options, NULL, out, err);
    free(image);
    return status;
}

/* Is it in one of the formats that are read as a whole? The file is at its start again. */
static bool holds_image(const char *name, int *fd)
{
    if (lseek(*fd, 0, SEEK_SET) != 0)
        return false; /* a pipe: what is looked at would be gone */
    struct knee_gunzip *gunzip = knee_gunzip_new(reader_of_file(fd), NULL);
    char head[KNEE_IMAGE_HEAD];
    size_t used = 0;
    ptrdiff_t got = gunzip ? 1 : 0;
    while (used < sizeof head && got > 0) {
        got = knee_gunzip_read(gunzip, head + used, sizeof head - used);
        used += got > 0 ? (size_t)got : 0;
    }
    knee_gunzip_free(gunzip);
    return lseek(*fd, 0, SEEK_SET) == 0 && knee_image_recognise(name, head, used);
}

static knee_status read_image(const char *name, int *fd, const struct knee_trace_options *options,
                              struct knee_trace *out, struct knee_err *err)
{
    void *data = NULL;
    size_t size = 0;
    if (knee_gunzip_all(reader_of_file(fd), UNPACKED_MAX, NULL, &data, &size))
        return knee_fail(err, KNEE_INPUT, name, "cannot be unpacked: damaged, or too large");
    knee_status status = knee_image_read(name, data, size, options, NULL, out, err);
    free(data);
    return status;
}

static knee_status read_file(const char *name, const struct knee_trace_options *options,
                             struct knee_trace *out, struct knee_err *err)
{
    bool standard = strcmp(name, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    knee_status status;
    if (fd < 0)
        return cli_cannot(name, "opened", err);
    if (!standard && is_sqlite(fd)) {
        status = knee_nsys_read(name, NULL, 0, options, NULL, out, err);
    } else if (ends_with(name, ".sqlite.gz") || ends_with(name, ".rpd.gz") ||
               ends_with(name, ".db.gz")) {
        status = read_packed_sqlite(name, &fd, options, out, err);
    } else if (!standard && holds_image(name, &fd)) {
        status = read_image(name, &fd, options, out, err);
    } else {
        status = knee_trace_read(reader_of_file(&fd), name, options, NULL, out, err);
        if (!status && out->rank_count == 0 && out->cpu_comm && !standard &&
            lseek(fd, 0, SEEK_SET) == 0) {
            struct knee_trace_options again = *options;
            again.cpu = true; /* no GPU, but gloo: the host's operations are the work */
            knee_trace_release(out);
            status = knee_trace_read(reader_of_file(&fd), name, &again, NULL, out, err);
        }
    }
    if (!standard)
        close(fd);
    return status;
}

static void show_progress(const struct work *work)
{
    if (isatty(STDERR_FILENO) && work->files->count > 1)
        fprintf(stderr, "\r  %zu of %zu traces read%s", work->done, work->files->count,
                work->done == work->files->count ? "\r\033[K" : "");
}

static void read_in_turn(void *ctx, size_t i)
{
    struct work *work = ctx;
    if (!is_mine(work, i))
        return;
    if (cancelled)
        work->statuses[i] =
            knee_fail(&work->errors[i], KNEE_INPUT, work->files->names[i], "not read: stopped");
    else
        work->statuses[i] =
            read_file(work->files->names[i], work->options, &work->traces[i], &work->errors[i]);
    pthread_mutex_lock(&work->lock);
    work->done++;
    show_progress(work);
    pthread_mutex_unlock(&work->lock);
}

/* ---- Over several processes ---- */

/* Rank 0's list is everyone's: names one after the other, each with its NUL. */
static bool share_files(struct knee_runtime *rt, struct files *files)
{
    int64_t size = 0;
    for (size_t i = 0; rt->rank == 0 && i < files->count; i++)
        size += (int64_t)strlen(files->names[i]) + 1;
    if (!rt->all_reduce(rt, &size, 1, KNEE_RUNTIME_I64, KNEE_RUNTIME_MAX))
        return false;
    char *list = calloc((size_t)size + 1, 1), *at = list;
    bool good = list != NULL;
    for (size_t i = 0; i < files->count; i++) {
        if (good && rt->rank == 0)
            at = stpcpy(at, files->names[i]) + 1;
        else
            free(files->names[i]);
    }
    files->count = rt->rank == 0 ? files->count : 0;
    /* The others' bytes are 0: the largest is rank 0's. */
    good = good && rt->all_reduce(rt, list, (size_t)size, KNEE_RUNTIME_U8, KNEE_RUNTIME_MAX);
    for (at = list; good && rt->rank != 0 && at < list + size; at += strlen(at) + 1)
        add_file(files, at);
    free(list);
    return good;
}

/* What one rank tells of one file: the trace, or why there is none. */
struct parcel {
    uint64_t file, size; /* row; bytes that follow */
    int32_t status;
    struct knee_err err;
};

/* Adds one file to bytes[*size]; false: no memory. */
static bool pack_file(const struct work *work, size_t i, unsigned char **bytes, size_t *size)
{
    struct knee_trace outline = {0};
    const struct knee_trace *trace = work->whole ? &work->traces[i] : &outline;
    bool read = work->statuses[i] == KNEE_OK;
    if (read && !work->whole && knee_trace_outline(&work->traces[i], NULL, &outline, NULL))
        return false;
    struct parcel parcel;
    memset(&parcel, 0, sizeof parcel);
    parcel.file = i;
    parcel.status = (int32_t)work->statuses[i];
    parcel.err = work->errors[i];
    parcel.size = read ? knee_trace_packed_size(trace) : 0;
    unsigned char *more = realloc(*bytes, *size + sizeof parcel + parcel.size);
    if (more) {
        memcpy(more + *size, &parcel, sizeof parcel);
        if (read)
            knee_trace_pack(trace, more + *size + sizeof parcel);
        *size += sizeof parcel + parcel.size;
        *bytes = more;
    }
    knee_trace_release(&outline);
    return more != NULL;
}

/* False: rt->fault says why. */
static bool unpack_all(struct work *work, const unsigned char *bytes, size_t size)
{
    struct parcel parcel;
    snprintf(work->rt->fault, sizeof work->rt->fault, "what another rank sent is damaged");
    for (size_t at = 0; at < size; at += parcel.size) {
        if (size - at < sizeof parcel)
            return false;
        memcpy(&parcel, bytes + at, sizeof parcel);
        at += sizeof parcel;
        if (parcel.file >= work->files->count || parcel.size > size - at)
            return false;
        size_t i = (size_t)parcel.file;
        work->errors[i] = parcel.err;
        work->statuses[i] = (knee_status)parcel.status;
        if (!parcel.status && knee_trace_unpack(bytes + at, (size_t)parcel.size, NULL,
                                                &work->traces[i], &work->errors[i])) {
            snprintf(work->rt->fault, sizeof work->rt->fault, "%s", work->errors[i].what);
            return false;
        }
    }
    work->rt->fault[0] = '\0';
    return true;
}

static bool gather(struct work *work)
{
    struct knee_runtime *rt = work->rt;
    size_t size = 0, total = 0, *sizes = calloc((size_t)rt->size, sizeof *sizes);
    unsigned char *mine = NULL;
    void *all = NULL;
    bool good = sizes != NULL;
    for (size_t i = 0; good && i < work->files->count; i++) {
        if (rt->rank != 0 && is_mine(work, i))
            good = pack_file(work, i, &mine, &size);
        else if (rt->rank == 0 && !is_mine(work, i))
            work->statuses[i] = knee_fail(&work->errors[i], KNEE_SYSTEM, work->files->names[i],
                                          "did not come from the process that read it");
    }
    if (!good)
        snprintf(rt->fault, sizeof rt->fault, "out of memory for the traces of this rank");
    good = good && rt->gather_bytes(rt, mine, size, &all, sizes);
    free(mine);
    for (int r = 0; good && rt->rank == 0 && r < rt->size; r++)
        total += sizes[r];
    good = good && (rt->rank != 0 || unpack_all(work, all, total));
    free(all);
    free(sizes);
    return good;
}

/* Rank 0 has the whole traces: what was handed over goes. */
static knee_status leave_to_rank_0(struct work *work)
{
    for (size_t i = 0; i < work->files->count; i++)
        if (is_mine(work, i) && !work->statuses[i])
            knee_trace_release(&work->traces[i]);
    free(work->traces);
    return KNEE_OK;
}

/* The other ranks keep what they read; rank 0 knows of what they could not. */
static knee_status keep_own(struct work *work, struct cli_traces *out)
{
    for (size_t i = 0; i < work->files->count; i++)
        if (is_mine(work, i) && !work->statuses[i]) {
            out->jobs[out->count] = (size_t)work->jobs[i];
            work->traces[out->count++] = work->traces[i];
        }
    out->traces = work->traces;
    return KNEE_OK;
}

/* Tells runs apart, on every process; recordings that repeat others become refused. False: no
 * memory. */
static bool tell_runs(struct work *work)
{
    size_t count = work->files->count, jobs = 0, kept = 0;
    unsigned char *repeats = work->repeats = calloc(count + 1, 1);
    struct knee_recording *told = calloc(count + 1, sizeof *told);
    struct knee_trace *usable = calloc(count + 1, sizeof *usable);
    size_t *rows = calloc(count + 1, sizeof *rows);
    bool good = repeats && told && usable && rows, leads = !work->rt || work->rt->rank == 0;
    for (size_t i = 0; i < count && good && leads; i++)
        if (work->statuses[i] == KNEE_OK) {
            usable[kept] = work->traces[i];
            rows[kept++] = i;
        }
    good = good && !knee_tell_recordings(usable, kept, NULL, told, &jobs, NULL);
    work->jobs[count] = (int64_t)jobs;
    for (size_t i = 0; i < kept && good; i++) {
        size_t row = rows[i];
        work->jobs[row] = (int64_t)told[i].job;
        if (told[i].same_as != SIZE_MAX) {
            repeats[row] = 1;
            knee_fail(&work->errors[row], KNEE_INPUT, work->files->names[row],
                      "the same recording as %s: left out",
                      work->files->names[rows[told[i].same_as]]);
        }
    }
    good = good && (!work->rt || (work->rt->all_reduce(work->rt, repeats, count, KNEE_RUNTIME_U8,
                                                       KNEE_RUNTIME_MAX) &&
                                  work->rt->all_reduce(work->rt, work->jobs, count + 1,
                                                       KNEE_RUNTIME_I64, KNEE_RUNTIME_MAX)));
    for (size_t i = 0; i < count && good; i++)
        if (repeats[i] && !work->statuses[i]) {
            if (leads || is_mine(work, i))
                knee_trace_release(&work->traces[i]);
            work->statuses[i] = KNEE_INPUT;
        }
    free(told);
    free(usable);
    free(rows);
    return good;
}

/* The first file that could have been read but for the system: an answer without it would be
 * another answer. */
static size_t first_system_failure(const struct work *work)
{
    size_t i = 0;
    while (i < work->files->count && work->statuses[i] != KNEE_SYSTEM)
        i++;
    return i;
}

static knee_status give_up(struct work *work, const struct knee_err *why, struct knee_err *err)
{
    for (size_t i = 0; i < work->files->count; i++)
        if (work->statuses[i] == KNEE_OK)
            knee_trace_release(&work->traces[i]);
    return knee_fail(err, KNEE_SYSTEM, why->where, "%s", why->what);
}

/* Moves what was read to the front, and what was not to the list of the refused. */
static knee_status sort_out(struct work *work, struct cli_traces *out, struct knee_err *err)
{
    size_t count = work->files->count, failure = first_system_failure(work);
    if (failure < count)
        return give_up(work, &work->errors[failure], err);
    out->refused = calloc(count + 1, sizeof *out->refused);
    if (!out->refused)
        return give_up(work, &(struct knee_err){.what = "out of memory"}, err);
    for (size_t i = 0; i < count; i++) {
        if (work->statuses[i] == KNEE_OK) {
            struct knee_trace trace = work->traces[i];
            memset(&work->traces[i], 0, sizeof trace);
            if (out->holders)
                out->holders[out->count] = reader_of(work, i);
            out->jobs[out->count] = (size_t)work->jobs[i];
            work->traces[out->count++] = trace;
        } else {
            out->refused[out->refused_count].err = work->errors[i];
            out->refused[out->refused_count].repeat = work->repeats && work->repeats[i];
            out->refused[out->refused_count++].file = strdup(work->files->names[i]);
        }
    }
    out->traces = work->traces;
    if (out->count)
        return KNEE_OK;
    if (count && err)
        *err = work->errors[0];
    return count ? work->statuses[0] : KNEE_INPUT;
}

/* As a shell counts a program that was stopped. */
enum { STOPPED = 130 };

knee_status cli_traces_stopped(struct knee_err *err)
{
    knee_fail(err, KNEE_INPUT, "", "stopped: this is of what was read by then");
    return (knee_status)STOPPED;
}

knee_status cli_traces_read(const char *const *words, size_t word_count,
                            struct knee_trace_options *options, struct knee_runtime *rt, bool whole,
                            struct cli_traces *out, struct knee_err *err)
{
    struct files files = {0};
    struct work work = {.files = &files, .options = options, .rt = rt, .whole = whole};
    knee_status status = KNEE_OK;
    memset(out, 0, sizeof *out);
    find_files(&files, looks_like_trace, words, word_count);
    if (!rt || rt->rank == 0) { /* one speaks for all */
        out->again = files.again;
        out->unsearched = files.unsearched;
    }
    if (rt && !share_files(rt, &files))
        rt->abort(rt, rt->fault[0] ? rt->fault : "out of memory for the list of files");
    if (!files.failed && files.count == 0) {
        knee_fail(err, KNEE_INPUT, word_count ? words[0] : "", "there are no traces here");
        knee_hint(err, "traces end in .json, .json.gz, .sqlite, .rpd, .db, .xplane.pb or .et");
        status = KNEE_INPUT;
    }
    work.traces = calloc(files.count + 1, sizeof *work.traces);
    work.errors = calloc(files.count + 1, sizeof *work.errors);
    work.statuses = calloc(files.count + 1, sizeof *work.statuses);
    work.jobs = calloc(files.count + 1, sizeof *work.jobs);
    out->jobs = calloc(files.count + 1, sizeof *out->jobs);
    out->holders = rt && !whole ? calloc(files.count + 1, sizeof *out->holders) : NULL;
    if (files.failed || !work.traces || !work.errors || !work.statuses || !work.jobs ||
        !out->jobs || (rt && !whole && !out->holders)) {
        knee_fail(err, KNEE_SYSTEM, "", "out of memory for the list of files");
        status = KNEE_SYSTEM;
    }
    if (rt && status == KNEE_SYSTEM)
        rt->abort(rt, "out of memory for the list of files"); /* the others would wait for ever */
    if (!status) {
        options->cancel = &cancelled;
        struct sigaction before, on = {.sa_handler = on_interrupt}; /* reads do not go on */
        sigaction(SIGINT, &on, &before);
        pthread_mutex_init(&work.lock, NULL);
        cli_each(rt, files.count, read_in_turn, &work);
        pthread_mutex_destroy(&work.lock);
        sigaction(SIGINT, &before, NULL);
        out->interrupted = cancelled;
        if (rt && !gather(&work))
            rt->abort(rt, rt->fault);
        if (!tell_runs(&work)) {
            status = give_up(
                &work, &(struct knee_err){.what = "out of memory for the list of traces"}, err);
            if (rt)
                rt->abort(rt, "out of memory for the list of traces");
        }
        out->job_count = (size_t)work.jobs[files.count];
        if (!status)
            status = !rt || rt->rank == 0 ? sort_out(&work, out, err)
                     : whole              ? leave_to_rank_0(&work)
                                          : keep_own(&work, out);
    }
    if (status && out->interrupted)
        status = cli_traces_stopped(err);
    if (status) {
        free(work.traces);
        out->traces = NULL;
        cli_traces_release(out);
    }
    for (size_t i = 0; i < files.count; i++)
        free(files.names[i]);
    free(files.names);
    free(files.visits);
    free(work.repeats);
    free(work.jobs);
    free(work.errors);
    free(work.statuses);
    return status;
}

void cli_traces_release(struct cli_traces *traces)
{
    for (size_t i = 0; traces->traces && i < traces->count; i++)
        knee_trace_release(&traces->traces[i]);
    for (size_t i = 0; i < traces->refused_count; i++)
        free(traces->refused[i].file);
    free(traces->refused);
    free(traces->jobs);
    free(traces->holders);
    free(traces->traces);
    memset(traces, 0, sizeof *traces);
}

struct knee_refused_file *cli_traces_refused(const struct cli_traces *traces)
{
    struct knee_refused_file *list = calloc(traces->refused_count + 1, sizeof *list);
    for (size_t i = 0; list && i < traces->refused_count; i++)
        list[i] = (struct knee_refused_file){traces->refused[i].file ? traces->refused[i].file
                                                                     : traces->refused[i].err.where,
                                             traces->refused[i].err.what};
    return list;
}

void cli_traces_tell_losses(const struct cli_traces *traces)
{
    for (size_t t = 0; t < traces->count; t++)
        for (int k = 0; k < KNEE_LOSSES; k++) {
            const struct knee_loss *loss = &traces->traces[t].losses[k];
            struct knee_err line;
            if (!loss->count)
                continue;
            knee_fail(&line, KNEE_INPUT, traces->traces[t].file, "%llu %s, the first at byte %llu",
                      (unsigned long long)loss->count, knee_loss_name((enum knee_loss_kind)k),
                      (unsigned long long)loss->first_byte);
            fprintf(stderr, "knee: %s: %s\n", line.where, line.what);
        }
}

void cli_traces_complain(const struct cli_traces *traces)
{
    if (traces->again)
        fprintf(stderr, "knee: %zu name%s led to a file that was there already: counted once\n",
                traces->again, traces->again == 1 ? "" : "s");
    if (traces->unsearched)
        fprintf(stderr, "knee: %zu folder%s not searched: deeper than %d, or cannot be opened\n",
                traces->unsearched, traces->unsearched == 1 ? "" : "s", DEEPEST);
    for (size_t i = 0; i < traces->refused_count; i++)
        fprintf(stderr, "knee: %s: %s%s\n", traces->refused[i].err.where,
                traces->refused[i].err.what,
                traces->refused[i].repeat ? "" : "; the other files are not affected");
}

/* The size of what is packed stands in the last four bytes (RFC 1952), modulo 2^32. */
static uint64_t json_size(const char *name)
{
    struct stat info;
    unsigned char end[4];
    if (stat(name, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= 0)
        return 0;
    uint64_t size = (uint64_t)info.st_size;
    int fd = ends_with(name, ".gz") ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (size > 18 && fd >= 0 && pread(fd, end, sizeof end, (off_t)(size - sizeof end)) == 4) {
        uint64_t said = (uint64_t)end[0] | (uint64_t)end[1] << 8 | (uint64_t)end[2] << 16 |
                        (uint64_t)end[3] << 24;
        size = said > size ? said : size;
    }
    if (fd >= 0)
        close(fd);
    return size;
}

uint64_t cli_traces_size(const char *const *words, size_t word_count)
{
    struct files files = {0};
    uint64_t size = 0;
    find_files(&files, looks_like_trace, words, word_count);
    for (size_t i = 0; i < files.count; i++) {
        size += strcmp(files.names[i], "-") == 0 ? 0 : json_size(files.names[i]);
        free(files.names[i]);
    }
    free(files.names);
    free(files.visits);
    return size;
}

knee_status cli_traces_to_ask(struct cli_run *run, const char *const *words, size_t word_count,
                              struct knee_trace_options *options, int set)
{
    struct cli_traces traces;
    knee_status status =
        cli_traces_read(words, word_count, options, NULL, true, &traces, &run->err);
    if (status)
        return status;
    cli_traces_complain(&traces);
    if (traces.interrupted) {
        cli_traces_release(&traces);
        return cli_traces_stopped(&run->err);
    }
    status = knee_ask_adopt(run->ask, traces.traces, traces.count, set, &run->err);
    traces.count = 0; /* they are the ask's now */
    cli_traces_release(&traces);
    return status;
}

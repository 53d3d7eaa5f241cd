/* SPDX-License-Identifier: MIT */
/*
 * Sets of trace files: folders are searched, each file is read by one thread, as many at once as
 * there are cores. Ctrl-C stops the reading, and what was read by then is accounted. Over several
 * processes each reads its share and tells rank 0 what the account begins with.
 */
#include "cli/traces.h"

#include "base/error.h"
#include "cli/threads.h"
#include "reach/child.h"
#include "reach/stop.h"
#include "timeline/recordings.h"
#include "timeline/wire_format.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A database larger than this is not unpacked; half of what a size_t can say where that is less. */
#define UNPACKED_MAX (SIZE_MAX / 2 < (uint64_t)8 << 30 ? SIZE_MAX / 2 : (size_t)((uint64_t)8 << 30))
_Static_assert(UNPACKED_MAX >= (size_t)1 << 30, "also where a size_t has 32 bits");

/* What was read until the user stopped it is a trace that ends there. */
static ptrdiff_t read_until_cancelled(void *ctx, void *buffer, size_t size)
{
    ptrdiff_t got = knee_input_read(*(int *)ctx, buffer, size);
    return got < 0 && knee_stop_signal() ? 0 : got;
}

static struct knee_reader reader_of_file(int *fd)
{
    return (struct knee_reader){read_until_cancelled, fd};
}

/* ---- Reading ---- */

struct work {
    const struct cli_files *files;
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
    bool standard = strcmp(work->files->rows[i].name, "-") == 0;
    return !work->rt || standard ? 0 : (int)(i % (size_t)work->rt->size);
}

static bool is_mine(const struct work *work, size_t i)
{
    return !work->rt || reader_of(work, i) == work->rt->rank;
}

size_t cli_unpacked_most(int fd)
{
    struct stat info;
    size_t packed = fstat(fd, &info) == 0 && info.st_size > 0 ? (size_t)info.st_size : 0;
    size_t most = packed < UNPACKED_MAX / 100 ? packed * 100 : UNPACKED_MAX;
    return most > ((size_t)64 << 20) ? most : (size_t)64 << 20;
}

/* A gzipped database has to be unpacked first; a trace is read as it comes. */
static knee_status read_packed_sqlite(const char *name, int *fd,
                                      const struct knee_trace_options *options,
                                      struct knee_trace *out, struct knee_err *err)
{
    void *image = NULL;
    size_t size = 0, most = cli_unpacked_most(*fd);
    if (knee_gunzip_all(reader_of_file(fd), most, NULL, &image, &size))
        return knee_fail(err, KNEE_INPUT, name, "cannot be unpacked: damaged, or more than %zu MB",
                         most >> 20);
    bool database = size >= 16 && memcmp(image, "SQLite format 3", 16) == 0;
    knee_status status =
        database
            ? knee_nsys_read((struct knee_file_bytes){name, image, size}, options, NULL, out, err)
            : knee_fail(err, KNEE_INPUT, name, "not a trace: no SQLite database in it");
    free(image);
    return status;
}

static knee_status read_image(const char *name, int *fd, const struct knee_trace_options *options,
                              struct knee_trace *out, struct knee_err *err)
{
    void *data = NULL;
    size_t size = 0, most = cli_unpacked_most(*fd);
    if (knee_gunzip_all(reader_of_file(fd), most, NULL, &data, &size))
        return knee_fail(err, KNEE_INPUT, name, "cannot be unpacked: damaged, or more than %zu MB",
                         most >> 20);
    knee_status status =
        knee_image_read((struct knee_file_bytes){name, data, size}, options, NULL, out, err);
    free(data);
    return status;
}

/* The database is opened as it is and never changed: what its writer had not put into it yet, or
 * was killed before it could, stands in a file beside it and is not seen. */
static bool has_journal(const char *name)
{
    static const char *const ends[] = {"-wal", "-journal"};
    bool found = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char beside[4096];
        struct stat info;
        if ((size_t)snprintf(beside, sizeof beside, "%s%s", name, ends[i]) < sizeof beside)
            found = found || (stat(beside, &info) == 0 && info.st_size > 0);
    }
    return found;
}

enum { LARGE_BLOCK = 1 << 21, PAGE = 4096 };

/* The C library's memory, in pages of 2 MB where the system gives them: it is filled in fewer
 * steps. All of a block is named, its header too, so that it stays one area that can move as a
 * whole. */
static void *resize_in_large_pages(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    void *block = size ? realloc(ptr, size) : NULL;
    if (!size)
        free(ptr);
#ifdef MADV_HUGEPAGE
    size_t offset = (uintptr_t)block % PAGE;
    if (block && size >= LARGE_BLOCK)
        madvise((char *)block - offset, (offset + size + PAGE - 1) / PAGE * PAGE, MADV_HUGEPAGE);
#endif
    return block;
}
static const struct knee_alloc in_large_pages = {resize_in_large_pages, NULL};

/* SQLite opens a file by its name; what is packed has to be unpacked first. */
static knee_status read_database(const char *name, int *fd,
                                 const struct knee_trace_options *options, struct knee_trace *out,
                                 struct knee_err *err)
{
    char magic[16] = {0};
    ssize_t got = pread(*fd, magic, sizeof magic, 0);
    if (got >= 2 && (unsigned char)magic[0] == 0x1f && (unsigned char)magic[1] == 0x8b)
        return read_packed_sqlite(name, fd, options, out, err);
    if (got == sizeof magic && memcmp(magic, "SQLite format 3", sizeof magic) == 0) {
        knee_status status =
            knee_nsys_read((struct knee_file_bytes){name, NULL, 0}, options, NULL, out, err);
        if (!status)
            out->losses[KNEE_LOSS_JOURNAL].count += has_journal(name);
        return status;
    }
    return knee_fail(err, KNEE_INPUT, name, "not a trace: no SQLite database in it");
}

/* Runs nsys export, where it is installed. False: it is not, it failed, or a stop was asked for. */
static bool export_report(const char *report, const char *database)
{
    const char *const argv[] = {"nsys", "export",   "--type", "sqlite", "--force-overwrite",
                                "true", "--output", database, report,   NULL};
    struct knee_child child;
    char said[4096];
    int status = 127;
    bool stopped = false;
    if (!knee_child_start(&child, argv, true))
        return false;
    while (!stopped && !knee_child_ended(&child, &status)) {
        struct pollfd out = {.fd = child.fd, .events = POLLIN};
        int ready = knee_stop_poll(&out, child.fd >= 0, 20);
        stopped = ready < 0;
        /* what it prints is of no use, but it must not have to wait */
        if (ready > 0 && read(child.fd, said, sizeof said) <= 0) {
            close(child.fd);
            child.fd = -1;
        }
    }
    if (stopped)
        knee_child_kill(&child);
    if (child.fd >= 0)
        close(child.fd);
    return !stopped && status == 0;
}

/* A report of Nsight Systems, which only nsys can read. When it cannot be run, the line that
 * exports the report is printed. */
static knee_status read_report(const char *name, const struct knee_trace_options *options,
                               struct knee_trace *out, struct knee_err *err)
{
    const char *room = getenv("TMPDIR");
    char folder[3072], path[4096];
    int length = snprintf(folder, sizeof folder, "%s/knee-XXXXXX", room && *room ? room : "/tmp");
    if (length >= (int)sizeof folder || !mkdtemp(folder))
        return knee_fail(err, KNEE_SYSTEM, name, "no folder for its export: set TMPDIR");
    snprintf(path, sizeof path, "%s/report.sqlite", folder);
    char *file = strdup(name);
    char *report = malloc(strlen(name) + 3); /* ./-name is not an option of nsys */
    if (report)
        sprintf(report, "%s%s", name[0] == '-' ? "./" : "", name);
    bool exported = file && report && export_report(report, path);
    free(report);
    struct knee_file_bytes export = {path, NULL, 0};
    knee_status status = exported ? knee_nsys_read(export, options, NULL, out, err)
                                  : knee_fail(err, KNEE_INPUT, name, "cannot be exported");
    if (!status) {
        free(out->file);
        out->file = file;
        file = NULL;
    }
    free(file);
    knee_scratch_remove(folder, path);
    return status;
}

static knee_status read_stream(const char *name, int *fd, const struct knee_trace_options *options,
                               struct knee_trace *out, struct knee_err *err)
{
    knee_status status =
        knee_trace_read(reader_of_file(fd), name, options, &in_large_pages, out, err);
    bool hosts = !status && out->rank_count == 0 && out->cpu_comm;
    if (!hosts || lseek(*fd, 0, SEEK_SET) != 0)
        return status;
    struct knee_trace_options again = *options;
    again.cpu = true; /* no GPU, but gloo: the host's operations are the work */
    knee_trace_release(out);
    return knee_trace_read(reader_of_file(fd), name, &again, &in_large_pages, out, err);
}

static knee_status read_file(const struct cli_file *file, const struct knee_trace_options *options,
                             struct knee_trace *out, struct knee_err *err)
{
    int fd;
    knee_status status = cli_open(file->name, &fd, err);
    if (status)
        return status;
    bool report = file->kind && strcmp(file->kind->name, "nsys-rep") == 0;
    enum knee_kind_reader reader = file->kind ? file->kind->reader : KNEE_READ_STREAM;
    status = report                         ? read_report(file->name, options, out, err)
             : reader == KNEE_READ_DATABASE ? read_database(file->name, &fd, options, out, err)
             : reader == KNEE_READ_IMAGE    ? read_image(file->name, &fd, options, out, err)
                                            : read_stream(file->name, &fd, options, out, err);
    cli_close(fd);
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
    if (knee_stop_signal())
        work->statuses[i] =
            knee_fail(&work->errors[i], KNEE_INPUT, work->files->rows[i].name, "not read: stopped");
    else
        work->statuses[i] =
            read_file(&work->files->rows[i], work->options, &work->traces[i], &work->errors[i]);
    pthread_mutex_lock(&work->lock);
    work->done++;
    show_progress(work);
    pthread_mutex_unlock(&work->lock);
}

/* ---- Over several processes ---- */

/* Rank 0's list is everyone's: of each file the row of its kind + 1, and its name with its NUL. */
static bool share_files(struct knee_runtime *rt, struct cli_files *files)
{
    int64_t size = 0;
    for (size_t i = 0; rt->rank == 0 && i < files->count; i++)
        size += (int64_t)strlen(files->rows[i].name) + 2;
    if (!rt->all_reduce(rt, &size, 1, KNEE_RUNTIME_I64, KNEE_RUNTIME_MAX))
        return false;
    char *list = calloc((size_t)size + 1, 1), *at = list;
    bool good = list != NULL;
    for (size_t i = 0; good && rt->rank == 0 && i < files->count; i++) {
        *at++ = (char)knee_file_kind_row(files->rows[i].kind);
        at = stpcpy(at, files->rows[i].name) + 1;
    }
    /* The others' bytes are 0: the largest is rank 0's. */
    good = good && rt->all_reduce(rt, list, (size_t)size, KNEE_RUNTIME_U8, KNEE_RUNTIME_MAX);
    for (at = list; good && rt->rank != 0 && at < list + size; at += strlen(at + 1) + 2) {
        cli_files_add(files, at + 1);
        if (!files->failed)
            files->rows[files->count - 1].kind =
                *at ? knee_file_kind_at((size_t)(unsigned char)*at - 1) : NULL;
    }
    free(list);
    return good;
}

/* What one rank sends about one file: the trace, or why there is none. */
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
            work->statuses[i] = knee_fail(&work->errors[i], KNEE_SYSTEM, work->files->rows[i].name,
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

/* Files without GPU work are ignored when others have some: they would count as separate runs. */
static bool any_has_work(const struct work *work)
{
    for (size_t i = 0; i < work->files->count; i++)
        if (work->statuses[i] == KNEE_OK && work->traces[i].rank_count)
            return true;
    return false;
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
    bool some = good && leads && any_has_work(work);
    for (size_t i = 0; i < count && good && leads; i++)
        if (work->statuses[i] == KNEE_OK && some && !work->traces[i].rank_count) {
            repeats[i] = 1;
            knee_fail(&work->errors[i], KNEE_INPUT, work->files->rows[i].name, "no GPU work in it");
        } else if (work->statuses[i] == KNEE_OK) {
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
            knee_fail(&work->errors[row], KNEE_INPUT, work->files->rows[row].name,
                      "the same recording as %s: left out",
                      work->files->rows[rows[told[i].same_as]].name);
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
            out->refused[out->refused_count++].file = strdup(work->files->rows[i].name);
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

/* Room for what becomes of each file. */
static bool prepare(struct work *work, struct cli_traces *out)
{
    size_t rows = work->files->count + 1;
    bool shared = work->rt && !work->whole;
    work->traces = calloc(rows, sizeof *work->traces);
    work->errors = calloc(rows, sizeof *work->errors);
    work->statuses = calloc(rows, sizeof *work->statuses);
    work->jobs = calloc(rows, sizeof *work->jobs);
    out->jobs = calloc(rows, sizeof *out->jobs);
    out->holders = shared ? calloc(rows, sizeof *out->holders) : NULL;
    return !work->files->failed && work->traces && work->errors && work->statuses && work->jobs &&
           out->jobs && (!shared || out->holders);
}

/* Ctrl-C ends the reading, not the program. */
static bool read_all(struct work *work)
{
    knee_stop_catch();
    pthread_mutex_init(&work->lock, NULL);
    cli_each(work->rt, work->files->count, read_in_turn, work);
    pthread_mutex_destroy(&work->lock);
    knee_stop_release();
    return knee_stop_signal() != 0;
}

static void no_memory(struct work *work, struct knee_err *err)
{
    if (work->rt) /* the others would wait without end */
        work->rt->abort(work->rt, "out of memory for the list of files");
    knee_fail(err, KNEE_SYSTEM, "", "out of memory for the list of files");
}

/* Groups the traces by run and hands each run to the process that answers it. */
static knee_status hand_over(struct work *work, struct cli_traces *out, struct knee_err *err)
{
    struct knee_runtime *rt = work->rt;
    if (rt && !gather(work))
        rt->abort(rt, rt->fault);
    if (!tell_runs(work)) {
        if (rt)
            rt->abort(rt, "out of memory for the list of traces");
        return give_up(work, &(struct knee_err){.what = "out of memory for the list of traces"},
                       err);
    }
    out->job_count = (size_t)work->jobs[work->files->count];
    return !rt || rt->rank == 0 ? sort_out(work, out, err)
           : work->whole        ? leave_to_rank_0(work)
                                : keep_own(work, out);
}

knee_status cli_traces_read(struct cli_files *files, const struct cli_reading *how,
                            struct cli_traces *out, struct knee_err *err)
{
    struct knee_trace_options options = how->options;
    struct work work = {.files = files, .options = &options, .rt = how->rt, .whole = how->whole};
    knee_status status = KNEE_OK;
    memset(out, 0, sizeof *out);
    options.cancel = knee_stop_flag();
    out->again = files->again;
    out->unsearched = files->unsearched;
    out->unfollowed = files->unfollowed;
    if (work.rt && !share_files(work.rt, files))
        work.rt->abort(work.rt,
                       work.rt->fault[0] ? work.rt->fault : "out of memory for the list of files");
    if (!files->failed && files->count == 0) {
        knee_fail(err, KNEE_INPUT, how->where, "there are no traces here");
        knee_hint(err, "traces end in .json, .json.gz, .sqlite, .rpd, .db, .xplane.pb or .et");
        status = KNEE_INPUT;
    } else if (!prepare(&work, out)) {
        no_memory(&work, err);
        status = KNEE_SYSTEM;
    } else {
        out->interrupted = read_all(&work);
        status = hand_over(&work, out, err);
    }
    if (status && out->interrupted)
        status = cli_traces_stopped(err);
    if (status) {
        free(work.traces);
        out->traces = NULL;
        cli_traces_release(out);
    }
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
                traces->unsearched, traces->unsearched == 1 ? "" : "s", CLI_DEEPEST);
    if (traces->unfollowed)
        fprintf(stderr,
                "knee: %zu name%s not followed: links to folders, links to nothing, or no files\n",
                traces->unfollowed, traces->unfollowed == 1 ? "" : "s");
    for (size_t i = 0; i < traces->refused_count; i++)
        fprintf(stderr, "knee: %s: %s%s\n", traces->refused[i].err.where,
                traces->refused[i].err.what,
                traces->refused[i].repeat ? "" : "; the other files are not affected");
}

knee_status cli_traces_to_ask(struct cli_run *run, const char *const *words, size_t word_count,
                              const struct knee_trace_options *options, int set)
{
    struct cli_traces traces;
    struct cli_files files = {0};
    cli_files_find(&files, words, word_count, "trace");
    knee_status status = cli_traces_read(
        &files, &(struct cli_reading){.options = *options, .whole = true, .where = words[0]},
        &traces, &run->err);
    cli_files_release(&files);
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

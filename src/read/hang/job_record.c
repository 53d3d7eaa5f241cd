/* SPDX-License-Identifier: MIT */
/* Putting the record of a job together: rows by rank, and what each file is. */
#include "read/hang/job_record.h"

#include "base/error.h"
#include "base/fold.h"
#include "base/format.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/text.h"
#include "read/file_kinds.h"
#include "read/trace/trace_json.h"
#include "timeline/rollcall.h"

#include <string.h>

enum { MARK_TEXT = 300 };

void knee_job_record_init(struct knee_job_record *record, const struct knee_alloc *alloc)
{
    *record = (struct knee_job_record){.alloc = alloc,
                                       .roll = {.alloc = alloc},
                                       .failed_mark = KNEE_JOB_NO_MARK,
                                       .unknown_mark = KNEE_JOB_NO_MARK,
                                       .failed_last = {.mark = KNEE_JOB_NO_MARK},
                                       .later_mark = KNEE_JOB_NO_MARK,
                                       .first_timeout_s = KNEE_JOB_UNTIMED_S,
                                       .first_broken_s = KNEE_JOB_UNTIMED_S};
}

void knee_job_record_release(struct knee_job_record *record)
{
    const struct knee_alloc *alloc = record->alloc;
    for (size_t i = 0; i < record->mark_count; i++)
        knee_resize(alloc, record->marks[i].text, 0);
    for (size_t i = 0; i < record->file_count; i++)
        knee_resize(alloc, record->files[i].name, 0);
    knee_resize(alloc, record->ranks, 0);
    knee_resize(alloc, record->members, 0);
    knee_resize(alloc, record->marks, 0);
    knee_resize(alloc, record->files, 0);
    knee_resize(alloc, record->finder, 0);
    knee_rollcall_release(&record->roll);
    knee_job_record_init(record, alloc);
}

/* ---- Rows ---- */

/* Room for `wanted` rows; false: no memory, and the record says so. */
static bool grow(struct knee_job_record *record, void *rows, size_t *capacity, size_t wanted,
                 size_t size)
{
    if (knee_room(record->alloc, rows, capacity, wanted, size))
        return true;
    record->no_memory = true;
    return false;
}

struct knee_job_rank *knee_job_rank_at(struct knee_job_record *record, int64_t rank)
{
    if (rank < 0 || rank >= KNEE_JOB_RANKS ||
        !grow(record, &record->ranks, &record->rank_capacity, (size_t)rank + 1,
              sizeof *record->ranks))
        return NULL;
    for (; record->rank_count <= (size_t)rank; record->rank_count++)
        record->ranks[record->rank_count] = (struct knee_job_rank){
            .exit = -1,
            .ras_calls = -1,
            .steps = -1,
            .last_step = -1,
            .failure_mark = KNEE_JOB_NO_MARK,
            .frame_mark = KNEE_JOB_NO_MARK,
            .last = {.mark = KNEE_JOB_NO_MARK},
            .exit_mark = KNEE_JOB_NO_MARK,
            .last_mark = KNEE_JOB_NO_MARK,
            .failure_s = KNEE_JOB_UNTIMED_S,
            .broken_s = KNEE_JOB_UNTIMED_S,
            .timeout_s = KNEE_JOB_UNTIMED_S,
            .stamp_s = KNEE_JOB_UNTIMED_S,
            .exit_s = KNEE_JOB_UNTIMED_S,
        };
    return &record->ranks[rank];
}

struct knee_job_member *knee_job_member_at(struct knee_job_record *record, int64_t rank,
                                           struct knee_slice group)
{
    struct knee_job_rank *row = knee_job_rank_at(record, rank);
    uint32_t g = row ? knee_rollcall_group(&record->roll, group) : UINT32_MAX;
    if (g == UINT32_MAX) {
        record->no_memory = record->no_memory || row;
        return NULL;
    }
    for (uint32_t m = row->members; m; m = record->members[m - 1].next)
        if (record->members[m - 1].group == g)
            return &record->members[m - 1];
    if (!grow(record, &record->members, &record->member_capacity, record->member_count + 1,
              sizeof *record->members))
        return NULL;
    struct knee_job_member *member = &record->members[record->member_count++];
    *member = (struct knee_job_member){.group = g,
                                       .next = row->members,
                                       .group_rank = -1,
                                       .waits = -1,
                                       .in = -1,
                                       .out = -1,
                                       .enqueued = -1,
                                       .completed = -1,
                                       .outstanding = -1,
                                       .since_s = KNEE_JOB_UNTIMED_S,
                                       .mark = KNEE_JOB_NO_MARK};
    row->members = (uint32_t)record->member_count;
    return member;
}

uint32_t knee_job_mark(struct knee_job_record *record, struct knee_job_mark mark,
                       struct knee_slice text)
{
    size_t length = text.length < MARK_TEXT ? text.length : MARK_TEXT;
    if (record->mark_count >= KNEE_JOB_MARKS ||
        !grow(record, &record->marks, &record->mark_capacity, record->mark_count + 1, sizeof mark))
        return KNEE_JOB_NO_MARK;
    mark.text = knee_resize(record->alloc, NULL, length + 1);
    if (!mark.text) {
        record->no_memory = true;
        return KNEE_JOB_NO_MARK;
    }
    knee_slice_copy(text, mark.text, length + 1);
    record->marks[record->mark_count] = mark;
    return (uint32_t)record->mark_count++;
}

/* The last mark gives up its row to an older one. */
uint32_t knee_job_mark_over(struct knee_job_record *record, uint32_t old, uint32_t mark)
{
    if (mark == KNEE_JOB_NO_MARK || mark + 1 != record->mark_count || old >= mark)
        return mark;
    knee_resize(record->alloc, record->marks[old].text, 0);
    record->marks[old] = record->marks[mark];
    record->mark_count--;
    return old;
}

static bool add_file(struct knee_job_record *record, const char *name)
{
    size_t length = strlen(name);
    if (!grow(record, &record->files, &record->file_capacity, record->file_count + 1,
              sizeof *record->files))
        return false;
    char *copy = knee_resize(record->alloc, NULL, length + 1);
    record->no_memory = record->no_memory || !copy;
    if (!copy)
        return false;
    memcpy(copy, name, length + 1);
    record->files[record->file_count++] = (struct knee_job_file){copy, NULL};
    return true;
}

/* ---- What a file is ---- */

/* "exit 137", "137", "rc=1", "exitcode: -9": a small file with one number. */
static bool exit_status(struct knee_slice text, int64_t *status)
{
    struct knee_slice one = text;
    size_t i = 0;
    while (one.length && (unsigned char)one.at[one.length - 1] <= ' ')
        one.length--;
    while (i < one.length && !knee_is_digit(one.at[i]) && one.at[i] != '\n')
        i++;
    bool negative = i > 0 && i <= one.length && one.at[i - 1] == '-';
    size_t digits = 0;
    for (*status = 0; i + digits < one.length && knee_is_digit(one.at[i + digits]); digits++)
        *status = *status < 1000 ? *status * 10 + (one.at[i + digits] - '0') : *status;
    if (!digits || i + digits != one.length || i > 24)
        return false;
    *status = negative ? 128 + *status : *status;
    return *status < 256;
}

/* Names of files that hold an exit status: "rank3.exit", "exitcode.3", "rc". */
static bool is_exit_file(const char *name)
{
    const char *base = knee_base_name(name);
    return strstr(base, "exit") || strstr(base, ".rc") || strcmp(base, "rc") == 0 ||
           strstr(base, "status");
}

static struct knee_slice first_line(struct knee_slice text)
{
    struct knee_slice line = {"", 0};
    knee_slice_line(&text, &line);
    return knee_slice_trim(line);
}

static bool read_exit(struct knee_job_record *record, uint32_t file, struct knee_slice text)
{
    int64_t status, rank = knee_job_rank_of_name(record->files[file].name);
    if (text.length > 64 || rank < 0 || !is_exit_file(record->files[file].name) ||
        !exit_status(text, &status))
        return false;
    struct knee_job_rank *row = knee_job_rank_at(record, rank);
    if (!row)
        return true;
    row->text = true;
    row->exit = (int32_t)status;
    row->exit_mark = knee_job_mark(
        record, (struct knee_job_mark){(int32_t)rank, file, 1, -1, 0, NULL}, first_line(text));
    return true;
}

void knee_job_add_ras(struct knee_job_record *record, const struct knee_ras *ras, uint32_t file)
{
    for (size_t i = 0; i < ras->count; i++) {
        const struct knee_ras_rank *r = &ras->ranks[i];
        char text[200];
        struct knee_job_rank *row = knee_job_rank_at(record, r->rank);
        /* only the largest communicator numbers ranks as the job does: its ranks come first */
        if (!row || (i > 0 && strcmp(r->comm, ras->ranks[0].comm) != 0))
            continue;
        bool gone = r->missing || r->unresponsive || r->dead;
        row->text = true;
        row->ras_missing = row->ras_missing || gone;
        row->ras_calls = gone ? row->ras_calls : r->calls;
        knee_slice_copy(knee_slice_of(r->host), row->host, sizeof row->host);
        if (!gone)
            continue;
        knee_format(text, sizeof text, "RAS: rank %lld (pid %lld on %s) %s", (long long)r->rank,
                    (long long)r->pid, r->host,
                    r->dead           ? "is considered dead"
                    : r->unresponsive ? "does not answer"
                                      : "gave no data");
        row->failure_mark =
            knee_job_mark(record, (struct knee_job_mark){(int32_t)r->rank, file, 0, -1, 0, NULL},
                          knee_slice_of(text));
    }
}

static bool read_ras(struct knee_job_record *record, uint32_t file, struct knee_slice text)
{
    struct knee_ras ras;
    knee_status status = KNEE_OK;
    struct knee_slice head = {text.at, text.length < 4096 ? text.length : 4096};
    if (!knee_slice_has(head, "communicators") || !knee_slice_has(head, "{"))
        return false;
    status = knee_ras_read(text.at, text.length, record->alloc, &ras, NULL);
    record->no_memory = record->no_memory || status == KNEE_SYSTEM;
    if (status)
        return false;
    knee_job_add_ras(record, &ras, file);
    knee_ras_release(&ras);
    return true;
}

void knee_job_refuse(struct knee_job_record *record, const struct knee_err *why)
{
    if (record->refused_files++ == 0)
        knee_format(record->refused, sizeof record->refused, "%.150s: %.150s", why->where,
                    why->what);
}

/* A dump that cannot be read says why; the other files do not suffer. */
static knee_status read_dump(struct knee_job_record *record, uint32_t file, char *data,
                             size_t length, struct knee_err *err)
{
    struct knee_err refusal = {.status = KNEE_OK};
    const char *name = record->files[file].name;
    size_t before = record->roll.source_count;
    knee_status status = knee_rollcall_read(&record->roll, name, data, length, &refusal);
    if (status == KNEE_SYSTEM) {
        if (err)
            *err = refusal;
        return status;
    }
    if (status) {
        struct knee_job_rank *row = knee_job_rank_at(record, knee_rollcall_rank_of_name(name));
        if (row)
            row->unread = true;
        knee_job_refuse(record, &refusal);
        return KNEE_OK;
    }
    record->files[file].kind = "flight recorder";
    for (size_t i = before; i < record->roll.source_count; i++) {
        struct knee_job_rank *row = knee_job_rank_at(record, record->roll.sources[i].rank);
        if (row)
            row->dump = true;
    }
    return KNEE_OK;
}

/* Bytes that are no text: a core file, a checkpoint. */
static bool is_binary(struct knee_slice text)
{
    size_t odd = 0, looked = text.length < 4096 ? text.length : 4096;
    for (size_t i = 0; i < looked; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c == 0)
            return true;
        odd += c < 32 && c != '\n' && c != '\r' && c != '\t' && c != 27 && c != '\b' && c != '\f';
    }
    return odd * 20 > looked;
}

/* A profile of a step is not output of a job: rank0.json would count as a rank that printed
 * nothing. */
static bool is_timeline(struct knee_slice text)
{
    const struct knee_file_kind *kind = knee_file_kind_of("", text.at, text.length);
    return kind && kind->reader != KNEE_READ_OTHERWISE && kind->reader != KNEE_READ_ROLLCALL;
}

knee_status knee_job_read(struct knee_job_record *record, const char *name, char *data,
                          size_t length, struct knee_err *err)
{
    struct knee_slice text = {data, length};
    if (!add_file(record, name))
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    uint32_t file = (uint32_t)record->file_count - 1;
    const char **kind = &record->files[file].kind;
    size_t errors = record->unknown_errors;
    if (length && knee_rollcall_recognise(data, length < 4096 ? length : 4096))
        return read_dump(record, file, data, length, err);
    if (read_exit(record, file, text))
        *kind = "exit status";
    else if (is_binary(text) || is_timeline(text))
        record->unknown_files++;
    else if (knee_is_ras_text(text)) {
        knee_job_ras_text(record, file, text);
        *kind = "ras";
    } else if (read_ras(record, file, text))
        *kind = "ras";
    else if (knee_job_text(record, file,
                           (struct knee_slice){data, knee_job_layout(data, length)}) ||
             record->unknown_errors > errors || knee_job_rank_of_name(name) >= 0 || !length)
        *kind = "text";
    else
        record->unknown_files++;
    return record->no_memory ? knee_fail(err, KNEE_SYSTEM, name, "out of memory") : KNEE_OK;
}

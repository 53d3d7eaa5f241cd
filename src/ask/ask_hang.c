/* SPDX-License-Identifier: MIT */
/* hang: which rank, which collective, why, from whatever files a job left. */
#include "ask/ask_hang.h"

#include "base/error.h"
#include "base/keys.h"
#include "base/text.h"
#include "judge/hang/hang.h"
#include "say/answers.h"

#include <string.h>

#define LARGEST ((size_t)1 << 30)

static const struct knee_key rows[] = {
    KNEE_OPTION(struct knee_ask_hang_options, "gate", KNEE_KEY_SWITCH, gate, "Hang", "off",
                KNEE_OFF_PAGE("exit with status 1 if the job hung or failed")),
    KNEE_OPTION(struct knee_ask_hang_options, "ras", KNEE_KEY_WORD, ras, "Hang", "none",
                KNEE_OFF_PAGE("job that still hangs: ask NCCL's RAS service on this host")),
};
static const struct knee_keys hang_keys = KNEE_KEY_TABLE(rows, struct knee_ask_hang_options);

/* ---- Files ---- */

static ptrdiff_t read_bytes(void *ctx, void *buffer, size_t size)
{
    struct knee_slice *rest = ctx;
    size_t got = size < rest->length ? size : rest->length;
    memcpy(buffer, rest->at, got);
    *rest = knee_slice_from(*rest, got);
    return (ptrdiff_t)got;
}

/* Unpacked, or a copy where a reader would change what is borrowed: dumps are read in place. */
static knee_status make_own(struct knee_ask_job_file *file, const char *name,
                            const struct knee_alloc *alloc, struct knee_err *err)
{
    const struct knee_ask_bytes *bytes = &file->bytes;
    struct knee_slice rest = {bytes->data, bytes->length};
    void *made = NULL;
    if (bytes->length > 2 && memcmp(bytes->data, "\x1f\x8b", 2) == 0) {
        if (knee_gunzip_all((struct knee_reader){read_bytes, &rest}, LARGEST, alloc, &made,
                            &file->length))
            return knee_fail(err, KNEE_INPUT, name,
                             "cannot be unpacked: truncated, damaged or too large");
        file->made = made;
    } else if (!bytes->owned &&
               knee_rollcall_recognise(bytes->data, bytes->length < 4096 ? bytes->length : 4096)) {
        file->made = knee_resize(alloc, NULL, bytes->length + 1);
        if (!file->made)
            return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
        memcpy(file->made, bytes->data, bytes->length);
    }
    return KNEE_OK;
}

void knee_ask_job_file_done(struct knee_ask *ask, struct knee_ask_job_file *file)
{
    knee_resize(knee_ask_alloc(ask), file->made, 0);
    knee_ask_done(&file->bytes);
}

knee_status knee_ask_job_file(struct knee_ask *ask, const char *name, struct knee_ask_job_file *out,
                              struct knee_err *err)
{
    struct knee_ask_job_file file = {.data = NULL};
    knee_status status = knee_ask_read(ask, name, LARGEST, &file.bytes, err);
    if (status)
        return status;
    file.length = file.bytes.length;
    status = make_own(&file, name, knee_ask_alloc(ask), err);
    if (status) {
        knee_ask_job_file_done(ask, &file);
        return status;
    }
    /* text is not changed, and what is changed is our own */
    file.data = file.made ? file.made : (char *)file.bytes.data;
    *out = file;
    return KNEE_OK;
}

static knee_status read_one(struct knee_ask *ask, const char *name, struct knee_job_record *record,
                            struct knee_err *err)
{
    struct knee_ask_job_file file;
    knee_status status = knee_ask_job_file(ask, name, &file, err);
    if (status)
        return status;
    status = knee_job_read(record, name, file.data, file.length, err);
    knee_ask_job_file_done(ask, &file);
    return status;
}

knee_status knee_ask_job_files(struct knee_ask *ask, const char *const *names, size_t count,
                               struct knee_job_record *record, struct knee_err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct knee_err one = {.status = KNEE_OK};
        knee_status status = read_one(ask, names[i], record, &one);
        if (status && err && (status == KNEE_SYSTEM || !err->what[0]))
            *err = one;
        if (status == KNEE_SYSTEM)
            return status;
        if (status)
            knee_job_refuse(record, &one);
        if (!knee_ask_progress(ask, (double)(i + 1) / (double)count))
            return knee_fail(err, KNEE_SYSTEM, "", "stopped");
    }
    for (size_t i = 0; i < record->file_count; i++)
        if (record->files[i].kind) {
            if (err)
                memset(err, 0, sizeof *err); /* what was refused is counted */
            return KNEE_OK;
        }
    if (err && !err->what[0])
        knee_fail(err, KNEE_INPUT, count ? names[0] : "",
                  "nothing in %zu file%s is the output of a job", count, count == 1 ? "" : "s");
    knee_hint(err, "give standard error and output of the ranks, Flight Recorder dumps, exit "
                   "statuses or a RAS answer");
    return KNEE_INPUT;
}

/* ---- The answer ---- */

static knee_status judge(struct knee_ask_question *q, struct knee_job_record *record,
                         struct knee_err *err)
{
    struct knee_hang_answer answer;
    knee_status status = knee_hang_judge(record, knee_ask_alloc(q->ask), &answer, err);
    if (status)
        return status;
    struct knee_hang_report report = {record, &answer};
    ASK_ANSWER(q, &knee_hang_answer_type, &report);
    q->answered = true;
    const struct knee_ask_hang_options *options = q->objects[0];
    if (options->gate && answer.kind != KNEE_HANG_NOT)
        status = knee_fail(err, KNEE_GATE, "--gate", "%s", knee_hang_kind(answer.kind)->name);
    knee_hang_answer_release(&answer);
    return status;
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    const struct knee_ask_hang_options *options = q->objects[0];
    struct knee_job_record record;
    knee_status status = KNEE_OK;
    if (!q->word_count && !options->ras)
        return knee_fail_hint(err, KNEE_USAGE, "",
                              "knee hang JOBDIR, or knee hang --ras HOST while it hangs",
                              "no files are named");
    knee_job_record_init(&record, knee_ask_alloc(q->ask));
    record.unknown_files = options->passed_over;
    if (options->ras)
        status = read_one(q->ask, options->ras, &record, err);
    if (!status)
        status = knee_ask_job_files(q->ask, q->words, q->word_count, &record, err);
    if (!status)
        status = judge(q, &record, err);
    knee_job_record_release(&record);
    return status;
}

static void init(void *room, void **objects)
{
    knee_keys_clear(&hang_keys, room);
    objects[0] = room;
}

const struct knee_ask_command knee_ask_hang = {
    .name = "hang",
    .keys = {&hang_keys},
    .most_words = ASK_WORDS,
    .operands = "DIR|FILE...",
    .size = sizeof(struct knee_ask_hang_options),
    .init = init,
    .answer = answer,
};

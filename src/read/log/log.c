/* SPDX-License-Identifier: MIT */
/* Measured collectives: which format a file has, and the list its tables end up in. */
#include "read/log/log.h"

#include "base/format.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The first that knows its own; the last one takes what is left. */
static const struct knee_log_format *const formats[] = {&knee_log_json, &knee_log_csv,
                                                        &knee_log_osu, &knee_log_nccl_tests};
#define FORMATS (sizeof formats / sizeof *formats)

void knee_logs_release(struct knee_logs *logs)
{
    for (size_t i = 0; i < logs->count; i++)
        knee_resize(logs->alloc, logs->logs[i].samples, 0);
    knee_resize(logs->alloc, logs->logs, 0);
    logs->logs = NULL;
    logs->count = 0;
}

void knee_log_out_of_memory(struct knee_log_reader *r)
{
    if (!r->status)
        r->status = knee_fail(r->err, KNEE_SYSTEM, r->name, "out of memory");
}

void knee_log_too_many(struct knee_log_reader *r)
{
    if (r->status)
        return;
    r->status = knee_fail(r->err, KNEE_INPUT, r->name, "more than %d tables", KNEE_LOGS_MAX);
    knee_hint(r->err, "split the file, or leave out columns that differ from row to row");
}

bool knee_log_line(struct knee_log_reader *r, struct knee_slice *line)
{
    if (r->status || !knee_slice_line(&r->text, line))
        return false;
    r->line++;
    return true;
}

static bool grow(struct knee_log_reader *r)
{
    const struct knee_alloc *alloc = r->logs->alloc;
    size_t capacity = r->capacity ? 2 * r->capacity : 64;
    struct knee_sample *samples = knee_resize(alloc, r->log.samples, capacity * sizeof *samples);
    if (samples)
        r->log.samples = samples;
    double *ratios = knee_resize(alloc, r->ratios, capacity * sizeof *ratios);
    if (ratios)
        r->ratios = ratios;
    double *slacks = knee_resize(alloc, r->slacks, capacity * sizeof *slacks);
    if (slacks)
        r->slacks = slacks;
    if (!samples || !ratios || !slacks) {
        knee_log_out_of_memory(r);
        return false;
    }
    r->capacity = capacity;
    return true;
}

void knee_log_add(struct knee_log_reader *r, const struct knee_sample *sample, double ratio,
                  double slack)
{
    if (r->log.sample_count == KNEE_LOG_SAMPLES_MAX) {
        if (!r->status)
            r->status = knee_fail(r->err, KNEE_INPUT, r->name, "more than %zu rows in one table",
                                  KNEE_LOG_SAMPLES_MAX);
        return;
    }
    if (r->log.sample_count == r->capacity && !grow(r))
        return;
    r->log.samples[r->log.sample_count] = *sample;
    r->ratios[r->log.sample_count] = ratio;
    r->slacks[r->log.sample_count] = slack;
    r->log.sample_count++;
    r->used++;
}

void knee_log_refuse(struct knee_log_reader *r, size_t number, struct knee_slice line,
                     const char *reason)
{
    struct knee_log *log = &r->log;
    log->refused++;
    r->refused++;
    if (!r->first_reason)
        r->first_reason = reason;
    if (log->refusal_count == KNEE_REFUSALS_KEPT)
        return;
    struct knee_refusal *refusal = &log->refusals[log->refusal_count++];
    refusal->line = number;
    refusal->reason = reason;
    knee_slice_copy(knee_slice_trim(line), refusal->text, sizeof refusal->text);
}

void knee_log_note(struct knee_log *log, const char *fmt, ...)
{
    if (log->note_count == KNEE_LOG_NOTES)
        return;
    va_list args;
    va_start(args, fmt);
    knee_vformat(log->notes[log->note_count++], sizeof *log->notes, fmt, args);
    va_end(args);
}

void knee_log_own_algorithm(struct knee_log *log, struct knee_slice name, double hops, double share)
{
    if (!(hops >= 1 && hops < 1e7 && share > 0 && share < 1e7))
        return;
    knee_slice_copy(name, log->algorithm, sizeof log->algorithm);
    log->hops = hops;
    log->share = share;
}

void knee_log_quickest(const struct knee_log *log, double quickest_s, struct knee_sample *sample)
{
    if (knee_log_plain(log) && quickest_s > 0 && quickest_s < sample->time_s)
        sample->time_s = quickest_s;
}

void knee_run_host(double *count, unsigned long long *hashes, struct knee_slice host)
{
    unsigned long long h = knee_hash(host.at, host.length);
    size_t known = (size_t)*count;
    for (size_t i = 0; i < known; i++)
        if (hashes[i] == h)
            return;
    if (known == KNEE_HOSTS_MAX)
        return;
    hashes[known] = h;
    *count += 1;
}

static void begin(struct knee_log_reader *r, bool same_run)
{
    struct knee_log before = r->log;
    memset(&r->log, 0, sizeof r->log);
    knee_slice_copy(knee_slice_of(r->name), r->log.file, sizeof r->log.file);
    r->log.op = KNEE_OP_UNKNOWN;
    r->log.ranks = r->log.nodes = r->log.gpus_per_process = r->log.adapters = NAN;
    r->capacity = 0;
    if (same_run) {
        memcpy(r->log.gpu, before.gpu, sizeof r->log.gpu);
        memcpy(r->log.library, before.library, sizeof r->log.library);
        r->log.gpus_per_process = before.gpus_per_process;
        r->log.adapters = before.adapters;
        r->log.seen = before.seen;
        if (before.op_known == KNEE_SAID) {
            r->log.op = before.op;
            r->log.op_known = KNEE_SAID;
        }
        return;
    }
    struct knee_run_facts *run = &r->run;
    run->listed = run->hosts = run->nccl_hosts = 0;
    run->device_count = 0;
    run->max_rank = run->max_device = run->ranks_said = run->nodes_said = NAN;
    run->per_node_said = run->processes_said = NAN;
    run->has_redop = run->has_root = run->redop_is_sum = run->count_is_part = false;
    run->in_place_not_checked = run->root_is_zero = false;
}

KNEE_BY_TWO(by_size, struct knee_sample, bytes, line)

static void keep(struct knee_log_reader *r)
{
    struct knee_logs *logs = r->logs;
    if (logs->count == KNEE_LOGS_MAX) {
        knee_log_too_many(r);
        return;
    }
    struct knee_log *list = knee_resize(logs->alloc, logs->logs, (logs->count + 1) * sizeof *list);
    if (!list) {
        knee_log_out_of_memory(r);
        return;
    }
    logs->logs = list;
    r->log.table = r->tables;
    if (r->log.sample_count)
        qsort(r->log.samples, r->log.sample_count, sizeof *r->log.samples, by_size);
    list[logs->count++] = r->log;
    r->log.samples = NULL; /* the list owns them now */
    r->log.sample_count = 0;
}

void knee_log_end(struct knee_log_reader *r, bool same_run)
{
    if (!r->status && (r->log.sample_count || r->log.refused)) {
        r->tables++;
        knee_log_complete(r);
        keep(r);
    }
    knee_resize(r->logs->alloc, r->log.samples, 0);
    r->log.samples = NULL;
    begin(r, same_run);
}

static knee_status no_rows(struct knee_log_reader *r, const char *format)
{
    knee_fail(r->err, KNEE_INPUT, r->name,
              "no usable row (read as %s: %zu lines, %zu rows refused)", format, r->line,
              r->refused);
    if (r->first_reason)
        knee_hint(r->err, "the first was refused because: %s", r->first_reason);
    else
        knee_hint(r->err, "it needs a table of nccl-tests, rccl-tests, OSU or knee bench, or a CSV "
                          "with bytes and time");
    return KNEE_INPUT;
}

/* Takes back what a failed file has added. */
static void forget(struct knee_logs *logs, size_t count)
{
    while (logs->count > count)
        knee_resize(logs->alloc, logs->logs[--logs->count].samples, 0);
}

static void count_lines(struct knee_log_reader *r, size_t first)
{
    for (size_t i = first; i < r->logs->count; i++) {
        r->logs->logs[i].lines = r->line;
        r->logs->logs[i].facts = r->facts;
        r->logs->logs[i].others = r->others;
    }
}

knee_status knee_logs_read(struct knee_logs *logs, const char *text, size_t length,
                           const char *name, const struct knee_log_hints *hints,
                           struct knee_err *err)
{
    static const struct knee_log_hints nothing = {NAN, NAN, KNEE_OP_UNKNOWN, NULL};
    size_t before = logs->count, format = 0;
    struct knee_log_reader *r = knee_zeroed(logs->alloc, sizeof *r);
    if (!r)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    r->logs = logs;
    r->name = name;
    r->hints = hints ? *hints : nothing;
    r->text = r->whole = (struct knee_slice){text, length};
    r->err = err;
    begin(r, false);
    while (format + 1 < FORMATS && !formats[format]->sniff(r->whole))
        format++;
    formats[format]->read(r);
    knee_log_end(r, false);
    knee_status status = r->status;
    if (!status && r->used == 0)
        status = no_rows(r, formats[format]->name);
    if (status)
        forget(logs, before);
    else
        count_lines(r, before);
    knee_resize(logs->alloc, r->ratios, 0);
    knee_resize(logs->alloc, r->slacks, 0);
    knee_resize(logs->alloc, r, 0);
    return status;
}

/* SPDX-License-Identifier: MIT */
/* Three threads write (host, device, communication), one event a line, under one lock. */
#include "lab/lab_record.h"

#include "base/error.h"
#include "lab/lab_group.h"
#include "reach/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

static void write_members(struct lab_record *r)
{
    size_t at = (size_t)snprintf(r->members, sizeof r->members, "[0");
    for (int i = 1; i < r->workers && at + 8 < sizeof r->members; i++)
        at += (size_t)snprintf(r->members + at, sizeof r->members - at, ", %d", i);
    snprintf(r->members + at, sizeof r->members - at, "]");
}

knee_status lab_record_check(const struct lab_record *r, const char *file, struct knee_err *err)
{
    if (r->text.failed)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the timeline");
    return r->failed ? knee_fail(err, KNEE_SYSTEM, file ? file : "",
                                 "the timeline cannot be written: %s", strerror(r->failed))
                     : KNEE_OK;
}

/* Written text is freed unless the caller keeps it. The first write error is kept. */
static void flush(struct lab_record *r)
{
    if (!r->file || r->text.failed || r->failed)
        return;
    size_t left = r->text.length - r->flushed;
    if (fwrite(r->text.data + r->flushed, 1, left, r->file) != left || fflush(r->file) != 0)
        r->failed = errno;
    r->flushed = r->text.length;
    if (!r->keep)
        r->text.length = r->flushed = 0;
}

knee_status lab_record_start(struct lab_record *r, const struct lab_record_of *of,
                             struct knee_err *err)
{
    const char *file = of->file;
    memset(r, 0, sizeof *r);
    r->on = true;
    r->keep = of->keep;
    r->rank = of->rank;
    r->workers = of->workers;
    r->epoch_ns = knee_clock_ns(CLOCK_REALTIME);
    r->base_ns = lab_now_ns();
    if (file && !(r->file = fopen(file, "wb"))) {
        r->on = false;
        return knee_fail(err, KNEE_SYSTEM, file, "cannot be written: %s", strerror(errno));
    }
    pthread_mutex_init(&r->lock, NULL);
    write_members(r);
    knee_text_printf(&r->text,
                     "{\"schemaVersion\": 1,\n"
                     "\"deviceProperties\": [{\"id\": 0, \"name\": \"knee lab, %s\"}],\n"
                     "\"distributedInfo\": {\"backend\": \"knee\", \"rank\": %d, \"world_size\": "
                     "%d},\n\"synthetic_compute\": %s,\n\"baseTimeNanoseconds\": %" PRId64
                     ",\n\"traceEvents\": [\n",
                     of->synthetic ? "synthetic compute" : "CPU", of->rank, of->workers,
                     of->synthetic ? "true" : "false", r->epoch_ns);
    flush(r);
    return lab_record_check(r, file, err);
}

enum { HOST_PID = 1000, DEVICE_PID = 0 };

/* The members that every event has; the caller adds the rest. */
static void event(struct lab_record *r, const char *category, const char *name, int lane,
                  int64_t start_ns, int64_t end_ns)
{
    int pid = lane == LAB_LANE_HOST ? HOST_PID : DEVICE_PID;
    int64_t at = start_ns - r->base_ns, length = end_ns - start_ns;
    at = at > 0 ? at : 0;
    length = length > 0 ? length : 0;
    knee_text_printf(&r->text,
                     "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, "
                     "\"ts\": %" PRId64 ".%03d, \"dur\": %" PRId64 ".%03d",
                     category, name, pid, lane, at / 1000, (int)(at % 1000), length / 1000,
                     (int)(length % 1000));
}

void lab_record_work(struct lab_record *r, const char *name, int64_t start_ns, int64_t end_ns,
                     int64_t correlation)
{
    if (!r->on)
        return;
    pthread_mutex_lock(&r->lock);
    event(r, "kernel", name, LAB_LANE_DEVICE, start_ns, end_ns);
    knee_text_printf(
        &r->text, ", \"args\": {\"device\": 0, \"correlation\": %" PRId64 ", \"stream\": %d}},\n",
        correlation, LAB_LANE_DEVICE);
    pthread_mutex_unlock(&r->lock);
}

void lab_record_launch(struct lab_record *r, int64_t start_ns, int64_t end_ns, int64_t correlation)
{
    if (!r->on)
        return;
    pthread_mutex_lock(&r->lock);
    event(r, "privateuse1_runtime", "labLaunchKernel", LAB_LANE_HOST, start_ns, end_ns);
    knee_text_printf(&r->text, ", \"args\": {\"correlation\": %" PRId64 "}},\n", correlation);
    pthread_mutex_unlock(&r->lock);
}

/* What travels, as torch names it, by how the kernel's name ends. */
static const char *dtype_of(const char *kernel)
{
    static const struct {
        const char *end, *dtype;
    } rows[] = {{"_bf16", "BFloat16"}, {"_f8e4m3", "Float8_e4m3fn"}, {"_i8", "Char"}};
    size_t length = strlen(kernel);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t end = strlen(rows[i].end);
        if (length >= end && strcmp(kernel + length - end, rows[i].end) == 0)
            return rows[i].dtype;
    }
    return "Float";
}

void lab_record_collective(struct lab_record *r, const struct lab_collective *c, int64_t start_ns,
                           int64_t end_ns, int64_t correlation)
{
    if (!r->on)
        return;
    pthread_mutex_lock(&r->lock);
    event(r, "kernel", c->kernel, LAB_LANE_COMM, start_ns, end_ns);
    knee_text_printf(
        &r->text,
        ", \"args\": {\"device\": 0, \"Collective name\": \"%s\", \"In msg nelems\": "
        "%zu, \"Out msg nelems\": %zu, \"Group size\": %d, \"dtype\": \"%s\", "
        "\"Process Group Name\": \"0\", \"Process Group Description\": \"default_pg\", "
        "\"Process Group Ranks\": \"%s\", \"Seq\": %" PRId64 ", \"correlation\": %" PRId64
        ", \"stream\": %d}},\n",
        knee_op_name(c->op), c->values, c->values, r->workers, dtype_of(c->kernel), r->members,
        c->sequence, correlation, LAB_LANE_COMM);
    pthread_mutex_unlock(&r->lock);
}

void lab_record_load(struct lab_record *r, int64_t start_ns, int64_t end_ns)
{
    if (!r->on)
        return;
    pthread_mutex_lock(&r->lock);
    event(r, "user_annotation", "enumerate(DataLoader)#_LabLoader.__next__", LAB_LANE_HOST,
          start_ns, end_ns);
    knee_text_puts(&r->text, "},\n");
    pthread_mutex_unlock(&r->lock);
}

void lab_record_step(struct lab_record *r, size_t number, int64_t start_ns, int64_t end_ns)
{
    char name[48];
    if (!r->on)
        return;
    snprintf(name, sizeof name, "ProfilerStep#%zu", number);
    pthread_mutex_lock(&r->lock);
    event(r, "user_annotation", name, LAB_LANE_HOST, start_ns, end_ns);
    knee_text_puts(&r->text, "},\n");
    flush(r);
    pthread_mutex_unlock(&r->lock);
}

void lab_record_end(struct lab_record *r)
{
    if (!r->on)
        return;
    /* the last comma needs something after it */
    knee_text_puts(&r->text, "{\"ph\": \"M\", \"name\": \"end\", \"pid\": 0, \"tid\": 0}\n]}\n");
    flush(r);
    if (r->file && fclose(r->file) != 0 && !r->failed)
        r->failed = errno;
    r->file = NULL;
    r->on = false;
    pthread_mutex_destroy(&r->lock);
}

void lab_record_release(struct lab_record *r)
{
    lab_record_end(r);
    knee_text_release(&r->text);
    memset(r, 0, sizeof *r);
}

/* SPDX-License-Identifier: MIT */
/*
 * Logs of what the ranks of a pipeline did, operation by operation, as a Chrome trace: the category
 * is the operation, the process the data-parallel rank, the thread's name says stage and
 * tensor-parallel rank, args step, chunk and place in the order (ByteDance's StragglerAnalysis).
 */
#include "base/error.h"
#include "base/json_values.h"
#include "base/list.h"
#include "base/order.h"
#include "base/text.h"
#include "knee_replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[KNEE_LOGGED_KINDS] = {
    [KNEE_LOGGED_FORWARD] = "forward-compute",
    [KNEE_LOGGED_BACKWARD] = "backward-compute",
    [KNEE_LOGGED_FORWARD_SEND] = "forward-send",
    [KNEE_LOGGED_FORWARD_RECV] = "forward-recv",
    [KNEE_LOGGED_BACKWARD_SEND] = "backward-send",
    [KNEE_LOGGED_BACKWARD_RECV] = "backward-recv",
    [KNEE_LOGGED_PARAMS] = "params-all-gather",
    [KNEE_LOGGED_GRADS] = "grads-reduce-scatter",
    [KNEE_LOGGED_NORMS] = "layernorm-grads-all-reduce",
    [KNEE_LOGGED_EMBEDDING] = "embedding-grads-all-reduce",
    [KNEE_LOGGED_SEPARATE] = "separate-grads-all-reduce",
    [KNEE_LOGGED_CLIP] = "optimizer-clip-main-grad",
    [KNEE_LOGGED_OPTIMIZER] = "optimizer",
    [KNEE_LOGGED_COLLECT] = "gc",
};

const char *knee_logged_name(enum knee_logged_kind kind)
{
    return kind < KNEE_LOGGED_KINDS ? names[kind] : "?";
}

enum { MOST_THREADS = 65536, MOST_RANK = 1 << 20 };

/* One event, value by value. */
struct event {
    size_t element; /* which of the array */
    int kind;       /* -1: not known */
    bool complete, thread_name;
    double start_us, took_us;
    double pid, tid, step, chunk, sequence;
    int32_t stage, part;
};

/* What a thread's name says. */
struct thread {
    double pid, tid;
    int32_t stage, part;
};

struct parser {
    struct knee_op_log log;
    size_t capacity;
    struct thread *threads;
    size_t thread_count, thread_capacity;
    double *tids; /* per operation, until the threads are known */
    size_t tid_capacity;
    bool failed;
};

static bool room(struct parser *p, void *rows, size_t count, size_t *capacity, size_t size)
{
    bool good = knee_room(p->log.alloc, rows, capacity, count + 1, size);
    p->failed = p->failed || !good;
    return good;
}

static int32_t whole(double value)
{
    return isfinite(value) && fabs(value) < MOST_RANK ? (int32_t)value : -1;
}

/* The number after a word, or -1; MOST_RANK stands for all that are larger, so that products of
 * three of them fit. */
static int32_t number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    int32_t number = 0;
    if (!at)
        return -1;
    at += strlen(word);
    if (*at < '0' || *at > '9')
        return -1;
    for (; *at >= '0' && *at <= '9' && number < MOST_RANK; at++)
        number = 10 * number + (*at - '0');
    return number < MOST_RANK ? number : MOST_RANK;
}

static void take_event(struct parser *p, const struct event *e)
{
    if (e->thread_name && e->stage >= 0 && p->thread_count < MOST_THREADS &&
        room(p, &p->threads, p->thread_count, &p->thread_capacity, sizeof *p->threads))
        p->threads[p->thread_count++] = (struct thread){e->pid, e->tid, e->stage, e->part};
    if (!e->complete || !isfinite(e->start_us) || !isfinite(e->took_us))
        return;
    if (e->kind < 0 || !(fabs(e->start_us) < 1e15) || !(e->took_us >= 0) || e->took_us > 1e12) {
        p->log.skipped++;
        return;
    }
    if (!room(p, &p->log.ops, p->log.count, &p->capacity, sizeof *p->log.ops) ||
        !room(p, &p->tids, p->log.count, &p->tid_capacity, sizeof *p->tids))
        return;
    int64_t start = (int64_t)(1e3 * e->start_us);
    p->tids[p->log.count] = e->tid;
    p->log.ops[p->log.count++] = (struct knee_logged_op){
        .start_ns = start,
        .end_ns = start + (int64_t)(1e3 * e->took_us),
        .replica = whole(e->pid),
        .step = whole(e->step),
        .chunk = whole(e->chunk),
        .sequence = whole(e->sequence),
        .kind = (enum knee_logged_kind)e->kind,
    };
}

static void begin_event(struct event *e, size_t element)
{
    *e = (struct event){.element = element,
                        .kind = -1,
                        .start_us = NAN,
                        .took_us = NAN,
                        .pid = -1,
                        .tid = -1,
                        .step = -1,
                        .chunk = -1,
                        .sequence = -1,
                        .stage = -1,
                        .part = 0};
}

static void take_value(struct event *e, const char *key, const struct knee_json_values *v)
{
    static const struct {
        const char *key;
        size_t offset;
    } numbers[] = {
        {"ts", offsetof(struct event, start_us)},
        {"dur", offsetof(struct event, took_us)},
        {"pid", offsetof(struct event, pid)},
        {"tid", offsetof(struct event, tid)},
        {"args.step", offsetof(struct event, step)},
        {"args.model_chunk", offsetof(struct event, chunk)},
        {"args.seq_id", offsetof(struct event, sequence)},
    };
    for (size_t i = 0; v->kind == KNEE_JSON_NUMBER && i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0)
            *(double *)((char *)e + numbers[i].offset) = v->number;
    if (v->kind != KNEE_JSON_STRING)
        return;
    if (strcmp(key, "ph") == 0)
        e->complete = strcmp(v->text, "X") == 0;
    for (int k = 0; strcmp(key, "cat") == 0 && k < KNEE_LOGGED_KINDS; k++)
        if (strcmp(v->text, names[k]) == 0)
            e->kind = k;
    if (strcmp(key, "name") == 0)
        e->thread_name = strcmp(v->text, "thread_name") == 0;
    if (strcmp(key, "args.name") == 0) {
        e->stage = number_after(v->text, "PP rank ");
        e->part = number_after(v->text, "TP rank ");
        e->part = e->part < 0 ? 0 : e->part;
    }
}

static void read_events(struct parser *p, const char *json, size_t length)
{
    struct knee_json_values values;
    struct event event;
    begin_event(&event, 0);
    knee_json_values_init(&values, json, length);
    while (!p->failed && knee_json_values_next(&values)) {
        const char *key = strstr(values.path, "[].");
        if (!key)
            continue;
        if (values.elements != event.element) {
            take_event(p, &event);
            begin_event(&event, values.elements);
        }
        take_value(&event, key + 3, &values);
    }
    take_event(p, &event);
}

/* Where each operation's thread is. Threads are found again mostly where the last one was. */
static void place_ops(struct parser *p)
{
    size_t at = 0;
    for (size_t i = 0; i < p->log.count; i++) {
        struct knee_logged_op *op = &p->log.ops[i];
        op->stage = -1;
        for (size_t k = 0; k < p->thread_count; k++, at = (at + 1) % p->thread_count) {
            const struct thread *t = &p->threads[at];
            if (t->pid == (double)op->replica && t->tid == p->tids[i]) {
                op->stage = t->stage;
                op->part = t->part;
                break;
            }
        }
    }
}

KNEE_SORT(by_step, struct knee_logged_op,
          KNEE_THEN(KNEE_UP(step),
                    KNEE_THEN(KNEE_UP(start_ns), KNEE_THEN(KNEE_UP(end_ns), KNEE_UP(kind)))))

/* Drops what has no place, and counts ranks. */
static void sort_out(struct knee_op_log *log)
{
    size_t kept = 0;
    for (size_t i = 0; i < log->count; i++) {
        const struct knee_logged_op *op = &log->ops[i];
        if (op->stage < 0 || op->replica < 0) {
            log->skipped++;
            continue;
        }
        log->replicas = op->replica >= log->replicas ? op->replica + 1 : log->replicas;
        log->stages = op->stage >= log->stages ? op->stage + 1 : log->stages;
        log->parts = op->part >= log->parts ? op->part + 1 : log->parts;
        log->ops[kept++] = *op;
    }
    log->count = kept;
    if (kept > 1)
        qsort(log->ops, kept, sizeof *log->ops, by_step);
}

void knee_op_log_release(struct knee_op_log *log)
{
    knee_resize(log->alloc, log->ops, 0);
    knee_resize(log->alloc, log->file, 0);
    memset(log, 0, sizeof *log);
}

knee_status knee_op_log_read(const char *json, size_t length, const char *file,
                             const struct knee_alloc *alloc, struct knee_op_log *out,
                             struct knee_err *err)
{
    struct parser p = {.log = {.alloc = alloc}};
    p.log.file = knee_resize(alloc, NULL, strlen(file) + 1);
    p.failed = !p.log.file;
    if (!p.failed) {
        memcpy(p.log.file, file, strlen(file) + 1);
        read_events(&p, json, length);
        place_ops(&p);
        sort_out(&p.log);
    }
    knee_resize(alloc, p.threads, 0);
    knee_resize(alloc, p.tids, 0);
    if (!p.failed && p.log.count &&
        (int64_t)p.log.replicas * p.log.stages * p.log.parts <= MOST_RANK) {
        *out = p.log;
        return KNEE_OK;
    }
    knee_op_log_release(&p.log);
    if (p.failed)
        return knee_fail(err, KNEE_SYSTEM, file, "out of memory");
    knee_fail(err, KNEE_INPUT, file, "no operations of a pipeline in it");
    knee_hint(err,
              "events of category forward-compute, backward-compute, forward-send ... are read");
    return KNEE_INPUT;
}

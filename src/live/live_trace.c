/* SPDX-License-Identifier: MIT */
/*
 * A sampled step as a trace, as PyTorch's profiler would write it, and its labels by the same
 * reader and account that knee trace has.
 *
 * NCCL reports a collective on the host, CUPTI its kernel; the two are matched by time: NCCL
 * announces the calls of a launch right after it has launched (or right before: whichever order
 * makes more names agree is the one). Those of a CUDA graph it announces when the graph comes to
 * them, which may be after the next launch: then they meet by their order.
 */
#include "live/live_agent.h"

#include "base/format.h"
#include "base/order.h"
#include "knee_timeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_PID = 1000000 }; /* no device has that number */

struct writing {
    const struct live_sample *sample;
    struct knee_text *text;
    uint32_t *launch_at;               /* record of a correlation's host call + 1, by hash */
    uint32_t *collectives;             /* records that are kernels of collectives, by launch */
    const struct live_event **call_of; /* of each of them the first call; NULL: not known */
    size_t collective_count;
    size_t table;
};

/* ---- Who launched what ---- */

static size_t slot(const struct writing *w, uint32_t correlation)
{
    size_t at = (correlation * UINT32_C(2654435761)) & (w->table - 1);
    while (w->launch_at[at] &&
           w->sample->recording.records[w->launch_at[at] - 1].correlation != correlation)
        at = (at + 1) & (w->table - 1);
    return at;
}

static bool hands_over(const char *name)
{
    return strstr(name, "Launch") || strstr(name, "Memcpy") || strstr(name, "Memset");
}

static void list_launches(struct writing *w)
{
    const struct live_recording *r = &w->sample->recording;
    for (size_t i = 0; i < r->count; i++)
        if (r->records[i].kind == LIVE_HOST_CALL && hands_over(live_cupti_name(r->records[i].name)))
            w->launch_at[slot(w, r->records[i].correlation)] = (uint32_t)i + 1;
}

static bool is_launch_known(const struct writing *w, const struct live_record *record)
{
    return w->launch_at[slot(w, record->correlation)] != 0;
}

static int64_t launched_ns(const struct writing *w, const struct live_record *record)
{
    uint32_t row = w->launch_at[slot(w, record->correlation)];
    return row ? w->sample->recording.records[row - 1].start_ns : record->start_ns;
}

static bool is_collective(const struct live_record *record)
{
    return record->kind == LIVE_KERNEL && strstr(live_cupti_name(record->name), "nccl");
}

/* Insertion: there are few, and they come almost in order. */
static void list_collectives(struct writing *w)
{
    const struct live_recording *r = &w->sample->recording;
    for (size_t i = 0; i < r->count; i++) {
        if (!is_collective(&r->records[i]))
            continue;
        size_t at = w->collective_count++;
        int64_t when = launched_ns(w, &r->records[i]);
        for (; at > 0 && launched_ns(w, &r->records[w->collectives[at - 1]]) > when; at--)
            w->collectives[at] = w->collectives[at - 1];
        w->collectives[at] = (uint32_t)i;
    }
}

/* Gives each kernel the first call announced between its launch and the next one's (or the one
 * before and its own); the number of those whose names agree. */
static size_t match(struct writing *w, bool announced_before, const struct live_event **out)
{
    const struct live_recording *r = &w->sample->recording;
    size_t agree = 0, call = 0;
    for (size_t i = 0; i < w->collective_count; i++) {
        const struct live_record *record = &r->records[w->collectives[i]];
        size_t other = announced_before ? i : i + 1;
        int64_t from = announced_before ? INT64_MIN : launched_ns(w, record), to = INT64_MAX;
        if (other < w->collective_count)
            to = launched_ns(w, &r->records[w->collectives[other]]);
        while (call < w->sample->call_count && w->sample->calls[call].at_ns < from)
            call++;
        bool there = call < w->sample->call_count && w->sample->calls[call].at_ns < to;
        out[i] = there ? &w->sample->calls[call] : NULL;
        while (call < w->sample->call_count && w->sample->calls[call].at_ns < to)
            call++;
        if (there && live_kernel_runs(live_cupti_name(record->name), out[i]->op))
            agree++;
        else
            out[i] = NULL;
    }
    return agree;
}

/* Of the calls of each launch the first: they travel in one kernel. */
static size_t list_firsts(const struct live_sample *s, const struct live_event **firsts)
{
    size_t count = 0;
    for (size_t i = 0; i < s->call_count; i++)
        if (!i || !s->calls[i].launch || s->calls[i].launch != s->calls[i - 1].launch)
            firsts[count++] = &s->calls[i];
    return count;
}

/* A way to match, and how well it does: kernels that have their call; nanoseconds from launches to
 * announcements in all. */
struct order {
    size_t skipped, agree;
    double late_ns;
};

/* Gives each kernel the call `skipped` places further: one that was announced after its launch and
 * before the second next. Kernels launched before the recording began have none. False: not all
 * are such. */
static bool match_order(struct writing *w, const struct live_event *const *firsts, size_t count,
                        struct order *order, const struct live_event **out)
{
    const struct live_recording *r = &w->sample->recording;
    order->agree = 0;
    order->late_ns = 0;
    for (size_t i = 0, at = order->skipped; i < w->collective_count; i++) {
        const struct live_record *record = &r->records[w->collectives[i]];
        int64_t from = launched_ns(w, record), to = INT64_MAX;
        if (i + 2 < w->collective_count)
            to = launched_ns(w, &r->records[w->collectives[i + 2]]);
        out[i] = at < count && is_launch_known(w, record) ? firsts[at++] : NULL;
        if (!out[i])
            continue;
        if (out[i]->at_ns < from || out[i]->at_ns >= to ||
            !live_kernel_runs(live_cupti_name(record->name), out[i]->op))
            return false;
        order->agree++;
        order->late_ns += (double)(out[i]->at_ns - from);
    }
    return order->agree > 0;
}

/* Some of the first calls were launched before the recording began: of the orders with the most
 * calls the fastest is taken. Returns the number of calls. */
static size_t match_best_order(struct writing *w, const struct live_event **out)
{
    struct order best = {0};
    size_t count = 0;
    const struct live_event **firsts = calloc(w->sample->call_count + 1, sizeof *firsts);
    if (firsts)
        count = list_firsts(w->sample, firsts);
    for (size_t skipped = 0; skipped < count; skipped++) {
        struct order order = {.skipped = skipped};
        if (match_order(w, firsts, count, &order, out) &&
            (order.agree > best.agree ||
             (order.agree == best.agree && order.late_ns < best.late_ns)))
            best = order;
    }
    if (best.agree)
        match_order(w, firsts, count, &best, out);
    free(firsts);
    return best.agree;
}

static void match_calls(struct writing *w)
{
    size_t count = w->collective_count + 1;
    const struct live_event **other = calloc(count, sizeof *other);
    w->call_of = calloc(count, sizeof *w->call_of);
    if (other && w->call_of) {
        size_t after = match(w, false, w->call_of), before = match(w, true, other);
        if (before > after)
            memcpy(w->call_of, other, count * sizeof *other);
        if (match_best_order(w, other) > (before > after ? before : after))
            memcpy(w->call_of, other, count * sizeof *other);
    }
    free(other);
}

/* ---- Events ---- */

struct place {
    int64_t pid, tid, start_ns, dur_ns;
};

static void begin(struct knee_text *t, const char *category, const char *name,
                  const struct place *at)
{
    int64_t start_ns = at->start_ns > 0 ? at->start_ns : 0;
    int64_t dur_ns = at->dur_ns > 0 ? at->dur_ns : 0;
    knee_text_printf(t, "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"", category);
    for (; *name; name++)
        if (*name == '"' || *name == '\\')
            knee_text_printf(t, "\\%c", *name);
        else if ((unsigned char)*name >= 32)
            knee_text_add(t, name, 1);
    knee_text_printf(t,
                     "\", \"pid\": %" PRId64 ", \"tid\": %" PRId64 ", \"ts\": %" PRId64
                     ".%03d, \"dur\": %" PRId64 ".%03d",
                     at->pid, at->tid, start_ns / 1000, (int)(start_ns % 1000), dur_ns / 1000,
                     (int)(dur_ns % 1000));
}

/* ---- Waiting for input ---- */

/*
 * The agent gets no events from data loaders. But a host that waits for a batch launches nothing,
 * and what it launches next is the copy of the batch: the silence before the step's largest run of
 * copies to the device is taken for loading. A run: copies with no launch in between.
 */
enum { LEAST_INPUT_BYTES = 4096, LEAST_SILENCE_NS = 50000 };

struct host_call {
    int64_t start_ns, end_ns;
    uint64_t input_bytes; /* that it copied to the device */
    bool launch;
};

struct run {
    size_t first, end;
    uint64_t bytes;
};

KNEE_BY(by_start, struct host_call, start_ns)

static void count_inputs(const struct writing *w, uint64_t *bytes)
{
    const struct live_recording *r = &w->sample->recording;
    for (size_t i = 0; i < r->count; i++) {
        const struct live_record *copy = &r->records[i];
        if (copy->kind != LIVE_COPY || !strstr(live_cupti_name(copy->name), "HtoD"))
            continue;
        uint32_t row = w->launch_at[slot(w, copy->correlation)];
        if (row)
            bytes[row - 1] += copy->bytes;
    }
}

/* The host's calls in the order of time. */
static size_t list_calls(const struct writing *w, const uint64_t *bytes, struct host_call *out)
{
    const struct live_recording *r = &w->sample->recording;
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++)
        if (r->records[i].kind == LIVE_HOST_CALL)
            out[count++] =
                (struct host_call){r->records[i].start_ns, r->records[i].end_ns, bytes[i],
                                   strstr(live_cupti_name(r->records[i].name), "Launch") != NULL};
    qsort(out, count, sizeof *out, by_start);
    return count;
}

/* The next run from `at` on; false: there is none. */
static bool next_run(const struct host_call *calls, size_t count, size_t at, struct run *run)
{
    while (at < count && !calls[at].input_bytes)
        at++;
    *run = (struct run){at, at, 0};
    for (; run->end < count && (run->end == at || !calls[run->end].launch); run->end++)
        run->bytes += calls[run->end].input_bytes;
    return at < count;
}

static void put_silence(struct knee_text *text, const struct host_call *calls, size_t first)
{
    int64_t quiet_ns = first ? calls[0].end_ns : calls[first].start_ns;
    for (size_t i = 1; i < first; i++)
        quiet_ns = calls[i].end_ns > quiet_ns ? calls[i].end_ns : quiet_ns;
    int64_t silence_ns = calls[first].start_ns - quiet_ns;
    if (silence_ns < LEAST_SILENCE_NS)
        return;
    begin(text, "user_annotation", "enumerate(DataLoader)#inferred: silence before the input",
          &(struct place){HOST_PID, 1, quiet_ns, silence_ns});
    knee_text_puts(text, "},\n");
}

static void put_loads(const struct writing *w)
{
    size_t room = w->sample->recording.count + 1, count = 0;
    struct host_call *calls = calloc(room, sizeof *calls);
    uint64_t *bytes = calloc(room, sizeof *bytes), most = LEAST_INPUT_BYTES;
    struct run run;
    if (calls && bytes) {
        count_inputs(w, bytes);
        count = list_calls(w, bytes, calls);
    }
    for (size_t at = 0; next_run(calls, count, at, &run); at = run.end)
        most = run.bytes > most ? run.bytes : most;
    for (size_t at = 0; next_run(calls, count, at, &run); at = run.end)
        if (run.bytes > most / 2)
            put_silence(w->text, calls, run.first);
    free(calls);
    free(bytes);
}

/* ---- Collectives and records ---- */

/* All calls of one launch travel in one kernel: their elements together. */
static uint64_t elements_of(const struct live_sample *s, const struct live_event *call)
{
    uint64_t sum = 0;
    for (const struct live_event *c = call; c < s->calls + s->call_count; c++)
        if (c == call || (c->launch && c->launch == call->launch && c->op == call->op))
            sum += c->count;
    return sum;
}

static void put_call(struct writing *w, const struct live_event *call)
{
    struct live_comm comm = live_comm(call->comm);
    uint64_t count = elements_of(w->sample, call),
             all = count * (uint64_t)(comm.size > 0 ? comm.size : 1);
    bool gathers = strcmp(live_op_name(call->op), "AllGather") == 0;
    bool scatters = strcmp(live_op_name(call->op), "ReduceScatter") == 0;
    knee_text_printf(w->text,
                     ", \"Collective name\": \"%s\", \"In msg nelems\": %" PRIu64
                     ", \"Out msg nelems\": %" PRIu64
                     ", \"dtype\": \"%s\", \"Process Group Name\": \"%" PRIx64 "\"",
                     live_trace_op(call->op), scatters ? all : count, gathers ? all : count,
                     live_trace_type(call->type), comm.id);
    if (comm.size > 0)
        knee_text_printf(w->text, ", \"Group size\": %d", comm.size);
    if (!call->pair)
        knee_text_printf(w->text, ", \"Seq\": %" PRIu64, call->seq);
    else
        knee_text_printf(w->text, ", \"%s\": %d",
                         strcmp(live_op_name(call->op), "Recv") == 0 ? "Src Rank" : "Dst Rank",
                         call->peer);
}

static const struct live_event *call_of(const struct writing *w, size_t row)
{
    for (size_t i = 0; w->call_of && i < w->collective_count; i++)
        if (w->collectives[i] == row)
            return w->call_of[i];
    return NULL;
}

static void put_record(struct writing *w, size_t row, const struct live_record *r)
{
    static const char *const categories[] = {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime"};
    struct knee_text *t = w->text;
    int64_t dur_ns = r->end_ns - r->start_ns;
    const char *name = live_cupti_name(r->name);
    if (r->kind == LIVE_HOST_CALL) {
        begin(t, categories[r->kind], name,
              &(struct place){HOST_PID, r->thread, r->start_ns, dur_ns});
        knee_text_printf(t, ", \"args\": {\"correlation\": %" PRIu32 "}},\n", r->correlation);
        return;
    }
    begin(t, categories[r->kind], name, &(struct place){r->device, r->stream, r->start_ns, dur_ns});
    knee_text_printf(
        t, ", \"args\": {\"device\": %d, \"stream\": %" PRIu32 ", \"correlation\": %" PRIu32,
        r->device, r->stream, r->correlation);
    if (r->bytes)
        knee_text_printf(t, ", \"bytes\": %" PRIu64, r->bytes);
    const struct live_event *call = is_collective(r) ? call_of(w, row) : NULL;
    if (call)
        put_call(w, call);
    knee_text_puts(t, "}},\n");
}

static void put_records(struct writing *w)
{
    const struct live_recording *r = &w->sample->recording;
    for (size_t i = 0; i < r->count; i++)
        put_record(w, i, &r->records[i]);
}

/* NCCL announces the collective that begins a step when it has launched it already: the step begins
 * with the launch. */
static int64_t began_ns(const struct writing *w, const struct live_boundary *b)
{
    for (size_t i = 0; w->call_of && i < w->collective_count; i++) {
        const struct live_event *call = w->call_of[i];
        if (!call || call->pair || call->comm != b->comm || call->seq != b->seq)
            continue;
        int64_t ns = launched_ns(w, &w->sample->recording.records[w->collectives[i]]) - 1;
        return ns < b->at_ns ? ns : b->at_ns;
    }
    return b->at_ns;
}

static void put_own_work(struct writing *w, int64_t from_ns, int64_t to_ns)
{
    if (!from_ns || to_ns <= from_ns)
        return;
    begin(w->text, "kernel", "outside of MPI", &(struct place){0, 1, from_ns, to_ns - from_ns});
    knee_text_puts(w->text, ", \"args\": {\"device\": 0, \"stream\": 1}},\n");
}

/* Without a GPU: what lies between two calls is the job's own work. The call that ends the step may
 * still run, and is then not here. */
static void put_calls(struct writing *w)
{
    const struct live_sample *s = w->sample;
    int64_t free_ns = 0;
    for (size_t i = 0; i < s->call_count; i++) {
        const struct live_event *c = &s->calls[i];
        if (c->dur_ns < 0)
            continue;
        put_own_work(w, free_ns, c->at_ns);
        begin(w->text, "kernel", "ncclMPI", &(struct place){0, 2, c->at_ns, c->dur_ns});
        knee_text_puts(w->text, ", \"args\": {\"device\": 0, \"stream\": 2");
        put_call(w, c);
        knee_text_puts(w->text, "}},\n");
        free_ns = c->at_ns + c->dur_ns > free_ns ? c->at_ns + c->dur_ns : free_ns;
    }
    put_own_work(w, free_ns, s->end.at_ns);
}

static bool make_tables(struct writing *w)
{
    size_t count = w->sample->recording.count;
    for (w->table = 64; w->table < 2 * count; w->table *= 2)
        ;
    w->launch_at = calloc(w->table, sizeof *w->launch_at);
    w->collectives = malloc((count + 1) * sizeof *w->collectives);
    return w->launch_at && w->collectives;
}

void live_trace_write(const struct live_sample *sample, const struct live_about *about,
                      struct knee_text *text)
{
    struct writing w = {.sample = sample, .text = text};
    char name[48];
    knee_format(name, sizeof name, "ProfilerStep#%" PRId64, sample->start.number);
    knee_text_printf(
        text,
        "{\"schemaVersion\": 1,\n\"deviceProperties\": [{\"id\": 0, \"name\": \"%s\"}],\n"
        "\"distributedInfo\": {\"backend\": \"%s\", \"rank\": %d, \"world_size\": %d},\n"
        "\"traceEvents\": [\n",
        about->gpu[0] ? about->gpu : "no GPU", about->source == LIVE_FROM_MPI ? "mpi" : "nccl",
        about->rank, about->world);
    if (!make_tables(&w)) {
        text->failed = true;
    } else if (about->source == LIVE_FROM_MPI) {
        put_calls(&w);
    } else {
        list_launches(&w);
        list_collectives(&w);
        match_calls(&w);
        put_records(&w);
        put_loads(&w);
    }
    int64_t start_ns = began_ns(&w, &sample->start), end_ns = began_ns(&w, &sample->end);
    begin(text, "user_annotation", name, &(struct place){HOST_PID, 1, start_ns, end_ns - start_ns});
    knee_text_puts(text, "},\n");
    knee_text_puts(text, "{\"ph\": \"M\", \"name\": \"end\", \"pid\": 0, \"tid\": 0}\n]}\n");
    free(w.launch_at);
    free(w.collectives);
    free(w.call_of);
}

/* ---- Labels ---- */

static bool read_back(const struct knee_text *text, struct knee_trace *trace)
{
    struct knee_err err;
    struct knee_trace_reader *reader = knee_trace_begin("step.json", NULL, NULL);
    size_t at = 0, room = 0;
    while (reader && at < text->length) {
        char *to = knee_trace_room(reader, &room);
        if (!to || !room)
            break;
        room = room < text->length - at ? room : text->length - at;
        memcpy(to, text->data + at, room);
        knee_trace_filled(reader, room);
        at += room;
    }
    return reader && knee_trace_end(reader, trace, &err) == KNEE_OK;
}

void live_trace_label(const struct knee_text *text, int64_t number, struct live_labels *out)
{
    struct knee_trace trace;
    struct knee_account account;
    struct knee_err err;
    if (!read_back(text, &trace))
        return;
    if (knee_account(&trace, 1, NULL, &account, &err) == KNEE_OK) {
        for (size_t i = 0; i < account.step_count && !out->known; i++) {
            const struct knee_step_account *step = &account.steps[i];
            if (step->number != number)
                continue;
            out->known = true;
            out->window_ns = step->ledger.window_ns;
            out->comm_ns = step->ledger.comm_ns;
            for (size_t k = 0; k < KNEE_LABELS; k++)
                out->label_ns[k] = step->ledger.label_ns[k];
        }
        knee_account_release(&account);
    }
    knee_trace_release(&trace);
}

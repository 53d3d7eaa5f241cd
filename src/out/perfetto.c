/* SPDX-License-Identifier: MIT */
/*
 * An account as one trace: all ranks on one clock, each a process with its streams, and a row that
 * shows the label of every moment. Opens in ui.perfetto.dev and chrome://tracing. It is Kineto's
 * own format, launches and collectives included, so that reading it back gives the same account.
 */
#include "base/format.h"
#include "knee_out.h"
#include "out/json.h"

#include <string.h>

enum { FLUSH = 1 << 20, LABEL_ROW = 1000000, HOST_ROW = 1000001 };

struct writer {
    struct knee_text text;
    struct knee_sink sink;
    int64_t origin_ns; /* common clock */
    uint64_t correlation;
    bool failed;
};

static void flush(struct writer *w, size_t least)
{
    if (w->text.failed)
        w->failed = true;
    if (w->failed || w->text.length < least || w->text.length == 0)
        return;
    w->failed = !w->sink.write(w->sink.ctx, w->text.data, w->text.length);
    w->text.length = 0;
}

static void put_us(struct writer *w, const char *key, int64_t ns)
{
    knee_text_printf(&w->text, ", \"%s\": %s%llu.%03llu", key, ns < 0 ? "-" : "",
                     (unsigned long long)((ns < 0 ? -ns : ns) / 1000),
                     (unsigned long long)((ns < 0 ? -ns : ns) % 1000));
}

/* Where an event is drawn: process, thread, time on the common clock. */
struct place {
    int64_t pid, tid, start_ns, end_ns;
};

static void begin_event(struct writer *w, const char *category, const char *name,
                        struct place place)
{
    struct knee_json quote = {.text = &w->text, .flat = {true, true}};
    knee_text_printf(&w->text, ",\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": ", category);
    knee_json_string(&quote, NULL, name);
    knee_text_printf(&w->text, ", \"pid\": %lld, \"tid\": %lld", (long long)place.pid,
                     (long long)place.tid);
    put_us(w, "ts", place.start_ns - w->origin_ns);
    put_us(w, "dur", place.end_ns - place.start_ns);
}

static void put_name(struct writer *w, const char *what, int64_t pid, int64_t tid, const char *name)
{
    struct knee_json quote = {.text = &w->text, .flat = {true, true}};
    knee_text_printf(&w->text,
                     ",\n{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %lld, \"tid\": %lld, \"args\": "
                     "{\"name\": ",
                     what, (long long)pid, (long long)tid);
    knee_json_string(&quote, NULL, name);
    knee_text_puts(&w->text, "}}");
}

static void put_string(struct writer *w, const char *key, const char *value)
{
    struct knee_json quote = {.text = &w->text, .flat = {true, true}};
    knee_text_printf(&w->text, ", \"%s\": ", key);
    knee_json_string(&quote, NULL, value);
}

static void put_call(struct writer *w, const struct knee_rank_account *rank,
                     const struct knee_call *call)
{
    char *const *names = rank->trace->names;
    put_string(w, "Collective name", knee_op_name(call->op));
    if (call->bytes >= 0)
        knee_text_printf(&w->text,
                         ", \"In msg nelems\": %lld, \"Out msg nelems\": %lld, \"dtype\": \"Byte\"",
                         (long long)call->bytes, (long long)call->bytes);
    if (call->group_size > 0)
        knee_text_printf(&w->text, ", \"Group size\": %d", (int)call->group_size);
    if (call->group)
        put_string(w, "Process Group Name", names[call->group - 1]);
    if (call->description)
        put_string(w, "Process Group Description", names[call->description - 1]);
    if (call->members)
        put_string(w, "Process Group Ranks", names[call->members - 1]);
    if (call->peer >= 0)
        knee_text_printf(&w->text, ", \"%s Rank\": %d", call->sends ? "Dst" : "Src",
                         (int)call->peer);
    if (call->sequence >= 0)
        knee_text_printf(&w->text, ", \"Seq\": %lld", (long long)call->sequence);
}

static void put_span(struct writer *w, const struct knee_rank_account *rank,
                     const struct knee_span *span)
{
    int64_t own = rank->trace->base_ns + rank->shift_ns;
    const char *name = rank->trace->names[span->name];
    /* A copy to another GPU counts as communication by its name, whatever the category. */
    bool copy = span->kind == KNEE_SPAN_COPY;
    begin_event(w, copy ? "gpu_memcpy" : "kernel", name,
                (struct place){rank->rank, span->stream, span->start_ns + own, span->end_ns + own});
    knee_text_printf(&w->text, ", \"args\": {\"stream\": %d", (int)span->stream);
    if (span->launch_ns != KNEE_NO_TIME)
        knee_text_printf(&w->text, ", \"correlation\": %llu", (unsigned long long)++w->correlation);
    if (span->call)
        put_call(w, rank, &rank->source->calls[span->call - 1]);
    knee_text_puts(&w->text, "}}");
    if (span->launch_ns == KNEE_NO_TIME)
        return;
    begin_event(w, "cuda_runtime", "cudaLaunchKernel",
                (struct place){rank->rank, HOST_ROW, span->launch_ns + own, span->launch_ns + own});
    knee_text_printf(&w->text, ", \"args\": {\"correlation\": %llu}}",
                     (unsigned long long)w->correlation);
}

static void put_marks(struct writer *w, const struct knee_rank_account *rank)
{
    int64_t own = rank->trace->base_ns + rank->shift_ns;
    char name[48];
    for (size_t i = 0; i < rank->trace->step_count; i++) {
        const struct knee_mark *step = &rank->trace->steps[i];
        if (step->device != -1 && step->device != rank->source->device)
            continue;
        knee_format(name, sizeof name, "ProfilerStep#%lld", (long long)step->number);
        begin_event(w, "user_annotation", name,
                    (struct place){rank->rank, HOST_ROW, step->start_ns + own, step->end_ns + own});
        knee_text_puts(&w->text, "}");
    }
    for (size_t i = 0; i < rank->trace->load_count; i++) {
        const struct knee_mark *load = &rank->trace->loads[i];
        if (load->device != -1 && load->device != rank->source->device)
            continue;
        begin_event(w, "user_annotation", "enumerate(DataLoader)#__next__",
                    (struct place){rank->rank, HOST_ROW, load->start_ns + own, load->end_ns + own});
        knee_text_puts(&w->text, "}");
    }
}

static void put_labels(struct writer *w, const struct knee_rank_account *rank)
{
    int64_t own = rank->trace->base_ns + rank->shift_ns;
    for (size_t i = 0; i < rank->run_count && !w->failed; i++) {
        int64_t end = i + 1 < rank->run_count ? rank->runs[i + 1].start_ns : rank->to_ns;
        begin_event(w, "knee_label", knee_label_name(rank->runs[i].label),
                    (struct place){rank->rank, LABEL_ROW, rank->runs[i].start_ns + own, end + own});
        knee_text_puts(&w->text, "}");
        flush(w, FLUSH);
    }
}

static void put_rank(struct writer *w, const struct knee_rank_account *rank)
{
    char name[64];
    knee_format(name, sizeof name, "rank %lld", (long long)rank->rank);
    put_name(w, "process_name", rank->rank, 0, name);
    put_name(w, "thread_name", rank->rank, LABEL_ROW, "labels");
    put_name(w, "thread_name", rank->rank, HOST_ROW, "host");
    put_marks(w, rank);
    for (size_t i = 0; i < rank->source->span_count && !w->failed; i++) {
        put_span(w, rank, &rank->source->spans[i]);
        flush(w, FLUSH);
    }
    put_labels(w, rank);
}

bool knee_write_perfetto(const struct knee_account *account, struct knee_sink sink,
                         const struct knee_alloc *alloc)
{
    struct writer w = {.text = {.alloc = alloc}, .sink = sink, .origin_ns = INT64_MAX};
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        int64_t start = rank->from_ns + rank->trace->base_ns + rank->shift_ns;
        w.origin_ns = start < w.origin_ns ? start : w.origin_ns;
    }
    w.origin_ns -= 3600000000000; /* an hour of room for what the host did before */
    const char *gpu = account->rank_count ? account->ranks[0].trace->gpu_name : "";
    knee_text_printf(
        &w.text,
        "{\"schemaVersion\": 1, \"baseTimeNanoseconds\": %lld, \"displayTimeUnit\": \"ms\", "
        "\"deviceProperties\": [{\"name\": ",
        (long long)w.origin_ns);
    struct knee_json quote = {.text = &w.text, .flat = {true, true}};
    knee_json_string(&quote, NULL, gpu);
    knee_text_puts(&w.text, "}]");
    if (account->world_size > 0)
        knee_text_printf(&w.text, ", \"distributedInfo\": {\"rank\": %lld, \"world_size\": %lld}",
                         (long long)(account->rank_count ? account->ranks[0].rank : 0),
                         (long long)account->world_size);
    knee_text_puts(
        &w.text, ", \"traceEvents\": [\n{\"ph\": \"i\", \"name\": \"written by knee\", \"pid\": 0, "
                 "\"tid\": 0, \"ts\": 0, \"s\": \"g\"}");
    for (size_t r = 0; r < account->rank_count && !w.failed; r++)
        put_rank(&w, &account->ranks[r]);
    knee_text_puts(&w.text, "\n]}\n");
    flush(&w, 0);
    knee_text_release(&w.text);
    return !w.failed;
}

/* SPDX-License-Identifier: MIT */
/* A trace as bytes and back. */
#include "timeline/wire_format.h"

#include "base/cursor.h"
#include "base/error.h"
#include "base/text.h"

#include <string.h>

static const uint64_t mark = 0x32706b656566316b;

/* ---- Strings: one block, pointers first, as the builder makes it ---- */

/* Strings that calls borrow from tables; after unpacking they live behind the names. */
enum { WORDS_MAX = 64 };
struct words {
    const char *word[WORDS_MAX];
    size_t count;
};

static unsigned word_row(struct words *words, const char *word)
{
    size_t row = 0;
    while (row < words->count && strcmp(words->word[row], word) != 0)
        row++;
    if (row == words->count && row < WORDS_MAX)
        words->word[words->count++] = word;
    return row < WORDS_MAX ? (unsigned)row : 0;
}

static void gather_words(const struct knee_trace *trace, struct words *words)
{
    word_row(words, "");
    word_row(words, trace->format ? trace->format : "");
    for (size_t r = 0; r < trace->rank_count; r++)
        for (size_t i = 0; i < trace->ranks[r].call_count; i++) {
            const struct knee_call *call = &trace->ranks[r].calls[i];
            word_row(words, call->algorithm);
            word_row(words, call->protocol);
            word_row(words, call->dtype);
        }
}

static void write_string(struct knee_cursor *c, const char *string)
{
    size_t length = strlen(string) + 1;
    if (c->mode == KNEE_WRITE)
        memcpy(c->to + c->at, string, length);
    c->at += length;
}

static void write_strings(struct knee_cursor *c, const struct knee_trace *trace,
                          const struct words *words)
{
    uint64_t names = trace->name_count, extra = words->count, text = 0;
    for (size_t i = 0; i < trace->name_count; i++)
        text += strlen(trace->names[i]) + 1;
    for (size_t i = 0; i < words->count; i++)
        text += strlen(words->word[i]) + 1;
    KNEE_FIELD(c, names);
    KNEE_FIELD(c, extra);
    KNEE_FIELD(c, text);
    for (size_t i = 0; i < trace->name_count; i++)
        write_string(c, trace->names[i]);
    for (size_t i = 0; i < words->count; i++)
        write_string(c, words->word[i]);
}

static void read_strings(struct knee_cursor *c, struct knee_trace *trace, struct words *words)
{
    uint64_t names = 0, extra = 0, text = 0;
    KNEE_FIELD(c, names);
    KNEE_FIELD(c, extra);
    KNEE_FIELD(c, text);
    knee_cursor_check(c, text <= c->size - c->at && extra >= 2 && extra <= WORDS_MAX &&
                             names <= text && names < UINT32_MAX - 2 && text > 0);
    if (c->bad)
        return;
    char **pointers = knee_resize(c->alloc, NULL, (size_t)names * sizeof *pointers + (size_t)text);
    c->no_memory = !pointers;
    c->bad = !pointers;
    if (!pointers)
        return;
    char *at = (char *)(pointers + names), *end = at + text;
    trace->names = pointers;
    knee_cursor_bytes(c, at, (size_t)text);
    knee_cursor_check(c, end[-1] == '\0');
    for (uint64_t i = 0; !c->bad && i < names + extra; i++) {
        knee_cursor_check(c, at < end);
        if (c->bad)
            break;
        if (i < names)
            pointers[i] = at;
        else
            words->word[words->count++] = at;
        at += strlen(at) + 1;
    }
    knee_cursor_check(c, at == end);
    trace->name_count = (size_t)names;
}

/* A borrowed string as its row. */
static void word(struct knee_cursor *c, struct words *words, const char **string)
{
    unsigned row =
        knee_cursor_small(c, c->mode == KNEE_READ ? 0 : word_row(words, *string), WORDS_MAX);
    knee_cursor_check(c, row < words->count);
    if (c->mode == KNEE_READ)
        *string = c->bad ? "" : words->word[row];
}

/* ---- Rows ---- */

static void walk_span(struct knee_cursor *c, struct knee_span *span, const struct knee_trace *trace,
                      const struct knee_rank *rank, const struct knee_span *before)
{
    KNEE_FIELD(c, span->start_ns);
    KNEE_FIELD(c, span->end_ns);
    KNEE_FIELD(c, span->launch_ns);
    KNEE_FIELD(c, span->name);
    KNEE_FIELD(c, span->call);
    KNEE_FIELD(c, span->stream);
    KNEE_FIELD(c, span->step);
    KNEE_FIELD(c, span->launch);
    span->kind = (enum knee_span_kind)knee_cursor_small(c, span->kind, KNEE_SPAN_COPY + 1);
    knee_cursor_check_time(c, span->start_ns);
    knee_cursor_check_time(c, span->end_ns);
    knee_cursor_check_time(c, span->launch_ns == KNEE_NO_TIME ? 0 : span->launch_ns);
    knee_cursor_check(c, rank->start_ns <= span->start_ns && span->end_ns <= rank->end_ns);
    knee_cursor_check(c, c->bad || knee_time_is_good(span->start_ns, span->end_ns));
    knee_cursor_check(c, span->start_ns <= span->end_ns && span->name < trace->name_count &&
                             span->call <= rank->call_count && span->step >= -1 &&
                             (span->step < 0 || (size_t)span->step < trace->step_count) &&
                             span->launch <= trace->host_event_count &&
                             (!before || before->start_ns <= span->start_ns));
}

static void walk_call(struct knee_cursor *c, struct knee_call *call, struct words *words,
                      const struct knee_trace *trace, const struct knee_rank *rank)
{
    KNEE_FIELD(c, call->span);
    KNEE_FIELD(c, call->bytes);
    KNEE_FIELD(c, call->group_size);
    KNEE_FIELD(c, call->element_bytes);
    KNEE_FIELD(c, call->group);
    KNEE_FIELD(c, call->description);
    KNEE_FIELD(c, call->members);
    KNEE_FIELD(c, call->sequence);
    KNEE_FIELD(c, call->peer);
    call->sends = knee_cursor_small(c, call->sends, 2) != 0;
    call->op = (enum knee_op)knee_cursor_small(c, call->op, KNEE_OPS);
    word(c, words, &call->algorithm);
    word(c, words, &call->protocol);
    word(c, words, &call->dtype);
    knee_cursor_check(c, call->span < rank->span_count && call->group <= trace->name_count &&
                             call->description <= trace->name_count &&
                             call->members <= trace->name_count);
}

enum {
    SPAN_BYTES = 3 * 8 + 5 * 4 + 1,
    CALL_BYTES = 4 * 6 + 3 * 8,
    HOST_BYTES = 3 * 8 + 4 + 1,
    COPY_BYTES = 4 + 8,
    PRODUCT_BYTES = 7 * 8 + 2 * 4 + 4 * 8 + 4 * 1,
    MARK_BYTES = 4 * 8,
    RANK_BYTES = 9 * 8
};

/* Every span of communication has its call, and the other way round. */
static void check_pairs(struct knee_cursor *c, const struct knee_rank *rank)
{
    size_t comm = 0;
    for (size_t i = 0; i < rank->span_count; i++) {
        const struct knee_span *span = &rank->spans[i];
        bool talks = span->kind == KNEE_SPAN_COMM || span->kind == KNEE_SPAN_FUSED;
        comm += talks;
        knee_cursor_check(c, talks == (span->call != 0));
    }
    knee_cursor_check(c, comm == rank->call_count);
    for (size_t i = 0; i < rank->call_count; i++)
        knee_cursor_check(c, rank->spans[rank->calls[i].span].call == i + 1);
}

static void walk_rank(struct knee_cursor *c, struct knee_rank *rank, struct words *words,
                      const struct knee_trace *trace)
{
    void *spans = rank->spans, *calls = rank->calls;
    uint64_t call_count = rank->call_count, work = rank->work, launched = rank->launched;
    KNEE_FIELD(c, rank->rank);
    KNEE_FIELD(c, rank->device);
    KNEE_FIELD(c, rank->start_ns);
    KNEE_FIELD(c, rank->end_ns);
    KNEE_FIELD(c, work);
    KNEE_FIELD(c, launched);
    knee_cursor_check_time(c, rank->start_ns);
    knee_cursor_check_time(c, rank->end_ns);
    knee_cursor_check(c, rank->start_ns <= rank->end_ns && work <= UINT32_MAX && launched <= work);
    knee_cursor_check(c,
                      c->bad || rank->end_ns < 0 || trace->base_ns <= KNEE_LAST_NS - rank->end_ns);
    /* Spans refer to calls and calls to spans: both counts are known before either is checked. */
    KNEE_FIELD(c, call_count);
    knee_cursor_rows(c, &rank->span_count, SPAN_BYTES, &spans, sizeof *rank->spans);
    rank->spans = spans;
    knee_cursor_check(c, rank->span_count <= work && call_count <= work);
    if (c->mode == KNEE_READ) {
        rank->call_count = c->bad ? 0 : (size_t)call_count;
        rank->work = (size_t)work;
        rank->launched = (size_t)launched;
    }
    for (size_t i = 0; i < rank->span_count; i++)
        walk_span(c, &rank->spans[i], trace, rank, i ? &rank->spans[i - 1] : NULL);
    knee_cursor_rows(c, &rank->call_count, CALL_BYTES, &calls, sizeof *rank->calls);
    rank->calls = calls;
    knee_cursor_check(c, rank->call_count == call_count);
    for (size_t i = 0; i < rank->call_count; i++)
        walk_call(c, &rank->calls[i], words, trace, rank);
    if (c->mode == KNEE_READ && !c->bad)
        check_pairs(c, rank);
}

static void walk_marks(struct knee_cursor *c, struct knee_mark **marks, size_t *count)
{
    void *array = *marks;
    knee_cursor_rows(c, count, MARK_BYTES, &array, sizeof **marks);
    *marks = array;
    for (size_t i = 0; i < *count; i++) {
        struct knee_mark *m = &(*marks)[i];
        KNEE_FIELD(c, m->start_ns);
        KNEE_FIELD(c, m->end_ns);
        KNEE_FIELD(c, m->number);
        KNEE_FIELD(c, m->device);
        knee_cursor_check(c, knee_time_is_good(m->start_ns, m->end_ns));
        knee_cursor_check(c, i == 0 || m[-1].device < m->device ||
                                 (m[-1].device == m->device && m[-1].start_ns <= m->start_ns));
    }
}

static void walk_host_events(struct knee_cursor *c, const struct knee_trace *trace,
                             struct knee_host_event **list, size_t *count)
{
    void *events = *list;
    knee_cursor_rows(c, count, HOST_BYTES, &events, sizeof **list);
    *list = events;
    for (size_t i = 0; i < *count; i++) {
        struct knee_host_event *e = &(*list)[i];
        KNEE_FIELD(c, e->start_ns);
        KNEE_FIELD(c, e->end_ns);
        KNEE_FIELD(c, e->thread);
        KNEE_FIELD(c, e->name);
        e->kind = (enum knee_host_kind)knee_cursor_small(c, e->kind, KNEE_HOST_SCOPE + 1);
        knee_cursor_check(c, e->start_ns <= e->end_ns && e->name < trace->name_count &&
                                 (i == 0 || e[-1].start_ns <= e->start_ns));
        knee_cursor_check(c, c->bad || knee_time_is_good(e->start_ns, e->end_ns));
    }
}

/* What the host did, by start, and what its copies moved, by launch. */
static void walk_host(struct knee_cursor *c, struct knee_trace *trace)
{
    void *copies = trace->copies;
    walk_host_events(c, trace, &trace->host_events, &trace->host_event_count);
    walk_host_events(c, trace, &trace->long_calls, &trace->long_call_count);
    knee_cursor_rows(c, &trace->copy_count, COPY_BYTES, &copies, sizeof *trace->copies);
    trace->copies = copies;
    for (size_t i = 0; i < trace->copy_count; i++) {
        KNEE_FIELD(c, trace->copies[i].launch);
        KNEE_FIELD(c, trace->copies[i].bytes);
        knee_cursor_check(c, trace->copies[i].launch <= trace->host_event_count &&
                                 trace->copies[i].bytes >= 0);
    }
}

static bool is_extent(double value)
{
    return value >= 0 && value <= 1e15; /* false for NaN */
}

/* Products and attention whose shapes are known. */
static void walk_products(struct knee_cursor *c, struct knee_trace *trace)
{
    void *products = trace->products;
    knee_cursor_rows(c, &trace->product_count, PRODUCT_BYTES, &products, sizeof *trace->products);
    trace->products = products;
    for (size_t i = 0; i < trace->product_count; i++) {
        struct knee_product *p = &trace->products[i];
        int64_t *const times[] = {&p->start_ns, &p->end_ns,     &p->thread, &p->kernel_ns,
                                  &p->first_ns, &p->longest_ns, &p->device};
        double *const extents[] = {&p->count, &p->m, &p->n, &p->k};
        for (size_t f = 0; f < sizeof times / sizeof *times; f++)
            KNEE_FIELD(c, *times[f]);
        KNEE_FIELD(c, p->kernel);
        KNEE_FIELD(c, p->launch);
        for (size_t f = 0; f < sizeof extents / sizeof *extents; f++) {
            KNEE_FIELD(c, *extents[f]);
            knee_cursor_check(c, c->mode != KNEE_READ || is_extent(*extents[f]));
        }
        p->element_bytes = (int)knee_cursor_small(c, (unsigned)p->element_bytes, 64);
        p->attention = knee_cursor_small(c, p->attention, 2) != 0;
        p->backward = knee_cursor_small(c, p->backward, 2) != 0;
        p->causal = knee_cursor_small(c, p->causal, 2) != 0;
        knee_cursor_check(c, knee_time_is_good(p->start_ns, p->end_ns) &&
                                 p->kernel <= trace->name_count && p->kernel_ns >= 0 &&
                                 p->longest_ns >= 0 && p->longest_ns <= p->kernel_ns);
        knee_cursor_check_time(c, p->first_ns);
    }
}

static void text_field(struct knee_cursor *c, char *field, size_t size)
{
    knee_cursor_bytes(c, field, size);
    if (c->mode == KNEE_READ)
        field[size - 1] = '\0';
}

static void walk_facts(struct knee_cursor *c, struct knee_trace *trace, struct words *words)
{
    word(c, words, &trace->format);
    KNEE_FIELD(c, trace->rank);
    KNEE_FIELD(c, trace->world_size);
    KNEE_FIELD(c, trace->base_ns);
    knee_cursor_check(c, trace->base_ns >= 0 && trace->base_ns <= KNEE_LAST_NS);
    text_field(c, trace->gpu_name, sizeof trace->gpu_name);
    text_field(c, trace->host, sizeof trace->host);
    text_field(c, trace->backend, sizeof trace->backend);
    KNEE_FIELD(c, trace->bytes);
    KNEE_FIELD(c, trace->events);
    for (int i = 0; i < KNEE_LOSSES; i++) {
        KNEE_FIELD(c, trace->losses[i].count);
        KNEE_FIELD(c, trace->losses[i].first_byte);
    }
    KNEE_FIELD(c, trace->cpu_comm);
    for (int i = 0; i < KNEE_COPY_KINDS; i++) {
        KNEE_FIELD(c, trace->copied[i].count);
        KNEE_FIELD(c, trace->copied[i].bytes);
        KNEE_FIELD(c, trace->copied[i].time_ns);
        knee_cursor_check(c, trace->copied[i].bytes >= 0 && trace->copied[i].time_ns >= 0);
    }
    KNEE_FIELD(c, trace->long_launch_start_ns);
    KNEE_FIELD(c, trace->long_launch_end_ns);
    knee_cursor_check(c, knee_time_is_good(trace->long_launch_start_ns, trace->long_launch_end_ns));
    KNEE_FIELD(c, trace->captures);
    trace->operations = knee_cursor_small(c, trace->operations, 2) != 0;
    trace->backward = knee_cursor_small(c, trace->backward, 2) != 0;
    KNEE_FIELD(c, trace->first_step);
    KNEE_FIELD(c, trace->last_step);
    trace->rank_stated = knee_cursor_small(c, trace->rank_stated, 2) != 0;
    trace->step_source = (enum knee_step_source)knee_cursor_small(c, (unsigned)trace->step_source,
                                                                  KNEE_STEPS_NONE + 1);
    trace->whole_graphs = knee_cursor_small(c, trace->whole_graphs, 2) != 0;
    trace->laid_out = knee_cursor_small(c, trace->laid_out, 2) != 0;
}

static void walk_file(struct knee_cursor *c, struct knee_trace *trace)
{
    size_t length = c->mode == KNEE_READ ? 0 : trace->file ? strlen(trace->file) + 1 : 0;
    void *file = trace->file;
    knee_cursor_rows(c, &length, 1, &file, 1);
    trace->file = file;
    if (length) {
        knee_cursor_bytes(c, trace->file, length);
        knee_cursor_check(c, memchr(trace->file, '\0', length) == trace->file + length - 1);
    }
}

static void walk(struct knee_cursor *c, struct knee_trace *trace)
{
    struct words words = {{0}, 0};
    knee_cursor_mark(c, mark);
    if (c->mode == KNEE_READ) {
        read_strings(c, trace, &words);
    } else {
        gather_words(trace, &words);
        write_strings(c, trace, &words);
    }
    walk_facts(c, trace, &words);
    walk_file(c, trace);
    walk_marks(c, &trace->steps, &trace->step_count);
    walk_marks(c, &trace->loads, &trace->load_count);
    walk_marks(c, &trace->optimizers, &trace->optimizer_count);
    walk_host(c, trace);
    walk_products(c, trace);
    void *ranks = trace->ranks;
    knee_cursor_rows(c, &trace->rank_count, RANK_BYTES, &ranks, sizeof *trace->ranks);
    trace->ranks = ranks;
    for (size_t i = 0; i < trace->rank_count; i++)
        walk_rank(c, &trace->ranks[i], &words, trace);
}

size_t knee_trace_packed_size(const struct knee_trace *trace)
{
    struct knee_cursor c = {.mode = KNEE_COUNT};
    struct knee_trace same = *trace; /* the walk writes to it only when it reads the bytes */
    walk(&c, &same);
    return c.at;
}

void knee_trace_pack(const struct knee_trace *trace, unsigned char *out)
{
    struct knee_cursor c = {.mode = KNEE_WRITE, .to = out};
    struct knee_trace same = *trace;
    walk(&c, &same);
}

knee_status knee_trace_unpack(const unsigned char *from, size_t size,
                              const struct knee_alloc *alloc, struct knee_trace *out,
                              struct knee_err *err)
{
    struct knee_cursor c = {.mode = KNEE_READ, .from = from, .size = size, .alloc = alloc};
    struct knee_trace trace = {.alloc = alloc};
    walk(&c, &trace);
    knee_status status = knee_cursor_end(&c, "a trace", err);
    if (status)
        knee_trace_release(&trace);
    else
        *out = trace;
    return status;
}

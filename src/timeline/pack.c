/* SPDX-License-Identifier: MIT */
/*
 * One walk over the fields serves both directions, so that they cannot disagree: a cursor that
 * counts, writes or reads. Numbers are written as they are in memory; a mark at the front refuses
 * bytes from a machine that writes them otherwise.
 */
#include "timeline/pack.h"

#include "base/error.h"
#include "base/text.h"

#include <string.h>

static const uint64_t mark = 0x31706b656566316b; /* also tells the byte order */

enum mode { COUNT, WRITE, READ };

struct cursor {
    enum mode mode;
    unsigned char *to;         /* WRITE */
    const unsigned char *from; /* READ */
    size_t at, size;           /* size: READ */
    bool bad, no_memory;
    const struct knee_alloc *alloc;
};

/* `size` bytes of one field. */
static void bytes(struct cursor *c, void *field, size_t size)
{
    if (c->mode == READ && (c->bad || size > c->size - c->at)) {
        c->bad = true;
        memset(field, 0, size);
        return;
    }
    if (c->mode == READ)
        memcpy(field, c->from + c->at, size);
    else if (c->mode == WRITE)
        memcpy(c->to + c->at, field, size);
    c->at += size;
}

#define FIELD(c, lvalue) bytes(c, &(lvalue), sizeof(lvalue))

static void check(struct cursor *c, bool holds)
{
    c->bad = c->bad || (c->mode == READ && !holds);
}

/* As far as the readers of traces let times go: 4e18 for a start, as much again for a duration. */
static void check_time(struct cursor *c, int64_t ns)
{
    check(c, ns >= -1000000000000000000 && ns <= 8000000000000000000);
}

/* An enumeration as one byte, below `limit`. */
static unsigned small(struct cursor *c, unsigned value, unsigned limit)
{
    unsigned char byte = (unsigned char)value;
    FIELD(c, byte);
    check(c, byte < limit);
    return c->bad ? 0 : byte;
}

/* How many rows of at least `row_size` bytes follow, and, when reading, room for them in memory. */
static void rows(struct cursor *c, size_t *count, size_t row_size, void **array, size_t in_memory)
{
    uint64_t wide = *count;
    FIELD(c, wide);
    if (c->mode != READ)
        return;
    *count = 0;
    *array = NULL;
    if (c->bad || wide > (c->size - c->at) / row_size || wide > SIZE_MAX / in_memory) {
        c->bad = true;
        return;
    }
    if (wide == 0)
        return;
    *array = knee_resize(c->alloc, NULL, (size_t)wide * in_memory);
    c->no_memory = c->no_memory || !*array;
    c->bad = c->bad || !*array;
    if (*array) {
        memset(*array, 0, (size_t)wide * in_memory);
        *count = (size_t)wide;
    }
}

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

static void write_string(struct cursor *c, const char *string)
{
    size_t length = strlen(string) + 1;
    if (c->mode == WRITE)
        memcpy(c->to + c->at, string, length);
    c->at += length;
}

static void write_strings(struct cursor *c, const struct knee_trace *trace,
                          const struct words *words)
{
    uint64_t names = trace->name_count, extra = words->count, text = 0;
    for (size_t i = 0; i < trace->name_count; i++)
        text += strlen(trace->names[i]) + 1;
    for (size_t i = 0; i < words->count; i++)
        text += strlen(words->word[i]) + 1;
    FIELD(c, names);
    FIELD(c, extra);
    FIELD(c, text);
    for (size_t i = 0; i < trace->name_count; i++)
        write_string(c, trace->names[i]);
    for (size_t i = 0; i < words->count; i++)
        write_string(c, words->word[i]);
}

static void read_strings(struct cursor *c, struct knee_trace *trace, struct words *words)
{
    uint64_t names = 0, extra = 0, text = 0;
    FIELD(c, names);
    FIELD(c, extra);
    FIELD(c, text);
    check(c, text <= c->size - c->at && extra >= 2 && extra <= WORDS_MAX && names <= text &&
                 names < UINT32_MAX - 2 && text > 0);
    if (c->bad)
        return;
    char **pointers = knee_resize(c->alloc, NULL, (size_t)names * sizeof *pointers + (size_t)text);
    c->no_memory = !pointers;
    c->bad = !pointers;
    if (!pointers)
        return;
    char *at = (char *)(pointers + names), *end = at + text;
    trace->names = pointers;
    bytes(c, at, (size_t)text);
    check(c, end[-1] == '\0');
    for (uint64_t i = 0; !c->bad && i < names + extra; i++) {
        check(c, at < end);
        if (c->bad)
            break;
        if (i < names)
            pointers[i] = at;
        else
            words->word[i - names] = at;
        at += strlen(at) + 1;
    }
    check(c, at == end);
    trace->name_count = (size_t)names;
    words->count = (size_t)extra;
}

/* A borrowed string as its row. */
static void word(struct cursor *c, struct words *words, const char **string)
{
    unsigned row = small(c, c->mode == READ ? 0 : word_row(words, *string), WORDS_MAX);
    check(c, row < words->count);
    if (c->mode == READ)
        *string = c->bad ? "" : words->word[row];
}

/* ---- Rows ---- */

static void walk_span(struct cursor *c, struct knee_span *span, const struct knee_trace *trace,
                      const struct knee_rank *rank, const struct knee_span *before)
{
    FIELD(c, span->start_ns);
    FIELD(c, span->end_ns);
    FIELD(c, span->launch_ns);
    FIELD(c, span->name);
    FIELD(c, span->call);
    FIELD(c, span->stream);
    FIELD(c, span->step);
    span->kind = (enum knee_span_kind)small(c, span->kind, KNEE_SPAN_COPY + 1);
    check_time(c, span->start_ns);
    check_time(c, span->end_ns);
    check_time(c, span->launch_ns == KNEE_NO_TIME ? 0 : span->launch_ns);
    check(c, span->start_ns <= span->end_ns && span->name < trace->name_count &&
                 span->call <= rank->call_count && span->step >= -1 &&
                 (span->step < 0 || (size_t)span->step < trace->step_count) &&
                 (!before || before->start_ns <= span->start_ns));
}

static void walk_call(struct cursor *c, struct knee_call *call, struct words *words,
                      const struct knee_trace *trace, const struct knee_rank *rank)
{
    FIELD(c, call->span);
    FIELD(c, call->bytes);
    FIELD(c, call->group_size);
    FIELD(c, call->group);
    FIELD(c, call->description);
    FIELD(c, call->members);
    FIELD(c, call->sequence);
    call->op = (enum knee_op)small(c, call->op, KNEE_OPS);
    word(c, words, &call->algorithm);
    word(c, words, &call->protocol);
    word(c, words, &call->dtype);
    check(c, call->span < rank->span_count && call->group <= trace->name_count &&
                 call->description <= trace->name_count && call->members <= trace->name_count);
}

enum { SPAN_BYTES = 3 * 8 + 4 * 4 + 1, CALL_BYTES = 4 * 4 + 3 * 8, MARK_BYTES = 3 * 8 };

static void walk_rank(struct cursor *c, struct knee_rank *rank, struct words *words,
                      const struct knee_trace *trace)
{
    void *spans = rank->spans, *calls = rank->calls;
    uint64_t call_count = rank->call_count;
    FIELD(c, rank->rank);
    FIELD(c, rank->device);
    /* Spans refer to calls and calls to spans: both counts are known before either is checked. */
    FIELD(c, call_count);
    rows(c, &rank->span_count, SPAN_BYTES, &spans, sizeof *rank->spans);
    rank->spans = spans;
    if (c->mode == READ)
        rank->call_count = c->bad ? 0 : (size_t)call_count;
    for (size_t i = 0; i < rank->span_count; i++)
        walk_span(c, &rank->spans[i], trace, rank, i ? &rank->spans[i - 1] : NULL);
    rows(c, &rank->call_count, CALL_BYTES, &calls, sizeof *rank->calls);
    rank->calls = calls;
    check(c, rank->call_count == call_count);
    for (size_t i = 0; i < rank->call_count; i++)
        walk_call(c, &rank->calls[i], words, trace, rank);
    for (size_t i = 0; !c->bad && i < rank->span_count; i++)
        check(c, rank->spans[i].call <= rank->call_count);
}

static void walk_marks(struct cursor *c, struct knee_mark **marks, size_t *count)
{
    void *array = *marks;
    rows(c, count, MARK_BYTES, &array, sizeof **marks);
    *marks = array;
    for (size_t i = 0; i < *count; i++) {
        struct knee_mark *m = &(*marks)[i];
        FIELD(c, m->start_ns);
        FIELD(c, m->end_ns);
        FIELD(c, m->number);
        check_time(c, m->start_ns);
        check_time(c, m->end_ns);
        check(c, m->start_ns <= m->end_ns && (i == 0 || m[-1].start_ns <= m->start_ns));
    }
}

static void text_field(struct cursor *c, char *field, size_t size)
{
    bytes(c, field, size);
    if (c->mode == READ)
        field[size - 1] = '\0';
}

static void walk_facts(struct cursor *c, struct knee_trace *trace, struct words *words)
{
    word(c, words, &trace->format);
    FIELD(c, trace->rank);
    FIELD(c, trace->world_size);
    FIELD(c, trace->base_ns);
    text_field(c, trace->gpu_name, sizeof trace->gpu_name);
    text_field(c, trace->host, sizeof trace->host);
    text_field(c, trace->backend, sizeof trace->backend);
    FIELD(c, trace->bytes);
    FIELD(c, trace->events);
    for (int i = 0; i < KNEE_LOSSES; i++) {
        FIELD(c, trace->losses[i].count);
        FIELD(c, trace->losses[i].first_byte);
    }
    FIELD(c, trace->cpu_comm);
    trace->whole_graphs = small(c, trace->whole_graphs, 2) != 0;
}

static void walk_file(struct cursor *c, struct knee_trace *trace)
{
    size_t length = c->mode == READ ? 0 : trace->file ? strlen(trace->file) + 1 : 0;
    void *file = trace->file;
    rows(c, &length, 1, &file, 1);
    trace->file = file;
    if (length) {
        bytes(c, trace->file, length);
        check(c, memchr(trace->file, '\0', length) == trace->file + length - 1);
    }
}

static void walk(struct cursor *c, struct knee_trace *trace)
{
    struct words words = {{0}, 0};
    uint64_t first = mark;
    FIELD(c, first);
    check(c, first == mark);
    if (c->mode == READ) {
        read_strings(c, trace, &words);
    } else {
        gather_words(trace, &words);
        write_strings(c, trace, &words);
    }
    walk_facts(c, trace, &words);
    walk_file(c, trace);
    walk_marks(c, &trace->steps, &trace->step_count);
    walk_marks(c, &trace->loads, &trace->load_count);
    void *ranks = trace->ranks;
    rows(c, &trace->rank_count, 16, &ranks, sizeof *trace->ranks);
    trace->ranks = ranks;
    for (size_t i = 0; i < trace->rank_count; i++)
        walk_rank(c, &trace->ranks[i], &words, trace);
}

/* The walk writes to the trace only when it reads the bytes. */
static struct knee_trace copy_of(const struct knee_trace *trace)
{
    return *trace;
}

size_t knee_trace_packed_size(const struct knee_trace *trace)
{
    struct cursor c = {.mode = COUNT};
    struct knee_trace same = copy_of(trace);
    walk(&c, &same);
    return c.at;
}

void knee_trace_pack(const struct knee_trace *trace, unsigned char *out)
{
    struct cursor c = {.mode = WRITE, .to = out};
    struct knee_trace same = copy_of(trace);
    walk(&c, &same);
}

knee_status knee_trace_unpack(const unsigned char *from, size_t size,
                              const struct knee_alloc *alloc, struct knee_trace *out,
                              struct knee_err *err)
{
    struct cursor c = {.mode = READ, .from = from, .size = size, .alloc = alloc};
    struct knee_trace trace = {.alloc = alloc};
    walk(&c, &trace);
    if (!c.bad && c.at == size) {
        *out = trace;
        return KNEE_OK;
    }
    knee_trace_release(&trace);
    if (c.no_memory)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for a trace from another process");
    return knee_fail(err, KNEE_INPUT, "", "a trace from another process is damaged");
}

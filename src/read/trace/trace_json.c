/* SPDX-License-Identifier: MIT */
/*
 * The container of chrome-trace JSON, as Kineto and XProf write it and as it is found in the wild:
 * an object with traceEvents or a bare array, keys in any order, often damaged.
 *
 * Bytes are put into a window and taken out of it piece by piece: a document's start, a member of
 * the outer object, an event. A piece that the window cuts off waits until more bytes have come,
 * then is read again from its start. What cannot be read is counted with its position, and reading
 * goes on at the next thing that starts like the events before it. So bytes may come in any
 * portions, read from a file or pushed by the caller.
 */
#include "read/trace/trace_json.h"

#include "base/error.h"
#include "base/text.h"
#include "read/trace/reader.h"

#include <string.h>

enum { WINDOW = KNEE_WINDOW_BYTES, LARGEST_EVENT = 1 << 26, ENOUGH_TO_TELL = 64 };

/* Where in a document the next piece stands. */
enum place { AT_START, BETWEEN, IN_OBJECT, IN_EVENTS, SEEKING };

struct knee_trace_reader {
    const struct knee_alloc *alloc;
    char *buffer;
    size_t capacity;
    const char *p, *end; /* what is left of the window */
    uint64_t offset;     /* of buffer[0] in the file */
    bool at_end;         /* no more bytes will come */
    bool full;           /* a piece fills the largest window */
    bool no_memory;
    enum place place;
    bool in_object; /* the events belong to an object, whose other members follow */
    bool comma;     /* the next event needs no comma before it */
    uint64_t documents;
    uint64_t rescanned; /* bytes looked at in vain, which may be looked at again */
    const char *look;   /* what the file looks like by its first bytes */
    struct knee_event_scan scan;
    struct knee_event_sink sink;
    struct knee_trace_options options;
    struct knee_trace trace;
    struct knee_slice first_key; /* of events that were good; names what to look for after damage */
    char first_key_text[16];
};

static uint64_t position(const struct knee_trace_reader *r, const char *p)
{
    return r->offset + (uint64_t)(p - r->buffer);
}

static void lose(struct knee_trace_reader *r, enum knee_loss_kind kind, const char *p)
{
    struct knee_loss *loss = &r->trace.losses[kind];
    if (loss->count++ == 0)
        loss->first_byte = position(r, p);
}

/* ---- After damage ---- */

/* Does an event start at p, where a brace is? 1 yes, 0 no, -1 the window ends too early to tell. */
static int starts_event(const struct knee_trace_reader *r, const char *p, const char *end)
{
    static const char *const keys[] = {"ph", "name", "cat", "pid", "ts"};
    p = knee_scan_space(p + 1);
    if (p + 16 > end)
        return -1;
    if (*p++ != '"')
        return 0;
    if (r->first_key.length)
        return memcmp(p, r->first_key.at, r->first_key.length) == 0 &&
               p[r->first_key.length] == '"';
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (memcmp(p, keys[i], strlen(keys[i])) == 0 && p[strlen(keys[i])] == '"')
            return 1;
    return 0;
}

/* Leaves what cannot be read and looks for the next event from the byte after its start. */
static void seek_from(struct knee_trace_reader *r, enum knee_loss_kind kind)
{
    lose(r, kind, r->p);
    r->p++;
    r->place = SEEKING;
}

enum { RESCANS = 8, FREE_RESCANS = 1 << 20 };

/* The same for an event that was looked at up to `reached`. Events inside events, all of them
 * damaged, would be looked at again and again: past a budget what was looked at is left out. */
static void seek_past(struct knee_trace_reader *r, enum knee_loss_kind kind, const char *reached)
{
    reached = reached > r->p && reached <= r->end ? reached : r->p + 1;
    r->rescanned += (uint64_t)(reached - r->p);
    bool spent = r->rescanned > FREE_RESCANS + RESCANS * position(r, r->end);
    seek_from(r, kind);
    if (spent)
        r->p = reached;
}

/* Moves to the next start of an event. False: it is not in the window. */
static bool seek(struct knee_trace_reader *r)
{
    const char *p = r->p;
    for (; p < r->end; p++) {
        p = memchr(p, '{', (size_t)(r->end - p));
        if (!p) {
            p = r->end;
            break;
        }
        int starts = starts_event(r, p, r->end);
        if (starts > 0) {
            r->p = p;
            r->place = IN_EVENTS;
            r->comma = true;
            return true;
        }
        if (starts < 0 && !r->at_end)
            break;
    }
    r->p = p;
    return false;
}

/* A repaired string may have swallowed the start of the next event. */
static bool swallowed_event(const struct knee_trace_reader *r, const char *p, const char *end)
{
    for (p++; (p = memchr(p, '{', (size_t)(end - p))); p++)
        if (starts_event(r, p, end) > 0)
            return true;
    return false;
}

/* ---- Events ---- */

static void remember_first_key(struct knee_trace_reader *r, const char *event, const char *end)
{
    const char *p = knee_scan_space(event + 1);
    size_t length = 0;
    if (r->first_key.length || p >= end || *p != '"')
        return;
    for (p++; p + length < end && p[length] != '"' && length < sizeof r->first_key_text - 1;)
        length++;
    memcpy(r->first_key_text, p, length);
    r->first_key = (struct knee_slice){r->first_key_text, length};
}

static void take_event(struct knee_trace_reader *r, struct knee_event *e, const char *start)
{
    if (e->category == KNEE_CAT_SKIP) {
        r->trace.events++;
        return;
    }
    if (e->raw_args.at && *e->raw_args.at == '{' && knee_event_wants_args(e))
        knee_scan_args(e->raw_args.at + 1, r->end, e, &r->scan);
    else if (!e->has_args)
        knee_clear_args(&e->args);
    uint64_t negative = r->sink.negative;
    bool good = e->category == KNEE_CAT_NONE || e->phase == 'M' ? knee_xprof_event(&r->sink, e)
                                                                : knee_kineto_event(&r->sink, e);
    if (!good)
        lose(r, KNEE_LOSS_TIME, start);
    if (r->sink.negative > negative)
        lose(r, KNEE_REPAIR_DURATION, start);
    r->trace.events++;
}

/* Out of the way of what is read well. */
static __attribute__((noinline)) void leave_event(struct knee_trace_reader *r, const char *after,
                                                  const char *reached)
{
    seek_past(r, after ? KNEE_LOSS_EVENT : KNEE_LOSS_OVERLONG,
              !after                   ? r->end
              : after == KNEE_SCAN_BAD ? reached
                                       : after);
}

/* The event at the window's start. False: more bytes are needed. */
static bool read_event(struct knee_trace_reader *r)
{
    struct knee_event event;
    const char *start = r->p;
    const char *after = knee_scan_event(start, r->end, &event, &r->scan);
    if (!after && !r->full)
        return false;
    if (!after || after == KNEE_SCAN_BAD ||
        (r->scan.repaired && swallowed_event(r, start, after))) {
        leave_event(r, after, event.reached);
        return true;
    }
    if (r->scan.repaired)
        lose(r, KNEE_REPAIR_STRING, start);
    if (r->scan.commas)
        lose(r, KNEE_REPAIR_COMMA, start);
    if (event.phase)
        remember_first_key(r, start, r->end);
    r->sink.seen |= event.seen;
    take_event(r, &event, start);
    r->p = after;
    r->comma = false;
    return true;
}

/* The next event, with the comma before it: the two stand together nearly always. */
static bool read_events(struct knee_trace_reader *r, char next)
{
    if (next == ',') {
        r->comma = true;
        r->p = knee_scan_space(r->p + 1);
        if (r->p >= r->end) {
            r->p = r->end; /* not into the sentinel */
            return false;
        }
        next = *r->p;
    }
    switch (next) {
    case '{':
        if (!r->comma)
            lose(r, KNEE_REPAIR_COMMA, r->p);
        r->comma = true; /* counted once, even when the event has to be read again */
        return read_event(r);
    case ',': return true;
    case ']':
        r->p++;
        r->place = r->in_object ? IN_OBJECT : BETWEEN;
        return true;
    default: seek_from(r, KNEE_LOSS_EVENT); return true;
    }
}

/* ---- Members of the outer object ---- */

static const char *bounded_space(const char *p, const char *end)
{
    while (p < end && (unsigned char)*p <= ' ')
        p++;
    return p;
}

/* What follows "key": inside a small object, or NULL. */
static const char *member_of(struct knee_slice object, const char *key)
{
    size_t length = strlen(key);
    const char *end = object.at + object.length;
    for (const char *p = object.at; p + length + 3 < end; p++) {
        if (*p != '"' || memcmp(p + 1, key, length) != 0 || p[length + 1] != '"')
            continue;
        p = bounded_space(p + length + 2, end);
        if (p < end && *p == ':')
            return bounded_space(p + 1, end);
    }
    return NULL;
}

/* The value of "key": inside a small object, as a number; or -1. */
static int64_t number_in(struct knee_slice object, const char *key)
{
    const char *end = object.at + object.length, *p = member_of(object, key);
    int64_t value = -1;
    if (!p)
        return -1;
    p += p < end && *p == '"';
    const char *after = knee_scan_int(p, end, &value);
    return !after || after == KNEE_SCAN_BAD ? -1 : value;
}

/* The same for a text, cut to fit. */
static void text_in(struct knee_slice object, const char *key, char *out, size_t size)
{
    const char *end = object.at + object.length, *p = member_of(object, key);
    size_t used = 0;
    if (!p || p >= end || *p != '"')
        return;
    for (p++; p < end && *p != '"' && used + 1 < size; p++)
        out[used++] = (unsigned char)*p < 0x20 ? '?' : *p;
    out[used] = '\0';
}

static void copy_text(struct knee_slice value, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 1; i + 1 < value.length && used + 1 < size; i++)
        out[used++] = (unsigned char)value.at[i] < 0x20 ? '?' : value.at[i];
    out[used] = '\0';
}

static void take_metadata(struct knee_trace *trace, struct knee_slice key, struct knee_slice value)
{
    if (SLICE_IS(key, "distributedInfo")) {
        int64_t rank = number_in(value, "rank");
        int64_t world = number_in(value, "world_size");
        trace->rank = rank >= 0 ? rank : trace->rank;
        trace->rank_stated = trace->rank_stated || rank >= 0;
        trace->world_size = world > 0 ? world : trace->world_size;
        text_in(value, "backend", trace->backend, sizeof trace->backend);
    } else if (SLICE_IS(key, "baseTimeNanoseconds")) {
        int64_t base = 0;
        const char *after = knee_scan_int(value.at, value.at + value.length + 1, &base);
        if (after && after != KNEE_SCAN_BAD && base >= 0 && base <= KNEE_LAST_NS)
            trace->base_ns = base;
    } else if (SLICE_IS(key, "deviceProperties")) {
        text_in(value, "name", trace->gpu_name, sizeof trace->gpu_name);
    } else if (SLICE_IS(key, "host_name") || SLICE_IS(key, "hostname")) {
        copy_text(value, trace->host, sizeof trace->host);
    }
}

/* Host events are needed only if all ranks of the job are present. */
static void leave_host(struct knee_trace_reader *r)
{
    struct knee_trace_options *o = &r->options;
    if (o->host_ranks && r->trace.world_size > 0 && (uint64_t)r->trace.world_size > o->host_ranks)
        o->host = o->detail = false;
    r->scan.keep = knee_keep_of(o);
}

/* One "key": value of the outer object. False: more bytes are needed. */
static bool read_member(struct knee_trace_reader *r)
{
    uint64_t repaired = 0;
    const char *key = r->p + 1;
    const char *close = knee_scan_string(key, r->end, KNEE_STRING_KEY, &repaired);
    const char *p = close ? knee_scan_space(close + 1) : r->end; /* at the colon */
    p = p < r->end ? knee_scan_space(p + 1) : r->end;
    const char *after = NULL;
    if (p < r->end) {
        struct knee_slice name = {key, (size_t)(close - key)};
        if (SLICE_IS(name, "traceEvents") && *p == '[') {
            r->p = p + 1;
            r->place = IN_EVENTS;
            r->in_object = r->comma = true;
            return true;
        }
        after = knee_scan_value(p, r->end, &repaired);
        if (after && after != KNEE_SCAN_BAD) {
            take_metadata(&r->trace, name, (struct knee_slice){p, (size_t)(after - p)});
            leave_host(r);
            r->p = after;
            return true;
        }
    }
    if (!after && !r->full)
        return false;
    r->in_object = true;
    seek_from(r, KNEE_LOSS_EVENT);
    return true;
}

static bool read_object(struct knee_trace_reader *r, char next)
{
    if (next == '"')
        return read_member(r);
    if (next == ',' || next == '}') {
        r->p++;
        r->place = next == ',' ? IN_OBJECT : BETWEEN;
    } else {
        r->in_object = true;
        seek_from(r, KNEE_LOSS_EVENT);
    }
    return true;
}

/* ---- Documents ---- */

static const char *look_of(const char *bytes, size_t length)
{
    static const struct {
        const char *magic, *what;
    } known[] = {{"\x89PNG", "a PNG picture"},
                 {"PK", "a zip archive"},
                 {"\x7f"
                  "ELF",
                  "a program"},
                 {"SQLite", "an SQLite database"},
                 {"%PDF", "a PDF"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (length >= strlen(known[i].magic) &&
            !memcmp(bytes, known[i].magic, strlen(known[i].magic)))
            return known[i].what;
    return length == 0 ? "an empty file" : "no trace events in it";
}

static bool read_start(struct knee_trace_reader *r)
{
    size_t length = (size_t)(r->end - r->p);
    if (length < ENOUGH_TO_TELL && !r->at_end)
        return false;
    if (length >= 3 && memcmp(r->p, "\xef\xbb\xbf", 3) == 0)
        r->p += 3; /* byte order mark */
    r->look = look_of(r->p, (size_t)(r->end - r->p));
    r->place = BETWEEN;
    return true;
}

/* A document starts with a bracket; a brace may also start an event, one a line. */
static bool read_between(struct knee_trace_reader *r, char next)
{
    if (next != '{' && next != '[') {
        r->in_object = false;
        seek_from(r, KNEE_LOSS_EVENT);
        return true;
    }
    int bare = next == '{' ? starts_event(r, r->p, r->end) : 0;
    if (bare < 0 && !r->at_end)
        return false;
    if (r->documents++ > 0 && bare <= 0)
        lose(r, KNEE_REPAIR_DOCUMENT, r->p);
    r->in_object = false;
    r->comma = true;
    r->place = next == '[' || bare > 0 ? IN_EVENTS : IN_OBJECT;
    r->p += bare <= 0;
    return true;
}

/* An event that Kineto wrote, at the comma before it. */
static bool read_framed(struct knee_trace_reader *r)
{
    static const char start[] = ",\n  {\n    \"ph\": \"";
    const char *phase = r->p + sizeof start - 1;
    /* Start, step or end of a flow arrow: up to a third of a file, and never needed. */
    if (KNEE_SCAN_FAST && r->first_key.length && memcmp(r->p, start, sizeof start - 1) == 0 &&
        phase[1] == '"' && (*phase == 's' || *phase == 'f' || *phase == 't')) {
        const char *after = knee_scan_event_end(phase + 2, r->end, r->scan.wide);
        if (after) {
            r->trace.events++;
            r->comma = false;
            r->p = after;
            return true;
        }
    }
    r->p += 4;
    r->comma = true;
    r->scan.framed = KNEE_SCAN_FAST;
    bool taken = read_event(r);
    r->scan.framed = false;
    return taken;
}

/* Takes one piece. False: more bytes are needed. */
static bool take_piece(struct knee_trace_reader *r)
{
    /* No quote is in it: it stands inside the window. */
    if (r->place == IN_EVENTS && memcmp(r->p, ",\n  {", 5) == 0)
        return read_framed(r);
    if (r->place == AT_START)
        return read_start(r);
    if (r->place == SEEKING)
        return seek(r);
    r->p = knee_scan_space(r->p);
    if (r->p >= r->end) {
        r->p = r->end; /* not into the sentinel */
        return false;
    }
    switch (r->place) {
    case IN_OBJECT: return read_object(r, *r->p);
    case IN_EVENTS: return read_events(r, *r->p);
    default: return read_between(r, *r->p);
    }
}

/* ---- The file as a whole ---- */

static void seal(struct knee_trace_reader *r, size_t length)
{
    r->end = r->buffer + length;
    memset(r->buffer + length, '"', KNEE_SCAN_PAD);
}

static bool enlarge(struct knee_trace_reader *r)
{
    size_t capacity = r->capacity ? r->capacity * 2 : WINDOW, left = (size_t)(r->end - r->p);
    if (r->capacity >= LARGEST_EVENT)
        return false;
    char *buffer = knee_resize(r->alloc, r->buffer, capacity + KNEE_SCAN_PAD);
    if (!buffer) {
        r->no_memory = true;
        return false;
    }
    r->buffer = buffer;
    r->capacity = capacity;
    r->p = buffer;
    seal(r, left);
    return true;
}

static char *copy_string(const char *text, const struct knee_alloc *alloc)
{
    size_t size = strlen(text) + 1;
    char *copy = knee_resize(alloc, NULL, size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

struct knee_trace_reader *knee_trace_begin(const char *file,
                                           const struct knee_trace_options *options,
                                           const struct knee_alloc *alloc)
{
    struct knee_trace_reader *r = knee_resize(alloc, NULL, sizeof *r);
    if (!r)
        return NULL;
    memset(r, 0, sizeof *r);
    r->alloc = alloc;
    r->options = options ? *options : (struct knee_trace_options){0};
    r->scan.keep = knee_keep_of(&r->options);
    r->scan.wide = knee_scan_can_be_wide();
    r->trace = (struct knee_trace){.rank = -1, .world_size = -1, .alloc = alloc};
    r->trace.file = copy_string(file, alloc);
    r->sink = (struct knee_event_sink){.options = &r->options, .trace = &r->trace};
    r->sink.builder = knee_builder_new(&r->options, alloc);
    r->p = r->end = r->buffer;
    if (!r->trace.file || !r->sink.builder || !enlarge(r)) {
        knee_trace_abandon(r);
        return NULL;
    }
    return r;
}

/* Looked at with every piece: a window can hold many. */
static bool stopped(const struct knee_trace_reader *r)
{
    return r->options.cancel && *r->options.cancel;
}

/* What is left moves to the front; when it fills the window, the window grows, up to a limit. */
char *knee_trace_room(struct knee_trace_reader *r, size_t *size)
{
    size_t left = (size_t)(r->end - r->p);
    r->offset = position(r, r->p);
    memmove(r->buffer, r->p, left);
    r->p = r->buffer;
    seal(r, left);
    if (left == r->capacity && !enlarge(r)) {
        r->full = true;
        while (!stopped(r) && take_piece(r))
            r->full = false;
        return r->no_memory || stopped(r) ? NULL : knee_trace_room(r, size);
    }
    *size = r->capacity - left;
    return r->buffer + left;
}

void knee_trace_filled(struct knee_trace_reader *r, size_t size)
{
    seal(r, (size_t)(r->end - r->buffer) + size);
    while (!stopped(r) && take_piece(r))
        ;
}

void knee_trace_abandon(struct knee_trace_reader *r)
{
    if (!r)
        return;
    knee_resize(r->alloc, r->buffer, 0);
    knee_builder_free(r->sink.builder);
    knee_xprof_free(r->sink.xprof, r->alloc);
    knee_trace_release(&r->trace);
    knee_resize(r->alloc, r, 0);
}

/* The last pieces; then, is anything cut off? An array may lack its closing bracket. */
static void read_tail(struct knee_trace_reader *r)
{
    r->at_end = true;
    while (!stopped(r) && take_piece(r))
        ;
    bool cut_event = r->place == IN_EVENTS && r->p < r->end;
    bool cut_object = r->place == IN_OBJECT || (r->place == IN_EVENTS && r->in_object);
    if ((cut_event || cut_object) && !r->trace.losses[KNEE_LOSS_INTERRUPTED].count)
        lose(r, KNEE_LOSS_TRUNCATED, r->p);
    r->trace.bytes = position(r, r->end);
}

static knee_status finish(struct knee_trace_reader *r, struct knee_err *err)
{
    struct knee_trace *trace = &r->trace;
    if (r->no_memory)
        return knee_fail(err, KNEE_SYSTEM, trace->file, "out of memory");
    read_tail(r);
    if (r->sink.seen & KNEE_SEEN_BACKWARD)
        knee_builder_backward(r->sink.builder);
    if ((r->sink.seen & KNEE_SEEN_OPERATION) && !r->options.cpu)
        knee_builder_operation(r->sink.builder);
    if (r->sink.seen & KNEE_SEEN_CAPTURE)
        knee_builder_capture(r->sink.builder);
    knee_status status = knee_builder_finish(r->sink.builder, trace, err);
    if (status)
        return status;
    trace->format = r->sink.xprof_spans ? "xprof" : r->options.cpu ? "cpu" : "kineto";
    trace->cpu_comm = r->sink.cpu_comm;
    if (trace->rank < 0)
        trace->rank = knee_rank_from_name(trace->file);
    if (r->sink.xprof_spans && trace->events >= 1000000)
        trace->losses[KNEE_LOSS_CAPPED] = (struct knee_loss){1, trace->bytes};
    if (trace->events)
        return KNEE_OK;
    if (stopped(r))
        return knee_fail(err, KNEE_INPUT, trace->file, "not read: stopped");
    if (trace->losses[KNEE_LOSS_READ].count)
        return knee_fail(err, KNEE_INPUT, trace->file, "cannot be read: the system refuses");
    knee_fail(err, KNEE_INPUT, trace->file, "not a trace: %s", r->look);
    knee_hint(err, "knee reads Kineto and XProf JSON, Nsight Systems sqlite exports, RPD, rocpd, "
                   "rocprofv3, XPlane and Chakra (also .gz)");
    return KNEE_INPUT;
}

knee_status knee_trace_end(struct knee_trace_reader *r, struct knee_trace *out,
                           struct knee_err *err)
{
    knee_status status = finish(r, err);
    if (!status) {
        *out = r->trace;
        memset(&r->trace, 0, sizeof r->trace);
    }
    knee_trace_abandon(r);
    return status;
}

/* As much as there is room for: an event that is cut off by the window is looked at again with
 * every portion that comes. *last is what the last read gave. */
static size_t fill(const struct knee_trace_reader *r, struct knee_gunzip *gunzip, char *room,
                   size_t size, ptrdiff_t *last)
{
    size_t used = 0;
    while (used < size && !stopped(r) &&
           (*last = knee_gunzip_read(gunzip, room + used, size - used)) > 0)
        used += (size_t)*last;
    return used;
}

/* Feeds the reader from a file. What cannot be read on is counted, what was read is kept. */
static void feed(struct knee_trace_reader *r, struct knee_gunzip *gunzip)
{
    ptrdiff_t got = 1;
    while (got > 0 && !stopped(r)) {
        size_t size = 0;
        char *room = knee_trace_room(r, &size);
        if (room)
            knee_trace_filled(r, fill(r, gunzip, room, size, &got));
        else if (!stopped(r))
            return;
    }
    if (stopped(r)) {
        lose(r, KNEE_LOSS_INTERRUPTED, r->p);
        return;
    }
    if (knee_gunzip_trouble(gunzip))
        lose(r, KNEE_LOSS_GZIP, r->end);
    if (got < 0)
        lose(r, KNEE_LOSS_READ, r->end);
}

knee_status knee_trace_read(struct knee_reader reader, const char *file,
                            const struct knee_trace_options *options,
                            const struct knee_alloc *alloc, struct knee_trace *out,
                            struct knee_err *err)
{
    struct knee_gunzip *gunzip = knee_gunzip_new(reader, alloc);
    struct knee_trace_reader *r = gunzip ? knee_trace_begin(file, options, alloc) : NULL;
    if (!r) {
        knee_gunzip_free(gunzip);
        return knee_fail(err, KNEE_SYSTEM, file, "out of memory");
    }
    feed(r, gunzip);
    const char *trouble = knee_gunzip_trouble(gunzip);
    if (trouble && r->offset == 0 && r->end == r->buffer)
        r->look = trouble; /* nothing came out of it */
    if (r->look == trouble && trouble)
        r->place = BETWEEN;
    knee_status status = knee_trace_end(r, out, err);
    knee_gunzip_free(gunzip);
    return status;
}

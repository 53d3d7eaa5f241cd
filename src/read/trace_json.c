/* SPDX-License-Identifier: MIT */
/*
 * The container of chrome-trace JSON, as Kineto and XProf write it and as it is found in the wild:
 * an object with traceEvents or a bare array, keys in any order, plain or gzip, often damaged.
 *
 * The file goes through a window; an event is read from the window in one pass, without building a
 * document. When the window ends inside an event, the event is moved to the front, more is read,
 * and the event is read again from its start. What cannot be read is counted with its position, and
 * reading goes on at the next thing that starts like the events before it.
 */
#include "read/trace_json.h"

#include "base/error.h"
#include "base/text.h"
#include "read/reader.h"

#include <string.h>

enum { WINDOW = 1 << 19, LARGEST_EVENT = 1 << 26 };

struct window {
    struct knee_gunzip *gunzip;
    const struct knee_alloc *alloc;
    char *buffer;
    size_t capacity;
    const char *p, *end; /* what is left of it */
    uint64_t offset;     /* of buffer[0] in the uncompressed file */
    bool at_end, read_failed, no_memory;
    const volatile int *cancel;
    bool cancelled;
};

struct scanner {
    struct window window;
    struct knee_event_sink sink;
    struct knee_trace *trace;
    struct knee_slice first_key; /* of events that were good; names what to look for after damage */
    char first_key_text[16];
};

static uint64_t position(const struct window *w, const char *p)
{
    return w->offset + (uint64_t)(p - w->buffer);
}

static void lose(struct scanner *s, enum knee_loss_kind kind, const char *p)
{
    struct knee_loss *loss = &s->trace->losses[kind];
    if (loss->count++ == 0)
        loss->first_byte = position(&s->window, p);
}

/* ---- The window ---- */

static bool enlarge(struct window *w)
{
    size_t left = (size_t)(w->end - w->p), capacity = w->capacity * 2;
    if (w->capacity >= LARGEST_EVENT)
        return false;
    char *buffer = knee_resize(w->alloc, w->buffer, capacity + KNEE_SCAN_PAD);
    if (!buffer) {
        w->no_memory = true;
        return false;
    }
    w->buffer = buffer;
    w->p = buffer;
    w->end = buffer + left;
    w->capacity = capacity;
    return true;
}

/* Moves what is left to the front and reads on. False: there is no more, or no room for more. */
static bool refill(struct window *w)
{
    size_t left = (size_t)(w->end - w->p);
    if (w->at_end)
        return false;
    if (w->cancel && *w->cancel) {
        w->at_end = w->cancelled = true;
        return false;
    }
    w->offset = position(w, w->p);
    memmove(w->buffer, w->p, left);
    w->p = w->buffer;
    w->end = w->buffer + left;
    if (left == w->capacity && !enlarge(w))
        return false;
    size_t had = left;
    while (left < w->capacity) {
        ptrdiff_t got = knee_gunzip_read(w->gunzip, w->buffer + left, w->capacity - left);
        if (got <= 0) {
            w->at_end = true;
            w->read_failed = got < 0;
            break;
        }
        left += (size_t)got;
        if (left - had >= WINDOW / 2)
            break;
    }
    w->end = w->buffer + left;
    memset(w->buffer + left, '"', KNEE_SCAN_PAD);
    return left > had;
}

/* The next byte that is not white space, or 0 at the end. */
static char peek(struct window *w)
{
    do {
        w->p = knee_scan_space(w->p);
        if (w->p < w->end)
            return *w->p;
        w->p = w->end; /* not into the sentinel */
    } while (refill(w));
    return 0;
}

/* ---- One event ---- */

static uint64_t text_number(struct knee_slice s)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < s.length; i++)
        hash = (hash ^ (unsigned char)s.data[i]) * 1099511628211u;
    return hash | ((uint64_t)1 << 62); /* far from any real pid */
}

/* pid and tid: a number, or a text such as "stream 7" or "Spans". */
static const char *scan_id(const char *p, const char *end, int64_t *id, uint64_t *repaired)
{
    if (*p != '"') {
        const char *after = knee_scan_int(p, end, id);
        return after == KNEE_SCAN_BAD ? knee_scan_value(p, end, repaired) : after;
    }
    const char *close = knee_scan_string(p + 1, end, KNEE_STRING_VALUE, repaired);
    if (!close)
        return NULL;
    struct knee_slice text = {p + 1, (size_t)(close - p - 1)};
    size_t digits = text.length;
    while (digits > 0 && text.data[digits - 1] >= '0' && text.data[digits - 1] <= '9')
        digits--;
    *id = (int64_t)(text_number(text) & INT64_MAX);
    if (digits < text.length && text.length - digits < 10 &&
        (digits == 0 || text.data[digits - 1] == ' '))
        knee_scan_int(text.data + digits, end, id);
    return close + 1;
}

static inline const char *scan_text(const char *p, const char *end, struct knee_slice *out,
                                    uint64_t *repaired)
{
    if (*p != '"')
        return knee_scan_value(p, end, repaired);
    const char *close = knee_scan_string(p + 1, end, KNEE_STRING_VALUE, repaired);
    if (!close)
        return NULL;
    *out = (struct knee_slice){p + 1, (size_t)(close - p - 1)};
    return close + 1;
}

static const char *scan_number(const char *p, const char *end, int64_t *out, uint64_t *repaired)
{
    const char *after = knee_scan_int(p, end, out);
    return after == KNEE_SCAN_BAD ? knee_scan_value(p, end, repaired) : after;
}

/* A time that is not a number (inf, nan, null) is skipped and remembered. */
static const char *scan_time(const char *p, const char *end, int64_t *ns, bool *has, bool *bad,
                             uint64_t *repaired)
{
    const char *after = knee_scan_us(p, end, ns);
    if (after != KNEE_SCAN_BAD) {
        *has = after != NULL;
        return after;
    }
    *bad = true;
    return knee_scan_value(p, end, repaired);
}

static inline uint64_t load8(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word | 0x2020202020202020u; /* lower case */
}

/* Compares the first and the last eight bytes; no word is longer than both together plus a few that
 * do not tell anything apart. `text` is in the window, so that eight bytes can always be read. */
static inline bool same_word(struct knee_slice text, const char *word)
{
    if (text.length >= 8)
        return load8(text.data) == load8(word) &&
               load8(text.data + text.length - 8) == load8(word + text.length - 8);
    uint64_t mask = ((uint64_t)1 << (8 * text.length)) - 1;
    return ((load8(text.data) ^ load8(word)) & mask) == 0;
}

/* Upper and lower case are alike: files of 2021 write Kernel, Memcpy, Operator, Runtime. */
static enum knee_category category_of(struct knee_slice cat)
{
    static const struct {
        unsigned char length;
        char name[23]; /* with room to read eight bytes from anywhere in it */
        enum knee_category category;
    } table[] = {
        {6, "kernel", KNEE_CAT_KERNEL},
        {6, "cpu_op", KNEE_CAT_HOST},
        {6, "memcpy", KNEE_CAT_COPY},
        {6, "memset", KNEE_CAT_COPY},
        {7, "runtime", KNEE_CAT_RUNTIME},
        {8, "operator", KNEE_CAT_HOST},
        {10, "gpu_memcpy", KNEE_CAT_COPY},
        {10, "gpu_memset", KNEE_CAT_COPY},
        {10, "xpu_driver", KNEE_CAT_RUNTIME},
        {11, "cuda_driver", KNEE_CAT_RUNTIME},
        {11, "xpu_runtime", KNEE_CAT_RUNTIME},
        {12, "cuda_runtime", KNEE_CAT_RUNTIME},
        {12, "mtia_runtime", KNEE_CAT_RUNTIME},
        {15, "user_annotation", KNEE_CAT_HOST},
        {15, "mtia_ccp_events", KNEE_CAT_KERNEL},
        {19, "privateuse1_runtime", KNEE_CAT_RUNTIME},
    };
    /* First row of each length; rows of one length stand together. */
    static const unsigned char first[20] = {
        [6] = 1, [7] = 5, [8] = 6, [10] = 7, [11] = 10, [12] = 12, [15] = 14, [19] = 16};
    if (cat.length >= sizeof first || !first[cat.length])
        return KNEE_CAT_SKIP;
    for (size_t i = first[cat.length] - 1u; i < sizeof table / sizeof *table; i++) {
        if (table[i].length != cat.length)
            break;
        if (same_word(cat, table[i].name))
            return table[i].category;
    }
    return KNEE_CAT_SKIP;
}

/* One member of args. The keys are told apart by their length first. */
static const char *scan_arg(const char *p, const char *end, struct knee_slice key,
                            struct knee_event_args *a, uint64_t *repaired)
{
    int64_t number = 0;
    const char *after;
    switch (key.length) {
    case 3:
        if (SLICE_IS(key, "Seq") || SLICE_IS(key, "seq"))
            return scan_number(p, end, &a->sequence, repaired);
        break;
    case 4:
        if (SLICE_IS(key, "name"))
            return scan_text(p, end, &a->label, repaired);
        break;
    case 5:
        if (SLICE_IS(key, "dtype"))
            return scan_text(p, end, &a->dtype, repaired);
        break;
    case 6:
        if (SLICE_IS(key, "stream"))
            return scan_number(p, end, &a->stream, repaired);
        break;
    case 10:
        if (SLICE_IS(key, "Group size"))
            return scan_number(p, end, &a->group_size, repaired);
        break;
    case 11:
        if (SLICE_IS(key, "correlation")) {
            after = scan_number(p, end, &number, repaired);
            if (after && after != KNEE_SCAN_BAD && number > 0)
                a->correlation = (uint64_t)number;
            return after;
        }
        break;
    case 13:
        if (SLICE_IS(key, "In msg nelems"))
            return scan_number(p, end, &a->in_elements, repaired);
        break;
    case 14:
        if (SLICE_IS(key, "Out msg nelems"))
            return scan_number(p, end, &a->out_elements, repaired);
        break;
    case 15:
        if (SLICE_IS(key, "Collective name"))
            return scan_text(p, end, &a->collective, repaired);
        break;
    case 18:
        if (SLICE_IS(key, "Process Group Name"))
            return scan_text(p, end, &a->group, repaired);
        break;
    case 19:
        if (SLICE_IS(key, "Process Group Ranks"))
            return scan_text(p, end, &a->members, repaired);
        break;
    case 25:
        if (SLICE_IS(key, "Process Group Description"))
            return scan_text(p, end, &a->description, repaired);
        break;
    default: break;
    }
    return knee_scan_value(p, end, repaired);
}

/* The members of args, from after the brace to after the end. */
static const char *scan_args(const char *p, const char *end, struct knee_event *e,
                             uint64_t *repaired)
{
    e->has_args = true;
    e->args = (struct knee_event_args){.stream = -1,
                                       .correlation = KNEE_NO_CORRELATION,
                                       .in_elements = -1,
                                       .out_elements = -1,
                                       .group_size = -1,
                                       .sequence = -1};
    bool more = knee_event_wants_more(e), runtime = e->category == KNEE_CAT_RUNTIME;
    for (;;) {
        p = knee_scan_space(p);
        if (p >= end)
            return NULL;
        if (*p == ',')
            p = knee_scan_space(p + 1);
        if (*p == '}')
            return p < end ? p + 1 : NULL;
        if (*p != '"')
            return KNEE_SCAN_BAD;
        const char *close = knee_scan_string(p + 1, end, KNEE_STRING_KEY, repaired);
        if (!close)
            return NULL;
        struct knee_slice key = {p + 1, (size_t)(close - p - 1)};
        p = knee_scan_space(close + 1); /* at the colon */
        p = scan_arg(knee_scan_space(p + 1), end, key, &e->args, repaired);
        if (!p || p == KNEE_SCAN_BAD)
            return p;
        if (!more && e->args.correlation != KNEE_NO_CORRELATION && (runtime || e->args.stream >= 0))
            return knee_scan_rest(p, end, 1, repaired);
    }
}

/* Args that are wanted are taken apart, others are stepped over; when the category is not known yet
 * they are kept for later. */
static const char *scan_event_args(const char *p, const char *end, struct knee_event *e,
                                   uint64_t *repaired)
{
    bool known = e->category != KNEE_CAT_NONE || e->phase == 'M';
    if (*p == '{' && known && knee_event_wants_args(e))
        return scan_args(p + 1, end, e, repaired);
    const char *after = knee_scan_value(p, end, repaired);
    if (after && after != KNEE_SCAN_BAD)
        e->raw_args = (struct knee_slice){p, (size_t)(after - p)};
    return after;
}

#define KEY4(a, b, c, d)                                                                           \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

static inline uint32_t load4(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;
    return (uint32_t)u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

/* What a key is, by its first four bytes, the closing quote included where it is that short. */
enum key { OTHER_KEY, PH, CAT, NAME, PID, TID, TS, DUR, ARGS };

static inline enum key key_of(const char *key)
{
    switch (load4(key)) {
    case KEY4('p', 'h', '"', ':'): return PH;
    case KEY4('t', 's', '"', ':'): return TS;
    case KEY4('c', 'a', 't', '"'): return CAT;
    case KEY4('p', 'i', 'd', '"'): return PID;
    case KEY4('t', 'i', 'd', '"'): return TID;
    case KEY4('d', 'u', 'r', '"'): return DUR;
    case KEY4('n', 'a', 'm', 'e'): return key[4] == '"' ? NAME : OTHER_KEY;
    case KEY4('a', 'r', 'g', 's'): return key[4] == '"' ? ARGS : OTHER_KEY;
    default: return OTHER_KEY;
    }
}

static const unsigned char key_length[] = {
    [PH] = 2, [CAT] = 3, [NAME] = 4, [PID] = 3, [TID] = 3, [TS] = 2, [DUR] = 3, [ARGS] = 4,
};

static inline const char *scan_member(enum key key, const char *p, const char *end,
                                      struct knee_event *e, uint64_t *repaired)
{
    struct knee_slice text = {NULL, 0};
    const char *after;
    switch (key) {
    case PH:
        if (p[0] == '"' && p[2] == '"') { /* nearly always */
            e->phase = p[1];
            return p + 3;
        }
        after = scan_text(p, end, &text, repaired);
        e->phase = text.length == 1 ? text.data[0] : '?';
        return after;
    case CAT:
        after = scan_text(p, end, &text, repaired);
        e->category = text.length ? category_of(text) : KNEE_CAT_SKIP;
        return after;
    case NAME: return scan_text(p, end, &e->name, repaired);
    case PID: return scan_id(p, end, &e->pid, repaired);
    case TID: return scan_id(p, end, &e->tid, repaired);
    case TS: return scan_time(p, end, &e->start_ns, &e->has_start, &e->bad_time, repaired);
    case DUR: return scan_time(p, end, &e->duration_ns, &e->has_duration, &e->bad_time, repaired);
    case ARGS: return scan_event_args(p, end, e, repaired);
    default: return knee_scan_value(p, end, repaired);
    }
}

/* Is it clear by now that nothing in the event concerns us? */
static inline bool is_of_no_use(const struct knee_event *e, enum key last, bool cpu)
{
    switch (last) {
    case PH: return e->phase != 'X' && e->phase != 'M';
    case CAT: return e->category == KNEE_CAT_SKIP;
    case NAME: return e->category != KNEE_CAT_NONE && e->phase == 'X' && !knee_kineto_wants(e, cpu);
    default: return false;
    }
}

/* The start of an event in the layout that Kineto has always written, "ph": "X", "cat": "...",
 * "name":
 * "...", in one go. Returns what follows it, or p when it looks otherwise. */
static inline const char *scan_usual_start(const char *p, struct knee_event *e)
{
    static const char start[] = "\"ph\": \"X\", \"cat\": \"", name[] = "\", \"name\": \"";
    if (memcmp(p, start, sizeof start - 1) != 0)
        return p;
    const char *cat = p + sizeof start - 1, *close = knee_scan_quote(cat);
    if (memcmp(close, name, sizeof name - 1) != 0)
        return p;
    const char *text = close + sizeof name - 1, *text_end = knee_scan_quote(text);
    if (text_end[0] != '"' || text_end[1] != ',')
        return p;
    e->phase = 'X';
    e->category = category_of((struct knee_slice){cat, (size_t)(close - cat)});
    e->name = (struct knee_slice){text, (size_t)(text_end - text)};
    return text_end + 1;
}

/* The event at p (its opening brace); returns what follows it. *commas counts missing ones. */
static const char *scan_event(const char *p, const char *end, struct knee_event *e, bool cpu,
                              uint64_t *repaired, uint64_t *commas)
{
    bool comma = true; /* or the opening brace */
    memset(e, 0, offsetof(struct knee_event, args));
    p = scan_usual_start(knee_scan_space(p + 1), e);
    if (e->phase) {
        comma = false;
        if (p >= end)
            return NULL;
        if (e->category == KNEE_CAT_SKIP || !knee_kineto_wants(e, cpu)) {
            e->category = KNEE_CAT_SKIP;
            return knee_scan_rest(p, end, 1, repaired);
        }
    }
    for (;;) {
        p = knee_scan_space(p);
        if (*p == ',') {
            comma = true;
            p = knee_scan_space(p + 1);
        }
        if (p >= end)
            return NULL;
        if (*p == '}')
            return p + 1;
        if (*p != '"')
            return KNEE_SCAN_BAD;
        *commas += !comma;
        comma = false;
        enum key key = key_of(p + 1);
        const char *close = p + 1 + key_length[key];
        if (key == OTHER_KEY) {
            close = knee_scan_string(p + 1, end, KNEE_STRING_KEY, repaired);
            if (!close)
                return NULL;
        }
        p = knee_scan_space(close + 1);
        if (*p != ':')
            return p < end ? KNEE_SCAN_BAD : NULL;
        p = scan_member(key, knee_scan_space(p + 1), end, e, repaired);
        if (!p || p == KNEE_SCAN_BAD)
            return p;
        if (is_of_no_use(e, key, cpu)) {
            e->category = KNEE_CAT_SKIP;
            return knee_scan_rest(p, end, 1, repaired);
        }
    }
}

/* ---- After damage ---- */

/* Does an event start at p? 1 yes, 0 no, -1 the window ends too early to tell. */
static int starts_event(const struct scanner *s, const char *p, const char *end)
{
    static const char *const keys[] = {"ph", "name", "cat", "pid", "ts"};
    if (*p != '{')
        return 0;
    p = knee_scan_space(p + 1);
    if (p + 16 > end)
        return -1;
    if (*p++ != '"')
        return 0;
    if (s->first_key.length)
        return memcmp(p, s->first_key.data, s->first_key.length) == 0 &&
               p[s->first_key.length] == '"';
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (memcmp(p, keys[i], strlen(keys[i])) == 0 && p[strlen(keys[i])] == '"')
            return 1;
    return 0;
}

/* Moves the window to the next start of an event. False: there is none. */
static bool resynchronise(struct scanner *s)
{
    struct window *w = &s->window;
    for (;;) {
        const char *p = w->p;
        for (; p < w->end; p++) {
            p = memchr(p, '{', (size_t)(w->end - p));
            if (!p) {
                p = w->end;
                break;
            }
            int starts = starts_event(s, p, w->end);
            if (starts > 0) {
                w->p = p;
                return true;
            }
            if (starts < 0 && !w->at_end)
                break;
        }
        w->p = p;
        if (!refill(w))
            return false;
    }
}

/* A mended string may have swallowed the start of the next event. */
static bool swallowed_event(const struct scanner *s, const char *p, const char *end)
{
    for (p++; (p = memchr(p, '{', (size_t)(end - p))); p++)
        if (starts_event(s, p, end) > 0)
            return true;
    return false;
}

/* ---- Events, members, documents ---- */

static void remember_first_key(struct scanner *s, const char *event, const char *end)
{
    const char *p = knee_scan_space(event + 1);
    size_t length = 0;
    if (s->first_key.length || p >= end || *p != '"')
        return;
    for (p++; p + length < end && p[length] != '"' && length < sizeof s->first_key_text - 1;)
        length++;
    memcpy(s->first_key_text, p, length);
    s->first_key = (struct knee_slice){s->first_key_text, length};
}

static void take_event(struct scanner *s, struct knee_event *e, const char *start)
{
    static const struct knee_event_args no_args = {.stream = -1,
                                                   .correlation = KNEE_NO_CORRELATION,
                                                   .in_elements = -1,
                                                   .out_elements = -1,
                                                   .group_size = -1,
                                                   .sequence = -1};
    uint64_t ignored = 0;
    if (e->category == KNEE_CAT_SKIP) {
        s->trace->events++;
        return;
    }
    if (e->raw_args.data && *e->raw_args.data == '{' && knee_event_wants_args(e))
        scan_args(e->raw_args.data + 1, s->window.end, e, &ignored);
    else if (!e->has_args)
        e->args = no_args;
    uint64_t negative = s->sink.negative;
    bool good = e->category == KNEE_CAT_NONE || e->phase == 'M' ? knee_xprof_event(&s->sink, e)
                                                                : knee_kineto_event(&s->sink, e);
    if (!good)
        lose(s, KNEE_LOSS_TIME, start);
    if (s->sink.negative > negative)
        lose(s, KNEE_REPAIR_DURATION, start);
    s->trace->events++;
}

/* Reads the event at the window's start. False: the file ends. *comma: the next one needs none. */
static bool read_event(struct scanner *s, bool *comma)
{
    struct window *w = &s->window;
    struct knee_event event;
    for (;;) {
        uint64_t repaired = 0, commas = 0;
        const char *start = w->p;
        const char *after =
            scan_event(start, w->end, &event, s->sink.options->cpu, &repaired, &commas);
        if (!after) {
            if (refill(w))
                continue;
            if (w->at_end || w->no_memory) {
                lose(s, w->cancelled ? KNEE_LOSS_INTERRUPTED : KNEE_LOSS_TRUNCATED, w->p);
                w->p = w->end;
                return false;
            }
            lose(s, KNEE_LOSS_OVERLONG, w->p);
            w->p++;
            *comma = true;
            return resynchronise(s);
        }
        if (after == KNEE_SCAN_BAD || (repaired && swallowed_event(s, start, after))) {
            lose(s, KNEE_LOSS_EVENT, start);
            w->p++;
            *comma = true;
            return resynchronise(s);
        }
        if (repaired)
            lose(s, KNEE_REPAIR_STRING, start);
        if (commas)
            lose(s, KNEE_REPAIR_COMMA, start);
        if (event.phase)
            remember_first_key(s, start, w->end);
        take_event(s, &event, start);
        w->p = after;
        return true;
    }
}

/* The events of an array whose bracket has been passed. True: the array was closed. */
static bool read_events(struct scanner *s)
{
    bool comma = true;
    for (;;) {
        char next = peek(&s->window);
        if (next == '{') {
            if (!comma)
                lose(s, KNEE_REPAIR_COMMA, s->window.p);
            comma = false;
            if (!read_event(s, &comma))
                return false;
        } else if (next == ',') {
            comma = true;
            s->window.p++;
        } else if (next == ']') {
            s->window.p++;
            return true;
        } else if (next == 0) {
            return false;
        } else {
            lose(s, KNEE_LOSS_EVENT, s->window.p);
            s->window.p++;
            if (!resynchronise(s))
                return false;
            comma = true;
        }
    }
}

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
    const char *end = object.data + object.length;
    for (const char *p = object.data; p + length + 3 < end; p++) {
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
    const char *end = object.data + object.length, *p = member_of(object, key);
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
    const char *end = object.data + object.length, *p = member_of(object, key);
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
        out[used++] = (unsigned char)value.data[i] < 0x20 ? '?' : value.data[i];
    out[used] = '\0';
}

static void take_metadata(struct knee_trace *trace, struct knee_slice key, struct knee_slice value)
{
    if (SLICE_IS(key, "distributedInfo")) {
        int64_t rank = number_in(value, "rank");
        int64_t world = number_in(value, "world_size");
        trace->rank = rank >= 0 ? rank : trace->rank;
        trace->world_size = world > 0 ? world : trace->world_size;
        text_in(value, "backend", trace->backend, sizeof trace->backend);
    } else if (SLICE_IS(key, "baseTimeNanoseconds")) {
        int64_t base = 0;
        const char *after = knee_scan_int(value.data, value.data + value.length + 1, &base);
        if (after && after != KNEE_SCAN_BAD && base >= 0 && base <= 4000000000000000000)
            trace->base_ns = base;
    } else if (SLICE_IS(key, "deviceProperties")) {
        text_in(value, "name", trace->gpu_name, sizeof trace->gpu_name);
    } else if (SLICE_IS(key, "host_name") || SLICE_IS(key, "hostname")) {
        copy_text(value, trace->host, sizeof trace->host);
    }
}

enum outcome { CLOSED, ENDED, DAMAGED };

/* One "key": value of the outer object, other than the events. */
static enum outcome read_member(struct scanner *s, bool *events)
{
    struct window *w = &s->window;
    uint64_t repaired = 0;
    for (;;) {
        const char *key = w->p + 1;
        const char *close = knee_scan_string(key, w->end, KNEE_STRING_KEY, &repaired);
        const char *p = close ? knee_scan_space(close + 1) : NULL;
        if (p && p < w->end && *p != ':')
            return DAMAGED;
        if (p && p < w->end)
            p = knee_scan_space(p + 1);
        if (p && p < w->end) {
            struct knee_slice name = {key, (size_t)(close - key)};
            if (SLICE_IS(name, "traceEvents") && *p == '[') {
                *events = true;
                w->p = p + 1;
                return CLOSED;
            }
            const char *after = knee_scan_value(p, w->end, &repaired);
            if (after == KNEE_SCAN_BAD)
                return DAMAGED;
            if (after) {
                take_metadata(s->trace, name, (struct knee_slice){p, (size_t)(after - p)});
                w->p = after;
                return CLOSED;
            }
        }
        if (!refill(w))
            return w->at_end ? ENDED : DAMAGED;
    }
}

static enum outcome read_object(struct scanner *s)
{
    for (;;) {
        bool events = false;
        char next = peek(&s->window);
        if (next == ',') {
            s->window.p++;
        } else if (next == '}') {
            s->window.p++;
            return CLOSED;
        } else if (next == 0) {
            return ENDED;
        } else if (next != '"') {
            return DAMAGED;
        } else {
            enum outcome outcome = read_member(s, &events);
            if (outcome != CLOSED)
                return outcome;
            if (events && !read_events(s))
                return ENDED;
        }
    }
}

/* Does the outer brace at p belong to an event, as in a file of one event per line? */
static bool bare_event(struct scanner *s)
{
    if (s->window.end - s->window.p < 64)
        refill(&s->window);
    return starts_event(s, s->window.p, s->window.end) > 0;
}

static void read_documents(struct scanner *s)
{
    struct window *w = &s->window;
    bool clean_end = true; /* ended where a document may end */
    for (int documents = 0;; documents++) {
        char next = peek(w);
        if (next == 0)
            break;
        if (documents > 0 && (next == '{' || next == '['))
            lose(s, KNEE_REPAIR_DOCUMENT, w->p);
        enum outcome outcome = DAMAGED;
        if (next == '[' || (next == '{' && bare_event(s))) {
            w->p += next == '[';
            /* The format allows an array without its closing bracket; a cut event is counted there.
             */
            read_events(s);
            outcome = CLOSED;
        } else if (next == '{') {
            w->p++;
            outcome = read_object(s);
        }
        clean_end = outcome == CLOSED;
        if (outcome != DAMAGED)
            continue;
        lose(s, KNEE_LOSS_EVENT, w->p);
        w->p++;
        if (!resynchronise(s))
            break;
        clean_end = !read_events(s) ? false : true;
        if (clean_end)
            clean_end = read_object(s) == CLOSED;
    }
    if (!clean_end && !s->trace->losses[KNEE_LOSS_TRUNCATED].count && !w->cancelled)
        lose(s, KNEE_LOSS_TRUNCATED, w->p);
}

/* ---- The file as a whole ---- */

static void skip_byte_order_mark(struct window *w)
{
    refill(w);
    if (w->end - w->p >= 3 && memcmp(w->p, "\xef\xbb\xbf", 3) == 0)
        w->p += 3;
}

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

static knee_status scan_file(struct scanner *s, struct knee_err *err)
{
    struct window *w = &s->window;
    struct knee_trace *trace = s->trace;
    skip_byte_order_mark(w);
    const char *look = look_of(w->p, (size_t)(w->end - w->p));
    read_documents(s);
    trace->bytes = position(w, w->end);
    const char *trouble = knee_gunzip_trouble(w->gunzip);
    if (trouble)
        trace->losses[KNEE_LOSS_GZIP] = (struct knee_loss){1, trace->bytes};
    if (w->read_failed)
        trace->losses[KNEE_LOSS_READ] = (struct knee_loss){1, trace->bytes};
    if (w->cancelled)
        trace->losses[KNEE_LOSS_INTERRUPTED] = (struct knee_loss){1, trace->bytes};
    if (w->no_memory)
        return knee_fail(err, KNEE_SYSTEM, trace->file, "out of memory");
    knee_status status = knee_builder_finish(s->sink.builder, trace, err);
    if (status)
        return status;
    trace->format = s->sink.xprof_spans ? "xprof" : s->sink.options->cpu ? "cpu" : "kineto";
    if (s->sink.xprof_spans && trace->events >= 1000000)
        trace->losses[KNEE_LOSS_CAPPED] = (struct knee_loss){1, trace->bytes};
    if (trace->events)
        return KNEE_OK;
    knee_fail(err, KNEE_INPUT, trace->file, "not a trace: %s",
              trouble && trace->bytes == 0 ? trouble : look);
    knee_hint(err, "knee reads Kineto and XProf JSON (also .gz) and Nsight Systems sqlite exports");
    return KNEE_INPUT;
}

static char *copy_string(const char *text, const struct knee_alloc *alloc)
{
    size_t size = strlen(text) + 1;
    char *copy = knee_resize(alloc, NULL, size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

knee_status knee_trace_read(struct knee_reader reader, const char *file,
                            const struct knee_trace_options *options,
                            const struct knee_alloc *alloc, struct knee_trace *out,
                            struct knee_err *err)
{
    static const struct knee_trace_options plain = {0};
    struct knee_trace trace = {.rank = -1, .world_size = -1, .alloc = alloc};
    struct scanner s = {
        .window = {.alloc = alloc, .capacity = WINDOW, .cancel = options ? options->cancel : NULL},
        .sink = {.options = options ? options : &plain, .trace = &trace},
        .trace = &trace,
    };
    trace.file = copy_string(file, alloc);
    s.window.gunzip = knee_gunzip_new(reader, alloc);
    s.window.buffer = knee_resize(alloc, NULL, WINDOW + KNEE_SCAN_PAD);
    s.sink.builder = knee_builder_new(s.sink.options, alloc);
    s.window.p = s.window.end = s.window.buffer;
    if (s.window.buffer)
        memset(s.window.buffer, '"', KNEE_SCAN_PAD);
    knee_status status;
    if (trace.file && s.window.gunzip && s.window.buffer && s.sink.builder)
        status = scan_file(&s, err);
    else
        status = knee_fail(err, KNEE_SYSTEM, file, "out of memory");
    if (s.window.buffer)
        knee_resize(alloc, s.window.buffer, 0);
    knee_gunzip_free(s.window.gunzip);
    knee_builder_free(s.sink.builder);
    knee_xprof_free(s.sink.xprof, alloc);
    trace.cpu_comm = s.sink.cpu_comm;
    if (trace.rank < 0)
        trace.rank = knee_rank_from_name(file);
    if (status)
        knee_trace_release(&trace);
    else
        *out = trace;
    return status;
}

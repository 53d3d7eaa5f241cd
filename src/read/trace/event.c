/* SPDX-License-Identifier: MIT */
/*
 * One event of chrome-trace JSON, read from the window in one pass, without building a document.
 * Keys come in any order; as soon as category and name show that an event is of no use, the rest of
 * it is stepped over.
 */
#include "read/trace/trace_json.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

static uint64_t text_number(struct knee_slice s)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < s.length; i++)
        hash = (hash ^ (unsigned char)s.at[i]) * 1099511628211u;
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
    while (digits > 0 && text.at[digits - 1] >= '0' && text.at[digits - 1] <= '9')
        digits--;
    *id = (int64_t)(text_number(text) & INT64_MAX);
    if (digits < text.length && text.length - digits < 10 &&
        (digits == 0 || text.at[digits - 1] == ' '))
        knee_scan_int(text.at + digits, end, id);
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

/* The bytes of a word of eight that come first in memory. */
static inline uint64_t first_bytes(size_t count)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return ~(uint64_t)0 << (64 - 8 * count);
#else
    return ((uint64_t)1 << (8 * count)) - 1;
#endif
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
        return load8(text.at) == load8(word) &&
               load8(text.at + text.length - 8) == load8(word + text.length - 8);
    return ((load8(text.at) ^ load8(word)) & first_bytes(text.length)) == 0;
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
        {15, "python_function", KNEE_CAT_PYTHON},
        {19, "privateuse1_runtime", KNEE_CAT_RUNTIME},
    };
    /* First row of each length; rows of one length stand together. */
    static const unsigned char first[20] = {
        [6] = 1, [7] = 5, [8] = 6, [10] = 7, [11] = 10, [12] = 12, [15] = 14, [19] = 17};
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

/* A value as it stands there. */
static const char *scan_raw(const char *p, const char *end, struct knee_slice *out,
                            uint64_t *repaired)
{
    const char *after = knee_scan_value(p, end, repaired);
    if (after && after != KNEE_SCAN_BAD)
        *out = (struct knee_slice){p, (size_t)(after - p)};
    return after;
}

/* One member of args. Switching on the length of the key avoids most comparisons. */
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
        if (SLICE_IS(key, "grid"))
            return scan_raw(p, end, &a->grid, repaired);
        break;
    case 5:
        if (SLICE_IS(key, "dtype"))
            return scan_text(p, end, &a->dtype, repaired);
        if (SLICE_IS(key, "bytes"))
            return scan_number(p, end, &a->bytes, repaired);
        break;
    case 6:
        if (SLICE_IS(key, "stream"))
            return scan_number(p, end, &a->stream, repaired);
        break;
    case 8:
        if (SLICE_IS(key, "Src Rank"))
            return scan_number(p, end, &a->from, repaired);
        if (SLICE_IS(key, "Dst Rank"))
            return scan_number(p, end, &a->to, repaired);
        break;
    case 10:
        if (SLICE_IS(key, "Group size"))
            return scan_number(p, end, &a->group_size, repaired);
        if (SLICE_IS(key, "Input Dims"))
            return scan_raw(p, end, &a->dims, repaired);
        if (SLICE_IS(key, "Input type"))
            return scan_raw(p, end, &a->types, repaired);
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
        if (SLICE_IS(key, "Sequence number"))
            return scan_number(p, end, &a->autograd, repaired);
        if (SLICE_IS(key, "Concrete Inputs"))
            return scan_raw(p, end, &a->inputs, repaired);
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

/* One by one for the same reason as clear_event(). */
void knee_clear_args(struct knee_event_args *a)
{
    const struct knee_slice none = {NULL, 0};
    a->correlation = KNEE_NO_CORRELATION;
    a->collective = none;
    a->dtype = none;
    a->group = none;
    a->description = none;
    a->members = none;
    a->label = none;
    a->dims = none;
    a->types = none;
    a->inputs = none;
    a->grid = none;
    a->stream = a->autograd = a->in_elements = a->out_elements = a->group_size = -1;
    a->sequence = a->from = a->to = a->bytes = -1;
}

/* Nearly all that is wanted of a kernel is its stream and its correlation. */
static inline bool knows_ids(const struct knee_event *e)
{
    return e->args.correlation != KNEE_NO_CORRELATION &&
           (e->category == KNEE_CAT_RUNTIME || e->args.stream >= 0);
}

/* A whole number of at most seven digits with a comma or a line's end behind it; NULL: another. */
static inline const char *scan_usual_number(const char *p, uint32_t *number)
{
    unsigned digits;
    *number = knee_scan_eight(p, &digits);
    p += digits;
    return digits == 0 || digits == 8 || (*p != ',' && *p != '\n') ? NULL : p;
}

/* Keeps how args stood from `start` to their first number and from behind it to the correlation. */
static void remember_args(struct knee_args_alike *alike, const char *start, const char *first,
                          const char *correlation, const struct knee_event_args *a)
{
    struct knee_event_args ids;
    uint32_t number;
    const char *tail = scan_usual_number(first, &number);
    knee_clear_args(&ids);
    ids.stream = a->stream;
    ids.correlation = a->correlation;
    alike->tail = 0;
    if (!tail || tail > correlation || memcmp(&ids, a, sizeof ids) != 0 ||
        (size_t)(correlation - start) > sizeof alike->text)
        return; /* something else stands there that is wanted */
    alike->head = (size_t)(first - start);
    alike->tail = (size_t)(correlation - tail);
    alike->stream = a->stream;
    memcpy(alike->text, start, alike->head);
    memcpy(alike->text + alike->head, tail, alike->tail);
}

/* Args that differ from earlier ones only in the first number and in the correlation. Returns what
 * follows it; NULL: they are not alike. */
static inline const char *scan_alike(const char *p, const char *end, struct knee_event_args *a,
                                     const struct knee_args_alike *alike)
{
    uint32_t number;
    const char *tail = alike->text + alike->head;
    if (!alike->tail || end - p <= (ptrdiff_t)sizeof alike->text ||
        memcmp(p, alike->text, alike->head) != 0 ||
        !(p = scan_usual_number(p + alike->head, &number)) || memcmp(p, tail, alike->tail) != 0 ||
        !(p = scan_usual_number(p + alike->tail, &number)) || number == 0)
        return NULL;
    a->stream = alike->stream;
    a->correlation = number;
    return p;
}

/* Where to look for args alike: calls of one name, kernels of one stream. */
static inline struct knee_args_alike *alike_of(struct knee_event_scan *scan,
                                               const struct knee_event *e)
{
    bool runtime = e->category == KNEE_CAT_RUNTIME;
    return &scan->alike[runtime][(runtime ? e->name.length : (size_t)e->tid) % KNEE_ALIKE];
}

/* The members of args, from after the brace to after the end. */
static const char *scan_args(const char *p, const char *end, struct knee_event *e,
                             struct knee_event_scan *scan)
{
    const char *start = p, *first = NULL;
    bool more = knee_event_wants_more(e);
    for (;;) {
        p = knee_scan_space(p);
        if (p >= end)
            return NULL;
        if (!more && knows_ids(e))
            return knee_scan_rest(p, end, 1, &scan->repaired);
        if (*p == ',')
            p = knee_scan_space(p + 1);
        if (*p == '}')
            return p + 1; /* safe at the end of the buffer: the sentinel is not a brace */
        if (*p != '"')
            return KNEE_SCAN_BAD;
        const char *close = knee_scan_string(p + 1, end, KNEE_STRING_KEY, &scan->repaired);
        if (!close)
            return NULL;
        struct knee_slice key = {p + 1, (size_t)(close - p - 1)};
        p = knee_scan_space(close + 1); /* at the colon */
        const char *value = knee_scan_space(p + 1);
        p = scan_arg(value, end, key, &e->args, &scan->repaired);
        if (!p || p == KNEE_SCAN_BAD)
            return p;
        if (!first && !SLICE_IS(key, "stream"))
            first = value;
        if (KNEE_SCAN_FAST && !more && first && knows_ids(e) && SLICE_IS(key, "correlation"))
            remember_args(alike_of(scan, e), start, first, value, &e->args);
    }
}

/* Takes args that are alike: where their rest begins, or NULL. */
static const char *scan_usual_args(const char *p, const char *end, struct knee_event *e,
                                   struct knee_event_scan *scan)
{
    e->has_args = true;
    knee_clear_args(&e->args);
    if (!KNEE_SCAN_FAST || knee_event_wants_more(e))
        return NULL;
    return scan_alike(p, end, &e->args, alike_of(scan, e));
}

const char *knee_scan_args(const char *p, const char *end, struct knee_event *e,
                           struct knee_event_scan *scan)
{
    const char *rest = scan_usual_args(p, end, e, scan);
    return rest ? knee_scan_rest(rest, end, 1, &scan->repaired) : scan_args(p, end, e, scan);
}

/* Args that are wanted are taken apart, others are stepped over; when the category is not known yet
 * they are kept for later. */
static const char *scan_event_args(const char *p, const char *end, struct knee_event *e,
                                   struct knee_event_scan *scan)
{
    bool known = e->category != KNEE_CAT_NONE || e->phase == 'M';
    if (*p == '{' && known && knee_event_wants_args(e))
        return knee_scan_args(p + 1, end, e, scan);
    const char *after = knee_scan_value(p, end, &scan->repaired);
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
                                      struct knee_event *e, struct knee_event_scan *scan)
{
    uint64_t *repaired = &scan->repaired;
    struct knee_slice text = {NULL, 0};
    const char *after;
    switch (key) {
    case PH:
        if (p[0] == '"' && p[2] == '"') { /* nearly always */
            e->phase = p[1];
            return p + 3;
        }
        after = scan_text(p, end, &text, repaired);
        e->phase = text.length == 1 ? text.at[0] : '?';
        return after;
    case CAT:
        after = scan_text(p, end, &text, repaired);
        e->category = text.length ? category_of(text) : KNEE_CAT_SKIP;
        e->annotates = text.length && *text.at == 'u';
        return after;
    case NAME: return scan_text(p, end, &e->name, repaired);
    case PID: return scan_id(p, end, &e->pid, repaired);
    case TID: return scan_id(p, end, &e->tid, repaired);
    case TS: return scan_time(p, end, &e->start_ns, &e->has_start, &e->bad_time, repaired);
    case DUR: return scan_time(p, end, &e->duration_ns, &e->has_duration, &e->bad_time, repaired);
    case ARGS: return scan_event_args(p, end, e, scan);
    default: return knee_scan_value(p, end, repaired);
    }
}

/* Is it clear by now that nothing in the event concerns us? */
static inline bool is_of_no_use(struct knee_event *e, enum key last, unsigned keep)
{
    switch (last) {
    case PH: return e->phase != 'X' && e->phase != 'M';
    case CAT: return e->category == KNEE_CAT_SKIP;
    case NAME:
        return e->category != KNEE_CAT_NONE && e->phase == 'X' && !knee_kineto_wants(e, keep);
    default: return false;
    }
}

/* p behind `text`, or NULL: it does not stand there. */
#define AFTER(p, text)                                                                             \
    (memcmp((p), (text), sizeof(text) - 1) == 0 ? (p) + sizeof(text) - 1 : (const char *)NULL)

/* The category at p and what stands between it and the name, in the layout that Kineto has always
 * written; NULL: it is another layout. The commonest are compared as a whole. */
static inline const char *scan_usual_category(const char *p, enum knee_category *category)
{
    const char *name;
#define USUAL(text, what)                                                                          \
    if (KNEE_SCAN_FAST && (name = AFTER(p, text "\", \"name\": \""))) {                            \
        *category = (what);                                                                        \
        return name;                                                                               \
    }
    USUAL("cpu_op", KNEE_CAT_HOST)
    USUAL("kernel", KNEE_CAT_KERNEL)
    USUAL("cuda_runtime", KNEE_CAT_RUNTIME)
    USUAL("python_function", KNEE_CAT_PYTHON)
#undef USUAL
    const char *close = knee_scan_quote(p);
    *category = category_of((struct knee_slice){p, (size_t)(close - p)});
    return AFTER(close, "\", \"name\": \"");
}

/* The start of an event in that layout, "ph": "X", "cat": "...", "name": "...". Returns what
 * follows it, or p when it looks otherwise. */
static inline const char *scan_usual_start(const char *p, struct knee_event *e)
{
    enum knee_category category = KNEE_CAT_SKIP;
    const char *cat = AFTER(p, "\"ph\": \"X\", \"cat\": \"");
    const char *text = cat ? scan_usual_category(cat, &category) : NULL;
    const char *text_end = text ? knee_scan_quote(text) : NULL;
    if (!text_end || text_end[0] != '"' || text_end[1] != ',')
        return p;
    e->phase = 'X';
    e->category = category;
    e->annotates = *cat == 'u';
    e->name = (struct knee_slice){text, (size_t)(text_end - text)};
    return text_end + 1;
}

static inline bool is_good(const char *after)
{
    return after && after != KNEE_SCAN_BAD;
}

/* Process and thread behind the name, in the same layout; NULL: it is another. */
static const char *scan_usual_ids(const char *p, const char *end, struct knee_event *e,
                                  struct knee_event_ids *ids)
{
    const char *q = AFTER(p, ", \"pid\": ");
    if (!q || !is_good(q = knee_scan_int(q, end, &e->pid)) || !(q = AFTER(q, ", \"tid\": ")) ||
        !is_good(q = knee_scan_int(q, end, &e->tid)) || !(q = AFTER(q, ",\n    \"ts\": ")))
        return NULL;
    size_t length = (size_t)(q - p);
    if (length <= sizeof ids->text) {
        memcpy(ids->text, p, length);
        ids->length = length;
        ids->pid = e->pid;
        ids->tid = e->tid;
    }
    return q;
}

#define LATEST_US ((uint64_t)1 << 51) /* the year 2041; later times are read the general way */

/* Microseconds as Kineto writes them, with three decimals or none, and a comma or the line's end
 * behind them; NULL: it looks otherwise. The sentinel is neither. */
static inline const char *scan_usual_us(const char *p, int64_t *ns)
{
    unsigned count, more = 0;
    uint64_t whole = knee_scan_eight(p, &count);
    p += count;
    if (count == 8) {
        uint32_t rest = knee_scan_eight(p, &more);
        whole = whole * knee_scan_powers[more] + rest;
        p += more;
    }
    uint32_t decimals = load4(p) ^ KEY4('.', '0', '0', '0'); /* a byte each */
    bool exact = !(((decimals + 0x76767600u) | decimals) & 0x808080ffu);
    *ns = (int64_t)(whole * 1000);
    if (exact)
        *ns += (decimals >> 8 & 0xff) * 100 + (decimals >> 16 & 0xff) * 10 + (decimals >> 24);
    p += exact ? 4 : 0;
    return count == 0 || whole > LATEST_US || (*p != ',' && *p != '\n') ? NULL : p;
}

/* What follows the name in the same layout: ids and times. Returns what is behind them, or p. */
static inline const char *scan_usual_times(const char *p, const char *end, struct knee_event *e,
                                           struct knee_event_ids *ids)
{
    const char *q = p + ids->length;
    if (ids->length && memcmp(p, ids->text, ids->length) == 0) {
        e->pid = ids->pid;
        e->tid = ids->tid;
    } else if (!(q = scan_usual_ids(p, end, e, ids))) {
        return p;
    }
    if (!(q = scan_usual_us(q, &e->start_ns)) || !(q = AFTER(q, ", \"dur\": ")) ||
        !(q = scan_usual_us(q, &e->duration_ns)))
        return p; /* members that were taken are taken again */
    e->has_start = e->has_duration = true;
    return q;
}

/* All but args, one by one: gcc clears a struct of this size by "rep stos", which takes as long as
 * all the rest of an event that is stepped over. */
static inline void clear_event(struct knee_event *e)
{
    const struct knee_slice none = {NULL, 0};
    e->phase = '\0';
    e->category = KNEE_CAT_NONE;
    e->has_start = e->has_duration = e->bad_time = e->has_args = e->annotates = e->named = false;
    e->seen = 0;
    e->host_kind = 0;
    e->name = none; /* each by itself: of a chain gcc reads back what it wrote, and waits for it */
    e->raw_args = none;
    e->pid = e->tid = e->start_ns = e->duration_ns = 0;
}

/* What follows the event, found by its lines; NULL: not so. */
static inline const char *end_by_lines(const char *p, const char *end,
                                       const struct knee_event_scan *scan)
{
    return KNEE_SCAN_FAST && scan->framed ? knee_scan_event_end(p, end, scan->wide) : NULL;
}

/* Remembers how far the event was looked at. */
static __attribute__((noinline)) const char *bad_at(struct knee_event *e, const char *p)
{
    e->reached = p;
    return KNEE_SCAN_BAD;
}

const char *knee_scan_event(const char *p, const char *end, struct knee_event *e,
                            struct knee_event_scan *scan)
{
    bool comma = true; /* or the opening brace */
    unsigned keep = scan->keep;
    uint64_t *repaired = &scan->repaired;
    clear_event(e);
    e->keep = keep;
    scan->repaired = scan->commas = 0;
    p = memcmp(p + 1, "\n    \"", 6) == 0 ? p + 6 : knee_scan_space(p + 1);
    p = scan_usual_start(p, e);
    if (e->phase) {
        comma = false;
        if (p >= end)
            return NULL;
        if (e->category == KNEE_CAT_SKIP || !knee_kineto_wants(e, keep)) {
            e->category = KNEE_CAT_SKIP;
            const char *after = end_by_lines(p, end, scan);
            return after ? after : knee_scan_rest(p, end, 1, repaired);
        }
        p = scan_usual_times(p, end, e, &scan->ids[e->category == KNEE_CAT_KERNEL]);
        const char *args = AFTER(p, ",\n    \"args\": {");
        if (args && knee_event_wants_args(e)) {
            const char *rest = scan_usual_args(args, end, e, scan), *after;
            if (rest && e->has_duration && (after = end_by_lines(rest, end, scan)))
                return after;
            p = rest ? knee_scan_rest(rest, end, 1, repaired) : scan_args(args, end, e, scan);
            if (!is_good(p))
                return p ? bad_at(e, args) : NULL;
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
            return bad_at(e, p);
        scan->commas += !comma;
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
            return p < end ? bad_at(e, p) : NULL;
        p = scan_member(key, knee_scan_space(p + 1), end, e, scan);
        if (!p || p == KNEE_SCAN_BAD)
            return p ? bad_at(e, close) : NULL;
        if (is_of_no_use(e, key, keep)) {
            e->category = KNEE_CAT_SKIP;
            return knee_scan_rest(p, end, 1, repaired);
        }
    }
}

/* SPDX-License-Identifier: MIT */
/* A line is a flat JSON object; which member goes where is a table. Integers are read digit by
 * digit: nanoseconds since 1970 do not fit into a double. */
#include "read/live/live_read.h"

#include "base/error.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

enum kind { INTEGER, NUMBER, HEX, WHOLE, TEXT };

struct field {
    const char *name;
    enum kind kind;
    size_t offset, size;
};

#define FIELD(type, member, kind)                                                                  \
    {                                                                                              \
#member, kind, offsetof(struct type, member), sizeof(((struct type *)0)->member)           \
    }
#define LABEL(name, label)                                                                         \
    {                                                                                              \
        name, NUMBER, offsetof(struct knee_live_step, label_s) + sizeof(double) * (label),         \
            sizeof(double)                                                                         \
    }

static const struct field about_fields[] = {
    FIELD(knee_live_about, host, TEXT),
    FIELD(knee_live_about, source, TEXT),
    FIELD(knee_live_about, nccl, TEXT),
    FIELD(knee_live_about, gpu, TEXT),
    FIELD(knee_live_about, gpu_uuid, TEXT),
    FIELD(knee_live_about, agent, TEXT),
    FIELD(knee_live_about, cupti, TEXT),
    FIELD(knee_live_about, why, TEXT),
    FIELD(knee_live_about, pid, INTEGER),
    FIELD(knee_live_about, rank, INTEGER),
    FIELD(knee_live_about, world, INTEGER),
    FIELD(knee_live_about, local_rank, INTEGER),
    FIELD(knee_live_about, profiler_api, INTEGER),
    FIELD(knee_live_about, start_ns, INTEGER),
    FIELD(knee_live_about, kernel_times, INTEGER),
};
static const struct field step_fields[] = {
    FIELD(knee_live_step, t_ns, INTEGER),
    FIELD(knee_live_step, step, INTEGER),
    FIELD(knee_live_step, steps, INTEGER),
    FIELD(knee_live_step, calls, INTEGER),
    FIELD(knee_live_step, bytes, INTEGER),
    FIELD(knee_live_step, seq, INTEGER),
    FIELD(knee_live_step, kernels, INTEGER),
    FIELD(knee_live_step, lost, INTEGER),
    FIELD(knee_live_step, sm_mhz, INTEGER),
    FIELD(knee_live_step, temp_c, INTEGER),
    FIELD(knee_live_step, every, INTEGER),
    FIELD(knee_live_step, left_out, INTEGER),
    FIELD(knee_live_step, sampled, INTEGER),
    FIELD(knee_live_step, comm, HEX),
    FIELD(knee_live_step, throttle, WHOLE),
    FIELD(knee_live_step, step_s, NUMBER),
    FIELD(knee_live_step, comm_s, NUMBER),
    FIELD(knee_live_step, window_s, NUMBER),
    FIELD(knee_live_step, gpu_s, NUMBER),
    FIELD(knee_live_step, energy_j, NUMBER),
    FIELD(knee_live_step, power_w, NUMBER),
    FIELD(knee_live_step, overhead, NUMBER),
    FIELD(knee_live_step, cpu, NUMBER),
    FIELD(knee_live_step, trace, TEXT),
    LABEL("compute_s", KNEE_COMPUTE),
    LABEL("transfer_s", KNEE_TRANSFER),
    LABEL("wait_s", KNEE_WAIT),
    LABEL("copy_s", KNEE_COPY),
    LABEL("starved_s", KNEE_STARVED),
    LABEL("host_s", KNEE_HOST),
    LABEL("idle_s", KNEE_IDLE),
};
static const struct field call_fields[] = {
    FIELD(knee_live_call, comm, HEX),         FIELD(knee_live_call, seq, INTEGER),
    FIELD(knee_live_call, sn, INTEGER),       FIELD(knee_live_call, bytes, INTEGER),
    FIELD(knee_live_call, start_ns, INTEGER), FIELD(knee_live_call, dur_ns, INTEGER),
    FIELD(knee_live_call, gpu_ns, INTEGER),   FIELD(knee_live_call, step, INTEGER),
    FIELD(knee_live_call, channels, INTEGER), FIELD(knee_live_call, rank, INTEGER),
    FIELD(knee_live_call, n, INTEGER),        FIELD(knee_live_call, peer, INTEGER),
    FIELD(knee_live_call, op, TEXT),          FIELD(knee_live_call, algo, TEXT),
    FIELD(knee_live_call, proto, TEXT),
};

struct table {
    const struct field *fields;
    size_t count, size;
};
#define TABLE(fields, type)                                                                        \
    {                                                                                              \
        fields, sizeof(fields) / sizeof *(fields), sizeof(struct type)                             \
    }
static const struct table about_table = TABLE(about_fields, knee_live_about);
static const struct table step_table = TABLE(step_fields, knee_live_step);
static const struct table call_table = TABLE(call_fields, knee_live_call);

static void clear(const struct table *t, void *row)
{
    memset(row, 0, t->size);
    for (size_t i = 0; i < t->count; i++) {
        char *at = (char *)row + t->fields[i].offset;
        if (t->fields[i].kind == INTEGER)
            memcpy(at, &(int64_t){-1}, sizeof(int64_t));
        else if (t->fields[i].kind == NUMBER)
            memcpy(at, &(double){NAN}, sizeof(double));
    }
}

/* ---- One line ---- */

struct scan {
    const char *at, *end;
};

static void blanks(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r' || *s->at == '\n'))
        s->at++;
}

static bool take(struct scan *s, char c)
{
    blanks(s);
    if (s->at >= s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

/* A string; what is escaped keeps the character after the backslash. */
static bool take_string(struct scan *s, char *out, size_t size)
{
    size_t length = 0;
    if (!take(s, '"'))
        return false;
    for (; s->at < s->end && *s->at != '"'; s->at++) {
        if (*s->at == '\\' && ++s->at == s->end)
            return false;
        if (length + 1 < size)
            out[length++] = *s->at;
    }
    out[length] = '\0';
    return take(s, '"');
}

/* A number, true or false, up to what may follow it. */
static bool take_plain(struct scan *s, struct knee_slice *out)
{
    blanks(s);
    out->at = s->at;
    while (s->at < s->end && *s->at != ',' && *s->at != '}' && *s->at != ']' && *s->at != ' ')
        s->at++;
    out->length = (size_t)(s->at - out->at);
    return out->length > 0;
}

static bool digits(struct knee_slice text, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.at[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : 99;
        if (digit >= base || value > (UINT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    *out = value;
    return text.length > 0;
}

static bool integer_of(struct knee_slice text, int64_t *out)
{
    uint64_t value = 0;
    bool negative = text.length && *text.at == '-';
    if (knee_slice_is(text, "true") || knee_slice_is(text, "false")) {
        *out = *text.at == 't';
        return true;
    }
    if (!digits(knee_slice_from(text, negative), 10, &value) || value > INT64_MAX)
        return false;
    *out = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool set(const struct field *f, char *at, const char *text, struct knee_slice plain)
{
    uint64_t whole = 0;
    int64_t integer = 0;
    double number = 0;
    switch (f->kind) {
    case TEXT: knee_slice_copy(knee_slice_of(text), at, f->size); return true;
    case HEX:
        if (!digits(knee_slice_of(text), 16, &whole))
            return false;
        memcpy(at, &whole, sizeof whole);
        return true;
    case WHOLE:
        if (!digits(plain, 10, &whole))
            return false;
        memcpy(at, &whole, sizeof whole);
        return true;
    case INTEGER:
        if (!integer_of(plain, &integer))
            return false;
        memcpy(at, &integer, sizeof integer);
        return true;
    default:
        if (!knee_slice_number(plain, &number))
            return false;
        memcpy(at, &number, sizeof number);
        return true;
    }
}

/* Unknown members may be strings, plain values or arrays of those. */
static bool take_value(struct scan *s, const struct field *f, char *row)
{
    char text[256] = "";
    struct knee_slice plain = {"", 0};
    blanks(s);
    if (s->at < s->end && *s->at == '[') {
        while (s->at < s->end && *s->at != ']')
            s->at++;
        return take(s, ']');
    }
    bool is_text = s->at < s->end && *s->at == '"';
    if (is_text ? !take_string(s, text, sizeof text) : !take_plain(s, &plain))
        return false;
    if (!f)
        return true;
    bool wants_text = f->kind == TEXT || f->kind == HEX;
    return wants_text == is_text && set(f, row + f->offset, text, plain);
}

static bool read_object(const struct table *t, struct knee_slice line, void *row)
{
    struct scan s = {line.at, line.at + line.length};
    char name[32];
    clear(t, row);
    if (!take(&s, '{'))
        return false;
    do {
        const struct field *f = NULL;
        if (!take_string(&s, name, sizeof name) || !take(&s, ':'))
            return false;
        for (size_t i = 0; i < t->count && !f; i++)
            f = strcmp(t->fields[i].name, name) == 0 ? &t->fields[i] : NULL;
        if (!take_value(&s, f, row))
            return false;
    } while (take(&s, ','));
    return take(&s, '}');
}

/* ---- Files ---- */

void knee_live_init(struct knee_live_rank *rank, const struct knee_alloc *alloc)
{
    memset(rank, 0, sizeof *rank);
    clear(&about_table, &rank->about);
    rank->alloc = alloc;
}

knee_status knee_live_read_about(struct knee_live_rank *rank, const char *text, size_t length,
                                 struct knee_err *err)
{
    struct knee_live_about about;
    struct knee_slice whole = {text, length};
    if (!knee_slice_has(whole, "\"knee.live/1\"") || !read_object(&about_table, whole, &about))
        return knee_fail_hint(err, KNEE_INPUT, "",
                              "about.json of a folder HOST-rRANK-PID has the schema knee.live/1",
                              "this is not what the live agent writes");
    rank->about = about;
    return KNEE_OK;
}

struct rows {
    void *rows;
    size_t *count, *room;
};

static knee_status read_lines(struct knee_live_rank *rank, const struct table *t,
                              struct knee_slice all, struct rows *out, struct knee_err *err)
{
    const char *text = all.at;
    size_t length = all.length;
    for (size_t at = 0; at < length;) {
        const char *newline = memchr(text + at, '\n', length - at);
        if (!newline) {
            rank->damaged++; /* the writer was killed in it */
            break;
        }
        struct knee_slice line = {text + at, (size_t)(newline - text) - at};
        at += line.length + 1;
        if (!knee_room(rank->alloc, &out->rows, out->room, *out->count + 1, t->size))
            return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
        if (read_object(t, line, (char *)out->rows + *out->count * t->size))
            (*out->count)++;
        else
            rank->damaged++;
    }
    return KNEE_OK;
}

knee_status knee_live_read_steps(struct knee_live_rank *rank, const char *text, size_t length,
                                 struct knee_err *err)
{
    struct rows rows = {rank->steps, &rank->step_count, &rank->step_room};
    knee_status status =
        read_lines(rank, &step_table, (struct knee_slice){text, length}, &rows, err);
    rank->steps = rows.rows;
    return status;
}

knee_status knee_live_read_calls(struct knee_live_rank *rank, const char *text, size_t length,
                                 struct knee_err *err)
{
    struct rows rows = {rank->calls, &rank->call_count, &rank->call_room};
    size_t before = rank->call_count;
    knee_status status =
        read_lines(rank, &call_table, (struct knee_slice){text, length}, &rows, err);
    rank->calls = rows.rows;
    for (size_t i = before; i < rank->call_count; i++)
        rank->calls[i].wait_ns = rank->calls[i].late_ns = -1;
    return status;
}

void knee_live_release(struct knee_live_rank *rank)
{
    knee_resize(rank->alloc, rank->steps, 0);
    knee_resize(rank->alloc, rank->calls, 0);
    memset(rank, 0, sizeof *rank);
}

/* SPDX-License-Identifier: MIT */
/*
 * What NCCL Inspector writes: a JSON object per line, with a header (communicator, rank in it, its
 * size), metadata and one collective or send. From version 4.3 on header and metadata may be on a
 * separate line, for the lines that follow. Sizes are those of one rank where ranks hold parts
 * (all-gather, reduce-scatter); times are whole microseconds; some writers print a decimal point.
 * dump_timestamp_us is the time of writing the line, not of the call.
 */
#include "base/error.h"
#include "base/fold.h"
#include "base/text.h"
#include "collective/collective_op.h"
#include "read/trace/roll_readers.h"
#include "read/trace/scan.h"

#include <math.h>
#include <string.h>

bool knee_is_inspector(const char *head, size_t length)
{
    struct knee_slice text = {head, length}, line;
    for (int i = 0; i < 8 && knee_slice_line(&text, &line); i++)
        if (knee_slice_starts(knee_slice_trim(line), "{") &&
            (knee_slice_has(line, "\"coll_perf\"") || knee_slice_has(line, "\"p2p_perf\"") ||
             knee_slice_has(line, "\"inspector_output_format_version\"")))
            return true;
    return false;
}

/* What a line says. Numbers that it does not have are -1 and NaN, texts are empty. */
struct call_line {
    bool has_header, has_stats, has_call, has_send;
    bool same_header; /* as the line before: rank, size and names are not filled */
    struct knee_slice id, name, coll;
    int64_t rank, size, sequence, bytes;
    double us;
};

/* What a header said last. */
struct header {
    uint32_t group;
    int64_t rank, size;
};

/* ---- From a tree: whatever JSON can say ---- */

static struct call_line line_of_tree(const struct knee_tree *tree)
{
    uint32_t head = knee_tree_get(tree, 0, "header"), call = knee_tree_get(tree, 0, "coll_perf"),
             send = knee_tree_get(tree, 0, "p2p_perf"),
             stats = knee_tree_get(tree, 0, "dump_stats");
    if (head == KNEE_TREE_NONE && stats != KNEE_TREE_NONE)
        head = knee_tree_get(tree, stats, "header");
    bool coll = call != KNEE_TREE_NONE;
    return (struct call_line){
        .has_header = head != KNEE_TREE_NONE,
        .has_stats = stats != KNEE_TREE_NONE,
        .has_call = coll,
        .has_send = send != KNEE_TREE_NONE,
        .id = knee_tree_text(tree, knee_tree_get(tree, head, "id")),
        .name = knee_tree_text(tree, knee_tree_get(tree, head, "comm_name")),
        .coll = knee_tree_text(tree, knee_tree_get(tree, call, "coll")),
        .rank = knee_tree_whole(tree, knee_tree_get(tree, head, "rank"), -1),
        .size = knee_tree_whole(tree, knee_tree_get(tree, head, "n_ranks"), -1),
        .sequence = knee_tree_whole(
            tree, coll ? knee_tree_get(tree, call, "coll_sn") : knee_tree_get(tree, send, "p2p_sn"),
            -1),
        .bytes = knee_tree_whole(tree, knee_tree_get(tree, call, "coll_msg_size_bytes"), -1),
        .us = knee_tree_number(tree, knee_tree_get(tree, call, "coll_exec_time_us"), NAN),
    };
}

/* ---- From the bytes: the lines that Inspector writes, at the speed of traces ---- */

/* The functions of this fast path return false if a line is not as simple as Inspector writes it
 * (escapes, numbers in quotes, anything that is not JSON); the general parser reads such a line.
 * Values that are not needed are skipped by their quotes and brackets. Bytes up to `limit` may be
 * read. */
struct plain {
    const char *p, *end, *limit;
};

static void skip_spaces(struct plain *l)
{
    while (l->p < l->end && *l->p == ' ')
        l->p++;
}

/* The next quote or backslash; l->end or later: there is none. */
static const char *next_quote(const struct plain *l, const char *p)
{
    const char *found = knee_scan_quote_within(p, l->limit);
    while (found < l->end && *found != '"' && *found != '\\')
        found++;
    return found;
}

static bool plain_text(struct plain *l, struct knee_slice *out)
{
    if (l->p == l->end || *l->p != '"')
        return false;
    const char *from = l->p + 1, *quote = next_quote(l, from);
    *out = (struct knee_slice){from, (size_t)(quote - from)};
    l->p = quote + 1;
    return quote < l->end && *quote == '"';
}

/* From an opening bracket to after the one that closes it. */
static bool skip_nested(struct plain *l)
{
    struct knee_slice text;
    size_t depth = 0;
    while (l->p < l->end) {
        char c = *l->p;
        if (c == '"') {
            if (!plain_text(l, &text))
                return false;
            continue;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        l->p++;
        if (depth == 0)
            return true;
    }
    return false;
}

/* The bytes of a value, a text with its quotes. */
static bool plain_value(struct plain *l, struct knee_slice *out)
{
    struct knee_slice text;
    const char *from = l->p;
    bool good = true;
    if (l->p < l->end && *l->p == '"')
        good = plain_text(l, &text);
    else if (l->p < l->end && (*l->p == '{' || *l->p == '['))
        good = skip_nested(l);
    else
        while (l->p < l->end && *l->p != ',' && *l->p != '}' && *l->p != ' ' && *l->p != '"')
            l->p++;
    *out = (struct knee_slice){from, (size_t)(l->p - from)};
    return good && l->p > from;
}

static bool plain_whole(struct knee_slice value, int64_t *out)
{
    int64_t number = 0;
    if (value.length > 18)
        return false;
    for (size_t i = 0; i < value.length; i++) {
        if (!knee_is_digit(value.at[i]))
            return false;
        number = number * 10 + (value.at[i] - '0');
    }
    *out = number;
    return true;
}

static bool plain_number(struct knee_slice value, double *out)
{
    int64_t whole = 0;
    if (!plain_whole(value, &whole))
        return *value.at != '"' && knee_slice_number(value, out);
    *out = (double)whole;
    return true;
}

static bool unquote(struct knee_slice value, struct knee_slice *out)
{
    *out = (struct knee_slice){value.at + 1, value.length - 2};
    return *value.at == '"';
}

/* What is wanted of an object: the first of each name counts, as in the tree. */
enum wanted_kind { WANTED_TEXT, WANTED_WHOLE, WANTED_NUMBER, WANTED_OBJECT };
struct wanted {
    const char *name;
    size_t length;
    enum wanted_kind kind;
    void *out;    /* by kind: a slice, an int64_t, a double, the members wanted of an object ... */
    size_t count; /* ... so many */
    bool there;
};
#define WANTED(name, kind, out)                                                                    \
    {                                                                                              \
        name, sizeof(name) - 1, kind, out, 0, false                                                \
    }
#define INSIDE(name, members)                                                                      \
    {                                                                                              \
        name, sizeof(name) - 1, WANTED_OBJECT, members, sizeof(members) / sizeof *(members), false \
    }

static struct wanted *wanted_of(struct wanted *wanted, size_t count, struct knee_slice key)
{
    for (size_t i = 0; i < count; i++)
        if (key.length == wanted[i].length && !wanted[i].there &&
            memcmp(key.at, wanted[i].name, key.length) == 0)
            return &wanted[i];
    return NULL;
}

static bool take_value(struct plain *l, struct wanted *w)
{
    struct knee_slice value;
    if (!plain_value(l, &value))
        return false;
    switch (w ? w->kind : WANTED_OBJECT) {
    case WANTED_TEXT: return unquote(value, w->out);
    case WANTED_WHOLE: return plain_whole(value, w->out);
    case WANTED_NUMBER: return plain_number(value, w->out);
    case WANTED_OBJECT: break; /* not needed */
    }
    return true;
}

/* A name, and its colon. */
static bool plain_key(struct plain *l, struct knee_slice *key)
{
    skip_spaces(l);
    if (!plain_text(l, key))
        return false;
    skip_spaces(l);
    if (l->p == l->end || *l->p++ != ':')
        return false;
    skip_spaces(l);
    return true;
}

/* Members from an opening bracket, or from a comma between two, to after the closing one. Objects
 * in objects are two deep. */
static bool take_members(struct plain *l, struct wanted *wanted, size_t count)
{
    struct knee_slice key;
    if (l->p == l->end || (*l->p != '{' && *l->p != ','))
        return false;
    while (*l->p != '}') {
        l->p++;
        if (!plain_key(l, &key))
            return false; /* an empty object, too */
        struct wanted *w = wanted_of(wanted, count, key);
        if (w)
            w->there = true;
        bool inside = w && w->kind == WANTED_OBJECT;
        if (inside ? !take_members(l, w->out, w->count) : !take_value(l, w))
            return false;
        skip_spaces(l);
        if (l->p == l->end || (*l->p != ',' && *l->p != '}'))
            return false;
    }
    l->p++;
    return true;
}

/* The lines of a file mostly begin with the same header: `last` has the bytes up to its end. */
static bool take_header_bytes(struct plain *l, struct knee_slice *last, struct call_line *out)
{
    static const char opening[] = "{\"header\":";
    const char *from = l->p;
    size_t left = (size_t)(l->end - l->p);
    out->same_header = last->length && last->length < left &&
                       memcmp(from, last->at, last->length) == 0 && from[last->length] == ',';
    l->p += out->same_header ? last->length : 0;
    if (out->same_header || left < sizeof opening || memcmp(from, opening, sizeof opening - 1) != 0)
        return out->same_header;
    out->id = out->name = (struct knee_slice){"", 0};
    out->rank = out->size = -1;
    struct wanted of_head[] = {
        WANTED("id", WANTED_TEXT, &out->id), WANTED("comm_name", WANTED_TEXT, &out->name),
        WANTED("rank", WANTED_WHOLE, &out->rank), WANTED("n_ranks", WANTED_WHOLE, &out->size)};
    l->p += sizeof opening - 1;
    if (!take_members(l, of_head, sizeof of_head / sizeof *of_head))
        return false;
    *last = (struct knee_slice){from, (size_t)(l->p - from)};
    return l->p < l->end && *l->p == ',';
}

/* A header and one call. */
static bool line_of_bytes(struct plain l, struct knee_slice *last, struct call_line *out)
{
    out->sequence = out->bytes = -1;
    out->us = NAN;
    out->coll = (struct knee_slice){"", 0};
    struct wanted of_call[] = {WANTED("coll", WANTED_TEXT, &out->coll),
                               WANTED("coll_sn", WANTED_WHOLE, &out->sequence),
                               WANTED("coll_msg_size_bytes", WANTED_WHOLE, &out->bytes),
                               WANTED("coll_exec_time_us", WANTED_NUMBER, &out->us)};
    struct wanted parts[] = {INSIDE("coll_perf", of_call)};
    out->has_header = true;
    out->has_stats = out->has_send = false;
    out->has_call = take_header_bytes(&l, last, out) && take_members(&l, parts, 1);
    return out->has_call && parts[0].there;
}

/* ---- What a line adds ---- */

/* False: no memory. */
static bool take_header(struct knee_rollcall *roll, const struct call_line *line,
                        struct header *header)
{
    header->group = knee_rollcall_group(roll, line->id);
    header->rank = line->rank;
    header->size = line->size;
    if (header->group == UINT32_MAX)
        return false;
    if (header->size > 0 && header->size < KNEE_ROLL_RANKS)
        roll->groups[header->group].size = (int32_t)header->size;
    return knee_rollcall_describe(roll, header->group, line->name);
}

static bool add_call(struct knee_rollcall *roll, const struct call_line *line,
                     const struct header *header, enum knee_op op)
{
    struct knee_entry entry = {
        .elements = -1,
        .group = header->group,
        .rank = header->rank >= 0 && header->rank < KNEE_ROLL_RANKS ? (int32_t)header->rank : -1,
        .sequence = line->sequence,
        .op = op,
        .bytes = line->bytes,
        .duration_ns = line->us >= 0 && line->us < 1e12 ? (int64_t)(line->us * 1e3 + 0.5) : -1,
    };
    bool parts = entry.op == KNEE_OP_ALL_GATHER || entry.op == KNEE_OP_REDUCE_SCATTER;
    if (parts && entry.bytes > 0 && header->size > 0 && entry.bytes < INT64_MAX / KNEE_ROLL_RANKS)
        entry.bytes *= header->size;
    roll->untimed += entry.duration_ns < 0;
    return knee_rollcall_add(roll, entry);
}

static bool add_send(struct knee_rollcall *roll, const struct call_line *line,
                     const struct header *header)
{
    return knee_rollcall_add(roll, (struct knee_entry){
                                       .group = header->group,
                                       .rank = header->rank >= 0 && header->rank < KNEE_ROLL_RANKS
                                                   ? (int32_t)header->rank
                                                   : -1,
                                       .sequence = line->sequence,
                                       .op = KNEE_OP_SEND_RECV,
                                       .bytes = -1,
                                       .duration_ns = -1,
                                       .p2p = true,
                                   });
}

/* The words for operations are few: the last one is kept with what it means. */
struct last_op {
    char word[32];
    size_t length;
    enum knee_op op;
};

static enum knee_op op_of(struct last_op *last, struct knee_slice word)
{
    if (last->length == word.length && word.length && memcmp(last->word, word.at, word.length) == 0)
        return last->op;
    enum knee_op op = knee_op_from_name(word.at, word.length);
    last->length = word.length < sizeof last->word ? word.length : 0;
    memcpy(last->word, word.at, last->length);
    last->op = op;
    return op;
}

/* One line. False: no memory. */
static bool take_line(struct knee_rollcall *roll, const struct call_line *line,
                      struct header *header, struct last_op *last)
{
    if (line->has_header && !line->same_header && !take_header(roll, line, header))
        return false;
    bool useful = (line->has_call || line->has_send) && header->group != UINT32_MAX;
    if (!useful) {
        roll->skipped += !line->has_header && !line->has_stats;
        return true;
    }
    return line->has_call ? add_call(roll, line, header, op_of(last, line->coll))
                          : add_send(roll, line, header);
}

/* One object, by its bytes where it is plain, else by its tree. KNEE_INPUT: not JSON. */
static knee_status read_object(struct knee_tree *tree, char *object, size_t length,
                               const char *limit, struct knee_slice *head, struct call_line *line)
{
    if (line_of_bytes((struct plain){object, object + length, limit}, head, line))
        return KNEE_OK;
    *head = (struct knee_slice){0}; /* escapes are resolved in place: no bytes to compare with */
    knee_status status = knee_tree_json(tree, object, length, "", NULL);
    if (!status)
        *line = line_of_tree(tree);
    return status;
}

knee_status knee_inspector_read(struct knee_rollcall *roll, const char *file, char *data,
                                size_t length, struct knee_err *err)
{
    struct knee_tree tree = {.alloc = roll->alloc};
    struct knee_slice text = {data, length}, next, head = {0};
    struct header header = {.group = UINT32_MAX, .rank = -1, .size = -1};
    struct call_line line = {.rank = -1, .size = -1};
    struct last_op op = {.length = 0};
    size_t first = roll->entry_count;
    bool good = true;
    while (good && knee_slice_line(&text, &next)) {
        struct knee_slice object = knee_slice_trim(next);
        if (!object.length)
            continue;
        knee_status status = read_object(&tree, data + (object.at - data), object.length,
                                         data + length, &head, &line);
        if (status == KNEE_INPUT)
            roll->skipped++;
        good = status == KNEE_INPUT || (!status && take_line(roll, &line, &header, &op));
    }
    knee_tree_release(&tree);
    if (!good || !knee_rollcall_source(roll, file, -1, first))
        return knee_fail(err, KNEE_SYSTEM, file, "out of memory");
    return KNEE_OK;
}

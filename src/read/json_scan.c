/* SPDX-License-Identifier: MIT */
#include "read/scalars.h"

#include <stdio.h> /* snprintf only */
#include <string.h>

#define DEPTH_MAX 24
#define PATH_MAX_ 400

struct scanner {
    struct knee_slice text;
    size_t line;
    char path[PATH_MAX_];
    size_t used;            /* of path */
    size_t base[DEPTH_MAX]; /* length of the path of each open value */
    bool array[DEPTH_MAX];
    size_t index[DEPTH_MAX]; /* next element of an array */
    size_t depth;
    char value[256];
    knee_scalar_taker *take;
    void *ctx;
};

static char peek(const struct scanner *s)
{
    return s->text.length ? s->text.at[0] : '\0';
}

static void skip(struct scanner *s)
{
    s->line += peek(s) == '\n';
    s->text = knee_slice_from(s->text, 1);
}

static void skip_blanks(struct scanner *s)
{
    while (s->text.length && strchr(" \t\r\n", peek(s)) && peek(s))
        skip(s);
}

/* The string at the quotation mark, into out; escapes stay as they are but for \" and \\. */
static const char *read_string(struct scanner *s, char *out, size_t size)
{
    size_t used = 0;
    skip(s);
    while (s->text.length && peek(s) != '"') {
        if (peek(s) == '\\') {
            skip(s);
            if (!s->text.length)
                break;
        }
        if (used + 1 < size)
            out[used++] = peek(s);
        skip(s);
    }
    out[used] = '\0';
    if (!s->text.length)
        return "a string does not end";
    skip(s);
    return NULL;
}

/* The path back to that of the innermost open value, and on to the next member of it. */
static const char *enter_member(struct scanner *s)
{
    size_t d = s->depth - 1;
    s->used = s->base[d];
    s->path[s->used] = '\0';
    char key[64], piece[80];
    if (s->array[d]) {
        snprintf(piece, sizeof piece, "[%zu]", s->index[d]++);
    } else {
        if (peek(s) != '"')
            return "a key is missing";
        const char *wrong = read_string(s, key, sizeof key);
        if (wrong)
            return wrong;
        skip_blanks(s);
        if (peek(s) != ':')
            return "a ':' is missing";
        skip(s);
        skip_blanks(s);
        snprintf(piece, sizeof piece, "%s%s", s->used ? "." : "", key);
    }
    size_t length = strlen(piece);
    if (s->used + length >= sizeof s->path)
        return "a path is too long";
    memcpy(s->path + s->used, piece, length + 1);
    s->used += length;
    return NULL;
}

static const char *open_value(struct scanner *s)
{
    if (s->depth == DEPTH_MAX)
        return "nested too deeply";
    s->array[s->depth] = peek(s) == '[';
    s->index[s->depth] = 0;
    s->base[s->depth++] = s->used;
    skip(s);
    return NULL;
}

static const char *read_scalar(struct scanner *s)
{
    struct knee_scalar scalar = {.path = s->path, .value = s->value, .line = s->line};
    if (peek(s) == '"') {
        const char *wrong = read_string(s, s->value, sizeof s->value);
        if (wrong)
            return wrong;
        scalar.quoted = true;
    } else {
        size_t used = 0;
        while (s->text.length && !strchr(",]} \t\r\n", peek(s)) && used + 1 < sizeof s->value) {
            s->value[used++] = peek(s);
            skip(s);
        }
        s->value[used] = '\0';
        if (used == 0)
            return "a value is missing";
    }
    s->take(s->ctx, &scalar);
    return NULL;
}

/* After a value: a comma, or the end of what holds it, and so on. */
static const char *close_values(struct scanner *s, bool *more)
{
    *more = false;
    while (s->depth > 0) {
        skip_blanks(s);
        if (peek(s) == ',') {
            skip(s);
            skip_blanks(s);
            *more = true;
            return NULL;
        }
        if (peek(s) != (s->array[s->depth - 1] ? ']' : '}'))
            return s->text.length ? "a ',' is missing" : "the file ends too early";
        skip(s);
        s->depth--;
    }
    return NULL;
}

const char *knee_json_scan(struct knee_slice text, knee_scalar_taker *take, void *ctx, size_t *line)
{
    struct scanner s = {.text = text, .line = 1, .take = take, .ctx = ctx};
    const char *wrong = NULL;
    bool more = true;
    skip_blanks(&s);
    while (more && !wrong) {
        if (s.depth > 0)
            wrong = enter_member(&s);
        if (wrong)
            break;
        if (peek(&s) == '{' || peek(&s) == '[') {
            wrong = open_value(&s);
            skip_blanks(&s);
            char end = s.depth && s.array[s.depth - 1] ? ']' : '}';
            if (wrong || peek(&s) != end)
                continue;
            skip(&s); /* empty */
            s.depth--;
        } else {
            wrong = read_scalar(&s);
        }
        if (!wrong)
            wrong = close_values(&s, &more);
    }
    *line = s.line;
    return wrong;
}

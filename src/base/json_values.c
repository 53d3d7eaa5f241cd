/* SPDX-License-Identifier: MIT */
#include "base/json_values.h"

#include "base/decimal.h"

#include <math.h>
#include <string.h>

void knee_json_values_init(struct knee_json_values *v, const char *json, size_t length)
{
    memset(v, 0, sizeof *v);
    v->at = v->counted = json;
    v->line = 1;
    v->end = json + length;
}

size_t knee_json_values_line(struct knee_json_values *v)
{
    for (; v->counted < v->at && v->counted < v->end; v->counted++)
        v->line += *v->counted == '\n';
    return v->line;
}

static void skip_space(struct knee_json_values *v)
{
    while (v->at < v->end && (*v->at == ' ' || *v->at == '\t' || *v->at == '\n' || *v->at == '\r'))
        v->at++;
}

static char peek(struct knee_json_values *v)
{
    skip_space(v);
    return v->at < v->end ? *v->at : '\0';
}

static bool fail(struct knee_json_values *v, const char *what)
{
    v->error = what;
    return false;
}

/* A string, cut at size - 1 bytes. Escapes beyond ASCII become '?': no key needs them. */
static bool read_string(struct knee_json_values *v, char *out, size_t size)
{
    size_t used = 0;
    v->at++;
    while (v->at < v->end && *v->at != '"') {
        char c = *v->at++;
        if (c == '\\') {
            static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
            if (v->at >= v->end)
                return fail(v, "a string does not end");
            c = *v->at++;
            const char *known = c ? strchr(from, c) : NULL;
            if (c == 'u') {
                v->at += v->end - v->at < 4 ? v->end - v->at : 4;
                c = '?';
            } else if (known) {
                c = to[known - from];
            }
        }
        if (used + 1 < size)
            out[used++] = c;
    }
    out[used] = '\0';
    if (v->at >= v->end)
        return fail(v, "a string does not end");
    v->at++;
    return true;
}

static bool read_number(struct knee_json_values *v)
{
    char digits[64];
    size_t used = 0;
    while (v->at < v->end && used + 1 < sizeof digits && *v->at &&
           strchr("+-.0123456789eE", *v->at))
        digits[used++] = *v->at++;
    digits[used] = '\0';
    const char *rest;
    v->number = knee_decimal_parse(digits, &rest);
    v->kind = KNEE_JSON_NUMBER;
    if (used == 0 || *rest || !isfinite(v->number))
        return fail(v, "this is not a JSON value");
    return true;
}

static bool read_word(struct knee_json_values *v)
{
    static const struct {
        const char *word;
        enum knee_json_kind kind;
    } table[] = {{"true", KNEE_JSON_TRUE}, {"false", KNEE_JSON_FALSE}, {"null", KNEE_JSON_NULL}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t length = strlen(table[i].word);
        if ((size_t)(v->end - v->at) >= length && memcmp(v->at, table[i].word, length) == 0) {
            v->at += length;
            v->kind = table[i].kind;
            v->number = v->kind == KNEE_JSON_TRUE;
            return true;
        }
    }
    return read_number(v);
}

static void extend_path(struct knee_json_values *v, size_t length, const char *part)
{
    size_t room = KNEE_JSON_PATH - 1 - length, wanted = strlen(part);
    size_t dot = length > 0 && part[0] != '[' && room > 0;
    if (dot)
        v->path[length++] = '.', room--;
    wanted = wanted < room ? wanted : room;
    memcpy(v->path + length, part, wanted);
    v->path[length + wanted] = '\0';
}

/* Stands before an element of the innermost container: reads its key. False: the container ended
 * (depth is one less) or an error. */
static bool before_element(struct knee_json_values *v, bool first)
{
    char close = v->open[v->depth - 1] == '{' ? '}' : ']', c = peek(v);
    if (c == close) {
        v->at++;
        v->depth--;
        return false;
    }
    if (!first) {
        if (c != ',')
            return fail(v, "a comma or a closing bracket is missing");
        v->at++;
        c = peek(v);
        if (c == close)
            return before_element(v, true); /* a comma too many: harmless */
    }
    if (close == ']') {
        v->elements += memchr(v->open, '[', (size_t)v->depth - 1) == NULL;
        extend_path(v, v->path_length[v->depth - 1], "[]");
        return true;
    }
    char key[KNEE_JSON_TEXT];
    if (c != '"')
        return fail(v, "a key must be a string");
    if (!read_string(v, key, sizeof key))
        return false;
    if (peek(v) != ':')
        return fail(v, "a colon is missing after a key");
    v->at++;
    extend_path(v, v->path_length[v->depth - 1], key);
    return true;
}

static bool open_container(struct knee_json_values *v)
{
    if (v->depth == KNEE_JSON_DEPTH)
        return fail(v, "it is nested too deeply");
    v->open[v->depth] = *v->at++;
    v->path_length[v->depth] = strlen(v->path);
    v->depth++;
    return true;
}

/* A scalar, or the inside of a container; false: neither began here. */
bool knee_json_values_next(struct knee_json_values *v)
{
    bool first = false;
    if (v->error || (v->begun && v->depth == 0))
        return false;
    for (;;) {
        if (v->begun && !before_element(v, first)) {
            if (v->error || v->depth == 0)
                return false;
            first = false;
            continue;
        }
        v->begun = true;
        char c = peek(v);
        if (c == '{' || c == '[') {
            if (!open_container(v))
                return false;
            first = true;
            continue;
        }
        v->text[0] = '\0';
        v->number = NAN;
        if (c != '"')
            return read_word(v);
        v->kind = KNEE_JSON_STRING;
        return read_string(v, v->text, sizeof v->text);
    }
}

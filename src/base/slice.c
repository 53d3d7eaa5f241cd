/* SPDX-License-Identifier: MIT */
#include "base/slice.h"

#include "base/decimal.h"
#include "base/fold.h"
#include "base/printable.h"

#include <math.h>
#include <string.h>

struct knee_slice knee_slice_of(const char *string)
{
    return (struct knee_slice){string, strlen(string)};
}

struct knee_slice knee_slice_from(struct knee_slice text, size_t start)
{
    if (start > text.length)
        start = text.length;
    return (struct knee_slice){text.at + start, text.length - start};
}

bool knee_slice_line(struct knee_slice *text, struct knee_slice *line)
{
    if (text->length == 0)
        return false;
    const char *end = memchr(text->at, '\n', text->length);
    size_t length = end ? (size_t)(end - text->at) : text->length;
    *line = (struct knee_slice){text->at, length};
    *text = knee_slice_from(*text, end ? length + 1 : length);
    if (line->length > 0 && line->at[line->length - 1] == '\r')
        line->length--;
    return true;
}

bool knee_slice_word(struct knee_slice *text, struct knee_slice *word)
{
    size_t start = 0, end;
    while (start < text->length && knee_is_blank(text->at[start]))
        start++;
    for (end = start; end < text->length && !knee_is_blank(text->at[end]);)
        end++;
    *word = (struct knee_slice){text->at + start, end - start};
    *text = knee_slice_from(*text, end);
    return word->length > 0;
}

bool knee_slice_until(struct knee_slice *text, char c, struct knee_slice *piece)
{
    const char *end = text->length ? memchr(text->at, c, text->length) : NULL;
    size_t length = end ? (size_t)(end - text->at) : text->length;
    *piece = (struct knee_slice){text->at, length};
    bool any = text->length > 0;
    *text = knee_slice_from(*text, end ? length + 1 : length);
    return any;
}

struct knee_slice knee_slice_trim(struct knee_slice text)
{
    while (text.length > 0 && knee_is_blank(text.at[0]))
        text = knee_slice_from(text, 1);
    while (text.length > 0 && knee_is_blank(text.at[text.length - 1]))
        text.length--;
    return text;
}

bool knee_slice_is(struct knee_slice text, const char *string)
{
    return strlen(string) == text.length && memcmp(text.at, string, text.length) == 0;
}

bool knee_slice_starts(struct knee_slice text, const char *string)
{
    size_t length = strlen(string);
    return length <= text.length && memcmp(text.at, string, length) == 0;
}

size_t knee_slice_find(struct knee_slice text, const char *string)
{
    size_t length = strlen(string);
    for (size_t i = 0; i + length <= text.length; i++) {
        const char *hit = memchr(text.at + i, string[0], text.length - length + 1 - i);
        if (!hit)
            return text.length;
        i = (size_t)(hit - text.at);
        if (memcmp(hit, string, length) == 0)
            return i;
    }
    return text.length;
}

bool knee_slice_has(struct knee_slice text, const char *string)
{
    return knee_slice_find(text, string) < text.length;
}

/* Digits, a point, an exponent. Other numbers of C (hex, inf, nan) are refused. */
static bool decimal(struct knee_slice text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!strchr("0123456789.eE+-", text.at[i]))
            return false;
    return text.length > 0 && text.length < 40;
}

bool knee_slice_number(struct knee_slice text, double *out)
{
    char copy[40];
    const char *end = NULL;
    if (!decimal(text))
        return false;
    memcpy(copy, text.at, text.length);
    copy[text.length] = '\0';
    double value = knee_decimal_parse(copy, &end);
    if (end != copy + text.length || end == copy || !isfinite(value))
        return false;
    *out = value;
    return true;
}

bool knee_slice_number_after(struct knee_slice text, const char *before, double *out)
{
    size_t at = knee_slice_find(text, before);
    if (at == text.length)
        return false;
    text = knee_slice_from(text, at + strlen(before));
    size_t start = 0, end;
    while (start < text.length &&
           (knee_is_blank(text.at[start]) || text.at[start] == '=' || text.at[start] == ':'))
        start++;
    for (end = start; end < text.length && text.at[end] >= '0' && text.at[end] <= '9';)
        end++;
    return knee_slice_number((struct knee_slice){text.at + start, end - start}, out);
}

void knee_slice_copy(struct knee_slice text, char *out, size_t size)
{
    size_t length = text.length < size - 1 ? text.length : size - 1;
    if (length)
        memcpy(out, text.at, length);
    knee_printable(out, length);
    out[length] = '\0';
}

static bool separates(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\\' || c == '"' || c == '\'';
}

const char *knee_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *knee_shell_word(const char *at, const char *end, const char **stop)
{
    while (at < end && separates(*at))
        at++;
    const char *last = at;
    while (last < end && !separates(*last))
        last++;
    *stop = last;
    return at;
}

/* SPDX-License-Identifier: MIT */
/* What holds for everything that is written, whatever it says: JSON is JSON, every line of CSV has
 * the same columns, ASCII is ASCII, sentences keep to the width, without memory it fails and leaves
 * nothing behind. */
#ifndef KNEE_TESTS_SHOWN_H
#define KNEE_TESTS_SHOWN_H

#include "knee_out.h"
#include "out/answer.h"
#include "unit.h"

/* ---- JSON, by its grammar ---- */

static inline const char *json_space(const char *c)
{
    return c + strspn(c, " \n\t\r");
}

static inline const char *json_string(const char *c)
{
    if (*c++ != '"')
        return NULL;
    for (; *c && *c != '"'; c++) {
        if ((unsigned char)*c < 0x20)
            return NULL;
        if (*c == '\\' && !strchr("\"\\/bfnrtu", *++c))
            return NULL;
    }
    return *c ? c + 1 : NULL;
}

static inline const char *json_scalar(const char *c)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++)
        if (strncmp(c, words[i], strlen(words[i])) == 0)
            return c + strlen(words[i]);
    char *end = NULL;
    strtod(c, &end);
    return end != c && strchr("-0123456789", *c) ? end : NULL;
}

/* The end of a value; NULL: it is none. */
static inline const char *json_value(const char *c)
{
    char stack[64];
    size_t depth = 0;
    for (c = json_space(c);;) {
        if (*c == '{' || *c == '[') {
            bool object = *c == '{';
            stack[depth++] = object ? '}' : ']';
            c = json_space(c + 1);
            if (*c != stack[depth - 1] && !object)
                continue;
            if (*c != stack[depth - 1] && (!(c = json_string(c)) || *(c = json_space(c)) != ':'))
                return NULL;
            if (*c == ':') {
                c = json_space(c + 1);
                continue;
            }
            c++, depth--;
        } else if (!(c = *c == '"' ? json_string(c) : json_scalar(c))) {
            return NULL;
        }
        for (c = json_space(c); depth && *c == stack[depth - 1]; c = json_space(c + 1))
            depth--;
        if (depth == 0)
            return c;
        if (*c != ',')
            return NULL;
        c = json_space(c + 1);
        if (stack[depth - 1] == '}') {
            if (!(c = json_string(c)) || *(c = json_space(c)) != ':')
                return NULL;
            c = json_space(c + 1);
        }
    }
}

/* ---- The laws ---- */

/* Sentences are broken into lines: words are looked for without regard to that. */
static inline void unwrap(char *text)
{
    char *out = text;
    for (const char *c = text; *c; c++) {
        char now = *c == '\n' ? ' ' : *c;
        if (now != ' ' || out == text || out[-1] != ' ')
            *out++ = now;
    }
    *out = '\0';
}

static inline void same_columns(const char *csv)
{
    size_t columns = 0, first = 0;
    bool quoted = false;
    for (const char *c = csv; *c; c++) {
        quoted ^= *c == '"';
        columns += *c == ',' && !quoted;
        if (*c != '\n' || quoted)
            continue;
        first = first ? first : columns + 1;
        if (columns + 1 != first)
            fail_msg("%zu columns instead of %zu in: %s", columns + 1, first, csv);
        columns = 0;
    }
}

static inline void shown_in(const struct knee_answer_type *type, const void *result,
                            enum knee_format format, const struct knee_style *style)
{
    struct knee_text text = {0};
    knee_answer_write(type, result, format, style, &text);
    assert_false(text.failed);
    assert_true(text.length > 0);
    if (format == KNEE_JSON) {
        const char *end = json_value(text.data);
        if (!end || *end)
            fail_msg("not JSON: %s", text.data);
    }
    if (format == KNEE_CSV)
        same_columns(text.data);
    for (const char *c = text.data; style->ascii && *c; c++)
        assert_true((unsigned char)*c < 0x80);
    if (format == KNEE_TEXT && !style->color)
        assert_null(strchr(text.data, '\033'));
    knee_text_release(&text);
}

/* Memory runs out at one place after the other. */
static inline void shown_without_memory(const struct knee_answer_type *type, const void *result,
                                        enum knee_format format)
{
    struct knee_style style = {.table_width = 60};
    struct knee_text whole = {0};
    knee_answer_write(type, result, format, &style, &whole);
    FOR_EACH_FAILURE(f) {
        struct knee_text text = {.alloc = &f.alloc};
        knee_answer_write(type, result, format, &style, &text);
        if (!text.failed && (text.length != whole.length || strcmp(text.data, whole.data) != 0))
            fail_msg("allocation %zu fails, and this is said: %s", f.fail_at, text.data);
        knee_text_release(&text);
    }
    knee_text_release(&whole);
}

/* All formats and styles; `words` (up to a NULL) are in the text, in this order. */
static inline void assert_shown(const struct knee_answer_type *type, const void *result,
                                const char *const *words)
{
    static const struct knee_style styles[] = {{0},
                                               {.ascii = true, .width = 40, .table_width = 40},
                                               {.color = true},
                                               {.tier = KNEE_TIER_BRIEF}};
    for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++) {
        for (size_t s = 0; s < sizeof styles / sizeof *styles; s++)
            shown_in(type, result, (enum knee_format)format, &styles[s]);
        shown_without_memory(type, result, (enum knee_format)format);
    }
    struct knee_text text = {0};
    knee_answer_write(type, result, KNEE_TEXT, &styles[0], &text);
    unwrap(text.data);
    for (const char *at = text.data; *words; words++) {
        const char *found = strstr(at, *words);
        if (!found)
            fail_msg("'%s' is not said after what comes before it: %s", *words, text.data);
        at = found + strlen(*words);
    }
    knee_text_release(&text);
}

#define SAYS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif

/* SPDX-License-Identifier: MIT */
#include "out/json.h"

#include "base/format.h"
#include "base/number.h"

#include <string.h>

/* What is not UTF-8 becomes U+FFFD: names come from files that promise nothing. */
static void quoted(struct knee_text *text, const char *string)
{
    knee_text_puts(text, "\"");
    while (*string) {
        unsigned char c = (unsigned char)*string;
        size_t length = knee_utf8_length(string);
        if (length == 0)
            knee_text_puts(text, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\')
            knee_text_printf(text, "\\%c", c);
        else if (c < 0x20)
            knee_text_printf(text, "\\u%04x", c);
        else
            knee_text_add(text, string, length);
        string += length ? length : 1;
    }
    knee_text_puts(text, "\"");
}

/* Comma, line break and key before the next value. */
static void lead(struct knee_json *json, const char *key)
{
    if (json->filled[json->depth])
        knee_text_puts(json->text, json->flat[json->depth] ? ", " : ",");
    json->filled[json->depth] = true;
    if (json->depth > 0 && !json->flat[json->depth]) {
        knee_text_puts(json->text, "\n");
        knee_text_repeat(json->text, "  ", (size_t)json->depth);
    }
    if (key) {
        quoted(json->text, key);
        knee_text_puts(json->text, ": ");
    }
}

void knee_json_begin(struct knee_json *json, const char *key, char bracket, bool flat)
{
    lead(json, key);
    knee_text_add(json->text, &bracket, 1);
    flat = flat || json->flat[json->depth];
    json->depth++;
    json->filled[json->depth] = false;
    json->flat[json->depth] = flat;
}

void knee_json_open(struct knee_json *json, const char *key, char bracket)
{
    knee_json_begin(json, key, bracket, false);
}

void knee_json_open_flat(struct knee_json *json, const char *key, char bracket)
{
    knee_json_begin(json, key, bracket, true);
}

void knee_json_close(struct knee_json *json, char bracket)
{
    bool line = json->filled[json->depth] && !json->flat[json->depth];
    json->depth--;
    if (line) {
        knee_text_puts(json->text, "\n");
        knee_text_repeat(json->text, "  ", (size_t)json->depth);
    }
    knee_text_add(json->text, &bracket, 1);
    if (json->depth == 0)
        knee_text_puts(json->text, "\n");
}

void knee_json_number(struct knee_json *json, const char *key, double value)
{
    char number[40];
    knee_number_exact(number, sizeof number, value);
    lead(json, key);
    knee_text_puts(json->text, number);
}

void knee_json_sure(struct knee_json *json, const char *key, double value, struct knee_sure sure)
{
    char name[64];
    const char *of = strcmp(key, "step_s") == 0 ? "s" : key; /* low_s is older than the others */
    knee_json_number(json, key, value);
    knee_format(name, sizeof name, "low_%s", of);
    knee_json_number(json, name, sure.low);
    knee_format(name, sizeof name, "high_%s", of);
    knee_json_number(json, name, sure.high);
}

void knee_json_whole(struct knee_json *json, const char *key, int64_t value)
{
    lead(json, key);
    knee_text_printf(json->text, "%lld", (long long)value);
}

void knee_json_ns(struct knee_json *json, const char *key, int64_t ns, bool known)
{
    char number[40];
    lead(json, key);
    knee_number_ns(number, sizeof number, ns);
    knee_text_puts(json->text, known ? number : "null");
}

void knee_json_string(struct knee_json *json, const char *key, const char *value)
{
    lead(json, key);
    if (value)
        quoted(json->text, value);
    else
        knee_text_puts(json->text, "null");
}

void knee_json_words(struct knee_json *json, const char *key, struct knee_text *words)
{
    knee_json_string(json, key, words->data ? words->data : "");
    knee_text_end(words, json->text);
}

void knee_json_bool(struct knee_json *json, const char *key, bool value)
{
    lead(json, key);
    knee_text_puts(json->text, value ? "true" : "false");
}

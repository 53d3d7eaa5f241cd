/* SPDX-License-Identifier: MIT */
#include "out/words.h"
#include "judge/judge.h"

#include "base/format.h"
#include "base/printable.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

struct knee_word knee_percent(double share)
{
    struct knee_word word = {""};
    knee_format(word.s, sizeof word.s, isnan(share) ? "-" : "%.1f %%", 100 * share);
    return word;
}

bool knee_shows(double share)
{
    return share > 0.0005; /* one decimal of a percentage */
}

/* "<" before a letter begins a tag, "](" an address; both can stand in a kernel's name. */
void knee_markdown_add(struct knee_text *text, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char next = i + 1 < length ? bytes[i + 1] : '\0';
        bool letter = (next | 0x20) >= 'a' && (next | 0x20) <= 'z';
        bool tag = bytes[i] == '<' && (letter || next == '/' || next == '!' || next == '?');
        if (tag)
            knee_text_puts(text, "&lt;");
        else
            knee_text_add(text, bytes + i, 1);
        if (bytes[i] == ']' && next == '(')
            knee_text_puts(text, "\\");
    }
}

void knee_finish_answer(struct knee_text *text, enum knee_format format, bool color)
{
    struct knee_text escaped = {.alloc = text->alloc};
    if (format == KNEE_JSON || text->failed || !text->length)
        return;
    knee_printable_answer(text->data, text->length, color);
    if (format != KNEE_MARKDOWN)
        return;
    knee_markdown_add(&escaped, text->data, text->length); /* once more changes nothing */
    knee_text_release(text);
    *text = escaped;
}

/* Where the word at `start` ends. */
static const char *word_end(const char *start)
{
    while (*start && *start != ' ')
        start++;
    return start;
}

void knee_wrap(const char *sentence, int width, const char *indent, struct knee_text *text)
{
    size_t room = (size_t)width, used = 0, margin = strlen(indent);
    while (*sentence) {
        const char *end = word_end(sentence);
        size_t length = (size_t)(end - sentence);
        if (used > 0 && used + 1 + length > room) {
            knee_text_puts(text, "\n");
            used = 0;
        }
        knee_text_puts(text, used == 0 ? indent : " ");
        used += (used == 0 ? margin : 1) + length;
        knee_text_add(text, sentence, length);
        sentence = *end ? end + 1 : end;
    }
    knee_text_puts(text, "\n");
}

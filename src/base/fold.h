/* SPDX-License-Identifier: MIT */
/* Letters of ASCII, whatever the locale. */
#ifndef KNEE_BASE_FOLD_H
#define KNEE_BASE_FOLD_H

#include <stdbool.h>
#include <stddef.h>

static inline char knee_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline bool knee_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool knee_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static inline bool knee_is_letter(char c)
{
    c = knee_lower(c);
    return c >= 'a' && c <= 'z';
}

static inline bool knee_is_word_char(char c)
{
    return knee_is_letter(c) || knee_is_digit(c);
}

#define KNEE_FOLDED 2048 /* of a name: more of it than tells what it is */

/* Copies as much of text as fits, in small letters, NUL-terminated; returns the bytes written. */
static inline size_t knee_fold(const char *text, char *out, size_t size)
{
    size_t used = 0;
    for (; text[used] && used + 1 < size; used++)
        out[used] = knee_lower(text[used]);
    out[used] = '\0';
    return used;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Numbers as people read them: one function for each kind, used by sentences and tables alike.
 * Three significant digits at most; 6.94 s, 354 ms, 49%, 62 GB, $1.2M, 605k, 4,680; an interval is
 * "6.94 s (6.05-8.3)". Times stay in seconds up to ten minutes.
 */
#ifndef KNEE_SAY_NUMBERS_H
#define KNEE_SAY_NUMBERS_H

#include "say/fields.h"

struct knee_word {
    char s[256];
};

/* NaN is "-". */
struct knee_word knee_say_number(double value, enum knee_kind kind);
/* With its interval; the value alone where low and high are not known or look like it. */
struct knee_word knee_say_interval(double value, double low, double high, enum knee_kind kind);
/* Is the interval so wide (high > 3 low) that the answer must be called rough? */
bool knee_rough(double low, double high);
/* "1 rank", "8 ranks": the count with its noun. */
struct knee_word knee_say_count(double count, const char *noun);

/* A name from a file, made safe to print: cut to `width` characters, control bytes and what is not
 * UTF-8 replaced. */
struct knee_word knee_safe(const char *name, size_t width);

/* The first letter of a sentence, whatever the locale. */
static inline char knee_capital(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* Short names for sentences. */
#define SAY(kind, value)   knee_say_number(value, kind).s
#define SAY_TIME(value)    knee_say_number(value, KNEE_AS_SECONDS).s
#define SAY_SHARE(value)   knee_say_number(value, KNEE_AS_SHARE).s
#define SAY_BYTES(value)   knee_say_number(value, KNEE_AS_BYTES).s
#define SAY_MESSAGE(value) knee_say_number(value, KNEE_AS_MESSAGE).s
#define SAY_RATE(value)    knee_say_number(value, KNEE_AS_RATE).s
#define SAY_TIMES(value)   knee_say_number(value, KNEE_AS_TIMES).s
#define SAY_DOLLARS(value) knee_say_number(value, KNEE_AS_DOLLARS).s
#define SAY_COUNT(value)   knee_say_number(value, KNEE_AS_COUNT).s
#define SAY_LARGE(value)   knee_say_number(value, KNEE_AS_LARGE).s

#endif

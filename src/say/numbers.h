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
#define SAY_RATE(value)    knee_say_number(value, KNEE_AS_RATE).s
#define SAY_TIMES(value)   knee_say_number(value, KNEE_AS_TIMES).s
#define SAY_DOLLARS(value) knee_say_number(value, KNEE_AS_DOLLARS).s
#define SAY_COUNT(value)   knee_say_number(value, KNEE_AS_COUNT).s
#define SAY_LARGE(value)   knee_say_number(value, KNEE_AS_LARGE).s

/* ---- Sentences ---- */

/*
 * PUT(text, "{GPUs} take {time} per step[, p95 {time}].", gpus, step_s, p95_s) appends a sentence.
 * Each {} takes one value, a string or any number:
 *
 *   {}       a string as it is; a number as a whole one, without commas
 *   {.40}    at most 40 bytes of a string
 *   {time}   as knee_say_number() has it; also share, count, large, number, bytes, message, rate,
 *            flops, change, times, dollars, joules, watts. SPAN(value, low, high) adds the interval
 *   {ranks}  any other word is a noun: "1 rank", "8 ranks"
 *   [...]    left out where a value in it is not above 0 or an empty string; [[ and ]]: brackets
 */
#define PUT(text, ...) knee_say(text, KNEE_TYPES(__VA_ARGS__), __VA_ARGS__)
/* `types` has the type of each argument, the format first, three bits each. A value that is missing
 * shows as "?". */
void knee_say(struct knee_text *text, unsigned types, const char *fmt, ...);

struct knee_with_ends {
    double number, low, high;
};
#define SPAN(value, low, high) ((struct knee_with_ends){value, low, high})

enum knee_type {
    KNEE_T_NONE,
    KNEE_T_TEXT,
    KNEE_T_DOUBLE,
    KNEE_T_INT,
    KNEE_T_LONG,
    KNEE_T_LONGEST,
    KNEE_T_SPAN
};
#ifdef __cppcheck__ /* it does not parse _Generic as an operand */
#define KNEE_TYPE(value) 1u
#else
#define KNEE_TYPE(value)                                                                           \
    (unsigned)_Generic((value),                                                                    \
        char *: KNEE_T_TEXT,                                                                       \
        const char *: KNEE_T_TEXT,                                                                 \
        double: KNEE_T_DOUBLE,                                                                     \
        float: KNEE_T_DOUBLE,                                                                      \
        long: KNEE_T_LONG,                                                                         \
        unsigned long: KNEE_T_LONG,                                                                \
        long long: KNEE_T_LONGEST,                                                                 \
        unsigned long long: KNEE_T_LONGEST,                                                        \
        struct knee_with_ends: KNEE_T_SPAN,                                                        \
        default: KNEE_T_INT)
#endif
#define KNEE_TYPES_1(a)                                      KNEE_TYPE(a)
#define KNEE_TYPES_2(a, ...)                                 (KNEE_TYPE(a) | KNEE_TYPES_1(__VA_ARGS__) << 3)
#define KNEE_TYPES_3(a, ...)                                 (KNEE_TYPE(a) | KNEE_TYPES_2(__VA_ARGS__) << 3)
#define KNEE_TYPES_4(a, ...)                                 (KNEE_TYPE(a) | KNEE_TYPES_3(__VA_ARGS__) << 3)
#define KNEE_TYPES_5(a, ...)                                 (KNEE_TYPE(a) | KNEE_TYPES_4(__VA_ARGS__) << 3)
#define KNEE_TYPES_6(a, ...)                                 (KNEE_TYPE(a) | KNEE_TYPES_5(__VA_ARGS__) << 3)
#define KNEE_TYPES_7(a, ...)                                 (KNEE_TYPE(a) | KNEE_TYPES_6(__VA_ARGS__) << 3)
#define KNEE_TYPES_8(a, ...)                                 (KNEE_TYPE(a) | KNEE_TYPES_7(__VA_ARGS__) << 3)
#define KNEE_TYPES_9(a, ...)                                 (KNEE_TYPE(a) | KNEE_TYPES_8(__VA_ARGS__) << 3)
#define KNEE_TYPES_OF(a, b, c, d, e, f, g, h, i, which, ...) which
#define KNEE_TYPES(...)                                                                            \
    KNEE_TYPES_OF(__VA_ARGS__, KNEE_TYPES_9, KNEE_TYPES_8, KNEE_TYPES_7, KNEE_TYPES_6,             \
                  KNEE_TYPES_5, KNEE_TYPES_4, KNEE_TYPES_3, KNEE_TYPES_2, KNEE_TYPES_1, 0)         \
    (__VA_ARGS__)

#endif

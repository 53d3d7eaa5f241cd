/* SPDX-License-Identifier: MIT */
/*
 * Inputs from a grammar: the fuzzer's bytes are decisions (which line, which member, which value),
 * so that almost every input is one that a reader takes and the search goes on behind the reader.
 * Bytes that run out are zero. look() holds what every answer must be.
 */
#ifndef KNEE_FUZZ_GRAMMAR_H
#define KNEE_FUZZ_GRAMMAR_H

#include "knee.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const uint8_t *decisions, *decisions_end;
static inline unsigned u8(void)
{
    return decisions < decisions_end ? *decisions++ : 0;
}
static inline unsigned below(unsigned n)
{
    return n ? u8() % n : 0;
}
static inline bool coin(unsigned in)
{
    return u8() % in == 1;
}
#ifdef KNEE_FUZZ_ALL
static const bool all_formats = true;
#else
static const bool all_formats = false;
#endif

struct buf {
    char *d;
    size_t n, cap;
};
__attribute__((format(printf, 2, 3))) static inline void add(struct buf *b, const char *fmt, ...)
{
    va_list a, c;
    va_start(a, fmt);
    va_copy(c, a);
    int n = vsnprintf(NULL, 0, fmt, c);
    va_end(c);
    if (b->n + (size_t)n + 1 > b->cap) {
        size_t cap = 2 * (b->n + (size_t)n + 1);
        char *more = realloc(b->d, cap);
        if (!more) { /* the corpus is replayed without memory, too */
            va_end(a);
            return;
        }
        b->d = more;
        b->cap = cap;
    }
    vsnprintf(b->d + b->n, (size_t)n + 1, fmt, a);
    b->n += (size_t)n;
    va_end(a);
}
#define PICK(a) (a)[below(sizeof(a) / sizeof *(a))]
static inline bool stop(void *ctx, double share)
{
    (void)share;
    return --*(int *)ctx > 0;
}
/* Nothing but what was asked for may stand in an answer. */
static inline void look(const struct knee_text *t, enum knee_format f)
{
    if (t->failed)
        return;
    for (size_t i = 0; i < t->length; i++) {
        unsigned char c = (unsigned char)t->data[i];
        if ((c < 0x20 && c != '\n') || c == 0x7f) {
            fprintf(stderr, "control byte %02x in an answer, format %d\n", c, (int)f);
            abort();
        }
    }
    if (f == KNEE_JSON && t->length) { /* balanced, no nan or inf outside of strings */
        int depth = 0;
        bool in = false;
        for (size_t i = 0; i < t->length; i++) {
            char c = t->data[i];
            if (in) {
                if (c == '\\')
                    i++;
                else if (c == '"')
                    in = false;
                continue;
            }
            if (c == '"')
                in = true;
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
            if ((c == 'n' || c == 'i' || c == 'N' || c == 'I') &&
                (!strncmp(t->data + i, "nan", 3) || !strncmp(t->data + i, "inf", 3) ||
                 !strncmp(t->data + i, "NaN", 3))) {
                fprintf(stderr, "not JSON: %.60s\n", t->data + (i > 30 ? i - 30 : 0));
                abort();
            }
        }
        if (depth || in) {
            fprintf(stderr, "JSON is not closed\n");
            abort();
        }
    }
}

#endif

/* SPDX-License-Identifier: MIT */
/* Short names for tables of fields: kinds, tiers, and getters of one expression. */
#ifndef KNEE_SAY_SHORT_H
#define KNEE_SAY_SHORT_H

#include "say/answers.h"
#include "say/numbers.h"

#define TEXT    KNEE_AS_TEXT
#define COUNT   KNEE_AS_COUNT
#define LARGE   KNEE_AS_LARGE
#define NUMBER  KNEE_AS_NUMBER
#define TIME    KNEE_AS_SECONDS
#define MS      KNEE_AS_MS
#define BYTES   KNEE_AS_BYTES
#define MESSAGE KNEE_AS_MESSAGE
#define RATE    KNEE_AS_RATE
#define FLOPS   KNEE_AS_FLOPS
#define SHARE   KNEE_AS_SHARE
#define CHANGE  KNEE_AS_CHANGE
#define TIMES   KNEE_AS_TIMES
#define DOLLARS KNEE_AS_DOLLARS
#define JOULES  KNEE_AS_JOULES
#define WATTS   KNEE_AS_WATTS
#define YES_NO  KNEE_AS_YES_NO
#define SCREEN  KNEE_TIER_SCREEN
#define FULL    KNEE_TIER_FULL
#define DATA    KNEE_TIER_DATA

/* A value that only JSON and CSV have: a member of the row, or what a getter says. */
#define KEY(type, member, key, kind, ...)                                                          \
    KNEE_FIELD(type, member, key, NULL, kind, DATA, __VA_ARGS__)
#define KEY_BY(getter, key, kind, ...) KNEE_GET(getter, key, NULL, kind, DATA, __VA_ARGS__)

/* In a getter: what the row is inside, and the result that all of it is about. */
#define UP(type)  ((const type *)at->up->row)
#define TOP(type) ((const type *)knee_top_row(at))

/* A getter: `it` is the row, `out` takes the value. */
#define GETTER(name, type, call)                                                                   \
    static void name(const struct knee_at *at, struct knee_value *out)                             \
    {                                                                                              \
        const type *it = at->row;                                                                  \
        (void)it;                                                                                  \
        call;                                                                                      \
    }
/* The same for one kind of value. A getter that looks elsewhere takes `void`. */
#define A_NUMBER(name, type, value) GETTER(name, type, knee_value_number(out, value))
#define A_TEXT(name, type, value)   GETTER(name, type, knee_value_text(out, value))
#define A_BOOL(name, type, value)   GETTER(name, type, knee_value_bool(out, value))
#define WORDS(name, type, call)                                                                    \
    GETTER(name, type, struct knee_text *text = &out->words; out->is = KNEE_A_TEXT; call)
/* Is a field there? */
#define WHEN(name, type, is)                                                                       \
    static bool name(const struct knee_at *at)                                                     \
    {                                                                                              \
        const type *it = at->row;                                                                  \
        (void)it;                                                                                  \
        return is;                                                                                 \
    }
/* The struct that an object is about, NULL: none; row `index` of a list, NULL after the last. */
#define OBJECT(name, type, found)                                                                  \
    static const void *name(const struct knee_at *at)                                              \
    {                                                                                              \
        const type *it = at->row;                                                                  \
        (void)it;                                                                                  \
        return found;                                                                              \
    }
#define ROW_OF(name, type, found)                                                                  \
    static const void *name(const struct knee_at *at, size_t index)                                \
    {                                                                                              \
        const type *it = at->row;                                                                  \
        (void)it;                                                                                  \
        return found;                                                                              \
    }
#define LIST_OF(name, type, list, count)                                                           \
    ROW_OF(name, type, index < it->count ? &it->list[index] : NULL)

#endif

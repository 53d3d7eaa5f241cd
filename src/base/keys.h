/* SPDX-License-Identifier: MIT */
/* What the key tables need beside knee_keys_set(). */
#ifndef KNEE_BASE_KEYS_H
#define KNEE_BASE_KEYS_H

#include "knee_keys.h"

#define KNEE_HUGE 1e30 /* "no upper limit", still finite after any product of a few */

/* Whether this is the core of the page, and help of options for which the page has no field: it
 * would only make the page larger. */
#if KNEE_JSON_ONLY
#define KNEE_ON_PAGE         true
#define KNEE_OFF_PAGE(words) ""
#else
#define KNEE_ON_PAGE         false
#define KNEE_OFF_PAGE(words) words
#endif

/* One row of a key table: a number, a choice, or what needs no more than its kind (a word, a
 * switch, counts) in a field of `type`. */
#define KNEE_NUMBER(type, key_name, field, key_unit, low, high, heading, absent, words)            \
    {                                                                                              \
        .name = key_name, .kind = KNEE_KEY_NUMBER, .unit = key_unit, .min = low, .max = high,      \
        .offset = offsetof(type, field), .group = heading, .otherwise = absent, .help = words      \
    }
#define KNEE_CHOICE(type, key_name, field, list, heading, absent, words)                           \
    {                                                                                              \
        .name = key_name, .kind = KNEE_KEY_CHOICE, .choices = &list,                               \
        .offset = offsetof(type, field), .group = heading, .otherwise = absent, .help = words      \
    }
#define KNEE_OPTION(type, key_name, key_kind, field, heading, absent, words)                       \
    {                                                                                              \
        .name = key_name, .kind = key_kind, .offset = offsetof(type, field), .group = heading,     \
        .otherwise = absent, .help = words                                                         \
    }

/* The table itself. An object keeps one byte for each row, so there may not be more rows than
 * bytes. tools/rooms sees to it that no table is made without this. */
#define KNEE_KEY_TABLE(table, type)                                                                \
    {                                                                                              \
        .rows = table, .source_offset = offsetof(type, source),                                    \
        .count = sizeof table / sizeof *table +                                                    \
                 0 * sizeof(struct {                                                               \
                     char nothing;                                                                 \
                     _Static_assert(sizeof table / sizeof *table <= KNEE_KEYS_MAX,                 \
                                    "more rows than KNEE_KEYS_MAX");                               \
                     _Static_assert(sizeof((type *)0)->source == KNEE_KEYS_MAX,                    \
                                    "source[] is not one byte for each row");                      \
                 })                                                                                \
    }

/* A list of choices: how many, and the name of a `row` below that. */
#define KNEE_CHOICES(list, label, how_many, name_of_row)                                           \
    static size_t list##_count(void)                                                               \
    {                                                                                              \
        return how_many;                                                                           \
    }                                                                                              \
    static const char *list##_name(size_t row)                                                     \
    {                                                                                              \
        return row < list##_count() ? name_of_row : NULL;                                          \
    }                                                                                              \
    const struct knee_choices list = {.what = label, .count = list##_count, .name = list##_name}

/* One whose names stand in an array of strings, and one of an array of structs that have a name. */
#define KNEE_WORDS(list, label, words)                                                             \
    KNEE_CHOICES(list, label, sizeof words / sizeof *words, words[row])
#define KNEE_NAMES(list, label, rows)                                                              \
    KNEE_CHOICES(list, label, sizeof rows / sizeof *rows, rows[row].name)

/* - and _ are alike. */
bool knee_same_name(const char *a, const char *b);

/* Row of `name`, or keys->count. */
size_t knee_keys_find(const struct knee_keys *keys, const char *name);

/* The object's provenance bytes, one per row. */
unsigned char *knee_keys_source(const struct knee_keys *keys, void *object);

/* Marks every field as not given: numbers NaN, choices -1, the rest zero. */
void knee_keys_clear(const struct knee_keys *keys, void *object);

/* Marks one field as not given. */
void knee_keys_unset(const struct knee_keys *keys, void *object, size_t row);

struct knee_conflict {
    size_t one, other; /* rows */
    const char *what, *hint;
};

/* Two rows of which only one can hold. A flag beats a file, and the other is then not given; two of
 * a kind contradict: KNEE_USAGE with `what` and `hint`. */
knee_status knee_keys_settle(const struct knee_keys *keys, void *object,
                             const struct knee_conflict *rows, struct knee_err *err);

/* Sets a number of the object that is not given yet, and its source. NaN leaves it. */
void knee_keys_fill(const struct knee_keys *keys, void *object, double *field, double value,
                    enum knee_source source);

/* The first number that is given but not in its range, or NULL: for objects filled from files
 * without going through knee_keys_set(). */
const struct knee_key *knee_keys_out_of_range(const struct knee_keys *keys, const void *object);

/* Row of `name` in a list, or -1 with the nearest name in *err. */
int knee_choice_find(const struct knee_choices *choices, const char *name, const char *where,
                     struct knee_err *err);

/* Parses "8", "1,2,4", "1..1024x2", "8..64+8". */
knee_status knee_workers_parse(const char *text, const char *where, struct knee_workers *out,
                               struct knee_err *err);

#endif

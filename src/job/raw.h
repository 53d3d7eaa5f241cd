/* SPDX-License-Identifier: MIT */
/*
 * Numbers from another tool's file: a table that maps its keys to the doubles of a reader's
 * `struct raw`. Several keys may name one field; NaN: the file does not give it.
 */
#ifndef KNEE_JOB_RAW_H
#define KNEE_JOB_RAW_H

#include "base/keys.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

struct knee_raw_name {
    const char *key;
    size_t offset;
};

#define KNEE_RAW(key, field)                                                                       \
    {                                                                                              \
        key, offsetof(struct raw, field)                                                           \
    }

static inline double *knee_raw_field(const struct knee_raw_name *name, void *raw)
{
    return (double *)(void *)((char *)raw + name->offset);
}

static inline void knee_raw_clear(const struct knee_raw_name *names, size_t count, void *raw)
{
    for (size_t i = 0; i < count; i++)
        *knee_raw_field(&names[i], raw) = NAN;
}

/* NULL: no such key. */
static inline double *knee_raw_find(const struct knee_raw_name *names, size_t count,
                                    const char *key, void *raw)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(key, names[i].key) == 0)
            return knee_raw_field(&names[i], raw);
    return NULL;
}

/* Sets a key of an object unless a flag did; values outside its range are left alone. */
static inline void knee_raw_set(const struct knee_keys *keys, void *object, const char *name,
                                double value)
{
    size_t row = knee_keys_find(keys, name);
    unsigned char *source = knee_keys_source(keys, object);
    const struct knee_key *key = &keys->rows[row];
    if (isnan(value) || source[row] == KNEE_FLAG)
        return;
    if (key->kind == KNEE_KEY_NUMBER && !(value >= key->min && value <= key->max))
        return;
    void *field = (char *)object + key->offset;
    if (key->kind == KNEE_KEY_CHOICE)
        *(int *)field = (int)value;
    else
        *(double *)field = value;
    source[row] = KNEE_FILE;
}

#endif

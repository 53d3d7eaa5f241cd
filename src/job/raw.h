/* SPDX-License-Identifier: MIT */
/*
 * Numbers as a file of somebody else's has them: a table from its keys to the doubles of a reader's
 * own `struct raw`. Several keys may name one field; NaN: the file does not say.
 */
#ifndef KNEE_JOB_RAW_H
#define KNEE_JOB_RAW_H

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

#endif

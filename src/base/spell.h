/* SPDX-License-Identifier: MIT */
/* "Did you mean": the nearest of a list of names. */
#ifndef KNEE_BASE_SPELL_H
#define KNEE_BASE_SPELL_H

#include <stddef.h>

/* Remembers the nearest name offered so far. Zero all but `wanted` first. */
struct knee_nearest {
    const char *wanted;
    const char *name; /* NULL: nothing near enough */
    size_t distance;
};
void knee_nearest_offer(struct knee_nearest *nearest, const char *name);

#endif

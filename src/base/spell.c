/* SPDX-License-Identifier: MIT */
#include "base/spell.h"

#include "base/fold.h"

#include <stdbool.h>
#include <string.h>

#define LONGEST 48 /* longer words are no misspelling of ours */

static char fold(char c)
{
    return c == '_' || c == ' ' ? '-' : knee_lower(c);
}

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Levenshtein distance with two rows; case and - _ are alike. */
static size_t edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t above[LONGEST + 1], row[LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++)
        above[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = above[j - 1] + (fold(a[i - 1]) != fold(b[j - 1]));
            row[j] = least(above[j] + 1, row[j - 1] + 1, change);
        }
        memcpy(above, row, (b_length + 1) * sizeof *row);
    }
    return above[b_length];
}

void knee_nearest_offer(struct knee_nearest *nearest, const char *name)
{
    size_t wanted_length = strlen(nearest->wanted), name_length = strlen(name);
    if (wanted_length > LONGEST || name_length > LONGEST || wanted_length == 0)
        return;
    size_t distance = edits(nearest->wanted, wanted_length, name, name_length);
    size_t limit = 1 + (wanted_length > name_length ? wanted_length : name_length) / 3;
    bool begins = strncmp(nearest->wanted, name, wanted_length) == 0;
    /* A word that begins another is near to it whatever its length: --band, --bandwidth. */
    if (begins && wanted_length >= 3 && distance > 2)
        distance = 2;
    if (!begins && distance >= wanted_length)
        return; /* nothing of it would be left */
    if (!begins && distance > 1 && fold(nearest->wanted[0]) != fold(name[0]))
        return; /* few misspell the first letter and another: --nodes is no --model */
    if (distance <= limit && (!nearest->name || distance < nearest->distance)) {
        nearest->name = name;
        nearest->distance = distance;
    }
}

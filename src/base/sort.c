/* SPDX-License-Identifier: MIT */
/*
 * Rows of a recording are nearly in order: work of one stream, a few rows of another one between
 * them. Those are put in their places one by one, and the rest only compared. What is out of order
 * by more than that is sorted by radix, least significant digit first, without the digits that are
 * the same in all keys.
 */
#include "base/sort.h"

#include <string.h>

/* Stable; false where it takes more than a step a row: the rows are then nearer to order. */
static int insert_rows(struct knee_sort_key *keys, size_t count)
{
    size_t steps = count;
    for (size_t i = 1; i < count; i++) {
        struct knee_sort_key row = keys[i];
        size_t at = i;
        for (; at > 0 && row.key < keys[at - 1].key && steps > 0; at--, steps--)
            keys[at] = keys[at - 1];
        keys[at] = row;
        if (steps == 0)
            return 0;
    }
    return 1;
}

enum { BITS = 8 };

void knee_sort(struct knee_sort_key *keys, struct knee_sort_key *scratch, size_t count)
{
    struct knee_sort_key *from = keys, *to = scratch;
    uint64_t differ = 0;
    if (count < 2 || insert_rows(keys, count))
        return;
    for (size_t i = 1; i < count; i++)
        differ |= keys[i].key ^ keys[0].key;
    const uint64_t mask = (1 << BITS) - 1;
    for (int shift = 0; shift < 64; shift += BITS) {
        if (!((differ >> shift) & mask))
            continue;
        size_t start[1 << BITS] = {0}, sum = 0;
        for (size_t i = 0; i < count; i++)
            start[(from[i].key >> shift) & mask]++;
        for (size_t b = 0; b <= mask; b++) {
            size_t here = start[b];
            start[b] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            to[start[(from[i].key >> shift) & mask]++] = from[i];
        struct knee_sort_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, count * sizeof *keys);
}

/* SPDX-License-Identifier: MIT */
/*
 * Least significant byte first radix sort. Bytes that are the same in all keys are not sorted by,
 * so times of one trace, which share their upper bytes, take five passes; sorted input takes none.
 */
#include "base/sort.h"

#include <string.h>

static int is_sorted(const struct knee_sort_key *keys, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (keys[i].key < keys[i - 1].key)
            return 0;
    return 1;
}

void knee_sort(struct knee_sort_key *keys, struct knee_sort_key *scratch, size_t count)
{
    struct knee_sort_key *from = keys, *to = scratch;
    uint64_t differ = 0;
    if (count < 2 || is_sorted(keys, count))
        return;
    for (size_t i = 1; i < count; i++)
        differ |= keys[i].key ^ keys[0].key;
    for (int shift = 0; shift < 64; shift += 8) {
        if (!((differ >> shift) & 0xff))
            continue;
        size_t start[256] = {0}, sum = 0;
        for (size_t i = 0; i < count; i++)
            start[(from[i].key >> shift) & 0xff]++;
        for (size_t b = 0; b < 256; b++) {
            size_t here = start[b];
            start[b] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            to[start[(from[i].key >> shift) & 0xff]++] = from[i];
        struct knee_sort_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, count * sizeof *keys);
}

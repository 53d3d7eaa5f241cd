/* SPDX-License-Identifier: MIT */
/* Sorting rows by a 64-bit key: stable, in time linear in the number of rows. */
#ifndef KNEE_BASE_SORT_H
#define KNEE_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

struct knee_sort_key {
    uint64_t key, row;
};

/* A signed number as a key that sorts alike. */
static inline uint64_t knee_sort_signed(int64_t value)
{
    return (uint64_t)value ^ ((uint64_t)1 << 63);
}

/* Sorts keys[count]; scratch[count] is overwritten. */
void knee_sort(struct knee_sort_key *keys, struct knee_sort_key *scratch, size_t count);

#endif

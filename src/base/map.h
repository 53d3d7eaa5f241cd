/* SPDX-License-Identifier: MIT */
/*
 * Rows by keys. A key is any bytes (a name, integers, both) and is copied; keys are numbered in
 * the order in which they came: 0, 1, and so on. The rows stand in the map, or in an array of the
 * caller's whose count tells whether a key is new. Failure sticks in map->failed. Zeroed is empty;
 * release is idempotent.
 */
#ifndef KNEE_BASE_MAP_H
#define KNEE_BASE_MAP_H

#include "base/hash.h"
#include "base/list.h"

#define KNEE_MAP_NONE UINT32_MAX

struct knee_map {
    const struct knee_alloc *alloc; /* NULL: the C library's */
    struct knee_list keys, bytes, rows;
    size_t begun;    /* bytes of the next key that are there already */
    uint32_t *slots; /* number + 1; at most half of them are taken */
    size_t slot_count;
    struct knee_hash_key chance;
    bool failed;
};

/* Begins the next key with these bytes, or goes on with it. */
void knee_map_part(struct knee_map *map, const void *bytes, size_t length);

/* The number of the key that ends in these bytes, new or known; KNEE_MAP_NONE: no memory, now or
 * before. */
uint32_t knee_map_add(struct knee_map *map, const void *bytes, size_t length);

/* The row of that key, of `size` bytes, zeroed where the key is new; NULL: no memory. It moves
 * when another one is added. */
void *knee_map_row(struct knee_map *map, const void *bytes, size_t length, size_t size);
void knee_map_release(struct knee_map *map);

#endif

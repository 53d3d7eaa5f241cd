/* SPDX-License-Identifier: MIT */
/*
 * Open addressing over numbers of keys. The bytes of all keys stand one after another; a key is
 * put together at their end and stays there if it is new. Hashes are kept, so that growing reads
 * no key again.
 */
#include "base/map.h"

#include "base/text.h"

#include <string.h>

enum { FIRST_SLOTS = 64 };

struct key {
    uint64_t hash;
    size_t at, length; /* in the bytes */
};

static void grow(struct knee_map *map)
{
    const struct key *keys = map->keys.data;
    size_t count = map->slot_count ? 2 * map->slot_count : FIRST_SLOTS;
    uint32_t *slots = knee_resize(map->alloc, map->slots, count * sizeof *slots);
    if (!slots) {
        map->failed = true;
        return;
    }
    if (!map->slots)
        map->chance = knee_hash_key_for(slots);
    map->slots = memset(slots, 0, count * sizeof *slots);
    map->slot_count = count;
    for (uint32_t i = 0; i < map->keys.count; i++) {
        size_t at = (size_t)keys[i].hash;
        while (slots[at & (count - 1)])
            at++;
        slots[at & (count - 1)] = i + 1;
    }
}

void knee_map_part(struct knee_map *map, const void *bytes, size_t length)
{
    size_t used = map->bytes.count + map->begun;
    if (map->failed ||
        !knee_room(map->alloc, &map->bytes.data, &map->bytes.capacity, used + length + 1, 1)) {
        map->failed = true;
        return;
    }
    if (length)
        memcpy((char *)map->bytes.data + used, bytes, length);
    map->begun += length;
}

/* The slot of a key, or the empty one where it belongs. */
static uint32_t *slot_of(const struct knee_map *map, uint64_t hash, const void *bytes,
                         size_t length)
{
    const struct key *keys = map->keys.data;
    for (size_t at = (size_t)hash;; at++) {
        uint32_t *slot = &map->slots[at & (map->slot_count - 1)];
        const struct key *known = *slot ? &keys[*slot - 1] : NULL;
        if (!known || (known->hash == hash && known->length == length &&
                       memcmp((char *)map->bytes.data + known->at, bytes, length) == 0))
            return slot;
    }
}

/* The key, put together, becomes the next one. */
static void keep(struct knee_map *map, uint64_t hash, uint32_t *slot)
{
    struct key *key = map->failed ? NULL : knee_list_add(&map->keys, sizeof *key, map->alloc);
    map->failed = !key;
    if (!key)
        return;
    *key = (struct key){hash, map->bytes.count, map->begun};
    map->bytes.count += map->begun;
    *slot = (uint32_t)map->keys.count;
}

uint32_t knee_map_add(struct knee_map *map, const void *bytes, size_t length)
{
    bool parts = map->begun > 0;
    if (parts)
        knee_map_part(map, bytes, length);
    if (!map->failed && 2 * map->keys.count >= map->slot_count)
        grow(map);
    if (map->failed)
        return KNEE_MAP_NONE;
    const void *key = parts ? (char *)map->bytes.data + map->bytes.count : bytes;
    size_t whole = parts ? map->begun : length;
    uint64_t hash = knee_keyed(map->chance, key, whole);
    uint32_t *slot = slot_of(map, hash, key, whole);
    if (!*slot) {
        if (!parts)
            knee_map_part(map, bytes, length);
        keep(map, hash, slot);
    }
    map->begun = 0;
    return *slot - 1; /* of an empty one: KNEE_MAP_NONE */
}

void *knee_map_row(struct knee_map *map, const void *bytes, size_t length, size_t size)
{
    uint32_t number = knee_map_add(map, bytes, length);
    if (number < map->rows.count)
        return (char *)map->rows.data + number * size;
    void *row = map->failed ? NULL : knee_list_add(&map->rows, size, map->alloc);
    map->failed = !row;
    return row ? memset(row, 0, size) : NULL;
}

void knee_map_release(struct knee_map *map)
{
    knee_list_release(&map->rows, map->alloc);
    knee_list_release(&map->keys, map->alloc);
    knee_list_release(&map->bytes, map->alloc);
    knee_resize(map->alloc, map->slots, 0);
    *map = (struct knee_map){.alloc = map->alloc};
}

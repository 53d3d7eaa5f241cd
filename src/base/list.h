/* SPDX-License-Identifier: MIT */
/*
 * Arrays that grow by doubling. knee_list is a whole list; knee_room is for arrays whose pointer,
 * count and capacity are fields of a public struct.
 */
#ifndef KNEE_BASE_LIST_H
#define KNEE_BASE_LIST_H

#include "knee.h"

struct knee_list {
    void *data;
    size_t count, capacity;
};

/* One more row of `size` bytes, not set; NULL: no memory, and the list is as it was. */
void *knee_list_add(struct knee_list *list, size_t size, const struct knee_alloc *alloc);

/* Hands the data over, shrunk to its count; NULL for an empty list. The list is empty then. */
void *knee_list_take(struct knee_list *list, size_t size, const struct knee_alloc *alloc);
void knee_list_release(struct knee_list *list, const struct knee_alloc *alloc);

/* Room for `wanted` rows of `size` bytes in the array whose pointer, of any type, is at `rows`.
 * False: no memory, and nothing changed. */
bool knee_room(const struct knee_alloc *alloc, void *rows, size_t *capacity, size_t wanted,
               size_t size);

#endif

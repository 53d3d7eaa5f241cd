/* SPDX-License-Identifier: MIT */
#include "base/list.h"

#include "base/text.h"

#include <string.h>

enum { FIRST = 16 };

bool knee_room(const struct knee_alloc *alloc, void *rows, size_t *capacity, size_t wanted,
               size_t size)
{
    void *data;
    if (wanted <= *capacity)
        return true;
    memcpy(&data, rows, sizeof data); /* a pointer of another type: never through a void ** */
    size_t larger = *capacity ? *capacity * 2 : FIRST;
    larger = larger < wanted ? wanted : larger;
    void *grown = knee_resize(alloc, data, larger * size);
    if (!grown)
        return false;
    memcpy(rows, &grown, sizeof grown);
    *capacity = larger;
    return true;
}

void *knee_list_add(struct knee_list *list, size_t size, const struct knee_alloc *alloc)
{
    if (!knee_room(alloc, &list->data, &list->capacity, list->count + 1, size))
        return NULL;
    return (char *)list->data + list->count++ * size;
}

void *knee_list_take(struct knee_list *list, size_t size, const struct knee_alloc *alloc)
{
    void *data = list->data;
    if (data && list->count == 0) {
        knee_list_release(list, alloc);
        return NULL;
    }
    if (data && list->count < list->capacity) {
        void *smaller = knee_resize(alloc, data, list->count * size);
        data = smaller ? smaller : data;
    }
    memset(list, 0, sizeof *list);
    return data;
}

void knee_list_release(struct knee_list *list, const struct knee_alloc *alloc)
{
    knee_resize(alloc, list->data, 0);
    memset(list, 0, sizeof *list);
}

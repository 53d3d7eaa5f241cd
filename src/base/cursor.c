/* SPDX-License-Identifier: MIT */
#include "base/cursor.h"

#include "base/error.h"
#include "base/text.h"

#include <string.h>

void knee_cursor_bytes(struct knee_cursor *c, void *field, size_t size)
{
    if (c->mode == KNEE_READ && (c->bad || size > c->size - c->at)) {
        c->bad = true;
        memset(field, 0, size);
        return;
    }
    if (c->mode == KNEE_READ)
        memcpy(field, c->from + c->at, size);
    else if (c->mode == KNEE_WRITE)
        memcpy(c->to + c->at, field, size);
    c->at += size;
}

void knee_cursor_check(struct knee_cursor *c, bool holds)
{
    c->bad = c->bad || (c->mode == KNEE_READ && !holds);
}

void knee_cursor_check_time(struct knee_cursor *c, int64_t ns)
{
    knee_cursor_check(c, ns >= -1000000000000000000 && ns <= 3000000000000000000);
}

unsigned knee_cursor_small(struct knee_cursor *c, unsigned value, unsigned limit)
{
    unsigned char byte = (unsigned char)value;
    KNEE_FIELD(c, byte);
    knee_cursor_check(c, byte < limit);
    return c->bad ? 0 : byte;
}

void knee_cursor_rows(struct knee_cursor *c, size_t *count, size_t row_size, void **array,
                      size_t in_memory)
{
    uint64_t wide = *count;
    KNEE_FIELD(c, wide);
    if (c->mode != KNEE_READ)
        return;
    *count = 0;
    *array = NULL;
    if (c->bad || wide > (c->size - c->at) / row_size || wide > SIZE_MAX / in_memory) {
        c->bad = true;
        return;
    }
    if (wide == 0)
        return;
    *array = knee_resize(c->alloc, NULL, (size_t)wide * in_memory);
    c->no_memory = c->no_memory || !*array;
    c->bad = c->bad || !*array;
    if (*array) {
        memset(*array, 0, (size_t)wide * in_memory);
        *count = (size_t)wide;
    }
}

void knee_cursor_mark(struct knee_cursor *c, uint64_t mark)
{
    uint64_t first = mark;
    KNEE_FIELD(c, first);
    knee_cursor_check(c, first == mark);
}

knee_status knee_cursor_end(const struct knee_cursor *c, const char *what, struct knee_err *err)
{
    if (!c->bad && c->at == c->size)
        return KNEE_OK;
    if (c->no_memory)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for %s from another process", what);
    return knee_fail(err, KNEE_INPUT, "", "%s from another process is damaged", what);
}

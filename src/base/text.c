/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include "base/format.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void *knee_resize(const struct knee_alloc *alloc, void *ptr, size_t size)
{
    if (!ptr && !size)
        return NULL; /* nothing to free: allocators differ on resize(NULL, 0) */
    if (alloc)
        return alloc->resize(alloc->ctx, ptr, size);
    if (size)
        return realloc(ptr, size);
    free(ptr);
    return NULL;
}

void *knee_zeroed(const struct knee_alloc *alloc, size_t size)
{
    void *memory = knee_resize(alloc, NULL, size);
    return memory ? memset(memory, 0, size) : NULL;
}

void knee_text_release(struct knee_text *text)
{
    knee_resize(text->alloc, text->data, 0);
    text->data = NULL;
    text->length = text->capacity = 0;
    text->failed = false;
}

/* Room for `more` bytes and the NUL, or text->failed. */
static bool reserve(struct knee_text *text, size_t more)
{
    if (text->failed)
        return false;
    if (more >= KNEE_TEXT_CAP - text->length) {
        text->failed = true;
        return false;
    }
    size_t need = text->length + more + 1;
    if (need <= text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity * 2 : 1024;
    while (capacity < need)
        capacity *= 2;
    char *data = knee_resize(text->alloc, text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void knee_text_add(struct knee_text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void knee_text_puts(struct knee_text *text, const char *string)
{
    knee_text_add(text, string, strlen(string));
}

void knee_text_end(struct knee_text *part, struct knee_text *whole)
{
    whole->failed = whole->failed || part->failed;
    knee_text_release(part);
}

void knee_text_move(struct knee_text *part, struct knee_text *whole)
{
    knee_text_add(whole, part->data ? part->data : "", part->length);
    knee_text_end(part, whole);
}

void knee_text_vprintf(struct knee_text *text, const char *fmt, va_list args)
{
    va_list again;
    size_t room = text->capacity - text->length; /* most pieces fit at the first try */
    va_copy(again, args);
    int length = knee_vformat(room ? text->data + text->length : NULL, room, fmt, args);
    if (length < 0 || !reserve(text, (size_t)length)) {
        text->failed = true;
    } else {
        if ((size_t)length >= room)
            knee_vformat(text->data + text->length, (size_t)length + 1, fmt, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void knee_text_printf(struct knee_text *text, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    knee_text_vprintf(text, fmt, args);
    va_end(args);
}

void knee_text_repeat(struct knee_text *text, const char *string, size_t times)
{
    while (times--)
        knee_text_puts(text, string);
}

size_t knee_utf8_length(const char *string)
{
    const unsigned char *u = (const unsigned char *)string;
    size_t length = u[0] < 0x80   ? 1
                    : u[0] < 0xc2 ? 0
                    : u[0] < 0xe0 ? 2
                    : u[0] < 0xf0 ? 3
                    : u[0] < 0xf5 ? 4
                                  : 0;
    for (size_t i = 1; i < length; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    if (length == 3 && ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] >= 0xa0)))
        return 0; /* too long for what it says, or half of a pair */
    if (length == 4 && ((u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] >= 0x90)))
        return 0;
    return length;
}

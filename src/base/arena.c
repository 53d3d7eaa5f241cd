/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include "base/format.h"
#include "base/text.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Each piece is a separate block, so that sanitizers and valgrind see where it ends. */
struct knee_arena_piece {
    struct knee_arena_piece *next;
    max_align_t bytes[];
};

void *knee_arena_take(struct knee_arena *arena, size_t count, size_t size)
{
    struct knee_arena_piece *piece = NULL;
    size_t most = (SIZE_MAX - sizeof *piece) / (size ? size : 1);
    if (!arena->failed && count <= most)
        piece = knee_resize(arena->alloc, NULL, sizeof *piece + count * size);
    if (!piece) {
        arena->failed = true;
        return NULL;
    }
    piece->next = arena->pieces;
    arena->pieces = piece;
    return memset(piece->bytes, 0, count * size);
}

char *knee_arena_printf(struct knee_arena *arena, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int length = knee_vformat(NULL, 0, fmt, args);
    char *text = length < 0 ? NULL : knee_arena_take(arena, (size_t)length + 1, 1);
    if (text)
        knee_vformat(text, (size_t)length + 1, fmt, again);
    va_end(again);
    va_end(args);
    return text;
}

void knee_arena_release(struct knee_arena *arena)
{
    for (struct knee_arena_piece *piece = arena->pieces, *next; piece; piece = next) {
        next = piece->next;
        knee_resize(arena->alloc, piece, 0);
    }
    arena->pieces = NULL;
    arena->failed = false;
}

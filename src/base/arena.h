/* SPDX-License-Identifier: MIT */
/*
 * Memory that is taken in pieces and given back together. Failure sticks in arena->failed, so that
 * a function takes all it needs and looks once. Zeroed is empty; release is idempotent.
 */
#ifndef KNEE_BASE_ARENA_H
#define KNEE_BASE_ARENA_H

#include "base/error.h"

struct knee_arena_piece;
struct knee_arena {
    const struct knee_alloc *alloc; /* NULL: the C library's */
    struct knee_arena_piece *pieces;
    bool failed;
};

/* `count` zeroed things of `size` bytes each; NULL: no memory. */
void *knee_arena_take(struct knee_arena *arena, size_t count, size_t size);
char *knee_arena_printf(struct knee_arena *arena, const char *fmt, ...) KNEE_PRINTF(2, 3);
void knee_arena_release(struct knee_arena *arena);

#endif

/* SPDX-License-Identifier: MIT */
/* The arena: pieces are zeroed and apart, failure sticks until the release, and nothing is left. */
#include "unit.h"

#include "base/arena.h"

TEST(pieces_are_zeroed_and_apart)
{
    struct knee_arena arena = {0};
    unsigned char *pieces[32];
    for (size_t i = 0; i < 32; i++) {
        pieces[i] = knee_arena_take(&arena, i + 1, 3);
        for (size_t k = 0; k < 3 * (i + 1); k++)
            assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], (int)i + 1, 3 * (i + 1));
    }
    for (size_t i = 0; i < 32; i++)
        for (size_t k = 0; k < 3 * (i + 1); k++)
            assert_int_equal(pieces[i][k], i + 1);
    assert_string_equal(knee_arena_printf(&arena, "%s/%d", "rank", 7), "rank/7");
    knee_arena_release(&arena);
    knee_arena_release(&arena);
}

TEST(failure_sticks_until_the_release)
{
    FOR_EACH_FAILURE(f) {
        struct knee_arena arena = {.alloc = &f.alloc};
        knee_arena_take(&arena, 4, 8);
        knee_arena_printf(&arena, "%d", 1);
        void *last = knee_arena_take(&arena, 1, 1);
        assert_true(arena.failed == failing_met(&f));
        assert_true(arena.failed == !last);
        knee_arena_release(&arena);
        assert_false(arena.failed);
    }
}

TEST(sizes_that_no_memory_has_fail)
{
    struct knee_arena arena = {0};
    assert_null(knee_arena_take(&arena, SIZE_MAX / 2, 3));
    assert_true(arena.failed);
    assert_null(knee_arena_take(&arena, 1, 1));
    knee_arena_release(&arena);
    assert_non_null(knee_arena_take(&arena, 1, 0));
    knee_arena_release(&arena);
}

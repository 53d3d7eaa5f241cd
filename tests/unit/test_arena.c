/* SPDX-License-Identifier: MIT */
/* The arena and the map: pieces are zeroed and apart, a key has one number and row, failure sticks
 * until the release, and nothing is left. */
#include "unit.h"

#include "base/arena.h"
#include "base/map.h"

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

/* The third time as two parts; each time the map lies elsewhere, as in a struct that is moved. */
TEST(a_key_keeps_its_number_and_row)
{
    struct knee_map maps[3] = {{0}}, *map = maps;
    for (int64_t i = 0; i < 3000; i++) {
        int64_t key[] = {i % 1000, -(i % 1000)};
        map = &maps[i % 3];
        *map = maps[(i + 2) % 3];
        if (i >= 2000)
            knee_map_part(map, key, sizeof *key);
        int64_t *row = i < 2000 ? knee_map_row(map, key, sizeof key, sizeof *row)
                                : knee_map_row(map, key + 1, sizeof *key, sizeof *row);
        assert_int_equal(*row, i / 1000);
        ++*row;
    }
    assert_int_equal(map->rows.count, 1000);
    assert_int_equal(knee_map_add(map, "", 0), 1000);
    assert_int_equal(knee_map_add(map, "a\0b", 3), 1001);
    assert_int_equal(knee_map_add(map, "a\0c", 3), 1002);
    assert_int_equal(knee_map_add(map, "", 0), 1000);
    knee_map_release(map);
    knee_map_release(map);
}

TEST(a_map_without_memory_stays_so)
{
    FOR_EACH_FAILURE(f) {
        struct knee_map map = {.alloc = &f.alloc};
        void *row = NULL;
        for (int i = 0; i < 200; i++)
            row = knee_map_row(&map, &i, sizeof i, sizeof i);
        assert_true(map.failed == failing_met(&f));
        assert_true(map.failed == !row);
        assert_int_equal(knee_map_add(&map, "more", 4) == KNEE_MAP_NONE, map.failed);
        knee_map_release(&map);
        assert_false(map.failed);
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

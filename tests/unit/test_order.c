/* SPDX-License-Identifier: MIT */
/* Rows in order: the same order by every way to sort, and the value that a sorted list would have.
 */
#include "unit.h"

#include "base/order.h"
#include "base/sort.h"

enum { MOST = 9000 };

/* Keys that are in order, nearly, in blocks, backwards, many alike, of any size. */
static uint64_t key_of(int shape, size_t i, uint64_t chance)
{
    const uint64_t shapes[] = {i,
                               i % 50 ? 7 * i : 7 * i + 100,
                               (i % 90) * 1000 + i / 90,
                               MOST - i,
                               chance % 5,
                               chance >> 1,
                               i ? 5 : 9e9,
                               chance & (uint64_t)0xff00ff0000ff0};
    return shapes[shape];
}

static int by_key_and_row(const void *left, const void *right)
{
    const struct knee_sort_key *a = left, *b = right;
    return a->key != b->key ? KNEE_COMPARE(a->key, b->key) : KNEE_COMPARE(a->row, b->row);
}

TEST(rows_of_equal_keys_stay_in_order)
{
    static struct knee_sort_key keys[2 * MOST], want[MOST];
    static double values[MOST];
    uint64_t chance = 1;
    for (int shape = 0; shape < 8; shape++)
        for (size_t count = 1; count <= MOST; count = 3 * count + 1) {
            for (size_t i = 0; i < count; i++) {
                chance = chance * 6364136223846793005u + 1442695040888963407u;
                keys[i] = want[i] = (struct knee_sort_key){key_of(shape, i, chance), i};
                values[i] = (double)(int64_t)want[i].key;
            }
            knee_sort(keys, keys + MOST, count);
            qsort(want, count, sizeof *want, by_key_and_row);
            assert_memory_equal(keys, want, count * sizeof *want);
            const size_t ranks[] = {0, count / 50, count / 2, count - 1};
            for (size_t k = 0; k < 4; k++)
                assert_true(knee_at_rank(values, count, ranks[k]) ==
                            (double)(int64_t)want[ranks[k]].key);
        }
}

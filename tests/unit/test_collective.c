/* SPDX-License-Identifier: MIT */
/* Costs of all-reduce: hand-computed values, lower bounds, and two levels. */
#include "unit.h"

#include "collective/collective.h"

static const struct knee_fabric flat = {.node_size = 1, .in = {1, 1}, .out = {1, 1}};

/* alpha = 1 s, B = 1 byte/s, S = 12 bytes: counted on paper. */
static void hand_computed_values(void **state)
{
    (void)state;
    static const struct {
        const struct knee_algorithm *algorithm;
        double workers, seconds;
    } cases[] = {
        {&knee_ring, 2, 2 + 12},
        {&knee_ring, 3, 4 + 16},
        {&knee_ring, 4, 6 + 18},
        {&knee_tree, 2, 2 + 24},
        {&knee_tree, 3, 4 + 24},
        {&knee_tree, 8, 6 + 24},
        {&knee_recursive_doubling, 2, 13},
        {&knee_recursive_doubling, 3, 39},
        {&knee_recursive_doubling, 8, 39},
        {&knee_halving_doubling, 2, 2 + 12},
        {&knee_halving_doubling, 4, 4 + 18},
        {&knee_halving_doubling, 6, 4 + 18 + 26},
        {&knee_hierarchical, 4, 6 + 18},
        {&knee_sparse_gather, 4, 3 * 13},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_near(cases[i].algorithm->time_s(&flat, cases[i].workers, 12), cases[i].seconds,
                    1e-12);
}

/* No all-reduce can move less than 2 (K-1)/K S per worker, nor take fewer than log2 K hops. */
static void never_below_the_lower_bounds(void **state)
{
    (void)state;
    for (double k = 2; k <= 1024; k++)
        for (size_t row = 0; knee_algorithm_at(row); row++) {
            const struct knee_algorithm *a = knee_algorithm_at(row);
            if (a->gathers)
                continue;
            struct knee_fabric bytes = flat, hops = flat;
            bytes.out.latency_s = bytes.in.latency_s = 0;
            hops.out.bytes_per_s = hops.in.bytes_per_s = 1e30;
            double least = a == &knee_recursive_doubling ? 1 : 2 * (k - 1) / k;
            assert_true(a->time_s(&bytes, k, 1) >= least * (1 - 1e-12));
            assert_true(a->time_s(&hops, k, 1) >= floor(log2(k)));
        }
}

static void two_levels_by_hand(void **state)
{
    (void)state;
    /* 2 nodes of 4; in the node 1 us and 100 B/s, each worker's NIC 10 us and 10 B/s. */
    const struct knee_fabric f = {.node_size = 4, .in = {1e-6, 100}, .out = {1e-5, 10}};
    /* Ring over 4 rails: 40 B/s; 14 hops, 2 of them out. */
    assert_near(knee_ring.time_s(&f, 8, 400), 2 * 1e-5 + 12 * 1e-6 + 2 * 7.0 / 8 * 400 / 40, 1e-9);
    /* In the node 6 hops and 2*3/4*400/100; between nodes 2 hops and 2*1/2*100/10. */
    assert_near(knee_hierarchical.time_s(&f, 8, 400), 6e-6 + 6 + 2e-5 + 10, 1e-9);
    /* Inside one node no NIC matters. */
    assert_near(knee_ring.time_s(&f, 4, 400), 6e-6 + 6, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hand_computed_values),
        cmocka_unit_test(never_below_the_lower_bounds),
        cmocka_unit_test(two_levels_by_hand),
    };
    return RUN(tests);
}

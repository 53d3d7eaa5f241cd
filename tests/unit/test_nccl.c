/* SPDX-License-Identifier: MIT */
/* NCCL's choice: estimates computed by hand from its published constants, and the regimes they
 * give. */
#include "unit.h"

static struct knee_nccl_choice choose(const char *cluster, double ranks, double per_node,
                                      enum knee_op op, double bytes)
{
    struct knee_cluster t;
    struct knee_placement placement = {ranks, per_node, 1, 1};
    struct knee_layout layout;
    struct knee_err err;
    if (knee_cluster_parse(cluster, &t, &err) || knee_layout_init(&t, &placement, &layout, &err))
        fail_msg("%s: %s", cluster, err.what);
    return knee_nccl_choose(&t, &layout, op, bytes);
}

TEST(estimates_by_hand)
{
    /* 8 A100, 1 KiB: ring LL 6.6 + 14 x 0.6 us = tree LL 6.8 + 2 x 7 x 0.6 - 0.2 us; 1 KiB at
     * min(87.7, 240/2) x 8/14 GB/s. */
    struct knee_nccl_choice c = choose("8xa100", 8, NAN, KNEE_OP_ALL_REDUCE, 1024);
    assert_string_equal(c.algorithm, "RING");
    assert_string_equal(c.protocol, "LL");
    assert_near(c.time_s, (6.6 + 14 * 0.6 + 1024 / (1e3 * 87.7 * 8 / 14)) * 1e-6, 1e-12);
    /* Two of them: 6.6 + 0.6 us for an all-gather of one hop, at 87.7 x 2/1 GB/s. */
    c = choose("8xa100", 2, NAN, KNEE_OP_ALL_GATHER, 4096);
    assert_near(c.time_s, (6.6 + 0.6 + 4096 / (1e3 * 87.7 * 2)) * 1e-6, 1e-12);
    /* Two nodes of eight: 14 hops inside, not below the 1 us that the proxy takes, and one of 2.7
     * us between, at 22.5 x 16/15 GB/s. */
    c = choose("8xa100 * 0 @ ib200x8", 16, NAN, KNEE_OP_ALL_GATHER, 1024);
    assert_near(c.time_s, (6.6 + 14 * 1 + 2.7 + 1024 / (1e3 * 22.5 * 16 / 15)) * 1e-6, 1e-12);
    /* Large and alone: ring Simple, 8.4 + 14 x 3.4 us at 240 x 8/14 GB/s. */
    c = choose("8xa100", 8, NAN, KNEE_OP_ALL_REDUCE, 1e9);
    assert_string_equal(c.algorithm, "RING");
    assert_string_equal(c.protocol, "SIMPLE");
    assert_near(c.time_s, (8.4 + 14 * 3.4 + 1e9 / (1e3 * 240 * 8 / 14)) * 1e-6, 1e-9);
}

TEST(regimes)
{
    static const struct {
        const char *cluster;
        double ranks, per_node;
        enum knee_op op;
        double bytes;
        const char *algorithm, *protocol;
    } cases[] = {
        {"8xh100", 8, NAN, KNEE_OP_ALL_REDUCE, 1e9, "NVLS", "SIMPLE"},
        {"8xa100", 8, NAN, KNEE_OP_REDUCE_SCATTER, 1e9, "RING", "SIMPLE"},
        {"8xh100 * 0", 16, NAN, KNEE_OP_ALL_REDUCE, 8, "TREE", "LL"},
        {"8xh100 * 0", 16, NAN, KNEE_OP_ALL_REDUCE, 4e9, "NVLS_TREE", "SIMPLE"},
        {"8xa100 * 0 @ ib200x8", 64, NAN, KNEE_OP_ALL_REDUCE, 1024, "TREE", "LL"},
        {"8xa100 * 0 @ ib200x8", 64, NAN, KNEE_OP_ALL_REDUCE, 8e9, "RING", "SIMPLE"},
        {"8xa100 * 0 @ efa100x4", 16, NAN, KNEE_OP_ALL_REDUCE, 4e9, "TREE", "SIMPLE"},
        {"8xh100 * 0", 16, NAN, KNEE_OP_BROADCAST, 1024, "RING", "LL"},
        {"8xh100 * 0", 64, 1, KNEE_OP_ALL_GATHER, 1024, "PAT", "SIMPLE"},
        {"8xh100 * 0", 4, 1, KNEE_OP_ALL_GATHER, 1024, "RING", "LL"},
        {"8xh100 * 0", 16, NAN, KNEE_OP_ALL_TO_ALL, 1024, "P2P", "LL"},
        {"8xh100 * 0", 16, NAN, KNEE_OP_ALL_TO_ALL, 1e9, "P2P", "SIMPLE"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_nccl_choice c = choose(cases[i].cluster, cases[i].ranks, cases[i].per_node,
                                           cases[i].op, cases[i].bytes);
        if (!c.algorithm || strcmp(c.algorithm, cases[i].algorithm) != 0 ||
            strcmp(c.protocol, cases[i].protocol) != 0)
            fail_msg("%s, %g ranks, %s of %g bytes: %s/%s", cases[i].cluster, cases[i].ranks,
                     knee_op_name(cases[i].op), cases[i].bytes, c.algorithm, c.protocol);
    }
    /* PCIe has no LL128; another maker's GPU is not NCCL's business. */
    for (double bytes = 8; bytes < 1e10; bytes *= 2)
        assert_string_not_equal(choose("8xh100-pcie", 8, NAN, KNEE_OP_ALL_REDUCE, bytes).protocol,
                                "LL128");
    assert_null(choose("8xmi300x", 8, NAN, KNEE_OP_ALL_REDUCE, 1e6).algorithm);
}

/* Larger never takes a quicker estimate: the least of lines that rise. */
TEST(estimates_rise)
{
    static const char *const clusters[] = {"8xh100 * 0", "8xb200 * 0", "8xa100 * 0", "8xv100 * 0"};
    for (size_t i = 0; i < 4; i++)
        for (double ranks = 8; ranks <= 1024; ranks *= 2) {
            double last = 0;
            for (double bytes = 8; bytes <= 1e11; bytes *= 4) {
                struct knee_nccl_choice c =
                    choose(clusters[i], ranks, NAN, KNEE_OP_ALL_GATHER, bytes);
                assert_true(c.time_s >= last);
                last = c.time_s;
            }
        }
}

/* SPDX-License-Identifier: MIT */
/* The one price: hand-computed values, lower bounds, groups on two levels, lines against counts. */
#include "unit.h"

#include "base/format.h"
#include "cluster/hardware.h"
#include "collective/collective.h"

/* alpha and B of every hop, n GPUs to a node. */
static struct knee_cluster textbook(double alpha_s, double bytes_per_s)
{
    struct knee_hardware hw;
    struct knee_cluster cluster;
    knee_hardware_init(&hw);
    hw.latency_s = hw.node_latency_s = alpha_s;
    hw.bandwidth_bytes_per_s = hw.node_bandwidth_bytes_per_s = bytes_per_s;
    hw.gpus_per_node = 1;
    knee_hardware_cluster(&hw, &cluster);
    return cluster;
}

static struct knee_cluster preset(const char *name)
{
    struct knee_cluster cluster;
    struct knee_err err;
    if (knee_cluster_word(name, "", &cluster, &err))
        fail_msg("%s", err.what);
    return cluster;
}

static double all_reduce_s(const struct knee_cluster *cluster, double ranks, double bytes,
                           const struct knee_algorithm *algorithm)
{
    struct knee_group all = {ranks, 1, true};
    return knee_collective_s(cluster, KNEE_OP_ALL_REDUCE, all, bytes, algorithm);
}

/* alpha = 1 s, B = 1 byte/s, S = 12 bytes: counted on paper. */
TEST(hand_computed_values)
{
    static const struct {
        const struct knee_algorithm *algorithm;
        double workers, seconds;
    } cases[] = {
        {NULL, 4, 6 + 18}, /* the textbook's is a ring */
        {&knee_ring, 2, 2 + 12},
        {&knee_ring, 3, 4 + 16},
        {&knee_ring, 4, 6 + 18},
        {&knee_tree, 2, 2 + 12},
        {&knee_tree, 8, 6 + 24},
        {&knee_recursive_doubling, 2, 13},
        {&knee_recursive_doubling, 8, 39},
        {&knee_halving_doubling, 2, 2 + 12},
        {&knee_halving_doubling, 4, 4 + 18},
        {&knee_hierarchical, 4, 6 + 18}, /* nothing to stage on one level: a ring */
        {&knee_sparse_gather, 4, 3 * 13},
    };
    struct knee_cluster flat = textbook(1, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_near(all_reduce_s(&flat, cases[i].workers, 12, cases[i].algorithm), cases[i].seconds,
                    1e-12);
}

/* No all-reduce can move less than 2 (K-1)/K S per worker, nor take fewer than log2 K hops. */
TEST(never_below_the_lower_bounds)
{
    struct knee_cluster bytes = textbook(0, 1), hops = textbook(1, 1e30);
    for (double k = 2; k <= 1024; k++)
        for (size_t row = 0; knee_algorithm_at(row); row++) {
            const struct knee_algorithm *a = knee_algorithm_at(row);
            if (a->gathers)
                continue;
            bool split = a != &knee_recursive_doubling && (a != &knee_tree || k > 3);
            double least = split ? 2 * (k - 1) / k : 1;
            assert_true(all_reduce_s(&bytes, k, 1, a) >= least * (1 - 1e-12));
            assert_true(all_reduce_s(&hops, k, 1, a) >= floor(log2(k)));
        }
}

TEST(two_levels_by_hand)
{
    /* 2 nodes of 4; in the node 1 us and 100 B/s, each worker's NIC 10 us and 10 B/s. */
    struct knee_cluster f = textbook(1e-5, 10);
    f.levels[0].count = f.levels[1].ports = 4;
    f.levels[0].latency_s = 1e-6;
    f.levels[0].bytes_per_s = 100;
    /* Ring over 4 rails: 40 B/s; 14 hops, 4 of them out: one into each node, twice round. */
    assert_near(all_reduce_s(&f, 8, 400, NULL), 4 * 1e-5 + 10 * 1e-6 + 2 * 7.0 / 8 * 400 / 40,
                1e-9);
    /* In the node 6 hops and 2*3/4*400/100; between nodes 2 hops and 2*1/2*100/10. */
    assert_near(all_reduce_s(&f, 8, 400, &knee_hierarchical), 6e-6 + 6 + 2e-5 + 10, 1e-9);
    /* Inside one node no NIC matters. */
    assert_near(all_reduce_s(&f, 4, 400, NULL), 6e-6 + 6, 1e-9);
    /* Rails: 2 ranks, one in each node, all four rails at once: a rank's own NIC. */
    struct knee_group rail = {2, 4, false};
    assert_near(knee_collective_s(&f, KNEE_OP_ALL_REDUCE, rail, 400, NULL), 2e-5 + 40, 1e-9);
    /* All-gather over two nodes of two members each: half of the NICs. */
    struct knee_group half = {4, 2, false};
    assert_near(knee_collective_s(&f, KNEE_OP_ALL_GATHER, half, 400, NULL),
                2e-5 + 1e-6 + 0.75 * 400 / 20, 1e-9);
}

/* Groups that do not divide a node: one of them straddles its end and pays the network. */
TEST(what_straddles_a_node_pays_the_network)
{
    struct knee_cluster c = preset("dgx-h100");
    for (double size = 2; size <= 8; size++) {
        struct knee_group group = {size, 1, false}, alone = {size, 1, true};
        double slow = knee_collective_s(&c, KNEE_OP_ALL_GATHER, group, 1e9, NULL);
        double fast = knee_collective_s(&c, KNEE_OP_ALL_GATHER, alone, 1e9, NULL);
        if (fmod(8, size) == 0)
            assert_near(slow, fast, 0);
        else
            assert_true(slow > 1.2 * fast);
    }
    struct knee_cluster rack = preset("gb200-nvl72"); /* trays can stay idle */
    struct knee_group group = {32, 1, false}, alone = {32, 1, true};
    assert_near(knee_collective_s(&rack, KNEE_OP_ALL_GATHER, group, 1e9, NULL),
                knee_collective_s(&rack, KNEE_OP_ALL_GATHER, alone, 1e9, NULL), 0);
}

/* A pipeline pays the network as soon as one of its hops leaves a node; less bandwidth is never
 * free. */
TEST(hops_between_stages)
{
    struct knee_cluster c = preset("dgx-h100"), slow = c;
    slow.levels[1].bytes_per_s /= 1000;
    for (double stride = 1; stride <= 16; stride *= 2)
        for (double stages = 2; stages <= 32; stages *= 2) {
            struct knee_group group = {stages, stride, false};
            double fast_s = knee_collective_s(&c, KNEE_OP_SEND_RECV, group, 1e8, NULL),
                   slow_s = knee_collective_s(&slow, KNEE_OP_SEND_RECV, group, 1e8, NULL);
            if (stages * stride <= 8)
                assert_near(slow_s, fast_s, 0);
            else
                assert_true(slow_s > 100 * fast_s);
        }
    assert_near(
        knee_collective_s(&c, KNEE_OP_SEND_RECV, (struct knee_group){1, 8, false}, 1e8, NULL), 0,
        0);
}

/* The price of a group that fills nodes is what knee collective expects, for every collective. */
TEST(a_price_is_what_a_sweep_expects)
{
    for (size_t row = 0; knee_cluster_preset_at(row); row++) {
        struct knee_cluster c = preset(knee_cluster_preset_at(row)->name);
        for (int op = KNEE_OP_ALL_REDUCE; op < KNEE_OPS; op++)
            for (double ranks = 2; ranks <= 4096; ranks *= 2)
                for (double bytes = 64; bytes < 1e10; bytes *= 31) {
                    struct knee_placement p = {ranks, NAN, 1, 1};
                    struct knee_layout layout;
                    if (op == KNEE_OP_ALL_TO_ALLV || knee_layout_init(&c, &p, &layout, NULL))
                        continue;
                    struct knee_group all = {ranks, 1, true};
                    double want =
                        knee_model_time_s(&c, &layout, (enum knee_op)op, bytes, NULL, NULL);
                    double got = knee_collective_s(&c, (enum knee_op)op, all, bytes, NULL);
                    if (fabs(got / want - 1) <= 1e-9) /* and the lines that searches ask */
                        got = knee_expected_time_s(&c, &layout, (enum knee_op)op, bytes);
                    if (isnan(want) ? !isnan(got) : fabs(got / want - 1) > 1e-9)
                        fail_msg("%s %s %g ranks %g bytes: %g, not %g", c.name,
                                 knee_op_name((enum knee_op)op), ranks, bytes, got, want);
                }
    }
}

/* More bytes, more ranks in whole nodes, less bandwidth, more latency: never cheaper. */
TEST(prices_are_monotone)
{
    uint64_t dice = 5;
    for (int i = 0; i < 4000; i++) {
        size_t rows = 0;
        while (knee_cluster_preset_at(rows))
            rows++;
        struct knee_cluster c =
            preset(knee_cluster_preset_at((size_t)(chance(&dice) * (double)rows))->name);
        enum knee_op op = i % 3 == 0   ? KNEE_OP_ALL_REDUCE
                          : i % 3 == 1 ? KNEE_OP_ALL_GATHER
                                       : KNEE_OP_ALL_TO_ALL;
        double bytes = exp(between(&dice, 4, 24));
        struct knee_group group = {exp2(ceil(11 * chance(&dice))), exp2(floor(6 * chance(&dice))),
                                   chance(&dice) < 0.3};
        double price = knee_collective_s(&c, op, group, bytes, NULL);
        assert_true(price > 0);
        assert_true(knee_collective_s(&c, op, group, 1.1 * bytes, NULL) >= price);
        struct knee_cluster worse[4] = {c, c, c, c};
        worse[0].levels[0].bytes_per_s *= 0.7;
        worse[1].levels[1].bytes_per_s *= 0.7;
        worse[2].levels[0].latency_s *= 1.5;
        worse[3].levels[1].latency_s *= 1.5;
        for (int k = 0; k < 4; k++)
            assert_true(knee_collective_s(&worse[k], op, group, bytes, NULL) >=
                        price * (1 - 1e-12));
    }
}

/* On PCIe a GPU sends to neighbours and to other nodes through one port, on NVLink through two. */
TEST(pcie_has_one_port_for_both)
{
    struct knee_group group = {16, 1, true};
    double bytes = 8e9, sent = 15.0 / 16 * bytes * (1 / 0.83);
    struct knee_cluster c = preset("pcie-rtx-pro-6000");
    c.levels[1].ports = 8; /* faster than the port */
    c.levels[1].bytes_per_s = 1e12;
    double time_s = knee_collective_s(&c, KNEE_OP_ALL_TO_ALL, group, bytes, NULL);
    assert_relative(time_s, sent / c.levels[0].bytes_per_s, 0.01);
    knee_format(c.levels[0].name, sizeof c.levels[0].name, "nvlink4");
    double apart_s = knee_collective_s(&c, KNEE_OP_ALL_TO_ALL, group, bytes, NULL);
    assert_relative(apart_s, 7.0 / 15 * time_s, 0.01);
}

/* Over Slingshot NCCL runs LL and Simple only. Inside a node LL128 stays. */
TEST(ll128_needs_an_ordered_network)
{
    struct knee_cluster c = preset("alps"), other = c;
    knee_format(other.levels[1].name, sizeof other.levels[1].name, "ib200");
    struct knee_group two_nodes = {8, 1, true}, one_node = {4, 1, true};
    double bytes = 512 * 1024;
    assert_true(knee_collective_s(&c, KNEE_OP_ALL_REDUCE, two_nodes, bytes, NULL) >
                1.2 * knee_collective_s(&other, KNEE_OP_ALL_REDUCE, two_nodes, bytes, NULL));
    assert_near(knee_collective_s(&c, KNEE_OP_ALL_REDUCE, one_node, bytes, NULL),
                knee_collective_s(&other, KNEE_OP_ALL_REDUCE, one_node, bytes, NULL), 0);
}

/* Up a double tree and down again, over however many levels of switches, it is as many hops as the
 * tree of nodes is deep. */
TEST(a_tree_is_as_deep_over_many_levels)
{
    struct knee_cluster c;
    struct knee_err err;
    assert_int_equal(knee_cluster_parse("8xh100 * 16 @ ib400 * 4 @ spine/2", &c, &err), KNEE_OK);
    for (double ranks = 16; ranks <= 512; ranks *= 2) {
        struct knee_layout layout;
        struct knee_counts counts = {0};
        double hops = 0;
        knee_group_layout(&c, (struct knee_group){ranks, 1, true}, &layout);
        knee_count_double_tree(&layout, 1, &counts);
        for (size_t l = 1; l < layout.levels; l++)
            hops += counts.hops[l];
        assert_near(hops, 2 * log2(ranks / 8), 1e-9);
    }
}

/* A tree is a pipeline: a small buffer gets a share of its rate, a large one waits until it is
 * full. */
TEST(a_tree_fills)
{
    struct knee_cluster c = preset("dgx-a100");
    struct knee_layout layout;
    knee_group_layout(&c, (struct knee_group){16, 1, true}, &layout);
    for (enum knee_protocol_name p = KNEE_LL; p < KNEE_PROTOCOLS; p++) {
        struct knee_fill fill = knee_tree.fill[p];
        struct knee_counts none = {0}, some = {0};
        double sizes[] = {1024, 1e10};
        knee_tree.count(&layout, KNEE_OP_ALL_REDUCE, 0, &none);
        double start_s = knee_line_s(&c, &layout, &none, &knee_tree, p);
        for (size_t i = 0; i < 2; i++) {
            knee_tree.count(&layout, KNEE_OP_ALL_REDUCE, sizes[i], &some);
            double full_s = knee_line_s(&c, &layout, &some, &knee_tree, p) - start_s;
            double want = i && fill.bytes > 0 ? 1 + fill.bytes / sizes[i] : 1 / fill.share;
            assert_relative(knee_counts_time_s(&c, &layout, &some, &knee_tree, p),
                            start_s + want * full_s, 1e-9);
        }
    }
}

/* Halving cannot gather, and shares out a sum only among a power of two; else it is a ring. */
TEST(halving_does_what_it_can)
{
    struct knee_cluster c = textbook(1, 1);
    static const struct {
        enum knee_op op;
        double ranks, s;
    } rows[] = {{KNEE_OP_REDUCE_SCATTER, 8, 3 + 7},
                {KNEE_OP_REDUCE_SCATTER, 6, 5 + 5},
                {KNEE_OP_ALL_GATHER, 8, 7 + 7}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct knee_group all = {rows[i].ranks, 1, true};
        assert_near(knee_collective_s(&c, rows[i].op, all, rows[i].ranks, &knee_halving_doubling),
                    rows[i].s, 1e-9);
    }
}

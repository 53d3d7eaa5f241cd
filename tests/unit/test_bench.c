/* SPDX-License-Identifier: MIT */
/* What of knee bench is no measurement: statistics, lines, schedules, expectations, verdicts. */
#include "bench/bench.h"
#include "bench/bench_pairs.h"
#include "cluster/cluster.h"
#include "collective/collective.h"
#include "ranks.h"
#include "reach/exchange.h"

#include "unit.h"

TEST(quantiles_and_median)
{
    double values[] = {5, 1, 4, 2, 3};
    struct knee_spread spread = knee_spread_of(values, 5);
    assert_near(spread.median_s, 3, 0);
    assert_near(spread.min_s, 1, 0);
    assert_near(spread.max_s, 5, 0);
    assert_near(spread.p95_s, 4.8, 1e-12);
    double even[] = {4, 1, 3, 2};
    assert_near(knee_median(even, 4), 2.5, 0);
    assert_true(isnan(knee_median(even, 0)));
    double one[] = {7};
    spread = knee_spread_of(one, 1);
    assert_near(spread.p95_s, 7, 0);
    assert_false(spread.two_modes);
}

TEST(two_modes_are_seen_and_one_is_not)
{
    uint64_t seed = 7;
    for (int trial = 0; trial < 200; trial++) {
        double one[20], two[20], tail[20];
        for (int i = 0; i < 20; i++) {
            one[i] = 1 + 0.05 * chance(&seed);
            two[i] = (i % 3 ? 1 : 1.5) * (1 + 0.05 * chance(&seed));
            tail[i] = 1 + 0.05 * chance(&seed) + (i == 19 ? 5 : 0); /* one bad run is no mode */
        }
        assert_false(knee_spread_of(one, 20).two_modes);
        assert_false(knee_spread_of(tail, 20).two_modes);
        struct knee_spread spread = knee_spread_of(two, 20);
        assert_true(spread.two_modes);
        assert_near(spread.fast_s, 1.025, 0.03);
        assert_near(spread.slow_s, 1.54, 0.05);
        assert_near(spread.slow_share, 0.35, 1e-9);
    }
}

TEST(a_line_is_recovered)
{
    uint64_t seed = 3;
    for (int trial = 0; trial < 300; trial++) {
        double alpha = between(&seed, 1e-6, 1e-2), beta = 1 / between(&seed, 1e6, 1e11);
        double hops = between(&seed, 1, 100), share = between(&seed, 0.5, 4), bytes = 256;
        struct knee_point points[10];
        struct knee_line line;
        for (int i = 0; i < 10; i++, bytes *= 8)
            points[i] =
                (struct knee_point){hops, share * bytes, hops * alpha + share * bytes * beta};
        assert_true(knee_line_fit(points, 10, &line));
        assert_relative(line.alpha_s, alpha, 1e-4);
        assert_relative(line.s_per_byte, beta, 1e-4);
        assert_true(line.worst < 1e-6);
        for (int i = 0; i < 10; i++)
            points[i].time_s *= 1 + 0.02 * (chance(&seed) - 0.5);
        assert_true(knee_line_fit(points, 10, &line));
        assert_true(line.worst < 0.03);
    }
    struct knee_line line;
    struct knee_point same[] = {{1, 8, 1}, {1, 8, 1.1}};
    assert_false(knee_line_fit(same, 2, &line));
    assert_false(knee_line_fit(same, 1, &line));
}

/* Every collective by hand on small buffers, against the closed form of each element. */
TEST(expected_output_is_what_the_collective_means)
{
    for (int size = 1; size <= 16; size++)
        for (size_t share = 1; share <= 5; share++) {
            size_t count = share * (size_t)size;
            for (int rank = 0; rank < size; rank++)
                for (size_t i = 0; i < count; i++) {
                    float sum = 0;
                    for (int r = 0; r < size; r++)
                        sum += knee_bench_input(r, i);
                    assert_true(knee_bench_output(KNEE_OP_ALL_REDUCE, rank, size, count, i) == sum);
                    if (i / share == (size_t)rank)
                        assert_true(knee_bench_output(KNEE_OP_REDUCE_SCATTER, rank, size, count,
                                                      i % share) == sum);
                    int from = (int)(i / share);
                    assert_true(knee_bench_output(KNEE_OP_ALL_GATHER, rank, size, count, i) ==
                                knee_bench_input(from, i % share));
                    /* what `rank` sent to `from` stands at rank's place there */
                    assert_true(knee_bench_output(KNEE_OP_ALL_TO_ALL, from, size, count,
                                                  (size_t)rank * share + i % share) ==
                                knee_bench_input(rank, i));
                    if (i / share == (size_t)rank)
                        assert_true(knee_bench_output(KNEE_OP_SCATTER, rank, size, count,
                                                      i % share) == knee_bench_input(0, i));
                }
        }
    assert_int_equal(knee_bench_in(KNEE_OP_GATHER, 1, 4, 8), 2);
    assert_int_equal(knee_bench_out(KNEE_OP_GATHER, 1, 4, 8), 0);
    assert_int_equal(knee_bench_out(KNEE_OP_GATHER, 0, 4, 8), 8);
}

/* Neighbouring inputs differ, or a mix-up of ranks or places would pass unseen. */
TEST(inputs_tell_ranks_and_places_apart)
{
    for (int rank = 0; rank < 40; rank++)
        for (size_t i = 0; i < 40; i++) {
            assert_true(knee_bench_input(rank, i) != knee_bench_input(rank + 1, i));
            assert_true(knee_bench_input(rank, i) != knee_bench_input(rank, i + 1));
        }
}

/* The costs of our own algorithms are those of the cost table, where it has the same one. */
TEST(costs_are_those_of_the_table)
{
    static const struct {
        const char *name;
        const struct knee_algorithm *table;
    } rows[] = {{"ring", &knee_ring},
                {"recursive-doubling", &knee_recursive_doubling},
                {"halving-doubling", &knee_halving_doubling}};
    struct knee_line wire = {1e-3, 1 / 12.5e6, 0};
    struct knee_cluster flat;
    knee_cluster_plain(&flat);
    flat.levels[1].latency_s = 1e-3;
    flat.levels[1].bytes_per_s = 12.5e6;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int ranks = 2; ranks <= 40; ranks++) {
            const struct knee_exchange *e = knee_exchange_find(rows[i].name, KNEE_OP_ALL_REDUCE);
            double ours_s = knee_bench_expected_s(KNEE_OP_ALL_REDUCE, e, ranks, 1e6, &wire);
            struct knee_group all = {ranks, 1, true};
            double table_s = knee_collective_s(&flat, KNEE_OP_ALL_REDUCE, all, 1e6, rows[i].table);
            /* Ranks that fold into a power of two wait for whole rounds here; the table lets the
             * result go back while the last exchange is under way. */
            bool folds =
                rows[i].table == &knee_recursive_doubling && exp2(rint(log2(ranks))) != ranks;
            assert_true(folds ? ours_s >= table_s && ours_s <= 1.5 * table_s
                              : fabs(ours_s / table_s - 1) < 1e-12);
        }
    assert_true(isnan(knee_bench_expected_s(KNEE_OP_ALL_REDUCE, NULL, 1, 8, &wire)));
}

struct one_run {
    const struct knee_exchange *exchange;
    size_t count;
};

static void run_exchange(struct knee_runtime *rt, void *ctx)
{
    const struct one_run *run = ctx;
    float *data = calloc(2 * run->count, sizeof *data);
    bool good = run->exchange->run(rt, data, data + run->count, run->count);
    free(data);
    if (!good)
        abort();
}

/* Hops and shares are those of the messages that are really sent, by a clock that only they move.
 */
TEST(costs_are_those_of_the_messages)
{
    for (size_t i = 0; i < knee_exchange_count; i++)
        for (int ranks = 2; ranks <= RANKS_MAX; ranks++) {
            struct one_run run = {&knee_exchanges[i], 840}; /* whatever the ranks, in equal parts */
            double bytes = 840 * sizeof(float);
            double hops_s = on_wires(ranks, 1, 0, run_exchange, &run);
            double share_s = on_wires(ranks, 0, 1 / bytes, run_exchange, &run);
            double both_s = on_wires(ranks, 1, 100 / bytes, run_exchange, &run);
            assert_relative(run.exchange->hops(ranks), hops_s, 1e-12);
            assert_relative(run.exchange->share(ranks), share_s, 1e-12);
            assert_relative(hops_s + 100 * share_s, both_s, 0.01);
        }
}

/* The engine's own is expected to be no slower than any of ours. */
TEST(the_best_known_is_expected_of_the_engine)
{
    struct knee_line wire = {20e-6, 1e-10, 0};
    for (size_t i = 0; i < knee_exchange_count; i++)
        for (int ranks = 2; ranks <= 20; ranks++)
            for (double bytes = 8; bytes < 1e9; bytes *= 10) {
                const struct knee_exchange *e = &knee_exchanges[i];
                assert_true(knee_bench_expected_s(e->op, NULL, ranks, bytes, &wire) <=
                            knee_bench_expected_s(e->op, e, ranks, bytes, &wire));
            }
}

/* Counted on paper for what MPI libraries have (Thakur, Rabenseifner, Gropp 2005): the wire says
 * nothing of pieces or of messages that go at once, so neither is expected. */
TEST(the_engine_is_not_expected_to_pipeline)
{
    static const struct {
        enum knee_op op;
        double ranks, bytes, hops, share;
    } rows[] = {
        {KNEE_OP_BROADCAST, 8, 8, 3, 3},          {KNEE_OP_BROADCAST, 8, 1e9, 6, 14 / 8.0},
        {KNEE_OP_BROADCAST, 5, 1e9, 7, 8 / 5.0},  {KNEE_OP_REDUCE, 8, 1e9, 6, 14 / 8.0},
        {KNEE_OP_REDUCE, 5, 1e9, 7, 8 / 5.0},     {KNEE_OP_ALL_REDUCE, 6, 1e9, 10, 10 / 6.0},
        {KNEE_OP_GATHER, 6, 1e6, 3, 5 / 6.0},     {KNEE_OP_SCATTER, 6, 1e6, 3, 5 / 6.0},
        {KNEE_OP_ALL_GATHER, 6, 1e6, 3, 5 / 6.0}, {KNEE_OP_REDUCE_SCATTER, 6, 1e6, 3, 5 / 6.0},
        {KNEE_OP_ALL_TO_ALL, 6, 1e9, 5, 5 / 6.0}, {KNEE_OP_ALL_TO_ALLV, 6, 1e9, 5, 5 / 6.0},
        {KNEE_OP_SEND_RECV, 6, 1e6, 1, 1},
    };
    struct knee_line wire = {20e-6, 1e-10, 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double paper_s = rows[i].hops * wire.alpha_s + rows[i].share * rows[i].bytes * 1e-10;
        assert_relative(
            knee_bench_expected_s(rows[i].op, NULL, rows[i].ranks, rows[i].bytes, &wire), paper_s,
            1e-9);
    }
}

TEST(everyone_meets_everyone_once)
{
    for (int size = 2; size <= 33; size++) {
        int met[33][33] = {{0}};
        for (int round = 0; round < knee_league_rounds(size); round++)
            for (int p = 0; p < size; p++) {
                int other = knee_league_partner(size, round, p);
                assert_true(other >= -1 && other < size && other != p);
                if (other >= 0) {
                    assert_int_equal(knee_league_partner(size, round, other), p);
                    met[p][other]++;
                }
            }
        for (int a = 0; a < size; a++)
            for (int b = 0; b < size; b++)
                assert_int_equal(met[a][b], a != b);
    }
}

TEST(neighbours_meet_once)
{
    for (int size = 2; size <= 33; size++) {
        int met[33][33] = {{0}};
        for (int round = 0; round < knee_ring_rounds(size); round++)
            for (int p = 0; p < size; p++) {
                int other = knee_ring_partner(size, round, p);
                assert_true(other >= -1 && other < size && other != p);
                if (other >= 0) {
                    assert_int_equal(knee_ring_partner(size, round, other), p);
                    met[p][other]++;
                }
            }
        for (int a = 0; a < size; a++)
            for (int b = 0; b < size; b++) {
                bool beside = (a + 1) % size == b || (b + 1) % size == a;
                assert_int_equal(met[a][b], beside && a != b);
            }
    }
}

/* ---- Verdicts ---- */

struct made {
    struct knee_runtime rt;
    struct knee_bench bench;
    int host_of[8];
    char *names[8];
    struct knee_bench_pair pairs[64];
    struct knee_bench_row rows[8];
};

static void make(struct made *made)
{
    static char names[8][4] = {"h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"};
    memset(made, 0, sizeof *made);
    for (int i = 0; i < 8; i++) {
        made->host_of[i] = i;
        made->names[i] = names[i];
    }
    made->rt =
        (struct knee_runtime){.name = "mpi", .size = 8, .host_count = 8, .host_of = made->host_of};
    made->bench = (struct knee_bench){.rt = &made->rt,
                                      .host_names = made->names,
                                      .rows = made->rows,
                                      .pairs = made->pairs,
                                      .options = {.pairs = true}};
    for (int a = 0; a < 8; a++)
        for (int b = a + 1; b < 8; b++)
            made->pairs[made->bench.pair_count++] =
                (struct knee_bench_pair){.a = a, .b = b, .line = {1e-3, 1e-7, 0}};
}

TEST(a_healthy_map_names_nobody)
{
    struct made made;
    uint64_t seed = 11;
    make(&made);
    for (size_t i = 0; i < made.bench.pair_count; i++) {
        made.pairs[i].line.alpha_s *= 1 + 0.2 * chance(&seed);
        made.pairs[i].line.s_per_byte *= 1 + 0.1 * chance(&seed);
    }
    knee_bench_judge(&made.bench);
    assert_int_equal(made.bench.finding_count, 0);
}

TEST(the_slow_host_and_the_bad_link_are_named)
{
    struct made made;
    make(&made);
    for (size_t i = 0; i < made.bench.pair_count; i++) {
        struct knee_bench_pair *p = &made.pairs[i];
        if (p->a == 5 || p->b == 5)
            p->line.s_per_byte *= 2;
        if (p->a == 1 && p->b == 3)
            p->line.alpha_s *= 4;
    }
    knee_bench_judge(&made.bench);
    assert_int_equal(made.bench.finding_count, 2);
    assert_non_null(strstr(made.bench.findings[0].words, "host h5"));
    assert_non_null(strstr(made.bench.findings[1].words, "link h1 - h3"));
}

TEST(slow_and_two_timed_rows_are_named)
{
    struct made made;
    make(&made);
    for (int i = 0; i < 3; i++)
        made.rows[i] = (struct knee_bench_row){.op = KNEE_OP_ALL_REDUCE,
                                               .bytes = 1e6,
                                               .spread = {.median_s = 1.05},
                                               .expected_s = 1,
                                               .latency_share = 0.05};
    made.bench.row_count = 3;
    knee_bench_judge(&made.bench);
    assert_int_equal(made.bench.finding_count, 0);
    for (int i = 0; i < 3; i++)
        made.rows[i].spread.median_s = 1.17;
    made.rows[2].spread.two_modes = true;
    knee_bench_judge(&made.bench);
    assert_int_equal(made.bench.finding_count, 2);
    assert_non_null(strstr(made.bench.findings[0].words, "slower than it should be: 17 %"));
    assert_non_null(strstr(made.bench.findings[1].words, "one of two times"));
    for (int i = 0; i < 3; i++)
        made.rows[i].latency_share = 0.5; /* latency decides: no blame */
    knee_bench_judge(&made.bench);
    assert_int_equal(made.bench.finding_count, 0);
}

TEST(rows_of_an_algorithm_give_back_its_line)
{
    struct made made;
    struct knee_line line, wire = {2e-3, 8e-8, 0};
    make(&made);
    const struct knee_exchange *ring = knee_exchange_find("ring", KNEE_OP_ALL_REDUCE);
    for (int i = 0; i < 5; i++) {
        struct knee_bench_row *row = &made.rows[i];
        *row = (struct knee_bench_row){.exchange = ring, .bytes = pow(8, i) * 1024};
        row->spread.min_s = knee_bench_expected_s(KNEE_OP_ALL_REDUCE, ring, 8, row->bytes, &wire);
    }
    made.bench.row_count = 5;
    assert_true(knee_bench_refit(&made.bench, ring, &line));
    assert_relative(line.alpha_s, 2e-3, 1e-9);
    assert_relative(line.s_per_byte, 8e-8, 1e-9);
}

TEST(parts_cover_everything_once)
{
    for (size_t parts = 1; parts < 20; parts++)
        for (size_t count = 0; count < 100; count++) {
            assert_int_equal(knee_part(count, 0, parts), 0);
            assert_int_equal(knee_part(count, parts, parts), count);
            for (size_t p = 0; p < parts; p++) {
                size_t size = knee_part(count, p + 1, parts) - knee_part(count, p, parts);
                assert_true(size == count / parts || size == count / parts + 1);
            }
        }
}

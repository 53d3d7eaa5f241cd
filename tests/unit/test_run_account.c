/* SPDX-License-Identifier: MIT */
/* Where the hours of a run with several starts went, and what a second node costs: made-up runs
 * whose account is known by hand. */
#include "knee_scale.h"

#include "unit.h"

/* ---- One run, several logs ---- */

/* A job of 60 s of start-up and 10 s a step, which began at `begin_s`. */
static struct knee_train_log job_log(double begin_s, double first, double last,
                                     enum knee_train_end_kind ended)
{
    struct knee_train_log log = {.workers = 8};
    struct knee_train_account *a = &log.account;
    a->begin_s = begin_s;
    a->first_step = first;
    a->last_step = last;
    a->part_s[KNEE_TIME_STARTUP] = 60;
    a->part_s[KNEE_TIME_STEPS] = 10 * (last - first + 1);
    a->wall_s = a->part_s[KNEE_TIME_STARTUP] + a->part_s[KNEE_TIME_STEPS];
    a->end_s = begin_s + a->wall_s;
    a->step_s = 10;
    a->starts = 1;
    a->gap_s = a->gap_after = a->saved_step = NAN;
    a->ended = ended;
    return log;
}

TEST(test_a_run_of_several_jobs)
{
    /* the second job starts `pause_s` after the first, which did steps 1 to 100 (1060 s) */
    static const struct {
        double first, pause_s;
        enum knee_train_end_kind ended;
        double lost_steps, gap_s; /* gap_s: NaN: none */
        size_t jobs, stops;
    } rows[] = {
        {101, 40, KNEE_ENDED_WELL, 0, 40, 1, 0},      /* goes on where the first stopped */
        {81, 40, KNEE_ENDED_UNKNOWN, 20, 40, 1, 1},   /* twenty steps again: it had crashed */
        {81, 40, KNEE_ENDED_LIMIT, 20, 40, 1, 0},     /* a time limit is planned */
        {81, 40, KNEE_ENDED_HANG, 20, 40, 1, 1},      /* one stop, although two signs of it */
        {81, 40, KNEE_ENDED_CANCELLED, 20, 40, 1, 1}, /* likewise */
        {101, -5, KNEE_ENDED_WELL, 0, NAN, 1, 0},     /* clocks of two nodes: no negative gap */
        {1, 40, KNEE_ENDED_WELL, 0, NAN, 2, 0},       /* from the start: another job */
        {500, 40, KNEE_ENDED_WELL, 0, NAN, 2, 0},     /* past its end: another job */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int swapped = 0; swapped < 2; swapped++) { /* the order of the files says nothing */
            struct knee_train_log one = job_log(0, 1, 100, rows[i].ended);
            struct knee_train_log two =
                job_log(1060 + rows[i].pause_s, rows[i].first, rows[i].first + 99, KNEE_ENDED_WELL);
            struct knee_train_log bare = {.account.wall_s = NAN}; /* without time stamps */
            const struct knee_train_log *logs[] = {swapped ? &two : &one, &bare,
                                                   swapped ? &one : &two};
            struct knee_run_account run;
            double sum = 0;
            knee_run_account(logs, 3, &run);
            assert_int_equal(run.logs, 2);
            assert_int_equal(run.jobs, rows[i].jobs);
            assert_int_equal(run.stops, rows[i].stops);
            assert_near(run.all.lost_steps, rows[i].lost_steps, 1e-9);
            assert_near(run.all.part_s[KNEE_TIME_LOST], 10 * rows[i].lost_steps, 1e-9);
            assert_int_equal(isnan(run.all.gap_s), isnan(rows[i].gap_s));
            if (!isnan(rows[i].gap_s))
                assert_near(run.all.gap_s, rows[i].gap_s, 1e-9);
            for (int p = 0; p < KNEE_TIME_PARTS; p++)
                sum += run.all.part_s[p];
            assert_near(run.all.wall_s, sum, 1e-9);
            assert_near(run.restart_s, 60, 1e-9);
            assert_int_equal(isnan(run.stop_every_s), rows[i].stops == 0);
            assert_true(isnan(run.checkpoint_s)); /* none was seen */
        }
}

/* Checkpoints, and the longest gap of all logs: within one, or between two. */
TEST(test_checkpoints_and_gaps)
{
    struct knee_train_log one = job_log(0, 1, 100, KNEE_ENDED_WELL),
                          two = job_log(1100, 101, 200, KNEE_ENDED_WELL);
    const struct knee_train_log *logs[] = {&one, &two};
    struct knee_run_account run;
    two.account.saves = 4;
    two.account.part_s[KNEE_TIME_CHECKPOINT] = 80;
    two.account.gap_s = 300;
    two.account.gap_after = 150;
    knee_run_account(logs, 2, &run);
    assert_near(run.checkpoint_s, 20, 1e-9);
    assert_near(run.checkpoint_every_s, 2000.0 / 4, 1e-9);
    assert_near(run.all.gap_s, 300, 1e-9);
    assert_near(run.all.gap_after, 150, 1e-9);
    assert_int_equal(run.worst, KNEE_TIME_STARTUP);
    two.account.gap_s = 7; /* shorter than the 40 s between the logs */
    knee_run_account(logs, 2, &run);
    assert_near(run.all.gap_s, 40, 1e-9);
    assert_near(run.all.gap_after, 100, 1e-9);
    knee_run_account(logs, 0, &run);
    assert_int_equal(run.logs, 0);
    assert_true(isnan(run.all.wall_s));
}

/* ---- Two nodes against one ---- */

static const struct knee_network_facts unknown = {NAN, NAN, 8, NAN, -1};

static struct knee_scale_network two_nodes(double one_s, double two_s,
                                           struct knee_network_facts facts)
{
    struct knee_scale_row rows[] = {{.workers = 8, .step_s = one_s, .batch = 64},
                                    {.workers = 16, .step_s = two_s, .batch = 128}};
    struct knee_scale_network out;
    knee_scale_network(rows, 2, &facts, &out);
    return out;
}

TEST(test_what_the_network_gave)
{
    struct knee_network_facts known = unknown;
    known.params = 1e9;
    /* 2 x 4 bytes x 1e9 x 15/16 in the second that was added */
    struct knee_scale_network n = two_nodes(1, 2, known);
    assert_true(n.asked);
    assert_int_equal(n.cause, KNEE_NETWORK_SLOW);
    assert_near(n.bytes, 7.5e9, 1);
    assert_near(n.have, 7.5e9, 1);
    assert_near(n.nodes, 2, 0);
    assert_near(n.need_exposed, 7.5e9 * 9, 10); /* in a ninth of a second */
    assert_true(n.need_hidden < n.need_exposed);
    /* ZeRO-3 moves three times two bytes, in each part of the batch */
    known.shard = KNEE_ZERO3;
    known.accumulate = 2;
    assert_near(two_nodes(1, 2, known).bytes, 2 * 6e9 * 15 / 16, 1);
    known.gradient_bytes = 4;
    assert_near(two_nodes(1, 2, known).bytes, 4 * 6e9 * 15 / 16, 1);
}

TEST(test_causes)
{
    static const struct {
        double one_s, two_s, params, per_node;
        bool asked;
        enum knee_network_cause cause;
    } rows[] = {
        {1, 1.05, 1e9, 8, true, KNEE_NETWORK_FINE},   {1, 2, 1e9, 8, true, KNEE_NETWORK_SLOW},
        {1, 2, 1e6, 8, true, KNEE_NETWORK_NOT_IT},    {1, 2, NAN, 8, true, KNEE_NETWORK_UNKNOWN},
        {1, 1.05, NAN, 8, true, KNEE_NETWORK_FINE},   {1, 2, 1e9, 4, false, KNEE_NETWORK_UNKNOWN},
        {1, 2, 1e9, 16, false, KNEE_NETWORK_UNKNOWN}, {1, 2, 1e9, NAN, false, KNEE_NETWORK_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct knee_network_facts facts = unknown;
        facts.params = rows[i].params;
        facts.gpus_per_node = rows[i].per_node;
        struct knee_scale_network n = two_nodes(rows[i].one_s, rows[i].two_s, facts);
        assert_int_equal(n.asked, rows[i].asked);
        assert_int_equal(n.cause, rows[i].cause);
        assert_int_equal(n.missing[0] != 0, n.asked && n.cause == KNEE_NETWORK_UNKNOWN);
    }
}

/* Without options the logs say the parameters and the sharding; without batches each GPU is taken
 * to do the same work. */
TEST(test_facts_of_the_logs)
{
    struct knee_train_log log = {.params = 1e9};
    struct knee_scale_row rows[] = {{.workers = 8, .step_s = 1, .batch = NAN, .log = &log},
                                    {.workers = 16, .step_s = 2, .batch = NAN, .log = &log},
                                    {.workers = 32, .step_s = 9, .batch = NAN}};
    struct knee_scale_network n;
    log.plan.shard = KNEE_ZERO3;
    knee_scale_network(rows, 3, &unknown, &n);
    assert_near(n.params, 1e9, 0);
    assert_int_equal(n.shard, KNEE_ZERO3);
    assert_near(n.ideal_s, 1, 0);
    assert_near(n.two_workers, 16, 0); /* the smallest count over several nodes */
}

TEST(test_names)
{
    const char *name = NULL;
    double last = 0, rate;
    for (size_t i = 0; (rate = knee_network_rate(i, &name)) > 0; i++) {
        assert_true(rate > last && name[0]); /* slowest first */
        last = rate;
    }
    assert_string_equal(knee_network_cause_name(KNEE_NETWORK_SLOW), "network");
    assert_string_equal(knee_network_cause_name((enum knee_network_cause)99), "?");
}

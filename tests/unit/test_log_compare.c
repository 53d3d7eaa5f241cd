/* SPDX-License-Identifier: MIT */
/*
 * Two training logs: steps that drift (each like the one before) are not taken for a change, a
 * planted change is found, other work is counted as such, changed settings are named.
 */
#include "unit.h"

#include "knee_scale.h"

enum { STEPS = 400, PAIRS = 200 };

static uint64_t state = 88172645463325252u;

/* Steps around `mean` that spread by 1 %, each `like` the one before, with checkpoints. */
static void make(struct knee_train_log *log, struct knee_train_row *rows, double mean, double like)
{
    double off = normal(&state);
    *log = (struct knee_train_log){.rows = rows, .row_count = STEPS, .timed = STEPS, .format = "x"};
    log->workers = log->batch = log->micro_batch = log->seq = log->params = NAN;
    log->median_s = mean;
    knee_shape_init(&log->shape);
    knee_plan_init(&log->plan);
    for (size_t i = 0; i < STEPS; i++) {
        off = like * off + sqrt(1 - like * like) * normal(&state);
        rows[i] = (struct knee_train_row){.step_s = mean * (1 + 0.01 * off)};
        rows[i].step_s *= i % 50 == 49 ? 3 : 1;
    }
}

/* The mean of the usual steps of the later half, for the median of a log. */
static double middle(const struct knee_train_row *rows, double mean)
{
    double sum = 0, count = 0;
    for (size_t i = STEPS / 2; i < STEPS; i++)
        if (rows[i].step_s < 1.5 * mean)
            sum += rows[i].step_s, count++;
    return sum / count;
}

static double found(double mean, double like)
{
    static struct knee_train_row a[STEPS], b[STEPS];
    struct knee_train_log before, after;
    static struct knee_log_comparison c;
    double count = 0;
    for (int i = 0; i < PAIRS; i++) {
        make(&before, a, 1, like);
        make(&after, b, mean, like);
        before.median_s = middle(a, 1);
        after.median_s = middle(b, mean);
        knee_compare_logs(&before, &after, &c);
        count += c.significant;
    }
    return count / PAIRS;
}

TEST(test_chance)
{
    assert_true(found(1, 0) <= 0.05);
    assert_true(found(1, 0.9) <= 0.06); /* one error of single steps would say so in half of them */
    assert_true(found(1.03, 0) >= 0.99);
    assert_true(found(1.03, 0.9) >= 0.9);
}

TEST(test_few_steps)
{
    static struct knee_train_row a[STEPS], b[STEPS];
    struct knee_train_log before, after;
    static struct knee_log_comparison c;
    make(&before, a, 1, 0);
    make(&after, b, 1.2, 0);
    after.row_count = 1;
    knee_compare_logs(&before, &after, &c);
    assert_true(isnan(c.noise) && c.significant);
}

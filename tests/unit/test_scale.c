/* SPDX-License-Identifier: MIT */
/*
 * The curve of a job: what is put in comes out (terms, laws, noise, critical batch), what must not
 * matter does not (order, units, the range asked for), and what cannot be known is not said.
 */
#include "knee_out.h"
#include "knee_scale.h"
#include "out/answer.h"
#include "say/answers.h"
#include "unit.h"

static struct knee_scale_point point(double workers, double step_s, double batch)
{
    return (struct knee_scale_point){workers, step_s, batch, NAN, NAN, 1, 0};
}

static struct knee_scale_fit fit_of(const struct knee_scale_point *points, size_t count)
{
    struct knee_scale_fit fit;
    struct knee_err err;
    if (knee_scale_fit(points, count, &fit, &err))
        fail_msg("%s", err.what);
    return fit;
}

static struct knee_scale_forecast ask(const struct knee_scale_fit *fit, double workers)
{
    struct knee_scale_forecast f;
    struct knee_err err;
    if (knee_scale_predict(fit, workers, NAN, &f, &err))
        fail_msg("%s", err.what);
    return f;
}

/* A step of known terms: seconds of compute at one unit each, and one other term. */
static double known_step(enum knee_scale_term term, double share, double workers, double batch)
{
    double work = batch / workers;
    const double x[KNEE_SCALE_TERMS] = {work,
                                        1,
                                        (workers - 1) / workers,
                                        log2(workers),
                                        (workers - 1) / 256,
                                        work * sqrt(2 * log(workers)),
                                        work * log2(workers)};
    return work + share * x[term];
}

/* Six counts of a curve made of known terms: the seventh, twice as large, comes back. */
TEST(known_terms_come_back)
{
    for (int weak = 0; weak < 2; weak++)
        for (int term = 1; term < KNEE_SCALE_TERMS; term++)
            for (double share = 0.002; share < 0.6; share *= 4) {
                struct knee_scale_point points[6];
                double batch = 512;
                for (size_t i = 0; i < 6; i++) {
                    double k = (double)((size_t)8 << i), b = weak ? 8 * k : batch;
                    points[i] = point(k, known_step((enum knee_scale_term)term, share, k, b), b);
                }
                struct knee_scale_fit fit = fit_of(points, 6);
                double b = weak ? 8 * 512 : batch;
                double truth = known_step((enum knee_scale_term)term, share, 512, b);
                struct knee_scale_forecast f = ask(&fit, 512);
                double off = fabs(f.step_s / truth - 1);
                bool inside = f.low_s <= truth && truth <= f.high_s;
                if (!(off < 0.05) || (!inside && off > 0.02))
                    fail_msg("%s %s %g: %g (%g to %g) instead of %g", weak ? "weak" : "strong",
                             knee_scale_term_name((enum knee_scale_term)term), share, f.step_s,
                             f.low_s, f.high_s, truth);
            }
}

TEST(perfect_scaling_stays_perfect)
{
    struct knee_scale_point strong[4], weak[4];
    for (size_t i = 0; i < 4; i++) {
        double k = (double)((size_t)1 << i);
        strong[i] = point(k, 8 / k, 64);
        weak[i] = point(k, 8, 64 * k);
    }
    struct knee_scale_fit fit = fit_of(strong, 4);
    assert_relative(ask(&fit, 16).step_s, 0.5, 0.01);
    fit = fit_of(weak, 4);
    assert_relative(ask(&fit, 16).step_s, 8.0, 0.01);
}

/* Both laws are exact on curves of their own. */
TEST(amdahl_and_usl_find_themselves)
{
    struct knee_scale_point a[5], u[5];
    for (size_t i = 0; i < 5; i++) {
        double k = (double)((size_t)1 << i);
        a[i] = point(k, 10 * (0.9 / k + 0.1), 64);
        u[i] = point(k, 10 / k * (1 + 0.05 * (k - 1) + 0.001 * k * (k - 1)), 64);
    }
    struct knee_scale_fit fit = fit_of(a, 5);
    assert_relative(ask(&fit, 64).amdahl_s, 10 * (0.9 / 64 + 0.1), 1e-6);
    fit = fit_of(u, 5);
    assert_relative(ask(&fit, 64).usl_s, 10.0 / 64 * (1 + 0.05 * 63 + 0.001 * 64 * 63), 1e-6);
}

TEST(order_and_units_do_not_matter)
{
    const double k[] = {8, 16, 32, 64}, s[] = {4, 2.05, 1.08, 0.6};
    struct knee_scale_point forth[4], back[4], scaled[4];
    for (size_t i = 0; i < 4; i++) {
        forth[i] = point(k[i], s[i], 256);
        back[3 - i] = forth[i];
        scaled[i] = point(k[i], 1e3 * s[i], 7 * 256);
    }
    struct knee_scale_fit a = fit_of(forth, 4), b = fit_of(back, 4), c = fit_of(scaled, 4);
    struct knee_scale_forecast fa = ask(&a, 128), fb = ask(&b, 128), fc = ask(&c, 128);
    assert_near(fa.step_s, fb.step_s, 0);
    assert_near(fa.high_s, fb.high_s, 0);
    assert_relative(fc.step_s, 1e3 * fa.step_s, 1e-9);
    assert_relative(fc.low_s, 1e3 * fa.low_s, 1e-9);
}

/* One more count that says what was forecast never makes the band much wider. */
TEST(more_rows_do_not_widen)
{
    uint64_t seed = 11;
    for (int round = 0; round < 60; round++) {
        struct knee_scale_point points[8];
        double share = between(&seed, 0.001, 0.05), noise = between(&seed, 1e-4, 0.02);
        enum knee_scale_term term = (enum knee_scale_term)(1 + round % (KNEE_SCALE_TERMS - 1));
        for (size_t i = 0; i < 6; i++) {
            double k = (double)((size_t)4 << i), b = 16 * k;
            points[i] =
                point(k, known_step(term, share, k, b) * (1 + noise * (chance(&seed) - 0.5)), b);
        }
        struct knee_scale_fit few = fit_of(points, 4), many = fit_of(points, 6);
        struct knee_scale_forecast a = ask(&few, 512), b = ask(&many, 512);
        double before = (a.high_s - a.low_s) / a.step_s, after = (b.high_s - b.low_s) / b.step_s;
        if (after > 1.5 * before + 0.01)
            fail_msg("round %d: band %.3f became %.3f", round, before, after);
    }
}

/* Farther away is less sure. */
TEST(bands_widen_with_the_distance)
{
    struct knee_scale_point points[4];
    for (size_t i = 0; i < 4; i++) {
        double k = (double)((size_t)8 << i);
        points[i] = point(k, known_step(KNEE_SCALE_MICRO, 0.01, k, 8 * k), 8 * k);
    }
    struct knee_scale_fit fit = fit_of(points, 4);
    double last = 0;
    for (double k = 128; k <= 4096; k *= 2) {
        struct knee_scale_forecast f = ask(&fit, k);
        double band = (f.high_s - f.low_s) / f.step_s;
        assert_true(band >= last);
        last = band;
    }
}

/* Eight ranks on one GPU: no term grows like that. It is said, and no forecast is better than what
 * was seen last. */
TEST(a_curve_that_no_terms_describe)
{
    const struct knee_scale_point points[] = {point(1, 0.07, 8), point(2, 0.3, 16),
                                              point(4, 1.54, 32)};
    struct knee_scale_fit fit = fit_of(points, 3);
    struct knee_scale_forecast f = ask(&fit, 8);
    assert_true(fit.strange);
    assert_true(f.step_s > 1.54 && f.high_s > f.step_s && f.low_s < f.step_s);
}

TEST(strong_weak_and_mixed)
{
    struct knee_scale_point p[3];
    for (size_t i = 0; i < 3; i++)
        p[i] = point((double)(1 << i), 4.0 / (1 << i), 64);
    assert_int_equal(fit_of(p, 3).kind, KNEE_SCALE_STRONG);
    for (size_t i = 0; i < 3; i++)
        p[i] = point((double)(1 << i), 4, 64.0 * (1 << i));
    assert_int_equal(fit_of(p, 3).kind, KNEE_SCALE_WEAK);
    p[2].batch = 100;
    assert_int_equal(fit_of(p, 3).kind, KNEE_SCALE_MIXED);
    for (size_t i = 0; i < 3; i++)
        p[i] = point((double)(1 << i), 4.1, NAN);
    assert_int_equal(fit_of(p, 3).kind, KNEE_SCALE_WEAK);
    assert_true(fit_of(p, 3).kind_assumed);
    for (size_t i = 0; i < 3; i++)
        p[i] = point((double)(1 << i), 4.0 / (1 << i), NAN);
    assert_int_equal(fit_of(p, 3).kind, KNEE_SCALE_STRONG);
    assert_false(fit_of(p, 3).kind_by_work);
    for (size_t i = 0; i < 3;
         i++) { /* the wire grows, but each worker computes its part of one batch */
        p[i] = point((double)(1 << i), 4.0 + (double)i, NAN);
        p[i].work_s = 3.0 / (1 << i);
    }
    assert_int_equal(fit_of(p, 3).kind, KNEE_SCALE_STRONG);
    assert_true(fit_of(p, 3).kind_by_work);
}

TEST(repeats_give_the_noise)
{
    uint64_t seed = 3;
    struct knee_scale_point points[60];
    size_t count = 0;
    for (size_t i = 0; i < 3; i++)
        for (int r = 0; r < 20; r++) {
            double k = (double)((size_t)8 << i);
            points[count++] = point(k, 2 * exp(0.02 * normal(&seed)), 4 * k);
        }
    struct knee_scale_fit fit = fit_of(points, count);
    assert_int_equal(fit.count, 3);
    assert_relative(fit.noise, 0.02, 0.25);
    assert_int_equal(fit.points[0].repeats, 20);
    assert_relative(fit.points[0].error, fit.noise / sqrt(20), 0.5);
}

TEST(less_than_one_sequence_each_is_refused)
{
    struct knee_scale_point p[3];
    struct knee_scale_forecast f = {.step_s = -1};
    struct knee_err err = {0};
    for (size_t i = 0; i < 3; i++)
        p[i] = point((double)(8 << i), 4.0 / (1 << i), 64);
    struct knee_scale_fit fit = fit_of(p, 3);
    assert_ok(knee_scale_predict(&fit, 64, NAN, &f, &err));
    /* whether GPUs share a copy of the model is not known: no reason to refuse */
    assert_ok(knee_scale_predict(&fit, 128, NAN, &f, &err));
    for (size_t i = 0; i < 3; i++)
        p[i].replica = 1;
    fit = fit_of(p, 3);
    f.step_s = -1;
    assert_int_equal(knee_scale_predict(&fit, 128, NAN, &f, &err), KNEE_USAGE);
    assert_true(f.step_s == -1 && err.hint[0]);
    assert_ok(knee_scale_predict(&fit, 128, 128, &f, &err));
    for (size_t i = 0; i < 3; i++)
        p[i].replica = 4; /* four workers share a copy of the model: 256 are fed */
    fit = fit_of(p, 3);
    assert_ok(knee_scale_predict(&fit, 256, NAN, &f, &err));
    assert_int_equal(knee_scale_predict(&fit, 257, NAN, &f, &err), KNEE_USAGE);
    assert_int_equal(knee_scale_predict(&fit, 0, NAN, &f, &err), KNEE_USAGE);
}

TEST(bad_points_are_refused)
{
    struct knee_scale_fit fit = {.count = 77};
    struct knee_err err = {0};
    const struct knee_scale_point bad[] = {point(0, 1, 1),   point(4, NAN, 1),
                                           point(4, -1, 1),  point(4, INFINITY, 1),
                                           point(NAN, 1, 1), point(4, 1, -2)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(knee_scale_fit(&bad[i], 1, &fit, &err), KNEE_USAGE);
    assert_int_equal(knee_scale_fit(bad, 0, &fit, &err), KNEE_USAGE);
    struct knee_scale_point many[KNEE_SCALE_POINTS + 1];
    for (size_t i = 0; i <= KNEE_SCALE_POINTS; i++)
        many[i] = point(1 + (double)i, 1, 64);
    assert_int_equal(knee_scale_fit(many, KNEE_SCALE_POINTS + 1, &fit, &err), KNEE_USAGE);
    assert_string_equal(err.what, "more than 16 GPU counts");
    assert_int_equal(fit.count, 77);
    assert_ok(knee_scale_fit(many, KNEE_SCALE_POINTS, &fit, &err));
    assert_int_equal(fit.count, KNEE_SCALE_POINTS);
}

/* One count may come with several batches, and with none: repeats are those of count and batch. */
TEST(counts_and_batches_are_kept_apart)
{
    const struct knee_scale_point all[] = {point(8, 2, 128), point(16, 1.1, 128), point(8, 1, 64),
                                           point(16, 0.6, 64), point(8, 1.02, 64)};
    struct knee_scale_point turned[5];
    for (size_t i = 0; i < 5; i++)
        turned[i] = all[4 - i];
    struct knee_scale_fit a = fit_of(all, 5), b = fit_of(turned, 5);
    assert_int_equal(a.count, 4);
    assert_int_equal(a.kind, KNEE_SCALE_MIXED);
    for (size_t i = 0; i < 4; i++) {
        assert_near(a.points[i].workers, b.points[i].workers, 0);
        assert_near(a.points[i].batch, b.points[i].batch, 0);
        assert_relative(a.points[i].step_s, b.points[i].step_s, 1e-12);
        assert_true(i == 0 || a.points[i].workers > a.points[i - 1].workers ||
                    a.points[i].batch > a.points[i - 1].batch);
    }
    const struct knee_scale_point unknown[] = {point(8, 2, NAN), point(8, 2.1, NAN),
                                               point(8, 2, 64), point(16, 1, NAN)};
    a = fit_of(unknown, 4);
    assert_int_equal(a.count, 3); /* what is known of one is not taken for the other's */
    assert_true(a.kind_assumed);
}

/* Numbers that no computer tells apart any more: a forecast all the same, and a finite one. */
TEST(extremes_are_carried_on)
{
    const struct knee_scale_point apart[] = {point(1, 1, 1e-12), point(8, 1, 1e16),
                                             point(16, 1, 1e-12)};
    struct knee_scale_fit fit = fit_of(apart, 3);
    struct knee_scale_forecast f;
    struct knee_err err;
    assert_ok(knee_scale_predict(&fit, 32, 1e3, &f, &err));
    if (!isfinite(f.step_s) || !(f.low_s <= f.step_s && f.step_s <= f.high_s))
        fail_msg("%g, from %g to %g", f.step_s, f.low_s, f.high_s);
}

/* What is none has no name. */
TEST(numbers_past_the_last_have_no_name)
{
    assert_string_equal(knee_scale_term_name(KNEE_SCALE_TERMS), "?");
    assert_string_equal(knee_scale_kind_name((enum knee_scale_kind)(KNEE_SCALE_MIXED + 1)), "?");
    assert_string_equal(knee_part_name(KNEE_PARTS), "?");
    assert_string_equal(knee_axis_name(KNEE_AXES), "?");
}

/* ---- Verdict ---- */

static struct knee_scale_row row(double workers, double step_s, double batch)
{
    return (struct knee_scale_row){.workers = workers,
                                   .step_s = step_s,
                                   .batch = batch,
                                   .p95_s = NAN,
                                   .replica = NAN,
                                   .error = NAN,
                                   .tokens_per_s = 1000 * batch / step_s,
                                   .ratio = NAN,
                                   .gamma = NAN,
                                   .model = {.step_s = NAN, .comm_share = NAN, .host_share = NAN}};
}

static const struct knee_scale_question plain = {
    .tolerance = 0.8,
    .tokens = NAN,
    .price_per_hour = NAN,
    .at_batch = NAN,
    .symptoms = {NAN, NAN, NAN, NAN, false},
};

static struct knee_scale_answer judge(struct knee_scale_row *rows, size_t count,
                                      struct knee_scale_question question)
{
    struct knee_scale_answer a = {.question = question, .rows = rows, .row_count = count};
    struct knee_err err;
    if (knee_scale_judge(&a, &err))
        fail_msg("%s", err.what);
    return a;
}

TEST(efficiency_does_not_depend_on_the_range)
{
    double wanted[4] = {0};
    for (size_t asked = 0; asked < 4; asked++) {
        struct knee_scale_row rows[] = {row(64, 0.9, 512), row(8, 5, 512), row(16, 2.6, 512),
                                        row(32, 1.5, 512)};
        struct knee_scale_question q = plain;
        for (size_t i = 0; i < asked; i++)
            q.at[q.at_count++] = (double)((size_t)16 << (2 * i));
        struct knee_scale_answer a = judge(rows, 4, q);
        assert_near(a.base_workers, 8, 0);
        for (size_t i = 0; i < 4; i++) {
            double truth = 5 * 8 / (rows[i].step_s * rows[i].workers);
            assert_relative(rows[i].efficiency, truth, 1e-12);
            if (asked == 0)
                wanted[i] = rows[i].efficiency;
            assert_near(rows[i].efficiency, wanted[i], 0);
        }
        assert_near(a.measured_knee, 32, 0); /* E(32) 0.83, E(64) 0.69 */
    }
}

TEST(the_smallest_count_is_the_baseline)
{
    for (int known = 0; known < 2; known++) {
        struct knee_scale_row rows[] = {row(8, 4, known ? 64 : NAN), row(8, 4, known ? 64 : NAN),
                                        row(16, 4.1, known ? 128 : NAN)};
        rows[0].tokens_per_s = rows[1].tokens_per_s = rows[2].tokens_per_s = NAN;
        judge(rows, 1, plain);
        assert_near(rows[0].efficiency, 1, 1e-12);
        judge(rows, 3, plain);
        assert_near(rows[1].efficiency, 1, 1e-12);
        assert_relative(rows[2].efficiency, 4 / 4.1, 1e-9);
    }
}

/* A slow run of a count that has a normal one too does not move the curve; other batches are other
 * points, not repeats. */
TEST(slow_repeats_are_left_out)
{
    struct knee_scale_row clean[] = {row(8, 5, 512), row(16, 2.6, 512), row(32, 1.5, 512)};
    struct knee_scale_answer a = judge(clean, 3, plain);
    for (int other = 0; other < 2; other++) {
        struct knee_scale_row rows[] = {row(16, 4.4, other ? 1024 : 512), row(8, 5, 512),
                                        row(16, 2.6, 512), row(32, 1.5, 512)};
        struct knee_scale_answer b = judge(rows, 4, plain);
        assert_near(rows[1].step_s, 4.4, 0);
        assert_true(other ? !rows[1].faster : rows[1].faster == &rows[2]);
        assert_int_equal(b.fit.count, other ? 4 : 3);
        if (!other)
            assert_near(b.predicted_knee, a.predicted_knee, 0);
    }
}

TEST(tokens_and_dollars)
{
    struct knee_scale_row rows[] = {row(8, 1, 64), row(16, 1, 128)};
    struct knee_scale_question q = plain;
    q.tokens = 1e9;
    q.price_per_hour = 2;
    q.at[0] = 32;
    q.at_count = 1;
    struct knee_scale_answer a = judge(rows, 2, q);
    double rate = 1000 * 256; /* tokens/s of 32 workers, as they scale without loss */
    assert_relative(a.asks[0].time_s, 1e9 / rate, 0.02);
    assert_relative(a.asks[0].cost, 1e9 / rate / 3600 * 32 * 2, 0.02);
}

/* ---- Batch sizes ---- */

/* Loss = 2 + 8 / (1 + 20 p), p the progress steps / S(B) with S = S_min (1 + B_crit / B). */
static void make_run(struct knee_train_row *rows, size_t count, double batch, double critical)
{
    double steps = 1000 * (1 + critical / batch);
    for (size_t i = 0; i < count; i++) {
        double step = steps * (double)(i + 1) / (double)count;
        rows[i] = (struct knee_train_row){.step = step,
                                          .samples = step * batch,
                                          .batch = batch,
                                          .step_s = NAN,
                                          .tokens_per_s = NAN,
                                          .loss = 2 + 8 / (1 + 20 * step / steps),
                                          .eval_loss = NAN};
    }
}

TEST(critical_batch_comes_back)
{
    enum { ROWS = 400 };
    static struct knee_train_row rows[3][ROWS];
    static double room[2 * 3 * ROWS];
    for (double critical = 32; critical <= 65536; critical *= 8) {
        struct knee_batch_run runs[3];
        struct knee_batch_fit fit;
        for (size_t i = 0; i < 3; i++) {
            double batch = 64.0 * (double)((size_t)1 << (2 * i));
            make_run(rows[i], ROWS, batch, critical);
            runs[i] = (struct knee_batch_run){batch, rows[i], ROWS};
        }
        knee_batch_fit(runs, 3, room, &fit);
        assert_relative(fit.critical, critical, 0.1);
        assert_true(fit.low <= fit.critical && fit.critical <= fit.high);
        assert_true(fit.behind ==
                    (critical < 10000)); /* at equal samples the large batch is behind */
    }
}

TEST(one_batch_size_says_nothing)
{
    static struct knee_train_row rows[2][50];
    double room[4 * 50];
    struct knee_batch_fit fit;
    for (size_t i = 0; i < 2; i++)
        make_run(rows[i], 50, 64, 100);
    const struct knee_batch_run runs[] = {{64, rows[0], 50}, {64, rows[1], 50}};
    knee_batch_fit(runs, 2, room, &fit);
    assert_true(isnan(fit.critical) && !fit.behind);
}

enum { RUN_ROWS = 120, MANY_RUNS = KNEE_BATCH_RUNS + 3 };

/* Runs at growing batches, each with `more` rows between that say nothing. */
static struct knee_batch_fit fit_batches(size_t count, const size_t *order, bool evaluation,
                                         bool more)
{
    static struct knee_train_row made[RUN_ROWS], rows[MANY_RUNS][2 * RUN_ROWS];
    static double room[2 * MANY_RUNS * 2 * RUN_ROWS];
    struct knee_batch_run runs[MANY_RUNS];
    struct knee_batch_fit fit;
    for (size_t i = 0; i < count; i++) {
        double batch = 64 * exp2((double)order[i]);
        size_t n = 0;
        make_run(made, RUN_ROWS, batch, 1000);
        for (size_t k = 0; k < RUN_ROWS; k++) {
            struct knee_train_row row = made[k], empty = made[k];
            row.eval_loss = evaluation ? row.loss : NAN;
            row.loss = evaluation ? NAN : row.loss;
            empty.loss = empty.eval_loss = NAN;
            if (more && k % 2)
                empty = (struct knee_train_row){.loss = 1, .eval_loss = 1, .samples = 0};
            rows[i][n++] = row;
            if (more)
                rows[i][n++] = empty;
        }
        runs[i] = (struct knee_batch_run){batch, rows[i], n};
    }
    knee_batch_fit(runs, count, room, &fit);
    return fit;
}

/* In which order runs come, and rows without a loss or without samples, do not matter. Losses of
 * evaluations are taken as they are; more runs than there is room for are left out. */
TEST(what_says_nothing_changes_nothing)
{
    static const size_t up[MANY_RUNS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, mixed[] = {2, 0, 3, 1};
    struct knee_batch_fit fit = fit_batches(4, up, false, false);
    assert_relative(fit.critical, 1000.0, 0.1);
    assert_false(fit.by_evaluation);
    struct knee_batch_fit others[] = {fit_batches(4, mixed, false, false),
                                      fit_batches(4, up, false, true)};
    for (size_t i = 0; i < 2; i++) {
        assert_relative(others[i].critical, fit.critical, 1e-9);
        assert_relative(others[i].min_steps, fit.min_steps, 1e-9);
        assert_near(others[i].small_batch, 64, 0);
        assert_near(others[i].large_batch, 512, 0);
        assert_near(others[i].large_loss, fit.large_loss, 1e-12);
        assert_int_equal(others[i].losses, fit.losses);
    }
    struct knee_batch_fit evaluated = fit_batches(4, up, true, true);
    assert_true(evaluated.by_evaluation);
    assert_near(evaluated.loss_noise, 0, 0);
    assert_relative(evaluated.critical, 1000.0, 0.02);
    assert_int_equal(fit_batches(MANY_RUNS, up, false, false).runs, KNEE_BATCH_RUNS);
    assert_true(isnan(fit_batches(0, up, false, false).critical));
}

/* Runs that no critical batch describes: none is said. */
TEST(runs_that_contradict_say_nothing)
{
    static struct knee_train_row rows[3][RUN_ROWS];
    double room[2 * 3 * RUN_ROWS];
    struct knee_batch_run runs[3];
    struct knee_batch_fit fit;
    for (size_t i = 0; i < 3; i++) { /* the larger the batch, the fewer samples it takes */
        double batch = 64 * exp2((double)i);
        make_run(rows[i], RUN_ROWS, batch, 0);
        for (size_t k = 0; k < RUN_ROWS; k++)
            rows[i][k].samples /= batch * batch;
        runs[i] = (struct knee_batch_run){batch, rows[i], RUN_ROWS};
    }
    knee_batch_fit(runs, 3, room, &fit);
    assert_int_equal(fit.runs, 3);
    assert_int_equal(fit.losses, 0);
    assert_true(isnan(fit.critical) && isnan(fit.low) && isnan(fit.high));
    runs[0].row_count = 2; /* too few rows, and a batch that is none */
    runs[1].batch = 0;
    knee_batch_fit(runs, 3, room, &fit);
    assert_int_equal(fit.runs, 1);
    assert_false(fit.behind);
    for (size_t i = 0; i < 3; i++) { /* a run that is there from the start */
        double batch = 64 * exp2((double)i);
        make_run(rows[i], RUN_ROWS, batch, 100);
        runs[i] = (struct knee_batch_run){batch, rows[i], RUN_ROWS};
        for (size_t k = 0; i == 2 && k < RUN_ROWS; k++)
            rows[i][k].loss = 1 + rows[i][k].loss / 100;
    }
    knee_batch_fit(runs, 3, room, &fit);
    assert_int_equal(fit.runs, 3);
    assert_true(isnan(fit.critical));
}

/* ---- The model beside the measurement ---- */

static struct knee_scale_model model_of(const char *words, double workers, double batch)
{
    struct knee_shape shape;
    struct knee_plan plan;
    struct knee_platform platform;
    struct knee_scale_row row = {.workers = workers, .batch = batch, .step_s = 1};
    struct knee_err err;
    char copy[200], *rest = NULL;
    const struct {
        const struct knee_keys *keys;
        void *thing;
    } all[] = {
        {&knee_shape_keys, &shape}, {&knee_plan_keys, &plan}, {&knee_platform_keys, &platform}};
    knee_shape_init(&shape);
    knee_plan_init(&plan);
    knee_platform_init(&platform);
    snprintf(copy, sizeof copy, "%s", words);
    for (char *key = strtok_r(copy, " ", &rest); key; key = strtok_r(NULL, " ", &rest)) {
        char *value = strtok_r(NULL, " ", &rest);
        bool known = false;
        for (size_t i = 0; i < 3 && !known; i++)
            known = !knee_keys_set(all[i].keys, all[i].thing, key, value, KNEE_FLAG, &err);
        if (!known)
            fail_msg("%s %s: %s", key, value, err.what);
    }
    knee_scale_model(&shape, &plan, &platform, &row);
    return row.model;
}

TEST(what_a_model_lacks_is_asked_for)
{
    static const struct {
        const char *words;
        double workers, batch;
        const char *missing;
    } cases[] = {
        {"", NAN, NAN,
         "add --model (or --layers and --hidden), --gpu, --global-batch, the GPU count "
         "(COUNT=FILE)"},
        {"layers 12 gpu h100", 8, 64, "add --model (or --layers and --hidden)"},
        {"layers 12 hidden 768", 8, 64, "add --gpu"},
        {"model gpt2 gpu h100", 8, NAN, "add --global-batch"},
        {"model gpt2 gpu h100", NAN, 64, "add the GPU count (COUNT=FILE)"},
        {"model gpt2 gpu h100 tp 5", 8, 64, "tp x pp x cp does not divide the GPUs"},
        {"model gpt2 gpu h100 experts 2 topk 3", 8, 64,
         "topk is larger than the number of experts: lower --topk"},
        {"model gpt2 gpu h100 global-tokens 1048576", 8, NAN, NULL},
        {"layers 12 hidden 768 gpu h100", 8, 64, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_scale_model m = model_of(cases[i].words, cases[i].workers, cases[i].batch);
        if (cases[i].missing) {
            if (strncmp(m.missing, cases[i].missing, strlen(cases[i].missing)) != 0 ||
                !m.missing[0] || !isnan(m.step_s))
                fail_msg("%s: lacks '%s'", cases[i].words, m.missing);
            continue;
        }
        assert_string_equal(m.missing, "");
        assert_true(m.low_s <= m.step_s && m.step_s <= m.high_s);
        assert_true(m.comm_share + m.bubble_share + m.host_share <= 1);
    }
}

/* ---- Tables ---- */

TEST(tables_of_runs)
{
    static const char text[] = "gpus,step_ms,global_batch,tp,curve\n"
                               "8,1000,64,2,a\n16,520,64,2,a\n16,,64,2,a\nx,5,64,1,a\n";
    struct knee_scale_row rows[8];
    struct knee_err err = {0};
    size_t count = 0, refused = 0;
    assert_true(knee_scale_is_table(text, sizeof text - 1));
    assert_false(knee_scale_is_table("step,loss\n1,2\n", 14));
    assert_ok(knee_scale_table_read((struct knee_named_text){text, sizeof text - 1, "t.csv"}, NULL,
                                    &(struct knee_scale_table){rows, 8, &count, &refused}, &err));
    assert_int_equal(count, 2);
    assert_int_equal(refused, 2);
    assert_near(rows[1].step_s, 0.52, 1e-12);
    assert_near(rows[1].replica, 2, 0);
    assert_string_equal(rows[1].source, "t.csv:3");
    static const char two[] = "workers,tokens_per_s,curve\n1,100,a\n2,190,b\n";
    assert_int_equal(
        knee_scale_table_read((struct knee_named_text){two, sizeof two - 1, "t.csv"}, NULL,
                              &(struct knee_scale_table){rows, 8, &count, &refused}, &err),
        KNEE_INPUT);
    assert_ok(knee_scale_table_read((struct knee_named_text){two, sizeof two - 1, "t.csv"}, "b",
                                    &(struct knee_scale_table){rows, 8, &count, &refused}, &err));
    assert_int_equal(count, 1);
}

/* ---- Out ---- */

/* ---- What hides behind compute ---- */

#define COMPUTE_S 0.4
/* An exchange of `comm` seconds on many workers that hides behind two thirds of compute. */
static double overlapped(double workers, double comm)
{
    double compute = COMPUTE_S / workers;
    return compute + fmax(0, comm * (1 - 1 / workers) - 2.0 / 3 * compute);
}

/* 1, 2 and 4 workers, and what a step at 4 is made of. */
static void fit_overlapped(double comm, bool inside, struct knee_scale_fit *fit)
{
    struct knee_scale_point points[3];
    for (size_t i = 0; i < 3; i++)
        points[i] = (struct knee_scale_point){.workers = (double)(1 << i),
                                              .step_s = overlapped((double)(1 << i), comm),
                                              .batch = 64,
                                              .error = NAN,
                                              .replica = 1};
    assert_ok(knee_scale_fit(points, 3, fit, NULL));
    double compute = COMPUTE_S / 4, step = points[2].step_s;
    if (inside)
        fit->inside = (struct knee_scale_inside){4, 64, step, compute, comm * 0.75, step - compute};
}

TEST(what_hides_comes_to_light)
{
    struct knee_scale_fit seen, blind;
    struct knee_scale_forecast f, g;
    for (double comm = 0.05; comm < 0.15; comm += 0.01)
        for (double workers = 8; workers <= 16; workers *= 2) {
            double truth = overlapped(workers, comm);
            fit_overlapped(comm, true, &seen);
            fit_overlapped(comm, false, &blind);
            assert_ok(knee_scale_predict(&seen, workers, NAN, &f, NULL));
            assert_ok(knee_scale_predict(&blind, workers, NAN, &g, NULL));
            assert_true(f.step_s >= truth * 0.999);
            assert_true(fabs(f.step_s - truth) <= fabs(g.step_s - truth) + 1e-12);
            assert_near(f.step_s - f.unhidden_s, g.step_s, 1e-12);
            assert_true(g.unhidden_s == 0 && f.low_s <= f.step_s && f.step_s <= f.high_s);
            /* all of it hid at 4 workers: steps alone are far off, figures are not */
            if (comm * 0.75 < 2.0 / 3 * 0.1)
                assert_near(f.step_s, truth, 0.03 * truth);
        }
    /* what never comes to light changes nothing */
    fit_overlapped(0.001, true, &seen);
    assert_ok(knee_scale_predict(&seen, 8, NAN, &f, NULL));
    assert_true(f.unhidden_s == 0);
}

/* A ring of `buckets` buckets that get ready evenly over the backward pass: wire and hops, one
 * after the other. The closed form of the lab's job. */
static void ring_job(double workers, double wire, double hop, double buckets, bool overlap,
                     struct knee_scale_inside *out)
{
    double compute = COMPUTE_S / workers, backward = 2.0 / 3 * compute;
    double comm = wire * (1 - 1 / workers) + hop * (workers - 1), done = 0;
    for (double b = 1; b <= buckets; b++) {
        double ready = overlap ? compute - backward + backward * b / buckets : compute;
        done = fmax(done, ready) + comm / buckets;
    }
    *out = (struct knee_scale_inside){workers, 64, done, compute, comm, done - compute};
}

TEST(hops_and_buckets_are_carried_on)
{
    for (double wire = 0.02; wire < 0.25; wire *= 1.5)
        for (double hop = 0; hop < 0.01; hop += 0.003)
            for (int how = 0; how < 6; how++) {
                struct knee_scale_inside at[4];
                struct knee_scale_point points[3];
                struct knee_scale_fit fit;
                struct knee_scale_forecast f;
                for (size_t i = 0; i < 4; i++)
                    ring_job((double)(1 << i), wire, hop, how < 3 ? 4 : 25, how % 3 != 0, &at[i]);
                for (size_t i = 0; i < 3; i++)
                    points[i] = (struct knee_scale_point){.workers = at[i].workers,
                                                          .step_s = at[i].step_s,
                                                          .batch = 64,
                                                          .error = NAN};
                assert_ok(knee_scale_fit(points, 3, &fit, NULL));
                fit.inside_before = at[1];
                fit.inside = at[2];
                assert_ok(knee_scale_predict(&fit, 8, NAN, &f, NULL));
                if (!(fabs(f.step_s / at[3].step_s - 1) <= 0.05))
                    fail_msg("wire %g hop %g how %d: %g instead of %g", wire, hop, how, f.step_s,
                             at[3].step_s);
            }
}

/* ---- Jobs of a scheduler ---- */

/* 40 jobs of two nodes each; h05 is in the first `bad` of the five that failed, and in two more. */
static void write_jobs(struct knee_text *text, int bad)
{
    int failures = 0;
    knee_text_puts(text, "JobID|State|Start|End|Elapsed|NNodes|NodeList|AllocTRES\n");
    for (int i = 0; i < 40; i++) {
        bool fails = i % 8 == 0, own = fails ? failures++ < bad : i == 3 || i == 13;
        knee_text_printf(text, "%d|%s|2026-03-01T%02d:00:00|2026-03-01T%02d:30:00|00:30:00|2|",
                         100 + i,
                         fails    ? "FAILED"
                         : i == 1 ? "CANCELLED by 7"
                                  : "COMPLETED",
                         i % 24, i % 24);
        knee_text_printf(text, "h%02d,n[%02d]|gres/gpu=16,node=2\n", own ? 5 : 10 + i, i);
        knee_text_printf(text, "%d.batch|FAILED|||00:30:00|1|h05|\n", 100 + i);
    }
}

static struct knee_sched_account account_of_jobs(int bad)
{
    struct knee_text text = {0};
    struct knee_sched_jobs jobs = {.row = NULL};
    struct knee_sched_account account;
    struct knee_err err;
    write_jobs(&text, bad);
    assert_true(knee_is_sacct(text.data, text.length));
    assert_ok(knee_sched_read((struct knee_named_text){text.data, text.length, "t"}, &jobs, &err));
    assert_ok(knee_sched_account(&jobs, &account, &err));
    knee_sched_release(&jobs);
    knee_text_release(&text);
    return account;
}

/* The chance is counted by hand: the hypergeometric tail, as h05 alone has several jobs. */
TEST(a_host_in_most_failures_is_named)
{
    struct knee_sched_account a = account_of_jobs(4);
    assert_int_equal(a.jobs, 40);
    assert_int_equal(a.failed, 5);
    assert_int_equal(a.by_state[KNEE_SCHED_CANCELLED], 1);
    assert_near(a.node_s / 3600, 40, 1e-9);
    assert_near(a.gpu_s / 3600, 320, 1e-9);
    assert_near(a.failed_node_s / a.node_s, 0.125, 1e-9);
    assert_string_equal(a.host[0].name, "h05");
    assert_int_equal(a.host[0].failed, 4);
    assert_int_equal(a.host[0].jobs, 6);
    /* C(5,4) C(35,2) / C(40,6) + C(5,5) C(35,1) / C(40,6) */
    double p = (5 * 595.0 + 35) / 3838380;
    assert_near(a.host[0].chance, p, 1e-9);
    assert_int_equal(a.suspects, 1);
    assert_int_equal(account_of_jobs(1).suspects, 0);
    /* (C(5,2) C(35,2) + C(5,3) C(35,1) + C(5,4)) / C(40,4) */
    assert_near(account_of_jobs(2).host[0].chance, (10 * 595 + 10 * 35 + 5) / 91390.0, 1e-9);
}

TEST(node_lists)
{
    static const char *const hosts[] = {"node01", "node02", "node03", "node07", "big1", "x9-ib0"};
    const char *list = "node[01-03,07],big1,x[9]-ib0";
    struct knee_sched_hosts walk;
    char name[48];
    knee_sched_hosts_init(&walk, list, strlen(list));
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        assert_true(knee_sched_host(&walk, name, sizeof name));
        assert_string_equal(name, hosts[i]);
    }
    assert_false(knee_sched_host(&walk, name, sizeof name));
    knee_sched_hosts_init(&walk, "n[3-1],", 7);
    assert_false(knee_sched_host(&walk, name, sizeof name));
    knee_sched_hosts_init(&walk, "n[05-ib", 4); /* cut: nothing behind its end is read */
    assert_true(knee_sched_host(&walk, name, sizeof name));
    assert_string_equal(name, "n05");
}

/* Aligned columns: a list that was cut is not counted, and days are read. */
TEST(columns_of_sacct)
{
    static const char text[] = "JobID             State    Elapsed   NNodes        NodeList\n"
                               "------------ ---------- ---------- -------- ---------------\n"
                               "2001          COMPLETED   02:00:00        2     node[01-02]\n"
                               "2001.batch    COMPLETED   02:00:00        1          node01\n"
                               "2002             FAILED 1-01:00:00       16 node[01-09,11-+\n"
                               "2003         CANCELLED+   01:00:00        1          node07\n";
    struct knee_sched_jobs jobs = {.row = NULL};
    struct knee_err err;
    assert_ok(knee_sched_read((struct knee_named_text){text, sizeof text - 1, "t"}, &jobs, &err));
    assert_int_equal(jobs.count, 3);
    assert_int_equal(jobs.cut, 1);
    assert_int_equal(jobs.row[1].state, KNEE_SCHED_FAILED);
    assert_near(jobs.row[1].elapsed_s, 90000, 1e-9);
    assert_int_equal(jobs.row[2].state, KNEE_SCHED_CANCELLED);
    knee_sched_release(&jobs);
    assert_int_equal(knee_sched_read((struct knee_named_text){"a b\n", 4, "t"}, &jobs, &err),
                     KNEE_INPUT);
}

/* States that are not known, seconds as a number, by clocks or by stamps; lines that are cut. */
TEST(fields_of_sacct)
{
    static const char text[] =
        "JobID|State|Start|End|Elapsed|ElapsedRaw|NNodes|NodeList|AllocTRES|State\n"
        "11|RUNNING|2026-03-01T00:00:00|Unknown|00:10:00|600|2|n[01-02]|gres/gpu=16|x\n"
        "12|PD|Unknown|Unknown|00:00:00||1|None assigned||\n"
        "13|NODE_FAIL|2026-03-01T00:00:00|2026-03-01T01:00:00|x-00:00:01|||n[5-,n[2000001],m|\n"
        "14|OUT_OF_MEMORY++|||1-00:00:00.500||||\n"
        "15|TIMEOUT\n"
        "batch|FAILED\n|\n";
    static const double elapsed[] = {600, 0, 3600, 86400, NAN};
    static const enum knee_sched_state states[] = {KNEE_SCHED_RUNNING, KNEE_SCHED_OTHER,
                                                   KNEE_SCHED_NODE_FAIL, KNEE_SCHED_MEMORY,
                                                   KNEE_SCHED_TIMEOUT};
    struct knee_sched_jobs jobs = {.row = NULL};
    struct knee_sched_account account;
    struct knee_err err;
    assert_ok(knee_sched_read((struct knee_named_text){text, sizeof text - 1, "t"}, &jobs, &err));
    assert_int_equal(jobs.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(jobs.row[i].state, states[i]);
        assert_true(isnan(elapsed[i]) ? isnan(jobs.row[i].elapsed_s)
                                      : fabs(jobs.row[i].elapsed_s - elapsed[i]) < 1e-6);
    }
    assert_int_equal(jobs.row[1].hosts_length, 0);
    assert_ok(knee_sched_account(&jobs, &account, &err));
    assert_int_equal(account.jobs, 3);                      /* one never ran, one has no time */
    assert_near(account.node_s, 2 * 600 + 3600 + 86400, 1); /* without a count: one node */
    assert_string_equal(knee_sched_state_name(KNEE_SCHED_STATES), "?");
    knee_sched_release(&jobs);
}

/* Twelve timed jobs of two nodes; the three slowest ran on n9, which has one more job. Beside them:
 * a job that never ran, one without a node list, one out of memory, ten hosts that failed once. */
TEST(slow_jobs_fall_on_a_host)
{
    struct knee_sched_job rows[26];
    struct knee_sched_jobs jobs = {.row = rows};
    struct knee_sched_account a;
    struct knee_err err = {0};
    for (int i = 0; i < 12; i++) {
        rows[jobs.count] = (struct knee_sched_job){.state = KNEE_SCHED_COMPLETED,
                                                   .elapsed_s = 3600,
                                                   .nodes = 2,
                                                   .gpus = NAN,
                                                   .step_s = i < 3 ? 2 + 0.1 * i : 1 + 0.01 * i,
                                                   .hosts = jobs.text.length};
        knee_text_printf(&jobs.text, "n%d,m%d", i < 4 ? 9 : 10 + i, i);
        rows[jobs.count].hosts_length = jobs.text.length - rows[jobs.count].hosts;
        jobs.count++;
    }
    for (int i = 0; i < 14; i++) {
        rows[jobs.count] =
            (struct knee_sched_job){.state = i == 12   ? KNEE_SCHED_MEMORY
                                             : i == 13 ? KNEE_SCHED_OTHER
                                             : i < 10  ? KNEE_SCHED_NODE_FAIL
                                                       : KNEE_SCHED_COMPLETED,
                                    .elapsed_s = i == 13 ? 0 : 60,
                                    .nodes = i == 11 ? NAN : 1,
                                    .gpus = i == 10 ? 8 : NAN,
                                    .step_s = i == 10 ? 9 : NAN, /* of one node: another kind */
                                    .hosts = jobs.text.length};
        if (i != 11)
            knee_text_printf(&jobs.text, "f%d", i);
        rows[jobs.count].hosts_length = jobs.text.length - rows[jobs.count].hosts;
        jobs.count++;
    }
    assert_ok(knee_sched_account(&jobs, &a, &err));
    assert_int_equal(a.jobs, 25);
    assert_int_equal(a.timed, 13);
    assert_int_equal(a.slow, 3);
    assert_int_equal(a.failed, 11);
    assert_int_equal(a.unnamed, 1);
    assert_int_equal(a.repeated, 1);
    assert_int_equal(a.listed, KNEE_SCHED_HOSTS);
    assert_string_equal(a.host[0].name, "n9");
    assert_true(a.host[0].by_slow && a.host[0].slow == 3 && a.host[0].jobs == 4);
    assert_near(a.host[0].chance, 10.0 / 715, 1e-9); /* C(3,3) C(10,1) / C(13,4) */
    assert_int_equal(a.suspects, 1);
    knee_text_release(&jobs.text);
    jobs.count = 1;
    rows[0].hosts_length = 0; /* no list at all */
    assert_ok(knee_sched_account(&jobs, &a, &err));
    assert_int_equal(a.host_count, 0);
}

/* The scheduler's start, end and GPUs go to the log with the job's number in its name. */
TEST(a_log_and_its_job)
{
    struct knee_sched_job row = {.id = "103",
                                 .state = KNEE_SCHED_TIMEOUT,
                                 .begin_s = 900,
                                 .end_s = 2100,
                                 .elapsed_s = 1200,
                                 .gpus = 16,
                                 .step_s = NAN};
    struct knee_sched_jobs jobs = {.row = &row, .count = 1};
    struct knee_train_log log = {.name = "slurm-103.out",
                                 .timing = KNEE_TIMED_PRINTED,
                                 .median_s = 2,
                                 .workers = NAN,
                                 .account = {.wall_s = 1000, .begin_s = 1000, .end_s = 2000}};
    struct knee_train_log other = log;
    memcpy(other.name, "slurm-1035.out", sizeof "slurm-1035.out");
    knee_sched_join(&jobs, &other);
    assert_true(isnan(other.workers));
    knee_sched_join(&jobs, &log);
    assert_near(log.workers, 16, 0);
    assert_near(log.account.wall_s, 1200, 1e-9);
    assert_near(log.account.part_s[KNEE_TIME_STARTUP], 200, 1e-9);
    assert_int_equal(log.account.ended, KNEE_ENDED_LIMIT);
    assert_near(row.step_s, 2, 1e-9);
    /* Nothing that the log itself says is overwritten, and stamps of another day are not joined. */
    struct knee_train_log own = {
        .name = "1039-103-a.out",
        .timing = KNEE_TIMED_NOT,
        .workers = 8,
        .account = {.wall_s = 1000, .begin_s = 100, .end_s = 2000, .ended = KNEE_ENDED_WELL}};
    knee_sched_join(&jobs, &own);
    assert_true(isnan(row.step_s) && own.account.ended == KNEE_ENDED_WELL);
    assert_near(own.workers, 8, 0);
    assert_near(own.account.wall_s, 1000, 0);
    own.account = (struct knee_train_account){.wall_s = NAN, .begin_s = 1000, .end_s = 2000};
    own.workers = row.gpus = NAN;
    knee_sched_join(&jobs, &own);
    assert_true(isnan(own.workers) && isnan(own.account.wall_s));
    own.account = (struct knee_train_account){.wall_s = 1e4, .begin_s = 1000, .end_s = 9000};
    knee_sched_join(&jobs, &own);
    assert_near(own.account.wall_s, 1e4, 0);
}

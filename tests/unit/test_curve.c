/* SPDX-License-Identifier: MIT */
/* Curves of one log: they find pieces, rise, ignore disturbed rows, and stay small. */
#include "unit.h"

#include "collective/curve.h"

static struct knee_curve fit(const struct knee_curve_point *points, size_t count)
{
    struct knee_curve curve = {0};
    struct knee_err err;
    if (knee_curve_fit(points, count, NULL, &curve, &err))
        fail_msg("%s", err.what);
    assert_true(curve.knots >= 1 && curve.knots <= KNEE_KNOTS_MAX);
    for (size_t k = 1; k < curve.knots; k++) {
        assert_true(curve.bytes[k] > curve.bytes[k - 1]);
        assert_true(curve.time_s[k] >= curve.time_s[k - 1]);
    }
    return curve;
}

/* Three protocols as NCCL has them: the least of three lines. */
static double three_lines(double bytes)
{
    return fmin(fmin(20e-6 + bytes / 2e9, 25e-6 + bytes / 60e9), 90e-6 + bytes / 200e9);
}

static size_t sizes(struct knee_curve_point *points, double noise, uint64_t seed)
{
    size_t count = 0;
    for (double bytes = 8; bytes <= 8589934592.0; bytes *= 2)
        points[count++] = (struct knee_curve_point){
            bytes, three_lines(bytes) * (1 + noise * (2 * chance(&seed) - 1))};
    return count;
}

TEST(pieces_are_found)
{
    struct knee_curve_point points[64];
    size_t count = sizes(points, 0, 1);
    struct knee_curve curve = fit(points, count);
    for (double bytes = 8; bytes < 8e9; bytes *= 1.37)
        assert_relative(knee_curve_time_s(&curve, bytes), three_lines(bytes), 0.12);
    assert_true(curve.knots <= 9);
}

TEST(a_line_needs_two_knots)
{
    struct knee_curve_point points[40];
    size_t count = 0;
    for (double bytes = 1024; bytes <= 1e9; bytes *= 2)
        points[count++] = (struct knee_curve_point){bytes, 1e-5 + bytes / 1e10};
    struct knee_curve curve = fit(points, count);
    assert_int_equal(curve.knots, 2);
    assert_relative(knee_curve_time_s(&curve, 3e6), 1e-5 + 3e-4, 1e-6);
}

/* Two rows in five are half as slow again: the fit stays with the other three. */
TEST(disturbed_rows_do_not_pull)
{
    struct knee_curve_point points[64];
    size_t count = sizes(points, 0.01, 7), far = 0;
    for (size_t i = 0; i < count; i++)
        points[i].time_s *= i % 5 == 1 || i % 5 == 3 ? 1.5 : 1;
    struct knee_curve curve = fit(points, count);
    for (size_t i = 0; i < count; i++)
        far += fabs(knee_curve_time_s(&curve, points[i].bytes) / three_lines(points[i].bytes) - 1) >
               0.05;
    assert_true(far * 4 <= count);
}

/* What falls with size is noise or another algorithm; a curve does not follow it down. */
TEST(it_never_falls)
{
    uint64_t seed = 3;
    for (int round = 0; round < 200; round++) {
        struct knee_curve_point points[50];
        size_t count = 1 + (size_t)(40 * chance(&seed));
        double bytes = 1;
        for (size_t i = 0; i < count; i++) {
            bytes += bytes * chance(&seed) * 2 + (chance(&seed) < 0.8);
            points[i] = (struct knee_curve_point){bytes, between(&seed, 1e-6, 1e-2)};
        }
        fit(points, count);
    }
}

TEST(few_points_are_enough)
{
    struct knee_curve_point one[] = {{100, 1e-5}}, two[] = {{100, 1e-5}, {200, 2e-5}};
    struct knee_curve curve = fit(one, 1);
    assert_relative(knee_curve_time_s(&curve, 5000), 1e-5, 1e-6);
    curve = fit(two, 2);
    assert_relative(knee_curve_time_s(&curve, 150), 1.5e-5, 1e-6);
    struct knee_curve_point same[] = {{100, 1e-5}, {100, 1.2e-5}, {100, 9e-5}};
    curve = fit(same, 3);
    assert_true(curve.time_s[0] > 1e-5 && curve.time_s[0] < 1.3e-5); /* near the middle one */
    struct knee_err err;
    assert_int_equal(knee_curve_fit(one, 0, NULL, &curve, &err), KNEE_INPUT);
}

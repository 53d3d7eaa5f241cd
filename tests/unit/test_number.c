/* SPDX-License-Identifier: MIT */
/* Numbers, units, lists of workers: what is read, and what is refused with which words. */
#include "base/slice.h"
#include "unit.h"

#include "base/json_values.h"
#include "base/keys.h"
#include "base/number.h"
#include "base/spell.h"
#include "base/text.h"

TEST(units_are_read)
{
    static const struct {
        const char *text;
        enum knee_unit unit;
        double value;
    } cases[] = {
        {"7B", KNEE_UNIT_COUNT, 7e9},
        {"350M", KNEE_UNIT_COUNT, 350e6},
        {"1.5e3", KNEE_UNIT_COUNT, 1500},
        {"4Mi", KNEE_UNIT_COUNT, 4194304},
        {"25GB/s", KNEE_UNIT_BYTES_PER_S, 25e9},
        {"400Gbit/s", KNEE_UNIT_BYTES_PER_S, 50e9},
        {"400 Gb/s", KNEE_UNIT_BYTES_PER_S, 50e9},
        {"100Gbps", KNEE_UNIT_BYTES_PER_S, 12.5e9},
        {"1e9", KNEE_UNIT_BYTES_PER_S, 1e9},
        {"5us", KNEE_UNIT_SECONDS, 5e-6},
        {"5\xc2\xb5s", KNEE_UNIT_SECONDS, 5e-6},
        {"180ms", KNEE_UNIT_SECONDS, 0.18},
        {"1.5h", KNEE_UNIT_SECONDS, 5400},
        {"60TFLOP/s", KNEE_UNIT_FLOPS, 60e12},
        {"312 TFLOPS", KNEE_UNIT_FLOPS, 312e12},
        {"70%", KNEE_UNIT_FRACTION, 0.7},
        {" .7 ", KNEE_UNIT_FRACTION, 0.7},
        {"4x", KNEE_UNIT_FACTOR, 4},
        {"12k/s", KNEE_UNIT_PER_S, 12000},
        {"$2.50", KNEE_UNIT_DOLLARS, 2.5},
        {"$1.5M", KNEE_UNIT_DOLLARS, 1.5e6},
        {"700W", KNEE_UNIT_WATTS, 700},
        {"4KiB", KNEE_UNIT_BYTES, 4096},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = 0;
        struct knee_err err;
        if (knee_number_parse(cases[i].text, cases[i].unit, "--x", &value, &err))
            fail_msg("%s: %s", cases[i].text, err.what);
        assert_true(value == cases[i].value);
    }
}

TEST(nonsense_is_refused_and_leaves_the_output_alone)
{
    static const struct {
        const char *text;
        enum knee_unit unit;
        const char *hint;
    } cases[] = {
        {"", KNEE_UNIT_COUNT, "for example"},
        {"nan", KNEE_UNIT_COUNT, "for example"},
        {"inf", KNEE_UNIT_SECONDS, "for example"},
        {"0x10", KNEE_UNIT_COUNT, ""},
        {"1e400", KNEE_UNIT_COUNT, ""},
        {"1e308TB/s", KNEE_UNIT_BYTES_PER_S, ""},
        {"7 B B", KNEE_UNIT_COUNT, ""},
        {"--5", KNEE_UNIT_COUNT, ""},
        {"1.2.3", KNEE_UNIT_COUNT, ""},
        {"25gb/s", KNEE_UNIT_BYTES_PER_S, "Gbit/s for bits"},
        {"25GB", KNEE_UNIT_BYTES_PER_S, "Gbit/s for bits"},
        {"5GB/s", KNEE_UNIT_SECONDS, "for example"},
        {"60TFLOPP/s", KNEE_UNIT_FLOPS, "TFLOP/s"},
        {"5u", KNEE_UNIT_SECONDS, "us"},
        {"1111111111111111111111111111111111111111111111111111111111111111111111", KNEE_UNIT_COUNT,
         ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = 42;
        struct knee_err err;
        assert_int_equal(knee_number_parse(cases[i].text, cases[i].unit, "--x", &value, &err),
                         KNEE_USAGE);
        assert_true(value == 42);
        assert_string_equal(err.where, "--x");
        if (!strstr(err.hint, cases[i].hint))
            fail_msg("%s: hint is '%s'", cases[i].text, err.hint);
        assert_int_equal(knee_number_parse(cases[i].text, cases[i].unit, "", &value, NULL),
                         KNEE_USAGE);
    }
}

TEST(exact_numbers_read_back)
{
    uint64_t seed = 7;
    for (int i = 0; i < UNIT_SOME(100000); i++) {
        char text[40];
        double value = (chance(&seed) - 0.5) * pow(10, 600 * chance(&seed) - 300);
        knee_number_exact(text, sizeof text, value);
        assert_true(strtod(text, NULL) == value);
    }
    char text[40];
    knee_number_exact(text, sizeof text, 0.1);
    assert_string_equal(text, "0.1");
    knee_number_exact(text, sizeof text, NAN);
    assert_string_equal(text, "null");
}

/* What people read back is what was meant, to the digits shown. */
TEST(human_numbers_read_back)
{
    uint64_t seed = 11;
    static const enum knee_unit units[] = {
        KNEE_UNIT_COUNT, KNEE_UNIT_SECONDS, KNEE_UNIT_BYTES, KNEE_UNIT_BYTES_PER_S,
        KNEE_UNIT_FLOPS, KNEE_UNIT_PER_S,   KNEE_UNIT_WATTS, KNEE_UNIT_DOLLARS};
    for (int i = 0; i < 100000; i++) {
        enum knee_unit unit = units[i % 8];
        char text[48];
        double back = 0, value = between(&seed, unit == KNEE_UNIT_SECONDS ? 1e-8 : 1, 1e15);
        struct knee_err err;
        knee_number_human(text, sizeof text, value, unit);
        if (strstr(text, " MW") || strstr(text, " kB"))
            continue; /* written, but not a spelling we read */
        if (knee_number_parse(text, unit, "", &back, &err))
            fail_msg("%s: %s", text, err.what);
        assert_relative(back, value, 0.006);
    }
}

static size_t list(const char *text, double *out)
{
    struct knee_workers workers;
    struct knee_err err;
    if (knee_workers_parse(text, "--workers", &workers, &err))
        fail_msg("%s: %s", text, err.what);
    return knee_workers_list(&workers, out, KNEE_ROWS_MAX);
}

TEST(worker_lists_are_read)
{
    static double out[KNEE_ROWS_MAX];
    assert_int_equal(list("8", out), 1);
    assert_int_equal(list("4,1,2,4", out), 3);
    assert_true(out[0] == 1 && out[1] == 2 && out[2] == 4);
    assert_int_equal(list("1..1024x2", out), 11);
    assert_true(out[10] == 1024);
    assert_int_equal(list("1..1000x2", out), 10);
    assert_int_equal(list("8..64+8", out), 8);
    assert_int_equal(list("1..256", out), 256);
    assert_int_equal(list("1,2,8..64x2", out), 6);
    assert_int_equal(list("1..10000", out), 10000);
    assert_int_equal(list("1..20x1.5", out), 7);
    assert_int_equal(list("8,8,4..8,2", out), 6);
    assert_true(out[0] == 2 && out[1] == 4 && out[5] == 8);
    struct knee_workers three;
    out[2] = -1;
    assert_ok(knee_workers_parse("3,2,1,2", "", &three, NULL));
    assert_int_equal(knee_workers_list(&three, out, 2), 0);
    assert_true(out[2] == -1);
    assert_int_equal(knee_workers_list(&three, out, 3), 3);
}

TEST(bad_worker_lists_are_refused)
{
    static const char *const bad[] = {
        "",       "0",      "-4", "1.5",           "1..",      "..8", "8..4",  "1,,2", "1..8x1",
        "1..8x0", "1..8+0", "x2", "1..1000000000", "16777217", "nan", "1..8x", "1;2",  "1,2,"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct knee_workers workers;
        struct knee_err err = {0};
        if (knee_workers_parse(bad[i], "--workers", &workers, &err) != KNEE_USAGE)
            fail_msg("'%s' was taken", bad[i]);
        assert_true(err.what[0] && err.hint[0]);
    }
    char many[600] = "1";
    for (int i = 0; i < 40; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), ",%d", i + 2);
    struct knee_workers workers;
    assert_int_equal(knee_workers_parse(many, "", &workers, NULL), KNEE_USAGE);
}

TEST(too_many_rows_are_refused)
{
    struct knee_job job =
        job_of("params 1e9 flops 1e12 bandwidth 1e9 workers 1..10000,10001..10002");
    struct knee_prediction p;
    struct knee_err err;
    assert_int_equal(knee_predict(&job, NULL, &p, &err), KNEE_USAGE);
}

TEST(spelling_is_guessed)
{
    static const char *const names[] = {"bandwidth", "latency", "params", "local-batch",
                                        "price",     "tp",      "k"};
    static const char *const wrong[][2] = {
        {"bandwith", "bandwidth"},
        {"band", "bandwidth"},
        {"latncy", "latency"},
        {"parms", "params"},
        {"local_batch", "local-batch"},
        {"zzzzzz", NULL},
        {"t", "tp"},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct knee_nearest nearest = {.wanted = wrong[i][0]};
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            knee_nearest_offer(&nearest, names[n]);
        if (wrong[i][1])
            assert_string_equal(nearest.name, wrong[i][1]);
        else
            assert_null(nearest.name);
    }
}

/* ---- Text as it comes ---- */

TEST(characters_are_whole_or_none)
{
    static const struct {
        const char *text;
        size_t length;
    } rows[] = {
        {"a", 1},
        {"\xc3\xa4", 2},
        {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x98\x80", 4},
        {"\x80", 0},             /* the rest of one */
        {"\xc1\x81", 0},         /* two bytes for what takes one */
        {"\xe0\x9f\xbf", 0},     /* three for what takes two */
        {"\xe0\xa0\x80", 3},     /* the first that takes three */
        {"\xed\xa0\x80", 0},     /* half of a pair */
        {"\xed\x9f\xbf", 3},     /* the last before them */
        {"\xf0\x8f\xbf\xbf", 0}, /* four for what takes three */
        {"\xf4\x8f\xbf\xbf", 4}, /* the last there is */
        {"\xf4\x90\x80\x80", 0}, /* past it */
        {"\xf5\x80\x80\x80", 0},
        {"\xe2\x82", 0}, /* cut */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (knee_utf8_length(rows[i].text) != rows[i].length)
            fail_msg("row %zu: %zu", i, knee_utf8_length(rows[i].text));
}

TEST(strings_of_json)
{
    static const struct {
        const char *json, *text; /* NULL: refused */
    } rows[] = {
        {"\"a\\n\\t\\r\\b\\f\\\\\\\"\"", "a\n\t\r\b\f\\\""},
        {"\"\\u00e4x\"", "?x"},
        {"\"\\u00", NULL},
        {"\"\\", NULL},
        {"\"a", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct knee_json_values v;
        knee_json_values_init(&v, rows[i].json, strlen(rows[i].json));
        assert_int_equal(knee_json_values_next(&v), rows[i].text != NULL);
        if (rows[i].text)
            assert_string_equal(v.text, rows[i].text);
        else
            assert_non_null(v.error);
        assert_false(knee_json_values_next(&v));
    }
}

TEST(numbers_at_their_ends)
{
    static const struct {
        const char *text;
        double value; /* NAN: refused */
    } rows[] = {
        {"+5", 5},    {"-5", -5},   {"5e+2", 500},  {"5E-1", 0.5}, {"5e", NAN},
        {".", NAN},   {"5 \t", 5},  {"\t 5", 5},    {"", NAN},     {"0x10", NAN},
        {"nan", NAN}, {"inf", NAN}, {"1e999", NAN}, {"1e-999", 0},
    };
    char out[32];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct knee_err err;
        double value = 77;
        knee_status status = knee_number_parse(rows[i].text, KNEE_UNIT_COUNT, "x", &value, &err);
        if (isnan(rows[i].value) ? !status || value != 77 : status || value != rows[i].value)
            fail_msg("'%s': status %d, %g", rows[i].text, (int)status, value);
    }
    knee_number_human(out, sizeof out, INFINITY, KNEE_UNIT_SECONDS);
    assert_string_equal(out, "no limit");
    knee_number_human(out, sizeof out, INFINITY, KNEE_UNIT_FACTOR);
    assert_string_equal(out, "no limit");
    knee_number_human(out, sizeof out, 2.5, KNEE_UNIT_FACTOR);
    assert_string_equal(out, "2.5x");
    knee_number_human(out, sizeof out, NAN, KNEE_UNIT_FACTOR);
    assert_string_equal(out, "-");
    knee_number_ns(out, sizeof out, INT64_MIN);
    assert_string_equal(out, "-9223372036.854775808");
    knee_number_ns(out, sizeof out, 1000000000);
    assert_string_equal(out, "1.0");
}

/* A number is the whole of its text, or there is none. */
TEST(numbers_end_where_their_text_does)
{
    static const char *const none[] = {"", "1.5e", "1-2", "1.2.3", "--", ".", "1e999"};
    double value = 0;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(knee_slice_number(knee_slice_of(none[i]), &value));
    assert_true(knee_slice_number(knee_slice_of("-1.5e3"), &value));
    assert_near(value, -1500, 0);
}

/* SPDX-License-Identifier: MIT */
/* Our digits against the C library's, in the C locale: the second method. KNEE_DECIMALS=N draws N
 * numbers of each kind (midpoints: a fiftieth) instead of the usual ones. */
#include "unit.h"

#include "base/decimal.h"
#include "base/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t draws(size_t usual)
{
    const char *asked = getenv("KNEE_DECIMALS");
    return asked ? (size_t)strtoull(asked, NULL, 10) : UNIT_SOME(usual);
}

static double any_double(void)
{
    double value;
    do {
        uint64_t bits = draw();
        memcpy(&value, &bits, sizeof value);
    } while (!isfinite(value));
    return value;
}

static void agrees(const char *text)
{
    char *end;
    const char *ours_end;
    double theirs = strtod(text, &end), ours = knee_decimal_parse(text, &ours_end);
    if (memcmp(&theirs, &ours, sizeof ours) != 0 || end != ours_end)
        fail_msg("'%s': %a, not %a; %td characters, not %td", text, ours, theirs, ours_end - text,
                 end - text);
}

TEST(test_hard_texts)
{
    static const char texts[] =
        "0|-0|0.0|.5|5.|.||-|+|e5|1e|1e+|1e+x|  1|\t-2.5e3z|1.5.2|--1|1e400|-1e400|1e-400|"
        "1e99999999999999999999|1e-99999999999999999999|0e99999999999999|"
        "2.2250738585072011e-308|2.2250738585072012e-308|2.2250738585072014e-308|"
        "4.9406564584124654e-324|2.4703282292062327208e-324|2.4703282292062327209e-324|"
        "2.4703282292062328e-324|1.7976931348623157e308|1.7976931348623158e308|"
        "1.7976931348623159e308|179769313486231580793e289|9007199254740993|"
        "9007199254740992.5|9007199254740993.0000000000000000000000001|1e22|1e23|8.41e21|"
        "9.5e-22|123456789012345678901234567890|6.02214076e23|"
        "0.000000000000000000000000000000000000001|"
        "100000000000000000000000000000000000000000|"
        "1.00000000000000011102230246251565404236316680908203125|"
        "1.00000000000000011102230246251565404236316680908203124|"
        "1.00000000000000011102230246251565404236316680908203126|0.7|0,7";
    for (struct pieces p = {.rest = texts}; next_piece(&p);)
        agrees(p.text);
}

/* The exact midpoint between two doubles, and one digit at its far end more or less. */
TEST(test_midpoints)
{
    char text[1600];
    for (size_t i = 0; i < draws(150000) / 50; i++) {
        double low = fabs(any_double());
        if (i % 3 == 0)
            low =
                ldexp(low, -1022 + (int)(draw() % 8) - ilogb(low)); /* near or below the smallest */
        long double middle = ((long double)low + (long double)nextafter(low, INFINITY)) / 2;
        int length = snprintf(text, sizeof text, "%.1100Lf", middle);
        agrees(text);
        text[length - 1] = '1';
        agrees(text);
        snprintf(text, sizeof text, "%.*Le", (int)(draw() % 40), middle);
        agrees(text);
    }
}

TEST(test_random_texts)
{
    char text[96];
    for (size_t i = 0; i < draws(200000); i++) {
        int length = snprintf(text, sizeof text, "%llu%s%0*llu",
                              (unsigned long long)(draw() >> draw() % 64), draw() % 2 ? "." : "",
                              (int)(draw() % 25), (unsigned long long)(draw() >> draw() % 64));
        if (draw() % 2)
            snprintf(text + length, sizeof text - (size_t)length, "e%d", (int)(draw() % 700) - 350);
        agrees(text);
        snprintf(text, sizeof text, "%.*g", 1 + (int)(draw() % 20), any_double());
        agrees(text);
    }
}

static void same_format(const char *fmt, int width, int precision, double value)
{
    char ours[1500], theirs[1500];
    int a = knee_format(ours, sizeof ours, fmt, width, precision, value);
    int b = snprintf(theirs, sizeof theirs, fmt, width, precision, value);
    if (a != b || strcmp(ours, theirs) != 0)
        fail_msg("%s, %d, %d, %a: '%s' (%d), not '%s' (%d)", fmt, width, precision, value, ours, a,
                 theirs, b);
}

static const char *const number_formats[] = {"%*.*f",   "%*.*e",  "%*.*g",  "%+*.*f",
                                             "%-*.*g|", "%0*.*f", "% *.*e", "%0+*.*g",
                                             "%*.*G",   "%*.*E",  "%#*.*f"};

TEST(test_numbers_as_printf_writes_them)
{
    static const double values[] = {
        0,     -0.0,   1,        -1,        0.5, 1.5,     2.5,  0.125,     0.375, 9.995,
        99.5,  0.05,   1e5,      999999,    1e6, 1e-4,    1e-5, 123456789, 1e22,  1e23,
        1e308, 5e-324, INFINITY, -INFINITY, 0.1, 2.0 / 3, 1e15, 1e16,      9.5,   0.95};
    size_t formats = sizeof number_formats / sizeof *number_formats;
    for (size_t f = 0; f < formats; f++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            for (int precision = -1; precision < 22; precision++)
                same_format(number_formats[f], (int)(draw() % 30) - 10, precision, values[v]);
    for (size_t i = 0; i < draws(100000); i++) {
        const char *format = number_formats[draw() % formats];
        same_format(format, (int)(draw() % 40) - 20, (int)(draw() % 30), any_double());
        same_format(format, 0, (int)(draw() % 12), (double)(draw() >> draw() % 64) / 1024);
        same_format(format, 0, (int)(draw() % 5), (double)(draw() % 20001) / 200 - 50); /* ties */
    }
    same_format("%*.*f", 0, 880, 5e-324);
    same_format("%*.*g", 0, 767, 2.2250738585072011e-308);
}

#define SAME(...)                                                                                  \
    do {                                                                                           \
        char ours[200], theirs[200];                                                               \
        int a = knee_format(ours, sizeof ours, __VA_ARGS__);                                       \
        assert_int_equal(a, snprintf(theirs, sizeof theirs, __VA_ARGS__));                         \
        assert_string_equal(ours, theirs);                                                         \
    } while (0)

TEST(test_words_and_whole_numbers)
{
    SAME("%d %i %5d|%-5d|%05d|%+d|% d|%.3d|%8.3d", 1, -2, 3, 4, -5, 6, 7, 8, -9);
    SAME("%#X %#x %#X", 255u, 0u, 0u);
    SAME("%E %G %F %E", (double)NAN, (double)INFINITY, -(double)INFINITY, 1.5);
    SAME("%u %x %X %#x %04x %hhu %hu", 4000000000u, 255u, 255u, 255u, 10u, (unsigned char)200,
         (unsigned short)65535);
    SAME("%lld %llu %zu %ld %jd %td", INT64_MIN + 0LL, 18446744073709551615ull, (size_t)7, -8L,
         (intmax_t)9, (ptrdiff_t)-10);
    SAME("%s|%10s|%-10s|%.2s|%*s|%-*s|%.*s", "a", "bc", "def", "ghij", 5, "k", 5, "l", 3, "mnopq");
    SAME("%c%3c%-3c|%%|%03llu %09llu", 'x', 'y', 'z', 5ull, 123ull);
    SAME("%#g %#.3g %#.2g %g", 0.5, 12.0, 1e-3, 1e-3);
    SAME("%d %.0d|%.0f|%g %g", 0, 0, 0.5, NAN, 100000.0);
    char small[4] = "zzz";
    assert_int_equal(knee_format(small, sizeof small, "%s", "abcdef"), 6);
    assert_string_equal(small, "abc");
    assert_int_equal(knee_format(NULL, 0, "%d%%", 50), 3);
}

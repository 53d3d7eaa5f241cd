/* SPDX-License-Identifier: MIT */
/* The scanner: exact times, strings that lie, and skipping the same as reading. */
#include "unit.h"

#include "read/trace/scan.h"

/* A text in a window with its sentinel. */
struct window {
    char *data;
    const char *end;
};

static struct window window_of(const char *text, size_t length)
{
    struct window w = {malloc(length + KNEE_SCAN_PAD), NULL};
    assert_non_null(w.data);
    memcpy(w.data, text, length);
    memset(w.data + length, '"', KNEE_SCAN_PAD);
    w.end = w.data + length;
    return w;
}

TEST(times_are_exact)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"0,", 0},
        {"1,", 1000},
        {"1.5,", 1500},
        {"1.25,", 1250},
        {"3848501578116.689,", 3848501578116689},
        {"1706850123415584,", 1706850123415584000},
        {"1712195495519806.264,", 1712195495519806264},
        {"1712195495519806.25,", 1712195495519806250},
        {"0.0004,", 0},
        {"0.0005,", 0}, /* half goes to the even neighbour */
        {"0.0015,", 2},
        {"0.00051,", 1},
        {"0.0025000,", 2},
        {"28.7049,", 28705},
        {"-5.001,", -5001},
        {"\"17.5\",", 17500},
        {"1e3,", 1000000},
        {"1.5E+3,", 1500000},
        {"1.714521600123456e15,", 1714521600123456000},
        {"1.7145216001234567e15,", 1714521600123456700},
        {"25e-4,", 2},
        {"35e-4,", 4},
        {"12345678901234.5678e0,", 12345678901234568},
        {"0e5,", 0},
        {"3999999999999999.999,", 3999999999999999999},
        {"1.234567890123456789e3,", 1234568}, /* more digits than are counted */
        {"1.50000000000000000000e0,", 1500},
        {"1234567890123456.50000000000000000000e-1,", 123456789012345650},
        {"2.5e-3,", 2},
        {"2.50000000000000000001e-3,", 3}, /* above the half by what is not counted */
        {"2.5000000001e-3,", 3},
        {"3.5e-3,", 4},
        {"2.6e-3,", 3},
        {"123.4e-7,", 0},
        {"1e-9999,", 0},
        {"0e99999,", 0},
        {"4e15,", 4000000000000000000},
        {"\"1.5e3\",", 1500000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct window w = window_of(cases[i].text, strlen(cases[i].text));
        int64_t ns = -1;
        const char *after = knee_scan_us(w.data, w.end, &ns);
        if (after != w.end - 1 || ns != cases[i].ns)
            fail_msg("%s gives %lld", cases[i].text, (long long)ns);
        free(w.data);
    }
}

TEST(what_is_no_time_is_refused)
{
    static const char bad[] =
        "inf,|nan,|-,|null,|x,|\"a\",|99999999999999999,|1e,|1e99,|4000000000000001,|-2e15,|"
        ".5,|-inf,|1e+x,|1e-,|4.1e15,|1e99999,|e5,|-1.1e15,";
    for (struct pieces p = {.rest = bad}; next_piece(&p);) {
        struct window w = window_of(p.text, strlen(p.text));
        int64_t ns = 7;
        assert_ptr_equal(knee_scan_us(w.data, w.end, &ns), KNEE_SCAN_BAD);
        assert_int_equal(ns, 7);
        free(w.data);
    }
}

/* Cut anywhere, a number asks for more, and never reads past the sentinel. */
TEST(a_cut_number_asks_for_more)
{
    static const char *const texts[] = {"1712195495519806.264", "15e3", "1.5e-3", "2E+10", "7.5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t cut = 0; cut <= strlen(texts[i]); cut++) {
            struct window w = window_of(texts[i], cut);
            int64_t ns;
            const char *after = knee_scan_us(w.data, w.end, &ns);
            assert_true(after == NULL || (after == KNEE_SCAN_BAD && cut == 0));
            after = knee_scan_int(w.data, w.end, &ns);
            assert_true(after == NULL || cut == 0);
            free(w.data);
        }
    struct window w = window_of("\"1.5", 4); /* the sentinel is no closing quote */
    int64_t ns;
    assert_null(knee_scan_us(w.data, w.end, &ns));
    free(w.data);
}

TEST(whole_numbers)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {{"7,", 7},
                 {"-12}", -12},
                 {"12345678 ", 12345678},
                 {"123456789,", 123456789},
                 {"1790857026000000000,", 1790857026000000000},
                 {"3.7,", 3},
                 {"3e+7,", 3},
                 {"3E-7,", 3},
                 {"9007199254740993,", 9007199254740993}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct window w = window_of(cases[i].text, strlen(cases[i].text));
        int64_t value = 0;
        const char *after = knee_scan_int(w.data, w.end, &value);
        if (!after || after == KNEE_SCAN_BAD || value != cases[i].value)
            fail_msg("%s gives %lld", cases[i].text, (long long)value);
        free(w.data);
    }
    struct window w = window_of("99999999999999999999,", 21);
    int64_t value = 0;
    assert_ptr_equal(knee_scan_int(w.data, w.end, &value), KNEE_SCAN_BAD);
    free(w.data);
}

TEST(random_digits_agree_with_the_library)
{
    uint64_t seed = 3;
    for (int i = 0; i < 200000; i++) {
        char text[64];
        long long whole = (long long)between(&seed, 1, 3.9e15);
        int decimals = (int)(chance(&seed) * 1000);
        snprintf(text, sizeof text, "%lld.%03d,", whole, decimals);
        struct window w = window_of(text, strlen(text));
        int64_t ns = 0;
        assert_non_null(knee_scan_us(w.data, w.end, &ns));
        assert_int_equal(ns, whole * 1000 + decimals);
        free(w.data);
    }
}

TEST(strings_end_where_json_goes_on)
{
    static const struct {
        const char *text;
        enum knee_string_role role;
        long length; /* of the string; -1: needs more */
        uint64_t repaired;
    } cases[] = {
        {"abc\",", KNEE_STRING_VALUE, 3, 0},
        {"abc\" }", KNEE_STRING_VALUE, 3, 0},
        {"abc\":", KNEE_STRING_KEY, 3, 0},
        {"a\\\"c\",", KNEE_STRING_VALUE, 4, 0},
        {"a\\\\\",", KNEE_STRING_VALUE, 3, 0},
        {"a \"b\": 64\",", KNEE_STRING_VALUE, 9, 2}, /* not escaped, with a colon to fool us */
        {"a \"b\" c\"]", KNEE_STRING_VALUE, 7, 2},
        {"abc\" \"next\":", KNEE_STRING_VALUE, 3, 0}, /* a comma is missing */
        {"abc", KNEE_STRING_VALUE, -1, 0},
        {"abc\"", KNEE_STRING_VALUE, -1, 0},
        {"abc\\", KNEE_STRING_VALUE, -1, 0},
        {"0123456789abcdef0123456789abcdef\",", KNEE_STRING_VALUE, 32, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct window w = window_of(cases[i].text, strlen(cases[i].text));
        uint64_t repaired = 0;
        const char *close = knee_scan_string(w.data, w.end, cases[i].role, &repaired);
        if ((close ? close - w.data : -1) != cases[i].length ||
            (close && repaired != cases[i].repaired))
            fail_msg("%s: %ld, %lu mended", cases[i].text, close ? (long)(close - w.data) : -1L,
                     (unsigned long)repaired);
        free(w.data);
    }
}

/* Random nested JSON: a value ends where a plain reader with a stack says. */
static size_t random_value(uint64_t *seed, char *out, int depth)
{
    size_t used = 0;
    double kind = chance(seed);
    if (depth == 0 || kind < 0.3) {
        used += (size_t)sprintf(out, "%d", (int)(chance(seed) * 100000));
    } else if (kind < 0.6) {
        out[used++] = '"';
        for (int i = (int)(chance(seed) * 40); i > 0; i--) {
            static const char letters[] = "abc{}[],: \\xyz()<>";
            char c = letters[(int)(chance(seed) * (sizeof letters - 1))];
            if (c == '\\') {
                out[used++] = '\\';
                out[used++] = chance(seed) < 0.5 ? '"' : '\\';
            } else {
                out[used++] = c;
            }
        }
        out[used++] = '"';
    } else {
        bool object = kind < 0.8;
        out[used++] = object ? '{' : '[';
        int count = (int)(chance(seed) * 4);
        for (int i = 0; i < count; i++) {
            if (object)
                used += (size_t)sprintf(out + used, "\"k%d\": ", i);
            used += random_value(seed, out + used, depth - 1);
            if (i + 1 < count)
                used += (size_t)sprintf(out + used, chance(seed) < 0.5 ? ", " : ",\n      ");
        }
        out[used++] = object ? '}' : ']';
    }
    return used;
}

TEST(values_end_where_they_end)
{
    uint64_t seed = 99;
    static char text[1 << 18];
    for (int i = 0; i < 20000; i++) {
        size_t length = random_value(&seed, text, 5);
        memcpy(text + length, ", 1", 3);
        struct window w = window_of(text, length + 3);
        uint64_t repaired = 0;
        const char *after = knee_scan_value(w.data, w.end, &repaired);
        if (!after || after == KNEE_SCAN_BAD || (size_t)(after - w.data) != length || repaired)
            fail_msg("%.*s", (int)length, text);
        free(w.data);
        /* and no shorter piece is taken for the whole */
        size_t cut = (size_t)(chance(&seed) * (double)length);
        w = window_of(text, cut);
        after = knee_scan_value(w.data, w.end, &repaired);
        assert_true(after == NULL || after == KNEE_SCAN_BAD);
        free(w.data);
    }
}

/* The end of an event in lines, from wherever in a block it is looked for, 16 or 32 bytes at a
 * time. */
TEST(events_end_at_a_brace_in_its_line)
{
    static const struct {
        const char *text;
        int end; /* 0: it is not known */
    } cases[] = {
        {"\n  },", 4},
        {"\n  }\n  ]", 4},
        {"\"args\": {\n    }\n  },\n  {", 19},
        {"\"a\": [{\n   }], \"b\":\n yes\n  },", 28},
        {"\n  }", 0},                 /* the window ends here */
        {"\n  } {", 0},               /* no event ends like this */
        {"\n }},", 0},                /* one space */
        {"\"a\": \"b\n  },", 0},      /* in a string */
        {"\"a\": \"\\\"\"\n  },", 0}, /* a backslash */
        {"\n  {\n  },", 0},           /* another event begins before */
        {"", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int before = 0; before < 70; before++) {
            char text[160];
            int length = snprintf(text, sizeof text, "%*s%s", before, "", cases[i].text);
            struct window w = window_of(text, (size_t)length);
            const char *want = cases[i].end ? w.data + before + cases[i].end : NULL;
            assert_ptr_equal(knee_scan_event_end(w.data, w.end, false), want);
            if (knee_scan_can_be_wide())
                assert_ptr_equal(knee_scan_event_end(w.data, w.end, true), want);
            free(w.data);
        }
    static char far[8192];
    for (int spaces = 4070; spaces < 4110; spaces++) { /* too far away: the same for both */
        int length = snprintf(far, sizeof far, "%*s\n  },%40s", spaces, "", "");
        struct window w = window_of(far, (size_t)length);
        const char *narrow = knee_scan_event_end(w.data, w.end, false);
        assert_int_equal(narrow != NULL, spaces < 4092);
        if (knee_scan_can_be_wide())
            assert_ptr_equal(knee_scan_event_end(w.data, w.end, true), narrow);
        free(w.data);
    }
}

#ifdef __SSE2__
/* 16 and 32 bytes at a time say the same: where the brackets end, or that it is not known. */
TEST(narrow_and_wide_skip_alike)
{
    uint64_t seed = 5;
    static char text[1 << 18];
    size_t known = 0;
    for (int i = 0; i < 3000; i++) {
        text[0] = '[';
        size_t length = 1 + random_value(&seed, text + 1, 5);
        text[length] = ']';
        memset(text + length + 1, ' ', 64); /* a block is looked at as a whole */
        struct window w = window_of(text, length + 65);
        const char *narrow = knee_scan_skip(w.data + 1, w.end, 1, false);
        const char *wide =
            knee_scan_can_be_wide() ? knee_scan_skip(w.data + 1, w.end, 1, true) : narrow;
        assert_ptr_equal(narrow, wide);
        if (narrow)
            assert_int_equal(narrow - w.data, length + 1);
        known += narrow != NULL;
        free(w.data);
    }
    assert_true(known > 100);
    memset(text, ' ', sizeof text); /* too far away */
    text[10000] = ']';
    struct window w = window_of(text, 20000);
    assert_null(knee_scan_skip(w.data, w.end, 1, false));
    free(w.data);
}
#endif

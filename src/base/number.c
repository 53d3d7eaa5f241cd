/* SPDX-License-Identifier: MIT */
/*
 * A number is digits, then a spelling from one table. A bare number is in the base unit (bytes,
 * bytes per second, seconds, FLOP/s). Where two readings are both usual (gb/s: bits or bytes?) the
 * table has no row for it, and the error names both.
 */
#include "base/number.h"

#include "base/decimal.h"
#include "base/error.h"
#include "base/format.h"
#include "base/spell.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *metavar, *example;
} units[KNEE_UNITS] = {
    [KNEE_UNIT_COUNT] = {"COUNT", "2048, 350M, 7B"},
    [KNEE_UNIT_FACTOR] = {"FACTOR", "4, 4x"},
    [KNEE_UNIT_FRACTION] = {"FRACTION", "0.7, 70%"},
    [KNEE_UNIT_SECONDS] = {"TIME", "180ms, 5us, 1.5s"},
    [KNEE_UNIT_BYTES] = {"BYTES", "2, 4KiB, 1GB"},
    [KNEE_UNIT_BYTES_PER_S] = {"BYTES/S", "25GB/s, 400Gbit/s"},
    [KNEE_UNIT_FLOPS] = {"FLOP/S", "60TFLOP/s, 1PFLOP/s"},
    [KNEE_UNIT_PER_S] = {"RATE", "12000/s, 12k/s"},
    [KNEE_UNIT_WATTS] = {"WATTS", "700W, 0.7kW"},
    [KNEE_UNIT_DOLLARS] = {"DOLLARS", "2.50, $2.50, $1M"},
    [KNEE_UNIT_JOULES] = {"JOULES", "5J, 5kJ"},
};

const char *knee_unit_metavar(enum knee_unit unit)
{
    return units[unit].metavar;
}

const char *knee_unit_example(enum knee_unit unit)
{
    return units[unit].example;
}

static size_t skip_digits(const char *text, size_t at)
{
    while (text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* Length of the plain decimal number at the start; 0 if there is none. No hex, inf or nan. */
static size_t decimal_length(const char *text)
{
    size_t at = (text[0] == '-' || text[0] == '+') ? 1 : 0;
    size_t whole = skip_digits(text, at);
    size_t digits = whole - at;
    at = whole;
    if (text[at] == '.') {
        size_t fraction = skip_digits(text, at + 1);
        digits += fraction - (at + 1);
        at = fraction;
    }
    if (digits == 0)
        return 0;
    if (text[at] == 'e' || text[at] == 'E') {
        size_t exponent = at + 1;
        if (text[exponent] == '-' || text[exponent] == '+')
            exponent++;
        size_t end = skip_digits(text, exponent);
        if (end > exponent)
            at = end;
    }
    return at;
}

static const char *skip_spaces(const char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

static size_t trimmed_length(const char *text)
{
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    return length;
}

static const struct knee_unit_spelling *find_spelling(enum knee_unit unit, const char *text,
                                                      size_t length)
{
    for (size_t i = 0; i < knee_unit_spellings_count; i++)
        if (knee_unit_spellings[i].unit == unit && strlen(knee_unit_spellings[i].text) == length &&
            memcmp(knee_unit_spellings[i].text, text, length) == 0)
            return &knee_unit_spellings[i];
    return NULL;
}

/* Two usual readings, one word: the user must say which. */
static bool bits_or_bytes(const char *suffix)
{
    static const char *const doubtful[] = {"gb/s", "gbps", "GB", "Gb", "mb/s", "mbps", "MB"};
    for (size_t i = 0; i < sizeof doubtful / sizeof *doubtful; i++)
        if (strcmp(suffix, doubtful[i]) == 0)
            return true;
    return false;
}

static knee_status bad_unit(const char *text, const char *suffix, enum knee_unit unit,
                            const char *where, struct knee_err *err)
{
    knee_status status =
        knee_fail(err, KNEE_USAGE, where, "'%.60s' has no unit that fits here", text);
    struct knee_nearest nearest = {.wanted = suffix};
    for (size_t i = 0; i < knee_unit_spellings_count; i++)
        if (knee_unit_spellings[i].unit == unit && knee_unit_spellings[i].text[0])
            knee_nearest_offer(&nearest, knee_unit_spellings[i].text);
    if (unit == KNEE_UNIT_BYTES_PER_S && bits_or_bytes(suffix))
        knee_hint(err, "write GB/s for bytes or Gbit/s for bits");
    else if (nearest.name)
        knee_hint(err, "did you mean '%s'? For example %s", nearest.name, units[unit].example);
    else
        knee_hint(err, "for example %s", units[unit].example);
    return status;
}

knee_status knee_number_parse(const char *text, enum knee_unit unit, const char *where, double *out,
                              struct knee_err *err)
{
    char number[64], suffix[32];
    const char *start = skip_spaces(text);
    if (unit == KNEE_UNIT_DOLLARS && *start == '$')
        start = skip_spaces(start + 1);
    size_t length = decimal_length(start);
    if (length == 0 || length >= sizeof number) {
        knee_status status = knee_fail(err, KNEE_USAGE, where, "'%.60s' is not a number", text);
        knee_hint(err, "for example %s", units[unit].example);
        return status;
    }
    memcpy(number, start, length);
    number[length] = '\0';
    double value = knee_decimal_parse(number, NULL);

    const char *rest = skip_spaces(start + length);
    size_t rest_length = trimmed_length(rest);
    knee_format(suffix, sizeof suffix, "%.*s", (int)(rest_length > 31 ? 31 : rest_length), rest);
    const struct knee_unit_spelling *spelling = find_spelling(unit, rest, rest_length);
    if (!spelling)
        return bad_unit(text, suffix, unit, where, err);
    /* Dividing by 1000 rounds once where multiplying by 0.001 rounds twice: 180ms is 0.18. */
    value = spelling->factor < 1 ? value / round(1 / spelling->factor) : value * spelling->factor;
    if (!isfinite(value))
        return knee_fail(err, KNEE_USAGE, where, "'%.60s' is too large to be a number", text);
    *out = value;
    return KNEE_OK;
}

/* ---- Numbers for people ---- */

struct prefix {
    double from, factor; /* used for values from here on; 0 ends the list */
    const char *text;
};

static const struct prefix counts[] = {
    {1e12, 1e12, "T"}, {1e9, 1e9, "B"}, {1e6, 1e6, "M"}, {1e5, 1e3, "k"}, {0, 1, ""}};
static const struct prefix times[] = {
    {172800, 86400, " d"}, {7200, 3600, " h"},  {120, 60, " min"}, {1, 1, " s"},
    {1e-3, 1e-3, " ms"},   {1e-6, 1e-6, " us"}, {0, 1e-9, " ns"}};
static const struct prefix bytes[] = {
    {1e12, 1e12, " TB"}, {1e9, 1e9, " GB"}, {1e6, 1e6, " MB"}, {1e3, 1e3, " kB"}, {0, 1, " B"}};
static const struct prefix rates[] = {{1e12, 1e12, " TB/s"},
                                      {1e9, 1e9, " GB/s"},
                                      {1e6, 1e6, " MB/s"},
                                      {1e3, 1e3, " kB/s"},
                                      {0, 1, " B/s"}};
static const struct prefix flops[] = {{1e15, 1e15, " PFLOP/s"},
                                      {1e12, 1e12, " TFLOP/s"},
                                      {1e9, 1e9, " GFLOP/s"},
                                      {1e6, 1e6, " MFLOP/s"},
                                      {0, 1, " FLOP/s"}};
static const struct prefix per_s[] = {{1e6, 1e6, "M/s"}, {1e5, 1e3, "k/s"}, {0, 1, "/s"}};
static const struct prefix watts[] = {{1e6, 1e6, " MW"}, {1e4, 1e3, " kW"}, {0, 1, " W"}};
static const struct prefix joules[] = {
    {1e12, 1e12, " TJ"}, {1e9, 1e9, " GJ"}, {1e6, 1e6, " MJ"}, {1e3, 1e3, " kJ"}, {0, 1, " J"}};

static const struct prefix *const scales[KNEE_UNITS] = {
    [KNEE_UNIT_COUNT] = counts,      [KNEE_UNIT_SECONDS] = times, [KNEE_UNIT_BYTES] = bytes,
    [KNEE_UNIT_BYTES_PER_S] = rates, [KNEE_UNIT_FLOPS] = flops,   [KNEE_UNIT_PER_S] = per_s,
    [KNEE_UNIT_WATTS] = watts,       [KNEE_UNIT_JOULES] = joules,
};

/* Three to four digits, without a tail of zeros. */
static void digits(char *out, size_t size, double value)
{
    double magnitude = fabs(value);
    int decimals = magnitude < 0.01 ? 5 : magnitude < 1 ? 3 : magnitude < 100 ? 2 : 1;
    knee_format(out, size, "%.*f", decimals, value);
    size_t length = strlen(out);
    while (length > 0 && out[length - 1] == '0')
        out[--length] = '\0';
    if (length > 0 && out[length - 1] == '.')
        out[length - 1] = '\0';
}

void knee_number_human(char *out, size_t size, double value, enum knee_unit unit)
{
    char text[48];
    const struct prefix *scale = scales[unit];
    if (isnan(value)) {
        knee_format(out, size, "-");
    } else if (unit == KNEE_UNIT_DOLLARS) {
        knee_format(out, size,
                    fabs(value) >= 100   ? "$%.0f"
                    : fabs(value) >= 0.1 ? "$%.2f"
                                         : "$%.3g",
                    value);
    } else if (isinf(value) || !scale) {
        digits(text, sizeof text, value);
        knee_format(out, size, "%s%s", isinf(value) ? "no limit" : text,
                    !isinf(value) && unit == KNEE_UNIT_FACTOR ? "x" : "");
    } else {
        double magnitude = fabs(value);
        while (magnitude < scale->from)
            scale++;
        digits(text, sizeof text, value / scale->factor);
        knee_format(out, size, "%s%s", text,
                    value == 0 && unit == KNEE_UNIT_SECONDS ? " s" : scale->text);
    }
}

void knee_number_exact(char *out, size_t size, double value)
{
    if (!isfinite(value)) {
        knee_format(out, size, "null");
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        knee_format(out, size, "%.*g", precision, value);
        if (knee_decimal_parse(out, NULL) == value)
            return;
    }
}

void knee_number_ns(char *out, size_t size, int64_t ns)
{
    uint64_t magnitude = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    int length = knee_format(out, size, "%s%llu.%09llu", ns < 0 ? "-" : "",
                             (unsigned long long)(magnitude / 1000000000),
                             (unsigned long long)(magnitude % 1000000000));
    while (length > 2 && (size_t)length < size && out[length - 1] == '0' && out[length - 2] != '.')
        out[--length] = '\0';
}

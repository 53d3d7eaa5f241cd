/* SPDX-License-Identifier: MIT */
#include "say/numbers.h"

#include "base/format.h"
#include "base/printable.h"

#include <math.h>
#include <string.h>

/* Three significant digits, without zeros at the end of a fraction: 118, 12.6, 6.94, 0.67. */
static void three(char *out, size_t size, double value)
{
    double magnitude = fabs(value);
    int decimals = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
    if (magnitude < 0.995 && magnitude > 0) /* 0.67, 0.067, 0.0067: two digits that count */
        decimals = magnitude < 1e-9 ? 0 : 1 - (int)floor(log(magnitude * 1.005) / log(10));
    int length = knee_format(out, size, "%.*f", decimals, value);
    while (decimals > 0 && length > 1 && out[length - 1] == '0')
        out[--length] = '\0';
    if (decimals > 0 && out[length - 1] == '.')
        out[--length] = '\0';
}

/* 4680 as 4,680. What a double does not hold to the digit, 1e16 and more, is not counted. */
static void thousands(char *out, size_t size, double value)
{
    char digits[32];
    size_t used = 0;
    if (fabs(value) >= 1e16) {
        knee_format(out, size, "%.3g", value);
        return;
    }
    int length = knee_format(digits, sizeof digits, "%.0f", fabs(value));
    if (value <= -0.5)
        out[used++] = '-';
    for (int i = 0; i < length && used + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
}

/* A unit with its steps, the largest first; what is below the last stays in it. */
struct scale {
    double from, factor;
    const char *unit;
};
static const struct scale seconds[] = {
    {172800, 86400, " days"}, {7200, 3600, " h"},       {600, 60, " min"}, {0.9995, 1, " s"},
    {0.9995e-3, 1e-3, " ms"}, {0.9995e-6, 1e-6, " us"}, {0, 1e-9, " ns"}};
static const struct scale bytes[] = {{0.9995e15, 1e15, " PB"}, {0.9995e12, 1e12, " TB"},
                                     {0.9995e9, 1e9, " GB"},   {0.9995e6, 1e6, " MB"},
                                     {0.9995e3, 1e3, " kB"},   {0, 1, " B"}};
static const struct scale rates[] = {{0.9995e12, 1e12, " TB/s"},
                                     {0.9995e9, 1e9, " GB/s"},
                                     {0.9995e6, 1e6, " MB/s"},
                                     {0.9995e3, 1e3, " kB/s"},
                                     {0, 1, " B/s"}};
static const struct scale flops[] = {{0.9995e18, 1e18, " EFLOP/s"},
                                     {0.9995e15, 1e15, " PFLOP/s"},
                                     {0.9995e12, 1e12, " TFLOP/s"},
                                     {0, 1e9, " GFLOP/s"}};
static const struct scale large[] = {{0.9995e12, 1e12, "T"},
                                     {0.9995e9, 1e9, "B"},
                                     {0.9995e6, 1e6, "M"},
                                     {9.995e3, 1e3, "k"},
                                     {0, 1, ""}};
static const struct scale joules[] = {{0.9995e12, 1e12, " TJ"},
                                      {0.9995e9, 1e9, " GJ"},
                                      {0.9995e6, 1e6, " MJ"},
                                      {0.9995e3, 1e3, " kJ"},
                                      {0, 1, " J"}};
static const struct scale watts[] = {{0.9995e6, 1e6, " MW"}, {9.995e3, 1e3, " kW"}, {0, 1, " W"}};
static const struct scale money[] = {{0.9995e9, 1e9, "B"}, {0.9995e6, 1e6, "M"}, {0, 1, ""}};

static const struct scale *scale_of(const struct scale *scale, double value)
{
    while (fabs(value) < scale->from)
        scale++;
    return scale;
}

static const struct scale *const scales[] = {
    [KNEE_AS_SECONDS] = seconds, [KNEE_AS_BYTES] = bytes, [KNEE_AS_MESSAGE] = bytes,
    [KNEE_AS_RATE] = rates,      [KNEE_AS_FLOPS] = flops, [KNEE_AS_LARGE] = large,
    [KNEE_AS_JOULES] = joules,   [KNEE_AS_WATTS] = watts, [KNEE_AS_DOLLARS] = money,
    [KNEE_AS_INPUTS] = NULL,
};

/* The number in the unit of a scale, without the unit. */
static void in_scale(double value, const struct scale *scale, enum knee_kind kind, char *out,
                     size_t size)
{
    double scaled = value / scale->factor;
    if (kind == KNEE_AS_DOLLARS && scale->factor > 1)
        knee_format(out, size, fabs(scaled) < 9.95 ? "%.1f" : "%.0f", scaled);
    else if (kind == KNEE_AS_DOLLARS && fabs(scaled) >= 0.995 && fabs(scaled) < 9.995)
        knee_format(out, size, "%.2f", scaled);
    else if (fabs(scaled) >= 999.5)
        thousands(out, size, scaled);
    else
        three(out, size, scaled);
}

static void percent(char *out, size_t size, double share, bool sign)
{
    double value = 100 * share, magnitude = fabs(value);
    bool fine = magnitude < 9.95 || (magnitude > 99 && magnitude < 99.95 && !sign);
    char digits[40];
    if (magnitude >= 999.5)
        thousands(digits, sizeof digits, value);
    else
        knee_format(digits, sizeof digits,
                    fine && fabs(value - rint(value)) >= 0.05 ? "%.1f" : "%.0f", value);
    const char *shown = strcmp(digits, "-0") == 0 ? "0" : digits;
    knee_format(out, size, "%s%s%%", sign && value > 0 ? "+" : "", shown);
}

static void message(char *out, size_t size, double value)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    size_t unit = 0;
    double whole = value;
    while (unit < 4 && whole >= 1024 && fmod(whole, 1024) == 0) {
        whole /= 1024;
        unit++;
    }
    if (unit > 0 && whole < 1024)
        knee_format(out, size, "%.0f%s", whole, units[unit]);
    else {
        const struct scale *scale = scale_of(bytes, value);
        char digits[40];
        in_scale(value, scale, KNEE_AS_BYTES, digits, sizeof digits);
        knee_format(out, size, "%s%s", digits, scale->unit);
    }
}

static void times(char *out, size_t size, double value)
{
    char digits[40];
    if (fabs(value) >= 999.5)
        thousands(digits, sizeof digits, value);
    else
        three(digits, sizeof digits, value);
    knee_format(out, size, "%sx", digits);
}

static void scaled_words(double value, enum knee_kind kind, char *out, size_t size)
{
    const struct scale *scale = scale_of(scales[kind], value);
    char digits[40];
    if (value == 0 && kind == KNEE_AS_SECONDS)
        scale = &seconds[3];
    in_scale(value, scale, kind, digits, sizeof digits);
    bool minus = kind == KNEE_AS_DOLLARS && digits[0] == '-';
    knee_format(out, size, "%s%s%s%s", minus ? "-" : "", kind == KNEE_AS_DOLLARS ? "$" : "",
                digits + minus, scale->unit);
}

struct knee_word knee_say_number(double value, enum knee_kind kind)
{
    struct knee_word word = {"-"};
    char *out = word.s;
    size_t size = sizeof word.s;
    if (isnan(value))
        return word;
    if (isinf(value)) {
        knee_format(out, size, "unlimited");
        return word;
    }
    switch (kind) {
    case KNEE_AS_COUNT:
        if (value != rint(value) && fabs(value) < 999.5)
            three(out, size, value);
        else
            thousands(out, size, value);
        break;
    case KNEE_AS_MS: three(out, size, 1e3 * value); break;
    case KNEE_AS_SHARE: percent(out, size, value, false); break;
    case KNEE_AS_CHANGE: percent(out, size, value, true); break;
    case KNEE_AS_TIMES: times(out, size, value); break;
    case KNEE_AS_MESSAGE: message(out, size, value); break;
    case KNEE_AS_YES_NO: knee_format(out, size, value != 0 ? "yes" : "no"); break;
    case KNEE_AS_SECONDS:
    case KNEE_AS_BYTES:
    case KNEE_AS_RATE:
    case KNEE_AS_FLOPS:
    case KNEE_AS_LARGE:
    case KNEE_AS_JOULES:
    case KNEE_AS_WATTS:
    case KNEE_AS_DOLLARS: scaled_words(value, kind, out, size); break;
    default:
        if (fabs(value) >= 999.5)
            thousands(out, size, value);
        else
            three(out, size, value);
    }
    return word;
}

/* Both ends in the unit of the value, so that "6.9 s (6.0-8.3)" needs the unit once. */
static void end_words(double end, double value, enum knee_kind kind, char *out, size_t size)
{
    char digits[40];
    if (kind == KNEE_AS_SHARE || kind == KNEE_AS_CHANGE) {
        percent(digits, sizeof digits, end, false);
        digits[strlen(digits) - 1] = '\0';
        knee_format(out, size, "%s", digits);
    } else if (kind <= KNEE_AS_WATTS && scales[kind] && kind != KNEE_AS_MESSAGE) {
        in_scale(end, scale_of(scales[kind], value), kind, out, size);
    } else {
        knee_format(out, size, "%s", knee_say_number(end, kind).s);
    }
}

struct knee_word knee_say_interval(double value, double low, double high, enum knee_kind kind)
{
    struct knee_word word = knee_say_number(value, kind);
    char from[48], to[48], all[256];
    if (isnan(value) || !(low < high) || isinf(low) || isinf(high))
        return word;
    if (kind == KNEE_AS_SHARE && value <= 1 && high > 1)
        high = 1; /* no share of a whole is more than all of it */
    end_words(low, value, kind, from, sizeof from);
    end_words(high, value, kind, to, sizeof to);
    if (strcmp(from, to) == 0)
        return word;
    knee_format(all, sizeof all, "%.100s (%s-%s)", word.s, from, to);
    memcpy(word.s, all, sizeof all);
    return word;
}

bool knee_rough(double low, double high)
{
    return low > 0 && high > 3 * low;
}

struct knee_word knee_say_count(double count, const char *noun)
{
    struct knee_word word = {""};
    knee_format(word.s, sizeof word.s, "%.40s %.60s%s", knee_say_number(count, KNEE_AS_COUNT).s,
                noun, count == 1 ? "" : "s");
    return word;
}

struct knee_word knee_safe(const char *name, size_t width)
{
    struct knee_word word = {""};
    size_t used = 0;
    while (*name && width-- > 0 && used + 5 < sizeof word.s) {
        size_t length = knee_printable_length(name, strlen(name));
        if (!length)
            word.s[used++] = '?';
        else
            memcpy(word.s + used, name, length), used += length;
        size_t whole = knee_utf8_length(name);
        name += length ? length : whole ? whole : 1;
    }
    word.s[used] = '\0';
    return word;
}

/* ---- Sentences ---- */

struct arg {
    const char *text; /* NULL: a number */
    struct knee_with_ends span;
};

static struct arg next_arg(unsigned type, va_list *args)
{
    struct arg arg = {.text = NULL};
    double *number = &arg.span.number;
    switch (type & 7) {
    case KNEE_T_TEXT:
        arg.text = va_arg(*args, const char *);
        arg.text = arg.text ? arg.text : "";
        break;
    case KNEE_T_DOUBLE: *number = va_arg(*args, double); break;
    case KNEE_T_INT: *number = va_arg(*args, int); break;
    case KNEE_T_LONG: *number = (double)va_arg(*args, long); break;
    case KNEE_T_LONGEST: *number = (double)va_arg(*args, long long); break;
    case KNEE_T_SPAN: arg.span = va_arg(*args, struct knee_with_ends); break;
    default: arg.text = "?";
    }
    return arg;
}

/* What stands between braces: a kind of number, else a noun in the plural. */
static struct knee_word said_as(const char *word, int length, const struct knee_with_ends *span)
{
    static const char *const kinds[] = {
        [KNEE_AS_COUNT] = "count",   [KNEE_AS_LARGE] = "large", [KNEE_AS_NUMBER] = "number",
        [KNEE_AS_SECONDS] = "time",  [KNEE_AS_BYTES] = "bytes", [KNEE_AS_MESSAGE] = "message",
        [KNEE_AS_RATE] = "rate",     [KNEE_AS_FLOPS] = "flops", [KNEE_AS_SHARE] = "share",
        [KNEE_AS_CHANGE] = "change", [KNEE_AS_TIMES] = "times", [KNEE_AS_DOLLARS] = "dollars",
        [KNEE_AS_JOULES] = "joules", [KNEE_AS_WATTS] = "watts"};
    char noun[64];
    for (size_t i = 0; i < KNEE_COUNT_OF(kinds); i++)
        if (kinds[i] && (int)strlen(kinds[i]) == length && !strncmp(kinds[i], word, (size_t)length))
            return knee_say_interval(span->number, span->low, span->high, (enum knee_kind)i);
    knee_format(noun, sizeof noun, "%.*s", length - 1, word);
    return knee_say_count(span->number, noun);
}

static void put_arg(struct knee_text *text, const char *word, int length, const struct arg *arg)
{
    int most = 0;
    for (int i = 1; *word == '.' && i < length; i++)
        most = 10 * most + (word[i] - '0');
    if (arg->text && *word == '.')
        knee_text_printf(text, "%.*s", most, arg->text);
    else if (arg->text)
        knee_text_puts(text, arg->text);
    else if (length == 0)
        knee_text_printf(text, "%.0f", arg->span.number);
    else
        knee_text_puts(text, said_as(word, length, &arg->span).s);
}

void knee_say(struct knee_text *text, unsigned types, const char *fmt, ...)
{
    size_t clause = 0; /* where it began */
    bool missing = false;
    va_list args;
    va_start(args, fmt);
    while (*fmt) {
        size_t plain = strcspn(fmt, "{[]");
        knee_text_add(text, fmt, plain);
        fmt += plain;
        if (*fmt && fmt[0] == fmt[1]) {
            knee_text_add(text, fmt++, 1);
        } else if (*fmt == '{') {
            size_t length = strcspn(fmt + 1, "}");
            struct arg arg = next_arg(types >>= 3, &args);
            put_arg(text, fmt + 1, (int)length, &arg);
            missing = missing || !(arg.text ? *arg.text != '\0' : arg.span.number > 0);
            fmt += length + 1;
        } else if (*fmt == '[') {
            clause = text->length;
            missing = false;
        } else if (*fmt == ']' && missing && !text->failed) {
            text->data[text->length = clause] = '\0';
        }
        fmt += *fmt != '\0';
    }
    va_end(args);
}

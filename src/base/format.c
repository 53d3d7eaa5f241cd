/* SPDX-License-Identifier: MIT */
/*
 * A conversion is read into a `spec`, its argument becomes sign, zeros and a body, and those are
 * padded to the width. Whatever does not fit is counted, not written.
 */
#include "base/format.h"

#include "base/decimal.h"

#include <limits.h>
#include <math.h>
#include <string.h>

struct sink {
    char *out;
    size_t size, length;
};

static void put(struct sink *s, const char *bytes, size_t count)
{
    size_t room = s->length < s->size ? s->size - s->length : 0;
    if (room)
        memcpy(s->out + s->length, bytes, count < room ? count : room);
    s->length += count;
}

static void repeat(struct sink *s, char c, long count)
{
    for (; count > 0; count--)
        put(s, &c, 1);
}

struct spec {
    bool left, plus, space, zero, sharp;
    int width, precision; /* precision -1: not given */
    int length;           /* bytes of an integer argument */
    char conversion;
};

/* A number in the format, or * for the next argument. */
static const char *read_count(const char *at, va_list *args, int *out)
{
    *out = 0;
    if (*at == '*') {
        *out = va_arg(*args, int);
        return at + 1;
    }
    for (; *at >= '0' && *at <= '9'; at++)
        *out = *out < INT_MAX / 16 ? *out * 10 + *at - '0' : *out;
    return at;
}

static const char *read_length(const char *at, int *bytes)
{
    static const struct {
        const char *text;
        size_t bytes;
    } lengths[] = {{"hh", sizeof(char)},     {"h", sizeof(short)},  {"ll", sizeof(long long)},
                   {"l", sizeof(long)},      {"z", sizeof(size_t)}, {"j", sizeof(intmax_t)},
                   {"t", sizeof(ptrdiff_t)}, {"", sizeof(unsigned)}};
    size_t i = 0;
    while (strncmp(at, lengths[i].text, strlen(lengths[i].text)) != 0)
        i++;
    *bytes = (int)lengths[i].bytes;
    return at + strlen(lengths[i].text);
}

static const char *read_spec(const char *at, va_list *args, struct spec *spec)
{
    *spec = (struct spec){.precision = -1};
    for (;; at++) {
        if (*at == '-')
            spec->left = true;
        else if (*at == '+')
            spec->plus = true;
        else if (*at == ' ')
            spec->space = true;
        else if (*at == '0')
            spec->zero = true;
        else if (*at == '#')
            spec->sharp = true;
        else
            break;
    }
    at = read_count(at, args, &spec->width);
    if (spec->width < 0) {
        spec->left = true;
        spec->width = -spec->width;
    }
    if (*at == '.')
        at = read_count(at + 1, args, &spec->precision);
    at = read_length(at, &spec->length);
    spec->conversion = *at;
    return *at ? at + 1 : at;
}

/* sign, zeros, body in a field of the width */
static void put_padded(struct sink *s, const struct spec *spec, const char *sign, long zeros,
                       const char *body, size_t length)
{
    long pad = spec->width - (long)strlen(sign) - zeros - (long)length;
    if (!spec->left && !spec->zero)
        repeat(s, ' ', pad);
    put(s, sign, strlen(sign));
    if (!spec->left && spec->zero)
        repeat(s, '0', pad);
    repeat(s, '0', zeros);
    put(s, body, length);
    if (spec->left)
        repeat(s, ' ', pad);
}

static const char *sign_of(const struct spec *spec, bool negative)
{
    return negative ? "-" : spec->plus ? "+" : spec->space ? " " : "";
}

/* ---- Whole numbers, words ---- */

static void put_whole(struct sink *s, struct spec *spec, const char *sign, uint64_t value)
{
    char digits[24];
    const char *names = spec->conversion == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    unsigned base = strchr("xXp", spec->conversion) ? 16 : 10;
    int at = sizeof digits;
    for (uint64_t rest = value; rest; rest /= base)
        digits[--at] = names[rest % base];
    int length = (int)sizeof digits - at, least = spec->precision < 0 ? 1 : spec->precision;
    if (spec->precision >= 0)
        spec->zero = false;
    if (spec->sharp && value && base == 16)
        sign = spec->conversion == 'X' ? "0X" : "0x";
    put_padded(s, spec, sign, least > length ? least - length : 0, digits + at, (size_t)length);
}

static int64_t next_signed(const struct spec *spec, va_list *args)
{
    switch (spec->length) {
    case sizeof(char): return (signed char)va_arg(*args, int);
    case sizeof(short): return (short)va_arg(*args, int);
    case sizeof(int): return va_arg(*args, int);
    default: return va_arg(*args, int64_t);
    }
}

static uint64_t next_unsigned(const struct spec *spec, va_list *args)
{
    switch (spec->length) {
    case sizeof(char): return (unsigned char)va_arg(*args, unsigned);
    case sizeof(short): return (unsigned short)va_arg(*args, unsigned);
    case sizeof(int): return va_arg(*args, unsigned);
    default: return va_arg(*args, uint64_t);
    }
}

static void put_word(struct sink *s, struct spec *spec, const char *word)
{
    size_t length = 0, most = spec->precision < 0 ? SIZE_MAX : (size_t)spec->precision;
    word = word ? word : "(null)";
    while (length < most && word[length])
        length++;
    spec->zero = false;
    put_padded(s, spec, "", 0, word, length);
}

/* ---- Numbers with a point ---- */

#define BODY_MAX (KNEE_DECIMALS_MAX + 330)

/* What follows the sign. */
struct body {
    char text[BODY_MAX];
    size_t length;
};

static void add(struct body *b, char c)
{
    if (b->length < sizeof b->text)
        b->text[b->length++] = c;
}

static char digit_at(const struct knee_decimal *d, int i)
{
    return i >= 0 && i < d->count ? d->digit[i] : '0';
}

static void strip_zeros(struct body *b)
{
    while (b->length > 0 && b->text[b->length - 1] == '0')
        b->length--;
    if (b->length > 0 && b->text[b->length - 1] == '.')
        b->length--;
}

static void fixed(struct body *b, const struct knee_decimal *d, int after_point, bool point)
{
    for (int i = d->point > 0 ? 0 : d->point - 1; i < d->point; i++)
        add(b, i < 0 ? '0' : digit_at(d, i));
    if (after_point > 0 || point)
        add(b, '.');
    for (int i = 0; i < after_point; i++)
        add(b, digit_at(d, d->point + i));
}

static void mantissa(struct body *b, const struct knee_decimal *d, int after_point, bool point)
{
    add(b, digit_at(d, 0));
    if (after_point > 0 || point)
        add(b, '.');
    for (int i = 1; i <= after_point; i++)
        add(b, digit_at(d, i));
}

static void power(struct body *b, int exponent, bool large)
{
    int size = exponent < 0 ? -exponent : exponent;
    add(b, large ? 'E' : 'e');
    add(b, exponent < 0 ? '-' : '+');
    if (size >= 100)
        add(b, (char)('0' + size / 100));
    add(b, (char)('0' + size / 10 % 10));
    add(b, (char)('0' + size % 10));
}

static int exponent_of(const struct knee_decimal *d)
{
    return d->count ? d->point - 1 : 0;
}

/* %g: as many digits as asked, written the shorter way, without zeros at the end. */
static void general(struct body *b, double value, int digits, const struct spec *spec)
{
    struct knee_decimal d;
    digits = digits ? digits : 1;
    knee_decimal_expand(value, digits, 0, &d);
    int exponent = exponent_of(&d);
    bool plain = exponent >= -4 && exponent < digits;
    if (plain)
        fixed(b, &d, digits - 1 - exponent, spec->sharp);
    else
        mantissa(b, &d, digits - 1, spec->sharp);
    if (!spec->sharp && memchr(b->text, '.', b->length))
        strip_zeros(b);
    if (!plain)
        power(b, exponent, spec->conversion == 'G');
}

static void make_body(struct body *b, double value, const struct spec *spec)
{
    struct knee_decimal d;
    int precision = spec->precision < 0 ? 6 : spec->precision;
    precision = precision > KNEE_DECIMALS_MAX ? KNEE_DECIMALS_MAX : precision;
    switch (spec->conversion) {
    case 'f':
    case 'F':
        knee_decimal_expand(value, -1, precision, &d);
        fixed(b, &d, precision, spec->sharp);
        break;
    case 'e':
    case 'E':
        knee_decimal_expand(value, precision + 1, 0, &d);
        mantissa(b, &d, precision, spec->sharp);
        power(b, exponent_of(&d), spec->conversion == 'E');
        break;
    default: general(b, value, precision, spec);
    }
}

static void put_number(struct sink *s, struct spec *spec, double value)
{
    struct body body;
    const char *sign = sign_of(spec, signbit(value) != 0);
    bool large = spec->conversion < 'a';
    body.length = 0;
    if (!isfinite(value)) {
        const char *word = isnan(value) ? large ? "NAN" : "nan" : large ? "INF" : "inf";
        spec->zero = false;
        put_padded(s, spec, sign, 0, word, 3);
        return;
    }
    make_body(&body, value, spec);
    put_padded(s, spec, sign, 0, body.text, body.length);
}

/* ---- All of it ---- */

static void put_pointer(struct sink *s, struct spec *spec, const void *pointer)
{
    put_whole(s, spec, "0x", (uint64_t)(uintptr_t)pointer);
}

static void put_next(struct sink *s, struct spec *spec, va_list *args)
{
    int64_t value;
    char c;
    switch (spec->conversion) {
    case 'd':
    case 'i':
        value = next_signed(spec, args);
        put_whole(s, spec, sign_of(spec, value < 0),
                  value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
        break;
    case 'u':
    case 'x':
    case 'X': put_whole(s, spec, "", next_unsigned(spec, args)); break;
    case 'p': put_pointer(s, spec, va_arg(*args, void *)); break;
    case 's': put_word(s, spec, va_arg(*args, const char *)); break;
    case 'c':
        c = (char)va_arg(*args, int);
        put_padded(s, spec, "", 0, &c, 1);
        break;
    case '%': put(s, "%", 1); break;
    default: put_number(s, spec, va_arg(*args, double));
    }
}

int knee_vformat(char *out, size_t size, const char *fmt, va_list args)
{
    struct sink sink = {out, size ? size - 1 : 0, 0};
    va_list rest;
    va_copy(rest, args);
    while (*fmt) {
        size_t plain = strcspn(fmt, "%");
        put(&sink, fmt, plain);
        fmt += plain;
        if (*fmt) {
            struct spec spec;
            fmt = read_spec(fmt + 1, &rest, &spec);
            put_next(&sink, &spec, &rest);
        }
    }
    va_end(rest);
    if (size)
        out[sink.length < sink.size ? sink.length : sink.size] = '\0';
    return sink.length > INT_MAX ? -1 : (int)sink.length;
}

int knee_format(char *out, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int length = knee_vformat(out, size, fmt, args);
    va_end(args);
    return length;
}

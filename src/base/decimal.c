/* SPDX-License-Identifier: MIT */
/*
 * Reading: up to 15 digits and a power of ten up to 22 are exact in a double, so one multiplication
 * or division rounds once (Clinger 1990). Everything else starts from a guess that is off by a few
 * last places and walks to the right one, comparing the decimal with the midpoints between
 * neighbours in whole numbers: D 10^E against (2m + 1) 2^(q-1).
 *
 * Writing: the whole part by division, the fraction nine digits at a time by multiplication, both
 * in whole numbers, so that every digit is exact.
 */
#include "base/decimal.h"
#include "base/fold.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- Whole numbers without end ---- */

/* The longest: 770 digits against a midpoint times 5^1100, both below 2^2700. */
#define LIMBS 88
struct big {
    uint32_t limb[LIMBS]; /* lowest first */
    int count;            /* without zeros at the top */
};

static void big_set(struct big *b, uint64_t value)
{
    b->limb[0] = (uint32_t)value;
    b->limb[1] = (uint32_t)(value >> 32);
    b->count = b->limb[1] ? 2 : b->limb[0] ? 1 : 0;
}

static void big_multiply_add(struct big *b, uint32_t factor, uint32_t addend)
{
    uint64_t carry = addend;
    for (int i = 0; i < b->count; i++) {
        carry += (uint64_t)b->limb[i] * factor;
        b->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        b->limb[b->count++] = (uint32_t)carry;
}

static void big_times_power_of_5(struct big *b, int power)
{
    for (; power >= 13; power -= 13)
        big_multiply_add(b, 1220703125, 0); /* 5^13, the largest in 32 bits */
    for (; power > 0; power--)
        big_multiply_add(b, 5, 0);
}

static void big_shift_left(struct big *b, int bits)
{
    int limbs = bits / 32;
    if (b->count == 0)
        return;
    big_multiply_add(b, (uint32_t)1 << bits % 32, 0);
    memmove(b->limb + limbs, b->limb, (size_t)b->count * sizeof *b->limb);
    memset(b->limb, 0, (size_t)limbs * sizeof *b->limb);
    b->count += limbs;
}

static int big_compare(const struct big *a, const struct big *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (int i = a->count - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* ---- Doubles as whole numbers: mantissa times 2^exponent ---- */

#define INFINITY_BITS 0x7ff0000000000000u

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t take_apart(uint64_t bits, int *exponent)
{
    uint64_t fraction = bits & 0xfffffffffffff, field = bits >> 52 & 0x7ff;
    *exponent = field ? (int)field - 1075 : -1074;
    return field ? fraction | (uint64_t)1 << 52 : fraction;
}

/* ---- Reading ---- */

#define DIGITS_MAX 770 /* a midpoint has at most 767; what follows only matters as "more" */

/* What the text says: its digits without zeros in front, times 10^exponent. */
struct literal {
    char digit[DIGITS_MAX + 1];
    int count, exponent;
    bool negative;
};

/* Exponents beyond any double stay there, whatever their length. */
static const char *read_exponent(const char *at, int *exponent)
{
    int value = 0;
    if (*at != 'e' && *at != 'E')
        return at; /* perhaps the end of the text: nothing lies behind it */
    const char *digits = at + 1 + (at[1] == '+' || at[1] == '-');
    if (!knee_is_digit(*digits))
        return at;
    for (; knee_is_digit(*digits); digits++)
        if (value < 100000)
            value = value * 10 + *digits - '0';
    *exponent += at[1] == '-' ? -value : value;
    return digits;
}

static void add_digit(struct literal *l, char c, bool after_point)
{
    bool zero_in_front = l->count == 0 && c == '0';
    if (!zero_in_front && l->count < DIGITS_MAX) {
        l->digit[l->count++] = c;
    } else if (!zero_in_front) {
        if (c != '0')
            l->digit[DIGITS_MAX - 1] = '1' + (l->digit[DIGITS_MAX - 1] == '1');
        if (!after_point && l->exponent < 100000)
            l->exponent++;
        return;
    }
    if (after_point && l->exponent > -100000)
        l->exponent--;
}

/* Where the number ends; `text` when there is none. */
static const char *read_literal(const char *text, struct literal *l)
{
    const char *at = text;
    bool any = false, after_point = false;
    l->count = l->exponent = 0;
    while (*at == ' ' || (*at >= '\t' && *at <= '\r'))
        at++;
    l->negative = *at == '-';
    if (*at == '-' || *at == '+')
        at++;
    for (; knee_is_digit(*at) || (*at == '.' && !after_point); at++) {
        if (*at == '.') {
            after_point = true;
            continue;
        }
        any = true;
        add_digit(l, *at, after_point);
    }
    return any ? read_exponent(at, &l->exponent) : text;
}

static const double power_of_10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double scale(double value, int exponent)
{
    for (; exponent > 22; exponent -= 22)
        value *= 1e22;
    for (; exponent < -22; exponent += 22)
        value /= 1e22;
    return exponent < 0 ? value / power_of_10[-exponent] : value * power_of_10[exponent];
}

/* The decimal against the midpoint above the double of these bits. */
static int compare_with_midpoint(const struct big *digits, int exponent, uint64_t bits)
{
    struct big left = *digits, right;
    int binary;
    uint64_t mantissa = take_apart(bits, &binary);
    big_set(&right, 2 * mantissa + 1);
    big_times_power_of_5(exponent < 0 ? &right : &left, exponent < 0 ? -exponent : exponent);
    int shift = exponent - (binary - 1);
    big_shift_left(shift < 0 ? &right : &left, shift < 0 ? -shift : shift);
    return big_compare(&left, &right);
}

/* A tie goes to the even one. */
static double nearest(const struct literal *l, double guess)
{
    struct big digits = {.count = 0};
    for (int i = 0; i < l->count; i++) {
        if (digits.count == 0)
            big_set(&digits, (uint64_t)(l->digit[i] - '0'));
        else
            big_multiply_add(&digits, 10, (uint32_t)(l->digit[i] - '0'));
    }
    uint64_t bits = isinf(guess) ? INFINITY_BITS - 1 : bits_of(guess);
    for (bool walked_up = false;;) {
        int above = compare_with_midpoint(&digits, l->exponent, bits);
        if (above > 0 || (above == 0 && bits % 2 == 1)) {
            walked_up = true;
            if (++bits == INFINITY_BITS)
                return INFINITY;
            continue;
        }
        if (walked_up || bits == 0)
            return of_bits(bits);
        int below = compare_with_midpoint(&digits, l->exponent, bits - 1);
        if (below > 0 || (below == 0 && bits % 2 == 0))
            return of_bits(bits);
        bits--;
    }
}

static double magnitude_of(const struct literal *l)
{
    int lead = l->count < 15 ? l->count : 15, size = l->count + l->exponent;
    uint64_t leading = 0;
    for (int i = 0; i < lead; i++)
        leading = leading * 10 + (uint64_t)(l->digit[i] - '0');
    if (l->count == 0 || size < -330)
        return 0;
    if (size > 310)
        return INFINITY;
    double guess = scale((double)leading, size - lead);
    bool exact = l->count == lead && l->exponent >= -22 && l->exponent <= 22;
    return exact ? guess : nearest(l, guess);
}

double knee_decimal_parse(const char *text, const char **end)
{
    struct literal literal;
    const char *after = read_literal(text, &literal);
    if (end)
        *end = after;
    if (after == text)
        return 0;
    double value = magnitude_of(&literal);
    return literal.negative ? -value : value;
}

/* ---- Writing ---- */

#define GROUP 1000000000 /* nine digits at a time */

static bool enough(const struct knee_decimal *d, int significant, int after_point)
{
    return significant >= 0 ? d->count > significant : d->count - d->point > after_point;
}

/* Nine digits, less the zeros in front of the first one. Fractions lower the point with them. */
static void add_group(struct knee_decimal *d, uint32_t group, bool fraction)
{
    char digits[9];
    for (int i = 8; i >= 0; i--, group /= 10)
        digits[i] = (char)('0' + group % 10);
    for (int i = 0; i < 9; i++) {
        if (d->count > 0 || digits[i] != '0')
            d->digit[d->count++] = digits[i];
        else if (fraction)
            d->point--;
    }
}

static uint32_t big_divide(struct big *b, uint32_t by)
{
    uint64_t rest = 0;
    for (int i = b->count - 1; i >= 0; i--) {
        rest = rest << 32 | b->limb[i];
        b->limb[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    while (b->count > 0 && b->limb[b->count - 1] == 0)
        b->count--;
    return (uint32_t)rest;
}

static void whole_part(uint64_t mantissa, int exponent, struct knee_decimal *out)
{
    struct big whole;
    uint32_t groups[36]; /* of 309 digits */
    int count = 0;
    big_set(&whole, exponent < 0 ? exponent <= -64 ? 0 : mantissa >> -exponent : mantissa);
    big_shift_left(&whole, exponent > 0 ? exponent : 0);
    while (whole.count > 0)
        groups[count++] = big_divide(&whole, GROUP);
    while (count > 0)
        add_group(out, groups[--count], false);
    out->point = out->count;
}

/* The bits from `bits` up leave the number. */
static uint32_t take_above(struct big *b, int bits)
{
    int limb = bits / 32, shift = bits % 32;
    uint64_t top = limb < b->count ? b->limb[limb] : 0;
    if (limb + 1 < b->count)
        top |= (uint64_t)b->limb[limb + 1] << 32;
    if (limb < b->count) {
        b->limb[limb] &= ((uint32_t)1 << shift) - 1;
        b->count = limb + 1;
    }
    while (b->count > 0 && b->limb[b->count - 1] == 0)
        b->count--;
    return (uint32_t)(top >> shift);
}

static void fraction_part(uint64_t mantissa, int bits, int significant, int after_point,
                          struct knee_decimal *out)
{
    struct big rest;
    big_set(&rest, bits < 64 ? mantissa & (((uint64_t)1 << bits) - 1) : mantissa);
    while (rest.count > 0 && !enough(out, significant, after_point)) {
        big_multiply_add(&rest, GROUP, 0);
        add_group(out, take_above(&rest, bits), true);
    }
    out->rest = rest.count > 0;
}

/* Is what follows the first `keep` digits more than half of the last one, or half and it is odd? */
static bool rounds_up(const struct knee_decimal *d, int keep)
{
    bool more = d->rest;
    for (int i = keep + 1; i < d->count && !more; i++)
        more = d->digit[i] != '0';
    if (d->digit[keep] != '5')
        return d->digit[keep] > '5';
    return more || (keep > 0 && (d->digit[keep - 1] - '0') % 2 == 1);
}

static void round_to(struct knee_decimal *d, int keep)
{
    if (keep >= d->count) /* all digits are there */
        return;
    bool up = keep >= 0 && rounds_up(d, keep);
    d->count = keep > 0 ? keep : 0;
    d->rest = false;
    while (up && d->count > 0 && d->digit[d->count - 1] == '9')
        d->count--;
    if (up && d->count > 0) {
        d->digit[d->count - 1]++;
    } else if (up) {
        d->digit[d->count++] = '1';
        d->point++;
    }
}

void knee_decimal_expand(double value, int significant, int after_point, struct knee_decimal *out)
{
    int exponent;
    uint64_t mantissa = take_apart(bits_of(fabs(value)), &exponent);
    out->count = out->point = 0;
    out->rest = false;
    significant = significant > KNEE_DECIMALS_MAX ? KNEE_DECIMALS_MAX : significant;
    after_point = after_point > KNEE_DECIMALS_MAX ? KNEE_DECIMALS_MAX : after_point;
    whole_part(mantissa, exponent, out);
    if (exponent < 0)
        fraction_part(mantissa, -exponent, significant, after_point, out);
    round_to(out, significant >= 0 ? significant : out->point + after_point);
}

/* SPDX-License-Identifier: MIT */
/*
 * exp, exp2, log, log2 and pow for the page, in place of the C library's, whose tables do not pack
 * and take 12 KB of it. Series whose coefficients are 1/n: an argument is brought into a range
 * where a dozen terms reach the last bit. Results differ from the library's in the last digits;
 * whole powers of two are exact. tests/web/core.mjs compares answers with the program's to 1e-12.
 * fmin and fmax are here because the linker puts them in place; the C library's are calls.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LN2_HIGH 0x1.62e42fee00000p-1 /* 32 bits of ln 2: its product with an exponent is exact */
#define LN2_LOW  0x1.a39ef35793c76p-33

static const double inverse[] = {0,       1,       1. / 2,  1. / 3,  1. / 4,  1. / 5,
                                 1. / 6,  1. / 7,  1. / 8,  1. / 9,  1. / 10, 1. / 11,
                                 1. / 12, 1. / 13, 1. / 14, 1. / 15, 1. / 16, 1. / 17,
                                 1. / 18, 1. / 19, 1. / 20, 1. / 21, 1. / 22, 1. / 23};

/* 2^k for an exponent of a normal number. */
static double power_of_two(int k)
{
    uint64_t bits = (uint64_t)(k + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* value 2^k; in two steps, since 2^k may be too large or too small for a double. */
static double scaled(double value, int k)
{
    int half = k / 2;
    return value * power_of_two(half) * power_of_two(k - half);
}

/* e^r 2^k for |r| <= ln 2 / 2. */
static double series(double r, int k)
{
    double sum = 1;
    for (int n = 14; n > 0; n--)
        sum = 1 + r * sum * inverse[n];
    return scaled(sum, k);
}

double exp(double x)
{
    if (!(x > -746)) /* NaN too */
        return isnan(x) ? x : 0;
    if (x > 710)
        return INFINITY;
    double k = rint(x / (LN2_HIGH + LN2_LOW));
    return series(x - k * LN2_HIGH - k * LN2_LOW, (int)k);
}

double exp2(double x)
{
    if (!(x > -1076))
        return isnan(x) ? x : 0;
    if (x >= 1024)
        return INFINITY;
    double k = rint(x), r = x - k;
    return series(r * LN2_HIGH + r * LN2_LOW, (int)k);
}

/* x = m 2^k with m between sqrt(1/2) and sqrt(2); returns ln m = 2 atanh((m - 1) / (m + 1)). */
static double parted(double x, int *k)
{
    uint64_t bits;
    *k = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        *k = -54;
    }
    memcpy(&bits, &x, sizeof bits);
    *k += (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffff) | (uint64_t)1023 << 52;
    memcpy(&x, &bits, sizeof x);
    if (x > 0x1.6a09e667f3bcdp+0) {
        x /= 2;
        ++*k;
    }
    double s = (x - 1) / (x + 1), z = s * s, sum = 0;
    for (int n = 23; n > 1; n -= 2)
        sum = (sum + inverse[n]) * z;
    return 2 * s + 2 * s * sum;
}

/* Of what has no finite logarithm. */
static double unusual(double x)
{
    return x == 0 ? -INFINITY : x > 0 ? x : (double)NAN;
}

double log(double x)
{
    int k;
    if (!(x > 0) || isinf(x))
        return unusual(x);
    double small = parted(x, &k);
    return k * LN2_HIGH + (small + k * LN2_LOW);
}

double log2(double x)
{
    int k;
    if (!(x > 0) || isinf(x))
        return unusual(x);
    double small = parted(x, &k);
    return k + small / (LN2_HIGH + LN2_LOW);
}

/* Whole powers up to 64 by multiplication, as exact as that is. */
static double whole_power(double x, int n)
{
    double result = 1;
    for (unsigned left = (unsigned)(n < 0 ? -n : n); left; left /= 2, x *= x)
        if (left % 2)
            result *= x;
    return n < 0 ? 1 / result : result;
}

double pow(double x, double y)
{
    bool whole = rint(y) == y;
    if (whole && fabs(y) <= 64)
        return whole_power(x, (int)y);
    if (x == 1 || (x == -1 && isinf(y)))
        return 1;
    if (x < 0 && !whole && !isinf(x))
        return NAN;
    double size = exp(y * log(fabs(x)));
    return signbit(x) && fabs(fmod(y, 2)) == 1 ? -size : size;
}

double fmin(double a, double b)
{
    return a != a || b < a ? b : a;
}

double fmax(double a, double b)
{
    return a != a || b > a ? b : a;
}

/* SPDX-License-Identifier: MIT */
/*
 * Digits in and out, as in the C locale whatever the program around the library has set: a point is
 * a point. Text becomes the nearest double, a double its exact decimal expansion, rounded half to
 * even, as strtod() and printf() of a good C library have it.
 */
#ifndef KNEE_BASE_DECIMAL_H
#define KNEE_BASE_DECIMAL_H

#include <stdbool.h>

/* strtod() for digits, a point and an exponent after blanks and a sign; no hex, inf or nan. `end`
 * may be NULL; it is set to `text` when no number stands there. Too large gives infinity. */
double knee_decimal_parse(const char *text, const char **end);

#define KNEE_DECIMALS_MAX 900

/* A finite number without its sign: 0.d1 d2 d3 ... times 10^point. Zero has no digits. */
struct knee_decimal {
    int count, point;
    bool rest; /* digits that are not zero follow */
    char digit[KNEE_DECIMALS_MAX + 340];
};

/* Rounded to so many digits, or to so many after the point where `significant` is negative. */
void knee_decimal_expand(double value, int significant, int after_point, struct knee_decimal *out);

#endif

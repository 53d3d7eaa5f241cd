/* SPDX-License-Identifier: MIT */
/*
 * Digits in and out, as in the C locale whatever the program around the library has set: a point is
 * a point. Numbers are read to the nearest double and written exactly, rounded half to even, as
 * strtod() and printf() of a good C library do.
 */
#ifndef KNEE_BASE_DECIMAL_H
#define KNEE_BASE_DECIMAL_H

#include <stdarg.h>
#include <stddef.h>

#if defined __GNUC__
#define KNEE_LIKE_PRINTF(format, first) __attribute__((format(printf, format, first)))
#else
#define KNEE_LIKE_PRINTF(format, first)
#endif

/* strtod() for digits, a point and an exponent after blanks and a sign; no hex, inf or nan. `end`
 * may be NULL; it is set to `text` when no number stands there. Too large gives infinity. */
double knee_decimal_parse(const char *text, const char **end);

/* snprintf() and vsnprintf(), for d i u x X c s p f F e E g G and %. At most 900 decimals. */
int knee_format(char *out, size_t size, const char *fmt, ...) KNEE_LIKE_PRINTF(3, 4);
int knee_vformat(char *out, size_t size, const char *fmt, va_list args) KNEE_LIKE_PRINTF(3, 0);

#endif

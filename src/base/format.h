/* SPDX-License-Identifier: MIT */
/* printf() that no locale changes: what the library writes is the same in every program. */
#ifndef KNEE_BASE_FORMAT_H
#define KNEE_BASE_FORMAT_H

#include "base/error.h"

#include <stdarg.h>

/* snprintf() and vsnprintf(), for d i u x X c s p f F e E g G and %. */
int knee_format(char *out, size_t size, const char *fmt, ...) KNEE_PRINTF(3, 4);
int knee_vformat(char *out, size_t size, const char *fmt, va_list args) KNEE_PRINTF(3, 0);

#endif

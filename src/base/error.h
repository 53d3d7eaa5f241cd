/* SPDX-License-Identifier: MIT */
/* Errors are filled by the first to know, once, and passed up unchanged. */
#ifndef KNEE_BASE_ERROR_H
#define KNEE_BASE_ERROR_H

#include "knee.h"

#if defined(__GNUC__)
#define KNEE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define KNEE_PRINTF(fmt, args)
#endif

/* Fills *err (err may be NULL) and returns `status`, so that callers write return knee_fail(...).
 */
knee_status knee_fail(struct knee_err *err, knee_status status, const char *where, const char *fmt,
                      ...) KNEE_PRINTF(4, 5);

/* The same with what to do; the words of what is wrong come last. */
knee_status knee_fail_hint(struct knee_err *err, knee_status status, const char *where,
                           const char *hint, const char *fmt, ...) KNEE_PRINTF(5, 6);

/* Adds what to do. Keeps a hint that is already there. */
void knee_hint(struct knee_err *err, const char *fmt, ...) KNEE_PRINTF(2, 3);

#endif

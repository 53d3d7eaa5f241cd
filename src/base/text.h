/* SPDX-License-Identifier: MIT */
/* Appending to struct knee_text. Failure sticks in text->failed; look once, at the end. */
#ifndef KNEE_BASE_TEXT_H
#define KNEE_BASE_TEXT_H

#include "base/error.h"

#include <stdarg.h>

#define KNEE_TEXT_CAP ((size_t)256 << 20) /* a text larger than this is a mistake */

/* The door memory comes through; alloc may be NULL (the C library's). Sizes may be 0. */
void *knee_resize(const struct knee_alloc *alloc, void *ptr, size_t size);
/* New memory, all zero; NULL: there is none. */
void *knee_zeroed(const struct knee_alloc *alloc, size_t size);

void knee_text_add(struct knee_text *text, const char *bytes, size_t length);
void knee_text_puts(struct knee_text *text, const char *string);
void knee_text_printf(struct knee_text *text, const char *fmt, ...) KNEE_PRINTF(2, 3);
void knee_text_vprintf(struct knee_text *text, const char *fmt, va_list args) KNEE_PRINTF(2, 0);
void knee_text_repeat(struct knee_text *text, const char *string, size_t times);

/* Ends a text that was put together for another one, which fails with it; move also appends it. */
void knee_text_end(struct knee_text *part, struct knee_text *whole);
void knee_text_move(struct knee_text *part, struct knee_text *whole);

/* Bytes of the character at `string`, 0 when it is not valid UTF-8. */
size_t knee_utf8_length(const char *string);

#endif

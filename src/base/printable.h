/* SPDX-License-Identifier: MIT */
/*
 * What may be printed. Names in traces, logs and saved hosts are untrusted: a terminal acts on
 * control characters (also on U+0080 to U+009F), a reader is misled by characters that turn the
 * direction of text or have no width, and a YAML or JSON reader refuses bytes that are not UTF-8.
 */
#ifndef KNEE_BASE_PRINTABLE_H
#define KNEE_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at `at`, of which `left` bytes are there; 0: it may not be shown. */
size_t knee_printable_length(const char *at, size_t left);

/* Puts '?' in place of each byte that may not be shown. */
void knee_printable(char *text, size_t length);

/* The same for a whole answer: lines and tabs stay, and with `color` the codes for colour do. */
void knee_printable_answer(char *text, size_t length, bool color);

#endif

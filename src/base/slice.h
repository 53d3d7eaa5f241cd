/* SPDX-License-Identifier: MIT */
/*
 * Borrowed text: a pointer and a length. Readers of logs cut lines and
 * words out of it. Nothing here reads past the length, and nothing needs a NUL.
 */
#ifndef KNEE_BASE_SLICE_H
#define KNEE_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>

struct knee_slice {
    const char *at;
    size_t length;
};

struct knee_slice knee_slice_of(const char *string);

/* Takes the next line off *text (without its end of line); false when there is none left. */
bool knee_slice_line(struct knee_slice *text, struct knee_slice *line);

/* Takes the next word (between spaces and tabs) off *text; false when there is none left. */
bool knee_slice_word(struct knee_slice *text, struct knee_slice *word);

/* Takes what stands before `c` (or all) off *text, and `c` with it; false when it is empty. */
bool knee_slice_until(struct knee_slice *text, char c, struct knee_slice *piece);

struct knee_slice knee_slice_trim(struct knee_slice text); /* no spaces at either end */
struct knee_slice knee_slice_from(struct knee_slice text, size_t start);
bool knee_slice_is(struct knee_slice text, const char *string);
bool knee_slice_starts(struct knee_slice text, const char *string);

/* Where `string` stands in the text; text.length when it does not. */
size_t knee_slice_find(struct knee_slice text, const char *string);
bool knee_slice_has(struct knee_slice text, const char *string);

/* The whole text as a decimal number; false when it is not one, or not finite. */
bool knee_slice_number(struct knee_slice text, double *out);

/* The number that follows the first `before` in the text: "nranks 16", "-np=8". */
bool knee_slice_number_after(struct knee_slice text, const char *before, double *out);

/* Copies as much as fits, NUL-terminated, what may not be shown (base/printable.h) as '?'. */
void knee_slice_copy(struct knee_slice text, char *out, size_t size);

/* The name of a file without its folders. */
const char *knee_base_name(const char *path);

/* The next word of a script or a command line from `at` on, *stop behind it; `end`: none. Blanks,
 * line ends, quotes and backslashes separate words. */
const char *knee_shell_word(const char *at, const char *end, const char **stop);

#endif

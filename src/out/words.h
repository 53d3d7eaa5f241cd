/* SPDX-License-Identifier: MIT */
/* Numbers inside sentences: human(0.035, KNEE_UNIT_SECONDS).s is "35 ms". */
#ifndef KNEE_OUT_WORDS_H
#define KNEE_OUT_WORDS_H

#include "base/number.h"
#include "base/text.h"
#include "knee_out.h"
#include "say/numbers.h"

struct knee_word knee_percent(double share); /* "83.3 %" */
bool knee_shows(double share);               /* not as "0.0 %" */

/* Text for Markdown: what a reader would take for HTML or for a link is shown as it was written. */
void knee_markdown_add(struct knee_text *text, const char *bytes, size_t length);

/* The last look at an answer before it leaves, whoever wrote it: nothing in it is acted on by a
 * terminal (but colours, with `color`) or, in Markdown, by a browser. JSON says everything. */
void knee_finish_answer(struct knee_text *text, enum knee_format format, bool color);

/* Breaks `sentence` into lines of `width` columns at spaces. */
void knee_wrap(const char *sentence, int width, const char *indent, struct knee_text *text);

#endif

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
/* "18.4 % longer", "5.1 times as long", "12.0 times shorter": of times above 0 that differ. */
/* "6.4 s (5.7 to 7.2)", "950 ms (900 ms to 1.1 s)", "83.3 % (75.0 to 91.2)"; the value alone where
 * no interval is known. */

/* A unit for a machine: "s", "bytes/s", "share", "factor". */

/* Text for Markdown: what a reader would take for HTML or for a link is shown as it was written. */
void knee_markdown_add(struct knee_text *text, const char *bytes, size_t length);

/* The last look at an answer before it leaves, whoever wrote it: nothing in it is acted on by a
 * terminal (but colours, with `color`) or, in Markdown, by a browser. JSON says everything. */
void knee_finish_answer(struct knee_text *text, enum knee_format format, bool color);

/* Breaks `sentence` into lines of `width` columns at spaces. */
void knee_wrap(const char *sentence, int width, const char *indent, struct knee_text *text);

/* The columns of a sentence; Markdown has a paragraph in one line. */
/* A sentence that was put together elsewhere, wrapped; releases it. */

#endif

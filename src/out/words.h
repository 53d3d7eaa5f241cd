/* SPDX-License-Identifier: MIT */
/* Numbers inside sentences: human(0.035, KNEE_UNIT_SECONDS).s is "35 ms". */
#ifndef KNEE_OUT_WORDS_H
#define KNEE_OUT_WORDS_H

#include "base/number.h"
#include "base/text.h"

struct knee_word {
    char s[48];
};
struct knee_word knee_human(double value, enum knee_unit unit);
struct knee_word knee_percent(double share);        /* "83.3 %" */
struct knee_word knee_signed_percent(double share); /* "+36.7 %" */
struct knee_word knee_short(double value);          /* R, gamma: "0.667", "10.7" */

/* The verdict in a few sentences, each an inequality in the user's own numbers; no line breaks. */
void knee_prediction_sentence(const struct knee_prediction *prediction, struct knee_text *text);
void knee_solution_sentence(const struct knee_solution *solution, struct knee_text *text);
void knee_tax_sentence(const struct knee_tax *tax, struct knee_text *text);
void knee_note_sentence(const struct knee_note *note, struct knee_text *text);

/* Breaks `sentence` into lines of `width` columns at spaces. */
void knee_wrap(const char *sentence, int width, const char *indent, struct knee_text *text);

#endif

/* SPDX-License-Identifier: MIT */
/* Numbers inside sentences: human(0.035, KNEE_UNIT_SECONDS).s is "35 ms". */
#ifndef KNEE_OUT_WORDS_H
#define KNEE_OUT_WORDS_H

#include "base/number.h"
#include "base/text.h"
#include "knee_out.h"

struct knee_word {
    char s[256];
};
struct knee_word knee_human(double value, enum knee_unit unit);
struct knee_word knee_percent(double share);        /* "83.3 %" */
bool knee_shows(double share);                      /* not as "0.0 %" */
struct knee_word knee_signed_percent(double share); /* "+36.7 %", "12.5 times" */
/* "18.4 % longer", "5.1 times as long", "12.0 times shorter": of times above 0 that differ. */
struct knee_word knee_change_word(double before, double after);
struct knee_word knee_range(double low_s, double high_s); /* "5.7 to 7.2 s", "900 ms to 1.1 s" */
/* "6.4 s (5.7 to 7.2)", "950 ms (900 ms to 1.1 s)", "83.3 % (75.0 to 91.2)"; the value alone where
 * nothing is known of how sure it is. */
struct knee_word knee_surely(double value, struct knee_sure sure, enum knee_unit unit);
struct knee_word knee_memory_word(const struct knee_memory *memory); /* its total, likewise */
struct knee_word knee_short(double value);                           /* R, gamma: "0.667", "10.7" */
struct knee_word knee_size(double bytes);       /* "4K", "8G" as nccl-tests; else "1.5 MB" */
struct knee_word knee_ratio_word(double ratio); /* R that was measured: "0.67", "11" */

struct knee_word knee_knee_word(const struct knee_knee *knee); /* " (250 to 700)", or nothing */

/* A unit for a machine: "s", "bytes/s", "share", "factor". */
const char *knee_unit_word(enum knee_unit unit);

/* The verdict in a few sentences, each an inequality in the user's own numbers; no line breaks. */
void knee_prediction_sentence(const struct knee_prediction *prediction, struct knee_text *text);
void knee_solution_sentence(const struct knee_solution *solution, struct knee_text *text);
void knee_tax_sentence(const struct knee_tax *tax, struct knee_text *text);
/* What a trace says in three short lines and a formal one; a part may be empty. */
enum knee_diagnosis_part {
    KNEE_SAY_ADVICE, /* what to do */
    KNEE_SAY_REASON, /* why */
    KNEE_SAY_GAIN,   /* what it buys */
    KNEE_SAY_FORMAL, /* R, E, overlap, the step */
    KNEE_SAY_PARTS
};
void knee_diagnosis_line(const struct knee_account *account, const struct knee_diagnosis *diagnosis,
                         enum knee_diagnosis_part part, struct knee_text *text);
/* All of them, one after another. */
void knee_diagnosis_sentence(const struct knee_account *account,
                             const struct knee_diagnosis *diagnosis, struct knee_text *text);
/* Do they quote what a lever buys? */
bool knee_diagnosis_says_lever(const struct knee_diagnosis *diagnosis);
/* What the data cannot answer and how to record it, one sentence each; NULL past the last. */
const char *knee_gap_sentence(unsigned gaps, size_t which);
/* What to do about a rank that is late for this reason. */
const char *knee_cause_cure(enum knee_label cause);
void knee_note_sentence(const struct knee_note *note, struct knee_text *text);

/* A name from a file, made safe to print: cut to `width` characters, control bytes and what is not
 * UTF-8 replaced. */
struct knee_word knee_safe(const char *name, size_t width);

/* Text for Markdown: what a reader would take for HTML or for a link is shown as it was written. */
void knee_markdown_add(struct knee_text *text, const char *bytes, size_t length);

/* Breaks `sentence` into lines of `width` columns at spaces. */
void knee_wrap(const char *sentence, int width, const char *indent, struct knee_text *text);

/* The columns of a sentence; Markdown has a paragraph in one line. */
int knee_columns(enum knee_format format, const struct knee_style *style);
/* A sentence that was put together elsewhere, wrapped; releases it. */
void knee_say(struct knee_text *words, enum knee_format format, const struct knee_style *style,
              struct knee_text *text);

#endif

/* SPDX-License-Identifier: MIT */
/* The parts of knee trace's answer: sentences (say_trace.c, with -v say_trace_notes.c), fields
 * (say_trace_fields.c) and those of --where (say_where.c). */
#ifndef KNEE_SAY_TRACE_FIELDS_H
#define KNEE_SAY_TRACE_FIELDS_H

#include "knee_reports.h"
#include "say/fields.h"
#include "timeline/where.h"

void knee_say_trace(const void *report, struct knee_said *said);
/* R, efficiency and overlap in one sentence. */
void knee_say_formal(const struct knee_trace_report *report, struct knee_text *text);
/* The account in sentences, and products against the GPU's peak; for -v. */
void knee_say_account(const struct knee_trace_report *report, struct knee_text *text);
void knee_say_products(const struct knee_roofline *roofline, struct knee_text *text);
/* What the data cannot answer and how to record it, one sentence each; NULL past the last. */
const char *knee_gap_sentence(unsigned gaps, size_t which);
/* What to do about a rank that is late for this reason. */
const char *knee_cause_fix(enum knee_label cause);
const char *knee_cause_doing(enum knee_label cause);

/* A step as a bar; `split`: wait and transfer are separate. */
size_t knee_step_parts(const struct knee_step *step, bool split,
                       struct knee_bar_part parts[KNEE_PARTS_MAX]);

/* The report that a row of the answer belongs to. */
static inline const struct knee_trace_report *knee_report_at(const struct knee_at *at)
{
    while (at->up)
        at = at->up;
    return at->row;
}

/* --where: its fields, about a struct knee_where, and its notes. */
enum { KNEE_WHERE_FIELDS = 12 };
extern const struct knee_field knee_where_fields[KNEE_WHERE_FIELDS];
/* Of a struct knee_idle_gap. */
enum { KNEE_IDLE_GAP_FIELDS = 9 };
extern const struct knee_field knee_idle_gap_fields[KNEE_IDLE_GAP_FIELDS];
void knee_say_where(const struct knee_where *where, const struct knee_diagnosis *diagnosis,
                    struct knee_text *text);

#endif

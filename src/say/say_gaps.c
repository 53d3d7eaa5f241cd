/* SPDX-License-Identifier: MIT */
/* Gaps of a recording in which a GPU does nothing: the fields of one. */
#include "say/short.h"
#include "say/trace_fields.h"

#define IDLE struct knee_idle_gap
A_TEXT(idle_label, IDLE, knee_label_name(it->label))
GETTER(idle_next, IDLE, if (it->next) knee_value_printf(out, "%.64s", it->next))
const struct knee_field knee_idle_gap_fields[KNEE_IDLE_GAP_FIELDS] = {
    KNEE_FIELD(IDLE, rank, "rank", "rank", COUNT, FULL, ""),
    KNEE_FIELD(IDLE, step, "step", "step", COUNT, FULL, "-1: none is marked"),
    KNEE_FIELD(IDLE, at_s, "at_s", "at", TIME, FULL, "after the step's start"),
    KNEE_FIELD(IDLE, length_s, "length_s", "length", TIME, FULL, ""),
    KNEE_GET(idle_label, "label", "label", TEXT, FULL, "most of it"),
    KNEE_FIELD(IDLE, call, "call", "host call", TEXT, FULL, "most of it is in"),
    KNEE_FIELD(IDLE, annotation, "annotation", "annotation", TEXT, FULL, "innermost around it"),
    KNEE_FIELD(IDLE, module, "module", "module", TEXT, FULL, "with --where"),
    KNEE_GET(idle_next, "next", "next kernel", TEXT, FULL, "that ends it; 64 characters"),
};

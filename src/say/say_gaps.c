/* SPDX-License-Identifier: MIT */
/* Gaps of a recording in which a GPU does nothing: the fields of one. */
#include "say/trace_fields.h"

#define IDLE struct knee_idle_gap
static void idle_label(const struct knee_at *at, struct knee_value *out)
{
    knee_value_text(out, knee_label_name(((const IDLE *)at->row)->label));
}
static void idle_next(const struct knee_at *at, struct knee_value *out)
{
    const char *name = ((const IDLE *)at->row)->next;
    if (name)
        knee_value_printf(out, "%.64s", name);
    else
        knee_value_text(out, NULL);
}
const struct knee_field knee_idle_gap_fields[KNEE_IDLE_GAP_FIELDS] = {
    KNEE_FIELD(IDLE, rank, "rank", "rank", KNEE_AS_COUNT, KNEE_TIER_FULL, ""),
    KNEE_FIELD(IDLE, step, "step", "step", KNEE_AS_COUNT, KNEE_TIER_FULL, "-1: none is marked"),
    KNEE_FIELD(IDLE, at_s, "at_s", "at", KNEE_AS_SECONDS, KNEE_TIER_FULL, "after the step's start"),
    KNEE_FIELD(IDLE, length_s, "length_s", "length", KNEE_AS_SECONDS, KNEE_TIER_FULL, ""),
    KNEE_GET(idle_label, "label", "label", KNEE_AS_TEXT, KNEE_TIER_FULL, "most of it"),
    KNEE_FIELD(IDLE, call, "call", "host call", KNEE_AS_TEXT, KNEE_TIER_FULL, "most of it is in"),
    KNEE_FIELD(IDLE, annotation, "annotation", "annotation", KNEE_AS_TEXT, KNEE_TIER_FULL,
               "innermost around it"),
    KNEE_FIELD(IDLE, module, "module", "module", KNEE_AS_TEXT, KNEE_TIER_FULL, "with --where"),
    KNEE_GET(idle_next, "next", "next kernel", KNEE_AS_TEXT, KNEE_TIER_FULL,
             "that ends it; 64 characters"),
};

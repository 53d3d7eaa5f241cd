/* SPDX-License-Identifier: MIT */
/* What trace and diff share, and what a reader of files must know of trace's options. */
#ifndef KNEE_ASK_ASK_TRACE_H
#define KNEE_ASK_ASK_TRACE_H

#include "ask/ask.h"
#include "ask/pushed.h"

/* How changes are priced: by replay unless the timeline is too large, always by replay, or by
 * closed forms. */
enum knee_ask_levers { KNEE_ASK_AUTO, KNEE_ASK_REPLAY, KNEE_ASK_CLOSED };

extern const struct knee_choices knee_ask_levers_names;

struct knee_ask_trace_options {
    const char *perfetto, *patterns, *noise, *chakra;
    double max_ratio, min_overlap;
    int levers; /* enum knee_ask_levers */
    bool strict, names, where;
    unsigned char source[KNEE_KEYS_MAX];
};

/* Accounts and diagnoses the traces of one run, with what is known about their job; with `expect`
 * also what their collectives should take. Free with knee_ask_told_release(). */
knee_status knee_ask_diagnose(const struct knee_ask_work *work, const struct knee_job *job,
                              bool expect, struct knee_ask_told *told, struct knee_err *err);

/* The noise scale of gradients from lines of BATCH,SQUARED_NORM. */
knee_status knee_ask_noise(struct knee_ask *ask, const char *name, double *scale,
                           struct knee_err *err);

#endif

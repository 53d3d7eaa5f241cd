/* SPDX-License-Identifier: MIT */
/* Reports: what an answer about traces, runs, roll calls or a comparison is made of. They own
 * nothing. */
#ifndef KNEE_REPORTS_H
#define KNEE_REPORTS_H

#include "knee_judge.h"
#include "knee_rollcall.h"
#include "knee_scale.h"

/* A file that could not be used, and why. */
struct knee_refused_file {
    const char *file, *why;
};
/* All that was read and found out from traces, and what was not read. */
struct knee_where;
struct knee_trace_report {
    const struct knee_trace *traces;
    size_t trace_count;
    const struct knee_account *account;
    const struct knee_diagnosis *diagnosis;
    const struct knee_where *where;        /* NULL: not asked for */
    const struct knee_rank_step *per_step; /* knee_rank_steps(); NULL: not wanted */
    const struct knee_idle_gaps *gaps;     /* NULL: not wanted */
    const char *asked; /* the files as the user named them, for the next command; NULL: unknown */
    const struct knee_refused_file *refused;
    size_t refused_count;
};
/* Several runs in one call. `curve`: they are one job at several counts, as knee scale has it. */
struct knee_runs_report {
    const struct knee_trace_report *runs;
    size_t count;
    bool worlds;                           /* several world sizes */
    const struct knee_scale_answer *curve; /* NULL: none */
};

/* Two recordings, and what differs. */
struct knee_comparison_report {
    const struct knee_comparison *c;
    const struct knee_account *before, *after;
    const struct knee_diagnosis *before_diagnosis, *after_diagnosis;
};

/* A roll call and what follows from it; as JSON schema knee.rollcall/1. */
struct knee_roll_report {
    const struct knee_rollcall *roll;
    const struct knee_roll_answer *answer;
};

#endif

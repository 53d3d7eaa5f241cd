/* SPDX-License-Identifier: MIT */
/* Traces whose bytes were pushed into an ask, piece by piece, and what was last found in them. */
#ifndef KNEE_ASK_PUSHED_H
#define KNEE_ASK_PUSHED_H

#include "knee_judge.h"
#include "knee_out.h"

/* Some of the traces, accounted and diagnosed. Zeroed is nothing. */
struct knee_ask_told {
    struct knee_trace *traces; /* rows of the pushed ones; they own what is in them */
    size_t *jobs;              /* per trace: the run that it is a recording of */
    int *holders;              /* per trace: who has its spans; NULL: they are here */
    size_t count, job_count;
    struct knee_refused_file *unused; /* left out: no GPU work, or recorded twice */
    size_t unused_count;
    struct knee_account account;
    struct knee_diagnosis diagnosis;
    const struct knee_alloc *alloc;
};

/* Where a trace came from, beside the number of the word that it was read for. */
enum { KNEE_ASK_BY_NAME = -1, KNEE_ASK_TOGETHER = -2 };

/* Names of communication that the user gave. */
struct knee_ask_patterns {
    struct knee_pattern *rows;
    size_t count;
    char *text; /* that their words are in */
    const struct knee_alloc *alloc;
};
void knee_ask_patterns_release(struct knee_ask_patterns *patterns);

struct knee_ask_pushed {
    struct knee_trace *traces;
    int *sets; /* per trace: the word that it was read for; KNEE_ASK_BY_NAME: pushed,
                  KNEE_ASK_TOGETHER: for all words */
    size_t count;
    /* Of traces shared by several processes, the run of each; NULL and 0: not shared. */
    const size_t *jobs;
    const int *holders;
    size_t job_count;
    struct knee_ask_patterns patterns; /* of what is pushed from now on */
    struct knee_trace_reader *reader;  /* of the one that is being pushed */
    struct knee_ask_told last;         /* what trace answered last, for who draws it */
    const struct knee_alloc *alloc;
};

struct knee_ask_pushed *knee_ask_pushed_of(struct knee_ask *ask);
void knee_ask_pushed_release(struct knee_ask_pushed *pushed);
void knee_ask_told_release(struct knee_ask_told *told);

/* Takes traces that were read elsewhere, for word number `set`. The ask owns them from now on, also
 * when it fails: then they are released. */
knee_status knee_ask_adopt(struct knee_ask *ask, struct knee_trace *traces, size_t count, int set,
                           struct knee_err *err);
/* They are all that this process has of `jobs` runs that several processes share; the lists, one
 * row per trace, must stay until the question is answered. `holders` may be NULL. */
void knee_ask_share(struct knee_ask *ask, const size_t *jobs, const int *holders, size_t job_count);

/* The traces that words mean, which are numbered from `first` on; without words all. They are
 * grouped by run and not yet accounted. On failure *out is empty. */
knee_status knee_ask_pick(struct knee_ask *ask, const char *const *words, size_t word_count,
                          size_t first, struct knee_ask_told *out, struct knee_err *err);
/* KNEE_INPUT when they are of several runs. */
knee_status knee_ask_one_run(const struct knee_ask_told *told, const char *name,
                             struct knee_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* What trace and diff share. */
#ifndef KNEE_ASK_ASK_TRACE_H
#define KNEE_ASK_ASK_TRACE_H

#include "ask/ask.h"
#include "ask/pushed.h"

/* What is worth saying about a job beside its trace. Ends with NULL. */
extern const char *const knee_ask_trace_job_keys[];

/* Accounts and diagnoses the traces that a word names (NULL: all that were pushed), with what is
 * known about their job;
 * with `expect` also what their collectives should take. Free with knee_ask_told_release(); on
 * failure *out is empty. */
knee_status knee_ask_tell(struct knee_ask *ask, const char *const *words, size_t word_count,
                          const struct knee_job *job, bool expect, struct knee_ask_told *out,
                          struct knee_err *err);

#endif

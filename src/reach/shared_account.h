/* SPDX-License-Identifier: MIT */
/* knee_account() over several processes; each holds the spans of the traces it read. */
#ifndef KNEE_REACH_SHARED_ACCOUNT_H
#define KNEE_REACH_SHARED_ACCOUNT_H

#include "knee_timeline.h"
#include "reach/runtime.h"

/* On rank 0 `traces` are all traces in order, outlines (timeline/wire_format.h) of those whose
 * spans are elsewhere; holders[count] says on which rank. On another rank they are what it holds,
 * in the same order, and `holders` is not looked at. Rank 0 gets the account that one process would
 * make of the whole traces, without the runs of other ranks' spans, or the same failure; the others
 * get an empty one and KNEE_OK. When memory runs out, or a rank does not answer, the run ends:
 * rt->abort(). */
knee_status knee_account_over(struct knee_runtime *rt, const struct knee_trace *traces,
                              size_t count, const int *holders, struct knee_account *out,
                              struct knee_err *err);

#endif

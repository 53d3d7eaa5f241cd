/* SPDX-License-Identifier: MIT */
/*
 * What the processes of one run hand each other, as bytes and back, between programs of the same
 * build. What comes back is checked in full: rows that refer to others do so inside bounds, times
 * are in order and in range, labels sum up.
 */
#ifndef KNEE_TIMELINE_WIRE_FORMAT_H
#define KNEE_TIMELINE_WIRE_FORMAT_H

#include "timeline/account.h"

/* Bytes that knee_trace_pack() will write. */
size_t knee_trace_packed_size(const struct knee_trace *trace);

/* Writes exactly that many. */
void knee_trace_pack(const struct knee_trace *trace, unsigned char *out);

/* KNEE_INPUT when the bytes are not a whole packed trace; contract as knee_trace_read(). */
knee_status knee_trace_unpack(const unsigned char *bytes, size_t size,
                              const struct knee_alloc *alloc, struct knee_trace *out,
                              struct knee_err *err);

/* The trace without what only its own labels need: of the spans and names those of calls, and no
 * steps and loads. Enough for knee_account_begin(). Borrows the words of the calls (algorithm,
 * protocol, dtype). KNEE_SYSTEM when out of memory. */
knee_status knee_trace_outline(const struct knee_trace *trace, const struct knee_alloc *alloc,
                               struct knee_trace *out, struct knee_err *err);

/* One rank as both sides see it: where its spans are, and where the account is made. */
struct knee_share {
    struct knee_rank_account *rank; /* .source and the window are set on both sides */
    struct knee_rank_brief *task;
    struct knee_outcome *outcome;
};

/* The tasks of some ranks on their way to the spans, and the outcomes on their way back, with what
 * knee_account_rank() wrote to .rank except the runs. Both sides list the same ranks in the same
 * order. Packing returns the bytes, and only counts them with a NULL `out`; unpacking fills what it
 * can, to be released on failure too: KNEE_INPUT for bytes that are not whole, KNEE_SYSTEM. */
size_t knee_tasks_pack(const struct knee_share *shares, size_t count, unsigned char *out);
knee_status knee_tasks_unpack(const unsigned char *bytes, size_t size,
                              const struct knee_share *shares, size_t count,
                              const struct knee_alloc *alloc, struct knee_err *err);
size_t knee_outcomes_pack(const struct knee_share *shares, size_t count, unsigned char *out);
knee_status knee_outcomes_unpack(const unsigned char *bytes, size_t size,
                                 const struct knee_share *shares, size_t count,
                                 const struct knee_alloc *alloc, struct knee_err *err);

#endif

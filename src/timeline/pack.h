/* SPDX-License-Identifier: MIT */
/*
 * A read trace as bytes, and back, so that one process can hand it to another of the same build.
 * What comes back is checked in full: rows that refer to others do so inside bounds, spans are in
 * order.
 */
#ifndef KNEE_TIMELINE_PACK_H
#define KNEE_TIMELINE_PACK_H

#include "knee.h"

/* Bytes that knee_trace_pack() will write. */
size_t knee_trace_packed_size(const struct knee_trace *trace);

/* Writes exactly that many. */
void knee_trace_pack(const struct knee_trace *trace, unsigned char *out);

/* KNEE_INPUT when the bytes are not a whole packed trace; contract as knee_trace_read(). */
knee_status knee_trace_unpack(const unsigned char *bytes, size_t size,
                              const struct knee_alloc *alloc, struct knee_trace *out,
                              struct knee_err *err);

#endif

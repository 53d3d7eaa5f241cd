/* SPDX-License-Identifier: MIT */
/* The door bytes come through, and gzip in front of it. */
#ifndef KNEE_READ_TRACE_READER_H
#define KNEE_READ_TRACE_READER_H

#include "knee_timeline.h"

/* A window over a file, as it is first. Where it is small (fuzzing), every input comes to its edge.
 */
#ifndef KNEE_WINDOW_BYTES
#define KNEE_WINDOW_BYTES (1 << 19)
#endif

/* Inflates gzip and passes everything else through. Several members are read one after another. */
struct knee_gunzip;

/* NULL when out of memory. `inner` must outlive it. */
struct knee_gunzip *knee_gunzip_new(struct knee_reader inner, const struct knee_alloc *alloc);
void knee_gunzip_free(struct knee_gunzip *gunzip);

/* Up to `size` bytes; 0 at the end, -1 when the inner reader failed. */
ptrdiff_t knee_gunzip_read(struct knee_gunzip *gunzip, void *buffer, size_t size);

/* What was wrong with the compressed bytes: NULL when nothing was. */
const char *knee_gunzip_trouble(const struct knee_gunzip *gunzip);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A cursor over bytes that counts, writes or reads: one walk over the fields of a structure serves
 * all three, so that they cannot disagree. Numbers are written as they are in memory. When reading,
 * nothing is believed: what does not fit makes the cursor bad, and bad cursors read zeros.
 */
#ifndef KNEE_BASE_CURSOR_H
#define KNEE_BASE_CURSOR_H

#include "knee.h"

enum knee_cursor_mode { KNEE_COUNT, KNEE_WRITE, KNEE_READ };

struct knee_cursor {
    enum knee_cursor_mode mode;
    unsigned char *to;         /* KNEE_WRITE */
    const unsigned char *from; /* KNEE_READ */
    size_t at, size;           /* size: KNEE_READ */
    bool bad, no_memory;
    const struct knee_alloc *alloc;
};

/* `size` bytes of one field. */
void knee_cursor_bytes(struct knee_cursor *c, void *field, size_t size);
#define KNEE_FIELD(c, lvalue) knee_cursor_bytes(c, &(lvalue), sizeof(lvalue))

/* Reading: bad unless `holds`. */
void knee_cursor_check(struct knee_cursor *c, bool holds);

/* As far as the readers of traces let times go: KNEE_FIRST_NS to KNEE_LAST_NS. */
void knee_cursor_check_time(struct knee_cursor *c, int64_t ns);

/* A small number as one byte, below `limit`. */
unsigned knee_cursor_small(struct knee_cursor *c, unsigned value, unsigned limit);

/* How many rows of at least `row_size` bytes follow, and, when reading, room for them in memory. */
void knee_cursor_rows(struct knee_cursor *c, size_t *count, size_t row_size, void **array,
                      size_t in_memory);

/* The first field of every message: refuses bytes from a machine that writes numbers otherwise. */
void knee_cursor_mark(struct knee_cursor *c, uint64_t mark);

/* After reading: KNEE_OK when all bytes were read and none was bad. `what` came from another
 * process. */
knee_status knee_cursor_end(const struct knee_cursor *c, const char *what, struct knee_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* How readers put together a roll call. False, or UINT32_MAX: no memory. */
#ifndef KNEE_TIMELINE_ROLLCALL_H
#define KNEE_TIMELINE_ROLLCALL_H

#include "base/slice.h"
#include "knee_rollcall.h"

#define KNEE_ROLL_NAME      200 /* longer names are cut */
#define KNEE_ROLL_RANKS     (1 << 20)
#define KNEE_ROLL_GROUPS    (1 << 20)
#define KNEE_ROLL_KINDS     4096 /* operations and sizes in one group */
#define KNEE_ROLL_FRAMES    1024
#define KNEE_ROLL_SEQUENCES ((int64_t)1 << 43)

/* One entry; what cannot be one is counted in roll->skipped. */
bool knee_rollcall_add(struct knee_rollcall *roll, struct knee_entry entry);

/* The row of the group with this name, created if it is new; and the description of a group. */
uint32_t knee_rollcall_group(struct knee_rollcall *roll, struct knee_slice name);
bool knee_rollcall_describe(struct knee_rollcall *roll, uint32_t group, struct knee_slice words);

/* The row + 1 of a place in the program; 0: too many of them. UINT32_MAX: no memory. */
uint32_t knee_rollcall_frame(struct knee_rollcall *roll, struct knee_slice place);

/* A file whose entries are those from `first_entry` on. */
bool knee_rollcall_source(struct knee_rollcall *roll, const char *file, int64_t rank,
                          size_t first_entry);

/* Moves what one file gave into the roll call of all; `from` is empty afterwards, except that
 * KNEE_INPUT says why nothing was moved: another format, or a rank that is there already. */
knee_status knee_rollcall_take(struct knee_rollcall *roll, struct knee_rollcall *from,
                               struct knee_err *err);

/* Puts the entries into the order of groups, numbers and ranks; ranks are below `ranks`. */
bool knee_rollcall_sort(struct knee_rollcall *roll, size_t ranks);

#endif

/* SPDX-License-Identifier: MIT */
/* Marks on the host, which show training steps and waiting for batches: as a file shows them, and
 * as they are kept. Kept marks come from one source and are not nested. In a file with several
 * processes each mark belongs to a device. */
#ifndef KNEE_TIMELINE_MARKS_H
#define KNEE_TIMELINE_MARKS_H

#include "knee_timeline.h"

/* A mark as it was found. */
struct knee_raw_mark {
    struct knee_mark mark; /* .device is the process that it stands in; -1: not said */
    enum knee_step_source source;
    uint32_t name; /* of an optimizer, to tell several apart */
};

/* Turns `count` raw marks into marks to keep, in place, by device and start; returns how many. Only
 * the best source is kept, which *source tells (it may be NULL: all are). `devices` are the keys of
 * the devices with work, ascending. */
size_t knee_marks_settle(struct knee_raw_mark *raw, size_t count, const int64_t *devices,
                         size_t device_count, enum knee_step_source *source);

/* The marks of one device in a settled list. */
struct knee_marks {
    const struct knee_mark *list;
    size_t count;
};
struct knee_marks knee_marks_of(const struct knee_mark *list, size_t count, int64_t device);

/* The row of the last mark that starts at or before `ns`, plus one; 0: none does. */
size_t knee_marks_before(struct knee_marks marks, int64_t ns);

/* Is this the name of a step, as people annotate their loops: "step 12", "iteration 7"? */
bool knee_names_step(const char *text, size_t length, int64_t *number);

#endif

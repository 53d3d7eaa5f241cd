/* SPDX-License-Identifier: MIT */
/* Which traces are recordings of one run. People give a file twice, packed and not, or the folder
 * of several runs: files say their rank, their world size and their times, which tells. */
#ifndef KNEE_TIMELINE_RECORDINGS_H
#define KNEE_TIMELINE_RECORDINGS_H

#include "knee_timeline.h"

struct knee_recording {
    size_t job;     /* runs are numbered by world size, then time */
    size_t same_as; /* the trace that this one repeats, which has more of it; SIZE_MAX: none */
};

/* Fills out[count] and *jobs, 1 at least. KNEE_SYSTEM when out of memory. */
knee_status knee_tell_recordings(const struct knee_trace *traces, size_t count,
                                 const struct knee_alloc *alloc, struct knee_recording *out,
                                 size_t *jobs, struct knee_err *err);

#endif

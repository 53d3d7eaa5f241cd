/* SPDX-License-Identifier: MIT */
/* The folders that the live agent writes (docs/reference/watch.md), for knee watch. */
#ifndef KNEE_CLI_RINGS_H
#define KNEE_CLI_RINGS_H

#include "base/arena.h"
#include "knee.h"
#include "read/live/live_read.h"

enum { CLI_RING_TRACES = 32 }; /* sampled steps of a folder; the agent keeps 16 */

struct cli_ring {
    char *path;
    int64_t traces[CLI_RING_TRACES]; /* numbers of its sampled steps, those that are there */
    size_t trace_count;
};

/* Free with cli_rings_release(). */
struct cli_rings {
    struct knee_live_rank *ranks; /* by rank */
    struct cli_ring *rings;       /* beside them */
    size_t count;
    size_t earlier;           /* folders of an earlier start of a rank, or of the job */
    size_t unusable;          /* folders whose about.json cannot be read */
    struct knee_arena memory; /* of all that is here but the ranks' own */
};

/* Reads the newest lines of all folders below `dir`, and the oldest ones of their steps; at most
 * about 56 MB in all, however large the rings are. KNEE_INPUT: there is none. */
knee_status cli_rings_read(const char *dir, struct cli_rings *out, struct knee_err *err);
void cli_rings_release(struct cli_rings *rings);

/* The newest step that all ranks have a trace of (-1: none), those files (NULL ends; they live
 * as long as the rings) and how large they are in all. */
knee_status cli_rings_sampled(struct cli_rings *rings, int64_t *step, char ***files,
                              uint64_t *bytes, struct knee_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* A run of a graph as a timeline again. */
#ifndef KNEE_REPLAY_REPLAYED_TIMELINE_H
#define KNEE_REPLAY_REPLAYED_TIMELINE_H

#include "knee_replay.h"
#include "replay/replay_graph.h"

/* `before` is the graph that `after` was changed from. */
knee_status knee_write_replay(const struct knee_graph *before, const struct knee_graph *after,
                              const struct knee_replay_times *times, struct knee_replayed *out,
                              struct knee_err *err);

#endif

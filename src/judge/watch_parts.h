/* SPDX-License-Identifier: MIT */
/* The parts of knee_watch(): each fills its own fields. */
#ifndef KNEE_JUDGE_WATCH_PARTS_H
#define KNEE_JUDGE_WATCH_PARTS_H

#include "judge/watch.h"

/* points[] and late[], from lines of steps and joined calls; nothing where no step was found. */
bool knee_watch_points(const struct knee_live_rank *ranks, struct knee_watch *w);

/* late_rank, its cause, and the changes. w->ranks, points and step_s are there. */
knee_status knee_watch_lateness(struct knee_watch *w, struct knee_err *err);

/* wires[] and slow_wire. */
bool knee_watch_wires(const struct knee_live_rank *ranks, const struct knee_live_joined *joined,
                      struct knee_watch *w);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the collectives of a plan's axes cost. A group is `size` ranks, `stride` apart; those of one
 * node meet on its link, and their node's NICs serve all of them together.
 */
#ifndef KNEE_PREDICT_PLAN_AXIS_COMM_H
#define KNEE_PREDICT_PLAN_AXIS_COMM_H

#include "knee_job.h"

struct knee_group {
    double stride, size;
};

/* All-gather or reduce-scatter of `bytes` (the whole buffer) as a ring; an all-reduce is two. */
double knee_gather_s(const struct knee_machine *machine, struct knee_group group, double bytes);

/* The same in `calls` pieces. */
double knee_gathers_s(const struct knee_machine *machine, struct knee_group group, double bytes,
                      double calls);

/* Every rank sends `bytes` in all, an equal share to each of the group. */
double knee_exchange_s(const struct knee_machine *machine, struct knee_group group, double bytes);

/* `bytes` to the rank `stride` further. */
double knee_send_s(const struct knee_machine *machine, double stride, double bytes);

#endif

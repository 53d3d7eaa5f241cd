/* SPDX-License-Identifier: MIT */
/*
 * What a collective would take if it were larger or smaller: from the sizes that the recording
 * itself has of the same operation in the same group, as latency + bytes / rate.
 */
#ifndef KNEE_REPLAY_OWN_PRICE_H
#define KNEE_REPLAY_OWN_PRICE_H

#include "replay/replay_graph.h"

enum { KNEE_OWN_LINES = 64, KNEE_OWN_SIZES = 32 };

/* Which of the times that the recording leaves open is taken. */
enum knee_lean { KNEE_LEAN_QUICK = -1, KNEE_LEAN_MIDDLE, KNEE_LEAN_SLOW };

struct knee_own_line {
    uint64_t group;
    enum knee_op op;
    int32_t ranks;
    size_t count;
    struct {
        double bytes, pure_ns; /* median */
        size_t calls;
    } sizes[KNEE_OWN_SIZES]; /* by bytes */
};

struct knee_own_prices {
    struct knee_own_line lines[KNEE_OWN_LINES];
    size_t count;
    double turn_ns; /* ranks that share a GPU take turns of this length; 0: they do not */
};

/* False: no memory. */
bool knee_own_prices_init(struct knee_own_prices *prices, const struct knee_graph *graph);

/* The time that does not grow with the size, and the time at `bytes`, before it is rounded up to
 * turns. NaN when the recording has no sizes of it. */
double knee_own_latency_ns(const struct knee_own_prices *prices, const struct knee_graph_meet *meet,
                           enum knee_lean lean);
double knee_own_price_ns(const struct knee_own_prices *prices, const struct knee_graph_meet *meet,
                         double bytes, enum knee_lean lean);

/* Rounded up to whole turns where ranks share a GPU: data that has come is seen at the next. */
double knee_own_in_turns(const struct knee_own_prices *prices, double ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Starting together. Ranks leave a barrier one after the other, up to a message's time apart, and a
 * collective timed from there carries that. So the ranks find out how far their clocks are apart
 * (ping-pong with rank 0; the fastest round trip counts, half of it each way), agree on a moment
 * that lies a little ahead, and all begin then.
 */
#ifndef KNEE_REACH_START_H
#define KNEE_REACH_START_H

#include "reach/runtime.h"

struct knee_start {
    bool known;      /* false: too many ranks; a barrier is all there is */
    double offset_s; /* rank 0's clock less this rank's */
    double margin_s; /* how far ahead the moment lies */
    uint64_t missed; /* how often this rank came too late for it */
};

/* This process's clock, in seconds. */
double knee_clock_s(void);

/* Measures the clocks; every rank, and again now and then, for clocks drift. */
bool knee_start_measure(struct knee_runtime *rt, struct knee_start *start);

/* Waits until all have come and for the moment; *at_s is that moment on this rank's clock. */
bool knee_start_together(struct knee_runtime *rt, struct knee_start *start, double *at_s);

#endif

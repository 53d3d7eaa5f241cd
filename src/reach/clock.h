/* SPDX-License-Identifier: MIT */
/* A clock of the system in nanoseconds: CLOCK_MONOTONIC for durations, CLOCK_REALTIME for dates. */
#ifndef KNEE_REACH_CLOCK_H
#define KNEE_REACH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t knee_clock_ns(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif

/* SPDX-License-Identifier: MIT */
/* Precise sleeps: Linux adds up to 50 us of slack unless a thread asks for less. */
#ifndef KNEE_REACH_NAPS_H
#define KNEE_REACH_NAPS_H

#ifdef __linux__
#include <sys/prctl.h>
#endif

/* For the thread that calls. Elsewhere naps are as long as they are. */
static inline void knee_naps_are_exact(void)
{
#ifdef __linux__
    prctl(PR_SET_TIMERSLACK, 1); /* ns */
#endif
}

#endif

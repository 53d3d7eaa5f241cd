/* SPDX-License-Identifier: MIT */
/*
 * When a rank dies, mpirun ends the others with SIGTERM, in the middle of whatever call they are
 * in. What was measured until then must not be lost: it is kept ready as text, and the handler
 * writes it.
 */
#ifndef KNEE_REACH_STOP_H
#define KNEE_REACH_STOP_H

#include "base/text.h"

#include <poll.h>

/* ---- One stop for everything that waits ----
 * The handler writes into a pipe, and every wait polls that pipe beside what it waits for, so a
 * signal that comes just before the wait is seen as well as one that comes during it. */

/* From here on SIGINT, SIGTERM and SIGHUP ask the program to stop instead of ending it. A signal
 * that is ignored (nohup, a shell's background job) stays ignored; a second one of the same kind
 * ends the process. Under mpirun only SIGINT: the others say that another rank has died, and there
 * is nothing to wait for. Calls nest. */
void knee_stop_catch(void);
void knee_stop_release(void); /* the last one: signals end the process again */

/* The signal that came while they were caught; 0: none. */
int knee_stop_signal(void);
/* The same as a flag, for readers in the core. */
const _Atomic int *knee_stop_flag(void);

/* poll() of at most KNEE_STOP_FDS descriptors, which also ends when a stop is asked for: -1 then.
 * timeout_ms < 0: no limit. Goes on after other signals. */
enum { KNEE_STOP_FDS = 16 };
int knee_stop_poll(struct pollfd *fds, size_t count, int timeout_ms);
/* Sleeps; false: a stop was asked for. */
bool knee_stop_sleep(double seconds);

/* ---- What to say last ---- */

/* From here on SIGTERM and SIGINT write what was kept last to standard output, then `line`
 * (borrowed) to standard error, and end the process with KNEE_SYSTEM. */
void knee_stop_arm(const char *line);
void knee_stop_disarm(void);

/* Keeps the text instead of the one before, and takes it over: *text is empty afterwards. */
void knee_stop_keep(struct knee_text *text);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * When a rank dies, mpirun ends the others with SIGTERM, in the middle of whatever call they are
 * in. What was measured until then must not be lost: it is kept ready as text, and the handler
 * writes it.
 */
#ifndef KNEE_REACH_STOP_H
#define KNEE_REACH_STOP_H

#include "base/text.h"

/* From here on SIGTERM and SIGINT write what was kept last to standard output, then `line`
 * (borrowed) to standard error, and end the process with KNEE_SYSTEM. */
void knee_stop_arm(const char *line);
void knee_stop_disarm(void);

/* Keeps the text instead of the one before, and takes it over: *text is empty afterwards. */
void knee_stop_keep(struct knee_text *text);

#endif

/* SPDX-License-Identifier: MIT */
/* A client of NCCL's RAS service. */
#ifndef KNEE_CLI_RAS_H
#define KNEE_CLI_RAS_H

#include "judge/ras_judge.h"

enum { CLI_RAS_ANSWERS = 130 };

/* Asks HOST[:PORT] (28028): forty times in two seconds, and where something moves, but little, up
 * to that many times in twenty; fewer times where answers are large. Free each answer with
 * knee_ras_release(); *count says how many there are. KNEE_INPUT: no service answers there, or
 * another one does. */
knee_status cli_ras_ask(const char *where, struct knee_ras *answers, size_t *count,
                        struct knee_err *err);

/* One answer as it comes: JSON, or the words of an NCCL that has no JSON. */
knee_status cli_ras_text(const char *where, struct knee_text *text, struct knee_err *err);

#endif

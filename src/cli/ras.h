/* SPDX-License-Identifier: MIT */
/* A client of NCCL's RAS service. */
#ifndef KNEE_CLI_RAS_H
#define KNEE_CLI_RAS_H

#include "judge/ras_judge.h"

enum { CLI_RAS_ANSWERS = 130 };

/* Asks HOST[:PORT] (28028): forty times in two seconds, and where something moves, but little, up
 * to that many times in twenty. Free each answer with knee_ras_release(); *count says how many
 * there are. KNEE_INPUT: nobody answers there, or somebody else does. */
knee_status cli_ras_ask(const char *where, struct knee_ras *answers, size_t *count,
                        struct knee_err *err);

#endif

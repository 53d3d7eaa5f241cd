/* SPDX-License-Identifier: MIT */
/* Flight Recorder dumps and NCCL Inspector files, for knee trace. */
#ifndef KNEE_CLI_ROLLCALLS_H
#define KNEE_CLI_ROLLCALLS_H

#include "cli/cli.h"

/* Is what was named (files, or folders in which there is one) a roll call? */
bool cli_rollcall_named(const struct cli_run *run);

/* Reads all of it and says what follows. Sizes are held against `cluster` if it has links. With
 * `strict` whatever could not be used gives KNEE_INPUT, after the answer. */
knee_status cli_rollcall(struct cli_run *run, const struct knee_cluster *cluster, bool strict);

#endif

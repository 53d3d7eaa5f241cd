/* SPDX-License-Identifier: MIT */
/* Flight Recorder dumps and NCCL Inspector files, for knee trace. */
#ifndef KNEE_CLI_ROLLCALLS_H
#define KNEE_CLI_ROLLCALLS_H

#include "cli/cli.h"
#include "cli/input_files.h"

/* Is there a roll call among the files? */
bool cli_has_rollcall(const struct cli_files *files);

/* Reads all of them and says what follows. Sizes are compared with `cluster` if it has links. With
 * `strict` whatever could not be used gives KNEE_INPUT, after the answer. */
knee_status cli_rollcall(struct cli_run *run, const struct cli_files *files,
                         const struct knee_cluster *cluster, bool strict);

#endif

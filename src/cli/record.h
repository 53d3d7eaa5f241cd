/* SPDX-License-Identifier: MIT */
/* What `knee record` takes: `record env` prepares a job's environment, `record now` profiles a job
 * that runs. `knee live` and `knee capture` are their names of the last release. */
#ifndef KNEE_CLI_RECORD_H
#define KNEE_CLI_RECORD_H

#include "cli/cli.h"

struct record_options {
    const char *dir;
    bool always, mpi;
    double length_s, lead_s, at_s, limit_s;
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys record_keys;

knee_status record_env(struct cli_run *run, const struct record_options *options);
knee_status record_now(struct cli_run *run, const struct record_options *options);

#endif

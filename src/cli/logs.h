/* SPDX-License-Identifier: MIT */
/* Logs of collectives from files, for the commands that read them. */
#ifndef KNEE_CLI_LOGS_H
#define KNEE_CLI_LOGS_H

#include "cli/cli.h"

/* What a user may say about the logs. */
struct cli_log_options {
    double ranks, nodes;
    int op; /* enum knee_op; -1: not said */
    const char *index;
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys cli_log_keys;
void cli_log_options_init(struct cli_log_options *options);

/* Logs, and what an index beside them (index.csv, or the one named) says about each. */
struct cli_logs {
    struct knee_logs logs;
    struct knee_log_about *about; /* one per log */
    void *index_rows;             /* what they point to */
    size_t unread;                /* files without a usable row */
    struct knee_text complaints;  /* a line for each of them */
};

/* Reads all files; those without a usable row are counted and named, and only when none has any the
 * call fails. Free with cli_logs_release(). */
knee_status cli_logs_read(const char *const *names, size_t count,
                          const struct cli_log_options *options, struct cli_logs *out,
                          struct knee_err *err);
void cli_logs_release(struct cli_logs *logs);

#endif

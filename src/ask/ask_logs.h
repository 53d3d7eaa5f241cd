/* SPDX-License-Identifier: MIT */
/* Logs of collectives, for the commands that read them. */
#ifndef KNEE_ASK_ASK_LOGS_H
#define KNEE_ASK_ASK_LOGS_H

#include "ask/ask.h"

/* What a user may say about the logs. */
struct knee_ask_log_options {
    double ranks, nodes;
    int op; /* enum knee_op; -1: not said */
    const char *index;
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_ask_log_keys;
void knee_ask_log_options_init(struct knee_ask_log_options *options);

/* Logs, and what an index beside them (index.csv, or the one named) says about each. */
struct knee_ask_logs {
    struct knee_logs logs;
    struct knee_log_about *about; /* one per log */
    void *index_rows;             /* what they point to */
    size_t unread;                /* files without a usable row */
    struct knee_text complaints;  /* a line for each of them */
};

/* Reads all files; those without a usable row are counted and named, and only when none has any the
 * call fails. Free with knee_ask_logs_release(). */
knee_status knee_ask_logs_read(struct knee_ask *ask, const char *const *names, size_t count,
                               const struct knee_ask_log_options *options,
                               struct knee_ask_logs *out, struct knee_err *err);
void knee_ask_logs_release(struct knee_ask_logs *logs);

#endif

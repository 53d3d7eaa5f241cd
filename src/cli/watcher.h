/* SPDX-License-Identifier: MIT */
/* One look after the other at a running job: what is read, joined and accounted. */
#ifndef KNEE_CLI_WATCHER_H
#define KNEE_CLI_WATCHER_H

#include "cli/rings.h"
#include "cli/traces.h"
#include "out/show_watch.h"

#include <signal.h>

enum { CLI_ALARMS = 8 };

/* A zeroed one with `dir`, `price_per_hour` and alarms set; free with cli_watcher_release(). */
struct cli_watcher {
    const char *dir;
    double price_per_hour; /* NaN: by the GPU's name */
    struct knee_alarm alarms[CLI_ALARMS];
    char alarm_words[CLI_ALARMS][80];
    size_t alarm_count;

    struct cli_rings rings;
    struct knee_live_joined joined;
    struct knee_watch watch;
    /* of the newest sampled step; they stay until there is a newer one */
    struct cli_traces traces;
    struct knee_account account;
    struct knee_diagnosis diagnosis;
    bool accounted;
    int64_t trace_step;
    uint64_t too_large_bytes;
    struct knee_alarm_state states[CLI_ALARMS];
    const char *word_rows[CLI_ALARMS];
};

/* "A > 1; B < 2 for 5m": the alarms. */
knee_status cli_watcher_alarms(struct cli_watcher *watcher, const char *text, struct knee_err *err);

/* Reads everything anew. On failure the last look is gone. */
knee_status cli_watcher_look(struct cli_watcher *watcher, struct knee_err *err);
struct knee_watch_report cli_watcher_report(struct cli_watcher *watcher);
void cli_watcher_release(struct cli_watcher *watcher);

/* An HTTP server for one file, on the loopback unless a host is said: *fd. */
knee_status cli_listen(const char *where, int *fd, struct knee_err *err);
/* Rests for so many seconds and answers those who ask meanwhile (GET /metrics; fd < 0: nobody);
 * shorter when *stop is set, by a signal that only `resting`, the mask while it rests, lets in. */
void cli_serve(int fd, const struct knee_text *metrics, double seconds, const sigset_t *resting,
               const volatile sig_atomic_t *stop);

#endif

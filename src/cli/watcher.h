/* SPDX-License-Identifier: MIT */
/* One look after the other at a running job: what is read, joined and accounted. */
#ifndef KNEE_CLI_WATCHER_H
#define KNEE_CLI_WATCHER_H

#include "cli/rings.h"
#include "cli/traces.h"
#include "reach/child.h"
#include "say/watch_report.h"

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
    size_t command_failures; /* of alarms */
    size_t failed_looks;
    /* of a job that stands still: what its logs and dumps say, asked once per standstill */
    struct knee_said hang;
    const char *hang_fix;
    int64_t hang_of_ns; /* newest line at that time; 0: not asked */
};

/* "A > 1; B < 2 for 5m": the alarms. */
knee_status cli_watcher_alarms(struct cli_watcher *watcher, const char *text, struct knee_err *err);

/* Reads everything anew. On failure the last look is gone. */
knee_status cli_watcher_look(struct cli_watcher *watcher, struct knee_err *err);
struct knee_watch_report cli_watcher_report(struct cli_watcher *watcher);
void cli_watcher_release(struct cli_watcher *watcher);

/* An HTTP server for one text. A zeroed one serves no client. */
enum { CLI_CLIENTS = 12 };
struct cli_server {
    int fd;     /* 0: none */
    bool local; /* it listens on the loopback */
    struct cli_client {
        int fd;
        double until_s;
        char *request;
        size_t used, sent;
        struct knee_text answer;
    } clients[CLI_CLIENTS];
};
/* [HOST:]PORT; without HOST it listens on the loopback address. */
knee_status cli_listen(const char *where, struct cli_server *server, struct knee_err *err);
void cli_server_close(struct cli_server *server);
/* Rests for so many seconds and answers those who ask meanwhile: GET and HEAD /metrics. False: a
 * stop was asked for. */
bool cli_serve(struct cli_server *server, const struct knee_text *metrics, double seconds);

/* The commands of alarms. Each runs beside the watcher, for at most 30 s. */
struct cli_alarm_commands {
    struct {
        struct knee_child child;
        double until_s;
    } rows[CLI_ALARMS];
    size_t failed; /* could not be started, did not succeed, or took too long */
};
void cli_alarm_start(struct cli_alarm_commands *all, size_t alarm, const char *command,
                     const char *words);
/* Looks which have ended; ends those that take too long. True: some still run. */
bool cli_alarm_reap(struct cli_alarm_commands *all);
void cli_alarm_end(struct cli_alarm_commands *all);

#endif

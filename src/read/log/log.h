/* SPDX-License-Identifier: MIT */
/*
 * Reading measured collectives. One file per format; each takes lines off the reader, adds samples,
 * refuses rows with a reason, and notes facts about the run. What a log does not say is worked out
 * when a table ends (log_complete.c).
 */
#ifndef KNEE_READ_LOG_LOG_H
#define KNEE_READ_LOG_LOG_H

#include "base/error.h"
#include "base/slice.h"
#include "knee_logs.h"

#define KNEE_LOG_SAMPLES_MAX ((size_t)1 << 18)
#define KNEE_LOGS_MAX        4096
#define KNEE_HOSTS_MAX       4096

/* What a run says about itself, until its table ends. */
struct knee_run_facts {
    double max_rank;   /* highest rank listed; NaN: none */
    double listed;     /* device lines */
    double max_device; /* NaN: none */
    double hosts;      /* different ones among device lines */
    double nccl_hosts; /* and among NCCL's own lines */
    double ranks_said, nodes_said, per_node_said, processes_said;
    unsigned long long host[KNEE_HOSTS_MAX], nccl_host[KNEE_HOSTS_MAX]; /* hashes */
    unsigned long long device[KNEE_HOSTS_MAX];                          /* of host and device */
    size_t device_count;
    bool has_redop, has_root; /* columns of the table */
    bool redop_is_sum, count_is_part, in_place_not_checked, root_is_zero;
};

struct knee_log_reader {
    struct knee_logs *logs;
    const char *name;
    struct knee_log_hints hints;
    struct knee_slice text;  /* what is left */
    struct knee_slice whole; /* the file */
    size_t line;             /* number of the line taken last */
    size_t tables;           /* ended so far */
    size_t used, refused, facts, others;
    const char *first_reason;
    size_t capacity; /* of log.samples */
    struct knee_log log;
    struct knee_run_facts run;
    /* Per sample of the table: bus over algorithm bandwidth, and how far rounding may move it. */
    double *ratios, *slacks;
    struct knee_err *err;
    knee_status status; /* sticks */
};

/* ---- Building ---- */

/* What ends a reading; the first one counts. */
void knee_log_out_of_memory(struct knee_log_reader *r);
void knee_log_too_many(struct knee_log_reader *r); /* tables */

/* The next line, counted; false at the end or once something failed. */
bool knee_log_line(struct knee_log_reader *r, struct knee_slice *line);

void knee_log_add(struct knee_log_reader *r, const struct knee_sample *sample, double ratio,
                  double slack);
void knee_log_refuse(struct knee_log_reader *r, size_t number, struct knee_slice line,
                     const char *reason);
void knee_log_note(struct knee_log *log, const char *fmt, ...) KNEE_PRINTF(2, 3);

/* The table is of one of knee bench's own algorithms; hops 0 or NaN: the library chose. */
void knee_log_own_algorithm(struct knee_log *log, struct knee_slice name, double hops,
                            double share);

/* Hosts without GPUs are shared with other jobs. The fastest run shows the speed of the link: a
 * disturbance only ever makes a run longer. */
void knee_log_quickest(const struct knee_log *log, double quickest_s, struct knee_sample *sample);

/* The table is over: works out what it does not say and keeps it; an empty one is dropped. The
 * facts of the run stay when `same_run`. */
void knee_log_end(struct knee_log_reader *r, bool same_run);

/* Works out op, ranks and nodes of a table from its rows, its run and the hints. */
void knee_log_complete(struct knee_log_reader *r);

/* One more host of the run, among device lines or NCCL's. */
void knee_run_host(double *count, unsigned long long *hashes, struct knee_slice host);

/* ---- Formats ---- */

struct knee_log_format {
    const char *name;
    bool (*sniff)(struct knee_slice text);
    void (*read)(struct knee_log_reader *r);
};
extern const struct knee_log_format knee_log_json, knee_log_csv, knee_log_osu, knee_log_nccl_tests;

/* A line of NCCL, whose words are found `at`: facts go into the log and its run. */
void knee_nccl_debug_line(struct knee_log_reader *r, struct knee_slice line, size_t at);

/* What stands on a line before NCCL's own words, which are found `at`; often nothing. */
struct knee_slice knee_log_before_nccl(struct knee_slice line, size_t at);

/* What launchers put before a line is cut off; what runs say on the way (commands, environment) is
 * noted: true if anything was. */
struct knee_slice knee_log_strip(struct knee_slice line);
bool knee_log_launcher_line(struct knee_log_reader *r, struct knee_slice line);

#endif

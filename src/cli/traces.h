/* SPDX-License-Identifier: MIT */
/* Reading sets of trace files, for the commands that take them. */
#ifndef KNEE_CLI_TRACES_H
#define KNEE_CLI_TRACES_H

#include "ask/pushed.h"
#include "cli/cli.h"
#include "reach/runtime.h"

/* A file that could not be used, and why. */
struct cli_refused {
    char *file;
    struct knee_err err;
    bool repeat; /* it says nothing that another file does not say */
};

struct cli_traces {
    struct knee_trace *traces;
    size_t count;
    int *holders; /* rank that has the spans of each trace; NULL: this process has all */
    size_t *jobs; /* the run that each trace is a recording of */
    size_t job_count;
    struct cli_refused *refused;
    size_t refused_count;
    size_t again;      /* names that led to files that were there already */
    size_t unsearched; /* folders that were too deep or could not be opened */
    bool interrupted;  /* the user stopped the reading */
};

/* The files that are named, and those in folders that are wanted, each once and in natural order;
 * NULL ends. Free each and the list; NULL: no memory. */
typedef bool cli_wanted(const char *path);
char **cli_find_files(const char *const *words, size_t count, cli_wanted *wanted);

/* Reads all files, and all traces in folders, on all cores. What one file suffers does not touch
 * the others. Fails only when not one can be used. SIGINT stops reading; what was read is kept.
 * With `rt` the files are shared out over its ranks, in the order in which rank 0 finds them. Every
 * rank keeps the traces that it read; rank 0 gets the others' outlines and what was refused. With
 * `whole` all traces come to rank 0, as if it had read them itself, and the others keep none. A
 * NULL `rt`: alone. */
knee_status cli_traces_read(const char *const *words, size_t word_count,
                            struct knee_trace_options *options, struct knee_runtime *rt, bool whole,
                            struct cli_traces *out, struct knee_err *err);
void cli_traces_release(struct cli_traces *traces);

/* About how many bytes of JSON there are to read: of a gzipped file what its end says. */
uint64_t cli_traces_size(const char *const *words, size_t word_count);

/* Reads without processes, complains, and hands the traces to run->ask for word number `set` (see
 * ask/pushed.h). */
knee_status cli_traces_to_ask(struct cli_run *run, const char *const *words, size_t word_count,
                              struct knee_trace_options *options, int set);

/* The user stopped the reading: the error that says so, and the status that a shell expects. */
knee_status cli_traces_stopped(struct knee_err *err);

/* What was refused, for a report; free() it. NULL: no memory. */
struct knee_refused_file *cli_traces_refused(const struct cli_traces *traces);

/* A line for each loss, on standard error: a table alone has no place for them. */
void cli_traces_tell_losses(const struct cli_traces *traces);

/* One line per refused file, on standard error. */
void cli_traces_complain(const struct cli_traces *traces);

#endif

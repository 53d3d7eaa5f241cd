/* SPDX-License-Identifier: MIT */
/* Reading sets of trace files, for the commands that take them. */
#ifndef KNEE_CLI_TRACES_H
#define KNEE_CLI_TRACES_H

#include "ask/pushed.h"
#include "cli/cli.h"
#include "cli/input_files.h"
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
    size_t unfollowed; /* links to folders or to nothing, and names of traces that are no files */
    bool interrupted;  /* the user stopped the reading */
};

/* The most that is unpacked of a file that is read as a whole: what is recorded shrinks to a tenth,
 * not to a hundredth. */
size_t cli_unpacked_most(int fd);

/* How they are read. */
struct cli_reading {
    struct knee_trace_options options;
    struct knee_runtime *rt; /* NULL: alone */
    bool whole;              /* all traces come to rank 0 */
    const char *where;       /* what was named, for errors */
};

/* Reads all files on all cores. What one file suffers does not touch the others. Fails only when
 * not one can be used. SIGINT stops reading; what was read is kept. With how->rt the files are
 * shared out over its ranks; rank 0's list counts, that of the others is empty before. Every rank
 * keeps the traces that it read; rank 0 gets the others' outlines and what was refused. With
 * how->whole all traces come to rank 0, as if it had read them itself, and the others keep none. */
knee_status cli_traces_read(struct cli_files *files, const struct cli_reading *how,
                            struct cli_traces *out, struct knee_err *err);
void cli_traces_release(struct cli_traces *traces);

/* Reads without processes, complains, and hands the traces to run->ask for word number `set` (see
 * ask/pushed.h). */
knee_status cli_traces_to_ask(struct cli_run *run, const char *const *words, size_t word_count,
                              const struct knee_trace_options *options, int set);

/* The user stopped the reading: the error that says so, and the status that a shell expects. */
knee_status cli_traces_stopped(struct knee_err *err);

/* What was refused, for a report; free() it. NULL: no memory. */
struct knee_refused_file *cli_traces_refused(const struct cli_traces *traces);

/* A line for each loss, on standard error: a table alone has no place for them. */
void cli_traces_tell_losses(const struct cli_traces *traces);

/* One line per refused file, on standard error. */
void cli_traces_complain(const struct cli_traces *traces);

#endif

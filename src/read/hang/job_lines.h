/* SPDX-License-Identifier: MIT */
/* One line of a job's text at a time. Each reader says whether the line was its own. */
#ifndef KNEE_READ_HANG_JOB_LINES_H
#define KNEE_READ_HANG_JOB_LINES_H

#include "read/hang/job_record.h"

#include <string.h>

/* The words of lines that are looked at: data/job_triggers.csv. */
extern const char *const knee_job_triggers[];
extern const size_t knee_job_triggers_count;
#define KNEE_JOB_TRIGGERS_MAX 96 /* words of a knee_line_finder */

/* A row of data/failure_lines.csv: both words are in the line. */
struct knee_failure_line {
    const char *word, *and;
    enum knee_failure failure; /* KNEE_FAILED_NOT: known, and no failure */
};
extern const struct knee_failure_line knee_failure_lines[];
extern const size_t knee_failure_lines_count;

/* Lines with one launcher's prefix, "(Worker pid=7, ip=10.0.0.1)", are one process's. */
struct knee_job_stream {
    uint32_t hash; /* 0: free */
    int32_t rank;  /* KNEE_JOB_NO_RANK: several */
};
#define KNEE_JOB_STREAMS 1024

/* Where we are in a file. */
struct knee_job_place {
    struct knee_job_record *record;
    uint32_t file, line;
    size_t first_mark;        /* marks of the files before */
    int64_t file_rank;        /* from the file's name; KNEE_JOB_NO_RANK */
    struct knee_slice before; /* the file up to this line */
    struct knee_slice after;  /* the file behind it */
    double time_s;            /* of this line, by its stamp or the last one before it */
    double last_s;            /* of the last stamp in the file */
    double shift_s;           /* from the stamps in front of lines to PyTorch's; 0 */
    bool name_only;           /* nothing but a rank's name makes the line worth reading */
    bool disordered;          /* stamps go back: the ranks' lines do not stand in time's order */
    uint32_t traceback;       /* the line of the last one; 0: none */
    uint32_t ignored;         /* the line of "Exception ignored in"; 0: none */
    uint32_t thread;          /* the line of the last "Exception in thread"; 0: none */
    uint32_t threads;         /* of them, how many have not shown their exception yet */
    bool aside;               /* this line's error is one of those */
    int64_t table_rank;       /* torchrun's table: the rank of the block we are in */
    double table_s;           /* its time */
    int64_t job;              /* Slurm's number in the last notice; 0: none */
    uint32_t job_line;        /* its line */
    bool table_root;          /* it is the first observed failure */
    char table_host[64];
    bool starting; /* JAX: the barrier that timed out is the first one */
    struct knee_job_stream streams[KNEE_JOB_STREAMS]; /* by hash */
};

/* The rank that a line belongs to, by the line or the file; KNEE_JOB_NO_RANK. */
int64_t knee_job_whose(const struct knee_job_place *place, const struct knee_job_line *line);
uint32_t knee_job_mark_line(struct knee_job_place *place, const struct knee_job_line *line,
                            enum knee_failure failure);

/* Takes the last line off a text; an empty one where there is none. */
struct knee_slice knee_job_line_above(struct knee_slice *text);

/* The number behind `before`; -1: none. Signs and quotes may stand between. */
int64_t knee_job_number(struct knee_slice text, const char *before);

/* "step 11 loss ...", "iteration 5/100": the number of a line that begins with the word; -1. */
int64_t knee_job_step_of(struct knee_slice line);
#define KNEE_JOB_TAIL 400 /* lines that are looked at for steps, at either end */
/* The line, of `last`, from which on the text shows progress to its end; 0: it does not. */
uint32_t knee_job_goes_on_until(struct knee_slice text, uint32_t last);

/* What the file says before line `until` is of an earlier run, to which this one was appended. */
void knee_job_forget(struct knee_job_place *place, uint32_t until);

/* PyTorch's process groups: timeouts, numbers, dump signals, fingerprints. */
bool knee_job_group_line(struct knee_job_place *place, const struct knee_job_line *line);
/* Ranks that others name because they did not come. */
bool knee_job_absence_line(struct knee_job_place *place, const struct knee_job_line *line);
/* Errors that end a process or a job. */
void knee_job_fail(struct knee_job_place *place, const struct knee_job_line *line,
                   enum knee_failure failure);
bool knee_job_failure_line(struct knee_job_place *place, const struct knee_job_line *line);
/* torchrun, srun, slurmstepd, mpirun: who ended how. */
bool knee_job_launcher_line(struct knee_job_place *place, const struct knee_job_line *line);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the files of one job say about how it ended: per rank its exit, its own error, the
 * collectives that it waits in, its host; over all ranks what the launcher, the scheduler and the
 * kernel wrote. Text (standard error and output, launchers' and schedulers' messages, NCCL's and
 * the kernel's log), Flight Recorder dumps, answers of NCCL's RAS service and exit statuses go in,
 * in any order and any number of files. Nothing is judged here: src/judge/hang does that.
 *
 * Ranks are those of the job. A line belongs to the rank that it names ("[rank3]:"), else to the
 * launcher's prefix ("3: ", "[1,3]<stderr>:", "[default3]:"), else to the rank in the file's name.
 */
#ifndef KNEE_READ_HANG_JOB_RECORD_H
#define KNEE_READ_HANG_JOB_RECORD_H

#include "base/slice.h"
#include "knee_rollcall.h"
#include "read/live/ras_read.h"

#define KNEE_JOB_RANKS     (1 << 17)
#define KNEE_JOB_MARKS     65536 /* lines kept as evidence, over all ranks */
#define KNEE_JOB_NO_RANK   (-1)
#define KNEE_JOB_NO_MARK   UINT32_MAX
#define KNEE_JOB_UNTIMED_S (-1.0)

/* An error of one rank, or one that ended the whole job. The order is that of the table in
 * job_lines.c, not of severity. */
enum knee_failure {
    KNEE_FAILED_NOT,
    KNEE_FAILED_OOM,       /* GPU memory */
    KNEE_FAILED_HOST_OOM,  /* host memory: the kernel or the scheduler killed it */
    KNEE_FAILED_SIGNAL,    /* segmentation fault, bus error */
    KNEE_FAILED_KILLED,    /* SIGKILL: the kernel, the scheduler or a person */
    KNEE_FAILED_EXCEPTION, /* a Python or C++ exception */
    KNEE_FAILED_GPU,       /* ECC, Xid, off the bus */
    KNEE_FAILED_FAULT,     /* the program's kernel: illegal address, assert */
    KNEE_FAILED_NCCL,      /* an NCCL error that is not about a peer */
    KNEE_FAILED_NETWORK,   /* completion with error, link down */
    KNEE_FAILED_VERSION,   /* versions or environments differ */
    KNEE_FAILED_DATA_END,  /* StopIteration */
    KNEE_FAILED_NODE,      /* the scheduler lost the node */
    KNEE_FAILED_TIME,      /* the job's time limit */
    KNEE_FAILED_CANCEL,    /* a user or administrator cancelled it */
    KNEE_FAILED_NO_START,  /* a worker never joined */
    KNEE_FAILED_LATER,     /* follows from another rank's failure */
    KNEE_FAILURES
};

/* What another process says about a rank. */
enum knee_absent {
    KNEE_ABSENT_NOT,
    KNEE_ABSENT_LATE,     /* it did not come to a barrier or a collective */
    KNEE_ABSENT_AT_START, /* it did not come to the first one */
    KNEE_ABSENT_SILENT,   /* it sends no heartbeat */
};

/* A failure, and the line that says so. */
struct knee_job_failure {
    enum knee_failure failure;
    uint32_t mark;
    double time_s; /* KNEE_JOB_UNTIMED_S */
};

/* A line worth showing. */
struct knee_job_mark {
    int32_t rank;  /* KNEE_JOB_NO_RANK: the job's */
    uint32_t file; /* row of files */
    uint32_t line; /* from 1; 0: the whole file */
    double time_s; /* by its stamp, from the start of the year; KNEE_JOB_UNTIMED_S: none */
    enum knee_failure failure;
    char *text;
};

/* One rank in one group, from text alone: dumps are in the roll call. */
struct knee_job_member {
    uint32_t group;      /* row of roll.groups */
    uint32_t next;       /* the rank's next one + 1; 0: none */
    int64_t group_rank;  /* inside the group; -1: not known */
    int64_t waits;       /* smallest number that timed out or failed here; -1: none */
    int64_t in, out;     /* its elements; -1: not known */
    int64_t enqueued;    /* last number; -1: not known */
    int64_t completed;   /* last number; -1: none or not known (see known) */
    int64_t outstanding; /* calls that the watchdog holds; -1: not known */
    double since_s;      /* when it was enqueued; KNEE_JOB_UNTIMED_S */
    double limit_s;      /* its timeout; 0: not known */
    enum knee_op op;
    bool known;     /* a status line gave enqueued and completed */
    bool timed_out; /* waits: the watchdog's timeout */
    bool broken;    /* waits: NCCL reported an error, there was no timeout */
    uint32_t mark;
    char op_name[28]; /* as printed */
    char frame[160];  /* "train.py:16 (evaluate)"; "": no stack */
};

struct knee_job_rank {
    bool text, dump;     /* some line or file is this rank's; a dump is */
    bool own_file;       /* a file of this rank alone */
    bool unread;         /* its dump is here and cannot be read */
    bool talked;         /* its process group printed something: it was alive at the timeout */
    bool barrier;        /* it went into a barrier */
    bool p2p;            /* it sent or received outside a batch, and then printed nothing */
    bool peer_closed;    /* an NCCL error came first: a peer closed the connection */
    bool truncated;      /* NCCL got a message of another size */
    bool fingerprint;    /* TORCH_DISTRIBUTED_DEBUG names it as the one that differs */
    bool ras_missing;    /* RAS cannot reach it */
    bool ran_out;        /* the loop of its process ended: "training finished" */
    bool root;           /* the launcher saw it end first */
    bool aside;          /* its failure is a thread's: any other replaces it */
    bool watchdog_stuck; /* the watchdog itself made no progress */
    int32_t exit;        /* 0 to 255, 128 + signal; -1: not known */
    int64_t ras_calls;   /* collectives enqueued, by RAS; -1: not known */
    int64_t steps;       /* step lines that it printed, where they count up by one; -1 */
    int64_t last_step;   /* -1: none */
    enum knee_failure failure;
    enum knee_absent absent;                     /* another rank's message names it */
    uint32_t failure_mark, exit_mark, last_mark; /* last: the last line it printed */
    uint32_t frame_mark;                         /* the program's line that failed */
    struct knee_job_failure last;                /* its last failure, where it survived the first */
    double failure_s;                            /* KNEE_JOB_UNTIMED_S */
    double broken_s, timeout_s; /* first NCCL error; first timeout; KNEE_JOB_UNTIMED_S */
    double stamp_s;             /* the last one in its lines; KNEE_JOB_UNTIMED_S */
    double exit_s;              /* by the launcher's table; KNEE_JOB_UNTIMED_S */
    uint32_t members;           /* first row of members + 1 */
    uint32_t named_file;        /* row + 1 of the first file with a line "[rankN]"; 0: none */
    char host[64];              /* "": not known */
};

struct knee_job_file {
    char *name;
    const char *kind; /* "text", "flight recorder", "ras", "exit status"; NULL: not known */
};

struct knee_line_finder;

struct knee_job_record {
    struct knee_rollcall roll; /* dumps, and the groups of everything */
    struct knee_job_rank *ranks;
    size_t rank_count, rank_capacity;
    struct knee_job_member *members;
    size_t member_count, member_capacity;
    struct knee_job_mark *marks;
    size_t mark_count, mark_capacity;
    struct knee_job_file *files;
    size_t file_count, file_capacity;
    int64_t world;            /* ranks of the job as some line says; 0: not known */
    enum knee_failure failed; /* what ended the job as a whole; with its line */
    uint32_t failed_mark;
    struct knee_job_failure failed_last; /* the last one of them */
    bool timed_out;                      /* a watchdog says so, and not in which call */
    bool failed_aside;                   /* a thread's: any other replaces it */
    bool failed_warned;                  /* only NCCL's warning says so: the ranks may go on */
    int64_t slurm_job;                   /* the last job that a notice of Slurm names; 0 */
    size_t later_errors;                 /* lines that only follow from another rank's failure */
    uint32_t later_mark;                 /* the first of them */
    size_t unknown_files, refused_files;
    char refused[320];     /* the first file that cannot be used, and why */
    size_t unknown_errors; /* lines that report an error and that no rule knows */
    uint32_t unknown_mark; /* the first of them */
    size_t lines;
    size_t barriers;   /* ranks that went into a barrier, where no line says which */
    bool gave_up;      /* a process ended itself after a timeout: the text does not stop before */
    uint32_t mixed[2]; /* rows + 1 of two files that cannot be of one job; 0: there are none */
    double first_timeout_s, first_broken_s;
    struct knee_line_finder *finder;
    bool nccl_elsewhere; /* another reader takes NCCL's warnings, so they do not count as unknown */
    bool no_memory;
    const struct knee_alloc *alloc;
};

/* Does a text have words that only the output of a job has? */
bool knee_job_signs(struct knee_slice text, const struct knee_alloc *alloc);

void knee_job_record_init(struct knee_job_record *record, const struct knee_alloc *alloc);
void knee_job_record_release(struct knee_job_record *record);

/* Adds one file. `data` may be changed. What cannot be used is counted, never fatal: KNEE_SYSTEM
 * alone (no memory) ends the reading. */
knee_status knee_job_read(struct knee_job_record *record, const char *name, char *data,
                          size_t length, struct knee_err *err);
/* Counts a file that cannot be used. */
void knee_job_refuse(struct knee_job_record *record, const struct knee_err *why);
/* An answer of the RAS service that was asked for. */
void knee_job_add_ras(struct knee_job_record *record, const struct knee_ras *ras, uint32_t file);

/* ---- For the readers of this room ---- */

struct knee_job_rank *knee_job_rank_at(struct knee_job_record *record, int64_t rank);
struct knee_job_member *knee_job_member_at(struct knee_job_record *record, int64_t rank,
                                           struct knee_slice group);
/* Row of the new mark; KNEE_JOB_NO_MARK when there are enough. */
uint32_t knee_job_mark(struct knee_job_record *record, struct knee_job_mark mark,
                       struct knee_slice text);

/* Puts the newest mark in the place of an older one that is not needed any more; its row. */
uint32_t knee_job_mark_over(struct knee_job_record *record, uint32_t old, uint32_t mark);

/* Undoes, in place, what a container runtime or a terminal did to the lines; the new length. */
size_t knee_job_layout(char *data, size_t length);
/* One text file; false: nothing in it is worth knowing. */
bool knee_job_text(struct knee_job_record *record, uint32_t file, struct knee_slice text);
/* The words of `ncclras`, NCCL 2.24 and later. */
bool knee_is_ras_text(struct knee_slice text);
void knee_job_ras_text(struct knee_job_record *record, uint32_t file, struct knee_slice text);

/* A line without what launchers put before it. */
struct knee_job_line {
    struct knee_slice text; /* what the program wrote, "[rank3]:" and all */
    int64_t rank;           /* KNEE_JOB_NO_RANK: the line does not say */
    int64_t group_rank;     /* "[Rank 1]" behind it: the rank inside the group; -1 */
    size_t indent;          /* spaces before the text, behind all prefixes */
    bool named;             /* rank comes from "[rank3]", not from a launcher */
    char host[64];
    struct knee_slice stream; /* a prefix that is one process's; empty: none */
    char level;               /* time_s is glog's, as PyTorch's is: I, W, E or F; else 0 */
    double time_s;            /* PyTorch's stamp, else the one in front */
    double front_s;           /* a launcher's or logger's stamp in front of PyTorch's */
};
struct knee_job_line knee_job_line_of(struct knee_slice line);
/* Does an exception's name begin the text, as in the last line of a traceback? */
bool knee_job_is_exception(struct knee_slice text);
/* Where the next rank's line begins in what should be one line; text.length: nowhere. */
size_t knee_job_line_end(struct knee_slice text);
/* The rank that a file's name or folder gives; KNEE_JOB_NO_RANK: none. */
int64_t knee_job_rank_of_name(const char *name);

/* ---- Lines with one of many words in them ---- */

/* Finds the next place at or after `from` where one of the words begins; text.length: none. */
struct knee_line_finder *knee_line_finder_new(const char *const *words, size_t count,
                                              const struct knee_alloc *alloc);
size_t knee_line_find(const struct knee_line_finder *finder, struct knee_slice text, size_t from);

#endif

/* SPDX-License-Identifier: MIT */
/* Roll call: which rank entered which collective, and how long it stayed, from records that have
 * no common clock (PyTorch's Flight Recorder, NCCL Inspector). What knee.h says of every call holds
 * here; these structs may change with the minor version. */
#ifndef KNEE_ROLLCALL_H
#define KNEE_ROLLCALL_H

#include "base/map.h"
#include "knee_timeline.h"

/* One rank's part in one collective. Ranks that name the same group and sequence number are in the
 * same collective, whatever their clocks say. */
struct knee_entry {
    uint32_t group; /* row of groups */
    int32_t rank;   /* of the job (Flight Recorder), of the communicator (Inspector) */
    int64_t sequence;
    int64_t bytes;       /* as nccl-tests counts; -1: not known */
    int64_t duration_ns; /* -1: not known */
    int64_t elements;    /* that go in; -1: not known */
    enum knee_op op;
    uint32_t frame; /* of an unfinished call: row of frames + 1; 0: no stack */
    bool pending;   /* entered, not done */
    bool started;   /* pending, and the GPU has reached it */
    bool aborted;   /* done, and the watchdog had not taken it for done: NCCL's abort ended it */
    bool p2p;       /* a send or receive: its number is the rank's own, nothing is joined by it */
};

struct knee_comm_group {
    char *name, *description; /* "0x7f8c...", "43"; "": not known */
    int32_t size;             /* -1: not known */
    int32_t *members;         /* ranks, where the record lists them */
    size_t member_count;
};

/* One file: whose it is and what is in it. */
struct knee_roll_source {
    char *file;
    int64_t rank; /* -1: the file has several, or does not say */
    size_t entries, pending;
    int waited_out; /* was its oldest unfinished call older than its timeout? -1: not known */
    bool whole;     /* the record begins with the rank's first call */
};

struct knee_rollcall {
    const char *format; /* "flight recorder", "nccl inspector" */
    struct knee_entry *entries;
    size_t entry_count, entry_capacity;
    struct knee_comm_group *groups;
    size_t group_count, group_capacity;
    struct knee_map names; /* of the groups, for whoever adds to it */
    struct knee_roll_source *sources;
    size_t source_count, source_capacity;
    char **frames; /* "/home/a/train.py:16 (evaluate)", each once */
    size_t frame_count, frame_capacity;
    uint64_t skipped; /* lines or entries that cannot be read */
    uint64_t untimed; /* entries without a duration that are done */
    const struct knee_alloc *alloc;
};

/* Adds one file; its kind is recognised by content. `data` may be changed. KNEE_INPUT: neither
 * kind, or not the kind of the files before it. */
knee_status knee_rollcall_read(struct knee_rollcall *roll, const char *file, char *data,
                               size_t length, struct knee_err *err);
void knee_rollcall_release(struct knee_rollcall *roll);

/* Does a file that begins with these bytes hold a roll call? 4 KB are enough. */
bool knee_rollcall_recognise(const char *head, size_t length);
/* The rank of a dump by its file: "_dump_12", "nccl_trace_rank_3", "rank3.json"; what the name
 * says, else the digits it ends in; -1: none. */
int64_t knee_rollcall_rank_of_name(const char *file);

/* One rank of one group, over the collectives that could be joined. */
struct knee_roll_rank {
    int32_t rank;
    uint32_t group;
    size_t calls, joined;                      /* seen; with a duration on every member */
    size_t last;                               /* joined, and this rank came last */
    int64_t wait_ns, transfer_ns, duration_ns; /* sums over the joined ones */
    int64_t held_ns; /* what it kept the others waiting: their median stay above its own */
    bool late;       /* last too often for chance, and for long */
};

/* A collective in which at least one rank waits. */
struct knee_stuck {
    uint32_t group;
    int64_t sequence;
    enum knee_op op;
    int64_t bytes;
    size_t entered;  /* ranks that are in it */
    int32_t *absent; /* members that are not, as far as the dumps tell */
    size_t absent_count;
};

/* A rank that the others wait for, and why it is named. */
enum knee_blame {
    KNEE_BLAME_SILENT, /* has entered nothing that the others wait in */
    KNEE_BLAME_BEHIND, /* its oldest unfinished collective is older than theirs */
    KNEE_BLAMES
};
struct knee_blamed {
    int32_t rank;
    enum knee_blame blame;
    size_t groups; /* in how many groups */
};

/* What follows from a roll call. Free with knee_roll_answer_release(). */
struct knee_roll_answer {
    struct knee_roll_rank *ranks; /* by group, then rank */
    size_t rank_count;
    struct knee_collective_account *collectives; /* most time first */
    size_t collective_count;
    struct knee_stuck *stuck; /* most absent ranks first */
    size_t stuck_count;
    struct knee_blamed *blamed; /* most groups first */
    size_t blamed_count;
    int32_t *missing; /* members of groups whose dump was not given */
    size_t missing_count;
    size_t joined, partial;  /* collectives with all their members timed; with some */
    size_t mismatched;       /* members disagree on what the collective is */
    uint32_t mismatch_group; /* the first of them */
    int64_t mismatch_sequence;
    size_t p2p;                   /* sends and receives: counted only */
    int64_t wait_ns, transfer_ns; /* over all ranks and joined collectives */
    size_t slow_wire;             /* row of collectives that loses most against the machine;
                                     SIZE_MAX: none is far from it, or there is none */
    char machine[64];             /* what expected_s is of; "": nothing is expected */
    const struct knee_alloc *alloc;
};
knee_status knee_rollcall_join(struct knee_rollcall *roll, const struct knee_alloc *alloc,
                               struct knee_roll_answer *out, struct knee_err *err);
void knee_roll_answer_release(struct knee_roll_answer *answer);

#endif

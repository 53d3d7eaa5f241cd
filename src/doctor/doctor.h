/* SPDX-License-Identifier: MIT */
/* Where facts come from: this host, a saved one, the hosts of an MPI job. Everything that opens
 * files, runs programs or talks to other processes for the doctor is in this room. */
#ifndef KNEE_DOCTOR_DOCTOR_H
#define KNEE_DOCTOR_DOCTOR_H

#include "knee_doctor.h"
#include "reach/runtime.h"

/* Takes one file of the host, as it was read. */
struct knee_file_sink {
    void (*take)(void *ctx, const char *path, const char *data, size_t length);
    void *ctx; /* NULL take: the data is not needed */
};

/* This host: its files, variables, and what nvidia-smi and others print within `limit_s` seconds.
 * Nothing is changed and no root is needed. `window_s` > 0: the ports' counters are read twice, so
 * long apart. */
void knee_host_live(struct knee_facts *facts, double limit_s, double window_s,
                    struct knee_file_sink also);

/* Variables of this process only: the part that differs between the ranks of one host. */
void knee_host_variables(struct knee_facts *facts);

/* A folder: one host (it has files, or sys, proc, etc), or one folder per host. Nothing of it is
 * ever run, links that lead outside are not followed. Free each with knee_facts_release() and the
 * array with free(). */
knee_status knee_host_folder(const char *folder, struct knee_facts **hosts, size_t *count,
                             struct knee_err *err);

/* This host's files into a folder that knee_host_folder() reads; `left_out` gets the names of
 * variables that were not written, for they may be secrets. */
knee_status knee_host_save(const char *folder, double limit_s, struct knee_facts *facts,
                           struct knee_text *left_out, struct knee_err *err);

/* The facts of all ranks at rank 0, one set per host: *hosts and *count, as above; the others get
 * none. A variable that differs between ranks of one host becomes a separate fact. */
void knee_host_gather(struct knee_runtime *rt, struct knee_facts *mine, struct knee_facts **hosts,
                      size_t *count);

/* Measures pairs of hosts for a moment, on every rank; at rank 0 slow hosts and links become facts.
 * A run that cannot go on ends all ranks. */
void knee_host_bench(struct knee_runtime *rt, struct knee_facts *hosts, size_t count,
                     struct knee_err *err);

/* ---- Inside the room ---- */

/* Runs commands at the same time; each one's output comes to `take` when it ends in time. Returns
 * those that did not, a bit each. */
struct knee_host_command {
    const char *name; /* as which file its output is kept */
    const char *argv[8];
};
unsigned knee_host_commands(const struct knee_host_command *commands, size_t count, double limit_s,
                            struct knee_file_sink to);

/* All known paths under `root` ("" is this host); `inside`: links must not lead out of it. Returns
 * how many could not be read. */
size_t knee_host_walk(const char *root, bool inside, struct knee_file_sink to);

/* At most `cap` bytes of a regular file; NULL: it cannot be read, or there is more
 * (errno says why). free() it. */
char *knee_host_slurp(const char *path, size_t cap, size_t *length);

#endif

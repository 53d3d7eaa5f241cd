/* SPDX-License-Identifier: MIT */
/* hang: what the program fills in before it asks. */
#ifndef KNEE_ASK_ASK_HANG_H
#define KNEE_ASK_ASK_HANG_H

#include "ask/ask.h"

struct knee_ask_hang_options {
    bool gate;       /* KNEE_GATE when the job hung or failed */
    const char *ras; /* HOST[:PORT]; its answer is attached under this name */
    unsigned char source[KNEE_KEYS_MAX];
    size_t passed_over; /* files that were seen and not named: no text and no dump */
};

/* A file of a job, unpacked. `data` may be changed by who reads it. */
struct knee_ask_job_file {
    char *data;
    size_t length;
    char *made; /* unpacked, or a copy; NULL: `bytes` are used as they are */
    struct knee_ask_bytes bytes;
};
knee_status knee_ask_job_file(struct knee_ask *ask, const char *name, struct knee_ask_job_file *out,
                              struct knee_err *err);
void knee_ask_job_file_done(struct knee_ask *ask, struct knee_ask_job_file *file);

struct knee_job_record;
/* Reads all of them; what cannot be used is counted. KNEE_INPUT: nothing could be read. */
knee_status knee_ask_job_files(struct knee_ask *ask, const char *const *names, size_t count,
                               struct knee_job_record *record, struct knee_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The timeline of one rank, written while it happens, in the form of a Kineto trace: what ran on
 * the device (category kernel), what the host handed over (privateuse1_runtime), steps, waiting for
 * batches, and collectives with their group and sequence. Whole lines are flushed after every step,
 * so that a run that is killed leaves a file that can be read.
 */
#ifndef KNEE_LAB_LAB_RECORD_H
#define KNEE_LAB_LAB_RECORD_H

#include "base/text.h"
#include "knee_collective.h"

#include <pthread.h>
#include <stdio.h>

enum lab_lane { LAB_LANE_HOST = 1, LAB_LANE_DEVICE = 7, LAB_LANE_COMM = 13 };

struct lab_record {
    bool on;
    int rank, workers;
    int64_t base_ns, epoch_ns; /* of the monotonic clock, and what time it was then */
    struct knee_text text;     /* all of it, or what is not written yet */
    size_t flushed;
    FILE *file; /* NULL: memory only */
    bool keep;  /* the text stays in memory, all of it */
    int failed; /* errno of what could not be written; 0: all was */
    pthread_mutex_t lock;
    char members[256];
};

struct lab_record_of {
    const char *file; /* NULL: none */
    bool keep;
    int rank, workers;
    bool synthetic;
};

/* `keep`: the text stays in memory; without a `file` it must. `synthetic` is noted in the file. */
knee_status lab_record_start(struct lab_record *record, const struct lab_record_of *of,
                             struct knee_err *err);
void lab_record_work(struct lab_record *record, const char *name, int64_t start_ns, int64_t end_ns,
                     int64_t correlation);
void lab_record_launch(struct lab_record *record, int64_t start_ns, int64_t end_ns,
                       int64_t correlation);
struct lab_collective {
    const char *kernel;
    enum knee_op op;
    size_t values;
    int64_t sequence;
};
void lab_record_collective(struct lab_record *record, const struct lab_collective *c,
                           int64_t start_ns, int64_t end_ns, int64_t correlation);
void lab_record_load(struct lab_record *record, int64_t start_ns, int64_t end_ns);
/* Ends a step and flushes. */
void lab_record_step(struct lab_record *record, size_t number, int64_t start_ns, int64_t end_ns);
/* Closes the document; kept text stays until lab_record_release(). */
void lab_record_end(struct lab_record *record);
/* Was all of it written, and kept? `file` is what the error names. */
knee_status lab_record_check(const struct lab_record *record, const char *file,
                             struct knee_err *err);
void lab_record_release(struct lab_record *record);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Input: a file of text, read by threads that run ahead of the training. Which bytes make example i
 * of step s depends on the seed alone, so that any number of workers sees the same batches.
 */
#ifndef KNEE_LAB_LAB_LOADER_H
#define KNEE_LAB_LAB_LOADER_H

#include "knee.h"

#include <pthread.h>

/* A batch: `count` examples of `context` bytes and the bytes that follow each of them. */
struct lab_batch {
    unsigned char *tokens, *targets;
    size_t count;
};

struct lab_loader_plan {
    int fd;                /* the text */
    size_t text_bytes;     /* of it; the last tenth is held out */
    size_t context;        /* bytes per example */
    size_t guesses;        /* per example: 1 (the last) or `context` */
    size_t global_batch;   /* examples of a step over all workers */
    size_t first, count;   /* this worker's share of them */
    size_t threads, depth; /* batches kept ready */
    double decode_s;       /* extra work per example, as a timed wait */
    uint64_t seed;
};

enum { LAB_LOADER_THREADS = 64, LAB_LOADER_DEPTH = 128 };

struct lab_loader {
    struct lab_loader_plan plan;
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    pthread_t threads[LAB_LOADER_THREADS];
    size_t thread_count;
    struct lab_batch slots[LAB_LOADER_DEPTH];
    bool ready[LAB_LOADER_DEPTH];
    size_t next_fetch, next_take; /* steps */
    bool stop, failed, running;
};

/* Starts the threads. False: out of memory, or no thread could be started. */
bool lab_loader_start(struct lab_loader *loader, const struct lab_loader_plan *plan);
/* The next batch, valid until the next call but one; NULL when reading failed. */
const struct lab_batch *lab_loader_take(struct lab_loader *loader);
void lab_loader_stop(struct lab_loader *loader);

/* Reads one batch now: `examples` from the part that is kept for judging when `held_out`. */
bool lab_loader_read(const struct lab_loader_plan *plan, uint64_t step, bool held_out,
                     struct lab_batch *batch);
bool lab_batch_init(struct lab_batch *batch, size_t count, size_t context);
void lab_batch_release(struct lab_batch *batch);

/* Text made by knee: the same for the same size; false when it cannot be written. */
bool lab_write_text(int fd, size_t bytes);

/* Opens `file`, or when it is NULL writes text to an unnamed temporary file and opens that. */
knee_status lab_open_text(const char *file, int *fd, size_t *bytes, struct knee_err *err);

#endif

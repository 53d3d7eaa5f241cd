/* SPDX-License-Identifier: MIT */
/*
 * The machinery of one rank: a device that works off operations in order, and a communication
 * thread that sums buckets. Both are threads with a queue; both write the timeline.
 */
#ifndef KNEE_LAB_LAB_WORKER_H
#define KNEE_LAB_LAB_WORKER_H

#include "lab/lab.h"
#include "lab/lab_optimizer.h"
#include "lab/lab_record.h"

struct lab_worker;

/* Something the device does. Silent ones are waits: they leave no span. */
struct lab_op {
    void (*run)(struct lab_worker *worker, size_t argument);
    size_t argument;
    const char *name;   /* NULL: silent */
    bool posts;         /* silent, but what it posts will leave a span */
    bool fixed;         /* does not shrink with the batch */
    double synthetic_s; /* how long instead, when compute is synthetic; 0: runs as it is */
    int64_t correlation;
};

/* A bucket to be summed. */
struct lab_post {
    size_t bucket;
    float *values; /* of the whole model; the bucket's range is summed */
    int64_t correlation;
};

enum { LAB_QUEUE = 4096 };

struct lab_worker {
    const struct lab_setup *setup;
    struct lab_group group;
    struct lab_net net;
    struct lab_layout layout;
    struct lab_optimizer optimizer;
    struct lab_loader loader;
    struct lab_record record;
    struct lab_batch const *batch;
    /* Values that move: params and grads are the net's, or own ones when compute is synthetic. */
    float *params, *grads;
    /* Rare meetings: where all agreed to be, where this one was when it sent, how far it came, and
     * the outer momentum. */
    float *common, *sent, *delta, *outer;
    size_t posted;                   /* by the host, so far */
    size_t sent_at[LAB_BUCKETS_MAX]; /* posts up to and with the bucket's last */
    struct knee_arena memory;        /* of what moves and of the meter */
    const char *backward_names[LAB_NODES_MAX];
    double step_loss, share; /* share of the batch that is this worker's */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t device, communicator;
    bool threads_run, stop;
    bool lost; /* an exchange failed: the run cannot go on */
    struct lab_op ops[LAB_QUEUE];
    size_t op_put, op_done;
    struct lab_post posts[LAB_QUEUE];
    size_t post_put, post_done;
    int64_t correlation, running;         /* last handed over; on the device now */
    int64_t device_debt_ns, host_debt_ns; /* overslept; the next wait is shorter by it */
    int64_t compute_ns, comm_ns, exposed_ns;
    int64_t fixed_ns, step_compute_ns; /* optimizer; compute_ns when the step began */
    int64_t ready_ns[LAB_BUCKETS_MAX]; /* compute of a step until the bucket was ready, summed */
};

bool lab_worker_start(struct lab_worker *worker);
void lab_worker_stop(struct lab_worker *worker);

/* The host's side: hands an operation over, which takes it host_s; waits until all is done. */
void lab_launch(struct lab_worker *worker, struct lab_op op);
/* False once an exchange has failed. */
bool lab_drain(struct lab_worker *worker);

/* From the device: a bucket may go; and waiting until the first `count` posts have been summed. */
void lab_post(struct lab_worker *worker, struct lab_post post);
void lab_await(struct lab_worker *worker, size_t count);

/* Sleeps `seconds` less what was overslept before. */
void lab_timed_wait(double seconds, int64_t *debt_ns);

#endif

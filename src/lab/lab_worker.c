/* SPDX-License-Identifier: MIT */
/* Two queues and two threads. */
#include "lab/lab_worker.h"

#include "reach/naps.h"

#include <string.h>

void lab_timed_wait(double seconds, int64_t *debt_ns)
{
    int64_t start = lab_now_ns(), length = (int64_t)(1e9 * seconds) - *debt_ns;
    if (length > 0)
        lab_sleep_until(start + length);
    *debt_ns = lab_now_ns() - start - length;
    if (*debt_ns > 1000000) /* a machine that was away for longer is not made up for */
        *debt_ns = 1000000;
}

/* ---- Device ---- */

static void run_op(struct lab_worker *w, const struct lab_op *op)
{
    int64_t start = lab_now_ns();
    w->running = op->correlation;
    if (op->synthetic_s > 0)
        lab_timed_wait(op->synthetic_s, &w->device_debt_ns);
    else if (op->run)
        op->run(w, op->argument);
    if (!op->name)
        return;
    int64_t end = lab_now_ns();
    w->compute_ns += end - start;
    w->fixed_ns += op->fixed ? end - start : 0;
    lab_record_work(&w->record, op->name, start, end, op->correlation);
}

static void *device_thread(void *ctx)
{
    struct lab_worker *w = ctx;
    knee_naps_are_exact();
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->op_done == w->op_put && !w->stop)
            pthread_cond_wait(&w->changed, &w->lock);
        if (w->op_done == w->op_put)
            break;
        struct lab_op op = w->ops[w->op_done % LAB_QUEUE];
        pthread_mutex_unlock(&w->lock);
        run_op(w, &op);
        pthread_mutex_lock(&w->lock);
        w->op_done++;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- Communication ---- */

static void run_post(struct lab_worker *w, const struct lab_post *post, size_t sequence)
{
    const struct lab_wire *wire = lab_wire_at(w->setup->wire);
    struct lab_bucket *bucket = &w->layout.buckets[post->bucket];
    int64_t start = lab_now_ns();
    wire->exchange(wire, &w->group, bucket, post->values + bucket->at);
    int64_t end = lab_now_ns();
    w->comm_ns += end - start;
    lab_record_collective(
        &w->record,
        &(struct lab_collective){wire->kernel, wire->op, bucket->count, (int64_t)sequence}, start,
        end, post->correlation);
}

static void *communication_thread(void *ctx)
{
    struct lab_worker *w = ctx;
    knee_naps_are_exact();
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->post_done == w->post_put && !w->stop)
            pthread_cond_wait(&w->changed, &w->lock);
        if (w->post_done == w->post_put)
            break;
        struct lab_post post = w->posts[w->post_done % LAB_QUEUE];
        size_t sequence = w->post_done;
        pthread_mutex_unlock(&w->lock);
        if (w->group.size > 1 && !w->group.failed)
            run_post(w, &post, sequence);
        pthread_mutex_lock(&w->lock);
        w->lost = w->group.failed;
        w->post_done++;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void lab_post(struct lab_worker *w, struct lab_post post)
{
    pthread_mutex_lock(&w->lock);
    while (w->post_put - w->post_done == LAB_QUEUE)
        pthread_cond_wait(&w->changed, &w->lock);
    w->posts[w->post_put++ % LAB_QUEUE] = post;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void lab_await(struct lab_worker *w, size_t count)
{
    int64_t start = lab_now_ns();
    pthread_mutex_lock(&w->lock);
    while (w->post_done < count)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    w->exposed_ns += lab_now_ns() - start;
}

/* ---- Host ---- */

void lab_launch(struct lab_worker *w, struct lab_op op)
{
    int64_t start = lab_now_ns();
    op.correlation = ++w->correlation;
    if (w->setup->host_s > 0 && op.name)
        lab_timed_wait(w->setup->host_s, &w->host_debt_ns);
    if (op.name || op.posts)
        lab_record_launch(&w->record, start, lab_now_ns(), op.correlation);
    pthread_mutex_lock(&w->lock);
    while (w->op_put - w->op_done == LAB_QUEUE)
        pthread_cond_wait(&w->changed, &w->lock);
    w->ops[w->op_put++ % LAB_QUEUE] = op;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

bool lab_drain(struct lab_worker *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->op_done < w->op_put)
        pthread_cond_wait(&w->changed, &w->lock);
    bool good = !w->lost;
    pthread_mutex_unlock(&w->lock);
    return good;
}

bool lab_worker_start(struct lab_worker *w)
{
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (pthread_create(&w->device, NULL, device_thread, w) != 0) {
        pthread_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->changed);
        return false;
    }
    w->threads_run = true;
    if (pthread_create(&w->communicator, NULL, communication_thread, w) == 0)
        return true;
    w->communicator = w->device; /* joined once */
    lab_worker_stop(w);
    return false;
}

void lab_worker_stop(struct lab_worker *w)
{
    if (!w->threads_run)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->device, NULL);
    if (!pthread_equal(w->communicator, w->device))
        pthread_join(w->communicator, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    w->threads_run = false;
}

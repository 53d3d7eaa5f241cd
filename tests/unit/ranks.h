/* SPDX-License-Identifier: MIT */
/*
 * Ranks as threads of one process: the runtime's table over mailboxes, for tests without MPI. Each
 * has a clock of its own that only messages move, whatever the threads' real order: a message
 * leaves when its sender's port is free and takes alpha + S beta, and what comes in at one port
 * comes in turn.
 */
#ifndef KNEE_TESTS_RANKS_H
#define KNEE_TESTS_RANKS_H

#include "reach/runtime.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 8 };

struct knee_request {
    void *data;
    size_t bytes, count;
    int from, turn;
    bool is_receive;
};

struct letter {
    void *data;
    size_t bytes;
    double arrives_s;
    struct letter *next;
};

struct office {
    pthread_mutex_t lock;
    int size;
    double alpha_s, s_per_byte;
    struct letter *box[RANKS_MAX][RANKS_MAX]; /* to, from */
    double sums[2][64];
    int arrived[2], taken[2];
};

struct seat {
    struct knee_runtime runtime;
    struct office *office;
    int turn;
    double now_s, out_free_s, in_free_s; /* by the messages */
    int hosts[RANKS_MAX];
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static struct seat *seat_of(struct knee_runtime *rt)
{
    return rt->state;
}

static bool ranks_send(struct knee_runtime *rt, const void *data, size_t bytes, int to, int tag,
                       struct knee_request **out)
{
    struct office *o = seat_of(rt)->office;
    struct letter *letter = malloc(sizeof *letter), **end;
    (void)tag;
    struct seat *seat = seat_of(rt);
    seat->out_free_s = larger(seat->now_s, seat->out_free_s) + (double)bytes * o->s_per_byte;
    *letter = (struct letter){malloc(bytes + 1), bytes, seat->out_free_s + o->alpha_s, NULL};
    memcpy(letter->data, data, bytes);
    pthread_mutex_lock(&o->lock);
    for (end = &o->box[to][rt->rank]; *end; end = &(*end)->next) {
    }
    *end = letter;
    pthread_mutex_unlock(&o->lock);
    *out = NULL;
    return true;
}

static bool ranks_receive(struct knee_runtime *rt, void *data, size_t bytes, int from, int tag,
                          struct knee_request **out)
{
    (void)rt, (void)tag;
    *out = malloc(sizeof **out);
    **out = (struct knee_request){.data = data, .bytes = bytes, .from = from, .is_receive = true};
    return true;
}

static bool ranks_reduce_start(struct knee_runtime *rt, void *buffer, size_t count,
                               enum knee_runtime_type type, enum knee_runtime_op op,
                               struct knee_request **out)
{
    struct seat *seat = seat_of(rt);
    struct office *o = seat->office;
    int turn = seat->turn++ % 2;
    const double *values = buffer;
    if (type != KNEE_RUNTIME_F64 || op != KNEE_RUNTIME_SUM || count > 64)
        return false;
    pthread_mutex_lock(&o->lock);
    if (o->arrived[turn] == 0)
        memset(o->sums[turn], 0, sizeof o->sums[turn]);
    for (size_t i = 0; i < count; i++)
        o->sums[turn][i] += values[i];
    o->arrived[turn]++;
    pthread_mutex_unlock(&o->lock);
    *out = malloc(sizeof **out);
    **out = (struct knee_request){.data = buffer, .count = count, .turn = turn};
    return true;
}

static bool ranks_test(struct knee_runtime *rt, struct knee_request **request, bool *done)
{
    struct office *o = seat_of(rt)->office;
    struct knee_request *r = *request;
    *done = !r;
    if (!r)
        return true;
    pthread_mutex_lock(&o->lock);
    if (r->is_receive && o->box[rt->rank][r->from]) {
        struct letter *letter = o->box[rt->rank][r->from];
        o->box[rt->rank][r->from] = letter->next;
        *done = true;
        if (letter->bytes != r->bytes)
            abort(); /* a receive names the exact size */
        memcpy(r->data, letter->data, r->bytes);
        struct seat *seat = seat_of(rt);
        seat->in_free_s =
            larger(letter->arrives_s, seat->in_free_s + (double)r->bytes * o->s_per_byte);
        seat->now_s = larger(seat->now_s, seat->in_free_s);
        free(letter->data);
        free(letter);
    } else if (!r->is_receive && o->arrived[r->turn] == o->size) {
        memcpy(r->data, o->sums[r->turn], r->count * sizeof(double));
        *done = true;
        if (++o->taken[r->turn] == o->size)
            o->arrived[r->turn] = o->taken[r->turn] = 0;
    }
    pthread_mutex_unlock(&o->lock);
    if (*done) {
        free(r);
        *request = NULL;
    }
    return true;
}

static bool ranks_wait(struct knee_runtime *rt, struct knee_request **request)
{
    for (bool done = false; !done; sched_yield())
        if (!ranks_test(rt, request, &done))
            return false;
    return true;
}

/* Each rank's size, then its bytes. */
static bool ranks_gather(struct knee_runtime *rt, const void *mine, size_t size, void **all,
                         size_t *sizes)
{
    struct knee_request *request = NULL;
    if (rt->rank > 0)
        return ranks_send(rt, &size, sizeof size, 0, 0, &request) &&
               ranks_send(rt, mine, size, 0, 0, &request);
    char *bytes = malloc(size + 1);
    size_t total = sizes[0] = size;
    if (size)
        memcpy(bytes, mine, size);
    for (int r = 1; r < rt->size; r++) {
        ranks_receive(rt, &sizes[r], sizeof sizes[r], r, 0, &request);
        ranks_wait(rt, &request);
        bytes = realloc(bytes, total + sizes[r] + 1);
        ranks_receive(rt, bytes + total, sizes[r], r, 0, &request);
        ranks_wait(rt, &request);
        total += sizes[r];
    }
    *all = bytes;
    return true;
}

static void ranks_abort(struct knee_runtime *rt, const char *why)
{
    fprintf(stderr, "rank %d: %s\n", rt->rank, why);
    abort();
}

struct ranks_job {
    struct seat seat;
    void (*work)(struct knee_runtime *rt, void *ctx);
    void *ctx;
};

static void *ranks_thread(void *ctx)
{
    struct ranks_job *job = ctx;
    job->work(&job->seat.runtime, job->ctx);
    return NULL;
}

/* Runs `work` on `size` ranks at once; seconds by the messages' clock until the last is done. */
static inline double on_wires(int size, double alpha_s, double s_per_byte,
                              void (*work)(struct knee_runtime *rt, void *ctx), void *ctx)
{
    static struct office office;
    static struct ranks_job jobs[RANKS_MAX];
    pthread_t threads[RANKS_MAX];
    memset(&office, 0, sizeof office);
    office.size = size;
    office.alpha_s = alpha_s;
    office.s_per_byte = s_per_byte;
    double last_s = 0;
    pthread_mutex_init(&office.lock, NULL);
    for (int r = 0; r < size; r++) {
        jobs[r] = (struct ranks_job){.seat = {.runtime = {.name = "threads",
                                                          .rank = r,
                                                          .size = size,
                                                          .host_count = 1,
                                                          .send_start = ranks_send,
                                                          .receive_start = ranks_receive,
                                                          .all_reduce_start = ranks_reduce_start,
                                                          .test = ranks_test,
                                                          .wait = ranks_wait,
                                                          .gather_bytes = ranks_gather,
                                                          .abort = ranks_abort},
                                              .office = &office},
                                     .work = work,
                                     .ctx = ctx};
        jobs[r].seat.runtime.state = &jobs[r].seat;
        jobs[r].seat.runtime.host_of = jobs[r].seat.hosts;
        pthread_create(&threads[r], NULL, ranks_thread, &jobs[r]);
    }
    for (int r = 0; r < size; r++) {
        pthread_join(threads[r], NULL);
        last_s = larger(last_s, jobs[r].seat.now_s);
    }
    pthread_mutex_destroy(&office.lock);
    return last_s;
}

static inline void on_ranks(int size, void (*work)(struct knee_runtime *rt, void *ctx), void *ctx)
{
    on_wires(size, 0, 0, work, ctx);
}

#endif

/* SPDX-License-Identifier: MIT */
/* Threads that take the next thing to do until there is none. */
#include "cli/threads.h"

#include <pthread.h>
#include <unistd.h>

enum { MOST_THREADS = 256 };

struct queue {
    size_t next, count;
    void (*one)(void *ctx, size_t i);
    void *ctx;
    pthread_mutex_t lock;
};

static void *take_turns(void *ctx)
{
    struct queue *queue = ctx;
    for (;;) {
        pthread_mutex_lock(&queue->lock);
        size_t i = queue->next++;
        pthread_mutex_unlock(&queue->lock);
        if (i >= queue->count)
            return NULL;
        queue->one(queue->ctx, i);
    }
}

/* Ranks on one host share its cores. */
static size_t cores_for(const struct knee_runtime *rt)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), ranks = 0;
    for (int r = 0; rt && r < rt->size; r++)
        ranks += rt->host_of[r] == rt->host;
    cores /= ranks ? ranks : 1;
    return cores > 1 ? (size_t)cores : 1;
}

void cli_each(const struct knee_runtime *rt, size_t count, void (*one)(void *ctx, size_t i),
              void *ctx)
{
    pthread_t threads[MOST_THREADS];
    struct queue queue = {.count = count, .one = one, .ctx = ctx};
    size_t wanted = cores_for(rt), started = 0;
    wanted = wanted < MOST_THREADS ? wanted : MOST_THREADS;
    wanted = wanted < count ? wanted : count;
    pthread_mutex_init(&queue.lock, NULL);
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, take_turns, &queue) == 0)
        started++;
    take_turns(&queue); /* this thread works too */
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&queue.lock);
}

/* SPDX-License-Identifier: MIT */
/*
 * Threads take tickets: ticket s is the batch of step s. A thread reads its examples with pread(),
 * and puts the batch where the training will look for it; when all places are full it waits.
 */
#include "lab/lab_loader.h"

#include "lab/lab_group.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* splitmix64: neighbouring seeds give unrelated numbers. */
static uint64_t scatter(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

bool lab_batch_init(struct lab_batch *batch, size_t count, size_t context)
{
    batch->tokens = calloc(count + 1, context + 1);
    batch->targets = calloc(count + 1, context + 1);
    batch->count = count;
    return batch->tokens && batch->targets;
}

void lab_batch_release(struct lab_batch *batch)
{
    free(batch->tokens);
    free(batch->targets);
    memset(batch, 0, sizeof *batch);
}

static bool read_at(int fd, void *to, size_t bytes, size_t at)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, (char *)to + done, bytes - done, (off_t)(at + done));
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

bool lab_loader_read(const struct lab_loader_plan *plan, uint64_t step, bool held_out,
                     struct lab_batch *batch)
{
    unsigned char text[4097];
    size_t c = plan->context, edge = plan->text_bytes / 10 * 9;
    size_t from = held_out ? edge : 0, to = held_out ? plan->text_bytes : edge;
    if (c + 1 > sizeof text || to - from < c + 2)
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        uint64_t number =
            scatter(plan->seed + held_out) ^ (step * plan->global_batch + plan->first + i + 1);
        size_t at = from + (size_t)(scatter(number) % (to - from - c - 1));
        if (!read_at(plan->fd, text, c + 1, at))
            return false;
        memcpy(batch->tokens + i * c, text, c);
        memcpy(batch->targets + i * plan->guesses, text + c + 1 - plan->guesses, plan->guesses);
    }
    if (plan->decode_s > 0 && !held_out)
        lab_sleep_until(lab_now_ns() + (int64_t)(1e9 * plan->decode_s * (double)batch->count));
    return true;
}

/* ---- Running ahead ---- */

static void *fetch(void *ctx)
{
    struct lab_loader *l = ctx;
    pthread_mutex_lock(&l->lock);
    while (!l->stop && !l->failed) {
        size_t step = l->next_fetch, slot = step % l->plan.depth;
        /* the last two that were taken may still be read */
        if (step + 2 >= l->next_take + l->plan.depth) {
            pthread_cond_wait(&l->emptied, &l->lock);
            continue;
        }
        l->next_fetch++;
        pthread_mutex_unlock(&l->lock);
        bool good = lab_loader_read(&l->plan, step, false, &l->slots[slot]);
        pthread_mutex_lock(&l->lock);
        l->ready[slot] = good;
        l->failed = l->failed || !good;
        pthread_cond_broadcast(&l->filled);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

bool lab_loader_start(struct lab_loader *l, const struct lab_loader_plan *plan)
{
    memset(l, 0, sizeof *l);
    l->plan = *plan;
    bool good = true;
    if (l->plan.threads > LAB_LOADER_THREADS)
        l->plan.threads = LAB_LOADER_THREADS;
    if (l->plan.depth < l->plan.threads + 3)
        l->plan.depth = l->plan.threads + 3;
    if (l->plan.depth > LAB_LOADER_DEPTH)
        l->plan.depth = LAB_LOADER_DEPTH;
    for (size_t i = 0; i < l->plan.depth; i++)
        good = lab_batch_init(&l->slots[i], plan->count, plan->context) && good;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->filled, NULL);
    pthread_cond_init(&l->emptied, NULL);
    l->running = true;
    while (good && l->thread_count < l->plan.threads &&
           pthread_create(&l->threads[l->thread_count], NULL, fetch, l) == 0)
        l->thread_count++;
    if (good && l->thread_count)
        return true;
    lab_loader_stop(l);
    return false;
}

const struct lab_batch *lab_loader_take(struct lab_loader *l)
{
    pthread_mutex_lock(&l->lock);
    size_t slot = l->next_take % l->plan.depth;
    while (!l->ready[slot] && !l->failed)
        pthread_cond_wait(&l->filled, &l->lock);
    bool good = l->ready[slot];
    l->ready[slot] = false;
    l->next_take++;
    pthread_cond_broadcast(&l->emptied);
    pthread_mutex_unlock(&l->lock);
    return good ? &l->slots[slot] : NULL;
}

void lab_loader_stop(struct lab_loader *l)
{
    if (!l->running)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->emptied);
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < l->thread_count; i++)
        pthread_join(l->threads[i], NULL);
    for (size_t i = 0; i < LAB_LOADER_DEPTH; i++)
        lab_batch_release(&l->slots[i]);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->filled);
    pthread_cond_destroy(&l->emptied);
    memset(l, 0, sizeof *l);
}

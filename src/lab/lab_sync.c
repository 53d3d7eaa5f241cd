/* SPDX-License-Identifier: MIT */
/*
 * Meeting every step sums gradients. Meeting rarely sums how far each worker came since the last
 * meeting (the outer gradient): local SGD goes to the mean of the workers (Stich 2019), DiLoCo
 * takes a Nesterov step along it (Douillard et al. 2023), its streaming form sends one bucket at a
 * time and applies it some steps later, while the training goes on (Douillard et al. 2025); what a
 * worker learned in between stays.
 */
#include "lab/lab_sync.h"

#include "base/keys.h"

#include <stdlib.h>
#include <string.h>

static const struct lab_strategy table[] = {
    [LAB_EVERY_STEP] = {"every-step", "sum of gradients, every step", true, false, 0, 0},
    [LAB_LOCAL_SGD] = {"local-sgd", "mean of parameters, every --local-steps", false, false, 1, 0},
    [LAB_DILOCO] = {"diloco", "outer Nesterov step, every --local-steps", false, false, 0.7, 0.9},
    [LAB_STREAMING] = {"streaming-diloco", "the same, a bucket at a time, overlapped", false, true,
                       0.7, 0.9},
};

KNEE_NAMES(lab_sync_names, "strategy", table);

const struct lab_strategy *lab_strategy_of(const struct lab_setup *setup)
{
    return &table[setup->sync];
}

double lab_sync_per_step(const struct lab_setup *setup)
{
    return lab_strategy_of(setup)->every_step ? 1 : 1 / (double)setup->local_steps;
}

bool lab_sync_init(struct lab_worker *w)
{
    size_t size = w->layout.param_count * sizeof(float);
    if (lab_strategy_of(w->setup)->every_step)
        return true;
    w->common = knee_arena_take(&w->memory, size, 1);
    w->sent = knee_arena_take(&w->memory, size, 1);
    w->delta = knee_arena_take(&w->memory, size, 1);
    w->outer = knee_arena_take(&w->memory, size, 1);
    if (w->memory.failed)
        return false;
    memcpy(w->common, w->params, size);
    return true;
}

/* ---- What the device does ---- */

static void update(struct lab_worker *w, size_t argument)
{
    (void)argument;
    if (!w->setup->synthetic)
        lab_optimizer_step(&w->optimizer, w->layout.tensors, w->layout.tensor_count, w->params,
                           w->grads);
}

static void await_all(struct lab_worker *w, size_t posts)
{
    lab_await(w, posts);
}

/* How far this worker came, its share of the mean, on its way. */
static void post_delta(struct lab_worker *w, size_t b)
{
    const struct lab_bucket *bucket = &w->layout.buckets[b];
    for (size_t i = bucket->at; i < bucket->at + bucket->count; i++)
        w->delta[i] = (w->common[i] - w->params[i]) / (float)w->group.size;
    memcpy(w->sent + bucket->at, w->params + bucket->at, bucket->count * sizeof *w->params);
    lab_post(w, (struct lab_post){b, w->delta, w->running});
}

/* The mean has come: the outer step, and what was learned since it was sent stays. */
static void apply_delta(struct lab_worker *w, size_t b)
{
    const struct lab_strategy *strategy = lab_strategy_of(w->setup);
    const struct lab_bucket *bucket = &w->layout.buckets[b];
    float momentum = (float)strategy->momentum, rate = (float)strategy->rate;
    for (size_t i = bucket->at; i < bucket->at + bucket->count; i++) {
        w->outer[i] = momentum * w->outer[i] + w->delta[i];
        w->common[i] -= rate * (w->delta[i] + momentum * w->outer[i]);
        w->params[i] = w->common[i] + (w->params[i] - w->sent[i]);
    }
}

/* ---- What the host hands over ---- */

static void launch(struct lab_worker *w, void (*run)(struct lab_worker *, size_t), size_t argument,
                   const char *span)
{
    lab_launch(w, (struct lab_op){.run = run, .argument = argument, .name = span, .fixed = true});
}

static void launch_post(struct lab_worker *w, size_t b)
{
    lab_launch(w, (struct lab_op){.run = post_delta, .argument = b, .posts = true});
    w->posted++;
}

static void meet_all(struct lab_worker *w)
{
    for (size_t b = 0; b < w->layout.bucket_count; b++)
        launch_post(w, b);
    launch(w, await_all, w->posted, NULL);
    for (size_t b = 0; b < w->layout.bucket_count; b++)
        launch(w, apply_delta, b, w->setup->synthetic ? NULL : "outer_step");
}

/* Bucket b of n is sent at its own point of the round, and applied half a turn later. */
static void meet_in_turn(struct lab_worker *w, size_t step)
{
    size_t n = w->layout.bucket_count, h = w->setup->local_steps;
    size_t delay = h / (2 * n) > 0 ? h / (2 * n) : 1;
    for (size_t b = 0; b < n; b++) {
        size_t turn = b * h / n;
        if (step >= delay && (step - delay) % h == turn) {
            launch(w, await_all, w->sent_at[b], NULL);
            launch(w, apply_delta, b, w->setup->synthetic ? NULL : "outer_step");
        }
        if (step % h == turn) {
            launch_post(w, b);
            w->sent_at[b] = w->posted;
        }
    }
}

void lab_sync_step(struct lab_worker *w, size_t step)
{
    const struct lab_strategy *strategy = lab_strategy_of(w->setup);
    if (strategy->every_step)
        launch(w, await_all, w->posted, NULL);
    launch(w, update, 0, w->setup->synthetic ? NULL : "optimizer");
    if (strategy->streams)
        meet_in_turn(w, step);
    else if (!strategy->every_step && (step + 1) % w->setup->local_steps == 0)
        meet_all(w);
}

bool lab_sync_end(struct lab_worker *w)
{
    size_t count = w->layout.param_count;
    if (lab_strategy_of(w->setup)->every_step || w->setup->synthetic || w->group.size == 1)
        return true;
    unsigned char *room = malloc(lab_ring_room(&lab_f32, count, w->group.size));
    for (size_t i = 0; i < count; i++)
        w->params[i] /= (float)w->group.size;
    bool good = room && lab_ring_sum(&w->group, &lab_f32,
                                     &(struct lab_vector){w->params, count, NULL, NULL, room});
    free(room);
    return good;
}

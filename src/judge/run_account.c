/* SPDX-License-Identifier: MIT */
/*
 * Where the hours of one run went that was started several times: the logs' own accounts one after
 * the other, the time between them, and the steps that a later log did again because the earlier
 * one had not saved them.
 */
#include "knee_scale.h"

#include <math.h>

#define LOGS 256

/* Does `next` go on where `last` had come to, or to its checkpoint? Else it is another job. */
static bool goes_on(const struct knee_train_account *last, const struct knee_train_account *next)
{
    return next->first_step > last->first_step && next->first_step <= 1.05 * last->last_step + 1;
}

/* Steps of `last` that `next` does again. */
static double again(const struct knee_train_account *last, const struct knee_train_account *next)
{
    return fmax(0, last->last_step - next->first_step + 1);
}

static void add_log(struct knee_run_account *out, const struct knee_train_account *log)
{
    struct knee_train_account *all = &out->all;
    for (int p = 0; p < KNEE_TIME_PARTS; p++)
        all->part_s[p] += log->part_s[p];
    all->lost_steps += log->lost_steps;
    all->starts += log->starts;
    all->saves += log->saves;
    all->end_s = fmax(all->end_s, log->end_s);
    all->last_step = log->last_step;
    all->saved_step = log->saved_step;
    all->unsaved_steps = log->unsaved_steps;
    all->step_s = log->step_s;
    all->ended = log->ended;
    if (!(log->gap_s <= all->gap_s) && !isnan(log->gap_s)) {
        all->gap_s = log->gap_s;
        all->gap_after = log->gap_after;
    }
    bool stopped = log->ended == KNEE_ENDED_HANG || log->ended == KNEE_ENDED_CANCELLED;
    out->stops += stopped + (log->lost_steps > 0 ? log->starts - 1 : 0);
    out->logs++;
}

/* The time between two logs, and what the later one repeats. */
static void add_between(struct knee_run_account *out, const struct knee_train_account *last,
                        const struct knee_train_account *next)
{
    struct knee_train_account *all = &out->all;
    double gap = next->begin_s - last->end_s, steps = again(last, next);
    out->jobs += !goes_on(last, next);
    if (!goes_on(last, next))
        return;
    double seconds = fmin(steps * last->step_s, all->part_s[KNEE_TIME_STEPS]);
    all->part_s[KNEE_TIME_GAP] += fmax(0, gap);
    if (gap > 0 && !(gap <= all->gap_s)) {
        all->gap_s = gap;
        all->gap_after = last->last_step;
    }
    if (!(steps > 0))
        return;
    all->lost_steps += steps;
    all->part_s[KNEE_TIME_LOST] += seconds;
    all->part_s[KNEE_TIME_STEPS] -= seconds;
    bool counted = last->ended == KNEE_ENDED_HANG || last->ended == KNEE_ENDED_CANCELLED;
    out->stops += !counted && last->ended != KNEE_ENDED_LIMIT;
}

static void finish(struct knee_run_account *out)
{
    struct knee_train_account *all = &out->all;
    double start = all->part_s[KNEE_TIME_STARTUP] + all->part_s[KNEE_TIME_COMPILE];
    all->wall_s = 0;
    out->worst = KNEE_TIME_LOST;
    for (int p = 0; p < KNEE_TIME_PARTS; p++) {
        all->wall_s += all->part_s[p];
        if (p != KNEE_TIME_STEPS && all->part_s[p] > all->part_s[out->worst])
            out->worst = (enum knee_time_part)p;
    }
    out->stop_every_s = out->stops ? all->wall_s / (double)out->stops : NAN;
    out->restart_s = all->starts ? start / (double)all->starts : NAN;
    out->checkpoint_s = all->saves ? all->part_s[KNEE_TIME_CHECKPOINT] / (double)all->saves : NAN;
    out->checkpoint_every_s =
        all->saves
            ? (all->part_s[KNEE_TIME_STEPS] + all->part_s[KNEE_TIME_LOST]) / (double)all->saves
            : NAN;
}

void knee_run_account(const struct knee_train_log *const *logs, size_t count,
                      struct knee_run_account *out)
{
    const struct knee_train_account *sorted[LOGS];
    size_t used = 0;
    *out = (struct knee_run_account){
        .all = {.wall_s = NAN, .gap_s = NAN, .gap_after = NAN, .saved_step = NAN}};
    for (size_t i = 0; i < count && used < LOGS; i++) {
        const struct knee_train_account *log = &logs[i]->account;
        size_t at = used;
        if (isnan(log->wall_s))
            continue;
        for (; at > 0 && log->begin_s < sorted[at - 1]->begin_s; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = log;
        used++;
    }
    if (used == 0)
        return;
    out->jobs = 1;
    out->all.begin_s = sorted[0]->begin_s;
    out->all.first_step = sorted[0]->first_step;
    out->all.end_s = sorted[0]->end_s;
    for (size_t i = 0; i < used; i++) {
        if (i > 0)
            add_between(out, sorted[i - 1], sorted[i]);
        add_log(out, sorted[i]);
    }
    finish(out);
}

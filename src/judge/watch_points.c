/* SPDX-License-Identifier: MIT */
/*
 * The history: steps that ranks wrote lines of, in order, so many to a point that there are at most
 * KNEE_WATCH_POINTS. Calls fall into the point that covers their step. Lines may be missing in the
 * middle (a long ring is read at both ends): numbers count, not places.
 */
#include "base/order.h"
#include "base/text.h"
#include "judge/watch_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums that become a point. */
struct heap {
    double step_s, wait_ns;
    size_t lines, sampled, waiting;
};

/* The numbers of all steps that have lines, each once. NULL: no memory. */
static int64_t *numbers_of(const struct knee_live_rank *ranks, const struct knee_watch *w,
                           size_t *count)
{
    size_t total = 0, n = 0, kept = 0;
    for (size_t r = 0; r < w->rank_count; r++)
        total += ranks[r].step_count;
    int64_t *numbers = knee_resize(w->alloc, NULL, (total + 1) * sizeof *numbers);
    if (!numbers)
        return NULL;
    for (size_t r = 0; r < w->rank_count; r++)
        for (size_t i = 0; i < ranks[r].step_count; i++)
            if (ranks[r].steps[i].step >= 0)
                numbers[n++] = ranks[r].steps[i].step;
    qsort(numbers, n, sizeof *numbers, knee_ascending_whole);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || numbers[i] != numbers[i - 1])
            numbers[kept++] = numbers[i];
    *count = kept;
    return numbers;
}

/* Points end at every so manieth number, counted from the newest. */
static bool make_points(const int64_t *numbers, size_t count, struct knee_watch *w)
{
    size_t width = (count + KNEE_WATCH_POINTS - 1) / KNEE_WATCH_POINTS;
    size_t points = width ? (count + width - 1) / width : 0;
    w->points = knee_resize(w->alloc, NULL, (points + 1) * sizeof *w->points);
    w->late = knee_resize(w->alloc, NULL, (points * w->rank_count + 1) * sizeof *w->late);
    if (!w->points || !w->late)
        return false;
    w->point_count = points;
    for (size_t p = 0; p < points; p++)
        w->points[p] =
            (struct knee_watch_point){.step = numbers[count - 1 - (points - 1 - p) * width],
                                      .t_ns = INT64_MIN,
                                      .step_s = NAN,
                                      .wait_s = NAN,
                                      .late_s = NAN,
                                      .latest = SIZE_MAX};
    for (size_t i = 0; i < points * w->rank_count; i++)
        w->late[i] = NAN;
    return true;
}

/* The point that covers a step; point_count: it is newer than all. */
static size_t point_of(const struct knee_watch *w, int64_t step)
{
    size_t from = 0, to = w->point_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (w->points[middle].step < step)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static void add_sampled(const struct knee_live_step *line, struct knee_step *sum)
{
    if (line->sampled != 1 || !(line->window_s > 0))
        return;
    sum->wall_s += line->window_s;
    sum->comm_s += isnan(line->comm_s) ? 0 : line->comm_s;
    for (int label = 0; label < KNEE_LABELS; label++)
        sum->label_s[label] += isnan(line->label_s[label]) ? 0 : line->label_s[label];
}

static void add_lines(const struct knee_live_rank *rank, struct heap *heaps, struct knee_watch *w)
{
    for (size_t i = 0; i < rank->step_count; i++) {
        const struct knee_live_step *line = &rank->steps[i];
        size_t p = line->step >= 0 ? point_of(w, line->step) : w->point_count;
        if (p == w->point_count || !(line->step_s > 0))
            continue;
        heaps[p].step_s += line->step_s;
        heaps[p].lines++;
        if (line->t_ns > w->points[p].t_ns)
            w->points[p].t_ns = line->t_ns;
        add_sampled(line, &w->points[p].sampled);
    }
}

/* One rank's calls: sums of waiting and lateness per point, over the steps that it has calls of. */
static void add_calls(const struct knee_live_rank *rank, struct heap *heaps, double *late,
                      struct knee_watch *w)
{
    double wait_ns = 0, late_ns = 0;
    int64_t step = -1, steps = 0;
    size_t point = w->point_count;
    for (size_t i = 0;; i++) {
        const struct knee_live_call *call = i < rank->call_count ? &rank->calls[i] : NULL;
        if (call && (call->step < 0 || call->wait_ns < 0))
            continue;
        size_t p = call ? point_of(w, call->step) : w->point_count;
        if (p != point && point < w->point_count) {
            heaps[point].wait_ns += wait_ns / (double)steps;
            heaps[point].waiting++;
            late[point] = 1e-9 * late_ns / (double)steps;
        }
        if (!call || p == w->point_count)
            break;
        if (p != point) {
            wait_ns = late_ns = 0;
            steps = 0;
            point = p;
        }
        steps += steps == 0 || call->step != step;
        step = call->step;
        wait_ns += (double)call->wait_ns;
        late_ns += (double)call->late_ns;
    }
}

/* A rank's lateness is its excess over the median rank: noise makes every rank late now and then.
 */
static void settle_late(struct knee_watch *w, size_t p, double *scratch)
{
    size_t n = 0;
    for (size_t r = 0; r < w->rank_count; r++)
        if (!isnan(w->late[r * w->point_count + p]))
            scratch[n++] = w->late[r * w->point_count + p];
    if (n < 2)
        return;
    qsort(scratch, n, sizeof *scratch, knee_ascending);
    double usual = scratch[(n - 1) / 2]; /* of two ranks the one that is not late */
    for (size_t r = 0; r < w->rank_count; r++) {
        double *late = &w->late[r * w->point_count + p];
        *late = isnan(*late) ? NAN : fmax(0, *late - usual);
        if (*late > w->points[p].late_s || (isnan(w->points[p].late_s) && !isnan(*late))) {
            w->points[p].late_s = *late;
            w->points[p].latest = r;
        }
    }
}

static void finish(const struct heap *heaps, double *scratch, struct knee_watch *w)
{
    for (size_t p = 0; p < w->point_count; p++) {
        if (heaps[p].lines)
            w->points[p].step_s = heaps[p].step_s / (double)heaps[p].lines;
        if (heaps[p].waiting)
            w->points[p].wait_s = 1e-9 * heaps[p].wait_ns / (double)heaps[p].waiting;
        settle_late(w, p, scratch);
    }
}

bool knee_watch_points(const struct knee_live_rank *ranks, struct knee_watch *w)
{
    size_t count = 0;
    int64_t *numbers = numbers_of(ranks, w, &count);
    bool good = numbers && make_points(numbers, count, w);
    struct heap *heaps =
        good ? knee_resize(w->alloc, NULL, (w->point_count + 1) * sizeof *heaps) : NULL;
    double *scratch = knee_resize(w->alloc, NULL, (w->rank_count + 1) * sizeof *scratch);
    good = heaps && scratch;
    if (good) {
        memset(heaps, 0, (w->point_count + 1) * sizeof *heaps);
        for (size_t r = 0; r < w->rank_count; r++) {
            add_lines(&ranks[r], heaps, w);
            add_calls(&ranks[r], heaps, w->late + r * w->point_count, w);
        }
        finish(heaps, scratch, w);
        w->first_step = count ? numbers[0] : -1;
        w->step = count ? numbers[count - 1] : -1;
    }
    knee_resize(w->alloc, numbers, 0);
    knee_resize(w->alloc, heaps, 0);
    knee_resize(w->alloc, scratch, 0);
    return good;
}

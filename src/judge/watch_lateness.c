/* SPDX-License-Identifier: MIT */
/*
 * Which rank keeps the others waiting, why, and since when. A rank is named if most others wait for
 * it, in nearly all recent points, for a noticeable share of the step. Noise hits a different rank
 * each time.
 */
#include "base/error.h"
#include "base/order.h"
#include "base/text.h"
#include "judge/watch_parts.h"

#include <math.h>
#include <string.h>

#define OFTEN      0.75 /* of recent points */
#define SLOW_CLOCK 0.95 /* of the others' median */
#define EXPLAINS   0.5  /* of the lateness */

enum { FEWEST = 4 }; /* points */

/* NVML's clock event reasons. */
enum { SW_POWER_CAP = 0x4, SW_THERMAL = 0x20, HW_THERMAL = 0x40, HW_POWER_BRAKE = 0x80 };

static size_t recent_from(const struct knee_watch *w)
{
    return w->point_count > KNEE_WATCH_RECENT ? w->point_count - KNEE_WATCH_RECENT : 0;
}

/* Median over recent points; *often: in how large a share of them the rank is late at all. */
static double recent_late(const struct knee_watch *w, size_t rank, double *often)
{
    double values[KNEE_WATCH_RECENT];
    size_t n = 0, late = 0;
    for (size_t p = recent_from(w); p < w->point_count; p++) {
        double value = w->late[rank * w->point_count + p];
        if (isnan(value))
            continue;
        late += value > 0;
        values[n++] = value;
    }
    *often = n >= FEWEST ? (double)late / (double)n : 0;
    return knee_median(values, n);
}

static void find_late(struct knee_watch *w)
{
    w->late_rank = SIZE_MAX;
    w->late_s = NAN;
    for (size_t r = 0; r < w->rank_count; r++) {
        double often = 0, late_s = recent_late(w, r, &often);
        w->ranks[r].late_s = late_s;
        if (!(late_s >= KNEE_WATCH_LATE * w->step_s) || often < OFTEN)
            continue;
        if (w->late_rank == SIZE_MAX || late_s > w->late_s) {
            w->late_rank = r;
            w->late_s = late_s;
        }
    }
}

/* The median of `of` over the other ranks; NaN if no other rank has a value. */
static double others(const struct knee_watch *w, double (*of)(const struct knee_watch_rank *, int),
                     int which, double *scratch)
{
    size_t n = 0;
    for (size_t r = 0; r < w->rank_count; r++)
        if (r != w->late_rank && !isnan(of(&w->ranks[r], which)))
            scratch[n++] = of(&w->ranks[r], which);
    return knee_median(scratch, n);
}

static double label_of(const struct knee_watch_rank *rank, int label)
{
    return rank->step_sampled.wall_s > 0 ? rank->step_sampled.label_s[label] : NAN;
}

static double clock_of(const struct knee_watch_rank *rank, int which)
{
    (void)which;
    return rank->sm_mhz;
}

/* Finds the label in which the rank exceeds the others most. Waiting and transfer do not count:
 * they depend on other ranks. Samples that do not show most of the lateness were taken before it
 * began and are ignored. */
static void find_label(struct knee_watch *w, double *scratch)
{
    w->label_s = 0;
    for (int label = 0; label < KNEE_LABELS; label++) {
        double own = label_of(&w->ranks[w->late_rank], label);
        double more = own - others(w, label_of, label, scratch);
        if (label == KNEE_TRANSFER || label == KNEE_WAIT || !(more > w->label_s))
            continue;
        w->label_s = more;
        w->label = (enum knee_label)label;
    }
    w->cause = w->label_s >= EXPLAINS * w->late_s ? KNEE_WATCH_LABEL : KNEE_WATCH_UNKNOWN;
}

/* A clock that is held down explains compute that takes longer, and nothing else. */
static void find_cause(struct knee_watch *w, double *scratch)
{
    const struct knee_watch_rank *rank = &w->ranks[w->late_rank];
    find_label(w, scratch);
    bool slow = rank->sm_mhz < SLOW_CLOCK * others(w, clock_of, 0, scratch);
    if (!slow || (w->cause == KNEE_WATCH_LABEL && w->label != KNEE_COMPUTE))
        return;
    w->cause = rank->throttle & (SW_THERMAL | HW_THERMAL)         ? KNEE_WATCH_HOT
               : rank->throttle & (SW_POWER_CAP | HW_POWER_BRAKE) ? KNEE_WATCH_POWER
                                                                  : KNEE_WATCH_CLOCK;
}

/* A series without its unknown values, and the point that each value belongs to. */
struct series {
    double values[KNEE_WATCH_POINTS];
    size_t points[KNEE_WATCH_POINTS], count;
};

static void add_value(struct series *s, size_t point, double value)
{
    if (isnan(value))
        return;
    s->values[s->count] = value;
    s->points[s->count++] = point;
}

static knee_status change_of(const struct knee_watch *w, const struct series *s,
                             struct knee_change *out, struct knee_err *err)
{
    knee_status status =
        knee_change_point(s->values, s->count, KNEE_WATCH_LATE * w->step_s, w->alloc, out, err);
    if (!status && out->found)
        out->at = s->points[out->at];
    return status;
}

/* The step's change, and that of the rank which has become later by most. */
static knee_status find_changes(struct knee_watch *w, struct knee_err *err)
{
    struct series series = {.count = 0};
    for (size_t p = 0; p < w->point_count; p++)
        add_value(&series, p, w->points[p].step_s);
    knee_status status = change_of(w, &series, &w->step_change, err);
    w->late_change_rank = SIZE_MAX;
    for (size_t r = 0; r < w->rank_count && !status; r++) {
        struct knee_change change = {0};
        double best = w->late_change.after - w->late_change.before;
        series.count = 0;
        for (size_t p = 0; p < w->point_count; p++)
            add_value(&series, p, w->late[r * w->point_count + p]);
        status = change_of(w, &series, &change, err);
        if (!status && change.found && change.after - change.before > fmax(best, 0)) {
            w->late_change = change;
            w->late_change_rank = r;
        }
    }
    return status;
}

knee_status knee_watch_lateness(struct knee_watch *w, struct knee_err *err)
{
    double *scratch = knee_resize(w->alloc, NULL, (w->rank_count + 1) * sizeof *scratch);
    if (!scratch)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    find_late(w);
    if (w->late_rank != SIZE_MAX)
        find_cause(w, scratch);
    knee_resize(w->alloc, scratch, 0);
    return find_changes(w, err);
}

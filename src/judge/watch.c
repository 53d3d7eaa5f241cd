/* SPDX-License-Identifier: MIT */
/* Each rank from its own newest lines, then all of them together. */
#include "judge/watch.h"

#include "base/error.h"
#include "base/order.h"
#include "base/text.h"
#include "cluster/gpu_words.h"
#include "judge/watch_parts.h"
#include "predict/goodput/energy.h"

#include <math.h>
#include <string.h>

#define SILENT_S     30.0 /* without a line, while others write ... */
#define SILENT_STEPS 10.0 /* ... and at least so many steps */

#define GAP 3 /* times a point's width: more is not a matter of how lines fall */

/* ---- One rank ---- */

static double recent_step_s(const struct knee_live_rank *rank)
{
    double values[KNEE_WATCH_RECENT];
    size_t n = 0;
    for (size_t i = rank->step_count; i-- > 0 && n < KNEE_WATCH_RECENT;)
        if (rank->steps[i].step >= 0 && rank->steps[i].step_s > 0)
            values[n++] = rank->steps[i].step_s;
    return knee_median(values, n);
}

/* The newest one alone: what was before it may have been otherwise. */
static struct knee_step newest_sampled(const struct knee_live_rank *rank, int64_t *number)
{
    struct knee_step step = {.wall_s = 0};
    size_t i = rank->step_count;
    while (i > 0 && (rank->steps[i - 1].sampled != 1 || !(rank->steps[i - 1].window_s > 0)))
        i--;
    if (i == 0)
        return step;
    const struct knee_live_step *line = &rank->steps[i - 1];
    *number = line->step > *number ? line->step : *number;
    step.wall_s = line->window_s;
    step.comm_s = isnan(line->comm_s) ? 0 : line->comm_s;
    for (int label = 0; label < KNEE_LABELS; label++)
        step.label_s[label] = isnan(line->label_s[label]) ? 0 : line->label_s[label];
    return step;
}

static double elapsed_s(const struct knee_live_rank *rank, int64_t last_ns)
{
    int64_t start_ns = rank->about.start_ns;
    return start_ns < 0 || last_ns < start_ns ? 0 : 1e-9 * (double)(last_ns - start_ns);
}

/* NVML's figures stand in one line of many; the newest of each counts. Joules so far are the mean
 * power of what was read, over all the time: old lines are gone. */
static void take_gpu(const struct knee_live_rank *rank, struct knee_watch_rank *out)
{
    double joules = 0, seconds = 0;
    for (size_t i = 0; i < rank->step_count; i++) {
        const struct knee_live_step *line = &rank->steps[i];
        if (line->energy_j >= 0 && line->gpu_s > 0) {
            joules += line->energy_j;
            seconds += line->gpu_s;
        }
        if (line->sm_mhz >= 0) {
            out->sm_mhz = (double)line->sm_mhz;
            out->throttle = line->throttle;
        }
        out->temp_c = line->temp_c >= 0 ? (double)line->temp_c : out->temp_c;
        out->power_w = line->power_w >= 0 ? line->power_w : out->power_w;
    }
    out->joules = seconds > 0 ? joules / seconds * elapsed_s(rank, out->last_ns) : NAN;
}

/* Where NVML says nothing: the labels of the newest sampled step, and what such a GPU draws. */
static void take_table(const struct knee_live_rank *rank, struct knee_watch_rank *out)
{
    const struct knee_gpu *gpu = rank->about.gpu[0] ? knee_gpu_in(rank->about.gpu) : NULL;
    const double *label = out->step_sampled.label_s;
    double wall_s = out->step_sampled.wall_s;
    struct knee_watts watts;
    if (!isnan(out->joules) || !gpu || !(wall_s > 0))
        return;
    struct knee_gpu_seconds seconds = {
        .product_s = label[KNEE_COMPUTE],
        .copy_s = label[KNEE_COPY],
        .wait_s = label[KNEE_TRANSFER] + label[KNEE_WAIT],
        .idle_s = label[KNEE_STARVED] + label[KNEE_HOST] + label[KNEE_IDLE],
    };
    knee_watts_of(gpu->name, gpu->power_w, NAN, &watts);
    out->joules = knee_gpu_joules(&watts, &seconds) / wall_s * elapsed_s(rank, out->last_ns);
    out->joules_by_table = true;
}

/* The newest step is left away: not all of its calls need be there. */
static double recent_wait_s(const struct knee_live_rank *rank)
{
    double wait_ns = 0;
    int64_t steps = 0, step = -1;
    int64_t newest = rank->call_count ? rank->calls[rank->call_count - 1].step : -1;
    for (size_t i = rank->call_count; i-- > 0;) {
        const struct knee_live_call *call = &rank->calls[i];
        if (call->wait_ns < 0 || call->step < 0 || call->step == newest)
            continue;
        steps += steps == 0 || call->step != step;
        if (steps > KNEE_WATCH_RECENT)
            return 1e-9 * wait_ns / KNEE_WATCH_RECENT;
        step = call->step;
        wait_ns += (double)call->wait_ns;
    }
    return steps > 0 ? 1e-9 * wait_ns / (double)steps : NAN;
}

static struct knee_watch_rank take_rank(const struct knee_live_rank *rank, int64_t *sampled_step)
{
    bool any = rank->step_count > 0;
    const struct knee_live_step *last = any ? &rank->steps[rank->step_count - 1] : NULL;
    struct knee_watch_rank out = {.about = &rank->about,
                                  .step = any ? last->step : -1,
                                  .last_ns = any ? last->t_ns : rank->about.start_ns,
                                  .step_s = recent_step_s(rank),
                                  .wait_s = recent_wait_s(rank),
                                  .late_s = NAN,
                                  .step_sampled = newest_sampled(rank, sampled_step),
                                  .power_w = NAN,
                                  .sm_mhz = NAN,
                                  .temp_c = NAN,
                                  .overhead = any ? last->overhead : NAN,
                                  .every = any ? last->every : -1,
                                  .left_out = any ? last->left_out : 0};
    take_gpu(rank, &out);
    take_table(rank, &out);
    return out;
}

/* ---- All of them ---- */

/* The median of step_s over points [from, to), which are at most KNEE_WATCH_RECENT. */
static double typical_step_s(const struct knee_watch *w, size_t from, size_t to)
{
    double values[KNEE_WATCH_RECENT];
    size_t n = 0;
    for (size_t p = from; p < to; p++)
        if (!isnan(w->points[p].step_s))
            values[n++] = w->points[p].step_s;
    return knee_median(values, n);
}

static void take_times(struct knee_watch *w)
{
    size_t few = w->point_count < KNEE_WATCH_RECENT ? w->point_count : KNEE_WATCH_RECENT;
    double wait_s = 0, waiting = 0;
    w->step_s = typical_step_s(w, w->point_count - few, w->point_count);
    w->first_step_s = typical_step_s(w, 0, few);
    for (size_t r = 0; r < w->rank_count; r++)
        if (!isnan(w->ranks[r].wait_s)) {
            wait_s += w->ranks[r].wait_s;
            waiting++;
        }
    w->wait_s = waiting > 0 ? wait_s / waiting : NAN;
}

static void take_sampled(struct knee_watch *w)
{
    double n = 0;
    for (size_t r = 0; r < w->rank_count; r++) {
        const struct knee_step *step = &w->ranks[r].step_sampled;
        if (!(step->wall_s > 0))
            continue;
        n++;
        w->sampled.wall_s += step->wall_s;
        w->sampled.comm_s += step->comm_s;
        for (int label = 0; label < KNEE_LABELS; label++)
            w->sampled.label_s[label] += step->label_s[label];
    }
    for (int label = 0; label < KNEE_LABELS && n > 0; label++)
        w->sampled.label_s[label] /= n;
    w->sampled.wall_s /= n > 0 ? n : 1;
    w->sampled.comm_s /= n > 0 ? n : 1;
}

/* A rank is silent if others have written for ten steps since its last line. The job hangs if some
 * ranks are silent, or if no rank writes although its processes are alive. */
static void take_silence(struct knee_watch *w, const struct knee_watch_given *given)
{
    int64_t newest_ns = 0;
    for (size_t r = 0; r < w->rank_count; r++)
        newest_ns = w->ranks[r].last_ns > newest_ns ? w->ranks[r].last_ns : newest_ns;
    w->age_s =
        newest_ns > 0 && given->now_ns > newest_ns ? 1e-9 * (double)(given->now_ns - newest_ns) : 0;
    double limit_s = fmax(SILENT_S, isnan(w->step_s) ? 0 : SILENT_STEPS * w->step_s);
    for (size_t r = 0; r < w->rank_count; r++) {
        double behind_s = 1e-9 * ((double)newest_ns - (double)w->ranks[r].last_ns);
        w->ranks[r].silent = behind_s > limit_s;
        w->silent += w->ranks[r].silent;
    }
    bool old = w->age_s > limit_s;
    w->state = w->silent || (old && given->alive) ? KNEE_WATCH_HUNG
               : old                              ? KNEE_WATCH_STALE
                                                  : KNEE_WATCH_RUNNING;
}

static double price_of(const struct knee_live_about *about)
{
    const struct knee_gpu *gpu = about->gpu[0] ? knee_gpu_in(about->gpu) : NULL;
    return gpu ? knee_gpu_price(gpu) : NAN;
}

static void take_cost(const struct knee_live_rank *ranks, double given, struct knee_watch *w)
{
    double joules = 0;
    size_t measured = 0;
    w->price_assumed = isnan(given);
    w->price_per_hour = isnan(given) && w->rank_count ? price_of(&ranks[0].about) : given;
    for (size_t r = 0; r < w->rank_count; r++) {
        w->rank_s += elapsed_s(&ranks[r], w->ranks[r].last_ns);
        measured += isnan(w->ranks[r].joules) ? 0 : 1;
        joules += isnan(w->ranks[r].joules) ? 0 : w->ranks[r].joules;
        w->joules_by_table = w->joules_by_table || w->ranks[r].joules_by_table;
    }
    w->joules = measured && measured == w->rank_count ? joules : NAN;
    w->dollars = w->rank_s / 3600 * w->price_per_hour;
    w->stall_dollars = w->sampled.wall_s > 0
                           ? w->dollars * knee_step_exposed_s(&w->sampled) / w->sampled.wall_s
                           : NAN;
}

static void take_ranks(const struct knee_live_rank *ranks, struct knee_watch *w)
{
    w->overhead = NAN;
    w->sampled_step = w->world = -1;
    for (size_t r = 0; r < w->rank_count; r++) {
        w->ranks[r] = take_rank(&ranks[r], &w->sampled_step);
        w->world = ranks[r].about.world > w->world ? ranks[r].about.world : w->world;
        w->overhead = fmax(w->overhead, w->ranks[r].overhead);
        w->damaged += ranks[r].damaged;
        w->left_out += w->ranks[r].left_out > 0 ? (uint64_t)w->ranks[r].left_out : 0;
    }
}

static knee_status fill(const struct knee_live_rank *ranks, const struct knee_live_joined *joined,
                        const struct knee_watch_given *given, struct knee_watch *w,
                        struct knee_err *err)
{
    take_ranks(ranks, w);
    if (!knee_watch_points(ranks, w) || !knee_watch_wires(ranks, joined, w))
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    take_times(w);
    take_sampled(w);
    take_silence(w, given);
    take_cost(ranks, given->price_per_hour, w);
    return knee_watch_lateness(w, err);
}

knee_status knee_watch(const struct knee_live_rank *ranks, size_t count,
                       const struct knee_live_joined *joined, const struct knee_watch_given *given,
                       struct knee_watch *out, struct knee_err *err)
{
    const struct knee_alloc *alloc = given->alloc;
    struct knee_watch w = {
        .rank_count = count, .meetings = joined->count, .partial = joined->partial, .alloc = alloc};
    w.ranks = knee_resize(alloc, NULL, (count + 1) * sizeof *w.ranks);
    knee_status status = w.ranks ? fill(ranks, joined, given, &w, err)
                                 : knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    if (status)
        knee_watch_release(&w);
    else
        *out = w;
    return status;
}

void knee_watch_release(struct knee_watch *watch)
{
    knee_resize(watch->alloc, watch->ranks, 0);
    knee_resize(watch->alloc, watch->points, 0);
    knee_resize(watch->alloc, watch->late, 0);
    knee_resize(watch->alloc, watch->wires, 0);
    memset(watch, 0, sizeof *watch);
}

bool knee_watch_gap(const struct knee_watch *watch, size_t point)
{
    const struct knee_watch_point *p = watch->points;
    size_t last = watch->point_count - 1;
    /* a point's own width, by its neighbour of the same stretch */
    int64_t width = point < last ? p[point + 1].step - p[point].step : 1;
    return point > 0 && (p[point].step - p[point - 1].step) / GAP > width;
}

double knee_watch_trend(const struct knee_watch *watch)
{
    return watch->step_s / watch->first_step_s - 1;
}

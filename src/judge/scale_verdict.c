/* SPDX-License-Identifier: MIT */
/*
 * What a curve says: E(K) against the smallest count measured, whatever range is asked for; the
 * knee as it was measured and as the fit has it; what the counts asked for would bring; and one
 * piece of advice. With one count the comparison is with the model, else with nothing.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/order.h"
#include "base/text.h"
#include "judge/change_point.h"
#include "judge/symptoms.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SEARCH_FACTOR 16 /* times the largest count measured that the knee is searched for */
#define HOUR_S        3600.0
#define WORTH         0.9 /* share of the speed-up that is there already: do not ask for more */

/* ---- Rows ---- */

void knee_scale_row_of_run(const struct knee_account *account, const struct knee_diagnosis *d,
                           const char *source, struct knee_scale_row *row)
{
    const struct knee_step *step = &d->step;
    double ranks = (double)account->rank_count, sharing = d->gaps & KNEE_GAP_SHARED_GPU ? ranks : 1;
    memset(row, 0, sizeof *row);
    knee_format(row->source, sizeof row->source, "%s", source);
    row->batch = row->replica = row->tokens_per_s = NAN;
    row->workers = account->world_size > 0 ? (double)account->world_size : ranks;
    row->step_s = step->wall_s;
    row->p95_s = d->spread.steps > 1 ? d->spread.p95_s : NAN;
    row->error = d->spread.error_s / step->wall_s;
    row->compute_s = step->label_s[KNEE_COMPUTE];
    row->comm_s = step->comm_s;
    row->exposed_s = knee_step_exposed_s(step);
    row->ratio = d->ratio;
    row->gamma = knee_step_gamma(step);
    row->work_s =
        row->compute_s / sharing; /* ranks that take turns compute for each other's time */
}

/* By worker count, the fastest of a count last; rows of unknown counts come last. */
static bool before(const struct knee_scale_row *a, const struct knee_scale_row *b)
{
    return isnan(b->workers)          ? !isnan(a->workers)
           : a->workers == b->workers ? a->step_s > b->step_s
                                      : a->workers < b->workers;
}

static void sort_rows(struct knee_scale_answer *a)
{
    for (size_t i = 1; i < a->row_count; i++) {
        struct knee_scale_row row = a->rows[i];
        size_t at = i;
        for (; at > 0 && before(&row, &a->rows[at - 1]); at--)
            a->rows[at] = a->rows[at - 1];
        a->rows[at] = row;
    }
    for (a->counted = 0; a->counted < a->row_count && !isnan(a->rows[a->counted].workers);)
        a->counted++;
}

/* The unit of work: sequences where all rows know their batch, tokens where all know those. */
static double work_of(const struct knee_scale_answer *a, const struct knee_scale_row *row)
{
    bool batches = true, tokens = true;
    for (size_t i = 0; i < a->counted; i++) {
        batches = batches && a->rows[i].batch > 0;
        tokens = tokens && a->rows[i].tokens_per_s > 0;
    }
    return batches ? row->batch : tokens ? row->tokens_per_s * row->step_s : NAN;
}

/* A run that takes much longer than another of the same count and batch shows a fault, not how the
 * job scales: the curve is made of the others. */
static void find_slow_repeats(struct knee_scale_answer *a)
{
    for (size_t i = 0; i < a->counted; i++) {
        struct knee_scale_row *row = &a->rows[i];
        row->faster = NULL;
        for (size_t k = i + 1; k < a->counted && a->rows[k].workers == row->workers; k++) {
            double same = work_of(a, &a->rows[k]) / work_of(a, row) - 1;
            if (row->step_s > KNEE_SLOW_REPEAT * a->rows[k].step_s &&
                (isnan(same) || fabs(same) < 0.01))
                row->faster = &a->rows[k];
        }
    }
}

static knee_status fit_rows(struct knee_scale_answer *a, struct knee_err *err)
{
    struct knee_scale_point points[KNEE_SCALE_ROWS];
    size_t count = 0;
    if (a->row_count > KNEE_SCALE_ROWS)
        return knee_fail(err, KNEE_USAGE, "", "more than %d runs", KNEE_SCALE_ROWS);
    find_slow_repeats(a);
    for (size_t i = 0; i < a->counted; i++) {
        const struct knee_scale_row *row = &a->rows[i];
        if (!row->faster)
            points[count++] = (struct knee_scale_point){.workers = row->workers,
                                                        .step_s = row->step_s,
                                                        .batch = work_of(a, row),
                                                        .error = row->error,
                                                        .replica = row->replica,
                                                        .work_s = row->work_s};
    }
    return knee_scale_fit(points, count, &a->fit, err);
}

/* The two largest counts of which it is known what a step is made of; rows are sorted. */
static void look_inside(struct knee_scale_answer *a)
{
    for (size_t i = 0; i < a->counted; i++) {
        const struct knee_scale_row *row = &a->rows[i];
        size_t k = a->fit.count - 1; /* the last point of as many workers: every row has one */
        while (k > 0 && a->fit.points[k].workers != row->workers)
            k--;
        if (row->faster || !(row->workers > 1 && row->compute_s > 0 && row->comm_s > 0))
            continue;
        if (row->workers > a->fit.inside.workers)
            a->fit.inside_before = a->fit.inside;
        a->fit.inside = (struct knee_scale_inside){row->workers, a->fit.points[k].batch,
                                                   row->step_s,  row->compute_s,
                                                   row->comm_s,  row->exposed_s};
    }
}

/* Units of work per second at one count, of the merged points. */
static double rate(double batch, double step_s)
{
    return batch / step_s;
}

static double base_rate(const struct knee_scale_answer *a)
{
    const struct knee_scale_point *base = &a->fit.points[0];
    return rate(base->batch, base->step_s);
}

/* Where batches are not known: one unit in all, or one for each worker, as the fit took it. */
static double assumed_work(const struct knee_scale_answer *a, double workers)
{
    return a->fit.kind == KNEE_SCALE_STRONG ? 1 : workers;
}

static void judge_row(const struct knee_scale_answer *a, struct knee_scale_row *row)
{
    double work = a->fit.kind_assumed ? assumed_work(a, row->workers) : work_of(a, row);
    row->rate_per_s = rate(work, row->step_s);
    row->speed_up = row->rate_per_s / base_rate(a);
    row->efficiency = row->speed_up * a->base_workers / row->workers;
}

static double point_efficiency(const struct knee_scale_answer *a, const struct knee_scale_point *p)
{
    return rate(p->batch, p->step_s) / base_rate(a) * a->base_workers / p->workers;
}

/* ---- Knees ---- */

static double measured_knee(const struct knee_scale_answer *a)
{
    double knee = NAN;
    for (size_t i = 0; i < a->fit.count; i++) {
        if (point_efficiency(a, &a->fit.points[i]) < a->question.tolerance)
            return knee;
        knee = a->fit.points[i].workers;
    }
    return NAN; /* it has not fallen below */
}

/* E by the fit; NaN where it makes no forecast. */
static double fitted_efficiency(const struct knee_scale_answer *a, double workers, double batch)
{
    struct knee_scale_forecast f;
    if (knee_scale_predict(&a->fit, workers, batch, &f, NULL))
        return NAN;
    double work = isnan(f.batch) ? assumed_work(a, workers) : f.batch;
    return rate(work, f.step_s) / base_rate(a) * a->base_workers / workers;
}

static void predicted_knee(struct knee_scale_answer *a)
{
    double largest = a->fit.points[a->fit.count - 1].workers;
    double end = fmin(SEARCH_FACTOR * largest,
                      knee_scale_most_workers(&a->fit, a->fit.points[a->fit.count - 1].batch));
    if (a->fit.kind != KNEE_SCALE_STRONG)
        end = SEARCH_FACTOR * largest;
    double good = NAN, last = a->base_workers;
    a->predicted_knee = NAN;
    a->searched_workers = end;
    for (double k = a->base_workers; k <= end; k = fmax(k + 1, rint(k * 1.1))) {
        double e = fitted_efficiency(a, k, NAN);
        if (!(e >= a->question.tolerance)) {
            good = last;
            break;
        }
        last = k;
    }
    if (isnan(good))
        return;
    double bad = fmax(good + 1, rint(good * 1.1));
    while (bad - good > 1) {
        double middle = floor((good + bad) / 2);
        *(fitted_efficiency(a, middle, NAN) >= a->question.tolerance ? &good : &bad) = middle;
    }
    a->predicted_knee = good;
}

/* ---- Counts asked for ---- */

static void ask_one(struct knee_scale_answer *a, double workers, struct knee_scale_ask *ask)
{
    struct knee_err err = {0};
    memset(ask, 0, sizeof *ask);
    ask->time_s = ask->cost = ask->efficiency = ask->speed_up = NAN;
    ask->efficiency_sure = ask->time_sure = ask->cost_sure = (struct knee_sure){NAN, NAN};
    ask->at.workers = workers;
    if (knee_scale_predict(&a->fit, workers, a->question.at_batch, &ask->at, &err)) {
        ask->at = (struct knee_scale_forecast){workers, NAN, NAN, NAN, NAN, NAN, NAN, 0};
        knee_format(ask->refused, sizeof ask->refused, "%.120s", err.what);
        return;
    }
    ask->efficiency = fitted_efficiency(a, workers, a->question.at_batch);
    ask->speed_up = ask->efficiency * workers / a->base_workers;
    const struct knee_scale_row *last = &a->rows[a->counted - 1];
    double tokens_per_s = last->tokens_per_s / last->speed_up * ask->speed_up;
    ask->time_s = a->question.tokens / tokens_per_s;
    ask->cost = ask->time_s / HOUR_S * workers * a->question.price_per_hour;
    double low = ask->at.low_s / ask->at.step_s, high = ask->at.high_s / ask->at.step_s;
    ask->efficiency_sure = (struct knee_sure){ask->efficiency / high, ask->efficiency / low};
    ask->time_sure = (struct knee_sure){ask->time_s * low, ask->time_s * high};
    ask->cost_sure = (struct knee_sure){ask->cost * low, ask->cost * high};
}

static void ask_all(struct knee_scale_answer *a)
{
    double largest = a->fit.points[a->fit.count - 1].workers;
    const double usual[] = {2 * largest, 4 * largest};
    const double *at = a->question.at_count ? a->question.at : usual;
    size_t count = a->question.at_count ? a->question.at_count : 2;
    a->ask_count = 0;
    for (size_t i = 0; i < count; i++)
        ask_one(a, at[i], &a->asks[a->ask_count++]);
}

/* ---- Advice ---- */

/* The best speed-up among measured counts below `workers`, and its count. */
static double best_below(const struct knee_scale_answer *a, double workers, double *count)
{
    double best = 0;
    for (size_t i = 0; i < a->row_count; i++)
        if (a->rows[i].workers < workers && a->rows[i].speed_up > best) {
            best = a->rows[i].speed_up;
            *count = a->rows[i].workers;
        }
    for (size_t i = 0; i < a->ask_count; i++)
        if (a->asks[i].at.workers < workers && a->asks[i].speed_up > best) {
            best = a->asks[i].speed_up;
            *count = a->asks[i].at.workers;
        }
    return best;
}

/* Of the counts asked for, the first that is not worth it; else the last one. */
static void advise_several(struct knee_scale_answer *a)
{
    double largest = a->fit.points[a->fit.count - 1].workers;
    a->advice = KNEE_ADVICE_GROW;
    for (size_t i = 0; i < a->ask_count; i++) {
        struct knee_scale_ask *ask = &a->asks[i];
        double count = NAN, below = best_below(a, ask->at.workers, &count);
        bool stop = ask->efficiency < a->question.tolerance || below >= WORTH * ask->speed_up;
        if (ask->at.workers <= largest || (ask->refused[0] && a->advice_ask != SIZE_MAX))
            continue;
        if (a->advice_ask != SIZE_MAX && !stop)
            continue;
        a->advice_ask = i;
        a->advice_workers = count;
        a->advice_share = below / ask->speed_up;
        if (stop || ask->refused[0]) {
            a->advice = KNEE_ADVICE_STOP;
            return;
        }
    }
}

#define NO_BLAME 1.25 /* measured over model, or the other way round: less says nothing */

static void advise_one(struct knee_scale_answer *a)
{
    const struct knee_scale_row *row = &a->rows[a->row_count - 1];
    double over = row->step_s / row->model.step_s;
    a->advice = isnan(row->model.step_s)                                ? KNEE_ADVICE_MEASURE
                : row->step_s > row->model.high_s && over > NO_BLAME    ? KNEE_ADVICE_SLOW
                : row->step_s < row->model.low_s && over < 1 / NO_BLAME ? KNEE_ADVICE_FAST
                                                                        : KNEE_ADVICE_FINE;
}

static void advise(struct knee_scale_answer *a)
{
    double largest_batch = a->batch.large_batch;
    a->advice_ask = SIZE_MAX;
    a->advice_share = a->advice_workers = NAN;
    a->wall = KNEE_WALL_NONE;
    if (a->several)
        advise_several(a);
    else
        advise_one(a);
    if (a->advice == KNEE_ADVICE_STOP)
        a->wall = KNEE_WALL_SYSTEMS;
    if (a->batch.behind || largest_batch > a->batch.high) {
        a->advice = KNEE_ADVICE_BATCH;
        a->wall = KNEE_WALL_STATISTICAL;
    }
}

/* ---- Changes inside a log ---- */

#define CHANGE_VALUES 2000 /* at most: medians of stretches of a longer log */
#define CHANGE_LEAST  0.05 /* of the step */
#define CHANGE_ROWS   24   /* fewer rows are no series */

/* Rows first[] of each stretch and their median steps, without the warm-up. */
static size_t collect(const struct knee_train_log *log, double *values, size_t *first)
{
    size_t used = 0, skip = log->counts.warm_up;
    size_t stretch = (log->timed + CHANGE_VALUES - 1) / CHANGE_VALUES, in = 0;
    double scratch[64];
    stretch = stretch < 1 ? 1 : stretch < 63 ? stretch : 63;
    for (size_t i = 0; i < log->row_count && used < CHANGE_VALUES; i++) {
        if (isnan(log->rows[i].step_s) || skip > 0) {
            skip -= isnan(log->rows[i].step_s) ? 0 : 1;
            continue;
        }
        if (in == 0)
            first[used] = i;
        scratch[in++] = log->rows[i].step_s;
        if (in < stretch)
            continue;
        values[used++] = knee_median(scratch, in);
        in = 0;
    }
    return used;
}

static void describe_change(const struct knee_train_log *log, const struct knee_change *found,
                            size_t row, struct knee_scale_change *out)
{
    const struct knee_train_row *at = &log->rows[row];
    *out = (struct knee_scale_change){.found = true,
                                      .step = at->step,
                                      .before_s = found->before,
                                      .after_s = found->after,
                                      .stamp_s = at->stamp_s,
                                      .restart = row > 0 && log->rows[row - 1].run != at->run};
}

static knee_status find_change(struct knee_scale_row *row, struct knee_err *err)
{
    const struct knee_train_log *log = row->log;
    struct knee_change found = {0};
    row->change = (struct knee_scale_change){0};
    if (!log || log->timed < CHANGE_ROWS || log->alternates)
        return KNEE_OK;
    double *values = knee_resize(log->alloc, NULL, CHANGE_VALUES * sizeof *values);
    size_t *first = knee_resize(log->alloc, NULL, CHANGE_VALUES * sizeof *first);
    knee_status status = values && first ? KNEE_OK : KNEE_SYSTEM;
    size_t count = status ? 0 : collect(log, values, first);
    if (!status)
        status =
            knee_change_point(values, count, CHANGE_LEAST * log->median_s, log->alloc, &found, err);
    if (!status && found.found)
        describe_change(log, &found, first[found.at], &row->change);
    knee_resize(log->alloc, values, 0);
    knee_resize(log->alloc, first, 0);
    return status ? knee_fail(err, KNEE_SYSTEM, log->name, "out of memory") : KNEE_OK;
}

/* ---- One run over several logs ---- */

/* Logs of one count, none of which overlaps another in time, are one job that was started again. */
static void join_logs(struct knee_scale_answer *a)
{
    const struct knee_train_log *logs[KNEE_SCALE_ROWS] = {NULL};
    size_t count = 0;
    double span = 0;
    for (size_t i = 0; i < a->row_count; i++)
        if (a->rows[i].log && !isnan(a->rows[i].log->account.wall_s))
            logs[count++] = a->rows[i].log;
    knee_run_account(logs, count, &a->account);
    for (size_t i = 0; i < count; i++)
        span += logs[i]->account.wall_s;
    double all = a->account.all.end_s - a->account.all.begin_s;
    a->joined = count > 0 && !a->several && span <= 1.001 * all;
}

knee_status knee_scale_judge(struct knee_scale_answer *a, struct knee_err *err)
{
    sort_rows(a);
    a->ask_count = 0;
    a->several = false;
    a->measured_knee = a->predicted_knee = a->searched_workers = NAN;
    knee_status status = KNEE_OK;
    for (size_t i = 0; i < a->row_count && !status; i++) {
        status = find_change(&a->rows[i], err);
        a->rows[i].efficiency = a->rows[i].speed_up = a->rows[i].rate_per_s = NAN;
    }
    a->base_workers = NAN;
    knee_symptoms_judge(a);
    if (a->counted > 0 && !status)
        status = fit_rows(a, err);
    if (status || a->counted == 0) {
        join_logs(a);
        if (a->row_count)
            advise(a);
        return status;
    }
    look_inside(a);
    a->base_workers = a->fit.points[0].workers;
    a->several = a->fit.points[a->fit.count - 1].workers > a->base_workers;
    for (size_t i = 0; i < a->counted; i++)
        judge_row(a, &a->rows[i]);
    knee_scale_network(a->rows, a->counted, &a->question.network, &a->network);
    join_logs(a);
    if (a->several) {
        a->measured_knee = measured_knee(a);
        predicted_knee(a);
        ask_all(a);
    }
    advise(a);
    return KNEE_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * From rows to steps. One format speaks for the log (the first of the table that has times); rows
 * fall into runs where the step number goes back. The last run that is long enough is the job as it
 * runs now; runs that take as long are the same job, others are shown and left out of the figures.
 * Seconds come from what is printed, else from differences of elapsed time, rates with the batch,
 * or time stamps; where a second source differs by more than a tenth that is kept to be said. The
 * first rows are left out while they are not like the rest; the median is that of the later half.
 */
#include "read/run/train_log.h"

#include "base/error.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAME_JOB       0.1 /* medians of runs that count as one job differ by less */
#define LONG_RUN       0.1 /* of the rows of the longest run: enough to speak for the job */
#define TOTALS         16  /* bars of different lengths in one log */
#define WARM_OFF       0.25
#define FIRST_SLOW     1.1
#define OUTLIER        1.5
#define ALTERNATE_OFF  0.1
#define ALTERNATE_NEAR 0.05

/* ---- Which format, which rows ---- */

bool knee_train_has_time(const struct train_raw *raw)
{
    static const enum train_what ways[] = {
        TRAIN_SECONDS,      TRAIN_ELAPSED,       TRAIN_STAMP,       TRAIN_SAMPLES_PER_S,
        TRAIN_TOKENS_PER_S, TRAIN_WORKER_TOKENS, TRAIN_STEPS_PER_S, TRAIN_RUNTIME,
        TRAIN_INTERVAL,     TRAIN_PART,          TRAIN_BLOCK_S,     TRAIN_RUN_RATE,
        TRAIN_MEAN_S};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (raw->value[ways[i]] > 0)
            return true;
    return false;
}

/* A row of a line that says an epoch and a loss, and nothing that could time a step. */
static bool says_epoch_only(const struct train_raw *raw)
{
    const struct train_format *format = &knee_train_formats[raw->format];
    return format->read == knee_train_read_line && !format->keys && isnan(raw->value[TRAIN_STEP]) &&
           isnan(raw->value[TRAIN_TOTAL]) && isnan(raw->value[TRAIN_SECONDS]) &&
           isnan(raw->value[TRAIN_STEPS_PER_S]) && !isnan(raw->value[TRAIN_EPOCH]);
}

/* Lines whose epoch stays the same count something else: "epoch_out: 0, epoch_in: 5". */
static void drop_still_epochs(struct knee_train_reader *r)
{
    size_t grows = 0, kept = 0;
    double last = NAN;
    for (size_t i = 0; i < r->raw_count; i++)
        if (says_epoch_only(&r->raw[i])) {
            grows += r->raw[i].value[TRAIN_EPOCH] > last;
            last = r->raw[i].value[TRAIN_EPOCH];
        }
    for (size_t i = 0; i < r->raw_count && grows < 2; i++)
        if (!says_epoch_only(&r->raw[i]))
            r->raw[kept++] = r->raw[i];
    r->raw_count = grows < 2 ? kept : r->raw_count;
}

/* The first format of the table with times, else the first with anything. */
static unsigned main_format(const struct knee_train_reader *r)
{
    unsigned timed = (unsigned)knee_train_format_count, any = timed;
    for (size_t i = 0; i < r->raw_count; i++) {
        unsigned f = r->raw[i].format;
        any = f < any ? f : any;
        if (f < timed && knee_train_has_time(&r->raw[i]))
            timed = f;
    }
    return timed < knee_train_format_count ? timed : any;
}

/* Bars of one total are one loop. */
struct loop {
    double total, elapsed_s, steps; /* of all its passes */
    double last_s, last;
    size_t losses; /* lines of training losses next to its bars */
};

static void loop_add(struct loop *loop, double step, double elapsed_s)
{
    bool again = step < loop->last || elapsed_s < loop->last_s;
    loop->steps += again ? step : step - loop->last;
    loop->elapsed_s += again ? elapsed_s : fmax(0, elapsed_s - loop->last_s);
    loop->last = step;
    loop->last_s = isnan(elapsed_s) ? 0 : elapsed_s;
}

static bool is_loss(const struct knee_train_reader *r, size_t i)
{
    return i < r->raw_count && !isnan(r->raw[i].value[TRAIN_LOSS]);
}

static size_t collect_loops(const struct knee_train_reader *r, unsigned format, struct loop *loops)
{
    size_t count = 0, k;
    for (size_t i = 0; i < r->raw_count; i++) {
        const struct train_raw *raw = &r->raw[i];
        if (raw->format != format || isnan(raw->value[TRAIN_TOTAL]))
            continue;
        for (k = 0; k < count && loops[k].total != raw->value[TRAIN_TOTAL];)
            k++;
        if (k == TOTALS)
            continue;
        if (k == count)
            loops[count++] = (struct loop){.total = raw->value[TRAIN_TOTAL]};
        loop_add(&loops[k], raw->value[TRAIN_STEP], raw->value[TRAIN_ELAPSED]);
        bool beside = is_loss(r, i) || is_loss(r, i + 1) || (i > 0 && is_loss(r, i - 1));
        loops[k].losses += beside;
    }
    return count;
}

/* A loop inside another one: it takes most of the other's time, in shorter steps. */
static bool inside(const struct loop *inner, const struct loop *outer)
{
    return inner->elapsed_s > 0.5 * outer->elapsed_s &&
           inner->elapsed_s / inner->steps < 0.5 * outer->elapsed_s / outer->steps;
}

/* Of bars with several totals those are the training's that stand beside its losses, else those
 * that took longest; the others evaluate or prepare. A bar of epochs has that of the steps inside.
 * NaN: all are of one total. */
static double training_total(const struct knee_train_reader *r, unsigned format)
{
    struct loop loops[TOTALS];
    size_t count = knee_train_formats[format].read == knee_train_read_bar
                       ? collect_loops(r, format, loops)
                       : 0,
           best = 0;
    for (size_t i = 1; i < count; i++)
        if (loops[i].losses > loops[best].losses ||
            (loops[i].losses == loops[best].losses && loops[i].elapsed_s > loops[best].elapsed_s))
            best = i;
    size_t outer = best;
    for (size_t i = 0; i < count; i++)
        if (inside(&loops[i], &loops[outer]) &&
            (best == outer || loops[i].elapsed_s > loops[best].elapsed_s))
            best = i;
    return count > 1 ? loops[best].total : NAN;
}

/* A line that counts no steps, or epochs only. */
static bool is_summary(const struct train_raw *raw)
{
    double step = raw->value[TRAIN_STEP];
    return isnan(step) ? isnan(raw->value[TRAIN_EVAL]) : step == raw->value[TRAIN_EPOCH];
}

/* Lines of any shape with a time, most of which count steps: the others sum up an epoch. */
static bool counts_steps(const struct knee_train_reader *r, unsigned format)
{
    size_t steps = 0, all = 0;
    if (knee_train_formats[format].read != knee_train_read_line)
        return false;
    for (size_t i = 0; i < r->raw_count; i++)
        if (r->raw[i].format == format && knee_train_has_time(&r->raw[i])) {
            all++;
            steps += !is_summary(&r->raw[i]);
        }
    return 2 * steps > all;
}

/* Lines of any shape that count epochs, and no steps. */
static bool counts_epochs(const struct knee_train_reader *r, unsigned format)
{
    size_t epochs = 0;
    for (size_t i = 0; i < r->raw_count; i++) {
        const double *value = r->raw[i].value;
        if (r->raw[i].format != format || isnan(value[TRAIN_STEP]))
            continue;
        if (value[TRAIN_STEP] != value[TRAIN_EPOCH])
            return false;
        epochs++;
    }
    return epochs > 0;
}

/* "Epoch 167: train loss 0.01": where no row has a step, epochs are what is counted. */
static void count_by_epochs(struct knee_train_reader *r, unsigned format)
{
    for (size_t i = 0; i < r->raw_count; i++)
        if (r->raw[i].format == format && !isnan(r->raw[i].value[TRAIN_STEP]))
            return;
    for (size_t i = 0; i < r->raw_count; i++)
        if (r->raw[i].format == format && isnan(r->raw[i].value[TRAIN_EVAL]))
            r->raw[i].value[TRAIN_STEP] = r->raw[i].value[TRAIN_EPOCH];
}

/* Rows of other formats say the same steps again; only their evaluations are news. */
static size_t keep_format(struct knee_train_reader *r, unsigned format, struct knee_train_log *log)
{
    size_t kept = 0;
    if (knee_train_formats[format].read == knee_train_read_line && !knee_train_formats[format].keys)
        count_by_epochs(r, format);
    double total = training_total(r, format);
    bool steps = counts_steps(r, format);
    log->epochs = !steps && counts_epochs(r, format);
    for (size_t i = 0; i < r->raw_count; i++) {
        const struct train_raw *raw = &r->raw[i];
        bool evaluation = !isnan(raw->value[TRAIN_EVAL]) && !isnan(raw->value[TRAIN_STEP]);
        bool other = !isnan(total) && raw->format == format && raw->value[TRAIN_TOTAL] != total;
        other = other || (steps && raw->format == format && is_summary(raw));
        if ((raw->format == format || evaluation) && !other)
            r->raw[kept++] = r->raw[i];
        else if (other)
            r->counts.left_out++;
        else
            r->counts.duplicates++;
    }
    return kept;
}

/* A clock that does not grow is the time since the line before: "total time: 0:02:28" of each
 * epoch. */
static void check_clock(struct train_work *w)
{
    size_t pairs = 0, grows = 0;
    for (size_t i = 1; i < w->count; i++) {
        double now = knee_train_get(w, i, TRAIN_ELAPSED);
        double before = knee_train_get(w, i - 1, TRAIN_ELAPSED);
        bool on = knee_train_get(w, i, TRAIN_STEP) > knee_train_get(w, i - 1, TRAIN_STEP);
        pairs += on && !isnan(now) && !isnan(before);
        grows += on && now > before;
    }
    if (pairs < 2 || 10 * grows >= 7 * pairs)
        return;
    for (size_t i = 0; i < w->count; i++) {
        w->raw[i].value[TRAIN_INTERVAL] = w->raw[i].value[TRAIN_ELAPSED];
        w->raw[i].value[TRAIN_ELAPSED] = NAN;
    }
}

/* Of "batch 3/100" in a log where the second number grows it is the batch, of epoch 3. */
static void swap_counters(struct train_work *w)
{
    size_t swapped = 0;
    for (size_t i = 1; i < w->count; i++)
        swapped += knee_train_get(w, i, TRAIN_STEP) == knee_train_get(w, i - 1, TRAIN_STEP) &&
                   knee_train_get(w, i, TRAIN_TOTAL) > knee_train_get(w, i - 1, TRAIN_TOTAL);
    if (swapped == 0 || 2 * swapped < w->count)
        return;
    for (size_t i = 0; i < w->count; i++) {
        double *value = w->raw[i].value;
        value[TRAIN_EPOCH] = value[TRAIN_STEP];
        value[TRAIN_STEP] = value[TRAIN_TOTAL];
        value[TRAIN_TOTAL] = NAN;
    }
}

/* Does the counter go on from one epoch to the next? A step that is printed twice changes nothing.
 */
static bool counts_on(const struct train_work *w)
{
    size_t up = 0, same = 0;
    double last = NAN, last_epoch = NAN;
    for (size_t i = 0; i < w->count; i++) {
        double step = knee_train_get(w, i, TRAIN_STEP), epoch = knee_train_get(w, i, TRAIN_EPOCH);
        if (isnan(step) || isnan(epoch) || epoch == step)
            continue;
        if (epoch > last_epoch && step < last)
            return false;
        up += epoch > last_epoch && step > last;
        same += epoch > last_epoch && step == last;
        last = step;
        last_epoch = epoch;
    }
    return up > same;
}

/* Counters that begin again with each epoch go on counting. Where no total is printed an epoch
 * ends with its last row. */
static void join_epochs(struct train_work *w)
{
    w->counts_on = counts_on(w);
    if (w->counts_on)
        return;
    double before = 0, last = NAN, stride = NAN, last_epoch = NAN;
    for (size_t i = 0; i < w->count; i++) {
        double step = knee_train_get(w, i, TRAIN_STEP), total = knee_train_get(w, i, TRAIN_TOTAL);
        double epoch = knee_train_get(w, i, TRAIN_EPOCH);
        if (isnan(step) || (isnan(total) && isnan(epoch)))
            continue;
        bool full = last >= 0.9 * total && step <= 0.2 * total;
        if (step <= last && epoch > last_epoch)
            before += isnan(total) ? last + fmax(0, stride - step) : total * (epoch - last_epoch);
        else if (step < last && full && !(epoch < last_epoch))
            before += total;
        stride = step > last ? step - last : stride;
        last = step;
        last_epoch = epoch;
        w->raw[i].value[TRAIN_STEP] = step + before;
    }
}

/* Bars begin again with each epoch, and so do their clocks. */
static bool ends_epoch(double last, double total)
{
    double left = fmod(last, total);
    return left == 0 || left >= 0.9 * total;
}

/* Numbers the runs and drops steps that were there already. */
static void find_runs(struct train_work *w, struct knee_train_counts *counts)
{
    size_t kept = 0;
    double last = -INFINITY, elapsed = -INFINITY, before = 0;
    swap_counters(w);
    if (w->lines)
        check_clock(w);
    join_epochs(w);
    w->runs = w->count > 0;
    for (size_t i = 0; i < w->count; i++) {
        double step = knee_train_get(w, i, TRAIN_STEP);
        double now = knee_train_get(w, i, TRAIN_ELAPSED) + before;
        if (step > last && now < elapsed - 1 &&
            ends_epoch(last, knee_train_get(w, i, TRAIN_TOTAL))) {
            now += elapsed - before;
            before = elapsed;
            w->clocks++;
        }
        bool evaluation = !isnan(knee_train_get(w, i, TRAIN_EVAL)),
             each = w->flags & TRAIN_EACH_LINE;
        bool parts = !isnan(knee_train_get(w, i, TRAIN_PART));
        if (!each && !isnan(step) && !evaluation && step <= last) {
            bool later = now >= elapsed; /* another rank's bar */
            if (parts || step == last || later) {
                bool again = step == last && !parts && now < elapsed - 1;
                if (!again) {
                    w->mixed += step < last && !isnan(now);
                    counts->duplicates += !parts;
                    if (!parts)
                        continue;
                }
            }
            w->runs += !parts && step < last;
        } else if (now < elapsed - 1) { /* resumed: the clock began again */
            w->runs++;
        }
        if (!isnan(step) && !evaluation) {
            last = step;
            elapsed = isnan(now) ? elapsed : now;
        }
        w->raw[kept] = w->raw[i];
        w->raw[kept].value[TRAIN_ELAPSED] = now;
        w->run[kept++] = (unsigned)w->runs - 1;
    }
    w->count = kept;
}

/* ---- Runs that belong together ---- */

static double run_median(struct train_work *w, unsigned run, size_t *timed)
{
    size_t used = 0;
    for (size_t i = 0; i < w->count; i++)
        if (w->run[i] == run && !isnan(w->seconds[i]))
            w->scratch[used++] = w->seconds[i];
    *timed = used;
    return knee_median(w->scratch, used);
}

static void grow_run(const struct train_work *w, size_t i, struct knee_train_run *run)
{
    double step = knee_train_get(w, i, TRAIN_STEP), stamp = knee_train_get(w, i, TRAIN_STAMP);
    run->from = fmin(run->from, step);
    run->to = fmax(run->to, step);
    run->begin_s = fmin(run->begin_s, stamp);
    run->end_s = fmax(run->end_s, stamp);
}

/* The runs of the log; those past the last that there is room for are judged by their own rows. */
static void describe_runs(struct train_work *w, struct knee_train_log *log)
{
    log->run_count = w->runs < KNEE_TRAIN_RUNS ? w->runs : KNEE_TRAIN_RUNS;
    for (unsigned k = 0; k < log->run_count; k++) {
        struct knee_train_run *run = &log->runs[k];
        *run = (struct knee_train_run){NAN, NAN, NAN, NAN, NAN, 0, true};
        run->step_s = run_median(w, k, &run->timed);
    }
    for (size_t i = 0; i < w->count; i++)
        if (w->run[i] < log->run_count && isnan(knee_train_get(w, i, TRAIN_EVAL)))
            grow_run(w, i, &log->runs[w->run[i]]);
}

/* The last run that is long enough to represent the job: the run started last is the current one.
 */
static double usual_step(const struct knee_train_log *log)
{
    size_t most = 0;
    double usual = NAN;
    for (size_t k = 0; k < log->run_count; k++)
        if (log->runs[k].timed > most) {
            most = log->runs[k].timed;
            usual = log->runs[k].step_s;
        }
    for (size_t k = 0; k < log->run_count; k++)
        if (log->runs[k].timed >= TRAIN_WARM_ROWS &&
            (double)log->runs[k].timed >= LONG_RUN * (double)most)
            usual = log->runs[k].step_s;
    return usual;
}

/* Leaves out the runs that do not take as long as the job does now. */
static void keep_runs(struct train_work *w, struct knee_train_log *log,
                      struct knee_train_counts *counts)
{
    size_t kept = 0;
    double usual = usual_step(log);
    for (size_t k = 0; k < log->run_count; k++)
        log->runs[k].used = isnan(usual) || log->runs[k].timed == 0 ||
                            fabs(log->runs[k].step_s / usual - 1) <= SAME_JOB;
    for (size_t i = 0; i < w->count; i++) {
        if (w->run[i] < log->run_count && !log->runs[w->run[i]].used) {
            counts->left_out++;
            continue;
        }
        w->raw[kept] = w->raw[i];
        w->seconds[kept] = w->seconds[i];
        w->run[kept++] = w->run[i];
    }
    w->count = kept;
}

/* ---- Figures ---- */

static size_t collect(struct train_work *w, size_t skip)
{
    size_t used = 0;
    for (size_t i = 0; i < w->count; i++)
        if (!isnan(w->seconds[i])) {
            if (skip > 0)
                skip--;
            else
                w->scratch[used++] = w->seconds[i];
        }
    return used;
}

/* How many of the first rows are not like the rest. */
static size_t warm_up(struct train_work *w)
{
    size_t count = collect(w, 0), skip = 0, most = count / 2;
    if (count < 2)
        return 0;
    if (count < TRAIN_WARM_ROWS) { /* a first epoch that is slower: it has the start-up in it */
        double first = w->scratch[0];
        size_t row = 0;
        while (isnan(w->seconds[row]))
            row++;
        bool epoch = !isnan(knee_train_get(w, row, TRAIN_TOTAL)) &&
                     isnan(knee_train_get(w, row, TRAIN_STEP));
        return epoch && first > FIRST_SLOW * knee_median(w->scratch + 1, count - 1);
    }
    double usual = knee_median(w->scratch, collect(w, count / 2));
    for (size_t i = 0; i < w->count && skip < most; i++) {
        if (isnan(w->seconds[i]))
            continue;
        if (fabs(w->seconds[i] / usual - 1) <= WARM_OFF)
            break;
        skip++;
    }
    return skip;
}

static void set_spread(const double *seconds, size_t count, struct knee_train_log *log)
{
    double sum = 0, sum2 = 0, kept = 0;
    for (size_t i = 0; i < count; i++) {
        double off = seconds[i] / log->median_s - 1;
        if (seconds[i] > OUTLIER * log->median_s)
            continue;
        sum += off, sum2 += off * off, kept++;
    }
    double variance = kept > 1 ? (sum2 - sum * sum / kept) / (kept - 1) : NAN;
    log->error = kept > 1 ? 1.2533 * sqrt(fmax(variance, 0) / kept) : NAN;
}

/* Outliers, and whether they come at equal distances. */
static void find_outliers(struct train_work *w, size_t skip, struct knee_train_log *log)
{
    size_t gaps = 0, alike = 0;
    double last = NAN, excess = 0;
    for (size_t i = 0, timed = 0; i < w->count; i++) {
        if (isnan(w->seconds[i]) || timed++ < skip || !(w->seconds[i] > OUTLIER * log->median_s))
            continue;
        double at =
            isnan(knee_train_get(w, i, TRAIN_STEP)) ? (double)i : knee_train_get(w, i, TRAIN_STEP);
        log->counts.outliers++;
        excess += w->seconds[i] - log->median_s;
        if (at > last)
            w->scratch[gaps++] = at - last;
        last = at;
    }
    log->outlier_s = log->counts.outliers ? excess / (double)log->counts.outliers : NAN;
    log->outlier_share = excess / (excess + (double)log->timed * log->median_s);
    log->outlier_every = NAN;
    if (gaps < 2)
        return;
    double usual = knee_median(w->scratch, gaps);
    for (size_t i = 0; i < gaps; i++)
        alike += fabs(w->scratch[i] / usual - rint(w->scratch[i] / usual)) <= 0.02;
    if (alike * 10 >= gaps * 6)
        log->outlier_every = usual;
}

/* Tokens per second of all workers, by what is printed or by batch and sequence. */
static double tokens_per_s(struct train_work *w, const struct knee_train_log *log)
{
    double all = knee_train_median_of(w, TRAIN_TOKENS_PER_S);
    if (isnan(all))
        all = log->batch * log->seq / log->median_s;
    if (isnan(all))
        all = knee_train_median_of(w, TRAIN_WORKER_TOKENS) * log->workers;
    return all;
}

/* The spread of the differences of a clock, largest over smallest. */
static double widest(const struct train_work *w)
{
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < w->count; i++)
        if (!isnan(w->seconds[i])) {
            low = fmin(low, w->seconds[i]);
            high = fmax(high, w->seconds[i]);
        }
    return high / low;
}

/* A clock of whole seconds is too coarse for single steps of a short run, and so are a few
 * differences over many steps. Then the time from the first reading to the last is used, of the run
 * with the most steps. NaN: the clock is good enough. */
static double coarse_seconds(const struct train_work *w, const struct knee_train_log *log)
{
    size_t most = 0, begin = 0;
    double found = NAN, left_out_s = 0, left_out = 0; /* between epochs of unknown length */
    bool stamps = log->timing == KNEE_TIMED_STAMP;
    enum train_what clock = stamps ? TRAIN_STAMP : TRAIN_ELAPSED;
    if (!stamps && log->timing != KNEE_TIMED_ELAPSED)
        return NAN;
    bool few = w->count < TRAIN_WARM_ROWS && w->count > 1 && widest(w) < 2 &&
               knee_train_steps_between(w, 0, 1) > 1;
    if (knee_train_tick(w, clock) < 1 && !few)
        return NAN;
    for (size_t i = 0; i < w->count; i++) {
        bool gap = i > begin + 1 && knee_train_steps_between(w, i - 1, i) >
                                        3 * knee_train_steps_between(w, begin, begin + 1);
        if (w->run[i] != w->run[begin] || gap) {
            begin = i;
            left_out = left_out_s = 0;
        }
        if (i > begin && knee_train_unknown_steps(w, i - 1, i)) {
            left_out += knee_train_steps_between(w, i - 1, i);
            left_out_s += knee_train_get(w, i, clock) - knee_train_get(w, i - 1, clock);
        }
        double steps = knee_train_steps_between(w, begin, i) - left_out;
        double seconds =
            (knee_train_get(w, i, clock) - knee_train_get(w, begin, clock) - left_out_s) / steps;
        if (i - begin > most && !isnan(knee_train_possible(seconds))) {
            most = i - begin;
            found = seconds;
        }
    }
    return most < TRAIN_COARSE ? found : NAN;
}

/* Median of the steps with this parity after the first `skip` timed rows, NaN unless there are
 * enough and most are near it. */
static double parity_median(struct train_work *w, size_t skip, int parity)
{
    size_t used = 0, near = 0;
    for (size_t i = 0, timed = 0; i < w->count; i++) {
        if (isnan(w->seconds[i]) || timed++ < skip)
            continue;
        if (fmod(knee_train_get(w, i, TRAIN_STEP), 2) == parity)
            w->scratch[used++] = w->seconds[i];
    }
    double middle = knee_median(w->scratch, used);
    for (size_t i = 0; i < used; i++)
        near += fabs(w->scratch[i] / middle - 1) <= ALTERNATE_NEAR;
    return used >= TRAIN_WARM_ROWS && near * 10 >= used * 8 ? middle : NAN;
}

/* Where every second step is longer (an optimizer that runs every other step) the median of all is
 * one of the two by chance; a step takes what two of them take, halved. NaN: they do not alternate.
 */
static double alternating_seconds(struct train_work *w, size_t skip)
{
    double even = parity_median(w, skip, 0), odd = parity_median(w, skip, 1);
    return fabs(even / odd - 1) > ALTERNATE_OFF ? (even + odd) / 2 : NAN;
}

static void set_figures(struct train_work *w, struct knee_train_log *log)
{
    size_t skip = warm_up(w), count = collect(w, skip);
    double coarse = coarse_seconds(w, log);
    size_t late = skip + (count >= TRAIN_WARM_ROWS ? count / 2 : 0);
    double alternating = alternating_seconds(w, late);
    collect(w, skip);
    log->counts.warm_up = skip;
    log->timed = count;
    size_t early = count >= TRAIN_WARM_ROWS ? count / 2 : 0;
    log->median_s = knee_median(w->scratch + early, count - early);
    log->alternates = !isnan(alternating) && isnan(coarse);
    if (log->alternates)
        log->median_s = alternating;
    if (!isnan(coarse))
        log->median_s = coarse;
    qsort(w->scratch + early, count - early, sizeof *w->scratch, knee_ascending);
    log->p95_s = count ? w->scratch[early + (size_t)ceil(0.95 * (double)(count - early - 1))] : NAN;
    set_spread(w->scratch + early, count - early, log);
    find_outliers(w, skip, log);
    log->tokens_per_s = tokens_per_s(w, log);
    log->tflops = knee_train_median_of(w, TRAIN_TFLOPS);
}

/* Seconds of a step that wait for data. A single step's do not go with the mean of all; more than
 * the step itself is that of other steps. */
static double data_seconds(struct train_work *w, const struct knee_train_log *log)
{
    double mean = knee_train_median_of(w, TRAIN_DATA_MEAN_S);
    double data = log->timing == KNEE_TIMED_PRINTED || isnan(mean)
                      ? knee_train_median_of(w, TRAIN_DATA_S)
                      : mean;
    return data <= log->median_s ? data : NAN;
}

/* ---- Rows that go out ---- */

static struct knee_train_row row_of(const struct train_work *w, size_t i,
                                    const struct knee_train_log *log)
{
    double batch =
        isnan(knee_train_get(w, i, TRAIN_BATCH)) ? log->batch : knee_train_get(w, i, TRAIN_BATCH);
    double samples = knee_train_get(w, i, TRAIN_SAMPLES), step = knee_train_get(w, i, TRAIN_STEP);
    return (struct knee_train_row){
        .step = isnan(step) && batch > 0 ? samples / batch : step,
        .step_s = w->seconds[i],
        .batch = batch,
        .samples = isnan(samples) ? step * batch : samples,
        .tokens_per_s = knee_train_get(w, i, TRAIN_TOKENS_PER_S),
        .loss = knee_train_get(w, i, TRAIN_LOSS),
        .eval_loss = knee_train_get(w, i, TRAIN_EVAL),
        .stamp_s = knee_train_get(w, i, TRAIN_STAMP),
        .run = w->run[i],
        .skipped = knee_train_get(w, i, TRAIN_SKIPPED) > 0,
    };
}

static knee_status write_rows(struct train_work *w, struct knee_train_log *log,
                              struct knee_err *err)
{
    log->rows = knee_resize(w->alloc, NULL, (w->count + 1) * sizeof *log->rows);
    if (!log->rows)
        return knee_fail(err, KNEE_SYSTEM, log->name, "out of memory");
    for (size_t i = 0; i < w->count; i++) {
        log->rows[i] = row_of(w, i, log);
        log->skipped += log->rows[i].skipped;
    }
    log->row_count = w->count;
    return KNEE_OK;
}

/* Rates may have three digits: of the counts that they allow a multiple of eight is the likeliest.
 */
static double whole_workers(double ratio)
{
    double eights = 8 * rint(ratio / 8);
    return eights >= 64 && fabs(ratio / eights - 1) <= 0.01 ? eights : rint(ratio);
}

/* Batch and GPU count, if only the rows give them. */
static void complete_job(struct train_work *w, struct knee_train_log *log)
{
    double batch = knee_train_median_of(w, TRAIN_BATCH);
    double tokens = knee_train_median_of(w, TRAIN_BATCH_TOKENS);
    if (!isnan(batch))
        log->batch = batch;
    if (isnan(log->batch)) /* nanotron counted sequences before it counted tokens */
        log->batch = tokens < 0.5 * knee_train_median_of(w, TRAIN_TOKENS_PER_S) *
                                  knee_train_median_of(w, TRAIN_SECONDS)
                         ? tokens
                         : tokens / log->seq;
    double workers = whole_workers(knee_train_median_of(w, TRAIN_TOKENS_PER_S) /
                                   knee_train_median_of(w, TRAIN_WORKER_TOKENS));
    if (isnan(log->workers) && workers >= 1 && workers <= KNEE_WORKERS_MAX) {
        log->workers = workers;
        log->workers_from = "rate of all over rate of one";
    }
}

/* All rows that have a step and a stamp, on the clock. */
static knee_status account(const struct knee_train_reader *r, const struct train_work *w,
                           struct knee_train_log *log, struct knee_err *err)
{
    struct train_point *points = knee_resize(w->alloc, NULL, (w->count + 1) * sizeof *points);
    size_t used = 0;
    bool evaluation = false;
    if (!points)
        return knee_fail(err, KNEE_SYSTEM, log->name, "out of memory");
    for (size_t i = 0; i < w->count; i++) {
        double step = knee_train_get(w, i, TRAIN_STEP), stamp = knee_train_get(w, i, TRAIN_STAMP);
        evaluation = evaluation || !isnan(knee_train_get(w, i, TRAIN_EVAL));
        bool later = used == 0 || stamp >= points[used - 1].stamp_s;
        if (isnan(step) || isnan(stamp) || !later || !isnan(knee_train_get(w, i, TRAIN_EVAL)))
            continue;
        points[used++] = (struct train_point){stamp, step, w->seconds[i], w->run[i], evaluation};
        evaluation = false;
    }
    knee_train_account(r, points, used, log);
    knee_resize(w->alloc, points, 0);
    return KNEE_OK;
}

static knee_status nothing_found(const struct knee_train_reader *r, struct knee_err *err)
{
    return knee_fail_hint(
        err, KNEE_INPUT, r->name,
        "docs/reference/scale.md lists the formats; any table with columns step and "
        "step_s will do",
        "no training steps found");
}

static knee_status make_room(struct train_work *w, size_t rows)
{
    w->seconds = knee_resize(w->alloc, NULL, (rows + 1) * sizeof *w->seconds);
    w->scratch = knee_resize(w->alloc, NULL, (rows + 1) * sizeof *w->scratch);
    w->run = knee_resize(w->alloc, NULL, (rows + 1) * sizeof *w->run);
    return w->seconds && w->scratch && w->run ? KNEE_OK : KNEE_SYSTEM;
}

static void release(struct train_work *w)
{
    knee_resize(w->alloc, w->seconds, 0);
    knee_resize(w->alloc, w->scratch, 0);
    knee_resize(w->alloc, w->run, 0);
}

knee_status knee_train_steps_finish(struct knee_train_reader *r, struct knee_train_log *log,
                                    struct knee_err *err)
{
    struct train_work w = {.raw = r->raw, .alloc = r->alloc};
    if (r->failed || r->arguments.failed || r->deepspeed.failed || r->document.failed ||
        r->kept.failed)
        return knee_fail(err, KNEE_SYSTEM, r->name, "out of memory");
    drop_still_epochs(r);
    if (r->raw_count == 0)
        return nothing_found(r, err);
    unsigned format = main_format(r);
    if (make_room(&w, r->raw_count)) {
        release(&w);
        return knee_fail(err, KNEE_SYSTEM, r->name, "out of memory");
    }
    w.count = keep_format(r, format, log);
    for (size_t i = 0; i < w.count; i++) /* "Total optimization steps = 375" */
        if (isnan(w.raw[i].value[TRAIN_RUN_STEPS]))
            w.raw[i].value[TRAIN_RUN_STEPS] = r->facts.run_steps;
    w.flags = knee_train_formats[format].flags;
    w.lines = knee_train_formats[format].read == knee_train_read_line;
    find_runs(&w, &r->counts);
    log->format = knee_train_formats[format].name;
    knee_train_facts_finish(&r->facts, &r->arguments, &r->deepspeed, log);
    complete_job(&w, log);
    w.workers = log->workers;
    log->timing = knee_train_seconds(&w, log->batch, log->seq);
    describe_runs(&w, log);
    log->median_s = knee_train_median_seconds(&w); /* for runs that are not described */
    knee_status status = account(r, &w, log, err);
    keep_runs(&w, log, &r->counts);
    complete_job(&w, log); /* once more: the batch of the runs that are left */
    log->counts = r->counts;
    log->counts.runs = w.runs;
    set_figures(&w, log);
    log->account.step_s = log->median_s;
    log->data_s = data_seconds(&w, log);
    log->comm_s = knee_train_median_of(&w, TRAIN_COMM_S);
    if (!status)
        status = write_rows(&w, log, err);
    knee_train_compare_sources(&w, log); /* last: it takes the room of the seconds */
    release(&w);
    return status;
}

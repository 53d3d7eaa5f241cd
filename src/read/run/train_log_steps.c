/* SPDX-License-Identifier: MIT */
/*
 * From rows to steps. One format speaks for the log (the first of the table that has times); rows
 * fall into runs where the step number goes back; runs that take as long as the longest one are one
 * job with restarts, others are left out and counted. Seconds come from what is printed, else from
 * differences of elapsed time, rates with the batch, or time stamps. The first rows are left out
 * while they are not like the rest; the median is that of the later half, the job as it runs now.
 */
#include "read/run/train_log.h"

#include "base/error.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAME_JOB       0.2 /* medians of runs that count as one job differ by less */
#define WARM_ROWS      8   /* fewer rows than this are all kept */
#define WARM_OFF       0.25
#define OUTLIER        1.5
#define ALTERNATE_OFF  0.1
#define ALTERNATE_NEAR 0.05
#define COARSE_STEPS   100 /* a difference of a clock counts once it has this many ticks */
#define SAMPLES_TRUST  0.05

const char *knee_train_timing_name(enum knee_train_timing timing)
{
    static const char *const names[KNEE_TRAIN_TIMINGS] = {
        [KNEE_TIMED_NOT] = "not timed",        [KNEE_TIMED_PRINTED] = "printed per step",
        [KNEE_TIMED_ELAPSED] = "elapsed time", [KNEE_TIMED_RATE] = "batch over rate",
        [KNEE_TIMED_STAMP] = "time stamps",    [KNEE_TIMED_WHOLE_RUN] = "whole run over its steps",
    };
    return timing < KNEE_TRAIN_TIMINGS ? names[timing] : "?";
}

/* One row under way: what was read, and what was made of it. */
struct work {
    struct train_raw *raw;
    size_t count;
    double *seconds;
    unsigned *run;
    double *scratch;
    size_t runs;
    unsigned flags;
    const struct knee_alloc *alloc;
};

static double get(const struct work *w, size_t i, enum train_what what)
{
    return w->raw[i].value[what];
}

static bool known(double value)
{
    return !isnan(value);
}

static double positive(double value)
{
    return value > 0 && value < 1e9 ? value : NAN;
}

/* ---- Which format, which rows ---- */

static bool has_time(const struct train_raw *raw)
{
    static const enum train_what ways[] = {
        TRAIN_SECONDS,      TRAIN_ELAPSED,       TRAIN_STAMP,       TRAIN_SAMPLES_PER_S,
        TRAIN_TOKENS_PER_S, TRAIN_WORKER_TOKENS, TRAIN_STEPS_PER_S, TRAIN_RUNTIME,
        TRAIN_INTERVAL,     TRAIN_PART};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (raw->value[ways[i]] > 0)
            return true;
    return false;
}

/* The first format of the table with times, else the first with anything. */
static unsigned main_format(const struct knee_train_reader *r)
{
    unsigned timed = (unsigned)knee_train_format_count, any = timed;
    for (size_t i = 0; i < r->raw_count; i++) {
        unsigned f = r->raw[i].format;
        any = f < any ? f : any;
        if (f < timed && has_time(&r->raw[i]))
            timed = f;
    }
    return timed < knee_train_format_count ? timed : any;
}

/* Rows of other formats say the same steps again; only their evaluations are news. */
static size_t keep_format(struct knee_train_reader *r, unsigned format)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->raw_count; i++) {
        const struct train_raw *raw = &r->raw[i];
        bool evaluation = !isnan(raw->value[TRAIN_EVAL]) && !isnan(raw->value[TRAIN_STEP]);
        if (raw->format == format || evaluation)
            r->raw[kept++] = r->raw[i];
        else
            r->counts.duplicates++;
    }
    return kept;
}

/* Numbers the runs and drops steps that were there already. */
static void find_runs(struct work *w, struct knee_train_counts *counts)
{
    size_t kept = 0;
    double last = -INFINITY, elapsed = -INFINITY;
    w->runs = w->count > 0;
    for (size_t i = 0; i < w->count; i++) {
        double step = get(w, i, TRAIN_STEP), now = get(w, i, TRAIN_ELAPSED);
        bool evaluation = !isnan(get(w, i, TRAIN_EVAL)), each = w->flags & TRAIN_EACH_LINE;
        bool parts = !isnan(get(w, i, TRAIN_PART));
        if (!each && !isnan(step) && !evaluation && step <= last) {
            bool later = now >= elapsed; /* another rank's bar */
            if (parts || step == last || later) {
                bool again = step == last && !parts && now < elapsed - 1;
                if (!again) {
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
        w->run[kept++] = (unsigned)w->runs - 1;
    }
    w->count = kept;
}

/* ---- Seconds ---- */

static size_t by_printed(struct work *w, double batch, double seq)
{
    size_t found = 0;
    (void)batch;
    (void)seq;
    for (size_t i = 0; i < w->count; i++) {
        w->seconds[i] = positive(get(w, i, TRAIN_SECONDS));
        found += known(w->seconds[i]);
    }
    return found;
}

/* Micro-batches of a log that marks no steps: each is one. */
static size_t by_part(struct work *w, double batch, double seq)
{
    size_t found = 0;
    (void)batch;
    (void)seq;
    for (size_t i = 0; i < w->count; i++) {
        w->seconds[i] = positive(get(w, i, TRAIN_PART));
        found += known(w->seconds[i]);
    }
    return found;
}

/* Seconds since the row before over the steps since then. */
static size_t by_interval(struct work *w, double batch, double seq)
{
    size_t found = 0;
    (void)batch;
    (void)seq;
    for (size_t i = 0; i < w->count; i++) {
        bool follows = i > 0 && w->run[i] == w->run[i - 1];
        double steps = follows ? get(w, i, TRAIN_STEP) - get(w, i - 1, TRAIN_STEP) : NAN;
        w->seconds[i] = steps > 0 ? positive(get(w, i, TRAIN_INTERVAL) / steps) : NAN;
        found += known(w->seconds[i]);
    }
    return found;
}

/* Steps between two rows: by their numbers, or one per line. */
static double steps_between(const struct work *w, size_t from, size_t to)
{
    if (w->flags & TRAIN_EACH_LINE)
        return (double)(to - from);
    return get(w, to, TRAIN_STEP) - get(w, from, TRAIN_STEP);
}

/* The smallest tick of a clock: 1 s when all readings are whole seconds. */
static double tick_of(const struct work *w, enum train_what clock)
{
    for (size_t i = 0; i < w->count; i++)
        if (!isnan(get(w, i, clock)) && get(w, i, clock) != floor(get(w, i, clock)))
            return 1e-3;
    return 1;
}

/* Differences over as many rows as give the clock enough ticks. */
static size_t differences(struct work *w, enum train_what clock, size_t reach)
{
    size_t found = 0;
    for (size_t i = 0; i < w->count; i++) {
        w->seconds[i] = NAN;
        if (i < reach || w->run[i] != w->run[i - reach])
            continue;
        double steps = steps_between(w, i - reach, i);
        double seconds = (get(w, i, clock) - get(w, i - reach, clock)) / steps;
        if (steps > 0)
            w->seconds[i] = positive(seconds);
        found += known(w->seconds[i]);
    }
    return found;
}

static size_t by_clock(struct work *w, enum train_what clock)
{
    size_t found = differences(w, clock, 1), used = 0, reach = 1;
    for (size_t i = 1; i < w->count; i++)
        if (!isnan(w->seconds[i]) && w->run[i] == w->run[i - 1])
            w->scratch[used++] = get(w, i, clock) - get(w, i - 1, clock);
    double usual = knee_median(w->scratch, used), tick = tick_of(w, clock);
    while (found > 4 && usual > 0 && usual * (double)reach < COARSE_STEPS * tick &&
           reach < used / 4)
        reach++;
    return reach > 1 ? differences(w, clock, reach) : found;
}

static size_t by_elapsed(struct work *w, double batch, double seq)
{
    (void)batch;
    (void)seq;
    return by_clock(w, TRAIN_ELAPSED);
}

static size_t by_stamp(struct work *w, double batch, double seq)
{
    (void)batch;
    (void)seq;
    return by_clock(w, TRAIN_STAMP);
}

static double rate_seconds(const struct work *w, size_t i, double batch, double seq)
{
    double own_batch = isnan(get(w, i, TRAIN_BATCH)) ? batch : get(w, i, TRAIN_BATCH);
    double tokens = get(w, i, TRAIN_TOKENS);
    if (isnan(tokens))
        tokens = own_batch * seq;
    bool whole = !isnan(get(w, i, TRAIN_RUNTIME)); /* a mean of three digits: see by_whole_run() */
    const double ways[] = {whole ? NAN : 1 / get(w, i, TRAIN_STEPS_PER_S),
                           own_batch / get(w, i, TRAIN_SAMPLES_PER_S),
                           tokens / get(w, i, TRAIN_TOKENS_PER_S)};
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        if (!isnan(positive(ways[k])))
            return ways[k];
    return NAN;
}

/* Rows that print the tokens of their own step beside the rate: steps per second beside them have
 * fewer digits. */
static size_t by_own_rate(struct work *w, double batch, double seq)
{
    size_t found = 0;
    for (size_t i = 0; i < w->count; i++) {
        double tokens = get(w, i, TRAIN_TOKENS);
        w->seconds[i] = positive(tokens / get(w, i, TRAIN_TOKENS_PER_S));
        if (isnan(w->seconds[i]) && !isnan(tokens))
            w->seconds[i] = rate_seconds(w, i, batch, seq);
        found += known(w->seconds[i]);
    }
    return found;
}

static size_t by_rate(struct work *w, double batch, double seq)
{
    size_t found = 0;
    for (size_t i = 0; i < w->count; i++) {
        w->seconds[i] = rate_seconds(w, i, batch, seq);
        found += known(w->seconds[i]);
    }
    return found;
}

/* Seconds of the run over its steps. Rates of three digits are only good above 0.05 a second. */
static size_t by_whole_run(struct work *w, double batch, double seq)
{
    size_t found = 0;
    (void)batch;
    (void)seq;
    for (size_t i = 0; i < w->count; i++) {
        double steps = get(w, i, TRAIN_RUN_STEPS), rate = get(w, i, TRAIN_STEPS_PER_S);
        w->seconds[i] = positive(get(w, i, TRAIN_RUNTIME) / steps);
        if (isnan(w->seconds[i]) && rate >= SAMPLES_TRUST)
            w->seconds[i] = positive(1 / rate);
        found += known(w->seconds[i]);
    }
    return found;
}

static const struct {
    enum knee_train_timing timing;
    size_t (*find)(struct work *w, double batch, double seq);
    size_t enough;
} timings[] = {
    {KNEE_TIMED_PRINTED, by_printed, 1},     {KNEE_TIMED_PRINTED, by_part, 1},
    {KNEE_TIMED_PRINTED, by_interval, 1},    {KNEE_TIMED_ELAPSED, by_elapsed, 1},
    {KNEE_TIMED_RATE, by_own_rate, 1},       {KNEE_TIMED_STAMP, by_stamp, 4},
    {KNEE_TIMED_RATE, by_rate, 1},           {KNEE_TIMED_STAMP, by_stamp, 1},
    {KNEE_TIMED_WHOLE_RUN, by_whole_run, 1},
};

static enum knee_train_timing find_seconds(struct work *w, double batch, double seq)
{
    for (size_t i = 0; i < sizeof timings / sizeof *timings; i++)
        if (timings[i].find(w, batch, seq) >= timings[i].enough)
            return timings[i].timing;
    for (size_t i = 0; i < w->count; i++)
        w->seconds[i] = NAN;
    return KNEE_TIMED_NOT;
}

/* ---- Runs that belong together ---- */

static double run_median(struct work *w, unsigned run, size_t *timed)
{
    size_t used = 0;
    for (size_t i = 0; i < w->count; i++)
        if (w->run[i] == run && !isnan(w->seconds[i]))
            w->scratch[used++] = w->seconds[i];
    *timed = used;
    return knee_median(w->scratch, used);
}

/* Leaves out the runs that do not take as long as the longest one. */
static void keep_runs(struct work *w, struct knee_train_counts *counts)
{
    size_t most = 0, timed, kept = 0;
    double usual = NAN;
    size_t runs = w->runs < 64 ? w->runs : 64; /* what comes after is judged by its own rows */
    bool keep[64];
    for (unsigned run = 0; run < runs; run++) {
        double m = run_median(w, run, &timed);
        if (timed > most) {
            most = timed;
            usual = m;
        }
    }
    for (unsigned run = 0; run < runs; run++) {
        double m = run_median(w, run, &timed);
        keep[run] = isnan(usual) || timed == 0 || fabs(m / usual - 1) <= SAME_JOB;
    }
    for (size_t i = 0; i < w->count; i++) {
        if (w->run[i] < runs && !keep[w->run[i]]) {
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

static size_t collect(struct work *w, size_t skip)
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
static size_t warm_up(struct work *w)
{
    size_t count = collect(w, 0), skip = 0, most = count / 2;
    if (count < WARM_ROWS)
        return 0;
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
static void find_outliers(struct work *w, size_t skip, struct knee_train_log *log)
{
    size_t gaps = 0, alike = 0;
    double last = NAN, excess = 0;
    for (size_t i = 0, timed = 0; i < w->count; i++) {
        if (isnan(w->seconds[i]) || timed++ < skip || !(w->seconds[i] > OUTLIER * log->median_s))
            continue;
        double at = isnan(get(w, i, TRAIN_STEP)) ? (double)i : get(w, i, TRAIN_STEP);
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

static double median_of(struct work *w, enum train_what what)
{
    size_t used = 0;
    for (size_t i = 0; i < w->count; i++)
        if (get(w, i, what) > 0)
            w->scratch[used++] = get(w, i, what);
    return knee_median(w->scratch, used);
}

/* Tokens per second of all workers, by what is printed or by batch and sequence. */
static double tokens_per_s(struct work *w, const struct knee_train_log *log)
{
    double all = median_of(w, TRAIN_TOKENS_PER_S);
    if (isnan(all))
        all = log->batch * log->seq / log->median_s;
    if (isnan(all))
        all = median_of(w, TRAIN_WORKER_TOKENS) * log->workers;
    return all;
}

/* A clock of whole seconds is no good for single steps of a short run: from its first reading to
 * its last one, of the run with the most. NaN: the clock is good enough. */
static double coarse_seconds(const struct work *w, const struct knee_train_log *log)
{
    size_t most = 0, begin = 0;
    double found = NAN;
    bool stamps = log->timing == KNEE_TIMED_STAMP;
    enum train_what clock = stamps ? TRAIN_STAMP : TRAIN_ELAPSED;
    if ((!stamps && log->timing != KNEE_TIMED_ELAPSED) || tick_of(w, clock) < 1)
        return NAN;
    for (size_t i = 0; i < w->count; i++) {
        bool gap =
            i > begin + 1 && steps_between(w, i - 1, i) > 3 * steps_between(w, begin, begin + 1);
        begin = w->run[i] == w->run[begin] && !gap ? begin : i;
        double steps = steps_between(w, begin, i);
        double seconds = (get(w, i, clock) - get(w, begin, clock)) / steps;
        if (i - begin > most && !isnan(positive(seconds))) {
            most = i - begin;
            found = seconds;
        }
    }
    return most < COARSE_STEPS ? found : NAN;
}

/* Median of the steps with this parity after the first `skip` timed rows, NaN unless there are
 * enough and most are near it. */
static double parity_median(struct work *w, size_t skip, int parity)
{
    size_t used = 0, near = 0;
    for (size_t i = 0, timed = 0; i < w->count; i++) {
        if (isnan(w->seconds[i]) || timed++ < skip)
            continue;
        if (fmod(get(w, i, TRAIN_STEP), 2) == parity)
            w->scratch[used++] = w->seconds[i];
    }
    double middle = knee_median(w->scratch, used);
    for (size_t i = 0; i < used; i++)
        near += fabs(w->scratch[i] / middle - 1) <= ALTERNATE_NEAR;
    return used >= WARM_ROWS && near * 10 >= used * 8 ? middle : NAN;
}

/* Where every second step is longer (an optimizer that runs every other step) the median of all is
 * one of the two by chance; a step takes what two of them take, halved. NaN: they do not alternate.
 */
static double alternating_seconds(struct work *w, size_t skip)
{
    double even = parity_median(w, skip, 0), odd = parity_median(w, skip, 1);
    return fabs(even / odd - 1) > ALTERNATE_OFF ? (even + odd) / 2 : NAN;
}

static void set_figures(struct work *w, struct knee_train_log *log)
{
    size_t skip = warm_up(w), count = collect(w, skip);
    double coarse = coarse_seconds(w, log);
    size_t late = skip + (count >= WARM_ROWS ? count / 2 : 0);
    double alternating = alternating_seconds(w, late);
    collect(w, skip);
    log->counts.warm_up = skip;
    log->timed = count;
    size_t early = count >= WARM_ROWS ? count / 2 : 0;
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
    log->tflops = median_of(w, TRAIN_TFLOPS);
}

/* ---- Rows that go out ---- */

static struct knee_train_row row_of(const struct work *w, size_t i,
                                    const struct knee_train_log *log)
{
    double batch = isnan(get(w, i, TRAIN_BATCH)) ? log->batch : get(w, i, TRAIN_BATCH);
    double samples = get(w, i, TRAIN_SAMPLES), step = get(w, i, TRAIN_STEP);
    return (struct knee_train_row){
        .step = isnan(step) && batch > 0 ? samples / batch : step,
        .step_s = w->seconds[i],
        .batch = batch,
        .samples = isnan(samples) ? step * batch : samples,
        .tokens_per_s = get(w, i, TRAIN_TOKENS_PER_S),
        .loss = get(w, i, TRAIN_LOSS),
        .eval_loss = get(w, i, TRAIN_EVAL),
    };
}

static knee_status write_rows(struct work *w, struct knee_train_log *log, struct knee_err *err)
{
    log->rows = knee_resize(w->alloc, NULL, (w->count + 1) * sizeof *log->rows);
    if (!log->rows)
        return knee_fail(err, KNEE_SYSTEM, log->name, "out of memory");
    for (size_t i = 0; i < w->count; i++)
        log->rows[i] = row_of(w, i, log);
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

/* Batch and workers that only the rows know. */
static void complete_job(struct work *w, struct knee_train_log *log)
{
    double batch = median_of(w, TRAIN_BATCH);
    double tokens = median_of(w, TRAIN_BATCH_TOKENS);
    if (!isnan(batch))
        log->batch = batch;
    if (isnan(log->batch)) /* nanotron counted sequences before it counted tokens */
        log->batch = tokens < 0.5 * median_of(w, TRAIN_TOKENS_PER_S) * median_of(w, TRAIN_SECONDS)
                         ? tokens
                         : tokens / log->seq;
    double workers =
        whole_workers(median_of(w, TRAIN_TOKENS_PER_S) / median_of(w, TRAIN_WORKER_TOKENS));
    if (isnan(log->workers) && workers >= 1 && workers <= KNEE_WORKERS_MAX) {
        log->workers = workers;
        log->workers_from = "rate of all over rate of one";
    }
}

static knee_status nothing_found(const struct knee_train_reader *r, struct knee_err *err)
{
    knee_fail(err, KNEE_INPUT, r->name, "no line of it speaks of a training step");
    knee_hint(err,
              "docs/scale.md lists the formats; any table with columns step and step_s will do");
    return KNEE_INPUT;
}

static knee_status make_room(struct work *w, size_t rows)
{
    w->seconds = knee_resize(w->alloc, NULL, (rows + 1) * sizeof *w->seconds);
    w->scratch = knee_resize(w->alloc, NULL, (rows + 1) * sizeof *w->scratch);
    w->run = knee_resize(w->alloc, NULL, (rows + 1) * sizeof *w->run);
    return w->seconds && w->scratch && w->run ? KNEE_OK : KNEE_SYSTEM;
}

static void release(struct work *w)
{
    knee_resize(w->alloc, w->seconds, 0);
    knee_resize(w->alloc, w->scratch, 0);
    knee_resize(w->alloc, w->run, 0);
}

knee_status knee_train_steps_finish(struct knee_train_reader *r, struct knee_train_log *log,
                                    struct knee_err *err)
{
    struct work w = {.raw = r->raw, .alloc = r->alloc};
    if (r->failed || r->arguments.failed || r->deepspeed.failed || r->document.failed)
        return knee_fail(err, KNEE_SYSTEM, r->name, "out of memory");
    if (r->raw_count == 0)
        return nothing_found(r, err);
    unsigned format = main_format(r);
    if (make_room(&w, r->raw_count)) {
        release(&w);
        return knee_fail(err, KNEE_SYSTEM, r->name, "out of memory");
    }
    w.count = keep_format(r, format);
    for (size_t i = 0; i < w.count; i++) /* "Total optimization steps = 375" */
        if (isnan(w.raw[i].value[TRAIN_RUN_STEPS]))
            w.raw[i].value[TRAIN_RUN_STEPS] = r->facts.run_steps;
    w.flags = knee_train_formats[format].flags;
    find_runs(&w, &r->counts);
    log->format = knee_train_formats[format].name;
    knee_train_facts_finish(&r->facts, &r->arguments, &r->deepspeed, log);
    complete_job(&w, log);
    log->timing = find_seconds(&w, log->batch, log->seq);
    keep_runs(&w, &r->counts);
    complete_job(&w, log); /* once more: the batch of the runs that are left */
    log->counts = r->counts;
    log->counts.runs = w.runs;
    set_figures(&w, log);
    knee_status status = write_rows(&w, log, err);
    release(&w);
    return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * Seconds of a step. What is printed per step is the nearest to it; then differences of printed
 * elapsed time, the batch over a rate, differences of time stamps, a running mean, and at last the
 * whole run over its steps. One table has the order.
 */
#include "read/run/train_log.h"

#include "base/order.h"

#include <math.h>
#include <stdlib.h>

#define SHORTEST_S    1e-4 /* no training step is shorter */
#define SOURCES_OFF   0.1  /* between two sources of one log: worth a word */
#define MIXED         4    /* one row in so many out of order: several ranks print */
#define SAMPLES_TRUST 0.05
#define FEW_TICKS     20 /* of a clock: a difference is off by up to 5 % */
#define WIDE          2  /* spread of printed seconds: single steps, not means */

const char *knee_train_timing_name(enum knee_train_timing timing)
{
    static const char *const names[KNEE_TRAIN_TIMINGS] = {
        [KNEE_TIMED_NOT] = "not timed",         [KNEE_TIMED_PRINTED] = "printed per step",
        [KNEE_TIMED_ELAPSED] = "elapsed time",  [KNEE_TIMED_RATE] = "batch over rate",
        [KNEE_TIMED_STAMP] = "time stamps",     [KNEE_TIMED_MEAN] = "printed running mean",
        [KNEE_TIMED_BLOCK] = "blocks of steps", [KNEE_TIMED_WHOLE_RUN] = "whole run over its steps",
    };
    return timing < KNEE_TRAIN_TIMINGS ? names[timing] : "?";
}

static bool known(double value)
{
    return !isnan(value);
}

double knee_train_possible(double value)
{
    return value >= SHORTEST_S && value < 1e9 ? value : NAN;
}

static size_t by_printed(struct train_work *w, double batch, double seq)
{
    size_t found = 0;
    (void)batch;
    (void)seq;
    for (size_t i = 0; i < w->count; i++) {
        w->seconds[i] = knee_train_possible(knee_train_get(w, i, TRAIN_SECONDS));
        found += known(w->seconds[i]);
    }
    return found;
}

/* Micro-batches of a log that marks no steps: each is one. */
static size_t by_part(struct train_work *w, double batch, double seq)
{
    size_t found = 0;
    (void)batch;
    (void)seq;
    for (size_t i = 0; i < w->count; i++) {
        w->seconds[i] = knee_train_possible(knee_train_get(w, i, TRAIN_PART));
        found += known(w->seconds[i]);
    }
    return found;
}

/* Seconds since the row before over the steps since then. */
static size_t by_interval(struct train_work *w, double batch, double seq)
{
    size_t found = 0;
    (void)batch;
    (void)seq;
    for (size_t i = 0; i < w->count; i++) {
        bool follows = i > 0 && w->run[i] == w->run[i - 1];
        double steps =
            follows ? knee_train_get(w, i, TRAIN_STEP) - knee_train_get(w, i - 1, TRAIN_STEP) : NAN;
        w->seconds[i] =
            steps > 0 ? knee_train_possible(knee_train_get(w, i, TRAIN_INTERVAL) / steps) : NAN;
        found += known(w->seconds[i]);
    }
    return found;
}

/* Steps between two rows: by their numbers, or one per line. */
double knee_train_steps_between(const struct train_work *w, size_t from, size_t to)
{
    if (w->flags & TRAIN_EACH_LINE)
        return (double)(to - from);
    return knee_train_get(w, to, TRAIN_STEP) - knee_train_get(w, from, TRAIN_STEP);
}

/* The smallest tick of a clock: 1 s when all readings are whole seconds. */
double knee_train_tick(const struct train_work *w, enum train_what clock)
{
    for (size_t i = 0; i < w->count; i++)
        if (!isnan(knee_train_get(w, i, clock)) &&
            knee_train_get(w, i, clock) != floor(knee_train_get(w, i, clock)))
            return 1e-3;
    return 1;
}

/* Between two epochs whose number of steps is not printed. */
bool knee_train_unknown_steps(const struct train_work *w, size_t from, size_t to)
{
    double epoch = knee_train_get(w, to, TRAIN_EPOCH);
    return !w->counts_on && isnan(knee_train_get(w, to, TRAIN_TOTAL)) &&
           epoch > knee_train_get(w, from, TRAIN_EPOCH) &&
           epoch != knee_train_get(w, to, TRAIN_STEP);
}

/* Differences over as many rows as give the clock enough ticks. */
static size_t differences(struct train_work *w, enum train_what clock, size_t reach)
{
    size_t found = 0;
    for (size_t i = 0; i < w->count; i++) {
        w->seconds[i] = NAN;
        if (i < reach || w->run[i] != w->run[i - reach])
            continue;
        double steps = knee_train_steps_between(w, i - reach, i);
        double seconds =
            (knee_train_get(w, i, clock) - knee_train_get(w, i - reach, clock)) / steps;
        if (steps > 0 && !knee_train_unknown_steps(w, i - reach, i))
            w->seconds[i] = knee_train_possible(seconds);
        found += known(w->seconds[i]);
    }
    return found;
}

static size_t by_clock(struct train_work *w, enum train_what clock)
{
    size_t found = differences(w, clock, 1), used = 0, reach = 1;
    for (size_t i = 1; i < w->count; i++)
        if (!isnan(w->seconds[i]) && w->run[i] == w->run[i - 1])
            w->scratch[used++] = knee_train_get(w, i, clock) - knee_train_get(w, i - 1, clock);
    double usual = knee_median(w->scratch, used), tick = knee_train_tick(w, clock);
    while (found > 4 && usual > 0 && usual * (double)reach < TRAIN_COARSE * tick &&
           reach < used / 4)
        reach++;
    size_t wide = reach > 1 ? differences(w, clock, reach) : found;
    return 2 * wide >= found ? wide : differences(w, clock, 1); /* epochs of a few rows */
}

/* A clock of whole seconds that was read for a few of them says less than a mean that is printed
 * beside it. */
static bool too_short(const struct train_work *w, enum train_what clock)
{
    double low = NAN, high = NAN;
    bool mean = false;
    for (size_t i = 0; i < w->count; i++) {
        low = fmin(low, knee_train_get(w, i, clock));
        high = fmax(high, knee_train_get(w, i, clock));
        mean = mean || knee_train_get(w, i, TRAIN_MEAN_S) > 0;
    }
    double ticks = w->clocks > 0 ? TRAIN_COARSE * (double)w->clocks : FEW_TICKS;
    return mean && high - low < ticks * knee_train_tick(w, clock);
}

/* Not of several ranks that print between each other. */
static size_t by_elapsed(struct train_work *w, double batch, double seq)
{
    (void)batch;
    (void)seq;
    return too_short(w, TRAIN_ELAPSED) || w->mixed * MIXED > w->count ? 0
                                                                      : by_clock(w, TRAIN_ELAPSED);
}

/* What is printed as a mean of the steps before. */
static size_t by_mean(struct train_work *w, double batch, double seq)
{
    size_t found = 0;
    (void)batch;
    (void)seq;
    for (size_t i = 0; i < w->count; i++) {
        w->seconds[i] = knee_train_possible(knee_train_get(w, i, TRAIN_MEAN_S));
        found += known(w->seconds[i]);
    }
    return found;
}

static size_t by_stamp(struct train_work *w, double batch, double seq)
{
    (void)batch;
    (void)seq;
    return too_short(w, TRAIN_STAMP) ? 0 : by_clock(w, TRAIN_STAMP);
}

double knee_train_median_seconds(struct train_work *w)
{
    size_t used = 0;
    for (size_t i = 0; i < w->count; i++)
        if (!isnan(w->seconds[i]))
            w->scratch[used++] = w->seconds[i];
    return knee_median(w->scratch, used);
}

static double rate_seconds(const struct train_work *w, size_t i, double batch, double seq)
{
    double own_batch =
        isnan(knee_train_get(w, i, TRAIN_BATCH)) ? batch : knee_train_get(w, i, TRAIN_BATCH);
    double tokens = knee_train_get(w, i, TRAIN_TOKENS);
    if (isnan(tokens))
        tokens = own_batch * seq;
    bool whole = !isnan(
        knee_train_get(w, i, TRAIN_RUNTIME)); /* a mean of three digits: see by_whole_run() */
    const double ways[] = {whole ? NAN : 1 / knee_train_get(w, i, TRAIN_STEPS_PER_S),
                           own_batch / knee_train_get(w, i, TRAIN_SAMPLES_PER_S),
                           tokens / knee_train_get(w, i, TRAIN_TOKENS_PER_S)};
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        if (!isnan(knee_train_possible(ways[k])))
            return ways[k];
    return NAN;
}

/* Rows that print the tokens of their step and a rate: steps per second on the same row have fewer
 * digits. */
static size_t by_own_rate(struct train_work *w, double batch, double seq)
{
    size_t found = 0;
    for (size_t i = 0; i < w->count; i++) {
        double tokens = knee_train_get(w, i, TRAIN_TOKENS);
        w->seconds[i] = knee_train_possible(tokens / knee_train_get(w, i, TRAIN_TOKENS_PER_S));
        if (isnan(w->seconds[i]) && !isnan(tokens))
            w->seconds[i] = rate_seconds(w, i, batch, seq);
        found += known(w->seconds[i]);
    }
    return found;
}

static size_t by_rate(struct train_work *w, double batch, double seq)
{
    size_t found = 0;
    for (size_t i = 0; i < w->count; i++) {
        w->seconds[i] = rate_seconds(w, i, batch, seq);
        found += known(w->seconds[i]);
    }
    return found;
}

double knee_train_median_of(struct train_work *w, enum train_what what)
{
    size_t used = 0;
    for (size_t i = 0; i < w->count; i++)
        if (knee_train_get(w, i, what) > 0)
            w->scratch[used++] = knee_train_get(w, i, what);
    return knee_median(w->scratch, used);
}

/* Steps from one row to the next. */
static double usual_stride(struct train_work *w)
{
    size_t used = 0;
    for (size_t i = 1; i < w->count; i++) {
        double steps = w->run[i] == w->run[i - 1] ? knee_train_steps_between(w, i - 1, i) : NAN;
        if (steps > 0)
            w->scratch[used++] = steps;
    }
    return knee_median(w->scratch, used);
}

static bool agree(double a, double b)
{
    return fabs(a / b - 1) <= SOURCES_OFF;
}

/* Blocks of steps in MLPerf logs. They may include evaluations, so a rate printed next to them is
 * closer to the step, unless it contradicts them. In that case the rate is that of one GPU, or the
 * printed samples of an epoch are its steps. */
static size_t by_block(struct train_work *w, double batch, double seq)
{
    size_t found = 0;
    double block = knee_train_median_of(w, TRAIN_BLOCK_S);
    if (isnan(block))
        return 0;
    for (size_t i = 0; i < w->count; i++)
        found += known(w->seconds[i] = rate_seconds(w, i, batch, seq));
    double rate = knee_train_median_seconds(w), of_one = rate / w->workers;
    if (found > 0 && rate <= (1 + SOURCES_OFF) * block && rate >= 0.4 * block)
        return 0; /* by_rate() it is */
    double scale = agree(of_one, block) ? 1 : agree(of_one, block / batch) ? 1 / batch : 1;
    for (size_t i = 0; i < w->count; i++)
        w->seconds[i] = knee_train_possible(knee_train_get(w, i, TRAIN_BLOCK_S) * scale);
    return w->count;
}

/* Seconds of the run over its steps. Rates of three digits are only good above 0.05 a second. */
static size_t by_whole_run(struct train_work *w, double batch, double seq)
{
    size_t found = 0;
    (void)batch;
    (void)seq;
    for (size_t i = 0; i < w->count; i++) {
        double steps = knee_train_get(w, i, TRAIN_RUN_STEPS),
               rate = knee_train_get(w, i, TRAIN_STEPS_PER_S);
        w->seconds[i] = knee_train_possible(knee_train_get(w, i, TRAIN_RUNTIME) / steps);
        if (isnan(w->seconds[i]) && rate >= SAMPLES_TRUST)
            w->seconds[i] = knee_train_possible(1 / rate);
        if (isnan(w->seconds[i]))
            w->seconds[i] = knee_train_possible(1 / knee_train_get(w, i, TRAIN_RUN_RATE));
        found += known(w->seconds[i]);
    }
    return found;
}

static const struct {
    enum knee_train_timing timing;
    size_t (*find)(struct train_work *w, double batch, double seq);
    size_t enough;
} timings[] = {
    {KNEE_TIMED_PRINTED, by_printed, 1},     {KNEE_TIMED_PRINTED, by_part, 1},
    {KNEE_TIMED_PRINTED, by_interval, 1},    {KNEE_TIMED_ELAPSED, by_elapsed, 1},
    {KNEE_TIMED_RATE, by_own_rate, 1},       {KNEE_TIMED_STAMP, by_stamp, 4},
    {KNEE_TIMED_BLOCK, by_block, 1},         {KNEE_TIMED_RATE, by_rate, 1},
    {KNEE_TIMED_STAMP, by_stamp, 1},         {KNEE_TIMED_MEAN, by_mean, 1},
    {KNEE_TIMED_WHOLE_RUN, by_whole_run, 1},
};

static enum knee_train_timing find_seconds(struct train_work *w, double batch, double seq)
{
    for (size_t i = 0; i < sizeof timings / sizeof *timings; i++)
        if (timings[i].find(w, batch, seq) >= timings[i].enough)
            return timings[i].timing;
    for (size_t i = 0; i < w->count; i++)
        w->seconds[i] = NAN;
    return KNEE_TIMED_NOT;
}

/* How far apart a quarter and three quarters of the seconds are. */
static double spread(struct train_work *w)
{
    size_t used = 0;
    for (size_t i = 0; i < w->count; i++)
        if (!isnan(w->seconds[i]))
            w->scratch[used++] = w->seconds[i];
    if (used < 4)
        return NAN;
    qsort(w->scratch, used, sizeof *w->scratch, knee_ascending);
    return w->scratch[used - 1 - used / 4] / w->scratch[used / 4];
}

/* Seconds that count from the start of the run: "time: 812.5" in a line of step 1000. */
static bool grows_with_steps(const struct train_work *w)
{
    size_t grows = 0, pairs = 0;
    double first = NAN, last = NAN;
    for (size_t i = 1; i < w->count; i++) {
        double before = knee_train_get(w, i - 1, TRAIN_SECONDS),
               now = knee_train_get(w, i, TRAIN_SECONDS);
        if (w->run[i] != w->run[i - 1] || isnan(before) || isnan(now))
            continue;
        first = isnan(first) ? before : first;
        last = now;
        pairs++;
        grows += now > before;
    }
    return pairs + 1 >= TRAIN_WARM_ROWS && grows * 20 >= pairs * 19 && last > 3 * first;
}

/* What is printed beside a step is not always what one step takes: it may be the time since the
 * start, or since the line before (the stamps tell), or that of a single step now and then, which
 * is not what a step takes when the stamps say otherwise: AverageMeter's "0.6 (3.9)" of a job whose
 * loader stalls. */
static enum knee_train_timing check_printed(struct train_work *w, enum knee_train_timing timing)
{
    double printed = knee_train_median_seconds(w), mean = knee_train_median_of(w, TRAIN_MEAN_S);
    if (timing != KNEE_TIMED_PRINTED || isnan(knee_train_median_of(w, TRAIN_SECONDS)))
        return timing;
    if (grows_with_steps(w) && by_clock(w, TRAIN_SECONDS) > 1)
        return KNEE_TIMED_ELAPSED;
    by_printed(w, NAN, NAN);
    double wide = spread(w);
    size_t stamped = by_clock(w, TRAIN_STAMP);
    if (stamped > 0) {
        double stamps = knee_train_median_seconds(w), rows = usual_stride(w);
        bool since_line = rows > 1.5 && agree(printed, stamps * rows);
        bool samples = stamped > 1 && ((!isnan(mean) && !agree(mean, printed)) ||
                                       (rows > 1.5 && wide > WIDE && spread(w) < wide));
        if (since_line || (samples && !agree(stamps, printed)))
            return KNEE_TIMED_STAMP;
    }
    by_printed(w, NAN, NAN);
    return timing;
}

/* What the time stamps say, where the step comes from something else. */
void knee_train_compare_sources(struct train_work *w, struct knee_train_log *log)
{
    double said = log->median_s;
    log->other_s = NAN;
    log->other_timing = KNEE_TIMED_NOT;
    if (log->timing == KNEE_TIMED_NOT || log->timing == KNEE_TIMED_STAMP ||
        by_clock(w, TRAIN_STAMP) < 3)
        return;
    double stamps = knee_train_median_seconds(w), tick = knee_train_tick(w, TRAIN_STAMP);
    if (agree(stamps, said) || stamps < 10 * tick)
        return;
    log->other_s = stamps;
    log->other_timing = KNEE_TIMED_STAMP;
}

enum knee_train_timing knee_train_seconds(struct train_work *w, double batch, double seq)
{
    return check_printed(w, find_seconds(w, batch, seq));
}

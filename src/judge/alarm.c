/* SPDX-License-Identifier: MIT */
/* A metric is a row: its name, its unit, and what it is at a point of the history. Points that do
 * not know it (R is known where steps were sampled) neither break nor make an alarm. */
#include "judge/alarm.h"

#include "base/error.h"
#include "base/number.h"
#include "base/slice.h"

#include <math.h>

static double ratio(const struct knee_watch *w, size_t p)
{
    const struct knee_step *step = &w->points[p].sampled;
    return step->wall_s > 0 ? knee_step_ratio(step) : NAN;
}

static double efficiency(const struct knee_watch *w, size_t p)
{
    const struct knee_step *step = &w->points[p].sampled;
    return step->wall_s > 0 ? knee_step_efficiency(step) : NAN;
}

static double exposed(const struct knee_watch *w, size_t p)
{
    const struct knee_step *step = &w->points[p].sampled;
    return step->wall_s > 0 ? knee_step_exposed_s(step) / step->wall_s : NAN;
}

static double step(const struct knee_watch *w, size_t p)
{
    return w->points[p].step_s;
}

static double waiting(const struct knee_watch *w, size_t p)
{
    return w->points[p].wait_s;
}

static double late(const struct knee_watch *w, size_t p)
{
    return w->points[p].late_s;
}

static double trend(const struct knee_watch *w, size_t p)
{
    return w->points[p].step_s / w->first_step_s - 1;
}

/* These are of now alone: the last point has them. */
static double silent(const struct knee_watch *w, size_t p)
{
    return p + 1 == w->point_count ? (double)w->silent : NAN;
}

static double age(const struct knee_watch *w, size_t p)
{
    return p + 1 == w->point_count ? w->age_s : NAN;
}

static const struct {
    const char *name;
    enum knee_unit unit;
    double (*at)(const struct knee_watch *w, size_t point);
} metrics[] = {
    {"R", KNEE_UNIT_FACTOR, ratio},
    {"E", KNEE_UNIT_FRACTION, efficiency},
    {"exposed", KNEE_UNIT_FRACTION, exposed}, /* share of the sampled step */
    {"step", KNEE_UNIT_SECONDS, step},
    {"wait", KNEE_UNIT_SECONDS, waiting}, /* mean over ranks, a step */
    {"late", KNEE_UNIT_SECONDS, late},    /* of the latest rank, a step */
    {"trend", KNEE_UNIT_FRACTION, trend}, /* of the step, since the start */
    {"silent", KNEE_UNIT_COUNT, silent},  /* ranks */
    {"age", KNEE_UNIT_SECONDS, age},      /* of the newest line */
};
enum { METRICS = sizeof metrics / sizeof *metrics };

const char *knee_alarm_metric(const struct knee_alarm *alarm, enum knee_unit *unit)
{
    *unit = metrics[alarm->metric].unit;
    return metrics[alarm->metric].name;
}

/* ---- Parsing ---- */

static knee_status bad(const char *text, struct knee_err *err)
{
    return knee_fail_hint(
        err, KNEE_USAGE, "--when",
        "for example 'R > 0.5 for 5min', with R, E, exposed, step, wait, late, trend, "
        "silent or age",
        "'%.60s' is not NAME > VALUE [for TIME]", text);
}

static bool find_metric(struct knee_slice name, size_t *out)
{
    for (size_t i = 0; i < METRICS; i++)
        if (knee_slice_is(name, metrics[i].name)) {
            *out = i;
            return true;
        }
    return false;
}

/* "5m" is five minutes here, as in Prometheus' rules; everything else as knee writes numbers. */
static bool read_value(struct knee_slice word, enum knee_unit unit, double *out)
{
    char text[64];
    char last = word.at[word.length - 1];
    if (word.length + 1 > sizeof text)
        return false;
    knee_slice_copy(word, text, sizeof text);
    if (unit == KNEE_UNIT_SECONDS && (last == 'm' || last == 'h')) {
        double number = 0;
        struct knee_slice digits = {word.at, word.length - 1};
        if (!knee_slice_number(digits, &number))
            return false;
        *out = number * (last == 'm' ? 60 : 3600);
        return true;
    }
    return knee_number_parse(text, unit, "--when", out, NULL) == KNEE_OK;
}

static bool read_sign(struct knee_slice word, struct knee_alarm *out)
{
    out->above = word.at[0] == '>';
    out->or_equal = word.length == 2 && word.at[1] == '=';
    return (word.at[0] == '>' || word.at[0] == '<') && (word.length == 1 || out->or_equal);
}

knee_status knee_alarm_parse(const char *text, struct knee_alarm *out, struct knee_err *err)
{
    struct knee_slice rest = knee_slice_of(text), word = {"", 0};
    struct knee_alarm alarm = {0};
    if (!knee_slice_word(&rest, &word) || !find_metric(word, &alarm.metric) ||
        !knee_slice_word(&rest, &word) || !read_sign(word, &alarm) ||
        !knee_slice_word(&rest, &word) ||
        !read_value(word, metrics[alarm.metric].unit, &alarm.limit))
        return bad(text, err);
    if (knee_slice_word(&rest, &word) &&
        (!knee_slice_is(word, "for") || !knee_slice_word(&rest, &word) ||
         !read_value(word, KNEE_UNIT_SECONDS, &alarm.for_s) || alarm.for_s < 0 ||
         knee_slice_word(&rest, &word)))
        return bad(text, err);
    *out = alarm;
    return KNEE_OK;
}

/* ---- Checking ---- */

static bool holds(const struct knee_alarm *alarm, double value)
{
    if (alarm->or_equal && !(value < alarm->limit) && !(value > alarm->limit))
        return true;
    return alarm->above ? value > alarm->limit : value < alarm->limit;
}

struct knee_alarm_state knee_alarm_check(const struct knee_alarm *alarm,
                                         const struct knee_watch *watch)
{
    struct knee_alarm_state state = {.value = NAN, .since_step = -1};
    int64_t last_ns = 0;
    for (size_t p = watch->point_count; p-- > 0;) {
        double value = metrics[alarm->metric].at(watch, p);
        if (isnan(value))
            continue;
        if (!state.known) {
            state.known = true;
            state.value = value;
            last_ns = watch->points[p].t_ns;
        }
        if (!holds(alarm, value))
            break;
        state.since_step = watch->points[p].step;
        state.held_s = 1e-9 * ((double)last_ns - (double)watch->points[p].t_ns);
    }
    state.goes = state.since_step >= 0 && state.held_s >= alarm->for_s;
    return state;
}

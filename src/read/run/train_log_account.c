/* SPDX-License-Identifier: MIT */
/*
 * Where the wall time of a log went. Rows of steps have time stamps, and so have the lines that say
 * when a checkpoint was saved or the job was ended. From one row to the next so many steps take so
 * many medians; what is left over is a checkpoint or an evaluation where a line between them says
 * so, a gap where it is long, else slow steps. Before the first row of a run lies its start-up, and
 * what its first step took beyond the median is compilation. Nothing is left out: the parts sum to
 * the time from the first stamp of the log to its last.
 */
#include "read/run/train_log.h"

#include "base/fold.h"
#include "base/list.h"
#include "base/order.h"

#include <math.h>
#include <string.h>

#define GAP_S       60   /* shorter silence is slow steps */
#define GAP_FACTOR  5    /* of what the steps between two rows take */
#define DOWN_S      1800 /* between two runs of one log: more is not start-up */
#define STAMP_LINES 400  /* of the log's beginning that are searched for its first stamp */

static const struct {
    const char *mark;
    enum train_event_kind kind;
} marks[] = {
    {"saving checkpoint at", TRAIN_SAVE_BEGINS},
    {"Saving model checkpoint to", TRAIN_SAVE_BEGINS},
    {"Saving checkpoint to", TRAIN_SAVE_BEGINS},
    {"Saving the checkpoint", TRAIN_SAVE_BEGINS},
    {"Saving checkpoint at", TRAIN_SAVE_BEGINS},
    {"Saving model and optimizer state", TRAIN_SAVE_BEGINS},
    {"successfully saved checkpoint", TRAIN_SAVE_ENDS},
    {"Finished saving the checkpoint", TRAIN_SAVE_ENDS},
    {"***** Running Evaluation", TRAIN_EVALUATES},
    {"Start inference on", TRAIN_EVALUATES},
    {"Evaluation results for", TRAIN_EVALUATES},
    {"Epoch(val)", TRAIN_EVALUATES},
    {"[exiting program", TRAIN_ENDS_WELL},
    {"END TIME: ", TRAIN_ENDS_WELL},
    {"DUE TO TIME LIMIT", TRAIN_LIMIT},
    {"CANCELLED AT", TRAIN_CANCELLED},
    {"collective operation timeout", TRAIN_HANGS},
};
#define MARKS (sizeof marks / sizeof *marks)

const char *knee_time_part_name(enum knee_time_part part)
{
    static const char *const names[KNEE_TIME_PARTS] = {[KNEE_TIME_STEPS] = "steps kept",
                                                       [KNEE_TIME_LOST] = "steps done again",
                                                       [KNEE_TIME_STARTUP] = "start and end",
                                                       [KNEE_TIME_COMPILE] = "first steps",
                                                       [KNEE_TIME_CHECKPOINT] = "checkpoints",
                                                       [KNEE_TIME_EVALUATION] = "evaluation",
                                                       [KNEE_TIME_SLOW] = "slow steps",
                                                       [KNEE_TIME_GAP] = "gaps",
                                                       [KNEE_TIME_HANG] = "hang"};
    return part < KNEE_TIME_PARTS ? names[part] : "?";
}

const char *knee_train_end_name(enum knee_train_end_kind kind)
{
    static const char *const names[] = {"", "finished", "time limit", "cancelled", "hang"};
    return kind <= KNEE_ENDED_HANG ? names[kind] : "?";
}

void knee_train_event_marks(struct train_finder *finder, unsigned first_id)
{
    for (size_t i = 0; i < MARKS; i++)
        knee_train_finder_add(finder, marks[i].mark, first_id + (unsigned)i);
}

static double number_after(struct knee_slice line, const char *word)
{
    size_t at = knee_slice_find(line, word);
    const char *p = line.at + at + (at < line.length ? strlen(word) : 0);
    const char *end = line.at + line.length;
    while (p < end && (*p == ' ' || *p == '=' || *p == ':'))
        p++;
    return p < end && knee_is_digit(*p) ? knee_train_number(&p, end) : NAN;
}

/* "STEP 1861140.1 ON nid007420 CANCELLED AT": the node. */
static void take_host(struct train_events *events, struct knee_slice line)
{
    size_t at = knee_slice_find(line, " ON ");
    struct knee_slice rest = knee_slice_from(line, at + 4), host;
    if (events->host[0] || at == line.length)
        return;
    knee_slice_until(&rest, ' ', &host);
    knee_slice_copy(host, events->host, sizeof events->host);
}

bool knee_train_event_read(struct knee_train_reader *r, size_t row, struct knee_slice line,
                           size_t mark)
{
    struct train_events *events = &r->events;
    struct train_event event = {.kind = marks[row].kind, .stamp_s = knee_train_stamp(line)};
    struct knee_slice rest = knee_slice_from(line, mark);
    if (isnan(event.stamp_s))
        event.stamp_s = knee_train_stamp(rest);
    event.step = number_after(rest, "iteration");
    event.seconds = 1e-3 * number_after(rest, "ran for");
    take_host(events, line);
    if (events->count == TRAIN_EVENTS_MAX) {
        events->dropped++;
        return true;
    }
    if (!knee_room(r->alloc, &events->row, &events->room, events->count + 1, sizeof event))
        return false;
    events->row[events->count++] = event;
    return true;
}

void knee_train_tail(struct train_events *events, const char *data, size_t size)
{
    size_t room = sizeof events->tail;
    if (size >= room) {
        memcpy(events->tail, data + size - room, room);
        events->tail_length = room;
        return;
    }
    size_t keep = events->tail_length < room - size ? events->tail_length : room - size;
    memmove(events->tail, events->tail + events->tail_length - keep, keep);
    memcpy(events->tail + keep, data, size);
    events->tail_length = keep + size;
}

/* ---- The account ---- */

struct clock {
    const struct knee_train_reader *reader;
    struct knee_train_log *log;
    struct knee_train_account *a;
};

static double first_stamp(const struct knee_train_reader *r)
{
    struct knee_slice rest = {r->kept.data, r->kept.length}, line;
    for (size_t i = 0; rest.at && i < STAMP_LINES && knee_slice_line(&rest, &line); i++) {
        double stamp = knee_train_stamp(line);
        if (!isnan(stamp))
            return stamp;
    }
    return NAN;
}

static double last_stamp(const struct train_events *events)
{
    struct knee_slice rest = {events->tail, events->tail_length}, line;
    double last = NAN;
    while (rest.length && knee_slice_line(&rest, &line)) {
        double stamp = knee_train_stamp(line);
        last = isnan(stamp) ? last : stamp;
    }
    return last;
}

/* Seconds of checkpoints between two times; those without an end are given in *open. */
static double saving(const struct train_events *events, double from, double to, bool *open)
{
    double sum = 0, begun = NAN;
    *open = false;
    for (size_t i = 0; i < events->count; i++) {
        const struct train_event *e = &events->row[i];
        if (e->kind == TRAIN_SAVE_BEGINS && e->stamp_s >= from && e->stamp_s <= to) {
            begun = e->stamp_s;
            *open = true;
        }
        if (e->kind == TRAIN_SAVE_ENDS && !isnan(begun) && e->stamp_s >= begun) {
            sum += fmin(e->stamp_s, to) - begun;
            begun = NAN;
            *open = false;
        }
    }
    return sum;
}

static bool happens(const struct train_events *events, enum train_event_kind kind, double from,
                    double to)
{
    for (size_t i = 0; i < events->count; i++)
        if (events->row[i].kind == kind && events->row[i].stamp_s > from &&
            events->row[i].stamp_s <= to)
            return true;
    return false;
}

static void add(struct clock *c, enum knee_time_part part, double seconds)
{
    c->a->part_s[part] += seconds;
}

static double take_checkpoints(struct clock *c, double from, double to, double left)
{
    bool open;
    double saved = fmin(fmax(0, left), saving(&c->reader->events, from, to, &open));
    if (open) /* nothing says when it was done: what is left over was it */
        saved = fmax(0, left);
    add(c, KNEE_TIME_CHECKPOINT, saved);
    return left - saved;
}

/* Time between two rows of one run beyond what their steps take. */
static void take_rest(struct clock *c, const struct train_point *before,
                      const struct train_point *now, double left, double expected)
{
    left = take_checkpoints(c, before->stamp_s, now->stamp_s, left);
    bool evaluates = now->evaluation ||
                     happens(&c->reader->events, TRAIN_EVALUATES, before->stamp_s, now->stamp_s);
    if (evaluates && left > 0) {
        add(c, KNEE_TIME_EVALUATION, left);
    } else if (left > GAP_S && left > GAP_FACTOR * expected) {
        add(c, KNEE_TIME_GAP, left);
        if (!(left <= c->a->gap_s)) {
            c->a->gap_s = left;
            c->a->gap_after = before->step;
        }
    } else {
        add(c, KNEE_TIME_SLOW, left);
    }
}

static double run_step(const struct clock *c, unsigned run)
{
    return run < c->log->run_count ? c->log->runs[run].step_s : c->log->median_s;
}

/* Steps that a run's first row stands for: as many as from one row to the next. */
static double first_span(const struct train_point *points, size_t count, size_t i)
{
    if (i + 1 < count && points[i + 1].run == points[i].run && points[i + 1].step > points[i].step)
        return fmin(points[i + 1].step - points[i].step, fmax(points[i].step, 1));
    return 1;
}

/* From the end of what was before to a run's first row. */
static void take_start(struct clock *c, const struct train_point *points, size_t count, size_t i,
                       double from)
{
    double step_s = run_step(c, points[i].run), span = first_span(points, count, i);
    double left = points[i].stamp_s - from;
    double steps = fmin(span * step_s, fmax(0, left));
    add(c, KNEE_TIME_STEPS, steps);
    left = take_checkpoints(c, from, points[i].stamp_s, left - steps);
    double compile = fmin(fmax(0, span * points[i].seconds - steps), fmax(0, left));
    if (isnan(compile))
        compile = 0;
    add(c, KNEE_TIME_COMPILE, compile);
    left -= compile;
    if (c->a->starts > 0 && left > DOWN_S) {
        add(c, KNEE_TIME_GAP, left);
        if (!(left <= c->a->gap_s)) {
            c->a->gap_s = left;
            c->a->gap_after = i > 0 ? points[i - 1].step : NAN;
        }
    } else {
        add(c, KNEE_TIME_STARTUP, left);
    }
    c->a->starts++;
}

/* A run that goes on from inside the one before did the steps between them again. A run that begins
 * at its first step is another pass. */
static void take_again(struct clock *c, const struct train_point *last,
                       const struct train_point *first, double span)
{
    double again = last->step - first->step + span;
    if (!(first->step > span) || !(again > 0))
        return;
    double seconds = fmin(again * run_step(c, last->run), c->a->part_s[KNEE_TIME_STEPS]);
    c->a->lost_steps += again;
    add(c, KNEE_TIME_LOST, seconds);
    add(c, KNEE_TIME_STEPS, -seconds);
}

static const enum knee_train_end_kind end_kinds[TRAIN_EVENTS_KINDS] = {
    [TRAIN_ENDS_WELL] = KNEE_ENDED_WELL,
    [TRAIN_LIMIT] = KNEE_ENDED_LIMIT,
    [TRAIN_CANCELLED] = KNEE_ENDED_CANCELLED,
    [TRAIN_HANGS] = KNEE_ENDED_HANG,
};

/* How it ended: a time limit says "cancelled" too, and what hangs is cancelled in the end. */
static void take_events(struct clock *c)
{
    const struct train_events *events = &c->reader->events;
    for (size_t i = 0; i < events->count; i++) {
        const struct train_event *e = &events->row[i];
        enum knee_train_end_kind kind = end_kinds[e->kind];
        bool worse = kind == KNEE_ENDED_HANG || c->a->ended < KNEE_ENDED_LIMIT ||
                     (kind == KNEE_ENDED_LIMIT && c->a->ended == KNEE_ENDED_CANCELLED);
        if (kind != KNEE_ENDED_UNKNOWN && worse && c->a->ended != KNEE_ENDED_HANG)
            c->a->ended = kind;
        c->a->saves += e->kind == TRAIN_SAVE_BEGINS;
        bool done = e->kind == TRAIN_SAVE_ENDS;
        if (done && !isnan(e->step))
            c->a->saved_step = e->step;
    }
}

/* Many programs say only that a save begins. It has ended where steps follow: then it holds the
 * last step before it. */
static void take_followed_saves(struct clock *c, const struct train_point *points, size_t count)
{
    const struct train_events *events = &c->reader->events;
    if (!isnan(c->a->saved_step))
        return;
    for (size_t i = 0, p = 0; i < events->count; i++) {
        const struct train_event *e = &events->row[i];
        if (e->kind != TRAIN_SAVE_BEGINS || !(e->stamp_s < points[count - 1].stamp_s))
            continue;
        while (p + 1 < count && points[p + 1].stamp_s <= e->stamp_s)
            p++;
        if (points[p].stamp_s <= e->stamp_s)
            c->a->saved_step = points[p].step;
    }
}

/* After the last row: a hang until its timeout, a last checkpoint, and the end. */
static void take_end(struct clock *c, const struct train_point *last)
{
    const struct train_events *events = &c->reader->events;
    double left = fmax(0, c->a->end_s - last->stamp_s), hang = NAN;
    for (size_t i = 0; i < events->count; i++)
        if (events->row[i].kind == TRAIN_HANGS && events->row[i].stamp_s >= last->stamp_s)
            hang = fmin(left, fmax(events->row[i].seconds, isnan(hang) ? 0 : hang));
    if (!isnan(hang)) {
        add(c, KNEE_TIME_HANG, hang);
        left -= hang;
    }
    left = take_checkpoints(c, last->stamp_s, c->a->end_s, left);
    add(c, KNEE_TIME_STARTUP, left);
}

static void walk(struct clock *c, const struct train_point *points, size_t count)
{
    const struct train_point *last = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct train_point *now = &points[i];
        if (last && last->run == now->run) {
            double expected = (now->step - last->step) * run_step(c, now->run);
            double left = now->stamp_s - last->stamp_s - expected;
            add(c, KNEE_TIME_STEPS, expected);
            take_rest(c, last, now, left, expected);
        } else {
            take_start(c, points, count, i, last ? last->stamp_s : c->a->begin_s);
            if (last)
                take_again(c, last, now, first_span(points, count, i));
        }
        last = now;
    }
    if (last)
        take_end(c, last);
}

/* Faster steps than the median take time back from the steps. */
static void balance(struct knee_train_account *a)
{
    if (a->part_s[KNEE_TIME_SLOW] >= 0)
        return;
    a->part_s[KNEE_TIME_STEPS] += a->part_s[KNEE_TIME_SLOW];
    a->part_s[KNEE_TIME_SLOW] = 0;
}

void knee_train_account(const struct knee_train_reader *r, const struct train_point *points,
                        size_t count, struct knee_train_log *log)
{
    struct knee_train_account *a = &log->account;
    struct clock c = {r, log, a};
    *a = (struct knee_train_account){.wall_s = NAN,
                                     .begin_s = NAN,
                                     .end_s = NAN,
                                     .saved_step = NAN,
                                     .first_step = NAN,
                                     .last_step = NAN,
                                     .gap_s = NAN,
                                     .gap_after = NAN,
                                     .step_s = log->median_s};
    knee_slice_copy(knee_slice_of(r->events.host), log->host, sizeof log->host);
    take_events(&c);
    if (count < 2 || isnan(log->median_s))
        return;
    double first = first_stamp(r), end = last_stamp(&r->events);
    a->begin_s = first <= points[0].stamp_s ? first : points[0].stamp_s;
    a->end_s = end >= points[count - 1].stamp_s ? end : points[count - 1].stamp_s;
    a->first_step = points[0].step;
    a->last_step = points[count - 1].step;
    take_followed_saves(&c, points, count);
    walk(&c, points, count);
    balance(a);
    a->wall_s = a->end_s - a->begin_s;
    bool stopped = a->ended != KNEE_ENDED_WELL;
    if (stopped && a->saves && a->saved_step <= a->last_step)
        a->unsaved_steps = a->last_step - a->saved_step;
    if (stopped && a->saves && isnan(a->saved_step)) /* its only checkpoint was not complete */
        a->unsaved_steps = a->last_step - a->first_step + 1;
}

/* SPDX-License-Identifier: MIT */
/*
 * The curve of one job over worker counts. A step is a sum of terms with coefficients that are not
 * negative (knee_scale.h lists them), plus what the terms do not explain: a part that neighbouring
 * counts share (a slow base row, another software on the larger runs), falling off with the
 * distance in doublings, and its own noise. With few counts and more terms than counts the
 * answer is a matter of what is likely beforehand: coefficients are drawn towards none, at four
 * strengths; noise and shared part have a few sizes each; every combination is weighed by how
 * likely it makes the measured steps (Gaussian processes with a linear part: Rasmussen and Williams
 * 2006, ch. 2), and the forecast is their mean, its band their spread.
 *
 * Terms of which a step has one are held to a fifth of those that come with the work, at the
 * largest count measured: public curves of fixed batches that bend have bent less than Amdahl's law
 * says.
 */
#include "knee_scale.h"

#include "base/error.h"
#include "base/linear.h"

#include <math.h>
#include <string.h>

#define BAND        1.645 /* standard deviations that hold nine in ten */
#define REACH       3.0   /* doublings over which the shared part falls to 1/e */
#define COMPUTE_OFF 0.3   /* the smallest count's step is compute, give or take */
#define SAME        0.05  /* batches that differ by less are the same */
#define NEVER       1e-12
#define STRANGE     0.2 /* terms off by more than this do not describe the curve */

static const double strengths[] = {0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30};
static const double noises[] = {0.003, 0.01, 0.03, 0.1};
static const double shares[] = {0.003, 0.01, 0.03, 0.1, 0.3, 1};
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define COMBINATIONS (COUNT(strengths) * COUNT(noises) * COUNT(shares))

static const struct {
    const char *name;
    double likely; /* against a term that comes with the work */
    bool per_step; /* else with the work */
} terms[KNEE_SCALE_TERMS] = {
    [KNEE_SCALE_COMPUTE] = {"compute", 0, false},
    [KNEE_SCALE_FIXED] = {"fixed per step", 0.2, true},
    [KNEE_SCALE_BANDWIDTH] = {"bandwidth", 0.2, true},
    [KNEE_SCALE_LATENCY] = {"latency", 0.1, true},
    [KNEE_SCALE_HOPS] = {"ring hops", 0.2, true},
    [KNEE_SCALE_STRAGGLER] = {"stragglers", 1, false},
    [KNEE_SCALE_MICRO] = {"exchanges per micro-batch", 0.5, false},
};

const char *knee_scale_term_name(enum knee_scale_term term)
{
    return term < KNEE_SCALE_TERMS ? terms[term].name : "?";
}

const char *knee_scale_kind_name(enum knee_scale_kind kind)
{
    static const char *const names[] = {"unknown", "strong", "weak", "mixed"};
    return kind <= KNEE_SCALE_MIXED ? names[kind] : "?";
}

/* A count as the terms see it; everything against the smallest count. */
struct place {
    double x[KNEE_SCALE_TERMS];
    double doublings; /* log2 K */
    double y;         /* step; where it is not measured, what the terms say */
    double error;     /* of y, a share */
};

static void place_init(const struct knee_scale_fit *fit, double workers, double batch,
                       struct place *out)
{
    const struct knee_scale_point *base = &fit->points[0];
    double work = batch / workers / (base->batch / base->workers);
    out->doublings = log2(workers);
    out->x[KNEE_SCALE_COMPUTE] = work;
    out->x[KNEE_SCALE_FIXED] = 1;
    out->x[KNEE_SCALE_BANDWIDTH] = (workers - 1) / workers;
    out->x[KNEE_SCALE_LATENCY] = out->doublings;
    out->x[KNEE_SCALE_HOPS] = (workers - 1) / fit->points[fit->count - 1].workers;
    out->x[KNEE_SCALE_STRAGGLER] = work * knee_expected_maximum(workers);
    out->x[KNEE_SCALE_MICRO] = work * out->doublings;
}

/* One combination of strength, noise and share, solved. */
struct solved {
    double scale[KNEE_SCALE_TERMS]; /* standard deviation of each coefficient beforehand; 0: out */
    double noise, share;
    double value[KNEE_SCALE_TERMS];
    double weight[KNEE_SCALE_POINTS]; /* covariance^-1 (y - compute) */
    struct knee_matrix covariance;
    double likelihood; /* log, up to what all combinations share */
};

static double covariance(const struct solved *s, const struct place *a, const struct place *b,
                         bool same)
{
    double sum =
        a->y * b->y * s->share * s->share * exp(-fabs(a->doublings - b->doublings) / REACH);
    for (size_t t = 0; t < KNEE_SCALE_TERMS; t++)
        sum += s->scale[t] * s->scale[t] * a->x[t] * b->x[t];
    if (same)
        sum += a->y * b->y * (s->noise * s->noise + a->error * b->error);
    return sum;
}

static bool solve_once(struct solved *s, const struct place *places, size_t count)
{
    s->covariance.size = count;
    for (size_t i = 0; i < count; i++) {
        s->weight[i] = places[i].y - places[i].x[KNEE_SCALE_COMPUTE];
        for (size_t k = 0; k <= i; k++)
            s->covariance.at[i][k] = covariance(s, &places[i], &places[k], i == k);
    }
    if (!knee_matrix_solve(&s->covariance, s->weight))
        return false;
    for (size_t t = 0; t < KNEE_SCALE_TERMS; t++) {
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += places[i].x[t] * s->weight[i];
        s->value[t] = (t == KNEE_SCALE_COMPUTE) + s->scale[t] * s->scale[t] * sum;
    }
    return true;
}

/* Takes out the term that is the most negative; false: none is. */
static bool drop_negative(struct solved *s)
{
    size_t worst = KNEE_SCALE_TERMS;
    double least = -NEVER;
    for (size_t t = KNEE_SCALE_COMPUTE + 1; t < KNEE_SCALE_TERMS; t++)
        if (s->scale[t] > 0 && s->value[t] / s->scale[t] < least) {
            least = s->value[t] / s->scale[t];
            worst = t;
        }
    if (worst == KNEE_SCALE_TERMS)
        return false;
    s->scale[worst] = 0;
    return true;
}

/* log det of a definite matrix, by its factor. */
static double log_determinant(const struct knee_matrix *m)
{
    double l[KNEE_SCALE_POINTS][KNEE_SCALE_POINTS], sum = 0;
    for (size_t i = 0; i < m->size; i++)
        for (size_t k = 0; k <= i; k++) {
            double rest = m->at[i][k];
            for (size_t j = 0; j < k; j++)
                rest -= l[i][j] * l[k][j];
            l[i][k] = i == k ? sqrt(fmax(rest, NEVER)) : rest / l[k][k];
            sum += i == k ? 2 * log(l[i][i]) : 0;
        }
    return sum;
}

static bool solve(struct solved *s, const struct place *places, size_t count)
{
    do {
        if (!solve_once(s, places, count))
            return false;
    } while (drop_negative(s));
    double fit = 0;
    for (size_t i = 0; i < count; i++)
        fit += s->weight[i] * (places[i].y - places[i].x[KNEE_SCALE_COMPUTE]);
    s->likelihood = -0.5 * (log_determinant(&s->covariance) + fit);
    return true;
}

/* Combination number `which`. `least` is the smallest work of a worker that was measured, `begun`
 * how much of an exchange begins within the counts measured: all but 1 / K of it from one GPU
 * on, almost nothing from eight on, where it looks like a fixed cost. */
static void begin(struct solved *s, size_t which, double least, double begun)
{
    double strength = strengths[which % COUNT(strengths)];
    s->noise = noises[which / COUNT(strengths) % COUNT(noises)];
    s->share = shares[which / COUNT(strengths) / COUNT(noises)];
    s->scale[KNEE_SCALE_COMPUTE] = COMPUTE_OFF;
    for (size_t t = KNEE_SCALE_COMPUTE + 1; t < KNEE_SCALE_TERMS; t++)
        s->scale[t] = strength * terms[t].likely * (terms[t].per_step ? least : 1);
    s->scale[KNEE_SCALE_BANDWIDTH] +=
        strength * (1 - terms[KNEE_SCALE_BANDWIDTH].likely) * begun * least;
}

/* ---- All combinations ---- */

struct answer {
    double mean, deviation;         /* of the step asked for */
    double value[KNEE_SCALE_TERMS]; /* coefficients */
};

/* Mean and variance of the step at `at` by one combination. */
static void ask(const struct solved *s, const struct place *places, size_t count, struct place *at,
                double *mean, double *variance)
{
    double with[KNEE_SCALE_POINTS], back[KNEE_SCALE_POINTS];
    at->y = 0;
    for (size_t t = 0; t < KNEE_SCALE_TERMS; t++)
        at->y += s->value[t] * at->x[t];
    at->y = fmax(at->y, NEVER);
    at->error = 0;
    *mean = at->x[KNEE_SCALE_COMPUTE];
    *variance = covariance(s, at, at, true);
    for (size_t i = 0; i < count; i++) {
        with[i] = back[i] = covariance(s, &places[i], at, false);
        *mean += with[i] * s->weight[i];
    }
    if (knee_matrix_solve(&s->covariance, back))
        for (size_t i = 0; i < count; i++)
            *variance -= with[i] * back[i];
}

static size_t measured_places(const struct knee_scale_fit *fit, struct place *places, double *least)
{
    *least = 1;
    for (size_t i = 0; i < fit->count; i++) {
        const struct knee_scale_point *p = &fit->points[i];
        place_init(fit, p->workers, p->batch, &places[i]);
        places[i].y = p->step_s / fit->points[0].step_s;
        places[i].error = p->error > 0 ? p->error : 0;
        *least = fmin(*least, places[i].x[KNEE_SCALE_COMPUTE]);
    }
    return fit->count;
}

/* Sums over combinations, weighed against the likeliest so far. */
struct tally {
    double best, weight, mean, square; /* best: log */
    double value[KNEE_SCALE_TERMS];
};

static void tally_add(struct tally *t, const struct solved *s, double mean, double variance)
{
    double down = exp(fmin(0, t->best - s->likelihood)); /* of what was added before */
    double w = exp(fmin(0, s->likelihood - t->best));
    t->best = fmax(t->best, s->likelihood);
    t->weight = t->weight * down + w;
    t->mean = t->mean * down + w * mean;
    t->square = t->square * down + w * (variance + mean * mean);
    for (size_t i = 0; i < KNEE_SCALE_TERMS; i++)
        t->value[i] = t->value[i] * down + w * s->value[i];
}

/* Every combination by how likely it makes what was measured. */
static void answer_all(const struct knee_scale_fit *fit, struct place *at, struct answer *out)
{
    struct place places[KNEE_SCALE_POINTS];
    struct solved s;
    struct tally t = {.best = -INFINITY};
    double least, mean, variance;
    size_t count = measured_places(fit, places, &least);
    double begun = 1 / fit->points[0].workers - 1 / fit->points[fit->count - 1].workers;
    for (size_t c = 0; c < COMBINATIONS; c++) {
        begin(&s, c, least, begun);
        if (!solve(&s, places, count))
            continue;
        ask(&s, places, count, at, &mean, &variance);
        tally_add(&t, &s, mean, variance);
    }
    out->mean = t.mean / t.weight;
    out->deviation = sqrt(fmax(t.square / t.weight - out->mean * out->mean, 0));
    for (size_t i = 0; i < KNEE_SCALE_TERMS; i++)
        out->value[i] = t.value[i] / t.weight;
}

/* ---- Amdahl and the universal scalability law, by least squares ---- */

/* Seconds per unit of work and worker are 1, K - 1 and K (K - 1) times a coefficient each (Gunther
 * 1993); Amdahl has the first two. */
#define LAW_TERMS 3

static double law_value(const double *coefficient, unsigned subset, double workers)
{
    const double x[LAW_TERMS] = {1, workers - 1, workers * (workers - 1)};
    double sum = 0;
    for (size_t t = 0; t < LAW_TERMS; t++)
        sum += subset & 1u << t ? coefficient[t] * x[t] : 0;
    return sum;
}

static double unit_seconds(const struct knee_scale_point *p)
{
    return p->step_s * p->workers / p->batch;
}

/* Least squares of the relative errors over one subset; false: there is no answer, or a negative
 * one. Each term left out gets a row that fixes it at zero. */
static bool law_fit(const struct knee_scale_fit *fit, unsigned subset, double *coefficient)
{
    struct knee_matrix m = {.size = LAW_TERMS};
    memset(coefficient, 0, LAW_TERMS * sizeof *coefficient);
    for (size_t i = 0; i < fit->count; i++) {
        double k = fit->points[i].workers, y = unit_seconds(&fit->points[i]);
        const double x[LAW_TERMS] = {1, k - 1, k * (k - 1)};
        for (size_t a = 0; a < LAW_TERMS; a++) {
            coefficient[a] += subset & 1u << a ? x[a] / y : 0;
            for (size_t b = 0; b <= a; b++)
                m.at[a][b] += subset & 1u << a && subset & 1u << b ? x[a] * x[b] / (y * y) : 0;
        }
    }
    for (size_t a = 0; a < LAW_TERMS; a++)
        m.at[a][a] += subset & 1u << a ? 0 : 1;
    if (!knee_matrix_solve(&m, coefficient))
        return false;
    for (size_t a = 0; a < LAW_TERMS; a++)
        if (coefficient[a] < 0)
            return false;
    return true;
}

/* By the subset that fits best. */
static double law(const struct knee_scale_fit *fit, double workers, double batch,
                  const unsigned *subsets, size_t count)
{
    double best = INFINITY, found = NAN;
    for (size_t c = 0; c < count; c++) {
        double coefficient[LAW_TERMS], error = 0;
        if (!law_fit(fit, subsets[c], coefficient))
            continue;
        for (size_t i = 0; i < fit->count; i++) {
            double off = law_value(coefficient, subsets[c], fit->points[i].workers) /
                             unit_seconds(&fit->points[i]) -
                         1;
            error += off * off;
        }
        if (error < best) {
            best = error;
            found = law_value(coefficient, subsets[c], workers) * batch / workers;
        }
    }
    return found;
}

/* ---- Points ---- */

static bool usable(double value)
{
    return value > 0 && value < 1e18;
}

static knee_status check_points(const struct knee_scale_point *points, size_t count,
                                struct knee_err *err)
{
    for (size_t i = 0; i < count; i++)
        if (!(points[i].workers >= 1) || !usable(points[i].workers) || !usable(points[i].step_s) ||
            (!isnan(points[i].batch) && !usable(points[i].batch)))
            return knee_fail(err, KNEE_USAGE, "", "point %zu of the curve has no usable numbers",
                             i + 1);
    return count > 0 ? KNEE_OK : knee_fail(err, KNEE_USAGE, "", "no measured point");
}

static bool same_place(const struct knee_scale_point *a, const struct knee_scale_point *b)
{
    return a->workers == b->workers &&
           ((isnan(a->batch) && isnan(b->batch)) || fabs(a->batch / b->batch - 1) < 1e-9);
}

/* Repeats become one point: the geometric mean, and the spread as its error. */
static void merge(const struct knee_scale_point *points, size_t count,
                  const struct knee_scale_point *like, struct knee_scale_point *out,
                  double *squares, double *degrees)
{
    double n = 0, sum = 0, sum2 = 0;
    for (size_t i = 0; i < count; i++)
        if (same_place(&points[i], like)) {
            double y = log(points[i].step_s);
            n++, sum += y, sum2 += y * y;
        }
    *out = *like;
    out->repeats = (size_t)n;
    if (n < 2)
        return;
    double variance = fmax(0, sum2 - sum * sum / n) / (n - 1);
    out->step_s = exp(sum / n);
    out->error = sqrt(variance / n);
    *squares += variance * (n - 1);
    *degrees += n - 1;
}

static bool comes_before(const struct knee_scale_point *a, const struct knee_scale_point *b)
{
    return a->workers < b->workers || (a->workers == b->workers && a->batch < b->batch);
}

static knee_status gather(const struct knee_scale_point *points, size_t count,
                          struct knee_scale_fit *fit, struct knee_err *err)
{
    double squares = 0, degrees = 0;
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = same_place(&points[i], &points[k]);
        if (seen)
            continue;
        if (fit->count == KNEE_SCALE_POINTS) {
            knee_fail(err, KNEE_USAGE, "", "more than %d GPU counts", KNEE_SCALE_POINTS);
            knee_hint(err, "leave some out");
            return KNEE_USAGE;
        }
        struct knee_scale_point p;
        merge(points, count, &points[i], &p, &squares, &degrees);
        size_t at = fit->count++;
        for (; at > 0 && comes_before(&p, &fit->points[at - 1]); at--)
            fit->points[at] = fit->points[at - 1];
        fit->points[at] = p;
    }
    fit->noise = degrees > 0 ? sqrt(squares / degrees) : NAN;
    return KNEE_OK;
}

/* ---- Strong or weak ---- */

static enum knee_scale_kind kind_by_batch(const struct knee_scale_fit *fit)
{
    bool strong = true, weak = true;
    const struct knee_scale_point *base = &fit->points[0];
    for (size_t i = 0; i < fit->count; i++) {
        const struct knee_scale_point *p = &fit->points[i];
        if (isnan(p->batch))
            return KNEE_SCALE_UNKNOWN;
        strong = strong && fabs(p->batch / base->batch - 1) <= SAME;
        weak = weak && fabs(p->batch / p->workers / (base->batch / base->workers) - 1) <= SAME;
    }
    if (fit->points[fit->count - 1].workers == base->workers)
        return KNEE_SCALE_UNKNOWN;
    return strong ? KNEE_SCALE_STRONG : weak ? KNEE_SCALE_WEAK : KNEE_SCALE_MIXED;
}

/* Without batches: what shrinks by more than the root of the count is of one batch. A worker's
 * compute tells it better than its step, which communication keeps from shrinking. */
static bool looks_strong(struct knee_scale_fit *fit)
{
    const struct knee_scale_point *a = &fit->points[0], *b = &fit->points[fit->count - 1];
    fit->kind_by_work = a->work_s > 0 && b->work_s > 0;
    double shrinks = fit->kind_by_work ? a->work_s / b->work_s : a->step_s / b->step_s;
    return shrinks > sqrt(b->workers / a->workers);
}

static void tell_kind(struct knee_scale_fit *fit)
{
    const struct knee_scale_point *a = &fit->points[0], *b = &fit->points[fit->count - 1];
    fit->kind = kind_by_batch(fit);
    bool known = true;
    for (size_t i = 0; i < fit->count; i++)
        known = known && !isnan(fit->points[i].batch);
    if (known)
        return;
    fit->kind_assumed = true;
    bool strong = looks_strong(fit);
    fit->kind = b->workers == a->workers ? KNEE_SCALE_UNKNOWN
                : strong                 ? KNEE_SCALE_STRONG
                                         : KNEE_SCALE_WEAK;
    for (size_t i = 0; i < fit->count; i++)
        fit->points[i].batch = strong ? 1 : fit->points[i].workers;
}

/* What the terms leave over at the measured counts, and where the time goes at the largest. */
static void describe(struct knee_scale_fit *fit)
{
    const struct knee_scale_point *last = &fit->points[fit->count - 1];
    struct place at;
    struct answer a;
    double sum = 0;
    place_init(fit, last->workers, last->batch, &at);
    answer_all(fit, &at, &a);
    for (size_t t = 0; t < KNEE_SCALE_TERMS; t++)
        fit->term_s[t] = a.value[t] * at.x[t] * fit->points[0].step_s;
    for (size_t i = 0; i < fit->count; i++) {
        const struct knee_scale_point *p = &fit->points[i];
        double says = 0;
        place_init(fit, p->workers, p->batch, &at);
        for (size_t t = 0; t < KNEE_SCALE_TERMS; t++)
            says += a.value[t] * at.x[t] * fit->points[0].step_s;
        sum += (says / p->step_s - 1) * (says / p->step_s - 1);
    }
    fit->misfit = sqrt(sum / (double)fit->count);
    fit->strange = fit->misfit > STRANGE;
}

knee_status knee_scale_fit(const struct knee_scale_point *points, size_t count,
                           struct knee_scale_fit *out, struct knee_err *err)
{
    struct knee_scale_fit fit = {.noise = NAN};
    knee_status status = check_points(points, count, err);
    if (!status)
        status = gather(points, count, &fit, err);
    if (status)
        return status;
    tell_kind(&fit);
    describe(&fit);
    *out = fit;
    return KNEE_OK;
}

/* ---- Forecasts ---- */

/* A curve that no terms describe goes on as it went between its last two counts, as a power of the
 * count; from no further loss at all to twice that loss. */
static struct answer go_on(const struct knee_scale_fit *fit, double workers, double units)
{
    const struct knee_scale_point *b = &fit->points[fit->count - 1], *a = b - 1;
    while (a > fit->points && a->workers == b->workers)
        a--;
    double slope = log(unit_seconds(b) / unit_seconds(a)) / log(b->workers / a->workers);
    double doublings = log(workers / b->workers);
    double same = unit_seconds(b) * units / workers / fit->points[0].step_s;
    double mean = same * exp(slope * doublings), most = same * exp(2 * slope * doublings);
    return (struct answer){.mean = mean,
                           .deviation = fmax(fabs(mean - same), fabs(most - mean)) / BAND +
                                        fit->misfit * fabs(doublings) * mean};
}

double knee_scale_most_workers(const struct knee_scale_fit *fit, double batch)
{
    double shared = 1; /* workers of one unit of the batch */
    bool known = false;
    if (fit->kind_assumed || isnan(batch))
        return INFINITY;
    for (size_t i = 0; i < fit->count; i++) {
        const struct knee_scale_point *p = &fit->points[i];
        known = known || p->replica >= 1;
        shared = fmax(shared, fmax(p->workers / p->batch, p->replica >= 1 ? p->replica : 1));
    }
    return known ? floor(batch * shared + 1e-9) : INFINITY;
}

static double batch_at(const struct knee_scale_fit *fit, double workers)
{
    const struct knee_scale_point *last = &fit->points[fit->count - 1];
    if (fit->kind == KNEE_SCALE_STRONG)
        return last->batch;
    return last->batch / last->workers * workers;
}

/* ---- What hides behind compute ---- */

#define BACKWARD  (2.0 / 3) /* of compute, behind which gradients can travel */
#define EXPLAINED 0.05      /* of a step that the parts of two counts may leave unexplained */
#define GROWTH    0.02      /* growth of an exchange between two counts that is above the noise */

/* An exchange over K: its wire goes on as (K - 1) / K, its hops as K - 1. Two counts tell them
 * apart: comm / (1 - 1 / K) is a straight line in K. One count is taken for wire alone. */
static double exchange_s(const struct knee_scale_fit *fit, double workers)
{
    const struct knee_scale_inside *p = &fit->inside, *q = &fit->inside_before;
    double wire = p->comm_s / (1 - 1 / p->workers), hop = 0;
    if (q->workers > 1) {
        double before = q->comm_s / (1 - 1 / q->workers);
        if (wire > (1 + GROWTH) * before)
            hop = fmin(wire - before, wire * (1 - q->workers / p->workers)) /
                  (p->workers - q->workers);
    }
    return (1 - 1 / workers) * (wire + hop * (workers - p->workers));
}

/* The share of an exchange that shows however much compute there is: its last bucket, or all. */
static double never_hidden(const struct knee_scale_fit *fit)
{
    const struct knee_scale_inside *p = &fit->inside, *q = &fit->inside_before;
    double share = p->exposed_s / p->comm_s;
    return q->workers > 1 ? fmin(share, q->exposed_s / q->comm_s) : fmin(share, 1);
}

/* A step made of its parts: the exchange goes on by itself, compute with the work, and behind a
 * share of compute it hides: as much as it did at the largest count with figures, and at least the
 * backward pass from its first bucket on. What else a step has stays as it is. */
static double step_of_parts(const struct knee_scale_fit *fit, double workers, double units,
                            double *exposed_s)
{
    const struct knee_scale_inside *p = &fit->inside;
    double shrunk = units / workers / (p->batch / p->workers);
    double comm_s = exchange_s(fit, workers), shows = never_hidden(fit);
    double behind = fmax((p->comm_s - p->exposed_s) / p->compute_s, BACKWARD * (1 - shows));
    *exposed_s = fmax(shows * comm_s, comm_s - behind * p->compute_s * shrunk);
    return p->step_s - p->compute_s * (1 - shrunk) + *exposed_s - p->exposed_s;
}

/* Whether the parts explain the steps of both counts with figures: what else a step has is the
 * same, and compute went with the work. */
static bool parts_explain(const struct knee_scale_fit *fit)
{
    const struct knee_scale_inside *p = &fit->inside, *q = &fit->inside_before;
    if (!(q->workers > 1))
        return false;
    double other =
        (p->step_s - p->compute_s - p->exposed_s) - (q->step_s - q->compute_s - q->exposed_s);
    double compute_s = q->compute_s * (p->batch / p->workers) / (q->batch / q->workers);
    return fabs(other) <= EXPLAINED * p->step_s && fabs(p->compute_s / compute_s - 1) <= EXPLAINED;
}

/* Steps alone cannot show communication that hides behind compute; it becomes exposed where compute
 * shrinks below it. Where figures of a count tell what a step is made of, what is then not hidden
 * is added if the terms say less; where two counts tell, and agree, the parts are the forecast. */
static double unhidden(const struct knee_scale_fit *fit, double workers, double units,
                       double step_s)
{
    double exposed_s, off;
    if (!(fit->inside.workers > 1) || workers <= fit->inside.workers)
        return 0;
    off = step_of_parts(fit, workers, units, &exposed_s) - step_s;
    if (parts_explain(fit))
        return fmax(off, -0.9 * step_s);
    return exposed_s > fit->inside.exposed_s ? fmax(0, off) : 0;
}

knee_status knee_scale_predict(const struct knee_scale_fit *fit, double workers, double batch,
                               struct knee_scale_forecast *out, struct knee_err *err)
{
    static const unsigned amdahl[] = {3, 1}, usl[] = {7, 3, 5, 1};
    struct place at;
    struct answer a;
    if (fit->count < 2 || fit->kind == KNEE_SCALE_UNKNOWN) {
        knee_fail(err, KNEE_USAGE, "", "a forecast needs two GPU counts");
        knee_hint(err, "add a run with half or twice as many GPUs");
        return KNEE_USAGE;
    }
    if (!(workers >= 1 && workers <= KNEE_WORKERS_MAX))
        return knee_fail(err, KNEE_USAGE, "", "not a GPU count: %g", workers);
    double units = isnan(batch) ? batch_at(fit, workers) : batch;
    if (workers > knee_scale_most_workers(fit, units)) {
        knee_fail(err, KNEE_USAGE, "",
                  "a batch of %g has less than one sequence for each copy of the model", units);
        knee_hint(err, "ask for at most %g, or give a larger batch",
                  knee_scale_most_workers(fit, units));
        return KNEE_USAGE;
    }
    double scale = fit->points[0].step_s;
    place_init(fit, workers, units, &at);
    if (fit->strange)
        a = go_on(fit, workers, units);
    else
        answer_all(fit, &at, &a);
    *out = (struct knee_scale_forecast){
        .workers = workers,
        .batch = fit->kind_assumed ? NAN : units,
        .step_s = a.mean * scale,
        .low_s = fmax(a.mean - BAND * a.deviation, 0.01 * a.mean) * scale,
        .high_s = (a.mean + BAND * a.deviation) * scale,
        .amdahl_s = law(fit, workers, units, amdahl, COUNT(amdahl)),
        .usl_s = law(fit, workers, units, usl, COUNT(usl)),
    };
    double off = unhidden(fit, workers, units, out->step_s);
    out->unhidden_s = fmax(0, off);
    out->step_s += off;
    out->high_s += out->unhidden_s;
    out->low_s = fmin(out->low_s, out->step_s);
    return KNEE_OK;
}

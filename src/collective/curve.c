/* SPDX-License-Identifier: MIT */
/*
 * One log's time against size: pieces of latency + bytes / rate, joined at knots, never falling.
 * Plateau, protocols, algorithms and saturation all show as such pieces, and a monotone chain of
 * few of them interpolates what lies between measured sizes without following noise.
 *
 * The knots' times minimise the sum of |log(fitted / measured)|: absolute, not squared, so that a
 * disturbed row does not pull; by reweighted least squares on hat functions (a tridiagonal system),
 * then pooled until they rise. Knots are added at measured sizes while each takes at least a
 * `price` off that sum. The price is chosen by leaving sizes out: the one with the least error on
 * them.
 */
#include "collective/curve.h"

#include "base/error.h"
#include "base/linear.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

#define PLACES_MAX 48 /* sizes that may become knots */
#define REWEIGHTS  8
#define FOLDS      4

static const double prices[] = {0.4, 0.2, 0.1, 0.05, 0.025};
#define PRICES (sizeof prices / sizeof *prices)
#define USUAL  3 /* best over all logs; another must be better by far on the log at hand */

/* Memory of one fit: the points in use, and what belongs to each. */
struct work {
    struct knee_curve_point *points;
    double *weight;
    size_t count;
};

struct chain {
    size_t knots;
    double bytes[KNEE_KNOTS_MAX], time_s[KNEE_KNOTS_MAX];
    double cost;
};

/* The piece of a chain that a size is on; ends go on straight. */
static size_t piece_of(const struct chain *c, double bytes)
{
    size_t i = 0;
    while (i + 2 < c->knots && bytes >= c->bytes[i + 1])
        i++;
    return i;
}

static double chain_at(const struct chain *c, double bytes)
{
    if (c->knots == 1)
        return c->time_s[0];
    size_t i = piece_of(c, bytes);
    double share = (bytes - c->bytes[i]) / (c->bytes[i + 1] - c->bytes[i]);
    return c->time_s[i] + share * (c->time_s[i + 1] - c->time_s[i]);
}

/* Pools neighbours that fall until none does (weighted). */
static void make_rising(double *values, const double *weights, size_t count)
{
    double sum[KNEE_KNOTS_MAX], weight[KNEE_KNOTS_MAX];
    size_t length[KNEE_KNOTS_MAX], pools = 0;
    for (size_t i = 0; i < count; i++) {
        sum[pools] = values[i] * weights[i];
        weight[pools] = weights[i];
        length[pools++] = 1;
        while (pools > 1 &&
               sum[pools - 2] / weight[pools - 2] > sum[pools - 1] / weight[pools - 1]) {
            sum[pools - 2] += sum[pools - 1];
            weight[pools - 2] += weight[pools - 1];
            length[pools - 2] += length[pools - 1];
            pools--;
        }
    }
    for (size_t p = 0, i = 0; p < pools; p++)
        for (size_t n = 0; n < length[p]; n++)
            values[i++] = sum[p] / weight[p];
}

/* One weighted least-squares pass, relative to each measured time. */
static void solve_knots(const struct work *w, struct chain *c)
{
    double diagonal[KNEE_KNOTS_MAX] = {0}, beside[KNEE_KNOTS_MAX] = {0};
    double right[KNEE_KNOTS_MAX] = {0}, weights[KNEE_KNOTS_MAX];
    for (size_t n = 0; n < w->count; n++) {
        const struct knee_curve_point *p = &w->points[n];
        size_t i = c->knots > 1 ? piece_of(c, p->bytes) : 0;
        double up = c->knots > 1 ? (p->bytes - c->bytes[i]) / (c->bytes[i + 1] - c->bytes[i]) : 0;
        double down = 1 - up, scale = w->weight[n] / (p->time_s * p->time_s);
        diagonal[i] += scale * down * down;
        right[i] += scale * down * p->time_s;
        if (c->knots == 1)
            continue;
        diagonal[i + 1] += scale * up * up;
        beside[i] += scale * down * up;
        right[i + 1] += scale * up * p->time_s;
    }
    for (size_t i = 0; i < c->knots; i++) {
        diagonal[i] = diagonal[i] * (1 + 1e-9) + 1e-30;
        weights[i] = diagonal[i];
    }
    knee_tridiagonal_solve(c->knots, diagonal, beside, right);
    make_rising(right, weights, c->knots);
    memcpy(c->time_s, right, c->knots * sizeof *right);
}

/* The times of a chain whose sizes are set. */
static void fit_chain(struct work *w, struct chain *c)
{
    struct chain best = *c;
    best.cost = INFINITY;
    for (size_t n = 0; n < w->count; n++)
        w->weight[n] = 1;
    for (int turn = 0; turn < REWEIGHTS; turn++) {
        solve_knots(w, c);
        c->cost = 0;
        for (size_t n = 0; n < w->count; n++) {
            double ratio = fmax(chain_at(c, w->points[n].bytes) / w->points[n].time_s, 1e-6);
            c->cost += fabs(log(ratio));
            w->weight[n] = 1 / fmax(fabs(ratio - 1), 2e-3);
        }
        if (c->cost < best.cost)
            best = *c;
    }
    *c = best;
}

/* Sizes that may become knots: all, or evenly many of them, the first and the last included. */
static size_t choose_places(const struct work *w, double *places)
{
    size_t sizes = 0, kept = 0, size = 0;
    for (size_t n = 0; n < w->count; n++)
        sizes += n == 0 || w->points[n].bytes != w->points[n - 1].bytes;
    size_t most = sizes < PLACES_MAX ? sizes : PLACES_MAX;
    for (size_t n = 0; n < w->count && kept < most; n++) {
        if (n > 0 && w->points[n].bytes == w->points[n - 1].bytes)
            continue;
        if (most == 1 || size == kept * (sizes - 1) / (most - 1))
            places[kept++] = w->points[n].bytes;
        size++;
    }
    return kept;
}

static struct chain with_knot(const struct chain *c, double bytes)
{
    struct chain wider = *c;
    size_t i = wider.knots++;
    for (; i > 0 && wider.bytes[i - 1] > bytes; i--)
        wider.bytes[i] = wider.bytes[i - 1];
    wider.bytes[i] = bytes;
    return wider;
}

static bool has_knot(const struct chain *c, double bytes)
{
    for (size_t i = 0; i < c->knots; i++)
        if (c->bytes[i] == bytes)
            return true;
    return false;
}

/* Adds the best knot of all; false if no place is left. */
static bool add_knot(struct work *w, const double *places, size_t place_count, struct chain *c)
{
    struct chain best = {.cost = INFINITY};
    if (c->knots == KNEE_KNOTS_MAX)
        return false;
    for (size_t i = 0; i < place_count; i++) {
        if (has_knot(c, places[i]))
            continue;
        struct chain trial = with_knot(c, places[i]);
        fit_chain(w, &trial);
        if (trial.cost < best.cost)
            best = trial;
    }
    if (isinf(best.cost))
        return false;
    *c = best;
    return true;
}

/* The chains that each price stops at, from the dearest on. */
static void grow_chains(struct work *w, struct chain *chains)
{
    double places[PLACES_MAX] = {0};
    size_t place_count = choose_places(w, places), done = 0;
    struct chain c = {.knots = 1, .bytes = {places[0]}};
    if (place_count > 1)
        c = with_knot(&c, places[place_count - 1]);
    fit_chain(w, &c);
    while (done < PRICES) {
        struct chain wider = c;
        bool more = add_knot(w, places, place_count, &wider);
        while (done < PRICES && (!more || c.cost - wider.cost < prices[done]))
            chains[done++] = c;
        c = wider;
    }
}

/* Which price is best on sizes that were left out; without enough of them, the usual one. */
static size_t choose_price(const struct knee_curve_point *points, size_t count, struct work *w)
{
    double error[PRICES] = {0};
    struct chain chains[PRICES];
    if (count < 3 * FOLDS)
        return USUAL;
    for (size_t fold = 0; fold < FOLDS; fold++) {
        w->count = 0;
        for (size_t n = 0; n < count; n++)
            if (n == 0 || n + 1 == count || n % FOLDS != fold)
                w->points[w->count++] = points[n];
        grow_chains(w, chains);
        for (size_t n = 1; n + 1 < count; n++)
            for (size_t p = 0; n % FOLDS == fold && p < PRICES; p++) {
                double ratio = fmax(chain_at(&chains[p], points[n].bytes) / points[n].time_s, 1e-6);
                error[p] += fmin(fabs(log(ratio)), 0.5);
            }
    }
    size_t best = USUAL;
    for (size_t p = 0; p < PRICES; p++)
        if (error[p] < 0.85 * error[USUAL] && error[p] < error[best])
            best = p;
    return best;
}

knee_status knee_curve_fit(const struct knee_curve_point *points, size_t count,
                           const struct knee_alloc *alloc, struct knee_curve *out,
                           struct knee_err *err)
{
    struct chain chains[PRICES];
    if (count == 0)
        return knee_fail(err, KNEE_INPUT, "", "no points to fit a curve to");
    double *memory = knee_resize(alloc, NULL, count * (sizeof *points + sizeof *memory));
    if (!memory)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    struct work w = {.weight = memory, .points = (struct knee_curve_point *)(memory + count)};
    size_t price = choose_price(points, count, &w);
    memcpy(w.points, points, count * sizeof *points);
    w.count = count;
    grow_chains(&w, chains);
    out->knots = chains[price].knots;
    memcpy(out->bytes, chains[price].bytes, sizeof out->bytes);
    memcpy(out->time_s, chains[price].time_s, sizeof out->time_s);
    knee_resize(alloc, memory, 0);
    return KNEE_OK;
}

double knee_curve_time_s(const struct knee_curve *curve, double bytes)
{
    struct chain c = {.knots = curve->knots};
    memcpy(c.bytes, curve->bytes, sizeof c.bytes);
    memcpy(c.time_s, curve->time_s, sizeof c.time_s);
    return chain_at(&c, bytes);
}

const struct knee_curve *knee_curve_find(const struct knee_cluster *cluster,
                                         const struct knee_layout *layout, enum knee_op op)
{
    for (size_t i = 0; cluster->fitted && i < cluster->fitted->curve_count; i++) {
        const struct knee_curve *curve = &cluster->fitted->curves[i];
        if (curve->op == (int)op && curve->ranks == layout->ranks &&
            curve->nodes == layout->units[1])
            return curve;
    }
    return NULL;
}

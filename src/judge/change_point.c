/* SPDX-License-Identifier: MIT */
/*
 * Pettitt's test (Applied Statistics 28, 1979): on the ranks of the values, so that neither a few
 * wild steps nor the shape of the noise matter. With U_k = 2 (r_1 + ... + r_k) - k (n + 1) the
 * change lies where |U_k| is largest, K, and chance makes such a K with a probability of about
 * 2 exp(-6 K^2 / (n^3 + n^2)). Ranks place it only roughly where one side is longer than the other;
 * so it is moved to where distances from the two medians are least. What follows a change is
 * searched again: the newest one is wanted. A ramp is one change: what follows a change, in the
 * same direction and less than half as large, belongs to it.
 */
#include "judge/change_point.h"

#include "base/error.h"
#include "base/order.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHANCE 0.001

enum { FEWEST = 4 }; /* values on each side, less says nothing */

struct placed {
    double value;
    size_t at;
};

KNEE_BY(by_value, struct placed, value)

/* Ranks from 1, equal values share the mean of theirs. */
static void rank_values(const double *values, size_t n, struct placed *sorted, double *ranks)
{
    for (size_t i = 0; i < n; i++)
        sorted[i] = (struct placed){values[i], i};
    qsort(sorted, n, sizeof *sorted, by_value);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && sorted[to].value <= sorted[from].value;)
            to++;
        for (size_t i = from; i < to; i++)
            ranks[sorted[i].at] = 0.5 * (double)(from + to + 1);
    }
}

static double median_of(const double *values, size_t count, double *scratch)
{
    memcpy(scratch, values, count * sizeof *scratch);
    return knee_median(scratch, count);
}

/* The clearest change of all n values. */
static struct knee_change clearest(const double *values, size_t n, struct placed *sorted,
                                   double *ranks)
{
    struct knee_change change = {.chance = 1};
    double u = 0, most = 0, size = (double)n;
    rank_values(values, n, sorted, ranks);
    for (size_t k = 1; k < n; k++) {
        u += 2 * ranks[k - 1] - (size + 1);
        if (fabs(u) > most && k >= FEWEST && n - k >= FEWEST) {
            most = fabs(u);
            change.at = k;
        }
    }
    change.found = most > 0;
    change.chance = fmin(1, 2 * exp(-6 * most * most / (size * size * size + size * size)));
    return change;
}

/* The first value that is nearer to the new median, summed over all. */
static size_t sharpen(const double *values, size_t n, double before, double after)
{
    double sum = 0, least = INFINITY;
    size_t best = FEWEST;
    for (size_t k = 0; k <= n - FEWEST; k++) {
        if (k >= FEWEST && sum < least) {
            least = sum;
            best = k;
        }
        sum += fabs(values[k] - before) - fabs(values[k] - after);
    }
    return best;
}

struct series {
    const double *values;
    size_t count;
    struct placed *sorted; /* [count], scratch, as are */
    double *ranks;
};

static bool same_change(const struct knee_change *first, const struct knee_change *next)
{
    double jump = first->after - first->before, more = next->after - next->before;
    return first->found && jump * more > 0 && fabs(jump) > 2 * fabs(more);
}

/* Searches values[from ..); true: there is one, at least as large as it has to be. */
static bool search(const struct series *s, size_t from, double least, struct knee_change *out)
{
    const double *values = s->values;
    size_t count = s->count;
    struct knee_change change = clearest(values + from, count - from, s->sorted, s->ranks);
    if (!change.found || change.chance > CHANCE)
        return false;
    for (int round = 0; round < 2; round++) {
        size_t at = from + change.at;
        change.before = median_of(values + from, at - from, s->ranks);
        change.after = median_of(values + at, count - at, s->ranks);
        change.at = sharpen(values + from, count - from, change.before, change.after);
    }
    change.at += from;
    if (fabs(change.after - change.before) < least)
        return false;
    *out = change;
    return true;
}

knee_status knee_change_point(const double *values, size_t count, double least,
                              const struct knee_alloc *alloc, struct knee_change *out,
                              struct knee_err *err)
{
    struct knee_change newest = {0};
    struct placed *sorted = knee_resize(alloc, NULL, (count + 1) * sizeof *sorted);
    double *ranks = knee_resize(alloc, NULL, (count + 1) * sizeof *ranks);
    struct series series = {values, count, sorted, ranks};
    bool good = sorted && ranks;
    for (size_t from = 0; good && count - from >= 2 * (size_t)FEWEST;) {
        struct knee_change next;
        if (!search(&series, from, least, &next))
            break;
        from = next.at;
        if (same_change(&newest, &next))
            newest.after = next.after;
        else
            newest = next;
    }
    knee_resize(alloc, sorted, 0);
    knee_resize(alloc, ranks, 0);
    if (!good)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    *out = newest;
    return KNEE_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * The mean step of every rank, over complete steps only, and how far steps differ: median, 95th
 * percentile and the worst, with the label and the rank that made the worst what it is.
 */
#include "base/error.h"
#include "base/order.h"
#include "base/text.h"
#include "judge/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool counts(const struct knee_step_account *step, bool complete)
{
    return step->number >= 0 && (step->complete || !complete);
}

/* Rows [from, to) are the steps of one rank. */
static struct knee_mean_step mean_of(const struct knee_account *account, size_t rank, size_t from,
                                     size_t to)
{
    struct knee_mean_step mean = {.steps = 0};
    for (int complete = 1; complete >= 0 && mean.steps == 0; complete--)
        for (size_t i = from; i < to; i++) {
            const struct knee_ledger *ledger = &account->steps[i].ledger;
            if (!counts(&account->steps[i], complete))
                continue;
            mean.steps++;
            mean.step.wall_s += 1e-9 * (double)ledger->window_ns;
            mean.step.comm_s += 1e-9 * (double)ledger->comm_ns;
            for (int label = 0; label < KNEE_LABELS; label++)
                mean.step.label_s[label] += 1e-9 * (double)ledger->label_ns[label];
        }
    if (mean.steps == 0)
        return (struct knee_mean_step){knee_ledger_step(&account->ranks[rank].ledger, 1), 1};
    mean.step.wall_s /= mean.steps;
    mean.step.comm_s /= mean.steps;
    for (int label = 0; label < KNEE_LABELS; label++)
        mean.step.label_s[label] /= mean.steps;
    return mean;
}

void knee_mean_steps(const struct knee_account *account, struct knee_mean_step *means)
{
    size_t from = 0;
    for (size_t r = 0; r < account->rank_count; r++) {
        size_t to = from;
        while (to < account->step_count && account->steps[to].rank == r)
            to++;
        means[r] = mean_of(account, r, from, to);
        from = to;
    }
}

/* ---- Spread ---- */

static void sort(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof *values, knee_ascending);
}

static double standard_error(const double *values, size_t count)
{
    double mean = 0, squares = 0, n = (double)count;
    for (size_t i = 0; i < count; i++)
        mean += values[i] / n;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return count > 1 ? sqrt(squares / (n - 1) / n) : NAN;
}

/* One step over all its ranks. */
struct numbered {
    int64_t number;
    size_t row;
};

KNEE_BY_TWO(by_number, struct numbered, number, row)

/* Fills values[] with the mean wall time of each number, and out->worst. Returns how many. */
static size_t walls_of(const struct knee_account *account, const struct numbered *list,
                       size_t count, double *values, struct knee_step_spread *out)
{
    size_t made = 0;
    for (size_t i = 0, next; i < count; i = next) {
        double sum = 0;
        for (next = i; next < count && list[next].number == list[i].number; next++)
            sum += 1e-9 * (double)account->steps[list[next].row].ledger.window_ns;
        values[made] = sum / (double)(next - i);
        if (made == 0 || values[made] > out->worst_s) {
            out->worst_s = values[made];
            out->worst = list[i].number;
        }
        made++;
    }
    return made;
}

/* The middle of a label over the complete steps of the rank that row `row` belongs to. */
static double usual(const struct knee_account *account, size_t row, int label, double *values)
{
    size_t rank = account->steps[row].rank, from = row, made = 0;
    while (from > 0 && account->steps[from - 1].rank == rank)
        from--;
    for (; from < account->step_count && account->steps[from].rank == rank; from++)
        if (counts(&account->steps[from], true))
            values[made++] = 1e-9 * (double)account->steps[from].ledger.label_ns[label];
    sort(values, made);
    return values[made / 2];
}

/* Waiting and transfer depend on other ranks. They are named only if nothing that the rank does by
 * itself explains half of the excess. */
static void name_worst(const struct knee_account *account, const struct numbered *list,
                       size_t count, double *values, struct knee_step_spread *out)
{
    double own = 0, any = 0, half = 0.5 * (out->worst_s - out->median_s);
    for (size_t i = 0; i < count; i++) {
        if (list[i].number != out->worst)
            continue;
        const struct knee_step_account *step = &account->steps[list[i].row];
        for (int label = 0; label < KNEE_LABELS; label++) {
            bool follows = label == KNEE_TRANSFER || label == KNEE_WAIT;
            double excess = 1e-9 * (double)step->ledger.label_ns[label] -
                            usual(account, list[i].row, label, values);
            bool better = follows ? excess > any && own < half
                                  : excess > own && (excess >= half || excess > any);
            own = follows || excess <= own ? own : excess;
            any = excess > any ? excess : any;
            if (!better)
                continue;
            out->label = (enum knee_label)label;
            out->rank = step->rank;
            out->excess_s = excess;
        }
    }
}

knee_status knee_step_spread_of(const struct knee_account *account, const struct knee_alloc *alloc,
                                struct knee_step_spread *out, struct knee_err *err)
{
    size_t count = 0, steps = account->step_count + 1;
    struct knee_step_spread spread = {
        .median_s = NAN, .p95_s = NAN, .worst_s = NAN, .error_s = NAN};
    struct numbered *list = knee_resize(alloc, NULL, steps * sizeof *list);
    double *values = knee_resize(alloc, NULL, steps * sizeof *values);
    for (size_t i = 0; i < account->step_count && list && values; i++)
        if (counts(&account->steps[i], true))
            list[count++] = (struct numbered){account->steps[i].number, i};
    if (count) {
        qsort(list, count, sizeof *list, by_number);
        spread.steps = walls_of(account, list, count, values, &spread);
        sort(values, spread.steps);
        spread.median_s = values[spread.steps / 2];
        spread.error_s = standard_error(values, spread.steps);
        spread.p95_s = values[(size_t)ceil(0.95 * (double)spread.steps) - 1];
        name_worst(account, list, count, values, &spread);
    }
    bool good = list && values;
    knee_resize(alloc, list, 0);
    knee_resize(alloc, values, 0);
    if (!good)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the steps");
    *out = spread;
    return KNEE_OK;
}

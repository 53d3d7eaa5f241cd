/* SPDX-License-Identifier: MIT */
/* Lists of worker counts, kept as the ranges they were written in. */
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/number.h"

#include <math.h>
#include <string.h>

static knee_status bad(const char *piece, const char *why, const char *where, struct knee_err *err)
{
    knee_status status = knee_fail(err, KNEE_USAGE, where, "'%.60s' %s", piece, why);
    knee_hint(err, "for example 8, 1,2,4 or 1..1024x2");
    return status;
}

static knee_status parse_count(const char *text, const char *piece, const char *where, double *out,
                               struct knee_err *err)
{
    double value = 0;
    if (knee_number_parse(text, KNEE_UNIT_COUNT, where, &value, NULL))
        return bad(piece, "is not a count", where, err);
    if (value != rint(value) || value < 1 || value > KNEE_WORKERS_MAX)
        return bad(piece, "is not a whole number from 1 to 16777216", where, err);
    *out = value;
    return KNEE_OK;
}

/* How many counts a range stands for. */
static double range_length(double from, double to, double factor, double step)
{
    if (factor > 1)
        return floor(log(to / from) / log(factor) + 1e-9) + 1;
    return floor((to - from) / step) + 1;
}

/* One piece: N, A..B, A..BxF or A..B+S. `piece` is ours to cut up. */
static knee_status parse_range(char *piece, const char *where, struct knee_workers *workers,
                               struct knee_err *err)
{
    char whole[64];
    double from = 0, to = 0, factor = 1, step = 1;
    knee_format(whole, sizeof whole, "%.60s", piece);
    char *dots = strstr(piece, "..");
    if (dots) {
        char *by = strpbrk(dots, "x+*");
        if (by) {
            char kind = *by;
            double amount = 0;
            if (knee_number_parse(by + 1, KNEE_UNIT_COUNT, where, &amount, NULL) || amount < 1 ||
                (kind != '+' && amount < 1.1))
                return bad(whole, "has no step after 'x' or '+'", where, err);
            *by = '\0';
            *(kind == '+' ? &step : &factor) = amount;
        }
        *dots = '\0';
    }
    knee_status status = parse_count(piece, whole, where, &from, err);
    if (status)
        return status;
    to = from;
    if (dots && (status = parse_count(dots + 2, whole, where, &to, err)))
        return status;
    if (to < from)
        return bad(whole, "is empty: it ends before it starts", where, err);
    if (range_length(from, to, factor, step) > KNEE_ROWS_MAX) {
        status = knee_fail(err, KNEE_USAGE, where, "'%s' is %.0f counts, %d at most", whole,
                           range_length(from, to, factor, step), KNEE_ROWS_MAX);
        knee_hint(err, "%.0f..%.0fx2 doubles instead", from, to);
        return status;
    }
    if (workers->ranges == KNEE_WORKER_RANGES)
        return knee_fail(err, KNEE_USAGE, where, "more than %d pieces", KNEE_WORKER_RANGES);
    workers->range[workers->ranges].from = from;
    workers->range[workers->ranges].to = to;
    workers->range[workers->ranges].factor = factor;
    workers->range[workers->ranges].step = step;
    workers->ranges++;
    return KNEE_OK;
}

knee_status knee_workers_parse(const char *text, const char *where, struct knee_workers *out,
                               struct knee_err *err)
{
    struct knee_workers workers = {0};
    char copy[512];
    size_t length = strlen(text);
    if (length >= sizeof copy)
        return knee_fail(err, KNEE_USAGE, where, "the list is longer than %zu characters",
                         sizeof copy - 1);
    memcpy(copy, text, length + 1);
    for (char *piece = copy, *next; piece; piece = next) {
        next = strchr(piece, ',');
        if (next)
            *next++ = '\0';
        knee_status status = parse_range(piece, where, &workers, err);
        if (status)
            return status;
    }
    *out = workers;
    return KNEE_OK;
}

/* Into its place among `count` that ascend; false when it is there already. */
static bool insert(double *out, size_t count, size_t capacity, double k)
{
    size_t at = count;
    while (at > 0 && out[at - 1] >= k)
        at--;
    if (at < count && out[at] == k)
        return false;
    if (count < capacity) {
        memmove(out + at + 1, out + at, (count - at) * sizeof *out);
        out[at] = k;
    }
    return true;
}

size_t knee_workers_list(const struct knee_workers *workers, double *out, size_t capacity)
{
    size_t count = 0;
    if (capacity > KNEE_ROWS_MAX)
        capacity = KNEE_ROWS_MAX;
    for (size_t i = 0; i < workers->ranges; i++) {
        double from = workers->range[i].from, to = workers->range[i].to;
        double factor = workers->range[i].factor, step = workers->range[i].step;
        for (double k = from; k <= to; k = factor > 1 ? fmax(rint(k * factor), k + 1) : k + step) {
            count += insert(out, count, capacity, k);
            if (count > capacity)
                return 0;
        }
    }
    return count;
}

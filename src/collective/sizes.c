/* SPDX-License-Identifier: MIT */
/* Lists of message sizes, in the spelling of nccl-tests: K, M and G are powers of 1024. */
#include "base/error.h"
#include "base/format.h"
#include "base/order.h"
#include "base/slice.h"
#include "knee_collective.h"

#include <math.h>
#include <stdlib.h>

static const struct {
    const char *text;
    double factor;
} suffixes[] = {{"", 1},        {"B", 1},         {"K", 1024},         {"k", 1024},
                {"M", 1048576}, {"m", 1048576},   {"G", 1073741824},   {"g", 1073741824},
                {"KiB", 1024},  {"MiB", 1048576}, {"GiB", 1073741824}, {"T", 1099511627776},
                {"KB", 1e3},    {"kB", 1e3},      {"MB", 1e6},         {"GB", 1e9}};

static knee_status bad(struct knee_slice piece, const char *why, const char *where,
                       struct knee_err *err)
{
    char text[64];
    knee_slice_copy(piece, text, sizeof text);
    knee_status status = knee_fail(err, KNEE_USAGE, where, "'%s' %s", text, why);
    knee_hint(err, "for example 1M, 4K..8G or 4K..8Gx4");
    return status;
}

static bool read_size(struct knee_slice text, double *out)
{
    size_t digits = 0;
    double number;
    text = knee_slice_trim(text);
    while (digits < text.length &&
           ((text.at[digits] >= '0' && text.at[digits] <= '9') || text.at[digits] == '.'))
        digits++;
    struct knee_slice suffix = knee_slice_trim(knee_slice_from(text, digits));
    if (!knee_slice_number((struct knee_slice){text.at, digits}, &number))
        return false;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (knee_slice_is(suffix, suffixes[i].text)) {
            double bytes = rint(number * suffixes[i].factor);
            *out = bytes;
            return bytes >= 1 && bytes <= 1e15;
        }
    return false;
}

static knee_status too_many(struct knee_slice piece, size_t capacity, const char *where,
                            struct knee_err *err)
{
    char why[64];
    knee_format(why, sizeof why, "makes more than %zu sizes", capacity);
    return bad(piece, why, where, err);
}

/* Where sizes go; out NULL: they are only counted. */
struct list {
    double *out;
    size_t count, capacity;
};

/* "A..B", "A..BxF", "A..B+S", or one size. */
static knee_status add_range(struct knee_slice piece, const char *where, struct list *list,
                             struct knee_err *err)
{
    size_t dots = knee_slice_find(piece, "..");
    double from, to, factor = 2, step = 0;
    struct knee_slice last = knee_slice_from(piece, dots + 2);
    if (dots == piece.length) {
        if (!read_size(piece, &from))
            return bad(piece, "is not a size", where, err);
        to = from;
    } else {
        size_t times = knee_slice_find(last, "x"), plus = knee_slice_find(last, "+");
        if (times < last.length &&
            (!knee_slice_number(knee_slice_trim(knee_slice_from(last, times + 1)), &factor) ||
             factor < 1.01))
            return bad(piece, "has no factor after x", where, err);
        if (plus < last.length && !read_size(knee_slice_from(last, plus + 1), &step))
            return bad(piece, "has no step after +", where, err);
        last.length = times < plus ? times : plus;
        if (!read_size((struct knee_slice){piece.at, dots}, &from) || !read_size(last, &to))
            return bad(piece, "is not a range of sizes", where, err);
        if (to < from)
            return bad(piece, "is empty: it ends before it starts", where, err);
    }
    for (double bytes = from; bytes <= to; bytes = step > 0 ? bytes + step : rint(bytes * factor)) {
        if (list->count == list->capacity)
            return too_many(piece, list->capacity, where, err);
        if (list->out)
            list->out[list->count] = bytes;
        list->count++;
        if (bytes == to)
            break;
    }
    return KNEE_OK;
}

static knee_status add_ranges(const char *text, const char *where, struct list *list,
                              struct knee_err *err)
{
    struct knee_slice rest = knee_slice_of(text), piece;
    if (rest.length == 0)
        return bad(rest, "is not a size", where, err);
    while (knee_slice_until(&rest, ',', &piece)) {
        knee_status status = add_range(piece, where, list, err);
        if (status)
            return status;
    }
    return KNEE_OK;
}

knee_status knee_sizes_parse(const char *text, const char *where, double *out, size_t capacity,
                             size_t *count, struct knee_err *err)
{
    size_t most = capacity < KNEE_SIZES_MAX ? capacity : KNEE_SIZES_MAX, kept = 0;
    struct list counted = {NULL, 0, most}, list = {out, 0, most};
    knee_status status = add_ranges(text, where, &counted, err);
    if (status)
        return status;
    add_ranges(text, where, &list, NULL); /* nothing is written before all of it is known good */
    qsort(out, list.count, sizeof *out, knee_ascending);
    for (size_t i = 0; i < list.count; i++)
        if (kept == 0 || out[kept - 1] != out[i])
            out[kept++] = out[i];
    *count = kept;
    return KNEE_OK;
}

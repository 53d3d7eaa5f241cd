/* SPDX-License-Identifier: MIT */
/* Spans by name: those wide enough to carry theirs, and those that a search looks for. */
#include "base/fold.h"
#include "lanes.h"
#include "out/json.h"
#include "timeline/account.h"
#include "view.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK_MOST = 1 << 16, NAMED_MOST = 2000, NAME_CHARS = 200 };

/* A rank's own clock, from that of the view. */
static int64_t own_zero(const struct knee_rank_account *rank)
{
    return (int64_t)page_view_start_ns() - rank->trace->base_ns - rank->shift_ns;
}

static void put_span(struct knee_json *json, const struct knee_rank_account *rank,
                     const struct knee_span *span)
{
    int64_t zero = own_zero(rank);
    char name[NAME_CHARS + 1];
    const char *full = rank->trace->names[span->name];
    size_t length = strnlen(full, NAME_CHARS);
    while (length && ((unsigned char)full[length] & 0xc0) == 0x80)
        length--; /* no half characters */
    memcpy(name, full, length);
    name[length] = '\0';
    knee_json_whole(json, "lane", lane_of(span->kind) + 1);
    knee_json_number(json, "from", (double)(span->start_ns - zero));
    knee_json_number(json, "to", (double)(span->end_ns - zero));
    knee_json_string(json, "name", name);
}

/* The spans of a lane that are open in [from, to), on the rank's own clock. */
static void put_lane(struct knee_json *json, const struct knee_rank_account *r,
                     const struct lane *lane, const int64_t window[2], double least_ns)
{
    size_t put = 0, first = lane_first_from(lane, r->source, window[0]);
    size_t last = lane_first_from(lane, r->source, window[1]);
    if (last - first >= LOOK_MOST)
        return;
    for (size_t i = lane_first_open(lane, window[0]); i < last && put < NAMED_MOST; i++) {
        const struct knee_span *span = &r->source->spans[lane->rows[i]];
        if (span->end_ns <= window[0] || (double)(span->end_ns - span->start_ns) < least_ns)
            continue;
        knee_json_open_flat(json, NULL, '{');
        put_span(json, r, span);
        knee_json_close(json, '}');
        put++;
    }
}

/* {"spans": [{lane, from, to, name}]} of a rank in [from, to), at least `least_ns` long. Where
 * very many begin in view, none is wide enough to be worth the search. */
void EXPORT(kw_named)(size_t rank, double from_ns, double to_ns, double least_ns)
{
    const struct knee_account *account = page_account();
    const struct lanes *lanes = page_lanes(rank);
    struct knee_json json = {.text = page_answer()};
    knee_json_open_flat(&json, NULL, '{');
    knee_json_open_flat(&json, "spans", '[');
    if (rank < account->rank_count && lanes) {
        const struct knee_rank_account *r = &account->ranks[rank];
        int64_t zero = own_zero(r), window[2] = {zero + (int64_t)from_ns, zero + (int64_t)to_ns};
        for (int i = 0; i < LANES; i++)
            put_lane(&json, r, &lanes->lane[i], window, least_ns);
    }
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
}

/* {"compute": ns, ...}: what [from, to) of a rank is, every nanosecond labelled. */
void EXPORT(kw_sums)(size_t rank, double from_ns, double to_ns)
{
    const struct knee_account *account = page_account();
    struct knee_json json = {.text = page_answer()};
    int64_t sums[KNEE_LABELS] = {0};
    size_t at = 0;
    knee_json_open_flat(&json, NULL, '{');
    if (rank < account->rank_count) {
        const struct knee_rank_account *r = &account->ranks[rank];
        int64_t zero = own_zero(r);
        knee_sum_labels(r, &at, zero + (int64_t)from_ns, zero + (int64_t)to_ns, sums);
        for (int label = 0; label < KNEE_LABELS; label++)
            knee_json_whole(&json, knee_label_name((enum knee_label)label), sums[label]);
    }
    knee_json_close(&json, '}');
}

static bool has(const char *name, const char *wanted)
{
    for (; *name; name++) {
        size_t k = 0;
        while (wanted[k] && knee_lower(name[k]) == knee_lower(wanted[k]))
            k++;
        if (!wanted[k])
            return true;
    }
    return !*wanted;
}

/* Spans of a rank whose name has `wanted` in it. Puts number `which` of all ranks, of which
 * `before` came before this rank. */
static size_t count_rank(const struct knee_rank_account *r, size_t row, const char *wanted,
                         size_t which, size_t before, struct knee_json *json)
{
    size_t names = r->trace->name_count, found = 0;
    bool *good = calloc(names + 1, sizeof *good);
    if (!good)
        return 0;
    for (size_t i = 0; i < names; i++)
        good[i] = has(r->trace->names[i], wanted);
    for (size_t i = 0; i < r->source->span_count; i++) {
        const struct knee_span *span = &r->source->spans[i];
        if (!good[span->name])
            continue;
        if (before + found++ == which) {
            knee_json_whole(json, "row", (int64_t)row);
            knee_json_whole(json, "rank", r->rank);
            put_span(json, r, span);
        }
    }
    free(good);
    return found;
}

/* {"row", "rank", "lane", "from", "to", "name", "count"}: the which-th span named so. */
void EXPORT(kw_find)(const char *wanted, size_t which)
{
    const struct knee_account *account = page_account();
    struct knee_json json = {.text = page_answer()};
    size_t count = 0;
    knee_json_open_flat(&json, NULL, '{');
    for (size_t r = 0; r < account->rank_count; r++)
        count += count_rank(&account->ranks[r], r, wanted, which, count, &json);
    knee_json_whole(&json, "count", (int64_t)count);
    knee_json_close(&json, '}');
}

/* SPDX-License-Identifier: MIT */
/*
 * Spans of a rank by lane (compute, communication, copies), so that those that are open at a moment
 * are found at once however long ago they began. Rows of a lane are in order of their start, and
 * `latest` is the end of whichever of them so far ends last: it never falls, so a binary search
 * finds the first row that can still be open. A collective that ran behind thousands of kernels is
 * in another lane than they are, and a step or two away.
 */
#include "lanes.h"
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

int lane_of(enum knee_span_kind kind)
{
    return kind == KNEE_SPAN_COMM ? 1 : kind == KNEE_SPAN_COPY ? 2 : 0;
}

void lanes_release(struct lanes *lanes)
{
    for (int i = 0; i < LANES; i++) {
        free(lanes->lane[i].rows);
        free(lanes->lane[i].latest);
    }
    *lanes = (struct lanes){0};
}

static bool make_lane(struct lane *lane, size_t count)
{
    lane->rows = malloc((count + 1) * sizeof *lane->rows);
    lane->latest = malloc((count + 1) * sizeof *lane->latest);
    return lane->rows && lane->latest;
}

bool lanes_make(struct lanes *lanes, const struct knee_rank *rank)
{
    size_t counts[LANES] = {0};
    bool good = true;
    *lanes = (struct lanes){0};
    for (size_t i = 0; i < rank->span_count; i++)
        counts[lane_of(rank->spans[i].kind)]++;
    for (int i = 0; i < LANES; i++)
        good = make_lane(&lanes->lane[i], counts[i]) && good;
    for (size_t i = 0; i < rank->span_count && good; i++) {
        struct lane *lane = &lanes->lane[lane_of(rank->spans[i].kind)];
        int64_t end = rank->spans[i].end_ns;
        int64_t before = lane->count ? lane->latest[lane->count - 1] : end;
        lane->latest[lane->count] = end > before ? end : before;
        lane->rows[lane->count++] = (uint32_t)i;
    }
    if (!good)
        lanes_release(lanes);
    return good;
}

size_t lane_first_open(const struct lane *lane, int64_t ns)
{
    size_t low;
    KNEE_BISECT(low, lane->count, lane->latest[low] <= ns);
    return low;
}

size_t lane_first_from(const struct lane *lane, const struct knee_rank *rank, int64_t ns)
{
    size_t low;
    KNEE_BISECT(low, lane->count, rank->spans[lane->rows[low]].start_ns < ns);
    return low;
}

const struct knee_span *lane_at(const struct lane *lane, const struct knee_rank *rank, int64_t ns)
{
    for (size_t i = lane_first_from(lane, rank, ns + 1); i-- > 0 && lane->latest[i] > ns;)
        if (rank->spans[lane->rows[i]].end_ns > ns)
            return &rank->spans[lane->rows[i]];
    return NULL;
}

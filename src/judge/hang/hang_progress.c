/* SPDX-License-Identifier: MIT */
/* All ranks came, and still nothing ends: groups in opposite order, a GPU that does not get there,
 * or the wire. */
#include "judge/hang/hang_calls.h"

#include "base/order.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- Two groups ---- */

/* A rank that is in `first` and comes to `second` only after it. */
struct held {
    uint32_t first, second;
    int32_t rank;
};

static bool comes_before(const struct knee_hang_call *a, const struct knee_hang_call *b)
{
    if (a->dump && b->dump)
        return a->started && !b->started;
    return a->mark != KNEE_JOB_NO_MARK && b->mark != KNEE_JOB_NO_MARK && a->mark < b->mark;
}

KNEE_BY_TWO(by_groups, struct held, first, second)

/* Each rank's first call, then all others of it that wait. Rows in *out, its number returned. */
static size_t hold(const struct knee_hang_view *view, size_t *first_of, struct held *out)
{
    const struct knee_hang_call *calls = view->out->calls;
    size_t count = 0;
    for (int64_t r = 0; r < view->world; r++)
        first_of[r] = SIZE_MAX;
    for (size_t i = 0; i < view->out->call_count; i++) {
        size_t *first = &first_of[calls[i].rank];
        if (calls[i].waits >= 0 && !calls[i].broken &&
            (*first == SIZE_MAX || comes_before(&calls[i], &calls[*first])))
            *first = i;
    }
    for (size_t i = 0; i < view->out->call_count; i++) {
        size_t first = first_of[calls[i].rank];
        if (calls[i].waits >= 0 && !calls[i].broken && first != SIZE_MAX && first != i &&
            comes_before(&calls[first], &calls[i]))
            out[count++] = (struct held){calls[first].group, calls[i].group, calls[i].rank};
    }
    qsort(out, count, sizeof *out, by_groups);
    return count;
}

static void name_crossed(struct knee_hang_view *view, const struct held *rows, size_t count,
                         const struct held *one)
{
    struct knee_hang_answer *out = view->out;
    for (size_t i = 0; i < count; i++)
        if ((rows[i].first == one->first && rows[i].second == one->second) ||
            (rows[i].first == one->second && rows[i].second == one->first))
            knee_hang_name(view, rows[i].rank);
    out->kind = KNEE_HANG_CROSSED;
    out->certainty = KNEE_CERTAIN;
    out->waits = knee_hang_call_of(view, one->first, one->rank);
    for (size_t i = 0; i < count && !out->instead; i++) /* a rank that is in the other one first */
        if (rows[i].first == one->second && rows[i].second == one->first)
            out->instead = knee_hang_call_of(view, one->second, rows[i].rank);
    for (size_t i = 0; i < out->call_count; i++)
        out->waiting += out->calls[i].group == one->first && out->calls[i].waits >= 0;
}

static bool crossed(struct knee_hang_view *view)
{
    size_t count = view->out->call_count, found = SIZE_MAX;
    struct held *rows = knee_resize(view->alloc, NULL, (count + 1) * sizeof *rows);
    size_t *first_of = knee_resize(view->alloc, NULL, ((size_t)view->world + 1) * sizeof *first_of);
    view->no_memory = view->no_memory || !rows || !first_of;
    size_t held = rows && first_of ? hold(view, first_of, rows) : 0;
    for (size_t i = 0; i < held && found == SIZE_MAX; i++) {
        struct held other = {rows[i].second, rows[i].first, 0};
        if (bsearch(&other, rows, held, sizeof other, by_groups))
            found = i;
    }
    if (found != SIZE_MAX)
        name_crossed(view, rows, held, &rows[found]);
    knee_resize(view->alloc, rows, 0);
    knee_resize(view->alloc, first_of, 0);
    return found != SIZE_MAX;
}

/* ---- A GPU ---- */

/* Has this rank's GPU started a call of another group? Then that one is in the way. */
static bool is_elsewhere(const struct knee_hang_view *view, const struct knee_hang_call *call)
{
    for (size_t i = 0; i < view->out->call_count; i++) {
        const struct knee_hang_call *c = &view->out->calls[i];
        if (c->rank == call->rank && c->group != call->group && c->waits >= 0 && c->started)
            return true;
    }
    return false;
}

/* In one group: some GPUs have started the call and fewer have not. */
static bool late_gpu(struct knee_hang_view *view, size_t first, size_t end)
{
    struct knee_hang_answer *out = view->out;
    int64_t number = knee_hang_lowest(view, first, end);
    size_t started = 0, not = 0;
    bool elsewhere = false;
    for (size_t i = first; i < end; i++) {
        const struct knee_hang_call *c = &out->calls[i];
        if (!c->dump || c->waits != number || number < 0)
            continue;
        started += c->started;
        not += !c->started;
        elsewhere = elsewhere || (!c->started && is_elsewhere(view, c));
    }
    if (!started || !not || not >= started || elsewhere)
        return false;
    for (size_t i = first; i < end; i++) {
        const struct knee_hang_call *c = &out->calls[i];
        if (c->dump && c->waits == number && !c->started) {
            knee_hang_name(view, c->rank);
            out->instead = c;
        } else if (c->waits == number) {
            out->waits = c;
        }
    }
    bool all = started + not >= knee_hang_group_size(view, out->calls[first].group);
    out->waiting = started;
    out->kind = KNEE_HANG_GPU_LATE;
    out->certainty = all ? KNEE_CERTAIN : KNEE_LIKELY;
    return true;
}

/* Do all members leave together? Then no rank can be past a call that another is still in. */
static bool ends_together(enum knee_op op)
{
    return op == KNEE_OP_ALL_REDUCE || op == KNEE_OP_ALL_GATHER || op == KNEE_OP_REDUCE_SCATTER ||
           op == KNEE_OP_BARRIER || op == KNEE_OP_ALL_TO_ALL || op == KNEE_OP_ALL_TO_ALLV;
}

/* In one group: most wait in a later call, and so have finished the one that these are in. */
static bool lagging(struct knee_hang_view *view, size_t first, size_t end)
{
    struct knee_hang_answer *out = view->out;
    int64_t number = knee_hang_lowest(view, first, end);
    size_t in = 0, past = 0;
    for (size_t i = first; i < end; i++) {
        const struct knee_hang_call *c = &out->calls[i];
        in += c->waits == number && !c->broken && ends_together(c->op);
        past += c->waits > number && !c->broken;
    }
    if (number < 0 || !in || in >= past)
        return false;
    for (size_t i = first; i < end; i++) {
        const struct knee_hang_call *c = &out->calls[i];
        if (c->waits == number && !c->broken) {
            knee_hang_name(view, c->rank);
            out->instead = c;
        } else if (c->waits > number) {
            out->waits = c;
        }
    }
    out->waiting = past;
    out->kind = KNEE_HANG_GPU_LATE;
    out->certainty = KNEE_LIKELY;
    return true;
}

/* Others have finished a call that these have not: by all groups together. */
static bool behind(struct knee_hang_view *view)
{
    struct knee_hang_answer *out = view->out;
    for (size_t i = 0; i < view->roll.blamed_count; i++)
        knee_hang_name(view, view->roll.blamed[i].rank);
    if (!out->named_count)
        return false;
    for (size_t i = 0; i < out->call_count && !out->waits; i++)
        if (out->calls[i].waits >= 0 && out->calls[i].rank == out->named[0])
            out->waits = &out->calls[i];
    out->instead = out->waits;
    out->kind =
        view->roll.blamed[0].blame == KNEE_BLAME_BEHIND ? KNEE_HANG_GPU_LATE : KNEE_HANG_BUSY;
    out->certainty = KNEE_LIKELY;
    return true;
}

/* ---- What the watchdogs hold ---- */

/* Heartbeats say how many calls are outstanding: who holds fewer has enqueued fewer. Two ranks with
 * one number inside the group are in two groups of one name. */
static bool fewer_outstanding(struct knee_hang_view *view, size_t first, size_t end)
{
    int64_t most = -1, fewest = INT64_MAX;
    size_t few = 0, seen = 0;
    for (size_t i = first; i < end; i++) {
        const struct knee_hang_call *c = &view->out->calls[i];
        if (c->outstanding < 0)
            continue;
        if (c->waits >= 0 || (i > first && c->group_rank == view->out->calls[i - 1].group_rank))
            return false;
        seen++;
        most = c->outstanding > most ? c->outstanding : most;
        fewest = c->outstanding < fewest ? c->outstanding : fewest;
    }
    for (size_t i = first; i < end; i++)
        few += view->out->calls[i].outstanding == fewest;
    if (fewest >= most || 2 * few >= seen + (seen == 2))
        return false;
    for (size_t i = first; i < end; i++)
        if (view->out->calls[i].outstanding == fewest) {
            knee_hang_name(view, view->out->calls[i].rank);
            knee_hang_show(view, view->out->calls[i].mark);
            view->out->instead = &view->out->calls[i];
        } else if (view->out->calls[i].outstanding >= 0) {
            view->out->waits = &view->out->calls[i];
        }
    view->out->kind = KNEE_HANG_BUSY;
    view->out->certainty = KNEE_LIKELY;
    return true;
}

/* All ranks that can be in the collective are in it, and nothing distinguishes them. */
static void nobody(struct knee_hang_view *view)
{
    struct knee_hang_answer *out = view->out;
    size_t best = 0;
    for (size_t first = 0, end; first < out->call_count; first = end) {
        end = knee_hang_group(view, first);
        int64_t number = knee_hang_lowest(view, first, end);
        size_t in = 0, size = knee_hang_group_size(view, out->calls[first].group);
        bool told = true; /* what each of them does is known */
        for (size_t i = first; i < end; i++) {
            const struct knee_hang_call *c = &out->calls[i];
            in += number >= 0 && c->entered >= number;
            told = told && (c->dump || c->waits != number || c->op != KNEE_OP_UNKNOWN) &&
                   (c->dump || c->waits >= 0);
        }
        for (size_t i = first; i < end && in > best; i++)
            if (out->calls[i].waits == number) {
                out->waits = &out->calls[i];
                out->kind = in >= size && size > 1 && told && view->world_sure ? KNEE_HANG_WIRE
                                                                               : KNEE_HANG_UNKNOWN;
            }
        best = in > best ? in : best;
    }
    out->waiting = best;
    out->certainty = KNEE_CANNOT_TELL;
}

bool knee_hang_by_order(struct knee_hang_view *view)
{
    if (crossed(view))
        return true;
    for (size_t first = 0, end; first < view->out->call_count; first = end) {
        end = knee_hang_group(view, first);
        if (late_gpu(view, first, end))
            return true;
    }
    return false;
}

bool knee_hang_by_progress(struct knee_hang_view *view)
{
    struct knee_hang_answer *out = view->out;
    bool waits = false, stuck = false;
    if (knee_hang_by_order(view))
        return true;
    for (size_t first = 0, end; first < out->call_count; first = end) {
        end = knee_hang_group(view, first);
        if (fewer_outstanding(view, first, end))
            return true;
        waits = waits || knee_hang_lowest(view, first, end) >= 0;
    }
    if (behind(view))
        return true;
    for (size_t first = 0, end; first < out->call_count; first = end) {
        end = knee_hang_group(view, first);
        if (lagging(view, first, end))
            return true;
    }
    for (size_t r = 0; r < view->record->rank_count; r++)
        stuck = stuck || view->record->ranks[r].watchdog_stuck || view->record->ranks[r].talked;
    if (!waits && !stuck)
        return false;
    out->kind = KNEE_HANG_UNKNOWN;
    nobody(view);
    return true;
}

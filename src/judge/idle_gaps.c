/* SPDX-License-Identifier: MIT */
/*
 * Every stretch of complete steps above 1 % of the step in which a GPU does nothing: where it is,
 * the call into the driver, annotation and module in which the host was, and what ran next. What
 * the host was in is taken from the thread that handed over the work that ended the gap, in the
 * middle of the gap. The longest rows of all ranks are kept.
 */
#include "judge/judge.h"

#include "base/order.h"
#include "timeline/account.h"
#include <string.h>

#define LEAST_SHARE 0.01 /* of the step */

/* The complete step that is running at at_ns; NULL: none. *step is where the search goes on. */
static const struct knee_step_account *step_at(const struct knee_account *account, size_t rank,
                                               int64_t at_ns, size_t *step)
{
    for (; *step < account->step_count; ++*step) {
        const struct knee_step_account *s = &account->steps[*step];
        if (s->rank < rank || (s->rank == rank && s->start_ns + s->ledger.window_ns <= at_ns))
            continue;
        return s->rank == rank && s->complete && s->start_ns <= at_ns ? s : NULL;
    }
    return NULL;
}

/* The first work at or after ns; NULL: none. */
static const struct knee_span *first_after(const struct knee_rank *rank, int64_t ns)
{
    size_t low;
    KNEE_BISECT(low, rank->span_count, rank->spans[low].start_ns < ns);
    return low < rank->span_count ? &rank->spans[low] : NULL;
}

/* The innermost annotation and module that the thread is in: those that began last. */
static void find_scopes(const struct knee_trace *trace, const struct knee_span *next, int64_t at_ns,
                        struct knee_idle_gap *gap)
{
    const struct knee_host_event *events = trace->host_events;
    if (!next || !next->launch)
        return;
    int64_t thread = events[next->launch - 1].thread;
    for (size_t i = 0; i < trace->host_event_count && events[i].start_ns <= at_ns; i++) {
        if (events[i].thread != thread || events[i].end_ns <= at_ns)
            continue;
        if (events[i].kind == KNEE_HOST_MODULE)
            gap->module = trace->names[events[i].name];
        else if ((events[i].kind == KNEE_HOST_RANGE || events[i].kind == KNEE_HOST_SCOPE) &&
                 strncmp(trace->names[events[i].name], "ProfilerStep#", 13) != 0)
            gap->annotation = trace->names[events[i].name];
    }
}

/* Longest first; what does not fit is left out. */
static void keep(struct knee_idle_gaps *out, const struct knee_idle_gap *gap)
{
    size_t at = out->count;
    if (at == KNEE_IDLE_GAPS && gap->length_s <= out->rows[--at].length_s)
        return;
    out->count = at + 1;
    for (; at > 0 && out->rows[at - 1].length_s < gap->length_s; at--)
        out->rows[at] = out->rows[at - 1];
    out->rows[at] = *gap;
}

static void list_rank(const struct knee_account *account, size_t r, double least_s,
                      struct knee_idle_gaps *out)
{
    const struct knee_rank_account *rank = &account->ranks[r];
    bool marked = account->step_source != KNEE_STEPS_NONE;
    size_t step = 0;
    for (size_t i = 0, last; i < rank->run_count; i = last + 1) {
        int64_t from = rank->runs[i].start_ns, longest = 0;
        struct knee_idle_gap gap = {.rank = (int64_t)r, .step = -1, .start_ns = from};
        for (last = i; last < rank->run_count && rank->runs[last].label >= KNEE_STARVED; last++) {
            int64_t length = knee_run_end(rank, last) - rank->runs[last].start_ns;
            gap.label = length > longest ? rank->runs[last].label : gap.label;
            longest = length > longest ? length : longest;
        }
        if (last == i)
            continue;
        last--;
        const struct knee_step_account *in = step_at(account, r, from, &step);
        int64_t to = knee_run_end(rank, last), begin = in ? in->start_ns : rank->from_ns;
        if (in && to > in->start_ns + in->ledger.window_ns)
            to = in->start_ns + in->ledger.window_ns;
        gap.length_s = 1e-9 * (double)(to - from);
        if ((marked && !in) || gap.length_s < least_s)
            continue;
        gap.step = in ? in->number : -1;
        gap.at_s = 1e-9 * (double)(from - begin);
        gap.end_ns = to;
        keep(out, &gap);
    }
}

/* What the host did, and what ran next: of the rows that are kept only. */
static void explain(const struct knee_account *account, struct knee_idle_gap *gap)
{
    const struct knee_rank_account *rank = &account->ranks[gap->rank];
    const struct knee_span *next = first_after(rank->source, gap->end_ns);
    gap->rank = rank->rank;
    gap->next = next ? rank->trace->names[next->name] : NULL;
    knee_find_gap_call(rank->trace, gap->start_ns, gap->end_ns, gap);
    find_scopes(rank->trace, next, gap->start_ns + (gap->end_ns - gap->start_ns) / 2, gap);
}

void knee_list_idle_gaps(const struct knee_account *account, double step_s,
                         struct knee_idle_gaps *out)
{
    out->count = 0;
    for (size_t r = 0; r < account->rank_count; r++)
        list_rank(account, r, LEAST_SHARE * step_s, out);
    for (size_t i = 0; i < out->count; i++)
        explain(account, &out->rows[i]);
}

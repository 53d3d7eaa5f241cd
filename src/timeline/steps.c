/* SPDX-License-Identifier: MIT */
/*
 * Steps. A kernel belongs to the step whose host time launched it, so a step's window on the GPU
 * runs from the first start of its kernels to the first start of the next step's; windows follow
 * each other and together are the rank's window. Without the profiler's steps, the sequence of
 * collectives is searched for a period; without that the whole file is one step.
 */
#include "timeline/account.h"

#include "base/text.h"

#include <string.h>

/* Where a step begins on the GPU. */
struct cut {
    int64_t at_ns, number;
};

struct cuts {
    struct cut *list;
    size_t count;
};

/* Host time inside steps, and of it spent waiting for batches. */
static void sum_host_time(struct knee_rank_account *rank)
{
    const struct knee_trace *trace = rank->trace;
    rank->stepped_ns = rank->load_ns = 0;
    for (size_t s = 0; s < trace->step_count; s++) {
        const struct knee_mark *step = &trace->steps[s];
        rank->stepped_ns += step->end_ns - step->start_ns;
        for (size_t i = 0; i < trace->load_count; i++) {
            int64_t from = trace->loads[i].start_ns, to = trace->loads[i].end_ns;
            from = from > step->start_ns ? from : step->start_ns;
            to = to < step->end_ns ? to : step->end_ns;
            rank->load_ns += to > from ? to - from : 0;
        }
    }
}

/* The first start of each step's kernels, of what comes before the first step and after the last.
 */
static void cut_by_profiler(const struct knee_rank_account *rank, struct cuts *cuts)
{
    const struct knee_trace *trace = rank->trace;
    size_t count = trace->step_count;
    struct cut *list = cuts->list; /* [0] before, [1 + step], [count + 1] after */
    for (size_t i = 0; i < count + 2; i++)
        list[i] =
            (struct cut){INT64_MAX, i == 0 || i == count + 1 ? -1 : trace->steps[i - 1].number};
    for (size_t i = 0; i < rank->source->span_count; i++) {
        const struct knee_span *span = &rank->source->spans[i];
        int64_t launched = span->launch_ns != KNEE_NO_TIME ? span->launch_ns : span->start_ns;
        size_t row = span->step >= 0                              ? (size_t)span->step + 1
                     : launched >= trace->steps[count - 1].end_ns ? count + 1
                                                                  : 0;
        if (span->start_ns < list[row].at_ns)
            list[row].at_ns = span->start_ns;
    }
    /* A later step's early bird ends the step before it; steps without kernels vanish. */
    int64_t earliest = INT64_MAX;
    for (size_t i = count + 2; i-- > 0;) {
        if (list[i].at_ns < earliest)
            earliest = list[i].at_ns;
        else
            list[i].at_ns = INT64_MAX;
    }
    for (size_t i = 0; i < count + 2; i++)
        if (list[i].at_ns != INT64_MAX)
            list[cuts->count++] = list[i];
}

static uint64_t signature(const struct knee_call *call)
{
    uint64_t hash = (uint64_t)call->op * 0x9fb21c651e98df25u ^ (uint64_t)call->bytes;
    return (hash ^ call->group) * 0x9e3779b97f4a7c15u;
}

/* The shortest period of the sequence of collectives that has more than one kind of call in it and
 * comes at least twice; 0: none. Collectives of one kind say nothing about steps. */
static size_t find_period(const struct knee_rank *source)
{
    size_t count = source->call_count, most = count / 2 < 100000 ? count / 2 : 100000;
    size_t varied = 1;
    while (varied < count && signature(&source->calls[varied]) == signature(&source->calls[0]))
        varied++;
    if (varied >= count)
        return 0;
    for (size_t period = varied + 1; period <= most; period++) {
        size_t i = 0;
        while (i + period < count &&
               signature(&source->calls[i]) == signature(&source->calls[i + period]))
            i++;
        if (i + period == count)
            return period;
    }
    return 0;
}

static void cut_by_sequence(const struct knee_rank_account *rank, struct cuts *cuts, size_t period)
{
    const struct knee_rank *source = rank->source;
    for (size_t c = 0; c + period <= source->call_count; c += period)
        cuts->list[cuts->count++] =
            (struct cut){c == 0 ? rank->start_ns : source->spans[source->calls[c].span].start_ns,
                         (int64_t)(c / period)};
}

static bool add_steps(const struct knee_rank_account *rank, const struct cuts *cuts,
                      const struct knee_alloc *alloc, struct knee_outcome *out)
{
    size_t at = 0;
    out->steps = knee_resize(alloc, NULL, cuts->count * sizeof *out->steps);
    if (!out->steps)
        return false;
    for (size_t i = 0; i < cuts->count; i++) {
        struct knee_step_account *step = &out->steps[out->step_count++];
        int64_t from = i == 0 ? rank->start_ns : cuts->list[i].at_ns;
        int64_t to = i + 1 < cuts->count ? cuts->list[i + 1].at_ns : rank->end_ns;
        *step = (struct knee_step_account){
            .number = cuts->list[i].number, .start_ns = from, .ledger = {.window_ns = to - from}};
        knee_sum_labels(rank, &at, from, to, step->ledger.label_ns);
        step->ledger.comm_ns = -1; /* the labels tell the exposed part only */
    }
    return true;
}

bool knee_find_steps(struct knee_rank_account *rank, const struct knee_alloc *alloc,
                     struct knee_outcome *out)
{
    size_t marked = rank->trace->step_count, calls = rank->source->call_count;
    size_t period = marked ? 0 : find_period(rank->source);
    size_t most = (marked > calls ? marked : calls) + 2;
    struct cuts cuts = {.list = knee_resize(alloc, NULL, most * sizeof *cuts.list)};
    if (!cuts.list)
        return false;
    sum_host_time(rank);
    if (marked)
        cut_by_profiler(rank, &cuts);
    else if (period)
        cut_by_sequence(rank, &cuts, period);
    if (cuts.count == 0)
        cuts.list[cuts.count++] = (struct cut){rank->start_ns, 0};
    out->step_source = marked   ? KNEE_STEPS_PROFILER
                       : period ? KNEE_STEPS_SEQUENCE
                                : KNEE_STEPS_NONE;
    bool good = add_steps(rank, &cuts, alloc, out);
    knee_resize(alloc, cuts.list, 0);
    return good;
}

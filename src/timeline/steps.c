/* SPDX-License-Identifier: MIT */
/*
 * Steps. A kernel belongs to the step whose host time launched it. Step i begins on the GPU where
 * the host began it, if the GPU had nothing left to do then: the gap before its first kernel is the
 * step's own. Where the GPU was still at the work before, it begins with that work's end, or with
 * its own first kernel if that is earlier. The last step ends by the same rule, where the host
 * ended it. So steps follow each other, and their mean is the time from start to start whether the
 * GPU lags behind the host or waits for it.
 *
 * Without marks of steps, the sequence of collectives is searched for a period, then that of the
 * kernels of the main stream; without that the whole file is one step.
 */
#include "timeline/account.h"

#include "base/text.h"
#include "timeline/kinds.h"
#include "timeline/marks.h"

#include <string.h>

/* ---- Cuts: where steps begin on the GPU; each ends where the next one begins ---- */

static void add_cut(struct knee_cuts *cuts, int64_t at_ns, int64_t number, bool complete)
{
    if (cuts->count && cuts->list[cuts->count - 1].at_ns >= at_ns) /* that one was empty */
        cuts->count--;
    cuts->list[cuts->count++] = (struct knee_cut){at_ns, number, complete};
}

/* First start and last end of the work of each step, in rows: 0 is what was launched before all
 * steps, 1 + i step i, count + 1 what was launched after them. After the sums: of all rows from
 * here on, and up to here. */
struct reach {
    int64_t first_ns, last_ns;
};

/* The row of work outside of all marks: that of the mark before it, until the last one's end. */
static size_t outer_row(struct knee_marks marks, int64_t ns)
{
    size_t row = knee_marks_before(marks, ns);
    return row == marks.count && ns >= marks.list[marks.count - 1].end_ns ? row + 1 : row;
}

static void find_reach(const struct knee_rank_account *rank, struct knee_marks marks,
                       struct reach *rows)
{
    const struct knee_rank *source = rank->source;
    size_t count = marks.count + 2, first = (size_t)(marks.list - rank->trace->steps), last_row = 0;
    bool launches = source->launched * 2 >= source->work;
    for (size_t i = 0; i < count; i++)
        rows[i] = (struct reach){INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < source->span_count; i++) {
        const struct knee_span *span = &source->spans[i];
        bool launched = span->launch_ns != KNEE_NO_TIME;
        size_t step = (size_t)span->step - first;
        size_t row = span->step >= 0 && step < marks.count ? step + 1
                     : launched                            ? outer_row(marks, span->launch_ns)
                     : launches                            ? last_row
                                                           : outer_row(marks, span->start_ns);
        rows[row].first_ns =
            span->start_ns < rows[row].first_ns ? span->start_ns : rows[row].first_ns;
        rows[row].last_ns = span->end_ns > rows[row].last_ns ? span->end_ns : rows[row].last_ns;
        last_row = launched ? row : last_row;
    }
    for (size_t i = count - 1; i-- > 0;)
        if (rows[i + 1].first_ns < rows[i].first_ns)
            rows[i].first_ns = rows[i + 1].first_ns;
    for (size_t i = 1; i < count; i++)
        if (rows[i - 1].last_ns > rows[i].last_ns)
            rows[i].last_ns = rows[i - 1].last_ns;
}

/* Where the work of row `row` and after begins, given when the host began it. */
static int64_t begins(const struct reach *rows, size_t row, int64_t host_ns)
{
    int64_t own = rows[row].first_ns, before = rows[row - 1].last_ns;
    int64_t gpu = own < before ? own : before;
    return gpu > host_ns ? gpu : host_ns;
}

/* Work of its stream that was handed over before it is in the trace: it waited for none that is
 * not.
 */
static bool queue_is_known(const struct knee_rank *source, const struct knee_span *first)
{
    for (const struct knee_span *span = source->spans; span < first; span++)
        if (span->stream == first->stream && span->launch_ns != KNEE_NO_TIME &&
            span->launch_ns < first->launch_ns)
            return true;
    return false;
}

/* The first step's first kernel, handed over long before it ran, waited for work that is not in the
 * trace: the step begins with it. "Long" is a tenth of the step, as short queues are everywhere. */
static int64_t first_begins(const struct knee_rank_account *rank, struct knee_marks marks,
                            const struct reach *rows)
{
    const struct knee_rank *source = rank->source;
    int64_t host_ns = marks.list[0].start_ns, at_ns = begins(rows, 1, host_ns);
    for (size_t i = 0; i < source->span_count; i++) {
        const struct knee_span *span = &source->spans[i];
        if (span->start_ns != rows[1].first_ns || span->launch_ns == KNEE_NO_TIME)
            continue;
        int64_t free_ns = span->launch_ns > rows[0].last_ns ? span->launch_ns : rows[0].last_ns;
        int64_t queued = span->start_ns - free_ns;
        if (queued > (marks.list[0].end_ns - host_ns) / 10 && span->launch_ns >= host_ns &&
            !queue_is_known(source, span))
            return span->start_ns > at_ns ? span->start_ns : at_ns;
        break;
    }
    return at_ns;
}

/* The gap between two marks is too long to be part of a step. */
static bool is_hole(const struct knee_mark *mark)
{
    return mark[1].start_ns - mark->end_ns > (mark->end_ns - mark->start_ns) / 2;
}

/* Marks that do not follow each other (a part of the loop is outside of them) leave the end of the
 * last step open: its part is missing. More than 1 % counts. */
static bool marks_leave_gaps(struct knee_marks marks)
{
    int64_t gaps = 0, steps = 0;
    for (size_t i = 0; i + 1 < marks.count; i++) {
        int64_t gap = marks.list[i + 1].start_ns - marks.list[i].end_ns;
        gaps = knee_add_ns(gaps, gap > 0 && !is_hole(&marks.list[i]) ? gap : 0);
        steps = knee_add_ns(steps, marks.list[i].end_ns - marks.list[i].start_ns);
    }
    return gaps > steps / 100;
}

static void cut_by_marks(struct knee_rank_account *rank, struct knee_marks marks,
                         const struct reach *rows, struct knee_cuts *cuts)
{
    size_t count = marks.count;
    bool open = count > 1 && marks_leave_gaps(marks);
    int64_t at_ns = first_begins(rank, marks, rows);
    if (rank->start_ns < at_ns)
        add_cut(cuts, rank->start_ns, -1, false);
    for (size_t i = 0; i < count; i++) {
        if (i)
            at_ns = begins(rows, i + 1, marks.list[i].start_ns);
        bool hole = i + 1 < count && is_hole(&marks.list[i]);
        add_cut(cuts, at_ns, marks.list[i].number, !(open && (hole || i + 1 == count)));
        if (hole)
            add_cut(cuts, begins(rows, i + 2, marks.list[i].end_ns), -1, false);
    }
    int64_t end_ns = begins(rows, count + 1, marks.list[count - 1].end_ns);
    if (rank->end_ns > end_ns)
        add_cut(cuts, end_ns, -1, false);
    cuts->end_ns = rank->end_ns > end_ns ? rank->end_ns : end_ns;
}

/* ---- Steps from what repeats: collectives, else kernels ---- */

static uint64_t signature(const struct knee_call *call)
{
    uint64_t hash = (uint64_t)call->op * 0x9fb21c651e98df25u ^ (uint64_t)call->bytes;
    return (hash ^ call->group) * 0x9e3779b97f4a7c15u;
}

/* What may repeat: a rank's collectives, or the kernels of one stream (rows of its spans). */
struct sequence {
    const struct knee_rank *source;
    const uint32_t *spans; /* NULL: the calls */
    size_t count;
};

/* Its last `length` entries repeat every `period`. */
struct repeat {
    size_t period, length;
};

static uint64_t from_the_end(const struct sequence *s, size_t i)
{
    size_t row = s->count - 1 - i;
    return s->spans ? s->source->spans[s->spans[row]].name : signature(&s->source->calls[row]);
}

/* Collectives of one kind say nothing about steps. */
static bool is_varied(const struct sequence *s, size_t period)
{
    for (size_t i = 1; i < period; i++)
        if (from_the_end(s, i) != from_the_end(s, 0))
            return true;
    return false;
}

/* Finds the longest end of the sequence that repeats with a period at least twice. What comes
 * before it (building groups, broadcasting weights) belongs to no step. The repeating part must be
 * `most` of it. borders[n]: the longest proper border of the last n entries (Knuth, Morris, Pratt).
 */
static struct repeat find_repeat(const struct sequence *s, double most, uint32_t *borders)
{
    struct repeat best = {0};
    borders[0] = 0;
    for (size_t n = 1, border = 0; n <= s->count; n++) {
        if (n > 1) {
            while (border && from_the_end(s, border) != from_the_end(s, n - 1))
                border = borders[border];
            border += from_the_end(s, border) == from_the_end(s, n - 1);
        }
        borders[n] = (uint32_t)border;
        if ((n - border) * 2 <= n && (double)n >= most * (double)s->count)
            best = (struct repeat){n - border, n};
    }
    return best.period && is_varied(s, best.period) ? best : (struct repeat){0};
}

/* The stream that more than half of the kernels run on; false: there is none. */
static bool main_stream(const struct knee_rank *source, int32_t *stream)
{
    size_t lead = 0, own = 0;
    for (size_t i = 0; i < source->span_count; i++) { /* the only one that can be (Boyer, Moore) */
        *stream = lead ? *stream : source->spans[i].stream;
        lead = source->spans[i].stream == *stream ? lead + 1 : lead - 1;
    }
    for (size_t i = 0; i < source->span_count; i++)
        own += source->spans[i].stream == *stream;
    return 2 * own > source->span_count;
}

/* Layers repeat too. A step has a backward pass, many kernels, and is nearly all that is recorded:
 * of one step the backward passes of its layers are two thirds. */
#define LEAST_STEP  50
#define LEAST_STEPS 3
#define NEARLY_ALL  0.9
#define COLLECTIVES 0.6

static bool is_step(const struct knee_trace *trace, const struct sequence *s, struct repeat repeat)
{
    if (repeat.period < LEAST_STEP || repeat.length < LEAST_STEPS * repeat.period)
        return false;
    for (size_t i = 0; i < repeat.period; i++) {
        const char *name = trace->names[from_the_end(s, i)];
        if (knee_has_word(name, "backward") || knee_has_word(name, "bwd") ||
            knee_has_word(name, "dgrad"))
            return true;
    }
    return false;
}

/* The kernels of a rank's main stream; false: out of memory. Free spans. */
static bool list_kernels(const struct knee_rank *source, const struct knee_alloc *alloc,
                         struct sequence *out, uint32_t **spans)
{
    int32_t stream = 0;
    *out = (struct sequence){.source = source};
    *spans = NULL;
    if (source->span_count < LEAST_STEPS * LEAST_STEP || source->span_count > UINT32_MAX / 2 ||
        !main_stream(source, &stream))
        return true;
    *spans = knee_resize(alloc, NULL, source->span_count * sizeof **spans);
    for (size_t i = 0; *spans && i < source->span_count; i++)
        if (source->spans[i].stream == stream)
            (*spans)[out->count++] = (uint32_t)i;
    out->spans = *spans;
    return *spans != NULL;
}

/* Complete are the steps whose next one begins in the window. */
static void cut_by_sequence(const struct knee_rank_account *rank, const struct sequence *s,
                            struct repeat repeat, struct knee_cuts *cuts)
{
    const struct knee_rank *source = rank->source;
    int64_t number = 0;
    for (size_t c = s->count - repeat.length; c < s->count; c += repeat.period) {
        int64_t at_ns = source->spans[s->spans ? s->spans[c] : source->calls[c].span].start_ns;
        if (number == 0 && at_ns > rank->start_ns)
            add_cut(cuts, rank->start_ns, -1, false);
        bool complete = c + repeat.period < s->count;
        add_cut(cuts, at_ns, complete ? number : -1, complete);
        number++;
    }
    cuts->end_ns = rank->end_ns;
}

/* Without marks. False: out of memory. */
static bool cut_by_repetition(const struct knee_rank_account *rank, const struct knee_alloc *alloc,
                              struct knee_cuts *cuts)
{
    const struct knee_rank *source = rank->source;
    struct sequence calls = {.source = source, .count = source->call_count}, kernels;
    size_t most = source->call_count > source->span_count ? source->call_count : source->span_count;
    uint32_t *borders = knee_resize(alloc, NULL, (most + 1) * sizeof *borders), *spans = NULL;
    struct repeat repeat = {0};
    bool good = borders != NULL;
    cuts->source = KNEE_STEPS_NONE;
    if (good && (repeat = find_repeat(&calls, COLLECTIVES, borders)).period) {
        cut_by_sequence(rank, &calls, repeat, cuts);
        cuts->source = KNEE_STEPS_SEQUENCE;
    } else if (good && (good = list_kernels(source, alloc, &kernels, &spans)) &&
               is_step(rank->trace, &kernels,
                       repeat = find_repeat(&kernels, NEARLY_ALL, borders))) {
        cut_by_sequence(rank, &kernels, repeat, cuts);
        cuts->source = KNEE_STEPS_KERNELS;
    } else if (good) {
        add_cut(cuts, rank->start_ns, 0, true);
        cuts->end_ns = rank->end_ns;
    }
    knee_resize(alloc, borders, 0);
    knee_resize(alloc, spans, 0);
    return good;
}

bool knee_cut_steps(struct knee_rank_account *rank, const struct knee_alloc *alloc,
                    struct knee_cuts *cuts)
{
    const struct knee_trace *trace = rank->trace;
    struct knee_marks marks = knee_marks_of(trace->steps, trace->step_count, rank->source->device);
    size_t calls = rank->source->call_count, kernels = rank->source->span_count / LEAST_STEP;
    size_t most = 2 * marks.count > calls ? 2 * marks.count : calls;
    memset(cuts, 0, sizeof *cuts);
    cuts->list =
        knee_resize(alloc, NULL, ((most > kernels ? most : kernels) + 3) * sizeof *cuts->list);
    bool good = cuts->list != NULL;
    if (good && marks.count) {
        struct reach *rows = knee_resize(alloc, NULL, (marks.count + 2) * sizeof *rows);
        good = rows != NULL;
        if (good) {
            find_reach(rank, marks, rows);
            cut_by_marks(rank, marks, rows, cuts);
        }
        cuts->source = trace->step_source;
        knee_resize(alloc, rows, 0);
    } else if (good) {
        good = cut_by_repetition(rank, alloc, cuts);
    }
    if (good) {
        rank->from_ns = cuts->list[0].at_ns < rank->start_ns ? cuts->list[0].at_ns : rank->start_ns;
        rank->to_ns = cuts->end_ns;
    }
    return good;
}

/* ---- Accounts of the steps ---- */

/* Host time inside steps, and of it spent waiting for batches. Both lists go forward in time. */
static void sum_host_time(struct knee_rank_account *rank)
{
    const struct knee_trace *trace = rank->trace;
    int64_t device = rank->source->device;
    struct knee_marks steps = knee_marks_of(trace->steps, trace->step_count, device);
    struct knee_marks loads = knee_marks_of(trace->loads, trace->load_count, device);
    size_t first = 0;
    rank->stepped_ns = rank->load_ns = 0;
    for (size_t s = 0; s < steps.count; s++) {
        const struct knee_mark *step = &steps.list[s];
        rank->stepped_ns = knee_add_ns(rank->stepped_ns, step->end_ns - step->start_ns);
        while (first < loads.count && loads.list[first].end_ns <= step->start_ns)
            first++;
        for (size_t i = first; i < loads.count && loads.list[i].start_ns < step->end_ns; i++) {
            int64_t from = loads.list[i].start_ns, to = loads.list[i].end_ns;
            from = from > step->start_ns ? from : step->start_ns;
            to = to < step->end_ns ? to : step->end_ns;
            rank->load_ns = knee_add_ns(rank->load_ns, to > from ? to - from : 0);
        }
    }
}

/* Adds a stretch of communication to the steps it lies in. *at only moves forward. */
static void add_comm(struct knee_step_account *steps, size_t count, size_t *at, int64_t from_ns,
                     int64_t to_ns)
{
    while (*at + 1 < count && steps[*at + 1].start_ns <= from_ns)
        ++*at;
    for (size_t i = *at; i < count && steps[i].start_ns < to_ns; i++) {
        int64_t end = steps[i].start_ns + steps[i].ledger.window_ns;
        int64_t start = steps[i].start_ns > from_ns ? steps[i].start_ns : from_ns;
        end = end < to_ns ? end : to_ns;
        steps[i].ledger.comm_ns += end > start ? end - start : 0;
    }
}

/* The union of communication, step by step. */
static void sum_comm(const struct knee_rank *source, struct knee_step_account *steps, size_t count)
{
    int64_t from_ns = 0, to_ns = INT64_MIN;
    size_t at = 0;
    for (size_t i = 0; i < source->span_count; i++) {
        const struct knee_span *span = &source->spans[i];
        if (span->kind != KNEE_SPAN_COMM && span->kind != KNEE_SPAN_FUSED)
            continue;
        if (to_ns != INT64_MIN && span->start_ns <= to_ns) {
            to_ns = span->end_ns > to_ns ? span->end_ns : to_ns;
            continue;
        }
        if (to_ns != INT64_MIN)
            add_comm(steps, count, &at, from_ns, to_ns);
        from_ns = span->start_ns;
        to_ns = span->end_ns;
    }
    if (to_ns != INT64_MIN)
        add_comm(steps, count, &at, from_ns, to_ns);
}

bool knee_account_steps(struct knee_rank_account *rank, const struct knee_cuts *cuts,
                        const struct knee_alloc *alloc, struct knee_outcome *out)
{
    size_t at = 0;
    sum_host_time(rank);
    out->step_source = cuts->source;
    out->steps = knee_resize(alloc, NULL, cuts->count * sizeof *out->steps);
    if (!out->steps)
        return false;
    for (size_t i = 0; i < cuts->count; i++) {
        const struct knee_cut *cut = &cuts->list[i];
        int64_t to = i + 1 < cuts->count ? cut[1].at_ns : cuts->end_ns;
        if (to <= cut->at_ns && cuts->count > 1)
            continue;
        struct knee_step_account *step = &out->steps[out->step_count++];
        *step = (struct knee_step_account){.number = cut->number,
                                           .start_ns = cut->at_ns,
                                           .complete = cut->complete,
                                           .ledger = {.window_ns = to - cut->at_ns}};
        knee_sum_labels(rank, &at, cut->at_ns, to, step->ledger.label_ns);
    }
    sum_comm(rank->source, out->steps, out->step_count);
    return true;
}

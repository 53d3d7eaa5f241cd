/* SPDX-License-Identifier: MIT */
/*
 * Every nanosecond of a rank's window gets one label. Four sorted lists of intervals are walked
 * side by side, in order of precedence: compute, transfer, wait, copy. What none of them covers is
 * idle, and idle time is asked why: up to the moment when the host handed over the work that ends
 * it, the GPU waited for the host, which waited for a batch (starved) or not (host-bound); after
 * that moment it waited for something else.
 */
#include "timeline/account.h"

#include "base/list.h"
#include "base/text.h"
#include "timeline/marks.h"

#include <string.h>

struct interval {
    int64_t start_ns, end_ns;
};

/* Disjoint, sorted, not touching. */
struct cover {
    struct interval *list;
    size_t count, at;
};

enum { COMPUTE, TRANSFER, WAIT, COPY, COVERS };
static const enum knee_label cover_label[COVERS] = {KNEE_COMPUTE, KNEE_TRANSFER, KNEE_WAIT,
                                                    KNEE_COPY};

/* Adds an interval that starts no earlier than those before it. */
static void extend(struct cover *cover, int64_t start_ns, int64_t end_ns)
{
    if (start_ns >= end_ns)
        return;
    struct interval *last = cover->count ? &cover->list[cover->count - 1] : NULL;
    if (last && start_ns <= last->end_ns) {
        if (end_ns > last->end_ns)
            last->end_ns = end_ns;
    } else {
        cover->list[cover->count++] = (struct interval){start_ns, end_ns};
    }
}

static int64_t total(const struct cover *cover)
{
    int64_t sum = 0;
    for (size_t i = 0; i < cover->count; i++)
        sum += cover->list[i].end_ns - cover->list[i].start_ns;
    return sum;
}

/* The time at which the last member of each call's collective arrived. If that is unknown, or no
 * member waits for another, the start of the call. */
static void find_arrivals(const struct knee_rank *source, const struct knee_rank_brief *task,
                          bool split, int64_t *there_ns)
{
    for (size_t c = 0; c < source->call_count; c++)
        there_ns[c] = source->spans[source->calls[c].span].start_ns;
    for (size_t i = 0; i < task->meeting_count && split; i++) {
        const struct knee_meeting *meeting = &task->meetings[i];
        const struct knee_span *span = &source->spans[source->calls[meeting->call].span];
        int64_t ns = meeting->last_start_ns;
        there_ns[meeting->call] = ns < span->start_ns ? span->start_ns
                                  : ns > span->end_ns ? span->end_ns
                                                      : ns;
    }
}

/* Transfers do not start in the order of their kernels, so they must be sorted again. */
static void add_transfers(struct cover *transfer, const struct interval *parts,
                          struct knee_sort_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct knee_sort_key){knee_sort_signed(parts[i].start_ns), i};
    knee_sort(keys, keys + count, count);
    for (size_t i = 0; i < count; i++)
        extend(transfer, parts[keys[i].row].start_ns, parts[keys[i].row].end_ns);
}

/* Communication counts as split when what cannot be split (no partners, or no rendezvous) is a
 * small part of it; and as bounded when members are missing from more than such a part. */
static void find_split(struct knee_rank_account *rank, const struct knee_rank_brief *task)
{
    const struct knee_rank *source = rank->source;
    int64_t all = 0, met = task->settled_ns, partly = 0;
    for (size_t c = 0; c < source->call_count; c++) {
        const struct knee_span *span = &source->spans[source->calls[c].span];
        all = knee_add_ns(all, span->end_ns - span->start_ns);
    }
    for (size_t i = 0; i < task->meeting_count; i++) {
        const struct knee_span *span = &source->spans[source->calls[task->meetings[i].call].span];
        int64_t duration = span->end_ns - span->start_ns;
        met = knee_add_ns(met, duration);
        partly = knee_add_ns(partly, task->meetings[i].partial ? duration : 0);
    }
    rank->split = all > 0 && all - met <= all / 5;
    rank->bounded = rank->split && partly > all / 5;
}

static void fill_covers(const struct knee_rank *source, const int64_t *there_ns,
                        struct cover *covers, struct cover *comm, struct interval *parts,
                        struct knee_sort_key *keys)
{
    size_t part_count = 0;
    for (size_t i = 0; i < source->span_count; i++) {
        const struct knee_span *span = &source->spans[i];
        if (span->kind == KNEE_SPAN_COPY)
            extend(&covers[COPY], span->start_ns, span->end_ns);
        if (span->kind == KNEE_SPAN_COMPUTE || span->kind == KNEE_SPAN_FUSED)
            extend(&covers[COMPUTE], span->start_ns, span->end_ns);
        if (span->kind != KNEE_SPAN_COMM && span->kind != KNEE_SPAN_FUSED)
            continue;
        int64_t there = span->call ? there_ns[span->call - 1] : span->start_ns;
        extend(comm, span->start_ns, span->end_ns);
        extend(&covers[WAIT], span->start_ns, there);
        parts[part_count++] = (struct interval){there, span->end_ns};
    }
    add_transfers(&covers[TRANSFER], parts, keys, part_count);
}

/* ---- Walking ---- */

struct walk {
    struct knee_rank_account *rank;
    struct cover covers[COVERS];
    size_t next_span; /* first span that starts at or after the end of a gap */
    struct knee_marks loads;
    size_t load; /* first load that ends after the start of a gap */
    size_t run_capacity;
    const struct knee_alloc *alloc;
    bool inside; /* the rank's window, which the ledger is of; not what steps add to it */
    bool failed;
};

static void add_run(struct walk *w, int64_t from_ns, int64_t to_ns, enum knee_label label)
{
    struct knee_rank_account *rank = w->rank;
    if (from_ns >= to_ns || w->failed)
        return;
    if (w->inside)
        rank->ledger.label_ns[label] += to_ns - from_ns;
    if (rank->run_count && rank->runs[rank->run_count - 1].label == label)
        return;
    if (knee_room(w->alloc, &rank->runs, &w->run_capacity, rank->run_count + 1, sizeof *rank->runs))
        rank->runs[rank->run_count++] = (struct knee_run){from_ns, label};
    else
        w->failed = true;
}

/* [from, to) waited for the host: for a batch where a load covers it. */
static void add_host_gap(struct walk *w, int64_t from_ns, int64_t to_ns)
{
    const struct knee_mark *loads = w->loads.list;
    while (w->load < w->loads.count && loads[w->load].end_ns <= from_ns)
        w->load++;
    for (size_t i = w->load; from_ns < to_ns; i++) {
        int64_t start = to_ns, end = to_ns;
        if (i < w->loads.count && loads[i].start_ns < to_ns) {
            start = loads[i].start_ns;
            end = loads[i].end_ns < to_ns ? loads[i].end_ns : to_ns;
        }
        if (start > from_ns) {
            add_run(w, from_ns, start, KNEE_HOST);
            from_ns = start;
        }
        if (end > from_ns) {
            add_run(w, from_ns, end, KNEE_STARVED);
            from_ns = end;
        }
    }
}

static void add_gap(struct walk *w, int64_t from_ns, int64_t to_ns)
{
    const struct knee_rank *source = w->rank->source;
    int64_t handed_over = KNEE_NO_TIME;
    while (w->next_span < source->span_count && source->spans[w->next_span].start_ns < to_ns)
        w->next_span++;
    for (size_t i = w->next_span; i < source->span_count && source->spans[i].start_ns == to_ns;
         i++) {
        int64_t launch = source->spans[i].launch_ns;
        if (source->spans[i].stream == KNEE_NO_STREAM)
            launch = to_ns; /* nothing waited for its turn */
        if (launch != KNEE_NO_TIME && (handed_over == KNEE_NO_TIME || launch < handed_over))
            handed_over = launch;
    }
    if (w->next_span == source->span_count && source->launched)
        handed_over = to_ns; /* nothing comes after: the host has nothing for it */
    if (handed_over == KNEE_NO_TIME || handed_over < from_ns)
        handed_over = from_ns;
    if (handed_over > to_ns)
        handed_over = to_ns;
    add_host_gap(w, from_ns, handed_over);
    add_run(w, handed_over, to_ns, KNEE_IDLE);
}

/* The cover that counts at `now`, COVERS for none, and until when: its own end, or the start of one
 * that goes before it. */
static int covering(struct walk *w, int64_t now, int64_t *until)
{
    for (int c = 0; c < COVERS; c++) {
        struct cover *cover = &w->covers[c];
        while (cover->at < cover->count && cover->list[cover->at].end_ns <= now)
            cover->at++;
        if (cover->at == cover->count)
            continue;
        const struct interval *next = &cover->list[cover->at];
        bool here = next->start_ns <= now;
        int64_t change = here ? next->end_ns : next->start_ns;
        *until = change < *until ? change : *until;
        if (here)
            return c;
    }
    return COVERS;
}

static void walk_over(struct walk *w, int64_t now, int64_t end)
{
    while (now < end && !w->failed) {
        int64_t until = end;
        int found = covering(w, now, &until);
        if (found < COVERS)
            add_run(w, now, until, cover_label[found]);
        else
            add_gap(w, now, until);
        now = until;
    }
}

/* The window, and what whole steps add to it before and after. */
static void walk_window(struct walk *w)
{
    const struct knee_rank_account *rank = w->rank;
    walk_over(w, rank->from_ns, rank->start_ns);
    w->inside = true;
    walk_over(w, rank->start_ns, rank->end_ns);
    w->inside = false;
    walk_over(w, rank->end_ns, rank->to_ns);
}

/* Waiting in each part of the common window. */
static void fill_strip(struct knee_rank_account *rank, const struct knee_rank_brief *task)
{
    int64_t part_ns = task->strip_part_ns;
    for (size_t i = 0; i < rank->run_count; i++) {
        if (rank->runs[i].label != KNEE_WAIT)
            continue;
        int64_t start = rank->runs[i].start_ns - task->strip_start_ns;
        int64_t end = knee_run_end(rank, i) - task->strip_start_ns;
        for (int64_t part = start / part_ns; part < KNEE_STRIP && part * part_ns < end; part++) {
            int64_t a = start > part * part_ns ? start : part * part_ns;
            int64_t b = end < (part + 1) * part_ns ? end : (part + 1) * part_ns;
            if (b > a)
                rank->waits_ns[part] += b - a;
        }
    }
}

bool knee_label_rank(struct knee_rank_account *rank, const struct knee_rank_brief *task,
                     const struct knee_alloc *alloc)
{
    const struct knee_rank *source = rank->source;
    struct walk w = {
        .rank = rank,
        .alloc = alloc,
        .loads = knee_marks_of(rank->trace->loads, rank->trace->load_count, source->device)};
    struct cover comm = {0};
    size_t spans = source->span_count + 1, calls = source->call_count + 1;
    struct knee_sort_key *keys = knee_resize(alloc, NULL, 2 * calls * sizeof *keys);
    int64_t *there_ns = knee_resize(alloc, NULL, calls * sizeof *there_ns);
    /* compute and copy together have no more intervals than there are spans */
    struct interval *room = knee_resize(alloc, NULL, (2 * spans + 4 * calls) * sizeof *room);
    bool good = keys && there_ns && room;
    if (good) {
        find_split(rank, task);
        find_arrivals(source, task, rank->split, there_ns);
        w.covers[COMPUTE].list = room;
        w.covers[COPY].list = room + spans;
        w.covers[TRANSFER].list = room + 2 * spans;
        w.covers[WAIT].list = room + 2 * spans + calls;
        comm.list = room + 2 * spans + 2 * calls;
        fill_covers(source, there_ns, w.covers, &comm, room + 2 * spans + 3 * calls, keys);
        rank->ledger.window_ns = rank->end_ns - rank->start_ns;
        rank->ledger.comm_ns = total(&comm);
        walk_window(&w);
        good = !w.failed;
    }
    if (good)
        fill_strip(rank, task);
    void *const all[] = {keys, there_ns, room};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(alloc, all[i], 0);
    return good;
}

void knee_sum_labels(const struct knee_rank_account *rank, size_t *at, int64_t from_ns,
                     int64_t to_ns, int64_t *sums)
{
    while (*at + 1 < rank->run_count && rank->runs[*at + 1].start_ns <= from_ns)
        ++*at;
    for (size_t i = *at; i < rank->run_count && rank->runs[i].start_ns < to_ns; i++) {
        int64_t end = knee_run_end(rank, i);
        int64_t start = rank->runs[i].start_ns > from_ns ? rank->runs[i].start_ns : from_ns;
        end = end < to_ns ? end : to_ns;
        if (end > start)
            sums[rank->runs[i].label] += end - start;
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * What the host did while the GPU waited for it. The thread that handed over the work which ended
 * the gap is looked at: the innermost thing that it was in, moment by moment. A gap is filed under
 * what the host was in when the GPU ran dry: that is why it did. In a wait for the GPU (or a
 * loader, an allocation, a collection) the host loses as much of its lead as it stays there: gaps
 * that follow are filed under it too until the host is ahead again, and after that up to what it
 * stayed there, for without it the host would have been so much further ahead.
 */
#include "timeline/where.h"

#include "base/list.h"
#include "base/order.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, DEPTH = 128 };

/* A kernel that was handed over so long before it began shows that the host is ahead. */
#define LEAD_NS 50000

/* Anywhere in a name; the first that fits. */
static const struct {
    const char *word;
    enum knee_host_act act;
} words[] = {
    {"_local_scalar_dense", KNEE_ACT_ITEM},
    {"aten::item", KNEE_ACT_ITEM},
    {"aten::is_nonzero", KNEE_ACT_ITEM},
    {"aten::nonzero", KNEE_ACT_ITEM},
    {"Synchronize", KNEE_ACT_SYNC},
    {"EventQuery", KNEE_ACT_SYNC},
    {"Malloc", KNEE_ACT_ALLOC},
    {"Free", KNEE_ACT_ALLOC},
    {"HostAlloc", KNEE_ACT_ALLOC},
    {"HostRegister", KNEE_ACT_ALLOC},
    {"MemCreate", KNEE_ACT_ALLOC},
    {"MemMap", KNEE_ACT_ALLOC},
    {"MemUnmap", KNEE_ACT_ALLOC},
    {"Memcpy", KNEE_ACT_COPY},
    {"DataLoader", KNEE_ACT_LOADER},
    {"Python GC", KNEE_ACT_GC},
    {"record_param_comms", KNEE_ACT_COLLECTIVE},
    {"nccl:", KNEE_ACT_COLLECTIVE},
    {"Launch", KNEE_ACT_LAUNCH},
};

static enum knee_host_act act_of_name(const char *name)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i].word))
            return words[i].act;
    return KNEE_ACT_OPERATIONS;
}

/* From here on, on a thread. */
struct moment {
    int64_t at_ns;
    unsigned char act;
};

struct open {
    int64_t end_ns;
    unsigned char act;
};

struct line { /* of one thread */
    int64_t id;
    struct moment *moments;
    size_t count, capacity, depth;
    bool launches; /* work for the GPU */
    struct open stack[DEPTH];
};

/* The host was in something that takes its lead. */
struct stay {
    int64_t start_ns, end_ns;
    int64_t thread;
    unsigned char act;
};

struct lines {
    struct line *list; /* THREADS of them */
    size_t count;
    struct stay *stays; /* of all threads, by their start */
    size_t stay_count, stay_capacity;
    const struct knee_alloc *alloc;
    bool failed;
};

static void add_moment(struct lines *lines, struct line *line, int64_t at_ns, int act)
{
    if (line->count && line->moments[line->count - 1].act == act)
        return;
    if (knee_room(lines->alloc, &line->moments, &line->capacity, line->count + 1,
                  sizeof *line->moments))
        line->moments[line->count++] = (struct moment){at_ns, (unsigned char)act};
    else
        lines->failed = true;
}

/* Closes what has ended by `now`. */
static void close_until(struct lines *lines, struct line *line, int64_t now_ns)
{
    while (line->depth && line->stack[line->depth - 1].end_ns <= now_ns) {
        int64_t end = line->stack[--line->depth].end_ns;
        add_moment(lines, line, end,
                   line->depth ? line->stack[line->depth - 1].act : KNEE_ACT_PYTHON);
    }
}

/* User annotations and modules are not work: time inside them and in nothing else is Python. Inside
 * a wait for a number, everything is part of the wait. */
static int act_of(const struct knee_trace *trace, const struct knee_host_event *event,
                  const struct line *line)
{
    int around = line->depth ? line->stack[line->depth - 1].act : KNEE_ACT_PYTHON;
    int act = (int)act_of_name(trace->names[event->name]);
    bool words_only = event->kind == KNEE_HOST_RANGE || event->kind == KNEE_HOST_MODULE ||
                      (event->kind == KNEE_HOST_SCOPE && act == KNEE_ACT_OPERATIONS);
    if (words_only && act == KNEE_ACT_OPERATIONS)
        return around;
    return around == KNEE_ACT_ITEM || around == KNEE_ACT_LOADER ? around : act;
}

static bool takes_the_lead(int act)
{
    return act >= KNEE_ACT_ITEM && act <= KNEE_ACT_GC;
}

/* The outermost of those that are inside each other. */
static void add_stay(struct lines *lines, const struct line *line,
                     const struct knee_host_event *event, int act)
{
    int around = line->depth ? line->stack[line->depth - 1].act : KNEE_ACT_PYTHON;
    if (!takes_the_lead(act) || takes_the_lead(around))
        return;
    if (knee_room(lines->alloc, &lines->stays, &lines->stay_capacity, lines->stay_count + 1,
                  sizeof *lines->stays))
        lines->stays[lines->stay_count++] =
            (struct stay){event->start_ns, event->end_ns, event->thread, (unsigned char)act};
    else
        lines->failed = true;
}

static struct line *line_of(struct lines *lines, int64_t id)
{
    size_t i = 0;
    while (i < lines->count && lines->list[i].id != id)
        i++;
    if (i == THREADS)
        return NULL;
    if (i == lines->count) {
        memset(&lines->list[i], 0, sizeof lines->list[i]);
        lines->list[lines->count++].id = id;
    }
    return &lines->list[i];
}

static void draw_lines(struct lines *lines, const struct knee_trace *trace)
{
    for (size_t i = 0; i < trace->host_event_count && !lines->failed; i++) {
        const struct knee_host_event *event = &trace->host_events[i];
        struct line *line = line_of(lines, event->thread);
        if (!line)
            continue;
        close_until(lines, line, event->start_ns);
        int act = act_of(trace, event, line);
        add_moment(lines, line, event->start_ns, act);
        add_stay(lines, line, event, act);
        if (line->depth < DEPTH)
            line->stack[line->depth++] = (struct open){event->end_ns, (unsigned char)act};
    }
    for (size_t i = 0; i < lines->count && !lines->failed; i++)
        close_until(lines, &lines->list[i], INT64_MAX);
}

static void find_launching(struct lines *lines, const struct knee_rank_account *rank)
{
    for (size_t i = 0; i < rank->source->span_count; i++) {
        uint32_t launch = rank->source->spans[i].launch;
        struct line *line =
            launch ? line_of(lines, rank->trace->host_events[launch - 1].thread) : NULL;
        if (line)
            line->launches = true;
    }
}

/* ---- Gaps ---- */

static size_t moment_at(const struct line *line, int64_t ns)
{
    size_t low;
    KNEE_BISECT(low, line->count, line->moments[low].at_ns <= ns);
    return low; /* row + 1 */
}

/* What used up the host's lead over the GPU, and the part of it that no gap has shown yet. */
struct lead {
    int drained; /* the act; -1: none */
    int64_t owed_ns;
    bool regained; /* the host was ahead again since */
    size_t next;   /* of the stays */
};

/* A longer stay of another kind replaces the current one: it would have used up the lead in any
 * case. */
static void lose_lead(const struct lines *lines, struct lead *lead, int64_t until_ns)
{
    for (; lead->next < lines->stay_count && lines->stays[lead->next].start_ns < until_ns;
         lead->next++) {
        const struct stay *stay = &lines->stays[lead->next];
        const struct line *line = lines->list;
        while (line < lines->list + lines->count && line->id != stay->thread)
            line++;
        if (line == lines->list + lines->count || !line->launches)
            continue; /* threads that launch nothing, such as watchdogs and loaders, delay no GPU
                         work */
        int64_t took_ns = stay->end_ns - stay->start_ns;
        bool same = lead->drained == stay->act;
        if (!same && took_ns < lead->owed_ns)
            continue; /* such as an allocator that polls an event */
        lead->owed_ns = same ? knee_add_ns(lead->owed_ns, took_ns) : took_ns;
        lead->drained = stay->act;
        lead->regained = false;
    }
}

/* A gap, or a part of one, under `reason`. */
static void file_gap(const struct line *line, int64_t from, int64_t to, double each, int reason,
                     struct knee_where *out)
{
    size_t at = moment_at(line, from);
    struct knee_host_gap *gap = &out->gaps[reason];
    gap->count += each;
    gap->total_s += each * 1e-9 * (double)(to - from);
    out->gaps_s += each * 1e-9 * (double)(to - from);
    while (from < to) {
        int64_t next =
            at < line->count && line->moments[at].at_ns < to ? line->moments[at].at_ns : to;
        gap->act_s[at ? line->moments[at - 1].act : KNEE_ACT_PYTHON] +=
            each * 1e-9 * (double)(next - from);
        from = next;
        at++;
    }
}

static void add_gap(const struct line *line, int64_t from, int64_t to, double each,
                    struct lead *lead, struct knee_where *out)
{
    size_t at = moment_at(line, from);
    int act = at ? line->moments[at - 1].act : KNEE_ACT_PYTHON;
    if (takes_the_lead(act)) {
        lead->drained = act;
        lead->regained = false;
    }
    int64_t owed = lead->owed_ns < to - from ? lead->owed_ns : to - from;
    int64_t theirs = lead->drained < 0 ? from : lead->regained ? from + owed : to;
    lead->owed_ns -= owed;
    if (theirs > from)
        file_gap(line, from, theirs, each, lead->drained, out);
    if (theirs < to)
        file_gap(line, theirs, to, each, act, out);
}

static bool is_ahead(const struct knee_span *span)
{
    return span->kind == KNEE_SPAN_COMPUTE && span->launch_ns != KNEE_NO_TIME &&
           span->start_ns - span->launch_ns >= LEAD_NS;
}

static void add_gaps(const struct knee_account *account, size_t r, struct lines *lines,
                     struct knee_where *out)
{
    const struct knee_rank_account *rank = &account->ranks[r];
    const struct knee_rank *source = rank->source;
    double each = 1 / ((double)account->rank_count * knee_complete_steps(account, r));
    size_t next = 0;
    struct lead lead = {.drained = -1};
    for (size_t i = 0; i < rank->run_count; i++) {
        int64_t from = rank->runs[i].start_ns, to = knee_run_end(rank, i);
        bool host = rank->runs[i].label == KNEE_HOST || rank->runs[i].label == KNEE_STARVED;
        lose_lead(lines, &lead, from);
        for (; next < source->span_count && source->spans[next].start_ns < to; next++)
            lead.regained = lead.regained || is_ahead(&source->spans[next]);
        uint32_t launch = next < source->span_count ? source->spans[next].launch : 0;
        if (!host || !launch || !knee_in_complete_step(account, r, from))
            continue;
        struct line *line = line_of(lines, rank->trace->host_events[launch - 1].thread);
        if (line)
            add_gap(line, from, to, each, &lead, out);
    }
}

/* ---- Launches ---- */

static void add_launches(const struct knee_account *account, size_t r, struct knee_where *out)
{
    const struct knee_rank_account *rank = &account->ranks[r];
    const struct knee_trace *trace = rank->trace;
    struct knee_launches *sums = &out->launches;
    double each = 1 / ((double)account->rank_count * knee_complete_steps(account, r));
    uint32_t last = 0;
    for (size_t i = 0; i < rank->source->span_count; i++) {
        const struct knee_span *span = &rank->source->spans[i];
        if (!knee_in_complete_step(account, r, span->start_ns))
            continue;
        if (span->kind == KNEE_SPAN_COMPUTE) {
            sums->kernels += each;
            sums->short_share += each * (span->end_ns - span->start_ns < KNEE_SHORT_KERNEL_NS);
        }
        if (!span->launch || span->launch == last)
            continue;
        const struct knee_host_event *event = &trace->host_events[span->launch - 1];
        last = span->launch;
        sums->launches += each;
        sums->graphs += strstr(trace->names[event->name], "GraphLaunch") ? each : 0;
        sums->launch_s += each * 1e-9 * (double)(event->end_ns - event->start_ns);
    }
}

bool knee_find_host_gaps(const struct knee_account *account, struct knee_where *out)
{
    bool good = true;
    for (size_t r = 0; r < account->rank_count && good; r++) {
        struct lines lines = {.alloc = out->alloc};
        lines.list = knee_resize(out->alloc, NULL, THREADS * sizeof *lines.list);
        good = lines.list != NULL;
        if (good)
            draw_lines(&lines, account->ranks[r].trace);
        good = good && !lines.failed;
        if (good) {
            find_launching(&lines, &account->ranks[r]);
            add_gaps(account, r, &lines, out);
            add_launches(account, r, out);
        }
        for (size_t i = 0; i < lines.count; i++)
            knee_resize(out->alloc, lines.list[i].moments, 0);
        knee_resize(out->alloc, lines.stays, 0);
        knee_resize(out->alloc, lines.list, 0);
    }
    if (out->launches.kernels > 0)
        out->launches.short_share /= out->launches.kernels;
    return good;
}

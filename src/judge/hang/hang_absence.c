/* SPDX-License-Identifier: MIT */
/*
 * Ranks that did not enter the collective in which the others wait. An absent rank that waits
 * elsewhere is a victim itself. Of the rest, some are alive: their dump or status line shows that
 * they finished everything they entered. Others left no dump and no line, as ranks do that are
 * killed or frozen, or whose node is gone. Those are blamed first, unless a dump shows a rank that
 * is behind and not waiting.
 */
#include "judge/hang/hang_calls.h"

#include <string.h>

struct absence {
    uint32_t group;       /* the first group from which a rank is absent */
    int64_t number;       /* what it waits in */
    size_t silent, alive; /* ranks without a sign; ranks that are behind and wait nowhere */
    size_t members;
    size_t first; /* row of calls: one that waits */
};

/* Marks the ranks that are absent from one group; false if no rank waits in it. */
static bool look_at(struct knee_hang_view *view, size_t first, size_t end, struct absence *a)
{
    int64_t number = knee_hang_lowest(view, first, end);
    uint32_t group = view->out->calls[first].group;
    size_t size = knee_hang_group_size(view, group), found = 0;
    if (number < 0)
        return false;
    for (size_t i = first; i < end; i++) {
        const struct knee_hang_call *c = &view->out->calls[i];
        bool behind = c->entered >= 0 && c->entered < number && !c->broken;
        if (!behind || (view->flags[c->rank] & (KNEE_HANG_WAITS | KNEE_HANG_ABSENT)))
            continue;
        view->flags[c->rank] |= KNEE_HANG_ABSENT;
        a->alive++;
        found++;
    }
    for (size_t i = 0; i < size; i++) {
        int32_t rank = knee_hang_group_rank(view, group, i);
        const struct knee_job_rank *row = rank < view->world ? &view->record->ranks[rank] : NULL;
        if (!row || row->talked || row->dump || row->unread ||
            knee_hang_call_of(view, group, rank) ||
            (view->flags[rank] & (KNEE_HANG_WAITS | KNEE_HANG_SILENT)))
            continue;
        view->flags[rank] |= KNEE_HANG_SILENT;
        a->silent++;
        found++;
    }
    if (found && a->number < 0) {
        *a = (struct absence){group, number, a->silent, a->alive, size, first};
        while (view->out->calls[a->first].waits != number)
            a->first++;
    }
    return true;
}

/* ---- What they do instead ---- */

/* What its last line says that it does now; a line about something that is over says nothing. */
static enum knee_hang_class by_words(const char *text)
{
    static const struct {
        const char *word;
        enum knee_hang_class kind;
    } words[] = {
        {"aving", KNEE_HANG_CHECKPOINT},   {"heckpoint", KNEE_HANG_CHECKPOINT},
        {"valuat", KNEE_HANG_EVALUATION},  {"alidat", KNEE_HANG_EVALUATION},
        {"ompil", KNEE_HANG_COMPILE},      {"okeniz", KNEE_HANG_LOADER},
        {"ataLoader", KNEE_HANG_LOADER},   {"oading dataset", KNEE_HANG_LOADER},
        {"oading data", KNEE_HANG_LOADER},
    };
    static const char *const over[] = {"Saved", "saved", "done", "inished", "omplete"};
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        if (strstr(text, over[i]))
            return KNEE_HANG_BUSY;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i].word))
            return words[i].kind;
    return KNEE_HANG_BUSY;
}

/* Did the rank print a line for each step that it finished? Rank 0 usually does; one line less
 * than steps means that it is behind the step's last call and before its line. */
static bool printed_all(const struct knee_hang_view *view, int32_t rank,
                        const struct knee_hang_call *call)
{
    const struct knee_rollcall *roll = &view->record->roll;
    int64_t steps = view->record->ranks[rank].steps, count = 0;
    const struct knee_entry *last =
        call ? knee_hang_entry(view, call->group, call->entered, rank) : NULL;
    bool whole = false;
    for (size_t i = 0; i < roll->source_count; i++)
        whole = whole || (roll->sources[i].rank == rank && roll->sources[i].whole);
    if (!last || !whole || steps < 0)
        return false;
    for (int64_t n = call->entered; n >= 0; n--) {
        const struct knee_entry *e = knee_hang_entry(view, call->group, n, rank);
        count += e && e->op == last->op && e->elements == last->elements;
    }
    return count == steps;
}

enum knee_hang_class knee_hang_instead(const struct knee_hang_view *view, int32_t rank,
                                       const struct knee_hang_call *waits)
{
    const struct knee_job_record *record = view->record;
    const struct knee_job_rank *row = &record->ranks[rank];
    const struct knee_hang_call *call = knee_hang_call_of(view, waits->group, rank);
    enum knee_hang_class kind = KNEE_HANG_BUSY;
    if (row->barrier || row->ran_out)
        return KNEE_HANG_DATA_END;
    if (row->p2p)
        return KNEE_HANG_RECEIVES;
    if (row->last_mark != KNEE_JOB_NO_MARK)
        kind = by_words(record->marks[row->last_mark].text);
    /* a call from the program's own line is in the middle of something; the first gradient
     * exchange of a step comes from the backward pass, which has no stack */
    if (kind != KNEE_HANG_BUSY || waits->frame[0])
        return kind;
    view->out->guess = true;
    return rank == 0 && !printed_all(view, rank, call) ? KNEE_HANG_CHECKPOINT : KNEE_HANG_LOADER;
}

/* ---- Those without a sign ---- */

/* Did all of the others give up before their time was over? Then a connection had closed. */
static bool gave_up_early(const struct knee_hang_view *view)
{
    const struct knee_rollcall *roll = &view->record->roll;
    bool early = false;
    for (size_t i = 0; i < roll->source_count; i++) {
        if (roll->sources[i].waited_out == 1)
            return false;
        early = early || roll->sources[i].waited_out == 0;
    }
    return early;
}

/* A process that is killed takes calls with it that its GPU had begun; one that ends by an
 * exception lets them finish. So the others have then finished the same calls, or not. */
static bool ends_differ(const struct knee_hang_view *view, size_t first)
{
    int64_t lowest = INT64_MAX, highest = -1;
    size_t end = knee_hang_group(view, first);
    for (size_t i = first; i < end; i++) {
        const struct knee_hang_call *c = &view->out->calls[i];
        lowest = c->completed < lowest ? c->completed : lowest;
        highest = c->completed > highest ? c->completed : highest;
    }
    return lowest < highest;
}

static enum knee_hang_class silent_kind(const struct knee_hang_view *view, const struct absence *a)
{
    bool own = false;
    size_t first = a->first;
    for (int64_t r = 0; r < view->world; r++)
        own = own || ((view->flags[r] & KNEE_HANG_SILENT) && view->record->ranks[r].own_file);
    if (!knee_hang_peer_left(view) && (view->record->first_timeout_s >= 0 || !gave_up_early(view)))
        return KNEE_HANG_FROZEN;
    while (first > 0 && view->out->calls[first - 1].group == a->group)
        first--;
    /* its own standard error is there and has no exception in it */
    return own || ends_differ(view, first) ? KNEE_HANG_SIGNAL : KNEE_HANG_EXCEPTION;
}

static void name_flagged(struct knee_hang_view *view, enum knee_hang_flag flag)
{
    for (int64_t r = 0; r < view->world; r++) {
        const struct knee_job_rank *row = &view->record->ranks[r];
        if (!(view->flags[r] & flag))
            continue;
        knee_hang_name(view, (int32_t)r);
        knee_hang_show(view, row->exit_mark);
        knee_hang_show(view, row->last_mark);
    }
}

static void fill_waits(struct knee_hang_view *view, const struct absence *a)
{
    struct knee_hang_answer *out = view->out;
    out->waits = &out->calls[a->first];
    for (size_t i = 0; i < out->call_count; i++)
        out->waiting += out->calls[i].group == a->group && out->calls[i].waits == a->number;
}

bool knee_hang_own_files(const struct knee_hang_view *view)
{
    size_t files = 0;
    for (size_t r = 0; r < view->record->rank_count; r++)
        files += view->record->ranks[r].own_file;
    return files > 1; /* the name of one alone may have a rank in it by chance */
}

/* Does their silence mean something? The files hold all ranks; or they hold lines of these ranks
 * from before, and go on to where the others ended. Where each rank has a file, one that has none
 * was not given: it is not silent, unless a connection closed and all others are there. Nor does
 * silence say much next to a dump that cannot be read. */
static bool silence_counts(const struct knee_hang_view *view, const struct absence *a)
{
    const struct knee_job_rank *ranks = view->record->ranks;
    bool heard = view->record->gave_up, unread = false;
    size_t missing = 0;
    for (int64_t r = 0; r < view->world; r++) {
        bool silent = view->flags[r] & KNEE_HANG_SILENT;
        heard = heard && (!silent || ranks[r].text);
        missing += silent && !ranks[r].text && !ranks[r].own_file;
        unread = unread || (ranks[r].unread && !ranks[r].talked);
    }
    bool given = !missing || !knee_hang_own_files(view) ||
                 (missing == a->silent && knee_hang_peer_left(view));
    return (view->world_sure || heard) && given && !unread && 2 * a->silent <= (size_t)view->world;
}

static bool name_silent(struct knee_hang_view *view, const struct absence *a)
{
    struct knee_hang_answer *out = view->out;
    out->silent_sure = silence_counts(view, a);
    for (int64_t r = 0; r < view->world && out->silent; r++)
        if (view->flags[r] & KNEE_HANG_SILENT)
            out->silent[out->silent_count++] = (int32_t)r;
    fill_waits(view, a);
    if (out->silent_sure) {
        name_flagged(view, KNEE_HANG_SILENT);
        out->kind = silent_kind(view, a);
        out->certainty = KNEE_LIKELY;
    } else {
        out->kind = KNEE_HANG_UNKNOWN;
        out->certainty = KNEE_CANNOT_TELL;
    }
    return true;
}

static bool name_alive(struct knee_hang_view *view, const struct absence *a)
{
    struct knee_hang_answer *out = view->out;
    fill_waits(view, a);
    name_flagged(view, KNEE_HANG_ABSENT);
    out->kind = knee_hang_instead(view, out->named[0], out->waits);
    if (view->record->barriers == a->alive && out->kind != KNEE_HANG_RECEIVES)
        out->kind = KNEE_HANG_DATA_END;
    out->guess = out->guess && out->kind != KNEE_HANG_DATA_END;
    out->instead = knee_hang_call_of(view, a->group, out->named[0]);
    bool told = out->kind == KNEE_HANG_DATA_END || out->kind == KNEE_HANG_RECEIVES;
    out->certainty = told && 2 * a->alive < a->members ? KNEE_CERTAIN : KNEE_LIKELY;
    return true;
}

/* A barrier behind the training loop that one rank alone is in. */
static bool one_alone(struct knee_hang_view *view)
{
    const struct knee_hang_call *only = NULL;
    for (size_t i = 0; i < view->out->call_count; i++) {
        const struct knee_hang_call *c = &view->out->calls[i];
        if (c->waits < 0)
            continue;
        if (only && only->rank != c->rank)
            return false;
        only = c;
    }
    if (!only || only->elements != 1 || !view->record->ranks[only->rank].ran_out)
        return false;
    knee_hang_name(view, only->rank);
    view->out->kind = KNEE_HANG_ALONE;
    view->out->certainty = KNEE_LIKELY;
    view->out->waits = only;
    view->out->waiting = 1;
    return true;
}

/* Is a rank that is behind known not to wait? Then it is the cause, and a rank without a sign may
 * only have been killed before it wrote its dump. A rank in a receive may wait for a silent one. */
static bool alive_is_free(const struct knee_hang_view *view)
{
    for (int64_t r = 0; r < view->world; r++)
        if ((view->flags[r] & KNEE_HANG_ABSENT) && view->record->ranks[r].dump &&
            !view->record->ranks[r].p2p)
            return true;
    return false;
}

bool knee_hang_by_absence(struct knee_hang_view *view)
{
    struct absence a = {.number = -1};
    if (one_alone(view))
        return true;
    for (size_t first = 0, end; first < view->out->call_count; first = end) {
        end = knee_hang_group(view, first);
        look_at(view, first, end, &a);
    }
    if (a.number < 0)
        return false;
    /* what dumps and lines show comes before what is missing */
    if (a.silent && !a.alive && knee_hang_by_order(view)) {
        view->out->certainty = KNEE_LIKELY;
        return true;
    }
    bool named = a.silent && silence_counts(view, &a);
    if (a.silent && (!a.alive || (named && !alive_is_free(view))))
        return name_silent(view, &a);
    return name_alive(view, &a);
}

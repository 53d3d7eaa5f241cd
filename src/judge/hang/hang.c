/* SPDX-License-Identifier: MIT */
/* The rules in their order, and what the answer shows of each rank. */
#include "judge/hang/hang.h"

#include "base/error.h"
#include "base/text.h"
#include "judge/hang/hang_calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void knee_hang_name(struct knee_hang_view *view, int32_t rank)
{
    struct knee_hang_answer *out = view->out;
    if (rank < 0 || rank >= view->world || (view->flags[rank] & KNEE_HANG_NAMED))
        return;
    view->flags[rank] |= KNEE_HANG_NAMED;
    out->named[out->named_count++] = rank;
}

void knee_hang_show(struct knee_hang_view *view, uint32_t mark)
{
    struct knee_hang_answer *out = view->out;
    const struct knee_job_mark *marks = view->record->marks;
    if (mark == KNEE_JOB_NO_MARK || mark >= view->record->mark_count ||
        out->evidence_count == sizeof out->evidence / sizeof *out->evidence)
        return;
    /* one line may be about several ranks: "tasks 2-7: Exited with exit code 1" */
    for (size_t i = 0; i < out->evidence_count; i++)
        if (out->evidence[i] == mark ||
            (marks[mark].line && marks[mark].line == marks[out->evidence[i]].line &&
             marks[mark].file == marks[out->evidence[i]].file))
            return;
    out->evidence[out->evidence_count++] = mark;
}

static int ascending(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

/* No failure and no waiting rank in the files that were read. */
static void not_hung(struct knee_hang_view *view)
{
    const struct knee_job_record *record = view->record;
    struct knee_hang_answer *out = view->out;
    bool ended = record->rank_count > 0, killed = false;
    for (size_t r = 0; r < record->rank_count; r++) {
        ended = ended && record->ranks[r].exit == 0;
        killed = killed || record->ranks[r].exit > 0;
        if (record->ranks[r].exit > 0)
            knee_hang_show(view, record->ranks[r].exit_mark);
    }
    out->kind = KNEE_HANG_NOT;
    out->certainty = ended ? KNEE_CERTAIN : KNEE_LIKELY;
    if (killed || ((record->unknown_errors || record->later_errors) && !ended)) {
        out->kind = KNEE_HANG_UNKNOWN;
        out->certainty = KNEE_CANNOT_TELL;
        knee_hang_show(view, record->later_mark);
        knee_hang_show(view, record->unknown_mark);
    }
}

/* The lines of the waits themselves: of those named, then of some that wait. */
static void show_calls(struct knee_hang_view *view)
{
    struct knee_hang_answer *out = view->out;
    for (int named = 1; named >= 0; named--)
        for (size_t i = 0, shown = 0; i < out->call_count && shown < 3; i++) {
            const struct knee_hang_call *c = &out->calls[i];
            if (!(view->flags[c->rank] & KNEE_HANG_NAMED) == !named && c->waits >= 0 &&
                c->mark != KNEE_JOB_NO_MARK) {
                knee_hang_show(view, c->mark);
                shown++;
            }
        }
}

/* The longest wait of any rank, from time stamps or timeouts. */
static double lost_s(const struct knee_hang_answer *out)
{
    double most = NAN;
    for (size_t i = 0; i < out->call_count; i++)
        if (out->calls[i].waits >= 0 && out->calls[i].limit_s > 0 && !out->calls[i].broken)
            most = fmax(most, out->calls[i].limit_s);
    return most;
}

/* A rank's row: the call it waits in, else the one that it finished last. */
static bool show_ranks(struct knee_hang_view *view)
{
    struct knee_hang_answer *out = view->out;
    size_t count = (size_t)view->world;
    out->ranks = knee_resize(view->alloc, NULL, (count + 1) * sizeof *out->ranks);
    if (!out->ranks || !view->flags)
        return false;
    out->rank_count = count;
    for (size_t r = 0; r < count; r++) {
        const struct knee_job_rank *row = &view->record->ranks[r];
        bool named = view->flags[r] & KNEE_HANG_NAMED;
        out->ranks[r] = (struct knee_hang_rank){.rank = (int32_t)r,
                                                .kind = named ? out->kind : KNEE_HANG_NOT,
                                                .exit = row->exit,
                                                .host = row->host,
                                                .dump = row->dump,
                                                .text = row->text,
                                                .talked = row->talked};
    }
    for (size_t i = 0; i < out->call_count; i++) {
        const struct knee_hang_call *c = &out->calls[i], **at = &out->ranks[c->rank].call;
        bool same = out->waits && c->group == out->waits->group;
        if (!*at || ((*at)->waits < 0 && c->waits >= 0) ||
            (same && (c->waits >= 0 || (*at)->waits < 0)))
            *at = c;
    }
    return true;
}

static bool same_state(const struct knee_hang_rank *a, const struct knee_hang_rank *b)
{
    const struct knee_hang_call *x = a->call, *y = b->call;
    if (a->kind != b->kind || a->exit != b->exit || !x != !y || a->dump != b->dump ||
        a->talked != b->talked)
        return false;
    return !x || (x->group == y->group && x->waits == y->waits && x->completed == y->completed &&
                  x->op == y->op && x->elements == y->elements && x->started == y->started &&
                  x->broken == y->broken);
}

static void add_state(struct knee_hang_answer *out, struct knee_hang_rank *rank)
{
    size_t i = 0;
    while (i < out->state_count && !same_state(out->states[i].like, rank) &&
           i + 1 < KNEE_HANG_STATES)
        i++;
    if (i == out->state_count)
        out->states[out->state_count++] = (struct knee_hang_state){rank, 0};
    out->states[i].count++;
    rank->state = (uint32_t)i;
}

static void group_states(struct knee_hang_answer *out)
{
    for (int named = 1; named >= 0; named--)
        for (size_t r = 0; r < out->rank_count; r++)
            if ((out->ranks[r].kind != KNEE_HANG_NOT) == named)
                add_state(out, &out->ranks[r]);
}

static void judge(struct knee_hang_view *view)
{
    if (!knee_hang_by_failure(view) && !knee_hang_by_mismatch(view) &&
        !knee_hang_by_absence(view) && !knee_hang_by_progress(view))
        not_hung(view);
    if (!view->out->waits) /* what the others wait in, whatever the cause is */
        for (size_t i = 0; i < view->out->call_count && !view->out->waits; i++) {
            const struct knee_hang_call *c = &view->out->calls[i];
            if (c->waits >= 0 && !(view->flags[c->rank] & KNEE_HANG_NAMED))
                view->out->waits = c;
        }
    show_calls(view);
    if (view->record->unknown_errors)
        knee_hang_show(view, view->record->unknown_mark);
    qsort(view->out->named, view->out->named_count, sizeof *view->out->named, ascending);
    view->out->lost_s = lost_s(view->out);
    view->out->dumps = view->record->roll.source_count > 0;
}

static bool make_room(struct knee_hang_view *view)
{
    size_t count = (size_t)view->world + 1;
    view->out->named = knee_resize(view->alloc, NULL, count * sizeof *view->out->named);
    view->out->silent = knee_resize(view->alloc, NULL, count * sizeof *view->out->silent);
    return view->out->named && view->out->silent;
}

/* Files of several jobs or attempts: nothing follows from comparing their ranks. */
static void answer_mixed(const struct knee_job_record *record, struct knee_hang_answer *a)
{
    if (!record->mixed[1])
        return;
    a->kind = KNEE_HANG_UNKNOWN;
    a->certainty = KNEE_CANNOT_TELL;
    a->named_count = a->evidence_count = 0;
    a->waits = a->instead = NULL;
}

knee_status knee_hang_judge(struct knee_job_record *record, const struct knee_alloc *alloc,
                            struct knee_hang_answer *out, struct knee_err *err)
{
    struct knee_hang_answer answer = {.alloc = alloc, .lost_s = NAN};
    struct knee_hang_view view = {.record = record, .out = &answer, .alloc = alloc};
    knee_status status = knee_rollcall_join(&record->roll, alloc, &view.roll, err);
    bool good = !status && knee_hang_make_calls(&view) && make_room(&view);
    if (good) {
        if (view.flags)
            judge(&view);
        answer_mixed(record, &answer);
        good = !view.no_memory && show_ranks(&view);
        if (good)
            group_states(&answer);
    }
    knee_roll_answer_release(&view.roll);
    knee_resize(alloc, view.flags, 0);
    if (!good) {
        knee_hang_answer_release(&answer);
        return status ? status : knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    }
    *out = answer;
    return KNEE_OK;
}

void knee_hang_answer_release(struct knee_hang_answer *answer)
{
    const struct knee_alloc *alloc = answer->alloc;
    void *all[] = {answer->named, answer->silent, answer->ranks, answer->calls};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(alloc, all[i], 0);
    *answer = (struct knee_hang_answer){.alloc = alloc};
}

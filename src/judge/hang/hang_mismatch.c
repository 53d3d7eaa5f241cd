/* SPDX-License-Identifier: MIT */
/*
 * Ranks that are in different calls under one number. The minority is named. Whether it skipped a
 * call or made an extra one follows from the usual order. With dumps the calls before are known: if
 * a call was skipped, the minority's call is the next one of the others. From text alone, the
 * minority has enqueued more calls than the others.
 */
#include "judge/hang/hang_calls.h"

#include <stdlib.h>
#include <string.h>

enum { FORWARD = 8 };

struct what {
    enum knee_op op;
    int64_t elements;
};

static bool alike(struct what a, struct what b)
{
    bool sizes = a.elements < 0 || b.elements < 0 || a.elements == b.elements ||
                 a.op == KNEE_OP_ALL_TO_ALLV || a.op == KNEE_OP_ALL_TO_ALL ||
                 a.op == KNEE_OP_UNKNOWN;
    return a.op == b.op && sizes;
}

/* What a rank does under a number; false: not known. */
static bool what_of(const struct knee_hang_view *view, const struct knee_hang_call *call,
                    int64_t number, struct what *out)
{
    const struct knee_entry *e =
        call->dump ? knee_hang_entry(view, call->group, number, call->rank) : NULL;
    if (e)
        *out = (struct what){e->op, e->elements};
    else if (call->waits == number && !call->broken &&
             (call->op != KNEE_OP_UNKNOWN || call->elements >= 0))
        *out = (struct what){call->op, call->elements};
    else
        return false;
    return true;
}

/* The group at hand, and the first number at which its ranks disagree. */
struct split {
    size_t first, end;
    int64_t number;
    struct what many, few;
    size_t many_count, few_count, other; /* other: ranks in a third call */
};

/* What most do and what the others do at one number. */
static bool split_at(const struct knee_hang_view *view, struct split *s, int64_t number)
{
    const struct knee_hang_call *calls = view->out->calls;
    s->many_count = s->few_count = s->other = 0;
    for (size_t i = s->first; i < s->end; i++) {
        struct what w;
        if (!what_of(view, &calls[i], number, &w))
            continue;
        if (s->many_count == 0 || alike(w, s->many)) {
            s->many = s->many_count ? s->many : w;
            s->many_count++;
        } else if (s->few_count == 0 || alike(w, s->few)) {
            s->few = s->few_count ? s->few : w;
            s->few_count++;
        } else {
            s->other++;
        }
    }
    if (s->few_count > s->many_count) {
        struct what w = s->many;
        size_t count = s->many_count;
        s->many = s->few, s->many_count = s->few_count;
        s->few = w, s->few_count = count;
    }
    s->number = number;
    return s->few_count > 0;
}

/* One rank of the many, or of the few, in a dump; NULL: none. */
static const struct knee_hang_call *one_of(const struct knee_hang_view *view, const struct split *s,
                                           struct what wanted, bool dump)
{
    struct what w;
    for (size_t i = s->first; i < s->end; i++) {
        const struct knee_hang_call *c = &view->out->calls[i];
        if ((c->dump || !dump) && what_of(view, c, s->number, &w) && alike(w, wanted))
            return c;
    }
    return NULL;
}

/* Do the calls of `few` from the number on go like those of `many` from `from` on? At least two
 * where there are two; one is enough where it is the very next call. */
static bool goes_like(const struct knee_hang_view *view, const struct split *s,
                      const struct knee_hang_call *few, const struct knee_hang_call *many,
                      int64_t from)
{
    struct what a, b;
    int64_t i = 0;
    for (; i < FORWARD && from + i < s->number; i++) {
        if (!what_of(view, few, s->number + i, &a))
            break;
        if (!what_of(view, many, from + i, &b) || !alike(a, b))
            return false;
    }
    return i > 0;
}

/* How many calls the few left out, by what went before; 0: none. */
static size_t left_out(const struct knee_hang_view *view, const struct split *s)
{
    const struct knee_hang_call *many = one_of(view, s, s->many, true),
                                *few = one_of(view, s, s->few, true);
    struct what w, before, context;
    if (!many || !few || !what_of(view, many, s->number - 1, &context))
        return 0;
    /* the last time that the same two calls came one after the other */
    for (int64_t k = s->number - 1; k > 0 && what_of(view, many, k, &w); k--) {
        if (!alike(w, s->many) || !what_of(view, many, k - 1, &before) || !alike(before, context))
            continue;
        for (int64_t j = 1; j <= FORWARD && k + j < s->number; j++)
            if (goes_like(view, s, few, many, k + j))
                return (size_t)j;
        return 0;
    }
    return 0;
}

/* Text alone: the few have enqueued more than any of the many. */
static bool is_ahead(const struct knee_hang_view *view, const struct split *s)
{
    int64_t few = INT64_MAX, many = -1;
    struct what w;
    for (size_t i = s->first; i < s->end; i++) {
        const struct knee_hang_call *c = &view->out->calls[i];
        if (!what_of(view, c, s->number, &w))
            continue;
        if (alike(w, s->few))
            few = c->entered < few ? c->entered : few;
        else
            many = c->entered > many ? c->entered : many;
    }
    return few != INT64_MAX && few > many && many >= 0;
}

static void fill(struct knee_hang_view *view, const struct split *s)
{
    struct knee_hang_answer *out = view->out;
    bool dumps = one_of(view, s, s->few, true) && one_of(view, s, s->many, true);
    bool tie = s->few_count == s->many_count, told = false;
    struct what w;
    out->left_out = dumps ? left_out(view, s) : s->few.op == s->many.op && is_ahead(view, s);
    out->kind = out->left_out             ? KNEE_HANG_LEFT_OUT
                : s->few.op != s->many.op ? KNEE_HANG_OTHER_OP
                                          : KNEE_HANG_OTHER_SIZE;
    for (size_t i = s->first; i < s->end; i++)
        told = told || view->record->ranks[out->calls[i].rank].fingerprint;
    /* as many on either side, and ranks whose files are missing: they would decide it */
    bool open = tie && !told && (knee_hang_own_files(view) || view->record->roll.source_count) &&
                s->few_count + s->many_count + s->other <
                    knee_hang_group_size(view, out->calls[s->first].group);
    for (size_t i = s->first; i < s->end; i++) {
        const struct knee_hang_call *c = &out->calls[i];
        if (!what_of(view, c, s->number, &w))
            continue;
        bool few = !alike(w, s->many);
        if (told)
            few = view->record->ranks[c->rank].fingerprint;
        if ((few || (tie && !told)) && !open)
            knee_hang_name(view, c->rank);
        if (few)
            out->instead = out->instead ? out->instead : c;
        else
            out->waits = out->waits ? out->waits : c;
        out->waiting += !few;
    }
    out->tie = tie && !told;
    out->certainty = open ? KNEE_CANNOT_TELL : out->tie ? KNEE_LIKELY : KNEE_CERTAIN;
}

bool knee_hang_by_mismatch(struct knee_hang_view *view)
{
    for (size_t first = 0, end; first < view->out->call_count; first = end) {
        struct split s = {.first = first};
        s.end = end = knee_hang_group(view, first);
        int64_t number = knee_hang_lowest(view, first, end);
        if (number >= 0 && split_at(view, &s, number)) {
            fill(view, &s);
            return true;
        }
    }
    /* fingerprints are numbered separately */
    for (size_t r = 0; r < view->record->rank_count; r++)
        if (view->record->ranks[r].fingerprint) {
            knee_hang_name(view, (int32_t)r);
            view->out->kind = KNEE_HANG_OTHER_OP;
            view->out->certainty = KNEE_LIKELY;
        }
    for (size_t i = 0; i < view->out->call_count && view->out->named_count; i++) {
        const struct knee_hang_call *c = &view->out->calls[i];
        if (view->record->ranks[c->rank].fingerprint)
            view->out->instead = view->out->instead ? view->out->instead : c;
        else
            view->out->waits = view->out->waits ? view->out->waits : c;
    }
    return view->out->named_count > 0;
}

/* SPDX-License-Identifier: MIT */
/* One row per rank and group: what it entered last, what it finished last, what it waits in. Dumps
 * know more than text and go before it. */
#include "judge/hang/hang_calls.h"

#include "base/order.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static struct knee_hang_call *new_call(struct knee_hang_view *view, uint32_t group, int32_t rank)
{
    struct knee_hang_call *call = &view->out->calls[view->out->call_count++];
    *call = (struct knee_hang_call){.group = group,
                                    .rank = rank,
                                    .entered = -1,
                                    .completed = -1,
                                    .waits = -1,
                                    .elements = -1,
                                    .out = -1,
                                    .group_rank = -1,
                                    .outstanding = -1,
                                    .since_s = KNEE_JOB_UNTIMED_S,
                                    .mark = KNEE_JOB_NO_MARK,
                                    .frame = ""};
    return call;
}

/* ---- From dumps ---- */

static void take_entry(const struct knee_rollcall *roll, struct knee_hang_call *call,
                       const struct knee_entry *e)
{
    call->dump = true;
    call->entered = e->sequence > call->entered ? e->sequence : call->entered;
    if (!e->pending) {
        if (!e->aborted && e->sequence > call->completed)
            call->completed = e->sequence;
        return;
    }
    if (call->waits >= 0 && call->waits <= e->sequence)
        return;
    call->waits = e->sequence;
    call->op = e->op;
    call->elements = e->elements;
    call->started = e->started;
    call->frame = e->frame ? roll->frames[e->frame - 1] : "";
}

/* Entries are sorted by group; `row_of` holds the row + 1 of each rank in the group at hand. */
static void calls_of_dumps(struct knee_hang_view *view, uint32_t *row_of)
{
    const struct knee_rollcall *roll = &view->record->roll;
    size_t first = view->out->call_count;
    for (size_t i = 0; i < roll->entry_count; i++) {
        const struct knee_entry *e = &roll->entries[i];
        if (i == 0 || roll->entries[i - 1].group != e->group) {
            for (size_t c = first; c < view->out->call_count; c++)
                row_of[view->out->calls[c].rank] = 0;
            first = view->out->call_count;
        }
        if (e->p2p || e->rank >= view->world)
            continue;
        if (!row_of[e->rank]) {
            new_call(view, e->group, e->rank);
            row_of[e->rank] = (uint32_t)view->out->call_count;
        }
        take_entry(roll, &view->out->calls[row_of[e->rank] - 1], e);
    }
}

static size_t count_dump_calls(const struct knee_rollcall *roll, size_t ranks, uint32_t *seen)
{
    size_t count = 0;
    memset(seen, 0, (ranks + 1) * sizeof *seen);
    for (size_t i = 0; i < roll->entry_count; i++) {
        const struct knee_entry *e = &roll->entries[i];
        if (e->p2p || (size_t)e->rank >= ranks || seen[e->rank] == e->group + 1)
            continue;
        seen[e->rank] = e->group + 1;
        count++;
    }
    memset(seen, 0, (ranks + 1) * sizeof *seen);
    return count;
}

/* ---- From text ---- */

/* The only group that text says something waits in; UINT32_MAX: none, or several. */
static uint32_t only_group(const struct knee_job_record *record)
{
    uint32_t found = UINT32_MAX;
    for (size_t i = 0; i < record->member_count; i++) {
        const struct knee_job_member *m = &record->members[i];
        if (m->waits < 0 || strcmp(record->roll.groups[m->group].name, "?") == 0 ||
            m->group == found)
            continue;
        if (found != UINT32_MAX)
            return UINT32_MAX;
        found = m->group;
    }
    return found;
}

/* A watchdog's line without a group belongs to the group in which others have that number. */
static uint32_t group_of(const struct knee_job_record *record, const struct knee_job_member *m,
                         uint32_t only)
{
    if (strcmp(record->roll.groups[m->group].name, "?") != 0)
        return m->group;
    return only != UINT32_MAX ? only : m->group;
}

static void take_member(struct knee_hang_call *call, const struct knee_job_member *m)
{
    call->group_rank = m->group_rank;
    call->outstanding = m->outstanding;
    call->limit_s = m->limit_s > 0 ? m->limit_s : call->limit_s;
    call->since_s = m->since_s;
    call->mark = call->mark == KNEE_JOB_NO_MARK ? m->mark : call->mark;
    if (call->dump)
        return;
    call->entered = m->enqueued > call->entered ? m->enqueued : call->entered;
    call->entered = m->waits > call->entered ? m->waits : call->entered;
    call->completed = m->completed > call->completed ? m->completed : call->completed;
    if (m->waits < 0)
        return;
    call->waits = m->waits;
    call->op = m->op;
    call->elements = m->in;
    call->out = m->out;
    call->broken = m->broken;
    call->frame = m->frame;
}

KNEE_BY_TWO(by_group_and_rank, struct knee_hang_call, group, rank)

/* The row of a dump, or the row that text has made for this rank: those stand at the end. */
static struct knee_hang_call *row_of(struct knee_hang_view *view, size_t dumps, uint32_t group,
                                     int32_t rank)
{
    struct knee_hang_call wanted = {.group = group, .rank = rank}, *calls = view->out->calls;
    struct knee_hang_call *found =
        dumps ? bsearch(&wanted, calls, dumps, sizeof wanted, by_group_and_rank) : NULL;
    for (size_t c = view->out->call_count; !found && c > dumps && calls[c - 1].rank == rank; c--)
        if (calls[c - 1].group == group)
            found = &calls[c - 1];
    return found ? found : new_call(view, group, rank);
}

static void calls_of_text(struct knee_hang_view *view)
{
    const struct knee_job_record *record = view->record;
    uint32_t only = only_group(record);
    size_t dumps = view->out->call_count;
    for (size_t r = 0; r < record->rank_count; r++)
        for (uint32_t m = record->ranks[r].members; m; m = record->members[m - 1].next) {
            const struct knee_job_member *member = &record->members[m - 1];
            if (member->waits < 0 && !member->known && member->outstanding < 0)
                continue; /* emptied: another group has what it had */
            take_member(row_of(view, dumps, group_of(record, member, only), (int32_t)r), member);
        }
}

/* ---- The roll ---- */

static void find_world(struct knee_hang_view *view)
{
    const struct knee_job_record *record = view->record;
    const struct knee_rollcall *roll = &record->roll;
    int64_t told = record->world, highest = (int64_t)record->rank_count;
    bool files = record->rank_count > 1;
    for (size_t g = 0; g < roll->group_count; g++)
        for (size_t i = 0; i < roll->groups[g].member_count; i++)
            if (roll->groups[g].members[i] + 1 > told)
                told = roll->groups[g].members[i] + 1;
    for (size_t r = 0; r < record->rank_count; r++)
        files = files && (record->ranks[r].own_file || record->ranks[r].dump);
    for (size_t i = 0; i < record->member_count; i++) {
        const struct knee_job_member *m = &record->members[i];
        bool gather = m->op == KNEE_OP_ALL_GATHER && m->in > 0 && m->out % m->in == 0;
        bool scatter = m->op == KNEE_OP_REDUCE_SCATTER && m->out > 0 && m->in % m->out == 0;
        int64_t size = gather ? m->out / m->in : scatter ? m->in / m->out : 0;
        told = size > told && size < KNEE_JOB_RANKS ? size : told;
    }
    view->world = told > highest ? told : highest;
    view->world = view->world < KNEE_JOB_RANKS ? view->world : KNEE_JOB_RANKS;
    view->world_sure = files || told >= highest;
}

static void sort_calls(struct knee_hang_answer *out)
{
    if (out->call_count > 1)
        qsort(out->calls, out->call_count, sizeof *out->calls, by_group_and_rank);
}

static void flag_waiting(struct knee_hang_view *view)
{
    const struct knee_rollcall *roll = &view->record->roll;
    memset(view->flags, 0, (size_t)view->world + 1);
    for (size_t i = 0; i < view->out->call_count; i++) {
        const struct knee_hang_call *c = &view->out->calls[i];
        if (c->waits >= 0 && !c->broken)
            view->flags[c->rank] |= KNEE_HANG_WAITS;
    }
    for (size_t i = 0; i < roll->source_count; i++)
        if (roll->sources[i].pending && roll->sources[i].rank >= 0 &&
            roll->sources[i].rank < view->world)
            view->flags[roll->sources[i].rank] |= KNEE_HANG_WAITS;
}

bool knee_hang_make_calls(struct knee_hang_view *view)
{
    struct knee_job_record *record = view->record;
    find_world(view);
    size_t ranks = (size_t)view->world;
    uint32_t *scratch = knee_resize(view->alloc, NULL, (ranks + 1) * sizeof *scratch);
    view->flags = knee_resize(view->alloc, NULL, ranks + 1);
    if (!scratch || !view->flags || !knee_job_rank_at(record, (int64_t)ranks - 1)) {
        knee_resize(view->alloc, scratch, 0);
        return ranks == 0;
    }
    size_t most = count_dump_calls(&record->roll, ranks, scratch) + record->member_count;
    view->out->calls = knee_resize(view->alloc, NULL, (most + 1) * sizeof *view->out->calls);
    if (view->out->calls) {
        calls_of_dumps(view, scratch);
        sort_calls(view->out);
        calls_of_text(view);
        sort_calls(view->out);
        flag_waiting(view);
    }
    knee_resize(view->alloc, scratch, 0);
    return view->out->calls;
}

size_t knee_hang_group(const struct knee_hang_view *view, size_t first)
{
    size_t end = first;
    while (end < view->out->call_count &&
           view->out->calls[end].group == view->out->calls[first].group)
        end++;
    return end;
}

const struct knee_hang_call *knee_hang_call_of(const struct knee_hang_view *view, uint32_t group,
                                               int32_t rank)
{
    struct knee_hang_call wanted = {.group = group, .rank = rank};
    if (!view->out->call_count)
        return NULL;
    return bsearch(&wanted, view->out->calls, view->out->call_count, sizeof wanted,
                   by_group_and_rank);
}

static int before(const struct knee_entry *e, uint32_t group, int64_t sequence, int32_t rank)
{
    if (e->group != group)
        return e->group < group ? -1 : 1;
    if (e->p2p)
        return 1;
    if (e->sequence != sequence)
        return e->sequence < sequence ? -1 : 1;
    return (e->rank > rank) - (e->rank < rank);
}

const struct knee_entry *knee_hang_entry(const struct knee_hang_view *view, uint32_t group,
                                         int64_t sequence, int32_t rank)
{
    const struct knee_rollcall *roll = &view->record->roll;
    size_t low = 0, high = roll->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = before(&roll->entries[middle], group, sequence, rank);
        if (order == 0)
            return &roll->entries[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int64_t knee_hang_lowest(const struct knee_hang_view *view, size_t first, size_t end)
{
    int64_t lowest[2] = {-1, -1};
    for (size_t i = first; i < end; i++) {
        const struct knee_hang_call *c = &view->out->calls[i];
        int64_t *low = &lowest[c->broken];
        if (c->waits >= 0 && (*low < 0 || c->waits < *low))
            *low = c->waits;
    }
    return lowest[0] >= 0 ? lowest[0] : lowest[1];
}

/* The group that all ranks are in: PyTorch calls it so; or it is the only one there is. */
static bool is_default(const struct knee_rollcall *roll, uint32_t group)
{
    const struct knee_comm_group *g = &roll->groups[group];
    return (g->description && strcmp(g->description, "default_pg") == 0) ||
           strcmp(g->name, "?") == 0 || strcmp(g->name, "0") == 0 || roll->group_count == 1;
}

size_t knee_hang_group_size(const struct knee_hang_view *view, uint32_t group)
{
    const struct knee_rollcall *roll = &view->record->roll;
    if (roll->groups[group].member_count)
        return roll->groups[group].member_count;
    return is_default(roll, group) ? (size_t)view->world : 0;
}

int32_t knee_hang_group_rank(const struct knee_hang_view *view, uint32_t group, size_t row)
{
    const struct knee_comm_group *g = &view->record->roll.groups[group];
    return g->member_count ? g->members[row] : (int32_t)row;
}

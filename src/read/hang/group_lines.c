/* SPDX-License-Identifier: MIT */
/*
 * What PyTorch's process groups print when a collective does not end. The group stands in
 * "[PG ID 0 PG GUID 0(default_pg) Rank 2]" (2.3 and later), "[PG 1 (default_pg) Rank 7]" or
 * "[PG 1 Rank 0]"; the watchdog's own line has none, and gets it from the status line that follows
 * with the same rank and number.
 */
#include "base/fold.h"
#include "collective/collective_op.h"
#include "read/hang/job_lines.h"
#include "timeline/rollcall.h"

#define NO_GROUP "?" /* until a status line says which */

/* ---- The group ---- */

static struct knee_slice group_of(struct knee_slice text, struct knee_slice *description)
{
    size_t at = knee_slice_find(text, "[PG "), guid = knee_slice_find(text, "PG GUID ");
    struct knee_slice rest, name, none = {"", 0};
    *description = none;
    if (at >= text.length)
        return none;
    rest = knee_slice_from(text, guid < text.length ? guid + 8 : at + 4);
    if (knee_slice_starts(rest, "ID "))
        rest = knee_slice_from(rest, 3);
    size_t end = 0;
    while (end < rest.length && !strchr(" ()]", rest.at[end]))
        end++;
    name = (struct knee_slice){rest.at, end};
    rest = knee_slice_trim(knee_slice_from(rest, end));
    if (knee_slice_starts(rest, "(")) {
        rest = knee_slice_from(rest, 1);
        knee_slice_until(&rest, ')', description);
    }
    return name;
}

/* "[PG ... Rank 4]": the rank inside the group; the job's where nothing else says it. */
static int64_t rank_in_group(struct knee_slice text)
{
    size_t at = knee_slice_find(text, "[PG ");
    struct knee_slice rest = knee_slice_from(text, at), piece;
    if (at >= text.length || !knee_slice_until(&rest, ']', &piece))
        return -1;
    return knee_job_number(piece, "Rank ");
}

static struct knee_job_member *member_of(struct knee_job_place *place,
                                         const struct knee_job_line *line, int64_t rank)
{
    struct knee_slice description, name = group_of(line->text, &description);
    struct knee_rollcall *roll = &place->record->roll;
    if (!name.length)
        return NULL;
    struct knee_job_member *member = knee_job_member_at(place->record, rank, name);
    if (member) {
        member->group_rank = rank_in_group(line->text);
        if (description.length && !knee_rollcall_describe(roll, member->group, description))
            place->record->no_memory = true;
    }
    return member;
}

static void first_time(double *first, double time_s)
{
    if (time_s >= 0 && (*first < 0 || time_s < *first))
        *first = time_s;
}

/* ---- The watchdog ---- */

static void name_op(struct knee_job_member *member, struct knee_slice text)
{
    size_t at = knee_slice_find(text, "OpType="), end = 0;
    struct knee_slice rest = knee_slice_from(text, at < text.length ? at + 7 : at);
    while (end < rest.length && (knee_is_word_char(rest.at[end]) || rest.at[end] == '_'))
        end++;
    rest.length = end;
    knee_slice_copy(rest, member->op_name, sizeof member->op_name);
    member->op = knee_op_from_name(rest.at, rest.length);
}

static void take_work(struct knee_job_place *place, const struct knee_job_line *line,
                      struct knee_job_member *member, int64_t number)
{
    double ran_s = (double)knee_job_number(line->text, "ran for ") / 1000;
    double limit_s = (double)knee_job_number(line->text, "Timeout(ms)=") / 1000;
    bool timed_out = knee_slice_has(line->text, "imeout");
    timed_out = timed_out && !knee_slice_has(line->text, "async exception");
    /* of several the first is the cause; a timeout says more than an error of NCCL */
    if (member->waits >= 0 && member->timed_out >= timed_out && member->waits <= number)
        return;
    member->waits = number;
    member->timed_out = timed_out;
    member->broken = !timed_out;
    member->in = knee_job_number(line->text, "NumelIn=");
    member->out = knee_job_number(line->text, "NumelOut=");
    member->limit_s = limit_s > 0 ? limit_s : 0;
    member->since_s = place->time_s >= 0 && ran_s > 0 ? place->time_s - ran_s : KNEE_JOB_UNTIMED_S;
    name_op(member, line->text);
    member->mark = knee_job_mark_line(place, line, KNEE_FAILED_NOT);
}

/* Connection closed, or a message of another size: what NCCL says about a peer. */
static void take_nccl_error(struct knee_job_rank *row, struct knee_slice text, double time_s)
{
    if (knee_slice_has(text, "remote process exited") || knee_slice_has(text, "ncclRemoteError"))
        row->peer_closed = true;
    if (knee_slice_has(text, "invalid usage") || knee_slice_has(text, "truncated"))
        row->truncated = true;
    first_time(&row->broken_s, time_s);
}

static bool work_line(struct knee_job_place *place, const struct knee_job_line *line, int64_t rank)
{
    int64_t number = knee_job_number(line->text, "SeqNum=");
    struct knee_slice description;
    struct knee_job_rank *row = knee_job_rank_at(place->record, rank);
    if (!knee_slice_has(line->text, "WorkNCCL(") || number < 0 || !row)
        return false;
    struct knee_slice group = group_of(line->text, &description);
    struct knee_job_member *member =
        knee_job_member_at(place->record, rank, group.length ? group : knee_slice_of(NO_GROUP));
    row = knee_job_rank_at(place->record, rank);
    row->talked = row->text = true;
    if (knee_slice_has(line->text, "async exception")) {
        take_nccl_error(row, line->text, place->time_s);
        first_time(&place->record->first_broken_s, place->time_s);
    } else {
        first_time(&row->timeout_s, place->time_s);
        first_time(&place->record->first_timeout_s, place->time_s);
    }
    if (member)
        take_work(place, line, member, number);
    return true;
}

/* The group that the watchdog's line did not have. */
static void adopt(struct knee_job_record *record, int64_t rank, struct knee_job_member *member,
                  int64_t number)
{
    uint32_t *link = &record->ranks[rank].members;
    for (; *link; link = &record->members[*link - 1].next) {
        struct knee_job_member *loose = &record->members[*link - 1];
        if (loose == member || loose->waits != number ||
            strcmp(record->roll.groups[loose->group].name, NO_GROUP) != 0)
            continue;
        if (member->waits < 0 || member->waits > number || loose->timed_out > member->timed_out) {
            struct knee_job_member kept = *member;
            *member = *loose;
            member->group = kept.group;
            member->next = kept.next;
            member->enqueued = kept.enqueued;
            member->completed = kept.completed;
            member->outstanding = kept.outstanding;
            member->known = kept.known;
            member->group_rank = kept.group_rank;
        }
        loose->waits = -1; /* free for the next one */
        loose->timed_out = loose->broken = false;
        loose->frame[0] = '\0';
        return;
    }
}

/* "last enqueued work: 46, last completed work: 43", "Last enqueued NCCL work: 43, ..." */
static bool status_line(struct knee_job_place *place, const struct knee_job_line *line,
                        int64_t rank)
{
    struct knee_slice t = line->text;
    bool status = knee_slice_has(t, "ast enqueued") && knee_slice_has(t, "ast completed");
    struct knee_job_member *member = status ? member_of(place, line, rank) : NULL;
    if (!status)
        return false;
    struct knee_job_rank *row = knee_job_rank_at(place->record, rank);
    if (row)
        row->talked = row->text = true;
    if (!member)
        return true;
    int64_t number = knee_job_number(t, "work sequence id: ");
    number = number < 0 ? knee_job_number(t, "watchdog at work: ") : number;
    size_t enqueued = knee_slice_find(t, "ast enqueued"),
           done = knee_slice_find(t, "ast completed");
    struct knee_slice first = knee_slice_from(t, enqueued), second = knee_slice_from(t, done);
    int64_t e = knee_job_number(first, "work: "), c = knee_job_number(second, "work: ");
    /* later lines may count calls that were aborted as done: the first word stands */
    if (!member->known) {
        member->completed = knee_slice_has(second, "work: -1") ? -1 : c;
        member->known = true;
    }
    member->enqueued = e > member->enqueued ? e : member->enqueued;
    if (number >= 0) {
        adopt(place->record, rank, member, number);
        if (member->waits < 0) { /* the watchdog's own line is not there */
            member->waits = number;
            member->timed_out = true;
        }
    }
    if (member->mark == KNEE_JOB_NO_MARK)
        member->mark = knee_job_mark_line(place, line, KNEE_FAILED_NOT);
    return true;
}

/* ---- Stacks ---- */

static bool is_own(struct knee_slice place)
{
    return !knee_slice_has(place, "site-packages/") && !knee_slice_has(place, "dist-packages/") &&
           !knee_slice_has(place, "/torch/");
}

/* "#2 evaluate from /home/a/train.py:16": the innermost one of the program's own. */
static bool stack_line(struct knee_job_place *place, const struct knee_job_line *line, int64_t rank)
{
    struct knee_slice rest = place->after, next, best = {"", 0}, name = {"", 0};
    if (!knee_slice_has(line->text, "Stack trace of the failed collective:"))
        return knee_slice_has(line->text, "Stack trace of the failed collective not found");
    for (int i = 0; i < 64 && knee_slice_line(&rest, &next); i++) {
        struct knee_job_line one = knee_job_line_of(next);
        size_t from = knee_slice_find(one.text, " from ");
        if (!one.text.length) /* of a line that was broken */
            continue;
        if (!knee_slice_starts(one.text, "#"))
            break;
        if (from >= one.text.length || best.length)
            continue;
        struct knee_slice at = knee_slice_trim(knee_slice_from(one.text, from + 6));
        struct knee_slice head = {one.text.at, from};
        size_t space = knee_slice_find(head, " ");
        if (is_own(at)) {
            best = at;
            name = knee_slice_trim(knee_slice_from(head, space));
        }
    }
    /* it follows the status line of the group that failed last */
    struct knee_job_rank *row = knee_job_rank_at(place->record, rank);
    if (!row || !best.length)
        return true;
    struct knee_job_member *member = NULL;
    for (uint32_t m = row->members; m; m = place->record->members[m - 1].next) {
        struct knee_job_member *one = &place->record->members[m - 1];
        if (one->waits >= 0 && !one->frame[0] && (!member || one->mark > member->mark))
            member = one;
    }
    if (member) {
        char text[128], function[24];
        knee_slice_copy(best, text, sizeof text);
        knee_slice_copy(name, function, sizeof function);
        size_t used = strlen(text);
        memcpy(member->frame, text, used + 1);
        if (used + strlen(function) + 4 < sizeof member->frame && function[0]) {
            memcpy(member->frame + used, " (", 2);
            memcpy(member->frame + used + 2, function, strlen(function));
            memcpy(member->frame + used + 2 + strlen(function), ")", 2);
        }
    }
    return true;
}

/* ---- The rest ---- */

static bool heartbeat_line(struct knee_job_place *place, const struct knee_job_line *line,
                           int64_t rank)
{
    bool stuck = knee_slice_has(line->text, "watchdog got stuck");
    if (!stuck && !knee_slice_has(line->text, "Heartbeat monitor timed out"))
        return false;
    struct knee_job_rank *row = knee_job_rank_at(place->record, rank);
    struct knee_job_member *member = row ? member_of(place, line, rank) : NULL;
    if (row)
        row->talked = row->text = row->watchdog_stuck = true;
    if (member) {
        int64_t count = knee_job_number(line->text, "workMetaList_.size()");
        member->outstanding = count >= 0 ? count : member->outstanding;
        if (member->mark == KNEE_JOB_NO_MARK)
            member->mark = knee_job_mark_line(place, line, KNEE_FAILED_NOT);
    }
    return true;
}

/* One of the two that TORCH_DISTRIBUTED_DEBUG=DETAIL found to disagree. */
static void fingerprint(struct knee_job_place *place, const struct knee_job_line *line,
                        struct knee_slice text, bool other)
{
    int64_t rank = knee_job_number(text, "ank ");
    struct knee_job_member *member =
        knee_job_member_at(place->record, rank, knee_slice_of(NO_GROUP));
    struct knee_job_rank *row = knee_job_rank_at(place->record, rank);
    if (!member || !row)
        return;
    row->text = true;
    row->fingerprint = row->fingerprint || other;
    if (member->waits >= 0)
        return;
    member->waits = knee_job_number(text, "SequenceNumber=");
    member->in = knee_job_number(text, "TensorShape=[");
    member->timed_out = true;
    name_op(member, text);
    member->mark = knee_job_mark_line(place, line, KNEE_FAILED_NOT);
}

static bool fingerprint_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    size_t first = knee_slice_find(line->text, "Rank "),
           but = knee_slice_find(line->text, "but Rank ");
    if (!knee_slice_has(line->text, "CollectiveFingerPrint") || but >= line->text.length ||
        first >= but)
        return false;
    fingerprint(place, line, (struct knee_slice){line->text.at + first, but - first}, false);
    fingerprint(place, line, knee_slice_from(line->text, but + 4), true);
    return true;
}

/* "store based barrier on rank: 0 ... (world_size=2, worker_count=1, ..." */
static bool store_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_job_record *record = place->record;
    int64_t world = knee_job_number(line->text, "world_size="),
            came = knee_job_number(line->text, "worker_count=");
    if (!knee_slice_has(line->text, "store based barrier") || world <= 0 || came < 0 ||
        came >= world)
        return false;
    record->world = world > record->world ? world : record->world;
    if (record->failed == KNEE_FAILED_NOT) {
        record->failed = KNEE_FAILED_NO_START;
        record->failed_mark = knee_job_mark_line(place, line, KNEE_FAILED_NO_START);
    }
    struct knee_job_rank *row = knee_job_rank_at(record, knee_job_number(line->text, "on rank: "));
    if (row)
        row->talked = row->text = true;
    return true;
}

/* "[0, 1, 3] started ALLREDUCE": all of them are ranks of the group. */
static bool desync_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    if (!knee_slice_has(line->text, "didn't finish collective #") &&
        !knee_slice_has(line->text, "didn't join collective #") &&
        !knee_slice_has(line->text, "Timeout at collective"))
        return false;
    size_t at = knee_slice_find(line->text, "[");
    struct knee_slice rest = knee_slice_from(line->text, at + 1), list, piece;
    knee_slice_until(&rest, ']', &list);
    while (knee_slice_until(&list, ',', &piece)) {
        int64_t rank = knee_job_number(piece, "");
        if (rank < KNEE_JOB_RANKS && rank >= place->record->world)
            place->record->world = rank + 1;
    }
    return true;
}

enum { ENDS = 2 }; /* the first ones: the process ends */
static const char *const noise[] = {
    "Terminating the process after attempting to dump",
    "we are taking the entire process down",
    "First PG on this rank to signal dumping",
    "preparing to dump debug info",
    "Observed flight recorder dump signal",
    "Some NCCL operations have failed or timed out",
    "destroy_process_group() was not called",
    "Using network",
    "is deprecated; use TORCH_",
};

/* What a rank went into: a barrier, or a send or receive outside a batch. */
static bool own_line(struct knee_job_place *place, const struct knee_job_line *line, int64_t rank)
{
    bool p2p = knee_slice_has(line->text, "unbatched P2P op"),
         barrier =
             knee_slice_has(line->text, "barrier(): using the device") ||
             (knee_slice_has(line->text, "barrier") && knee_slice_has(line->text, "using GPU"));
    if (!p2p && !barrier)
        return false;
    struct knee_job_rank *row = knee_job_rank_at(place->record, rank);
    uint32_t mark = p2p || row ? knee_job_mark_line(place, line, KNEE_FAILED_NOT) : 0;
    place->record->barriers += barrier && !row;
    if (row) {
        row->text = true;
        row->p2p = row->p2p || p2p;
        row->barrier = row->barrier || barrier;
        row->last_mark = mark;
    }
    return true;
}

bool knee_job_group_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    int64_t rank = knee_job_whose(place, line);
    if (rank < 0) /* older PyTorch says it nowhere else */
        rank = rank_in_group(line->text);
    bool own = own_line(place, line, rank);
    if (work_line(place, line, rank) || status_line(place, line, rank) ||
        stack_line(place, line, rank) || heartbeat_line(place, line, rank) ||
        fingerprint_line(place, line) || store_line(place, line) || desync_line(place, line) || own)
        return true;
    for (size_t i = 0; i < sizeof noise / sizeof *noise; i++)
        if (knee_slice_has(line->text, noise[i])) {
            struct knee_job_rank *row = knee_job_rank_at(place->record, rank);
            if (row)
                row->talked = row->talked || knee_slice_has(line->text, "dump");
            place->record->gave_up = place->record->gave_up || i < ENDS;
            return true;
        }
    return false;
}

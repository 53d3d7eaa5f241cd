/* SPDX-License-Identifier: MIT */
/*
 * A rank that failed before any timeout is the cause: the others only waited for it, or lost their
 * connection to it. An error behind the first timeout is what the timeout did.
 */
#include "judge/hang/hang_calls.h"

#include <string.h>

/* Errors of several ranks within this time are one cause. */
#define TOGETHER_S 60.0

static const struct {
    enum knee_failure failure;
    enum knee_hang_class kind;
    int weight; /* of errors at one time, or without a time, the heaviest is the cause */
} rows[] = {
    {KNEE_FAILED_OOM, KNEE_HANG_OOM, 5},           {KNEE_FAILED_HOST_OOM, KNEE_HANG_HOST_OOM, 5},
    {KNEE_FAILED_GPU, KNEE_HANG_GPU_ERROR, 6},     {KNEE_FAILED_FAULT, KNEE_HANG_GPU_FAULT, 6},
    {KNEE_FAILED_SIGNAL, KNEE_HANG_SIGNAL, 4},     {KNEE_FAILED_KILLED, KNEE_HANG_KILLED, 4},
    {KNEE_FAILED_DATA_END, KNEE_HANG_DATA_END, 3}, {KNEE_FAILED_VERSION, KNEE_HANG_VERSION, 5},
    {KNEE_FAILED_NETWORK, KNEE_HANG_NETWORK, 3},   {KNEE_FAILED_EXCEPTION, KNEE_HANG_EXCEPTION, 2},
    {KNEE_FAILED_NCCL, KNEE_HANG_NCCL, 1},         {KNEE_FAILED_NODE, KNEE_HANG_NODE, 7},
    {KNEE_FAILED_TIME, KNEE_HANG_TIME_LIMIT, 0},   {KNEE_FAILED_CANCEL, KNEE_HANG_CANCELLED, 0},
    {KNEE_FAILED_NO_START, KNEE_HANG_NO_START, 4},
};

static size_t row_of(enum knee_failure failure)
{
    size_t i = 0;
    while (i + 1 < sizeof rows / sizeof *rows && rows[i].failure != failure)
        i++;
    return i;
}

/* Does the error come before anything that could have caused it? */
static bool is_first(const struct knee_job_record *record, const struct knee_job_rank *rank)
{
    double limit = record->first_timeout_s;
    if (rank->timeout_s >= 0 && rank->failure_s >= rank->timeout_s)
        return false;
    return rank->failure != KNEE_FAILED_NOT &&
           (rank->failure_s < 0 || limit < 0 || rank->failure_s <= limit + 1);
}

static bool earlier(const struct knee_job_rank *a, const struct knee_job_rank *b)
{
    bool apart =
        a->failure_s >= 0 && b->failure_s >= 0 &&
        (a->failure_s > b->failure_s + TOGETHER_S || b->failure_s > a->failure_s + TOGETHER_S);
    int x = rows[row_of(a->failure)].weight, y = rows[row_of(b->failure)].weight;
    if (apart || x == y)
        return a->failure_s < b->failure_s;
    return x > y;
}

static bool by_own_error(struct knee_hang_view *view)
{
    const struct knee_job_record *record = view->record;
    const struct knee_job_rank *first = NULL;
    for (size_t r = 0; r < record->rank_count; r++)
        if (is_first(record, &record->ranks[r]) && (!first || earlier(&record->ranks[r], first)))
            first = &record->ranks[r];
    if (!first)
        return false;
    for (size_t r = 0; r < record->rank_count; r++) {
        const struct knee_job_rank *rank = &record->ranks[r];
        bool same = is_first(record, rank) && rank->failure == first->failure &&
                    (rank->failure_s < 0 || first->failure_s < 0 ||
                     rank->failure_s <= first->failure_s + TOGETHER_S);
        if (same) {
            knee_hang_name(view, (int32_t)r);
            if (view->out->evidence_count < 4)
                knee_hang_show(view, rank->failure_mark);
        } else {
            view->out->followed += rank->failure != KNEE_FAILED_NOT;
        }
    }
    view->out->kind = rows[row_of(first->failure)].kind;
    view->out->certainty = first->failure == KNEE_FAILED_NCCL ? KNEE_LIKELY : KNEE_CERTAIN;
    return true;
}

/* Signals of a crash, never sent to end a job: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS. */
static bool is_crash(int32_t status)
{
    return status == 132 || status == 133 || status == 135 || status == 136 || status == 139 ||
           status == 159;
}

/* A rank saw the connection close before any timeout expired, so a process had ended. */
bool knee_hang_peer_left(const struct knee_hang_view *view)
{
    const struct knee_job_record *record = view->record;
    for (size_t r = 0; r < record->rank_count; r++) {
        const struct knee_job_rank *rank = &record->ranks[r];
        if (rank->peer_closed && rank->broken_s >= 0 &&
            (record->first_timeout_s < 0 || rank->broken_s < record->first_timeout_s))
            return true;
    }
    return false;
}

/* Which ends count, and what they mean. */
struct ends {
    size_t crashed, failed, killed, aborted, known;
    double first_s; /* the earliest failure in the launcher's table; KNEE_JOB_UNTIMED_S */
};

static struct ends count_ends(const struct knee_job_record *record)
{
    struct ends e = {.first_s = KNEE_JOB_UNTIMED_S};
    for (size_t r = 0; r < record->rank_count; r++) {
        const struct knee_job_rank *rank = &record->ranks[r];
        bool failed = rank->exit > 0 && rank->exit < 128 && !rank->talked;
        e.known += rank->exit >= 0;
        e.crashed += is_crash(rank->exit);
        e.killed += rank->exit == 137;
        e.aborted += rank->exit == 134;
        e.failed += failed;
        if (failed && rank->exit_s >= 0 && (e.first_s < 0 || rank->exit_s < e.first_s))
            e.first_s = rank->exit_s;
    }
    return e;
}

/* The rank that the launcher saw end first: killed, or the only one that aborted. */
static bool is_root(const struct knee_job_rank *rank, const struct ends *e)
{
    return rank->root && (rank->exit == 137 || (rank->exit == 134 && e->aborted == 1));
}

static bool by_exit(struct knee_hang_view *view)
{
    const struct knee_job_record *record = view->record;
    struct ends e = count_ends(record);
    size_t waits = view->out->call_count, root = 0;
    for (size_t r = 0; r < record->rank_count; r++)
        root += !waits && is_root(&record->ranks[r], &e);
    /* SIGKILL may come from the launcher: it is evidence only if no rank waits, or one left early
     */
    bool kill = !e.crashed && !e.failed && !root && e.killed && e.killed < e.known &&
                (!waits || knee_hang_peer_left(view));
    bool one = e.failed && (e.failed < e.known || e.failed == e.known);
    if (!e.crashed && !kill && !root && !one)
        return false;
    bool sigkill = kill;
    if (!e.crashed && !root && !kill && view->record->failed == KNEE_FAILED_EXCEPTION)
        knee_hang_show(view, view->record->failed_mark); /* some rank's, and the only error */
    for (size_t r = 0; r < record->rank_count; r++) {
        const struct knee_job_rank *rank = &record->ranks[r];
        bool early = rank->exit_s < 0 || e.first_s < 0 || rank->exit_s <= e.first_s;
        bool hit = e.crashed ? is_crash(rank->exit)
                   : root    ? is_root(rank, &e)
                   : kill    ? rank->exit == 137
                             : rank->exit > 0 && rank->exit < 128 && !rank->talked && early;
        if (!hit)
            continue;
        sigkill = sigkill || (root && rank->exit == 137);
        knee_hang_name(view, (int32_t)r);
        knee_hang_show(view, rank->exit_mark);
        knee_hang_show(view, rank->last_mark);
    }
    view->out->kind = sigkill && !e.crashed ? KNEE_HANG_KILLED
                      : e.crashed || root   ? KNEE_HANG_SIGNAL
                                            : KNEE_HANG_EXCEPTION;
    view->out->certainty = e.crashed ? KNEE_CERTAIN : KNEE_LIKELY;
    return true;
}

/* Ranks that never joined: those without any line, if their number matches the number of missing
 * ranks. */
static void name_not_started(struct knee_hang_view *view)
{
    size_t silent = 0;
    for (int64_t r = 0; r < view->world; r++)
        silent += !view->record->ranks[r].talked;
    for (int64_t r = 0; r < view->world && 2 * silent <= (size_t)view->world; r++)
        if (!view->record->ranks[r].talked)
            knee_hang_name(view, (int32_t)r);
}

/* What ended the job as a whole, where no rank is known. */
static bool by_job(struct knee_hang_view *view)
{
    const struct knee_job_record *record = view->record;
    if (record->failed == KNEE_FAILED_NOT)
        return false;
    view->out->kind = rows[row_of(record->failed)].kind;
    view->out->certainty = KNEE_LIKELY;
    knee_hang_show(view, record->failed_mark);
    if (record->failed == KNEE_FAILED_NO_START)
        name_not_started(view);
    return true;
}

/* RAS: ranks that cannot be reached; else those that have enqueued less than the others. */
static bool by_ras(struct knee_hang_view *view)
{
    const struct knee_job_record *record = view->record;
    int64_t most = -1, fewest = INT64_MAX;
    bool missing = false;
    for (size_t r = 0; r < record->rank_count; r++) {
        int64_t calls = record->ranks[r].ras_calls;
        missing = missing || record->ranks[r].ras_missing;
        most = calls > most ? calls : most;
        fewest = calls >= 0 && calls < fewest ? calls : fewest;
    }
    if (!missing && (most < 0 || most == fewest))
        return false;
    for (size_t r = 0; r < record->rank_count; r++) {
        const struct knee_job_rank *rank = &record->ranks[r];
        bool hit = missing ? rank->ras_missing : rank->ras_calls >= 0 && rank->ras_calls < most;
        if (hit)
            knee_hang_name(view, (int32_t)r);
        if (hit || !missing)
            knee_hang_show(view, rank->failure_mark);
    }
    view->out->kind = missing ? KNEE_HANG_FROZEN : KNEE_HANG_BUSY;
    view->out->behind = missing ? 0 : most - fewest;
    view->out->certainty = KNEE_LIKELY;
    return true;
}

/* Ranks that others named because they did not come. */
static bool by_absent(struct knee_hang_view *view)
{
    static const enum knee_hang_class kinds[] = {KNEE_HANG_NOT, KNEE_HANG_BUSY, KNEE_HANG_NO_START,
                                                 KNEE_HANG_FROZEN};
    const struct knee_job_record *record = view->record;
    enum knee_absent absent = KNEE_ABSENT_NOT;
    for (size_t r = 0; r < record->rank_count; r++) {
        const struct knee_job_rank *rank = &record->ranks[r];
        absent = rank->absent > absent ? rank->absent : absent;
    }
    for (size_t r = 0; r < record->rank_count; r++)
        if (absent && record->ranks[r].absent == absent) {
            knee_hang_name(view, (int32_t)r);
            knee_hang_show(view, record->ranks[r].failure_mark);
        }
    view->out->kind = kinds[absent];
    view->out->certainty = KNEE_LIKELY;
    return absent != KNEE_ABSENT_NOT;
}

/* Often the end of a hang, not its cause: a time limit, a cancelled job, a bare error. */
static bool is_weak(enum knee_failure failure)
{
    return failure == KNEE_FAILED_TIME || failure == KNEE_FAILED_CANCEL ||
           failure == KNEE_FAILED_NCCL || failure == KNEE_FAILED_EXCEPTION ||
           failure == KNEE_FAILED_SIGNAL || failure == KNEE_FAILED_KILLED;
}

bool knee_hang_by_failure(struct knee_hang_view *view)
{
    bool weak = is_weak(view->record->failed);
    if (by_own_error(view) || by_exit(view) || by_ras(view) || (!weak && by_job(view)) ||
        by_absent(view))
        return true;
    for (size_t i = 0; weak && i < view->out->call_count; i++)
        if (view->out->calls[i].waits >= 0)
            return false;
    return !(weak && view->record->timed_out) && by_job(view);
}

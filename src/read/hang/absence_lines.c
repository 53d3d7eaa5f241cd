/* SPDX-License-Identifier: MIT */
/*
 * Lines in which one rank, or a coordinator, names those that did not come:
 *
 *   PyTorch   "Ranks 4, 5 failed to pass monitoredBarrier in 30000 ms"
 *   Horovod   "allreduce.conv1.weight [missing ranks: 1, 2]"
 *   JAX       "Barrier timed out. ... Timed out task names:", then "/job:w/replica:0/task:3" alone
 *             "Task /job:w/replica:0/task:5 heartbeat timeout"
 */
#include "base/fold.h"
#include "read/hang/job_lines.h"

static void set_absent(struct knee_job_place *place, const struct knee_job_line *line, int64_t rank,
                       enum knee_absent absent)
{
    struct knee_job_rank *row = knee_job_rank_at(place->record, rank);
    if (!row || row->absent)
        return;
    row->absent = absent;
    row->text = true;
    if (row->failure_mark == KNEE_JOB_NO_MARK)
        row->failure_mark = knee_job_mark_line(place, line, KNEE_FAILED_NOT);
}

/* "4, 5, 6 and more": the numbers up to something else. */
static bool each_rank(struct knee_job_place *place, const struct knee_job_line *line,
                      struct knee_slice list)
{
    bool any = false;
    while (list.length) {
        int64_t rank = knee_job_number(list, "");
        if (rank < 0)
            break;
        set_absent(place, line, rank, KNEE_ABSENT_LATE);
        any = true;
        while (list.length && knee_is_digit(list.at[0]))
            list = knee_slice_from(list, 1);
        while (list.length && strchr(", ", list.at[0]))
            list = knee_slice_from(list, 1);
    }
    return any;
}

static bool barrier_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    size_t end = knee_slice_find(line->text, " failed to pass monitoredBarrier"), start = end;
    if (end >= line->text.length)
        return false;
    while (start > 0 &&
           (knee_is_digit(line->text.at[start - 1]) || strchr(", ", line->text.at[start - 1])))
        start--;
    struct knee_slice list = {line->text.at + start, end - start};
    return each_rank(place, line, knee_slice_trim(list));
}

static bool stall_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    size_t at = knee_slice_find(line->text, "[missing ranks: ");
    if (at >= line->text.length)
        return knee_slice_has(line->text, "by subset of ranks and are waiting for remainder");
    return each_rank(place, line, knee_slice_from(line->text, at + 16));
}

/* JAX numbers its processes; each is a rank here. */
static bool task_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    int64_t task = knee_job_number(line->text, "/task:");
    if (knee_slice_has(line->text, "Barrier timed out")) {
        place->starting = knee_slice_has(line->text, "PjRT_Client_Connect") ||
                          knee_slice_has(line->text, "egister");
        return false;
    }
    if (task < 0)
        return false;
    if (knee_slice_starts(line->text, "/job:") && !knee_slice_has(line->text, " "))
        set_absent(place, line, task, place->starting ? KNEE_ABSENT_AT_START : KNEE_ABSENT_LATE);
    else if (knee_slice_has(line->text, "heartbeat timeout"))
        set_absent(place, line, task, KNEE_ABSENT_SILENT);
    else
        return false;
    return true;
}

bool knee_job_absence_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    return barrier_line(place, line) || stall_line(place, line) || task_line(place, line);
}

/* SPDX-License-Identifier: MIT */
/* What goes between the parts of an account, as bytes and back. */
#include "base/cursor.h"
#include "timeline/wire_format.h"
#include <string.h>

static const uint64_t task_mark = 0x31746b656566316b, outcome_mark = 0x316f6b656566316b;

/* ---- Tasks ---- */

enum { MEETING_BYTES = 4 + 8 + 1 };

/* The strip covers the rank's window, and nothing that is done with it leaves 64 bits. */
static void check_strip(struct knee_cursor *c, const struct knee_rank_brief *task,
                        const struct knee_rank_account *rank)
{
    int64_t part_ns = task->strip_part_ns;
    uint64_t length = (uint64_t)rank->end_ns - (uint64_t)task->strip_start_ns;
    knee_cursor_check(c, part_ns > 0 && part_ns < INT64_MAX / (KNEE_STRIP + 1) &&
                             task->strip_start_ns <= rank->start_ns && length <= INT64_MAX);
    knee_cursor_check(c, !c->bad && length / (uint64_t)part_ns <= KNEE_STRIP);
}

static void walk_task(struct knee_cursor *c, const struct knee_share *share)
{
    struct knee_rank_brief *task = share->task;
    void *meetings = task->meetings;
    KNEE_FIELD(c, task->strip_start_ns);
    KNEE_FIELD(c, task->strip_part_ns);
    KNEE_FIELD(c, task->settled_ns);
    knee_cursor_check(c, task->settled_ns >= 0);
    if (c->mode == KNEE_READ)
        check_strip(c, task, share->rank);
    knee_cursor_rows(c, &task->meeting_count, MEETING_BYTES, &meetings, sizeof *task->meetings);
    task->meetings = meetings;
    for (size_t i = 0; i < task->meeting_count; i++) {
        struct knee_meeting *meeting = &task->meetings[i];
        KNEE_FIELD(c, meeting->call);
        KNEE_FIELD(c, meeting->last_start_ns);
        meeting->partial = knee_cursor_small(c, meeting->partial, 2) != 0;
        knee_cursor_check(c, meeting->call < share->rank->source->call_count);
        meeting->call = c->bad ? 0 : meeting->call;
    }
}

/* ---- Outcomes ---- */

enum {
    LEDGER_BYTES = 8 * (KNEE_LABELS + 2),
    STEP_BYTES = LEDGER_BYTES + 2 * 8 + 1,
    STRETCH_BYTES = 1
};

/* Parts that are not negative and together not more than `left_ns`, which goes down. */
static void check_part(struct knee_cursor *c, int64_t part_ns, int64_t *left_ns)
{
    knee_cursor_check(c, part_ns >= 0 && part_ns <= *left_ns);
    *left_ns -= c->bad ? 0 : part_ns;
}

static void walk_ledger(struct knee_cursor *c, struct knee_ledger *ledger, int64_t longest_ns)
{
    KNEE_FIELD(c, ledger->label_ns);
    KNEE_FIELD(c, ledger->window_ns);
    KNEE_FIELD(c, ledger->comm_ns);
    if (c->mode != KNEE_READ)
        return;
    int64_t left = ledger->window_ns;
    knee_cursor_check(c, left >= 0 && left <= longest_ns);
    for (int label = 0; label < KNEE_LABELS; label++)
        check_part(c, ledger->label_ns[label], &left);
    knee_cursor_check(c, left == 0 && ledger->comm_ns >= -1 && ledger->comm_ns <= longest_ns);
}

static void walk_rank(struct knee_cursor *c, struct knee_rank_account *rank)
{
    uint64_t kernels = rank->kernels;
    int64_t window_ns = rank->end_ns - rank->start_ns;
    walk_ledger(c, &rank->ledger, window_ns);
    knee_cursor_check(c, rank->ledger.window_ns == window_ns);
    KNEE_FIELD(c, rank->waits_ns);
    KNEE_FIELD(c, rank->load_ns);
    KNEE_FIELD(c, rank->stepped_ns);
    KNEE_FIELD(c, kernels);
    KNEE_FIELD(c, rank->median_kernel_ns);
    rank->split = knee_cursor_small(c, rank->split, 2) != 0;
    rank->bounded = knee_cursor_small(c, rank->bounded, 2) != 0;
    if (c->mode != KNEE_READ)
        return;
    int64_t left = rank->ledger.label_ns[KNEE_WAIT];
    for (size_t i = 0; i < KNEE_STRIP; i++)
        check_part(c, rank->waits_ns[i], &left);
    knee_cursor_check(c, rank->load_ns >= 0 && rank->stepped_ns >= 0);
    knee_cursor_check_time(c, rank->median_kernel_ns);
    knee_cursor_check(c, kernels <= rank->source->work);
    rank->kernels = (size_t)kernels;
}

/* A step may begin before the rank's first kernel and end after its last one. */
static void walk_steps(struct knee_cursor *c, struct knee_outcome *outcome)
{
    void *steps = outcome->steps;
    outcome->step_source = (enum knee_step_source)knee_cursor_small(
        c, (unsigned)outcome->step_source, KNEE_STEPS_NONE + 1);
    knee_cursor_rows(c, &outcome->step_count, STEP_BYTES, &steps, sizeof *outcome->steps);
    outcome->steps = steps;
    for (size_t i = 0; i < outcome->step_count; i++) {
        struct knee_step_account *step = &outcome->steps[i];
        KNEE_FIELD(c, step->number);
        KNEE_FIELD(c, step->start_ns);
        step->complete = knee_cursor_small(c, step->complete, 2) != 0;
        walk_ledger(c, &step->ledger, INT64_MAX);
    }
}

static void walk_flag(struct knee_cursor *c, bool *flag)
{
    *flag = knee_cursor_small(c, *flag, 2) != 0;
}

static void walk_count(struct knee_cursor *c, int64_t *count)
{
    KNEE_FIELD(c, *count);
    knee_cursor_check(c, *count >= 0);
}

static void walk_rank_facts(struct knee_cursor *c, struct knee_rank_facts *facts)
{
    for (int k = 0; k < KNEE_COPY_KINDS; k++) {
        walk_count(c, &facts->copies[k].count);
        walk_count(c, &facts->copies[k].total_ns);
        walk_count(c, &facts->copies[k].exposed_ns);
    }
    for (int k = 0; k < KNEE_KERNEL_KINDS; k++) {
        walk_count(c, &facts->kernels[k].count);
        walk_count(c, &facts->kernels[k].total_ns);
        walk_count(c, &facts->kernels[k].short_ns);
    }
    for (int p = 0; p < KNEE_SPENTS; p++)
        walk_count(c, &facts->spent_ns[p]);
    KNEE_FIELD(c, facts->gap_start_ns);
    knee_cursor_check_time(c, facts->gap_start_ns);
    walk_count(c, &facts->gap_ns);
    knee_cursor_check(c, facts->gap_ns <= KNEE_LONGEST_NS);
    facts->gap_label =
        (enum knee_label)knee_cursor_small(c, (unsigned)facts->gap_label, KNEE_LABELS);
    KNEE_FIELD(c, facts->gap_next);
    knee_cursor_check(c, memchr(facts->gap_next, '\0', sizeof facts->gap_next) != NULL);
    walk_count(c, &facts->cold_ns);
    walk_count(c, &facts->cold_window_ns);
    walk_flag(c, &facts->cold_compiles);
    walk_flag(c, &facts->cold_loads);
    walk_count(c, &facts->micro_batches);
    walk_flag(c, &facts->loads_ahead);
    walk_flag(c, &facts->torch);
    walk_flag(c, &facts->trains);
    walk_flag(c, &facts->serves);
    walk_flag(c, &facts->decodes);
    walk_flag(c, &facts->prefills);
}

static void walk_outcome(struct knee_cursor *c, const struct knee_share *share)
{
    struct knee_outcome *outcome = share->outcome;
    walk_rank(c, share->rank);
    walk_steps(c, outcome);
    walk_rank_facts(c, &share->rank->facts);
}

/* ---- Messages: the ranks one after the other ---- */

typedef void walk_fn(struct knee_cursor *c, const struct knee_share *share);

static void walk(struct knee_cursor *c, uint64_t mark, walk_fn *each,
                 const struct knee_share *shares, size_t count)
{
    knee_cursor_mark(c, mark);
    for (size_t i = 0; i < count; i++)
        each(c, &shares[i]);
}

static size_t pack(uint64_t mark, walk_fn *each, const struct knee_share *shares, size_t count,
                   unsigned char *out)
{
    struct knee_cursor c = {.mode = out ? KNEE_WRITE : KNEE_COUNT, .to = out};
    walk(&c, mark, each, shares, count);
    return c.at;
}

size_t knee_tasks_pack(const struct knee_share *shares, size_t count, unsigned char *out)
{
    return pack(task_mark, walk_task, shares, count, out);
}

knee_status knee_tasks_unpack(const unsigned char *bytes, size_t size,
                              const struct knee_share *shares, size_t count,
                              const struct knee_alloc *alloc, struct knee_err *err)
{
    struct knee_cursor c = {.mode = KNEE_READ, .from = bytes, .size = size, .alloc = alloc};
    walk(&c, task_mark, walk_task, shares, count);
    return knee_cursor_end(&c, "a task", err);
}

size_t knee_outcomes_pack(const struct knee_share *shares, size_t count, unsigned char *out)
{
    return pack(outcome_mark, walk_outcome, shares, count, out);
}

knee_status knee_outcomes_unpack(const unsigned char *bytes, size_t size,
                                 const struct knee_share *shares, size_t count,
                                 const struct knee_alloc *alloc, struct knee_err *err)
{
    struct knee_cursor c = {.mode = KNEE_READ, .from = bytes, .size = size, .alloc = alloc};
    walk(&c, outcome_mark, walk_outcome, shares, count);
    return knee_cursor_end(&c, "an outcome", err);
}

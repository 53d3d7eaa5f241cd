/* SPDX-License-Identifier: MIT */
/*
 * From traces to an account. The begin lists the ranks, matches their collectives and aligns their
 * clocks; then, rank by rank, every nanosecond is labelled and the window cut into steps; the end
 * sums up stragglers and collectives. account.h says what goes from one to the next.
 */
#include "timeline/account.h"

#include "base/error.h"
#include "base/order.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct knee_step knee_ledger_step(const struct knee_ledger *ledger, double steps)
{
    struct knee_step step = {.wall_s = 1e-9 * (double)ledger->window_ns / steps,
                             .comm_s = 1e-9 * (double)ledger->comm_ns / steps};
    for (int label = 0; label < KNEE_LABELS; label++)
        step.label_s[label] = 1e-9 * (double)ledger->label_ns[label] / steps;
    return step;
}

int64_t knee_ledger_exposed_ns(const struct knee_ledger *ledger)
{
    return ledger->label_ns[KNEE_TRANSFER] + ledger->label_ns[KNEE_WAIT];
}

double knee_ledger_ratio(const struct knee_ledger *ledger)
{
    int64_t compute = ledger->label_ns[KNEE_COMPUTE];
    return compute > 0 ? (double)knee_ledger_exposed_ns(ledger) / (double)compute : NAN;
}

double knee_ledger_efficiency(const struct knee_ledger *ledger)
{
    return 1 / (1 + knee_ledger_ratio(ledger));
}

double knee_ledger_overlap(const struct knee_ledger *ledger)
{
    if (ledger->comm_ns <= 0)
        return NAN;
    return (double)(ledger->comm_ns - knee_ledger_exposed_ns(ledger)) / (double)ledger->comm_ns;
}

static int by_rank(const void *left, const void *right)
{
    const struct knee_rank_account *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    const char *one = a->trace->file, *other = b->trace->file; /* NULL: sent without a name */
    return strcmp(one ? one : "", other ? other : "");
}

KNEE_BY_TWO(by_place, struct knee_rank_account, trace, source)

/* A file of one device is the rank that the file says; of several, each device is one. Files that
 * claim the same rank, or none, are numbered as they come. */
static void number_ranks(struct knee_account *account)
{
    bool usable = true;
    for (size_t i = 0; i < account->rank_count; i++) {
        struct knee_rank_account *rank = &account->ranks[i];
        bool alone = rank->trace->rank_count == 1;
        rank->rank = alone ? rank->trace->rank : rank->source->device;
        usable = usable && rank->rank >= 0;
    }
    qsort(account->ranks, account->rank_count, sizeof *account->ranks, by_rank);
    for (size_t i = 1; i < account->rank_count && usable; i++)
        usable = account->ranks[i].rank != account->ranks[i - 1].rank;
    if (usable)
        return;
    qsort(account->ranks, account->rank_count, sizeof *account->ranks, by_place);
    for (size_t i = 0; i < account->rank_count; i++)
        account->ranks[i].rank = (int64_t)i;
}

static bool list_ranks(struct knee_account *account, const struct knee_trace *traces, size_t count)
{
    size_t ranks = 0;
    for (size_t t = 0; t < count; t++)
        ranks += traces[t].rank_count;
    account->ranks = knee_zeroed(account->alloc, (ranks + 1) * sizeof *account->ranks);
    if (!account->ranks)
        return false;
    account->world_size = -1;
    for (size_t t = 0; t < count; t++) {
        if (traces[t].world_size > account->world_size)
            account->world_size = traces[t].world_size;
        for (size_t r = 0; r < traces[t].rank_count; r++) {
            struct knee_rank_account *rank = &account->ranks[account->rank_count];
            rank->trace = &traces[t];
            rank->source = &traces[t].ranks[r];
            rank->start_ns = rank->source->start_ns;
            rank->end_ns = rank->source->end_ns;
            rank->from_ns = rank->start_ns;
            rank->to_ns = rank->end_ns;
            account->rank_count += rank->source->work > 0;
        }
    }
    if (account->rank_count)
        number_ranks(account);
    return true;
}

/* Compute kernels and their median: many short ones are a sign of too little work. */
static bool measure_kernels(struct knee_rank_account *rank, const struct knee_alloc *alloc)
{
    size_t spans = rank->source->span_count, count = 0;
    double *took_ns = knee_resize(alloc, NULL, (spans + 1) * sizeof *took_ns);
    if (!took_ns)
        return false;
    for (size_t i = 0; i < spans; i++) {
        const struct knee_span *span = &rank->source->spans[i];
        if (span->kind == KNEE_SPAN_COMPUTE)
            took_ns[count++] = fmin(9e18, (double)(span->end_ns - span->start_ns));
    }
    rank->kernels = count;
    rank->median_kernel_ns = count ? (int64_t)knee_at_rank(took_ns, count, count / 2) : 0;
    knee_resize(alloc, took_ns, 0);
    return true;
}

static void sum_matches(struct knee_account *account, const struct knee_matches *m)
{
    size_t calls = 0, whole = 0;
    for (size_t r = 0; r < account->rank_count; r++)
        calls += account->ranks[r].source->call_count;
    for (size_t i = 0; i < m->instance_count; i++) {
        const struct knee_instance *instance = &m->instances[i];
        whole += instance->complete ? instance->count : 0;
        if (instance->rendezvous && instance->complete) {
            account->instances++;
            account->transfer_ns =
                knee_add_ns(account->transfer_ns, instance->last_end_ns - instance->last_start_ns);
        }
        account->partial += instance->rendezvous && !instance->complete;
        account->loose += instance->complete && !instance->rendezvous;
    }
    account->unmatched = calls - whole;
}

/* The promise of the whole thing, kept in every run and not only in tests. */
static bool labels_sum_up(const struct knee_ledger *ledger)
{
    int64_t sum = 0;
    for (int label = 0; label < KNEE_LABELS; label++)
        sum += ledger->label_ns[label];
    return sum == ledger->window_ns;
}

static bool all_labels_sum_up(const struct knee_account *account)
{
    bool good = true;
    for (size_t i = 0; i < account->rank_count; i++)
        good = good && labels_sum_up(&account->ranks[i].ledger);
    for (size_t i = 0; i < account->step_count; i++)
        good = good && labels_sum_up(&account->steps[i].ledger);
    return good;
}

/* ---- Begin ---- */

/* The common window, in parts, as each rank's clock shows it. */
static void share_strip(struct knee_account *account, struct knee_rank_brief *tasks)
{
    int64_t from = INT64_MAX, to = INT64_MIN;
    for (size_t r = 0; r < account->rank_count; r++) {
        int64_t start = knee_common_time(&account->ranks[r], account->ranks[r].start_ns);
        int64_t end = knee_common_time(&account->ranks[r], account->ranks[r].end_ns);
        from = start < from ? start : from;
        to = end > to ? end : to;
    }
    account->strip_part_ns = (to - from) / KNEE_STRIP + 1;
    for (size_t r = 0; r < account->rank_count; r++) {
        tasks[r].strip_start_ns = from - knee_common_time(&account->ranks[r], 0);
        tasks[r].strip_part_ns = account->strip_part_ns;
    }
}

/* Tells every rank which rendezvous it is in, and when the last member had come. */
static bool share_meetings(struct knee_account *account, struct knee_between *between)
{
    const struct knee_matches *m = &between->matches;
    for (size_t r = 0; r < account->rank_count; r++) {
        struct knee_rank_brief *task = &between->tasks[r];
        size_t size = (account->ranks[r].source->call_count + 1) * sizeof *task->meetings;
        task->meetings = knee_resize(between->alloc, NULL, size);
        if (!task->meetings)
            return false;
    }
    for (size_t i = 0; i < m->order_count; i++) {
        const struct knee_instance *instance = &m->instances[m->order[i].row];
        for (size_t k = instance->first; k < instance->first + instance->count; k++) {
            const struct knee_rank_account *rank = &account->ranks[m->members[k].rank];
            struct knee_rank_brief *task = &between->tasks[m->members[k].rank];
            task->meetings[task->meeting_count++] =
                (struct knee_meeting){m->members[k].call, !instance->complete,
                                      instance->last_start_ns - knee_common_time(rank, 0)};
        }
    }
    return true;
}

/* A send that ended before its receive began, and that receive, did not wait for each other. */
static void share_settled(const struct knee_account *account, struct knee_between *between)
{
    const struct knee_matches *m = &between->matches;
    for (size_t k = 0; k < m->member_count; k++) {
        const struct knee_rank *source = account->ranks[m->members[k].rank].source;
        const struct knee_call *call = &source->calls[m->members[k].call];
        const struct knee_span *span = &source->spans[call->span];
        int64_t *settled = &between->tasks[m->members[k].rank].settled_ns;
        const struct knee_instance *instance =
            &m->instances[m->instance_of[m->members[k].rank][m->members[k].call] - 1];
        if (instance->complete && !instance->rendezvous && call->op == KNEE_OP_SEND_RECV &&
            call->peer >= 0)
            *settled = knee_add_ns(*settled, span->end_ns - span->start_ns);
    }
}

static bool make_tasks(struct knee_account *account, struct knee_between *between)
{
    size_t ranks = account->rank_count;
    between->alloc = account->alloc;
    between->tasks = knee_zeroed(between->alloc, ranks * sizeof *between->tasks);
    between->outcomes = knee_zeroed(between->alloc, ranks * sizeof *between->outcomes);
    if (!between->tasks || !between->outcomes)
        return false;
    between->rank_count = ranks;
    share_strip(account, between->tasks);
    share_settled(account, between);
    return share_meetings(account, between);
}

/* Step numbers that no two ranks share are other steps, whatever their collectives look like. */
static bool has_other_steps(const struct knee_account *account)
{
    int64_t last_first = INT64_MIN, first_last = INT64_MAX;
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_trace *trace = account->ranks[r].trace;
        if (trace->first_step < 0 || trace->last_step < 0)
            return false;
        last_first = trace->first_step > last_first ? trace->first_step : last_first;
        first_last = trace->last_step < first_last ? trace->last_step : first_last;
    }
    return last_first > first_last;
}

static bool match_and_align(struct knee_account *account, struct knee_between *between)
{
    struct knee_matches *m = &between->matches;
    account->other_steps = has_other_steps(account);
    bool good = knee_match(account, m) && knee_align(account, m) && knee_match_times(account, m);
    if (good)
        sum_matches(account, m);
    return good && make_tasks(account, between);
}

static knee_status out_of_memory(struct knee_err *err)
{
    knee_fail(err, KNEE_SYSTEM, "", "out of memory for the account");
    return KNEE_SYSTEM;
}

knee_status knee_account_begin(const struct knee_trace *traces, size_t count,
                               const struct knee_alloc *alloc, struct knee_account *account,
                               struct knee_between *between, struct knee_err *err)
{
    memset(account, 0, sizeof *account);
    memset(between, 0, sizeof *between);
    account->alloc = alloc;
    bool good = list_ranks(account, traces, count);
    if (good && account->rank_count == 0) {
        knee_account_release(account);
        bool nsys = count > 0 && traces[0].format && strcmp(traces[0].format, "nsys") == 0;
        bool lost = count > 0 && traces[0].launch_calls > 0;
        bool torch = count > 0 && traces[0].operations;
        knee_fail(err, KNEE_INPUT, "", "no GPU work in %s%s",
                  count == 1 ? traces[0].file : "these traces",
                  lost    ? ": kernels were launched, but their records are missing"
                  : nsys  ? ""
                  : torch ? ": only the CPU is recorded"
                          : ": no event in it is a kernel or a copy on a GPU");
        knee_hint(err, "%s",
                  nsys && lost
                      ? "let the program end by itself, or record with another nsys version"
                  : nsys  ? "record with nsys profile -t cuda,nvtx"
                  : lost  ? "call torch.cuda.synchronize() before the profiler stops"
                  : torch ? "record with ProfilerActivity.CUDA"
                          : "record with torch.profiler, nsys, rocprofv3 or XProf");
        return KNEE_INPUT;
    }
    if (good && match_and_align(account, between))
        return KNEE_OK;
    knee_between_release(between);
    knee_account_release(account);
    return out_of_memory(err);
}

/* ---- One rank ---- */

bool knee_account_rank(struct knee_rank_account *rank, const struct knee_rank_brief *task,
                       const struct knee_alloc *alloc, struct knee_outcome *out)
{
    struct knee_cuts cuts;
    memset(out, 0, sizeof *out);
    bool good = knee_cut_steps(rank, alloc, &cuts) && knee_label_rank(rank, task, alloc) &&
                measure_kernels(rank, alloc) && knee_account_steps(rank, &cuts, alloc, out) &&
                knee_find_rank_facts(rank, out, alloc);
    knee_resize(alloc, cuts.list, 0);
    return good;
}

/* ---- End ---- */

static bool list_steps(struct knee_account *account, const struct knee_between *between)
{
    size_t count = 0;
    for (size_t r = 0; r < account->rank_count; r++)
        count += between->outcomes[r].step_count;
    account->steps = knee_resize(account->alloc, NULL, (count + 1) * sizeof *account->steps);
    for (size_t r = 0; r < account->rank_count && account->steps; r++)
        for (size_t i = 0; i < between->outcomes[r].step_count; i++) {
            struct knee_step_account *step = &account->steps[account->step_count++];
            *step = between->outcomes[r].steps[i];
            step->rank = r;
        }
    account->step_source = between->outcomes[0].step_source;
    return account->steps != NULL;
}

knee_status knee_account_end(struct knee_account *account, struct knee_between *between,
                             struct knee_err *err)
{
    bool good = list_steps(account, between) && knee_find_stragglers(account, &between->matches) &&
                knee_sum_collectives(account, &between->matches);
    knee_between_release(between);
    if (good && all_labels_sum_up(account))
        return KNEE_OK;
    knee_account_release(account);
    return good ? knee_fail(err, KNEE_SYSTEM, "",
                            "labels do not sum to the window: please report this trace")
                : out_of_memory(err);
}

knee_status knee_account(const struct knee_trace *traces, size_t count,
                         const struct knee_alloc *alloc, struct knee_account *out,
                         struct knee_err *err)
{
    struct knee_account account;
    struct knee_between between;
    knee_status status = knee_account_begin(traces, count, alloc, &account, &between, err);
    if (status)
        return status;
    bool good = true;
    for (size_t r = 0; r < account.rank_count && good; r++)
        good = knee_account_rank(&account.ranks[r], &between.tasks[r], alloc, &between.outcomes[r]);
    if (!good) {
        knee_between_release(&between);
        knee_account_release(&account);
        return out_of_memory(err);
    }
    status = knee_account_end(&account, &between, err);
    if (!status)
        *out = account;
    return status;
}

void knee_task_release(struct knee_rank_brief *task, const struct knee_alloc *alloc)
{
    knee_resize(alloc, task->meetings, 0);
    memset(task, 0, sizeof *task);
}

void knee_outcome_release(struct knee_outcome *outcome, const struct knee_alloc *alloc)
{
    knee_resize(alloc, outcome->steps, 0);
    memset(outcome, 0, sizeof *outcome);
}

void knee_between_release(struct knee_between *between)
{
    knee_matches_release(&between->matches);
    for (size_t r = 0; r < between->rank_count; r++) {
        knee_task_release(&between->tasks[r], between->alloc);
        knee_outcome_release(&between->outcomes[r], between->alloc);
    }
    knee_resize(between->alloc, between->tasks, 0);
    knee_resize(between->alloc, between->outcomes, 0);
    memset(between, 0, sizeof *between);
}

void knee_account_release(struct knee_account *account)
{
    const struct knee_alloc *alloc = account->alloc;
    for (size_t r = 0; r < account->rank_count; r++)
        knee_resize(alloc, account->ranks[r].runs, 0);
    void *const all[] = {account->ranks, account->steps, account->collectives, account->stragglers};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(alloc, all[i], 0);
    memset(account, 0, sizeof *account);
}

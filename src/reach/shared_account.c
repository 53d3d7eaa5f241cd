/* SPDX-License-Identifier: MIT */
/*
 * Rank 0 begins the account from what it knows of all ranks (calls and their times), sends every
 * process the tasks of the ranks whose spans it holds, does its own, gathers the outcomes and ends
 * the account. Spans never travel: tasks and outcomes grow with the calls.
 */
#include "reach/shared_account.h"

#include "timeline/wire_format.h"

#include <stdlib.h>
#include <string.h>

enum { TAG = 77, CHUNK_BYTES = 1 << 30 };

/* The run cannot go on. */
static _Noreturn void give_up(struct knee_runtime *rt, const char *why)
{
    rt->abort(rt, rt->fault[0] ? rt->fault : why);
    _Exit(KNEE_SYSTEM); /* not reached */
}

static const char no_memory[] = "out of memory for the account";

/* ---- A task list on its way: its size, then its bytes; 0 bytes: there is nothing to do ---- */

static bool send_bytes(struct knee_runtime *rt, const unsigned char *bytes, size_t size, int to)
{
    struct knee_request *request = NULL;
    uint64_t wide = size;
    bool good = rt->send_start(rt, &wide, sizeof wide, to, TAG, &request) && rt->wait(rt, &request);
    for (size_t at = 0; at < size && good; at += CHUNK_BYTES) {
        size_t now = size - at < CHUNK_BYTES ? size - at : CHUNK_BYTES;
        good = rt->send_start(rt, bytes + at, now, to, TAG, &request) && rt->wait(rt, &request);
    }
    return good;
}

static bool receive_bytes(struct knee_runtime *rt, unsigned char **bytes, size_t *size)
{
    struct knee_request *request = NULL;
    uint64_t wide = 0;
    bool good =
        rt->receive_start(rt, &wide, sizeof wide, 0, TAG, &request) && rt->wait(rt, &request);
    *size = (size_t)wide;
    *bytes = good ? malloc(*size + 1) : NULL;
    for (size_t at = 0; at < *size && *bytes && good; at += CHUNK_BYTES) {
        size_t now = *size - at < CHUNK_BYTES ? *size - at : CHUNK_BYTES;
        good = rt->receive_start(rt, *bytes + at, now, 0, TAG, &request) && rt->wait(rt, &request);
    }
    return good && *bytes;
}

/* ---- Where the spans are ---- */

static size_t ranks_with_work(const struct knee_trace *traces, size_t count)
{
    size_t ranks = 0;
    for (size_t t = 0; t < count; t++)
        for (size_t r = 0; r < traces[t].rank_count; r++)
            ranks += traces[t].ranks[r].work > 0;
    return ranks;
}

/* This process's own ranks, with room for their tasks and outcomes. */
struct own {
    struct knee_rank_account *ranks;
    struct knee_rank_brief *tasks;
    struct knee_outcome *outcomes;
    struct knee_share *shares;
    size_t count;
};

static bool list_own(const struct knee_trace *traces, size_t count, struct own *own)
{
    size_t room = ranks_with_work(traces, count) + 1;
    *own = (struct own){
        .ranks = calloc(room, sizeof *own->ranks),
        .tasks = calloc(room, sizeof *own->tasks),
        .outcomes = calloc(room, sizeof *own->outcomes),
        .shares = calloc(room, sizeof *own->shares),
    };
    if (!own->ranks || !own->tasks || !own->outcomes || !own->shares)
        return false;
    for (size_t t = 0; t < count; t++)
        for (size_t r = 0; r < traces[t].rank_count; r++) {
            const struct knee_rank *source = &traces[t].ranks[r];
            if (source->work == 0)
                continue;
            size_t n = own->count++;
            own->ranks[n] = (struct knee_rank_account){.trace = &traces[t],
                                                       .source = source,
                                                       .start_ns = source->start_ns,
                                                       .end_ns = source->end_ns};
            own->shares[n] = (struct knee_share){&own->ranks[n], &own->tasks[n], &own->outcomes[n]};
        }
    return true;
}

static void release_own(struct own *own)
{
    for (size_t i = 0; i < own->count; i++) {
        knee_task_release(&own->tasks[i], NULL);
        knee_outcome_release(&own->outcomes[i], NULL);
    }
    free(own->ranks);
    free(own->tasks);
    free(own->outcomes);
    free(own->shares);
}

/* One rank after the other; the runs are needed no more once they are summed. */
static bool work_on_own(struct own *own)
{
    bool good = true;
    for (size_t i = 0; i < own->count && good; i++) {
        good = knee_account_rank(&own->ranks[i], &own->tasks[i], NULL, &own->outcomes[i]);
        free(own->ranks[i].runs);
        own->ranks[i].runs = NULL;
    }
    return good;
}

static void serve(struct knee_runtime *rt, const struct knee_trace *traces, size_t count)
{
    struct own own;
    struct knee_err err = {0};
    unsigned char *bytes = NULL;
    size_t size = 0;
    if (!list_own(traces, count, &own) || !receive_bytes(rt, &bytes, &size))
        give_up(rt, no_memory);
    if (size) {
        if (knee_tasks_unpack(bytes, size, own.shares, own.count, NULL, &err))
            give_up(rt, err.what);
        free(bytes);
        if (!work_on_own(&own))
            give_up(rt, no_memory);
        size = knee_outcomes_pack(own.shares, own.count, NULL);
        bytes = malloc(size);
        if (!bytes)
            give_up(rt, no_memory);
        knee_outcomes_pack(own.shares, own.count, bytes);
        if (!rt->gather_bytes(rt, bytes, size, NULL, NULL))
            give_up(rt, "");
    }
    free(bytes);
    release_own(&own);
}

/* ---- Where the account is made ---- */

/* All ranks, those of one process together, in the order in which that process has them. */
struct spread {
    struct knee_share *shares;
    size_t *first; /* [processes + 1] */
};

static struct knee_share share_of(struct knee_account *account, struct knee_between *between,
                                  size_t row)
{
    return (struct knee_share){&account->ranks[row], &between->tasks[row], &between->outcomes[row]};
}

/* The rows of the account are by rank number: first back into the order of the traces. */
struct held {
    const struct knee_trace *traces;
    size_t count;
    const int *holders; /* [count], the process of each */
    int processes;
};

static bool list_spread(struct knee_account *account, struct knee_between *between,
                        const struct held *held, struct spread *out)
{
    const struct knee_trace *traces = held->traces;
    const int *holders = held->holders, processes = held->processes;
    size_t count = held->count;
    size_t ranks = 0, n = 0;
    size_t *first_of = calloc(count + 1, sizeof *first_of);
    for (size_t t = 0; t < count && first_of; t++) {
        first_of[t] = ranks;
        ranks += traces[t].rank_count;
    }
    size_t *row_of = calloc(ranks + 1, sizeof *row_of);
    *out = (struct spread){.shares = calloc(account->rank_count + 1, sizeof *out->shares),
                           .first = calloc((size_t)processes + 1, sizeof *out->first)};
    bool good = first_of && row_of && out->shares && out->first;
    for (size_t row = 0; row < account->rank_count && good; row++) {
        const struct knee_rank_account *rank = &account->ranks[row];
        row_of[first_of[rank->trace - traces] + (size_t)(rank->source - rank->trace->ranks)] = row;
    }
    for (int p = 0; p < processes && good; p++) {
        for (size_t t = 0; t < count; t++)
            for (size_t r = 0; r < traces[t].rank_count && holders[t] == p; r++)
                if (traces[t].ranks[r].work > 0)
                    out->shares[n++] = share_of(account, between, row_of[first_of[t] + r]);
        out->first[p + 1] = n;
    }
    free(first_of);
    free(row_of);
    return good;
}

static bool send_tasks(struct knee_runtime *rt, const struct spread *spread)
{
    bool good = true;
    for (int p = 1; p < rt->size && good; p++) {
        const struct knee_share *shares = spread->shares + spread->first[p];
        size_t count = spread->first[p + 1] - spread->first[p];
        size_t size = knee_tasks_pack(shares, count, NULL);
        unsigned char *bytes = malloc(size);
        if (bytes)
            knee_tasks_pack(shares, count, bytes);
        good = bytes && send_bytes(rt, bytes, size, p);
        free(bytes);
    }
    return good;
}

static knee_status take_outcomes(struct knee_runtime *rt, const struct spread *spread,
                                 struct knee_err *err)
{
    void *all = NULL;
    size_t at = 0, *sizes = calloc((size_t)rt->size, sizeof *sizes);
    if (!sizes || !rt->gather_bytes(rt, NULL, 0, &all, sizes))
        give_up(rt, no_memory);
    knee_status status = KNEE_OK;
    for (int p = 1; p < rt->size && !status; p++) {
        status = knee_outcomes_unpack((const unsigned char *)all + at, sizes[p],
                                      spread->shares + spread->first[p],
                                      spread->first[p + 1] - spread->first[p], NULL, err);
        at += sizes[p];
    }
    free(sizes);
    free(all);
    return status;
}

/* Between the begin and the end: every rank's task becomes its outcome, wherever its spans are. */
static void work_everywhere(struct knee_runtime *rt, const struct spread *spread)
{
    struct knee_err err = {0};
    if (!send_tasks(rt, spread))
        give_up(rt, no_memory);
    for (size_t i = 0; i < spread->first[1]; i++) {
        const struct knee_share *share = &spread->shares[i];
        if (!knee_account_rank(share->rank, share->task, NULL, share->outcome))
            give_up(rt, no_memory);
    }
    if (take_outcomes(rt, spread, &err))
        give_up(rt, err.what);
}

static knee_status lead(struct knee_runtime *rt, const struct knee_trace *traces, size_t count,
                        const int *holders, struct knee_account *out, struct knee_err *err)
{
    struct knee_account account;
    struct knee_between between;
    struct spread spread;
    knee_status status = knee_account_begin(traces, count, NULL, &account, &between, err);
    if (status) {
        for (int p = 1; p < rt->size; p++)
            if (!send_bytes(rt, NULL, 0, p))
                give_up(rt, "");
        return status;
    }
    if (!list_spread(&account, &between, &(struct held){traces, count, holders, rt->size}, &spread))
        give_up(rt, no_memory);
    work_everywhere(rt, &spread);
    free(spread.shares);
    free(spread.first);
    status = knee_account_end(&account, &between, err);
    if (!status)
        *out = account;
    return status;
}

knee_status knee_account_over(struct knee_runtime *rt, const struct knee_trace *traces,
                              size_t count, const int *holders, struct knee_account *out,
                              struct knee_err *err)
{
    memset(out, 0, sizeof *out);
    if (rt->rank == 0)
        return lead(rt, traces, count, holders, out, err);
    serve(rt, traces, count);
    return KNEE_OK;
}

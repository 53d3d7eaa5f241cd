/* SPDX-License-Identifier: MIT */
/* Collectives by kind: how many, how large, how long on the wire, how long waiting, which axis. */
#include "base/map.h"
#include "base/order.h"
#include "timeline/account.h"

#include "base/sort.h"
#include "base/text.h"
#include "timeline/kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *name_at(const struct knee_trace *trace, uint32_t row_plus_one)
{
    return row_plus_one ? trace->names[row_plus_one - 1] : "";
}

/* Sums behind the means of an account row. */
struct sums {
    int64_t duration_ns, transfer_ns, wait_ns, shortest_ns;
    size_t waits;
};

enum { MOST_KINDS = 4096 };

struct table {
    struct knee_collective_account *rows;
    struct sums *sums;
    size_t count;
    size_t further; /* calls of kinds that no row was left for */
    struct knee_map kinds;
    struct timed *timed; /* of one rank alone, by call; else NULL */
};

/* How long a call took, and the row of its kind. */
struct timed {
    size_t row;
    int64_t duration_ns;
};

/* The row of a call's kind; past a few thousand kinds the last one takes the rest. */
static size_t row_of(struct table *t, const struct knee_rank_account *rank,
                     const struct knee_call *call)
{
    const char *group = name_at(rank->trace, call->group);
    const int64_t numbers[] = {call->op, call->bytes, call->group_size};
    knee_map_part(&t->kinds, numbers, sizeof numbers);
    knee_map_part(&t->kinds, call->algorithm, strlen(call->algorithm) + 1);
    knee_map_part(&t->kinds, call->protocol, strlen(call->protocol) + 1);
    size_t row = knee_map_add(&t->kinds, group, strlen(group));
    if (row < t->count)
        return row;
    if (t->count == MOST_KINDS || t->kinds.failed) {
        t->further++;
        return MOST_KINDS - 1;
    }
    t->sums[t->count] = (struct sums){.shortest_ns = INT64_MAX};
    t->rows[t->count] = (struct knee_collective_account){
        .op = call->op,
        .algorithm = call->algorithm,
        .protocol = call->protocol,
        .dtype = call->dtype,
        .group = group,
        .description = name_at(rank->trace, call->description),
        .axis = "",
        .bytes = call->bytes,
        .group_size = call->group_size,
    };
    return t->count++;
}

static void add_call(const struct knee_account *account, const struct knee_matches *m, size_t r,
                     size_t c, struct table *t)
{
    const struct knee_rank_account *rank = &account->ranks[r];
    const struct knee_call *call = &rank->source->calls[c];
    const struct knee_span *span = &rank->source->spans[call->span];
    size_t row = row_of(t, rank, call);
    if (t->kinds.failed)
        return;
    struct sums *sums = &t->sums[row];
    int64_t duration = span->end_ns - span->start_ns;
    t->rows[row].calls++;
    if (t->timed)
        t->timed[c] = (struct timed){row, duration};
    sums->duration_ns = knee_add_ns(sums->duration_ns, duration);
    sums->shortest_ns = duration < sums->shortest_ns ? duration : sums->shortest_ns;
    uint32_t found = m->instance_of[r][c];
    const struct knee_instance *instance = found ? &m->instances[found - 1] : NULL;
    if (!instance || !instance->complete || !instance->rendezvous)
        return;
    int64_t wait = instance->last_start_ns - knee_common_time(rank, span->start_ns);
    sums->wait_ns = knee_add_ns(sums->wait_ns, wait < duration ? wait : duration);
    sums->waits++;
    if (m->members[instance->first].rank == r) { /* once per instance */
        t->rows[row].matched++;
        sums->transfer_ns =
            knee_add_ns(sums->transfer_ns, instance->last_end_ns - instance->last_start_ns);
    }
}

/* Words of group descriptions, as frameworks write them. */
static const struct {
    const char *word, *axis;
} described[] = {
    {"fsdp", "FSDP"}, {"shard", "FSDP"}, {"tensor", "TP"},    {"_tp", "TP"},    {"tp_", "TP"},
    {"pipe", "PP"},   {"_pp", "PP"},     {"pp_", "PP"},       {"expert", "EP"}, {"_ep", "EP"},
    {"ep_", "EP"},    {"context", "CP"}, {"_cp", "CP"},       {"cp_", "CP"},    {"data", "DP"},
    {"_dp", "DP"},    {"dp_", "DP"},     {"replicate", "DP"},
};

/* By the group's description, else by what such operations are used for. `often`: calls of this
 * kind per rank and step. Activations are reduced often, all of one size, inside a node; gradients
 * seldom. */
static const char *axis_of(const struct knee_collective_account *row, bool gathers, double often,
                           int64_t world)
{
    for (size_t i = 0; i < sizeof described / sizeof *described; i++)
        if (knee_has_word(row->description, described[i].word))
            return described[i].axis;
    int64_t members = row->group_size > 0 ? row->group_size : world;
    switch (row->op) {
    case KNEE_OP_SEND_RECV: return "PP";
    case KNEE_OP_ALL_TO_ALL:
    case KNEE_OP_ALL_TO_ALLV: return "EP";
    case KNEE_OP_ALL_GATHER:
    case KNEE_OP_REDUCE_SCATTER: return gathers ? "FSDP" : "";
    case KNEE_OP_ALL_REDUCE: return often >= 32 && members <= 8 ? "TP" : "DP";
    default: return "";
    }
}

static void name_axes(struct table *t, const struct knee_account *account)
{
    bool gather = false, scatter = false;
    size_t steps = 0;
    for (size_t i = 0; i < account->step_count; i++)
        steps += account->steps[i].number >= 0;
    for (size_t i = 0; i < t->count; i++) {
        gather = gather || t->rows[i].op == KNEE_OP_ALL_GATHER;
        scatter = scatter || t->rows[i].op == KNEE_OP_REDUCE_SCATTER;
    }
    for (size_t i = 0; i < t->count; i++)
        t->rows[i].axis =
            axis_of(&t->rows[i], gather && scatter,
                    (double)t->rows[i].calls / (double)(steps ? steps : 1), account->world_size);
}

static void take_means(struct table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        struct knee_collective_account *row = &t->rows[i];
        const struct sums *sums = &t->sums[i];
        row->duration_s = 1e-9 * (double)sums->duration_ns / (double)row->calls;
        row->transfer_s =
            row->matched ? 1e-9 * (double)sums->transfer_ns / (double)row->matched : NAN;
        row->wait_s = sums->waits ? 1e-9 * (double)sums->wait_ns / (double)sums->waits : NAN;
        double time = row->matched ? row->transfer_s : 1e-9 * (double)sums->shortest_ns;
        row->quick_s = time;
        double factor = row->group_size > 0 ? knee_op_bus_factor(row->op, row->group_size) : NAN;
        row->expected_s = NAN;
        row->bus_bytes_per_s =
            row->bytes > 0 && time > 0 ? factor * (double)row->bytes / time : NAN;
    }
}

KNEE_BY_TWO(by_row_and_duration, struct timed, row, duration_ns)

/* One rank alone: its fastest call may have found the data of the other ranks already there, and be
 * shorter than the wire allows. So the lower quartile is used. */
static void take_quick(struct table *t, size_t calls)
{
    qsort(t->timed, calls, sizeof *t->timed, by_row_and_duration);
    for (size_t i = 0, next; i < calls; i = next) {
        for (next = i; next < calls && t->timed[next].row == t->timed[i].row; next++)
            ;
        size_t quartile = i + (next - i) / 4;
        t->rows[t->timed[i].row].quick_s = 1e-9 * (double)t->timed[quartile].duration_ns;
    }
}

static int most_time_first(const void *left, const void *right)
{
    const struct knee_collective_account *a = left, *b = right;
    double x = a->duration_s * (double)a->calls, y = b->duration_s * (double)b->calls;
    if (x != y)
        return x < y ? 1 : -1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->group, b->group);
}

bool knee_sum_collectives(struct knee_account *account, const struct knee_matches *m)
{
    const struct knee_alloc *alloc = account->alloc;
    size_t calls = 0;
    for (size_t r = 0; r < account->rank_count; r++)
        calls += account->ranks[r].source->call_count;
    if (calls == 0)
        return true;
    size_t most = calls < MOST_KINDS ? calls : MOST_KINDS;
    bool alone = account->rank_count == 1;
    struct table t = {
        .rows = knee_resize(alloc, NULL, most * sizeof *t.rows),
        .sums = knee_resize(alloc, NULL, most * sizeof *t.sums),
        .kinds = {.alloc = alloc},
        .timed = alone ? knee_resize(alloc, NULL, calls * sizeof *t.timed) : NULL,
    };
    bool good = t.rows && t.sums && (t.timed || !alone);
    if (good) {
        for (size_t r = 0; r < account->rank_count; r++)
            for (size_t c = 0; c < account->ranks[r].source->call_count; c++)
                add_call(account, m, r, c, &t);
        good = !t.kinds.failed;
    }
    if (good) {
        name_axes(&t, account);
        take_means(&t);
        if (alone)
            take_quick(&t, calls);
        qsort(t.rows, t.count, sizeof *t.rows, most_time_first);
        account->collectives = t.rows;
        account->collective_count = t.count;
        account->further = t.further;
    } else {
        knee_resize(alloc, t.rows, 0);
    }
    knee_resize(alloc, t.sums, 0);
    knee_map_release(&t.kinds);
    knee_resize(alloc, t.timed, 0);
    return good;
}

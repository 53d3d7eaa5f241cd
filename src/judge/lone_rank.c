/* SPDX-License-Identifier: MIT */
/*
 * One rank of many: how much of its collectives is waiting. Alone, a call that lasts long may wait
 * for another rank or be slow on the wire. But what a message takes on the wire cannot be more than
 * the same or a larger one took at other places of the same recording: the difference is waiting.
 * It is the least that can be, for the quick calls may have waited too.
 */
#include "base/order.h"
#include "base/text.h"
#include "judge/judge.h"
#include "timeline/account.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A call that takes this many times the fastest call of its size was waiting: contention adds less.
 */
#define WAITED 1.5
/* A transport with calls as quick as this does not go through sockets. */
#define QUICK_S 20e-6

static double call_s(const struct knee_rank *rank, const struct knee_call *call)
{
    const struct knee_span *span = &rank->spans[call->span];
    return 1e-9 * (double)(span->end_ns - span->start_ns);
}

static bool same_kind(const struct knee_call *a, const struct knee_call *b)
{
    return a->op == b->op && a->bytes == b->bytes && a->group == b->group &&
           a->group_size == b->group_size;
}

/* What each member of a group sends at least, whatever the algorithm. */
static double traffic(enum knee_op op, int32_t group_size, int64_t bytes)
{
    double factor = group_size > 1 ? knee_op_bus_factor(op, group_size) : 1;
    return (factor > 0 ? factor : 1) * (double)bytes;
}

/* Small messages may fit into buffers, so that only half the size or more is compared; another
 * operation only where it carries much more, whatever its algorithm. */
#define COMPARABLE 0.5
#define MUCH_MORE  4

/* A kind of collective whose size is known. Kinds stand in the order of what is sent. */
struct knee_wire_kind {
    const struct knee_collective_account *kind;
    double sent, quick_s;
    double least_s; /* the least quick_s of this kind and of all that send more */
};
KNEE_BY(by_sent, struct knee_wire_kind, sent)

bool knee_wire_init(struct knee_wire *wire, const struct knee_account *account)
{
    size_t most = account->collective_count + 1;
    wire->count = 0;
    wire->kinds = knee_resize(account->alloc, NULL, most * sizeof *wire->kinds);
    for (size_t i = 0; wire->kinds && i < account->collective_count; i++) {
        const struct knee_collective_account *c = &account->collectives[i];
        if (c->bytes > 0 && !isnan(c->quick_s))
            wire->kinds[wire->count++] = (struct knee_wire_kind){
                c, traffic(c->op, c->group_size, c->bytes), c->quick_s, c->quick_s};
    }
    if (wire->count)
        qsort(wire->kinds, wire->count, sizeof *wire->kinds, by_sent);
    for (size_t i = wire->count; i-- > 1;)
        wire->kinds[i - 1].least_s = fmin(wire->kinds[i - 1].least_s, wire->kinds[i].least_s);
    return wire->kinds != NULL;
}

/* What bounds the time of a message on the wire, and the kind that took it. */
struct bound {
    double time_s;
    const struct knee_collective_account *kind; /* NULL: none */
};

/* The most that a message takes on the wire of a group: no longer than a larger one there, and in
 * proportion no longer than a smaller one (that has the latency in it). */
static struct bound bound_of(const struct knee_wire *wire, const char *group, enum knee_op op,
                             int32_t group_size, int64_t bytes)
{
    struct bound least = {INFINITY, NULL};
    double sent = traffic(op, group_size, bytes);
    size_t i;
    KNEE_BISECT(i, wire->count, wire->kinds[i].sent < COMPARABLE * sent);
    for (; i < wire->count && wire->kinds[i].least_s <= least.time_s; i++) {
        if (wire->kinds[i].quick_s > least.time_s)
            continue; /* in proportion it is not less */
        const struct knee_collective_account *c = wire->kinds[i].kind;
        double other = wire->kinds[i].sent;
        double time = c->quick_s * (sent > other ? sent / other : 1);
        bool less = time < least.time_s || (time == least.time_s && c < least.kind);
        if (less && (c->op == op || other >= MUCH_MORE * sent) && strcmp(c->group, group) == 0)
            least = (struct bound){time, c};
    }
    return least;
}

double knee_quickest_s(const struct knee_collective_account *c)
{
    return c->bytes > 0 && c->bus_bytes_per_s > 0
               ? knee_op_bus_factor(c->op, c->group_size) * (double)c->bytes / c->bus_bytes_per_s
               : NAN;
}

double knee_wire_bound_s(const struct knee_wire *wire, const struct knee_collective_account *c)
{
    struct bound bound = bound_of(wire, c->group, c->op, c->group_size, c->bytes);
    return isfinite(bound.time_s) ? bound.time_s : NAN;
}

bool knee_has_quick_calls(const struct knee_account *account)
{
    for (size_t i = 0; i < account->collective_count; i++)
        if (account->collectives[i].op >= KNEE_OP_ALL_REDUCE &&
            account->collectives[i].group_size > 1 &&
            knee_quickest_s(&account->collectives[i]) < QUICK_S)
            return true;
    return false;
}

static void find_wait(const struct knee_account *account, const struct knee_wire *wire,
                      struct knee_diagnosis *d)
{
    const struct knee_rank *rank = account->ranks[0].source;
    const struct knee_trace *trace = account->ranks[0].trace;
    const struct knee_call *last = NULL;
    double steps = knee_complete_steps(account, 0), most = 0;
    struct bound bound = {NAN, NULL};
    for (size_t i = 0; i < rank->call_count; i++) {
        const struct knee_call *call = &rank->calls[i];
        if (call->bytes <= 0 ||
            !knee_in_complete_step(account, 0, rank->spans[call->span].start_ns))
            continue;
        if (!last || !same_kind(last, call))
            bound = bound_of(wire, call->group ? trace->names[call->group - 1] : "", call->op,
                             call->group_size, call->bytes);
        last = call;
        double took = call_s(rank, call);
        if (!bound.kind || !(took > WAITED * bound.time_s))
            continue;
        d->lone.least_s += (took - bound.time_s) / steps;
        if (took - bound.time_s > most) {
            most = took - bound.time_s;
            d->lone.bytes = call->bytes;
            d->lone.long_s = took;
            d->lone.short_s = bound.time_s;
            d->lone.short_bytes = bound.kind->bytes;
        }
    }
    d->lone.least_s = fmin(d->lone.least_s, d->step.label_s[KNEE_TRANSFER]);
}

bool knee_find_lone_wait(const struct knee_account *account, struct knee_diagnosis *d)
{
    struct knee_wire wire;
    if (account->rank_count != 1)
        return true;
    bool good = knee_wire_init(&wire, account);
    if (good)
        find_wait(account, &wire, d);
    knee_resize(account->alloc, wire.kinds, 0);
    return good;
}

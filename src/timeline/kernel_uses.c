/* SPDX-License-Identifier: MIT */
/*
 * Kernels and copies by name (and number of blocks, so that another shape is another row): how
 * often, how long, how much of the step is theirs, and how long the same kernel takes with a
 * collective beside it and without.
 */
#include "timeline/where.h"

#include "base/hash.h"
#include "base/order.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct interval {
    int64_t start_ns, end_ns;
};

/* One call: the same row and place in the order of a step is the same work. */
struct sample {
    uint32_t row, order;
    float seconds;
    bool beside;
};

struct table {
    struct knee_kernel_use *rows;
    struct sample *samples; /* of all spans */
    size_t sample_count;
    uint32_t turns;
    uint64_t *hashes;
    size_t count, capacity;
    uint32_t *slots; /* row + 1 */
    size_t slot_count;
    const struct knee_alloc *alloc;
    bool failed;
};

static bool grow(struct table *t)
{
    size_t capacity = t->capacity ? 2 * t->capacity : 256, slots = 4 * capacity;
    struct knee_kernel_use *rows = knee_resize(t->alloc, t->rows, capacity * sizeof *rows);
    t->rows = rows ? rows : t->rows;
    uint64_t *hashes = knee_resize(t->alloc, t->hashes, capacity * sizeof *hashes);
    t->hashes = hashes ? hashes : t->hashes;
    uint32_t *places = knee_resize(t->alloc, t->slots, slots * sizeof *places);
    t->slots = places ? places : t->slots;
    if (!rows || !hashes || !places) {
        t->failed = true;
        return false;
    }
    t->capacity = capacity;
    t->slot_count = slots;
    memset(t->slots, 0, slots * sizeof *t->slots);
    for (uint32_t i = 0; i < t->count; i++) {
        size_t at = (size_t)(t->hashes[i] & (slots - 1));
        while (t->slots[at])
            at = (at + 1) & (slots - 1);
        t->slots[at] = i + 1;
    }
    return true;
}

/* The row of a name and a number of blocks; NULL: no memory. */
static struct knee_kernel_use *row_of(struct table *t, const char *name, uint64_t hash,
                                      int64_t blocks)
{
    uint64_t both[] = {hash, (uint64_t)blocks};
    hash = knee_keyed(knee_hash_key_for(t), both, sizeof both);
    if (t->failed || (t->count == t->capacity && !grow(t)))
        return NULL;
    size_t at = (size_t)(hash & (t->slot_count - 1));
    for (; t->slots[at]; at = (at + 1) & (t->slot_count - 1)) {
        struct knee_kernel_use *row = &t->rows[t->slots[at] - 1];
        if (t->hashes[t->slots[at] - 1] == hash && row->blocks == blocks &&
            strcmp(row->name, name) == 0)
            return row;
    }
    t->rows[t->count] = (struct knee_kernel_use){.name = name, .blocks = blocks};
    t->hashes[t->count++] = hash;
    t->slots[at] = (uint32_t)t->count;
    return &t->rows[t->count - 1];
}

/* Communication of a rank as disjoint intervals. */
static size_t comm_of(const struct knee_rank *source, struct interval *out)
{
    size_t count = 0;
    for (size_t c = 0; c < source->call_count; c++) {
        const struct knee_span *span = &source->spans[source->calls[c].span];
        if (count && span->start_ns <= out[count - 1].end_ns) {
            if (span->end_ns > out[count - 1].end_ns)
                out[count - 1].end_ns = span->end_ns;
        } else {
            out[count++] = (struct interval){span->start_ns, span->end_ns};
        }
    }
    return count;
}

/* How much of a span lies beside communication; *at moves on with the spans' starts. */
static int64_t beside_ns(const struct knee_span *span, const struct interval *comm, size_t count,
                         size_t *at)
{
    int64_t sum = 0;
    while (*at < count && comm[*at].end_ns <= span->start_ns)
        ++*at;
    for (size_t i = *at; i < count && comm[i].start_ns < span->end_ns; i++) {
        int64_t from = comm[i].start_ns > span->start_ns ? comm[i].start_ns : span->start_ns;
        int64_t to = comm[i].end_ns < span->end_ns ? comm[i].end_ns : span->end_ns;
        sum += to - from;
    }
    return sum;
}

static int64_t blocks_of(const struct knee_trace *trace, uint32_t launch)
{
    size_t low;
    KNEE_BISECT(low, trace->grid_count, trace->grids[low].launch < launch);
    bool found = launch && low < trace->grid_count && trace->grids[low].launch == launch;
    bool several = found && low + 1 < trace->grid_count && trace->grids[low + 1].launch == launch;
    return found && !several ? trace->grids[low].blocks : -1;
}

static double bytes_of(const struct knee_trace *trace, uint32_t launch)
{
    size_t low;
    KNEE_BISECT(low, trace->copy_count, trace->copies[low].launch < launch);
    bool found = launch && low < trace->copy_count && trace->copies[low].launch == launch;
    return found ? (double)trace->copies[low].bytes : NAN;
}

/* What lasts for a rank while its spans are added. */
struct rank_walk {
    const struct knee_account *account;
    size_t rank, comm_at, comm_count;
    const struct interval *comm;
    const uint64_t *hashes; /* of the trace's names */
    const struct knee_step_account *step;
    uint32_t turn; /* grows with each step of each rank */
    double each;   /* 1 / (ranks x steps) */
};

static void add_span(struct table *t, struct rank_walk *w, const struct knee_span *span,
                     const int64_t *own)
{
    const struct knee_trace *trace = w->account->ranks[w->rank].trace;
    bool copy = span->kind == KNEE_SPAN_COPY;
    int64_t beside = beside_ns(span, w->comm, w->comm_count, &w->comm_at);
    if (!knee_in_complete_step(w->account, w->rank, span->start_ns))
        return;
    struct knee_kernel_use *row = row_of(t, trace->names[span->name], w->hashes[span->name],
                                         copy ? -1 : blocks_of(trace, span->launch));
    if (!row)
        return;
    double seconds = 1e-9 * (double)(span->end_ns - span->start_ns);
    const struct knee_step_account *step = knee_step_at(w->account, w->rank, span->start_ns);
    w->turn += step != w->step;
    w->step = step;
    row->order = row->turn == w->turn ? row->order + 1 : 0;
    row->turn = w->turn;
    row->kind = span->kind;
    row->calls += w->each;
    row->total_s += w->each * seconds;
    row->exposed_s += w->each * 1e-9 * (double)own[copy ? KNEE_COPY : KNEE_COMPUTE];
    row->bytes += copy ? w->each * bytes_of(trace, span->launch) : 0;
    if (beside == 0 || 2 * beside > span->end_ns - span->start_ns)
        t->samples[t->sample_count++] =
            (struct sample){(uint32_t)(row - t->rows), row->order, (float)seconds, beside > 0};
}

static void add_products(struct table *t, const struct rank_walk *w)
{
    const struct knee_rank_account *rank = &w->account->ranks[w->rank];
    for (size_t i = 0; i < rank->trace->product_count; i++) {
        const struct knee_product *p = &rank->trace->products[i];
        if (!p->kernel || p->device != rank->source->device ||
            !knee_in_complete_step(w->account, w->rank, p->first_ns))
            continue;
        struct knee_kernel_use *row =
            row_of(t, rank->trace->names[p->kernel - 1], w->hashes[p->kernel - 1],
                   blocks_of(rank->trace, p->launch));
        if (!row)
            return;
        row->flops += w->each * knee_product_flops(p);
        row->flops_s += w->each * 1e-9 * (double)p->kernel_ns;
    }
}

static void add_rank(struct table *t, const struct knee_account *account, size_t r,
                     const knee_own_row *own)
{
    const struct knee_rank_account *rank = &account->ranks[r];
    const struct knee_rank *source = rank->source;
    size_t names = rank->trace->name_count;
    uint64_t *hashes = knee_resize(t->alloc, NULL, (names + 1) * sizeof *hashes);
    struct interval *comm = knee_resize(t->alloc, NULL, (source->call_count + 1) * sizeof *comm);
    t->failed = t->failed || !hashes || !comm;
    for (size_t i = 0; i < names && hashes; i++)
        hashes[i] =
            knee_keyed(knee_hash_key_for(t), rank->trace->names[i], strlen(rank->trace->names[i]));
    struct rank_walk w = {
        .account = account, .rank = r, .comm = comm, .hashes = hashes, .turn = t->turns + 1};
    w.each = 1 / ((double)account->rank_count * knee_complete_steps(account, r));
    w.comm_count = comm ? comm_of(source, comm) : 0;
    for (size_t i = 0; i < source->span_count && !t->failed; i++)
        if (source->spans[i].kind != KNEE_SPAN_COMM)
            add_span(t, &w, &source->spans[i], own[i]);
    t->turns = w.turn;
    if (!t->failed)
        add_products(t, &w);
    knee_resize(t->alloc, hashes, 0);
    knee_resize(t->alloc, comm, 0);
}

KNEE_BY_TWO(by_place, struct sample, row, order)

/* The same work in other steps and on other ranks, sometimes with communication beside it and
 * sometimes without: means over the places where both were seen. */
static void compare_beside(struct table *t)
{
    if (t->sample_count)
        qsort(t->samples, t->sample_count, sizeof *t->samples, by_place);
    for (size_t i = 0, from; i < t->sample_count;) {
        double seconds[2] = {0}, calls[2] = {0};
        for (from = i; i < t->sample_count && by_place(&t->samples[from], &t->samples[i]) == 0;
             i++) {
            seconds[t->samples[i].beside] += (double)t->samples[i].seconds;
            calls[t->samples[i].beside]++;
        }
        struct knee_kernel_use *row = &t->rows[t->samples[from].row];
        if (calls[0] > 0 && calls[1] > 0) {
            row->places++;
            row->alone_s += seconds[0] / calls[0];
            row->beside_s += seconds[1] / calls[1];
        }
    }
    for (size_t i = 0; i < t->count; i++) {
        double places = t->rows[i].places ? (double)t->rows[i].places : NAN;
        t->rows[i].alone_s /= places;
        t->rows[i].beside_s /= places;
    }
}

static int most_first(const void *left, const void *right)
{
    const struct knee_kernel_use *a = left, *b = right;
    if (a->total_s != b->total_s)
        return a->total_s < b->total_s ? 1 : -1;
    int names = strcmp(a->name, b->name);
    return names ? names : (a->blocks > b->blocks) - (a->blocks < b->blocks);
}

bool knee_find_kernel_uses(const struct knee_account *account, knee_own_row *const *own,
                           struct knee_where *out)
{
    struct table t = {.alloc = out->alloc};
    size_t spans = 0;
    for (size_t r = 0; r < account->rank_count; r++)
        spans += account->ranks[r].source->span_count;
    t.samples = knee_resize(t.alloc, NULL, (spans + 1) * sizeof *t.samples);
    t.failed = !t.samples;
    for (size_t r = 0; r < account->rank_count && !t.failed; r++)
        add_rank(&t, account, r, own[r]);
    if (!t.failed)
        compare_beside(&t);
    knee_resize(t.alloc, t.samples, 0);
    if (t.count)
        qsort(t.rows, t.count, sizeof *t.rows, most_first);
    knee_resize(t.alloc, t.hashes, 0);
    knee_resize(t.alloc, t.slots, 0);
    out->kernels = t.rows;
    out->kernel_count = t.count;
    return !t.failed;
}

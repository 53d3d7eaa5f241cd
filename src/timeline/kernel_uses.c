/* SPDX-License-Identifier: MIT */
/*
 * Kernels and copies by name (and number of blocks, so that another shape is another row): how
 * often, how long, how much of the step is theirs, and how long the same kernel takes with a
 * collective beside it and without.
 */
#include "timeline/where.h"

#include "base/map.h"
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
    struct knee_map names, uses; /* uses: rows of struct knee_kernel_use */
    struct sample *samples;      /* of all spans */
    size_t sample_count;
    uint32_t turns;
    const struct knee_alloc *alloc;
    bool failed;
};

/* The row of a name, by its number, and a number of blocks; NULL: no memory. */
static struct knee_kernel_use *row_of(struct table *t, const char *name, int64_t number,
                                      int64_t blocks)
{
    const int64_t both[] = {number, blocks};
    struct knee_kernel_use *row = knee_map_row(&t->uses, both, sizeof both, sizeof *row);
    if (row) {
        row->name = name;
        row->blocks = blocks;
    }
    return row;
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
    const uint32_t *names; /* numbers of the trace's names */
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
    struct knee_kernel_use *row = row_of(t, trace->names[span->name], w->names[span->name],
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
            (struct sample){(uint32_t)(row - (struct knee_kernel_use *)t->uses.rows.data),
                            row->order, (float)seconds, beside > 0};
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
            row_of(t, rank->trace->names[p->kernel - 1], w->names[p->kernel - 1],
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
    uint32_t *numbers = knee_resize(t->alloc, NULL, (names + 1) * sizeof *numbers);
    struct interval *comm = knee_resize(t->alloc, NULL, (source->call_count + 1) * sizeof *comm);
    t->failed = t->failed || !numbers || !comm;
    for (size_t i = 0; i < names && numbers; i++)
        numbers[i] = knee_map_add(&t->names, rank->trace->names[i], strlen(rank->trace->names[i]));
    struct rank_walk w = {
        .account = account, .rank = r, .comm = comm, .names = numbers, .turn = t->turns + 1};
    w.each = 1 / ((double)account->rank_count * knee_complete_steps(account, r));
    w.comm_count = comm ? comm_of(source, comm) : 0;
    for (size_t i = 0; i < source->span_count && !t->failed; i++)
        if (source->spans[i].kind != KNEE_SPAN_COMM)
            add_span(t, &w, &source->spans[i], own[i]);
    t->turns = w.turn;
    if (!t->failed)
        add_products(t, &w);
    t->failed = t->failed || t->names.failed || t->uses.failed;
    knee_resize(t->alloc, numbers, 0);
    knee_resize(t->alloc, comm, 0);
}

KNEE_BY_TWO(by_place, struct sample, row, order)

/* The same work in other steps and on other ranks, sometimes with communication beside it and
 * sometimes without: means over the places where both were seen. */
static void compare_beside(struct table *t, struct knee_kernel_use *rows, size_t count)
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
        struct knee_kernel_use *row = &rows[t->samples[from].row];
        if (calls[0] > 0 && calls[1] > 0) {
            row->places++;
            row->alone_s += seconds[0] / calls[0];
            row->beside_s += seconds[1] / calls[1];
        }
    }
    for (size_t i = 0; i < count; i++) {
        double places = rows[i].places ? (double)rows[i].places : NAN;
        rows[i].alone_s /= places;
        rows[i].beside_s /= places;
    }
}

KNEE_SORT(most_first, struct knee_kernel_use,
          KNEE_THEN(KNEE_DOWN(total_s), KNEE_THEN(strcmp(a->name, b->name), KNEE_UP(blocks))))

bool knee_find_kernel_uses(const struct knee_account *account, knee_own_row *const *own,
                           struct knee_where *out)
{
    struct table t = {
        .alloc = out->alloc, .names = {.alloc = out->alloc}, .uses = {.alloc = out->alloc}};
    size_t spans = 0;
    for (size_t r = 0; r < account->rank_count; r++)
        spans += account->ranks[r].source->span_count;
    t.samples = knee_resize(t.alloc, NULL, (spans + 1) * sizeof *t.samples);
    t.failed = !t.samples;
    for (size_t r = 0; r < account->rank_count && !t.failed; r++)
        add_rank(&t, account, r, own[r]);
    out->kernel_count = t.uses.rows.count;
    out->kernels = t.uses.rows.data;
    t.uses.rows = (struct knee_list){0};
    if (!t.failed)
        compare_beside(&t, out->kernels, out->kernel_count);
    if (out->kernel_count)
        qsort(out->kernels, out->kernel_count, sizeof *out->kernels, most_first);
    knee_resize(t.alloc, t.samples, 0);
    knee_map_release(&t.names);
    knee_map_release(&t.uses);
    return !t.failed;
}

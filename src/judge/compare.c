/* SPDX-License-Identifier: MIT */
/* Two recordings side by side: which label moved, and which kernels and operations moved with it.
 */
#include "base/error.h"
#include "base/map.h"
#include "base/order.h"
#include "base/text.h"
#include "judge/judge.h"
#include "timeline/account.h"
#include "timeline/where.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MUCH_LARGER 1.5 /* than the mean over ranks */
enum { KINDS = 512 };   /* of collectives that are compared; each side has the largest first */

/* One recording of the two, and by what its work is summed. */
struct side {
    struct knee_judged_run run;
    bool after;
    bool operations; /* by operation of the framework, else by kernel */
    bool shapes;     /* and by the shapes of its inputs */
};

/* Where the shapes begin that a name ends in, at the space before them; its end: it has none. */
static size_t shapes_at(const char *name)
{
    size_t length = strlen(name), at = length;
    for (size_t i = 0; i + 2 < length && at == length; i++)
        if (name[i] == ' ' && name[i + 1] == '[' && name[i + 2] >= '0' && name[i + 2] <= '9')
            at = i;
    return at;
}

static void add_span(struct knee_map *names, const struct side *side, const char *name,
                     const struct knee_span *span)
{
    double each = 1 / (side->run.diagnosis->steps * (double)side->run.account->rank_count);
    size_t length = side->operations && !side->shapes ? shapes_at(name) : strlen(name);
    struct knee_mover *mover = knee_map_row(names, name, length, sizeof *mover);
    if (!mover)
        return;
    if (!mover->name)
        *mover =
            (struct knee_mover){.name = name, .length = length, .shape = "", .kind = span->kind};
    if (mover->kind == KNEE_SPAN_COPY) /* products clear memory before they write to it */
        mover->kind = span->kind;
    *(side->after ? &mover->after_s : &mover->before_s) +=
        1e-9 * (double)(span->end_ns - span->start_ns) * each;
    *(side->after ? &mover->after_calls : &mover->before_calls) += each;
}

/* Adds a recording's time per step and rank, name by name: work of complete steps only. Work whose
 * operation is not known stands under its kernel's name; collectives are compared by themselves. */
static void add_side(struct knee_map *names, const struct side *side)
{
    const struct knee_account *account = side->run.account;
    for (size_t r = 0; r < account->rank_count && !names->failed; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        uint32_t *operations =
            side->operations ? knee_operations_of(rank->trace, names->alloc) : NULL;
        names->failed = side->operations && !operations;
        for (size_t i = 0; i < rank->source->span_count && !names->failed; i++) {
            const struct knee_span *span = &rank->source->spans[i];
            uint32_t row = operations && span->launch ? operations[span->launch - 1] : 0;
            if (!knee_in_complete_step(account, r, span->start_ns) ||
                (side->operations && span->kind == KNEE_SPAN_COMM))
                continue;
            add_span(names, side, rank->trace->names[row ? row - 1 : span->name], span);
        }
        knee_resize(names->alloc, operations, 0);
    }
}

#define CHANGE(row) fabs((row)->after_s - (row)->before_s)
#define BY_CHANGE   KNEE_COMPARE(CHANGE(b), CHANGE(a))
KNEE_SORT(most_change_first, struct knee_mover, KNEE_THEN(BY_CHANGE, strcmp(a->name, b->name)))

/* The largest changes into `out`, KNEE_MOVERS at most; returns how many. */
static size_t take_movers(const struct knee_list *rows, struct knee_mover *out)
{
    size_t kept = rows->count < KNEE_MOVERS ? rows->count : KNEE_MOVERS;
    if (kept)
        qsort(rows->data, rows->count, sizeof *out, most_change_first);
    if (kept)
        memcpy(out, rows->data, kept * sizeof *out);
    return kept;
}

/* False: no memory. */
static bool compare_kernels(struct side before, struct side after, const struct knee_alloc *alloc,
                            struct knee_comparison *out)
{
    struct knee_map names = {.alloc = alloc};
    add_side(&names, &before);
    add_side(&names, &after);
    bool good = !names.failed;
    if (good && before.operations)
        out->operation_count = take_movers(&names.rows, out->operations);
    else if (good)
        out->mover_count = take_movers(&names.rows, out->movers);
    knee_map_release(&names);
    return good;
}

/* Are operations of the framework recorded, and, with `shapes`, the shapes of their inputs? */
static bool has_operations(const struct knee_account *account, bool shapes)
{
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_trace *trace = account->ranks[r].trace;
        for (size_t i = 0; i < trace->host_event_count; i++) {
            const char *name = trace->names[trace->host_events[i].name];
            if (trace->host_events[i].kind == KNEE_HOST_OPERATION &&
                (!shapes || name[shapes_at(name)]))
                return true;
        }
    }
    return false;
}

/* By operation where both recordings have them, and by shape where both have those. */
static bool compare_operations(struct side before, struct side after,
                               const struct knee_alloc *alloc, struct knee_comparison *out)
{
    const struct knee_account *b = before.run.account, *a = after.run.account;
    if (!has_operations(b, false) || !has_operations(a, false))
        return true;
    before.operations = after.operations = true;
    before.shapes = after.shapes = has_operations(b, true) && has_operations(a, true);
    if (!compare_kernels(before, after, alloc, out))
        return false;
    for (size_t i = 0; i < out->operation_count && before.shapes; i++) {
        struct knee_mover *m = &out->operations[i];
        size_t at = shapes_at(m->name);
        m->shape = m->name[at] ? m->name + at + 1 : "";
        m->length = at;
    }
    return true;
}

/* What the late ranks do longer than the others by themselves, in a step. */
static double held_s(const struct knee_account *account, const struct knee_diagnosis *d)
{
    double held = 0;
    for (size_t i = 0; i < d->late_ranks; i++)
        held += 1e-9 * (double)account->stragglers[i].held_ns;
    return held / d->steps;
}

/* The share of all calls that is in complete steps. */
static double complete_share(const struct knee_account *account)
{
    size_t inside = 0, all = 0;
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank *rank = account->ranks[r].source;
        for (size_t i = 0; i < rank->call_count; i++)
            inside += knee_in_complete_step(account, r, rank->spans[rank->calls[i].span].start_ns);
        all += rank->call_count;
    }
    return inside ? (double)inside / (double)all : 1;
}

/* Bytes that a rank's collectives move in a step, and its kernels. */
double knee_step_traffic(const struct knee_account *account, const struct knee_diagnosis *d)
{
    double bytes = 0;
    for (size_t i = 0; i < account->collective_count; i++)
        if (account->collectives[i].bytes > 0)
            bytes += (double)account->collectives[i].bytes * (double)account->collectives[i].calls;
    return bytes * complete_share(account) / d->steps / (double)account->rank_count;
}

double knee_step_kernels(const struct knee_diagnosis *d)
{
    double sum = 0;
    for (int k = 0; k < KNEE_KERNEL_KINDS; k++)
        sum += d->works[k].count;
    return sum;
}

/* ---- Collectives ---- */

/* What most of the bytes of a step travel as; "" where no name says it. */
static const char *main_dtype(const struct knee_account *account)
{
    const char *found = "";
    double most = 0;
    for (size_t i = 0; i < account->collective_count; i++) {
        const struct knee_collective_account *c = &account->collectives[i];
        double bytes = (double)c->bytes * (double)c->calls;
        if (*c->dtype && bytes > most) {
            most = bytes;
            found = c->dtype;
        }
    }
    return found;
}

/* The row of this kind, created if it is new; NULL if the list is full. */
static struct knee_collective_mover *kind_of(struct knee_collective_mover *list, size_t *count,
                                             const struct knee_collective_account *c)
{
    size_t i = 0;
    while (i < *count &&
           (list[i].op != c->op || list[i].bytes != c->bytes ||
            list[i].group_size != c->group_size || strcmp(list[i].description, c->description)))
        i++;
    if (i == KINDS)
        return NULL;
    if (i == *count)
        list[(*count)++] = (struct knee_collective_mover){.op = c->op,
                                                          .bytes = c->bytes,
                                                          .group_size = c->group_size,
                                                          .description = c->description};
    return &list[i];
}

static void add_collectives(struct knee_collective_mover *list, size_t *count,
                            const struct knee_account *account, double steps, bool after)
{
    double scale = complete_share(account) / (steps * (double)account->rank_count);
    for (size_t i = 0; i < account->collective_count; i++) {
        const struct knee_collective_account *c = &account->collectives[i];
        struct knee_collective_mover *m = kind_of(list, count, c);
        double calls = (double)c->calls * scale;
        if (!m)
            continue;
        *(after ? &m->after_s : &m->before_s) += c->duration_s * calls;
        *(after ? &m->after_wait_s : &m->before_wait_s) += isnan(c->wait_s) ? 0 : c->wait_s * calls;
        *(after ? &m->after_calls : &m->before_calls) += calls;
    }
}

KNEE_SORT(more_change_first, struct knee_collective_mover, KNEE_THEN(BY_CHANGE, KNEE_DOWN(bytes)))

static bool compare_collectives(struct knee_judged_run before, struct knee_judged_run after,
                                const struct knee_alloc *alloc, struct knee_comparison *out)
{
    struct knee_collective_mover *list = knee_resize(alloc, NULL, KINDS * sizeof *list);
    size_t count = 0;
    if (!list)
        return false;
    add_collectives(list, &count, before.account, before.diagnosis->steps, false);
    add_collectives(list, &count, after.account, after.diagnosis->steps, true);
    if (count > 1)
        qsort(list, count, sizeof *list, more_change_first);
    out->collective_count = count < KNEE_MOVERS ? count : KNEE_MOVERS;
    memcpy(out->collectives, list, out->collective_count * sizeof *list);
    knee_resize(alloc, list, 0);
    return true;
}

static bool differ(double a, double b)
{
    return fabs(a - b) > 0.05 * fmax(a, b);
}

static unsigned differences(const struct knee_account *before, const struct knee_diagnosis *b,
                            const struct knee_account *after, const struct knee_diagnosis *a)
{
    const char *gpus[] = {before->ranks[0].trace->gpu_name, after->ranks[0].trace->gpu_name};
    bool world = before->world_size > 0 && after->world_size > 0
                     ? before->world_size != after->world_size
                     : before->rank_count != after->rank_count;
    const char *dtypes[] = {main_dtype(before), main_dtype(after)};
    bool dtype = *dtypes[0] && *dtypes[1] && strcmp(dtypes[0], dtypes[1]) != 0;
    bool steps = fmax(b->steps, a->steps) >= 2 * fmin(b->steps, a->steps);
    return (dtype ? KNEE_DIFFER_DTYPE : 0u) | (steps ? KNEE_DIFFER_STEPS : 0u) |
           (world ? KNEE_DIFFER_WORLD : 0u) |
           (*gpus[0] && *gpus[1] && strcmp(gpus[0], gpus[1]) != 0 ? KNEE_DIFFER_GPU : 0u) |
           (differ(knee_step_traffic(before, b), knee_step_traffic(after, a)) ? KNEE_DIFFER_TRAFFIC
                                                                              : 0u) |
           (differ(knee_step_kernels(b), knee_step_kernels(a)) ? KNEE_DIFFER_KERNELS : 0u);
}

static void weigh_change(const struct knee_account *before, const struct knee_diagnosis *b,
                         const struct knee_account *after, const struct knee_diagnosis *a,
                         struct knee_comparison *c)
{
    double change = c->after.wall_s - c->before.wall_s;
    c->change = change;
    c->share_of_before = change / c->before.wall_s;
    c->as_before = fabs(c->share_of_before) < KNEE_WORTH_A_WORD;
    c->noise_s =
        sqrt(b->spread.error_s * b->spread.error_s + a->spread.error_s * a->spread.error_s);
    c->chance_s = 2 * c->noise_s;
    c->significant = isnan(c->noise_s) || fabs(change) > c->chance_s;
    c->differs = differences(before, b, after, a);
    c->late_s = held_s(after, a) - held_s(before, b);
    c->late_makes_it = change != 0 && c->late_s / change >= 0.5;
    const struct knee_account *late = c->late_s > 0 ? after : before;
    if (c->late_makes_it && late->straggler_count)
        c->late_excess_s =
            1e-9 * (double)late->stragglers[0].excess_ns / (c->late_s > 0 ? a->steps : b->steps);
}

/* The label that goes the way of the step most. */
static void find_label(struct knee_comparison *c)
{
    double most = -1, way = c->change < 0 ? -1 : 1;
    for (int label = 0; label < KNEE_LABELS; label++) {
        double moved = way * (c->after.label_s[label] - c->before.label_s[label]);
        if (moved > most) {
            most = moved;
            c->label = (enum knee_label)label;
        }
    }
}

/* Label by label. Shares are of all that moved, so that they sum to 1 whatever the signs. */
static void list_parts(struct knee_comparison *c)
{
    double moved = 0;
    for (int label = 0; label < KNEE_LABELS; label++)
        moved += fabs(c->after.label_s[label] - c->before.label_s[label]);
    for (int label = 0; label < KNEE_LABELS; label++) {
        double before = c->before.label_s[label], after = c->after.label_s[label];
        c->parts[label] =
            (struct knee_part_change){.name = knee_label_name((enum knee_label)label),
                                      .before_s = before,
                                      .after_s = after,
                                      .change_s = after - before,
                                      .share = moved > 0 ? fabs(after - before) / moved : 0,
                                      .most = label == (int)c->label};
    }
    c->parts[KNEE_LABELS] = (struct knee_part_change){.name = "step",
                                                      .before_s = c->before.wall_s,
                                                      .after_s = c->after.wall_s,
                                                      .change_s = c->change,
                                                      .share = NAN};
    c->part_count = KNEE_LABELS + 1;
    c->share = c->parts[c->label].share;
}

static void find_largest(struct knee_judged_run longer, struct knee_comparison *c)
{
    const struct knee_account *account = longer.account;
    size_t most = 0;
    double sum = 0, value = 0;
    for (size_t r = 0; r < account->rank_count; r++) {
        double one = (double)account->ranks[r].ledger.label_ns[c->label];
        sum += one;
        if (one > value) {
            value = one;
            most = r;
        }
    }
    bool much = account->rank_count > 1 && value > MUCH_LARGER * sum / (double)account->rank_count;
    c->largest_rank = much ? most : SIZE_MAX;
    c->largest_s = 1e-9 * value / longer.diagnosis->steps;
}

knee_status knee_compare(struct knee_judged_run before, struct knee_judged_run after,
                         const struct knee_alloc *alloc, struct knee_comparison *out,
                         struct knee_err *err)
{
    struct knee_comparison c = {.before = before.diagnosis->step, .after = after.diagnosis->step};
    struct side first = {.run = before}, second = {.run = after, .after = true};
    if (!compare_kernels(first, second, alloc, &c) ||
        !compare_operations(first, second, alloc, &c) ||
        !compare_collectives(before, after, alloc, &c))
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the comparison");
    c.before_dtype = main_dtype(before.account);
    c.after_dtype = main_dtype(after.account);
    weigh_change(before.account, before.diagnosis, after.account, after.diagnosis, &c);
    find_label(&c);
    list_parts(&c);
    c.before_kernels = knee_step_kernels(before.diagnosis);
    c.after_kernels = knee_step_kernels(after.diagnosis);
    find_largest(c.change > 0 ? after : before, &c);
    *out = c;
    return KNEE_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * Search over all feasible plans. The space is cut into pieces, one per split of a layer
 * (tp, cp, ep, etp, micro-batch, sequence parallelism): a piece works out its block once and then
 * prices every pipeline, sharding, recomputation and schedule with it, which is cheap.
 *
 * What is left out without being priced cannot change the answer:
 *   - a plan that does not fit: its memory is computed first;
 *   - a piece whose bound (knee_block_bound_s) is no better than the slowest plan kept and than
 *     what the front already has at the least memory that any plan of the model can take.
 * An unusual feature must gain more than knee can tell plans apart by (search->oddity); what is
 * compared is the step with that handicap, which is never below the step itself, so bounds hold.
 * Ties are broken by memory and then by the plan itself, so that the order in which pieces are
 * searched and merged does not matter.
 */
#include "job/framework.h"
#include "job/plan.h"
#include "predict/plan/block.h"

#include <math.h>
#include <string.h>

#define LIST_MAX 128

struct list {
    double value[LIST_MAX];
    size_t count;
};

static void put(struct list *list, double value)
{
    if (list->count < LIST_MAX)
        list->value[list->count++] = value;
}

/* All divisors of `number` up to `most` that also divide `other`; or the one that is fixed. */
static struct list divisors(double number, double other, double most, double fixed)
{
    struct list list = {.count = 0};
    if (!isnan(fixed)) {
        put(&list, fixed);
        return list;
    }
    for (double d = 1; d <= number && d <= most; d++)
        if (fmod(number, d) == 0 && fmod(other, d) == 0)
            put(&list, d);
    return list;
}

/* ---- The axes of a piece ---- */

enum { TP, CP, EP, ETP, MICRO, SEQ_PAR, AXES };
#define TP_MOST    64
#define CP_MOST    128
#define MICRO_MOST 64

struct axes {
    struct list of[AXES];
};

static void list_axes(const struct knee_search *search, struct axes *axes)
{
    const struct knee_plan *fixed = search->fixed;
    const struct knee_shape *shape = search->shape;
    axes->of[TP] = divisors(fixed->gpus, shape->heads, TP_MOST, fixed->tp);
    axes->of[CP] = divisors(fixed->gpus, shape->seq, CP_MOST, fixed->cp);
    axes->of[EP] = shape->experts > 1
                       ? divisors(shape->experts, shape->experts, shape->experts, fixed->ep)
                       : divisors(1, 1, 1, 1);
    axes->of[ETP] = divisors(fixed->gpus, shape->heads, shape->experts > 1 ? TP_MOST : 1,
                             shape->experts > 1 ? fixed->etp : 1);
    axes->of[MICRO] =
        divisors(fixed->global_batch, fixed->global_batch, MICRO_MOST, fixed->micro_batch);
    axes->of[SEQ_PAR] = (struct list){{0, 1}, 2};
    if (!isnan(fixed->seq_par))
        axes->of[SEQ_PAR] = (struct list){{fixed->seq_par}, 1};
}

static size_t piece_count(const struct axes *axes)
{
    size_t count = 1;
    for (int i = 0; i < AXES; i++)
        count *= axes->of[i].count;
    return count;
}

size_t knee_search_pieces(const struct knee_search *search)
{
    struct axes axes;
    list_axes(search, &axes);
    return piece_count(&axes);
}

/* The split that a piece stands for; false: there is no such plan. */
static bool open_piece(const struct knee_search *search, const struct axes *axes, size_t piece,
                       struct knee_plan *plan)
{
    double value[AXES];
    for (int i = AXES; i-- > 0;) {
        if (axes->of[i].count == 0) /* unreachable: there would be no pieces */
            return false;
        value[i] = axes->of[i].value[piece % axes->of[i].count];
        piece /= axes->of[i].count;
    }
    bool experts = search->shape->experts > 1;
    if (fmod(plan->gpus, value[TP] * value[CP]) != 0 || fmod(value[TP], value[ETP]) != 0)
        return false;
    if (value[TP] == 1 && value[SEQ_PAR] > 0 && isnan(search->fixed->seq_par))
        return false;
    if (experts && value[ETP] != 1 && value[ETP] != value[TP] && isnan(search->fixed->etp))
        return false;
    plan->tp = value[TP];
    plan->cp = value[CP];
    plan->ep = value[EP];
    plan->etp = value[ETP];
    plan->micro_batch = value[MICRO];
    plan->seq_par = value[SEQ_PAR];
    return knee_framework_breaks(search->framework, plan, search->shape) < 0;
}

/* ---- Which of two is better ---- */

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

/* Any order of plans will do, if it is always the same. */
static int compare_plans(const struct knee_plan *a, const struct knee_plan *b)
{
    const double x[] = {a->tp,       a->cp,          a->pp,     a->ep,         a->vp,
                        a->etp,      a->micro_batch, a->shard,  a->shard_size, a->recompute,
                        a->schedule, a->offload,     a->seq_par};
    const double y[] = {b->tp,       b->cp,          b->pp,     b->ep,         b->vp,
                        b->etp,      b->micro_batch, b->shard,  b->shard_size, b->recompute,
                        b->schedule, b->offload,     b->seq_par};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] != y[i])
            return compare(x[i], y[i]);
    return 0;
}

#define LONG_SEQUENCE 32768
#define MANY_PIECES   8

static unsigned unusual(const struct knee_search *s, const struct knee_plan *plan)
{
    const struct knee_shape *shape = s->shape;
    double node = s->machine->node_size;
    bool shards = plan->shard >= KNEE_ZERO2 && (plan->shard_size * plan->tp > node || plan->pp > 1);
    return (plan->offload == KNEE_OFFLOAD_OPTIMIZER ? KNEE_UNUSUAL_OFFLOAD : 0U) |
           (plan->schedule == KNEE_ZERO_BUBBLE ? KNEE_UNUSUAL_SCHEDULE : 0U) |
           (plan->cp > 1 && shape->seq < LONG_SEQUENCE ? KNEE_UNUSUAL_CONTEXT : 0U) |
           (plan->vp > MANY_PIECES ? KNEE_UNUSUAL_PIECES : 0U) |
           (shards ? KNEE_UNUSUAL_SHARDS : 0U) | (plan->tp > node ? KNEE_UNUSUAL_TENSOR : 0U) |
           (plan->tp > shape->kv_heads ? KNEE_UNUSUAL_HEADS : 0U) |
           (knee_framework_lacks(s->assumed, plan, shape) >= 0 ? KNEE_UNUSUAL_SOFTWARE : 0U);
}

static void rank(const struct knee_search *s, struct knee_found *found)
{
    int count = 0;
    found->unusual = s->oddity > 0 ? unusual(s, &found->plan) : 0;
    for (unsigned bits = found->unusual; bits; bits &= bits - 1)
        count++;
    found->ranked_s = found->cost.step_s * (1 + s->oddity * count);
}

static bool better(const struct knee_found *a, const struct knee_found *b)
{
    int order = compare(a->ranked_s, b->ranked_s);
    if (order == 0)
        order = compare(a->cost.memory.total, b->cost.memory.total);
    if (order == 0)
        order = compare_plans(&a->plan, &b->plan);
    return order < 0;
}

static bool related(const struct knee_plan *a, const struct knee_plan *b)
{
    return a->tp == b->tp && a->cp == b->cp && a->pp == b->pp && a->ep == b->ep &&
           a->shard == b->shard;
}

/* ---- Keeping the best ---- */

/* Keeps the list sorted, one plan of each kin. */
static void keep_best(const struct knee_search *s, const struct knee_found *found,
                      struct knee_search_result *r)
{
    size_t top = s->top;
    size_t same = 0;
    while (same < r->count && !related(&r->best[same].plan, &found->plan))
        same++;
    if (same < r->count && !better(found, &r->best[same]))
        return;
    size_t at = same < r->count ? same : r->count < top ? r->count : r->count - 1;
    if (same == r->count && r->count == top && !better(found, &r->best[at]))
        return;
    if (at == r->count)
        r->count++;
    while (at > 0 && better(found, &r->best[at - 1])) {
        r->best[at] = r->best[at - 1];
        at--;
    }
    r->best[at] = *found;
}

static void keep_front(const struct knee_found *found, struct knee_search_result *r)
{
    double share = found->cost.memory.total / found->cost.memory.capacity;
    int first = (int)fmax(0, ceil(share * KNEE_FRONT - 1e-9) - 1);
    for (int i = first; i < KNEE_FRONT; i++)
        if (better(found, &r->front[i]))
            r->front[i] = *found;
}

static double lacking(const struct knee_found *found)
{
    return found->cost.memory.total - found->cost.memory.capacity;
}

static void keep_nearest(const struct knee_found *found, struct knee_search_result *r)
{
    int order = r->nearest_valid ? compare(lacking(found), lacking(&r->nearest)) : -1;
    if (order == 0)
        order = compare_plans(&found->plan, &r->nearest.plan);
    if (order < 0)
        r->nearest = *found;
    r->nearest_valid = true;
}

void knee_search_result_init(struct knee_search_result *result)
{
    memset(result, 0, sizeof *result);
    for (int i = 0; i < KNEE_FRONT; i++)
        result->front[i].cost.step_s = result->front[i].ranked_s = INFINITY;
}

void knee_search_merge(const struct knee_search *search, const struct knee_search_result *other,
                       struct knee_search_result *into)
{
    for (size_t i = 0; i < other->count; i++)
        keep_best(search, &other->best[i], into);
    for (int i = 0; i < KNEE_FRONT; i++)
        if (isfinite(other->front[i].cost.step_s) && better(&other->front[i], &into->front[i]))
            into->front[i] = other->front[i];
    if (other->nearest_valid)
        keep_nearest(&other->nearest, into);
    into->plans += other->plans;
    into->priced += other->priced;
    into->too_large += other->too_large;
    into->pruned += other->pruned;
}

/* ---- Inside a piece ---- */

struct piece {
    const struct knee_search *search;
    struct knee_block block;
    struct knee_prices prices;
    struct knee_search_result *result;
    double limit; /* bytes that a plan may take */
};

static void try_plan(struct piece *p, const struct knee_plan *plan)
{
    const struct knee_search *s = p->search;
    if (knee_framework_breaks(s->framework, plan, s->shape) >= 0)
        return;
    struct knee_found found = {.plan = *plan};
    p->result->plans++;
    knee_memory_of(&p->block.footprint, s->shape, s->machine, plan, &found.cost.memory);
    if (found.cost.memory.total > p->limit) {
        p->result->too_large++;
        if (!p->result->nearest_valid || lacking(&found) <= lacking(&p->result->nearest)) {
            knee_block_price(&p->block, s->shape, s->machine, plan, &p->prices, &found.cost);
            keep_nearest(&found, p->result);
        }
        return;
    }
    knee_block_price(&p->block, s->shape, s->machine, plan, &p->prices, &found.cost);
    p->result->priced++;
    rank(s, &found);
    keep_best(s, &found, p->result);
    keep_front(&found, p->result);
}

/* A choice that is fixed, or each of `count`. */
static int from_of(int fixed)
{
    return fixed >= 0 ? fixed : 0;
}

static int to_of(int fixed, int count)
{
    return fixed >= 0 ? fixed : count - 1;
}

static void try_memory_choices(struct piece *p, struct knee_plan *plan)
{
    const struct knee_plan *fixed = p->search->fixed;
    for (int r = from_of(fixed->recompute); r <= to_of(fixed->recompute, KNEE_RECOMPUTES); r++) {
        bool between = knee_framework_has(p->search->framework, KNEE_SELECTIVE);
        if (r == KNEE_BY_OP && fixed->recompute < 0 && between)
            continue; /* lies between selective and full */
        plan->recompute = r;
        for (int o = from_of(fixed->offload); o <= to_of(fixed->offload, KNEE_OFFLOADS); o++) {
            plan->offload = o;
            try_plan(p, plan);
        }
    }
}

/* Sharded over all replicas, or (parameters only) inside a node and replicated between nodes. */
static void try_shards(struct piece *p, struct knee_plan *plan)
{
    const struct knee_plan *fixed = p->search->fixed;
    double ranks = plan->dp * plan->cp;
    double node = fmax(1, p->search->machine->node_size / plan->tp);
    for (int s = from_of(fixed->shard); s <= to_of(fixed->shard, KNEE_SHARDS); s++) {
        plan->shard = s;
        plan->shard_size = s == KNEE_REPLICATE ? 1 : ranks;
        if (!isnan(fixed->shard_size) && s != KNEE_REPLICATE)
            plan->shard_size = fixed->shard_size;
        if (s != KNEE_REPLICATE && ranks == 1 && fixed->shard < 0)
            continue;
        if (s == KNEE_ZERO2 && plan->pp > 1 && fixed->shard < 0)
            continue; /* under a pipeline it is zero1 by another name */
        if (fmod(ranks, plan->shard_size) != 0)
            continue;
        try_memory_choices(p, plan);
        if (s == KNEE_ZERO3 && isnan(fixed->shard_size) && node > 1 && node < ranks &&
            fmod(ranks, node) == 0) {
            plan->shard_size = node;
            try_memory_choices(p, plan);
        }
    }
}

static void try_schedules(struct piece *p, struct knee_plan *plan)
{
    const struct knee_plan *fixed = p->search->fixed;
    for (int s = from_of(fixed->schedule); s <= to_of(fixed->schedule, KNEE_SCHEDULES); s++) {
        if ((s == KNEE_INTERLEAVED) != (plan->vp > 1))
            continue;
        if (plan->pp == 1 && s != KNEE_1F1B && fixed->schedule < 0)
            continue;
        plan->schedule = s;
        try_shards(p, plan);
    }
}

/* Layers lacking until all pieces are alike are at most one for each stage, so that the last stage,
 * which has the head, is the short one. */
static bool nearly_even(double layers, double pp, double pieces)
{
    double whole = ceil(layers / pieces) * pieces;
    return whole - layers <= pp || fmod(layers + 2, pieces) == 0;
}

/* Pieces of layers per stage: any number that leaves all pieces alike, or nearly. */
static void try_stages(struct piece *p, struct knee_plan *plan)
{
    const struct knee_plan *fixed = p->search->fixed;
    const struct knee_shape *shape = p->search->shape;
    double most = plan->pp > 1 ? (shape->layers + 2) / plan->pp : 1;
    double from = isnan(fixed->vp) ? 1 : fixed->vp, to = isnan(fixed->vp) ? most : fixed->vp;
    for (double vp = from; vp <= to; vp++) {
        if (vp > 1 && isnan(fixed->vp) && !nearly_even(shape->layers, plan->pp, plan->pp * vp))
            continue;
        plan->vp = vp;
        plan->schedule = KNEE_1F1B;
        plan->shard_size = 1;
        if (!knee_plan_objection(plan, shape, p->search->machine))
            try_schedules(p, plan);
    }
}

static void try_pipelines(struct piece *p, struct knee_plan *plan)
{
    const struct knee_search *s = p->search;
    double rest = plan->gpus / (plan->tp * plan->cp);
    struct list depths = divisors(rest, rest, s->shape->layers, s->fixed->pp);
    for (size_t i = 0; i < depths.count; i++) {
        plan->pp = depths.value[i];
        plan->dp = rest / plan->pp;
        if (fmod(rest, plan->pp) == 0)
            try_stages(p, plan);
    }
}

/* No plan of the model takes less than this share of the memory: everything sharded over all GPUs,
 * the optimizer on the host. */
static int least_front(const struct knee_search *s, const struct knee_plan *plan)
{
    struct knee_params params;
    knee_shape_params(s->shape, &params);
    double least = (2 * params.total + plan->gradient_bytes * params.trained) / plan->gpus;
    double share = least / s->machine->memory_bytes;
    return (int)fmin(KNEE_FRONT - 1, fmax(0, ceil(share * KNEE_FRONT - 1e-9) - 1));
}

static bool cannot_win(const struct piece *p, const struct knee_plan *plan)
{
    const struct knee_search *s = p->search;
    const struct knee_search_result *r = p->result;
    if (s->brute || r->count < s->top)
        return false;
    double bound = knee_block_bound_s(&p->block, s->shape, s->machine, plan);
    return bound > r->best[r->count - 1].ranked_s &&
           bound > r->front[least_front(s, plan)].ranked_s;
}

/* What the search does not vary. */
static struct knee_plan begin_plan(const struct knee_search *search)
{
    struct knee_plan plan = *search->fixed;
    struct {
        double *field, value;
    } usual[] = {
        {&plan.prefetch, 1},
        {&plan.cp_gather, 0},
        {&plan.overlap_tp, 1},
        {&plan.overlap_dp, 1},
        {&plan.overlap_pp, 1},
        {&plan.imbalance, 1},
        {&plan.overlap_ep, 0},
        {&plan.dispatch_bytes, 2},
        {&plan.fp8_attention, 0},
        {&plan.drop_tokens, 0},
        {&plan.dedup, search->machine->rates.expert_dedup},
        {&plan.compress, 1},
        {&plan.local_steps, 1},
        {&plan.jitter, 0},
        {&plan.gradient_bytes, search->machine->rates.gradient_bytes},
        {&plan.graphs, 0},
        {&plan.recompute_share, 1},
    };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (isnan(*usual[i].field))
            *usual[i].field = usual[i].value;
    if (plan.precision < 0)
        plan.precision = search->framework && !knee_framework_computes(search->framework,
                                                                       search->machine->precision)
                             ? KNEE_BF16
                             : search->machine->precision;
    return plan;
}

void knee_search_run(const struct knee_search *search, size_t from, size_t to,
                     struct knee_search_result *result)
{
    struct axes axes;
    struct piece piece = {.search = search, .result = result};
    const struct knee_machine *machine = search->machine;
    piece.limit = search->memory_risk > 0
                      ? knee_memory_limit(machine->memory_bytes, machine->rates.memory_spread,
                                          search->memory_risk)
                      : machine->memory_bytes;
    list_axes(search, &axes);
    size_t count = piece_count(&axes);
    for (size_t i = from; i < to && i < count; i++) {
        struct knee_plan plan = begin_plan(search);
        if (!open_piece(search, &axes, i, &plan))
            continue;
        knee_block_init(search->shape, search->machine, &plan, &piece.block);
        if (cannot_win(&piece, &plan)) {
            result->pruned++;
            continue;
        }
        try_pipelines(&piece, &plan);
    }
}

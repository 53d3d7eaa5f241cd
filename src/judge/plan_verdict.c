/* SPDX-License-Identifier: MIT */
/*
 * Judging plans: which GPU count answers the question, where the next GPUs stop paying with the
 * best plan at each count, and what one plan has over another.
 *
 * Efficiency here is tokens per second and GPU against the best plan of the baseline, the smallest
 * count of a fixed list at which a plan fits: it does not depend on the counts that were asked. The
 * batch is the same at all counts.
 */
#include "job/framework.h"
#include "job/profile.h"
#include "judge/judge.h"
#include "judge/run_verdict.h"
#include "knee_plan.h"
#include "predict/closed/forecast.h"
#include "predict/plan/published_runs.h"

#include <math.h>
#include <stdint.h>

#define HOUR_S        3600.0
#define BASELINE_MOST 65536
#define SAME          1e-12 /* times that far apart are the same */

/* Work that any plan has to do; everything else is overhead that a better plan may avoid. */
static bool is_work(enum knee_part part)
{
    return part == KNEE_PART_GEMM || part == KNEE_PART_ATTENTION || part == KNEE_PART_MEMORY ||
           part == KNEE_PART_HEAD;
}

enum knee_part knee_plan_binding(const struct knee_plan_cost *cost)
{
    enum knee_part worst = KNEE_PART_GEMM;
    double most = KNEE_NO_BOTTLENECK * cost->step_s;
    for (int part = 0; part < KNEE_PARTS; part++)
        if (!is_work((enum knee_part)part) && cost->part_s[part] > most) {
            most = cost->part_s[part];
            worst = (enum knee_part)part;
        }
    return worst;
}

struct knee_advantage knee_plan_advantage(const struct knee_plan_cost *better,
                                          const struct knee_plan_cost *worse)
{
    struct knee_advantage best = {.part = KNEE_PART_GEMM, .seconds = -INFINITY};
    for (int part = 0; part < KNEE_PARTS; part++) {
        double saved = worse->part_s[part] - better->part_s[part];
        if (saved > best.seconds)
            best = (struct knee_advantage){.part = (enum knee_part)part, .seconds = saved};
    }
    best.none = worse->step_s <= better->step_s * (1 + SAME);
    return best;
}

double knee_plan_baseline_at(const struct knee_machine *machine, size_t i)
{
    double node = machine->node_size, count = 1;
    for (size_t k = 0; count <= BASELINE_MOST; k++) {
        if (k == i)
            return count;
        double next = 2 * count;
        count = count < node && node < next ? node
                : count == node             ? exp2(floor(log2(node)) + 1)
                                            : next;
    }
    return 0;
}

double knee_plan_round_count(size_t i)
{
    if (i < 4)
        return (double)i + 1;
    size_t doublings = i / 4 - 1;
    return exp2((double)doublings) * (double)(5 + i % 4);
}

bool knee_plan_quicker(const struct knee_search_result *a, const struct knee_search_result *b)
{
    return a->count > 0 &&
           (b->count == 0 || a->best[0].cost.tokens_per_s > b->best[0].cost.tokens_per_s);
}

/* More GPUs than the row before never give less: what is too many stays idle. */
static void take_over(const struct knee_plan_row *before, struct knee_plan_row *row)
{
    if (knee_plan_quicker(&before->found, &row->found))
        row->found = before->found;
}

static double per_gpu(const struct knee_plan_row *row)
{
    return row->found.best[0].cost.tokens_per_s / row->gpus;
}

static double dollars_per_s(const struct knee_plan_answer *a, double gpus)
{
    return gpus * a->machine.price_per_hour / HOUR_S;
}

double knee_plan_billion_cost(const struct knee_plan_answer *answer, double gpus,
                              const struct knee_plan_cost *cost)
{
    return 1e9 / cost->tokens_per_s * dollars_per_s(answer, gpus);
}

/* What grows with the step. */
static struct knee_sure as_sure_as_the_step(const struct knee_plan_cost *cost, double value)
{
    return (struct knee_sure){value * cost->low_s / cost->step_s,
                              value * cost->high_s / cost->step_s};
}

/* Two independent intervals about one product: shares off the middle add as their squares. */
static struct knee_sure both_sure(double value, struct knee_sure a, struct knee_sure b)
{
    double down = sqrt((1 - a.low) * (1 - a.low) + (1 - b.low) * (1 - b.low));
    double up = sqrt((a.high - 1) * (a.high - 1) + (b.high - 1) * (b.high - 1));
    return (struct knee_sure){value * fmax(0, 1 - down), value * (1 + up)};
}

/* With failures the run takes longer, and how much longer is not known exactly either. */
static void price_failures(const struct knee_plan_answer *a, struct knee_plan_row *row)
{
    struct knee_plan_run *run = &a->runs[row - a->rows];
    const struct knee_plan_cost *best = &row->found.best[0].cost;
    const struct knee_run_cost *cost = &run->cost;
    knee_plan_run_of(a, row, run);
    double kept = cost->goodput.kept;
    struct knee_sure step = as_sure_as_the_step(best, 1);
    struct knee_sure failures = {kept / cost->sure.high, kept / cost->sure.low};
    row->kept = kept / knee_plan_goodput_at(a, a->baseline_gpus);
    row->time_s = cost->time_s;
    row->cost = cost->cost;
    row->time_sure = both_sure(row->time_s, step, failures);
    row->cost_sure = both_sure(row->cost, step, failures);
    row->cost_per_billion /= kept;
}

static void price_row(const struct knee_plan_answer *a, struct knee_plan_row *row)
{
    row->fits = row->found.count > 0;
    row->kept = 1;
    row->efficiency = row->time_s = row->cost = row->cost_per_billion = NAN;
    row->efficiency_sure = row->time_sure = row->cost_sure = (struct knee_sure){NAN, NAN};
    if (!row->fits)
        return;
    const struct knee_plan_cost *best = &row->found.best[0].cost;
    row->time_s = a->question.tokens / best->tokens_per_s;
    row->cost = row->time_s * dollars_per_s(a, row->gpus);
    row->time_sure = as_sure_as_the_step(best, row->time_s);
    row->cost_sure = as_sure_as_the_step(best, row->cost);
    row->cost_per_billion = knee_plan_billion_cost(a, row->gpus, best);
    if (a->runs)
        price_failures(a, row);
}

/* With a budget, the fastest plan within it; with a deadline, the cheapest that meets it; with
 * neither, the last GPU count that is still worth paying for. */
static bool suits(const struct knee_plan_answer *a, const struct knee_plan_row *row)
{
    const struct knee_plan_question *q = &a->question;
    if (!row->fits)
        return false;
    if (!isnan(q->budget) && !(row->cost <= q->budget))
        return false;
    return isnan(q->deadline_s) || row->time_s <= q->deadline_s;
}

static bool preferred(const struct knee_plan_answer *a, const struct knee_plan_row *row,
                      const struct knee_plan_row *than)
{
    if (!isnan(a->question.deadline_s) && isnan(a->question.budget))
        return isnan(row->cost) ? row->gpus < than->gpus : row->cost < than->cost;
    return row->found.best[0].cost.tokens_per_s > than->found.best[0].cost.tokens_per_s;
}

static void choose(struct knee_plan_answer *a)
{
    bool asked = !isnan(a->question.budget) || !isnan(a->question.deadline_s);
    a->chosen = SIZE_MAX;
    for (size_t i = 0; i < a->row_count; i++) {
        const struct knee_plan_row *row = &a->rows[i];
        bool good = asked ? suits(a, row) : row->fits && row->gpus <= a->knee_gpus;
        if (good && (a->chosen == SIZE_MAX || preferred(a, row, &a->rows[a->chosen])))
            a->chosen = i;
    }
}

/* knee predict's answer to the same question, and where they part. */
static void judge_replicas(struct knee_plan_answer *a)
{
    struct knee_terms terms = {
        .batch = a->fixed.global_batch,
        .work = a->fixed.global_batch,
        .comm_scale = 1,
        .shard = 1,
        .accumulate = 1,
        .local_steps = 1,
        .overlap = NAN,
        .hidden = NAN,
        .loader_rate_per_s = NAN,
        .cluster = a->machine.cluster,
    };
    struct knee_knee knee;
    double ignored;
    a->replicas_knee = a->replicas_limit = a->replicas_needed_bytes = NAN;
    if (a->chosen == SIZE_MAX ||
        !knee_forecast_of(&a->shape, &a->machine, a->fixed.gradient_bytes, &terms.forecast))
        return;
    terms.bytes = terms.forecast.bytes;
    knee_terms_settle(&terms);
    knee_find(&terms, a->question.tolerance, &knee, &ignored);
    a->replicas_knee = knee.tolerance_workers;
    a->replicas_limit = knee.limit_workers;
    a->replicas_needed_bytes = terms.forecast.memory.total;
}

/* Counts the plans of the chosen row whose times are within knee's error of the first. */
static void count_ties(struct knee_plan_answer *a)
{
    a->apart = knee_bands[knee_band_class_of(&a->shape, a->machine.basis)].pair;
    a->ties = 0;
    if (a->chosen == SIZE_MAX)
        return;
    const struct knee_search_result *found = &a->rows[a->chosen].found;
    double first = found->best[0].cost.step_s;
    for (; a->ties < found->count; a->ties++) {
        double step = found->best[a->ties].cost.step_s;
        if (fmax(step, first) > (1 + a->apart) * fmin(step, first))
            break; /* slower, or faster and unusual */
    }
}

static struct knee_sure efficiency_sure(const struct knee_plan_answer *a,
                                        const struct knee_plan_row *row)
{
    struct knee_sure sure = knee_band_curve(knee_band_class_of(&a->shape, a->machine.basis),
                                            row->gpus, a->baseline_gpus, row->efficiency);
    return (struct knee_sure){sure.low * row->efficiency, sure.high * row->efficiency};
}

/* Up to where every count that fits is worth it, were E(K) at its low or at its high end. */
static double last_worth_it(const struct knee_plan_answer *a, bool high)
{
    double last = NAN;
    for (size_t i = 0; i < a->row_count; i++) {
        const struct knee_plan_row *row = &a->rows[i];
        if (!row->fits)
            continue;
        double end = row->kept * (high ? row->efficiency_sure.high : row->efficiency_sure.low);
        if (end < a->question.tolerance)
            break;
        last = row->gpus;
    }
    return last;
}

/* Of the first `count` remedies those that the framework can do. */
static void keep_possible(struct knee_plan_answer *a, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (knee_framework_breaks(a->framework, &a->remedies[i].plan, &a->shape) < 0)
            a->remedies[a->remedy_count++] = a->remedies[i];
}

void knee_plan_judge(struct knee_plan_answer *a)
{
    const struct knee_plan_row *smallest = NULL;
    double most = 0, base = a->baseline_tokens_per_s / a->baseline_gpus;
    bool falling = false;
    a->knee_gpus = a->peak_gpus = a->fastest_s = a->cheapest = NAN;
    a->remedy_count = 0;
    for (size_t i = 0; i < a->row_count; i++) {
        struct knee_plan_row *row = &a->rows[i];
        if (i > 0)
            take_over(&a->rows[i - 1], row);
        price_row(a, row);
        if (!row->fits)
            continue;
        smallest = smallest ? smallest : row;
        a->fastest_s = fmin(a->fastest_s, row->time_s);
        a->cheapest = fmin(a->cheapest, row->cost);
        row->efficiency = per_gpu(row) / base;
        row->efficiency_sure = efficiency_sure(a, row);
        falling = falling || row->kept * row->efficiency < a->question.tolerance;
        if (!falling)
            a->knee_gpus = row->gpus;
        if (row->found.best[0].cost.tokens_per_s > most) {
            most = row->found.best[0].cost.tokens_per_s;
            a->peak_gpus = row->gpus;
        }
    }
    a->knee_sure = (struct knee_sure){last_worth_it(a, false), last_worth_it(a, true)};
    choose(a);
    count_ties(a);
    judge_replicas(a);
    if (!smallest && a->row_count > 0) {
        const struct knee_search_result *last = &a->rows[a->row_count - 1].found;
        if (last->nearest_valid)
            keep_possible(a, knee_plan_remedies(&a->shape, &a->machine, &last->nearest.plan,
                                                a->remedies, KNEE_REMEDIES_MAX));
    }
}

const struct knee_plan_row *knee_plan_shown(const struct knee_plan_answer *a)
{
    if (a->chosen != SIZE_MAX)
        return &a->rows[a->chosen];
    for (size_t i = a->row_count; i-- > 0;)
        if (a->rows[i].fits)
            return &a->rows[i];
    return NULL;
}

void knee_plan_details(struct knee_plan_answer *a)
{
    const struct knee_plan_row *row = knee_plan_shown(a);
    a->traffic_count = a->axis_count = a->alike_count = 0;
    if (!row)
        return;
    const struct knee_plan *plan = &row->found.best[0].plan;
    double token_s = plan->gpus / row->found.best[0].cost.tokens_per_s;
    a->axis_count = knee_plan_axes(plan, &a->machine, a->axes);
    a->alike_count = knee_alike_find(&a->shape, &a->platform, plan, token_s, a->alike);
    if (a->chosen != SIZE_MAX)
        a->traffic_count =
            knee_plan_traffic(&a->shape, &a->machine, plan, a->traffic, KNEE_TRAFFIC_MAX);
    if (a->traffic_count > KNEE_TRAFFIC_MAX)
        a->traffic_count = KNEE_TRAFFIC_MAX;
}

void knee_plan_operations(struct knee_plan_answer *a, struct knee_layer_operation *room)
{
    const struct {
        const char *layer;
        enum knee_operations_of what;
        bool there;
    } layers[] = {{"dense", KNEE_OPERATIONS_DENSE, a->shape.dense_layers > 0},
                  {"experts", KNEE_OPERATIONS_EXPERT, a->shape.experts > 1},
                  {"embedding", KNEE_OPERATIONS_EMBEDDING, true},
                  {"head", KNEE_OPERATIONS_HEAD, true}};
    const struct knee_plan_row *row = knee_plan_shown(a);
    a->ops = room;
    a->op_count = 0;
    for (size_t i = 0; row && i < sizeof layers / sizeof *layers; i++) {
        struct knee_operation ops[KNEE_OPERATIONS_MAX];
        size_t count = layers[i].there
                           ? knee_plan_ops(&a->shape, &a->machine, &row->found.best[0].plan,
                                           layers[i].what, ops, KNEE_OPERATIONS_MAX)
                           : 0;
        for (size_t k = 0; k < count; k++)
            room[a->op_count++] =
                (struct knee_layer_operation){.op = ops[k], .layer = layers[i].layer};
    }
}

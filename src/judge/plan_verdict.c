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
#include "knee_plan.h"

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

static void price_row(const struct knee_plan_answer *a, struct knee_plan_row *row)
{
    row->fits = row->found.count > 0;
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
}

/* With a budget the fastest that it pays for; with a deadline the cheapest that meets it; with
 * neither the last count that is still worth it. */
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
    struct knee_job job;
    struct knee_params params;
    struct knee_terms terms;
    struct knee_knee knee;
    double ignored;
    a->replicas_knee = a->replicas_limit = a->replicas_needed_bytes = NAN;
    if (a->chosen == SIZE_MAX)
        return;
    const struct knee_plan_cost *cost = &a->rows[a->chosen].found.best[0].cost;
    knee_shape_params(&a->shape, &params);
    knee_job_init(&job);
    job.hw = a->platform.hw;
    job.params = params.total;
    job.flops_per_param = 6 * params.active / params.total;
    job.seq = a->shape.seq;
    job.global_batch = a->fixed.global_batch;
    job.mfu = cost->mfu_causal;
    job.overlap = 1;
    if (knee_job_complete(&job, NULL))
        return;
    knee_terms_init(&job, &terms);
    knee_find(&terms, a->question.tolerance, &knee, &ignored);
    a->replicas_knee = knee.tolerance_workers;
    a->replicas_limit = knee.limit_workers;
    a->replicas_needed_bytes = knee_unsharded_bytes(params.total);
}

/* Plans of the chosen row that cannot be told from its first. */
static void count_ties(struct knee_plan_answer *a)
{
    a->apart = knee_bands[knee_band_class_of(&a->shape, a->machine.assumed)].pair;
    a->ties = 0;
    if (a->chosen == SIZE_MAX)
        return;
    const struct knee_search_result *found = &a->rows[a->chosen].found;
    while (a->ties < found->count &&
           found->best[a->ties].cost.step_s <= (1 + a->apart) * found->best[0].cost.step_s)
        a->ties++;
}

static struct knee_sure efficiency_sure(const struct knee_plan_answer *a,
                                        const struct knee_plan_row *row)
{
    struct knee_sure sure = knee_band_curve(knee_band_class_of(&a->shape, a->machine.assumed),
                                            row->gpus, a->baseline_gpus);
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
        double end = high ? row->efficiency_sure.high : row->efficiency_sure.low;
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
        falling = falling || row->efficiency < a->question.tolerance;
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

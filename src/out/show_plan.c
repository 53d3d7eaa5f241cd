/* SPDX-License-Identifier: MIT */
/* The answer of knee plan: the best plans, why, what they need and cost, and where to stop. */
#include "out/show_plan.h"

#include "cluster/hardware.h"
#include "judge/judge.h"

#include "out/inputs.h"
#include "out/plain_words.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define GB 1e9

static const char *word(const struct knee_choices *choices, int row)
{
    const char *name = row >= 0 ? choices->name((size_t)row) : NULL;
    return name ? name : "-";
}

static const char *model_name(const struct knee_plan_answer *a)
{
    const char *name = a->shape.model >= 0 ? knee_model_names.name((size_t)a->shape.model) : NULL;
    return name ? name : "the model";
}

static const char *gpu_name(const struct knee_plan_answer *a)
{
    const struct knee_gpu *gpu = knee_hardware_gpu(&a->platform.hw);
    return gpu ? gpu->name : "GPU";
}

/* "tp 4, pp 8 x 5, dp 2, micro-batch 1, zero1, full recomputation" */
void knee_plan_words(const struct knee_plan *p, struct knee_text *text)
{
    knee_text_printf(text, "tp %.0f, ", p->tp);
    if (p->pp > 1)
        knee_text_printf(text, "pp %.0f", p->pp);
    if (p->pp > 1 && p->vp > 1)
        knee_text_printf(text, " in %.0f pieces each", p->vp);
    if (p->pp > 1)
        knee_text_puts(text, ", ");
    if (p->cp > 1)
        knee_text_printf(text, "cp %.0f, ", p->cp);
    if (p->ep > 1)
        knee_text_printf(text, "ep %.0f, ", p->ep);
    knee_text_printf(text, "dp %.0f, micro-batch %.0f, %s", p->dp, p->micro_batch,
                     p->shard == KNEE_REPLICATE ? "no sharding"
                                                : word(&knee_shard_names, p->shard));
    if (p->shard == KNEE_ZERO3 && p->shard_size < p->dp * p->cp)
        knee_text_printf(text, " inside %.0f GPUs", p->shard_size);
    knee_text_printf(text, ", recompute %s", word(&knee_recompute_names, p->recompute));
    if (p->pp > 1)
        knee_text_printf(text, ", %s", word(&knee_schedule_names, p->schedule));
    if (p->offload == KNEE_OFFLOAD_OPTIMIZER)
        knee_text_puts(text, ", optimizer on the host");
}

/* ---- The verdict ---- */

static struct knee_sure step_sure(const struct knee_plan_cost *c)
{
    return (struct knee_sure){c->low_s, c->high_s};
}

static struct knee_word step_word(const struct knee_plan_cost *c)
{
    return knee_surely(c->step_s, step_sure(c), KNEE_UNIT_SECONDS);
}

static struct knee_word efficiency_word(const struct knee_plan_row *row)
{
    return knee_surely(row->efficiency, row->efficiency_sure, KNEE_UNIT_FRACTION);
}

static void smallest_words(const struct knee_plan_answer *a, struct knee_text *text)
{
    if (!isnan(a->smallest_gpus))
        knee_text_printf(text, " The smallest number of GPUs that it fits on is %.0f.",
                         a->smallest_gpus);
}

static void no_plan(const struct knee_plan_answer *a, struct knee_text *text)
{
    const struct knee_plan_row *row = &a->rows[a->row_count - 1];
    if (!row->found.nearest_valid) {
        knee_text_printf(
            text,
            "No plan exists on %.0f GPUs: no degrees divide the GPUs, heads, layers and "
            "batch at once. Change --gpus or --global-batch.",
            row->gpus);
        return;
    }
    const struct knee_memory *m = &row->found.nearest.cost.memory;
    knee_text_printf(text, "Nothing fits on %.0f %s: the smallest plan needs %s of %s (", row->gpus,
                     gpu_name(a), knee_human(m->total, KNEE_UNIT_BYTES).s,
                     knee_human(m->capacity, KNEE_UNIT_BYTES).s);
    knee_plan_words(&row->found.nearest.plan, text);
    knee_text_puts(text, ").");
    if (a->remedy_count > 0)
        knee_text_printf(text, " Cheapest that makes it fit: %s, step %s.", a->remedies[0].what,
                         step_word(&a->remedies[0].cost).s);
    else
        knee_text_puts(text, " No single change makes it fit: use more GPUs.");
    smallest_words(a, text);
}

static void baseline_words(const struct knee_plan_answer *a, struct knee_text *text)
{
    knee_text_printf(text, ", E(%.0f) = 100 %%.", a->baseline_gpus);
}

const struct knee_plan_row *knee_plan_smallest(const struct knee_plan_answer *a)
{
    for (size_t i = 0; i < a->row_count; i++)
        if (a->rows[i].fits)
            return &a->rows[i];
    return NULL;
}

/* Plans fit, but already the smallest count is past the knee. */
static void not_worth_it(const struct knee_plan_answer *a, struct knee_text *text)
{
    const struct knee_plan_row *row = knee_plan_smallest(a);
    const struct knee_found *best = &row->found.best[0];
    knee_text_printf(text, "%.0f GPUs are too many: E(%.0f) = %s < %s", row->gpus, row->gpus,
                     efficiency_word(row).s, knee_percent(a->question.tolerance).s);
    baseline_words(a, text);
    knee_text_puts(text, " The best plan there is ");
    knee_plan_words(&best->plan, text);
    knee_text_printf(text, ": step %s, %s tokens/s.", step_word(&best->cost).s,
                     knee_human(best->cost.tokens_per_s, KNEE_UNIT_COUNT).s);
}

static void not_met(const struct knee_plan_answer *a, struct knee_text *text)
{
    const struct knee_plan_question *q = &a->question;
    if (isnan(q->budget) && isnan(q->deadline_s)) {
        not_worth_it(a, text);
        return;
    }
    knee_text_puts(text, "No GPU count that was tried meets");
    if (!isnan(q->budget))
        knee_text_printf(text, " the budget of $%.0f", q->budget);
    if (!isnan(q->deadline_s))
        knee_text_printf(text, "%s the deadline of %s", isnan(q->budget) ? "" : " and",
                         knee_human(q->deadline_s, KNEE_UNIT_SECONDS).s);
    knee_text_printf(text, ": the fastest takes %s", knee_human(a->fastest_s, KNEE_UNIT_SECONDS).s);
    if (!isnan(a->cheapest))
        knee_text_printf(text, ", the cheapest costs $%.0f", a->cheapest);
    knee_text_puts(text, ".");
}

/* Why the bands are the wider ones. */
static void less_sure(const struct knee_plan_answer *a, struct knee_text *text)
{
    if (a->machine.why_assumed)
        knee_text_printf(text, " It could be surer: %s.", a->machine.why_assumed);
    else if (a->shape.experts > 1)
        knee_text_puts(text, " It could be surer: few measured runs have experts.");
}

/* What naming a framework costs: its plan against the best that any could run, as the same
 * software. */
static void framework_words(const struct knee_plan_answer *a, const struct knee_plan_row *row,
                            struct knee_text *text)
{
    if (!a->framework || !a->free_known)
        return;
    double quicker = row->found.best[0].cost.step_s / a->free.cost.step_s - 1;
    const char *name = knee_framework_word(a->framework);
    if (!knee_shows(quicker)) {
        knee_text_printf(text, " What %s cannot do was left out; none of it would be quicker.",
                         name);
        return;
    }
    knee_text_printf(text, " What %s cannot do was left out; without --framework: %s quicker (",
                     name, knee_percent(quicker).s);
    knee_plan_words(&a->free.plan, text);
    knee_text_puts(text, ").");
}

static void best_words(const struct knee_plan_answer *a, const struct knee_plan_row *row,
                       struct knee_text *text)
{
    const struct knee_found *best = &row->found.best[0];
    const struct knee_plan_cost *c = &best->cost;
    struct knee_params params;
    knee_shape_params(&a->shape, &params);
    knee_text_printf(text, "Best plan for %s (%s parameters) on %.0f %s", model_name(a),
                     knee_human(params.total, KNEE_UNIT_COUNT).s, row->gpus, gpu_name(a));
    if (best->plan.gpus < row->gpus)
        knee_text_printf(text, ", of which %.0f stay idle", row->gpus - best->plan.gpus);
    knee_text_puts(text, ": ");
    knee_plan_words(&best->plan, text);
    knee_text_printf(text,
                     ". Step %s, %s tokens/s, MFU %s counting attention over all pairs, %s causal.",
                     step_word(c).s, knee_human(c->tokens_per_s, KNEE_UNIT_COUNT).s,
                     knee_percent(c->mfu_full).s, knee_percent(c->mfu_causal).s);
    enum knee_part part = knee_plan_binding(c);
    if (part == KNEE_PART_GEMM)
        knee_text_printf(text, " No overhead above %g %%.", 100 * KNEE_NO_BOTTLENECK);
    else
        knee_text_printf(text, " Largest overhead: %s, %s of the step (%s).", knee_part_name(part),
                         knee_percent(c->part_s[part] / c->step_s).s,
                         knee_human(c->part_s[part], KNEE_UNIT_SECONDS).s);
    knee_text_printf(text, " It takes %s of the GPU's %s and fits with a probability of %.0f %%.",
                     knee_memory_word(&c->memory).s,
                     knee_human(c->memory.capacity, KNEE_UNIT_BYTES).s,
                     fmin(99, 100 * knee_memory_fit(&c->memory)));
    smallest_words(a, text);
    framework_words(a, row, text);
    less_sure(a, text);
    if (a->ties > 1 && row == &a->rows[a->chosen])
        knee_text_printf(text, " The first %zu plans are closer than knee can tell (%s): time %s.",
                         a->ties, knee_percent(a->apart).s,
                         a->ties == 2 ? "both" : "the first three");
}

static void cost_words(const struct knee_plan_answer *a, const struct knee_plan_row *row,
                       struct knee_text *text)
{
    if (!isnan(row->time_s))
        knee_text_printf(text, " %s tokens take %s",
                         knee_human(a->question.tokens, KNEE_UNIT_COUNT).s,
                         knee_surely(row->time_s, row->time_sure, KNEE_UNIT_SECONDS).s);
    if (!isnan(row->cost))
        knee_text_printf(text, " and cost %s",
                         knee_surely(row->cost, row->cost_sure, KNEE_UNIT_DOLLARS).s);
    if (!isnan(row->time_s))
        knee_text_puts(text, ".");
    else if (!isnan(row->cost_per_billion))
        knee_text_printf(text, " A billion tokens cost $%.0f.", row->cost_per_billion);
}

static void knee_words(const struct knee_plan_answer *a, struct knee_text *text)
{
    const struct knee_plan_row *at = NULL, *next = NULL;
    for (size_t i = 0; i < a->row_count; i++) {
        if (a->rows[i].gpus == a->knee_gpus)
            at = &a->rows[i];
        else if (at && !next && a->rows[i].fits)
            next = &a->rows[i];
    }
    if (a->row_count < 2 || !at)
        return;
    if (!next) {
        knee_text_printf(text, " Up to %.0f GPUs every count tried is worth it: E(%.0f) = %s >= %s",
                         at->gpus, at->gpus, efficiency_word(at).s,
                         knee_percent(a->question.tolerance).s);
        baseline_words(a, text);
        return;
    }
    knee_text_printf(text, " Do not scale past %.0f GPUs: E(%.0f) = %s >= %s > %s = E(%.0f)",
                     at->gpus, at->gpus, efficiency_word(at).s,
                     knee_percent(a->question.tolerance).s, efficiency_word(next).s, next->gpus);
    baseline_words(a, text);
}

/* knee predict's knee beside this one, with the reason where they differ. */
static void replicas_words(const struct knee_plan_answer *a, struct knee_text *text)
{
    double capacity = a->machine.memory_bytes;
    if (a->row_count < 2 || isnan(a->replicas_knee))
        return;
    knee_text_printf(text, " Data parallel alone (knee predict) has its knee at %.0f",
                     a->replicas_knee);
    if (a->replicas_knee == a->replicas_limit)
        knee_text_puts(text, ", one sequence each");
    if (a->replicas_needed_bytes > capacity)
        knee_text_printf(text, ", if it fitted: unsharded it takes %s of %s",
                         knee_human(a->replicas_needed_bytes, KNEE_UNIT_BYTES).s,
                         knee_human(capacity, KNEE_UNIT_BYTES).s);
    knee_text_puts(text, ".");
}

static void simulated_words(const struct knee_plan_answer *a, struct knee_text *text);

static void sentence(const struct knee_plan_answer *a, struct knee_text *text)
{
    bool any = !isnan(a->peak_gpus);
    if (!any)
        no_plan(a, text);
    else if (a->chosen == SIZE_MAX)
        not_met(a, text);
    else {
        const struct knee_plan_row *row = &a->rows[a->chosen];
        best_words(a, row, text);
        cost_words(a, row, text);
    }
    if (any) {
        knee_words(a, text);
        replicas_words(a, text);
    }
    simulated_words(a, text);
}

/* ---- Tables ---- */

/* Why a plan stands where it does: what the first saves against the second, what the others lose
 * to the first. */
static void why(const struct knee_search_result *found, size_t i, struct knee_table *table)
{
    if (found->count < 2) {
        knee_table_cell(table, "the only one");
        return;
    }
    const struct knee_found *first = &found->best[0], *other = &found->best[i == 0 ? 1 : i];
    struct knee_advantage a = knee_plan_advantage(&first->cost, &other->cost);
    if (a.none)
        knee_table_cell(table, "as fast");
    else
        knee_table_cell(table, "%s %s on %s", i == 0 ? "saves" : "loses",
                        knee_human(a.seconds, KNEE_UNIT_SECONDS).s, knee_part_name(a.part));
}

static void plan_cells(const struct knee_plan *p, struct knee_table *table)
{
    knee_table_cell(table, "%.0f", p->tp);
    knee_table_cell(table, p->vp > 1 ? "%.0f x %.0f" : "%.0f", p->pp, p->vp);
    knee_table_cell(table, "%.0f", p->cp);
    knee_table_cell(table, "%.0f", p->ep);
    knee_table_cell(table, "%.0f", p->dp);
    knee_table_cell(table, "%.0f", p->micro_batch);
    if (p->shard == KNEE_ZERO3 && p->shard_size < p->dp * p->cp)
        knee_table_cell(table, "zero3/%.0f", p->shard_size);
    else
        knee_table_cell(table, "%s", word(&knee_shard_names, p->shard));
    knee_table_cell(table, "%s", word(&knee_recompute_names, p->recompute));
    knee_table_cell(table, "%s", p->pp > 1 ? word(&knee_schedule_names, p->schedule) : "-");
    knee_table_cell(table, "%s", p->offload == KNEE_OFFLOAD_OPTIMIZER ? "optimizer" : "-");
}

static void memory_cell(const struct knee_memory *m, struct knee_table *table)
{
    struct knee_sure sure = knee_memory_sure(m);
    knee_table_cell(table, "%.1f (%.1f to %.1f)", m->total / GB, sure.low / GB, sure.high / GB);
}

static void cost_cells(const struct knee_plan_cost *c, double gpus, struct knee_table *table)
{
    enum knee_part part = knee_plan_binding(c);
    knee_table_cell(table, "%s", step_word(c).s);
    knee_table_cell(table, "%.0f", c->tokens_per_s / gpus);
    knee_table_cell(table, "%s", knee_percent(c->mfu_full).s);
    memory_cell(&c->memory, table);
    knee_table_cell(table, "%s", part == KNEE_PART_GEMM ? "the work" : knee_part_name(part));
}

static void best_table(const struct knee_plan_row *row, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {
        "tp",       "pp x vp", "cp",   "ep",        "dp",  "batch",  "shard", "recompute",
        "schedule", "offload", "step", "tok/s/GPU", "MFU", "mem GB", "binds", "why"};
    struct knee_table table;
    knee_table_init(&table, "rrrrrrllllrrrrll", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < row->found.count; i++) {
        plan_cells(&row->found.best[i].plan, &table);
        cost_cells(&row->found.best[i].cost, row->gpus, &table);
        why(&row->found, i, &table);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void idle_words(const struct knee_plan_row *row, struct knee_text *text)
{
    double idle = row->gpus - row->found.best[0].plan.gpus;
    if (idle > 0)
        knee_text_printf(text, "%.0f idle; ", idle);
}

static void counts_table(const struct knee_plan_answer *a, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {"GPUs",   "step", "tokens/s", "E(K)",         "MFU",
                                        "mem GB", "time", "cost $",   "$/1e9 tokens", "best plan"};
    struct knee_table table;
    knee_table_init(&table, "rrrrrrrrrl", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < a->row_count; i++) {
        const struct knee_plan_row *row = &a->rows[i];
        const struct knee_plan_cost *c = &row->found.best[0].cost;
        struct knee_text plan = {.alloc = text->alloc};
        knee_table_cell(&table, "%.0f%s", row->gpus, i == a->chosen ? " <" : "");
        if (row->fits)
            idle_words(row, &plan), knee_plan_words(&row->found.best[0].plan, &plan);
        knee_table_cell(&table, "%s", row->fits ? step_word(c).s : "-");
        knee_table_number(&table, row->fits ? c->tokens_per_s : NAN, KNEE_UNIT_COUNT);
        knee_table_cell(&table, "%s", row->fits ? efficiency_word(row).s : "-");
        knee_table_cell(&table, "%s", row->fits ? knee_percent(c->mfu_full).s : "-");
        if (row->fits)
            memory_cell(&c->memory, &table);
        else
            knee_table_cell(&table, "-");
        knee_table_number(&table, row->time_s, KNEE_UNIT_SECONDS);
        if (isnan(row->cost))
            knee_table_cell(&table, "-");
        else
            knee_table_cell(&table, "%.0f", row->cost);
        if (isnan(row->cost_per_billion))
            knee_table_cell(&table, "-");
        else
            knee_table_cell(&table, "%.0f", row->cost_per_billion);
        knee_table_cell(&table, "%.150s", row->fits ? plan.data : "nothing fits");
        text->failed = text->failed || plan.failed;
        knee_text_release(&plan);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

/* Whether a place of the front adds anything to the one before. */
static bool adds(const struct knee_search_result *found, int i)
{
    double step = found->front[i].cost.step_s;
    return isfinite(step) && (i == 0 || step < found->front[i - 1].cost.step_s);
}

static void front_table(const struct knee_plan_answer *a, const struct knee_plan_row *row,
                        enum knee_format format, const struct knee_style *style,
                        struct knee_text *text)
{
    static const char *const names[] = {"mem GB", "step", "against best", "$/1e9 tokens", "plan"};
    struct knee_table table;
    knee_table_init(&table, "rrrrl", text->alloc);
    KNEE_HEADS(&table, names);
    for (int i = 0; i < KNEE_FRONT; i++) {
        const struct knee_found *f = &row->found.front[i];
        if (!adds(&row->found, i))
            continue;
        struct knee_text plan = {.alloc = text->alloc};
        knee_plan_words(&f->plan, &plan);
        double dollars = knee_plan_billion_cost(a, row->gpus, &f->cost);
        memory_cell(&f->cost.memory, &table);
        knee_table_cell(&table, "%s", step_word(&f->cost).s);
        knee_table_cell(&table, "%s",
                        knee_signed_percent(f->cost.step_s / row->found.best[0].cost.step_s - 1).s);
        if (isnan(dollars))
            knee_table_cell(&table, "-");
        else
            knee_table_cell(&table, "%.0f", dollars);
        knee_table_cell(&table, "%.150s", plan.failed ? "" : plan.data);
        text->failed = text->failed || plan.failed;
        knee_text_release(&plan);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void parts_table(const struct knee_plan_cost *c, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    struct knee_table table;
    knee_table_init(&table, "lrr", text->alloc);
    static const char *const names[] = {"where the step goes", "time", "share"};
    KNEE_HEADS(&table, names);
    for (int part = 0; part < KNEE_PARTS; part++) {
        if (!knee_shows(c->part_s[part] / c->step_s))
            continue;
        knee_table_cell(&table, "%s", knee_part_name((enum knee_part)part));
        knee_table_number(&table, c->part_s[part], KNEE_UNIT_SECONDS);
        knee_table_cell(&table, "%s", knee_percent(c->part_s[part] / c->step_s).s);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static const struct {
    const char *name, *key;
    size_t offset;
} rooms[] = {
    {"parameters", "parameters_bytes", offsetof(struct knee_memory, parameters)},
    {"gradients", "gradients_bytes", offsetof(struct knee_memory, gradients)},
    {"optimizer", "optimizer_bytes", offsetof(struct knee_memory, optimizer)},
    {"activations", "activations_bytes", offsetof(struct knee_memory, activations)},
    {"buffers", "buffers_bytes", offsetof(struct knee_memory, buffers)},
    {"fragmentation", "fragmentation_bytes", offsetof(struct knee_memory, fragmentation)},
    {"context", "base_bytes", offsetof(struct knee_memory, base)},
    {"total", "total_bytes", offsetof(struct knee_memory, total)},
    {"of", "capacity_bytes", offsetof(struct knee_memory, capacity)},
};
#define ROOMS (sizeof rooms / sizeof *rooms)

static double room(const struct knee_memory *m, size_t i)
{
    return *(const double *)(const void *)((const char *)m + rooms[i].offset);
}

static void memory_table(const struct knee_memory *m, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    struct knee_table table;
    knee_table_init(&table, "lr", text->alloc);
    static const char *const names[] = {"memory of one GPU", "bytes"};
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < ROOMS; i++) {
        bool total = rooms[i].offset == offsetof(struct knee_memory, total);
        knee_table_cell(&table, "%s", rooms[i].name);
        if (total)
            knee_table_cell(&table, "%s", knee_memory_word(m).s);
        else
            knee_table_number(&table, room(m, i), KNEE_UNIT_BYTES);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void remedies_table(const struct knee_plan_answer *a, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text)
{
    struct knee_table table;
    knee_table_init(&table, "lrr", text->alloc);
    static const char *const names[] = {"makes it fit", "step", "mem GB"};
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < a->remedy_count; i++) {
        knee_table_cell(&table, "%s", a->remedies[i].what);
        knee_table_cell(&table, "%s", step_word(&a->remedies[i].cost).s);
        memory_cell(&a->remedies[i].cost.memory, &table);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

/* ---- Placement ---- */

static const char *link_words(const struct knee_plan_axis *axis)
{
    return axis->inside >= axis->size ? "node link"
           : axis->inside <= 1        ? "network"
                                      : "node link and network";
}

static void placement_table(const struct knee_plan_answer *a, const struct knee_plan *plan,
                            enum knee_format format, const struct knee_style *style,
                            struct knee_text *text)
{
    static const char *const names[] = {"axis", "ranks", "apart", "in a node", "over"};
    struct knee_plan_axis axes[KNEE_AXES_MAX];
    size_t count = knee_plan_axes(plan, &a->machine, axes);
    struct knee_table table;
    knee_table_init(&table, "lrrrl", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < count; i++) {
        knee_table_cell(&table, "%s", axes[i].name);
        knee_table_cell(&table, "%.0f", axes[i].size);
        knee_table_cell(&table, "%.0f", axes[i].stride);
        knee_table_cell(&table, "%.0f", axes[i].inside);
        knee_table_cell(&table, "%s", link_words(&axes[i]));
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void json_placement(struct knee_json *json, const struct knee_plan_answer *a,
                           const struct knee_plan *plan)
{
    struct knee_plan_axis axes[KNEE_AXES_MAX];
    size_t count = knee_plan_axes(plan, &a->machine, axes);
    knee_json_open(json, "placement", '[');
    for (size_t i = 0; i < count; i++) {
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "axis", axes[i].name);
        knee_json_number(json, "ranks", axes[i].size);
        knee_json_number(json, "apart", axes[i].stride);
        knee_json_number(json, "in_node", axes[i].inside);
        knee_json_string(json, "over", link_words(&axes[i]));
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

/* ---- The simulated step ---- */

static void simulated_words(const struct knee_plan_answer *a, struct knee_text *text)
{
    if (!a->simulated)
        return;
    knee_text_printf(text,
                     " Simulated event by event the step takes %s; the closed form without "
                     "stragglers and loader, which are not simulated, says %s (%s).",
                     knee_human(a->simulated_s, KNEE_UNIT_SECONDS).s,
                     knee_human(a->closed_s, KNEE_UNIT_SECONDS).s,
                     knee_signed_percent(a->closed_s / a->simulated_s - 1).s);
}

static void simulated_table(const struct knee_plan_answer *a, enum knee_format format,
                            const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {"simulated", "first stage", "share", "last stage", "share"};
    const struct knee_account *account = a->simulated;
    struct knee_table table;
    knee_table_init(&table, "lrrrr", text->alloc);
    KNEE_HEADS(&table, names);
    for (int label = 0; label < KNEE_LABELS; label++) {
        knee_table_cell(&table, "%s", knee_label_name((enum knee_label)label));
        for (size_t end = 0; end < 2; end++) {
            const struct knee_ledger *l = &account->ranks[end ? account->rank_count - 1 : 0].ledger;
            double share = (double)l->label_ns[label] / (double)l->window_ns;
            if (label == KNEE_WAIT && !account->ranks[0].split)
                share = NAN; /* other stages' lateness is inside receives, as in a recording */
            knee_table_number(&table, share * 1e-9 * (double)l->window_ns, KNEE_UNIT_SECONDS);
            knee_table_cell(&table, "%s", isnan(share) ? "-" : knee_percent(share).s);
        }
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void json_simulated(struct knee_json *json, const struct knee_plan_answer *a)
{
    if (!a->simulated)
        return;
    knee_json_open(json, "simulation", '{');
    knee_json_number(json, "step_s", a->simulated_s);
    knee_json_number(json, "closed_form_s", a->closed_s);
    knee_json_open(json, "stages", '[');
    for (size_t i = 0; i < a->simulated->rank_count; i++) {
        const struct knee_rank_account *rank = &a->simulated->ranks[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_number(json, "rank", (double)rank->rank);
        knee_json_ledger(json, &rank->ledger, rank->split, true);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
    knee_json_close(json, '}');
}

/* The row that the tables speak of: the one chosen, else the last that fits; NULL: none does. */
const struct knee_plan_row *knee_plan_shown(const struct knee_plan_answer *a)
{
    if (a->chosen != SIZE_MAX)
        return &a->rows[a->chosen];
    for (size_t i = a->row_count; i-- > 0;)
        if (a->rows[i].fits)
            return &a->rows[i];
    return NULL;
}

static void write_text(const struct knee_plan_answer *a, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct knee_text verdict = {.alloc = text->alloc};
    struct knee_plain plain = knee_plain_empty(text->alloc);
    knee_plan_plain(a, &plain);
    knee_say_plain(&plain, format, style, text);
    sentence(a, &verdict);
    knee_say(&verdict, format, style, text);
    const struct knee_plan_row *row = knee_plan_shown(a);
    if (a->row_count > 1) {
        knee_text_puts(text, "\n");
        counts_table(a, format, style, text);
    }
    if (a->remedy_count > 0) {
        knee_text_puts(text, "\n");
        remedies_table(a, format, style, text);
    }
    if (!row)
        return;
    knee_text_puts(text, "\n");
    best_table(row, format, style, text);
    if (a->simulated) {
        knee_text_puts(text, "\n");
        simulated_table(a, format, style, text);
    }
    if (style->brief)
        return;
    knee_text_puts(text, "\n");
    parts_table(&row->found.best[0].cost, format, style, text);
    knee_text_puts(text, "\n");
    if (row->gpus > 1) {
        placement_table(a, &row->found.best[0].plan, format, style, text);
        knee_text_puts(text, "\n");
    }
    memory_table(&row->found.best[0].cost.memory, format, style, text);
    knee_text_puts(text, "\n  The front: less memory for more time\n\n");
    front_table(a, row, format, style, text);
    knee_text_puts(text, "\n");
    knee_inputs_write(&knee_shape_keys, &a->shape, format, style, text);
    knee_text_puts(text, "\n");
    knee_inputs_write(&knee_platform_keys, &a->platform, format, style, text);
}

/* ---- CSV and JSON ---- */

static void write_csv(const struct knee_plan_answer *a, const struct knee_style *style,
                      struct knee_text *text)
{
    static const char *const names[] = {"gpus",
                                        "rank",
                                        "tp",
                                        "pp",
                                        "vp",
                                        "cp",
                                        "ep",
                                        "etp",
                                        "dp",
                                        "micro_batch",
                                        "shard",
                                        "shard_size",
                                        "recompute",
                                        "schedule",
                                        "offload",
                                        "seq_par",
                                        "step_s",
                                        "tokens_per_s",
                                        "mfu_full",
                                        "mfu_causal",
                                        "memory_bytes",
                                        "efficiency",
                                        "cost",
                                        "binds",
                                        "low_s",
                                        "high_s",
                                        "low_bytes",
                                        "high_bytes",
                                        "fit_probability",
                                        "low_efficiency",
                                        "high_efficiency"};
    struct knee_table table;
    knee_table_init(&table, "rrrrrrrrrrlrlllrrrrrrrrlrrrrrrr", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < a->row_count; i++)
        for (size_t k = 0; k < a->rows[i].found.count; k++) {
            const struct knee_plan *p = &a->rows[i].found.best[k].plan;
            const struct knee_plan_cost *c = &a->rows[i].found.best[k].cost;
            const double before[] = {a->rows[i].gpus, (double)k + 1, p->tp,  p->pp, p->vp,
                                     p->cp,           p->ep,         p->etp, p->dp, p->micro_batch};
            for (size_t j = 0; j < sizeof before / sizeof *before; j++)
                knee_table_exact(&table, before[j]);
            knee_table_cell(&table, "%s", word(&knee_shard_names, p->shard));
            knee_table_exact(&table, p->shard_size);
            knee_table_cell(&table, "%s", word(&knee_recompute_names, p->recompute));
            knee_table_cell(&table, "%s", word(&knee_schedule_names, p->schedule));
            knee_table_cell(&table, "%s", word(&knee_offload_names, p->offload));
            const double after[] = {p->seq_par,
                                    c->step_s,
                                    c->tokens_per_s,
                                    c->mfu_full,
                                    c->mfu_causal,
                                    c->memory.total,
                                    k == 0 ? a->rows[i].efficiency : NAN,
                                    k == 0 ? a->rows[i].cost : NAN};
            for (size_t j = 0; j < sizeof after / sizeof *after; j++)
                knee_table_exact(&table, after[j]);
            knee_table_cell(&table, "%s", knee_part_name(knee_plan_binding(c)));
            struct knee_sure bytes = knee_memory_sure(&c->memory);
            const double sure[] = {c->low_s,
                                   c->high_s,
                                   bytes.low,
                                   bytes.high,
                                   knee_memory_fit(&c->memory),
                                   k == 0 ? a->rows[i].efficiency_sure.low : NAN,
                                   k == 0 ? a->rows[i].efficiency_sure.high : NAN};
            for (size_t j = 0; j < sizeof sure / sizeof *sure; j++)
                knee_table_exact(&table, sure[j]);
        }
    knee_table_write(&table, KNEE_CSV, style, text);
    knee_table_release(&table);
}

static void json_plan(struct knee_json *json, const char *key, const struct knee_plan *p)
{
    knee_json_open_flat(json, key, '{');
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"gpus", p->gpus},
                   {"tp", p->tp},
                   {"pp", p->pp},
                   {"vp", p->vp},
                   {"cp", p->cp},
                   {"ep", p->ep},
                   {"etp", p->etp},
                   {"dp", p->dp},
                   {"micro_batch", p->micro_batch},
                   {"global_batch", p->global_batch},
                   {"shard_size", p->shard_size},
                   {"seq_par", p->seq_par}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        knee_json_number(json, numbers[i].name, numbers[i].value);
    knee_json_string(json, "shard", word(&knee_shard_names, p->shard));
    knee_json_string(json, "recompute", word(&knee_recompute_names, p->recompute));
    knee_json_string(json, "schedule", word(&knee_schedule_names, p->schedule));
    knee_json_string(json, "precision", word(&knee_precision_names, p->precision));
    knee_json_string(json, "offload", word(&knee_offload_names, p->offload));
    knee_json_close(json, '}');
}

void knee_memory_json(struct knee_json *json, const struct knee_memory *memory)
{
    knee_json_open_flat(json, "memory", '{');
    for (size_t i = 0; i < ROOMS; i++)
        knee_json_number(json, rooms[i].key, room(memory, i));
    knee_json_number(json, "low_bytes", knee_memory_sure(memory).low);
    knee_json_number(json, "high_bytes", knee_memory_sure(memory).high);
    knee_json_number(json, "fit_probability", knee_memory_fit(memory));
    knee_json_close(json, '}');
}

void knee_found_json(struct knee_json *json, const char *key, const struct knee_found *f)
{
    const struct knee_plan_cost *c = &f->cost;
    struct knee_step step;
    knee_plan_step(c, &step);
    knee_json_open(json, key, '{');
    json_plan(json, "plan", &f->plan);
    knee_json_number(json, "step_s", c->step_s);
    knee_json_number(json, "low_s", c->low_s);
    knee_json_number(json, "high_s", c->high_s);
    knee_json_number(json, "tokens_per_s", c->tokens_per_s);
    knee_json_number(json, "mfu_full_attention", c->mfu_full);
    knee_json_number(json, "mfu_causal_attention", c->mfu_causal);
    knee_json_number(json, "hfu_causal_attention", c->hfu);
    knee_json_string(json, "binding", knee_part_name(knee_plan_binding(c)));
    knee_json_number(json, "ratio", knee_step_ratio(&step));
    knee_json_open_flat(json, "parts_s", '{');
    for (int part = 0; part < KNEE_PARTS; part++)
        knee_json_number(json, knee_part_name((enum knee_part)part), c->part_s[part]);
    knee_json_close(json, '}');
    knee_memory_json(json, &c->memory);
    knee_json_bool(json, "fits", c->fits);
    knee_json_close(json, '}');
}

static void json_row(struct knee_json *json, const struct knee_plan_row *row)
{
    knee_json_open(json, NULL, '{');
    knee_json_number(json, "gpus", row->gpus);
    knee_json_bool(json, "fits", row->fits);
    knee_json_number(json, "idle_gpus", row->fits ? row->gpus - row->found.best[0].plan.gpus : NAN);
    knee_json_sure(json, "efficiency", row->efficiency, row->efficiency_sure);
    knee_json_sure(json, "time_s", row->time_s, row->time_sure);
    knee_json_sure(json, "cost", row->cost, row->cost_sure);
    knee_json_number(json, "cost_per_billion_tokens", row->cost_per_billion);
    knee_json_open(json, "best", '[');
    for (size_t i = 0; i < row->found.count; i++)
        knee_found_json(json, NULL, &row->found.best[i]);
    knee_json_close(json, ']');
    knee_json_open(json, "front", '[');
    for (int i = 0; i < KNEE_FRONT; i++)
        if (adds(&row->found, i))
            knee_found_json(json, NULL, &row->found.front[i]);
    knee_json_close(json, ']');
    if (!row->fits && row->found.nearest_valid) {
        knee_json_open(json, "nearest", '[');
        knee_found_json(json, NULL, &row->found.nearest);
        knee_json_close(json, ']');
    }
    knee_json_open_flat(json, "search", '{'); /* what could be left out depends on the threads */
    knee_json_number(json, "plans", row->found.plans);
    knee_json_number(json, "priced", row->found.priced);
    knee_json_number(json, "too_large", row->found.too_large);
    knee_json_number(json, "pruned_splits", row->found.pruned);
    knee_json_close(json, '}');
    knee_json_close(json, '}');
}

/* What the chosen plan sends, call by call. */
static void json_traffic(struct knee_json *json, const struct knee_plan_answer *a)
{
    struct knee_traffic rows[KNEE_TRAFFIC_MAX];
    size_t count = 0;
    if (a->chosen != SIZE_MAX)
        count = knee_plan_traffic(&a->shape, &a->machine, &a->rows[a->chosen].found.best[0].plan,
                                  rows, KNEE_TRAFFIC_MAX);
    knee_json_open(json, "collectives", '[');
    for (size_t i = 0; i < count && i < KNEE_TRAFFIC_MAX; i++) {
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "axis", knee_part_name(rows[i].part));
        knee_json_string(json, "collective", knee_op_name(rows[i].op));
        knee_json_number(json, "ranks", rows[i].group.size);
        knee_json_number(json, "stride", rows[i].group.stride);
        knee_json_number(json, "bytes", rows[i].bytes);
        knee_json_number(json, "calls", rows[i].calls);
        knee_json_number(json, "time_s", rows[i].each_s);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void write_json(const struct knee_plan_answer *a, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    struct knee_text verdict = {.alloc = text->alloc};
    struct knee_plain plain = knee_plain_empty(text->alloc);
    sentence(a, &verdict);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.plan/1");
    knee_json_number(&json, "baseline_gpus", a->baseline_gpus);
    knee_json_number(&json, "baseline_tokens_per_s", a->baseline_tokens_per_s);
    knee_json_number(&json, "smallest_gpus", a->smallest_gpus);
    knee_json_open_flat(&json, "data_parallel_alone", '{');
    knee_json_number(&json, "knee_workers", a->replicas_knee);
    knee_json_number(&json, "limit_workers", a->replicas_limit);
    knee_json_number(&json, "unsharded_bytes", a->replicas_needed_bytes);
    knee_json_close(&json, '}');
    json_traffic(&json, a);
    knee_json_open(&json, "verdict", '{');
    knee_json_words(&json, "sentence", &verdict);
    knee_plan_plain(a, &plain);
    knee_json_plain(&json, &plain);
    knee_json_number(&json, "gpus", a->chosen == SIZE_MAX ? NAN : a->rows[a->chosen].gpus);
    knee_json_sure(&json, "knee_gpus", a->knee_gpus, a->knee_sure);
    knee_json_string(&json, "less_sure", a->machine.why_assumed);
    knee_json_string(&json, "framework", a->framework ? knee_framework_word(a->framework) : "any");
    if (a->free_known)
        knee_found_json(&json, "without_framework", &a->free);
    knee_json_number(&json, "peak_throughput_gpus", a->peak_gpus);
    knee_json_number(&json, "tolerance", a->question.tolerance);
    knee_json_number(&json, "ties", (double)a->ties);
    knee_json_number(&json, "ties_apart", a->apart);
    knee_json_close(&json, '}');
    knee_json_open(&json, "rows", '[');
    for (size_t i = 0; i < a->row_count; i++)
        json_row(&json, &a->rows[i]);
    knee_json_close(&json, ']');
    if (knee_plan_shown(a))
        json_placement(&json, a, &knee_plan_shown(a)->found.best[0].plan);
    json_simulated(&json, a);
    knee_json_open(&json, "remedies", '[');
    for (size_t i = 0; i < a->remedy_count; i++) {
        knee_json_open(&json, NULL, '{');
        knee_json_string(&json, "what", a->remedies[i].what);
        knee_json_sure(&json, "step_s", a->remedies[i].cost.step_s,
                       step_sure(&a->remedies[i].cost));
        knee_json_sure(&json, "memory_bytes", a->remedies[i].cost.memory.total,
                       knee_memory_sure(&a->remedies[i].cost.memory));
        json_plan(&json, "plan", &a->remedies[i].plan);
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_open(&json, "model", '{');
    knee_inputs_json(&knee_shape_keys, &a->shape, &json);
    knee_json_close(&json, '}');
    knee_json_open(&json, "platform", '{');
    knee_inputs_json(&knee_platform_keys, &a->platform, &json);
    knee_json_close(&json, '}');
    knee_json_close(&json, '}');
}

void knee_write_plan(const struct knee_plan_answer *answer, enum knee_format format,
                     const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(answer, text);
    else if (format == KNEE_CSV)
        write_csv(answer, style, text);
    else
        write_text(answer, format, style, text);
}

/* ---- Operations ---- */

static void ops_rows(const struct knee_plan_answer *a, const struct knee_plan *plan,
                     enum knee_operations_of what, const char *where, struct knee_table *table)
{
    struct knee_operation ops[KNEE_OPERATIONS_MAX];
    size_t count = knee_plan_ops(&a->shape, &a->machine, plan, what, ops, KNEE_OPERATIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct knee_operation *op = &ops[i];
        double rate = op->flops * op->count / op->seconds;
        knee_table_cell(table, "%s", where);
        knee_table_cell(table, "%s", op->backward ? "backward" : "forward");
        knee_table_cell(table, "%s%s", op->name, op->weights ? " (weights)" : "");
        if (op->kind == KNEE_OPERATION_GEMM)
            knee_table_cell(table, "%.0f x %.0f x %.0f", op->m, op->n, op->k);
        else
            knee_table_cell(table, "-");
        knee_table_cell(table, "%.3g", op->count);
        knee_table_number(table, op->flops > 0 ? op->flops * op->count : NAN, KNEE_UNIT_COUNT);
        knee_table_number(table, op->bytes > 0 ? op->bytes * op->count : NAN, KNEE_UNIT_BYTES);
        knee_table_number(table, op->seconds, KNEE_UNIT_SECONDS);
        knee_table_cell(table, "%s",
                        op->flops > 0 ? knee_percent(rate / a->machine.peak_flops[op->dtype]).s
                                      : "-");
    }
}

static void json_ops(struct knee_json *json, const struct knee_plan_answer *a,
                     const struct knee_plan *plan, enum knee_operations_of what, const char *where)
{
    struct knee_operation ops[KNEE_OPERATIONS_MAX];
    size_t count = knee_plan_ops(&a->shape, &a->machine, plan, what, ops, KNEE_OPERATIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct knee_operation *op = &ops[i];
        bool product = op->kind == KNEE_OPERATION_GEMM;
        double rate = op->flops * op->count / op->seconds;
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "layer", where);
        knee_json_string(json, "pass", op->backward ? "backward" : "forward");
        knee_json_string(json, "name", op->name);
        knee_json_bool(json, "weights", op->weights);
        knee_json_number(json, "m", product ? op->m : NAN);
        knee_json_number(json, "n", product ? op->n : NAN);
        knee_json_number(json, "k", product ? op->k : NAN);
        knee_json_number(json, "count", op->count);
        knee_json_number(json, "flops", op->flops * op->count);
        knee_json_number(json, "bytes", op->bytes * op->count);
        knee_json_number(json, "seconds", op->seconds);
        knee_json_number(json, "of_peak",
                         op->flops > 0 ? rate / a->machine.peak_flops[op->dtype] : NAN);
        knee_json_close(json, '}');
    }
}

static void write_ops_json(const struct knee_plan_answer *a, const struct knee_plan_row *row,
                           struct knee_text *text)
{
    struct knee_json json = {.text = text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.ops/1");
    knee_json_open(&json, "operations", '[');
    if (row) {
        const struct knee_plan *plan = &row->found.best[0].plan;
        if (a->shape.dense_layers > 0)
            json_ops(&json, a, plan, KNEE_OPERATIONS_DENSE, "dense");
        if (a->shape.experts > 1)
            json_ops(&json, a, plan, KNEE_OPERATIONS_EXPERT, "experts");
        json_ops(&json, a, plan, KNEE_OPERATIONS_EMBEDDING, "embedding");
        json_ops(&json, a, plan, KNEE_OPERATIONS_HEAD, "head");
    }
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
    knee_text_puts(text, "\n");
}

void knee_write_ops(const struct knee_plan_answer *a, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {"layer", "pass",  "operation", "m x n x k",  "count",
                                        "FLOPs", "bytes", "time",      "of the peak"};
    const struct knee_plan_row *row = knee_plan_shown(a);
    struct knee_table table;
    if (format == KNEE_JSON)
        write_ops_json(a, row, text);
    if (format == KNEE_JSON || !row)
        return;
    const struct knee_plan *plan = &row->found.best[0].plan;
    knee_table_init(&table, "lllrrrrrr", text->alloc);
    KNEE_HEADS(&table, names);
    if (a->shape.dense_layers > 0)
        ops_rows(a, plan, KNEE_OPERATIONS_DENSE, "dense", &table);
    if (a->shape.experts > 1)
        ops_rows(a, plan, KNEE_OPERATIONS_EXPERT, "experts", &table);
    ops_rows(a, plan, KNEE_OPERATIONS_EMBEDDING, "embedding", &table);
    ops_rows(a, plan, KNEE_OPERATIONS_HEAD, "head", &table);
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

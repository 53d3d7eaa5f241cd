/* SPDX-License-Identifier: MIT */
/* knee plan: the best plans, what they need and cost, and where to stop. The values are in
 * say_plan_fields.c. */
#include "cluster/hardware.h"
#include "job/framework.h"
#include "judge/judge.h"
#include "knee_plan.h"
#include "say/plan_fields.h"
#include "say/short.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define A    struct knee_plan_answer
#define ROW  struct knee_plan_row
#define COST struct knee_plan_cost

/* ---- A plan in words ---- */

/* "TP 2, PP 4x7, DP 16" */
static void say_degrees(const struct knee_plan *p, struct knee_text *text)
{
    const struct {
        const char *name;
        double degree;
    } axes[] = {{"TP", p->tp}, {"PP", p->pp}, {"CP", p->cp}, {"EP", p->ep}, {"DP", p->dp}};
    const char *before = "";
    for (size_t i = 0; i < KNEE_COUNT_OF(axes); i++) {
        if (!(axes[i].degree > 1))
            continue;
        knee_text_printf(text, i == 1 && p->vp > 1 ? "%s%s %.0fx%.0f" : "%s%s %.0f", before,
                         axes[i].name, axes[i].degree, p->vp);
        before = ", ";
    }
}

/* "icro-batch 1, ZeRO-1, selective recompute": the first letter depends on where it stands. */
static void say_options(const struct knee_plan *p, struct knee_text *text)
{
    static const char *const shards[] = {[KNEE_REPLICATE] = "no sharding",
                                         [KNEE_ZERO1] = "ZeRO-1",
                                         [KNEE_ZERO2] = "ZeRO-2",
                                         [KNEE_ZERO3] = "ZeRO-3"};
    const char *recompute = knee_recompute_names.name((size_t)p->recompute);
    PUT(text, "icro-batch {}", p->micro_batch);
    if (p->dp * p->cp > 1 && p->shard >= 0 && p->shard <= KNEE_ZERO3)
        PUT(text, ", {}", shards[p->shard]);
    if (p->shard == KNEE_ZERO3 && p->shard_size < p->dp * p->cp)
        PUT(text, " in groups of {}", p->shard_size);
    PUT(text, ", {} recompute{}{}", p->recompute == KNEE_KEEP ? "no" : recompute,
        p->schedule == KNEE_ZERO_BUBBLE ? ", zero-bubble" : "",
        p->offload == KNEE_OFFLOAD_OPTIMIZER ? ", optimizer on the host" : "");
}

void knee_say_plan(const struct knee_plan *p, struct knee_text *text)
{
    size_t start = text->length;
    say_degrees(p, text);
    knee_text_puts(text, text->length > start ? ", m" : "m");
    say_options(p, text);
}

/* ---- Sentences ---- */

static const char *gpu_name(const A *a)
{
    const struct knee_gpu *gpu = knee_hardware_gpu(&a->platform.hw);
    return gpu ? gpu->name : "GPU";
}

/* Nothing is named and Megatron-Core is not assumed. */
static bool on_tpu(const A *a)
{
    return !a->framework && !a->assumed && a->machine.basis == KNEE_BASIS_UNNAMED;
}

static void say_title(const A *a, struct knee_text *text)
{
    const ROW *row = knee_plan_shown(a), *last = &a->rows[a->row_count - 1];
    const struct knee_plan *plan = row                         ? &row->found.best[0].plan
                                   : last->found.nearest_valid ? &last->found.nearest.plan
                                                               : NULL;
    knee_text_puts(text, a->shape.model >= 0 ? knee_model_names.name((size_t)a->shape.model)
                                             : "Your model");
    PUT(text, " on [{}-]{} {}", a->row_count > 1 ? a->rows[0].gpus : 0, last->gpus, gpu_name(a));
    if (a->machine.node_size > 0 && last->gpus > a->machine.node_size && a->row_count == 1)
        PUT(text, " ({} nodes)", ceil(last->gpus / a->machine.node_size));
    if (plan)
        PUT(text, ", batch {} x {} tokens, {}", plan->global_batch, a->shape.seq,
            knee_precision_names.name((size_t)plan->precision));
}

static struct knee_word step_words(const COST *c)
{
    return knee_say_interval(c->step_s, c->low_s, c->high_s, TIME);
}

static void no_plan(const A *a, struct knee_said *said)
{
    const ROW *row = &a->rows[a->row_count - 1];
    double tp = a->fixed.tp, heads = a->shape.heads;
    if (!row->found.nearest_valid && tp > 1 && (fmod(heads, tp) != 0 || fmod(row->gpus, tp) != 0)) {
        PUT(&said->headline, "TP {} does not divide {} heads and {GPUs}.", tp, heads, row->gpus);
        for (double t = 1; t <= 16; t *= 2)
            if (fmod(heads, t) == 0 && fmod(row->gpus, t) == 0)
                PUT(&said->reason, "{}{}", t > 1 ? ", " : "Try --tp ", t);
        PUT(&said->reason, ".");
        return;
    }
    if (!row->found.nearest_valid) {
        PUT(&said->headline, "No plan exists on {GPUs}.", row->gpus);
        PUT(&said->reason, "No degrees divide the GPUs, heads, layers and batch at once. Change "
                           "--gpus or --global-batch.");
        return;
    }
    const struct knee_memory *m = &row->found.nearest.cost.memory;
    PUT(&said->voids, "Does not fit on {} {}: the smallest plan needs {bytes} of {bytes}.",
        row->gpus, gpu_name(a), m->total, m->capacity);
    if (a->remedy_count)
        PUT(&said->headline, "This makes it fit: {}.", a->remedies[0].what);
    else if (isnan(a->smallest_gpus))
        PUT(&said->headline, "Use more GPUs: no single change makes it fit.");
    if (!isnan(a->smallest_gpus))
        knee_text_printf(a->remedy_count ? &said->reason : &said->headline,
                         a->remedy_count ? "Or use %.0f GPUs or more. " : "Use %.0f GPUs or more.",
                         a->smallest_gpus);
    if (a->remedy_count)
        PUT(&said->reason, "With the change a step takes {}.", step_words(&a->remedies[0].cost).s);
    else {
        PUT(&said->reason, "The smallest plan is ");
        knee_say_plan(&row->found.nearest.plan, &said->reason);
        PUT(&said->reason, ".");
    }
}

static void not_met(const A *a, struct knee_said *said)
{
    const struct knee_plan_question *q = &a->question;
    PUT(&said->headline, a->row_count > 1 ? "No GPU count meets" : "{GPUs} cannot meet",
        a->rows[0].gpus);
    PUT(&said->headline, " the {}{}{}.", isnan(q->budget) ? "" : "budget",
        isnan(q->budget) || isnan(q->deadline_s) ? "" : " and the ",
        isnan(q->deadline_s) ? "" : "deadline");
    PUT(&said->reason, "The fastest takes {time}[; the cheapest costs {dollars}].", a->fastest_s,
        a->cheapest);
}

enum { HEADLINE = 80 };

/* The plan; where a line does not hold all of it, the degrees, and the rest in the next line. */
static void say_use(const A *a, const ROW *row, struct knee_said *said)
{
    const struct knee_plan *plan = &row->found.best[0].plan;
    struct knee_text *text = &said->headline, whole = {.alloc = text->alloc};
    if (a->chosen == SIZE_MAX) {
        if (a->baseline_gpus > row->gpus)
            PUT(text, "Use {GPUs} or more: {count} are too few for this model.", a->baseline_gpus,
                row->gpus);
        else
            PUT(text, "Use fewer than {GPUs}.", row->gpus);
        return;
    }
    bool open = a->counts_assumed && isnan(a->question.budget) && isnan(a->question.deadline_s);
    knee_text_puts(text, open ? "Worth up to " : "Use ");
    if (plan->gpus < row->gpus)
        PUT(text, "{count} of the {count} GPUs: ", plan->gpus, row->gpus);
    else if (a->row_count > 1)
        PUT(text, "{GPUs}: ", row->gpus);
    knee_say_plan(plan, &whole);
    if (text->length + whole.length < HEADLINE) {
        knee_text_add(text, whole.data ? whole.data : "", whole.length);
    } else {
        say_degrees(plan, text);
        PUT(&said->reason, "M");
        say_options(plan, &said->reason);
        PUT(&said->reason, ". ");
    }
    PUT(text, ".");
    knee_text_end(&whole, text);
}

static void say_speed(const A *a, const ROW *row, struct knee_text *text)
{
    const COST *c = &row->found.best[0].cost;
    PUT(text, "{} per step, {large} tokens/s, {share} MFU", step_words(c).s, c->tokens_per_s,
        c->mfu_causal);
    if (isnan(row->time_s))
        PUT(text, isnan(row->cost_per_billion) ? "." : ", {dollars} per billion tokens.",
            row->cost_per_billion);
    else
        PUT(text,
            isnan(row->cost) ? ". {large} tokens take {time}."
                             : ". {large} tokens take {time} and cost {dollars}.",
            a->question.tokens, row->time_s, row->cost);
}

static void say_memory(const COST *c, struct knee_text *text)
{
    PUT(text, "{bytes} of {bytes}: {share} risk of running out of memory.", c->memory.total,
        c->memory.capacity, 1 - knee_memory_fit(&c->memory));
}

/* Where to stop, against what. */
static void say_stop(const A *a, const ROW *row, struct knee_text *text)
{
    const ROW *at = NULL, *next = NULL;
    for (size_t i = 0; i < a->row_count; i++) {
        if (a->rows[i].gpus == a->knee_gpus)
            at = &a->rows[i];
        else if (at && !next && a->rows[i].fits)
            next = &a->rows[i];
    }
    if (a->chosen == SIZE_MAX && a->baseline_gpus > row->gpus)
        PUT(text, "{GPUs} do {share} as much per GPU as {count}. ", row->gpus,
            row->kept * row->efficiency, a->baseline_gpus);
    else if (a->chosen == SIZE_MAX)
        PUT(text, "Efficiency is {share} against {GPUs}. ", row->kept * row->efficiency,
            a->baseline_gpus);
    else if (at && next)
        PUT(text, "More than {GPUs} are not worth it: {count} run at {share}{}. ", at->gpus,
            next->gpus, next->kept * next->efficiency, next->kept < 1 ? ", failures counted" : "");
    else if (at && a->row_count > 1)
        PUT(text, "All counts tried are worth it; efficiency is against {GPUs}. ",
            a->baseline_gpus);
}

static void say_run(const A *a, const ROW *row, struct knee_text *text)
{
    const struct knee_plan_run *run = knee_plan_run_at(a, row);
    if (!run)
        return;
    const struct knee_run_cost *c = &run->cost;
    PUT(text, "Goodput {share}: a failure every {time}",
        SPAN(c->goodput.kept, c->sure.low, c->sure.high), c->stops.mean_s);
    if (c->stops.every_s == c->best_every_s)
        PUT(text, "; take a checkpoint every {time}.\n", c->best_every_s);
    else
        PUT(text, "; best with a checkpoint every {time}: {share}.\n", c->best_every_s,
            c->best_kept);
}

/* "Step: products 62%, attention 18%, ..." */
static void say_parts(const COST *c, struct knee_text *text)
{
    bool used[KNEE_PARTS] = {false};
    for (size_t shown = 0; shown < 4; shown++) {
        int most = -1;
        for (int part = 0; part < KNEE_PARTS; part++)
            if (!used[part] && (most < 0 || c->part_s[part] > c->part_s[most]))
                most = part;
        if (!(c->part_s[most] / c->step_s > 0.01))
            break;
        used[most] = true;
        PUT(text, "{} {} {share}", shown ? "," : "Step:", knee_part_name((enum knee_part)most),
            c->part_s[most] / c->step_s);
    }
    PUT(text, "\n");
}

static void say_free(const A *a, const ROW *row, struct knee_text *text)
{
    double gain = row->found.best[0].cost.step_s / a->free.cost.step_s - 1;
    if (!a->framework || !a->free_known || !(gain > 0.005))
        return;
    PUT(text, "Without --framework {}, {share} faster: ", knee_framework_word(a->framework), gain);
    knee_say_plan(&a->free.plan, text);
    PUT(text, "\n");
}

/* FSDP and DeepSpeed have little else than ZeRO-3, and so has what is assumed on TPUs. */
static unsigned unusual(const A *a, const struct knee_found *found)
{
    bool usual = on_tpu(a) || (a->framework && knee_framework_shards(a->framework));
    return found->unusual & ~(usual ? (unsigned)KNEE_UNUSUAL_SHARDS : 0U);
}

/* "splits sequences below 32k tokens and keeps the optimizer on the host" */
static void say_unusual(const A *a, const struct knee_found *found, struct knee_text *text)
{
    static const char *const words[KNEE_UNUSUALS] = {
        "keeps the optimizer on the host",      "needs a zero-bubble schedule",
        "splits sequences below 32k tokens",    "cuts stages into more than 8 pieces",
        "has ZeRO-2 or 3 over nodes or stages", "has TP over nodes",
        "has more TP ranks than KV heads",
    };
    const char *before = "";
    struct knee_obstacle lack = {.what = ""};
    int rule = knee_framework_lacks(a->assumed, &found->plan, &a->shape);
    if (rule >= 0)
        knee_framework_says(a->assumed, rule, &lack);
    for (size_t i = 0; i < KNEE_UNUSUALS; i++) {
        if (!(unusual(a, found) >> i & 1))
            continue;
        PUT(text, "{}{}{}", before, words[i] ? words[i] : "has ", words[i] ? "" : lack.what);
        before = " and ";
    }
}

/* Why the plan to use is not the fastest of the list, or not a plain one. */
static void say_choice(const A *a, const struct knee_search_result *found, struct knee_text *text)
{
    const struct knee_found *first = found->best, *other = NULL;
    size_t at = 0;
    bool odd = unusual(a, first) != 0;
    for (size_t i = 1; i < found->count; i++) {
        const struct knee_found *it = &first[i];
        bool plain = odd && !unusual(a, it) && !other;
        if (plain || (!odd && it->cost.step_s < (other ? other : first)->cost.step_s)) {
            other = it;
            at = i + 1;
        }
    }
    double apart = other ? fabs(first->cost.step_s / other->cost.step_s - 1) : 0;
    if (odd) {
        PUT(text, "Unusual: plan 1 ");
        say_unusual(a, first, text);
        PUT(text, "[; plan {} does not, {share} slower].\n", at ? (double)at : (double)NAN,
            other ? other->cost.step_s / first->cost.step_s - 1 : (double)NAN);
    } else if (other && apart > 0.01 && unusual(a, other)) {
        PUT(text, "Plan {} is {share} faster, but unusual: it ", (double)at, apart);
        say_unusual(a, other, text);
        PUT(text, ".\n");
    }
}

static void say_after(const A *a, const ROW *row, struct knee_text *text)
{
    const COST *c = &row->found.best[0].cost;
    if (a->ties > 1 && row == &a->rows[a->chosen])
        PUT(text, "Plans 1-{} are within knee's error ({share}): time two or three.\n", a->ties,
            a->apart);
    if (row->found.count && a->row_count == 1)
        say_choice(a, &row->found, text);
    say_parts(c, text);
    say_run(a, row, text);
    say_free(a, row, text);
    if (a->simulated)
        PUT(text, "Simulated event by event: {time} per step; the closed form gives {time}.\n",
            a->simulated_s, a->closed_s);
    if (knee_rough(c->low_s, c->high_s))
        PUT(text, "Rough: time one step and pass it to knee validate --calibrate.\n");
}

static void say_assumed(const A *a, struct knee_text *text)
{
    const char *why = a->machine.why_assumed ? a->machine.why_assumed
                      : a->shape.experts > 1 ? "wider interval: few measured runs have experts"
                                             : "";
    PUT(text, "[cluster {}]", a->machine.cluster.name);
    PUT(text, text->length ? "[; {}]" : "{}", why);
}

static void say_notes(const A *a, const ROW *row, struct knee_text *text)
{
    PUT(text, "[fits on {GPUs} or more\n]", a->smallest_gpus);
    if (row && !isnan(a->baseline_gpus))
        PUT(text, "efficiency is against the best plan on {GPUs}{}\n", a->baseline_gpus,
            a->runs ? ", goodput included" : "");
    if (!isnan(a->replicas_knee) && a->row_count > 1)
        PUT(text, "plain data parallel would stop at {GPUs}{}\n", a->replicas_knee,
            a->replicas_needed_bytes > a->machine.memory_bytes ? " and does not fit" : "");
}

/* Which software can run the plan and be given launch flags: "megatron or nemo". */
static void say_emits(const A *a, const struct knee_plan *plan, struct knee_text *text)
{
    static const char *const names[] = {"megatron", "nemo", "torchtitan", "deepspeed"};
    const char *able[KNEE_COUNT_OF(names)];
    size_t count = 0;
    for (size_t i = 0; i < KNEE_COUNT_OF(names); i++) {
        const struct knee_framework *framework = knee_framework_named(names[i]);
        bool asked = !a->framework || a->framework == framework;
        if (asked && !on_tpu(a) && knee_framework_breaks(framework, plan, &a->shape) < 0)
            able[count++] = names[i];
    }
    for (size_t i = 0; i < count; i++)
        PUT(text, "{}{}", i == 0 ? "add --emit " : i + 1 < count ? ", " : " or ", able[i]);
    PUT(text, count        ? " for launch flags"
              : a->assumed ? "add --framework megatron for a plan that it runs"
                           : "add -v for memory, placement and collectives");
}

static void say_next(const A *a, const struct knee_plan *plan, struct knee_text *text)
{
    if (a->chosen == SIZE_MAX)
        PUT(text, "try other counts with --gpus, or another --gpu");
    else if (a->counts_assumed)
        PUT(text, "add --gpus N for the plan on your GPUs");
    else
        say_emits(a, plan, text);
}

static void say(const void *result, struct knee_said *said)
{
    const A *a = result;
    const ROW *row = knee_plan_shown(a);
    bool asked = !isnan(a->question.budget) || !isnan(a->question.deadline_s);
    say_title(a, &said->title);
    say_notes(a, row, &said->notes);
    if (!row) {
        no_plan(a, said);
        return;
    }
    if (a->chosen == SIZE_MAX && asked)
        not_met(a, said);
    else {
        say_use(a, row, said);
        say_speed(a, row, &said->reason);
    }
    if (!(a->chosen == SIZE_MAX && asked))
        say_stop(a, row, &said->effect);
    say_memory(&row->found.best[0].cost, &said->effect);
    say_after(a, row, &said->after);
    say_assumed(a, &said->assumed);
    say_next(a, &row->found.best[0].plan, &said->next);
}

/* ---- Views ---- */

/* Rows around the one that is chosen. */
static bool near(const struct knee_at *row)
{
    const A *a = row->up->row;
    size_t last = a->row_count > 4 ? a->row_count - 4 : 0;
    size_t first = a->chosen == SIZE_MAX || a->chosen < 2 ? 0 : a->chosen - 2;
    return row->index >= (first < last ? first : last);
}
static bool one_count(const void *result)
{
    return ((const A *)result)->row_count == 1;
}
static bool several_counts(const void *result)
{
    const A *a = result;
    return a->row_count > 1 && knee_plan_shown(a);
}
static bool nothing_fits(const void *result)
{
    return !knee_plan_shown(result);
}
static const struct knee_view views[] = {
    {.list = "plans", .when = one_count},
    {.list = "rows", .when = several_counts, .pick = near},
    {.list = "remedies", .when = nothing_fits},
    {.list = "simulation", .tier = FULL},
    {.list = "simulation.stages", .tier = FULL},
    {.list = "run", .tier = FULL},
    {.list = "parts", .tier = FULL},
    {.list = "placement", .tier = FULL},
    {.list = "collectives", .tier = FULL},
    {.list = "memory", .tier = FULL},
    {.list = "tradeoff", .tier = FULL},
    {.list = "published_runs", .tier = FULL},
    {.list = "model.inputs", .tier = FULL},
    {.list = "platform.inputs", .tier = FULL},
    {.list = "failures.inputs", .tier = FULL},
};

const struct knee_answer_type knee_plan_answer_type = {
    .schema = "knee.plan/1", KNEE_FIELDS(knee_plan_fields), KNEE_VIEWS(views), .say = say};

static void say_ops(const void *result, struct knee_said *said)
{
    const A *a = result;
    say_title(a, &said->title);
    if (!knee_plan_shown(a)) {
        no_plan(a, said);
        return;
    }
    PUT(&said->reason, "Operations of one layer on one GPU, for one micro-batch.");
}
static const struct knee_view ops_views[] = {{.list = "operations"}};
const struct knee_answer_type knee_ops_answer = {
    .schema = "knee.ops/1", KNEE_FIELDS(knee_ops_fields), KNEE_VIEWS(ops_views), .say = say_ops};

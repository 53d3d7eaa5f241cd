/* SPDX-License-Identifier: MIT */
/* Three plain lines for predict, tax and plan. What does not fit is said first. */
#include "out/plain_words.h"

#include "cluster/hardware.h"
#include "judge/judge.h"
#include "out/show_plan.h"
#include "out/words.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SECONDS(value) knee_human(value, KNEE_UNIT_SECONDS).s
#define BYTES(value)   knee_human(value, KNEE_UNIT_BYTES).s
#define COUNT(value)   knee_human(value, KNEE_UNIT_COUNT).s
#define DOLLARS(value) knee_human(value, KNEE_UNIT_DOLLARS).s

void knee_json_plain(struct knee_json *json, struct knee_plain *plain)
{
    knee_json_words(json, "do", &plain->advice);
    knee_json_words(json, "why", &plain->reason);
    knee_json_words(json, "buys", &plain->gain);
}

void knee_say_plain(struct knee_plain *plain, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text)
{
    struct knee_text *const lines[] = {&plain->advice, &plain->reason, &plain->gain};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        bool bold = i == 0 && style->color;
        knee_text_puts(text, bold ? "\033[1m" : "");
        knee_say(lines[i], format, style, text);
        knee_text_puts(text, bold ? "\033[0m" : "");
        knee_text_puts(text, format == KNEE_MARKDOWN ? "\n" : "");
    }
    knee_text_puts(text, format == KNEE_MARKDOWN ? "" : "\n");
}

/* ---- predict ---- */

/* What workers are called where it is known what they are. */
static const char *workers_word(const struct knee_prediction *p, double count)
{
    bool gpus = knee_hardware_gpu(&p->job.hw) != NULL;
    if (count == 1)
        return gpus ? "GPU" : "worker";
    return gpus ? "GPUs" : "workers";
}

static void predict_advice(const struct knee_prediction *p, struct knee_text *text)
{
    const struct knee_knee *knee = &p->knee;
    double stop = knee->tolerance_workers;
    if (!p->memory.fits)
        knee_text_printf(text, "It does not fit on a GPU unsharded (%s of %s): shard it first. ",
                         BYTES(p->memory.needed_bytes), BYTES(p->memory.capacity_bytes));
    if (isnan(stop))
        knee_text_puts(text, "Add workers: each one still pays.");
    else if (stop < 1)
        knee_text_puts(text, "Stay with one worker.");
    else if (p->at.workers > stop)
        knee_text_printf(text, "Stop at %.0f %s%s.", stop, workers_word(p, stop),
                         knee_knee_word(knee).s);
    else if (stop == knee->limit_workers)
        knee_text_printf(text, "Go up to %.0f %s%s, one example each.", stop, workers_word(p, stop),
                         knee_knee_word(knee).s);
    else
        knee_text_printf(text, "Go up to %.0f %s%s, not further.", stop, workers_word(p, stop),
                         knee_knee_word(knee).s);
}

static const char *plain_suspect(enum knee_suspect suspect)
{
    static const char *const words[KNEE_SUSPECTS] = {
        [KNEE_SUSPECT_COMM] = "gradient traffic that nothing hides",
        [KNEE_SUSPECT_INPUT] = "waiting for data",
        [KNEE_SUSPECT_STRAGGLER] = "waiting for the slowest worker",
        [KNEE_SUSPECT_TINY_BATCH] = "lost because each worker has too little to do",
        [KNEE_SUSPECT_COPY] = "copying that nothing hides",
        [KNEE_SUSPECT_IDLE] = "idle",
    };
    return words[suspect] ? words[suspect] : knee_suspect_name(suspect);
}

static void predict_reason(const struct knee_prediction *p, struct knee_text *text)
{
    const struct knee_verdict *v = &p->verdict;
    knee_text_printf(text, "With %.0f %s you get %s of the throughput you pay for", p->at.workers,
                     workers_word(p, p->at.workers),
                     knee_surely(p->at.efficiency, p->at.efficiency_sure, KNEE_UNIT_FRACTION).s);
    if (v->suspect == KNEE_SUSPECT_NONE)
        knee_text_puts(text, ": nothing takes more than 2 % of the step.");
    else if (v->suspect == KNEE_SUSPECT_LARGE_BATCH)
        knee_text_printf(text,
                         ", and %s of the examples are wasted: the batch is past the "
                         "critical %s.",
                         knee_percent(v->suspect_share).s, COUNT(p->job.critical_batch));
    else
        knee_text_printf(text, ": %s of every %s step is %s.", knee_percent(v->suspect_share).s,
                         knee_surely(p->at.step.wall_s, p->at.step_sure, KNEE_UNIT_SECONDS).s,
                         plain_suspect(v->suspect));
}

/* A lever's name for who does not know it yet. */
static const char *plain_lever(const struct knee_lever *lever)
{
    static const struct {
        const char *name, *plain;
    } words[] = {
        {"overlap", "send gradients while the backward pass still computes"},
        {"compress: bf16", "send gradients in 16 bits"},
        {"fewer workers", "use fewer workers"},
        {"more workers", "use twice the workers"},
        {"faster link", "a link twice as fast"},
        {"another algorithm", "another all-reduce algorithm"},
        {"faster loader", "a data loader that keeps ahead"},
        {"even workers", "find and mend the slow worker"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(lever->name, words[i].name) == 0)
            return words[i].plain;
    return lever->name;
}

static void predict_gain(const struct knee_prediction *p, struct knee_text *text)
{
    if (p->verdict.lever == SIZE_MAX) {
        knee_text_puts(text, "No change gains 1 % or more.");
        return;
    }
    const struct knee_lever *lever = &p->levers[p->verdict.lever];
    knee_text_printf(text, "Do first: %s: %s throughput", plain_lever(lever),
                     knee_signed_percent(lever->gain).s);
    if (lever->saved_per_day > 0)
        knee_text_printf(text, ", saves %s of %s a day", DOLLARS(lever->saved_per_day),
                         DOLLARS(p->cost.day));
    knee_text_puts(text, lever->training ? "; it changes training." : ".");
}

void knee_prediction_plain(const struct knee_prediction *prediction, struct knee_plain *plain)
{
    predict_advice(prediction, &plain->advice);
    predict_reason(prediction, &plain->reason);
    predict_gain(prediction, &plain->gain);
}

/* ---- tax ---- */

static bool tax_fits(const struct knee_tax *tax)
{
    return !(tax->memory.total > tax->memory.capacity);
}

/* The axis that binds, or NULL: none does, or it is the bubble. */
static const struct knee_axis_tax *binding(const struct knee_tax *tax)
{
    const struct knee_axis_tax *worst = &tax->axes[tax->binding];
    return tax->bubble_binds || !(worst->exposed_s > 0) ? NULL : worst;
}

static void tax_advice(const struct knee_tax *tax, struct knee_text *text)
{
    static const char *const cures[KNEE_AXES] = {
        [KNEE_AXIS_DP] = "Exchange gradients less often: more or larger micro-batches.",
        [KNEE_AXIS_FSDP] = "Give each GPU more tokens, or shard inside a node only.",
        [KNEE_AXIS_TP] = "Use less tensor parallelism, as far as memory lets you.",
        [KNEE_AXIS_PP] = "Use fewer pipeline stages, or larger micro-batches.",
        [KNEE_AXIS_EP] = "Spread experts over fewer GPUs, best inside a node.",
    };
    const struct knee_axis_tax *worst = binding(tax);
    if (!tax_fits(tax))
        knee_text_printf(text,
                         "It does not fit: %s on a GPU of %s. Split it further (FSDP, TP, PP) or "
                         "use smaller micro-batches.",
                         BYTES(tax->memory.total), BYTES(tax->memory.capacity));
    else if (tax->bubble_binds)
        knee_text_puts(text, "Use more micro-batches, or fewer pipeline stages.");
    else if (worst && worst->axis == KNEE_AXIS_TP && worst->crosses_nodes)
        knee_text_printf(text, "Keep tensor parallelism inside a node: %.0f GPUs or fewer.",
                         tax->job.hw.gpus_per_node);
    else
        knee_text_puts(text,
                       worst ? cures[worst->axis] : "Keep this layout: nothing to gain here.");
}

static void tax_reason(const struct knee_tax *tax, struct knee_text *text)
{
    const struct knee_axis_tax *worst = binding(tax);
    if (tax->bubble_binds)
        knee_text_printf(text, "GPUs wait for other pipeline stages in %s of the step.",
                         knee_percent(tax->bubble_s / tax->step_s).s);
    else if (worst && worst->exposed_s >= worst->comm_s)
        knee_text_printf(text, "%s costs most: %s over the %s take %s, and nothing hides it.",
                         knee_axis_name(worst->axis), worst->collective,
                         worst->crosses_nodes ? "network" : "links of the node",
                         SECONDS(worst->comm_s));
    else if (worst)
        knee_text_printf(text,
                         "%s costs most: %s over the %s take %s, and only %s of it hides behind "
                         "compute.",
                         knee_axis_name(worst->axis), worst->collective,
                         worst->crosses_nodes ? "network" : "links of the node",
                         SECONDS(worst->comm_s), SECONDS(worst->comm_s - worst->exposed_s));
    else
        knee_text_puts(text, "All communication hides behind compute.");
}

static void tax_gain(const struct knee_tax *tax, struct knee_text *text)
{
    const struct knee_axis_tax *worst = binding(tax);
    double lost = worst ? worst->exposed_s : tax->bubble_binds ? tax->bubble_s : 0;
    knee_text_printf(text, "%s a step on %.0f GPUs, %s of their peak (MFU)", SECONDS(tax->step_s),
                     tax->gpus, knee_percent(tax->mfu).s);
    if (lost > 0)
        knee_text_printf(text, "; up to %s of it, %s, could be saved.", SECONDS(lost),
                         knee_percent(lost / tax->step_s).s);
    else
        knee_text_puts(text, ".");
    if (!tax_fits(tax))
        knee_text_puts(text, " These are the figures if it did fit.");
}

void knee_tax_plain(const struct knee_tax *tax, struct knee_plain *plain)
{
    tax_advice(tax, &plain->advice);
    tax_reason(tax, &plain->reason);
    tax_gain(tax, &plain->gain);
}

/* ---- plan ---- */

static struct knee_word step_words(const struct knee_plan_cost *c)
{
    return knee_surely(c->step_s, (struct knee_sure){c->low_s, c->high_s}, KNEE_UNIT_SECONDS);
}

static void nothing_fits(const struct knee_plan_answer *a, struct knee_plain *plain)
{
    const struct knee_plan_row *row = &a->rows[a->row_count - 1];
    if (!row->found.nearest_valid) {
        knee_text_puts(&plain->advice, "Change the number of GPUs or the global batch.");
        knee_text_printf(&plain->reason,
                         "No plan exists on %.0f GPUs: no degrees divide GPUs, heads, layers and "
                         "batch at once.",
                         row->gpus);
        return;
    }
    const struct knee_memory *m = &row->found.nearest.cost.memory;
    if (a->remedy_count)
        knee_text_printf(&plain->advice, "It does not fit as asked. This makes it fit: %s.",
                         a->remedies[0].what);
    else if (!isnan(a->smallest_gpus))
        knee_text_printf(&plain->advice, "It does not fit: use %.0f GPUs or more.",
                         a->smallest_gpus);
    else
        knee_text_puts(&plain->advice, "It does not fit: use more GPUs.");
    knee_text_printf(&plain->reason, "The smallest plan on %.0f GPU%s needs %s of a GPU's %s.",
                     row->gpus, row->gpus == 1 ? "" : "s", BYTES(m->total), BYTES(m->capacity));
    if (a->remedy_count)
        knee_text_printf(&plain->gain, "With that a step takes %s.",
                         step_words(&a->remedies[0].cost).s);
}

static void plan_advice(const struct knee_plan_answer *a, const struct knee_plan_row *row,
                        struct knee_text *text)
{
    bool more = false;
    for (size_t i = 0; i < a->row_count; i++)
        more = more || (a->rows[i].fits && a->rows[i].gpus > a->knee_gpus);
    double used = row->found.best[0].plan.gpus;
    if (used < row->gpus)
        knee_text_printf(text, "Use %.0f of the %.0f GPUs, more would not be quicker: ", used,
                         row->gpus);
    else
        knee_text_printf(text, "Use %.0f GPU%s: ", row->gpus, row->gpus == 1 ? "" : "s");
    knee_plan_words(&row->found.best[0].plan, text);
    knee_text_puts(text, ".");
    if (more && !isnan(a->knee_gpus))
        knee_text_printf(text, " Do not go past %.0f.", a->knee_gpus);
}

static void plan_reason(const struct knee_plan_row *row, struct knee_text *text)
{
    const struct knee_plan_cost *c = &row->found.best[0].cost;
    enum knee_part part = knee_plan_binding(c);
    knee_text_printf(text, "It fits, %s of %s, and of the plans that fit it is the quickest: ",
                     knee_memory_word(&c->memory).s, BYTES(c->memory.capacity));
    if (part == KNEE_PART_GEMM)
        knee_text_puts(text, "nothing but work takes more than 2 % of the step.");
    else
        knee_text_printf(text, "the largest overhead, %s, is %s of the step.", knee_part_name(part),
                         knee_percent(c->part_s[part] / c->step_s).s);
}

static void plan_gain(const struct knee_plan_answer *a, const struct knee_plan_row *row,
                      struct knee_text *text)
{
    const struct knee_plan_cost *c = &row->found.best[0].cost;
    knee_text_printf(text, "%s a step, %s tokens/s, %s of the GPUs' peak (MFU).", step_words(c).s,
                     COUNT(c->tokens_per_s), knee_percent(c->mfu_causal).s);
    if (!isnan(row->time_s)) {
        knee_text_printf(text, " %s tokens take %s", COUNT(a->question.tokens),
                         knee_surely(row->time_s, row->time_sure, KNEE_UNIT_SECONDS).s);
        if (!isnan(row->cost))
            knee_text_printf(text, " and cost %s",
                             knee_surely(row->cost, row->cost_sure, KNEE_UNIT_DOLLARS).s);
        knee_text_puts(text, ".");
    } else if (!isnan(row->cost_per_billion)) {
        knee_text_printf(text, " A billion tokens cost %s.", DOLLARS(row->cost_per_billion));
    }
}

/* Already the smallest count is past the knee. */
static void too_many(const struct knee_plan_answer *a, struct knee_plain *plain)
{
    const struct knee_plan_row *row = knee_plan_smallest(a);
    knee_text_printf(&plain->advice, "Use fewer than %.0f GPUs.", row->gpus);
    knee_text_printf(
        &plain->reason, "There each gives %s of what it gives with %.0f GPUs; the best plan is ",
        knee_surely(row->efficiency, row->efficiency_sure, KNEE_UNIT_FRACTION).s, a->baseline_gpus);
    knee_plan_words(&row->found.best[0].plan, &plain->reason);
    knee_text_puts(&plain->reason, ".");
    plan_gain(a, row, &plain->gain);
}

void knee_plan_plain(const struct knee_plan_answer *answer, struct knee_plain *plain)
{
    if (isnan(answer->peak_gpus)) {
        nothing_fits(answer, plain);
        return;
    }
    bool asked = !isnan(answer->question.budget) || !isnan(answer->question.deadline_s);
    if (answer->chosen == SIZE_MAX && !asked) {
        too_many(answer, plain);
        return;
    }
    if (answer->chosen == SIZE_MAX) {
        knee_text_puts(&plain->advice, "Allow more money or more time.");
        knee_text_puts(&plain->reason,
                       "No number of GPUs that was tried meets budget and deadline.");
        return;
    }
    const struct knee_plan_row *row = &answer->rows[answer->chosen];
    plan_advice(answer, row, &plain->advice);
    plan_reason(row, &plain->reason);
    plan_gain(answer, row, &plain->gain);
}

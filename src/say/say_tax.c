/* SPDX-License-Identifier: MIT */
/* knee tax: what each parallel axis of a given split costs. Schema knee.tax/1. */
#include "cluster/hardware.h"
#include "judge/judge.h"
#include "knee_plan.h"
#include "say/short.h"

#include <math.h>

#define TAX  struct knee_tax
#define AXIS struct knee_axis_tax

/* The axis that costs most; NULL: none does, or the bubble costs more. */
static const AXIS *worst_of(const TAX *tax)
{
    const AXIS *worst = &tax->axes[tax->binding];
    return tax->bubble_binds || !(worst->exposed_s > 0) ? NULL : worst;
}
static double lost_s(const TAX *tax)
{
    const AXIS *worst = worst_of(tax);
    return worst ? worst->exposed_s : tax->bubble_binds ? tax->bubble_s : 0;
}
static bool fits(const TAX *tax)
{
    return !(tax->memory.total > tax->memory.capacity);
}

/* ---- Fields ---- */

A_TEXT(axis_name, AXIS, knee_axis_name(it->axis))
A_TEXT(link_name, AXIS, it->crosses_nodes ? "network" : "node")
A_NUMBER(step_share, AXIS, it->exposed_s / UP(TAX)->step_s)
A_BOOL(binds, AXIS, worst_of(at->up->row) == it)
A_TEXT(mark, AXIS, worst_of(at->up->row) == it ? "<- costs most" : "")
static const struct knee_field axis_fields[] = {
    KNEE_GET(axis_name, "axis", "axis", TEXT, SCREEN, "DP, FSDP, TP, PP, EP"),
    KNEE_FIELD(AXIS, degree, "degree", "degree", COUNT, SCREEN, "ranks along it"),
    KNEE_GET(link_name, "link", "link", TEXT, SCREEN, "node or network"),
    KNEE_FIELD(AXIS, comm_s, "comm_s", "comm", TIME, SCREEN, "communication per step"),
    KNEE_FIELD(AXIS, exposed_s, "exposed_s", "exposed", TIME, SCREEN, "that nothing hides"),
    KNEE_FIELD(AXIS, collective, "collective", "collective", TEXT, FULL, "its operation"),
    KNEE_FIELD(AXIS, buffer_bytes, "buffer_bytes", "buffer", MESSAGE, FULL, "one call"),
    KNEE_FIELD(AXIS, calls, "calls", "calls", COUNT, FULL, "per step and GPU"),
    KNEE_FIELD(AXIS, window_s, "window_s", "can hide behind", TIME, FULL, "compute per step"),
    KNEE_FIELD(AXIS, tax, "tax", "exposed / compute", SHARE, FULL, "the tax"),
    KEY_BY(step_share, "step_share", SHARE, "exposed / step"),
    KEY_BY(binds, "binds", YES_NO, "it costs most"),
    KNEE_GET(mark, "mark", "", TEXT, SCREEN, "the axis that costs most"),
};
ROW_OF(axis_row, TAX, index < KNEE_AXES ? &it->axes[index] : NULL)
WHEN(used, AXIS, it->degree > 1)
A_TEXT(binding, TAX,
       it->bubble_binds ? "bubble"
       : worst_of(it)   ? knee_axis_name(worst_of(it)->axis)
                        : "none")
static const struct knee_field verdict_fields[] = {
    KNEE_SENTENCE,
    KNEE_DO_WHY_BUYS,
    KEY_BY(binding, "binding", TEXT, "the axis that costs most, bubble or none"),
};
static const struct knee_field threshold_fields[] = {
    KNEE_FIELD(TAX, local_tokens_min, "local_tokens_min", "tokens per GPU that hide the gathers",
               COUNT, FULL, "fewer: FSDP's gathers are exposed"),
    KNEE_FIELD(TAX, tokens_per_gpu, "local_tokens", "tokens per GPU", COUNT, FULL,
               "per micro-step"),
    KNEE_FIELD(TAX, tp_tax_in, "tp_tax_node", "TP tax per rank, node link", SHARE, FULL,
               "peak / (3 x bandwidth x hidden)"),
    KNEE_FIELD(TAX, tp_tax_out, "tp_tax_network", "TP tax per rank, network", SHARE, FULL,
               "likewise"),
};
WHEN(memory_known, TAX, it->memory.total > 0)
A_BOOL(tax_fits, TAX, fits(it))
static const struct knee_field fields[] = {
    KNEE_GROUP("verdict", verdict_fields, "what to change"),
    KNEE_ROWS_BY(axis_row, "axes", axis_fields, "one row per axis"),
    KNEE_GROUP("thresholds", threshold_fields, "rules of thumb for this machine"),
    KEY(TAX, params, "params", LARGE, "parameters"),
    KEY(TAX, params_per_gpu, "params_per_gpu", LARGE, "on one GPU"),
    KEY(TAX, gpus, "gpus", COUNT, "product of the degrees"),
    KEY(TAX, compute_s, "compute_s", TIME, "per step and GPU"),
    KEY(TAX, bubble, "bubble", SHARE, "(pp-1)/(micro-batches+pp-1)"),
    KNEE_BETWEEN(TAX, step_s, step_sure, "step_s", NULL, TIME, DATA, "one step"),
    KEY(TAX, mfu, "mfu", SHARE, "model FLOPs utilisation"),
    KNEE_INSIDE(TAX, memory, "memory", knee_memory_fields, "of one GPU",
                .heading = KNEE_SHOWN("memory of one GPU"), .when = memory_known, .flat = true),
    KEY_BY(tax_fits, "fits", YES_NO, "into the GPU's memory", .when = memory_known),
    KNEE_USED(TAX, job, knee_tax_keys),
};
static const struct knee_view views[] = {
    {.list = "axes", .pick = used},
    {.list = "thresholds", .tier = FULL},
    {.list = "memory", .tier = FULL},
    {.list = "inputs", .tier = FULL},
};

/* ---- Sentences ---- */

static void say_title(const TAX *tax, struct knee_text *text)
{
    const struct knee_tax_job *job = &tax->job;
    const struct knee_gpu *gpu = knee_hardware_gpu(&job->hw);
    if (job->model >= 0)
        knee_text_puts(text, knee_model_names.name((size_t)job->model));
    else
        PUT(text, "{large} parameters", tax->params);
    PUT(text, " on {} {}, {count} micro-batch{} of {} x {} tokens", tax->gpus,
        gpu ? gpu->name : "GPUs", job->micro_batches, job->micro_batches > 1 ? "es" : "",
        job->micro_batch, job->seq);
}

static void say_do(const TAX *tax, const AXIS *worst, struct knee_text *text)
{
    static const char *const fixes[KNEE_AXES] = {
        [KNEE_AXIS_DP] = "Use more or larger micro-batches: gradients are sent less often.",
        [KNEE_AXIS_FSDP] = "Give each GPU more tokens, or shard inside a node only.",
        [KNEE_AXIS_TP] = "Use less tensor parallelism, as far as memory allows.",
        [KNEE_AXIS_PP] = "Use fewer pipeline stages, or larger micro-batches.",
        [KNEE_AXIS_EP] = "Spread experts over fewer GPUs, best inside a node.",
    };
    const struct knee_tax_job *job = &tax->job;
    if (!fits(tax))
        PUT(text, "{}plit further with TP or PP{}.",
            job->degree[KNEE_AXIS_DP] > 1 && !(job->degree[KNEE_AXIS_FSDP] > 1)
                ? "Use --fsdp instead of --dp, or s"
                : "S",
            job->micro_batch > 1 ? ", or use smaller micro-batches" : "");
    else if (lost_s(tax) < KNEE_NO_BOTTLENECK * tax->step_s)
        PUT(text, "Keep this split: no axis costs 2% of the step.");
    else if (tax->bubble_binds)
        PUT(text, "Use more micro-batches, or fewer pipeline stages.");
    else if (worst && worst->axis == KNEE_AXIS_TP && worst->crosses_nodes)
        PUT(text, "Keep tensor parallelism inside a node: TP {}{}.", job->hw.gpus_per_node,
            job->hw.gpus_per_node > 1 ? " or less" : "");
    else if (worst)
        knee_text_puts(text, fixes[worst->axis]);
}

static void say_why(const TAX *tax, const AXIS *worst, struct knee_text *text)
{
    if (tax->bubble_binds)
        PUT(text, "GPUs wait for other pipeline stages in {share} of the step.",
            tax->bubble_s / tax->step_s);
    else if (worst && worst->exposed_s >= worst->comm_s)
        PUT(text, "{} costs most: {} over the {}, {time} per step, all exposed.",
            knee_axis_name(worst->axis), worst->collective,
            worst->crosses_nodes ? "network" : "node link", worst->comm_s);
    else if (worst)
        PUT(text, "{} costs most: {} over the {}, {time} per step; compute hides {time}.",
            knee_axis_name(worst->axis), worst->collective,
            worst->crosses_nodes ? "network" : "node link", worst->comm_s,
            worst->comm_s - worst->exposed_s);
    else
        PUT(text, "Compute hides all communication.");
}

static void say(const void *result, struct knee_said *said)
{
    const TAX *tax = result;
    const AXIS *worst = worst_of(tax);
    say_title(tax, &said->title);
    if (!fits(tax))
        PUT(&said->voids, "Does not fit: {bytes} needed, {bytes} available.", tax->memory.total,
            tax->memory.capacity);
    say_do(tax, worst, &said->headline);
    say_why(tax, worst, &said->reason);
    PUT(&said->effect, "{time} per step, {share} MFU",
        SPAN(tax->step_s, tax->step_sure.low, tax->step_sure.high), tax->mfu);
    PUT(&said->effect, "; at most {share} can be saved there.", lost_s(tax) / tax->step_s);
    if (tax->textbook)
        PUT(&said->assumed, "{share} MFU while computing; no error interval without --gpu",
            tax->job.mfu);
    knee_text_puts(&said->next, tax->job.model >= 0 ? "knee plan finds the best split"
                                                    : "knee plan --model finds the best split");
    if (tax->job.degree[KNEE_AXIS_FSDP] > 1)
        PUT(&said->notes, "{count} tokens per GPU; {count} hide the gathers\n", tax->tokens_per_gpu,
            ceil(tax->local_tokens_min));
}

const struct knee_answer_type knee_tax_answer = {
    .schema = "knee.tax/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};

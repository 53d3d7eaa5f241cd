/* SPDX-License-Identifier: MIT */
/* knee predict: data parallelism by closed forms over GPU counts. Schema knee.predict/1. */
#include "base/keys.h"
#include "cluster/hardware.h"
#include "judge/judge.h"
#include "predict/closed/forecast.h"
#include "say/short.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define P      struct knee_prediction
#define ROW    struct knee_row
#define LEVER  struct knee_lever
#define SOLVED struct knee_solution

/* ---- Fields ---- */

A_NUMBER(exposed_s, ROW, knee_step_exposed_s(&it->step))
A_NUMBER(exposed, ROW, knee_step_exposed_s(&it->step) / it->step.wall_s)
A_NUMBER(compute_efficiency, ROW, knee_step_efficiency(&it->step))
A_TEXT(bottleneck, ROW, knee_binding_name(it->binding))
A_BOOL(changes_training, LEVER, it->numerics == KNEE_NUMERICS_TRAINING)
A_TEXT(numerics, LEVER, knee_numerics_name(it->numerics))
A_TEXT(suspect, P, knee_suspect_name(it->verdict.suspect))
A_TEXT(wall, P, knee_wall_name(it->verdict.wall))
A_TEXT(first_wall, struct knee_walls, knee_wall_name(it->first))
A_NUMBER(micro_batch, P, knee_forecast_micro_batch(&it->terms, it->at.workers))
A_TEXT(scaling, P, it->job.scaling == KNEE_STRONG ? "strong" : "weak")
A_TEXT(bound, SOLVED, it->at_most ? "at_most" : "at_least")
A_BOOL(reached, SOLVED, it->any || !isnan(it->value))
A_TEXT(lever_name, P, it->verdict.lever == SIZE_MAX ? NULL : it->levers[it->verdict.lever].name)

/* The row that the answer is about. */
static void row_mark(const struct knee_at *at, struct knee_value *out)
{
    const P *p = at->up ? at->up->row : NULL;
    const ROW *row = at->row;
    bool here = p && p->row_count > 1 && row->workers == p->at.workers;
    knee_value_text(out, !here                                        ? ""
                         : p->at.workers == p->knee.tolerance_workers ? "<- last useful"
                                                                      : "<- here");
}

const struct knee_field knee_row_fields[KNEE_ROW_FIELDS] = {
    KNEE_FIELD(ROW, workers, "workers", "GPUs", COUNT, SCREEN, "GPUs, data parallel"),
    KNEE_BETWEEN(ROW, step.wall_s, step_sure, "step_s", "step", TIME, SCREEN,
                 "one step; `low_s` and `high_s` hold 90% of measured runs", .bare = true),
    KNEE_FIELD(ROW, throughput_per_s, "throughput_per_s", "examples/s", LARGE, SCREEN,
               "examples per second; steps where the batch is not known"),
    KNEE_BETWEEN(ROW, efficiency, efficiency_sure, "efficiency", "efficiency", SHARE, SCREEN,
                 "throughput per GPU over that of one GPU", .bare = true),
    KNEE_GET(exposed, "exposed_share", "exposed comm", SHARE, SCREEN,
             "share of the step that is communication nothing hides"),
    KNEE_FIELD(ROW, cost, "cost", "$/step", DOLLARS, FULL, "dollars per step"),
    KNEE_FIELD(ROW, local_batch, "local_batch", "batch per GPU", NUMBER, FULL, "examples per GPU"),
    KEY(ROW, global_batch, "global_batch", NUMBER, "examples per step"),
    KNEE_FIELD(ROW, step.label_s[KNEE_COMPUTE], "compute_s", "compute", TIME, FULL, "compute"),
    KNEE_FIELD(ROW, step.comm_s, "comm_s", "comm", TIME, FULL, "communication, hidden or not"),
    KNEE_FIELD(ROW, load_s, "load_s", "load", TIME, FULL, "data loading, hidden or not"),
    KNEE_GET(exposed_s, "exposed_comm_s", "exposed", TIME, FULL, "communication nothing hides"),
    KEY(ROW, exposed_load_s, "exposed_load_s", TIME, "loading nothing hides"),
    KEY(ROW, step.label_s[KNEE_TRANSFER], "transfer_s", TIME, "exposed transfer"),
    KNEE_FIELD(ROW, step.label_s[KNEE_WAIT], "wait_s", "wait", TIME, FULL, "waiting for ranks"),
    KEY(ROW, step.label_s[KNEE_STARVED], "starved_s", TIME, "waiting for input"),
    KNEE_FIELD(ROW, speedup, "speedup", "speed-up", TIMES, FULL, "against one GPU"),
    KEY_BY(compute_efficiency, "compute_efficiency", SHARE, "compute / step"),
    KNEE_BETWEEN(ROW, ratio, ratio_sure, "ratio", "R", NUMBER, FULL,
                 "exposed communication / compute"),
    KNEE_FIELD(ROW, gamma, "gamma", "gamma", NUMBER, FULL, "all communication / compute"),
    KEY(ROW, stall_cost, "stall_cost", DOLLARS, "of `cost`, without work"),
    KEY(ROW, joules, "joules", JOULES, "energy per step"),
    KEY(ROW, stall_joules, "stall_joules", JOULES, "of it without work"),
    KEY(ROW, steps_to_quality, "steps_to_quality", COUNT, "by --min-steps"),
    KNEE_FIELD(ROW, time_to_quality_s, "time_to_quality_s", "to quality", TIME, FULL, "likewise"),
    KNEE_GET(bottleneck, "bottleneck", "limited by", TEXT, FULL, "largest overhead"),
    KNEE_GET(row_mark, "mark", "", TEXT, SCREEN, "the row the answer is about"),
};

static const struct knee_field lever_fields[] = {
    KNEE_FIELD(LEVER, name, "name", "change", TEXT, SCREEN, "the change"),
    KNEE_FIELD(LEVER, change, "change", "to", TEXT, FULL, "how far"),
    KNEE_FIELD(LEVER, gain, "gain", "throughput", CHANGE, SCREEN, "after / before - 1"),
    KNEE_FIELD(LEVER, row.step.wall_s, "step_s", "step", TIME, SCREEN, "after the change"),
    KNEE_FIELD(LEVER, row.efficiency, "efficiency", "efficiency", SHARE, SCREEN, "after it"),
    KNEE_FIELD(LEVER, row.ratio, "ratio", "R", NUMBER, FULL, "after it"),
    KEY(LEVER, row.workers, "workers", COUNT, "GPUs after it"),
    KNEE_FIELD(LEVER, quality_gain, "quality_gain", "time to quality", CHANGE, FULL,
               "before / after - 1"),
    KNEE_FIELD(LEVER, knee_workers, "knee_workers", "knee", COUNT, FULL, "last useful GPU count"),
    KNEE_FIELD(LEVER, cost_ratio, "cost_ratio", "cost of work", TIMES, FULL,
               "dollars for the same work, after / before"),
    KEY(LEVER, saved_per_day, "saved_per_day", DOLLARS, "dollars"),
    KNEE_GET(numerics, "numerics", "numerics", TEXT, SCREEN, "same, rounding, or changes training"),
    KNEE_FIELD(LEVER, risk, "risk", "side effect", TEXT, FULL, "what else it does"),
    KEY_BY(changes_training, "changes_training", YES_NO, "changes what is learned in a step"),
};

static const struct knee_field verdict_fields[] = {
    KNEE_SENTENCE,
    KNEE_DO_WHY_BUYS,
    KEY(P, at.workers, "workers", COUNT, "the GPU count it is about"),
    KEY_BY(suspect, "suspect", TEXT, "largest overhead, or none"),
    KEY(P, verdict.suspect_share, "suspect_share", SHARE, "its share"),
    KEY_BY(wall, "wall", TEXT, "systems or statistical"),
    KEY_BY(lever_name, "lever", TEXT, "the advised change, of `levers`"),
};
static const struct knee_field regime_fields[] = {
    KEY(struct knee_regime, name, "regime", TEXT, "how it trains"),
    KEY(struct knee_regime, rule, "rule", TEXT, "the rule for it"),
};
OBJECT(regime_of, P, it->verdict.regime)
static const struct knee_field whole_verdict[] = {
    KNEE_AMONG_BY(knee_same_row, verdict_fields),
    KNEE_AMONG_BY(regime_of, regime_fields),
};

static const struct knee_field solve_fields[] = {
    KEY(SOLVED, variable, "variable", TEXT, "the input solved for"),
    KEY(SOLVED, target, "target", TEXT, "what it must reach"),
    KEY(SOLVED, wanted, "wanted", NUMBER, "the target's value"),
    KEY(SOLVED, workers, "workers", COUNT, "at so many GPUs"),
    KEY(SOLVED, value, "value", NUMBER, "of the input; null: none does"),
    KEY_BY(bound, "bound", TEXT, "at_most or at_least"),
    KEY(SOLVED, any, "any", YES_NO, "every value does"),
    KEY_BY(reached, "reached", YES_NO, "some value does"),
    KEY(SOLVED, now_value, "now_value", NUMBER, "of the input now"),
    KEY(SOLVED, now_target, "now_target", NUMBER, "of the target now"),
    KEY(SOLVED, best_value, "best_value", NUMBER, "best value of the input"),
    KEY(SOLVED, best_target, "best_target", NUMBER, "what that gives"),
    KEY_BY(knee_get_headline, "sentence", TEXT, "the answer in words"),
};

static const struct knee_field knee_fields[] = {
    KNEE_FIELD(P, knee.gamma_one_workers, "gamma_one_workers", "communication = compute at", COUNT,
               FULL, "GPUs at which communication takes as long as compute"),
    KNEE_FIELD(P, knee.ratio_one_workers, "ratio_one_workers", "exposed communication = compute at",
               COUNT, FULL, "the same of exposed communication"),
    KNEE_FIELD(P, job.tolerance, "tolerance", "lowest efficiency worth paying for", SHARE, FULL,
               "--tolerance"),
    KNEE_BETWEEN(P, knee.tolerance_workers, knee.sure, "tolerance_workers", "last useful GPU count",
                 COUNT, FULL, "last count with that efficiency; null: it never falls below"),
    KNEE_FIELD(P, knee.peak_throughput_workers, "peak_throughput_workers", "highest throughput at",
               COUNT, FULL, "GPUs; null: still rising"),
    KNEE_FIELD(P, knee.limit_workers, "limit_workers", "one example per GPU at", COUNT, FULL,
               "GPUs at which the batch runs out"),
};
#define MEMORY struct knee_feasibility
static const struct knee_field memory_fields[] = {
    KNEE_FIELD(MEMORY, needed_bytes, "needed_bytes", "states of the model", BYTES, FULL,
               "weights, gradients and optimizer states, unsharded"),
    KNEE_FIELD(MEMORY, capacity_bytes, "capacity_bytes", "memory of a GPU", BYTES, FULL,
               "of the GPU"),
    KNEE_FIELD(MEMORY, fits, "fits_unsharded", "fits unsharded", YES_NO, FULL,
               "true also where nothing is known"),
    KNEE_FIELD(MEMORY, zero1_workers, "zero1_workers", "fits with ZeRO-1 from", COUNT, FULL,
               "GPUs; null: never"),
    KEY(MEMORY, recomputed, "zero3_recomputed", YES_NO, "with full recomputation only"),
    KNEE_FIELD(MEMORY, zero3_workers, "zero3_workers", "fits with FSDP from", COUNT, FULL,
               "GPUs; null: never"),
};
#define WALLS struct knee_walls
static const struct knee_field wall_fields[] = {
    KNEE_FIELD(WALLS, systems_workers, "systems_workers", "systems wall at", COUNT, FULL,
               "last count with the efficiency asked for"),
    KNEE_FIELD(WALLS, statistical_workers, "statistical_workers", "critical batch reached at",
               COUNT, FULL, "GPUs; null: never"),
    KNEE_FIELD(WALLS, quality_workers, "quality_workers", "shortest time to quality at", COUNT,
               FULL, "GPUs; null: still falling"),
    KNEE_FIELD(WALLS, examples_ratio, "examples_ratio", "examples needed over the fewest", TIMES,
               FULL, "at this batch"),
    KNEE_GET(first_wall, "first", "first wall", TEXT, FULL, "systems or statistical"),
};
#define COSTS struct knee_cost
static const struct knee_field cost_fields[] = {
    KNEE_FIELD(COSTS, step, "step", "step", DOLLARS, FULL, "dollars per step"),
    KNEE_FIELD(COSTS, day, "day", "day", DOLLARS, FULL, "per day"),
    KNEE_FIELD(COSTS, run, "run", "run", DOLLARS, FULL, "of --steps"),
    KNEE_FIELD(COSTS, stall_step, "stall_step", "step, stalled", DOLLARS, FULL, "without work"),
    KNEE_FIELD(COSTS, stall_day, "stall_day", "day, stalled", DOLLARS, FULL, "without work"),
    KNEE_FIELD(COSTS, stall_run, "stall_run", "run, stalled", DOLLARS, FULL, "without work"),
    KNEE_FIELD(COSTS, joules_step, "joules_step", "energy of a step", JOULES, FULL, "energy"),
    KNEE_FIELD(COSTS, joules_day, "joules_day", "energy of a day", JOULES, FULL, "energy"),
    KNEE_FIELD(COSTS, joules_run, "joules_run", "energy of the run", JOULES, FULL, "energy"),
    KEY(COSTS, stall_joules_step, "stall_joules_step", JOULES, "without work"),
    KEY(COSTS, stall_joules_day, "stall_joules_day", JOULES, "without work"),
    KEY(COSTS, stall_joules_run, "stall_joules_run", JOULES, "without work"),
    KEY(COSTS, run_steps, "run_steps", COUNT, "steps of the run"),
};

WHEN(solved, P, it->solution != NULL)

static void note_words(const struct knee_note *note, struct knee_text *text)
{
    static const char *const fmt[KNEE_NOTES] = {
        [KNEE_NOTE_HALF_EXAMPLE] =
            "From %.0f GPUs on each has less than one example: add TP, CP or PP (knee plan).",
        [KNEE_NOTE_OVERHIDDEN] = ("From %.0f GPUs on --hidden hides more than there is compute: a "
                                  "measured share does not carry that far."),
        [KNEE_NOTE_LATENCY] =
            "From %.0f GPUs on latency is most of the all-reduce: try --algorithm tree.",
        [KNEE_NOTE_MEASURED_AT] =
            "The measured times are taken as those of %.0f GPUs (--measured-workers).",
        [KNEE_NOTE_NO_ENCODE] = "Compression leaves out the time to encode: it needs --params.",
        [KNEE_NOTE_SURE] =
            "Intervals cover 90% of published runs; your inputs are treated as exact.",
        [KNEE_NOTE_MFU] = "Assumed %.0f%% MFU; published runs range widely. Set --mfu.",
    };
    if (isnan(note->value))
        knee_text_puts(text, fmt[note->kind]);
    else
        knee_text_printf(text, fmt[note->kind], note->value);
}
GETTER(note, struct knee_note, note_words(it, &out->words); out->is = KNEE_A_TEXT)
static const struct knee_field note_fields[] = {
    KNEE_GET(note, NULL, NULL, TEXT, DATA, "a sentence")};

static const struct knee_field fields[] = {
    KNEE_GROUP("verdict", whole_verdict, "what to do"),
    KNEE_INSIDE(P, solution, "solve", solve_fields, "the answer to --solve", .pointer = true,
                .when = solved),
    KNEE_GROUP("knee", knee_fields, "where more GPUs stop paying", .heading = "knee"),
    KNEE_INSIDE(P, memory, "memory", memory_fields, "does it fit?"),
    KNEE_INSIDE(P, walls, "walls", wall_fields, "systems and statistics"),
    KEY_BY(scaling, "scaling", TEXT, "strong or weak"),
    KEY_BY(micro_batch, "micro_batch", NUMBER, "examples in a pass at `at`; null: not known"),
    KNEE_ROWS(P, rows, row_count, "rows", knee_row_fields, "one row per GPU count"),
    KNEE_INSIDE(P, at, "at", knee_row_fields, "the row that the answer is about", .flat = true),
    KNEE_ARRAY(P, levers, lever_count, "levers", lever_fields, "changes, largest gain first"),
    KNEE_INSIDE(P, cost, "cost", cost_fields, "dollars and energy"),
    KNEE_USED(P, job, knee_job_keys),
    KNEE_ARRAY(P, notes, note_count, "notes", note_fields, "where the model is stretched"),
};

/* Eight rows around the one that the answer is about. */
static bool near(const struct knee_at *row)
{
    const P *p = row->up->row;
    size_t at = 0;
    while (at + 1 < p->row_count && p->rows[at].workers < p->at.workers)
        at++;
    size_t first = at > 5 ? at - 5 : 0;
    return row->index >= first;
}

static const struct knee_view views[] = {
    {.list = "rows", .pick = near},   {.list = "levers", .title = "Changes", .tier = FULL},
    {.list = "knee", .tier = FULL},   {.list = "memory", .tier = FULL},
    {.list = "walls", .tier = FULL},  {.list = "cost", .tier = FULL},
    {.list = "inputs", .tier = FULL},
};

static void curve(const void *result, struct knee_plot_line *line)
{
    const P *p = result;
    line->count = p->row_count;
    line->x_name = "GPUs";
    line->y_name = "efficiency";
    line->mark = p->knee.tolerance_workers;
    line->mark_name = "knee";
    line->level = p->job.tolerance;
    line->level_name = "lowest worth paying for";
    for (size_t i = 0; line->x && i < p->row_count; i++) {
        line->x[i] = p->rows[i].workers;
        line->y[i] = p->rows[i].efficiency;
    }
}
static const struct knee_picture pictures[] = {{.tier = FULL, .curve = curve}};

/* ---- Sentences ---- */

static const char *example_word(const P *p)
{
    return p->job.seq > 1 ? "sequence" : "example";
}

static void say_title(const P *p, struct knee_text *text)
{
    const struct knee_gpu *gpu = knee_hardware_gpu(&p->job.hw);
    const char *model = p->job.model >= 0 ? knee_model_names.name((size_t)p->job.model) : NULL;
    if (model)
        knee_text_puts(text, model);
    else if (!isnan(p->job.params))
        PUT(text, "{large} parameters", p->job.params);
    else
        PUT(text, "Measured job");
    PUT(text, "[ on {}], data parallel", gpu ? gpu->name : "");
    if (p->at.global_batch >= 1 && p->job.scaling == KNEE_STRONG && p->job.seq > 1)
        PUT(text, ", batch {} x {} tokens", p->at.global_batch, p->job.seq);
    else if (p->job.scaling == KNEE_STRONG && p->at.global_batch >= 1)
        PUT(text, ", batch {count}", p->at.global_batch);
    else if (p->at.local_batch >= 1)
        PUT(text, ", batch {count} per GPU", p->at.local_batch);
    double size = knee_forecast_micro_batch(&p->terms, p->at.workers);
    PUT(text, "[, micro-batch {}]", size > 1 ? size : (double)NAN);
}

static void say_memory(const P *p, struct knee_text *text)
{
    const struct knee_feasibility *m = &p->memory;
    if (m->fits)
        return;
    PUT(text, "Too big for one GPU: needs {bytes}, has {bytes}. ", m->needed_bytes,
        m->capacity_bytes);
    if (isnan(m->zero3_workers))
        PUT(text, "Add TP, PP or CP: knee plan.");
    PUT(text, "[Use FSDP on {GPUs} or more.]", m->zero3_workers);
}

static void say_knee(const P *p, struct knee_text *text)
{
    const struct knee_knee *knee = &p->knee;
    double stop = knee->tolerance_workers;
    if (isnan(stop))
        PUT(text, "Add GPUs: efficiency never falls below {share}.", p->job.tolerance);
    else if (stop <= 1)
        PUT(text, "Use one GPU: two run below {share} efficiency.", p->job.tolerance);
    else if (stop == knee->limit_workers)
        PUT(text, "Scales to {GPUs}, where each has one {} left[: efficiency {share}].", stop,
            example_word(p), p->at.workers == stop ? 0 : knee->tolerance_efficiency);
    else
        PUT(text, "{} {}{GPUs}, the last count with {share} efficiency.",
            p->at.workers > stop ? "Stop at" : "Scales to",
            knee_rough(knee->sure.low, knee->sure.high) ? "roughly " : "", stop, p->job.tolerance);
}

static const char *suspect_words(enum knee_suspect suspect)
{
    static const char *const words[KNEE_SUSPECTS] = {
        [KNEE_SUSPECT_COMM] = "exposed communication",
        [KNEE_SUSPECT_INPUT] = "waiting for the loader",
        [KNEE_SUSPECT_STRAGGLER] = "waiting for slow ranks",
        [KNEE_SUSPECT_TINY_BATCH] = "tiny-batch overhead",
        [KNEE_SUSPECT_COPY] = "exposed copies",
        [KNEE_SUSPECT_IDLE] = "idle",
    };
    return words[suspect] ? words[suspect] : knee_suspect_name(suspect);
}

#define WORTHWHILE 0.05 /* gain of a change that the headline names */
#define HEALTHY    0.9

static void say_reason(const P *p, struct knee_text *text)
{
    const struct knee_verdict *v = &p->verdict;
    const struct knee_row *at = &p->at;
    PUT(text, "{GPUs}: {share} efficiency", at->workers,
        SPAN(at->efficiency, at->efficiency_sure.low, at->efficiency_sure.high));
    double exposed = knee_step_exposed_s(&at->step) / at->step.wall_s;
    bool none = v->suspect == KNEE_SUSPECT_NONE;
    if (p->terms.forecast.known && at->workers > p->knee.limit_workers)
        PUT(text, ", {time} per step: {GPUs} have no {}.", at->step.wall_s,
            at->workers - p->knee.limit_workers, example_word(p));
    else if (none && at->efficiency < HEALTHY && at->local_batch >= 1)
        PUT(text, ", {time} per step: too little work, {} per GPU.", at->step.wall_s,
            knee_say_count(at->local_batch, example_word(p)).s);
    else if (none && exposed < KNEE_NO_BOTTLENECK)
        PUT(text, ", {time} per step, no overhead above 2%.", at->step.wall_s);
    else if (v->suspect == KNEE_SUSPECT_LARGE_BATCH)
        PUT(text, "; {share} of the batch is above the critical {large}.", v->suspect_share,
            p->job.critical_batch);
    else
        PUT(text, "; {share} of each {time} step is {}.",
            none || v->suspect == KNEE_SUSPECT_COMM ? exposed : v->suspect_share, at->step.wall_s,
            suspect_words(none ? KNEE_SUSPECT_COMM : v->suspect));
}

/* The best safe change at this GPU count; NULL: none. Changes come with the largest gain first. */
static const LEVER *best_here(const P *p)
{
    for (size_t i = 0; i < p->lever_count; i++)
        if (!(p->levers[i].kind & KNEE_LEVER_WORKERS) &&
            p->levers[i].numerics != KNEE_NUMERICS_TRAINING)
            return &p->levers[i];
    return NULL;
}

static void say_change(const P *p, struct knee_text *text)
{
    const LEVER *lever = p->verdict.lever == SIZE_MAX ? NULL : &p->levers[p->verdict.lever];
    const LEVER *grow = lever && lever->kind & KNEE_LEVER_WORKERS ? lever : NULL;
    if (grow)
        lever = best_here(p);
    if (!lever || !(lever->gain >= WORTHWHILE)) {
        PUT(text, "{}o change gains {share} or more.",
            p->at.efficiency >= HEALTHY ? "Healthy: n" : "N", WORTHWHILE);
        if (grow && p->at.efficiency >= p->job.tolerance)
            PUT(text, " Twice the GPUs: {times} throughput.", 1 + grow->gain);
        return;
    }
    PUT(text, "Best change: {}, {change} throughput[, saves {dollars} per day]{}.", lever->action,
        lever->gain, lever->saved_per_day,
        lever->numerics == KNEE_NUMERICS_TRAINING ? "; changes training" : "");
}

static bool is_default(const P *p, const char *key)
{
    return p->job.source[knee_keys_find(&knee_job_keys, key)] == KNEE_DEFAULT;
}

static void say_assumed(const P *p, struct knee_text *text)
{
    if (!p->job.forecast)
        PUT(text, "textbook formulas");
    if (is_default(p, "mfu") && p->job.mfu > 0)
        PUT(text, "{}{share} MFU (--mfu)", text->length ? ", " : "", p->job.mfu);
    if (is_default(p, "overlap") && p->at.ratio > 0.05)
        PUT(text, "{}no overlap (--overlap)", text->length ? ", " : "");
    if (p->terms.cluster.name[0] &&
        p->job.source[knee_keys_find(&knee_job_keys, "cluster")] == KNEE_DEFAULT &&
        knee_hardware_has_cluster(&p->job.hw))
        PUT(text, "{}cluster {} (--cluster)", text->length ? ", " : "", p->terms.cluster.name);
}

static void say_next(const P *p, struct knee_text *text)
{
    const struct knee_gpu *gpu = knee_hardware_gpu(&p->job.hw);
    if (p->job.model >= 0 && isnan(knee_model_at((size_t)p->job.model)->shape.layers))
        PUT(text, "add -v for changes, memory and cost");
    else if (p->job.model >= 0 && gpu)
        PUT(text, "knee plan --model {} --gpu {} --gpus {} finds the split",
            knee_model_names.name((size_t)p->job.model), gpu->name, p->at.workers);
    else if (!gpu)
        PUT(text, "add --gpu for memory, prices and intervals");
    else
        PUT(text, "add --model to let knee plan find the split");
}

/* A value of an input or of a target, in its unit. */
static struct knee_word in_unit(double value, enum knee_unit unit)
{
    enum knee_kind kind = unit == KNEE_UNIT_SECONDS       ? TIME
                          : unit == KNEE_UNIT_BYTES_PER_S ? RATE
                          : unit == KNEE_UNIT_FRACTION    ? SHARE
                          : unit == KNEE_UNIT_COUNT       ? COUNT
                                                          : NUMBER;
    return knee_say_number(value, kind);
}

static void say_solution(const SOLVED *s, struct knee_said *said)
{
    struct knee_text *text = &said->headline;
    struct knee_word wanted = in_unit(s->wanted, s->target_unit);
    bool gpus = strcmp(s->variable, "workers") == 0;
    const char *variable = gpus ? "number of GPUs" : s->variable;
    if (s->any)
        PUT(text, "Any {} gives {} {}", variable, s->target, wanted.s);
    else if (isnan(s->value))
        PUT(text, "No value of {} gives {} {}", variable, s->target, wanted.s);
    else if (gpus)
        PUT(text, "Use at {} {GPUs}: {} is then {}", s->at_most ? "most" : "least", s->value,
            s->target, wanted.s);
    else
        PUT(text, "Set {} to at {} {}: {} is then {}", variable, s->at_most ? "most" : "least",
            in_unit(s->value, s->unit).s, s->target, wanted.s);
    PUT(text, "[ on {GPUs}].", s->workers);
    if (isnan(s->value) && !s->any)
        PUT(&said->reason, "The best, {}, gives {}. ", in_unit(s->best_value, s->unit).s,
            in_unit(s->best_target, s->target_unit).s);
    if (!isnan(s->now_target) && !isnan(s->now_value))
        PUT(&said->reason, "Now {} gives {}.", in_unit(s->now_value, s->unit).s,
            in_unit(s->now_target, s->target_unit).s);
}

static void say_notes(const P *p, struct knee_text *text)
{
    const struct knee_knee *knee = &p->knee;
    if (!isnan(knee->next_efficiency) && knee->tolerance_workers != knee->limit_workers)
        PUT(text, "efficiency crosses {share} between {} and {} GPUs\n", p->job.tolerance,
            knee->tolerance_workers, knee->tolerance_workers + 1);
    PUT(text, "rule for {}: {}\n", p->verdict.regime->name, p->verdict.regime->rule);
    if (p->cost.stall_day > 0)
        PUT(text, "stalls cost {dollars} of {dollars} per day\n", p->cost.stall_day, p->cost.day);
    for (size_t i = 0; i < p->note_count; i++) {
        note_words(&p->notes[i], text);
        PUT(text, "\n");
    }
}

static void say(const void *result, struct knee_said *said)
{
    const P *p = result;
    struct knee_sure step = p->at.step_sure;
    bool rough = knee_rough(step.low, step.high);
    say_title(p, &said->title);
    say_memory(p, &said->voids);
    if (p->solution)
        say_solution(p->solution, said);
    else {
        say_knee(p, &said->headline);
        say_reason(p, &said->reason);
    }
    if (p->memory.recomputed && !isnan(p->memory.zero3_workers))
        PUT(&said->after, "FSDP fits with full recomputation only: a third more compute.\n");
    if (rough)
        PUT(&said->effect,
            "Rough: a step takes {time} to {time}. Give --mfu or a measured --compute-time.",
            step.low, step.high);
    if (!p->solution)
        say_change(p, rough ? &said->after : &said->effect);
    say_assumed(p, &said->assumed);
    say_next(p, &said->next);
    say_notes(p, &said->notes);
}

const struct knee_answer_type knee_predict_answer = {.schema = "knee.predict/1",
                                                     KNEE_FIELDS(fields),
                                                     KNEE_VIEWS(views),
                                                     .pictures = pictures,
                                                     .picture_count = 1,
                                                     .say = say};

/* For the page: one count under several sets of changes. */
static const struct knee_field regimes_fields[] = {
    KNEE_ROWS(struct knee_regime_rows, rows, count, "rows", knee_row_fields,
              "one row per set of changes"),
};
const struct knee_answer_type knee_regimes_answer = {.schema = "knee.regimes/1",
                                                     KNEE_FIELDS(regimes_fields)};

/* SPDX-License-Identifier: MIT */
/*
 * Measured runs from a table. Numbers go by one list of columns straight into shape, plan and
 * platform; a few columns are words that need reading (GPU, precision, sharding, recomputation,
 * what was overlapped). What a row does not say is taken as its framework usually has it, and
 * noted; what cannot be expressed is noted too and never guessed.
 */
#include "base/csv.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/fold.h"
#include "base/format.h"
#include "base/json_values.h"
#include "base/keys.h"
#include "base/list.h"
#include "base/number.h"
#include "base/text.h"
#include "job/memory.h"
#include "job/models.h"
#include "job/profile.h"
#include "knee_runs.h"
#include "read/run/runs_row.h"

#include <math.h>
#include <string.h>

#define ROWS_MAX   100000
#define USUAL_RANK 16 /* of adapters where a run only says that it has some */

void knee_runs_release(struct knee_runs *runs)
{
    knee_resize(runs->alloc, runs->run, 0);
    runs->run = NULL;
    runs->count = 0;
}

/* ---- Columns that are words ---- */

static const char *const words[WORDS] = {
    "id",
    "set",
    "source",
    "gpu",
    "model",
    "precision",
    "zero",
    "recompute",
    "overlap",
    "notes",
    "config_full",
    "curve",
    "profile",
    "cuda_graphs",
    "graph_scope",
    "ep_overlap",
    "dispatcher",
    "recompute_modules",
    "fp8_attention",
    "pipeline_layout",
    "switches",
    "match",
};

/* ---- Precision, sharding, recomputation, overlap ---- */

struct meaning {
    const char *part;
    int value;
};

/* The first row whose part stands in the text; -1: none. */
static int meaning_of(const struct meaning *table, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(text, table[i].part))
            return table[i].value;
    return -1;
}
#define MEANING(table, text) meaning_of(table, sizeof table / sizeof *table, text)

static void read_precision(struct knee_run_row *row)
{
    static const struct meaning table[] = {
        {"fp4", KNEE_FP4}, {"mx", KNEE_FP8_BLOCK}, {"block", KNEE_FP8_BLOCK}, {"row", KNEE_FP8_ROW},
        {"fp8", KNEE_FP8}, {"bf16", KNEE_BF16},    {"fp16", KNEE_FP16},       {"amp", KNEE_FP16},
    };
    row->run->plan.precision = MEANING(table, row->word[PRECISION]);
    if (!row->word[PRECISION][0]) {
        row->run->plan.precision = KNEE_BF16;
        knee_run_note(row->run->assumed, "precision");
    } else if (row->run->plan.precision < 0) {
        knee_run_skip(row, "precision %.60s is not modelled", row->word[PRECISION]);
    }
}

static void read_sharding(struct knee_run_row *row, bool sharded_profile)
{
    static const struct meaning table[] = {
        {"grad-op", KNEE_ZERO2}, {"zero2", KNEE_ZERO2},    {"zero-2", KNEE_ZERO2},
        {"zero1", KNEE_ZERO1},   {"zero-1", KNEE_ZERO1},   {"fsdp", KNEE_ZERO3},
        {"3", KNEE_ZERO3},       {"2", KNEE_ZERO2},        {"1", KNEE_ZERO1},
        {"0", KNEE_REPLICATE},   {"none", KNEE_REPLICATE},
    };
    struct knee_plan *plan = &row->run->plan;
    plan->shard = MEANING(table, row->word[ZERO]);
    if (plan->shard < 0) {
        plan->shard = sharded_profile ? KNEE_ZERO3 : KNEE_REPLICATE;
        knee_run_note(row->run->assumed, "zero");
    }
    /* sharded in the node and copied over nodes (for a TPU: slices) */
    static const char *const inside[] = {"hsdp", "hybrid", "in slice", "in node"};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (strstr(row->word[ZERO], inside[i]) && isnan(plan->shard_size))
            plan->shard_size = fmin(row->run->platform.hw.gpus_per_node, plan->gpus) /
                               (isnan(plan->tp) ? 1 : plan->tp);
    const char *group = strstr(row->word[NOTES], "fsdp group ");
    if (group && isnan(plan->shard_size))
        plan->shard_size = knee_decimal_parse(group + strlen("fsdp group "), NULL);
}

static void read_recompute(struct knee_run_row *row)
{
    static const struct meaning table[] = {
        {"selective(op)", KNEE_BY_OP}, {"op", KNEE_BY_OP},  {"selective", KNEE_SELECTIVE},
        {"full", KNEE_FULL},           {"none", KNEE_KEEP}, {"minimal", KNEE_SELECTIVE},
        {"custom offload", KNEE_FULL},
    };
    row->run->plan.recompute = MEANING(table, row->word[RECOMPUTE]);
    if (row->run->plan.recompute < 0)
        knee_run_note(row->run->assumed, "recompute");
}

#define CANNOT_FIT 0.02 /* probability: what the account leaves open is given the benefit */

/* Runs recompute no more than they need to fit. If a row does not give it, assume the least that
 * may fit. */
static void least_recompute(struct knee_measured_run *run, const struct knee_machine *machine)
{
    struct knee_split split = knee_split_of(&run->shape, &machine->rates, &run->plan);
    struct knee_footprint footprint;
    knee_footprint_of(&split, &footprint);
    for (run->plan.recompute = KNEE_KEEP; run->plan.recompute < KNEE_FULL; run->plan.recompute++) {
        struct knee_memory memory;
        knee_memory_of(&footprint, &run->shape, machine, &run->plan, &memory);
        if (knee_memory_fit(&memory) >= CANNOT_FIT)
            return;
    }
}

static void read_overlap(struct knee_run_row *row)
{
    struct knee_plan *plan = &row->run->plan;
    const char *text = row->word[OVERLAP];
    bool none = strncmp(text, "none", 4) == 0;
    plan->overlap_dp = !(none || strstr(text, "no dp"));
    plan->overlap_tp = !(none || strstr(text, "no tp") || strstr(text, "vanilla tp"));
    plan->overlap_pp = !none;
    plan->drop_tokens = strstr(row->word[NOTES], "tokendrop") != NULL;
    if (isnan(plan->gradient_bytes) && strstr(row->word[NOTES], "mp mode pure"))
        plan->gradient_bytes = 2;
}

/* ---- Switches of a recipe ----
 *
 * Each switch has its own column, with the words of Megatron-Bridge's recipes or 0 and 1. If that
 * is empty, the words of the columns "overlap" and "switches" decide. */

/* Share of a layer's launches that a CUDA graph replaces. By how much of a layer the scopes of
 * Transformer Engine's graphs cover; a graph of the whole step leaves the data and the optimizer.
 */
#define WHOLE_STEP_GRAPH 0.98
#define LAYER_GRAPH      0.9
#define ATTENTION_GRAPH  0.7
#define ROUTER_GRAPH     0.4

static double graphs_of(const struct knee_run_row *row, const char *said)
{
    const char *word = row->word[GRAPHS], *scope = row->word[GRAPH_SCOPE];
    double share = knee_decimal_parse(word, NULL);
    if (!*word)
        word = said;
    else if (share > 0 && share < 1)
        return share;
    if (strstr(word, "none") || strstr(word, "no cuda graph") || word[0] == '0')
        return 0;
    if (strstr(word, "full") || strstr(said, "full-iteration"))
        return WHOLE_STEP_GRAPH;
    if (strstr(scope, "attn") || strstr(scope, "mlp"))
        return ATTENTION_GRAPH;
    if (strstr(scope, "moe"))
        return ROUTER_GRAPH;
    bool any = strstr(word, "transformer_engine") || strstr(word, "cuda graph") || word[0] == '1';
    return any ? LAYER_GRAPH : NAN;
}

/* 1 or 0 from a column, else from a phrase; NaN: neither says. */
static double switch_of(const char *word, const char *said, const char *phrase)
{
    if (*word)
        return word[0] == '1' || word[0] == 't' || word[0] == 'y';
    return strstr(said, phrase) ? 1 : NAN;
}

/* A recipe that was found (column match: how many of its degrees agree) and names no dispatcher has
 * the plain exchange. */
static double dispatcher_of(const struct knee_run_row *row, const char *said)
{
    const char *word = row->word[DISPATCHER];
    static const char *const once[] = {"deepep", "hybridep", "hybrid_ep", "1"};
    const char *text = *word ? word : said;
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (strstr(text, once[i]) && (*word || i < 3))
            return 1;
    bool found = row->word[MATCH][0] > '0';
    return *word || found ? 0 : NAN;
}

/* Pieces of a layout such as Et*4|(t*4|)*14tmL: bars, those in parentheses as often as the group.
 */
static double layout_pieces(const char *text)
{
    double bars = 0, inside = 0;
    bool group = false;
    for (const char *at = text; *at; at++) {
        if (*at == '(')
            group = true, inside = 0;
        else if (*at == ')') {
            double times = at[1] == '*' ? knee_decimal_parse(at + 2, NULL) : 1;
            bars += inside * (isnan(times) ? 1 : times);
            group = false;
        } else if (*at == '|')
            *(group ? &inside : &bars) += 1;
    }
    return *text ? bars + 1 : NAN;
}

static void read_modules(struct knee_run_row *row)
{
    struct knee_plan *plan = &row->run->plan;
    const char *word = row->word[MODULES];
    if (!*word || strcmp(word, "none") == 0 || word[0] == '0')
        return;
    plan->modules = knee_choice_find(&knee_modules_names, word, "", NULL);
    if (plan->modules < 0)
        knee_run_note(row->run->assumed, "recompute_modules");
    else if (plan->recompute < KNEE_SELECTIVE)
        plan->recompute = KNEE_SELECTIVE;
}

static void read_switches(struct knee_run_row *row)
{
    struct knee_plan *plan = &row->run->plan;
    char said[2 * KNEE_CSV_TEXT];
    knee_format(said, sizeof said, "%.400s; %.400s", row->word[OVERLAP], row->word[SWITCHES]);
    plan->graphs = graphs_of(row, said);
    plan->overlap_ep = switch_of(row->word[EP_OVERLAP], said, "moe 1f1b overlap");
    plan->fp8_attention = switch_of(row->word[FP8_ATTENTION], said, "fp8 attention");
    if (isnan(plan->dedup))
        plan->dedup = dispatcher_of(row, said);
    double pieces = layout_pieces(row->word[LAYOUT]);
    if (isnan(plan->vp) && plan->pp >= 1 && !isnan(pieces))
        plan->vp = fmax(1, floor(pieces / plan->pp));
    if (isnan(row->run->shape.extra_layers) && strstr(row->word[NOTES], "multi-token-prediction"))
        row->run->shape.extra_layers = 1;
    read_modules(row);
}

/* ---- What a row does not say ---- */

static bool in_line(int profile, const char *base)
{
    for (int i = 0; profile >= 0 && i < 8; i++) {
        if (strcmp(knee_profiles[profile].name, base) == 0)
            return true;
        profile = knee_profile_row(knee_profiles[profile].base);
    }
    return false;
}

/* Recipes interleave as finely as the layers allow (embedding and loss may stand in for a layer
 * each, as in knee_plan_stages()), those of 2021 with two pieces. */
static double usual_pieces(const struct knee_measured_run *run)
{
    double layers = run->shape.layers, pp = run->plan.pp, most = 1;
    if (!(pp > 1))
        return 1;
    for (double pieces = 1; pieces * pp <= layers; pieces++)
        if (fmod(layers, pieces * pp) == 0 ||
            (layers + 2 > pieces * pp && fmod(layers + 2, pieces * pp) == 0))
            most = pieces;
    double share = run->plan.gpus / (pp * (isnan(run->plan.tp) ? 1 : run->plan.tp));
    if (run->plan.global_batch / (share * fmax(1, run->plan.micro_batch)) < pp)
        return 1; /* too few micro-batches to interleave */
    return in_line(run->platform.profile, "megatron-lm") ? fmin(most, 2) : most;
}

static void assume(struct knee_measured_run *run, double *field, double value, const char *name)
{
    if (!isnan(*field))
        return;
    *field = value;
    if (name)
        knee_run_note(run->assumed, name);
}

static void fill_usual(struct knee_measured_run *run)
{
    struct knee_plan *plan = &run->plan;
    assume(run, &plan->tp, 1, "tp");
    assume(run, &plan->pp, 1, "pp");
    assume(run, &plan->cp, 1, NULL);
    assume(run, &plan->ep, 1, NULL);
    assume(run, &plan->vp, usual_pieces(run), plan->pp > 1 ? "vp" : NULL);
    assume(run, &plan->seq_par, 0, plan->tp > 1 ? "seq_par" : NULL);
    /* Containers before 2025 cut experts by the tensor-parallel degree. */
    const struct knee_profile *profile = &knee_profiles[run->platform.profile];
    bool cut = strcmp(profile->family, "nemo") == 0 && profile->version < 25;
    assume(run, &plan->etp, cut && run->shape.experts > 1 ? plan->tp : 1, NULL);
    if (isnan(plan->micro_batch))
        knee_run_note(run->assumed, "micro_batch");
}

/* ---- A row ---- */

static void read_profile(struct knee_run_row *row, const char *gpu)
{
    struct knee_platform *platform = &row->run->platform;
    if (row->word[PROFILE][0])
        platform->profile = knee_profile_row(row->word[PROFILE]);
    else
        platform->profile = knee_profile_pick(row->description, gpu, row->word[PRECISION]);
    if (platform->profile < 0) {
        knee_run_skip(row, "unknown profile '%.60s'", row->word[PROFILE]);
        platform->profile = knee_profile_row("generic");
    }
}

/* The word itself or one that ends in it (qlora), not a part of exploration. */
static bool says_lora(const char *text)
{
    for (const char *at = text; (at = strstr(at, "lora")); at++)
        if ((at == text || at[-1] < 'a' || at[-1] > 'z' || at[-1] == 'q') && at[4] != 't')
            return true;
    return false;
}

/* Layers for which the columns have no place are reported, not taken as plain attention. */
static void check_layers(struct knee_run_row *row)
{
    static const char *const hybrids[] = {"mamba",     "jamba",      "zamba",      "nemotron-h",
                                          "nemotronh", "nemotron-3", "qwen3-next", "falcon-h1"};
    char model[KNEE_RUN_TEXT];
    knee_format(model, sizeof model, "%s", row->run->model);
    knee_run_lower(model);
    for (size_t i = 0; i < sizeof hybrids / sizeof *hybrids; i++)
        if (strstr(model, hybrids[i]) && isnan(row->run->shape.linear_layers))
            knee_run_skip(row, "which layers of %.40s have state space is not given",
                          row->run->model);
    if ((says_lora(row->description) || says_lora(model)) && isnan(row->run->shape.lora_rank)) {
        row->run->shape.lora_rank = USUAL_RANK;
        knee_run_note(row->run->assumed, "lora_rank");
    }
    /* MLPerf's benchmark has adapters on attention's maps alone. */
    if (row->run->shape.lora_rank > 0 && isnan(row->run->shape.lora_attention))
        row->run->shape.lora_attention = strstr(row->description, "mlperf") != NULL;
}

/* A preset of the same name and width knows what the columns do not: latent attention, windows. */
static void read_shape(struct knee_run_row *row)
{
    struct knee_measured_run *run = row->run;
    const struct knee_model *preset = knee_model_named(run->model);
    if (isnan(run->shape.hidden) && !preset)
        knee_run_skip(row, "the shape of %.60s is not given",
                      *run->model ? run->model : "the model");
    if (run->shape.experts <= 1)
        run->shape.experts = NAN;
    if (preset && (isnan(run->shape.hidden) || run->shape.hidden == preset->shape.hidden))
        knee_shape_fill(&run->shape, preset);
    check_layers(row);
    struct knee_err err;
    if (!run->skipped[0] && knee_shape_complete(&run->shape, &err))
        knee_run_skip(row, "%.90s", err.what);
}

/* Numbers that no such thing has, and counts that are not whole. */
static void check_ranges(struct knee_run_row *row)
{
    struct knee_measured_run *run = row->run;
    const struct knee_key *wrong = knee_keys_out_of_range(&knee_shape_keys, &run->shape);
    if (!wrong)
        wrong = knee_keys_out_of_range(&knee_plan_keys, &run->plan);
    if (!wrong)
        wrong = knee_keys_out_of_range(&knee_platform_keys, &run->platform);
    if (wrong)
        knee_run_skip(row, "%.40s is out of range", wrong->name);
    if (!isnan(run->plan.gpus) && !(run->plan.gpus >= 1 && run->plan.gpus <= KNEE_WORKERS_MAX))
        knee_run_skip(row, "%s", "n_gpus is out of range");
    if (!isnan(run->plan.dp) && !(run->plan.dp >= 1 && run->plan.dp <= KNEE_WORKERS_MAX))
        knee_run_skip(row, "%s", "dp is out of range");
}

static void check_run(struct knee_run_row *row)
{
    struct knee_measured_run *run = row->run;
    struct knee_machine machine;
    struct knee_err err;
    bool told = run->plan.recompute >= 0;
    check_ranges(row);
    if (!(run->step_s > 0))
        knee_run_skip(row, "%s", "no step time");
    if (!run->skipped[0] && isnan(run->plan.gpus))
        knee_run_skip(row, "%s", "the number of GPUs is not given");
    if (!run->skipped[0] && isnan(run->plan.global_batch))
        knee_run_skip(row, "%s", "the global batch is not given");
    if (!run->skipped[0] && knee_machine_init(&run->platform, NULL, &machine, &err))
        knee_run_skip(row, "%.90s", err.what);
    if (!run->skipped[0] && knee_plan_complete(&run->plan, &run->shape, &machine, &err))
        knee_run_skip(row, "%.90s", err.what);
    /* A vendor's recipe or a compiler has little of it, in ways that the account does not know:
     * taken as none, which was seen to be nearer than the least that fits. */
    told = told || row->word[RECOMPUTE][0] != '\0';
    if (!run->skipped[0] && !told && !isnan(machine.memory_bytes))
        least_recompute(run, &machine);
}

static void read_words(struct knee_run_row *row)
{
    struct knee_measured_run *run = row->run;
    knee_format(run->id, sizeof run->id, "%.90s", row->word[ID]);
    const char *source = row->word[SET][0] ? row->word[SET] : row->word[SOURCE];
    knee_format(run->source, sizeof run->source, "%.90s", source);
    knee_format(run->gpu, sizeof run->gpu, "%.90s", row->word[GPU]);
    knee_format(run->model, sizeof run->model, "%.90s", row->word[MODEL]);
    knee_format(run->curve, sizeof run->curve, "%.90s", row->word[CURVE]);
    run->same_job = run->curve[0] && strncmp(run->curve, "modelscale:", 11) != 0;
    run->full_config = row->word[CONFIG][0] != 'N';
    knee_format(row->description, sizeof row->description, "%.400s; %.400s; %.400s; %.400s",
                row->word[SET], row->word[SOURCE], row->word[NOTES], row->word[OVERLAP]);
    knee_run_lower(row->description);
    static const enum word read_lower[] = {PRECISION, ZERO,       RECOMPUTE,     OVERLAP,
                                           NOTES,     GRAPHS,     GRAPH_SCOPE,   EP_OVERLAP,
                                           MODULES,   DISPATCHER, FP8_ATTENTION, SWITCHES};
    for (size_t i = 0; i < sizeof read_lower / sizeof *read_lower; i++)
        knee_run_lower(row->word[read_lower[i]]);
}

static void read_row(struct knee_run_row *row)
{
    read_words(row);
    const char *gpu = knee_run_gpu(row);
    read_profile(row, gpu);
    read_precision(row);
    read_sharding(row, in_line(row->run->platform.profile, "fsdp"));
    read_recompute(row);
    read_overlap(row);
    read_switches(row);
    check_ranges(row);
    read_shape(row);
    fill_usual(row->run);
    if (!row->word[CONFIG][0])
        row->run->full_config = !row->run->assumed[0];
    check_run(row);
}

/* ---- The table ---- */

struct columns {
    size_t number[KNEE_RUN_COLUMNS_MAX],
        word[WORDS]; /* KNEE_CSV_FIELDS: the table has no such column */
};

static size_t column_of(const struct knee_csv *csv, const char *name)
{
    char text[64];
    for (size_t i = 0; i < csv->fields; i++) {
        knee_csv_text(csv, i, text, sizeof text);
        if (strcmp(text, name) == 0)
            return i;
    }
    return KNEE_CSV_FIELDS;
}

static knee_status find_columns(const struct knee_csv *csv, const char *name,
                                struct columns *columns, struct knee_err *err)
{
    for (size_t i = 0; i < knee_run_columns_count; i++)
        columns->number[i] = column_of(csv, knee_run_columns[i].name);
    for (size_t i = 0; i < WORDS; i++)
        columns->word[i] = column_of(csv, words[i]);
    static const char *const needed[] = {"n_gpus", "step_time_s"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (column_of(csv, needed[i]) == KNEE_CSV_FIELDS)
            return knee_fail_hint(err, KNEE_INPUT, name,
                                  "docs/evidence/validate.md lists the columns",
                                  "the table has no column '%s'", needed[i]);
    return KNEE_OK;
}

static void clear_run(struct knee_measured_run *run)
{
    memset(run, 0, sizeof *run);
    run->weight = 1;
    run->step_s = run->memory_bytes = NAN;
    knee_shape_init(&run->shape);
    knee_plan_init(&run->plan);
    knee_platform_init(&run->platform);
}

static void take_row(const struct knee_csv *csv, const struct columns *columns,
                     struct knee_run_row *row)
{
    struct knee_measured_run *run = row->run;
    char text[64];
    clear_run(run);
    for (size_t i = 0; i < WORDS; i++)
        knee_csv_text(csv, columns->word[i], row->word[i], sizeof row->word[i]);
    for (size_t i = 0; i < knee_run_columns_count; i++) {
        double value = NAN;
        knee_csv_text(csv, columns->number[i], text, sizeof text);
        if (*text && knee_number_parse(text, KNEE_UNIT_COUNT, "", &value, NULL)) {
            value = NAN;
            knee_run_skip(row, "%.40s is not a number", text);
        }
        *(double *)(void *)((char *)run + knee_run_columns[i].into) =
            value * knee_run_columns[i].scale;
    }
    read_row(row);
}

/* Room for one more run, which goes to row->run. */
static knee_status next_run(struct knee_runs *runs, size_t *room, const char *name,
                            struct knee_run_row *row, struct knee_err *err)
{
    if (runs->count >= ROWS_MAX)
        return knee_fail(err, KNEE_INPUT, name, "more than %d rows", ROWS_MAX);
    if (!knee_room(runs->alloc, &runs->run, room, runs->count + 1, sizeof *runs->run))
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    row->run = &runs->run[runs->count++];
    return KNEE_OK;
}

static knee_status read_table(const char *data, size_t length, const char *name,
                              struct knee_run_row *row, struct knee_runs *runs,
                              struct knee_err *err)
{
    struct knee_csv csv;
    struct columns columns;
    size_t room = 0;
    knee_csv_init(&csv, data, length);
    if (!knee_csv_row(&csv))
        return knee_fail(err, KNEE_INPUT, name, "the table is empty");
    knee_status status = find_columns(&csv, name, &columns, err);
    if (status)
        return status;
    while (!status && knee_csv_row(&csv)) {
        status = next_run(runs, &room, name, row, err);
        if (!status)
            take_row(&csv, &columns, row);
    }
    return status;
}

/* ---- JSON lines: the phases of steps on one GPU ---- */

static const struct {
    const char *name, *phase;
    enum knee_phase value;
} phases[] = {
    {"fwd_ms", "forward", KNEE_PHASE_FORWARD},
    {"bwd_ms", "backward", KNEE_PHASE_BACKWARD},
    {"opt_ms", "optimizer", KNEE_PHASE_OPTIMIZER},
};
#define PHASES (sizeof phases / sizeof *phases)

/* One line into one run, its phases' times apart. */
static const char *read_step(const char *line, size_t length, struct knee_measured_run *run,
                             double seconds[PHASES], bool *compiled)
{
    struct knee_json_values v;
    for (size_t i = 0; i < PHASES; i++)
        seconds[i] = NAN;
    knee_json_values_init(&v, line, length);
    while (knee_json_values_next(&v)) {
        for (size_t i = 0; i < knee_run_columns_count; i++)
            if (v.path[0] && strcmp(v.path, knee_run_columns[i].step) == 0)
                *(double *)(void *)((char *)run + knee_run_columns[i].into) = v.number;
        for (size_t i = 0; i < PHASES; i++)
            if (strcmp(v.path, phases[i].name) == 0)
                seconds[i] = v.number / 1e3;
        if (strcmp(v.path, "compiled") == 0)
            *compiled = v.number > 0;
    }
    return v.error;
}

static void take_step(struct knee_run_row *row, size_t line, size_t phase, double seconds,
                      bool compiled)
{
    struct knee_measured_run *run = row->run;
    memset(row->word, 0, sizeof row->word);
    knee_format(run->id, sizeof run->id, "line %zu %s", line, phases[phase].phase);
    knee_format(run->source, sizeof run->source, "%s", phases[phase].phase);
    run->phase = phases[phase].value;
    run->step_s = seconds;
    run->full_config = true;
    if (phase > 0)
        run->memory_bytes = NAN; /* the line's peak counts once */
    run->plan.gpus = run->plan.dp = 1;
    run->plan.global_batch = run->plan.micro_batch;
    run->plan.precision = KNEE_BF16;
    knee_format(row->description, sizeof row->description, "pytorch %s",
                compiled ? "compile" : "eager");
    knee_format(run->gpu, sizeof run->gpu, "%.90s", row->gpu ? row->gpu : "");
    read_profile(row, knee_run_gpu(row));
    check_ranges(row);
    read_shape(row);
    fill_usual(run);
    run->assumed[0] = '\0';
    check_run(row);
}

static knee_status read_steps(const char *data, size_t length, const char *name,
                              struct knee_run_row *row, struct knee_runs *runs,
                              struct knee_err *err)
{
    size_t room = 0, line = 0;
    for (const char *at = data, *end = data + length; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((stop ? stop : end) - at);
        double seconds[PHASES];
        struct knee_measured_run step;
        bool compiled = false;
        line++;
        clear_run(&step);
        const char *wrong = size > 1 ? read_step(at, size, &step, seconds, &compiled) : NULL;
        if (wrong) {
            char where[128];
            knee_format(where, sizeof where, "%.100s:%zu", name, line);
            return knee_fail(err, KNEE_INPUT, where, "not JSON: %s", wrong);
        }
        for (size_t i = 0; size > 1 && i < PHASES; i++) {
            knee_status status = next_run(runs, &room, name, row, err);
            if (status)
                return status;
            *row->run = step;
            take_step(row, line, i, seconds[i], compiled);
        }
        at += size + 1;
    }
    return KNEE_OK;
}

knee_status knee_runs_read(struct knee_named_text from, const char *gpu,
                           const struct knee_alloc *alloc, struct knee_runs *out,
                           struct knee_err *err)
{
    struct knee_runs runs = {.alloc = alloc};
    struct knee_run_row *row = knee_zeroed(alloc, sizeof *row);
    if (!row)
        return knee_fail(err, KNEE_SYSTEM, from.name, "out of memory");
    row->gpu = gpu;
    bool lines = from.length > 0 && from.text[0] == '{';
    knee_status status = lines ? read_steps(from.text, from.length, from.name, row, &runs, err)
                               : read_table(from.text, from.length, from.name, row, &runs, err);
    knee_resize(alloc, row, 0);
    if (!status && runs.count == 0)
        status = knee_fail(err, KNEE_INPUT, from.name, "the table has no rows");
    if (status) {
        knee_runs_release(&runs);
        return status;
    }
    *out = runs;
    return KNEE_OK;
}

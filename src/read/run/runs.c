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
#include "base/number.h"
#include "base/text.h"
#include "cluster/gpu_words.h"
#include "cluster/presets.h"
#include "job/memory.h"
#include "job/models.h"
#include "job/profile.h"
#include "knee_runs.h"

#include <math.h>
#include <string.h>

#define ROWS_MAX   100000
#define USUAL_RANK 16 /* of adapters where a run only says that it has some */
#define GB         1e9
#define GBIT       (1e9 / 8)

void knee_runs_release(struct knee_runs *runs)
{
    knee_resize(runs->alloc, runs->run, 0);
    runs->run = NULL;
    runs->count = 0;
}

/* ---- Columns that are numbers ---- */

#define INTO(part, field) offsetof(struct knee_measured_run, part.field)
static const struct {
    const char *name;
    size_t offset;
    double scale;
} numbers[] = {
    {"layers", INTO(shape, layers), 1},
    {"hidden", INTO(shape, hidden), 1},
    {"heads", INTO(shape, heads), 1},
    {"kv_heads", INTO(shape, kv_heads), 1},
    {"head_dim", INTO(shape, head_dim), 1},
    {"ffn", INTO(shape, ffn), 1},
    {"glu", INTO(shape, glu), 1},
    {"vocab", INTO(shape, vocab), 1},
    {"seq", INTO(shape, seq), 1},
    {"n_experts", INTO(shape, experts), 1},
    {"topk", INTO(shape, topk), 1},
    {"expert_ffn", INTO(shape, expert_ffn), 1},
    {"shared_ffn", INTO(shape, shared_ffn), 1},
    {"dense_layers", INTO(shape, dense_layers), 1},
    {"n_gpus", INTO(plan, gpus), 1},
    {"global_batch", INTO(plan, global_batch), 1},
    {"micro_batch", INTO(plan, micro_batch), 1},
    {"tp", INTO(plan, tp), 1},
    {"pp", INTO(plan, pp), 1},
    {"vp", INTO(plan, vp), 1},
    {"cp", INTO(plan, cp), 1},
    {"ep", INTO(plan, ep), 1},
    {"etp", INTO(plan, etp), 1},
    {"dp", INTO(plan, dp), 1},
    {"shard_size", INTO(plan, shard_size), 1},
    {"seq_par", INTO(plan, seq_par), 1},
    {"gradient_bytes", INTO(plan, gradient_bytes), 1},
    {"imbalance", INTO(plan, imbalance), 1},
    {"recompute_share", INTO(plan, recompute_share), 1},
    {"cuda_graphs", INTO(plan, graphs), 1},
    {"extra_layers", INTO(shape, extra_layers), 1},
    {"linear_layers", INTO(shape, linear_layers), 1},
    {"lora_rank", INTO(shape, lora_rank), 1},
    {"gpus_per_node", INTO(platform, hw.gpus_per_node), 1},
    {"nvlink_GBps", INTO(platform, hw.node_bandwidth_bytes_per_s), GB},
    {"peak_tflops", INTO(platform, peak_flops), 1e12},
    {"net_Gbps_per_gpu", INTO(platform, hw.bandwidth_bytes_per_s), GBIT},
    {"step_time_s", offsetof(struct knee_measured_run, step_s), 1},
    {"mem_GB", offsetof(struct knee_measured_run, memory_bytes), GB},
};
#define NUMBERS (sizeof numbers / sizeof *numbers)

/* ---- Columns that are words ---- */

enum word {
    ID,
    SET,
    SOURCE,
    GPU,
    MODEL,
    PRECISION,
    ZERO,
    RECOMPUTE,
    OVERLAP,
    NOTES,
    CONFIG,
    CURVE,
    PROFILE,
    WORDS
};
static const char *const words[WORDS] = {
    "id",        "set",     "source", "gpu",         "model", "precision", "zero",
    "recompute", "overlap", "notes",  "config_full", "curve", "profile",
};

struct row {
    const char *gpu; /* of rows that do not name one */
    char word[WORDS][KNEE_CSV_TEXT];
    char description[3 * KNEE_CSV_TEXT]; /* all that may name the software, in lower case */
    struct knee_measured_run *run;
};

static void lower(char *text)
{
    for (; *text; text++)
        *text = knee_lower(*text);
}

static void note(char out[KNEE_RUN_TEXT], const char *what)
{
    size_t used = strlen(out);
    knee_format(out + used, KNEE_RUN_TEXT - used, "%s%s", used ? ", " : "", what);
}

static void skip(struct row *row, const char *fmt, const char *what)
{
    if (!row->run->skipped[0])
        knee_format(row->run->skipped, KNEE_RUN_TEXT, fmt, what);
}

/* ---- GPU ---- */

/* The number that stands before `unit` in a name like H100-96GB-HBM2e-500W; NaN: none does. */
static double number_before(const char *text, const char *unit)
{
    for (const char *at = text; (at = strstr(at, unit)); at++) {
        const char *start = at;
        while (start > text && start[-1] >= '0' && start[-1] <= '9')
            start--;
        bool ends = !((at[strlen(unit)] >= 'a' && at[strlen(unit)] <= 'z'));
        if (start < at && ends)
            return knee_decimal_parse(start, NULL);
    }
    return NAN;
}

/* Tables give raw link rates; what collectives achieve of them is a matter of the kind of link. */
static void achieve(struct knee_hardware *hw, const struct knee_gpu *gpu)
{
    const struct knee_cluster_preset *usual = knee_cluster_preset_named(gpu->cluster);
    hw->node_bandwidth_bytes_per_s *= knee_link_named(usual->node_link)->achieved;
    hw->bandwidth_bytes_per_s *= knee_link_named(usual->net_link)->achieved;
    if (!isnan(hw->bandwidth_bytes_per_s) || !isnan(hw->node_bandwidth_bytes_per_s))
        knee_cluster_from_preset(usual, &hw->cluster);
}

static const char *read_gpu(struct row *row)
{
    struct knee_platform *platform = &row->run->platform;
    char text[KNEE_CSV_TEXT];
    if (!row->word[GPU][0] && row->gpu)
        knee_format(row->word[GPU], sizeof row->word[GPU], "%s", row->gpu);
    knee_format(text, sizeof text, "%s", row->word[GPU]);
    lower(text);
    const struct knee_gpu *gpu = knee_gpu_in(text);
    if (!gpu) {
        skip(row, *text ? "there are no constants for %.60s" : "the GPU is not named",
             row->word[GPU]);
        return "";
    }
    platform->hw.gpu = knee_choice_find(&knee_gpu_names, gpu->name, "", NULL);
    platform->power_cap_w = number_before(text, "w");
    double size = number_before(text, "gb");
    platform->memory_bytes = size * GB;
    if (strcmp(gpu->name, "h100") == 0 && strstr(text, "hbm2e"))
        platform->hw.memory_bytes_per_s = 2.4e12; /* the 96 GB part of cloud providers */
    achieve(&platform->hw, gpu);
    return gpu->name;
}

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

static void read_precision(struct row *row)
{
    static const struct meaning table[] = {
        {"fp4", KNEE_FP4}, {"mx", KNEE_FP8_BLOCK}, {"block", KNEE_FP8_BLOCK}, {"row", KNEE_FP8_ROW},
        {"fp8", KNEE_FP8}, {"bf16", KNEE_BF16},    {"fp16", KNEE_FP16},       {"amp", KNEE_FP16},
    };
    row->run->plan.precision = MEANING(table, row->word[PRECISION]);
    if (!row->word[PRECISION][0]) {
        row->run->plan.precision = KNEE_BF16;
        note(row->run->assumed, "precision");
    } else if (row->run->plan.precision < 0) {
        skip(row, "precision %.60s is not modelled", row->word[PRECISION]);
    }
}

static void read_sharding(struct row *row, bool sharded_profile)
{
    static const struct meaning table[] = {
        {"grad-op", KNEE_ZERO2}, {"fsdp", KNEE_ZERO3},  {"3", KNEE_ZERO3},        {"2", KNEE_ZERO2},
        {"1", KNEE_ZERO1},       {"0", KNEE_REPLICATE}, {"none", KNEE_REPLICATE},
    };
    struct knee_plan *plan = &row->run->plan;
    plan->shard = MEANING(table, row->word[ZERO]);
    if (plan->shard < 0) {
        plan->shard = sharded_profile ? KNEE_ZERO3 : KNEE_REPLICATE;
        note(row->run->assumed, "zero");
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

static void read_recompute(struct row *row)
{
    static const struct meaning table[] = {
        {"selective(op)", KNEE_BY_OP}, {"op", KNEE_BY_OP},  {"selective", KNEE_SELECTIVE},
        {"full", KNEE_FULL},           {"none", KNEE_KEEP},
    };
    row->run->plan.recompute = MEANING(table, row->word[RECOMPUTE]);
    if (row->run->plan.recompute < 0)
        note(row->run->assumed, "recompute");
}

#define CANNOT_FIT 0.02 /* probability: what the account leaves open is given the benefit */

/* Nobody recomputes more than it takes to fit: where a row does not say, the least that may fit. */
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

static void read_overlap(struct row *row)
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

/* Megatron-Core's recipes interleave as finely as the layers allow, older ones with two pieces. */
static double usual_pieces(const struct knee_measured_run *run)
{
    double layers = run->shape.layers, pp = run->plan.pp, most = 1;
    if (!(pp > 1))
        return 1;
    for (double pieces = 1; pieces * pp <= layers; pieces++)
        if (fmod(layers, pieces * pp) == 0)
            most = pieces;
    return in_line(run->platform.profile, "megatron-core") ? most : fmin(most, 2);
}

static void assume(struct knee_measured_run *run, double *field, double value, const char *name)
{
    if (!isnan(*field))
        return;
    *field = value;
    if (name)
        note(run->assumed, name);
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
        note(run->assumed, "micro_batch");
}

/* ---- A row ---- */

static void read_profile(struct row *row, const char *gpu)
{
    struct knee_platform *platform = &row->run->platform;
    if (row->word[PROFILE][0])
        platform->profile = knee_profile_row(row->word[PROFILE]);
    else
        platform->profile = knee_profile_pick(row->description, gpu, row->word[PRECISION]);
    if (platform->profile < 0) {
        skip(row, "there is no profile '%.60s'", row->word[PROFILE]);
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

/* Layers that the columns have no place for: said, not taken as plain attention. */
static void check_layers(struct row *row)
{
    static const char *const hybrids[] = {"mamba",     "jamba",      "zamba",      "nemotron-h",
                                          "nemotronh", "nemotron-3", "qwen3-next", "falcon-h1"};
    char model[KNEE_RUN_TEXT];
    knee_format(model, sizeof model, "%s", row->run->model);
    lower(model);
    for (size_t i = 0; i < sizeof hybrids / sizeof *hybrids; i++)
        if (strstr(model, hybrids[i]) && isnan(row->run->shape.linear_layers))
            skip(row, "which layers of %.40s have state space is not given", row->run->model);
    if ((says_lora(row->description) || says_lora(model)) && isnan(row->run->shape.lora_rank)) {
        row->run->shape.lora_rank = USUAL_RANK;
        note(row->run->assumed, "lora_rank");
    }
}

/* A preset of the same name and width knows what the columns do not: latent attention, windows. */
static void read_shape(struct row *row)
{
    struct knee_measured_run *run = row->run;
    const struct knee_model *preset = knee_model_named(run->model);
    if (isnan(run->shape.hidden) && !preset)
        skip(row, "the shape of %.60s is not given", *run->model ? run->model : "the model");
    if (run->shape.experts <= 1)
        run->shape.experts = NAN;
    if (preset && (isnan(run->shape.hidden) || run->shape.hidden == preset->hidden))
        knee_shape_fill(&run->shape, preset);
    check_layers(row);
    struct knee_err err;
    if (!run->skipped[0] && knee_shape_complete(&run->shape, &err))
        skip(row, "%.90s", err.what);
}

/* Numbers that no such thing has, and counts that are not whole. */
static void check_ranges(struct row *row)
{
    struct knee_measured_run *run = row->run;
    const struct knee_key *wrong = knee_keys_out_of_range(&knee_shape_keys, &run->shape);
    if (!wrong)
        wrong = knee_keys_out_of_range(&knee_plan_keys, &run->plan);
    if (!wrong)
        wrong = knee_keys_out_of_range(&knee_platform_keys, &run->platform);
    if (wrong)
        skip(row, "%.40s is out of range", wrong->name);
    if (!isnan(run->plan.gpus) && !(run->plan.gpus >= 1 && run->plan.gpus <= KNEE_WORKERS_MAX))
        skip(row, "%s", "n_gpus is out of range");
    if (!isnan(run->plan.dp) && !(run->plan.dp >= 1 && run->plan.dp <= KNEE_WORKERS_MAX))
        skip(row, "%s", "dp is out of range");
}

static void check_run(struct row *row)
{
    struct knee_measured_run *run = row->run;
    struct knee_machine machine;
    struct knee_err err;
    bool told = run->plan.recompute >= 0;
    check_ranges(row);
    if (!(run->step_s > 0))
        skip(row, "%s", "no step time");
    if (!run->skipped[0] && isnan(run->plan.gpus))
        skip(row, "%s", "the number of GPUs is not given");
    if (!run->skipped[0] && isnan(run->plan.global_batch))
        skip(row, "%s", "the global batch is not given");
    if (!run->skipped[0] && knee_machine_init(&run->platform, NULL, &machine, &err))
        skip(row, "%.90s", err.what);
    if (!run->skipped[0] && knee_plan_complete(&run->plan, &run->shape, &machine, &err))
        skip(row, "%.90s", err.what);
    /* A vendor's recipe or a compiler has little of it, in ways that the account does not know:
     * taken as none, which was seen to be nearer than the least that fits. */
    told = told || row->word[RECOMPUTE][0] != '\0';
    if (!run->skipped[0] && !told && !isnan(machine.memory_bytes))
        least_recompute(run, &machine);
}

static void read_words(struct row *row)
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
    lower(row->description);
    static const enum word read_lower[] = {PRECISION, ZERO, RECOMPUTE, OVERLAP, NOTES};
    for (size_t i = 0; i < sizeof read_lower / sizeof *read_lower; i++)
        lower(row->word[read_lower[i]]);
}

static void read_row(struct row *row)
{
    read_words(row);
    const char *gpu = read_gpu(row);
    read_profile(row, gpu);
    read_precision(row);
    read_sharding(row, in_line(row->run->platform.profile, "fsdp"));
    read_recompute(row);
    read_overlap(row);
    check_ranges(row);
    read_shape(row);
    fill_usual(row->run);
    if (!row->word[CONFIG][0])
        row->run->full_config = !row->run->assumed[0];
    check_run(row);
}

/* ---- The table ---- */

struct columns {
    size_t number[NUMBERS], word[WORDS]; /* KNEE_CSV_FIELDS: the table has no such column */
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
    for (size_t i = 0; i < NUMBERS; i++)
        columns->number[i] = column_of(csv, numbers[i].name);
    for (size_t i = 0; i < WORDS; i++)
        columns->word[i] = column_of(csv, words[i]);
    static const char *const needed[] = {"n_gpus", "step_time_s"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (column_of(csv, needed[i]) == KNEE_CSV_FIELDS) {
            knee_fail(err, KNEE_INPUT, name, "the table has no column '%s'", needed[i]);
            knee_hint(err, "docs/validate.md lists the columns");
            return KNEE_INPUT;
        }
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

static void take_row(const struct knee_csv *csv, const struct columns *columns, struct row *row)
{
    struct knee_measured_run *run = row->run;
    char text[64];
    clear_run(run);
    for (size_t i = 0; i < WORDS; i++)
        knee_csv_text(csv, columns->word[i], row->word[i], sizeof row->word[i]);
    for (size_t i = 0; i < NUMBERS; i++) {
        double value = NAN;
        knee_csv_text(csv, columns->number[i], text, sizeof text);
        if (*text && knee_number_parse(text, KNEE_UNIT_COUNT, "", &value, NULL)) {
            value = NAN;
            skip(row, "%.40s is not a number", text);
        }
        *(double *)(void *)((char *)run + numbers[i].offset) = value * numbers[i].scale;
    }
    read_row(row);
}

/* Room for one more run, which goes to row->run. */
static knee_status next_run(struct knee_runs *runs, size_t *room, const char *name, struct row *row,
                            struct knee_err *err)
{
    if (runs->count >= ROWS_MAX)
        return knee_fail(err, KNEE_INPUT, name, "more than %d rows", ROWS_MAX);
    if (runs->count == *room) {
        size_t wanted = *room ? 2 * *room : 64;
        void *more = knee_resize(runs->alloc, runs->run, wanted * sizeof *runs->run);
        if (!more)
            return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
        runs->run = more;
        *room = wanted;
    }
    row->run = &runs->run[runs->count++];
    return KNEE_OK;
}

static knee_status read_table(const char *data, size_t length, const char *name, struct row *row,
                              struct knee_runs *runs, struct knee_err *err)
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
    const char *name;
    size_t offset;
} step_keys[] = {
    {"hidden", INTO(shape, hidden)},
    {"heads", INTO(shape, heads)},
    {"kv", INTO(shape, kv_heads)},
    {"ffn", INTO(shape, ffn)},
    {"layers", INTO(shape, layers)},
    {"vocab", INTO(shape, vocab)},
    {"seq", INTO(shape, seq)},
    {"mb", INTO(plan, micro_batch)},
    {"peak_bytes", offsetof(struct knee_measured_run, memory_bytes)},
};

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
        for (size_t i = 0; i < sizeof step_keys / sizeof *step_keys; i++)
            if (strcmp(v.path, step_keys[i].name) == 0)
                *(double *)(void *)((char *)run + step_keys[i].offset) = v.number;
        for (size_t i = 0; i < PHASES; i++)
            if (strcmp(v.path, phases[i].name) == 0)
                seconds[i] = v.number / 1e3;
        if (strcmp(v.path, "compiled") == 0)
            *compiled = v.number > 0;
    }
    return v.error;
}

static void take_step(struct row *row, size_t line, size_t phase, double seconds, bool compiled)
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
    read_profile(row, read_gpu(row));
    check_ranges(row);
    read_shape(row);
    fill_usual(run);
    run->assumed[0] = '\0';
    check_run(row);
}

static knee_status read_steps(const char *data, size_t length, const char *name, struct row *row,
                              struct knee_runs *runs, struct knee_err *err)
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

knee_status knee_runs_read(const char *data, size_t length, const char *name, const char *gpu,
                           const struct knee_alloc *alloc, struct knee_runs *out,
                           struct knee_err *err)
{
    struct knee_runs runs = {.alloc = alloc};
    struct row *row = knee_resize(alloc, NULL, sizeof *row);
    if (!row)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    memset(row, 0, sizeof *row);
    row->gpu = gpu;
    bool lines = length > 0 && data[0] == '{';
    knee_status status = lines ? read_steps(data, length, name, row, &runs, err)
                               : read_table(data, length, name, row, &runs, err);
    knee_resize(alloc, row, 0);
    if (!status && runs.count == 0)
        status = knee_fail(err, KNEE_INPUT, name, "the table has no rows");
    if (status) {
        knee_runs_release(&runs);
        return status;
    }
    *out = runs;
    return KNEE_OK;
}

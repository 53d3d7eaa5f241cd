/* SPDX-License-Identifier: MIT */
/*
 * The plan from a torchtitan configuration: a TOML file, or overrides on a command line
 * (--parallelism.tensor_parallel_degree 8). Keys are known by their last name, because older files
 * have them in other tables. The model goes by a name there, so its shape is not in it; how many
 * pieces a stage has follows from its layers.
 */
#include "base/decimal.h"
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/slice.h"
#include "job/raw.h"
#include "knee_read.h"

#include <math.h>
#include <string.h>

#define KEY_MAX   96
#define VALUE_MAX 96

struct raw {
    double local, batch, replicate, shard, tp, async_tp, seq_par, cp, pp, stage_micro, stage_layers;
    double first_less, last_less, ep, etp;
    char reshard[VALUE_MAX], schedule[VALUE_MAX], mode[VALUE_MAX], reduce[VALUE_MAX],
        converters[VALUE_MAX], recipe[VALUE_MAX];
    size_t known;
};

static const struct knee_raw_name numbers[] = {
    KNEE_RAW("local_batch_size", local),
    KNEE_RAW("batch_size", local),
    KNEE_RAW("global_batch_size", batch),
    KNEE_RAW("data_parallel_replicate_degree", replicate),
    KNEE_RAW("data_parallel_shard_degree", shard),
    KNEE_RAW("tensor_parallel_degree", tp),
    KNEE_RAW("enable_async_tensor_parallel", async_tp),
    KNEE_RAW("enable_sequence_parallel", seq_par),
    KNEE_RAW("context_parallel_degree", cp),
    KNEE_RAW("pipeline_parallel_degree", pp),
    KNEE_RAW("pipeline_parallel_microbatch_size", stage_micro),
    KNEE_RAW("pipeline_parallel_layers_per_stage", stage_layers),
    KNEE_RAW("pipeline_parallel_first_stage_less_layers", first_less),
    KNEE_RAW("pipeline_parallel_last_stage_less_layers", last_less),
    KNEE_RAW("expert_parallel_degree", ep),
    KNEE_RAW("expert_tensor_parallel_degree", etp),
};
#define NUMBERS (sizeof numbers / sizeof *numbers)

static const struct knee_raw_name texts[] = {
    KNEE_RAW("fsdp_reshard_after_forward", reshard),
    KNEE_RAW("pipeline_parallel_schedule", schedule),
    KNEE_RAW("activation_checkpoint.mode", mode),
    KNEE_RAW("mixed_precision_reduce", reduce),
    KNEE_RAW("converters", converters),
    KNEE_RAW("recipe_name", recipe),
};

/* `path`: table and key. */
static void take(struct raw *raw, const char *path, const char *value)
{
    const char *dot = strrchr(path, '.'), *key = dot ? dot + 1 : path;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(strchr(texts[i].key, '.') ? path : key, texts[i].key) == 0) {
            knee_format((char *)raw + texts[i].offset, VALUE_MAX, "%s", value);
            raw->known++;
        }
    double *field = knee_raw_find(numbers, NUMBERS, key, raw);
    const char *rest;
    double number = knee_decimal_parse(value, &rest);
    if (!field)
        return;
    raw->known++;
    if (strcmp(value, "true") == 0 || strcmp(value, "True") == 0 || *value == '\0')
        *field = 1;
    else if (strcmp(value, "false") == 0 || strcmp(value, "False") == 0)
        *field = 0;
    else if (rest != value && !*rest && number == floor(number) && fabs(number) <= 1e9)
        *field = number;
}

/* ---- Lines of TOML ---- */

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void copy(const char *from, const char *to, char *out, size_t size)
{
    while (from < to && blank(*from))
        from++;
    while (to > from && blank(to[-1]))
        to--;
    size_t length = (size_t)(to - from) < size - 1 ? (size_t)(to - from) : size - 1;
    memcpy(out, from, length);
    out[length] = '\0';
}

/* What stands in quotes, or up to a comment. */
static void copy_value(const char *from, const char *to, char *out, size_t size)
{
    while (from < to && blank(*from))
        from++;
    if (from < to && (*from == '"' || *from == '\'')) {
        const char *close = memchr(from + 1, *from, (size_t)(to - from - 1));
        copy(from + 1, close ? close : to, out, size);
        return;
    }
    const char *comment = memchr(from, '#', (size_t)(to - from));
    copy(from, comment ? comment : to, out, size);
}

static void read_line(struct raw *raw, const char *line, const char *end, char *table)
{
    char path[2 * KEY_MAX + 2], key[KEY_MAX], value[VALUE_MAX];
    while (line < end && blank(*line))
        line++;
    if (line == end || *line == '#' || *line == '-')
        return;
    if (*line == '[') {
        const char *close = memchr(line, ']', (size_t)(end - line));
        copy(line + 1, close ? close : end, table, KEY_MAX);
        return;
    }
    const char *equals = memchr(line, '=', (size_t)(end - line));
    if (!equals)
        return;
    copy(line, equals, key, sizeof key);
    copy_value(equals + 1, end, value, sizeof value);
    knee_format(path, sizeof path, "%s.%s", table, key);
    take(raw, path, value);
}

/* ---- Words of a command line: --table.key value, --table.key=value ---- */

static void read_words(struct raw *raw, const char *text, const char *end)
{
    char path[KEY_MAX] = "", value[VALUE_MAX];
    const char *stop = text;
    for (const char *at; (at = knee_shell_word(stop, end, &stop)) < end;) {
        bool option = stop - at > 2 && at[0] == '-' && at[1] == '-';
        if (!option) {
            copy(at, stop, value, sizeof value);
            if (*path)
                take(raw, path, value);
            path[0] = '\0';
            continue;
        }
        if (*path)
            take(raw, path, "");
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        copy(at + 2, equals ? equals : stop, path, sizeof path);
        if (equals) {
            copy(equals + 1, stop, value, sizeof value);
            take(raw, path, value);
        }
        if (equals || !strchr(path, '.'))
            path[0] = '\0';
    }
    if (*path)
        take(raw, path, "");
}

/* ---- Into the plan ---- */

static double or_one(double value)
{
    return value >= 1 ? value : 1;
}

static int schedule_of(const char *word)
{
    static const struct {
        const char *word;
        int schedule;
    } names[] = {{"1F1B", KNEE_1F1B},
                 {"Interleaved1F1B", KNEE_INTERLEAVED},
                 {"GPipe", KNEE_GPIPE},
                 {"ZBVZeroBubble", KNEE_ZERO_BUBBLE},
                 {"InterleavedZeroBubble", KNEE_ZERO_BUBBLE}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i].word) == 0)
            return names[i].schedule;
    return KNEE_1F1B;
}

/* Pieces of a stage. Embedding and head count as a layer each unless it says otherwise; a looped
 * schedule that is not told how many layers a piece has takes two. */
static double pieces(const struct raw *raw, double layers)
{
    double less = (isnan(raw->first_less) ? 1 : raw->first_less) +
                  (isnan(raw->last_less) ? 1 : raw->last_less);
    if (raw->stage_layers >= 1 && layers >= 1)
        return fmax(1, ceil((layers + less) / (raw->stage_layers * or_one(raw->pp)) - 1e-9));
    return schedule_of(raw->schedule) == KNEE_INTERLEAVED ? 2 : 1;
}

static double precision_of(const struct raw *raw)
{
    if (strstr(raw->converters, ".mx"))
        return KNEE_FP8_BLOCK;
    if (!strstr(raw->converters, "float8"))
        return KNEE_BF16;
    return strstr(raw->recipe, "rowwise") ? KNEE_FP8_ROW : KNEE_FP8;
}

/* Shards lie over data and context ranks; -1 shards are all that are left. */
static void set_sharding(struct knee_plan *plan, const struct raw *raw)
{
    const struct knee_keys *k = &knee_plan_keys;
    double cp = or_one(raw->cp), inner = or_one(raw->tp) * or_one(raw->pp) * cp;
    double shard = raw->shard >= 1 ? raw->shard : NAN;
    if (isnan(shard) && !isnan(plan->gpus))
        shard = plan->gpus / (inner * or_one(raw->replicate));
    if (isnan(plan->gpus) && !isnan(shard))
        plan->gpus = inner * or_one(raw->replicate) * shard;
    bool whole = shard * cp == 1;
    knee_raw_set(k, plan, "shard",
                 whole                                ? KNEE_REPLICATE
                 : strcmp(raw->reshard, "never") == 0 ? KNEE_ZERO2
                                                      : KNEE_ZERO3);
    if (!whole && shard == floor(shard))
        knee_raw_set(k, plan, "shard-size", shard * cp);
}

static void set_plan(struct knee_plan *plan, const struct raw *raw, double layers)
{
    const struct knee_keys *k = &knee_plan_keys;
    bool staged = raw->pp > 1;
    set_sharding(plan, raw);
    double dp = plan->gpus / (or_one(raw->tp) * or_one(raw->pp) * or_one(raw->cp));
    knee_raw_set(k, plan, "global-batch", raw->batch >= 1 ? raw->batch : raw->local * dp);
    knee_raw_set(k, plan, "micro-batch", staged ? or_one(raw->stage_micro) : raw->local);
    knee_raw_set(k, plan, "tp", or_one(raw->tp));
    knee_raw_set(k, plan, "pp", or_one(raw->pp));
    knee_raw_set(k, plan, "vp", staged ? pieces(raw, layers) : 1);
    knee_raw_set(k, plan, "schedule", schedule_of(raw->schedule));
    knee_raw_set(k, plan, "cp", or_one(raw->cp));
    knee_raw_set(k, plan, "ep", or_one(raw->ep));
    knee_raw_set(k, plan, "etp", raw->ep > 1 ? or_one(raw->etp) : NAN);
    knee_raw_set(k, plan, "sequence-parallel", raw->tp > 1 && !(raw->seq_par == 0));
    knee_raw_set(k, plan, "overlap-tp", raw->tp > 1 ? raw->async_tp > 0 : NAN);
    knee_raw_set(k, plan, "recompute",
                 strcmp(raw->mode, "full") == 0        ? KNEE_FULL
                 : strcmp(raw->mode, "selective") == 0 ? KNEE_BY_OP
                                                       : KNEE_KEEP);
    knee_raw_set(k, plan, "offload", KNEE_ON_GPU);
    knee_raw_set(k, plan, "precision", precision_of(raw));
    knee_raw_set(k, plan, "gradient-bytes", strcmp(raw->reduce, "bfloat16") == 0 ? 2 : NAN);
}

knee_status knee_torchtitan_read(const char *text, size_t length, const char *name, double layers,
                                 struct knee_plan *plan, struct knee_err *err)
{
    struct raw raw;
    char table[KEY_MAX] = "";
    memset(&raw, 0, sizeof raw);
    knee_raw_clear(numbers, NUMBERS, &raw);
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        read_line(&raw, line, stop, table);
        line = stop + 1;
    }
    read_words(&raw, text, end);
    if (raw.known == 0) {
        knee_fail(err, KNEE_INPUT, name, "no torchtitan settings: no key of it is known");
        knee_hint(err, "give its TOML file, or a command with --parallelism.* overrides");
        return KNEE_INPUT;
    }
    struct knee_plan p = *plan;
    set_plan(&p, &raw, layers);
    *plan = p;
    return KNEE_OK;
}

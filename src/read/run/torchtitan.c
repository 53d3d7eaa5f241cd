/* SPDX-License-Identifier: MIT */
/*
 * The plan from a torchtitan configuration: a TOML file, or overrides on a command line
 * (--parallelism.tensor_parallel_degree 8). Keys are known by their last name, because older files
 * have them in other tables. The model goes by a name there, so its shape is not in it; how many
 * pieces a stage has follows from its layers.
 */
#include "base/error.h"
#include "base/fold.h"
#include "base/format.h"
#include "base/slice.h"
#include "read/run/import.h"

#include <math.h>
#include <string.h>

/* `path`: table and key. */
static void take(struct knee_import *raw, const char *path, const char *value)
{
    const char *dot = strrchr(path, '.');
    if (!knee_import_text(raw, KNEE_FROM_TORCHTITAN, path, value) && dot)
        knee_import_text(raw, KNEE_FROM_TORCHTITAN, dot + 1, value);
}

/* ---- Lines of TOML ---- */

/* What stands in quotes, or up to a comment. */
static void copy_value(const char *from, const char *to, char *out, size_t size)
{
    while (from < to && knee_is_blank(*from))
        from++;
    if (from < to && (*from == '"' || *from == '\'')) {
        const char *close = memchr(from + 1, *from, (size_t)(to - from - 1));
        knee_import_copy(from + 1, close ? close : to, out, size);
        return;
    }
    const char *comment = memchr(from, '#', (size_t)(to - from));
    knee_import_copy(from, comment ? comment : to, out, size);
}

static void read_line(struct knee_import *raw, const char *line, const char *end, char *table)
{
    char path[2 * KNEE_IMPORT_WORD + 2], key[KNEE_IMPORT_WORD], value[KNEE_IMPORT_WORD];
    while (line < end && knee_is_blank(*line))
        line++;
    if (line == end || *line == '#' || *line == '-')
        return;
    if (*line == '[') {
        const char *close = memchr(line, ']', (size_t)(end - line));
        knee_import_copy(line + 1, close ? close : end, table, KNEE_IMPORT_WORD);
        return;
    }
    const char *equals = memchr(line, '=', (size_t)(end - line));
    if (!equals)
        return;
    knee_import_copy(line, equals, key, sizeof key);
    copy_value(equals + 1, end, value, sizeof value);
    knee_format(path, sizeof path, "%s.%s", table, key);
    take(raw, path, value);
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
static double pieces(const struct knee_import *raw, double layers)
{
    double less = (isnan(raw->first_less) ? 1 : raw->first_less) +
                  (isnan(raw->last_less) ? 1 : raw->last_less);
    if (raw->stage_layers >= 1 && layers >= 1)
        return fmax(1, ceil((layers + less) / (raw->stage_layers * or_one(raw->pp)) - 1e-9));
    return schedule_of(raw->schedule) == KNEE_INTERLEAVED ? 2 : 1;
}

static double precision_of(const struct knee_import *raw)
{
    if (strstr(raw->converters, ".mx"))
        return KNEE_FP8_BLOCK;
    if (!strstr(raw->converters, "float8"))
        return KNEE_BF16;
    return strstr(raw->recipe, "rowwise") ? KNEE_FP8_ROW : KNEE_FP8;
}

/* Shards lie over data and context ranks; -1 shards are all that are left. */
static void set_sharding(struct knee_plan *plan, const struct knee_import *raw)
{
    const struct knee_keys *k = &knee_plan_keys;
    double cp = or_one(raw->cp), inner = or_one(raw->tp) * or_one(raw->pp) * cp;
    double shard = raw->shard >= 1 ? raw->shard : NAN;
    if (isnan(shard) && !isnan(plan->gpus))
        shard = plan->gpus / (inner * or_one(raw->replicate));
    if (isnan(plan->gpus) && !isnan(shard))
        plan->gpus = inner * or_one(raw->replicate) * shard;
    bool whole = shard * cp == 1;
    knee_import_set(k, plan, "shard",
                    whole                                ? KNEE_REPLICATE
                    : strcmp(raw->reshard, "never") == 0 ? KNEE_ZERO2
                                                         : KNEE_ZERO3);
    if (!whole && shard == floor(shard))
        knee_import_set(k, plan, "shard-size", shard * cp);
}

static void set_plan(struct knee_plan *plan, const struct knee_import *raw, double layers)
{
    const struct knee_keys *k = &knee_plan_keys;
    bool staged = raw->pp > 1;
    set_sharding(plan, raw);
    double dp = plan->gpus / (or_one(raw->tp) * or_one(raw->pp) * or_one(raw->cp));
    knee_import_set(k, plan, "global-batch", raw->batch >= 1 ? raw->batch : raw->local * dp);
    knee_import_set(k, plan, "micro-batch", staged ? or_one(raw->stage_micro) : raw->local);
    knee_import_set(k, plan, "tp", or_one(raw->tp));
    knee_import_set(k, plan, "pp", or_one(raw->pp));
    knee_import_set(k, plan, "vp", staged ? pieces(raw, layers) : 1);
    knee_import_set(k, plan, "schedule", schedule_of(raw->schedule));
    knee_import_set(k, plan, "cp", or_one(raw->cp));
    knee_import_set(k, plan, "ep", or_one(raw->ep));
    knee_import_set(k, plan, "etp", raw->ep > 1 ? or_one(raw->etp) : NAN);
    knee_import_set(k, plan, "sequence-parallel", raw->tp > 1 && !(raw->seq_par == 0));
    knee_import_set(k, plan, "overlap-tp", raw->tp > 1 ? raw->async_tp > 0 : NAN);
    knee_import_set(k, plan, "recompute",
                    strcmp(raw->mode, "full") == 0        ? KNEE_FULL
                    : strcmp(raw->mode, "selective") == 0 ? KNEE_BY_OP
                                                          : KNEE_KEEP);
    knee_import_set(k, plan, "offload", KNEE_ON_GPU);
    knee_import_set(k, plan, "precision", precision_of(raw));
    knee_import_set(k, plan, "gradient-bytes", strcmp(raw->reduce, "bfloat16") == 0 ? 2 : NAN);
}

knee_status knee_torchtitan_read(const char *text, size_t length, const char *name, double layers,
                                 struct knee_plan *plan, struct knee_err *err)
{
    struct knee_import raw;
    char table[KNEE_IMPORT_WORD] = "";
    knee_import_init(&raw, KNEE_FROM_TORCHTITAN);
    const char *end = text + length;
    for (struct knee_slice rest = {text, length}, line; knee_slice_line(&rest, &line);)
        read_line(&raw, line.at, line.at + line.length, table);
    knee_import_options(&raw, text, end, take, true);
    if (raw.known == 0)
        return knee_fail_hint(err, KNEE_INPUT, name,
                              "give its TOML file, or a command with --parallelism.* overrides",
                              "no torchtitan settings: no key of it is known");
    struct knee_plan p = *plan;
    set_plan(&p, &raw, layers);
    *plan = p;
    return KNEE_OK;
}

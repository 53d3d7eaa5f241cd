/* SPDX-License-Identifier: MIT */
/*
 * What a log says about its job beside its steps: how many workers, batch, sequence, mesh, GPU,
 * model. The marks are rows of data/train_facts.csv; Megatron's block of arguments and DeepSpeed's
 * configuration go through the importers that knee plan has for them.
 */
#include "read/run/train_log.h"

#include "base/fold.h"
#include "base/format.h"
#include "base/keys.h"
#include "cluster/gpu_words.h"
#include "knee_read.h"

#include <math.h>
#include <string.h>

size_t knee_train_fact_count(void)
{
    return knee_train_facts_count;
}

void knee_train_facts_marks(struct train_finder *finder, unsigned first_id)
{
    for (size_t i = 0; i < knee_train_fact_count(); i++)
        knee_train_finder_add(finder, knee_train_facts[i].mark, first_id + (unsigned)i);
}

void knee_train_facts_init(struct train_facts *facts)
{
    memset(facts, 0, sizeof *facts);
    facts->workers_from = "";
    for (size_t at = offsetof(struct train_facts, workers);
         at <= offsetof(struct train_facts, block_samples); at += sizeof(double))
        *(double *)(void *)((char *)facts + at) = NAN;
}

/* ---- Reading one ---- */

static double count_list(const char *p, const char *end)
{
    double count = 0;
    while (p < end && *p >= '0' && *p <= '9') {
        while (p < end && *p >= '0' && *p <= '9')
            p++;
        count++;
        if (p < end && *p == ',')
            p++;
    }
    return count;
}

static void take_text(struct knee_slice rest, char *out)
{
    static const char *const stops[] = {" with", " size:", "\x1b", ";"};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        rest.length = knee_slice_find(rest, stops[i]);
    knee_slice_copy(knee_slice_trim(rest), out, KNEE_TRAIN_TEXT);
}

static void take_parts(struct train_facts *facts, struct knee_slice rest)
{
    struct train_pairs pairs = {rest.at, rest.at + rest.length, false};
    struct train_pair pair;
    while (knee_train_pairs_next(&pairs, &pair))
        for (size_t i = 0; i < knee_train_fields_count; i++) {
            const struct knee_train_field *row = &knee_train_fields[i];
            size_t length = strlen(row->name);
            if (row->reads == FACT_PARTS && pair.length >= length && pair.value >= 1 &&
                pair.value < 1e12 && strcmp(pair.name + pair.length - length, row->name) == 0 &&
                (pair.length == length || pair.name[pair.length - length - 1] == '_'))
                *(double *)(void *)((char *)facts + row->into) = pair.value;
        }
}

static void take_named(struct train_facts *facts, enum fact_kind reads, struct knee_slice name,
                       double value)
{
    for (size_t i = 0; i < knee_train_fields_count; i++)
        if (knee_train_fields[i].reads == reads && knee_slice_is(name, knee_train_fields[i].name))
            *(double *)(void *)((char *)facts + knee_train_fields[i].into) = value;
}

/* dp_replicate x dp_shard x cp x tp x pp, of those that the log prints. */
static double mesh_size(const struct train_facts *f)
{
    const double degree[] = {f->dp, f->shard, f->cp, f->tp, f->pp};
    double size = 1;
    for (size_t i = 0; i < sizeof degree / sizeof *degree; i++)
        size *= degree[i] >= 1 ? degree[i] : 1;
    return size;
}

/* "['dp_shard', 'tp'], [4, 2]": names and their degrees, in one order. */
static bool take_degrees(struct train_facts *facts, struct knee_slice rest)
{
    struct knee_slice names, degrees, name;
    size_t open = knee_slice_find(rest, ", [");
    double size = 1;
    names = (struct knee_slice){rest.at, open};
    degrees = knee_slice_from(rest, open < rest.length ? open + 3 : open);
    const char *p = degrees.at, *end = p + degrees.length;
    knee_slice_until(&names, '\'', &name); /* to the first name */
    while (knee_slice_until(&names, '\'', &name)) {
        double degree = knee_train_number(&p, end);
        if (!(degree >= 1 && degree <= KNEE_WORKERS_MAX))
            return false;
        size *= degree;
        take_named(facts, FACT_DEGREES, name, degree);
        while (p < end && (*p == ',' || *p == ' '))
            p++;
        knee_slice_until(&names, '\'', &name); /* to the next */
    }
    if (size >= 1 && size <= KNEE_WORKERS_MAX && open < rest.length)
        facts->mesh = size;
    return open < rest.length;
}

void knee_train_fact_field(struct train_facts *facts, struct knee_slice line)
{
    size_t equals = line.length, start;
    for (size_t i = 0; i + 1 < line.length; i++)
        if (line.at[i] == '=' && knee_is_digit(line.at[i + 1]))
            equals = i;
    if (equals == line.length)
        return;
    for (start = equals;
         start > 0 && (knee_is_word_char(line.at[start - 1]) || line.at[start - 1] == '_');)
        start--;
    struct knee_slice name = {line.at + start, equals - start};
    const char *p = line.at + equals + 1;
    double value = knee_train_number(&p, line.at + line.length);
    if (value >= 1 && value < 1e12)
        take_named(facts, FACT_FIELDS, name, value);
    if (facts->dp >= 1 && facts->pp >= 1 && facts->tp >= 1)
        facts->mesh = mesh_size(facts);
}

static void take_fields(struct train_facts *facts, struct knee_slice rest)
{
    struct knee_slice piece;
    rest.length = knee_slice_find(rest, ")");
    while (knee_slice_until(&rest, ',', &piece))
        knee_train_fact_field(facts, piece);
}

/* The number that ends where the mark begins; NaN. */
static double number_before(struct knee_slice line, size_t mark)
{
    size_t start = mark;
    while (start > 0 && knee_is_digit(line.at[start - 1]))
        start--;
    const char *p = line.at + start;
    return knee_train_number(&p, line.at + mark);
}

/* Tasks of a launch line that starts several on a node: one for each GPU. With one task per node
 * another program starts the ranks. */
static double tasks(struct knee_slice line, double per_node)
{
    double count = NAN;
    size_t at = knee_slice_find(line, "--ntasks=");
    if (at == line.length || !(per_node > 1))
        return NAN;
    const char *p = line.at + at + strlen("--ntasks=");
    count = knee_train_number(&p, line.at + line.length);
    return count >= per_node ? count : NAN;
}

/* The first GPU that is named stays. */
static bool take_gpu(struct knee_slice line, size_t mark, char *out)
{
    char words[KNEE_TRAIN_TEXT];
    struct knee_slice rest = knee_slice_from(line, mark);
    rest.length = knee_slice_find(rest, "|");
    rest.length = rest.length < 48 ? rest.length : 48;
    knee_slice_copy(knee_slice_trim(rest), words, sizeof words);
    if (out[0] || !knee_gpu_in(words))
        return false;
    memcpy(out, words, sizeof words);
    return true;
}

bool knee_train_fact_read(struct train_facts *facts, size_t row, struct knee_slice line,
                          size_t mark)
{
    const struct knee_train_fact *fact = &knee_train_facts[row];
    struct knee_slice rest = knee_slice_from(line, mark + strlen(fact->mark));
    const char *p = rest.at, *end = p + rest.length;
    double *field = (double *)(void *)((char *)facts + fact->into), value;
    if (fact->reads == FACT_TEXT) {
        take_text(rest, (char *)facts + fact->into);
        return true;
    }
    if (fact->reads == FACT_PARTS) {
        bool mesh = fact->source != NULL;
        take_parts(facts, mesh ? knee_slice_from(line, mark) : rest);
        if (mesh)
            facts->mesh = mesh_size(facts);
        return true;
    }
    if (fact->reads == FACT_DEGREES)
        return take_degrees(facts, rest);
    if (fact->reads == FACT_GPU)
        return take_gpu(line, mark, facts->gpu);
    if (fact->reads == FACT_FIELDS) {
        take_fields(facts, rest);
        return true;
    }
    while (p < end && (*p == ' ' || *p == '=' || *p == ':' || *p == '.' || *p == '-'))
        p++;
    if (fact->reads == FACT_AFTER)
        p = memchr(p, '/', (size_t)(end - p)) ? (const char *)memchr(p, '/', (size_t)(end - p)) + 1
                                              : end;
    if (fact->reads == FACT_LIST)
        value = count_list(p, end);
    else {
        while (p < end && *p == ',') /* "(w. parallel, distributed & accumulation) = 64" */
            p = memchr(p, '=', (size_t)(end - p))
                    ? (const char *)memchr(p, '=', (size_t)(end - p)) + 1
                    : end;
        while (p < end && *p == ' ')
            p++;
        value = knee_train_number(&p, end);
    }
    if (fact->reads == FACT_BEFORE)
        value = number_before(line, mark);
    if (fact->reads == FACT_TASKS)
        value = tasks(line, value);
    if (!(value >= 1 && value < 1e15))
        return false;
    if (fact->source && *field >= value)
        return true; /* groups of ranks have world sizes too: the largest is the job's */
    *field = value;
    if (fact->source)
        facts->workers_from = fact->source;
    return true;
}

/* ---- Into the log ---- */

static void fill(const struct knee_keys *keys, void *object, const char *name, double value)
{
    size_t row = knee_keys_find(keys, name);
    if (row == keys->count || isnan(value) || value < keys->rows[row].min ||
        value > keys->rows[row].max)
        return;
    double *field = (double *)(void *)((char *)object + keys->rows[row].offset);
    if (isnan(*field))
        knee_keys_fill(keys, object, field, value, KNEE_FILE);
}

/* "llama3 8B" is llama3-8b of the presets. */
static void find_model(const char *said, struct knee_shape *shape)
{
    char name[KNEE_TRAIN_TEXT];
    size_t i;
    for (i = 0; said[i] && i + 1 < sizeof name; i++)
        name[i] = said[i] == ' ' ? '-' : knee_lower(said[i]);
    name[i] = '\0';
    for (size_t row = 0; row < knee_model_names.count() && shape->model < 0; row++)
        if (strcmp(knee_model_names.name(row), name) == 0)
            knee_keys_set(&knee_shape_keys, shape, "model", name, KNEE_FILE, NULL);
}

static void fill_job(const struct train_facts *f, struct knee_train_log *log)
{
    const struct knee_keys *s = &knee_shape_keys, *p = &knee_plan_keys;
    fill(s, &log->shape, "layers", f->layers);
    fill(s, &log->shape, "hidden", f->hidden);
    fill(s, &log->shape, "heads", f->heads);
    fill(s, &log->shape, "kv-heads", f->kv_heads);
    fill(s, &log->shape, "ffn", f->ffn);
    fill(s, &log->shape, "vocab", f->vocab);
    fill(s, &log->shape, "head-dim", f->head_dim);
    fill(s, &log->shape, "seq", f->seq);
    find_model(f->model, &log->shape);
    fill(p, &log->plan, "global-batch", log->batch);
    fill(p, &log->plan, "micro-batch", log->micro_batch);
    fill(p, &log->plan, "tp", f->tp);
    fill(p, &log->plan, "pp", f->pp);
    fill(p, &log->plan, "cp", f->cp);
    fill(p, &log->plan, "ep", f->ep);
    if (f->shard > 1 && log->plan.shard < 0)
        log->plan.shard = KNEE_ZERO3;
    if (f->zero_stage == 1 && log->plan.shard < 0)
        log->plan.shard = KNEE_ZERO1;
    if (isnan(log->plan.gpus))
        log->plan.gpus = log->workers;
    log->has_shape = log->shape.model >= 0 || (log->shape.layers > 0 && log->shape.hidden > 0);
    log->has_plan = f->mesh >= 1 || log->plan.tp >= 1 || log->plan.shard >= 0;
}

/* The GPU count, from the most reliable source: argument dump, mesh, world size, launcher, batch
 * over local batch. */
static void set_workers(const struct train_facts *f, struct knee_train_log *log)
{
    double by_batch = f->batch / (f->local_batch * (f->accumulate >= 1 ? f->accumulate : 1));
    double launched = f->per_node * (f->nodes >= 1 ? f->nodes : 1);
    const struct {
        double value;
        const char *from;
    } ways[] = {{log->plan.gpus, "argument dump"},
                {f->mesh, "mesh"},
                {f->workers, f->workers_from},
                {launched, "launch command"},
                {by_batch == rint(by_batch) ? by_batch : NAN, "batch over that of one worker"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways && isnan(log->workers); i++)
        if (ways[i].value >= 1 && ways[i].value <= KNEE_WORKERS_MAX) {
            log->workers = ways[i].value;
            log->workers_from = ways[i].from;
        }
}

/* Arguments that make another model than the importer makes of the dump, where they are set. */
static void find_unpriced(const struct knee_text *arguments, char *out, size_t size)
{
    static const char *const names[] = {
        "experimental_attention_variant",  "linear_attention_freq", "hybrid_layer_pattern",
        "hybrid_override_pattern",         "window_attn_skip_freq", "no_rope_freq",
        "heterogeneous_layers_config_path"};
    static const char *const unset[] = {"None", "False", "0", "0.0", ""};
    struct knee_slice rest = {arguments->data, arguments->length}, line, name;
    while (rest.at && knee_slice_line(&rest, &line)) {
        size_t dots = knee_slice_find(line, " ..");
        struct knee_slice head = {line.at, dots}, value = knee_slice_from(line, dots);
        while (value.length > 0 && (value.at[0] == '.' || value.at[0] == ' '))
            value = knee_slice_from(value, 1);
        value = knee_slice_trim(value);
        name = (struct knee_slice){head.at, 0};
        while (knee_slice_word(&head, &line)) /* the last word: ranks may stand before it */
            name = line;
        bool known = false, off = false;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            known = known || knee_slice_is(name, names[i]);
        for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
            off = off || knee_slice_is(value, unset[i]);
        if (!known || off)
            continue;
        knee_format(out, size, "%.*s %.*s", (int)name.length, name.at,
                    (int)(value.length < 40 ? value.length : 40), value.at);
        return;
    }
}

void knee_train_facts_finish(const struct train_facts *facts, const struct knee_text *arguments,
                             const struct knee_text *deepspeed, struct knee_train_log *log)
{
    knee_shape_init(&log->shape);
    knee_plan_init(&log->plan);
    log->workers = NAN;
    log->workers_from = "";
    if (arguments->data && !arguments->failed)
        knee_megatron_read((struct knee_named_text){arguments->data, arguments->length, log->name},
                           &log->shape, &log->plan, NULL, NULL);
    if (arguments->data && !arguments->failed)
        find_unpriced(arguments, log->unpriced, sizeof log->unpriced);
    if (deepspeed->data && !deepspeed->failed)
        knee_deepspeed_read(deepspeed->data, deepspeed->length, log->name, &log->plan, NULL);
    set_workers(facts, log);
    log->batch = !isnan(log->plan.global_batch) ? log->plan.global_batch : facts->batch;
    log->micro_batch = !isnan(log->plan.micro_batch) ? log->plan.micro_batch : facts->local_batch;
    if (isnan(log->batch) && !isnan(log->workers)) /* one worker per data-parallel rank */
        log->batch = log->micro_batch * log->workers *
                     (facts->accumulate >= 1 ? facts->accumulate : 1) /
                     fmax(1, (facts->tp >= 1 ? facts->tp : 1) * (facts->pp >= 1 ? facts->pp : 1));
    log->seq = !isnan(log->shape.seq) ? log->shape.seq : facts->seq;
    log->params = facts->params;
    knee_format(log->gpu, sizeof log->gpu, "%s", facts->gpu);
    knee_format(log->model, sizeof log->model, "%s", facts->model);
    fill_job(facts, log);
}

/* SPDX-License-Identifier: MIT */
/* list: the presets and where their figures come from. */
#include "ask/ask.h"
#include "base/format.h"
#include "base/slice.h"
#include "cluster/cluster.h"
#include "job/models.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <string.h>

/* `heads`: one per column, with | between them. */
static void begin(struct knee_table *table, const char *align, const char *heads,
                  const struct knee_alloc *alloc)
{
    struct knee_slice rest = knee_slice_of(heads), head;
    knee_table_init(table, align, alloc);
    while (knee_slice_until(&rest, '|', &head))
        knee_table_cell(table, "%.*s", (int)head.length, head.at);
}

static void list_gpus(struct knee_table *table, const struct knee_alloc *alloc)
{
    begin(table, "llrrrlrrl", "gpu|full name|bf16|memory|memory rate|node link|power|$/h|origin",
          alloc);
    const struct knee_gpu *gpu;
    for (size_t row = 0; (gpu = knee_gpu_at(row)); row++) {
        knee_table_cell(table, "%s", gpu->name);
        knee_table_cell(table, "%s", gpu->full_name);
        knee_table_number(table, gpu->bf16_flops, KNEE_UNIT_FLOPS);
        knee_table_number(table, gpu->memory_bytes, KNEE_UNIT_BYTES);
        knee_table_number(table, gpu->memory_bytes_per_s, KNEE_UNIT_BYTES_PER_S);
        knee_table_cell(table, "%s x%.0f", gpu->node_link, gpu->gpus_per_node);
        knee_table_number(table, gpu->power_w, KNEE_UNIT_WATTS);
        if (isnan(gpu->price_low))
            knee_table_cell(table, "-");
        else
            knee_table_cell(table, "%g-%g", gpu->price_low, gpu->price_high);
        knee_table_cell(table, "%s", gpu->origin);
    }
}

static void list_links(struct knee_table *table, const struct knee_alloc *alloc)
{
    begin(table, "llrrrl", "link|full name|raw|achieved|latency|origin", alloc);
    const struct knee_link *link;
    for (size_t row = 0; (link = knee_link_at(row)); row++) {
        knee_table_cell(table, "%s", link->name);
        knee_table_cell(table, "%s", link->full_name);
        knee_table_number(table, link->bytes_per_s, KNEE_UNIT_BYTES_PER_S);
        knee_table_cell(table, "%s", knee_percent(link->achieved).s);
        knee_table_number(table, knee_transport_latency_s(link->name), KNEE_UNIT_SECONDS);
        knee_table_cell(table, "%s", link->origin);
    }
}

static void list_clusters(struct knee_table *table, const struct knee_alloc *alloc)
{
    begin(table, "llrllrl", "cluster|gpu|per node|node link|network|NICs|origin", alloc);
    const struct knee_cluster_preset *cluster;
    for (size_t row = 0; (cluster = knee_cluster_preset_at(row)); row++) {
        knee_table_cell(table, "%s", cluster->name);
        knee_table_cell(table, "%s", cluster->gpu);
        knee_table_cell(table, "%.0f", cluster->gpus_per_node);
        knee_table_cell(table, "%s", cluster->node_link);
        knee_table_cell(table, "%s", cluster->net_link);
        knee_table_cell(table, "%.0f", cluster->nics_per_node);
        knee_table_cell(table, "%s", cluster->origin);
    }
}

static void list_models(struct knee_table *table, const struct knee_alloc *alloc)
{
    begin(table, "lrrrrrrl", "model|params|FLOPs/param|layers|hidden|seq|global batch|origin",
          alloc);
    const struct knee_model *model;
    for (size_t row = 0; (model = knee_model_at(row)); row++) {
        knee_table_cell(table, "%s", model->name);
        knee_table_number(table, 1e9 * model->params_billion, KNEE_UNIT_COUNT);
        knee_table_cell(table, "%.3g", knee_model_flops_per_param(model));
        knee_table_number(table, model->shape.layers, KNEE_UNIT_COUNT);
        knee_table_number(table, model->shape.hidden, KNEE_UNIT_COUNT);
        knee_table_number(table, model->shape.seq, KNEE_UNIT_COUNT);
        knee_table_number(table, model->global_batch, KNEE_UNIT_COUNT);
        knee_table_cell(table, "%s", model->origin);
    }
}

/* The collectives an algorithm does somewhere: in a node, over nodes of eight, over nodes of one.
 */
static void collectives_of(const struct knee_algorithm *algorithm, char *out, size_t size)
{
    static const struct knee_layout layouts[] = {
        {.ranks = 8, .levels = 1, .units = {8, 1}},
        {.ranks = 16, .levels = 2, .units = {16, 2, 1}},
        {.ranks = 4, .levels = 2, .units = {4, 4, 1}},
    };
    size_t used = 0;
    out[0] = '\0';
    for (int op = KNEE_OP_ALL_REDUCE; op < KNEE_OPS; op++) {
        struct knee_counts counts;
        bool does = false;
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
            does = does || algorithm->count(&layouts[i], (enum knee_op)op, 1, &counts);
        if (does && used < size)
            used += (size_t)knee_format(out + used, size - used, "%s%s", used ? " " : "",
                                        knee_op_name((enum knee_op)op));
    }
}

static void list_algorithms(struct knee_table *table, const struct knee_alloc *alloc)
{
    begin(table, "lllll", "algorithm|NCCL|collectives|time|origin", alloc);
    const struct knee_algorithm *algorithm;
    char collectives[160];
    for (size_t row = 0; (algorithm = knee_scheme_at(row)); row++) {
        collectives_of(algorithm, collectives, sizeof collectives);
        knee_table_cell(table, "%s", algorithm->name);
        knee_table_cell(table, "%s", algorithm->nccl ? algorithm->nccl : "-");
        knee_table_cell(table, "%s", collectives);
        knee_table_cell(table, "%s", algorithm->formula);
        knee_table_cell(table, "%s", algorithm->origin);
    }
    for (size_t row = 0; (algorithm = knee_algorithm_at(row)); row++) {
        if (algorithm == knee_scheme_at(row))
            continue;
        knee_table_cell(table, "%s", algorithm->name);
        knee_table_cell(table, "-");
        knee_table_cell(table, "knee predict only");
        knee_table_cell(table, "%s", algorithm->formula);
        knee_table_cell(table, "%s", algorithm->origin);
    }
}

static void list_transports(struct knee_table *table, const struct knee_alloc *alloc)
{
    begin(table, "llrrrrl", "transport|full name|wire|host|launch|NVLS share|origin", alloc);
    const struct knee_transport *transport;
    for (size_t row = 0; (transport = knee_transport_at(row)); row++) {
        knee_table_cell(table, "%s", transport->name);
        knee_table_cell(table, "%s", transport->full_name);
        knee_table_number(table, transport->wire_s, KNEE_UNIT_SECONDS);
        knee_table_number(table, transport->host_s, KNEE_UNIT_SECONDS);
        knee_table_number(table, transport->launch_s, KNEE_UNIT_SECONDS);
        knee_table_cell(table, "%g", transport->nvls_share);
        knee_table_cell(table, "%s", transport->origin);
    }
}

static void list_collectives(struct knee_table *table, const struct knee_alloc *alloc)
{
    begin(table, "lr", "collective|busbw / algbw of 8 ranks", alloc);
    for (int op = KNEE_OP_ALL_REDUCE; op < KNEE_OPS; op++) {
        knee_table_cell(table, "%s", knee_op_name((enum knee_op)op));
        knee_table_cell(table, "%g", knee_op_bus_factor((enum knee_op)op, 8));
    }
}

static void list_shapes(struct knee_table *table, const struct knee_alloc *alloc)
{
    begin(table, "lrrrrrrrr", "shape|params|active|layers|hidden|heads|kv heads|experts|vocab",
          alloc);
    for (size_t row = 0; row < knee_model_names.count(); row++) {
        struct knee_shape shape;
        struct knee_params params;
        knee_shape_init(&shape);
        shape.model = (int)row;
        if (knee_shape_complete(&shape, NULL))
            continue;
        knee_shape_params(&shape, &params);
        knee_table_cell(table, "%s", knee_model_names.name(row));
        knee_table_number(table, params.total, KNEE_UNIT_COUNT);
        knee_table_number(table, params.active, KNEE_UNIT_COUNT);
        knee_table_cell(table, "%g", shape.layers);
        knee_table_cell(table, "%g", shape.hidden);
        knee_table_cell(table, "%g", shape.heads);
        knee_table_cell(table, "%g", shape.kv_heads);
        knee_table_cell(table, "%g", shape.experts);
        knee_table_cell(table, "%g", shape.vocab);
    }
}

static void list_profiles(struct knee_table *table, const struct knee_alloc *alloc)
{
    begin(table, "llll", "profile|base|software|origin", alloc);
    const struct knee_profile *profile;
    for (size_t row = 0; (profile = knee_profile_at(row)); row++) {
        knee_table_cell(table, "%s", profile->name);
        knee_table_cell(table, "%s", profile->base[0] ? profile->base : "-");
        knee_table_cell(table, "%s", profile->summary);
        knee_table_cell(table, "%s", profile->origin);
    }
}

static const struct {
    const char *name;
    void (*fill)(struct knee_table *table, const struct knee_alloc *alloc);
} lists[] = {
    {"gpus", list_gpus},
    {"links", list_links},
    {"transports", list_transports},
    {"clusters", list_clusters},
    {"models", list_models},
    {"algorithms", list_algorithms},
    {"collectives", list_collectives},
    {"shapes", list_shapes},
    {"profiles", list_profiles},
};
#define LISTS (sizeof lists / sizeof *lists)

static void begin_json(struct knee_json *json, bool begun)
{
    if (begun)
        return;
    knee_json_open(json, NULL, '{');
    knee_json_string(json, "schema", "knee.list/1");
}

/* The default screen: how many there are and their names; `most` bytes of them. */
static void put_names(const struct knee_table *table, const char *name, size_t most,
                      const struct knee_style *style, struct knee_text *text)
{
    struct knee_text line = {.alloc = text->alloc};
    const char *cell = table->cells.data;
    size_t rows = table->columns ? table->cell_count / table->columns - 1 : 0;
    knee_text_printf(&line, "%s, %zu:", name, rows);
    for (size_t i = 0; table->columns && i < table->cell_count && !table->cells.failed;
         i++, cell += strlen(cell) + 1) {
        if (i % table->columns != 0 || i < table->columns)
            continue;
        if (line.length + strlen(cell) + 8 > most) {
            knee_text_puts(&line, " ...");
            break;
        }
        knee_text_printf(&line, "%s %s", i > table->columns ? "," : "", cell);
    }
    if (line.data && style->tier == KNEE_TIER_BRIEF)
        knee_text_printf(text, "%s\n", line.data);
    else if (line.data)
        knee_wrap(line.data, style->width > 20 ? style->width : 80, "", text);
    text->failed = text->failed || line.failed || table->cells.failed;
    knee_text_release(&line);
}

static void brief_lists(struct knee_text *text)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        knee_text_printf(text, "%s%s", i ? ", " : "Lists: ", lists[i].name);
    knee_text_puts(text, "\n");
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    struct knee_text *text = q->outs[0].text;
    struct knee_json json = {.text = text};
    bool any = false, as_json = ASK_FORMAT(q->outs[0]) == KNEE_JSON;
    bool names = q->outs[0].format == KNEE_TEXT && q->style.tier != KNEE_TIER_FULL && !as_json;
    if (names && q->style.tier == KNEE_TIER_BRIEF && !q->word_count) {
        brief_lists(text);
        return KNEE_OK;
    }
    for (size_t i = 0; i < LISTS; i++) {
        if (q->word_count && strcmp(q->words[0], lists[i].name) != 0)
            continue;
        struct knee_table table;
        lists[i].fill(&table, knee_ask_alloc(q->ask));
        if (as_json)
            begin_json(&json, any);
        else if (any && !names)
            knee_text_puts(text, "\n");
        any = true;
        if (as_json)
            knee_table_json(&table, lists[i].name, &json);
        else if (names)
            put_names(&table, lists[i].name, q->word_count ? 1600 : 78, &q->style, text);
        else
            knee_table_write(&table, q->outs[0].format, &q->style, text);
        knee_table_release(&table);
    }
    if (any && as_json) {
        knee_json_close(&json, '}');
        knee_text_puts(text, "\n");
    }
    if (any && names && q->style.tier != KNEE_TIER_BRIEF)
        knee_text_puts(text, q->word_count ? "Next: -v shows their figures and origins\n"
                                           : "Next: knee list gpus, or -v for all figures\n");
    if (any)
        return KNEE_OK;
    return knee_fail_hint(
        err, KNEE_USAGE, "",
        "try gpus, links, transports, clusters, models, algorithms, collectives, shapes "
        "or profiles",
        "no list '%.60s'", q->words[0]);
}

const struct knee_ask_command knee_ask_list = {
    .name = "list",
    .most_words = 1,
    .operands = "[gpus|links|transports|clusters|models|algorithms|collectives|shapes|profiles]",
    .answer = answer,
};

/* SPDX-License-Identifier: MIT */
/* knee fit: a cluster from its logs, and how well the logs are predicted. Schemas knee.fit/1 and
 * knee.cluster/1. */
#include "knee_logs.h"
#include "say/short.h"

#include <math.h>
#include <string.h>

#define CHECK  struct knee_check
#define LOG    struct knee_log
#define LOGGED struct knee_log_check
#define PARAM  struct knee_parameter

/* ---- Fields ---- */

static const char *known_name(enum knee_known known)
{
    static const char *const names[] = {"not known", "assumed", "inferred", "log", "given"};
    return names[known];
}

#define REFUSAL struct knee_refusal
static const struct knee_field refusal_fields[] = {
    KNEE_FIELD(REFUSAL, line, "line", "line", COUNT, FULL, "of the file"),
    KNEE_FIELD(REFUSAL, reason, "reason", "reason", TEXT, FULL, "why it was not used"),
    KNEE_FIELD(REFUSAL, text, "text", "text", TEXT, FULL, "its beginning"),
};
ROW_OF(note_row, LOG, index < it->note_count ? it->notes[index] : NULL)
A_TEXT(note_text, void, it)
static const struct knee_field note_fields[] = {
    KNEE_GET(note_text, NULL, NULL, TEXT, DATA, "a sentence")};

A_TEXT(op, LOG, knee_op_name(it->op))
A_TEXT(op_from, LOG, known_name(it->op_known))
A_TEXT(ranks_from, LOG, known_name(it->ranks_known))
A_TEXT(nodes_from, LOG, known_name(it->nodes_known))
A_TEXT(algorithm, LOG, it->algorithm[0] ? it->algorithm : NULL)
#define L(member, key, head, kind, tier, words)                                                    \
    KNEE_FIELD(LOG, member, key, head, kind, tier, words)
static const struct knee_field log_facts[] = {
    L(file, "file", "log", TEXT, SCREEN, "the file"),
    KNEE_GET(op, "collective", "collective", TEXT, SCREEN, "the operation"),
    L(ranks, "ranks", "ranks", COUNT, SCREEN, "of the communicator"),
    L(sample_count, "rows", "rows", COUNT, SCREEN, "used"),
    L(nodes, "nodes", "nodes", COUNT, FULL, "they are on"),
    L(table, "table", "table", COUNT, FULL, "of the file, from 1"),
    KEY_BY(ranks_from, "ranks_from", TEXT, "how it is known"),
    KEY_BY(nodes_from, "nodes_from", TEXT, "how it is known"),
    KEY_BY(op_from, "collective_from", TEXT, "how it is known"),
    KNEE_GET(algorithm, "algorithm", "algorithm", TEXT, FULL, "of knee bench; null: the library's"),
    L(refused, "refused", "refused", COUNT, FULL, "rows"),
    L(lines, "lines", NULL, COUNT, DATA, "of the file"),
    L(facts, "lines_of_facts", NULL, COUNT, DATA, "understood"),
    L(others, "lines_of_other_text", NULL, COUNT, DATA, "not understood"),
    L(gpu, "gpu", NULL, TEXT, DATA, "as the log names it"),
    L(library, "library", NULL, TEXT, DATA, "likewise"),
    KNEE_ARRAY(LOG, refusals, refusal_count, "refusals", refusal_fields, "rows not used"),
    KNEE_ROWS_BY(note_row, "notes", note_fields, "contradictions and assumptions"),
};
#define SAMPLE struct knee_sample
A_NUMBER(fitted_s, void, UP(LOGGED)->fitted_s[at->index])
A_NUMBER(fit_error, SAMPLE, UP(LOGGED)->fitted_s[at->index] / it->time_s - 1)
static const struct knee_field sample_fields[] = {
    KEY(SAMPLE, bytes, "bytes", BYTES, "message size"),
    KEY(SAMPLE, time_s, "measured_s", TIME, "of the log"),
    KEY_BY(fitted_s, "fitted_s", TIME, "of the fit"),
    KEY_BY(fit_error, "error", CHANGE, "fitted / measured - 1"),
};
ROW_OF(sample_row, LOGGED, index < it->log->sample_count ? &it->log->samples[index] : NULL)
WHEN(was_fitted, LOGGED, it->fitted_s != NULL)
A_TEXT(recognised, LOGGED, it->recognised ? it->cluster.name : NULL)
#define K(member, key, head, kind, tier, words)                                                    \
    KNEE_FIELD(LOGGED, member, key, head, kind, tier, words)
static const struct knee_field logged_fields[] = {
    KNEE_AMONG(LOGGED, log, log_facts, .pointer = true),
    K(left_out.median, "median_error", "error", SHARE, SCREEN,
      "median, at every second size, fitted to the others"),
    K(left_out.p90, "p90_error", "90th percentile", SHARE, FULL, "likewise"),
    K(left_out.rows, "left_out_rows", NULL, COUNT, DATA, "left out"),
    K(out_of_place.median, "out_of_place_median_error", NULL, SHARE, DATA, "out of place alone"),
    K(fitted.median, "fitted_median_error", NULL, SHARE, DATA, "at the sizes it was fitted to"),
    K(preset.median, "preset_median_error", "preset's error", SHARE, SCREEN, "without a fit"),
    K(preset.p90, "preset_p90_error", NULL, SHARE, DATA, "without a fit"),
    KNEE_GET(recognised, "recognised", "recognised as", TEXT, FULL, "null: not recognised"),
    KNEE_ROWS_BY(sample_row, "samples", sample_fields, "one row per size", .when = was_fitted),
};

/* Every row of every log, flat: the CSV. */
struct flat {
    const LOGGED *log;
    size_t sample;
};
static struct flat flat_at(const CHECK *check, size_t index)
{
    for (size_t i = 0; i < check->count; index -= check->checks[i++].log->sample_count)
        if (index < check->checks[i].log->sample_count)
            return (struct flat){&check->checks[i], index};
    return (struct flat){NULL, 0};
}
ROW_OF(flat_row, void,
       (flat_at(at->row, index)).log
           ? &(flat_at(at->row, index)).log->log->samples[(flat_at(at->row, index)).sample]
           : NULL)
OBJECT(flat_log, void, flat_at(at->up->row, at->index).log->log)
static void flat_fit(const struct knee_at *at, struct knee_value *out)
{
    struct flat flat = flat_at(at->up->row, at->index);
    bool fitted = flat.log && flat.log->fitted_s;
    knee_value_number(out, fitted ? flat.log->fitted_s[flat.sample] : (double)NAN);
}
static void flat_error(const struct knee_at *at, struct knee_value *out)
{
    flat_fit(at, out);
    knee_value_number(out, out->number / ((const SAMPLE *)at->row)->time_s - 1);
}
static const struct knee_field flat_facts[] = {
    L(file, "file", NULL, TEXT, DATA, "the file"),
    L(table, "table", NULL, COUNT, DATA, "of the file"),
    KEY_BY(op, "collective", TEXT, "the operation"),
    L(ranks, "ranks", NULL, COUNT, DATA, "of the communicator"),
    L(nodes, "nodes", NULL, COUNT, DATA, "they are on"),
};
static const struct knee_field flat_fields[] = {
    KNEE_AMONG_BY(flat_log, flat_facts),
    KEY(SAMPLE, bytes, "bytes", BYTES, "message size"),
    KEY(SAMPLE, time_s, "measured_s", TIME, "of the log"),
    KEY_BY(flat_fit, "fitted_s", TIME, "of the fit"),
    KEY_BY(flat_error, "error", CHANGE, "fitted / measured - 1"),
};

#define ERRORS struct knee_errors
static const struct knee_field error_fields[] = {
    KEY(ERRORS, rows, "rows", COUNT, "rows"),
    KEY(ERRORS, median, "median_error", SHARE, "of |fitted / measured - 1|"),
    KEY(ERRORS, p90, "p90_error", SHARE, "90th percentile"),
    KEY(ERRORS, promised_median, "promised_median_error", SHARE,
        "what docs/reference/fit.md promises"),
};
#define POOLED(member, key, words)                                                                 \
    KNEE_INSIDE(CHECK, member, key, error_fields, words, .flat = true)
#define TRANSFER struct knee_transfer
A_TEXT(from_file, TRANSFER, UP(CHECK)->checks[it->from].log->file)
A_TEXT(to_file, TRANSFER, UP(CHECK)->checks[it->to].log->file)
static const struct knee_field transfer_fields[] = {
    KNEE_GET(from_file, "from", "fitted on", TEXT, FULL, "a log"),
    KNEE_GET(to_file, "to", "predicts", TEXT, FULL, "another of the same cluster"),
    KNEE_FIELD(TRANSFER, errors.rows, "rows", "rows", COUNT, FULL, "rows"),
    KNEE_FIELD(TRANSFER, errors.median, "median_error", "error", SHARE, FULL, "median"),
    KNEE_FIELD(TRANSFER, errors.p90, "p90_error", "90th percentile", SHARE, FULL, "of it"),
};

/* Each parameter has its own unit: JSON has the number, text has number and unit. */
static enum knee_kind kind_of(enum knee_unit unit)
{
    return unit == KNEE_UNIT_SECONDS       ? TIME
           : unit == KNEE_UNIT_BYTES_PER_S ? RATE
           : unit == KNEE_UNIT_FRACTION    ? SHARE
                                           : NUMBER;
}
A_TEXT(unit_name, PARAM,
       it->unit == KNEE_UNIT_SECONDS       ? "s"
       : it->unit == KNEE_UNIT_BYTES_PER_S ? "bytes/s"
       : it->unit == KNEE_UNIT_FRACTION    ? "share"
                                           : "factor")
GETTER(in_words, PARAM,
       knee_value_printf(out, "%s",
                         knee_say_interval(it->value, it->low, it->high, kind_of(it->unit)).s))
#define PARAMETER                                                                                  \
    KNEE_FIELD(PARAM, name, "name", "parameter", TEXT, FULL, "of the cost model"),                 \
        KEY(PARAM, value, "value", NUMBER, "in its unit"),                                         \
        KEY(PARAM, low, "low", NUMBER, "low end of the 90% interval"),                             \
        KEY(PARAM, high, "high", NUMBER, "high end"),                                              \
        KEY_BY(unit_name, "unit", TEXT, "s, bytes/s, share or factor"),                            \
        KNEE_FIELD(PARAM, fitted, "fitted", "from the logs", YES_NO, FULL, "false: the preset's")
static const void *parameter_row(const struct knee_at *at, size_t index)
{
    const CHECK *check = at->row;
    for (size_t i = 0; i < check->cluster_count;
         index -= check->clusters[i++].record.parameter_count)
        if (index < check->clusters[i].record.parameter_count)
            return &check->clusters[i].record.parameters[index];
    return NULL;
}
static void cluster_name(const struct knee_at *at, struct knee_value *out)
{
    const CHECK *check = at->up->row;
    size_t i = 0, index = at->index;
    while (index >= check->clusters[i].record.parameter_count)
        index -= check->clusters[i++].record.parameter_count;
    knee_value_text(out, check->clusters[i].cluster.name);
}
static const struct knee_field parameter_fields[] = {
    PARAMETER, KNEE_GET(in_words, "text", "value", TEXT, FULL, "in words, with its 90% interval"),
    KNEE_GET(cluster_name, "cluster", "cluster", TEXT, FULL, "it is of")};

static const struct knee_field fields[] = {
    KNEE_SENTENCE,
    KNEE_ROWS(CHECK, checks, count, "logs", logged_fields, "one row per log"),
    POOLED(left_out, "pooled", "all logs, at sizes left out"),
    POOLED(out_of_place, "pooled_out_of_place", "the same, out of place"),
    POOLED(preset, "presets", "two-node logs by the presets, without a fit"),
    POOLED(transfer, "transfer", "one log from another"),
    KNEE_ROWS(CHECK, transfers, transfer_count, "transfers", transfer_fields, "pairs of logs"),
    KEY(CHECK, transfers_left, "transfers_not_tried", COUNT, "pairs"),
    KNEE_ROWS_BY(parameter_row, "parameters", parameter_fields, "of all fitted clusters"),
    KNEE_ROWS_BY(flat_row, "rows", flat_fields, "every row of every log"),
};
static const struct knee_view views[] = {
    {.list = "rows", .tier = DATA},
    {.list = "logs"},
    {.list = "parameters", .title = "Parameters", .tier = FULL},
    {.list = "transfers", .title = "One log from another", .tier = FULL},
};

/* ---- Sentences ---- */

static const PARAM *named(const struct knee_cluster *cluster, const char *name)
{
    for (size_t i = 0; cluster->fitted && i < cluster->fitted->parameter_count; i++)
        if (strcmp(cluster->fitted->parameters[i].name, name) == 0)
            return &cluster->fitted->parameters[i];
    return NULL;
}

static void say_links(const struct knee_cluster *cluster, struct knee_text *text)
{
    static const struct {
        const char *latency, *rate, *where;
    } links[] = {{"node latency", "node bandwidth", "In a node"},
                 {"network latency", "network bandwidth", "Between nodes"}};
    for (size_t i = 0; i < 2 && i < cluster->level_count; i++) {
        const PARAM *latency = named(cluster, links[i].latency),
                    *rate = named(cluster, links[i].rate);
        PUT(text, "{}{}: {time} per hop, {rate}", i ? " " : "", links[i].where,
            latency ? latency->value : cluster->levels[i].latency_s,
            rate ? rate->value : cluster->levels[i].bytes_per_s);
        knee_text_printf(text, i && cluster->levels[i].ports > 1 ? " x %.0f." : ".",
                         cluster->levels[i].ports);
    }
}

static void say(const void *result, struct knee_said *said)
{
    const CHECK *check = result;
    size_t used = 0, refused = 0;
    for (size_t i = 0; i < check->count; i++) {
        const LOG *log = check->checks[i].log;
        used += log->sample_count;
        refused += log->refused;
        for (size_t n = 0; n < log->note_count; n++)
            PUT(&said->notes, "{}: {}\n", log->file, log->notes[n]);
        for (size_t n = 0; n < log->refusal_count && n < 3; n++)
            PUT(&said->notes, "{}:{} refused: {}\n", log->file, log->refusals[n].line,
                log->refusals[n].reason);
    }
    PUT(&said->title, "{logs}, {rows} used, {} refused", check->count, used, refused);
    if (check->left_out.rows) {
        bool kept = !(check->left_out.median > check->left_out.promised_median);
        PUT(&said->headline, "{}: it predicts sizes left out within {share}.",
            kept ? "The fit holds" : "Do not trust this fit", check->left_out.median);
        PUT(&said->reason, "Median error {share}, 90th percentile {share} over {rows}.",
            check->left_out.median, check->left_out.p90, check->left_out.rows);
    } else
        PUT(&said->headline, "Too few sizes to check the fit.");
    if (check->cluster_count == 1)
        say_links(&check->clusters[0].cluster, &said->effect);
    if (check->preset.rows)
        PUT(&said->after, "Presets without a fit: median error {share}, two-node logs.\n",
            check->preset.median);
    if (check->transfer.rows)
        PUT(&said->after, "One log predicted from another: median error {share}.\n",
            check->transfer.median);
    PUT(&said->next, "knee fit LOGS -o cluster.yaml, then --cluster cluster.yaml");
}

const struct knee_answer_type knee_fit_answer = {
    .schema = "knee.fit/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};

/* ---- knee cluster --json: the file's keys ---- */

#define CLUSTER struct knee_cluster
#define LEVEL   struct knee_level
A_TEXT(sharing, LEVEL, it->shared ? "shared" : "striped")
static const struct knee_field level_fields[] = {
    KNEE_FIELD(LEVEL, name, "link", "link", TEXT, SCREEN, "its name"),
    KNEE_FIELD(LEVEL, count, "count", "count", COUNT, SCREEN, "units below; 0: any number"),
    KNEE_FIELD(LEVEL, latency_s, "latency", "latency", TIME, SCREEN, "of a hop, seconds"),
    KNEE_FIELD(LEVEL, bytes_per_s, "bandwidth", "bandwidth", RATE, SCREEN, "bytes/s and port"),
    KNEE_FIELD(LEVEL, ports, "ports", "ports", COUNT, SCREEN, "of a unit"),
    KEY(LEVEL, oversubscription, "oversubscription", NUMBER, "factor"),
    KEY_BY(sharing, "sharing", TEXT, "shared or striped"),
};
#define PROTOCOL struct knee_protocol
A_TEXT(protocol_name, void, knee_protocol_name((enum knee_protocol_name)at->index))
#define T(member, key) KEY(PROTOCOL, member, key, NUMBER, "of the cost model")
static const struct knee_field protocol_fields[] = {
    KEY_BY(protocol_name, "name", TEXT, "LL, LL128 or Simple"),
    T(launch_s, "launch"),
    T(node_hop, "node-hop"),
    T(net_hop, "net-hop"),
    T(node_share, "node-share"),
    T(net_share, "net-share"),
    T(net_more, "net-more"),
};
ROW_OF(protocol_row, CLUSTER, index < KNEE_PROTOCOLS ? &it->protocols[index] : NULL)
static const struct knee_field own_parameter_fields[] = {PARAMETER};
#define CURVE struct knee_curve
A_TEXT(curve_op, CURVE, knee_op_name((enum knee_op)it->op))
LIST_OF(knot_bytes, CURVE, bytes, knots)
LIST_OF(knot_time, CURVE, time_s, knots)
A_NUMBER(knot, double, *it)
static const struct knee_field knot_fields[] = {KNEE_GET(knot, NULL, NULL, NUMBER, DATA, "")};
#define V(member, key, words) KEY(CURVE, member, key, NUMBER, words)
static const struct knee_field curve_fields[] = {
    KEY_BY(curve_op, "collective", TEXT, "the operation"),
    V(ranks, "ranks", "of the communicator"),
    V(nodes, "nodes", "they are on"),
    KEY(CURVE, source, "source", TEXT, "the log"),
    V(rows, "rows", "used"),
    V(refused, "refused", "rows"),
    V(median_error, "median-error", "at sizes left out"),
    V(p90_error, "p90-error", "likewise"),
    KNEE_ROWS_BY(knot_bytes, "bytes", knot_fields, "sizes"),
    KNEE_ROWS_BY(knot_time, "time", knot_fields, "seconds"),
};
ROW_OF(own_parameter, CLUSTER,
       it->fitted &&index < it->fitted->parameter_count ? &it->fitted->parameters[index] : NULL)
ROW_OF(curve_row, CLUSTER,
       it->fitted &&index < it->fitted->curve_count ? &it->fitted->curves[index] : NULL)
static const struct knee_field cluster_fields[] = {
    KEY(CLUSTER, name, "name", TEXT, "its name"),
    KEY(CLUSTER, gpu, "gpu", TEXT, "its GPU"),
    KNEE_ARRAY(CLUSTER, levels, level_count, "levels", level_fields, "from the node outwards"),
    KEY(CLUSTER, launch_s, "launch", TIME, "of a collective"),
    KEY(CLUSTER, peer_s, "peer", TIME, "per further message"),
    KEY(CLUSTER, floor_s, "floor", TIME, "shortest call"),
    KEY(CLUSTER, nvls_share, "nvls-share", NUMBER, "0: no NVLS"),
    KEY(CLUSTER, sharp, "sharp", YES_NO, "switches reduce"),
    KEY(CLUSTER, plain, "plain", YES_NO, "hosts that send messages"),
    KNEE_ROWS_BY(protocol_row, "protocols", protocol_fields, "LL, LL128, Simple"),
    KNEE_ROWS_BY(own_parameter, "parameters", own_parameter_fields, "what was fitted"),
    KNEE_ROWS_BY(curve_row, "curves", curve_fields, "what each log shows"),
};
static const struct knee_view cluster_views[] = {{.list = "levels"}};
const struct knee_answer_type knee_cluster_answer = {
    .schema = "knee.cluster/1", KNEE_FIELDS(cluster_fields), KNEE_VIEWS(cluster_views)};

/* SPDX-License-Identifier: MIT */
/*
 * A fit and its check as text, JSON (schema knee.fit/1), CSV or Markdown: a sentence, a table of
 * the logs with their errors at sizes left out, what the presets give without a fit, what one log
 * says about another, the parameters with their intervals, and every row that was refused.
 */
#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <string.h>

static size_t refused_rows(const struct knee_check *check)
{
    size_t refused = 0;
    for (size_t i = 0; i < check->count; i++)
        refused += check->checks[i].log->refused;
    return refused;
}

static size_t used_rows(const struct knee_check *check)
{
    size_t used = 0;
    for (size_t i = 0; i < check->count; i++)
        used += check->checks[i].log->sample_count;
    return used;
}

/* "1.2 % <= 8.0 %"; the figure alone where nothing is promised. */
static void say_kept(struct knee_text *text, double error, double promised)
{
    knee_text_printf(text, "%s", knee_percent(error).s);
    if (!isnan(promised))
        knee_text_printf(text, " %s %s", error <= promised ? "<=" : ">", knee_percent(promised).s);
}

static void say_figure(struct knee_text *text, const char *what, const struct knee_errors *errors)
{
    knee_text_printf(text, " %s: median ", what);
    say_kept(text, errors->median, errors->promised_median);
    knee_text_puts(text, ", 90th percentile ");
    say_kept(text, errors->p90, errors->promised_p90);
    knee_text_printf(text, " (%zu rows).", errors->rows);
}

static void say_links(const struct knee_cluster *fitted, struct knee_text *text)
{
    const struct knee_level *node = &fitted->levels[0], *net = &fitted->levels[1];
    knee_text_printf(text, " In the node %s a hop and %s;",
                     knee_human(node->latency_s, KNEE_UNIT_SECONDS).s,
                     knee_human(node->bytes_per_s, KNEE_UNIT_BYTES_PER_S).s);
    if (fitted->level_count > 1)
        knee_text_printf(text, " between nodes %s a hop and %.0f x %s.",
                         knee_human(net->latency_s, KNEE_UNIT_SECONDS).s, net->ports,
                         knee_human(net->bytes_per_s, KNEE_UNIT_BYTES_PER_S).s);
}

static const struct knee_parameter *parameter_named(const struct knee_cluster *t, const char *name)
{
    for (size_t i = 0; t->fitted && i < t->fitted->parameter_count; i++)
        if (strcmp(t->fitted->parameters[i].name, name) == 0)
            return &t->fitted->parameters[i];
    return NULL;
}

/* Plain hosts: what the logs tell. */
static void say_messages(const struct knee_cluster *fitted, struct knee_text *text)
{
    static const struct {
        const char *latency, *rate, *where;
    } levels[] = {{"node latency", "node bandwidth", "inside a host"},
                  {"network latency", "network bandwidth", "between hosts"}};
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        const struct knee_parameter *latency = parameter_named(fitted, levels[l].latency);
        const struct knee_parameter *rate = parameter_named(fitted, levels[l].rate);
        if (latency && rate)
            knee_text_printf(text, " A message %s takes alpha = %s (%s to %s) and %s (%s to %s).",
                             levels[l].where, knee_human(latency->value, KNEE_UNIT_SECONDS).s,
                             knee_human(latency->low, KNEE_UNIT_SECONDS).s,
                             knee_human(latency->high, KNEE_UNIT_SECONDS).s,
                             knee_human(rate->value, KNEE_UNIT_BYTES_PER_S).s,
                             knee_human(rate->low, KNEE_UNIT_BYTES_PER_S).s,
                             knee_human(rate->high, KNEE_UNIT_BYTES_PER_S).s);
    }
}

static void sentence(const struct knee_check *check, struct knee_text *text)
{
    knee_text_printf(text, "%zu log%s, %zu rows used, %zu refused.", check->count,
                     check->count == 1 ? "" : "s", used_rows(check), refused_rows(check));
    if (check->cluster_count == 1 && check->clusters[0].cluster.plain)
        say_messages(&check->clusters[0].cluster, text);
    else if (check->cluster_count == 1)
        say_links(&check->clusters[0].cluster, text);
    if (check->left_out.rows)
        say_figure(text, "Fitted at every second size, the others", &check->left_out);
    if (check->preset.rows)
        say_figure(text, "Presets without a fit, two-node logs", &check->preset);
    if (check->transfer.rows)
        say_figure(text, "Fitted on one all-reduce, other logs of the cluster", &check->transfer);
}

/* ---- Tables ---- */

static void logs_table(const struct knee_check *check, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    static const char *const headers[] = {
        "log",     "collective",       "ranks", "nodes",          "rows",
        "refused", "left out: median", "p90",   "preset: median", "recognised as"};
    struct knee_table table;
    knee_table_init(&table, "llrrrrrrrl", text->alloc);
    KNEE_HEADS(&table, headers);
    for (size_t i = 0; i < check->count; i++) {
        const struct knee_log_check *row = &check->checks[i];
        const struct knee_log *log = row->log;
        if (log->table > 1)
            knee_table_cell(&table, "%s#%zu", log->file, log->table);
        else
            knee_table_cell(&table, "%s", log->file);
        knee_table_cell(&table, "%s%s%s", knee_op_name(log->op), log->algorithm[0] ? ", " : "",
                        log->algorithm);
        knee_table_number(&table, log->ranks, KNEE_UNIT_COUNT);
        knee_table_number(&table, log->nodes, KNEE_UNIT_COUNT);
        knee_table_cell(&table, "%zu", log->sample_count);
        knee_table_cell(&table, "%zu", log->refused);
        knee_table_cell(&table, "%s%s", knee_percent(row->left_out.median).s,
                        row->left_out.median > row->left_out.promised_median ? " >" : "");
        knee_table_cell(&table, "%s", knee_percent(row->left_out.p90).s);
        knee_table_cell(&table, "%s", row->preset.rows ? knee_percent(row->preset.median).s : "-");
        knee_table_cell(&table, "%s", row->recognised ? row->cluster.name : "not recognised");
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void transfers_table(const struct knee_check *check, enum knee_format format,
                            const struct knee_style *style, struct knee_text *text)
{
    struct knee_table table;
    if (check->transfer_count == 0)
        return;
    knee_text_puts(text, "\n");
    knee_table_init(&table, "llrr", text->alloc);
    for (size_t i = 0; i < 4; i++)
        knee_table_cell(&table, "%s",
                        (const char *const[]){"fitted on", "predicts", "median", "p90"}[i]);
    for (size_t i = 0; i < check->transfer_count && i < 64; i++) {
        const struct knee_transfer *t = &check->transfers[i];
        const struct knee_log *from = check->checks[t->from].log, *to = check->checks[t->to].log;
        knee_table_cell(&table, "%s (%s, %.0f)", from->file, knee_op_name(from->op), from->ranks);
        knee_table_cell(&table, "%s (%s, %.0f)", to->file, knee_op_name(to->op), to->ranks);
        knee_table_cell(&table, "%s", knee_percent(t->errors.median).s);
        knee_table_cell(&table, "%s", knee_percent(t->errors.p90).s);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
    size_t unseen =
        check->transfers_left + (check->transfer_count > 64 ? check->transfer_count - 64 : 0);
    if (unseen)
        knee_text_printf(text, "  ... and %zu pairs more, %zu of them not tried\n", unseen,
                         check->transfers_left);
}

static void parameters_table(const struct knee_cluster_fit *cluster, enum knee_format format,
                             const struct knee_style *style, struct knee_text *text)
{
    struct knee_table table;
    knee_text_printf(text, "\n  %s (%zu log%s)\n", cluster->cluster.name, cluster->logs,
                     cluster->logs == 1 ? "" : "s");
    knee_table_init(&table, "lrrrl", text->alloc);
    for (size_t i = 0; i < 5; i++)
        knee_table_cell(&table, "%s",
                        (const char *const[]){"parameter", "value", "low", "high", "from"}[i]);
    for (size_t i = 0; i < cluster->record.parameter_count; i++) {
        const struct knee_parameter *p = &cluster->record.parameters[i];
        knee_table_cell(&table, "%s", p->name);
        knee_table_number(&table, p->value, p->unit);
        knee_table_number(&table, p->low, p->unit);
        knee_table_number(&table, p->high, p->unit);
        knee_table_cell(&table, "%s", p->fitted ? "the logs" : "the preset");
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

/* What was refused, worked out or contradictory: nothing of it is silent. */
static void notes(const struct knee_check *check, struct knee_text *text)
{
    for (size_t i = 0; i < check->count; i++) {
        const struct knee_log *log = check->checks[i].log;
        for (size_t n = 0; n < log->note_count; n++)
            knee_text_printf(text, "  %s: %s\n", log->file, log->notes[n]);
        size_t shown = log->refusal_count < 3 ? log->refusal_count : 3;
        for (size_t n = 0; n < shown; n++)
            knee_text_printf(text, "  %s:%zu refused: %s\n", log->file, log->refusals[n].line,
                             log->refusals[n].reason);
        if (log->refused > shown)
            knee_text_printf(text, "  %s: %zu more rows refused\n", log->file,
                             log->refused - shown);
    }
}

static void write_text(const struct knee_check *check, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc};
    sentence(check, &words);
    knee_say(&words, format, style, text);
    knee_text_puts(text, "\n");
    logs_table(check, format, style, text);
    if (style->brief)
        return;
    transfers_table(check, format, style, text);
    for (size_t i = 0; i < check->cluster_count; i++)
        parameters_table(&check->clusters[i], format, style, text);
    knee_text_puts(text, "\n");
    notes(check, text);
}

/* ---- CSV: every row of every log beside its fit ---- */

static void write_csv(const struct knee_check *check, const struct knee_style *style,
                      struct knee_text *text)
{
    static const char *const headers[] = {"file",  "table",      "collective", "ranks", "nodes",
                                          "bytes", "measured_s", "fitted_s",   "error"};
    struct knee_table table;
    knee_table_init(&table, "lrlrrrrrr", text->alloc);
    KNEE_HEADS(&table, headers);
    for (size_t i = 0; i < check->count; i++) {
        const struct knee_log *log = check->checks[i].log;
        const double *fitted_s = check->checks[i].fitted_s;
        for (size_t n = 0; n < log->sample_count; n++) {
            const struct knee_sample *s = &log->samples[n];
            double fit_s = fitted_s ? fitted_s[n] : NAN;
            knee_table_cell(&table, "%s", log->file);
            knee_table_cell(&table, "%zu", log->table);
            knee_table_cell(&table, "%s", knee_op_name(log->op));
            knee_table_exact(&table, log->ranks);
            knee_table_exact(&table, log->nodes);
            knee_table_exact(&table, s->bytes);
            knee_table_exact(&table, s->time_s);
            knee_table_exact(&table, fit_s);
            knee_table_exact(&table, fit_s / s->time_s - 1);
        }
    }
    knee_table_write(&table, KNEE_CSV, style, text);
    knee_table_release(&table);
}

/* ---- JSON ---- */

static const char *known_name(enum knee_known known)
{
    static const char *const names[] = {"not known", "assumed", "inferred", "log", "given"};
    return names[known];
}

static void json_refusals(struct knee_json *json, const struct knee_log *log)
{
    knee_json_open(json, "refusals", '[');
    for (size_t n = 0; n < log->refusal_count; n++) {
        knee_json_open_flat(json, NULL, '{');
        knee_json_number(json, "line", (double)log->refusals[n].line);
        knee_json_string(json, "reason", log->refusals[n].reason);
        knee_json_string(json, "text", log->refusals[n].text);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
    knee_json_open(json, "notes", '[');
    for (size_t n = 0; n < log->note_count; n++)
        knee_json_string(json, NULL, log->notes[n]);
    knee_json_close(json, ']');
}

static void json_samples(struct knee_json *json, const struct knee_log_check *check)
{
    if (!check->fitted_s)
        return;
    knee_json_open(json, "samples", '[');
    for (size_t n = 0; n < check->log->sample_count; n++) {
        const struct knee_sample *s = &check->log->samples[n];
        knee_json_open_flat(json, NULL, '{');
        knee_json_number(json, "bytes", s->bytes);
        knee_json_number(json, "measured_s", s->time_s);
        knee_json_number(json, "fitted_s", check->fitted_s[n]);
        knee_json_number(json, "error", check->fitted_s[n] / s->time_s - 1);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_log(struct knee_json *json, const struct knee_log_check *check)
{
    const struct knee_log *log = check->log;
    knee_json_open(json, NULL, '{');
    knee_json_string(json, "file", log->file);
    knee_json_number(json, "table", (double)log->table);
    knee_json_number(json, "ranks", log->ranks);
    knee_json_string(json, "ranks_from", known_name(log->ranks_known));
    knee_json_number(json, "nodes", log->nodes);
    knee_json_string(json, "nodes_from", known_name(log->nodes_known));
    knee_json_string(json, "collective", knee_op_name(log->op));
    knee_json_string(json, "collective_from", known_name(log->op_known));
    knee_json_string(json, "algorithm", log->algorithm[0] ? log->algorithm : NULL);
    knee_json_number(json, "rows", (double)log->sample_count);
    knee_json_number(json, "refused", (double)log->refused);
    knee_json_number(json, "lines", (double)log->lines);
    knee_json_number(json, "lines_of_facts", (double)log->facts);
    knee_json_number(json, "lines_of_other_text", (double)log->others);
    knee_json_number(json, "median_error", check->left_out.median);
    knee_json_number(json, "p90_error", check->left_out.p90);
    knee_json_number(json, "left_out_rows", (double)check->left_out.rows);
    knee_json_number(json, "out_of_place_median_error", check->out_of_place.median);
    knee_json_number(json, "fitted_median_error", check->fitted.median);
    knee_json_number(json, "preset_median_error", check->preset.median);
    knee_json_number(json, "preset_p90_error", check->preset.p90);
    knee_json_string(json, "recognised", check->recognised ? check->cluster.name : NULL);
    knee_json_string(json, "gpu", log->gpu);
    knee_json_string(json, "library", log->library);
    json_refusals(json, log);
    json_samples(json, check);
    knee_json_close(json, '}');
}

static void json_errors(struct knee_json *json, const char *key, const struct knee_errors *errors)
{
    knee_json_open_flat(json, key, '{');
    knee_json_number(json, "rows", (double)errors->rows);
    knee_json_number(json, "median_error", errors->median);
    knee_json_number(json, "p90_error", errors->p90);
    knee_json_number(json, "promised_median_error", errors->promised_median);
    knee_json_close(json, '}');
}

static void json_parameters(struct knee_json *json, const struct knee_check *check)
{
    knee_json_open(json, "parameters", '[');
    for (size_t i = 0; i < check->cluster_count; i++)
        for (size_t n = 0; n < check->clusters[i].record.parameter_count; n++) {
            const struct knee_parameter *p = &check->clusters[i].record.parameters[n];
            knee_json_open_flat(json, NULL, '{');
            knee_json_string(json, "cluster", check->clusters[i].cluster.name);
            knee_json_parameter(json, p);
            knee_json_close(json, '}');
        }
    knee_json_close(json, ']');
}

static void json_transfers(struct knee_json *json, const struct knee_check *check)
{
    knee_json_open(json, "transfers", '[');
    for (size_t i = 0; i < check->transfer_count; i++) {
        const struct knee_transfer *t = &check->transfers[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "from", check->checks[t->from].log->file);
        knee_json_string(json, "to", check->checks[t->to].log->file);
        knee_json_number(json, "rows", (double)t->errors.rows);
        knee_json_number(json, "median_error", t->errors.median);
        knee_json_number(json, "p90_error", t->errors.p90);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void write_json(const struct knee_check *check, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    struct knee_text words = {.alloc = text->alloc};
    sentence(check, &words);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.fit/1");
    knee_json_words(&json, "sentence", &words);
    knee_json_open(&json, "logs", '[');
    for (size_t i = 0; i < check->count; i++)
        json_log(&json, &check->checks[i]);
    knee_json_close(&json, ']');
    json_errors(&json, "pooled", &check->left_out);
    json_errors(&json, "pooled_out_of_place", &check->out_of_place);
    json_errors(&json, "presets", &check->preset);
    json_errors(&json, "transfer", &check->transfer);
    json_transfers(&json, check);
    knee_json_number(&json, "transfers_not_tried", (double)check->transfers_left);
    json_parameters(&json, check);
    knee_json_close(&json, '}');
}

void knee_write_check(const struct knee_check *check, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(check, text);
    else if (format == KNEE_CSV)
        write_csv(check, style, text);
    else
        write_text(check, format, style, text);
}

/* SPDX-License-Identifier: MIT */
/*
 * A cluster as YAML (or JSON, schema knee.cluster/1) that reads back as the same object: levels,
 * protocols, fitted curves, and for every fitted number its interval, so that the file says where
 * it comes from.
 */
#include "base/number.h"
#include "out/json.h"
#include "out/words.h"

#include <string.h>

/* ---- YAML ---- */

static void number(struct knee_text *text, const char *lead, double value)
{
    char exact[40];
    knee_number_exact(exact, sizeof exact, value);
    knee_text_printf(text, "%s%s", lead, exact);
}

/* In quotation marks, since names may hold anything; what YAML would act on is taken out. */
static void quoted(struct knee_text *text, const char *lead, const char *value)
{
    knee_text_printf(text, "%s\"", lead);
    for (; *value; value++)
        knee_text_puts(text, *value == '"' || *value == '\\' ? "'" : (char[]){*value, '\0'});
    knee_text_puts(text, "\"");
}

static void yaml_level(const struct knee_level *level, struct knee_text *text)
{
    quoted(text, "  - link: ", level->name);
    number(text, "\n    count: ", level->count);
    knee_text_puts(text, level->count > 0 ? "" : "  # any number");
    number(text, "\n    latency: ", level->latency_s);
    knee_text_printf(text, "  # %s", knee_human(level->latency_s, KNEE_UNIT_SECONDS).s);
    number(text, "\n    bandwidth: ", level->bytes_per_s);
    knee_text_printf(text, "  # %s", knee_human(level->bytes_per_s, KNEE_UNIT_BYTES_PER_S).s);
    number(text, "\n    ports: ", level->ports);
    number(text, "\n    oversubscription: ", level->oversubscription);
    knee_text_printf(text, "\n    sharing: %s\n", level->shared ? "shared" : "striped");
}

static void yaml_protocol(const struct knee_protocol *p, enum knee_protocol_name name,
                          struct knee_text *text)
{
    knee_text_printf(text, "  - {name: %s", knee_protocol_name(name));
    number(text, ", launch: ", p->launch_s);
    number(text, ", node-hop: ", p->node_hop);
    number(text, ", net-hop: ", p->net_hop);
    number(text, ", node-share: ", p->node_share);
    number(text, ", net-share: ", p->net_share);
    number(text, ", net-more: ", p->net_more);
    knee_text_puts(text, "}\n");
}

static void yaml_list(const char *key, const double *values, size_t count, struct knee_text *text)
{
    knee_text_printf(text, "    %s: [", key);
    for (size_t i = 0; i < count; i++)
        number(text, i ? ", " : "", values[i]);
    knee_text_puts(text, "]\n");
}

static void yaml_curve(const struct knee_curve *curve, struct knee_text *text)
{
    knee_text_printf(text, "  - collective: %s\n", knee_op_name((enum knee_op)curve->op));
    number(text, "    ranks: ", curve->ranks);
    number(text, "\n    nodes: ", curve->nodes);
    quoted(text, "\n    source: ", curve->source);
    number(text, "\n    rows: ", curve->rows);
    number(text, "\n    refused: ", curve->refused);
    number(text, "\n    median-error: ", curve->median_error);
    number(text, "\n    p90-error: ", curve->p90_error);
    knee_text_puts(text, "\n");
    yaml_list("bytes", curve->bytes, curve->knots, text);
    yaml_list("time", curve->time_s, curve->knots, text);
}

static void yaml_parameter(const struct knee_parameter *p, struct knee_text *text)
{
    knee_text_printf(text, "  - {name: %s", p->name);
    number(text, ", value: ", p->value);
    number(text, ", low: ", p->low);
    number(text, ", high: ", p->high);
    knee_text_printf(text, ", unit: %s, fitted: %s}\n", knee_unit_word(p->unit),
                     p->fitted ? "true" : "false");
}

static void yaml_fitted(const struct knee_fitted *fitted, struct knee_text *text)
{
    if (fitted->parameter_count)
        knee_text_puts(text, "# What was fitted, with 90 % intervals; fitted false: the logs say "
                             "nothing about it, the preset holds.\nparameters:\n");
    for (size_t i = 0; i < fitted->parameter_count; i++)
        yaml_parameter(&fitted->parameters[i], text);
    if (fitted->curve_count)
        knee_text_puts(text, "# What each log shows; time is linear between the sizes given. "
                             "Errors are those of sizes left out.\ncurves:\n");
    for (size_t i = 0; i < fitted->curve_count; i++)
        yaml_curve(&fitted->curves[i], text);
}

static void write_yaml(const struct knee_cluster *t, struct knee_text *text)
{
    knee_text_puts(text, "# A cluster for knee. Times in seconds, rates in bytes per second and "
                         "port, one direction.\n# ");
    knee_cluster_line(t, text);
    quoted(text, "\nname: ", t->name);
    knee_text_puts(text, t->plain ? "\nplain: true  # hosts that send messages" : "");
    knee_text_printf(text, "\ngpu: %s\nlevels:\n", t->gpu);
    for (size_t l = 0; l < t->level_count; l++)
        yaml_level(&t->levels[l], text);
    number(text, "launch: ", t->launch_s);
    number(text, "\npeer: ", t->peer_s);
    number(text, "\nfloor: ", t->floor_s);
    number(text, "\nnvls-share: ", t->nvls_share);
    knee_text_printf(text, "\nsharp: %s\nprotocols:\n", t->sharp ? "true" : "false");
    for (int p = 0; p < KNEE_PROTOCOLS; p++)
        yaml_protocol(&t->protocols[p], (enum knee_protocol_name)p, text);
    if (t->fitted)
        yaml_fitted(t->fitted, text);
}

/* ---- JSON ---- */

static void json_level(struct knee_json *json, const struct knee_level *level)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "link", level->name);
    knee_json_number(json, "count", level->count);
    knee_json_number(json, "latency", level->latency_s);
    knee_json_number(json, "bandwidth", level->bytes_per_s);
    knee_json_number(json, "ports", level->ports);
    knee_json_number(json, "oversubscription", level->oversubscription);
    knee_json_string(json, "sharing", level->shared ? "shared" : "striped");
    knee_json_close(json, '}');
}

static void json_protocol(struct knee_json *json, const struct knee_protocol *p,
                          enum knee_protocol_name name)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "name", knee_protocol_name(name));
    knee_json_number(json, "launch", p->launch_s);
    knee_json_number(json, "node-hop", p->node_hop);
    knee_json_number(json, "net-hop", p->net_hop);
    knee_json_number(json, "node-share", p->node_share);
    knee_json_number(json, "net-share", p->net_share);
    knee_json_number(json, "net-more", p->net_more);
    knee_json_close(json, '}');
}

static void json_curve(struct knee_json *json, const struct knee_curve *curve)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "collective", knee_op_name((enum knee_op)curve->op));
    knee_json_number(json, "ranks", curve->ranks);
    knee_json_number(json, "nodes", curve->nodes);
    knee_json_string(json, "source", curve->source);
    knee_json_number(json, "rows", curve->rows);
    knee_json_number(json, "refused", curve->refused);
    knee_json_number(json, "median-error", curve->median_error);
    knee_json_number(json, "p90-error", curve->p90_error);
    for (int i = 0; i < 2; i++) {
        knee_json_open_flat(json, i ? "time" : "bytes", '[');
        for (size_t k = 0; k < curve->knots; k++)
            knee_json_number(json, NULL, i ? curve->time_s[k] : curve->bytes[k]);
        knee_json_close(json, ']');
    }
    knee_json_close(json, '}');
}

void knee_json_parameter(struct knee_json *json, const struct knee_parameter *p)
{
    knee_json_string(json, "name", p->name);
    knee_json_number(json, "value", p->value);
    knee_json_number(json, "low", p->low);
    knee_json_number(json, "high", p->high);
    knee_json_string(json, "unit", knee_unit_word(p->unit));
    knee_json_bool(json, "fitted", p->fitted);
}

static void write_json(const struct knee_cluster *t, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.cluster/1");
    knee_json_string(&json, "name", t->name);
    knee_json_string(&json, "gpu", t->gpu);
    knee_json_open(&json, "levels", '[');
    for (size_t l = 0; l < t->level_count; l++)
        json_level(&json, &t->levels[l]);
    knee_json_close(&json, ']');
    knee_json_number(&json, "launch", t->launch_s);
    knee_json_number(&json, "peer", t->peer_s);
    knee_json_number(&json, "floor", t->floor_s);
    knee_json_number(&json, "nvls-share", t->nvls_share);
    knee_json_bool(&json, "sharp", t->sharp);
    knee_json_bool(&json, "plain", t->plain);
    knee_json_open(&json, "protocols", '[');
    for (int p = 0; p < KNEE_PROTOCOLS; p++)
        json_protocol(&json, &t->protocols[p], (enum knee_protocol_name)p);
    knee_json_close(&json, ']');
    knee_json_open(&json, "parameters", '[');
    for (size_t i = 0; t->fitted && i < t->fitted->parameter_count; i++) {
        knee_json_open_flat(&json, NULL, '{');
        knee_json_parameter(&json, &t->fitted->parameters[i]);
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_open(&json, "curves", '[');
    for (size_t i = 0; t->fitted && i < t->fitted->curve_count; i++)
        json_curve(&json, &t->fitted->curves[i]);
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
}

void knee_write_cluster(const struct knee_cluster *cluster, enum knee_format format,
                        struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(cluster, text);
    else
        write_yaml(cluster, text);
}

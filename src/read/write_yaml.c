/* SPDX-License-Identifier: MIT */
/*
 * Files that knee writes and reads back: a cluster (levels, protocols, fitted curves, and for every
 * fitted number its interval, so that the file shows where it comes from), and the constants of a
 * profile.
 */
#include "base/keys.h"
#include "base/number.h"
#include "base/printable.h"
#include "base/text.h"
#include "knee_read.h"

#include <math.h>
#include <string.h>

/* ---- A cluster ---- */

struct human {
    char s[64];
};
static struct human human(double value, enum knee_unit unit)
{
    struct human out = {""};
    knee_number_human(out.s, sizeof out.s, value, unit);
    return out;
}

static const char *unit_word(enum knee_unit unit)
{
    return unit == KNEE_UNIT_SECONDS       ? "s"
           : unit == KNEE_UNIT_BYTES_PER_S ? "bytes/s"
           : unit == KNEE_UNIT_FRACTION    ? "share"
                                           : "factor";
}

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
    for (size_t length; *value; value += length ? length : 1) {
        length = knee_printable_length(value, strlen(value));
        if (*value == '"' || *value == '\\')
            knee_text_puts(text, "'");
        else
            knee_text_add(text, length ? value : "?", length ? length : 1);
    }
    knee_text_puts(text, "\"");
}

static void yaml_level(const struct knee_level *level, struct knee_text *text)
{
    quoted(text, "  - link: ", level->name);
    number(text, "\n    count: ", level->count);
    knee_text_puts(text, level->count > 0 ? "" : "  # any number");
    number(text, "\n    latency: ", level->latency_s);
    knee_text_printf(text, "  # %s", human(level->latency_s, KNEE_UNIT_SECONDS).s);
    number(text, "\n    bandwidth: ", level->bytes_per_s);
    knee_text_printf(text, "  # %s", human(level->bytes_per_s, KNEE_UNIT_BYTES_PER_S).s);
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
    knee_text_printf(text, ", unit: %s, fitted: %s}\n", unit_word(p->unit),
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

void knee_write_cluster(const struct knee_cluster *t, struct knee_text *text)
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

/* ---- The user's profile ---- */

void knee_write_constants(const struct knee_rates *rates, struct knee_text *text)
{
    for (size_t i = 0; i < knee_rates_keys.count; i++) {
        const struct knee_key *key = &knee_rates_keys.rows[i];
        double value = *(const double *)(const void *)((const char *)rates + key->offset);
        char number[48];
        if (isnan(value))
            continue;
        knee_number_exact(number, sizeof number, value);
        knee_text_printf(text, "%s: %s  # %s\n", key->name, number, key->help);
    }
}

void knee_write_rates(const struct knee_rates *rates, const struct knee_platform *platform,
                      struct knee_text *text)
{
    const struct knee_profile *base =
        platform->profile >= 0 ? knee_profile_at((size_t)platform->profile) : NULL;
    const struct knee_gpu *gpu =
        platform->hw.gpu >= 0 ? knee_gpu_at((size_t)platform->hw.gpu) : NULL;
    knee_text_printf(
        text,
        "# Constants fitted by knee validate --calibrate, for %s with the profile %s.\n"
        "# Use with --rates, on top of that profile.\n",
        gpu ? gpu->name : "a GPU", base ? base->name : "generic");
    knee_write_constants(rates, text);
}

/* SPDX-License-Identifier: MIT */
/* A collective over sizes as text with a plot, JSON (schema knee.collective/1), CSV or Markdown. */
#include "base/format.h"
#include "base/text.h"
#include "out/json.h"
#include "out/plot.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SECONDS(value) knee_human(value, KNEE_UNIT_SECONDS).s
#define RATE(value)    knee_human(value, KNEE_UNIT_BYTES_PER_S).s
#define SIZE(value)    knee_size(value).s

/* ---- Sentences ---- */

static bool measured(const struct knee_collective *c)
{
    for (size_t i = 0; i < c->query.size_count; i++)
        if (!isnan(c->sizes[i].measured_s))
            return true;
    return false;
}

/* Rows of one algorithm at neighbouring sizes are one stretch. */
static void say_winners(const struct knee_collective *c, struct knee_text *text)
{
    const struct knee_collective_row *first = &c->rows[c->sizes[0].winner];
    knee_text_printf(text, " Quickest: %s/%s", first->algorithm->name,
                     knee_protocol_name(first->protocol));
    for (size_t i = 0; i < c->crossover_count; i++) {
        const struct knee_crossover *x = &c->crossovers[i];
        knee_text_printf(text, ", from %s on %s/%s", knee_human(x->bytes, KNEE_UNIT_BYTES).s,
                         x->to->name, knee_protocol_name(x->to_protocol));
    }
    knee_text_puts(text, ".");
}

static void say_nccl(const struct knee_collective *c, struct knee_text *text)
{
    const struct knee_nccl_choice *last = NULL;
    for (size_t i = 0; i < c->query.size_count; i++) {
        const struct knee_nccl_choice *now = &c->sizes[i].nccl;
        if (!now->algorithm)
            return;
        if (last && strcmp(last->algorithm, now->algorithm) == 0 &&
            strcmp(last->protocol, now->protocol) == 0)
            continue;
        if (last)
            knee_text_printf(text, ", from %s on %s/%s", SIZE(c->sizes[i].bytes), now->algorithm,
                             now->protocol);
        else
            knee_text_printf(text, " NCCL picks %s/%s", now->algorithm, now->protocol);
        last = now;
    }
    if (last)
        knee_text_puts(text, ".");
}

static void say_measured(const struct knee_collective *c, struct knee_text *text)
{
    size_t known = 0;
    for (size_t i = 0; i < c->query.size_count; i++)
        known += isnan(c->sizes[i].measured_s) ? 0 : 1;
    if (c->slow_count == 0) {
        knee_text_printf(text, " Measured: none of %zu sizes is slower than it should be.", known);
        return;
    }
    knee_text_printf(text, " Measured: %zu of %zu sizes are slower than %s they should be",
                     c->slow_count, known, c->curve ? "1.25 times what" : "1.5 times what");
    for (size_t i = 0; i < c->finding_count; i++) {
        const struct knee_finding *f = &c->findings[i];
        knee_text_printf(text, "%s %s from %s to %s (%.1f times: %s; %s)", i ? ";" : ":", f->name,
                         SIZE(f->from_bytes), SIZE(f->to_bytes), f->slowdown, f->evidence, f->cure);
    }
    if (c->finding_count == 0)
        knee_text_puts(text, "; the log does not show why (NCCL_DEBUG=INFO with "
                             "NCCL_DEBUG_SUBSYS=INIT,NET,TUNING would)");
    knee_text_puts(text, ".");
}

static void sentence(const struct knee_collective *c, struct knee_text *text)
{
    const struct knee_layout *s = &c->layout;
    knee_text_printf(text, "%s over %.0f ranks (", knee_op_name(c->query.op), s->ranks);
    if (s->levels > 1)
        knee_text_printf(text, "%.0f nodes of %.3g", s->units[1], s->ranks / s->units[1]);
    else
        knee_text_puts(text, "one node");
    knee_text_printf(text, ") on %s approaches %s of bus bandwidth and has half of it at %s.",
                     c->cluster.name, RATE(c->peak_bytes_per_s),
                     knee_human(c->half_bandwidth_bytes, KNEE_UNIT_BYTES).s);
    say_winners(c, text);
    say_nccl(c, text);
    if (measured(c))
        say_measured(c, text);
}

/* ---- Table ---- */

static const struct knee_collective_row *row_of(const struct knee_collective *c,
                                                const struct knee_collective_size *size,
                                                const struct knee_algorithm *algorithm)
{
    for (size_t i = size->first; i < size->last; i++)
        if (c->rows[i].algorithm == algorithm)
            return &c->rows[i];
    return NULL;
}

/* Algorithms that have a row, in the order of the first size. */
static size_t find_columns(const struct knee_collective *c, const struct knee_algorithm **columns)
{
    size_t count = 0;
    for (size_t i = 0; i < c->sizes[0].last; i++)
        if (count < KNEE_COLUMNS_MAX - 8)
            columns[count++] = c->rows[i].algorithm;
    return count;
}

static void text_row(const struct knee_collective *c, size_t index,
                     const struct knee_algorithm *const *columns, size_t count,
                     struct knee_table *table)
{
    const struct knee_collective_size *size = &c->sizes[index];
    const struct knee_collective_row *winner = &c->rows[size->winner];
    knee_table_cell(table, "%s", SIZE(size->bytes));
    for (size_t i = 0; i < count; i++) {
        const struct knee_collective_row *row = row_of(c, size, columns[i]);
        knee_table_cell(table, "%s%s", row ? SECONDS(row->time_s) : "-",
                        row == winner ? " <" : "  ");
    }
    knee_table_cell(table, "%s", knee_protocol_name(winner->protocol));
    knee_table_number(table, winner->algbw_bytes_per_s, KNEE_UNIT_BYTES_PER_S);
    knee_table_number(table, winner->busbw_bytes_per_s, KNEE_UNIT_BYTES_PER_S);
    knee_table_cell(table, "%s", size->latency_bound ? "latency" : "bandwidth");
    if (size->nccl.algorithm)
        knee_table_cell(table, "%s/%s", size->nccl.algorithm, size->nccl.protocol);
    else
        knee_table_cell(table, "-");
    knee_table_number(table, size->expected_s, KNEE_UNIT_SECONDS);
}

static void times_table(const struct knee_collective *c, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    static const char *const after[] = {"protocol", "algbw",      "busbw",
                                        "bound by", "NCCL picks", "expected"};
    const struct knee_algorithm *columns[KNEE_COLUMNS_MAX];
    size_t count = find_columns(c, columns);
    struct knee_table table;
    char align[KNEE_COLUMNS_MAX + 1] = "r";
    for (size_t i = 0; i < count; i++)
        align[1 + i] = 'r';
    memcpy(align + 1 + count, "lrrllr", 7);
    knee_table_init(&table, align, text->alloc);
    knee_table_cell(&table, "bytes");
    for (size_t i = 0; i < count; i++)
        knee_table_cell(&table, "%s  ", columns[i]->name);
    KNEE_HEADS(&table, after);
    for (size_t i = 0; i < c->query.size_count; i++)
        text_row(c, i, columns, count, &table);
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void measured_table(const struct knee_collective *c, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text)
{
    struct knee_table table;
    knee_table_init(&table, "rrrrll", text->alloc);
    for (size_t i = 0; i < 6; i++)
        knee_table_cell(&table, "%s",
                        (const char *const[]){"bytes", "measured", "expected", "times", "",
                                              "likely reason"}[i]);
    for (size_t i = 0; i < c->query.size_count; i++) {
        const struct knee_collective_size *size = &c->sizes[i];
        if (isnan(size->measured_s))
            continue;
        knee_table_cell(&table, "%s", SIZE(size->bytes));
        knee_table_number(&table, size->measured_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, size->expected_s, KNEE_UNIT_SECONDS);
        knee_table_cell(&table, "%.2f", size->slowdown);
        knee_table_cell(&table, "%s", size->slow ? "slow" : "");
        knee_table_cell(&table, "%s",
                        size->finding == SIZE_MAX ? "" : c->findings[size->finding].name);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void label_size(double bytes, char *out, size_t size)
{
    knee_format(out, size, "%s", SIZE(bytes));
}

static void plot_bandwidth(const struct knee_collective *c, const struct knee_style *style,
                           struct knee_text *text)
{
    char title[320], mark[320]; /* room for any knee_human() */
    size_t count = c->query.size_count;
    double *x = knee_resize(text->alloc, NULL, (2 * count + 1) * sizeof *x);
    if (!x) {
        text->failed = true;
        return;
    }
    double *y = x + count;
    for (size_t i = 0; i < count; i++) {
        x[i] = c->sizes[i].bytes;
        y[i] = c->rows[c->sizes[i].winner].busbw_bytes_per_s / c->peak_bytes_per_s;
    }
    knee_format(title, sizeof title, "bus bandwidth, 100 %% = %s", RATE(c->peak_bytes_per_s));
    knee_format(mark, sizeof mark, "half at %s",
                knee_human(c->half_bandwidth_bytes, KNEE_UNIT_BYTES).s);
    struct knee_plot plot = {.x = x,
                             .y = y,
                             .count = count,
                             .y_max = 1,
                             .level = 0.5,
                             .mark = c->half_bandwidth_bytes,
                             .title = title,
                             .level_name = "half",
                             .mark_name = mark,
                             .x_name = "bytes",
                             .x_label = label_size};
    knee_plot_write(&plot, style, text);
    knee_resize(text->alloc, x, 0);
}

static void write_text(const struct knee_collective *c, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc};
    sentence(c, &words);
    knee_say(&words, format, style, text);
    knee_text_puts(text, "\n");
    times_table(c, format, style, text);
    if (measured(c)) {
        knee_text_puts(text, "\n");
        measured_table(c, format, style, text);
    }
    if (style->brief || format == KNEE_MARKDOWN)
        return;
    knee_text_puts(text, "\n");
    plot_bandwidth(c, style, text);
    knee_text_puts(text, "\n  ");
    knee_cluster_line(&c->cluster, text);
    if (c->curve)
        knee_text_puts(text, "\n  expected: from the curve that was fitted to this collective and "
                             "rank count\n");
    else
        knee_text_printf(text,
                         "\n  expected: the quickest %s, by the cost model (docs/collectives.md)\n",
                         c->cluster.plain ? "algorithm" : "of NCCL's own algorithms");
}

/* ---- CSV and JSON ---- */

static void nccl_word(const struct knee_nccl_choice *choice, char *out, size_t size)
{
    out[0] = '\0';
    if (choice->algorithm)
        knee_format(out, size, "%s/%s", choice->algorithm, choice->protocol);
}

static void write_csv(const struct knee_collective *c, const struct knee_style *style,
                      struct knee_text *text)
{
    static const char *const headers[] = {"bytes",     "algorithm",         "protocol",
                                          "time_s",    "algbw_bytes_per_s", "busbw_bytes_per_s",
                                          "winner",    "nccl_choice",       "expected_s",
                                          "measured_s"};
    struct knee_table table;
    knee_table_init(&table, "rllrrrllrr", text->alloc);
    KNEE_HEADS(&table, headers);
    for (size_t i = 0, at = 0; i < c->row_count; i++) {
        at += i == c->sizes[at].last;
        const struct knee_collective_row *row = &c->rows[i];
        const struct knee_collective_size *size = &c->sizes[at];
        char nccl[48];
        nccl_word(&size->nccl, nccl, sizeof nccl);
        knee_table_exact(&table, row->bytes);
        knee_table_cell(&table, "%s", row->algorithm->name);
        knee_table_cell(&table, "%s", knee_protocol_name(row->protocol));
        knee_table_exact(&table, row->time_s);
        knee_table_exact(&table, row->algbw_bytes_per_s);
        knee_table_exact(&table, row->busbw_bytes_per_s);
        knee_table_cell(&table, "%s", row->winner ? "true" : "false");
        knee_table_cell(&table, "%s", nccl);
        knee_table_exact(&table, size->expected_s);
        knee_table_exact(&table, size->measured_s);
    }
    knee_table_write(&table, KNEE_CSV, style, text);
    knee_table_release(&table);
}

static void json_row(struct knee_json *json, const struct knee_collective_size *size,
                     const struct knee_collective_row *row)
{
    char nccl[48];
    nccl_word(&size->nccl, nccl, sizeof nccl);
    knee_json_open_flat(json, NULL, '{');
    knee_json_number(json, "bytes", row->bytes);
    knee_json_string(json, "algorithm", row->algorithm->name);
    knee_json_string(json, "protocol", knee_protocol_name(row->protocol));
    knee_json_number(json, "time_s", row->time_s);
    knee_json_number(json, "algbw_bytes_per_s", row->algbw_bytes_per_s);
    knee_json_number(json, "busbw_bytes_per_s", row->busbw_bytes_per_s);
    knee_json_bool(json, "winner", row->winner);
    knee_json_string(json, "nccl_choice", nccl[0] ? nccl : NULL);
    knee_json_close(json, '}');
}

static void json_size(struct knee_json *json, const struct knee_collective *c,
                      const struct knee_collective_size *size)
{
    const struct knee_collective_row *winner = &c->rows[size->winner];
    char nccl[48];
    nccl_word(&size->nccl, nccl, sizeof nccl);
    knee_json_open_flat(json, NULL, '{');
    knee_json_number(json, "bytes", size->bytes);
    knee_json_string(json, "winner", winner->algorithm->name);
    knee_json_string(json, "protocol", knee_protocol_name(winner->protocol));
    knee_json_string(json, "bound_by", size->latency_bound ? "latency" : "bandwidth");
    knee_json_number(json, "latency_share", size->latency_share);
    knee_json_number(json, "expected_s", size->expected_s);
    knee_json_string(json, "nccl_choice", nccl[0] ? nccl : NULL);
    knee_json_number(json, "nccl_estimate_s", size->nccl.time_s);
    knee_json_number(json, "measured_s", size->measured_s);
    knee_json_number(json, "slowdown", size->slowdown);
    knee_json_string(json, "reason",
                     size->finding == SIZE_MAX ? NULL : c->findings[size->finding].name);
    knee_json_close(json, '}');
}

static void json_lists(struct knee_json *json, const struct knee_collective *c)
{
    knee_json_open(json, "rows", '[');
    for (size_t i = 0; i < c->query.size_count; i++)
        for (size_t row = c->sizes[i].first; row < c->sizes[i].last; row++)
            json_row(json, &c->sizes[i], &c->rows[row]);
    knee_json_close(json, ']');
    knee_json_open(json, "sizes", '[');
    for (size_t i = 0; i < c->query.size_count; i++)
        json_size(json, c, &c->sizes[i]);
    knee_json_close(json, ']');
    knee_json_open(json, "crossovers", '[');
    for (size_t i = 0; i < c->crossover_count; i++) {
        const struct knee_crossover *x = &c->crossovers[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_number(json, "bytes", x->bytes);
        knee_json_string(json, "from", x->from->name);
        knee_json_string(json, "from_protocol", knee_protocol_name(x->from_protocol));
        knee_json_string(json, "to", x->to->name);
        knee_json_string(json, "to_protocol", knee_protocol_name(x->to_protocol));
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
    knee_json_open(json, "findings", '[');
    for (size_t i = 0; i < c->finding_count; i++) {
        const struct knee_finding *f = &c->findings[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "reason", f->name);
        knee_json_string(json, "evidence", f->evidence);
        knee_json_string(json, "cure", f->cure);
        knee_json_number(json, "from_bytes", f->from_bytes);
        knee_json_number(json, "to_bytes", f->to_bytes);
        knee_json_number(json, "slowdown", f->slowdown);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void write_json(const struct knee_collective *c, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    struct knee_text words = {.alloc = text->alloc};
    sentence(c, &words);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.collective/1");
    knee_json_words(&json, "sentence", &words);
    knee_json_string(&json, "collective", knee_op_name(c->query.op));
    knee_json_number(&json, "ranks", c->layout.ranks);
    knee_json_number(&json, "nodes", c->layout.units[1]);
    knee_json_string(&json, "cluster", c->cluster.name);
    knee_json_number(&json, "peak_busbw_bytes_per_s", c->peak_bytes_per_s);
    knee_json_number(&json, "half_bandwidth_bytes", c->half_bandwidth_bytes);
    knee_json_bool(&json, "expected_from_curve", c->curve);
    json_lists(&json, c);
    knee_json_close(&json, '}');
}

void knee_write_collective(const struct knee_collective *collective, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(collective, text);
    else if (format == KNEE_CSV)
        write_csv(collective, style, text);
    else
        write_text(collective, format, style, text);
}

/* SPDX-License-Identifier: MIT */
/* A prediction as text, JSON (schema knee.predict/1), CSV or Markdown. */
#include "out/show_prediction.h"

#include "base/format.h"
#include "out/inputs.h"
#include "out/plain_words.h"
#include "out/plot.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <stdint.h>

/* ---- The rows, once for all formats ---- */

struct column {
    const char *key;    /* JSON and CSV */
    const char *header; /* text and Markdown; NULL: not shown there */
    enum { WHOLE, SHORT, TIME, PERCENT, MONEY, PLAIN } look;
    double (*of)(const struct knee_row *);
};

#define FIELD(name, expression)                                                                    \
    static double name(const struct knee_row *row)                                                 \
    {                                                                                              \
        return row->expression;                                                                    \
    }
FIELD(workers, workers)
FIELD(local_batch, local_batch)
FIELD(global_batch, global_batch)
FIELD(compute_s, step.label_s[KNEE_COMPUTE])
FIELD(comm_s, step.comm_s)
FIELD(load_s, load_s)
FIELD(transfer_s, step.label_s[KNEE_TRANSFER])
FIELD(wait_s, step.label_s[KNEE_WAIT])
FIELD(starved_s, step.label_s[KNEE_STARVED])
FIELD(exposed_load_s, exposed_load_s)
FIELD(step_s, step.wall_s)
FIELD(throughput, throughput_per_s)
FIELD(speedup, speedup)
FIELD(efficiency, efficiency)
FIELD(ratio, ratio)
FIELD(gamma_of, gamma)
FIELD(low_s, step_sure.low)
FIELD(high_s, step_sure.high)
FIELD(low_efficiency, efficiency_sure.low)
FIELD(high_efficiency, efficiency_sure.high)
FIELD(low_ratio, ratio_sure.low)
FIELD(high_ratio, ratio_sure.high)
FIELD(cost, cost)
FIELD(stall_cost, stall_cost)
FIELD(joules, joules)
FIELD(stall_joules, stall_joules)
FIELD(steps_to_quality, steps_to_quality)
FIELD(time_to_quality, time_to_quality_s)

static double exposed_comm_s(const struct knee_row *row)
{
    return knee_step_exposed_s(&row->step);
}

static double compute_efficiency(const struct knee_row *row)
{
    return knee_step_efficiency(&row->step);
}

static const struct column columns[] = {
    {"workers", "K", WHOLE, workers},
    {"local_batch", "batch/K", SHORT, local_batch},
    {"global_batch", NULL, PLAIN, global_batch},
    {"compute_s", "compute", TIME, compute_s},
    {"comm_s", "comm", TIME, comm_s},
    {"load_s", "load", TIME, load_s},
    {"exposed_comm_s", "exposed", TIME, exposed_comm_s},
    {"exposed_load_s", NULL, TIME, exposed_load_s},
    {"transfer_s", NULL, TIME, transfer_s},
    {"wait_s", "wait", TIME, wait_s},
    {"starved_s", NULL, TIME, starved_s},
    {"step_s", "step", TIME, step_s},
    {"throughput_per_s", "examples/s", SHORT, throughput},
    {"speedup", "speedup", SHORT, speedup},
    {"efficiency", "E(K)", PERCENT, efficiency},
    {"compute_efficiency", NULL, PERCENT, compute_efficiency},
    {"ratio", "R", SHORT, ratio},
    {"gamma", "gamma", SHORT, gamma_of},
    {"cost", "$/step", MONEY, cost},
    {"stall_cost", NULL, MONEY, stall_cost},
    {"joules", NULL, PLAIN, joules},
    {"stall_joules", NULL, PLAIN, stall_joules},
    {"steps_to_quality", NULL, PLAIN, steps_to_quality},
    {"time_to_quality_s", NULL, PLAIN, time_to_quality},
    {"low_s", NULL, TIME, low_s},
    {"high_s", NULL, TIME, high_s},
    {"low_efficiency", NULL, PERCENT, low_efficiency},
    {"high_efficiency", NULL, PERCENT, high_efficiency},
    {"low_ratio", NULL, SHORT, low_ratio},
    {"high_ratio", NULL, SHORT, high_ratio},
};
#define COLUMNS (sizeof columns / sizeof *columns)

/* A column of nothing but zeros, or of values that are not known, is left out of the text. */
static bool worth_showing(const struct knee_prediction *p, const struct column *column)
{
    if (!column->header)
        return false;
    for (size_t i = 0; i < p->row_count; i++) {
        double value = column->of(&p->rows[i]);
        if (!isnan(value) && value != 0)
            return true;
    }
    return column->of == ratio || column->of == gamma_of || column->of == exposed_comm_s;
}

/* One unit for all times, so that they compare at a glance. */
struct time_unit {
    double factor;
    const char *name;
};

static struct time_unit time_unit(const struct knee_prediction *p)
{
    double longest = 0;
    for (size_t i = 0; i < p->row_count; i++)
        longest = fmax(longest, p->rows[i].step.wall_s);
    if (longest >= 100)
        return (struct time_unit){1, "s"};
    return longest >= 0.01 ? (struct time_unit){1e3, "ms"} : (struct time_unit){1e6, "us"};
}

static void text_cell(struct knee_table *table, const struct column *column, double value,
                      double time_factor)
{
    switch (column->look) {
    case WHOLE: knee_table_cell(table, "%.0f", value); break;
    case TIME: knee_table_cell(table, "%.2f", value * time_factor); break;
    case PERCENT: knee_table_cell(table, "%.1f %%", 100 * value); break;
    case MONEY: knee_table_cell(table, "%.3g", value); break;
    default:
        if (value == rint(value) && fabs(value) < 1e7)
            knee_table_cell(table, "%.0f", value);
        else
            knee_table_cell(table, "%s", knee_short(value).s);
    }
}

/* A step and an E(K) with how sure they are, the others bare. */
static void row_cell(struct knee_table *table, const struct column *column,
                     const struct knee_row *row, double factor)
{
    struct knee_sure step = row->step_sure;
    if (column->of == step_s && step.low < step.high)
        knee_table_cell(table, "%.2f (%.2f to %.2f)", row->step.wall_s * factor, step.low * factor,
                        step.high * factor);
    else if (column->of == efficiency)
        knee_table_cell(table, "%s",
                        knee_surely(row->efficiency, row->efficiency_sure, KNEE_UNIT_FRACTION).s);
    else
        text_cell(table, column, column->of(row), factor);
}

static void rows_table(const struct knee_prediction *p, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    const struct column *shown[COLUMNS];
    char align[COLUMNS + 2] = "";
    size_t count = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        if (worth_showing(p, &columns[i])) {
            align[count] = 'r';
            shown[count++] = &columns[i];
        }
    align[count] = 'l';
    struct time_unit unit = time_unit(p);
    struct knee_table table;
    knee_table_init(&table, align, text->alloc);
    for (size_t i = 0; i < count; i++)
        knee_table_cell(&table, shown[i]->look == TIME ? "%s %s" : "%s", shown[i]->header,
                        unit.name);
    knee_table_cell(&table, "binds");
    for (size_t r = 0; r < p->row_count; r++) {
        for (size_t i = 0; i < count; i++)
            row_cell(&table, shown[i], &p->rows[r], unit.factor);
        knee_table_cell(&table, "%s%s", knee_binding_name(p->rows[r].binding),
                        p->rows[r].workers == p->at.workers && p->row_count > 1 ? "  <" : "");
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void levers_table(const struct knee_prediction *p, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    static const char *const headers[] = {
        "lever", "change", "gain",   "to quality",   "R",
        "E(K)",  "step",   "knee K", "cost of work", "what it risks"};
    bool quality = !isnan(p->at.time_to_quality_s);
    struct knee_table table;
    knee_table_init(&table, quality ? "llrrrrrrrl" : "llrrrrrrl", text->alloc);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (i != 3 || quality)
            knee_table_cell(&table, "%s", headers[i]);
    for (size_t i = 0; i < p->lever_count; i++) {
        const struct knee_lever *lever = &p->levers[i];
        knee_table_cell(&table, "%s%s", lever->name, i == p->verdict.lever ? " <" : "");
        knee_table_cell(&table, "%s", lever->change);
        knee_table_cell(&table, "%s", knee_signed_percent(lever->gain).s);
        if (quality)
            knee_table_cell(&table, "%s", knee_signed_percent(lever->quality_gain).s);
        knee_table_cell(&table, "%s", knee_short(lever->row.ratio).s);
        knee_table_cell(&table, "%s", knee_percent(lever->row.efficiency).s);
        knee_table_number(&table, lever->row.step.wall_s, KNEE_UNIT_SECONDS);
        if (isnan(lever->knee_workers))
            knee_table_cell(&table, "none");
        else
            knee_table_cell(&table, "%.0f", lever->knee_workers);
        knee_table_cell(&table, "%s", knee_signed_percent(lever->cost_ratio - 1).s);
        knee_table_cell(&table, "%s", lever->risk);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

/* ---- Text ---- */

static void heading(struct knee_text *text, const struct knee_style *style, const char *words)
{
    knee_text_printf(text, style->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", words);
}

static void plot_efficiency(const struct knee_prediction *p, const struct knee_style *style,
                            struct knee_text *text)
{
    char mark[64], level[48];
    double *xy = knee_resize(text->alloc, NULL, 2 * p->row_count * sizeof *xy);
    if (!xy) {
        text->failed = true;
        return;
    }
    for (size_t i = 0; i < p->row_count; i++) {
        xy[i] = p->rows[i].workers;
        xy[p->row_count + i] = p->rows[i].efficiency;
    }
    knee_format(mark, sizeof mark, "knee at %.0f", p->knee.tolerance_workers);
    knee_format(level, sizeof level, "tolerance %.0f %%", 100 * p->job.tolerance);
    struct knee_plot plot = {
        .x = xy,
        .y = xy + p->row_count,
        .count = p->row_count,
        .y_max = 1,
        .level = p->job.tolerance,
        .mark = p->knee.tolerance_workers,
        .title = "E(K)",
        .level_name = level,
        .mark_name = mark,
        .x_name = "workers K",
    };
    if (p->row_count > 1)
        knee_text_puts(text, "\n");
    knee_plot_write(&plot, style, text);
    knee_resize(text->alloc, xy, 0);
}

static void put_count(struct knee_text *text, const char *name, double value, const char *none)
{
    if (isnan(value))
        knee_text_printf(text, "  %-46s %s\n", name, none);
    else
        knee_text_printf(text, "  %-46s %.6g\n", name, value);
}

static void knee_text_block(const struct knee_prediction *p, const struct knee_style *style,
                            struct knee_text *text)
{
    char name[64];
    heading(text, style, "Knee");
    put_count(text, "communication = compute (gamma = 1) at K", p->knee.gamma_one_workers, "never");
    put_count(text, "exposed communication = compute (R = 1) at K", p->knee.ratio_one_workers,
              "never");
    knee_format(name, sizeof name, "last K with E(K) >= %.0f %%", 100 * p->job.tolerance);
    put_count(text, name, p->knee.tolerance_workers, "E(K) never falls below it");
    if (knee_knee_word(&p->knee).s[0])
        knee_text_printf(text, "  %-46s%s\n", "  the same of E(K)'s low and high end",
                         knee_knee_word(&p->knee).s);
    put_count(text, "K of the highest throughput", p->knee.peak_throughput_workers, "still rising");
}

static void walls_block(const struct knee_prediction *p, const struct knee_style *style,
                        struct knee_text *text)
{
    const struct knee_walls *walls = &p->walls;
    if (isnan(p->job.critical_batch))
        return;
    heading(text, style, "Walls");
    put_count(text, "systems wall: last K with E(K) in tolerance", walls->systems_workers, "none");
    put_count(text, "statistical wall: critical batch reached at K", walls->statistical_workers,
              "never: the global batch stays below it");
    knee_text_printf(text, "  %-46s %s\n", "first of the two", knee_wall_name(walls->first));
    if (!isnan(p->at.global_batch))
        knee_text_printf(text, "  %-46s %s more than the fewest\n", "examples needed at this batch",
                         knee_percent(walls->examples_ratio - 1).s);
    if (isnan(p->job.min_steps))
        return;
    knee_text_printf(text, "  %-46s %s steps, %s\n", "time to quality",
                     knee_human(p->at.steps_to_quality, KNEE_UNIT_COUNT).s,
                     knee_human(p->at.time_to_quality_s, KNEE_UNIT_SECONDS).s);
    put_count(text, "K of the shortest time to quality", walls->quality_workers, "still falling");
}

static void cost_row(struct knee_table *table, const char *name, double all, double stall,
                     double joules, double stall_joules)
{
    if (isnan(all) && isnan(joules))
        return;
    knee_table_cell(table, "%s", name);
    knee_table_number(table, all, KNEE_UNIT_DOLLARS);
    knee_table_number(table, stall, KNEE_UNIT_DOLLARS);
    knee_table_number(table, joules, KNEE_UNIT_JOULES);
    knee_table_number(table, stall_joules, KNEE_UNIT_JOULES);
}

static void cost_block(const struct knee_prediction *p, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    static const char *const headers[] = {"cost", "in all", "stalled", "energy", "stalled"};
    const struct knee_cost *c = &p->cost;
    if (isnan(c->step) && isnan(c->joules_step))
        return;
    struct knee_table table;
    knee_table_init(&table, "lrrrr", text->alloc);
    for (size_t i = 0; i < 5; i++)
        knee_table_cell(&table, "%s", headers[i]);
    cost_row(&table, "step", c->step, c->stall_step, c->joules_step, c->stall_joules_step);
    cost_row(&table, "day", c->day, c->stall_day, c->joules_day, c->stall_joules_day);
    cost_row(&table, "run", c->run, c->stall_run, c->joules_run, c->stall_joules_run);
    knee_text_puts(text, "\n");
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void verdict_block(const struct knee_prediction *p, const struct knee_solution *solution,
                          const struct knee_style *style, struct knee_text *text)
{
    struct knee_text sentence = {.alloc = text->alloc};
    if (solution) {
        knee_solution_sentence(solution, &sentence);
        knee_text_puts(&sentence, " ");
    } else {
        struct knee_plain plain = knee_plain_empty(text->alloc);
        knee_prediction_plain(p, &plain);
        knee_say_plain(&plain, KNEE_TEXT, style, text);
    }
    knee_prediction_sentence(p, &sentence);
    knee_say(&sentence, KNEE_TEXT, style, text);
}

static void notes_block(const struct knee_prediction *p, const struct knee_style *style,
                        struct knee_text *text)
{
    if (p->note_count)
        knee_text_puts(text, "\n");
    for (size_t i = 0; i < p->note_count; i++) {
        struct knee_text sentence = {.alloc = text->alloc};
        knee_text_puts(&sentence, "note: ");
        knee_note_sentence(&p->notes[i], &sentence);
        if (!sentence.failed)
            knee_wrap(sentence.data, knee_columns(KNEE_TEXT, style), "  ", text);
        text->failed = text->failed || sentence.failed;
        knee_text_release(&sentence);
    }
}

static void write_text(const struct knee_prediction *p, const struct knee_solution *solution,
                       const struct knee_style *style, struct knee_text *text)
{
    char title[96];
    verdict_block(p, solution, style, text);
    knee_text_puts(text, "\n");
    rows_table(p, KNEE_TEXT, style, text);
    if (style->brief)
        return;
    plot_efficiency(p, style, text);
    knee_text_block(p, style, text);
    knee_format(title, sizeof title, "Levers at %.0f worker%s", p->at.workers,
                p->at.workers == 1 ? "" : "s");
    heading(text, style, title);
    levers_table(p, KNEE_TEXT, style, text);
    walls_block(p, style, text);
    cost_block(p, KNEE_TEXT, style, text);
    knee_text_puts(text, "\n");
    knee_inputs_write(&knee_job_keys, &p->job, KNEE_TEXT, style, text);
    notes_block(p, style, text);
}

static void write_markdown(const struct knee_prediction *p, const struct knee_solution *solution,
                           const struct knee_style *style, struct knee_text *text)
{
    verdict_block(p, solution, &(struct knee_style){.width = 1 << 20}, text);
    knee_text_puts(text, "\n");
    rows_table(p, KNEE_MARKDOWN, style, text);
    knee_text_puts(text, "\n");
    levers_table(p, KNEE_MARKDOWN, style, text);
    cost_block(p, KNEE_MARKDOWN, style, text);
    knee_text_puts(text, "\n");
    knee_inputs_write(&knee_job_keys, &p->job, KNEE_MARKDOWN, style, text);
}

static void write_csv(const struct knee_prediction *p, const struct knee_style *style,
                      struct knee_text *text)
{
    struct knee_table table;
    char align[COLUMNS + 2];
    for (size_t i = 0; i <= COLUMNS; i++)
        align[i] = 'r';
    align[COLUMNS + 1] = '\0';
    knee_table_init(&table, align, text->alloc);
    for (size_t i = 0; i < COLUMNS; i++)
        knee_table_cell(&table, "%s", columns[i].key);
    knee_table_cell(&table, "bottleneck");
    for (size_t r = 0; r < p->row_count; r++) {
        for (size_t i = 0; i < COLUMNS; i++)
            knee_table_exact(&table, columns[i].of(&p->rows[r]));
        knee_table_cell(&table, "%s", knee_binding_name(p->rows[r].binding));
    }
    knee_table_write(&table, KNEE_CSV, style, text);
    knee_table_release(&table);
}

/* ---- JSON ---- */

void knee_row_json(struct knee_json *json, const char *key, const struct knee_row *row)
{
    knee_json_open_flat(json, key, '{');
    for (size_t i = 0; i < COLUMNS; i++)
        knee_json_number(json, columns[i].key, columns[i].of(row));
    knee_json_string(json, "bottleneck", knee_binding_name(row->binding));
    knee_json_close(json, '}');
}

static void json_levers(struct knee_json *json, const struct knee_prediction *p)
{
    knee_json_open(json, "levers", '[');
    for (size_t i = 0; i < p->lever_count; i++) {
        const struct knee_lever *lever = &p->levers[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "name", lever->name);
        knee_json_string(json, "change", lever->change);
        knee_json_number(json, "ratio", lever->row.ratio);
        knee_json_number(json, "efficiency", lever->row.efficiency);
        knee_json_number(json, "step_s", lever->row.step.wall_s);
        knee_json_number(json, "workers", lever->row.workers);
        knee_json_number(json, "gain", lever->gain);
        knee_json_number(json, "quality_gain", lever->quality_gain);
        knee_json_number(json, "knee_workers", lever->knee_workers);
        knee_json_number(json, "cost_ratio", lever->cost_ratio);
        knee_json_number(json, "saved_per_day", lever->saved_per_day);
        knee_json_string(json, "risk", lever->risk);
        knee_json_bool(json, "changes_training", lever->training);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_verdict(struct knee_json *json, const struct knee_prediction *p)
{
    const struct knee_verdict *verdict = &p->verdict;
    struct knee_text sentence = {.alloc = json->text->alloc};
    struct knee_plain plain = knee_plain_empty(json->text->alloc);
    knee_prediction_sentence(p, &sentence);
    knee_json_open(json, "verdict", '{');
    knee_json_words(json, "sentence", &sentence);
    knee_prediction_plain(p, &plain);
    knee_json_plain(json, &plain);
    knee_json_number(json, "workers", p->at.workers);
    knee_json_string(json, "suspect", knee_suspect_name(verdict->suspect));
    knee_json_number(json, "suspect_share", verdict->suspect_share);
    knee_json_string(json, "wall", knee_wall_name(verdict->wall));
    knee_json_string(json, "regime", verdict->regime->name);
    knee_json_string(json, "rule", verdict->regime->rule);
    knee_json_string(json, "lever",
                     verdict->lever == SIZE_MAX ? NULL : p->levers[verdict->lever].name);
    knee_json_close(json, '}');
}

static void json_cost(struct knee_json *json, const struct knee_cost *cost)
{
    knee_json_open(json, "cost", '{');
    knee_json_number(json, "step", cost->step);
    knee_json_number(json, "day", cost->day);
    knee_json_number(json, "run", cost->run);
    knee_json_number(json, "stall_step", cost->stall_step);
    knee_json_number(json, "stall_day", cost->stall_day);
    knee_json_number(json, "stall_run", cost->stall_run);
    knee_json_number(json, "joules_step", cost->joules_step);
    knee_json_number(json, "joules_day", cost->joules_day);
    knee_json_number(json, "joules_run", cost->joules_run);
    knee_json_number(json, "stall_joules_step", cost->stall_joules_step);
    knee_json_number(json, "stall_joules_day", cost->stall_joules_day);
    knee_json_number(json, "stall_joules_run", cost->stall_joules_run);
    knee_json_number(json, "run_steps", cost->run_steps);
    knee_json_close(json, '}');
}

static void json_knee(struct knee_json *json, const struct knee_prediction *p)
{
    knee_json_open(json, "knee", '{');
    knee_json_number(json, "gamma_one_workers", p->knee.gamma_one_workers);
    knee_json_number(json, "ratio_one_workers", p->knee.ratio_one_workers);
    knee_json_number(json, "tolerance", p->job.tolerance);
    knee_json_sure(json, "tolerance_workers", p->knee.tolerance_workers, p->knee.sure);
    knee_json_number(json, "peak_throughput_workers", p->knee.peak_throughput_workers);
    knee_json_number(json, "limit_workers", p->knee.limit_workers);
    knee_json_close(json, '}');
    knee_json_open(json, "memory", '{');
    knee_json_number(json, "needed_bytes", p->memory.needed_bytes);
    knee_json_number(json, "capacity_bytes", p->memory.capacity_bytes);
    knee_json_bool(json, "fits_unsharded", p->memory.fits);
    knee_json_number(json, "zero1_workers", p->memory.zero1_workers);
    knee_json_number(json, "zero3_workers", p->memory.zero3_workers);
    knee_json_close(json, '}');
    knee_json_open(json, "walls", '{');
    knee_json_number(json, "systems_workers", p->walls.systems_workers);
    knee_json_number(json, "statistical_workers", p->walls.statistical_workers);
    knee_json_number(json, "quality_workers", p->walls.quality_workers);
    knee_json_number(json, "examples_ratio", p->walls.examples_ratio);
    knee_json_string(json, "first", knee_wall_name(p->walls.first));
    knee_json_close(json, '}');
}

static void json_solution(struct knee_json *json, const struct knee_solution *solution)
{
    struct knee_text sentence = {.alloc = json->text->alloc};
    knee_solution_sentence(solution, &sentence);
    knee_json_open(json, "solve", '{');
    knee_json_string(json, "variable", solution->variable);
    knee_json_string(json, "target", solution->target);
    knee_json_number(json, "wanted", solution->wanted);
    knee_json_number(json, "workers", solution->workers);
    knee_json_number(json, "value", solution->value);
    knee_json_string(json, "bound", solution->at_most ? "at_most" : "at_least");
    knee_json_bool(json, "any", solution->any);
    knee_json_bool(json, "reached", solution->any || !isnan(solution->value));
    knee_json_number(json, "now_value", solution->now_value);
    knee_json_number(json, "now_target", solution->now_target);
    knee_json_number(json, "best_value", solution->best_value);
    knee_json_number(json, "best_target", solution->best_target);
    knee_json_words(json, "sentence", &sentence);
    knee_json_close(json, '}');
}

static void json_notes(struct knee_json *json, const struct knee_prediction *p)
{
    knee_json_open(json, "notes", '[');
    for (size_t i = 0; i < p->note_count; i++) {
        struct knee_text sentence = {.alloc = json->text->alloc};
        knee_note_sentence(&p->notes[i], &sentence);
        knee_json_words(json, NULL, &sentence);
    }
    knee_json_close(json, ']');
}

static void write_json(const struct knee_prediction *p, const struct knee_solution *solution,
                       struct knee_text *text)
{
    struct knee_json json = {.text = text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.predict/1");
    json_verdict(&json, p);
    if (solution)
        json_solution(&json, solution);
    json_knee(&json, p);
    knee_json_string(&json, "scaling", p->job.scaling == KNEE_STRONG ? "strong" : "weak");
    knee_json_open(&json, "rows", '[');
    for (size_t i = 0; i < p->row_count; i++)
        knee_row_json(&json, NULL, &p->rows[i]);
    knee_json_close(&json, ']');
    knee_row_json(&json, "at", &p->at);
    json_levers(&json, p);
    json_cost(&json, &p->cost);
    knee_inputs_json(&knee_job_keys, &p->job, &json);
    json_notes(&json, p);
    knee_json_close(&json, '}');
}

void knee_write_prediction(const struct knee_prediction *prediction,
                           const struct knee_solution *solution, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text)
{
    switch (format) {
    case KNEE_TEXT: write_text(prediction, solution, style, text); break;
    case KNEE_JSON: write_json(prediction, solution, text); break;
    case KNEE_CSV: write_csv(prediction, style, text); break;
    case KNEE_MARKDOWN: write_markdown(prediction, solution, style, text); break;
    }
}

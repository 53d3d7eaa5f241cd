/* SPDX-License-Identifier: MIT */
/* How well measured runs are predicted: in one sentence, by group, by curve, by row. */
#include "base/keys.h"
#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <string.h>

static bool cross_validated(const struct knee_validation *v)
{
    return v->held_out_all.rows > 0;
}

static void sentence(const struct knee_validation *v, struct knee_text *text)
{
    size_t rows = v->runs->count;
    knee_text_printf(text, "%zu of %zu rows predicted", rows - v->skipped, rows);
    if (v->all.rows > 0)
        knee_text_printf(text, ": step times off by %s on average, %s median, bias %s",
                         knee_percent(v->all.mape).s, knee_percent(v->all.median).s,
                         knee_signed_percent(v->all.bias).s);
    knee_text_puts(text, ".");
    if (v->dense.rows > 0 && v->moe.rows > 0)
        knee_text_printf(text, " Dense models: %s on average, %s median; with experts: %s, %s.",
                         knee_percent(v->dense.mape).s, knee_percent(v->dense.median).s,
                         knee_percent(v->moe.mape).s, knee_percent(v->moe.median).s);
    if (v->curve_rows > 0)
        knee_text_printf(text,
                         " E(K) from one anchor is off by %s on average over %zu points of %zu "
                         "curve%s.",
                         knee_percent(v->curve_mape).s, v->curve_rows, v->curve_count,
                         v->curve_count == 1 ? "" : "s");
    if (v->memory.rows > 0)
        knee_text_printf(text, " Memory is off by %s (median) where it is given, %zu row%s.",
                         knee_percent(v->memory.median).s, v->memory.rows,
                         v->memory.rows == 1 ? "" : "s");
    if (cross_validated(v))
        knee_text_printf(
            text,
            " With each source predicted from the others alone: %s on average, %s "
            "median (dense %s, %s).",
            knee_percent(v->held_out_all.mape).s, knee_percent(v->held_out_all.median).s,
            knee_percent(v->held_out_dense.mape).s, knee_percent(v->held_out_dense.median).s);
    if (v->skipped > 0)
        knee_text_printf(text,
                         " %zu of %zu rows could not be expressed, %zu of the %zu that are fully "
                         "configured.",
                         v->skipped, rows, v->skipped_full, v->full);
}

/* ---- Tables ---- */

static void percent(struct knee_table *table, double share)
{
    knee_table_cell(table, "%s", isnan(share) ? "-" : knee_percent(share).s);
}

static void errors_row(struct knee_table *table, const struct knee_run_errors *e,
                       const struct knee_run_errors *held_out)
{
    knee_table_cell(table, "%s", e->name);
    knee_table_cell(table, "%zu", e->rows);
    percent(table, e->mape);
    percent(table, e->median);
    knee_table_cell(table, "%s", isnan(e->bias) ? "-" : knee_signed_percent(e->bias).s);
    percent(table, e->within_5);
    percent(table, e->within_10);
    if (held_out) {
        percent(table, held_out->rows ? held_out->mape : NAN);
        percent(table, held_out->rows ? held_out->median : NAN);
    }
}

static void begin_errors(struct knee_table *table, const char *what, bool held_out,
                         const struct knee_alloc *alloc)
{
    static const char *const names[] = {"rows",   "MAPE",    "median",   "bias",
                                        "<= 5 %", "<= 10 %", "held out", "median"};
    knee_table_init(table, held_out ? "lrrrrrrrr" : "lrrrrrr", alloc);
    knee_table_cell(table, "%s", what);
    for (size_t i = 0; i < (held_out ? 8 : 6); i++)
        knee_table_cell(table, "%s", names[i]);
}

static void summary_table(const struct knee_validation *v, enum knee_format format,
                          const struct knee_style *style, struct knee_text *text)
{
    static const struct knee_run_errors none = {0};
    bool crossed = cross_validated(v);
    const struct {
        const struct knee_run_errors *own, *held_out;
    } rows[] = {{&v->all, &v->held_out_all}, {&v->dense, &v->held_out_dense},
                {&v->moe, &v->held_out_moe}, {&v->full_config, &none},
                {&v->assumed, &none},        {&v->memory, &none}};
    struct knee_table table;
    begin_errors(&table, "step time", crossed, text->alloc);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].own->rows > 0)
            errors_row(&table, rows[i].own, crossed ? rows[i].held_out : NULL);
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void group_table(const char *what, const struct knee_run_errors *groups,
                        const struct knee_run_errors *held_out, size_t count,
                        enum knee_format format, const struct knee_style *style,
                        struct knee_text *text)
{
    struct knee_table table;
    begin_errors(&table, what, held_out != NULL, text->alloc);
    for (size_t i = 0; i < count; i++)
        errors_row(&table, &groups[i], held_out ? &held_out[i] : NULL);
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void curves_table(const struct knee_validation *v, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {"curve",       "anchor",        "points",
                                        "E(K) off by", "knee measured", "knee predicted"};
    struct knee_table table;
    knee_table_init(&table, "lrrrrr", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < v->curve_count; i++) {
        knee_table_cell(&table, "%s", v->curve[i].name);
        knee_table_cell(&table, "%g", v->curve[i].anchor_gpus);
        knee_table_cell(&table, "%zu", v->curve[i].rows);
        percent(&table, v->curve[i].mape);
        knee_table_cell(&table, "%g", v->curve[i].knee_measured);
        knee_table_cell(&table, "%g", v->curve[i].knee_predicted);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static const char *profile_name(const struct knee_measured_run *run)
{
    const struct knee_profile *profile =
        run->platform.profile >= 0 ? knee_profile_at((size_t)run->platform.profile) : NULL;
    return profile ? profile->name : "-";
}

/* What was measured, and the prediction with how sure it is; nothing where nothing was measured. */
static void surely_cells(struct knee_table *table, double measured, double predicted,
                         struct knee_sure sure, enum knee_unit unit)
{
    struct knee_sure none = {NAN, NAN};
    bool both = !isnan(measured) && !isnan(predicted);
    knee_table_cell(table, "%s", both ? knee_surely(measured, none, unit).s : "-");
    knee_table_cell(table, "%s", both ? knee_surely(predicted, sure, unit).s : "-");
}

/* Columns of what no row has are left out. */
struct shown {
    bool curves, memory;
};

static void heads(struct knee_table *table, struct shown shown, const struct knee_alloc *alloc)
{
    const struct {
        const char *name, *align;
        bool there;
    } columns[] = {
        {"row", "l", true},
        {"GPUs", "r", true},
        {"measured", "r", true},
        {"predicted", "r", true},
        {"90 %", "l", true},
        {"error", "r", true},
        {"E(K)", "r", shown.curves},
        {"E(K) predicted", "r", shown.curves},
        {"memory", "r", shown.memory},
        {"memory predicted", "r", shown.memory},
        {"profile", "l", true},
        {"remark", "l", true},
    };
    char align[16] = "";
    size_t count = sizeof columns / sizeof *columns;
    for (size_t i = 0, n = 0; i < count; i++)
        if (columns[i].there)
            align[n++] = columns[i].align[0];
    knee_table_init(table, align, alloc);
    for (size_t i = 0; i < count; i++)
        if (columns[i].there)
            knee_table_cell(table, "%s", columns[i].name);
}

static void one_row(struct knee_table *table, const struct knee_measured_run *run,
                    const struct knee_run_result *r, struct shown shown)
{
    knee_table_cell(table, "%s", run->id);
    knee_table_number(table, run->plan.gpus, KNEE_UNIT_COUNT);
    knee_table_number(table, run->step_s, KNEE_UNIT_SECONDS);
    knee_table_number(table, r->predicted_s, KNEE_UNIT_SECONDS);
    knee_table_cell(table, "%s", isnan(r->low_s) ? "-" : knee_range(r->low_s, r->high_s).s);
    knee_table_cell(table, "%s", isnan(r->error) ? "-" : knee_signed_percent(r->error).s);
    if (shown.curves)
        surely_cells(table, r->measured_efficiency, r->predicted_efficiency, r->efficiency,
                     KNEE_UNIT_FRACTION);
    if (shown.memory)
        surely_cells(table, run->memory_bytes, r->predicted_bytes, r->bytes, KNEE_UNIT_BYTES);
    knee_table_cell(table, "%s", profile_name(run));
    if (run->skipped[0])
        knee_table_cell(table, "skipped: %s", run->skipped);
    else
        knee_table_cell(table, "%s%s", run->assumed[0] ? "assumed: " : "", run->assumed);
}

static void rows_table(const struct knee_validation *v, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct shown shown = {.curves = v->curve_rows > 0, .memory = v->memory.rows > 0};
    struct knee_table table;
    heads(&table, shown, text->alloc);
    for (size_t i = 0; i < v->runs->count; i++)
        one_row(&table, &v->runs->run[i], &v->result[i], shown);
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void decisions_table(const struct knee_validation *v, enum knee_format format,
                            const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {"jobs with several plans", "first",
                                        "best of three",           "any plan",
                                        "three near it",           "pairs right"};
    const struct knee_run_decisions *d = &v->decisions;
    const double shares[] = {d->regret, d->regret_of_three, d->regret_of_any, d->near_best,
                             d->pairs_right};
    struct knee_table table;
    knee_table_init(&table, "lrrrrr", text->alloc);
    KNEE_HEADS(&table, names);
    knee_table_cell(&table, "%zu", d->jobs);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        percent(&table, shares[i]);
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void band_row(struct knee_table *table, const struct knee_run_band *band, double left_out)
{
    if (band->rows == 0)
        return;
    knee_table_cell(table, "%s", band->name);
    knee_table_cell(table, "%zu", band->rows);
    knee_table_cell(table, "%s", knee_signed_percent(band->low - 1).s);
    knee_table_cell(table, "%s", knee_signed_percent(band->high - 1).s);
    percent(table, band->covered);
    percent(table, left_out);
}

/* Of E(K) low and high are for one doubling. */
static void bands_table(const struct knee_validation *v, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {"how sure", "rows", "low", "high", "inside", "left out"};
    bool crossed = cross_validated(v);
    struct knee_table table;
    knee_table_init(&table, "lrrrrr", text->alloc);
    KNEE_HEADS(&table, names);
    for (int i = 0; i < KNEE_RUN_BANDS; i++)
        band_row(&table, &v->band[i], crossed ? v->left_out_band[i].covered_left_out : NAN);
    for (int i = 0; i < KNEE_RUN_DOUBTS; i++)
        band_row(&table, &v->doubt[i], crossed ? v->left_out_doubt[i].covered_left_out : NAN);
    band_row(&table, &v->memory_band, NAN);
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

#define REASONS 32

/* Why rows could not be expressed, and how many for each reason. */
static void reasons_table(const struct knee_validation *v, enum knee_format format,
                          const struct knee_style *style, struct knee_text *text)
{
    const char *why[REASONS + 1] = {0};
    size_t rows[REASONS + 1] = {0}, count = 0;
    struct knee_table table;
    for (size_t i = 0; i < v->runs->count; i++) {
        const char *skipped = v->runs->run[i].skipped;
        size_t k = 0;
        while (k < count && strcmp(why[k], skipped) != 0)
            k++;
        if (!*skipped)
            continue;
        if (k == count && count < REASONS)
            count++;
        why[k] = k < REASONS ? skipped : "other reasons";
        rows[k]++;
    }
    knee_table_init(&table, "lr", text->alloc);
    knee_table_cell(&table, "not expressed");
    knee_table_cell(&table, "rows");
    for (size_t k = 0; k <= REASONS && rows[k] > 0; k++) {
        knee_table_cell(&table, "%s", why[k]);
        knee_table_cell(&table, "%zu", rows[k]);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

/* Sources that are far off when they are left out, and why. */
static void far_table(const struct knee_validation *v, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {"left out, worse than 25 %", "off by", "why"};
    char why[2 * KNEE_RUN_TEXT];
    struct knee_table table;
    size_t count = 0;
    knee_table_init(&table, "lrl", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < v->source_count; i++) {
        if (!knee_held_out_reason(v, i, why))
            continue;
        count++;
        knee_table_cell(&table, "%s", v->source[i].name);
        percent(&table, v->held_out[i].mape);
        knee_table_cell(&table, "%s", why);
    }
    if (count > 0) {
        knee_text_puts(text, "\n");
        knee_table_write(&table, format, style, text);
    }
    knee_table_release(&table);
}

static void write_text(const struct knee_validation *v, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct knee_text verdict = {.alloc = text->alloc};
    const struct knee_run_errors *held_out = cross_validated(v) ? v->held_out : NULL;
    sentence(v, &verdict);
    knee_say(&verdict, format, style, text);
    knee_text_puts(text, "\n");
    summary_table(v, format, style, text);
    knee_text_puts(text, "\n");
    group_table("source", v->source, held_out, v->source_count, format, style, text);
    if (held_out)
        far_table(v, format, style, text);
    knee_text_puts(text, "\n");
    group_table("GPU", v->gpu, NULL, v->gpu_count, format, style, text);
    if (v->curve_count > 0) {
        knee_text_puts(text, "\n");
        curves_table(v, format, style, text);
    }
    if (v->all.rows > 0) {
        knee_text_puts(text, "\n");
        bands_table(v, format, style, text);
    }
    if (v->decisions.jobs > 0) {
        knee_text_puts(text, "\n");
        decisions_table(v, format, style, text);
    }
    if (v->skipped > 0) {
        knee_text_puts(text, "\n");
        reasons_table(v, format, style, text);
    }
    if (style->brief)
        return;
    knee_text_puts(text, "\n");
    rows_table(v, format, style, text);
}

/* ---- CSV and JSON ---- */

static void write_csv(const struct knee_validation *v, const struct knee_style *style,
                      struct knee_text *text)
{
    static const char *const names[] = {"id",
                                        "source",
                                        "gpu",
                                        "gpus",
                                        "profile",
                                        "measured_s",
                                        "predicted_s",
                                        "error",
                                        "curve_error",
                                        "measured_bytes",
                                        "predicted_bytes",
                                        "held_out_s",
                                        "held_out_error",
                                        "skipped_reason",
                                        "assumed",
                                        "low_s",
                                        "high_s",
                                        "fit_probability",
                                        "efficiency",
                                        "predicted_efficiency",
                                        "low_efficiency",
                                        "high_efficiency",
                                        "low_bytes",
                                        "high_bytes"};
    struct knee_table table;
    knee_table_init(&table, "lllrlrrrrrrrrllrrrrrrrrr", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < v->runs->count; i++) {
        const struct knee_measured_run *run = &v->runs->run[i];
        const struct knee_run_result *r = &v->result[i];
        knee_table_cell(&table, "%s", run->id);
        knee_table_cell(&table, "%s", run->source);
        knee_table_cell(&table, "%s", run->gpu);
        knee_table_exact(&table, run->plan.gpus);
        knee_table_cell(&table, "%s", profile_name(run));
        const double numbers[] = {run->step_s,    r->predicted_s,    r->error,
                                  r->curve_error, run->memory_bytes, r->predicted_bytes,
                                  r->held_out_s,  r->held_out_error};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            knee_table_exact(&table, numbers[k]);
        knee_table_cell(&table, "%s", run->skipped);
        knee_table_cell(&table, "%s", run->assumed);
        const double sure[] = {r->low_s,
                               r->high_s,
                               r->fits,
                               r->measured_efficiency,
                               r->predicted_efficiency,
                               r->efficiency.low,
                               r->efficiency.high,
                               r->bytes.low,
                               r->bytes.high};
        for (size_t k = 0; k < sizeof sure / sizeof *sure; k++)
            knee_table_exact(&table, sure[k]);
    }
    knee_table_write(&table, KNEE_CSV, style, text);
    knee_table_release(&table);
}

static void json_errors(struct knee_json *json, const char *key, const struct knee_run_errors *e)
{
    knee_json_open_flat(json, key, '{');
    if (!key)
        knee_json_string(json, "name", e->name);
    knee_json_number(json, "rows", (double)e->rows);
    knee_json_number(json, "mape", e->rows ? e->mape : NAN);
    knee_json_number(json, "median", e->rows ? e->median : NAN);
    knee_json_number(json, "bias", e->rows ? e->bias : NAN);
    knee_json_number(json, "within_5", e->rows ? e->within_5 : NAN);
    knee_json_number(json, "within_10", e->rows ? e->within_10 : NAN);
    knee_json_close(json, '}');
}

static void json_decisions(struct knee_json *json, const struct knee_validation *v)
{
    const struct knee_run_decisions *d = &v->decisions;
    const struct {
        const char *key;
        double value;
    } rows[] = {{"jobs", (double)d->jobs},
                {"regret", d->regret},
                {"regret_of_three", d->regret_of_three},
                {"regret_of_any", d->regret_of_any},
                {"near_best", d->near_best},
                {"pairs", (double)d->pairs},
                {"pairs_right", d->pairs_right},
                {"pair_error", d->pair_error}};
    knee_json_open_flat(json, "decisions", '{');
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        knee_json_number(json, rows[i].key, rows[i].value);
    knee_json_close(json, '}');
    knee_json_open_flat(json, "room", '{');
    knee_json_number(json, "ran", (double)v->room.ran);
    knee_json_number(json, "fits", v->room.fits);
    knee_json_number(json, "measured", (double)v->room.measured);
    knee_json_number(json, "beyond_5", v->room.beyond);
    knee_json_close(json, '}');
}

/* `out`: what sources left out say; NULL: not asked. */
static void json_band(struct knee_json *json, const struct knee_run_band *own,
                      const struct knee_run_band *out)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "name", own->name);
    knee_json_number(json, "rows", (double)own->rows);
    knee_json_number(json, "low", own->low);
    knee_json_number(json, "high", own->high);
    knee_json_number(json, "covered", own->covered);
    if (out) {
        knee_json_number(json, "sources_left_out", (double)out->sources);
        knee_json_number(json, "low_left_out", out->low);
        knee_json_number(json, "high_left_out", out->high);
        knee_json_number(json, "covered_left_out", out->covered_left_out);
    }
    knee_json_close(json, '}');
}

static void json_bands(struct knee_json *json, const struct knee_validation *v)
{
    bool crossed = cross_validated(v);
    knee_json_open(json, "bands", '[');
    for (int i = 0; i < KNEE_RUN_BANDS; i++)
        json_band(json, &v->band[i], crossed ? &v->left_out_band[i] : NULL);
    knee_json_close(json, ']');
    knee_json_open(json, "doubts", '[');
    for (int i = 0; i < KNEE_RUN_DOUBTS; i++)
        json_band(json, &v->doubt[i], crossed ? &v->left_out_doubt[i] : NULL);
    json_band(json, &v->memory_band, NULL);
    knee_json_close(json, ']');
}

static void json_summary(struct knee_json *json, const struct knee_validation *v)
{
    knee_json_open(json, "summary", '{');
    knee_json_number(json, "rows", (double)v->all.rows);
    knee_json_number(json, "mape", v->all.mape);
    knee_json_number(json, "median", v->all.median);
    knee_json_number(json, "bias", v->all.bias);
    knee_json_number(json, "within_5", v->all.within_5);
    knee_json_number(json, "within_10", v->all.within_10);
    knee_json_number(json, "curve_mape", v->curve_mape);
    knee_json_number(json, "curve_rows", (double)v->curve_rows);
    knee_json_number(json, "rows_in_file", (double)v->runs->count);
    knee_json_number(json, "skipped", (double)v->skipped);
    knee_json_number(json, "fully_configured", (double)v->full);
    knee_json_number(json, "fully_configured_skipped", (double)v->skipped_full);
    json_errors(json, "dense", &v->dense);
    json_errors(json, "with_experts", &v->moe);
    json_errors(json, "fully_configured_errors", &v->full_config);
    json_errors(json, "completed_by_assumption", &v->assumed);
    json_errors(json, "memory", &v->memory);
    if (cross_validated(v)) {
        json_errors(json, "held_out", &v->held_out_all);
        json_errors(json, "held_out_dense", &v->held_out_dense);
        json_errors(json, "held_out_with_experts", &v->held_out_moe);
    }
    json_decisions(json, v);
    knee_json_close(json, '}');
}

static void json_row(struct knee_json *json, const struct knee_measured_run *run,
                     const struct knee_run_result *r, bool crossed)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "id", run->id);
    knee_json_string(json, "source", run->source);
    knee_json_string(json, "gpu", run->gpu);
    knee_json_number(json, "gpus", run->plan.gpus);
    knee_json_string(json, "profile", profile_name(run));
    knee_json_number(json, "measured_s", run->step_s);
    knee_json_number(json, "predicted_s", r->predicted_s);
    knee_json_number(json, "low_s", r->low_s);
    knee_json_number(json, "high_s", r->high_s);
    knee_json_number(json, "error", r->error);
    knee_json_number(json, "curve_error", r->curve_error);
    knee_json_number(json, "measured_bytes", run->memory_bytes);
    knee_json_number(json, "predicted_bytes", r->predicted_bytes);
    knee_json_number(json, "low_bytes", r->bytes.low);
    knee_json_number(json, "high_bytes", r->bytes.high);
    knee_json_number(json, "efficiency", r->measured_efficiency);
    knee_json_number(json, "predicted_efficiency", r->predicted_efficiency);
    knee_json_number(json, "low_efficiency", r->efficiency.low);
    knee_json_number(json, "high_efficiency", r->efficiency.high);
    if (crossed)
        knee_json_number(json, "held_out_error", r->held_out_error);
    knee_json_string(json, "assumed", run->assumed);
    if (run->skipped[0])
        knee_json_string(json, "skipped_reason", run->skipped);
    else
        knee_json_number(json, "skipped_reason", NAN); /* null */
    knee_json_close(json, '}');
}

static void json_groups(struct knee_json *json, const char *key,
                        const struct knee_run_errors *groups, size_t count)
{
    knee_json_open(json, key, '[');
    for (size_t i = 0; i < count; i++)
        json_errors(json, NULL, &groups[i]);
    knee_json_close(json, ']');
}

static void json_far(struct knee_json *json, const struct knee_validation *v)
{
    char why[2 * KNEE_RUN_TEXT];
    knee_json_open(json, "far_off", '[');
    for (size_t i = 0; i < v->source_count; i++) {
        if (!knee_held_out_reason(v, i, why))
            continue;
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "name", v->source[i].name);
        knee_json_number(json, "mape", v->held_out[i].mape);
        knee_json_string(json, "why", why);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void write_json(const struct knee_validation *v, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    struct knee_text verdict = {.alloc = text->alloc};
    sentence(v, &verdict);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.validate/1");
    knee_json_words(&json, "sentence", &verdict);
    json_summary(&json, v);
    json_bands(&json, v);
    json_groups(&json, "sources", v->source, v->source_count);
    if (cross_validated(v)) {
        json_groups(&json, "sources_held_out", v->held_out, v->source_count);
        json_far(&json, v);
    }
    json_groups(&json, "gpus", v->gpu, v->gpu_count);
    knee_json_open(&json, "curves", '[');
    for (size_t i = 0; i < v->curve_count; i++) {
        const struct knee_run_curve *c = &v->curve[i];
        knee_json_open_flat(&json, NULL, '{');
        knee_json_string(&json, "name", c->name);
        knee_json_number(&json, "anchor_gpus", c->anchor_gpus);
        knee_json_number(&json, "points", (double)c->rows);
        knee_json_number(&json, "mape", c->mape);
        knee_json_number(&json, "knee_measured", c->knee_measured);
        knee_json_number(&json, "knee_predicted", c->knee_predicted);
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_open(&json, "rows", '[');
    for (size_t i = 0; i < v->runs->count; i++)
        json_row(&json, &v->runs->run[i], &v->result[i], cross_validated(v));
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
}

void knee_write_validation(const struct knee_validation *v, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(v, text);
    else if (format == KNEE_CSV)
        write_csv(v, style, text);
    else
        write_text(v, format, style, text);
}

/* ---- A profile of one's own ---- */

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

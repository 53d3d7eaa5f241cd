/* SPDX-License-Identifier: MIT */
/* Timed products as text, JSON (schema knee.gemm/1), CSV (the table that --table reads) or
 * Markdown. */
#include "bench/gemm.h"
#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <stdlib.h>

static const char *const dtype_names[KNEE_DTYPES] = {"bf16", "fp8", "nvfp4"};

#define SHOWN 16 /* rows of the table in text: those in between tell the same */

static double flops_of(const struct knee_timed_product *p)
{
    return 2 * p->m * p->n * p->k / p->seconds;
}

static double off_by(const struct knee_machine *machine, const struct knee_timed_product *p)
{
    return knee_timed_product_s(machine, p) / p->seconds - 1;
}

/* ---- Words ---- */

#define ALIKE 0.02 /* GPUs of one name differ by as much */

/* What to do. */
static void say_advice(const struct knee_gemm_report *report, struct knee_text *text)
{
    double speed = report->fit->speed;
    if (fabs(speed - 1) < ALIKE)
        knee_text_printf(text, "Nothing to change: products take this %s as long as knee assumes.",
                         report->gpu->name);
    else
        knee_text_printf(text,
                         "Use its own constants, knee plan --rates FILE (--calibrate FILE writes "
                         "them): products take this %s %s %s than knee assumes.",
                         report->gpu->name, knee_percent(fabs(1 / speed - 1)).s,
                         speed > 1 ? "less time" : "longer");
}

/* Why. */
static void say_reason(const struct knee_gemm_report *report, struct knee_text *text)
{
    const struct knee_products_fit *fit = report->fit;
    knee_text_printf(text, "%zu products were timed alone.", fit->count);
    if (fit->of[KNEE_16BIT])
        knee_text_printf(text,
                         " Large 16-bit ones reach %s of the peak, where %s were assumed; in "
                         "training %s, by the same factor.",
                         knee_percent(fit->machine.rates.gemm_16bit).s,
                         knee_percent(fit->as_known.rates.gemm_16bit).s,
                         knee_percent(fit->rates.gemm_16bit).s);
}

/* How sure. */
static void say_error(const struct knee_gemm_report *report, struct knee_text *text)
{
    const struct knee_products_fit *fit = report->fit;
    const struct knee_timed_products *gemm = report->gemm;
    knee_text_printf(text, "The model was off by %s and is by %s (median of single products",
                     knee_percent(fit->shipped).s, knee_percent(fit->fitted).s);
    if (!isnan(fit->left_out))
        knee_text_printf(text, "; %s on every second one, fitted on the others",
                         knee_percent(fit->left_out).s);
    knee_text_puts(text, ").");
    if (gemm->others)
        knee_text_printf(text, " %zu of other types (%s) left aside.", gemm->others,
                         knee_safe(gemm->other, 20).s);
    if (gemm->damaged)
        knee_text_printf(text, " %zu not readable, the first in line %zu.", gemm->damaged,
                         gemm->first_line);
}

typedef void sayer(const struct knee_gemm_report *report, struct knee_text *text);
static sayer *const sayers[] = {say_advice, say_reason, say_error};
#define SAYERS (sizeof sayers / sizeof *sayers)

/* ---- Tables ---- */

static void products_table(const struct knee_gemm_report *report, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text)
{
    static const char *const heads[] = {
        "m", "n", "k", "type", "time", "TFLOP/s", "of peak", "model was off", "and is"};
    const struct knee_timed_products *gemm = report->gemm;
    struct knee_table table;
    size_t every = (gemm->count + SHOWN - 1) / SHOWN;
    knee_table_init(&table, "rrrlrrrrr", text->alloc);
    KNEE_HEADS(&table, heads);
    for (size_t i = every - 1; i < gemm->count; i += every) {
        const struct knee_timed_product *p = &gemm->rows[i];
        knee_table_cell(&table, "%.0f", p->m);
        knee_table_cell(&table, "%.0f", p->n);
        knee_table_cell(&table, "%.0f", p->k);
        knee_table_cell(&table, "%s", dtype_names[p->dtype]);
        knee_table_number(&table, p->seconds, KNEE_UNIT_SECONDS);
        knee_table_cell(&table, "%.1f", flops_of(p) * 1e-12);
        knee_table_cell(&table, "%s",
                        knee_percent(flops_of(p) / report->fit->machine.peak_flops[p->dtype]).s);
        knee_table_cell(&table, "%s", knee_signed_percent(off_by(&report->fit->as_known, p)).s);
        knee_table_cell(&table, "%s", knee_signed_percent(off_by(&report->fit->machine, p)).s);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void constants_table(const struct knee_gemm_report *report, enum knee_format format,
                            const struct knee_style *style, struct knee_text *text)
{
    static const char *const heads[] = {"constant", "was", "is", "what it is"};
    struct knee_table table;
    knee_table_init(&table, "lrrl", text->alloc);
    KNEE_HEADS(&table, heads);
    for (size_t i = 0; i < knee_rates_keys.count; i++) {
        const struct knee_key *key = &knee_rates_keys.rows[i];
        double is =
            *(const double *)(const void *)((const char *)&report->fit->rates + key->offset);
        double was = *(const double *)(const void *)((const char *)&report->fit->shipped_rates +
                                                     key->offset);
        if (isnan(is))
            continue;
        knee_table_cell(&table, "%s", key->name);
        knee_table_number(&table, was, key->unit);
        knee_table_number(&table, is, key->unit);
        knee_table_cell(&table, "%s", key->help);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void write_text(const struct knee_gemm_report *report, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc};
    for (size_t i = 0; i < SAYERS; i++) {
        sayers[i](report, &words);
        knee_say(&words, format, style, text);
    }
    knee_text_puts(text, "\n");
    products_table(report, format, style, text);
    if (style->brief)
        return;
    knee_text_puts(text, "\n");
    constants_table(report, format, style, text);
}

/* ---- For machines ---- */

static void write_csv(const struct knee_gemm_report *report, struct knee_text *text)
{
    knee_text_puts(text, "gpu,dtype,m,n,k,seconds\n");
    for (size_t i = 0; i < report->gemm->count; i++) {
        const struct knee_timed_product *p = &report->gemm->rows[i];
        char seconds[48];
        knee_number_exact(seconds, sizeof seconds, p->seconds);
        knee_text_printf(text, "%s,%s,%.0f,%.0f,%.0f,%s\n", report->gpu->name,
                         dtype_names[p->dtype], p->m, p->n, p->k, seconds);
    }
}

static void write_json(const struct knee_gemm_report *report, struct knee_text *text)
{
    const struct knee_products_fit *fit = report->fit;
    struct knee_json json = {.text = text};
    struct knee_text words = {.alloc = text->alloc};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.gemm/1");
    for (size_t i = 0; i < SAYERS; i++) {
        knee_text_puts(&words, i ? " " : "");
        sayers[i](report, &words);
    }
    knee_json_words(&json, "verdict", &words);
    knee_json_string(&json, "gpu", report->gpu->name);
    knee_json_whole(&json, "products", (int64_t)report->gemm->count);
    knee_json_whole(&json, "fitted", (int64_t)fit->count);
    knee_json_whole(&json, "other_types", (int64_t)report->gemm->others);
    knee_json_whole(&json, "damaged", (int64_t)report->gemm->damaged);
    knee_json_number(&json, "speed", fit->speed);
    knee_json_number(&json, "error_shipped", fit->shipped);
    knee_json_number(&json, "error_fitted", fit->fitted);
    knee_json_number(&json, "error_left_out", fit->left_out);
    knee_json_open(&json, "constants", '{');
    for (size_t i = 0; i < knee_rates_keys.count; i++) {
        const struct knee_key *key = &knee_rates_keys.rows[i];
        double is = *(const double *)(const void *)((const char *)&fit->rates + key->offset);
        if (!isnan(is))
            knee_json_number(&json, key->name, is);
    }
    knee_json_close(&json, '}');
    knee_json_open(&json, "rows", '[');
    for (size_t i = 0; i < report->gemm->count; i++) {
        const struct knee_timed_product *p = &report->gemm->rows[i];
        knee_json_open_flat(&json, NULL, '{');
        knee_json_string(&json, "dtype", dtype_names[p->dtype]);
        knee_json_number(&json, "m", p->m);
        knee_json_number(&json, "n", p->n);
        knee_json_number(&json, "k", p->k);
        knee_json_number(&json, "seconds", p->seconds);
        knee_json_number(&json, "model_s", knee_timed_product_s(&fit->machine, p));
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
    knee_text_puts(text, "\n");
}

void knee_gemm_write(const struct knee_gemm_report *report, enum knee_format format,
                     const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(report, text);
    else if (format == KNEE_CSV)
        write_csv(report, text);
    else
        write_text(report, format, style, text);
}

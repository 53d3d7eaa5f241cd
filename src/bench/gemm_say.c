/* SPDX-License-Identifier: MIT */
/* knee bench --gemm as an answer. Schema knee.gemm/1; its CSV is the table that --table reads. */
#include "bench/gemm.h"
#include "say/short.h"

#include <math.h>

#define REPORT  struct knee_gemm_report
#define PRODUCT struct knee_timed_product
#define RATES   struct knee_rates
#define FIT     struct knee_products_fit

#define ALIKE 0.02 /* GPUs of one name differ by as much */
#define SHOWN 8    /* rows on one screen */

static const char *const dtype_names[KNEE_DTYPES] = {"bf16", "fp8", "nvfp4"};

/* ---- Products ---- */

static const REPORT *report_of(const struct knee_at *at)
{
    return at->up->row;
}

A_TEXT(dtype, PRODUCT, dtype_names[it->dtype])
A_TEXT(gpu_of_row, void, report_of(at)->gpu->name)

static double flops_of(const PRODUCT *p)
{
    return 2 * p->m * p->n * p->k / p->seconds;
}

A_NUMBER(flops, void, flops_of(it))
A_NUMBER(of_peak, PRODUCT, flops_of(it) / report_of(at)->fit->machine.peak_flops[it->dtype])
A_NUMBER(model_s, void, knee_timed_product_s(&report_of(at)->fit->machine, it))
A_NUMBER(error_before, PRODUCT,
         knee_timed_product_s(&report_of(at)->fit->as_known, it) / it->seconds - 1)
A_NUMBER(error_after, PRODUCT,
         knee_timed_product_s(&report_of(at)->fit->machine, it) / it->seconds - 1)

static const struct knee_field product_fields[] = {
    KNEE_GET(gpu_of_row, "gpu", NULL, TEXT, DATA, "preset of the GPU"),
    KNEE_GET(dtype, "dtype", "type", TEXT, FULL, "bf16, fp8 or nvfp4"),
    KNEE_FIELD(PRODUCT, m, "m", "m", COUNT, SCREEN, "rows of the result"),
    KNEE_FIELD(PRODUCT, n, "n", "n", COUNT, SCREEN, "columns of the result"),
    KNEE_FIELD(PRODUCT, k, "k", "k", COUNT, SCREEN, "inner length"),
    KNEE_FIELD(PRODUCT, seconds, "seconds", "time", TIME, SCREEN, "measured"),
    KNEE_GET(flops, "flops_per_s", "rate", FLOPS, FULL, "measured rate"),
    KNEE_GET(of_peak, "of_peak", "of peak", SHARE, SCREEN, "measured rate over the GPU's peak"),
    KNEE_GET(model_s, "model_s", NULL, TIME, DATA, "what the fitted model says"),
    KNEE_GET(error_before, "error_shipped", "error before", CHANGE, FULL,
             "the shipped model over the measurement, less 1"),
    KNEE_GET(error_after, "error_fitted", "model error", CHANGE, SCREEN,
             "the fitted model over the measurement, less 1"),
};

static const void *product_row(const struct knee_at *at, size_t index)
{
    const REPORT *report = at->row;
    return index < report->gemm->count ? &report->gemm->rows[index] : NULL;
}

/* Evenly over all: those in between say the same. */
static bool shown(const struct knee_at *at)
{
    size_t every = (report_of(at)->gemm->count + SHOWN - 1) / SHOWN;
    return every < 2 || at->index % every == every - 1;
}

/* ---- Constants ---- */

static const struct knee_field constant_fields[] = {
    KNEE_FIELD(RATES, gemm_16bit, "gemm-16bit", NULL, SHARE, DATA,
               "share of the peak of large 16-bit products"),
    KNEE_FIELD(RATES, gemm_8bit, "gemm-8bit", NULL, SHARE, DATA, "the same, 8 bits"),
    KNEE_FIELD(RATES, gemm_depth_16bit, "gemm-depth-16bit", NULL, NUMBER, DATA,
               "inner length at which half is reached"),
    KNEE_FIELD(RATES, gemm_depth_8bit, "gemm-depth-8bit", NULL, NUMBER, DATA, "the same, 8 bits"),
    KNEE_FIELD(RATES, gemm_waves_16bit, "gemm-waves-16bit", NULL, NUMBER, DATA,
               "waves of 128 x 128 tiles at which half is reached"),
    KNEE_FIELD(RATES, gemm_waves_8bit, "gemm-waves-8bit", NULL, NUMBER, DATA, "the same, 8 bits"),
    KNEE_FIELD(RATES, gemm_start_s, "gemm-start", NULL, TIME, DATA, "start of a product"),
    KNEE_FIELD(RATES, gemm_memory, "gemm-memory", NULL, SHARE, DATA,
               "share of the memory rate that a product reaches"),
    KNEE_FIELD(RATES, gemm_alone, "gemm-alone", NULL, SHARE, DATA,
               "share of the peak of large 16-bit products timed alone"),
};

static double constant(const RATES *rates, const struct knee_key *key)
{
    return *(const double *)(const void *)((const char *)rates + key->offset);
}

/* The rows of the key table whose constants were fitted. */
static const void *changed_row(const struct knee_at *at, size_t index)
{
    const REPORT *report = at->row;
    for (size_t i = 0; i < knee_rates_keys.count; i++)
        if (!isnan(constant(&report->fit->rates, &knee_rates_keys.rows[i])) && index-- == 0)
            return &knee_rates_keys.rows[i];
    return NULL;
}

A_NUMBER(before, void, constant(&report_of(at)->fit->shipped_rates, at->row))
A_NUMBER(after, void, constant(&report_of(at)->fit->rates, at->row))

static const struct knee_field changed_fields[] = {
    KNEE_FIELD(struct knee_key, name, "name", "constant", TEXT, FULL, "as --rates has it"),
    KNEE_GET(before, "before", "before", NUMBER, FULL, "as shipped"),
    KNEE_GET(after, "after", "after", NUMBER, FULL, "as fitted, in training"),
    KNEE_FIELD(struct knee_key, help, "about", "meaning", TEXT, FULL, "what it is"),
};

/* ---- The answer ---- */

static const void *rates_of(const struct knee_at *at)
{
    return &((const REPORT *)at->row)->fit->rates;
}

static const void *fit_of(const struct knee_at *at)
{
    return ((const REPORT *)at->row)->fit;
}

static const void *products_of(const struct knee_at *at)
{
    return ((const REPORT *)at->row)->gemm;
}

A_TEXT(gpu_name, REPORT, it->gpu->name)

static const struct knee_field table_fields[] = {
    KNEE_FIELD(struct knee_timed_products, count, "products", NULL, COUNT, DATA,
               "products in the table"),
    KNEE_FIELD(struct knee_timed_products, others, "other_types", NULL, COUNT, DATA,
               "rows of types that the model does not know"),
    KNEE_FIELD(struct knee_timed_products, damaged, "damaged", NULL, COUNT, DATA,
               "rows that cannot be read"),
};
static const struct knee_field fit_fields[] = {
    KNEE_FIELD(FIT, count, "fitted", NULL, COUNT, DATA, "products fitted"),
    KNEE_FIELD(FIT, speed, "speed", NULL, NUMBER, DATA,
               "time of the shipped model over the measured time"),
    KNEE_FIELD(FIT, shipped, "error_shipped", NULL, SHARE, DATA,
               "median error of the shipped model"),
    KNEE_FIELD(FIT, fitted, "error_fitted", NULL, SHARE, DATA, "median error of the fitted model"),
    KNEE_FIELD(FIT, left_out, "error_left_out", NULL, SHARE, DATA,
               "the same on every second product, fitted on the others"),
};
static const struct knee_field fields[] = {
    KNEE_GET(knee_get_sentence, "verdict", NULL, TEXT, DATA,
             "headline, reason and effect in one line"),
    KNEE_GET(gpu_name, "gpu", NULL, TEXT, DATA, "preset of the GPU"),
    {.kind = KNEE_AS_INLINE,
     .object = products_of,
     .fields = table_fields,
     .field_count = KNEE_COUNT_OF(table_fields)},
    {.kind = KNEE_AS_INLINE,
     .object = fit_of,
     .fields = fit_fields,
     .field_count = KNEE_COUNT_OF(fit_fields)},
    {.key = "constants",
     .kind = KNEE_AS_OBJECT,
     .about = "the fitted constants by name",
     .object = rates_of,
     .fields = constant_fields,
     .field_count = KNEE_COUNT_OF(constant_fields)},
    KNEE_ROWS_BY(changed_row, "changed", changed_fields, "the same, beside the shipped ones"),
    KNEE_ROWS_BY(product_row, "rows", product_fields, "one row per product"),
};
static const struct knee_view views[] = {
    {.list = "rows", .most = SHOWN, .pick = shown},
    {.list = "changed", .tier = FULL},
};

/* ---- Sentences ---- */

static void say_headline(const REPORT *report, struct knee_said *said)
{
    double speed = report->fit->speed;
    if (fabs(speed - 1) < ALIKE) {
        knee_text_printf(&said->headline, "Healthy: this %s is as fast as knee assumes.",
                         report->gpu->name);
        return;
    }
    knee_text_printf(&said->headline, "This %s is %s %s than knee assumes.", report->gpu->name,
                     SAY_SHARE(speed > 1 ? speed - 1 : 1 - speed), speed > 1 ? "faster" : "slower");
    knee_text_puts(&said->next, "knee bench --gemm --calibrate mine.yaml | knee plan --rates "
                                "mine.yaml ...");
}

static void say_notes(const REPORT *report, struct knee_said *said)
{
    const struct knee_timed_products *gemm = report->gemm;
    if (gemm->others)
        knee_text_printf(&said->notes, "%zu products of other types were not used\n", gemm->others);
    if (gemm->damaged)
        knee_text_printf(&said->notes, "%zu rows cannot be read, the first in line %zu\n",
                         gemm->damaged, gemm->first_line);
}

static void say(const void *result, struct knee_said *said)
{
    const REPORT *report = result;
    const FIT *fit = report->fit;
    knee_text_printf(&said->title, "%s, %zu products timed alone", report->gpu->name, fit->count);
    say_headline(report, said);
    if (fit->of[KNEE_16BIT])
        knee_text_printf(
            &said->reason, "Large 16-bit products reach %s of the peak; knee assumes %s.",
            SAY_SHARE(fit->machine.rates.gemm_16bit), SAY_SHARE(fit->as_known.rates.gemm_16bit));
    knee_text_printf(&said->effect, "Median error of the model: %s before, %s after the fit",
                     SAY_SHARE(fit->shipped), SAY_SHARE(fit->fitted));
    if (!isnan(fit->left_out))
        knee_text_printf(&said->effect, ", %s on products left out", SAY_SHARE(fit->left_out));
    knee_text_puts(&said->effect, ".");
    say_notes(report, said);
}

const struct knee_answer_type knee_gemm_answer = {
    .schema = "knee.gemm/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};

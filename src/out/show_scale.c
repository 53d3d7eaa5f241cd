/* SPDX-License-Identifier: MIT */
/* A job's own curve: what to do, the measured counts, the forecast, the suspects, what was read. */
#include "base/slice.h"
#include "judge/judge.h"
#include "knee_scale.h"
#include "out/json.h"
#include "out/plot.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- The sentence ---- */

static const struct knee_scale_row *last_row(const struct knee_scale_answer *a)
{
    return a->row_count ? &a->rows[a->row_count - 1] : NULL;
}

static void say_step(const struct knee_scale_row *row, struct knee_text *text)
{
    knee_text_printf(text, "%g workers take %s a step", row->workers,
                     knee_human(row->step_s, KNEE_UNIT_SECONDS).s);
    if (row->tokens_per_s > 0)
        knee_text_printf(text, ", %s tokens/s", knee_human(row->tokens_per_s, KNEE_UNIT_COUNT).s);
    if (!isnan(row->model.mfu_causal))
        knee_text_printf(text, ", %s MFU (%s with full attention)",
                         knee_percent(row->model.mfu_causal).s,
                         knee_percent(row->model.mfu_full).s);
    knee_text_puts(text, ".");
}

static struct knee_sure model_sure(const struct knee_scale_model *m)
{
    return (struct knee_sure){m->low_s, m->high_s};
}

static struct knee_word model_word(const struct knee_scale_model *m)
{
    return knee_surely(m->step_s, model_sure(m), KNEE_UNIT_SECONDS);
}

static void say_one(const struct knee_scale_answer *a, struct knee_text *text)
{
    const struct knee_scale_row *row = last_row(a);
    const struct knee_scale_model *m = &row->model;
    double over = row->step_s / m->step_s;
    if (a->advice == KNEE_ADVICE_SLOW)
        knee_text_printf(
            text,
            "The job is %.2f times slower than it should be: look for the cause before "
            "asking for more workers. ",
            over);
    if (a->advice == KNEE_ADVICE_FINE)
        knee_text_puts(text, "The job runs as it should. ");
    if (a->advice == KNEE_ADVICE_FAST)
        knee_text_puts(text, "The job is faster than the model allows: check the inputs, the model "
                             "or the batch may not be what ran. ");
    if (a->advice == KNEE_ADVICE_MEASURE)
        knee_text_puts(text, "One worker count and nothing to hold it against. ");
    say_step(row, text);
    if (isnan(m->step_s))
        knee_text_printf(text, " Still needed for the model: %s. ", m->missing);
    else
        knee_text_printf(text, " The model says %s, measured over model %.2f. ", model_word(m).s,
                         over);
    knee_text_puts(text, "A second run at half as many workers, or twice, would show the curve.");
}

static void say_stop(const struct knee_scale_answer *a, const struct knee_scale_ask *ask,
                     struct knee_text *text)
{
    if (ask->refused[0]) {
        knee_text_printf(text, "Do not ask for %g: %s. ", ask->at.workers, ask->refused);
        return;
    }
    knee_text_printf(text, "Do not ask for %g: %s of its speed-up is there at %g", ask->at.workers,
                     knee_percent(fmin(1, a->advice_share)).s, a->advice_workers);
    if (a->advice_share > 1)
        knee_text_puts(text, ", which is even faster");
    knee_text_printf(text, " (E(%g) = %.2f). ", ask->at.workers, ask->efficiency);
}

static void say_several(const struct knee_scale_answer *a, struct knee_text *text)
{
    const struct knee_scale_ask *ask =
        a->advice_ask < a->ask_count ? &a->asks[a->advice_ask] : NULL;
    if (ask && a->advice == KNEE_ADVICE_STOP)
        say_stop(a, ask, text);
    else if (ask && a->advice == KNEE_ADVICE_GROW)
        knee_text_printf(
            text, "%g workers still pay: %.2f times the speed of %g, E(%g) = %.2f against %g. ",
            ask->at.workers, 1 / a->advice_share, a->advice_workers, ask->at.workers,
            ask->efficiency, a->base_workers);
    say_step(last_row(a), text);
    knee_text_printf(text, " E(%g) = %.3f against %g workers, the smallest count measured.",
                     last_row(a)->workers, last_row(a)->efficiency, a->base_workers);
    if (!isnan(a->measured_knee))
        knee_text_printf(text, " Measured knee (E >= %g): %g.", a->question.tolerance,
                         a->measured_knee);
    if (!isnan(a->predicted_knee))
        knee_text_printf(text, " Knee by the fit: %g.", a->predicted_knee);
    else
        knee_text_printf(text, " The fit sees no knee up to %g workers.", a->searched_workers);
    knee_text_printf(text, " Scaling is %s%s.", knee_scale_kind_name(a->fit.kind),
                     !a->fit.kind_assumed  ? ""
                     : a->fit.kind_by_work ? " (told from a worker's compute: the batches are not "
                                             "known)"
                                           : " (told from the steps: the batches are not known)");
}

static void say_batch(const struct knee_scale_answer *a, struct knee_text *text)
{
    const struct knee_batch_fit *b = &a->batch;
    if (b->runs < 2 || !(b->large_batch > b->small_batch))
        return;
    if (b->behind)
        knee_text_printf(
            text,
            " Large-batch breakdown: after %s samples the loss of batch %s is %.4g, of "
            "batch %s %.4g.",
            knee_human(b->equal_samples, KNEE_UNIT_COUNT).s,
            knee_human(b->large_batch, KNEE_UNIT_COUNT).s, b->large_loss,
            knee_human(b->small_batch, KNEE_UNIT_COUNT).s, b->small_loss);
    if (!isnan(b->critical))
        knee_text_printf(
            text, " Critical batch %s (%s to %s).", knee_human(b->critical, KNEE_UNIT_COUNT).s,
            knee_human(b->low, KNEE_UNIT_COUNT).s, knee_human(b->high, KNEE_UNIT_COUNT).s);
}

/* Outliers with a rhythm, once they cost something. */
static void say_rhythm(const struct knee_train_log *log, struct knee_text *text)
{
    if (!log || !log->counts.outliers || isnan(log->outlier_every))
        return;
    if (log->outlier_share >= KNEE_WORTH_IT)
        knee_text_printf(text,
                         " Every %g steps one takes %s longer, %s of the time: checkpoint, "
                         "evaluation or collection.",
                         log->outlier_every, knee_human(log->outlier_s, KNEE_UNIT_SECONDS).s,
                         knee_percent(log->outlier_share).s);
}

static void say_measure(const char *measure, struct knee_text *text)
{
    size_t length = strlen(measure);
    bool asks = length && measure[length - 1] == '?';
    knee_text_printf(text, " Measure next: %s%s", measure, asks ? "" : ".");
}

/* What was confirmed, and the measurement that would make it sure; else that of the first suspect
 * that is still open. */
static void say_suspects(const struct knee_scale_answer *a, struct knee_text *text)
{
    const char *confirmed = NULL, *open = NULL;
    for (size_t i = 0; i < KNEE_SCALE_SUSPECTS; i++) {
        const struct knee_scale_suspect *s = &a->suspects[i];
        if (s->standing == KNEE_CONFIRMED) {
            knee_text_printf(text, " Suspect: %s (%s).", knee_suspect_name(s->suspect), s->rule);
            confirmed = confirmed ? confirmed : s->measure;
        }
        if (s->standing == KNEE_OPEN && !open)
            open = s->measure;
    }
    bool ask = a->advice == KNEE_ADVICE_SLOW || a->row_count == 0;
    if (ask && (confirmed || open))
        say_measure(confirmed ? confirmed : open, text);
}

static void sentence(const struct knee_scale_answer *a, struct knee_text *text)
{
    if (a->advice == KNEE_ADVICE_BATCH && a->row_count)
        knee_text_puts(text,
                       "Watch the loss before adding workers: the statistical wall is near. ");
    if (a->row_count && a->several)
        say_several(a, text);
    else if (a->row_count)
        say_one(a, text);
    if (a->row_count)
        say_rhythm(last_row(a)->log, text);
    say_batch(a, text);
    say_suspects(a, text);
}

/* ---- Tables ---- */

static void number_or_dash(struct knee_table *table, double value, enum knee_unit unit)
{
    if (isnan(value))
        knee_table_cell(table, "-");
    else
        knee_table_number(table, value, unit);
}

static void surely_or_dash(struct knee_table *table, double value, struct knee_sure sure,
                           enum knee_unit unit)
{
    knee_table_cell(table, "%s", isnan(value) ? "-" : knee_surely(value, sure, unit).s);
}

static void factor_or_dash(struct knee_table *table, const char *fmt, double value)
{
    if (isnan(value))
        knee_table_cell(table, "-");
    else if (strcmp(fmt, "%.3f") == 0)
        knee_table_cell(table, "%.3f", value);
    else
        knee_table_cell(table, "%.2f", value);
}

static void points_table(const struct knee_scale_answer *a, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {"workers",  "step",  "p95",   "batch", "tokens/s", "E(K)",
                                        "speed-up", "model", "ratio", "R",     "source"};
    struct knee_table table;
    knee_table_init(&table, "rrrrrrrrrrl", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < a->row_count; i++) {
        const struct knee_scale_row *row = &a->rows[i];
        knee_table_cell(&table, "%g", row->workers);
        knee_table_number(&table, row->step_s, KNEE_UNIT_SECONDS);
        number_or_dash(&table, row->p95_s, KNEE_UNIT_SECONDS);
        number_or_dash(&table, row->batch, KNEE_UNIT_COUNT);
        number_or_dash(&table, row->tokens_per_s, KNEE_UNIT_COUNT);
        factor_or_dash(&table, "%.3f", row->efficiency);
        factor_or_dash(&table, "%.2f", row->speed_up);
        surely_or_dash(&table, row->model.step_s, model_sure(&row->model), KNEE_UNIT_SECONDS);
        factor_or_dash(&table, "%.2f", row->step_s / row->model.step_s);
        factor_or_dash(&table, "%.3f", row->ratio);
        knee_table_cell(&table, "%s", knee_safe(row->source, 40).s);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void asks_table(const struct knee_scale_answer *a, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {"forecast", "step",   "low", "high", "E(K)",
                                        "speed-up", "Amdahl", "USL", "time", "cost"};
    struct knee_table table;
    knee_table_init(&table, "rrrrrrrrrr", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < a->ask_count; i++) {
        const struct knee_scale_ask *ask = &a->asks[i];
        knee_table_cell(&table, "%g", ask->at.workers);
        number_or_dash(&table, ask->at.step_s, KNEE_UNIT_SECONDS);
        number_or_dash(&table, ask->at.low_s, KNEE_UNIT_SECONDS);
        number_or_dash(&table, ask->at.high_s, KNEE_UNIT_SECONDS);
        if (isnan(ask->efficiency))
            knee_table_cell(&table, "-");
        else
            knee_table_cell(&table, "%.3f (%.3f to %.3f)", ask->efficiency,
                            ask->efficiency_sure.low, ask->efficiency_sure.high);
        factor_or_dash(&table, "%.2f", ask->speed_up);
        number_or_dash(&table, ask->at.amdahl_s, KNEE_UNIT_SECONDS);
        number_or_dash(&table, ask->at.usl_s, KNEE_UNIT_SECONDS);
        surely_or_dash(&table, ask->time_s, ask->time_sure, KNEE_UNIT_SECONDS);
        surely_or_dash(&table, ask->cost, ask->cost_sure, KNEE_UNIT_DOLLARS);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
    for (size_t i = 0; i < a->ask_count; i++)
        if (a->asks[i].refused[0])
            knee_text_printf(text, "  no forecast for %g: %s\n", a->asks[i].at.workers,
                             a->asks[i].refused);
        else if (knee_shows(a->asks[i].at.unhidden_s / a->asks[i].at.step_s))
            knee_text_printf(text,
                             "  at %g %s of communication no longer hide behind compute, which "
                             "the steps measured cannot show\n",
                             a->asks[i].at.workers,
                             knee_human(a->asks[i].at.unhidden_s, KNEE_UNIT_SECONDS).s);
}

static void terms_table(const struct knee_scale_answer *a, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    struct knee_table table;
    double sum = 0;
    knee_table_init(&table, "lrr", text->alloc);
    knee_table_cell(&table, "fit at %g workers", a->fit.points[a->fit.count - 1].workers);
    knee_table_cell(&table, "per step");
    knee_table_cell(&table, "share");
    for (int t = 0; t < KNEE_SCALE_TERMS; t++)
        sum += a->fit.term_s[t];
    for (int t = 0; t < KNEE_SCALE_TERMS; t++) {
        if (!knee_shows(a->fit.term_s[t] / sum))
            continue;
        knee_table_cell(&table, "%s", knee_scale_term_name((enum knee_scale_term)t));
        knee_table_number(&table, a->fit.term_s[t], KNEE_UNIT_SECONDS);
        knee_table_cell(&table, "%s", knee_percent(a->fit.term_s[t] / sum).s);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
    knee_text_printf(text, "  the terms are off by %s (root mean square)",
                     knee_percent(a->fit.misfit).s);
    if (a->fit.strange)
        knee_text_puts(text, ": they do not describe this curve, which is carried on as it went");
    if (!isnan(a->fit.noise))
        knee_text_printf(text, "; repeated runs spread by %s", knee_percent(a->fit.noise).s);
    knee_text_puts(text, "\n");
}

static void suspects_table(const struct knee_scale_answer *a, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {"suspect", "is", "because, or what would tell"};
    struct knee_table table;
    knee_table_init(&table, "lll", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < KNEE_SCALE_SUSPECTS; i++) {
        const struct knee_scale_suspect *s = &a->suspects[i];
        knee_table_cell(&table, "%s", knee_suspect_name(s->suspect));
        knee_table_cell(&table, "%s", knee_standing_name(s->standing));
        knee_table_cell(&table, "%s", s->standing == KNEE_OPEN ? s->measure : s->rule);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void rules_table(enum knee_format format, const struct knee_style *style,
                        struct knee_text *text)
{
    static const char *const names[] = {"rule", "says", "suspect"};
    struct knee_table table;
    enum knee_suspect suspect;
    enum knee_standing says;
    const char *words;
    knee_table_init(&table, "lll", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; (words = knee_symptom_rule(i, &suspect, &says)); i++) {
        knee_table_cell(&table, "%s", words);
        knee_table_cell(&table, "%s", knee_standing_name(says));
        knee_table_cell(&table, "%s", knee_suspect_name(suspect));
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

/* ---- What was read ---- */

static void say_count(struct knee_text *text, size_t count, const char *what)
{
    if (count > 0)
        knee_text_printf(text, ", %zu %s", count, what);
}

static void say_log(const struct knee_train_log *log, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc};
    const struct knee_train_counts *c = &log->counts;
    knee_text_printf(&words, "%s: %s, %zu steps timed (%s), of %zu lines %zu used and %zu facts",
                     knee_safe(log->name, 60).s, log->format, log->timed,
                     knee_train_timing_name(log->timing), c->lines, c->used, c->facts);
    if (log->workers_from[0])
        knee_text_printf(&words, "; workers by %s", log->workers_from);
    say_count(&words, c->warm_up, "of warm-up left out");
    say_count(&words, c->duplicates, "duplicates");
    say_count(&words, c->other_ranks, "of other ranks");
    say_count(&words, c->runs > 1 ? c->runs - 1 : 0, "restarts");
    say_count(&words, c->left_out, "of other runs left out");
    say_count(&words, c->unusable, "unusable");
    say_count(&words, c->cut, "cut lines");
    say_count(&words, c->thinned, "thinned out");
    if (c->outliers > 0)
        knee_text_printf(&words, ", %zu outliers of %s beyond the median", c->outliers,
                         knee_human(log->outlier_s, KNEE_UNIT_SECONDS).s);
    if (!isnan(log->outlier_every))
        knee_text_printf(&words, " every %g steps", log->outlier_every);
    if (log->alternates)
        knee_text_puts(&words, ", long and short steps take turns: the mean of both counts");
    knee_text_puts(&words, ".");
    knee_say(&words, format, style, text);
}

static void plot_curve(const struct knee_scale_answer *a, const struct knee_style *style,
                       struct knee_text *text)
{
    double x[KNEE_SCALE_POINTS + KNEE_SCALE_FORECASTS], y[KNEE_SCALE_POINTS + KNEE_SCALE_FORECASTS];
    size_t count = 0;
    double top = 1;
    for (size_t i = 0; i < a->row_count && count < KNEE_SCALE_POINTS; i++) {
        if (count > 0 && a->rows[i].workers == x[count - 1])
            continue;
        x[count] = a->rows[i].workers;
        y[count++] = a->rows[i].efficiency;
    }
    for (size_t i = 0; i < a->ask_count; i++)
        if (!a->asks[i].refused[0] && count > 0 && a->asks[i].at.workers > x[count - 1]) {
            x[count] = a->asks[i].at.workers;
            y[count++] = a->asks[i].efficiency;
        }
    for (size_t i = 0; i < count; i++)
        top = fmax(top, y[i]);
    struct knee_plot plot = {.x = x,
                             .y = y,
                             .count = count,
                             .y_max = 1.1 * top,
                             .level = a->question.tolerance,
                             .mark = last_row(a)->workers,
                             .title = "E(K)",
                             .level_name = "tolerance",
                             .mark_name = "last measured",
                             .x_name = "workers"};
    knee_plot_write(&plot, style, text);
}

static void write_more(const struct knee_scale_answer *a, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    if (a->several) {
        knee_text_puts(text, "\n");
        terms_table(a, format, style, text);
        if (format == KNEE_TEXT) {
            knee_text_puts(text, "\n");
            plot_curve(a, style, text);
        }
    } else {
        knee_text_puts(text, a->row_count ? "\n" : "");
        suspects_table(a, format, style, text);
    }
    if (a->row_count == 0) {
        knee_text_puts(text, "\n");
        rules_table(format, style, text);
    }
    for (size_t i = 0; i < a->row_count; i++)
        if (a->rows[i].log) {
            knee_text_puts(text, i == 0 || !a->rows[i - 1].log ? "\n" : "");
            say_log(a->rows[i].log, format, style, text);
        }
}

static void write_text(const struct knee_scale_answer *a, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct knee_text verdict = {.alloc = text->alloc};
    sentence(a, &verdict);
    knee_say(&verdict, format, style, text);
    knee_text_puts(text, "\n");
    if (a->row_count)
        points_table(a, format, style, text);
    if (a->several) {
        knee_text_puts(text, "\n");
        asks_table(a, format, style, text);
    }
    if (!style->brief)
        write_more(a, format, style, text);
    if (a->left_out)
        knee_text_puts(text, a->left_out);
}

/* ---- CSV and JSON ---- */

static void csv_sure(struct knee_table *table, struct knee_sure efficiency, struct knee_sure model)
{
    const double ends[] = {efficiency.low, efficiency.high, model.low, model.high};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        knee_table_exact(table, ends[i]);
}

static void write_csv(const struct knee_scale_answer *a, const struct knee_style *style,
                      struct knee_text *text)
{
    static const char *const names[] = {"kind",
                                        "workers",
                                        "step_s",
                                        "low_s",
                                        "high_s",
                                        "batch",
                                        "p95_s",
                                        "efficiency",
                                        "speed_up",
                                        "tokens_per_s",
                                        "predicted_step_s",
                                        "source",
                                        "low_efficiency",
                                        "high_efficiency",
                                        "low_predicted_step_s",
                                        "high_predicted_step_s"};
    struct knee_table table;
    knee_table_init(&table, "lrrrrrrrrrrlrrrr", text->alloc);
    KNEE_HEADS(&table, names);
    for (size_t i = 0; i < a->row_count; i++) {
        const struct knee_scale_row *r = &a->rows[i];
        const double numbers[] = {r->workers,      r->step_s,      NAN,           NAN,
                                  r->batch,        r->p95_s,       r->efficiency, r->speed_up,
                                  r->tokens_per_s, r->model.step_s};
        knee_table_cell(&table, "measured");
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            knee_table_exact(&table, numbers[k]);
        knee_table_cell(&table, "%s", r->source);
        csv_sure(&table, (struct knee_sure){NAN, NAN}, model_sure(&r->model));
    }
    for (size_t i = 0; i < a->ask_count; i++) {
        const struct knee_scale_ask *k = &a->asks[i];
        const double numbers[] = {k->at.workers, k->at.step_s, k->at.low_s,   k->at.high_s,
                                  k->at.batch,   NAN,          k->efficiency, k->speed_up,
                                  NAN,           NAN};
        knee_table_cell(&table, "forecast");
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
            knee_table_exact(&table, numbers[n]);
        knee_table_cell(&table, "%s", k->refused);
        csv_sure(&table, k->efficiency_sure, (struct knee_sure){NAN, NAN});
    }
    knee_table_write(&table, KNEE_CSV, style, text);
    knee_table_release(&table);
}

static void json_log(struct knee_json *json, const struct knee_train_log *log)
{
    const struct knee_train_counts *c = &log->counts;
    const struct {
        const char *name;
        size_t value;
    } counts[] = {{"lines", c->lines},
                  {"used", c->used},
                  {"facts", c->facts},
                  {"timed", log->timed},
                  {"warm_up", c->warm_up},
                  {"duplicates", c->duplicates},
                  {"other_ranks", c->other_ranks},
                  {"runs", c->runs},
                  {"left_out", c->left_out},
                  {"unusable", c->unusable},
                  {"cut", c->cut},
                  {"thinned", c->thinned},
                  {"outliers", c->outliers}};
    knee_json_open_flat(json, "log", '{');
    knee_json_string(json, "format", log->format);
    knee_json_string(json, "timed_by", knee_train_timing_name(log->timing));
    knee_json_string(json, "workers_from", log->workers_from);
    knee_json_number(json, "outlier_every", log->outlier_every);
    knee_json_number(json, "outlier_s", log->outlier_s);
    knee_json_number(json, "tflops", log->tflops);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        knee_json_whole(json, counts[i].name, (int64_t)counts[i].value);
    knee_json_close(json, '}');
}

/* What the log says about its job. */
static void json_job(struct knee_json *json, const struct knee_train_log *log)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"workers", log->workers},
                   {"global_batch", log->batch},
                   {"micro_batch", log->micro_batch},
                   {"seq", log->seq},
                   {"layers", log->shape.layers},
                   {"hidden", log->shape.hidden},
                   {"heads", log->shape.heads},
                   {"tp", log->plan.tp},
                   {"pp", log->plan.pp},
                   {"cp", log->plan.cp},
                   {"ep", log->plan.ep}};
    knee_json_open_flat(json, "job", '{');
    knee_json_string(json, "gpu", log->gpu);
    knee_json_string(json, "model", log->model);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        knee_json_number(json, numbers[i].name, numbers[i].value);
    knee_json_close(json, '}');
}

static void json_points(struct knee_json *json, const struct knee_scale_answer *a)
{
    knee_json_open(json, "points", '[');
    for (size_t i = 0; i < a->row_count; i++) {
        const struct knee_scale_row *r = &a->rows[i];
        knee_json_open(json, NULL, '{');
        knee_json_number(json, "workers", r->workers);
        knee_json_number(json, "step_s", r->step_s);
        knee_json_number(json, "p95_s", r->p95_s);
        knee_json_number(json, "batch", r->batch);
        knee_json_number(json, "tokens_per_s", r->tokens_per_s);
        knee_json_number(json, "efficiency", r->efficiency);
        knee_json_number(json, "speed_up", r->speed_up);
        knee_json_number(json, "R", r->ratio);
        knee_json_number(json, "gamma", r->gamma);
        knee_json_number(json, "predicted_step_s", r->model.step_s);
        knee_json_number(json, "low_s", r->model.low_s);
        knee_json_number(json, "high_s", r->model.high_s);
        knee_json_number(json, "mfu_full", r->model.mfu_full);
        knee_json_number(json, "mfu_causal", r->model.mfu_causal);
        knee_json_string(json, "missing", r->model.missing);
        knee_json_string(json, "source", r->source);
        if (r->log) {
            json_log(json, r->log);
            json_job(json, r->log);
        }
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_forecast(struct knee_json *json, const struct knee_scale_answer *a)
{
    knee_json_open(json, "forecast", '[');
    for (size_t i = 0; i < a->ask_count; i++) {
        const struct knee_scale_ask *k = &a->asks[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_number(json, "workers", k->at.workers);
        knee_json_number(json, "step_s", k->at.step_s);
        knee_json_number(json, "low_s", k->at.low_s);
        knee_json_number(json, "high_s", k->at.high_s);
        knee_json_sure(json, "efficiency", k->efficiency, k->efficiency_sure);
        knee_json_number(json, "speed_up", k->speed_up);
        knee_json_number(json, "amdahl_s", k->at.amdahl_s);
        knee_json_number(json, "usl_s", k->at.usl_s);
        knee_json_number(json, "unhidden_s", k->at.unhidden_s);
        knee_json_sure(json, "time_s", k->time_s, k->time_sure);
        knee_json_sure(json, "cost", k->cost, k->cost_sure);
        knee_json_string(json, "refused", k->refused);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_fit(struct knee_json *json, const struct knee_scale_answer *a)
{
    knee_json_open(json, "fit", '{');
    knee_json_string(json, "scaling", knee_scale_kind_name(a->fit.kind));
    knee_json_bool(json, "scaling_assumed", a->fit.kind_assumed);
    knee_json_bool(json, "scaling_told_by_compute", a->fit.kind_by_work);
    knee_json_number(json, "noise", a->fit.noise);
    knee_json_number(json, "misfit", a->fit.misfit);
    knee_json_bool(json, "strange", a->fit.strange);
    knee_json_open_flat(json, "terms_s", '{');
    for (int t = 0; t < KNEE_SCALE_TERMS; t++)
        knee_json_number(json, knee_scale_term_name((enum knee_scale_term)t), a->fit.term_s[t]);
    knee_json_close(json, '}');
    knee_json_close(json, '}');
}

static void json_rest(struct knee_json *json, const struct knee_scale_answer *a)
{
    knee_json_open_flat(json, "knee", '{');
    knee_json_number(json, "measured_workers", a->measured_knee);
    knee_json_number(json, "predicted_workers", a->predicted_knee);
    knee_json_number(json, "searched_workers", a->searched_workers);
    knee_json_number(json, "tolerance", a->question.tolerance);
    knee_json_close(json, '}');
    knee_json_open_flat(json, "batch", '{');
    knee_json_number(json, "critical", a->batch.runs ? a->batch.critical : NAN);
    knee_json_number(json, "low", a->batch.runs ? a->batch.low : NAN);
    knee_json_number(json, "high", a->batch.runs ? a->batch.high : NAN);
    knee_json_bool(json, "behind", a->batch.behind);
    knee_json_open_flat(json, "by_loss", '[');
    for (size_t i = 0; i < a->batch.losses; i++) {
        knee_json_open_flat(json, NULL, '{');
        knee_json_number(json, "loss", a->batch.at_loss[i]);
        knee_json_number(json, "critical", a->batch.critical_at[i]);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
    knee_json_close(json, '}');
    knee_json_open(json, "suspects", '[');
    for (size_t i = 0; i < KNEE_SCALE_SUSPECTS; i++) {
        const struct knee_scale_suspect *s = &a->suspects[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "suspect", knee_suspect_name(s->suspect));
        knee_json_string(json, "standing", knee_standing_name(s->standing));
        knee_json_string(json, "rule", s->rule);
        knee_json_string(json, "measure", s->measure);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

/* One string for each line. */
static void json_left_out(struct knee_json *json, const char *lines)
{
    struct knee_slice rest = knee_slice_of(lines ? lines : ""), line;
    knee_json_open(json, "left_out", '[');
    while (knee_slice_line(&rest, &line)) {
        struct knee_text words = {.alloc = json->text->alloc};
        line = knee_slice_trim(line);
        knee_text_add(&words, line.at, line.length);
        knee_json_words(json, NULL, &words);
    }
    knee_json_close(json, ']');
}

static const char *advice_name(enum knee_scale_advice advice)
{
    static const char *const names[] = {"measure", "as expected", "too slow",   "too fast",
                                        "grow",    "stop",        "batch limit"};
    return advice <= KNEE_ADVICE_BATCH ? names[advice] : "?";
}

static void write_json(const struct knee_scale_answer *a, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    struct knee_text verdict = {.alloc = text->alloc};
    sentence(a, &verdict);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.scale/1");
    knee_json_words(&json, "sentence", &verdict);
    knee_json_open_flat(&json, "verdict", '{');
    knee_json_string(&json, "advice", advice_name(a->advice));
    knee_json_string(&json, "wall", knee_wall_name(a->wall));
    knee_json_number(&json, "workers", a->advice_workers);
    knee_json_number(&json, "share", a->advice_share);
    knee_json_close(&json, '}');
    knee_json_number(&json, "base_workers", a->row_count ? a->base_workers : NAN);
    json_points(&json, a);
    json_rest(&json, a);
    json_forecast(&json, a);
    if (a->several)
        json_fit(&json, a);
    json_left_out(&json, a->left_out);
    knee_json_close(&json, '}');
    knee_text_puts(text, "\n");
}

void knee_write_scale(const struct knee_scale_answer *answer, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(answer, text);
    else if (format == KNEE_CSV)
        write_csv(answer, style, text);
    else
        write_text(answer, format, style, text);
}

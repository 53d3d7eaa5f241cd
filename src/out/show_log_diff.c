/* SPDX-License-Identifier: MIT */
/* Two training logs compared, as text, JSON (schema knee.diff-logs/1), CSV or Markdown. */
#include "knee_scale.h"
#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>

#define SECONDS(value) knee_human(value, KNEE_UNIT_SECONDS).s

static void say_changes(const struct knee_log_comparison *c, struct knee_text *text)
{
    for (size_t i = 0; i < c->change_count; i++)
        knee_text_printf(text, "%s%s %s -> %s", i ? ", " : " Changed: ", c->changes[i].what,
                         knee_safe(c->changes[i].before, 40).s,
                         knee_safe(c->changes[i].after, 40).s);
    if (c->more_changes)
        knee_text_printf(text, " and %zu more", c->more_changes);
    if (c->change_count)
        knee_text_puts(text, ".");
    else if (c->significant)
        knee_text_puts(text,
                       " Nothing that the logs say of their jobs changed: look at the machine "
                       "(knee doctor), or record both and compare the traces (knee diff).");
}

static void sentence(const struct knee_log_comparison *c, struct knee_text *text)
{
    bool same_work = !knee_shows(fabs(c->work - 1));
    knee_text_printf(text, "The step went from %s to %s", SECONDS(c->before.step_s),
                     SECONDS(c->after.step_s));
    if (!same_work)
        knee_text_printf(
            text, ", with %.3g times the work for each worker: at equal work it is %s %s", c->work,
            knee_percent(fabs(c->slower)).s, c->slower < 0 ? "shorter" : "longer");
    else
        knee_text_printf(text, ", %s %s", knee_percent(fabs(c->slower)).s,
                         c->slower < 0 ? "shorter" : "longer");
    if (isnan(c->noise))
        knee_text_puts(text, "; too few steps to say whether by chance.");
    else if (c->significant)
        knee_text_printf(text, ", more than by chance (%s).", knee_percent(c->chance).s);
    else
        knee_text_printf(text, ", no more than by chance (%s).", knee_percent(c->chance).s);
    say_changes(c, text);
}

/* ---- Tables ---- */

static void put_row(struct knee_table *table, const char *what, double before, double after,
                    enum knee_unit unit)
{
    if (isnan(before) && isnan(after))
        return;
    knee_table_cell(table, "%s", what);
    for (int side = 0; side < 2; side++) {
        double value = side ? after : before;
        if (isnan(value))
            knee_table_cell(table, "-");
        else
            knee_table_number(table, value, unit);
    }
    if (isnan(after / before))
        knee_table_cell(table, "-");
    else
        knee_table_cell(table, "%s%s", after < before ? "-" : "+",
                        knee_percent(fabs(after / before - 1)).s);
}

static void put_outliers(struct knee_table *table, double before, double after)
{
    if (!(before > 0) && !(after > 0))
        return;
    knee_table_cell(table, "time in outliers");
    knee_table_cell(table, "%s", knee_percent(before).s);
    knee_table_cell(table, "%s", knee_percent(after).s);
    knee_table_cell(table, "-");
}

static void write_text(const struct knee_log_comparison *c, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    static const char *const names[] = {"", "before", "after", "change"};
    const struct knee_train_log *b = c->before.log, *a = c->after.log;
    struct knee_text words = {.alloc = text->alloc};
    struct knee_table table;
    sentence(c, &words);
    knee_say(&words, format, style, text);
    knee_text_puts(text, "\n");
    knee_table_init(&table, "lrrr", text->alloc);
    KNEE_HEADS(&table, names);
    put_row(&table, "step", c->before.step_s, c->after.step_s, KNEE_UNIT_SECONDS);
    put_row(&table, "p95", b->p95_s, a->p95_s, KNEE_UNIT_SECONDS);
    put_row(&table, "tokens/s", b->tokens_per_s, a->tokens_per_s, KNEE_UNIT_COUNT);
    put_row(&table, "TFLOP/s printed", b->tflops, a->tflops, KNEE_UNIT_COUNT);
    put_outliers(&table, b->outlier_share, a->outlier_share);
    put_row(&table, "steps compared", (double)c->before.steps, (double)c->after.steps,
            KNEE_UNIT_COUNT);
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

/* ---- CSV and JSON ---- */

static void write_csv(const struct knee_log_comparison *c, const struct knee_style *style,
                      struct knee_text *text)
{
    static const char *const names[] = {"what", "before", "after"};
    struct knee_table table;
    knee_table_init(&table, "lrr", text->alloc);
    KNEE_HEADS(&table, names);
    knee_table_cell(&table, "step_s");
    knee_table_exact(&table, c->before.step_s);
    knee_table_exact(&table, c->after.step_s);
    for (size_t i = 0; i < c->change_count; i++) {
        knee_table_cell(&table, "%s", c->changes[i].what);
        knee_table_cell(&table, "%s", c->changes[i].before);
        knee_table_cell(&table, "%s", c->changes[i].after);
    }
    knee_table_write(&table, KNEE_CSV, style, text);
    knee_table_release(&table);
}

static void json_side(struct knee_json *json, const char *name, const struct knee_log_side *side)
{
    knee_json_open_flat(json, name, '{');
    knee_json_string(json, "source", side->log->name);
    knee_json_string(json, "format", side->log->format);
    knee_json_number(json, "step_s", side->step_s);
    knee_json_number(json, "error_s", side->error_s);
    knee_json_number(json, "p95_s", side->log->p95_s);
    knee_json_number(json, "tokens_per_s", side->log->tokens_per_s);
    knee_json_number(json, "outlier_share", side->log->outlier_share);
    knee_json_whole(json, "steps", (int64_t)side->steps);
    knee_json_close(json, '}');
}

static void write_json(const struct knee_log_comparison *c, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    struct knee_text words = {.alloc = text->alloc};
    sentence(c, &words);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.diff-logs/1");
    knee_json_words(&json, "sentence", &words);
    knee_json_number(&json, "longer", c->longer);
    knee_json_number(&json, "slower_at_equal_work", c->slower);
    knee_json_number(&json, "work", c->work);
    knee_json_number(&json, "noise", c->noise);
    knee_json_number(&json, "chance", c->chance);
    knee_json_bool(&json, "significant", c->significant);
    json_side(&json, "before", &c->before);
    json_side(&json, "after", &c->after);
    knee_json_open(&json, "changes", '[');
    for (size_t i = 0; i < c->change_count; i++) {
        knee_json_open_flat(&json, NULL, '{');
        knee_json_string(&json, "what", c->changes[i].what);
        knee_json_string(&json, "before", c->changes[i].before);
        knee_json_string(&json, "after", c->changes[i].after);
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_whole(&json, "more_changes", (int64_t)c->more_changes);
    knee_json_close(&json, '}');
    knee_text_puts(text, "\n");
}

void knee_write_log_comparison(const struct knee_log_comparison *comparison,
                               enum knee_format format, const struct knee_style *style,
                               struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(comparison, text);
    else if (format == KNEE_CSV)
        write_csv(comparison, style, text);
    else
        write_text(comparison, format, style, text);
}

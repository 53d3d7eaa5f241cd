/* SPDX-License-Identifier: MIT */
/* Who slows a pipeline down, as text, JSON (schema knee.replay/1), CSV or Markdown. */
#include "knee_replay.h"
#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>

#define MS(value) knee_human(value, KNEE_UNIT_SECONDS).s

/* ---- JSON ---- */

static void parts_json(struct knee_json *json, const char *key, const double *values, int32_t count)
{
    knee_json_open_flat(json, key, '[');
    for (int32_t i = 0; i < count && i < KNEE_SLOW_PARTS; i++)
        knee_json_number(json, NULL, values[i]);
    knee_json_close(json, ']');
}

static void write_json(const struct knee_slowdown *s, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.replay/1");
    knee_json_number(&json, "measured_step_s", s->measured_step_s);
    knee_json_number(&json, "replayed_step_s", s->plain_step_s);
    knee_json_number(&json, "step_s", s->even_step_s);
    knee_json_number(&json, "low_s", s->low_s);
    knee_json_number(&json, "high_s", s->high_s);
    knee_json_number(&json, "slowdown", s->slowdown);
    knee_json_string(&json, "cause", knee_slow_cause_name(s->cause));
    if (s->cause == KNEE_SLOW_STAGE)
        knee_json_whole(&json, "stage", s->stage);
    knee_json_number(&json, "variation", s->variation);
    knee_json_number(&json, "likeness", s->likeness);
    knee_json_number(&json, "worst_workers", s->worst_workers);
    knee_json_whole(&json, "ranks", (int64_t)s->ranks);
    knee_json_whole(&json, "steps", (int64_t)s->steps);
    knee_json_open_flat(&json, "by_operation", '{');
    for (int k = 0; k < KNEE_LOGGED_KINDS; k++)
        if (!isnan(s->by_kind[k]))
            knee_json_number(&json, knee_logged_name((enum knee_logged_kind)k), s->by_kind[k]);
    knee_json_close(&json, '}');
    parts_json(&json, "by_stage", s->by_stage, s->stages);
    parts_json(&json, "by_replica", s->by_replica, s->replicas);
    knee_json_open(&json, "changes", '[');
    knee_json_open_flat(&json, NULL, '{');
    knee_json_string(&json, "name", "even");
    knee_json_number(&json, "step_s", s->even_step_s);
    knee_json_number(&json, "gain", s->slowdown - 1);
    knee_json_bool(&json, "training_changes", false);
    knee_json_close(&json, '}');
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
    knee_text_puts(text, "\n");
}

/* ---- Text ---- */

static void say_cause(const struct knee_slowdown *s, struct knee_text *words)
{
    switch (s->cause) {
    case KNEE_SLOW_NONE: knee_text_puts(words, " The job is even."); break;
    case KNEE_SLOW_STAGE:
        knee_text_printf(words,
                         " Stage %d has more to do than the others: alone it makes the step %s "
                         "longer. Move layers to the other stages.",
                         (int)s->stage, knee_percent(s->by_stage[s->stage] - 1).s);
        break;
    case KNEE_SLOW_SEQUENCE:
        knee_text_printf(words,
                         " Micro-batches differ by %s, forward and backward alike: sequences of "
                         "unequal length. Balance tokens over micro-batches and replicas.",
                         knee_percent(s->variation).s);
        break;
    case KNEE_SLOW_WORKER:
        knee_text_printf(words, " The slowest 3 %% of workers alone make it %s longer.",
                         knee_percent(s->worst_workers - 1).s);
        break;
    case KNEE_SLOW_WIRE: knee_text_puts(words, " Communication varies."); break;
    default: knee_text_puts(words, " No single part explains it."); break;
    }
}

static void parts_table(const struct knee_slowdown *s, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    struct knee_table table;
    knee_table_init(&table, "lr", text->alloc);
    knee_table_cell(&table, "only this as it was");
    knee_table_cell(&table, "slowdown");
    for (int k = 0; k < KNEE_LOGGED_KINDS; k++) {
        if (isnan(s->by_kind[k]))
            continue;
        knee_table_cell(&table, "%s", knee_logged_name((enum knee_logged_kind)k));
        knee_table_cell(&table, "%.3f", s->by_kind[k]);
    }
    for (int32_t i = 0; i < s->stages && i < KNEE_SLOW_PARTS; i++) {
        knee_table_cell(&table, "stage %d", (int)i);
        knee_table_cell(&table, "%.3f", s->by_stage[i]);
    }
    knee_table_cell(&table, "slowest 3 %% of workers");
    knee_table_cell(&table, "%.3f", s->worst_workers);
    knee_table_cell(&table, "everything");
    knee_table_cell(&table, "%.3f", s->slowdown);
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void write_text(const struct knee_slowdown *s, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc}, more = {.alloc = text->alloc};
    knee_text_printf(&words,
                     "Slowdown %.3f by %s: the step takes %s and would take %s if all were "
                     "even.",
                     s->slowdown, knee_slow_cause_name(s->cause), MS(s->plain_step_s),
                     MS(s->even_step_s));
    say_cause(s, &words);
    knee_say(&words, format, style, text);
    knee_text_puts(text, "\n");
    parts_table(s, format, style, text);
    if (style->brief)
        return;
    knee_text_puts(text, "\n");
    knee_text_printf(&more,
                     "Measured step %s, without launch delays %s: %zu steps of %zu ranks (%d "
                     "replicas of %d stages), %zu operations.",
                     MS(s->measured_step_s), MS(s->plain_step_s), s->steps, s->ranks,
                     (int)s->replicas, (int)s->stages, s->ops);
    knee_say(&more, format, style, text);
}

void knee_write_slowdown(const struct knee_slowdown *slowdown, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    switch (format) {
    case KNEE_JSON: write_json(slowdown, text); break;
    case KNEE_CSV: parts_table(slowdown, format, style, text); break;
    default: write_text(slowdown, format, style, text); break;
    }
}

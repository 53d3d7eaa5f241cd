/* SPDX-License-Identifier: MIT */
/* A replay as text, JSON (schema knee.replay/1), CSV or Markdown. */
#include "judge/judge.h"
#include "knee_replay.h"
#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>

#define MS(value) knee_human(value, KNEE_UNIT_SECONDS).s

static void sentence(const struct knee_replay *r, struct knee_text *words);
static void say_graph(const struct knee_replay *r, struct knee_text *words);

/* ---- JSON ---- */

static void row_json(struct knee_json *json, const struct knee_replay_row *row)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "name", row->name);
    knee_json_number(json, "step_s", row->step_s);
    knee_json_number(json, "low_s", row->low_s);
    knee_json_number(json, "high_s", row->high_s);
    knee_json_number(json, "gain", row->gain);
    knee_json_number(json, "ratio", row->ratio);
    knee_json_string(json, "binds", knee_label_name(row->binds));
    knee_json_bool(json, "training_changes", row->training_changes);
    knee_json_bool(json, "bound", row->bound);
    knee_json_close(json, '}');
}

static void write_json(const struct knee_replay *r, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    struct knee_text words = {.alloc = text->alloc}, graph = {.alloc = text->alloc};
    sentence(r, &words);
    say_graph(r, &graph);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.replay/1");
    knee_json_words(&json, "sentence", &words);
    knee_json_words(&json, "trust", &graph);
    knee_json_number(&json, "measured_step_s", r->measured_step_s);
    knee_json_number(&json, "replayed_step_s", r->replayed_step_s);
    knee_json_number(&json, "step_s", r->all.step_s);
    knee_json_number(&json, "low_s", r->all.low_s);
    knee_json_number(&json, "high_s", r->all.high_s);
    knee_json_number(&json, "gain", r->all.gain);
    knee_json_number(&json, "ratio", r->all.ratio);
    knee_json_number(&json, "ratio_before", r->ratio);
    knee_json_string(&json, "binds", knee_label_name(r->all.binds));
    knee_json_bool(&json, "training_changes", r->all.training_changes);
    knee_json_whole(&json, "ranks", (int64_t)r->ranks);
    knee_json_number(&json, "steps", r->steps);
    knee_json_number(&json, "unexplained", r->unexplained);
    knee_json_open_flat(&json, "edges", '{');
    knee_json_whole(&json, "real", (int64_t)r->real);
    knee_json_whole(&json, "ruled", (int64_t)r->ruled);
    knee_json_whole(&json, "guessed", (int64_t)r->guessed);
    knee_json_close(&json, '}');
    knee_json_whole(&json, "collectives", (int64_t)r->collectives);
    knee_json_whole(&json, "unmet", (int64_t)r->unmet);
    knee_json_number(&json, "turn_s", r->turn_s);
    knee_json_bool(&json, "standard", r->standard);
    knee_json_open(&json, "changes", '[');
    for (size_t i = 0; i < r->row_count; i++)
        if (!r->rows[i].refused[0])
            row_json(&json, &r->rows[i]);
    knee_json_close(&json, ']');
    knee_json_open(&json, "refused", '[');
    for (size_t i = 0; i < r->row_count; i++) {
        if (!r->rows[i].refused[0])
            continue;
        knee_json_open_flat(&json, NULL, '{');
        knee_json_string(&json, "name", r->rows[i].name);
        knee_json_string(&json, "reason", r->rows[i].refused);
        knee_json_close(&json, '}');
    }
    if (r->all.refused[0]) {
        knee_json_open_flat(&json, NULL, '{');
        knee_json_string(&json, "name", "all together");
        knee_json_string(&json, "reason", r->all.refused);
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
}

/* ---- Text ---- */

static size_t count_answered(const struct knee_replay *r)
{
    size_t count = 0;
    for (size_t i = 0; i < r->row_count; i++)
        count += !r->rows[i].refused[0];
    return count;
}

static void sentence(const struct knee_replay *r, struct knee_text *words)
{
    const struct knee_replay_row *best = r->standard && r->row_count ? &r->rows[0] : &r->all;
    if (count_answered(r) == 0) {
        knee_text_printf(words, "The step takes %s. Nothing of what was asked for can be answered.",
                         MS(r->measured_step_s));
        return;
    }
    if (best->refused[0] || isnan(best->step_s)) {
        knee_text_printf(words,
                         "The step takes %s. What was asked for cannot be answered together.",
                         MS(r->measured_step_s));
        return;
    }
    if (r->standard && best->gain < KNEE_WORTH_IT) {
        knee_text_printf(
            words,
            "The step takes %s. None of the usual changes that leave training as it is "
            "makes it notably shorter.",
            MS(r->measured_step_s));
        return;
    }
    knee_text_printf(words, "%s%s: the step goes from %s to %s (%s to %s), %s work per second.",
                     r->standard ? "Best that leaves training as it is: " : "With ",
                     r->standard || r->row_count == 1 ? r->rows[0].name : "all of it",
                     MS(r->measured_step_s), MS(best->step_s), MS(best->low_s), MS(best->high_s),
                     knee_signed_percent(best->gain).s);
    if (best->training_changes)
        knee_text_puts(words, " It changes what is learned in a step.");
}

static void row_cells(struct knee_table *table, const struct knee_replay_row *row, const char *name,
                      bool exact)
{
    knee_table_cell(table, "%s", name);
    if (exact) {
        const double values[] = {row->step_s, row->low_s, row->high_s, row->gain, row->ratio};
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            knee_table_exact(table, values[i]);
    } else {
        knee_table_number(table, row->step_s, KNEE_UNIT_SECONDS);
        knee_table_number(table, row->low_s, KNEE_UNIT_SECONDS);
        knee_table_number(table, row->high_s, KNEE_UNIT_SECONDS);
        knee_table_cell(table, "%s", knee_signed_percent(row->gain).s);
        knee_table_cell(table, "%s", knee_short(row->ratio).s);
    }
    knee_table_cell(table, "%s", knee_label_name(row->binds));
    knee_table_cell(table, "%s", row->training_changes ? "yes" : "no");
}

static void rows_table(const struct knee_replay *r, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    static const char *const headers[] = {"change", "step", "low",        "high",
                                          "gain",   "R",    "most of it", "changes training"};
    struct knee_table table;
    size_t answered = 0;
    knee_table_init(&table, "lrrrrrll", text->alloc);
    KNEE_HEADS(&table, headers);
    for (size_t i = 0; i < r->row_count; i++) {
        if (r->rows[i].refused[0])
            continue;
        row_cells(&table, &r->rows[i], r->rows[i].name, format == KNEE_CSV);
        answered++;
    }
    if (!r->standard && answered > 1 && !r->all.refused[0])
        row_cells(&table, &r->all, "all together", format == KNEE_CSV);
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

/* How far the graph can be trusted. */
static void say_graph(const struct knee_replay *r, struct knee_text *words)
{
    knee_text_printf(words,
                     "Measured step %s, replayed %s (R %s), over %g steps of %zu rank%s. Of %zu "
                     "edges between streams and to the host %zu are recorded, %zu follow from what "
                     "the framework does, %zu are guessed from gaps; %s of the time nothing "
                     "explains.",
                     MS(r->measured_step_s), MS(r->replayed_step_s), knee_short(r->ratio).s,
                     r->steps, r->ranks, r->ranks == 1 ? "" : "s", r->real + r->ruled + r->guessed,
                     r->real, r->ruled, r->guessed, knee_percent(r->unexplained).s);
    if (r->unmet)
        knee_text_printf(words,
                         " %zu calls of communication lack their partners: they keep their "
                         "measured time.",
                         r->unmet);
    if (r->turn_s > 0)
        knee_text_printf(words, " The ranks share a GPU in turns of %s.", MS(r->turn_s));
}

static void write_text(const struct knee_replay *r, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc}, graph = {.alloc = text->alloc};
    sentence(r, &words);
    knee_say(&words, format, style, text);
    if (count_answered(r)) {
        knee_text_puts(text, "\n");
        rows_table(r, format, style, text);
    }
    if (style->brief)
        return;
    knee_text_puts(text, "\n");
    say_graph(r, &graph);
    knee_say(&graph, format, style, text);
    for (size_t i = 0; i < r->row_count; i++) {
        struct knee_text refused = {.alloc = text->alloc};
        if (!r->rows[i].refused[0])
            continue;
        knee_text_printf(&refused, "Not answered: %s: %s.", r->rows[i].name, r->rows[i].refused);
        knee_say(&refused, format, style, text);
    }
    if (r->all.refused[0]) {
        struct knee_text refused = {.alloc = text->alloc};
        knee_text_printf(&refused, "Not answered: all together: %s.", r->all.refused);
        knee_say(&refused, format, style, text);
    }
}

void knee_write_replay_answer(const struct knee_replay *replay, enum knee_format format,
                              const struct knee_style *style, struct knee_text *text)
{
    switch (format) {
    case KNEE_JSON: write_json(replay, text); break;
    case KNEE_CSV: rows_table(replay, format, style, text); break;
    default: write_text(replay, format, style, text); break;
    }
}

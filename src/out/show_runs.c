/* SPDX-License-Identifier: MIT */
/* Traces of several runs in one call: one row each. Several world sizes are a measured curve. */
#include "out/bar.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>

enum { LIST = 8 }; /* late ranks that are named */

static void headers(struct knee_table *table)
{
    static const char *const words[] = {"run",   "first file", "world",     "ranks",   "step",
                                        "steps", "compute",    "exposed",   "against", "R",
                                        "gamma", "cause",      "late ranks"};
    KNEE_HEADS(table, words);
}

static void late_cell(struct knee_table *table, const struct knee_trace_report *run)
{
    struct knee_text list = {.alloc = table->cells.alloc};
    size_t late = run->diagnosis->late_ranks;
    for (size_t i = 0; i < late && i < LIST; i++)
        knee_text_printf(&list, "%s%lld", i ? ", " : "",
                         (long long)run->account->ranks[run->account->stragglers[i].rank].rank);
    if (late > LIST)
        knee_text_printf(&list, " and %zu more", late - LIST);
    knee_table_cell(table, "%s", list.data ? list.data : "");
    table->cells.failed = table->cells.failed || list.failed;
    knee_text_release(&list);
}

static void row(struct knee_table *table, const struct knee_trace_report *runs, size_t i)
{
    const struct knee_diagnosis *d = runs[i].diagnosis;
    const struct knee_account *account = runs[i].account;
    knee_table_cell(table, "%zu", i + 1);
    knee_table_cell(table, "%s", knee_safe(runs[i].traces[0].file, 40).s);
    if (account->world_size > 0)
        knee_table_cell(table, "%lld", (long long)account->world_size);
    else
        knee_table_cell(table, "-");
    knee_table_cell(table, "%zu", account->rank_count);
    knee_table_number(table, d->step.wall_s, KNEE_UNIT_SECONDS);
    knee_table_cell(table, "%.0f", d->steps);
    knee_table_number(table, d->step.label_s[KNEE_COMPUTE], KNEE_UNIT_SECONDS);
    knee_table_number(table, knee_step_exposed_s(&d->step), KNEE_UNIT_SECONDS);
    knee_table_cell(table, "%s", knee_percent(runs[0].diagnosis->step.wall_s / d->step.wall_s).s);
    knee_table_cell(table, "%s", knee_short(d->ratio).s);
    knee_table_cell(table, "%s", knee_short(knee_step_gamma(&d->step)).s);
    knee_table_cell(table, "%s", knee_suspect_name(d->suspect));
    late_cell(table, &runs[i]);
}

static void say_runs(const struct knee_trace_report *runs, size_t count, bool curve,
                     struct knee_text *text)
{
    bool worlds = false;
    for (size_t i = 1; i < count; i++)
        worlds = worlds || runs[i].account->world_size != runs[0].account->world_size;
    knee_text_printf(text, "These are %zu runs%s, told apart by what their files say:", count,
                     worlds ? " (several world sizes)" : " of the same ranks");
    knee_text_puts(text, " one row each. Name the files of one for its full account. 'against' is "
                         "the first run's step over this one's");
    knee_text_puts(text, !worlds ? "."
                         : curve ? "; E(K) stands above."
                                 : ". No curve is drawn: the runs are not of one kind of GPU, or a "
                                   "trace has no steps.");
}

static void write_json(const struct knee_trace_report *runs, size_t count,
                       const struct knee_scale_answer *curve, struct knee_text *text)
{
    struct knee_style style = {0};
    knee_text_puts(text, "{\n  \"schema\": \"knee.runs/1\",\n");
    if (curve) {
        knee_text_puts(text, "  \"curve\": ");
        knee_write_scale(curve, KNEE_JSON, &style, text);
        knee_text_puts(text, "  ,\n");
    }
    knee_text_puts(text, "  \"runs\": [\n");
    for (size_t i = 0; i < count; i++) {
        if (i)
            knee_text_puts(text, ",\n");
        knee_write_trace(&runs[i], KNEE_JSON, &style, text);
    }
    knee_text_puts(text, "  ]\n}\n");
}

void knee_write_runs(const struct knee_trace_report *runs, size_t count,
                     const struct knee_scale_answer *curve, enum knee_format format,
                     const struct knee_style *style, struct knee_text *text)
{
    struct knee_text sentence = {.alloc = text->alloc};
    struct knee_table table;
    if (format == KNEE_JSON) {
        write_json(runs, count, curve, text);
        return;
    }
    if (curve && format != KNEE_CSV) {
        knee_write_scale(curve, format, style, text);
        knee_text_puts(text, "\n");
    }
    if (format != KNEE_CSV) {
        say_runs(runs, count, curve, &sentence);
        knee_say(&sentence, format, style, text);
        knee_text_puts(text, "\n");
    }
    knee_table_init(&table, "rlrrrrrrrrrll", text->alloc);
    headers(&table);
    for (size_t i = 0; i < count; i++)
        row(&table, runs, i);
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

/* SPDX-License-Identifier: MIT */
/* Two recordings compared, as text, JSON (schema knee.diff/1), CSV or Markdown. */
#include "out/bar.h"
#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <stdint.h>

#define MS(value) knee_human(value, KNEE_UNIT_SECONDS).s

struct sides {
    const struct knee_comparison *c;
    const struct knee_account *before, *after;
    const struct knee_diagnosis *before_diagnosis, *after_diagnosis;
};

static const char *kind_name(enum knee_span_kind kind)
{
    static const char *const words[] = {[KNEE_SPAN_COMPUTE] = "compute",
                                        [KNEE_SPAN_COMM] = "comm",
                                        [KNEE_SPAN_FUSED] = "fused",
                                        [KNEE_SPAN_COPY] = "copy"};
    return words[kind];
}

/* The rank on which the label is much larger than on the others, if there is one. */
static void say_where(const struct knee_account *account, const struct knee_comparison *c,
                      struct knee_text *text)
{
    if (c->largest_rank != SIZE_MAX)
        knee_text_printf(text, " It is largest on rank %lld: %s a step.",
                         (long long)account->ranks[c->largest_rank].rank, MS(c->largest_s));
}

/* Why a label moved, from what else moved with it. */
static void say_why(const struct sides *s, struct knee_text *text)
{
    const struct knee_comparison *c = s->c;
    const struct knee_account *late = s->after_diagnosis->late_ranks ? s->after : s->before;
    bool has_late = s->after_diagnosis->late_ranks || s->before_diagnosis->late_ranks;
    switch (c->label) {
    case KNEE_COMPUTE:
    case KNEE_COPY:
        for (size_t i = 0; i < c->mover_count; i++) {
            const struct knee_mover *m = &c->movers[i];
            bool fits =
                c->label == KNEE_COPY ? m->kind == KNEE_SPAN_COPY : m->kind == KNEE_SPAN_COMPUTE;
            if (!fits)
                continue;
            knee_text_printf(text, " Most of it is %s: %s -> %s in %.1f -> %.1f calls.",
                             knee_safe(m->name, 60).s, MS(m->before_s), MS(m->after_s),
                             m->before_calls, m->after_calls);
            break;
        }
        break;
    case KNEE_WAIT:
        if (has_late)
            knee_text_printf(text, " Rank %lld comes late %s: %s.",
                             (long long)late->ranks[late->stragglers[0].rank].rank,
                             late == s->after ? "now" : "no more",
                             knee_label_name(late->stragglers[0].cause));
        break;
    case KNEE_STARVED:
        knee_text_printf(text, " The loader takes %s of the host's step after %s.",
                         knee_percent(s->after_diagnosis->load_share).s,
                         knee_percent(s->before_diagnosis->load_share).s);
        break;
    case KNEE_HOST:
        knee_text_printf(text, " The host hands over %.0f kernels a step after %.0f.",
                         (double)s->after->ranks[0].kernels / s->after_diagnosis->steps,
                         (double)s->before->ranks[0].kernels / s->before_diagnosis->steps);
        say_where(c->change > 0 ? s->after : s->before, c, text);
        break;
    case KNEE_TRANSFER:
        knee_text_printf(text, " Communication in all goes from %s to %s, overlap from %s to %s.",
                         MS(c->before.comm_s), MS(c->after.comm_s),
                         knee_percent(s->before_diagnosis->overlap).s,
                         knee_percent(s->after_diagnosis->overlap).s);
        break;
    default: break;
    }
}

/* A rank that came late explains what all the others' labels only show. */
static void say_late(const struct sides *s, struct knee_text *text)
{
    bool now = s->c->late_s > 0;
    const struct knee_account *account = now ? s->after : s->before;
    const struct knee_straggler *late = &account->stragglers[0];
    double steps = now ? s->after_diagnosis->steps : s->before_diagnosis->steps;
    knee_text_printf(text, " Rank %lld makes it: %s it is %s for %s a step longer than the others.",
                     (long long)account->ranks[late->rank].rank, now ? "now" : "before",
                     knee_label_name(late->cause), MS(1e-9 * (double)late->excess_ns / steps));
}

/* What else differs, so that nobody takes another job for a slower one. */
static void say_differences(const struct sides *s, struct knee_text *text)
{
    const struct knee_account *b = s->before, *a = s->after;
    if (s->c->differs & KNEE_DIFFER_WORLD)
        knee_text_printf(text, " Not the same job: %lld against %lld ranks.",
                         (long long)(b->world_size > 0 ? b->world_size : (int64_t)b->rank_count),
                         (long long)(a->world_size > 0 ? a->world_size : (int64_t)a->rank_count));
    if (s->c->differs & KNEE_DIFFER_GPU)
        knee_text_printf(text, " Not the same GPU: %s against %s.",
                         knee_safe(b->ranks[0].trace->gpu_name, 40).s,
                         knee_safe(a->ranks[0].trace->gpu_name, 40).s);
    if (s->c->differs & KNEE_DIFFER_DTYPE)
        knee_text_printf(text, " Not the same type on the wire: %s against %s.", s->c->before_dtype,
                         s->c->after_dtype);
    if (s->c->differs & KNEE_DIFFER_STEPS)
        knee_text_printf(text, " Not as many steps: %.0f against %.0f.", s->before_diagnosis->steps,
                         s->after_diagnosis->steps);
    if (s->c->differs & KNEE_DIFFER_TRAFFIC)
        knee_text_puts(text, " The collectives of a step do not move as many bytes.");
    if (s->c->differs & KNEE_DIFFER_KERNELS)
        knee_text_puts(text, " A step does not have as many kernels.");
}

static void say_noise(const struct knee_comparison *c, struct knee_text *text)
{
    if (isnan(c->noise_s))
        knee_text_puts(text, " One step on a side: how much steps differ by chance is not known.");
    else if (!c->significant)
        knee_text_printf(text, " That is within what steps differ by chance (%s).",
                         MS(c->chance_s));
}

static void sentence(const struct sides *s, struct knee_text *text)
{
    const struct knee_comparison *c = s->c;
    if (c->as_before) {
        knee_text_printf(text, "The step is as long as before: %s against %s.", MS(c->after.wall_s),
                         MS(c->before.wall_s));
        say_differences(s, text);
        return;
    }
    knee_text_printf(text, "The step is %s: %s -> %s.",
                     knee_change_word(c->before.wall_s, c->after.wall_s).s, MS(c->before.wall_s),
                     MS(c->after.wall_s));
    say_noise(c, text);
    if (c->late_makes_it) {
        say_late(s, text);
    } else {
        knee_text_printf(text, " %s makes %s of the difference (%s -> %s).",
                         knee_label_name(c->label), knee_percent(c->share).s,
                         MS(c->before.label_s[c->label]), MS(c->after.label_s[c->label]));
        say_why(s, text);
    }
    say_differences(s, text);
}

static void labels_table(const struct sides *s, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    static const char *const headers[] = {"label", "before", "after", "change"};
    bool exact = format == KNEE_CSV;
    struct knee_table table;
    knee_table_init(&table, "lrrr", text->alloc);
    for (size_t i = 0; i < 4; i++)
        knee_table_cell(&table, "%s", headers[i]);
    for (int label = 0; label <= KNEE_LABELS; label++) {
        bool step = label == KNEE_LABELS;
        double before = step ? s->c->before.wall_s : s->c->before.label_s[label];
        double after = step ? s->c->after.wall_s : s->c->after.label_s[label];
        knee_table_cell(&table, "%s%s", step ? "step" : knee_label_name((enum knee_label)label),
                        !step && label == (int)s->c->label && !exact ? " <" : "");
        if (exact) {
            knee_table_exact(&table, before);
            knee_table_exact(&table, after);
            knee_table_exact(&table, after - before);
        } else {
            knee_table_number(&table, before, KNEE_UNIT_SECONDS);
            knee_table_number(&table, after, KNEE_UNIT_SECONDS);
            knee_table_cell(&table, "%s%s", after < before ? "-" : "+", MS(fabs(after - before)));
        }
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void movers_table(const struct sides *s, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    static const char *const headers[] = {"change", "before", "after", "calls", "kind", "kernel"};
    struct knee_table table;
    knee_table_init(&table, "rrrrll", text->alloc);
    for (size_t i = 0; i < 6; i++)
        knee_table_cell(&table, "%s", headers[i]);
    for (size_t i = 0; i < s->c->mover_count && i < 10; i++) {
        const struct knee_mover *m = &s->c->movers[i];
        knee_table_cell(&table, "%s%s", m->after_s < m->before_s ? "-" : "+",
                        MS(fabs(m->after_s - m->before_s)));
        knee_table_number(&table, m->before_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, m->after_s, KNEE_UNIT_SECONDS);
        knee_table_cell(&table, "%.1f -> %.1f", m->before_calls, m->after_calls);
        knee_table_cell(&table, "%s", kind_name(m->kind));
        knee_table_cell(&table, "%s", knee_safe(m->name, 60).s);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void collectives_table(const struct sides *s, enum knee_format format,
                              const struct knee_style *style, struct knee_text *text)
{
    static const char *const headers[] = {"change", "before", "after",      "wait",
                                          "calls",  "size",   "collective", "ranks"};
    struct knee_table table;
    knee_table_init(&table, "rrrrrrlr", text->alloc);
    KNEE_HEADS(&table, headers);
    for (size_t i = 0; i < s->c->collective_count && i < 8; i++) {
        const struct knee_collective_mover *m = &s->c->collectives[i];
        knee_table_cell(&table, "%s%s", m->after_s < m->before_s ? "-" : "+",
                        MS(fabs(m->after_s - m->before_s)));
        knee_table_number(&table, m->before_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, m->after_s, KNEE_UNIT_SECONDS);
        knee_table_cell(&table, "%s -> %s", MS(m->before_wait_s), MS(m->after_wait_s));
        knee_table_cell(&table, "%.1f -> %.1f", m->before_calls, m->after_calls);
        knee_table_number(&table, m->bytes >= 0 ? (double)m->bytes : NAN, KNEE_UNIT_BYTES);
        knee_table_cell(&table, "%s", knee_op_name(m->op));
        knee_table_number(&table, m->group_size > 0 ? (double)m->group_size : NAN, KNEE_UNIT_COUNT);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void write_text(const struct sides *s, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc};
    sentence(s, &words);
    knee_say(&words, format, style, text);
    knee_text_puts(text, "\n");
    if (format == KNEE_TEXT) {
        knee_bar_write(&s->c->before, style, text);
        knee_bar_write(&s->c->after, style, text);
        knee_text_puts(text, "\n");
    }
    labels_table(s, format, style, text);
    if (style->brief)
        return;
    knee_text_puts(text, "\n");
    movers_table(s, format, style, text);
    if (s->c->collective_count == 0)
        return;
    knee_text_puts(text, "\n");
    collectives_table(s, format, style, text);
}

static void json_step(struct knee_json *json, const char *key, const struct knee_step *step,
                      const struct knee_diagnosis *d)
{
    knee_json_open(json, key, '{');
    knee_json_number(json, "step_s", step->wall_s);
    for (int label = 0; label < KNEE_LABELS; label++)
        knee_json_number(json, knee_label_name((enum knee_label)label), step->label_s[label]);
    knee_json_number(json, "comm_s", step->comm_s);
    knee_json_number(json, "ratio", d->ratio);
    knee_json_string(json, "suspect", knee_suspect_name(d->suspect));
    knee_json_close(json, '}');
}

static void json_collectives(struct knee_json *json, const struct knee_comparison *c)
{
    knee_json_open(json, "collectives", '[');
    for (size_t i = 0; i < c->collective_count; i++) {
        const struct knee_collective_mover *m = &c->collectives[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "name", knee_op_name(m->op));
        knee_json_number(json, "bytes", m->bytes >= 0 ? (double)m->bytes : NAN);
        knee_json_number(json, "group_size", m->group_size > 0 ? (double)m->group_size : NAN);
        knee_json_string(json, "description", m->description);
        knee_json_number(json, "before_s", m->before_s);
        knee_json_number(json, "after_s", m->after_s);
        knee_json_number(json, "before_wait_s", m->before_wait_s);
        knee_json_number(json, "after_wait_s", m->after_wait_s);
        knee_json_number(json, "before_calls", m->before_calls);
        knee_json_number(json, "after_calls", m->after_calls);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void write_json(const struct sides *s, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    struct knee_text words = {.alloc = text->alloc};
    sentence(s, &words);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.diff/1");
    knee_json_open(&json, "verdict", '{');
    knee_json_words(&json, "sentence", &words);
    knee_json_string(&json, "label", knee_label_name(s->c->label));
    knee_json_number(&json, "share", s->c->share);
    knee_json_number(&json, "change", s->c->after.wall_s / s->c->before.wall_s - 1);
    knee_json_number(&json, "noise_s", s->c->noise_s);
    knee_json_bool(&json, "significant", s->c->significant);
    knee_json_number(&json, "late_ranks_s", s->c->late_s);
    knee_json_bool(&json, "late_ranks_make_it", s->c->late_makes_it);
    knee_json_bool(&json, "same_world", !(s->c->differs & KNEE_DIFFER_WORLD));
    knee_json_bool(&json, "same_gpu", !(s->c->differs & KNEE_DIFFER_GPU));
    knee_json_bool(&json, "same_traffic", !(s->c->differs & KNEE_DIFFER_TRAFFIC));
    knee_json_bool(&json, "same_kernels", !(s->c->differs & KNEE_DIFFER_KERNELS));
    knee_json_bool(&json, "same_dtype", !(s->c->differs & KNEE_DIFFER_DTYPE));
    knee_json_bool(&json, "same_steps", !(s->c->differs & KNEE_DIFFER_STEPS));
    knee_json_close(&json, '}');
    json_step(&json, "before", &s->c->before, s->before_diagnosis);
    json_step(&json, "after", &s->c->after, s->after_diagnosis);
    knee_json_open(&json, "kernels", '[');
    for (size_t i = 0; i < s->c->mover_count; i++) {
        const struct knee_mover *m = &s->c->movers[i];
        knee_json_open_flat(&json, NULL, '{');
        knee_json_string(&json, "name", m->name);
        knee_json_string(&json, "kind", kind_name(m->kind));
        knee_json_number(&json, "before_s", m->before_s);
        knee_json_number(&json, "after_s", m->after_s);
        knee_json_number(&json, "before_calls", m->before_calls);
        knee_json_number(&json, "after_calls", m->after_calls);
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    json_collectives(&json, s->c);
    knee_json_close(&json, '}');
}

void knee_write_comparison(const struct knee_comparison *comparison,
                           const struct knee_account *before,
                           const struct knee_diagnosis *before_diagnosis,
                           const struct knee_account *after,
                           const struct knee_diagnosis *after_diagnosis, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text)
{
    struct sides sides = {comparison, before, after, before_diagnosis, after_diagnosis};
    if (format == KNEE_JSON)
        write_json(&sides, text);
    else if (format == KNEE_CSV)
        labels_table(&sides, KNEE_CSV, style, text);
    else
        write_text(&sides, format, style, text);
}

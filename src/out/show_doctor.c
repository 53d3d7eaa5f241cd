/* SPDX-License-Identifier: MIT */
/* What the doctor found, as text, JSON (schema knee.doctor/1), CSV or Markdown; and the table of
 * rules. */
#include "knee_doctor.h"
#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <string.h>

static const char *severity(enum knee_severity s)
{
    return knee_severity_names.name((size_t)s);
}

/* "node7: mlx5_3:1", or what of it is there. */
static void place(const struct knee_ailment *a, struct knee_text *text)
{
    bool host = a->host[0] != '\0', part = a->where[0] != '\0';
    knee_text_printf(text, "%s%s%s", knee_safe(a->host, 60).s, host && part ? ": " : "",
                     knee_safe(a->where, 90).s);
    if (a->hosts > 1)
        knee_text_printf(text, " (%zu hosts)", a->hosts);
}

/* ---- What it costs, in words ---- */

static bool costs(const struct knee_ailment *a)
{
    return a->price.slows_wire || a->price.slows_job;
}

/* Priced at all: what is not slowed by it is told as well. */
static bool priced(const struct knee_ailment *a)
{
    return costs(a) || !isnan(a->price.share);
}

static void cost_sentence(const struct knee_checkup *c, const struct knee_ailment *a,
                          struct knee_text *text)
{
    const struct knee_toll *p = &a->price;
    if (!costs(a))
        knee_text_printf(text, "nothing that an all-reduce of %s over %.0f GPUs would show",
                         knee_size(c->bytes).s, c->ranks);
    if (p->lost == 1 && isnan(p->ratio_after))
        knee_text_puts(text, "your job: does not run");
    else if (p->slows_job)
        knee_text_printf(text, "your job: R %s -> %s, step %s -> %s, -%s",
                         knee_short(p->ratio_before).s, knee_short(p->ratio_after).s,
                         knee_human(p->step_before_s, KNEE_UNIT_SECONDS).s,
                         knee_human(p->step_after_s, KNEE_UNIT_SECONDS).s, knee_percent(p->lost).s);
    if (p->slows_job && p->dollars_per_day > 0)
        knee_text_printf(text, ", $%.0f a day", p->dollars_per_day);
    if (p->slows_wire)
        knee_text_printf(text, "%san all-reduce of %s over %.0f GPUs runs at %s of its rate",
                         p->slows_job ? "; " : "", knee_size(c->bytes).s, c->ranks,
                         knee_percent(p->share).s);
}

/* ---- Text ---- */

static void headline(const struct knee_checkup *c, enum knee_format format,
                     const struct knee_style *style, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc};
    size_t errors = knee_checkup_count(c, KNEE_ERROR),
           warnings = knee_checkup_count(c, KNEE_WARNING) - errors;
    size_t notes = c->count - errors - warnings;
    if (errors + warnings == 0)
        knee_text_printf(&words, "Nothing is wrong as far as knee can see: %zu host%s, %zu facts",
                         c->hosts, c->hosts == 1 ? "" : "s", c->facts);
    else
        knee_text_printf(&words, "%zu error%s and %zu warning%s on %zu host%s", errors,
                         errors == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s", c->hosts,
                         c->hosts == 1 ? "" : "s");
    if (notes)
        knee_text_printf(&words, "; %zu note%s", notes, notes == 1 ? "" : "s");
    knee_text_puts(&words, ".");
    knee_say(&words, format, style, text);
}

/* A line that was put together elsewhere, wrapped and indented; releases it. */
static void indented(struct knee_text *words, int width, struct knee_text *text)
{
    if (words->failed)
        text->failed = true;
    else if (words->length)
        knee_wrap(words->data, width, "    ", text);
    knee_text_release(words);
}

static void one(const struct knee_checkup *c, const struct knee_ailment *a, enum knee_format format,
                const struct knee_style *style, struct knee_text *text)
{
    const char *bold = style->color ? "\033[1m" : "", *plain = style->color ? "\033[0m" : "";
    int width = knee_columns(format, style);
    struct knee_text words = {.alloc = text->alloc};
    if (format == KNEE_MARKDOWN)
        knee_text_printf(text, "\n- **%s** `%s` ", severity(a->severity), a->rule->id);
    else
        knee_text_printf(text, "\n%s%s%s %s  ", bold, severity(a->severity), plain, a->rule->id);
    place(a, text);
    knee_text_puts(text, "\n");
    knee_wrap(knee_safe(a->evidence, 250).s, width, "    ", text);
    if (priced(a)) {
        knee_text_puts(&words, "costs: ");
        cost_sentence(c, a, &words);
        indented(&words, width, text);
    }
    words = (struct knee_text){.alloc = text->alloc};
    knee_text_printf(&words, "cure: %s", knee_safe(a->cure, 250).s);
    if (a->rule->also)
        knee_text_printf(&words, " (looks the same: %s)", a->rule->also);
    indented(&words, width, text);
}

static void settings(const struct knee_checkup *c, enum knee_format format,
                     const struct knee_style *style, struct knee_text *text)
{
    struct knee_table table;
    if (c->setting_count == 0)
        return;
    knee_table_init(&table, "llll", text->alloc);
    for (const char *const *h =
             (const char *const[]){"variable", "value", "NCCL reads", "from", NULL};
         *h; h++)
        knee_table_cell(&table, "%s", *h);
    for (size_t i = 0; i < c->setting_count; i++) {
        const struct knee_setting *s = &c->settings[i];
        knee_table_cell(&table, "%s", s->name);
        knee_table_cell(&table, "%s", knee_safe(s->value, 40).s);
        knee_table_cell(&table, "%s", s->read[0] ? s->read : "as written");
        knee_table_cell(&table, "%s", s->from);
    }
    knee_text_puts(text, "\n");
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void closing(const struct knee_checkup *c, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc};
    settings(c, format, style, text);
    if (c->gap_count) {
        knee_text_puts(text, "\nNot looked at:\n");
        for (size_t i = 0; i < c->gap_count; i++)
            knee_text_printf(text, "  %s: %s\n", c->gaps[i].what, c->gaps[i].why);
    }
    if (c->strange)
        knee_text_printf(&words, "%zu of %zu files were not understood. ", c->strange,
                         c->files + c->strange);
    if (c->unread)
        knee_text_printf(&words,
                         "%zu files could not be read (no permission, too large, not a file, or a "
                         "link that leads outside). ",
                         c->unread);
    if (c->dropped)
        knee_text_printf(&words, "%zu facts were left out: there was no room for them. ",
                         c->dropped);
    if (c->cluster.level_count && knee_checkup_count(c, KNEE_NOTE))
        knee_text_printf(&words, "Prices are for %s. ", knee_safe(c->cluster_from, 90).s);
    if (c->ethernet_assumed)
        knee_text_puts(&words,
                       "TCP is taken to run over 100 Gb/s Ethernet: no interface says its speed. ");
    if (!c->cluster.level_count && c->count)
        knee_text_puts(&words, "No price: which cluster it is is not known; --cluster says it. ");
    if (words.length || words.failed) {
        knee_text_puts(text, "\n");
        knee_say(&words, format, style, text);
    }
    knee_text_release(&words);
}

static void write_text(const struct knee_checkup *c, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    headline(c, format, style, text);
    for (size_t i = 0; i < c->count; i++)
        if (!style->brief || c->findings[i].severity > KNEE_NOTE)
            one(c, &c->findings[i], format, style, text);
    if (!style->brief)
        closing(c, format, style, text);
}

/* ---- JSON ---- */

static void json_cost(struct knee_json *json, const struct knee_checkup *c,
                      const struct knee_ailment *a)
{
    const struct knee_toll *p = &a->price;
    struct knee_text words = {.alloc = json->text->alloc};
    knee_json_open(json, "cost", '{');
    knee_json_number(json, "collective_rate_left", p->share);
    knee_json_number(json, "collective_healthy_s", p->healthy_s);
    knee_json_number(json, "collective_hurt_s", p->hurt_s);
    knee_json_number(json, "ratio_before", p->ratio_before);
    knee_json_number(json, "ratio_after", p->ratio_after);
    knee_json_number(json, "step_before_s", p->step_before_s);
    knee_json_number(json, "step_after_s", p->step_after_s);
    knee_json_number(json, "throughput_lost", p->lost);
    knee_json_number(json, "dollars_per_day", p->dollars_per_day);
    if (priced(a))
        cost_sentence(c, a, &words);
    knee_json_words(json, "words", &words);
    knee_json_close(json, '}');
}

static void json_finding(struct knee_json *json, const struct knee_checkup *c,
                         const struct knee_ailment *a)
{
    struct knee_text words = {.alloc = json->text->alloc};
    knee_json_open(json, NULL, '{');
    knee_json_string(json, "id", a->rule->id);
    knee_json_string(json, "severity", severity(a->severity));
    knee_json_string(json, "host", a->host);
    knee_json_number(json, "hosts", (double)a->hosts);
    knee_json_string(json, "where", a->where);
    knee_json_number(json, "parts", (double)a->parts);
    knee_json_string(json, "evidence", a->evidence);
    knee_json_string(json, "cure", a->cure);
    knee_text_puts(&words, a->rule->also ? a->rule->also : "");
    knee_json_words(json, "looks_the_same", &words);
    json_cost(json, c, a);
    knee_json_close(json, '}');
}

static void write_json(const struct knee_checkup *c, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.doctor/1");
    knee_json_number(&json, "hosts", (double)c->hosts);
    knee_json_number(&json, "facts", (double)c->facts);
    knee_json_number(&json, "files", (double)c->files);
    knee_json_number(&json, "files_not_understood", (double)c->strange);
    knee_json_number(&json, "files_not_read", (double)c->unread);
    knee_json_number(&json, "facts_left_out", (double)c->dropped);
    knee_json_string(&json, "cluster", c->cluster.level_count ? c->cluster_from : "");
    knee_json_number(&json, "errors", (double)knee_checkup_count(c, KNEE_ERROR));
    knee_json_number(
        &json, "warnings",
        (double)(knee_checkup_count(c, KNEE_WARNING) - knee_checkup_count(c, KNEE_ERROR)));
    knee_json_number(&json, "notes", (double)(c->count - knee_checkup_count(c, KNEE_WARNING)));
    knee_json_open(&json, "findings", '[');
    for (size_t i = 0; i < c->count; i++)
        json_finding(&json, c, &c->findings[i]);
    knee_json_close(&json, ']');
    knee_json_open(&json, "settings", '[');
    for (size_t i = 0; i < c->setting_count; i++) {
        knee_json_open_flat(&json, NULL, '{');
        knee_json_string(&json, "name", c->settings[i].name);
        knee_json_string(&json, "value", c->settings[i].value);
        knee_json_string(&json, "reads",
                         c->settings[i].read[0] ? c->settings[i].read : c->settings[i].value);
        knee_json_string(&json, "from", c->settings[i].from);
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_open(&json, "not_looked_at", '[');
    for (size_t i = 0; i < c->gap_count; i++) {
        knee_json_open_flat(&json, NULL, '{');
        knee_json_string(&json, "what", c->gaps[i].what);
        knee_json_string(&json, "why", c->gaps[i].why);
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
    knee_text_puts(text, "\n");
}

static void write_csv(const struct knee_checkup *c, const struct knee_style *style,
                      struct knee_text *text)
{
    static const char *const headers[] = {"id",       "severity",  "host", "hosts",
                                          "where",    "rate_left", "lost", "dollars_per_day",
                                          "evidence", "cure"};
    struct knee_table table;
    knee_table_init(&table, "lllrlrrrll", text->alloc);
    KNEE_HEADS(&table, headers);
    for (size_t i = 0; i < c->count; i++) {
        const struct knee_ailment *a = &c->findings[i];
        knee_table_cell(&table, "%s", a->rule->id);
        knee_table_cell(&table, "%s", severity(a->severity));
        knee_table_cell(&table, "%s", knee_safe(a->host, 60).s);
        knee_table_cell(&table, "%zu", a->hosts);
        knee_table_cell(&table, "%s", knee_safe(a->where, 90).s);
        knee_table_exact(&table, a->price.share);
        knee_table_exact(&table, a->price.lost);
        knee_table_exact(&table, a->price.dollars_per_day);
        knee_table_cell(&table, "%s", knee_safe(a->evidence, 250).s);
        knee_table_cell(&table, "%s", knee_safe(a->cure, 250).s);
    }
    knee_table_write(&table, KNEE_CSV, style, text);
    knee_table_release(&table);
}

void knee_write_checkup(const struct knee_checkup *checkup, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(checkup, text);
    else if (format == KNEE_CSV)
        write_csv(checkup, style, text);
    else
        write_text(checkup, format, style, text);
}

/* ---- The rules ---- */

static const char *looks_at(const struct knee_rule *rule)
{
    return rule->key ? rule->key : "several facts";
}

void knee_write_rules(enum knee_format format, const struct knee_style *style,
                      struct knee_text *text)
{
    const struct knee_rule *rule;
    struct knee_table table;
    if (format == KNEE_JSON) {
        struct knee_json json = {.text = text};
        knee_json_open(&json, NULL, '{');
        knee_json_string(&json, "schema", "knee.doctor.rules/1");
        knee_json_open(&json, "rules", '[');
        for (size_t i = 0; (rule = knee_rule_at(i)); i++) {
            knee_json_open_flat(&json, NULL, '{');
            knee_json_string(&json, "id", rule->id);
            knee_json_string(&json, "severity", severity(rule->severity));
            knee_json_string(&json, "key", rule->key ? rule->key : "");
            knee_json_string(&json, "test", rule->test ? rule->test : "");
            knee_json_string(&json, "limit", rule->limit ? rule->limit : "");
            knee_json_string(&json, "cure", rule->cure);
            knee_json_close(&json, '}');
        }
        knee_json_close(&json, ']');
        knee_json_close(&json, '}');
        knee_text_puts(text, "\n");
        return;
    }
    knee_table_init(&table, "llll", text->alloc);
    for (const char *const *h = (const char *const[]){"rule", "severity", "looks at", "cure", NULL};
         *h; h++)
        knee_table_cell(&table, "%s", *h);
    for (size_t i = 0; (rule = knee_rule_at(i)); i++) {
        knee_table_cell(&table, "%s", rule->id);
        knee_table_cell(&table, "%s", severity(rule->severity));
        knee_table_cell(&table, "%s", looks_at(rule));
        knee_table_cell(&table, "%s", rule->cure);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

/* SPDX-License-Identifier: MIT */
/* The account and diagnosis of traces as text, JSON (schema knee.trace/1), CSV or Markdown. */
#include "base/number.h"
#include "judge/judge.h"
#include "out/bar.h"
#include "out/inputs.h"
#include "out/json.h"
#include "out/show_where.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *step_source(const struct knee_account *account)
{
    static const char *const words[] = {
        [KNEE_STEPS_PROFILER] = "profiler",   [KNEE_STEPS_ANNOTATION] = "annotations",
        [KNEE_STEPS_OPTIMIZER] = "optimizer", [KNEE_STEPS_SEQUENCE] = "collectives",
        [KNEE_STEPS_NONE] = "none",
    };
    return words[account->step_source];
}

/* ---- Tables ---- */

static void ns_cell(struct knee_table *table, int64_t ns, bool known)
{
    knee_table_number(table, known ? 1e-9 * (double)ns : NAN, KNEE_UNIT_SECONDS);
}

#define HEADERS(table, ...)                                                                        \
    do {                                                                                           \
        static const char *const words[] = {__VA_ARGS__};                                          \
        KNEE_HEADS(table, words);                                                                  \
    } while (0)

static void ledger_cells(struct knee_table *table, const struct knee_ledger *ledger, bool split)
{
    ns_cell(table, ledger->window_ns, true);
    ns_cell(table, ledger->label_ns[KNEE_COMPUTE], true);
    ns_cell(table, knee_ledger_exposed_ns(ledger), true);
    ns_cell(table, ledger->label_ns[KNEE_WAIT], split);
    ns_cell(table, ledger->label_ns[KNEE_TRANSFER], split);
    ns_cell(table, ledger->label_ns[KNEE_COPY], true);
    ns_cell(table, ledger->label_ns[KNEE_STARVED], true);
    ns_cell(table, ledger->label_ns[KNEE_HOST], true);
    ns_cell(table, ledger->label_ns[KNEE_IDLE], true);
    knee_table_cell(table, "%s", knee_ratio_word(knee_ledger_ratio(ledger)).s);
}

/* How far a rank is from the others: by how much the exposed share of its window differs from the
 * middle one. */
struct apart {
    double share, distance;
    size_t row;
};

static int by_share(const void *left, const void *right)
{
    const struct apart *a = left, *b = right;
    return (a->share > b->share) - (a->share < b->share);
}

static int farthest_first(const void *left, const void *right)
{
    const struct apart *a = left, *b = right;
    if (a->distance != b->distance)
        return a->distance < b->distance ? 1 : -1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Marks the `most` ranks that differ most from the others; NULL: all are shown. */
static bool *pick_ranks(const struct knee_account *account, size_t most,
                        const struct knee_alloc *alloc)
{
    size_t count = account->rank_count;
    struct apart *list = count > most ? knee_resize(alloc, NULL, count * sizeof *list) : NULL;
    bool *shown = list ? knee_resize(alloc, NULL, count * sizeof *shown) : NULL;
    for (size_t r = 0; r < count && shown; r++) {
        const struct knee_ledger *ledger = &account->ranks[r].ledger;
        double exposed = (double)knee_ledger_exposed_ns(ledger);
        list[r] = (struct apart){
            .share = ledger->window_ns > 0 ? exposed / (double)ledger->window_ns : 0, .row = r};
        shown[r] = false;
    }
    if (shown) {
        qsort(list, count, sizeof *list, by_share);
        double middle = list[count / 2].share;
        for (size_t i = 0; i < count; i++)
            list[i].distance = fabs(list[i].share - middle);
        qsort(list, count, sizeof *list, farthest_first);
        for (size_t i = 0; i < most; i++)
            shown[list[i].row] = true;
    }
    knee_resize(alloc, list, 0);
    return shown;
}

static void ranks_table(const struct knee_account *account, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    struct knee_table table;
    size_t most = style->brief ? 8 : 32;
    bool *shown = pick_ranks(account, most, text->alloc);
    knee_table_init(&table, "rrrrrrrrrrrrr", text->alloc);
    HEADERS(&table, "rank", "window", "compute", "exposed", "wait", "transfer", "copy", "starved",
            "host-bound", "idle", "R", "E", "overlap");
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        double ratio = knee_ledger_ratio(&rank->ledger);
        if (shown && !shown[r])
            continue;
        knee_table_cell(&table, "%lld", (long long)rank->rank);
        ledger_cells(&table, &rank->ledger, rank->split);
        knee_table_cell(&table, "%s", knee_percent(1 / (1 + ratio)).s);
        knee_table_cell(&table, "%s", knee_percent(knee_ledger_overlap(&rank->ledger)).s);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
    if (shown) {
        knee_text_printf(text,
                         "  %zu ranks that differ most; %zu more are nearer to each other "
                         "(--csv and --json list them all)\n",
                         most, account->rank_count - most);
        knee_resize(text->alloc, shown, 0);
    }
}

static void steps_table(const struct knee_account *account, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    enum { MOST = 32 };
    struct knee_table table;
    knee_table_init(&table, "rrrrrrrrrrrr", text->alloc);
    HEADERS(&table, "rank", "step", "window", "compute", "exposed", "wait", "transfer", "copy",
            "starved", "host-bound", "idle", "R");
    for (size_t i = 0; i < account->step_count && i < MOST; i++) {
        const struct knee_step_account *step = &account->steps[i];
        knee_table_cell(&table, "%lld", (long long)account->ranks[step->rank].rank);
        if (step->number >= 0)
            knee_table_cell(&table, "%lld%s", (long long)step->number,
                            step->complete ? "" : " (cut)");
        else
            knee_table_cell(&table, "outside");
        ledger_cells(&table, &step->ledger, account->ranks[step->rank].split);
    }
    knee_table_write(&table, format, style, text);
    if (account->step_count > MOST && format == KNEE_TEXT)
        knee_text_printf(text, "  and %zu more (--json lists them all)\n",
                         account->step_count - MOST);
    knee_table_release(&table);
}

static void collectives_table(const struct knee_account *account, enum knee_format format,
                              const struct knee_style *style, struct knee_text *text)
{
    enum { MOST = 16 };
    struct knee_table table;
    bool expected = false;
    for (size_t i = 0; i < account->collective_count; i++)
        expected = expected || !isnan(account->collectives[i].expected_s);
    knee_table_init(&table, expected ? "llllrrrrrrrrr" : "llllrrrrrrr", text->alloc);
    HEADERS(&table, "collective", "NCCL", "axis", "group", "ranks", "size", "calls", "transfer",
            "wait", "duration", "bus");
    if (expected)
        HEADERS(&table, "expected", "excess");
    for (size_t i = 0; i < account->collective_count && i < MOST; i++) {
        const struct knee_collective_account *c = &account->collectives[i];
        knee_table_cell(&table, "%s", knee_op_name(c->op));
        knee_table_cell(&table, "%s%s%s", c->algorithm, *c->algorithm && *c->protocol ? "/" : "",
                        c->protocol);
        knee_table_cell(&table, "%s", c->axis);
        knee_table_cell(&table, "%s", knee_safe(*c->description ? c->description : c->group, 24).s);
        if (c->group_size > 0)
            knee_table_cell(&table, "%d", (int)c->group_size);
        else
            knee_table_cell(&table, "-");
        knee_table_number(&table, c->bytes >= 0 ? (double)c->bytes : NAN, KNEE_UNIT_BYTES);
        knee_table_cell(&table, "%zu", c->calls);
        knee_table_number(&table, c->transfer_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, c->wait_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, c->duration_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, c->bus_bytes_per_s, KNEE_UNIT_BYTES_PER_S);
        if (expected) {
            knee_table_number(&table, c->expected_s, KNEE_UNIT_SECONDS);
            knee_table_number(&table, c->transfer_s - c->expected_s, KNEE_UNIT_SECONDS);
        }
    }
    knee_table_write(&table, format, style, text);
    if (account->collective_count > MOST && format == KNEE_TEXT)
        knee_text_printf(text, "  and %zu more kinds (--json lists them all)\n",
                         account->collective_count - MOST);
    knee_table_release(&table);
}

static void stragglers_table(const struct knee_account *account, enum knee_format format,
                             const struct knee_style *style, struct knee_text *text)
{
    enum { MOST = 8 };
    struct knee_table table;
    knee_table_init(&table, "rrrlrl", text->alloc);
    HEADERS(&table, "rank", "last at", "late by", "because", "longer by", "what to do");
    for (size_t i = 0; i < account->straggler_count && i < MOST; i++) {
        const struct knee_straggler *s = &account->stragglers[i];
        knee_table_cell(&table, "%lld", (long long)account->ranks[s->rank].rank);
        knee_table_cell(&table, "%zu of %zu", s->last_count, account->instances + account->partial);
        ns_cell(&table, s->lateness_ns, true);
        knee_table_cell(&table, "%s", s->excess_ns > 0 ? knee_label_name(s->cause) : "-");
        ns_cell(&table, s->excess_ns, s->excess_ns > 0);
        knee_table_cell(&table, "%s", s->excess_ns > 0 ? knee_cause_cure(s->cause) : "");
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void suspects_table(const struct knee_diagnosis *d, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text)
{
    struct knee_table table;
    knee_table_init(&table, "lr", text->alloc);
    HEADERS(&table, "suspect", "share of the step");
    for (int s = KNEE_SUSPECT_NONE + 1; s < KNEE_SUSPECTS; s++) {
        bool blind = s == KNEE_SUSPECT_LARGE_BATCH && (d->gaps & KNEE_GAP_LARGE_BATCH);
        knee_table_cell(&table, "%s%s", knee_suspect_name((enum knee_suspect)s),
                        s == (int)d->suspect ? " <" : "");
        knee_table_cell(&table, "%s", blind ? "not in a trace" : knee_percent(d->share[s]).s);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void levers_table(const struct knee_diagnosis *d, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    const struct knee_prediction *p = &d->prediction;
    bool replayed = p->lever_count && p->levers[0].replayed;
    struct knee_table table;
    knee_table_init(&table, replayed ? "llrrrrrl" : "llrrrl", text->alloc);
    HEADERS(&table, "lever", "change", "gain", "R", "step");
    if (replayed)
        HEADERS(&table, "low", "high");
    HEADERS(&table, "what it risks");
    for (size_t i = 0; i < p->lever_count; i++) {
        const struct knee_lever *lever = &p->levers[i];
        if (lever->gain < KNEE_WORTH_A_WORD)
            continue;
        knee_table_cell(&table, "%s%s", lever->name, i == d->lever ? " <" : "");
        knee_table_cell(&table, "%s", lever->change);
        knee_table_cell(&table, "%s", knee_signed_percent(lever->gain).s);
        knee_table_cell(&table, "%s", knee_short(lever->row.ratio).s);
        knee_table_number(&table, lever->row.step.wall_s, KNEE_UNIT_SECONDS);
        if (replayed) {
            knee_table_number(&table, lever->low_s, KNEE_UNIT_SECONDS);
            knee_table_number(&table, lever->high_s, KNEE_UNIT_SECONDS);
        }
        knee_table_cell(&table, "%s", lever->risk);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
    if (format == KNEE_TEXT && replayed)
        knee_text_puts(text, "  replayed: knee replay takes each change, and several together\n");
    else if (format == KNEE_TEXT)
        knee_text_printf(text,
                         "  closed forms of the mean step, which do not know what hides: "
                         "the best that can be%s%s\n",
                         *d->closed_because ? "; not replayed: " : "", d->closed_because);
}

/* ---- Text and Markdown ---- */

static void heading(struct knee_text *text, enum knee_format format, const struct knee_style *style,
                    const char *words)
{
    if (format == KNEE_MARKDOWN)
        knee_text_printf(text, "\n## %s\n\n", words);
    else
        knee_text_printf(text, style->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", words);
}

/* A step that stands out is told even in a brief answer. */
static void say_outlier(const struct knee_account *account, const struct knee_step_spread *s,
                        enum knee_format format, const struct knee_style *style,
                        struct knee_text *text)
{
    struct knee_text line = {.alloc = text->alloc};
    if (s->steps < 2 || s->worst_s <= KNEE_STANDS_OUT * s->median_s)
        return;
    knee_text_printf(&line,
                     "Step %lld stands out of %zu: %s, where the median is %s; %s on rank "
                     "%lld takes %s longer than usual.",
                     (long long)s->worst, s->steps, knee_human(s->worst_s, KNEE_UNIT_SECONDS).s,
                     knee_human(s->median_s, KNEE_UNIT_SECONDS).s, knee_label_name(s->label),
                     (long long)account->ranks[s->rank].rank,
                     knee_human(s->excess_s, KNEE_UNIT_SECONDS).s);
    if (line.data)
        knee_wrap(line.data, knee_columns(format, style), "  ", text);
    text->failed = text->failed || line.failed;
    knee_text_release(&line);
}

static void verdict(const struct knee_account *account, const struct knee_diagnosis *d,
                    enum knee_format format, const struct knee_style *style, struct knee_text *text)
{
    const char *gap;
    for (int part = 0; part < KNEE_SAY_PARTS; part++) {
        struct knee_text line = {.alloc = text->alloc};
        bool bold = style->color && part == KNEE_SAY_ADVICE;
        knee_diagnosis_line(account, d, (enum knee_diagnosis_part)part, &line);
        text->failed = text->failed || line.failed;
        if (part && line.length && format == KNEE_MARKDOWN)
            knee_text_puts(text, "\n");
        if (bold)
            knee_text_puts(text, "\033[1m");
        if (line.length)
            knee_say(&line, format, style, text);
        else
            knee_text_release(&line);
        if (bold)
            knee_text_puts(text, "\033[0m");
    }
    say_outlier(account, &d->spread, format, style, text);
    for (size_t i = 0; (gap = knee_gap_sentence(d->gaps & ~(unsigned)KNEE_GAP_LARGE_BATCH, i)); i++)
        knee_wrap(gap, knee_columns(format, style), "  ", text);
    if (d->gaps & KNEE_GAPS_OF_RECORDING && format == KNEE_TEXT)
        knee_text_puts(text, "  How to record: docs/record.md.\n");
}

static void clocks(const struct knee_account *account, struct knee_text *text)
{
    if (account->rank_count < 2)
        return;
    knee_text_printf(text, "  %zu collectives matched, ", account->instances);
    if (account->partial)
        knee_text_printf(text, "%zu in part, ", account->partial);
    if (account->loose)
        knee_text_printf(text, "%zu that did not end together, ", account->loose);
    knee_text_printf(text, "%zu calls without all their partners; ", account->unmatched);
    if (account->largest_shift_ns)
        knee_text_printf(
            text, "clocks moved by up to %s, ends then agree within %s\n",
            knee_human(1e-9 * fabs((double)account->largest_shift_ns), KNEE_UNIT_SECONDS).s,
            knee_human(1e-9 * (double)account->residual_ns, KNEE_UNIT_SECONDS).s);
    else
        knee_text_printf(text, "clocks agree: ends within %s\n",
                         knee_human(1e-9 * (double)account->residual_ns, KNEE_UNIT_SECONDS).s);
}

static void file_name(struct knee_text *text, enum knee_format format, const char *file)
{
    struct knee_word name = knee_safe(file, 40);
    knee_text_puts(text, format == KNEE_MARKDOWN ? "- " : "  ");
    if (format == KNEE_MARKDOWN)
        knee_markdown_add(text, name.s, strlen(name.s));
    else
        knee_text_puts(text, name.s);
}

static void losses(const struct knee_trace *traces, size_t count, enum knee_format format,
                   struct knee_text *text)
{
    for (size_t t = 0; t < count; t++)
        for (int k = 0; k < KNEE_LOSSES; k++) {
            const struct knee_loss *loss = &traces[t].losses[k];
            if (!loss->count)
                continue;
            file_name(text, format, traces[t].file);
            knee_text_printf(
                text, ": %llu %s, the first at byte %llu\n", (unsigned long long)loss->count,
                knee_loss_name((enum knee_loss_kind)k), (unsigned long long)loss->first_byte);
        }
}

/* More kinds of collectives than are told apart: what the last row took in with them. */
static void further_kinds(const struct knee_account *account, struct knee_text *text)
{
    if (account->further)
        knee_text_printf(text,
                         "  %zu calls of kinds past the first 4096 are counted with another kind\n",
                         account->further);
}

static bool any_losses(const struct knee_trace *traces, size_t count)
{
    for (size_t t = 0; t < count; t++)
        for (int k = 0; k < KNEE_LOSSES; k++)
            if (traces[t].losses[k].count)
                return true;
    return false;
}

/* Median, 95th percentile and worst; and what made the worst, if it stands out. */
static void spread(const struct knee_account *account, const struct knee_step_spread *s,
                   struct knee_text *text)
{
    if (s->steps < 2)
        return;
    knee_text_printf(text, "  %zu complete steps: median %s, 95 %% within %s, worst %s", s->steps,
                     knee_human(s->median_s, KNEE_UNIT_SECONDS).s,
                     knee_human(s->p95_s, KNEE_UNIT_SECONDS).s,
                     knee_human(s->worst_s, KNEE_UNIT_SECONDS).s);
    if (s->worst_s > KNEE_STANDS_OUT * s->median_s)
        knee_text_printf(text, " (step %lld: %s on rank %lld, %s longer than usual)",
                         (long long)s->worst, knee_label_name(s->label),
                         (long long)account->ranks[s->rank].rank,
                         knee_human(s->excess_s, KNEE_UNIT_SECONDS).s);
    knee_text_puts(text, "\n");
}

static void write_text(const struct knee_trace_report *report, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    const struct knee_account *account = report->account;
    const struct knee_diagnosis *d = report->diagnosis;
    bool pictures = format == KNEE_TEXT;
    verdict(account, d, format, style, text);
    if (pictures) {
        knee_text_puts(text, "\n");
        knee_bar_write(&d->step, style, text);
    }
    knee_text_puts(text, "\n");
    ranks_table(account, format, style, text);
    if (pictures)
        clocks(account, text);
    if (any_losses(report->traces, report->trace_count)) {
        heading(text, format, style, "Lost or mended");
        losses(report->traces, report->trace_count, format, text);
    }
    if (style->brief)
        return;
    if (pictures && !report->where)
        knee_text_puts(text, "  --where tells of each collective, kernels, modules, what the host "
                             "does in gaps and the critical path\n");
    if (account->straggler_count) {
        heading(text, format, style, "Who comes last");
        stragglers_table(account, format, style, text);
        if (pictures) {
            knee_text_puts(text, "\n  waiting over time, rank by rank\n");
            knee_strip_write(account, style, text);
        }
    }
    if (account->collective_count) {
        heading(text, format, style, "Collectives");
        if (pictures && account->machine_assumed)
            knee_text_printf(text, "  expected of %s; --cluster says otherwise\n",
                             account->machine);
        collectives_table(account, format, style, text);
        further_kinds(account, text);
    }
    if (report->where)
        knee_write_where(account, d, report->where, format, style, text);
    if (!(d->gaps & KNEE_GAP_SERVING)) { /* suspects are of training */
        heading(text, format, style, "Suspects");
        suspects_table(d, format, style, text);
    }
    if (d->prediction.lever_count) {
        heading(text, format, style, "Levers");
        levers_table(d, format, style, text);
    }
    heading(text, format, style, "Steps");
    if (pictures) {
        static const char *const words[] = {
            [KNEE_STEPS_ANNOTATION] = "  no prof.step() in the trace: cut by its annotations\n",
            [KNEE_STEPS_OPTIMIZER] =
                "  no prof.step() in the trace: from one optimizer step's end to the next\n",
            [KNEE_STEPS_SEQUENCE] = "  no steps in the trace: cut by the repeating collectives\n",
            [KNEE_STEPS_NONE] = "  no steps in the trace: the whole file\n",
        };
        knee_text_puts(text, words[account->step_source] ? words[account->step_source] : "");
        spread(account, &d->spread, text);
    }
    steps_table(account, format, style, text);
}

/* ---- CSV: the ranks, exactly ---- */

static void csv_ns(struct knee_table *table, int64_t ns, bool known)
{
    char number[40];
    knee_number_ns(number, sizeof number, ns);
    knee_table_cell(table, "%s", known ? number : "");
}

static void write_csv(const struct knee_account *account, const struct knee_style *style,
                      struct knee_text *text)
{
    struct knee_table table;
    knee_table_init(&table, "lrrrrrrrrrrrrrr", text->alloc);
    HEADERS(&table, "file", "rank", "window_s", "compute_s", "comm_s", "exposed_comm_s", "wait_s",
            "transfer_s", "overlap", "exposed_copy_s", "starved_input_s", "host_bound_s", "idle_s",
            "ratio", "efficiency");
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        const struct knee_ledger *ledger = &rank->ledger;
        knee_table_cell(&table, "%s", knee_safe(rank->trace->file, 200).s);
        knee_table_cell(&table, "%lld", (long long)rank->rank);
        csv_ns(&table, ledger->window_ns, true);
        csv_ns(&table, ledger->label_ns[KNEE_COMPUTE], true);
        csv_ns(&table, ledger->comm_ns, true);
        csv_ns(&table, knee_ledger_exposed_ns(ledger), true);
        csv_ns(&table, ledger->label_ns[KNEE_WAIT], rank->split);
        csv_ns(&table, ledger->label_ns[KNEE_TRANSFER], rank->split);
        knee_table_exact(&table, knee_ledger_overlap(ledger));
        csv_ns(&table, ledger->label_ns[KNEE_COPY], true);
        csv_ns(&table, ledger->label_ns[KNEE_STARVED], true);
        csv_ns(&table, ledger->label_ns[KNEE_HOST], true);
        csv_ns(&table, ledger->label_ns[KNEE_IDLE], true);
        knee_table_exact(&table, knee_ledger_ratio(ledger));
        knee_table_exact(&table, 1 / (1 + knee_ledger_ratio(ledger)));
    }
    knee_table_write(&table, KNEE_CSV, style, text);
    knee_table_release(&table);
}

/* ---- JSON ---- */

void knee_json_ledger(struct knee_json *json, const struct knee_ledger *ledger, bool split,
                      bool whole)
{
    knee_json_ns(json, "window_s", ledger->window_ns, true);
    knee_json_ns(json, "compute_s", ledger->label_ns[KNEE_COMPUTE], true);
    if (whole)
        knee_json_ns(json, "comm_s", ledger->comm_ns, true);
    knee_json_ns(json, "exposed_comm_s", knee_ledger_exposed_ns(ledger), true);
    knee_json_ns(json, "wait_s", ledger->label_ns[KNEE_WAIT], split);
    knee_json_ns(json, "transfer_s", ledger->label_ns[KNEE_TRANSFER], split);
    if (whole)
        knee_json_number(json, "overlap", knee_ledger_overlap(ledger));
    knee_json_ns(json, "exposed_copy_s", ledger->label_ns[KNEE_COPY], true);
    knee_json_ns(json, "starved_input_s", ledger->label_ns[KNEE_STARVED], true);
    knee_json_ns(json, "host_bound_s", ledger->label_ns[KNEE_HOST], true);
    knee_json_ns(json, "idle_s", ledger->label_ns[KNEE_IDLE], true);
    knee_json_number(json, "ratio", knee_ledger_ratio(ledger));
    knee_json_number(json, "efficiency", 1 / (1 + knee_ledger_ratio(ledger)));
}

static void json_ranks(struct knee_json *json, const struct knee_account *account)
{
    knee_json_open(json, "ranks", '[');
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        knee_json_open_flat(json, NULL, '{');
        knee_json_whole(json, "rank", rank->rank);
        knee_json_ledger(json, &rank->ledger, rank->split || rank->source->call_count == 0, true);
        knee_json_bool(json, "wait_is_a_lower_bound", rank->bounded);
        knee_json_string(json, "file", rank->trace->file);
        knee_json_string(json, "format", rank->trace->format);
        knee_json_whole(json, "device", rank->source->device);
        knee_json_string(json, "gpu", rank->trace->gpu_name);
        knee_json_whole(json, "kernels", (int64_t)rank->kernels);
        knee_json_ns(json, "median_kernel_s", rank->median_kernel_ns, true);
        knee_json_number(json, "loader_share",
                         rank->stepped_ns ? (double)rank->load_ns / (double)rank->stepped_ns : NAN);
        knee_json_ns(json, "clock_shift_s", rank->shift_ns, true);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_collectives(struct knee_json *json, const struct knee_account *account)
{
    knee_json_open(json, "collectives", '[');
    for (size_t i = 0; i < account->collective_count; i++) {
        const struct knee_collective_account *c = &account->collectives[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "name", knee_op_name(c->op));
        knee_json_string(json, "algorithm", c->algorithm);
        knee_json_string(json, "protocol", c->protocol);
        knee_json_string(json, "dtype", c->dtype);
        knee_json_number(json, "bytes", c->bytes >= 0 ? (double)c->bytes : NAN);
        knee_json_string(json, "group", c->group);
        knee_json_string(json, "description", c->description);
        knee_json_number(json, "group_size", c->group_size > 0 ? (double)c->group_size : NAN);
        knee_json_string(json, "axis", c->axis);
        knee_json_whole(json, "calls", (int64_t)c->calls);
        knee_json_whole(json, "matched", (int64_t)c->matched);
        knee_json_number(json, "transfer_s", c->transfer_s);
        knee_json_number(json, "wait_s", c->wait_s);
        knee_json_number(json, "duration_s", c->duration_s);
        knee_json_number(json, "busbw_bytes_per_s", c->bus_bytes_per_s);
        knee_json_number(json, "expected_s", c->expected_s);
        knee_json_number(json, "excess_s", c->transfer_s - c->expected_s);
        knee_json_number(json, "expected_busbw_bytes_per_s",
                         c->group_size > 0 ? knee_op_bus_factor(c->op, c->group_size) *
                                                 (double)c->bytes / c->expected_s
                                           : NAN);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_stragglers(struct knee_json *json, const struct knee_account *account)
{
    knee_json_open(json, "stragglers", '[');
    for (size_t i = 0; i < account->straggler_count; i++) {
        const struct knee_straggler *s = &account->stragglers[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_whole(json, "rank", account->ranks[s->rank].rank);
        knee_json_whole(json, "last_count", (int64_t)s->last_count);
        knee_json_ns(json, "lateness_s", s->lateness_ns, true);
        knee_json_ns(json, "held_s", s->held_ns, true);
        knee_json_string(json, "cause", s->excess_ns > 0 ? knee_label_name(s->cause) : NULL);
        knee_json_ns(json, "excess_s", s->excess_ns, true);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_steps(struct knee_json *json, const struct knee_account *account)
{
    knee_json_open(json, "steps", '[');
    for (size_t i = 0; i < account->step_count; i++) {
        const struct knee_step_account *step = &account->steps[i];
        const struct knee_rank_account *rank = &account->ranks[step->rank];
        knee_json_open_flat(json, NULL, '{');
        knee_json_whole(json, "rank", rank->rank);
        knee_json_whole(json, "step", step->number);
        knee_json_bool(json, "complete", step->complete);
        knee_json_ledger(json, &step->ledger, rank->split || rank->source->call_count == 0, false);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_losses(struct knee_json *json, const struct knee_trace *traces, size_t count)
{
    knee_json_open(json, "losses", '[');
    for (size_t t = 0; t < count; t++)
        for (int k = 0; k < KNEE_LOSSES; k++) {
            const struct knee_loss *loss = &traces[t].losses[k];
            if (!loss->count)
                continue;
            knee_json_open_flat(json, NULL, '{');
            knee_json_string(json, "file", traces[t].file);
            knee_json_string(json, "what", knee_loss_name((enum knee_loss_kind)k));
            knee_json_whole(json, "count", (int64_t)loss->count);
            knee_json_whole(json, "first_byte", (int64_t)loss->first_byte);
            knee_json_bool(json, "lost", knee_loss_is_lost((enum knee_loss_kind)k));
            knee_json_close(json, '}');
        }
    knee_json_close(json, ']');
}

static void json_refused(struct knee_json *json, const struct knee_trace_report *report)
{
    knee_json_open(json, "refused", '[');
    for (size_t i = 0; i < report->refused_count; i++) {
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "file", report->refused[i].file);
        knee_json_string(json, "why", report->refused[i].why);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_evidence(struct knee_json *json, const struct knee_diagnosis *d)
{
    knee_json_open(json, "evidence", '{');
    for (int s = KNEE_SUSPECT_NONE + 1; s < KNEE_SUSPECTS; s++) {
        bool blind = s == KNEE_SUSPECT_LARGE_BATCH && (d->gaps & KNEE_GAP_LARGE_BATCH);
        knee_json_number(json, knee_suspect_name((enum knee_suspect)s), blind ? NAN : d->share[s]);
    }
    knee_json_number(json, "loader_share", d->load_share);
    knee_json_close(json, '}');
}

static void json_spread(struct knee_json *json, const struct knee_account *account,
                        const struct knee_step_spread *s)
{
    knee_json_open_flat(json, "step_spread", '{');
    knee_json_whole(json, "complete_steps", (int64_t)s->steps);
    knee_json_number(json, "median_s", s->median_s);
    knee_json_number(json, "p95_s", s->p95_s);
    knee_json_number(json, "worst_s", s->worst_s);
    if (s->steps > 1) {
        knee_json_whole(json, "worst_step", s->worst);
        knee_json_string(json, "worst_label", knee_label_name(s->label));
        knee_json_whole(json, "worst_rank", account->ranks[s->rank].rank);
        knee_json_number(json, "worst_excess_s", s->excess_s);
    }
    knee_json_close(json, '}');
}

static void json_verdict(struct knee_json *json, const struct knee_account *account,
                         const struct knee_diagnosis *d)
{
    const struct knee_prediction *p = &d->prediction;
    struct knee_text sentence = {.alloc = json->text->alloc};
    const char *gap;
    knee_diagnosis_sentence(account, d, &sentence);
    knee_json_open(json, "verdict", '{');
    knee_json_words(json, "sentence", &sentence);
    for (int part = 0; part < KNEE_SAY_PARTS; part++) {
        static const char *const keys[] = {"do", "why", "buys", "formal"};
        struct knee_text line = {.alloc = json->text->alloc};
        knee_diagnosis_line(account, d, (enum knee_diagnosis_part)part, &line);
        knee_json_words(json, keys[part], &line);
    }
    knee_json_string(json, "suspect", knee_suspect_name(d->suspect));
    json_evidence(json, d);
    knee_json_string(json, "lever", d->lever == SIZE_MAX ? NULL : p->levers[d->lever].name);
    knee_json_number(json, "lever_gain", d->lever == SIZE_MAX ? NAN : p->levers[d->lever].gain);
    knee_json_number(json, "ratio", d->ratio);
    knee_json_number(json, "efficiency", d->efficiency);
    knee_json_number(json, "overlap", d->overlap);
    knee_json_number(json, "step_s", d->step.wall_s);
    json_spread(json, account, &d->spread);
    knee_json_roofline(json, &d->roofline);
    knee_json_open_flat(json, "late_ranks", '[');
    for (size_t i = 0; i < d->late_ranks; i++)
        knee_json_whole(json, NULL, account->ranks[account->stragglers[i].rank].rank);
    knee_json_close(json, ']');
    if (d->slow_wire != SIZE_MAX) {
        knee_json_open_flat(json, "slow_wire", '{');
        knee_json_whole(json, "collective", (int64_t)d->slow_wire);
        knee_json_number(json, "times_slower", d->wire_slowdown);
        knee_json_number(json, "busbw_bytes_per_s", d->wire_bytes_per_s);
        knee_json_close(json, '}');
    }
    knee_json_number(json, "stall_cost_per_day", p->cost.stall_day);
    knee_json_open(json, "cannot_tell", '[');
    for (size_t i = 0; (gap = knee_gap_sentence(d->gaps, i)); i++)
        knee_json_string(json, NULL, gap);
    knee_json_close(json, ']');
    knee_json_close(json, '}');
}

static void json_levers(struct knee_json *json, const struct knee_diagnosis *d)
{
    const struct knee_prediction *p = &d->prediction;
    knee_json_open(json, "levers", '[');
    for (size_t i = 0; i < p->lever_count; i++) {
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "name", p->levers[i].name);
        knee_json_string(json, "change", p->levers[i].change);
        knee_json_number(json, "ratio", p->levers[i].row.ratio);
        knee_json_number(json, "step_s", p->levers[i].row.step.wall_s);
        knee_json_number(json, "low_s", p->levers[i].low_s);
        knee_json_number(json, "high_s", p->levers[i].high_s);
        knee_json_number(json, "gain", p->levers[i].gain);
        knee_json_string(json, "risk", p->levers[i].risk);
        knee_json_bool(json, "changes_training", p->levers[i].training);
        knee_json_string(json, "from", p->levers[i].replayed ? "replay" : "closed form");
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
    knee_json_string(json, "not_replayed", *d->closed_because ? d->closed_because : NULL);
}

static void write_json(const struct knee_trace_report *report, struct knee_text *text)
{
    const struct knee_account *account = report->account;
    struct knee_json json = {.text = text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.trace/1");
    json_verdict(&json, account, report->diagnosis);
    json_ranks(&json, account);
    json_stragglers(&json, account);
    json_collectives(&json, account);
    json_levers(&json, report->diagnosis);
    knee_json_string(&json, "step_source", step_source(account));
    knee_json_string(&json, "expected_of", *account->machine ? account->machine : NULL);
    knee_json_bool(&json, "expected_is_assumed", account->machine_assumed);
    json_steps(&json, account);
    knee_json_open(&json, "matching", '{');
    knee_json_whole(&json, "collectives", (int64_t)account->instances);
    knee_json_whole(&json, "partial", (int64_t)account->partial);
    knee_json_whole(&json, "not_ended_together", (int64_t)account->loose);
    knee_json_whole(&json, "unmatched_calls", (int64_t)account->unmatched);
    knee_json_whole(&json, "calls_of_further_kinds", (int64_t)account->further);
    knee_json_ns(&json, "transfer_s", account->transfer_ns, account->instances > 0);
    knee_json_ns(&json, "largest_clock_shift_s", account->largest_shift_ns, true);
    knee_json_ns(&json, "residual_s", account->residual_ns, true);
    knee_json_whole(&json, "world_size", account->world_size);
    knee_json_close(&json, '}');
    if (report->where)
        knee_json_where(&json, account, report->where);
    knee_inputs_json(&knee_job_keys, &report->diagnosis->prediction.job, &json);
    json_losses(&json, report->traces, report->trace_count);
    json_refused(&json, report);
    knee_json_close(&json, '}');
}

void knee_write_trace(const struct knee_trace_report *report, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(report, text);
    else if (format == KNEE_CSV)
        write_csv(report->account, style, text);
    else
        write_text(report, format, style, text);
}

/* SPDX-License-Identifier: MIT */
/* A roll call as text, JSON (schema knee.rollcall/1), CSV or Markdown. */
#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <string.h>

enum { BRIEF_ROWS = 8, MOST_ROWS = 32, LIST = 8 };

static double seconds(int64_t ns)
{
    return 1e-9 * (double)ns;
}

static const struct knee_comm_group *group_of(const struct knee_roll_report *r, uint32_t row)
{
    return &r->roll->groups[row];
}

/* "9 and 14", "0, 1, 2 and 5 more": of `ranks` the first LIST are looked at. */
static void say_ranks(const int32_t *ranks, size_t count, struct knee_text *text)
{
    size_t shown = count > LIST ? LIST : count;
    for (size_t i = 0; i < shown; i++)
        knee_text_printf(text, "%s%d", i == 0 ? "" : i + 1 == count ? " and " : ", ", ranks[i]);
    if (count > shown)
        knee_text_printf(text, " and %zu more", count - shown);
}

/* ---- The verdict ---- */

static void say_blamed(const struct knee_roll_answer *a, struct knee_text *text)
{
    static const char *const why[KNEE_BLAMES][2] = {
        [KNEE_BLAME_SILENT] = {"it has entered nothing that the others wait in",
                               "they have entered nothing that the others wait in"},
        [KNEE_BLAME_BEHIND] = {"its oldest unfinished collective is older than the others'",
                               "their oldest unfinished collectives are older than the others'"}};
    int32_t ranks[LIST] = {0};
    bool several = a->blamed_count > 1;
    for (size_t i = 0; i < a->blamed_count && i < LIST; i++)
        ranks[i] = a->blamed[i].rank;
    knee_text_printf(text, "Look at rank%s ", several ? "s" : "");
    say_ranks(ranks, a->blamed_count, text);
    knee_text_printf(text, " first: %s", why[a->blamed[0].blame][several]);
    if (a->blamed[0].blame == KNEE_BLAME_BEHIND)
        knee_text_printf(text, ", in %zu group%s", a->blamed[0].groups,
                         a->blamed[0].groups == 1 ? "" : "s");
    knee_text_puts(text, ". ");
}

/* The rank that keeps the others waiting longest; NULL: nobody is late. */
static const struct knee_roll_rank *latest(const struct knee_roll_answer *a)
{
    const struct knee_roll_rank *found = NULL;
    for (size_t i = 0; i < a->rank_count; i++)
        if (a->ranks[i].late && (!found || a->ranks[i].held_ns > found->held_ns))
            found = &a->ranks[i];
    return found;
}

static void say_late(const struct knee_roll_report *r, struct knee_text *text)
{
    const struct knee_roll_answer *a = r->answer;
    const struct knee_roll_rank *late = latest(a);
    double all = seconds(a->wait_ns + a->transfer_ns);
    if (late)
        knee_text_printf(text,
                         "Look at rank %d of group %s first: it comes last at %zu of %zu "
                         "collectives and keeps the others waiting for %s in all. ",
                         late->rank, knee_safe(group_of(r, late->group)->name, 40).s, late->last,
                         late->joined, knee_human(seconds(late->held_ns), KNEE_UNIT_SECONDS).s);
    else if (a->joined)
        knee_text_puts(text, "Nobody is late more often than by chance. ");
    if (all > 0)
        knee_text_printf(text,
                         "Of the time in collectives %s is waiting for the last rank and %s is the "
                         "wire%s. ",
                         knee_percent(seconds(a->wait_ns) / all).s,
                         knee_percent(seconds(a->transfer_ns) / all).s,
                         a->partial ? " (waiting at least, where ranks are missing)" : "");
}

static void say_wire(const struct knee_roll_answer *a, struct knee_text *text)
{
    if (a->slow_wire == SIZE_MAX)
        return;
    const struct knee_collective_account *c = &a->collectives[a->slow_wire];
    knee_text_printf(text,
                     "Its %s of %s reaches %s, %s of what %s can do: look at the transport "
                     "(NCCL_DEBUG=INFO shows what NCCL uses). ",
                     knee_op_name(c->op), knee_human((double)c->bytes, KNEE_UNIT_BYTES).s,
                     knee_human(c->bus_bytes_per_s, KNEE_UNIT_BYTES_PER_S).s,
                     knee_percent(c->expected_s / c->transfer_s).s, a->machine);
}

static void say_gaps(const struct knee_roll_report *r, struct knee_text *text)
{
    const struct knee_roll_answer *a = r->answer;
    if (a->missing_count) {
        knee_text_puts(text, "No dump was given of rank ");
        say_ranks(a->missing, a->missing_count, text);
        knee_text_puts(text, ": what happens there is not known. ");
    }
    if (a->mismatched)
        knee_text_printf(text,
                         "In %zu collectives ranks disagree on what they do or on its size, first "
                         "in number %lld of group %s: that alone can hang a job. ",
                         a->mismatched, (long long)a->mismatch_sequence,
                         knee_safe(group_of(r, a->mismatch_group)->name, 40).s);
    if (!a->joined && !a->partial && !a->stuck_count)
        knee_text_puts(text,
                       r->roll->untimed
                           ? "Nothing is timed: set TORCH_NCCL_ENABLE_TIMING=1 for wait and "
                             "transfer. "
                           : "No collective has two ranks here: give the files of all ranks. ");
}

static void say_formal(const struct knee_roll_report *r, struct knee_text *text)
{
    const struct knee_roll_answer *a = r->answer;
    bool dumps = strcmp(r->roll->format, "flight recorder") == 0;
    size_t files = r->roll->source_count, groups = r->roll->group_count;
    knee_text_printf(text, "%zu %s%s, %zu group%s: ", files,
                     dumps ? "Flight Recorder dump" : "NCCL Inspector file", files == 1 ? "" : "s",
                     groups, groups == 1 ? "" : "s");
    knee_text_printf(text,
                     "%zu collectives joined by group and number, %zu with some of their ranks "
                     "only, %zu sends and receives counted only",
                     a->joined, a->partial, a->p2p);
    if (r->roll->skipped)
        knee_text_printf(text, "; %llu lines or entries could not be read",
                         (unsigned long long)r->roll->skipped);
    knee_text_puts(text, ". No clock was compared. Compute is not in these records: R and overlap "
                         "need a trace (docs/record.md).");
}

static void verdict(const struct knee_roll_report *r, struct knee_text *text)
{
    if (r->answer->blamed_count)
        say_blamed(r->answer, text);
    else if (r->answer->stuck_count)
        knee_text_puts(text,
                       "All ranks are in the same collectives: what is stuck is the wire or a "
                       "GPU, not a rank that stayed away. ");
    say_late(r, text);
    say_wire(r->answer, text);
    say_gaps(r, text);
}

/* ---- Tables ---- */

static void stuck_table(const struct knee_roll_report *r, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    static const char *const heads[] = {"waits in", "for",     "number",   "operation",
                                        "size",     "entered", "not in it"};
    size_t most = style->brief ? BRIEF_ROWS : MOST_ROWS;
    struct knee_table table;
    knee_table_init(&table, "llrlrrl", text->alloc);
    KNEE_HEADS(&table, heads);
    for (size_t i = 0; i < r->answer->stuck_count && i < most; i++) {
        const struct knee_stuck *s = &r->answer->stuck[i];
        const struct knee_comm_group *group = group_of(r, s->group);
        struct knee_text ranks = {.alloc = text->alloc};
        say_ranks(s->absent, s->absent_count, &ranks);
        knee_table_cell(&table, "%s", knee_safe(group->name, 24).s);
        knee_table_cell(&table, "%s",
                        knee_safe(group->description ? group->description : "", 48).s);
        knee_table_cell(&table, "%lld", (long long)s->sequence);
        knee_table_cell(&table, "%s", knee_op_name(s->op));
        knee_table_number(&table, s->bytes >= 0 ? (double)s->bytes : NAN, KNEE_UNIT_BYTES);
        knee_table_cell(&table, "%zu", s->entered);
        knee_table_cell(&table, "%s", ranks.data ? ranks.data : "");
        text->failed = text->failed || ranks.failed;
        knee_text_release(&ranks);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
    if (r->answer->stuck_count > most)
        knee_text_printf(text, "  and %zu groups more (--json lists them all)\n",
                         r->answer->stuck_count - most);
}

static void kinds_table(const struct knee_roll_report *r, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    static const char *const heads[] = {"group",    "ranks",  "operation", "size",
                                        "calls",    "joined", "duration",  "wait",
                                        "transfer", "bus",    "expected"};
    size_t most = style->brief ? BRIEF_ROWS : MOST_ROWS;
    struct knee_table table;
    knee_table_init(&table, "lrlrrrrrrrr", text->alloc);
    KNEE_HEADS(&table, heads);
    for (size_t i = 0; i < r->answer->collective_count && i < most; i++) {
        const struct knee_collective_account *c = &r->answer->collectives[i];
        knee_table_cell(&table, "%s", knee_safe(c->group, 24).s);
        knee_table_cell(&table, "%d", c->group_size);
        knee_table_cell(&table, "%s", knee_op_name(c->op));
        knee_table_number(&table, c->bytes >= 0 ? (double)c->bytes : NAN, KNEE_UNIT_BYTES);
        knee_table_cell(&table, "%zu", c->calls);
        knee_table_cell(&table, "%zu", c->matched);
        knee_table_number(&table, c->duration_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, c->wait_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, c->transfer_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, c->bus_bytes_per_s, KNEE_UNIT_BYTES_PER_S);
        knee_table_number(&table, c->expected_s, KNEE_UNIT_SECONDS);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
    if (r->answer->collective_count > most)
        knee_text_printf(text, "  and %zu kinds more (--json lists them all)\n",
                         r->answer->collective_count - most);
}

static void time_cell(struct knee_table *table, int64_t ns, enum knee_format format)
{
    if (format == KNEE_CSV)
        knee_table_exact(table, seconds(ns));
    else
        knee_table_number(table, seconds(ns), KNEE_UNIT_SECONDS);
}

/* Those that are late, and then those that wait most, are worth a row. */
static void ranks_table(const struct knee_roll_report *r, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    static const char *const heads[] = {"group", "rank",     "joined",       "last",
                                        "wait",  "transfer", "kept waiting", "verdict"};
    size_t most = format == KNEE_CSV ? SIZE_MAX : style->brief ? BRIEF_ROWS : MOST_ROWS;
    size_t shown = 0, joined = 0;
    struct knee_table table;
    knee_table_init(&table, "lrrrrrrl", text->alloc);
    KNEE_HEADS(&table, heads);
    for (int late = 1; late >= 0; late--)
        for (size_t i = 0; i < r->answer->rank_count; i++) {
            const struct knee_roll_rank *rank = &r->answer->ranks[i];
            bool timed = rank->joined || rank->duration_ns > 0;
            joined += timed && rank->late == late;
            if (!timed || rank->late != late || shown == most)
                continue;
            shown++;
            knee_table_cell(&table, "%s", knee_safe(group_of(r, rank->group)->name, 24).s);
            knee_table_cell(&table, "%d", rank->rank);
            knee_table_cell(&table, "%zu", rank->joined);
            knee_table_cell(&table, "%zu", rank->last);
            time_cell(&table, rank->wait_ns, format);
            time_cell(&table, rank->transfer_ns, format);
            time_cell(&table, rank->held_ns, format);
            knee_table_cell(&table, "%s", rank->late ? "late" : "");
        }
    if (shown || format == KNEE_CSV) /* a file has its heads, even without rows */
        knee_table_write(&table, format, style, text);
    knee_table_release(&table);
    if (joined > shown)
        knee_text_printf(text, "  and %zu ranks more (--csv and --json list them all)\n",
                         joined - shown);
}

/* ---- JSON ---- */

static void json_kinds(struct knee_json *json, const struct knee_roll_answer *a)
{
    knee_json_open(json, "collectives", '[');
    for (size_t i = 0; i < a->collective_count; i++) {
        const struct knee_collective_account *c = &a->collectives[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "group", c->group);
        knee_json_string(json, "description", c->description);
        knee_json_number(json, "group_size", c->group_size > 0 ? (double)c->group_size : NAN);
        knee_json_string(json, "name", knee_op_name(c->op));
        knee_json_number(json, "bytes", c->bytes >= 0 ? (double)c->bytes : NAN);
        knee_json_whole(json, "calls", (int64_t)c->calls);
        knee_json_whole(json, "joined", (int64_t)c->matched);
        knee_json_number(json, "duration_s", c->duration_s);
        knee_json_number(json, "wait_s", c->wait_s);
        knee_json_number(json, "transfer_s", c->transfer_s);
        knee_json_number(json, "busbw_bytes_per_s", c->bus_bytes_per_s);
        knee_json_number(json, "expected_s", c->expected_s);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_ranks(struct knee_json *json, const struct knee_roll_report *r)
{
    knee_json_open(json, "ranks", '[');
    for (size_t i = 0; i < r->answer->rank_count; i++) {
        const struct knee_roll_rank *rank = &r->answer->ranks[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "group", group_of(r, rank->group)->name);
        knee_json_whole(json, "rank", rank->rank);
        knee_json_whole(json, "calls", (int64_t)rank->calls);
        knee_json_whole(json, "joined", (int64_t)rank->joined);
        knee_json_whole(json, "last", (int64_t)rank->last);
        knee_json_ns(json, "wait_s", rank->wait_ns, true);
        knee_json_ns(json, "transfer_s", rank->transfer_ns, true);
        knee_json_ns(json, "held_s", rank->held_ns, true);
        knee_json_bool(json, "late", rank->late);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_numbers(struct knee_json *json, const char *key, const int32_t *list, size_t count)
{
    knee_json_open_flat(json, key, '[');
    for (size_t i = 0; i < count; i++)
        knee_json_whole(json, NULL, list[i]);
    knee_json_close(json, ']');
}

static void json_stuck(struct knee_json *json, const struct knee_roll_report *r)
{
    knee_json_open(json, "stuck", '[');
    for (size_t i = 0; i < r->answer->stuck_count; i++) {
        const struct knee_stuck *s = &r->answer->stuck[i];
        const char *description = group_of(r, s->group)->description;
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "group", group_of(r, s->group)->name);
        knee_json_string(json, "description", description ? description : "");
        knee_json_whole(json, "number", s->sequence);
        knee_json_string(json, "name", knee_op_name(s->op));
        knee_json_number(json, "bytes", s->bytes >= 0 ? (double)s->bytes : NAN);
        knee_json_whole(json, "entered", (int64_t)s->entered);
        json_numbers(json, "not_in_it", s->absent, s->absent_count);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_blamed(struct knee_json *json, const struct knee_roll_answer *a)
{
    static const char *const words[] = {
        [KNEE_BLAME_SILENT] = "silent", [KNEE_BLAME_BEHIND] = "behind"};
    knee_json_open(json, "blamed", '[');
    for (size_t i = 0; i < a->blamed_count; i++) {
        knee_json_open_flat(json, NULL, '{');
        knee_json_whole(json, "rank", a->blamed[i].rank);
        knee_json_string(json, "why", words[a->blamed[i].blame]);
        knee_json_whole(json, "groups", (int64_t)a->blamed[i].groups);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void write_json(const struct knee_roll_report *r, struct knee_text *text)
{
    const struct knee_roll_answer *a = r->answer;
    struct knee_json json = {.text = text};
    struct knee_text words = {.alloc = text->alloc};
    verdict(r, &words);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.rollcall/1");
    knee_json_string(&json, "format", r->roll->format);
    knee_json_open(&json, "verdict", '{');
    knee_json_words(&json, "sentence", &words);
    knee_json_close(&json, '}');
    knee_json_whole(&json, "files", (int64_t)r->roll->source_count);
    knee_json_whole(&json, "entries", (int64_t)r->roll->entry_count);
    knee_json_whole(&json, "skipped", (int64_t)r->roll->skipped);
    knee_json_whole(&json, "joined", (int64_t)a->joined);
    knee_json_whole(&json, "partial", (int64_t)a->partial);
    knee_json_whole(&json, "mismatched", (int64_t)a->mismatched);
    knee_json_whole(&json, "p2p", (int64_t)a->p2p);
    knee_json_ns(&json, "wait_s", a->wait_ns, true);
    knee_json_ns(&json, "transfer_s", a->transfer_ns, true);
    knee_json_string(&json, "machine", *a->machine ? a->machine : NULL);
    json_blamed(&json, a);
    json_numbers(&json, "missing", a->missing, a->missing_count);
    json_stuck(&json, r);
    json_kinds(&json, a);
    json_ranks(&json, r);
    knee_json_close(&json, '}');
    knee_text_puts(text, "\n");
}

void knee_write_rollcall(const struct knee_roll_report *report, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc};
    if (format == KNEE_JSON) {
        write_json(report, text);
        return;
    }
    if (format != KNEE_CSV) {
        verdict(report, &words);
        knee_say(&words, format, style, text);
        say_formal(report, &words);
        knee_say(&words, format, style, text);
        knee_text_puts(text, "\n");
        if (report->answer->stuck_count)
            stuck_table(report, format, style, text);
        if (report->answer->joined || report->answer->partial)
            kinds_table(report, format, style, text);
    }
    ranks_table(report, format, style, text);
}

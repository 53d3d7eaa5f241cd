/* SPDX-License-Identifier: MIT */
/* A running job: who to look at, what the step is made of, then a row per rank. */
#include "out/show_watch.h"

#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <string.h>

enum { BRIEF_ROWS = 8, MOST_ROWS = 32, JSON_WIRES = 16 };

struct knee_step knee_watch_step(const struct knee_watch_report *r)
{
    return r->diagnosis ? r->diagnosis->step : r->watch->sampled;
}

static struct knee_word seconds(double value)
{
    return knee_human(value, KNEE_UNIT_SECONDS);
}

static long long rank_number(const struct knee_watch *w, size_t row)
{
    return (long long)w->ranks[row].about->rank;
}

/* ---- The verdict ---- */

/* In words that end a sentence about a rank; "": nobody knows. */
static void say_cause(const struct knee_watch_report *r, struct knee_text *text)
{
    const struct knee_watch *w = r->watch;
    const struct knee_watch_rank *rank = &w->ranks[w->late_rank];
    switch (w->cause) {
    case KNEE_WATCH_HOT:
        knee_text_printf(text, ": it is hot (%.0f C), its clock is down to %.0f MHz", rank->temp_c,
                         rank->sm_mhz);
        break;
    case KNEE_WATCH_POWER:
        knee_text_printf(text, ": its power is capped, its clock is down to %.0f MHz",
                         rank->sm_mhz);
        break;
    case KNEE_WATCH_CLOCK:
        knee_text_printf(text, ": its clock is %.0f MHz, the others' is higher", rank->sm_mhz);
        break;
    case KNEE_WATCH_LABEL:
        knee_text_printf(text, ": %s takes %s longer there", knee_label_name(w->label),
                         seconds(w->label_s).s);
        break;
    case KNEE_WATCH_UNKNOWN:
        knee_text_puts(text, " (no step that says why was sampled yet)");
        break;
    }
}

static void say_late(const struct knee_watch_report *r, struct knee_text *text)
{
    const struct knee_watch *w = r->watch;
    if (w->late_rank == SIZE_MAX) {
        knee_text_puts(text, w->meetings ? "Nobody keeps the others waiting. "
                                         : "Whether somebody is late cannot be told: no collective "
                                           "was found on all its ranks. ");
        return;
    }
    knee_text_printf(
        text, "Look at rank %lld on %s: the others wait %s a step for it (%s of the step)",
        rank_number(w, w->late_rank), knee_safe(w->ranks[w->late_rank].about->host, 40).s,
        seconds(w->late_s).s, knee_percent(w->late_s / w->step_s).s);
    say_cause(r, text);
    knee_text_puts(text, ". ");
}

/* "Since step 263", or between two steps of which the ones between were not read. */
static void say_since(const struct knee_watch *w, size_t point, struct knee_text *text)
{
    long long step = (long long)w->points[point].step;
    if (knee_watch_gap(w, point))
        knee_text_printf(text, "Since some step between %lld and %lld ",
                         (long long)w->points[point - 1].step, step);
    else
        knee_text_printf(text, "Since step %lld ", step);
}

static void say_changes(const struct knee_watch *w, struct knee_text *text)
{
    const struct knee_change *late = &w->late_change, *step = &w->step_change;
    if (w->late_change_rank != SIZE_MAX) {
        say_since(w, late->at, text);
        knee_text_printf(text, "rank %lld is %s later. ", rank_number(w, w->late_change_rank),
                         seconds(late->after - late->before).s);
    }
    if (step->found) {
        say_since(w, step->at, text);
        knee_text_printf(text, "steps take %s instead of %s. ", seconds(step->after).s,
                         seconds(step->before).s);
    }
}

static void say_silent(const struct knee_watch *w, struct knee_text *text)
{
    size_t shown = 0;
    if (!w->silent)
        return;
    knee_text_printf(text, "%zu of %zu ranks write nothing any more:", w->silent, w->rank_count);
    for (size_t i = 0; i < w->rank_count && shown < BRIEF_ROWS; i++)
        if (w->ranks[i].silent)
            knee_text_printf(text, "%s %lld", shown++ ? "," : "", rank_number(w, i));
    knee_text_printf(text, "%s. ", shown < w->silent ? " and more" : "");
}

static void say_wire(const struct knee_watch *w, struct knee_text *text)
{
    if (w->slow_wire == SIZE_MAX)
        return;
    const struct knee_watch_wire *wire = &w->wires[w->slow_wire];
    knee_text_printf(text,
                     "%s of %s among %u ranks takes %s times as long on the communicator of rank "
                     "%lld as on others like it: look at its links. ",
                     knee_safe(wire->op_name, 16).s, knee_size((double)wire->bytes).s,
                     wire->members, knee_short(wire->slowdown).s, rank_number(w, wire->a_rank));
}

static void say_alarms(const struct knee_watch_report *r, struct knee_text *text)
{
    for (size_t i = 0; i < r->alarm_count; i++) {
        enum knee_unit unit;
        const char *name = knee_alarm_metric(&r->alarms[i], &unit);
        if (r->states[i].goes)
            knee_text_printf(text, "ALARM: %s: %s is %s, since step %lld or before. ",
                             knee_safe(r->alarm_words[i], 60).s, name,
                             knee_human(r->states[i].value, unit).s,
                             (long long)r->states[i].since_step);
        else if (!r->states[i].known)
            knee_text_printf(text, "Nothing is known of %s yet. ", name);
    }
}

static void verdict(const struct knee_watch_report *r, struct knee_text *text)
{
    say_alarms(r, text);
    say_silent(r->watch, text);
    say_late(r, text);
    say_changes(r->watch, text);
    say_wire(r->watch, text);
}

/* ---- The formal lines ---- */

static void say_step(const struct knee_watch_report *r, struct knee_text *text)
{
    const struct knee_watch *w = r->watch;
    if (w->step < 0) {
        knee_text_puts(text, "No step was found in what the ranks enqueue: nothing repeats (yet).");
        return;
    }
    knee_text_printf(text, "Step %lld, %zu", (long long)w->step, w->rank_count);
    if (w->world > (int64_t)w->rank_count)
        knee_text_printf(text, " of %lld", (long long)w->world);
    knee_text_printf(text, " ranks: %s a step, %s since step %lld (%s); last line %s ago.",
                     seconds(w->step_s).s, knee_signed_percent(knee_watch_trend(w)).s,
                     (long long)w->first_step, seconds(w->first_step_s).s, seconds(w->age_s).s);
}

static void say_ratio(const struct knee_watch_report *r, struct knee_text *text)
{
    const struct knee_watch *w = r->watch;
    struct knee_step step = knee_watch_step(r);
    if (!(step.wall_s > 0)) {
        knee_text_puts(text, "R is not known: no step was sampled yet.");
        return;
    }
    knee_text_printf(text, "R = %s, E = %s; exposed %s of %s", knee_short(knee_step_ratio(&step)).s,
                     knee_percent(knee_step_efficiency(&step)).s,
                     seconds(knee_step_exposed_s(&step)).s, seconds(step.wall_s).s);
    if (r->diagnosis && r->diagnosis->split)
        knee_text_printf(text, ": %s transfer, %s wait", seconds(step.label_s[KNEE_TRANSFER]).s,
                         seconds(step.label_s[KNEE_WAIT]).s);
    else if (!isnan(w->wait_s))
        knee_text_printf(text, "; waiting in collectives, hidden or not, %s", seconds(w->wait_s).s);
    int64_t of = r->diagnosis ? r->trace_step : w->sampled_step;
    knee_text_printf(text, " (step %lld, %s%s).", (long long)of,
                     r->diagnosis ? "accounted as knee trace does" : "each rank by itself",
                     w->step_change.found && of < w->points[w->step_change.at].step
                         ? "; steps have changed since"
                         : "");
}

static void say_cost(const struct knee_watch *w, struct knee_text *text)
{
    if (isnan(w->dollars) && isnan(w->joules))
        return;
    knee_text_puts(text, "So far");
    if (!isnan(w->dollars)) {
        knee_text_printf(text, " %s (%s an hour and rank%s)",
                         knee_human(w->dollars, KNEE_UNIT_DOLLARS).s,
                         knee_human(w->price_per_hour, KNEE_UNIT_DOLLARS).s,
                         w->price_assumed ? ", indicative" : "");
        if (!isnan(w->stall_dollars))
            knee_text_printf(text, ", %s of it exposed communication at today's share",
                             knee_human(w->stall_dollars, KNEE_UNIT_DOLLARS).s);
    }
    if (!isnan(w->joules))
        knee_text_printf(text, "%s %s at the mean power", isnan(w->dollars) ? "" : ",",
                         knee_human(w->joules, KNEE_UNIT_JOULES).s);
    knee_text_puts(text, ".");
}

/* What was left out, repaired or capped. */
static void say_losses(const struct knee_watch_report *r, struct knee_text *text)
{
    const struct knee_watch *w = r->watch;
    if (r->trace_bytes)
        knee_text_printf(text, "The traces of step %lld (%s) were not read: knee trace does. ",
                         (long long)r->trace_step,
                         knee_human((double)r->trace_bytes, KNEE_UNIT_BYTES).s);
    if (r->earlier)
        knee_text_printf(text, "%zu folders are of earlier starts of their ranks. ", r->earlier);
    if (r->unusable)
        knee_text_printf(text, "%zu folders say nothing. ", r->unusable);
    if (w->damaged)
        knee_text_printf(text, "%llu lines are damaged or cut. ", (unsigned long long)w->damaged);
    if (w->left_out)
        knee_text_printf(text, "%llu collectives got no line. ", (unsigned long long)w->left_out);
    if (w->partial)
        knee_text_printf(text, "%zu collectives were not found on all their ranks. ", w->partial);
    if (!isnan(w->overhead))
        knee_text_printf(text, "The agent takes %s of the job's time, by its own count. ",
                         knee_percent(w->overhead).s);
}

/* ---- Tables ---- */

/* The ranks worth a row: the latest first where there are many. */
static bool row_shown(const struct knee_watch *w, size_t row, double least_late_s, size_t most)
{
    return w->rank_count <= most || row == w->late_rank || w->ranks[row].late_s >= least_late_s;
}

/* The lateness that leaves about `most` ranks. */
static double late_limit(const struct knee_watch *w, size_t most)
{
    double limit = INFINITY;
    for (size_t shown = 0; shown < most; shown++) {
        double next = -INFINITY;
        for (size_t i = 0; i < w->rank_count; i++)
            if (w->ranks[i].late_s < limit && w->ranks[i].late_s > next)
                next = w->ranks[i].late_s;
        if (isinf(next))
            break;
        limit = next;
    }
    return limit;
}

static void cell_s(struct knee_table *table, double value, enum knee_format format)
{
    if (format == KNEE_CSV)
        knee_table_exact(table, value);
    else if (isnan(value))
        knee_table_cell(table, "-");
    else
        knee_table_number(table, value, KNEE_UNIT_SECONDS);
}

static void cell_plain(struct knee_table *table, double value, enum knee_format format)
{
    if (format == KNEE_CSV)
        knee_table_exact(table, value);
    else if (isnan(value))
        knee_table_cell(table, "-");
    else
        knee_table_cell(table, "%.0f", value);
}

static void rank_row(const struct knee_watch *w, size_t row, enum knee_format format,
                     struct knee_table *table)
{
    const struct knee_watch_rank *rank = &w->ranks[row];
    bool sampled = rank->step_sampled.wall_s > 0;
    double exposed_s = sampled ? knee_step_exposed_s(&rank->step_sampled) : NAN;
    knee_table_cell(table, "%lld", (long long)rank->about->rank);
    knee_table_cell(table, "%s", knee_safe(rank->about->host, 24).s);
    knee_table_cell(table, "%lld", (long long)rank->step);
    cell_s(table, rank->step_s, format);
    cell_s(table, sampled ? rank->step_sampled.label_s[KNEE_COMPUTE] : NAN, format);
    cell_s(table, exposed_s, format);
    cell_s(table, rank->wait_s, format);
    cell_s(table, rank->late_s, format);
    cell_plain(table, rank->sm_mhz, format);
    cell_plain(table, rank->power_w, format);
    knee_table_cell(table, "%s", rank->silent ? "silent" : row == w->late_rank ? "late" : "");
}

static void ranks_table(const struct knee_watch_report *r, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    static const char *const heads[] = {"rank", "host", "step", "step_s", "compute", "exposed",
                                        "wait", "late", "MHz",  "W",      ""};
    const struct knee_watch *w = r->watch;
    struct knee_table table;
    size_t most = style->brief ? BRIEF_ROWS : MOST_ROWS, shown = 0;
    double limit = format == KNEE_CSV || w->rank_count <= most ? -INFINITY : late_limit(w, most);
    knee_table_init(&table, "rlrrrrrrrrl", text->alloc);
    KNEE_HEADS(&table, heads);
    for (size_t i = 0; i < w->rank_count; i++)
        if (format == KNEE_CSV || (shown < most && row_shown(w, i, limit, most))) {
            rank_row(w, i, format, &table);
            shown++;
        }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
    if (shown < w->rank_count)
        knee_text_printf(text, "%zu of %zu ranks: the latest; --csv has all.\n", shown,
                         w->rank_count);
}

static void wires_table(const struct knee_watch_report *r, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    static const char *const heads[] = {"collective", "size",     "ranks",      "calls",
                                        "wire",       "bus GB/s", "over others"};
    struct knee_table table;
    const struct knee_watch *w = r->watch;
    knee_table_init(&table, "lrrrrrr", text->alloc);
    KNEE_HEADS(&table, heads);
    for (size_t i = 0; i < w->wire_count; i++) {
        const struct knee_watch_wire *wire = &w->wires[i];
        if (i >= BRIEF_ROWS && i != w->slow_wire)
            continue;
        knee_table_cell(&table, "%s", knee_safe(wire->op_name, 16).s);
        knee_table_cell(&table, "%s", knee_size((double)wire->bytes).s);
        knee_table_cell(&table, "%u", wire->members);
        knee_table_cell(&table, "%zu", wire->calls);
        knee_table_number(&table, wire->wire_s, KNEE_UNIT_SECONDS);
        knee_table_cell(&table, "%s",
                        isnan(wire->bus_bytes_per_s) ? "-"
                                                     : knee_short(1e-9 * wire->bus_bytes_per_s).s);
        knee_table_cell(&table, "%s", isnan(wire->slowdown) ? "-" : knee_short(wire->slowdown).s);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
    knee_text_puts(text, "\n");
}

/* ---- JSON ---- */

static void json_change(struct knee_json *json, const char *key, const struct knee_watch *w,
                        const struct knee_change *change, size_t rank)
{
    if (!change->found)
        return;
    knee_json_open(json, key, '{');
    knee_json_whole(json, "since_step", w->points[change->at].step);
    knee_json_bool(json, "or_before", knee_watch_gap(w, change->at));
    if (rank != SIZE_MAX)
        knee_json_whole(json, "rank", w->ranks[rank].about->rank);
    knee_json_number(json, "before_s", change->before);
    knee_json_number(json, "after_s", change->after);
    knee_json_number(json, "chance", change->chance);
    knee_json_close(json, '}');
}

static void json_late(struct knee_json *json, const struct knee_watch *w)
{
    static const char *const causes[] = {[KNEE_WATCH_UNKNOWN] = "unknown",
                                         [KNEE_WATCH_HOT] = "hot",
                                         [KNEE_WATCH_POWER] = "power",
                                         [KNEE_WATCH_CLOCK] = "clock",
                                         [KNEE_WATCH_LABEL] = "label"};
    if (w->late_rank == SIZE_MAX)
        return;
    knee_json_open(json, "late", '{');
    knee_json_whole(json, "rank", w->ranks[w->late_rank].about->rank);
    knee_json_string(json, "host", w->ranks[w->late_rank].about->host);
    knee_json_number(json, "late_s", w->late_s);
    knee_json_string(json, "cause",
                     w->cause == KNEE_WATCH_LABEL ? knee_label_name(w->label) : causes[w->cause]);
    knee_json_close(json, '}');
}

static void json_step(struct knee_json *json, const struct knee_watch_report *r)
{
    static const char *const keys[KNEE_LABELS] = {
        [KNEE_COMPUTE] = "compute_s", [KNEE_TRANSFER] = "transfer_s", [KNEE_WAIT] = "wait_s",
        [KNEE_COPY] = "copy_s",       [KNEE_STARVED] = "starved_s",   [KNEE_HOST] = "host_s",
        [KNEE_IDLE] = "idle_s"};
    struct knee_step step = knee_watch_step(r);
    if (!(step.wall_s > 0))
        return;
    knee_json_open(json, "sampled", '{');
    knee_json_whole(json, "step", r->diagnosis ? r->trace_step : r->watch->sampled_step);
    knee_json_bool(json, "joined", r->diagnosis != NULL);
    knee_json_bool(json, "split", r->diagnosis && r->diagnosis->split);
    knee_json_number(json, "R", knee_step_ratio(&step));
    knee_json_number(json, "E", knee_step_efficiency(&step));
    knee_json_number(json, "exposed_s", knee_step_exposed_s(&step));
    knee_json_number(json, "step_s", step.wall_s);
    for (int label = 0; label < KNEE_LABELS; label++)
        knee_json_number(json, keys[label], step.label_s[label]);
    if (r->diagnosis && r->diagnosis->late_ranks) {
        const struct knee_straggler *late = &r->account->stragglers[0];
        knee_json_whole(json, "late_rank", r->account->ranks[late->rank].rank);
        knee_json_string(json, "late_cause", knee_label_name(late->cause));
    }
    knee_json_close(json, '}');
}

static void json_ranks(struct knee_json *json, const struct knee_watch *w)
{
    knee_json_open(json, "ranks", '[');
    for (size_t i = 0; i < w->rank_count; i++) {
        const struct knee_watch_rank *rank = &w->ranks[i];
        bool sampled = rank->step_sampled.wall_s > 0;
        knee_json_open_flat(json, NULL, '{');
        knee_json_whole(json, "rank", rank->about->rank);
        knee_json_string(json, "host", rank->about->host);
        knee_json_whole(json, "step", rank->step);
        knee_json_number(json, "step_s", rank->step_s);
        knee_json_number(json, "compute_s",
                         sampled ? rank->step_sampled.label_s[KNEE_COMPUTE] : NAN);
        knee_json_number(json, "exposed_s",
                         sampled ? knee_step_exposed_s(&rank->step_sampled) : NAN);
        knee_json_number(json, "wait_s", rank->wait_s);
        knee_json_number(json, "late_s", rank->late_s);
        knee_json_number(json, "sm_mhz", rank->sm_mhz);
        knee_json_number(json, "power_w", rank->power_w);
        knee_json_number(json, "temp_c", rank->temp_c);
        knee_json_number(json, "joules", rank->joules);
        knee_json_bool(json, "silent", rank->silent);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_wires(struct knee_json *json, const struct knee_watch *w)
{
    knee_json_open(json, "collectives", '[');
    for (size_t i = 0; i < w->wire_count && i < JSON_WIRES; i++) {
        const struct knee_watch_wire *wire = &w->wires[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "op", wire->op_name);
        knee_json_whole(json, "bytes", wire->bytes);
        knee_json_whole(json, "ranks", (int64_t)wire->members);
        knee_json_whole(json, "a_rank", w->ranks[wire->a_rank].about->rank);
        knee_json_whole(json, "calls", (int64_t)wire->calls);
        knee_json_number(json, "wire_s", wire->wire_s);
        knee_json_number(json, "bus_bytes_per_s", wire->bus_bytes_per_s);
        knee_json_number(json, "over_others", wire->slowdown);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_alarms(struct knee_json *json, const struct knee_watch_report *r)
{
    knee_json_open(json, "alarms", '[');
    for (size_t i = 0; i < r->alarm_count; i++) {
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "when", r->alarm_words[i]);
        knee_json_bool(json, "goes", r->states[i].goes);
        knee_json_number(json, "value", r->states[i].value);
        knee_json_whole(json, "since_step", r->states[i].since_step);
        knee_json_number(json, "held_s", r->states[i].held_s);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_losses(struct knee_json *json, const struct knee_watch_report *r)
{
    const struct knee_watch *w = r->watch;
    knee_json_open(json, "left_out", '{');
    knee_json_whole(json, "trace_bytes", (int64_t)r->trace_bytes);
    knee_json_whole(json, "earlier_folders", (int64_t)r->earlier);
    knee_json_whole(json, "unusable_folders", (int64_t)r->unusable);
    knee_json_whole(json, "damaged_lines", (int64_t)w->damaged);
    knee_json_whole(json, "collectives_without_line", (int64_t)w->left_out);
    knee_json_whole(json, "collectives_partial", (int64_t)w->partial);
    knee_json_close(json, '}');
}

static void write_json(const struct knee_watch_report *r, struct knee_text *text)
{
    const struct knee_watch *w = r->watch;
    struct knee_json json = {.text = text};
    struct knee_text words = {.alloc = text->alloc};
    verdict(r, &words);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.watch/1");
    knee_json_words(&json, "sentence", &words);
    knee_json_whole(&json, "step", w->step);
    knee_json_whole(&json, "first_step", w->first_step);
    knee_json_whole(&json, "world", w->world);
    knee_json_number(&json, "step_s", w->step_s);
    knee_json_number(&json, "first_step_s", w->first_step_s);
    knee_json_number(&json, "trend", knee_watch_trend(w));
    knee_json_number(&json, "wait_s", w->wait_s);
    knee_json_number(&json, "age_s", w->age_s);
    knee_json_whole(&json, "silent", (int64_t)w->silent);
    knee_json_whole(&json, "joined", (int64_t)w->meetings);
    json_step(&json, r);
    json_late(&json, w);
    json_change(&json, "step_change", w, &w->step_change, SIZE_MAX);
    json_change(&json, "late_change", w, &w->late_change, w->late_change_rank);
    knee_json_number(&json, "dollars", w->dollars);
    knee_json_number(&json, "stall_dollars", w->stall_dollars);
    knee_json_number(&json, "joules", w->joules);
    knee_json_number(&json, "overhead", w->overhead);
    json_alarms(&json, r);
    json_losses(&json, r);
    json_wires(&json, w);
    json_ranks(&json, w);
    knee_json_close(&json, '}');
    knee_text_puts(text, "\n");
}

void knee_write_watch(const struct knee_watch_report *report, enum knee_format format,
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
        say_step(report, &words);
        knee_say(&words, format, style, text);
        say_ratio(report, &words);
        knee_say(&words, format, style, text);
        say_cost(report->watch, &words);
        knee_say(&words, format, style, text); /* where there is something */
        if (!style->brief)
            say_losses(report, &words);
        knee_say(&words, format, style, text);
        knee_text_puts(text, "\n");
        if (report->watch->wire_count && !style->brief)
            wires_table(report, format, style, text);
    }
    ranks_table(report, format, style, text);
}

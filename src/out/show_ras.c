/* SPDX-License-Identifier: MIT */
/* What NCCL's RAS service says of a running job: who is behind, what stands still, who is gone. */
#include "out/show_ras.h"

#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>

enum { MOST_ROWS = 32, LIST = 8 };

static const char *state_of(const struct knee_ras_row *row)
{
    return row->rank->dead           ? "dead"
           : row->rank->unresponsive ? "unresponsive"
           : row->rank->missing      ? "missing"
           : row->rank->failed       ? "error"
           : row->late               ? "late"
           : row->still              ? "still"
                                     : "";
}

/* " 3 on node0, 5 on node1 and more" of the rows that `is` takes. */
static void say_list(const struct knee_ras_answer *a, bool (*is)(const struct knee_ras_row *),
                     struct knee_text *text)
{
    size_t shown = 0;
    for (size_t i = 0; i < a->count && shown <= LIST; i++) {
        if (!is(&a->rows[i]))
            continue;
        if (shown++ == LIST)
            knee_text_puts(text, " and more");
        else
            knee_text_printf(text, "%s %lld on %s", shown > 1 ? "," : "",
                             (long long)a->rows[i].rank->rank,
                             knee_safe(a->rows[i].rank->host, 40).s);
    }
    knee_text_puts(text, ". ");
}

static bool is_dead(const struct knee_ras_row *row)
{
    return row->rank->dead;
}

static bool is_unresponsive(const struct knee_ras_row *row)
{
    return row->rank->unresponsive && !row->rank->dead;
}

static bool is_failed(const struct knee_ras_row *row)
{
    return row->rank->failed;
}

static bool is_late(const struct knee_ras_row *row)
{
    return row->late;
}

static bool holds_still(const struct knee_ras_row *row)
{
    return row->still && row->lag > 0;
}

static void say_still(const struct knee_ras_answer *a, struct knee_text *text)
{
    bool unequal = false;
    for (size_t i = 0; i < a->count; i++)
        unequal = unequal || holds_still(&a->rows[i]);
    if (!a->still_comms)
        return;
    knee_text_printf(text,
                     "In %zu of %zu communicators nothing was enqueued for %s: ", a->still_comms,
                     a->comms, knee_human(a->seconds, KNEE_UNIT_SECONDS).s);
    if (!unequal) {
        knee_text_puts(text, "all ranks are equally far, so they wait on a GPU or outside of NCCL "
                             "(or the communicator is not in use, or its calls run in CUDA graphs, "
                             "which NCCL does not count). ");
        return;
    }
    knee_text_puts(text, "the others wait for rank");
    say_list(a, holds_still, text);
}

static void verdict(const struct knee_ras_answer *a, struct knee_text *text)
{
    static const struct {
        const char *words;
        bool (*is)(const struct knee_ras_row *);
    } rows[] = {{"Dead: rank", is_dead},
                {"Does not answer: rank", is_unresponsive},
                {"Reports an error: rank", is_failed},
                {"Look at the host of rank", is_late}};
    const size_t counts[] = {a->dead, a->unresponsive, a->failed, a->late};
    bool said = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (counts[i]) {
            knee_text_puts(text, rows[i].words);
            say_list(a, rows[i].is, text);
            said = true;
        }
    if (a->late)
        knee_text_puts(text, "Whenever ranks differ in what they have enqueued, it is behind. ");
    say_still(a, text);
    if (!said && !a->still_comms)
        knee_text_puts(text, "All ranks are there, and nobody is always behind. ");
}

static void write_json(const struct knee_ras_answer *a, const char *nccl, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    struct knee_text words = {.alloc = text->alloc};
    verdict(a, &words);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.ras/1");
    knee_json_words(&json, "sentence", &words);
    knee_json_string(&json, "nccl", nccl);
    knee_json_whole(&json, "answers", (int64_t)a->answers);
    knee_json_number(&json, "seconds", a->seconds);
    knee_json_whole(&json, "communicators", (int64_t)a->comms);
    knee_json_whole(&json, "still", (int64_t)a->still_comms);
    knee_json_open(&json, "ranks", '[');
    for (size_t i = 0; i < a->count; i++) {
        const struct knee_ras_row *row = &a->rows[i];
        knee_json_open_flat(&json, NULL, '{');
        knee_json_string(&json, "communicator", row->rank->comm);
        knee_json_whole(&json, "rank", row->rank->rank);
        knee_json_string(&json, "host", row->rank->host);
        knee_json_whole(&json, "pid", row->rank->pid);
        knee_json_whole(&json, "calls", row->rank->calls);
        knee_json_number(&json, "calls_per_s", row->calls_per_s);
        knee_json_whole(&json, "lag", row->lag);
        knee_json_whole(&json, "uneven", (int64_t)row->uneven);
        knee_json_whole(&json, "behind", (int64_t)row->behind);
        knee_json_string(&json, "state", state_of(row));
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
    knee_text_puts(text, "\n");
}

static void ranks_table(const struct knee_ras_answer *a, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    static const char *const heads[] = {"communicator", "rank",   "host",   "pid", "calls",
                                        "calls/s",      "behind", "uneven", ""};
    struct knee_table table;
    size_t shown = 0;
    knee_table_init(&table, "lrlrrrrrl", text->alloc);
    KNEE_HEADS(&table, heads);
    for (size_t i = 0; i < a->count; i++) {
        const struct knee_ras_row *row = &a->rows[i];
        if (format != KNEE_CSV && a->count > MOST_ROWS && !*state_of(row))
            continue;
        if (format != KNEE_CSV && shown++ == MOST_ROWS)
            break;
        knee_table_cell(&table, "%s", knee_safe(row->rank->comm, 18).s);
        knee_table_cell(&table, "%lld", (long long)row->rank->rank);
        knee_table_cell(&table, "%s", knee_safe(row->rank->host, 24).s);
        knee_table_cell(&table, "%lld", (long long)row->rank->pid);
        knee_table_cell(&table, "%lld", (long long)row->rank->calls);
        knee_table_cell(&table, "%s",
                        isnan(row->calls_per_s) ? "-" : knee_short(row->calls_per_s).s);
        knee_table_cell(&table, "%zu", row->behind);
        knee_table_cell(&table, "%zu", row->uneven);
        knee_table_cell(&table, "%s", state_of(row));
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

void knee_write_ras(const struct knee_ras_answer *answer, const char *nccl, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc};
    if (format == KNEE_JSON) {
        write_json(answer, nccl, text);
        return;
    }
    if (format != KNEE_CSV) {
        verdict(answer, &words);
        knee_say(&words, format, style, text);
        knee_text_printf(&words, "%zu ranks of %zu communicators, NCCL %s, %zu answers in %s.",
                         answer->count, answer->comms, knee_safe(nccl, 20).s, answer->answers,
                         knee_human(answer->seconds, KNEE_UNIT_SECONDS).s);
        knee_say(&words, format, style, text);
        knee_text_puts(text, "\n");
    }
    ranks_table(answer, format, style, text);
}

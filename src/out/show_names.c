/* SPDX-License-Identifier: MIT */
/* The names of the work in traces and what each was taken for, so that a user sees it. */
#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <stdlib.h>
#include <string.h>

struct named {
    const char *name;
    enum knee_span_kind kind;
    enum knee_op op;
    size_t calls;
    int64_t ns;
};

static const char *const kinds[] = {[KNEE_SPAN_COMPUTE] = "compute",
                                    [KNEE_SPAN_COMM] = "comm",
                                    [KNEE_SPAN_FUSED] = "fused",
                                    [KNEE_SPAN_COPY] = "copy"};

static int by_name(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

/* Communication first, then what computes and communicates, then the rest; each by time. */
static int by_time(const void *left, const void *right)
{
    static const int order[] = {
        [KNEE_SPAN_COMM] = 0, [KNEE_SPAN_FUSED] = 1, [KNEE_SPAN_COPY] = 2, [KNEE_SPAN_COMPUTE] = 3};
    const struct named *a = left, *b = right;
    if (a->kind != b->kind)
        return order[a->kind] < order[b->kind] ? -1 : 1;
    if (a->ns != b->ns)
        return a->ns < b->ns ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* One file's spans, summed by the rows of its names. */
static void sum_trace(const struct knee_trace *trace, struct named *rows)
{
    for (size_t i = 0; i < trace->name_count; i++)
        rows[i].name = trace->names[i];
    for (size_t r = 0; r < trace->rank_count; r++)
        for (size_t s = 0; s < trace->ranks[r].span_count; s++) {
            const struct knee_span *span = &trace->ranks[r].spans[s];
            struct named *row = &rows[span->name];
            row->kind = span->kind;
            row->op = span->call ? trace->ranks[r].calls[span->call - 1].op : KNEE_OP_UNKNOWN;
            row->calls++;
            row->ns += span->end_ns - span->start_ns;
        }
}

/* All files', each name once; NULL: no memory. */
static struct named *sum_all(const struct knee_trace_report *report, const struct knee_alloc *alloc,
                             size_t *count)
{
    size_t most = 0, used = 0, kept = 0;
    for (size_t t = 0; t < report->trace_count; t++)
        most += report->traces[t].name_count;
    struct named *all = knee_resize(alloc, NULL, (most + 1) * sizeof *all);
    if (!all)
        return NULL;
    memset(all, 0, (most + 1) * sizeof *all);
    for (size_t t = 0; t < report->trace_count; t++) {
        sum_trace(&report->traces[t], all + used);
        used += report->traces[t].name_count;
    }
    qsort(all, used, sizeof *all, by_name);
    for (size_t i = 0; i < used; i++) {
        if (all[i].calls == 0)
            continue;
        bool same = kept && by_name(&all[kept - 1], &all[i]) == 0;
        if (same) {
            all[kept - 1].calls += all[i].calls;
            all[kept - 1].ns += all[i].ns;
        } else {
            all[kept++] = all[i];
        }
    }
    qsort(all, kept, sizeof *all, by_time);
    *count = kept;
    return all;
}

static const char *op_word(const struct named *row)
{
    bool talks = row->kind == KNEE_SPAN_COMM || row->kind == KNEE_SPAN_FUSED;
    return talks ? knee_op_name(row->op) : "";
}

static void write_json(const struct named *rows, size_t count, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.names/1");
    knee_json_open(&json, "names", '[');
    for (size_t i = 0; i < count; i++) {
        knee_json_open_flat(&json, NULL, '{');
        knee_json_string(&json, "name", rows[i].name);
        knee_json_string(&json, "taken_for", kinds[rows[i].kind]);
        knee_json_string(&json, "operation", op_word(&rows[i]));
        knee_json_whole(&json, "calls", (int64_t)rows[i].calls);
        knee_json_ns(&json, "time_s", rows[i].ns, true);
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
    knee_text_puts(text, "\n");
}

void knee_write_names(const struct knee_trace_report *report, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text)
{
    static const char *const heads[] = {"taken for", "operation", "calls", "time", "name"};
    enum { MOST = 48, WIDTH = 72 };
    size_t count = 0, most = format == KNEE_TEXT ? MOST : SIZE_MAX;
    struct named *rows = sum_all(report, text->alloc, &count);
    struct knee_table table;
    text->failed = text->failed || !rows;
    if (!rows)
        return;
    if (format == KNEE_JSON) {
        write_json(rows, count, text);
    } else {
        knee_table_init(&table, "llrrl", text->alloc);
        KNEE_HEADS(&table, heads);
        for (size_t i = 0; i < count && i < most; i++) {
            knee_table_cell(&table, "%s", kinds[rows[i].kind]);
            knee_table_cell(&table, "%s", op_word(&rows[i]));
            knee_table_cell(&table, "%zu", rows[i].calls);
            knee_table_number(&table, 1e-9 * (double)rows[i].ns, KNEE_UNIT_SECONDS);
            knee_table_cell(&table, "%s", knee_safe(rows[i].name, WIDTH).s);
        }
        knee_table_write(&table, format, style, text);
        knee_table_release(&table);
        if (count > most)
            knee_text_printf(text, "  and %zu names more (--json lists them all)\n", count - most);
        if (format == KNEE_TEXT)
            knee_text_puts(text, "  Taken for something else? --patterns FILE, with lines of "
                                 "WORD KIND [OPERATION].\n");
    }
    knee_resize(text->alloc, rows, 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * Databases of rocprofv3 (rocpd, schema 3). The tables' names end in the file's own identifier, and
 * a merged file has several sets of them; views without it are not used. Start and end stand in the
 * rows (a draft of schema 4 keeps them elsewhere and is counted as unreadable). agent_id, queue_id,
 * kernel_id are rows of rocpd_info_ tables. A kernel and the call that launched it share the
 * stack_id of their events.
 */
#include "base/fold.h"
#include "base/format.h"
#include "base/text.h"
#include "read/trace/trace_json.h"

#include <stdlib.h>
#include <string.h>

#if defined(KNEE_HAVE_SQLITE) && KNEE_HAVE_SQLITE
#include "read/trace/nsys.h"

enum { SUFFIX = 128, PARTS = 64 };

/* One set of tables after the other. */
struct knee_rocpd_parts {
    char suffix[PARTS][SUFFIX];
    size_t count;
};

#define DISPATCHES "rocpd_kernel_dispatch"

bool knee_rocpd_is(struct knee_nsys *n)
{
    return knee_nsys_look_up(n, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name GLOB ?1",
                             DISPATCHES "*", NULL) > 0;
}

/* Only letters, digits and underscores: it is put into statements. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (!knee_is_word_char(*text) && *text != '_')
            return false;
    return true;
}

static void take_part(struct knee_nsys *n, sqlite3_stmt *row)
{
    const char *suffix = (const char *)sqlite3_column_text(row, 0);
    bool good = suffix && strlen(suffix) < SUFFIX && is_plain(suffix);
    if (good && n->parts->count < PARTS)
        knee_format(n->parts->suffix[n->parts->count++], SUFFIX, "%s", suffix);
    else
        n->trace->losses[KNEE_LOSS_COLUMN].count++;
}

/* ---- Rows ---- */

/* Several merged files have agents of the same numbers. */
static int64_t device_of(const struct knee_nsys *n, int64_t agent)
{
    return n->part << 32 | (agent & 0xffffffff);
}

/* start, end, agent, queue, stream, kernel, stack_id */
static void take_dispatch(struct knee_nsys *n, sqlite3_stmt *row)
{
    int64_t start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    struct knee_nsys symbols = {.strings = n->symbols, .string_count = n->symbol_count};
    const struct knee_nsys_string *name =
        knee_nsys_string_of(&symbols, sqlite3_column_int64(row, 5));
    bool streams = sqlite3_column_type(row, 4) != SQLITE_NULL;
    if (!knee_nsys_usable(n, start, end))
        return;
    n->trace->losses[KNEE_REPAIR_DURATION].count += end < start;
    n->trace->events++;
    knee_builder_span(
        n->builder,
        &(struct knee_gpu_work){
            device_of(n, sqlite3_column_int64(row, 2)), start, end < start ? start : end,
            name ? name->name : knee_builder_name(n->builder, "unnamed kernel", 14),
            (int32_t)sqlite3_column_int64(row, streams ? 4 : 3),
            knee_nsys_correlation(n->part, sqlite3_column_int64(row, 6)), false, NULL});
}

/* start, end, agent (the GPU's), name, queue, stream, stack_id, both agents are GPUs */
static void take_memory_copy(struct knee_nsys *n, sqlite3_stmt *row)
{
    int64_t start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    const struct knee_nsys_string *name = knee_nsys_string_of(n, sqlite3_column_int64(row, 3));
    bool peer = sqlite3_column_int(row, 7), streams = sqlite3_column_type(row, 5) != SQLITE_NULL;
    if (!knee_nsys_usable(n, start, end))
        return;
    n->trace->losses[KNEE_REPAIR_DURATION].count += end < start;
    n->trace->events++;
    uint32_t called = peer   ? knee_builder_name(n->builder, "Memcpy PtoP", 11)
                      : name ? name->name
                             : knee_builder_name(n->builder, "Memcpy", 6);
    knee_builder_span(n->builder, &(struct knee_gpu_work){
                                      device_of(n, sqlite3_column_int64(row, 2)), start,
                                      end < start ? start : end, called,
                                      (int32_t)sqlite3_column_int64(row, streams ? 5 : 4),
                                      knee_nsys_correlation(n->part, sqlite3_column_int64(row, 6)),
                                      true, NULL});
}

/* start, end, tid, stack_id, name */
static void take_region(struct knee_nsys *n, sqlite3_stmt *row)
{
    int64_t start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    const struct knee_nsys_string *name = knee_nsys_string_of(n, sqlite3_column_int64(row, 4));
    if (!name || !knee_nsys_usable(n, start, end) || end < start)
        return;
    if (name->step >= 0)
        knee_builder_step_of(
            n->builder,
            &(struct knee_raw_mark){{start, end, name->step, -1}, KNEE_STEPS_ANNOTATION, 0});
    else if (name->launches)
        knee_builder_launch(n->builder, start, end, sqlite3_column_int64(row, 2),
                            knee_nsys_correlation(n->part, sqlite3_column_int64(row, 3)));
}

static void take_host(struct knee_nsys *n, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    if (!n->trace->host[0])
        knee_format(n->trace->host, sizeof n->trace->host, "%s", name ? name : "");
}

/* ---- One set of tables ---- */

/* Reads columns of "name<suffix>" where that table is there. */
static void read_named(struct knee_nsys *n, const char *name, const char *suffix,
                       struct knee_nsys_source source)
{
    char table[SUFFIX + 64];
    knee_format(table, sizeof table, "%s%s", name, suffix);
    source.table = table;
    knee_nsys_read_source(n, &source);
}

static void read_names(struct knee_nsys *n, const char *suffix)
{
    char table[SUFFIX + 64];
    struct knee_nsys_source strings = {table, {"id", "string"}, 2, NULL, knee_nsys_take_string};
    knee_format(table, sizeof table, "rocpd_info_kernel_symbol%s", suffix);
    bool display = knee_nsys_has_column(n, table, "display_name");
    struct knee_nsys_source symbols = {
        table, {"id", display ? "display_name" : "kernel_name"}, 2, NULL, knee_nsys_take_string};
    knee_nsys_read_strings(n, &symbols);
    knee_resize(n->trace->alloc, n->symbols, 0);
    n->symbols = n->strings;
    n->symbol_count = n->string_count;
    n->strings = NULL;
    n->string_count = n->string_capacity = 0;
    knee_format(table, sizeof table, "rocpd_string%s", suffix);
    knee_nsys_read_strings(n, &strings);
}

/* The stack_id of a row's event, where there are events. */
static void event_words(struct knee_nsys *n, const char *suffix, const char *table, char *column,
                        char *joined, size_t size)
{
    char events[SUFFIX + 64], rows[SUFFIX + 64];
    knee_format(events, sizeof events, "rocpd_event%s", suffix);
    knee_format(rows, sizeof rows, "%s%s", table, suffix);
    bool there = knee_nsys_has_table(n, events) && knee_nsys_has_column(n, events, "stack_id") &&
                 knee_nsys_has_column(n, rows, "event_id");
    knee_format(column, size, "%s", there ? "e.stack_id" : "0");
    if (there)
        knee_format(joined, size, "LEFT JOIN \"%s\" e ON e.id = r.event_id", events);
    else
        joined[0] = '\0';
}

/* A column of the rows, or NULL where it is not there. */
static const char *column_or_null(struct knee_nsys *n, const char *table, const char *column,
                                  const char *qualified)
{
    return knee_nsys_has_column(n, table, column) ? qualified : "NULL";
}

static void read_work(struct knee_nsys *n, const char *suffix)
{
    char sql[1024], column[256], joined[256], table[SUFFIX + 64];
    event_words(n, suffix, DISPATCHES, column, joined, sizeof joined);
    knee_format(table, sizeof table, DISPATCHES "%s", suffix);
    knee_format(sql, sizeof sql,
                "SELECT r.start, r.\"end\", r.agent_id, r.queue_id, %s, r.kernel_id, %s FROM "
                "\"%s\" r %s",
                column_or_null(n, table, "stream_id", "r.stream_id"), column, table, joined);
    knee_nsys_each_row(n, sql, take_dispatch);
    knee_format(table, sizeof table, "rocpd_memory_copy%s", suffix);
    if (!knee_nsys_has_table(n, table))
        return;
    event_words(n, suffix, "rocpd_memory_copy", column, joined, sizeof joined);
    knee_format(sql, sizeof sql,
                "SELECT r.start, r.\"end\", CASE WHEN d.type = 'GPU' THEN r.dst_agent_id ELSE "
                "r.src_agent_id END, r.name_id, r.queue_id, %s, %s, d.type = 'GPU' AND s.type = "
                "'GPU' AND r.src_agent_id <> r.dst_agent_id FROM \"%s\" r LEFT JOIN "
                "\"rocpd_info_agent%s\" d ON d.id = r.dst_agent_id LEFT JOIN "
                "\"rocpd_info_agent%s\" s ON s.id = r.src_agent_id %s",
                column_or_null(n, table, "stream_id", "r.stream_id"), column, table, suffix, suffix,
                joined);
    knee_nsys_each_row(n, sql, take_memory_copy);
}

static void read_regions(struct knee_nsys *n, const char *suffix)
{
    char sql[1024], column[256], joined[256], table[SUFFIX + 64];
    knee_format(table, sizeof table, "rocpd_region%s", suffix);
    if (!knee_nsys_has_table(n, table))
        return;
    event_words(n, suffix, "rocpd_region", column, joined, sizeof joined);
    knee_format(sql, sizeof sql, "SELECT r.start, r.\"end\", r.tid, %s, r.name_id FROM \"%s\" r %s",
                column, table, joined);
    knee_nsys_each_row(n, sql, take_region);
}

static void read_part(struct knee_nsys *n, const char *suffix)
{
    read_names(n, suffix);
    read_named(n, "rocpd_info_node", suffix,
               (struct knee_nsys_source){NULL, {"hostname"}, 0, "LIMIT 1", take_host});
    read_named(n, "rocpd_info_agent", suffix,
               (struct knee_nsys_source){
                   NULL, {"product_name"}, 0, "WHERE type = 'GPU' LIMIT 1", knee_nsys_take_gpu});
    read_work(n, suffix);
    read_regions(n, suffix);
    n->string_count = 0;
}

void knee_rocpd_read(struct knee_nsys *n)
{
    n->parts = knee_resize(n->trace->alloc, NULL, sizeof *n->parts);
    if (!n->parts) {
        n->failed = true;
        return;
    }
    n->parts->count = 0;
    knee_nsys_each_row(n,
                       "SELECT substr(name, 22) FROM sqlite_master WHERE type = 'table' AND "
                       "name GLOB '" DISPATCHES "*' ORDER BY 1",
                       take_part);
    for (n->part = 0; n->part < (int64_t)n->parts->count && !n->failed; n->part++)
        read_part(n, n->parts->suffix[n->part]);
    knee_resize(n->trace->alloc, n->parts, 0);
}
#endif

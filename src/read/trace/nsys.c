/* SPDX-License-Identifier: MIT */
/*
 * Nsight Systems sqlite exports. Tables are scanned in file order and joined here, which is three
 * times as fast as letting SQL join and sort. Any table or column may be missing. Times are
 * nanoseconds since the session's start; correlations are per process.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "read/trace/reader.h"
#include "read/trace/trace_json.h"
#include "timeline/marks.h"

#include <string.h>

#if defined(KNEE_HAVE_SQLITE) && KNEE_HAVE_SQLITE
#include <sqlite3.h>

enum { PAIRS = 4096 };

struct nsys {
    sqlite3 *db;
    struct knee_builder *builder;
    struct knee_trace *trace;
    const struct knee_trace_options *options;
    /* StringIds: id -> name of the builder, sparse ids in a sorted list */
    struct {
        int64_t id;
        uint32_t name;
    } * strings;
    size_t string_count, string_capacity;
    /* processes and devices that occur together */
    struct {
        int64_t process, device;
    } * pairs; /* [PAIRS] */
    size_t pair_count;
    bool shared; /* some device is used by several processes */
    bool failed;
};

static int64_t process_of(int64_t global)
{
    return (global >> 24) & 0xffffff;
}

static uint64_t correlation_of(int64_t process, int64_t correlation)
{
    if (correlation <= 0)
        return KNEE_NO_CORRELATION;
    return (uint64_t)process << 32 | (uint64_t)(correlation & 0xffffffff);
}

static bool has_column(struct nsys *n, const char *table, const char *column)
{
    char sql[160];
    sqlite3_stmt *statement = NULL;
    bool found = false;
    knee_format(sql, sizeof sql, "SELECT 1 FROM pragma_table_info('%s') WHERE name = '%s'", table,
                column);
    if (sqlite3_prepare_v2(n->db, sql, -1, &statement, NULL) == SQLITE_OK)
        found = sqlite3_step(statement) == SQLITE_ROW;
    sqlite3_finalize(statement);
    return found;
}

typedef void row_taker(struct nsys *n, sqlite3_stmt *row);

/* Calls `take` for each row. A table that is not there has none; damage in the middle is counted.
 */
static void each_row(struct nsys *n, const char *sql, row_taker *take)
{
    sqlite3_stmt *statement = NULL;
    if (n->failed || sqlite3_prepare_v2(n->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return;
    int result;
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        take(n, statement);
        if (n->options->cancel && *n->options->cancel) {
            n->trace->losses[KNEE_LOSS_INTERRUPTED].count = 1;
            break;
        }
    }
    if (result == SQLITE_NOMEM)
        n->failed = true;
    else if (result != SQLITE_DONE && result != SQLITE_ROW)
        n->trace->losses[KNEE_LOSS_EVENT].count++;
    sqlite3_finalize(statement);
}

/* ---- Names ---- */

static void take_string(struct nsys *n, sqlite3_stmt *row)
{
    const char *text = (const char *)sqlite3_column_text(row, 1);
    if (n->string_count == n->string_capacity) {
        size_t capacity = n->string_capacity ? n->string_capacity * 2 : 256;
        void *grown = knee_resize(n->trace->alloc, n->strings, capacity * sizeof *n->strings);
        if (!grown) {
            n->failed = true;
            return;
        }
        n->strings = grown;
        n->string_capacity = capacity;
    }
    n->strings[n->string_count].id = sqlite3_column_int64(row, 0);
    n->strings[n->string_count++].name =
        knee_builder_name(n->builder, text ? text : "", text ? strlen(text) : 0);
}

static uint32_t find_string(const struct nsys *n, int64_t id)
{
    size_t low = 0, high = n->string_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (n->strings[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n->string_count && n->strings[low].id == id ? n->strings[low].name : KNEE_NO_NAME;
}

/* ---- Devices ---- */

static void take_pair(struct nsys *n, sqlite3_stmt *row)
{
    int64_t process = process_of(sqlite3_column_int64(row, 0)),
            device = sqlite3_column_int64(row, 1);
    for (size_t i = 0; i < n->pair_count; i++)
        if (n->pairs[i].process == process && n->pairs[i].device == device)
            return;
    for (size_t i = 0; i < n->pair_count; i++)
        n->shared = n->shared || n->pairs[i].device == device;
    if (n->pair_count < PAIRS) {
        n->pairs[n->pair_count].process = process;
        n->pairs[n->pair_count++].device = device;
    }
}

/* The device number; where processes share devices, a number for each of the pairs. */
static int64_t device_key(const struct nsys *n, int64_t process, int64_t device)
{
    if (!n->shared)
        return device;
    size_t i = 0;
    while (i < n->pair_count && (n->pairs[i].process != process || n->pairs[i].device != device))
        i++;
    return (int64_t)i;
}

/* ---- Work ---- */

/* Times that sums and differences of can be taken. */
static bool usable(struct nsys *n, int64_t start, int64_t end)
{
    const int64_t most = 4000000000000000000;
    bool good = start >= 0 && start <= most && end >= -most && end <= most;
    n->trace->losses[KNEE_LOSS_TIME].count += !good;
    return good;
}

/* start, end, deviceId, streamId, correlationId, globalPid, name, copy kind */
static void take_work(struct nsys *n, sqlite3_stmt *row, uint32_t name, bool copy)
{
    int64_t start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    int64_t process = process_of(sqlite3_column_int64(row, 5));
    if (!usable(n, start, end))
        return;
    if (end < start) {
        n->trace->losses[KNEE_REPAIR_DURATION].count++;
        end = start;
    }
    n->trace->events++;
    knee_builder_span(n->builder, device_key(n, process, sqlite3_column_int64(row, 2)), start, end,
                      name, (int32_t)sqlite3_column_int64(row, 3),
                      correlation_of(process, sqlite3_column_int64(row, 4)), copy, NULL);
}

static void take_kernel(struct nsys *n, sqlite3_stmt *row)
{
    uint32_t name = find_string(n, sqlite3_column_int64(row, 6));
    if (name == KNEE_NO_NAME)
        name = knee_builder_name(n->builder, "unnamed kernel", 14);
    take_work(n, row, name, false);
}

static void take_copy(struct nsys *n, sqlite3_stmt *row)
{
    static const struct {
        int kind;
        const char *name;
    } kinds[] = {{1, "Memcpy HtoD"}, {2, "Memcpy DtoH"}, {8, "Memcpy DtoD"}, {10, "Memcpy PtoP"}};
    const char *name = "Memcpy";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (sqlite3_column_int(row, 6) == kinds[i].kind)
            name = kinds[i].name;
    take_work(n, row, knee_builder_name(n->builder, name, strlen(name)), true);
}

static void take_memset(struct nsys *n, sqlite3_stmt *row)
{
    take_work(n, row, knee_builder_name(n->builder, "Memset", 6), true);
}

static void take_graph(struct nsys *n, sqlite3_stmt *row)
{
    n->trace->whole_graphs = true;
    take_work(n, row, knee_builder_name(n->builder, "CUDA graph", 10), false);
}

/* start, end, globalTid, correlationId */
static void take_call(struct nsys *n, sqlite3_stmt *row)
{
    int64_t thread = sqlite3_column_int64(row, 2);
    int64_t start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    n->trace->events++;
    if (usable(n, start, end))
        knee_builder_launch(n->builder, start, end, thread,
                            correlation_of(process_of(thread), sqlite3_column_int64(row, 3)));
}

/* ---- Ranges ---- */

/* The one device that a process uses; -1 when it uses several. */
static int64_t only_device_of(const struct nsys *n, int64_t process)
{
    int64_t found = -1;
    for (size_t i = 0; i < n->pair_count; i++) {
        if (n->pairs[i].process != process)
            continue;
        if (found >= 0)
            return -1;
        found = device_key(n, process, n->pairs[i].device);
    }
    return found;
}

/* start, end, text, globalTid */
static void take_range(struct nsys *n, sqlite3_stmt *row)
{
    const char *text = (const char *)sqlite3_column_text(row, 2);
    int64_t number = 0, start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    int64_t device = only_device_of(n, process_of(sqlite3_column_int64(row, 3)));
    if (!text || end <= start || !usable(n, start, end))
        return;
    if (knee_names_step(text, strlen(text), &number))
        knee_builder_step_of(n->builder, device, KNEE_STEPS_ANNOTATION, 0, start, end, number);
    else if (knee_has_word(text, "dataloader"))
        knee_builder_load(n->builder, device, start, end);
}

/* ---- The file ---- */

static void take_base(struct nsys *n, sqlite3_stmt *row)
{
    int64_t base = sqlite3_column_int64(row, 0);
    n->trace->base_ns = base >= 0 && base <= 4000000000000000000 ? base : 0;
}

static void take_gpu(struct nsys *n, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    knee_format(n->trace->gpu_name, sizeof n->trace->gpu_name, "%s", name ? name : "");
}

static void read_tables(struct nsys *n)
{
    char sql[512];
    bool demangled = has_column(n, "CUPTI_ACTIVITY_KIND_KERNEL", "demangledName");
#define WORK "start, end, deviceId, streamId, correlationId, globalPid"
    each_row(n, "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME", take_base);
    each_row(n, "SELECT name FROM TARGET_INFO_GPU LIMIT 1", take_gpu);
    each_row(n, "SELECT id, value FROM StringIds ORDER BY id", take_string);
    each_row(n, "SELECT DISTINCT globalPid, deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL", take_pair);
    each_row(n, "SELECT DISTINCT globalPid, deviceId FROM CUPTI_ACTIVITY_KIND_MEMCPY", take_pair);
    knee_format(sql, sizeof sql, "SELECT " WORK ", %s FROM CUPTI_ACTIVITY_KIND_KERNEL",
                demangled ? "demangledName" : "shortName");
    each_row(n, sql, take_kernel);
    each_row(n, "SELECT " WORK ", copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY", take_copy);
    each_row(n, "SELECT " WORK " FROM CUPTI_ACTIVITY_KIND_MEMSET", take_memset);
    each_row(n, "SELECT " WORK " FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE", take_graph);
    each_row(n,
             "SELECT start, end, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME "
             "WHERE nameId IN (SELECT id FROM StringIds WHERE value LIKE '%Launch%' OR value LIKE "
             "'%Memcpy%' OR value LIKE '%Memset%')",
             take_call);
    each_row(n,
             "SELECT e.start, e.end, coalesce(e.text, s.value), e.globalTid FROM NVTX_EVENTS e "
             "LEFT JOIN StringIds s "
             "ON s.id = e.textId WHERE e.eventType IN (59, 60) AND e.end IS NOT NULL",
             take_range);
}

static knee_status read_open(struct nsys *n, struct knee_err *err)
{
    read_tables(n);
    if (n->failed)
        return knee_fail(err, KNEE_SYSTEM, n->trace->file, "out of memory");
    knee_status status = knee_builder_finish(n->builder, n->trace, err);
    if (status)
        return status;
    n->trace->format = "nsys";
    if (n->trace->events)
        return KNEE_OK;
    knee_fail(err, KNEE_INPUT, n->trace->file, "an SQLite database without CUPTI_ACTIVITY tables");
    knee_hint(err, "export the report with: nsys export --type sqlite");
    return KNEE_INPUT;
}

knee_status knee_nsys_read(const char *path, void *image, size_t image_size,
                           const struct knee_trace_options *options, const struct knee_alloc *alloc,
                           struct knee_trace *out, struct knee_err *err)
{
    static const struct knee_trace_options plain = {0};
    struct knee_trace trace = {.rank = -1, .world_size = -1, .alloc = alloc, .bytes = image_size};
    struct nsys n = {.trace = &trace, .options = options ? options : &plain};
    size_t length = strlen(path) + 1;
    trace.file = knee_resize(alloc, NULL, length);
    n.builder = knee_builder_new(n.options, alloc);
    n.pairs = knee_resize(alloc, NULL, PAIRS * sizeof *n.pairs);
    knee_status status = KNEE_OK;
    if (!trace.file || !n.builder || !n.pairs)
        status = knee_fail(err, KNEE_SYSTEM, path, "out of memory");
    if (trace.file)
        memcpy(trace.file, path, length);
    int opened = status
                     ? SQLITE_OK
                     : sqlite3_open_v2(image ? ":memory:" : path, &n.db,
                                       image ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY, NULL);
    if (opened == SQLITE_OK && image && !status)
        opened = sqlite3_deserialize(n.db, "main", image, (sqlite3_int64)image_size,
                                     (sqlite3_int64)image_size, SQLITE_DESERIALIZE_READONLY);
    if (!status && opened != SQLITE_OK)
        status = knee_fail(err, KNEE_INPUT, path, "cannot be opened: %s", sqlite3_errstr(opened));
    if (!status)
        status = read_open(&n, err);
    sqlite3_close(n.db);
    if (n.strings)
        knee_resize(alloc, n.strings, 0);
    knee_resize(alloc, n.pairs, 0);
    knee_builder_free(n.builder);
    if (trace.rank < 0)
        trace.rank = knee_rank_from_name(path);
    if (status)
        knee_trace_release(&trace);
    else
        *out = trace;
    return status;
}

#else

knee_status knee_nsys_read(const char *path, void *image, size_t image_size,
                           const struct knee_trace_options *options, const struct knee_alloc *alloc,
                           struct knee_trace *out, struct knee_err *err)
{
    (void)image, (void)image_size, (void)options, (void)alloc, (void)out;
    knee_fail(err, KNEE_SYSTEM, path, "this knee was built without SQLite");
    knee_hint(err, "apt-get install libsqlite3-dev and build again");
    return KNEE_SYSTEM;
}

#endif

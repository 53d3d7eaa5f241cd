/* SPDX-License-Identifier: MIT */
/*
 * Nsight Systems sqlite exports, and RPD databases (rocmProfileData; those of rocprofv3 are in
 * rocpd.c). Tables are scanned in file order and joined here, which is three times as fast as
 * letting SQL join and sort. Any table or column may be missing; what is needed and cannot be read
 * is counted. The file is not trusted: nothing in it is executed. Times are nanoseconds since the
 * session's start; correlations are per process.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/list.h"
#include "base/order.h"
#include "base/text.h"
#include "read/trace/reader.h"
#include "read/trace/trace_json.h"
#include "timeline/marks.h"

#include <stdlib.h>
#include <string.h>

#if defined(KNEE_HAVE_SQLITE) && KNEE_HAVE_SQLITE
#include "read/trace/nsys.h"

static int64_t process_of(int64_t global)
{
    return (global >> 24) & 0xffffff;
}

uint64_t knee_nsys_correlation(int64_t process, int64_t correlation)
{
    if (correlation <= 0)
        return KNEE_NO_CORRELATION;
    return (uint64_t)process << 32 | (uint64_t)(correlation & 0xffffffff);
}

/* ---- A database from an untrusted source ---- */

/* Stops what runs when the user wants it. */
static int wants_to_stop(void *ctx)
{
    const struct knee_nsys *n = ctx;
    return n->options->cancel && *n->options->cancel;
}

/* Nothing in the file is run: no views, no triggers, no functions but harmless ones, no temporary
 * files; and nothing grows past what a trace can hold. */
static void guard(struct knee_nsys *n)
{
    static const struct {
        int what, value;
    } switches[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                    {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}},
      limits[] = {{SQLITE_LIMIT_LENGTH, 16 << 20}, {SQLITE_LIMIT_VDBE_OP, 100000},
                  {SQLITE_LIMIT_EXPR_DEPTH, 50},   {SQLITE_LIMIT_COLUMN, 2000},
                  {SQLITE_LIMIT_ATTACHED, 0},      {SQLITE_LIMIT_WORKER_THREADS, 0}};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        sqlite3_db_config(n->db, switches[i].what, switches[i].value, NULL);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(n->db, limits[i].what, limits[i].value);
    sqlite3_exec(n->db, "PRAGMA temp_store=MEMORY; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0",
                 NULL, NULL, NULL);
    sqlite3_progress_handler(n->db, 100000, wants_to_stop, n);
}

/* What could not be done: no memory fails all, a stop is one, anything else is counted. */
static void count_trouble(struct knee_nsys *n, int result, enum knee_loss_kind kind)
{
    if (result == SQLITE_NOMEM)
        n->failed = true;
    else if (result == SQLITE_INTERRUPT)
        n->trace->losses[KNEE_LOSS_INTERRUPTED].count = 1;
    else if (result != SQLITE_DONE && result != SQLITE_ROW)
        n->trace->losses[kind].count++;
}

/* Calls `take` for each row. Damage in the middle is counted. */
void knee_nsys_each_row(struct knee_nsys *n, const char *sql, knee_nsys_taker *take)
{
    sqlite3_stmt *statement = NULL;
    if (n->failed)
        return;
    int result = sqlite3_prepare_v2(n->db, sql, -1, &statement, NULL);
    if (result != SQLITE_OK) {
        count_trouble(n, result, KNEE_LOSS_COLUMN);
        return;
    }
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        take(n, statement);
        if (wants_to_stop(n)) {
            result = SQLITE_INTERRUPT;
            break;
        }
    }
    count_trouble(n, result, KNEE_LOSS_EVENT);
    sqlite3_finalize(statement);
}

int64_t knee_nsys_look_up(struct knee_nsys *n, const char *sql, const char *first,
                          const char *second)
{
    sqlite3_stmt *statement = NULL;
    int64_t found = -1;
    int result = sqlite3_prepare_v2(n->db, sql, -1, &statement, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, first, -1, SQLITE_STATIC);
        if (second)
            sqlite3_bind_text(statement, 2, second, -1, SQLITE_STATIC);
        result = sqlite3_step(statement);
        if (result == SQLITE_ROW)
            found = sqlite3_column_int64(statement, 0);
    }
    count_trouble(n, result, KNEE_LOSS_COLUMN);
    sqlite3_finalize(statement);
    return found;
}

/* A table that stores rows. Anything else with that name (a view) counts as a loss. */
bool knee_nsys_has_table(struct knee_nsys *n, const char *table)
{
    int64_t root = knee_nsys_look_up(
        n, "SELECT type = 'table' AND rootpage > 0 FROM sqlite_master WHERE name = ?1", table,
        NULL);
    n->trace->losses[KNEE_LOSS_COLUMN].count += root == 0;
    return root > 0;
}

bool knee_nsys_has_column(struct knee_nsys *n, const char *table, const char *column)
{
    return knee_nsys_look_up(n, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2", table,
                             column) > 0;
}

/* Columns that are not there read as NULL; those that are needed are counted. */
void knee_nsys_read_source(struct knee_nsys *n, const struct knee_nsys_source *source)
{
    char sql[1024] = "SELECT ";
    size_t used = strlen(sql);
    if (n->failed || !knee_nsys_has_table(n, source->table))
        return;
    for (size_t i = 0; i < KNEE_NSYS_COLUMNS && source->columns[i]; i++) {
        bool there = knee_nsys_has_column(n, source->table, source->columns[i]);
        n->trace->losses[KNEE_LOSS_COLUMN].count += !there && i < source->needed;
        used += (size_t)knee_format(sql + used, sizeof sql - used, "%s%s%s%s", i ? ", " : "",
                                    there ? "\"" : "", there ? source->columns[i] : "NULL",
                                    there ? "\"" : "");
    }
    knee_format(sql + used, sizeof sql - used, " FROM \"%s\" %s", source->table,
                source->rest ? source->rest : "");
    knee_nsys_each_row(n, sql, source->take);
}

/* ---- Names ---- */

/* "cudaLaunchKernel_v7000", "cuMemcpyHtoDAsync_v2" */
static bool hands_over_work(const char *name)
{
    return strstr(name, "Launch") || strstr(name, "Memcpy") || strstr(name, "Memset");
}

/* The name of a call without its version: "cudaMalloc" of "cudaMalloc_v3020". */
static size_t call_length(const char *name)
{
    const char *version = strstr(name, "_v");
    bool call = strncmp(name, "cu", 2) == 0 && version && version[2] >= '0' && version[2] <= '9';
    return call ? (size_t)(version - name) : strlen(name);
}

void knee_nsys_take_string(struct knee_nsys *n, sqlite3_stmt *row)
{
    const char *text = (const char *)sqlite3_column_text(row, 1);
    if (!knee_room(n->trace->alloc, &n->strings, &n->string_capacity, n->string_count + 1,
                   sizeof *n->strings)) {
        n->failed = true;
        return;
    }
    text = text ? text : "";
    struct knee_nsys_string string = {
        .id = sqlite3_column_int64(row, 0),
        .name = knee_builder_name(n->builder, text, strlen(text)),
        .call = knee_builder_name(n->builder, text, call_length(text)),
        .launches = hands_over_work(text),
        .runs = strstr(text, "Launch") != NULL,
        .captures = strstr(text, "StreamBeginCapture") != NULL,
        .step = -1,
        .empty = !*text,
        .copies = strncmp(text, "Copy", 4) == 0 || strcmp(text, "FillBuffer") == 0,
        .loads = knee_has_word(text, "dataloader")};
    if (!knee_names_step(text, strlen(text), &string.step))
        string.step = -1;
    n->strings[n->string_count++] = string;
}

KNEE_BY(by_id, struct knee_nsys_string, id)

const struct knee_nsys_string *knee_nsys_string_of(const struct knee_nsys *n, int64_t id)
{
    size_t low;
    KNEE_BISECT(low, n->string_count, n->strings[low].id < id);
    return low < n->string_count && n->strings[low].id == id ? &n->strings[low] : NULL;
}

/* ---- Devices ---- */

static void take_pair(struct knee_nsys *n, sqlite3_stmt *row)
{
    if (!knee_room(n->trace->alloc, &n->pairs, &n->pair_capacity, n->pair_count + 1,
                   sizeof *n->pairs)) {
        n->failed = true;
        return;
    }
    n->pairs[n->pair_count++] = (struct knee_nsys_pair){process_of(sqlite3_column_int64(row, 0)),
                                                        sqlite3_column_int64(row, 1)};
}

KNEE_BY_TWO(by_process, struct knee_nsys_pair, process, device)

KNEE_BY_TWO(by_device, struct knee_nsys_pair, device, process)

/* When all are known: each once, in order; and do processes share a device? */
static void settle_pairs(struct knee_nsys *n)
{
    size_t kept = 0;
    if (n->settled)
        return;
    n->settled = true;
    if (n->pair_count == 0)
        return;
    qsort(n->pairs, n->pair_count, sizeof *n->pairs, by_device);
    for (size_t i = 1; i < n->pair_count; i++)
        n->shared = n->shared || (n->pairs[i].device == n->pairs[i - 1].device &&
                                  n->pairs[i].process != n->pairs[i - 1].process);
    qsort(n->pairs, n->pair_count, sizeof *n->pairs, by_process);
    for (size_t i = 0; i < n->pair_count; i++)
        if (!kept || by_process(&n->pairs[i], &n->pairs[kept - 1]) != 0)
            n->pairs[kept++] = n->pairs[i];
    n->pair_count = kept;
}

/* The first pair that is not before this one. */
static size_t pair_at(struct knee_nsys *n, int64_t process, int64_t device)
{
    struct knee_nsys_pair wanted = {process, device};
    settle_pairs(n);
    size_t low;
    KNEE_BISECT(low, n->pair_count, by_process(&n->pairs[low], &wanted) < 0);
    return low;
}

/* The device number; where processes share devices, a number for each of the pairs. */
static int64_t device_key(struct knee_nsys *n, int64_t process, int64_t device)
{
    size_t at = pair_at(n, process, device);
    return n->shared ? (int64_t)at : device;
}

/* ---- Work ---- */

/* Times that sums and differences of can be taken. */
bool knee_nsys_usable(struct knee_nsys *n, int64_t start, int64_t end)
{
    bool good = start >= 0 && knee_time_is_good(start, end > start ? end : start);
    n->trace->losses[KNEE_LOSS_TIME].count += !good;
    return good;
}

enum work_kind { KERNEL, COPY, PAGES };

/* start, end, deviceId, streamId, correlationId, globalPid, name, copy kind */
static void take_work(struct knee_nsys *n, sqlite3_stmt *row, uint32_t name, enum work_kind kind)
{
    int64_t start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    int64_t process = process_of(sqlite3_column_int64(row, 5));
    if (!knee_nsys_usable(n, start, end))
        return;
    if (end < start) {
        n->trace->losses[KNEE_REPAIR_DURATION].count++;
        end = start;
    }
    n->trace->events++;
    knee_builder_span(
        n->builder,
        &(struct knee_gpu_work){
            device_key(n, process, sqlite3_column_int64(row, 2)), start, end, name,
            kind == PAGES ? KNEE_NO_STREAM : (int32_t)(sqlite3_column_int64(row, 3) & INT32_MAX),
            knee_nsys_correlation(process, sqlite3_column_int64(row, 4)), kind != KERNEL, NULL});
}

static void take_kernel(struct knee_nsys *n, sqlite3_stmt *row)
{
    const struct knee_nsys_string *string = knee_nsys_string_of(n, sqlite3_column_int64(row, 6));
    if (!string) /* a minimal export has the short name only */
        string = knee_nsys_string_of(n, sqlite3_column_int64(row, 7));
    take_work(n, row, string ? string->name : knee_builder_name(n->builder, "unnamed kernel", 14),
              KERNEL);
}

static void take_copy(struct knee_nsys *n, sqlite3_stmt *row)
{
    static const struct {
        int kind;
        const char *name;
    } kinds[] = {{1, "Memcpy HtoD"}, {2, "Memcpy DtoH"}, {8, "Memcpy DtoD"}, {10, "Memcpy PtoP"}};
    static const char *const memories[] = {"Pageable", "Pinned", "Device"};
    enum { FIRST_OF_PAGES = 11, LAST_OF_PAGES = 13 }; /* of ENUM_CUDA_MEMCPY_OPER: unified memory */
    char text[64];
    const char *name = "Memcpy";
    int copied = sqlite3_column_int(row, 6);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (copied == kinds[i].kind)
            name = kinds[i].name;
    int64_t from = sqlite3_column_int64(row, 8), to = sqlite3_column_int64(row, 9);
    bool known = sqlite3_column_type(row, 8) == SQLITE_INTEGER && from >= 0 && from < 3 &&
                 sqlite3_column_type(row, 9) == SQLITE_INTEGER && to >= 0 && to < 3;
    if (known) /* as Kineto writes it */
        knee_format(text, sizeof text, "%s (%s -> %s)", name, memories[from], memories[to]);
    else
        knee_format(text, sizeof text, "%s", name);
    uint32_t row_name = knee_builder_name(n->builder, text, strlen(text));
    if (sqlite3_column_type(row, 7) == SQLITE_INTEGER)
        knee_builder_copied(n->builder, row_name, sqlite3_column_int64(row, 7),
                            sqlite3_column_int64(row, 1) - sqlite3_column_int64(row, 0));
    bool pages = copied >= FIRST_OF_PAGES && copied <= LAST_OF_PAGES;
    take_work(n, row, row_name, pages ? PAGES : COPY);
}

static void take_memset(struct knee_nsys *n, sqlite3_stmt *row)
{
    take_work(n, row, knee_builder_name(n->builder, "Memset", 6), COPY);
}

static void take_graph(struct knee_nsys *n, sqlite3_stmt *row)
{
    n->trace->whole_graphs = true;
    take_work(n, row, knee_builder_name(n->builder, "CUDA graph", 10), KERNEL);
}

/* start, end, globalTid, correlationId, nameId */
static void take_call(struct knee_nsys *n, sqlite3_stmt *row)
{
    const struct knee_nsys_string *string = knee_nsys_string_of(n, sqlite3_column_int64(row, 4));
    int64_t thread = sqlite3_column_int64(row, 2);
    int64_t start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    if (!string || !knee_nsys_usable(n, start, end))
        return;
    end = end > start ? end : start;
    n->trace->events += string->launches;
    if (string->captures)
        knee_builder_capture(n->builder);
    if (end - start >= KNEE_LONG_CALL_NS)
        knee_builder_long_call(n->builder, start, end, thread,
                               string->launches ? KNEE_HOST_LAUNCH : KNEE_HOST_CALL, string->call);
    if (!string->launches)
        return;
    if (string->runs && end - start >= KNEE_LONG_LAUNCH_NS)
        knee_builder_long_launch(n->builder, start, end);
    knee_builder_launch(n->builder, start, end, thread,
                        knee_nsys_correlation(process_of(thread), sqlite3_column_int64(row, 3)));
}

/* ---- Ranges ---- */

/* The one device that a process uses; -1 when it uses several. */
static int64_t only_device_of(struct knee_nsys *n, int64_t process)
{
    size_t at = pair_at(n, process, INT64_MIN);
    bool one = at < n->pair_count && n->pairs[at].process == process &&
               (at + 1 == n->pair_count || n->pairs[at + 1].process != process);
    return one ? device_key(n, process, n->pairs[at].device) : -1;
}

/* start, end, globalTid, text, textId */
static void take_range(struct knee_nsys *n, sqlite3_stmt *row)
{
    const char *text = (const char *)sqlite3_column_text(row, 3);
    const struct knee_nsys_string *string =
        text ? NULL : knee_nsys_string_of(n, sqlite3_column_int64(row, 4));
    int64_t number = string ? string->step : -1;
    int64_t start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    int64_t device = only_device_of(n, process_of(sqlite3_column_int64(row, 2)));
    bool loads = text ? knee_has_word(text, "dataloader") : string && string->loads;
    if (text && !knee_names_step(text, strlen(text), &number))
        number = -1;
    if ((number < 0 && !loads) || end <= start || !knee_nsys_usable(n, start, end))
        return;
    if (number >= 0)
        knee_builder_step_of(
            n->builder,
            &(struct knee_raw_mark){{start, end, number, device}, KNEE_STEPS_ANNOTATION, 0});
    else
        knee_builder_load(n->builder, device, start, end, false);
}

/* ---- RPD ---- */

/* start, end, gpuId, queueId, id, description_id, opType_id. Kernels of a hipGraph have a different
 * type (Task), so every operation except a copy is a kernel. */
static void take_op(struct knee_nsys *n, sqlite3_stmt *row)
{
    int64_t start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    const struct knee_nsys_string *name = knee_nsys_string_of(n, sqlite3_column_int64(row, 5));
    const struct knee_nsys_string *type = knee_nsys_string_of(n, sqlite3_column_int64(row, 6));
    if (!knee_nsys_usable(n, start, end))
        return;
    n->trace->losses[KNEE_REPAIR_DURATION].count += end < start;
    n->trace->events++;
    if (!name || name->empty)
        name = type;
    knee_builder_span(n->builder,
                      &(struct knee_gpu_work){
                          sqlite3_column_int64(row, 2), start, end < start ? start : end,
                          name ? name->name : knee_builder_name(n->builder, "unnamed kernel", 14),
                          (int32_t)sqlite3_column_int64(row, 3),
                          knee_nsys_correlation(0, sqlite3_column_int64(row, 4)),
                          type && type->copies, NULL});
}

/* start, end, tid, op */
static void take_api(struct knee_nsys *n, sqlite3_stmt *row)
{
    int64_t start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    if (knee_nsys_usable(n, start, end))
        knee_builder_launch(n->builder, start, end > start ? end : start,
                            sqlite3_column_int64(row, 2),
                            knee_nsys_correlation(0, sqlite3_column_int64(row, 3)));
}

/* ---- The file ---- */

static void take_base(struct knee_nsys *n, sqlite3_stmt *row)
{
    int64_t base = sqlite3_column_int64(row, 0);
    n->trace->base_ns = base >= 0 && base <= KNEE_LAST_NS ? base : 0;
}

void knee_nsys_take_gpu(struct knee_nsys *n, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    knee_format(n->trace->gpu_name, sizeof n->trace->gpu_name, "%s", name ? name : "");
}

#define WORK "start", "end", "deviceId", "streamId", "correlationId", "globalPid"
/* Names and devices first: what follows refers to them. */
static const struct knee_nsys_source sources[] = {
    {"TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, 0, NULL, take_base},
    {"TARGET_INFO_GPU", {"name"}, 0, "LIMIT 1", knee_nsys_take_gpu},
    {"CUPTI_ACTIVITY_KIND_KERNEL", {"globalPid", "deviceId"}, 0, "GROUP BY 1, 2", take_pair},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", {"globalPid", "deviceId"}, 0, "GROUP BY 1, 2", take_pair},
    {"CUPTI_ACTIVITY_KIND_KERNEL", {WORK, "demangledName", "shortName"}, 5, NULL, take_kernel},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     {WORK, "copyKind", "bytes", "srcKind", "dstKind"},
     5,
     NULL,
     take_copy},
    {"CUPTI_ACTIVITY_KIND_MEMSET", {WORK}, 4, NULL, take_memset},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {WORK}, 4, NULL, take_graph},
    {"CUPTI_ACTIVITY_KIND_RUNTIME",
     {"start", "end", "globalTid", "correlationId", "nameId"},
     5,
     NULL,
     take_call},
    {"NVTX_EVENTS",
     {"start", "end", "globalTid", "text", "textId"},
     2,
     "WHERE eventType IN (59, 60) AND \"end\" IS NOT NULL",
     take_range},
};

void knee_nsys_read_strings(struct knee_nsys *n, const struct knee_nsys_source *source)
{
    knee_nsys_read_source(n, source);
    if (n->string_count > 1)
        qsort(n->strings, n->string_count, sizeof *n->strings, by_id);
}

static void read_tables(struct knee_nsys *n)
{
    static const struct knee_nsys_source strings = {
        "StringIds", {"id", "value"}, 2, NULL, knee_nsys_take_string};
    knee_nsys_read_strings(n, &strings);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        knee_nsys_read_source(n, &sources[i]);
}

static void read_rpd(struct knee_nsys *n)
{
    static const struct knee_nsys_source
        strings = {"rocpd_string", {"id", "string"}, 2, NULL, knee_nsys_take_string},
        ops = {"rocpd_op",
               {"start", "end", "gpuId", "queueId", "id", "description_id", "opType_id"},
               7,
               NULL,
               take_op};
    knee_nsys_read_strings(n, &strings);
    knee_nsys_read_source(n, &ops);
    if (knee_nsys_has_table(n, "rocpd_api") && knee_nsys_has_table(n, "rocpd_api_ops"))
        knee_nsys_each_row(
            n,
            "SELECT a.start, a.\"end\", a.tid, o.op_id FROM rocpd_api_ops o JOIN rocpd_api a "
            "ON a.id = o.api_id",
            take_api);
}

/* Pages that move by themselves are not work that was handed over. */
static void leave_out_pages(struct knee_trace *trace)
{
    for (size_t r = 0; r < trace->rank_count; r++)
        for (size_t i = 0; i < trace->ranks[r].span_count; i++)
            trace->ranks[r].work -= trace->ranks[r].spans[i].stream == KNEE_NO_STREAM;
}

static knee_status read_open(struct knee_nsys *n, struct knee_err *err)
{
    guard(n);
    if (sqlite3_exec(n->db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) != SQLITE_OK)
        return knee_fail(err, KNEE_INPUT, n->trace->file, "cannot be read: %s",
                         sqlite3_errmsg(n->db));
    bool rpd = knee_nsys_has_table(n, "rocpd_op"), rocpd = !rpd && knee_rocpd_is(n);
    if (rpd)
        read_rpd(n);
    else if (rocpd)
        knee_rocpd_read(n);
    else
        read_tables(n);
    if (n->failed)
        return knee_fail(err, KNEE_SYSTEM, n->trace->file, "out of memory");
    knee_status status = knee_builder_finish(n->builder, n->trace, err);
    if (status)
        return status;
    n->trace->format = rpd ? "rpd" : rocpd ? "rocpd" : "nsys";
    leave_out_pages(n->trace);
    if (n->trace->events)
        return KNEE_OK;
    if (n->trace->losses[KNEE_LOSS_INTERRUPTED].count)
        return knee_fail(err, KNEE_INPUT, n->trace->file, "not read: stopped");
    bool broken = n->trace->losses[KNEE_LOSS_COLUMN].count > 0;
    bool export = !broken && knee_nsys_has_table(n, "TARGET_INFO_SESSION_START_TIME");
    knee_fail(err, KNEE_INPUT, n->trace->file,
              broken   ? "an SQLite database whose tables cannot be read"
              : export ? "an export of Nsight Systems without any CUDA work"
                       : "an SQLite database without CUPTI_ACTIVITY, rocpd_op or "
                         "rocpd_kernel_dispatch tables");
    knee_hint(err, "%s",
              export ? "record with nsys profile -t cuda,nvtx"
                     : "export Nsight's report with: nsys export --type sqlite");
    return KNEE_INPUT;
}

/* A path as SQLite's URI, so that no journal is looked for and nothing written beside the file. */
static void write_uri(const char *path, char *out, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    size_t used = (size_t)knee_format(out, size, "file:");
    for (; *path && used + 24 < size; path++) {
        if (*path == '%' || *path == '?' || *path == '#') {
            out[used++] = '%';
            out[used++] = digits[(unsigned char)*path >> 4];
            out[used++] = digits[(unsigned char)*path & 15];
        } else {
            out[used++] = *path;
        }
    }
    knee_format(out + used, size - used, "?immutable=1");
}

static int open_database(struct knee_nsys *n, struct knee_file_bytes file)
{
    char uri[8192];
    write_uri(file.name, uri, sizeof uri);
    int opened = file.data
                     ? sqlite3_open_v2(":memory:", &n->db, SQLITE_OPEN_READWRITE, NULL)
                     : sqlite3_open_v2(uri, &n->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    if (opened == SQLITE_OK && file.data)
        opened = sqlite3_deserialize(n->db, "main", file.data, (sqlite3_int64)file.length,
                                     (sqlite3_int64)file.length, SQLITE_DESERIALIZE_READONLY);
    return opened;
}

knee_status knee_nsys_read(struct knee_file_bytes file, const struct knee_trace_options *options,
                           const struct knee_alloc *alloc, struct knee_trace *out,
                           struct knee_err *err)
{
    static const struct knee_trace_options plain = {0};
    struct knee_trace trace = {.rank = -1, .world_size = -1, .alloc = alloc, .bytes = file.length};
    struct knee_nsys n = {.trace = &trace, .options = options ? options : &plain};
    size_t length = strlen(file.name) + 1;
    trace.file = knee_resize(alloc, NULL, length);
    n.builder = knee_builder_new(n.options, alloc);
    knee_status status = KNEE_OK;
    if (!trace.file || !n.builder)
        status = knee_fail(err, KNEE_SYSTEM, file.name, "out of memory");
    if (trace.file)
        memcpy(trace.file, file.name, length);
    int opened = status ? SQLITE_OK : open_database(&n, file);
    if (!status && opened != SQLITE_OK)
        status =
            knee_fail(err, KNEE_INPUT, file.name, "cannot be opened: %s", sqlite3_errstr(opened));
    if (!status)
        status = read_open(&n, err);
    sqlite3_close(n.db);
    knee_resize(alloc, n.strings, 0);
    knee_resize(alloc, n.symbols, 0);
    knee_resize(alloc, n.pairs, 0);
    knee_builder_free(n.builder);
    if (trace.rank < 0)
        trace.rank = knee_rank_from_name(file.name);
    if (status)
        knee_trace_release(&trace);
    else
        *out = trace;
    return status;
}

#else

knee_status knee_nsys_read(struct knee_file_bytes file, const struct knee_trace_options *options,
                           const struct knee_alloc *alloc, struct knee_trace *out,
                           struct knee_err *err)
{
    (void)options, (void)alloc, (void)out;
    knee_fail(err, KNEE_SYSTEM, file.name, "this knee was built without SQLite");
    knee_hint(err, "apt-get install libsqlite3-dev and build again");
    return KNEE_SYSTEM;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What rocprofv3 writes as JSON (one document, an element per process) and as CSV (a file per kind
 * of record; the one of kernels is read). Times are nanoseconds of the machine's clock. Kernels are
 * named by kernel_id in JSON, in the row in CSV. Devices are agents; a rank is not in the file.
 */
#include "base/csv.h"
#include "base/error.h"
#include "base/fold.h"
#include "base/order.h"
#include "base/text.h"
#include "read/trace/image.h"
#include "read/value_tree.h"

#include <stdlib.h>
#include <string.h>

/* ---- JSON ---- */

struct symbol {
    int64_t id;
    struct knee_slice name;
};

struct agent {
    int64_t handle, number; /* which of the GPUs it is; -1: it is none */
};

enum { MOST_AGENTS = 256 };

struct process {
    struct knee_image *image;
    const struct knee_tree *tree;
    int64_t number;
    struct symbol *symbols; /* by id */
    size_t symbol_count;
    struct agent agents[MOST_AGENTS];
    size_t agent_count;
};

static uint32_t get(const struct process *p, uint32_t map, const char *key)
{
    return knee_tree_get(p->tree, map, key);
}

static int64_t whole(const struct process *p, uint32_t map, const char *key)
{
    return knee_tree_whole(p->tree, get(p, map, key), -1);
}

static int64_t handle(const struct process *p, uint32_t map, const char *key)
{
    return whole(p, get(p, map, key), "handle");
}

KNEE_BY(by_id, struct symbol, id)

/* "name.kd" is a kernel descriptor's symbol: the kernel is what stands before. */
static struct knee_slice without_suffix(struct knee_slice name)
{
    bool descriptor = name.length > 3 && memcmp(name.at + name.length - 3, ".kd", 3) == 0;
    return (struct knee_slice){name.at, name.length - (descriptor ? 3 : 0)};
}

static bool read_symbols(struct process *p, uint32_t list)
{
    size_t count = 0;
    for (uint32_t at = knee_tree_first(p->tree, list); at != KNEE_TREE_NONE;
         at = knee_tree_next(p->tree, at))
        count++;
    p->symbols = knee_resize(p->image->alloc, NULL, (count + 1) * sizeof *p->symbols);
    if (!p->symbols)
        return false;
    for (uint32_t at = knee_tree_first(p->tree, list); at != KNEE_TREE_NONE;
         at = knee_tree_next(p->tree, at)) {
        struct knee_slice name = knee_tree_text(p->tree, get(p, at, "formatted_kernel_name"));
        if (!name.length)
            name = knee_tree_text(p->tree, get(p, at, "kernel_name"));
        p->symbols[p->symbol_count++] =
            (struct symbol){whole(p, at, "kernel_id"), without_suffix(name)};
    }
    if (p->symbol_count > 1)
        qsort(p->symbols, p->symbol_count, sizeof *p->symbols, by_id);
    return true;
}

static struct knee_slice name_of(const struct process *p, int64_t id)
{
    size_t low;
    KNEE_BISECT(low, p->symbol_count, p->symbols[low].id < id);
    bool found = low < p->symbol_count && p->symbols[low].id == id;
    return found ? p->symbols[low].name : (struct knee_slice){"", 0};
}

static void read_agents(struct process *p, uint32_t list)
{
    int64_t gpus = 0;
    for (uint32_t at = knee_tree_first(p->tree, list);
         at != KNEE_TREE_NONE && p->agent_count < MOST_AGENTS; at = knee_tree_next(p->tree, at)) {
        bool gpu = whole(p, at, "type") == 2;
        struct knee_slice product = knee_tree_text(p->tree, get(p, at, "product_name"));
        if (gpu && !p->image->trace->gpu_name[0])
            knee_slice_copy(product, p->image->trace->gpu_name, sizeof p->image->trace->gpu_name);
        p->agents[p->agent_count++] = (struct agent){handle(p, at, "id"), gpu ? gpus : -1};
        gpus += gpu;
    }
}

/* The GPU's number; -1: not a GPU of the list. */
static int64_t gpu_of(const struct process *p, int64_t agent)
{
    for (size_t i = 0; i < p->agent_count; i++)
        if (p->agents[i].handle == agent)
            return p->agents[i].number;
    return -1;
}

/* Processes may share a GPU, so each process has separate devices. */
static int64_t device_of(const struct process *p, int64_t gpu)
{
    return p->number * MOST_AGENTS + (gpu < 0 ? 0 : gpu);
}

static uint64_t correlation_of(const struct process *p, uint32_t record)
{
    int64_t id = whole(p, get(p, record, "correlation_id"), "internal");
    return id > 0 ? (uint64_t)p->number << 40 | ((uint64_t)id & 0xffffffffff) : KNEE_NO_CORRELATION;
}

static void take_dispatch(struct process *p, uint32_t at)
{
    uint32_t info = get(p, at, "dispatch_info");
    int64_t stream = handle(p, at, "stream_id"), queue = handle(p, info, "queue_id");
    knee_image_span(p->image, name_of(p, whole(p, info, "kernel_id")),
                    (struct knee_gpu_work){device_of(p, gpu_of(p, handle(p, info, "agent_id"))),
                                           whole(p, at, "start_timestamp"),
                                           whole(p, at, "end_timestamp"), 0,
                                           (int32_t)((stream >= 0 ? stream : queue) & INT32_MAX),
                                           correlation_of(p, at), false, NULL});
}

static void take_copy(struct process *p, uint32_t at)
{
    int64_t from = gpu_of(p, handle(p, at, "src_agent_id")),
            to = gpu_of(p, handle(p, at, "dst_agent_id"));
    const char *name = from >= 0 && to >= 0 ? from == to ? "Memcpy DtoD" : "Memcpy PtoP"
                       : to >= 0            ? "Memcpy HtoD"
                                            : "Memcpy DtoH";
    knee_image_span(p->image, knee_slice_of(name),
                    (struct knee_gpu_work){device_of(p, to >= 0 ? to : from),
                                           whole(p, at, "start_timestamp"),
                                           whole(p, at, "end_timestamp"), 0,
                                           (int32_t)(handle(p, at, "stream_id") & INT32_MAX),
                                           correlation_of(p, at), true, NULL});
}

static void take_call(struct process *p, uint32_t at)
{
    int64_t start = whole(p, at, "start_timestamp"), end = whole(p, at, "end_timestamp");
    uint64_t correlation = correlation_of(p, at);
    if (correlation != KNEE_NO_CORRELATION && start >= 0 && knee_time_is_good(start, end))
        knee_builder_launch(p->image->builder, start, end, whole(p, at, "thread_id"), correlation);
}

static void each(struct process *p, uint32_t records, const char *key,
                 void (*take)(struct process *p, uint32_t at))
{
    uint32_t at = knee_tree_first(p->tree, get(p, records, key));
    for (; at != KNEE_TREE_NONE; at = knee_tree_next(p->tree, at))
        take(p, at);
}

static bool read_process(struct process *p, uint32_t at)
{
    uint32_t records = get(p, at, "buffer_records");
    uint32_t node = get(p, get(p, at, "metadata"), "node");
    if (!p->image->trace->host[0])
        knee_slice_copy(knee_tree_text(p->tree, get(p, node, "hostname")), p->image->trace->host,
                        sizeof p->image->trace->host);
    p->symbol_count = p->agent_count = 0;
    if (!read_symbols(p, get(p, at, "kernel_symbols")))
        return false;
    read_agents(p, get(p, at, "agents"));
    each(p, records, "kernel_dispatch", take_dispatch);
    each(p, records, "memory_copy", take_copy);
    each(p, records, "hip_api", take_call);
    knee_resize(p->image->alloc, p->symbols, 0);
    p->symbols = NULL;
    return true;
}

static knee_status nothing_in_it(struct knee_image *image, struct knee_err *err)
{
    if (image->trace->events)
        return KNEE_OK;
    knee_fail(err, KNEE_INPUT, image->file, "rocprofv3 output without kernels");
    knee_hint(err, "record with rocprofv3 --kernel-trace --memory-copy-trace --hip-trace");
    return KNEE_INPUT;
}

knee_status knee_rocprof_json_read(struct knee_image *image, struct knee_err *err)
{
    struct knee_tree tree = {.alloc = image->alloc};
    struct process *p = knee_resize(image->alloc, NULL, sizeof *p);
    knee_status status = p ? knee_tree_json(&tree, image->data, image->length, image->file, err)
                           : knee_fail(err, KNEE_SYSTEM, image->file, "out of memory");
    uint32_t at = knee_tree_first(&tree, knee_tree_get(&tree, 0, "rocprofiler-sdk-tool"));
    for (int64_t number = 0; p && !status && at != KNEE_TREE_NONE; at = knee_tree_next(&tree, at)) {
        memset(p, 0, sizeof *p);
        p->image = image;
        p->tree = &tree;
        p->number = number++;
        if (!read_process(p, at))
            status = knee_fail(err, KNEE_SYSTEM, image->file, "out of memory");
    }
    knee_tree_release(&tree);
    knee_resize(image->alloc, p, 0);
    return status ? status : nothing_in_it(image, err);
}

/* ---- CSV ---- */

enum column { AGENT, QUEUE, STREAM, NAME, CORRELATION, START, END, COLUMNS };

static const char *const heads[COLUMNS] = {"Agent_Id",     "Queue_Id",       "Stream_Id",
                                           "Kernel_Name",  "Correlation_Id", "Start_Timestamp",
                                           "End_Timestamp"};

/* Digits anywhere in the field: "Agent 1", 1; `otherwise` where there are none. */
static int64_t number_in(const struct knee_csv *csv, size_t field, int64_t otherwise)
{
    struct knee_slice text =
        field < KNEE_CSV_FIELDS ? knee_csv_slice(csv, field) : (struct knee_slice){"", 0};
    int64_t value = -1;
    for (size_t i = 0; i < text.length; i++) {
        if (!knee_is_digit(text.at[i]))
            continue;
        value = value < 0 ? 0 : value;
        if (value > (INT64_MAX - 9) / 10)
            return otherwise;
        value = value * 10 + (text.at[i] - '0');
    }
    return value < 0 ? otherwise : value;
}

static void take_row(struct knee_image *image, const struct knee_csv *csv, const size_t *at)
{
    char name[KNEE_CSV_TEXT];
    int64_t correlation = number_in(csv, at[CORRELATION], 0);
    knee_csv_text(csv, at[NAME], name, sizeof name);
    knee_image_span(
        image, knee_slice_of(name),
        (struct knee_gpu_work){
            number_in(csv, at[AGENT], 0), number_in(csv, at[START], INT64_MAX),
            number_in(csv, at[END], INT64_MAX), 0,
            (int32_t)(number_in(csv, at[STREAM], number_in(csv, at[QUEUE], 0)) & INT32_MAX),
            correlation > 0 ? (uint64_t)correlation : KNEE_NO_CORRELATION, false, NULL});
}

knee_status knee_rocprof_csv_read(struct knee_image *image, struct knee_err *err)
{
    struct knee_csv *csv = knee_resize(image->alloc, NULL, sizeof *csv);
    size_t at[COLUMNS];
    if (!csv)
        return knee_fail(err, KNEE_SYSTEM, image->file, "out of memory");
    knee_csv_init(csv, image->data, image->length);
    bool begun = knee_csv_row(csv);
    for (int c = 0; c < COLUMNS; c++) {
        at[c] = SIZE_MAX;
        for (size_t f = 0; begun && f < csv->fields; f++)
            if (knee_slice_is(knee_csv_slice(csv, f), heads[c]))
                at[c] = f;
    }
    bool kernels = at[NAME] != SIZE_MAX && at[START] != SIZE_MAX && at[END] != SIZE_MAX;
    while (kernels && knee_csv_row(csv))
        take_row(image, csv, at);
    knee_resize(image->alloc, csv, 0);
    if (kernels)
        return nothing_in_it(image, err);
    knee_fail(err, KNEE_INPUT, image->file, "a CSV of rocprofv3, but not the one of kernels");
    knee_hint(err,
              "name ..._kernel_trace.csv; or record with --output-format rocpd, which has all");
    return KNEE_INPUT;
}

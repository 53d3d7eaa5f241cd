/* SPDX-License-Identifier: MIT */
#include "ask/ask_logs.h"

#include "base/keys.h"
#include "base/slice.h"
#include "base/text.h"
#include "read/log/log_index.h"

#include <string.h>

#define LARGEST_LOG ((size_t)256 << 20)

static const struct knee_key rows[] = {
    KNEE_NUMBER(struct knee_ask_log_options, "ranks", ranks, KNEE_UNIT_COUNT, 2, KNEE_WORKERS_MAX,
                "Logs", "from the log", KNEE_OFF_PAGE("ranks of the run")),
    KNEE_NUMBER(struct knee_ask_log_options, "nodes", nodes, KNEE_UNIT_COUNT, 1, KNEE_WORKERS_MAX,
                "Logs", "from the log, else 8 GPUs per node", KNEE_OFF_PAGE("nodes of the run")),
    KNEE_CHOICE(struct knee_ask_log_options, "collective", op, knee_op_names, "Logs",
                "from the log", KNEE_OFF_PAGE("collective that was timed")),
    KNEE_OPTION(struct knee_ask_log_options, "index", KNEE_KEY_WORD, index, "Logs",
                "index.csv in the folder of the log",
                KNEE_OFF_PAGE("CSV with columns file and hardware that describes the logs")),
};

const struct knee_keys knee_ask_log_keys = KNEE_KEY_TABLE(rows, struct knee_ask_log_options);

void knee_ask_log_options_init(struct knee_ask_log_options *options)
{
    memset(options, 0, sizeof *options);
    knee_keys_clear(&knee_ask_log_keys, options);
}

/* The index last read: the one named, or that of the folder which the last log stood in. */
struct index {
    char path[1024]; /* "": none */
    struct knee_ask_bytes bytes;
};

static knee_status read_named(struct knee_ask *ask, const char *path, struct index *index,
                              struct knee_err *err)
{
    knee_status status = knee_ask_read(ask, path, LARGEST_LOG, &index->bytes, err);
    if (status)
        return status;
    if (!knee_log_index_good((struct knee_slice){index->bytes.data, index->bytes.length}))
        return knee_fail_hint(err, KNEE_INPUT, path, "a CSV with the columns file and hardware",
                              "not an index: column 'file' is missing");
    return KNEE_OK;
}

/* index.csv in the folder of a log, where there is one. */
static void read_beside(struct knee_ask *ask, const char *log, struct index *index)
{
    char path[sizeof index->path];
    size_t folder = (size_t)(knee_base_name(log) - log);
    if (folder + sizeof "index.csv" > sizeof path)
        return;
    memcpy(path, log, folder);
    memcpy(path + folder, "index.csv", sizeof "index.csv");
    if (strcmp(path, index->path) == 0)
        return;
    knee_ask_done(&index->bytes);
    memcpy(index->path, path, folder + sizeof "index.csv");
    if (knee_ask_has(ask, path) && knee_ask_read(ask, path, LARGEST_LOG, &index->bytes, NULL))
        index->bytes =
            (struct knee_ask_bytes){0}; /* the user did not name it: it may be unreadable */
}

/* The file's row of an index, and in *hints what it says about the hardware. */
static void find_row(const char *name, const struct index *index, struct knee_log_index_row *row,
                     struct knee_log_hints *hints)
{
    struct knee_slice text = {index->bytes.data, index->bytes.length};
    if (text.at && knee_log_index_find(text, knee_base_name(name), row) && row->hardware[0])
        hints->about = row->hardware;
}

struct reading {
    struct knee_ask *ask;
    const struct knee_ask_log_options *options;
    struct index *index;
    struct knee_ask_logs *out;
};

static knee_status read_one(const struct reading *r, const char *name,
                            struct knee_log_index_row *row, struct knee_err *err)
{
    const struct knee_ask_log_options *options = r->options;
    struct knee_ask_logs *out = r->out;
    struct knee_log_hints hints = {
        options->ranks, options->nodes,
        options->op < 0 ? KNEE_OP_UNKNOWN : (enum knee_op)(KNEE_OP_ALL_REDUCE + options->op), NULL};
    struct knee_ask_bytes log;
    size_t before = out->logs.count;
    knee_status status = knee_ask_read(r->ask, name, LARGEST_LOG, &log, err);
    if (status)
        return status;
    if (!options->index)
        read_beside(r->ask, name, r->index);
    find_row(name, r->index, row, &hints);
    status =
        knee_logs_read(&out->logs, log.data, log.length, knee_ask_input_name(name), &hints, err);
    knee_ask_done(&log);
    if (status)
        return status;
    struct knee_log_about *about =
        knee_resize(out->logs.alloc, out->about, out->logs.count * sizeof *about);
    if (!about)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    out->about = about;
    for (size_t i = before; i < out->logs.count; i++)
        about[i] = (struct knee_log_about){hints.about, row->origin[0] ? row->origin : NULL};
    return KNEE_OK;
}

/* All of them; the status is the last one's. */
static knee_status read_all(const struct reading *r, const char *const *names, size_t count,
                            struct knee_err *err)
{
    struct knee_ask_logs *out = r->out;
    knee_status status = KNEE_OK;
    for (size_t i = 0; i < count && (!status || status == KNEE_INPUT); i++) {
        struct knee_err one = {.status = KNEE_OK};
        struct knee_log_index_row *index_rows = out->index_rows;
        status = read_one(r, names[i], &index_rows[i], &one);
        if (status && err)
            *err = one;
        if (status == KNEE_INPUT) {
            out->unread++;
            knee_text_printf(&out->complaints, "  %s: %s; %s\n", one.where, one.what, one.hint);
        }
    }
    return status;
}

knee_status knee_ask_logs_read(struct knee_ask *ask, const char *const *names, size_t count,
                               const struct knee_ask_log_options *options,
                               struct knee_ask_logs *out, struct knee_err *err)
{
    const struct knee_alloc *alloc = knee_ask_alloc(ask);
    struct knee_ask_logs logs = {.logs = {.alloc = alloc}, .complaints = {.alloc = alloc}};
    struct index index = {.bytes = {0}};
    size_t size = (count + 1) * sizeof(struct knee_log_index_row);
    if (count == 0)
        return knee_fail_hint(err, KNEE_USAGE, "",
                              "for example knee fit all_reduce.log -o cluster.yaml",
                              "no logs are given");
    knee_status status = options->index ? read_named(ask, options->index, &index, err) : KNEE_OK;
    if (!status && !(logs.index_rows = knee_resize(alloc, NULL, size)))
        status = knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    if (logs.index_rows) {
        memset(logs.index_rows, 0, size);
        status = read_all(&(struct reading){ask, options, &index, &logs}, names, count, err);
    }
    knee_ask_done(&index.bytes);
    if (logs.complaints.failed)
        status = knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    if (status == KNEE_SYSTEM || logs.logs.count == 0) {
        knee_ask_logs_release(&logs);
        return status;
    }
    if (err)
        memset(err, 0, sizeof *err);
    *out = logs;
    return KNEE_OK;
}

void knee_ask_logs_release(struct knee_ask_logs *logs)
{
    knee_resize(logs->logs.alloc, logs->about, 0);
    knee_resize(logs->logs.alloc, logs->index_rows, 0);
    logs->about = NULL;
    logs->index_rows = NULL;
    knee_text_release(&logs->complaints);
    knee_logs_release(&logs->logs);
}

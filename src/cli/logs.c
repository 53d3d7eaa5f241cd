/* SPDX-License-Identifier: MIT */
#include "cli/logs.h"

#include "base/error.h"
#include "base/keys.h"
#include "read/log/log_index.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST_LOG ((size_t)256 << 20)

static const struct knee_key rows[] = {
    KNEE_NUMBER(struct cli_log_options, "ranks", ranks, KNEE_UNIT_COUNT, 2, KNEE_WORKERS_MAX,
                "Logs", "what the log says, or busbw / algbw", "ranks of the run"),
    KNEE_NUMBER(struct cli_log_options, "nodes", nodes, KNEE_UNIT_COUNT, 1, KNEE_WORKERS_MAX,
                "Logs", "what the log says, or 8 GPUs a node", "nodes of the run"),
    KNEE_CHOICE(struct cli_log_options, "collective", op, knee_op_names, "Logs",
                "what the log says, or its columns", "which collective was timed"),
    {.name = "index",
     .kind = KNEE_KEY_WORD,
     .offset = offsetof(struct cli_log_options, index),
     .group = "Logs",
     .otherwise = "index.csv beside a log",
     .help =
         "CSV with columns file and hardware (and cluster or source_url): what the logs are of"},
};

const struct knee_keys cli_log_keys = KNEE_KEY_TABLE(rows, struct cli_log_options);

void cli_log_options_init(struct cli_log_options *options)
{
    memset(options, 0, sizeof *options);
    knee_keys_clear(&cli_log_keys, options);
}

/* The index last read: the one named, or that of the folder which the last log stood in. */
struct index {
    char path[1024]; /* "": none */
    char *data;      /* NULL: there is none */
    size_t length;
};

static knee_status read_named(const char *path, struct index *index, struct knee_err *err)
{
    knee_status status = cli_read_file(path, LARGEST_LOG, &index->data, &index->length, err);
    if (status)
        return status;
    struct knee_slice text = {index->data ? index->data : "", index->length};
    if (!knee_log_index_good(text)) {
        knee_fail(err, KNEE_INPUT, path, "this is no index: it has no column 'file'");
        knee_hint(err, "a CSV with the columns file and hardware");
        return KNEE_INPUT;
    }
    return KNEE_OK;
}

/* index.csv in the folder of a log, where there is one. */
static void read_beside(const char *log, struct index *index)
{
    char path[sizeof index->path];
    size_t folder = (size_t)(cli_base_name(log) - log);
    if (folder + sizeof "index.csv" > sizeof path)
        return;
    memcpy(path, log, folder);
    memcpy(path + folder, "index.csv", sizeof "index.csv");
    if (strcmp(path, index->path) == 0)
        return;
    free(index->data);
    index->data = NULL;
    index->length = 0;
    memcpy(index->path, path, sizeof path);
    if (access(path, R_OK) == 0)
        cli_read_file(path, LARGEST_LOG, &index->data, &index->length, NULL);
}

/* The file's row of an index, and in *hints what it says about the hardware. */
static void find_row(const char *name, const struct index *index, struct knee_log_index_row *row,
                     struct knee_log_hints *hints)
{
    struct knee_slice text = {index->data, index->length};
    if (index->data && knee_log_index_find(text, cli_base_name(name), row) && row->hardware[0])
        hints->about = row->hardware;
}

static knee_status read_one(const char *name, const struct cli_log_options *options,
                            struct index *index, struct knee_log_index_row *row,
                            struct cli_logs *out, struct knee_err *err)
{
    struct knee_log_hints hints = {
        options->ranks, options->nodes,
        options->op < 0 ? KNEE_OP_UNKNOWN : (enum knee_op)(KNEE_OP_ALL_REDUCE + options->op), NULL};
    char *data = NULL;
    size_t length = 0, before = out->logs.count;
    knee_status status = cli_read_file(name, LARGEST_LOG, &data, &length, err);
    if (status)
        return status;
    if (!options->index)
        read_beside(name, index);
    find_row(name, index, row, &hints);
    status =
        knee_logs_read(&out->logs, data ? data : "", length, cli_input_name(name), &hints, err);
    free(data);
    if (status)
        return status;
    struct knee_log_about *about = realloc(out->about, out->logs.count * sizeof *about);
    if (!about)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    out->about = about;
    for (size_t i = before; i < out->logs.count; i++)
        about[i] = (struct knee_log_about){hints.about, row->origin[0] ? row->origin : NULL};
    return KNEE_OK;
}

knee_status cli_logs_read(const char *const *names, size_t count,
                          const struct cli_log_options *options, struct cli_logs *out,
                          struct knee_err *err)
{
    struct cli_logs logs = {0};
    struct index index = {0};
    knee_status status = options->index ? read_named(options->index, &index, err) : KNEE_OK;
    struct knee_log_index_row *index_rows = status ? NULL : calloc(count + 1, sizeof *index_rows);
    if (!index_rows) {
        free(index.data);
        return status ? status : knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    }
    logs.index_rows = index_rows;
    for (size_t i = 0; i < count && (!status || status == KNEE_INPUT); i++) {
        struct knee_err one = {0};
        status = read_one(names[i], options, &index, &index_rows[i], &logs, &one);
        if (status)
            *err = one;
        if (status == KNEE_INPUT) {
            logs.unread++;
            knee_text_printf(&logs.complaints, "  %s: %s; %s\n", one.where, one.what, one.hint);
        }
    }
    free(index.data);
    if (status == KNEE_SYSTEM || logs.logs.count == 0) {
        if (count == 0) {
            status = knee_fail(err, KNEE_USAGE, "", "no logs are given");
            knee_hint(err, "for example knee fit all_reduce.log -o cluster.yaml");
        }
        cli_logs_release(&logs);
        return status;
    }
    memset(err, 0, sizeof *err);
    *out = logs;
    return KNEE_OK;
}

void cli_logs_release(struct cli_logs *logs)
{
    knee_logs_release(&logs->logs);
    knee_text_release(&logs->complaints);
    free(logs->about);
    free(logs->index_rows);
    logs->about = NULL;
    logs->index_rows = NULL;
}

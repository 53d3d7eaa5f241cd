/* SPDX-License-Identifier: MIT */
/* Names and tables from any bytes: what is spelt as a GPU or a collective also holds one; an index
 * is read or is none. */
#include "base/csv.h"
#include "cluster/gpu_words.h"
#include "collective/collective_op.h"
#include "read/log/log_index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_names(const char *text, size_t length)
{
    int row = knee_gpu_spelt(text);
    if (row >= 0 && knee_gpu_in(text) != knee_gpu_at((size_t)row))
        abort();
    struct knee_cluster cluster;
    if (knee_cluster_recognise(text, &cluster) &&
        (!(cluster.levels[0].bytes_per_s > 0) || !cluster.gpu[0]))
        abort();
    enum knee_op is = knee_op_spelt(text, length), in = knee_op_from_name(text, length);
    /* In "small_reduce" a word begins inside "allreduce". */
    bool tail = (is == KNEE_OP_ALL_REDUCE && in == KNEE_OP_REDUCE) ||
                (is == KNEE_OP_ALL_GATHER && in == KNEE_OP_GATHER) ||
                (is == KNEE_OP_REDUCE_SCATTER && in == KNEE_OP_SCATTER);
    if (is != KNEE_OP_UNKNOWN && in != is && !tail &&
        !(is == KNEE_OP_SEND_RECV && in == KNEE_OP_UNKNOWN))
        abort(); /* "latency" alone is a send */
}

/* Fields lie in the text, in order, and so do rows. */
static void look_at_rows(const char *text, size_t length)
{
    struct knee_csv csv;
    size_t line = 0;
    knee_csv_init(&csv, text, length);
    csv.comment = '#';
    while (knee_csv_row(&csv)) {
        struct knee_slice row = knee_csv_line(&csv);
        if (csv.line <= line || row.at < text || row.at + row.length > text + length)
            abort();
        line = csv.line;
        for (size_t i = 0; i < csv.fields; i++) {
            struct knee_slice field = knee_csv_slice(&csv, i);
            if (field.at < row.at || field.at + field.length > row.at + row.length)
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct knee_log_index_row row;
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    struct knee_slice table = {text, size};
    if (knee_log_index_find(table, "a.log", &row) && !knee_log_index_good(table))
        abort();
    look_at_names(text, strlen(text));
    look_at_rows(text, size);
    free(text);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* A cluster from any bytes: as a file, as one line, as words; and a sweep on what comes out. */
#include "knee_out.h"
#include "knee_read.h"
#include "out/answer.h"
#include "say/answers.h"
#include "seldom.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void sweep(const struct knee_cluster *cluster)
{
    static const double bytes[] = {8, 65536, 1e9};
    for (int op = KNEE_OP_ALL_REDUCE; op < KNEE_OPS; op++) {
        struct knee_collective_query query = {(enum knee_op)op, {16, NAN, 1, 1}, bytes, 3};
        struct knee_collective collective;
        struct knee_text text = {0};
        struct knee_style style = {.ascii = true};
        if (knee_collective_run(cluster, &query, NULL, &collective, NULL))
            continue;
        for (size_t i = 0; i < collective.row_count; i++)
            if (isnan(collective.rows[i].time_s) || collective.rows[i].time_s < 0)
                abort();
        knee_answer_write(&knee_collective_answer, &collective, op % 2 ? KNEE_JSON : KNEE_TEXT,
                          &style, &text);
        knee_text_release(&text);
        knee_collective_release(&collective);
    }
}

/* What is written reads back, if it was read from somewhere. */
static void round_trip(const struct knee_cluster *cluster)
{
    struct knee_cluster again;
    static struct knee_fitted record;
    struct knee_text text = {0};
    knee_write_cluster(cluster, &text);
    if (knee_cluster_read(text.data, text.length, "again", &again, &record, NULL) == KNEE_INPUT)
        abort();
    knee_text_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_cluster cluster;
    static struct knee_fitted record;
    struct knee_err err;
    char line[512];
    bool sweeps = seldom(data, size, 32);
    if (knee_cluster_read((const char *)data, size, "fuzz", &cluster, &record, &err) == KNEE_OK) {
        if (sweeps)
            sweep(&cluster);
        round_trip(&cluster);
    }
    size_t length = size < sizeof line - 1 ? size : sizeof line - 1;
    if (length)
        memcpy(line, data, length);
    line[length] = '\0';
    if (knee_cluster_parse(line, &cluster, &err) == KNEE_OK) {
        if (sweeps)
            sweep(&cluster);
        round_trip(&cluster);
    }
    if (knee_cluster_recognise(line, &cluster) && sweeps)
        sweep(&cluster);
    double sizes[KNEE_SIZES_MAX];
    size_t count;
    knee_sizes_parse(line, "", sizes, KNEE_SIZES_MAX, &count, &err);
    return 0;
}

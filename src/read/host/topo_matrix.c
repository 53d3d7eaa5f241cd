/* SPDX-License-Identifier: MIT */
/*
 * nvidia-smi topo -m and topo -p2p r: how far each GPU is from the others and from its nearest NIC.
 * The cluster's reader of the same matrix (smi_topology.c) asks what the node is; this one, what is
 * odd.
 */
#include "read/host/host_read.h"

#include "base/format.h"

#include <math.h>

#define COLUMNS_MAX 128

/* Nearest first. */
static const char *const distance[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};

static int distance_of(struct knee_slice word)
{
    for (int i = 0; i < 5; i++)
        if (knee_slice_is(word, distance[i]))
            return i;
    return -1;
}

/* nvidia-smi underlines the header: ESC [ 4 m. */
static struct knee_slice without_escape(struct knee_slice word)
{
    if (word.length < 3 || word.at[0] != 27)
        return word;
    return knee_slice_from(word, knee_slice_find(word, "m") + 1);
}

static bool is_device(struct knee_slice word, bool *gpu)
{
    double number;
    word = without_escape(word);
    *gpu = knee_slice_starts(word, "GPU") && knee_slice_number(knee_slice_from(word, 3), &number);
    return *gpu || (knee_slice_starts(word, "NIC") && word.length > 3) ||
           knee_slice_starts(word, "mlx") || knee_slice_starts(word, "irdma") ||
           knee_slice_starts(word, "rdma") || knee_slice_starts(word, "rocep") ||
           knee_slice_starts(word, "ibp") || knee_slice_starts(word, "efa_");
}

struct columns {
    size_t count, nics;
    bool gpu[COLUMNS_MAX];
};

static bool header(struct knee_slice line, struct columns *c)
{
    struct knee_slice word;
    bool gpu, affinity = knee_slice_has(line, "Affinity");
    *c = (struct columns){0};
    while (c->count < COLUMNS_MAX && knee_slice_word(&line, &word) && is_device(word, &gpu)) {
        c->gpu[c->count++] = gpu;
        c->nics += !gpu;
    }
    return c->count > (affinity ? 0 : 1) && c->gpu[0];
}

/* A row of the p2p table has a status instead of a path. */
static bool is_status(struct knee_slice word)
{
    static const char *const words[] = {"CNS", "GNS", "TNS", "NS", "DR", "U"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (knee_slice_is(word, words[i]))
            return true;
    return false;
}

struct row {
    int nearest, farthest; /* NIC; GPU without NVLink; -1: none */
    double least, most;    /* NVLinks to another GPU */
    bool refused, cut;
};

static struct row read_row(struct knee_slice line, const struct columns *c)
{
    struct row row = {.nearest = -1, .farthest = -1, .least = INFINITY};
    struct knee_slice word;
    for (size_t i = 0; i < c->count; i++) {
        double links = 0;
        if (!knee_slice_word(&line, &word)) {
            row.cut = true;
            return row;
        }
        int far = distance_of(word);
        if (!c->gpu[i]) {
            row.nearest = far >= 0 && (row.nearest < 0 || far < row.nearest) ? far : row.nearest;
            continue;
        }
        row.refused = row.refused || is_status(word);
        row.farthest = far > row.farthest ? far : row.farthest;
        if (knee_slice_starts(word, "NV"))
            knee_slice_number(knee_slice_from(word, 2), &links);
        if (links > 0 || far >= 0) {
            row.least = fmin(row.least, links);
            row.most = fmax(row.most, links);
        }
    }
    return row;
}

static void tell(struct knee_facts *facts, const char *gpu, const struct row *row)
{
    if (row->nearest >= 0)
        knee_fact_put(facts, gpu, "topo.nearest_nic", knee_slice_of(distance[row->nearest]));
    if (row->farthest >= 0)
        knee_fact_put(facts, gpu, "topo.farthest_gpu", knee_slice_of(distance[row->farthest]));
    if (isfinite(row->least)) {
        knee_fact_number(facts, gpu, "topo.least_nvlinks", row->least);
        knee_fact_number(facts, gpu, "topo.most_nvlinks", row->most);
    }
    if (row->refused)
        knee_fact_put(facts, gpu, "topo.p2p", knee_slice_of("refused"));
}

bool knee_read_topo_matrix(struct knee_facts *facts, struct knee_slice text)
{
    struct columns c = {0};
    struct knee_slice line, word;
    bool gpu, any = false;
    while (knee_slice_line(&text, &line)) {
        if (c.count == 0) {
            if (!header(line, &c))
                c.count = 0;
            continue;
        }
        char name[32];
        if (!knee_slice_word(&line, &word) || !is_device(word, &gpu) || !gpu)
            continue;
        knee_format(name, sizeof name, "GPU %.*s",
                    (int)(word.length - 3 < 20 ? word.length - 3 : 20), word.at + 3);
        struct row row = read_row(line, &c);
        if (!row.cut)
            tell(facts, name, &row);
        any = any || !row.cut;
    }
    return any;
}

/* SPDX-License-Identifier: MIT */
/*
 * `nvidia-smi topo -m`: a matrix of how GPUs and NICs reach each other, with tabs or, pasted, with
 * spaces. GPUs that see each other over NV# links share an NVLink level; bridges between pairs of
 * cards do not count, and the node is PCIe. NICs count that are behind a switch of some GPU (PIX,
 * PXB); if none is, all of them. The matrix names no GPU and no rate: what `nvidia-smi -L` prints
 * may stand before it and does; else the number of links tells the generation, and the usual
 * cluster of the GPU the network.
 */
#include "read/cluster/cluster_read.h"

#include "base/error.h"
#include "base/format.h"
#include "cluster/gpu_words.h"

#include <math.h>
#include <string.h>

#define DEVICES_MAX 128

struct matrix {
    size_t columns, gpus, nics;
    bool is_gpu[DEVICES_MAX];
    double most_links, most_in_row; /* NV# of a pair of GPUs, and of a GPU in all */
    size_t most_peers;              /* that one GPU reaches over NVLink */
    const char *named;              /* GPU, where nvidia-smi -L names it */
    bool listed;                    /* by name, known or not */
    bool all_nvlink;
    bool near[DEVICES_MAX]; /* NIC behind a switch of some GPU */
    size_t rows;
};

static bool device_name(struct knee_slice word, bool *gpu)
{
    *gpu = knee_slice_starts(word, "GPU");
    size_t digits = *gpu || knee_slice_starts(word, "NIC") ? 3 : 5;
    if (!*gpu && digits == 5 && !knee_slice_starts(word, "mlx5_"))
        return false;
    double number;
    return knee_slice_number(knee_slice_from(word, digits), &number);
}

/* "GPU0 GPU1 ... NIC0 ... CPU Affinity": true when the line names two devices and more. */
static bool read_header(struct matrix *m, struct knee_slice line)
{
    struct knee_slice word;
    size_t count = 0;
    bool gpu;
    while (knee_slice_word(&line, &word) && device_name(word, &gpu) && count < DEVICES_MAX)
        m->is_gpu[count++] = gpu;
    if (count < 2)
        return false;
    m->columns = count;
    m->gpus = m->nics = 0;
    for (size_t i = 0; i < count; i++)
        *(m->is_gpu[i] ? &m->gpus : &m->nics) += 1;
    return true;
}

/* "GPU3  NV18 NV18 NV18 X NV18 ... PIX SYS ..." */
static knee_status read_row(struct matrix *m, struct knee_slice line, const char *where,
                            struct knee_err *err)
{
    struct knee_slice word;
    double in_row = 0;
    size_t peers = 0;
    for (size_t column = 0; column < m->columns; column++) {
        double links = 0;
        if (!knee_slice_word(&line, &word))
            return knee_fail(err, KNEE_INPUT, where, "the row of GPU%zu has %zu cells, %zu wanted",
                             m->rows, column, m->columns);
        if (knee_slice_is(word, "X"))
            continue;
        if (m->is_gpu[column]) {
            if (knee_slice_starts(word, "NV"))
                knee_slice_number(knee_slice_from(word, 2), &links);
            m->all_nvlink = m->all_nvlink && links > 0;
            m->most_links = fmax(m->most_links, links);
            in_row += links;
            peers += links > 0;
        } else if (knee_slice_is(word, "PIX") || knee_slice_is(word, "PXB")) {
            m->near[column] = true;
        }
    }
    m->most_in_row = fmax(m->most_in_row, in_row);
    m->most_peers = peers > m->most_peers ? peers : m->most_peers;
    m->rows++;
    return KNEE_OK;
}

#define NVLINKS_MAX 18 /* of any GPU so far */

/* NVLinks of one GPU: a pair shows them all behind a switch, its share of them without one. */
static double links_of(const struct matrix *m)
{
    if (!m->all_nvlink && m->most_peers < 2)
        return 0; /* none, or bridges */
    return m->most_in_row > NVLINKS_MAX ? m->most_links : m->most_in_row;
}

/* The GPU model, or what the links suggest: four GPUs that share 18 links are GH200 as a rule. 18
 * links alone fit H100, H200, B200 and B300; the matrix does not distinguish them. */
static void set_gpu(const struct matrix *m, struct knee_cluster *t)
{
    double links = links_of(m);
    bool switched = m->most_in_row > NVLINKS_MAX;
    const struct knee_gpu *gpu = m->listed ? NULL : knee_gpu_of_links(NAN, links);
    if (m->named) {
        knee_cluster_of_gpu(m->named, t);
    } else if (gpu) {
        bool mesh = m->gpus == 4 && links == NVLINKS_MAX && !switched;
        knee_cluster_of_gpu(mesh ? "gh200" : gpu->name, t);
    } else {
        knee_cluster_of_gpu(links > 0 ? "h100" : "h100-pcie", t);
        t->levels[0].bytes_per_s *= links > 0 ? links / NVLINKS_MAX : 1;
        knee_format(t->gpu, sizeof t->gpu, "%s", links > 0 ? "unknown" : "pcie");
    }
    if (!switched)
        t->nvls_share = 0;
}

static void fill(const struct matrix *m, const char *name, struct knee_cluster *out)
{
    struct knee_cluster t;
    double near = 0;
    for (size_t i = 0; i < m->columns; i++)
        near += !m->is_gpu[i] && m->near[i];
    set_gpu(m, &t);
    t.levels[0].count = (double)m->gpus;
    if (m->nics > 0)
        t.levels[1].ports = near > 0 ? near : (double)m->nics;
    knee_format(t.name, sizeof t.name, "%.14s: %u x %s%s %s, %u x NIC", name, (unsigned)m->gpus,
                t.gpu, m->listed ? "" : " (assumed)", m->all_nvlink ? "on NVLink" : "not on NVLink",
                (unsigned)t.levels[1].ports);
    *out = t;
}

/* "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)" */
static void read_list(struct matrix *m, struct knee_slice line)
{
    char text[160];
    if (m->named || !knee_slice_starts(line, "GPU ") || !knee_slice_has(line, ": "))
        return;
    line.length = knee_slice_find(line, "(UUID");
    knee_slice_copy(line, text, sizeof text);
    m->listed = true;
    m->named = knee_gpu_name_in(text);
}

knee_status knee_smi_topology_read(struct knee_slice text, const char *name,
                                   struct knee_cluster *out, struct knee_err *err)
{
    struct matrix m = {.all_nvlink = true};
    struct knee_slice line, word;
    size_t number = 0;
    while (knee_slice_line(&text, &line)) {
        bool gpu;
        char where[128];
        number++;
        if (m.columns == 0) {
            read_list(&m, line);
            read_header(&m, line);
            continue;
        }
        if (!knee_slice_word(&line, &word) || !device_name(word, &gpu) || !gpu || m.rows == m.gpus)
            continue;
        knee_format(where, sizeof where, "%.100s:%zu", name, number);
        knee_status status = read_row(&m, line, where, err);
        if (status)
            return status;
    }
    if (m.gpus == 0 || m.rows != m.gpus)
        return knee_fail_hint(err, KNEE_INPUT, name, "paste all of nvidia-smi topo -m",
                              "%zu of %zu GPU rows of the matrix are there", m.rows, m.gpus);
    fill(&m, name, out);
    return KNEE_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * `nvidia-smi topo -m`: a matrix of how GPUs and NICs reach each other, with tabs or, pasted, with
 * spaces. GPUs that all see each other over NV# links share an NVLink level; otherwise the slowest
 * pair decides and the node is PCIe. NICs count that are behind a switch of some GPU (PIX, PXB); if
 * none is, all of them. The matrix names no GPU and no rate: the number of links per pair tells the
 * generation, the usual cluster of that GPU the network.
 */
#include "read/cluster/cluster_read.h"

#include "base/error.h"
#include "base/format.h"
#include "cluster/cluster.h"
#include "cluster/presets.h"

#include <math.h>
#include <string.h>

#define DEVICES_MAX 128

struct matrix {
    size_t columns, gpus, nics;
    bool is_gpu[DEVICES_MAX];
    double least_links, most_links; /* NV# between any two GPUs */
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
            m->least_links = fmin(m->least_links, links);
            m->most_links = fmax(m->most_links, links);
        } else if (knee_slice_is(word, "PIX") || knee_slice_is(word, "PXB")) {
            m->near[column] = true;
        }
    }
    m->rows++;
    return KNEE_OK;
}

/* GPUs by the NVLinks they have in all, and by what a switch shows between a pair. */
static const char *gpu_of(const struct matrix *m)
{
    if (!m->all_nvlink)
        return "h100-pcie";
    if (m->least_links >= 18)
        return "h100"; /* as well as H200, B200 and B300: the matrix does not tell */
    if (m->least_links >= 12)
        return "a100";
    if (m->least_links >= 6 && m->gpus == 4)
        return "gh200";
    return "v100";
}

static void fill(const struct matrix *m, const char *name, struct knee_cluster *out)
{
    const struct knee_gpu *gpu = knee_gpu_named(gpu_of(m));
    const struct knee_cluster_preset *usual = knee_cluster_preset_named(gpu->cluster);
    double near = 0;
    for (size_t i = 0; i < m->columns; i++)
        near += !m->is_gpu[i] && m->near[i];
    knee_cluster_from_preset(usual, out);
    out->levels[0].count = (double)m->gpus;
    if (m->nics > 0)
        out->levels[1].ports = near > 0 ? near : (double)m->nics;
    knee_format(out->name, sizeof out->name, "%.40s: %zu x GPU %s, %.0f x NIC", name, m->gpus,
                m->all_nvlink ? "all on NVLink" : "not all on NVLink", out->levels[1].ports);
}

knee_status knee_smi_topology_read(struct knee_slice text, const char *name,
                                   struct knee_cluster *out, struct knee_err *err)
{
    struct matrix m = {.least_links = INFINITY, .all_nvlink = true};
    struct knee_slice line, word;
    size_t number = 0;
    while (knee_slice_line(&text, &line)) {
        bool gpu;
        char where[128];
        number++;
        if (m.columns == 0) {
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
    if (m.gpus == 0 || m.rows != m.gpus) {
        knee_fail(err, KNEE_INPUT, name, "%zu of %zu GPU rows of the matrix are there", m.rows,
                  m.gpus);
        knee_hint(err, "paste all of nvidia-smi topo -m");
        return KNEE_INPUT;
    }
    fill(&m, name, out);
    return KNEE_OK;
}

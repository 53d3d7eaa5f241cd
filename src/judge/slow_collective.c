/* SPDX-License-Identifier: MIT */
/*
 * A measured collective against what it should take. Slow is 1.5 times the model's time, or 1.25
 * times that of a curve fitted on this cluster. Reasons are a table, most telling first: each looks
 * at what the log lets slip and says which of the slow sizes it explains. What no rule explains is
 * left unexplained.
 */
#include "base/format.h"
#include "base/order.h"
#include "collective/collective.h"
#include "judge/judge.h"
#include "knee_logs.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SLOW_MODEL 1.5
#define SLOW_CURVE 1.25

struct matter {
    const struct knee_collective *c;
    const struct knee_log *log;
    char *evidence; /* [160] */
};

/* ---- Which sizes a reason can explain ---- */

typedef bool scope(const struct matter *m, const struct knee_collective_size *size);

static bool any_size(const struct matter *m, const struct knee_collective_size *size)
{
    (void)m, (void)size;
    return true;
}

static bool large(const struct matter *m, const struct knee_collective_size *size)
{
    (void)m;
    return size->latency_share < 0.5;
}

static bool small(const struct matter *m, const struct knee_collective_size *size)
{
    return !large(m, size);
}

static const struct knee_sample *sample_of(const struct knee_log *log, double bytes)
{
    for (size_t i = 0; i < log->sample_count; i++)
        if (log->samples[i].bytes == bytes)
            return &log->samples[i];
    return NULL;
}

static bool uneven(const struct matter *m, const struct knee_collective_size *size)
{
    const struct knee_sample *s = sample_of(m->log, size->bytes); /* by which it is slow */
    return fmax(s->out_of_place_s, s->in_place_s) > 1.5 * fmin(s->out_of_place_s, s->in_place_s);
}

/* Seconds of one of NCCL's algorithms with its best protocol; NaN: it does not do this. */
static double algorithm_s(const struct matter *m, const struct knee_algorithm *row, double bytes)
{
    struct knee_counts counts = {0};
    if (!row->nccl ||
        !knee_scheme_count(&m->c->cluster, &m->c->layout, m->c->query.op, bytes, row, &counts))
        return NAN;
    return knee_best_protocol_s(&m->c->cluster, &m->c->layout, &counts, row, NULL);
}

/* True if NCCL's log names another algorithm for this size than the fastest one available. */
static bool other_algorithm(const struct matter *m, const struct knee_collective_size *size)
{
    const struct knee_algorithm *best = NULL, *row;
    double best_s =
        knee_model_time_s(&m->c->cluster, &m->c->layout, m->c->query.op, size->bytes, &best, NULL);
    for (size_t i = 0; i < m->log->tuning_count; i++) {
        const struct knee_tuning *tuning = &m->log->tunings[i];
        if (tuning->bytes != size->bytes || !best || !best->nccl ||
            strcmp(tuning->algorithm, best->nccl) == 0)
            continue;
        for (size_t s = 0; (row = knee_scheme_at(s)); s++)
            if (row->nccl && strcmp(row->nccl, tuning->algorithm) == 0 &&
                algorithm_s(m, row, size->bytes) > 1.2 * best_s)
                return true;
    }
    return false;
}

/* The algorithm that the log names takes about as long. */
static bool as_named(const struct matter *m, const struct knee_collective_size *size)
{
    double named_s = knee_log_time_s(m->log, &m->c->cluster, &m->c->layout, size->bytes, false);
    return size->measured_s < SLOW_CURVE * named_s;
}

/* ---- Reasons ---- */

static bool crosses(const struct matter *m)
{
    return m->c->layout.levels > 1;
}

static bool tcp(const struct matter *m)
{
    knee_format(m->evidence, 160, "the log says NET/Socket, the cluster has %s",
                m->c->cluster.levels[1].name);
    return crosses(m) && (m->log->seen & KNEE_SEEN_SOCKET) && !(m->log->seen & KNEE_SEEN_RDMA) &&
           strncmp(m->c->cluster.levels[1].name, "eth", 3) != 0;
}

static bool no_gdr(const struct matter *m)
{
    knee_format(m->evidence, 160, "the log shows the network without GDRDMA");
    return crosses(m) && (m->log->seen & KNEE_SEEN_NO_GDR) && !(m->log->seen & KNEE_SEEN_GDR);
}

static bool few_adapters(const struct matter *m)
{
    double ports = m->c->cluster.levels[crosses(m)].ports;
    knee_format(m->evidence, 160, "NCCL lists %.0f adapters, a node has %.0f ports",
                m->log->adapters, ports);
    return crosses(m) && m->log->adapters < ports;
}

/* The largest size runs at about what one port would give. */
static bool one_port(const struct matter *m)
{
    const struct knee_collective *c = m->c;
    double ports = c->cluster.levels[crosses(m)].ports;
    if (!crosses(m) || ports < 2)
        return false;
    const struct knee_collective_size *last = &c->sizes[c->query.size_count - 1];
    knee_format(m->evidence, 160, "%.1f times slower than %.0f ports allow", last->slowdown, ports);
    return large(m, last) && last->slowdown > 0.7 * ports && last->slowdown < 1.4 * ports;
}

static bool through_host(const struct matter *m)
{
    knee_format(m->evidence, 160, "the log says %s, the GPUs have %s",
                m->log->seen & KNEE_SEEN_SHM ? "SHM" : "P2P is disabled",
                m->c->cluster.levels[0].name);
    return (m->log->seen & (KNEE_SEEN_SHM | KNEE_SEEN_NO_P2P)) &&
           strncmp(m->c->cluster.levels[0].name, "nvlink", 6) == 0;
}

static bool same_gpu(const struct matter *m)
{
    knee_format(m->evidence, 160, "the log lists the same device for several ranks");
    return m->log->seen & KNEE_SEEN_SAME_GPU;
}

static bool one_thread(const struct matter *m)
{
    knee_format(m->evidence, 160, "one thread serves %.0f GPUs", m->log->gpus_per_process);
    return m->log->gpus_per_process > 1;
}

static bool named(const struct matter *m)
{
    knee_format(m->evidence, 160, "the log is of %s, which takes about as long", m->log->algorithm);
    return m->log->hops > 0;
}

static bool forced(const struct matter *m)
{
    knee_format(m->evidence, 160, "NCCL_ALGO or NCCL_PROTO is set");
    return m->log->seen & KNEE_SEEN_FORCED_ALGO;
}

static bool chosen(const struct matter *m)
{
    knee_format(m->evidence, 160, "NCCL's tuning lines name another algorithm than the fastest");
    return m->log->tuning_count > 0;
}

/* Of the large sizes that are slow, nearly all take what another algorithm would: within 15 %. */
static bool looks_like_another(const struct matter *m)
{
    const struct knee_collective *c = m->c;
    const struct knee_algorithm *row;
    for (size_t s = 0; (row = knee_scheme_at(s)); s++) {
        size_t slow = 0, alike = 0;
        for (size_t i = 0; i < c->query.size_count; i++) {
            const struct knee_collective_size *size = &c->sizes[i];
            double ratio = size->measured_s / algorithm_s(m, row, size->bytes);
            if (!(size->slowdown > SLOW_CURVE) || !large(m, size))
                continue;
            slow++;
            alike += fabs(ratio - 1) < 0.15;
        }
        if (slow < 3 || 4 * alike < 3 * slow)
            continue;
        knee_format(m->evidence, 160, "%zu of %zu large sizes take what %s would", alike, slow,
                    row->nccl);
        return true;
    }
    return false;
}

static bool disturbed(const struct matter *m)
{
    knee_format(m->evidence, 160, "in-place and out-of-place differ by half and more");
    return true;
}

static const struct {
    const char *name, *cure;
    bool (*holds)(const struct matter *m);
    scope *explains;
} reasons[] = {
    {"several ranks on one GPU", "one rank per GPU", same_gpu, any_size},
    {"TCP instead of RDMA", "unset NCCL_IB_DISABLE; check NCCL_NET, NCCL_IB_HCA and the plugin",
     tcp, any_size},
    {"GPUs talk through host memory", "unset NCCL_P2P_DISABLE; check ACS and nvidia-smi topo -m",
     through_host, any_size},
    {"not every rail in use", "check NCCL_IB_HCA and that all adapters are up", few_adapters,
     large},
    {"GPU Direct RDMA is off", "load nvidia-peermem; check NCCL_NET_GDR_LEVEL and ACS", no_gdr,
     large},
    {"one rail in use", "check NCCL_IB_HCA, NCCL_CROSS_NIC and that all adapters are up", one_port,
     large},
    {"wrong algorithm", "another --algorithm of knee bench, or the library's own", named, as_named},
    {"wrong algorithm", "unset NCCL_ALGO and NCCL_PROTO", forced, any_size},
    {"wrong algorithm", "set NCCL_ALGO to the fastest; a tuner plugin may be at work", chosen,
     other_algorithm},
    {"wrong algorithm", "compare NCCL_ALGO settings; a tuner plugin may be at work",
     looks_like_another, large},
    {"the host issues too slowly", "one process per GPU, or CUDA graphs", one_thread, small},
    {"a disturbed measurement", "more iterations (-n); look for other jobs", disturbed, uneven},
};

static double median_slowdown(const struct knee_collective *c, size_t finding)
{
    double list[KNEE_SIZES_MAX] = {0};
    size_t count = 0;
    for (size_t i = 0; i < c->query.size_count; i++)
        if (c->sizes[i].finding == finding)
            list[count++] = c->sizes[i].slowdown;
    return knee_median(list, count);
}

/* Gives the slow sizes that nothing explains yet to one reason: all of its scope, so that there are
 * at most as many findings as scopes, six. */
static void blame(struct knee_collective *c, const struct knee_log *log, size_t reason)
{
    char evidence[160];
    struct matter m = {c, log, evidence};
    struct knee_finding *finding = &c->findings[c->finding_count];
    bool any = false;
    if (!reasons[reason].holds(&m))
        return;
    for (size_t i = 0; i < c->query.size_count; i++) {
        struct knee_collective_size *size = &c->sizes[i];
        if (!size->slow || size->finding != SIZE_MAX || !reasons[reason].explains(&m, size))
            continue;
        size->finding = c->finding_count;
        if (!any)
            *finding = (struct knee_finding){.name = reasons[reason].name,
                                             .cure = reasons[reason].cure,
                                             .from_bytes = size->bytes};
        finding->to_bytes = size->bytes;
        any = true;
    }
    if (!any)
        return;
    memcpy(finding->evidence, evidence, sizeof finding->evidence);
    finding->slowdown = median_slowdown(c, c->finding_count);
    c->finding_count++;
}

void knee_collective_against(struct knee_collective *collective, const struct knee_log *log)
{
    double slow = collective->curve ? SLOW_CURVE : SLOW_MODEL;
    for (size_t i = 0; i < collective->query.size_count; i++) {
        struct knee_collective_size *size = &collective->sizes[i];
        const struct knee_sample *sample = sample_of(log, size->bytes);
        if (!sample)
            continue;
        size->measured_s = sample->time_s;
        size->slowdown = sample->time_s / size->expected_s;
        size->slow = size->slowdown > slow;
        collective->slow_count += size->slow;
    }
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        blame(collective, log, i);
}

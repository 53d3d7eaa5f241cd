/* SPDX-License-Identifier: MIT */
/*
 * What a finding costs: the same cluster with the hurt level against the healthy one. Without a job
 * it is the bandwidth of one all-reduce of 1 GiB; with one, R, the step and dollars a day of knee
 * predict with the hurt link. One function here asks for the time of a collective, one for the
 * cluster of a GPU's name.
 */
#include "judge/doctor/doctor_judge.h"

#include "base/format.h"

#include "base/text.h"
#include "cluster/cluster.h"
#include "cluster/hardware.h"
#include "cluster/presets.h"
#include "knee_judge.h"

#include <math.h>
#include <string.h>

#define WHOLE_RATE   0.995  /* a rate above this share counts as full */
#define LOST_LEAST   0.0005 /* of a job's throughput, to be worth a word */
#define PRICED_BYTES 1073741824.0
#define PRICED_NODES 8

/* The one place that asks what a collective takes. */
static double all_reduce_s(const struct knee_cluster *cluster, double ranks, double bytes)
{
    struct knee_group group = {ranks, 1, true};
    return knee_collective_s(cluster, KNEE_OP_ALL_REDUCE, group, bytes, NULL);
}

/* The one place that makes a cluster of what a GPU is called. */
static bool cluster_named(const char *description, struct knee_cluster *out)
{
    return knee_cluster_recognise(description, out);
}

/* ---- Which cluster ---- */

/* "8 x NVIDIA H100 80GB HBM3, 8x400 Gb/s InfiniBand" of the host's own words. */
static bool describe(const struct knee_facts *facts, char *out, size_t size)
{
    const struct knee_fact *gpu = knee_fact_find(facts, NULL, "gpu.name");
    size_t gpus = knee_facts_count(facts, "gpu.name"), active = 0;
    double rate = knee_facts_most(facts, "ib.rate");
    if (!gpu)
        return false;
    for (const struct knee_fact *row = NULL; knee_fact_next(facts, "ib.rate", &row);)
        active += row->number >= 0.4 * rate;
    const struct knee_fact *layer = knee_fact_find(facts, NULL, "ib.layer");
    bool roce = layer && strcmp(layer->value, "Ethernet") == 0;
    if (knee_facts_count(facts, "ib.rate"))
        knee_format(out, size, "%zux %.80s, %zux%.0f Gb/s %s", gpus, gpu->value, active, rate,
                    roce ? "RoCE" : "InfiniBand");
    else
        knee_format(out, size, "%zux %.80s", gpus, gpu->value);
    return true;
}

static void choose_cluster(struct knee_checkup *out, const struct knee_facts *hosts, size_t count,
                           const struct knee_doctor_options *options)
{
    char text[160];
    if (options->cluster) {
        out->cluster = *options->cluster;
        knee_format(out->cluster_from, sizeof out->cluster_from, "%.90s", options->cluster->name);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (describe(&hosts[i], text, sizeof text) && cluster_named(text, &out->cluster)) {
            out->cluster.levels[0].count = (double)knee_facts_count(&hosts[i], "gpu.name");
            knee_format(out->cluster_from, sizeof out->cluster_from, "%.90s", text);
            return;
        }
    out->cluster.level_count = 0;
}

/* ---- Hurting it ---- */

static double ethernet_bytes_per_s(const struct knee_facts *hosts, size_t count)
{
    double best = 0;
    for (size_t i = 0; i < count; i++)
        best = fmax(best, knee_facts_most(&hosts[i], "net.speed") * 1e6 / 8);
    return best;
}

/* The share that is left of what is hurt; NaN: not known, or nothing is lost. */
static double left_of(const struct knee_ailment *a)
{
    return a->left > 0 && a->left < 1 ? a->left : NAN;
}

/* Measured curves describe the healthy cluster: they do not hold for the hurt one. */
static bool hurt(struct knee_cluster *c, const struct knee_ailment *a, double ethernet)
{
    double left = left_of(a);
    bool net = c->level_count > 1,
         pcie4 = strcmp(c->gpu, "v100") == 0 || strncmp(c->gpu, "a100", 4) == 0;
    c->fitted = NULL;
    switch (a->rule->hurts) {
    case KNEE_HURTS_NETWORK: c->levels[1].bytes_per_s *= left; return net && !isnan(left);
    case KNEE_HURTS_NODE: c->levels[0].bytes_per_s *= left; return !isnan(left);
    case KNEE_HURTS_NVLS: c->nvls_share = 0; return true;
    case KNEE_HURTS_SOCKET:
        knee_level_set_link(&c->levels[1], knee_link_nearest("eth", ethernet), 1);
        return net;
    case KNEE_HURTS_SHM:
        knee_level_set_link(&c->levels[0], knee_link_named(pcie4 ? "pcie4" : "pcie5"), 1);
        c->nvls_share = 0;
        return true;
    default: return false;
    }
}

/* ---- The job ---- */

/* Too large for a small stack. */
struct predictions {
    struct knee_prediction before, after;
    struct knee_job job;
};

/* The completed job on the hurt cluster: numbers that a cluster gives come from it again. */
static void price_job(struct knee_checkup *out, struct knee_ailment *a, struct predictions *p,
                      const struct knee_cluster *bad)
{
    const struct knee_prediction *before = &p->before;
    struct knee_job *job = &p->job;
    struct knee_err err;
    *job = before->job;
    double left = left_of(a);
    if (a->rule->hurts == KNEE_HURTS_COMPUTE) {
        if (isnan(left))
            return;
        job->compute_time_s /= left;
        job->flops_per_s *= left;
        job->slower /= left;
    } else {
        job->hw.cluster = *bad;
        job->hw.bandwidth_bytes_per_s = job->hw.latency_s = NAN;
        job->hw.node_bandwidth_bytes_per_s = job->hw.node_latency_s = job->hw.gpus_per_node = NAN;
    }
    job->at = before->at.workers;
    knee_status status = knee_predict(job, out->alloc, &p->after, &err);
    out->no_memory = out->no_memory || status == KNEE_SYSTEM;
    if (status)
        return;
    a->price.ratio_before = before->at.ratio;
    a->price.ratio_after = p->after.at.ratio;
    a->price.step_before_s = before->at.step.wall_s;
    a->price.step_after_s = p->after.at.step.wall_s;
    a->price.lost = 1 - before->at.step.wall_s / p->after.at.step.wall_s;
    a->price.dollars_per_day = before->cost.day * a->price.lost;
    knee_prediction_release(&p->after);
}

/* A job that does not run loses all of its day. */
static void price_stop(struct knee_ailment *a, const struct knee_prediction *before)
{
    a->price.ratio_before = before->at.ratio;
    a->price.step_before_s = before->at.step.wall_s;
    a->price.lost = 1;
    a->price.dollars_per_day = before->cost.day;
}

static void price_one(struct knee_checkup *out, struct knee_ailment *a, double ethernet,
                      struct predictions *job)
{
    struct knee_cluster bad = out->cluster;
    a->price = (struct knee_toll){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, false, false};
    bool stops = a->rule->hurts == KNEE_HURTS_ALL && a->severity == KNEE_ERROR;
    if (stops && job)
        price_stop(a, &job->before);
    if (out->cluster.level_count == 0 || a->rule->hurts == KNEE_HURTS_ALL)
        return;
    bool known = hurt(&bad, a, ethernet);
    if (known) {
        struct knee_cluster good = out->cluster;
        good.fitted = NULL; /* both from the model, or the curve's own error becomes a cost */
        a->price.healthy_s = all_reduce_s(&good, out->ranks, out->bytes);
        /* a fault makes nothing faster, whatever link it is priced as */
        a->price.hurt_s = fmax(a->price.healthy_s, all_reduce_s(&bad, out->ranks, out->bytes));
        a->price.share = a->price.healthy_s / a->price.hurt_s;
    }
    if (job && (known || a->rule->hurts == KNEE_HURTS_COMPUTE))
        price_job(out, a, job, &bad);
}

/* The job on the hosts that were looked at, where it does not say on what it runs. Its cluster,
 * with what numbers change in it, is then the one that is hurt. */
static knee_status predict(struct knee_checkup *out, const struct knee_job *given,
                           struct predictions *p, struct knee_err *err)
{
    bool known = out->cluster.level_count > 0;
    p->job = *given;
    if (!knee_hardware_has_cluster(&p->job.hw) && p->job.hw.gpu < 0 && known)
        p->job.hw.cluster = out->cluster;
    knee_status status = knee_predict(&p->job, out->alloc, &p->before, err);
    if (status)
        return status;
    knee_hardware_cluster(&p->before.job.hw, &out->cluster);
    out->price_per_hour = p->before.job.hw.price_per_hour;
    if (!known)
        knee_format(out->cluster_from, sizeof out->cluster_from, "%.90s", out->cluster.name);
    return KNEE_OK;
}

static void price_findings(struct knee_checkup *out, const struct knee_facts *hosts,
                           size_t host_count, struct predictions *p)
{
    double ethernet = ethernet_bytes_per_s(hosts, host_count);
    bool known = ethernet > 0;
    double per_node = out->cluster.level_count ? out->cluster.levels[0].count : 1;
    ethernet = known ? ethernet : 100e9 / 8; /* a front end of 100 Gb/s, where nothing is known */
    out->ranks = PRICED_NODES * (per_node > 0 ? per_node : 8);
    out->bytes = PRICED_BYTES;
    if (p && p->before.at.workers > per_node)
        out->ranks = p->before.at.workers;
    for (size_t i = 0; i < out->count; i++) {
        struct knee_toll *price = &out->findings[i].price;
        price_one(out, &out->findings[i], ethernet, p);
        price->slows_wire = price->share < WHOLE_RATE;
        price->slows_job = price->lost > LOST_LEAST;
        out->ethernet_assumed =
            out->ethernet_assumed || (!known && out->cluster.level_count > 1 &&
                                      out->findings[i].rule->hurts == KNEE_HURTS_SOCKET);
    }
}

knee_status knee_price_all(struct knee_checkup *out, const struct knee_facts *hosts,
                           size_t host_count, const struct knee_doctor_options *options,
                           struct knee_err *err)
{
    struct predictions *p = options->job ? knee_resize(out->alloc, NULL, sizeof *p) : NULL;
    knee_status status = KNEE_OK;
    choose_cluster(out, hosts, host_count, options);
    if (options->job && !p)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    if (p)
        status = predict(out, options->job, p, err);
    if (!status)
        price_findings(out, hosts, host_count, p);
    if (p && !status)
        knee_prediction_release(&p->before);
    knee_resize(out->alloc, p, 0);
    return status;
}

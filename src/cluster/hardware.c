/* SPDX-License-Identifier: MIT */
/*
 * What a job runs on: a GPU, a cluster, and numbers that change single links of it. One way to
 * complete them for every command, so that the same words mean the same machine everywhere.
 */
#include "cluster/hardware.h"

#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/presets.h"

#include <math.h>
#include <string.h>

knee_status knee_cluster_word(const char *text, const char *where, void *cluster,
                              struct knee_err *err)
{
    if (strchr(text, '*') || strchr(text, ':') || (text[0] >= '0' && text[0] <= '9'))
        return knee_cluster_parse(text, cluster, err);
    int row = knee_choice_find(&knee_cluster_preset_names, text, where, err);
    if (row >= 0) {
        knee_cluster_from_preset(knee_cluster_preset_at((size_t)row), cluster);
        return KNEE_OK;
    }
    if (err && !strstr(err->hint, "did you mean")) {
        err->hint[0] = '\0';
        knee_hint(err, "name a preset ('knee list clusters'), a file that exists, or write "
                       "'8xh100 * 16 @ ib400x8'");
    }
    return KNEE_USAGE;
}

void knee_hardware_init(struct knee_hardware *hw)
{
    memset(hw, 0, sizeof *hw);
    hw->gpu = hw->link = -1;
    hw->bandwidth_bytes_per_s = hw->latency_s = hw->gpus_per_node = NAN;
    hw->node_bandwidth_bytes_per_s = hw->node_latency_s = NAN;
    hw->memory_bytes_per_s = hw->price_per_hour = hw->power_w = NAN;
}

bool knee_hardware_has_cluster(const struct knee_hardware *hw)
{
    return hw->cluster.level_count > 0;
}

const struct knee_gpu *knee_hardware_gpu(const struct knee_hardware *hw)
{
    if (hw->gpu >= 0)
        return knee_gpu_at((size_t)hw->gpu);
    return knee_hardware_has_cluster(hw) ? knee_gpu_named(hw->cluster.gpu) : NULL;
}

double knee_gpu_price(const struct knee_gpu *gpu)
{
    /* Prices are known to a factor of 3 or so: the geometric middle of the range, in cents. */
    return rint(100 * sqrt(gpu->price_low * gpu->price_high)) / 100;
}

/* ---- What a cluster says in numbers ---- */

struct numbers {
    double gpus_per_node, node_bytes_per_s, node_latency_s, bytes_per_s, latency_s;
};

static struct numbers numbers_of(const struct knee_cluster *cluster)
{
    const struct knee_level *in = &cluster->levels[0], *out = &cluster->levels[1];
    double node = in->count > 0 ? in->count : 1, rate = in->ports * in->bytes_per_s;
    struct numbers n = {node, rate, in->latency_s, rate, in->latency_s};
    if (cluster->level_count > 1) {
        n.bytes_per_s = out->ports * out->bytes_per_s / out->oversubscription / node;
        n.latency_s = out->latency_s;
    }
    return n;
}

static void fill_links(const struct knee_keys *keys, void *object, struct knee_hardware *hw)
{
    if (!knee_hardware_has_cluster(hw))
        return;
    struct numbers n = numbers_of(&hw->cluster);
    knee_keys_fill(keys, object, &hw->gpus_per_node, n.gpus_per_node, KNEE_PRESET);
    knee_keys_fill(keys, object, &hw->node_bandwidth_bytes_per_s, n.node_bytes_per_s, KNEE_PRESET);
    knee_keys_fill(keys, object, &hw->node_latency_s, n.node_latency_s, KNEE_PRESET);
    knee_keys_fill(keys, object, &hw->bandwidth_bytes_per_s, n.bytes_per_s, KNEE_PRESET);
    knee_keys_fill(keys, object, &hw->latency_s, n.latency_s, KNEE_PRESET);
}

/* A link by its name: what a collective achieves over it, and a hop with its host. */
static void fill_link(const struct knee_keys *keys, void *object, const struct knee_link *link,
                      double *bytes_per_s, double *latency_s)
{
    struct knee_level level;
    knee_level_set_link(&level, link, 1);
    knee_keys_fill(keys, object, bytes_per_s, level.bytes_per_s, KNEE_PRESET);
    knee_keys_fill(keys, object, latency_s, level.latency_s, KNEE_PRESET);
}

static void assume(const struct knee_keys *keys, void *object, struct knee_hardware *hw)
{
    const struct knee_gpu *gpu = knee_hardware_gpu(hw);
    if (!gpu || knee_hardware_has_cluster(hw))
        return;
    knee_cluster_from_preset(knee_cluster_preset_named(gpu->cluster), &hw->cluster);
    knee_keys_source(keys, object)[knee_keys_find(keys, "cluster")] = KNEE_DEFAULT;
}

void knee_hardware_complete(const struct knee_keys *keys, void *object, struct knee_hardware *hw,
                            bool assume_cluster)
{
    if (assume_cluster)
        assume(keys, object, hw);
    const struct knee_gpu *gpu = knee_hardware_gpu(hw);
    if (gpu) {
        knee_keys_fill(keys, object, &hw->memory_bytes_per_s, gpu->memory_bytes_per_s, KNEE_PRESET);
        knee_keys_fill(keys, object, &hw->power_w, gpu->power_w, KNEE_PRESET);
        knee_keys_fill(keys, object, &hw->price_per_hour, knee_gpu_price(gpu), KNEE_PRESET);
    }
    if (hw->link >= 0)
        fill_link(keys, object, knee_link_at((size_t)hw->link), &hw->bandwidth_bytes_per_s,
                  &hw->latency_s);
    fill_links(keys, object, hw);
    knee_keys_fill(keys, object, &hw->latency_s, 0, KNEE_DEFAULT);
    knee_keys_fill(keys, object, &hw->gpus_per_node, 1, KNEE_DEFAULT);
    knee_keys_fill(keys, object, &hw->node_bandwidth_bytes_per_s, hw->bandwidth_bytes_per_s,
                   KNEE_DEFAULT);
    knee_keys_fill(keys, object, &hw->node_latency_s, hw->latency_s, KNEE_DEFAULT);
    knee_keys_fill(keys, object, &hw->memory_bytes_per_s, 2e12, KNEE_DEFAULT);
}

/* ---- The cluster to price on ---- */

static void textbook(const struct knee_hardware *hw, struct knee_cluster *out)
{
    bool known = !isnan(hw->bandwidth_bytes_per_s);
    double node = isnan(hw->gpus_per_node) ? 1 : hw->gpus_per_node;
    double rate = known ? hw->bandwidth_bytes_per_s : 1;
    double in = isnan(hw->node_bandwidth_bytes_per_s) ? rate : hw->node_bandwidth_bytes_per_s;
    knee_cluster_plain(out);
    out->textbook = true;
    out->levels[0] = (struct knee_level){.name = "node",
                                         .count = node,
                                         .latency_s = hw->node_latency_s,
                                         .bytes_per_s = known ? in : 1,
                                         .ports = 1,
                                         .oversubscription = 1};
    out->levels[1] = (struct knee_level){.name = "network",
                                         .latency_s = hw->latency_s,
                                         .bytes_per_s = rate,
                                         .ports = node,
                                         .oversubscription = 1};
}

/* Where a number says something else than the cluster, the number holds. */
void knee_hardware_cluster(const struct knee_hardware *hw, struct knee_cluster *out)
{
    if (!knee_hardware_has_cluster(hw)) {
        textbook(hw, out);
        return;
    }
    struct knee_cluster c = hw->cluster;
    struct knee_level *in = &c.levels[0], *net = &c.levels[1];
    struct numbers n = numbers_of(&c);
    if (hw->gpus_per_node != n.gpus_per_node) {
        net->ports *= hw->gpus_per_node / n.gpus_per_node; /* a GPU keeps its share */
        in->count = hw->gpus_per_node;
    }
    if (hw->node_bandwidth_bytes_per_s != n.node_bytes_per_s)
        in->bytes_per_s = hw->node_bandwidth_bytes_per_s / in->ports;
    if (hw->node_latency_s != n.node_latency_s)
        in->latency_s = hw->node_latency_s;
    struct knee_level *far = c.level_count > 1 ? net : in;
    if (hw->bandwidth_bytes_per_s != n.bytes_per_s)
        far->bytes_per_s *= hw->bandwidth_bytes_per_s / n.bytes_per_s;
    if (hw->latency_s != n.latency_s)
        far->latency_s = hw->latency_s;
    if (hw->bandwidth_bytes_per_s != n.bytes_per_s || hw->latency_s != n.latency_s)
        c.fitted = NULL; /* the curves are of another network */
    *out = c;
}

/* SPDX-License-Identifier: MIT */
/*
 * Two nodes against one. The step within a node is what the GPUs compute; over two nodes every GPU
 * computes as much, so that what the step got longer is what the network cost. The bytes over each
 * node's link follow from the parameters and the way they are sharded (a ring crosses the link
 * once, whatever the node holds): (K - 1) / K of
 *
 *   all-reduce of the gradients      2 x bytes of a gradient     (DDP, ZeRO-1, ZeRO-2)
 *   gather, gather, reduce-scatter   3 x bytes of a parameter    (ZeRO-3, FSDP)
 *
 * What it has: these bytes in the added time. What 90 % efficiency needs: the same bytes in the
 * tenth that is allowed, where nothing hides; where all of it hides, in the time it can hide behind
 * too: the backward pass (two thirds of the compute) for gradients, all of it for ZeRO-3.
 */
#include "base/format.h"
#include "knee_scale.h"

#include <math.h>

#define TARGET   0.9
#define BACKWARD (2.0 / 3)
#define GIGABIT  1.25e8 /* bytes/s */
#define NOTHING                                                                                    \
    (0.3 * GIGABIT) /* slower than any network: the bytes are not what takes the time              \
                     */

static const struct {
    const char *name;
    double gbps;
} networks[] = {{"1 GbE", 1},       {"10 GbE", 10},    {"25 GbE", 25},    {"40 GbE", 40},
                {"100 Gb/s", 100},  {"200 Gb/s", 200}, {"400 Gb/s", 400}, {"800 Gb/s", 800},
                {"1.6 Tb/s", 1600}, {"3.2 Tb/s", 3200}};

double knee_network_rate(size_t row, const char **name)
{
    if (row >= sizeof networks / sizeof *networks)
        return 0;
    *name = networks[row].name;
    return networks[row].gbps * GIGABIT;
}

const char *knee_network_cause_name(enum knee_network_cause cause)
{
    static const char *const names[] = {"unknown", "fine", "network", "not the network"};
    return cause <= KNEE_NETWORK_NOT_IT ? names[cause] : "?";
}

static double first(double a, double b)
{
    return isnan(a) ? b : a;
}

/* The largest count within a node, and the smallest over several. */
static bool pick(const struct knee_scale_row *rows, size_t count, double per_node,
                 const struct knee_scale_row **one, const struct knee_scale_row **two)
{
    *one = *two = NULL;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].workers <= per_node)
            *one = &rows[i];
        else if (!*two)
            *two = &rows[i];
    }
    return *one && *two;
}

static double params_of(const struct knee_scale_row *row)
{
    return row->log ? row->log->params : NAN;
}

/* As many bytes a step as the sharding moves; NaN: the parameters are not known. */
static void set_bytes(const struct knee_scale_row *one, const struct knee_scale_row *two,
                      const struct knee_network_facts *facts, struct knee_scale_network *n)
{
    const struct knee_plan *plan = two->log ? &two->log->plan : NULL;
    n->shard = facts->shard >= 0 ? facts->shard : plan ? plan->shard : -1;
    bool gathers = n->shard == KNEE_ZERO3;
    n->params = first(facts->params, first(params_of(two), params_of(one)));
    double each = first(facts->gradient_bytes, gathers ? 2 : 4);
    double rounds = gathers ? 3 * first(facts->accumulate, 1) : 2;
    n->bytes = rounds * each * n->params * (n->two_workers - 1) / n->two_workers;
}

static void judge(struct knee_scale_network *n)
{
    double allowed = n->ideal_s / TARGET;
    double behind = n->shard == KNEE_ZERO3 ? n->ideal_s : BACKWARD * n->ideal_s;
    n->have = n->bytes / n->added_s;
    n->need_exposed = n->bytes / (allowed - n->ideal_s);
    n->need_hidden = n->bytes / (allowed - n->ideal_s + behind);
    n->cause = n->efficiency >= TARGET ? KNEE_NETWORK_FINE
               : isnan(n->bytes)       ? KNEE_NETWORK_UNKNOWN
               : n->have < NOTHING     ? KNEE_NETWORK_NOT_IT
                                       : KNEE_NETWORK_SLOW;
    if (isnan(n->bytes) && n->cause == KNEE_NETWORK_UNKNOWN)
        knee_format(n->missing, sizeof n->missing, "the parameters: --params 1.5B");
}

void knee_scale_network(const struct knee_scale_row *rows, size_t count,
                        const struct knee_network_facts *facts, struct knee_scale_network *out)
{
    const struct knee_scale_row *one, *two;
    struct knee_scale_network n = {.shard = -1};
    double per_node = facts->gpus_per_node;
    *out = n;
    if (!(per_node >= 1) || !pick(rows, count, per_node, &one, &two))
        return;
    n.asked = true;
    n.one_workers = one->workers;
    n.two_workers = two->workers;
    n.nodes = ceil(two->workers / per_node);
    n.one_s = one->step_s;
    n.two_s = two->step_s;
    /* the same work for each GPU, unless both batches are known */
    double work = two->batch / two->workers / (one->batch / one->workers);
    n.ideal_s = one->step_s * (work > 0 ? work : 1);
    n.added_s = two->step_s - n.ideal_s;
    n.efficiency = n.ideal_s / two->step_s;
    set_bytes(one, two, facts, &n);
    judge(&n);
    *out = n;
}

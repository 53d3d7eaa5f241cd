/* SPDX-License-Identifier: MIT */
/* What the collectives of a trace should take on a cluster, and which of them is far from it. */
#include "base/format.h"
#include "base/text.h"
#include "judge/judge.h"

#include <math.h>
#include <string.h>

/* Ranks of a group are taken to fill nodes: a trace does not say where they are. */
static double expected_s(const struct knee_collective_account *c,
                         const struct knee_cluster *cluster)
{
    struct knee_placement placement = {c->group_size, NAN, 1, 1};
    struct knee_layout layout;
    struct knee_err err;
    bool priced = c->op >= KNEE_OP_ALL_REDUCE && c->group_size > 1 && c->bytes > 0;
    if (!priced || knee_layout_init(cluster, &placement, &layout, &err))
        return NAN;
    return knee_expected_time_s(cluster, &layout, c->op, (double)c->bytes);
}

void knee_expect_collectives(struct knee_account *account, const struct knee_cluster *cluster)
{
    for (size_t i = 0; i < account->collective_count; i++)
        account->collectives[i].expected_s = expected_s(&account->collectives[i], cluster);
    knee_format(account->machine, sizeof account->machine, "%.60s",
                cluster->name[0] ? cluster->name : cluster->gpu);
}

void knee_expect_rollcall(struct knee_roll_answer *answer, const struct knee_cluster *cluster)
{
    struct knee_account account = {.collectives = answer->collectives,
                                   .collective_count = answer->collective_count};
    knee_expect_collectives(&account, cluster);
    knee_format(answer->machine, sizeof answer->machine, "%s", account.machine);
    double most = 0;
    for (size_t i = 0; i < answer->collective_count; i++) {
        const struct knee_collective_account *c = &answer->collectives[i];
        double lost = (c->transfer_s - c->expected_s) * (double)c->matched;
        if (c->transfer_s >= KNEE_FAR_SLOWER * c->expected_s && lost > most) {
            most = lost;
            answer->slow_wire = i;
        }
    }
}

/* Between nodes nothing is known of the network: only what fits into a node is compared. */
void knee_expect_of_gpus(struct knee_account *account)
{
    struct knee_cluster cluster;
    const char *gpu = account->ranks[0].trace->gpu_name;
    bool hosts = strcmp(account->ranks[0].trace->format, "cpu") == 0;
    if (!*gpu || hosts || !knee_cluster_recognise(gpu, &cluster))
        return;
    for (size_t i = 0; i < account->collective_count; i++) {
        struct knee_collective_account *c = &account->collectives[i];
        c->expected_s = c->group_size <= cluster.levels[0].count ? expected_s(c, &cluster) : NAN;
    }
    knee_format(account->machine, sizeof account->machine, "a node of %.40s", cluster.gpu);
    account->machine_assumed = true;
}

/* Its time on the wire. If waiting and transfer cannot be separated, the shortest time that the
 * recording shows for a message of this size. */
static double wire_s(const struct knee_wire *wire, const struct knee_collective_account *c)
{
    return c->matched ? c->transfer_s : knee_wire_bound_s(wire, c);
}

/* No link is so slow that some collectives of the same job are quick on it. */
#define SLOW_FOR_QUICK 10e9

bool knee_find_slow_wire(const struct knee_account *account, struct knee_diagnosis *d)
{
    struct knee_wire wire;
    if (!knee_wire_init(&wire, account))
        return false;
    double most = 0, all = 0, calls_per_step = d->steps * (double)account->rank_count;
    double exposed = d->step.label_s[KNEE_TRANSFER] - d->lone.least_s; /* waiting stays */
    bool quick = account->rank_count == 1 && knee_has_quick_calls(account);
    d->slow_wire = SIZE_MAX;
    for (size_t i = 0; i < account->collective_count; i++) {
        const struct knee_collective_account *c = &account->collectives[i];
        double time = wire_s(&wire, c);
        double lost = (time - c->expected_s) * (double)c->calls / calls_per_step;
        double rate = knee_op_bus_factor(c->op, c->group_size) * (double)c->bytes / time;
        bool waits = account->rank_count == 1 && c->op == KNEE_OP_SEND_RECV; /* for its peer */
        if (!(time >= KNEE_FAR_SLOWER * c->expected_s) || waits)
            continue;
        if (quick && rate < SLOW_FOR_QUICK) {
            if (lost > most && lost >= KNEE_NO_BOTTLENECK * d->step.wall_s)
                d->gaps |= KNEE_GAP_QUICK_WIRE;
            continue;
        }
        all += lost;
        if (!(lost > most) || lost < KNEE_NO_BOTTLENECK * d->step.wall_s)
            continue;
        most = lost;
        d->slow_wire = i;
        d->wire_slowdown = time / c->expected_s;
        d->wire_bytes_per_s = rate;
    }
    d->wired_step_s = d->slow_wire == SIZE_MAX ? NAN : d->step.wall_s - fmin(all, exposed);
    knee_resize(account->alloc, wire.kinds, 0);
    return true;
}

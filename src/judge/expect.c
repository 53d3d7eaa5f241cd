/* SPDX-License-Identifier: MIT */
/* What the collectives of a trace should take on a cluster. */
#include "knee_judge.h"

#include <math.h>

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
}

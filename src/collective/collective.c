/* SPDX-License-Identifier: MIT */
#include "collective/collective.h"

#include <math.h>

/* Those with a closed form for knee predict come first. */
static const struct knee_algorithm *const algorithms[] = {
    &knee_ring,
    &knee_tree,
    &knee_recursive_doubling,
    &knee_halving_doubling,
    &knee_hierarchical,
    &knee_sparse_gather,
    &knee_binary_tree,
    &knee_nvls,
    &knee_nvls_tree,
    &knee_collnet,
    &knee_bruck,
    &knee_pat,
    &knee_pairwise,
    &knee_direct,
    &knee_binomial_tree,
    &knee_send_recv,
};
#define ALGORITHMS (sizeof algorithms / sizeof *algorithms)

static size_t algorithm_count(void)
{
    size_t count = 0;
    while (count < ALGORITHMS && algorithms[count]->all_reduces)
        count++;
    return count;
}

static const char *algorithm_name(size_t row)
{
    return row < algorithm_count() ? algorithms[row]->name : NULL;
}

const struct knee_choices knee_algorithm_names = {"all-reduce algorithm", algorithm_count,
                                                  algorithm_name};

const struct knee_algorithm *knee_algorithm_at(size_t row)
{
    return row < algorithm_count() ? algorithms[row] : NULL;
}

int knee_algorithm_row(const struct knee_algorithm *algorithm)
{
    int row = 0;
    while (algorithms[row] != algorithm)
        row++;
    return row;
}

const struct knee_algorithm *knee_scheme_at(size_t row)
{
    for (size_t i = 0; i < ALGORITHMS; i++)
        if (!algorithms[i]->gathers && row-- == 0)
            return algorithms[i];
    return NULL;
}

bool knee_scheme_runs(const struct knee_cluster *cluster, const struct knee_algorithm *algorithm)
{
    switch (algorithm->needs) {
    case KNEE_NEEDS_NOTHING: return true;
    case KNEE_NEEDS_NVLS: return cluster->nvls_share > 0;
    case KNEE_NEEDS_SHARP: return cluster->sharp;
    }
    return false;
}

bool knee_scheme_used(const struct knee_cluster *cluster, const struct knee_algorithm *algorithm)
{
    return (cluster->plain || algorithm->nccl) && knee_scheme_runs(cluster, algorithm);
}

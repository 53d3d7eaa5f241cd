/* SPDX-License-Identifier: MIT */
/* Changes of FSDP: parameters kept after the forward pass, gathered further ahead. */
#include "replay/changes.h"

/* What gathers parameters again for the backward pass goes: copy, all-gather, copy-out. */
bool knee_apply_keep_params(struct knee_change_run *run)
{
    size_t gathers = 0;
    if (!run->g->fsdp)
        return knee_refuse(run, "no FSDP annotations in this recording");
    for (size_t i = 0; i < run->g->count; i++) {
        const struct knee_node *n = &run->g->nodes[i];
        if (!n->backward || (n->shard != KNEE_SHARD_GATHER && n->shard != KNEE_SHARD_COPY_OUT))
            continue;
        knee_graph_edit(run->g, i)->gone = true;
        gathers += n->kind == KNEE_NODE_COMM;
    }
    return gathers || knee_refuse(run, "parameters are not gathered again for the backward pass");
}

/* A gather waits for a copy-out to have left the buffer: with more buffers for an earlier one. */
bool knee_apply_prefetch(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    size_t gates = 0;
    if (!g->fsdp)
        return knee_refuse(run, "no FSDP annotations in this recording");
    for (size_t i = 0; i < g->edge_count; i++) {
        struct knee_graph_edge *edge = &g->edges[i];
        if (g->nodes[edge->from].shard != KNEE_SHARD_COPY_OUT ||
            g->nodes[edge->to].shard != KNEE_SHARD_GATHER)
            continue;
        int32_t back = (int32_t)run->ask->prefetch - 1, from = edge->from;
        for (; back > 0 && from > g->ranks[g->nodes[from].rank].first; from--)
            back -= g->nodes[from - 1].shard == KNEE_SHARD_COPY_OUT &&
                    g->nodes[from].shard != KNEE_SHARD_COPY_OUT;
        edge->from = from;
        g->reordered = true;
        gates++;
    }
    return gates || knee_refuse(run, "no gather is seen to wait for its buffer");
}

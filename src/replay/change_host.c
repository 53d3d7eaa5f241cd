/* SPDX-License-Identifier: MIT */
/* Changes of what the host does: loading, handing over, copying. */
#include "base/text.h"
#include "replay/changes.h"
#include "timeline/kinds.h"

#include <math.h>
#include <string.h>

enum {
    NEXT_NS = 100000, /* taking a batch that is there */
    GAP_NS = 1000     /* between two kernels of a CUDA graph */
};

bool knee_scale_loads(struct knee_graph *g, size_t rank, double factor, int64_t least_ns)
{
    const struct knee_rank_account *account = &g->account->ranks[rank];
    size_t count = account->trace->load_count;
    int64_t clock = knee_common_time(account, 0) - g->origin_ns;
    struct knee_host_pause *pauses = knee_resize(g->alloc, NULL, (count + 1) * sizeof *pauses);
    g->failed = g->failed || !pauses;
    for (size_t i = 0; pauses && i < count; i++) {
        const struct knee_mark *load = &account->trace->loads[i];
        int64_t took = load->end_ns - load->start_ns, then = (int64_t)(factor * (double)took);
        then = then > least_ns ? then : took < least_ns ? took : least_ns;
        pauses[i] = (struct knee_host_pause){load->end_ns + clock, took - then};
    }
    if (pauses) {
        knee_host_earlier(g, (int32_t)rank, pauses, count);
        knee_resize(g->alloc, pauses, 0);
    }
    return !g->failed;
}

/* Loads go on beside the step; it cannot be shorter than they are. */
bool knee_apply_loader_ahead(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    double longest_s = 0;
    bool any = false;
    for (size_t r = 0; r < g->rank_count; r++) {
        const struct knee_rank_account *rank = &g->account->ranks[r];
        int64_t all_ns = 0;
        for (size_t i = 0; i < rank->trace->load_count; i++)
            all_ns += rank->trace->loads[i].end_ns - rank->trace->loads[i].start_ns;
        if (!knee_scale_loads(g, r, 0, NEXT_NS))
            return false;
        any = any || rank->trace->load_count > 0;
        longest_s = fmax(longest_s, 1e-9 * (double)all_ns / g->ranks[r].steps);
    }
    if (!any)
        return knee_refuse(run, "no waiting for a DataLoader is recorded");
    run->floor_s = fmax(run->floor_s, longest_s);
    return true;
}

/* All that is handed over after a wait of the host is handed over at its first call. */
bool knee_apply_no_host_gaps(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    int64_t *first = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *first);
    g->failed = g->failed || !first;
    if (!first)
        return false;
    for (size_t i = 0; i < g->count; i++)
        first[i] = INT64_MAX;
    for (size_t i = 0; i < g->count; i++) {
        const struct knee_node *n = &g->nodes[i];
        if (n->kind != KNEE_NODE_HOST && n->host != KNEE_NO_NODE && n->call_ns != n->start_ns &&
            n->host_lag_ns < first[n->host])
            first[n->host] = n->host_lag_ns;
    }
    for (size_t i = 0; i < g->count; i++) {
        struct knee_node *n = &g->nodes[i];
        if (n->host == KNEE_NO_NODE || first[n->host] == INT64_MAX)
            continue;
        n->host_lag_ns = n->host_lag_ns < first[n->host] ? n->host_lag_ns : first[n->host];
        if (n->kind == KNEE_NODE_COMPUTE && n->delay_ns > GAP_NS)
            n->delay_ns = GAP_NS;
    }
    knee_resize(g->alloc, first, 0);
    return true;
}

/* From pinned memory a copy goes at the link's rate, 3 to 8 times that of a pageable one, and the
 * host does not wait for it. */
bool knee_apply_pinned(struct knee_change_run *run)
{
    static const double faster[] = {8, 5, 3};
    struct knee_graph *g = run->g;
    size_t found = 0;
    for (size_t i = 0; i < g->count; i++) {
        struct knee_node *n = &g->nodes[i];
        const struct knee_rank_account *rank = &g->account->ranks[n->rank];
        const char *name = n->span ? rank->trace->names[rank->source->spans[n->span - 1].name] : "";
        if (n->kind != KNEE_NODE_COPY || !knee_has_word(name, "pageable"))
            continue;
        n->work_ns /= faster[run->lean + 1];
        found++;
    }
    for (size_t i = 0; i < g->edge_count; i++) {
        const struct knee_node *from = &g->nodes[g->edges[i].from];
        if (g->nodes[g->edges[i].to].kind == KNEE_NODE_HOST && from->phase == KNEE_WORK_INPUT &&
            from->call_ns == g->nodes[g->edges[i].to].call_ns)
            g->edges[i].lag_ns = KNEE_EDGE_CUT;
    }
    return found || knee_refuse(run, "no copy from pageable memory is recorded");
}

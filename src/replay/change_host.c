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

/* The host node that was last when `ns` came, and which the calls after it hang on. */
static int32_t host_at(const struct knee_graph *g, int32_t rank, int64_t ns)
{
    int32_t found = g->ranks[rank].root;
    for (int32_t i = g->ranks[rank].first; i < g->ranks[rank].first + g->ranks[rank].count; i++)
        if (g->nodes[i].kind == KNEE_NODE_HOST && i != g->ranks[rank].root &&
            g->nodes[i].end_ns <= ns &&
            (found == g->ranks[rank].root || g->nodes[i].end_ns > g->nodes[found].end_ns))
            found = i;
    return found;
}

void knee_host_shift(struct knee_graph *g, int32_t rank, int64_t at_ns, int64_t by_ns)
{
    knee_host_earlier(g, rank, host_at(g, rank, at_ns), at_ns, by_ns);
}

/* Loads go on beside the step; it cannot be shorter than they are. */
bool knee_apply_loader_ahead(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    double longest_s = 0;
    bool any = false;
    for (size_t r = 0; r < g->rank_count; r++) {
        const struct knee_rank_account *rank = &g->account->ranks[r];
        int64_t clock = knee_common_time(rank, 0) - g->origin_ns, all_ns = 0;
        for (size_t i = 0; i < rank->trace->load_count; i++) {
            const struct knee_mark *load = &rank->trace->loads[i];
            int64_t took = load->end_ns - load->start_ns, saved = took - NEXT_NS;
            all_ns += took;
            if (saved > 0)
                knee_host_shift(g, (int32_t)r, load->end_ns + clock, saved);
            any = true;
        }
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

/* SPDX-License-Identifier: MIT */
/* Changes of what the host does: loading, handing over, copying. */
#include "base/text.h"
#include "replay/changes.h"
#include "timeline/kinds.h"

#include <math.h>
#include <string.h>

enum {
    NEXT_NS = 100000, /* taking a batch that is there */
    GAP_NS = 500 /* between two kernels of a CUDA graph: 450 ns on an H200 (h200/first/hb_graph) */
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
        /* what was loaded before the GPU had work is not part of the recording */
        int64_t from = load->start_ns > account->from_ns ? load->start_ns : account->from_ns;
        int64_t took = load->end_ns > from ? load->end_ns - from : 0;
        int64_t then = (int64_t)(factor * (double)took);
        then = then > least_ns ? then : took < least_ns ? took : least_ns;
        pauses[i] = (struct knee_host_pause){load->end_ns + clock, took - then};
    }
    if (pauses) {
        knee_host_earlier(g, (int32_t)rank, pauses, count);
        knee_resize(g->alloc, pauses, 0);
    }
    return !g->failed;
}

/* What a rank's own process loaded while its recording ran. What worker processes loaded was
 * loaded during the step already: more of them can take all of it away. */
static int64_t loaded_ns(const struct knee_rank_account *rank)
{
    int64_t sum = 0;
    for (size_t i = 0; i < rank->trace->load_count; i++) {
        const struct knee_mark *load = &rank->trace->loads[i];
        int64_t from = load->start_ns > rank->from_ns ? load->start_ns : rank->from_ns;
        int64_t to = load->end_ns < rank->to_ns ? load->end_ns : rank->to_ns;
        sum += to > from && load->number == 0 ? to - from : 0;
    }
    return sum;
}

/* Loading continues during the step, which cannot be shorter than what each of the processes that
 * load has to do of it. */
bool knee_apply_loader_ahead(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    double longest_s = 0;
    bool any = false;
    for (size_t r = 0; r < g->rank_count; r++) {
        const struct knee_rank_account *rank = &g->account->ranks[r];
        if (!knee_scale_loads(g, r, 0, NEXT_NS))
            return false;
        any = any || rank->trace->load_count > 0;
        longest_s = fmax(longest_s, 1e-9 * (double)loaded_ns(rank) / g->ranks[r].steps);
    }
    if (!any)
        return knee_refuse(run, "no waiting for a DataLoader is recorded");
    run->floor_s = fmax(run->floor_s, longest_s / fmax(1, run->ask->loaders));
    return true;
}

/* What loading takes of a host's time from `from_ns` on, common clock: as long as no load ends,
 * all calls ask for the same. */
struct loading {
    size_t rank;
    int64_t from_ns, since_ns, until_ns; /* known for calls of this time */
    int64_t sum_ns;
};

static int64_t loading_between(const struct knee_graph *g, size_t rank, struct loading *known,
                               int64_t from_ns, int64_t to_ns)
{
    const struct knee_rank_account *account = &g->account->ranks[rank];
    int64_t clock = knee_common_time(account, 0) - g->origin_ns;
    if (rank == known->rank && from_ns == known->from_ns && to_ns >= known->since_ns &&
        to_ns < known->until_ns)
        return known->sum_ns;
    *known = (struct loading){rank, from_ns, INT64_MIN, INT64_MAX, 0};
    for (size_t i = 0; i < account->trace->load_count; i++) {
        const struct knee_mark *load = &account->trace->loads[i];
        int64_t end = load->end_ns + clock;
        if (end > to_ns)
            known->until_ns = end < known->until_ns ? end : known->until_ns;
        else
            known->since_ns = end > known->since_ns ? end : known->since_ns;
        if (load->start_ns + clock >= from_ns && end <= to_ns)
            known->sum_ns += load->end_ns - load->start_ns;
    }
    return known->sum_ns;
}

/* The first work that the host hands over after each of its waits, the start of the recording
 * included; KNEE_NO_NODE: none. */
static int32_t *list_first_work(struct knee_graph *g)
{
    int32_t *first = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *first);
    g->failed = g->failed || !first;
    for (size_t i = 0; first && i < g->count; i++)
        first[i] = KNEE_NO_NODE;
    for (size_t i = 0; first && i < g->count; i++) {
        const struct knee_node *n = &g->nodes[i];
        bool handed_over =
            n->kind != KNEE_NODE_HOST && n->host != KNEE_NO_NODE && n->call_ns != n->start_ns;
        if (handed_over && (first[n->host] == KNEE_NO_NODE ||
                            n->host_lag_ns < g->nodes[first[n->host]].host_lag_ns))
            first[n->host] = (int32_t)i;
    }
    return first;
}

/* The end of the work before each node on its lane, as measured; 0: there is none. */
static int64_t *list_lane_ends(struct knee_graph *g)
{
    size_t lanes = 1;
    for (size_t r = 0; r < g->rank_count; r++)
        lanes += (size_t)g->ranks[r].lanes;
    int64_t *before = knee_resize(g->alloc, NULL, (g->count + lanes) * sizeof *before);
    g->failed = g->failed || !before;
    if (before)
        memset(before, 0, (g->count + lanes) * sizeof *before);
    for (size_t i = 0; before && i < g->count; i++) {
        const struct knee_node *n = &g->nodes[i];
        int64_t *end = &before[g->count + (size_t)(g->ranks[n->rank].first_lane + n->lane)];
        before[i] = *end;
        *end = n->end_ns;
    }
    return before;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Hands a node over earlier. Kernels then follow each other as the nodes of a CUDA graph do: where
 * it was the host that they waited for, a gap of the graph takes the place of that wait. */
static void hand_over_at(struct knee_graph *g, size_t row, int64_t lag_ns, int64_t lane_end_ns)
{
    struct knee_node *n = knee_graph_edit(g, row);
    int64_t earlier = n->host_lag_ns > lag_ns ? n->host_lag_ns - lag_ns : 0;
    int64_t gap = n->start_ns > lane_end_ns ? n->start_ns - lane_end_ns : 0;
    bool by_host = g->nodes[n->host].end_ns + n->host_lag_ns + n->delay_ns >= n->start_ns;
    n->host_lag_ns -= earlier;
    if ((n->kind != KNEE_NODE_COMPUTE && n->kind != KNEE_NODE_COPY) || n->meet)
        return;
    n->delay_ns =
        by_host ? least(least(gap, GAP_NS), n->delay_ns + earlier) : least(n->delay_ns, GAP_NS);
}

/* All that is handed over after a wait of the host is handed over at its first call; only loading
 * batches still takes the host's time. */
bool knee_apply_no_host_gaps(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    int32_t *first = list_first_work(g);
    int64_t *lane_ends = list_lane_ends(g);
    bool good = first && lane_ends;
    struct loading known = {.rank = SIZE_MAX};
    for (size_t i = 0; good && i < g->count; i++) {
        const struct knee_node *n = &g->nodes[i];
        int32_t row = n->host == KNEE_NO_NODE ? KNEE_NO_NODE : first[n->host];
        if (row == KNEE_NO_NODE)
            continue;
        int64_t loading =
            loading_between(g, (size_t)n->rank, &known, g->nodes[row].call_ns, n->call_ns);
        hand_over_at(g, i, g->nodes[row].host_lag_ns + loading, lane_ends[i]);
    }
    knee_resize(g->alloc, first, 0);
    knee_resize(g->alloc, lane_ends, 0);
    return good;
}

/* From pinned memory a copy goes at the link's rate. Where the recording does not say how much is
 * copied, or the link is not known: 3 to 8 times that of a pageable one. */
static double pinned_ns(const struct knee_change_run *run, const struct knee_node *n)
{
    static const double reached[] = {1.05, 1, 0.7}, faster[] = {8, 5, 3};
    if (n->bytes > 0 && run->host_bytes_per_s > 0)
        return fmin(n->work_ns,
                    1e9 * (double)n->bytes / (run->host_bytes_per_s * reached[run->lean + 1]));
    return n->work_ns / faster[run->lean + 1];
}

/* Copies at the link's rate, and the host does not wait for them. */
bool knee_apply_pinned(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    size_t found = 0;
    for (size_t i = 0; i < g->count; i++) {
        const struct knee_node *n = &g->nodes[i];
        if (n->kind != KNEE_NODE_COPY)
            continue;
        const struct knee_rank_account *rank = &g->account->ranks[n->rank];
        const char *name = n->span ? rank->trace->names[rank->source->spans[n->span - 1].name] : "";
        if (!knee_has_word(name, "pageable"))
            continue;
        knee_graph_edit(g, i)->work_ns = pinned_ns(run, n);
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

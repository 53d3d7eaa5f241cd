/* SPDX-License-Identifier: MIT */
/* Changes of what is computed: kernels by name, the batch, how often gradients are exchanged. */
#include "base/number.h"
#include "base/text.h"
#include "replay/changes.h"
#include "timeline/kinds.h"

#include <math.h>
#include <string.h>

enum { SHORTEST_NS = 2000 }; /* of a kernel: does not shrink or grow with the batch */

static const char *name_of(const struct knee_graph *g, const struct knee_node *n)
{
    const struct knee_rank_account *rank = &g->account->ranks[n->rank];
    return n->span ? rank->trace->names[rank->source->spans[n->span - 1].name] : "";
}

/* PATTERN=F; the last = parts them. */
bool knee_apply_scale(struct knee_change_run *run)
{
    const char *text = run->ask->scale, *equals = strrchr(text, '=');
    char pattern[128];
    double factor;
    size_t found = 0, length = equals ? (size_t)(equals - text) : 0;
    struct knee_err err;
    if (!equals || length == 0 || length >= sizeof pattern ||
        knee_number_parse(equals + 1, KNEE_UNIT_FACTOR, "--scale", &factor, &err) || factor < 0)
        return knee_misspelt(run, "'%.60s' is not PATTERN=F, such as gemm=0.5", text);
    memcpy(pattern, text, length);
    pattern[length] = '\0';
    for (size_t i = 0; i < run->g->count; i++) {
        const struct knee_node *n = &run->g->nodes[i];
        if (n->kind == KNEE_NODE_HOST || !knee_has_word(name_of(run->g, n), pattern))
            continue;
        found++;
        if (!n->meet)
            knee_graph_edit(run->g, i)->work_ns *= factor;
        else if (run->g->meets[n->meet - 1].first == (int32_t)i)
            knee_set_pure(run->g, n->meet, factor * run->g->meets[n->meet - 1].pure_ns);
    }
    return found || knee_refuse(run, "no kernel has '%.60s' in its name", pattern);
}

/* ---- The batch ---- */

/* Kernels of forward and backward do F times the work; what prepares, exchanges and applies
 * gradients does not. A batch need not cost in proportion: small ones leave the GPU idle. */
bool knee_apply_batch(struct knee_change_run *run)
{
    double factor = run->ask->batch;
    static const double bends[] = {-0.04, 0, 0.02};
    double bent = factor * pow(factor, (factor > 1 ? 1 : -1) * bends[run->lean + 1]);
    for (size_t i = 0; i < run->g->count; i++) {
        const struct knee_node *n = &run->g->nodes[i];
        bool passes = n->phase == KNEE_WORK_FORWARD || n->phase == KNEE_WORK_BACKWARD ||
                      n->phase == KNEE_WORK_INPUT;
        if (n->kind == KNEE_NODE_HOST || n->meet || n->kind == KNEE_NODE_COMM || !passes)
            continue;
        double still = fmin(n->work_ns, SHORTEST_NS);
        knee_graph_edit(run->g, i)->work_ns = still + bent * (n->work_ns - still);
    }
    for (size_t m = 0; m < run->g->meet_count; m++) /* activations grow with the batch */
        if (!run->g->meets[m].gradients && run->g->meets[m].bytes > 0)
            knee_resize_meet(run, (uint32_t)m + 1, factor * (double)run->g->meets[m].bytes);
    for (size_t r = 0; r < run->g->rank_count; r++) /* and loading takes as much longer */
        if (!knee_scale_loads(run->g, r, factor, 0))
            return false;
    run->work *= factor;
    return true;
}

/* ---- Steps without exchange ---- */

/* Does a step without gradient exchange avoid this collective? FSDP still gathers its parameters,
 * but reduces no gradients (set_requires_gradient_sync(False)). */
static bool is_exchange(const struct knee_graph *g, const struct knee_node *n)
{
    if (g->fsdp)
        return n->shard == KNEE_SHARD_REDUCE;
    return (n->meet && g->meets[n->meet - 1].gradients) ||
           (n->kind != KNEE_NODE_HOST && n->phase == KNEE_WORK_EXCHANGE);
}

static bool is_left_out(const struct knee_graph *g, const struct knee_node *n, bool optimizer)
{
    return is_exchange(g, n) ||
           (!optimizer && n->kind != KNEE_NODE_HOST && n->phase == KNEE_WORK_OPTIMIZER);
}

/* A step in which no gradients are exchanged; without `optimizer` nothing is applied either, and
 * the host does not wait at its end. The graph is changed for it and set back. */
static bool quiet_step(struct knee_change_run *run, bool optimizer, struct knee_step *out)
{
    struct knee_graph *g = run->g;
    size_t edited = g->edited_count, count = 0;
    double step_s = 0;
    int64_t *lags = knee_resize(g->alloc, NULL, (g->edge_count + 1) * sizeof *lags);
    int32_t *left_out = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *left_out);
    bool good = lags && left_out;
    for (size_t i = 0; good && i < g->count; i++)
        if (!g->nodes[i].gone && is_left_out(g, &g->nodes[i], optimizer)) {
            knee_graph_edit(g, i)->gone = true;
            left_out[count++] = (int32_t)i;
        }
    for (size_t i = 0; good && i < g->edge_count; i++) {
        lags[i] = g->edges[i].lag_ns;
        if (!optimizer && g->nodes[g->edges[i].to].kind == KNEE_NODE_HOST && lags[i] >= 0)
            g->edges[i].lag_ns = KNEE_EDGE_CUT; /* the host does not wait for the device */
    }
    knee_graph_count_lanes(g);
    bool ran = good && knee_runner_run(run->runner, g, &step_s) == KNEE_OK &&
               knee_runner_label(run->runner, out);
    out->wall_s = step_s;
    for (size_t i = 0; good && i < count; i++)
        g->nodes[left_out[i]].gone = false;
    for (size_t i = 0; good && i < g->edge_count; i++)
        g->edges[i].lag_ns = lags[i];
    for (; g->edited_count > edited; g->edited_count--)
        g->nodes[g->saved[g->edited_count - 1].row].saved = false;
    knee_resize(g->alloc, lags, 0);
    knee_resize(g->alloc, left_out, 0);
    g->failed = g->failed || !ran;
    return ran;
}

static void add_step(struct knee_step *sum, const struct knee_step *step, double times)
{
    sum->wall_s += times * step->wall_s;
    sum->comm_s += times * step->comm_s;
    for (int label = 0; label < KNEE_LABELS; label++)
        sum->label_s[label] += times * step->label_s[label];
}

static bool has_gradients(const struct knee_change_run *run)
{
    for (size_t i = 0; i < run->g->meet_count; i++)
        if (run->g->meets[i].gradients)
            return true;
    return false;
}

bool knee_apply_accumulate(struct knee_change_run *run)
{
    double more = floor(run->ask->accumulate) - 1;
    struct knee_step quiet;
    if (more < 1)
        return true;
    if (!run->g->phased)
        return knee_refuse(run, "the recording does not tell the backward pass apart: record with "
                                "ProfilerActivity.CPU");
    if (!quiet_step(run, false, &quiet))
        return false;
    add_step(&run->extra, &quiet, more);
    run->work *= more + 1;
    return true;
}

bool knee_apply_sync_every(struct knee_change_run *run)
{
    double every = floor(run->ask->sync_every);
    struct knee_step quiet;
    if (every <= 1)
        return true;
    if (!has_gradients(run) || run->g->fsdp)
        return knee_refuse(run, run->g->fsdp ? "with FSDP no rank has all parameters"
                                             : "no exchange of gradients in this recording");
    if (!quiet_step(run, true, &quiet))
        return false;
    run->share = 1 / every;
    add_step(&run->extra, &quiet, 1 - run->share);
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * The table of changes and the keys to ask for them. The order of the table is the order in which
 * changes are applied: first the work of a rank, then its host, then who takes part, then what is
 * exchanged, then what that costs.
 */
#include "replay/changes.h"

#include "base/format.h"
#include "base/keys.h"
#include "base/number.h"
#include "base/order.h"
#include "base/sort.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define NUMBER(name, field, unit, low, high, absent, words)                                        \
    KNEE_NUMBER(struct knee_changes, name, field, unit, low, high, "Changes", absent,              \
                KNEE_OFF_PAGE(words))
#define WORD(key_name, field, absent, words)                                                       \
    KNEE_OPTION(struct knee_changes, key_name, KNEE_KEY_WORD, field, "Changes", absent,            \
                KNEE_OFF_PAGE(words))
#define SWITCH(key_name, field, words)                                                             \
    KNEE_OPTION(struct knee_changes, key_name, KNEE_KEY_SWITCH, field, "Changes", "",              \
                KNEE_OFF_PAGE(words))

static const struct knee_key keys[] = {
    WORD("wire", wire, "as recorded",
         "send gradients as f32, bf16, fp16, fp8, int8, powersgd:R or topk:P"),
    NUMBER("bucket", bucket_bytes, KNEE_UNIT_BYTES, 1, KNEE_HUGE, "as recorded",
           "DDP bucket size, such as 100MB"),
    NUMBER("accumulate", accumulate, KNEE_UNIT_COUNT, 1, 1e6, "1",
           "micro-batches per gradient exchange"),
    NUMBER("batch", batch, KNEE_UNIT_FACTOR, 1e-3, 1e3, "1x",
           "multiply the batch per GPU, such as 2x"),
    SWITCH("even", even, "late ranks arrive with the others"),
    SWITCH("loader-ahead", loader_ahead, "load batches while the GPU computes"),
    SWITCH("no-host-gaps", no_host_gaps, "no launch gaps, as with CUDA graphs"),
    SWITCH("pinned", pinned, "copy batches from pinned memory, asynchronously"),
    SWITCH("overlap", overlap, "send gradients during the backward pass"),
    SWITCH("keep-params", keep_params, "FSDP: keep parameters between forward and backward"),
    NUMBER("prefetch", prefetch, KNEE_UNIT_COUNT, 1, 1000, "as recorded",
           "FSDP: gather parameters this many modules ahead"),
    NUMBER("hsdp", hsdp, KNEE_UNIT_COUNT, 1, 1e6, "as recorded",
           "FSDP: shard over this many ranks and replicate (HSDP); needs --cluster"),
    WORD("network", network, "1x",
         "multiply the network bandwidth, such as 2x; free: no transfer time"),
    WORD("cluster", cluster, "as recorded", "collectives take their expected time on this cluster"),
    WORD("algorithm", algorithm, "the fastest",
         "with --cluster: collective algorithm ('knee list algorithms')"),
    NUMBER("sync-every", sync_every, KNEE_UNIT_COUNT, 1, 1e6, "1",
           "steps per gradient exchange (local SGD)"),
    NUMBER("workers", workers, KNEE_UNIT_COUNT, 1, 1e6, "as recorded",
           "number of data-parallel ranks, with the same batch per rank"),
    SWITCH("strong", strong, "with --gpus: keep the global batch instead"),
    WORD("without", without, "none", "leave out these ranks: 3 or 3,7"),
    WORD("scale", scale, "none", "kernels with PATTERN in their name take F times as long"),
    NUMBER("step-time", step_s, KNEE_UNIT_SECONDS, 1e-9, KNEE_HUGE, "as recorded",
           "measured step time without the profiler, such as 13.5ms"),
};

const struct knee_keys knee_change_keys = KNEE_KEY_TABLE(keys, struct knee_changes);

void knee_changes_init(struct knee_changes *changes)
{
    memset(changes, 0, sizeof *changes);
    knee_keys_clear(&knee_change_keys, changes);
}

/* ---- What is asked for ---- */

#define ASKED_WORD(field)                                                                          \
    static bool asked_##field(const struct knee_changes *ask)                                      \
    {                                                                                              \
        return ask->field != NULL;                                                                 \
    }
#define ASKED_NUMBER(field)                                                                        \
    static bool asked_##field(const struct knee_changes *ask)                                      \
    {                                                                                              \
        return !isnan(ask->field);                                                                 \
    }
#define ASKED_SWITCH(field)                                                                        \
    static bool asked_##field(const struct knee_changes *ask)                                      \
    {                                                                                              \
        return ask->field;                                                                         \
    }
ASKED_WORD(wire)
ASKED_WORD(network)
ASKED_WORD(without)
ASKED_WORD(scale)
ASKED_NUMBER(bucket_bytes)
ASKED_NUMBER(accumulate)
ASKED_NUMBER(batch)
ASKED_NUMBER(prefetch)
ASKED_NUMBER(hsdp)
ASKED_NUMBER(sync_every)
ASKED_NUMBER(workers)
ASKED_SWITCH(even)
ASKED_SWITCH(loader_ahead)
ASKED_SWITCH(no_host_gaps)
ASKED_SWITCH(pinned)
ASKED_SWITCH(overlap)
ASKED_SWITCH(keep_params)

static bool asked_cluster(const struct knee_changes *ask)
{
    return ask->on != NULL || ask->algorithm;
}

const struct knee_change_kind knee_change_kinds[] = {
    {"scale", asked_scale, knee_apply_scale, false, false},
    {"batch", asked_batch, knee_apply_batch, true, true},
    {"loader-ahead", asked_loader_ahead, knee_apply_loader_ahead, false, false},
    {"no-host-gaps", asked_no_host_gaps, knee_apply_no_host_gaps, false, false},
    {"pinned", asked_pinned, knee_apply_pinned, false, true},
    {"without", asked_without, knee_apply_without, true, false},
    {"even", asked_even, knee_apply_even, false, false},
    {"keep-params", asked_keep_params, knee_apply_keep_params, false, false},
    {"prefetch", asked_prefetch, knee_apply_prefetch, false, false},
    {"overlap", asked_overlap, knee_apply_overlap, false, false},
    {"bucket", asked_bucket_bytes, knee_apply_bucket, false, true},
    {"wire", asked_wire, knee_apply_wire, false, true},
    {"cluster", asked_cluster, knee_apply_cluster, false, true},
    {"hsdp", asked_hsdp, knee_apply_hsdp, false, false},
    {"workers", asked_workers, knee_apply_workers, true, true},
    {"network", asked_network, knee_apply_network, false, true},
    {"accumulate", asked_accumulate, knee_apply_accumulate, true, false},
    {"sync-every", asked_sync_every, knee_apply_sync_every, true, false},
};
const size_t knee_change_kind_count = sizeof knee_change_kinds / sizeof *knee_change_kinds;

bool knee_misspelt(struct knee_change_run *run, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    knee_vformat(run->reason, sizeof run->reason, fmt, args);
    va_end(args);
    run->misspelt = true;
    return false;
}

bool knee_refuse(struct knee_change_run *run, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    knee_vformat(run->reason, sizeof run->reason, fmt, args);
    va_end(args);
    return false;
}

/* Two keys of the table are one change. */
static bool belongs(const struct knee_change_kind *kind, const char *key)
{
    return strcmp(kind->key, key) == 0 ||
           (strcmp(kind->key, "cluster") == 0 && strcmp(key, "algorithm") == 0) ||
           (strcmp(kind->key, "workers") == 0 && strcmp(key, "strong") == 0);
}

struct knee_changes knee_change_alone(const struct knee_changes *ask,
                                      const struct knee_change_kind *kind)
{
    struct knee_changes alone = *ask;
    bool priced = strcmp(kind->key, "hsdp") == 0; /* needs the cluster that it is asked with */
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!belongs(kind, keys[i].name) && !(priced && strcmp(keys[i].name, "cluster") == 0))
            knee_keys_unset(&knee_change_keys, &alone, i);
    if (!alone.cluster)
        alone.on = NULL;
    return alone;
}

void knee_change_leave_out(struct knee_changes *ask, const struct knee_change_kind *kind)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (belongs(kind, keys[i].name))
            knee_keys_unset(&knee_change_keys, ask, i);
    if (!ask->cluster)
        ask->on = NULL;
}

static void add_value(const struct knee_key *key, const struct knee_changes *ask, char *out,
                      size_t size)
{
    const void *field = (const char *)ask + key->offset;
    char number[48] = "";
    size_t used = strlen(out);
    if (key->kind == KNEE_KEY_NUMBER && !isnan(*(const double *)field)) {
        double value = *(const double *)field;
        if (key->unit == KNEE_UNIT_BYTES)
            knee_number_human(number, sizeof number, value, key->unit);
        else
            knee_format(number, sizeof number, "%g%s", value,
                        key->unit == KNEE_UNIT_FACTOR ? "x" : "");
        knee_format(out + used, size - used, " %s", number);
    } else if (key->kind == KNEE_KEY_WORD && *(const char *const *)field) {
        knee_format(out + used, size - used, " %.40s", *(const char *const *)field);
    }
}

void knee_change_name(const struct knee_change_kind *kind, const struct knee_changes *ask,
                      char *out, size_t size)
{
    knee_format(out, size, "%s", kind->key);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (belongs(kind, keys[i].name))
            add_value(&keys[i], ask, out, size);
}

/* ---- What several changes do ---- */

void knee_set_pure(struct knee_graph *g, uint32_t row, double pure_ns)
{
    struct knee_graph_meet *meet = &g->meets[row - 1];
    double before = meet->pure_ns;
    for (int32_t i = meet->first; i != KNEE_NO_NODE; i = g->next_member[i]) {
        double early = before - g->nodes[i].work_ns;
        bool fits = early >= 0 && early < pure_ns / 2;
        double share = before > 0 ? g->nodes[i].work_ns / before : 0;
        knee_graph_edit(g, (size_t)i)->work_ns = fits ? pure_ns - early : pure_ns * share;
    }
    meet->pure_ns = pure_ns;
}

bool knee_resize_meet(struct knee_change_run *run, uint32_t row, double bytes)
{
    struct knee_graph_meet *meet = &run->g->meets[row - 1];
    double now = knee_own_price_ns(run->prices, meet, (double)meet->bytes, run->lean);
    now = knee_own_in_turns(run->prices, now);
    double then = knee_own_price_ns(run->prices, meet, bytes, run->lean);
    if (isnan(now) || isnan(then) || !(now > 0))
        return false;
    double pure = meet->pure_ns * (knee_own_in_turns(run->prices, then) / now);
    knee_set_pure(run->g, row, pure);
    meet->bytes = (int64_t)bytes;
    return true;
}

void knee_delay_after(struct knee_graph *g, const int64_t *after_ns)
{
    for (size_t i = 0; i < g->edge_count; i++) {
        uint32_t meet = g->nodes[g->edges[i].from].meet;
        if (meet && g->edges[i].lag_ns != KNEE_EDGE_CUT)
            g->edges[i].lag_ns += after_ns[meet - 1];
    }
}

/* A rank's own nodes stand together, those that changes added come after all ranks'. */
static int32_t *sort_by_call(const struct knee_graph *g, int32_t rank, size_t *count)
{
    const struct knee_graph_rank *own = &g->ranks[rank], *last = &g->ranks[g->rank_count - 1];
    size_t added = (size_t)last->first + (size_t)last->count;
    size_t most = (size_t)own->count + g->count - added + 1;
    struct knee_sort_key *sort = knee_resize(g->alloc, NULL, 2 * most * sizeof *sort);
    int32_t *rows = knee_resize(g->alloc, NULL, most * sizeof *rows);
    *count = 0;
    if (!sort || !rows) {
        knee_resize(g->alloc, sort, 0);
        knee_resize(g->alloc, rows, 0);
        return NULL;
    }
    size_t end = (size_t)own->first + (size_t)own->count;
    for (size_t i = (size_t)own->first; i < g->count; i = i + 1 == end ? added : i + 1)
        if (g->nodes[i].rank == rank)
            sort[(*count)++] = (struct knee_sort_key){knee_sort_signed(g->nodes[i].call_ns), i};
    knee_sort(sort, sort + *count, *count);
    for (size_t i = 0; i < *count; i++)
        rows[i] = (int32_t)sort[i].row;
    knee_resize(g->alloc, sort, 0);
    return rows;
}

/* No change moves a call: unless nodes were added, the order is that of the recording, which is
 * sorted once. */
int32_t *knee_nodes_by_call(const struct knee_graph *g, int32_t rank, size_t *count)
{
    const struct knee_graph *of = g->copy_of ? g->copy_of : g;
    if (!of->by_call || g->count != of->count)
        return sort_by_call(g, rank, count);
    const struct knee_graph_rank *own = &g->ranks[rank];
    int32_t *rows = knee_resize(g->alloc, NULL, ((size_t)own->count + 1) * sizeof *rows);
    *count = (size_t)own->count;
    if (rows)
        memcpy(rows, of->by_call + own->first, *count * sizeof *rows);
    return rows;
}

bool knee_graph_sort_calls(struct knee_graph *g)
{
    int32_t *all = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *all);
    for (size_t r = 0; all && r < g->rank_count; r++) {
        size_t count;
        int32_t *rows = sort_by_call(g, (int32_t)r, &count);
        if (rows)
            memcpy(all + g->ranks[r].first, rows, count * sizeof *rows);
        else
            all = knee_resize(g->alloc, all, 0);
        knee_resize(g->alloc, rows, 0);
    }
    g->by_call = all;
    return all != NULL;
}

/* By how much the pauses up to `ns` are shorter together. Most nodes ask for the place of the one
 * before them. */
static int64_t earlier_by(const struct knee_host_pause *pauses, size_t count, size_t *at,
                          int64_t ns)
{
    if ((*at > 0 && pauses[*at - 1].at_ns > ns) || (*at < count && pauses[*at].at_ns <= ns))
        KNEE_BISECT(*at, count, pauses[*at].at_ns <= ns);
    return *at > 0 ? pauses[*at - 1].by_ns : 0;
}

void knee_host_earlier(struct knee_graph *g, int32_t rank, struct knee_host_pause *pauses,
                       size_t count)
{
    const struct knee_graph_rank *own = &g->ranks[rank], *last = &g->ranks[g->rank_count - 1];
    size_t end = (size_t)own->first + (size_t)own->count,
           added = (size_t)last->first + (size_t)last->count, from = 0, to = 0;
    for (size_t i = 1; i < count; i++)
        pauses[i].by_ns += pauses[i - 1].by_ns;
    for (size_t i = (size_t)own->first; i < g->count; i = i + 1 == end ? added : i + 1) {
        const struct knee_node *n = &g->nodes[i];
        if (n->rank != rank || n->host == KNEE_NO_NODE)
            continue;
        int64_t lag = n->host_lag_ns - earlier_by(pauses, count, &to, n->call_ns);
        if (n->host != own->root)
            lag += earlier_by(pauses, count, &from, g->nodes[n->host].end_ns - 1);
        lag = lag > 0 ? lag : 0;
        if (lag != n->host_lag_ns)
            knee_graph_edit(g, i)->host_lag_ns = lag;
    }
}

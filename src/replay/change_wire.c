/* SPDX-License-Identifier: MIT */
/*
 * Changes of what goes over the wire and what the wire is: formats of gradients, bandwidth, another
 * cluster, more ranks.
 */
#include "base/keys.h"
#include "base/number.h"
#include "base/order.h"
#include "base/text.h"
#include "knee_collective.h"
#include "replay/changes.h"
#include "timeline/kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Formats ---- */

#define KERNEL_NS 5000.0 /* a kernel more, where the host is ahead */

struct format {
    const char *name;
    double bytes;       /* of a number; 0: see parts() */
    double encode;      /* passes over the gradients in memory before, */
    double decode;      /* and after, a read or write of all of them each */
    double kernels;     /* launched for them */
    double collectives; /* for one before */
    bool parameter;     /* name:NUMBER */
    bool sums;          /* NCCL can add it up */
    bool waits;         /* the backward pass waits for it */
};

/* Casting reads one size and writes the other. 8 bits take the largest value first, and a scale
 * travels ahead; they are gathered and added in more bits (all numbers come from all ranks in two
 * halves). PowerSGD (Vogels et al. 2019; torch's hook): gradients plus error, two products, one
 * orthogonalisation, the product back, the new error; P, Q and what is not a matrix travel one
 * after the other; the hook is some 120 calls from Python and waits for the device in each bucket,
 * so that the host's pace counts. Top-k: selecting is a partial
 * sort, values and places travel. */
static const struct format formats[] = {
    {"f32", 4, 0, 0, 0, 1, false, true, false},
    {"fp32", 4, 0, 0, 0, 1, false, true, false},
    {"bf16", 2, 1.5, 1.5, 2, 1, false, true, false},
    {"fp16", 2, 1.5, 1.5, 2, 1, false, true, false},
    {"fp8", 1, 2.25, 1.25, 4, 2, false, false, false},
    {"int8", 1, 2.25, 1.25, 4, 2, false, false, false},
    {"powersgd", 0, 8, 4, 120, 3, true, true, true},
    {"topk", 0, 16, 4, 10, 2, true, false, false},
};

static const struct format *format_of(const char *text, double *parameter)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    struct knee_err err;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strlen(formats[i].name) != length || strncmp(formats[i].name, text, length) != 0)
            continue;
        if (formats[i].parameter != (colon != NULL))
            return NULL;
        if (colon && (knee_number_parse(colon + 1, KNEE_UNIT_FRACTION, "--wire", parameter, &err) ||
                      !(*parameter > 0)))
            return NULL;
        return &formats[i];
    }
    return NULL;
}

/* The bytes that travel for a buffer. */
static double wire_bytes(const struct format *format, double parameter, double elements,
                         int32_t ranks)
{
    if (strcmp(format->name, "powersgd") == 0) /* two thin matrices of a square one */
        return 2 * parameter * sqrt(elements) * 4;
    if (strcmp(format->name, "topk") == 0) /* a value and its place, from every rank */
        return fmin(1, parameter) * elements * 8 * ranks / 2;
    return elements * format->bytes * (format->sums ? 1 : 1 + 1.0 / 128);
}

/* ---- What comes next ---- */

/* Per rank: its work in the order of its calls, and for each place the first after it that is in
 * another lane. */
struct following {
    int32_t *rows, *other;
    size_t count;
};

static bool following_init(struct following *f, const struct knee_graph *g, int32_t rank)
{
    size_t all = 0;
    f->rows = knee_nodes_by_call(g, rank, &all);
    f->other = knee_resize(g->alloc, NULL, (all + 1) * sizeof *f->other);
    f->count = 0;
    if (!f->rows || !f->other)
        return false;
    for (size_t i = 0; i < all; i++) {
        const struct knee_node *n = &g->nodes[f->rows[i]];
        if (n->kind != KNEE_NODE_HOST && n->kind != KNEE_NODE_COMM)
            f->rows[f->count++] = f->rows[i];
    }
    for (size_t i = f->count; i-- > 0;) {
        bool same = i + 1 < f->count && g->nodes[f->rows[i + 1]].lane == g->nodes[f->rows[i]].lane;
        f->other[i] = same ? f->other[i + 1] : (int32_t)i + 1;
    }
    return true;
}

static void followings_release(struct following *all, const struct knee_graph *g)
{
    for (size_t r = 0; all && r < g->rank_count; r++) {
        knee_resize(g->alloc, all[r].rows, 0);
        knee_resize(g->alloc, all[r].other, 0);
    }
    knee_resize(g->alloc, all, 0);
}

/* NULL: no memory. */
static struct following *followings_new(const struct knee_graph *g)
{
    struct following *all = knee_resize(g->alloc, NULL, (g->rank_count + 1) * sizeof *all);
    bool good = all;
    if (all)
        memset(all, 0, (g->rank_count + 1) * sizeof *all);
    for (size_t r = 0; good && r < g->rank_count; r++)
        good = following_init(&all[r], g, (int32_t)r);
    if (good)
        return all;
    followings_release(all, g);
    return NULL;
}

/* The rank's next work in another lane comes after the exchange: nothing hides it. */
static void wait_for_exchange(struct knee_graph *g, const struct following *f, int32_t comm)
{
    const struct knee_node *c = &g->nodes[comm];
    size_t low; /* the first that is called after it */
    KNEE_BISECT(low, f->count, g->nodes[f->rows[low]].call_ns <= c->call_ns);
    if (low < f->count && g->nodes[f->rows[low]].lane == c->lane)
        low = (size_t)f->other[low];
    if (low < f->count)
        knee_graph_add_edge(g, comm, f->rows[low], 0, KNEE_EDGE_RULED);
}

/* ---- The wire ---- */

/* What comes after its members is put down in after_ns[row - 1]. */
static void recode(struct knee_change_run *run, uint32_t row, const struct format *format,
                   double bytes, const struct following *following, int64_t *after_ns)
{
    struct knee_graph *g = run->g;
    struct knee_graph_meet *meet = &g->meets[row - 1];
    double full = (double)meet->bytes, small;
    if (!knee_resize_meet(run, row, bytes))
        knee_set_pure(g, row, meet->pure_ns * bytes / full);
    small = knee_own_price_ns(run->prices, meet, 0, run->lean); /* what the others take at least */
    if (format->collectives > 1 && !isnan(small))
        knee_set_pure(g, row, meet->pure_ns + (format->collectives - 1) * small);
    double pass = 1e9 * full / run->memory_bytes_per_s;
    double call = format->waits ? run->call_ns : KERNEL_NS;
    double launch = format->kernels * call / 2;
    for (int32_t i = meet->first; i != KNEE_NO_NODE; i = g->next_member[i]) {
        if (following)
            wait_for_exchange(g, &following[g->nodes[i].rank], i);
        knee_graph_edit(g, (size_t)i)->delay_ns += (int64_t)(format->encode * pass + launch);
    }
    after_ns[row - 1] = (int64_t)(format->decode * pass + launch);
}

bool knee_apply_wire(struct knee_change_run *run)
{
    double parameter = 0;
    const struct format *format = format_of(run->ask->wire, &parameter);
    size_t found = 0, done = 0;
    if (!format)
        return knee_misspelt(run,
                             "'%.40s': not a wire format; use f32, bf16, fp16, fp8, int8, "
                             "powersgd:R or topk:P",
                             run->ask->wire);
    size_t size = (run->g->meet_count + 1) * sizeof(int64_t);
    int64_t *after_ns = knee_resize(run->g->alloc, NULL, size);
    struct following *following = format->waits ? followings_new(run->g) : NULL;
    if (!after_ns || (format->waits && !following)) {
        run->g->failed = true;
        followings_release(following, run->g);
        knee_resize(run->g->alloc, after_ns, 0);
        return false;
    }
    memset(after_ns, 0, size);
    for (size_t i = 0; i < run->g->meet_count; i++) {
        struct knee_graph_meet *meet = &run->g->meets[i];
        if (!meet->gradients || meet->bytes <= 0)
            continue;
        double element = meet->element_bytes > 0 ? meet->element_bytes : 4;
        double elements = (double)meet->bytes / element;
        double bytes = wire_bytes(format, parameter, elements, meet->group_size);
        found++;
        if (format->bytes == element || (format->parameter && bytes >= (double)meet->bytes))
            continue;
        recode(run, (uint32_t)i + 1, format, bytes, following, after_ns);
        meet->element_bytes = format->bytes > 0 ? (int32_t)format->bytes : meet->element_bytes;
        done++;
    }
    knee_delay_after(run->g, after_ns);
    knee_resize(run->g->alloc, after_ns, 0);
    followings_release(following, run->g);
    if (!found)
        return knee_refuse(run, "no exchange of gradients between all its ranks is recorded");
    return done || knee_refuse(run, "gradients travel as %.40s already", run->ask->wire);
}

/* ---- The network ---- */

bool knee_apply_network(struct knee_change_run *run)
{
    bool free_network = strcmp(run->ask->network, "free") == 0;
    double factor = INFINITY;
    struct knee_err err;
    if (!free_network &&
        (knee_number_parse(run->ask->network, KNEE_UNIT_FACTOR, "--network", &factor, &err) ||
         !(factor > 0)))
        return knee_misspelt(run, "'%.40s': not a factor; use a number above 0 or free",
                             run->ask->network);
    if (!run->g->meet_count)
        return knee_refuse(run, "no communication between all its ranks is recorded");
    for (size_t i = 0; i < run->g->meet_count && factor != 1; i++) {
        const struct knee_graph_meet *meet = &run->g->meets[i];
        double latency = knee_own_latency_ns(run->prices, meet, run->lean);
        latency = isnan(latency) ? 0 : latency;
        double pure = latency + (meet->pure_ns - latency) / factor;
        pure = free_network ? 0 : knee_own_in_turns(run->prices, pure);
        knee_set_pure(run->g, (uint32_t)i + 1, pure);
    }
    return true;
}

/* ---- Another cluster ---- */

static double expected_ns(const struct knee_cluster *cluster, const struct knee_graph_meet *meet,
                          double ranks, double bytes, const struct knee_algorithm *algorithm)
{
    struct knee_group group = {ranks, 1, true};
    if (meet->op == KNEE_OP_UNKNOWN || ranks < 2 || bytes <= 0)
        return NAN;
    return 1e9 * knee_collective_s(cluster, meet->op, group, bytes, algorithm);
}

/* NULL: the algorithm that the library would choose. False: unknown name. */
static bool algorithm_asked(const struct knee_changes *ask, const struct knee_algorithm **out)
{
    *out = NULL;
    if (!ask->algorithm)
        return true;
    for (size_t i = 0; (*out = knee_algorithm_at(i)); i++)
        if (knee_same_name((*out)->name, ask->algorithm))
            return true;
    return false;
}

bool knee_apply_cluster(struct knee_change_run *run)
{
    const struct knee_algorithm *algorithm;
    size_t done = 0;
    if (!run->ask->on)
        return knee_refuse(run,
                           "an algorithm has a price on a cluster only: name one with --cluster");
    if (!algorithm_asked(run->ask, &algorithm))
        return knee_misspelt(run, "'%.40s': unknown algorithm; see knee list algorithms",
                             run->ask->algorithm);
    for (size_t i = 0; i < run->g->meet_count; i++) {
        const struct knee_graph_meet *meet = &run->g->meets[i];
        double ns =
            expected_ns(run->ask->on, meet, meet->group_size, (double)meet->bytes, algorithm);
        if (isnan(ns))
            continue;
        static const double doubt[] = {0.85, 1, 1.25};
        knee_set_pure(run->g, (uint32_t)i + 1, doubt[run->lean + 1] * ns);
        done++;
    }
    return done || knee_refuse(run, "no collective of known size and group is recorded");
}

/* ---- More ranks ---- */

static double ring_share(double ranks)
{
    return ranks > 1 ? (ranks - 1) / ranks : 0;
}

/* E of the largest of k drawn from sorted[count], with replacement. */
static double expected_largest(const double *sorted, size_t count, double k)
{
    double sum = 0, n = (double)count;
    for (size_t i = 0; i < count; i++)
        sum += sorted[i] * (pow((double)(i + 1) / n, k) - pow((double)i / n, k));
    return sum;
}

/* How much later the last of `after` ranks comes than the last of `before`, from how late the
 * recorded ranks came against each other: no law is assumed. */
static double more_lateness_ns(const struct knee_graph *g, double before, double after)
{
    double *late = knee_resize(g->alloc, NULL, (g->count + 1) * sizeof *late);
    size_t count = 0;
    for (size_t m = 0; late && m < g->meet_count; m++) {
        double sum = 0;
        for (int32_t i = g->meets[m].first; i != KNEE_NO_NODE; i = g->next_member[i])
            sum += (double)g->nodes[i].start_ns / g->meets[m].count;
        for (int32_t i = g->meets[m].first; i != KNEE_NO_NODE; i = g->next_member[i])
            late[count++] = (double)g->nodes[i].start_ns - sum;
    }
    if (!late || !count) {
        knee_resize(g->alloc, late, 0);
        return 0;
    }
    qsort(late, count, sizeof *late, knee_ascending);
    double more = expected_largest(late, count, after) - expected_largest(late, count, before);
    knee_resize(g->alloc, late, 0);
    return more;
}

/* The time of a collective on more or fewer ranks. Rings have a hop more for each, and send
 * (K - 1) / K of the data from every rank. Ranks on one GPU share all else too, so that what all
 * send together counts, K - 1 times the data; and from three on, a hop waits for a turn more. */
static double on_ranks(const struct knee_change_run *run, const struct knee_graph_meet *meet,
                       double ranks, double after)
{
    bool shared = run->g->one_gpu;
    double latency = knee_own_latency_ns(run->prices, meet, run->lean), more = 1;
    latency = isnan(latency) ? 0 : latency;
    if (shared)
        more = (after > 2 ? 2 : 1) / (ranks > 2 ? 2.0 : 1.0);
    double share = shared ? (after - 1) / (ranks - 1) : ring_share(after) / ring_share(ranks);
    return latency * more * (after - 1) / (ranks - 1) + (meet->pure_ns - latency) * share;
}

static void scale_compute(struct knee_graph *g, double factor)
{
    for (size_t i = 0; i < g->count; i++) {
        const struct knee_node *n = &g->nodes[i];
        if (n->kind == KNEE_NODE_COMPUTE && !n->meet && n->phase <= KNEE_WORK_BACKWARD)
            knee_graph_edit(g, i)->work_ns *= factor;
    }
}

static int32_t members_present(const struct knee_graph *g, const struct knee_graph_meet *meet)
{
    int32_t count = 0;
    for (int32_t i = meet->first; i != KNEE_NO_NODE; i = g->next_member[i])
        count += !g->nodes[i].gone;
    return count;
}

static int32_t ranks_present(const struct knee_graph *g)
{
    int32_t count = 0;
    for (size_t r = 0; r < g->rank_count; r++)
        count += !g->nodes[g->ranks[r].root].gone;
    return count;
}

/* Rings grow: more hops, a little more to send. Ranks behave as those recorded do. */
bool knee_apply_workers(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    int32_t present = ranks_present(g);
    double ranks = present, after = floor(run->ask->workers);
    size_t done = 0;
    if (g->account->world_size > (int64_t)g->rank_count)
        return knee_refuse(run, "%zu of %lld ranks are recorded", g->rank_count,
                           (long long)g->account->world_size);
    for (size_t i = 0; i < g->meet_count && after != ranks; i++)
        if (members_present(g, &g->meets[i]) != present)
            return knee_refuse(run,
                               "there are groups of ranks: which of them would grow is not known");
    double late = g->one_gpu ? 0 : more_lateness_ns(g, ranks, after);
    for (size_t i = 0; i < g->meet_count; i++, done++) {
        const struct knee_graph_meet *meet = &g->meets[i];
        double pure = on_ranks(run, meet, ranks, after);
        if (run->ask->on &&
            !isnan(expected_ns(run->ask->on, meet, after, (double)meet->bytes, NULL)))
            pure = expected_ns(run->ask->on, meet, after, (double)meet->bytes, NULL);
        if (after != ranks)
            knee_set_pure(g, (uint32_t)i + 1,
                          after > 1 ? fmax(0, knee_own_in_turns(run->prices, pure) + late) : 0);
    }
    if (!done)
        return knee_refuse(run, "no communication between all ranks is recorded");
    double slower = g->one_gpu ? after / ranks : 1; /* one GPU for more of them */
    if (run->ask->strong)
        slower *= ranks / after;
    if (slower != 1)
        scale_compute(g, slower);
    run->work *= run->ask->strong ? 1 : after / ranks;
    return true;
}

bool knee_apply_hsdp(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    double within = floor(run->ask->hsdp), ranks = (double)g->rank_count;
    if (!g->fsdp)
        return knee_refuse(run, "no FSDP annotations in this recording");
    if (!run->ask->on)
        return knee_refuse(run, "one group of ranks shows one kind of link: name a --cluster");
    if (within >= ranks || fmod(ranks, within) != 0)
        return knee_refuse(run, "%g ranks cannot be parted into groups of %g", ranks, within);
    for (size_t i = 0; i < g->meet_count; i++) {
        const struct knee_graph_meet *meet = &g->meets[i];
        if (!meet->gradients)
            continue;
        double ns =
            within > 1 ? expected_ns(run->ask->on, meet, within, (double)meet->bytes, NULL) : 0;
        struct knee_graph_meet across = {.op = KNEE_OP_ALL_REDUCE};
        if (meet->op == KNEE_OP_REDUCE_SCATTER)
            ns += expected_ns(run->ask->on, &across, ranks / within, (double)meet->bytes / within,
                              NULL);
        if (!isnan(ns))
            knee_set_pure(g, (uint32_t)i + 1, ns);
    }
    return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * Late ranks no later than the others, and ranks left out.
 *
 * Ranks of a job run one program. The rank in the middle, by how much it has to do, is the measure:
 * the calls of each rank that has more are laid beside its calls, by name and order. Where the host
 * of the late rank took longer between two calls it takes as long; work that the other does not
 * have goes; and if its kernels are slower throughout, they take the other's time. What one kernel
 * took longer by chance stays: it is as likely on the others. A rank that waits longer for its
 * batches than the rank in the middle waits as long as that one; loading is left out where calls
 * are compared.
 */
#include "base/order.h"
#include "base/text.h"
#include "replay/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    AHEAD = 512,        /* calls that one rank may have more in a row */
    AGREE = 4,          /* calls that must agree where two ranks come together again */
    CHAINS = 1024,      /* of calls whose names may be the same */
    NOTABLE_NS = 500000 /* of the host, between two calls */
};
#define SLOWER 1.05 /* kernels throughout */

/* One call of the host, in order. */
struct call {
    int32_t node;
    int64_t since_ns; /* the call before it, or the end of a wait */
};

struct program {
    struct call *calls;
    uint32_t *names; /* of the calls: apart, for they are searched */
    uint32_t *next;  /* per call: the next one of its chain; `count`: none */
    uint32_t chains[CHAINS];
    size_t count;
    double load_ns; /* what the host and the GPU have to do */
};

/* Names of different traces as numbers; each is looked at once. */
static uint32_t name_hash(const struct knee_graph *g, const struct knee_node *n, uint32_t *known)
{
    const struct knee_rank_account *rank = &g->account->ranks[n->rank];
    uint64_t hash = 1469598103934665603u;
    if (!n->span)
        return 1;
    uint32_t row = rank->source->spans[n->span - 1].name;
    if (known[row])
        return known[row];
    for (const char *p = rank->trace->names[row]; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    return known[row] = (uint32_t)(hash ^ hash >> 32) | 2;
}

/* Loads of a rank that ended by `ns`, from row *at on. */
static int64_t loaded_until(const struct knee_graph *g, int32_t rank, size_t *at, int64_t ns)
{
    const struct knee_rank_account *account = &g->account->ranks[rank];
    const struct knee_trace *trace = account->trace;
    int64_t clock = knee_common_time(account, 0) - g->origin_ns, sum = 0;
    for (; *at < trace->load_count && trace->loads[*at].end_ns + clock <= ns; ++*at)
        sum += trace->loads[*at].end_ns - trace->loads[*at].start_ns;
    return sum;
}

static bool list_program(const struct knee_graph *g, int32_t rank, struct program *out)
{
    size_t loads = 0;
    int32_t *rows = knee_nodes_by_call(g, rank, &out->count);
    out->calls = knee_resize(g->alloc, NULL, (out->count + 1) * sizeof *out->calls);
    out->names = knee_resize(g->alloc, NULL, (out->count + 1) * sizeof *out->names);
    out->next = knee_resize(g->alloc, NULL, (out->count + 1) * sizeof *out->next);
    size_t size = (g->account->ranks[rank].trace->name_count + 1) * sizeof(uint32_t);
    uint32_t *known = knee_resize(g->alloc, NULL, size);
    int64_t since = 0;
    bool good = rows && out->calls && out->names && out->next && known;
    if (known)
        memset(known, 0, size);
    for (size_t i = 0; good && i < out->count; i++) {
        const struct knee_node *n = &g->nodes[rows[i]];
        int64_t wait_end = n->host == KNEE_NO_NODE ? 0 : g->nodes[n->host].end_ns;
        since = wait_end > since ? wait_end : since;
        int64_t loading = loaded_until(g, rank, &loads, n->call_ns), took = n->call_ns - since;
        out->calls[i] = (struct call){rows[i], took > loading ? took - loading : 0};
        out->names[i] = name_hash(g, n, known);
        since = n->call_ns;
        out->load_ns += (double)out->calls[i].since_ns;
        out->load_ns += n->kind == KNEE_NODE_COMPUTE || n->kind == KNEE_NODE_COPY ? n->work_ns : 0;
    }
    knee_resize(g->alloc, rows, 0);
    knee_resize(g->alloc, known, 0);
    return good;
}

/* Chains the calls that may have the same name. */
static void chain_calls(struct program *p)
{
    for (size_t i = 0; i < CHAINS; i++)
        p->chains[i] = (uint32_t)p->count;
    for (size_t i = p->count; i-- > 0;) {
        uint32_t *chain = &p->chains[p->names[i] % CHAINS];
        p->next[i] = *chain;
        *chain = (uint32_t)i;
    }
}

static bool agree(const struct program *a, size_t i, const struct program *b, size_t j)
{
    size_t k = 0;
    while (k < AGREE && i + k < a->count && j + k < b->count && a->names[i + k] == b->names[j + k])
        k++;
    return k == AGREE || (k > 0 && (i + k == a->count || j + k == b->count));
}

/* How many calls further, and fewer than `most`, a program goes on as another does at `j`; `most`:
 * it does not. Asked for places in order only: a chain forgets those before `i`. */
static size_t next_agreeing(struct program *a, size_t i, const struct program *b, size_t j,
                            size_t most)
{
    size_t end = a->count - i > most ? i + most : a->count;
    uint32_t *chain = &a->chains[b->names[j] % CHAINS];
    while (*chain < i)
        *chain = a->next[*chain];
    size_t at = *chain;
    while (at < end && !agree(a, at, b, j))
        at = a->next[at];
    return at < end ? at - i : most;
}

/* Steps over calls that only one of them has, as few as possible. */
static void come_together(struct program *a, size_t *i, struct program *b, size_t *j)
{
    size_t more_i = next_agreeing(a, *i, b, *j, AHEAD);
    size_t more_j = next_agreeing(b, *j, a, *i, more_i);
    if (more_j < more_i) {
        *j += more_j;
    } else if (more_i < AHEAD) {
        *i += more_i;
    } else {
        ++*i;
        ++*j;
    }
}

/* What the late rank's host takes longer for, per call of it; and its kernels' times against the
 * other's. */
struct excess {
    int64_t *host_ns;
    double *ratio;
    size_t ratio_count;
};

static void compare(struct knee_graph *g, struct program *late, struct program *other,
                    struct excess *x)
{
    size_t i = 0, j = 0;
    chain_calls(late);
    chain_calls(other);
    memset(x->host_ns, 0, (late->count + 1) * sizeof *x->host_ns);
    while (i < late->count && j < other->count) {
        size_t before = i;
        if (late->names[i] != other->names[j])
            come_together(late, &i, other, &j);
        for (; before < i; before++) { /* only the late rank has these */
            struct knee_node *n = knee_graph_edit(g, (size_t)late->calls[before].node);
            n->gone = n->gone || (n->kind != KNEE_NODE_COMM && n->kind != KNEE_NODE_HOST);
            x->host_ns[before] = late->calls[before].since_ns;
        }
        if (i >= late->count || j >= other->count)
            break;
        const struct knee_node *n = &g->nodes[late->calls[i].node];
        const struct knee_node *m = &g->nodes[other->calls[j].node];
        int64_t more = late->calls[i].since_ns - other->calls[j].since_ns;
        x->host_ns[i] = more > NOTABLE_NS ? more : 0;
        if (n->kind == KNEE_NODE_COMPUTE && m->kind == KNEE_NODE_COMPUTE && m->work_ns > 0)
            x->ratio[x->ratio_count++] = n->work_ns / m->work_ns;
        i++;
        j++;
    }
}

static void take_away(struct knee_graph *g, const struct program *late, struct excess *x)
{
    int64_t earlier = 0;
    int32_t host = KNEE_NO_NODE;
    double slower = 1;
    if (x->ratio_count)
        slower = knee_at_rank(x->ratio, x->ratio_count, x->ratio_count / 2);
    for (size_t i = 0; i < late->count; i++) {
        size_t row = (size_t)late->calls[i].node;
        const struct knee_node *n = &g->nodes[row];
        earlier = n->host == host ? earlier : 0;
        host = n->host;
        earlier += x->host_ns[i];
        int64_t by = earlier < n->host_lag_ns ? earlier : n->host_lag_ns;
        if (by != 0)
            knee_graph_edit(g, row)->host_lag_ns -= by;
        if (slower > SLOWER && n->kind == KNEE_NODE_COMPUTE && !n->meet)
            knee_graph_edit(g, row)->work_ns /= slower;
    }
}

static bool even_out(struct knee_graph *g, struct program *late, struct program *other)
{
    struct excess x = {
        .host_ns = knee_resize(g->alloc, NULL, (late->count + 1) * sizeof *x.host_ns),
        .ratio = knee_resize(g->alloc, NULL, (late->count + 1) * sizeof *x.ratio),
    };
    bool good = x.host_ns && x.ratio;
    if (good) {
        compare(g, late, other, &x);
        take_away(g, late, &x);
    }
    knee_resize(g->alloc, x.host_ns, 0);
    knee_resize(g->alloc, x.ratio, 0);
    return good;
}

/* The rank in the middle by its load, the lesser of two. */
static size_t middle_rank(const struct program *programs, size_t count)
{
    for (size_t r = 0; r < count; r++) {
        size_t less = 0;
        for (size_t o = 0; o < count; o++)
            less += programs[o].load_ns < programs[r].load_ns ||
                    (o < r && programs[o].load_ns == programs[r].load_ns);
        if (less == (count - 1) / 2)
            return r;
    }
    return 0;
}

/* What a rank waits for its batches in a step. */
static double load_of(const struct knee_graph *g, size_t rank)
{
    size_t at = 0;
    return (double)loaded_until(g, (int32_t)rank, &at, INT64_MAX) / g->ranks[rank].steps;
}

/* No rank waits longer for its batches than the one in the middle, the lesser of two. */
static bool even_out_loads(struct knee_graph *g)
{
    double *loads = knee_resize(g->alloc, NULL, g->rank_count * sizeof *loads);
    bool good = loads != NULL;
    for (size_t r = 0; good && r < g->rank_count; r++)
        loads[r] = load_of(g, r);
    double middle = good ? knee_at_rank(loads, g->rank_count, (g->rank_count - 1) / 2) : 0;
    for (size_t r = 0; good && r < g->rank_count; r++) {
        double own = load_of(g, r);
        if (own > middle + NOTABLE_NS)
            good = knee_scale_loads(g, r, middle / own, 0);
    }
    knee_resize(g->alloc, loads, 0);
    return good;
}

bool knee_apply_even(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    if (g->rank_count < 2)
        return knee_refuse(run, "one rank is recorded: there are no others");
    if (!even_out_loads(g)) {
        g->failed = true;
        return false;
    }
    struct program *programs = knee_resize(g->alloc, NULL, g->rank_count * sizeof *programs);
    bool good = programs != NULL;
    if (good)
        memset(programs, 0, g->rank_count * sizeof *programs);
    for (size_t r = 0; good && r < g->rank_count; r++)
        good = list_program(g, (int32_t)r, &programs[r]);
    size_t middle = good ? middle_rank(programs, g->rank_count) : 0;
    for (size_t r = 0; good && r < g->rank_count; r++)
        if (r != middle && programs[r].load_ns > programs[middle].load_ns)
            good = even_out(g, &programs[r], &programs[middle]);
    for (size_t r = 0; programs && r < g->rank_count; r++) {
        knee_resize(g->alloc, programs[r].calls, 0);
        knee_resize(g->alloc, programs[r].names, 0);
        knee_resize(g->alloc, programs[r].next, 0);
    }
    knee_resize(g->alloc, programs, 0);
    g->failed = g->failed || !good;
    return good;
}

/* ---- Ranks left out ---- */

/* Of a list that check_ranks() let pass. */
static bool names_rank(const char *list, int64_t rank)
{
    char *end;
    for (const char *p = list;; p = end + 1)
        if (strtoll(p, &end, 10) == rank)
            return true;
        else if (!*end)
            return false;
}

/* Numbers with commas between them, all of ranks that are recorded. */
static bool check_ranks(struct knee_change_run *run)
{
    const struct knee_account *account = run->g->account;
    char *end;
    for (const char *p = run->ask->without;; p = end + 1) {
        long long rank = strtoll(p, &end, 10);
        bool known = false;
        if (end == p || (*end && *end != ','))
            return knee_misspelt(run, "'%.40s': not a list of ranks, such as 3 or 3,7",
                                 run->ask->without);
        for (size_t r = 0; r < account->rank_count; r++)
            known = known || account->ranks[r].rank == rank;
        if (!known)
            return knee_refuse(run, "rank %lld is not recorded", rank);
        if (!*end)
            return true;
    }
}

bool knee_apply_without(struct knee_change_run *run)
{
    struct knee_graph *g = run->g;
    size_t left = 0;
    if (!check_ranks(run))
        return false;
    for (size_t r = 0; r < g->rank_count; r++)
        left += !names_rank(run->ask->without, g->account->ranks[r].rank);
    if (left == 0)
        return knee_refuse(run, "no rank would be left");
    for (size_t i = 0; i < g->count; i++) {
        if (names_rank(run->ask->without, g->account->ranks[g->nodes[i].rank].rank))
            knee_graph_edit(g, i)->gone = true;
    }
    run->work *= (double)left / (double)g->rank_count;
    return true;
}

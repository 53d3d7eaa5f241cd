/* SPDX-License-Identifier: MIT */
/*
 * Prices from the recording's own collectives. For each operation and group: the median time of
 * each size. A size between two measured ones that are not far apart lies on the line between them.
 * Else the line goes through the nearest larger one and the latency, which the smallest size shows.
 * Small messages show it too well: in a large all-reduce the second half (gathering) starts when
 * the first (reducing) has come through. Over sockets, 3 and 4 ranks, it was 1.26 times that of a
 * small one (bench/replay-captures); between once and one and a half times is left open.
 *
 * Ranks that share one GPU without running at once take turns; a collective then ends at the end of
 * a turn, its members up to a turn apart for each of them.
 */
#include "replay/own_price.h"

#include "timeline/kinds.h"

#include "base/sort.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

#define NEARLY      1.25 /* the same size */
#define FAR         4.0  /* sizes further apart than this do not tell what is between them */
#define SMALL       8.0  /* a size this much smaller than another shows the latency */
#define MOST_SHARE  0.8  /* of a time that can be latency */
#define HOP_NS      5e4  /* when nothing shows it; data/transports.csv has 1 to 70 us */
#define SLOW_HOP_NS 2e5
#define MOST_MISFIT 0.1 /* of times to whole turns; chance alone gives 0.25 */
#define LEAST_TURN  5e5 /* ns: members of a collective that end so far apart do not run at once */

/* ---- Sizes ---- */

static const struct knee_own_line *find_line(const struct knee_own_prices *p, uint64_t group,
                                             enum knee_op op)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->lines[i].group == group && p->lines[i].op == op)
            return &p->lines[i];
    return NULL;
}

static struct knee_own_line *make_line(struct knee_own_prices *p,
                                       const struct knee_graph_meet *meet)
{
    const struct knee_own_line *line = find_line(p, meet->group, meet->op);
    if (line)
        return &p->lines[line - p->lines];
    if (p->count == KNEE_OWN_LINES)
        return NULL;
    p->lines[p->count] =
        (struct knee_own_line){.group = meet->group, .op = meet->op, .ranks = meet->group_size};
    return &p->lines[p->count++];
}

static uint64_t size_key(const struct knee_graph_meet *meet)
{
    uint64_t hash = (meet->group ^ ((uint64_t)meet->op << 56)) * 0x9e3779b97f4a7c15u;
    return (hash & 0xfffff00000000000u) | ((uint64_t)meet->bytes & 0xfffffffffffu);
}

/* Takes the median of keys[from, to): meets of one size, by their times. */
static void add_size(struct knee_own_prices *p, const struct knee_graph *g,
                     const struct knee_sort_key *keys, size_t from, size_t to)
{
    const struct knee_graph_meet *meet = &g->meets[keys[from + (to - from) / 2].row];
    struct knee_own_line *line = make_line(p, meet);
    if (!line || line->count == KNEE_OWN_SIZES)
        return;
    size_t at = line->count++;
    for (; at > 0 && line->sizes[at - 1].bytes > (double)meet->bytes; at--)
        line->sizes[at] = line->sizes[at - 1];
    line->sizes[at].bytes = (double)meet->bytes;
    line->sizes[at].pure_ns = meet->pure_ns;
    line->sizes[at].calls = to - from;
}

/* Of sizes that are nearly the same the one that comes most often stays: a few calls may be off. */
static void merge_sizes(struct knee_own_line *line)
{
    size_t kept = 0;
    for (size_t i = 1; i < line->count; i++) {
        if (line->sizes[i].bytes > NEARLY * line->sizes[kept].bytes)
            line->sizes[++kept] = line->sizes[i];
        else if (line->sizes[i].calls >= line->sizes[kept].calls)
            line->sizes[kept] = line->sizes[i];
    }
    line->count = line->count ? kept + 1 : 0;
}

/* Sorted by time, then (the sort is stable) by size. */
static bool list_sizes(struct knee_own_prices *p, const struct knee_graph *g)
{
    size_t count = 0;
    struct knee_sort_key *keys =
        knee_resize(g->alloc, NULL, 2 * (g->meet_count + 1) * sizeof *keys);
    if (!keys)
        return false;
    for (size_t i = 0; i < g->meet_count; i++)
        if (g->meets[i].bytes > 0 && g->meets[i].pure_ns > 0)
            keys[count++] = (struct knee_sort_key){(uint64_t)g->meets[i].pure_ns, i};
    knee_sort(keys, keys + count, count);
    for (size_t i = 0; i < count; i++)
        keys[i].key = size_key(&g->meets[keys[i].row]);
    knee_sort(keys, keys + count, count);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from; to < count && keys[to].key == keys[from].key;)
            to++;
        add_size(p, g, keys, from, to);
    }
    knee_resize(g->alloc, keys, 0);
    for (size_t l = 0; l < p->count; l++)
        merge_sizes(&p->lines[l]);
    return true;
}

/* ---- Turns ---- */

/* How far apart the members of a meet end, as measured. */
static double spread_ns(const struct knee_graph *g, const struct knee_graph_meet *meet)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (int32_t i = meet->first; i != KNEE_NO_NODE; i = g->next_member[i]) {
        first = g->nodes[i].end_ns < first ? g->nodes[i].end_ns : first;
        last = g->nodes[i].end_ns > last ? g->nodes[i].end_ns : last;
    }
    return (double)(last - first);
}

/* How badly the measured times fit to whole turns: mean distance to the nearest whole number, over
 * the sizes by how often they come. */
static double misfit(const struct knee_own_prices *p, double turn_ns)
{
    double sum = 0, weight = 0;
    for (size_t l = 0; l < p->count; l++)
        for (size_t i = 0; i < p->lines[l].count; i++) {
            double turns = p->lines[l].sizes[i].pure_ns / turn_ns;
            double calls = (double)p->lines[l].sizes[i].calls;
            sum += calls * fabs(turns - rint(turns));
            weight += calls;
        }
    return weight > 0 ? sum / weight : 1;
}

/* The turn near the usual spread into which the measured times divide best; of two that do so alike
 * the nearer. */
static double fit_turn(const struct knee_own_prices *p, double spread)
{
    double best = 0, least = 1;
    for (double share = 0.85; share < 1.2; share += 0.0005) {
        double bad = misfit(p, share * spread);
        if (bad < MOST_MISFIT && bad + 0.3 * fabs(share - 1) < least) {
            least = bad + 0.3 * fabs(share - 1);
            best = share * spread;
        }
    }
    return best;
}

static bool find_turn(struct knee_own_prices *p, const struct knee_graph *g)
{
    struct knee_sort_key *keys =
        knee_resize(g->alloc, NULL, 2 * (g->meet_count + 1) * sizeof *keys);
    size_t count = 0, near = 0;
    if (!keys)
        return false;
    for (size_t i = 0; i < g->meet_count; i++)
        if (knee_op_is_barrier(g->meets[i].op))
            keys[count++] = (struct knee_sort_key){(uint64_t)spread_ns(g, &g->meets[i]), i};
    knee_sort(keys, keys + count, count);
    size_t middle = count / 2;
    double usual = count ? (double)keys[middle].key : 0;
    for (size_t i = 0; i < count; i++)
        near += fabs((double)keys[i].key - usual) < 0.15 * usual;
    usual /= (double)(g->rank_count > 1 ? g->rank_count - 1 : 1);
    if (g->one_gpu && usual > LEAST_TURN && near * 2 > count)
        p->turn_ns = fit_turn(p, usual);
    knee_resize(g->alloc, keys, 0);
    return true;
}

bool knee_own_prices_init(struct knee_own_prices *p, const struct knee_graph *g)
{
    memset(p, 0, sizeof *p);
    return list_sizes(p, g) && find_turn(p, g);
}

/* ---- Prices ---- */

/* The time of a small message in the same group: of the operation itself, else of any. */
static double small_ns(const struct knee_own_prices *p, const struct knee_own_line *line)
{
    double large = line->sizes[line->count - 1].bytes;
    if (line->sizes[0].bytes * SMALL <= large)
        return line->sizes[0].pure_ns;
    for (size_t l = 0; l < p->count; l++)
        if (p->lines[l].group == line->group && p->lines[l].sizes[0].bytes * SMALL <= large)
            return p->lines[l].sizes[0].pure_ns;
    return p->turn_ns > 0 ? p->turn_ns : NAN; /* the least that a message can take then */
}

static double latency_of(const struct knee_own_prices *p, const struct knee_own_line *line,
                         double least_ns, enum knee_lean lean)
{
    double small = small_ns(p, line), halves = line->op == KNEE_OP_ALL_REDUCE ? 1.5 : 1;
    double low = isnan(small) ? 0 : small;
    double hops = (line->op == KNEE_OP_ALL_REDUCE ? 2 : 1) * fmax(1, line->ranks - 1);
    double high = isnan(small) ? hops * SLOW_HOP_NS : halves * small;
    double middle = isnan(small) ? hops * HOP_NS : (low + high) / 2;
    double latency = lean < 0 ? low : lean > 0 ? high : middle;
    return fmin(latency, MOST_SHARE * least_ns);
}

double knee_own_latency_ns(const struct knee_own_prices *p, const struct knee_graph_meet *meet,
                           enum knee_lean lean)
{
    const struct knee_own_line *line = find_line(p, meet->group, meet->op);
    return line && line->count ? latency_of(p, line, meet->pure_ns, lean) : NAN;
}

/* A measured time that was rounded up to whole turns: half a turn less, for want of better. */
static double before_turns(const struct knee_own_prices *p, double ns)
{
    return ns > 1.5 * p->turn_ns ? ns - p->turn_ns / 2 : ns;
}

double knee_own_price_ns(const struct knee_own_prices *p, const struct knee_graph_meet *meet,
                         double bytes, enum knee_lean lean)
{
    const struct knee_own_line *line = find_line(p, meet->group, meet->op);
    if (!line || !line->count)
        return NAN;
    size_t above = 0;
    while (above < line->count && line->sizes[above].bytes < bytes)
        above++;
    if (above < line->count && above > 0 &&
        line->sizes[above].bytes <= FAR * line->sizes[above - 1].bytes) {
        double x0 = line->sizes[above - 1].bytes, x1 = line->sizes[above].bytes;
        double y0 = before_turns(p, line->sizes[above - 1].pure_ns);
        double y1 = before_turns(p, line->sizes[above].pure_ns);
        return y0 + (y1 - y0) * (bytes - x0) / (x1 - x0);
    }
    size_t anchor = above < line->count ? above : line->count - 1;
    double x = line->sizes[anchor].bytes, y = before_turns(p, line->sizes[anchor].pure_ns);
    double latency = latency_of(p, line, y, lean);
    return latency + (y - latency) * bytes / x;
}

double knee_own_in_turns(const struct knee_own_prices *p, double ns)
{
    return p->turn_ns > 0 && ns > p->turn_ns ? p->turn_ns * ceil(ns / p->turn_ns - 0.1) : ns;
}

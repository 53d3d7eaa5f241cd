/* SPDX-License-Identifier: MIT */
/*
 * The one place that computes the time ("price") of a collective on a cluster.
 *
 * A group of ranks is laid out on the cluster's levels, every algorithm that runs there is counted
 * once, and since counts grow in step with bytes, each of them with each protocol is a straight
 * line in bytes. A price is the lowest of those lines; a curve that was fitted to this very
 * collective stands above the model. Asking a price that has been made takes a few nanoseconds.
 */
#include "collective/collective.h"
#include "collective/curve.h"

#include <math.h>

/* ---- Where a group lies ---- */

/* Members on the smaller side of the group that is split worst between two units of `room` GPUs:
 * groups follow each other without a gap, so that one of those that do not divide the room
 * straddles its end. */
static double smaller_side(struct knee_group group, double room)
{
    double span = group.size * group.stride, least = group.size;
    for (double start = 0, i = 0; i < room; i++) {
        double before = ceil((room - start) / group.stride);
        if (start + span > room && before < group.size)
            least = fmin(least, fmin(before, group.size - before));
        start = fmod(start + span, room);
        if (start == 0)
            break;
    }
    return least;
}

/* GPUs of a host, at most: a larger unit is a rack of trays, and schedulers leave some of those
 * idle rather than let a group straddle its end (64 of an NVL72's 72). */
#define HOST_MOST 16

/* Members that one unit of `room` GPUs holds. */
static double held_in(struct knee_group group, double room)
{
    double span = group.size * group.stride;
    if (span > room)
        return fmin(group.size, fmax(1, floor(room / group.stride + 1e-9)));
    if (group.alone || room > HOST_MOST || fmod(room, span) == 0)
        return group.size;
    return smaller_side(group, room);
}

/* What `held` members reach into a level whose units of `room` GPUs have so many ports. Alone, a
 * rank has at least one port, or all of them where they are shared; where all GPUs are in such
 * groups at the same time, each gets its part. */
static double reach(const struct knee_level *level, struct knee_group group, double held,
                    double room, double below)
{
    double ports = level->ports, part = isfinite(room) ? ports * held / room : ports;
    if (!(ports > 0))
        return below / level->oversubscription;
    bool straddles = group.size * group.stride <= room; /* the others stay inside */
    if (group.alone || straddles)
        part = level->shared ? ports : fmin(ports, fmax(part, 1));
    return fmin(part * level->bytes_per_s, below) / level->oversubscription;
}

void knee_group_layout(const struct knee_cluster *cluster, struct knee_group group,
                       struct knee_layout *out)
{
    struct knee_layout layout = {.ranks = group.size, .skew = 1, .units = {group.size}};
    double held = 1, room = 1, below = INFINITY; /* a GPU does not limit its NIC */
    for (size_t l = 0; l < cluster->level_count && layout.units[l] > 1; l++) {
        const struct knee_level *level = &cluster->levels[l];
        bool top = l + 1 == cluster->level_count; /* it has room for any number */
        double rate = l == 0 ? level->ports * level->bytes_per_s / level->oversubscription
                             : reach(level, group, held, room, below);
        layout.latency_s[l] = level->latency_s;
        layout.bytes_per_s[l] = rate;
        room *= level->count > 0 && !top ? level->count : INFINITY;
        double now = top ? group.size : held_in(group, room);
        below = l == 0 ? INFINITY : rate * now / held;
        held = now;
        layout.units[l + 1] = ceil(group.size / held - 1e-9);
        layout.levels = l + 1;
    }
    *out = layout;
}

/* ---- Lines ---- */

/* Lines from the lowest start-up time to the highest bandwidth. A line between two others helps
 * only if it lies below their crossing. */
static bool of_use(const struct knee_price_line *a, const struct knee_price_line *b,
                   const struct knee_price_line *c)
{
    double crossing = (c->fixed_s - a->fixed_s) / (a->per_byte_s - c->per_byte_s);
    return b->fixed_s + crossing * b->per_byte_s < a->fixed_s + crossing * a->per_byte_s;
}

static void remove_line(struct knee_price *price, size_t row)
{
    price->count--;
    for (size_t i = row; i < price->count; i++)
        price->line[i] = price->line[i + 1];
}

/* Puts a line where it belongs and drops those that are nowhere the lowest. */
static void add_line(struct knee_price *price, double fixed_s, double per_byte_s)
{
    struct knee_price_line all[KNEE_PRICE_LINES + 1];
    size_t at = 0, count = price->count + 1;
    while (at < price->count && price->line[at].fixed_s < fixed_s)
        at++;
    for (size_t i = 0; i < count; i++)
        all[i] = i == at  ? (struct knee_price_line){fixed_s, per_byte_s}
                 : i < at ? price->line[i]
                          : price->line[i - 1];
    price->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct knee_price_line *line = price->line;
        if (price->count > 0 && all[i].per_byte_s >= line[price->count - 1].per_byte_s)
            continue; /* starts later and has no higher bandwidth */
        while (price->count > 0 && all[i].fixed_s == line[price->count - 1].fixed_s)
            price->count--;
        while (price->count > 1 &&
               !of_use(&line[price->count - 2], &line[price->count - 1], &all[i]))
            price->count--;
        if (price->count == KNEE_PRICE_LINES)
            remove_line(price, 1);
        line[price->count++] = all[i];
    }
}

#define MANY_BYTES                                                                                 \
    1e12 /* the slope is that over so many; counts are the same multiple of bytes                  \
          */

static bool add_algorithm(struct knee_price *price, const struct knee_cluster *cluster,
                          const struct knee_layout *layout, enum knee_op op,
                          const struct knee_algorithm *algorithm)
{
    struct knee_counts none = {0}, many = {0};
    if (!knee_scheme_count(cluster, layout, op, 0, algorithm, &none) ||
        !knee_scheme_count(cluster, layout, op, MANY_BYTES, algorithm, &many))
        return false;
    for (int p = KNEE_LL; p < KNEE_PROTOCOLS; p++) {
        enum knee_protocol_name protocol = (enum knee_protocol_name)p;
        if (!knee_protocol_runs(cluster, layout, algorithm, protocol))
            continue;
        double fixed_s = knee_line_s(cluster, layout, &none, algorithm, protocol);
        double large_s = knee_line_s(cluster, layout, &many, algorithm, protocol);
        double per_byte_s = (large_s - fixed_s) / MANY_BYTES;
        struct knee_fill fill = algorithm->fill[p];
        bool fills = fill.share > 0 && !cluster->plain;
        if (fills)
            add_line(price, fixed_s, per_byte_s / fill.share);
        if (!fills || fill.bytes > 0)
            add_line(price, fixed_s + (fills ? fill.bytes : 0) * per_byte_s, per_byte_s);
    }
    return true;
}

/* What the library would run: NCCL's own on GPUs, on plain hosts anything, a ring in the textbook.
 */
static void add_library(struct knee_price *price, const struct knee_cluster *cluster,
                        const struct knee_layout *layout, enum knee_op op)
{
    const struct knee_algorithm *row;
    if (cluster->textbook && add_algorithm(price, cluster, layout, op, &knee_ring))
        return;
    for (size_t i = 0; (row = knee_scheme_at(i)); i++)
        if (knee_scheme_used(cluster, row))
            add_algorithm(price, cluster, layout, op, row);
}

/* An algorithm that was asked for and cannot run there leaves the choice to the library. */
static void set_lines(struct knee_price *price, const struct knee_cluster *cluster,
                      const struct knee_layout *layout, const struct knee_algorithm *algorithm)
{
    if (!algorithm || !add_algorithm(price, cluster, layout, price->op, algorithm))
        add_library(price, cluster, layout, price->op);
}

/* So many GPUs of a node send at once, each through its own port or its part of them. */
static void limit_senders(const struct knee_cluster *cluster, struct knee_group group,
                          struct knee_layout *layout)
{
    const struct knee_level *level = &cluster->levels[1];
    double node = cluster->levels[0].count, senders = fmin(group.stride, node);
    double ports = fmin(fmax(1, level->ports / node), level->ports / senders);
    double rate = ports * level->bytes_per_s / level->oversubscription;
    for (size_t l = 1; l < layout->levels; l++)
        layout->bytes_per_s[l] = fmin(layout->bytes_per_s[l], rate);
}

static void lay_out(const struct knee_cluster *cluster, enum knee_op op, struct knee_group group,
                    struct knee_layout *out)
{
    knee_group_layout(cluster, group, out);
    if (op == KNEE_OP_SEND_RECV && !group.alone && out->levels > 1)
        limit_senders(cluster, group, out);
}

static const struct knee_curve *curve_of(const struct knee_cluster *cluster, enum knee_op op,
                                         struct knee_group group, const struct knee_layout *layout,
                                         const struct knee_algorithm *algorithm)
{
    bool fills_nodes = group.alone || group.stride == 1;
    return algorithm || !fills_nodes ? NULL : knee_curve_find(cluster, layout, op);
}

void knee_price_init(const struct knee_cluster *cluster, enum knee_op op, struct knee_group group,
                     const struct knee_algorithm *algorithm, struct knee_price *out)
{
    struct knee_price price = {.group = group, .op = op, .floor_s = cluster->floor_s};
    struct knee_layout layout;
    if (group.size > 1) {
        lay_out(cluster, op, group, &layout);
        set_lines(&price, cluster, &layout, algorithm);
        price.curve = curve_of(cluster, op, group, &layout, algorithm);
    }
    *out = price;
}

static double model_s(const struct knee_price *price, double bytes)
{
    double best = INFINITY;
    for (size_t i = 0; i < price->count; i++)
        best = fmin(best, price->line[i].fixed_s + bytes * price->line[i].per_byte_s);
    return price->floor_s > 0 ? knee_soft_maximum(best, price->floor_s) : best;
}

/* Past its ends a curve keeps its distance from the model. */
static double curve_s(const struct knee_price *price, double bytes)
{
    const struct knee_curve *curve = price->curve;
    double first = curve->bytes[0], last = curve->bytes[curve->knots - 1];
    double end = bytes < first ? first : bytes > last ? last : bytes;
    double there_s = knee_curve_time_s(curve, end);
    return end == bytes || price->count == 0
               ? there_s
               : there_s * model_s(price, bytes) / model_s(price, end);
}

double knee_price_s(const struct knee_price *price, double bytes)
{
    if (price->group.size <= 1)
        return 0;
    if (price->curve && price->curve->knots > 0)
        return curve_s(price, bytes);
    return price->count > 0 ? model_s(price, bytes) : NAN;
}

double knee_expected_time_s(const struct knee_cluster *cluster, const struct knee_layout *layout,
                            enum knee_op op, double bytes)
{
    struct knee_price price = {
        .group = {.size = layout->ranks, .stride = 1}, .op = op, .floor_s = cluster->floor_s};
    set_lines(&price, cluster, layout, NULL);
    price.curve = knee_curve_find(cluster, layout, op);
    return knee_price_s(&price, bytes);
}

/* One algorithm at one size; NaN: it does not do this there. */
static double direct_s(const struct knee_cluster *cluster, const struct knee_layout *layout,
                       enum knee_op op, double bytes, const struct knee_algorithm *algorithm)
{
    struct knee_counts counts = {0};
    if (!knee_scheme_count(cluster, layout, op, bytes, algorithm, &counts))
        return NAN;
    return knee_best_protocol_s(cluster, layout, &counts, algorithm, NULL);
}

double knee_collective_s(const struct knee_cluster *cluster, enum knee_op op,
                         struct knee_group group, double bytes,
                         const struct knee_algorithm *algorithm)
{
    struct knee_layout layout;
    double time_s = NAN;
    if (group.size <= 1)
        return 0;
    lay_out(cluster, op, group, &layout);
    if (curve_of(cluster, op, group, &layout, algorithm))
        return knee_expected_time_s(cluster, &layout, op, bytes);
    if (algorithm)
        time_s = direct_s(cluster, &layout, op, bytes, algorithm);
    if (isnan(time_s) && cluster->textbook)
        time_s = direct_s(cluster, &layout, op, bytes, &knee_ring);
    return isnan(time_s) ? knee_model_time_s(cluster, &layout, op, bytes, NULL, NULL) : time_s;
}

/* ---- Prices that were asked before ---- */

static bool is_price_of(const struct knee_price *price, enum knee_op op, struct knee_group group)
{
    return price->op == op && price->group.size == group.size &&
           price->group.stride == group.stride && price->group.alone == group.alone;
}

const struct knee_price *knee_prices_get(struct knee_prices *prices,
                                         const struct knee_cluster *cluster, enum knee_op op,
                                         struct knee_group group)
{
    enum { TRIES = 4 };
    /* Powers of two, which most sizes are, fall on different places of a table of 37. */
    size_t first =
        ((size_t)group.size + 11 * (size_t)group.stride + 5 * (size_t)op + (size_t)group.alone) %
        KNEE_PRICES;
    struct knee_price *free = &prices->price[first];
    for (size_t i = 0; i < TRIES; i++) {
        struct knee_price *price = &prices->price[(first + i) % KNEE_PRICES];
        if (is_price_of(price, op, group))
            return price;
        if (price->group.size == 0) {
            free = price;
            break;
        }
    }
    knee_price_init(cluster, op, group, NULL, free);
    return free;
}

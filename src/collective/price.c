/* SPDX-License-Identifier: MIT */
/*
 * The one price: what a collective takes on a cluster. Everybody who needs it asks here.
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

/* Kept only if no line is below it everywhere; what it is below of goes. */
static void add_line(struct knee_price *price, double fixed_s, double per_byte_s)
{
    size_t kept = 0;
    for (size_t i = 0; i < price->count; i++) {
        const struct knee_price_line *line = &price->line[i];
        if (line->fixed_s <= fixed_s && line->per_byte_s <= per_byte_s)
            return;
    }
    for (size_t i = 0; i < price->count; i++)
        if (price->line[i].fixed_s < fixed_s || price->line[i].per_byte_s < per_byte_s)
            price->line[kept++] = price->line[i];
    price->count = kept;
    if (price->count < KNEE_PRICE_LINES)
        price->line[price->count++] = (struct knee_price_line){fixed_s, per_byte_s};
}

#define MANY_BYTES                                                                                 \
    1e12 /* the slope is that over so many; counts are the same multiple of bytes                  \
          */

static bool add_algorithm(struct knee_price *price, const struct knee_cluster *cluster,
                          const struct knee_layout *layout, enum knee_op op,
                          const struct knee_algorithm *algorithm)
{
    struct knee_counts none = {0}, many = {0};
    if (!algorithm->count(layout, op, 0, &none) || !algorithm->count(layout, op, MANY_BYTES, &many))
        return false;
    bool simple_only = cluster->plain || algorithm->simple_only; /* the others are NCCL's */
    for (int p = simple_only ? KNEE_SIMPLE : KNEE_LL; p < KNEE_PROTOCOLS; p++) {
        enum knee_protocol_name protocol = (enum knee_protocol_name)p;
        double fixed_s = knee_line_s(cluster, layout, &none, algorithm, protocol);
        double large_s = knee_line_s(cluster, layout, &many, algorithm, protocol);
        add_line(price, fixed_s, (large_s - fixed_s) / MANY_BYTES);
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
    if (!algorithm || !knee_scheme_runs(cluster, algorithm) ||
        !add_algorithm(price, cluster, layout, price->op, algorithm))
        add_library(price, cluster, layout, price->op);
}

void knee_price_init(const struct knee_cluster *cluster, enum knee_op op, struct knee_group group,
                     const struct knee_algorithm *algorithm, struct knee_price *out)
{
    struct knee_price price = {.group = group, .op = op, .floor_s = cluster->floor_s};
    struct knee_layout layout;
    if (group.size > 1) {
        knee_group_layout(cluster, group, &layout);
        set_lines(&price, cluster, &layout, algorithm);
        if (!algorithm && (group.alone || group.stride == 1))
            price.curve = knee_curve_find(cluster, &layout, op);
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

double knee_collective_s(const struct knee_cluster *cluster, enum knee_op op,
                         struct knee_group group, double bytes,
                         const struct knee_algorithm *algorithm)
{
    struct knee_price price;
    knee_price_init(cluster, op, group, algorithm, &price);
    return knee_price_s(&price, bytes);
}

/* ---- Sends ---- */

double knee_send_s(const struct knee_cluster *cluster, struct knee_group group, double bytes)
{
    struct knee_layout layout;
    if (group.size <= 1)
        return 0;
    knee_group_layout(cluster, group, &layout);
    size_t top = knee_layout_top(&layout);
    if (top > 0) { /* so many GPUs of a node send at once, each through its own port or its part */
        const struct knee_level *level = &cluster->levels[1];
        double node = cluster->levels[0].count, senders = fmin(group.stride, node);
        double ports = fmin(fmax(1, level->ports / node), level->ports / senders);
        double rate = ports * level->bytes_per_s / level->oversubscription;
        for (size_t l = 1; l <= top; l++)
            layout.bytes_per_s[l] = fmin(layout.bytes_per_s[l], rate);
    }
    struct knee_price price = {.group = group, .op = KNEE_OP_SEND_RECV};
    add_algorithm(&price, cluster, &layout, KNEE_OP_SEND_RECV, &knee_send_recv);
    return knee_price_s(&price, bytes);
}

/* ---- Prices that were asked before ---- */

const struct knee_price *knee_prices_get(struct knee_prices *prices,
                                         const struct knee_cluster *cluster, enum knee_op op,
                                         struct knee_group group)
{
    for (size_t i = 0; i < prices->count; i++) {
        const struct knee_price *price = &prices->price[i];
        if (price->op == op && price->group.size == group.size &&
            price->group.stride == group.stride && price->group.alone == group.alone)
            return price;
    }
    size_t row = prices->next++ % KNEE_PRICES;
    if (prices->count < KNEE_PRICES)
        prices->count++;
    knee_price_init(cluster, op, group, NULL, &prices->price[row]);
    return &prices->price[row];
}

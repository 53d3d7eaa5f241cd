/* SPDX-License-Identifier: MIT */
/*
 * Bruck: ceil(log2 K) rounds, rank r sending to r - 2^i, for any K. All-gather sends all it has;
 * all-to-all the blocks whose distance to go has bit i set, so that blocks travel more than once.
 */
#include "collective/collective.h"

#include <math.h>

/* How many of 0..k-1 have the bit `distance` set. */
static double with_bit(double k, double distance)
{
    double whole = floor(k / (2 * distance)), rest = k - whole * 2 * distance;
    return whole * distance + fmax(0, rest - distance);
}

static bool count_bruck(const struct knee_layout *layout, enum knee_op op, double bytes,
                        struct knee_counts *out)
{
    struct knee_counts counts = {.in_turn = true};
    double k = layout->ranks;
    bool to_all = op == KNEE_OP_ALL_TO_ALL || op == KNEE_OP_ALL_TO_ALLV;
    bool crossed = false;
    if (!to_all && op != KNEE_OP_ALL_GATHER)
        return false;
    for (double distance = 1; distance < k; distance *= 2) {
        double blocks = to_all ? with_bit(k, distance) : fmin(distance, k - distance);
        size_t level = knee_layout_meets(layout, distance);
        /* A short jump stays in its node for some ranks and leaves it for others: as many leave as
         * the jump is long. One path can meet only one border before jumps are as long as nodes. */
        bool border = knee_layout_crosses(layout) && level == 0 && !crossed;
        counts.hops[border ? 1 : level]++;
        crossed = crossed || border;
        for (size_t l = 0; l < layout->levels; l++) {
            double leave = l == 0 ? distance < knee_layout_unit(layout, 1) || layout->levels == 1
                                  : fmin(distance, knee_layout_unit(layout, l));
            counts.bytes[l] += leave * blocks * bytes / k;
        }
    }
    if (op == KNEE_OP_ALL_TO_ALLV)
        knee_count_skew(layout, &counts);
    *out = counts;
    return true;
}

const struct knee_algorithm knee_bruck = {
    .name = "bruck",
    .formula = "ceil(log2 K) alpha + (K-1)/K S/B; all-to-all: ceil(log2 K) alpha + log2 K S/(2B)",
    .origin = "Bruck, Ho, Kipnis, Upfal, Weathersby 1997",
    .count = count_bruck,
};

/* SPDX-License-Identifier: MIT */
/* Rabenseifner: reduce-scatter by recursive halving, all-gather by recursive doubling. A reduce
 * only gathers at the root, a broadcast only scatters from it; the root's port carries as much. */
#include "collective/collective.h"

#include <math.h>

/* How often the ranks beyond a power of two pass the whole buffer: into it, out of it, or both. */
static double folds(enum knee_op op)
{
    return op == KNEE_OP_ALL_REDUCE ? 2 : 1;
}

static bool does(enum knee_op op, bool power_of_two)
{
    return op == KNEE_OP_ALL_REDUCE || op == KNEE_OP_REDUCE || op == KNEE_OP_BROADCAST ||
           (op == KNEE_OP_REDUCE_SCATTER && power_of_two);
}

/* Halves the buffer while it doubles the distance, so that most bytes stay near; the way back is
 * the same. Reduce-scatter is the first half of it, and needs a power of two. */
static bool count_halving(const struct knee_layout *layout, enum knee_op op, double bytes,
                          struct knee_counts *out)
{
    struct knee_counts counts = {.in_turn = true};
    double k = layout->ranks, p = exp2(floor(log2(k))), ways = op == KNEE_OP_REDUCE_SCATTER ? 1 : 2;
    if (!does(op, p == k))
        return false;
    for (double distance = 1, sent = bytes / 2; distance < p; distance *= 2, sent /= 2) {
        size_t l = knee_layout_meets(layout, distance);
        counts.hops[l] += ways;
        counts.bytes[l] += ways * sent * knee_layout_unit(layout, l);
    }
    if (p < k)
        knee_count_fold(layout, k - p, bytes, folds(op), &counts);
    *out = counts;
    return true;
}

const struct knee_algorithm knee_halving_doubling = {
    .name = "halving-doubling",
    .formula = "2 log2 K alpha + 2 (K-1)/K S/B; + 2(alpha + S/B) unless K is a power of two "
               "(broadcast, reduce: once)",
    .origin = "Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005",
    .count = count_halving,
};

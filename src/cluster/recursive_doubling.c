/* SPDX-License-Identifier: MIT */
/* Recursive doubling: log2 K exchanges of the whole buffer; best for small ones. */
#include "cluster/collective.h"

#include <math.h>

/* K that is no power of two folds the rest in before and hands the result back after. */
static double recursive_doubling_s(const struct knee_fabric *fabric, double workers, double bytes)
{
    struct knee_wire wire = knee_fabric_span(fabric, workers);
    double rounds = floor(log2(workers));
    if (exp2(rounds) != workers)
        rounds += 2;
    return rounds * (wire.latency_s + bytes / wire.bytes_per_s);
}

const struct knee_algorithm knee_recursive_doubling = {
    .name = "recursive-doubling",
    .formula = "log2 K (alpha + S/B); 2 more rounds when K is no power of two",
    .origin = "Thakur, Rabenseifner, Gropp 2005",
    .time_s = recursive_doubling_s,
};

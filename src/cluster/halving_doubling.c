/* SPDX-License-Identifier: MIT */
/* Rabenseifner: reduce-scatter by recursive halving, all-gather by recursive doubling. */
#include "cluster/collective.h"

#include <math.h>

/* p = the power of two at or below K; the others fold in before and get the result after. */
static double halving_doubling_s(const struct knee_fabric *fabric, double workers, double bytes)
{
    struct knee_wire wire = knee_fabric_span(fabric, workers);
    double rounds = floor(log2(workers)), p = exp2(rounds);
    double fold = p == workers ? 0 : 2 * (wire.latency_s + bytes / wire.bytes_per_s);
    return 2 * rounds * wire.latency_s + 2 * (p - 1) / p * bytes / wire.bytes_per_s + fold;
}

const struct knee_algorithm knee_halving_doubling = {
    .name = "halving-doubling",
    .formula = "2 log2 K alpha + 2 (K-1)/K S/B; + 2(alpha + S/B) when K is no power of two",
    .origin = "Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005",
    .time_s = halving_doubling_s,
};

/* SPDX-License-Identifier: MIT */
/* The law of goodput.h, its best interval, and spare nodes. */
#include "predict/goodput/goodput.h"

#include <math.h>

#define ROUNDS_MAX 100
#define SPARES_MAX 1e6

void knee_goodput_of(const struct knee_stops *s, struct knee_goodput *out)
{
    double period = s->every_s + s->block_s;
    double cycle = s->mean_s + s->restart_s, up = s->mean_s / cycle;
    double kept = s->every_s * exp(-s->write_s / s->mean_s) / (cycle * expm1(period / s->mean_s));
    *out = (struct knee_goodput){
        .kept = kept,
        .checkpoint = kept * s->block_s / s->every_s,
        .restart = 1 - up,
        .lost = fmax(0, up - kept * period / s->every_s),
    };
}

/* Newton's method on f(x) = x - 1 + exp(-x - c) with x = T/M, c = C/M: f is convex, and Young's
 * value is at or above the root, so that the steps fall towards it. */
double knee_best_interval(const struct knee_stops *s)
{
    double c = s->block_s / s->mean_s, x = sqrt(2 * c);
    for (int i = 0; i < ROUNDS_MAX; i++) {
        double e = exp(-x - c), step = (x - 1 + e) / (1 - e);
        x -= step;
        if (!(fabs(step) > 1e-14 * x))
            break;
    }
    return fmax(x * s->mean_s, fmax(0, s->write_s - s->block_s));
}

/* Nodes under repair are Poisson with mean nodes x repair / mean. */
double knee_spare_nodes(double nodes, double mean_s, double repair_s, double enough)
{
    double mean = nodes * repair_s / mean_s, spares = 0;
    double log_term = -mean, sum = exp(log_term);
    while (sum < enough && spares < SPARES_MAX) {
        spares++;
        log_term += log(mean / spares);
        sum += exp(log_term);
    }
    return spares;
}

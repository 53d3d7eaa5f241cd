/* SPDX-License-Identifier: MIT */
/*
 * Goodput: the share of a run's wall time that goes into steps which are kept.
 *
 * A job trains, takes a checkpoint after every `every_s` seconds of training, and stops without
 * warning at random (Poisson, mean time `mean_s` between stops). Then it restarts, which takes
 * `restart_s`, from the last checkpoint that is complete. A checkpoint blocks training for
 * `block_s`. A synchronous one is complete when it stops blocking; an asynchronous one is complete
 * `write_s` later, and a stop before that falls back to the checkpoint before it.
 *
 * Let M = mean_s, T = every_s, C = block_s, W = write_s, R = restart_s. A job that is down cannot
 * stop again, so that one cycle of running and restarting takes M + R on average. After a restart
 * the n-th checkpoint is complete at n (T + C) + W, and it is reached with probability
 * exp(-(n (T + C) + W) / M). Summed over n:
 *
 *     goodput = T exp(-W / M) / ((M + R) (exp((T + C) / M) - 1))
 *
 * This is exact for these assumptions. With W = 0 it is Daly's law (2006), and with T + C, R and W
 * small against M the first-order law (1 - (R + W + T/2) / M) / (1 + C/T). The best T depends on
 * neither R nor W: T / M = 1 - exp(-(T + C) / M), which is Young's sqrt(2 C M) where C is small.
 */
#ifndef KNEE_PREDICT_GOODPUT_GOODPUT_H
#define KNEE_PREDICT_GOODPUT_GOODPUT_H

#include "knee_job.h"

/* All in seconds. */
struct knee_stops {
    double mean_s;    /* between two unplanned stops of the whole job */
    double restart_s; /* from a stop to the first new step, reading the checkpoint included */
    double block_s;   /* that training waits for a checkpoint */
    double write_s;   /* from then until it is complete; 0: synchronous */
    double every_s;   /* of training between two checkpoints */
};

/* Shares of the wall time; their sum is 1. */
struct knee_goodput {
    double kept;       /* steps that count: the goodput */
    double checkpoint; /* blocked by checkpoints that were used */
    double lost;       /* steps and checkpoints that a stop threw away */
    double restart;
};
void knee_goodput_of(const struct knee_stops *stops, struct knee_goodput *out);

/* The interval with the highest goodput, at least as long as a checkpoint takes to write. */
double knee_best_interval(const struct knee_stops *stops);

/* The smallest number of spare nodes that is enough with probability `enough`, where each of
 * `nodes` nodes fails every `mean_s` seconds on average and is away for `repair_s`. */
double knee_spare_nodes(double nodes, double mean_s, double repair_s, double enough);

#endif

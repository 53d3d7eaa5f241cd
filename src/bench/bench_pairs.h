/* SPDX-License-Identifier: MIT */
/* Pairs of ranks measured by ping-pong: neighbours of the ring, or every two hosts. */
#ifndef KNEE_BENCH_BENCH_PAIRS_H
#define KNEE_BENCH_BENCH_PAIRS_H

#include "bench/bench.h"

/* Who plays whom: `size` players, everyone at most once a round. -1: rests. */
int knee_ring_rounds(int size);
int knee_ring_partner(int size, int round, int player);
int knee_league_rounds(int size);
int knee_league_partner(int size, int round, int player); /* all meet all */

/* Fills bench->pairs and bench->wire, the same on every rank. False: bench->rt->fault says why. */
bool knee_bench_measure_pairs(struct knee_bench *bench);

#endif

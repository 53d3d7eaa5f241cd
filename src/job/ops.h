/* SPDX-License-Identifier: MIT */
/*
 * The operations of a layer, as one GPU runs them for one micro-batch. Times are not known here:
 * an operation says what it computes and what it moves.
 */
#ifndef KNEE_JOB_OPS_H
#define KNEE_JOB_OPS_H

#include "knee_plan.h"

/* How a layer is cut: all that the operations of one layer depend on. */
struct knee_split {
    const struct knee_shape *shape;
    const struct knee_rates *rates;
    double tokens;        /* per micro-batch and context rank */
    double context_share; /* of the sequence on one rank */
    double tp, etp, ep, imbalance;
    bool seq_par, fused; /* fused attention */
    bool fp8_attention;
    unsigned modules;      /* that selective recomputation covers; 0: scores */
    enum knee_dtype dtype; /* of the layers' products */
    int precision;
};
struct knee_split knee_split_of(const struct knee_shape *shape, const struct knee_rates *rates,
                                const struct knee_plan *plan);

/* Writes the operations to out[KNEE_OPERATIONS_MAX] and returns how many; `seconds` is left at 0.
 */
size_t knee_ops_list(const struct knee_split *split, enum knee_operations_of what,
                     struct knee_operation *out);

/* A product of m x k by k x n that was measured. */
struct knee_timed_product {
    enum knee_dtype dtype;
    double m, n, k, seconds;
};

/* A product of m x k by k x n, results of 16 bits. */
void knee_op_product(double m, double n, double k, enum knee_dtype dtype,
                     struct knee_operation *out);

/* Tokens, times their experts, that one rank works through when all are equally busy. */
double knee_split_routed(const struct knee_split *split);

/* Speed of 8-bit products with this way of scaling against one scale per tensor. */
double knee_split_scaling(const struct knee_split *split);

#endif

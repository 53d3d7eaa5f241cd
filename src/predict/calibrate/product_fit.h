/* SPDX-License-Identifier: MIT */
/*
 * Constants of matrix products from products that were timed alone, on the user's GPU.
 *
 * A GPU that runs only products is faster than in training: it is cooler, and nothing else uses its
 * memory. The rate of large products alone is therefore a separate constant (gemm-alone). A GPU
 * that is 5 % slower alone than others of its name is assumed to be 5 % slower in training.
 */
#ifndef KNEE_PREDICT_CALIBRATE_PRODUCT_FIT_H
#define KNEE_PREDICT_CALIBRATE_PRODUCT_FIT_H

#include "job/ops.h"

struct knee_products_fit {
    size_t count;            /* products that were fitted; some of those given, evenly */
    size_t of[KNEE_DTYPES];  /* of them, by dtype */
    double shipped, fitted;  /* median |log(model / measured)| with either constants */
    double left_out;         /* of every second product, fitted on the others; NaN: too few */
    double speed;            /* shipped model's time of all / measured; above 1: a faster GPU */
    struct knee_rates rates; /* as in training; those that were not fitted are NaN */
    struct knee_rates shipped_rates; /* likewise, before */
    struct knee_machine machine;     /* as it is alone, with the fitted constants */
    struct knee_machine as_known;    /* with the shipped ones */
};

/* Fits the constants of `machine` to products. KNEE_INPUT: fewer than KNEE_PRODUCTS_FEWEST. */
#define KNEE_PRODUCTS_FEWEST 8
knee_status knee_products_fit(const struct knee_timed_product *products, size_t count,
                              const struct knee_machine *machine, struct knee_products_fit *out,
                              struct knee_err *err);

/* What the model says of one. */
double knee_timed_product_s(const struct knee_machine *machine,
                            const struct knee_timed_product *product);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * knee bench --gemm: how quick this GPU's matrix products are, and the constants of plan's model
 * that follow. Products come from the GPU, timed here through cuBLAS, or from a table.
 */
#ifndef KNEE_BENCH_GEMM_H
#define KNEE_BENCH_GEMM_H

#include "predict/calibrate/product_fit.h"
#include "read/log/product_table.h"
#include "say/fields.h"

/* Times products on the first GPU, each for about `row_time_s`. `tell` (may be NULL) hears how far
 * it is. KNEE_SYSTEM: no GPU, or no cuBLAS. */
typedef void knee_gemm_tell(void *ctx, size_t done, size_t of);
knee_status knee_gemm_measure(double row_time_s, knee_gemm_tell *tell, void *ctx,
                              struct knee_timed_products *out, struct knee_err *err);

/* What is reported about them. */
struct knee_gemm_report {
    const struct knee_timed_products *gemm;
    const struct knee_gpu *gpu;
    const struct knee_products_fit *fit;
};
extern const struct knee_answer_type knee_gemm_answer; /* struct knee_gemm_report */

#endif

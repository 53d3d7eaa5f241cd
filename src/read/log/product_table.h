/* SPDX-License-Identifier: MIT */
/* Tables of matrix products that were timed. */
#ifndef KNEE_READ_LOG_PRODUCT_TABLE_H
#define KNEE_READ_LOG_PRODUCT_TABLE_H

#include "job/ops.h"

/* Products that were timed. Free with knee_timed_products_release(). */
struct knee_timed_products {
    char gpu[96]; /* as the table or the driver calls it; "": not said */
    struct knee_timed_product *rows;
    size_t count, capacity;
    size_t others;     /* rows of a table that are not used: dtypes that the model does not know */
    char other[24];    /* one of them */
    size_t damaged;    /* rows of a table that cannot be read */
    size_t first_line; /* of those */
    const struct knee_alloc *alloc;
};
bool knee_timed_products_add(struct knee_timed_products *products,
                             struct knee_timed_product product);
void knee_timed_products_release(struct knee_timed_products *products);

/* A table: columns m, n, k, dtype (or gemm_dtype) and seconds (or latency, in milliseconds); gpu
 * may be there. */
knee_status knee_timed_products_read(const char *name, const char *data, size_t length,
                                     const struct knee_alloc *alloc,
                                     struct knee_timed_products *out, struct knee_err *err);

#endif

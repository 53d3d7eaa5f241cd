/* SPDX-License-Identifier: MIT */
/* What products and attention compute and move. */
#include "knee_timeline.h"

/* Two FLOPs for each of m n k; attention multiplies twice, and five times on the way back, where
 * it computes its scores again. */
double knee_product_flops(const struct knee_product *p)
{
    double products = !p->attention ? 1 : p->backward ? 5 : 2;
    return products * 2 * p->count * p->m * p->n * p->k * (p->causal ? 0.5 : 1);
}

/* Each operand once. Of fused attention queries, keys, values and the result; on the way back each
 * of them and its gradient. */
double knee_product_bytes(const struct knee_product *p)
{
    double once = p->m * p->k + p->k * p->n + p->m * p->n;
    if (p->attention)
        once = (2 * p->m * p->k + 2 * p->n * p->k) * (p->backward ? 2 : 1);
    return p->count * once * p->element_bytes;
}

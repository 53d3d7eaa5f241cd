/* SPDX-License-Identifier: MIT */
/* Tables of timed products from any bytes: read or refused; what is fitted to them is finite. */
#include "knee_job.h"
#include "predict/calibrate/product_fit.h"
#include "read/log/product_table.h"
#include "seldom.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct knee_machine h200(void)
{
    struct knee_platform platform;
    struct knee_machine machine;
    struct knee_err err;
    knee_platform_init(&platform);
    if (knee_keys_set(&knee_platform_keys, &platform, "gpu", "h200", KNEE_FLAG, &err) ||
        knee_machine_init(&platform, NULL, &machine, &err))
        abort();
    return machine;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_timed_products products;
    struct knee_products_fit fit;
    struct knee_err err;
    if (knee_timed_products_read("fuzz", (const char *)data, size, NULL, &products, &err))
        return 0;
    struct knee_machine machine = h200();
    if (products.count < 100 && seldom(data, size, 8) &&
        !knee_products_fit(products.rows, products.count, &machine, &fit, &err) &&
        !(isfinite(fit.fitted) && fit.machine.rates.gemm_16bit > 0))
        abort();
    knee_timed_products_release(&products);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Products that were timed elsewhere: knee bench --gemm --csv, or a table of another tool. */
#include "read/log/product_table.h"

#include "base/csv.h"
#include "base/error.h"
#include "base/list.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

enum column { M, N, K, DTYPE, SECONDS, GPU, COLUMNS };

static const struct {
    const char *name;
    enum column column;
    double unit_s; /* of times */
} heads[] = {
    {"m", M, 1},
    {"n", N, 1},
    {"k", K, 1},
    {"dtype", DTYPE, 1},
    {"gpu", GPU, 1},
    {"gemm_dtype", DTYPE, 1}, /* ai-dynamo/aiconfigurator */
    {"seconds", SECONDS, 1},
    {"latency", SECONDS, 1e-3}, /* the same: milliseconds */
};

static const struct {
    const char *name;
    enum knee_dtype dtype;
} dtypes[] = {
    {"bf16", KNEE_16BIT},    {"bfloat16", KNEE_16BIT}, {"fp16", KNEE_16BIT},
    {"float16", KNEE_16BIT}, {"half", KNEE_16BIT},     {"fp8", KNEE_8BIT},
    {"float8", KNEE_8BIT},   {"nvfp4", KNEE_4BIT},     {"fp4", KNEE_4BIT},
};

bool knee_timed_products_add(struct knee_timed_products *products,
                             struct knee_timed_product product)
{
    if (!knee_room(products->alloc, &products->rows, &products->capacity, products->count + 1,
                   sizeof product))
        return false;
    products->rows[products->count++] = product;
    return true;
}

void knee_timed_products_release(struct knee_timed_products *products)
{
    knee_resize(products->alloc, products->rows, 0);
    memset(products, 0, sizeof *products);
}

struct layout {
    size_t field[COLUMNS]; /* KNEE_CSV_FIELDS: there is none */
    double unit_s;
};

static knee_status read_heads(const struct knee_csv *csv, const char *name, struct layout *out,
                              struct knee_err *err)
{
    for (size_t c = 0; c < COLUMNS; c++)
        out->field[c] = KNEE_CSV_FIELDS;
    for (size_t f = 0; f < csv->fields; f++) {
        char text[32];
        knee_csv_text(csv, f, text, sizeof text);
        for (size_t h = 0; h < sizeof heads / sizeof *heads; h++)
            if (strcmp(text, heads[h].name) == 0) {
                out->field[heads[h].column] = f;
                if (heads[h].column == SECONDS)
                    out->unit_s = heads[h].unit_s;
            }
    }
    for (size_t c = 0; c < GPU; c++)
        if (out->field[c] == KNEE_CSV_FIELDS)
            return knee_fail_hint(err, KNEE_INPUT, name,
                                  "its first line names the columns m, n, k, dtype, seconds",
                                  "not a table of products");
    return KNEE_OK;
}

static double number_in(const struct knee_csv *csv, size_t field)
{
    double value;
    return knee_slice_number(knee_csv_slice(csv, field), &value) && value > 0 && isfinite(value)
               ? value
               : NAN;
}

static int dtype_named(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(name, dtypes[i].name) == 0)
            return (int)dtypes[i].dtype;
    return -1;
}

/* False: out of memory. */
static bool read_row(const struct knee_csv *csv, const struct layout *layout,
                     struct knee_timed_products *out)
{
    char dtype[sizeof out->other];
    struct knee_timed_product row = {
        .m = number_in(csv, layout->field[M]),
        .n = number_in(csv, layout->field[N]),
        .k = number_in(csv, layout->field[K]),
        .seconds = number_in(csv, layout->field[SECONDS]) * layout->unit_s,
    };
    knee_csv_text(csv, layout->field[DTYPE], dtype, sizeof dtype);
    int known = dtype_named(dtype);
    if (isnan(row.m + row.n + row.k + row.seconds)) {
        out->first_line = out->damaged++ ? out->first_line : csv->line;
        return true;
    }
    if (known < 0) {
        memcpy(out->other, dtype, sizeof dtype);
        out->others++;
        return true;
    }
    if (!out->gpu[0])
        knee_csv_text(csv, layout->field[GPU], out->gpu, sizeof out->gpu);
    row.dtype = (enum knee_dtype)known;
    return knee_timed_products_add(out, row);
}

knee_status knee_timed_products_read(const char *name, const char *data, size_t length,
                                     const struct knee_alloc *alloc,
                                     struct knee_timed_products *out, struct knee_err *err)
{
    struct knee_csv csv;
    struct knee_timed_products products = {.alloc = alloc};
    struct layout layout = {.unit_s = 1};
    knee_csv_init(&csv, data, length);
    csv.comment = '#';
    knee_status status = KNEE_OK;
    if (!knee_csv_row(&csv))
        status = knee_fail(err, KNEE_INPUT, name, "is empty");
    if (!status)
        status = read_heads(&csv, name, &layout, err);
    while (!status && knee_csv_row(&csv))
        if (!read_row(&csv, &layout, &products))
            status = knee_fail(err, KNEE_SYSTEM, name, "out of memory for its rows");
    if (status)
        knee_timed_products_release(&products);
    else
        *out = products;
    return status;
}

/* SPDX-License-Identifier: MIT */
/* A table of short texts, laid out as aligned text, Markdown or CSV. */
#ifndef KNEE_OUT_TABLE_H
#define KNEE_OUT_TABLE_H

#include "base/text.h"
#include "knee_out.h"
#include "out/json.h"

#define KNEE_COLUMNS_MAX 24 /* of collective's table, which has one for each algorithm */

struct knee_table {
    size_t columns;
    struct knee_text align; /* 'l' or 'r' for each column */
    struct knee_text cells; /* NUL after each, the header's first */
    size_t cell_count;
};

/* `align` has one letter per column. Free with knee_table_release(). */
void knee_table_init(struct knee_table *table, const char *align, const struct knee_alloc *alloc);
/* The same with `columns` columns, all to the right. */
void knee_table_begin(struct knee_table *table, size_t columns, const struct knee_alloc *alloc);
void knee_table_release(struct knee_table *table);

/* The next cell, row by row. */
void knee_table_cell(struct knee_table *table, const char *fmt, ...) KNEE_PRINTF(2, 3);

/* The next cell: a number as knee_number_human() or knee_number_exact() writes it. */
void knee_table_number(struct knee_table *table, double value, enum knee_unit unit);
void knee_table_exact(struct knee_table *table, double value);

/* Rows as objects of texts, named by the heads, in an array under `key`. */
void knee_table_json(const struct knee_table *table, const char *key, struct knee_json *json);

void knee_table_write(const struct knee_table *table, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text);

/* Columns of a text on a terminal: code points. */
size_t knee_display_width(const char *text);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Comma-separated values as spreadsheets write them: fields may be quoted, quotes inside are
 * doubled, quoted fields may hold commas and line breaks. Bytes are read in place, never copied
 * as a whole.
 */
#ifndef KNEE_BASE_CSV_H
#define KNEE_BASE_CSV_H

#include "base/slice.h"

#define KNEE_CSV_FIELDS 128
#define KNEE_CSV_TEXT   2048 /* longest field that is kept; longer ones are cut */

struct knee_csv {
    const char *at, *end;
    const char *row, *row_end; /* of the row last read */
    size_t line;               /* of the row last read, 1 the first */
    size_t next_line;
    char comment;    /* rows that begin with it are no rows; '\0' (the start): there are none */
    size_t comments; /* skipped so far */
    size_t fields;
    struct knee_csv_field {
        const char *start;
        size_t length; /* between the quotes, doubled ones still double */
        bool quoted;
    } field[KNEE_CSV_FIELDS];
};

void knee_csv_init(struct knee_csv *csv, const char *data, size_t length);

/* Reads the next row that is not empty; false at the end. Fields beyond KNEE_CSV_FIELDS are
 * dropped. */
bool knee_csv_row(struct knee_csv *csv);

/* Copies a field of the row to `out`, NUL-terminated, without control characters or surrounding
 * spaces; "" when there is no such field. */
void knee_csv_text(const struct knee_csv *csv, size_t field, char *out, size_t size);

/* The field where it stands, without surrounding spaces; doubled quotes stay double. Empty when
 * there is no such field. */
struct knee_slice knee_csv_slice(const struct knee_csv *csv, size_t field);

/* The whole row where it stands, without its end of line. */
struct knee_slice knee_csv_line(const struct knee_csv *csv);

#endif

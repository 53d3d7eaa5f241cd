/* SPDX-License-Identifier: MIT */
/* Numbers with units: 25GB/s, 400Gbit/s, 5us, 60TFLOP/s, 7B, 70%. One table of spellings. */
#ifndef KNEE_BASE_NUMBER_H
#define KNEE_BASE_NUMBER_H

#include "knee_keys.h"

/* A row of data/unit_spellings.csv. */
struct knee_unit_spelling {
    enum knee_unit unit;
    const char *text;
    double factor;
};
extern const struct knee_unit_spelling knee_unit_spellings[];
extern const size_t knee_unit_spellings_count;

/* Parses all of `text` as a finite number in `unit`'s base unit. `where` goes into the error. */
knee_status knee_number_parse(const char *text, enum knee_unit unit, const char *where, double *out,
                              struct knee_err *err);

/* For a person: three to four significant digits with a fitting prefix ("35.00 ms", "7.00B"). */
void knee_number_human(char *out, size_t size, double value, enum knee_unit unit);

/* For a machine: the shortest decimal that reads back as the same double; "null" if not finite. */
void knee_number_exact(char *out, size_t size, double value);

/* Nanoseconds as seconds, exactly: 595241000 is "0.595241". */
void knee_number_ns(char *out, size_t size, int64_t ns);

/* "TIME", "BYTES/S": how help names such a value; and an example of it. */
const char *knee_unit_metavar(enum knee_unit unit);
const char *knee_unit_example(enum knee_unit unit);

#endif

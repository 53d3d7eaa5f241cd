/* SPDX-License-Identifier: MIT */
/* A row of a table of runs while it is read (runs.c), and the words of it that name a GPU. */
#ifndef KNEE_READ_RUN_RUNS_ROW_H
#define KNEE_READ_RUN_RUNS_ROW_H

#include "base/csv.h"
#include "knee_runs.h"

enum word {
    ID,
    SET,
    SOURCE,
    GPU,
    MODEL,
    PRECISION,
    ZERO,
    RECOMPUTE,
    OVERLAP,
    NOTES,
    CONFIG,
    CURVE,
    PROFILE,
    GRAPHS,
    GRAPH_SCOPE,
    EP_OVERLAP,
    DISPATCHER,
    MODULES,
    FP8_ATTENTION,
    LAYOUT,
    SWITCHES,
    MATCH,
    WORDS
};

/* A row of data/run_columns.csv: a column that is a number. */
struct knee_run_column {
    const char *name;
    size_t into;      /* offset in struct knee_measured_run */
    double scale;     /* to the base unit */
    const char *step; /* its name in lines of JSON, in the base unit; "": none */
};
extern const struct knee_run_column knee_run_columns[];
extern const size_t knee_run_columns_count;
#define KNEE_RUN_COLUMNS_MAX 64

struct knee_run_row {
    const char *gpu; /* of rows that do not name one */
    char word[WORDS][KNEE_CSV_TEXT];
    char description[3 * KNEE_CSV_TEXT]; /* all that may name the software, in lower case */
    struct knee_measured_run *run;
};

void knee_run_lower(char *text);

/* Adds a word to a list of notes. */
void knee_run_note(char out[KNEE_RUN_TEXT], const char *what);

/* Says why the run cannot be predicted; the first reason stays. */
void knee_run_skip(struct knee_run_row *row, const char *fmt, const char *what);

/* Fills the platform from the row's GPU; its name, "" when it is not known. */
const char *knee_run_gpu(struct knee_run_row *row);

#endif

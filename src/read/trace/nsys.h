/* SPDX-License-Identifier: MIT */
/* What the readers of SQLite databases share. */
#ifndef KNEE_READ_TRACE_NSYS_H
#define KNEE_READ_TRACE_NSYS_H

#include "timeline/builder.h"

#include <sqlite3.h>

struct knee_nsys {
    sqlite3 *db;
    struct knee_builder *builder;
    struct knee_trace *trace;
    const struct knee_trace_options *options;
    /* StringIds: id -> name of the builder, sparse ids in a sorted list */
    struct knee_nsys_string {
        int64_t id;
        uint32_t name;
        uint32_t call; /* the same without the version of a call */
        bool launches; /* the name of a call that hands over work */
        bool runs;     /* ... a kernel or a graph */
        bool captures; /* ... that begins the capture of a graph */
        int64_t step;  /* number of the step that it names; -1: it names none */
        bool loads;    /* it names waiting for a batch */
        bool empty;    /* it says nothing */
        bool copies;   /* RPD's name of a kind of copy */
    } * strings;
    size_t string_count, string_capacity;
    /* processes and devices that occur together */
    struct knee_nsys_pair {
        int64_t process, device;
    } * pairs; /* by process, then device once they are settled */
    size_t pair_count, pair_capacity;
    bool settled; /* each pair stands there once */
    bool shared;  /* some device is used by several processes */
    bool failed;
    /* rocpd: the names of its kernels are in a separate list; index of the database in the file */
    struct knee_nsys_string *symbols;
    size_t symbol_count;
    struct knee_rocpd_parts *parts;
    int64_t part;
};

typedef void knee_nsys_taker(struct knee_nsys *n, sqlite3_stmt *row);

#define KNEE_NSYS_COLUMNS 10

/* A table that is read: its columns, of which the first `needed` belong to every version. */
struct knee_nsys_source {
    const char *table;
    const char *columns[KNEE_NSYS_COLUMNS];
    size_t needed;
    const char *rest; /* of the statement */
    knee_nsys_taker *take;
};

/* Calls `take` for each row. Damage in the middle is counted. */
void knee_nsys_each_row(struct knee_nsys *n, const char *sql, knee_nsys_taker *take);
/* One value of the catalogue, or -1; what is asked for comes as ?1 and (may be NULL) ?2. */
int64_t knee_nsys_look_up(struct knee_nsys *n, const char *sql, const char *first,
                          const char *second);
bool knee_nsys_has_table(struct knee_nsys *n, const char *table);
bool knee_nsys_has_column(struct knee_nsys *n, const char *table, const char *column);
void knee_nsys_read_source(struct knee_nsys *n, const struct knee_nsys_source *source);

/* Names by id: read and sorted; one row of them; the one of an id, or NULL. */
void knee_nsys_read_strings(struct knee_nsys *n, const struct knee_nsys_source *source);
void knee_nsys_take_string(struct knee_nsys *n, sqlite3_stmt *row);
const struct knee_nsys_string *knee_nsys_string_of(const struct knee_nsys *n, int64_t id);

/* The first column is the GPU's name. */
void knee_nsys_take_gpu(struct knee_nsys *n, sqlite3_stmt *row);

/* Can sums and differences of these times be taken? If not, it is counted. */
bool knee_nsys_usable(struct knee_nsys *n, int64_t start, int64_t end);
uint64_t knee_nsys_correlation(int64_t process, int64_t correlation);

/* rocprofv3's databases. */
bool knee_rocpd_is(struct knee_nsys *n);
void knee_rocpd_read(struct knee_nsys *n);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The one table of the kinds of files that knee reads or that users pass to it. The end of the
 * file's name and its first bytes (unpacked if gzipped) decide the kind. Rows are tried in order,
 * the most specific ones first. A command asks the table which reader to use. If only another
 * command can use the file, the table says what to run instead.
 */
#ifndef KNEE_READ_FILE_KINDS_H
#define KNEE_READ_FILE_KINDS_H

#include <stdbool.h>
#include <stddef.h>

enum { KNEE_KIND_HEAD = 4096 }; /* first bytes that are enough to tell */

/* How a file is read as a recording of a timeline. */
enum knee_kind_reader {
    KNEE_READ_OTHERWISE, /* not a timeline */
    KNEE_READ_STREAM,    /* knee_trace_read(): as its bytes come */
    KNEE_READ_DATABASE,  /* knee_nsys_read(): SQLite */
    KNEE_READ_IMAGE,     /* knee_image_read(): as a whole */
    KNEE_READ_ROLLCALL,  /* knee_rollcall_read(): who entered which collective */
};

struct knee_file_kind {
    const char *name; /* "kineto" */
    const char *what; /* "a PyTorch or JAX trace": what a person calls it */
    enum knee_kind_reader reader;
    const char *commands; /* that take it: "trace replay scale"; "" : none */
    const char *run;      /* to make use of it; FILE is its name */
    /* Lists have | between their words; NULL: not asked. */
    const char *ends;  /* the name ends with one of these, or with one of these and .gz */
    const char *magic; /* the first bytes, white space before them left out, are one of these */
    const char *any;   /* one of these stands in the head */
    const char *all;   /* each of these stands in the head */
    const char *none;  /* none of these stands in the head */
    bool (*test)(const char *head, size_t length); /* and what no list can say */
};

extern const struct knee_file_kind knee_file_kinds[]; /* data/file_kinds.csv */
extern const size_t knee_file_kinds_count;
bool knee_is_pickle(const char *head, size_t length);
bool knee_is_text(const char *head, size_t length);

/* The kind of a file, by its name and its first bytes (none: by its name alone). NULL: no kind is
 * known that has such a name or such bytes. */
const struct knee_file_kind *knee_file_kind_of(const char *name, const char *head, size_t length);
const struct knee_file_kind *knee_file_kind_at(size_t row);   /* NULL past the end */
size_t knee_file_kind_row(const struct knee_file_kind *kind); /* + 1; 0: NULL */

/* Does a command take files of this kind? */
bool knee_file_kind_for(const struct knee_file_kind *kind, const char *command);

/* Does the name end as one of the files does that a command reads as a timeline? */
bool knee_file_ends_like_trace(const char *name);

#endif

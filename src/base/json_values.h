/* SPDX-License-Identifier: MIT */
/*
 * The values of a JSON text, one after the other, each with its path: "a.b" for {"a": {"b": 1}},
 * "a[]" for an element of an array. Made for configuration files: nothing is built up, depth and
 * lengths are capped, longer strings are cut.
 */
#ifndef KNEE_BASE_JSON_VALUES_H
#define KNEE_BASE_JSON_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#define KNEE_JSON_DEPTH 32
#define KNEE_JSON_PATH  256
#define KNEE_JSON_TEXT  256

enum knee_json_kind {
    KNEE_JSON_NULL,
    KNEE_JSON_FALSE,
    KNEE_JSON_TRUE,
    KNEE_JSON_NUMBER,
    KNEE_JSON_STRING,
};

struct knee_json_values {
    const char *at, *end;
    /* of the value last read */
    char path[KNEE_JSON_PATH];
    enum knee_json_kind kind;
    double number;
    char text[KNEE_JSON_TEXT];
    size_t elements;   /* of outermost arrays, begun so far: tells one "a[].b" from the next */
    const char *error; /* NULL: none */
    /* containers that are open */
    int depth;
    char open[KNEE_JSON_DEPTH];
    size_t path_length[KNEE_JSON_DEPTH];
    bool begun;
    const char *counted; /* lines up to here are in `line` */
    size_t line;
};

void knee_json_values_init(struct knee_json_values *values, const char *json, size_t length);

/* The next scalar; false at the end of the first value of the text, or with values->error set. */
bool knee_json_values_next(struct knee_json_values *values);

/* Line of the place reached, 1 the first. Each byte is counted once, however often it is asked. */
size_t knee_json_values_line(struct knee_json_values *values);

#endif

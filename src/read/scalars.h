/* SPDX-License-Identifier: MIT */
/*
 * JSON and YAML as a stream of scalars with their paths: {"a": [{"b": 1}]} gives "a[0].b" = "1". No
 * tree, no recursion; nesting, keys and strings have caps. A damaged JSON file gives what stood
 * before the damage, and then says where it is.
 */
#ifndef KNEE_READ_SCALARS_H
#define KNEE_READ_SCALARS_H

#include "base/slice.h"
#include "knee.h"

struct knee_scalar {
    const char *path;  /* valid during the call */
    const char *value; /* likewise; a string without its quotes, cut at 255 bytes */
    bool quoted;
    size_t line;
};
typedef void knee_scalar_taker(void *ctx, const struct knee_scalar *scalar);

/* NULL when all of it was JSON; else what is wrong, and *line where. */
const char *knee_json_scan(struct knee_slice text, knee_scalar_taker *take, void *ctx,
                           size_t *line);

/* KNEE_INPUT when it is not YAML, uses aliases or is nested too deeply; KNEE_SYSTEM without libyaml
 * or memory. */
knee_status knee_yaml_scan(struct knee_slice text, const char *name, knee_scalar_taker *take,
                           void *ctx, struct knee_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * YAML (and JSON, which is YAML) as a stream of scalars with their paths: {"a": [{"b": 1}]} gives
 * "a[0].b" = "1". No tree, no recursion; nesting and keys have caps.
 */
#ifndef KNEE_READ_YAML_SCAN_H
#define KNEE_READ_YAML_SCAN_H

#include "base/slice.h"
#include "knee.h"

struct knee_scalar {
    const char *path;  /* valid during the call */
    const char *value; /* likewise; a string without its quotes */
    bool empty;        /* no scalar at all: an empty list or mapping */
    size_t line;
};
/* What is not KNEE_OK ends the scan and is what it returns; the taker has filled *err. */
typedef knee_status knee_scalar_taker(void *ctx, const struct knee_scalar *scalar);

/* KNEE_INPUT when it is not YAML, has a second document, aliases or keys that are no words, or is
 * nested too deeply; KNEE_SYSTEM without libyaml or memory. */
knee_status knee_yaml_scan(struct knee_slice text, const char *name, knee_scalar_taker *take,
                           void *ctx, struct knee_err *err);

#endif

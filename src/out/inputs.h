/* SPDX-License-Identifier: MIT */
/* The inputs that were used, each with where it came from. */
#ifndef KNEE_OUT_INPUTS_H
#define KNEE_OUT_INPUTS_H

#include "knee_out.h"
#include "out/json.h"

const char *knee_source_name(enum knee_source source); /* "given", "preset", "assumed" ... */

/* Those that have a value: a table of name, value, source, or the JSON array "inputs". */
void knee_inputs_write(const struct knee_keys *keys, const void *object, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text);
void knee_inputs_json(const struct knee_keys *keys, const void *object, struct knee_json *json);

#endif

/* SPDX-License-Identifier: MIT */
/* Products and attention by the names and recorded shapes of PyTorch's operations. */
#ifndef KNEE_READ_TRACE_PRODUCT_ARGS_H
#define KNEE_READ_TRACE_PRODUCT_ARGS_H

#include "read/trace/trace_json.h"

/* Is this an operation that multiplies matrices, and none that only calls such a one? */
/* The shapes of an operation's inputs, "[8,512]x[512,64]", behind a space; at most `size` bytes,
 * without a NUL. Returns how many: 0 where there is none. */
size_t knee_shapes_text(struct knee_slice dims, char *out, size_t size);

bool knee_names_product(struct knee_slice name);

/* What it multiplies, from "Input Dims", "Input type" and "Concrete Inputs" of its args; host times
 * and kernels are left alone. False: the shapes are not recorded, or make no sense. */
bool knee_product_from(const struct knee_event *event, struct knee_product *out);

#endif

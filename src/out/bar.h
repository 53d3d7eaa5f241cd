/* SPDX-License-Identifier: MIT */
/* Pictures of an account for the terminal. */
#ifndef KNEE_OUT_BAR_H
#define KNEE_OUT_BAR_H

#include "base/text.h"
#include "knee_out.h"
#include "say/fields.h"

/* Parts of one bar, each with its shading, and a legend with their shares. */
void knee_parts_write(const struct knee_bar_part *parts, size_t count,
                      const struct knee_style *style, struct knee_text *text);

#endif

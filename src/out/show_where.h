/* SPDX-License-Identifier: MIT */
/* Where in a step: products against the roofline, and the answer of --where. */
#ifndef KNEE_OUT_SHOW_WHERE_H
#define KNEE_OUT_SHOW_WHERE_H

#include "out/json.h"
#include "out/words.h"
#include "timeline/where.h"

/* Nothing where no shapes are recorded. */
void knee_json_roofline(struct knee_json *json, const struct knee_roofline *roofline);

/* A paragraph on products: what they reach of the peak and of what their shapes allow. */
void knee_say_roofline(const struct knee_account *account, const struct knee_diagnosis *diagnosis,
                       struct knee_text *text);

/* Tables of --where, and its member of the JSON. */
void knee_write_where(const struct knee_account *account, const struct knee_diagnosis *diagnosis,
                      const struct knee_where *where, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text);
void knee_json_where(struct knee_json *json, const struct knee_account *account,
                     const struct knee_where *where);

#endif

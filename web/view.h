/* SPDX-License-Identifier: MIT */
/* What core.c holds, for the other files of the page's core. */
#ifndef KNEE_WEB_VIEW_H
#define KNEE_WEB_VIEW_H

#include "ask/pushed.h"
#include "knee.h"

#define EXPORT(name) __attribute__((export_name(#name))) name

const struct knee_account *page_account(void); /* of the trace answered last */
struct knee_text *page_answer(void);           /* emptied; kw_text() shows it */
struct lanes;
const struct lanes *page_lanes(size_t rank); /* NULL: there is no such rank */
double page_view_start_ns(void);             /* on the common clock */

#endif

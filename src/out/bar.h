/* SPDX-License-Identifier: MIT */
/* Pictures of an account for the terminal. */
#ifndef KNEE_OUT_BAR_H
#define KNEE_OUT_BAR_H

#include "base/text.h"
#include "knee_out.h"

/* One step as a bar, each label its own shading, with a legend. */
void knee_bar_write(const struct knee_step *step, const struct knee_style *style,
                    struct knee_text *text);

/* A row per rank, time from left to right, darker where more of it is waiting. */
void knee_strip_write(const struct knee_account *account, const struct knee_style *style,
                      struct knee_text *text);

#endif

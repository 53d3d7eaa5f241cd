/* SPDX-License-Identifier: MIT */
#ifndef KNEE_OUT_SHOW_RAS_H
#define KNEE_OUT_SHOW_RAS_H

#include "judge/ras_judge.h"
#include "knee_out.h"

/* As JSON schema knee.ras/1. `nccl` is the release that answered. */
void knee_write_ras(const struct knee_ras_answer *answer, const char *nccl, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text);

#endif

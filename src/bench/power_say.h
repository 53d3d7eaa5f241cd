/* SPDX-License-Identifier: MIT */
#ifndef KNEE_BENCH_POWER_SAY_H
#define KNEE_BENCH_POWER_SAY_H

#include "say/fields.h"

extern const struct knee_answer_type knee_power_answer; /* struct knee_power_bench */

#endif

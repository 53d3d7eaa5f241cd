/* SPDX-License-Identifier: MIT */
#ifndef KNEE_OUT_SHOW_PLAN_H
#define KNEE_OUT_SHOW_PLAN_H

#include "knee_plan.h"
#include "out/json.h"

/* A priced plan as an object. */
void knee_found_json(struct knee_json *json, const char *key, const struct knee_found *found);

#endif

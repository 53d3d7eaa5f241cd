/* SPDX-License-Identifier: MIT */
#ifndef KNEE_OUT_SHOW_PREDICTION_H
#define KNEE_OUT_SHOW_PREDICTION_H

#include "knee_predict.h"
#include "out/json.h"

/* One worker count as an object, on one line. */
void knee_row_json(struct knee_json *json, const char *key, const struct knee_row *row);

#endif

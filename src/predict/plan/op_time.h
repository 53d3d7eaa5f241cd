/* SPDX-License-Identifier: MIT */
/* How long an operation takes on a machine. */
#ifndef KNEE_PREDICT_PLAN_OP_TIME_H
#define KNEE_PREDICT_PLAN_OP_TIME_H

#include "job/ops.h"

/* Lists the operations (see knee_ops_list) and fills in their times. */
size_t knee_ops_timed(const struct knee_split *split, const struct knee_machine *machine,
                      enum knee_operations_of what, struct knee_operation *out);

/* One operation by itself, as no plan cuts it: needs kind, dtype, count, m, n, k, bytes, and of
 * attention flops and backward. */
double knee_operation_s(const struct knee_machine *machine, const struct knee_operation *op);

/* A smooth maximum: (a^4 + b^4)^(1/4). Two things that run side by side delay each other a little
 * where they are about equal. */
double knee_longer(double a, double b);

#endif
